"""The checks find what they are for: a page that does everything wrong is reported for each of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from axe import Looks
from looking import HEIGHT, LOADS, Inspection, inspect
from page_scripts import CUT_MESSAGE, LATE_FIGURE, LATE_FIX
from playwright.sync_api import Browser
from serving import Server

WRONG = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Wrong</title>
<style>
  .themed { color: #000; background: #fff; }
  @media (prefers-color-scheme: dark) { .themed { color: #444; background: #222; } }
  .narrow { width: 48px; height: 48px; }
  @media (min-width: 800px) { .narrow { display: none; } }
</style></head><body><main>
<div class="content" style="overflow-x: auto"><article>
<h1>Wrong</h1>
<section><p style="color: #bbb; background: #fff; font-size: 12px">Pale and small</p></section>
<p>A paragraph with a <a href="#late" style="color: #222; text-decoration: none">link that nobody sees</a> in the middle.</p>
<a href="#"></a>
<details><summary>More</summary><img src="gone.png"></details>
<img src="https://other.example/picture.png" alt="A picture from another site">
<div style="overflow-x: auto; width: 100px"><div style="width: 900px">A wide box</div></div>
<div style="width: 2000px">Wider than any window</div>
<div class="table-wrapper colwidths-given" style="overflow-x: auto" tabindex="0"><div style="width: 512px">Sentences</div></div>
<div style="height: 900px">A long way to the figure</div>
<svg class="graph" role="img" aria-label="Two cards"><g class="g-card"><rect fill="#333"/><text fill="#666">pale</text></g>
<g class="g-card"><rect fill="none"/><text fill="#222">x1</text></g><text fill="#ddd">2 × pale</text></svg>
<p id="late">Text that moves</p>
<div class="highlight"><pre>x = 1<span class="n" role="img"></span></pre></div>
<div class="sphx-glr-script-out">
<div class="highlight"><pre>1</pre><button class="copybtn" aria-label="Copy"></button></div></div>
<p class="themed">Pale in the dark only</p>
<button class="narrow"></button>
<script>
  console.error("complaint");
  setTimeout(() => { throw new Error("thrown"); });
  requestAnimationFrame(() => requestAnimationFrame(() => {
    document.querySelector("h1").insertAdjacentHTML("afterend", "<div style='height: 300px'></div>");
  }));
</script>
</article></div><div style="width: 1500px">A wide footer</div></main></body></html>"""

COLORS = {"color-contrast", "link-in-text-block"}
STATES = [(theme, width) for width, themes in LOADS.items() for theme in themes]


@pytest.fixture(scope="module")
def found(browser: Browser, server: Server, tmp_path_factory: pytest.TempPathFactory) -> Inspection:
    """All that is found on the page. No policy keeps it from what it does wrong."""
    folder: Path = tmp_path_factory.mktemp("wrong")
    (folder / "wrong.html").write_text(WRONG, encoding="utf-8")
    with server(folder, policy=False) as origin, browser.new_context() as context:
        return inspect(context, origin, "wrong.html", Looks(), is_example=True, is_lesson=True)


@pytest.fixture(params=STATES, ids=lambda state: f"{state[0]}-{state[1]}")
def state(request: pytest.FixtureRequest) -> tuple[str, int]:
    return request.param


@pytest.fixture
def said(found: Inspection, state: tuple[str, int]) -> Callable[[str], list[str]]:
    """What a rule says of the page in one theme and width."""

    def of(rule: str) -> list[str]:
        return [one.said for one in found.findings if (one.theme, one.width, one.rule) == (*state, rule)]

    return of


@pytest.fixture(params=LOADS.items(), ids=lambda load: f"{load[1][0]}-{load[0]}")
def loaded(request: pytest.FixtureRequest, found: Inspection) -> Callable[[str], list[str]]:
    """What a rule says of the page in the theme that it is loaded in."""
    width, (theme, _) = request.param
    return lambda rule: [
        one.said for one in found.findings if (one.theme, one.width, one.rule) == (theme, width, rule)
    ]


def test_a_finding_names_page_theme_width_and_rule(found: Inspection) -> None:
    names = {str(one).partition(": ")[0] for one in found.findings if one.rule == "small-text"}
    assert names == {f"wrong.html, {theme}, {width} px, small-text" for theme, width in STATES}


def test_another_site_is_found(loaded: Callable[[str], list[str]]) -> None:
    assert loaded("other-site") == ["https://other.example/picture.png"]


@pytest.mark.parametrize("sentence", ["console: complaint", "script: thrown", "404 for"])
def test_an_error_is_found(loaded: Callable[[str], list[str]], sentence: str) -> None:
    assert any(sentence in error for error in loaded("error"))


@pytest.mark.parametrize("rule", ["link-name", "image-alt", "role-img-alt"])
def test_an_accessibility_fault_is_found(found: Inspection, rule: str) -> None:
    assert {one.width for one in found.findings if one.rule == rule} == set(LOADS)


def test_what_only_a_phone_shows_is_found(found: Inspection) -> None:
    assert {one.width for one in found.findings if one.rule == "button-name"} == {390}


@pytest.mark.parametrize("rule", sorted(COLORS))
def test_a_color_is_found_in_each_theme(said: Callable[[str], list[str]], rule: str) -> None:
    assert said(rule)


def test_a_color_of_one_theme_is_found_there(found: Inspection) -> None:
    states = [(one.theme, one.width) for one in found.findings if "Pale in the dark" in one.said]
    assert states == [("dark", 1280), ("dark", 390)]


def test_a_pale_graph_is_found(said: Callable[[str], list[str]]) -> None:
    assert [fault.partition(": null ")[2] for fault in said("pale-graph")] == ["pale", "2 × pale"]


def test_a_page_that_is_too_wide_is_found(said: Callable[[str], list[str]]) -> None:
    assert any(fault.startswith("html is ") for fault in said("too-wide"))


def test_text_that_runs_out_of_its_column_is_found(said: Callable[[str], list[str]]) -> None:
    assert any(fault.startswith("div.content is ") for fault in said("too-wide"))
    assert any("Wider than any window" in fault for fault in said("too-wide"))


def test_a_table_of_text_that_must_be_scrolled_is_found(found: Inspection) -> None:
    faults = [
        one for one in found.findings if one.said.startswith("div.table-wrapper.colwidths-given is 512 px wide")
    ]
    assert {one.width for one in faults} == {390}


def test_small_text_is_found(said: Callable[[str], list[str]]) -> None:
    assert said("small-text") == ["12px: Pale and small"]


def test_a_box_without_a_keyboard_is_found(said: Callable[[str], list[str]]) -> None:
    assert any("overflow-x: auto" in box for box in said("unreachable"))


def test_text_that_moves_is_found(loaded: Callable[[str], list[str]]) -> None:
    assert loaded("layout-shift")


def test_a_late_figure_is_found_as_the_wide_page_is_loaded(found: Inspection) -> None:
    (late,) = [one for one in found.findings if one.rule == "late-figure"]
    assert (late.theme, late.width) == ("light", 1280)
    assert late.said.startswith("the first figure or table begins at 1")


def test_a_lesson_without_a_figure_is_found(browser: Browser) -> None:
    """An icon is no figure, and what is folded does not count."""
    table = "<table><tr><td style='width: 200px; height: 200px'>1</td></tr></table>"
    with browser.new_page() as tab:
        for article, late in {
            table: False,
            f"<p>text</p><details><summary>More</summary>{table}</details>": True,
            "<a><svg width='16' height='16'></svg></a>": True,
            f"<div style='height: {HEIGHT}px'></div>{table}": True,
        }.items():
            tab.set_content(f"<article>{article}</article>")
            assert bool(tab.evaluate(LATE_FIGURE, HEIGHT)) == late, article


def test_a_missing_copy_button_is_found(loaded: Callable[[str], list[str]]) -> None:
    faults = ["code without a button: x = 1", "output with a button: 1"]
    assert loaded("copy-button") == faults


def test_a_fix_that_comes_late_and_a_message_that_is_cut_are_found(browser: Browser) -> None:
    fix = "<div class='in-short'><div class='highlight-diff'>- x</div></div>"
    output = "<pre style='width: 150px; overflow: auto{}'>RuntimeError: much too long</pre>"
    message = f"<div class='sphx-glr-script-out'>{output}</div>"
    far = "<div style='height: 900px'></div>"
    with browser.new_page(viewport={"width": 1280, "height": HEIGHT}) as tab:
        for article, is_late, is_cut in [
            (fix + message.format("; white-space: pre-wrap"), False, False),
            (far + fix + message.format(""), True, True),
            ("", True, True),
        ]:
            tab.set_content(f"<article>{article}</article>")
            assert bool(tab.evaluate(LATE_FIX, HEIGHT)) == is_late, article
            assert bool(tab.evaluate(CUT_MESSAGE)) == is_cut, article
