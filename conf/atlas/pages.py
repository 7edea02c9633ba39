"""``examples/pages.toml``: the order in which a reader meets chapters and pages, the groups of errors, and the tags.

One table a chapter, one line a page: ``first_graph = ["beginner", "graph"]`` is a page with its tags, in its place.
sphinx-gallery reads tags from the scripts, where a change of a tag would run the script again, and make its recording one of
another script.
"""

from __future__ import annotations

import posixpath
import re
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from sphinx.errors import ConfigError

if TYPE_CHECKING:
    from sphinx.environment import BuildEnvironment

FILE = Path(__file__).parents[2] / "examples" / "pages.toml"
ERRORS = "gallery/errors/"  # where the pages about errors are
MOST_TAGS = 3  # of one page
_KEYS = {"tags": list, "chapters": dict, "errors": dict, "begin": list}


@dataclass(frozen=True, slots=True)
class Pages:
    """What ``examples/pages.toml`` says."""

    tags: list[str]
    """All tags, in the order in which the filter has them."""
    chapters: dict[str, dict[str, list[str]]]
    """The pages of each chapter in the order of reading, each with its tags."""
    errors: dict[str, list[str]]
    """Groups of pages about errors, as ``chapter/page``, by the title of the group."""
    begin: list[str]
    """Names of pages that the search shows before a question is typed."""

    @property
    def order(self) -> list[str]:
        """All pages in the order of reading, as ``chapter/page``."""
        return [f"{chapter}/{page}" for chapter, pages in self.chapters.items() for page in pages]

    @property
    def tags_of(self) -> dict[str, list[str]]:
        """The tags of each page, which is named as ``chapter/page``."""
        return {f"{chapter}/{page}": tags for chapter, pages in self.chapters.items() for page, tags in pages.items()}


@cache
def read_pages(file: Path = FILE) -> Pages:
    """Read the file.

    :raises ConfigError: if it is no TOML; the message names line and column. Sphinx prints it alone, where conf.py reads it.
    """
    try:
        found = tomllib.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ConfigError(f"{file}: this file is no TOML: {error}") from None
    return Pages(*(found.get(key, kind()) for key, kind in _KEYS.items()))


def page_order(file_name: str) -> tuple[int, str]:
    """Sort key for an example's file name: its place in its chapter; pages that are not named come last.

    sphinx-gallery insists on page names that are unique in the whole gallery, so one count serves all chapters.

    >>> sorted(["zero.py", "leaves_and_roots.py", "first_graph.py"], key=page_order)
    ['first_graph.py', 'leaves_and_roots.py', 'zero.py']
    """
    name = file_name.removesuffix(".py")
    places = {page.rpartition("/")[2]: place for place, page in enumerate(read_pages().order)}
    return places.get(name, len(places)), name


def check_pages(file: Path, scripts: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Where the file does not fit the scripts that are there, as a path with its line, and what to do there.

    :param scripts: as ``chapter/page``.
    """
    name = f"{file.parent.name}/{file.name}"
    try:
        pages = read_pages(file)
    except (OSError, ConfigError) as error:
        yield name, str(error)
        return
    text, known, tags_of = file.read_text(encoding="utf-8"), set(scripts), pages.tags_of
    for page in sorted(known - tags_of.keys()):
        chapter, _, script = page.partition("/")
        yield (
            f"examples/{page}.py",
            f'name this page in {name}: {script} = ["TAG"] below [chapters.{chapter}], in its place',
        )
    for page, tags in tags_of.items():
        where = f"{name}:{_line_of_page(text, page)}"
        if page not in known:
            yield where, f"there is no page {page}: remove this line"
        if not 1 <= len(tags) <= MOST_TAGS or len(set(tags)) < len(tags):
            yield where, f"a page has one to {MOST_TAGS} tags, each once"
        for tag in tags:
            if tag not in pages.tags:
                yield where, f"there is no tag {tag!r}: choose from {', '.join(pages.tags)}"
    for tag in pages.tags:
        if not any(tag in tags for tags in tags_of.values()):
            yield f"{name}:{_line_of(text, re.escape(repr(tag)[1:-1]))}", f"no page has the tag {tag!r}: remove it"
    grouped = [page for group in pages.errors.values() for page in group]
    for page in sorted({page for page in known if page.startswith("errors/")} - set(grouped)):
        yield f"examples/{page}.py", f"name this page in a group of [errors] in {name}"
    for page in sorted(set(grouped)):
        if page not in known or grouped.count(page) > 1:
            yield (
                f"{name}:{_line_of(text, re.escape(page))}",
                f"{page}: a group names pages that are there, each once",
            )


def _line_of_page(text: str, page: str) -> int:
    chapter, _, name = page.partition("/")
    return _line_of(text, rf"\[chapters\.{re.escape(chapter)}\]", rf"^{re.escape(name)}\s*=")


def _line_of(text: str, *patterns: str) -> int:
    """The number of the first line that has the last pattern, behind lines that have those before it; 1 if there is none."""
    waiting = list(patterns)
    for number, line in enumerate(text.splitlines(), 1):
        if re.search(waiting[0], line):
            del waiting[0]
            if not waiting:
                return number
    return 1


# -- Pages as Sphinx knows them ---------------------------------------------------------------------


def list_pages_in_order(env: BuildEnvironment) -> list[str]:
    """The pages that the navigation leads to, in its order. A page that stands in two places has the first."""
    return list(env.collect_relations())


def is_example(page: str) -> bool:
    """
    >>> is_example("gallery/graphs/first_graph"), is_example("gallery/graphs/index"), is_example("gallery/index")
    (True, False, False)
    """
    return page.startswith("gallery/") and page.count("/") == 2 and not page.endswith("/index")


def find_group(page: str) -> str:
    """The title of the group that a page about an error is in; empty for any other page."""
    groups = read_pages().errors.items()
    return next((title for title, pages in groups if page.removeprefix("gallery/") in pages), "")


def resolve_link(env: BuildEnvironment, page: str, kind: str, target: str) -> str:
    """The page to which a ``:ref:`` or ``:doc:`` of ``page`` leads; empty if to none."""
    if kind == "ref":
        return env.domains.standard_domain.anonlabels.get(target, ("",))[0]
    return posixpath.normpath(posixpath.join(f"/{page}", "..", target))[1:]
