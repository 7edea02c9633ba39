"""What pages tell the site: the base class of all that is collected while pages are read.

A feature that needs facts from every page (names, cards, the search, ...) is a subclass of ``PageStore``. It says what it
collects from one page, what it makes of all pages together, and which pages show that. The rest is here, on Sphinx's
``EnvironmentCollector``: forgetting a page that is read again, merging what parallel processes read, keeping both from build
to build, and the order in which the stores work.

Sphinx calls a handler of ours for each page. An exception in one would end the build in a traceback that names neither the
page nor the way out; ``connect_for_pages`` makes an error of it, with the page and our line, and the build goes on.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from docutils import nodes
from sphinx.environment.collectors import EnvironmentCollector
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.environment import BuildEnvironment

logger = logging.getLogger(__name__)

Fact = TypeVar("Fact")

#: Stores collect after all that shapes a page (Sphinx's default is 500), and gather before pages are chosen to be written.
_FIRST = 700


class PageStore(EnvironmentCollector, Generic[Fact]):
    """What each page tells about one subject.

    A subclass sets ``name`` and, if it needs what others have collected, ``after``; it overrides ``collect``, and ``gather``
    and ``pages_to_write`` if pages show something of other pages.
    """

    name: ClassVar[str]
    after: ClassVar[tuple[type[PageStore[Any]], ...]] = ()

    # -- What a subclass says --------------------------------------------------------------------

    def collect(self, app: Sphinx, document: nodes.document) -> Fact | None:
        """What the page that has been read tells; None for nothing. ``app.env.docname`` is its name."""
        return None

    def gather(self, app: Sphinx, env: BuildEnvironment) -> Any:
        """What all pages together come to, kept as ``gathered``. It must be comparable with ``==``, and picklable."""
        return None

    def pages_to_write(self, env: BuildEnvironment, before: Any, now: Any) -> Iterable[str]:
        """The pages to write again because of what was gathered. ``before`` is what the last HTML build gathered, or None.

        Without an answer of its own: the pages whose entry has changed, where ``now`` is a dict by page.
        """
        if not isinstance(now, dict):
            return []
        before = before if isinstance(before, dict) else {}
        return [page for page in now.keys() | before.keys() if now.get(page) != before.get(page)]

    # -- What others ask -------------------------------------------------------------------------

    @classmethod
    def facts(cls, env: BuildEnvironment) -> dict[str, Fact]:
        """What each page told, by page."""
        return _kept(env, "atlas_facts").setdefault(cls.name, {})

    @classmethod
    def gathered(cls, env: BuildEnvironment) -> Any:
        """What ``gather`` made of all pages in this build; None before that."""
        return _kept(env, "atlas_gathered").get(cls.name)

    # -- What Sphinx calls -----------------------------------------------------------------------

    def clear_doc(self, app: Sphinx, env: BuildEnvironment, docname: str) -> None:
        """Forget a page that is read again, or gone."""
        self.facts(env).pop(docname, None)

    def merge_other(self, app: Sphinx, env: BuildEnvironment, docnames: set[str], other: BuildEnvironment) -> None:
        """Take over what another process collected."""
        theirs = self.facts(other)
        self.facts(env).update((page, theirs[page]) for page in docnames if page in theirs)

    def process_doc(self, app: Sphinx, doctree: nodes.document) -> None:
        """Keep what the page tells, which has just been read."""
        fact = self.collect(app, doctree)
        if fact is not None:
            self.facts(app.env)[app.env.docname] = fact

    def get_updated_docs(self, app: Sphinx, env: BuildEnvironment) -> list[str]:
        """Gather, and name the pages to write again. What another builder sees, the pages of HTML do not show yet."""
        now = self.gather(app, env)
        _kept(env, "atlas_gathered")[self.name] = now
        if app.builder.format != "html":
            return []
        written = _kept(env, "atlas_gathered_in_html")
        before, written[self.name] = written.get(self.name), now
        return sorted(page for page in set(self.pages_to_write(env, before, now)) if page in env.found_docs)


class ListingPages(PageStore[bool]):
    """The pages on which a list of other pages stands. They are written again when what the list says has changed."""

    place: ClassVar[type[nodes.Element]]
    """The node where the list is put in."""

    def collect(self, app: Sphinx, document: nodes.document) -> bool | None:
        return any(True for _ in document.findall(self.place)) or None

    def pages_to_write(self, env: BuildEnvironment, before: Any, now: Any) -> Iterable[str]:
        return self.facts(env) if before != now else []


def add_place(app: Sphinx, name: str, place: type[nodes.Element]) -> None:
    """Add the node where a list is put in, and its directive, which takes nothing and holds nothing."""
    app.add_node(place)
    app.add_directive(name, type(name, (SphinxDirective,), {"run": lambda _self: [place()]}))


def _kept(env: BuildEnvironment, name: str) -> dict[str, Any]:
    """A dict in the environment, which Sphinx keeps from build to build."""
    if not hasattr(env, name):
        setattr(env, name, {})
    return getattr(env, name)


def enable_stores(app: Sphinx, *stores: type[PageStore[Any]]) -> None:
    """Connect the stores to Sphinx's events, each after those that it names in ``after``, wherever those are enabled."""
    for kind in stores:
        store, priority = kind(), _FIRST + _count_levels(kind)
        app.connect("env-purge-doc", store.clear_doc, priority)
        app.connect("env-merge-info", store.merge_other, priority)
        connect_for_pages(app, "doctree-read", store.process_doc, priority)
        app.connect("env-updated", store.get_updated_docs, priority)


def _count_levels(store: type[PageStore[Any]]) -> int:
    """How many stores must work before this one, one after the other."""
    return max((1 + _count_levels(before) for before in store.after), default=0)


# -- A handler that fails is an error of its page -------------------------------------------------


def connect_for_pages(app: Sphinx, event: str, handler: Callable[..., Any], priority: int = 500) -> None:
    """``app.connect`` for a handler of one page: an exception in it is an error of the page, and the build goes on.

    :param event: ``doctree-read``, ``doctree-resolved`` or ``html-page-context``.
    """

    def guarded(app: Sphinx, *arguments: Any) -> Any:
        try:
            return handler(app, *arguments)
        except Exception as error:
            page = next((word for word in arguments if isinstance(word, str)), app.env.docname)
            log_page_error(page, error, handler)
            return None

    app.connect(event, guarded, priority)


def log_page_error(page: str, error: Exception, handler: Callable[..., Any]) -> None:
    """Say that ``handler`` failed on a page: where on the page, what was raised, and where in our code."""
    where = page
    if isinstance(error, SyntaxError) and error.filename:  # of the code that was read, not of ours
        where = f"{error.filename}:{error.lineno}"
    frame = traceback.extract_tb(error.__traceback__)[-1]
    ours = f"{handler.__module__}.{handler.__qualname__}, {Path(frame.filename).name}:{frame.lineno}"
    logger.error("%s: %s (in %s)", type(error).__name__, error, ours, location=where)
