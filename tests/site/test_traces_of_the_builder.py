"""No page shows a memory address or a path of the machine that built it: both differ with every build."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from atlas.checks import FOLDERS
from markup import read
from sources import ROOT

#: Where the sources and the packages lie, wherever that is.
PLACES = (str(ROOT), sys.prefix)

_TRACES = re.compile(rf"\b0x[0-9a-f]{{6,}}\b|(?<![\w.:/])/(?:{'|'.join(FOLDERS)})/[\w.<-]+", re.IGNORECASE)


def traces(path: Path, places: Sequence[str] = PLACES) -> list[str]:
    """What a page says of its builder, in its text or in its markup."""
    texts = read(path).get_text(), path.read_text(encoding="utf-8")
    patterns = [_TRACES, *(re.compile(rf"(?<![\w.:/]){re.escape(place)}\b") for place in places)]
    return sorted({trace for text in texts for pattern in patterns for trace in pattern.findall(text)})


def test_no_page_shows_its_builder(site: Path, page: str) -> None:
    assert not traces(site / page)


@pytest.mark.parametrize(
    "html",
    [
        "<pre>&lt;MulBackward0 object at 0x7f2a0ef090b0&gt;</pre>",
        "<pre>File &quot;/home/someone/site/page.py&quot;, line 3</pre>",
        "<pre><span>/</span><span>root</span><span>/site/page.py</span></pre>",
        '<img src="a.png" alt="read from /tmp/tmp1a2b3c/a.png">',
        "<pre>/opt/hostedtoolcache/Python</pre>",
    ],
)
def test_a_trace_is_found(tmp_path: Path, html: str) -> None:
    page = tmp_path / "page.html"
    page.write_text(html)
    assert len(traces(page)) == 1


@pytest.mark.parametrize(("words", "found"), [("in /srv/site/docs", ["/srv/site"]), ("in /srv/sites", [])])
def test_the_place_of_the_sources_is_found_wherever_it_is(tmp_path: Path, words: str, found: list[str]) -> None:
    page = tmp_path / "page.html"
    page.write_text(f'<a href="https://other.example/srv/site">{words}</a>')
    assert traces(page, ["/srv/site"]) == found


def test_other_sites_and_short_numbers_are_no_trace(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text('<a href="https://other.example/home/page.html">at 0xff</a> ../tmp/cache, home/root')
    assert not traces(page)
