"""The pages that the site must have, as its sources say: collecting tests builds nothing.

That the built site has these pages and no others is a test of its own, ``site/test_parts_of_pages.py``.
"""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]

#: The version of PyTorch that the site is built with.
PINNED = re.search(r"^torch==(\S+)", (ROOT / "requirements.txt").read_text(encoding="utf-8"), re.MULTILINE)[1]
#: What Sphinx adds without a source.
GENERATED = frozenset({"404.html", "figure.html", "genindex.html"})


def sources_of_examples() -> list[str]:
    """The scripts of the gallery, as ``chapter/name.py``."""
    examples = ROOT / "examples"
    return sorted(path.relative_to(examples).as_posix() for path in examples.glob("*/*.py"))


def lessons() -> list[str]:
    """The scripts that are lessons, the answer first, then a figure: a page about an error has another shape."""
    return [script for script in sources_of_examples() if not script.startswith("errors/")]


def names_of_pages() -> list[str]:
    """The pages that the sources lead to, as addresses below the site's root."""
    docs, examples = ROOT / "docs", ROOT / "examples"
    written = [path.relative_to(docs) for kind in ("md", "rst", "ipynb") for path in docs.rglob(f"*.{kind}")]
    pages = [path.with_suffix(".html").as_posix() for path in written if path.parts[0] not in ("gallery", "_static")]
    headers = [path.relative_to(examples).parent for path in examples.glob("**/GALLERY_HEADER.rst")]
    pages += [(Path("gallery") / folder / "index.html").as_posix() for folder in headers]
    pages += [f"gallery/{Path(script).with_suffix('.html').as_posix()}" for script in sources_of_examples()]
    return sorted([*pages, *GENERATED])
