"""A figure shows the line that made a variable, and none where that is not certain; a node has that which recorded it."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest
import torch

from atlas.gallery import asserts
from atlas.gallery.scrapers import find_assignments, find_loop_variables, find_statement

SCRIPT = '''"""Title"""
x = make(1)
with mode():
    y, z = x * 2, (
        x * 3
    )
total = 0
for i in range(3):
    total = total + x
    new = i
def f():
    inner = 1
x = x + 1
data[0] = 5
late = 1
'''
RECORDING = """'''Title'''
import torch
x = torch.tensor([1.0, 2.0], requires_grad=True)
inner = (x * 2).sin()
again = x.cos()
again = again.exp()
for factor in (2, 3):
    other = x.tanh()
    looped = other * factor
def double(t):
    half = t * 1
    return half + half
called = double(x)
split = torch.cat(
    [x.exp(),
     x.log()],
)
changed = x.clone()
changed.mul_(5); changed[0] = 0.0
with torch.enable_grad():
    inside = x.sqrt()
if inside.requires_grad:
    branch = x.relu()
else:
    branch = x.neg()
"""
#: The end node of each variable, and of some the node before it: the line that recorded it.
RECORDED = {"inner": (4, 4), "again": (6, 5), "looped": (9, 8), "called": (13, 13), "split": (14, 14)}
RECORDED |= {"changed": (19, 19), "inside": (21,), "branch": (23,)}


@pytest.fixture
def script(tmp_path: Path) -> str:
    path = tmp_path / "script.py"
    path.write_text(SCRIPT, encoding="utf-8")
    return str(path)


def test_the_last_line_that_assigned_where_that_is_certain(script: str) -> None:
    """Not where a loop may have been last; neither later lines nor functions nor items count."""
    assert find_assignments(script, 5)["x"].text == "x = make(1)"
    two_lines = ("y, z = x * 2, ( …", 4, 6)
    known = {"x": ("x = x + 1", 13, 13), "y": two_lines, "z": two_lines, "new": ("new = i", 10, 10)}
    assert find_assignments(script, 14) == known


def test_variables_of_a_loop_alone(tmp_path: Path) -> None:
    path = tmp_path / "script.py"
    path.write_text("for a, (b, c) in pairs:\n    a.grad = None\n    c[0] = 1\n    b = 2\n")
    assert find_loop_variables(str(path)) == {"a", "c"}


def test_each_node_has_the_statement_that_recorded_it(tmp_path: Path) -> None:
    """The script runs as sphinx-gallery runs it: cell by cell. What the site records between two has no line."""
    path = tmp_path / "watched.py"
    path.write_text(RECORDING, encoding="utf-8")
    asserts.start_watching(bytearray(8), None)
    assert asserts.find_recording_line(0) is None, "before the script"
    compiler, namespace = asserts.WatchedCompile(), dict[str, Any]()
    tree = ast.parse(RECORDING)
    for cell in (tree.body[:6], tree.body[6:]):
        exec(compiler(ast.Module(cell, []), str(path), "exec"), namespace)
        asserts.note_recording_line(None)
        of_the_site = torch.ones(1, requires_grad=True).exp().grad_fn
        assert asserts.find_recording_line(of_the_site._sequence_nr()) is None
    found = {}
    for name, lines in RECORDED.items():
        node, found[name] = namespace[name].grad_fn, ()
        for _ in lines:
            found[name] += (find_statement(str(path), asserts.find_recording_line(node._sequence_nr())).first,)
            node = node.next_functions[0][0]
    assert found == RECORDED
