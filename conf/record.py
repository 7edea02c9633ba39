"""Record the examples that need a GPU: run them here, and keep what they made for builders without one.

``python conf/record.py`` needs a machine with CUDA and the packages torch, matplotlib, pandas, sphinx, sphinx-gallery, graphviz
and pygraphviz; ``nox -s record`` calls it. A recording goes to ``recordings/<page>/`` beside its script, or to
``<chapter>/<page>/`` below ``--out``.
With ``--check`` nothing is recorded: each page runs to its end, and all that fails is listed. For a machine without a network
see ``conf/record_offline.py``.
"""

from __future__ import annotations

import argparse
import datetime
import platform
import runpy
import shutil
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

CONF = Path(__file__).resolve().parent
sys.path.insert(0, str(CONF))

from atlas.runner import every_assert, gpu, sphinx_gallery_api
from atlas.runner.model import Page
from atlas.runner.outputs import recordings
from atlas.runner.outputs.cache import sha256
from atlas.runner.processes import limits, pool
from atlas.runner.processes.child import Workplace
from atlas.runner.processes.limits import Limits

LIMITS = Limits(seconds=300.0)
"""Of a page that does not ask for more time."""


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pages", nargs="*", metavar="CHAPTER/PAGE", help="such as cuda/devices; all by default")
    parser.add_argument("--out", type=Path, help="write recordings below this folder instead of beside the scripts")
    parser.add_argument("--check", action="store_true", help="record nothing; list every assert that fails")
    options = parser.parse_args(arguments)
    facts = gpu.describe()
    if not facts:
        print(
            "record: PyTorch finds no CUDA device here; recordings are made on a machine that has one",
            file=sys.stderr,
        )
        return 2
    pages = {page.name: page for page in recordings.pages(CONF.parent) if recordings.needed(page.script)}
    unknown = set(options.pages) - set(pages)
    if unknown:
        print(f"record: no page with a half that needs a GPU: {', '.join(sorted(unknown))}", file=sys.stderr)
        return 2
    chosen = [page for name, page in pages.items() if not options.pages or name in options.pages]
    if options.check:
        return check(chosen)
    try:
        return record(chosen, facts, options.out)
    except FileExistsError as error:
        print(f"record: {error}", file=sys.stderr)
        return 2


def check(pages: list[Page]) -> int:
    """Run the scripts of ``pages`` one after another, each to its end, and print all that fails in them.

    :returns: 0 if nothing failed, else 1.
    """
    failed = 0
    for page in pages:
        with tempfile.TemporaryDirectory() as empty:
            passes = every_assert.passes(page.script, Path(empty), limits.allowed(page.script, LIMITS))
        failed += not passes
        print(f"record: {page.name}: {'nothing fails' if passes else 'FAILED'}", flush=True)
    return 1 if failed else 0


def record(chosen: list[Page], facts: dict, out: Path | None) -> int:
    """Run scripts one after another, since they share one GPU, and write the recordings of those that succeed.

    :returns: 0 if each recording was made and fits its script, else 1.
    :raises FileExistsError: if something else is where a recording goes. Then nothing has run.
    """
    pages = {page.name: page for page in chosen}
    folders = {name: out / name if out else recordings.folder_of(page) for name, page in pages.items()}
    for folder in folders.values():
        recordings.refuse_foreign(folder)
    settings = sphinx_gallery_api.settings(
        runpy.run_path(str(CONF / "conf.py"))["sphinx_gallery_conf"], CONF.parent / "docs"
    )
    failed = 0
    with tempfile.TemporaryDirectory() as scratch:
        jobs = [
            pool.Job(
                name,
                page.script,
                Workplace(Path(scratch) / name, page.script.parent.name, page.script.name),
                limits.allowed(page.script, LIMITS),
            )
            for name, page in pages.items()
        ]
        for outcome in pool.run(jobs, settings, at_once=1):
            job = outcome.job
            if outcome.fault:
                print(outcome.fault.report(), file=sys.stderr)
                failed += 1
                continue
            about = {**facts, **_about(outcome.facts)}
            ran = sha256(job.place.made / job.script.name)
            new = recordings.write(pages[job.name], job.place.made, folders[job.name], about)
            shutil.rmtree(job.place.root)
            kept = "" if new else "; the recording that is there says the same, and stays"
            print(f"record: {job.name}: {outcome.facts['seconds']:.1f} s, on {facts['gpu']}{kept}")
            if sha256(job.script) != ran:
                print(f"record: {job.name}: the script was edited while it ran; record it again", file=sys.stderr)
                failed += 1
    return 1 if failed else 0


def _about(run: dict) -> dict:
    return {
        "date": datetime.date.today().isoformat(),
        "seconds": run["seconds"],
        "peak_memory": run.get("peak_gpu_bytes", 0),
        "versions": {
            "python": platform.python_version(),
            "torch": version("torch"),
            "sphinx-gallery": version("sphinx-gallery"),
        },
    }


if __name__ == "__main__":
    sys.exit(main())
