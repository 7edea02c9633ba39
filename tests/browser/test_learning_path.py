"""While a reader is on a learning path, the card *Next* leads to its next page."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import Page, expect
from visiting import FIRST

PATHS = "guide/learning-paths.html"


def test_next_follows_the_path_until_it_is_left(opened: Callable[[str], Page]) -> None:
    tab = opened(PATHS)
    path = tab.locator("section", has=tab.get_by_role("heading", name="Fine-tuning a model")).last
    links = path.locator(".card-title a")
    pages = links.evaluate_all("links => links.map(({ href, textContent }) => [href, textContent])")
    links.nth(len(pages) - 3).click()
    card = tab.locator(".next-page")
    for address, title in [*pages[-2:], (tab.url.partition("gallery")[0] + PATHS, "All learning paths")]:
        expect(card.locator(".context")).to_have_text("Next in Fine-tuning a model")
        expect(card.locator(".title")).to_have_text(title)
        tab.reload()
        card.click()
        tab.wait_for_url(address)
    tab.go_back()
    expect(card.locator(".title")).to_have_text("All learning paths")
    last, origin = tab.url, tab.url.partition("gallery")[0]
    for others, said in (([FIRST], "Next in Fine-tuning a model"), ([FIRST, "index.html"], "Next")):
        for other in others:
            tab.goto(origin + other)
        tab.goto(last)
        expect(card.locator(".context")).to_have_text(said)
