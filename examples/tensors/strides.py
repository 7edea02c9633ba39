r"""
Strides, contiguous tensors and view
====================================

.. in-short::

   A tensor is a block of memory cells and a rule for where each element lies: a shape, an *offset* (the first cell), and
   one *stride* for each dimension (how many cells to move when the index increases by 1). ``transpose``, ``permute``,
   ``expand`` and slices only change the rule. If strides cannot describe the new shape, ``view`` raises an error. Then write
   ``x.reshape(...)`` or ``x.contiguous().view(...)``: both copy the elements in the order in which you read them.
"""

# %%
# The problem: view fails after a transpose
# -----------------------------------------
# At the end of an attention layer, the four heads of each token are joined into one row of 32 numbers:

import torch
from torch import nn

heads = torch.randn(2, 4, 5, 8)  # batch, heads, tokens, numbers per head
by_token = heads.transpose(1, 2)  # batch, tokens, heads, numbers per head
try:
    by_token.view(2, 5, 32)
except RuntimeError as error:
    message = str(error)
    print(f"RuntimeError: {message}")
print(by_token.reshape(2, 5, 32).shape)
print(by_token.contiguous().view(2, 5, 32).shape)

# sphinx_gallery_start_ignore
_joined = by_token.reshape(2, 5, 32)
assert torch.equal(_joined, by_token.contiguous().view(2, 5, 32))
assert torch.equal(_joined[1, 3], torch.cat([heads[1, _head, 3] for _head in range(4)]))
# sphinx_gallery_end_ignore

# %%
# **After transpose or permute, use** ``reshape``, **or** ``contiguous()`` **before** ``view``. The reason is visible in a small
# matrix whose values are the numbers of its memory cells. Its transpose reads the same memory in a different order:
#
# .. how-measured:: This code draws the memory of x and, below it, the cells of three tensors.

from itertools import pairwise, product

import matplotlib.pyplot as plt

COLORS = ["#2563eb", "#c2410c", "#047857"]


def draw_cell(ax, left, top, number):
    style = {"fill": False, "edgecolor": COLORS[number // 4], "linewidth": 1.3}
    ax.add_patch(plt.Rectangle((left, top), 1, 0.7, **style))
    style = {"ha": "center", "va": "center", "color": COLORS[number // 4]}
    ax.text(left + 0.5, top + 0.35, number, **style)


def draw_step(ax, start, end, text, place):
    ax.annotate("", end, start, arrowprops={"arrowstyle": "->", "color": "#64748b"})
    ax.text(*place, text, ha="center", va="center", fontsize=9, color="#64748b")


def draw_memory(tensors):
    _, ax = plt.subplots(figsize=(7, 2.7), layout="constrained")
    for number in range(12):
        draw_cell(ax, number + 1.8, 5, number)
    ax.text(1.6, 5.35, "memory", ha="right", va="center")
    left = 0
    for name, tensor in tensors.items():
        rows, columns = tensor.shape
        for i, j in product(range(rows), range(columns)):
            draw_cell(ax, left + j, 2.5 - 0.7 * i, tensor[i, j].item())
        down, right = tensor.stride()
        draw_step(ax, (left, 3.4), (left + 2, 3.4), f"+{right}", (left + 2.4, 3.42))
        draw_step(
            ax, (left - 0.4, 3.2), (left - 0.4, 1.8), f"+{down}", (left - 0.4, 1.5)
        )
        ax.text(left, 3.95, f"{name}, strides {tensor.stride()}", va="center")
        left += 5.4
    ax.set(xlim=(-0.8, 15.4), ylim=(0.3, 5.75))
    ax.set_title("One block of memory, and three ways to read it")
    ax.axis("off")


# %%
# The gray numbers are the strides:

x = torch.arange(12).reshape(3, 4)

# figure: A row of twelve memory cells, 0 to 11, and three grids below it. x: rows 0 to 3, 4 to 7, 8 to 11; one step to the
#   right is 1 cell further, one step down is 4 cells further. x.t(): the same numbers with rows 0 4 8, 1 5 9, 2 6 10,
#   3 7 11; a step to the right is 4, a step down is 1. x[1:, ::2]: rows 4 6 and 8 10; right is 2, down is 4.
draw_memory({"x": x, "x.t()": x.t(), "x[1:, ::2]": x[1:, ::2]})

# sphinx_gallery_start_ignore
assert message.startswith("view size is not compatible with input tensor's size and")
assert "spans across two contiguous subspaces" in message
assert [_t.stride() for _t in (x, x.t(), x[1:, ::2])] == [(4, 1), (1, 4), (4, 2)]
assert x.t().tolist() == [[0, 4, 8], [1, 5, 9], [2, 6, 10], [3, 7, 11]]
assert x[1:, ::2].tolist() == [[4, 6], [8, 10]]
assert x.contiguous() is x and x.t().contiguous().view(-1).tolist()[:4] == [0, 4, 8, 1]
# sphinx_gallery_end_ignore

# %%
# Read row by row, ``x.t()`` is 0, 4, 8, 1, and so on: 4 cells forward, 4 cells forward, then 7 back. But a flat tensor has one
# stride, so all its steps are equal. Therefore ``x.t().view(12)`` raises, and ``contiguous()`` first copies the numbers into
# this order. If they are in order already, ``contiguous()`` returns the tensor itself.
#
# Try it. Each button calls one operation on ``x`` and makes its result the next ``x``:
#
# .. memory-cells::

# %%
# Stride, offset and contiguous
# -----------------------------
# The block of memory is the *storage*. The element with the indices ``i, j`` is in the cell
#
# .. math::
#
#    \text{offset} + i \cdot \text{stride}_0 + j \cdot \text{stride}_1
#
# and each further dimension adds its index times its stride. The third grid starts in cell 4:

y = x[1:, ::2]
print(4 + 1 * 4 + 1 * 2, "is the cell of y[1, 1], which is", y[1, 1].item())


# sphinx_gallery_start_ignore
def _cells(tensor):
    """The cell of each element, in the order of the indices."""
    steps = [
        [i * s for i in range(n)]
        for n, s in zip(tensor.shape, tensor.stride(), strict=True)
    ]
    return [tensor.storage_offset() + sum(indices) for indices in product(*steps)]


assert (y.storage_offset(), y.stride()) == (4, (4, 2)) and _cells(y)[3] == 10 == y[1, 1]
_cube = torch.arange(60).reshape(3, 4, 5)
for _t in (x, x.t(), y, x[:, :1].expand(3, 4), x[2], x[2, 1], x[:0], x[:, None], x[1]):
    assert _cells(_t) == _t.flatten().tolist()
for _t in (_cube.permute(2, 0, 1), _cube[1:, ::2, 3], _cube.movedim(0, 2)[:, 1:]):
    assert _cells(_t) == _t.flatten().tolist()
# sphinx_gallery_end_ignore

# %%
# Some more ways to read the same memory:
#
# .. how-measured:: This code reads shape, strides and offset of each tensor into a table.

import pandas as pd


def tabulate_strides(tensors):
    rows = {
        name: {
            "shape": tuple(tensor.shape),
            "strides": tensor.stride(),
            "offset": tensor.storage_offset(),
            "is_contiguous": tensor.is_contiguous(),
        }
        for name, tensor in tensors.items()
    }
    return pd.DataFrame(rows).T.rename_axis(columns="tensor")


# %%
# All of these share the storage of ``x``:

tensors = {
    "x": x,
    "x.view(2, 6)": x.view(2, 6),
    "x[1:]": x[1:],
    "x[1:, ::2]": x[1:, ::2],
    "x.t()": x.t(),
    "x.permute(1, 0)": x.permute(1, 0),
    "x[:, :1].expand(3, 4)": x[:, :1].expand(3, 4),
}

# sphinx_gallery_start_ignore
_table = tabulate_strides(tensors)
_address = x.untyped_storage().data_ptr()
assert all(_t.untyped_storage().data_ptr() == _address for _t in tensors.values())
assert _table["is_contiguous"].tolist() == [True] * 3 + [False] * 4
assert _table["offset"].tolist() == [0, 0, 4, 4, 0, 0, 0]
assert _table["strides"].tolist()[-3:] == [(1, 4), (1, 4), (4, 0)]
for _name, _t in tensors.items():
    _places = _cells(_t)
    _walk = all(b == a + 1 for a, b in pairwise(_places))
    assert _t.is_contiguous() == _walk
assert x.numpy().strides == (32, 8) and x.itemsize == 8
for _sizes, _strides in product(
    product(range(4), repeat=2), product(range(7), repeat=2)
):
    _t = torch.empty(50).as_strided(_sizes, _strides, 3)
    assert _t.is_contiguous() == all(b == a + 1 for a, b in pairwise(_cells(_t)))
assert x.flip(0).untyped_storage().data_ptr() != _address
# sphinx_gallery_end_ignore
tabulate_strides(tensors)

# %%
# A transpose exchanges two strides, and ``permute`` reorders any number of them. A slice can change the offset, and its step
# multiplies a stride. ``expand`` repeats an element with :ref:`a stride of 0
# <sphx_glr_gallery_tensors_expand_and_aliasing.py>`. (NumPy's strides count bytes, PyTorch's count elements.)
#
# **Contiguous means: if you read the tensor row by row, each element is in the cell right after the one before it.**

# %%
# When view works
# ---------------
# A ``view`` can always *split* a dimension. It can *merge* two neighboring dimensions if the step from the end of a row to the
# start of the next is the same as the steps inside a row:
#
# .. math::
#
#    \text{stride}_i = \text{stride}_{i+1} \cdot \text{size}_{i+1}
#
# .. how-measured:: This code draws the steps in memory from each element of a tensor to the next.


def draw_steps(ax, name, tensor):
    (outer, inner), size = tensor.stride(), tensor.shape[1]
    order = tensor.flatten().tolist()  # a value of x is its cell
    for number in range(12):
        read = number in order
        face = "#e2e8f0" if read else "none"
        style = {"facecolor": face, "edgecolor": "#94a3b8", "linewidth": 0.8}
        ax.add_patch(plt.Rectangle((number - 0.5, 0), 1, 1, **style))
        color = "#1e293b" if read else "#94a3b8"
        ax.text(number, 0.5, number, ha="center", va="center", color=color)
    for position, (start, end) in enumerate(pairwise(order), 1):
        fits = end - start == inner
        color = "#2563eb" if fits else "#c2410c"
        side = 1 if end > start else 0
        style = {"arrowstyle": "->", "color": color, "linewidth": 1 if fits else 1.8}
        style["connectionstyle"] = "arc3,rad=-0.35"
        ax.annotate("", (end, side), (start, side), arrowprops=style)
        if position % size == 0:
            height = 2.1 if end > start else -3.4
            ax.text(
                (start + end) / 2, height, f"{end - start:+d}", color=color, ha="center"
            )
    sign, word = ("=", "merge") if outer == inner * size else ("≠", "do not merge")
    ax.text(12, 0.9, f"{outer} {sign} {inner} · {size}", va="center")
    ax.text(12, 0, word, va="center")
    ax.text(-1, 0.5, name, ha="right", va="center")
    lowest = -4 if inner > outer else -0.2
    ax.set(xlim=(-3.8, 15.4), ylim=(lowest, 3.2))
    ax.axis("off")


def draw_merging(tensors):
    heights = {
        "height_ratios": [7.2 if t.stride(0) == 1 else 3.4 for t in tensors.values()]
    }
    fig, axes = plt.subplots(
        len(tensors), 1, figsize=(7, 4.2), layout="constrained", gridspec_kw=heights
    )
    for ax, (name, tensor) in zip(axes, tensors.items(), strict=True):
        draw_steps(ax, name, tensor)
    fig.suptitle("Rows and columns merge if all steps in memory are equal")


# %%
# A step to the next row is orange if it differs from the steps inside a row. All other steps are blue:

four = {"x": x, "x[:, ::2]": x[:, ::2], "x[:, :3]": x[:, :3], "x.t()": x.t()}

# figure: Four rows of twelve memory cells with an arrow from each element to the next. x: all steps are +1, and 4 = 1 times
#   4. x[:, ::2]: all steps are +2, and 4 = 2 times 2. x[:, :3]: steps of +1, but +2 from row to row; 4 is not 1 times 3.
#   x.t(): steps of +4, but -7 from row to row; 1 is not 4 times 3. The first two merge.
draw_merging(four)


# sphinx_gallery_start_ignore
def _works(tensor, *shape):
    try:
        tensor.view(*shape)
    except RuntimeError as error:
        assert "view size is not compatible" in str(error)
        return False
    return True


assert [_works(_t, -1) for _t in four.values()] == [True, True, False, False]
assert [_t.is_contiguous() for _t in four.values()] == [True, False, False, False]
for _t in four.values():
    (_outer, _inner), _size = _t.stride(), _t.shape[1]
    assert (_outer == _inner * _size) == _works(_t, -1)
    assert (len({b - a for a, b in pairwise(_cells(_t))}) == 1) == _works(_t, -1)
# sphinx_gallery_end_ignore

# %%
# So ``view`` works on a contiguous tensor, and on some others, such as ``x[:, ::2]``. A dimension of size 1 never matters,
# since its index is always 0. With one head or one token, the ``view`` in attention passes.

# sphinx_gallery_start_ignore
for _sizes in ((2, 1, 5, 8), (2, 4, 1, 8)):
    assert torch.randn(_sizes).transpose(1, 2).view(2, _sizes[2], -1).ndim == 3
assert x[:1].t().stride() == (1, 4) and x[:1].t().is_contiguous()
assert torch.zeros(200).as_strided((1, 4), (100, 1)).is_contiguous()
assert _works(torch.zeros(200).as_strided((2, 1, 4), (4, 77, 1)), 8)
for _sizes, _s in product([(1, 4), (4, 1), (1, 1), (3, 1, 2)], range(9)):
    _t = torch.zeros(200).as_strided(_sizes, [_s if n == 1 else 2 for n in _sizes])
    _u = torch.zeros(200).as_strided(_sizes, [99 if n == 1 else 2 for n in _sizes])
    assert _cells(_t) == _cells(_u) and _t.is_contiguous() == _u.is_contiguous()
    assert _works(_t, _t.numel()) == _works(_u, _u.numel())
# sphinx_gallery_end_ignore

# %%
# view or reshape, with three dimensions and more
# -----------------------------------------------
# Merge neighbors wherever the rule allows it. What remains are groups of dimensions that the error message calls *contiguous
# subspaces*. **view works if each dimension of the new shape lies within one of these groups. Where it raises, reshape
# copies.** For example, ``x.t()`` has two groups, with 4 and with 3 elements. So ``view(2, 2, 3)`` works, but ``view(2, 6)``
# raises, because the 6 would span across both.
#
# .. how-measured:: This code merges dimensions by the rule, and asks PyTorch whether reshape shares memory.


def subspaces(tensor):
    merged = []
    for size, stride in zip(tensor.shape, tensor.stride(), strict=True):
        if size == 1:
            continue
        if merged and merged[-1][1] == stride * size:
            size *= merged.pop()[0]
        merged.append((size, stride))
    return [size for size, _ in merged]


def view_works(tensor, shape):
    try:
        tensor.view(shape)
    except RuntimeError:
        return False
    return True


def shares(tensor, other):
    storages = tensor.untyped_storage(), other.untyped_storage()
    return storages[0].data_ptr() == storages[1].data_ptr()


def tabulate_reshapes(tensors):
    rows = {}
    for name, t in tensors.items():
        rows[name] = {"subspaces": subspaces(t)}
        shapes = {
            "flat": [-1],
            "last two merged": [len(t), -1],
            "first two merged": [-1, t.shape[-1]],
        }
        for kind, shape in shapes.items():
            rows[name][kind] = "shares" if shares(t, t.reshape(shape)) else "copies"
    return pd.DataFrame(rows).T.rename_axis(columns="tensor")


# %%
# The number of elements in each group, and whether ``reshape`` shares memory or copies:

z = torch.arange(48).reshape(2, 3, 8)
five = {
    "z": z,
    "z[:, :, ::2]": z[:, :, ::2],
    "z[:, :, :4]": z[:, :, :4],
    "z[:, :2]": z[:, :2],
    "z.transpose(1, 2)": z.transpose(1, 2),
}
# sphinx_gallery_start_ignore
table = tabulate_reshapes(five)
assert table["subspaces"].tolist() == [[48], [24], [6, 4], [2, 16], [2, 8, 3]]
_words = table.iloc[:, -3:].to_numpy().tolist()
assert _words[:2] == [["shares"] * 3] * 2 and _words[4] == ["copies"] * 3
assert _words[2:4] == [["copies", "copies", "shares"], ["copies", "shares", "copies"]]
assert subspaces(x.t()) == [4, 3] and _works(x.t(), 2, 2, 3)
assert not _works(x.t(), 2, 6) and not _works(x.t(), 12)
for _t in five.values():
    for _shape in ([-1], [len(_t), -1], [-1, _t.shape[-1]]):
        assert _works(_t, *_shape) == shares(_t, _t.reshape(_shape))

import random
from math import prod


def ends(sizes):
    """How many elements the first dimension has, the first two, and so on."""
    return {prod(sizes[:count]) for count in range(len(sizes) + 1)}


def random_tensor():
    dims = random.randint(0, 4)
    sizes = random.choices([0, 1, 2, 3, 6], weights=[1, 5, 5, 5, 5], k=dims)
    if random.random() < 0.2:
        strides = random.choices([0, 1, 2, 3, 4, 6, 12], k=dims)
        return torch.zeros(300).as_strided(sizes, strides)
    tensor = torch.zeros(sizes)
    if random.random() < 0.5:
        tensor = tensor.permute(random.sample(range(dims), dims))
    steps = random.choices([1, 1, 2], k=dims)
    tensor = tensor[tuple(slice(None, None, step) for step in steps)]
    return tensor.expand(random.choice([1, 1, 3]), *tensor.shape)


def random_shape(count):
    if count == 0:
        sizes = [0, *random.choices([0, 1, 2, 5], k=random.randint(0, 3))]
        return random.sample(sizes, len(sizes))
    shape = []
    while count > 1 or random.random() < 0.2:
        shape.append(random.choice([n for n in range(1, count + 1) if count % n == 0]))
        count //= shape[-1]
    return shape


random.seed(0)
_answers = []
for _ in range(1000):
    _t = random_tensor()
    _shape = random_shape(_t.numel())
    _answers.append(view_works(_t, _shape))
    _fits = _t.numel() == 0 or ends(subspaces(_t)) <= ends(_shape)
    assert _fits == _answers[-1] == shares(_t, _t.reshape(_shape))
    assert _answers[-1] or not _t.is_contiguous()
assert 200 < sum(_answers) < 900
# sphinx_gallery_end_ignore
tabulate_reshapes(five)

# %%
# What people get wrong
# ---------------------
# **reshape in place of transpose.** The shape is right, but the rows mix numbers of different tokens, without an error:

wrong = heads.reshape(2, 5, 32)  # transpose(1, 2) is missing
print(torch.equal(wrong, by_token.reshape(2, 5, 32)))

# sphinx_gallery_start_ignore
assert wrong.shape == _joined.shape and not torch.equal(wrong, _joined)
assert torch.equal(wrong[0, 0], heads[0, 0, :4].flatten())  # four tokens of one head
# sphinx_gallery_end_ignore

# %%
# See :ref:`permute or reshape <sphx_glr_gallery_tensors_squeeze_and_permute.py>`.
#
# **view on images in channels_last.** They are stored pixel by pixel, and so is the output of a convolution. Your code
# has no transpose, but ``view`` raises:

images = torch.zeros(2, 3, 4, 5).to(memory_format=torch.channels_last)
out = nn.Conv2d(3, 3, 1)(images)
print(out.stride(), out.is_contiguous())
try:
    out.view(2, 60)
except RuntimeError:
    print("view raises; flatten(1):", out.flatten(1).shape)

# sphinx_gallery_start_ignore
assert images.stride() == out.stride() == (60, 1, 15, 3) and not out.is_contiguous()
assert out.is_contiguous(memory_format=torch.channels_last)
assert subspaces(out) == [2, 3, 20] and view_works(out, (2, 3, 20))
assert not view_works(out, (2, 60)) and not shares(out, out.flatten(1))
# sphinx_gallery_end_ignore

# %%
# **Writing into the result of reshape.** Where ``reshape`` copies, the write is silently lost:

a = torch.zeros(2, 3)
a.reshape(6)[0] = 1  # shares memory with a
a.t().reshape(6)[1] = 2  # a copy, which nobody keeps
print(a)

# sphinx_gallery_start_ignore
assert a.tolist() == [[1, 0, 0], [0, 0, 0]]
# sphinx_gallery_end_ignore

# %%
# Use ``view`` where you rely on sharing, because it raises instead of copying.
#
# **as_strided on a slice or a transpose.** It reads the storage with the size and the strides that you pass, and ignores the
# strides of the tensor. Below, the first call reads the wrong cells, without an error. The second leaves the storage:

columns = x[:, ::2]
print(columns.flatten().tolist())
print(columns.as_strided((6,), (1,)).tolist())
try:
    columns.as_strided((6,), (3,))
except RuntimeError as error:
    message = str(error)
    print(f"RuntimeError: {message}")

# sphinx_gallery_start_ignore
assert "out of bounds for storage" in message
assert columns.flatten().tolist() == [0, 2, 4, 6, 8, 10]
assert columns.as_strided((6,), (1,)).tolist() == [0, 1, 2, 3, 4, 5]
# sphinx_gallery_end_ignore

# %%
# Exercise
# --------
# ``y = torch.zeros(2, 3, 4, 5).permute(2, 3, 0, 1)`` has the shape ``(4, 5, 2, 3)``. Write down its strides. Which neighbors
# merge? Which of these work: ``y.view(20, 6)``, ``y.view(4, 10, 3)``, ``y.view(2, 10, 6)`` and ``y.view(120)``?
#
# .. solution::
#
# The strides of the original are ``(60, 20, 5, 1)``, so those of ``y`` are ``(5, 1, 60, 20)``. The first two merge, because 5 =
# 1 · 5, and the last two, because 60 = 20 · 3. The middle ones stay apart: 1 ≠ 60 · 2. So the subspaces have 20 and 6 elements,
# and the 10 in ``(4, 10, 3)`` and the 120 would span across both.

y = torch.zeros(2, 3, 4, 5).permute(2, 3, 0, 1)
print(y.stride(), subspaces(y))
answers = [view_works(y, shape) for shape in [(20, 6), (4, 10, 3), (2, 10, 6), (120,)]]
print(answers)

# predict: y.stride() -- What are the strides of ``y``?

# sphinx_gallery_start_ignore
assert answers == [True, False, True, False]
assert y.stride() == (5, 1, 60, 20) and subspaces(y) == [20, 6]
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`The page on view's error <sphx_glr_gallery_errors_view_not_compatible.py>`, and :ref:`the one on negative strides
#   <sphx_glr_gallery_tensors_numpy_and_torch.py>`, which PyTorch does not have.
# - :ref:`sphx_glr_gallery_differentiation_gradient_layouts.py`: the strides of ``.grad``.
# - In PyTorch's reference: `torch.Tensor.view <https://docs.pytorch.org/docs/stable/generated/torch.Tensor.view.html>`__, which
#   states the rule, `torch.reshape <https://docs.pytorch.org/docs/stable/generated/torch.reshape.html>`__ and
#   `Tensor.is_contiguous <https://docs.pytorch.org/docs/stable/generated/torch.Tensor.is_contiguous.html>`__.
