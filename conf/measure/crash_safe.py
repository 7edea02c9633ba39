"""Call a function with each of many items in child processes, so that a crash or a hang costs one item and no more.

The kernel ends a child that hangs: no clock of the parent is asked, so a loaded machine ends nothing too early.
"""

from __future__ import annotations

import multiprocessing
import resource
import signal
import time
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection, wait
from typing import Any

CPU_SECONDS = 60  # for one item; the slowest takes 4
CLOCK_SECONDS = 900  # for one that waits instead: enough for the slowest at a load of ten times the cores

_FORK = multiprocessing.get_context("fork")  # what the parent has imported, no child imports again


def answer_each(
    work: Callable[[Any], Any], items: Sequence[Any], jobs: int, *, apart: bool = False
) -> list[tuple[Any, str]]:
    """Call ``work`` with each item, in as many processes as there are ``jobs``.

    :param apart: whether each item has a process of its own, so that none finds what another one left.
    :returns: for each item what ``work`` returned and an empty string, or None and why there is nothing.
    """
    parts = len(items) if apart else jobs
    waiting = [part for first in range(parts) if (part := list(range(first, len(items), parts)))][::-1]
    running: dict[Connection, tuple[Any, list[int]]] = {}
    answers: list[tuple[Any, str]] = [(None, "")] * len(items)
    while waiting or running:
        while waiting and len(running) < jobs:
            indices = waiting.pop()
            reader, writer = _FORK.Pipe(duplex=False)
            asked = [items[index] for index in indices]
            process = _FORK.Process(target=_answer_all, args=(work, asked, writer), daemon=True)
            process.start()
            writer.close()  # the child has the only one left, so its end is seen here
            running[reader] = process, indices
        for reader in wait(list(running)):
            process, indices = running[reader]
            try:
                answer = reader.recv()
                answers[indices.pop(0)] = answer
            except EOFError:
                process.join()
                reader.close()
                del running[reader]
                if indices:
                    answers[indices.pop(0)] = None, _tell_end(process.exitcode)
                if indices:
                    waiting.append(indices)
    return answers


def _answer_all(work: Callable[[Any], Any], items: Sequence[Any], writer: Connection) -> None:
    for item in items:
        limit = int(time.process_time()) + 1 + CPU_SECONDS
        resource.setrlimit(resource.RLIMIT_CPU, (limit, resource.getrlimit(resource.RLIMIT_CPU)[1]))
        signal.alarm(CLOCK_SECONDS)
        try:
            answer = work(item), ""
        except Exception as error:
            answer = None, f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}"
        writer.send(answer)


def _tell_end(code: int) -> str:
    """Why a child ended, from its exit code, which is negative for a signal.

    >>> _tell_end(3), _tell_end(-9), _tell_end(-40), _tell_end(-signal.SIGALRM)
    ('ended with exit code 3', 'killed by SIGKILL', 'killed by signal 40', 'no answer within 900 s')
    """
    limits = {-signal.SIGXCPU: f"{CPU_SECONDS} s of CPU time", -signal.SIGALRM: f"{CLOCK_SECONDS} s"}
    if code in limits:
        return f"no answer within {limits[code]}"
    names = {-one.value: one.name for one in signal.Signals}  # real-time signals have none
    return f"ended with exit code {code}" if code >= 0 else f"killed by {names.get(code, f'signal {-code}')}"
