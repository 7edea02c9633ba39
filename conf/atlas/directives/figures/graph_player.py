"""What a graph figure says when it is stepped through: a sentence for each step, and the facts of each card.

``graph_player.js`` shows it. Here are the words, so that they can be translated, and nothing is said that the run did not say.
"""

from __future__ import annotations

import html
from typing import Any

from atlas.toolbox import json_for_script

from . import graph_live

LISTED = 6  # names in one sentence
_CHAIN = "M6.5 9.5a2.8 2.8 0 0 0 4 0l2-2a2.8 2.8 0 0 0-4-4l-1 1M9.5 6.5a2.8 2.8 0 0 0-4 0l-2 2a2.8 2.8 0 0 0 4 4l1-1"


def player(name: str, data: dict[str, Any]) -> str:
    """The controls below a figure, and the data for them, as HTML. Without JavaScript ``graph_player.css`` hides it.

    Nothing for a drawing that does not say what its graph is.

    :param name: the figure's id; a link to it leads to the figure, and ``#NAME.STEP`` to a step.
    :param data: as ``graphs.figure_data`` returns it.
    """
    if not data["steps"]:
        return ""
    sentences = [*map(sentence, data["steps"]), ""]
    last = len(sentences) - 1
    with_keys = "The whole graph. Play it, or step with the arrow keys."
    with_touch = "The whole graph. Play it, or step through it with the buttons."
    buttons = {
        "play": ("Play", '<path d="M4 2.5v11l9-5.5z"/>'),
        "back": ("One step back", '<path d="M10.5 3 5.5 8l5 5" class="g-stroke"/>'),
        "next": ("One step on", '<path d="m5.5 3 5 5-5 5" class="g-stroke"/>'),
        "less": ("Smaller", '<path d="M3 8h10" class="g-stroke"/>'),
        "more": ("Larger", '<path d="M3 8h10M8 3v10" class="g-stroke"/>'),
    }
    chain = f'<path d="{_CHAIN}" class="g-stroke"/>'
    link, speed = "Link to this step", "Speed: {}".format("1×")
    play, back, on, less, more = (_button(kind, *button) for kind, button in buttons.items())
    notes = {key: _note(card) for key, card in data["cards"].items()}
    words = {"pause": "Pause", "value": "value", "gradient": "gradient", "saved": "saved"}
    said = {"name": name, "steps": _moments(data, sentences), "cards": notes}
    said["words"] = {key: str(word) for key, word in words.items()}
    if "live" in data:
        live = data["live"]
        texts = list(map(sentence, live["steps"]))
        changed = {key: _note(card | live["cards"][key]) for key, card in data["cards"].items()}
        said["live"] = graph_live.said(live, said, _moments(live, [*texts, ""]), changed)
    return (
        f'<div class="graph-bar" role="group" aria-label="{"Step through the graph"}">{play}{back}'
        f'<input type="range" min="0" max="{last}" value="{last}" aria-label="{"Step"}">{on}'
        f'<a class="graph-link" href="#{name}" aria-label="{link}" title="{link}">{_icon(chain)}</a>'
        f'<button type="button" class="graph-speed" aria-label="{speed}" title="{speed}">1×</button>'
        f'<span class="graph-zoom">{less}{more}</span></div>'
        f'<p class="graph-now" aria-live="polite"><span class="graph-keys">{html.escape(with_keys)}</span>'
        f'<span class="graph-touch">{html.escape(with_touch)}</span></p>{graph_live.line(data)}{json_for_script(said)}'
    )


def _button(kind: str, words: str, drawing: str) -> str:
    return (
        f'<button type="button" class="graph-{kind}" aria-label="{words}" title="{words}">{_icon(drawing)}</button>'
    )


def _icon(drawing: str) -> str:
    return f'<svg viewBox="0 0 16 16" width="16" height="16" aria-hidden="true">{drawing}</svg>'


# -- Sentences ------------------------------------------------------------------------------------


def sentence(step: dict[str, Any]) -> str:
    """What happens in a step.

    >>> sentence({"kind": "compute", "who": "LogBackward0", "what": "y = 1.7918"})
    'Forward: y = 1.7918, recorded as LogBackward0.'
    >>> sentence({"kind": "keep", "who": "x", "what": "−1.7268"})
    'Backward: AccumulateGrad adds what has arrived to x.grad: −1.7268.'
    """
    kind, what = step["kind"], step.get("what")
    if kind == "leaves":
        return f"Before the first operation: {_listed(what)}." if what else "Before the first operation."
    if kind == "compute":
        if what:
            return "Forward: {what}, recorded as {who}.".format(**step)
        return "Forward: a result without a name, recorded as {who}.".format(**step)
    if kind == "start":
        if what:
            return "Backward starts at {who}, with the gradient {what}.".format(**step)
        return "Backward starts at {who}.".format(**step)
    if kind == "keep":
        if what:
            return "Backward: AccumulateGrad adds what has arrived to {who}.grad: {what}.".format(**step)
        return "Backward: AccumulateGrad adds what has arrived to {who}.grad.".format(**step)
    return " ".join([_sent(step), *map(_added, step["sums"])])


def _sent(step: dict[str, Any]) -> str:
    if not step["to"]:
        return "Backward: {who} has nothing to send on.".format(**step)
    if any(number is None for _name, number in step["to"]):
        names = _listed(list(dict.fromkeys(name for name, _number in step["to"])))
        return "Backward: {who} sends a gradient to {names}.".format(who=step["who"], names=names)
    parts = [f"{number} to {name}" for name, number in step["to"]]
    return "Backward: {who} sends {parts}.".format(who=step["who"], parts=_listed(parts))


def _added(found: list[Any]) -> str:
    name, count, terms = found
    if terms:
        return f"At {name} they add up: {terms}."
    return f"At {name}, {count} have arrived and are added."


def _listed(parts: list[str]) -> str:
    return ", ".join([*parts[:LISTED], *(["…"] if len(parts) > LISTED else [])])


# -- What the script needs ------------------------------------------------------------------------


def _moments(data: dict[str, Any], sentences: list[str]) -> list[dict[str, Any]]:
    """For each step its sentence, what it lights up, and what the cards that it changes have received until then."""
    moments = []
    for step, text in zip(data["steps"], sentences, strict=False):
        moment = {"text": text, "cards": step["cards"], "edges": step["edges"], "kind": step["kind"]}
        if "arrived" in step:
            moment["got"] = {key: total or "" for key, total in step["arrived"].items()}
        numbers = [number for _name, number in step.get("to", [])]
        if numbers and None not in numbers:
            moment["moved"] = numbers
        moments.append(moment)
    return [*moments, {"text": sentences[-1], "cards": [], "edges": [], "kind": "whole"}]


def _note(card: dict[str, Any]) -> list[list[str]]:
    """The lines of a card's note: what each says, and the code in it.

    >>> _note({"name": "y", "kind": "function", "node": "SinBackward0", "sends": [["x", "grad * cos(x)"]]})
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
    return [[str(title), text] for title, text in facts if text]
