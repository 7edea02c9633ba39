"""The site as nginx serves it, at a root and below a path: headers, the policy, what is not found, what has moved.

All browser tests go through the same server, and ``test_every_page.py`` opens every page under the policy. What is done on
a page after it was opened is looked at here, in a fork: a search, and a graph that plays.
"""

from __future__ import annotations

import gzip
import re
import shutil
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from email.message import Message
from pathlib import Path

import pytest
from bs4 import BeautifulSoup
from playwright.sync_api import BrowserContext, Page, expect
from serving import Server
from visiting import FIGURE, FIRST, Visit, open_page, until

from tiny.tiny_site import build, written

FOREVER = "public, max-age=31536000, immutable"
SECURITY = [
    "Content-Security-Policy",
    "Cross-Origin-Opener-Policy",
    "Permissions-Policy",
    "Referrer-Policy",
    "X-Content-Type-Options",
]
BELOW = "/some-fork/"
NOWHERE = ["none.html", "gallery/none/at/all/"]


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Message
    body: bytes


def ask_server(address: str, **headers: str) -> Answer:
    own = {name.replace("_", "-"): value for name, value in headers.items()}
    try:
        with urllib.request.urlopen(urllib.request.Request(address, headers=own)) as answer:
            return Answer(answer.status, answer.headers, answer.read())
    except urllib.error.HTTPError as error:
        return Answer(error.code, error.headers, error.read())


def find_style(site: Path) -> str:
    """The address of a style sheet as the front page gives it, with its checksum."""
    page = BeautifulSoup((site / "index.html").read_bytes(), "html.parser")
    return page.select_one('link[rel=stylesheet][href*="site.css?v="]')["href"]


# -- Headers --------------------------------------------------------------------------------------

TYPES = {
    FIRST: "text/html; charset=utf-8",
    f"{FIRST}.md": "text/markdown; charset=utf-8",
    "llms.txt": "text/plain; charset=utf-8",
    "_static/site.css": "text/css; charset=utf-8",
    "search-index.js": "application/javascript; charset=utf-8",
    "sitemap.xml": "text/xml; charset=utf-8",
}


@pytest.mark.parametrize("address", TYPES)
def test_text_has_its_type_and_all_headers_and_is_sent_small(origin: str, address: str) -> None:
    plain, small = ask_server(f"{origin}/{address}"), ask_server(f"{origin}/{address}", Accept_Encoding="gzip")
    assert (plain.status, plain.headers["Content-Type"]) == (200, TYPES[address])
    assert [name for name in SECURITY if name in plain.headers] == SECURITY
    assert small.headers["Content-Encoding"] == "gzip" and small.headers["Vary"] == "Accept-Encoding"
    assert gzip.decompress(small.body) == plain.body and len(small.body) < len(plain.body) / 2
    again = ask_server(f"{origin}/{address}", If_None_Match=plain.headers["ETag"])
    assert (again.status, again.body) == (304, b""), "what has not changed is not sent again"


def test_what_has_a_checksum_is_kept_and_all_else_asked_for_again(origin: str, site: Path) -> None:
    """A page's link with ``?v=`` that somebody made up would otherwise leave its readers with today's page for a year."""
    style = find_style(site)
    for address in (style, style.split("?")[0], *TYPES, *(f"{name}?v=abc123" for name in (FIRST, "", "sitemap.xml"))):
        answer, kept = ask_server(f"{origin}/{address}"), FOREVER if address == style else "no-cache"
        assert (answer.status, answer.headers["Cache-Control"]) == (200, kept), address
    answer = ask_server(f"{origin}/_static/none.css?v=1234")
    assert (answer.status, answer.headers["Cache-Control"]) == (404, "no-cache")
    assert [name for name in SECURITY if name in answer.headers] == SECURITY


# -- The policy -----------------------------------------------------------------------------------


@pytest.fixture
def tampered(site: Path, server: Server, tmp_path: Path) -> Iterator[str]:
    """A page of the site with a script and an image that are not of it."""
    shutil.copy(site / "genindex.html", tmp_path)
    shutil.copytree(site / "_static", tmp_path / "_static")
    page = (tmp_path / "genindex.html").read_text(encoding="utf-8")
    wrong = '<script>document.title = "taken";</script><img src="https://other.example/picture.png" alt="">'
    (tmp_path / "wrong.html").write_text(page.replace("</article>", f"{wrong}</article>"), encoding="utf-8")
    with server(tmp_path) as address:
        yield address


def test_the_policy_bites(tampered: str, fresh: BrowserContext) -> None:
    right, wrong = Visit(), Visit()
    open_page(fresh, tampered, "genindex.html", right)
    assert not right.errors
    tab = open_page(fresh, tampered, "wrong.html", wrong)
    assert tab.title() != "taken"
    for directive in ("script-src", "img-src"):
        said = re.compile(f"Content Security Policy directive:? [\"']{directive} ")
        until(tab, lambda said=said: any(map(said.search, wrong.errors)), lambda: wrong.errors)


def test_a_page_asks_its_own_site_alone(tab: Page, origin: str) -> None:
    asked = "address => fetch(address).then(answer => answer.status, () => 'refused')"
    assert tab.evaluate(asked, f"{origin}/robots.txt") == 404, "Lighthouse asks for it as the page would"
    assert tab.evaluate(asked, "https://other.example/robots.txt") == "refused"


# -- Not found ------------------------------------------------------------------------------------


def expect_missing(context: BrowserContext, origin: str, address: str) -> None:
    """See that the answer is the site's own page, with its styles, and that it leads back."""
    visit = Visit()
    tab = open_page(context, origin, address, visit)
    assert visit.errors[0] == f"404 for {origin}/{address}"
    assert not visit.other_sites
    # the page itself, and Chromium's own words on it, which may come late; a style sheet that is missing would be one more
    until(tab, lambda: len(visit.errors) >= 2, lambda: visit.errors)
    assert len(visit.errors) == 2, visit.errors
    expect(tab.locator("article h1")).to_contain_text("not found", ignore_case=True)
    assert tab.evaluate("getComputedStyle(document.querySelector('.sidebar-drawer')).display") == "flex"
    tab.locator(".sidebar-brand").click()
    tab.wait_for_url(f"{origin}/index.html")
    tab.close()


@pytest.mark.parametrize("address", NOWHERE)
def test_what_is_not_found_at_any_depth(origin: str, fresh: BrowserContext, address: str) -> None:
    assert ask_server(f"{origin}/{address}").status == 404
    expect_missing(fresh, origin, address)


# -- Below a path ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def fork(site: Path, server: Server) -> Iterator[str]:
    """The site as the site of a fork."""
    with server(site, BELOW) as address:
        yield address


def test_below_a_path_only_what_has_a_checksum_is_kept_and_nothing_is_above_it(fork: str, site: Path) -> None:
    kept = [
        ask_server(f"{fork}/{address}").headers["Cache-Control"]
        for address in (find_style(site), f"{FIRST}?v=abc123")
    ]
    assert kept == [FOREVER, "no-cache"]
    assert ask_server(f"{fork.removesuffix('/some-fork')}/{FIRST}").status == 404
    with urllib.request.urlopen(fork) as answer:
        assert answer.url == f"{fork}/", "the path without its slash leads there"


def test_a_fork_is_clicked_through(fork: str, fresh: BrowserContext) -> None:
    """What is asked for above the path counts as another site."""
    visit = Visit()
    tab = open_page(fresh, fork, "", visit)
    tab.locator(".sidebar-tree").get_by_role("link", name="Computation graphs", exact=True).click()
    tab.wait_for_url(f"{fork}/gallery/graphs/index.html")
    tab.locator(".card").first.click()
    tab.wait_for_url(f"{fork}/{FIRST}")
    figure = tab.locator(f"#{FIGURE}")
    for button in ("One step on", "Play"):
        figure.get_by_role("button", name=button, exact=True).click()
    figure.locator(".g-card").first.hover()
    expect(figure.locator(".graph-note")).to_be_visible()
    with tab.expect_navigation():
        tab.locator(".related-pages .next-page").click()
    assert tab.url.startswith(f"{fork}/gallery/graphs/") and not tab.url.endswith(FIRST)
    tab.get_by_placeholder("Search").first.click()
    tab.get_by_role("dialog").get_by_role("combobox").fill("retain_grad")
    expect(tab.get_by_role("dialog").get_by_role("option").first).to_be_visible()
    with tab.expect_navigation():
        tab.keyboard.press("Enter")
    assert tab.url.startswith(f"{fork}/") and "search.html" not in tab.url
    expect(tab.locator("article")).to_contain_text("retain_grad")
    assert not visit.errors + visit.other_sites


@pytest.fixture(scope="module")
def tiny_fork(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A tiny site, built for an address below a path."""
    files = {
        "docs/page.md": "# A page\n\n## A part\n\nText.\n\n## Another part\n\nText.\n",
        "docs/moved-pages.txt": "old.html page.html\nlong/gone.html page.html#a-part\n",
    }
    place = written(tmp_path_factory.mktemp("fork"), files)
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("ATLAS_SITE", f"https://owner.example{BELOW}")
        done = build(place)
    assert done.code == 0, done.output
    with server(done.out, BELOW) as address:
        yield address


@pytest.mark.parametrize("address", NOWHERE)
def test_what_is_not_found_below_a_path(tiny_fork: str, fresh: BrowserContext, address: str) -> None:
    expect_missing(fresh, tiny_fork, address)


OLD = {
    "old.html": "page.html",
    "old.html#another-part": "page.html#another-part",
    "long/gone.html": "page.html#a-part",
}


@pytest.mark.parametrize("old", OLD)
def test_an_old_address_leads_on_and_the_way_back_does_not_lead_through_it(
    tiny_fork: str, fresh: BrowserContext, old: str
) -> None:
    visit = Visit()
    tab = open_page(fresh, tiny_fork, "index.html", visit)
    tab.goto(f"{tiny_fork}/{old}")
    tab.wait_for_url(f"{tiny_fork}/{OLD[old]}")
    # a page that leads on before it has ended its own loading aborts that
    errors = [said for said in visit.errors if not said.startswith("net::ERR_ABORTED for ")]
    assert not errors + visit.other_sites
    tab.go_back()
    assert tab.url == f"{tiny_fork}/index.html"
