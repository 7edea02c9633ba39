r"""
Output 0 of Unbind is a view and is being modified inplace
==========================================================

.. index::
   ! single: Output 0 of UnbindBackward0 is a view and is being modified inplace
   ! single: Output 0 of SplitBackward0 is a view
   ! single: Output 0 of Select is a view and is being modified inplace
   ! single: in-place write in a loop over a tensor raises
   ! single: Output 0 of BackwardHookFunction is a view and is being modified inplace

.. in-short::

   A loop over a tensor, ``unbind``, ``split`` and ``chunk`` make several views in one node of the graph, and autograd refuses
   to record a write to one of them. Make a new tensor, or write through an index: ``image[i] *= s``.

   .. code-block:: diff

      - for channel, s in zip(image, std, strict=True):
      -     channel *= s
      + image = image * std[:, None, None]

   **Not this:** in a forward pass, a write through ``.data`` or in ``no_grad``. The values are right, the gradient is wrong.
"""

# %%
# The code that raises it
# -----------------------

import torch
from torch import nn

# sphinx_gallery_start_ignore
try:
    # sphinx_gallery_end_ignore
    generator = nn.Linear(4, 12)
    std = torch.tensor([0.2, 0.5, 0.8])

    image = generator(torch.ones(4)).view(3, 2, 2)
    for channel, s in zip(image, std, strict=True):
        channel *= s
# sphinx_gallery_start_ignore
except RuntimeError as error:
    message = str(error)
    print("RuntimeError:", message)
assert message.startswith("Output 0 of Unbind is a view and is being modified inplace")


def _says(function):
    try:
        function()
    except RuntimeError as error:
        return str(error)
    return ""


for _start, _view in (
    ("Output 1 of Split", lambda image: image.split(1)[1]),
    ("Output 2 of Split", lambda image: image.chunk(3)[2]),
    ("Output 0 of SplitWithSizes", lambda image: image.split([1, 2])[0]),
    ("Output 0 of Select", lambda image: image.unbind()[1][0]),
):
    _image = torch.ones(3, 2, 2, requires_grad=True)
    _said = _says(lambda image=_image, view=_view: view(image).mul_(2))
    assert _said.startswith(f"{_start} is a view and is being modified inplace")
# sphinx_gallery_end_ignore

# %%
# After ``split`` and ``chunk`` the name is ``Split`` or ``SplitWithSizes``. ``channel[0] = 1`` names ``Select``. *its base or
# another view of its base has been modified*: ``image`` was written before you used ``channel``. Make the views after the
# write. If they should keep the old values, write to ``image.clone()``.
#
# Why
# ---
# ``for channel in image`` calls ``image.unbind()``, which makes one node for all channels. An index makes a node for each view:

image = torch.ones(3, 2, requires_grad=True)
first, second, third = image
print("one node:", first.grad_fn is second.grad_fn, first.grad_fn.name())

a, b = image[0], image[1]
print("one node:", a.grad_fn is b.grad_fn, a.grad_fn.name())

# graph: first, second, a, b -- One node has made first and second; a and b have a node each

# sphinx_gallery_start_ignore
assert first.grad_fn is second.grad_fn and first.grad_fn.name() == "UnbindBackward0"
assert a.grad_fn.name() == "SelectBackward0" and a.grad_fn is not b.grad_fn
assert first._is_view() and a._is_view()
# sphinx_gallery_end_ignore

# %%
# A write to a view changes its base tensor too. Autograd can record that for ``image[0]``, but not for one output of several.
#
# The fix
# -------
# One operation for all channels makes a new tensor. Write a list as ``torch.tensor(std).to(image)``. Numbers for the images of
# a batch: ``std[:, None, None, None]``.

image = generator(torch.ones(4)).view(3, 2, 2)
image = image * std[:, None, None]
image.sum().backward()
print(generator.bias.grad)

# sphinx_gallery_start_ignore
_right = generator.bias.grad.clone()
assert torch.equal(_right, std.repeat_interleave(4))
# sphinx_gallery_end_ignore

# %%
# After ``q, k, v = qkv.chunk(3, dim=-1)``, write ``q = q * s``, or ``q = q.clone()`` before ``q[mask] = 0``, and use that
# ``q``. ``squeeze_`` becomes ``squeeze``.
#
# If it has to be a loop, stack new channels (for chunks, ``torch.cat`` with their ``dim``), or write through an index:

image = generator(torch.ones(4)).view(3, 2, 2)
stacked = torch.stack([channel * s for channel, s in zip(image, std, strict=True)])

indexed = generator(torch.ones(4)).view(3, 2, 2)
for i, s in enumerate(std):
    indexed[i] *= s

# sphinx_gallery_start_ignore
for _result in (stacked, indexed):
    generator.zero_grad()
    _result.sum().backward()
    assert torch.equal(generator.bias.grad, _right)
    assert torch.allclose(
        _result, generator(torch.ones(4)).view(3, 2, 2) * std[:, None, None]
    )
assert "a view of a leaf Variable" in _says(
    lambda: torch.ones(3, 2, requires_grad=True)[0].mul_(2)
)
for _last in (torch.relu, torch.sigmoid):
    _image = _last(generator(torch.ones(4))).view(3, 2, 2)
    _rows = [channel * s for channel, s in zip(_image, std, strict=True)]
    torch.stack(_rows).sum().backward(retain_graph=True)
    (_image * std[:, None, None]).sum().backward(retain_graph=True)
    _image[0] *= 2
    assert "modified by an inplace operation" in _says(_image.sum().backward)
generator.zero_grad()
_image = generator(torch.ones(4)).view(3, 2, 2)
for _channel in _image.detach().clone():
    _channel.mul_(2)
assert torch.allclose(_image, generator(torch.ones(4)).view(3, 2, 2))
_first = torch.ones(3, 2, requires_grad=True)
_base = _first * 1
_channel, *_ = _base
_base[1] = 5
_said = _says(lambda: _channel.sum())
assert "is a view and its base or another view of its base has been modified" in _said
_base = _first * 1
_channel = _base.chunk(3)[0]
assert "Output 0 of Split" in _says(lambda: _channel.squeeze_(0))
assert "Output 0 of Select" in _says(lambda: _channel[0].zero_())
_channel = _channel.clone()
_channel[:, 0] = 0
_channel.sum().backward()
assert _first.grad.tolist() == [[0, 1], [0, 0], [0, 0]]
_gates = nn.LSTM(2, 3).bias_ih_l0
assert "Output 1 of Split" in _says(lambda: _gates.chunk(4)[1].fill_(1))
with torch.no_grad():
    _gates.chunk(4)[1].fill_(1)
assert torch.equal(_gates[3:6], torch.ones(3))
_weight = nn.Parameter(torch.full((3, 2), 2.0))


def _limit():
    for row in _weight:
        row.clamp_(max=1)


assert "Output 0 of Unbind is a view" in _says(_limit)
with torch.no_grad():
    _limit()
assert torch.equal(_weight, torch.ones(3, 2)) and _weight.is_leaf
_weight.sum().backward()
assert torch.equal(_weight.grad, torch.ones(3, 2))
# sphinx_gallery_end_ignore

# %%
# If the index raises :ref:`a view of a leaf Variable <part-of-a-leaf>`, or backward :ref:`modified by an inplace operation
# <sphx_glr_gallery_errors_modified_in_place.py>`, use one of the first two ways.
#
# **For a parameter that you set or limit outside of forward**, keep the loop, and put it inside ``no_grad``.
#
# **For a picture or a log**, as in ``denormalize`` or ``make_grid``, begin with ``image.detach().clone()``.
#
# What not to do
# --------------
# **In a forward pass, write inside** ``no_grad``, **through** ``.data`` **or** ``detach()``. The gradient lacks the factors.

generator.zero_grad()
image = generator(torch.ones(4)).view(3, 2, 2)
with torch.no_grad():
    for channel, s in zip(image, std, strict=True):
        channel *= s
image.sum().backward()
print(generator.bias.grad)

# sphinx_gallery_start_ignore
assert torch.equal(image, indexed) and torch.equal(generator.bias.grad, torch.ones(12))
for _unrecorded in (lambda channel: channel.data, torch.Tensor.detach):
    generator.zero_grad()
    image = generator(torch.ones(4)).view(3, 2, 2)
    for channel, s in zip(image, std, strict=True):
        _unrecorded(channel).mul_(s)
    image.sum().backward()
    assert torch.equal(image, indexed)
    assert torch.equal(generator.bias.grad, torch.ones(12))
# sphinx_gallery_end_ignore

# %%
# **Write** ``channel = channel * s`` **and do not use it.** The image does not change.

image = generator(torch.ones(4)).view(3, 2, 2)
before = image.clone()
for channel, s in zip(image, std, strict=True):
    channel = channel * s
print("image has changed:", not torch.equal(image, before))

# sphinx_gallery_start_ignore
assert torch.equal(image, before)
# sphinx_gallery_end_ignore

# %%
# Similar messages
# ----------------
# **A backward hook on a module, and an in-place operation.** The hook makes the input and the output of its layer views, and
# the ReLU below writes to one:

# sphinx_gallery_start_ignore
raised = []
try:
    # sphinx_gallery_end_ignore
    net = nn.Sequential(nn.Conv2d(1, 2, 1), nn.BatchNorm2d(2), nn.ReLU(inplace=True))
    net[1].register_full_backward_hook(lambda module, inputs, outputs: None)
    net(torch.ones(1, 1, 4, 4))
# sphinx_gallery_start_ignore
except RuntimeError as error:
    raised.append(str(error))
    print("RuntimeError:", str(error).partition(" and the autograd")[0], "...")
assert len(raised) == 1
assert raised[0].startswith("Output 0 of BackwardHookFunction is a view and is being")
assert raised[0].endswith(
    "You can fix this by cloning the output of the custom Function."
)


def _skip(write):
    layer = nn.Linear(2, 2)
    layer.register_full_backward_hook(lambda module, inputs, outputs: None)
    write(layer(torch.ones(1, 2)))


for _write in (
    lambda out: out.__iadd__(1),
    lambda out: nn.functional.relu(out, inplace=True),
):
    _said = _says(lambda write=_write: _skip(write))
    assert "Output 0 of BackwardHookFunction is a view and" in _said
# sphinx_gallery_end_ignore

# %%
# Switch off the in-place operations, those of ``F.relu`` too, and write ``out = out + skip`` instead of ``out += skip``. If the
# model's output then differs, as with ``conv(relu(x)) + x``, or if you cannot edit the model, such as torchvision's ResNet,
# :ref:`hook a clone of the output <sphx_glr_gallery_differentiation_hooks_on_modules.py>` instead. If the message names your
# own ``Function``, such as a gradient reversal, return ``x.clone()`` from its ``forward``.

for module in net.modules():
    if hasattr(module, "inplace"):
        module.inplace = False
net(torch.ones(1, 1, 4, 4)).sum().backward()

# sphinx_gallery_start_ignore
assert net[0].weight.grad is not None


class _Residual(nn.Module):
    def __init__(self, inplace):
        super().__init__()
        self.norm, self.inplace = nn.BatchNorm2d(2), inplace

    def forward(self, x):
        out = self.norm(x)
        if self.inplace:
            out += x
        else:
            out = out + x
        return nn.functional.relu(out, inplace=self.inplace)


def _by_clone(module, args, output):
    output = output.clone()
    output.register_hook(_found.append)
    return output


# a hook on a clone gets the gradient of a model without in-place operations
_found, _wanted, _slopes = [], [], []
_pixels = torch.randn(2, 2, 4, 4, requires_grad=True)
for _inplace in (True, False):
    _residual = _Residual(_inplace)
    if _inplace:
        _residual.norm.register_forward_hook(_by_clone)
    else:
        _residual.norm.register_full_backward_hook(lambda m, i, o: _wanted.append(o[0]))
    _residual(_pixels).square().sum().backward()
    _slopes.append(_residual.norm.weight.grad)
assert torch.allclose(_found[0], _wanted[0], atol=1e-6) and _found[0].any()
assert torch.allclose(*_slopes, atol=1e-4)


class _Before(nn.Module):  # its ReLU in place also changes the skip connection
    def __init__(self):
        super().__init__()
        self.conv, self.relu = nn.Conv2d(2, 2, 1), nn.ReLU(inplace=True)

    def forward(self, x):
        return self.conv(self.relu(x)) + x


_model = nn.Sequential(nn.Conv2d(2, 2, 1), _Before())
with torch.no_grad():
    _trained = _model(_pixels)
_hook = _model[0].register_full_backward_hook(lambda module, inputs, outputs: None)
assert "BackwardHookFunction is a view" in _says(lambda: _model(_pixels))
_hook.remove()
_hook = _model[0].register_forward_hook(_by_clone)
assert torch.allclose(_model(_pixels), _trained)
_hook.remove()
_model[1].relu.inplace = False
assert not torch.allclose(_model(_pixels), _trained)
_alone = nn.Sequential(nn.Linear(2, 2), nn.ReLU(inplace=True))
_alone[1].register_full_backward_hook(lambda module, inputs, outputs: None)
assert "BackwardHookFunction is a view" in _says(lambda: _alone(torch.ones(1, 2)))
# the views after the write, or the write to a clone
for _after in (True, False):
    _first = torch.ones(3, 2, requires_grad=True)
    _base = _first * 1
    _written = _base if _after else _base.clone()
    _views = None if _after else _base.unbind()
    _written[0] *= 5
    _views = _base.unbind() if _after else _views
    (_views[0].sum() + _written.sum()).backward()
    assert _first.grad[0].tolist() == 2 * [10.0 if _after else 6.0]
# another view is written; a batch with a number for each image; chunks
_base = torch.ones(3, 2, requires_grad=True) * 1
_channel, *_ = _base
_base.view(6)[5] = 3
assert "another view of its base has been modified" in _says(lambda: _channel.sum())
_images = torch.rand(3, 3, 2, 2)
_each = torch.stack([one * s for one, s in zip(_images, std, strict=True)])
assert torch.equal(_images * std[:, None, None, None], _each)
assert not torch.equal(_images * std[:, None, None], _each)
_wide = torch.rand(2, 6)
assert torch.equal(torch.cat([p * 2 for p in _wide.chunk(3, dim=1)], dim=1), _wide * 2)
for _dtype in (torch.float16, torch.float64):
    _half = torch.rand(3, 2, 2, dtype=_dtype)
    assert (
        _half * torch.tensor([0.1, 0.2, 0.3]).to(_half)[:, None, None]
    ).dtype == _dtype
# a normalization in an attack, with lists, and a picture of an input
_image, _mean, _std = (
    torch.rand(3, 2, 2, requires_grad=True),
    [0.1, 0.2, 0.3],
    [2, 4, 5],
)
_scale = torch.tensor(_std)[:, None, None]
_normal = (_image - torch.tensor(_mean)[:, None, None]) / _scale
_alone = torch.stack([(_image[i] - _mean[i]) / _std[i] for i in range(3)])
assert torch.allclose(_normal, _alone)
_normal.sum().backward()
assert torch.allclose(_image.grad, (1 / _scale).expand(3, 2, 2))
_picture = _image.detach().clone()
for _channel, _m, _s in zip(_picture, _mean, _std, strict=True):
    _channel.mul_(_s).add_(_m)
assert torch.allclose(_picture[2], _image[2] * 5 + 0.3)


class _Reversal(torch.autograd.Function):
    copy = False

    @staticmethod
    def forward(ctx, x):
        return x.clone() if _Reversal.copy else x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        return -grad


def _reversed():
    x = torch.tensor([1.0, -1.0], requires_grad=True)
    nn.functional.relu(_Reversal.apply(x), inplace=True).sum().backward()
    return x.grad


assert "created inside a custom Function" in _says(_reversed)
_Reversal.copy = True
assert _reversed().tolist() == [-1, 0]
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_differentiation_slice_assignment.py`: writes through views.
# - :ref:`sphx_glr_gallery_differentiation_hooks_on_modules.py`: what a backward hook on a module gets.
