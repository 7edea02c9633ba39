"""Measure builds of the site against each other, in one run on one machine: ``nox -s bench``.

A benchmark and not a test: machines are shared and noisy, so no time is asserted. ``--keep`` writes the tables to
docs/about/bench.txt, where a page shows them.
"""

from __future__ import annotations

import datetime
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "conf"))

from atlas.gallery.process import count_cores
from sources import ROOT

Row = tuple[str, float, float]
"""What was done, the seconds that it took, and MiB of memory that its process had at most, 0 if that says nothing."""

# Sphinx, which says at its end how much memory its process took at most, in KiB.
BUILD = """
import resource, sys
from sphinx.cmd.build import main
code = main(sys.argv[1:])
print("peak", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
sys.exit(code)
"""
SCRIPT = '''"""
Page {0}
=========

A page of the benchmark.
"""

# %%
# A forward and a backward.

import torch

x = torch.full((64, 64), {0}.0, requires_grad=True)
(x @ x).relu().sum().backward()
print(x.grad[0, 0])
'''


def copy_sources(folder: Path, *names: str) -> Path:
    """What the site is made of in another folder, nothing built."""
    for name in names:
        made = ("gallery",) if name == "docs" else ("recordings",)
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__", *made))
    return folder


def measure_run(what: str, site: Path, *command: str | Path) -> Row:
    """Run a program.

    :raises SystemExit: if it fails; what it said is printed.
    """
    started = time.perf_counter()
    environment = os.environ | {"MPLBACKEND": "agg"}
    done = subprocess.run(
        [sys.executable, *command], cwd=site, env=environment, capture_output=True, encoding="utf-8"
    )
    seconds = time.perf_counter() - started
    if done.returncode:
        sys.exit(f"bench: {what} failed\n{done.stdout}\n{done.stderr}")
    print(f"bench: {what}: {seconds:.1f} s", file=sys.stderr, flush=True)
    return what, seconds, int(done.stdout.rpartition("peak ")[2] or 0) / 1024 if "peak " in done.stdout else 0


def measure_build(what: str, site: Path, *options: str) -> Row:
    own = ["--quiet", "--fail-on-warning", "--conf-dir=conf", "--doctree-dir=doctrees", f"--jobs={count_cores() + 1}"]
    return measure_run(what, site, "-c", BUILD, *own, *options, "docs", "html")


def measure_site(site: Path) -> Iterator[Row]:
    """The site's own examples, built in several ways. Those that need a GPU have pages, and are not run."""
    scripts = [path for path in sorted(site.glob("examples/*/*.py")) if path.parent.name != "cuda"]
    with tempfile.TemporaryDirectory() as empty:
        alone = [measure_run(script.stem, Path(empty), script) for script in scripts]
    yield "each script with python, one by one; no pages", sum(seconds for _, seconds, _ in alone), 0
    yield measure_build("everything, from nothing", site)
    yield measure_build("nothing changed", site)
    script = site / "examples/graphs/functions_are_nodes.py"
    script.write_text(f"{script.read_text(encoding='utf-8')}\nassert {time.time_ns()}\n", encoding="utf-8")
    yield measure_build("one script edited", site)
    yield measure_build("every page read and written again, no script run", site, "-a", "-E")
    yield measure_run("for comparison: python -c 'import torch'", site, "-c", "import torch")


def measure_small_pages(site: Path, count: int) -> Row:
    """A gallery of small pages, with the site's settings."""
    order = "tags = ['a']\n[chapters.many]\n" + "".join(f"page_{number} = ['a']\n" for number in range(count))
    files = {f"examples/many/page_{number}.py": SCRIPT.format(number) for number in range(count)}
    files |= {"examples/GALLERY_HEADER.rst": "Examples\n========\n\nText.\n", "examples/pages.toml": order}
    files |= {
        "examples/many/GALLERY_HEADER.rst": "Many\n----\n",
        "docs/index.md": "# A\n\n```{toctree}\ngallery/index\n```\n",
    }
    for name, text in files.items():
        (site / name).parent.mkdir(parents=True, exist_ok=True)
        (site / name).write_text(text)
    return measure_build(f"{count} small pages, from nothing", site)


def write_table(rows: list[Row]) -> str:
    """A Markdown table. Ratios are to the first row."""
    lines = ["```{table}", ":widths: 43 20 16 21", ":class: numbers", ""]
    lines += ["| what | seconds | ratio | peak memory |", "| --- | --: | --: | --: |"]
    for what, seconds, peak in rows:
        memory = f"{peak:,.0f} MiB" if peak else ""
        lines.append(f"| {what} | {seconds:.1f} | {seconds / rows[0][1]:.2f} | {memory} |")
    return "\n".join([*lines, "```"])


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        rows = list(measure_site(copy_sources(place / "site", "conf", "docs", "examples")))
        small = [measure_small_pages(copy_sources(place / f"{count}", "conf"), count) for count in (10, 50, 200)]
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    about = (  # no machine is named
        f"Measured on {datetime.date.today().isoformat()}, {platform.system()} on {platform.machine()}, {count_cores()} cores, "
        f"{memory:.0f} GiB, Python {platform.python_version()}, torch {version('torch').partition('+')[0]}, "
        f"sphinx-gallery {version('sphinx-gallery')}."
    )
    text = "\n\n".join([write_table(rows), write_table(small), about]) + "\n"
    print(text)
    if "--keep" in sys.argv:
        (ROOT / "docs/about/bench.txt").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
