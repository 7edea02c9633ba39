r"""
torch._dynamo.exc.Unsupported: Data-dependent branching
=======================================================

.. index::
   ! single: torch.compile graph break, fullgraph=True fails at an if
   ! single: Could not guard on data-dependent expression
   ! single: print or item() inside a compiled function
   ! single: how to find graph breaks

.. in-short::

   A Python ``if`` or ``while`` reads a value from a tensor, but ``torch.compile`` records your code before there are values.
   Choose with ``torch.where``, before the division, root or logarithm.

   .. code-block:: diff

        norm = x.norm()
      - if norm > 1:
      -     x = x / norm
      + x = x / torch.where(norm > 1, norm, 1)

   **Not this:** leaving out ``fullgraph=True`` and looking no further. The function is now compiled in two pieces, with Python
   between them, and not at all if the ``if`` is in a loop.
"""

# %%
# The code that raises it
# -----------------------

import torch

# sphinx_gallery_start_ignore
# isort: split
import contextlib
import io
import logging

raised = []
try:
    # sphinx_gallery_end_ignore
    @torch.compile(fullgraph=True, backend="eager")
    def clip(x):
        norm = x.norm()
        if norm > 1:
            x = x / norm
        return x

    clip(torch.ones(4))
# sphinx_gallery_start_ignore
except torch._dynamo.exc.Unsupported as error:
    raised.append(str(error))
    print(f"torch._dynamo.exc.Unsupported: {error}".partition("\n\n")[0])
assert len(raised) == 1 and "in clip, code: if norm > 1:" in raised[0]
assert "Hint: Use `torch.cond`" in raised[0]
assert "https://meta-pytorch.github.io/compile-graph-break-site/gb/gb0170" in raised[0]


def _compiled(function, *inputs):
    """What a function returns when it is compiled whole, or what it says."""
    torch._dynamo.reset()
    try:
        return torch.compile(function, fullgraph=True, backend="eager")(*inputs)
    except RuntimeError as error:
        return str(error)


def _raises(x):
    if x.isnan().any():
        raise ValueError("it is NaN")
    return x * 2


_one = torch.ones(3)
assert "Data-dependent branching" in _compiled(_raises, _one)
_buffer = torch.tensor(2)
_said = _compiled(lambda x: x[::2] if _buffer > 1 else x, _one)
assert "Data-dependent branching" in _said
_number = 2
_said = _compiled(lambda x: x[::2] if _number > 1 else x, _one)
assert torch.equal(_said, _one[:2])
_said = _compiled(lambda x, at: x[::2] if at[-1] > 1 else x, _one, torch.arange(3))
assert "Data-dependent branching" in _said
assert torch.equal(_compiled(lambda x, n: x[::2] if n > 1 else x, _one, 2), _one[::2])
_layer, _slopes = torch.nn.Linear(3, 3), []


def _skip(x, draw):
    if draw < 0.5:
        x = _layer(x)
    return x


assert "Data-dependent branching" in _compiled(lambda x: _skip(x, torch.rand(())), _one)
for _way in (
    _skip,
    lambda x, draw: torch.where(draw < 0.5, _layer(x), x),
    lambda x, draw: torch.cond(draw < 0.5, _layer, lambda x: x.clone(), (x,)),
):
    torch._dynamo.reset()
    _layer.weight.grad = None
    _leaf = torch.ones(3, requires_grad=True)
    torch.compile(_way, backend="aot_eager")(_leaf, torch.tensor(0.9)).sum().backward()
    _slopes.append(_layer.weight.grad)
assert _slopes[0] is None  # Adam skips None, and not 0
assert not _slopes[1].any() and not _slopes[2].any()
_attend = torch.nn.functional.scaled_dot_product_attention
_query = torch.randn(1, 4, 3)
_said = _attend(_query, _query, _query, attn_mask=torch.ones(4, 4, dtype=torch.bool))
assert torch.allclose(_said, _attend(_query, _query, _query))
_said = _attend(_query, _query, _query, is_causal=True)
_ones = torch.ones(4, 4, dtype=torch.bool)
assert not torch.allclose(_said, _attend(_query, _query, _query, attn_mask=_ones))
assert torch.allclose(_said, _attend(_query, _query, _query, attn_mask=_ones.tril()))


class _Ready(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("ready", torch.tensor(False))
        self.register_buffer("scale", torch.ones(3))

    def forward(self, x):
        if not self.ready:
            self.scale.copy_(1 / x.std(0))
            self.ready.fill_(True)
        return x * self.scale


assert "Data-dependent branching" in _compiled(_Ready(), _query[0])
with torch.compiler.set_stance("force_eager"):
    assert torch.equal(_compiled(_raises, _one), _one * 2)
torch._dynamo.reset()
_plain = _Ready()
_broken = torch.compile(_Ready(), backend="aot_eager")
for _ in range(3):
    _query = torch.randn(4, 3)
    assert torch.allclose(_broken(_query), _plain(_query))
torch._dynamo.reset()
# sphinx_gallery_end_ignore

# %%
# The message links to `PyTorch's page about this graph break
# <https://meta-pytorch.github.io/compile-graph-break-site/gb/gb0170.html>`__, and ends with the line of code:
#
# .. list-table::
#    :header-rows: 1
#    :widths: 52 48
#
#    * - the line
#      - what to do
#    * - ``if norm > 1:``, on a result
#      - ``torch.where``, below
#    * - ``if x.isnan().any(): raise ...``
#      - Check for NaN outside of the compiled function.
#    * - ``if (mask == 0).any():``, to save work
#      - Leave out the ``if``: a mask of ones changes nothing. If the other case is ``is_causal=True``, make the mask causal.
#    * - ``if self.stride > 1:``, on a buffer with a number
#      - Keep a Python number instead. If it changes, as in ``if not self.ready:``, leave out ``fullgraph=True``.
#    * - ``if pos[-1] >= size:``, on positions or lengths
#      - Pass the last position as a Python number.
#    * - ``if torch.rand(()) < p:``, ``if chosen.any():``, to skip a layer or an expert
#      - Leave out ``fullgraph=True``. With ``torch.where`` or ``torch.cond``, Adam moves the skipped weights, too.
#    * - a line of a library
#      - Call it outside, or leave out ``fullgraph=True``. If the library compiles by itself, write
#        ``torch.compiler.set_stance("force_eager")`` in front, or for vLLM ``enforce_eager=True``.
#
# Why
# ---
# ``torch.compile`` runs your function once with tensors that have a shape and a type but no values, and records the operations.
# At ``if norm > 1`` it would need the value. Without ``fullgraph=True`` it ends the graph there, lets Python decide, and begins
# another graph: a *graph break*. With ``fullgraph=True`` it raises.
#
# How to find graph breaks
# ------------------------
# ``torch._dynamo.explain`` runs the function once, and counts the graphs of this call:


def with_if(x):
    norm = x.norm()
    if norm > 1:
        x = x / norm
    return x


found = torch._dynamo.explain(with_if)(torch.ones(4))
print("graphs:", found.graph_count, "  breaks:", found.graph_break_count)
for reason in found.break_reasons:
    print("at:", reason.user_stack[-1].line)

# sphinx_gallery_start_ignore
assert found.graph_count == 2 and found.graph_break_count == 1
assert found.break_reasons[0].user_stack[-1].line == "if norm > 1:"


def _in_a_loop(x):
    for _ in range(2):
        x = x.sin()
        if x.sum() > 1:
            x = x * 2
    return x


assert torch._dynamo.explain(_in_a_loop)(torch.ones(4)).graph_count == 0
# sphinx_gallery_end_ignore

# %%
# In a large program, set ``TORCH_LOGS=graph_breaks``.
#
# The fix
# -------
# Let ``torch.where`` choose the divisor:


def with_where(x):
    norm = x.norm()
    x = x / torch.where(norm > 1, norm, 1)
    return x


clip = torch.compile(with_where, fullgraph=True, backend="eager")
print(clip(torch.ones(4)), clip(torch.full((4,), 0.1)))

# sphinx_gallery_start_ignore
for _x in (torch.ones(4), torch.full((4,), 0.1), torch.zeros(4), torch.tensor([])):
    _results = []
    for _f in (with_if, clip):
        _leaf = _x.clone().requires_grad_()
        _y = _f(_leaf)
        (_grad,) = torch.autograd.grad(_y.square().sum() + _y.sum(), _leaf)
        _results.append((_y, _grad))
    assert torch.allclose(_results[0][0], _results[1][0])
    assert torch.allclose(_results[0][1], _results[1][1])
    assert _grad.isfinite().all()
# a root of squares has no gradient at 0, which the if never computes
_slopes = []
for _f in (
    lambda x, norm: x / norm if norm > 1 else x,
    lambda x, norm: x / torch.where(norm > 1, norm, 1),
):
    for _length in (torch.Tensor.norm, lambda x: x.square().sum().sqrt()):
        _zero = torch.zeros(4, requires_grad=True)
        _f(_zero, _length(_zero)).sum().backward()
        _slopes.append(_zero.grad.isnan().any().item())
assert _slopes == [False, False, False, True]
# torch.where around the division has a NaN in its gradient at 0
_zero = torch.zeros(4, requires_grad=True)
_norm = _zero.norm()
torch.where(_norm > 1, _zero / _norm, _zero).sum().backward()
assert _zero.grad.isnan().all()
# sphinx_gallery_end_ignore

# %%
# .. how-measured:: This code draws the operations of each recorded graph.

import matplotlib.pyplot as plt


def plot_graphs(functions):
    _, ax = plt.subplots(figsize=(7, 1.7), layout="constrained")
    for name, function in functions.items():
        left = 0
        graphs = torch._dynamo.explain(function)(torch.ones(4)).graphs
        for graph, color in zip(graphs, ("#2563eb", "#c2410c"), strict=False):
            called = [node.target for node in graph.graph.nodes if "call" in node.op]
            names = [getattr(target, "__name__", target) for target in called]
            ax.barh(name, len(names), left=left, color=color, height=0.6)
            middle = left + len(names) / 2
            text = "   ".join(names)
            ax.text(middle, name, text, ha="center", va="center", color="white")
            left += len(names) + 0.6
    ax.text(2.3, "if", "Python", ha="center", va="center", rotation=90, fontsize=8)
    ax.invert_yaxis()
    ax.set(xlabel="operations", title="The graphs that torch.compile records")
    ax.set_xticks(range(5))


# %%
# What is recorded, before and after:

# figure: Two rows. With if: a graph of two operations, Python, a graph of one. With where: one graph of four operations.
plot_graphs({"if": with_if, "torch.where": with_where})

# sphinx_gallery_start_ignore
assert torch._dynamo.explain(with_where)(torch.ones(4)).graph_count == 1
# sphinx_gallery_end_ignore

# %%
# If one case is expensive, use ``torch.cond``, which runs one. Each case is a function. It may not return its own input, so
# return a copy:


@torch.compile(fullgraph=True, backend="eager")
def clip(x):
    return torch.cond(
        x.norm() > 1,
        lambda x: x / x.norm(),
        lambda x: x.clone(),
        (x,),
    )


print(clip(torch.ones(4)), clip(torch.full((4,), 0.1)))

# sphinx_gallery_start_ignore
for _x in (torch.ones(4), torch.full((4,), 0.1), torch.zeros(4)):
    _grads = []
    for _f in (clip, with_if):
        _leaf = _x.clone().requires_grad_()
        _grads += torch.autograd.grad(_f(_leaf).square().sum() + _f(_leaf).sum(), _leaf)
    assert torch.allclose(clip(_x), with_if(_x)) and torch.allclose(*_grads)
_said = []
try:
    torch.compile(
        lambda x: torch.cond(x.norm() > 1, lambda x: x / x.norm(), lambda x: x, (x,)),
        fullgraph=True,
        backend="eager",
    )(torch.ones(4))
except torch._dynamo.exc.UncapturedHigherOrderOpError as error:
    _said.append(str(error))
assert len(_said) == 1 and "do not support aliasing" in _said[0]


def _halve(x):
    while x.norm() > 1:
        x = x / 2
    return x


def _loop(x):
    return torch.while_loop(lambda x: x.norm() > 1, lambda x: (x / 2,), (x,))[0]


_said = []
try:
    torch.compile(_halve, fullgraph=True, backend="eager")(torch.ones(4))
except torch._dynamo.exc.Unsupported as error:
    _said.append(str(error))
assert len(_said) == 1 and _said[0].startswith("Data-dependent branching")
for _n in (0.1, 1.0, 9.0):
    _result = torch.compile(_loop, fullgraph=True, backend="eager")(
        torch.full((4,), _n)
    )
    assert torch.equal(_result, _halve(torch.full((4,), _n)))
_w, _slopes = torch.tensor(2.0, requires_grad=True), []


def _grow(z):
    while z < 10:
        z = z * _w
    return z


def _grow_loop(z):
    return torch.while_loop(lambda z: z < 10, lambda z: (z * _w,), (z,))[0]


for _f in (_grow, torch.compile(_grow_loop, fullgraph=True, backend="aot_eager")):
    _slopes += torch.autograd.grad(_f(torch.tensor(1.0)), _w)
assert _slopes[0] == 32
assert _slopes[1] != 32 or not torch.__version__.startswith("2.13.")
# sphinx_gallery_end_ignore

# %%
# For a ``while`` without training, there is ``torch.while_loop``. Its gradients :ref:`can be wrong
# <sphx_glr_gallery_graphs_loops_as_operators.py>`.
#
# Other messages with the same cause
# ----------------------------------
# **item(), bool() or float() in the condition**, and in ``torch.export`` a plain ``if``. Use ``torch.where`` without them:

# sphinx_gallery_start_ignore
raised = []
try:
    # sphinx_gallery_end_ignore
    @torch.compile(fullgraph=True, backend="eager")
    def clip(x):
        norm = x.norm()
        return x / norm if norm.item() > 1 else x

    clip(torch.ones(4))
# sphinx_gallery_start_ignore
except torch._dynamo.exc.UserError as error:
    raised.append(str(error))
    print(f"torch._dynamo.exc.UserError: {error}".partition("\n")[0])
assert len(raised) == 1 and "Could not guard on data-dependent expression" in raised[0]
for _read in (
    bool,
    lambda v: float(v) > 0,
    lambda v: v.item() > 0,
):
    torch._dynamo.reset()
    try:
        torch.compile(
            lambda x, read=_read: x if read(x.norm()[None] - 1) else -x,
            fullgraph=True,
            backend="eager",
        )(torch.ones(4))
    except torch._dynamo.exc.UserError as error:
        raised.append(str(error))
assert len(raised) == 4
assert all("Could not guard on data-dependent expression" in text for text in raised)


class _If(torch.nn.Module):
    def forward(self, x):
        return x / x.norm() if x.norm() > 1 else x


def _checked(x, check=True):
    chosen = x[x > 0]
    if check:
        torch._check(chosen.shape[0] != 0)
    if chosen.shape[0] == 0:
        return x.sum()
    return chosen.sum()


_calls = (
    lambda: torch.export.export(_If(), (torch.ones(4),), strict=False),
    lambda: torch.compile(_checked, fullgraph=True, backend="eager")(_one, False),
    lambda: torch.compile(_checked, fullgraph=True, backend="eager")(_one),
    lambda: torch.compile(_checked, fullgraph=True, backend="eager")(-_one),
)
_said = []
logging.disable(logging.WARNING)  # torch.export logs and prints its graph
for _call in _calls:
    torch._dynamo.reset()
    with contextlib.redirect_stderr(io.StringIO()):
        try:
            _said.append(_call())
        except Exception as error:
            _said.append(str(error))
logging.disable(logging.NOTSET)
assert all("guard on data-dependent expression" in text for text in _said[:2])
assert _said[2] == 3 and "Runtime assertion failed" in _said[3]
# sphinx_gallery_end_ignore

# %%
# If it speaks of a size, as of ``x[mask]``, and you know that the size is not 0, say so first:
# ``torch._check(size != 0)``. It raises in a call where this is false.
#
# **print in the function.** Return the value, and print it outside:

# sphinx_gallery_start_ignore
raised = []
try:
    # sphinx_gallery_end_ignore
    @torch.compile(fullgraph=True, backend="eager")
    def double(x):
        print("the sum is", x.sum())
        return x * 2

    double(torch.ones(4))
# sphinx_gallery_start_ignore
except torch._dynamo.exc.Unsupported as error:
    raised.append(str(error))
    print(f"torch._dynamo.exc.Unsupported: {error}".partition("\n  Hint")[0])
assert len(raised) == 1 and "builtin operator `print`" in raised[0]
# sphinx_gallery_end_ignore

# %%
# What not to do
# --------------
# **Do not put the division inside of torch.where.** At zero, ``torch.where(norm > 1, x / norm, x)`` has the right value and a
# gradient of NaN, because autograd differentiates both cases. So has the fix above after ``norm = x.square().sum().sqrt()``:
# write ``x.norm()``.
#
# See also
# --------
# - :ref:`sphx_glr_gallery_errors_nan_in_backward.py`, for the NaN of ``torch.where``.
# - :ref:`sphx_glr_gallery_errors_not_a_single_element.py`: an ``if`` on a tensor with several elements.
# - In PyTorch's reference: `graph breaks
#   <https://docs.pytorch.org/docs/stable/user_guide/torch_compiler/compile/programming_model.common_graph_breaks.html>`__ and
#   `torch.cond <https://docs.pytorch.org/docs/stable/higher_order_ops/cond.html>`__.
