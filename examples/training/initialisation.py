r"""
Weight initialisation: the default, Xavier and Kaiming
======================================================

Each layer multiplies the variance of what passes through it, forward and backward. The scale of the first weights
decides whether that factor is near 1 or whether signal and gradient vanish or explode with depth. This page measures
the factor, shows what ``nn.Linear`` does by default and what Xavier and Kaiming do instead, and where initialisation
touches autograd.
"""

# %%
# What one layer does to the variance
# -----------------------------------
# Each output of a linear layer is a sum over its inputs. Their number is ``fan_in``. In backward, the gradient of
# each input is a sum over the outputs, and their number is ``fan_out``. If the weights are independent and have the
# mean 0,
#
# .. math::
#
#    \operatorname{Var}(y) = \text{fan\_in} \cdot \operatorname{Var}(w) \cdot \operatorname{E}[x^2], \qquad
#    \operatorname{Var}\!\left(\frac{\partial L}{\partial x}\right) =
#    \text{fan\_out} \cdot \operatorname{Var}(w) \cdot
#    \operatorname{E}\!\left[\left(\frac{\partial L}{\partial y}\right)^{2}\right]
#
# A layer from 100 to 400 values cannot keep both. Inputs and upstream gradients have the variance 1 here:

import math
import textwrap

import matplotlib.pyplot as plt
import pandas as pd
import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)  # small matrices: more threads do not help

choices = {
    "1 / fan_in": 1 / 100,
    "1 / fan_out": 1 / 400,
    "2 / (fan_in + fan_out)": 2 / (100 + 400),
}
rows = {}
for choice, variance in choices.items():
    w = torch.randn(400, 100) * math.sqrt(variance)
    x = torch.randn(2000, 100, requires_grad=True)
    y = x @ w.T
    y.backward(torch.randn_like(y))
    rows[choice] = {"Var(y)": y.var().item(), "Var(x.grad)": x.grad.var().item()}
table = pd.DataFrame(rows).T.rename_axis(index=None, columns="Var(w)")

# sphinx_gallery_start_ignore
for _choice, _row in table.iterrows():
    assert abs(_row["Var(y)"] / (100 * choices[_choice]) - 1) < 0.03
    assert abs(_row["Var(x.grad)"] / (400 * choices[_choice]) - 1) < 0.03
# sphinx_gallery_end_ignore
table.map("{:.2f}".format)

# %%
# The first choice keeps the activations, the second the gradients, the third is a compromise. The first is Kaiming
# initialisation without an activation function, the third is Xavier initialisation.

# %%
# What PyTorch does by default
# ----------------------------
# ``nn.Linear`` and ``nn.Conv2d`` call ``kaiming_uniform_(weight, a=math.sqrt(5))``, and draw the bias from the same
# interval. The odd argument is chosen so that the formula collapses:
#
# .. math::
#
#    \text{bound} = \sqrt{3} \cdot \underbrace{\sqrt{\frac{2}{1 + a^2}}}_{1/\sqrt{3}}
#    \cdot \frac{1}{\sqrt{\text{fan\_in}}} = \frac{1}{\sqrt{\text{fan\_in}}}
#
# ``fan_in`` is read from the shape of the weight: its second size times the size of the kernel.

layers = {
    "Linear(100, 400)": nn.Linear(100, 400),
    "Conv2d(16, 32, 3)": nn.Conv2d(16, 32, 3),
    "ConvTranspose2d(16, 32, 3)": nn.ConvTranspose2d(16, 32, 3),
}
rows = {}
for call, layer in layers.items():
    fan_in = layer.weight[0].numel()
    rows[call] = {
        "weight": str(list(layer.weight.shape)),
        "fan_in": fan_in,
        "1 / sqrt(fan_in)": round(1 / fan_in**0.5, 4),
        "largest |weight|": round(layer.weight.abs().max().item(), 4),
        "largest |bias|": round(layer.bias.abs().max().item(), 4),
    }
table = pd.DataFrame(rows).T.rename_axis(index=None, columns="layer")

# sphinx_gallery_start_ignore
for _layer in layers.values():
    _bound = 1 / _layer.weight[0].numel() ** 0.5
    assert 0.99 * _bound < _layer.weight.abs().max() <= _bound
    assert 0.85 * _bound < _layer.bias.abs().max() <= _bound
    torch.manual_seed(1)
    _layer.reset_parameters()
    torch.manual_seed(1)
    _again = torch.empty_like(_layer.weight)
    nn.init.kaiming_uniform_(_again, a=math.sqrt(5))
    assert torch.equal(_again, _layer.weight)
assert layers["ConvTranspose2d(16, 32, 3)"].weight[0].numel() == 32 * 9 != 16 * 9
assert abs(nn.init.calculate_gain("leaky_relu", math.sqrt(5)) - 3**-0.5) < 1e-12
_embedding = nn.Embedding(100, 400).weight
assert abs(_embedding.std() - 1) < 0.02
# sphinx_gallery_end_ignore
table

# %%
# A transposed convolution stores its sizes the other way round, so what is taken for its ``fan_in`` comes from the
# output channels. A uniform variable between -bound and bound has the variance :math:`\text{bound}^2 / 3`. So the
# default variance is :math:`\frac{1}{3\,\text{fan\_in}}`: a third of what keeps the activations in the table above.

# %%
# The gain: what the activation function takes away
# -------------------------------------------------
# An activation function changes :math:`\operatorname{E}[x^2]` before the next layer sees it. ``calculate_gain`` gives
# the factor for the weights that makes up for it. Feed a standard normal variable through each function:

normal = torch.special.ndtri((torch.arange(100_000) + 0.5).double() / 100_000)
functions = {
    "linear": (lambda x: x, None),
    "relu": (torch.relu, None),
    "leaky_relu": (lambda x: nn.functional.leaky_relu(x, 0.2), 0.2),
    "tanh": (torch.tanh, None),
    "sigmoid": (torch.sigmoid, None),
}
rows = {}
for name, (function, slope) in functions.items():
    gain = nn.init.calculate_gain(name, slope)
    left = function(normal).square().mean().item()
    rows[name] = {"gain": gain, "E[f(x)²]": left, "gain² · E[f(x)²]": gain**2 * left}
table = pd.DataFrame(rows).T.rename_axis(index=None, columns="function")

leaky = nn.init.calculate_gain("leaky_relu", 0.2)
print("leaky_relu, 0.2:", leaky)
assert leaky == math.sqrt(2 / (1 + 0.2**2)) == 1.3867504905630728

# sphinx_gallery_start_ignore
_product = table["gain² · E[f(x)²]"]
assert (abs(_product[["linear", "relu", "leaky_relu"]] - 1) < 1e-3).all()
assert 1.08 < _product["tanh"] < 1.11 and 0.28 < _product["sigmoid"] < 0.31
assert abs(table.loc["relu", "gain"] - 2**0.5) < 1e-12
assert abs(table.loc["tanh", "gain"] - 5 / 3) < 1e-12
assert nn.init.calculate_gain("selu") == 0.75
# sphinx_gallery_end_ignore
table.map("{:.4f}".format)

# %%
# ReLU takes half of :math:`\operatorname{E}[x^2]`, so its gain is :math:`\sqrt{2}`. Leaky ReLU keeps :math:`0.2^2` of
# the other half. For these the product is 1. The gain of tanh, :math:`5/3`, is a rule of thumb, and for the sigmoid
# there is no correction.

# %%
# Xavier and Kaiming
# ------------------
# With the gain :math:`g`, the standard deviations of the weights are
#
# .. math::
#
#    \sigma_\text{Xavier} = g \sqrt{\frac{2}{\text{fan\_in} + \text{fan\_out}}}, \qquad
#    \sigma_\text{Kaiming} = \frac{g}{\sqrt{\text{fan\_in}}}
#
# Each comes as ``_normal_`` and as ``_uniform_``. The uniform one has the bound :math:`\sqrt{3}\,\sigma`, which gives
# the same variance. ``mode="fan_out"`` puts ``fan_out`` into Kaiming's formula, to keep the gradients instead.

w = torch.empty(400, 100)
xavier = math.sqrt(2 / (100 + 400))
kaiming = math.sqrt(2) / math.sqrt(100)

nn.init.xavier_normal_(w)
print(f"xavier_normal_    std {w.std():.4f}   formula {xavier:.4f}")
nn.init.xavier_uniform_(w)
print(f"xavier_uniform_   max {w.max():.4f}   formula {math.sqrt(3) * xavier:.4f}")
nn.init.kaiming_normal_(w, nonlinearity="relu")
print(f"kaiming_normal_   std {w.std():.4f}   formula {kaiming:.4f}")
nn.init.kaiming_uniform_(w, nonlinearity="relu")
print(f"kaiming_uniform_  max {w.max():.4f}   formula {math.sqrt(3) * kaiming:.4f}")

# sphinx_gallery_start_ignore
for _name, _options, _sigma in (
    ("xavier", {}, xavier),
    ("xavier", {"gain": 2.0}, 2 * xavier),
    ("kaiming", {"nonlinearity": "relu"}, kaiming),
    ("kaiming", {}, kaiming),
    ("kaiming", {"nonlinearity": "relu", "mode": "fan_out"}, kaiming / 2),
):
    getattr(nn.init, f"{_name}_normal_")(w, **_options)
    assert abs(w.std() / _sigma - 1) < 0.02
    getattr(nn.init, f"{_name}_uniform_")(w, **_options)
    assert abs(w.std() / _sigma - 1) < 0.02
    assert abs(w.abs().max() / (3**0.5 * _sigma) - 1) < 0.01
# sphinx_gallery_end_ignore

# %%
# Thirty layers
# -------------
# A factor of 0.5 in each layer is harmless in a net of three layers. Through 30 it is :math:`0.5^{30}`, about
# :math:`10^{-9}`. Here are 30 layers of width :math:`n = 100`. At equal widths both formulas come down to
# :math:`g / \sqrt{n}`, so one number describes each choice. A gradient of variance 1 arrives at the last layer.

N, DEPTH = 100, 30


def through(gain, activation):
    torch.manual_seed(0)
    h, hidden = torch.randn(100, N, dtype=torch.float64), []
    for _ in range(DEPTH):
        layer = nn.Linear(N, N, dtype=torch.float64)
        if gain:
            nn.init.normal_(layer.weight, std=gain / math.sqrt(N))
            nn.init.zeros_(layer.bias)
        h = activation(layer(h))
        h.retain_grad()
        hidden.append(h)
    h.backward(torch.randn_like(h))
    forward = [h.var().item() for h in hidden]
    backward = [h.grad.var().item() for h in hidden]
    return forward, backward, h.var(dim=0).mean().item()


# %%
# Ten runs: five scales, two activation functions.

SCALES = {
    "too small, g = 0.5": (0.5, "#64748b", ":"),
    "default": (None, "#7c3aed", "-."),
    "Xavier, g = 1": (1, "#2563eb", "--"),
    "Kaiming, g = √2": (math.sqrt(2), "#047857", "-"),
    "too large, g = 2": (2, "#c2410c", (0, (7, 2))),
}
curves = {
    (name, f.__name__): through(gain, f)
    for f in (torch.relu, torch.tanh)
    for name, (gain, *_) in SCALES.items()
}

# figure: Four panels on logarithmic axes: variance by layer, from 1 to 30, of activations on the left and of
#   gradients on the right, for relu above and tanh below. With relu only the Kaiming line stays near 1, and all the
#   others are straight lines away from it, except for the default, whose activations stop falling. With tanh no
#   activations explode, but the gradients of the largest scale grow towards the first layer.
fig, axes = plt.subplots(2, 2, figsize=(7, 6), sharex=True, layout="constrained")
for (name, f), (forward, backward, _) in curves.items():
    _, colour, dash = SCALES[name]
    style = {"color": colour, "linestyle": dash, "label": name}
    left, right = axes[int(f == "tanh")]
    left.semilogy(range(1, DEPTH + 1), forward, **style)
    right.semilogy(range(1, DEPTH + 1), backward, **style)
    left.set(title=f"{f}: activations", xlabel="layer", ylabel="variance")
    right.set(title=f"{f}: gradients", xlabel="layer")
fig.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=3)

# sphinx_gallery_start_ignore
_factors = {
    "too small, g = 0.5": 0.25 / 2,
    "default": 1 / 6,
    "Xavier, g = 1": 1 / 2,
    "Kaiming, g = √2": 1,
    "too large, g = 2": 2,
}
for _name, _factor in _factors.items():
    assert 1 / 20 < curves[_name, "relu"][1][0] / _factor ** (DEPTH - 1) < 8, _name
assert min(curves["Kaiming, g = √2", "relu"][0]) > 0.1
assert max(curves["Kaiming, g = √2", "relu"][0]) < 3
assert all(max(curves[_name, "tanh"][0]) < 1 for _name in SCALES)
# sphinx_gallery_end_ignore

# %%
# The same as numbers: the activations of the last layer, and the gradient that reaches the first.

columns = {}
for f in ("relu", "tanh"):
    columns[f"{f}: activations, layer 30"] = [curves[name, f][0][-1] for name in SCALES]
    columns[f"{f}: gradients, layer 1"] = [curves[name, f][1][0] for name in SCALES]
table = pd.DataFrame(columns, index=list(SCALES))

# sphinx_gallery_start_ignore
_small, _default, _xavier, _kaiming, _large = table.to_numpy().tolist()
assert 1e-10 < _xavier[0] < 1e-8 and 1e-10 < _xavier[1] < 1e-8
assert _default[0] > 1e-4 and _default[1] < 1e-21
assert 1e-3 < _xavier[2] < 1e-1 and 1e-2 < _xavier[3] < 1
assert 0.4 < _large[2] < 0.7 and 1e3 < _large[3] < 1e5
assert 0.2 < _kaiming[2] < 0.4 and 5 < _kaiming[3] < 50
# sphinx_gallery_end_ignore
table.map("{:.1e}".format).rename_axis(index=None, columns="initialisation")

# %%
# - With ReLU the factor of a layer is :math:`g^2 / 2`. Only :math:`g = \sqrt{2}` makes it 1.
# - Tanh cannot exceed 1, so a scale that is too large does not show in the activations. It shows in the gradients,
#   which grow from layer to layer on their way back. At :math:`g = 1` both fade slowly.
# - With the default the activations stop falling, which looks stable and is not. What is left in layer 30 are the
#   biases. The signal has faded as the gradient has, to about a sixth in each layer.
#
# The last point shows in how much the outputs of the last layer still differ between *samples*:

for name in ("default", "Kaiming, g = √2"):
    forward, _, between_samples = curves[name, "relu"]
    print(f"{name:<16} all values {forward[-1]:.0e}   samples {between_samples:.0e}")

# sphinx_gallery_start_ignore
assert curves["default", "relu"][2] < 1e-20 and _default[0] > 1e-4
assert curves["Kaiming, g = √2", "relu"][2] > 1e-3
torch.manual_seed(0)
_h, _hidden = torch.randn(100, N), []
for _ in range(DEPTH):
    _h = torch.relu(nn.functional.layer_norm(nn.Linear(N, N)(_h), (N,)))
    _h.retain_grad()
    _hidden.append(_h)
_h.backward(torch.randn_like(_h))
assert _h.var(dim=0).mean() > 1e-3
assert all(0.1 < _h.grad.var() < 10 for _h in _hidden)
# sphinx_gallery_end_ignore

# %%
# With the default, 30 plain layers give nearly the same output for every input. Layer normalisation between a layer
# and its activation function sets the scale anew: with it, the gradients of the default stay between 0.1 and 10.

# %%
# Where it touches autograd: a leaf is changed in place
# -----------------------------------------------------
# To initialise is to write into a parameter that exists already: an in-place change of a leaf that requires grad.
# That is :ref:`refused while recording is on <sphx_glr_gallery_errors_leaf_in_place.py>`.

layer = nn.Linear(3, 2)
weight = layer.weight
try:
    weight.uniform_(-1, 1)
except RuntimeError as error:
    print("RuntimeError:", error)
    assert "a leaf Variable that requires grad is being used" in str(error)

# %%
# The functions in ``nn.init`` switch recording off themselves. For your own formula, write the block. The parameter
# stays the same tensor and a leaf, and nothing is recorded. But the write is counted in its version.

print("version", weight._version, "  made by its constructor")
nn.init.xavier_uniform_(weight)
print("version", weight._version, "  after nn.init")
with torch.no_grad():
    weight.uniform_(-1, 1).mul_(0.5)
print("version", weight._version, "  after two operations in a block")
print("the same tensor:", layer.weight is weight, "  leaf:", weight.is_leaf)
assert layer.weight is weight and weight.is_leaf and weight.grad_fn is None

# sphinx_gallery_start_ignore
assert weight.requires_grad and weight._version == 4
# sphinx_gallery_end_ignore

# %%
# So an initialisation between forward and backward does not go unnoticed. The graph had saved the weight:

x = torch.ones(1, 3, requires_grad=True)
loss = (x @ weight.T).sum()
nn.init.zeros_(weight)
try:
    loss.backward()
except RuntimeError as error:
    print(textwrap.fill(f"RuntimeError: {error}".split(", which")[0], 88))
    assert "modified by an inplace operation" in str(error)

# %%
# Resetting a model: modules(), not children()
# --------------------------------------------
# ``reset_parameters()`` draws the default again. A container does not have it, so call it on every module that does.
# ``children()`` gives the direct children only; ``modules()`` goes all the way down.
#
# To count, every parameter is filled with 7 first. What is still 7 afterwards was missed.

net = nn.Sequential(
    nn.Linear(8, 8),
    nn.Sequential(nn.Linear(8, 8), nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8))),
    nn.Linear(8, 2),
)


def missed(net, modules):
    for parameter in net.parameters():
        nn.init.constant_(parameter, 7)
    for module in modules:
        if hasattr(module, "reset_parameters"):
            module.reset_parameters()
    return [name for name, p in net.named_parameters() if (p == 7).all()]


# %%
# The net has ten parameters.

print("missed by children():", len(missed(net, net.children())))
print("missed by modules(): ", len(missed(net, net.modules())))
assert len(missed(net, net.children())) == 6 and not missed(net, net.modules())

# sphinx_gallery_start_ignore
assert len(list(net.parameters())) == 10 and not hasattr(net, "reset_parameters")
# sphinx_gallery_end_ignore

# %%
# ``modules()`` has a gap too: a parameter whose own module does not have the method. Attention is such a module.

block = nn.TransformerEncoderLayer(8, nhead=2)
print(missed(block, block.modules()))

# sphinx_gallery_start_ignore
assert missed(block, block.modules()) == [
    "self_attn.in_proj_weight",
    "self_attn.in_proj_bias",
]
# sphinx_gallery_end_ignore

# %%
# For an initialisation of your own, ``apply`` calls a function on every module, at any depth.


def for_relu(module):
    if isinstance(module, (nn.Linear, nn.Conv2d)):
        nn.init.kaiming_normal_(module.weight, nonlinearity="relu")
        nn.init.zeros_(module.bias)


net.apply(for_relu)
print([name for name, parameter in net.named_parameters() if (parameter == 0).all()])

# sphinx_gallery_start_ignore
assert not net[0].bias.any() and not net[1][1][0].bias.any() and not net[2].bias.any()
assert net[1][1][0].weight.std() > 0.3
_layer = nn.Linear(2, 2)
_optimizer = torch.optim.SGD(_layer.parameters(), lr=0.1, momentum=0.9)
_layer(torch.ones(1, 2)).sum().backward()
_optimizer.step()
_weight, _momentum = (
    _layer.weight,
    _optimizer.state[_layer.weight]["momentum_buffer"].clone(),
)
_layer.reset_parameters()
assert _layer.weight is _weight and _weight.grad is not None and _momentum.any()
assert torch.equal(_optimizer.state[_weight]["momentum_buffer"], _momentum)
# sphinx_gallery_end_ignore

# %%
# Every bias is zero, however deep its layer; that of the normalisation begins so. All these functions write into the
# parameters that are there. So an optimizer still holds them, but their ``.grad`` and its momentum are from before.

# %%
# What people get wrong
# ---------------------
# **One number for all layers.** ``normal_(weight, std=0.01)`` knows nothing of ``fan_in``. At the width 100 it means
# :math:`g = 0.1`, and the weights of ``torch.randn`` mean :math:`g = 10`. After thirty layers with ReLU:

for std in (0.01, 1.0):
    forward, backward, _ = through(std * math.sqrt(N), torch.relu)
    print(f"std {std:<4}   activations {forward[-1]:.0e}   gradients {backward[0]:.0e}")
    assert not 1e-40 < forward[-1] < 1e40 and not 1e-40 < backward[0] < 1e40

# sphinx_gallery_start_ignore
assert 0.01 * math.sqrt(N) == 0.1 and math.sqrt(N) == 10
# sphinx_gallery_end_ignore

# %%
# **The same value everywhere.** Units that start equal get equal gradients, and so they stay equal for ever: a hidden
# layer of 16 such units does the work of one. Zeros are worse. No gradient gets through a weight that is zero.


def gradient_of_hidden(value):
    torch.manual_seed(0)
    hidden, out = nn.Linear(4, 16), nn.Linear(16, 1)
    if value is not None:
        nn.init.constant_(hidden.weight, value)
        nn.init.constant_(hidden.bias, value)
        nn.init.constant_(out.weight, value)
    out(torch.tanh(hidden(torch.randn(64, 4)))).square().mean().backward()
    return hidden.weight.grad


for value in (None, 0.1, 0.0):
    gradient = gradient_of_hidden(value)
    name = "random" if value is None else f"all {value}"
    rows = len(gradient.unique(dim=0))
    print(f"{name:<8} {rows:>2} different rows, norm {gradient.norm():.3f}")
    assert rows == (16 if value is None else 1)

# sphinx_gallery_start_ignore
assert not gradient.any() and gradient_of_hidden(0.1).any()
# sphinx_gallery_end_ignore

# %%
# **Xavier for every parameter.** A vector, such as a bias, has no ``fan_in``.

try:
    for parameter in nn.Linear(3, 2).parameters():
        nn.init.xavier_uniform_(parameter)
except ValueError as error:
    print(textwrap.fill(f"ValueError: {error}", 88))
    assert "can not be computed for tensor with fewer than 2 dimensions" in str(error)

# %%
# Exercise
# --------
# A net of 30 layers with ``LeakyReLU(0.2)`` was initialised by ``kaiming_normal_(weight, nonlinearity="relu")``, the
# biases with zero. By what factor is the variance in the last layer too large? Calculate it, then measure.
#
# .. solution::
#
# The gain was :math:`\sqrt{2}` and should have been :math:`\sqrt{2 / 1.04}`. Each layer multiplies the variance by
# 1.04 too much, thirty layers by :math:`1.04^{30}`. Without biases, scaling the weights scales the output, so with
# one seed the ratio comes out to many digits.


def last_variance(gain):
    return through(gain, lambda x: nn.functional.leaky_relu(x, 0.2))[0][-1]


ratio = last_variance(math.sqrt(2)) / last_variance(leaky)
print(f"measured {ratio:.3f}   calculated {1.04**30:.3f}")
assert math.isclose(ratio, 1.04**30, rel_tol=1e-9)

# predict: ratio -- By what factor is the variance too large?

# %%
# See also
# --------
# - Before: :ref:`sphx_glr_gallery_training_custom_losses.py`.
# - Next: :ref:`sphx_glr_gallery_training_optimizers.py`, what changes the weights from then on.
# - :ref:`sphx_glr_gallery_differentiation_hooks.py`: watch the gradient of each layer without changing the model.
# - :ref:`sphx_glr_gallery_tensors_detach_clone_data.py`: why not to write through ``.data``.
# - In PyTorch's reference: `torch.nn.init <https://docs.pytorch.org/docs/stable/nn.init.html>`__ and `Module.apply
#   <https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.apply>`__.
