r"""
index out of range in self
==========================

.. index::
   ! single: CUDA error: device-side assert triggered
   ! single: Target 3 is out of bounds
   ! single: labels begin at 1 instead of 0
   ! single: the tokenizer has more words than the embedding

.. in-short::

   An index is too large for its table, or negative: a word for an embedding, or a label for a loss. A table of 10 rows has the
   rows 0 to 9, so 10 is too large. On a GPU the same problem is *CUDA error: device-side assert triggered*.

   .. code-block:: diff

      - embedding = nn.Embedding(num_embeddings=10, embedding_dim=4)
      + embedding = nn.Embedding(num_embeddings=11, embedding_dim=4)
        embedding(words)

   **Not this:** ``words.clamp(max=9)``. Every word that is too large becomes word 9.
"""

# %%
# The code that raises it
# -----------------------

import torch
from torch import nn

# sphinx_gallery_start_ignore
try:
    # sphinx_gallery_end_ignore
    words = torch.tensor([[1, 4, 10]])
    embedding = nn.Embedding(num_embeddings=10, embedding_dim=4)
    embedding(words)
# sphinx_gallery_start_ignore
except IndexError as error:
    message = str(error)
    print("IndexError:", message)
assert message == "index out of range in self"


def says(call):
    try:
        call()
    except (IndexError, RuntimeError) as error:
        return f"{type(error).__name__}: {error}"
    return "nothing"


assert says(lambda: embedding(torch.tensor([-1]))) == f"IndexError: {message}"
# sphinx_gallery_end_ignore

# %%
# The message has no number. Ask for it yourself:

import matplotlib.pyplot as plt

print(f"words from {words.min()} to {words.max()}, rows {embedding.num_embeddings}")

# figure: The words 1, 4 and 10 as dots beside a shaded band of the rows 0 to 9. The third dot, 10, lies outside of it.
fig, ax = plt.subplots(figsize=(7, 1.6), layout="constrained")
ax.axvspan(-0.5, embedding.num_embeddings - 0.5, color="#2563eb", alpha=0.25)
ax.plot(words[0], [0] * 3, "o", color="#c2410c", ms=9)
ax.set(xticks=range(12), yticks=[], xlabel="row of the table", xlim=(-0.6, 11.6))
ax.set_title("Blue: rows of the embedding. Dots: words.")

# sphinx_gallery_start_ignore
assert words.max() == embedding.num_embeddings == 10
# sphinx_gallery_end_ignore

# %%
# A loss names the label. ``one_hot`` says *Class values must be smaller than num_classes*, ``gather`` and square brackets say
# *index 3 is out of bounds for dimension ...*.

import torch.nn.functional as F

# sphinx_gallery_start_ignore
try:
    # sphinx_gallery_end_ignore
    logits, labels = torch.zeros(2, 3), torch.tensor([1, 3])  # labels from 1 to 3
    loss = F.cross_entropy(logits, labels)
# sphinx_gallery_start_ignore
except IndexError as error:
    message = str(error)
    print("IndexError:", message)
assert message == "Target 3 is out of bounds."
assert "Class values must be smaller than num_c" in says(lambda: F.one_hot(labels, 3))
for _call in (lambda: logits.gather(1, labels[:, None]), lambda: logits[0][labels]):
    assert "Error: index 3 is out of bounds for dimension" in says(_call)
_negative = torch.tensor([0, -100]), torch.tensor([0, -1])
assert says(lambda: F.cross_entropy(logits, _negative[0])) == "nothing"
assert "Target -1 is out of bounds" in says(lambda: F.cross_entropy(logits, labels - 2))
# a set ignore_index takes the place of -100
assert "Target -100" in says(
    lambda: F.cross_entropy(logits, _negative[0], ignore_index=-1)
)
assert F.cross_entropy(logits, _negative[1], ignore_index=-1) > 0
# sphinx_gallery_end_ignore

# %%
# On a GPU: device-side assert triggered
# --------------------------------------
# A GPU works while Python is already at a later line, so the line in the traceback may be the wrong one. After this error,
# other CUDA calls of the program fail, too. Above the traceback there are lines of the GPU, for labels
# ``nll_loss_forward_reduce_cuda_kernel_2d: ... Assertion `t >= 0 && t < n_classes` failed`` (as in `this report
# <https://github.com/layumi/Person_reID_baseline_pytorch/issues/372>`__).
#
# Start the program again with the model, the batch and the labels on the CPU. It stops at the right line, with a message like
# those above. If you need the GPU, set the environment variable ``CUDA_LAUNCH_BLOCKING=1`` before the program starts.
#
# Why
# ---
# An embedding is a table: row ``i`` belongs to word ``i``.
#
# The fix
# -------
# - **A new table**: ``num_embeddings`` is the size of the vocabulary.
# - **New tokens** in the tokenizer of a trained model: ``model.resize_token_embeddings(len(tokenizer))`` in Transformers. A new
#   ``nn.Embedding`` would lose the trained rows.
# - **Longer than the positions**: cut the sequence. The table has one row for each place in it.
# - **Labels from 1 to 3** for three classes: ``cross_entropy`` wants 0 to 2.
# - **One more class**, such as *unknown*: give the last layer an output for it.
# - **A negative mark** such as −1 for *no label*: set ``ignore_index=-1``. The default is −100.

embedding = nn.Embedding(num_embeddings=11, embedding_dim=4)
embedding(words)
print("labels from 0:", (labels - 1).tolist())
print(f"{F.cross_entropy(logits, labels - 1):.4f}")

# sphinx_gallery_start_ignore
assert embedding(words).shape == (1, 3, 4)
assert torch.isclose(F.cross_entropy(logits, labels - 1), torch.tensor(3.0).log())
# sphinx_gallery_end_ignore

# %%
# Then check the data once, before the training: ``assert 0 <= labels.min() and labels.max() < classes``. If some labels
# are −100 on purpose, check ``labels[labels != -100]``.
#
# What not to do
# --------------
# **Do not clamp the indices.** Here the words 9, 10 and 11 become one word, and the model cannot tell them apart:

print(torch.tensor([8, 9, 10, 11]).clamp(max=9).tolist())

# sphinx_gallery_start_ignore
assert torch.tensor([8, 9, 10, 11]).clamp(max=9).tolist() == [8, 9, 9, 9]
_marked = torch.tensor([0, -100, 2])  # cross_entropy takes it, the plain check does not
assert F.cross_entropy(torch.zeros(3, 3), _marked) > 0
assert not (_marked >= 0).all()
_marked = _marked[_marked != -100]
assert (_marked >= 0).all() and _marked.max() < 3
# sphinx_gallery_end_ignore

# %%
# **Do not add a class for labels from 1.** With labels from 1 to 3 and four classes, the model has an output for a
# class 0 that does not exist, and output 1 is your first class.
#
# See also
# --------
# - :ref:`sphx_glr_gallery_errors_wrong_target_dtype.py`, when the labels have the wrong type or shape.
# - :ref:`sphx_glr_gallery_cuda_devices.py`: why a GPU reports an error later.
# - In PyTorch's reference: `nn.Embedding <https://docs.pytorch.org/docs/stable/generated/torch.nn.Embedding.html>`__.
