r"""
shape '[2, 4]' is invalid for input of size 6
=============================================

.. index::
   ! single: view(-1, 400) fails after the image size changed
   ! single: the last batch of an epoch is smaller and a reshape fails
   ! single: wrong number of rows after flattening a batch

A reshape must use every element once, and the sizes asked for need a different number of them. Usual causes are a
flattened size that was computed for other images, and a batch size written into the code. A shape that happens to
divide is worse than this message: it mixes the samples of a batch.
"""

# %%
# The shortest code that raises it
# --------------------------------

import matplotlib.pyplot as plt
import torch
from torch import nn

try:
    torch.arange(6).reshape(2, 4)
except RuntimeError as error:
    message = str(error)
    print("RuntimeError:", message)
    assert message.startswith("shape '[2, 4]' is invalid for input of size 6")

# %%
# The message has your numbers in place of these. *Input of size* is the number of elements. Earlier versions said
# *invalid argument 2: size '[2 x 4]' is invalid for input with 6 elements*.

# %%
# Why
# ---
# A reshape deals the elements out in reading order, row after row. It knows nothing of samples. In this network the
# flattened size was computed for images of 32 by 32, and these have 28 by 28.

torch.manual_seed(0)
pool = nn.MaxPool2d(2)
layers = nn.Sequential(nn.Conv2d(3, 6, 5), pool, nn.Conv2d(6, 16, 5), pool)
images = torch.randn(6, 3, 28, 28)
x = layers(images)
print(tuple(x.shape), "has", x.numel(), "elements")
try:
    x.view(-1, 16 * 5 * 5)
except RuntimeError as error:
    print("RuntimeError:", error)
    assert "shape '[-1, 400]' is invalid for input of size 1536" in str(error)

# sphinx_gallery_start_ignore
assert layers(torch.randn(1, 3, 32, 32)).shape == (1, 16, 5, 5)
# sphinx_gallery_end_ignore

# %%
# The ``-1`` stands for a number that makes the product right, and 1536 / 400 is not whole. With other numbers it
# would be, and nothing would be raised. Here are three samples of four numbers, and what rows of six make of them.


def draw(ax, rows, title):
    for y, row in enumerate(rows.tolist()):
        for place, sample in enumerate(row):
            color = ["#2563eb", "#c2410c", "#047857"][sample]
            box = ax.text(place, -y, "abc"[sample], ha="center", va="center")
            box.set(color=color, fontsize=12, backgroundcolor="#e2e8f0")
    ax.set(title=title, xlim=(-0.6, 5.6), ylim=(-2.5, 0.5))
    ax.axis("off")


# figure: Left, three rows of four letters: aaaa, bbbb, cccc. Right, the same twelve letters in two rows of six:
#   aaaabb and bbcccc. Each of these rows mixes two samples.
samples = torch.arange(3).repeat_interleave(4).view(3, 4)
mixed = samples.view(-1, 6)
fig, axes = plt.subplots(1, 2, figsize=(7, 1.8))
draw(axes[0], samples, "three samples: (3, 4)")
draw(axes[1], mixed, "view(-1, 6): (2, 6)")

# sphinx_gallery_start_ignore
assert samples.tolist() == [[0] * 4, [1] * 4, [2] * 4]
assert mixed.tolist() == [[0, 0, 0, 0, 1, 1], [1, 1, 2, 2, 2, 2]]
# sphinx_gallery_end_ignore

# %%
# The fix
# -------
# **Flatten everything but the batch**, and let no ``-1`` stand in its place. A wrong size then meets the layer that
# it was meant for, and the message says what it should be.

flat = x.flatten(1)
try:
    nn.Linear(16 * 5 * 5, 10)(flat)
except RuntimeError as error:
    print("RuntimeError:", error)
    assert "(6x256 and 400x10)" in str(error)

scores = nn.Linear(256, 10)(flat)
print("scores:", tuple(scores.shape))
assert scores.shape[0] == images.shape[0]

# %%
# **If images may have any size**, bring them to one before the linear layer.

head = nn.Sequential(nn.AdaptiveAvgPool2d(5), nn.Flatten(), nn.Linear(16 * 5 * 5, 10))
for side in (28, 32, 64):
    print(side, tuple(head(layers(torch.randn(6, 3, side, side))).shape))

# sphinx_gallery_start_ignore
for _side in (28, 32, 64):
    assert head(layers(torch.randn(6, 3, _side, _side))).shape == (6, 10)
# sphinx_gallery_end_ignore

# %%
# **If a batch size is in the code**, read it off the tensor. The last batch of an epoch is often smaller.

data = torch.arange(10.0)
for batch in data.split(4):
    try:
        batch.view(4, 1)
    except RuntimeError as error:
        print("RuntimeError:", error)
        assert str(error) == "shape '[4, 1]' is invalid for input of size 2"
    assert batch.view(batch.shape[0], 1).shape == (len(batch), 1)

# %%
# What not to do
# --------------
# **Change the batch size until it runs.** With 25 images, ``view(-1, 400)`` succeeds and returns 16 rows. The
# gradient tells which images the first row is made of.

images = torch.randn(25, 3, 28, 28, requires_grad=True)
rows = layers(images).view(-1, 16 * 5 * 5)
(gradient,) = torch.autograd.grad(rows[0].sum(), images)
used = gradient.flatten(1).any(1).nonzero().flatten().tolist()
print(f"{len(images)} images, {len(rows)} rows, the first from the images {used}")
assert len(rows) == 16 and used == [0, 1]

# %%
# **Squeeze the dimension that is in the way.** ``squeeze()`` removes every size of 1, and for a single image that is
# the batch as well. The channels then count as samples.

for count in (6, 1):
    batch = torch.randn(count, 16, 1, 4).squeeze()
    scores = nn.Linear(4, 10)(batch)
    print(f"batch of {count}: {tuple(batch.shape)}, scores {tuple(scores.shape)}")

single = torch.randn(1, 16, 1, 4)
assert single.squeeze().shape == (16, 4) and single.squeeze(2).shape == (1, 16, 4)

# %%
# Name the dimension: ``squeeze(2)`` leaves the batch alone.
#
# **Drop the last batch** to be rid of the small one. With ten samples and batches of four, two are left out.

kept = [batch for batch in data.split(4) if len(batch) == 4]
print("seen:", sum(len(batch) for batch in kept), "of", len(data))
assert sum(len(batch) for batch in kept) == 8

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_errors_view_not_compatible.py`: the number is right, and the memory is in a different order
# - :ref:`sphx_glr_gallery_debugging_silent_mistakes.py`: other shapes that fit and are wrong
# - `torch.flatten <https://docs.pytorch.org/docs/stable/generated/torch.flatten.html>`__ and
#   `torch.reshape <https://docs.pytorch.org/docs/stable/generated/torch.reshape.html>`__ in PyTorch's reference
