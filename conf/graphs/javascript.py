"""The rules that work element by element as functions of JavaScript, for figures whose leaves can be changed.

They are made of ``rules.RULES``, and so of what is tested against autograd; tests/rules/test_javascript.py runs them against
PyTorch, at ties and outside of domains too.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from .rules import RULES

#: Of a node, what its rule does not say of every number: what autograd does with a NaN, an infinite gradient, a power of 0.
AT_THE_EDGES: dict[str, tuple[str, ...]] = {
    "AbsBackward0": ("grad * (0 if a != a else sign(a))",),
    "MaximumBackward0": (
        "0 if a < b else grad / (1 + (a == b))",
        "0 if b < a else grad / (1 + (a == b))",
    ),
    "MinimumBackward0": (
        "0 if a > b else grad / (1 + (a == b))",
        "0 if b > a else grad / (1 + (a == b))",
    ),
    "PowBackward0": ("0 if n == 0 else grad * n * (rsqrt(a) if n == 0.5 else a**(n - 1))",),
    "ReluBackward0": ("0 if y <= 0 else grad",),
    "SoftplusBackward0": ("grad if a > 20 else grad * sigmoid(a)",),
}

#: A forward formula for such numbers: PyTorch takes the root where C's pow would take −∞ for a number.
_FORWARD_AT_THE_EDGES = {"PowBackward0": "sqrt(a) if n == 0.5 else a**n"}

#: Nodes whose rules are about whole tensors.
_OF_TENSORS = {
    *("AddmmBackward0", "DotBackward0", "MeanBackward0", "MmBackward0", "MvBackward0", "SumBackward0", "TBackward0"),
    *("CloneBackward0", "ViewBackward0"),
}
ELEMENTWISE = {node: rules for node, rules in RULES.items() if node not in _OF_TENSORS}

FORWARD, BACKWARD = ("a", "b", "n", "m"), ("grad", "y", "a", "b", "n", "m")
"""What the functions take, in this order."""

_MATH = {"abs", "cos", "exp", "log", "log1p", "sign", "sin", "sqrt", "tan", "tanh"}
_WRITTEN = {
    "clamp": lambda a, low, high: f"Math.min(Math.max({a},{low}),{high})",
    "maximum": lambda a, b: f"Math.max({a},{b})",
    "minimum": lambda a, b: f"Math.min({a},{b})",
    "relu": lambda a: f"Math.max({a},0)",
    "rsqrt": lambda a: f"1/Math.sqrt({a})",
    "sigmoid": lambda a: f"1/(1+Math.exp(-{a}))",
    "softplus": lambda a: f"({a}>20?{a}:Math.log1p(Math.exp({a})))",
    "reciprocal": lambda a: f"1/{a}",
}
_OPERATORS = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.Pow: "**",
    **{ast.Gt: ">", ast.GtE: ">=", ast.Lt: "<", ast.LtE: "<=", ast.Eq: "===", ast.NotEq: "!=="},
}


def functions() -> str:
    """An object of JavaScript: for each node its forward formula, and what its backward sends to each input.

    >>> functions().splitlines()[3]
    'ClampBackward1:[(a,b,n,m)=>Math.min(Math.max(a,n),m),(g,y,a,b,n,m)=>a<=m?(a>=n?g:0):0],'
    """
    return (
        "{\n"
        + "".join(f"{node.removesuffix('Backward0')}:[{','.join(_functions(node))}],\n" for node in ELEMENTWISE)
        + "}"
    )


def _functions(node: str) -> Iterator[str]:
    forward, *backward = ELEMENTWISE[node]
    yield _function(_FORWARD_AT_THE_EDGES.get(node, forward), FORWARD)
    for rule in AT_THE_EDGES.get(node, backward):
        yield _function(rule, BACKWARD)


def _function(rule: str, letters: tuple[str, ...]) -> str:
    used = {name.id for name in ast.walk(ast.parse(rule)) if isinstance(name, ast.Name)}
    last = max(place for place, letter in enumerate(letters) if letter in used)
    return f"({','.join(letters[: last + 1]).replace('grad', 'g')})=>{expression(rule)}"


def expression(rule: str) -> str:
    """A rule as an expression of JavaScript. Where a gradient is multiplied by a condition, autograd masks it: ∞ · 0 is no NaN.

    >>> expression("grad * (a >= n) / 2"), expression("-grad * sin(a)")
    ('(a>=n?g:0)/2', '(-g)*Math.sin(a)')

    :raises ValueError: for what there is no JavaScript for.
    """
    return _bare(_written(ast.parse(rule, mode="eval").body))


def _written(node: ast.expr) -> str:
    match node:
        case ast.Name(id="grad"):
            return "g"
        case ast.Name(id=name) if name in BACKWARD:
            return name
        case ast.Constant(value=number) if type(number) in (int, float):
            return repr(number)
        case ast.UnaryOp(op=ast.USub(), operand=what):
            return f"(-{_written(what)})"
        case ast.BinOp(left=left, op=ast.Mult(), right=ast.Compare() as condition):
            return f"({_bare(_written(condition))}?{_written(left)}:0)"
        case ast.BinOp(left=left, op=operator, right=right) if type(operator) in _OPERATORS:
            return f"({_written(left)}{_OPERATORS[type(operator)]}{_written(right)})"
        case ast.Compare(left=left, ops=[operator], comparators=[right]):
            return f"({_written(left)}{_OPERATORS[type(operator)]}{_written(right)})"
        case ast.IfExp(test=test, body=body, orelse=other):
            return f"({_bare(_written(test))}?{_written(body)}:{_written(other)})"
        case ast.Call(func=ast.Name(id=name), args=arguments) if name in _MATH:
            return f"Math.{name}({','.join(_bare(_written(one)) for one in arguments)})"
        case ast.Call(func=ast.Name(id=name), args=arguments) if name in _WRITTEN:
            return f"({_WRITTEN[name](*map(_written, arguments))})"
        case ast.Call(func=ast.Attribute(value=what, attr=name), args=[]) if name in _WRITTEN:
            return f"({_WRITTEN[name](_written(what))})"
    raise ValueError(f"there is no JavaScript for {ast.unparse(node)}")


def _bare(text: str) -> str:
    """``text`` without the brackets around all of it.

    >>> _bare("((a+b)*c)"), _bare("(a)+(b)")
    ('(a+b)*c', '(a)+(b)')
    """
    depth = 0
    for place, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if not depth and place < len(text) - 1:
            return text
    return text[1:-1] if text.startswith("(") else text
