"""The names of PyTorch that each page uses: in a line at the end of the page, and in an index of all pages.

The names are found in the code that the page shows, each time Sphinx reads the page, so nobody has to write or update them.
The directive ``names-used`` lists, for each name, the pages that use it. The line at the end of a page is short. A name is in
the line if

- the page's code uses the name, and the page's text has it as a literal, such as ````retain_grad````,
- at most half of the pages with code use the name, which leaves out ``torch.tensor`` and ``backward``,
- the name is in no private module,

and of these at most ten are shown, those that the fewest pages use first.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.docutils import SphinxDirective

from atlas.folds import make_details
from atlas.page_parts.navigation_order import in_order
from atlas.toolbox import link_to

from . import inventory, links, shown_code
from .code_reader import uses
from .torch_api import TorchNames

INDEX = "reference/names"
LONGEST = 10  # names in the line of a page
SHARE = 1 / 2  # of the pages with code: a name that more pages use does not set a page apart
BEFORE_THE_FOLD = 4  # links to pages for each name of the index; the others are in a fold
NOT_WORTH_A_FOLD = 2  # links: so few are shown too
IN_THE_FOLD = 12  # links at most: a list of every page that calls ``backward()`` helps nobody
ABOUT_THE_SITE = "about/"  # its code shows how a page is written


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


# -- What a page uses --------------------------------------------------------------------------------


def read(app: Sphinx, document: nodes.document) -> None:
    """Keep which names a page's code uses and its text has. Connected to ``doctree-read``."""
    env, page = app.env, app.env.docname
    imports = list(_imports(Path(app.srcdir, f"{page}.py")))
    shown = [] if page.startswith(ABOUT_THE_SITE) else list(shown_code.pieces(document))
    found = list(uses([*imports, *(piece.text for piece in shown)], _torch_names(env)))[len(imports) :]
    links.first_uses(
        (piece.block, piece.in_block(use)) for piece, its in zip(shown, found, strict=True) for use in its
    )
    used = {use.name for its in found for use in its}
    _used(env)[page] = sorted(used)
    spoken = {word for literal in document.findall(nodes.literal) for word in re.findall(r"\w+", literal.astext())}
    _spoken(env)[page] = sorted(name for name in used if name.rpartition(".")[2] in spoken)


def _imports(script: Path) -> Iterator[str]:
    """What an example imports, wherever that stands: a page about an error hides it, and uses the names in the open."""
    try:
        tree = ast.parse(script.read_text(encoding="utf-8"))
    except (OSError, SyntaxError, ValueError):  # no example's page, or one that says that its script failed
        return
    for statement in tree.body:
        if isinstance(statement, (ast.Import, ast.ImportFrom)):
            yield ast.unparse(statement)


def _used(env: BuildEnvironment) -> dict[str, list[str]]:
    return _kept(env, "atlas_names_used")


def _spoken(env: BuildEnvironment) -> dict[str, list[str]]:
    return _kept(env, "atlas_names_spoken")


def _torch_names(env: BuildEnvironment) -> TorchNames:
    """What was asked of PyTorch, kept with the pages. With another PyTorch, or other code here, Sphinx reads all anew."""
    if not hasattr(env, "atlas_torch_names"):
        env.atlas_torch_names = TorchNames()
    return env.atlas_torch_names


def _kept(env: BuildEnvironment, name: str) -> dict[str, Any]:
    """An attribute of the environment, which Sphinx keeps from build to build."""
    if not hasattr(env, name):
        setattr(env, name, {})
    return getattr(env, name)


def forget(app: Sphinx, env: BuildEnvironment, page: str) -> None:
    """Connected to ``env-purge-doc``."""
    _used(env).pop(page, None)
    _spoken(env).pop(page, None)


def merge(app: Sphinx, env: BuildEnvironment, pages: Iterable[str], other: BuildEnvironment) -> None:
    """Take over what another process read. Connected to ``env-merge-info``."""
    for page in pages:
        _used(env)[page] = _used(other)[page]
        _spoken(env)[page] = _spoken(other)[page]


# -- What all pages use ------------------------------------------------------------------------------


def gather(app: Sphinx, env: BuildEnvironment) -> list[str]:
    """Choose the names of each page's line, and name the pages to write: those whose line has changed.

    The page of the index is written when a name, a page, a title or the order of pages has changed.
    Connected to ``env-updated``.
    """
    counts = Counter(name for used in _used(env).values() for name in used)
    most = SHARE * sum(map(bool, _used(env).values()))
    now = {page: _choose(_spoken(env)[page], counts, most) for page in sorted(_spoken(env))}
    env.atlas_names_shown = now
    if app.builder.format != "html":  # what another builder sees, the pages do not show yet
        return []
    listed = [(page, _used(env)[page], _spoken(env)[page], env.titles[page].astext()) for page in _in_order(env)]
    before, listed_before = getattr(env, "atlas_names_in_html", ({}, None))
    env.atlas_names_in_html = now, listed
    changed = {page for page in now if now[page] != before.get(page, [])}
    if listed != listed_before:
        changed |= {page for page in env.found_docs if page == INDEX}
    return sorted(changed)


def _choose(spoken: Iterable[str], counts: Counter[str], most: float) -> list[str]:
    public = [name for name in spoken if counts[name] <= most and "._" not in name.rpartition(".")[0]]
    return sorted(public, key=lambda name: (counts[name], name))[:LONGEST]


def fill(app: Sphinx, document: nodes.document, page: str) -> None:
    """Put the index in. Connected to ``doctree-resolved``."""
    places = list(document.findall(names_index))
    parts = tuple(part for place in places for part in place["parts"])
    order = _in_order(app.env) if places else []
    for place in places:
        own = tuple(place["parts"])
        place.replace_self(
            _index(
                app, page, order, lambda name, own=own: name.startswith(own) if own else not name.startswith(parts)
            )
        )


def names_line(app: Sphinx, page: str) -> nodes.paragraph | None:
    """The line for the foot of a page; None for one whose code uses no name that sets it apart.

    It is made when the page is written: which names are common depends on all pages.
    """
    shown = app.env.atlas_names_shown.get(page)
    if not shown:
        return None
    # the words are on the page already; the search would count them twice
    line = nodes.paragraph("", "", nodes.Text("PyTorch used here:"), classes=["names-used", "no-search"])
    for name in shown:
        line += nodes.Text(" " if name == shown[0] else ", ")
        text = nodes.literal("", short(name))
        if INDEX in app.env.found_docs:
            text = link_to(app, page, INDEX, text, after=f"#{anchor(name)}")
        line += text
    return line


def _index(app: Sphinx, page: str, order: list[str], is_in: Callable[[str], bool]) -> nodes.Node:
    pages: dict[str, list[str]] = {}
    for user in order:
        for name in filter(is_in, _used(app.env)[user]):
            pages.setdefault(name, []).append(user)
    index = nodes.definition_list(classes=["names-used"])
    # what begins with an underscore is for the few who know its name
    for name in sorted(pages, key=lambda name: ("._" in name, short(name).lower(), name)):
        term = nodes.term("", "", _to_the_reference(name), ids=[anchor(name)])
        # without the titles, a search for a page's title would find this page too
        where = nodes.definition("", *_pages(app, page, name, pages[name]), classes=["no-search"])
        index += nodes.definition_list_item("", term, where)
    return index


def _to_the_reference(name: str) -> nodes.Node:
    """A name as a link to where PyTorch explains it; on hovering, the full name of one that is shortened."""
    text, address = nodes.literal("", short(name)), inventory.load().address(name)
    if not address:
        return text
    full = {"reftitle": name} if text.astext() != name else {}
    return nodes.reference("", "", text, refuri=address, internal=False, **full)


def _pages(app: Sphinx, page: str, name: str, users: list[str]) -> Iterator[nodes.Node]:
    """Links to pages whose text has the name, or else to any that use it. Those beyond the first few are in a fold."""
    speakers = [user for user in users if name in _spoken(app.env)[user]]
    first = (speakers or users)[:BEFORE_THE_FOLD]
    rest = [*speakers, *(user for user in users if user not in speakers)]
    rest = [user for user in rest if user not in first]
    if len(rest) <= NOT_WORTH_A_FOLD:
        first, rest = users, []
    yield _links(app, page, first)
    if rest:
        listed = rest[: max(IN_THE_FOLD, len(set(speakers) - set(first)))]  # whoever speaks of it is found here
        links = _links(app, page, listed)
        if len(rest) > len(listed):
            links += nodes.Text(" " + "and %s more" % (len(rest) - len(listed)))
        yield make_details(f"{len(rest)} more pages", links)


def _links(app: Sphinx, page: str, users: list[str]) -> nodes.paragraph:
    links = nodes.paragraph()
    for user in users:
        if len(links):
            links += nodes.Text(" · ")
        links += link_to(app, page, user)
    return links


def _in_order(env: BuildEnvironment) -> list[str]:
    """The pages with code, in the order in which the navigation has them."""
    return [page for page in in_order(env) if _used(env).get(page)]


def anchor(name: str) -> str:
    """Case stays: ``Tensor.t`` and ``Tensor.T`` are two.

    >>> anchor("torch.Tensor.retain_grad")
    'name-torch.Tensor.retain_grad'
    """
    return f"name-{name}"


def short(name: str) -> str:
    """A method without the module of its class; anything else as it is.

    >>> short("torch.optim.Optimizer.step"), short("torch.nn.Linear"), short("torch.autograd.grad")
    ('Optimizer.step', 'torch.nn.Linear', 'torch.autograd.grad')
    """
    *_modules, cls, last = name.split(".")
    return f"{cls}.{last}" if cls.lstrip("_")[:1].isupper() else name


def _skip(self: Any, node: nodes.Element) -> None:
    """Without a page to link to there is nothing to show."""
    raise nodes.SkipNode


def setup(app: Sphinx) -> None:
    app.add_node(names_index, html=(_skip, None))
    app.add_directive("names-used", NamesUsed)
    app.connect("doctree-read", read)
    app.connect("env-purge-doc", forget)
    app.connect("env-merge-info", merge)
    app.connect("env-updated", gather)
    app.connect("doctree-resolved", fill)
