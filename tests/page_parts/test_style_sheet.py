"""The one style sheet has the rules of all others, in their order, without those that no page can use."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from bs4 import BeautifulSoup

from atlas.page_parts.assets import scripts, style_sheet
from atlas.toolbox import Refusal
from tiny.tiny_site import Build, build, written

FORMULA = "# Page\n\n$$\\frac{1}{2}$$\n\nText.\n"


def joined(*texts: str) -> str:
    return style_sheet.join({f"_static/{number}.css": text for number, text in enumerate(texts)})


def test_rules_stand_in_the_order_of_the_sheets() -> None:
    assert joined("a { color: red }\nb { top: 0 }", "/* why */ a { color: blue }").split("\n") == [
        "a{color: red}",
        "b{top: 0}",
        "a{color: blue}",
        "",
    ]


def test_what_no_page_can_match_is_left_out() -> None:
    assert joined(".sd-tab-set > label, .sd-card { top: 0 } .sd-btn:hover { top: 0 } .-Color-Red { top: 0 }") == (
        ".sd-card{top: 0}\n"
    )
    assert joined("@media print { .sd-btn { top: 0 } } @media print { p { top: 0 } }") == "@media print {p{top: 0}}\n"


@pytest.mark.parametrize(
    "text",
    [
        ".sd-card:not(.sd-tab-set){top: 0}",
        "p:is(.a, .b) > q{top: 0}",
        '@font-face{ src: url("fonts/x.woff2") format("woff2") }',
        "@keyframes turn{ from { top: 0 } }",
        'p{background: url("data:image/svg+xml;utf8,<svg a=1,2/>")}',
        'p::before{content: "a, b"}',
        "p{top: 0; & > q { left: 0 }}",
    ],
)
def test_everything_else_stays_as_it_is(text: str) -> None:
    assert joined(text) == f"{text}\n"


def test_an_address_that_would_lead_elsewhere_is_refused() -> None:
    with pytest.raises(Refusal, match=r"_static/styles/other\.css names a file by a relative address"):
        style_sheet.join({"_static/styles/other.css": "p { background: url(a.png) }"})
    style_sheet.join({"_static/styles/other.css": "p { background: url(data:image/png;base64,x) }"})


def test_white_space_is_one_space_and_that_of_a_text_stays() -> None:
    assert joined('p {\n  top: 0;\n    left:   0;\n  content: "  x  "\n}') == 'p{top: 0; left: 0; content: "  x  "}\n'


def test_a_sheet_that_cannot_be_read_is_named() -> None:
    with pytest.raises(Refusal, match=r"_static/1\.css cannot be read: .*line 2"):
        joined("p { top: 0 }", "q { top: 0 }\n}")


def test_it_is_written_again_only_when_a_sheet_has_changed(tmp_path: Path) -> None:
    (tmp_path / "_static").mkdir()
    sheet = tmp_path / "_static" / "a.css"
    sheet.write_text("p { top: 0 }")
    out = tmp_path / style_sheet.FILE
    style_sheet.write(tmp_path, ["_static/a.css"])
    first = out.stat().st_mtime_ns
    style_sheet.write(tmp_path, ["_static/a.css"])
    assert out.stat().st_mtime_ns == first
    sheet.write_text("p { top: 1px }")
    style_sheet.write(tmp_path, ["_static/a.css"])
    assert out.read_text().endswith("p{top: 1px}\n")


@pytest.fixture(scope="module")
def two_pages(tmp_path_factory: pytest.TempPathFactory) -> Build:
    pages = {"docs/formula.md": FORMULA, "docs/plain.md": "# Plain\n\nText.\n"}
    done = build(written(tmp_path_factory.mktemp("styles"), pages))
    assert done.code == 0, done.output
    return done


@pytest.mark.parametrize(("name", "sheets"), [("plain", ["site.css"]), ("formula", ["site.css", "math.css"])])
def test_a_page_links_one_sheet_and_that_of_formulas_if_it_has_any(
    two_pages: Build, name: str, sheets: list[str]
) -> None:
    page = BeautifulSoup((two_pages.out / f"{name}.html").read_bytes(), "html.parser")
    addresses = [link["href"] for link in page.select("link[rel=stylesheet]")]
    assert [re.sub(r"\?v=\w+$", "", address) for address in addresses] == [f"_static/{sheet}" for sheet in sheets]


def test_what_is_called_in_sphinx_is_there(two_pages: Build) -> None:
    """``_orig_css_files`` of the builder, a private name: without it a page would link its own sheets only."""
    rules = (two_pages.out / style_sheet.FILE).read_text()
    for part in ("sphx-glr-script-out", "sd-card", "sidebar-drawer", "graph-scroll", "cell_output", "copybtn"):
        assert f".{part}" in rules


def test_code_has_its_colors_in_the_dark(two_pages: Build) -> None:
    rules = (two_pages.out / style_sheet.FILE).read_text().splitlines()
    assert [rule for rule in rules if "prefers-color-scheme: dark" in rule and ".highlight" in rule]


def test_a_page_without_code_loads_no_script_for_it(two_pages: Build) -> None:
    page = (two_pages.out / "plain.html").read_text()
    assert "scripts/furo.js" in page
    assert not [name for name in scripts.NEEDED if name in page]
