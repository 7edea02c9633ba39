r"""
Optimizers: what step() does in SGD, Adam and AdamW
===================================================

.. index::
   ! single: no weight decay for biases
   ! single: the optimizer does not train my layer

.. in-short::

   An optimizer holds a list of parameters. ``optimizer.step()`` reads each ``.grad`` and writes into the parameter in place.
   By default autograd does not record this write. The optimizer trains only the tensors that it was given: make it after the
   model has its final layers, dtype and device. Biases and normalization layers usually get a parameter group with
   ``weight_decay=0``.
"""

# %%
# What ``step()`` reads and writes
# --------------------------------
# One step of training a small network, with SGD, the simplest optimizer:

import copy

import torch
from torch import nn
from torch.optim import SGD, Adam, AdamW

torch.manual_seed(0)
x = torch.randn(64, 4)
target = x[:, :1]
model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = SGD(model.parameters(), lr=0.1)

loss = nn.functional.mse_loss(model(x), target)
optimizer.zero_grad()
loss.backward()  # fills the .grad of each parameter

w = model[0].weight
by_hand = w.detach() - 0.1 * w.grad
optimizer.step()  # reads each .grad, and writes into each parameter

# graph: loss -- The optimizer holds the leaves, which are weights and biases. It does not know the rest of the graph

print("step() computed w - lr * w.grad:", torch.allclose(w, by_hand))
print("is_leaf:", w.is_leaf, "  grad_fn:", w.grad_fn)
# sphinx_gallery_start_ignore
assert (
    torch.allclose(w, by_hand) and w.is_leaf and w.grad_fn is None and w.requires_grad
)
assert w.grad.any()
_given = optimizer.param_groups[0]["params"]
assert all(p is q for p, q in zip(_given, model.parameters(), strict=True))
_kinds = ["SGD", "Adam", "AdamW", "Adamax", "NAdam", "RAdam"]
_kinds += ["Adagrad", "Adadelta", "RMSprop", "ASGD", "Rprop"]
for _kind in _kinds:
    _a, _b = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    _optimizer = getattr(torch.optim, _kind)([_a, _b], lr=0.1)
    (_a**2 + _b**2).sum().backward()
    _optimizer.step()
    _b.grad, _old = None, _b.detach().clone()
    _optimizer.step()
    assert torch.equal(_b, _old) and not torch.equal(_a, _old), _kind
_b.grad = torch.ones(2)
_momentum = SGD([_b], lr=0.1, momentum=0.9)
_momentum.step()
_b.grad, _old = torch.zeros(2), _b.detach().clone()
_momentum.step()
assert not torch.equal(_b, _old)
# sphinx_gallery_end_ignore

# %%
# **The optimizer knows nothing about the loss or the graph. For each parameter that it was given, it reads** ``.grad`` **and
# writes the new value into the parameter.** It writes under ``no_grad``, so the parameter is still a leaf, a tensor that was
# not computed.
#
# ``step`` skips a parameter whose ``.grad`` is ``None``. With a gradient of zero it can still move, for example by momentum.
# The optimizers below differ in the formula for the new value.

# %%
# SGD by hand: momentum, Nesterov, weight decay
# ---------------------------------------------
# With *momentum*, the step follows a running sum of the gradients. *Weight decay* pulls each weight towards 0. Step :math:`t`
# has the gradient :math:`g_t`, the learning rate :math:`\eta`, the momentum :math:`\mu`, and the weight decay :math:`\lambda`:
#
# .. math::
#
#    \tilde g_t = g_t + \lambda w_{t-1}, \qquad b_t = \mu\, b_{t-1} + \tilde g_t, \qquad
#    w_t = w_{t-1} - \eta \cdot
#    \begin{cases} b_t \\ \tilde g_t + \mu\, b_t & \text{Nesterov} \end{cases}
#
# The :math:`\lambda w` is the gradient of a penalty :math:`\frac{\lambda}{2} \lVert w \rVert^2`. ``step`` adds it, so after
# ``backward`` and after any clipping. In the code, ``state`` is what the optimizer remembers between the steps:


def sgd(w, g, t, state, lr, momentum=0, nesterov=False, weight_decay=0):
    g = g + weight_decay * w
    b = state["b"] = momentum * state.get("b", 0) + g
    return w - lr * (g + momentum * b if nesterov else b)


# %%
# Adam by hand
# ------------
# Adam keeps a running mean of the gradient and one of its square. Both start at 0 and are too small at first. The factors
# :math:`1 - \beta^t` correct that.
#
# .. math::
#
#    m_t = \beta_1 m_{t-1} + (1 - \beta_1)\, g_t, \qquad
#    v_t = \beta_2 v_{t-1} + (1 - \beta_2)\, g_t^2
#
# .. math::
#
#    w_t = w_{t-1} - \eta\, \frac{m_t / (1 - \beta_1^t)}{\sqrt{v_t / (1 - \beta_2^t)} + \varepsilon}
#
# AdamW differs in one line. Adam adds :math:`\lambda w` to the gradient, as ``SGD`` does. AdamW subtracts
# :math:`\eta \lambda w` from the weight itself.


def adam(w, g, t, state, lr, weight_decay=0, decoupled=False):
    if decoupled:
        w = w - lr * weight_decay * w
    else:
        g = g + weight_decay * w
    m = state["m"] = 0.9 * state.get("m", 0) + 0.1 * g
    v = state["v"] = 0.999 * state.get("v", 0) + 0.001 * g**2
    return w - lr * (m / (1 - 0.9**t)) / ((v / (1 - 0.999**t)) ** 0.5 + 1e-8)


def adamw(*args, **options):
    return adam(*args, **options, decoupled=True)


# %%
# Do they agree with PyTorch?
# ---------------------------
# The test is a valley, :math:`\frac{1}{2}(x^2 + 20 y^2)`, twenty times as steep across as along.

START = torch.tensor([-4.0, 1.0], dtype=torch.float64)
STEEP = torch.tensor([1.0, 20.0], dtype=torch.float64)


def valley(w):
    return (STEEP * w**2 / 2).sum()


def by_torch(optimizer_class, options, steps=40):
    w = START.clone().requires_grad_()
    optimizer = optimizer_class([w], **options)
    path = [w.detach().clone()]
    for _ in range(steps):
        optimizer.zero_grad()
        valley(w).backward()
        optimizer.step()
        path.append(w.detach().clone())
    return torch.stack(path)


def by_hand(rule, options, steps=40):
    path, state = [START], {}
    for t in range(1, steps + 1):
        path.append(rule(path[-1], STEEP * path[-1], t, state, **options))
    return torch.stack(path)


# %%
# Seven optimizers, forty steps each:

RUNS = {
    "SGD": (SGD, sgd, {"lr": 0.08}),
    "SGD, weight decay": (SGD, sgd, {"lr": 0.08, "weight_decay": 0.5}),
    "momentum": (SGD, sgd, {"lr": 0.02, "momentum": 0.8}),
    "Nesterov": (SGD, sgd, {"lr": 0.02, "momentum": 0.8, "nesterov": True}),
    "Adam": (Adam, adam, {"lr": 0.2}),
    "Adam, weight decay": (Adam, adam, {"lr": 0.2, "weight_decay": 0.5}),
    "AdamW": (AdamW, adamw, {"lr": 0.2, "weight_decay": 0.5}),
}
paths = {}
for name, (optimizer_class, rule, options) in RUNS.items():
    paths[name] = path = by_torch(optimizer_class, options)
    equal = torch.allclose(path, by_hand(rule, options), rtol=0, atol=1e-10)
    end = [round(number, 3) for number in path[-1].tolist()]
    print(f"{name:<18} ends at {end!s:<16}  by hand: {equal}")
    # sphinx_gallery_start_ignore
    assert equal
    # sphinx_gallery_end_ignore

# sphinx_gallery_start_ignore
assert torch.equal(paths["momentum"][0], START)
_w = START.clone().requires_grad_()
_optimizer = SGD([_w], lr=0.08)
for _ in range(40):
    _optimizer.zero_grad()
    (valley(_w) + 0.5 / 2 * (_w**2).sum()).backward()
    _optimizer.step()
assert torch.allclose(_w, paths["SGD, weight decay"][-1], atol=1e-12)
# sphinx_gallery_end_ignore

# %%
# All seven agree. Adam ends at the same place with and without weight decay, and AdamW does not: see `Weight decay: Adam or
# AdamW`_.

# %%
# The paths through the valley
# ----------------------------
# .. how-measured:: The plot of four paths on the level lines of the valley.

import matplotlib.pyplot as plt
from matplotlib.patches import Ellipse

LOOKS = {"SGD": ("#64748b", "o"), "momentum": ("#2563eb", "s")}
LOOKS |= {"Nesterov": ("#047857", "^"), "Adam": ("#c2410c", "D")}


def plot_paths(paths, steps):
    _, axes = plt.subplots(2, 2, figsize=(7, 4.6), layout="constrained")
    for ax, (name, (color, marker)) in zip(axes.flat, LOOKS.items(), strict=True):
        for level in (0.3, 1.5, 4, 8, 14):
            size = 2 * (2 * level) ** 0.5, 2 * (2 * level / 20) ** 0.5
            ax.add_patch(Ellipse((0, 0), *size, fill=False, edgecolor="#94a3b8"))
        path = paths[name][: steps + 1]
        ax.plot(*path.T, color=color, marker=marker, markersize=3, linewidth=1)
        ax.plot(0, 0, "+", color="#1e293b", markersize=9)
        ax.set(title=name, xlim=(-4.5, 1.6), ylim=(-1.25, 1.25))
        loss = valley(paths[name][steps]).item()
        print(f"{name:<9} loss after {steps} steps {loss:.3f}")


# %%
# The first 25 steps of four of them:

# figure: Four panels with the level lines of a long, narrow valley, and a path of 25 steps in each, from the slope on
#   the left towards the minimum, a cross. SGD crosses the floor at every step and stops short of the minimum.
#   Momentum swings across the floor in wide waves and reaches it. Nesterov's waves are smaller. Adam sets out
#   diagonally, swings once across the floor, and ends beside the minimum.
plot_paths(paths, steps=25)

# sphinx_gallery_start_ignore
_across = {name: path[:26, 1] for name, path in paths.items()}
assert (_across["SGD"].sign().diff().abs() == 2).all()  # it zigzags
assert paths["SGD"][:, 0].max() < 0
assert _across["momentum"].min() < _across["Nesterov"].min() < 0
assert _across["Adam"].min() < -0.2 and paths["Adam"][25, 0] > 0
_end = {name: valley(path[25]).item() for name, path in paths.items()}
assert _end["Nesterov"] < _end["momentum"] < 0.01 < 0.1 < _end["SGD"] < _end["Adam"]
_step = paths["Adam"][1] - paths["Adam"][0]
assert torch.allclose(_step.abs(), torch.tensor(0.2, dtype=torch.float64))
assert torch.allclose(paths["Adam"], paths["Adam, weight decay"], atol=1e-6)
# sphinx_gallery_end_ignore

# %%
# - SGD jumps across the floor at each step, since the slope there is steep, and creeps along it.
# - In momentum, the jumps across cancel and the moves along add up, at a quarter of the learning rate.
# - Nesterov gives the newest gradient more weight, which damps the swings.
# - Adam divides each coordinate by the size of its own gradients. So it starts diagonally. In this valley it is the slowest.

# %%
# Weight decay: Adam or AdamW
# ---------------------------
# **For weight decay, take AdamW.** In this test, a weight of 1 gets 100 gradients that alternate between plus and minus. So
# mostly the decay of 0.1 moves it. The gradients have three sizes:


def weight_after(size, optimizer_class, decay):
    w = torch.tensor(1.0, dtype=torch.float64, requires_grad=True)
    optimizer = optimizer_class([w], lr=0.01, weight_decay=decay)
    for t in range(100):
        w.grad = torch.full_like(w, size if t % 2 else -size)
        optimizer.step()
    return w.item()


for size in (10, 0.1, 0.001):
    none, coupled = weight_after(size, Adam, 0), weight_after(size, Adam, 0.1)
    decoupled = weight_after(size, AdamW, 0.1)
    print(f"±{size:<6} no decay {none:.3f}  Adam {coupled:.3f}  AdamW {decoupled:.3f}")
    # sphinx_gallery_start_ignore
    assert abs(decoupled / none - 0.999**100) < 1e-3
    assert size == 0.1 or abs(none - coupled - (0.01 if size > 1 else 0.79)) < 1e-2
    # sphinx_gallery_end_ignore

# %%
# AdamW multiplies the weight by :math:`1 - \eta \lambda = 0.999` in each step. Adam adds the decay to the gradient and then
# divides by the size of the gradients. So the decay takes 0.01 from the weight if they are large, and 0.79 if they are small.

# %%
# What an optimizer keeps
# -----------------------
# Momentum and the running means are in ``optimizer.state``, from the first step on:


for name, optimizer_class, options in (
    ("SGD", SGD, {}),
    ("momentum", SGD, {"momentum": 0.9}),
    ("Adam", Adam, {}),
):
    layer = nn.Linear(100, 100)
    optimizer = optimizer_class(layer.parameters(), **options)
    layer(torch.ones(1, 100)).sum().backward()
    optimizer.step()
    states = [optimizer.state[p] for p in layer.parameters()]
    size = sum(t.nbytes for state in states for t in state.values())
    print(f"{name:<9} state of {size} bytes: {', '.join(states[0]) or 'none'}")
    # sphinx_gallery_start_ignore
    assert size == {"SGD": 0, "momentum": 40400, "Adam": 2 * 40400 + 8}[name]
    # sphinx_gallery_end_ignore

print("parameters:", sum(p.nbytes for p in layer.parameters()), "bytes")

# sphinx_gallery_start_ignore
assert sum(p.nbytes for p in layer.parameters()) == 40400
assert len(Adam(layer.parameters()).state) == 0
assert not any(t.requires_grad for state in states for t in state.values())
# sphinx_gallery_end_ignore

# %%
# Adam keeps two tensors of the size of each parameter. With the gradients, you need four times the memory of the parameters.

# %%
# Parameter groups: learning rates, and no decay for biases and norms
# -------------------------------------------------------------------
# For different options, pass a list of dicts, the *groups*. A group takes what it leaves out from the other arguments. A small
# learning rate for a pretrained backbone:

backbone, head = nn.Linear(4, 8), nn.Linear(8, 1)
optimizer = AdamW(
    [
        {"params": backbone.parameters(), "lr": 1e-5},
        {"params": head.parameters()},  # the lr below
    ],
    lr=1e-3,
)
print("learning rates:", [group["lr"] for group in optimizer.param_groups])
# sphinx_gallery_start_ignore
assert [group["lr"] for group in optimizer.param_groups] == [1e-5, 1e-3]
# sphinx_gallery_end_ignore

# %%
# A usual choice is weight decay for matrices only, without biases and normalization layers:


def decay_groups(model, weight_decay):
    layers = [m for m in model.modules() if isinstance(m, (nn.LayerNorm, nn.RMSNorm))]
    norms = {p for layer in layers for p in layer.parameters()}  # may be matrices too
    decay, no_decay = [], []
    for p in model.parameters():
        (no_decay if p.ndim < 2 or p in norms else decay).append(p)
    return [
        {"params": decay, "weight_decay": weight_decay},
        {"params": no_decay, "weight_decay": 0.0},
    ]


model = nn.Sequential(nn.Embedding(9, 4), nn.Linear(4, 4), nn.LayerNorm(4))
optimizer = AdamW(decay_groups(model, weight_decay=0.1), lr=0.01)
names = {p: name for name, p in model.named_parameters()}
for group in optimizer.param_groups:
    print(f"lr {group['lr']}, weight decay {group['weight_decay']}:", end=" ")
    print(*(names[p] for p in group["params"]), sep=", ")

# sphinx_gallery_start_ignore
_before = {p: p.detach().clone() for p in model.parameters()}
for _p in _before:
    _p.grad = torch.zeros_like(_p)
optimizer.step()
for _p, _old in _before.items():
    assert torch.allclose(_p, _old * (0.999 if _p.ndim == 2 else 1), atol=1e-7)
assert sum(len(g["params"]) for g in optimizer.param_groups) == len(names) == 5
assert [len(g["params"]) for g in optimizer.param_groups] == [2, 3]
assert [group["lr"] for group in optimizer.param_groups] == [0.01, 0.01]
_norms = nn.BatchNorm2d(3), nn.GroupNorm(1, 3), nn.InstanceNorm1d(3, affine=True)
_norms += nn.RMSNorm(3), nn.LayerNorm([4, 4]), nn.RMSNorm([2, 3]), nn.LayerNorm([2, 2])
for _norm in _norms:
    _decayed, _others = decay_groups(nn.Sequential(_norm, nn.Linear(4, 4)), 0.1)
    assert [tuple(p.shape) for p in _decayed["params"]] == [(4, 4)]
    assert len(_others["params"]) == 1 + len(list(_norm.parameters()))
    assert any(p is _norm.weight for p in _others["params"])
_tied = nn.Sequential(nn.Embedding(4, 4), nn.Linear(4, 4))
_tied[1].weight = _tied[0].weight
assert [len(g["params"]) for g in decay_groups(_tied, 0.1)] == [1, 1]
_raised = []
try:
    AdamW([{"params": [model[1].bias]}, {"params": [model[1].bias]}])
except ValueError as error:
    _raised.append(str(error))
assert _raised == ["some parameters appear in more than one parameter group"]
# sphinx_gallery_end_ignore

# %%
# A parameter in two groups raises *some parameters appear in more than one parameter group*. A parameter in no group silently
# stays as it is, so count them.

# %%
# What people get wrong
# ---------------------
# **The optimizer before the parameters.** If you replace parameters of the model later, the optimizer still holds the old ones,
# so the new ones silently stay as they are.


def train(change):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
    optimizer = SGD(model.parameters(), lr=0.1)
    model, losses = change(model), []
    for _ in range(101):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), target)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    held = {id(p) for p in optimizer.param_groups[0]["params"]}
    return sum(id(p) in held for p in model.parameters()), losses


# %%
# Four changes between the optimizer and the training:


def load(model):
    model.load_state_dict(copy.deepcopy(model.state_dict()))
    return model


def load_and_assign(model):
    model.load_state_dict(copy.deepcopy(model.state_dict()), assign=True)
    return model


def replace_a_layer(model):
    model[2] = nn.Linear(8, 1)
    return model


for change in (load, load_and_assign, replace_a_layer, copy.deepcopy):
    held, losses = train(change)
    print(f"{change.__name__:<16} holds {held} of 4 parameters", end="  ")
    print(f"loss {losses[0]:.3f} ... {losses[-1]:.3f}")

# sphinx_gallery_start_ignore
for _change, _holds, _ratio in (
    (load, 4, 0.5),
    (load_and_assign, 0, 1),
    (replace_a_layer, 2, 0.5),
    (copy.deepcopy, 0, 1),
):
    _held, _losses = train(_change)
    assert _held == _holds
    assert (_losses[-1] == _losses[0]) if _ratio == 1 else _losses[-1] < _losses[0] / 2
assert train(lambda model: model.double().float()) == train(load)
_net = nn.Linear(2, 1)
_steps = AdamW(_net.parameters(), lr=0.1)
_net(torch.ones(1, 2)).sum().backward()
_steps.step()
_net.double()
_steps.zero_grad()
_net(torch.ones(1, 2).double()).sum().backward()
_raised = []
try:
    _steps.step()
except RuntimeError as error:
    _raised.append(str(error))
assert _raised == ["expected dtype float for `end` but got dtype double"]
# sphinx_gallery_end_ignore

# %%
# So make the optimizer last. With a new last layer the loss even falls, because the first layer learns. ``load_state_dict`` and
# ``model.to(...)`` keep the parameters. But do not change their type after a step of Adam: the next step raises :ref:`expected
# dtype float for end but got dtype double <sphx_glr_gallery_errors_different_dtypes.py>`.
#
# **A group with a wrong key.** The optimizer stores the key but ignores it, and uses its default, 0.001. (It :doc:`used to be
# required </then-and-now>` to pass ``lr``.)

w = torch.tensor(1.0, requires_grad=True)
optimizer = SGD([{"params": [w], "learning_rate": 0.1}])
group = optimizer.param_groups[0]
print("learning_rate:", group["learning_rate"], "  lr:", group["lr"])

w.grad = torch.tensor(1.0)
optimizer.step()
print(f"w moved by {1 - w.item():.4f}")

# sphinx_gallery_start_ignore
assert abs(1 - w.item() - 0.001) < 1e-6
# sphinx_gallery_end_ignore

# %%
# **A step between forward and backward.** The graph keeps some parameters for backward, and ``step`` overwrites them. Backward
# :ref:`notices <sphx_glr_gallery_errors_modified_in_place.py>`, but with ``fused=True`` it does not, and is silently wrong:

# sphinx_gallery_start_ignore
_message = ""
try:
    # sphinx_gallery_end_ignore
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
    optimizer = SGD(model.parameters(), lr=0.1)
    first = nn.functional.mse_loss(model(x), target)
    second = model(x).abs().mean()

    first.backward()
    optimizer.step()
    second.backward()
# sphinx_gallery_start_ignore
except RuntimeError as error:
    _message = str(error)
    print("RuntimeError: ..." + _message.split("operation:")[1].split(". Hint")[0])
assert "is at version 2; expected version 1" in _message
optimizer.zero_grad()
model(x).abs().mean().backward()  # computed after the step


def _second_gradient_is_right(**options):
    _net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
    _adamw = torch.optim.AdamW(_net.parameters(), lr=0.1, **options)
    _first, _second = (
        nn.functional.mse_loss(_net(x), target),
        _net(x).abs().mean(),
    )
    (_right,) = torch.autograd.grad(_second, _net[0].weight, retain_graph=True)
    _first.backward()
    _adamw.step()
    _adamw.zero_grad()
    _second.backward()
    return torch.allclose(_net[0].weight.grad, _right)


assert not _second_gradient_is_right(fused=True)
try:
    _message = str(_second_gradient_is_right())
except RuntimeError as error:
    _message = str(error)
assert "expected version 1" in _message
# sphinx_gallery_end_ignore

# %%
# Compute the second loss after the step.

# %%
# Exercise
# --------
# Three weights get the gradients 0.001, 1 and 1000. How far does the first step of Adam move each of them, with the
# learning rate 0.1?
#
# .. solution::
#
# Each by 0.1. For :math:`t = 1` the corrections undo the factors :math:`1 - \beta`, so the step is :math:`\eta\, g /
# \sqrt{g^2}`: the learning rate with the sign of the gradient. The step is smaller only if the gradient is about as small as
# :math:`\varepsilon = 10^{-8}`. SGD moves them by 0.0001, 0.1 and 100.

w = torch.zeros(3, requires_grad=True)
w.grad = torch.tensor([0.001, 1.0, 1000.0])
Adam([w], lr=0.1).step()

print("Adam:", [round(value, 4) for value in w.tolist()])

# predict: -w -- How far does Adam move each of the three?

# sphinx_gallery_start_ignore
assert torch.allclose(w, torch.full((3,), -0.1), atol=1e-5)
_w = torch.zeros(4, requires_grad=True)
_w.grad = torch.tensor([*w.grad.tolist(), 1e-8])
_v = _w.detach().clone().requires_grad_()
_v.grad = _w.grad
SGD([_w], lr=0.1).step()
Adam([_v], lr=0.1).step()
assert torch.allclose(_w[:3], torch.tensor([-0.0001, -0.1, -100]))
assert abs(_v[3] + 0.05) < 1e-3
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_training_fit_by_hand.py`: the same loop without an optimizer, and how large a rate may be.
# - :ref:`sphx_glr_gallery_modes_freezing.py`: which optimizers move a frozen weight.
# - In PyTorch's reference: `torch.optim <https://docs.pytorch.org/docs/stable/optim.html>`__ and `AdamW
#   <https://docs.pytorch.org/docs/stable/generated/torch.optim.AdamW.html>`__.
