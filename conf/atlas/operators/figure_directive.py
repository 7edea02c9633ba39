"""The directive ``operator-figure``: all rows of the operators as one drawing: what they keep, what a change does to them.

matplotlib is imported where it draws: a build that does not draw does without the half second that it takes.
"""

from __future__ import annotations

import io
from collections import Counter
from typing import TYPE_CHECKING, Any

from docutils import nodes
from sphinx.application import Sphinx

from atlas.directives.figures.plot_figure import Plot

from .report import OUTCOMES
from .table_directive import rows_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INK, BLUE = "#1e293b", "#2563eb"


class OperatorFigure(Plot):
    """``{operator-figure}`` with ``:alt:``."""

    def run(self) -> list[nodes.Node]:
        return self.shown("operators-in-numbers", draw(rows_of(self)))


def draw(rows: list[dict[str, Any]]) -> str:
    """An SVG document with two panels of bars.

    :param rows: as ``atlas.operators.report.load`` returns them.
    """
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    from atlas.gallery.scrapers import STYLE

    with rc_context(fname=STYLE):
        figure = Figure(figsize=(7, 3.4), layout="constrained")
        left, right = figure.subplots(1, 2)
        _kept(left, Counter(" + ".join(row["saves"]) or "nothing" for row in rows))
        _changed(right, {what: Counter(row[f"{what}_changed"] for row in rows) for what in ("output", "input")})
        svg = io.StringIO()
        figure.savefig(svg, format="svg", metadata={"Date": None})
    return svg.getvalue()


def _kept(axes: Axes, counts: Counter[str]) -> None:
    names = sorted(counts, key=lambda name: (-counts[name], name))
    bars = axes.barh(names, [counts[name] for name in names], color=BLUE)
    axes.bar_label(bars, padding=3, color=INK)
    axes.set(title="Kept for backward", xlabel="operators", xlim=(0, 1.15 * max(counts.values())))
    axes.invert_yaxis()


def _changed(axes: Axes, counts: dict[str, Counter[str]]) -> None:
    height = 0.4
    looks = {"output": {"color": BLUE}, "input": {"facecolor": "white", "edgecolor": BLUE, "linewidth": 1}}
    words = {"output": "result", "input": "input"}
    for side, what in ((-0.5, "output"), (0.5, "input")):
        numbers = [counts[what][outcome] for outcome in OUTCOMES]
        places = [place + side * height for place in range(len(OUTCOMES))]
        bars = axes.barh(places, numbers, height=0.85 * height, **looks[what])
        axes.bar_label(bars, [f"{number} {words[what]}" for number in numbers], padding=3, color=INK)
    widest = max(max(of.values()) for of in counts.values())
    axes.set(title="Backward after a change", xlabel="operators", xlim=(0, 1.45 * widest))
    axes.set(yticks=range(len(OUTCOMES)), yticklabels=OUTCOMES)
    axes.invert_yaxis()


def setup(app: Sphinx) -> None:
    app.add_directive("operator-figure", OperatorFigure)
