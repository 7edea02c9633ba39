"""What several suites need: the site, built as ``nox -s docs`` builds it, and the names of its pages."""

from __future__ import annotations

import gc
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import joblib
import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

from atlas import toolbox
from sources import ROOT, names_of_pages, sources_of_examples

HTML = Path("build/html")
#: The suites that ask the same of each page or example. Their tests are named for it.
OF_THE_SITE = ("site", "browser")
_PAGE = re.compile(rf"tests/(?:{'|'.join(OF_THE_SITE)})/\w+\.py::\w+\[(?P<page>[^\]\s]+?\.(?:html|py))[-\]]")
#: A folder whose files look at the same two sites.
_SHARING = re.compile("(tests/around_pages)/")

pytest_plugins = ["tiny.fixtures"]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--built", type=Path, metavar="DIR", help="test the site in this folder, and build nothing")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test of the site that asks for ``page`` runs once for each page; for ``script``, once for each example."""
    if metafunc.definition.path.parent.name not in OF_THE_SITE:
        return
    if "page" in metafunc.fixturenames:
        metafunc.parametrize("page", names_of_pages())
    if "script" in metafunc.fixturenames:
        metafunc.parametrize("script", sources_of_examples())


def pytest_collection_finish() -> None:
    """Modules and tests stay to the end: the collector need not walk them. What tests make it walks as seldom as in a build."""
    gc.freeze()
    toolbox.collect_garbage_seldom()


class KeepTogether(LoadScopeScheduling):
    """Gives a process that is free the next file, folder or page: what one test prepares for others is prepared once."""

    def _split_scope(self, nodeid: str) -> str:
        found = _PAGE.match(nodeid) or _SHARING.match(nodeid)
        return found[1] if found else nodeid.partition("::")[0]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the sums of what tests have recorded with ``record_property``."""
    passed = terminalreporter.stats.get("passed", [])
    for words, number in Counter(name for report in passed for name, _ in report.user_properties).items():
        terminalreporter.write_line(f"{number} {words}")


@pytest.hookimpl(optionalhook=True)  # of pytest-xdist
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> KeepTogether:
    return KeepTogether(config, log)


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


@pytest.fixture(scope="session", autouse=True)
def published() -> Iterator[dict[str, str]]:
    """What a host says of the site that it publishes: for the real site alone, the tiny ones know nothing of it."""
    said = {
        name: os.environ[name] for name in ("ATLAS_SITE", "ATLAS_REPOSITORY", "ATLAS_COMMIT") if name in os.environ
    }
    with pytest.MonkeyPatch.context() as patch:
        for name in said:
            patch.delenv(name)
        yield said


@pytest.fixture(scope="session")
def site(published: dict[str, str], request: pytest.FixtureRequest) -> Path:
    """The folder of the built site. It is built first; that is quick when nothing has changed."""
    if built := request.config.getoption("--built"):
        return built.resolve()
    jobs = ["--jobs", str(joblib.cpu_count() + 1)]
    options = ["--fail-on-warning", "--keep-going", "--conf-dir", "conf", "--builder", "html", *jobs]
    command = [sys.executable, "-m", "sphinx", *options, "--doctree-dir", "build/doctrees", "docs", str(HTML)]
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    done = subprocess.run(
        command,
        cwd=ROOT,
        env=os.environ | published | {"PATH": programs},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
    )
    if done.returncode:
        pytest.fail(f"the site does not build:\n{done.stdout}", pytrace=False)
    return ROOT / HTML
