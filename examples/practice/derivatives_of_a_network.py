r"""
PINN: u_t, u_xx and the Laplacian
=================================

.. index::
   single: PINN in PyTorch
   single: physics-informed neural network: the loss falls and the solution is wrong
   single: second derivative of a network with autograd.grad
   single: u_xx is zero
   single: Laplacian of a network

.. in-short::

   ``x`` and ``t`` are two leaves of shape (N, 1) that require grad:

   .. code-block:: python

      u = model(torch.cat([x, t], dim=1))
      u_x, u_t = torch.autograd.grad(u.sum(), (x, t), create_graph=True)
      (u_xx,) = torch.autograd.grad(u_x.sum(), x, create_graph=True)

   Each derivative in the loss needs ``create_graph=True``. With ``retain_graph=True`` instead, ``u_xx`` is a constant
   for the loss, usually without an error. Use neither BatchNorm in training mode, because it mixes the points, nor
   LayerNorm, because its third derivative is wrong. With only linear layers and ReLU, ``u_xx`` is 0.
"""

# %%
# u_t and u_xx of a network
# -------------------------
# A physics-informed neural network (PINN) learns a solution of a differential equation. Its loss contains derivatives of the
# network with respect to its inputs:

import math

import torch
from torch import nn
from torch.autograd import grad

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 1))
x = torch.rand(64, 1, requires_grad=True)
t = torch.rand(64, 1, requires_grad=True)

u = model(torch.cat([x, t], dim=1))
u_x, u_t = grad(u.sum(), (x, t), create_graph=True)
(u_xx,) = grad(u_x.sum(), x, create_graph=True)

# graph: u -- Both x and t are leaves in the graph of u

# sphinx_gallery_start_ignore
torch.set_num_threads(1)  # small matrices: more threads do not help
# sphinx_gallery_end_ignore

# %%
# **The sum.** ``u[5]`` is the one value that depends on ``x[5]``, so the derivative of the sum with respect to ``x[5]`` is the
# derivative of ``u[5]``. One call returns the derivative at each point. ``grad_outputs=torch.ones_like(u)`` in place of the sum
# gives the same numbers.
#
# **create_graph.** The first call needs it because ``u_x`` is differentiated again. Both calls need it because ``u_t`` and
# ``u_xx`` are in the loss: only with a graph can they tell the weights how to change.
#
# **The two leaves.** ``torch.cat`` computes the input of the network from ``x`` and ``t``, so both are in the graph of ``u``.
# A slice of the input that you make afterwards is a new tensor, and ``u`` was not computed from it. With one leaf of shape
# (N, 2), take the columns of the *gradient*:

points = torch.cat([x, t], dim=1).detach().requires_grad_()
(first,) = grad(model(points).sum(), points, create_graph=True)
(second,) = grad(first[:, 0:1].sum(), points, create_graph=True)
print("same u_t: ", torch.allclose(first[:, 1:2], u_t))
print("same u_xx:", torch.allclose(second[:, 0:1], u_xx, atol=1e-6))

# sphinx_gallery_start_ignore
assert torch.allclose(first[:, 1:2], u_t)
assert torch.allclose(second[:, 0:1], u_xx, atol=1e-6)
assert torch.equal(u_x, grad(u, x, torch.ones_like(u), create_graph=True)[0])
_own = torch.autograd.functional.jacobian(lambda x: model(torch.cat([x, t], 1)), x)
_own = _own[:, 0, :, 0]
assert torch.allclose(_own.diagonal()[:, None], u_x, atol=1e-5)
assert (_own - _own.diagonal().diag()).abs().max() == 0
# sphinx_gallery_end_ignore

# %%
# The loss falls, and the solution is wrong
# -----------------------------------------
# The temperature :math:`u(x, t)` of a rod obeys the heat equation :math:`u_t = 0.1\, u_{xx}`, starts as :math:`\sin(\pi x)`,
# and is 0 at both ends. The network learns :math:`u` from that alone. The start and the ends weigh 10 times as much as the
# residual, which is the difference of the two sides:

line = torch.linspace(0, 1, 32)[:, None]
zero, one = torch.zeros(32, 1), torch.ones(32, 1)
borders = torch.hstack(
    [torch.vstack([line, zero, one]), torch.vstack([zero, line, line])]
)
wanted = torch.cat([torch.sin(math.pi * line), zero, zero])
exact = math.exp(-0.1 * math.pi**2) * torch.sin(math.pi * line)  # at t = 1


def residual(model, x, t):
    u = model(torch.cat([x, t], dim=1))
    u_x, u_t = grad(u.sum(), (x, t), create_graph=True)
    (u_xx,) = grad(u_x.sum(), x, create_graph=True)
    return u_t - 0.1 * u_xx


def train(activation, residual):
    torch.manual_seed(2)
    first, second, last = nn.Linear(2, 16), nn.Linear(16, 16), nn.Linear(16, 1)
    model, losses = nn.Sequential(first, activation, second, activation, last), []
    x, t = torch.rand(2, 64, 1)
    x, t = x.requires_grad_(), t.requires_grad_()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(200):
        loss = residual(model, x, t).square().mean()
        loss = loss + 10 * (model(borders) - wanted).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, model(torch.cat([line, one], 1)).detach(), model


# %%
# .. how-measured:: The plot of the losses and of the solutions at time 1.

import matplotlib.pyplot as plt


def plot_losses_and_solutions(runs):
    figure, (left, right) = plt.subplots(1, 2, figsize=(7, 3.1), layout="constrained")
    styles = [("-", "#2563eb"), ("--", "#c2410c"), ("-.", "#047857")]
    for (name, (losses, u, _)), (style, color) in zip(
        runs.items(), styles, strict=True
    ):
        left.plot(losses, style, color=color)
        right.plot(line, u, style, color=color, label=name)
        first, last, error = losses[0], losses[-1], (u - exact).abs().max()
        print(f"{name:<15} loss {first:.1f}, later {last:.1g}, error {error:.1g}")
    right.plot(line, exact, color="#94a3b8", linewidth=5, label="exact", zorder=0)
    left.set(xlabel="step", ylabel="loss", yscale="log", title="The loss falls")
    right.set(xlabel="x", ylabel="u at t = 1", title="One of three is right")
    figure.legend(loc="outside lower center", ncols=4)


# %%
# ``constant_residual`` has no ``create_graph`` for ``u_t`` and ``u_xx``:


def constant_residual(model, x, t):
    u = model(torch.cat([x, t], dim=1))
    (u_t,) = grad(u.sum(), t, retain_graph=True)
    (u_x,) = grad(u.sum(), x, create_graph=True)
    (u_xx,) = grad(u_x.sum(), x)
    return u_t - 0.1 * u_xx


runs = {
    "right": train(nn.Tanh(), residual),
    "no create_graph": train(nn.Tanh(), constant_residual),
    "ReLU": train(nn.ReLU(), residual),
}
# figure: Two plots. On the left the losses of three networks over 200 steps, all falling. On the right their solutions at time
#   1: the right one lies on the exact curve, a bow with its top at 0.37. The one without create_graph is more than twice as
#   high, and the one with ReLU is as high as at the start, 1.
plot_losses_and_solutions(runs)

# sphinx_gallery_start_ignore
_last = {name: run[0][-1] / run[0][0] for name, run in runs.items()}
_error = {name: (run[1] - exact).abs().max() for name, run in runs.items()}
assert max(_last.values()) < 0.5 and _last["right"] < 0.02 and _last["ReLU"] < 0.02
assert _error["right"] < 0.05 < 0.3 < _error["no create_graph"]
assert (runs["ReLU"][1] - torch.sin(math.pi * line)).abs().max() < 0.2
assert _error["ReLU"] > 0.5
_learned = (runs["no create_graph"][2](borders) - wanted).square().mean()
assert _learned < 0.02
assert runs["no create_graph"][1].max() > 2 * exact.max()
# sphinx_gallery_end_ignore

# %%
# In the second run, ``u_t`` and ``u_xx`` are constants for the loss. The loss falls because the network learns the start and
# the ends, but nothing makes it learn the equation. **Each derivative in the loss needs** ``create_graph=True``. In the third
# run ``u_xx`` is 0, so the network learns :math:`u_t = 0`: the temperature does not change.

# %%
# The Laplacian
# -------------
# The Laplacian is the sum of the second derivatives in all d dimensions. Take one after the other, for ``x`` of shape (N, d),
# where ``f`` returns (N, 1):


def laplacian(f, x):
    x = x.detach().requires_grad_()
    (first,) = grad(f(x).sum(), x, create_graph=True)
    total = 0
    for i in range(x.shape[1]):
        (second,) = grad(first[:, i].sum(), x, create_graph=True)
        total = total + second[:, i]
    return total


# %%
# .. how-measured:: This code counts the operations in matrix products, as multiples of those of the network.

from torch.utils.flop_counter import FlopCounterMode


def make_network(d):
    torch.manual_seed(0)
    a, b, c = torch.randn(64, d), torch.randn(64, 64) / 8, torch.randn(1, 64) / 8
    a, b, c = (w.requires_grad_() for w in (a, b, c))
    return lambda x: torch.tanh(torch.tanh(x @ a.mT) @ b.mT) @ c.mT


def operations(f, *arguments):
    with FlopCounterMode(display=False) as counter:
        f(*arguments)
    return counter.get_total_flops()


def passes(way, d):
    f, points = make_network(d), torch.randn(16, d)
    return operations(way, f, points) / operations(f, points)


# %%
# What it costs, in passes through the network:

for d in (2, 8, 32):
    print(f"d = {d:>2}: {passes(laplacian, d):.0f} passes")

# sphinx_gallery_start_ignore
from torch.func import hessian, jvp, vmap

by_loop = laplacian


def by_jvp(f, x):
    gradient = torch.func.grad(lambda x: f(x).sum())

    def second(v):  # v: one direction, the same for all points
        _, change = jvp(gradient, (x,), (v.expand_as(x),))
        return change @ v

    return vmap(second)(torch.eye(x.shape[1]).to(x)).sum(dim=0)


def by_hessian(f, x):
    matrices = vmap(hessian(lambda point: f(point[None]).squeeze()))(x)
    return matrices.diagonal(dim1=1, dim2=2).sum(dim=1)


for _way in (by_loop, by_jvp, by_hessian):
    _few, _many = passes(_way, 8), passes(_way, 32)
    assert 1.7 < (_many - _few) / 24 < 2.3 and 1.8 * 32 < _many < 2.3 * 32
for _n, _d in ((0, 3), (1, 1), (4, 1), (2, 5)):
    f, points = make_network(_d), torch.randn(_n, _d)
    for _way in (by_loop, by_jvp, by_hessian)[: 3 if _n else 2]:
        assert torch.allclose(_way(f, points), by_loop(f, points), atol=1e-4)
        assert _way(f, points).shape == (_n,)
        _squares = _way(lambda x: x.square().sum(1), points.double())
        assert _squares.dtype == torch.float64 and _squares.eq(2 * _d).all()
f, points = make_network(3), torch.randn(5, 3)
_a, _b, _c = (cell.cell_contents for cell in f.__closure__)
_own = [
    torch.autograd.functional.hessian(lambda p: f(p[None]).sum(), p) for p in points
]
_trace = torch.stack([matrix.trace() for matrix in _own])
_trained = []
for _way in (by_loop, by_jvp, by_hessian):
    _laplacian = _way(f, points)
    assert torch.allclose(_laplacian, _trace, atol=1e-4) and _laplacian.shape == (5,)
    _trained.append(grad(_laplacian.square().sum(), [_a, _b, _c]))
    for _one, _other in zip(_trained[0], _trained[-1], strict=True):
        assert torch.allclose(_one, _other, rtol=1e-3, atol=1e-3)
with torch.no_grad():
    for _way in (by_jvp, by_hessian):
        assert _way(f, points).grad_fn is None
        assert torch.allclose(_way(f, points), _trace, atol=1e-4)
    _refused = []
    try:
        by_loop(f, points)
    except RuntimeError as _problem:
        _refused.append(str(_problem))
    assert len(_refused) == 1
# the gradient of a linear function is constant: the loop raises, the others return 0
_constant = nn.Linear(3, 1)
try:
    by_loop(_constant, points)
except RuntimeError as _problem:
    _refused.append(str(_problem))
assert len(_refused) == 2 and "not have been used" in _refused[1]
assert not by_jvp(_constant, points).any() and not by_hessian(_constant, points).any()
_square = torch.rand(5, 9, dtype=torch.float64)
_one = torch.ones(9, dtype=torch.float64, requires_grad=True)  # a weight
_shift = 1e-5 * torch.linspace(1, 2, 9).double()
for _solve in (
    lambda a: torch.logdet(a)[:, None],
    lambda a: torch.linalg.slogdet(a).logabsdet[:, None],
    lambda a: torch.linalg.solve(a, a[:, :1].mT.sin()).sum(1),
):

    def _f(x, solve=_solve):
        return solve(x.reshape(-1, 3, 3) + 2 * torch.eye(3).to(x))

    _exact = by_loop(_f, _square)
    assert torch.allclose(by_jvp(_f, _square), _exact)
    _same = torch.allclose(by_hessian(_f, _square), _exact)
    assert not (_same and torch.__version__.startswith("2.13."))
    _slopes = [
        grad(_way(lambda x, f=_f: f(x * _one), _square).sin().sum(), _one)[0]
        for _way in (by_loop, by_jvp, by_hessian)
    ]
    _high, _low = (
        by_loop(lambda x, f=_f, s=_s: f(x * (1 + s * _shift)), _square).sin().sum()
        for _s in (1, -1)
    )
    assert torch.isclose(_high - _low, 2 * _slopes[0] @ _shift, rtol=1e-4)
    for _other in _slopes[1:]:
        _same = torch.allclose(_other, _slopes[0], rtol=1e-2)
        assert not (_same and torch.__version__.startswith("2.13."))
for _way in (by_loop, by_jvp, by_hessian):
    _total = _way(lambda x: (x * _one).norm(dim=1)[:, None], _square).sum()
    try:
        grad(_total, _one)
        assert _way is by_loop or not torch.__version__.startswith("2.13.")
    except RuntimeError:
        assert _way is not by_loop
_net = nn.Sequential(nn.Linear(3, 16), nn.Tanh(), nn.Dropout(), nn.Linear(16, 1))
assert by_loop(_net, points).shape == (5,)
_normed = nn.Sequential(nn.Linear(3, 16), nn.BatchNorm1d(16), nn.Tanh())
for _way in (by_jvp, by_hessian):
    for _f in (_net, _normed):
        try:
            _way(_f, points)
        except RuntimeError as _problem:
            _refused.append(str(_problem))
assert len(_refused) == 6 and "randomness" in _refused[2]
# sphinx_gallery_end_ignore

# %%
# About two passes for each dimension: one computes a column of the :ref:`Hessian
# <sphx_glr_gallery_differentiation_jacobian_and_hessian.py>`, and you use one entry of it. ``torch.func.hessian``, or ``jvp``
# under ``vmap``, does the same work. For training take the loop: on PyTorch 2.13, gradients through those two can be wrong if
# ``f`` calls ``torch.linalg.solve``, ``det``, ``logdet`` or ``slogdet``. To evaluate the loop, put ``torch.enable_grad()``
# around it.

# %%
# Errors that this code raises
# ----------------------------
# Each line below is a mistake. ``linear`` is a network without an activation.

xt = torch.cat([x, t], dim=1)
u, v, linear = model(xt), model(xt), nn.Linear(2, 1)
(u_x,) = grad(linear(xt).sum(), x, create_graph=True)
(constant,) = grad(u.sum(), x, retain_graph=True)
calls = {
    "the sum is missing": lambda: grad(u, x),
    "x does not require grad": lambda: grad(u.sum(), x.detach()),
    "two calls for u_t and u_x": lambda: [grad(v.sum(), leaf) for leaf in (t, x)],
    "a slice, made after the model": lambda: grad(u.sum(), xt[:, 0:1]),
    "u_x without create_graph": lambda: grad(constant.sum(), x),
    "u_xx of a linear network": lambda: grad(u_x.sum(), x, retain_graph=True),
    "u_xx of 2 * x": lambda: grad(grad((2 * x).sum(), x, create_graph=True), x),
}
# sphinx_gallery_start_ignore
_raised = {}
# sphinx_gallery_end_ignore
for name, call in calls.items():
    try:
        call()
    except RuntimeError as error:
        # sphinx_gallery_start_ignore
        _raised[name] = str(error)
        # sphinx_gallery_end_ignore
        print(f"{name}:\n    {str(error).split('. ')[0]}")

# sphinx_gallery_start_ignore
_unused, _no_graph = "not have been used in the graph", "does not require grad"
_parts = [
    "scalar outputs",
    _no_graph,
    "a second time",
    _unused,
    _no_graph,
    _unused,
    _no_graph,
]
for (_name, _message), _part in zip(_raised.items(), _parts, strict=True):
    assert _part in _message, _name
assert list(_raised) == list(calls)
_frozen = nn.Linear(2, 1).requires_grad_(False)
(_constant,) = grad(_frozen(xt).sum(), x, create_graph=True)
assert not _constant.requires_grad and grad(linear(xt).sum(), x)[0].any()
for _f in (lambda x: 2 * x, lambda x: linear(torch.stack([x, x])).squeeze()):
    assert torch.func.grad(torch.func.grad(_f))(torch.tensor(1.0)) == 0
with torch.no_grad():
    _refused = []
    try:
        residual(model, x, t)
    except RuntimeError as _problem:
        _refused.append(str(_problem))
    assert len(_refused) == 1 and _no_graph in _refused[0]
    with torch.enable_grad():
        assert residual(model, x, t).shape == (64, 1)
# sphinx_gallery_end_ignore

# %%
# The last two derivatives exist and are 0. But ``u_x`` was computed without ``x``, so there is no graph back to it
# (`pytorch#32304 <https://github.com/pytorch/pytorch/issues/32304>`__, `pytorch#38506
# <https://github.com/pytorch/pytorch/issues/38506>`__). ``torch.func.grad`` returns 0.
#
# The residual raises an error under ``no_grad()``, too: put ``torch.enable_grad()`` around it.

# %%
# What people get wrong
# ---------------------
# **retain_graph=True in the last call.** If the last call of ``residual`` has no ``create_graph=True``, ``loss.backward()``
# raises *Trying to backward through the graph a second time*. With ``retain_graph=True`` the error is gone. The residual
# requires grad through ``u_t``, so the weights get *a* gradient, but it is not the gradient of the loss. For the trained
# network:

model = runs["right"][2]


def gradient(residual):
    loss = residual(model, x, t).square().mean()
    if not loss.requires_grad:
        return None
    parts = grad(loss, list(model.parameters()), materialize_grads=True)
    return torch.cat([part.flatten() for part in parts])


def retained(model, x, t):
    u = model(torch.cat([x, t], dim=1))
    u_x, u_t = grad(u.sum(), (x, t), create_graph=True)
    (u_xx,) = grad(u_x.sum(), x, retain_graph=True)
    return u_t - 0.1 * u_xx


right, part = gradient(residual), gradient(retained)
angle = torch.cosine_similarity(right, part, dim=0).arccos().rad2deg()
print(f"retained: the gradient is wrong by {angle:.0f} degrees")
print("constant_residual: the gradient is", gradient(constant_residual))

# sphinx_gallery_start_ignore
assert 10 < angle < 80 and gradient(constant_residual) is None
assert torch.allclose(residual(model, x, t), retained(model, x, t), atol=1e-5)
assert torch.allclose(residual(model, x, t), constant_residual(model, x, t), atol=1e-5)
_u, _raised = model(torch.cat([x, t], dim=1)), []
_u_x, _u_t = grad(_u.sum(), (x, t), create_graph=True)
(_u_xx,) = grad(_u_x.sum(), x)
try:
    (_u_t - 0.1 * _u_xx).square().mean().backward()
except RuntimeError as _problem:
    _raised.append(str(_problem))
(_u_x,) = grad(model(torch.cat([x, t], dim=1)).sum(), x, create_graph=True)
(_u_xx,) = grad(_u_x.sum(), x, retain_graph=True)
try:  # the exception behind "usually": nothing else in the loss requires grad
    _u_xx.square().mean().backward()
except RuntimeError as _problem:
    _raised.append(str(_problem))
assert len(_raised) == 2 and "does not require grad" in _raised[1]
assert _raised[0].startswith("Trying to backward through the graph a second time")
_step, _at = 1e-3, [p.detach().clone() for p in model.parameters()]
_sides = []
for _sign in (1, -1):
    with torch.no_grad():
        for _p, _direction in zip(model.parameters(), _at, strict=True):
            _p.add_(_sign * _step * _direction)
    _sides.append(residual(model, x, t).square().mean().item())
    with torch.no_grad():
        for _p, _old in zip(model.parameters(), _at, strict=True):
            _p.copy_(_old)
_slope = (_sides[0] - _sides[1]) / (2 * _step)
_along = torch.cat([_old.flatten() for _old in _at])
assert abs(_slope - right @ _along) < 0.05 * abs(_slope)
assert abs(_slope - part @ _along) > 0.2 * abs(_slope)
# sphinx_gallery_end_ignore

# %%
# All three residuals have equal values: only the gradient is wrong. Write ``assert u_xx.requires_grad`` below the last call.
#
# **ReLU.** A network of linear layers and ReLU is linear piece by piece. Its ``u_xx`` is 0 and requires grad, so it passes
# the assert. ``Tanh``, ``SiLU``, ``GELU`` and ``Softplus`` have a second derivative.
#
# **LayerNorm.** A loss of ``u_xx`` needs a third derivative, and that of ``nn.LayerNorm(16)`` is wrong, without an error
# (`pytorch#175754 <https://github.com/pytorch/pytorch/issues/175754>`__). ``nn.GroupNorm(1, 16)`` computes the same for an
# input of shape (N, 16), and is right.
#
# **Points that see each other.** If ``u[7]`` depends on ``x[5]`` too, its derivative is added to that of ``u[5]``. With several
# outputs, a sum over all of them adds their derivatives: take one column, ``out[:, 0:1].sum()``.
#
# .. how-measured:: For five networks, this code compares the derivative from the sum with the diagonal of the full Jacobian,
#    which is the derivative of each point with respect to itself.

import pandas as pd
from torch.autograd.functional import jacobian


class Attention(nn.MultiheadAttention):
    def forward(self, x):
        return super().forward(x, x, x, need_weights=False)[0]


def compare(*layers, outputs=1, evaluate=False):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(1, 16), *layers, nn.Tanh(), nn.Linear(16, outputs))
    net = net.eval() if evaluate else net
    x = torch.rand(32, 1).requires_grad_()
    (by_sum,) = grad(net(x).sum(), x)
    own = jacobian(lambda x: net(x)[:, 0], x)[:, :, 0].diagonal()
    return {"error": (by_sum[:, 0] - own).abs().max().item(), "u_x": own.abs().max()}


def tabulate_errors_of_the_sum():
    rows = {
        "Linear, Tanh": compare(),
        "with BatchNorm1d, eval()": compare(nn.BatchNorm1d(16), evaluate=True),
        "with BatchNorm1d, train()": compare(nn.BatchNorm1d(16)),
        "attention over the points": compare(Attention(16, 1)),
        "two outputs, out.sum()": compare(outputs=2),
    }
    return pd.DataFrame(rows).T.astype(float)


# %%
# The largest error of ``u_x``, beside the largest ``u_x``:

# sphinx_gallery_start_ignore
_table = tabulate_errors_of_the_sum()
assert (_table["error"][:2] < 1e-5).all() and (_table["error"][2:] > 0.01).all()
assert (_table["error"][2:] > 0.1 * _table["u_x"][2:]).all()
_curved, _straight = (nn.Tanh, nn.SiLU, nn.GELU, nn.Softplus), (nn.ReLU, nn.LeakyReLU)
for _activation in (kind() for kind in _curved + _straight):
    torch.manual_seed(0)
    _net = nn.Sequential(nn.Linear(2, 16), _activation, nn.Linear(16, 1))
    (_first,) = grad(_net(torch.cat([x, t], 1)).sum(), x, create_graph=True)
    (_second,) = grad(_first.sum(), x, create_graph=True)
    assert bool(_second.any()) == isinstance(_activation, _curved)
    assert _second.requires_grad


def _third_derivative_is_right(norm):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(1, 16), norm, nn.Tanh(), nn.Linear(16, 1)).double()
    weight, points = net[0].weight, torch.rand(8, 1).double().requires_grad_()
    direction = torch.randn_like(weight)

    def loss_beside(step):
        with torch.no_grad():
            weight.add_(direction, alpha=step)
        u = net(points)
        (u_x,) = grad(u.sum(), points, create_graph=True)
        (u_xx,) = grad(u_x.sum(), points, create_graph=True)
        return u, u_x, u_xx, u_xx.square().mean()

    low, high = loss_beside(-1e-5)[-1].item(), loss_beside(2e-5)[-1].item()
    *parts, loss = loss_beside(-1e-5)
    (gradient,) = grad(loss, weight)
    slope = (high - low) / 2e-5
    return parts, abs((gradient * direction).sum() - slope) < 1e-3 * abs(slope)


_of_group, _right = _third_derivative_is_right(nn.GroupNorm(1, 16))
assert _right


def _is_refused_or_wrong(norm):
    try:
        parts, right = _third_derivative_is_right(norm)
    except RuntimeError:  # as a later PyTorch may do
        return True
    assert all(map(torch.allclose, _of_group, parts))  # u, u_x, u_xx
    return not right


assert _is_refused_or_wrong(nn.LayerNorm(16))
# sphinx_gallery_end_ignore
tabulate_errors_of_the_sum().round(2)

# %%
# Exercise
# --------
# About 2 d passes are a lot for d = 1000. If the entries of :math:`v` are 1 or -1, each at random with equal chance, the mean
# of :math:`v^\top H v` is the sum of the diagonal of :math:`H`. How good is this estimate from 4 directions, and from 400?
#
# .. solution::
#
# With a hundred times as many directions, the error is about ten times smaller.


from torch.func import jvp


def estimate(f, x, directions):
    gradient = torch.func.grad(lambda x: f(x).sum())
    total = 0
    for _ in range(directions):
        v = torch.randint_like(x, 2) * 2 - 1
        total = total + (jvp(gradient, (x,), (v,))[1] * v).sum(dim=1)
    return total / directions


f, points, errors = make_network(20), torch.randn(64, 20), []
right = laplacian(f, points).detach()
with torch.no_grad():
    for directions in (4, 400):
        error = (estimate(f, points, directions) - right).norm() / right.norm()
        errors.append(error)
        print(f"{directions:>3} directions: error {error:.0%}")

# sphinx_gallery_start_ignore
assert 5 < errors[0] / errors[1] < 20
assert torch.allclose(  # no entry off the diagonal, no noise
    estimate(lambda x: x.sin().sum(1), points, 1), -points.sin().sum(1), atol=1e-4
)
_double = estimate(lambda x: x.sin().sum(1), points.double(), 1)
assert torch.allclose(_double, -points.double().sin().sum(1))
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_practice_energies_and_forces.py`: a loss on a first derivative.
# - :ref:`sphx_glr_gallery_differentiation_higher_order.py`, more on ``create_graph``.
# - :ref:`sphx_glr_gallery_differentiation_forward_mode.py`, on ``jvp``.
# - :ref:`sphx_glr_gallery_errors_unused_in_graph.py` and :ref:`sphx_glr_gallery_errors_no_grad_fn.py`, two of the errors above.
# - :ref:`No second derivative <sphx_glr_gallery_errors_derivative_not_implemented.py>`: attention and ``torch.compile``.
# - In PyTorch's reference: `torch.autograd.grad <https://docs.pytorch.org/docs/stable/generated/torch.autograd.grad.html>`__
#   and `torch.func.jvp <https://docs.pytorch.org/docs/stable/generated/torch.func.jvp.html>`__.
