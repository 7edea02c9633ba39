r"""
Sizes of tensors must match except in dimension 1. Expected size 24 but got size 25 for tensor number 1 in the list.
====================================================================================================================

.. index::
   ! single: the skip connection of a U-Net fails for some image sizes
   ! single: Tensors must have same number of dimensions: got 2 and 3
   ! single: zero-dimensional tensor (at position 0) cannot be concatenated
   ! single: difference between torch.cat and torch.stack

.. in-short::

   ``torch.cat`` joins tensors along one dimension. All other sizes must be equal, and yours are 24 and 25. In a U-Net, pooling
   made 12 of 25, and 24 came back. Resize the feature map to the skip connection.

   .. code-block:: diff

        x = up(down(skip))
      + x = F.interpolate(x, size=skip.shape[2:])
        x = torch.cat([x, skip], dim=1)

   **Not this:** cutting ``skip`` to 24 × 24. The output of the network is then smaller than its target.
"""

# %%
# The code that raises it
# -----------------------

import torch
from torch import nn

# sphinx_gallery_start_ignore
# isort: split
import logging

from torch._subclasses.fake_tensor import FakeTensorMode

try:
    # sphinx_gallery_end_ignore
    down, up = nn.MaxPool2d(2), nn.Upsample(scale_factor=2)
    skip = torch.ones(1, 8, 25, 25)  # a feature map of 25 x 25
    x = up(down(skip))
    x = torch.cat([x, skip], dim=1)
# sphinx_gallery_start_ignore
except RuntimeError as error:
    message = str(error)
    print("RuntimeError:", message)
assert message == (
    "Sizes of tensors must match except in dimension 1. "
    "Expected size 24 but got size 25 for tensor number 1 in the list."
)


def _says(call):
    try:
        return f"no message, shape {tuple(call().shape)}"
    except RuntimeError as error:
        return f"RuntimeError: {error}"


_pair = [torch.ones(2, 3, 5), torch.ones(2, 3, 4)]
assert "Expected size 5 but got size 4" in _says(lambda: torch.cat(_pair, 1))
assert _says(lambda: torch.cat(_pair, 2)).endswith("(2, 3, 9)")
assert "Expected size 24" in _says(lambda: torch.hstack([x, skip]))
assert _says(lambda: torch.cat([torch.ones(2, 3), torch.ones(5, 3)], -1)).startswith(
    "RuntimeError: Sizes of tensors must match except in dimension 1"
)
logging.disable(logging.CRITICAL)  # the mode logs what it raises
with FakeTensorMode():  # the tensors of torch.compile
    _fake = _says(lambda: torch.cat([torch.ones(1, 8, 24), torch.ones(1, 8, 25)], 1))
logging.disable(logging.NOTSET)
assert _fake.endswith(
    "Expected 24 in dimension 2 but got 25 for tensor number 1 in the list"
)
# sphinx_gallery_end_ignore

# %%
# - ``except in dimension 1``: the dimension that you join along. The sizes there may differ.
# - ``Expected size 24``: the size of the first tensor in your list. ``25`` is that of *tensor number 1*, the second one. The
#   list begins with number 0.
#
# To see which dimension it is, print ``[t.shape for t in tensors]``. Under ``torch.compile`` the message says it: *Expected 24
# in dimension 2 but got 25 for tensor number 1 in the list*.
#
# Why
# ---
# ``nn.MaxPool2d(2)`` rounds an odd size down: 25 becomes 12. Upsampling gives 24. (A convolution with ``kernel_size=3``,
# ``stride=2`` and ``padding=1`` rounds up: 25, 13, 26.) With four such poolings the network gets back the size of the image
# if this size is a multiple of 16:

import matplotlib.pyplot as plt

# figure: A saw-tooth. The pixels that are missing grow from 0 to 15 and fall back to 0 at 224, 240, 256 and 272.
sizes = range(220, 275)
missing = []
for size in sizes:
    image = torch.ones(1, 1, size, 1).expand(-1, -1, -1, 16)
    for layer in [down] * 4 + [up] * 4:
        image = layer(image)
    missing.append(size - image.shape[2])
fig, ax = plt.subplots(figsize=(7, 1.9), layout="constrained")
ax.bar(sizes, missing, color="#c2410c")
ax.set(xticks=range(224, 275, 16), xlabel="height of the image")
ax.set_title("Pixels missing after 4 poolings and 4 upsamplings")

# sphinx_gallery_start_ignore
assert missing == [size % 16 for size in sizes]
# sphinx_gallery_end_ignore

# %%
# The fix
# -------
# Resize the upsampled map to the size of the skip connection, in each block of the decoder. Then odd sizes work:

import torch.nn.functional as F

x = up(down(skip))
x = F.interpolate(x, size=skip.shape[2:])
x = torch.cat([x, skip], dim=1)
print(tuple(x.shape))

# sphinx_gallery_start_ignore
assert x.shape == (1, 16, 25, 25)
for _shape in ((1, 8, 31, 57), (2, 3, 2, 2), (1, 1, 101, 3)):
    _skip = torch.ones(_shape)
    _up = F.interpolate(up(down(_skip)), size=_skip.shape[2:])
    assert torch.cat([_up, _skip], 1).shape[2:] == _skip.shape[2:]
_up = up(nn.Conv2d(8, 8, kernel_size=3, stride=2, padding=1)(skip))
assert _up.shape == (1, 8, 26, 26)
assert F.interpolate(_up, size=skip.shape[2:]).shape == skip.shape
# sphinx_gallery_end_ignore

# %%
# - **One size is twice the other?** Then a block of the decoder does not upsample, or it joins the skip connection of the wrong
#   level. Print both shapes in each block.
# - **nn.ConvTranspose2d** takes the size in its call: ``up(x, output_size=skip.shape[2:])``. It can give 24 or 25 here. For
#   another size it raises a ``ValueError``.
# - **A network that you cannot change**: pad the image to the next multiple, here of 16, and cut the output back to the size of
#   the image. With ``mode="reflect"`` the padding must be smaller than the image.

learned = nn.ConvTranspose2d(8, 8, kernel_size=2, stride=2)
print(tuple(learned(down(skip), output_size=skip.shape[2:]).shape))

image = torch.ones(1, 3, 250, 230)
height, width = image.shape[2:]
padded = F.pad(image, (0, -width % 16, 0, -height % 16), mode="reflect")
output = padded  # stands for network(padded)
print(tuple(padded.shape), tuple(output[:, :, :height, :width].shape))

# sphinx_gallery_start_ignore
assert learned(down(skip), output_size=skip.shape[2:]).shape == skip.shape
for _size in range(20, 30):
    try:
        _reached = learned(down(skip), output_size=(_size, _size)).shape[2] == _size
    except ValueError:
        _reached = False
    assert _reached == (_size in (24, 25))
for _size in range(1, 17):
    _pad = _says(
        lambda s=_size: F.pad(torch.ones(1, 1, 16, s), (0, -s % 16, 0, 0), "reflect")
    )
    assert _pad.endswith("(1, 1, 16, 16)") == (-_size % 16 < _size)
assert padded.shape == (1, 3, 256, 240)
assert torch.equal(padded[:, :, :height, :width], image)
# sphinx_gallery_end_ignore

# %%
# Other tensors that do not join
# ------------------------------
# **A different number of dimensions.** A class token is one vector for each sample, the words are several:

# sphinx_gallery_start_ignore
raised = []
try:
    # sphinx_gallery_end_ignore
    token, words = torch.ones(2, 8), torch.ones(2, 5, 8)
    torch.cat([token, words], dim=1)
# sphinx_gallery_start_ignore
except RuntimeError as error:
    raised.append(str(error))
    print("RuntimeError:", error)
assert raised == ["Tensors must have same number of dimensions: got 2 and 3"]
# sphinx_gallery_end_ignore

# %%
# Give the token the missing dimension: ``token[:, None]``.
#
# **Numbers.** A loss has no dimension to join along:

# sphinx_gallery_start_ignore
try:
    # sphinx_gallery_end_ignore
    losses = [torch.tensor(0.5), torch.tensor(0.4)]
    torch.cat(losses)
# sphinx_gallery_start_ignore
except RuntimeError as error:
    raised.append(str(error))
    print("RuntimeError:", error)
assert raised[1:] == ["zero-dimensional tensor (at position 0) cannot be concatenated"]
# sphinx_gallery_end_ignore

# %%
# Use ``torch.stack``, which makes a new dimension. ``torch.cat`` makes an existing dimension longer:

rows = [torch.ones(3), torch.ones(3)]
print("cat:  ", tuple(torch.cat(rows).shape))
print("stack:", tuple(torch.stack(rows).shape))
print(torch.stack(losses), tuple(torch.cat([token[:, None], words], dim=1).shape))

# sphinx_gallery_start_ignore
assert torch.cat(rows).shape == (6,) and torch.stack(rows).shape == (2, 3)
assert torch.stack(losses).shape == (2,)
assert torch.cat([token[:, None], words], dim=1).shape == (2, 6, 8)
assert "stack expects each tensor to be equal size" in _says(lambda: torch.stack(_pair))
_skips = [torch.ones(1, 1, 250, 250)]
for _ in range(4):
    _skips.append(down(_skips[-1]))
_x = _skips.pop()
while _skips:
    _x, _skip = up(_x), _skips.pop()
    _x = _x + _skip[:, :, : _x.shape[2], : _x.shape[3]]
assert _x.shape[2:] == (240, 240)
_target = torch.zeros(1, 250, 250, dtype=torch.long)
assert "RuntimeError" in _says(
    lambda: F.cross_entropy(_x.expand(-1, 2, -1, -1), _target)
)
assert torch.cat([skip, skip], dim=0).shape == (2, 8, 25, 25)
assert torch.cat([skip, skip], dim=2).shape == (1, 8, 50, 25)
# sphinx_gallery_end_ignore

# %%
# **Predictions of several batches**, as in a validation loop: batches may differ in dimension 0, so join along 0. If each
# batch was padded to its own length, pad all to one length first.
#
# What not to do
# --------------
# **Do not cut the larger tensor.** With four halvings, an image of 250 × 250 comes back as 240 × 240, and the loss raises.
#
# **Do not try another dim until it runs.** With a wrong one that fits, the skip connection becomes more samples or more rows.
#
# See also
# --------
# - :ref:`sphx_glr_gallery_errors_stack_unequal_sizes.py`, the message of ``torch.stack`` and of batches.
# - :ref:`sphx_glr_gallery_errors_sizes_do_not_match.py`, when tensors are added.
# - In PyTorch's reference: `torch.cat <https://docs.pytorch.org/docs/stable/generated/torch.cat.html>`__.
