"""Look at a page in each theme and width."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import axe
from page_scripts import run_script
from playwright.sync_api import BrowserContext, Page
from visiting import Visit, new_tab, watch

#: Body text is not smaller than this, in pixels.
SMALLEST_TEXT = 15
#: Text of a graph stands out from what is behind it at least this much, as WCAG 2.2 AA asks of all text of that size.
LEAST_CONTRAST = 4.5
#: Layout that shifts less than this while a page loads cannot be noticed.
LARGEST_SHIFT = 0.01
HEIGHT = 900
#: Each width is loaded once, each theme too; the page is turned to the other theme when it has been looked at.
LOADS = {1280: ("light", "dark"), 390: ("dark", "light")}


@dataclass(frozen=True, slots=True)
class Finding:
    """What is wrong with a page: in which theme and width, by which rule, and a sentence."""

    page: str
    theme: str
    width: int
    rule: str
    said: str

    def __str__(self) -> str:
        return f"{self.page}, {self.theme}, {self.width} px, {self.rule}: {self.said}"


def inspect_page(
    context: BrowserContext,
    origin: str,
    page: str,
    looks: axe.Looks,
    *,
    is_example: bool = False,
    is_lesson: bool = False,
    is_error: bool = False,
) -> list[Finding]:
    """Load a page once for each width and look at all of it in both themes, what is folded away too.

    The tab is the page's own, and its HTTP cache is off: fonts come as late as for someone who is here for the first time.

    :param looks: what need not be asked of axe again, see ``axe.py``. What passes here is added.
    :param is_example: see that its code can be copied.
    :param is_lesson: see that a figure or a table begins in the first three screens of a wide window.
    :param is_error: see that the change which mends the error ends there, and that its message is shown whole at each width.
    """
    findings: list[Finding] = []
    tab = new_tab(context)
    now = Visit()
    watch(tab, origin, lambda: now)
    tab.context.new_cdp_session(tab).send("Network.setCacheDisabled", {"cacheDisabled": True})
    for width, themes in LOADS.items():
        tab.set_viewport_size({"width": width, "height": HEIGHT})
        tab.emulate_media(color_scheme=themes[0])
        for theme in themes:
            now = Visit()
            if theme == themes[0]:
                late = (
                    {"late-figure": "findLateFigure"}
                    if is_lesson
                    else {"late-fix": "findLateFix"}
                    if is_error
                    else {}
                )
                found = _load_page(tab, f"{origin}/{page}", late if width == max(LOADS) else {})
                found += [("cut-message", said) for said in run_script(tab, "findCutMessage") if is_error]
                found += [("copy-button", said) for said in run_script(tab, "listCopyButtons") if is_example]
            else:
                found = []
                tab.emulate_media(color_scheme=theme)
                run_script(tab, "settle")
            found += _measure_page(tab) + axe.color_faults(tab, looks)
            found += axe.faults(tab) if theme == themes[-1] else []  # last, for it changes the page
            found += [("other-site", url) for url in now.other_sites] + [("error", said) for said in now.errors]
            findings += [Finding(page, theme, width, rule, said) for rule, said in found]
    tab.close()
    return findings


def _load_page(tab: Page, address: str, in_first_screen: Mapping[str, str]) -> list[tuple[str, str]]:
    """Load a page and open its folds.

    :param in_first_screen: by the name of a rule, a function of ``page_scripts.js`` that says what is late.
    """
    tab.goto(address, wait_until="load")
    shifts = run_script(tab, "listShifts")
    late = [(rule, said) for rule, script in in_first_screen.items() for said in run_script(tab, script, HEIGHT)]
    run_script(tab, "unfold")
    run_script(tab, "settle")
    axe.inject(tab)
    found = [("layout-shift", str(shifts))] if sum(value for value, _ in shifts) >= LARGEST_SHIFT else []
    return found + late


def _measure_page(tab: Page) -> list[tuple[str, str]]:
    """What is measured in each theme and width, as the rule's name and a sentence."""
    measures = {
        "small-text": ("listSmallTexts", SMALLEST_TEXT),
        "too-wide": ("listTooWide", None),
        "unreachable": ("listUnreachable", None),
        "pale-graph": ("listPaleGraphs", LEAST_CONTRAST),
    }
    return [(rule, said) for rule, (script, limit) in measures.items() for said in run_script(tab, script, limit)]
