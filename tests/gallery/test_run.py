"""What is run, what is replayed, and what a killed build left that must not be published."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from atlas.gallery.recordings import read_recording, write_recording
from atlas.gallery.run import find_stale_pages, make_job, run_pages
from atlas.gallery.scripts import Gallery, Page
from gallery.faulty import HALVES, HEALTHY
from tiny.tiny_site import written

FACTS = {"gpu": "Test GPU", "date": "2026-01-31", "versions": {"torch": "2.13.0"}}


@pytest.fixture
def gallery(tmp_path: Path, settings: dict[str, Any]) -> Gallery:
    written(tmp_path, {"examples/cuda/page.py": HALVES})
    return Gallery(tmp_path / "docs", tmp_path / "running", settings)


@pytest.fixture
def page(gallery: Gallery) -> Page:
    (page,) = gallery.find_pages()
    return page


def run_stale(gallery: Gallery, *replayed: Page) -> str:
    """Run what is stale, and return the page of the first; nothing if all was current."""
    recorded = {page: read_recording(page) for page in replayed}
    stale = find_stale_pages(gallery, gallery.find_pages(), recorded)
    assert run_pages(gallery, stale, recorded) == []
    return next(((page.cache / "page.rst").read_text(encoding="utf-8") for page in stale), "")


def test_where_there_is_a_gpu_both_halves_are_run(gallery: Gallery) -> None:
    text = run_stale(gallery)
    assert "tensor(2., requires_grad=True)" in text and "tensor(42., grad_fn=" in text and ".. needs-a-gpu::" in text
    assert run_stale(gallery) == "", "all is current"


def test_a_replay_publishes_nothing_but_the_halves(gallery: Gallery, page: Page, run: Callable) -> None:
    write_recording(page, run({"page": HALVES})["page"].job.place.made, FACTS)
    left = gallery.work / "cuda--page" / "docs" / "gallery" / "cuda" / "images" / "sphx_glr_page_002.svg"
    left.parent.mkdir(parents=True)
    left.write_text("of a build that was killed", encoding="utf-8")
    text = run_stale(gallery, page)
    assert ".. recorded::" in text and "tensor(42., grad_fn=" in text
    images = {path.name for path in (page.cache / "images").glob("*.*")}
    assert images == {"sphx_glr_page_001.graph.json"}
    assert run_stale(gallery, page) == ""
    assert ".. needs-a-gpu::" in run_stale(gallery), "a GPU has come"


def test_without_a_recording_the_first_half_alone_is_shown(gallery: Gallery, page: Page) -> None:
    text = run_stale(gallery, page)
    assert "tensor(2., requires_grad=True)" in text and "tensor(42., grad_fn=" not in text
    assert ".. not-recorded:: it has not been recorded yet" in text


def test_what_varies_runs_alone_unless_it_is_in_the_half_that_is_not_run(page: Page, tmp_path: Path) -> None:
    """It measures time, which another script would take from it."""
    page.script.write_text(f"{HALVES}\n# varies: the time\n", encoding="utf-8")
    jobs = [make_job(page, tmp_path, on_paper=on_paper) for on_paper in (False, True)]
    assert [(job.alone, job.end is None) for job in jobs] == [(True, True), (False, False)]


def test_a_failed_page_is_replaced_and_the_others_are_published(gallery: Gallery, page: Page) -> None:
    good = page.script.with_name("good.py")
    good.write_text(HEALTHY.replace("A page", "G page"), encoding="utf-8")
    page.script.write_text(f"{HEALTHY}\n1 / 0\n", encoding="utf-8")
    pages = gallery.find_pages()
    (fault,) = run_pages(gallery, find_stale_pages(gallery, pages, {}), {})
    assert fault.message == "ZeroDivisionError: division by zero"
    assert "This page has no outputs" in (page.cache / "page.rst").read_text(encoding="utf-8")
    assert set(find_stale_pages(gallery, pages, {})) == {page}
