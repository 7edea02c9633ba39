r"""
Output 0 of Unbind is a view and is being modified inplace
==========================================================

.. index::
   ! single: Output 0 of UnbindBackward0 is a view and is being modified inplace
   ! single: Output 0 of SplitBackward0 is a view
   ! single: in-place write in a loop over a tensor raises

A loop over a tensor, or ``unbind``, ``split`` and ``chunk``, make several views in one operation. Autograd cannot
record a write to one of them. Old code for normalising images, channel by channel, is a usual place.
"""

# %%
# The shortest code that raises it
# --------------------------------

import torch

x = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
image = x + 1
try:
    for channel in image:
        channel *= 10
except RuntimeError as error:
    message = str(error)
    print("RuntimeError:", message)
    assert message.startswith("Output 0 of Unbind")
assert "is a view and is being modified inplace" in message

# %%
# Earlier versions say *Output 0 of UnbindBackward0* or *Output 0 of UnbindBackward*. After ``split`` and ``chunk``
# the name is *Split*, *SplitBackward0* or *SplitWithSizes*.

# %%
# Why
# ---
# ``for channel in image`` calls ``image.unbind()``. That is one node with an output for each channel. Indexing makes
# a node for each call instead.

first, second = image
print(first.grad_fn.name(), " the same node:", first.grad_fn is second.grad_fn)

a, b = image[0], image[1]
print(a.grad_fn.name(), " the same node:", a.grad_fn is b.grad_fn)

# graph: first, second, a, b -- One node has made first and second; a and b have a node each

# sphinx_gallery_start_ignore
assert first.grad_fn is second.grad_fn and first.grad_fn.name() == "UnbindBackward0"
assert a.grad_fn.name() == "SelectBackward0" and a.grad_fn is not b.grad_fn
assert first._is_view() and a._is_view()
for _parts in (image.chunk(2), image.split(1), image.split([1, 1])):
    try:
        _parts[0].mul_(2)
    except RuntimeError as error:
        assert str(error).startswith("Output 0 of Split")
    else:
        raise AssertionError
# sphinx_gallery_end_ignore

# %%
# A write to a view changes the tensor that it is a view of, so the history of both has to be rewritten. For a view
# that is alone on its node, autograd does that. For one of several it does not, and refuses the write.

# %%
# The fix
# -------
# Best is no loop: one operation for all channels, and no write.

scale = torch.tensor([10.0, 100.0])


def gradient(function):
    (grad,) = torch.autograd.grad(function(x + 1).sum(), x)
    return grad.tolist()


print(gradient(lambda image: image * scale[:, None]))
assert gradient(lambda image: image * scale[:, None]) == [[10, 10], [100, 100]]

# %%
# If it has to be a loop, make new channels and stack them, or write through an index. The index makes one view at a
# time.


def stacked(image):
    return torch.stack([channel * s for channel, s in zip(image, scale, strict=True)])


def indexed(image):
    for i, s in enumerate(scale):
        image[i] *= s
    return image


for function in (stacked, indexed):
    print(f"{function.__name__}: {gradient(function)}")
    assert gradient(function) == [[10, 10], [100, 100]]

# %%
# What not to do
# --------------
# **Write under** ``no_grad``, **through** ``.data`` **or** ``detach()``. The values are right, and the factors are
# missing from the gradient.


def unrecorded(image):
    with torch.no_grad():
        for channel, s in zip(image, scale, strict=True):
            channel *= s
    return image


print("values:  ", unrecorded(x + 1).tolist())
print("gradient:", gradient(unrecorded))
assert gradient(unrecorded) == [[1, 1], [1, 1]]

# sphinx_gallery_start_ignore
assert torch.equal(unrecorded(x + 1), indexed(x + 1))


def _data(image):
    for channel, s in zip(image, scale, strict=True):
        channel.data.mul_(s)
    return image


def _detach(image):
    for channel, s in zip(image, scale, strict=True):
        channel.detach().mul_(s)
    return image


for _function in (_data, _detach):
    assert gradient(_function) == [[1, 1], [1, 1]]
    assert torch.equal(_function(x + 1), indexed(x + 1))
# sphinx_gallery_end_ignore

# %%
# **Make a new channel and drop it.** ``channel = channel * s`` gives the name to a new tensor, and the image is what
# it was. The same goes for ``channel.clone().mul_(s)``.


def renamed(image):
    for channel, s in zip(image, scale, strict=True):
        channel = channel * s
    return image


print("values:  ", renamed(x + 1).tolist())
assert torch.equal(renamed(x + 1), x + 1)

# sphinx_gallery_start_ignore
_image = x + 1
for _channel in _image:
    _channel.clone().mul_(10)
assert torch.equal(_image, x + 1)
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_differentiation_slice_assignment.py`: writes through views, and how they are recorded
# - :ref:`sphx_glr_gallery_errors_view_of_leaf.py`: the message when the tensor is a leaf
# - `torch.unbind <https://docs.pytorch.org/docs/stable/generated/torch.unbind.html>`__ in PyTorch's reference
