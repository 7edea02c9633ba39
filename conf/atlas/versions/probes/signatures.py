"""Parameters and defaults of PyTorch's public functions and classes. They are found, not listed."""

from __future__ import annotations

import importlib
import inspect
import re
from types import ModuleType
from typing import Any

#: The public modules that this site is about. Operators written in C++ have no signature that Python can read.
MODULES = (
    "torch",
    "torch.amp",
    "torch.autograd",
    "torch.autograd.forward_ad",
    "torch.autograd.functional",
    "torch.autograd.graph",
    "torch.autograd.profiler",
    "torch.func",
    "torch.nn",
    "torch.nn.functional",
    "torch.nn.init",
    "torch.nn.utils",
    "torch.optim",
    "torch.optim.lr_scheduler",
    "torch.profiler",
    "torch.utils.checkpoint",
    "torch.utils.data",
)


def found() -> dict[str, str]:
    """The signature of each public function and class of ``MODULES``, by its name; annotations aside."""
    return {
        name: signature
        for module in MODULES
        for name, thing in _public(module)
        if (signature := _signature(thing)) is not None
    }


def _public(module: str) -> list[tuple[str, Any]]:
    """The functions and classes of PyTorch that a module offers."""
    try:
        there = importlib.import_module(module)
    except ImportError:  # a module of other versions
        return []
    names = getattr(there, "__all__", None) or [name for name in vars(there) if not name.startswith("_")]
    things = ((name, getattr(there, name, None)) for name in sorted(set(names)))
    return [
        (f"{module}.{name}", thing)
        for name, thing in things
        if callable(thing)
        and not isinstance(thing, ModuleType)
        and str(getattr(thing, "__module__", "")).partition(".")[0] == "torch"
    ]


def _signature(thing: Any) -> str | None:
    """Parameters and defaults; None if Python cannot tell them.

    >>> _signature(lambda x, *, dim=-1: x)
    '(x, *, dim=-1)'
    """
    try:
        signature = inspect.signature(thing)
    except (TypeError, ValueError):
        return None
    plain = [parameter.replace(annotation=inspect.Parameter.empty) for parameter in signature.parameters.values()]
    text = str(signature.replace(parameters=plain, return_annotation=inspect.Signature.empty))
    return re.sub(r" at 0x[0-9a-f]+|(?<=') from '[^']*'", "", text)
