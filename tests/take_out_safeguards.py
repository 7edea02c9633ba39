"""Take each safeguard of the gallery out, in a copy, and see that the tests of the fault table notice: ``nox -s safeguards``.

A test that passes with and without the safeguard that it is meant for checks nothing. It takes minutes, so it is run when the
gallery or its fault table changes, and once a week. ``gallery/safeguards.toml`` lists them.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

from sources import ROOT

TABLE = "tests/gallery/test_fault_table.py"
TIME_LIMIT = 300  # seconds; a run that hangs without its safeguard has noticed too


def find_failures(safeguard: dict[str, Any]) -> set[str]:
    """The faults whose tests fail without the safeguard; all that it is for, if the run does not end."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        for name in ("conf", "tests"):
            shutil.copytree(ROOT / name, copy / name)
        (copy / "examples").mkdir()
        for name in ("pyproject.toml", "examples/pages.toml"):
            shutil.copy(ROOT / name, copy / name)
        file = copy / "conf" / "atlas" / "gallery" / safeguard["file"]
        before, found, after = file.read_text(encoding="utf-8").partition(safeguard["code"])
        if not found or found in after:
            sys.exit(f"tests/gallery/safeguards.toml: {safeguard['file']} has not once {safeguard['code']!r}")
        file.write_text(before + safeguard["without"] + after, encoding="utf-8")
        command = ["timeout", str(TIME_LIMIT), sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", TABLE]
        done = subprocess.run(command, cwd=copy, capture_output=True, encoding="utf-8")
    if done.returncode == 124:
        return set(safeguard["faults"])
    if " passed" not in done.stdout:
        sys.exit(done.stdout)
    return set(re.findall(r"^(?:FAILED|ERROR) .*test_fault_is_named\[(\w+)\]", done.stdout, re.MULTILINE))


def main() -> int:
    listed = tomllib.loads((ROOT / "tests/gallery/safeguards.toml").read_text(encoding="utf-8"))
    unnoticed = 0
    for name, safeguard in listed.items():
        failed = find_failures(safeguard)
        missing = {*safeguard["faults"]} - failed
        unnoticed += bool(missing)
        verdict = (
            f"NOT NOTICED by {', '.join(sorted(missing))}" if missing else f"noticed by {', '.join(sorted(failed))}"
        )
        print(f"without {name!r}: {verdict}", flush=True)
    return 1 if unnoticed else 0


if __name__ == "__main__":
    sys.exit(main())
