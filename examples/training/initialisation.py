r"""
Weight initialization: the default, Xavier and Kaiming
======================================================

.. index::
   single: weight initialization
   single: Kaiming (He) initialization
   single: Xavier (Glorot) initialization
   single: default initialization of nn.Linear and nn.Conv2d
   single: kaiming_uniform_ with a=sqrt(5)
   single: reset_parameters for a whole model
   single: gradients vanish or explode with depth
   single: calculate_gain

.. in-short::

   For a deep net without skip connections or normalization, use Kaiming with ReLU, and ``xavier_normal_`` with tanh:

   .. code-block:: python

      def init(module):
          if isinstance(module, (nn.Linear, nn.Conv2d)):
              nn.init.kaiming_normal_(module.weight, nonlinearity="relu")
              if module.bias is not None:
                  nn.init.zeros_(module.bias)


      model.apply(init)

   The default is smaller: between equally wide layers with ReLU, each leaves about a sixth of the gradient's variance. A
   net of three layers trains with it too. ``init`` skips parameters that other modules hold, such as ``in_proj_weight`` of
   attention. Call it before you load weights, which it would overwrite, and before ``weight_norm``, under which it changes
   nothing.
"""

# %%
# The loss of a deep net does not decrease
# ----------------------------------------
# This net has 30 equal layers. With the default weights, the gradients vanish on the way to layer 1, so it does not learn.
# ``init`` draws larger ones, and ``apply`` calls it on each module, at any depth:

import math
import textwrap

import torch
from torch import nn

torch.set_num_threads(1)  # small matrices: more threads do not help


def init(module):
    if isinstance(module, (nn.Linear, nn.Conv2d)):
        nn.init.kaiming_normal_(module.weight, nonlinearity="relu")
        if module.bias is not None:
            nn.init.zeros_(module.bias)


def train(init, depth=30):
    torch.manual_seed(0)
    layers = []
    for _ in range(depth):
        layers += [nn.Linear(100, 100), nn.ReLU()]
    net = nn.Sequential(*layers, nn.Linear(100, 1)).apply(init)
    x = torch.randn(64, 100)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    for _ in range(100):
        loss = (net(x) - x[:, :1]).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


recipes = {"default": lambda module: None, "Kaiming": init}
for name, function in recipes.items():
    loss = train(function)
    print(f"{name}: loss {loss:.2f} after 100 steps of Adam")
    # sphinx_gallery_start_ignore
    assert loss > 0.85 if name == "default" else loss < 0.05
    # sphinx_gallery_end_ignore

# sphinx_gallery_start_ignore
_seen = []
_deep = nn.Sequential(nn.Sequential(nn.Sequential(nn.Linear(2, 2))), nn.ReLU())
_deep.apply(_seen.append)
assert _seen[-1] is _deep and set(_seen) == set(_deep.modules())
for _module in (
    nn.Linear(3, 2, bias=False),
    nn.Conv2d(2, 2, 1, bias=False),
    nn.Conv2d(4, 4, 3, groups=4),
    nn.Linear(1, 1),
    nn.Linear(3, 2, dtype=torch.bfloat16),
    nn.Linear(3, 2, dtype=torch.complex64),
):
    _before = _module.weight
    init(_module)
    assert _module.weight is _before and _before.is_leaf and _before.requires_grad
_forms = nn.utils.parametrizations
for _norm in (_forms.weight_norm, _forms.orthogonal):
    _layer = _norm(nn.Linear(4, 4))
    _before = _layer.weight.detach().clone()
    init(_layer)
    assert torch.equal(_layer.weight, _before)  # the write is lost
_layer = nn.Linear(4, 4)
init(_layer)
_before = _layer.weight.detach().clone()
assert torch.allclose(_forms.weight_norm(_layer).weight, _before)
assert train(lambda module: None, depth=3) < 0.05  # a short net
_embedding, _head = nn.Embedding(1000, 64), nn.Linear(64, 1000, bias=False)
_head.weight = _embedding.weight  # tied
assert abs(_embedding.weight.std() - 1) < 0.02
nn.ModuleList([_embedding, _head]).apply(init)
assert _embedding.weight.std() < 0.2
# sphinx_gallery_end_ignore

# %%
# .. how-measured:: This code fills 30 layers, sends a gradient back, and draws the variances.

import matplotlib.pyplot as plt
import pandas as pd

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


def plot_variances(f):
    fig, (left, right) = plt.subplots(1, 2, figsize=(7, 3.2), layout="constrained")
    for name, (_, color, dash) in SCALES.items():
        style = {"color": color, "linestyle": dash, "label": name}
        forward, backward, _ = curves[name, f]
        left.semilogy(range(1, DEPTH + 1), forward, **style)
        right.semilogy(range(1, DEPTH + 1), backward, **style)
    left.set(title=f"{f}: activations", xlabel="layer", ylabel="variance")
    right.set(title=f"{f}: gradients", xlabel="layer")
    fig.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=3)


# %%
# **Choose the weights so that each layer keeps the variance.** Each line is one choice: the weights have the standard deviation
# :math:`g / \sqrt{100}`. Read the gradients from right to left, since backward begins at layer 30:

# figure: Two panels with logarithmic axes over the layers 1 to 30 with relu: the variance of the activations, and that of the
#   gradients. In both, the Kaiming line stays near 1, and the lines of the other scales g leave it as straight lines. The
#   activations of the default stop falling at about 0.001, but its gradients fall to less than 1e-20 in layer 1.
plot_variances("relu")

# sphinx_gallery_start_ignore
import itertools as _itertools

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
assert all(0.1 < v < 3 for v in curves["Kaiming, g = √2", "relu"][1])
assert curves["default", "relu"][1][0] < 1e-20
assert 1e-4 < curves["default", "relu"][0][-1] < 1e-2
for _widths, _low, _high in (
    ([50] * 21, 1 / 8, 1 / 5),
    ([400] * 21, 1 / 6.5, 1 / 5.5),
    ([100, 400] * 10 + [100], 1 / 8, 1 / 5),  # the ratios cancel here
    ([25, 50, 100, 200, 400], 1 / 4, 1 / 2.5),  # twice as wide: a third
):
    torch.manual_seed(0)
    _h, _hidden = torch.randn(200, _widths[0], dtype=torch.float64), []
    for _in, _out in _itertools.pairwise(_widths):
        _h = torch.relu(nn.Linear(_in, _out, dtype=torch.float64)(_h))
        _h.retain_grad()
        _hidden.append(_h)
    _h.backward(torch.randn_like(_h))
    _ratio = (_hidden[0].grad.var() / _hidden[-1].grad.var()).item()
    assert _low < _ratio ** (1 / (len(_hidden) - 1)) < _high, _widths
# sphinx_gallery_end_ignore

# %%
# The activations of the default stop falling because of its biases.

# %%
# Xavier and Kaiming
# ------------------
# A linear layer has ``fan_in`` inputs and ``fan_out`` outputs. The two recipes choose the standard deviation of the weights:
#
# .. math::
#
#    \sigma_\text{Xavier} = g \sqrt{\frac{2}{\text{fan\_in} + \text{fan\_out}}}, \qquad
#    \sigma_\text{Kaiming} = \frac{g}{\sqrt{\text{fan\_in}}}
#
# The gain :math:`g` depends on the activation function. If all widths are equal to :math:`n`, both are :math:`g / \sqrt{n}`.
# ``_normal_`` and ``_uniform_`` give the same variance: the uniform version draws from :math:`\pm\sqrt{3}\,\sigma`.

w = torch.empty(400, 100)
xavier = math.sqrt(2 / (100 + 400))
kaiming = math.sqrt(2) / math.sqrt(100)

nn.init.xavier_normal_(w)
print(f"xavier_normal_    std {w.std():.4f}   formula {xavier:.4f}")
nn.init.kaiming_normal_(w, nonlinearity="relu")
print(f"kaiming_normal_   std {w.std():.4f}   formula {kaiming:.4f}")
nn.init.kaiming_uniform_(w, nonlinearity="relu")
bound = math.sqrt(3) * kaiming
print(f"kaiming_uniform_  max {w.max():.4f}   formula {bound:.4f}")

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
# The default of nn.Linear: why a=sqrt(5)
# ---------------------------------------
# ``nn.Linear`` and ``nn.Conv2d`` call ``kaiming_uniform_(weight, a=math.sqrt(5))``. The ``a`` is the slope of a leaky ReLU,
# but it only serves to make the formula short:
#
# .. math::
#
#    \text{bound} = \sqrt{3} \cdot \sqrt{\frac{2}{1 + a^2}} \cdot \frac{1}{\sqrt{\text{fan\_in}}}
#    = \frac{1}{\sqrt{\text{fan\_in}}}
#
# The bias, if there is one, comes from the same interval. The largest weights come close to the bound:

for layer in (nn.Linear(100, 400), nn.Conv2d(16, 32, 3)):
    fan_in = layer.weight[0].numel()
    largest = layer.weight.abs().max().item()
    print(f"bound {fan_in**-0.5:.4f}   largest weight {largest:.4f}")

# sphinx_gallery_start_ignore
_layers = nn.Linear(100, 400), nn.Conv2d(16, 32, 3)
for _layer in _layers:
    _bound = 1 / _layer.weight[0].numel() ** 0.5
    assert 0.99 * _bound < _layer.weight.abs().max() <= _bound
    assert 0.85 * _bound < _layer.bias.abs().max() <= _bound
    assert abs(_layer.weight.var() * 3 * _layer.weight[0].numel() - 1) < 0.05
for _layer in (
    *_layers,
    nn.Linear(7, 5, bias=False),
    nn.Conv2d(8, 8, 3, groups=4),
    nn.Linear(1, 1, dtype=torch.float16),
):
    torch.manual_seed(1)
    _layer.reset_parameters()
    torch.manual_seed(1)
    _again = torch.empty_like(_layer.weight)
    nn.init.kaiming_uniform_(_again, a=math.sqrt(5))
    assert torch.equal(_again, _layer.weight)
assert abs(nn.init.calculate_gain("leaky_relu", math.sqrt(5)) - 3**-0.5) < 1e-12
_embedding = nn.Embedding(100, 400).weight
assert abs(_embedding.std() - 1) < 0.02
# sphinx_gallery_end_ignore

# %%
# ``nn.Embedding`` draws from a normal distribution with the standard deviation 1.
#
# A uniform variable between -bound and bound has the variance :math:`\text{bound}^2 / 3`. So the variance of the default
# weights is :math:`\frac{1}{3\,\text{fan\_in}}`, a third of what keeps the activations without ReLU.

# %%
# Why: what a layer does to the variance
# --------------------------------------
# Each output is a sum over ``fan_in`` inputs. In backward, the gradient of each input is a sum over ``fan_out`` outputs. If
# the weights are independent and have the mean 0,
#
# .. math::
#
#    \operatorname{Var}(y) = \text{fan\_in} \cdot \operatorname{Var}(w) \cdot \operatorname{E}[x^2], \qquad
#    \operatorname{Var}\!\left(\frac{\partial L}{\partial x}\right) =
#    \text{fan\_out} \cdot \operatorname{Var}(w) \cdot
#    \operatorname{E}\!\left[\left(\frac{\partial L}{\partial y}\right)^{2}\right]
#
# A layer from 100 to 400 values cannot keep both variances:
#
# .. how-measured:: Inputs and incoming gradients have the variance 1, and the weights one of three variances.

torch.manual_seed(0)
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
measured_variances = pd.DataFrame(rows).T.rename_axis(index=None, columns="Var(w)")

# sphinx_gallery_start_ignore
for _choice, _row in measured_variances.iterrows():
    assert abs(_row["Var(y)"] / (100 * choices[_choice]) - 1) < 0.03
    assert abs(_row["Var(x.grad)"] / (400 * choices[_choice]) - 1) < 0.03
# sphinx_gallery_end_ignore

# %%
# The measured variances:

measured_variances.map("{:.2f}".format)

# %%
# The first row is Kaiming with :math:`g = 1`: it keeps the activations. The second is Kaiming with ``mode="fan_out"``: it keeps
# the gradients. The third is Xavier, a compromise.
#
# With the default, a layer of equal sizes multiplies the variance of the gradient by a third, and ReLU halves it: this is the
# sixth of the box.

# %%
# Gain and activation function
# ----------------------------
# The gain corrects for what the activation function does to :math:`\operatorname{E}[x^2]`.
#
# .. how-measured:: A standard normal input goes through each function, and calculate_gain gives the gain.

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
gains = pd.DataFrame(rows).T.rename_axis(index=None, columns="function")

# sphinx_gallery_start_ignore
_product = gains["gain² · E[f(x)²]"]
assert (abs(_product[["linear", "relu", "leaky_relu"]] - 1) < 1e-3).all()
assert 1.08 < _product["tanh"] < 1.11 and 0.28 < _product["sigmoid"] < 0.31
assert abs(gains.loc["relu", "gain"] - 2**0.5) < 1e-12
assert abs(gains.loc["tanh", "gain"] - 5 / 3) < 1e-12
assert gains.loc["sigmoid", "gain"] == 1
leaky = nn.init.calculate_gain("leaky_relu", 0.2)
assert leaky == math.sqrt(2 / (1 + 0.2**2)) == 1.3867504905630728
_raised = []
for _name in ("gelu", "silu"):
    try:
        nn.init.calculate_gain(_name)
    except ValueError as _error:
        _raised.append(str(_error))
assert _raised == ["Unsupported nonlinearity gelu", "Unsupported nonlinearity silu"]
# sphinx_gallery_end_ignore

# %%
# If it corrects fully, the last column is 1:

gains.map("{:.4f}".format)

# %%
# ReLU keeps half of :math:`\operatorname{E}[x^2]`, so its gain is :math:`\sqrt{2}`. The sigmoid gets no correction. GELU and
# SiLU are not in the list: ``calculate_gain("gelu")`` raises *Unsupported nonlinearity gelu*. With tanh, the 30 layers look
# different:

# figure: Two panels with logarithmic axes over the layers 1 to 30 with tanh: variance of activations and gradients. No
#   activations explode. The gradients of the scale 2 grow to almost 10,000 in layer 1, those of Kaiming to about 10. With
#   Xavier both fade to about 0.01 or 0.1, and with the two smaller scales to less than 1e-10.
plot_variances("tanh")

# sphinx_gallery_start_ignore
_last = {name: curves[name, "tanh"][0][-1] for name in SCALES}
_first = {name: curves[name, "tanh"][1][0] for name in SCALES}
assert all(max(curves[_name, "tanh"][0]) < 1 for _name in SCALES)
assert 1e-3 < _last["Xavier, g = 1"] < 1e-1 and 1e-2 < _first["Xavier, g = 1"] < 1
assert 0.4 < _last["too large, g = 2"] < 0.7
assert 1e3 < _first["too large, g = 2"] < 1e4
assert 0.2 < _last["Kaiming, g = √2"] < 0.4 and 5 < _first["Kaiming, g = √2"] < 50
assert max(_first["default"], _first["too small, g = 0.5"]) < 1e-10
_forward, _backward, _ = through(5 / 3, torch.tanh)
assert 100 < _backward[0] < 400 and 0.3 < _forward[-1] < 0.6
# sphinx_gallery_end_ignore

# %%
# Tanh stays between -1 and 1, so weights that are too large show in the gradients. With ``xavier_normal_`` and its default
# gain of 1, both fade slowly. With the gain :math:`5/3` of the table, the variance of the gradient grows more than
# a hundredfold.

# %%
# Reset a model: modules(), not children()
# ----------------------------------------
# ``reset_parameters()`` draws the default of a layer again. Call it on each module that has it:

net = nn.Sequential(
    nn.Linear(8, 8),
    nn.Sequential(nn.Linear(8, 8), nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8))),
    nn.Linear(8, 2),
)

for module in net.modules():
    if hasattr(module, "reset_parameters"):
        module.reset_parameters()

# %%
# ``children()`` instead of ``modules()`` finds only the direct children.
#
# .. how-measured:: This code fills all parameters with 7, resets the modules, and lists the parameters that are still 7.


def missed(net, modules):
    for parameter in net.parameters():
        nn.init.constant_(parameter, 7)
    for module in modules:
        if hasattr(module, "reset_parameters"):
            module.reset_parameters()
    return [name for name, p in net.named_parameters() if (p == 7).all()]


block = nn.TransformerEncoderLayer(8, nhead=2)

# %%
# In a net with two levels of containers, and in a transformer block:

print("children():", len(missed(net, net.children())), "of 10 missed")
print("modules(): ", len(missed(net, net.modules())), "of 10 missed")
print("attention: ", missed(block, block.modules()))

# sphinx_gallery_start_ignore
assert len(missed(net, net.children())) == 6 and not missed(net, net.modules())
assert len(list(net.parameters())) == 10 and not hasattr(net, "reset_parameters")
assert missed(block, block.modules()) == [
    "self_attn.in_proj_weight",
    "self_attn.in_proj_bias",
]
for _norm in ("weight_norm", "spectral_norm", "orthogonal"):
    _layer = getattr(nn.utils.parametrizations, _norm)(nn.Linear(8, 8))
    _kept = missed(_layer, _layer.modules())
    assert _kept and all(name.startswith("parametrizations") for name in _kept)
for _layer in (
    nn.Linear(2, 2),
    nn.Conv1d(2, 2, 1),
    nn.LSTM(2, 2),
    nn.Embedding(3, 2, padding_idx=0),
    nn.Bilinear(2, 2, 2),
    nn.GroupNorm(1, 2),
    nn.PReLU(),
):
    _before = {name: id(p) for name, p in _layer.named_parameters()}
    assert not missed(_layer, _layer.modules())
    assert _before == {name: id(p) for name, p in _layer.named_parameters()}
for _kind, _key in (
    (torch.optim.SGD, "momentum_buffer"),
    (torch.optim.Adam, "exp_avg"),
):
    _layer = nn.Linear(2, 2)
    _options = {"momentum": 0.9} if _kind is torch.optim.SGD else {}
    _optimizer = _kind(_layer.parameters(), lr=0.1, **_options)
    _layer(torch.ones(1, 2)).sum().backward()
    _optimizer.step()
    _weight, _state = _layer.weight, _optimizer.state[_layer.weight][_key].clone()
    _layer.reset_parameters()
    assert _layer.weight is _weight and _weight.grad is not None and _state.any()
    assert torch.equal(_optimizer.state[_weight][_key], _state)
# sphinx_gallery_end_ignore

# %%
# So the loop misses two parameters of this ``nn.MultiheadAttention``, which has no such method. It also misses weights under
# ``weight_norm``, which are computed from other parameters. If you need all of them, build the model again.
#
# A reset keeps the parameters, so the optimizer still updates them. But ``.grad`` and the optimizer's momentum are from before:
# call ``zero_grad()`` and make a new optimizer.

# %%
# What people get wrong
# ---------------------
# **One number for all layers.** ``normal_(weight, std=0.01)`` ignores ``fan_in``. At the width 100 it means :math:`g = 0.1`,
# and the weights of ``torch.randn`` mean :math:`g = 10`. (Many transformers use 0.02, but they have normalization.) The
# variances after 30 layers with ReLU:

for std in (0.01, 1.0):
    forward, backward, _ = through(std * math.sqrt(N), torch.relu)
    last, first = forward[-1], backward[0]
    print(f"std {std:<4}   activations {last:.0e}   gradients {first:.0e}")

# sphinx_gallery_start_ignore
for _std in (0.01, 1.0):
    _forward, _backward, _ = through(_std * math.sqrt(N), torch.relu)
    assert not 1e-40 < _forward[-1] < 1e40 and not 1e-40 < _backward[0] < 1e40
assert 0.01 * math.sqrt(N) == 0.1 and math.sqrt(N) == 10
# sphinx_gallery_end_ignore

# %%
# **The same value in all weights.** Then the 16 hidden units of this net get equal gradients and stay equal, so they do the
# work of one unit. If the value is 0, the gradient of the hidden layer is 0 too:
#
# .. how-measured:: This code fills both weights of a small net, and takes the gradient of its hidden layer.


def gradient_of_hidden(fill):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1))
    for layer in (net[0], net[2]):
        fill(layer.weight)
    nn.init.zeros_(net[0].bias)
    net(torch.randn(64, 4)).square().mean().backward()
    return net[0].weight.grad


fills = {
    "random": nn.init.xavier_normal_,
    "all 0.1": lambda weight: nn.init.constant_(weight, 0.1),
    "all 0": nn.init.zeros_,
}

# %%
# Each unit has one row of the gradient:

for name, fill in fills.items():
    gradient = gradient_of_hidden(fill)
    rows = len(gradient.unique(dim=0))
    print(f"{name:<8} {rows:>2} different rows, norm {gradient.norm():.3f}")

# sphinx_gallery_start_ignore
assert [len(gradient_of_hidden(_f).unique(dim=0)) for _f in fills.values()] == [
    16,
    1,
    1,
]
assert not gradient.any() and gradient_of_hidden(fills["all 0.1"]).any()
# sphinx_gallery_end_ignore

# %%
# **Xavier for each parameter.** A bias is a vector, and a vector has no ``fan_in``:

try:
    for parameter in nn.Linear(3, 2).parameters():
        nn.init.xavier_uniform_(parameter)
except ValueError as error:
    print(textwrap.fill(f"ValueError: {error}", 88))

# sphinx_gallery_start_ignore
_raised = []
for _fill in (nn.init.xavier_uniform_, nn.init.kaiming_normal_):
    for _shape in ((), (3,)):
        try:
            _fill(torch.empty(_shape))
        except ValueError as _error:
            _raised.append("tensor with fewer than 2 dimensions" in str(_error))
assert _raised == [True] * 4
# sphinx_gallery_end_ignore

# %%
# **Your own formula, while autograd records.** A weight is a leaf, and autograd refuses to :ref:`change a leaf in place
# <sphx_glr_gallery_errors_leaf_in_place.py>`:

layer = nn.Linear(3, 2)
try:
    layer.weight.uniform_(-1, 1)
except RuntimeError as error:
    print("RuntimeError:", error)

with torch.no_grad():  # this works
    layer.weight.uniform_(-1, 1)

# sphinx_gallery_start_ignore
_raised = []
try:
    layer.weight.uniform_(-1, 1)
except RuntimeError as _error:
    _raised.append("a leaf Variable that requires grad is being used" in str(_error))
assert _raised == [True]
_weight = layer.weight
assert _weight.is_leaf and _weight.requires_grad and _weight.grad_fn is None
for _fill in (
    nn.init.uniform_,
    nn.init.normal_,
    nn.init.trunc_normal_,
    nn.init.ones_,
    nn.init.zeros_,
    nn.init.eye_,
    nn.init.xavier_uniform_,
    nn.init.xavier_normal_,
    nn.init.kaiming_uniform_,
    nn.init.kaiming_normal_,
    nn.init.orthogonal_,
    lambda p: nn.init.constant_(p, 1.0),
    lambda p: nn.init.sparse_(p, 0.5),
    lambda p: nn.init.kaiming_normal_(p, mode="fan_out"),
):
    _before = _weight._version
    _fill(_weight)
    assert _weight._version > _before
    assert _weight.is_leaf and _weight.requires_grad and _weight.grad_fn is None
# sphinx_gallery_end_ignore

# %%
# The functions in ``nn.init`` use ``no_grad`` themselves.
#
# **init after loading.** ``apply(init)`` overwrites loaded weights without an error. If an embedding shares the weight of the
# output layer, it overwrites the embedding, too.

# %%
# Exercise
# --------
# A net of 30 layers with ``LeakyReLU(0.2)`` was initialized by ``kaiming_normal_(weight, nonlinearity="relu")``, the
# biases with zero. By what factor is the variance in the last layer too large? Calculate it, then measure.
#
# .. solution::
#
# The gain was :math:`\sqrt{2}` and should have been :math:`\sqrt{2 / 1.04}`. Each layer multiplies the variance by
# 1.04 too much, 30 layers by :math:`1.04^{30}`. Without biases, scaling the weights scales the output, so with
# one seed the ratio agrees to many digits.


def last_variance(gain):
    return through(gain, lambda x: nn.functional.leaky_relu(x, 0.2))[0][-1]


leaky = nn.init.calculate_gain("leaky_relu", 0.2)
ratio = last_variance(math.sqrt(2)) / last_variance(leaky)
print(f"measured {ratio:.3f}   calculated {1.04**30:.3f}")

# predict: ratio -- By what factor is the variance too large?

# sphinx_gallery_start_ignore
assert math.isclose(ratio, 1.04**30, rel_tol=1e-9)
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_training_vanishing_gradients.py`: the gradient of each layer, and other remedies.
# - :ref:`sphx_glr_gallery_tensors_detach_clone_data.py`: why not to write through ``.data``.
# - In PyTorch's reference: `torch.nn.init <https://docs.pytorch.org/docs/stable/nn.init.html>`__ and `Module.apply
#   <https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.apply>`__.
