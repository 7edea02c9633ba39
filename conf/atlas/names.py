"""The names of PyTorch that each page uses: an index of all pages, and links in the code.

The names are found in the code that a page shows, each time Sphinx reads it, so nobody has to write or update them. The
directive ``names-used`` lists, for each name, the pages that use it.

In the code, the first use of each name on a page is a link to PyTorch's reference. Only the first: a link is a stop of the Tab
key and fifteen bytes on the wire, and code whose every word is underlined is hard to read. The text of the code stays as it is,
for the button that copies it, the search and the Markdown copy: a link is put into the lines that Pygments has made.
sphinx-codeautolink 0.20.0 and sphinx-gallery 0.22.1 find half of these links, and hardly any method of a tensor.

Where the reference has a name, intersphinx knows from ``objects.inv`` beside this file, so a build needs no network;
``conf.py`` says where it is from. It is of one release: 2.13 has the functions of ``torch.cuda.memory`` on other pages.
"""

from __future__ import annotations

import ast
import doctest
import html
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.ext.intersphinx import InventoryAdapter
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

from .code_reader import TorchNames, Use, find_uses, list_other_names
from .folds import make_details
from .page_store import PageStore, connect_for_pages, enable_stores
from .pages import list_pages_in_order
from .toolbox import link_to

logger = logging.getLogger(__name__)

INDEX = "reference/names"
BEFORE_THE_FOLD = 4  # links to pages for each name of the index; the others are in a fold
NOT_WORTH_A_FOLD = 2  # links: so few are shown too
IN_THE_FOLD = 12  # links at most: a list of every page that calls ``backward()`` helps nobody
ABOUT_THE_SITE = "about/"  # its code shows how a page is written

_LINKS = "torch_links"  # of a block of code: line, first and last column, name and address of each link
_PYTHON = {"python", "python3", "ipython", "ipython3", "pycon", "default"}
#: A word with its class, another tag, or text without a class.
_WORD = re.compile(r"(<span[^>]*>)([^<]*)(</span>)|<[^>]*>|([^<]+)")
_STABLE = re.compile(r"https://(?:docs\.)?pytorch\.org/docs/stable/")

# -- Where PyTorch's reference has a name -----------------------------------------------------------


def find_address(env: BuildEnvironment, name: str) -> str:
    """Where the reference explains a name, or the thing that it stands for; empty if nowhere."""
    listed = [named for kind, named in InventoryAdapter(env).main_inventory.items() if kind.startswith("py:")]
    for other in (name, *get_torch_names(env).ask(list_other_names, name)):
        for named in listed:
            if other in named:
                address = named[other].uri
                page = address.partition("#")[0]
                return page if page.endswith(f"/generated/{name}.html") else address  # it begins with the name
    return ""


def lead_to_release(app: Sphinx, document: nodes.document) -> None:
    """Have addresses that are written by hand lead to the release that the site is built with: ``stable`` is another one soon.

    Connected to ``doctree-read``.
    """
    release, _files = app.config.intersphinx_mapping["torch"][1]
    for raw in document.findall(nodes.raw):  # rows of long tables
        if _STABLE.search(raw.astext()):
            raw[:] = [nodes.Text(_STABLE.sub(release, raw.astext()))]
    links = [link for link in document.findall(nodes.reference) if _STABLE.match(link.get("refuri", ""))]
    if not links:
        return
    places = {item.uri for named in InventoryAdapter(app.env).main_inventory.values() for item in named.values()}
    pages = {place.partition("#")[0] for place in places}
    for link in links:
        link["refuri"] = address = _STABLE.sub(release, link["refuri"])
        page, _, anchor = address.partition("#")
        # names are in the inventory with their anchors, other parts of a page are not
        if page not in pages or (anchor.startswith("torch.") and address not in places):
            logger.warning("PyTorch's reference has no %s, or objects.inv is old", address, location=link)


def get_torch_names(env: BuildEnvironment) -> TorchNames:
    """What was asked of PyTorch, kept with the pages. With another PyTorch, or other code here, Sphinx reads all anew."""
    if not hasattr(env, "atlas_torch_names"):
        env.atlas_torch_names = TorchNames()
    return env.atlas_torch_names


# -- What a page uses -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Used:
    """
    :ivar used: the names that a page's code uses, sorted.
    :ivar spoken: those of them that its text has too.
    """

    used: list[str]
    spoken: list[str]


class UsedNames(PageStore[Used]):
    """What each page uses; gathered: what the index says."""

    name = "names"

    def collect(self, app: Sphinx, document: nodes.document) -> Used | None:
        page, torch = app.env.docname, get_torch_names(app.env)
        imports = list(_list_imports(Path(app.srcdir, f"{page}.py")))
        pieces = [] if page.startswith(ABOUT_THE_SITE) else list(list_pieces(document))
        found = list(find_uses([*imports, *(piece.text for piece in pieces)], torch))[len(imports) :]
        mark_first_uses(app.env, ((piece, use) for piece, its in zip(pieces, found, strict=True) for use in its))
        used = sorted({use.name for its in found for use in its})
        said = {word for literal in document.findall(nodes.literal) for word in re.findall(r"\w+", literal.astext())}
        return Used(used, [name for name in used if name.rpartition(".")[2] in said]) if used else None

    def merge_other(self, app: Sphinx, env: BuildEnvironment, docnames: set[str], other: BuildEnvironment) -> None:
        super().merge_other(app, env, docnames, other)
        get_torch_names(env).update(get_torch_names(other))

    def gather(self, app: Sphinx, env: BuildEnvironment) -> list[tuple[str, Used, str]]:
        facts = self.facts(env)
        return [(page, facts[page], env.titles[page].astext()) for page in list_pages_in_order(env) if page in facts]

    def pages_to_write(self, env: BuildEnvironment, before: Any, now: Any) -> Iterable[str]:
        return [] if before == now else [INDEX]


def _list_imports(script: Path) -> Iterator[str]:
    """What an example imports, wherever that stands: a page about an error hides it, and uses the names in the open."""
    try:
        tree = ast.parse(script.read_text(encoding="utf-8"))
    except (OSError, SyntaxError, ValueError):  # no example's page, or one that says that its script failed
        return
    for statement in tree.body:
        if isinstance(statement, (ast.Import, ast.ImportFrom)):
            yield ast.unparse(statement)


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of Python code that a page shows.

    :ivar line: of its block, where the piece begins.
    :ivar indent: the width of what stands before each of its lines: the prompt of a session.
    """

    text: str
    block: nodes.literal_block
    line: int = 0
    indent: int = 0


def list_pieces(document: nodes.document) -> Iterator[Piece]:
    """A block is one piece; a session with prompts is one for each prompt."""
    for block in document.findall(nodes.literal_block):
        if str(block.get("language", "")).lower() in _PYTHON:
            try:
                examples = doctest.DocTestParser().get_examples(block.astext())
            except ValueError:  # not a session with prompts
                examples = []
            for example in examples:
                yield Piece(example.source, block, example.lineno, example.indent + len(">>> "))
            if not examples:
                yield Piece(block.astext(), block)


def mark_first_uses(env: BuildEnvironment, uses: Iterable[tuple[Piece, Use]]) -> None:
    """Note in each block what will be a link in it, given the uses of a page from its top to its end.

    A use that is a guess is passed over: in a list of pages it does no harm, and a link to another class's method misleads.
    """
    seen: set[str] = set()
    for piece, use in uses:
        if use.sure and use.name not in seen and (address := find_address(env, use.name)):
            seen.add(use.name)
            place = use.line + piece.line, use.start + piece.indent, use.end + piece.indent
            piece.block[_LINKS] = [*piece.block.get(_LINKS, []), (*place, use.name, address)]


# -- The index -------------------------------------------------------------------------


class names_index(nodes.General, nodes.Element):
    """The place of an index. Attribute ``parts``: how its names begin; empty for those that no other index of the page has."""


class NamesUsed(SphinxDirective):
    """``{names-used} PART PART ...``: the names that begin with a part, and the pages that use each.

    Without parts: the names that no other ``names-used`` of the page lists.
    """

    optional_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        return [names_index(parts=(self.arguments or [""])[0].split())]


def fill_index(app: Sphinx, document: nodes.document, page: str) -> None:
    """Put the names and their pages in. Connected to ``doctree-resolved``."""
    places = list(document.findall(names_index))
    parts = tuple(part for place in places for part in place["parts"])
    pages: dict[str, list[str]] = {}
    for user in list_pages_in_order(app.env) if places else []:
        if user in UsedNames.facts(app.env):
            for name in UsedNames.facts(app.env)[user].used:
                pages.setdefault(name, []).append(user)
    for place in places:
        own = tuple(place["parts"])
        names = (name for name in pages if (name.startswith(own) if own else not name.startswith(parts)))
        index = nodes.definition_list(classes=["names-used"])
        # what begins with an underscore is for the few who know its name
        for name in sorted(names, key=lambda name: ("._" in name, shorten_name(name).lower(), name)):
            # case stays: ``t`` and ``T`` are two
            term = nodes.term("", "", _link_to_reference(app.env, name), ids=[f"name-{name}"])
            # without the titles, a search for a page's title would find this page too
            where = nodes.definition("", *_link_to_users(app, page, name, pages[name]), classes=["no-search"])
            index += nodes.definition_list_item("", term, where)
        place.replace_self(index)


def _link_to_reference(env: BuildEnvironment, name: str) -> nodes.Node:
    """A name as a link to where PyTorch explains it; on hovering, the full name of one that is shortened."""
    text, address = nodes.literal("", shorten_name(name)), find_address(env, name)
    full = {"reftitle": name} if text.astext() != name else {}
    return nodes.reference("", "", text, refuri=address, internal=False, **full) if address else text


def _link_to_users(app: Sphinx, page: str, name: str, users: list[str]) -> Iterator[nodes.Node]:
    """Links to pages whose text has the name, or else to any that use it. Those beyond the first few are in a fold."""
    speakers = [user for user in users if name in UsedNames.facts(app.env)[user].spoken]
    first = (speakers or users)[:BEFORE_THE_FOLD]
    rest = [user for user in dict.fromkeys([*speakers, *users]) if user not in first]
    if len(rest) <= NOT_WORTH_A_FOLD:
        first, rest = users, []
    yield _join_links(app, page, first)
    if rest:
        listed = rest[: max(IN_THE_FOLD, len(set(speakers) - set(first)))]  # whoever speaks of it is found here
        links = _join_links(app, page, listed)
        if len(rest) > len(listed):
            links += nodes.Text(f" and {len(rest) - len(listed)} more")
        yield make_details(f"{len(rest)} more pages", links)


def _join_links(app: Sphinx, page: str, users: list[str]) -> nodes.paragraph:
    links = nodes.paragraph()
    for user in users:
        links += [*([nodes.Text(" · ")] if len(links) else []), link_to(app, page, user)]
    return links


def shorten_name(name: str) -> str:
    """A method without the module of its class; anything else as it is.

    >>> shorten_name("torch.optim.Optimizer.step"), shorten_name("torch.nn.Linear"), shorten_name("torch.autograd.grad")
    ('Optimizer.step', 'torch.nn.Linear', 'torch.autograd.grad')
    """
    *_modules, cls, last = name.split(".")
    return f"{cls}.{last}" if cls.lstrip("_")[:1].isupper() else name


# -- Links in the code ------------------------------------------------------------------------------


def visit_code(writer: Any, node: nodes.literal_block) -> None:
    """Let Sphinx write a block of code, and put its links in."""
    try:
        type(writer).visit_literal_block(writer, node)
    except nodes.SkipNode:  # so Sphinx says that the block is written
        if links := node.get(_LINKS):
            writer.body[-1] = insert_links(writer.body[-1], node.astext(), links)
        raise


def insert_links(block: str, code: str, links: Iterable[tuple[int, int, int, str, str]]) -> str:
    """The HTML of a block of code, with its links.

    >>> insert_links("<pre><span>F</span>.<span>a</span> + b</pre>", "F.a + b", [(0, 0, 3, "a.name", "page.html")])
    '<pre><a href="page.html" title="a.name"><span>F</span>.<span>a</span></a> + b</pre>'
    """
    head, opening, rest = block.partition("<pre>")
    inner, closing, tail = rest.rpartition("</pre>")
    lines, source = inner.split("\n"), code.split("\n")
    above = len(code) - len(code.lstrip("\n"))  # Pygments leaves out the empty lines at the top
    for number, start, end, name, address in sorted(links, reverse=True):  # from right to left, so that columns stay
        if above <= number < len(lines) + above:
            at, words = number - above, source[number][start:end]
            opened = f'<a href="{html.escape(address)}"' + ("" if words == name else f' title="{html.escape(name)}"')
            before, linked, after = _cut_line(lines[at], start, end)
            is_whole = linked.count("<span") == linked.count("</span")
            if is_whole and _get_text(before) == source[number][:start] and _get_text(linked) == words:
                lines[at] = f"{before}{opened}>{linked}</a>{after}"
    return "".join([head, opening, "\n".join(lines), closing, tail])


def _cut_line(line: str, *columns: int) -> list[str]:
    """A line of HTML in pieces, before each column. A word that a column is within becomes two words of the same class.

    >>> _cut_line('<span class="k">@torch</span>.<span>no_grad</span>', 1, 6)
    ['<span class="k">@</span>', '<span class="k">torch</span>', '.<span>no_grad</span>']
    """
    done = 0
    for found in _WORD.finditer(line):
        opened, closed = found[1] or "", found[3] or ""
        text = html.unescape(found[2] or found[4] or "")
        if done + len(text) > columns[0]:
            at = columns[0] - done
            left, right = (f"{opened}{html.escape(part)}{closed}" for part in (text[:at], text[at:]))
            before, after = (left, right) if at else ("", found[0])
            rest = after + line[found.end() :]
            more = [column - columns[0] for column in columns[1:]]
            return [line[: found.start()] + before, *(_cut_line(rest, *more) if more else [rest])]
        done += len(text)
    return [line, *("" for _ in columns)]


def _get_text(line: str) -> str:
    return html.unescape(re.sub(r"<[^>]*>", "", line))


def setup(app: Sphinx) -> None:
    # sphinx-gallery would make a link of each use, and a node of each word of the code
    others = app.registry.post_transforms
    others[:] = [transform for transform in others if transform.__name__ != "CodeLinksTransform"]
    app.add_node(names_index)
    app.add_node(nodes.literal_block, override=True, html=(visit_code, None))
    app.add_directive("names-used", NamesUsed)
    connect_for_pages(app, "doctree-read", lead_to_release)
    enable_stores(app, UsedNames)
    connect_for_pages(app, "doctree-resolved", fill_index)
