"""Bugs of other people's code, one file each: the link to the issue, the versions that have it, and when to delete the file.

``sphinx_12599_index_entries``     the search forgets the index entries of unchanged pages
``myst_parser_793_table_widths``   the widths of a table do not hold
``myst_nb_css_before_pages``       a style sheet comes too late for its checksum
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx


def setup(app: Sphinx) -> None:
    from . import myst_nb_css_before_pages, myst_parser_793_table_widths, sphinx_12599_index_entries

    for module in (myst_parser_793_table_widths, myst_nb_css_before_pages, sphinx_12599_index_entries):
        module.setup(app)
