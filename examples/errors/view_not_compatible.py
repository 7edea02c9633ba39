r"""
view size is not compatible with input tensor's size and stride
===============================================================

.. index::
   ! single: view fails after transpose, permute or a slice
   ! single: correct[:k].view(-1) fails in a top-k accuracy

.. in-short::

   ``view`` never copies. After ``transpose``, ``permute`` and some slices, the elements no longer lie in memory in the order in
   which the new shape reads them. ``reshape`` copies them where it has to.

   .. code-block:: diff

        x = heads.transpose(1, 2)
      - joined = x.view(2, 3, 8)
      + joined = x.reshape(2, 3, 8)

   **Not this:** leaving out the transpose, so that ``view`` works. The shape is the same, and the numbers stand in the wrong
   places.
"""

# %%
# The code that raises it
# -----------------------

import torch

torch.manual_seed(0)

# sphinx_gallery_start_ignore
from itertools import pairwise, product

from torch import nn

try:
    # sphinx_gallery_end_ignore
    heads = torch.randn(2, 4, 3, 2)  # batch, heads, tokens, size
    x = heads.transpose(1, 2)
    joined = x.view(2, 3, 8)
# sphinx_gallery_start_ignore
except RuntimeError as error:
    message = str(error)
    print("RuntimeError:", message)
assert message.startswith(
    "view size is not compatible with input tensor's size and stride (at least one dimension spans"
)
assert message.endswith("Use .reshape(...) instead.")


def _views(tensor, *shape):
    """Whether ``view`` accepts the shape. If not, it raises this message."""
    try:
        tensor.view(*shape)
    except RuntimeError as error:
        assert str(error) == message
        return False
    return True


_images = torch.randn(2, 3, 8, 8).to(memory_format=torch.channels_last)
assert not _views(nn.Conv2d(3, 4, 3)(_images), 2, -1) and nn.Conv2d(3, 4, 3)(
    _images
).flatten(1).shape == (2, 144)
assert not _views(torch.randn(3, 4).permute(1, 0), 12) and not _views(
    torch.randn(3).expand(2, 3), 6
)
assert not _views(torch.randn(4, 6)[:, :3], 12) and _views(torch.randn(4, 6)[:2], 12)
# sphinx_gallery_end_ignore

# %%
# The last sentence of the message usually helps. Older versions begin with *invalid argument 2: view size is not compatible*
# and end with *Call .contiguous() before .view()*. The output of a convolution can raise this, too, if its input is in the
# ``channels_last`` format.
#
# Why
# ---
# A tensor is read by its *strides*: how many places to go on in memory for one step along each dimension. A transpose exchanges
# strides and moves nothing. For a flat tensor, ``view`` needs the same distance from each element to the next:

import matplotlib.pyplot as plt

# sphinx_gallery_start_ignore
x = torch.arange(6).reshape(2, 3)


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


# sphinx_gallery_end_ignore
# figure: Two rows of six memory cells, 0 to 5, with arrows in the order of reading. For x, every arrow goes one cell
#   to the right. For x.t(), the order is 0, 3, 1, 4, 2, 5: the arrows go 3 cells to the right and 2 back in turn.
x = torch.arange(6).reshape(2, 3)
fig, axes = plt.subplots(2, 1, figsize=(7, 4))
draw(axes[0], "x", x)
draw(axes[1], "x.t()", x.t())
fig.tight_layout()

# sphinx_gallery_start_ignore
assert x.flatten().tolist() == [0, 1, 2, 3, 4, 5]
assert x.t().flatten().tolist() == [0, 3, 1, 4, 2, 5]
# sphinx_gallery_end_ignore

# %%
# ``view`` can merge two neighboring dimensions if the outer stride is the inner stride times the inner size. (With a dimension
# of size 1 or 0 it always can.) It is often said that the tensor must be contiguous. That is more than is needed:

wide = torch.arange(12).reshape(2, 6)
tensors = {"x.t()": x.t(), "wide[:, :3]": wide[:, :3], "wide[:, ::2]": wide[:, ::2]}
for name, tensor in tensors.items():
    (outer, inner), size = tensor.stride(), tensor.shape[1]
    try:
        works = tensor.view(6).shape == (6,)
    except RuntimeError:
        works = False
    needed = f"{inner} * {size} = {inner * size}"
    print(f"{name:<13} outer stride {outer}, needed {needed}, view works: {works}")

# sphinx_gallery_start_ignore
assert (
    works
    and not wide[:, ::2].is_contiguous()
    and not _views(x.t(), 6)
    and not _views(wide[:, :3], 6)
)
for _shape in product((0, 1, 2, 3), repeat=2):
    for _strides in product((0, 1, 2, 3, 4, 6), repeat=2):
        _any = torch.empty(40).as_strided(_shape, _strides)
        _small = 0 in _shape or 1 in _shape
        assert _views(_any, _any.numel()) == (
            _small or _strides[0] == _strides[1] * _shape[1]
        )
# sphinx_gallery_end_ignore

# %%
# The fix
# -------
# ``reshape`` returns a view where that is possible, and a copy where it is not. ``contiguous().view(...)`` has the same values.

heads = torch.randn(2, 4, 3, 2)  # batch, heads, tokens, size
x = heads.transpose(1, 2)
joined = x.reshape(2, 3, 8)
print(joined.shape, "copied:", joined.data_ptr() != heads.data_ptr())

# sphinx_gallery_start_ignore
assert torch.equal(joined, heads.transpose(1, 2).contiguous().view(2, 3, 8))
assert joined.untyped_storage().data_ptr() != heads.untyped_storage().data_ptr()
assert torch.equal(joined[0, 1, 2:4], heads[0, 1, 1])
assert (
    wide.reshape(12).data_ptr() == wide.data_ptr()
    and wide[:, ::2].reshape(6).data_ptr() == wide.data_ptr()
)
# sphinx_gallery_end_ignore

# %%
# ``contiguous()`` returns a tensor. On a line of its own it changes nothing:

columns = wide.t()
columns.contiguous()
print("contiguous:", columns.is_contiguous())
columns = columns.contiguous()
print("contiguous:", columns.is_contiguous())

# sphinx_gallery_start_ignore
assert columns.is_contiguous() and not wide.t().is_contiguous()
# sphinx_gallery_end_ignore

# %%
# Many meet the message in a top-k accuracy. There ``correct`` comes from a transpose, and ``correct[:k].view(-1)`` raises:

scores, target = torch.randn(8, 5), torch.randint(5, (8,))
correct = scores.topk(3).indices.t() == target
print("among the first two:", correct[:2].reshape(-1).float().sum().item())

# sphinx_gallery_start_ignore
assert not _views(correct[:2], -1)
_rank = (scores > scores.gather(1, target[:, None])).sum(1)
assert correct[:2].sum() == (_rank < 2).sum()
# sphinx_gallery_end_ignore

# %%
# What not to do
# --------------
# **Leave out the transpose, so that** ``view`` **works.** Below, two heads of three tokens are joined, from ``(heads, tokens,
# size)`` to ``(tokens, heads * size)``. The numbers say where they belong: ``21`` is token 2 of head 1.

values = torch.tensor([[[10, 10], [20, 20], [30, 30]], [[11, 11], [21, 21], [31, 31]]])
values = values.float().requires_grad_()
right = values.transpose(0, 1).reshape(3, 4)
wrong = values.view(3, 4)
print("right", right.shape, right.int().tolist())
print("wrong", wrong.shape, wrong.int().tolist())

# sphinx_gallery_start_ignore
assert right.shape == wrong.shape and not torch.equal(right, wrong)
assert right.int().tolist() == [[10, 10, 11, 11], [20, 20, 21, 21], [30, 30, 31, 31]]
assert wrong.int().tolist() == [[10, 10, 20, 20], [30, 30, 11, 11], [21, 21, 31, 31]]
# sphinx_gallery_end_ignore

# %%
# The shapes agree, so nothing is raised, but each row mixes tokens. The gradient shows it: the first row of the result should
# depend on token 1 only.

for name, joined in (("right", right), ("wrong", wrong)):
    (gradient,) = torch.autograd.grad(joined[0].sum(), values)
    tokens = (gradient.sum(dim=(0, 2)).nonzero().flatten() + 1).tolist()
    print(f"{name}: the first row depends on the tokens {tokens}")
    assert tokens == ([1] if name == "right" else [1, 2])

# sphinx_gallery_start_ignore
assert torch.equal(values.reshape(3, 4), wrong)
# sphinx_gallery_end_ignore

# %%
# ``reshape`` without the transpose gives the same wrong numbers. Move dimensions with ``transpose`` or ``permute`` first, then
# merge neighbors, and test with numbers that say where they came from.
#
# See also
# --------
# - :ref:`sphx_glr_gallery_tensors_copy_table.py`: which operations share memory, and writes that get lost in a copy.
# - :ref:`sphx_glr_gallery_debugging_silent_mistakes.py`: other wrong numbers without an error.
# - In PyTorch's reference: `Tensor.view <https://docs.pytorch.org/docs/stable/generated/torch.Tensor.view.html>`__.
