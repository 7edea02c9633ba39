r"""
mat1 and mat2 shapes cannot be multiplied (2x2304 and 400x10)
=============================================================

.. index::
   ! single: in_features of the first linear layer after a convolution
   ! single: the classifier fails after the image size changed
   ! single: size mismatch, m1: [2 x 2304], m2: [400 x 10]

.. in-short::

   The input of a linear layer does not have the length ``in_features``. The second number of the message is what arrives, the
   third is what the layer was made for. If what arrives is right, make the layer for it.

   .. code-block:: diff

          nn.Flatten(),
      -   nn.Linear(400, 10),
      +   nn.Linear(2304, 10),

   **Not this:** ``view(-1, 400)`` before the layer. It cuts the batch at the wrong places, and may not even raise.
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
        nn.Conv2d(1, 16, 5),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(400, 10),
    )
    images = torch.ones(2, 1, 28, 28)
    net(images)
# sphinx_gallery_start_ignore
except RuntimeError as error:
    message = str(error)
    print("RuntimeError:", message)
TORCH = tuple(int(part) for part in torch.__version__.split(".")[:2])
_operator = "addmm: " if TORCH >= (2, 15) else ""
assert message == (
    f"{_operator}mat1 and mat2 shapes cannot be multiplied (2x2304 and 400x10)"
)
# sphinx_gallery_end_ignore

# %%
# Read the four numbers:
#
# - ``2``: how many vectors arrive. Here it is the batch. If the input has more than two dimensions, it is the product of all
#   but the last.
# - ``2304``: how long each vector is.
# - ``400x10``: the layer's weight, transposed: ``in_features`` and ``out_features``.
#
# Earlier versions said *size mismatch, m1: [2 x 2304], m2: [400 x 10]*. PyTorch 2.15 begins with the name of the operator: here
# *addmm:*. If the layer has no bias, it is *mm:*.
#
# Why
# ---
# ``nn.Linear(400, 10)`` computes ``x @ weight.T + bias``, where ``weight.T`` is 400 × 10. A product of matrices needs as many
# columns on the left as rows on the right. What arrives depends on the size of the image: the convolution makes 24 × 24 of
# 28 × 28, the pooling 12 × 12, and 16 channels of 144 are 2,304. The 400 in many tutorials is for images of 32 × 32 and for
# one more convolution.
#
# Print the shapes on the way to see where the number comes from:

x = images
for layer in net[:-1]:
    x = layer(x)
    print(f"{type(layer).__name__:<10} {tuple(x.shape)}")

# sphinx_gallery_start_ignore
assert x.shape == (2, 2304)


def _says(layer, x):
    try:
        layer(x)
    except RuntimeError as error:
        return str(error)
    return ""


# the first number is the product of all dimensions but the last
_layer = nn.Linear(400, 10)
assert _says(_layer, torch.ones(2, 16, 12, 12)).endswith("(384x12 and 400x10)")
_operator = "mm: " if TORCH >= (2, 15) else ""
assert _says(nn.Linear(400, 10, bias=False), torch.ones(2, 3, 5)) == (
    f"{_operator}mat1 and mat2 shapes cannot be multiplied (6x5 and 400x10)"
)
# the tutorial's network: 32 x 32, two convolutions
_convs = nn.Conv2d(3, 6, 5), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.MaxPool2d(2)
assert nn.Sequential(*_convs)(torch.ones(1, 3, 32, 32)).numel() == 400
# sphinx_gallery_end_ignore

# %%
# The fix
# -------
# Make the layer for what arrives, the second number of the message.

net = nn.Sequential(
    nn.Conv2d(1, 16, 5),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Flatten(),
    nn.Linear(2304, 10),
)
scores = net(images)
print(tuple(scores.shape))
assert scores.shape == (2, 10)

# graph: scores -- Here the linear layer is AddmmBackward0: mat1 is its input, mat2 the transposed weight

# sphinx_gallery_start_ignore
assert type(scores.grad_fn).__name__ == "AddmmBackward0"
# sphinx_gallery_end_ignore

# %%
# Or let the network do it:
#
# - ``nn.LazyLinear(10)`` takes ``in_features`` from the first batch. Run one batch before you make the optimizer.
# - ``nn.AdaptiveAvgPool2d(5)`` before ``nn.Flatten()`` makes 16 × 5 × 5 = 400 of images of many sizes.

lazy = nn.Sequential(*net[:-1], nn.LazyLinear(10))
pooled = nn.Sequential(
    *net[:-2], nn.AdaptiveAvgPool2d(5), nn.Flatten(), nn.Linear(400, 10)
)
for size in (28, 64):
    print(size, tuple(pooled(torch.ones(2, 1, size, size)).shape))

assert lazy(images).shape == (2, 10) and lazy[-1].in_features == 2304

# %%
# **The first number is not your batch?** Then do not change the layer: the batch was mixed with other dimensions, or
# ``Flatten()`` is missing. Without it, the layer above gets 384 rows of 12.
#
# **The two middle numbers must be equal.** If an equal pair is there, but not in the middle, transpose one matrix: for
# ``(3x2 and 3x5)`` it is ``x.T @ w``, for ``(3x2 and 5x2)`` it is ``x @ w.T``. ``nn.Linear`` stores its weight as
# ``(out, in)``, so a product with that weight needs ``.T``.
#
# What not to do
# --------------
# ``view(-1, 400)`` cuts all numbers of the batch into rows of 400. Two images of 2,304 numbers cannot be cut so, and it raises.
# With 25 images it can: then there are 144 rows for 25 images. Each row is a part of one image, or the end of one image and the
# beginning of the next.

features = torch.arange(25.0)[:, None].expand(25, 2304)  # image number i is all i
rows = features.reshape(-1, 400)
print(tuple(rows.shape), "row 5 has images", rows[5].unique().tolist())
assert rows.shape == (144, 400) and rows[5].unique().tolist() == [0.0, 1.0]

# sphinx_gallery_start_ignore
assert "shape '[-1, 400]' is invalid" in _says(lambda x: x.view(-1, 400), x)
_images_in = [len(row.unique()) for row in rows]
assert _images_in.count(1) == 120 and _images_in.count(2) == 24
# the pairs that fit after a transpose
_x, _by_rows, _by_columns = torch.ones(3, 2), torch.ones(3, 5), torch.ones(5, 2)
assert _says(_x.matmul, _by_rows).endswith("(3x2 and 3x5)")
assert _says(_x.matmul, _by_columns).endswith("(3x2 and 5x2)")
assert (_x.T @ _by_rows).shape == (2, 5) and (_x @ _by_columns.T).shape == (3, 5)
assert nn.Linear(2, 5).weight.shape == (5, 2)
assert _says(_layer, x.flatten(1)).endswith("2304 and 400x10)")
# sphinx_gallery_end_ignore

# %%
# Write ``x.flatten(1)``: the batch keeps its dimension, and the linear layer reports a wrong size.
#
# See also
# --------
# - :ref:`sphx_glr_gallery_errors_invalid_shape.py`, when it is the reshape that raises.
# - :ref:`sphx_glr_gallery_errors_sizes_do_not_match.py`, the same for operations element by element.
# - In PyTorch's reference: `nn.Linear <https://docs.pytorch.org/docs/stable/generated/torch.nn.Linear.html>`__ and
#   `nn.LazyLinear <https://docs.pytorch.org/docs/stable/generated/torch.nn.LazyLinear.html>`__.
