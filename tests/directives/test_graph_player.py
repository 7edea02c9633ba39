"""What a graph figure says at each step and of each card, and that it says it safely."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from bs4 import BeautifulSoup

from atlas.directives.figures.graph_player import player, sentence

Page = Callable[[str], BeautifulSoup]


def said(html: str) -> dict[str, Any]:
    return json.loads(BeautifulSoup(html, "html.parser").script.string)


@pytest.fixture
def figure(page: Page) -> BeautifulSoup:
    return page("graph_of_a_product").select_one("figure.graph-figure")


def test_each_step_has_a_sentence(figure: BeautifulSoup) -> None:
    steps = json.loads(figure.script.string)["steps"]
    assert [step["text"] for step in steps[:4]] == [
        "Before the first operation: w = 2, x = 3.",
        "Forward: y = 6, recorded as MulBackward0.",
        "Backward starts at y, with the gradient 1.",
        "Backward: MulBackward0 (y) sends a gradient to w, x.",
    ]
    assert steps[4]["text"].startswith("Backward: AccumulateGrad adds what has arrived to w.grad")
    assert steps[-1]["kind"] == "whole" and len(steps) == 7


def test_each_card_has_a_note(figure: BeautifulSoup) -> None:
    cards = json.loads(figure.script.string)["cards"]
    notes = {note[0][1]: dict(note[1:]) for note in cards.values()}
    assert notes["w"] == {"made by": "w = torch.tensor(2.0, requires_grad=True)", "value": "2", "gradient": "3"}
    assert notes["y"]["made by"] == "y = w * x" and notes["y"]["sends to w"] == "grad * x"


@pytest.mark.parametrize(("numbers", "moved"), [(["0.5", "−2"], ["0.5", "−2"]), (["0.5", None], None), ([], None)])
def test_a_step_brings_the_number_of_each_edge_if_all_are_known(
    numbers: list[str | None], moved: list[str] | None
) -> None:
    send = {
        "kind": "send",
        "who": "F",
        "cards": [0],
        "edges": [0, 1],
        "to": [["x", number] for number in numbers],
        "sums": [],
    }
    cards = {"0": {"name": "x", "kind": "leaf"}}
    assert said(player("graph-1", {"cards": cards, "steps": [send]}))["steps"][0].get("moved") == moved


def test_the_figure_has_an_id_for_links(figure: BeautifulSoup) -> None:
    (div,) = figure.find_all("div", id=True, recursive=False)
    assert div["id"] == "graph-graph-of-a-product-1"
    assert figure.select_one(".graph-link")["href"] == "#graph-graph-of-a-product-1"


def test_a_repeated_figure_can_be_played_too(page: Page) -> None:
    (figure,) = page("guide").select("figure.graph-figure")
    assert figure.select_one(".graph-bar input")["max"] == "6"


def test_the_controls_have_names(figure: BeautifulSoup) -> None:
    for control in figure.select(".graph-bar :is(button, input, a)"):
        assert control.get("aria-label")


def test_a_line_cannot_end_the_script() -> None:
    line = 'x = "</script><b>"'
    data = {
        "cards": {"0": {"name": "x", "kind": "leaf", "line": line}},
        "steps": [{"kind": "leaves", "cards": [0], "edges": [], "what": ["x"]}],
    }
    assert ["made by", line] in said(player("graph-1", data))["cards"]["0"]


def test_a_drawing_without_data_has_no_controls() -> None:
    assert player("graph-1", {"rows": [], "left_out": 0, "cards": {}, "steps": []}) == ""


@pytest.mark.parametrize(
    ("step", "text"),
    [
        ({"kind": "compute", "who": "ExpBackward0", "what": ""}, "Forward: a result without a name, recorded as ExpBackward0."),
        ({"kind": "start", "who": "y"}, "Backward starts at y."),
        ({"kind": "keep", "who": "x"}, "Backward: AccumulateGrad adds what has arrived to x.grad."),
        ({"kind": "send", "who": "F (y)", "to": [], "sums": []}, "Backward: F (y) has nothing to send on."),
        (
            {"kind": "send", "who": "F (y)", "to": [["a", "2"], ["b", "3"]], "sums": [["b", 2, "1 + 3 = 4"]]},
            "Backward: F (y) sends 2 to a, 3 to b. At b they add up: 1 + 3 = 4.",
        ),
        (
            {"kind": "send", "who": "F (y)", "to": [["a", None], ["a", None]], "sums": [["a", 2, None]]},
            "Backward: F (y) sends a gradient to a. At a, 2 have arrived and are added.",
        ),
        ({"kind": "leaves", "what": list("abcdefgh")}, "Before the first operation: a, b, c, d, e, f, …."),
    ],
)  # fmt: skip
def test_sentences(step: dict[str, Any], text: str) -> None:
    assert sentence(step) == text
