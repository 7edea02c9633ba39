"""The probes as a whole: one process that must end, and must have written something."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from atlas.operators import probing


def _stand_in(folder: Path, monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    """Let ``code`` be what runs instead of the probes."""
    program = folder / "python"
    program.write_text(f"#!{sys.executable}\n{code}\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))


def test_probes_that_hang_do_not_hang_the_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _stand_in(tmp_path, monkeypatch, "import time; time.sleep(20)")
    monkeypatch.setattr(probing, "TIME_LIMIT", 1.0, raising=False)
    started = time.monotonic()
    with pytest.raises(RuntimeError, match=r"the operators could not be probed within 1 s"):
        probing.probe(tmp_path)
    assert time.monotonic() - started < 15


def test_what_the_probes_say_when_they_fail_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _stand_in(tmp_path, monkeypatch, "import sys; sys.exit('no operators here')")
    with pytest.raises(RuntimeError, match=r"(?s)could not be probed; .* says:\nno operators here"):
        probing.probe(tmp_path)
