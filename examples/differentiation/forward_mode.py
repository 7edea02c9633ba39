r"""
Forward-mode differentiation: dual numbers and jvp
==================================================

Forward mode computes derivatives along with the values. There is no second pass, and if nothing requires a gradient,
no graph is recorded and nothing is saved. For a model, put ``torch.no_grad()`` around it: tangents pass through.
It answers one question at a time: how does the result change when the inputs move in one direction? This
page builds it by hand, runs it in PyTorch, and shows when one pass of it replaces many backward passes.
"""

# %%
# Dual numbers by hand
# --------------------
# A *dual number* is a pair: a value, and a *tangent* that says how fast the value moves. Every operation computes
# both. For a product that is the product rule, for a function the chain rule. Three operations are enough here:

import math
import textwrap

import matplotlib.pyplot as plt
import torch
import torch.autograd.forward_ad as fwAD
from torch.autograd import grad
from torch.autograd.graph import saved_tensors_hooks
from torch.func import jacfwd, jacrev, jvp
from torch.utils.flop_counter import FlopCounterMode


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
# The expression of :ref:`the first page <sphx_glr_gallery_graphs_first_graph.py>`, at :math:`x_1 = 2` and
# :math:`x_2 = 3`. The question is :math:`\partial w / \partial x_2`, so ``x2`` moves with speed 1 and ``x1`` stands
# still.

x1, x2 = Dual(2.0, 0.0), Dual(3.0, 1.0)
a = x1 * x2
y1 = a.log()
y2 = x2.sin()
w = y1 * y2

steps = {"x1": x1, "x2": x2, "a = x1 * x2": a, "y1 = log(a)": y1, "y2 = sin(x2)": y2}
for name, dual in {**steps, "w = y1 * y2": w}.items():
    print(f"{name:<13} value {dual.value:8.5f}   tangent {dual.tangent:8.5f}")
assert math.isclose(w.tangent, -1.7267885, rel_tol=1e-7)

# %%
# Each line uses the lines above it and nothing else. The last tangent is the derivative that backward finds for
# ``x2``, where two paths meet and their products add. Here the sum is made by the product rule, in the last step.

# %%
# The same in PyTorch
# -------------------
# ``make_dual`` gives a tensor a tangent, and the operations carry it along. It lives inside a ``dual_level``.

x1, x2 = torch.tensor(2.0), torch.tensor(3.0)

with fwAD.dual_level():
    moving = fwAD.make_dual(x2, torch.tensor(1.0))
    w = torch.log(x1 * moving) * torch.sin(moving)
    value, tangent = fwAD.unpack_dual(w)

print(f"value {value:.5f}, tangent {tangent:.5f}")
print("requires_grad:", w.requires_grad, "  grad_fn:", w.grad_fn)
assert math.isclose(tangent.item(), -1.7267885, rel_tol=1e-6)

# sphinx_gallery_start_ignore
assert (
    not w.requires_grad and w.grad_fn is None and abs(value.item() - 0.25285309) < 1e-6
)
# sphinx_gallery_end_ignore

# %%
# There is no ``grad_fn``: no graph, because neither ``x1`` nor ``x2`` requires a gradient. Count what 20 operations on
# 1000 numbers save: recorded for backward, in forward mode, and in forward mode with an input that requires a
# gradient. The tangents of that input are recorded too:


def twenty_sines(x):
    for _ in range(20):
        x = torch.sin(x)
    return x


sizes = []


def note(tensor):
    sizes.append(tensor.nbytes)
    return tensor


x = torch.ones(1000)
with saved_tensors_hooks(note, lambda tensor: tensor):
    twenty_sines(x.clone().requires_grad_())
    backward_mode = sum(sizes)
    sizes.clear()
    with fwAD.dual_level():
        twenty_sines(fwAD.make_dual(x, torch.ones(1000)))
        forward_mode = sum(sizes)
        twenty_sines(fwAD.make_dual(x.clone().requires_grad_(), torch.ones(1000)))
        both = sum(sizes)

print(f"saved for backward:                {backward_mode:>7,} bytes")
print(f"in forward mode:                   {forward_mode:>7,} bytes")
print(f"in forward mode, x requires grad:  {both:>7,} bytes")
assert backward_mode == 20 * 1000 * 4 and forward_mode == 0 and both > 3 * backward_mode

# sphinx_gallery_start_ignore
_model = torch.nn.Sequential(
    torch.nn.Linear(4, 16), torch.nn.Tanh(), torch.nn.Linear(16, 2)
)
_input = torch.ones(8, 4)
sizes.clear()
with saved_tensors_hooks(note, lambda tensor: tensor):
    _recorded = jvp(_model, (_input,), (_input,))
    assert sum(sizes) > 0 and all(t.grad_fn is not None for t in _recorded)
    sizes.clear()
    with torch.no_grad():
        _plain = jvp(_model, (_input,), (_input,))
    assert sizes == [] and all(t.grad_fn is None for t in _plain)
assert torch.equal(_plain[1], _recorded[1]) and _plain[1].any()
# sphinx_gallery_end_ignore

# %%
# jvp: a function and a direction
# -------------------------------
# ``torch.func.jvp`` is the same as a function. It takes the inputs and the direction in which they move, and returns
# the value and :math:`J t`, the Jacobian times the direction. With :math:`t = (0, 1)` it asks about ``x2`` alone,
# with :math:`t = (1, 0)` about ``x1``, and with :math:`t = (3, -2)` about both at once.


def f(x1, x2):
    return torch.log(x1 * x2) * torch.sin(x2)


for t1, t2 in [(0.0, 1.0), (1.0, 0.0), (3.0, -2.0)]:
    _, tangent = jvp(f, (x1, x2), (torch.tensor(t1), torch.tensor(t2)))
    print(f"direction ({t1:g}, {t2:g}): {tangent:.5f}")

# sphinx_gallery_start_ignore
_leaves = [torch.tensor(2.0, requires_grad=True), torch.tensor(3.0, requires_grad=True)]
f(*_leaves).backward()
assert abs(_leaves[0].grad - 0.07056) < 1e-5 and abs(_leaves[1].grad + 1.72679) < 1e-5
_g1, _g2 = math.sin(3) / 2, math.sin(3) / 3 + math.log(6) * math.cos(3)
assert math.isclose(tangent.item(), 3 * _g1 - 2 * _g2, rel_tol=1e-6)
for _t in [(0.0, 1.0), (1.0, 0.0)]:
    _, _d = jvp(f, (x1, x2), tuple(map(torch.tensor, _t)))
    assert math.isclose(_d.item(), _t[0] * _g1 + _t[1] * _g2, rel_tol=1e-6)
# sphinx_gallery_end_ignore

# %%
# The third answer is 3 times the second minus 2 times the first: a derivative along a direction is linear in the
# direction. One backward pass would have given both partial derivatives. One forward pass gives one number.

# %%
# When one pass beats many
# ------------------------
# One forward-mode pass gives one *column* of the Jacobian: all outputs, one input direction. One backward pass gives
# one *row*: all inputs, one output. A curve has one input and many outputs, and there forward mode wins:


def curve(t):
    return torch.stack([torch.cos(t), torch.sin(2 * t), t**2])


t = torch.tensor(1.0)
position, velocity = jvp(curve, (t,), (torch.tensor(1.0),))
print("one forward pass: ", [round(v, 4) for v in velocity.tolist()])

moment = t.clone().requires_grad_()
rows = [grad(y, moment, retain_graph=True)[0] for y in curve(moment)]
print(f"{len(rows)} backward passes:", [round(row.item(), 4) for row in rows])
assert torch.allclose(velocity, torch.stack(rows))

# %%
# For a full Jacobian the shorter side decides. Take a network whose inputs and outputs are 64 together, and count the
# arithmetic that ``jacfwd`` (all columns) and ``jacrev`` (all rows) do in matrix products.


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

one_pass = cost[jacfwd][0]
assert cost[jacfwd] == [one_pass * m for m in inputs]
assert cost[jacrev] == [one_pass * (64 - m) for m in inputs]
print(f"1 input, 63 outputs: jacfwd {cost[jacfwd][0]:,}, jacrev {cost[jacrev][0]:,}")
print(f"63 inputs, 1 output: jacfwd {cost[jacfwd][-1]:,}, jacrev {cost[jacrev][-1]:,}")

# sphinx_gallery_start_ignore
with FlopCounterMode(display=False) as _counter:
    network(1, 63)(torch.randn(1))
assert _counter.get_total_flops() == 0  # the forward computation alone
# sphinx_gallery_end_ignore

# %%
# The assertions say it exactly: ``jacfwd`` costs one pass for each input, ``jacrev`` one for each output, and a pass
# of either costs the same. The counter leaves out products of a matrix and a vector, so the forward computation
# itself, one more pass for both, is not in the numbers.

# figure: Two straight lines over the number of inputs, from 1 to 63, where inputs and outputs are 64 together. The
#   cost of jacfwd rises, the cost of jacrev falls, and they cross at 32 inputs and 32 outputs.
figure, ax = plt.subplots(figsize=(7, 3.4), layout="constrained")
for way, label, color, style in [
    (jacfwd, "jacfwd: by columns", "#2563eb", "o-"),
    (jacrev, "jacrev: by rows", "#c2410c", "s--"),
]:
    ax.plot(inputs, cost[way], style, color=color, label=label)
ax.set(xlabel="inputs (outputs = 64 - inputs)", ylabel="floating point operations")
ax.yaxis.set_major_formatter("{x:,.0f}")
ax.set_title("Cost of a full Jacobian: the shorter side decides")
ax.legend(loc="upper center")

# sphinx_gallery_start_ignore
assert cost[jacfwd][inputs.index(32)] == cost[jacrev][inputs.index(32)]
# sphinx_gallery_end_ignore

# %%
# A training loss lies at the right end of this figure: as many inputs as there are parameters, and one output. That
# is why training uses backward. Forward mode is for few inputs, for one direction, and inside :ref:`Hessian-vector
# products <sphx_glr_gallery_differentiation_jacobian_and_hessian.py>`.

# %%
# What people get wrong
# ---------------------
# **Asking for the tangent too late.** When the level ends, the tangents are gone. There is no error, only ``None``,
# and the value is still there.

with fwAD.dual_level():
    y = torch.sin(fwAD.make_dual(x2, torch.tensor(1.0)))
    inside = fwAD.unpack_dual(y).tangent
print(f"inside: {inside:.5f}, after: {fwAD.unpack_dual(y).tangent}")
assert fwAD.unpack_dual(y).tangent is None and inside == torch.cos(x2)

# %%
# **Taking no_grad for a switch of forward mode.** It switches off recording for *backward*. Tangents pass through it.
# ``detach()`` is what stops them.

with fwAD.dual_level():
    moving = fwAD.make_dual(x2, torch.tensor(1.0))
    with torch.no_grad():
        under_no_grad = fwAD.unpack_dual(moving * 2).tangent
    detached = fwAD.unpack_dual(moving.detach() * 2).tangent
print("under no_grad:", under_no_grad, "  detached:", detached)
assert under_no_grad == 2 and detached is None

# %%
# **A Function that has only a backward.** A custom Function with ``backward`` says nothing about forward mode.


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
except (NotImplementedError, RuntimeError) as error:
    print(textwrap.fill(f"{type(error).__name__}: {error}", 88))
    assert "jvp" in str(error)

# %%
# It needs a ``jvp``, and what that reads has to be saved with ``save_for_forward``. The built-in operations have one,
# with exceptions; where it is missing, the message names the operation.


class ExpWithJvp(Exp):
    @staticmethod
    def jvp(ctx, tangent):
        return tangent * ctx.saved_tensors[0]


value, tangent = jvp(ExpWithJvp.apply, (one,), (one,))
print(f"value {value:.4f}, tangent {tangent:.4f}")
assert value == tangent == torch.exp(one)

# sphinx_gallery_start_ignore
_points = torch.arange(4.0)[:, None]
try:
    with fwAD.dual_level():
        torch.pdist(fwAD.make_dual(_points, torch.ones(4, 1)))
    _message = ""
except NotImplementedError as error:
    _message = str(error)
assert "forward AD with _pdist_forward that does not support it" in _message
# sphinx_gallery_end_ignore

# %%
# Exercise
# --------
# ``jvp`` gave the velocity of ``curve``. Compute its acceleration, without recording a graph. What happens if you
# nest two ``dual_level`` blocks instead?
#
# .. solution::
#
# The velocity is a function of ``t`` like any other, so take the ``jvp`` of it. ``torch.func`` keeps the two levels
# apart. ``dual_level`` has one level only.


def velocity_at(t):
    return jvp(curve, (t,), (torch.ones_like(t),))[1]


velocity, acceleration = jvp(velocity_at, (t,), (torch.tensor(1.0),))
print("acceleration:", [round(v, 4) for v in acceleration.tolist()])
expected = torch.tensor([-math.cos(1), -4 * math.sin(2), 2.0])
assert torch.allclose(acceleration, expected)

try:
    with fwAD.dual_level(), fwAD.dual_level():
        pass
except RuntimeError as error:
    print(f"RuntimeError: {error}")
    assert "Nested forward mode AD is not supported" in str(error)

# %%
# See also
# --------
# - Before: :ref:`sphx_glr_gallery_differentiation_jacobian_and_hessian.py`, where ``jacfwd`` and ``jvp`` are used.
# - Next: :ref:`sphx_glr_gallery_differentiation_inplace_and_versions.py`, what a recorded graph has to guard against.
# - :ref:`sphx_glr_gallery_differentiation_vector_jacobian_products.py`, the other direction.
# - In PyTorch's reference: `Forward-mode automatic differentiation
#   <https://docs.pytorch.org/docs/stable/autograd.html#forward-mode-automatic-differentiation>`__ and `torch.func.jvp
#   <https://docs.pytorch.org/docs/stable/generated/torch.func.jvp.html>`__.
