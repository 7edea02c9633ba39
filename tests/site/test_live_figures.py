"""In every figure whose leaves can be changed, JavaScript computes what PyTorch computes, whatever the leaves are."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from live_script import compute, fill_all

_SAME_NAME = (
    "Abs Add Cos Div Exp Log Log1P Maximum Minimum Mul Neg Pow Reciprocal Relu Rsqrt Sigmoid Sin Sqrt Sub Tan Tanh"
)
OPERATIONS = {name: getattr(torch, name.lower()) for name in _SAME_NAME.split(" ")}
OPERATIONS |= {"ClampBackward1": torch.clamp, "MulBackward1": torch.mul, "PowBackward1": torch.pow}
LEAST = 40


def live_figures(site: Path, pages: list[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    for page in pages:
        text = (site / page).read_text(encoding="utf-8")
        for data in re.findall(r'<script type="application/json">(.*?)</script>', text):
            found = json.loads(data)
            if "live" in found:
                yield f"{page}#{found['name']}", found


@pytest.fixture(scope="module")
def figures(site: Path, all_pages: list[str]) -> dict[str, dict[str, Any]]:
    return dict(live_figures(site, all_pages))


def replay(
    live: dict[str, Any], given: dict[str, list[float]]
) -> tuple[dict[str, torch.Tensor], dict[str, torch.Tensor]]:
    """The values of all nodes, and the gradients of the leaves, as PyTorch's operations and its autograd give them."""
    dtype = torch.float32 if live["float32"] else torch.float64
    values: dict[str, torch.Tensor] = {}
    is_given = {key: node[0] in ("leaf", "constant") for key, node in live["nodes"].items()}
    for key in sorted(is_given, key=lambda key: (not is_given[key], int(key))):
        node = live["nodes"][key]
        kind, size, inputs, places, numbers = [*node, *[[]] * (5 - len(node))]
        if is_given[key]:
            leaf = given.get(key, numbers)
            values[key] = torch.tensor(list(map(float, leaf)), dtype=dtype, requires_grad=kind == "leaf")
            continue
        tensors = [values[str(tail)] for tail in inputs]
        if kind == "take":
            values[key] = torch.cat(tensors)[places[0]]
        elif kind in ("sum", "mean", "prod"):
            values[key] = getattr(tensors[0], kind)().reshape(1)
        else:
            meeting = [
                one if at >= len(places) or places[at] is None else one[places[at]] for at, one in enumerate(tensors)
            ]
            values[key] = called(kind, [one.expand(size) for one in meeting], list(map(float, numbers)))
    roots = [values[key] for key in live["start"]]
    first = [torch.tensor(list(map(float, start)), dtype=dtype) for start in live["start"].values()]
    leaves = [key for key in values if live["nodes"][key][0] == "leaf"]
    gradients = torch.autograd.grad(roots, [values[key] for key in leaves], first, allow_unused=True)
    return values, {key: one for key, one in zip(leaves, gradients, strict=True) if one is not None}


def called(kind: str, tensors: list[torch.Tensor], numbers: list[float]) -> torch.Tensor:
    if kind in ("RsubBackward1", "PowBackward2"):
        return numbers[0] - tensors[0] if kind == "RsubBackward1" else numbers[0] ** tensors[0]
    return OPERATIONS[kind](*tensors, *numbers)


def compare(live: dict[str, Any], given: dict[str, list[float]]) -> list[str]:
    """Where JavaScript and PyTorch differ."""
    found, (values, gradients) = compute(live, given), replay(live, given)
    largest = max([1.0, *(float(one.detach().abs().nan_to_num(0, 0, 0).max()) for one in values.values())])
    exact = 1e-4 * largest if live["float32"] else 1e-9
    differences = []
    for what, here, there in (("value", found["values"], values), ("gradient", found["gradients"], gradients)):
        for key, tensor in there.items():
            numbers = list(map(float, here[key]))
            if numbers != pytest.approx(tensor.detach().tolist(), rel=exact, abs=exact, nan_ok=True):
                differences.append(f"{what} of {key} with {given}: {numbers} here, {tensor.tolist()} in PyTorch")
    return differences


def test_there_are_many(figures: dict[str, dict[str, Any]]) -> None:
    assert len(figures) >= LEAST, sorted(figures)
    assert any(name.startswith("index.html#") for name in figures)


def test_random_leaves_give_what_pytorch_gives(figures: dict[str, dict[str, Any]]) -> None:
    choose = random.Random(0)
    differences = []
    for name, figure in figures.items():
        live = figure["live"] | {"float32": False}
        for draw in range(6):
            # the first draws are those where domains end and ties are
            pick = {0: lambda: 0.0, 1: lambda: -1.0, 2: lambda: 1.0}.get(draw, lambda: choose.uniform(-3, 3))
            given = {key: [pick() for _ in live["nodes"][key][4]] for key in live["leaves"]}
            differences += [f"{name}: {one}" for one in compare(live, given)]
    assert not differences, "\n".join(differences)


def test_the_leaves_of_the_script_give_what_the_figure_shows(figures: dict[str, dict[str, Any]]) -> None:
    """In the figure's own precision: what the browser writes at the script's values is what the build wrote, to six digits."""
    differences = []
    for name, figure in figures.items():
        places = [(key, at, text) for key, notes in figure["live"]["notes"].items() for at, text in notes.items()]
        written = fill_all(figure["live"], [text for _key, _at, text in places])
        shown = [figure["cards"][key][int(at)][1] for key, at, _text in places]
        differences += [
            f"{name}: {here} here, {there} in the figure"
            for here, there in zip(written, shown, strict=True)
            if not near(here, there)
        ]
    assert not differences, "\n".join(differences)


def near(here: str, there: str) -> bool:
    """Whether two texts differ in nothing but the last digits of numbers."""
    number = re.compile(r"[−]?\d+(?:\.\d+)?(?:e[+−]\d+)?")
    mine, theirs = ([float(one.replace("−", "-")) for one in number.findall(text)] for text in (here, there))
    return number.sub("", here) == number.sub("", there) and mine == pytest.approx(theirs, rel=2e-5, abs=2e-5)
