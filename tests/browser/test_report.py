"""A reader reports a passage: by what is selected, by keyboard, and by the mouse; the text stays where it is."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import parse_qs, urlsplit

import axe
import pytest
from page_scripts import run_script
from playwright.sync_api import BrowserContext, Locator, Page, expect
from serving import Server
from visiting import Visit, open_page

from tiny.tiny_site import build, written

SAID = "A sentence that a reader may doubt."
PAGE = f"# A page\n\nFirst.\n\n## The part\n\n{SAID} Another one.\n\n```python\nx = 1\ny = 2\n```\n"
WHERE = "https://autograd-atlas.example/page.html"


@pytest.fixture(scope="module")
def origin(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ATLAS_REPOSITORY", "https://github.com/someone/atlas")
        done = build(written(tmp_path_factory.mktemp("report"), {"docs/page.md": PAGE}))
    assert done.code == 0, done.output
    with server(done.out) as address:
        yield address


@pytest.fixture
def tab(origin: str, fresh: BrowserContext, visit: Visit) -> Iterator[Page]:
    yield open_page(fresh, origin, "page.html", visit)
    assert not visit.errors + visit.other_sites


def issue(link: Locator) -> tuple[str, str]:
    """The title and the text of the issue that a link opens."""
    fields = parse_qs(urlsplit(link.get_attribute("href")).query)
    return fields["title"][0], fields["body"][0]


def test_an_issue_is_about_the_page_or_what_is_selected_by_keyboard(tab: Page) -> None:
    link = tab.locator(".report a")
    link.focus()
    title, body = issue(link)
    assert (title, body.splitlines()[0]) == ("A page", f"Page: {WHERE}")
    link.blur()
    run_script(tab, "selectWords", SAID)
    link.focus()
    title, body = issue(link)
    assert title == "A page: The part"
    assert body.startswith(f"> {SAID}\n\nPage: {WHERE}#the-part\nPyTorch: ")
    assert "Another one" not in body


def rest_on(tab: Page, block: str) -> Locator:
    tab.locator(block).hover()
    mark = tab.locator(".report-mark")
    expect(mark).to_be_visible()
    return mark


@pytest.mark.parametrize(
    ("block", "quoted"),
    [("#the-part p", f"> {SAID} Another one.\n\n"), ("#the-part .highlight", "> x = 1\n> y = 2\n\n")],
)
def test_the_mark_beside_a_passage_is_about_it(tab: Page, block: str, quoted: str) -> None:
    title, body = issue(rest_on(tab, block))
    assert title == "A page: The part"
    assert body.startswith(f"{quoted}Page: {WHERE}#the-part\n")


def test_the_mark_can_be_reached_and_moves_nothing(tab: Page) -> None:
    blocks = "[...document.querySelectorAll('article *')].map(one => JSON.stringify(one.getBoundingClientRect()))"
    before = tab.evaluate(blocks)
    mark = rest_on(tab, "#the-part p")
    assert tab.evaluate(blocks) == before
    text, box = tab.locator("#the-part p").bounding_box(), mark.bounding_box()
    assert box["x"] >= text["x"] + text["width"] and box["width"] >= 24 and box["height"] >= 24
    mark.hover()
    expect(mark).to_be_visible()
    tab.mouse.move(5, 5)
    expect(mark).to_be_hidden()


def test_no_mark_while_somebody_reads_on_or_where_there_is_no_margin(tab: Page) -> None:
    for width, rests in [(1280, False), (390, True)]:
        tab.set_viewport_size({"width": width, "height": 800})
        tab.locator("#the-part p").hover()
        if not rests:
            tab.mouse.move(5, 5)
        tab.wait_for_timeout(1000)
        expect(tab.locator(".report-mark")).to_be_hidden()
    assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing(tab: Page, theme: str) -> None:
    tab.emulate_media(color_scheme=theme)
    rest_on(tab, "#the-part p")
    axe.inject(tab)
    assert not [*axe.faults(tab), *axe.color_faults(tab, axe.Looks())]


def test_an_address_stays_short_enough_for_any_host(tab: Page) -> None:
    # no taller than the window: to scroll would be to point at nothing
    tab.add_style_tag(content="#the-part p { height: 3rem; overflow: hidden; }")
    tab.evaluate("document.querySelector('#the-part p').textContent = 'word '.repeat(5000)")
    assert len(rest_on(tab, "#the-part p").get_attribute("href")) < 6000
