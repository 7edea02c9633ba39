"""The directive ``version-table``: what changed between the versions that were measured, a row for each change."""

from __future__ import annotations

import ast
import html
from collections.abc import Iterator

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from atlas.directives.long_table import may_break, region
from atlas.operators import table_directive as operators

from .changes import KINDS, Change, Changes, Explanation, read_changes

#: What the filter calls each kind of change.
WORDS = {
    "kinks": "gradients at bounds, ties and zero",
    "operators": "operators",
    "refuses": "errors",
    "warns": "warnings",
    "messages": "messages on pages of this site",
    "nodes": "names of nodes",
    "signatures": "parameters and defaults",
    "rows": "rows of then and now",
}


class VersionTable(SphinxDirective):
    """``{version-table}``: all changes, the newest first."""

    def run(self) -> list[nodes.Node]:
        return [nodes.raw("", table(read_changes(self)), format="html")]


def table(known: Changes) -> str:
    """All changes as HTML, with a head that says what each column holds."""
    order = known.versions
    changes = sorted(known.list_changes(), key=lambda change: (-order.index(change.since), KINDS.index(change.kind)))
    heads = ("what", "between", "before", "since")
    said = {
        "name": "Name or word",
        "kind": "that is about",
        "kinds": {
            "": "all changes",
            **{kind: str(words) for kind, words in WORDS.items()},
            **{_in(version): str(f"new in {version}") for version in reversed(order[1:])},
        },
        "count": "{shown} of {all}",
        "none": "No change fits.",
    }
    return region("versions", "What changed", heads, "".join(_rows(changes)), said)


def _rows(changes: list[Change]) -> Iterator[str]:
    """The rows; one with the same explanation as the row above says so to the style sheet, which does not show it twice."""
    above: tuple[Explanation | None, str] = (None, "")
    for change in changes:
        yield _row(change, repeats=change.why is not None and above == (change.why, change.since))
        above = change.why, change.since


def _in(version: str) -> str:
    return f"in-{version.replace('.', '-')}"


def _row(change: Change, *, repeats: bool) -> str:
    was, now = _values(change)
    again = ' class="repeats"' if repeats else ""
    return (
        f'<tr data-kinds="{change.kind} {_in(change.since)}"{again}><th scope="row">{_what(change)}{_why(change.why)}</th>'
        f"<td>{change.before} → {change.since}</td>"
        f'<td data-label="{"before"}">{was}</td><td data-label="{"since"}">{now}</td></tr>\n'
    )


def _what(change: Change) -> str:
    name, _colon, rest = change.what.partition(": ")
    match change.kind:
        case "operators":
            return f'<a href="operators.html#{operators.anchor(name)}">{may_break(name)}</a>: {rest}'
        case "signatures":
            return f"<code>{may_break(change.what)}</code>"
        case "rows":
            return f'<a href="../then-and-now.html#{nodes.make_id(change.what)}">{_plain(change.what)}</a>'
        case "messages":
            return f'<a href="../gallery/{name}.html">{may_break(name.rpartition("/")[2])}</a>'
    return "<br>".join(f"<code>{may_break(line)}</code>" for line in change.what.splitlines())


def _values(change: Change) -> tuple[str, str]:
    """What to show of the older version, and of the newer one."""
    if change.kind == "signatures":
        was, now = (parameters(text) for text in (change.was, change.now))
        gone, new = [text for text in was if text not in now], [text for text in now if text not in was]
        if not gone and not new:
            return "another order", "another order"
        return _listed(gone), _listed(new)
    shown = (html.escape(text, quote=False).replace("\n", "<br>") for text in (change.was, change.now))
    was, now = (text or "–" for text in shown)
    return (f"<code>{was}</code>", f"<code>{now}</code>") if change.kind in ("kinks", "nodes") else (was, now)


def parameters(signature: str) -> list[str]:
    """The parameters of a signature with their defaults.

    >>> parameters("(x, *, dim=(0, 1), kind='a, b')"), parameters("(f=<function relu>, x=1)")
    (['x', '*', 'dim=(0, 1)', "kind='a, b'"], ['f=<function relu>', 'x=1'])
    """
    found, text = [], ""
    for piece in signature[1:-1].split(", "):
        text = f"{text}, {piece}" if text else piece
        if _whole(text):
            found.append(text)
            text = ""
    return [*found, text] if text else found


def _whole(text: str) -> bool:
    """Whether a piece of a signature ends where a parameter does."""
    name, equals, default = text.partition("=")
    if not equals or default.startswith("<"):
        return True
    try:
        ast.parse(f"{name.lstrip('*')}={default}")
    except SyntaxError:
        return False
    return True


def _listed(texts: list[str]) -> str:
    return "<br>".join(f"<code>{html.escape(text, quote=False)}</code>" for text in texts) or "–"


def _plain(title: str) -> str:
    """A title of Markdown as HTML: what stands between backticks is code.

    >>> _plain("`zero_grad` & more")
    '<code>zero_grad</code> &amp; more'
    """
    pieces = html.escape(title, quote=False).split("`")
    return "".join(f"<code>{text}</code>" if number % 2 else text for number, text in enumerate(pieces))


def _why(explained: Explanation | None) -> str:
    if explained is None:
        return ""
    link = f' <a href="{html.escape(explained.link)}">{"source"}</a>' if explained.link else ""
    return f'<br><small class="why">{_plain(explained.text)}{link}</small>'


def setup(app: Sphinx) -> None:
    app.add_directive("version-table", VersionTable)
