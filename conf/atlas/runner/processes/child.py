"""What happens inside the process of one example.

The process is forked from the build, which has imported torch and matplotlib and computed nothing. It takes a session of its
own, so that everything it starts can be ended with it, runs the script in a folder that holds nothing else, and leaves
either the page's outputs and a result, or a fault.
"""

from __future__ import annotations

import ctypes
import gc
import json
import logging
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

from atlas.cells import line_watcher
from atlas.runner import gpu, sphinx_gallery_api

from .faults import Fault, LeftBehind, UnfinishedExample, from_exception
from .limits import Limits, check_time_limit

_PR_SET_PDEATHSIG = 1
_CHECK_EVERY = 0.2  # seconds


@dataclass(frozen=True, slots=True)
class Workplace:
    """The folders of one run. Everything is below ``root``, and ``root`` is thrown away after."""

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
        """What the script and the libraries below it wrote past Python's own streams."""
        return self.root / "log.txt"


def run(place: Workplace, settings: Mapping[str, Any], limits: Limits, line: mmap.mmap, *, execute: bool) -> NoReturn:
    """Run the example in ``place`` in this process, which ends here: the build's own clean-up must not run in it.

    :param line: shared memory in which the number of the running line is kept, readable when the process is dead.
    """
    started = time.monotonic()
    gc.freeze()  # what the build has made is not collected here, and to look through all of it took longer than most examples
    try:
        _detach(place)
        check_time_limit(place.script)
        _limit(limits)
        _one_thread()
        if execute:
            from atlas.cells import assert_counter

            assert_counter.report_line_to(line)
            settings = {**settings, "image_scrapers": (*settings["image_scrapers"], _nothing_beside)}
        sphinx_gallery_api.run(place.script, place.made, place.docs, settings, execute=execute)
        signal.setitimer(signal.ITIMER_REAL, 0)
        line_watcher.stop()
        if execute:
            _check_global_state(place.script)
        _fix_archive_times(place.made)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        result: dict[str, Any] = {"seconds": round(time.monotonic() - started, 3), "peak_kib": peak, **_gpu_peak()}
    except BaseException as error:
        line_watcher.stop()
        signal.setitimer(signal.ITIMER_REAL, 0)
        result = {"fault": _explain(error, place, int.from_bytes(line[:8], "little")).as_dict()}
    part = place.result.with_suffix(".part")
    part.write_text(json.dumps(result), encoding="utf-8")
    os.replace(part, place.result)
    os._exit(0)


def _detach(place: Workplace) -> None:
    """A session of its own, streams of its own, and an end when the build ends."""
    os.setsid()
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
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

    def look(number: int, frame: Any) -> None:
        written = getattr(sys.stdout, "output", None)  # sphinx-gallery's own stream while a cell runs
        if written is not None and written.tell() > limits.output:
            raise UnfinishedExample(f"the script printed more than {limits.output:,} characters; print less")

    signal.signal(signal.SIGALRM, look)
    signal.setitimer(signal.ITIMER_REAL, _CHECK_EVERY, _CHECK_EVERY)


def _one_thread() -> None:
    """As many examples run at once as there are cores, and sums do not depend on how many there are."""
    import torch

    torch.set_num_threads(1)


def _nothing_beside(block: Any, block_vars: Mapping[str, Any], gallery_conf: Mapping[str, Any]) -> str:
    """A scraper, called after each cell: a page must leave no file where it ran."""
    script = Path(block_vars["src_file"])
    others = sorted(path.name for path in script.parent.iterdir() if path != script)
    if others:
        first = block.lineno + len(block.content) - len(block.content.lstrip("\n"))
        raise LeftBehind(f"{script}:{first}: this cell leaves a file beside the script: {', '.join(others)}")
    return ""


def _check_global_state(script: Path) -> None:
    import torch

    for found, expected, name, setter in (
        (torch.get_default_dtype(), torch.float32, "the default dtype", "set_default_dtype"),
        (torch.is_grad_enabled(), True, "the grad mode", "set_grad_enabled"),
        (torch.is_anomaly_enabled(), False, "anomaly mode", "set_detect_anomaly"),
    ):
        if found != expected:
            lines = script.read_text(encoding="utf-8").splitlines()
            at = next((number for number, text in enumerate(lines, 1) if setter in text), len(lines))
            raise LeftBehind(
                f"{script}:{at}: the script leaves {name} at {found}; set it back to {expected} at its end"
            )


def _gpu_peak() -> dict[str, int]:
    """The most that tensors took on the GPU since the script itself last reset that count, in bytes; nothing without CUDA."""
    import torch

    return {"peak_gpu_bytes": torch.cuda.max_memory_allocated()} if torch.cuda.is_initialized() else {}


def _explain(error: BaseException, place: Workplace, running_line: int) -> Fault:
    fault = from_exception(error, place.script, running_line)
    if isinstance(error, MemoryError) or "can't allocate memory" in str(error):
        message = f"the script needs more memory than a page may take: {fault.message}"
        return Fault(fault.script, fault.line, message, fault.details, fault.cell)
    return fault


def _fix_archive_times(made: Path) -> None:
    """The archive for download must be the same bytes in every build; it holds the times of its files."""
    for path in made.glob("*.zip"):
        with zipfile.ZipFile(path) as archive:
            contents = {info.filename: archive.read(info) for info in archive.infolist()}
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in sorted(contents.items()):
                info = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
                info.compress_type = zipfile.ZIP_DEFLATED
                archive.writestr(info, content)
