"""Two builds of one checkout take their turns."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from atlas.runner import lock
from runner.faulty import HEALTHY
from tiny.tiny_site import ROOT, build, written

FILES = {f"examples/basics/page_{n}.py": HEALTHY.replace("A page", f"Page {n}") for n in range(3)}
CONF = str(ROOT / "conf")
BUILD = ["-m", "sphinx", "--conf-dir", CONF, "--doctree-dir", "build/doctrees", "docs", "build/html"]
SHARD = [str(ROOT / "conf" / "shards.py"), "--shard", "1/1", "--site", ".", "--out", "parts"]
TAKE = f"import sys; sys.path.insert(0, {CONF!r}); from atlas.runner import lock; from pathlib import Path; "
TAKE += "file = lock.take(Path()); "


def test_two_builds_side_by_side_both_end_well(tmp_path: Path) -> None:
    site = written(tmp_path, FILES)
    with ThreadPoolExecutor() as pool:
        for done in pool.map(build, [site, site]):
            assert done.code == 0, done.output
            assert "broken off" not in done.output


@pytest.mark.parametrize("program", [BUILD, SHARD], ids=["a build", "a shard"])
def test_the_second_says_that_it_waits(tmp_path: Path, program: list[str]) -> None:
    site = written(tmp_path, FILES)
    with lock.take(site / "build") as held:
        second = subprocess.Popen([sys.executable, *program], cwd=site, stdout=subprocess.PIPE, text=True)
        said = next((line for line in second.stdout if "another build" in line), "")
        held.close()
        rest = second.communicate()[0]
    assert "waiting until it has ended" in said
    assert second.returncode == 0 and "examples: 3/3" in rest, rest


def test_what_outlives_a_killed_build_does_not_hold_the_lock(tmp_path: Path) -> None:
    """A writer of pages, say, that was forked from it, and waits for it for ever."""
    fork = f"{TAKE}import os; os.fork() or print('forked', flush=True); sys.stdin.read()"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", fork], cwd=tmp_path, **pipes) as killed:
        assert killed.stdout.readline() == b"forked\n"
        killed.kill()
        killed.wait()
        subprocess.run([sys.executable, "-c", TAKE], cwd=tmp_path, check=True, timeout=60)
