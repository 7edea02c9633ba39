"""Gradients where there is no derivative: at bounds, ties, zero, infinity. The values are conventions, and these change."""

from __future__ import annotations

from .ask import Probe

INFINITY = float("inf")


def _at(at: tuple, *codes: str) -> list[Probe]:
    return [Probe("kinks", code, at) for code in codes]


PROBES = [
    *_at(((0.0, 1.0),), "x.clamp(0, 1)", "F.hardtanh(x, 0, 1)"),
    *_at(((0.0,),), "x.abs()", "F.relu(x)", "x.sqrt()"),
    *_at((1.0, 1.0), "torch.maximum(x, y)", "torch.max(x, y)", "torch.fmax(x, y)"),
    *_at(((2.0, 2.0, 1.0),), "x.max()", "x.amax()", "x.max(0).values"),
    *_at(((0.0,),), "x.clamp_min(0)"),
]
