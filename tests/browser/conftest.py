"""One Chromium for all browser tests, nginx with the built site, and windows to open its pages in."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import axe
import pytest
from chromium import SWITCHES, chromium
from playwright.sync_api import Browser, BrowserContext, Locator, Page, expect, sync_playwright
from serving import Server, nginx, serve
from visiting import FIGURE, FIRST, PATIENCE, Visit, open_page

expect.set_options(timeout=PATIENCE)


@pytest.fixture(scope="session")
def program() -> str:
    """Where the system's Chromium is."""
    return installed(chromium)


@pytest.fixture(scope="session")
def browser(program: str) -> Iterator[Browser]:
    """The system's Chromium."""
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=program, args=SWITCHES, timeout=PATIENCE)
        yield started
        started.close()


@pytest.fixture(scope="session")
def large_text(browser: Browser, program: str) -> Iterator[Browser]:
    """Chromium of a reader who has set the text to twice its size."""
    switches = [*SWITCHES, "--blink-settings=defaultFontSize=32,defaultFixedFontSize=26"]
    started = browser.browser_type.launch(executable_path=program, args=switches, timeout=PATIENCE)
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


@pytest.fixture
def window(browser: Browser) -> Iterator[Callable[[str], BrowserContext]]:
    """A wide window for a theme, with a storage of its own: a search that one test made must not show in another's page."""
    with ExitStack() as windows:
        yield lambda theme: windows.enter_context(
            browser.new_context(color_scheme=theme, viewport={"width": 1280, "height": 900})
        )


@pytest.fixture
def fresh(window: Callable[[str], BrowserContext]) -> BrowserContext:
    """A wide, light window for one test."""
    return window("light")


@pytest.fixture
def visit() -> Visit:
    """What the pages of one test ask for, and what goes wrong."""
    return Visit()


@pytest.fixture
def opened(fresh: BrowserContext, origin: str, visit: Visit) -> Callable[[str], Page]:
    """Open a page of the site in that window."""
    return lambda address: open_page(fresh, origin, address, visit)


@pytest.fixture
def tab(opened: Callable[[str], Page]) -> Page:
    """The page of the first graph."""
    return opened(FIRST)


@pytest.fixture
def figure(tab: Page) -> Locator:
    """Its graph after backward."""
    return tab.locator(f"#{FIGURE}")


@pytest.fixture
def phone(browser: Browser) -> Iterator[BrowserContext]:
    with browser.new_context(viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True) as context:
        yield context


@pytest.fixture
def scriptless(browser: Browser) -> Iterator[BrowserContext]:
    """A narrow window without JavaScript."""
    with browser.new_context(java_script_enabled=False, viewport={"width": 640, "height": 900}) as context:
        yield context


@pytest.fixture(scope="session")
def visitor(browser: Browser) -> BrowserContext:
    """The window in which ``looking.inspect`` opens a tab for each page."""
    return browser.new_context()


@pytest.fixture(scope="session")
def looks() -> axe.Looks:
    """What need not be asked of axe again in this session."""
    return axe.Looks()
