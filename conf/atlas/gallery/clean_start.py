"""Give each example the state of a fresh interpreter, and turn its warnings into errors.

sphinx-gallery runs the examples of a build one after another in one process. What a script changes globally must not
reach the next page, and a warning that a page does not show on purpose is a fault of the page.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import matplotlib
import torch

STYLE = Path(__file__).with_name("atlas.mplstyle")

_filters_before: list[Any] | None = None


def reset(gallery_conf: Mapping[str, Any], name: str | None, when: str) -> None:
    """One of sphinx-gallery's ``reset_modules``: called before and after each example, and once for each folder."""
    matplotlib.rc_file(STYLE)
    torch.set_default_dtype(torch.float32)
    torch.set_default_device(None)
    torch.set_grad_enabled(True)
    torch.autograd.set_detect_anomaly(False)
    torch.use_deterministic_algorithms(False)
    torch.manual_seed(0)
    if name and when == "before":
        _warnings_are_errors()
    else:
        _warnings_as_before()


def _warnings_are_errors() -> None:
    global _filters_before
    _filters_before = warnings.filters[:]
    warnings.resetwarnings()
    warnings.simplefilter("error")
    # A library's deprecations are its own affair; those that the example itself causes are not.
    for category in (DeprecationWarning, PendingDeprecationWarning):
        warnings.filterwarnings("ignore", category=category)
        warnings.filterwarnings("error", category=category, module="__main__")


def _warnings_as_before() -> None:
    global _filters_before
    if _filters_before is not None:
        warnings.filters[:] = _filters_before
        _filters_before = None
