"""Files that a build keeps for the next one.

They are written whole or not at all, and used only while what they depend on is the same.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any


def write_whole(path: Path, text: str) -> None:
    """Write a file so that a reader finds the old content or the new, never a part. Its folder is made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    part.write_text(text, encoding="utf-8")
    os.replace(part, path)


def write_if_changed(path: Path, text: str) -> None:
    """``write_whole``, but a file with just this text keeps its date."""
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        write_whole(path, text)


def save(path: Path, of: dict[str, Any], **data: Any) -> None:
    """Keep ``data`` as JSON, with what it depends on: a version, a hash of the code that made it."""
    write_whole(path, json.dumps({"of": of, **data}, indent=1))


def load(path: Path, of: dict[str, Any]) -> dict[str, Any] | None:
    """What ``save`` has kept; None if it is missing, broken, or depends on something else than ``of``."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) and found.get("of") == of else None
