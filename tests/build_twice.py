"""Build the site twice from nothing and compare the two, byte by byte: ``nox -s repeat``.

The two builds differ in all that should not matter: the folder, Python's hash seed, and how many processes run examples, read
and write pages, and with it the order in which they end.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from compare_builds import main as compare
from sources import ROOT

WHERE = ROOT / "build" / "repeat"


def build(name: str, hash_seed: int, jobs: int) -> Path:
    """Build a copy of the sources; return the folder of the site.

    :param jobs: how many processes there may be at once.
    :raises SystemExit: if the build fails.
    """
    copy = WHERE / name
    shutil.rmtree(copy, ignore_errors=True)
    for folder in ("conf", "docs", "examples"):
        generated = shutil.ignore_patterns("__pycache__", *(["gallery", "data"] if folder == "docs" else []))
        shutil.copytree(ROOT / folder, copy / folder, ignore=generated)
    options = ["--fail-on-warning", "--keep-going", "--quiet", "--fresh-env", "--write-all"]
    options += ["--conf-dir", "conf", "--doctree-dir", "doctrees"]
    processes = [f"--jobs={jobs}", "-D", f"atlas_jobs={jobs}"]
    command = [sys.executable, "-m", "sphinx", *options, *processes, "docs", "html"]
    done = subprocess.run(command, cwd=copy, env=os.environ | {"PYTHONHASHSEED": str(hash_seed)})
    if done.returncode:
        sys.exit(done.returncode)
    return copy / "html"


if __name__ == "__main__":
    sys.exit(compare(str(build("first", 1, 1)), str(build("second", 2, 2))))
