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


def build_copy(
    copy: Path, hash_seed: int = 0, jobs: int = 2, python: str = sys.executable, warnings: Path | None = None
) -> Path:
    """Build a copy of the sources; return the folder of the site.

    :param jobs: how many processes there may be at once.
    :param warnings: the file for what Sphinx complains of. A page that fails is one of these complaints, and ends nothing then.
    :raises SystemExit: if the build fails, or makes no site.
    """
    shutil.rmtree(copy, ignore_errors=True)
    for folder in ("conf", "docs", "examples"):
        generated = shutil.ignore_patterns("__pycache__", *(["gallery", "data"] if folder == "docs" else []))
        shutil.copytree(ROOT / folder, copy / folder, ignore=generated)
    options = ["--keep-going", "--quiet", "--fresh-env", "--write-all"]
    options += ["--conf-dir", "conf", "--doctree-dir", "doctrees"]
    options += [f"--warning-file={warnings}"] if warnings else ["--fail-on-warning"]
    processes = [f"--jobs={jobs}", "-D", f"atlas_jobs={jobs}"]
    command = [python, "-m", "sphinx", *options, *processes, "docs", "html"]
    done = subprocess.run(command, cwd=copy, env=os.environ | {"PYTHONHASHSEED": str(hash_seed)})
    site = copy / "html"
    if done.returncode and not (warnings and (site / "index.html").exists()):
        sys.exit(done.returncode)
    return site


if __name__ == "__main__":
    sys.exit(compare(str(build_copy(WHERE / "first", 1, 1)), str(build_copy(WHERE / "second", 2, 2))))
