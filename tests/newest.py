"""Build the site with another PyTorch, and tell what is otherwise than in build/html: ``nox -s newest -- 2.15.0``.

The report is Markdown. First what the build complained of; then each output and table that differs, with the sentences before
and after it; at last the sentences that name a release. Times, and all else in a box of class ``varies``, are left out. A
difference is told to readers if its section names a release of PyTorch, which a box ``torch-changed`` does too. The program
ends with 1 if a page fails, or if a difference is not told.
"""

from __future__ import annotations

import difflib
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from build_twice import build_copy
from markup import OUTPUTS, read, text_of
from sources import ROOT

#: What is read of a page, in order: sentences, and what the build made; and what is left out.
SENTENCES = "h1, h2, h3, p, figcaption"
MADE = f"{OUTPUTS}, tr, svg desc"
LEFT_OUT = ".varies, .no-search, .claims, .built, .eyebrow, .provenance"
RELEASE = re.compile(r"(?i)(?:torch|\b(?:on|since|from|in|before|until|to|under|and)) 2\.[1-9]\d(?!\d)")
#: What each release does otherwise and no sentence is about: its own number, and lines of its sources.
OF_EACH_RELEASE = re.compile(r"(?<=torch==)[\w.+]+|(?<=\.cpp:)\d+|(?<=/whl/)cu\d+|(?<=For CUDA )[\d.]+")
#: What is PyTorch's own, copied or measured: these pages say at their head of which release.
OF_PYTORCH = {f"reference/{name}.html" for name in ("formulas", "names", "operators", "versions")} | {
    "then-and-now.html",
    "genindex.html",
    "about/release-notes.html",
}


class Part(NamedTuple):
    """A sentence or a piece of output, with its section."""

    section: str
    is_made: bool
    text: str


def read_parts(page: Path) -> list[Part]:
    """The parts of a built page, but for outputs that vary."""
    section, parts = "", []
    for element in read(page).select_one("article").select(f"{SENTENCES}, {MADE}"):
        if element.select_one(MADE) or element.css.closest(LEFT_OUT):
            continue
        section = text_of(element) if element.name in ("h1", "h2", "h3") else section
        is_made = element.name in ("pre", "tr", "desc", "div")
        lines = element.get_text().splitlines() if element.name == "pre" else [text_of(element)]
        lines = (OF_EACH_RELEASE.sub("...", " ".join(line.split())) for line in lines)
        parts += [Part(section, is_made, line) for line in lines if line]
    return parts


def compare_pages(old: list[Part], new: list[Part]) -> Iterator[tuple[bool, str]]:
    """Each difference between two builds of a page: whether its section names a release, and what to print."""
    told = {part.section for part in (*old, *new) if not part.is_made and RELEASE.search(part.text)}
    texts = [[part[1:] for part in parts] for parts in (old, new)]
    for kind, first, last, begin, end in difflib.SequenceMatcher(None, *texts, autojunk=False).get_opcodes():
        if kind == "equal":
            continue
        pairs = (("-", old[first:last]), ("+", new[begin:end]))
        around = [part.text for part in old[:first] if not part.is_made][-1:]
        after = [part.text for part in old[last:] if not part.is_made][:1]
        lines = [f"{sign} {part.text[:300]}" for sign, parts in pairs for part in parts[:20]]
        section = (old[first:last] or new[begin:end])[0].section
        text = "\n".join([f"> {section}", *(f"> {one[:400]}" for one in around), "```diff", *lines, "```"])
        yield section in told, text + "".join(f"\n> {one[:400]}" for one in after) + "\n"


def write_report(pinned: Path, newest: Path, complaints: str) -> tuple[str, bool]:
    """The report on two built sites, and whether the newer one is right: nothing fails, and what differs is told."""
    parts, naming = {True: [], False: []}, []
    for name in sorted(path.relative_to(pinned).as_posix() for path in pinned.rglob("*.html")):
        if not (newest / name).exists():
            parts[False].append(f"### {name}\n\nis missing\n")
            continue
        if not read(pinned / name).select_one("article"):
            continue
        old, new = (read_parts(site / name) for site in (pinned, newest))
        for told, text in compare_pages(old, new):
            parts[told or name in OF_PYTORCH].append(f"### {name}\n\n{text}")
        sentences = (one for part in new if not part.is_made for one in re.split(r"(?<=[.:]) (?=[A-Z`])", part.text))
        naming += [f"- {name}: {one}" for one in sentences if RELEASE.search(one) and name not in OF_PYTORCH]
    report = [
        f"## What the build says\n\n```text\n{complaints.strip() or 'nothing'}\n```",
        f"## Differences that no sentence tells: {len(parts[False])}\n",
        *parts[False],
        f"## Differences in sections that name a release: {len(parts[True])}\n",
        *parts[True],
        f"## Sentences that name a release: {len(naming)}\n",
        *naming,
    ]
    return "\n".join(report) + "\n", not complaints.strip() and not parts[False]


def main(python: str) -> int:
    """Build with the PyTorch of another Python, write the report, and say whether there is something to do."""
    pinned, folder = ROOT / "build" / "html", ROOT / "build" / "newest"
    if not (pinned / "index.html").exists():
        sys.exit("newest: build/html is what the other site is compared with: run `nox -s docs` first")
    warnings = folder / "warnings.txt"
    site = build_copy(folder, python=python, warnings=warnings)
    report, is_right = write_report(pinned, site, warnings.read_text(encoding="utf-8"))
    (folder / "report.md").write_text(report, encoding="utf-8")
    print(
        f"newest: build/newest/report.md has what differs; {'all of it is told' if is_right else 'mend what is not told'}"
    )
    return 0 if is_right else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
