"""What sphinx-gallery calls before an example and after each of its cells: the page gets what the cell asks for.

A graph is written down as data, ``NAME_001.graph.json``: who shows it draws it. A figure of matplotlib is an SVG, a tenth of
the size of sphinx-gallery's pair of bitmaps, sharp on every screen, and able to follow the theme. The answer to a prediction is
the value that its expression has at the end of the cell, so it is true of the build that shows the question.
"""

from __future__ import annotations

import ast
import difflib
import json
import math
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib
import matplotlib.pyplot as plt

from . import asserts
from .requests import KINDS, Request, has_request, read_requests
from .scripts import PageFault

STYLE = Path(__file__).with_name("atlas.mplstyle")

_MOST_NUMBERS = 6  # that a reader is asked for at once
_LONGEST = 72  # characters of a line in a figure
_DIGITS = 6  # that are kept of a number: float32 has seven, and its last one is rounding
#: A script that calls backward more often than that trains something; the figures are of its first calls.
_MOST_CALLS = 500


def start_fresh(gallery_conf: Mapping[str, Any], name: str | None) -> None:
    """The site's look for plots, and warnings as errors: one that a page does not show on purpose is a fault of the page.

    One of sphinx-gallery's ``reset_modules``, called before the example ``name`` runs. Everything else is as in a fresh
    interpreter, since each example has a process of its own.
    """
    matplotlib.rc_file(STYLE)
    warnings.resetwarnings()
    warnings.simplefilter("error")
    # A library's deprecations are its own affair; those that the example itself causes are not.
    for category in (DeprecationWarning, PendingDeprecationWarning):
        warnings.filterwarnings("ignore", category=category)
        warnings.filterwarnings("error", category=category, module="__main__")
    warnings.filterwarnings("ignore", category=FutureWarning, module=r"torch\.")  # its calls of what it deprecates


def scrape_cell(block: Any, block_vars: Mapping[str, Any], gallery_conf: Mapping[str, Any]) -> str:
    """Return reST for what a cell asks for in comments, and on the page's last cell for the count of its asserts.

    :raises PageFault: for a request that cannot be met, an assert that never ran; they name file and line.
    """
    asserts.note_recording_line(None)
    path, docs = block_vars["src_file"], gallery_conf["src_dir"]
    asked = list(read_requests(block.content, block.lineno, path))
    graphs, figures, varies, questions = ([one for one in asked if one.kind == kind] for kind in KINDS)
    rst = _write_graphs(graphs, block, block_vars, docs) + _draw_plots(figures, block, block_vars, docs)
    rst += "".join(f"\n.. varies::\n\n   {request.text}\n\n" for request in varies)
    for request in questions:
        try:
            answer = _make_answer(eval(request.code, dict(block_vars["example_globals"])), request.words)
            words = f"   :words: {json.dumps(request.words)}\n" if request.words else ""
            rst += f"\n.. predict:: {request.text}\n   :answer: {json.dumps(answer)}\n{words}\n"
        except Exception as error:
            at = f"{path}:{request.line}: # predict: {request.code}"
            raise PageFault(f"{at}: {type(error).__name__}: {error}") from None
    return rst + asserts.report_asserts(block, block_vars)


# -- Graphs -----------------------------------------------------------------------------------------------


def remember_operands(script: Path) -> None:
    """Have what nodes saved read before backward frees it, for figures that are drawn after it, if the script asks for any.

    No frame of ours stands in a traceback: PyTorch asks for a method of its engine, and the asking is noted, not the call.
    """
    if not has_request("graph", script.read_text(encoding="utf-8")):
        return
    from torch.autograd import Variable

    from drawgrad import nodes

    class WatchedEngine:
        calls = 0

        def __init__(self, engine: Any) -> None:
            self._engine = engine

        def __getattr__(self, name: str) -> Any:
            return getattr(self._engine, name)

        @property
        def run_backward(self) -> Any:
            outputs = sys._getframe(1).f_locals.get("t_outputs", ())
            self.calls += 1
            if self.calls <= _MOST_CALLS:
                try:
                    nodes.remember_operands([one.grad_fn if hasattr(one, "grad_fn") else one.node for one in outputs])
                except RuntimeError:  # a view whose base was changed in place; backward is about to refuse it
                    pass
            return self._engine.run_backward

    Variable._execution_engine = WatchedEngine(Variable._execution_engine)


def _write_graphs(asked: Sequence[Request], block: Any, block_vars: Mapping[str, Any], docs: str) -> str:
    if not asked:
        return ""
    # here, because a build in which no example runs does without torch, and so without its seconds
    from drawgrad.model import fold_graph, graph_to_dict

    path, rst = block_vars["src_file"], ""
    assigned = find_assignments(path, block.lineno + block.content.count("\n"))
    loops = find_loop_variables(path)  # they only repeat a name that a tensor has already
    namespace = {name: value for name, value in block_vars["example_globals"].items() if name not in loops}
    for request in asked:
        graph = fold_graph(_read_graph(request, namespace, path))
        made_by = {str(card.key): made for card in graph.cards if (made := _find_maker(card, path, assigned))}
        data = {"graph": graph_to_dict(graph), "made_by": made_by, "show_saved": "saved" in request.options}
        file = Path(next(block_vars["image_path_iterator"])).with_suffix(".graph.json")
        file.write_text(json.dumps(data, ensure_ascii=False, allow_nan=False), encoding="utf-8")
        rst += f"\n.. graph-figure:: /{file.relative_to(docs).as_posix()}\n   :title: {request.text}\n   :table:\n\n"
    return rst


def _read_graph(request: Request, namespace: Mapping[str, Any], path: str) -> Any:
    import torch

    from drawgrad.read import GraphError, read_graph

    at = f"{path}:{request.line}"
    for name in request.names:
        if name not in namespace:
            tensors = [key for key, value in namespace.items() if isinstance(value, torch.Tensor)]
            near = difflib.get_close_matches(name, tensors, n=1, cutoff=0.4)
            hint = f"did you mean {near[0]!r}?" if near else f"its tensors are: {', '.join(sorted(tensors))}"
            raise PageFault(f"{at}: the script has no variable {name!r} at the end of this cell; {hint}")
    roots = {name: namespace[name] for name in request.names}
    try:
        return read_graph(roots, namespace, accumulate="AccumulateGrad" in request.options)
    except GraphError as error:
        raise PageFault(f"{at}: cannot draw a graph: {error}") from None


def _find_maker(card: Any, path: str, assigned: Mapping[str, Statement]) -> Statement | None:
    """The statement that recorded the card's node; of a leaf, and of a node that no line recorded, the one that named it."""
    line = None if card.recorded_as is None else asserts.find_recording_line(card.recorded_as)
    if line is not None:
        return find_statement(path, line)
    return next((assigned[name] for name in card.names if name in assigned), None)


# -- Plots and predictions --------------------------------------------------------------------------------


def _draw_plots(asked: Sequence[Request], block: Any, block_vars: Mapping[str, Any], docs: str) -> str:
    """Each figure has a title for everybody, and a text for those who cannot see it."""
    path, numbers, rst = block_vars["src_file"], plt.get_fignums(), ""
    for number, request in zip_longest(numbers, asked):
        at = f"{path}:{request.line if request else block.lineno}"
        if number is None:
            raise PageFault(f"{at}: '# figure:' describes a figure that this cell does not draw")
        if request is None:
            raise PageFault(f"{at}: a figure of this cell has no text; add a line '# figure: WHAT TO SEE IN IT'")
        figure = plt.figure(number)
        titles = [axes.get_title(place) for axes in figure.axes for place in ("left", "center", "right")]
        if not any(title.strip() for title in [figure.get_suptitle(), *titles]):
            raise PageFault(f"{at}: this figure has no title; give it one with set_title() or suptitle()")
        image = Path(next(block_vars["image_path_iterator"])).with_suffix(".svg")
        figure.savefig(image, metadata={"Date": None})
        rst += f"\n.. plot-figure:: /{image.relative_to(docs).as_posix()}\n   :alt: {request.text}\n\n"
    plt.close("all")
    return rst


def _make_answer(value: Any, words: tuple[str, ...]) -> list[str]:
    """A value as the page compares it with what a reader types: a word, or numbers.

    :raises ValueError: if it is neither, and the message says what it is.

    >>> _make_answer([2.0, 1 / 3], ()), _make_answer("None", ("None", "zero")), _make_answer(float("nan"), ())
    (['2', '0.333333'], ['None'], ['nan'])
    """
    if words:
        if value not in words:
            raise ValueError(f"the value {value!r} is none of the words [{' | '.join(words)}]")
        return [value]
    if hasattr(value, "tolist"):
        value = value.tolist()
    numbers = list(value) if isinstance(value, (list, tuple)) else [value]
    if any(isinstance(number, bool) or not isinstance(number, (int, float)) for number in numbers):
        raise ValueError(f"the value {value!r} is no number and no list of numbers; for words: [yes | no]")
    if not 1 <= len(numbers) <= _MOST_NUMBERS:
        raise ValueError(f"the value has {len(numbers)} numbers; ask for one to {_MOST_NUMBERS}")
    return [f"{n:.{_DIGITS}g}" if isinstance(n, float) and math.isfinite(n) else str(n) for n in numbers]


# -- What a script's text says of its lines ----------------------------------------------------------------


class Statement(NamedTuple):
    """Its first line, as a figure shows it, and the numbers of its lines in the script."""

    text: str
    first: int
    last: int


def find_statement(path: str, line: int) -> Statement:
    """The statement that a line of the script belongs to. Of a loop that is its head, or a statement in it."""
    text, tree = _parse(path)
    found = [node for node in ast.walk(tree) if isinstance(node, ast.stmt) and node.lineno <= line <= node.end_lineno]
    return _make_statement(text, max(found, key=lambda node: node.lineno))


def find_assignments(path: str, end: int) -> dict[str, Statement]:
    """For each variable that the script has assigned up to line ``end``, outside of functions, the statement that did.

    A name that is assigned in several places, one of them in a loop, is left out: which was the last cannot be read off.
    """
    text, tree = _parse(path)
    assigned: dict[str, list[tuple[ast.stmt, bool]]] = {}
    for name, statement, in_loop in _list_assignments(tree.body, in_loop=False):
        if statement.lineno <= end:
            assigned.setdefault(name, []).append((statement, in_loop))
    known = {name: found for name, found in assigned.items() if len(found) == 1 or not any(loop for _, loop in found)}
    return {name: _make_statement(text, found[-1][0]) for name, found in known.items()}


def find_loop_variables(path: str) -> set[str]:
    """The names that only a ``for`` gives values to, anywhere in the script."""
    nodes = list(ast.walk(_parse(path)[1]))
    loops = {name for node in nodes if isinstance(node, ast.For) for name in _stored_names(node.target)}
    return loops - {name for node in nodes for name in _assigned_names(node)}


@cache
def _parse(path: str) -> tuple[list[str], ast.Module]:
    text = Path(path).read_text(encoding="utf-8")
    return text.splitlines(), ast.parse(text, path)


def _list_assignments(body: list[ast.stmt], *, in_loop: bool) -> Iterator[tuple[str, ast.stmt, bool]]:
    for statement in body:
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            continue
        yield from ((name, statement, in_loop) for name in _assigned_names(statement))
        loops = in_loop or isinstance(statement, (ast.For, ast.While))
        for part in (statement, *getattr(statement, "handlers", [])):
            for name in ("body", "orelse", "finalbody"):
                yield from _list_assignments(getattr(part, name, []), in_loop=loops)


def _assigned_names(node: ast.AST) -> Iterator[str]:
    """The names that a statement assigns; of anything else, none."""
    if isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
        for target in getattr(node, "targets", None) or [node.target]:
            yield from _stored_names(target)


def _stored_names(target: ast.expr) -> Iterator[str]:
    """The names in a target, those in ``x.grad`` and ``x[i]`` aside: these are read, not assigned."""
    return (node.id for node in ast.walk(target) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))


def _make_statement(text: list[str], node: ast.stmt) -> Statement:
    inner = getattr(node, "body", None)
    last = max(node.lineno, inner[0].lineno - 1) if inner else node.end_lineno
    line, *more = text[node.lineno - 1 : last]
    line = line.strip()
    return Statement(f"{line[:_LONGEST]} …" if more or len(line) > _LONGEST else line, node.lineno, last)
