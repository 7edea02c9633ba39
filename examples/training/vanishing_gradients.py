r"""
Vanishing and exploding gradients: the norm at each layer
=========================================================

.. index::
   single: vanishing gradients
   single: gradient norm of each layer
   single: plot the gradient flow
   single: the first layers do not learn
   single: a deep net does not train

.. in-short::

   After ``backward()``, compare the gradients of your layers:

   .. code-block:: python

      for name, p in model.named_parameters():
          if p.grad is not None:
              print(name, p.grad.norm().item())

   In a deep net of equal layers, each layer multiplies the gradient by about the same factor. Below 1, the gradient
   vanishes on its way to the first layer. Above 1, it explodes. Blocks ``x + f(LayerNorm(x))`` bring the factor close to
   1. Clipping or a larger learning rate does not repair vanishing gradients.
"""

# %%
# The first layers do not learn
# -----------------------------
# You train a deep net on two classes, and the loss stays at 0.69, as if the net tossed a coin. This net has 20 layers and the
# default weights:

import torch
from torch import nn

torch.set_num_threads(1)  # small matrices: more threads do not help
torch.manual_seed(0)
data = torch.randn(512, 32)
labels = (data[:, 0] + data[:, 1] > 0).long()

layers = [nn.Sequential(nn.Linear(32, 32), nn.ReLU()) for _ in range(20)]
model = nn.Sequential(*layers, nn.Linear(32, 2))
loss = nn.functional.cross_entropy(model(data), labels)
loss.backward()

for number in (1, 5, 10, 15, 20):
    weight = model[number - 1][0].weight
    print(f"layer {number:>2}  norm of the gradient {weight.grad.norm():.0e}")

# sphinx_gallery_start_ignore
_all = [layer[0].weight.grad.norm().item() for layer in layers]
assert 1e-10 < _all[0] < 1e-8 and 1e-3 < _all[-1] < 1e-1 and abs(loss - 0.69) < 0.03
assert _all[-1] / _all[0] > 1e6 and all(_all[i] < _all[i + 5] for i in range(15))
# sphinx_gallery_end_ignore

# %%
# .. how-measured:: This code makes such nets with other activations, weights and blocks, takes the norms, trains and draws.
#    Better weights are Xavier for sigmoid and tanh, and Kaiming for ReLU.

import matplotlib.pyplot as plt
import pandas as pd

DEPTH, WIDTH = 20, 32
GAINS = {torch.sigmoid: 1.0, torch.tanh: 1.0, torch.relu: 2**0.5}
GOOD = {"norm": nn.LayerNorm, "residual": True}
BLOCKS = {
    "default": {},
    "better weights": {"better_weights": True},
    "LayerNorm": {"norm": nn.LayerNorm},
    "BatchNorm": {"norm": nn.BatchNorm1d},
    "x + f(x)": {"residual": True},
    "x + f(LayerNorm(x))": GOOD,
}


class Block(nn.Module):
    def __init__(self, activation, norm=nn.Identity, residual=False):
        super().__init__()
        self.linear, self.norm = nn.Linear(WIDTH, WIDTH), norm(WIDTH)
        self.activation, self.residual = activation, residual

    def forward(self, x):
        if self.residual:
            return x + self.activation(self.linear(self.norm(x)))
        return self.activation(self.norm(self.linear(x)))


def make_net(activation, better_weights=False, gain=None, seed=0, **options):
    torch.manual_seed(seed)
    blocks = [Block(activation, **options) for _ in range(DEPTH)]
    if better_weights:
        gain = GAINS[activation]
    if gain:
        for block in blocks:
            nn.init.normal_(block.linear.weight, std=gain / WIDTH**0.5)
            nn.init.zeros_(block.linear.bias)
    return nn.Sequential(*blocks, nn.Linear(WIDTH, 2))


def backward(net, batch=slice(None)):
    loss = nn.functional.cross_entropy(net(data[batch]), labels[batch])
    net.zero_grad()
    loss.backward()
    return loss.item()


def norms_of(net):
    return [block.linear.weight.grad.norm().item() for block in net[:-1]]


def factor(net):
    backward(net)
    norms = norms_of(net)
    return (norms[0] / norms[-1]) ** (1 / (DEPTH - 1))


def train(net, optimizer, steps=60):
    torch.manual_seed(2)
    losses, norms = [], []
    for _ in range(steps):
        losses.append(backward(net, torch.randint(len(data), (64,))))
        norms.append(norms_of(net))
        optimizer.step()
    return sum(losses[-10:]) / 10, norms


def plot_norms_over_layers():
    fig, ax = plt.subplots(figsize=(7, 3.4), layout="constrained")
    for name, color, dash, net in (
        ("tanh, weights too large", "#c2410c", "--", make_net(torch.tanh, gain=3)),
        ("ReLU, x + f(LayerNorm(x))", "#047857", "-", make_net(torch.relu, **GOOD)),
        ("tanh", "#7c3aed", "-.", make_net(torch.tanh)),
        ("ReLU", "#2563eb", "-", make_net(torch.relu)),
        ("sigmoid", "#64748b", ":", make_net(torch.sigmoid)),
    ):
        backward(net)
        layers = range(1, DEPTH + 1)
        ax.semilogy(layers, norms_of(net), linestyle=dash, color=color, label=name)
    ax.set(xlabel="layer", ylabel="norm of the gradient", xticks=[1, 5, 10, 15, 20])
    ax.set_title("On the way to layer 1, gradients vanish or explode")
    fig.legend(loc="outside lower center", ncols=3)


def tabulate_factors():
    rows = {}
    for name, options in BLOCKS.items():
        nets = [make_net(activation, **options) for activation in GAINS]
        rows[name] = [f"{factor(net):.2f}" for net in nets]
    return pd.DataFrame(rows, index=["sigmoid", "tanh", "ReLU"]).T


def train_each_block():
    runs = {}
    for name, options in BLOCKS.items():
        net = make_net(torch.relu, **options)
        runs[name] = train(net, torch.optim.SGD(net.parameters(), lr=0.05))
    return runs


def tabulate_runs(runs):
    rows = {}
    for name, (loss, norms) in runs.items():
        first, last = norms[0][0], norms[0][-1]
        rows[name] = [f"{first:.0e}", f"{last:.0e}", f"{loss:.2f}"]
    return pd.DataFrame(rows, index=["layer 1", "layer 20", "loss"]).T


def plot_norms_over_training(runs):
    fig, axes = plt.subplots(1, 2, sharey=True, figsize=(7, 2.8), layout="constrained")
    styles = {20: ("#c2410c", "--"), 10: ("#7c3aed", "-."), 1: ("#2563eb", "-")}
    for ax, name in zip(axes, ("default", "x + f(LayerNorm(x))"), strict=True):
        loss, norms = runs[name]
        for layer, (color, dash) in styles.items():
            values = [now[layer - 1] for now in norms]
            ax.semilogy(values, linestyle=dash, color=color, label=f"layer {layer}")
        ax.set(title=f"{name}: loss {loss:.2f}", xlabel="step")
    axes[0].set(ylabel="norm of the gradient")
    fig.legend(*ax.get_legend_handles_labels(), loc="outside lower center", ncols=3)


# %%
# Read the lines from right to left, because backward begins at layer 20:

# figure: The norm of the gradient over the layers 1 to 20, on a logarithmic axis, before the training. From layer 20 to 1,
#   sigmoid falls to less than 1e-15, ReLU to about 1e-9 and tanh to about 1e-5, and tanh with large weights rises to more
#   than 10. ReLU in blocks with LayerNorm and a residual connection stays near 0.3.
plot_norms_over_layers()


# sphinx_gallery_start_ignore
def _norms(activation, **options):
    net = make_net(activation, **options)
    backward(net)
    return norms_of(net)


assert _norms(torch.sigmoid)[0] < 1e-15 and 1e-10 < _norms(torch.relu)[0] < 1e-8
assert 1e-6 < _norms(torch.tanh)[0] < 1e-4
_large = _norms(torch.tanh, gain=3)
assert _large[0] > 10 > 1 > _large[-1]
assert all(0.1 < _n < 1 for _n in _norms(torch.relu, **GOOD))
# sphinx_gallery_end_ignore

# %%
# Why: a factor to the power of the depth
# ---------------------------------------
# On its way to layer 1, the gradient is multiplied by the weights of each layer, and by the slope of each activation function.
# If a layer multiplies the norm by 0.4, then 19 layers multiply it by :math:`0.4^{19}`, which is about
# :math:`3 \cdot 10^{-8}`.
#
# This is the factor, :math:`(\text{norm}_1 / \text{norm}_{20})^{1/19}`, before the training. Each row changes the default net
# in one way, and the last row in two:

factors = tabulate_factors()

# sphinx_gallery_start_ignore
assert 2.5e-8 < 0.4**19 < 3.5e-8
_factors = factors.astype(float)
_sigmoid, _tanh, _relu = (_factors[name] for name in _factors)
assert (_factors.loc["default"] < 0.75).all() and _sigmoid["default"] < 0.2
_better = _factors.loc["better weights"]
assert _better["sigmoid"] < 0.3 and (abs(_better[["tanh", "ReLU"]] - 1) < 0.12).all()
assert _sigmoid["LayerNorm"] < 0.5 and abs(_sigmoid["BatchNorm"] - 1) < 0.1
assert (abs(_factors.loc["LayerNorm", ["tanh", "ReLU"]] - 1) < 0.12).all()
assert 1.17 < _relu["BatchNorm"] < 1.25 and 20 < 1.2**19 < 40
assert (abs(_factors.loc["x + f(LayerNorm(x))"] - 1) < 0.05).all()
for _name, _low, _high in (
    ("default", 0.05, 0.75),
    ("BatchNorm", 0.95, 1.3),
    ("x + f(LayerNorm(x))", 0.95, 1.08),
):
    for _f in (*GAINS, nn.functional.gelu):
        assert _low < factor(make_net(_f, seed=1, **BLOCKS[_name])) < _high
# sphinx_gallery_end_ignore
factors

# %%
# - **Activation.** The slope of sigmoid is at most 1/4, so its default net is the worst.
# - **Weights.** :ref:`Better initial weights <sphx_glr_gallery_training_initialisation.py>` repair tanh and ReLU.
# - **Normalization.** ``LayerNorm`` does not repair sigmoid. With ``BatchNorm``, ReLU explodes slowly: :math:`1.2^{19}` is 32.
# - **Residual connection.** The gradient also goes through ``x``, past the layer. But without normalization, the sum grows from
#   block to block.
# - With ``LayerNorm`` inside the residual block, all three are near 1. Transformers with ``norm_first=True`` use such blocks.

# %%
# Over the training
# -----------------
# Each ReLU net, trained with 60 steps of SGD: the norms before the first step, and the mean loss of the last 10 steps.

runs = train_each_block()

# sphinx_gallery_start_ignore
import math

_losses = {name: loss for name, (loss, _) in runs.items()}
assert 0.68 < _losses["default"] < 0.71 and _losses["x + f(LayerNorm(x))"] < 0.1
assert math.isnan(_losses["x + f(x)"]) and runs["x + f(x)"][1][0][-1] > 20
assert all(0.3 < _losses[n] < 0.75 for n in list(BLOCKS)[1:4])
assert _losses["LayerNorm"] > 0.6
for _name, (_, _all) in runs.items():
    _ratios = [now[0] / now[-1] for now in _all]
    if _name == "default":
        assert max(_ratios) < 1e-4
    if _name == "x + f(LayerNorm(x))":
        assert min(_ratios) > 0.2 and max(_ratios) < 100
        assert max(_all[-1]) < 0.5 and min(_all[0]) > 0.1
assert round(1.2**19) == 32
_h, _sizes = data, []
for _block in make_net(torch.relu, residual=True)[:-1]:
    _h = _block(_h)
    _sizes.append(_h.std().item())
assert _sizes == sorted(_sizes) and _sizes[-1] > 5 * _sizes[0]
# sphinx_gallery_end_ignore
tabulate_runs(runs)

# %%
# In the sum ``x + f(x)``, the gradients are large in all layers, and the loss becomes NaN. A factor near 1 is not everything:
# ``LayerNorm`` alone hardly learns.

# figure: Two panels with the norm of the gradient over 60 steps, on one logarithmic axis. In the default net, the lines of the
#   layers 20, 10 and 1 stay apart, near 1e-2, 1e-6 and 1e-9. In the net with LayerNorm and residual connections, the three
#   lines stay close together and fall from about 1 to about 0.1.
plot_norms_over_training(runs)

# %%
# On the right all norms become small together, because the loss does. So a small norm alone is no alarm. Compare the layers
# with each other, and weights of different sizes by ``weight.grad.norm() / weight.norm()``.
#
# To log one norm for an individual layer of several weights, pass their gradients to ``torch.nn.utils.get_total_norm``. With
# FSDP2, ``p.grad.norm().item()`` is the norm of one part: call :ref:`full_tensor()
# <sphx_glr_gallery_scale_fsdp_and_dtensor.py>` before ``item()``. The norm of an embedding hides rows without gradient: add up
# ``weight.grad.norm(dim=1)`` over many batches (asked in `nnue-pytorch#55
# <https://github.com/official-stockfish/nnue-pytorch/issues/55>`__).

# sphinx_gallery_start_ignore
_layer, _rows = nn.Linear(32, 2), nn.Embedding(10, 4)
nn.functional.cross_entropy(_layer(data), labels).backward()
_both = [p.grad for p in _layer.parameters()]
_one_vector = torch.cat([grad.flatten() for grad in _both])
assert torch.allclose(nn.utils.get_total_norm(_both), _one_vector.norm())
_total = torch.zeros(10)
for _batch in ([0, 1, 1], [4, 5, 1]):
    _rows.zero_grad()
    _rows(torch.tensor(_batch)).square().sum().backward()
    _total += _rows.weight.grad.norm(dim=1)
_found = _total.nonzero().flatten().tolist()
assert _rows.weight.grad.norm() > 0 and _found == [0, 1, 4, 5]
# sphinx_gallery_end_ignore

# %%
# What to do
# ----------
# 1. Put the layers into blocks ``x + f(LayerNorm(x))``, or ``x + f(BatchNorm2d(x))`` in a convolutional net.
# 2. If you cannot change the blocks, replace sigmoid in hidden layers, and choose the weights for the activation function.
# 3. If the first step has huge gradients, make the weights smaller. Against rare jumps, as in recurrent networks, :ref:`clip
#    <sphx_glr_gallery_training_gradient_clipping.py>`.
# 4. In ``float16``, small gradients become 0: use a :ref:`GradScaler <sphx_glr_gallery_memory_grad_scaler.py>`.

# %%
# What people get wrong
# ---------------------
# **One norm for the whole model**, as ``clip_grad_norm_`` returns it. It is about the norm of the largest layer, so it looks
# healthy. (In a recurrent network, all time steps share one weight: look at the gradient of the input.) **Clipping**
# multiplies all layers by one number, and leaves the ratio as it is:

net = make_net(torch.relu)
backward(net)
first, *_, last = norms_of(net)
total = nn.utils.clip_grad_norm_(net.parameters(), max_norm=0.01)
print(f"all: {total:.2f}, layer 1: {first:.0e}, layer 1 / layer 20: {first / last:.0e}")
first, *_, last = norms_of(net)
print(f"after clipping: layer 1 / layer 20: {first / last:.0e}")

# sphinx_gallery_start_ignore
_before = _norms(torch.relu)
assert total > 0.02 and first < 0.9 * _before[0] < 1e-8
assert abs(first / last / (_before[0] / _before[-1]) - 1) < 1e-3
_rnn, _x = nn.RNN(4, 16, batch_first=True), torch.randn(8, 60, 4, requires_grad=True)
_rnn(_x)[0][:, -1].sum().backward()
assert _rnn.weight_hh_l0.grad.norm() > 1
assert _x.grad[:, 0].norm() < 1e-6 * _x.grad[:, -1].norm()
for _norm, _low, _high in ((nn.Identity, 0, 1e-5), (nn.BatchNorm2d, 0.2, 5)):
    _convs = [
        nn.Sequential(_norm(8), nn.Conv2d(8, 8, 3, padding=1)) for _ in range(DEPTH)
    ]
    _h = torch.randn(16, 8, 8, 8)
    for _conv in _convs:
        _h = torch.relu(_conv(_h)) + (0 if _norm is nn.Identity else _h)
    nn.functional.cross_entropy(_h.mean((2, 3)), labels[:16]).backward()
    _first, _last = (_convs[i][1].weight.grad.norm() for i in (0, -1))
    assert _low < _first / _last < _high
# sphinx_gallery_end_ignore

# %%
# **A larger learning rate.** The last layers then move too far, and the first ones still do not move:

net = make_net(torch.relu)
start = net[0].linear.weight.detach().clone()
loss, _ = train(net, torch.optim.SGD(net.parameters(), lr=5.0), steps=40)
moved = (net[0].linear.weight - start).norm() / start.norm()
print(f"loss {loss:.2f}, layer 1 moved by {moved:.0e} of its norm")

# sphinx_gallery_start_ignore
assert loss > 0.8 and moved < 1e-5
# sphinx_gallery_end_ignore

# %%
# **A bias before BatchNorm** has the gradient 0 in training, up to rounding: ``BatchNorm`` subtracts the mean of the batch,
# and the bias with it. (The ``A`` of :ref:`LoRA <sphx_glr_gallery_modules_tied_weights_and_lora.py>` has it at the first step
# only.)

# varies: The gradient of the bias is rounding error.
layer = nn.Linear(32, 32)
(nn.BatchNorm1d(32)(layer(data)) ** 3).mean().backward()
print(f"weight {layer.weight.grad.norm():.0e}, bias {layer.bias.grad.norm():.0e}")

# sphinx_gallery_start_ignore
assert layer.bias.grad.norm() < 1e-4 * layer.weight.grad.norm()
# sphinx_gallery_end_ignore

# %%
# Exercise
# --------
# Adam divides each gradient by its recent size, plus ``eps=1e-8``. Does Adam train the default ReLU net, in which the gradient
# of layer 1 has a norm of less than ``1e-8``? And with ``eps=1e-16``?
#
# .. solution::
#
# With ``1e-8``, ``eps`` is larger than the gradients of layer 1, which hardly moves, and nothing is learned. With ``1e-16``, it
# moves at least as far as the last layer, and the loss falls.

for eps in (1e-8, 1e-16):
    net = make_net(torch.relu)
    optimizer = torch.optim.Adam(net.parameters(), lr=5e-3, eps=eps)
    loss, _ = train(net, optimizer, steps=80)
    print(f"eps={eps:.0e}: loss {loss:.2f}")
    assert loss > 0.68 if eps == 1e-8 else loss < 0.4

# sphinx_gallery_start_ignore
for _eps, _low, _high in ((1e-8, 0, 0.02), (1e-16, 1, 10)):
    _net = make_net(torch.relu)
    _start = [block.linear.weight.detach().clone() for block in _net[:-1]]
    train(_net, torch.optim.Adam(_net.parameters(), lr=5e-3, eps=_eps), steps=1)
    _moved = [(b.linear.weight - w).norm() for b, w in zip(_net, _start, strict=False)]
    assert _low <= _moved[0] / _moved[-1] < _high
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_training_initialisation.py`, why a layer keeps the variance or not.
# - :ref:`sphx_glr_gallery_debugging_loss_does_not_decrease.py`, other causes.
# - :ref:`sphx_glr_gallery_differentiation_hooks.py`, the gradient of an activation instead of a weight.
# - In PyTorch's tutorials: `Visualizing gradients
#   <https://docs.pytorch.org/tutorials/intermediate/visualizing_gradients_tutorial.html>`__.
