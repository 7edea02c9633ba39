"""Which calls raise, and in which words."""

from __future__ import annotations

from .ask import Probe

_CODES = (
    "torch.ones(2, requires_grad=True).add_(1)",
    "torch.ones(2) @ torch.ones(3)",
    "torch.autograd.functional.hessian(lambda x: torch.cdist(x, 2 * x).sum(), torch.ones(1, 2))",
    "torch.autograd.profiler.profile(use_cuda=True)",
    "torch.from_dlpack(np.ones(3)[::-1])",  # before 2.14 this ends the process
    "torch.linalg.vector_norm(torch.eye(2).to_sparse())",
    "torch.ones(1).expand(2).__setitem__(..., 9.0)",
    "torch.ones(2, dtype=torch.bool).mean()",
    "torch.ones(2, 3) @ torch.ones(2, 3)",
)

PROBES = [Probe("refuses", code) for code in _CODES]
