"""Which names PyTorch has: what a dotted name is, and which class a method belongs to.

torch is imported only for a name that is new: importing it takes longer than a build in which one page changed.
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

#: Classes, besides Tensor, whose method may be called on a variable of unknown class.
_OTHERS = (FUNCTION, "torch.nn.Module", "torch.optim.Optimizer")
#: A method that one of these has too, such as ``split``, does not tell the class of its variable.
_COMMON = (str, bytes, list, tuple, dict, set, int, float, complex, Path)


@dataclass
class TorchNames:
    """Keeps all answers in ``known``. They hold for one version of PyTorch."""

    known: dict[tuple[str, ...], str] = field(default_factory=dict)

    def kind(self, name: str) -> str:
        """``module``, ``class`` or ``object``; empty if PyTorch has no such name.

        >>> names = TorchNames()
        >>> names.kind("torch.autograd"), names.kind("torch.no_grad"), names.kind("torch.exp"), names.kind("torch.grad")
        ('module', 'class', 'object', '')
        """
        return self._answer(("kind", name), lambda: _kind(find(name)))

    def of_class(self, cls: str, attribute: str) -> str:
        """The full name of a class's ``attribute``, with the class that defines it. Empty if there is no such attribute.

        >>> TorchNames().of_class("torch.optim.SGD", "zero_grad"), TorchNames().of_class("torch.nn.Parameter", "grad")
        ('torch.optim.Optimizer.zero_grad', 'torch.Tensor.grad')
        """
        return self._answer(("of", cls, attribute), lambda: _of_class(cls, attribute))

    def of_variable(self, attribute: str) -> str:
        """The full name of the ``attribute`` of a variable of unknown class: Tensor's, Node's, or that of the only other class.

        Empty if no class has it, or several have.

        >>> TorchNames().of_variable("retain_grad"), TorchNames().of_variable("next_functions")
        ('torch.Tensor.retain_grad', 'torch.autograd.graph.Node.next_functions')
        >>> TorchNames().of_variable("split"), TorchNames().of_variable("zero_grad")
        ('', '')
        """
        return self._answer(("of", attribute), lambda: _of_variable(attribute))

    def is_of_one_class(self, attribute: str) -> bool:
        """Whether no more than one of the classes that variables often hold has this attribute.

        >>> TorchNames().is_of_one_class("backward"), TorchNames().is_of_one_class("to")
        (True, False)
        """
        return self._answer(("one", attribute), lambda: "yes" if _is_of_one_class(attribute) else "") == "yes"

    def _answer(self, question: tuple[str, ...], find: Any) -> str:
        if question not in self.known:
            self.known[question] = find()
        return self.known[question]


def find(name: str) -> Any:
    """The object with this dotted name, or None."""
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
    found = find(cls)
    if not inspect.isclass(found) or attribute.startswith("__"):
        return ""
    for base in reversed(found.__mro__):
        # torch._C has the same classes under private names
        is_public = not base.__module__.startswith("torch._C") and not base.__name__.startswith("_")
        if is_public and base is not object and hasattr(base, attribute):
            return f"{_public_name(base)}.{attribute}"
    return ""


def _of_variable(attribute: str) -> str:
    if attribute.startswith("__") or any(hasattr(common, attribute) for common in _COMMON):
        return ""
    others = {_of_class(cls, attribute) for cls in _OTHERS} - {""}
    only = others.pop() if len(others) == 1 else ""
    # a Function's ctx has the attributes of a node too, but a variable more often holds a node
    return _of_class(TENSOR, attribute) or _of_class(NODE, attribute) or only


def _is_of_one_class(attribute: str) -> bool:
    return (
        sum(hasattr(find(cls), attribute) for cls in (TENSOR, NODE, "torch.nn.Module", "torch.optim.Optimizer")) < 2
    )


def _public_name(cls: type) -> str:
    """With the shortest path to the class: ``torch.optim.Optimizer``, not ``torch.optim.optimizer.Optimizer``."""
    modules = cls.__module__.split(".")
    for depth in range(1, len(modules) + 1):
        name = ".".join([*modules[:depth], cls.__name__])
        if find(name) is cls:
            return name
    return f"{cls.__module__}.{cls.__name__}"
