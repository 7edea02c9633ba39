"""Measure builds of the site against each other, in one run on one machine: ``nox -s bench``.

A benchmark and not a test: machines are shared and noisy, so no time is asserted. It prints a table; ``--keep`` writes it to
docs/about/bench.txt too, with the date and the kind of machine, where a page shows it. ``--quick`` leaves the large synthetic
galleries out.
"""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "conf"))

from atlas.gallery.process import count_cores
from sources import ROOT

KEPT = ROOT / "docs" / "about" / "bench.txt"

# Runs Sphinx and says at its end how much memory its process took at most, in KiB (of one that children are forked from).
BUILD = """
import resource, sys
from sphinx.cmd.build import main
code = main(sys.argv[1:])
print("peak", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
sys.exit(code)
"""

# conf.py for sphinx-gallery as it is without the site's runner, which fills its cache.
STOCK = """
import runpy
globals().update(runpy.run_path({conf!r}))
from atlas.gallery import run
run.fill_cache = lambda app: None
sphinx_gallery_conf["parallel"] = {parallel!r}
sphinx_gallery_conf["examples_dirs"] = "../examples"
sphinx_gallery_conf["filename_pattern"] = r"^((?!/cuda/).)*\\.py$"
templates_path = []
html_static_path = []
html_css_files = []
html_logo = html_favicon = None
"""

SCRIPT = '''"""
Page {number}
=============

A page of the benchmark.
"""

# %%
# One step
# --------
# A forward and a backward, so that each page uses autograd.

import torch

x = torch.full((64, 64), {number}.0, requires_grad=True)
y = (x @ x).relu().sum()
y.backward()
print(x.grad[0, 0])
assert x.grad.shape == x.shape
'''


@dataclass(frozen=True, slots=True)
class Measured:
    seconds: float
    peak: float
    """MiB, of the build's own process."""


@contextmanager
def copy_of_site() -> Iterator[Path]:
    """The sources of the site in a new folder, nothing built. Examples that need a GPU have pages, and are not run."""
    with tempfile.TemporaryDirectory() as folder:
        site = Path(folder)
        shutil.copytree(ROOT / "conf", site / "conf", ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copytree(ROOT / "docs", site / "docs", ignore=shutil.ignore_patterns("gallery"))
        shutil.copytree(ROOT / "examples", site / "examples", ignore=shutil.ignore_patterns("recordings"))
        yield site


@contextmanager
def synthetic(pages: int) -> Iterator[Path]:
    """A gallery of ``pages`` small pages, with the site's settings."""
    with tempfile.TemporaryDirectory() as folder:
        site = Path(folder)
        shutil.copytree(ROOT / "conf", site / "conf", ignore=shutil.ignore_patterns("__pycache__"))
        chapter = site / "examples" / "many"
        chapter.mkdir(parents=True)
        (site / "docs").mkdir()
        (site / "docs" / "index.md").write_text("# Front\n\n```{toctree}\ngallery/index\n```\n")
        (chapter.parent / "GALLERY_HEADER.rst").write_text("Examples\n========\n\nText.\n")
        (chapter / "GALLERY_HEADER.rst").write_text("Chapter\n-------\n")
        for number in range(pages):
            (chapter / f"page_{number}.py").write_text(SCRIPT.format(number=number))
        yield site


def sphinx(site: Path, *options: str, conf: str = "conf") -> Measured:
    """Build ``site`` and say what it took.

    :raises SystemExit: if the build fails; what it said is printed.
    """
    jobs = ["--jobs", str(count_cores() + 1)]
    own = ["--quiet", "--fail-on-warning", "--conf-dir", conf, "--doctree-dir", "doctrees", *jobs]
    command = [sys.executable, "-c", BUILD, *own, *options, "docs", "html"]
    started = time.perf_counter()
    done = subprocess.run(command, cwd=site, capture_output=True, encoding="utf-8")
    seconds = time.perf_counter() - started
    if done.returncode:
        sys.exit(f"bench: a build failed\n{done.stdout}\n{done.stderr}")
    return Measured(seconds, int(done.stdout.rpartition("peak ")[2]) / 1024)


def edit(script: Path) -> None:
    """Change what a script does, but nothing that it prints."""
    script.write_text(script.read_text(encoding="utf-8") + f"\nassert {time.time_ns()}\n", encoding="utf-8")


def stock(site: Path, parallel: int | bool) -> Measured:
    """Build ``site`` with sphinx-gallery alone."""
    (site / "stock").mkdir()
    text = STOCK.format(conf=str(site / "conf" / "conf.py"), parallel=parallel)
    (site / "stock" / "conf.py").write_text(text)
    return sphinx(site, conf="stock")


def one_by_one(site: Path) -> Measured:
    """Run each script with a Python of its own, one after another, and build no page."""
    scripts = [script for script in (site / "examples").glob("*/*.py") if script.parent.name != "cuda"]
    return Measured(sum(alone(script).seconds for script in sorted(scripts)), 0.0)


def alone(script: Path) -> Measured:
    """Run a script in an empty folder."""
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as empty:
        environment = os.environ | {"MPLBACKEND": "agg"}
        subprocess.run([sys.executable, script], cwd=empty, env=environment, check=True, capture_output=True)
    return Measured(time.perf_counter() - started, 0.0)


def importing_torch() -> Measured:
    """Import torch: a yardstick for the machine."""
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", "import torch"], check=True)
    return Measured(time.perf_counter() - started, 0.0)


def real_site() -> Iterator[tuple[str, Measured]]:
    """The site's own examples, built in several ways."""
    importing_torch()
    with copy_of_site() as site:
        yield "each script with python, one by one; no pages", one_by_one(site)
        yield "everything, from nothing", sphinx(site)
        yield "nothing changed", sphinx(site)
        script = site / "examples" / "graphs" / "functions_are_nodes.py"
        yield "one of the scripts alone, with python", alone(script)
        edit(script)  # the list of what waits to be measured on other versions changes once
        sphinx(site)
        edit(script)
        yield "that script edited", sphinx(site)
        yield "every page read and written again, no script run", sphinx(site, "-a", "-E")
    yield "for comparison: python -c 'import torch'", importing_torch()
    with copy_of_site() as site:
        yield "from nothing, sphinx-gallery alone", stock(site, parallel=False)
    with copy_of_site() as site:
        yield f"from nothing, sphinx-gallery alone, parallel={count_cores()}", stock(site, parallel=count_cores())


def many_pages(counts: list[int]) -> Iterator[tuple[str, Measured]]:
    """Galleries of small pages: does the cost grow with their number alone, and what does a process for each cost?"""
    for count in counts:
        with synthetic(count) as site:
            yield f"{count} small pages, from nothing", sphinx(site)
    with synthetic(counts[0]) as site:
        yield f"{counts[0]} small pages, one at a time", sphinx(site, "-D", "atlas_jobs=1")
    with synthetic(counts[0]) as site:
        yield f"{counts[0]} small pages, sphinx-gallery alone", stock(site, parallel=False)


def table(rows: list[tuple[str, Measured]]) -> str:
    """A Markdown table. Ratios are to the first row."""
    lines = [
        "```{table}",
        ":widths: 43 20 16 21",
        ":class: numbers",
        "",
        "| what | seconds | ratio | peak memory |",
        "| --- | --: | --: | --: |",
    ]
    for what, took in rows:
        peak = f"{took.peak:,.0f} MiB" if took.peak else ""
        lines.append(f"| {what} | {took.seconds:.1f} | {took.seconds / rows[0][1].seconds:.2f} | {peak} |")
    return "\n".join([*lines, "```"])


def told(rows: Iterator[tuple[str, Measured]]) -> Iterator[tuple[str, Measured]]:
    """The same rows, each said as it comes: a run takes a quarter of an hour."""
    for what, took in rows:
        print(f"bench: {what}: {took.seconds:.1f} s", file=sys.stderr, flush=True)
        yield what, took


def about() -> str:
    """When and on what this was measured; no machine is named."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return (
        f"Measured on {datetime.date.today().isoformat()}, {platform.system()} on {platform.machine()}, {count_cores()} cores, "
        f"{memory:.0f} GiB, Python {platform.python_version()}, torch {version('torch').partition('+')[0]}, "
        f"sphinx-gallery {version('sphinx-gallery')}."
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--keep", action="store_true", help=f"write the tables to {KEPT.relative_to(ROOT)}")
    parser.add_argument("--quick", action="store_true", help="at most 10 synthetic pages")
    options = parser.parse_args()
    counts = [10] if options.quick else [10, 50, 200]
    tables = [table(list(told(rows))) for rows in (real_site(), many_pages(counts))]
    text = "\n\n".join([*tables, about()]) + "\n"
    print(text)
    if options.keep:
        KEPT.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
