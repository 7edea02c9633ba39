"""The history for a page of the build, which is read again when the data change."""

from __future__ import annotations

from pathlib import Path

from sphinx.environment import BuildEnvironment
from sphinx.util.docutils import SphinxDirective

from . import history, measured, own_answers
from .history import History


def history_for(env: BuildEnvironment, page: str) -> History | None:
    """What was measured; None where no version was. The page depends on the data, and on which there are.

    :raises measured.DataError: if a file of data cannot be used.
    """
    docs = Path(env.srcdir)
    if not (docs.parent / measured.FOLDER).is_dir():
        return None
    for path in (own_answers.FILES, own_answers.DATA):
        env.note_dependency(docs / path, docname=page)
    return history.load(docs)


def history_of(directive: SphinxDirective) -> History:
    """The history for the page with a directive.

    :raises docutils.parsers.rst.DirectiveError: if there are no data, or they cannot be used.
    """
    try:
        found = history_for(directive.env, directive.env.docname)
    except measured.DataError as error:
        raise directive.error(str(error)) from None
    if found is None or not found.versions:
        raise directive.error(f"{measured.FOLDER} has no data for this PyTorch: nox -s versions -- 2.14.1")
    return found
