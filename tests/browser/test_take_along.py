"""What a reader takes along: a page as Markdown, the new code of a diff, a figure as SVG or PNG or in a frame elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Page, expect
from visiting import FIGURE, FIRST, Visit, open_page

ERROR = "gallery/errors/backward_twice.html"


@pytest.fixture
def copying(fresh: BrowserContext, origin: str) -> BrowserContext:
    fresh.grant_permissions(["clipboard-read", "clipboard-write"], origin=origin)
    return fresh


def test_the_page_is_copied_as_markdown(copying: BrowserContext, origin: str, site: Path) -> None:
    tab = open_page(copying, origin, FIRST)
    tab.get_by_role("button", name="Copy page").click()
    expect(tab.get_by_role("button", name="Copied")).to_be_visible()
    assert tab.evaluate("navigator.clipboard.readText()") == (site / f"{FIRST}.md").read_text(encoding="utf-8")
    assert tab.get_by_role("link", name="Markdown").get_attribute("href") == Path(FIRST).name + ".md"


def test_of_a_diff_the_new_code_is_copied(copying: BrowserContext, origin: str) -> None:
    tab = open_page(copying, origin, ERROR)
    diff = tab.locator(".in-short .highlight-diff")
    shown = [line for line in diff.locator("pre").inner_text().splitlines() if not line.startswith("-")]
    diff.hover()
    diff.locator("button.copybtn").click()
    copied = tab.evaluate("navigator.clipboard.readText()")
    assert copied.strip().splitlines() == [line[2:].rstrip() for line in shown if line.strip()] and copied.strip()


def test_a_figure_alone_can_be_saved_and_played(opened: Callable[[str], Page], visit: Visit, tmp_path: Path) -> None:
    tab = opened(FIRST)
    link = tab.locator(f".graph-figure:has(#{FIGURE}) .figure-alone")
    link.click()
    tab.wait_for_url("**/figure.html?**")
    figure = tab.locator(f"#{FIGURE}")
    expect(figure.locator("svg.graph")).to_be_visible()
    figure.get_by_role("button", name="One step back").click()
    expect(figure.get_by_role("slider")).not_to_have_value("12")
    for kind, begins in (("SVG", b"<svg"), ("PNG", b"\x89PNG")):
        with tab.expect_download() as saved:
            tab.get_by_role("button", name=f"Save as {kind}").click()
        path = tmp_path / kind
        saved.value.save_as(path)
        assert path.read_bytes().startswith(begins) and path.stat().st_size > 2000
        assert saved.value.suggested_filename == f"{FIGURE}.{kind.lower()}"
    assert tab.locator(".figure-embed input").input_value().startswith('<iframe src="http')
    expect(tab.locator(".figure-of")).to_contain_text("CC BY 4.0")
    assert not visit.errors + visit.other_sites


def test_a_figure_alone_may_stand_on_other_sites_and_no_other_page(fresh: BrowserContext, origin: str) -> None:
    tab = open_page(fresh, origin, FIRST)
    for page, ancestors in (("figure.html", "frame-ancestors *"), (FIRST, "frame-ancestors 'none'")):
        policy = tab.request.get(f"{origin}/{page}").headers["content-security-policy"]
        assert policy.endswith(ancestors), page


def test_the_sidebar_shows_the_page_that_the_reader_is_on(opened: Callable[[str], Page]) -> None:
    for page in (ERROR, "reference/names.html", "about/release-notes.html"):
        expect(opened(page).locator(".sidebar-tree .current-page > a").first).to_be_in_viewport()
