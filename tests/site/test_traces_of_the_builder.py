"""No page shows a memory address or a path of the machine that built it: both differ with every build."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from markup import read

_TRACES = re.compile(r"\b0x[0-9a-f]{6,}\b|(?<![\w.:/])/(?:home|root|tmp)/[\w.<-]+", re.IGNORECASE)


def traces(path: Path) -> list[str]:
    """What a page says of its builder, in its text or in its markup."""
    return sorted({*_TRACES.findall(read(path).get_text()), *_TRACES.findall(path.read_text(encoding="utf-8"))})


def test_no_page_shows_its_builder(site: Path, page: str) -> None:
    assert not traces(site / page)


@pytest.mark.parametrize(
    "html",
    [
        "<pre>&lt;MulBackward0 object at 0x7f2a0ef090b0&gt;</pre>",
        "<pre>File &quot;/home/someone/site/page.py&quot;, line 3</pre>",
        "<pre><span>/</span><span>root</span><span>/site/page.py</span></pre>",
        '<img src="a.png" alt="read from /tmp/tmp1a2b3c/a.png">',
    ],
)
def test_a_trace_is_found(tmp_path: Path, html: str) -> None:
    page = tmp_path / "page.html"
    page.write_text(html)
    assert len(traces(page)) == 1


def test_other_sites_and_short_numbers_are_no_trace(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text('<a href="https://other.example/home/page.html">at 0xff</a> ../tmp/cache, home/root')
    assert not traces(page)
