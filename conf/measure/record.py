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
    gpu = process.find_gpu()
    if not gpu:
        print("record: PyTorch finds no CUDA device here; record on a machine that has one", file=sys.stderr)
        return 2
    docs = CONF.parent / "docs"
    settings = runpy.run_path(str(CONF / "conf.py"))["sphinx_gallery_conf"]
    settings = sphinx_gallery_patches.fill_settings(settings, docs)
    found = find_pages(CONF.parent / "examples", docs / "gallery")
    pages = {page.name: page for page in found if recordings.needs_gpu(page.script)}
    unknown = set(options.pages) - set(pages)
    if unknown:
        print(f"record: no page with a half that needs a GPU: {', '.join(sorted(unknown))}", file=sys.stderr)
        return 2
    chosen = [page for name, page in pages.items() if not options.pages or name in options.pages]
    return record_pages(chosen, settings, gpu, keep=not options.check)


def record_pages(pages: Sequence[Page], settings: Mapping[str, Any], gpu: str, *, keep: bool) -> int:
    """Run scripts one after another, since they share one GPU, and write the recordings of those that succeed.

    :param keep: whether recordings are written.
    :returns: 0 if each script has run, and its recording fits it, else 1.
    """
    failed = 0
    versions = {"python": platform.python_version(), "torch": version("torch")}
    versions["sphinx-gallery"], today = version("sphinx-gallery"), datetime.date.today().isoformat()
    with tempfile.TemporaryDirectory() as scratch:
        jobs = {make_job(page, Path(scratch), LIMITS): page for page in pages}
        for outcome in process.run_jobs(list(jobs), settings, at_once=1):
            page, made = jobs[outcome.job], outcome.job.made
            if outcome.fault:
                print(outcome.fault.make_report(), file=sys.stderr)
                failed += 1
                continue
            print(f"record: {page.name}: {outcome.facts['seconds']:.1f} s, on {gpu}", flush=True)
            if keep:
                facts = {"gpu": gpu, "date": today, "seconds": outcome.facts["seconds"], "versions": versions}
                recordings.write_recording(page, made, facts)
                if recordings.read_recording(page).fault:
                    said = "the script was edited while it ran; record it again"
                    print(f"record: {page.name}: {said}", file=sys.stderr)
                    failed += 1
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
