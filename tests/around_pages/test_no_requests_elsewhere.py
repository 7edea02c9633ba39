"""Left alone, Sphinx and sphinx-gallery make pages that load scripts from other sites.

That no page loads anything from elsewhere is tested on the site itself, in ``site/test_other_sites.py``.
"""

from __future__ import annotations

import re

from bs4 import BeautifulSoup

from tiny.tiny_site import Build


def test_math_needs_no_script(good: Build) -> None:
    """Sphinx's own math loads MathJax from a CDN. The guide has formulas, and no page has a script for them."""
    pages = [BeautifulSoup(path.read_bytes(), "html.parser") for path in good.out.rglob("*.html")]
    scripts = [str(script) for page in pages for script in page.find_all("script")]
    assert scripts and not [script for script in scripts if re.search("mathjax|katex", script, re.IGNORECASE)]


def test_no_page_of_execution_times(good: Build) -> None:
    """Sphinx-gallery's pages of execution times load jQuery and DataTables from two CDNs."""
    files = [*good.out.rglob("*"), *good.site.rglob("*.rst")]
    assert files and not [path for path in files if "execution_times" in path.name]
