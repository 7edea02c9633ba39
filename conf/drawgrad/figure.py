"""``draw(loss)``: the backward graph of the reader's own tensors as a figure that a notebook shows, and that can be saved.

What is read is plain data, so a figure stays as it is, and keeps no tensor alive. All that it shows lies in one piece of HTML,
in a frame of its own: neither the notebook's style sheets nor ours reach the other, and no site is asked for anything.
"""

from __future__ import annotations

import math
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from html import escape
from inspect import CO_OPTIMIZED
from pathlib import Path
from string import Template
from types import ModuleType
from typing import Any

import pygraphviz
import torch

from .describe import TITLES, describe_graph, format_bytes, format_number
from .drawing import draw_graph, write_factor, write_lines
from .model import READABLE, Card, Graph, fold_graph
from .modules import find_modules, fold_modules, open_module
from .nodes import measure_memory
from .play import describe_play
from .player import write_player
from .read import GraphError, list_items, read_graph
from .rules import write_javascript

_HERE = Path(__file__).parent
_NAMED = 8  # names in one sentence


def draw(*roots: torch.Tensor, values: bool = True, saved: bool = False, depth: int | None = 1) -> Figure:
    """Return the backward graph of ``roots`` as a figure, with the names that the caller's variables give.

    :param values: show values, gradients and local derivatives; without them names, shapes and operations remain.
    :param saved: show what each node keeps for backward, in bytes.
    :param depth: in a graph of more than 40 cards, fold modules that are in so many others; None folds none.
    :raises GraphError: if there is nothing to draw, and the message says why: no tensor, a leaf, a tensor without a graph.
    """
    frame = sys._getframe(1)
    mine = frame.f_locals
    variables = mine | frame.f_globals | mine  # the order in which a name is looked up
    if frame.f_code.co_flags & CO_OPTIMIZED and sys.getrefcount(mine) == 3:
        mine.clear()  # before Python 3.13 a function keeps this copy, and all tensors in it, until it returns
    namespace = {name: it for name, it in variables.items() if name.isidentifier() and name not in ("In", "Out")}
    if not roots:
        raise GraphError("There is nothing to draw. Give a tensor that PyTorch computed: draw(loss).")
    named = {_check_root(root, place, namespace): root for place, root in enumerate(roots)}
    modules = _find_modules(namespace)
    # a loop over parameters leaves one of them the name p
    own = {id(one) for module in modules.values() for one in module.parameters()}
    others = {name: it for name, it in namespace.items() if id(it) not in own}
    graph = read_graph(named, modules | others, own=True)
    notes = [*_note_limits(graph), *_note_missing(graph, modules)]
    if saved:
        notes.append(_sum_saved(graph))
    name = ", ".join(one for one in named if not one.startswith("_"))
    return Figure(_choose_facts(graph, values, saved), name, notes, depth, saved, [*modules])


def _find_modules(namespace: Mapping[str, Any]) -> dict[str, torch.nn.Module]:
    """The caller's modules, and those that its objects, lists and dicts hold: ``self.model``, ``nets['g']``."""
    whole = dict(namespace)
    for name, it in namespace.items():
        if not isinstance(it, (ModuleType, torch.nn.Module)):
            whole |= {f"{name}.{key}": one for key, one in getattr(it, "__dict__", {}).items()}
    items = (item for name, it in whole.items() if not name.startswith("_") for item in list_items(name, it))
    found = [(name, it) for name, it in items if isinstance(it, torch.nn.Module)]
    # a model before the list that it is made of
    return dict(sorted(found, key=lambda pair: pair[0] not in namespace))


def _check_root(root: Any, place: int, namespace: Mapping[str, Any]) -> str:
    """The caller's name of a root; one that begins with ``_`` is no name.

    :raises GraphError: if it has no graph.
    """
    names = (name for name, it in namespace.items() if it is root is not None and not name.startswith("_"))
    name = next(names, f"_result{place}")
    said = "This result" if name.startswith("_") else f"{name!r}"
    if isinstance(root, torch.nn.Module):
        raise GraphError(f"{said} is a module, not a tensor. Draw what it computes, as draw(model(x).sum()).")
    if not isinstance(root, torch.Tensor):
        advice = "a tensor in it" if isinstance(root, (dict, list, tuple)) else "a result, such as the loss"
        raise GraphError(f"{said} is a {type(root).__name__}, not a tensor. Draw {advice}.")
    if not root.requires_grad:
        raise GraphError(f"{said} does not require grad, so autograd recorded no graph. {_guess_cause(root)}")
    if root.is_leaf:
        raise GraphError(f"{said} is a leaf: no operation computed it, so it has no graph. Draw a result.")
    return name


def _guess_cause(root: torch.Tensor) -> str:
    if root.is_inference():
        return "It was computed in torch.inference_mode()."
    if not (root.is_floating_point() or root.is_complex()):
        return f"Its dtype is {root.dtype}: only floating-point and complex tensors have gradients."
    if not torch.is_grad_enabled():
        return "Recording is off at this point: torch.no_grad() or torch.set_grad_enabled(False)."
    return "Likely causes: torch.no_grad(), .detach(), .item(), .data, NumPy, or no input requires grad (frozen parameters)."


# -- What a figure says below its drawing ---------------------------------------------------------


def _note_limits(graph: Graph) -> Iterator[str]:
    """What cannot be seen in ``graph``, and what to do about it."""
    if any(card.operation == "CompiledFunctionBackward" for card in graph.cards):
        yield "Each CompiledFunctionBackward stands for many operations. To see them, draw the model before torch.compile."
    if any(card.saved == ("freed",) for card in graph.cards):
        yield "backward() has freed what the nodes saved: draw before backward() to see it, and all local derivatives."


def _note_missing(graph: Graph, modules: Mapping[str, torch.nn.Module]) -> Iterator[str]:
    """Parameters that get no gradient because the graph does not lead to them, though it leads to others of their module."""
    if graph.left_out or any(card.operation == "CheckpointFunctionBackward" for card in graph.cards):
        return  # with use_reentrant=True the parameters inside get their gradients in another backward pass
    known = {memory for card in graph.cards if card.kind == "leaf" for memory in card.kept}
    missing: dict[int, str] = {}
    for name, module in modules.items():
        held = [(path, id(p), {*measure_memory(p)}) for path, p in module.named_parameters(name) if p.requires_grad]
        own = [(path, key, kept) for path, key, kept in held if any(size for _, size in kept)]
        absent = {key: path for path, key, kept in own if not known & kept}
        missing = (absent if len(absent) < len(own) else {}) | missing
    if missing:
        names = ", ".join([*missing.values()][:_NAMED]) + (", …" if len(missing) > _NAMED else "")
        yield f"✗ Not in this graph, so this backward pass gives them no gradient: {names}."


def _sum_saved(graph: Graph) -> str:
    found = _join_memory(card for card in graph.cards if card.kind == "function")
    leaves = _join_memory(card for card in graph.cards if card.kind == "leaf").keys() & found.keys()
    whole = format_bytes(sum(found.values()))
    said = f"The nodes keep {whole} for backward; memory that several keep is counted once."
    if leaves:
        said += f" {format_bytes(sum(found[one] for one in leaves))} of it is the memory of leaves, which is there anyway."
    is_hidden = any(card.operation == "CopySlices" or "packed by a hook" in str(card.saved) for card in graph.cards)
    return said + (" What a hook packed, or CopySlices keeps, is not counted." if is_hidden else "")


def _join_memory(cards: Iterator[Card]) -> dict[int, int]:
    return {address: size for card in cards for address, size in card.kept}


# -- What stands on the cards ---------------------------------------------------------------------


def _choose_facts(graph: Graph, values: bool, saved: bool) -> Graph:
    """The graph with the facts that were asked for, and with marks of gradients."""
    dropped: dict[str, Any] = {} if saved else {"saved": ()}
    if not values:
        dropped |= {"value": None, "numbers": (), "gradient": None, "gradient_numbers": (), "terms": ()}
        dropped |= {"gradient_norm": None, "gradient_shape": None}
        edges = tuple(replace(edge, derivative=None) for edge in graph.edges)
        graph = replace(graph, edges=edges, program=None)
    cards = [replace(card, **dropped) for card in graph.cards]
    # before this graph's backward pass nothing is wrong, also where leaves have gradients from another, as in a GAN
    kept = {text for card in graph.cards for text in card.saved}
    norms = [card.gradient_norm for card in cards if card.kind == "leaf"]
    is_done = "freed" in kept or not kept or (None not in norms and any(norms))
    is_called = is_done and any(card.gradient_shape is not None for card in cards)
    return replace(graph, cards=tuple(replace(card, alarm=_find_fault(card, is_called)) for card in cards))


def _find_fault(card: Card, is_called: bool) -> str:
    """What is wrong with the gradient of a card, in a word."""
    norm, is_number = card.gradient_norm, card.gradient is not None
    if card.gradient_shape is None:
        return "None" if is_called and card.kind == "leaf" else ""
    if norm is None or 0 < norm < math.inf or 0 in card.gradient_shape:
        return ""
    faults = ("nan", "0", "inf") if is_number else ("has NaN", "all zero", "has inf")
    return faults[0] if math.isnan(norm) else faults[2] if norm else faults[1] * is_called


def _sum_facts(cards: list[Card], saved: bool) -> dict[str, Any]:
    """What the card of a folded module says of the gradients of its parameters, and of what its nodes keep."""
    leaves = [card for card in cards if card.kind == "leaf"]
    norms = [leaf.gradient_norm for leaf in leaves if leaf.gradient_norm is not None]
    faults = Counter(leaf.alarm for leaf in leaves if leaf.alarm)
    kept = _join_memory(card for card in cards if card.kind == "function")
    facts: dict[str, Any] = {"gradient_norm": math.hypot(*norms)} if norms else {}
    said = ", ".join(f"{fault} in {count}" for fault, count in faults.items())
    facts |= {"alarm": f"{said} of {len(leaves)}"} if said else {}
    return facts | ({"saved": (format_bytes(sum(kept.values())),)} if saved and kept else {})


class Scale:
    """Five tints for the norms of gradients, in equal steps of the logarithm, each a factor of 3 at least."""

    def __init__(self, graph: Graph) -> None:
        norms = [one.gradient_norm for one in graph.cards if one.gradient_norm and math.isfinite(one.gradient_norm)]
        self.least, self.most = min(norms, default=1.0), max(norms, default=1.0)
        self.step = max(math.log(3), math.log(self.most / self.least) / 4)
        # where leaves can be changed, tints would be those of other numbers
        self.is_shown = self.least < self.most and not graph.program

    def find_tint(self, norm: float | None) -> int:
        """From 1 to 5; 0 for no tint."""
        if not self.is_shown or not norm or not math.isfinite(norm):
            return 0
        return min(5, max(1, 5 - round(math.log(self.most / norm) / self.step)))

    def write_legend(self) -> str:
        """As HTML: all tints, between the least and the largest norm."""
        swatch = '<svg class="graph graph-scale" viewBox="0 0 26 16"><g class="g-card g-tint-{}"><rect {}/></g></svg>'
        place = 'x="1" y="1" width="24" height="14" rx="3"'
        swatches = "".join(swatch.format(tint, place) for tint in range(self.find_tint(self.least), 6))
        return f"Norm of the gradient: {format_number(self.least)} {swatches} {format_number(self.most)}"


# -- The figure -----------------------------------------------------------------------------------


class Figure:
    """The drawing of a backward graph: the last line of a notebook's cell shows it, ``print`` prints its table.

    ``graph`` is the whole graph as data, ``shown`` what the drawing shows of it, ``notes`` are sentences about it.
    """

    def __init__(
        self, graph: Graph, name: str, notes: list[str], depth: int | None, saved: bool, modules: list[str]
    ) -> None:
        self.graph, self.notes, self.saved = graph, notes, saved
        self.title = f"Backward graph of {name}" if name else "Backward graph"
        is_large = len(graph.cards) > READABLE and depth is not None and not graph.left_out
        self.modules = find_modules(graph, modules) if is_large else {}
        at = {card.key: card for card in graph.cards}
        self.facts = {path: _sum_facts([at[key] for key in keys], saved) for path, keys in self.modules.items()}
        self.scale, shown = Scale(graph), graph
        for level in range(depth if self.modules else -1, -1, -1):
            if (shown := fold_modules(graph, self.modules, level)) is not graph:
                break
        self.shown = self._mark_cards(graph if graph.left_out else fold_graph(shown))
        if left := self.shown.left_out:
            more = "or more " if graph.left_out else ""
            said = f"This graph is too large to draw: {left:,} {more}nodes far from the result are left out."
            self.notes = [said, *notes]

    def __repr__(self) -> str:
        return f"<{self.title}: {len(self.shown.cards)} cards>"

    def __str__(self) -> str:
        rows = [TITLES, *describe_graph(self.shown)]
        widths = [min(60, max(map(len, column))) for column in zip(*rows, strict=True)]
        lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
        return "\n".join([self.title, *lines, *self.notes])

    def _repr_html_(self) -> str:
        page, frame = self._write_page(), "width: 100%; border: 0"
        high = re.search(r' height="(\d+)"', self.drawn_svg)
        style = f"{frame}; height: {int(high[1]) + 190 + 24 * len(self.notes)}px"  # until its script has measured it
        return f'<iframe title="{escape(self.title)}" style="{style}" srcdoc="{escape(page)}"></iframe>'

    def save(self, path: str | Path) -> None:
        """Write the figure to a file: ``.svg``, ``.png``, ``.html`` with the player, or ``.dot``, the text for Graphviz.

        :raises ValueError: if the name of the file ends otherwise.
        """
        path = Path(path)
        writers = {".svg": self._write_svg, ".html": self._write_page, ".dot": self._write_dot}
        if (suffix := path.suffix.lower()) in writers:
            path.write_text(writers[suffix](), encoding="utf-8")
        elif suffix == ".png":
            drawing = pygraphviz.AGraph(string=self._write_dot())
            drawing.graph_attr["dpi"] = "192"
            drawing.draw(str(path), format="png", prog="dot")
        else:
            raise ValueError(f"a figure is saved as .svg, .png, .html or .dot, not as {suffix!r}")

    @cached_property
    def drawn_svg(self) -> str:
        """The drawing as an element ``<svg>``, for a page that has the rules of ``web/graph.css`` and ``frame/marks.css``."""
        return draw_graph(self.shown, label=self.title, show_saved=self.saved)

    def _mark_cards(self, graph: Graph, around: str = "") -> Graph:
        """The cards with tints; those of modules, whose names go on from ``around``, with all their facts."""
        marked = [replace(card, **self.facts.get(_read_path(card, around), {})) for card in graph.cards]
        cards = (replace(card, tint=self.scale.find_tint(card.gradient_norm)) for card in marked)
        return replace(graph, cards=tuple(cards))

    def _list_insides(self, graph: Graph, around: str = "") -> str:
        """A drawing of the inside of each folded module, folded away, and of those in it."""
        parts = []
        for card in graph.cards:
            if (path := _read_path(card, around)) in self.modules:
                inside = self._mark_cards(fold_graph(open_module(self.graph, self.modules, path)), f"{path}.")
                svg = draw_graph(inside, label=f"Inside of {path}", show_saved=self.saved)
                summary = f"<summary>Inside of <code>{escape(path)}</code>: {escape(card.operation)}</summary>"
                scroll = f'<div class="graph-scroll">{svg}</div>'
                parts.append(f"<details>{summary}{scroll}{self._list_insides(inside, f'{path}.')}</details>")
        return "".join(parts)

    def _write_page(self) -> str:
        """The figure as a whole page, with its style sheets and scripts."""
        sheets = ("graph.css", "marks.css", "graph_player.css", "graph_live.css", "figure.css")
        live = ["graph_live.js.jinja"] if self.shown.program else []
        scripts = _read_files("figure.js", "upright.js", "graph_player.js", *live)
        legend = [self.scale.write_legend()] if self.scale.is_shown else []
        nodes = sum(card.kind == "function" for card in self.graph.cards)
        count = "" if self.graph.left_out else f": {nodes:,} node{'s' * (nodes != 1)}"
        notes = [f"{escape(self.title)}{count}.", *legend, *map(escape, self.notes)]
        rows = ["".join(f"<td>{escape(cell)}</td>" for cell in row) for row in describe_graph(self.shown)]
        rows.insert(0, "".join(f"<th>{title}</th>" for title in TITLES))
        return Template(_read_files("page.html")).substitute(
            title=escape(self.title),
            styles=_read_files(*sheets),
            svg=self.drawn_svg,
            player=write_player("graph", describe_play(self.shown, {})),
            notes="".join(f"<p{' class=graph-alarm' * note.startswith('✗')}>{note}</p>" for note in notes),
            insides=self._list_insides(self.shown),
            table=f"<table>{''.join(f'<tr>{row}</tr>' for row in rows)}</table>",
            scripts=scripts.replace("{{ graph_rules }}", write_javascript()),
        )

    def _write_svg(self) -> str:
        """The drawing with the colors of a light page in it, as programs want it that know no variables."""
        colors, rules = _read_colors()
        drawing = re.sub(r' (data-upright|style)="[^"]*"', "", self.drawn_svg)
        begin, _, rest = drawing.partition(">")
        paper = f'<rect x="-2" y="-2" width="100%" height="100%" fill="{colors["--g-card"]}"/>'
        return f"{begin}><style>{rules}</style>{paper}{rest}"

    def _write_dot(self) -> str:
        """The text for Graphviz, with names, values and colors."""
        colors, _rules = _read_colors()
        font = 'fontname="DejaVu Sans Mono,Menlo,Consolas,monospace"'
        lines = ["digraph {", f"rankdir={'TB' if 'graph-upright' in self.drawn_svg else 'LR'}"]
        lines.append(f'node [shape=box style="rounded,filled" {font} fontsize=12]')
        lines.append(f'edge [{font} fontsize=11 color="{colors["--g-line"]}" fontcolor="{colors["--g-warm"]}"]')
        for card in self.shown.cards:
            kind = "-root" if card.is_root else "-leaf" if card.kind in ("leaf", "accumulate") else ""
            fill = f"--g-tint-{card.tint}" if card.tint else f"--g{kind or '-card'}"
            line = "--g-alarm" if card.alarm else f"--g{kind}-line"
            look = f'fillcolor="{colors[fill]}" color="{colors[line]}"{" penwidth=2" if card.alarm else ""}'
            look += ' style="rounded,filled,dashed"' if card.kind in ("folded", "constant", "accumulate") else ""
            rows = write_lines(card, show_saved=self.saved, is_live=False)
            colored = (" ".join(_color_text(role, text, colors, card.tint) for role, text in row) for row in rows)
            said = "".join(f'{row}<br align="left"/>' for row in colored)
            lines.append(f"n{card.key} [{look} label=<{said}>]")
        lines += [f'n{edge.tail} -> n{edge.head} [label="{write_factor(edge)}"]' for edge in self.shown.edges]
        return "\n".join([*lines, "}", ""])


def _color_text(role: str, text: str, colors: Mapping[str, str], tint: int) -> str:
    """A text on a card as Graphviz has it."""
    said = f"<b>{escape(text)}</b>" if role == "name" or "alarm" in role else escape(text)
    color = "--g-alarm" if "alarm" in role else "--g-warm" if "gradient" in role else "--g-muted"
    return said if tint or role in ("name", "value", "numbers") else f'<font color="{colors[color]}">{said}</font>'


def _read_path(card: Card, around: str) -> str:
    """The path of the module that is folded in a card."""
    return f"{around}{card.names[0]}" if card.kind == "folded" and card.names else ""


def _read_files(*names: str) -> str:
    return "".join(next(_HERE.glob(f"*/{name}")).read_text(encoding="utf-8") for name in names)


def _read_colors() -> tuple[dict[str, str], str]:
    """The colors of a drawing on a light page, by the names of their variables, and its rules with these colors in them."""
    styles = _read_files("graph.css", "marks.css")
    colors = dict(re.findall(r"(--g-[\w-]+): light-dark\(([^,]+),", styles))
    rules = re.sub(r"--g-[\w-]+: [^;]+;", "", re.sub(r"var\(--font[\w-]+, ([^)]+)\)", r"\1", styles))
    return colors, re.sub(r"var\((--g-[\w-]+)\)", lambda found: colors[found[1]], rules)
