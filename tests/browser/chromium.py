"""Where the system's Chromium is, and with which switches the tests start it."""

from __future__ import annotations

import shutil

#: With a window, which headless mode leaves out.
WHOLE = ("chromium", "chromium-browser", "google-chrome")
#: The same engine without what a window needs is preferred: a page costs a fifth less CPU time.
PROGRAMS = ("chromium-headless-shell", *WHOLE)
SWITCHES = [
    "--disable-features=PreloadTopChromeWebUI,Translate,OptimizationHints,MediaRouter",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    # No other computer is reached. Playwright's own way, a route, would switch the HTTP cache off
    # (https://github.com/microsoft/playwright/issues/7220) and send each request through Python.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
    # One process for all tabs: a page costs a seventh less CPU time.
    "--renderer-process-limit=1",
    "--disable-site-isolation-trials",
]


def chromium(programs: tuple[str, ...] = PROGRAMS) -> str:
    """The first of ``programs`` that is installed.

    :raises FileNotFoundError: if it is not installed.
    """
    found = next(filter(None, map(shutil.which, programs)), None)
    if found is None:
        raise FileNotFoundError(f"none of {', '.join(programs)} is installed: apt-get install {programs[0]}")
    return found
