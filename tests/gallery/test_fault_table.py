"""Each fault of an example is named with file and line, and the others still run."""

from __future__ import annotations

import re

import pytest

from atlas.gallery.process import Outcome
from gallery.faulty import FAULTY, Faulty


@pytest.mark.parametrize("case", FAULTY, ids=lambda case: case.name)
def test_fault_is_named(case: Faulty, outcomes: dict[str, Outcome]) -> None:
    fault = outcomes[case.name].fault
    assert fault is not None and not outcomes[case.name].facts, "the fault was not noticed"
    assert case.says in fault.message, fault.make_report()
    assert fault.script.endswith(f"{case.name}.py")
    assert "/running/" not in fault.make_report(), "the place where the copy ran says nothing to its author"
    if case.at:
        assert fault.line == case.line, fault.make_report()


def test_a_healthy_example_is_not_disturbed_by_the_others(outcomes: dict[str, Outcome]) -> None:
    outcome = outcomes["healthy"]
    assert outcome.fault is None, outcome.fault
    assert outcome.facts["seconds"] > 0
    page = (outcome.job.made / "healthy.rst").read_text(encoding="utf-8")
    assert "tensor(2., requires_grad=True)" in page
    assert re.search(r"\.\. claims:: 1\b", page)
