"""What is run, what is replayed, and what a killed build left that must not be published."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from atlas.gallery.recordings import read_recording, write_recording
from atlas.gallery.run import find_stale_pages, make_job, run_pages
from atlas.gallery.scripts import Page, find_pages
from gallery.faulty import HALVES
from tiny.tiny_site import written

FACTS = {"gpu": "Test GPU", "date": "2026-01-31", "versions": {"torch": "2.13.0"}}


@pytest.fixture
def page(tmp_path: Path) -> Page:
    written(tmp_path, {"examples/cuda/page.py": HALVES})
    (page,) = list_pages(tmp_path)
    return page


def list_pages(site: Path) -> list[Page]:
    return find_pages(site / "examples", site / "docs" / "gallery")


@pytest.fixture
def run_stale(tmp_path: Path, settings: dict[str, Any]) -> Callable[..., str]:
    """Run what is stale, and return the page of the first; nothing if all was current."""

    def run(*replayed: Page) -> str:
        recorded = {page: read_recording(page) for page in replayed}
        stale = find_stale_pages(list_pages(tmp_path), recorded, settings)
        assert run_pages(stale, recorded, settings, tmp_path / "running") == []
        return next(((page.cache / "page.rst").read_text(encoding="utf-8") for page in stale), "")

    return run


def test_where_there_is_a_gpu_both_halves_are_run(page: Page, run_stale: Callable[..., str]) -> None:
    text = run_stale()
    assert "tensor(2., requires_grad=True)" in text and "tensor(42., grad_fn=" in text and ".. needs-a-gpu::" in text
    assert run_stale() == "", "all is current"


def test_a_replay_publishes_nothing_but_the_halves(
    page: Page, run_stale: Callable[..., str], run: Callable, tmp_path: Path
) -> None:
    write_recording(page, run({"page": HALVES})["page"].job.made, FACTS)
    left = tmp_path / "running" / "cuda--page" / "docs" / "gallery" / "cuda" / "images" / "sphx_glr_page_002.svg"
    left.parent.mkdir(parents=True)
    left.write_text("of a build that was killed", encoding="utf-8")
    text = run_stale(page)
    assert "provenance recorded" in text and "tensor(42., grad_fn=" in text
    images = {path.name for path in (page.cache / "images").glob("*.*")}
    assert images == {"sphx_glr_page_001.graph.json"}
    assert run_stale(page) == ""
    assert ".. needs-a-gpu::" in run_stale(), "a GPU has come"


def test_what_varies_runs_alone_unless_it_is_in_the_half_that_is_not_run(page: Page, tmp_path: Path) -> None:
    """It measures time, which another script would take from it."""
    page.script.write_text(f"{HALVES}\n# varies: the time\n", encoding="utf-8")
    jobs = [make_job(page, tmp_path, on_paper=on_paper) for on_paper in (False, True)]
    assert [(job.alone, job.end is None) for job in jobs] == [(True, True), (False, False)]
