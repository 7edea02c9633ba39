"""The site's own search: what of each page it can find, the file that the browser reads, and the boxes to search from.

Sphinx's own search wants every word of a question on one page, and fetches each page that it found to quote it. This one
takes any word, weighs it by its rarity (``search_index``), and fetches no page. ``conf/static/search_engine.js`` answers.

``.. search-box:: LABEL`` is a form. Without JavaScript it leads to the page of the search, which lists all pages; with it, what
is typed or pasted is answered below the box. ``.. all-pages::`` is that list.

``.. symptoms::`` lists the pages about errors, group by group, each with what people say who have its problem.

The groups are in ``examples/pages.toml``. What people say of a page stands in the page, as main index entries, and goes from
there into the search and into this list. A filter stands above it; without scripts the groups can be unfolded.

Code is not searched word by word: the names of PyTorch that it uses come from ``names``, others from its imports, its messages
from its outputs.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from html import escape
from pathlib import Path
from posixpath import commonprefix
from typing import Any

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective
from sphinx.util.index_entries import split_index_msg

from .folds import make_details
from .names import UsedNames, list_pieces
from .page_store import ListingPages, PageStore, add_place, connect_for_pages, enable_stores
from .pages import list_pages_in_order, read_pages
from .search_index import (
    PAGE,
    QUESTIONS,
    Found,
    find_fix,
    find_older_wordings,
    find_raised,
    kind_of_page,
    make_index,
    read_other_wordings,
    read_questions,
    split_words,
)
from .tables import make_filter_form
from .toolbox import link_to, one_line, write_whole

logger = logging.getLogger(__name__)

FILE = "search-index.js"
LIST = 50  # entries at one place: they name the rows of a list
#: What holds no prose. What is marked ``no-search`` is on another page already, or varies.
_NO_PROSE = (nodes.literal_block, nodes.raw, nodes.math, nodes.math_block, nodes.comment, nodes.title, addnodes.index)

# -- What of a page can be found --------------------------------------------------------------------


class SearchedPages(PageStore[Found]):
    """All pages as the search knows them.

    To make words of a page takes longer than all else that the index needs, so it is done once, when the page is read.
    """

    name = "search"
    after = (UsedNames,)

    def collect(self, app: Sphinx, document: nodes.document) -> Found:
        page = app.env.docname
        first = next(iter(document.findall(nodes.title)), None)
        title = one_line(first.astext()) if first else page
        lead = app.env.metadata[page].get("og:description", "")
        symptoms, entries, rows = _find_entries(document)
        sections = list(_find_sections(document))
        messages, fix = find_raised(document), find_fix(document)
        wordings = find_older_wordings(document) if fix else {}
        measured = read_other_wordings(Path(app.srcdir), page) if fix else set()
        messages |= dict.fromkeys(sorted(measured.difference(messages)), "")
        names = UsedNames.facts(app.env).get(page)
        texts = {
            "title": [title],
            "symptoms": symptoms,
            "entries": entries,
            "rows": [name for name, _anchor in rows],
            "sections": [heading for _anchor, heading in sections],
            "lead": [lead],
            "messages": [*messages, *wordings],
            "spoken": names.spoken if names else [],
            "used": names.used if names else [],
            "others": _find_other_names(document),
            "body": _find_prose(document),
        }
        return Found(
            title=title,
            lead=lead,
            symptoms=symptoms,
            row_anchor=commonprefix([anchor for _name, anchor in rows]),
            sections=sections,
            messages=messages,
            wordings=wordings,
            fix=fix,
            fields={name: Counter(split_words(" ".join(parts))) for name, parts in texts.items()},
        )


def _find_entries(document: nodes.document) -> tuple[list[str], list[str], list[tuple[str, str]]]:
    """The main index entries, the others, and those of a long list, each with its anchor."""
    main, others, rows = [], [], []
    for index in document.findall(addnodes.index):
        if isinstance(index.parent, nodes.term):  # of a glossary: it is a part of its page
            continue
        is_list = len(index["entries"]) >= LIST
        for kind, value, anchor, emphasis, _category in index["entries"]:
            said = [one_line(part) for part in split_index_msg(kind, value)]
            if is_list:
                rows += [(name, anchor) for name in said]
            else:
                (main if emphasis == "main" else others).extend(said)
    return main, others, rows


def _find_sections(document: nodes.document) -> Iterator[tuple[str, str]]:
    """What has an anchor of its own: headings below the title, terms of a glossary with their translation."""
    sections = list(document.findall(nodes.section))
    for section in sections[1:]:
        if section["ids"] and isinstance(section[0], nodes.title):
            yield section["ids"][0], one_line(section[0].astext())
    for item in document.findall(nodes.definition_list_item):
        term = item[0]
        if isinstance(term.parent.parent.parent, addnodes.glossary) and term["ids"]:
            translation = next(iter(item[-1].findall(nodes.emphasis)), "")
            yield term["ids"][0], one_line(f"{term.astext()} {translation and translation.astext()}")


def _find_other_names(document: nodes.document) -> Iterator[str]:
    """What the code imports that is not PyTorch's, and the names that it takes out of that: ``gc``, ``gc.collect``."""
    code = "\n".join(piece.text for piece in list_pieces(document))
    for imported in set(re.findall(r"^\s*(?:from|import) (?!torch|__future__)([\w., ]+)", code, re.MULTILINE)):
        yield imported.replace(" import ", " ").replace(" as ", " ")
        yield from set(re.findall(rf"\b{imported.split()[-1]}\.[\w.]+", code))


def _find_prose(node: nodes.Node) -> Iterator[str]:
    """The text of a page without its code, title, formulas, and what says ``no-search``."""
    if isinstance(node, nodes.Text):
        yield one_line(node)
    elif not isinstance(node, _NO_PROSE) and "no-search" not in getattr(node, "attributes", {}).get("classes", []):
        for child in node.children:
            yield from _find_prose(child)


# -- The file ---------------------------------------------------------------------------------------


def write_search_index(app: Sphinx, exception: Exception | None) -> None:
    """Write ``search-index.js``: a script and no JSON, so that it loads from a folder too, where a browser refuses to fetch."""
    if exception is None and app.builder.name == "html":
        questions = read_questions(Path(app.srcdir).parent / "examples" / QUESTIONS)
        for page in sorted(questions.keys() - app.env.found_docs):
            logger.error("examples/%s: there is no page %s", QUESTIONS, page, type="atlas", subtype="questions")
            app.statuscode = 1
        index = make_index(SearchedPages.facts(app.env), questions, app.builder.get_target_uri)
        data = json.dumps(index, ensure_ascii=False, separators=(",", ":"))
        write_whole(Path(app.outdir, FILE), f"window.atlasSearchIndex={data}\n")


def leave_out_index_of_sphinx(app: Sphinx) -> None:
    """Sphinx's own search is not made: neither its index nor its page."""
    if app.builder.name == "html":
        app.builder.search = False


# -- What an author can put on a page ---------------------------------------------------------------


class search_box(nodes.General, nodes.Element):
    """A box. Attributes ``label``, and ``rows``: how many lines of a traceback it shows."""


class all_pages(nodes.General, nodes.Element):
    """The place of the list of all pages."""


class SearchBox(SphinxDirective):
    """``.. search-box:: LABEL``, with ``:rows:``, the lines that it shows."""

    required_arguments = 1
    final_argument_whitespace = True
    option_spec = {"rows": directives.positive_int}  # noqa: RUF012 -- as docutils has it

    def run(self) -> list[nodes.Node]:
        return [search_box(label=one_line(self.arguments[0]), rows=self.options.get("rows", 1))]


def make_form(label: str, rows: int, action: str) -> str:
    """The HTML of a box.

    >>> make_form("Search", 1, "search.html").startswith('<form class="search-here" role="search" action="search.html"')
    True
    """
    return (
        f'<form class="search-here" role="search" action="{escape(action)}"><label>{escape(label)}'
        f'<textarea name="q" rows="{rows}" placeholder="RuntimeError: …" '
        f'autocomplete="off" spellcheck="false" required></textarea></label>'
        f"<button>Search</button></form>"
    )


def _visit_box(self: Any, node: search_box) -> None:
    action = self.builder.get_relative_uri(self.builder.current_docname, PAGE)
    self.body.append(make_form(node["label"], node["rows"], action))
    raise nodes.SkipNode


class PagesWithAllPages(ListingPages):
    """Where the list of all pages stands. Gathered: their names and titles, in the order of the navigation."""

    name = "all-pages"
    place = all_pages

    def gather(self, app: Sphinx, env: BuildEnvironment) -> list[tuple[str, str]]:
        order = dict.fromkeys([*list_pages_in_order(env), *sorted(env.found_docs)])
        known = [page for page in order if page in env.titles and kind_of_page(page) != "i"]
        return [(page, env.titles[page].astext()) for page in known]


def fill_all_pages(app: Sphinx, document: nodes.document, page: str) -> None:
    """Put the list of all pages in."""
    for place in list(document.findall(all_pages)):
        chapters: dict[str, nodes.bullet_list] = {}
        for name, title in PagesWithAllPages.gathered(app.env):
            chapter = name.rpartition("/")[0]
            item = nodes.list_item("", nodes.paragraph("", "", link_to(app, page, name, title)))
            chapters.setdefault(chapter, nodes.bullet_list()).append(item)
        parts: list[nodes.Node] = []
        for chapter, pages in chapters.items():
            parts += [nodes.rubric("", _title_of_chapter(app.env, chapter)), pages]
        place.replace_self(nodes.container("", *parts, classes=["all-pages", "no-search"]))


def _title_of_chapter(env: BuildEnvironment, chapter: str) -> str:
    index = f"{chapter}/index"
    if index in env.titles:
        return env.titles[index].astext()
    return {"": "The site", "guide": "Guide", "reference": "Reference", "about": "About"}.get(chapter, chapter)


def fill_page_not_found(app: Sphinx, page: str, template: str, context: dict[str, Any], document: Any) -> None:
    """The page for an address that leads nowhere: the search, asked for the words of the address.

    It is filled after sphinx-notfound-page has, whose links lead from any depth.
    """
    if page == app.config.notfound_pagename and PAGE in app.env.found_docs:
        box = make_form("Words, a name, or a traceback", 1, context["pathto"](PAGE)).replace(
            'class="search-here"', 'class="search-here" data-asked-by-address', 1
        )
        links = [
            f'<li><a href="{context["pathto"](name)}">{escape(app.env.titles[name].astext())}</a></li>'
            for name in read_pages().begin
            if name in app.env.titles
        ]
        words = "There is no page at this address. It may have moved: what were you looking for?"
        context["title"] = "Page not found"
        context["body"] = f"<h1>Page not found</h1><p>{words}</p>{box}<p>Or begin here:</p><ul>{''.join(links)}</ul>"


# -- Pages about errors -----------------------------------------------------------------------------

#: Of each group its title, and of each page in it the name, the title and the symptoms.
Groups = list[tuple[str, list[tuple[str, str, list[str]]]]]


class symptom_list(nodes.General, nodes.Element):
    """The place of the list."""


class PagesWithSymptoms(ListingPages):
    """Where the list stands."""

    name = "symptoms"
    place = symptom_list
    after = (SearchedPages,)

    def gather(self, app: Sphinx, env: BuildEnvironment) -> Groups:
        """What the list says. A page of another chapter may be in a group, and a small site has not all pages."""
        known = SearchedPages.facts(env)
        groups = []
        for title, names in read_pages().errors.items():
            pages = [page for name in names if (page := f"gallery/{name}") in known]
            groups.append((title, [(page, known[page].title, known[page].symptoms) for page in pages]))
        return groups


def fill_symptoms(app: Sphinx, document: nodes.document, page: str) -> None:
    """Put the list in."""
    for place in list(document.findall(symptom_list)):
        above = make_filter_form("symptoms")
        filled = nodes.container("", classes=["symptoms"])
        for title, pages in PagesWithSymptoms.gathered(app.env):
            listed = nodes.bullet_list("", *(_make_item(app, page, *said) for said in pages))
            filled += make_details(title, listed, is_open=True)
        place.replace_self([above, filled])


def _make_item(app: Sphinx, page: str, name: str, title: str, symptoms: list[str]) -> nodes.list_item:
    link = nodes.paragraph("", "", link_to(app, page, name, title))
    return nodes.list_item("", link, nodes.paragraph("", " · ".join(symptoms)))


def setup(app: Sphinx) -> None:
    app.add_node(search_box, html=(_visit_box, None))
    app.add_directive("search-box", SearchBox)
    add_place(app, "all-pages", all_pages)
    add_place(app, "symptoms", symptom_list)
    enable_stores(app, SearchedPages, PagesWithAllPages, PagesWithSymptoms)
    app.connect("builder-inited", leave_out_index_of_sphinx)
    connect_for_pages(app, "doctree-resolved", fill_all_pages)
    connect_for_pages(app, "doctree-resolved", fill_symptoms)
    connect_for_pages(app, "html-page-context", fill_page_not_found)
    app.connect("build-finished", write_search_index)
