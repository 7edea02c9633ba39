"""What the build's own PyTorch answers to the probes. They are asked before pages are read, unless nothing has changed."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.util import logging

from atlas import toolbox
from atlas.toolbox import Refusal

from . import measured

logger = logging.getLogger(__name__)

DATA = Path("reference/data/version_probes.json")
"""Below docs/."""
FILES = Path("reference/data/version_files.txt")
"""Below docs/: which data of other versions there are, and their hashes. Pages depend on it, so that they notice a new one."""
CONF = Path(__file__).parents[2]
SECONDS = 30.0
TIME_LIMIT = 20 * SECONDS


def identity() -> dict[str, Any]:
    """What the answers depend on: the version of PyTorch, and the probes."""
    code = hashlib.sha256()
    for path in sorted((Path(__file__).parent / "probes").glob("*.py")):
        code.update(path.read_bytes())
    return {"torch": version("torch").partition("+")[0], "probes": code.hexdigest()[:16]}


def load(docs: Path) -> dict[str, Any] | None:
    """``probes`` and ``signatures``, as ``measure`` finds them; None if missing or out of date."""
    return toolbox.load_json(docs / DATA, identity())


def ask(docs: Path) -> None:
    """Ask, in a process of its own, and keep the answers.

    :raises RuntimeError: if that fails as a whole; a probe that fails has that as its answer.
    """
    command = [sys.executable, "-m", "atlas.versions.probes", str(docs / DATA)]
    environment = {**os.environ, "PYTHONPATH": str(CONF), "PYTHONHASHSEED": "0"}
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, check=False, timeout=TIME_LIMIT
        )
    except subprocess.TimeoutExpired:
        raise RuntimeError(f"the probes of versions did not end within {TIME_LIMIT:g} s") from None
    if done.returncode or load(docs) is None:
        raise RuntimeError(f"the probes of versions cannot be asked; they say:\n{done.stderr[-2000:]}")


def _ask_if_needed(app: Sphinx) -> None:
    """Connected to ``builder-inited``.

    :raises Refusal: if the probes cannot be asked.
    """
    docs = Path(app.srcdir)
    folder = docs.parent / measured.FOLDER
    if not folder.is_dir():
        return
    files = (
        f"{file.name} {hashlib.sha256(file.read_bytes()).hexdigest()}\n" for file in sorted(folder.glob("*.json"))
    )
    toolbox.write_if_changed(docs / FILES, "".join(files))
    if load(docs) is None:
        logger.info("versions: asking the probes")
        try:
            ask(docs)
        except RuntimeError as error:
            raise Refusal(str(error)) from None


def setup(app: Sphinx) -> None:
    app.connect("builder-inited", _ask_if_needed)
