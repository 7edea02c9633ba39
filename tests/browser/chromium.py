"""Where the system's Chromium is, and with which switches the tests start it."""

from __future__ import annotations

import shutil

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
SWITCHES = [
    "--disable-features=PreloadTopChromeWebUI,Translate,OptimizationHints,MediaRouter",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    # No other computer is reached. Playwright's own way, a route, would switch the HTTP cache off
    # (https://github.com/microsoft/playwright/issues/7220) and send each request through Python.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
]


def chromium() -> str:
    """
    :raises FileNotFoundError: if it is not installed.
    """
    found = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if found is None:
        raise FileNotFoundError(f"none of {', '.join(PROGRAMS)} is installed: apt-get install chromium")
    return found
