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

Each may go on in lines that begin with ``#   ``. The page says the same as a caption, a note or a question, so the code that
it shows lacks the comments. The script that a reader downloads keeps them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from docutils import nodes
from sphinx.application import Sphinx

from atlas.toolbox import one_line

from .scripts import PageFault

GRAPH_OPTIONS = ("AccumulateGrad", "saved")

KINDS = ("graph", "figure", "varies", "predict")

_BEGINS, _GOES_ON = f"# ?({'|'.join(KINDS)}):", "#   "
_PREDICT = re.compile(r"(?P<code>\S.*?)\s*(?:\[(?P<words>[^\[\]|]+(?:\|[^\[\]|]+)+)\])?\s+--\s+(?P<question>\S.*)")
_GRAPH = re.compile(r"(?P<names>[\w\s,]+?)\s*(?:\((?P<options>[^)]*)\))?\s+--\s+(?P<title>\S.*)")
_REQUEST = re.compile(rf"^{_BEGINS}.*(?:\n{_GOES_ON}.*)*(?:\n|\Z)", re.MULTILINE)
_BETWEEN_EMPTY_LINES = re.compile(rf"(?<=\n\n)(?:{_REQUEST.pattern})+(?:\n+|\Z)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Request:
    """One comment. ``text`` is the title of a graph, the text of a figure, why a cell varies, or a question."""

    kind: str
    line: int
    text: str
    names: tuple[str, ...] = ()
    """The roots of a graph."""
    options: frozenset[str] = frozenset()
    """Of a graph."""
    code: str = ""
    """The expression to predict."""
    words: tuple[str, ...] = ()
    """The answers to choose from."""


def has_request(kind: str, text: str) -> bool:
    """Whether any cell of a script asks for something of this kind."""
    return kind in re.findall(f"^{_BEGINS}", text, re.MULTILINE)


def read_requests(code: str, first_line: int, path: str) -> Iterator[Request]:
    """What the cell ``code``, which begins at ``first_line`` of the file ``path``, asks for, in order.

    :raises PageFault: for a comment that begins like a request and is none; it names file and line.

    >>> [request.text for request in read_requests("y = x * x\\n# graph: y -- One node, two edges", 10, "page.py")]
    ['One node, two edges']
    >>> list(read_requests("# graph: y", 10, "page.py"))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    atlas.gallery.scripts.PageFault: page.py:10: a graph needs a title that says what to see in it: # graph: ...
    """
    for found in _REQUEST.finditer(code):
        line = first_line + code.count("\n", 0, found.start())
        text = one_line(found[0].replace("\n#", "\n").partition(":")[2])
        try:
            yield _read_request(found[1], line, text)
        except PageFault as error:
            raise PageFault(f"{path}:{line}: {error}") from None


def _read_request(kind: str, line: int, text: str) -> Request:
    if kind == "graph":
        return _read_graph(line, text)
    if kind == "predict":
        return _read_prediction(line, text)
    if not text:
        wanted = "say what to see in the figure" if kind == "figure" else "say what varies, and why"
        raise PageFault(f"{wanted}, after '# {kind}:'")
    return Request(kind, line, text)


def _read_graph(line: int, text: str) -> Request:
    found = _GRAPH.fullmatch(text)
    if not found:
        raise PageFault("a graph needs a title that says what to see in it: # graph: NAME -- TITLE")
    names = tuple(name.strip() for name in found["names"].split(","))
    options = frozenset(option.strip() for option in (found["options"] or "").split(",") if option.strip())
    if unknown := sorted(options.difference(GRAPH_OPTIONS)):
        raise PageFault(f"unknown option {unknown[0]!r}; there are: {', '.join(GRAPH_OPTIONS)}")
    return Request("graph", line, found["title"].strip(), names, options)


def _read_prediction(line: int, text: str) -> Request:
    found = _PREDICT.fullmatch(text)
    if not found:
        raise PageFault("ask for the value of an expression: # predict: EXPRESSION -- QUESTION")
    words = tuple(word.strip() for word in (found["words"] or "").split("|") if word.strip())
    return Request("predict", line, found["question"].strip(), code=found["code"], words=words)


def without_requests(code: str) -> str:
    r"""The code without its requests. Of the empty lines above and below a request, those below go too.

    >>> without_requests("y = x * x\n\n# figure: A line\n#   that rises\n\nprint(y)")
    'y = x * x\n\nprint(y)'
    """
    return _REQUEST.sub("", _BETWEEN_EMPTY_LINES.sub("", code)).strip("\n")


def hide_requests(app: Sphinx, doctree: nodes.document) -> None:
    """Rewrite the code cells of an example's page; one of which nothing is left goes. Connected to ``doctree-read``."""
    if not app.env.docname.startswith("gallery/"):
        return
    for block in list(doctree.findall(nodes.literal_block)):
        code = block.astext()
        if _REQUEST.search(code):
            block.rawsource = without_requests(code)
            block[:] = [nodes.Text(block.rawsource)]
        if not block.astext().strip():
            block.parent.remove(block)
