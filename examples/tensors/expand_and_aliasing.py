r"""
expand or repeat, and in-place writes
=====================================

.. in-short::

   Let ``x`` be one row, with the shape ``(1, 3)``. ``x.expand(4, 3)`` repeats it without a copy: all four rows are the same
   three memory cells. ``x.repeat(4, 1)`` copies. Use ``expand`` to read. Call ``.clone()`` before you write: some writes into
   an expanded tensor raise, but others change every row. ``a -= a[:, :1]`` can be silently wrong, because it reads cells that
   it has overwritten. Write ``a -= a[:, :1].clone()``.
"""

# %%
# The problem: one write changes every row
# ----------------------------------------
# Four sequences begin with the same state of three numbers. Then you reset the state of one of them:

import torch

start = torch.tensor([[1.0, 2.0, 3.0]])
states = start.expand(4, 3)
states[1] = 0
print(states)
print(start)

# %%
# All four rows changed, and ``start`` as well: they are the same memory cells. Such sharing is called *aliasing*. **If you
# write into the result, make it with** ``start.expand(4, 3).clone()`` **or** ``start.repeat(4, 1)``.
#
# .. how-measured:: This code draws two tensors with the number of each element's memory cell.

import matplotlib.pyplot as plt

COLORS = ["#2563eb", "#c2410c", "#047857"]


def draw_cell(ax, left, top, number, color):
    style = {"fill": False, "edgecolor": color, "linewidth": 1.3}
    ax.add_patch(plt.Rectangle((left, top), 1, 0.7, **style))
    place = (left + 0.5, top + 0.35)
    ax.text(*place, number, ha="center", va="center", color=color)


def draw_cells(tensors):
    _, ax = plt.subplots(figsize=(7, 2.8), layout="constrained")
    left = 0
    for name, tensor in tensors.items():
        rows, columns = tensor.shape
        used = set()
        for i in range(rows):
            for j in range(columns):
                cell = i * tensor.stride(0) + j * tensor.stride(1)
                used.add((cell, COLORS[j]))
                draw_cell(ax, left + j, 4.3 - 0.7 * i, cell, COLORS[j])
        ax.text(left + columns / 2, 5.3, name, ha="center", va="bottom")
        first = left + columns / 2 - len(used) / 2
        for cell, color in sorted(used):
            draw_cell(ax, first + cell, 0.3, cell, color)
        ax.text(first + len(used) / 2, 1.3, "memory", ha="center")
        left += 9
    ax.set(xlim=(-1, 17.5), ylim=(0.2, 5.9))
    ax.set_title("The same twelve elements, in 3 cells and in 12")
    ax.axis("off")


# %%
# The numbers are the cells of memory:

# figure: Left, start.expand(4, 3): a grid of four rows and three columns, in which each row has the numbers 0, 1, 2, and below
#   it a memory of three cells. Right, start.repeat(4, 1): the same grid with the numbers 0 to 11, and below it a memory of
#   twelve cells.
repeated = start.repeat(4, 1)
draw_cells({"start.expand(4, 3)": states, "start.repeat(4, 1)": repeated})

# sphinx_gallery_start_ignore
assert states.tolist() == [[0] * 3] * 4 and start.tolist() == [[0] * 3]
assert states.stride() == (0, 1) and start.repeat(4, 1).stride() == (3, 1)
_start = torch.tensor([[1.0, 2.0, 3.0]])
for _states in (_start.expand(4, 3).clone(), _start.repeat(4, 1)):
    _states[1] = 0
    assert _states.tolist() == [[1, 2, 3], [0, 0, 0], [1, 2, 3], [1, 2, 3]]
assert _start.tolist() == [[1, 2, 3]]
# sphinx_gallery_end_ignore

# %%
# expand or repeat
# ----------------
# Each dimension along which ``expand`` repeats gets :ref:`the stride <sphx_glr_gallery_tensors_strides.py>` 0: the next index
# reads the same cell. The arguments of ``expand`` are sizes (``-1`` keeps one), and those of ``repeat`` are how many times.
#
# .. how-measured:: This code counts the elements of each tensor and the cells of its storage.

import pandas as pd


def count_cells(tensors):
    rows = {
        name: {
            "shape": tuple(tensor.shape),
            "strides": tensor.stride(),
            "elements": tensor.numel(),
            "cells in memory": tensor.untyped_storage().nbytes() // tensor.itemsize,
        }
        for name, tensor in tensors.items()
    }
    return pd.DataFrame(rows).T.rename_axis(columns="call")


# %%
# The copies are those with 12 cells:

x = torch.tensor([[1.0, 2.0, 3.0]])
calls = {
    "x": x,
    "x.expand(4, 3)": x.expand(4, 3),
    "x.expand(4, -1)": x.expand(4, -1),
    "x.expand(2, 4, -1)": x.expand(2, 4, -1),
    "x.repeat(4, 1)": x.repeat(4, 1),
    "x.expand(4, 3).clone()": x.expand(4, 3).clone(),
}

# sphinx_gallery_start_ignore
_table = count_cells(calls)
assert _table["cells in memory"].tolist() == [3, 3, 3, 3, 12, 12]
assert _table["strides"].tolist() == [
    (3, 1),
    (0, 1),
    (0, 1),
    (0, 0, 1),
    (3, 1),
    (3, 1),
]
assert x.expand_as(torch.zeros(4, 3)).stride() == (0, 1)
assert x.broadcast_to(4, 3).stride() == (0, 1)
assert x.tile(4, 1).stride() == (3, 1) and x.tile(4, 1).equal(x.repeat(4, 1))
# sphinx_gallery_end_ignore
count_cells(calls)

# %%
# ``expand_as``, ``broadcast_to`` and the broadcasting of ``a - b`` work like ``expand``. ``tile`` copies, like ``repeat``.

# %%
# The gradient of an expanded tensor is a sum
# -------------------------------------------
# A layer multiplies each of four examples by the same learned ``scale``. Every use is a path to the loss, and :ref:`paths add
# up <sphx_glr_gallery_graphs_first_graph.py>`. So the backward of ``expand`` sums over the repeated elements:

batch = torch.arange(12.0).reshape(4, 3)
scale = torch.ones(1, 3, requires_grad=True)
wide = scale.expand(4, 3)
loss = (wide * batch).sum()
loss.backward()

# graph: loss -- The gradient of wide has twelve numbers; expand sums them to the three of scale

print("scale.grad:         ", scale.grad.tolist())
print("sum over the batch: ", batch.sum(dim=0).tolist())

# sphinx_gallery_start_ignore
assert torch.equal(scale.grad, batch.sum(dim=0, keepdim=True))
assert wide.grad_fn.name() == "ExpandBackward0"
_product = scale * batch
(_gradient,) = torch.autograd.grad(_product.sum(), scale)
assert torch.equal(_gradient, scale.grad)
assert _product.grad_fn.next_functions[0][0].variable is scale
# sphinx_gallery_end_ignore

# %%
# Broadcasting, ``scale * batch``, gives the same gradient.

# %%
# What PyTorch checks
# -------------------
# You want each row relative to its first number. But ``a -= a[:, :1]`` reads the first column again and again, while it is
# being overwritten:

a = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
right = a - a[:, :1]
a -= a[:, :1]

print("in place:", a.tolist())
print("right:   ", right.tolist())

# sphinx_gallery_start_ignore
assert a.tolist() == [[0, 2, 3], [0, 5, 6]] and right.tolist() == [[0, 1, 2]] * 2
# sphinx_gallery_end_ignore

# %%
# It is wrong without a warning (`pytorch#135487 <https://github.com/pytorch/pytorch/issues/135487>`__).
#
# .. how-measured:: This code repeats the subtraction for the first row in Python, one element at a time, and draws each state.


def subtract_step_by_step(row):
    memory = list(row)
    yield "before", -1, memory.copy()
    for column in range(len(memory)):
        text = f"{memory[column]:g} - {memory[0]:g}"
        memory[column] -= memory[0]
        yield text, column, memory.copy()


def draw_subtraction(row):
    _, ax = plt.subplots(figsize=(7, 2.4), layout="constrained")
    for y, (text, written, values) in enumerate(subtract_step_by_step(row)):
        ax.text(-0.3, y, text, ha="right", va="center")
        for column, value in enumerate(values):
            color = "#c2410c" if column == written else "#64748b"
            style = {"fill": False, "edgecolor": color, "linewidth": 1.3}
            ax.add_patch(plt.Rectangle((column, y - 0.4), 0.95, 0.8, **style))
            mark = ", written" if column == written else ""
            place = (column + 0.475, y)
            ax.text(*place, f"{value:g}{mark}", ha="center", va="center", color=color)
    ax.set(xlim=(-1.2, 3.1), ylim=(3.6, -0.6))
    ax.set_title("The subtraction reads what it has just written")
    ax.axis("off")


# %%
# The first subtraction makes the first element 0. From then on, 0 is subtracted:

# figure: The first row of a in memory, before and after each of three steps. Before: 1, 2, 3. Step 1 computes 1 - 1
#   and writes 0 into the first cell. Step 2 computes 2 - 0 and writes 2. Step 3 computes 3 - 0 and writes 3.
draw_subtraction([1.0, 2.0, 3.0])

# sphinx_gallery_start_ignore
_states = list(subtract_step_by_step([1.0, 2.0, 3.0]))
assert _states[-1][2] == a[0].tolist()
assert [_text for _text, *_ in _states] == ["before", "1 - 1", "2 - 0", "3 - 0"]
# sphinx_gallery_end_ignore

# %%
# **If you write to a tensor and read a part of it in the same operation, clone the part.** To find every overlap would cost too
# much time, so PyTorch `checks only simple cases <https://github.com/pytorch/pytorch/issues/115521>`__.
#
# .. how-measured:: Each subtraction runs in place on a 3 x 3 tensor, and is compared with the one that makes a new tensor.

OPERANDS = {
    "a[0, 0]": lambda a: a[0, 0],
    "a[:1]": lambda a: a[:1],
    "a.t()": lambda a: a.t(),
    "a[:, :1]": lambda a: a[:, :1],
    "a[0].expand(3, 3)": lambda a: a[0].expand(3, 3),
    "a[:, -1:]": lambda a: a[:, -1:],
    "a[:, :1].clone()": lambda a: a[:, :1].clone(),
}


def subtract(operand):
    a = torch.arange(1.0, 10.0).reshape(3, 3)
    right = a - operand(a)
    try:
        a -= operand(a)
    except RuntimeError as error:
        assert "some elements of the input tensor and the written-to" in str(error)
        return {"outcome": "raises"}
    return {"outcome": "right" if torch.equal(a, right) else "silently wrong"}


def tabulate_subtractions():
    rows = {name: subtract(part) for name, part in OPERANDS.items()}
    return pd.DataFrame(rows).T.rename_axis(columns="a -= ...")


# %%
# Seven operands for ``a -= ...``:

# sphinx_gallery_start_ignore
from itertools import product

outcomes = tabulate_subtractions()
_expected = ["raises"] * 3 + ["silently wrong"] * 2 + ["right"] * 2
assert outcomes["outcome"].tolist() == _expected
_a = torch.arange(1.0, 17.0).reshape(4, 4)[:, :3]
_right = _a - _a[:1]
_a -= _a[:1]
assert not torch.equal(_a, _right)
for _shape in ((2, 3), (5, 8), (64, 1000)):
    _start = torch.rand(_shape)
    _a, _right = _start.clone(), _start.diff(dim=1)
    _a[:, 1:] -= _a[:, :-1]
    assert not torch.allclose(_a[:, 1:], _right)
    _a = _start.clone()
    _a[:, 1:] -= _a[:, :-1].clone()
    assert torch.equal(_a[:, 1:], _right)
    _a = _start.clone()
    _a[:, 1:] = _a[:, :-1]
    assert not torch.equal(_a[:, 1:], _start[:, :-1])
    _a = _start.clone()
    _a[:, 1:] = _a[:, :-1].clone()
    assert torch.equal(_a[:, 1:], _start[:, :-1])
    for _mean in (torch.mean, torch.amax):  # new tensors
        _a = _start.clone()
        _a -= _mean(_a, 1, keepdim=True)
        assert torch.equal(_a, _start - _mean(_start, 1, keepdim=True))


def _no_gaps(tensor):
    cells = {tensor.storage_offset()}
    for size, stride in zip(tensor.shape, tensor.stride(), strict=True):
        cells = {cell + i * stride for cell in cells for i in range(size)}
    return len(cells) == tensor.numel() == max(cells) - min(cells) + 1, cells


_outcomes = set()
for _rows, _columns, _s, _t, _u in product((1, 2, 3), (1, 2, 3), *[(0, 1, 2, 3)] * 3):
    _a = torch.ones(60).as_strided((_rows, _columns), (3, 1), 5)
    for _b in (
        _a.as_strided((_rows, 1), (_s, _t), 4 + _u),
        _a[:1],
        _a[:, :1],
        _a[0, 0],
    ):
        (_dense, _cells), (_plain, _read) = _no_gaps(_a), _no_gaps(_b)
        _same = _a.shape == _b.shape and _a.stride() == _b.stride() and _cells == _read
        _refused = _dense and _plain and not _same and not _cells.isdisjoint(_read)
        try:
            _a -= _b
        except RuntimeError:
            assert _refused
        else:
            assert not _refused
        _outcomes.add(_refused)
assert _outcomes == {True, False}
# sphinx_gallery_end_ignore
tabulate_subtractions()

# %%
# The check only compares tensors without gaps in memory. The column ``a[:, :1]`` has gaps, and the expanded row reads each cell
# three times. ``a[:, -1:]`` is right by luck, because the last column is overwritten last.
#
# ``a[:, 1:] -= a[:, :-1]`` reads and writes overlapping memory too, as does the shift ``a[:, 1:] = a[:, :-1]``, and both are
# silently wrong: clone ``a[:, :-1]``. But ``a.mean(1, keepdim=True)`` is a new tensor, which you can subtract in place.
#
# In a wide matrix, ``a -= a[:, :1]`` can come out right (`pytorch#76891
# <https://github.com/pytorch/pytorch/issues/76891>`__), so a test can pass.

# %%
# What people get wrong
# ---------------------
# **Subtracting or dividing by a column in place**, as above. Clone the column, or write ``a = a - a[:, :1]`` if you need no
# write into the old ``a``.
#
# **Writing into an expanded tensor.** Some writes raise:

wide = torch.tensor([[1.0, 2.0, 3.0]]).expand(4, 3)
try:
    wide += 1
except RuntimeError as error:
    message = str(error)
    print(f"RuntimeError: {message}")

# sphinx_gallery_start_ignore
assert "more than one element of the written-to tensor" in message
# sphinx_gallery_end_ignore

# %%
# Others pass, which is worse.
#
# .. how-measured:: Each write runs on a copy, which counts the elements that it should change, and on the expanded tensor.

import operator
import warnings

WRITES = {
    "e += 1": lambda e: operator.iadd(e, 1),
    "e[:] = 9": lambda e: operator.setitem(e, slice(None), 9),
    "e[:, 0] = 9": lambda e: operator.setitem(e, (slice(None), 0), 9),
    "e.fill_(9)": lambda e: e.fill_(9),
    "e[0] = 9": lambda e: operator.setitem(e, 0, 9),
    "e[0, 0] = 9": lambda e: operator.setitem(e, (0, 0), 9),
    "e.tril_()": lambda e: e.tril_(),
    "e.masked_fill_(e > 2, 9)": lambda e: e.masked_fill_(e > 2, 9),
    "e[[0]] = 9": lambda e: operator.setitem(e, [0], 9),
}


def changed(write, e):
    before = e.clone()
    write(e)
    return (e != before).sum().item()


def attempt(write):
    source = torch.tensor([[1.0, 2.0, 3.0]])
    x = source.clone()
    row = {"meant to change": changed(write, x.repeat(4, 1))}
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        try:
            row["changed"] = changed(write, source.expand(4, 3))
            row["outcome"] = "passes, with a warning" if seen else "passes"
        except RuntimeError as error:
            row |= {"changed": 0, "outcome": "raises"}
            messages.add(str(error))
    messages.update(str(warning.message) for warning in seen)
    assert torch.equal(source, x) == (row["outcome"] == "raises")
    return row


def tabulate_writes():
    rows = {name: attempt(write) for name, write in WRITES.items()}
    return pd.DataFrame(rows).T.rename_axis(columns="write")


messages = set()

# %%
# Nine writes into ``e = x.expand(4, 3)``. Look for those that change more elements than they were meant to:

# sphinx_gallery_start_ignore
table = tabulate_writes()
assert sum("is deprecated. Please clone() the tensor" in _t for _t in messages) == 2
assert len(messages) == 3 and message in messages
TORCH = tuple(int(part) for part in torch.__version__.split(".")[:2])
_outcomes = ["raises"] * 3 + ["passes"] * 4 + ["passes, with a warning"] * 2
if TORCH >= (2, 15):  # e[:] = 9 is e.fill_(9), and e[:, 0] = 9 fills the column
    _outcomes[1:3] = ["passes"] * 2
assert table["outcome"].tolist() == _outcomes
_more = table.index[table["changed"] > table["meant to change"]].tolist()
assert _more == ["e[0] = 9", "e[0, 0] = 9", "e.tril_()", "e[[0]] = 9"]
assert table.loc["e[0, 0] = 9", "changed"] == 4
assert table.loc["e[0] = 9", "changed"] == 12
# sphinx_gallery_end_ignore
tabulate_writes()

# %%
# Those that raise write to several elements in one cell. A single row has each cell once, so PyTorch lets the write pass, and
# the other rows change too. The warnings say *Use of index_put_ on expanded tensors is deprecated* (or *masked_fill_*). In all
# writes of the table that pass, ``x`` changes too.
#
# .. torch-changed:: 2.15
#    :probe: refuses: torch.ones(1).expand(2).__setitem__(..., 9.0)
#
#    A number written to a row or a slice is written with ``fill_`` (`pytorch#189303
#    <https://github.com/pytorch/pytorch/pull/189303>`__). So ``e[:] = 9`` and ``e[:, 0] = 9`` pass on 2.15, and ``x`` changes.
#
# %%
# **Changing sliding windows in place.** Windows of ``unfold`` can overlap, which PyTorch overlooks. So it adds 1 to a cell once
# for each window that has the cell:

x = torch.zeros(4)
windows = x.unfold(0, 2, 1)  # x[0:2], x[1:3], x[2:4]
windows += 1
print(x)

# sphinx_gallery_start_ignore
assert windows.stride() == (1, 1) and x.tolist() == [1, 2, 2, 1]
# sphinx_gallery_end_ignore

# %%
# **Expanding a size that is not 1.** Only a size of 1 can grow. For six rows use ``x.repeat(2, 1)``:

x = torch.zeros(3, 1)
try:
    x.expand(6, 1)
except RuntimeError as error:
    message = str(error)
    print(f"RuntimeError: {message}")

# sphinx_gallery_start_ignore
assert "(6) must match the existing size (3) at non-singleton" in message
assert x.repeat(2, 1).shape == (6, 1)
# sphinx_gallery_end_ignore

# %%
# Exercise
# --------
# You divide each row of ``a`` by its first element. Which of these are right: ``a /= a[:, :1]``, ``a /= a[:, [0]]``,
# ``a = a / a[:, :1]``? No first element is 1.
#
# .. solution::
#
# The first one reads from the memory that it overwrites: after the first step the divisor is 1, and the other columns
# stay as they were. The list in ``a[:, [0]]`` makes a copy, so the second one is right, as is the third.

start = torch.tensor([[2.0, 4.0, 6.0], [3.0, 9.0, 12.0]])

a = start.clone()
a /= a[:, :1]
print(a.tolist())

b = start.clone()
b /= b[:, [0]]
print(b.tolist())

c = start / start[:, :1]
print(c.tolist())

# predict: a.flatten() -- With the rows 2, 4, 6 and 3, 9, 12: which six numbers are in
#   ``a`` after ``a /= a[:, :1]``?

# sphinx_gallery_start_ignore
assert torch.equal(a[:, 1:], start[:, 1:]) and (a[:, 0] == 1).all()
assert b.tolist() == c.tolist() == [[1, 2, 3], [1, 3, 4]]
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_tensors_strides.py`: what a stride is.
# - :ref:`The page on both errors <sphx_glr_gallery_errors_shared_memory_location.py>`.
# - :ref:`sphx_glr_gallery_debugging_silent_mistakes.py`: wrong numbers and no error, aliasing among them.
# - :ref:`sphx_glr_gallery_differentiation_gradient_layouts.py`: what happens to a *parameter* made with ``expand``.
# - In PyTorch's reference: `torch.Tensor.expand <https://docs.pytorch.org/docs/stable/generated/torch.Tensor.expand.html>`__
#   and `torch.Tensor.repeat <https://docs.pytorch.org/docs/stable/generated/torch.Tensor.repeat.html>`__.
