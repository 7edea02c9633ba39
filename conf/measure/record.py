"""Record the examples that need a GPU: run them here, and keep what they made for builders without one.

``python conf/measure/record.py`` needs a machine with CUDA and the packages that examples import, sphinx, sphinx-gallery,
joblib and pypandoc-binary; ``nox -s record`` calls it. A recording goes to ``recordings/<page>/`` beside its script, or to
``<chapter>/<page>/`` below ``--out``. With ``--check`` nothing is recorded: each page runs to its end, and all asserts and
statements that fail are listed, since a GPU may be there for half an hour only.
"""

from __future__ import annotations

import argparse
import ast
import builtins
import datetime
import platform
import runpy
import subprocess
import sys
import tempfile
import types
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

CONF = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(CONF))

from atlas.gallery import process, recordings, sphinx_gallery_patches
from atlas.gallery.child import Limits
from atlas.gallery.faults import explain_error
from atlas.gallery.run import make_job
from atlas.gallery.scrapers import start_fresh
from atlas.gallery.scripts import Gallery, Page

LIMITS = Limits(seconds=300.0)
"""Of a page that does not ask for more time."""


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pages", nargs="*", metavar="CHAPTER/PAGE", help="such as cuda/devices; all by default")
    parser.add_argument("--out", type=Path, help="write recordings below this folder instead of beside the scripts")
    parser.add_argument("--check", action="store_true", help="record nothing; list every assert that fails")
    parser.add_argument("--check-script", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.check_script:
        return check_script(options.check_script)
    if not process.describe_gpu():
        print(
            "record: PyTorch finds no CUDA device here; recordings are made on a machine that has one",
            file=sys.stderr,
        )
        return 2
    docs = CONF.parent / "docs"
    settings = runpy.run_path(str(CONF / "conf.py"))["sphinx_gallery_conf"]
    settings = sphinx_gallery_patches.fill_settings(settings, docs)
    pages = {
        page.name: page for page in Gallery(docs, docs, settings).find_pages() if recordings.needs_gpu(page.script)
    }
    unknown = set(options.pages) - set(pages)
    if unknown:
        print(f"record: no page with a half that needs a GPU: {', '.join(sorted(unknown))}", file=sys.stderr)
        return 2
    chosen = {name: page for name, page in pages.items() if not options.pages or name in options.pages}
    if options.check:
        return check_pages(chosen)
    try:
        return record_pages(chosen, settings, options.out)
    except FileExistsError as error:
        print(f"record: {error}", file=sys.stderr)
        return 2


def record_pages(chosen: Mapping[str, Page], settings: Mapping[str, Any], out: Path | None) -> int:
    """Run scripts one after another, since they share one GPU, and write the recordings of those that succeed.

    :returns: 0 if each recording was made and fits its script, else 1.
    :raises FileExistsError: if something else is where a recording goes. Then nothing has run.
    """
    facts, failed = process.describe_gpu(), 0
    folders = {name: out / name if out else recordings.find_folder(page) for name, page in chosen.items()}
    for folder in folders.values():
        recordings.refuse_foreign_folder(folder)
    with tempfile.TemporaryDirectory() as scratch:
        jobs = [make_job(page, Path(scratch), LIMITS) for page in chosen.values()]
        for outcome in process.run_jobs(jobs, settings, at_once=1):
            name, made = outcome.job.name, outcome.job.place.made
            if outcome.fault:
                print(outcome.fault.make_report(), file=sys.stderr)
                failed += 1
                continue
            recordings.write_recording(chosen[name], made, folders[name], {**facts, **_describe_run(outcome.facts)})
            print(f"record: {name}: {outcome.facts['seconds']:.1f} s, on {facts['gpu']}")
            if recordings.hash_file(outcome.job.script) != recordings.hash_file(made / outcome.job.script.name):
                print(f"record: {name}: the script was edited while it ran; record it again", file=sys.stderr)
                failed += 1
    return 1 if failed else 0


def check_pages(chosen: Mapping[str, Page]) -> int:
    """Run scripts one after another, each to its end, and print all that fails in them.

    :returns: 0 if nothing failed, else 1.
    """
    failed = 0
    for name, page in chosen.items():
        command = [sys.executable, __file__, "--check-script", str(page.script)]
        with tempfile.TemporaryDirectory() as empty:
            try:
                code = subprocess.run(
                    command, cwd=empty, stdout=subprocess.DEVNULL, timeout=LIMITS.wall_clock
                ).returncode
            except subprocess.TimeoutExpired:
                code = f"no end within {LIMITS.wall_clock:g} s"
        failed += code != 0
        print(f"record: {name}: {'nothing fails' if code == 0 else f'FAILED ({code})'}", flush=True)
    return 1 if failed else 0


def check_script(script: Path) -> int:
    """Run a script here, as ``__main__``, and print each assert that failed, and each statement that raised; then go on.

    :returns: 0 if nothing failed, else 1.
    """
    failures = 0

    def note_failure(line: int) -> None:
        nonlocal failures
        failures += 1
        print(explain_error(sys.exc_info()[1], script, line).make_report(), file=sys.stderr, flush=True)

    class GoOn(ast.NodeTransformer):
        """Has each assert note its failure, and go on."""

        def visit_Assert(self, node: ast.Assert) -> ast.Try:
            call = ast.Call(ast.Name("__atlas_note_failure__", ast.Load()), [ast.Constant(node.lineno)], [])
            handler = ast.ExceptHandler(ast.Name("AssertionError", ast.Load()), None, [ast.Expr(call)])
            return ast.copy_location(ast.Try([node], [handler], [], []), node)

    builtins.__atlas_note_failure__ = note_failure
    start_fresh({}, None)
    module = sys.modules["__main__"] = types.ModuleType("__main__")
    module.__file__ = str(script)
    for statement in GoOn().visit(ast.parse(script.read_text(encoding="utf-8"), str(script))).body:
        tree = ast.fix_missing_locations(ast.Module([statement], []))
        try:
            exec(compile(tree, str(script), "exec", dont_inherit=True), module.__dict__)
        except (Exception, SystemExit):
            note_failure(statement.lineno)
    return 1 if failures else 0


def _describe_run(run: Mapping[str, Any]) -> dict[str, Any]:
    packages = {package: version(package) for package in ("torch", "sphinx-gallery")}
    return {
        "date": datetime.date.today().isoformat(),
        "seconds": run["seconds"],
        "peak_memory": run.get("peak_gpu_bytes", 0),
        "versions": {"python": platform.python_version(), **packages},
    }


if __name__ == "__main__":
    sys.exit(main())
