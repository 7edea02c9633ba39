r"""
stack expects each tensor to be equal size, but got [3] at entry 0 and [5] at entry 1
=====================================================================================

.. index::
   ! single: default_collate fails on samples of different lengths
   ! single: a batch of sentences of different lengths
   ! single: images of different sizes in one batch

.. in-short::

   The samples of a batch have different shapes, and a batch is one tensor. Pad them in a ``collate_fn``, and keep the lengths.

   .. code-block:: diff

      - loader = DataLoader(sentences, batch_size=2)
      + loader = DataLoader(sentences, batch_size=2, collate_fn=pad)

   **Not this:** ``batch_size=1``, or padding whose zeros take part in the loss.
"""

# %%
# The code that raises it
# -----------------------

# sphinx_gallery_start_ignore
import matplotlib.pyplot as plt
import torch
from torch import nn
from torch.utils.data import DataLoader

try:
    # sphinx_gallery_end_ignore
    sentences = [torch.tensor([4, 2, 7]), torch.tensor([5, 9, 3, 1, 8])]
    loader = DataLoader(sentences, batch_size=2)
    batch = next(iter(loader))
# sphinx_gallery_start_ignore
except RuntimeError as error:
    message = str(error)
    print("RuntimeError:", message)
assert (
    message
    == "stack expects each tensor to be equal size, but got [3] at entry 0 and [5] at entry 1"
)
# sphinx_gallery_end_ignore

# %%
# *Entry* counts the samples of this batch, from 0. To know which samples these are, set ``shuffle=False`` and
# ``num_workers=0``. With workers the same message stands at the end of *Caught RuntimeError in DataLoader worker process 0*.
#
# Why
# ---
# Without a ``collate_fn`` the loader calls ``default_collate``, which calls ``torch.stack``. That makes one tensor of tensors
# that all have the same shape. ``torch.cat`` lets one dimension differ, and says it in other words:

# sphinx_gallery_start_ignore
raised = []
try:
    # sphinx_gallery_end_ignore
    torch.cat([torch.ones(2, 3), torch.ones(2, 4)])
# sphinx_gallery_start_ignore
except RuntimeError as error:
    raised.append(str(error))
    print("RuntimeError:", error)
assert len(raised) == 1 and raised[0].startswith(
    "Sizes of tensors must match except in dimension 0. Expected size 3"
)
assert torch.cat([torch.ones(2, 3), torch.ones(5, 3)]).shape == (7, 3)
# sphinx_gallery_end_ignore

# %%
# The fix
# -------
# Pad each batch to its own longest sample, and keep the lengths.


def pad(samples):
    lengths = torch.tensor([len(sample) for sample in samples])
    return nn.utils.rnn.pad_sequence(samples, batch_first=True), lengths


loader = DataLoader(sentences, batch_size=2, collate_fn=pad)
batch, lengths = next(iter(loader))
print(batch, lengths, sep="\n")

# sphinx_gallery_start_ignore
assert batch.tolist() == [[4, 2, 7, 0, 0], [5, 9, 3, 1, 8]] and lengths.tolist() == [
    3,
    5,
]
# sphinx_gallery_end_ignore

# %%
# The lengths tell the words from the padding:

mask = torch.arange(batch.shape[1]) < lengths[:, None]
# figure: A grid of two rows and five columns. In the first row three cells are words and two are padding, in the second all
#   five are words.
fig, ax = plt.subplots(figsize=(5, 1.9), layout="constrained")
for row, length in enumerate(lengths):
    ax.barh([row] * length, 0.9, left=range(length), color="#2563eb")
    ax.barh([row] * (5 - length), 0.9, left=range(length, 5), color="#94a3b8")
ax.set(xticks=[], yticks=[0, 1], yticklabels=["first", "second"])
ax.set_title("Blue: words. Gray: padding.")
ax.invert_yaxis()

# %%
# Do not let the padding into a mean. Here each word has the loss 1, and the padding has 0. The mean over all places is too
# small. The mean over the real words is right:

losses = torch.ones(batch.shape) * mask
print(f"all places {losses.mean():.1f}, real words {losses[mask].mean():.1f}")

# sphinx_gallery_start_ignore
assert mask.tolist() == [[True] * 3 + [False] * 2, [True] * 5]
assert abs(losses.mean() - 0.8) < 1e-6 and losses[mask].mean() == 1
# sphinx_gallery_end_ignore

# %%
# - **A loss by classes**: pad the labels with −100, which ``cross_entropy`` leaves out.
# - **Attention**: pass the padding as ``src_key_padding_mask=~mask``.
# - **Images**: make one size of them in the dataset, by resizing or cropping.
# - **Samples that are dictionaries or None**: ``default_collate`` names the type that it does not know. Filter such samples in
#   the dataset.
# - **Every sample should be of one size?** Then one is not. Look for it: ``{sample.shape for sample in dataset}``.
#
# What not to do
# --------------
# **A batch of one sample.** It never fails, and is slow; batch norm in training cannot work with it at all for some shapes: see
# :ref:`sphx_glr_gallery_errors_one_value_per_channel.py`.
#
# **Cut all samples to the shortest.** What is cut off is lost, each time other words, as the batches are shuffled.
#
# See also
# --------
# - :ref:`sphx_glr_gallery_training_data_loading.py`: workers, shuffling, and what a ``collate_fn`` may do.
# - :ref:`sphx_glr_gallery_errors_expanded_size.py`, a row of another length is assigned.
# - In PyTorch's reference: `pad_sequence
#   <https://docs.pytorch.org/docs/stable/generated/torch.nn.utils.rnn.pad_sequence.html>`__.
