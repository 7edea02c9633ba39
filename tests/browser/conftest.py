"""One Chromium for all browser tests, nginx with the built site, and a window for each theme and width."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, sync_playwright
from serving import Server, nginx, serve
from visiting import Visit, look

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
SWITCHES = [
    "--disable-features=PreloadTopChromeWebUI,Translate,OptimizationHints,MediaRouter",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
]


@pytest.fixture(scope="session")
def program() -> str:
    """Where the system's Chromium is."""
    found = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if found is None:
        pytest.fail(f"none of {', '.join(PROGRAMS)} is installed: apt-get install chromium", pytrace=False)
    return found


@pytest.fixture(scope="session")
def browser(program: str) -> Iterator[Browser]:
    """The system's Chromium."""
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=program, args=SWITCHES)
        yield chromium
        chromium.close()


@pytest.fixture(scope="session")
def large_text(browser: Browser, program: str) -> Iterator[Browser]:
    """Chromium of a reader who has set the text to twice its size."""
    switches = [*SWITCHES, "--blink-settings=defaultFontSize=32,defaultFixedFontSize=26"]
    chromium = browser.browser_type.launch(executable_path=program, args=switches)
    yield chromium
    chromium.close()


@pytest.fixture(scope="session")
def server() -> Server:
    """Serve a folder as ``conf/nginx.conf`` says."""
    try:
        nginx()
    except FileNotFoundError as error:
        pytest.fail(str(error), pytrace=False)
    return serve


@pytest.fixture(scope="session")
def origin(site: Path, server: Server) -> Iterator[str]:
    """The address of the built site. All its pages are under the policy that the build wrote."""
    with server(site) as address:
        yield address


@pytest.fixture(scope="session")
def window(browser: Browser) -> Callable[[str, int], BrowserContext]:
    """A window for a theme and a width. It keeps nothing that one test stores from another: no test stores anything."""

    @cache
    def open_window(theme: str, width: int) -> BrowserContext:
        return browser.new_context(color_scheme=theme, viewport={"width": width, "height": 900})

    return open_window


@pytest.fixture
def fresh(browser: Browser) -> Iterator[BrowserContext]:
    """A wide, light window for one test, which may store what it likes."""
    with browser.new_context(color_scheme="light", viewport={"width": 1280, "height": 900}) as context:
        yield context


@pytest.fixture(scope="session")
def visits(origin: str, window: Callable[[str, int], BrowserContext]) -> Callable[[str, str, int], Visit]:
    """Look at a page of the site. Each page is opened once for each theme and width, however many tests ask."""

    @cache
    def visit(page: str, theme: str, width: int) -> Visit:
        return look(window(theme, width), origin, page, only_colours=theme == "dark")

    return visit
