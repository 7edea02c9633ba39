r"""
The size of tensor a (3) must match the size of tensor b (4)
============================================================

.. index::
   ! single: the loss of predictions (n, 1) and targets (n,) is wrong
   ! single: UserWarning Using a target size that is different to the input size, will likely lead to incorrect results
   ! single: a skip connection adds feature maps of different sizes
   ! single: Sizes of tensors must match except in dimension 1. Expected size 24 but got size 25 for tensor number 1
   ! single: the skip connection of a U-Net fails for some image sizes
   ! single: Tensors must have same number of dimensions: got 2 and 3
   ! single: zero-dimensional tensor (at position 0) cannot be concatenated
   ! single: difference between torch.cat and torch.stack

.. in-short::

   You combine two tensors, and their shapes do not fit. Often you have one number for each row, and PyTorch lines it up with
   the columns. Keep a dimension of size 1 in that tensor. For ``torch.cat`` :ref:`see below <cat-sizes>`.

   .. code-block:: diff

      - mean = table.mean(dim=1)
      + mean = table.mean(dim=1, keepdim=True)
        centered = table - mean

   **Not this:** adding and removing dimensions until the message is gone. Each element of one tensor can then meet each of the
   other.
"""

# %%
# The code that raises it
# -----------------------

import torch

# sphinx_gallery_start_ignore
try:
    # sphinx_gallery_end_ignore
    table = torch.arange(12.0).reshape(4, 3)
    mean = table.mean(dim=1)
    centered = table - mean
# sphinx_gallery_start_ignore
except RuntimeError as error:
    message = str(error)
    print("RuntimeError:", message)
assert (
    message
    == "The size of tensor a (3) must match the size of tensor b (4) at non-singleton dimension 1"
)


def _said(operation):
    try:
        operation()
    except (RuntimeError, ValueError) as error:
        return str(error)
    return ""


assert "tensor a (4) must match the size of tensor b (3)" in _said(lambda: mean - table)
assert "non-singleton dimension 0" in _said(lambda: torch.ones(2, 3) + torch.ones(4, 3))
assert "non-singleton dimension 2" in _said(lambda: torch.ones(2, 1, 3) + torch.ones(4))
# a product of matrices says it, too
_query, _key = torch.ones(2, 8, 5, 4), torch.ones(2, 2, 4, 5)
assert "tensor a (8) must match the size of tensor b (2)" in _said(
    lambda: _query @ _key
)
# sphinx_gallery_end_ignore

# %%
# *a* and *b* are ``table`` and ``mean``. They meet at dimension 1, counted from 0 in the tensor with more dimensions.
#
# Look for the last frame of the traceback that is not PyTorch's:
#
# .. list-table::
#    :header-rows: 1
#    :widths: 38 62
#
#    * - the frame
#      - what to fix
#    * - a line of ``forward``, or ``loss = ...``
#      - Print the two shapes in that line. If feature maps differ by one or two, :ref:`see below <cat-sizes>`.
#    * - any line, in the last batch of an epoch
#      - Noise, labels or a state that you make of size ``batch_size``: use ``len(x)``.
#    * - ``Normalize`` of torchvision, *tensor a (4) … tensor b (3)*
#      - The image has an alpha channel. Use ``image.convert("RGB")`` before.
#    * - ``optimizer.step()``
#      - The optimizer has the state of a parameter before it was resized: ``optimizer.state.pop(parameter, None)``. Do not load
#        the state of another model.
#    * - a model of a library
#      - Often a sequence that is longer than its positions, as *tensor a (600) … tensor b (512)*: use ``truncation=True,
#        max_length=512`` in the tokenizer, less the new tokens of ``generate()``. Or ``input_ids`` of shape ``(batch, 1,
#        length)``: take ``input_ids.squeeze(1)``. Or the sizes of two models, as 768 and 1024: load a LoRA, VAE or ControlNet
#        for this base model.
#
# Why
# ---
# The two shapes are aligned at their last dimension: the 4 numbers of ``mean`` meet the 3 columns. Two sizes fit if they are
# equal, or if one of them is 1 or missing. Then that tensor is repeated along the dimension. This is *broadcasting*.
#
# A size of 1 fits where it should not, too. The difference of ``(4, 1)`` and ``(4,)`` has 16 numbers, and nothing is raised:

import matplotlib.pyplot as plt

# figure: A table of four by four differences, prediction in row i minus target in column j. The four on the diagonal
#   are zero and green: these were meant. The twelve others, from -3 to 3, compare different samples.
predictions = torch.tensor([[1.0], [2.0], [3.0], [4.0]])
targets = torch.tensor([1.0, 2.0, 3.0, 4.0])
difference = predictions - targets
print(tuple(predictions.shape), tuple(targets.shape), tuple(difference.shape))

fig, ax = plt.subplots(figsize=(7, 2.6), layout="constrained")
for i in range(4):
    for j in range(4):
        color = "#047857" if i == j else "#c2410c"
        number = f"{difference[i, j]:.0f}"
        ax.text(j, i, number, color=color, ha="center", va="center")
ax.set_xticks(range(4), [f"target {t:.0f}" for t in targets])
ax.set_yticks(range(4), [f"prediction {p:.0f}" for p in predictions.flatten()])
ax.set(xlim=(-0.6, 3.6), ylim=(3.6, -0.6))
ax.set_title("Four differences were meant (green), and sixteen computed")

# sphinx_gallery_start_ignore
assert difference.shape == (4, 4) and not difference.diagonal().any()
assert difference.min() == -3 and difference.max() == 3
assert (difference != 0).sum() == 12
for _one, _other in (((4, 3), (3,)), ((4, 3), (4, 1)), ((4, 3), ()), ((0, 3), (1, 3))):
    assert (torch.rand(_one) + torch.rand(_other)).shape == _one
# sphinx_gallery_end_ignore

# %%
# As a loss, its square draws each prediction toward the mean of all targets.
#
# The fix
# -------
# **One number for each row** of a table: where you compute it, keep its dimension. To numbers from elsewhere, add one at the
# end: ``table * weights.unsqueeze(-1)``.

mean = table.mean(dim=1, keepdim=True)
centered = table - mean
print(centered[0], centered.mean(dim=1))

# sphinx_gallery_start_ignore
assert not centered.mean(dim=1).any()
_weights = torch.arange(4.0)
assert torch.equal((table * _weights.unsqueeze(-1))[2], table[2] * 2)
_tables = torch.arange(24.0).reshape(2, 4, 3)
for _dim in (0, 1, 2):
    _centered = _tables - _tables.mean(dim=_dim, keepdim=True)
    assert _centered.mean(dim=_dim).abs().max() < 1e-6
# sphinx_gallery_end_ignore

# %%
# **One number for each channel** of images ``(batch, channel, height, width)`` needs two dimensions behind it. One for each
# image, as a noise level, needs three: ``alpha[:, None, None, None]``.

images = torch.rand(2, 3, 8, 8)
of_channels = torch.tensor([0.5, 0.4, 0.3])
print(tuple((images - of_channels[:, None, None]).shape))

# sphinx_gallery_start_ignore
for _numbers in (of_channels, of_channels.unsqueeze(-1)):
    assert "tensor a (8) must match the size of tensor b (3)" in _said(
        lambda numbers=_numbers: images - numbers
    )
_shifted = images - of_channels[:, None, None]
assert torch.equal(_shifted[1, 2], images[1, 2] - of_channels[2])
_alpha, _noisy = torch.tensor([0.5, 0.25]), torch.rand(2, 3, 2, 2)
_by_sample = torch.stack([a * image for a, image in zip(_alpha, _noisy, strict=True)])
assert torch.equal(_alpha[:, None, None, None] * _noisy, _by_sample)
assert not torch.equal(_alpha.unsqueeze(-1) * _noisy, _by_sample)  # by rows of pixels
_scores, _padding = torch.zeros(2, 3, 5, 5), torch.ones(2, 5, dtype=torch.bool)
_padding[1, 3:] = False
for _mask in (_padding, _padding.unsqueeze(-1)):
    assert "must match the size of tensor b" in _said(
        lambda mask=_mask: _scores.masked_fill(~mask, -torch.inf)
    )
_share = _scores.masked_fill(~_padding[:, None, None, :], -torch.inf).softmax(-1)
assert not _share[1, ..., 3:].any() and _share[0].eq(0.2).all()
# sphinx_gallery_end_ignore

# %%
# **Positions** ``(length, 1, features)`` and ``batch_first=True``: ``x + pe[:x.size(1)].transpose(0, 1)``.
#
# **A padding mask** ``(batch, keys)`` and scores ``(batch, heads, queries, keys)``: use ``mask[:, None, None, :]``.
#
# **A loss**: bring both to one shape, and assert it.

from torch import nn

flat = predictions.squeeze(-1)
assert flat.shape == targets.shape
print("loss:", nn.functional.mse_loss(flat, targets).item())

# sphinx_gallery_start_ignore
import warnings

assert nn.functional.mse_loss(flat, targets) == 0
_learned = torch.full((4, 1), targets.mean().item(), requires_grad=True)
(_learned - targets).square().mean().backward()
assert not _learned.grad.any()
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    assert nn.functional.mse_loss(predictions, targets) > 0
assert "Using a target size" in str(caught[0].message)
# sphinx_gallery_end_ignore

# %%
# ``mse_loss`` computes all pairs too, and warns: *Using a target size that is different to the input size*.
#
# **Scores of classes**, ``(batch, 133)``, and class numbers, ``(batch,)``: use ``cross_entropy(scores, labels)``, without a
# softmax before it, and ``scores.argmax(1) == labels`` for the accuracy.
#
# **A residual block** with more channels or a stride needs them in its shortcut, too: ``nn.Conv2d(64, 128, 1, stride=2)``.
#
# .. _cat-sizes:
#
# Sizes of tensors must match except in dimension 1
# -------------------------------------------------
# ``torch.cat`` joins tensors along one dimension. In a U-Net the other sizes may differ, because pooling rounds an odd size
# down:

import torch
from torch import nn

# sphinx_gallery_start_ignore
raised = []
try:
    # sphinx_gallery_end_ignore
    down, up = nn.MaxPool2d(2), nn.Upsample(scale_factor=2)
    skip = torch.ones(1, 8, 25, 25)  # a feature map of 25 x 25
    x = up(down(skip))
    torch.cat([x, skip], dim=1)
# sphinx_gallery_start_ignore
except RuntimeError as error:
    raised.append(str(error))
    print("RuntimeError:", error)
assert raised[0] == (
    "Sizes of tensors must match except in dimension 1. "
    "Expected size 24 but got size 25 for tensor number 1 in the list."
)
assert "tensor a (24) must match the size of tensor b (25)" in _said(lambda: x + skip)

# a resized parameter, whose optimizer has the old state
_weight = nn.Parameter(torch.ones(3))
_adam = torch.optim.Adam([_weight])
_weight.sum().backward()
_adam.step()
_weight.data, _weight.grad = torch.ones(4), None
_weight.sum().backward()
assert "must match the size of tensor" in _said(_adam.step)
_other, _weight = nn.Parameter(torch.ones(2)), nn.Parameter(torch.ones(3))
_adam = torch.optim.Adam([_other, _weight], lr=0.1)
_plan = torch.optim.lr_scheduler.StepLR(_adam, 1)
(_weight.sum() + _other.sum()).backward()
_adam.step()
_plan.step()
_kept = _adam.state[_other]["exp_avg"].clone()
_weight.data, _weight.grad = torch.ones(4), None
_weight.sum().backward()
_adam.state.pop(_weight, None)
_other.grad = None
assert not _said(_adam.step) and torch.allclose(_weight, torch.tensor(0.99))
assert torch.equal(_adam.state[_other]["exp_avg"], _kept)
# a residual block, an image with an alpha channel, and scores of classes
_block, _x = nn.Conv2d(64, 128, 3, stride=2, padding=1), torch.ones(2, 64, 9, 9)
assert "must match the size of tensor" in _said(lambda: _block(_x) + _x)
assert (_block(_x) + nn.Conv2d(64, 128, 1, stride=2)(_x)).shape == (2, 128, 5, 5)
assert "tensor a (4) must match the size of tensor b (3)" in _said(
    lambda: torch.ones(4, 8, 8).sub_(torch.ones(3, 1, 1))
)
_valid, _x = nn.Conv2d(4, 4, 3), torch.ones(1, 4, 9, 9)
assert "tensor a (7) must match the size of tensor b (9)" in _said(
    lambda: _valid(_x) + _x
)
assert (nn.Conv2d(4, 4, 3, padding=1)(_x) + _x).shape == _x.shape
_pe, _x = torch.randn(50, 1, 16), torch.zeros(4, 10, 16)
assert "tensor a (4) must match the size of tensor b (50)" in _said(lambda: _x + _pe)
assert torch.equal((_x + _pe[: _x.size(1)].transpose(0, 1))[2, 7], _pe[7, 0])
assert not torch.equal((_x + _pe[: _x.size(0)])[2, 7], _pe[7, 0])  # silently wrong
_scores, _labels = torch.randn(10, 133), torch.arange(10)
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    assert "tensor a (133) must match the size of tensor b (10)" in _said(
        lambda: nn.functional.mse_loss(_scores, _labels.float())
    )
assert "tensor a (133)" in _said(lambda: _scores == _labels)
assert (_scores.argmax(1) == _labels).shape == (10,)
_sure = 50 * nn.functional.one_hot(_labels, 133).float()
assert nn.functional.cross_entropy(_sure, _labels) < 1e-6
assert nn.functional.cross_entropy(_sure.softmax(1), _labels) > 3  # two softmaxes
# sphinx_gallery_end_ignore

# %%
# *Tensor number 1* is the second in the list. Print ``[t.shape for t in tensors]``.
#
# - **The sizes differ by one or two**: resize the upsampled map to the skip connection, in each block of the decoder. Without
#   upsampling, give a convolution of 3 ``padding=1``.
# - **A network that you cannot change**: if it halves the image ``n`` times, pad the sides to multiples of ``2**n``, 32 for
#   YOLO and 64 for Stable Diffusion. Cut an output of the image's size back.
# - **Outputs of several batches**, each padded to its own length: pad all to one length first.

import torch.nn.functional as F

x = F.interpolate(x, size=skip.shape[2:])
print(tuple(torch.cat([x, skip], dim=1).shape))

image = torch.ones(1, 3, 250, 230)
height, width = image.shape[2:]
padded = F.pad(image, (0, -width % 32, 0, -height % 32))
print(tuple(padded.shape), tuple(padded[:, :, :height, :width].shape))

# sphinx_gallery_start_ignore
assert padded.shape == (1, 3, 256, 256)
for _shape in ((1, 8, 31, 57), (2, 3, 2, 2), (1, 1, 101, 3)):
    _skip = torch.ones(_shape)
    _up = F.interpolate(up(down(_skip)), size=_skip.shape[2:])
    assert torch.cat([_up, _skip], 1).shape[2:] == (_skip + _up).shape[2:]
for _size in range(220, 275):
    _image = torch.ones(1, 1, _size, 1).expand(-1, -1, -1, 16)
    for _layer in [down] * 4 + [up] * 4:
        _image = _layer(_image)
    assert _size - _image.shape[2] == _size % 16
for _halvings, _multiple in ((5, 32), (6, 64)):
    for _size in (416, 448):
        _image = torch.ones(1, 1, _size, 1).expand(-1, -1, -1, 64)
        for _layer in [down] * _halvings + [up] * _halvings:
            _image = _layer(_image)
        assert (_image.shape[2] == _size) == (_size % _multiple == 0)
# sphinx_gallery_end_ignore

# %%
# Two other messages of ``torch.cat``:

token, words = torch.ones(2, 8), torch.ones(2, 5, 8)
losses = [torch.tensor(0.5), torch.tensor(0.4)]
for tensors in ([token, words], losses):
    try:
        torch.cat(tensors)
    except RuntimeError as error:
        print("RuntimeError:", error)

# sphinx_gallery_start_ignore
assert _said(lambda: torch.cat([token, words])) == (
    "Tensors must have same number of dimensions: got 2 and 3"
)
assert torch.cat([token[:, None], words], dim=1).shape == (2, 6, 8)
# sphinx_gallery_end_ignore

# %%
# A class token needs the missing dimension: ``torch.cat([token[:, None], words], dim=1)``. Losses have no dimension:
# ``torch.stack`` makes one.

rows = [torch.ones(3), torch.ones(3)]
print(torch.stack(losses))
print("cat:  ", tuple(torch.cat(rows).shape))
print("stack:", tuple(torch.stack(rows).shape))

# sphinx_gallery_start_ignore
assert _said(lambda: torch.cat(losses)) == (
    "zero-dimensional tensor (at position 0) cannot be concatenated"
)
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_errors_stack_unequal_sizes.py`: samples that do not make a batch.
# - :ref:`sphx_glr_gallery_errors_expanded_size.py`.
# - :ref:`sphx_glr_gallery_debugging_silent_mistakes.py`.
