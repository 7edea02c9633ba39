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
# One step of training a small network, with SGD, the simplest optimizer. ``step()`` finds the gradients in ``.grad``, where
# ``backward()`` left them:

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
expected = w.detach() - 0.1 * w.grad
optimizer.step()  # reads each .grad, and writes into each parameter

# graph: loss -- The optimizer holds the leaves, which are weights and biases. It does not know the rest of the graph

print("step() computed w - lr * w.grad:", torch.allclose(w, expected))
print("is_leaf:", w.is_leaf, "  grad_fn:", w.grad_fn)
# sphinx_gallery_start_ignore
assert (
    torch.allclose(w, expected) and w.is_leaf and w.grad_fn is None and w.requires_grad
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
# **An optimizer knows nothing about the loss or the graph. It has a list of parameters, a state for each, and a formula. For
# each parameter,** ``step()`` **reads** ``.grad`` **and writes the new value into the parameter.** The essential part of one is
# this class:


class ByHand:
    def __init__(self, parameters, formula, **options):
        self.parameters = list(parameters)
        self.formula, self.options = formula, options
        self.state = {p: {"t": 0} for p in self.parameters}

    @torch.no_grad()
    def step(self):
        for p in self.parameters:
            if p.grad is None:
                continue
            state = self.state[p]
            state["t"] += 1
            p.copy_(self.formula(p, p.grad, state, **self.options))


# %%
# Because of ``no_grad`` the parameter is still a leaf, a tensor that was not computed. A parameter whose ``.grad`` is ``None``
# is skipped. With a gradient of zero it can still move, for example by momentum.

# %%
# The formula of SGD: momentum, Nesterov, weight decay
# ----------------------------------------------------
# With *momentum*, the step follows a running sum of the gradients: moves in one direction add up, and moves back and forth
# cancel. *Weight decay* pulls each weight towards 0. Step :math:`t` has the gradient :math:`g_t`, the learning rate
# :math:`\eta`, the momentum :math:`\mu`, and the weight decay :math:`\lambda`:
#
# .. math::
#
#    \tilde g_t = g_t + \lambda w_{t-1}, \qquad b_t = \mu\, b_{t-1} + \tilde g_t, \qquad
#    w_t = w_{t-1} - \eta \cdot
#    \begin{cases} b_t \\ \tilde g_t + \mu\, b_t & \text{Nesterov} \end{cases}
#
# The :math:`\lambda w` is the gradient of a penalty :math:`\frac{\lambda}{2} \lVert w \rVert^2` (*L2 regularization*). ``step``
# adds it, so after ``backward`` and after any clipping.


def sgd(w, g, state, lr, momentum=0, nesterov=False, weight_decay=0):
    g = g + weight_decay * w
    b = state["b"] = momentum * state.get("b", 0) + g
    return w - lr * (g + momentum * b if nesterov else b)


# %%
# The formula of Adam and AdamW
# -----------------------------
# Adam divides each step by the size of the gradients. For that it keeps a running mean of the gradient and one of its square.
# Both start at 0 and are too small at first. The factors :math:`1 - \beta^t` correct that.
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


def adam(w, g, state, lr, weight_decay=0, decoupled=False):
    if decoupled:
        w = w - lr * weight_decay * w
    else:
        g = g + weight_decay * w
    t = state["t"]
    m = state["m"] = 0.9 * state.get("m", 0) + 0.1 * g
    v = state["v"] = 0.999 * state.get("v", 0) + 0.001 * g**2
    return w - lr * (m / (1 - 0.9**t)) / ((v / (1 - 0.999**t)) ** 0.5 + 1e-8)


def adamw(*args, **options):
    return adam(*args, **options, decoupled=True)


# %%
# The loss after 50 steps, with PyTorch's optimizers and with these lines:


def train(optimizer_class, *formula, **options):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
    optimizer = optimizer_class(model.parameters(), *formula, **options)
    for _ in range(50):
        loss = nn.functional.mse_loss(model(x), target)
        model.zero_grad()
        loss.backward()
        optimizer.step()
    # sphinx_gallery_start_ignore
    _ends.append([p.detach() for p in model.parameters()])
    # sphinx_gallery_end_ignore
    return loss.item()


# sphinx_gallery_start_ignore
_ends = []
# sphinx_gallery_end_ignore
for optimizer_class, formula, options in (
    (SGD, sgd, {"lr": 0.1}),
    (SGD, sgd, {"lr": 0.1, "weight_decay": 0.05}),
    (SGD, sgd, {"lr": 0.1, "momentum": 0.9}),
    (SGD, sgd, {"lr": 0.1, "momentum": 0.9, "nesterov": True}),
    (Adam, adam, {"lr": 0.01}),
    (Adam, adam, {"lr": 0.01, "weight_decay": 0.05}),
    (AdamW, adamw, {"lr": 0.01, "weight_decay": 0.05}),
):
    of_torch = train(optimizer_class, **options)
    by_hand = train(ByHand, formula, **options)
    name = ", ".join([optimizer_class.__name__, *list(options)[1:]])
    print(f"{name:<24} PyTorch {of_torch:.5f}   by hand {by_hand:.5f}")
    # sphinx_gallery_start_ignore
    assert f"{of_torch:.5f}" == f"{by_hand:.5f}"
    for _p, _q in zip(*_ends[-2:], strict=True):
        assert torch.allclose(_p, _q, atol=1e-5)
    # sphinx_gallery_end_ignore

# sphinx_gallery_start_ignore
assert len(_ends) == 14
for _i in range(0, 14, 2):
    for _j in range(0, _i, 2):  # the seven differ
        assert not torch.allclose(_ends[_i][0], _ends[_j][0], atol=1e-4), (_i, _j)
_w = torch.tensor([-4.0, 1.0], requires_grad=True)
_v = _w.detach().clone().requires_grad_()
_steep = torch.tensor([1.0, 20.0])
_penalized, _decayed = SGD([_w], lr=0.08), SGD([_v], lr=0.08, weight_decay=0.5)
for _ in range(20):
    for _u, _optimizer, _penalty in ((_w, _penalized, 0.5), (_v, _decayed, 0)):
        _optimizer.zero_grad()
        ((_steep * _u**2 / 2).sum() + _penalty / 2 * (_u**2).sum()).backward()
        _optimizer.step()
assert torch.allclose(_w, _v, atol=1e-6)
# sphinx_gallery_end_ignore

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
    print(f"±{size:<6} no decay {none:.3f}", end="  ")
    print(f"Adam {coupled:.3f}  AdamW {decoupled:.3f}")
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
    norms, decay, no_decay = set(), [], []
    for layer in model.modules():
        if isinstance(layer, (nn.LayerNorm, nn.RMSNorm)):
            norms.update(layer.parameters())  # may be matrices too
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


def train_after(change):
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
    held, losses = train_after(change)
    print(f"{change.__name__:<16} holds {held} of 4 parameters", end="  ")
    print(f"loss {losses[0]:.3f} ... {losses[-1]:.3f}")

# sphinx_gallery_start_ignore
for _change, _holds, _ratio in (
    (load, 4, 0.5),
    (load_and_assign, 0, 1),
    (replace_a_layer, 2, 0.5),
    (copy.deepcopy, 0, 1),
):
    _held, _losses = train_after(_change)
    assert _held == _holds
    assert (_losses[-1] == _losses[0]) if _ratio == 1 else _losses[-1] < _losses[0] / 2
assert train_after(lambda model: model.double().float()) == train_after(load)
_net = nn.Linear(2, 1)
_weight = _net.weight
nn.utils.parametrizations.weight_norm(_net)
assert all(p is not _weight for p in _net.parameters())
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
# So make the optimizer last, also after LoRA or ``weight_norm``. With a new last layer the loss even falls, because the first
# layer learns. ``load_state_dict`` and ``model.to(...)`` keep the parameters. But do not change their type after a step of
# Adam: the next step raises :ref:`expected dtype float for end but got dtype double
# <sphx_glr_gallery_errors_different_dtypes.py>`.
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
# Exercise
# --------
# Three weights get the gradients 0.001, 1 and 1000. How far does the first step of Adam move each of them, with the
# learning rate 0.1?
#
# .. solution::
#
# Each by 0.1. For :math:`t = 1` the corrections undo the factors :math:`1 - \beta`, so the step is :math:`\eta\, g /
# \sqrt{g^2}`: the learning rate with the sign of the gradient. SGD moves them by 0.0001, 0.1 and 100. If the weights are in
# float16, this call moves the first to minus infinity, because its :math:`v_t` and :math:`\varepsilon` are 0 there.

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
assert abs(_v[3] + 0.05) < 1e-3  # a gradient as small as eps
_half = torch.zeros(3, dtype=torch.float16, requires_grad=True)
_half.grad = w.grad.half()
Adam([_half], lr=0.1).step()
assert _half[0] == -torch.inf and torch.allclose(_half[1:].float(), w[1:], atol=1e-3)
assert (0.001 * _half.grad[0] ** 2, torch.tensor(1e-8).half()) == (0, 0)
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_training_fit_by_hand.py`: the same loop without an optimizer, and how large a rate may be.
# - :ref:`sphx_glr_gallery_modes_freezing.py`: which optimizers move a frozen weight.
# - In PyTorch's reference: `torch.optim <https://docs.pytorch.org/docs/stable/optim.html>`__ and `AdamW
#   <https://docs.pytorch.org/docs/stable/generated/torch.optim.AdamW.html>`__.
