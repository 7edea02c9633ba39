"""What fails a page: each fault is an error with file and line, and the file is the one that an author edits.

- An output with a memory address or a path of the machine that built the page: either differs from build to build.
- A ``>>>`` of a page under ``docs/`` that no doctest runs.
- A page that is not UTF-8.
- ``examples/pages.toml`` that does not fit the scripts, and two pages with one title.

Sphinx reads the pages that sphinx-gallery makes of scripts, so it would name ``docs/gallery/graphs/zero.rst:40``, which nobody
edits. ``place_log_in_scripts`` names ``examples/graphs/zero.py:23`` instead, in every warning and error, whoever has found it.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from docutils import nodes
from sphinx.util.logging import getLogger

from .page_store import connect_for_pages
from .pages import check_pages
from .toolbox import Refusal, find_wrong_encoding

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.environment import BuildEnvironment

logger = getLogger(__name__)

# -- Sources ----------------------------------------------------------------------------------------


def check_encodings(app: Sphinx, env: BuildEnvironment, pages: list[str]) -> None:
    """See that Sphinx can read the pages. Connected to ``env-before-read-docs``.

    :raises Refusal: if it cannot: Sphinx itself would end in a traceback that does not name the file.
    """
    if wrong := [fault for page in sorted(pages) if (fault := find_wrong_encoding(Path(env.doc2path(page))))]:
        raise Refusal("\n".join(wrong))


# -- Outputs ----------------------------------------------------------------------------------------

TOO_LONG = 88

#: Folders at the root of a machine in which sources, programs and temporary files are.
FOLDERS = ("home", "root", "tmp", "usr", "opt", "var", "work", "Users", "mnt", "private")

_FORBIDDEN = {
    "a memory address": re.compile(r"\b0x[0-9a-fA-F]{6,}\b"),
    "a path of this machine": re.compile(rf"(?:(?<=file://)|(?<![\w.:/]))/(?:{'|'.join(FOLDERS)})/[\w.-]+"),
}
_MESSAGE = re.compile(r"(?:^|\s)(?:\w+\.)*\w*(?:Error|Warning): ", re.MULTILINE)
_ALIGNED = re.compile(r"\S {3,}\S|-{6,}|={6,}")


def find_traces(output: str) -> list[str]:
    """What an output shows and must not, in words.

    >>> find_traces("<MulBackward0 object at 0x7f2a0ef090b0>")
    ['a memory address: 0x7f2a0ef090b0']
    >>> find_traces("w = 0.25, see torch/autograd")
    []
    """
    return [f"{what}: {match[0]}" for what, pattern in _FORBIDDEN.items() if (match := pattern.search(output))]


def is_prose(output: str) -> bool:
    """Whether the lines that are too long may be broken: none of them is part of a table.

    >>> is_prose("RuntimeError: " + "long words " * 20), is_prose("name    calls" + " " * 90 + "x")
    (True, False)
    """
    return not any(_ALIGNED.search(line) for line in output.splitlines() if len(line) > TOO_LONG)


def choose_style(output: str) -> list[str]:
    """The class that ``atlas.css`` knows such an output by, if any.

    Long prose is wrapped, and so is the message of an error, which must stand whole on a phone. A table that is wider than the
    column of text gets all the width there is.

    >>> [choose_style(text) for text in ("fused=True   TypeError: no", "name" + " " * 90 + "calls", "x = 1")]
    [['wrap'], ['wide'], []]
    """
    longest = max(map(len, output.splitlines()), default=0)
    if (_MESSAGE.search(output) or longest > TOO_LONG) and is_prose(output):
        return ["wrap"]
    return ["wide"] if longest > TOO_LONG else []


def check_outputs(app: Sphinx, document: nodes.document) -> None:
    """Report what the outputs of a page must not show, and mark those to wrap."""
    for block in document.findall(nodes.literal_block):
        # sphinx-gallery puts the class on the block, or on the quote around it
        if "sphx-glr-script-out" not in [*block["classes"], *block.parent.get("classes", [])]:
            continue
        text = block.astext()
        for fault in find_traces(text):
            logger.error(
                "the output of this example shows %s; print a name or a value instead", fault, location=block
            )
        block["classes"] += choose_style(text)
    for raw in document.findall(nodes.raw):
        text = raw.astext()
        if raw.get("format") == "html" and "output_subarea" in text:
            for fault in find_traces(text):
                logger.error("the table of this example shows %s; show a name or a value", fault, location=raw)
            # pandas leaves the corner of a table empty: an empty cell, not a heading of nothing
            raw[:] = [nodes.Text(text.replace("<th></th>", "<td></td>"))]


# -- Doctests ---------------------------------------------------------------------------------------

_PROMPT = re.compile(r"^\s*>>>( |$)", re.MULTILINE)


def find_unrun_doctests(document: nodes.document) -> Iterator[nodes.Element]:
    """The blocks with prompts that no doctest runs. Outputs of code cells may show prompts.

    In Markdown only the ``{doctest}`` directive is run. A plain fence with ``>>>`` looks the same to the reader and is never
    tried. A ``>>>`` outside of any fence Markdown takes for a quote in a quote in a quote.
    """
    for kind in (nodes.literal_block, nodes.doctest_block):
        for block in document.findall(kind):
            is_left_alone = "testnodetype" in block or "output" in block["classes"]  # marks of Sphinx and of MyST-NB
            if _PROMPT.search(block.astext()) and not is_left_alone:
                yield block
    for quote in document.findall(nodes.block_quote):
        around = [quote.parent, quote.parent.parent]
        is_third = all(isinstance(node, nodes.block_quote) for node in around)
        if is_third and not isinstance(around[-1].parent, nodes.block_quote):
            yield quote


def check_doctests(app: Sphinx, document: nodes.document) -> None:
    """Report the prompts of a Markdown page that ``nox -s doctest`` does not run."""
    if app.env.doc2path(app.env.docname).suffix == ".md":
        for block in find_unrun_doctests(document):
            message = "this example is never run: put it into a {doctest} directive, ```{doctest} … ```"
            logger.error(message, location=block)


# -- The site as a whole ----------------------------------------------------------------------------


def check_site(app: Sphinx, env: BuildEnvironment) -> None:
    """Report where ``pages.toml`` does not fit the scripts beside it, and pages that have one title."""
    examples = _examples_of(app)
    if not (examples / "pages.toml").is_file():
        return  # a tiny site of a test
    scripts = [path.relative_to(examples).with_suffix("").as_posix() for path in sorted(examples.glob("*/*.py"))]
    for where, fault in check_pages(examples / "pages.toml", scripts):
        logger.error("%s: %s", where, fault)
    pages_of: dict[str, list[str]] = {}
    for page in sorted(env.titles.keys() & env.found_docs):
        pages_of.setdefault(env.titles[page].astext(), []).append(page)
    for title, (first, *others) in pages_of.items():
        for page in others:
            other = place_in_script(f"{env.doc2path(first)}:1", app)
            logger.error("this page has the title of %s: %r; give each its own", other, title, location=(page, 1))


# -- Where a fault is -------------------------------------------------------------------------------

_FROM_LINES = re.compile(r"\.\. GENERATED FROM PYTHON SOURCE LINES (\d+)-\d+")

#: What a line of a script has and the same line of a page has not, or not in the same number.
_MARKS = re.compile(r"""^[rR]?(\"{3}|'{3})|[\s#\\]""")


def _examples_of(app: Sphinx) -> Path:
    return Path(app.srcdir, app.config.sphinx_gallery_conf["examples_dirs"]).resolve()


def place_in_script(location: str, app: Sphinx) -> str:
    """The place in the script that a page of the gallery was made of; of any other page, the place as it is.

    :param location: ``PATH.rst``, ``PATH.rst:`` or ``PATH.rst:LINE``.
    """
    path, _, line = location.partition(".rst")
    gallery = Path(app.srcdir, app.config.sphinx_gallery_conf["gallery_dirs"])
    page, number = Path(f"{path}.rst"), line.strip(":").partition(":")[0]
    if not page.is_relative_to(gallery) or not page.is_file():
        return location
    source = _examples_of(app) / page.relative_to(gallery)
    source = source.with_name("GALLERY_HEADER.rst") if page.stem == "index" else source.with_suffix(".py")
    if not source.is_file():
        return location
    if not number.isdigit():
        return str(source)
    texts = [file.read_text(encoding="utf-8-sig").splitlines() for file in (page, source)]
    return f"{source}:{find_line_of_script(*texts, int(number))}"


def find_line_of_script(page: list[str], script: list[str], line: int) -> int:
    """The line of a script of which sphinx-gallery made a line of a page.

    It writes above each block where in the script it begins. Below, lines of text and of code follow in their order; what the
    script hides is missing, and what the code has put out is added. An added line has the place of the last line before it.

    >>> script = ['"Title"', "", "# %%", "# Some text.", "# More.", "", "x = 1", "x"]
    >>> page = ["Title", "", ".. GENERATED FROM PYTHON SOURCE LINES 4-6", "", "Some text.", "More."]
    >>> find_line_of_script(page, script, 6)
    5
    """
    begins = [(at, int(found[1])) for at, text in enumerate(page) if (found := _FROM_LINES.match(text))]
    at, first = max((begin for begin in begins if begin[0] < line), default=(0, 1))
    end = next((later - 1 for other, later in begins if other > at), len(script))
    sources = [_MARKS.sub("", text) for text in script]
    place, first_left = next((number for number in range(first, end + 1) if sources[number - 1]), first), first
    for text in (_MARKS.sub("", text) for text in page[at:line]):
        same = next((number for number in range(first_left, end + 1) if text and sources[number - 1] == text), None)
        if same:
            place, first_left = same, same + 1
    return place


def place_log_in_scripts(app: Sphinx) -> None:
    """Have Sphinx's log place in the script what is placed on a page of the gallery."""

    def place(record: logging.LogRecord) -> bool:
        location = getattr(record, "location", None)
        if isinstance(location, str) and ".rst" in location:
            record.location = place_in_script(location, app)
        return True

    for handler in logging.getLogger("sphinx").handlers:
        handler.addFilter(place)  # behind Sphinx's own filters, which make text of a location


def setup(app: Sphinx) -> None:
    app.connect("env-before-read-docs", check_encodings)
    connect_for_pages(app, "doctree-read", check_outputs)
    connect_for_pages(app, "doctree-read", check_doctests)
    app.connect("env-updated", check_site)  # in every build, also in one that reads no page
    place_log_in_scripts(app)
