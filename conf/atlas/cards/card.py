"""A card: a picture, a link that covers all of it, a sentence, and a line of small print. The same on all pages."""

from __future__ import annotations

import re
from collections.abc import Iterable

from docutils import nodes

from .facts import Facts

_CODE = re.compile(r"`([^`]*)`")


def card(link: nodes.reference, facts: Facts | None, small: Iterable[nodes.Node]) -> nodes.list_item:
    """One item of a list of cards.

    :param facts: of the page that it leads to; None where there is nothing to say or to show.
    :param small: the last line.
    """
    made = nodes.list_item(classes=["card"])
    if facts:
        # what varies is left out where two builds are compared
        kinds = ["picture", facts.look, *(["varies"] if facts.varies else [])]
        made += nodes.raw("", f'<div class="{" ".join(filter(None, kinds))}">{facts.picture}</div>', format="html")
    made += _words(link, facts, small)
    return made


def item(link: nodes.reference, facts: Facts, small: Iterable[nodes.Node]) -> nodes.list_item:
    """What a card says, without its picture: one item of a list that is read from its first line to its last."""
    return nodes.list_item("", *_words(link, facts, small))


def _words(link: nodes.reference, facts: Facts | None, small: Iterable[nodes.Node]) -> list[nodes.Node]:
    answer = [nodes.paragraph("", "", *_marked(facts.answer), classes=["card-answer"])] if facts else []
    return [
        nodes.paragraph("", "", link, classes=["card-title"]),
        *answer,
        nodes.paragraph("", "", *small, classes=["card-small"]),
    ]


def _marked(said: str) -> Iterable[nodes.Node]:
    """Text with code between backticks, as nodes."""
    for number, part in enumerate(_CODE.split(said)):
        if part:
            yield nodes.literal("", part) if number % 2 else nodes.Text(part)
