r"""
Calculated padded input size per channel: (4 x 4). Kernel size: (5 x 5). Kernel size can't be greater than actual input size
============================================================================================================================

.. index::
   ! single: Calculated output size: (512x0x0). Output size is too small
   ! single: images are too small for the network
   ! single: LeNet for images of 28 x 28
   ! single: max_pool1d() Invalid computed output size: 0

.. in-short::

   Convolutions and poolings made the feature map smaller than the next kernel. The image is too small for this network. Pad the
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
# isort: split
import matplotlib.pyplot as plt

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
valid = net


def says(call):
    try:
        return f"no message, shape {tuple(call().shape)}"
    except RuntimeError as error:
        return f"RuntimeError: {error}"


_dilated = says(lambda: nn.Conv2d(1, 1, 5, dilation=3)(torch.ones(1, 1, 12, 12)))
assert "(12 x 12). Kernel size: (13 x 13)." in _dilated
_padded = says(lambda: nn.Conv2d(1, 1, 5, padding=1)(torch.ones(1, 1, 2, 2)))
assert "per channel: (4 x 4). Kernel size: (5 x 5)." in _padded
_image = says(lambda: nn.Conv2d(1, 1, 5)(torch.ones(1, 1, 4, 9)))
assert "per channel: (4 x 9). Kernel size: (5 x 5)." in _image
_series = says(lambda: nn.Conv1d(1, 1, 5)(torch.ones(1, 1, 4)))
assert "per channel: (4). Kernel size: (5)." in _series
# sphinx_gallery_end_ignore

# %%
# - ``padded input size``: height and width of what arrives at the layer, plus the padding of the layer.
# - ``Kernel size``: with its dilation. A kernel of 5 with ``dilation=3`` spans 13 pixels.
#
# A pooling layer says the same with other words. Here five poolings, as in VGG, meet an image of 28 × 28:

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
assert says(lambda: nn.AvgPool2d(7)(torch.ones(1, 3, 4, 4))).endswith(
    "Calculated output size: (3x0x0). Output size is too small"
)
assert says(lambda: nn.MaxPool1d(4)(torch.ones(1, 3, 2))) == (
    "RuntimeError: max_pool1d() Invalid computed output size: 0"
)
for _pool in (nn.AvgPool1d, nn.MaxPool2d, nn.AvgPool2d, nn.MaxPool3d):
    _map = torch.ones(1, 3, *[2] * int(_pool.__name__[-2]))
    assert says(lambda p=_pool, m=_map: p(4)(m)).endswith("Output size is too small")
assert says(lambda: nn.AvgPool3d(4)(torch.ones(1, 3, 2, 2, 2))) == (
    "RuntimeError: input image (T: 2 H: 2 W: 2) smaller than kernel size (kT: 4 kH: 4 kW: 4)"
)
# sphinx_gallery_end_ignore

# %%
# ``(512x1x1)`` is channels, height and width. ``nn.MaxPool1d`` says *max_pool1d() Invalid computed output size: 0*, and
# ``nn.AvgPool3d`` says *input image (T: 2 H: 2 W: 2) smaller than kernel size (kT: 4 kH: 4 kW: 4)*.
#
# Why
# ---
# Without padding, a kernel of 5 makes an image 4 pixels smaller. ``nn.MaxPool2d(2)`` halves it, and rounds down. These layers
# are those of LeNet-5, made for 32 × 32. The digits of MNIST have 28 × 28. Here ``sizes`` returns the height of the image, and
# the height after each layer:


# sphinx_gallery_start_ignore
def sizes(net, size):
    x = torch.ones(1, 1, size, size)
    found = [size]
    try:
        for layer in net:
            x = layer(x)
            found.append(x.shape[2])
    except RuntimeError:
        pass
    return found


padded = nn.Sequential(nn.Conv2d(1, 6, 5, padding=2), *net[1:])
# sphinx_gallery_end_ignore
# figure: Two lines of sizes, layer by layer. Without padding: 28, 24, 12, 8, 4, which is below the dotted line of the kernel,
#   5. With padding: 28, 28, 14, 10, 5, 1.
print("without padding:", sizes(net, 28))
print("padding=2:      ", sizes(padded, 28))

# sphinx_gallery_start_ignore
lines = {
    "without padding": (net, "#c2410c", "o-"),
    "padding=2": (padded, "#047857", "s--"),
}
fig, ax = plt.subplots(figsize=(7, 2.4), layout="constrained")
for name, (model, color, style) in lines.items():
    heights = sizes(model, 28)
    ax.semilogy(heights, style, color=color, label=name)
    above, va = (1.3, "bottom") if model is padded else (0.75, "top")
    for x, y in enumerate(heights):
        ax.text(x, y * above, y, ha="center", va=va, color=color)
ax.axhline(5, color="#64748b", ls=":")
ax.set(ylim=(0.5, 90), yticks=[], ylabel="height")
ax.set_title("Height after each layer. Dotted: the kernel, 5")
ax.set_xticks(range(6), ["image", "conv", "pool", "conv", "pool", "conv"])
ax.minorticks_off()
ax.legend(loc="lower left")
assert sizes(net, 28) == [28, 24, 12, 8, 4]
assert sizes(net, 32) == [32, 28, 14, 10, 5, 1]
assert sizes(padded, 28) == [28, 28, 14, 10, 5, 1]
# sphinx_gallery_end_ignore

# %%
# The fix
# -------
# For digits of 28 × 28, pad the first convolution, so that it keeps the size:

net = nn.Sequential(
    nn.Conv2d(1, 6, 5, padding=2),
    nn.MaxPool2d(2),
    nn.Conv2d(6, 16, 5),
    nn.MaxPool2d(2),
    nn.Conv2d(16, 120, 5),
)
print(tuple(net(images).shape))

# sphinx_gallery_start_ignore
assert net(images).shape == (1, 120, 1, 1)
for _kernel in (1, 3, 5, 7):  # padding of half the kernel keeps the size
    assert nn.Conv2d(1, 1, _kernel, padding=_kernel // 2)(images).shape == images.shape
    assert nn.Conv2d(1, 1, _kernel, padding="same")(images).shape == images.shape
    for _dilation in (2, 3):
        _layer = nn.Conv2d(1, 1, _kernel, padding="same", dilation=_dilation)
        assert _layer(images).shape == images.shape
assert nn.Conv2d(1, 1, 3, padding=1, dilation=2)(images).shape == (1, 1, 26, 26)
# sphinx_gallery_end_ignore

# %%
# With stride 1, an odd kernel and no dilation, ``padding=kernel // 2`` keeps the size. For a network that you cannot change,
# resize the images. First ask which size is the smallest that it takes. (In training mode ``nn.BatchNorm2d`` raises a
# ``ValueError`` for one pixel of one image. So the network is in eval mode here.)


def smallest(net, channels=1):
    for size in range(1, 500):
        try:
            net(torch.ones(1, channels, size, size))
            return size
        except RuntimeError:
            continue


size = smallest(valid.eval())  # the network from above
large = F.interpolate(images, size=size, mode="bilinear")
print(size, tuple(valid(large).shape))

# sphinx_gallery_start_ignore
assert smallest(valid) == 32 and smallest(net) == 28
assert valid(large).shape == (1, 120, 1, 1)
_pools = nn.Sequential(*[nn.MaxPool2d(2)] * 5)
assert smallest(_pools) == 32
_same = [nn.Sequential(nn.Conv2d(1, 1, 3, padding=1), nn.MaxPool2d(2))] * 5
assert (
    smallest(nn.Sequential(*_same)) == 32 and smallest(nn.Sequential(*_same[1:])) == 16
)
assert smallest(nn.Sequential(nn.Conv2d(1, 1, 3), *_same)) == 34
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
# - **A pooling at the end with a fixed kernel**, such as ``nn.AvgPool2d(7)``: ``nn.AdaptiveAvgPool2d(1)`` also works on smaller
#   maps.
# - **It happens for some images only.** Look for the smallest one. An object that was cut out may be 3 pixels wide.
# - **Time series**: ``nn.Conv1d`` wants time in the last dimension. If the features are there, use ``x.transpose(1, 2)``.

print(tuple(nn.AdaptiveAvgPool2d(1)(torch.ones(1, 512, 4, 4)).shape))
series = torch.ones(8, 100, 3)  # batch, time, features
print(says(lambda: nn.Conv1d(100, 16, 5)(series)))
print(says(lambda: nn.Conv1d(3, 16, 5)(series.transpose(1, 2))))

# sphinx_gallery_start_ignore
assert "per channel: (3). Kernel size: (5)." in says(
    lambda: nn.Conv1d(100, 16, 5)(series)
)
assert says(lambda: nn.Conv1d(3, 16, 5)(series.transpose(1, 2))).endswith("(8, 16, 96)")
# sphinx_gallery_end_ignore

# %%
# (``says`` returns the message of a call, or the shape of its result.) Here ``nn.Conv1d(100, …)`` took the 100 times for
# channels. With 5 features instead of 3 it would have raised nothing.
#
# What not to do
# --------------
# **Do not pad the last layer until it fits.** In the network above ``padding=1`` would be enough, and its output is then 2 × 2
# instead of 1 × 1. The smaller the map, the more zeros. A map of 1 × 1, padded to 5 × 5, is one number and 24 zeros:

print(F.pad(torch.ones(1, 1), (2, 2, 2, 2)).int())

# sphinx_gallery_start_ignore
assert F.pad(torch.ones(1, 1), (2, 2, 2, 2)).sum() == 1
assert nn.Conv1d(100, 16, 5)(torch.ones(8, 100, 5)).shape == (8, 16, 1)
_one = torch.rand(1, 3, 1, 1)
assert torch.equal(nn.MaxPool2d(2, ceil_mode=True)(_one), _one)
assert "too small" in says(lambda: nn.MaxPool2d(3, 2, ceil_mode=True)(_one))
_last = nn.Sequential(*valid[:4], nn.Conv2d(16, 120, 5, padding=1))
assert _last(images).shape == (1, 120, 2, 2)
# sphinx_gallery_end_ignore

# %%
# **Do not silence a pooling by ceil_mode=True.** On a map of 1 × 1, ``nn.MaxPool2d(2, ceil_mode=True)`` returns its input.
#
# See also
# --------
# - :ref:`sphx_glr_gallery_errors_shapes_cannot_be_multiplied.py`, when the linear layer after the convolutions raises.
# - :ref:`sphx_glr_gallery_errors_expected_channels.py`, when the channels do not fit.
# - In PyTorch's reference: `nn.Conv2d <https://docs.pytorch.org/docs/stable/generated/torch.nn.Conv2d.html>`__ has the formula
#   of the output size.
