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
from live_script import compute, engine, fill_template, run
from sources import ROOT

NUMBER = re.compile(r"−?\b\d+(?:\.\d+)?(?:e[+−]\d+)?\b")
TYPED = tomllib.loads((ROOT / "tests/expression/texts.toml").read_text(encoding="utf-8"))
PARTS = TYPED["random"]


def ask(code: str) -> Any:
    if run("globalThis.expressions === undefined"):
        engine().eval(fill_template("docs/_static/expression/language.js.jinja"))
    return run(f"expressions.{code}")


def build(text: str) -> dict[str, Any]:
    """What the page makes of a text, in PyTorch's default dtype."""
    is_float32 = torch.get_default_dtype() == torch.float32
    return ask(f"build({json.dumps(text)}, {json.dumps(is_float32)})")


@pytest.fixture(autouse=True)
def in_float64() -> Any:
    """Numbers agree to many digits."""
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
    without = {"constant": {"is_root", "forward_at", "backward_at"}, "leaf": {"forward_at"}, "function": set()}
    cards = [
        {fact: getattr(card, fact) for fact in TYPED["facts"] if fact not in without[card.kind]}
        for card in graph.cards
    ]
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


def without_letters(said: dict[str, Any]) -> dict[str, Any]:
    """What is said, without the letters of a rule: the page has none that is a name in the text."""
    letters = re.compile(r"\b(?:[aby]|\w+Backward\d(?: #\d+)?|constant(?: #\d+)?)(?!\()\b")
    cards = {
        key: [[title, letters.sub("_", about) if title.startswith("sends") else about] for title, about in facts]
        for key, facts in said["cards"].items()
    }
    return {**said, "cards": cards}


def check(text: str) -> dict[str, Any]:
    built = build(text)
    graph = execute(built["program"])
    assert near(built["graph"], plain(graph)), (text, built["graph"], plain(graph))
    said, expected = dict(built["said"]), say(graph)
    live, live_expected = said.pop("live"), expected.pop("live", None)
    assert near(*map(without_letters, (said, expected))), text
    # to the site a detached number is a constant, and a constant is what its result tells: 1e30 + 2 tells nothing of the 2
    whole = f"{text}{live['nodes']}{(live_expected or live)['nodes']}"
    assert not live_expected or re.search("detach|where|1e30|Infinity|NaN", whole) or near(live, live_expected), text
    leaves = [[card.key, card.names[0], card.value] for card in graph.cards if card.kind == "leaf"]
    assert near([[leaf["key"], leaf["name"], leaf["value"]] for leaf in built["leaves"]], leaves), text
    again = build(built["program"])
    assert again["program"] == built["program"] and near(again["graph"], built["graph"]), text  # it can be pasted
    return built


class Writer(random.Random):
    """Random expressions."""

    def write_number(self) -> str:
        return self.choice(PARTS["edges" if self.is_edgy and self.random() < 0.4 else "numbers"])

    def write(self, depth: int) -> str:
        if depth == 0 or self.random() < 0.15:
            return self.choice(self.names)
        one = lambda: self.write(depth - 1)  # noqa: E731
        other = f"({self.write_number()})" if self.random() < 0.3 else one()
        first, second = self.sample([f"({one()})", f"({other})"], 2)
        operator, comparison, name = (self.choice(PARTS[part]) for part in ("operators", "comparisons", "functions"))
        where = f"where({one()} {comparison} {other}, {one()}, {self.choice([self.write_number(), one(), one()])})"
        some = self.choice([f"-{one()}", f"clamp({one()}, -1, 2)", f"clamp({one()}, 0.5)", f"({one()}).detach()"])
        called = self.choice([f"{name}({one()})", f"torch.{name}({one()})", f"({one()}).{name}()"])
        most = f"{self.choice(['max', 'torch.min'])}({first}, {second})"
        return self.choice([*[f"{first}{operator}{second}"] * 5, most, where, some, called, called])


def write_random(seed: int) -> str:
    writer = Writer(seed)
    writer.is_edgy, writer.names = writer.random() < 0.4, ["x", "y", "z"][: writer.randint(1, 3)]
    lines = [f"{name} = {writer.write_number()}" for name in writer.names]
    for name in "abcd"[: writer.randint(1, 4)]:
        lines.append(f"{name} = {writer.write(writer.randint(1, 2))}")
        writer.names.append(name)
    text = "\n".join(lines)
    return f"{text} + x" if "depends on no leaf" in build(text).get("error", {}).get("message", "") else text


@pytest.mark.parametrize("seed", range(200))
def test_a_random_expression(seed: int) -> None:
    check(write_random(seed))


@pytest.mark.parametrize("form", TYPED["forms"])
def test_a_form(form: str) -> None:
    check(f"x = 2\ny = 3\nz = -1\n{form}")


def test_each_function_is_what_pytorch_computes() -> None:
    listed = ask("FUNCTIONS")
    assert [one["name"] for one in listed] == TYPED["functions"] and all(one["says"] for one in listed)
    for one in listed:
        for x, y in (("0.5", "2"), ("1", "1"), ("0", "0"), ("-2", "3"), ("inf", "nan")):
            check(f"x = {x}\ny = {y}\nw = y * x + {one['example']}")


@pytest.mark.parametrize("text", TYPED["pasted"])
def test_a_pasted_program_is_what_pytorch_makes_of_it(text: str) -> None:
    built = check(text)
    found: dict[str, Any] = {"print": lambda *shown: None, "tensor": torch.tensor}
    exec(text, found)
    cards = [card for card in built["graph"]["cards"] if card["kind"] == "leaf"]
    for leaf, card in zip(built["leaves"], cards, strict=True):
        tensor = found[leaf["name"]]
        assert near([card["value"], card["gradient"]], [tensor.item(), tensor.grad.item()]), text
        assert near(eval(text[leaf["from"] : leaf["to"]], {"torch": torch}), tensor.item()), text
    others = {name for name, x in found.items() if isinstance(x, torch.Tensor) and x.is_leaf and x.grad is not None}
    assert others == {leaf["name"] for leaf in built["leaves"]}


@pytest.mark.parametrize("seed", range(100))
def test_numbers_are_rounded_as_float32(seed: int) -> None:
    torch.set_default_dtype(torch.float32)
    built = build(write_random(seed))
    wanted = plain(execute(built["program"]))["cards"]
    for card, other in zip(built["graph"]["cards"], wanted, strict=True):
        for fact in {"value", "gradient"} & other.keys():
            assert float(card[fact]) == pytest.approx(other[fact], rel=1e-4, abs=1e-5, nan_ok=True), built["program"]


@pytest.mark.parametrize("form", TYPED["rounded"])
def test_an_overflow_is_that_of_float32(form: str) -> None:
    torch.set_default_dtype(torch.float32)
    check(form)


@pytest.mark.parametrize("seed", range(60))
def test_a_changed_leaf_changes_the_figure_as_the_text_would(seed: int) -> None:
    """What is compared and detached follows too."""
    text = write_random(seed)
    live, given = build(text)["said"]["live"], {}
    for leaf, number in zip(build(text)["leaves"], [-0.7, 1.5, 2], strict=False):
        given[str(leaf["key"])] = [number]
        text = re.sub(rf"(?m)^{leaf['name']} = .*$", f"{leaf['name']} = {number}", text)
    found = compute(live, given)
    for card in check(text)["graph"]["cards"]:
        for fact in ("value", "gradient"):
            assert fact not in card or near(found[f"{fact}s"][str(card["key"])][0], float(card[fact])), text


@pytest.mark.parametrize("marked", TYPED["mistakes"])
def test_an_error_says_what_and_where(marked: str) -> None:
    text = marked.replace("«", "").replace("»", "")
    place = {"from": marked.index("«"), "to": marked.index("»") - 1}
    assert build(text) == {"error": {"message": TYPED["mistakes"][marked], **place}}


def test_a_letter_of_a_rule_is_no_name_of_the_text() -> None:
    cards = check("x = 2\na = 3\ny = exp(x) * (x + 1) * a")["said"]["cards"]
    rules = {tuple(fact) for facts in cards.values() for fact in facts if fact[0].startswith("sends")}
    assert ("sends to x", "grad * ExpBackward0") in rules and ("sends to a", "grad * MulBackward0") in rules, rules
    assert ("sends to AddBackward0", "grad * ExpBackward0") in rules, rules


def test_a_text_that_is_too_deep_is_an_error() -> None:
    deep = f"x = 2\ny = {'(' * 20000}x{')' * 20000}"
    assert build(deep) == {"error": {"message": "This is too long.", "from": 0, "to": len(deep)}}


def test_the_program_is_what_a_learner_would_write() -> None:
    assert build(TYPED["learner"]["types"])["program"] == TYPED["learner"]["reads"]


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
