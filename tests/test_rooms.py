"""The rooms of ``conf/atlas`` stay small enough to be held in the head, and each says what its modules are for."""

from __future__ import annotations

from pathlib import Path

import pytest

from sources import ROOT

ATLAS = ROOT / "conf" / "atlas"
MOST = 11
ROOMS = sorted({path.parent for path in ATLAS.rglob("*.py")})


def modules(room: Path) -> list[str]:
    return sorted(path.stem for path in room.glob("*.py") if not path.stem.startswith("__"))


@pytest.mark.parametrize("room", ROOMS, ids=lambda room: room.relative_to(ATLAS.parent).as_posix())
def test_a_room_has_few_modules_and_names_each(room: Path) -> None:
    said = (room / "__init__.py").read_text(encoding="utf-8")
    parts = modules(room) + [path.name for path in room.iterdir() if (path / "__init__.py").exists()]
    assert len(modules(room)) <= MOST, f"divide {room.name}/: a room has at most {MOST} modules"
    assert not [name for name in parts if f"``{name}``" not in said], (
        f"name them in the docstring of {room.name}/__init__.py"
    )
