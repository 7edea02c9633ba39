r"""
Strides: how a tensor lies in memory, and when view works
=========================================================

A tensor is a block of memory and a rule for reading it: where to start, and how far to step for each dimension. Most
operations that change a shape change that rule and nothing else. This page draws the rule, derives from it when
``view`` is possible and when ``reshape`` copies, and tests the result against PyTorch in 1,000 random cases.
"""

# %%
# Storage, offset, stride
# -----------------------
# The block of memory is the *storage*. The *offset* is the place of the first element, and there is one *stride* for
# each dimension: how many places to step when that index grows by one.
#
# .. math::
#
#    \text{place} = \text{offset} + \sum_d \text{index}_d \cdot \text{stride}_d
#
# In ``x`` every value is the number of its own place, so that the values show what is read.

import random
import textwrap
from itertools import accumulate, pairwise, product
from operator import mul

import matplotlib.pyplot as plt
import pandas as pd
import torch

x = torch.arange(12).reshape(3, 4)
y = x[1:, 1::2]


def place(tensor, index):
    steps = [i * stride for i, stride in zip(index, tensor.stride(), strict=True)]
    return tensor.storage_offset() + sum(steps)


for name, t in (("x", x), ("y", y)):
    print(name, "strides", t.stride(), "offset", t.storage_offset(), t.tolist())

print("y[1, 0] lies at", place(y, (1, 0)))
assert all(place(y, index) == y[index] for index in product(range(2), range(2)))

# sphinx_gallery_start_ignore
assert x.stride() == (4, 1) and y.stride() == (4, 2)
assert y.storage_offset() == 5 and y[1, 0] == 9
# sphinx_gallery_end_ignore

# %%
# ``x`` is stored row by row: one row further is four places further. ``y`` starts in the second row, at place 5, and
# takes every second column, so its second stride is 2. No number was moved.

# %%
# Memory against index
# --------------------
# Four operations on ``x``. In each panel the elements of the result stand below one another in the order in which you
# would read them, and a mark shows the place in memory where each of them lies.


def draw(ax, call):
    tensor = eval(call)
    indices = list(product(*map(range, tensor.shape)))
    for row, index in enumerate(indices):
        marker, color = [("s", "#2563eb"), ("o", "#c2410c")][index[0] % 2]
        ax.plot(place(tensor, index), row, marker, color=color, markersize=6)
    ax.set_yticks(range(len(indices)), [f"{list(index)}" for index in indices])
    ax.tick_params(labelsize=8)
    ax.set(xticks=range(12), xlim=(-0.5, 11.5), ylim=(len(indices) - 0.4, -0.6))
    ax.grid(color="#e2e8f0", linewidth=0.8)
    ax.set_axisbelow(True)
    ax.set_title(f"{call}\nstrides {tensor.stride()}", fontsize=10)


# %%
# Within a row of the result the mark moves by the second stride, from row to row by the first.

# figure: Four panels, place in memory from left to right, elements from top to bottom, with another mark for every
#   other row of the result. x.view(2, 6): one straight line through all twelve places. x.t(): the marks jump 4 places
#   to the right twice, go back, and start again one place further. x[1:, 1::2]: four marks, at the places 5, 7, 9 and
#   11. x[:, :1].expand(3, 4): three columns of four marks, at the places 0, 4 and 8.
fig, axes = plt.subplots(2, 2, figsize=(7, 6.4))
calls = ["x.view(2, 6)", "x.t()", "x[1:, 1::2]", "x[:, :1].expand(3, 4)"]
for ax, call in zip(axes.flat, calls, strict=True):
    draw(ax, call)
fig.supxlabel("place in memory")
fig.supylabel("index of the element")
fig.suptitle("Four ways to read the same twelve places")
fig.set_layout_engine("constrained")

# sphinx_gallery_start_ignore
_places = [eval(_call).flatten().tolist() for _call in calls]
assert _places[0] == list(range(12)) and _places[1][:4] == [0, 4, 8, 1]
assert _places[2] == [5, 7, 9, 11] and _places[3] == [0] * 4 + [4] * 4 + [8] * 4
# sphinx_gallery_end_ignore

# %%
# A transpose exchanges the strides, and ``permute`` does the same. A slice changes the offset, and its step
# multiplies a stride. A stride of 0 stays where it is: ``expand`` shows one element several times (:ref:`the next
# page <sphx_glr_gallery_tensors_expand_and_aliasing.py>`).


def same_storage(a, b):
    return a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()


rows = {}
for call in ["x", *calls, "x.permute(1, 0)"]:
    t = eval(call)
    row = {"shape": t.shape, "strides": t.stride(), "offset": t.storage_offset()}
    row |= {"storage of x": same_storage(t, x), "contiguous": t.is_contiguous()}
    rows[call] = row

# sphinx_gallery_start_ignore
assert all(_row["storage of x"] for _row in rows.values())
assert rows["x.t()"] == rows["x.permute(1, 0)"] and rows["x.t()"]["strides"] == (1, 4)
assert [_row["contiguous"] for _row in rows.values()] == [True] * 2 + [False] * 4
assert rows["x[:, :1].expand(3, 4)"]["strides"] == (4, 0)
# sphinx_gallery_end_ignore
pd.DataFrame(rows).T.rename_axis(index=None, columns="operation")

# %%
# All of them read the storage of ``x``. *Contiguous* means: reading in the order of the indices is walking through
# memory one place at a time. Of these six, two do.

# %%
# The rule for view
# -----------------
# ``view`` never copies, so strides alone have to produce the new shape. To *split* a dimension is always possible. To
# *merge* two neighbours is possible where one step of the outer one is a full walk of the inner one:
#
# .. math::
#
#    \text{stride}_i = \text{stride}_{i+1} \cdot \text{size}_{i+1}
#
# Call the boundary between two dimensions a *seam* where this does not hold. No stride can step across a seam, so the
# new shape must have a boundary in the same place. Places are counted from the end: by the number of elements that
# lie behind the boundary. That is the whole rule. In ``can_view``, ``accumulate`` multiplies the new sizes from the
# end, which gives the boundaries of the new shape.


def seams(tensor):
    dims = zip(tensor.shape, tensor.stride(), strict=True)
    dims = [(size, stride) for size, stride in dims if size > 1]  # 1: never stepped
    found, behind = set(), 1
    for (_, outer), (size, inner) in reversed(list(pairwise(dims))):
        behind *= size
        if outer != inner * size:
            found.add(behind)
    return found


def can_view(tensor, shape):
    return seams(tensor) <= set(accumulate(reversed(shape), mul))


for call in calls:
    tensor = eval(call)
    print(f"{call:<22} strides {tensor.stride()}   seams {seams(tensor) or 'none'}")

# sphinx_gallery_start_ignore
assert [seams(eval(_call)) for _call in calls] == [set(), {3}, set(), {4}]
# sphinx_gallery_end_ignore

# %%
# ``x.t()`` has a seam with 3 elements behind it, the length of its rows. So it cannot be viewed as ``(12,)`` or as
# ``(2, 6)``, but it can as ``(2, 2, 3)``. A contiguous tensor has no seam and takes every shape, and so does the
# slice: the step from one of its rows to the next, 4, is twice the step within a row.
#
# The test: random tensors, sliced, permuted and expanded, each with a random new shape of the same number of
# elements.


def random_case():
    dims = random.randint(1, 4)
    tensor = torch.zeros(random.choices([1, 2, 3, 6], k=dims))
    steps = random.choices([1, 1, 2], k=dims)
    tensor = tensor[tuple(slice(None, None, step) for step in steps)]
    if random.random() < 0.4:
        tensor = tensor.permute(random.sample(range(dims), dims))
    tensor = tensor.expand(random.choice([1, 1, 3]), *tensor.shape)
    shape, left = [], tensor.numel()
    while left > 1:
        shape.append(random.choice([n for n in range(1, left + 1) if left % n == 0]))
        left //= shape[-1]
    return tensor, shape


# %%
# In each case PyTorch is asked twice: does ``view`` work, and does ``reshape`` return the same storage?


def works(tensor, shape):
    try:
        tensor.view(shape)
    except RuntimeError:
        return False
    return True


random.seed(0)
results = {"contiguous": [], "not contiguous": []}
for _ in range(1000):
    tensor, shape = random_case()
    answer = works(tensor, shape)
    assert answer == can_view(tensor, shape)
    assert answer == same_storage(tensor, tensor.reshape(shape))
    kind = "contiguous" if tensor.is_contiguous() else "not contiguous"
    results[kind].append(answer)

for kind, answers in results.items():
    print(f"{kind:<14} view works {sum(answers):>3} times of {len(answers)}")

# sphinx_gallery_start_ignore
assert sum(map(len, results.values())) == 1000 and all(results["contiguous"])
_rest = results["not contiguous"]
assert 0.25 < sum(_rest) / len(_rest) < 0.75
# sphinx_gallery_end_ignore

# %%
# The rule was right 1,000 times. Of the tensors that are *not* contiguous, a good part can be viewed all the same:
# "``view`` needs a contiguous tensor" is too strict. It was true until `pytorch#4062
# <https://github.com/pytorch/pytorch/pull/4062>`__, and older notes still say so.
#
# The other assertion answers a question that is asked as often: ``reshape`` copies exactly where ``view`` would
# raise.

# %%
# When reshape copies
# -------------------
# Five tensors of three dimensions, and three new shapes for each: the last columns flatten everything, the last two
# dimensions, or the first two.

z = torch.arange(48).reshape(2, 3, 8)
rows = {}
for call in ["z", "z[:, :, ::2]", "z[:, :, :4]", "z[:, :2]", "z.transpose(1, 2)"]:
    t = eval(call)
    row = {"strides": t.stride(), "contiguous": t.is_contiguous()}
    row["seams"] = sorted(seams(t)) or "none"
    for name, shape in {
        "all": [-1],
        "last two": [len(t), -1],
        "first two": [-1, t.shape[-1]],
    }.items():
        row[name] = "shares" if same_storage(t, t.reshape(shape)) else "copies"
    rows[call] = row

# sphinx_gallery_start_ignore
assert z[:, :, ::2].view(2, 12).stride() == (24, 2) and works(z[:, :, ::2], [24])
_found = {
    _call: [list(_row.values())[-3:].count("shares"), _row["seams"]]
    for _call, _row in rows.items()
}
assert _found["z"] == _found["z[:, :, ::2]"] == [3, "none"]
assert _found["z[:, :, :4]"] == [1, [4]] and _found["z[:, :2]"] == [1, [16]]
assert _found["z.transpose(1, 2)"][0] == 0 and len(seams(z.transpose(1, 2))) == 2
# sphinx_gallery_end_ignore
pd.DataFrame(rows).T.rename_axis(index=None, columns="tensor")

# %%
# Every second column, ``z[:, :, ::2]``, is not contiguous and has no seam: the step is 2 all the way. So ``z[:, :,
# ::2].view(2, 12)`` works, and so does a flat view. ``z[:, :, :4]`` leaves a gap after each row, ``z[:, :2]`` a gap
# after each matrix, and one merge is left to each of them.
#
# So there are three ways to know. Before: look at the strides. In the code: write ``view`` where you rely on sharing,
# because it raises instead of copying. Afterwards: compare the storages, as ``same_storage`` does.

# %%
# What people get wrong
# ---------------------
# **contiguous() before every view.** It makes ``view`` work, and copies where no copy was needed. An expanded tensor
# is copied to its full size:

wide = torch.zeros(1).expand(1000, 1000)
for call in ("wide.view(-1)", "wide.reshape(-1)", "wide.contiguous().view(-1)"):
    flat = eval(call)
    print(f"{call:<27} storage of {flat.untyped_storage().nbytes():>7} bytes")

# sphinx_gallery_start_ignore
assert wide.reshape(-1).untyped_storage().nbytes() == 4
assert flat.untyped_storage().nbytes() == 4_000_000
# sphinx_gallery_end_ignore

# %%
# **Comparing** ``data_ptr()`` **of the tensors.** It is the address of the first element, not of the storage. A slice
# that starts elsewhere seems to share nothing:

part = x[1:]
print("same first element:", part.data_ptr() == x.data_ptr())
print("same storage:      ", same_storage(part, x))
assert same_storage(part, x) and part.data_ptr() == x.data_ptr() + 4 * x.itemsize

# %%
# **as_strided on a slice or a transpose.** It takes size and strides as they are given, and counts them in the
# *storage*. What the tensor itself would show does not matter:

columns = x[:, ::2]
print("the tensor:     ", columns.flatten().tolist())
print("with as_strided:", columns.as_strided((6,), (1,)).tolist())
try:
    columns.as_strided((6,), (3,))
except RuntimeError as error:
    print(textwrap.fill(f"RuntimeError: {error}", 88))
    assert "out of bounds for storage" in str(error)

# sphinx_gallery_start_ignore
assert columns.flatten().tolist() == [0, 2, 4, 6, 8, 10]
assert columns.as_strided((6,), (1,)).tolist() == [0, 1, 2, 3, 4, 5]
# sphinx_gallery_end_ignore

# %%
# There is an error only where the strides lead out of the storage. Use ``as_strided`` where no other call can say it.

# %%
# Exercise
# --------
# ``y = torch.zeros(2, 3, 4, 5).permute(2, 3, 0, 1)`` is far from contiguous. Its shape is ``(4, 5, 2, 3)``. Write
# down its strides and its seams. Which of these work: ``y.view(20, 6)``, ``y.view(4, 10, 3)``, ``y.view(2, 10, 6)``
# and ``y.view(120)``?
#
# .. solution::
#
# The strides of the original are ``(60, 20, 5, 1)``, so those of ``y`` are ``(5, 1, 60, 20)``. The first two merge,
# since 5 = 1 · 5, and the last two, since 60 = 20 · 3. Between them is a seam, with 2 · 3 = 6 elements behind it. A
# shape works if it has a boundary with 6 elements behind it.

y = torch.zeros(2, 3, 4, 5).permute(2, 3, 0, 1)
print("strides", y.stride(), "seams", seams(y))
answers = {}
for shape in [(20, 6), (4, 10, 3), (2, 10, 6), (120,)]:
    answers[shape] = works(y, shape)
    print(f"{shape!s:<11} {answers[shape]}")
assert list(answers.values()) == [True, False, True, False]

# sphinx_gallery_start_ignore
assert y.stride() == (5, 1, 60, 20) and seams(y) == {6}
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - Before: :ref:`sphx_glr_gallery_tensors_copy_table.py`, more than seventy calls with their strides before and
#   after.
# - Next: :ref:`sphx_glr_gallery_tensors_expand_and_aliasing.py`, what a stride of 0 does to a write.
# - :ref:`sphx_glr_gallery_differentiation_gradient_layouts.py`: the strides of ``.grad``.
# - In PyTorch's reference: `torch.Tensor.view
#   <https://docs.pytorch.org/docs/stable/generated/torch.Tensor.view.html>`__, which states the rule, and
#   `torch.reshape <https://docs.pytorch.org/docs/stable/generated/torch.reshape.html>`__.
