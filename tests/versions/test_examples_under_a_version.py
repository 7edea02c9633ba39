"""An example is run to its end, cell by cell; its hash knows its code, and nothing else."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from atlas.versions.measuring import examples

SCRIPT = '''"""
Title
=====
"""
import torch

print("first", torch.ones(2).sum())
assert False, "not here"
# %%
# Text.

# varies: it is a time
print("second")
# %%
def f():
    raise RuntimeError("in f")
f()
x = torch.ones(2, requires_grad=True)
(x * 2).grad_fn
'''


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "chapter" / "page.py"
    path.parent.mkdir()
    path.write_text(SCRIPT)
    return path


def test_all_that_is_printed_and_all_that_fails(script: Path) -> None:
    (found,) = examples.measure(examples.scripts(script.parents[1])).values()
    assert found["outputs"] == [
        {"cell": 0, "text": "first tensor(2.)\n", "varies": False},
        {"cell": 1, "text": "second\n", "varies": True},
        {"cell": 2, "text": "<MulBackward0 object at 0x...>\n", "varies": False},
    ]
    assert found["faults"] == [
        {"cell": 0, "code": 'assert False, "not here"', "said": "AssertionError: not here"},
        {"cell": 2, "code": 'raise RuntimeError("in f")', "said": "RuntimeError: in f"},
    ]
    assert found["code"] == examples.code_hash(script)


def test_a_script_that_needs_a_gpu_may_end_itself(script: Path) -> None:
    script.write_text('import sys\n\nprint("on paper")\n# %%\nif True:\n    sys.exit()\n# %%\nassert False\n')
    (found,) = examples.measure(examples.scripts(script.parents[1])).values()
    assert not found["faults"] and [output["text"] for output in found["outputs"]] == ["on paper\n"]


def test_an_assert_that_the_script_catches_is_no_fault(script: Path) -> None:
    script.write_text('try:\n    assert False\nexcept AssertionError:\n    print("caught")\n')
    (found,) = examples.measure(examples.scripts(script.parents[1])).values()
    assert not found["faults"] and found["outputs"][0]["text"] == "caught\n"


def test_a_crash_is_told_and_the_next_is_run(script: Path) -> None:
    script.write_text("import os\nos.abort()\n")
    (script.parent / "zero.py").write_text('print("fine")\n')
    crashed, fine = examples.measure(examples.scripts(script.parents[1])).values()
    assert crashed["faults"][0]["said"] == "killed by SIGABRT" and crashed["outputs"] == []
    assert fine["outputs"][0]["text"] == "fine\n" and not fine["faults"]


def test_the_hash_is_of_the_text_of_the_code(script: Path) -> None:
    """So it is the same on each version of Python."""
    script.write_text(f"r{SCRIPT}")
    code = [line for line in SCRIPT.splitlines()[4:] if line and not line.startswith("#")]
    assert examples.code_hash(script) == hashlib.sha256("\n".join(code).encode()).hexdigest()[:16]


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ("# Text.", "# A better text.", True),
        ("Title\n=====", "Other\n=====", True),
        ("\n\n# varies", "\n# varies", True),
        ("torch.ones(2).sum()", "torch.ones(3).sum()", False),
        ('"not here"', '"not there"', False),
    ],
)
def test_the_hash_knows_the_code_alone(script: Path, old: str, new: str, same: bool) -> None:
    before = examples.code_hash(script)
    assert old in SCRIPT
    script.write_text(SCRIPT.replace(old, new))
    assert (examples.code_hash(script) == before) is same
