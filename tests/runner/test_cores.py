"""How many examples run at once: no more than a container has time for."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from atlas.runner.processes import cores as module
from atlas.runner.processes.cores import cores, waited_for_core

V2 = "0::/\n"
V1 = "9:name=systemd:/\n4:memory:/some\n2:cpu,cpuacct:/docker/abc\n0::/\n"


@pytest.mark.parametrize(
    ("memberships", "files", "expected"),
    [
        (V2, {}, 8),
        (V2, {"cpu.max": "max 100000"}, 8),
        (V2, {"cpu.max": "200000 100000"}, 2),
        (V2, {"cpu.max": "350000 100000"}, 3),
        (V2, {"cpu.max": "50000 100000"}, 1),
        (V2, {"cpu.max": "6400000 100000"}, 8),
        ("0::/a/b\n", {"a/b/cpu.max": "max 100000", "a/cpu.max": "300000 100000"}, 3),
        ("0::/a/b\n", {"a/b/cpu.max": "200000 100000", "a/cpu.max": "300000 100000"}, 2),
        ("0::/of/the/host\n", {"cpu.max": "200000 100000"}, 2),
        (V1, {"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, 8),
        (V1, {"cpu/cpu.cfs_quota_us": "200000", "cpu/cpu.cfs_period_us": "100000"}, 2),
        (V1, {"cpu,cpuacct/docker/abc/cpu.cfs_quota_us": "1", "cpu,cpuacct/docker/abc/cpu.cfs_period_us": "9"}, 1),
        (V1, {"memory/some/cpu.cfs_quota_us": "1", "memory/some/cpu.cfs_period_us": "9"}, 8),
        ("1:cpu:/\n", {"cpu/cpu.cfs_quota_us": "300000", "cpu/cpu.cfs_period_us": "100000"}, 3),
        (None, {}, 8),
    ],
)
def test_a_quota_is_heeded(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, memberships: str | None, files: dict[str, str], expected: int
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(8)), raising=False)
    monkeypatch.setattr(module, "_GROUPS", tmp_path / "groups")
    monkeypatch.setattr(module, "_OWN", tmp_path / "own")
    if memberships is not None:
        (tmp_path / "own").write_text(memberships)
    for name, text in files.items():
        file = tmp_path / "groups" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text + "\n")
    assert cores() == expected


def test_there_is_at_least_one_here() -> None:
    assert 1 <= cores() <= (os.cpu_count() or 1)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells")
def test_waiting_for_a_core_is_known() -> None:
    """Two processes share one core, so that each waits about half of the time."""
    code = f"import os, time; os.sched_setaffinity(0, {{{min(os.sched_getaffinity(0))}}})\nwhile True: pass"
    pair = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(2)]
    try:
        time.sleep(2.0)
        waited = sum(waited_for_core(one.pid) for one in pair)
    finally:
        for one in pair:
            one.kill()
            one.wait()
    assert waited > 0.2


def test_sleeping_is_not_waiting_for_a_core() -> None:
    with subprocess.Popen(["sleep", "2"]) as process:
        time.sleep(1.0)
        waited = waited_for_core(process.pid)
    assert waited < 0.9


def test_a_process_that_is_gone_has_not_waited() -> None:
    process = subprocess.Popen(["true"])
    process.wait()
    assert waited_for_core(process.pid) == 0.0
