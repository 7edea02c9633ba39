"""A page about an error has the message for a title, as the build printed it, and names what else people search for."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from bs4 import BeautifulSoup

import error_pages
from markup import read, text_of

AT_LEAST = 70


def faults(pages: list[error_pages.ErrorPage]) -> list[str]:
    """What would keep a reader from finding one of the pages."""
    times = Counter(symptom.lower() for page in pages for symptom in page.symptoms)
    found = [f"two pages have the symptom {symptom!r}" for symptom, number in times.items() if number > 1]
    for page in pages:
        if not page.symptoms:
            found.append(f"{page.address} names no symptom, with '.. index::' and '   ! single: SYMPTOM'")
        found += [
            f"{page.address}: {s!r} is in its title already" for s in page.symptoms if s.lower() in page.title.lower()
        ]
    return found


def test_each_message_was_raised_by_the_build(site: Path, root: Path) -> None:
    missing = [
        page for page in error_pages.all_of(root) if not error_pages.message(page.title, read(site / page.address))
    ]
    assert not missing, (
        "the title of each page must be in an output of it, word for word; PyTorch may say it otherwise now"
    )


def test_there_are_enough(root: Path) -> None:
    assert len(error_pages.all_of(root)) >= AT_LEAST


def test_symptoms_lead_to_one_page_each(root: Path) -> None:
    others = [page for page in error_pages.with_symptoms(root) if not page.address.startswith("gallery/errors/")]
    assert not faults(error_pages.all_of(root) + others)


def test_the_index_has_every_message_and_every_symptom(site: Path, root: Path) -> None:
    index = text_of(read(site / "gallery/errors/index.html").article).lower()
    wanted = [page.title for page in error_pages.all_of(root)]
    wanted += [symptom for page in error_pages.with_symptoms(root) for symptom in page.symptoms]
    assert not [words for words in wanted if words.lower() not in index]


def test_the_index_has_no_cards(site: Path) -> None:
    """The list names the same pages, and with cards it would be forty screens of a phone."""
    index = read(site / "gallery/errors/index.html")
    assert index.select(".symptoms li") and not index.select(".cards, .sphx-glr-thumbcontainer")


def test_a_message_that_is_worded_otherwise_is_found() -> None:
    page = (
        '<div class="sphx-glr-script-out"><pre>RuntimeError: nothing\nto be seen</pre></div><p>nothing was seen</p>'
    )
    tree = BeautifulSoup(page, "html.parser")
    assert error_pages.message("nothing to be seen", tree) == "RuntimeError: nothing to be seen"
    assert error_pages.message("nothing was seen", tree) is None


@pytest.mark.parametrize(
    ("symptoms", "said"),
    [((), "names no symptom"), (("Went Wrong",), "in its title already"), (("loss is NaN",), "two pages")],
)
def test_a_page_that_cannot_be_found_is_at_fault(tmp_path: Path, symptoms: tuple[str, ...], said: str) -> None:
    script = tmp_path / "page.py"
    lines = "".join(f"   ! single: {symptom}\n" for symptom in symptoms)
    script.write_text(f'r"""\nIt went wrong\n=============\n\n.. index::\n{lines}\nWhy.\n"""\n')
    other = error_pages.ErrorPage("gallery/errors/other.html", "Another", ("Loss is nan",))
    (fault,) = faults([error_pages.read(script), other])
    assert said in fault
