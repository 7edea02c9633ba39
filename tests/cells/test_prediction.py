"""What a page takes for the answer of a question: the value that PyTorch gave, as a reader may type it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from atlas.cells.prediction import scrape
from atlas.cells.request_comments import CommentError


def _rst(comment: str, **variables: Any) -> str:
    block = SimpleNamespace(content=f"# predict: {comment}\n", lineno=7)
    return scrape(block, {"src_file": "page.py", "example_globals": variables}, {})


@pytest.mark.parametrize(
    ("value", "answer"),
    [
        (torch.tensor(0.1), '["0.1"]'),
        (torch.tensor([8.0, 6.0, 0.0], requires_grad=True), '["8", "6", "0"]'),
        (torch.tensor(2, dtype=torch.int64), '["2"]'),
        ((60, 20, 5, 1), '["60", "20", "5", "1"]'),
        (5_120_000, '["5120000"]'),
        (1 / 3, '["0.333333"]'),
        (float("inf"), '["inf"]'),
    ],
)
def test_numbers(value: Any, answer: str) -> None:
    assert f":answer: {answer}\n" in _rst("value -- What is it?", value=value)


def test_words_to_choose_from() -> None:
    rst = _rst('"None" if x is None else "a number" [None | a number] -- Which?', x=None)
    assert rst.split("\n")[1:4] == [".. predict:: Which?", '   :answer: ["None"]', '   :words: ["None", "a number"]']


@pytest.mark.parametrize(
    ("comment", "said"),
    [
        ("missing -- What?", "NameError: name 'missing' is not defined"),
        ("[] -- What?", "the value has 0 numbers; ask for one to 6"),
        ("list(range(7)) -- What?", "the value has 7 numbers"),
        ("True -- Is it?", "the value True is no number"),
        ("[[1, 2]] -- What?", "is no number and no list of numbers"),
        ('"zero" [None | 0] -- Which?', "the value 'zero' is none of the words [None | 0]"),
    ],
)
def test_what_is_no_answer_fails_with_file_and_line(comment: str, said: str) -> None:
    with pytest.raises(CommentError) as raised:
        _rst(comment)
    assert str(raised.value).startswith("page.py:7: # predict: ") and said in str(raised.value)
