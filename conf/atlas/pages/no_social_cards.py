"""Keep sphinxext-opengraph from importing matplotlib in every build, for pictures that the site does not have it draw.

The import takes half a second, a fifth of a build with nothing to do. It stands at the top of the extension's module of cards:
this extension comes first and puts an empty module in its place.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.errors import ConfigError

_CARDS = "sphinxext.opengraph._social_cards"


def check(app: Sphinx, config: Config) -> None:
    """Connected to ``config-inited``.

    :raises ConfigError: if cards are asked for after all.
    """
    if config.ogp_social_cards.get("enable", True):
        raise ConfigError("ogp_social_cards: to have cards, take atlas.pages.no_social_cards out of the extensions")


def setup(app: Sphinx) -> dict[str, Any]:
    empty = ModuleType(_CARDS)
    empty.create_social_card = None
    empty.DEFAULT_SOCIAL_CONFIG = {}
    sys.modules.setdefault(_CARDS, empty)
    app.connect("config-inited", check)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
