"""Which names of PyTorch a piece of code uses, and where: functions, classes, and the methods and attributes of its variables.

sphinx-gallery 0.22.1 finds such names too, but it needs a run to know the class of a variable, and it leaves out variables
within functions. Here the code is parsed and not run. So a page whose code could not be run has its names too.

torch is imported only for a name that is new: importing it takes longer than a build in which one page changed.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

TENSOR = "torch.Tensor"
FUNCTION = "torch.autograd.Function"
NODE = "torch.autograd.graph.Node"
MODULE, OPTIMIZER = "torch.nn.Module", "torch.optim.Optimizer"

#: The class of an attribute's value. Without it, ``x.grad_fn.name`` would be taken for a tensor's ``name``.
_CLASS_OF = {"grad_fn": NODE, "grad": TENSOR, "device": "torch.device", "dtype": "torch.dtype", "shape": "torch.Size"}
#: Methods of a tensor that return something else than a tensor.
_LEAVE = {"numpy", "item", "tolist"}
#: A method that one of these has too, such as ``split``, does not tell the class of its variable.
_COMMON = (str, bytes, list, tuple, dict, set, int, float, complex, Path)
#: What PyTorch documents as a class, and not one by one.
_BY_CLASS = {"torch.dtype", "torch.layout", "torch.memory_format"}

Answer = TypeVar("Answer")


# -- What PyTorch has ---------------------------------------------------------------------------------


class TorchNames(dict[tuple[str, ...], Any]):
    """Keeps all answers of the functions below. They hold for one version of PyTorch."""

    def ask(self, question: Callable[..., Answer], *words: str) -> Answer:
        """The answer of a function of this module.

        >>> names = TorchNames()
        >>> names.ask(get_kind, "torch.exp"), names
        ('object', {('get_kind', 'torch.exp'): 'object'})
        """
        key = (question.__name__, *words)
        if key not in self:
            self[key] = question(*words)
        return self[key]


def find_object(name: str) -> Any:
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


def get_kind(name: str) -> str:
    """``module``, ``class`` or ``object``; empty if PyTorch has no such name.

    >>> [get_kind(name) for name in ("torch.autograd", "torch.no_grad", "torch.exp", "torch.grad")]
    ['module', 'class', 'object', '']
    """
    found = find_object(name)
    kind = "module" if inspect.ismodule(found) else "class" if inspect.isclass(found) else "object"
    return "" if found is None else kind


def find_in_class(cls: str, attribute: str) -> str:
    """The full name of a class's ``attribute``, with the class that defines it. Empty if there is no such attribute.

    >>> find_in_class("torch.optim.SGD", "zero_grad"), find_in_class("torch.nn.Parameter", "grad")
    ('torch.optim.Optimizer.zero_grad', 'torch.Tensor.grad')
    """
    found = find_object(cls)
    if not inspect.isclass(found) or attribute.startswith("__"):
        return ""
    for base in reversed(found.__mro__):
        # torch._C has the same classes under private names
        is_public = not base.__module__.startswith("torch._C") and not base.__name__.startswith("_")
        if is_public and base is not object and hasattr(base, attribute):
            return f"{_shortest_name(base)}.{attribute}"
    return ""


def guess_owner(attribute: str) -> str:
    """The full name of the ``attribute`` of a variable of unknown class: Tensor's, Node's, or that of the only other class.

    Empty if no class has it, or several have.

    >>> [guess_owner(word) for word in ("retain_grad", "next_functions", "split", "zero_grad")]
    ['torch.Tensor.retain_grad', 'torch.autograd.graph.Node.next_functions', '', '']
    """
    if attribute.startswith("__") or any(hasattr(common, attribute) for common in _COMMON):
        return ""
    others = {find_in_class(cls, attribute) for cls in (FUNCTION, MODULE, OPTIMIZER)} - {""}
    only = others.pop() if len(others) == 1 else ""
    # a Function's ctx has the attributes of a node too, but a variable more often holds a node
    return find_in_class(TENSOR, attribute) or find_in_class(NODE, attribute) or only


def is_of_one_class(attribute: str) -> bool:
    """Whether no more than one of the classes that variables often hold has this attribute.

    >>> is_of_one_class("backward"), is_of_one_class("to")
    (True, False)
    """
    return sum(hasattr(find_object(cls), attribute) for cls in (TENSOR, NODE, MODULE, OPTIMIZER)) < 2


def get_result(name: str) -> str:
    """What a call of this function of ``torch`` returns: ``tensor``, also for a list of them, or ``other``; empty if unknown.

    Its operator says so, or its documentation.

    >>> [get_result(f"torch.{name}") for name in ("exp", "from_numpy", "compile", "manual_seed", "max", "autograd.grad")]
    ['tensor', 'tensor', 'other', 'other', '', '']
    """
    module, _, own = name.rpartition(".")
    if module != "torch" or own == "load":  # which returns whatever was saved
        return ""
    operator = getattr(find_object("torch").ops.aten, own, None)
    results = [
        [str(result.type) for result in getattr(operator, overload)._schema.returns]
        for overload in (operator.overloads() if operator else ())
    ]
    if any(len(types) > 1 for types in results):  # x.max(0) is a pair with attributes of its own
        return ""
    is_documented = re.search(rf"(?m)^{own}\(.*\) -> Tensor\b", getattr(find_object(name), "__doc__", None) or "")
    return "tensor" if is_documented or ["Tensor"] in results or ["List[Tensor]"] in results else "other"


def list_other_names(name: str) -> list[str]:
    """Under which names PyTorch's reference may have it besides its own: where it is defined, each shorter path, its class.

    >>> list_other_names("torch.no_grad"), list_other_names("torch.float32")
    (['torch.autograd.grad_mode.no_grad', 'torch.autograd.no_grad'], ['torch.dtype'])
    >>> list_other_names("torch.GradScaler.step")
    ['torch.amp.grad_scaler.GradScaler.step', 'torch.amp.GradScaler.step']
    """
    owner, _, last = name.rpartition(".")
    if owner and inspect.isclass(find_object(owner)):
        return [f"{other}.{last}" for other in list_other_names(owner)]
    found = find_object(name)
    parts = str(getattr(found, "__module__", "")).split(".")
    paths = [".".join([*parts[:depth], last]) for depth in range(len(parts), 0, -1)]
    # a function may hide the module of its own name, in which the reference has it
    others = [path for path in paths if parts[0] == "torch" and (path == paths[0] or find_object(path) is found)]
    cls = f"{type(found).__module__}.{type(found).__qualname__}"
    return [*(other for other in others if other != name), *([cls] if cls in _BY_CLASS else [])]


def _shortest_name(cls: type) -> str:
    """``torch.optim.Optimizer``, not ``torch.optim.optimizer.Optimizer``."""
    parts = cls.__module__.split(".")
    names = [".".join([*parts[:depth], cls.__name__]) for depth in range(1, len(parts) + 1)]
    return next((name for name in names if find_object(name) is cls), names[-1])


# -- What code uses -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Value:
    """What is known of a value: its own name, such as ``torch.exp``; or, if ``instance``, the name of its class."""

    name: str
    instance: bool = False


@dataclass(frozen=True, slots=True, order=True)
class Use:
    """A name of PyTorch and the words of the code that stand for it: ``F.relu``, or of ``x.sum().relu()`` the last word.

    :ivar line: in its piece, from 0.
    :ivar start: the column, in characters.
    :ivar sure: whether it is no guess: ``to`` of an unknown variable counts as a tensor's, and may be a module's.
    """

    line: int
    start: int
    end: int
    name: str
    sure: bool = True


_TENSOR = Value(TENSOR, instance=True)
_NOT_TORCH = Value("")
_OTHER = Value("", instance=True)  # returned by a function of PyTorch, and no tensor


def find_uses(pieces: Iterable[str], torch: TorchNames) -> Iterator[list[Use]]:
    """What each piece of a page's code uses, from its top to its end; nothing if it is not Python.

    A later piece knows what an earlier one imports and defines. A method is taken for a tensor's where the class of its
    variable is unknown: see ``guess_owner``.

    >>> [[one, two]] = find_uses(["x = torch.exp(y)\\nx.sum()"], TorchNames())
    >>> one, two.name
    (Use(line=0, start=4, end=13, name='torch.exp', sure=True), 'torch.Tensor.sum')
    """
    finder = _Finder(torch)
    for piece in pieces:
        try:
            tree = ast.parse(piece)
        except SyntaxError:
            yield []
            continue
        finder.found, finder.lines = set(), piece.encode().split(b"\n")
        finder.visit(tree)
        yield sorted(finder.found)


class _Finder(ast.NodeVisitor):
    """Visits code from top to bottom. The visit of an expression returns what is known of its value, or None."""

    def __init__(self, torch: TorchNames) -> None:
        self.torch = torch
        self.found: set[Use] = set()
        self.lines: list[bytes] = []
        self.variables: dict[str, Value | None] = {"torch": Value("torch")}  # as in the doctests of this site

    # -- what brings names in

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            name = alias.name if alias.asname else alias.name.partition(".")[0]
            self.variables[alias.asname or name] = self._value_of_import(name)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        for alias in node.names:
            self.variables[alias.asname or alias.name] = self._value_of_import(f"{node.module}.{alias.name}")

    def _value_of_import(self, name: str) -> Value:
        return Value(name) if name.partition(".")[0] == "torch" and self.torch.ask(get_kind, name) else _NOT_TORCH

    def visit_Assign(self, node: ast.Assign) -> None:
        value = self.visit(node.value)
        for target in node.targets:
            self._bind_target(target, value)

    def visit_withitem(self, node: ast.withitem) -> None:
        value = self.visit(node.context_expr)
        if node.optional_vars:
            self._bind_target(node.optional_vars, value)

    def _visit_loop(self, node: ast.For | ast.comprehension) -> None:
        self._bind_target(node.target, self._value_of_element(self.visit(node.iter)))
        for part in ("body", "orelse", "ifs"):
            for statement in getattr(node, part, ()):
                self.visit(statement)

    visit_For = visit_comprehension = _visit_loop

    def _bind_target(self, target: ast.expr, value: Value | None) -> None:
        if isinstance(target, ast.Name):
            self.variables[target.id] = value
        elif isinstance(target, (ast.Tuple, ast.List)):
            for element in target.elts:
                self._bind_target(element, self._value_of_element(value))
        elif isinstance(target, ast.Starred):
            self._bind_target(target.value, value)
        else:
            self.visit(target)

    def _value_of_element(self, value: Value | None) -> Value | None:
        return value if value in (_NOT_TORCH, _TENSOR) else None

    # -- scopes

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        for decorator in node.decorator_list:
            self.visit(decorator)
        self.variables[node.name] = None
        self._visit_scope(node.args, node.body)

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self._visit_scope(node.args, [node.body])

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        bases = [self.visit(base) for base in node.bases]
        own = next((base for base in bases if base), None)
        self.variables[node.name] = own
        outside = self.variables.get("self")
        self.variables["self"] = Value(own.name, instance=True) if own and own.name else None
        for statement in node.body:
            self.visit(statement)
        self.variables["self"] = outside

    def _visit_scope(self, arguments: ast.arguments, body: list[Any]) -> None:
        outside = dict(self.variables)
        for default in [*arguments.defaults, *filter(None, arguments.kw_defaults)]:
            self.visit(default)
        for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
            if argument.arg != "self":
                self.variables[argument.arg] = Value(FUNCTION, instance=True) if argument.arg == "ctx" else None
        for node in body:
            self.visit(node)
        self.variables = outside

    def _visit_generators_first(self, node: Any) -> None:
        outside = dict(self.variables)
        for generator in node.generators:
            self.visit(generator)
        for part in ("key", "value", "elt"):
            if hasattr(node, part):
                self.visit(getattr(node, part))
        self.variables = outside

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _visit_generators_first

    # -- expressions

    def visit_Name(self, node: ast.Name) -> Value | None:
        value = self.variables.get(node.id)
        if value and not value.instance:
            self._note_name(value.name, node)
        return value

    def visit_Attribute(self, node: ast.Attribute) -> Value | None:
        owner = self.visit(node.value)
        if owner == _NOT_TORCH:
            return owner
        if owner and not owner.instance and self.torch.ask(get_kind, owner.name) == "module":
            name = f"{owner.name}.{node.attr}"
            if node.attr.startswith("__") or not self.torch.ask(get_kind, name):
                return None
            self._note_name(name, node)
            return Value(name)
        own = self.torch.ask(find_in_class, owner.name, node.attr) if owner and owner.name else ""
        # a class that the page defines is known by its base class, and has attributes that the base has not
        found = own or (self.torch.ask(guess_owner, node.attr) if owner is None or owner.instance else "")
        if found:
            sure = bool(own) or (owner != _OTHER and self.torch.ask(is_of_one_class, node.attr))
            self._add_use(found, node, last_word=True, sure=sure)
        cls = _CLASS_OF.get(node.attr)
        return Value(cls, instance=True) if cls and found else None

    def visit_Call(self, node: ast.Call) -> Value | None:
        called = self.visit(node.func)
        for argument in [*node.args, *(keyword.value for keyword in node.keywords)]:
            self.visit(argument)
        if called == _NOT_TORCH or (isinstance(node.func, ast.Attribute) and node.func.attr in _LEAVE):
            return _NOT_TORCH
        if called is None or called.instance:
            return None
        if self.torch.ask(get_kind, called.name) == "class":
            return Value(called.name, instance=True)
        return {"tensor": _TENSOR, "other": _OTHER}.get(self.torch.ask(get_result, called.name))

    def visit_BinOp(self, node: ast.BinOp) -> Value | None:
        return _TENSOR if _TENSOR in [self.visit(node.left), self.visit(node.right)] else None

    def visit_Subscript(self, node: ast.Subscript) -> Value | None:
        value = self.visit(node.value)
        self.visit(node.slice)
        return self._value_of_element(value)

    def visit_Constant(self, node: ast.Constant) -> Value:
        return _NOT_TORCH

    def _note_name(self, name: str, node: ast.Name | ast.Attribute) -> None:
        if name and self.torch.ask(get_kind, name) not in ("", "module"):
            self._add_use(name, node, last_word=node.lineno != node.end_lineno)

    def _add_use(self, name: str, node: ast.Name | ast.Attribute, last_word: bool, sure: bool = True) -> None:
        """The parser counts bytes of UTF-8, and what follows counts characters."""
        line, end = (node.end_lineno or 1) - 1, node.end_col_offset or 0
        start = end - len(node.attr.encode()) if last_word and isinstance(node, ast.Attribute) else node.col_offset
        before = self.lines[line][:start].decode(errors="replace")
        words = self.lines[line][start:end].decode(errors="replace")
        self.found.add(Use(line, len(before), len(before) + len(words), name, sure))
