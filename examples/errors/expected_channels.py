r"""
Given groups=1, weight of size [6, 3, 5, 5], expected input[1, 1, 28, 28] to have 3 channels, but got 1 channels instead
========================================================================================================================

.. index::
   ! single: gray images in a network for color images
   ! single: expected input to have 3 channels, but got 224 channels instead
   ! single: Expected 3D (unbatched) or 4D (batched) input to conv2d, but got input of size: [28, 28]
   ! single: PNG images have 4 channels
   ! single: Calculated padded input size per channel: (4 x 4). Kernel size: (5 x 5). Kernel size can't be greater
   ! single: Calculated output size: (512x0x0). Output size is too small
   ! single: images are too small for the network
   ! single: LeNet for images of 28 x 28
   ! single: max_pool1d() Invalid computed output size: 0

.. in-short::

   The convolution was made for 3 channels, and your input has 1: gray images. Make the layer for 1 channel. If the network is
   trained, repeat the gray channel instead: ``images.repeat_interleave(3, dim=-3)``. If images are too small, :ref:`see
   below <too-small>`.

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
        call()
    except (RuntimeError, ValueError) as error:
        return str(error)
    return ""


# sphinx_gallery_end_ignore

# %%
# - ``weight of size [6, 3, 5, 5]``: output channels, *input channels*, height and width of the kernel.
# - ``input[1, 1, 28, 28]``: batch, *channels*, height, width. With ``groups=1`` the two second numbers must be equal. With
#   ``transposed=1`` the weight has the input channels first.
#
# Why
# ---
# The number that you *got* tells you what is in the second dimension:
#
# - **1**: gray images, or in ``nn.Conv1d`` one series. If only some files are gray, open all with Pillow's ``convert("RGB")``,
#   which takes 8 bits.
# - **3, and the layer expects 1**: color images. Make the layer for 3, or open them with ``convert("L")``.
# - **3, and the layer expects 4**: ``convert("RGB")`` and ``cv2.imread`` drop a fourth channel. In a diffusion model, the VAE
#   must encode the image first.
# - **4, and the layer expects 3**: often PNG images with transparency. ``convert("RGB")`` can turn a drawing all black. Use
#   ``Image.alpha_composite(Image.new("RGBA", image.size, "white"), image.convert("RGBA")).convert("RGB")``.
# - **28, 224, 640**: a height, because the channels are last. In ``nn.Conv1d`` it is a length, in ``nn.Conv3d`` a number of
#   video frames: write ``x.transpose(1, 2)``.
# - **Your batch size**: the dimension of the channels is missing, see below. In ``nn.Conv1d`` after an LSTM, the batch may be
#   second: ``x.permute(1, 2, 0)``.
# - **4, 8, 9 or 16 in a diffusion model**: its parts are of different models, such as a UNet for inpainting.
# - **A different number**: make the layer for it. Inside the network it is the output channels of the layer before, and after
#   ``torch.cat`` their sum.
#
# ``permute`` moves channels that are last. With ``reshape``, the three colors of a pixel become three pixels:

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
# A trained network gets the gray channel three times. Images of OpenCV are BGR: write ``photo.flip(-1)`` before ``permute``.

trained = nn.Conv2d(3, 6, kernel_size=5)  # stands for the first layer
print(tuple(trained(images.repeat_interleave(3, dim=-3)).shape))
print(tuple(trained(photo.permute(2, 0, 1)).shape))

# sphinx_gallery_start_ignore
_gray = torch.rand(2, 1, 28, 28)
_summed = F.conv2d(_gray, trained.weight.sum(1, keepdim=True), trained.bias)
_repeated = trained(_gray.repeat_interleave(3, dim=-3))
assert torch.allclose(_summed, _repeated, atol=1e-5)
_single = trained(_gray[0].repeat_interleave(3, dim=-3))
assert torch.allclose(_single, _repeated[0], atol=1e-5)
_color = torch.rand(2, 3, 28, 28)
assert "to have 1 channels, but got 3 channels" in _says(lambda: conv(_color))
assert "to have 3 channels, but got 60 channels" in _says(lambda: trained(photo))
assert trained(torch.rand(2, 28, 28, 3).permute(0, 3, 1, 2)).shape == (2, 6, 24, 24)
_series, _conv1d = torch.rand(2, 50, 3), nn.Conv1d(3, 6, 5)
assert "to have 3 channels, but got 50 channels" in _says(lambda: _conv1d(_series))
_by_time = _series.transpose(0, 1)  # (time, batch, features), as of an LSTM
assert "to have 3 channels, but got 2 channels" in _says(lambda: _conv1d(_by_time))
assert torch.equal(_by_time.permute(1, 2, 0), _series.transpose(1, 2))
_bgr = photo.flip(-1)  # as OpenCV reads the photo
assert torch.equal(_bgr.flip(-1).permute(2, 0, 1), photo.permute(2, 0, 1))
assert not torch.equal(_bgr.permute(2, 0, 1), photo.permute(2, 0, 1))
_slid = torch.stack([_series[:, i : i + 5] for i in range(46)], 1)
_wanted = torch.einsum("ntkc,ock->not", _slid, _conv1d.weight)
_wanted = _wanted + _conv1d.bias[:, None]
assert torch.allclose(_conv1d(_series.transpose(1, 2)), _wanted, atol=1e-5)
_short = _series[:, :4].transpose(1, 2)
assert "Kernel size can't be greater" in _says(lambda: _conv1d(_short))
assert _conv1d(F.pad(_short, (0, 1))).shape == (2, 6, 1)
# sphinx_gallery_end_ignore

# %%
# For a batch it is ``permute(0, 3, 1, 2)``.
#
# **Too few dimensions, or five.** ``nn.Conv2d`` takes four, or three for one image without a batch. Two raise:

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
# sphinx_gallery_end_ignore

# %%
# Write ``conv(gray[None, None])``. Flat images ``(64, 784)`` need ``x.view(-1, 1, 28, 28)``, noise for a generator
# ``z[:, :, None, None]``, a video ``(batch, time, 3, height, width)`` ``video.flatten(0, 1)``, with each frame as a sample, a
# volume ``(batch, channels, depth, height, width)`` ``nn.Conv3d``. A batch of gray images without channels is taken for one
# image. For ``nn.Conv1d(1, …)`` and ``(batch, features)`` the fix is the same:

batch = torch.ones(64, 28, 28)
print(tuple(conv(batch.unsqueeze(1)).shape))

# sphinx_gallery_start_ignore
assert conv(gray[None, None]).shape == (1, 6, 24, 24)
assert "expected input[1, 64, 28, 28] to have 1 channels" in _says(lambda: conv(batch))
_noise, _deconv = torch.rand(16, 100), nn.ConvTranspose2d(100, 8, 4)
assert "Expected 3D (unbatched) or 4D (batched)" in _says(lambda: _deconv(_noise))
_first = torch.einsum("bc,cohw->bohw", _noise, _deconv.weight)
_first = _first + _deconv.bias[:, None, None]
assert torch.allclose(_deconv(_noise[:, :, None, None]), _first, atol=1e-5)
_video = torch.rand(2, 5, 3, 28, 28)
assert "Expected 3D (unbatched) or 4D (batched)" in _says(lambda: trained(_video))
_frames = trained(_video.flatten(0, 1)).unflatten(0, (2, 5))
assert torch.allclose(_frames[1, 4], trained(_video[1, 4]), atol=1e-5)
_flat = torch.rand(64, 784)
assert "Expected 3D (unbatched) or 4D (batched)" in _says(lambda: conv(_flat))
_squares = conv(_flat.view(-1, 1, 28, 28))
assert torch.allclose(_squares[5], conv(_flat[5].view(1, 28, 28)), atol=1e-5)
assert conv(_flat[None, None]).shape[0] == 1  # the samples would be rows of one image
_conv3d = nn.Conv3d(3, 4, 3)
assert "to have 3 channels, but got 5 channels" in _says(lambda: _conv3d(_video))
assert _conv3d(_video.transpose(1, 2)).shape == (2, 4, 3, 26, 26)
from PIL import Image

_drawing = Image.new("RGBA", (4, 4), (0, 0, 0, 0))  # black on a transparent ground
_drawing.putpixel((1, 1), (0, 0, 0, 255))
assert _drawing.convert("RGB").getextrema() == ((0, 0),) * 3
_gray = Image.new("L", (4, 4), 7)
_gray.putpixel((1, 2), 99)
assert all(c.tobytes() == _gray.tobytes() for c in _gray.convert("RGB").split())
_deep = Image.frombytes("I;16", (2, 1), bytes([0, 1, 0, 2]))  # 256 and 512
assert _deep.convert("RGB").getextrema() == ((255, 255),) * 3  # clipped


def _on_white(image):
    white = Image.new("RGBA", image.size, "white")
    return Image.alpha_composite(white, image.convert("RGBA")).convert("RGB")


_white = _on_white(_drawing)
assert _white.getpixel((0, 0)) == (255,) * 3 and _white.getpixel((1, 1)) == (0,) * 3
for _mode in ("RGB", "L", "P", "CMYK"):  # the other files of a folder stay as they are
    _other = Image.new("RGB", (2, 2), (255, 0, 0)).convert(_mode)
    assert _on_white(_other).tobytes() == _other.convert("RGB").tobytes()
assert conv(batch.unsqueeze(1)).shape == (64, 6, 24, 24)
_table, _conv1d = torch.rand(8, 10), nn.Conv1d(1, 6, 3)
assert "to have 1 channels, but got 8 channels" in _says(lambda: _conv1d(_table))
_wanted = _table.unfold(1, 3, 1) @ _conv1d.weight[:, 0].T + _conv1d.bias
_slid = _conv1d(_table.unsqueeze(1))
assert torch.allclose(_slid, _wanted.transpose(1, 2), atol=1e-5)
assert "transposed=1, weight of size [100, 8, 4, 4]" in _says(
    lambda: _deconv(torch.ones(1, 50, 1, 1))
)
# sphinx_gallery_end_ignore

# %%
# .. _too-small:
#
# Kernel size can't be greater than actual input size
# ---------------------------------------------------
# Convolutions and poolings made the image smaller than the next kernel. LeNet-5 was made for 32 × 32, and the digits of MNIST
# have 28 × 28:

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
    net(torch.ones(1, 1, 28, 28))
# sphinx_gallery_start_ignore
except RuntimeError as error:
    raised.append(str(error))
    print("RuntimeError:", error)
assert raised[1:] == [
    "Calculated padded input size per channel: (4 x 4). Kernel size: (5 x 5). "
    "Kernel size can't be greater than actual input size"
]
# sphinx_gallery_end_ignore

# %%
# A trained network needs larger images: ``torch.nn.functional.interpolate(images, size=32, mode="bilinear")``. Pad a short
# sentence or series at its end. *(258 x 2)* with ``padding=1`` is 256 × 0, an empty slice. In a new LeNet, pad the first
# convolution:

x = torch.ones(1, 1, 28, 28)
for layer in [nn.Conv2d(1, 6, 5, padding=2), *net[1:]]:
    x = layer(x)
    print(f"{type(layer).__name__:<10} {tuple(x.shape)}")

# sphinx_gallery_start_ignore
assert x.shape == (1, 120, 1, 1)
assert _says(
    lambda: nn.Conv2d(3, 4, 3, padding=1)(torch.rand(1, 3, 256, 512)[..., 512:])
).startswith("Calculated padded input size per channel: (258 x 2)")
_large = F.interpolate(images, size=32, mode="bilinear")
assert net(_large).shape == (1, 120, 1, 1)
_head = nn.Sequential(nn.Flatten(), nn.Linear(120, 84))
# without a pooling the linear layer does not fit
_less = nn.Sequential(net[0], *net[2:])
assert _head(x).shape == (1, 84) and "multiplied" in _says(lambda: _head(_less(images)))
# sphinx_gallery_end_ignore

# %%
# **A pooling layer** says it differently. Five poolings, as in VGG, get 28 × 28:

import torch
import torch.nn.functional as F

# sphinx_gallery_start_ignore
try:
    # sphinx_gallery_end_ignore
    x = torch.ones(1, 512, 28, 28)
    for _ in range(5):
        x = F.max_pool2d(x, 2)
# sphinx_gallery_start_ignore
except RuntimeError as error:
    raised.append(str(error))
    print("RuntimeError:", error)
assert raised[2:] == [
    "Given input size: (512x1x1). Calculated output size: (512x0x0). Output size is too small"
]
assert _says(lambda: nn.MaxPool1d(4)(torch.ones(1, 3, 2))) == (
    "max_pool1d() Invalid computed output size: 0"
)
_same = [nn.Sequential(nn.Conv2d(1, 1, 3, padding=1), nn.MaxPool2d(2))] * 5
for _number, _least in ((5, 32), (4, 16)):
    _net = nn.Sequential(*_same[:_number])
    assert _says(lambda n=_net, s=_least: n(torch.ones(1, 1, s, s))) == ""
    assert _says(lambda n=_net, s=_least: n(torch.ones(1, 1, s - 1, s - 1))) != ""
assert nn.AdaptiveAvgPool2d(1)(torch.ones(1, 512, 4, 4)).shape == (1, 512, 1, 1)
# sphinx_gallery_end_ignore

# %%
# Five poolings by 2 need 32 × 32. Make the images larger, as above, or in a new network leave out a pooling. A fixed
# ``nn.AvgPool2d(7)`` at the end becomes ``nn.AdaptiveAvgPool2d(1)``.
#
# See also
# --------
# - :ref:`sphx_glr_gallery_errors_shapes_cannot_be_multiplied.py`, the same for linear layers.
# - :ref:`sphx_glr_gallery_tensors_squeeze_and_permute.py`: what ``permute``, ``squeeze`` and ``unsqueeze`` do.
# - In PyTorch's reference: `nn.Conv2d <https://docs.pytorch.org/docs/stable/generated/torch.nn.Conv2d.html>`__.
