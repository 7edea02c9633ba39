"""A scraper for ``# predict: EXPRESSION -- QUESTION``: the reader answers first, and the page knows what PyTorch answered.

The answer is the value of the expression at the end of the cell, so it is true of the build that shows the question.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from . import line_watcher
from .request_comments import CommentError, PredictRequest, requests_for

#: As many numbers as a reader may be asked for at once.
MOST_NUMBERS = 6
#: Digits that are kept: float32 has seven, and its last one is rounding.
DIGITS = 6


def scrape(block: Any, block_vars: Mapping[str, Any], gallery_conf: Mapping[str, Any]) -> str:
    """Return reST for the questions of a cell.

    :raises CommentError: for an expression that fails, or whose value is no answer; it names file and line.
    """
    path = block_vars["src_file"]
    wanted = requests_for(PredictRequest, block, path)
    return "".join(_directive(request, block_vars["example_globals"], f"{path}:{request.line}") for request in wanted)


def _directive(request: PredictRequest, namespace: Mapping[str, Any], at: str) -> str:
    try:
        with line_watcher.paused():
            value = eval(request.code, dict(namespace))
            answer = _answer(value, request.words)
    except Exception as error:
        raise CommentError(f"{at}: # predict: {request.code}: {type(error).__name__}: {error}") from None
    words = f"   :words: {json.dumps(request.words)}\n" if request.words else ""
    return f"\n.. predict:: {request.question}\n   :answer: {json.dumps(answer)}\n{words}\n"


def _answer(value: Any, words: tuple[str, ...]) -> list[str]:
    """A value as the page compares it with what a reader types: a word, or numbers.

    :raises ValueError: if it is neither, and the message says what it is.

    >>> _answer([2.0, 1 / 3], ()), _answer("None", ("None", "zero")), _answer(float("nan"), ())
    (['2', '0.333333'], ['None'], ['nan'])
    """
    if words:
        if value not in words:
            raise ValueError(f"the value {value!r} is none of the words [{' | '.join(words)}]")
        return [value]
    if hasattr(value, "detach"):
        value = value.detach()
    if hasattr(value, "tolist"):
        value = value.tolist()
    numbers = list(value) if isinstance(value, (list, tuple)) else [value]
    if any(isinstance(number, bool) or not isinstance(number, (int, float)) for number in numbers):
        raise ValueError(f"the value {value!r} is no number and no list of numbers; for words: [yes | no]")
    if not 1 <= len(numbers) <= MOST_NUMBERS:
        raise ValueError(f"the value has {len(numbers)} numbers; ask for one to {MOST_NUMBERS}")
    return [str(number) if isinstance(number, int) else _rounded(number) for number in numbers]


def _rounded(number: float) -> str:
    return f"{number:.{DIGITS}g}" if math.isfinite(number) else str(number)
