r"""
Forward-mode AD in PyTorch: jvp and dual numbers
================================================

.. in-short::

   ``value, tangent = torch.func.jvp(f, (x,), (direction,))`` computes ``f(x)`` and how fast it changes when ``x`` moves in one
   direction, in one pass and without ``backward()``. It is the cheap way for few inputs and many outputs. For a training loss
   use ``backward()``, because ``jvp`` would need one direction for each number in the parameters. Trainable parameters make
   ``jvp`` record a graph as well. Unless you differentiate the value or the tangent, call ``jvp`` under ``torch.no_grad()``.
"""

# %%
# The problem: one input, many outputs
# ------------------------------------
# You have a position as a function of time, and you want the velocity. ``backward()`` gives the derivative of one output at a
# time. ``jvp`` gives those of all outputs at once: you say that the time moves with speed 1, and ``jvp`` returns how fast each
# output moves.

import math

import torch
import torch.autograd.forward_ad as fwAD
from torch.func import jvp
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention


def curve(t):
    return torch.stack([torch.cos(t), torch.sin(2 * t)])


t = torch.tensor(1.0)
position, velocity = jvp(curve, (t,), (torch.tensor(1.0),))
print("velocity at t = 1:", [round(v, 4) for v in velocity.tolist()])

# sphinx_gallery_start_ignore
moment = t.clone().requires_grad_()
rows = [
    torch.autograd.grad(y, moment, retain_graph=True)[0].item() for y in curve(moment)
]
assert torch.allclose(velocity, torch.tensor(rows))
assert torch.allclose(velocity, torch.tensor([-math.sin(1), 2 * math.cos(2)]))
# sphinx_gallery_end_ignore

# %%
# Two backward passes, one for each output, give the same two numbers.

# %%
# .. how-measured:: This code draws a curve, and the velocity as an arrow at twelve moments.

import matplotlib.pyplot as plt


def plot_velocities(curve):
    _, ax = plt.subplots(figsize=(7, 2.7), layout="constrained")
    ax.plot(*curve(torch.linspace(0, 2 * torch.pi, 200)), color="#94a3b8")
    for moment in torch.linspace(0.2, 5.96, 12):
        (x, y), (dx, dy) = jvp(curve, (moment,), (torch.tensor(1.0),))
        ax.arrow(x, y, 0.3 * dx, 0.3 * dy, width=0.012, color="#2563eb")
    ax.set(aspect="equal", xlabel="first output", ylabel="second output")
    ax.set_title("Each arrow is one call of jvp: both outputs at once")


# %%
# The velocity at twelve moments:

# figure: A curve in the shape of a lying eight. Twelve blue arrows start on it, and each points along the curve. The
#   arrows are short at the tops and bottoms of the two loops, where the point is slow, and longer everywhere else.
plot_velocities(curve)

# sphinx_gallery_start_ignore
_moments = torch.linspace(0.2, 5.96, 12)
_speeds = torch.stack([torch.sin(_moments), 2 * torch.cos(2 * _moments)]).norm(dim=0)
_slow = torch.sin(2 * _moments).abs() > 0.9  # at the tops and bottoms
assert _slow.sum() == 4 and _speeds[_slow].max() < 0.8 and _speeds[~_slow].min() > 1.5
# sphinx_gallery_end_ignore

# %%
# Why it works: dual numbers
# --------------------------
# A *dual number* is a pair: a value, and a *tangent* that says how fast the value moves. Each operation computes both. For a
# product the tangent follows the product rule, for a function the chain rule:


class Dual:
    def __init__(self, value, tangent=0.0):
        self.value, self.tangent = value, tangent

    def __mul__(self, other):
        tangent = self.tangent * other.value + self.value * other.tangent
        return Dual(self.value * other.value, tangent)

    def log(self):
        return Dual(math.log(self.value), self.tangent / self.value)

    def sin(self):
        return Dual(math.sin(self.value), math.cos(self.value) * self.tangent)


# %%
# The expression of :ref:`the first page <sphx_glr_gallery_graphs_first_graph.py>` is :math:`w = \log(x_1 x_2) \sin(x_2)`, at
# :math:`x_1 = 2` and :math:`x_2 = 3`. You want :math:`\partial w / \partial x_2`, so ``x2`` moves with speed 1 and ``x1``
# with speed 0.

x1, x2 = Dual(2.0, 0.0), Dual(3.0, 1.0)
a = x1 * x2
y1 = a.log()
y2 = x2.sin()
w = y1 * y2

steps = {"x1": x1, "x2": x2, "a = x1 * x2": a, "y1 = log(a)": y1, "y2 = sin(x2)": y2}
for name, dual in {**steps, "w = y1 * y2": w}.items():
    print(f"{name:<13} value {dual.value:8.5f}   tangent {dual.tangent:8.5f}")
assert math.isclose(w.tangent, -1.7267885, rel_tol=1e-7)

# sphinx_gallery_start_ignore
_x2 = torch.tensor(3.0, dtype=torch.float64, requires_grad=True)
(torch.log(2 * _x2) * torch.sin(_x2)).backward()
assert math.isclose(w.tangent, _x2.grad.item(), rel_tol=1e-12)
# sphinx_gallery_end_ignore

# %%
# The last tangent is the number that ``backward()`` finds for ``x2``.
#
# PyTorch does the same with tensors. ``make_dual`` returns a tensor with a tangent, and the operations below carry it to
# ``w``. ``jvp`` does this for you.

x1, x2 = torch.tensor(2.0), torch.tensor(3.0)

with fwAD.dual_level():
    moving = fwAD.make_dual(x2, torch.tensor(1.0))  # x2 itself has no tangent
    w = torch.log(x1 * moving) * torch.sin(moving)
    value, tangent = fwAD.unpack_dual(w)
    # sphinx_gallery_start_ignore
    assert fwAD.unpack_dual(x2).tangent is None
    # sphinx_gallery_end_ignore

print(f"value {value:.5f}, tangent {tangent:.5f}, grad_fn {w.grad_fn}")
print("tangent after the level:", fwAD.unpack_dual(w).tangent)

# sphinx_gallery_start_ignore
assert math.isclose(tangent.item(), -1.7267885, rel_tol=1e-6)
assert (
    not w.requires_grad and w.grad_fn is None and abs(value.item() - 0.25285309) < 1e-6
)
assert fwAD.unpack_dual(w).tangent is None
# sphinx_gallery_end_ignore

# %%
# There is no ``grad_fn``, because neither ``x1`` nor ``x2`` requires grad. When the level ends, ``w`` silently loses its
# tangent. So unpack it inside.

# %%
# When forward mode is cheaper than backward
# ------------------------------------------
# Forward mode along one input gives one *column* of the Jacobian: how all outputs move. Backward from one output gives one
# *row*. So columns are cheaper for few inputs, and rows for few outputs. Take networks whose inputs and outputs are 64
# together. ``jacfwd`` computes all columns, and ``jacrev`` all rows.
#
# .. how-measured:: This code counts the operations in matrix products, without those of the plain forward pass.

from torch.func import jacfwd, jacrev
from torch.utils.flop_counter import FlopCounterMode


def network(inputs, outputs):
    first, second = torch.randn(64, inputs), torch.randn(outputs, 64)
    return lambda x: second @ torch.tanh(first @ x)


torch.manual_seed(0)
inputs = [1, *range(4, 64, 4), 63]
cost = {jacfwd: [], jacrev: []}
for m in inputs:
    g, x = network(m, 64 - m), torch.randn(m)
    for way, operations in cost.items():
        with FlopCounterMode(display=False) as counter:
            way(g)(x)
        operations.append(counter.get_total_flops())


def plot_costs():
    _, ax = plt.subplots(figsize=(7, 3.4), layout="constrained")
    for way, label, color, style in [
        (jacfwd, "jacfwd: by columns", "#2563eb", "o-"),
        (jacrev, "jacrev: by rows", "#c2410c", "s--"),
    ]:
        ax.plot(inputs, cost[way], style, color=color, label=label)
    ax.set(xlabel="inputs (outputs = 64 - inputs)", ylabel="floating point operations")
    ax.yaxis.set_major_formatter("{x:,.0f}")
    ax.set_title("Cost of a full Jacobian: the shorter side decides")
    ax.legend(loc="upper center")


# %%
# The cost of ``jacfwd`` grows with the inputs, the cost of ``jacrev`` with the outputs:

# figure: Two straight lines over the number of inputs, from 1 to 63, where inputs and outputs are 64 together. The
#   cost of jacfwd rises, the cost of jacrev falls, and they cross at 32 inputs and 32 outputs.
plot_costs()

# sphinx_gallery_start_ignore
one_pass = cost[jacfwd][0]
assert cost[jacfwd] == [one_pass * m for m in inputs]
assert cost[jacrev] == [one_pass * (64 - m) for m in inputs]
with FlopCounterMode(display=False) as counter:
    network(1, 63)(torch.randn(1))
assert counter.get_total_flops() == 0  # the forward computation alone
assert cost[jacfwd][inputs.index(32)] == cost[jacrev][inputs.index(32)]
# sphinx_gallery_end_ignore

# %%
# A training loss is at the right end of this figure: each number in the parameters is an input, and there is one output.
# That is why training uses backward.

# %%
# What people get wrong
# ---------------------
# **Running a model under** ``jvp`` **without** ``no_grad()``. The parameters require grad, so the pass records a graph for
# ``backward()`` too, and saves tensors for it. ``no_grad()`` switches this off. The tangents are the same. (But leave it out
# where ``torch.func.grad`` differentiates the tangent: inside its function, ``no_grad()`` makes the tangent a constant.)

torch.manual_seed(0)
model = torch.nn.Sequential(
    torch.nn.Linear(4, 16), torch.nn.Tanh(), torch.nn.Linear(16, 2)
)
batch, direction = torch.randn(8, 4), torch.ones(8, 4)

_, recorded = jvp(model, (batch,), (direction,))
with torch.no_grad():
    _, plain = jvp(model, (batch,), (direction,))
print("without no_grad():", recorded.grad_fn is not None, "| with:", plain.grad_fn)

# sphinx_gallery_start_ignore
from torch.autograd.graph import saved_tensors_hooks

assert torch.equal(recorded, plain) and plain.any() and recorded.grad_fn is not None
sizes = []


def note(tensor):
    sizes.append(tensor.nbytes)
    return tensor


with saved_tensors_hooks(note, lambda tensor: tensor):
    jvp(model, (batch,), (direction,))
    assert sum(sizes) > 0
    sizes.clear()
    with torch.no_grad():
        assert all(t.grad_fn is None for t in jvp(model, (batch,), (direction,)))
    assert sizes == []
    jvp(lambda x: x.sin().sin(), (batch,), (direction,))  # nothing requires grad
    assert sizes == []
assert plain.grad_fn is None


def _slope_of_cube(x, recorded):
    with torch.set_grad_enabled(recorded):
        return jvp(lambda x: x**3, (x,), (torch.tensor(1.0),))[1]


_two = torch.tensor(2.0)
assert torch.func.grad(_slope_of_cube)(_two, True) == 12
assert torch.func.grad(_slope_of_cube)(_two, False) == 0
with torch.no_grad():  # around grad it does no harm
    assert torch.func.grad(lambda x: jvp(torch.exp, (x,), (x,))[1])(_two * 0) == 1
    _value = jvp(model, (batch,), (direction,))[0]
assert not _value.requires_grad and jvp(model, (batch,), (direction,))[0].requires_grad
model.requires_grad_(False)
assert jvp(model, (batch,), (direction,))[1].grad_fn is None  # nothing is trainable
model.requires_grad_(True)


def double_within(mode):
    def function(x):
        with mode():
            return x * 2

    return jvp(function, (torch.tensor(2.0),), (torch.tensor(1.0),))[1]


assert double_within(torch.no_grad) == 2 and double_within(torch.inference_mode) == 0
# sphinx_gallery_end_ignore

# %%
# **Dropping the tangent on the way.** ``detach()``, ``.data`` and ``item()`` drop the tangent, and so does ``x * 2`` under
# ``torch.inference_mode()`` inside the function. So the answer is silently 0, and 2 would be right:

for name, function in {
    "x * 2": lambda x: x * 2,
    "x.detach() * 2": lambda x: x.detach() * 2,
    "x.data * 2": lambda x: x.data * 2,
    "torch.tensor(x.item() * 2)": lambda x: torch.tensor(x.item() * 2),
}.items():
    print(f"{name:<27} {jvp(function, (t,), (torch.tensor(1.0),))[1]}")

# sphinx_gallery_start_ignore
for function, expected in [
    (lambda x: x * 2, 2),
    (lambda x: x.detach() * 2, 0),
    (lambda x: x.data * 2, 0),
    (lambda x: torch.tensor(x.item() * 2), 0),
]:
    assert jvp(function, (t,), (torch.tensor(1.0),))[1] == expected
assert jvp(lambda x: x + x.detach(), (t,), (torch.tensor(1.0),))[1] == 1  # right is 2
# sphinx_gallery_end_ignore

# %%
# **An operation without a forward formula.** The fused attention of the CPU has none, and the message names it. The plain
# implementation works:

q = torch.randn(1, 2, 4, 8)


def attention(q):
    return scaled_dot_product_attention(q, q, q)


try:
    jvp(attention, (q,), (q,))
except NotImplementedError as error:
    message = str(error)
    print(message.split(" because")[0])

with sdpa_kernel(SDPBackend.MATH):
    print("with MATH:", jvp(attention, (q,), (q,))[1].shape)

# sphinx_gallery_start_ignore
assert "does not support it because it has not been implemented yet" in message
assert "scaled_dot_product" in message
with sdpa_kernel(SDPBackend.MATH):
    small = 1e-3
    wide = q.double()
    _, exact = jvp(attention, (wide,), (wide,))
    both = attention(wide * (1 + small)) - attention(wide * (1 - small))
    assert torch.allclose(exact, both / (2 * small), atol=1e-4)
_layer = torch.nn.MultiheadAttention(8, 2, batch_first=True).eval()
_tokens = torch.randn(2, 4, 8)


def _tangent():
    return jvp(lambda x: _layer(x, x, x)[0], (_tokens,), (_tokens,))[1]


_raised, _recorded = [], _tangent()
with torch.no_grad():
    try:
        _tangent()
    except NotImplementedError as error:
        _raised.append("_native_multi_head_attention" in str(error))
_layer.requires_grad_(False)
try:
    _tangent()
except NotImplementedError as error:
    _raised.append("_native_multi_head_attention" in str(error))
torch.backends.mha.set_fastpath_enabled(False)
assert _raised == [True, True] and torch.allclose(_tangent(), _recorded)
with torch.no_grad():
    assert torch.allclose(_tangent(), _recorded)
_block = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
with torch.no_grad(), sdpa_kernel(SDPBackend.MATH):
    _works = jvp(_block, (_tokens,), (_tokens,))[1]
    torch.backends.mha.set_fastpath_enabled(True)
    try:
        jvp(_block, (_tokens,), (_tokens,))
    except NotImplementedError as error:
        _raised.append("_transformer_encoder_layer_fwd" in str(error))
assert _raised == [True] * 3 and _works.shape == _tokens.shape
# sphinx_gallery_end_ignore

# %%
# For a transformer in evaluation, ``MATH`` alone is too little: under ``no_grad()`` or with frozen parameters, PyTorch's layers
# can take a fast path without a formula. Switch it off as well: ``torch.backends.mha.set_fastpath_enabled(False)``.

# %%
# **A custom Function that has only a backward.** Forward mode needs its own formula.


class Exp(torch.autograd.Function):
    @staticmethod
    def forward(x):
        return torch.exp(x)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(output)
        ctx.save_for_forward(output)

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * ctx.saved_tensors[0]


one = torch.tensor(1.0)
try:
    jvp(Exp.apply, (one,), (one,))
except RuntimeError as error:
    message = str(error)
    print(f"{type(error).__name__}: {message[:84]} ...")

# sphinx_gallery_start_ignore
assert "jvp" in message
# sphinx_gallery_end_ignore

# %%
# Add a method ``jvp``. There, ``ctx.saved_tensors`` contains what ``save_for_forward`` saved in ``setup_context`` above.


class ExpWithJvp(Exp):
    @staticmethod
    def jvp(ctx, tangent):
        return tangent * ctx.saved_tensors[0]


value, tangent = jvp(ExpWithJvp.apply, (one,), (one,))
print(f"value {value:.4f}, tangent {tangent:.4f}")
assert value == tangent == torch.exp(one)


# sphinx_gallery_start_ignore
class SavedForBackwardOnly(ExpWithJvp):
    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(output)


missing = 0
try:
    jvp(SavedForBackwardOnly.apply, (one,), (one,))
except IndexError:
    missing = 1
assert missing == 1


def first_derivative(x):
    return jvp(ExpWithJvp.apply, (x,), (torch.ones_like(x),))[1]


assert jvp(first_derivative, (one,), (one,))[1] == 0  # right is e
assert torch.func.grad(first_derivative)(one) == torch.exp(one)


# sphinx_gallery_end_ignore

# %%
# For a second derivative, take ``torch.func.grad`` of this tangent. A second ``jvp`` around the first silently gives 0 instead
# of *e* (`pytorch#197867 <https://github.com/pytorch/pytorch/issues/197867>`__).

# %%
# Exercise
# --------
# ``jvp`` gave the velocity of ``curve``. Compute its acceleration, without recording a graph. What happens if you
# nest two ``dual_level`` blocks instead?
#
# .. solution::
#
# The velocity is a function of ``t``, so take the ``jvp`` of it. ``jvp`` can be nested, and ``dual_level`` cannot.


def velocity_at(t):
    return jvp(curve, (t,), (torch.ones_like(t),))[1]


velocity, acceleration = jvp(velocity_at, (t,), (torch.tensor(1.0),))
print("acceleration:", [round(v, 4) for v in acceleration.tolist()])
assert torch.allclose(acceleration, torch.tensor([-math.cos(1), -4 * math.sin(2)]))
assert acceleration.grad_fn is None

try:
    with fwAD.dual_level(), fwAD.dual_level():
        pass
except RuntimeError as error:
    message = str(error)
    print(f"RuntimeError: {message}")
assert "Nested forward mode AD is not supported" in message

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_differentiation_vector_jacobian_products.py`, the other direction.
# - In PyTorch's reference: `Forward-mode automatic differentiation
#   <https://docs.pytorch.org/docs/stable/autograd.html#forward-mode-automatic-differentiation>`__ and `torch.func.jvp
#   <https://docs.pytorch.org/docs/stable/generated/torch.func.jvp.html>`__.
