"""What the page "Type an expression" makes of a text is what PyTorch makes of the program that the page shows."""

from __future__ import annotations

import json
import random
import re
import tomllib
from dataclasses import replace
from typing import Any

import pytest
import torch

from drawgrad.model import Graph
from drawgrad.play import describe_play
from drawgrad.player import write_player
from drawgrad.read import read_graph
from live_script import compute, engine, run
from sources import ROOT

EDGES = ["0", "-0.0", "1", "-1", "0.5", "2", "-3", "25", "-40", "1e-30", "1e30", "inf", "-inf", "nan"]
NUMBER = re.compile(r"−?\b\d+(?:\.\d+)?(?:e[+−]\d+)?\b")
TYPED = tomllib.loads((ROOT / "tests/expression/texts.toml").read_text(encoding="utf-8"))


def ask(code: str) -> Any:
    if run("globalThis.expressions === undefined"):
        engine().eval((ROOT / "docs/_static/expression/language.js").read_text(encoding="utf-8"))
    return run(f"expressions.{code}")


def build(text: str) -> dict[str, Any]:
    return ask(f"build({json.dumps(text)})")


@pytest.fixture(autouse=True)
def in_float64() -> Any:
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def execute(program: str) -> Graph:
    """Run the program, and read its graph; what backward frees is read before."""
    before, name, after = re.split(r"\n(\w+)\.backward\(\)\n", program)
    found: dict[str, Any] = {"print": lambda gradient: None}
    exec(before, found)
    tensors = {key: value for key, value in found.items() if isinstance(value, torch.Tensor)}
    read_graph({name: tensors[name]}, tensors)
    exec(f"{name}.backward()\n{after}", found)
    return read_graph({name: tensors[name]}, tensors)


def plain(graph: Graph) -> dict[str, Any]:
    """What the page has of a graph."""
    facts = [
        "key",
        "kind",
        "operation",
        "names",
        "is_root",
        "value",
        "gradient",
        "terms",
        "forward_at",
        "backward_at",
    ]
    without = {"constant": {"is_root", "forward_at", "backward_at"}, "leaf": {"forward_at"}, "function": set()}
    cards = [{fact: getattr(card, fact) for fact in facts if fact not in without[card.kind]} for card in graph.cards]
    edges = [{fact: getattr(edge, fact) for fact in ("tail", "head", "input", "derivative")} for edge in graph.edges]
    known = [[{fact: x for fact, x in one.items() if x is not None} for one in some] for some in (cards, edges)]
    return {
        "cards": [{fact: x for fact, x in card.items() if fact != "terms" or x} for card in known[0]],
        "edges": known[1],
    }


def near(found: Any, expected: Any) -> bool:
    """Whether numbers agree to six digits, those in a text to as many as it has, and all else wholly."""
    if isinstance(expected, dict):
        return found.keys() == expected.keys() and all(near(found[key], expected[key]) for key in expected)
    if isinstance(expected, (list, tuple)):
        return len(found) == len(expected) and all(map(near, found, expected))
    if isinstance(expected, str) and found != expected:
        words, numbers = zip(*((NUMBER.split(text), NUMBER.findall(text)) for text in (found, expected)), strict=True)
        pair = [[float(one.replace("−", "-")) for one in some] for some in numbers]
        return words[0] == words[1] and pair[0] == pytest.approx(pair[1], rel=2e-4, abs=2e-4)
    is_number = isinstance(expected, (int, float)) and not isinstance(expected, bool)
    return (
        float(found) == pytest.approx(expected, rel=1e-6, abs=1e-12, nan_ok=True) if is_number else found == expected
    )


def say(graph: Graph) -> dict[str, Any]:
    """What the site says of a graph, without what a node saved."""
    bare = replace(graph, cards=tuple(replace(card, saved=()) for card in graph.cards))
    return json.loads(re.search(r"<script.*?>(.*)</script>", write_player("typed", describe_play(bare, {})))[1])


def check(text: str) -> dict[str, Any]:
    built = build(text)
    graph = execute(built["program"])
    assert near(built["graph"], plain(graph)), (text, built["graph"], plain(graph))
    said, expected = dict(built["said"]), say(graph)
    live, live_expected = said.pop("live"), expected.pop("live", None)
    assert near(said, expected), text
    # to the site a detached number is a constant, and a constant is what its result tells: 1e30 + 2 tells nothing of the 2
    if live_expected and not re.search(
        "detach|where|1e30|Infinity|NaN", f"{text}{live_expected['nodes']}{live['nodes']}"
    ):
        assert near(live, live_expected), text
    leaves = [
        {"key": card.key, "name": card.names[0], "value": card.value} for card in graph.cards if card.kind == "leaf"
    ]
    assert near(built["leaves"], leaves), text
    return built


class Writer:
    """Random expressions."""

    def __init__(self, seed: int) -> None:
        self.choose = random.Random(seed)
        self.names: list[str] = []
        self.is_edgy = self.choose.random() < 0.4

    def write_number(self) -> str:
        if self.is_edgy and self.choose.random() < 0.4:
            return self.choose.choice(EDGES)
        return str(self.choose.choice([1, 2, 3, -2, 0.5, round(self.choose.uniform(-3, 3), 2)]))

    def write(self, depth: int) -> str:
        choose, one = self.choose, lambda: self.write(depth - 1)
        if depth == 0 or choose.random() < 0.15:
            return choose.choice(self.names)
        other = f"({self.write_number()})" if choose.random() < 0.3 else one()
        sides = choose.sample([f"({one()})", f"({other})"], 2)
        operator, comparison = (
            choose.choice(["+", "+", "-", "*", "*", "/", "**"]),
            choose.choice(["<", "<=", ">", ">=", "==", "!="]),
        )
        some = choose.choice([f"-{one()}", f"clamp({one()}, -1, 2)", f"clamp({one()}, 0.5)", f"({one()}).detach()"])
        where = (
            f"where({one()} {comparison} {other}, {one()}, {self.write_number() if choose.random() < 0.3 else one()})"
        )
        name = choose.choice(["abs", "exp", "log", "sin", "cos", "tanh", "sigmoid", "relu", "sqrt"])
        called = choose.choice([f"{name}({one()})", f"torch.{name}({one()})", f"({one()}).{name}()"])
        most = choose.choice([f"max({', '.join(sides)})", f"torch.min({', '.join(sides)})"])
        return choose.choice([*[operator.join(sides)] * 5, most, where, some, called, called])

    def write_text(self) -> str:
        self.names = ["x", "y", "z"][: self.choose.randint(1, 3)]
        lines = [f"{name} = {self.write_number()}" for name in self.names]
        for name in "abcd"[: self.choose.randint(1, 4)]:
            lines.append(f"{name} = {self.write(self.choose.randint(1, 2))}")
            self.names.append(name)
        return "\n".join(lines)


def write_random(seed: int) -> str:
    text = Writer(seed).write_text()
    found = build(text).get("error", {"message": ""})
    return f"{text} + x" if found["message"].startswith("This depends on no leaf") else text


@pytest.mark.parametrize("seed", range(200))
def test_a_random_expression(seed: int) -> None:
    check(write_random(seed))


@pytest.mark.parametrize("form", TYPED["forms"])
def test_a_form(form: str) -> None:
    check(f"x = 2\ny = 3\nz = -1\n{form}")


def test_each_function_is_what_pytorch_computes() -> None:
    listed = ask("FUNCTIONS")
    names = "abs clamp cos detach exp log max min relu sigmoid sin sqrt tanh where"
    assert [one["name"] for one in listed] == names.split(" ") and all(one["says"] for one in listed)
    for one in listed:
        for x, y in (("0.5", "2"), ("1", "1"), ("0", "0"), ("-2", "3"), ("inf", "nan")):
            check(f"x = {x}\ny = {y}\nw = y * x + {one['example']}")


@pytest.mark.parametrize("seed", range(60))
def test_a_changed_leaf_changes_the_figure_as_the_text_would(seed: int) -> None:
    """What is compared and detached follows too."""
    text = write_random(seed)
    live, leaves = build(text)["said"]["live"], build(text)["leaves"]
    given = {str(leaf["key"]): [number] for leaf, number in zip(leaves, [-0.7, 1.5, 2], strict=False)}
    for leaf in leaves:
        text = re.sub(
            f"^{leaf['name']} = .*$", f"{leaf['name']} = {given[str(leaf['key'])][0]}", text, flags=re.MULTILINE
        )
    found, expected = compute(live, given), check(text)["graph"]["cards"]
    for card in expected:
        for fact, numbers in (("value", found["values"]), ("gradient", found["gradients"])):
            if fact in card:
                assert near(numbers[str(card["key"])][0], float(card[fact])), text


@pytest.mark.parametrize("marked", TYPED["mistakes"])
def test_an_error_says_what_and_where(marked: str) -> None:
    text = marked.replace("«", "").replace("»", "")
    place = {"from": marked.index("«"), "to": marked.index("»") - 1}
    assert build(text) == {"error": {"message": TYPED["mistakes"][marked], **place}}


def test_the_program_is_what_a_learner_would_write() -> None:
    text = "x = 2 # a leaf\n\nb = -1/3\ny = max(x, 1) / where(x > 0, 1, b) - x.detach()\nexp(y)"
    assert build(text)["program"] == (
        "import torch\n\nx = torch.tensor(2.0, requires_grad=True)\nb = torch.tensor(-1 / 3, requires_grad=True)\n"
        "y = torch.max(x, torch.tensor(1.0)) / torch.where(x > 0, 1.0, b) - x.detach()\nresult = torch.exp(y)\n\n"
        "result.backward()\nprint(x.grad)\nprint(b.grad)\n"
    )


def test_exercises_can_be_done_by_hand() -> None:
    drawn = [ask(f"makeExercise({seed})") for seed in range(200)]
    assert len({one["text"] for one in drawn}) > 150
    assert drawn[3] == ask("makeExercise(3)")
    for one in drawn:
        built = build(one["text"])
        cards, tails = built["graph"]["cards"], [edge["tail"] for edge in built["graph"]["edges"]]
        numbers = compute(built["said"]["live"], {})
        assert len(set(tails)) < len(tails) and 3 <= sum(card["kind"] == "function" for card in cards) <= 5, one
        assert one["questions"] == [card["key"] for card in cards if not card["is_root"]]
        assert all(isinstance(x, int) and abs(x) < 1000 for [x] in numbers["gradients"].values()), one
