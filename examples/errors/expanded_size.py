r"""
The expanded size of the tensor (4) must match the existing size (3)
====================================================================

.. index::
   ! single: expand does not repeat a dimension that is larger than 1
   ! single: a sequence is longer than the 512 positions of the model
   ! single: assigning a row of another length into a tensor

A tensor was to be stretched to a larger shape, and one of its dimensions is neither 1 nor of the size wanted. It is
not only ``expand`` that asks for this: an assignment such as ``table[0] = row`` does, and so does the bias of a
linear layer.
"""

# %%
# The shortest code that raises it
# --------------------------------

import matplotlib.pyplot as plt
import torch

x = torch.ones(2, 3)
try:
    x.expand(2, 4)
except RuntimeError as error:
    message = str(error)
    print("RuntimeError:", message)
    assert message.startswith("The expanded size of the tensor (4) must match")

# %%
# The message has your numbers in place of these. *Target sizes* is the shape that was asked for, and *Tensor sizes*
# the shape that was there. Earlier versions left these two out.

# %%
# Why
# ---
# Shapes are aligned at their last dimension. Then each size must be the one wanted, or 1, or not there at all. Only a
# size of 1 can be stretched, because then there is no question which element goes where.


def draw(ax, shape, target):
    try:
        torch.ones(shape).expand(target)
        verdict, color = "fits", "#047857"
    except RuntimeError:
        verdict, color = "does not fit", "#c2410c"
    for y, (name, sizes) in enumerate({"tensor": shape, "target": target}.items()):
        for place, size in enumerate(reversed(sizes)):
            box = ax.text(-place, y, size, ha="center", backgroundcolor="#e2e8f0")
            box.set_fontsize(12)
        ax.text(-2.4, y, name, ha="left", fontsize=9, color="#64748b")
    ax.set_title(verdict, color=color)
    ax.set(xlim=(-2.5, 0.5), ylim=(-0.4, 1.5))
    ax.axis("off")


# %%
# In each column the two numbers must agree, or the lower one must be 1 or missing.

# figure: Four panels, each with the sizes of a tensor below the sizes of a target, aligned on the right. 2, 3 does
#   not fit 2, 4. 2, 1 fits 2, 4. A single 2 does not fit 2, 4, because it stands below the 4. A single 4 fits 2, 4.
fig, axes = plt.subplots(1, 4, figsize=(7, 1.5))
for ax, shape in zip(axes, [(2, 3), (2, 1), (2,), (4,)], strict=True):
    draw(ax, shape, (2, 4))

# sphinx_gallery_start_ignore
for _shape, _fits in (((2, 3), False), ((2, 1), True), ((2,), False), ((4,), True)):
    try:
        torch.ones(_shape).expand(2, 4)
    except RuntimeError as _error:
        assert not _fits and "The expanded size of the tensor (4)" in str(_error)
    else:
        assert _fits
try:
    torch.nn.functional.linear(torch.ones(2, 5), torch.ones(4, 5), torch.ones(3))
except RuntimeError as _error:
    assert "tensor (4) must match the existing size (3)" in str(_error)
else:
    raise AssertionError("a bias of the wrong length is accepted")
# sphinx_gallery_end_ignore

# %%
# The fix
# -------
# **One number for each row**, such as a norm, needs a dimension of size 1 at its end: ``keepdim=True`` or
# ``unsqueeze(1)``.

rows = torch.arange(1.0, 9.0).reshape(2, 4)
norm = rows.norm(dim=1)
try:
    norm.expand_as(rows)
except RuntimeError as error:
    print("RuntimeError:", str(error).split("  ")[0])
    assert "(4) must match the existing size (2)" in str(error)

scaled = rows / norm.unsqueeze(1).expand_as(rows)
print("norms afterwards:", scaled.norm(dim=1).numpy().round(4))
assert torch.allclose(scaled, rows / rows.norm(dim=1, keepdim=True))

# sphinx_gallery_start_ignore
assert torch.allclose(scaled.norm(dim=1), torch.ones(2))
# sphinx_gallery_end_ignore

# %%
# **To have the elements several times**, use ``repeat``. ``expand`` cannot make 6 out of 3.

print(torch.tensor([[1, 2, 3]]).repeat(1, 2).tolist())
assert torch.tensor([[1, 2, 3]]).repeat(1, 2).tolist() == [[1, 2, 3, 1, 2, 3]]

# %%
# **For rows of different lengths**, write into the part that exists, and remember the lengths.

words = [torch.tensor([2.0, 4.0]), torch.tensor([1.0, 2.0, 3.0, 6.0])]
batch = torch.zeros(2, 4)
try:
    batch[0] = words[0]
except RuntimeError as error:
    print("RuntimeError:", str(error).split("  ")[0])
    assert "(4) must match the existing size (2)" in str(error)

for i, word in enumerate(words):
    batch[i, : len(word)] = word
mask = torch.arange(4) < torch.tensor([len(word) for word in words]).unsqueeze(1)
means = (batch * mask).sum(1) / mask.sum(1)
print("means:", means.tolist())
assert means.tolist() == [3, 3]

# %%
# **For a sequence longer than a table of positions**, the second number is what the model can take. Cut the sequence
# to it, or split it into pieces.

positions = torch.arange(512).unsqueeze(0)
tokens = torch.zeros(1, 514)
try:
    positions[:, : tokens.shape[1]].expand(1, 514)
except RuntimeError as error:
    print("RuntimeError:", str(error).split("  ")[0])
    assert "(514) must match the existing size (512)" in str(error)

pieces = tokens.split(positions.shape[1], dim=1)
print("pieces:", [piece.shape[1] for piece in pieces])
assert sum(piece.shape[1] for piece in pieces) == 514

# %%
# What not to do
# --------------
# **Repeat until the number of elements is right, then reshape.** The shape is the one wanted, and the numbers stand
# in the wrong places: each row is divided by both norms in turn.

wrong = rows / norm.repeat(4).reshape(2, 4)
print("norms afterwards:", wrong.norm(dim=1).numpy().round(4))
assert wrong.shape == rows.shape

# sphinx_gallery_start_ignore
assert not torch.allclose(wrong.norm(dim=1), torch.ones(2), atol=0.1)
# sphinx_gallery_end_ignore

# %%
# **Pad with zeros and go on.** The zeros then count as data. The first of the words above has mean 3.

padded = torch.stack([torch.nn.functional.pad(w, (0, 4 - len(w))) for w in words])
print("means:", padded.mean(1).tolist())
assert padded.mean(1).tolist() == [1.5, 3]

# %%
# **Leave it where the sizes agree by chance.** With as many rows as columns, nothing is raised, and the norms go to
# the columns.

square = torch.tensor([[3.0, 4.0], [6.0, 8.0]])
for keepdim in (False, True):
    result = square / square.norm(dim=1, keepdim=keepdim)
    print(f"keepdim {keepdim!s:<5} norms {result.norm(dim=1).numpy().round(4)}")
    assert torch.allclose(result.norm(dim=1), torch.ones(2)) == keepdim

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_errors_shared_memory_location.py`: why not to write into the result of ``expand``
# - :ref:`sphx_glr_gallery_errors_sizes_do_not_match.py`: the same rule, for two tensors that meet
# - `Broadcasting <https://docs.pytorch.org/docs/stable/notes/broadcasting.html>`__ and
#   `Tensor.expand <https://docs.pytorch.org/docs/stable/generated/torch.Tensor.expand.html>`__ in PyTorch's reference
