r"""
stack expects each tensor to be equal size, but got [3] at entry 0 and [5] at entry 1
=====================================================================================

.. index::
   ! single: default_collate fails on samples of different lengths
   ! single: a batch of sentences of different lengths
   ! single: images of different sizes in one batch

.. in-short::

   The samples of a batch have different shapes, and a batch is one tensor. Pad them in a ``collate_fn``, and keep the lengths.
   If all samples should have one shape, one of them is wrong: find it.

   .. code-block:: diff

      - loader = DataLoader(sentences, batch_size=2)
      + loader = DataLoader(sentences, batch_size=2, collate_fn=pad)

   **Not this:** ``batch_size=1``, or padding whose zeros count in the loss.
"""

# %%
# The code that raises it
# -----------------------

import torch
from torch.utils.data import DataLoader

# sphinx_gallery_start_ignore
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
# ``num_workers=0``. With workers the same message is at the end of ``Caught RuntimeError in DataLoader worker process 0``.
#
# Why
# ---
# Without a ``collate_fn`` the loader calls ``default_collate``, and for tensors this calls ``torch.stack``. It makes one tensor
# of tensors that all have the same shape. ``torch.cat`` lets one dimension differ, and has a different message:

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
# other samples: Python lists, None
for _samples, _class, _words in (
    (
        [[1, 2], [1, 2, 3]],
        RuntimeError,
        "each element in list of batch should be of equal",
    ),
    ([None, None], TypeError, "found <class 'NoneType'>"),
    ([sentences[0], None], TypeError, "element 1 in argument 0, but got NoneType"),
):
    try:
        next(iter(DataLoader(_samples, batch_size=2)))
    except _class as error:
        raised.append(_words in str(error))
assert raised[1:] == [True] * 3
# sphinx_gallery_end_ignore

# %%
# The fix
# -------
# Pad each batch to its longest sample, and keep the lengths.

from torch import nn


def pad(samples):
    lengths = torch.tensor([len(sample) for sample in samples])
    return nn.utils.rnn.pad_sequence(samples, batch_first=True), lengths


loader = DataLoader(sentences, batch_size=2, collate_fn=pad)
batch, lengths = next(iter(loader))
print(batch, lengths, sep="\n")

# sphinx_gallery_start_ignore
assert batch.tolist() == [[4, 2, 7, 0, 0], [5, 9, 3, 1, 8]]
assert lengths.tolist() == [3, 5]
# sphinx_gallery_end_ignore

# %%
# If your samples are pairs, begin with ``texts, labels = zip(*samples)``, pad the texts, and return ``torch.tensor(labels)``
# too. With the lengths you know which places are words and which are padding:

import matplotlib.pyplot as plt

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
# Leave the padding out of a mean. Here each word has the loss 1, and the padding has 0. The mean over all places is too small:

losses = torch.ones(batch.shape) * mask
print(f"all places {losses.mean():.1f}, real words {losses[mask].mean():.1f}")

# sphinx_gallery_start_ignore
assert mask.tolist() == [[True] * 3 + [False] * 2, [True] * 5]
assert abs(losses.mean() - 0.8) < 1e-6 and losses[mask].mean() == 1
# True in a mask of padding leaves a place out, for both layers
torch.manual_seed(0)
_words = torch.randn(2, 5, 4)
_other = torch.where(mask[:, :, None], _words, 9.0)  # differs in the padding only
_encoder = nn.TransformerEncoderLayer(4, 2, dropout=0.0, batch_first=True)
_attention = nn.MultiheadAttention(4, 2, batch_first=True)
for _layer in (
    lambda x, padding: _encoder(x, src_key_padding_mask=padding),
    lambda x, padding: _attention(x, x, x, key_padding_mask=padding)[0],
):
    for _padding, _same in ((~mask, True), (None, False)):
        _one, _two = (_layer(x, _padding)[mask] for x in (_words, _other))
        assert torch.allclose(_one, _two, atol=1e-5) == _same
# sphinx_gallery_end_ignore

# %%
# - **cross_entropy**: pad the labels with −100, which it leaves out.
# - **Attention**: ``src_key_padding_mask=~mask`` in ``nn.TransformerEncoder``, ``key_padding_mask=~mask`` in
#   ``nn.MultiheadAttention``.
# - **Images**: give them one size in the dataset, by resizing or cropping.
# - **Samples that are Python lists** of different lengths: *each element in list of batch should be of equal size*.
# - **A sample that is None**: a ``TypeError`` that names ``NoneType``. Leave such samples out of the dataset.
# - **Every sample should have one size?** Find the one that differs: ``{sample.shape for sample in dataset}``, or
#   ``{x.shape for x, label in dataset}`` for pairs.
#
# What not to do
# --------------
# **Do not use batches of one sample.** The message is gone, but training is often slow, and batch norm can raise: see
# :ref:`sphx_glr_gallery_errors_one_value_per_channel.py`.
#
# **Do not cut all samples to the shortest of the batch.** The model does not see what is cut off.
#
# See also
# --------
# - :ref:`sphx_glr_gallery_training_data_loading.py`: workers, shuffling, and what a ``collate_fn`` may do.
# - :ref:`sphx_glr_gallery_errors_expanded_size.py`, a row of another length is assigned.
# - In PyTorch's reference: `pad_sequence
#   <https://docs.pytorch.org/docs/stable/generated/torch.nn.utils.rnn.pad_sequence.html>`__.
