"""The order in which the navigation has the pages."""

from __future__ import annotations

from sphinx.environment import BuildEnvironment


def in_order(env: BuildEnvironment) -> list[str]:
    """The pages that the navigation leads to, in its order. A page that stands in two places has the first."""
    order: dict[str, None] = {}
    waiting = [env.config.root_doc]
    while waiting:
        page = waiting.pop()
        if page not in order:
            order[page] = None
            waiting += reversed(env.toctree_includes.get(page, []))
    return list(order)
