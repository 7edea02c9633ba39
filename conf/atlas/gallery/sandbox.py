"""Call a function with each of many items in child processes, so that a crash or a hang loses one item only."""

from __future__ import annotations

import faulthandler
import json
import os
import select
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from .child import end_with_parent

TIME_LIMIT = 20.0  # seconds for one item


@dataclass(slots=True)
class _Worker:
    pid: int
    pipe: int
    items: list[int]
    """Indices of the items that it has not answered yet. It works on the first."""
    later: list[int]
    """Indices of the items for the process that comes after it."""
    since: float
    unread: bytes = b""


def run(
    work: Callable[[Any], Any],
    items: Sequence[Any],
    *,
    at_once: int,
    time_limit: float = TIME_LIMIT,
    apart: bool = False,
) -> list[tuple[Any, str]]:
    """Call ``work`` with each item, ``at_once`` processes side by side.

    :param work: returns what JSON can hold.
    :param apart: whether each item has a process of its own, so that none finds what another one left.
    :returns: for each item what ``work`` returned and an empty string, or None and why there is nothing: the exception, the
        signal that ended the process, or that it took longer than ``time_limit`` seconds.
    """
    answers: list[tuple[Any, str]] = [(None, "")] * len(items)
    workers: list[_Worker] = []
    try:
        workers += filter(
            None, (_start(work, items, list(range(first, len(items), at_once)), apart) for first in range(at_once))
        )
        while workers:
            ready, _, _ = select.select([worker.pipe for worker in workers], [], [], 0.5)
            for worker in list(workers):
                ended = worker.pipe in ready and not _read(worker, answers)
                late = bool(worker.items) and time.monotonic() - worker.since > time_limit
                if ended or late:
                    workers.remove(worker)
                    code = _end(worker, kill=late)
                    if worker.items:
                        why = (
                            f"no answer within {time_limit:g} s"
                            if late
                            else f"ended with exit code {code}"
                            if code >= 0
                            else f"killed by {signal.Signals(-code).name}"
                        )
                        answers[worker.items[0]] = None, why
                    workers += filter(None, [_start(work, items, worker.items[1:] + worker.later, apart)])
    finally:
        for worker in workers:
            _end(worker, kill=True)
    return answers


def _read(worker: _Worker, answers: list[tuple[Any, str]]) -> bool:
    """Take the answers that have come from ``worker``. Return whether there may be more: False if it has closed its pipe."""
    said = os.read(worker.pipe, 1 << 16)
    *lines, worker.unread = (worker.unread + said).split(b"\n")
    for line in lines:
        answers[worker.items.pop(0)] = tuple(json.loads(line))
        worker.since = time.monotonic()
    return bool(said)


def _end(worker: _Worker, *, kill: bool) -> int:
    """Wait for a worker that has ended, or is killed now, and return its exit code."""
    if kill:
        os.kill(worker.pid, signal.SIGKILL)
    os.close(worker.pipe)
    return os.waitstatus_to_exitcode(os.waitpid(worker.pid, 0)[1])


def _start(work: Callable[[Any], Any], items: Sequence[Any], indices: list[int], apart: bool) -> _Worker | None:
    if not indices:
        return None
    indices, later = (indices[:1], indices[1:]) if apart else (indices, [])
    reader, writer = os.pipe()
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        try:
            end_with_parent(parent)
            faulthandler.disable()  # the reason of a crash is an answer; a dump of it in the log is not wanted
            os.close(reader)
            with os.fdopen(writer, "wb") as pipe:
                for index in indices:
                    pipe.write(json.dumps(_answer(work, items[index])).encode() + b"\n")
                    pipe.flush()
        finally:
            os._exit(0)
    os.close(writer)
    return _Worker(pid, reader, indices, later, time.monotonic())


def _answer(work: Callable[[Any], Any], item: Any) -> tuple[Any, str]:
    try:
        return work(item), ""
    except Exception as error:
        return None, f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error) else ''}"
