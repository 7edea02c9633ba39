r"""
einsum(): subscript j has size 4 for operand 1 which does not broadcast with previously seen size 3
===================================================================================================

.. index::
   ! single: einsum letters and shapes do not fit
   ! single: number of subscripts in the equation does not match the number of dimensions for operand
   ! single: einsum(): output subscript k does not appear in the equation
   ! single: einsum with the weight of a linear layer

.. in-short::

   One letter stands for two sizes: here ``j`` is 3 in the first tensor and 4 in the second. Write the letters in the order of
   the dimensions that each tensor has. The weight of a linear layer is ``(out, in)``.

   .. code-block:: diff

      - y = torch.einsum("ij,jk->ik", x, weight)
      + y = torch.einsum("ij,kj->ik", x, weight)

   **Not this:** a new letter, ``"ij,kl->ik"``. It runs, with the right shape and wrong numbers.
"""

# %%
# The code that raises it
# -----------------------

import torch
from torch import nn

# sphinx_gallery_start_ignore
try:
    # sphinx_gallery_end_ignore
    x = torch.rand(2, 3)  # 2 samples, 3 features
    weight = nn.Linear(in_features=3, out_features=4).weight
    y = torch.einsum("ij,jk->ik", x, weight)
# sphinx_gallery_start_ignore
except RuntimeError as error:
    message = str(error)
    print("RuntimeError:", message)
assert message == (
    "einsum(): subscript j has size 4 for operand 1 which does not broadcast "
    "with previously seen size 3"
)


def _says(call):
    try:
        return f"no message, shape {tuple(call().shape)}"
    except (RuntimeError, ValueError) as error:
        return str(error)


assert weight.shape == (4, 3)
_three = _says(
    lambda: torch.einsum(
        "i,ij,jk->k", torch.ones(2), torch.ones(2, 3), torch.ones(4, 5)
    )
)
if torch.backends.opt_einsum.is_available():
    _words = "Size of label 'j' for operand 2"
else:
    _words = "subscript j has size 4 for operand 2"
assert _words in _three
_first = _says(lambda: torch.einsum("ji,kj->ik", x, weight))  # x has the wrong letters
assert "subscript j has size 3 for operand 1" in _first
assert _says(lambda: torch.einsum("ij,kj->ik", x, weight)).endswith("(2, 4)")
# sphinx_gallery_end_ignore

# %%
# - ``subscript j``: the letter at fault.
# - ``operand 1``: the tensor where the letter has another size. The first tensor is operand 0, so operand 1 is the second.
# - ``size 4`` and ``previously seen size 3``: what the letter is there, and what it was in an earlier tensor. The wrong letters
#   may be those of either tensor.
#
# Why
# ---
# In ``"ij,jk->ik"`` each group of letters names the dimensions of one tensor, from left to right. The same letter must have the
# same size in all of them, or 1. Write the sizes below the letters:

import matplotlib.pyplot as plt

print("ij", tuple(x.shape))
print("jk", tuple(weight.shape))

# figure: Two groups of cells. The letters i and j above the sizes 2 and 3 of x, and j and k above the sizes 4 and 3 of weight.
#   Both cells of j are orange, with 3 and 4.
fig, ax = plt.subplots(figsize=(6, 1.7), layout="constrained")
pairs = zip("ijjk", (*x.shape, *weight.shape), (0, 1, 3, 4), strict=True)
for letter, size, place in pairs:
    color = "#c2410c" if letter == "j" else "#2563eb"
    ax.add_patch(plt.Rectangle((place, 0), 0.94, 1, color=color))
    ax.text(place + 0.47, 0.5, size, ha="center", va="center", color="w", size=14)
    ax.text(place + 0.47, 1.1, letter, ha="center", va="bottom", size=13)
for place, name in ((0.97, "x"), (3.97, "weight")):
    ax.text(place, -0.12, name, ha="center", va="top")
ax.set(xlim=(-0.5, 5.5), ylim=(-0.6, 1.6), title="Both j must have one size")
ax.set_axis_off()

# %%
# The fix
# -------
# Give the weight the letters of its own dimensions, ``kj``, for ``(out, in)``. ``einsum`` transposes by the letters:

y = torch.einsum("ij,kj->ik", x, weight)
print(tuple(y.shape), torch.allclose(y, x @ weight.T))

# sphinx_gallery_start_ignore
assert y.shape == (2, 4) and torch.allclose(y, x @ weight.T)
# sphinx_gallery_end_ignore

# %%
# **Attention.** Some libraries keep the heads before the words, some after. Say it by the letters:

queries = torch.rand(2, 8, 10, 16)  # batch, heads, words, numbers
keys = torch.rand(2, 10, 8, 16)  # batch, words, heads, numbers
scores = torch.einsum("bhqd,bkhd->bhqk", queries, keys)
print(tuple(scores.shape))

# sphinx_gallery_start_ignore
assert "subscript h has size 10 for operand 1" in _says(
    lambda: torch.einsum("bhqd,bhkd->bhqk", queries, keys)
)
assert torch.allclose(scores, queries @ keys.permute(0, 2, 3, 1), atol=1e-5)
# sphinx_gallery_end_ignore

# %%
# **The letters are right.** Then a layer was made for a different number of features. Change the layer.
#
# Other messages of einsum
# ------------------------

batch = torch.rand(5, 2, 3)
for call in (
    lambda: torch.einsum("ij,kj->ik", batch, weight),
    lambda: torch.einsum("ij,lj->ik", x, weight),
    lambda: torch.einsum("ij,kj->ik", x),
    lambda: torch.einsum("ii->i", x),
):
    try:
        call()
    except RuntimeError as error:
        print(error)

# sphinx_gallery_start_ignore
assert _says(lambda: torch.einsum("ij,kj->ik", batch, weight)) == (
    "einsum(): the number of subscripts in the equation (2) does not match the number "
    "of dimensions (3) for operand 0 and no ellipsis was given"
)
assert _says(lambda: torch.einsum("ij,lj->ik", x, weight)) == (
    "einsum(): output subscript k does not appear in the equation for any input operand"
)
assert _says(lambda: torch.einsum("ij,kj->ik", x)).endswith(
    "fewer operands were provided than specified in the equation"
)
assert "subscript i is repeated for operand 0" in _says(
    lambda: torch.einsum("ii->i", x)
)
assert _says(lambda: torch.einsum("...j,kj->...k", batch, weight)).endswith("(5, 2, 4)")
assert _says(lambda: torch.einsum("...j,kj->...k", x, weight)).endswith("(2, 4)")
assert _says(lambda: torch.einsum("...j,kj->...k", x[0], weight)).endswith("(4,)")
_dots = _says(lambda: torch.einsum("...ij,...kj->...ik", batch, torch.ones(4, 4, 3)))
assert (
    "dimension 0 covered by ellipsis in operand 1has size 4 which does not broadcast "
    "with previously seen ellipsis with size 5"
) in _dots
# sphinx_gallery_end_ignore

# %%
# - **number of subscripts**: the tensor does not have as many dimensions as letters. ``"...j,kj->...k"`` takes any number of
#   dimensions before the last.
# - **output subscript k**: a letter after the arrow that no tensor has, often a slip of the keyboard.
# - **fewer operands**: a comma too many, or a tensor was left out.
# - **repeated**: ``ii`` is a diagonal, and wants a square.
# - **covered by ellipsis**: the dimensions that ``...`` stands for differ. PyTorch prints it without a space: *dimension 0
#   covered by ellipsis in operand 1has size 4 which does not broadcast with previously seen ellipsis with size 5*.
# - **Size of label**: the message of this page for three tensors or more, if the package opt_einsum is installed: *Size of
#   label 'j' for operand 2 (3) does not match previous terms (4)*.
#
# What not to do
# --------------
# **Do not rename the letter.** A letter that is in one tensor only, and not after the arrow, is summed in that tensor
# alone. The shape is right, the numbers are not:

wrong = torch.einsum("ij,kl->ik", x, weight)
print(tuple(wrong.shape), torch.allclose(wrong, y))
print(torch.allclose(wrong, x.sum(1, keepdim=True) * weight.sum(1)))

# sphinx_gallery_start_ignore
assert wrong.shape == y.shape and not torch.allclose(wrong, y)
assert torch.allclose(wrong, x.sum(1, keepdim=True) * weight.sum(1), atol=1e-6)
# sphinx_gallery_end_ignore

# %%
# **Do not trust the absence of the message.** With a square weight both orders of letters run. And a size of 1
# fits each size:

square = torch.rand(3, 3)
one, other = (torch.einsum(f"ij,{k}->ik", x, square) for k in ("jk", "kj"))
print(torch.allclose(one, other))
print(tuple(torch.einsum("ij,kj->ik", x, torch.rand(4, 1)).shape))

# sphinx_gallery_start_ignore
assert not torch.allclose(one, other)
assert _says(lambda: torch.einsum("ij,kj->ik", x, torch.rand(4, 1))).endswith("(2, 4)")
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_errors_shapes_cannot_be_multiplied.py`, the same for ``@`` and ``nn.Linear``.
# - :ref:`sphx_glr_gallery_errors_sizes_do_not_match.py`: what broadcasting allows.
# - In PyTorch's reference: `torch.einsum <https://docs.pytorch.org/docs/stable/generated/torch.einsum.html>`__.
