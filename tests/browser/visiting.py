"""Open a page, watch what it does, and note what a check may want to know of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import BrowserContext, Page, Request, Response

#: Body text is not smaller than this, in pixels.
SMALLEST_TEXT = 15
#: Text of a graph stands out from what is behind it at least this much, as WCAG 2.2 AA asks of all text of that size.
LEAST_CONTRAST = 4.5
#: Layout that shifts less than this while a page loads cannot be noticed.
LARGEST_SHIFT = 0.01

_AXE = Axe()
#: Every rule of axe that stands for a criterion of WCAG up to 2.2 AA, those that are off by default too, and its advice.
_RULES = {
    "runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
    "rules": {"color-contrast": {"enabled": False}},
    "resultTypes": ["violations"],
}
#: The rules that look at colours. Contrast takes axe some milliseconds for each text, and a page has thousands: a name in
#: code, a cell of a table. What looks alike is looked at three times.
_COLOURS = {
    "runOnly": {"type": "rule", "values": ["color-contrast", "link-in-text-block"]},
    "resultTypes": ["violations"],
}
_MARK_LOOKS = """() => {
  const surfaces = new Map([[null, ""]]), seen = new Map();
  const surface = box => {
    if (!surfaces.has(box)) {
      const {backgroundColor, backgroundImage, opacity} = getComputedStyle(box);
      surfaces.set(box, surface(box.parentElement) + "/" + [backgroundColor, backgroundImage, opacity]);
    }
    return surfaces.get(box);
  };
  const layers = box => surface(box).replaceAll("/rgba(0, 0, 0, 0),none,1", "");
  for (const box of document.body.querySelectorAll("*")) {
    const {right, bottom} = box.getBoundingClientRect();
    const isText = [...box.childNodes].some(node => node.nodeType === Node.TEXT_NODE && node.data.trim());
    if (!isText || right <= 0 || bottom + scrollY <= 0 || !box.checkVisibility({visibilityProperty: true})) continue;
    const {color, fill, fontSize, fontWeight} = getComputedStyle(box);
    const part = box.closest("article, aside, header, footer, nav")?.className;
    const look = [part, color, fill, fontSize, fontWeight, layers(box)].join();
    seen.set(look, (seen.get(look) ?? 0) + 1);
    if (seen.get(look) <= 3) box.dataset.look = "";
  }
}"""

_SHIFTS = """() => new Promise(resolve => {
  const shifts = [];
  const name = ({node}) => node?.nodeType === 1 ? node.tagName.toLowerCase() + "." + node.className : String(node?.nodeName);
  new PerformanceObserver(list => {
    for (const entry of list.getEntries()) shifts.push([entry.value, entry.sources.map(name).join(", ")]);
  }).observe({type: "layout-shift", buffered: true});
  document.fonts.ready.then(() => requestAnimationFrame(() => setTimeout(() => resolve(shifts), 50)));
})"""

# Children of a section, and so body text: captions, tables and footers are other kinds of text.
_SMALL_TEXT = """smallest => {
  const small = [...document.querySelectorAll("section > p:not(.claims, .names-used), section > :is(ul, ol) li > p")]
    .filter(text => parseFloat(getComputedStyle(text).fontSize) < smallest);
  return small.map(text => getComputedStyle(text).fontSize + ": " + text.textContent.trim().slice(0, 60));
}"""

_UNREACHABLE = """() => [...document.querySelectorAll("article *")].filter(box => {
  const {overflowX, overflowY} = getComputedStyle(box);
  const scrolls = (overflowX == "auto" || overflowX == "scroll") && box.scrollWidth > box.clientWidth + 1
    || (overflowY == "auto" || overflowY == "scroll") && box.scrollHeight > box.clientHeight + 1;
  return scrolls && box.clientWidth > 0 && box.tabIndex < 0;
}).map(box => box.outerHTML.slice(0, 100))"""

# The theme's column scrolls by itself, so the document stays as wide as the window whatever runs out of it. Numbers and
# names in a table may be scrolled sideways, sentences may not.
_TOO_WIDE = """() => {
  const wide = [document.documentElement, ...document.querySelectorAll(".content, .colwidths-given:not(.numbers)")]
    .filter(box => box.scrollWidth > box.clientWidth + 1);
  return wide.length === 0 ? [] : [
    ...wide.map(box => [box.localName, ...box.classList].join(".") + ` is ${box.scrollWidth} px wide in ${innerWidth}`),
    ...[...document.querySelectorAll("article *")]
      .filter(box => box.getBoundingClientRect().right > innerWidth + 1 && !box.closest("[tabindex='0']"))
      .slice(0, 5).map(box => box.outerHTML.slice(0, 100))];
}"""

# axe does not know what is behind a text of a drawing. A card's text stands on the card, the rest on the page.
_PALE = """least => {
  const channels = colour => (colour.match(/[\\d.]+/g) ?? [0, 0, 0, 0]).map(Number);
  const luminance = colour => channels(colour).slice(0, 3).map(part => part / 255)
    .map(part => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)
    .reduce((sum, part, index) => sum + part * [0.2126, 0.7152, 0.0722][index], 0);
  const isClear = colour => colour === "none" || channels(colour)[3] === 0;
  const behind = text => {
    const card = text.closest(".g-card")?.querySelector("rect");
    if (card && !isClear(getComputedStyle(card).fill)) return getComputedStyle(card).fill;
    for (let box = text.closest("svg"); box; box = box.parentElement)
      if (!isClear(getComputedStyle(box).backgroundColor)) return getComputedStyle(box).backgroundColor;
    return "rgb(255, 255, 255)";
  };
  return [...document.querySelectorAll(".graph text")].flatMap(text => {
    const [dark, light] = [getComputedStyle(text).fill, behind(text)].map(luminance).sort((a, b) => a - b);
    const contrast = (light + 0.05) / (dark + 0.05);
    return contrast < least ? [contrast.toFixed(2) + ": " + text.getAttribute("class") + " " + text.textContent] : [];
  });
}"""


@dataclass
class Visit:
    """What a page did when it was opened, each as sentences that a failing test shows."""

    other_sites: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    shifts: list[tuple[float, str]] = field(default_factory=list)
    small_text: list[str] = field(default_factory=list)
    too_wide: list[str] = field(default_factory=list)
    unreachable: list[str] = field(default_factory=list)
    accessibility: list[str] = field(default_factory=list)
    pale_graphs: list[str] = field(default_factory=list)


def open_page(context: BrowserContext, origin: str, address: str, visit: Visit | None = None) -> Page:
    """Open a page in a tab of its own and note in ``visit`` what it asks for and what goes wrong.

    Nothing but ``origin`` is reached: a request to another site is noted and cancelled.
    """
    visit = visit or Visit()
    tab = context.new_page()

    def cancelled(url: str) -> bool:
        return not url.startswith((f"{origin}/", "data:", "blob:"))

    def asked(request: Request) -> None:
        if cancelled(request.url):
            visit.other_sites.append(request.url)

    def answered(response: Response) -> None:
        if response.status >= 400:
            visit.errors.append(f"{response.status} for {response.url}")

    def failed(request: Request) -> None:
        if not cancelled(request.url):
            visit.errors.append(f"{request.failure} for {request.url}")

    tab.route(cancelled, lambda route: route.abort())
    tab.on("request", asked)
    tab.on("response", answered)
    tab.on("requestfailed", failed)
    tab.on("console", lambda line: visit.errors.append(f"console: {line.text}") if line.type == "error" else None)
    tab.on("pageerror", lambda error: visit.errors.append(f"script: {error.message}"))
    tab.goto(f"{origin}/{address}", wait_until="load")
    return tab


def too_wide(tab: Page) -> list[str]:
    """What of an open page runs out of the window, with its first five elements that do."""
    return tab.evaluate(_TOO_WIDE)


def look(context: BrowserContext, origin: str, address: str, *, only_colours: bool = False) -> Visit:
    """Open a page and look at all of it, what is folded away too.

    :param only_colours: leave out axe's rules that do not look at colours, as they find the same in every theme.
    """
    visit = Visit()
    tab = open_page(context, origin, address, visit)
    visit.shifts = [(value, where) for value, where in tab.evaluate(_SHIFTS)]
    tab.evaluate("document.querySelectorAll('details').forEach(fold => { fold.open = true })")
    tab.evaluate("new Promise(requestAnimationFrame)")  # the folds' own events come first
    visit.small_text = tab.evaluate(_SMALL_TEXT, SMALLEST_TEXT)
    visit.too_wide = too_wide(tab)
    visit.unreachable = tab.evaluate(_UNREACHABLE)
    visit.pale_graphs = tab.evaluate(_PALE, LEAST_CONTRAST)
    tab.evaluate(_MARK_LOOKS)
    found = _AXE.run(tab, {"include": [["[data-look]"]]}, _COLOURS).response["violations"]
    if not only_colours:
        found += _AXE.run(tab, options=_RULES).response["violations"]
    visit.accessibility = [line for violation in found for line in _sentences(violation)]
    tab.close()
    return visit


def _sentences(violation: dict[str, Any]) -> list[str]:
    return [
        f"{violation['id']}: {node['target']}: {' '.join(node['failureSummary'].split())}: {node['html'][:160]}"
        for node in violation["nodes"]
    ]
