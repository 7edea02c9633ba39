"""Probes can be asked, and what is said of their changes belongs to some."""

from __future__ import annotations

import ast
import re
import tomllib
from collections import Counter
from pathlib import Path

import pytest

from atlas.gallery import sandbox
from atlas.versions import probes
from atlas.versions.probes import ask, kinks, nodes, refuses, warns

PROBES = [*kinks.PROBES, *nodes.PROBES, *refuses.PROBES, *warns.PROBES]
EXPLAINED = tomllib.loads((Path(probes.__file__).parent.parent / "explained.toml").read_text(encoding="utf-8"))[
    "change"
]


def _name(probe: ask.Probe) -> str:
    return f"{probe.subject}: {probe.key}"


@pytest.fixture(scope="module")
def answers() -> dict[str, str]:
    """What the PyTorch of this environment says; one child process asks it all."""
    found = sandbox.run(ask.answer, PROBES, at_once=1, time_limit=ask.TIME_LIMIT)
    return {_name(probe): answer or why for probe, (answer, why) in zip(PROBES, found, strict=True)}


def test_no_two_probes_have_the_same_name() -> None:
    assert [name for name, count in Counter(map(_name, PROBES)).items() if count > 1] == []


def test_each_probe_stands_in_the_module_of_its_subject() -> None:
    for module in (kinks, nodes, refuses, warns):
        assert {probe.subject for probe in module.PROBES} == {module.__name__.rpartition(".")[2]}


@pytest.mark.parametrize("module", [kinks, nodes, refuses, warns])
def test_a_probe_ends_with_an_expression_on_its_last_line(module) -> None:
    for probe in module.PROBES:
        last = ast.parse(probe.code).body[-1]
        assert isinstance(last, ast.Expr) and last.lineno == len(probe.code.splitlines()), probe.code


def test_kinks_have_inputs_and_others_have_none() -> None:
    assert [_name(probe) for probe in PROBES if bool(probe.at) != (probe.subject == "kinks")] == []


def test_each_probe_is_answered(answers: dict[str, str]) -> None:
    wrong = re.compile(r"NameError|SyntaxError|IndentationError|no answer within|ended by|exit")
    assert {name: answer for name, answer in answers.items() if not answer or wrong.match(answer)} == {}


def test_answers_are_the_same_when_asked_again_in_another_order(answers: dict[str, str]) -> None:
    backwards = [*kinks.PROBES, *nodes.PROBES][::-1]
    found = sandbox.run(ask.answer, backwards, at_once=1, time_limit=ask.TIME_LIMIT)
    assert {
        _name(probe): answer for probe, (answer, _) in zip(backwards, found, strict=True)
    }.items() <= answers.items()


def test_an_answer_is_one_line_without_addresses_and_paths(answers: dict[str, str]) -> None:
    left = re.compile(r"\n|0x[0-9a-f]{4}|/(home|root|tmp|usr|work)/|site-packages")
    assert {name: answer for name, answer in answers.items() if left.search(answer)} == {}


def test_what_is_explained_has_been_asked() -> None:
    known = set(map(_name, PROBES))
    assert [name for change in EXPLAINED for name in change["probes"] if name not in known] == []


def test_a_probe_is_explained_once() -> None:
    counted = Counter(name for change in EXPLAINED for name in change["probes"])
    assert [name for name, count in counted.items() if count > 1] == []


def test_an_explanation_has_a_text_and_may_have_a_version_and_a_link() -> None:
    for change in EXPLAINED:
        assert {"probes", "text"} <= change.keys() <= {"probes", "since", "text", "link"}, change
        assert change["probes"] and change["text"].endswith("."), change
        assert re.fullmatch(r"\d+\.\d+", change.get("since", "1.0")), change
        link = r"https://github\.com/pytorch/pytorch/(pull|issues)/\d+"
        assert "link" not in change or re.fullmatch(link, change["link"]), change
