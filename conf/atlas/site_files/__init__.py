"""Files of the whole site, written once, after all pages. In this order:

``build_json``       what the site was built from
``sitemap``          for search engines
``prune``            removes what earlier builds made and this one no longer makes
``llms_txt``         the pages with a sentence each, for language models
``markdown_copies``  each page as Markdown
``link_previews``    what a link shows of the page or the term that it leads to
``csp_conf``         the Content-Security-Policy that fits the pages; it reads them, so it is last
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx


def setup(app: Sphinx) -> None:
    from . import build_json, csp_conf, link_previews, llms_txt, markdown_copies, prune, sitemap

    for module in [build_json, sitemap, prune, llms_txt, markdown_copies, link_previews, csp_conf]:
        module.setup(app)
