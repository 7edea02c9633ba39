"""A page about an error has the message for a title, as the build printed it, and names what else people search for.

It helps in its first screen: the *In short* box has the cause, a diff from code that raises to code that does not, and
what only hides the error. Both sides of the diff have run: what it takes away is in the first code cell, which raises the
message, and what it adds is in a later one. A message that this build cannot raise is quoted; the first cell then raises what
the CPU says.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from bs4 import BeautifulSoup
from sphinx_gallery.py_source_parser import split_code_and_text_blocks

import error_pages
from markup import read, text_of


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


def faults_of_form(title: str, page: BeautifulSoup, cells: list[str]) -> list[str]:
    """What a page about an error lacks.

    :param cells: the code of the page, cell by cell, hidden parts included.
    """
    box = page.select_one(".in-short")
    diff = box.select_one(".highlight-diff pre") if box else None
    if diff is None:
        return ["no In short box with a '.. code-block:: diff' from the code that raises to the code that does not"]
    found = faults_of_diff(diff.get_text().splitlines(), [set(map(code_of, cell.splitlines())) for cell in cells])
    if not any(strong.get_text().startswith("Not this") for strong in box.select("strong")):
        found.append("the box does not say what only hides the error: begin a paragraph with '**Not this:**'")
    shown = [*page.select(error_pages.OUTPUTS)[:1], *page.select(error_pages.QUOTED)]
    if not any(title in text_of(each) for each in shown):
        found.append("the first output is not the message of the title, and nor is a '.. quoted-message:: ADDRESS'")
    return found


def faults_of_diff(diff: list[str], cells: list[set[str]]) -> list[str]:
    found = []
    if not 2 <= len(diff) <= 8 or not any(line.startswith(("-", "+")) for line in diff):
        found.append("a diff has 2 to 8 lines, with '-' or '+' before those that change")
    for line in diff:
        sign, code = line[:1], code_of(line[1:])
        if code and sign in ("-", " ") and code not in cells[0]:
            found.append(f"{code!r} is in the diff and not in the first code cell, which raises the message")
        if code and sign in ("+", " ") and not any(code in cell for cell in cells[1:]):
            found.append(f"{code!r} is in the diff and in no code cell after the first, so it did not run")
    return found


def code_of(line: str) -> str:
    """A line without its indentation and without a comment at its end."""
    return line.partition("  # ")[0].strip()


def test_the_first_screen_helps(site: Path, root: Path) -> None:
    found = {}
    for script in sorted((root / "examples" / "errors").glob("*.py")):
        page = error_pages.read(script)
        blocks = split_code_and_text_blocks(str(script))[1]
        cells = [block[1] for block in blocks if block[0] == "code"]
        found[script.name] = faults_of_form(page.title, read(site / page.address), cells)
    assert not {name: faults for name, faults in found.items() if faults}


DIFF = "- y += 1\n+ y = y + 1\n  y.backward()\n"
FORM = f"""<div class="in-short"><div class="highlight-diff"><pre>{DIFF}</pre></div><p><strong>Not this:</strong> no</p></div>
<div class="sphx-glr-script-out"><pre>RuntimeError: it went wrong. A hint.</pre></div>"""
FIRST, SECOND = "try:\n    y += 1\n    y.backward()\nexcept ...", "y = y + 1  # a new tensor\ny.backward()\n"


@pytest.mark.parametrize(
    ("old", "new", "cells", "says"),
    [
        ("", "", [FIRST, SECOND], None),
        ("in-short", "other", [FIRST, SECOND], "no In short box"),
        ("Not this", "But not", [FIRST, SECOND], "begin a paragraph with '**Not this:**'"),
        ("it went wrong", "else", [FIRST, SECOND], "the first output is not the message"),
        (DIFF, "- y += 1", [FIRST, SECOND], "a diff has 2 to 8 lines"),
        ("", "", ["", SECOND], "'y += 1' is in the diff and not in the first code cell"),
        ("", "", [FIRST], "'y = y + 1' is in the diff and in no code cell after the first"),
    ],
)
def test_what_the_first_screen_lacks_is_said(old: str, new: str, cells: list[str], says: str | None) -> None:
    found = faults_of_form("it went wrong", BeautifulSoup(FORM.replace(old, new), "html.parser"), cells)
    assert any(says in fault for fault in found) if says else not found
