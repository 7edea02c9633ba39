"""Several processes share the tests, and no file is torn apart: its tests may build on what those before them left."""

from __future__ import annotations

import re
import subprocess
import sys
from itertools import groupby

import pytest

from sharing_out import place, together
from sources import ROOT


@pytest.mark.parametrize(
    ("test", "part"),
    [
        ("tests/site/test_plots.py::test_fits[tensors/storage.py]", "tensors/storage.py"),
        ("tests/site/test_plots.py::test_all_fit", "tests/site/test_plots.py"),
        ("tests/browser/test_every_page.py::test_fits[guide/start.html-390-dark]", "guide/start.html"),
        ("tests/browser/test_every_page.py::test_errs[404.html-390-dark]", "404.html"),
        ("tests/browser/test_search.py::test_finds[no such page]", "tests/browser/test_search.py"),
        ("tests/runner/test_scripts.py::test_moved[basics/two.py]", "tests/runner/test_scripts.py"),
    ],
)
def test_what_stays_together(test: str, part: str) -> None:
    assert together(test) == part


def test_a_file_runs_in_one_process() -> None:
    files = ["tests/hosting/test_requirements.py", "tests/hosting/test_sessions.py"]
    command = [sys.executable, "-m", "pytest", "--numprocesses=2", "--verbose", *files]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    ran = re.findall(r"^\[(gw\d)\].* PASSED ([^:]+)::", done.stdout, flags=re.MULTILINE)
    assert len(ran) > 4 and {file for _, file in ran} == set(files)
    assert len(set(ran)) == len(files), "one process for each file"


def test_a_shuffled_order_tears_nothing_apart() -> None:
    tests = [f"tests/{file}.py::test_{number}" for file in "abcd" for number in range(9)]
    orders = [sorted(tests, key=lambda test: place(test, seed)) for seed in "123"]
    for order in orders:
        files = [file for file, _ in groupby(order, key=together)]
        assert len(files) == 4 and set(order) == set(tests)
    assert orders[0] == sorted(tests, key=lambda test: place(test, "1"))
    assert len(set(map(tuple, [tests, *orders]))) == 4
