"""Write every page again when the navigation has changed: a title, a new page, or the order.

Sphinx writes the pages whose sources changed. The others would keep the old title in their sidebar, in *Next* and *Previous*,
and in their links, whose text is the title. Sphinx does not say which page links to which, so all are written.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment


def pages_to_write(app: Sphinx, env: BuildEnvironment) -> Iterable[str]:
    """All pages if the navigation is not the one that they show, else none. Connected to ``env-updated``."""
    if app.builder.format != "html":  # what another builder sees, the pages do not show yet
        return []
    titles = {name: title.astext() for name, title in env.titles.items()}
    now = hashlib.sha256(repr((sorted(env.toctree_includes.items()), sorted(titles.items()))).encode()).hexdigest()
    before, env.atlas_navigation_written = getattr(env, "atlas_navigation_written", now), now
    return sorted(env.found_docs) if before != now else []


def setup(app: Sphinx) -> None:
    app.connect("env-updated", pages_to_write)
