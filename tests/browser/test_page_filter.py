"""Above many entries a filter leaves those that have a reader's words; a link within the page finds its entry all the same."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect
from visiting import open_page

#: By page: the label, a word to type, the heads of entries, and whether the word may stand outside of a head.
FILTERS = {
    "reference/glossary.html": ("Filter the terms", "view", "dl.glossary > dt", True),
    "reference/names.html": ("Filter the names", "grad", "dl.names-used > dt", False),
    "then-and-now.html": ("Filter the rows", "zero_grad", "article section section section", True),
}


def texts(tab: Page, heads: str) -> list[str]:
    """What is shown of each entry that is shown, its definition too."""
    return tab.evaluate(
        """heads => [...document.querySelectorAll(heads)].filter(head => head.checkVisibility()).map(head => {
          let text = head.textContent, next = head;
          while (head.localName === "dt" && (next = next.nextElementSibling)?.localName === "dd") text += next.textContent;
          return text.toLowerCase();
        })""",
        heads,
    )


@pytest.mark.parametrize("address", FILTERS)
def test_it_leaves_what_has_the_word(fresh: BrowserContext, origin: str, address: str) -> None:
    label, word, heads, anywhere = FILTERS[address]
    tab = open_page(fresh, origin, address)
    every = texts(tab, heads)
    expect(tab.locator(".page-filter output")).to_have_text(f"{len(every)} of {len(every)} {label.split()[-1]}")
    tab.get_by_label(label).fill(word.upper())
    found = texts(tab, heads)
    assert 0 < len(found) < len(every) / 2 and all(word in text for text in found)
    if anywhere:
        assert len(found) == sum(word in text for text in every)
    expect(tab.locator(".page-filter output")).to_have_text(f"{len(found)} of {len(every)} {label.split()[-1]}")
    tab.get_by_label(label).fill("")
    assert texts(tab, heads) == every


@pytest.mark.parametrize("address", FILTERS)
def test_nothing_of_an_entry_is_left_alone(fresh: BrowserContext, origin: str, address: str) -> None:
    label, _word, _heads, _anywhere = FILTERS[address]
    tab = open_page(fresh, origin, address)
    tab.get_by_label(label).fill("no entry has these words")
    for left in ("dl.glossary > *", "dl.names-used > *", "article section section section"):
        assert tab.locator(f"{left}:visible").count() == 0


def test_a_part_without_an_entry_left_is_not_shown(fresh: BrowserContext, origin: str) -> None:
    tab = open_page(fresh, origin, "reference/names.html")
    parts = tab.locator("article section section:visible").count()
    tab.get_by_label("Filter the names").fill("Tensor.grad_fn")
    assert tab.locator("article section section:visible").count() == 1 < parts


def test_a_link_within_the_page_finds_its_entry(fresh: BrowserContext, origin: str) -> None:
    tab = open_page(fresh, origin, "reference/glossary.html")
    tab.get_by_label("Filter the terms").fill("AccumulateGrad")
    expect(tab.locator("#term-Jacobian")).to_be_hidden()
    tab.locator("article li a", has_text="Jacobian").first.click()
    expect(tab.locator("#term-Jacobian")).to_be_in_viewport()
    expect(tab.get_by_label("Filter the terms")).to_have_value("")


def test_without_scripts_there_is_no_filter(browser: Browser, origin: str) -> None:
    with browser.new_context(java_script_enabled=False) as context:
        tab = open_page(context, origin, "reference/glossary.html")
        expect(tab.locator(".page-filter")).to_be_hidden()
        expect(tab.locator("#term-Jacobian")).to_be_visible()
