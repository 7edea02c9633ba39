"""Names of PyTorch in code are links to its reference: the first use of each name on a page.

Only the first, for three reasons. A link is a stop of the Tab key, and to make none of it would shut out whoever has no mouse:
an average page has twenty first uses and fifty in all, the glossary a hundred and four hundred. Each link weighs some fifteen
bytes on the wire. And code whose every word is underlined is hard to read.

The text of the code stays as it is, for the button that copies it, the search and the Markdown copy. A link is put into the
lines that Pygments has made, around whole words; a line in which they are not found stays as it is.

No library does it. sphinx-codeautolink takes the class of ``x`` in ``x.backward()`` from hints of types, which the code of a
lesson has not, and edits the pages after they are written. sphinx-gallery's ``reference_url`` is for its own pages, knows a
class only where a run has told it, leaves out code within functions, and asks PyTorch's site in each build.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

from atlas.toolbox import Refusal

from . import inventory
from .code_reader import Use

ATTRIBUTE = "torch_uses"
"""Of a block of code: line, first and last column and name of each link, for the writer."""

#: A word with its class, another tag, or text without a class.
_WORD = re.compile(r"(<span[^>]*>)([^<]*)(</span>)|<[^>]*>|([^<]+)")


def first_uses(shown: Iterable[tuple[nodes.literal_block, Use]]) -> None:
    """Note in each block what will be a link in it, given the uses of a page from its top to its end.

    A use that is a guess is passed over: in a list of pages it does no harm, and a link to another class's method misleads.
    """
    places = inventory.load().places
    seen: set[str] = set()
    for block, use in shown:
        if use.sure and use.name in places and use.name not in seen:
            seen.add(use.name)
            block[ATTRIBUTE] = [*block.get(ATTRIBUTE, []), (use.line, use.start, use.end, use.name)]


def visit(writer: Any, node: nodes.literal_block) -> None:
    """Let Sphinx write a block of code, and put its links in."""
    try:
        type(writer).visit_literal_block(writer, node)
    except nodes.SkipNode:  # so Sphinx says that the block is written
        if uses := node.get(ATTRIBUTE):
            writer.body[-1] = with_links(writer.body[-1], node.astext(), uses)
        raise


def with_links(block: str, code: str, uses: Iterable[tuple[int, int, int, str]]) -> str:
    """The HTML of a block of code, with its links.

    >>> with_links("<pre><span>F</span>.<span>a</span> + b</pre>", "F.a + b", [(0, 0, 3, "no.such.name")])
    '<pre><a href="" title="no.such.name"><span>F</span>.<span>a</span></a> + b</pre>'
    """
    head, opening, rest = block.partition("<pre>")
    inner, closing, tail = rest.rpartition("</pre>")
    lines, source = inner.split("\n"), code.split("\n")
    above = len(code) - len(code.lstrip("\n"))  # Pygments leaves out the empty lines at the top
    for number, start, end, name in sorted(uses, reverse=True):  # from right to left, so that columns stay
        if above <= number < len(lines) + above:
            lines[number - above] = _with_link(lines[number - above], source[number], start, end, name)
    return "".join([head, opening, "\n".join(lines), closing, tail])


def _with_link(line: str, source: str, start: int, end: int, name: str) -> str:
    """A line of HTML with the words from ``start`` to ``end`` as a link; as it is if the words are not there."""
    before, rest = _cut(line, start)
    words, after = _cut(rest, end - start)
    is_whole = words.count("<span") == words.count("</span")
    if not is_whole or _text(before) != source[:start] or _text(words) != source[start:end]:
        return line
    full = "" if source[start:end] == name else f' title="{html.escape(name)}"'
    return f'{before}<a href="{html.escape(inventory.load().address(name))}"{full}>{words}</a>{after}'


def _cut(line: str, column: int) -> tuple[str, str]:
    """A line of HTML in two, before this column. A word that the column is within becomes two words of the same class.

    >>> _cut('<span class="k">@torch</span>.<span>no_grad</span>', 1)
    ('<span class="k">@</span>', '<span class="k">torch</span>.<span>no_grad</span>')
    """
    done = 0
    for found in _WORD.finditer(line):
        opened, closed = found[1] or "", found[3] or ""
        text = html.unescape(found[2] or found[4] or "")
        if done + len(text) > column:
            left, right = (html.escape(part) for part in (text[: column - done], text[column - done :]))
            before, after = (f"{opened}{left}{closed}", f"{opened}{right}{closed}") if left else ("", found[0])
            return line[: found.start()] + before, after + line[found.end() :]
        done += len(text)
    return line, ""


def _text(line: str) -> str:
    return html.unescape(re.sub(r"<[^>]*>", "", line))


def check(app: Sphinx) -> None:
    """Connected to ``builder-inited``.

    :raises Refusal: if the inventory cannot be read.
    """
    try:
        inventory.load()
    except (OSError, ValueError) as error:
        raise Refusal(str(error)) from None


def setup(app: Sphinx) -> None:
    app.connect("builder-inited", check)
    app.add_node(nodes.literal_block, override=True, html=(visit, None))
