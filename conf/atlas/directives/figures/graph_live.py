"""What a graph figure says when the reader changes a leaf: places for numbers in its sentences and notes.

``graph_live.js`` computes the numbers, with the rules that ``graphs.javascript`` writes. Sphinx puts them into the script,
whose source is ``conf/static/graph_live.js.jinja``.
"""

from __future__ import annotations

from typing import Any

from sphinx.application import Sphinx
from sphinx.config import Config

from graphs.javascript import functions

#: With what a place for a number begins in a text of ``graphs.live_data``.
PLACE = "\N{MATHEMATICAL LEFT WHITE SQUARE BRACKET}"


def line(data: dict[str, Any]) -> str:
    """Below a figure, whose numbers are shown, and the way back to PyTorch's; nothing if no leaf can be changed."""
    if "live" not in data:
        return ""
    back = "Back to PyTorch\N{RIGHT SINGLE QUOTATION MARK}s numbers"
    return (
        f'<p class="graph-whose"><span aria-live="polite">{_as_computed()}</span> '
        f'<button type="button" hidden>{back}</button></p>'
    )


def _as_computed() -> str:
    return "Numbers as PyTorch computed them. Drag one of a leaf, or press an arrow key on it: the rest follows."


def said(
    live: dict[str, Any], shown: dict[str, Any], moments: list[dict[str, Any]], notes: dict[str, list[list[str]]]
) -> dict[str, Any]:
    """What the script needs.

    :param live: as ``graphs.figure_data`` returns it.
    :param shown: the steps and notes of the figure as it is.
    :param moments: its steps with places, and ``notes`` with places. Only what has a place is given on.
    """
    constants = any(one[0] == "constant" for one in live["nodes"].values())
    return {
        **{name: live[name] for name in ("float32", "nodes", "start", "backward", "edges")},
        "terms": {key: card["terms"] for key, card in live["cards"].items() if "terms" in card},
        "gradients": [key for key, card in live["cards"].items() if "gradient" in card],
        "values": [key for key, card in live["cards"].items() if card.get("value", "").startswith(PLACE)],
        "leaves": {key: str(f"Value of {name}") for key, name in live["leaves"].items()},
        "texts": {at: step["text"] for at, step in enumerate(moments) if PLACE in step["text"]},
        "moved": {at: step["moved"] for at, step in enumerate(moments) if "moved" in step},
        "got": {at: step["got"] for at, step in enumerate(moments) if step.get("got")},
        "notes": {
            key: {
                place: new[1]
                for place, (old, new) in enumerate(zip(shown["cards"][key], note, strict=True))
                if old != new
            }
            for key, note in notes.items()
        },
        "here": _computed_here(live["roots"], constants=constants),
        "drag": "drag me",
    }


def _computed_here(roots: list[str], *, constants: bool) -> str:
    found = "Computed in your browser: {}.".format(", ".join(roots)) if roots else "Computed in your browser."
    return " ".join([found, *(["Constants stay as they are."] if constants else [])])


def give_rules(app: Sphinx, config: Config) -> None:
    """Connected to ``config-inited``: Sphinx fills the templates among the static files with this."""
    config.html_context["graph_rules"] = functions()


def setup(app: Sphinx) -> None:
    app.connect("config-inited", give_rules)
