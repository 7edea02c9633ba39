"""What a cell asks for is answered: the value that PyTorch gave, as a reader may type it; a graph as data."""

from __future__ import annotations

import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from atlas.gallery.process import Outcome
from atlas.gallery.scrapers import scrape_cell
from atlas.gallery.scripts import PageFault
from drawgrad.model import graph_from_dict
from gallery.faulty import HEAD
from sources import ROOT


def _rst(comment: str, **variables: Any) -> str:
    block = SimpleNamespace(content=f"# predict: {comment}\n", lineno=7)
    script = {"src_file": str(ROOT / "examples/graphs/first_graph.py"), "example_globals": variables}
    return scrape_cell(block, script, {"src_dir": "docs"})


@pytest.mark.parametrize(
    ("value", "answer"),
    [
        (torch.tensor(0.1), '["0.1"]'),
        (torch.tensor([8.0, 6.0, 0.0], requires_grad=True), '["8", "6", "0"]'),
        ((60, 20, 5, 1), '["60", "20", "5", "1"]'),
        (5_120_000, '["5120000"]'),
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
        ("True -- Is it?", "the value True is no number"),
        ("[[1, 2]] -- What?", "is no number and no list of numbers"),
        ('"zero" [None | 0] -- Which?', "the value 'zero' is none of the words [None | 0]"),
    ],
)
def test_what_is_no_answer_fails_with_file_and_line(comment: str, said: str) -> None:
    with pytest.raises(PageFault) as raised:
        _rst(comment)
    at = f"{ROOT}/examples/graphs/first_graph.py:7: # predict: "
    assert str(raised.value).startswith(at) and said in str(raised.value)


GRAPH = """
x = torch.tensor(2.0, requires_grad=True)
y = x * x
z = y.exp()
z.backward()

# graph: z (saved) -- Two nodes
"""


def test_a_graph_is_written_as_data(run: Callable[..., dict[str, Outcome]]) -> None:
    """With the lines that made its cards, and with what backward has freed: enough to drag a leaf."""
    outcome = run({"page": HEAD + GRAPH})["page"]
    assert outcome.fault is None, outcome.fault
    made = outcome.job.made
    rst = (made / "page.rst").read_text(encoding="utf-8")
    assert ".. graph-figure:: /gallery/faults/images/sphx_glr_page_001.graph.json\n   :title: Two nodes\n" in rst
    data = json.loads((made / "images/sphx_glr_page_001.graph.json").read_text(encoding="utf-8"))
    graph = graph_from_dict(data["graph"])
    line = HEAD.count("\n")
    made_by = {card.names[0]: data["made_by"][str(card.key)] for card in graph.cards}
    assert made_by == {
        "x": ["x = torch.tensor(2.0, requires_grad=True)", line + 2, line + 2],
        "y": ["y = x * x", line + 3, line + 3],
        "z": ["z = y.exp()", line + 4, line + 4],
    }
    assert graph.program is not None and data["show_saved"] is True
