"""What other versions of PyTorch do otherwise, measured.

``nox -s versions -- 2.14.1`` measures, by ``conf/compare_versions.py``:

``measuring``          installs a version, runs everything there, and compares
``probes``             small facts that change: a line of code each, and signatures
``measured``           the data in docs/reference/versions, and what of them is stale

A build shows it:

``own_answers``        asks the build's own PyTorch the probes
``history``            puts all versions together
``explained``          what a change means, and its pull request, from ``explained.toml``
``sources``            the history for a page, and what of it is left out because the sources have changed
``table_directive``    ``{version-table}``: what changed
``pages_directive``    ``{version-pages}``: which pages hold on which version
``changed_directive``  ``.. torch-changed::`` on a page
``said_on_pages``      each example's page says on which versions its asserts hold, and how an error is worded there
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from atlas.rooms import set_up

if TYPE_CHECKING:
    from sphinx.application import Sphinx


def setup(app: Sphinx) -> None:
    modules = ("own_answers", "sources", "table_directive", "pages_directive", "changed_directive", "said_on_pages")
    set_up(app, __name__, *modules)
