"""The one page of a site that shows what is gathered from all others: which it is, and when it must be written again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment


class GatheringPage:
    """Kept in Sphinx's environment, from build to build.

    :param name: of the attribute there.
    """

    def __init__(self, name: str) -> None:
        self._name, self._written = name, f"{name}_written"

    def note(self, env: BuildEnvironment) -> None:
        """It is the page that is being read."""
        setattr(env, self._name, env.docname)

    def of(self, env: BuildEnvironment) -> str | None:
        """The page, if the site has one."""
        return getattr(env, self._name, None)

    def connect(self, app: Sphinx, gathered: Callable[[Sphinx, BuildEnvironment], Any]) -> None:
        """Have the page written again whenever ``gathered`` returns something else than for the last build."""

        def forget(app: Sphinx, env: BuildEnvironment, page: str) -> None:
            if self.of(env) == page:
                delattr(env, self._name)

        def merge(app: Sphinx, env: BuildEnvironment, names: set[str], other: BuildEnvironment) -> None:
            if self.of(other) in names:
                setattr(env, self._name, self.of(other))

        def pages_to_write(app: Sphinx, env: BuildEnvironment) -> list[str]:
            page = self.of(env)
            if app.builder.format != "html" or page is None:
                return []
            now, was = gathered(app, env), getattr(env, self._written, None)
            setattr(env, self._written, now)
            return [page] if was != now else []

        app.connect("env-purge-doc", forget)
        app.connect("env-merge-info", merge)
        app.connect("env-updated", pages_to_write)
