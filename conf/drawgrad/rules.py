"""What a node computes forward, and what its backward sends, as a reader would write it: the rule of each common operation.

A rule is Python on the operation's inputs ``a``, ``b``, ``c``, the numbers ``n``, ``m`` that it was called with, its result
``y`` and the gradient ``grad`` that arrives, in the order of the node's edges. Every rule is tested against autograd
(tests/graphs/test_rules.py). PyTorch is not imported here, only asked for its version.

Of the rules that work element by element functions of JavaScript are made, for figures whose leaves can be changed. They are
tested against PyTorch too, at ties and outside of domains.
"""

from __future__ import annotations

import ast
import re
from importlib.metadata import version

#: At a bound that is a number, ``clamp`` passes no gradient from 2.14 on (pytorch#191142).
_INSIDE = (">", "<") if tuple(map(int, re.findall(r"\d+", version("torch"))[:2])) >= (2, 14) else (">=", "<=")

#: Node: (the operation, what its backward sends to each input).
RULES: dict[str, tuple[str, ...]] = {
    "AbsBackward0": ("abs(a)", "grad * sign(a)"),
    "AddBackward0": ("a + b", "grad", "grad"),
    "AddmmBackward0": ("a + b @ c", "grad.sum_to_size(a.shape)", "grad @ c.T", "b.T @ grad"),
    "ClampBackward1": ("clamp(a, n, m)", "grad * (a {} n) * (a {} m)".format(*_INSIDE)),
    "CloneBackward0": ("a.clone()", "grad"),
    "CosBackward0": ("cos(a)", "-grad * sin(a)"),
    "DivBackward0": ("a / b", "grad / b", "-grad * a / b**2"),
    "DotBackward0": ("dot(a, b)", "grad * b", "grad * a"),
    "ExpBackward0": ("exp(a)", "grad * y"),
    "LogBackward0": ("log(a)", "grad / a"),
    "MaximumBackward0": ("maximum(a, b)", "grad * ((a > b) + (a == b) / 2)", "grad * ((a < b) + (a == b) / 2)"),
    "MeanBackward0": ("a.mean()", "grad.expand_as(a) / a.numel()"),
    "MinimumBackward0": ("minimum(a, b)", "grad * ((a < b) + (a == b) / 2)", "grad * ((a > b) + (a == b) / 2)"),
    "MmBackward0": ("mm(a, b)", "grad @ b.T", "a.T @ grad"),
    "MulBackward0": ("a * b", "grad * b", "grad * a"),
    "MulBackward1": ("a * n", "grad * n"),
    "NegBackward0": ("-a", "-grad"),
    "PowBackward0": ("a**n", "grad * n * a**(n - 1)"),
    "PowBackward1": ("a**b", "grad * b * a**(b - 1)", "grad * y * log(a)"),
    "PowBackward2": ("n**a", "grad * y * log(n)"),
    "ReciprocalBackward0": ("reciprocal(a)", "-grad * y**2"),
    "ReluBackward0": ("relu(a)", "grad * (a > 0)"),
    "RsubBackward1": ("n - a", "-grad"),
    "SigmoidBackward0": ("sigmoid(a)", "grad * y * (1 - y)"),
    "SinBackward0": ("sin(a)", "grad * cos(a)"),
    "SqrtBackward0": ("sqrt(a)", "grad / (2 * y)"),
    "SubBackward0": ("a - b", "grad", "-grad"),
    "SumBackward0": ("a.sum()", "grad.expand_as(a)"),
    "TBackward0": ("a.t()", "grad.t()"),
    "TanhBackward0": ("tanh(a)", "grad * (1 - y**2)"),
    "ViewBackward0": ("a.view(...)", "grad.view_as(a)"),
    "WhereBackward0": ("where(condition, a, b)", "where(condition, grad, 0)", "where(condition, 0, grad)"),
}


# -- As JavaScript -------------------------------------------------------------------------------

_TO_LARGER = ("0 if a < b else grad / 2 if a == b else grad", "0 if a > b else grad / 2 if a == b else grad")
#: Of a node, what its rule does not say of every number: what autograd does with a NaN, an infinite gradient, a power of 0,
#: and in which order it computes: of ``x / x`` nothing remains.
AT_THE_EDGES: dict[str, tuple[str, ...]] = {
    "AbsBackward0": ("grad * (0 if a != a else sign(a))",),
    "DivBackward0": ("grad / b", "-grad * (a / b / b)"),
    "MaximumBackward0": _TO_LARGER,
    "MinimumBackward0": _TO_LARGER[::-1],
    "PowBackward0": ("0 if n == 0 else grad * (n * power_of(a, n - 1))",),
    "PowBackward1": (
        "0 if b == 0 else grad * (b * power(a, b - 1))",
        "grad * ((0 if a == 0 else y * log(a)) if b >= 0 else y * log(a))",
    ),
    "PowBackward2": ("grad * ((0 if n == 0 else y * log(n)) if a >= 0 else y * log(n))",),
    "ReluBackward0": ("0 if y <= 0 else grad",),
    "SigmoidBackward0": ("grad * (1 - y) * y",),
}

#: A forward formula for such numbers.
_FORWARD_AT_THE_EDGES = {
    "PowBackward0": "power_of(a, n)",
    "PowBackward1": "power(a, b)",
    "PowBackward2": "power(n, a)",
}

#: Nodes whose rules are about whole tensors.
_OF_TENSORS = {"Addmm", "Clone", "Dot", "Mean", "Mm", "Sum", "T", "View"}
ELEMENTWISE = {node: rules for node, rules in RULES.items() if node.removesuffix("Backward0") not in _OF_TENSORS}

#: What the functions take, in this order.
_LETTERS = {"y", "a", "b", "n", "m"}
_MATH = {"abs", "cos", "exp", "log", "sign", "sin", "sqrt", "tanh"}
_WRITTEN = {
    "clamp": lambda a, low, high: f"Math.min(Math.max({a},{low}),{high})",
    "maximum": lambda a, b: f"Math.max({a},{b})",
    "minimum": lambda a, b: f"Math.min({a},{b})",
    "power": lambda a, b: f"pow({a},{b})",
    # of a number PyTorch takes the root where pow of C would give ∞ for −∞
    "power_of": lambda a, n: f"{n}===.5?Math.sqrt({a}):{n}===-.5?1/Math.sqrt({a}):pow({a},{n})",
    "reciprocal": lambda a: f"1/{a}",
    "relu": lambda a: f"{a}<0?0:{a}",
    "sigmoid": lambda a: f"1/round(1+round(Math.exp(-{a})))",  # of float32, as PyTorch: of −100 it is 0
    "where": lambda condition, a, b: f"{condition}?{a}:{b}",
}
_OPERATORS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Pow: "**"}
_COMPARISONS = {ast.Gt: ">", ast.GtE: ">=", ast.Lt: "<", ast.LtE: "<=", ast.Eq: "==", ast.NotEq: "!="}
_OPERATORS |= _COMPARISONS


def write_javascript() -> str:
    """An object of JavaScript: for each node its forward formula, and what its backward sends to each input.

    >>> write_javascript().splitlines()[11]
    'MulBackward1:[(a,b,n,m)=>(a*n),(g,y,a,b,n,m)=>(g*n)],'
    """
    lines = []
    for node, (forward, *backward) in ELEMENTWISE.items():
        written = [f"(a,b,n,m)=>{write_expression(_FORWARD_AT_THE_EDGES.get(node, forward))}"]
        written += [f"(g,y,a,b,n,m)=>{write_expression(rule)}" for rule in AT_THE_EDGES.get(node, backward)]
        lines.append(f"{node.removesuffix('Backward0')}:[{','.join(written)}],\n")
    # what has no backward: the condition of ``where``
    lines += [f"'{sign}':[(a,b)=>a{sign}b],\n" for sign in _COMPARISONS.values()]
    return f"{{\n{''.join(lines)}}}"


def write_expression(rule: str) -> str:
    """A rule as an expression of JavaScript. Where a gradient is multiplied by a condition, autograd masks it: ∞ · 0 is no NaN.

    >>> write_expression("grad * (a >= n) / 2"), write_expression("-grad * sin(a)")
    ('(((a>=n)?g:0)/2)', '((-g)*Math.sin(a))')

    :raises ValueError: for what there is no JavaScript for.
    """
    return _write_node(ast.parse(rule, mode="eval").body)


def _write_node(node: ast.expr) -> str:
    match node:
        case ast.Name(id="grad" | "condition" as name):
            return {"grad": "g", "condition": "n"}[name]
        case ast.Name(id=name) if name in _LETTERS:
            return name
        case ast.Constant(value=number) if type(number) in (int, float):
            return repr(number)
        case ast.UnaryOp(op=ast.USub(), operand=what):
            return f"(-{_write_node(what)})"
        case ast.BinOp(left=left, op=ast.Mult(), right=ast.Compare() as condition):
            return f"({_write_node(condition)}?{_write_node(left)}:0)"
        case ast.BinOp(left, sign, right) | ast.Compare(left, [sign], [right]) if type(sign) in _OPERATORS:
            return f"({_write_node(left)}{_OPERATORS[type(sign)]}{_write_node(right)})"
        case ast.IfExp(test=test, body=body, orelse=other):
            return f"({_write_node(test)}?{_write_node(body)}:{_write_node(other)})"
        case ast.Call(func=ast.Name(id=name), args=arguments) if name in _MATH:
            return f"Math.{name}({','.join(_write_node(one) for one in arguments)})"
        case ast.Call(func=ast.Name(id=name), args=arguments) if name in _WRITTEN:
            return f"({_WRITTEN[name](*map(_write_node, arguments))})"
    raise ValueError(f"there is no JavaScript for {ast.unparse(node)}")
