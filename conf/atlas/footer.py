"""The foot of a page: all lines that the site puts below the text, in one place.

``insert_foot`` puts the lines into the page, from top to bottom: the fold "About this page" with how many
asserts ran, and tags; then the box of sphinx-gallery's downloads, with "Open in Colab" before them and what to install after
them. Each line comes from the feature that knows it; none puts itself anywhere.

``describe_foot`` gives the template ``page.html`` what stands below the theme's own foot, as the variable ``foot``: a link to
report a mistake, what the sentences of the page are about, and what it was built from. ``link_to_source`` has the theme's "edit
this page" lead to the script of an example.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

from docutils import nodes
from sphinx.addnodes import download_reference
from sphinx.application import Sphinx
from sphinx.config import Config

from atlas.boxes import claims
from atlas.build_facts import count_checks, get_torch_version
from atlas.folds import make_details
from atlas.gallery.notebooks import list_packages
from atlas.page_store import connect_for_pages
from atlas.tags import list_tags_line

#: The page and the section that say what sentences are about, and the chapters whose pages say so at their foot.
SCOPE_PAGE, SCOPE_SECTION = "about/how-this-site-stays-true", "what-a-sentence-is-about"
_SCOPED = ("gallery/", "guide/")
#: The branch onto which the workflow ``publish`` pushes the notebooks: Colab opens them from GitHub, and the build makes them.
_NOTEBOOKS = "notebooks"
#: What the links of sphinx-gallery say, by what they lead to.
_DOWNLOADS = {".ipynb": "Notebook", ".py": "Script", ".zip": "Zip"}

# -- Lines in the page ----------------------------------------------------------------------------


def insert_foot(app: Sphinx, document: nodes.document, page: str) -> None:
    """Put the lines before the downloads, or at the end of a page without any. Connected to ``doctree-resolved``."""
    lines = list_foot_lines(app, document, page)
    downloads = find_downloads(document)
    if downloads is None:
        next(iter(document.findall(nodes.section)), document).extend(lines)
        return
    place = downloads.parent.index(downloads)
    downloads.parent[place:place] = lines
    for link in downloads.findall(download_reference):
        link[:] = [nodes.inline("", _DOWNLOADS[Path(link["reftarget"]).suffix])]
    if address := find_colab_address(get_repository(app.config), page):
        link = nodes.reference("", "Open in Colab", refuri=address, internal=False)
        downloads.insert(0, nodes.container("", nodes.paragraph("", "", link), classes=["sphx-glr-download"]))
    if install := make_install_line(Path(app.srcdir, f"{page}.py")):
        downloads.append(install)


def list_foot_lines(app: Sphinx, document: nodes.document, page: str) -> list[nodes.Node]:
    """What is above the downloads: a fold of what else is known of the page.

    The number of asserts is taken from where the code ends.
    """
    counted = list(document.findall(claims))
    for line in counted:
        line.parent.remove(line)
    folded = [*counted, *list_tags_line(app, page)]
    return [make_details("About this page", *folded, classes=["about-page"])] if folded else []


def find_downloads(document: nodes.document) -> nodes.container | None:
    """The box with sphinx-gallery's links to the script and the notebook; None on a page without."""
    boxes = document.findall(nodes.container)
    return next((box for box in boxes if "sphx-glr-footer" in box["classes"]), None)


def find_colab_address(repository: str, page: str) -> str | None:
    """Where Google Colab opens the notebook of a page; None for sources that are not on GitHub.

    >>> find_colab_address("https://github.com/someone/atlas/", "gallery/graphs/first_graph")
    'https://colab.research.google.com/github/someone/atlas/blob/notebooks/graphs/first_graph.ipynb'
    >>> find_colab_address("https://git.example/atlas", "gallery/graphs/first_graph")
    """
    parts = urlsplit(repository)
    if parts.hostname != "github.com":
        return None
    notebook = f"{page.removeprefix('gallery/')}.ipynb"
    return f"https://colab.research.google.com/github/{parts.path.strip('/')}/blob/{_NOTEBOOKS}/{notebook}"


def make_install_line(script: Path) -> nodes.container | None:
    """What to install to run a script on one's own machine, as a line to copy.

    None without a script, or for one that is broken: that is reported elsewhere.
    """
    try:
        wanted = make_install_command(script.read_text(encoding="utf-8"))
    except (OSError, SyntaxError, ValueError):
        return None
    said = nodes.paragraph("", "To run it on your own machine:")
    return nodes.container("", said, nodes.literal_block(wanted, wanted, language="none"), classes=["install-line"])


def make_install_command(code: str) -> str:
    """The packages that the code imports, and the PyTorch that made the page.

    :raises SyntaxError: if the code is no Python.
    """
    others = (package for package in list_packages(code) if package != "torch")
    return " ".join(["pip install", f"torch=={get_torch_version()}", *others])


# -- Below the theme's own foot -------------------------------------------------------------------


def describe_foot(
    app: Sphinx, page: str, template: str, context: dict[str, Any], document: nodes.document | None
) -> None:
    """Give the template the variable ``foot``, for pages that are made of a source. Connected to ``html-page-context``."""
    if document is None:
        return
    context["foot"] = {
        "report": make_report_address(app, page),
        "scope": make_scope_sentence(app, page, context),
        "built": " ".join(list_built_sentences(app, page, context)),
    }


def make_report_address(app: Sphinx, page: str) -> str | None:
    """Where an issue about the page is written, with its PyTorch and its commit filled in; None without a repository.

    A reader writes and sends the issue on the host of the sources; this site is told nothing.
    """
    sources, facts = get_repository(app.config), app.atlas_facts
    if not sources:
        return None
    where = app.config.html_baseurl + app.builder.get_target_uri(page)
    lines = [f"Page: {where}", f"PyTorch: {facts['torch']}"]
    if facts["commit"]:
        lines.append(f"Commit: {facts['commit']}")
    said = {"title": app.env.titles[page].astext(), "body": "\n".join(lines) + "\n\nWhat is wrong:\n\n"}
    return f"{sources}/issues/new?{urlencode(said)}"


def make_scope_sentence(app: Sphinx, page: str, context: dict[str, Any]) -> str:
    """What the sentences of an example or a guide page are about, so that each need not say so again; else empty."""
    if not page.startswith(_SCOPED) or page.endswith("/index") or SCOPE_PAGE not in app.env.found_docs:
        return ""
    link = (
        f'<a href="{context["pathto"](SCOPE_PAGE)}#{SCOPE_SECTION}">eager code on a CPU, with dense, real tensors</a>'
    )
    return f"Unless it says something else, a sentence on this page is about {link}."


def list_built_sentences(app: Sphinx, page: str, context: dict[str, Any]) -> Iterator[str]:
    """What the page was built from, as HTML.

    The number of asserts of the whole site changes with any page, and only a build that is published is sure to write them all.
    """
    facts = app.atlas_facts
    commit, day = facts["commit"], facts["date"]
    sources = f" from sources of {day}" if day else ""
    if changed := app.atlas_changes.get(find_source(page) or f"docs/{app.env.doc2path(page, base=False)}"):
        yield f"This page was last changed on {changed}."
    if commit:
        words = f"<code>{commit[:7]}</code>"
        if address := get_repository(app.config):
            words = f'<a href="{escape(address)}/commit/{commit}">{words}</a>'
        sources = f" from commit {words}" + (f" of {day}" if day else "")
    yield f"Built with PyTorch {escape(facts['torch'])}{sources}."
    if checks := count_checks(app.env, page):
        yield "One assert ran on this page." if checks == 1 else f"{checks} asserts ran on this page."
    if commit:
        yield f'<a href="{context["pathto"]("build.json", 1)}">{facts["checks"]:,}</a> ran on the whole site.'


# -- Links to the sources -------------------------------------------------------------------------


def get_repository(config: Config) -> str:
    """The address of the sources, without a slash at its end; empty if there is none."""
    return config.html_theme_options.get("source_repository", "").rstrip("/")


def find_source(page: str) -> str | None:
    """The file that a page of the gallery is made from, from the root of the repository; None for any other page.

    >>> find_source("gallery/graphs/first_graph"), find_source("gallery/graphs/index"), find_source("guide/which-switch")
    ('examples/graphs/first_graph.py', 'examples/graphs/GALLERY_HEADER.rst', None)
    """
    folder, _, rest = page.partition("/")
    if folder != "gallery":
        return None
    if rest == "index" or rest.endswith("/index"):
        return f"examples/{rest.removesuffix('index')}GALLERY_HEADER.rst"
    return f"examples/{rest}.py"


def link_to_source(
    app: Sphinx, page: str, template: str, context: dict[str, Any], document: nodes.document | None
) -> None:
    """Lead to a script, not to the file in ``docs/gallery/`` that is made from it. Connected to ``html-page-context``.

    ``theme_source_edit_link`` and ``theme_source_view_link`` are variables of sphinx-basic-ng's templates, which furo uses.
    """
    source, address = find_source(page), get_repository(app.config)
    if source and address:
        branch = app.config.html_theme_options["source_branch"]
        for what, where in (("edit", "edit"), ("view", "blob")):
            context[f"theme_source_{what}_link"] = f"{address}/{where}/{branch}/{source}"


def setup(app: Sphinx) -> None:
    connect_for_pages(app, "doctree-resolved", insert_foot, 600)  # after what fills a page
    connect_for_pages(app, "html-page-context", describe_foot)
    connect_for_pages(app, "html-page-context", link_to_source)
