"""Call back for each line of chosen code that runs, and for each that an AssertionError leaves, in every thread.

From Python 3.12 on this is ``sys.monitoring``. It sees all threads, also those that C++ starts: PyTorch calls hooks and custom
backwards of a GPU in such threads. Before, it is ``sys.settrace`` with ``threading.settrace``: threads that C++ starts are not
seen, so on Python 3.11 an assert that runs only there counts as one that never ran.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import CodeType, FrameType
from typing import Any

Note = Callable[[int], bool]
"""Called with the number of a line that is about to run. Returns whether it must be called when that line runs again."""
Choose = Callable[[CodeType], Note | None]
"""Called once with each code that starts to run. Returns None for code whose lines do not matter."""

Failed = Callable[[CodeType, int], None]
"""Called with a chosen code and the number of its line at which an AssertionError was raised, or passed through."""

Entered = Callable[[FrameType], None]
"""Called with the frame of a function that has just been called."""

_TOOL = 4
"""Our number in ``sys.monitoring``: there are 0 to 5, and 0, 1, 2 and 5 are meant for debuggers, coverage, and the like."""


class _Noters:
    """What ``choose`` has said of each code so far."""

    def __init__(self, choose: Choose) -> None:
        self._choose = choose
        self.known: dict[int, tuple[CodeType, Any]] = {}

    def __call__(self, code: CodeType) -> Any:
        try:
            return self.known[id(code)][1]
        except KeyError:
            note = self._choose(code)
            self.known[id(code)] = code, note  # the code is kept, so that no other code gets its id
            return note


if sys.version_info >= (3, 12):
    _monitoring = sys.monitoring
    _LINE, _START, _RAISE = _monitoring.events.LINE, _monitoring.events.PY_START, _monitoring.events.RAISE

    class _Thread(threading.local):
        paused = False

    _thread = _Thread()

    def start(choose: Choose, failed: Failed, entered: Mapping[str, Entered] | None = None) -> None:
        """Watch all code that starts to run from here on; what was watched before is forgotten.

        :param entered: what is called whenever a function of this name is.
        """
        stop()
        noters, told = _Noters(choose), entered or {}

        def code_starts(code: CodeType, offset: int) -> Any:
            if code.co_name in told:
                told[code.co_name](sys._getframe(1))
                return None
            if noters(code) is not None:
                _monitoring.set_local_events(_TOOL, code, _LINE)
            return _monitoring.DISABLE  # no second call for this code

        def line_starts(code: CodeType, number: int) -> Any:
            if _thread.paused:
                return None
            note = noters(code)
            return None if note and note(number) else _monitoring.DISABLE

        def error_passes(code: CodeType, offset: int, error: BaseException) -> None:
            if isinstance(error, AssertionError) and not _thread.paused and noters(code) is not None:
                lines = [line for begin, end, line in code.co_lines() if begin <= offset < end]
                failed(code, lines[0] or 0)

        _monitoring.use_tool_id(_TOOL, "atlas")
        _monitoring.register_callback(_TOOL, _START, code_starts)
        _monitoring.register_callback(_TOOL, _LINE, line_starts)
        _monitoring.register_callback(_TOOL, _RAISE, error_passes)
        _monitoring.set_events(_TOOL, _START | _RAISE)
        _monitoring.restart_events()

    def stop() -> None:
        """Watch nothing any longer."""
        if _monitoring.get_tool(_TOOL) is not None:
            _monitoring.set_events(_TOOL, 0)
            for event in (_START, _LINE, _RAISE):
                _monitoring.register_callback(_TOOL, event, None)
            _monitoring.free_tool_id(_TOOL)

    @contextmanager
    def paused() -> Iterator[None]:
        """Do not watch this thread for a while."""
        before, _thread.paused = _thread.paused, True
        try:
            yield
        finally:
            _thread.paused = before

else:

    @dataclass(frozen=True, slots=True)
    class _Entered:
        """Stands for a function whose calls are told."""

        tell: Entered

    def start(choose: Choose, failed: Failed, entered: Mapping[str, Entered] | None = None) -> None:
        """Watch all code that starts to run from here on; what was watched before is forgotten.

        :param entered: what is called whenever a function of this name is.
        """
        told = entered or {}

        def kind(code: CodeType) -> Note | _Entered | None:
            return _Entered(told[code.co_name]) if code.co_name in told else choose(code)

        noters = _Noters(kind)
        known = noters.known

        def code_starts(frame: FrameType, event: str, argument: Any) -> Any:
            # For each call of each function of whatever the script uses: nothing stands before this, and no call in it
            try:
                note = known[id(frame.f_code)][1]
            except KeyError:
                note = noters(frame.f_code)
            if note is None:
                return None
            if isinstance(note, _Entered):
                note.tell(frame)
                return None

            def line_starts(frame: FrameType, event: str, argument: Any) -> Any:
                if event == "line":
                    note(frame.f_lineno)
                elif event == "exception" and issubclass(argument[0], AssertionError):
                    failed(frame.f_code, frame.f_lineno)
                return line_starts

            return line_starts

        threading.settrace(code_starts)
        sys.settrace(code_starts)

    def stop() -> None:
        """Watch nothing any longer, but for other threads that still run."""
        threading.settrace(None)
        sys.settrace(None)

    @contextmanager
    def paused() -> Iterator[None]:
        """Do not watch this thread for a while: without a trace function Python runs twice as fast."""
        tracer = sys.gettrace()
        sys.settrace(None)
        try:
            yield
        finally:
            sys.settrace(tracer)
