"""``conf/record.py --check`` runs a page to its end and says all that fails in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from atlas.runner import every_assert
from atlas.runner.processes.limits import Limits
from runner.faulty import HALVES

FAULTS = """\
import threading
import warnings

import torch

assert False, "the first"
y = torch.ones(2) @ torch.ones(3)
assert y.sum() == 2
print(y)


class Holder:
    def look(self):
        assert self is None, "in a method"
        return 5


assert Holder().look() == 6
thread = threading.Thread(target=Holder().look)
thread.start()
thread.join()
for number in range(2):
    assert number == 1, f"of number {number}"
warnings.warn("old")
z = undefined
assert __name__ == "__main__" and Holder().__module__ == "__main__"
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    (tmp_path / "empty").mkdir()
    return tmp_path / "page.py"


def passes(script: Path, seconds: float = 60) -> bool:
    return every_assert.passes(script, script.parent / "empty", Limits(seconds=seconds))


def test_all_that_fails_is_named_with_its_line(script: Path, capfd: pytest.CaptureFixture[str]) -> None:
    script.write_text(FAULTS)
    assert not passes(script)
    said = [line for line in capfd.readouterr().err.splitlines() if line.startswith(str(script))]
    assert [line.removeprefix(f"{script}:") for line in said] == [
        "6: AssertionError: the first",
        f"7: RuntimeError: {said[1].partition('RuntimeError: ')[2]}",
        "14: AssertionError: in a method",
        "18: AssertionError",
        "14: AssertionError: in a method",
        "23: AssertionError: of number 0",
        "24: UserWarning: old",
        "25: NameError: name 'undefined' is not defined",
    ]


def test_what_only_follows_is_left_out(script: Path, capfd: pytest.CaptureFixture[str]) -> None:
    script.write_text("import nothing_of_this_name as gone\nx = gone.value\ny = x + 1\nassert y == 2\n")
    assert not passes(script)
    assert capfd.readouterr().err.count(str(script)) == 2, "the headline and the line in its traceback"


def test_a_page_on_which_nothing_fails(script: Path, capfd: pytest.CaptureFixture[str]) -> None:
    script.write_text(HALVES.replace("import signal\n", ""))
    assert passes(script)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("import sys\nsys.exit()\n", "page.py:2: the script ended itself"),
        ("import os\nos._exit(7)\n", "page.py: the script's process ended with 7"),
        ("import time\ntime.sleep(600)\n", "page.py: the script did not end within 2 s"),
        ("x = (\n", "SyntaxError"),
    ],
)
def test_a_page_that_does_not_reach_its_end(
    script: Path, capfd: pytest.CaptureFixture[str], code: str, says: str
) -> None:
    script.write_text(code)
    assert not passes(script, seconds=0.4 if "sleep" in code else 60)
    assert says in capfd.readouterr().err
