"""One Chromium for all browser tests, nginx with the built site, and a window for each theme and width."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from chromium import SWITCHES, chromium
from playwright.sync_api import Browser, BrowserContext, sync_playwright
from serving import Server, nginx, serve
from visiting import Visit, look


@pytest.fixture(scope="session")
def program() -> str:
    """Where the system's Chromium is."""
    return installed(chromium)


@pytest.fixture(scope="session")
def browser(program: str) -> Iterator[Browser]:
    """The system's Chromium."""
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=program, args=SWITCHES)
        yield started
        started.close()


@pytest.fixture(scope="session")
def large_text(browser: Browser, program: str) -> Iterator[Browser]:
    """Chromium of a reader who has set the text to twice its size."""
    switches = [*SWITCHES, "--blink-settings=defaultFontSize=32,defaultFixedFontSize=26"]
    started = browser.browser_type.launch(executable_path=program, args=switches)
    yield started
    started.close()


@pytest.fixture(scope="session")
def server() -> Server:
    """Serve a folder as ``conf/nginx.conf`` says."""
    installed(nginx)
    return serve


def installed(find: Callable[[], str]) -> str:
    """Where a program is; a test that needs one which is missing fails, and says how to install it."""
    try:
        return find()
    except FileNotFoundError as error:
        pytest.fail(str(error), pytrace=False)


@pytest.fixture(scope="session")
def origin(site: Path, server: Server, published: dict[str, str]) -> Iterator[str]:
    """The address of the built site, below the path at which it will stand: the page for what is not found leads from there.

    All its pages are under the policy that the build wrote.
    """
    with server(site, urlsplit(published.get("ATLAS_SITE", "")).path or "/") as address:
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
