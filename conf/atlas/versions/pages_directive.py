"""The directive ``version-pages``: which examples hold on which version, and what fails first where one does not."""

from __future__ import annotations

import html
from collections.abc import Iterator
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from atlas.directives.long_table import may_break, region

from .history import History
from .sources import whole_history_of

LONGEST = 200  # characters of what failed


class VersionPages(SphinxDirective):
    """``{version-pages}``: a sentence for each version, and a row for each example that does not hold on all of them."""

    def run(self) -> list[nodes.Node]:
        history = whole_history_of(self)
        items = (nodes.list_item("", nodes.paragraph("", text)) for text in _sentences(history))
        return [nodes.bullet_list("", *items), nodes.raw("", table(history), format="html")]


def _sentences(history: History) -> Iterator[str]:
    """How many examples hold on each version, and what waits to be measured again."""
    for version in history.versions:
        examples = history.current[version.torch]["examples"]
        holds = sum(not found["faults"] for found in examples.values())
        text = "PyTorch {torch}: {holds} of {all} examples hold. Measured on {date} with Python {python}."
        sentence = text.format(**version.of, holds=holds, all=len(examples))
        if waiting := len(history.stale.get(version.torch, ())):
            more = "{count} entries are of older sources and are left out until they are measured again."
            sentence += " " + more.format(count=waiting)
        yield sentence


def table(history: History) -> str:
    """The examples that fail somewhere, as HTML, the newest version first."""
    versions = [version.torch for version in reversed(history.versions)]
    pages = sorted({page for torch in versions for page in history.current[torch]["examples"]})
    rows = (_row(page, versions, history) for page in pages if history.holds_on(page)[1])
    said = {"name": "Page", "count": "{shown} of {all}", "none": "No page fits."}
    return region("version-pages", "Examples that do not hold everywhere", ["page", *versions], "".join(rows), said)


def _row(page: str, versions: list[str], history: History) -> str:
    name = page.rpartition("/")[2]
    cells = "".join(f"<td>{_cell(history.current[torch]['examples'].get(page))}</td>" for torch in versions)
    return f'<tr><th scope="row"><a href="../gallery/{page}.html">{may_break(name)}</a></th>{cells}</tr>\n'


def _cell(found: dict[str, Any] | None) -> str:
    if found is None:
        return "–"
    if not found["faults"]:
        return "holds"
    first = found["faults"][0]
    code = f"<code>{html.escape(_cut(first['code']), quote=False)}</code><br>" if first["code"] else ""
    return f"{code}<small>{html.escape(_cut(first['said']), quote=False)}</small>"


def _cut(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= LONGEST else f"{words[:LONGEST]}…"


def setup(app: Sphinx) -> None:
    app.add_directive("version-pages", VersionPages)
