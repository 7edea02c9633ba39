"""Which calls raise, and in which words."""

from __future__ import annotations

from .ask import Probe

_CODES = (
    "torch.ones(2, requires_grad=True).add_(1)",
    "torch.ones(2) @ torch.ones(3)",
)

PROBES = [Probe("refuses", code) for code in _CODES]
