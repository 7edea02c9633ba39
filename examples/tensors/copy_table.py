r"""
View or copy: which calls share memory
======================================

.. index::
   single: does reshape return a view or a copy
   single: list of operations that return a view
   single: a write into a slice changes the original tensor

.. in-short::

   For an ordinary matrix ``x``, numbers and slices in brackets, ``view``, ``transpose``, ``squeeze``, ``expand`` and ``split``
   share memory: after ``y = x[0]``, the line ``y[0] = 9`` changes ``x`` too. A list of numbers or a mask in the brackets
   copies, and so do ``clone``, ``repeat`` and ``cat``. ``reshape``, ``flatten``, ``ravel`` and ``contiguous`` share or copy,
   depending on the strides of ``x``. If you need a separate copy, call ``x.clone()``.
"""

# %%
# Does a write into the result change x?
# --------------------------------------
# You normalize a batch or clear a part of a mask, and another tensor changes too. Or the write is lost. ``x[0]`` and ``x[[0]]``
# both read the first row:

import matplotlib.pyplot as plt
import numpy as np
import torch

x = torch.zeros(2, 3)
shared, copied = x[0], x[[0]]
shared[0] = 5
copied[0] = 7
print(x)

# sphinx_gallery_start_ignore
assert x.tolist() == [[5, 0, 0], [0, 0, 0]]
# sphinx_gallery_end_ignore

# %%
# Only the 5 is in ``x``.

# %%
# The rule: an offset and strides
# -------------------------------
# The numbers of a tensor lie in a row in memory. Take the block ``x[1:3, 1:4]`` of a matrix whose numbers count its cells:
#
# .. how-measured:: This code draws a matrix and its memory, and marks the cells of a block of it.


def draw_cell(ax, left, bottom, number, marked):
    color, width = ("#2563eb", 1.6) if marked else ("#94a3b8", 0.6)
    style = {"fill": False, "edgecolor": color, "linewidth": width}
    ax.add_patch(plt.Rectangle((left, bottom), 0.92, 0.92, **style))
    style = {"ha": "center", "va": "center", "color": color, "fontsize": 9}
    ax.text(left + 0.46, bottom + 0.46, number, **style)


def draw_in_memory(x, block):
    _, ax = plt.subplots(figsize=(7, 2.6), layout="constrained")
    for number in x.flatten().int().tolist():
        row, column = divmod(number, 6)
        for left, bottom in ((column + 9, 5.4 - row), (number, 0)):
            draw_cell(ax, left, bottom, number, number in block)
    style = {"arrowstyle": "->", "color": "#c2410c"}
    for start, end, text in ((0, 7, "offset 7"), (7, 13, "stride 6")):
        ax.annotate("", (end + 0.4, 1), (start + 0.4, 1), arrowprops=style)
        ax.text((start + end) / 2 + 0.4, 1.3, text, ha="center", color="#c2410c")
    ax.text(8.7, 4.4, "x", ha="right", va="center")
    ax.text(-0.3, 0.46, "memory", ha="right", va="center")
    ax.set(xlim=(-3, 24.2), ylim=(-0.2, 6.5), title="The block x[1:3, 1:4] in memory")
    ax.axis("off")


# %%
# It starts in cell 7. Each step to the right is 1 cell, and each step down is 6 cells. So the *offset* 7 and the *strides*
# ``(6, 1)`` describe the block, and PyTorch copies nothing:

x = torch.arange(24.0).reshape(4, 6)
block = x[1:3, 1:4]
print("offset", block.storage_offset(), "  strides", block.stride())
draw_in_memory(x, block)

# figure: A matrix of 4 rows and 6 columns with the numbers 0 to 23, and below it the same numbers in one row. The block 7, 8, 9
#   and 13, 14, 15 is marked in both. An arrow from cell 0 to cell 7 is the offset, one from 7 to 13 the stride of 6.

# sphinx_gallery_start_ignore
assert block.storage_offset() == 7 and block.stride() == (6, 1)
assert block.tolist() == [[7, 8, 9], [13, 14, 15]]
# sphinx_gallery_end_ignore

# %%
# A result can share memory if an offset and one stride for each dimension describe it. The rows of ``x[[0, 2, 3]]`` are not
# evenly spaced, so no stride describes them. PyTorch copies for each list, even for ``x[[0, 2]]``. ``x.flip(0)`` copies too,
# because it needs a negative stride, which PyTorch lacks.

# %%
# Which calls share, and which copy
# ---------------------------------
# Some calls depend on how ``x`` lies in memory. So the table has the same numbers in three layouts. A transpose lies *by
# columns*, and every second column of a wider tensor lies *with gaps*:


def make_layouts():
    numbers = torch.arange(24.0).reshape(4, 6)
    return {
        "by rows": numbers,
        "by columns": numbers.t().contiguous().t(),
        "with gaps": numbers.repeat_interleave(2, dim=1)[:, ::2],
    }


for layout, x in make_layouts().items():
    print(f"{layout:<10} strides {x.stride()}")

# %%
# .. how-measured:: Each call is run on all three, and then its result is written to.

import pandas as pd

ROWS = [
    ["x[1]", "x[1:3]", "x[:, ::2]", "x[None]"],
    ["x.t()", "x.transpose(0, 1)", "x.permute(1, 0)"],
    ["x.squeeze()", "x.unsqueeze(0)", "x.expand(3, 4, 6)"],
    ["x.split(2)[0]", "x.chunk(2)[0]", "x.detach()"],
    ["x.view(24)"],
    ["x.reshape(24)", "x.flatten()"],
    ["x.ravel()", "x.contiguous()"],
    ["x.float()", 'x.to("cpu")'],
    ["x[[0, 2]]", "x[x > 5]", "x.masked_select(x > 5)"],
    ["x.clone()", "x.double()", "x.repeat(1, 1)", "torch.cat([x])"],
]


def write_into_result(call, layout):
    x = make_layouts()[layout]
    try:
        y = eval(call, {"x": x, "torch": torch})
    except RuntimeError:
        return "raises"
    y[(0,) * y.dim()] = 99
    return "yes" if (x == 99).any() else "no"


def tabulate_writes():
    found, layouts = {}, list(make_layouts())
    for calls in ROWS:
        answers = [[write_into_result(c, layout) for layout in layouts] for c in calls]
        assert answers == answers[:1] * len(calls)  # all of a row agree
        found[",  ".join(calls)] = answers[0]
    return pd.DataFrame(found, index=layouts).T


# sphinx_gallery_start_ignore
table = tabulate_writes()
_found = {_row.split(",  ")[0]: list(table.loc[_row]) for _row in table.index}
_shares, _copies = ["yes"] * 3, ["no"] * 3
assert _found == {
    "x[1]": _shares,
    "x.t()": _shares,
    "x.squeeze()": _shares,
    "x.split(2)[0]": _shares,
    "x.view(24)": ["yes", "raises", "yes"],
    "x.reshape(24)": ["yes", "no", "yes"],
    "x.ravel()": ["yes", "no", "no"],
    "x.float()": _shares,
    "x[[0, 2]]": _copies,
    "x.clone()": _copies,
}
_strides = {"by rows": (6, 1), "by columns": (1, 4), "with gaps": (12, 2)}
for _layout, _x in make_layouts().items():
    assert torch.equal(_x, torch.arange(24.0).reshape(4, 6))
    assert _x.stride() == _strides[_layout]
    assert _x.is_contiguous() == (_layout == "by rows")
# sphinx_gallery_end_ignore

# %%
# *Yes*: the write was seen in ``x``, so they share memory. *No*: the result is a copy.

tabulate_writes()

# %%
# A longer table, with over a hundred calls, is on the page of :doc:`shape operations </reference/shapes>`. For arrays and
# lists, see :ref:`the page on NumPy <sphx_glr_gallery_tensors_numpy_and_torch.py>`.

# %%
# Why some answers depend on strides
# ----------------------------------
# - ``x.view(24)`` needs one stride for all 24 elements. With gaps, it is 2. By columns, there is none, so ``view`` raises an
#   error, and ``reshape`` and ``flatten`` copy.
# - ``contiguous`` and ``ravel`` promise that the elements lie one after the other, so they copy the ``x`` with gaps, too.
#
# One number, expanded to a million, shows how much that can cost:

big = torch.zeros(1).expand(1000, 1000)
for flat in (big.reshape(-1), big.ravel()):
    print(flat.shape, flat.untyped_storage().nbytes(), "bytes")

# sphinx_gallery_start_ignore
assert big.reshape(-1).untyped_storage().nbytes() == 4
assert big.ravel().untyped_storage().nbytes() == 4_000_000
assert big.flatten().untyped_storage().nbytes() == 4
assert make_layouts()["with gaps"].view(24).stride() == (2,)
# sphinx_gallery_end_ignore

# %%
# clone keeps the order of the strides, contiguous sorts by rows
# --------------------------------------------------------------
# Both copy a transpose, but the copies lie differently in memory:

x = torch.arange(6).reshape(2, 3)
tensors = {
    "x": x,
    "x.t()": x.t(),
    "x.t().clone()": x.t().clone(),
    "x.t().contiguous()": x.t().contiguous(),
}
for name, y in tensors.items():
    memory = y.as_strided((6,), (1,)).tolist()
    print(f"{name:<18} strides {y.stride()}  memory {memory}")


# sphinx_gallery_start_ignore
def _same_storage(a, b):
    return a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()


_x = torch.arange(24.0).reshape(4, 6)
assert not _same_storage(_x, _x.flip(0)) and _same_storage(_x, _x[::2])
assert not _same_storage(_x, _x[[0, 2]]) and not _same_storage(_x, _x[[0, 2, 3]])
assert [_y.stride() for _y in tensors.values()] == [(3, 1), (1, 3), (1, 3), (2, 1)]
assert [_same_storage(_y, x) for _y in tensors.values()] == [True, True, False, False]
assert [_y.is_contiguous() for _y in tensors.values()] == [True, False, False, True]
_memory = [_y.as_strided((6,), (1,)).tolist() for _y in tensors.values()]
assert _memory == [[0, 1, 2, 3, 4, 5]] * 3 + [[0, 3, 1, 4, 2, 5]]
assert torch.zeros(1, 6).expand(4, 6).clone().stride() == (6, 1)
assert make_layouts()["with gaps"].clone().stride() == (6, 1)
_t = _x.t()
assert _t.to(memory_format=torch.contiguous_format) is _t
assert _t.clone(memory_format=torch.contiguous_format).stride() == (4, 1)
# sphinx_gallery_end_ignore

# %%
# ``clone`` copies the memory of a transpose as it is. ``contiguous`` sorts it: 0, 3 is the first row of ``x.t()``.
#
# ``x.t().to(memory_format=torch.contiguous_format)`` is a trap (`pytorch#62027
# <https://github.com/pytorch/pytorch/issues/62027>`__): it returns the transpose as it was. Call ``contiguous()``.
#
# The gradient passes through both
# --------------------------------
# Autograd records views and copies alike:

x = torch.ones(2, 3, requires_grad=True)
view = x.t()
copy = view.clone()
total = copy.sum()
total.backward()

# graph: total -- One view and one copy: both are recorded, and the gradient of x has passed through both

print(x.grad)

# sphinx_gallery_start_ignore
assert torch.equal(x.grad, torch.ones(2, 3))
assert view.grad_fn.name() == "TBackward0" and copy.grad_fn.name() == "CloneBackward0"
_d = x.detach()
assert _same_storage(_d, x) and not _d.requires_grad
# sphinx_gallery_end_ignore

# %%
# ``detach()`` shares memory too, but leaves the graph. For a copy outside the graph write
# :ref:`x.detach().clone() <sphx_glr_gallery_tensors_detach_clone_data.py>`.

# %%
# What people get wrong
# ---------------------
# **Writing through reshape or flatten.** This function should clear the first six elements, but for a transposed tensor it
# silently clears a copy:


def clear_six(matrix):
    matrix.reshape(-1)[:6] = 0


a, b = torch.ones(4, 6), torch.ones(6, 4).t()
clear_six(a)
clear_six(b)
print("zeros in a:", int((a == 0).sum()), "  zeros in b:", int((b == 0).sum()))

# sphinx_gallery_start_ignore
assert (a == 0).sum() == 6 and (b == 0).sum() == 0
# sphinx_gallery_end_ignore

# %%
# Where you mean to write, use ``view(-1)`` instead. It shares memory, or it :ref:`raises an error
# <sphx_glr_gallery_errors_view_not_compatible.py>`.
#
# **Writing through two pairs of brackets.** ``x[mask]`` is a copy, so a second pair writes into the copy. Put both indices into
# one pair:

x = torch.ones(3, 2)
mask = torch.tensor([True, False, True])
x[mask][:, 1] = 0  # lost
print(x.tolist())
x[mask, 1] = 0
print(x.tolist())

# sphinx_gallery_start_ignore
_x = torch.ones(3, 2)
_x[mask][:, 1] = 0
_x[[0, 2]][:, 1] = 0
assert (_x == 1).all() and x.tolist() == [[1, 0], [1, 1], [1, 0]]
# sphinx_gallery_end_ignore

# %%
# **Taking a conversion for a copy.** ``x.float()``, ``x.to("cpu")`` and ``x.cpu()`` return ``x`` itself if there is nothing to
# convert. So the line ``x /= 255`` changes the tensor of the caller if that is ``float32`` already:


def scaled(x):
    x = x.float()
    x /= 255
    return x


floats, integers = torch.full((2,), 255.0), torch.full((2,), 255)
scaled(floats)
scaled(integers)
print(floats, integers)

# sphinx_gallery_start_ignore
assert floats.tolist() == [1, 1] and integers.tolist() == [255, 255]
_x = torch.ones(2, 3)
assert _x.to("cpu") is _x.cpu() is _x.float() is _x.to(torch.float32) is _x
assert _x.to(torch.float32, copy=True) is not _x
for _y in make_layouts().values():
    assert _y.float() is _y.cpu() is _y.to("cpu") is _y
assert torch.dropout(_x, 0.5, False) is _x and torch.nn.Identity()(_x) is _x
assert torch.nn.Dropout().eval()(_x) is _x and _x.contiguous() is _x
# sphinx_gallery_end_ignore

# %%
# Write ``x = x.float() / 255``, or ask for a copy: ``x.to(torch.float32, copy=True)``. ``nn.Dropout`` in evaluation mode and
# ``nn.Identity`` also return their input itself.
#
# **Comparing data_ptr().** It is the address of the first element, so a slice that starts elsewhere differs. Comparing storages
# is better, but two halves of ``x`` have one storage, although a write into one half leaves the other alone.
# ``np.shares_memory`` looks at the elements (of detached tensors on the CPU):


def same_storage(a, b):
    return a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()


x = torch.zeros(6)
top, bottom = x[:3], x[3:]
print("x and bottom have the same data_ptr:", x.data_ptr() == bottom.data_ptr())
print("top and bottom have the same storage:", same_storage(top, bottom))
print("top and bottom share elements:", np.shares_memory(top, bottom))

# sphinx_gallery_start_ignore
assert x.data_ptr() != bottom.data_ptr() and same_storage(x, bottom)
assert same_storage(top, bottom) and not np.shares_memory(top, bottom)
assert np.shares_memory(x, bottom) and np.shares_memory(x, top)
_even, _odd = x[::2], x[1::2]
assert not np.shares_memory(_even, _odd) and np.may_share_memory(_even, _odd)
# sphinx_gallery_end_ignore

# %%
# Exercise
# --------
# ``x`` is stored by rows, with shape ``(4, 6)``. Which of these share memory with it: ``x[:2].reshape(12)``, ``x[:,
# :3].reshape(12)``, ``x[:, ::2].reshape(12)``, ``x[:, ::2].ravel()``, ``x.t().reshape(24)``, ``x.t().t().reshape(24)``?
#
# .. solution::
#
# A flat result needs one step from each element to the next. The first two rows lie one after the other: step 1. Every second
# column has step 2, also from the end of one row to the next, so ``reshape`` shares. ``ravel`` copies it, since it is not
# contiguous. The first three columns have a gap after each row. A transpose mixes steps of 6 with jumps back, and a second
# transpose undoes the first.

x = torch.arange(24.0).reshape(4, 6)
results = [
    x[:2].reshape(12),
    x[:, :3].reshape(12),
    x[:, ::2].reshape(12),
    x[:, ::2].ravel(),
    x.t().reshape(24),
    x.t().t().reshape(24),
]
answers = [same_storage(x, y) for y in results]
print(answers)
assert answers == [True, False, True, False, False, True]

# predict: sum(answers) -- How many of the six share memory with ``x``?

# %%
# See also
# --------
# - :doc:`Shape operations </reference/shapes>`: more calls, with their strides and nodes.
# - :ref:`sphx_glr_gallery_graphs_leaves_and_roots.py`: why a view or a copy of a leaf is not a leaf.
# - In PyTorch's reference: `Tensor views <https://docs.pytorch.org/docs/stable/tensor_view.html>`__, the list of operations
#   that return views, and `torch.Tensor.reshape <https://docs.pytorch.org/docs/stable/generated/torch.Tensor.reshape.html>`__.
