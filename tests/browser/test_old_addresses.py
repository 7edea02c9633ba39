"""A reader with an old address arrives: by nginx, and on any other host, with scripts and without."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from playwright.sync_api import Browser, BrowserContext
from serving import Server
from visiting import Visit, open_page

from tiny.tiny_site import build, written

FILES = {
    "docs/guide/new.md": "# The new page\n\n## A part\n\nText.\n\n## Another part\n\nText.\n",
    "docs/moved-pages.txt": "old.html guide/new.html\nlong/gone.html guide/new.html#a-part\n",
}
BELOW = "/some-fork/"
CASES = [
    ("old.html", "guide/new.html"),
    ("old.html#another-part", "guide/new.html#another-part"),
    ("long/gone.html", "guide/new.html#a-part"),
]


@pytest.fixture(scope="module")
def moved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ATLAS_SITE", f"https://owner.example{BELOW}")
        done = build(written(tmp_path_factory.mktemp("moved"), FILES))
    assert done.code == 0, done.output
    return done.out


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *arguments: object) -> None:
        pass


@contextmanager
def static_host(folder: Path) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=folder)) as host:
        Thread(target=host.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{host.server_address[1]}"
        host.shutdown()


@pytest.mark.parametrize(("old", "new"), CASES)
def test_it_leads_on_below_a_path_and_under_the_policy(
    moved: Path, server: Server, fresh: BrowserContext, old: str, new: str
) -> None:
    with server(moved, BELOW) as origin:
        visit = Visit()
        tab = open_page(fresh, origin, old, visit)
        tab.wait_for_url(f"{origin}/{new}")
        # a page that leads on before it has ended its own loading aborts that
        errors = [said for said in visit.errors if not said.startswith("net::ERR_ABORTED for ")]
        assert not errors + visit.other_sites


@pytest.mark.parametrize(("old", "new"), CASES)
@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no-scripts"])
def test_a_static_page_leads_on(moved: Path, browser: Browser, old: str, new: str, scripts: bool) -> None:
    """Without scripts the anchor of the address is lost, and the reader is at the head of the right page."""
    if not scripts and old == "old.html#another-part":
        new = "guide/new.html"
    with static_host(moved) as origin, browser.new_context(java_script_enabled=scripts) as context:
        tab = open_page(context, origin, "index.html")
        tab.goto(f"{origin}/{old}")
        tab.wait_for_url(f"{origin}/{new}")
        if scripts:
            tab.go_back()
            assert tab.url == f"{origin}/index.html"
