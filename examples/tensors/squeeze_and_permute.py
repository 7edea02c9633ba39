r"""
squeeze, permute and broadcasting: when the shape is not what you meant
=======================================================================

``squeeze`` removes dimensions of size 1, ``permute`` puts dimensions into another order, and broadcasting stretches
them where two shapes differ. The result of a mistake often has a shape that fits. This page shows the exact rule of
each, and three places where a wrong one gives an error late, or a wrong number and no error.
"""

# %%
# What squeeze removes
# --------------------
# Without an argument, ``squeeze`` removes every dimension of size 1. With one, it looks at that dimension only. Since
# PyTorch 2.0 it takes a tuple of dimensions too.

import textwrap
import warnings

import matplotlib.pyplot as plt
import pandas as pd
import torch
from matplotlib.colors import to_rgb
from torch import nn

x = torch.zeros(1, 3, 1, 2)
calls = "x; x.squeeze(); x.squeeze(0); x.squeeze(1); x.squeeze((0, 2))"
calls += "; x.squeeze((0, 1)); x[0]; x.squeeze().unsqueeze(1)"
for call in calls.split("; "):
    print(f"{call:<24} {tuple(eval(call).shape)}")

# sphinx_gallery_start_ignore
_shapes = {_call: eval(_call).shape for _call in calls.split("; ")}
assert all(eval(_call)._is_view() for _call in calls.split("; ")[1:])
assert x[:, 0].dim() == 3 and x.size(1) == 3
assert _shapes["x.squeeze()"] == (3, 2) and _shapes["x.squeeze(1)"] == (1, 3, 1, 2)
assert _shapes["x.squeeze((0, 2))"] == (3, 2) and _shapes["x.squeeze((0, 1))"] == (
    3,
    1,
    2,
)
assert _shapes["x.squeeze(0)"] == _shapes["x[0]"] == (3, 1, 2)
assert _shapes["x.squeeze().unsqueeze(1)"] == (3, 1, 2)
# sphinx_gallery_end_ignore

# %%
# ``squeeze(1)`` did nothing, because that size is 3, and it said nothing. In a tuple it is the same. ``x[0]`` removes
# a dimension of any size. ``unsqueeze`` is the way back, but it has to be told where. All of these results are
# :ref:`views <sphx_glr_gallery_tensors_copy_table.py>`.

# %%
# permute is not reshape
# ----------------------
# Both can turn a shape into another. ``permute`` keeps the *indices* of each element and writes them in another
# order. ``reshape`` keeps the *reading order* and cuts it into rows of another length.

small = torch.arange(6).reshape(2, 3)
permuted, reshaped = small.permute(1, 0), small.reshape(3, 2)
for name in ("small", "permuted", "reshaped"):
    print(f"{name:<8} {eval(name).tolist()}")

assert all(permuted[j, i] == small[i, j] for i in range(2) for j in range(3))
assert torch.equal(reshaped.flatten(), small.flatten())

# sphinx_gallery_start_ignore
assert permuted.shape == reshaped.shape and not torch.equal(permuted, reshaped)
# sphinx_gallery_end_ignore

# %%
# The shapes agree, so nothing that follows will complain. The classic place is an image. A file has the three colours
# of a pixel side by side, shape ``(height, width, 3)``. A convolution wants one plane for each colour, shape
# ``(3, height, width)``.

i, j = torch.meshgrid(torch.arange(48), torch.arange(64), indexing="ij")
image = torch.tensor(to_rgb("#2563eb")).repeat(48, 64, 1)
image[i > 34] = torch.tensor(to_rgb("#047857"))
image[(i - 18) ** 2 + (j - 42) ** 2 < 140] = torch.tensor(to_rgb("#b45309"))

right = image.permute(2, 0, 1)
wrong = image.reshape(3, 48, 64)
print("first pixel:  ", [round(value, 2) for value in image[0, 0].tolist()])
print("with permute: ", [round(value, 2) for value in right[:, 0, 0].tolist()])
print("with reshape: ", [round(value, 2) for value in wrong[:, 0, 0].tolist()])

# sphinx_gallery_start_ignore
assert torch.equal(right[:, 0, 0], image[0, 0]) and right.shape == wrong.shape
assert not torch.allclose(wrong[:, 0, 0], image[0, 0])
# sphinx_gallery_end_ignore

# %%
# This is what the network would see. To draw the planes they are put back, ``(height, width, 3)``, with ``permute``.

# figure: Three pictures of 48 by 64 pixels. The image shows an orange disc on a blue sky above green ground. After
#   permute it is the same. After reshape it is a fine pattern of coloured stripes, and nothing can be recognised.
fig, axes = plt.subplots(1, 3, figsize=(7, 2.3), layout="constrained")
pictures = {
    "image": image,
    "permute(2, 0, 1)": right.permute(1, 2, 0),
    "reshape(3, 48, 64)": wrong.permute(1, 2, 0),
}
for ax, (name, picture) in zip(axes, pictures.items(), strict=True):
    ax.imshow(picture.numpy(), interpolation="nearest")
    ax.set_title(name, fontsize=10)
    ax.axis("off")
fig.suptitle("The same numbers, dealt out in two ways")

# sphinx_gallery_start_ignore
assert torch.equal(pictures["permute(2, 0, 1)"], image)
# sphinx_gallery_end_ignore

# %%
# The way back from ``permute`` is the inverse permutation. It is not the same call again: with three dimensions, only
# an exchange of two of them undoes itself. ``argsort`` gives the inverse.

order = (2, 0, 1)
inverse = torch.tensor(order).argsort().tolist()
print("inverse of", order, "is", inverse)
assert torch.equal(image.permute(order).permute(inverse), image)
assert image.permute(order).permute(order).shape == (64, 3, 48)

# sphinx_gallery_start_ignore
from itertools import permutations

_own = [_p for _p in permutations(range(3)) if [_p[_q] for _q in _p] == [0, 1, 2]]
assert _own == [(0, 1, 2), (0, 2, 1), (1, 0, 2), (2, 1, 0)]
# sphinx_gallery_end_ignore

# %%
# How shapes broadcast
# --------------------
# Two shapes are aligned at their last dimension, and missing dimensions in front count as 1. Then in each place the
# sizes must be equal, or one of them 1.

for first, second in [
    ((4, 1), (4, 1)),
    ((4,), (4,)),
    ((4, 1), (1,)),
    ((4, 3), (3,)),
    ((4, 1), (4,)),
    ((4, 3), (4,)),
]:
    try:
        result = tuple((torch.zeros(first) - torch.zeros(second)).shape)
    except RuntimeError as error:
        result, message = "raises", str(error)
    print(f"{first!s:<6} - {second!s:<6} {result}")
print(textwrap.fill(f"RuntimeError: {message}", 88))

# sphinx_gallery_start_ignore
assert message.startswith(
    "The size of tensor a (3) must match the size of tensor b (4)"
)
assert (torch.zeros(4, 1) - torch.zeros(4)).shape == (4, 4)
# sphinx_gallery_end_ignore

# %%
# ``(4, 1) - (4,)`` is the trap. ``(4,)`` counts as ``(1, 4)``, so a column meets a row, and the result has all pairs.
# The case that raises shows that the number of rows is not what is compared.

# %%
# What people get wrong
# ---------------------
# **squeeze() on a batch.** A model returns one number for each example, shape ``(batch, 1)``, and ``squeeze()`` makes
# ``(batch,)`` of it. Nine examples in batches of four leave one for the last batch. Its result has no dimension at
# all (`anomalib#2883 <https://github.com/open-edge-platform/anomalib/issues/2883>`__).

torch.manual_seed(0)
net = nn.Linear(5, 1)
batches = torch.randn(9, 5).split(4)

scores = [net(batch).squeeze() for batch in batches]
print("squeeze() ", [tuple(score.shape) for score in scores])
try:
    torch.cat(scores)
except RuntimeError as error:
    print(f"RuntimeError: {error}")
    assert "zero-dimensional tensor (at position 2)" in str(error)

scores = [net(batch).squeeze(1) for batch in batches]
print("squeeze(1)", [tuple(score.shape) for score in scores])
assert torch.cat(scores).shape == (9,)

# %%
# Here it ends with an error, when all the batches are done. It need not: :ref:`a mean over dimension 0
# <sphx_glr_gallery_debugging_silent_mistakes.py>` goes on with another dimension. Name the one that is to go.
#
# **A column minus a row in the loss.** The predictions are perfect, and shaped ``(4, 1)``. The targets are shaped
# ``(4,)``. Which of the usual formulas notice?

F = nn.functional
target = torch.tensor([0.0, 1.0, 1.0, 0.0])
formulas = """
((pred - target) ** 2).mean(); (pred == target).float().mean();
F.mse_loss(pred, target); F.l1_loss(pred, target);
F.binary_cross_entropy(pred, target)
"""


def evaluate(formula, pred):
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        try:
            value = eval(formula, globals() | {"pred": pred}).item()
        except ValueError as error:
            return "none", "raises", str(error)
    return value, "warns" if seen else "silent", str(seen[0].message) if seen else ""


# %%
# Each formula runs on the column and, to compare, on predictions of the shape of the targets.

rows, messages = {}, {}
for formula in formulas.replace("\n", " ").split(";"):
    value, outcome, message = evaluate(formula, target[:, None])
    right_value, _, _ = evaluate(formula, target)
    rows[formula.strip()] = {"column": value, "right": right_value, "outcome": outcome}
    messages[outcome] = message

print(textwrap.fill(messages["warns"], 88))
table = pd.DataFrame(rows).T.rename_axis(columns="formula")

# sphinx_gallery_start_ignore
assert table["outcome"].tolist() == ["silent"] * 2 + ["warns"] * 2 + ["raises"]
assert table["column"].tolist() == [0.5] * 4 + ["none"]
assert table["right"].tolist() == [0, 1, 0, 0, 0]
assert (
    "This will likely lead to incorrect results due to broadcasting"
    in messages["warns"]
)
assert "that is different to the input size" in messages["raises"]
# sphinx_gallery_end_ignore
table

# %%
# A perfect model seems to have half of its answers right, and a loss to go on minimising: a formula of your own says
# nothing. (:ref:`What training makes of it <sphx_glr_gallery_debugging_silent_mistakes.py>`.) Write ``assert
# pred.shape == target.shape`` in front of it. For large batches the memory would tell: every pair has a place of its
# own. The ``meta`` device counts without computing.

pairs = torch.empty(10_000, 1, device="meta") - torch.empty(10_000, device="meta")
print(tuple(pairs.shape), pairs.nbytes // 10**6, "MB")
assert pairs.nbytes == 400_000_000

# %%
# Exercise
# --------
# ``batch`` has shape ``(8, 3, 32, 32)``: images, colours, height, width. For a library that wants the colours last
# you need ``(8, 32, 32, 3)``. These five calls all have that shape. Which are right? ``permute(0, 2, 3, 1)``,
# ``movedim(1, -1)``, ``transpose(1, 3)``, ``transpose(1, 2).transpose(2, 3)``, ``reshape(8, 32, 32, 3)``.
#
# .. solution::
#
# The right ones keep height before width. ``transpose(1, 3)`` exchanges colour and width, which leaves the order
# width, height, colour: each image is mirrored at its diagonal, and because the images are square the shape does not
# show it. Two exchanges of neighbours move the colours past height and width, one after the other. ``reshape``
# scrambles.

batch = torch.randn(8, 3, 32, 32)
answers = []
for call in [
    "permute(0, 2, 3, 1)",
    "movedim(1, -1)",
    "transpose(1, 3)",
    "transpose(1, 2).transpose(2, 3)",
    "reshape(8, 32, 32, 3)",
]:
    result = eval(f"batch.{call}")
    answers.append(torch.equal(result[5, 10, 20], batch[5, :, 10, 20]))
    print(f"{call:<31} {answers[-1]}")
    assert result.shape == (8, 32, 32, 3)
assert answers == [True, True, False, True, False]

# sphinx_gallery_start_ignore
assert torch.equal(batch.transpose(1, 3), batch.movedim(1, -1).transpose(1, 2))
# sphinx_gallery_end_ignore

# %%
# A square hides the mistake. Try such code with sizes that are all different.
#
# See also
# --------
# - Before: :ref:`sphx_glr_gallery_tensors_expand_and_aliasing.py`, what broadcasting does to a write.
# - Next: :ref:`sphx_glr_gallery_tensors_detach_clone_data.py`, which copies leave the graph.
# - :ref:`sphx_glr_gallery_tensors_strides.py`: why ``permute`` moves nothing in memory.
# - In PyTorch's reference: `torch.squeeze <https://docs.pytorch.org/docs/stable/generated/torch.squeeze.html>`__ and
#   `broadcasting semantics <https://docs.pytorch.org/docs/stable/notes/broadcasting.html>`__.
