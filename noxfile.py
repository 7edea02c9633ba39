"""The tasks of this repository. ``nox -l`` lists them; anything after ``--`` goes on to the tool behind a task.

All sessions share one environment, ``.nox/site``. It is installed once, and left alone until requirements.txt changes.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import sys
from pathlib import Path
from urllib.request import urlopen

import nox

ROOT = Path(__file__).parent
sys.path.insert(0, str(ROOT / "conf"))

from atlas.incremental.up_to_date import GENERATED, LastBuild

HOME = ROOT / ".nox" / "site"
PROGRAMS = HOME / "bin"
INSTALLED = HOME / "requirements.sha256"  # what is installed there
HTML = Path("build/html")
DOCTREES = Path("build/doctrees")
#: Processes that read and write pages: one more than cores, as one hands pages out while they are written.
JOBS = str((os.cpu_count() or 1) + 1)
#: For pytest; tests/sharing_out.py says what stays together. ``-- --numprocesses=0`` keeps all in one process, for pdb.
ON_ALL_CORES = ("--numprocesses=auto", "--maxprocesses=8")

nox.needs_version = ">=2025.2.9"
nox.options.default_venv_backend = "none"


def environment(session: nox.Session) -> None:
    """Install the shared environment if it is missing, or older than the requirements."""
    wanted = hashlib.sha256((ROOT / "requirements.txt").read_bytes() + sys.version.encode()).hexdigest()
    if INSTALLED.is_file() and INSTALLED.read_text() == wanted:
        return
    shutil.rmtree(HOME, ignore_errors=True)
    session.run(sys.executable, "-m", "virtualenv", "--quiet", str(HOME), external=True)
    run(session, "python", "-m", "pip", "install", "--quiet", "--no-compile", "--requirement", "requirements.txt")
    # on all cores, which pip does not; 1: some packages carry files of another Python
    session.run(
        str(PROGRAMS / "python"), "-m", "compileall", "-qq", "-j", "0", str(HOME), external=True, success_codes=[0, 1]
    )
    INSTALLED.write_text(wanted)


def run(session: nox.Session, program: str, *arguments: str | Path) -> None:
    """Run a program of the shared environment, with the others on its path."""
    path = f"{PROGRAMS}{os.pathsep}{os.environ.get('PATH', '')}"
    session.run(str(PROGRAMS / program), *map(str, arguments), env={"PATH": path}, external=True)


def sphinx(session: nox.Session, builder: str, out: Path, *arguments: str) -> None:
    """Run Sphinx with warnings as errors. ``--release`` is an option of the site's own."""
    options = ["--fail-on-warning", "--keep-going", "--conf-dir", "conf", "--builder", builder, "--jobs", JOBS]
    settings = {"--release": ["-D", "atlas_release=1"]}
    own = [word for argument in arguments for word in settings.get(argument, [argument])]
    run(session, "sphinx-build", *options, "--doctree-dir", DOCTREES, "docs", out, *own)


def from_scratch(options: list[str]) -> list[str]:
    """Sphinx's options to read and write all pages, whatever an earlier build left: for a release, and on a machine of CI."""
    return ["--fresh-env", "--write-all"] if "--release" in options or os.environ.get("CI") else []


@nox.session
def lint(session: nox.Session) -> None:
    """Check style, format, spelling, the workflows, and that nothing of a new page is still to be written."""
    environment(session)
    run(session, "ruff", "check", "--no-cache", *session.posargs)  # its cache misses that a module moved
    run(session, "ruff", "format", "--no-cache", "--check")
    run(
        session,
        "sphinx-lint",
        "--enable=default-role",
        "--max-line-length=128",
        "examples",
        "docs",
        "--ignore=docs/gallery",
        *(f"--ignore={made}" for made in sorted(Path("examples").glob("*/recordings"))),  # generated, too
    )
    run(session, "codespell")
    run(session, "jactionlint")


@nox.session
def tests(session: nox.Session) -> None:
    """Test the extensions, and the site as it is built."""
    environment(session)
    run(session, "pytest", "--ignore=tests/browser", *ON_ALL_CORES, "--no-loadscope-reorder", *session.posargs)


@nox.session
def doctest(session: nox.Session) -> None:
    """Run every >>> of docs/ and of conf/'s docstrings, and say how many there were."""
    environment(session)
    sphinx(session, "doctest", Path("build/doctest"), *session.posargs)
    run(session, "pytest", "--doctest-modules", "conf/atlas", "conf/measure", "--quiet")
    run(session, "python", "tests/count_doctests.py", "build/doctest/output.txt")


@nox.session
def docs(session: nox.Session) -> None:
    """Build the site into build/html, running the examples that changed; nothing at all if nothing has changed.

    ``-- --release`` fails if a CUDA recording is missing or old, and writes all pages anew.
    """
    environment(session)
    options = [*from_scratch(session.posargs), *session.posargs]
    last = LastBuild(ROOT, ROOT / HTML, also=(ROOT / "noxfile.py", INSTALLED))
    read = last.read()
    if not session.posargs and not options and last.is_current(read):
        session.log(f"Nothing has changed since {HTML} was built. `nox -s docs -- --keep-going` builds all the same.")
        return
    sphinx(session, "html", HTML, *options)
    if not options:
        last.keep(read)


@nox.session(default=False)
def browser(session: nox.Session) -> None:
    """Open every page of the site in Chromium, served by nginx: no request elsewhere, no error, nothing that axe finds.

    A page that has not changed since nothing was found on it is left out. ``-- --all-visits`` opens it too.
    """
    environment(session)
    # xdist reorders here: the files of many tests come first, then page after page fills the cores
    run(session, "pytest", "tests/browser", *ON_ALL_CORES, *session.posargs)


@nox.session(default=False)
def lighthouse(session: nox.Session) -> None:
    """Hold one page of each type to Lighthouse's scores. Needs Chromium, nginx, Node.js and the network."""
    environment(session)
    run(session, "python", "tests/lighthouse.py", *session.posargs)


@nox.session(default=False)
def record(session: nox.Session) -> None:
    """Run the examples that need a GPU on this machine's, and keep the outputs for builders without one."""
    environment(session)
    run(session, "python", "conf/measure/record.py", *session.posargs)


@nox.session(default=False)
def versions(session: nox.Session) -> None:
    """Ask another version of PyTorch the probes: ``-- 2.14.1``. Each is gigabytes large; ``-- --help`` says more."""
    environment(session)
    run(session, "python", "conf/measure/versions.py", *session.posargs)


@nox.session(default=False)
def repeat(session: nox.Session) -> None:
    """Build the site twice from nothing, with other hash seeds, orders and cores, and compare every byte."""
    environment(session)
    run(session, "python", "tests/build_twice.py", *session.posargs)


@nox.session(default=False)
def safeguards(session: nox.Session) -> None:
    """Take each safeguard of the runner out, in a copy, and see that a test notices."""
    environment(session)
    run(session, "python", "tests/take_out_safeguards.py", *session.posargs)


@nox.session(default=False)
def bench(session: nox.Session) -> None:
    """Measure builds against each other. ``-- --keep`` puts the table into docs/about."""
    environment(session)
    run(session, "python", "tests/bench_builds.py", *session.posargs)


@nox.session(default=False)
def serve(session: nox.Session) -> None:
    """Build, serve on this machine, and build again whenever a source changes, in less than the time of ``docs``."""
    environment(session)
    watched = ["--watch", "examples", "--watch", "conf"]
    for made in (*GENERATED, "*/__pycache__/*"):
        watched += ["--ignore", made]
    options = ["--conf-dir", "conf", "--doctree-dir", str(DOCTREES), "--jobs", JOBS]
    run(session, "python", "conf/serve.py", *watched, *options, *session.posargs, "docs", HTML)


@nox.session(default=False)
def linkcheck(session: nox.Session) -> None:
    """Ask every link to another site whether it still leads somewhere. Needs the network."""
    environment(session)
    sphinx(session, "linkcheck", Path("build/linkcheck"), *session.posargs)


@nox.session(default=False)
def reference(session: nox.Session) -> None:
    """Bring the inventory of PyTorch's reference for the release in requirements.in. Needs the network."""
    release = re.search(r"^torch==(\d+\.\d+)", (ROOT / "requirements.txt").read_text(), re.MULTILINE)[1]
    with urlopen(f"https://docs.pytorch.org/docs/{release}/objects.inv", timeout=60) as answer:
        content = answer.read()
    if not content.startswith(b"# Sphinx inventory version 2"):
        session.error("what PyTorch's site sent is no inventory; the old one stays")
    (ROOT / "conf/atlas/objects.inv").write_bytes(content)
    session.log(f"now give {release} in intersphinx_mapping in conf/conf.py, and build")


@nox.session(default=False)
def lock(session: nox.Session) -> None:
    """Compile requirements.in to requirements.txt."""
    environment(session)
    quiet = ["--quiet", "--strip-extras", "--no-header", "--no-emit-index-url", "--no-emit-find-links"]
    run(session, "pip-compile", *quiet, "--output-file=requirements.txt", "requirements.in", *session.posargs)
    compiled = (ROOT / "requirements.txt").read_text()
    # a local label such as +cpu says where this machine got its build, not which version is meant
    pinned = re.sub(r"^(\S+==[^\s+]+)\+\S+", r"\1", compiled, flags=re.MULTILINE)
    (ROOT / "requirements.txt").write_text(
        "# Compiled from requirements.in by `nox -s lock`; do not edit.\n" + pinned
    )
