"""Read a few pages in the process of the build.

Sphinx shares out whatever is to be read among processes, and each sends back the environment of the whole site. For the pages
that one edit changes that takes longer than to read them.
"""

from __future__ import annotations

from functools import partial

from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

_FEW = 8  # about as many as are read while two environments are sent


def read_few_here(app: Sphinx, env: BuildEnvironment, pages: list[str]) -> None:
    """Connected to ``env-before-read-docs``."""
    if len(pages) <= _FEW:
        app.parallel = 1


def share_out_again(app: Sphinx, env: BuildEnvironment, *, jobs: int) -> None:
    """What is to be written, and may be all pages, is shared out in any case. Connected to ``env-updated``."""
    app.parallel = jobs


def setup(app: Sphinx) -> None:
    app.connect("env-before-read-docs", read_few_here)
    app.connect("env-updated", partial(share_out_again, jobs=app.parallel))
