"""A script may ask for more time, and one that does not say how much is named."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from atlas.runner.processes import limits
from atlas.runner.processes.limits import Limits
from atlas.runner.processes.pool import Outcome
from runner.faulty import HEALTHY

NO_TIMES = {
    "word": "'abc'",
    "name": "abc",
    "list": "[1]",
    "negative": "-5",
    "zero": "0",
    "truth": "True",
    "no_end": "1e999",
}


@pytest.fixture(scope="module")
def refused(run: Callable[..., dict[str, Outcome]]) -> dict[str, Outcome]:
    asking = "# sphinx_gallery_time_limit = {}\n\nprint(x)\n"
    scripts = {name: HEALTHY + asking.format(text) for name, text in NO_TIMES.items()}
    return run({**scripts, "healthy": HEALTHY + asking.format(120)})


@pytest.mark.parametrize("name", NO_TIMES)
def test_what_is_no_time_is_named(refused: dict[str, Outcome], name: str) -> None:
    fault = refused[name].fault
    assert fault is not None
    assert fault.script.endswith(f"{name}.py")
    assert fault.line == HEALTHY.count("\n") + 1
    assert "is no time limit; write a positive number of seconds" in fault.message


def test_the_others_run(refused: dict[str, Outcome]) -> None:
    assert refused["healthy"].fault is None, refused["healthy"].fault


@pytest.mark.parametrize(
    ("asked", "seconds"), [("120", 120), ("90.5", 90.5), ("7", 60), *((text, 60) for text in NO_TIMES.values())]
)
def test_a_script_gets_what_it_asks_for_if_that_is_more(tmp_path: Path, asked: str, seconds: float) -> None:
    script = tmp_path / "page.py"
    script.write_text(f"{HEALTHY}# sphinx_gallery_time_limit = {asked}\n")
    assert limits.allowed(script, Limits(seconds=60, output=3)) == Limits(seconds=seconds, output=3)
