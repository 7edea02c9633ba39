"""The tasks of this repository. ``nox -l`` lists them; anything after ``--`` goes on to the tool behind a task.

All sessions share one environment, ``.nox/site``. It is installed once, and left alone until requirements.txt changes.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shutil
import sys
from pathlib import Path

import nox

if sys.version_info < (3, 11):  # noqa: UP036
    sys.exit(f"Autograd Atlas needs Python 3.11 or later; this nox runs with {sys.version.split()[0]}.")

ROOT = Path(__file__).parent
#: A PyTorch other than that of requirements.txt, such as 2.15.0 or ``newest``: all sessions then run in its own environment.
TORCH = os.environ.get("ATLAS_TORCH", "")
HTML = Path("build/html")
DOCTREES = "build/doctrees"
#: What a build writes among the sources.
GENERATED = ("docs/gallery", "docs/reference/data")
#: Processes that read and write pages: one more than cores, as one hands pages out while they are written.
JOBS = str((os.cpu_count() or 1) + 1)
#: For pytest; tests/conftest.py says what stays together. ``-- --numprocesses=0`` keeps all in one process, for pdb.
ON_ALL_CORES = ("--numprocesses=auto", "--maxprocesses=8")

nox.needs_version = ">=2025.2.9"
nox.options.default_venv_backend = "none"


def install_environment(session: nox.Session, torch: str = TORCH) -> Path:
    """Install the shared environment, or that of another PyTorch, if it is missing or older than the requirements.

    :returns: the folder of its programs.
    """
    if not os.access(ROOT, os.W_OK):
        session.error(f"Nothing can be written to {ROOT}: a build needs .nox, build and docs/gallery. Copy it first.")
    home, text = ROOT / ".nox" / (torch or "site"), (ROOT / "requirements.txt").read_text()
    if torch:
        wish = "torch" if torch == "newest" else f"torch=={torch}"
        text = re.sub(r"^torch==\S+", wish, text, flags=re.MULTILINE)
        # each PyTorch for CUDA asks for its own
        text = re.sub(r"^triton==[^\s;]+", "triton", text, flags=re.MULTILINE)
    installed, wanted = home / "requirements.sha256", hashlib.sha256(text.encode() + sys.version.encode()).hexdigest()
    if not installed.is_file() or installed.read_text() != wanted:
        shutil.rmtree(home, ignore_errors=True)
        python, wishes = str(home / "bin" / "python"), home / "requirements.txt"
        session.run(sys.executable, "-m", "virtualenv", "--quiet", str(home), external=True)
        wishes.write_text(text)
        session.run(python, "-m", "pip", "install", "--quiet", "--no-compile", "-r", str(wishes), external=True)
        # on all cores, which pip does not; 1: some packages carry files of another Python
        session.run(python, "-m", "compileall", "-qq", "-j", "0", str(home), external=True, success_codes=[0, 1])
        installed.write_text(wanted)
    return home / "bin"


def run_program(session: nox.Session, program: str, *arguments: str | Path) -> None:
    """Run a program of the shared environment, with the others on its path."""
    programs = install_environment(session)
    path = f"{programs}{os.pathsep}{os.environ.get('PATH', '')}"
    session.run(str(programs / program), *map(str, arguments), env={"PATH": path}, external=True)


def run_sphinx(session: nox.Session, builder: str, out: Path, *arguments: str) -> None:
    """Run Sphinx with warnings as errors."""
    options = ["--fail-on-warning", "--keep-going", "--conf-dir", "conf", "--builder", builder, "--jobs", JOBS]
    run_program(session, "sphinx-build", *options, "--doctree-dir", DOCTREES, "docs", out, *arguments)


def make_sphinx_options(arguments: list[str], in_ci: bool) -> list[str]:
    """Sphinx's options for those of ``docs``: ``--release`` and ``--only chapter/page`` are the site's own.

    A release, and CI, read and write all pages, whatever an earlier build left.
    """
    parser = argparse.ArgumentParser(prog="nox -s docs --", add_help=False, allow_abbrev=False)
    parser.add_argument("--release", action="store_true")
    parser.add_argument("--only", metavar="CHAPTER/PAGE")
    own, options = parser.parse_known_args(arguments)
    if own.release or in_ci:
        options += ["--fresh-env", "--write-all"]
    if own.release:
        options += ["-D", "atlas_release=1"]
    if own.only:
        options += ["-D", f"atlas_only={own.only}"]
    return options


@nox.session
def lint(session: nox.Session) -> None:
    """Check style, format, spelling, and the workflows."""
    made = [f"--ignore={folder}" for folder in ["docs/gallery", *sorted(Path("examples").glob("*/recordings"))]]
    run_program(session, "ruff", "check", "--no-cache", *session.posargs)  # its cache misses that a module moved
    run_program(session, "ruff", "format", "--no-cache", "--check")
    run_program(session, "sphinx-lint", "--enable=default-role", "--max-line-length=128", "examples", "docs", *made)
    run_program(session, "codespell")
    run_program(session, "jactionlint")


@nox.session
def tests(session: nox.Session) -> None:
    """Test the extensions, and the site as it is built."""
    run_program(
        session, "pytest", "--ignore=tests/browser", *ON_ALL_CORES, "--no-loadscope-reorder", *session.posargs
    )


@nox.session
def doctest(session: nox.Session) -> None:
    """Run every >>> of docs/ and of conf/'s docstrings, and say how many there were."""
    run_sphinx(session, "doctest", Path("build/doctest"), *session.posargs)
    run_program(session, "pytest", "--doctest-modules", "conf", "--ignore=conf/conf.py", "--quiet")
    run_program(session, "python", "tests/count_doctests.py", "build/doctest/output.txt")


@nox.session
def docs(session: nox.Session) -> None:
    """Build the site into build/html, running the examples that changed.

    ``-- --only graphs/first_graph`` runs this example alone: the pages of others show what they have. ``-- --release`` fails
    if a recording is missing or old, and writes all pages anew.
    """
    options = make_sphinx_options(session.posargs, in_ci=bool(os.environ.get("CI")))
    run_sphinx(session, "html", HTML, *options)


@nox.session(default=False)
def serve(session: nox.Session) -> None:
    """Build, serve on this machine, and build again whenever a source changes."""
    ignored = [f"--ignore={made}" for made in (*GENERATED, "*/__pycache__/*")]
    options = ["--watch=conf", "--watch=examples", "--conf-dir=conf", f"--doctree-dir={DOCTREES}", f"--jobs={JOBS}"]
    run_program(session, "sphinx-autobuild", *ignored, *options, *session.posargs, "docs", HTML)


@nox.session(default=False)
def browser(session: nox.Session) -> None:
    """Open every page of the site in Chromium, served by nginx: no request elsewhere, no error, nothing that axe finds."""
    # xdist reorders here: the files of many tests come first, then page after page fills the cores
    run_program(session, "pytest", "tests/browser", *ON_ALL_CORES, *session.posargs)


@nox.session(default=False)
def lighthouse(session: nox.Session) -> None:
    """Hold one page of each type to Lighthouse's scores. Needs Chromium, nginx, Node.js and the network."""
    run_program(session, "python", "tests/lighthouse.py", *session.posargs)


@nox.session(default=False)
def record(session: nox.Session) -> None:
    """Run the examples that need a GPU on this machine's, and keep the outputs for builders without one."""
    run_program(session, "python", "conf/measure/record.py", *session.posargs)


@nox.session(default=False)
def versions(session: nox.Session) -> None:
    """Ask another version of PyTorch the probes: ``-- 2.14.1``. Each is gigabytes large; ``-- --help`` says more."""
    run_program(session, "python", "conf/measure/versions.py", *session.posargs)


@nox.session(default=False)
def newest(session: nox.Session) -> None:
    """Build the site with another PyTorch, the newest or ``-- 2.15.0``, and tell what is otherwise than in build/html."""
    if not session.posargs:  # the newest may be another than last time
        shutil.rmtree(ROOT / ".nox" / "newest", ignore_errors=True)
    python = install_environment(session, *(session.posargs or ["newest"])) / "python"
    run_program(session, "python", "tests/newest.py", python)


@nox.session(default=False)
def repeat(session: nox.Session) -> None:
    """Build the site twice from nothing, with other hash seeds, orders and cores, and compare every byte."""
    run_program(session, "python", "tests/build_twice.py", *session.posargs)


@nox.session(default=False)
def linkcheck(session: nox.Session) -> None:
    """Ask every link to another site whether it still leads somewhere. Needs the network."""
    run_sphinx(session, "linkcheck", Path("build/linkcheck"), *session.posargs)


@nox.session(default=False)
def lock(session: nox.Session) -> None:
    """Compile requirements.in to requirements.txt."""
    quiet = ["--quiet", "--strip-extras", "--no-header", "--no-emit-index-url", "--no-emit-find-links"]
    run_program(session, "pip-compile", *quiet, "-o", "requirements.txt", "requirements.in", *session.posargs)
    compiled = (ROOT / "requirements.txt").read_text()
    # a local label such as +cpu says where this machine got its build, not which version is meant
    pinned = re.sub(r"^(\S+==[^\s+]+)\+\S+", r"\1", compiled, flags=re.MULTILINE)
    said = "# Compiled from requirements.in by `nox -s lock`; do not edit.\n"
    (ROOT / "requirements.txt").write_text(said + pinned)
