r"""
cannot assign 'torch.FloatTensor' as parameter 'weight' (torch.nn.Parameter or None expected)
=============================================================================================

.. index::
   ! single: assigning a tensor to a weight of a module
   ! single: cannot assign module before Module.__init__() call
   ! single: 'Net' object has no attribute
   ! single: replace the weight of a layer by a computed tensor, MAML
   ! single: cannot assign 'torch.FloatTensor' object to parameter '0' (torch.nn.Parameter or None required)

.. in-short::

   The name belongs to a parameter, and the right side is a plain tensor, often a computed one. Give the computed tensor a
   different name. For the weight of a layer that you call, use ``functional_call``, below.

   .. code-block:: diff

      - self.weight = torch.softmax(self.weight, dim=0)
      - return self.weight @ layers
      + share = torch.softmax(self.weight, dim=0)
      + return share @ layers

   **Not this:** ``nn.Parameter(torch.softmax(...))`` in ``forward``. The optimizer still has the old parameter, and this
   weight does not learn.
"""

# %%
# The code that raises it
# -----------------------

import torch
from torch import nn

torch.manual_seed(0)

# sphinx_gallery_start_ignore
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


def _says(owner, name, value):
    try:
        setattr(owner, name, value)
    except TypeError as error:
        return str(error)
    return None


assert len(raised) == 1
_layer = nn.Linear(3, 2)
assert _says(_layer, "weight", torch.zeros(2, 3)) == raised[0]
assert _says(_layer, "weight", _layer.weight * 0.9) == raised[0]
assert _says(_layer, "weight", _layer.weight.data) == raised[0]
_half = raised[0].replace("FloatTensor", "HalfTensor")
assert _says(_layer, "weight", _layer.weight.half()) == _half
try:
    _layer.register_parameter("scale", torch.ones(2))
except TypeError as error:
    assert str(error).startswith(
        "cannot assign 'torch.FloatTensor' object to parameter 'scale'"
    )


def _reads(parts, between):
    state = None
    for part in parts:
        state = between(state)
        for x in part:
            state = _cell(x, state)
    return state


# a detached state goes on: right for parts of one sequence, wrong for a new one
torch.manual_seed(0)
_cell, _parts = nn.GRUCell(3, 2), torch.randn(2, 4, 1, 3)
_on, _new = (
    _reads(_parts, f)
    for f in (lambda s: None if s is None else s.detach(), lambda s: None)
)
assert torch.allclose(_on, _reads([_parts.flatten(0, 1)], lambda s: s))
assert torch.allclose(_new, _reads(_parts[1:], lambda s: s))
assert not torch.allclose(_on, _new)
# sphinx_gallery_end_ignore

# %%
# The last frame of the traceback that is not PyTorch's tells what you wanted:
#
# .. list-table::
#    :header-rows: 1
#    :widths: 44 56
#
#    * - the frame
#      - what to do
#    * - ``forward``, as above
#      - Give the computed tensor a different name. For a hidden state: ``self.state``, set to ``None`` for a new
#        sequence, detached for the next part of the same one. A learned start begins each sequence:
#        ``y, state = self.rnn(x, self.h0)``. A running mean: a buffer in place of the parameter, set to a detached tensor.
#    * - the code that builds the model
#      - ``layer.weight = nn.Parameter(tensor.clone())``, before the optimizer is made. Without ``clone()``, it changes with
#        ``tensor``. Call ``.cuda()`` inside of the parentheses. For a dtype, ``layer.half()``: a
#        frozen weight stays frozen. To share a weight, see below.
#    * - ``layer.bias = False``
#      - ``layer.bias = None``
#    * - ``self.conv.weight = ...`` or ``setattr`` in ``forward``: dropout of weights, meta-learning
#      - ``functional_call``, below. It ignores a misspelled ``weight``. Under a different name, ``self.conv(x)`` would not use
#        the tensor. Turn off gradient checkpointing in the model: it runs forward again, with the old weight.
#    * - ``forward`` of a subclass of ``nn.Linear`` or ``nn.Conv2d``
#      - ``F.linear(x, weight, self.bias)``, or ``self._conv_forward(x, weight, self.bias)``. ``super().forward(x)`` would use
#        the old weight.
#    * - the training loop, such as ``layer.weight.clamp(0)``
#      - ``copy_``, below
#    * - ``register_parameter``: *object to parameter*
#      - ``nn.Parameter(tensor)``; for fixed numbers ``register_buffer``
#
# Why
# ---
# A parameter is a leaf, which the optimizer changes. The result of ``softmax`` is computed from it.
#
# The fix
# -------
# Keep the parameter:


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
# With ``nn.Parameter(...)`` around the result, nothing is learned.
#
# .. how-measured:: This code trains both for 60 steps.


class Wrapped(Mixture):
    def forward(self, layers):
        self.weight = nn.Parameter(torch.softmax(self.weight, dim=0))
        return self.weight @ layers


def losses(mixture):
    optimizer = torch.optim.Adam(mixture.parameters(), lr=0.1)
    history = []
    for _ in range(60):
        optimizer.zero_grad()
        loss = (mixture(layers) - layers[0]).square().mean()
        loss.backward()
        optimizer.step()
        history.append(loss.item())
    return history


curves = {"nn.Parameter(...)": losses(Wrapped()), "share = ...": losses(Mixture())}

# %%
# The loss:

import matplotlib.pyplot as plt

# figure: Two curves of the loss over 60 steps. With nn.Parameter it stays, with another name it falls to 0.
fig, ax = plt.subplots(figsize=(7, 2), layout="constrained")
for (name, curve), color in zip(curves.items(), ("#c2410c", "#2563eb"), strict=True):
    ax.plot(curve, color=color)
    ax.text(len(curve), curve[-1] + 0.02, name, color=color)
ax.set(xlabel="step", ylabel="loss", ylim=(0, None), xlim=(0, 82))
ax.set_title("Learning which layer to take")

# sphinx_gallery_start_ignore
_curves = [*curves.values()]
assert _curves[0][-1] == _curves[0][1] and _curves[1][-1] < 0.01 * _curves[1][0]
_mixture = Wrapped()
_known = torch.optim.Adam(_mixture.parameters()).param_groups[0]["params"][0]
_mixture(layers).sum().backward()
assert _known.grad is None and _known is not _mixture.weight
# sphinx_gallery_end_ignore

# %%
# If you wanted something else:

layer, x = nn.Linear(3, 2), torch.ones(3)

# your own weight; requires_grad=False keeps it fixed
layer.weight = nn.Parameter(torch.zeros(2, 3))

# new numbers in the same parameter, after a step;
# if you need the old ones, clone() them before
with torch.no_grad():
    layer.weight.copy_(torch.eye(2, 3))

# one call with a different weight, and gradients through it: a mask, MAML
y = torch.func.functional_call(layer, {"weight": layer.weight * 0.9}, x)
y.sum().backward()

# one weight in two layers (transposed: F.linear(h, encoder.weight.t()) in forward)
encoder, decoder = nn.Embedding(10, 4), nn.Linear(4, 10, bias=False)
decoder.weight = encoder.weight  # without .data

# sphinx_gallery_start_ignore
assert torch.allclose(y, torch.eye(2, 3) @ x * 0.9 + layer.bias)
assert torch.allclose(layer.weight.grad, torch.full((2, 3), 0.9))
torch.optim.SGD(layer.parameters(), lr=1).step()
assert torch.allclose(layer.weight, torch.eye(2, 3) - 0.9)
assert decoder.weight is encoder.weight
assert _says(decoder, "weight", encoder.weight.data) == raised[0]
_conv, _image = nn.Conv2d(1, 1, 3), torch.rand(1, 1, 5, 5)
_masked = _conv.weight * torch.eye(3)  # another name: the layer does not use it
_right = nn.functional.conv2d(_image, _masked, _conv.bias)
assert not torch.allclose(_conv(_image), _right)
_called = torch.func.functional_call(_conv, {"weight": _masked}, _image)
assert torch.allclose(_called, _right)
_wrong = {"weights": _masked}
_silent = torch.func.functional_call(_conv, _wrong, _image)
assert torch.equal(_silent, _conv(_image))
_called.square().sum().backward()
assert _conv.weight.grad[0, 0].ne(0).equal(torch.eye(3).bool())
assert not nn.Parameter(torch.zeros(2, 3), requires_grad=False).requires_grad
# one tensor for two layers: without clone(), a step of one changes both
for _cloned in (False, True):
    _start, _pair = torch.ones(2, 3), [nn.Linear(3, 2) for _ in range(2)]
    for _one in _pair:
        _one.weight = nn.Parameter(_start.clone() if _cloned else _start)
    _pair[0](x).sum().backward()
    torch.optim.SGD([p for _one in _pair for p in _one.parameters()], 1).step()
    assert _pair[0].weight.eq(0).all() and _pair[1].weight.eq(1).all() == _cloned
# a learned start: the state must not take its name
_rnn, _start = nn.GRU(3, 2), nn.Parameter(torch.zeros(1, 1, 2))
_owner = nn.Module()
_owner.h0 = _start
_out, _state = _rnn(torch.ones(4, 1, 3), _owner.h0)
assert _says(_owner, "h0", _state) == raised[0].replace("'weight'", "'h0'")
_out.sum().backward()
assert _owner.h0 is _start and _start.grad.any()
# a subclass that only renames the weight
_sign = type("", (nn.Linear,), {"forward": lambda self, x: nn.Linear.forward(self, x)})
_sign = _sign(3, 2)
_right = nn.functional.linear(x, _sign.weight.sign(), _sign.bias)
assert not torch.allclose(_sign(x), _right)
_padded = nn.Conv2d(2, 4, 3, stride=2, groups=2, padding=1, padding_mode="reflect")
_image, _scaled = torch.rand(1, 2, 6, 6), _padded.weight * 0.5
_found = _padded._conv_forward(_image, _scaled, _padded.bias)
_called = torch.func.functional_call(_padded, {"weight": _scaled}, _image)
assert torch.equal(_found, _called) and not torch.allclose(_found, _padded(_image))
# dropout of the weights of an LSTM: two steps, against a copy that has the dropped weight
_lstm, _words = nn.LSTM(3, 2), torch.rand(4, 1, 3)
_sgd = torch.optim.SGD(_lstm.parameters(), lr=0.1, momentum=0.9)
for _ in range(2):
    _sgd.zero_grad()
    _kept = nn.functional.dropout(torch.ones(8, 2), 0.5)
    _dropped = {"weight_hh_l0": _lstm.weight_hh_l0 * _kept}
    _y = torch.func.functional_call(_lstm, _dropped, _words)[0]
    _y.square().sum().backward()
    _other = nn.LSTM(3, 2)
    _other.load_state_dict(_lstm.state_dict())
    _other.weight_hh_l0.data.mul_(_kept)
    _other(_words)[0].square().sum().backward()
    _slope = _other.weight_hh_l0.grad * _kept
    assert torch.allclose(_lstm.weight_hh_l0.grad, _slope, atol=1e-6) and _slope.any()
    _sgd.step()
# checkpointing inside of the model computes the block again after the call has ended
_net = nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 3))
_batch, _slopes = torch.rand(4, 3), []
_plain = nn.Module()
_plain.net = _net
_checkpoint = torch.utils.checkpoint.checkpoint
for _again in (False, True):
    _plain.forward = lambda x, again=_again: (
        _checkpoint(_net, x, use_reentrant=False) if again else _net(x)
    )
    _net.zero_grad()
    _swapped = {"net.2.weight": _net[2].weight * 0.5}
    torch.func.functional_call(_plain, _swapped, _batch).square().sum().backward()
    _slopes.append(_net[0].weight.grad.clone())
assert not torch.allclose(*_slopes, rtol=0.1)
# a dtype: half() keeps the parameter, frozen and shared, and nn.Parameter does not
_frozen, _shares = nn.Linear(2, 2).requires_grad_(False), nn.Linear(2, 2)
_shares.weight = _frozen.weight
_frozen.half()
assert _frozen.weight is _shares.weight and _shares.weight.dtype == torch.float16
assert not _frozen.weight.requires_grad
assert nn.Parameter(_frozen.weight.half()).requires_grad


# a running mean that is a parameter is moved by the optimizer, too
class _Centered(nn.Module):
    def __init__(self, buffer):
        super().__init__()
        self.layer, self.buffer, mean = nn.Linear(3, 1), buffer, torch.zeros(3)
        if buffer:
            self.register_buffer("mean", mean)
        else:
            self.mean = nn.Parameter(mean)

    def forward(self, x):
        mean = (0.9 * self.mean + 0.1 * x.mean(0)).detach()
        if self.buffer:
            self.mean = mean
        else:
            self.mean.data.copy_(mean)
        return self.layer(x - self.mean)


for _buffer in (False, True):
    _centered = _Centered(_buffer)
    _sgd = torch.optim.SGD(_centered.parameters(), 0.1, momentum=0.9, weight_decay=0.1)
    for _ in range(2):
        _sgd.zero_grad()
        _centered(torch.ones(4, 3)).square().mean().backward()
        _sgd.step()
    assert torch.allclose(_centered.mean, torch.tensor(0.19)) == _buffer
    assert "mean" in _centered.state_dict()
_mean = torch.rand(3)
# an old value that is only a name for the parameter changes with it
_old = _mean, _mean.clone()
with torch.no_grad():
    _mean.copy_(_mean + 1)
assert torch.equal(_old[0], _mean) and torch.allclose(_old[1], _mean - 1)
# the result of .to() is no parameter
_moved = nn.Parameter(torch.zeros(2, 3)).to(torch.float64)
assert not isinstance(_moved, nn.Parameter)
assert "DoubleTensor" in _says(nn.Linear(3, 2), "weight", _moved)
assert _says(nn.Linear(3, 2), "weight", nn.Parameter(_moved.detach())) is None
assert "'bool' as parameter 'bias'" in _says(nn.Linear(3, 2), "bias", False)
assert _says(nn.Linear(3, 2), "bias", None) is None
# other things than parameters
_module = nn.Sequential(nn.ReLU())
assert "as child module '0'" in _says(_module, "0", torch.relu)
assert _says(_module, "precision", 16) is None
assert "as buffer 'running_mean'" in _says(nn.BatchNorm1d(3), "running_mean", 0.0)
# a transposed weight: nn.Parameter makes a second parameter
_tied = nn.Linear(3, 2, bias=False)
assert _says(nn.Linear(2, 3), "weight", _tied.weight.t()) == raised[0]
_second = nn.Parameter(_tied.weight.t())
(_tied(x) @ _second.t()).sum().backward()
_part, _tied.weight.grad = _tied.weight.grad, None
nn.functional.linear(_tied(x), _tied.weight.t()).sum().backward()
assert torch.allclose(_tied.weight.grad, _part + _second.grad.t(), atol=1e-6)
assert not torch.allclose(_tied.weight.grad, _part)
# sphinx_gallery_end_ignore

# %%
# Other messages of nn.Module
# ---------------------------
# **super().__init__() is missing**, or comes too late. Make it the first line of ``__init__``:

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
    "'_Number' object has no attribute '_parameters'",
    "'_Number' object has no attribute '_modules'",
]
# sphinx_gallery_end_ignore

# %%
# *cannot assign parameters*, ``object has no attribute '_modules'`` or *'_parameters'* often has the same cause.
#
# **as child module 'fc'**: assign a module, such as ``nn.ReLU()`` in place of ``F.relu``, or use a name that no module has.
# **as buffer**: assign a tensor.
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


_pickled = nn.Upsample(scale_factor=2)
del _pickled.__dict__["recompute_scale_factor"]  # as in the file of an older PyTorch
for _try in (
    lambda: _Local()(x),
    lambda: nn.DataParallel(_Local()).ready,
    lambda: _pickled(torch.ones(1, 1, 2, 2)),
):
    try:
        _try()
    except AttributeError as error:
        raised.append(str(error))
assert raised == [
    "'Net' object has no attribute 'layer'",
    "'_Local' object has no attribute 'layer'",
    "'DataParallel' object has no attribute 'ready'",
    "'Upsample' object has no attribute 'recompute_scale_factor'",
]
assert nn.DataParallel(_Local()).module.ready.weight.shape == (2, 3)
# sphinx_gallery_end_ignore

# %%
# - ``_init_`` needs two underscores on each side.
# - ``layer = ...`` in ``__init__`` without ``self.`` is a local variable.
# - ``'DataParallel' object has no attribute 'layer'``: write ``model.module.layer``.
# - ``'Upsample' object has no attribute 'recompute_scale_factor'``: an older PyTorch pickled this model. Load its
#   ``state_dict()`` into a new one.
#
# See also
# --------
# - :ref:`sphx_glr_gallery_errors_non_leaf_in_optimizer.py`: a computed tensor in the optimizer.
# - :ref:`sphx_glr_gallery_errors_leaf_in_place.py`: writing into a weight.
