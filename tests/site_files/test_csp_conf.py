"""The build lists the scripts within its pages, all of them and the same each time, and refuses what no list can allow."""

from __future__ import annotations

import os
import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from atlas.site_files import csp_conf
from atlas.site_files.csp_conf import FILE, faults, hash_of, inline_scripts, policy
from tiny.tiny_site import ROOT, Build, build, written

EARLY = '\n      document.body.dataset.theme = localStorage.getItem("theme") || "auto";\n    '
HASHES = re.compile(r"'(sha256-[^']+)'")
HANDLER = "# Title\n\n```{raw} html\n<button onclick=\"alert('x')\">Run</button>\n```\n"
ADDRESS = '# Title\n\n```{raw} html\n<a href="JavaScript:void(0)">Run</a>\n```\n'


def policy_of(site: Build) -> str:
    return (site.out / FILE).read_text(encoding="utf-8")


def test_a_script_that_runs_is_listed() -> None:
    for tag in (
        "<script>",
        '<script type="module">',
        "<SCRIPT type=text/javascript>",
        '<script id="src" data-src="a.js">',
        '<script data-a="x>y">',
        "<script data-a='x > y' defer>",
        '<script data-a="a src=b" data-b=" type=text/plain">',
        '<script type = "TEXT/JavaScript" >',
    ):
        assert list(inline_scripts(f"<body>{tag}run()</script>")) == ["run()"], tag


def test_data_and_files_are_not() -> None:
    for tag in (
        '<script type="application/json">',
        '<script src="a.js">',
        "<script defer src=a.js>",
        '<script data-a="x>y" src="a.js">',
        '<script type=" text/x&#45;data ">',
    ):
        assert not list(inline_scripts(f"<body>{tag}run()</script>")), tag


def test_the_order_and_the_number_of_scripts_do_not_matter() -> None:
    assert policy(["a()", "b()", "a()"]) == policy(["b()", "a()"]) != policy(["a()"])


def test_the_policy_of_a_site(good: Build) -> None:
    """It lists what is on the pages, the theme's early script too, and allows no other code and no other site."""
    line = policy_of(good)
    pages = [path.read_text(encoding="utf-8") for path in good.out.rglob("*.html")]
    assert set(HASHES.findall(line)) == {hash_of(script) for page in pages for script in inline_scripts(page)}
    assert hash_of(EARLY) in line
    (scripts,) = re.findall(r"script-src ([^;]*);", line)
    assert "unsafe" not in scripts and not re.search(r"https?:|\*", line)


def test_it_is_one_line_for_nginx(good: Build) -> None:
    assert re.fullmatch(r'add_header Content-Security-Policy "[^"\n]+" always;\n', policy_of(good))
    assert f"/{FILE};" in (ROOT / "conf" / "nginx.conf").read_text(encoding="utf-8")


def test_a_foreign_page_in_an_older_encoding_is_read_as_a_browser_does(tmp_path: Path) -> None:
    (tmp_path / "old.html").write_bytes("<script>say('Grüße')</script>".encode("cp1252"))
    csp_conf.write(SimpleNamespace(builder=SimpleNamespace(name="html"), outdir=tmp_path), None)
    assert HASHES.findall((tmp_path / FILE).read_text(encoding="utf-8")) == [hash_of("say('Grüße')")]


def test_a_page_that_was_not_written_again_keeps_its_script(tmp_path: Path) -> None:
    script = "document.title = 'kept';"
    text = f"# Title\n\n```{{raw}} html\n<script>{script}</script>\n```\n"
    site = written(tmp_path, {"docs/scripted.md": text, "docs/other.md": "# Other\n\nText.\n"})
    first = build(site)
    assert first.code == 0, first.output
    before = policy_of(first)
    assert hash_of(script) in before
    (site / "docs" / "other.md").write_text("# Other\n\nMore.\n", encoding="utf-8")
    again = build(site)
    assert again.code == 0 and policy_of(again) == before
    (site / "docs" / "scripted.md").write_text("# Title\n\nNone.\n", encoding="utf-8")
    assert build(site).code == 0
    assert policy_of(again) == before.replace(f" '{hash_of(script)}'", "")


@pytest.mark.parametrize(
    "tag",
    [
        '<button onclick="go()">',
        "<img alt=''\n  onError = 'go()'>",
        '<svg><a xlink:href="javascript:go()">',
        '<form action=" javascript:go()">',
        '<button ONCLICK="go()">',
        '<a href="JAVASCRIPT:go()">',
        '<svg/onload="go()">',
        '<img src="x"onerror="go()">',
        "<img alt='x'onerror='go()'>",
        '<a href="&#106;avascript:go()">',
        '<a href="&#x6A;avascript:go()">',
        '<a href="javascript&colon;go()">',
        "<form action = javascript&#58;go()>",
        '<iframe src="j&Tab;avascript:go()">',
        '<a href="java\nscript:go()">',
        '<a href="ja\tva\r\nscript\n:go()">',
        '<a href="\x01 javascript:go()">',
    ],
)
def test_code_in_an_attribute_is_found(tag: str) -> None:
    assert len(faults(f"<p>Text</p>{tag}")) == 1


def test_what_only_looks_like_it_is_not() -> None:
    assert not faults(
        '<p title="a onclick=b">once = 1, onnx = 2 and javascript: on a page</p><a href="#javascript:">'
        '<a href="a.html?x=1&amp;y=javascript:"><a href="&amp;javascript:"><a href="java script:go()">'
    )


def test_code_in_an_attribute_stops_the_build_each_time(tmp_path: Path) -> None:
    """The second build writes neither page again."""
    site = written(tmp_path, {"docs/handler.md": HANDLER, "docs/address.md": ADDRESS})
    for _ in range(2):
        done = build(site)
        assert done.code != 0
        assert """handler.html: <button onclick="alert('x')">""" in done.output, done.output
        assert 'address.html: <a href="JavaScript:void(0)">' in done.output, done.output
        assert "put it into a script of conf/static" in done.output


def test_a_page_is_searched_when_it_has_changed_since_the_last_policy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    searched: list[str] = []
    monkeypatch.setattr(csp_conf, "faults", lambda page: searched.append(page) or [])
    app = SimpleNamespace(builder=SimpleNamespace(name="html"), outdir=tmp_path)
    for name in ("one", "two"):
        (tmp_path / f"{name}.html").write_text(name)
    csp_conf.write(app, None)
    csp_conf.write(app, None)
    assert searched == ["one", "two"]
    copied = tmp_path / "two.html"
    copied.write_text("copied, with its old date")
    os.utime(copied, (0, 0))
    csp_conf.write(app, None)
    assert searched[2:] == ["copied, with its old date"]
