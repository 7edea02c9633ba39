"""What the outputs of an example depend on.

sphinx-gallery takes an example for current as long as the script is the same. But its outputs also depend on the code that
draws and checks them, on sphinx-gallery's settings, on the versions of the packages, and on whether there is a GPU.
"""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from atlas.runner import sphinx_gallery_api

PACKAGES = ("torch", "numpy", "pandas", "scikit-learn", "matplotlib", "sphinx-gallery", "graphviz", "pygraphviz")

OF_GRAPHS = ("fold", "model", "nodes", "program", "read", "rules")
"""The modules of ``graphs`` with which a script's graphs are read."""

_SITE = Path(__file__).parents[2]
_CONF = _SITE.parent
_DRIVER = Path("/proc/driver/nvidia/version")

Fingerprint = dict[str, str]


def of(script: Path, besides: Mapping[str, str]) -> Fingerprint:
    """What the outputs of ``script`` depend on, by name.

    :param besides: what they depend on besides the script: ``shared``, or the recording that is replayed.
    """
    return {"the script": _sha256(script.read_bytes()), **besides}


def shared(settings: Mapping[str, Any]) -> Fingerprint:
    """What the outputs of all examples that run here depend on, besides their scripts.

    :param settings: sphinx-gallery's, filled in.
    """
    return {
        "the site's code in conf": code(),
        "sphinx_gallery_conf in conf/conf.py": _sha256(sphinx_gallery_api.shaping(settings).encode()),
        "Python": platform.python_version(),
        **{package: version(package) for package in PACKAGES},
        # read from the driver: to ask torch would start CUDA, and a process that has may not fork
        "the GPU's driver": _sha256(_DRIVER.read_bytes()) if _DRIVER.exists() else "none",
    }


def code() -> str:
    """One hash for the modules that shape an example's outputs. Those that draw graphs do so when a page is read."""
    sources = [path for folder in ("cells", "runner") for path in sorted((_SITE / folder).rglob("*"))]
    sources += [_CONF / "graphs" / f"{name}.py" for name in OF_GRAPHS]
    files = [path for path in sources if path.suffix in {".py", ".mplstyle"}]
    return _sha256(b"".join(f"{path.relative_to(_CONF)}\0".encode() + path.read_bytes() for path in files))


def changes(before: Fingerprint, now: Fingerprint) -> list[str]:
    """The names of what differs, for a person.

    >>> changes({"the script": "a", "torch": "2.12.0"}, {"the script": "a", "torch": "2.13.0"})
    ['torch 2.12.0 -> 2.13.0']
    """
    found = []
    for name in sorted({*before, *now}):
        old, new = before.get(name, "none"), now.get(name, "none")
        if old != new:
            found.append(name if len(old) == 64 or len(new) == 64 else f"{name} {old} -> {new}")
    return found


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
