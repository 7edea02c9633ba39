"""Which names PyTorch has: what a dotted name leads to, and which class a method belongs to.

torch is imported for a name that was never asked for before, and for no other: the import takes longer than a build that has
little to do.
"""

from __future__ import annotations

import importlib
import inspect
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

TENSOR = "torch.Tensor"
FUNCTION = "torch.autograd.Function"
NODE = "torch.autograd.graph.Node"

#: Whose method it may be that is called on a variable of unknown class, besides a tensor's.
_OTHERS = (FUNCTION, "torch.nn.Module", "torch.optim.Optimizer")
#: A name that these have too says nothing about a variable.
_COMMON = (str, bytes, list, tuple, dict, set, int, float, complex, Path)


@dataclass
class TorchNames:
    """All answers are kept in ``known``: of one version of PyTorch they stay true."""

    known: dict[tuple[str, ...], str] = field(default_factory=dict)

    def kind(self, name: str) -> str:
        """``module``, ``class`` or ``object``; empty if PyTorch has no such name.

        >>> names = TorchNames()
        >>> names.kind("torch.autograd"), names.kind("torch.no_grad"), names.kind("torch.exp"), names.kind("torch.grad")
        ('module', 'class', 'object', '')
        """
        return self._answer(("kind", name), lambda: _kind(_find(name)))

    def of_class(self, cls: str, attribute: str) -> str:
        """The full name of what a class has under ``attribute``, by the class that brings it in. Empty if there is nothing.

        >>> TorchNames().of_class("torch.optim.SGD", "zero_grad"), TorchNames().of_class("torch.nn.Parameter", "grad")
        ('torch.optim.Optimizer.zero_grad', 'torch.Tensor.grad')
        """
        return self._answer(("of", cls, attribute), lambda: _of_class(cls, attribute))

    def of_variable(self, attribute: str) -> str:
        """The same for a variable of unknown class: a tensor's, a node's, or of the one other class that has it.

        Empty if it is unsure.

        >>> TorchNames().of_variable("retain_grad"), TorchNames().of_variable("next_functions")
        ('torch.Tensor.retain_grad', 'torch.autograd.graph.Node.next_functions')
        >>> TorchNames().of_variable("split"), TorchNames().of_variable("zero_grad")
        ('', '')
        """
        return self._answer(("of", attribute), lambda: _of_variable(attribute))

    def _answer(self, question: tuple[str, ...], find: Any) -> str:
        if question not in self.known:
            self.known[question] = find()
        return self.known[question]


def _find(name: str) -> Any:
    """What a dotted name leads to, or None."""
    first, *rest = name.split(".")
    found: Any = importlib.import_module(first)
    for i, part in enumerate(rest, start=1):
        if not hasattr(found, part) and inspect.ismodule(found):
            try:
                importlib.import_module(".".join([first, *rest[:i]]))
            except ImportError:
                return None
        found = getattr(found, part, None)
    return found


def _kind(found: Any) -> str:
    if found is None:
        return ""
    return "module" if inspect.ismodule(found) else "class" if inspect.isclass(found) else "object"


def _of_class(cls: str, attribute: str) -> str:
    found = _find(cls)
    if not inspect.isclass(found) or attribute.startswith("__"):
        return ""
    for base in reversed(found.__mro__):
        # torch._C has the same classes under names that nobody looks for
        is_public = not base.__module__.startswith("torch._C") and not base.__name__.startswith("_")
        if is_public and base is not object and hasattr(base, attribute):
            return f"{_public_name(base)}.{attribute}"
    return ""


def _of_variable(attribute: str) -> str:
    if attribute.startswith("__") or any(hasattr(common, attribute) for common in _COMMON):
        return ""
    others = {_of_class(cls, attribute) for cls in _OTHERS} - {""}
    only = others.pop() if len(others) == 1 else ""
    # the node of a Function has what every node has, and is seldom in a variable
    return _of_class(TENSOR, attribute) or _of_class(NODE, attribute) or only


def _public_name(cls: type) -> str:
    """By the outermost module that has the class: ``torch.optim.Optimizer``, not ``torch.optim.optimizer.Optimizer``."""
    modules = cls.__module__.split(".")
    for depth in range(1, len(modules) + 1):
        name = ".".join([*modules[:depth], cls.__name__])
        if _find(name) is cls:
            return name
    return f"{cls.__module__}.{cls.__name__}"
