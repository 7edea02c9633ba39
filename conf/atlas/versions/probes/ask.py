"""A probe, and how it is answered.

The code of a probe runs after ``NAMES``. An answer is one line of text, the same on each machine: numbers have six digits,
messages end with their first sentence.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

TIME_LIMIT = 60.0  # seconds on the clock for one probe
LONGEST = 300  # characters of an answer

#: What comes after the first sentence of a message: another one, or where in PyTorch's code or the user's it was said.
_ENDS = re.compile(
    r"(?<=[.!?])\s+(?=[A-Z])|\s*\(?Triggered internally|\s*\[?Error raised from|\s+(?:Explanation|from user code|At): "
)

NAMES = """\
import math, warnings
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.autograd import grad
"""


@dataclass(frozen=True, slots=True)
class Probe:
    """What is asked of each version."""

    subject: str
    """The module of this package that it stands in: ``kinks``, ``nodes``, ``warns`` or ``refuses``."""
    code: str
    """An expression; if statements come before it, on lines of their own, those run first."""
    at: tuple[float | tuple[float, ...], ...] = ()
    """Of ``kinks``: the values of ``x``, ``y`` and ``z``, which are tensors of float64 that require a gradient."""

    @property
    def key(self) -> str:
        """Names the probe in the data, and on the page.

        >>> Probe("kinks", "x.abs()", ((0.0,),)).key, Probe("kinks", "x.max(y)", (1.0, 1.0)).key
        ('x.abs() at x = [0]', 'x.max(y) at x = 1, y = 1')
        """
        values = ", ".join(f"{name} = {_short(value)}" for name, value in zip("xyz", self.at, strict=False))
        return f"{self.code} at {values}" if values else self.code


def _short(value: Any) -> str:
    """A number or a list of them with six digits.

    >>> _short([0.5, -0.0, float("nan")]), _short(1 / 3)
    ('[0.5, 0, nan]', '0.333333')
    """
    if isinstance(value, Sequence):
        return f"[{', '.join(map(_short, value))}]"
    if isinstance(value, complex):
        return f"{value:.6g}"
    return f"{value + 0.0:.6g}"  # + 0.0 turns -0.0 into 0.0


def answer(probe: Probe) -> str:
    """Run a probe under the PyTorch that is here.

    To be sure of the answer, ask each probe in a process of its own: some warnings are said once, and some probes crash.

    :returns: of ``kinks`` the gradient of the sum of the result with respect to each input; of ``nodes`` the name of the
        result's ``grad_fn``; of ``warns`` each warning once, by category and first sentence, or "no warning"; of ``refuses``
        the exception in the same form, or "no error".
    """
    import torch

    torch.manual_seed(0)
    torch.set_num_threads(1)
    torch.set_warn_always(True)  # what an earlier probe was told, this one is told too
    names: dict[str, Any] = {}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            exec(NAMES, names)
            caught.clear()
            inputs = [torch.tensor(value, dtype=torch.float64, requires_grad=True) for value in probe.at]
            names.update(zip("xyz", inputs, strict=False))
            *before, last = probe.code.splitlines()
            exec("\n".join(before), names)
            result = eval(last, names)
            if probe.subject == "kinks":
                return _gradients(result, inputs)
            if probe.subject == "nodes":
                return "none" if result.grad_fn is None else result.grad_fn.name()
        except Exception as error:
            return _said(type(error), str(error))
    if probe.subject == "warns":
        said = [_said(warning.category, str(warning.message)) for warning in caught]
        return " | ".join(dict.fromkeys(said)) or "no warning"
    return "no error"


def _gradients(result: Any, inputs: list[Any]) -> str:
    import torch

    total = sum(part.sum() for part in result) if isinstance(result, tuple) else result.sum()
    found = torch.autograd.grad(total.real, inputs, allow_unused=True)
    shown = ("none" if gradient is None else _short(gradient.clone().tolist()) for gradient in found)
    return ", ".join(shown)


def _said(kind: type, message: str) -> str:
    """A category and the first sentence of a message, without addresses and paths.

    >>> _said(UserWarning, "Old.  Use the new one. See /a/b.py")
    'UserWarning: Old.'
    >>> _said(UserWarning, "see /a/b.py and https://pytorch.org/a/b, which stays")
    'UserWarning: see .../b.py and https://pytorch.org/a/b, which stays'
    """
    words = " ".join(message.split())
    words = re.sub(r"0x[0-9a-f]{6,}", "0x...", words)
    words = re.sub(r"(?<![\w:/])/[\w./+-]+/", ".../", words)
    words = _ENDS.split(words)[0]
    return f"{kind.__name__}: {words}"[:LONGEST].strip()
