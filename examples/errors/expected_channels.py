r"""
Given groups=1, weight of size [6, 3, 5, 5], expected input[1, 1, 28, 28] to have 3 channels, but got 1 channels instead
========================================================================================================================

.. index::
   ! single: gray images in a network for color images
   ! single: expected input to have 3 channels, but got 224 channels instead
   ! single: Expected 3D (unbatched) or 4D (batched) input to conv2d, but got input of size: [28, 28]
   ! single: PNG images have 4 channels

.. in-short::

   The convolution was made for 3 channels, and your input has 1: gray images. Make the layer for 1 channel. If the network is
   trained, repeat the gray channel instead: ``images.expand(-1, 3, -1, -1)``.

   .. code-block:: diff

      - conv = nn.Conv2d(3, 6, kernel_size=5)
      + conv = nn.Conv2d(1, 6, kernel_size=5)
        conv(images)

   **Not this:** ``reshape`` or ``view``, when the channels are at the wrong place. It mixes pixels and colors.
"""

# %%
# The code that raises it
# -----------------------

import torch
from torch import nn

# sphinx_gallery_start_ignore
# isort: split
import torch.nn.functional as F

try:
    # sphinx_gallery_end_ignore
    images = torch.ones(1, 1, 28, 28)
    conv = nn.Conv2d(3, 6, kernel_size=5)
    conv(images)
# sphinx_gallery_start_ignore
except RuntimeError as error:
    message = str(error)
    print("RuntimeError:", message)
assert message == (
    "Given groups=1, weight of size [6, 3, 5, 5], expected input[1, 1, 28, 28] to have 3 channels, "
    "but got 1 channels instead"
)


def _says(call):
    try:
        return f"no message, shape {tuple(call().shape)}"
    except RuntimeError as error:
        return f"RuntimeError: {error}"


_groups = _says(lambda: nn.Conv2d(4, 6, 5, groups=2)(torch.ones(1, 3, 9, 9)))
assert "Given groups=2, weight of size [6, 2, 5, 5]" in _groups
_transposed = _says(lambda: nn.ConvTranspose2d(3, 6, 5)(torch.ones(1, 4, 9, 9)))
assert "Given transposed=1, weight of size [3, 6, 5, 5]" in _transposed
_meta = _says(lambda: nn.Conv2d(3, 6, 5, device="meta")(images.to("meta")))
assert _meta == "RuntimeError: Invalid channel dimensions"
# sphinx_gallery_end_ignore

# %%
# - ``weight of size [6, 3, 5, 5]``: output channels, *input channels*, height and width of the kernel.
# - ``input[1, 1, 28, 28]``: batch, *channels*, height, width. The two second numbers must be equal. (With ``groups=2`` the
#   weight has half of the input channels.)
#
# A message that begins with ``Given transposed=1`` comes from a layer such as ``nn.ConvTranspose2d``. There the input channels
# are the first number of the weight. On the meta device ``nn.Conv2d`` says *Invalid channel dimensions*.
#
# Why
# ---
# A convolution has one slice of its kernel for each input channel. It takes the second dimension of a batch as the channels. So
# the number that you *got* tells you what is there:
#
# - **1**: gray images.
# - **3, and the layer expects 1**: color images. Take ``images.mean(dim=1, keepdim=True)``, or open them with ``convert("L")``.
# - **4**: PNG images with transparency. Take ``images[:, :3]``, or open them with ``convert("RGB")``.
# - **28, 224, 640**: a height. The channels are last, as in images from NumPy or OpenCV.
# - **Your batch size**: the dimension of the channels is missing, see below.
# - **A different number, in a layer inside the network**: often the number of output channels of the layer before. After
#   ``torch.cat`` it is the sum of two.
#
# When the channels are last, ``permute`` moves them. ``reshape`` gives the same shape, but leaves the numbers in their old
# order. So the three colors of a pixel become three pixels. The first channel, both ways:

import matplotlib.pyplot as plt

# figure: Three pictures. The original is a blue disc on an orange ground. After permute the first channel shows the same disc
#   in gray. After reshape it shows stripes and a pattern of single pixels, and no disc.
line = torch.linspace(-1, 1, 60)
inside = (line[:, None] ** 2 + line**2 < 0.5)[:, :, None]
blue, orange = torch.tensor([0.1, 0.4, 0.9]), torch.tensor([0.8, 0.3, 0.1])
photo = torch.where(inside, blue, orange)  # height, width, channels
pictures = {
    "the image": photo,
    "permute(2, 0, 1)[0]": photo.permute(2, 0, 1)[0],
    "reshape(3, 60, 60)[0]": photo.reshape(3, 60, 60)[0],
}
fig, axes = plt.subplots(1, 3, figsize=(6, 2.3), layout="constrained")
for ax, (name, picture) in zip(axes, pictures.items(), strict=True):
    ax.imshow(picture.numpy(), cmap="gray", vmin=0, vmax=1)
    ax.set(xticks=[], yticks=[])
    ax.set_title(name, fontsize=10)

# sphinx_gallery_start_ignore
assert torch.equal(photo.permute(2, 0, 1)[0], photo[:, :, 0])
_wrong = photo.reshape(3, 60, 60)
assert torch.equal(_wrong[0].flatten(), photo[:20].flatten())  # a third of the image
_view = photo.permute(2, 0, 1).contiguous().permute(1, 2, 0)  # another order in memory
assert not _view.is_contiguous() and torch.equal(_view.reshape(3, 60, 60), _wrong)
# sphinx_gallery_end_ignore

# %%
# The fix
# -------
# For gray images, make the first layer for 1 channel:

conv = nn.Conv2d(1, 6, kernel_size=5)
conv(images)
print(tuple(conv(images).shape))

# sphinx_gallery_start_ignore
assert conv(images).shape == (1, 6, 24, 24)
# sphinx_gallery_end_ignore

# %%
# A network that is already trained keeps its layer. Give the gray image to each of its three channels:

trained = nn.Conv2d(3, 6, kernel_size=5)  # stands for the first layer
print(tuple(trained(images.expand(-1, 3, -1, -1)).shape))

# sphinx_gallery_start_ignore
_gray = torch.rand(2, 1, 28, 28)
_summed = F.conv2d(_gray, trained.weight.sum(1, keepdim=True), trained.bias)
assert torch.allclose(_summed, trained(_gray.expand(-1, 3, -1, -1)), atol=1e-5)
assert torch.equal(_gray.repeat(1, 3, 1, 1), _gray.expand(-1, 3, -1, -1))
assert "isn't allowed" in _says(lambda: _gray[0].expand(-1, 3, -1, -1))
assert trained(_gray[0].expand(3, -1, -1)).shape == (6, 24, 24)
_means = torch.tensor([0.5, 0.4, 0.3])[:, None, None]
_normed = trained(_gray.expand(-1, 3, -1, -1) - _means)
_summed = F.conv2d(_gray - 0.4, trained.weight.sum(1, keepdim=True), trained.bias)
assert not torch.allclose(_summed, _normed, atol=1e-3)
_color = torch.rand(2, 3, 28, 28)
assert "to have 1 channels, but got 3 channels" in _says(lambda: conv(_color))
assert conv(_color.mean(dim=1, keepdim=True)).shape == (2, 6, 24, 24)
# sphinx_gallery_end_ignore

# %%
# For one image without a batch it is ``image.expand(3, -1, -1)``.
#
# **Channels last.** Move the dimension with ``permute``:

print(tuple(trained(photo.permute(2, 0, 1)).shape))

# sphinx_gallery_start_ignore
assert "to have 3 channels, but got 60 channels instead" in _says(
    lambda: trained(photo)
)
assert trained(photo.permute(2, 0, 1)).shape == (6, 56, 56)
_batch = torch.rand(2, 28, 28, 3)
assert trained(_batch.permute(0, 3, 1, 2)).shape == (2, 6, 24, 24)
# sphinx_gallery_end_ignore

# %%
# For a batch it is ``permute(0, 3, 1, 2)``.
#
# **A dimension is missing.** A convolution for images takes four dimensions, or three for one image without a batch. Two raise:

# sphinx_gallery_start_ignore
raised = []
try:
    # sphinx_gallery_end_ignore
    gray = torch.ones(28, 28)
    conv(gray)
# sphinx_gallery_start_ignore
except RuntimeError as error:
    raised.append(str(error))
    print("RuntimeError:", error)
assert raised == [
    "Expected 3D (unbatched) or 4D (batched) input to conv2d, but got input of size: [28, 28]"
]
assert "(batched) input to conv1d" in _says(lambda: nn.Conv1d(3, 6, 5)(torch.ones(9)))
# sphinx_gallery_end_ignore

# %%
# Write ``conv(gray[None, None])``. Three dimensions are one image. So a batch of gray images without its channels is taken for
# one image of many channels. It raises, or not: 3 gray images are taken for one color image. Add the channels:

batch = torch.ones(64, 28, 28)
print(tuple(conv(batch.unsqueeze(1)).shape))
print(tuple(trained(batch[:3]).shape))  # one result for three images

# sphinx_gallery_start_ignore
assert conv(gray[None, None]).shape == (1, 6, 24, 24)
assert "expected input[1, 64, 28, 28] to have 1 channels" in _says(lambda: conv(batch))
assert trained(batch[:3]).shape == (6, 24, 24)
assert conv(batch.unsqueeze(1)).shape == (64, 6, 24, 24)
# sphinx_gallery_end_ignore

# %%
# What not to do
# --------------
# **Do not reshape channels that are last.** The network trains on the third picture above, and nothing tells you.
#
# **Do not replace the first layer of a trained network by a new one.** The new layer begins with random weights. Repeat the
# gray channel, or give the new layer ``trained.weight.sum(1, keepdim=True)`` and the old bias. Both give the same result,
# unless the three channels are normalized with different means before the layer.
#
# See also
# --------
# - :ref:`sphx_glr_gallery_errors_shapes_cannot_be_multiplied.py`, the same for linear layers.
# - :ref:`sphx_glr_gallery_tensors_squeeze_and_permute.py`: what ``permute``, ``squeeze`` and ``unsqueeze`` do.
# - In PyTorch's reference: `nn.Conv2d <https://docs.pytorch.org/docs/stable/generated/torch.nn.Conv2d.html>`__.
