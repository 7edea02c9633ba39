"""Files of the whole site, written once, after all pages. In this order:

``build_json``       what the site was built from
``date_of_sources``  the date that it names
``sitemap``          for search engines
``moved_pages``      where an address leads that a page once had
``prune``            removes what earlier builds made and this one no longer makes
``markdown``         the pages as Markdown, one by one and in one file
``link_previews``    what a link shows of the page or the term that it leads to
``csp_conf``         the Content-Security-Policy that fits the pages; it reads them
``archives``         the site and its examples to take along, of all the above, where the site is published
``file_sizes``       how large those files are, on the pages that lead to them

``release_feed``     the release notes as a feed, written with their page
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from atlas.rooms import set_up

if TYPE_CHECKING:
    from sphinx.application import Sphinx

_FILES = (
    "build_json",
    "sitemap",
    "moved_pages",
    "prune",
    "markdown.llms_txt",
    "markdown.markdown_copies",
    "markdown.llms_full_txt",
    "link_previews",
    "csp_conf",
    "archives",
    "file_sizes",
    "release_feed",
)


def setup(app: Sphinx) -> None:
    set_up(app, __name__, *_FILES)
