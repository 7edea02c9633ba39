"""Builds one example's page without the others: in seconds, where the whole site takes minutes. ``nox -s page`` calls it.

``sources``     a small site with this page, beside the real one
``references``  links to pages that the small site lacks, and the real one has
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from atlas.rooms import set_up

if TYPE_CHECKING:
    from sphinx.application import Sphinx


def setup(app: Sphinx) -> None:
    set_up(app, __name__, "references")
