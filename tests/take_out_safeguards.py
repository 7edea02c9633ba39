"""Take each safeguard of the gallery out, in a copy, and see that the tests of the fault table notice.

A test that passes with and without the safeguard that it is meant for checks nothing. ``nox -s safeguards`` runs this; it
takes minutes, so it is run when the gallery or its fault table changes, and not in every build.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from sources import ROOT

TABLE = "tests/gallery/test_fault_table.py"
TIME_LIMIT = 300  # seconds; a run that hangs without its safeguard has noticed too


@dataclass(frozen=True, slots=True)
class Safeguard:
    """A piece of code that notices a fault, and what takes its place when it is out."""

    name: str
    file: str
    code: str
    without: str
    noticed_by: tuple[str, ...]
    """The faults of the table that nobody notices, or names rightly, without it."""


_NAMES = ("process", "scripts", "asserts", "scrapers", "sphinx_gallery_patches")
POOL, FAULTS, CLAIMS, SCRAPERS, GALLERY = (f"conf/atlas/gallery/{name}.py" for name in _NAMES)
SAFEGUARDS = [
    Safeguard(
        "an exception is a fault",
        POOL,
        'result = {"fault": asdict(scripts.explain_error(error, job.copied, int.from_bytes(line[:8], "little")))}',
        'result = {"seconds": 0.0}',
        (
            "raises",
            "raises_in_a_later_cell",
            "fails_an_assert",
            "has_no_syntax",
            "has_no_syntax_later",
            "is_indented_by_a_tab",
            "is_indented_wrongly",
            "is_not_utf8",
            "has_no_title",
            "has_no_docstring",
        ),
    ),
    Safeguard(
        "so is the end of the interpreter",
        POOL,
        "except BaseException as error:",
        "except Exception as error:",
        ("exits",),
    ),
    Safeguard(
        "a process that says nothing has failed",
        POOL,
        "return Outcome(job, fault=_make_fault(one, _explain_death(code, seconds, job.limits.seconds)))",
        'result = {"seconds": 1.0}',
        ("exits_at_once", "segfaults", "is_killed"),
    ),
    Safeguard(
        "limit of CPU time",
        POOL,
        "resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))",
        "pass",
        ("computes_without_end", "computes_deaf"),
    ),
    Safeguard(
        "limit of CPU time that cannot be blocked",
        POOL,
        "(seconds, seconds + 1)",
        "(seconds, resource.RLIM_INFINITY)",
        ("computes_deaf",),
    ),
    Safeguard(
        "limit of time on the wall clock",
        POOL,
        "if seconds > limit and seconds - _waited_for_core(one.pid) > limit:",
        "if False:",
        ("hangs", "hangs_deaf"),
    ),
    Safeguard(
        "a name for each signal",
        POOL,
        "names.get(-code, f'signal {-code}')",
        "names[-code]",
        ("gets_a_signal_without_a_name",),
    ),
    Safeguard(
        "the source can be read",
        POOL,
        "scripts.check_source(job.copied)",
        "pass",
        ("has_a_mark", "is_empty", "asks_for_no_time"),
    ),
    Safeguard(
        "limit of output",
        POOL,
        "if self.sum > self.limit:",
        "if False:",
        ("prints_without_end", "prints_one_line_without_end", "prints_much_at_once"),
    ),
    Safeguard("sum of output", POOL, "self.sum += characters", "self.sum = characters", ("prints_much_in_sum",)),
    Safeguard("output of other threads", POOL, "self.count_printed(0)", "pass", ("prints_much_in_a_thread",)),
    Safeguard(
        "output by the last expression",
        GALLERY,
        "count(len(text) if text and method else 0)",
        "pass",
        ("shows_much",),
    ),
    Safeguard(
        "limit of output past Python's streams",
        POOL,
        "job.log.stat().st_size > job.limits.output",
        "False",
        ("writes_past_python",),
    ),
    Safeguard(
        "limit of memory",
        POOL,
        "resource.setrlimit(resource.RLIMIT_DATA, (used + limits.memory, used + limits.memory))",
        "pass",
        ("needs_too_much_memory", "needs_too_much_in_python"),
    ),
    Safeguard(
        "processes left running",
        POOL,
        "    if left:\n",
        "    if False:\n",
        ("leaves_a_process", "leaves_a_process_by_a_call"),
    ),
    Safeguard(
        "warnings are errors",
        SCRAPERS,
        'warnings.simplefilter("error")',
        'warnings.simplefilter("ignore")',
        ("warns", "torch_warns"),
    ),
    Safeguard("files beside the script", POOL, "        if others:\n", "        if False:\n", ("writes_a_file",)),
    Safeguard("asserts that never run", CLAIMS, "    if missed:\n", "    if False:\n", ("never_reaches_an_assert",)),
    Safeguard("names of graphs", SCRAPERS, "if name not in namespace:", "if False:", ("misspells_a_graph",)),
    Safeguard(
        "the line that ran last",
        CLAIMS,
        'line[:8] = number.to_bytes(8, "little")',
        "pass",
        ("hangs", "segfaults", "exits_at_once"),
    ),
    Safeguard(
        "the line of a cell's last expression",
        CLAIMS,
        "node.value if node.lineno == 1 else node",
        "node",
        ("leaves_a_process_by_a_call",),
    ),
    Safeguard("the cell", FAULTS, "find_cell(script, line))", "None)", ("raises", "warns")),
    Safeguard(
        "the author's own path",
        POOL,
        'copied, original = str(job.copied), str(job.script).removeprefix(f"{Path.cwd()}/")',
        "copied = original = str(job.copied)",
        ("raises", "hangs"),
    ),
]


#: sphinx-gallery refuses these itself.
NOT_OURS = {"asks_for_input"}


def failures(safeguard: Safeguard) -> set[str]:
    """The faults whose tests fail without the safeguard; all that it is for, if the run does not end."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        for name in ("conf", "tests", "pyproject.toml"):
            (shutil.copytree if (ROOT / name).is_dir() else shutil.copy)(ROOT / name, copy / name)
        file = copy / safeguard.file
        source = file.read_text(encoding="utf-8")
        file.write_text(source.replace(safeguard.code, safeguard.without), encoding="utf-8")
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", TABLE]
        process = subprocess.Popen(
            command,
            cwd=copy,
            stdout=subprocess.PIPE,
            encoding="utf-8",
            start_new_session=True,
            stderr=subprocess.STDOUT,
        )
        try:
            said, _ = process.communicate(timeout=TIME_LIMIT)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            return set(safeguard.noticed_by)
    return {
        line.partition("[")[2].partition("]")[0]
        for line in said.splitlines()
        if line.startswith(("FAILED", "ERROR")) and "test_fault_is_named[" in line
    }


def main() -> int:
    unnoticed = 0
    for safeguard in SAFEGUARDS:
        failed = failures(safeguard)
        missing = sorted(set(safeguard.noticed_by) - failed)
        unnoticed += bool(missing)
        verdict = f"NOT NOTICED by {', '.join(missing)}" if missing else f"noticed by {', '.join(sorted(failed))}"
        print(f"without {safeguard.name!r}: {verdict}", flush=True)
    return 1 if unnoticed else 0


if __name__ == "__main__":
    sys.exit(main())
