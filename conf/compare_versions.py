"""Measure what other versions of PyTorch do otherwise, and keep it in docs/reference/versions for the site to show.

    python conf/compare_versions.py 2.14.1 2.4.1        what is out of date of these versions
    python conf/compare_versions.py --all newest        all of the newest release that pip finds

``nox -s versions`` calls it. Each version gets an environment of its own below .nox/versions, of several gigabytes. It is
measured side by side with the PyTorch of the site. A summary of what differs is printed, as Markdown.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

CONF = Path(__file__).resolve().parent
ROOT = CONF.parent
sys.path.insert(0, str(CONF))

from atlas.operators import report
from atlas.versions import measured
from atlas.versions.measured import DataError, Measured
from atlas.versions.measuring import compare, environment, summary
from atlas.versions.measuring.environment import InstallError
from atlas.versions.probes import all as probes

HOME = ROOT / ".nox" / "versions"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "versions", nargs="+", help=f"such as 2.14.1; or {environment.NEWEST}, or {environment.NIGHTLY}"
    )
    parser.add_argument("--all", action="store_true", help="measure again what is up to date")
    parser.add_argument("--out", type=Path, help="write below this folder instead of docs/reference/versions")
    parser.add_argument("--remove", action="store_true", help="remove each environment when it has been measured")
    parser.add_argument(
        "--report", type=Path, help="write the summary to this file too, if an example or a row fails"
    )
    options = parser.parse_args(arguments)
    told = []
    own = Own()
    for version in options.versions:
        try:
            made = one(environment.python(HOME, version, ROOT / "requirements.txt"), own, options)
        except (InstallError, DataError, MeasureError) as error:
            print(f"versions: {error}", file=sys.stderr)
            return 2
        finally:
            if options.remove:
                environment.remove(HOME, version)
        if made is None:
            print(f"versions: {version} is torch {own.torch}, as the site itself has; there is nothing to compare")
            continue
        print(summary.markdown(made), flush=True)
        if summary.failing(made):
            told.append(summary.markdown(made))
    if options.report and told:
        options.report.write_text("\n\n".join(told) + "\n", encoding="utf-8")
    return 0


class MeasureError(Exception):
    """A version could not be measured; the message says why."""


class Own:
    """What the site's own PyTorch does, measured once for all the versions that it is compared with."""

    def __init__(self) -> None:
        self.torch = _version(Path(sys.executable))
        self._found: dict[str, Any] = {}

    def measured(self, plan: dict[str, Any]) -> dict[str, Any]:
        """What the plan asks for, and perhaps more.

        :raises MeasureError: if an example or a row fails.
        """
        rest = {
            **{
                kind: [name for name in plan[kind] if name not in self._found.get(kind, ())]
                for kind in ("examples", "rows")
            },
            **{kind: plan[kind] and kind not in self._found for kind in ("operators", "probes")},
        }
        new = _measure(Path(sys.executable), rest)
        both = {kind: self._found.get(kind, {}) | new[kind] for kind in ("examples", "rows")}
        self._found = {**self._found, **new, **both}
        faulty = [name for name, found in self._found["examples"].items() if found["faults"]]
        faulty += [title for title, found in self._found["rows"].items() if found["failed"]]
        if faulty:
            raise MeasureError(
                f"under the site's own torch {self.torch} these fail: {', '.join(faulty)}; mend them first"
            )
        return self._found


def one(python: Path, own: Own, options: argparse.Namespace) -> Measured | None:
    """Measure one version, compare it with the site's own, and keep what differs; None if it is the site's own.

    :raises MeasureError: if it cannot be measured, or the site's own fails.
    :raises DataError: if its file of data cannot be used.
    """
    torch = _version(python)
    if torch == own.torch:
        return None
    file = ROOT / measured.FOLDER / f"{torch}.json"
    known = measured.read(file) if file.exists() and not options.all else None
    if known and known.of["against"] != own.torch:
        known = None
    plan = {
        "examples": measured.stale_examples(ROOT, known),
        "rows": measured.stale_rows(ROOT, known),
        "operators": known is None or known.operators["code"] != report.identity()["code"],
        "probes": known is None or not measured.answers_all(known),
    }
    asked = [f"{len(plan['examples'])} examples", f"{len(plan['rows'])} rows"]
    asked += [kind for kind in ("operators", "probes") if plan[kind]]
    print(f"versions: torch {torch}: {', '.join(asked)}", flush=True)
    made = _compared(own.measured(plan), _measure(python, plan), known)
    print(f"versions: kept in {measured.write(options.out or ROOT / measured.FOLDER, made)}")
    return made


def _compared(base: dict[str, Any], other: dict[str, Any], known: Measured | None) -> Measured:
    """What differs; entries that were not measured again stay as they are known."""
    current = measured.current(ROOT, known) if known else {"examples": {}, "rows": {}}
    differ = {name: compare.example(base["examples"][name], found) for name, found in other["examples"].items()}
    about = {
        **{"torch": other["torch"], "against": base["torch"], "python": other["python"]},
        **{"date": datetime.date.today().isoformat(), "format": measured.FORMAT},
    }
    return Measured(
        file=Path(),
        of=about,
        examples=current["examples"] | differ,
        rows=current["rows"] | other["rows"],
        operators=(
            compare.operators(base["operators"], other["operators"]) if "operators" in other else known.operators
        ),
        **(
            {
                "probes": other["probes"],
                "signatures": compare.signatures(base["signatures"], other["signatures"]),
                **probes.identity(),
            }
            if "probes" in other
            else {"probes": known.probes, "signatures": known.signatures, "asked_by": known.asked_by}
        ),
    )


def _measure(python: Path, plan: dict[str, Any]) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        asked, file = Path(folder) / "plan.json", Path(folder) / "found.json"
        asked.write_text(json.dumps(plan))
        environment_ = {**os.environ, "PYTHONPATH": str(CONF), "PYTHONHASHSEED": "0", "MPLBACKEND": "agg"}
        done = subprocess.run(
            [str(python), "-m", "atlas.versions.measuring", str(ROOT), str(asked), str(file)],
            env=environment_,
            check=False,
        )
        if done.returncode or not file.exists():
            raise MeasureError(f"`{python} -m atlas.versions.measuring` ended with {done.returncode}")
        return json.loads(file.read_text(encoding="utf-8"))


def _version(python: Path) -> str:
    code = "from importlib.metadata import version; print(version('torch'))"
    try:
        done = subprocess.run([str(python), "-c", code], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise MeasureError(f"{python} has no PyTorch: {error}; build the site once: nox -s docs") from None
    return done.stdout.strip().partition("+")[0]


if __name__ == "__main__":
    sys.exit(main())
