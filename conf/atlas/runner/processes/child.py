"""What happens inside the process of one example.

The process is forked from the build, which has imported torch and matplotlib but computed nothing. It starts a session, so
that it can be ended together with everything that it starts. It runs the script in a folder that holds nothing else, and
writes the page's outputs and a result, or a fault.
"""

from __future__ import annotations

import faulthandler
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
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from atlas import toolbox
from atlas.cells import line_watcher
from atlas.runner import gpu, sphinx_gallery_api
from atlas.toolbox import write_whole

from . import ending
from .faults import Fault, LeftBehind, UnfinishedExample, from_exception
from .limits import Limits, check_time_limit


@dataclass(frozen=True, slots=True)
class Workplace:
    """The folders of one run. Everything is below ``root``, which is removed after the run."""

    root: Path
    chapter: str
    script_name: str
    gallery: str = "gallery"

    @property
    def script(self) -> Path:
        return self.root / "examples" / self.chapter / self.script_name

    @property
    def docs(self) -> Path:
        return self.root / "docs"

    @property
    def made(self) -> Path:
        return self.docs / self.gallery / self.chapter

    @property
    def result(self) -> Path:
        return self.root / "result.json"

    @property
    def log(self) -> Path:
        """What was written to the process's file descriptors 1 and 2, not through ``sys.stdout`` and ``sys.stderr``."""
        return self.root / "log.txt"


def run(
    place: Workplace,
    settings: Mapping[str, Any],
    limits: Limits,
    line: mmap.mmap,
    *,
    parent: int,
    end: int | None = None,
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
        check_time_limit(place.script)
        _limit(limits)
        _one_thread()
        from atlas.cells import assert_counter

        assert_counter.report_line_to(line)
        assert_counter.end_at(end)
        printed = _Printed(limits.output)
        sphinx_gallery_api.count_output(printed.add)
        scrapers = (*settings["image_scrapers"], _nothing_beside, printed.scrape)
        settings = {**settings, "image_scrapers": scrapers}
        sphinx_gallery_api.run(place.script, place.made, place.docs, settings, end=end)
        line_watcher.stop()
        _fix_archive_times(place.made)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        result: dict[str, Any] = {"seconds": round(time.monotonic() - started, 3), "peak_kib": peak, **_gpu_peak()}
    except BaseException as error:
        line_watcher.stop()
        result = {"fault": _explain(error, place, int.from_bytes(line[:8], "little")).as_dict()}
    write_whole(place.result, json.dumps(result))
    os._exit(0)


def _detach(place: Workplace, parent: int) -> None:
    """Start a session, end when the build ends, and write to files instead of the build's terminal."""
    os.setsid()
    ending.with_parent(parent)
    faulthandler.disable()  # where the build has enabled it, it writes to the build's terminal
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    log = os.open(place.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for target, source in ((0, nothing), (1, log), (2, log)):
        os.dup2(source, target)
    sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
    sys.stdout = os.fdopen(1, "w", encoding="utf-8", buffering=1, closefd=False)
    sys.stderr = os.fdopen(2, "w", encoding="utf-8", buffering=1, closefd=False)
    logger = logging.getLogger("sphinx")  # its handlers write to the build's terminal
    logger.handlers[:] = [logging.NullHandler()]


def _limit(limits: Limits) -> None:
    if sys.platform == "linux" and not gpu.may_be_here():  # CUDA reserves far more than it uses
        used = int(Path("/proc/self/statm").read_text().split()[5]) * resource.getpagesize()
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

    def scrape(self, block: Any, block_vars: Mapping[str, Any], gallery_conf: Mapping[str, Any]) -> str:
        """A scraper, called after each cell."""
        self.add(0)
        return ""


def _one_thread() -> None:
    """As many examples run at once as there are cores; and the result of a sum must not depend on the number of cores."""
    import torch

    torch.set_num_threads(1)


def _nothing_beside(block: Any, block_vars: Mapping[str, Any], gallery_conf: Mapping[str, Any]) -> str:
    """A scraper, called after each cell: an example must leave no file beside its script."""
    script = Path(block_vars["src_file"])
    others = sorted(path.name for path in script.parent.iterdir() if path != script)
    if others:
        first = block.lineno + len(block.content) - len(block.content.lstrip("\n"))
        raise LeftBehind(f"{script}:{first}: this cell leaves a file beside the script: {', '.join(others)}")
    return ""


def _gpu_peak() -> dict[str, int]:
    """The peak of allocated GPU memory in bytes, since the script last reset it; nothing if CUDA was not used."""
    import torch

    return {"peak_gpu_bytes": torch.cuda.max_memory_allocated()} if torch.cuda.is_initialized() else {}


def _explain(error: BaseException, place: Workplace, running_line: int) -> Fault:
    fault = from_exception(error, place.script, running_line)
    if isinstance(error, MemoryError) or "can't allocate memory" in str(error):
        message = f"the script needs more memory than a page may take: {fault.message}"
        return Fault(fault.script, fault.line, message, fault.details, fault.cell)
    return fault


def _fix_archive_times(made: Path) -> None:
    """Write the archives for download again without the times of their files, so that every build makes the same bytes."""
    for path in made.glob("*.zip"):
        with zipfile.ZipFile(path) as archive:
            contents = {info.filename: archive.read(info) for info in archive.infolist()}
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in sorted(contents.items()):
                info = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
                info.compress_type = zipfile.ZIP_DEFLATED
                archive.writestr(info, content)
