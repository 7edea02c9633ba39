r"""
squeeze, permute, reshape, broadcasting
=======================================

.. in-short::

   ``permute`` moves dimensions. ``reshape`` keeps the order in which the elements are read, so in the place of ``permute`` it
   scrambles a color image. On ``(batch, 1)`` call ``squeeze(1)``, because ``squeeze()`` also removes a batch of size 1. Put
   ``assert pred.shape == target.shape`` before a loss such as ``mse_loss``: ``(4, 1)`` and ``(4,)`` broadcast to ``(4, 4)``,
   and only some of PyTorch's losses warn or raise.
"""

# %%
# The problem: a scrambled image, without an error
# ------------------------------------------------
# An image often comes with the three colors of a pixel side by side, as ``(height, width, 3)``. But a convolution wants one
# plane for each color, ``(3, height, width)``. Both lines below return that shape:

import torch
from torch import nn

i, j = torch.meshgrid(torch.arange(48), torch.arange(64), indexing="ij")
image = (torch.tensor([37, 99, 235]) / 255).repeat(48, 64, 1)  # a blue sky
image[i > 34] = torch.tensor([4, 120, 87]) / 255  # above green ground
image[(i - 18) ** 2 + (j - 42) ** 2 < 140] = torch.tensor([180, 83, 9]) / 255  # the sun

right = image.permute(2, 0, 1)
wrong = image.reshape(3, 48, 64)
print(tuple(image.shape), tuple(right.shape), tuple(wrong.shape))

# %%
# .. how-measured:: This code shows three images.

import matplotlib.pyplot as plt


def draw_images(pictures):
    fig, axes = plt.subplots(1, 3, figsize=(7, 2.4), layout="constrained")
    for ax, (name, planes) in zip(axes, pictures.items(), strict=True):
        ax.imshow(planes.permute(1, 2, 0).numpy(), interpolation="nearest")
        ax.set_title(name, fontsize=10)
        ax.axis("off")
    fig.suptitle("The same numbers in the same shape, in two orders")


# %%
# What they look like:

# figure: Three pictures of 48 by 64 pixels. The image shows an orange disc on a blue sky above green ground. After
#   permute it is the same. After reshape it is a fine pattern of colored dots, without disc, sky and ground.
original = torch.stack(image.unbind(2))
draw_images({"image": original, "permute(2, 0, 1)": right, "reshape(3, 48, 64)": wrong})

# sphinx_gallery_start_ignore
assert torch.equal(original, right) and not torch.allclose(original, wrong)
assert torch.equal(right[:, 0, 0], image[0, 0]) and right.shape == wrong.shape
assert not torch.allclose(wrong[:, 0, 0], image[0, 0])
assert nn.Conv2d(3, 8, 3)(wrong).shape == nn.Conv2d(3, 8, 3)(right).shape
assert wrong.flatten().sort().values.equal(right.flatten().sort().values)
# sphinx_gallery_end_ignore

# %%
# A layer such as ``nn.Conv2d(3, 8, 3)`` accepts the scrambled image like the right one.

# %%
# permute or reshape
# ------------------
# ``permute`` puts the *indices* of each element into another order. ``reshape`` keeps the *reading order* of the elements, and
# cuts it into rows of another length:

small = torch.arange(6).reshape(2, 3)
print(small.tolist())
print(small.permute(1, 0).tolist())
print(small.reshape(3, 2).tolist())

# sphinx_gallery_start_ignore
assert small.tolist() == [[0, 1, 2], [3, 4, 5]]
assert small.permute(1, 0).tolist() == [[0, 3], [1, 4], [2, 5]]
assert small.reshape(3, 2).tolist() == [[0, 1], [2, 3], [4, 5]]
for _shape, _new in (((2, 3, 4), (4, 3, 2)), ((2, 3, 4), (6, 4)), ((1, 0, 3), (3, 0))):
    _t = torch.randn(_shape).permute(0, 2, 1)
    assert _t.reshape(_new).flatten().equal(_t.flatten())
_t = torch.arange(24).reshape(2, 3, 4)
assert _t.permute(2, 0, 1)[3, 1, 2] == _t[1, 2, 3]
# sphinx_gallery_end_ignore

# %%
# So to exchange dimensions use ``permute``, ``transpose`` or ``movedim``. To merge or split them use ``reshape``. For example,
# if you have ``(batch, time, size)`` and want time first, ``x.reshape(time, batch, size)`` mixes the sequences.
#
# ``torch.func.rearrange`` does both, with a name for each dimension, as the library *einops*:

rows = torch.func.rearrange(image, "height width color -> color (height width)")
print(tuple(rows.shape), torch.equal(rows, right.reshape(3, 48 * 64)))

# sphinx_gallery_start_ignore
assert torch.equal(rows, right.reshape(3, 48 * 64))
# sphinx_gallery_end_ignore

# %%
# The way back from ``permute`` is the inverse permutation. ``argsort`` gives it, if no number is negative:

order = (2, 0, 1)
inverse = torch.tensor(order).argsort().tolist()
print(inverse)
print(tuple(image.permute(order).permute(inverse).shape))
print(tuple(image.permute(order).permute(order).shape))

# sphinx_gallery_start_ignore
assert inverse == [1, 2, 0]
assert torch.equal(image.permute(order).permute(inverse), image)
_negative = torch.tensor((0, -1, 1))
for _order, _right in ((_negative, False), (_negative % 3, True)):
    _back = image.permute(0, -1, 1).permute(_order.argsort().tolist())
    assert (_back.shape == image.shape) == _right
assert image.permute(order).permute(order).shape == (64, 3, 48)
_batch = torch.arange(6).reshape(2, 3)  # two sequences of three steps
assert _batch.reshape(3, 2)[:, 0].tolist() == [0, 2, 4] != _batch[0].tolist()
# sphinx_gallery_end_ignore

# %%
# What squeeze removes
# --------------------
# Without an argument, ``squeeze`` removes every dimension of size 1. With a number or a tuple, it looks at these dimensions
# only.
#
# .. how-measured:: This code shows the shape of each result in a table.

import pandas as pd


def tabulate_shapes(results):
    rows = {name: {"shape": tuple(result.shape)} for name, result in results.items()}
    return pd.DataFrame(rows).T.rename_axis(columns="call")


# %%
# From a tensor with two dimensions of size 1:

x = torch.zeros(1, 3, 1, 2)
results = {
    "x": x,
    "x.squeeze()": x.squeeze(),
    "x.squeeze(0)": x.squeeze(0),
    "x.squeeze(1)": x.squeeze(1),
    "x.squeeze((0, 2))": x.squeeze((0, 2)),
    "x[0]": x[0],
    "x.squeeze().unsqueeze(1)": x.squeeze().unsqueeze(1),
}

# sphinx_gallery_start_ignore
assert x.squeeze().shape == x.squeeze((0, 2)).shape == (3, 2)
assert x.squeeze(1).shape == x.shape and x.squeeze((0, 1)).shape == (3, 1, 2)
assert x.squeeze(0).shape == x[0].shape == x.squeeze().unsqueeze(1).shape == (3, 1, 2)
assert x[:, 0].dim() == 3 and x.size(1) == 3
for _y in (x.squeeze(), x.squeeze(1), x.squeeze((0, 2)), x[0], x.unsqueeze(1)):
    assert _y._is_view() and _y.data_ptr() == x.data_ptr()
# sphinx_gallery_end_ignore
tabulate_shapes(results)

# %%
# ``squeeze(1)`` silently changed nothing, because that size is 3. ``x[0]`` takes one part of a dimension of any size.
# ``unsqueeze`` is the way back. All results of the table are :ref:`views <sphx_glr_gallery_tensors_copy_table.py>`, so they
# share memory with ``x``.

# %%
# How shapes broadcast
# --------------------
# Two shapes are aligned at their last dimension, and missing dimensions in front count as 1. Then in each place the sizes must
# be equal, or one of them 1. A size of 1 is stretched to the other.

print(tuple((torch.zeros(4, 3) - torch.zeros(3)).shape))
print(tuple((torch.zeros(4, 1) - torch.zeros(4)).shape))
try:
    torch.zeros(4, 3) - torch.zeros(4)
except RuntimeError as error:
    message = str(error)
    print(f"RuntimeError: {message}")


# sphinx_gallery_start_ignore
def _rule(first, second):
    longest = max(len(first), len(second))
    pairs = [(1,) * (longest - len(shape)) + tuple(shape) for shape in (first, second)]
    if any(a != b and 1 not in (a, b) for a, b in zip(*pairs, strict=True)):
        return None
    return tuple(b if a == 1 else a for a, b in zip(*pairs, strict=True))


_raised = 0
for _first in [
    (),
    (4,),
    (1,),
    (0,),
    (4, 1),
    (1, 4),
    (4, 3),
    (0, 3),
    (2, 1, 3),
    (2, 4, 1),
]:
    for _second in [(), (3,), (4,), (1,), (0,), (4, 1), (4, 3), (1, 1, 0), (2, 4, 3)]:
        try:
            _shape = tuple((torch.zeros(_first) - torch.zeros(_second)).shape)
        except RuntimeError as _error:
            _shape, _raised = None, _raised + 1
        assert _shape == _rule(_first, _second)
assert _raised > 10
assert message.startswith(
    "The size of tensor a (3) must match the size of tensor b (4)"
)
assert _rule((4, 1), (4,)) == (4, 4) and _rule((4, 3), (3,)) == (4, 3)
# sphinx_gallery_end_ignore

# %%
# ``(4,)`` counts as ``(1, 4)``. So ``(4, 3)`` and ``(4,)`` do not fit, although both begin with 4. But ``(4, 1)`` and ``(4,)``
# fit: a column meets a row, and the result has all pairs.

# %%
# What people get wrong
# ---------------------
# **squeeze() on a batch.** A model returns one number for each example, shape ``(batch, 1)``, and ``squeeze()`` turns that into
# ``(batch,)``. But nine examples in batches of four leave one for the last batch, and its result loses both dimensions
# (`anomalib#2883 <https://github.com/open-edge-platform/anomalib/issues/2883>`__).

torch.manual_seed(0)
net = nn.Linear(5, 1)
batches = torch.randn(9, 5).split(4)

scores = [net(batch).squeeze() for batch in batches]
print([tuple(score.shape) for score in scores])
try:
    torch.cat(scores)
except RuntimeError as error:
    message = str(error)
    print(f"RuntimeError: {message}")

scores = [net(batch).squeeze(1) for batch in batches]
print([tuple(score.shape) for score in scores])

# sphinx_gallery_start_ignore
assert "zero-dimensional tensor (at position 2)" in message
assert [score.shape for score in scores] == [(4,), (4,), (1,)]
assert torch.cat(scores).shape == (9,)
# sphinx_gallery_end_ignore

# %%
# The error comes when all batches are done, and :ref:`a mean over dimension 0
# <sphx_glr_gallery_debugging_silent_mistakes.py>` would not even raise. So name the dimension to remove.
#
# **A column minus a row in the loss.** These predictions are perfect. Their shape is ``(4, 1)``, and that of the targets is
# ``(4,)``:

target = torch.tensor([0.0, 1.0, 1.0, 0.0])
pred = target[:, None]
print(pred - target)
print(((pred - target) ** 2).mean(), "is the loss")
print((pred == target).float().mean(), "is the accuracy")

# sphinx_gallery_start_ignore
assert pred.shape == (4, 1) and (pred - target).shape == (4, 4)
assert ((pred - target) ** 2).mean() == (pred == target).float().mean() == 0.5
# sphinx_gallery_end_ignore

# %%
# Each prediction was compared with each target, so the perfect model seems to have half of its answers right. Write
# ``pred.squeeze(1)``, and put an ``assert pred.shape == target.shape`` before the loss.
#
# .. how-measured:: Each formula runs on predictions of shape (4, 1) and (4,), and warnings and errors are recorded.

import warnings

from torch.nn import functional as F

FORMULAS = {
    "((pred - target) ** 2).mean()": lambda pred: ((pred - target) ** 2).mean(),
    "(pred == target).float().mean()": lambda pred: (pred == target).float().mean(),
    "F.poisson_nll_loss": lambda pred: F.poisson_nll_loss(pred, target),
    "F.gaussian_nll_loss": lambda pred: F.gaussian_nll_loss(
        pred, target, torch.ones(4)
    ),
    "F.kl_div": lambda pred: F.kl_div(pred, target, reduction="sum"),
    "F.mse_loss": lambda pred: F.mse_loss(pred, target),
    "F.l1_loss": lambda pred: F.l1_loss(pred, target),
    "F.huber_loss": lambda pred: F.huber_loss(pred, target),
    "F.binary_cross_entropy": lambda pred: F.binary_cross_entropy(pred, target),
    "F.binary_cross_entropy_with_logits": lambda pred: (
        F.binary_cross_entropy_with_logits(pred, target)
    ),
}


def evaluate(formula, pred):
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        try:
            value = f"{formula(pred).item():.2f}"
        except ValueError as error:
            return "none", "raises", str(error)
    return value, "warns" if seen else "silent", str(seen[0].message) if seen else ""


def tabulate_losses():
    rows = {}
    for name, formula in FORMULAS.items():
        value, outcome, _ = evaluate(formula, target[:, None])
        right_value, right_outcome, _ = evaluate(formula, target)
        rows[name] = {"(4, 1)": value, "(4,)": right_value, "with (4, 1)": outcome}
        assert right_outcome == "silent"
    return pd.DataFrame(rows).T.rename_axis(columns="shape of pred:")


# %%
# The first five are silent: your two formulas, and three of PyTorch's losses. Three warn that *This will likely lead to
# incorrect results due to broadcasting*. The two for binary classification raise:

# sphinx_gallery_start_ignore
table = tabulate_losses()
assert table["with (4, 1)"].tolist() == ["silent"] * 5 + ["warns"] * 3 + ["raises"] * 2
assert (table["(4, 1)"] != table["(4,)"]).all()
_errors = [evaluate(FORMULAS[_name], pred)[2] for _name in list(FORMULAS)[-2:]]
assert "that is different to the input size" in _errors[0]
assert "must be the same as input size" in _errors[1]
_warned = [evaluate(FORMULAS[_name], pred)[2] for _name in list(FORMULAS)[5:8]]
assert all(
    "likely lead to incorrect results due to broadcasting" in _t for _t in _warned
)
# sphinx_gallery_end_ignore
tabulate_losses()

# %%
# Exercise
# --------
# ``batch`` has shape ``(8, 3, 32, 32)``: images, colors, height, width. For a library that wants the colors last
# you need ``(8, 32, 32, 3)``. All five calls below return that shape. Which are right? ``permute(0, 2, 3, 1)``,
# ``movedim(1, -1)``, ``transpose(1, 3)``, ``transpose(1, 2).transpose(2, 3)``, ``reshape(8, 32, 32, 3)``.
#
# .. solution::
#
# The right ones keep height before width. ``transpose(1, 3)`` exchanges color and width, which leaves the order width, height,
# color: each image is mirrored at its diagonal. Two exchanges of neighbors move the colors past height and width, one after the
# other. ``reshape`` scrambles. A square image hides the mistake, so try such code with sizes that are all different.

batch = torch.randn(8, 3, 32, 32)
answers = {
    "permute": batch.permute(0, 2, 3, 1),
    "movedim": batch.movedim(1, -1),
    "transpose": batch.transpose(1, 3),
    "two transposes": batch.transpose(1, 2).transpose(2, 3),
    "reshape": batch.reshape(8, 32, 32, 3),
}
for name, result in answers.items():
    print(name, torch.equal(result[5, 10, 20], batch[5, :, 10, 20]))

# predict: sum(torch.equal(r, answers["permute"]) for r in answers.values()) -- How
#   many of the five calls are right?

# sphinx_gallery_start_ignore
_original = torch.stack(batch.unbind(1), dim=-1)
_right = [torch.equal(_result, _original) for _result in answers.values()]
assert _right == [True, True, False, True, False]
assert all(_result.shape == (8, 32, 32, 3) for _result in answers.values())
assert torch.equal(batch.transpose(1, 3), batch.movedim(1, -1).transpose(1, 2))
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_tensors_strides.py`: why ``permute`` moves nothing in memory.
# - :ref:`sphx_glr_gallery_debugging_silent_mistakes.py`: what a wrong shape does in training.
# - In PyTorch's reference: `torch.squeeze <https://docs.pytorch.org/docs/stable/generated/torch.squeeze.html>`__,
#   `torch.permute <https://docs.pytorch.org/docs/stable/generated/torch.permute.html>`__ and `broadcasting semantics
#   <https://docs.pytorch.org/docs/stable/notes/broadcasting.html>`__.
