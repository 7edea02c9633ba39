"""What a node computes forward, and what its backward sends, as a reader would write it: the rule of each common operation.

A rule is Python on the operation's inputs ``a``, ``b``, ``c``, the numbers ``n``, ``m`` that it was called with, its result
``y`` and the gradient ``grad`` that arrives, in the order of the node's edges. Every rule is tested against autograd
(tests/graphs/test_rules.py).
"""

from __future__ import annotations

#: Node: (the operation, what its backward sends to each input).
RULES: dict[str, tuple[str, ...]] = {
    "AbsBackward0": ("abs(a)", "grad * sign(a)"),
    "AddBackward0": ("a + b", "grad", "grad"),
    "AddmmBackward0": ("a + b @ c", "grad.sum_to_size(a.shape)", "grad @ c.T", "b.T @ grad"),
    "ClampBackward1": ("clamp(a, n, m)", "grad * (a >= n) * (a <= m)"),
    "CloneBackward0": ("a.clone()", "grad"),
    "CosBackward0": ("cos(a)", "-grad * sin(a)"),
    "DivBackward0": ("a / b", "grad / b", "-grad * a / b**2"),
    "DotBackward0": ("dot(a, b)", "grad * b", "grad * a"),
    "ExpBackward0": ("exp(a)", "grad * y"),
    "LogBackward0": ("log(a)", "grad / a"),
    "Log1PBackward0": ("log1p(a)", "grad / (a + 1)"),
    "MaximumBackward0": ("maximum(a, b)", "grad * (a >= b) / (1 + (a == b))", "grad * (b >= a) / (1 + (a == b))"),
    "MeanBackward0": ("a.mean()", "grad.expand_as(a) / a.numel()"),
    "MinimumBackward0": ("minimum(a, b)", "grad * (a <= b) / (1 + (a == b))", "grad * (b <= a) / (1 + (a == b))"),
    "MmBackward0": ("mm(a, b)", "grad @ b.T", "a.T @ grad"),
    "MulBackward0": ("a * b", "grad * b", "grad * a"),
    "MulBackward1": ("a * n", "grad * n"),
    "MvBackward0": ("mv(a, b)", "outer(grad, b)", "a.T @ grad"),
    "NegBackward0": ("-a", "-grad"),
    "PowBackward0": ("a**n", "grad * n * a**(n - 1)"),
    "ReciprocalBackward0": ("a.reciprocal()", "-grad * y**2"),
    "ReluBackward0": ("relu(a)", "grad * (a > 0)"),
    "RsubBackward1": ("n - a", "-grad"),
    "RsqrtBackward0": ("rsqrt(a)", "-grad * y**3 / 2"),
    "SigmoidBackward0": ("sigmoid(a)", "grad * y * (1 - y)"),
    "SinBackward0": ("sin(a)", "grad * cos(a)"),
    "SoftplusBackward0": ("softplus(a)", "grad * sigmoid(a)"),
    "SqrtBackward0": ("sqrt(a)", "grad / (2 * y)"),
    "SubBackward0": ("a - b", "grad", "-grad"),
    "SumBackward0": ("a.sum()", "grad.expand_as(a)"),
    "TBackward0": ("a.t()", "grad.t()"),
    "TanBackward0": ("tan(a)", "grad * (1 + y**2)"),
    "TanhBackward0": ("tanh(a)", "grad * (1 - y**2)"),
    "ViewBackward0": ("a.view(...)", "grad.view_as(a)"),
}
