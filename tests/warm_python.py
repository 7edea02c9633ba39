"""Run a Python program in a process forked from one that has imported Sphinx, PyTorch and the rest already.

To import them takes longer than to build a tiny site. So each process of pytest has a server, a program of its own, which
imports them and does nothing else. For each program it forks a child, which gets its own folder, environment and output,
and ends as Python itself ends. A child has nothing of the child before it, and nothing of ``atlas`` or of ``conf.py``.

What such a child cannot do: be killed with all that it has started, take another hash seed, or be run with other options of
Python. For these, and to see that the two ways give the same, ask for ``real=True``.
"""

from __future__ import annotations

import atexit
import functools
import gc
import importlib
import json
import os
import resource
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

#: For programs that compute. On a machine with other work OpenMP's threads, which wait for each other at full speed, would take
#: up to four times the CPU time. It is read when PyTorch is imported.
PATIENT = {"OMP_WAIT_POLICY": "passive"}
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
#: The server's: a test may change that of its own process.
_ENVIRONMENT = {**os.environ, **PATIENT}


@dataclass(frozen=True, slots=True)
class Ended:
    """How a program ended."""

    code: int
    """The exit status; a negative one is the number of the signal that killed it."""
    output: str


def run(
    arguments: list[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    wall: float,
    cpu: int = resource.RLIM_INFINITY,
    real: bool = False,
) -> Ended:
    """Run ``python`` with ``arguments``: ``-m MODULE ...`` or ``-P SCRIPT ...``.

    :param wall: seconds on the clock that it may take; let that be generous, for other programs take their share.
    :param cpu: seconds of CPU time that it may take; SIGXCPU then kills it.
    :param real: run it in a new process, with nothing imported.
    :raises TimeoutError: if it has not ended after ``wall`` seconds. It is killed.
    """
    with tempfile.TemporaryFile() as said:
        if real or _of_python(env) != _of_python(_ENVIRONMENT):  # these variables are read when Python starts
            code = _run_new(arguments, cwd, env, wall, cpu, said.fileno())
        else:
            request = {"arguments": arguments, "cwd": str(cwd), "env": dict(env), "cpu": cpu}
            code = _run_warm(request, wall, said.fileno())
        said.seek(0)
        return Ended(code, said.read().decode("utf-8", errors="replace"))


def _of_python(env: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in env.items() if name.startswith("PYTHON")}


def _run_new(arguments: list[str], cwd: Path, env: Mapping[str, str], wall: float, cpu: int, said: int) -> int:
    limit = functools.partial(_limit, cpu)
    command = [sys.executable, *arguments]
    try:
        return subprocess.run(
            command, cwd=cwd, env=env, timeout=wall, preexec_fn=limit, stdout=said, stderr=said
        ).returncode
    except subprocess.TimeoutExpired:
        raise TimeoutError(f"not ended after {wall:g} s: {command}") from None


def _run_warm(request: Mapping[str, object], wall: float, said: int) -> int:
    mine, theirs = socket.socketpair()
    with mine, theirs:
        socket.send_fds(_server(), [json.dumps(request).encode()], [theirs.fileno(), said])
        theirs.close()
        mine.settimeout(wall)
        answers = mine.makefile()
        pid = 0
        try:
            pid = int(answers.readline())
            return int(answers.readline())
        except TimeoutError:
            if pid:
                os.kill(pid, signal.SIGKILL)
            raise TimeoutError(f"not ended after {wall:g} s: {request['arguments']}") from None


def _limit(cpu: int) -> None:
    killed = cpu if cpu == resource.RLIM_INFINITY else cpu + 5  # SIGXCPU says why; what ignores it is killed
    resource.setrlimit(resource.RLIMIT_CPU, (cpu, killed))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


@functools.cache
def _server() -> socket.socket:
    """The way to this process's server, which is started by the first who asks."""
    mine, theirs = socket.socketpair(
        socket.AF_UNIX, socket.SOCK_SEQPACKET
    )  # whole messages, also from several threads
    command = [sys.executable, "-P", __file__, str(theirs.fileno())]
    server = subprocess.Popen(command, pass_fds=[theirs.fileno()], env=_ENVIRONMENT)
    theirs.close()

    def end() -> None:
        mine.close()
        server.wait()

    atexit.register(end)
    return mine


# -- In the server ---------------------------------------------------------------------------------------------


def _serve(requests: socket.socket) -> list[str]:
    """Import what is needed, and fork a child for each request, until there can be no more.

    Returns in a child alone, with what it is to run.
    """
    # the children are told as well, and the server ends with pytest
    interrupt = signal.signal(signal.SIGINT, signal.SIG_IGN)
    for name in IMPORTED:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()
    while True:
        message, files, _, _ = socket.recv_fds(requests, 1 << 20, 2)
        if not message:
            while _reap(0):
                pass
            os._exit(0)
        if os.fork() == 0:
            requests.close()
            return _watch(json.loads(message), interrupt, *files)
        for file in files:
            os.close(file)
        while _reap(os.WNOHANG):
            pass


def _reap(options: int) -> int:
    try:
        return os.waitpid(-1, options)[0]
    except ChildProcessError:
        return 0


def _watch(request: dict[str, object], interrupt: Any, answer: int, said: int) -> list[str]:
    """Fork the child and tell its number and how it ended. Returns in the child alone.

    :param interrupt: what SIGINT does in a new process: it may be ignored, as in the background of a shell.
    """
    pid = os.fork()
    if pid:
        os.close(said)
        try:
            os.write(answer, f"{pid}\n".encode())
            os.write(answer, f"{os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])}\n".encode())
        finally:  # whoever asked may have given up; this process must not go on as a child
            os._exit(0)
    os.close(answer)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for target, source in ((0, nothing), (1, said), (2, said)):
        os.dup2(source, target)
    os.close(nothing)
    os.close(said)
    signal.signal(signal.SIGINT, interrupt)
    os.environ.clear()
    os.environ.update(request["env"])
    os.chdir(request["cwd"])
    _limit(request["cpu"])
    return request["arguments"]


def _be_python(arguments: list[str]) -> None:
    """Do in this process what ``python`` does with these arguments."""
    option, what = arguments[:2]
    sys.argv[:] = arguments[1:]
    if option == "-m":
        sys.path.insert(0, os.getcwd())
        runpy.run_module(what, run_name="__main__", alter_sys=True)
    else:
        runpy.run_path(what, run_name="__main__")


_status = 1


def _leave() -> None:
    """End without taking all modules apart, which takes 0.3 s. Registered first, so it is called when all else is done."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(_status)


if __name__ == "__main__":
    atexit.register(_leave)
    try:
        _be_python(_serve(socket.socket(fileno=int(sys.argv[1]))))
        _status = 0
    except SystemExit as end:
        _status = end.code or 0 if isinstance(end.code, int | None) else 1
        raise
