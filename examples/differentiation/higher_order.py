r"""
Second derivatives with create_graph=True
=========================================

.. in-short::

   ``(g,) = torch.autograd.grad(y, x, create_graph=True)`` returns a gradient that you can differentiate again. Use it when a
   loss contains a gradient: a gradient penalty, a differential equation, learning through an update step. Without it, the
   gradient is a constant, often without an error. With it, fused attention and a model compiled with ``torch.compile`` raise an
   error.
"""

# %%
# A loss that contains a gradient
# -------------------------------
# You train the critic of a GAN: real samples should score higher than fake ones. A *gradient penalty* keeps its output from
# becoming too steep: its gradient with respect to the input should have the length 1. To train the weights, PyTorch must
# differentiate that gradient:

import math
import warnings

import torch
import torch.nn.functional as F
from torch import nn
from torch.func import functional_call
from torch.nn.attention import SDPBackend, sdpa_kernel


def train_critic(create_graph):
    torch.manual_seed(0)
    critic = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 1))
    optimizer = torch.optim.Adam(critic.parameters(), lr=0.01)
    for _ in range(200):
        real, fake = torch.randn(64, 2) + 2, torch.randn(64, 2)
        between = torch.lerp(real, fake, torch.rand(64, 1))
        x = between.requires_grad_()
        y = critic(x).sum()
        (g,) = torch.autograd.grad(y, x, create_graph=create_graph)
        penalty = ((g.flatten(1).norm(dim=1) - 1) ** 2).mean()  # images, too
        loss = critic(fake).mean() - critic(real).mean() + 10 * penalty
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return g.norm(dim=1).mean().item()


for create_graph in (True, False):
    slope = train_critic(create_graph)
    print(f"create_graph={create_graph!s:<5}  mean slope {slope:.1f}")

    # sphinx_gallery_start_ignore
    assert abs(slope - 1) < 0.3 if create_graph else slope > 30
# sphinx_gallery_end_ignore

# %%
# **Without create_graph, the gradient has the same value, but it is a constant.** The penalty trains nothing, and because of
# the other terms there is no error. So write ``assert g.requires_grad`` below the call.
#
# With one weight, you can check it by hand:

w = torch.tensor(0.5, requires_grad=True)
x = torch.tensor(3.0, requires_grad=True)

y = w * x**2
(g,) = torch.autograd.grad(y, x, create_graph=True)
penalty = (g - 1) ** 2

# graph: penalty -- The gradient g was computed from w and x, so the penalty has paths to both

# %%
# The graph contains the backward pass that computed ``g``. It uses ``w``, so ``w`` gets a gradient. By hand, :math:`g = 2wx`,
# and :math:`\frac{\partial}{\partial w}(g - 1)^2 = 2(g - 1) \cdot 2x`.

penalty.backward()
by_hand = 2 * (g.item() - 1) * 2 * x.item()
print(f"g = {g.item()}   w.grad = {w.grad.item()}   by hand {by_hand}")
assert w.grad.item() == by_hand == 24

# sphinx_gallery_start_ignore
(g,) = torch.autograd.grad(w * x**2, x)
raised = []
try:
    ((g - 1) ** 2).backward()
except RuntimeError as error:
    raised.append(str(error))
assert g == 3 and len(raised) == 1
assert (
    raised[0]
    == "element 0 of tensors does not require grad and does not have a grad_fn"
)
# sphinx_gallery_end_ignore

# %%
# Why it works
# ------------
# With ``create_graph=True`` the computation of the gradient is recorded, so the gradient usually has a ``grad_fn``. This loop
# differentiates the last result in each turn:

x = torch.tensor(5.0, requires_grad=True)
derivative = x**3
for order in (1, 2, 3):
    (derivative,) = torch.autograd.grad(derivative, x, create_graph=True)
    print(f"order {order}: {derivative.item():>4}   {derivative.grad_fn.name()}")

# sphinx_gallery_start_ignore
assert derivative == 6
for _linear in (3 * x, x + x, x.clone()):  # the same for any x: no grad_fn
    (_slope,) = torch.autograd.grad(_linear, x, create_graph=True)
    assert _slope.grad_fn is None and not _slope.requires_grad
(_fourth,) = torch.autograd.grad(derivative, x, create_graph=True)
assert _fourth == 0 and not _fourth.requires_grad
# sphinx_gallery_end_ignore

# %%
# If ``f`` works entry by entry, as ``tanh`` does, differentiate the sum of ``f(x)``. You get the derivative for each entry:

x = torch.tensor([-1.0, 0.5, 2.0], requires_grad=True)
(first,) = torch.autograd.grad(torch.tanh(x).sum(), x, create_graph=True)
(second,) = torch.autograd.grad(first.sum(), x)

t = torch.tanh(x)
print("tanh'':", second)
assert torch.allclose(second, -2 * t * (1 - t**2))

# %%
# Learn through an update step
# ----------------------------
# Meta-learning looks for weights that are good *after* one step of gradient descent, so the step is part of the loss. But
# PyTorch's optimizers record nothing by default. So compute the new parameters yourself, and run the module with them through
# ``torch.func.functional_call``:

torch.manual_seed(0)
model, inputs = nn.Linear(1, 1), torch.randn(8, 1)
target = 3 * inputs + 1
params = dict(model.named_parameters())

inner = F.mse_loss(model(inputs), target)
gradients = torch.autograd.grad(inner, list(params.values()), create_graph=True)
step = dict(zip(params, gradients, strict=True))
new = {name: params[name] - 0.1 * step[name] for name in params}

outer = F.mse_loss(functional_call(model, new, (inputs,)), target)
outer.backward()
print(f"loss before the step {inner.item():.3f}, after it {outer.item():.3f}")
print("gradient through the step:", model.weight.grad)

# sphinx_gallery_start_ignore
for _optimizer in ("SGD", "Adam", "AdamW", "NAdam", "RMSprop", "Adagrad", "Rprop"):
    _model = nn.Linear(1, 1)
    _model(inputs).sum().backward()
    _version = _model.weight._version
    getattr(torch.optim, _optimizer)(_model.parameters(), lr=0.1).step()
    assert _model.weight._version > _version and _model.weight.is_leaf
assert outer < inner and torch.equal(params["weight"], model.weight)


def _after_a_step(weight, bias):
    residual = weight * inputs + bias - target
    weight = weight - 0.1 * 2 * (residual * inputs).mean()
    bias = bias - 0.1 * 2 * residual.mean()
    return (weight * inputs + bias - target).square().mean()


_w, _b, _h = model.weight.detach().double(), model.bias.detach().double(), 1e-4
_slope = (_after_a_step(_w + _h, _b) - _after_a_step(_w - _h, _b)) / (2 * _h)
assert abs(_slope - model.weight.grad.item()) < 1e-4
_direct = torch.autograd.grad(F.mse_loss(model(inputs), target), model.weight)[0]
assert abs(_direct - model.weight.grad).item() > 0.1
# sphinx_gallery_end_ignore

# %%
# What it costs in memory
# -----------------------
# The recorded backward pass saves tensors for the next one.
#
# .. how-measured:: It counts the bytes of the tensors that nodes have saved and not released, each storage once, without the
#    weights.

import weakref

import matplotlib.pyplot as plt


class Saved:
    def __init__(self, tensor):
        self.tensor = tensor.detach()


class Meter(torch.autograd.graph.saved_tensors_hooks):
    def __init__(self, parameters=()):
        self.known = {p.untyped_storage().data_ptr() for p in parameters}
        self.alive = weakref.WeakSet()  # a node that frees its tensors drops them
        super().__init__(self.pack, lambda saved: saved.tensor)

    def pack(self, tensor):
        saved = Saved(tensor)
        self.alive.add(saved)
        return saved

    def bytes(self):
        storages = [saved.tensor.untyped_storage() for saved in self.alive]
        sizes = {storage.data_ptr(): storage.nbytes() for storage in storages}
        return sum(size for place, size in sizes.items() if place not in self.known)


def measure_saved_bytes(layers, create_graph, rows=256):
    torch.manual_seed(0)
    parts = [part for _ in range(layers) for part in (nn.Linear(64, 64), nn.Tanh())]
    model = nn.Sequential(*parts, nn.Linear(64, 1))
    batch = torch.randn(rows, 64, requires_grad=True)
    meter = Meter(model.parameters())
    with meter:
        y = model(batch).sum()
        forward = meter.bytes()
        (g,) = torch.autograd.grad(y, batch, create_graph=create_graph)
        penalty = ((g.norm(dim=1) - 1) ** 2).mean()
        return forward, meter.bytes(), penalty


def differentiate_tanh_six_times():
    x, saved = torch.linspace(-3, 3, 1000, requires_grad=True), []
    meter = Meter()
    with meter:
        f = torch.tanh(x)
        for order in range(7):
            if order > 0:
                (f,) = torch.autograd.grad(f.sum(), x, create_graph=True)
            saved.append((f.detach(), meter.bytes()))
    return x.detach(), saved


def plot_derivatives_and_bytes(x, saved):
    fig, (left, right) = plt.subplots(1, 2, figsize=(7, 3), layout="constrained")
    fig.suptitle("Higher derivatives of tanh, and what their graphs keep")
    styles = [("-", "#1e293b"), ("--", "#2563eb"), ("-.", "#c2410c"), (":", "#047857")]
    for order, (style, color) in enumerate(styles):
        left.plot(x, saved[order][0], style, color=color, label=f"order {order}")
    left.set(xlabel="x", ylabel="value")
    left.legend(fontsize=8)
    right.bar(range(7), [count / 1000 for _, count in saved], color="#2563eb")
    right.set(xlabel="order of the derivative", ylabel="kilobytes saved, in total")


# %%
# Bytes saved by the forward pass, with 64 units a layer and 256 rows, and then with a gradient. A plain gradient frees what the
# forward pass saved. With ``create_graph`` it stays, and more is added:

print("layers   forward   create_graph   ratio")
for layers in (1, 2, 4, 8):
    forward, total, _ = measure_saved_bytes(layers, create_graph=True)
    ratio = total / forward
    print(f"{layers:>6} {forward:>9,} {total:>14,} {ratio:>7.2f}")

    # sphinx_gallery_start_ignore
    _, plain, _ = measure_saved_bytes(layers, create_graph=False)
    assert plain == 0 and 2.5 < ratio < 3
_y = nn.Tanh()(nn.Linear(4, 4)(torch.ones(2, 4, requires_grad=True))).sum()
_meter, _x = Meter(), torch.ones(2, 4, requires_grad=True)
with _meter:
    _y = torch.tanh(_x).sum()
torch.autograd.grad(_y, _x, retain_graph=True)
assert _meter.bytes() == 32  # the meter sees a release: with retain_graph there is none
torch.autograd.grad(_y, _x)
assert _meter.bytes() == 0
_, _whole, _ = measure_saved_bytes(8, create_graph=True)
_forward, _, _ = measure_saved_bytes(8, create_graph=False)
_, _part, _ = measure_saved_bytes(
    8, create_graph=True, rows=64
)  # a penalty of a quarter
assert _forward + _part < 0.65 * _whole
# sphinx_gallery_end_ignore

# %%
# If memory is short, compute the penalty on a part of the batch.
#
# For tanh at 1000 points, each of the orders 2 to 6 about doubles what is saved:

# figure: On the left, tanh and its first three derivatives between -3 and 3, each wavier than the one before. On the
#   right, the kilobytes saved up to each order, from 4 for tanh itself to about 170 for the sixth derivative. From the
#   first order on, the bars about double from one to the next.
x, saved = differentiate_tanh_six_times()
plot_derivatives_and_bytes(x, saved)

# sphinx_gallery_start_ignore
counts = [count for _, count in saved]
assert (
    counts[0] == 4 * 1000
    and counts[1] < 1.1 * counts[0]
    and 35 < counts[6] / counts[0] < 50
)
assert all(1.9 < counts[k + 1] / counts[k] < 2.3 for k in range(1, 6))
slopes = [curve.diff() for curve, _ in saved[:4]]
turns = [slope[slope.abs() > 1e-6].sign().diff().count_nonzero() for slope in slopes]
assert turns == [0, 1, 2, 3]
# sphinx_gallery_end_ignore

# %%
# What people get wrong
# ---------------------
# **retain_graph in place of create_graph.** The loss below also contains the ``y`` that ``g`` came from. Without an option,
# PyTorch complains about a second backward. ``retain_graph=True`` silences it, but ``g`` is a constant:


def weight_gradient(**option):
    w = torch.tensor(0.5, requires_grad=True)
    x = torch.tensor(3.0, requires_grad=True)
    y = w * x**2
    (g,) = torch.autograd.grad(y, x, **option)
    loss = (y - 2) ** 2 + (g - 1) ** 2
    loss.backward()
    return w.grad.item()


print("retain_graph:", weight_gradient(retain_graph=True))
print("create_graph:", weight_gradient(create_graph=True))

# sphinx_gallery_start_ignore
assert (
    weight_gradient(create_graph=True)
    == 69
    == weight_gradient(retain_graph=True) + by_hand
)
try:
    weight_gradient()
except RuntimeError as error:
    raised.append(str(error))
assert len(raised) == 2 and "backward through the graph a second time" in raised[1]
# sphinx_gallery_end_ignore

# %%
# The difference is 24, the gradient of the penalty. ``create_graph=True`` retains the graph too, so it alone is the fix.
#
# **backward(create_graph=True).** It adds the derivative of ``y`` to ``w.grad``, where it stays. And ``x.grad`` keeps a graph
# alive that contains ``x``: a memory leak, of which PyTorch warns once. Use ``torch.autograd.grad``.

w = torch.tensor(0.5, requires_grad=True)
x = torch.tensor(3.0, requires_grad=True)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    (w * x**2).backward(create_graph=True)
((x.grad - 1) ** 2).backward()

print(str(caught[0].message).partition(" which")[0])
print(f"w.grad = {w.grad.item()}, but the gradient of the penalty is {by_hand}")

# sphinx_gallery_start_ignore
assert "will create a reference cycle" in str(caught[0].message) and w.grad == 24 + 9
assert "memory leak" in str(caught[0].message)
with warnings.catch_warnings(record=True) as _again:
    warnings.simplefilter("always")
    (w * x**2).backward(create_graph=True)
assert len(caught) == 1 and not _again
for _option in ({"retain_graph": True}, {"create_graph": True}):
    (_g,) = torch.autograd.grad(w * x**2, x, **_option)
    assert _g.requires_grad == ("create_graph" in _option)
x.grad = w.grad = None
# sphinx_gallery_end_ignore

# %%
# **A second derivative through ReLU.** A network of linear layers and ReLU is piecewise linear, so its second derivative with
# respect to the *input* is zero. In a differential equation, that term is missing without an error: take a smooth activation,
# such as ``nn.Tanh``. A penalty on the *first* derivative does train the weights:

points = torch.linspace(-2, 2, 50)[:, None].requires_grad_()
for activation in (nn.ReLU(), nn.Tanh()):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(1, 16), activation, nn.Linear(16, 1))
    (g,) = torch.autograd.grad(net(points).sum(), points, create_graph=True)
    (second,) = torch.autograd.grad(g.sum(), points, retain_graph=True)
    ((g - 1) ** 2).mean().backward()
    print(activation, "second derivative: up to", round(second.abs().max().item(), 2))
    print("  gradient of the penalty:", round(net[0].weight.grad.norm().item(), 2))
    # sphinx_gallery_start_ignore
    assert (second.abs().max() == 0) == isinstance(activation, nn.ReLU)
    (_g,) = torch.autograd.grad(net(points).sum(), points, create_graph=True)
    (_second,) = torch.autograd.grad(_g.sum(), points, create_graph=True)
    _learned = torch.autograd.grad(
        (_second - 1).square().mean(), [*net.parameters()], allow_unused=True
    )
    _nothing = all(part is None or not part.any() for part in _learned)
    assert _nothing == isinstance(activation, nn.ReLU)
    assert len(_learned) == 4
    assert net[0].weight.grad.norm() > 0.1
    # sphinx_gallery_end_ignore

# %%
# **Attention and compiled models.** Some backward passes :ref:`have no derivative
# <sphx_glr_gallery_errors_derivative_not_implemented.py>`, for example those of fused attention and of compiled models:


def attention(x):
    return F.scaled_dot_product_attention(x, x, x)


def train_penalty(function, x):
    (g,) = torch.autograd.grad(function(x).sum(), x, create_graph=True)
    g.square().sum().backward()


sequence = torch.randn(1, 2, 5, 4, requires_grad=True)
compiled = torch.compile(lambda x: torch.tanh(x), backend="aot_eager")
for function in (attention, compiled):
    try:
        train_penalty(function, sequence)
    except RuntimeError as error:
        print(error)
        # sphinx_gallery_start_ignore
        raised.append(str(error))
        # sphinx_gallery_end_ignore

# sphinx_gallery_start_ignore
assert len(raised) == 4 and raised[2].startswith(
    "derivative for aten::_scaled_dot_product_flash_attention_for_cpu_backward"
)
assert sequence.grad is None
assert (
    raised[3]
    == "torch.compile with aot_autograd does not currently support double backward"
)
# sphinx_gallery_end_ignore

# %%
# For attention, ask for the unfused computation in forward. For a compiled model, compute this part of the loss with the
# original module, or compile a function that calls ``torch.func.grad`` itself.

with sdpa_kernel(SDPBackend.MATH):
    train_penalty(attention, sequence)
print("norm of the gradient:", round(sequence.grad.norm().item(), 2))

# sphinx_gallery_start_ignore
with sdpa_kernel(SDPBackend.MATH):
    _result = attention(sequence)
(_g,) = torch.autograd.grad(_result.sum(), sequence, create_graph=True)  # outside
assert torch.allclose(
    torch.autograd.grad(_g.square().sum(), sequence)[0], sequence.grad
)
_fused, sequence.grad = sequence.grad, None
train_penalty(lambda x: torch.softmax(x @ x.mT / 2, -1) @ x, sequence)
assert torch.allclose(_fused, sequence.grad, rtol=1e-3, atol=1e-3)
sequence.grad = None
train_penalty(torch.tanh, sequence)  # the original of the compiled function


def _whole(x):
    slope = torch.func.grad(lambda inner: torch.tanh(inner).sum())(x)
    return slope.square().sum()


with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    _loss = torch.compile(_whole, backend="aot_eager", fullgraph=True)(sequence)
(_compiled,) = torch.autograd.grad(_loss, sequence)
assert torch.allclose(_compiled, sequence.grad) and sequence.grad.any()
# sphinx_gallery_end_ignore

# %%
# **Third derivatives of norms.** On PyTorch 2.13, those of ``nn.LayerNorm``, ``nn.InstanceNorm1d`` and, in training,
# ``nn.BatchNorm1d`` are wrong, without an error (`pytorch#175754 <https://github.com/pytorch/pytorch/issues/175754>`__). A loss
# that contains a *second* derivative trains on a third. ``nn.GroupNorm`` and ``nn.RMSNorm`` are right.

# sphinx_gallery_start_ignore


def _by_formula(x, *dims):
    centered = x - x.mean(dims, keepdim=True)
    return centered / (centered.square().mean(dims, keepdim=True) + 1e-5).sqrt()


def _rms(x):
    eps = torch.finfo(x.dtype).eps
    return x / (x.square().mean(-1, keepdim=True) + eps).sqrt()


def _groups(x):
    return _by_formula(x.view(len(x), 2, -1), 2).view_as(x)


def _first_wrong_order(norm, formula, *shape):
    x = torch.randn(shape, dtype=torch.float64, requires_grad=True)
    values = [(function(x) * x.detach()).sum() for function in (norm, formula)]
    for order in (1, 2, 3, 4):
        slopes = [torch.autograd.grad(y, x, create_graph=True)[0] for y in values]
        if not torch.allclose(*slopes, rtol=1e-6, atol=1e-6):
            return order
        values = [(slope * x.detach().roll(order)).sum() for slope in slopes]
    return None


torch.manual_seed(0)
for _norm, _formula, _shape, _order in (
    (nn.LayerNorm(8), lambda x: _by_formula(x, 1), (4, 8), 3),
    (nn.BatchNorm1d(4), lambda x: _by_formula(x, 0), (8, 4), 3),
    (nn.BatchNorm2d(2), lambda x: _by_formula(x, 0, 2, 3), (3, 2, 2, 2), 3),
    (nn.InstanceNorm1d(4), lambda x: _by_formula(x, 2), (2, 4, 6), 3),
    (nn.GroupNorm(1, 8), lambda x: _by_formula(x, 1), (4, 8), None),
    (nn.GroupNorm(2, 4), _groups, (3, 4, 3), None),
    (nn.RMSNorm(8), _rms, (4, 8), None),
):
    if _order and not torch.__version__.startswith("2.13."):
        continue
    assert _first_wrong_order(_norm.double(), _formula, *_shape) == _order, _norm
# sphinx_gallery_end_ignore

# %%
# Exercise
# --------
# Newton's method can find a minimum with two derivatives: :math:`x \leftarrow x - f'(x) / f''(x)`. Write it for
# :math:`f(x) = e^x - 2x`, start at 0, and stop after five steps. Where is the minimum, and which of the two calls of
# ``torch.autograd.grad`` needs ``create_graph=True``?
#
# .. solution::
#
# Only the first call: its result is differentiated once more. The minimum is at :math:`\log(2)`, where :math:`e^x = 2`.

start = 0.0
for step in range(1, 6):
    x = torch.tensor(start, dtype=torch.float64, requires_grad=True)
    (first,) = torch.autograd.grad(torch.exp(x) - 2 * x, x, create_graph=True)
    (second,) = torch.autograd.grad(first, x)
    start = (x - first / second).item()
    print(f"step {step}: x = {start:.8f}")

print(f"log 2:      {math.log(2):.8f}")
assert math.isclose(start, math.log(2), rel_tol=1e-7)

# predict: start -- Where is the minimum?

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_functions_double_backward.py`, when your own Function has a wrong second derivative.
# - In PyTorch's reference: `torch.autograd.grad
#   <https://docs.pytorch.org/docs/stable/generated/torch.autograd.grad.html>`__.
