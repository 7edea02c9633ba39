"""Run axe on an open page: every rule on the whole of it, and the two rules about colors on what has not been seen yet.

To find a text's contrast takes axe some milliseconds, and a page has thousands of texts: a name in code, a cell of a table.
What axe needs to know for it is the text's *look*: its color and size, and all that is painted behind and over it. Texts of
one look get one verdict, so three of each are asked for, whatever page they are on. A look counts where axe let it pass, or
where its rule is for something else. What fails, or what axe cannot tell, is asked for again on each page, so no verdict
depends on which page came first.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import Page

#: How often a look is asked for.
ENOUGH = 3

#: The rules that the looks are for.
COLORS = ["color-contrast", "link-in-text-block"]

#: Every rule of axe that stands for a criterion of WCAG up to 2.2 AA, those that are off by default too, and its advice.
#: They run at each width: what a phone hides or shows takes part in names, headings and landmarks. Most of their time goes
#: to target-size, scrollable-region-focusable and region, which depend on the width; without the others a page is seen a
#: twentieth sooner, which is not worth knowing of each rule what it depends on.
_RULES = {
    "runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
    "rules": {rule: {"enabled": False} for rule in COLORS},
    "resultTypes": ["violations"],
}

_RUN = "options => axe.run(options).then(({violations}) => violations)"

#: Half of a page's elements are words of code that have a class, for their color, and nothing else. These rules see nothing in
#: them, and take half of their time for it.
_PLAIN_CODE = """() => {
  const isWord = box => [...box.attributes].every(({name}) => name === "class");
  for (const code of document.querySelectorAll("pre")) {
    for (const word of [...code.querySelectorAll("span")].filter(isWord)) word.replaceWith(...word.childNodes);
    code.normalize();
  }
}"""

_RUN_ON_LOOKS = Path(__file__).with_name("looks.js").read_text(encoding="utf-8")


@dataclass
class Looks:
    """The looks that have passed, by rule, and how often each did; and how many elements axe was asked about."""

    passed: dict[str, Counter[str]] = field(default_factory=lambda: {rule: Counter() for rule in COLORS})
    asked: int = 0


def inject(tab: Page) -> None:
    """Bring axe into the page that a tab shows; the other functions need it there."""
    tab.evaluate(AXE_SCRIPT)


def faults(tab: Page) -> list[tuple[str, str]]:
    """What all rules but those about colors find: each rule, and a sentence. Code has no colors any more after that."""
    tab.evaluate(_PLAIN_CODE)
    return _sentences(tab.evaluate(_RUN, _RULES))


def color_faults(tab: Page, looks: Looks) -> list[tuple[str, str]]:
    """What the rules about colors find in looks that have not passed often enough. Those that pass now are added."""
    passed = {rule: dict(times) for rule, times in looks.passed.items()}
    answer = tab.evaluate(_RUN_ON_LOOKS, {"rules": COLORS, "passed": passed, "enough": ENOUGH})
    looks.asked += sum(answer["asked"].values())
    for rule, good in answer["good"].items():
        looks.passed[rule].update(good)
    return _sentences(answer["violations"])


def _sentences(violations: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [
        (violation["id"], f"{node['target']}: {' '.join(node['failureSummary'].split())}: {node['html'][:160]}")
        for violation in violations
        for node in violation["nodes"]
    ]
