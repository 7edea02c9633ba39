"""Which line of an example recorded a backward node: nodes are numbered in turn, and each line notes the number to come.

Only lines at the top level are told apart. What a function of the script records belongs to the line that called it. Each
thread has numbers of its own: what another thread records cannot be told, and nothing on the site's pages draws it.
"""

from __future__ import annotations

import sys
from bisect import bisect_right

_numbers: list[int] = []
_lines: list[int | None] = []
"""For each of ``_numbers`` the line that records the nodes from this number on; None where that is no line of the script."""


def note(line: int | None) -> None:
    """Say which top-level line of the script is about to run; None when what follows is not the script."""
    torch = sys.modules.get("torch")
    if torch is None or not hasattr(torch, "autograd"):  # the script has not imported it yet, or is about to
        return
    number = torch.autograd._get_sequence_nr()
    if _numbers and _numbers[-1] == number:
        _lines[-1] = line
    else:
        _numbers.append(number)
        _lines.append(line)


def forget() -> None:
    """Another script starts."""
    _numbers.clear()
    _lines.clear()


def line_of(number: int) -> int | None:
    """The line that recorded the node with this number; None for a node that no line of the script did.

    >>> import torch
    >>> x = torch.tensor(2.0, requires_grad=True)
    >>> note(7)
    >>> y = x * x
    >>> note(8)
    >>> line_of(y.grad_fn._sequence_nr())
    7
    """
    place = bisect_right(_numbers, number) - 1
    return _lines[place] if place >= 0 else None
