r"""
cannot assign 'torch.FloatTensor' as parameter 'weight' (torch.nn.Parameter or None expected)
=============================================================================================

.. index::
   ! single: assigning a tensor to a weight of a module
   ! single: cannot assign module before Module.__init__() call
   ! single: 'Net' object has no attribute
   ! single: replace the weight of a layer by a computed tensor, weight drop, MAML

.. in-short::

   The name belongs to a parameter, and the right side is a computed tensor. Give the computed tensor a name of its own.

   .. code-block:: diff

      - self.weight = torch.softmax(self.weight, dim=0)
      - return self.weight @ layers
      + share = torch.softmax(self.weight, dim=0)
      + return share @ layers

   **Not this:** ``nn.Parameter(torch.softmax(...))`` in ``forward``. The message is gone, but the optimizer still has the old
   parameter, and this weight does not learn.
"""

# %%
# The code that raises it
# -----------------------

import torch
from torch import nn

torch.manual_seed(0)

# sphinx_gallery_start_ignore
import matplotlib.pyplot as plt

raised = []
try:
    # sphinx_gallery_end_ignore
    class Mixture(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.zeros(3))

        def forward(self, layers):
            self.weight = torch.softmax(self.weight, dim=0)
            return self.weight @ layers

    layers = torch.randn(3, 100)
    Mixture()(layers)
# sphinx_gallery_start_ignore
except TypeError as error:
    raised.append(str(error))
    print("TypeError:", error)


def says(owner, name, value):
    try:
        setattr(owner, name, value)
    except TypeError as error:
        return str(error)
    return None


assert len(raised) == 1
_layer = nn.Linear(3, 2)
assert says(_layer, "weight", torch.zeros(2, 3)) == raised[0]
assert says(_layer, "weight", _layer.weight * 0.9) == raised[0]
assert says(_layer, "weight", _layer.weight.data) == raised[0]
_half = raised[0].replace("FloatTensor", "HalfTensor")
assert says(_layer, "weight", _layer.weight.half()) == _half
assert says(_layer, "bias", None) is None
_layer.register_buffer("mean", torch.zeros(3))
assert says(_layer, "mean", 0.0) == (
    "cannot assign 'float' as buffer 'mean' (torch.nn.Buffer, torch.Tensor or None expected)"
)
assert says(nn.Sequential(_layer), "0", torch.zeros(2)) == (
    "cannot assign 'torch.FloatTensor' as child module '0' (torch.nn.Module or None expected)"
)
try:
    _layer.register_parameter("scale", torch.zeros(3))
except TypeError as error:
    assert str(error) == (
        "cannot assign 'torch.FloatTensor' object to parameter 'scale' (torch.nn.Parameter or None required)"
    )
else:
    raise AssertionError
# sphinx_gallery_end_ignore

# %%
# On a GPU it is *cannot assign 'torch.cuda.FloatTensor' as parameter*. Buffers and submodules have messages of their own:
# *cannot assign 'float' as buffer 'mean'*, *cannot assign 'torch.FloatTensor' as child module '0'*.
#
# Why
# ---
# A parameter is a leaf: a tensor that you made, that the optimizer changes, and that the state dict saves. The result of
# ``softmax`` is computed from it. If it took the parameter's place, there would be nothing left to train. ``nn.Module`` notices
# that the name is taken, and refuses.
#
# ``nn.Parameter(...)`` around the result passes this test. But it is a new leaf without a history, and your optimizer still has
# the old one:


# sphinx_gallery_start_ignore
class _Fixed(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(3))

    def forward(self, layers):
        return torch.softmax(self.weight, dim=0) @ layers


class _Wrapped(_Fixed):
    def forward(self, layers):
        self.weight = nn.Parameter(torch.softmax(self.weight, dim=0))
        return self.weight @ layers


def losses(mixture, steps=60):
    """The loss in each step, if the first of the three layers is what we want."""
    optimizer = torch.optim.Adam(mixture.parameters(), lr=0.1)
    history = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = (mixture(layers) - layers[0]).square().mean()
        loss.backward()
        optimizer.step()
        history.append(loss.item())
    return history


def draw(curves):
    _, ax = plt.subplots(figsize=(7, 2), layout="constrained")
    for (name, curve), color in zip(
        curves.items(), ("#c2410c", "#2563eb"), strict=True
    ):
        ax.plot(curve, color=color)
        ax.text(len(curve), curve[-1] + 0.02, name, color=color)
    ax.set(xlabel="step", ylabel="loss", ylim=(0, None), xlim=(0, 82))
    ax.set_title("Learning which layer to take")


_curves = losses(_Wrapped()), losses(_Fixed())
assert _curves[0][-1] == _curves[0][1] and _curves[1][-1] < 0.01 * _curves[1][0]
_mixture = _Wrapped()
_known = torch.optim.Adam(_mixture.parameters()).param_groups[0]["params"][0]
_mixture(layers).sum().backward()
assert _known.grad is None and _known is not _mixture.weight
# sphinx_gallery_end_ignore
# figure: Two curves of the loss over 60 steps. With nn.Parameter it stays, with a name of its own it falls to 0.
draw({"nn.Parameter(...)": losses(_Wrapped()), "share = ...": losses(_Fixed())})

# %%
# The fix
# -------
# Keep the parameter, and give what you compute from it another name.


class Mixture(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(3))

    def forward(self, layers):
        share = torch.softmax(self.weight, dim=0)
        return share @ layers


mixture = Mixture()
mixture(layers).sum().backward()
print(mixture.weight.grad)

# sphinx_gallery_start_ignore
assert mixture.weight.grad.abs().sum() > 0
# sphinx_gallery_end_ignore

# %%
# If you wanted something else:

layer, x = nn.Linear(3, 2), torch.ones(3)

# a weight of your own from the start, before the optimizer is made
layer.weight = nn.Parameter(torch.zeros(2, 3))

# new numbers in the same parameter
with torch.no_grad():
    layer.weight.copy_(torch.eye(2, 3))

# one call with another weight, and gradients through it, as in MAML
y = torch.func.functional_call(layer, {"weight": layer.weight * 0.9}, x)
y.sum().backward()

# the weight of one layer in another
encoder, decoder = nn.Embedding(10, 4), nn.Linear(4, 10, bias=False)
decoder.weight = encoder.weight  # without .data

# sphinx_gallery_start_ignore
assert torch.allclose(y, torch.eye(2, 3) @ x * 0.9 + layer.bias)
assert torch.allclose(layer.weight.grad, torch.full((2, 3), 0.9))
torch.optim.SGD(layer.parameters(), lr=1).step()
assert torch.allclose(layer.weight, torch.eye(2, 3) - 0.9)
assert decoder.weight is encoder.weight
assert says(decoder, "weight", encoder.weight.data) == raised[0]


class _Soft(nn.Module):
    def forward(self, weight):
        return torch.softmax(weight, dim=0)


_param = nn.Linear(3, 2, bias=False)
torch.nn.utils.parametrize.register_parametrization(_param, "weight", _Soft())
_original = _param.parametrizations.weight.original
_param(x).square().sum().backward()
assert _original.grad is not None and torch.allclose(
    _param.weight, torch.softmax(_original, 0)
)
# sphinx_gallery_end_ignore

# %%
# For a weight that each forward pass computes anew, such as weight drop, there is
# ``torch.nn.utils.parametrize.register_parametrization``.
#
# Other messages of nn.Module
# ---------------------------
# **super().__init__() is missing**, or comes too late. Make it the first line:

# sphinx_gallery_start_ignore
raised = []
try:
    # sphinx_gallery_end_ignore
    class Net(nn.Module):
        def __init__(self):
            self.layer = nn.Linear(3, 2)

    Net()
# sphinx_gallery_start_ignore
except AttributeError as error:
    raised.append(str(error))
    print("AttributeError:", error)


class _Parameter(nn.Module):
    def __init__(self):
        self.weight = nn.Parameter(torch.zeros(3))


class _Number(nn.Module):
    def __init__(self):
        self.number = 3


for _try in (
    _Parameter,
    lambda: _Number()(x),
    lambda: list(_Number().parameters()),
    lambda: repr(_Number()),
):
    try:
        _try()
    except AttributeError as error:
        raised.append(str(error))
assert raised == [
    "cannot assign module before Module.__init__() call",
    "cannot assign parameters before Module.__init__() call",
    "'_Number' object has no attribute '_backward_hooks'",
    "'_Number' object has no attribute '_parameters'",
    "'_Number' object has no attribute '_modules'",
]
# sphinx_gallery_end_ignore

# %%
# The same with a parameter is *cannot assign parameters before Module.__init__() call*. A missing attribute of PyTorch's own,
# such as ``_parameters`` or ``_modules``, has the same cause.
#
# **An attribute is not there:**

# sphinx_gallery_start_ignore
raised = []
try:
    # sphinx_gallery_end_ignore
    class Net(nn.Module):
        def _init_(self):
            super().__init__()
            self.layer = nn.Linear(3, 2)

        def forward(self, x):
            return self.layer(x)

    Net()(torch.ones(3))
# sphinx_gallery_start_ignore
except AttributeError as error:
    raised.append(str(error))
    print("AttributeError:", error)


class _Local(nn.Module):
    def __init__(self):
        super().__init__()
        layer = nn.Linear(3, 2)  # noqa: F841
        self.ready = nn.Linear(3, 2)

    def forward(self, x):
        return self.layer(x)

    @property
    def size(self):
        return self.ready.nowhere.shape


for _try in (
    lambda: _Local()(x),
    lambda: nn.DataParallel(_Local()).ready,
    lambda: _Local().size,
):
    try:
        _try()
    except AttributeError as error:
        raised.append(str(error))
assert raised == [
    "'Net' object has no attribute 'layer'",
    "'_Local' object has no attribute 'layer'",
    "'DataParallel' object has no attribute 'ready'",
    "'_Local' object has no attribute 'size'",
]
assert nn.DataParallel(_Local()).module.ready.weight.shape == (2, 3)
# sphinx_gallery_end_ignore

# %%
# - ``_init_`` with one underscore, as here, is a method that nobody calls. It needs two on each side.
# - ``layer = ...`` in ``__init__`` without ``self.`` is a local variable.
# - ``'DataParallel' object has no attribute``: your model is inside of the wrapper, as ``model.module``.
# - The attribute is a property, and it is there? Then an ``AttributeError`` inside of the property is reported with its name.
#
# See also
# --------
# - :ref:`sphx_glr_gallery_errors_non_leaf_in_optimizer.py`: a computed tensor in the optimizer.
# - :ref:`sphx_glr_gallery_errors_leaf_in_place.py`: writing into a weight.
# - :ref:`sphx_glr_gallery_errors_state_dict_keys.py`: the names when you load.
# - In PyTorch's tutorials: `parametrizations
#   <https://docs.pytorch.org/tutorials/intermediate/parametrizations.html>`__.
