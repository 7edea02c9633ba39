"""How each example starts: with the site's look for plots, and with warnings as errors.

Everything else is as in a fresh interpreter, since each example has a process of its own (see ``atlas.runner``). A warning
that a page does not show on purpose is a fault of the page.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import matplotlib

STYLE = Path(__file__).with_name("atlas.mplstyle")


def prepare(gallery_conf: Mapping[str, Any], name: str | None) -> None:
    """One of sphinx-gallery's ``reset_modules``, called before the example ``name`` runs."""
    matplotlib.rc_file(STYLE)
    warnings.resetwarnings()
    warnings.simplefilter("error")
    # A library's deprecations are its own affair; those that the example itself causes are not.
    for category in (DeprecationWarning, PendingDeprecationWarning):
        warnings.filterwarnings("ignore", category=category)
        warnings.filterwarnings("error", category=category, module="__main__")
    warnings.filterwarnings(
        "ignore", category=FutureWarning, module=r"torch\."
    )  # its own calls of what it deprecates
