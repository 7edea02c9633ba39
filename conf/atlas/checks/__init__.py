"""What fails a page. Each fault is an error with file and line.

``output_traces``     an output with a memory address or a path of the machine
``unrun_doctests``    a ``>>>`` that no doctest runs
``code_cell_errors``  a code cell of a Markdown page that raises, hangs or dies
``error_page``        a page about an error that does not help in its first screen
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from atlas.rooms import set_up

if TYPE_CHECKING:
    from sphinx.application import Sphinx


def setup(app: Sphinx) -> None:
    set_up(app, __name__, "code_cell_errors", "error_page", "output_traces", "unrun_doctests")
