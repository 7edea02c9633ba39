r"""
At least one stride in the given numpy array is negative, and tensors with negative strides are not currently supported
=======================================================================================================================

.. index::
   ! single: torch.from_numpy fails after np.flip, np.rot90 or [::-1]
   ! single: BGR to RGB, image[:, :, ::-1] to a tensor
   ! single: UserWarning The given NumPy array is not writable
   ! single: reverse a tensor, step must be greater than zero

.. in-short::

   The array was reversed, by ``[::-1]`` or ``np.flip``. NumPy then reads the old memory backwards, and a tensor cannot. Copy
   the array.

   .. code-block:: diff

        rgb = image[:, :, ::-1]
      - x = torch.from_numpy(rgb)
      + x = torch.from_numpy(rgb.copy())

   **Not this:** ``np.ascontiguousarray(rgb)``. If the reversed dimension has size 1, it may copy nothing, and the error stays.
"""

# %%
# The code that raises it
# -----------------------

import numpy as np
import torch

# sphinx_gallery_start_ignore
# isort: split
import multiprocessing
import os
import resource
import signal
import warnings

from PIL import Image

TORCH = tuple(int(part) for part in torch.__version__.split(".")[:2])
try:
    # sphinx_gallery_end_ignore
    image = np.array([[[1, 2, 3], [4, 5, 6]]])  # blue, green, red, as OpenCV reads it
    rgb = image[:, :, ::-1]
    x = torch.from_numpy(rgb)
# sphinx_gallery_start_ignore
except ValueError as error:
    message = str(error)
    print("ValueError:", message.strip())
assert message.startswith(
    "At least one stride in the given numpy array is negative, and tensors with negative strides are not currently supported. ("
)


def refused(array, make=torch.from_numpy):
    try:
        make(array)
    except ValueError as error:
        return str(error) == message
    return False


assert refused(rgb, torch.tensor) and refused(rgb, torch.as_tensor)
assert refused([rgb, rgb], torch.utils.data.default_collate)
# sphinx_gallery_end_ignore

# %%
# ``torch.tensor`` and ``torch.as_tensor`` raise it too, and so does a ``DataLoader`` if the dataset returns such an array.
# Earlier versions said *some of the strides of a given numpy array are negative. This is currently not supported, but will be
# added in future releases*.
#
# Why
# ---
# A stride says how far the next element of a dimension is in memory. NumPy reverses an array without moving a number: it starts
# at the other end, with a negative stride. A tensor's strides are 0 or more.

import matplotlib.pyplot as plt

print("image:", image.strides)
print("rgb:  ", rgb.strides)

# figure: Six numbers in a row of memory, the colors of two pixels. An arrow above the first three runs to the right, with the
#   stride 8 of image. An arrow below them runs to the left, with the stride -8 of rgb.
_, ax = plt.subplots(figsize=(6, 1.9), layout="constrained")
for place, number in enumerate(image.ravel()):
    ax.barh(0, 0.94, left=place, height=0.5, color="#64748b")
    ax.text(place + 0.47, 0, number, color="white", ha="center", va="center")
for text, start, end, height, color in (
    (f"image: stride {image.strides[-1]}", 0.2, 2.8, 0.55, "#2563eb"),
    (f"rgb: stride {rgb.strides[-1]}", 2.8, 0.2, -0.55, "#c2410c"),
):
    arrow = {"arrowstyle": "->", "color": color}
    ax.annotate("", (end, height), (start, height), arrowprops=arrow)
    ax.text(3.1, height, text, color=color, va="center")
ax.set(ylim=(-0.9, 0.9), title="One memory, read in two directions (bytes)")
ax.axis("off")

# sphinx_gallery_start_ignore
assert image.strides == (48, 24, 8) and rgb.strides == (48, 24, -8)
for _array in (
    np.flip(image, 0),
    np.fliplr(image),
    np.flipud(np.ones((2, 2))),
    np.rot90(np.ones((2, 3))),
    np.sort([1, 2])[::-1],
    np.ones(5)[::-2],
):
    assert refused(_array) and not refused(_array.copy())
for _array in (
    image.T,
    np.ones(5)[::2],
    np.roll(image, 1),
    rgb + 0,
    rgb.astype("float32"),
):
    assert not refused(_array)
# sphinx_gallery_end_ignore

# %%
# ``np.flip``, ``np.fliplr``, ``np.flipud`` and ``np.rot90`` do the same.
#
# The fix
# -------
# Copy, as the message says. The copy has its numbers in the new order.

rgb = image[:, :, ::-1]
x = torch.from_numpy(rgb.copy())
print(x)

# sphinx_gallery_start_ignore
assert x.tolist() == [[[3, 2, 1], [6, 5, 4]]]
# sphinx_gallery_end_ignore

# %%
# If you compute a new array from it anyway, no copy is needed: ``rgb.astype("float32")``.
#
# Or reverse the tensor. Slices of a tensor have no negative steps:

# sphinx_gallery_start_ignore
raised = []
try:
    # sphinx_gallery_end_ignore
    x = torch.from_numpy(image)
    x = x[:, :, ::-1]
# sphinx_gallery_start_ignore
except ValueError as error:
    raised.append(str(error))
    print("ValueError:", error)
assert raised == ["step must be greater than zero"]
# sphinx_gallery_end_ignore

# %%
# ``flip`` does it, and it copies:

x = torch.from_numpy(image).flip(-1)
print(x)

# sphinx_gallery_start_ignore
assert x.tolist() == [[[3, 2, 1], [6, 5, 4]]]
x[0, 0, 0] = 100
assert image.max() == 6
# sphinx_gallery_end_ignore

# %%
# The given NumPy array is not writable
# -------------------------------------
# This warning comes from the same line. The array is read-only, but a tensor that shares its memory is not. Such arrays come
# from pandas 3, from ``np.asarray`` of a PIL image, and from ``np.frombuffer`` of ``bytes``.

import pandas as pd

# sphinx_gallery_start_ignore
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    # sphinx_gallery_end_ignore
    table = pd.DataFrame({"age": [22.0, 38.0]})
    x = torch.from_numpy(table["age"].to_numpy())
    # sphinx_gallery_start_ignore
    print("UserWarning:", str(caught[0].message).partition(" (Triggered")[0])
    # sphinx_gallery_end_ignore
    x += 100
    print(table["age"].tolist())
    assert table["age"].tolist() == [122, 138]
    # sphinx_gallery_start_ignore
assert str(caught[0].message).startswith("The given NumPy array is not writable, and ")
for _array in (
    table.to_numpy(),
    np.asarray(Image.new("RGB", (2, 2))),
    np.frombuffer(b"12345678"),
):
    assert not _array.flags.writeable
# sphinx_gallery_end_ignore

# %%
# The table was changed through the tensor. ``torch.tensor`` copies the array. The warning comes only once in a program, so look
# for other lines that need the copy, too:

x = torch.tensor(table["age"].to_numpy())
x += 100
print(table["age"].tolist())
assert table["age"].tolist() == [122, 138]

# %%
# What not to do
# --------------
# **Do not rely on np.ascontiguousarray.** A batch of one image, reversed along the batch, already counts as contiguous:

batch = np.stack([image])
reversed_batch = batch[::-1]
print(batch.shape, np.ascontiguousarray(reversed_batch).strides)

# sphinx_gallery_start_ignore
assert np.ascontiguousarray(reversed_batch).strides == (-48, 48, 24, 8)
assert refused(np.ascontiguousarray(reversed_batch))
assert not refused(reversed_batch.copy()) and not refused(np.ascontiguousarray(rgb))
_turned = np.ones((1, 3, 2)).transpose(0, 2, 1)[::-1]  # size 1, but here it copies
assert refused(_turned) and not refused(np.ascontiguousarray(_turned))


def to_tensor_by_dlpack():
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    torch.from_dlpack(rgb)


_process = multiprocessing.get_context("fork").Process(target=to_tensor_by_dlpack)
_process.start()
_process.join()
_code = 1 if TORCH >= (2, 14) else -signal.SIGABRT  # 1: an error in Python
assert _process.exitcode == _code
# sphinx_gallery_end_ignore

# %%
# The first stride is still negative.
#
# **Do not use torch.from_dlpack instead.** Up to PyTorch 2.13 it does not raise an error for ``rgb``. It ends the whole process
# (`pytorch#188023 <https://github.com/pytorch/pytorch/issues/188023>`__).
#
# .. torch-changed:: 2.14
#    :probe: refuses: torch.from_dlpack(np.ones(3)[::-1])
#
#    On 2.14, ``rgb`` gives an error that you can catch, and still no tensor. Copy the array.
#
# See also
# --------
# - :ref:`sphx_glr_gallery_tensors_strides.py`: shape, stride and offset of a tensor.
# - :ref:`sphx_glr_gallery_errors_numpy_of_grad.py`, the way back to NumPy.
# - In PyTorch's reference: `torch.from_numpy
#   <https://docs.pytorch.org/docs/stable/generated/torch.from_numpy.html>`__.
