"""What happens inside the process of one example.

The process is forked from the build, which has imported torch and matplotlib but computed nothing. It starts a session, so
that it can be ended together with everything that it starts. It runs the script in a folder that holds nothing else, and
writes the page's outputs and a result, or a fault.
"""

from __future__ import annotations

import ctypes
import faulthandler
import functools
import gc
import json
import logging
import math
import mmap
import os
import resource
import signal
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NoReturn

from atlas import toolbox

from . import asserts, notebooks, scrapers, sphinx_gallery_patches
from .scripts import PageFault, UnfinishedExample, check_source, explain_error, may_have_gpu, read_script


@dataclass(frozen=True, slots=True)
class Limits:
    """How much of the machine one example may take."""

    seconds: float = 60.0
    """CPU time that its process may take. It does not depend on what else the machine does."""
    output: int = 1_000_000
    """Characters that it may print, in all cells together."""
    memory: int = 6 * 2**30
    """Bytes that it may allocate on top of what the build has."""

    @property
    def wall_clock(self) -> float:
        """Seconds until an example is ended that sleeps, or waits for what never comes; waiting for a core is not counted."""
        return 5 * self.seconds


@dataclass(frozen=True, slots=True)
class Workplace:
    """The folders of one run. Everything is below ``root``, which is removed after the run."""

    root: Path
    script: Path
    """A copy, with nothing beside it."""
    docs: Path
    made: Path
    """Where sphinx-gallery writes; in ``docs``, as on the site."""
    result: Path
    log: Path
    """What was written to the process's file descriptors 1 and 2, not through ``sys.stdout`` and ``sys.stderr``."""

    @classmethod
    def make_below(cls, root: Path, script: Path) -> Workplace:
        chapter = script.parent.name
        docs, copied = root / "docs", root / "examples" / chapter / script.name
        return cls(root, copied, docs, docs / "gallery" / chapter, root / "result.json", root / "log.txt")


def run_example(
    place: Workplace, settings: Mapping[str, Any], limits: Limits, line: mmap.mmap, parent: int, end: int | None
) -> NoReturn:
    """Run the example in ``place``. This process ends here: what the build does at its end must not be done in it too.

    :param line: shared memory for the number of the running line, which the build reads if this process dies.
    :param parent: the build's process number.
    :param end: the line from which on the script must not run; None to run all of it.
    """
    started = time.monotonic()
    gc.freeze()  # the collector would walk all objects of the build, which took longer than most examples
    toolbox.collect_garbage_as_usual()
    try:
        _detach(place, parent)
        check_source(place.script)
        _set_limits(limits)
        import torch

        torch.set_num_threads(
            1
        )  # as many examples run at once as there are cores; and sums must not depend on the cores
        asserts.start_watching(line, end)
        scrapers.remember_operands(place.script)
        printed = _Printed(limits.output)
        sphinx_gallery_patches.make_page(
            place.script,
            place.made,
            place.docs,
            {**settings, "image_scrapers": (*settings["image_scrapers"], _refuse_files, printed.check_sum)},
            compiler=asserts.WatchedCompile,
            count_output=printed.add,
            fill_notebook=functools.partial(notebooks.fill_notebook, read_script(place.script)),
            end=end,
        )
        result: dict[str, Any] = {"seconds": round(time.monotonic() - started, 3)}
    except BaseException as error:
        result = {"fault": asdict(explain_error(error, place.script, int.from_bytes(line[:8], "little")))}
    toolbox.write_whole(place.result, json.dumps(result))
    os._exit(0)


def end_with_parent(parent: int) -> None:
    """Have this process killed when its parent ends, however that ends. Does nothing outside of Linux.

    :param parent: the parent's number, taken before the fork: a parent that has ended by now sends no signal.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # 1: PR_SET_PDEATHSIG
        if os.getppid() != parent:
            os.kill(os.getpid(), signal.SIGKILL)


def _detach(place: Workplace, parent: int) -> None:
    """Start a session, end when the build ends, and write to files instead of the build's terminal."""
    os.setsid()
    end_with_parent(parent)
    faulthandler.disable()  # where the build has enabled it, it writes to the build's terminal
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    log = os.open(place.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for target, source in ((0, nothing), (1, log), (2, log)):
        os.dup2(source, target)
    sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
    sys.stdout = os.fdopen(1, "w", encoding="utf-8", buffering=1, closefd=False)
    sys.stderr = os.fdopen(2, "w", encoding="utf-8", buffering=1, closefd=False)
    logging.getLogger("sphinx").handlers[:] = [logging.NullHandler()]  # its own write to the build's terminal


def _set_limits(limits: Limits) -> None:
    if sys.platform == "linux" and not may_have_gpu():  # CUDA reserves far more than it uses
        used = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[5]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_DATA, (used + limits.memory, used + limits.memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # The first limit sends SIGXCPU; a script that blocks it is killed at the second
    seconds = math.ceil(limits.seconds)
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))


class _Printed:
    """Counts what the script prints, and ends the script when that is too much.

    A thread of the script that prints too much ends only itself, so the end of each cell looks at the sum again.
    """

    def __init__(self, limit: int) -> None:
        self.limit, self.sum = limit, 0

    def add(self, characters: int) -> None:
        self.sum += characters
        if self.sum > self.limit:
            raise UnfinishedExample(f"the script printed more than {self.limit:,} characters; print less")

    def check_sum(self, block: Any, block_vars: Mapping[str, Any], gallery_conf: Mapping[str, Any]) -> str:
        """A scraper, called after each cell."""
        self.add(0)
        return ""


def _refuse_files(block: Any, block_vars: Mapping[str, Any], gallery_conf: Mapping[str, Any]) -> str:
    """A scraper, called after each cell: an example must leave no file beside its script."""
    script = Path(block_vars["src_file"])
    others = sorted(path.name for path in script.parent.iterdir() if path != script)
    if others:
        first = block.lineno + len(block.content) - len(block.content.lstrip("\n"))
        raise PageFault(f"{script}:{first}: this cell leaves a file beside the script: {', '.join(others)}")
    return ""
