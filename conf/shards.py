"""Run a share of the examples that are out of date, or put together what several machines made of theirs.

``nox -s docs -- --shard 2/4`` and ``nox -s docs -- --merge DIR`` call this. Neither needs a Sphinx build: the first leaves a
part in ``build/shards``, the second fills sphinx-gallery's cache from the parts in DIR, so that a build runs nothing.
"""

from __future__ import annotations

import argparse
import logging
import runpy
import subprocess
import sys
from pathlib import Path

CONF = Path(__file__).resolve().parent
ROOT = CONF.parent
sys.path.insert(0, str(CONF))

from atlas import operators
from atlas.runner import fill, lock, sphinx_gallery_api
from atlas.runner.model import Site
from atlas.runner.outputs import shards
from atlas.runner.outputs.shards import OPERATORS, Shard, ShardError
from atlas.runner.scripts import ScriptError


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--shard", metavar="N/M", help="run the N-th of M shares, and pack what it made")
    what.add_argument("--merge", metavar="DIR", type=Path, help="publish what the parts in this folder hold")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "shards", help="where a part goes")
    parser.add_argument("--site", type=Path, default=ROOT, help="the folder that holds docs/ and examples/")
    options = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stdout)
    docs = options.site.resolve() / "docs"
    settings = sphinx_gallery_api.settings(runpy.run_path(str(CONF / "conf.py"))["sphinx_gallery_conf"], docs)
    site = Site(docs, options.site / "build" / "running", settings)
    try:
        shard = Shard.named(options.shard) if options.shard else None
        with lock.take(site.work.parent):
            return run(site, shard, options.out) if shard else merge(site, options.merge)
    except (ScriptError, ShardError) as error:
        print(f"shards: {error}", file=sys.stderr)
        return 2


def run(site: Site, shard: Shard, out: Path) -> int:
    """Run a share of what is out of date, and pack it if nothing failed."""
    (out / shard.file).unlink(missing_ok=True)
    state = fill.look(site)
    about = shards.of_what(site, state, commit(site.docs))
    names = shards.share_out(shards.waiting(site, state), shard.of)[shard.number - 1]
    faults = fill.run(site, state, [page for page in state.stale if page.name in names])
    for fault in faults:
        print(f"shards: {fault.headline()}", file=sys.stderr)
    if faults:
        print("shards: examples failed, so there is no part", file=sys.stderr)
        return 1
    if OPERATORS in names:
        print(operators.probe_operators(site.docs))
    path = shards.pack(site, shard, names, about, out)
    print(f"shards: {len(names)} of {len(about['shared_out'])} are in {path}")
    return 0


def merge(site: Site, folder: Path) -> int:
    """Publish what the parts in a folder hold."""
    names = shards.merge(site, fill.look(site), folder, commit(site.docs))
    print(f"shards: {len(names)} put together, nothing run")
    return 0


def commit(folder: Path) -> str:
    """The commit that is checked out in a folder, or what there is instead of one."""
    try:
        asked = subprocess.run(["git", "rev-parse", "HEAD"], cwd=folder, capture_output=True, text=True, check=False)
    except FileNotFoundError:  # git itself
        return "unknown"
    return asked.stdout.strip() or "unknown"


if __name__ == "__main__":
    sys.exit(main())
