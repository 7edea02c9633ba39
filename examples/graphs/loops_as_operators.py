r"""
torch.cond, while_loop and scan: gradients of loops as operators
================================================================

.. index::
   single: torch.while_loop backward, wrong gradient
   single: lax.scan in PyTorch, torch.scan
   single: associative_scan gradient
   single: Could not extract specialized integer from data-dependent expression
   single: PendingUnbackedSymbolNotFound: Pending unbacked symbols
   single: Encountered aliasing during higher order op tracing

.. in-short::

   In PyTorch 2.13 to 2.15, the first derivative of ``scan`` is that of a Python loop. With ``torch.while_loop`` it is silently
   wrong if the start does not require a gradient. So let each floating-point start require one:

   .. code-block:: python

      h = torch.zeros(3, requires_grad=True)
      _, h = torch.while_loop(more, step, (torch.tensor(0), h))

   For a second derivative, write a Python loop. With ``scan``, ``torch.while_loop`` or ``torch.cond``, it is missing or wrong,
   without an error.
"""

# %%
# Three loops, the same loss, two gradients
# -----------------------------------------
# ``torch.compile`` unrolls a Python loop, so a long sequence takes long to compile (asked in `pytorch#97155
# <https://github.com/pytorch/pytorch/issues/97155>`__). A ``while`` that reads a tensor :ref:`breaks the graph
# <sphx_glr_gallery_errors_data_dependent_branching.py>`. A loop that is one operator avoids both. This is a recurrent network
# in three forms:

import pandas as pd
import torch
from torch._higher_order_ops import associative_scan, scan

torch.manual_seed(0)
x, w = torch.randn(6, 3) / 2, torch.ones(3, requires_grad=True)


def python_loop(h, w, x):
    for x_t in x:
        h = torch.tanh(w * h + x_t)
    return h


def with_while_loop(h, w, x):
    def more(t, h):
        return t < len(x)

    def step(t, h):
        x_t = x.index_select(0, t[None])[0]
        return t + 1, torch.tanh(w * h + x_t)

    return torch.while_loop(more, step, (torch.tensor(0), h))[1]


def with_scan(h, w, x):
    def step(h, x_t):
        h = torch.tanh(w * h + x_t)
        return h, h.clone()  # the next h, and a result to keep for this step

    return scan(step, h, x)[0]


# sphinx_gallery_start_ignore
import warnings

warnings.filterwarnings("ignore", ".*torch.jit", DeprecationWarning)  # by importing
_grads = []
# sphinx_gallery_end_ignore
for function in (python_loop, with_while_loop, with_scan):
    loss = function(torch.zeros(3), w, x).square().sum()
    (grad,) = torch.autograd.grad(loss, w, retain_graph=True)
    print(f"{function.__name__:<16}", f"{loss.item():.4f}", grad.numpy().round(4))
    # sphinx_gallery_start_ignore
    _grads.append(grad)
    # sphinx_gallery_end_ignore

# graph: loss -- Autograd has one node for all steps of scan

# sphinx_gallery_start_ignore
_known = tuple(map(int, torch.__version__.split(".")[:2])) < (2, 16)
assert torch.allclose(_grads[2], _grads[0], atol=1e-6)
assert not _known or (
    _grads[1][0] < 0 < _grads[0][0] and _grads[1][2] > 0 > _grads[0][2]
)
_before_last = python_loop(torch.zeros(3), w, x[:-1]).detach()
_last_step = python_loop(_before_last, w, x[-1:]).square().sum()
assert not _known or torch.allclose(_grads[1], torch.autograd.grad(_last_step, w)[0])
assert loss.grad_fn.next_functions[0][0].next_functions[0][0].name().startswith("Scan")
# sphinx_gallery_end_ignore

# %%
# The loss of ``torch.while_loop`` is right, its gradient is wrong, and no error is raised.

# %%
# Why: such an operator has its own backward
# ------------------------------------------
# Autograd sees one node. PyTorch captures one step, even without ``torch.compile``, and derives its backward. That runs once
# for each step, from the last to the first. If the start requires no gradient, the backward of ``torch.while_loop`` passes
# nothing to the step before, so only the last step counts.
#
# The rule: compare the gradients with those of a Python loop, for these operators are prototypes.
#
# .. how-measured:: For each operator and its Python loop, this code compares the gradients of the weight, or the gradients of
#    their squares.


def if_on_data(h, w, x):
    return torch.tanh(w * h) if x.sum() > 0 else torch.sin(w * h)


def with_cond(h, w, x):
    def if_positive(h):
        return torch.tanh(w * h)

    return torch.cond(x.sum() > 0, if_positive, lambda h: torch.sin(w * h), (h,))


def linear_loop(h, w, x):
    for x_t in x:
        h = w * h + x_t
    return h


def with_associative_scan(h, w, x):
    def combine(first, second):
        (a, b), (c, d) = first, second
        return a * c, b * c + d

    pairs = (w.repeat(len(x) + 1, 1), torch.cat([h[None], x]))
    return associative_scan(combine, pairs, dim=0, combine_mode="generic")[1][-1]


PAIRS = {
    "torch.cond": (if_on_data, with_cond),
    "torch.while_loop": (python_loop, with_while_loop),
    "scan": (python_loop, with_scan),
    "associative_scan": (linear_loop, with_associative_scan),
}


def first(function, start):
    loss = function(start, w, x).square().sum()
    return torch.autograd.grad(loss, w)[0]


def second(function, start):
    loss = function(start, w, x).square().sum()
    (grad,) = torch.autograd.grad(loss, w, create_graph=True)
    return (
        torch.autograd.grad(grad.square().sum(), w)[0] if grad.requires_grad else None
    )


def func_grad(function, start):
    return torch.func.grad(lambda w: function(start, w, x).square().sum())(w.detach())


def compare(python, operator, derivative, requires_grad):
    start = torch.ones(3, requires_grad=requires_grad)
    try:
        got = derivative(operator, start)
    except Exception as error:
        return type(error).__name__
    if got is None:
        return "no graph"
    return "right" if torch.allclose(got, derivative(python, start)) else "wrong"


# %%
# Does an operator agree with Python? A *constant start* requires no gradient. In the second derivative, the start requires one.

COLUMNS = {
    "gradient": (first, True),
    "constant start": (first, False),
    "second derivative": (second, True),
    "torch.func.grad": (func_grad, False),
}
table = pd.DataFrame(
    {
        column: {name: compare(*pair, *how) for name, pair in PAIRS.items()}
        for column, how in COLUMNS.items()
    }
)

# sphinx_gallery_start_ignore
_expected = {
    "torch.cond": ["right", "right", "no graph", "AssertionError"],
    "torch.while_loop": ["right", "wrong", "wrong", "AssertionError"],
    "scan": ["right", "right", "wrong", "AssertionError"],
    "associative_scan": ["right"] * 4,
}
assert not _known or {n: list(table.loc[n]) for n in table.index} == _expected
# sphinx_gallery_end_ignore
table

# %%
# - With ``create_graph=True``, ``torch.cond`` returns a gradient without a graph. A weight of the branch that is not taken gets
#   zeros instead of ``None``.
# - With dropout in a step, ``torch.cond`` and ``torch.while_loop`` draw a new mask in backward, so the gradient is wrong. That
#   of ``scan`` is right.
# - ``scan`` had wrong first derivatives in PyTorch 2.11 and 2.12 (`pytorch#184528
#   <https://github.com/pytorch/pytorch/issues/184528>`__).
# - ``associative_scan`` combines neighbors, then pairs of neighbors, and so on. With ``combine_mode="generic"`` it does so by
#   ordinary operations, so it has all derivatives. On 1-D input it can raise ``IndexError``: pass ``x[:, None]``.
# - The default, ``combine_mode="pointwise"``, needs CUDA or XPU. Gradients are reported to be wrong if you discard one of the
#   results (`pytorch#172568 <https://github.com/pytorch/pytorch/issues/172568>`__), and missing for tensors that the function
#   closes over (`pytorch#192971 <https://github.com/pytorch/pytorch/pull/192971>`__).
#
# For training, prefer ``scan``. These are the nodes of the graph that ``torch.compile`` captures, for 5 and for 10 steps:


def count(graph, inputs):
    print(f"{len(graph.graph.nodes):>4}", end="")
    return graph.forward


for function in (python_loop, with_scan):
    print(f"{function.__name__:<12}", end="")
    for steps in (5, 10):
        torch.compiler.reset()
        torch.compile(function, backend=count)(torch.zeros(3), w, torch.ones(steps, 3))
    print()

# sphinx_gallery_start_ignore
_scan_says, _half = [], torch.tensor(0.5, requires_grad=True)
for _given, _mode in ((x[:, :1], "generic"), (x[:, 0], "generic"), (x, "pointwise")):
    try:
        _scanned = associative_scan(
            lambda a, b: _half * a * b, _given[:4], dim=0, combine_mode=_mode
        )
        _looped = [_given[0]]
        for _x_t in _given[1:4]:
            _looped.append(_half * _looped[-1] * _x_t)
        _pair = [torch.autograd.grad(t[-1], _half)[0] for t in (_scanned, _looped)]
        _scan_says.append("right" if torch.allclose(*_pair) else "wrong")
    except (IndexError, RuntimeError, ValueError) as error:
        _scan_says.append(str(error))
assert _scan_says[0] == "right" and _scan_says[2] not in ("right", "wrong")
assert not _known or "select(): index 0 out of range" in _scan_says[1]
_a, _b = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
_loss = torch.cond(
    torch.tensor(True), lambda h: _a * h, lambda h: _b * h, (x[0],)
).sum()
assert not torch.autograd.grad(_loss, _b)[0].any()
_loss, _many, _drop = [], torch.ones(64), torch.nn.functional.dropout
_c = torch.tensor(2.0, requires_grad=True)
_loss.append(scan(lambda h, x_t: (_drop(_c * h), x_t * 1), _many, x[:1])[0].sum())
_loss.append(
    torch.cond(
        torch.tensor(True), lambda h: _drop(_c * h), lambda h: _c * h, (_many,)
    ).sum()
)
_start = (torch.tensor(0), torch.ones(64, requires_grad=True))
_loss.append(
    torch.while_loop(lambda t, h: t < 1, lambda t, h: (t + 1, _drop(_c * h)), _start)[
        1
    ].sum()
)
_right = [
    torch.allclose(torch.autograd.grad(loss, _c)[0], loss / 2, rtol=1e-4)
    for loss in _loss
]
assert _right[0] and (not _known or not any(_right[1:]))
# sphinx_gallery_end_ignore

# %%
# What people get wrong
# ---------------------
# **A loop that takes no step.** If the condition is false at once, ``torch.while_loop`` returns the start. Its gradient should
# be 1 then, but the backward of one step runs. ``torch.where`` corrects it:


def double_until_10(z):
    return torch.while_loop(lambda z: z < 10, lambda z: (2 * z,), (z,))[0]


z = torch.tensor(11.0, requires_grad=True)
y = double_until_10(z)
corrected = torch.where(z < 10, y, z)
for result in (y, corrected):
    (grad,) = torch.autograd.grad(result, z, retain_graph=True)
    print("value", result.item(), "  gradient", grad.item())

# sphinx_gallery_start_ignore
assert corrected == 11 == y and grad == 1
assert not _known or torch.autograd.grad(y, z)[0] == 2
# sphinx_gallery_end_ignore

# %%
# **Indexing with the counter.** While the step is captured, the counter ``t`` has no value, so ``x[t]`` raises. Write
# ``x.index_select(0, t[None])[0]``, as above:

raised = []
try:
    torch.while_loop(
        lambda t, h: t < len(x), lambda t, h: (t + 1, h + x[t]), (torch.tensor(0), x[0])
    )
except RuntimeError as error:
    raised.append(str(error))
    print(f"{type(error).__name__}: {raised[-1].splitlines()[0]}")

# sphinx_gallery_start_ignore
assert "Could not extract specialized" in raised[0] or "Pending unbacked" in raised[0]
# sphinx_gallery_end_ignore

# %%
# **Returning an input, or a tensor twice.** Both raise in a step or branch. Call ``clone()``:

try:
    scan(lambda h, x_t: (h + x_t, x_t), x[0], x)
except RuntimeError as error:
    raised.append(str(error))
    print(raised[-1].split("\n\n")[1].splitlines()[0])


# sphinx_gallery_start_ignore
def _twice(h, x_t):
    h = h + x_t
    return h, h


try:
    scan(_twice, x[0], x)
except RuntimeError as error:
    raised.append(str(error))
_said = "Encountered aliasing during higher order op tracing"
assert len(raised) == 3 and all(_said in text for text in raised[1:])
# sphinx_gallery_end_ignore

# %%
# **A function that is not associative.** ``associative_scan`` does not check. With ``tanh(a + b)``, it differs from a loop from
# the fourth result on:


def not_associative(a, b):
    return torch.tanh(a + b)


scanned = associative_scan(not_associative, x, dim=0, combine_mode="generic")
h, looped = x[0], [x[0]]
for x_t in x[1:]:
    h = not_associative(h, x_t)
    looped.append(h)
print((scanned - torch.stack(looped)).abs().amax(1))

# sphinx_gallery_start_ignore
_off = (scanned - torch.stack(looped)).abs().amax(1)
assert (_off[:3] < 1e-6).all() and (_off[3:] > 0.01).all()
# sphinx_gallery_end_ignore

# %%
# Exercise
# --------
# The loop below multiplies 1 by ``w = 2`` until 10 is reached. So it returns :math:`w^4`, which is 16. The start requires no
# gradient. What does autograd return for ``w``? Correct the program.
#
# .. solution::
#
# The derivative is :math:`4 w^3 = 32`, but only the last step counts: it multiplies 8 by ``w``, so autograd returns 8. Let the
# start require a gradient.

w = torch.tensor(2.0, requires_grad=True)


def power(start):
    return torch.while_loop(lambda z: z < 10, lambda z: (z * w,), (start,))[0]


(answer,) = torch.autograd.grad(power(torch.tensor(1.0)), w)
print("start without a gradient:", answer.item())
(right,) = torch.autograd.grad(power(torch.tensor(1.0, requires_grad=True)), w)
print("start with a gradient:   ", right.item())

# predict: answer.item() -- What is the gradient of ``w``?
assert right == 32

# sphinx_gallery_start_ignore
assert not _known or answer == 8
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_errors_data_dependent_branching.py`: ``torch.where`` and ``torch.cond`` instead of ``if``.
# - :ref:`sphx_glr_gallery_scale_gradients_under_compile.py`.
# - :ref:`sphx_glr_gallery_practice_rnn_in_chunks.py`: a Python loop whose backward stops after some steps.
# - :ref:`sphx_glr_gallery_practice_implicit_differentiation.py`: the gradient of a loop that converges, without its steps.
# - In PyTorch's reference: `torch.cond <https://docs.pytorch.org/docs/stable/higher_order_ops/cond.html>`__.
