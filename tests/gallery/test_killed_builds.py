"""A build killed at any moment costs only what was running: the next one equals a clean one."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from compare_builds import find_differences
from gallery.faulty import HEALTHY
from tiny.tiny_site import ROOT, build, written

MOMENTS = {
    "an example ran": r"examples: 2/4 ",
    "pages are written": r"writing output\.\.\. \[ *[4-6]\d%\]",
}


def files() -> dict[str, str]:
    figure = "\n# %%\n# A graph.\n\ny = x * x\n# graph: y -- One node, and both of its edges lead to x\n"
    return {f"examples/basics/page_{n}.py": HEALTHY.replace("A page", f"Page {n}") + figure for n in range(4)}


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a clean build made."""
    done = build(written(tmp_path_factory.mktemp("clean"), files()))
    assert done.code == 0, done.output
    return done.out


@pytest.mark.parametrize("moment", MOMENTS)
def test_next_build_equals_a_clean_one(moment: str, clean: Path, tmp_path: Path) -> None:
    site = written(tmp_path, files())
    options = ["-W", "--keep-going", "--no-color", "-c", str(ROOT / "conf"), "-b", "html", "-d", "doctrees"]
    command = [sys.executable, "-m", "sphinx", *options, "docs", "html"]
    with subprocess.Popen(
        command, cwd=site, stdout=subprocess.PIPE, encoding="utf-8", start_new_session=True
    ) as process:
        said = any(
            re.search(MOMENTS[moment], line) for line in process.stdout
        )  # where CI is set, one line is overwritten
        os.killpg(process.pid, signal.SIGKILL)
    assert said and process.returncode == -signal.SIGKILL
    after = build(site)
    assert after.code == 0, after.output
    assert find_differences(clean, after.out) == []
