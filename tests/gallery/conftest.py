"""Runs the faulty examples once for all tests, in child processes as a build does."""

from __future__ import annotations

import runpy
from collections.abc import Callable
from typing import Any

import pytest

from atlas.gallery import process, sphinx_gallery_patches
from atlas.gallery.process import LIMITS, Job, Limits, Outcome
from gallery.faulty import FAULTY, HEALTHY
from sources import ROOT


@pytest.fixture(scope="session")
def settings(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """sphinx-gallery's settings, as the site has them."""
    conf = runpy.run_path(str(ROOT / "conf" / "conf.py"))
    return sphinx_gallery_patches.fill_settings(conf["sphinx_gallery_conf"], tmp_path_factory.mktemp("docs"))


@pytest.fixture(scope="session")
def run(settings: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Callable[..., dict[str, Outcome]]:
    """Run scripts, given by name and text, up to the line ``end``, and return what became of each."""

    def outcomes(
        scripts: dict[str, str | bytes], limits: Limits = LIMITS, end: int | None = None
    ) -> dict[str, Outcome]:
        folder = tmp_path_factory.mktemp("examples") / "faults"
        folder.mkdir()
        jobs = []
        for name, text in scripts.items():
            script = folder / f"{name}.py"
            script.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8"))
            jobs.append(Job(name, script, folder / "running" / name, limits, end=end))
        return {outcome.job.name: outcome for outcome in process.run_jobs(jobs, settings)}

    return outcomes


@pytest.fixture(scope="session")
def outcomes(run: Callable[..., dict[str, Outcome]]) -> dict[str, Outcome]:
    """What became of every faulty example, and of a healthy one among them."""
    scripts = {case.name: case.source for case in FAULTY}
    return run({**scripts, "healthy": HEALTHY}, Limits(seconds=2.0, output=200_000, memory=2**30))
