"""What ``grad_fn`` is called: the names that stand in tracebacks, and in code that looks for them."""

from __future__ import annotations

from .ask import Probe

_CODES = (
    "nn.Linear(2, 2)(torch.ones(1, 2))",
    "nn.Conv2d(1, 1, 1)(torch.ones(1, 1, 2, 2))",
    "nn.Linear(2, 2)(torch.ones(1, 1, 2))",
    "F.scaled_dot_product_attention(*[torch.ones(1, 4, 8, requires_grad=True)] * 3)",
)

PROBES = [Probe("nodes", code) for code in _CODES]
