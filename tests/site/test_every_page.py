"""What holds of every page: a heading and a title, words for its figures, links that lead somewhere, nothing from other sites.

Each check names the faults of a page. ``test_a_fault_is_found`` has an example of each fault, so that a check that no longer
finds anything is noticed.
"""

from __future__ import annotations

import base64
import hashlib
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from bs4 import BeautifulSoup, Tag

from atlas.checks import FOLDERS
from markup import ADDRESSES, CARDS, FIGURES, addresses, read, text_of
from sources import GENERATED, ROOT

# -- Headings, descriptions, tables ----------------------------------------------------------------


def check_titles(page: BeautifulSoup) -> Iterator[str]:
    headings, title = page.find_all("h1"), page.select_one("head > title")
    if len(headings) != 1 or not text_of(headings[0]):
        yield f"not one h1 with a text: {[text_of(heading) for heading in headings]}"
    if title is None or not text_of(title):
        yield "no title"
    if page.html is None or not page.html.get("lang"):
        yield "no language"


def read_descriptions(page: BeautifulSoup) -> list[str]:
    """What search engines and shared links say of a page."""
    return [tag["content"] for tag in page.select("meta[name='description'], meta[property='og:description']")]


def check_ids(page: BeautifulSoup) -> Iterator[str]:
    yield from (
        f"an id twice: {name}"
        for name, times in Counter(tag["id"] for tag in page.select("[id]")).items()
        if times > 1
    )


def check_tables(page: BeautifulSoup) -> Iterator[str]:
    """A browser that works out the widths of columns moves them while the rows arrive."""
    measured = ".graph-table, .dataframe, .long-table table, .memory-cells table, .indextable"
    for table in page.select(f"article table:not({measured})"):
        if not table.colgroup:
            yield f"put the table into ```{{table}} with :widths: {table.get_text(' ', strip=True)[:60]}"


# -- Figures and cards -----------------------------------------------------------------------------

_FILE_NAME = re.compile(r"sphx[_-]glr|\.(?:png|svg|jpe?g|gif|webp)$|^[\w-]+$", re.IGNORECASE)


def check_figures(page: BeautifulSoup) -> Iterator[str]:
    """Each image and each drawn graph says in words what it shows. A picture on a card need not: the card's link does."""
    seen: Counter[str] = Counter()
    for figure in page.select(FIGURES):
        words = (figure.get("aria-label" if figure.name == "svg" else "alt") or "").strip()
        seen[words] += 1
        if not words or seen[words] > 1:
            yield f"no words of its own for {str(figure)[:100]}"
        elif _FILE_NAME.search(words):
            yield f"a file name, or a single word, for words: {words}"
        if figure.name == "svg" and figure.get("role") != "img":
            yield f"a drawing that is not one image to a screen reader: {words}"
    for card in page.select(CARDS):
        if not any(map(text_of, card.select("a"))) or any(image.get("alt") is None for image in card.select("img")):
            yield f"no link with words, or an image without alt, in {str(card)[:100]}"


@cache
def read_palette() -> set[str]:
    return set(re.findall(r"--plot-([0-9a-f]{6}):", (ROOT / "conf/static/plot.css").read_text(encoding="utf-8")))


def check_plots(page: BeautifulSoup) -> Iterator[str]:
    """A color without a counterpart in plot.css cannot be read on a dark page. A plot on paper needs none."""
    plots = "".join(map(str, page.select("svg.plot:not(.plot-on-paper)")))
    strange = set(re.findall(r"var\(--plot-([0-9a-f]{6})", plots)) - read_palette()
    yield from (f"conf/static/plot.css has no {color} for a dark page" for color in sorted(strange))


# -- The machine that built it, and other sites ----------------------------------------------------

_TRACES = re.compile(rf"\b0x[0-9a-f]{{6,}}\b|(?<![\w.:/])/(?:{'|'.join(FOLDERS)})/[\w.<-]+", re.IGNORECASE)
_PLACES = re.compile("|".join(rf"(?<![\w.:/]){re.escape(place)}\b" for place in (str(ROOT), sys.prefix)))
_LOADED = {"stylesheet", "icon", "preload", "prefetch", "modulepreload", "preconnect", "dns-prefetch", "manifest"}
_IN_STYLES = re.compile(r"""(?:url\(\s*|@import\s+)["']?([^"')\s;]+)""")
_IN_DRAWINGS = re.compile(r"""<(?:image|use|script|feImage)\b[^>]*?\b(?:xlink:href|href|src)=["']([^"']+)""")


def check_traces(page: BeautifulSoup) -> Iterator[str]:
    """A memory address, or a path of the machine, in text or markup: both differ with every build."""
    for text in (page.get_text(), str(page)):
        yield from (
            f"a trace of the builder: {found[0]}" for found in [*_TRACES.finditer(text), *_PLACES.finditer(text)]
        )


def find_elsewhere(named: Iterable[str]) -> list[str]:
    return [address for address in named if urlsplit(address).netloc]


def check_loaded(page: BeautifulSoup) -> Iterator[str]:
    """What a browser would ask other sites for when it shows the page. Links to them are fine."""
    styles = [style.get_text() for style in page.find_all("style")] + [
        tag["style"] for tag in page.find_all(style=True)
    ]
    named = [address for element, address in addresses(page) if is_loaded(element)]
    named += [address for style in styles for address in _IN_STYLES.findall(style)]
    yield from (f"loaded from another site: {address}" for address in find_elsewhere(named))


def is_loaded(element: Tag) -> bool:
    if element.name == "link":
        return bool(_LOADED.intersection(element.get("rel", [])))
    return element.name not in ("a", "form", "area")


def find_loaded_by_file(path: Path) -> list[str]:
    """What a style sheet or a drawing loads from other sites."""
    content = path.read_text(encoding="utf-8")
    return find_elsewhere([*_IN_STYLES.findall(content), *_IN_DRAWINGS.findall(content)])


# -- Scripts within pages, and the policy of conf/nginx.conf ---------------------------------------

#: Types of scripts that run; any other is data, which no policy asks about.
_RUNS = {"", "module", "importmap", "text/javascript", "application/javascript"}


def hash_scripts(page: BeautifulSoup) -> set[str]:
    """The scripts within a page that run, neither data nor files, as a policy names them."""
    found = (script for script in page.find_all("script", src=False) if script.get("type", "").lower() in _RUNS)
    digests = (hashlib.sha256("".join(script.strings).encode()).digest() for script in found)
    return {f"sha256-{base64.b64encode(digest).decode()}" for digest in digests}


def check_attributes(page: BeautifulSoup) -> Iterator[str]:
    """The policy blocks code in an attribute silently: ``onclick``, ``javascript:`` addresses."""
    for element in page.find_all(True):
        for name, value in element.attrs.items():
            address = re.sub(r"[\x00-\x20]", "", str(value)).lower() if name in ADDRESSES else ""
            if name.startswith("on") or address.startswith("javascript:"):
                yield f"code in an attribute, put it into a script of conf/static: <{element.name} {name}>"


# -- Links within the site -------------------------------------------------------------------------


FIGURE_PAGE = "figure.html"


def find_broken_links(site: Path, page: str, root: str = "/") -> Iterator[str]:
    """The addresses in a page that lead nowhere, links to other sites left aside.

    :param root: the path at which the site will stand: addresses of the page for what is not found begin with it.
    """
    for element, address in addresses(read(site / page)):
        parts = urlsplit(address)
        if not parts.scheme and not parts.netloc:
            target = find_target(site, page, unquote(parts.path), root)
            if target.name == FIGURE_PAGE:  # it shows a figure of the page behind the question mark
                target = site / parts.query
            if not target.is_file():
                yield f"{element.name} leads to no file: {address}"
            elif parts.fragment and target.suffix == ".html" and unquote(parts.fragment) not in read_anchors(target):
                yield f"{element.name} leads to no anchor: {address}"


def find_target(site: Path, page: str, path: str, root: str) -> Path:
    """The file behind an address; one that begins with / counts from the site's root."""
    if not path:
        return site / page
    if path.startswith("/") and not path.startswith(root):
        return site.parent / path.lstrip("/")
    target = site / path.removeprefix(root) if path.startswith("/") else (site / page).parent / path
    return target / "index.html" if target.is_dir() else target


@cache
def read_anchors(path: Path) -> frozenset[str]:
    found = _Anchors()
    found.feed(path.read_text(encoding="utf-8"))
    found.close()
    return frozenset(found.names)


class _Anchors(HTMLParser):
    """Names the anchors as it reads, and makes no tree: a page leads to many, and each process reads them all."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names |= {value for name, value in attrs if value and (name == "id" or (name == "name" and tag == "a"))}


# -- Tests -----------------------------------------------------------------------------------------

CHECKS = (
    *(check_titles, check_ids, check_tables, check_figures, check_plots),
    *(check_traces, check_loaded, check_attributes),
)


def find_faults(page: BeautifulSoup) -> list[str]:
    return [fault for check in CHECKS for fault in check(page)]


def test_a_page_has_no_fault(site: Path, page: str, published: dict[str, str]) -> None:
    found = find_faults(read(site / page))
    found += find_broken_links(site, page, urlsplit(published.get("ATLAS_SITE", "")).path or "/")
    said = read_descriptions(read(site / page))
    if page not in GENERATED and not (
        len(said) == 2 == said.count(said[0]) and 30 < len(said[0]) < 500 and said[0][-1] in ".?!:"
    ):
        found.append(f"not one description in whole sentences: {said}")
    assert not found, "\n".join(found)


def test_titles_and_descriptions_differ(site: Path, all_pages: list[str]) -> None:
    pages = [read(site / page) for page in all_pages]
    titles = Counter(text_of(page.select_one("head > title")) for page in pages)
    described = Counter(said[0] for page in pages if (said := read_descriptions(page)))
    assert not [text for found in (titles, described) for text, times in found.items() if times > 1]


def test_styles_and_drawings_load_nothing_from_elsewhere(site: Path) -> None:
    files = [*site.rglob("*.css"), *site.rglob("*.svg")]
    assert files and not {path.name: found for path in files if (found := find_loaded_by_file(path))}


def test_the_policy_names_the_scripts_within_pages_and_no_others(site: Path, all_pages: list[str]) -> None:
    nginx = (ROOT / "conf/nginx.conf").read_text(encoding="utf-8")
    (policy,) = re.findall(r'Content-Security-Policy "([^"]*)"', nginx)
    pages = [ROOT / "conf/templates/moved_page.html", *(site / name for name in all_pages)]
    assert set(re.findall(r"'(sha256-[^']+)'", policy)) == set().union(*map(hash_scripts, map(read, pages)))
    (scripts,) = re.findall(r"script-src ([^;]*);", policy)
    assert "unsafe" not in scripts and not re.search(r"https?:|\*", policy)


GOOD = """<html lang="en"><head><title>T</title><link rel="canonical" href="https://fine.example"></head><body><h1>One</h1>
<a href="https://fine.example/home/page.html#javascript:">at 0xff</a> ../tmp/cache, home/root
<svg class="plot plot-on-paper"><path style="fill: var(--plot-123456)"/></svg><img alt="Two words">{}</body></html>"""


@pytest.mark.parametrize(
    ("html", "said"),
    [
        ("", ""),
        ("<h1></h1>", "not one h1"),
        ('<p id="a"></p><p id="a"></p>', "an id twice: a"),
        ("<article><table><tr><td>one</td></tr></table></article>", "with :widths: one"),
        ('<img src="a.png" alt="Two words">', "no words of its own"),
        ('<img src="a.png" alt="sphx_glr_b_001">', "a file name"),
        ('<svg class="graph" aria-label="A graph of two nodes"></svg>', "not one image"),
        ('<li class="card"><img alt="" src="a.png"><a href="a.html"><span></span></a></li>', "no link with words"),
        ('<li class="card"><img src="a.png"><a href="a.html">words</a></li>', "without alt"),
        ('<svg class="plot"><path style="fill: var(--plot-123456, #123456)"/></svg>', "no 123456 for a dark page"),
        ("<pre>&lt;MulBackward0 object at 0x7f2a0ef090b0&gt;</pre>", "a trace"),
        ("<pre><span>/</span><span>root</span><span>/site/page.py</span></pre>", "a trace"),
        (f"<pre>in {ROOT}/docs</pre>", f"a trace of the builder: {ROOT}"),
        ('<script src="//cdn.example/mathjax.js"></script>', "loaded from another site: //cdn"),
        ('<link rel="stylesheet" href="https://fonts.example/css">', "loaded from another site"),
        ("<style>@import 'https://fonts.example/css';</style>", "loaded from another site"),
        ("<button ONCLICK='go()'></button>", "<button onclick>"),
        ("<a href=' java\nScript:go()'></a>", "<a href>"),
    ],
)
def test_a_fault_is_found(html: str, said: str) -> None:
    found = find_faults(BeautifulSoup(GOOD.format(html), "html.parser"))
    assert any(said in fault for fault in found) if said else not found


@pytest.mark.parametrize(
    "html",
    [
        *('<a href="gone.html">', '<a href="#gone">', '<a href="page.html#gone">', '<a href="/gone/">'),
        '<img src="page.html" srcset="page.html 1x, gone.png 2x">',
        *('<link rel="stylesheet" href="gone.css?v=1">', '<script src="gone.js"></script>'),
        *('<svg><use href="#gone"></use></svg>', '<a download href="_downloads/gone.py">', '<a href="/page.html">'),
    ],
)
def test_a_broken_link_is_found(tmp_path: Path, html: str) -> None:
    (tmp_path / "page.html").write_text(
        f'<p id="here"><a href="#here"><a href="page.html#here"><a href="/fork/page.html">{html}'
    )
    assert len(list(find_broken_links(tmp_path, "page.html", "/fork/"))) == 1


def test_what_a_file_loads_and_which_scripts_run_is_found(tmp_path: Path) -> None:
    style, drawing = tmp_path / "a.css", tmp_path / "a.svg"
    style.write_text('a { background: url(a.png) } @font-face { src: url( "https://fonts.example/a.woff2" ) }')
    drawing.write_text('<svg xmlns="http://www.w3.org/2000/svg"><image href="https://img.example/a.png"/></svg>')
    assert find_loaded_by_file(style) == ["https://fonts.example/a.woff2"]
    assert find_loaded_by_file(drawing) == ["https://img.example/a.png"]
    scripts = "<script>a()</script><script src='a.js'></script><script type='application/json'>{}</script>"
    assert len(hash_scripts(BeautifulSoup(scripts, "html.parser"))) == 1
