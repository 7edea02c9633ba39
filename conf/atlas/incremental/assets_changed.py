"""Write every page again when one of the site's style sheets or scripts has changed.

Sphinx puts a checksum into the address of each (``?v=...``), on the pages that it writes. The others would go on with the old
address, and a browser with the old file: ``conf/nginx.conf`` lets it keep for a year what has a checksum in its address.
Sphinx looks after the templates itself.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.config import Config


def note(app: Sphinx, config: Config) -> None:
    """Keep one hash of all assets as a setting; Sphinx writes all pages when a setting of kind ``html`` has changed.

    Connected to ``config-inited``.
    """
    found = hashlib.sha256()
    for path in _files(Path(app.confdir), config.html_static_path):
        found.update(f"\0{path.name}\0".encode() + path.read_bytes())
    config.atlas_assets = found.hexdigest()


def _files(conf: Path, entries: list[str]) -> Iterator[Path]:
    for path in (conf / entry for entry in entries):
        yield from [path] if path.is_file() else sorted(file for file in path.rglob("*") if file.is_file())


def setup(app: Sphinx) -> None:
    app.add_config_value("atlas_assets", "", "html", [str])
    app.connect("config-inited", note)
