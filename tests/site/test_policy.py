"""The pages need no more than the Content-Security-Policy of ``conf/nginx.conf`` allows, which would be blocked silently."""

from __future__ import annotations

import base64
import hashlib
import re
from pathlib import Path

from bs4 import BeautifulSoup

from markup import ADDRESSES, read
from sources import ROOT

#: Types of scripts that run; any other is data, which no policy asks about.
_RUNS = {"", "module", "importmap", "text/javascript", "application/javascript"}


def hashes_of_scripts(page: BeautifulSoup) -> set[str]:
    """The scripts within a page that run, neither data nor files, as a policy names them."""
    found = (script for script in page.find_all("script", src=False) if script.get("type", "").lower() in _RUNS)
    digests = (hashlib.sha256("".join(script.strings).encode()).digest() for script in found)
    return {f"sha256-{base64.b64encode(digest).decode()}" for digest in digests}


def code_in_attributes(page: BeautifulSoup) -> list[str]:
    """The elements with code in an attribute, which no list of hashes can allow: ``onclick``, ``javascript:`` addresses."""
    return [
        f'<{element.name} {name}="{value}">'
        for element in page.find_all(True)
        for name, value in element.attrs.items()
        if name.startswith("on")
        or (name in ADDRESSES and re.sub(r"[\x00-\x20]", "", str(value)).lower().startswith("javascript:"))
    ]


def test_the_policy_names_the_scripts_within_pages_and_no_others(site: Path, all_pages: list[str]) -> None:
    (policy,) = re.findall(
        r'Content-Security-Policy "([^"]*)"', (ROOT / "conf/nginx.conf").read_text(encoding="utf-8")
    )
    needed = hashes_of_scripts(read(ROOT / "conf/templates/moved_page.html"))
    needed = needed.union(*(hashes_of_scripts(read(site / name)) for name in all_pages))
    assert set(re.findall(r"'(sha256-[^']+)'", policy)) == needed
    (scripts,) = re.findall(r"script-src ([^;]*);", policy)
    assert "unsafe" not in scripts and not re.search(r"https?:|\*", policy)


def test_no_page_has_code_in_an_attribute(site: Path, page: str) -> None:
    assert not code_in_attributes(read(site / page)), "put it into a script of conf/static, with addEventListener"


def test_what_the_policy_blocks_is_found() -> None:
    page = BeautifulSoup(
        "<script>a()</script><script src='a.js'></script><script type='application/json'>{}</script>"
        "<button ONCLICK='go()'></button><a href=' java\nScript:go()'></a><a href='#javascript:'></a>",
        "html.parser",
    )
    assert len(hashes_of_scripts(page)) == 1
    assert [found.partition(" ")[0] for found in code_in_attributes(page)] == ["<button", "<a"]
