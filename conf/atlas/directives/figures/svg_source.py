"""Read the drawing that a directive names, and say in the directive's own words what is wrong with it."""

from __future__ import annotations

from pathlib import Path

from sphinx.util.docutils import SphinxDirective


def drawing_of(directive: SphinxDirective, what: str) -> tuple[str, str]:
    """The name, without ``.svg``, and the text of the drawing in the directive's argument; the page depends on it.

    :param what: whose drawing it is, for the message.
    :raises docutils.parsers.rst.DirectiveError: if it cannot be read; it names file and line.
    """
    relative, absolute = directive.env.relfn2path(directive.arguments[0])
    directive.env.note_dependency(relative)
    path = Path(absolute)
    try:
        return path.stem, path.read_text(encoding="utf-8")
    except OSError as error:
        raise directive.error(
            f"cannot read the {what}'s drawing: {error.strerror}: {directive.arguments[0]}"
        ) from None
