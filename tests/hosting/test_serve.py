"""``nox -s serve``: a change is built at once, in a process that need not import PyTorch; a failing build ends nothing."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sphinx_autobuild.utils import find_free_port

from sources import ROOT
from tiny.tiny_site import written

PAGE = '''"""
Page
====

Text.
"""

import sys

print("{word}", "torch._dynamo" in sys.modules)
'''
SECONDS = 120.0  # a busy machine takes its time

Served = Callable[[str], None]


@pytest.fixture
def page(tmp_path: Path) -> Path:
    """The script of a site of one example."""
    written(tmp_path, {"examples/chapter/page.py": PAGE.format(word="before")})
    return tmp_path / "examples" / "chapter" / "page.py"


@pytest.fixture
def served(page: Path, tmp_path: Path) -> Iterator[Served]:
    """Waits until the page that is served has some words."""
    port = find_free_port()
    own = ["--port", str(port), "--watch", "examples", "--ignore", "docs/gallery/*"]
    options = ["--conf-dir", str(ROOT / "conf"), "--doctree-dir", "doctrees", "--no-color"]
    command = [sys.executable, ROOT / "conf" / "serve.py", *own, *options, "docs", "html"]
    log = tmp_path / "log.txt"
    with log.open("w") as said:
        server = subprocess.Popen(command, cwd=tmp_path, stdout=said, stderr=said)

    def wait(words: str) -> None:
        until = time.monotonic() + SECONDS
        while time.monotonic() < until and server.poll() is None:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/gallery/chapter/page.html") as answer:
                    if words in answer.read().decode():
                        return
            except urllib.error.URLError:
                pass
            time.sleep(0.1)
        pytest.fail(f"{words!r} is not served:\n{log.read_text()}", pytrace=False)

    yield wait
    server.send_signal(signal.SIGINT)
    server.wait(SECONDS)


def test_what_is_saved_is_served(page: Path, served: Served) -> None:
    served("before True")
    page.write_text(PAGE.format(word="after"))
    served("after True")
    page.write_text(PAGE.format(word="broken") + "1 / 0\n")
    served("ZeroDivisionError")
    page.write_text(PAGE.format(word="mended"))
    served("mended True")
