"""The line at the end of each page: its PyTorch, the date of its sources, its asserts; of a published build the commit too."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

from atlas.site_files.build_json import FILE, checks_of, of_build

from .edit_link import repository


def sentences(built: dict[str, Any], commit: str, checks: int, all_checks: str) -> Iterator[str]:
    """The sentences of the line, as HTML.

    :param built: the facts of the build.
    :param commit: its commit as HTML, and ``all_checks`` the number of all asserts: both empty unless it is published.
    :param checks: how many asserts ran on this page.
    """
    if commit and built["date"]:
        sentence = "Built with PyTorch {torch} from commit {commit} of {date}."
    elif commit:
        sentence = "Built with PyTorch {torch} from commit {commit}."
    elif built["date"]:
        sentence = "Built with PyTorch {torch} from sources of {date}."
    else:
        sentence = "Built with PyTorch {torch}."
    yield sentence.format(torch=escape(built["torch"]), commit=commit, date=built["date"])
    if checks == 1:
        yield "One assert ran on this page."
    elif checks:
        yield f"{checks} asserts ran on this page."
    if all_checks:
        yield f"{all_checks} ran on the whole site."


def tell(app: Sphinx, name: str, template: str, context: dict[str, Any], document: nodes.document | None) -> None:
    """Give the line to the template of the page. Connected to ``html-page-context``.

    The number for the whole site changes with any page, and only a build that is published is sure to write them all.
    """
    if document is None:
        return
    built, commit, all_checks = of_build(app), "", ""
    if built["commit"]:
        commit = f"<code>{built['commit'][:7]}</code>"
        if address := repository(app.config):
            commit = f'<a href="{escape(address)}/commit/{built["commit"]}">{commit}</a>'
        all_checks = f'<a href="{context["pathto"](FILE, 1)}">{built["checks"]:,}</a>'
    context["built"] = " ".join(sentences(built, commit, checks_of(app.env, name), all_checks))


def setup(app: Sphinx) -> None:
    app.connect("html-page-context", tell)
