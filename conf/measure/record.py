"""Record the examples that need a GPU: run them here, and keep what they made for builders without one.

``python conf/measure/record.py`` needs a machine with CUDA and the packages that examples import, sphinx, sphinx-gallery,
joblib and pypandoc-binary; ``nox -s record`` calls it. A recording goes to ``recordings/<page>/`` beside its script. With
``--check`` nothing is kept: the pages run, and what fails in each is said.
"""

from __future__ import annotations

import argparse
import datetime
import platform
import runpy
import sys
import tempfile
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

CONF = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(CONF))

from atlas.gallery import process, recordings, sphinx_gallery_patches
from atlas.gallery.process import Limits
from atlas.gallery.run import make_job
from atlas.gallery.scripts import Page, find_pages

LIMITS = Limits(seconds=300.0)  # of a page that does not ask for more time


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pages", nargs="*", metavar="CHAPTER/PAGE", help="such as cuda/devices; all by default")
    parser.add_argument("--check", action="store_true", help="record nothing; say what fails")
    options = parser.parse_args(arguments)
    gpu, docs = process.find_gpu(), CONF.parent / "docs"
    found = find_pages(CONF.parent / "examples", docs / "gallery")
    pages = {page.name: page for page in found if recordings.needs_gpu(page.script)}
    unknown = sorted(set(options.pages) - set(pages))
    if unknown or not gpu:
        fault = "PyTorch finds no CUDA device here; record on a machine that has one"
        print(f"record: {f'no page with a half that needs a GPU: {unknown}' if unknown else fault}", file=sys.stderr)
        return 2
    settings = runpy.run_path(str(CONF / "conf.py"))["sphinx_gallery_conf"]
    chosen = [pages[name] for name in options.pages or pages]
    return record_pages(chosen, sphinx_gallery_patches.fill_settings(settings, docs), gpu, keep=not options.check)


def record_pages(pages: Sequence[Page], settings: Mapping[str, Any], gpu: str, *, keep: bool) -> int:
    """Run scripts one after another, since they share one GPU, and write the recordings of those that succeed.

    :param keep: whether recordings are written.
    :returns: 0 if each script has run, and its recording fits it, else 1.
    """
    versions = {"python": platform.python_version()} | {name: version(name) for name in ("torch", "sphinx-gallery")}
    failed = 0
    with tempfile.TemporaryDirectory() as scratch:
        jobs = {make_job(page, Path(scratch), LIMITS): page for page in pages}
        for outcome in process.run_jobs(list(jobs), settings, at_once=1):
            page, said = jobs[outcome.job], ""
            if outcome.fault:
                said = outcome.fault.make_report()
            else:
                seconds, date = outcome.facts["seconds"], datetime.date.today().isoformat()
                print(f"record: {page.name}: {seconds:.1f} s, on {gpu}", flush=True)
                if keep:
                    facts = {"gpu": gpu, "date": date, "seconds": seconds, "versions": versions}
                    recordings.write_recording(page, outcome.job.made, facts)
                    if recordings.read_recording(page).fault:
                        said = f"record: {page.name}: the script was edited while it ran; record it again"
            if said:
                print(said, file=sys.stderr)
                failed = 1
    return failed


if __name__ == "__main__":
    sys.exit(main())
