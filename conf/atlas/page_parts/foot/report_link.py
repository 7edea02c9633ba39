"""A link at the end of each page that opens an issue about it, with the page, its PyTorch and its commit filled in.

``conf/static/report.js`` adds the section and the words that a reader has selected, and shows the same link beside a paragraph
or an output on which a mouse rests. Without a repository there is neither link nor script. A reader writes and sends the issue
on the host of the sources; this site is told nothing.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode, urlsplit

from docutils import nodes
from sphinx.application import Sphinx

from atlas.site_files.build_json import of_build

from .edit_link import repository

SCRIPT = "report.js"


def address(repository: str, title: str, body: str) -> str:
    """Where an issue is written, with these words in it. GitLab has names of its own; Gitea and Forgejo have GitHub's.

    >>> address("https://git.example/someone/atlas", "A title", "Words.")
    'https://git.example/someone/atlas/issues/new?title=A+title&body=Words.'
    >>> address("https://gitlab.com/someone/atlas", "A title", "Words.")
    'https://gitlab.com/someone/atlas/-/issues/new?issue%5Btitle%5D=A+title&issue%5Bdescription%5D=Words.'
    """
    if "gitlab" in (urlsplit(repository).hostname or ""):
        return f"{repository}/-/issues/new?{urlencode({'issue[title]': title, 'issue[description]': body})}"
    return f"{repository}/issues/new?{urlencode({'title': title, 'body': body})}"


def offer(app: Sphinx, name: str, template: str, context: dict[str, Any], document: nodes.document | None) -> None:
    """Give the link to the template of the page, and the script to the page. Connected to ``html-page-context``."""
    sources = repository(app.config)
    if document is None or not sources:
        return
    built = of_build(app)
    where = app.config.html_baseurl + app.builder.get_target_uri(name)
    lines = [f"Page: {where}", "PyTorch: {version}".format(version=built["torch"])]
    if built["commit"]:
        lines.append("Commit: {commit}".format(commit=built["commit"]))
    title = app.env.titles[name].astext()
    context["report"] = {
        "link": address(sources, title, "\n".join(lines) + "\n\n" + "What is wrong:" + "\n\n"),
        "page": where,
        "label": "Report a mistake on this page",
        "beside": "Report a mistake in this passage",
        "question": "",
    }
    if name.startswith("gallery/errors/"):
        context["report"] |= {"question": "Was this wrong for you?", "label": "Say what happened instead"}
    app.add_js_file(SCRIPT, loading_method="defer")


def setup(app: Sphinx) -> None:
    app.connect("html-page-context", offer)
