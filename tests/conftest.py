"""What several suites need: the site, built as ``nox -s docs`` builds it, and the names of its pages.

The names come from the sources and not from ``build/html``, so that collecting tests builds nothing; that the built site
has these pages and no others is a test of its own, ``site/test_pages_of_the_sources.py``.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
HTML = Path("build/html")

#: What Sphinx adds without a source.
GENERATED = ["404.html", "genindex.html", "search.html"]


def sources_of_examples() -> list[str]:
    """The scripts of the gallery, as ``chapter/name.py``."""
    examples = ROOT / "examples"
    return sorted(path.relative_to(examples).as_posix() for path in examples.glob("*/*.py"))


def names_of_pages() -> list[str]:
    """The pages that the sources lead to, as addresses below the site's root."""
    docs, examples = ROOT / "docs", ROOT / "examples"
    written = [path.relative_to(docs) for kind in ("md", "rst", "ipynb") for path in docs.rglob(f"*.{kind}")]
    pages = [path.with_suffix(".html").as_posix() for path in written if path.parts[0] not in ("gallery", "_static")]
    headers = [path.relative_to(examples).parent for path in examples.glob("**/GALLERY_HEADER.rst")]
    pages += [(Path("gallery") / folder / "index.html").as_posix() for folder in headers]
    pages += [f"gallery/{Path(script).with_suffix('.html').as_posix()}" for script in sources_of_examples()]
    return sorted(pages + GENERATED)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test of the site that asks for ``page`` runs once for each page; for ``script``, once for each example."""
    if metafunc.definition.path.parent.name not in ("site", "browser"):
        return
    if "page" in metafunc.fixturenames:
        metafunc.parametrize("page", names_of_pages())
    if "script" in metafunc.fixturenames:
        metafunc.parametrize("script", sources_of_examples())


@pytest.fixture(scope="session")
def root() -> Path:
    """The repository."""
    return ROOT


@pytest.fixture(scope="session")
def all_pages() -> list[str]:
    """All pages at once, for a test that compares them."""
    return names_of_pages()


@pytest.fixture(scope="session")
def all_scripts() -> list[str]:
    """All examples at once."""
    return sources_of_examples()


@pytest.fixture(scope="session")
def site() -> Path:
    """The folder of the built site. It is built first; that is quick when nothing has changed."""
    options = ["--fail-on-warning", "--keep-going", "--conf-dir", "conf", "--builder", "html"]
    command = [sys.executable, "-m", "sphinx", *options, "--doctree-dir", "build/doctrees", "docs", str(HTML)]
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    done = subprocess.run(
        command,
        cwd=ROOT,
        env=os.environ | {"PATH": programs},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
    )
    if done.returncode:
        pytest.fail(f"the site does not build:\n{done.stdout}", pytrace=False)
    return ROOT / HTML
