"""Run a Python program in a process forked from one that has imported Sphinx, PyTorch and the rest already.

To import them takes longer than to build a tiny site. So each process of pytest has a server, a program of its own, which
imports them and does nothing else. For each program it forks a child, which gets its own folder, environment and output, and
ends as Python itself ends. A child has nothing of the child before it, and nothing of ``atlas`` or of ``conf.py``.

What such a child cannot do: take another hash seed, or be run with other options of Python. For these ask for ``real=True``.
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
import select
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

#: For programs that compute. On a machine with other work OpenMP's threads, which wait for each other at full speed, would take
#: up to four times the CPU time. It is read when PyTorch is imported.
PATIENT = {"OMP_WAIT_POLICY": "passive"}
#: What builds and examples import. None of these may compute: threads do not survive a fork.
IMPORTED = """
    docutils.parsers.rst furo.navigation ipykernel.inprocess matplotlib.pyplot myst_nb.core.execute myst_nb.sphinx_ext
    notfound.extension numpy pandas pygraphviz sphinx.builders.html sphinx.cmd.build sphinx.ext.doctest sphinx.search
    sphinx_copybutton sphinx_design sphinx_gallery.gen_gallery sphinxext.opengraph torch._dynamo
"""
#: The server's: a test may change that of its own process.
_ENVIRONMENT = {**os.environ, **PATIENT}
_ONE_AT_A_TIME = threading.Lock()


@dataclass(frozen=True, slots=True)
class Ended:
    """How a program ended."""

    code: int
    """The exit status; a negative one is the number of the signal that killed it."""
    output: str


def run_python(
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
    with tempfile.NamedTemporaryFile() as said:
        if real or _keep_python(env) != _keep_python(_ENVIRONMENT):  # these variables are read when Python starts
            options = {"cwd": cwd, "env": env, "timeout": wall, "preexec_fn": functools.partial(_limit_time, cpu)}
            try:
                code = subprocess.run([sys.executable, *arguments], stdout=said, stderr=said, **options).returncode
            except subprocess.TimeoutExpired:
                code = None
        else:
            request = {"arguments": arguments, "cwd": str(cwd), "env": dict(env), "cpu": cpu}
            with _ONE_AT_A_TIME:
                server = _start_server()
                print(json.dumps(request | {"said": said.name, "wall": wall}), file=server.stdin, flush=True)
                code = json.loads(server.stdout.readline())
        if code is None:
            raise TimeoutError(f"not ended after {wall:g} s: {arguments}")
        return Ended(code, Path(said.name).read_text(encoding="utf-8", errors="replace"))


def _keep_python(env: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in env.items() if name.startswith("PYTHON")}


def _limit_time(cpu: int) -> None:
    killed = cpu if cpu == resource.RLIM_INFINITY else cpu + 5  # SIGXCPU says why; what ignores it is killed
    resource.setrlimit(resource.RLIMIT_CPU, (cpu, killed))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _wait_for(pid: int, seconds: float) -> int | None:
    """How a child ended; None if it had to be killed."""
    ends = os.pidfd_open(pid)
    is_late = not select.select([ends], [], [], seconds)[0]
    os.close(ends)
    if is_late:
        os.kill(pid, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return None if is_late else code


@functools.cache
def _start_server() -> subprocess.Popen[str]:
    """This process's server, which is started by the first who asks, and killed at the end with what it has started."""
    command, pipe = [sys.executable, "-P", __file__], subprocess.PIPE
    server = subprocess.Popen(command, stdin=pipe, stdout=pipe, env=_ENVIRONMENT, text=True, start_new_session=True)
    atexit.register(os.killpg, server.pid, signal.SIGKILL)
    return server


# -- In the server ---------------------------------------------------------------------------------------------


def _serve_requests() -> dict[str, Any]:
    """Import what is large, and fork a child for each request, until there can be no more.

    Returns in a child alone, with what it is to run.
    """
    for name in IMPORTED.split():
        importlib.import_module(name)
    gc.collect()
    gc.freeze()
    for line in sys.stdin:
        request = json.loads(line)
        pid = os.fork()
        if not pid:
            return request
        os.write(1, f"{json.dumps(_wait_for(pid, request['wall']))}\n".encode())
    os._exit(0)


def _become_python(request: dict[str, Any]) -> None:
    """Do in this process what ``python`` does with the arguments of a request."""
    said, nothing = os.open(request["said"], os.O_WRONLY | os.O_APPEND), os.open(os.devnull, os.O_RDONLY)
    for target, source in ((0, nothing), (1, said), (2, said)):
        os.dup2(source, target)
    os.closerange(3, max(said, nothing) + 1)
    os.environ.clear()
    os.environ.update(request["env"])
    os.chdir(request["cwd"])
    _limit_time(request["cpu"])
    option, what = request["arguments"][:2]
    sys.argv[:] = request["arguments"][1:]
    if option == "-m":
        sys.path.insert(0, os.getcwd())
        runpy.run_module(what, run_name="__main__", alter_sys=True)
    else:
        runpy.run_path(what, run_name="__main__")


_status = 1


def _leave_at_once() -> None:
    """End without taking all modules apart, which takes 0.3 s. Registered first, so it is called when all else is done."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(_status)


if __name__ == "__main__":
    atexit.register(_leave_at_once)
    try:
        _become_python(_serve_requests())
        _status = 0
    except SystemExit as end:
        _status = end.code or 0 if isinstance(end.code, int | None) else 1
        raise
