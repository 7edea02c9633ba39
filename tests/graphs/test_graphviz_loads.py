"""Graphviz comes in a wheel, but not all that it needs: what is missing on a small machine is named, and the way out."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from sources import ROOT


def test_a_missing_library_is_named_with_the_way_out(tmp_path: Path) -> None:
    missing = "libgobject-2.0.so.0: cannot open shared object file"
    (tmp_path / "pygraphviz.py").write_text(f"raise ImportError({missing!r})")
    path = os.pathsep.join([str(tmp_path), str(ROOT / "conf")])
    command = [sys.executable, "-c", "import graphs.draw"]
    done = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=False
    )
    last = done.stderr.splitlines()[-1]
    assert done.returncode == 1 and missing in last and "apt-get install libglib2.0-0" in last
