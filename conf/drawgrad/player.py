"""What a graph figure says when it is stepped through: a sentence for each step, the facts of each card, and the controls.

``graph_player.js`` shows it, and nothing is said that the run did not say. Where a leaf can be changed, ``graph_live.js``
computes the numbers that follow, with the rules of ``drawgrad.rules``: Sphinx puts them into the script, whose source is
``conf/drawgrad/web/graph_live.js.jinja``.
"""

from __future__ import annotations

import json
from typing import Any

LISTED = 6  # names in one sentence
#: With what a place for a number begins in a text of ``drawgrad.play``.
PLACE = "\N{MATHEMATICAL LEFT WHITE SQUARE BRACKET}"
_AS_COMPUTED = "The numbers are PyTorch’s. Change one on a leaf, and the others follow."
_CHAIN = "M6.5 9.5a2.8 2.8 0 0 0 4 0l2-2a2.8 2.8 0 0 0-4-4l-1 1M9.5 6.5a2.8 2.8 0 0 0-4 0l-2 2a2.8 2.8 0 0 0 4 4l1-1"
_BUTTONS = {
    "play": ("Play", '<path d="M4 2.5v11l9-5.5z"/>'),
    "back": ("One step back", '<path d="M10.5 3 5.5 8l5 5" class="g-stroke"/>'),
    "next": ("One step on", '<path d="m5.5 3 5 5-5 5" class="g-stroke"/>'),
}


def write_player(name: str, data: dict[str, Any]) -> str:
    """The controls below a figure, and the data for them, as HTML. Without JavaScript ``graph_player.css`` hides it.

    :param name: the figure's id; a link to it leads to the figure, and ``#NAME.STEP`` to a step.
    :param data: as ``drawgrad.play.describe_play`` returns it.
    """
    last = len(data["steps"])
    play, back, on = (
        f'<button type="button" class="graph-{kind}" aria-label="{words}" title="{words}">{_draw_icon(drawing)}</button>'
        for kind, (words, drawing) in _BUTTONS.items()
    )
    chain = _draw_icon(f'<path d="{_CHAIN}" class="g-stroke"/>')
    said = {
        "name": name,
        "steps": _list_moments(data),
        "cards": {key: _list_facts(card) for key, card in data["cards"].items()},
        "words": {"pause": "Pause", "value": "value", "gradient": "gradient", "saved": "saved"},
    }
    whose = ""
    if "live" in data:
        said["live"] = _describe_changes(data, said)
        button = '<button type="button" hidden>Back to PyTorch’s numbers</button>'
        whose = f'<p class="graph-whose"><span aria-live="polite">{_AS_COMPUTED}</span> {button}</p>'
    return (
        f'<div class="graph-bar" role="group" aria-label="Step through the graph">{play}{back}'
        f'<input type="range" min="0" max="{last}" value="{last}" aria-label="Step">{on}'
        f'<a class="graph-link" href="#{name}" aria-label="Link to this step" title="Link to this step">{chain}</a></div>'
        '<p class="graph-now" aria-live="polite">'
        "The whole graph. Play it, or step with the buttons<span class='graph-keys'> or the arrow keys</span>.</p>"
        f"{whose}{json_for_script(said)}"
    )


def _draw_icon(drawing: str) -> str:
    return f'<svg viewBox="0 0 16 16" width="16" height="16" aria-hidden="true">{drawing}</svg>'


def _list_moments(data: dict[str, Any]) -> list[dict[str, Any]]:
    """For each step its sentence, what it lights up, and what the cards that it changes have received until then."""
    moments = []
    for step in data["steps"]:
        moment = {"text": write_sentence(step), "cards": step["cards"], "edges": step["edges"], "kind": step["kind"]}
        if "arrived" in step:
            moment["got"] = {key: total or "" for key, total in step["arrived"].items()}
        numbers = [number for _name, number in step.get("to", [])]
        if numbers and None not in numbers:
            moment["moved"] = numbers
        moments.append(moment)
    return [*moments, {"text": "", "cards": [], "edges": [], "kind": "whole"}]


def _list_facts(card: dict[str, Any]) -> list[list[str]]:
    """The lines of a card's note: what each says, and the code in it.

    >>> _list_facts({"name": "y", "kind": "function", "node": "SinBackward0", "sends": [["x", "grad * cos(x)"]]})
    [['', 'y'], ['node', 'SinBackward0'], ['sends to x', 'grad * cos(x)']]
    """
    titles = {"leaf": "a leaf", "constant": "needs no gradient", "folded": "folded"}
    facts = [
        [titles.get(card["kind"], ""), card["name"]],
        ["node", card.get("node", "")],
        ["made by", card.get("line", "")],
        ["value", card.get("value", "")],
        ["gradient", card.get("gradient", "")],
        ["saved", ", ".join(card.get("saved", []))],
        *([f"sends to {name}", rule] for name, rule in card.get("sends", [])),
    ]
    return [[title, text] for title, text in facts if text]


# -- Sentences ------------------------------------------------------------------------------------


def write_sentence(step: dict[str, Any]) -> str:
    """What happens in a step.

    >>> write_sentence({"kind": "compute", "who": "LogBackward0", "what": "y = 1.7918"})
    'Forward: y = 1.7918, recorded as LogBackward0.'
    >>> write_sentence({"kind": "keep", "who": "x", "what": "−1.7268"})
    'Backward: AccumulateGrad adds what has arrived to x.grad: −1.7268.'
    """
    who, what = step.get("who"), step.get("what")
    match step["kind"]:
        case "leaves":
            return f"Before the first operation: {_list_some(what)}." if what else "Before the first operation."
        case "compute":
            return f"Forward: {what or 'a result without a name'}, recorded as {who}."
        case "start":
            return f"Backward starts at {who}, with the gradient {what}." if what else f"Backward starts at {who}."
        case "keep":
            return f"Backward: AccumulateGrad adds what has arrived to {who}.grad{f': {what}' if what else ''}."
    sums = (
        f"At {name} they add up: {terms}." if terms else f"At {name}, {count} have arrived and are added."
        for name, count, terms in step["sums"]
    )
    return " ".join([_write_sent(step), *sums])


def _write_sent(step: dict[str, Any]) -> str:
    who, to = step["who"], step["to"]
    if not to:
        return f"Backward: {who} has nothing to send on."
    if any(number is None for _name, number in to):
        return f"Backward: {who} sends a gradient to {_list_some(list(dict.fromkeys(name for name, _number in to)))}."
    return f"Backward: {who} sends {_list_some([f'{number} to {name}' for name, number in to])}."


def _list_some(parts: list[str]) -> str:
    return ", ".join([*parts[:LISTED], *(["…"] if len(parts) > LISTED else [])])


# -- When a leaf is changed -----------------------------------------------------------------------


def _describe_changes(data: dict[str, Any], said: dict[str, Any]) -> dict[str, Any]:
    """What ``graph_live.js`` needs: how to compute the numbers, and of sentences and notes those with places for them.

    :param said: the steps and notes of the figure as it is.
    """
    live = data["live"]
    moments = _list_moments(live)
    now = {key: _list_facts(card | live["cards"][key]) for key, card in data["cards"].items()}
    both = {key: enumerate(zip(said["cards"][key], note, strict=True)) for key, note in now.items()}
    found = f"Computed in your browser: {', '.join(live['roots'])}." if live["roots"] else "Computed in your browser."
    constants = any(one[0] == "constant" for one in live["nodes"].values())
    return {
        **{name: live[name] for name in ("float32", "nodes", "start", "backward", "edges")},
        "terms": {key: card["terms"] for key, card in live["cards"].items() if "terms" in card},
        "gradients": [key for key, card in live["cards"].items() if "gradient" in card],
        "values": [key for key, card in live["cards"].items() if card.get("value", "").startswith(PLACE)],
        "leaves": {key: f"Value of {name}" for key, name in live["leaves"].items()},
        "texts": {at: step["text"] for at, step in enumerate(moments) if PLACE in step["text"]},
        "moved": {at: step["moved"] for at, step in enumerate(moments) if "moved" in step},
        "got": {at: step["got"] for at, step in enumerate(moments) if step.get("got")},
        "notes": {key: {at: new[1] for at, (old, new) in pairs if old != new} for key, pairs in both.items()},
        "here": f"{found} Constants stay as they are." if constants else found,
    }


def json_for_script(data: dict[str, Any]) -> str:
    """Data for a script of a page, as JSON in an element that the script reads.

    >>> json_for_script({"end": "</script>"})
    '<script type="application/json">{"end":"\\\\u003c/script>"}</script>'
    """
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    return f'<script type="application/json">{text}</script>'
