"""A reader with an old address arrives, and the way back does not lead through it."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext
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


@pytest.mark.parametrize(("old", "new"), CASES)
def test_it_leads_on_below_a_path_and_under_the_policy(
    moved: Path, server: Server, fresh: BrowserContext, old: str, new: str
) -> None:
    with server(moved, BELOW) as origin:
        visit = Visit()
        tab = open_page(fresh, origin, "index.html", visit)
        tab.goto(f"{origin}/{old}")
        tab.wait_for_url(f"{origin}/{new}")
        # a page that leads on before it has ended its own loading aborts that
        errors = [said for said in visit.errors if not said.startswith("net::ERR_ABORTED for ")]
        assert not errors + visit.other_sites
        tab.go_back()
        assert tab.url == f"{origin}/index.html"
