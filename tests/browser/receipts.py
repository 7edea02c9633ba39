"""What was visited without a finding, so that it need not be visited again while nothing changes that the visit saw.

A receipt is a file for each page in ``build/visits``. It holds a checksum of all that checked the page (the tests' own code,
axe, Chromium, Playwright, the server's settings), and one of each file that the page loaded: itself, style sheets, scripts,
fonts, images. It is written under another name and moved, as several processes may write.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterable
from importlib.metadata import version
from pathlib import Path
from urllib.parse import unquote

from axe_playwright_python.base import AXE_SCRIPT
from looking import Finding, Inspection

from sources import ROOT

#: What checks a page. The other tests here do not look at every page.
CODE = (
    "axe.py",
    "chromium.py",
    "looking.py",
    "looks.js",
    "page_scripts.py",
    "receipts.py",
    "serving.py",
    "test_every_page.py",
    "visiting.py",
)
#: The date and the commit below each page of a published build: no build would find a receipt that holds them.
_OF_EACH_BUILD = re.compile(rb'<p class="built">.*?</p>', re.DOTALL)


def checks(chromium: str) -> str:
    """A checksum of all that checks a page, with the version of Chromium."""
    files = [*(Path(__file__).with_name(name) for name in CODE), ROOT / "conf" / "nginx.conf"]
    parts = [chromium, version("playwright"), AXE_SCRIPT, *(path.read_text(encoding="utf-8") for path in files)]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


class Receipts:
    """The receipts in a folder.

    :param site: the folder of the built site.
    :param checks: the checksum of all that checks a page.
    :param trusted: whether what stands there counts; if not, every page is visited, and gets a new receipt.
    """

    def __init__(self, folder: Path, site: Path, checks: str, *, trusted: bool = True) -> None:
        self.folder, self.site, self.checks, self.trusted = folder, site, checks, trusted

    def hold(self, page: str) -> bool:
        """Whether a page was visited without a finding, and all is as it was then."""
        try:
            kept = json.loads(self._path(page).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return False
        if not self.trusted or kept["checks"] != self.checks:
            return False
        return kept["files"] == {name: self._digest(name) for name in kept["files"]}

    def visit(self, page: str, look: Callable[[], Inspection]) -> list[Finding] | None:
        """What a look at a page finds; None if it need not be looked at. It gets a receipt if nothing is found."""
        if self.hold(page):
            return None
        self._path(page).unlink(missing_ok=True)
        done = look()
        if not done.findings:
            self._keep(page, done.files)
        return done.findings

    def _keep(self, page: str, loaded: Iterable[str]) -> None:
        names = sorted({page, *(_file(address) for address in loaded)})
        files = {name: self._digest(name) for name in names}
        path = self._path(page)
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_name(f"{path.name}.{os.getpid()}")
        draft.write_text(json.dumps({"checks": self.checks, "files": files}, indent=1), encoding="utf-8")
        draft.replace(path)

    def _path(self, page: str) -> Path:
        return self.folder / f"{page}.json"

    def _digest(self, name: str) -> str | None:
        try:
            content = (self.site / name).read_bytes()
        except OSError:
            return None
        return hashlib.sha256(_OF_EACH_BUILD.sub(b"", content) if name.endswith(".html") else content).hexdigest()


def _file(address: str) -> str:
    name = unquote(address)
    return f"{name}index.html" if name == "" or name.endswith("/") else name
