"""Which names of PyTorch a piece of code uses, and where: functions, classes, and the methods and attributes of its variables.

sphinx-gallery finds such names too, but it needs a run to know the class of a variable, and it leaves out variables within
functions. Here the code is parsed and not run. So a page whose code could not be run has its names too.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from .torch_api import FUNCTION, NODE, TENSOR, TorchNames

#: The class of an attribute's value. Without it, ``x.grad_fn.name`` would be taken for a tensor's ``name``.
_CLASS_OF = {"grad_fn": NODE, "grad": TENSOR, "device": "torch.device", "dtype": "torch.dtype", "shape": "torch.Size"}
#: Methods of a tensor that return something else than a tensor.
_LEAVE = {"numpy", "item", "tolist"}


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


def names(pieces: Iterable[str], torch: TorchNames) -> set[str]:
    """The names that the code of a page uses, given piece by piece in its order.

    >>> code = "from torch import nn\\nimport pandas\\nx = nn.Linear(2, 2).weight\\nx.detach()\\npandas.DataFrame().mean()"
    >>> sorted(names([code], TorchNames()))
    ['torch.Tensor.detach', 'torch.nn.Linear']
    """
    return {use.name for found in uses(pieces, torch) for use in found}


def uses(pieces: Iterable[str], torch: TorchNames) -> Iterator[list[Use]]:
    """What each piece uses, from its top to its end; nothing if it is not Python.

    A method is taken for a tensor's where the class of its variable is unknown: see ``TorchNames.of_variable``.

    >>> [[one, two]] = uses(["x = torch.exp(y)\\nx.sum()"], TorchNames())
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
            self.variables[alias.asname or name] = self._imported(name)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        for alias in node.names:
            self.variables[alias.asname or alias.name] = self._imported(f"{node.module}.{alias.name}")

    def _imported(self, name: str) -> Value:
        return Value(name) if name.partition(".")[0] == "torch" and self.torch.kind(name) else _NOT_TORCH

    def visit_Assign(self, node: ast.Assign) -> None:
        value = self.visit(node.value)
        for target in node.targets:
            self._bind(target, value)

    def visit_NamedExpr(self, node: ast.NamedExpr) -> Value | None:
        value = self.visit(node.value)
        self._bind(node.target, value)
        return value

    def visit_withitem(self, node: ast.withitem) -> None:
        value = self.visit(node.context_expr)
        if node.optional_vars:
            self._bind(node.optional_vars, value)

    def visit_For(self, node: ast.For) -> None:
        self._bind(node.target, self._element(self.visit(node.iter)))
        for statement in [*node.body, *node.orelse]:
            self.visit(statement)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        self._bind(node.target, self._element(self.visit(node.iter)))
        for condition in node.ifs:
            self.visit(condition)

    def _bind(self, target: ast.expr, value: Value | None) -> None:
        if isinstance(target, ast.Name):
            self.variables[target.id] = value
        elif isinstance(target, (ast.Tuple, ast.List)):
            for element in target.elts:
                self._bind(element, self._element(value))
        elif isinstance(target, ast.Starred):
            self._bind(target.value, value)
        else:
            self.visit(target)

    def _element(self, value: Value | None) -> Value | None:
        return value if value in (_NOT_TORCH, _TENSOR) else None

    # -- scopes

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        for decorator in node.decorator_list:
            self.visit(decorator)
        self.variables[node.name] = None
        self._inner(node.args, node.body)

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self._inner(node.args, [node.body])

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        bases = [self.visit(base) for base in node.bases]
        own = next((base for base in bases if base), None)
        self.variables[node.name] = own
        outside = self.variables.get("self")
        self.variables["self"] = Value(own.name, instance=True) if own and own.name else None
        for statement in node.body:
            self.visit(statement)
        self.variables["self"] = outside

    def _inner(self, arguments: ast.arguments, body: list[Any]) -> None:
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
            self._note(value.name, node)
        return value

    def visit_Attribute(self, node: ast.Attribute) -> Value | None:
        owner = self.visit(node.value)
        if owner == _NOT_TORCH:
            return owner
        if owner and not owner.instance and self.torch.kind(owner.name) == "module":
            name = f"{owner.name}.{node.attr}"
            if node.attr.startswith("__") or not self.torch.kind(name):
                return None
            self._note(name, node)
            return Value(name)
        own = self.torch.of_class(owner.name, node.attr) if owner else ""
        # a class that the page defines is known by its base class, and has attributes that the base has not
        found = own or (self.torch.of_variable(node.attr) if owner is None or owner.instance else "")
        if found:
            self._use(found, node, last_word=True, sure=bool(own) or self.torch.is_of_one_class(node.attr))
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
        if self.torch.kind(called.name) == "class":
            return Value(called.name, instance=True)
        makes_tensors = called.name.count(".") == 1 and called.name != "torch.load"  # torch.ones, torch.exp, ...
        return _TENSOR if makes_tensors else None

    def visit_BinOp(self, node: ast.BinOp) -> Value | None:
        return _TENSOR if _TENSOR in [self.visit(node.left), self.visit(node.right)] else None

    def visit_Subscript(self, node: ast.Subscript) -> Value | None:
        value = self.visit(node.value)
        self.visit(node.slice)
        return self._element(value)

    def visit_Constant(self, node: ast.Constant) -> Value:
        return _NOT_TORCH

    def _note(self, name: str, node: ast.Name | ast.Attribute) -> None:
        if name and self.torch.kind(name) not in ("", "module"):
            self._use(name, node, last_word=node.lineno != node.end_lineno)

    def _use(self, name: str, node: ast.Name | ast.Attribute, last_word: bool, sure: bool = True) -> None:
        """The parser counts bytes of UTF-8, and what follows counts characters."""
        line, end = (node.end_lineno or 1) - 1, node.end_col_offset or 0
        start = end - len(node.attr.encode()) if last_word and isinstance(node, ast.Attribute) else node.col_offset
        before = self.lines[line][:start].decode(errors="replace")
        words = self.lines[line][start:end].decode(errors="replace")
        self.found.add(Use(line, len(before), len(before) + len(words), name, sure))
