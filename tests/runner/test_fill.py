"""What is run, what is replayed, and what a killed build left that must not be published."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from atlas.runner import fill, gpu
from atlas.runner.model import Page, Site
from atlas.runner.outputs import cache, recordings
from atlas.runner.processes import pool
from runner.faulty import HALVES, HEALTHY
from tiny.tiny_site import written

FACTS = {"gpu": "Test GPU", "date": "2026-01-31", "versions": {"torch": "2.13.0"}}


@pytest.fixture
def site(tmp_path: Path, settings: dict[str, Any]) -> Site:
    written(tmp_path, {"examples/cuda/page.py": HALVES})
    return Site(tmp_path / "docs", tmp_path / "running", settings)


@pytest.fixture
def page(site: Site) -> Page:
    (page,) = site.pages()
    return page


@pytest.fixture
def recorded(page: Page, run: Callable) -> Page:
    made = run({"page": HALVES})["page"].job.place.made
    recordings.write(page, made, recordings.folder_of(page), FACTS)
    return page


@pytest.fixture(params=[{}, {"gpu": "Test GPU"}], ids=["without a GPU", "with a GPU"])
def device(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    monkeypatch.setattr(gpu, "describe", lambda: request.param)
    return request.param


def test_a_recording_that_is_missing_is_missing_everywhere(site: Site, device: dict[str, str]) -> None:
    """The machine that has the GPU is the one that can record it: a release is refused there too."""
    assert fill.look(site).missing == ["cuda/page: it has not been recorded yet"]


def test_where_there_is_a_gpu_nothing_is_replayed(site: Site, recorded: Page, device: dict[str, str]) -> None:
    state = fill.look(site)
    assert state.missing == []
    assert set(state.replayed) == (set() if device else {recorded})
    assert ("the recording" in state.wanted[recorded]) == (not device)


def test_a_page_of_the_chapter_that_needs_no_gpu_is_run_everywhere(
    site: Site, page: Page, device: dict[str, str]
) -> None:
    page.script.write_text(HEALTHY)
    state = fill.look(site)
    assert (state.missing, state.recorded, state.replayed) == ([], {}, {})
    assert fill.run(site, state, state.stale) == []
    assert "tensor(2., requires_grad=True)" in (page.cache / "page.rst").read_text()


def test_where_there_is_a_gpu_both_halves_are_run(site: Site, page: Page, device: dict[str, str]) -> None:
    state = fill.look(site)
    assert fill.run(site, state, state.stale) == []
    text = (page.cache / "page.rst").read_text()
    assert "tensor(2., requires_grad=True)" in text
    assert ("tensor(42., grad_fn=" in text) == bool(device) == (".. needs-a-gpu::" in text)


def test_a_replay_publishes_nothing_but_the_halves(
    site: Site, recorded: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gpu, "describe", dict)
    left = site.work / "cuda--page" / "docs" / "gallery" / "cuda" / "images" / "sphx_glr_page_002.svg"
    left.parent.mkdir(parents=True)
    left.write_text("of a build that was killed")
    state = fill.look(site)
    assert fill.run(site, state, state.stale) == []
    published = cache.read_receipt(recorded)["outputs"]
    assert {"page.rst", "images/sphx_glr_page_001.svg"} <= set(published)
    assert "images/sphx_glr_page_002.svg" not in published
    assert not (recorded.cache / "images" / left.name).exists()


def test_what_varies_in_the_half_that_is_not_run_keeps_no_other_example_waiting(
    site: Site, page: Page, device: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    page.script.write_text(f"{HALVES}\n# varies: the time\n")
    jobs = []
    monkeypatch.setattr(pool, "run", lambda some, *arguments, **options: jobs.extend(some) or iter(()))
    state = fill.look(site)
    fill.run(site, state, state.stale)
    assert [(job.alone, job.end is None) for job in jobs] == [(bool(device), bool(device))]


def test_settings_that_shape_pages_make_them_stale(
    site: Site, page: Page, recorded: Page, device: dict[str, str]
) -> None:
    """A page that is replayed, too: its first half is made here."""
    before = fill.look(site).wanted[page]
    site.settings["show_signature"] ^= True
    try:
        assert fill.look(site).wanted[page] != before
    finally:
        site.settings["show_signature"] ^= True


@pytest.mark.parametrize("running", [["basics/one"], [f"basics/page_{n}" for n in range(40)]], ids=["one", "many"])
def test_the_line_of_progress_is_as_wide_as_the_terminal(running: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """It writes over the one before, all of it, and does not wrap."""
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "60")
    said = []
    monkeypatch.setattr(fill.logger, "info", lambda line, **options: said.append((line, options)))
    fill._Progress(40).show(3, running)
    ((line, options),) = said
    assert line.startswith("examples: 3/40 done, 0 s, running basics/")
    assert line.endswith("\r") and len(line) == 60 and options == {"nonl": True}


def test_a_script_whose_output_varies_runs_alone(
    tmp_path: Path, settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It measures time, which another script would take from it."""
    texts = {"one": HEALTHY, "times": f"{HEALTHY}\n# varies: the time\n", "two": HEALTHY}
    written(tmp_path, {f"examples/first/{name}.py": text for name, text in texts.items()})
    site = Site(tmp_path / "docs", tmp_path / "running", settings)
    at_once, run = [], pool.run
    watch = {"watch": lambda done, running: at_once.append(set(running))}
    monkeypatch.setattr(pool, "run", lambda *jobs, **options: run(*jobs, **options | watch))
    state = fill.look(site)
    assert fill.run(site, state, state.stale, at_once=2) == []
    assert {"first/one", "first/two"} in at_once
    assert [names for names in at_once if "first/times" in names] == [{"first/times"}]
