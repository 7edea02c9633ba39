r"""
Dimension out of range (expected to be in range of [-1, 0], but got 1)
======================================================================

.. index::
   ! single: squeeze() fails in the last batch, which has one sample
   ! single: too many indices for tensor of dimension 1
   ! single: index 3 is out of bounds for dimension 0 with size 3
   ! single: invalid index of a 0-dim tensor. Use tensor.item()

.. in-short::

   You ask for dimension 1, and the tensor has only dimension 0. Often ``squeeze()`` took the batch away, because this batch has
   one sample. Name the dimensions that you want to lose.

   .. code-block:: diff

      - scores = features.squeeze()
      + scores = features.squeeze((2, 3))
        classes = scores.argmax(dim=1)

   **Not this:** ``dim=0``. In all larger batches dimension 0 is the batch, and the answer is wrong without a message.
"""

# %%
# The code that raises it
# -----------------------

import torch

# sphinx_gallery_start_ignore
# isort: split
import torch.nn.functional as F

try:
    # sphinx_gallery_end_ignore
    features = torch.ones(1, 3, 1, 1)  # after the pooling: 1 image, 3 channels
    scores = features.squeeze()
    classes = scores.argmax(dim=1)
# sphinx_gallery_start_ignore
except IndexError as error:
    message = str(error)
    print("IndexError:", message)
assert (
    message == "Dimension out of range (expected to be in range of [-1, 0], but got 1)"
)


def _says(call):
    try:
        return f"no message, shape {tuple(call().shape)}"
    except (IndexError, RuntimeError) as error:
        return f"{type(error).__name__}: {error}"


for _call in (
    lambda: scores.sum(1),
    lambda: F.softmax(scores, dim=1),
    lambda: scores.size(1),
    lambda: scores.flatten(1),
    lambda: torch.nn.Flatten()(scores),
    lambda: torch.cat([scores, scores], dim=1),
    lambda: F.normalize(scores),
    lambda: F.cosine_similarity(scores, scores),
):
    assert _says(_call) == f"IndexError: {message}"
assert _says(lambda: scores.shape[1]) == "IndexError: tuple index out of range"
for _call in (torch.sum, torch.softmax, torch.argmax, torch.flatten, torch.cumsum):
    assert _says(lambda c=_call: c(torch.tensor(0.5), 1)) == f"IndexError: {message}"
assert "has no dimensions" in _says(lambda: torch.tensor(0.5).roll(1, 1))
# sphinx_gallery_end_ignore

# %%
# - ``[-1, 0]``: what you may ask for. The tensor has one dimension: number 0, which is also number −1. (For a tensor without
#   dimensions, many functions say the same.)
# - ``got 1``: what you asked for, by ``dim=1`` or ``size(1)``. Some functions ask for dimension 1 by themselves, as
#   ``nn.Flatten()`` and ``F.normalize`` do. (``scores.shape[1]`` says *tuple index out of range*.)
#
# Why
# ---
# Dimensions are counted from 0, or from the end with −1. A tensor with n dimensions has the numbers −n to n − 1:

import matplotlib.pyplot as plt

x = torch.ones(2, 3, 4)
print([x.size(dim) for dim in (0, 1, 2)], [x.size(dim) for dim in (-3, -2, -1)])

# figure: Two groups of cells. The shape (3,) has one cell, with the numbers 0 and -1. The shape (2, 3, 4) has three cells,
#   with the numbers 0, 1, 2 above and -3, -2, -1 below.
fig, ax = plt.subplots(figsize=(6, 1.6), layout="constrained")
for left, shape in ((0, (3,)), (2.5, (2, 3, 4))):
    for dim, size in enumerate(shape):
        at = left + dim
        ax.add_patch(plt.Rectangle((at, 0), 0.94, 1, color="#2563eb"))
        ax.text(at + 0.47, 0.5, size, ha="center", va="center", color="w", size=14)
        ax.text(at + 0.47, 1.12, dim, ha="center", va="bottom")
        ax.text(at + 0.47, -0.12, dim - len(shape), ha="center", va="top")
ax.set(xlim=(-0.2, 5.7), ylim=(-0.5, 1.5))
ax.set_title("The dim of shape (3,) and of shape (2, 3, 4)")
ax.set_axis_off()

# sphinx_gallery_start_ignore
for _shape in ((3,), (2, 3), (2, 3, 4)):
    _n = len(_shape)
    for _dim in range(-_n - 2, _n + 3):
        _fits = "no message" in _says(lambda s=_shape, d=_dim: torch.ones(s).sum(d))
        assert _fits == (-_n <= _dim < _n)
# sphinx_gallery_end_ignore

# %%
# ``squeeze()`` removes each dimension of size 1. With one image in the batch, the batch is one of them:

for batch in (2, 1):
    features = torch.ones(batch, 3, 1, 1)
    print(tuple(features.shape), "->", tuple(features.squeeze().shape))

# sphinx_gallery_start_ignore
assert features.squeeze().shape == (3,)
# sphinx_gallery_end_ignore

# %%
# The last batch of an epoch has one sample if one sample is left over: 65 samples in batches of 32 are 32, 32 and 1.
#
# The fix
# -------
# Say which dimensions to remove. ``flatten(1)`` and indexing, ``features[:, :, 0, 0]``, also keep the batch.

for batch in (2, 1):
    features = torch.ones(batch, 3, 1, 1)
    scores = features.squeeze((2, 3))
    classes = scores.argmax(dim=1)
    print(tuple(scores.shape), tuple(classes.shape))

# sphinx_gallery_start_ignore
assert scores.shape == (1, 3) and classes.shape == (1,)
assert [len(b) for b in torch.ones(65, 2).split(32)] == [32, 32, 1]
assert torch.equal(F.one_hot(torch.tensor([2, 0])).argmax(dim=1), torch.tensor([2, 0]))
assert torch.equal(scores, features.flatten(1))
assert torch.equal(scores, features[:, :, 0, 0])
# sphinx_gallery_end_ignore

# %%
# **One sample without a batch**, at inference: add the batch before the model, ``model(sample[None])``.
#
# **labels.argmax(dim=1)** is for one-hot labels, of shape ``(batch, classes)``. Labels of shape ``(batch,)`` already are the
# classes: leave ``argmax`` out.
#
# Other messages of the same kind
# -------------------------------
# Tensors with fewer dimensions, or fewer places, than the code expects:

row, number = torch.ones(3), torch.tensor(0.5)
for call in (
    lambda: row[:, 0],
    lambda: row[3],
    lambda: number[0],
    lambda: number.size(0),
):
    try:
        call()
    except IndexError as error:
        print(f"IndexError: {error}")

# sphinx_gallery_start_ignore
assert _says(lambda: row[:, 0]).endswith("too many indices for tensor of dimension 1")
assert _says(lambda: row[3]).endswith(
    "index 3 is out of bounds for dimension 0 with size 3"
)
assert "invalid index of a 0-dim tensor." in _says(lambda: number[0])
assert _says(lambda: number.size(0)).endswith("but tensor has no dimensions")
assert _says(lambda: row[3:]) == "no message, shape (0,)"
# sphinx_gallery_end_ignore

# %%
# - **too many indices**: ``row[:, 0]`` asks for a column, and there is one dimension. Again, look for ``squeeze()``, or for a
#   batch dimension that is missing.
# - **index 3 is out of bounds**: the dimension exists, but has no place 3. Three places have the numbers 0 to 2. Often a loop
#   runs to ``batch_size``, and the last batch is smaller: write ``range(len(batch))``. (A slice, ``row[3:]``, raises nothing
#   and is empty.)
# - **0-dim tensor**: a tensor with one number and no dimension, such as a loss. Write ``loss.item()`` for ``loss[0]``.
#
# What not to do
# --------------
# **Do not change dim until it runs.** With ``dim=0`` the batch of one sample works. For two samples the result has one number
# for each class, not one for each sample:

scores = torch.tensor([[0.1, 0.2, 0.7], [0.8, 0.1, 0.1]])
print("dim=1:", scores.argmax(dim=1), " dim=0:", scores.argmax(dim=0))

# sphinx_gallery_start_ignore
assert scores.argmax(dim=1).tolist() == [2, 0]
assert scores.argmax(dim=0).tolist() == [1, 0, 0]
assert _says(lambda: torch.tensor(0.5).sum(1)) == f"IndexError: {message}"
_classes = torch.ones(3).argmax(dim=-1)
assert _classes.shape == ()
try:
    len(_classes)
except TypeError as error:
    _raised = str(error)
assert _raised == "len() of a 0-d tensor"
# sphinx_gallery_end_ignore

# %%
# ``dim=-1`` asks for the right dimension. But without the batch its result has no dimension, and ``len(classes)`` raises.
#
# See also
# --------
# - :ref:`sphx_glr_gallery_tensors_squeeze_and_permute.py`: what ``squeeze`` removes.
# - :ref:`sphx_glr_gallery_errors_index_out_of_range.py`, the message of embeddings and losses.
# - In PyTorch's reference: `torch.squeeze <https://docs.pytorch.org/docs/stable/generated/torch.squeeze.html>`__.
