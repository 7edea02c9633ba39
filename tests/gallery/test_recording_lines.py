"""Each backward node is known by the line that recorded it, while a script runs as sphinx-gallery runs it: cell by cell."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from atlas.gallery import asserts
from atlas.gallery.scrapers import find_statement

SCRIPT = """'''Title'''
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
RECORDED = {
    "inner": (4, 4),
    "again": (6, 5),
    "looped": (9, 8),
    "called": (13, 13),
    "split": (14, 14),
    "changed": (19, 19),
    "inside": (21,),
    "branch": (23,),
}


@pytest.fixture
def ran(tmp_path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """A script that has run with its lines watched, in two cells."""
    path = tmp_path / "watched.py"
    path.write_text(SCRIPT, encoding="utf-8")
    asserts.start_watching(bytearray(8), None)
    compiler = asserts.WatchedCompile()
    namespace: dict[str, Any] = {}
    tree = ast.parse(SCRIPT)
    for cell in (tree.body[:6], tree.body[6:]):
        exec(compiler(ast.Module(cell, []), str(path), "exec"), namespace)
        asserts.note_recording_line(None)
        torch.ones(1, requires_grad=True).exp()  # what the site does between two cells
    yield str(path), namespace


def test_each_node_has_the_statement_that_recorded_it(ran: tuple[str, dict[str, Any]]) -> None:
    path, namespace = ran
    found = {}
    for name, lines in RECORDED.items():
        node, found[name] = namespace[name].grad_fn, ()
        for _ in lines:
            found[name] += (find_statement(path, asserts.find_recording_line(node._sequence_nr())).first,)
            node = node.next_functions[0][0]
    assert found == RECORDED


def test_what_the_site_records_itself_has_no_line(ran: tuple[str, dict[str, Any]]) -> None:
    node = torch.ones(1, requires_grad=True).exp().grad_fn
    assert asserts.find_recording_line(node._sequence_nr()) is None


def test_before_the_script_there_is_no_line() -> None:
    asserts.start_watching(bytearray(8), None)
    assert asserts.find_recording_line(0) is None
