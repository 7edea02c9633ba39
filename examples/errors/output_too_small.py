r"""
Calculated padded input size per channel: (4 x 4). Kernel size: (5 x 5). Kernel size can't be greater than actual input size
============================================================================================================================

.. index::
   ! single: Calculated output size: (512x0x0). Output size is too small
   ! single: images are too small for the network
   ! single: LeNet for images of 28 x 28
   ! single: max_pool1d() Invalid computed output size: 0

.. in-short::

   The image is too small for this network: convolutions and poolings made the feature map smaller than the next kernel. Pad the
   convolutions, leave out a pooling, or resize the images.

   .. code-block:: diff

      - nn.Conv2d(1, 6, 5),
      + nn.Conv2d(1, 6, 5, padding=2),
        nn.MaxPool2d(2),

   **Not this:** more padding in the last layer, until it fits. On a map of 1 × 1 its kernel sees 1 number and 24 zeros.
"""

# %%
# The code that raises it
# -----------------------

import torch
from torch import nn

# sphinx_gallery_start_ignore
try:
    # sphinx_gallery_end_ignore
    net = nn.Sequential(
        nn.Conv2d(1, 6, 5),
        nn.MaxPool2d(2),
        nn.Conv2d(6, 16, 5),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 120, 5),
    )
    images = torch.ones(1, 1, 28, 28)
    net(images)
# sphinx_gallery_start_ignore
except RuntimeError as error:
    message = str(error)
    print("RuntimeError:", message)
assert message == (
    "Calculated padded input size per channel: (4 x 4). Kernel size: (5 x 5). "
    "Kernel size can't be greater than actual input size"
)


def _says(layer, *shape):
    try:
        layer(torch.ones(shape))
    except RuntimeError as error:
        return str(error)
    return ""


_dilated = _says(nn.Conv2d(1, 1, 5, dilation=3), 1, 1, 12, 12)
assert "(12 x 12). Kernel size: (13 x 13)." in _dilated
_padded = _says(nn.Conv2d(1, 1, 5, padding=1), 1, 1, 2, 2)
assert "per channel: (4 x 4). Kernel size: (5 x 5)." in _padded
_image = _says(nn.Conv2d(1, 1, 5), 1, 1, 4, 9)
assert "per channel: (4 x 9). Kernel size: (5 x 5)." in _image
# sphinx_gallery_end_ignore

# %%
# - ``padded input size``: height and width of what arrives at the layer, plus the padding of the layer.
# - ``Kernel size``: with its dilation. A kernel of 5 with ``dilation=3`` spans 13 pixels.
#
# A pooling layer has a different message. Here five poolings, as in VGG, get an image of 28 × 28:

import torch.nn.functional as F

# sphinx_gallery_start_ignore
raised = []
try:
    # sphinx_gallery_end_ignore
    x = torch.ones(1, 512, 28, 28)
    for _ in range(5):
        x = F.max_pool2d(x, 2)
# sphinx_gallery_start_ignore
except RuntimeError as error:
    raised.append(str(error))
    print("RuntimeError:", error)
assert raised == [
    "Given input size: (512x1x1). Calculated output size: (512x0x0). Output size is too small"
]
assert _says(nn.AvgPool2d(7), 1, 3, 4, 4).endswith(
    "Calculated output size: (3x0x0). Output size is too small"
)
assert _says(nn.MaxPool1d(4), 1, 3, 2) == (
    "max_pool1d() Invalid computed output size: 0"
)
assert _says(nn.AvgPool3d(4), 1, 3, 2, 2, 2) == (
    "input image (T: 2 H: 2 W: 2) smaller than kernel size (kT: 4 kH: 4 kW: 4)"
)
# sphinx_gallery_end_ignore

# %%
# ``(512x1x1)`` is channels, height and width. ``nn.MaxPool1d`` says *max_pool1d() Invalid computed output size: 0*, and
# ``nn.AvgPool3d`` says *input image (T: 2 H: 2 W: 2) smaller than kernel size (kT: 4 kH: 4 kW: 4)*.
#
# Why
# ---
# Without padding, a kernel of 5 makes an image 4 pixels smaller. ``nn.MaxPool2d(2)`` halves it, and rounds down. These are the
# layers of LeNet-5, which was made for 32 × 32. The digits of MNIST have 28 × 28. Here is the height after each layer:

import matplotlib.pyplot as plt


def heights(layers, x):
    found = [x.shape[2]]
    for layer in layers:
        x = layer(x)
        found.append(x.shape[2])
    return found


# figure: Two lines of sizes, layer by layer. Without padding: 28, 24, 12, 8, 4, which is below the dotted line of the kernel,
#   5. With padding: 28, 28, 14, 10, 5, 1.
without = heights(net[:-1], images)
with_padding = heights([nn.Conv2d(1, 6, 5, padding=2), *net[1:]], images)
print("without padding:", without)
print("padding=2:      ", with_padding)

fig, ax = plt.subplots(figsize=(7, 2.2), layout="constrained")
ax.plot(without, "o-", color="#c2410c", label="without padding")
ax.plot(with_padding, "s--", color="#047857", label="padding=2")
ax.axhline(5, color="#64748b", ls=":")
ax.set(ylabel="height", title="Height after each layer. Dotted: the kernel, 5")
ax.set_xticks(range(6), ["image", "conv", "pool", "conv", "pool", "conv"])
ax.legend()

# sphinx_gallery_start_ignore
assert without == [28, 24, 12, 8, 4] and with_padding == [28, 28, 14, 10, 5, 1]
assert heights(net, torch.ones(1, 1, 32, 32)) == [32, 28, 14, 10, 5, 1]
# sphinx_gallery_end_ignore

# %%
# The fix
# -------
# For digits of 28 × 28, pad the first convolution, so that it keeps the size:

padded = nn.Sequential(
    nn.Conv2d(1, 6, 5, padding=2),
    nn.MaxPool2d(2),
    nn.Conv2d(6, 16, 5),
    nn.MaxPool2d(2),
    nn.Conv2d(16, 120, 5),
)
print(tuple(padded(images).shape))

# sphinx_gallery_start_ignore
assert padded(images).shape == (1, 120, 1, 1)
for _kernel in (1, 3, 5, 7):  # padding of half the kernel keeps the size
    assert nn.Conv2d(1, 1, _kernel, padding=_kernel // 2)(images).shape == images.shape
# sphinx_gallery_end_ignore

# %%
# With stride 1, an odd kernel and no dilation, ``padding=kernel // 2`` keeps the size. For a network that you cannot change,
# resize the images. First find the smallest size that it takes (in eval mode, because batch norm may need more in training):


def smallest(net, channels=1):
    for size in range(1, 500):
        try:
            net(torch.ones(1, channels, size, size))
            return size
        except RuntimeError:
            continue


size = smallest(net.eval())
large = F.interpolate(images, size=size, mode="bilinear")
print(size, tuple(net(large).shape))

# sphinx_gallery_start_ignore
assert smallest(net) == 32 and smallest(padded) == 28
assert net(large).shape == (1, 120, 1, 1)
_same = [nn.Sequential(nn.Conv2d(1, 1, 3, padding=1), nn.MaxPool2d(2))] * 5
assert [smallest(nn.Sequential(*_same[:n])) for n in (5, 4)] == [32, 16]
_norm = nn.Sequential(nn.Conv2d(1, 6, 5), nn.BatchNorm2d(6), nn.MaxPool2d(2))
try:
    smallest(_norm)
except ValueError as error:
    _raised = str(error)
assert _raised.startswith("Expected more than 1 value per channel when training")
assert smallest(_norm.eval()) == 6
# sphinx_gallery_end_ignore

# %%
# - **Five poolings by 2** need images of 32 × 32 or more, if the convolutions keep the size. Four need 16 × 16.
# - **It happens for some images only.** Look for the smallest one. An object that was cut out may be 3 pixels wide.
# - **A pooling at the end with a fixed kernel**, such as ``nn.AvgPool2d(7)``: ``nn.AdaptiveAvgPool2d(1)`` also works on smaller
#   maps.
# - **Time series**: ``nn.Conv1d`` wants time in the last dimension. If the features are there, use ``x.transpose(1, 2)``. A
#   layer that was made for as many channels as there are times may raise nothing.

series = torch.ones(8, 100, 3)  # batch, time, features
print(tuple(nn.Conv1d(3, 16, 5)(series.transpose(1, 2)).shape))

# sphinx_gallery_start_ignore
assert nn.Conv1d(3, 16, 5)(series.transpose(1, 2)).shape == (8, 16, 96)
assert "per channel: (3). Kernel size: (5)." in _says(nn.Conv1d(100, 16, 5), 8, 100, 3)
assert _says(nn.Conv1d(100, 16, 5), 8, 100, 5) == ""
assert nn.AdaptiveAvgPool2d(1)(torch.ones(1, 512, 4, 4)).shape == (1, 512, 1, 1)
# sphinx_gallery_end_ignore

# %%
# What not to do
# --------------
# **Do not pad the last layer until it fits.** In the network above ``padding=1`` would be enough, and its output is then 2 × 2
# instead of 1 × 1. The smaller the map, the more zeros. A map of 1 × 1, padded to 5 × 5, is one number and 24 zeros:

print(F.pad(torch.ones(1, 1), (2, 2, 2, 2)).int())

# sphinx_gallery_start_ignore
assert F.pad(torch.ones(1, 1), (2, 2, 2, 2)).sum() == 1
_last = nn.Sequential(*net[:4], nn.Conv2d(16, 120, 5, padding=1))
assert _last(images).shape == (1, 120, 2, 2)
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_errors_shapes_cannot_be_multiplied.py`, when the linear layer after the convolutions raises.
# - :ref:`sphx_glr_gallery_errors_expected_channels.py`, when the channels do not fit.
# - In PyTorch's reference: `nn.Conv2d <https://docs.pytorch.org/docs/stable/generated/torch.nn.Conv2d.html>`__ has the formula
#   of the output size.
