"""Which calls warn, and in which words."""

from __future__ import annotations

from .ask import Probe

_CODES = (
    "torch.ones(2, 3, 4).T",
    "torch.cuda.amp.autocast()",
    "torch.autograd.profiler.profile(with_modules=True)",
)

PROBES = [Probe("warns", code) for code in _CODES]
