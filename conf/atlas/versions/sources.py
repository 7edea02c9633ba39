"""The history for a page of the build, which is read again when the data change; and what of it is left out, by name."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

from atlas import toolbox
from atlas.toolbox import Refusal

from . import history, measured, own_answers
from .history import History

logger = logging.getLogger(__name__)

SHOWN = Path("reference/data/version_shown.txt")
"""Below docs/: a hash, for each version, of what is shown of it and what is left out. Pages that show all depend on it."""


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


def left_out(found: History) -> Iterator[str]:
    """What was measured of other sources than today's, a sentence for each version."""
    for torch, names in found.stale.items():
        yield (
            f"{measured.FOLDER / torch}.json: not shown, until `nox -s versions -- {torch}` measures again: "
            + "; ".join(names)
        )


def shown(found: History) -> Iterator[str]:
    """A line for each version, which changes with what of it is current."""
    for torch in sorted({*found.current, *found.stale}):
        current = {kind: sorted(names) for kind, names in found.current.get(torch, {}).items()}
        what = repr((sorted(current.items()), found.stale.get(torch)))
        yield f"{torch} {hashlib.sha256(what.encode()).hexdigest()}\n"


def _tell(app: Sphinx) -> None:
    """Connected to ``builder-inited``, after the build's own answers.

    :raises Refusal: if a file of data cannot be used.
    """
    docs = Path(app.srcdir)
    if (docs.parent / measured.FOLDER).is_dir():
        try:
            found = history.load(docs)
        except measured.DataError as error:
            raise Refusal(str(error)) from None
        for sentence in left_out(found):
            logger.info("versions: %s", sentence)
        toolbox.write_if_changed(docs / SHOWN, "".join(shown(found)))


def setup(app: Sphinx) -> None:
    app.connect("builder-inited", _tell)


def whole_history_of(directive: SphinxDirective) -> History:
    """The history for a page that shows all of it: such a page is read again when an example is no longer current, too.

    :raises docutils.parsers.rst.DirectiveError: if there are no data, or they cannot be used.
    """
    found = history_of(directive)
    directive.env.note_dependency(Path(directive.env.srcdir) / SHOWN)
    return found


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
