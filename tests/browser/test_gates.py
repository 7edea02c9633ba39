"""Each gate of ``looking.py`` closes: a page that does everything wrong is reported for each of it, where it does."""

from __future__ import annotations

from pathlib import Path

import axe
import pytest
from looking import HEIGHT, LOADS, Finding, inspect_page
from page_scripts import run_script
from playwright.sync_api import Browser
from serving import Server
from visiting import new_tab

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
<div style="height: 2900px">A long way to the figure</div>
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

#: By rule, what is said of the page in each state, and in which: each theme and width, each as it is loaded, or some.
STATES = [(theme, width) for width, themes in LOADS.items() for theme in themes]
LOADED = [(themes[0], width) for width, themes in LOADS.items()]
TURNED = [(themes[-1], width) for width, themes in LOADS.items()]
FAULTS = [
    ("other-site", "https://other.example/picture.png", LOADED),
    ("error", "console: complaint", LOADED),
    ("error", "script: thrown", LOADED),
    ("error", "404 for", LOADED),
    ("layout-shift", "", LOADED),
    ("copy-button", "code without a button: x = 1", LOADED),
    ("copy-button", "output with a button: 1", LOADED),
    ("late-figure", "the first figure or table begins at 3", [("light", 1280)]),
    ("small-text", "12px: Pale and small", STATES),
    ("unreachable", "overflow-x: auto", STATES),
    ("too-wide", "html is ", STATES),
    ("too-wide", "div.content is ", STATES),
    ("too-wide", "Wider than any window", STATES),
    ("too-wide", "div.table-wrapper.colwidths-given is 512 px wide", [("dark", 390), ("light", 390)]),
    ("pale-graph", "2 × pale", STATES),
    ("color-contrast", "Pale and small", STATES),
    ("color-contrast", "Pale in the dark", [("dark", 1280), ("dark", 390)]),
    ("link-in-text-block", "", STATES),
    *((rule, "", TURNED) for rule in ("link-name", "image-alt", "role-img-alt")),
    ("button-name", "", [(LOADS[390][-1], 390)]),
]


@pytest.fixture(scope="module")
def found(browser: Browser, server: Server, tmp_path_factory: pytest.TempPathFactory) -> list[Finding]:
    """All that is found on the page. No policy keeps it from what it does wrong."""
    folder: Path = tmp_path_factory.mktemp("wrong")
    (folder / "wrong.html").write_text(WRONG, encoding="utf-8")
    with server(folder, policy=False) as origin, browser.new_context() as context:
        return inspect_page(context, origin, "wrong.html", axe.Looks(), is_example=True, is_lesson=True)


@pytest.mark.parametrize(("rule", "said", "states"), FAULTS)
def test_a_fault_is_found(found: list[Finding], rule: str, said: str, states: list[tuple[str, int]]) -> None:
    assert {(one.theme, one.width) for one in found if one.rule == rule and said in one.said} == {*states}


def test_a_fix_that_comes_late_and_a_message_that_is_cut_are_found(browser: Browser) -> None:
    fix = "<div class='in-short'><div class='highlight-diff'>- x</div></div>"
    cut = "<pre style='width: 150px; overflow: auto'>RuntimeError: much too long</pre>"
    message = f"<div class='sphx-glr-script-out'>{cut}</div>"
    whole = message.replace("overflow: auto", "white-space: pre-wrap")
    with browser.new_page(viewport={"width": 1280, "height": HEIGHT}) as tab:
        for article, is_wrong in [
            (fix + whole, False),
            ("<div style='height: 900px'></div>" + fix + message, True),
            ("", True),
        ]:
            tab.set_content(f"<article>{article}</article>")
            assert (
                bool(run_script(tab, "findLateFix", HEIGHT)) == bool(run_script(tab, "findCutMessage")) == is_wrong
            ), article


GREY = '<p style="color: #666; background: #fff">Grey words on white</p>' * 4
#: What differs in one thing from what passes.
WORSE = [
    '<div style="background: #777; padding: 1px"><p style="color: #666">Grey words on white</p></div>',
    f'<div style="opacity: 0.4">{GREY}</div>',
    '<p style="color: #666; background: #fff; text-shadow: 0 0 4px #666, 0 0 4px #666">Grey words on white</p>',
    '<pre style="background: #fff; color: #666"><i class="n">token</i> <i class="n" style="color: #ccc">token</i></pre>',
]


def test_a_look_that_passed_is_not_asked_for_again_and_nothing_bad_hides_behind_it(browser: Browser) -> None:
    with browser.new_context() as context:
        tab, looks = new_tab(context), axe.Looks()

        def find_faults(content: str) -> list[str]:
            tab.set_content(
                f'<html lang="en"><title>A</title><body style="background: #fff"><main>{content}</main></html>'
            )
            axe.inject(tab)
            return [rule for rule, _ in axe.color_faults(tab, looks)]

        assert find_faults(GREY) == []
        asked = looks.asked
        assert find_faults(GREY) == [] and looks.asked == asked > 0
        for worse in WORSE:
            assert "color-contrast" in find_faults(GREY + worse), worse
