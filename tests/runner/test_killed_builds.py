"""A build killed at any moment costs only what was running: the next one equals a clean one.

``ATLAS_KILLS=20`` tries twenty moments instead of a few.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from compare_builds import differences
from pages.tiny_site import ROOT, build, written
from runner.faulty import HEALTHY

KILLS = int(os.environ.get("ATLAS_KILLS", "2"))


def files() -> dict[str, str]:
    figure = "\n# %%\n# A graph.\n\ny = x * x\n# graph: y -- One node, and both of its edges lead to x\n"
    return {f"examples/basics/page_{n}.py": HEALTHY.replace("A page", f"Page {n}") + figure for n in range(4)}


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, float]:
    """A clean build, and the seconds that it took."""
    started = time.monotonic()
    done = build(written(tmp_path_factory.mktemp("clean"), files()))
    assert done.code == 0, done.output
    return done.out, time.monotonic() - started


@pytest.mark.parametrize("attempt", range(KILLS))
def test_next_build_equals_a_clean_one(attempt: int, clean: tuple[Path, float], tmp_path: Path) -> None:
    site = written(tmp_path, files())
    options = ["-W", "--keep-going", "-q", "-c", str(ROOT / "conf"), "-b", "html", "-d", "doctrees", "docs", "html"]
    moment = random.Random(attempt).uniform(0.3, 1.0) * clean[1]
    with subprocess.Popen([sys.executable, "-m", "sphinx", *options], cwd=site, start_new_session=True) as process:
        time.sleep(moment)
        os.killpg(process.pid, signal.SIGKILL)
    after = build(site)
    assert after.code == 0, f"killed after {moment:.2f} s\n{after.output}"
    assert differences(clean[0], after.out) == [], f"killed after {moment:.2f} s"
