"""Files of the whole site, written once, after all pages. In this order:

``build_json``       what the site was built from
``sitemap``          for search engines
``prune``            removes what earlier builds made and this one no longer makes
``llms_txt``         the pages with a sentence each, for language models
``markdown_copies``  each page as Markdown
``llms_full_txt``    the Markdown of all pages in one file
``link_previews``    what a link shows of the page or the term that it leads to
``csp_conf``         the Content-Security-Policy that fits the pages; it reads them
``archives``         the site and its examples to take along, of all the above, where the site is published
``file_sizes``       how large those files are, on the pages that lead to them

``release_feed``     the release notes as a feed, written with their page
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx


def setup(app: Sphinx) -> None:
    from . import (
        archives,
        build_json,
        csp_conf,
        file_sizes,
        link_previews,
        llms_full_txt,
        llms_txt,
        markdown_copies,
        prune,
        release_feed,
        sitemap,
    )

    for module in (
        build_json,
        sitemap,
        prune,
        llms_txt,
        markdown_copies,
        llms_full_txt,
        link_previews,
        csp_conf,
        archives,
        file_sizes,
        release_feed,
    ):
        module.setup(app)
