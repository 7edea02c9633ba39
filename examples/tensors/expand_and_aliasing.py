r"""
expand and aliasing: many elements in one place of memory
=========================================================

``expand`` makes a tensor larger and takes no memory: many of its elements lie in the same place. For reading this
makes no difference, for writing it does. This page shows what ``expand`` accepts, which writes are refused, which
pass and change more than you asked for, and an in-place subtraction that is wrong without any error.
"""

# %%
# What expand accepts
# -------------------
# The new sizes are compared with the old ones from the last dimension to the first. A size of 1 may grow, new
# dimensions may come in front, and a size may stay as it is. ``-1`` means: stay. ``repeat`` is here to compare with.

import textwrap
import warnings

import matplotlib.pyplot as plt
import pandas as pd
import torch

x = torch.tensor([[1.0], [2.0], [3.0]])
calls = "x; x.expand(3, 4); x.expand(-1, 4); x.expand(2, -1, 4); x.repeat(1, 4)"
rows = {}
for call in calls.split("; "):
    t = eval(call)
    places = t.untyped_storage().nbytes() // t.itemsize
    row = {"shape": t.shape, "strides": t.stride()}
    rows[call] = row | {"elements": t.numel(), "places in memory": places}

# sphinx_gallery_start_ignore
assert [_row["places in memory"] for _row in rows.values()] == [3, 3, 3, 3, 12]
assert rows["x.expand(3, 4)"] == rows["x.expand(-1, 4)"]
assert rows["x.expand(3, 4)"]["strides"] == (1, 0)
assert rows["x.expand(2, -1, 4)"]["strides"] == (0, 1, 0)
# sphinx_gallery_end_ignore
pd.DataFrame(rows).T.rename_axis(index=None, columns="call")

# %%
# ``expand`` needs no new place, however large the result. It gives each new direction the :ref:`stride
# <sphx_glr_gallery_tensors_strides.py>` 0: a step that stays where it is. ``repeat`` copies. Note its arguments: they
# are *how many times*, not sizes.
#
# A size other than 1 cannot grow, and a new dimension has no old size that ``-1`` could keep.

for sizes in [(6, 1), (-1, 3, 4)]:
    try:
        x.expand(sizes)
    except RuntimeError as error:
        print(textwrap.fill(f"expand{sizes}: {error}", 88))
        assert "The expanded size of the tensor" in str(error)

# sphinx_gallery_start_ignore
for _sizes, _part in {
    (6, 1): "must match the existing size (3)",
    (-1, 3, 4): "non-existing dimension 0",
}.items():
    try:
        x.expand(_sizes)
    except RuntimeError as _error:
        assert _part in str(_error)
# sphinx_gallery_end_ignore

# %%
# Which writes are refused
# ------------------------
# Each write below is run twice: on a copy with memory of its own, which tells how many elements it is meant to
# change, and on the expanded tensor.

WRITES = """
e += 1; e[:] = 9; e.copy_(e * 9); e[0] = 9; e.fill_(9); e.zero_(); e[:, 0] = 9;
e[0, 0] = 9; e[e > 2] = 9; e.masked_fill_(e > 2, 9); e[[0], [0]] = 9
"""


def changed(write, e):
    before = e.clone()
    exec(write, {"e": e})
    return (e != before).sum().item()


# %%
# The outcome is one of three: it passes, it passes with a warning, or it raises.


def attempt(write):
    row = {"meant to change": changed(write, x.repeat(1, 4))}
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        try:
            row["changed"] = changed(write, x.clone().expand(3, 4))
            row["outcome"] = "passes, with a warning" if seen else "passes"
            messages.update(str(warning.message) for warning in seen)
        except RuntimeError as error:
            row |= {"changed": 0, "outcome": "raises"}
            messages.add(str(error))
    return row


messages = set()
writes = [write.strip() for write in WRITES.split(";")]
table = pd.DataFrame({write: attempt(write) for write in writes}).T

table.rename_axis(index=None, columns="write")

# %%
# The check is on the piece of ``e`` that is written to. In a row, four elements lie in one place. PyTorch could not
# know which of four values should stay there, and refuses. A column has no place twice, nor has a single element.
# They pass, and change more than they were meant to: in each row the four elements are one. ``fill_`` and ``zero_``
# pass as well, because one value for all leaves nothing open.
#
# Writes through a mask or through lists of indices still pass, with a warning. These are all the messages:

for message in sorted(messages):
    print(textwrap.fill(message.split(" (Triggered")[0], 88, subsequent_indent="  "))

# sphinx_gallery_start_ignore
assert len(messages) == 3 and sum("is deprecated" in _text for _text in messages) == 2
assert any(
    "more than one element of the written-to tensor" in _text for _text in messages
)
_outcomes = ["raises"] * 4 + ["passes"] * 4 + ["passes, with a warning"] * 3
assert table["outcome"].tolist() == _outcomes
_more = table.index[table["changed"] > table["meant to change"]].tolist()
assert _more == ["e[:, 0] = 9", "e[0, 0] = 9", "e[[0], [0]] = 9"]
assert (
    table.loc["e[0, 0] = 9", "changed"] == 4
    and table.loc["e[:, 0] = 9", "changed"] == 12
)
# sphinx_gallery_end_ignore

# %%
# The memory has two names, so the change goes both ways. What you write into ``x`` shows in every tensor that was
# expanded from it, and the other way round. ``repeat``, ``clone`` and ``contiguous`` give the result a memory of its
# own.

small = x.clone()
tensors = {
    "expand": small.expand(3, 4),
    "repeat": small.repeat(1, 4),
    "clone": small.expand(3, 4).clone(),
    "contiguous": small.expand(3, 4).contiguous(),
}
small[0] = 50
for name, tensor in tensors.items():
    print(f"{name:<10} strides {tensor.stride()}   first row {tensor[0].tolist()}")

# sphinx_gallery_start_ignore
assert tensors.pop("expand")[0].tolist() == [50] * 4
assert all(
    _t[0].tolist() == [1] * 4 and _t.stride() == (4, 1) for _t in tensors.values()
)
# sphinx_gallery_end_ignore

# %%
# The gradient of an expanded tensor sums
# ---------------------------------------
# Each element of ``w`` is used four times. Every use is a path to the loss, and :ref:`paths add up
# <sphx_glr_gallery_graphs_first_graph.py>`. So the backward of ``expand`` sums over the dimensions that grew.

data = torch.arange(12.0).reshape(3, 4)
w = torch.ones(3, 1, requires_grad=True)
wide = w.expand(3, 4)
loss = (wide * data).sum()
loss.backward()

# graph: loss -- The gradient of wide has twelve numbers; expand sums them to the three of w

print("w.grad:        ", w.grad.flatten().tolist())
print("sums of a row: ", data.sum(dim=1).tolist())
assert torch.equal(w.grad, data.sum(dim=1, keepdim=True))

# %%
# Broadcasting does the same without being asked: ``w * data`` gives this gradient too. The sum is then part of the
# product's backward, and the graph has no node for the expansion.

product = w * data
(gradient,) = torch.autograd.grad(product.sum(), w)
leaf_node = product.grad_fn.next_functions[0][0]
print(product.grad_fn.name(), "comes directly after", leaf_node.name())
assert torch.equal(gradient, w.grad)

# sphinx_gallery_start_ignore
assert leaf_node.variable is w
assert wide.grad_fn.name() == "ExpandBackward0"
# sphinx_gallery_end_ignore

# %%
# What people get wrong
# ---------------------
# **Subtracting a column in place.** ``a -= a[:, :1]`` is meant to make the first column zero and to shift the others.
# No tensor here was made with ``expand``. But broadcasting reads the first column again and again, while it is being
# overwritten.

a = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
right = a - a[:, :1]
a -= a[:, :1]

print("in place:", a.tolist())
print("right:   ", right.tolist())
assert not torch.equal(a, right)

# sphinx_gallery_start_ignore
assert a.tolist() == [[0, 2, 3], [0, 5, 6]] and right.tolist() == [[0, 1, 2]] * 2
# sphinx_gallery_end_ignore

# %%
# No error and no warning (`pytorch#135487 <https://github.com/pytorch/pytorch/issues/135487>`__). Element by element:
# the first subtraction makes the first element 0, and from then on 0 is subtracted.

memory = [1.0, 2.0, 3.0]
states = [("before", -1, memory.copy())]
for column in range(3):
    text = f"{memory[column]:g} - {memory[0]:g}"
    memory[column] -= memory[0]
    states.append((text, column, memory.copy()))

# figure: The first row of a in memory, before and after each of three steps. Before: 1, 2, 3. Step 1 computes 1 - 1
#   and writes 0 into the first cell. Step 2 computes 2 - 0 and writes 2. Step 3 computes 3 - 0 and writes 3.
fig, ax = plt.subplots(figsize=(7, 2.6), layout="constrained")
for y, (text, written, values) in enumerate(states):
    ax.text(-0.2, y, text, ha="right", va="center")
    for column, value in enumerate(values):
        face = "#e2e8f0" if column == written else "white"
        box = {"facecolor": face, "edgecolor": "#1e293b", "pad": 6}
        mark = " written" if column == written else ""
        ax.text(column + 0.5, y, f"{value:g}{mark}", ha="center", va="center", bbox=box)
ax.set(xlim=(-1, 3), ylim=(3.6, -0.6))
ax.set_title("The subtraction reads what it has just written")
ax.axis("off")

assert memory == a[0].tolist()
# sphinx_gallery_start_ignore
assert [_text for _text, *_ in states] == ["before", "1 - 1", "2 - 0", "3 - 0"]
# sphinx_gallery_end_ignore

# %%
# With more columns it is right now and then (`pytorch#76891 <https://github.com/pytorch/pytorch/issues/76891>`__).
# The processor takes several elements at once, and reads them before it writes. A test with rows of another length
# can pass.

# varies: How many columns are right depends on the processor and on the build of PyTorch.
for width in (3, 16, 20, 64):
    b = torch.arange(2.0 * width).reshape(2, width) + 1
    shifted = b - b[:, :1]
    b -= b[:, :1]
    good = (b == shifted).all(dim=0).sum().item()
    print(f"{width:>2} columns, {good:>2} of them right")

# %%
# PyTorch does check whether the two operands overlap, but not if one of them has gaps in memory. Here are five
# operands for ``a -= ...``, and a cure at the end.

operands = ["a[0, 0]", "a[:1]", "a.t()", "a[:, :1]", "a[:, -1:]", "a[:, :1].clone()"]
outcomes = []
for operand in operands:
    a = torch.arange(1.0, 10.0).reshape(3, 3)
    right = a - eval(operand)
    try:
        a -= eval(operand)
        outcomes.append("right" if torch.equal(a, right) else "silently wrong")
    except RuntimeError as error:
        outcomes.append("raises")
        overlap = str(error)
    print(f"{operand:<16} {outcomes[-1]}")

print(textwrap.fill(f"RuntimeError: {overlap}", 88))

# sphinx_gallery_start_ignore
assert "some elements of the input tensor and the written-to tensor" in overlap
assert outcomes == ["raises"] * 3 + ["silently wrong"] + ["right"] * 2
# sphinx_gallery_end_ignore

# %%
# The last column is right by luck: it is overwritten last. Do not rely on it. Write ``a = a - a[:, :1]``, which makes
# a new tensor, or clone the operand.

# %%
# Exercise
# --------
# Each row of ``a`` is to be divided by its first element. Which of these are right: ``a /= a[:, :1]``,
# ``a /= a[:, [0]]``, ``a = a / a[:, :1]``? No first element is 1.
#
# .. solution::
#
# The first one reads from the memory that it overwrites: after the first step the divisor is 1, and the other columns
# stay as they were. The list in ``a[:, [0]]`` makes a copy, so the second one is right, as is the third.

start = torch.tensor([[2.0, 4.0, 6.0], [3.0, 9.0, 12.0]])
answers = []
for statement in ("a /= a[:, :1]", "a /= a[:, [0]]", "a = a / a[:, :1]"):
    names = {"a": start.clone()}
    exec(statement, names)
    answers.append(names["a"].tolist() == [[1, 2, 3], [1, 3, 4]])
    print(f"{statement:<16} {answers[-1]!s:<5} {names['a'].tolist()}")
assert answers == [False, True, True]

# sphinx_gallery_start_ignore
assert (start[:, 0] != 1).all()
_a = start.clone()
_a /= _a[:, :1]
assert torch.equal(_a[:, 1:], start[:, 1:]) and (_a[:, 0] == 1).all()
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - Before: :ref:`sphx_glr_gallery_tensors_strides.py`, memory against index, and the stride 0.
# - Next: :ref:`sphx_glr_gallery_tensors_squeeze_and_permute.py`, other operations that change a shape and no memory.
# - :ref:`sphx_glr_gallery_debugging_silent_mistakes.py`: wrong numbers and no error, aliasing among them.
# - :ref:`sphx_glr_gallery_differentiation_gradient_layouts.py`: what happens to a *parameter* made with ``expand``.
# - In PyTorch's reference: `torch.Tensor.expand
#   <https://docs.pytorch.org/docs/stable/generated/torch.Tensor.expand.html>`__ and `torch.Tensor.repeat
#   <https://docs.pytorch.org/docs/stable/generated/torch.Tensor.repeat.html>`__.
