"""The site's own search: an index that the build makes, and scripts of ``conf/static`` that read it in the browser.

``words``       text as words: parts of names, stems, and the words that say nothing
``gather``      what of a page can be found, kept with the page when Sphinx reads it
``messages``    the messages that a page raises, and the fix of a page about an error
``index``       ``search-index.js``: all pages in one file
``synonyms``    words that mean the same, with a word on each
``directives``  the box and the list of all pages that an author can put on a page
``page_filter`` leaves those entries of a long page that have a reader's words
``symptoms``    the list of pages about errors
``not_found``   the box on the page for an address that leads nowhere
``replaced``    Sphinx's own search, which is not made

Sphinx's own search wants every word of a question on one page, and fetches each page that it found to quote it. This one
takes any word, weighs it by its rarity, and fetches no page.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from atlas.rooms import set_up

if TYPE_CHECKING:
    from sphinx.application import Sphinx


def setup(app: Sphinx) -> None:
    set_up(app, __name__, "directives", "gather", "index", "not_found", "page_filter", "replaced", "symptoms")
