"""Files of the whole site, written once, after all pages. In this order:

``build_json``       what the site was built from
``date_of_sources``  the date that it names
``sitemap``          for search engines
``moved_pages``      where an address leads that a page once had
``prune``            removes what earlier builds made and this one no longer makes
``llms_txt``         the pages with a sentence each, for language models
``markdown_copies``  each page as Markdown
``csp_conf``         the Content-Security-Policy that fits the pages; it reads them, so it is last
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx


def setup(app: Sphinx) -> None:
    from . import build_json, csp_conf, llms_txt, markdown_copies, moved_pages, prune, sitemap

    for module in [build_json, sitemap, moved_pages, prune, llms_txt, markdown_copies, csp_conf]:
        module.setup(app)
