"""Build the site, serve it on this machine, and build again whenever a source changes: ``nox -s serve``.

sphinx-autobuild watches, serves, and reloads the browser. It would start a new Python for each build, and of a build after one
edit half is to import Sphinx, PyTorch and what else is large. So this program imports them once, and forks itself for each
build. Of ``conf/`` it imports nothing: a build has the code that is there when it begins.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import multiprocessing
import subprocess
import sys
from types import SimpleNamespace

from sphinx_autobuild import build
from sphinx_autobuild.__main__ import main as sphinx_autobuild

#: How sphinx-autobuild starts a build.
_BUILD = [sys.executable, "-m", "sphinx", "build"]

#: What builds and examples import. None of these may compute: threads do not survive a fork.
IMPORTED = (
    "docutils.parsers.rst",
    "furo.navigation",
    "matplotlib.pyplot",
    "myst_nb.core.execute",
    "myst_nb.sphinx_ext",
    "notfound.extension",
    "numpy",
    "pandas",
    "pygraphviz",
    "sphinx.builders.html",
    "sphinx.cmd.build",
    "sphinx.ext.doctest",
    "sphinx.search",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "sphinxext.opengraph",
    "torch._dynamo",
)


def warm_up() -> None:
    """Import what builds need, and have the collector leave it alone in all processes that are forked from this one."""
    for name in IMPORTED:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()


def forked_build(arguments: list[str]) -> int:
    """Call sphinx-build in a process forked from this one.

    :returns: its exit status; a negative one is the number of the signal that ended it.
    """
    process = multiprocessing.Process(target=_build, args=(arguments,))
    process.start()
    process.join()
    return process.exitcode


def _build(arguments: list[str]) -> None:
    from sphinx.cmd.build import main as sphinx_build

    try:
        sys.exit(sphinx_build(arguments))
    finally:
        atexit._run_exitfuncs()  # as Python does at its end, and multiprocessing only from 3.13 on


def run(command: list[str], *, check: bool) -> None:
    """What sphinx-autobuild calls for ``subprocess.run``: a build is forked, and any other command is run.

    :raises subprocess.CalledProcessError: if it fails; sphinx-autobuild says so, and goes on.
    """
    if command[: len(_BUILD)] != _BUILD:
        subprocess.run(command, check=check)
    elif status := forked_build(command[len(_BUILD) :]):
        raise subprocess.CalledProcessError(status, command)


def main() -> None:
    """Serve until interrupted. The arguments are sphinx-autobuild's."""
    sys.stdout.reconfigure(line_buffering=True)  # in a file too: what waits to be written would be forked as well
    # sphinx-autobuild starts a process for each change, which must have what is imported here
    multiprocessing.set_start_method("fork")
    warm_up()
    build.subprocess = SimpleNamespace(run=run, CalledProcessError=subprocess.CalledProcessError)
    sphinx_autobuild()


if __name__ == "__main__":
    main()
