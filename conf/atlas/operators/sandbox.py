"""Do a piece of work for each of many items in child processes, so that a crash or a hang costs one item."""

from __future__ import annotations

import json
import os
import select
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

TIME_LIMIT = 20.0  # seconds for one item


@dataclass(slots=True)
class _Worker:
    pid: int
    pipe: int
    items: list[int]
    """Indices of the items that it has not answered yet; it works on the first."""
    since: float
    unread: bytes = b""


def run(
    work: Callable[[Any], Any], items: Sequence[Any], *, at_once: int, time_limit: float = TIME_LIMIT
) -> list[tuple[Any, str]]:
    """Call ``work`` with each item, ``at_once`` processes side by side.

    :param work: returns what JSON can hold.
    :returns: for each item what ``work`` returned and an empty string, or None and why there is nothing: the exception, the
        signal that ended the process, or that it took longer than ``time_limit`` seconds.
    """
    answers: list[tuple[Any, str]] = [(None, "")] * len(items)
    workers = [_start(work, items, list(range(first, len(items), at_once))) for first in range(at_once)]
    workers = [worker for worker in workers if worker]
    while workers:
        ready, _, _ = select.select([worker.pipe for worker in workers], [], [], 0.5)
        for worker in list(workers):
            ended = False
            if worker.pipe in ready:
                said = os.read(worker.pipe, 1 << 16)
                ended = not said
                for line in _lines(worker, said):
                    answers[worker.items.pop(0)] = tuple(json.loads(line))
                    worker.since = time.monotonic()
            late = bool(worker.items) and time.monotonic() - worker.since > time_limit
            if not ended and not late:
                continue
            if late:
                os.kill(worker.pid, signal.SIGKILL)
            os.close(worker.pipe)
            code = os.waitstatus_to_exitcode(os.waitpid(worker.pid, 0)[1])
            workers.remove(worker)
            if worker.items:
                answers[worker.items[0]] = None, f"no answer within {time_limit:g} s" if late else _ending(code)
                workers += filter(None, [_start(work, items, worker.items[1:])])
    return answers


def _start(work: Callable[[Any], Any], items: Sequence[Any], indices: list[int]) -> _Worker | None:
    if not indices:
        return None
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(reader)
            with os.fdopen(writer, "wb") as pipe:
                for index in indices:
                    pipe.write(json.dumps(_answer(work, items[index])).encode() + b"\n")
                    pipe.flush()
        finally:
            os._exit(0)
    os.close(writer)
    return _Worker(pid, reader, indices, time.monotonic())


def _answer(work: Callable[[Any], Any], item: Any) -> tuple[Any, str]:
    try:
        return work(item), ""
    except Exception as error:
        return None, f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error) else ''}"


def _lines(worker: _Worker, said: bytes) -> list[bytes]:
    *whole, worker.unread = (worker.unread + said).split(b"\n")
    return whole


def _ending(code: int) -> str:
    return f"killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
