"""What versions of PyTorch answer otherwise than those before them, as a table of all changes and as boxes on pages.

``conf/measure/versions.py`` measures it, and ``nox -s versions`` keeps it. ``{version-table}`` shows all changes. An author
says with a box what another version does otherwise than the page::

    .. torch-changed:: 2.14
       :probe: kinks: x.clamp(0, 1) at x = [0, 1]

       At a bound the gradient is 0 since then.

The values of both versions are taken from what was measured, so the sentence cannot outlive them.
"""

from __future__ import annotations

import html
import itertools
import json
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from posixpath import commonprefix
from typing import ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from .operators import HEADS, make_operator_anchor
from .tables import let_break, make_long_table, mark_code

# -- What was measured ----------------------------------------------------------------------------

#: Below docs/: what ``conf/measure/versions.py`` found, which says how it is to be read; and what a change means, by hand.
DATA, EXPLAINED = Path("reference/versions.json"), Path("reference/versions.toml")
#: What signs of a text become in HTML; the first two are those of ``mark_difference``.
_SIGNS = {1: "<mark>", 2: "</mark>", ord("\n"): "<br>"}
#: Kinds of things, in the order of the page, and what the filter calls them. Rows of then-and-now and messages of examples were
#: measured once.
KINDS = {
    "kinks": "gradients at bounds, ties and zero",
    "operators": "operators",
    "refuses": "errors",
    "warns": "warnings",
    "messages": "messages on pages of this site",
    "nodes": "names of nodes",
    "signatures": "parameters and defaults",
    "rows": "rows of then and now",
}
#: What the data have of an operator, in their order, as the operators' table calls its columns.
COLUMNS = HEADS[1:-1]


@dataclass(frozen=True, slots=True)
class Change:
    """Something has another value in a version than in the one that was measured before it."""

    kind: str
    what: str  # the key of a probe, an operator and a column, the name of a function, a page and a message, a row's title
    before: str  # the older version
    since: str  # the newer one, of those that were measured
    was: str
    now: str
    text: str  # what it means for a reader, and the pull request, issue or release note; both may be empty
    link: str


class Changes:
    """All that was measured, read from the folder ``docs``.

    :ivar versions: those that were measured, the oldest first.
    :ivar values: by kind and thing, the value of each version that has one.
    :ivar explained: what a change means and where it was made, by kind and thing as ``kind: thing``.
    :raises ValueError: if a file is not what it should be.
    """

    def __init__(self, docs: Path) -> None:
        data = json.loads((docs / DATA).read_text(encoding="utf-8"))
        self.versions = list(data["versions"])
        self.values: dict[tuple[str, str], dict[str, str]] = {}
        things = ((kind, what, points) for kind in KINDS for what, points in data.get(kind, {}).items())
        for kind, what, points in things:
            value = None
            for version in self.versions:  # the data have a value only where it differs from the version before
                value = points.get(version, value)
                if kind == "operators":
                    for column, cell in zip(COLUMNS, value or (), strict=value is not None):
                        text = cell if isinstance(cell, str) else " ".join(cell)
                        self.values.setdefault((kind, f"{what}: {column}"), {})[version] = text
                elif value is not None:
                    self.values.setdefault((kind, what), {})[version] = value
        by_hand = tomllib.loads((docs / EXPLAINED).read_text(encoding="utf-8")) if (docs / EXPLAINED).exists() else {}
        changes = by_hand.get("change", ())
        self.explained = {probe: (of["text"], of.get("link", "")) for of in changes for probe in of["probes"]}

    def list_changes(self) -> Iterator[Change]:
        """What changed, kind by kind; of each thing the oldest change first."""
        for (kind, what), values in self.values.items():
            for before, since in itertools.pairwise(values):
                if values[before] != values[since]:
                    why = self.explained.get(f"{kind}: {what}", ("", ""))
                    yield Change(kind, what, before, since, values[before], values[since], *why)

    def find_change(self, probe: str, release: str) -> Change:
        """The change of a probe in a release.

        :param probe: its subject and key, such as ``kinks: x.sqrt() at x = [0]``.
        :param release: such as ``2.14``; the newer of the two versions is of that release or, if none was measured, later.
        :raises LookupError: if there is no such probe, or it did not change there; the message says what was measured.
        """
        kind, _colon, what = probe.partition(": ")
        values = self.values.get((kind, what))
        if values is None:
            raise LookupError(f"no probe {probe!r}; conf/measure/probes.toml has them")
        for change in self.list_changes():
            before, since = split_version(change.before)[:2], split_version(change.since)[:2]
            if (change.kind, change.what) == (kind, what) and before < split_version(release) <= since:
                return change
        measured = ", ".join(f"{value!r} on {version}" for version, value in values.items())
        raise LookupError(f"{probe!r} was not measured to change in {release}: {measured}")


def read_changes(directive: SphinxDirective) -> Changes:
    """What was measured, for the page with a directive, which is read again when the data change.

    :raises docutils.parsers.rst.DirectiveError: if there are no data, or they cannot be used.
    """
    docs = Path(directive.env.srcdir)
    for file in (DATA, EXPLAINED):
        directive.env.note_dependency(str(docs / file))
    try:
        return Changes(docs)
    except (OSError, ValueError, KeyError) as error:
        raise directive.error(f"{DATA} cannot be used: {type(error).__name__}: {error}") from None


def split_version(version: str) -> tuple[int, ...]:
    """The numbers of a version, to compare it with another.

    >>> split_version("2.4.1") < split_version("2.14.1")
    True
    """
    return tuple(map(int, re.findall(r"\d+", version)))


# -- The table of all changes ---------------------------------------------------------------------

#: A parameter of a signature, whose default may have commas between brackets or quotes.
_PARAMETER = re.compile(r"""(?:[^,(\['"<]|\([^)]*\)|\[[^\]]*\]|'[^']*'|"[^"]*"|<[^>]*>)+""")


class VersionTable(SphinxDirective):
    """``{version-table}``: all changes, the newest first."""

    def run(self) -> list[nodes.Node]:
        return [make_version_table(read_changes(self))]


def make_version_table(known: Changes) -> nodes.raw:
    """All changes, with a head that says what each column holds."""
    order, kinds = known.versions, list(KINDS)
    changes = sorted(known.list_changes(), key=lambda change: (-order.index(change.since), kinds.index(change.kind)))
    said = {
        "name": "Name or word",
        "kind": "About",
        "kinds": {"": "all changes", **KINDS},
        "count": "{shown} of {all} changes",
        "none": "No change matches.",
        "cells": "4",  # messages stand in the last two
    }
    said["kinds"] |= {version: f"new in {version}" for version in reversed(order[1:])}
    heads = ("what", "between", "before", "since")
    return make_long_table("versions", "What changed", heads, "".join(_make_rows(changes)), said)


def _make_rows(changes: list[Change]) -> Iterator[str]:
    """The rows; one with the same explanation as the row above says so to the style sheet, which does not show it twice."""
    for above, change in itertools.pairwise([None, *changes]):
        was, now = _show_values(change)
        known = (above.text, above.link, above.since) if above else None
        again = ' class="repeats"' if change.text and known == (change.text, change.link, change.since) else ""
        yield (
            f'<tr data-kinds="{change.kind} {change.since}"{again}>'
            f'<th scope="row">{_show_subject(change)}{_explain_change(change)}</th>'
            f"<td>{change.before} → {change.since}</td>"
            f'<td data-label="before">{was}</td><td data-label="since">{now}</td></tr>\n'
        )


def _show_subject(change: Change) -> str:
    name, _colon, rest = change.what.partition(": ")
    match change.kind:
        case "operators":
            return f'<a href="operators.html#{make_operator_anchor(name)}">{let_break(name)}</a>: {rest}'
        case "signatures":
            return f"<code>{let_break(change.what)}</code>"
        case "rows":
            return f'<a href="../then-and-now.html#{nodes.make_id(change.what)}">{mark_code(change.what)}</a>'
        case "messages":
            return f'<a href="../gallery/{name}.html">{name.rpartition("/")[2].replace("_", " ")}</a>'
    return "<br>".join(f"<code>{let_break(line)}</code>" for line in change.what.splitlines())


def _show_values(change: Change) -> tuple[str, str]:
    """What to show of the older version, and of the newer one."""
    if change.kind == "signatures":
        was, now = (split_signature(text) for text in (change.was, change.now))
        gone, new = [text for text in was if text not in now], [text for text in now if text not in was]
        return (_list_parameters(gone), _list_parameters(new)) if gone or new else ("another order", "another order")
    texts = mark_difference(change.was, change.now) if change.kind == "messages" else (change.was, change.now)
    shown = (html.escape(text, quote=False).translate(_SIGNS) or "–" for text in texts)
    return tuple(f"<code>{text}</code>" if change.kind in ("kinks", "nodes") else text for text in shown)


def mark_difference(*texts: str) -> list[str]:
    """Texts, each with the part that differs from the others between two control characters: a message is long.

    >>> mark_difference("raises in 2.4, see below", "raises in 2.9, see below")
    ['raises in 2.\\x014\\x02, see below', 'raises in 2.\\x019\\x02, see below']
    """
    start = len(commonprefix(texts))
    rest = len(commonprefix([text[start:][::-1] for text in texts]))
    return [f"{text[:start]}\1{text[start : len(text) - rest]}\2{text[len(text) - rest :]}" for text in texts]


def split_signature(signature: str) -> list[str]:
    """The parameters of a signature with their defaults.

    >>> split_signature("(x, *, dim=(0, 1), kind='a, b')"), split_signature("(f=<function relu>, x=1)")
    (['x', '*', 'dim=(0, 1)', "kind='a, b'"], ['f=<function relu>', 'x=1'])
    """
    return [parameter.strip() for parameter in _PARAMETER.findall(signature[1:-1])]


def _list_parameters(texts: list[str]) -> str:
    return "<br>".join(f"<code>{html.escape(text, quote=False)}</code>" for text in texts) or "–"


def _explain_change(change: Change) -> str:
    if not change.text:
        return ""
    link = f' <a href="{html.escape(change.link)}">source</a>' if change.link else ""
    return f'<br><small class="why">{mark_code(change.text)}{link}</small>'


# -- A box on a page ------------------------------------------------------------------------------


class TorchChanged(SphinxDirective):
    """``.. torch-changed:: 2.14``: below ``:probe:``, a probe that answers otherwise since that release."""

    required_arguments = 1
    has_content = True
    option_spec: ClassVar = {"probe": directives.unchanged_required}

    def run(self) -> list[nodes.Node]:
        probe, release = self.options.get("probe"), self.arguments[0]
        if probe is None:
            raise self.error("name what was measured: ':probe: kinks: x.clamp(0, 1) at x = [0, 1]'")
        try:
            change = read_changes(self).find_change(probe, release)
        except LookupError as error:
            raise self.error(str(error)) from None
        told = nodes.paragraph("", "", nodes.strong("", f"Changed in PyTorch {release}."), nodes.Text(" "))
        after = (": ", f" on {change.before}, ", f" on {change.since}.")
        for code, text in zip((change.what, change.was, change.now), after, strict=True):
            told += [nodes.literal(code, code), nodes.Text(text)]
        return [nodes.container("", told, *self.parse_content_to_nodes(), classes=["torch-changed"])]


def setup(app: Sphinx) -> None:
    app.add_directive("version-table", VersionTable)
    app.add_directive("torch-changed", TorchChanged)
