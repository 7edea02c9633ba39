"""Make a page: its script, its name in the reading order, the links to it. All is written, or nothing."""

from __future__ import annotations

import keyword
import re
import runpy
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from atlas.related import tags

from . import places, templates

ORDER = "conf/atlas/reading_order.py"
TAGS = f"examples/{tags.FILE}"
LONGEST_TITLE = 118  # as it stands in a script, which may have lines of 128
_NAME = re.compile(r"[a-z][a-z0-9_]{0,49}")


class PageError(Exception):
    """Why there is no new page; the message has the way out."""


@dataclass(frozen=True, slots=True)
class Wish:
    """What somebody asks for."""

    where: str
    """``chapter/page``."""
    title: str
    after: str | None = None
    """A page of the same chapter."""
    group: str | None = None
    """Of the list of errors, as its title begins."""


def make(root: Path, wish: Wish) -> list[Path]:
    """Write all files of a new page, and return them: its script is the first.

    :param root: of the repository.
    :raises PageError: if there can be no such page.
    """
    source = (root / ORDER).read_text(encoding="utf-8")
    order = runpy.run_path(str(root / ORDER))
    chapter, page = _checked(root, wish, order["CHAPTERS"])
    if chapter == "errors":
        changed, beside = places.named(source, "ERRORS", _group(wish, order["ERRORS"]), page, None), {}
    else:
        changed = places.named(source, "CHAPTERS", chapter, page, wish.after)
        pages = dict(order["CHAPTERS"])
        at = pages[chapter].index(wish.after) + 1 if wish.after else len(pages[chapter])
        pages[chapter] = [*pages[chapter][:at], page, *pages[chapter][at:]]
        beside = dict(zip(("Before", "Next"), places.neighbors(pages, chapter, page), strict=True))
    items = "\n".join(places.item(word, other) for word, other in beside.items() if other)
    made = {root / "examples" / chapter / f"{page}.py": templates.script(chapter, page, wish.title.strip(), items)}
    made[root / ORDER] = changed
    made[root / TAGS] = _tagged((root / TAGS).read_text(encoding="utf-8"), chapter, page)
    for word, other in zip(("Next", "Before"), beside.values(), strict=False):
        if other:
            path = root / "examples" / f"{other}.py"
            made[path] = places.with_neighbor(path.read_text(encoding="utf-8"), word, f"{chapter}/{page}")
    for path, text in made.items():
        path.write_text(text, encoding="utf-8")
    return list(made)


def _checked(root: Path, wish: Wish, chapters: dict[str, list[str]]) -> tuple[str, str]:
    """Chapter and name of a page that can be made."""
    chapter, slash, page = wish.where.removeprefix("examples/").removesuffix(".py").partition("/")
    if not wish.where:
        raise PageError('name the page, and what people search for: nox -s new -- graphs/my_page "Title"')
    if not slash:
        raise PageError(f"{wish.where!r} has no chapter: write it as chapter/page, as in graphs/{page or 'my_page'}")
    if chapter not in chapters:
        raise PageError(f"there is no chapter {chapter!r}; the chapters are {', '.join(chapters)}")
    if not _NAME.fullmatch(page) or keyword.iskeyword(page):
        raise PageError(
            f"{page!r} is no name for a script: use at most 50 of a-z, digits and underscores, and begin with a letter"
        )
    there = [path for path in sorted((root / "examples").glob("*/*.py")) if path.stem == page]
    if there:
        path = there[0].relative_to(root).as_posix()
        raise PageError(f"there is {path} already, and a page's name is its own in all chapters: choose another")
    _check_title(wish.title)
    if wish.after is not None and (chapter == "errors" or wish.after not in chapters[chapter]):
        known = "; pages about errors have groups: --group" if chapter == "errors" else ", ".join(chapters[chapter])
        raise PageError(f"--after {wish.after!r} names no page of the chapter's order: {known}")
    if wish.group is not None and chapter != "errors":
        raise PageError("--group is for pages about errors; use --after PAGE")
    return chapter, page


def _check_title(title: str) -> None:
    if not title.strip():
        raise PageError("a page needs a title: the words that people type into a search, or the message of an error")
    forms = (templates.in_rst(title.strip()), templates.in_python(title.strip()))
    if max(map(len, forms)) > LONGEST_TITLE or not title.strip().isprintable() or '"""' in title:
        raise PageError(f'a title is one line of at most {LONGEST_TITLE} characters, without """')


def _tagged(text: str, chapter: str, page: str) -> str:
    """The file of the tags with the new page, which gets the tag that most pages of its chapter have."""
    said = tags.read(text)
    counts = Counter(word for name, words in said.of.items() if name.startswith(f"{chapter}/") for word in words)
    usual = [word for word, _ in counts.most_common(1)] or said.words[:1]
    return tags.with_page(text, f"{chapter}/{page}", usual, "to write: the tags of this page")


def _group(wish: Wish, groups: dict[str, list[str]]) -> str:
    """The group of errors whose title begins as the wish says."""
    found = [title for title in groups if wish.group and title.lower().startswith(wish.group.lower())]
    if len(found) != 1:
        known = "\n".join(f"  --group {title!r}" for title in groups)
        raise PageError(f"say in which group of the list of errors the page stands, with one of\n{known}")
    return found[0]
