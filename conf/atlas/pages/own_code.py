"""Read every page again when the site's own code has changed.

Sphinx reads a page again when its source or a setting changes, but does not look into extensions: what a directive or a
transform now makes would stay off the pages that it made before.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.config import Config

CODE = Path(__file__).parents[1]


def digest(folder: Path) -> str:
    """One value for all code below ``folder``: it changes with any byte or name.

    >>> digest(CODE) == digest(CODE)
    True
    """
    found = hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        found.update(f"{path.relative_to(folder).as_posix()}\0".encode() + path.read_bytes() + b"\0")
    return found.hexdigest()


def note(app: Sphinx, config: Config) -> None:
    """Make the code a setting, whose changes Sphinx sees. Connected to ``config-inited``."""
    config.atlas_code = digest(CODE)


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_config_value("atlas_code", "", "env", (str,))
    app.connect("config-inited", note)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
