"""Bugs of other people's code: of each the issue, the versions that have it, and when to delete what works around it.

A workaround is for the versions that were seen to have the bug. A newer version is left alone, and ``tests/upstream``
says whether it still needs the workaround.
"""

from __future__ import annotations

import re
from importlib.metadata import version
from pathlib import Path
from typing import Any

import myst_nb.sphinx_ext
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform


def has_bug(package: str, last: tuple[int, int]) -> bool:
    """Whether the installed version is none newer than ``last``, the last one that was seen to have the bug.

    >>> has_bug("sphinx", (9999, 0)), has_bug("sphinx", (0, 1))
    (True, False)
    """
    major, minor = re.findall(r"\d+", version(package))[:2]
    return (int(major), int(minor)) <= last


# -- MyST-Parser 5.2: the :widths: of a table have no effect ----------------------------------------


class KeepWidths(SphinxTransform):
    """Remove MyST's mark from a table whose directive has set widths. Any other table keeps it.

    With given widths, columns do not move while the rows still arrive. MyST marks every table ``colwidths-auto``, and docutils
    then ignores the widths: https://github.com/executablebooks/MyST-Parser/issues/793. The pull request #795 is open; delete
    this class when it is released.
    """

    default_priority = 210

    def apply(self, **kwargs: Any) -> None:
        for table in self.document.findall(nodes.table):
            if "colwidths-given" in table["classes"]:
                table["classes"] = [mark for mark in table["classes"] if mark != "colwidths-auto"]


# -- MyST-NB 1.4: its style sheet is copied too late ------------------------------------------------


def copy_myst_nb_css(app: Sphinx) -> None:
    """Copy MyST-NB's style sheet before pages are written, by its own function. MyST-NB copies it at the end of the build.

    Sphinx adds a checksum to the address of a style sheet if the file is there when a page is written. So the first build
    writes pages without the checksum of this file, and a second build writes them with it. No issue was found that reports it.
    Delete this function when MyST-NB copies earlier than at ``build-finished`` (``setup`` in ``myst_nb/sphinx_ext.py``).
    """
    if app.builder.format != "html":
        return
    (Path(app.outdir) / "_static").mkdir(parents=True, exist_ok=True)
    myst_nb.sphinx_ext.add_global_html_resources(app, None)


def setup(app: Sphinx) -> None:
    if has_bug("myst-parser", (5, 2)):
        app.add_transform(KeepWidths)
    if has_bug("myst-nb", (1, 4)):
        app.connect("builder-inited", copy_myst_nb_css)
