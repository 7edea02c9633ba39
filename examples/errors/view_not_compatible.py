r"""
view size is not compatible with input tensor's size and stride
===============================================================

.. index::
   ! single: view fails after transpose, permute or a slice
   ! single: correct[:k].view(-1) fails in a top-k accuracy

``view`` gives the same memory another shape and never copies. After a transpose, a permutation and some slices, the
elements no longer lie in memory in the order in which the new shape would read them.
"""

# %%
# The shortest code that raises it
# --------------------------------

from itertools import pairwise

import matplotlib.pyplot as plt
import torch

x = torch.arange(6).reshape(2, 3)
try:
    x.t().view(6)
except RuntimeError as error:
    message = str(error)
    print("RuntimeError:", message)
    assert message.startswith("view size is not compatible with input tensor's size")

# %%
# Earlier versions began with *invalid argument 2:* and ended with *Call .contiguous() before .view()*.

# %%
# Why
# ---
# A tensor is read by its strides: how far to step in memory for one step along each dimension. A flat tensor has one
# stride, so it needs the same step from each element to the next.


def draw(ax, name, tensor):
    order = tensor.flatten().tolist()  # a value of x is its place in memory
    ax.bar(range(6), 1, width=0.92, color="#e2e8f0")
    for place in range(6):
        ax.text(place, 0.5, place, ha="center", va="center")
    for start, end in pairwise(order):
        step, y = end - start, int(end > start)
        color = "#2563eb" if step > 0 else "#c2410c"
        arrow = {"arrowstyle": "->", "color": color, "connectionstyle": "arc3,rad=-0.4"}
        ax.annotate("", (end, y), (start, y), arrowprops=arrow)
        place = ((start + end) / 2, y + 0.64 * step)
        text = ax.text(*place, f"{step:+d}", color=color, backgroundcolor="white")
        text.set(ha="center", va="center", fontsize=9)
    ax.set_title(f"{name}, strides {tensor.stride()}: read {order}")
    ax.set(xlim=(-0.6, 5.6), ylim=(-1.6, 3.1))
    ax.axis("off")


# %%
# The first row can be read flat. In the second, the steps differ.

# figure: Two rows of six memory cells, 0 to 5, with arrows in the order of reading. For x, every arrow goes one cell
#   to the right. For x.t(), the order is 0, 3, 1, 4, 2, 5: the arrows go 3 cells to the right and 2 back in turn.
fig, axes = plt.subplots(2, 1, figsize=(7, 4))
draw(axes[0], "x", x)
draw(axes[1], "x.t()", x.t())
fig.tight_layout()

# sphinx_gallery_start_ignore
assert x.flatten().tolist() == [0, 1, 2, 3, 4, 5]
assert x.t().flatten().tolist() == [0, 3, 1, 4, 2, 5]
# sphinx_gallery_end_ignore

# %%
# The rule: ``view`` can merge two neighbouring dimensions if the outer stride is the inner stride times the inner
# size. It is often said that the tensor must be contiguous. That is more than is needed, as the second line shows.

wide = torch.arange(12).reshape(2, 6)
tensors = {"x.t()": x.t(), "wide[:, ::2]": wide[:, ::2], "wide[:, :3]": wide[:, :3]}
for name, tensor in tensors.items():
    (outer, inner), size = tensor.stride(), tensor.shape[1]
    needed = inner * size
    try:
        tensor.view(6)
        result = "view works"
    except RuntimeError:
        result = "view raises"
    print(f"{name:<13} outer {outer}, inner {inner} * {size} = {needed}: {result}")
    assert (result == "view works") == (outer == needed)

# sphinx_gallery_start_ignore
assert not wide[:, ::2].is_contiguous()
# sphinx_gallery_end_ignore

# %%
# The fix
# -------
# ``reshape`` returns a view where that is possible and a copy where it is not. ``contiguous().view()`` has the same
# values, and copies whenever the tensor is not contiguous. Both keep the order in which the tensor is read.

flat = x.t().reshape(6)
print(flat.tolist(), x.t().contiguous().view(6).tolist())
assert flat.tolist() == x.t().contiguous().view(6).tolist() == [0, 3, 1, 4, 2, 5]

# %%
# ``contiguous()`` returns a tensor. Called on a line of its own it changes nothing.

columns = x.t()
columns.contiguous()
print("contiguous:", columns.is_contiguous())
columns = columns.contiguous()
print("contiguous:", columns.is_contiguous())

# sphinx_gallery_start_ignore
assert columns.is_contiguous() and not x.t().is_contiguous()
# sphinx_gallery_end_ignore

# %%
# Many meet the message in a top-k accuracy: ``correct`` comes from a transpose, so flatten it with ``reshape``.

torch.manual_seed(0)
scores, target = torch.randn(8, 5), torch.randint(5, (8,))
correct = scores.topk(3).indices.t() == target
print("among the first two:", correct[:2].reshape(-1).float().sum().item())

# sphinx_gallery_start_ignore
_rank = (scores > scores.gather(1, target[:, None])).sum(1)
assert correct[:2].sum() == (_rank < 2).sum()
try:
    correct[:2].view(-1)
except RuntimeError as _error:
    assert str(_error) == message
else:
    raise AssertionError("this view works")
# sphinx_gallery_end_ignore

# %%
# What not to do
# --------------
# **Leave out the transpose, so that** ``view`` **works.** In attention, the heads of each token are joined: from
# ``(heads, tokens, size)`` to ``(tokens, heads * size)``. The numbers tell where they belong: ``21`` is token 2 of
# head 1.

values = torch.tensor([[[10, 10], [20, 20], [30, 30]], [[11, 11], [21, 21], [31, 31]]])
values = values.float().requires_grad_()
right = values.transpose(0, 1).reshape(3, 4)
wrong = values.view(3, 4)
for name, joined in (("right", right), ("wrong", wrong)):
    print(name, joined.shape, joined.int().tolist())
assert right.shape == wrong.shape and not torch.equal(right, wrong)

# sphinx_gallery_start_ignore
assert right.int().tolist() == [[10, 10, 11, 11], [20, 20, 21, 21], [30, 30, 31, 31]]
# sphinx_gallery_end_ignore

# %%
# The shapes agree, so nothing is raised, but each row mixes tokens. The gradient shows it: the first row of the
# result should depend on token 1 only.

for name, joined in (("right", right), ("wrong", wrong)):
    (gradient,) = torch.autograd.grad(joined[0].sum(), values)
    tokens = (gradient.sum(dim=(0, 2)).nonzero().flatten() + 1).tolist()
    print(f"{name}: the first row depends on the tokens {tokens}")
    assert tokens == ([1] if name == "right" else [1, 2])

# %%
# ``reshape`` in the wrong place does the same. Move dimensions with ``transpose`` or ``permute`` first, then merge
# neighbours, and test with numbers that tell where they came from.

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_tensors_copy_table.py`: which operations share memory, and writes that get lost in a copy
# - :ref:`sphx_glr_gallery_debugging_silent_mistakes.py`: other wrong numbers without an error
# - `Tensor.view <https://docs.pytorch.org/docs/stable/generated/torch.Tensor.view.html>`__ in PyTorch's reference
