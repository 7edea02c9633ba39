"""Open a page and watch what it asks for and what goes wrong."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from page_scripts import run_script
from playwright.sync_api import BrowserContext, Locator, Page, Request, Response

#: The page of the first graph, and its figure after backward.
FIRST, FIGURE = "gallery/graphs/first_graph.html", "graph-first-graph-2"
#: Milliseconds that a test waits for what it waits for. A busy machine may need many; who waits for an event loses none.
PATIENCE = 90_000


@dataclass
class Visit:
    """What a page did since it was opened, each as a sentence that a failing test shows.

    ``files`` are the addresses below the site's root that the page asked for, without what stands after ``?``.
    """

    other_sites: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    files: set[str] = field(default_factory=set)


def new_tab(context: BrowserContext) -> Page:
    """A tab that waits as long as a busy machine may need."""
    tab = context.new_page()
    tab.set_default_timeout(PATIENCE)
    return tab


def watch(tab: Page, origin: str, visit: Callable[[], Visit]) -> None:
    """Note in what ``visit`` gives, at the time of each event, what a tab asks for and what goes wrong.

    Nothing but this computer is reached: Chromium's own switch says so, see ``chromium.py``. A request to another site is
    noted and fails.
    """

    def is_elsewhere(url: str) -> bool:
        return not url.startswith((f"{origin}/", "data:", "blob:"))

    def asked(request: Request) -> None:
        if is_elsewhere(request.url):
            visit().other_sites.append(request.url)
        elif request.url.startswith(origin):
            visit().files.add(request.url.removeprefix(f"{origin}/").partition("#")[0].partition("?")[0])

    def answered(response: Response) -> None:
        if response.status >= 400:
            visit().errors.append(f"{response.status} for {response.url}")

    def failed(request: Request) -> None:
        if not is_elsewhere(request.url):
            visit().errors.append(f"{request.failure} for {request.url}")

    tab.on("request", asked)
    tab.on("response", answered)
    tab.on("requestfailed", failed)
    tab.on("console", lambda line: visit().errors.append(f"console: {line.text}") if line.type == "error" else None)
    tab.on("pageerror", lambda error: visit().errors.append(f"script: {error.message}"))


def open_page(context: BrowserContext, origin: str, address: str, visit: Visit | None = None) -> Page:
    """Open a page in a tab of its own and note in ``visit`` what it asks for and what goes wrong."""
    noted = visit or Visit()
    tab = new_tab(context)
    watch(tab, origin, lambda: noted)
    tab.goto(f"{origin}/{address}", wait_until="load")
    return tab


def until(tab: Page, holds: Callable[[], bool], seen: Callable[[], object]) -> None:
    """Wait until something holds that the tab's events bring about, for events come when Chromium has time for them.

    :raises AssertionError: if it never does; it shows what was seen instead.
    """
    end = time.monotonic() + PATIENCE / 1000
    while not holds():
        assert time.monotonic() < end, seen()
        tab.wait_for_timeout(20)


def too_wide(tab: Page) -> list[str]:
    """What of an open page runs out of the window, with its first five elements that do."""
    return run_script(tab, "listTooWide")


def find_card(figure: Locator, name: str) -> Locator:
    """The card of a graph that has this name."""
    return figure.locator(f".g-card:has(.g-name:text-is('{name}'))")
