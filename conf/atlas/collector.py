"""How often Python looks for garbage in cycles: seldom in a build, and in an example as Python does by itself.

It looks whenever there are some hundred new objects, now and then at all that there are, and again when it ends. A build
holds a million of them, its modules and the environment, and hardly any garbage: looking took a quarter of the time of a
build after one edit.
"""

from __future__ import annotations

import atexit
import gc

_OF_PYTHON = gc.get_threshold()
_NEW_OBJECTS = 50_000


def look_seldom() -> None:
    gc.set_threshold(_NEW_OBJECTS, *_OF_PYTHON[1:])
    atexit.register(gc.freeze)


def look_as_usual() -> None:
    """Look as often as in a new process: pages tell when an object in a cycle is freed."""
    gc.set_threshold(*_OF_PYTHON)
