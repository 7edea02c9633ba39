"""The comments by which a cell of an example asks the site for something.

An example is plain PyTorch and imports nothing of the site, so it speaks to the site in comments at the left margin:

``# graph: NAME -- TITLE``
    Draw the backward graph of the tensor NAME as it is at the end of the cell. Several roots: ``# graph: a, b -- TITLE``.
    In brackets, what else to show: ``# graph: d (AccumulateGrad, saved) -- TITLE``.
``# figure: TEXT``
    The alternative text of the matplotlib figure that the cell draws.
``# varies: SENTENCE``
    The output of this cell differs from build to build, and why.
``# predict: EXPRESSION -- QUESTION``
    Ask the reader for the value that the expression has at the end of the cell. In brackets before the dashes, the words to
    choose from: ``# predict: "zero" [None | zero] -- QUESTION``.

Each may go on in lines that begin with ``#   ``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

GRAPH_OPTIONS = ("AccumulateGrad", "saved")

#: How a request begins, and how each line does on which it goes on.
BEGINS = "# ?(graph|figure|varies|predict):"
GOES_ON = "#   "

_COMMENT = re.compile(f"{BEGINS}(.*)")
_PREDICT = re.compile(r"(?P<code>\S.*?)\s*(?:\[(?P<words>[^\[\]|]+(?:\|[^\[\]|]+)+)\])?\s+--\s+(?P<question>\S.*)")
_GRAPH = re.compile(r"(?P<names>[\w\s,]+?)\s*(?:\((?P<options>[^)]*)\))?\s+--\s+(?P<title>\S.*)")


class CommentError(ValueError):
    """A comment that asks for something, but not in a way that can be understood."""


@dataclass(frozen=True, slots=True)
class GraphRequest:
    line: int
    names: tuple[str, ...]
    title: str
    options: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class FigureRequest:
    line: int
    alt: str


@dataclass(frozen=True, slots=True)
class Varies:
    line: int
    why: str


@dataclass(frozen=True, slots=True)
class PredictRequest:
    line: int
    code: str
    question: str
    words: tuple[str, ...] = ()


Request = GraphRequest | FigureRequest | Varies | PredictRequest
Wanted = TypeVar("Wanted", GraphRequest, FigureRequest, Varies, PredictRequest)


def varies(script: str) -> bool:
    """Whether any cell of a script says that its output varies."""
    return "varies" in re.findall(f"^{BEGINS}", script, re.MULTILINE)


def asks_for_graphs(script: str) -> bool:
    """Whether any cell of a script asks for the drawing of a graph."""
    return "graph" in re.findall(f"^{BEGINS}", script, re.MULTILINE)


def requests(code: str, first_line: int, path: str) -> Iterator[Request]:
    """What the cell ``code``, which begins at ``first_line`` of the file ``path``, asks for, in order.

    :raises CommentError: for a comment that begins like a request and is none; it names file and line.

    >>> list(requests("y = x * x\\n# graph: y -- One node, two edges", 10, "page.py"))
    [GraphRequest(line=11, names=('y',), title='One node, two edges', options=frozenset())]
    >>> list(requests("# graph: y", 10, "page.py"))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    atlas.cells.request_comments.CommentError: page.py:10: a graph needs a title that says what to see in it: # graph: ...
    """
    lines = code.splitlines()
    for number, line in enumerate(lines):
        match = _COMMENT.fullmatch(line.rstrip())
        if not match:
            continue
        keyword, words = match[1], [match[2].strip()]
        where, at = first_line + number, f"{path}:{first_line + number}"
        for continued in lines[number + 1 :]:
            if not continued.startswith(GOES_ON):
                break
            words.append(continued[1:].strip())
        text = " ".join(word for word in words if word)
        if keyword == "graph":
            yield _graph(where, text, at)
        elif keyword == "predict":
            yield _predict(where, text, at)
        elif not text:
            wanted = "say what to see in the figure" if keyword == "figure" else "say what varies, and why"
            raise CommentError(f"{at}: {wanted}, after '# {keyword}:'")
        else:
            yield FigureRequest(where, text) if keyword == "figure" else Varies(where, text)


def requests_for(kind: type[Wanted], block: Any, path: str) -> list[Wanted]:
    """What sphinx-gallery's ``block`` of the file ``path`` asks of one scraper.

    :raises CommentError: for a comment that begins like a request and is none, of whatever kind.
    """
    return [found for found in requests(block.content, block.lineno, path) if isinstance(found, kind)]


def _graph(line: int, text: str, at: str) -> GraphRequest:
    match = _GRAPH.fullmatch(text)
    if not match:
        raise CommentError(f"{at}: a graph needs a title that says what to see in it: # graph: NAME -- TITLE")
    names = tuple(name.strip() for name in match["names"].split(","))
    options = frozenset(option.strip() for option in (match["options"] or "").split(",") if option.strip())
    for name in names:
        if not name.isidentifier():
            raise CommentError(f"{at}: {name!r} is not a variable's name: # graph: NAME -- TITLE")
    if unknown := sorted(options.difference(GRAPH_OPTIONS)):
        raise CommentError(f"{at}: unknown option {unknown[0]!r}; there are: {', '.join(GRAPH_OPTIONS)}")
    return GraphRequest(line, names, match["title"].strip(), options)


def _predict(line: int, text: str, at: str) -> PredictRequest:
    match = _PREDICT.fullmatch(text)
    if not match:
        raise CommentError(f"{at}: ask for the value of an expression: # predict: EXPRESSION -- QUESTION")
    words = tuple(word.strip() for word in (match["words"] or "").split("|") if word.strip())
    try:
        compile(match["code"], at, "eval")
    except SyntaxError as error:
        raise CommentError(f"{at}: {match['code']!r} is no expression: {error.msg}") from None
    return PredictRequest(line, match["code"], match["question"].strip(), words)
