r"""
index out of range in self
==========================

.. index::
   ! single: CUDA error: device-side assert triggered
   ! single: Assertion `t >= 0 && t < n_classes` failed, in Loss.cu
   ! single: Assertion `srcIndex < srcSelectDimSize` failed, in Indexing.cu
   ! single: Target 3 is out of bounds
   ! single: labels begin at 1 instead of 0
   ! single: the tokenizer has more words than the embedding
   ! single: Dimension out of range (expected to be in range of [-1, 0], but got 1)
   ! single: squeeze() fails in the last batch, which has one sample
   ! single: too many indices for tensor of dimension 1
   ! single: index 3 is out of bounds for dimension 0 with size 3
   ! single: Class values must be smaller than num_classes
   ! single: probability tensor contains either inf, nan or element < 0, in multinomial
   ! single: invalid index of a 0-dim tensor. Use tensor.item()

.. in-short::

   An index is too large for its table, or negative: a word for an embedding, or a label for a loss. A table of 10 rows ends
   with row 9. On a GPU the same problem is *CUDA error: device-side assert triggered*.

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
# Print what each embedding gets. If the last line's indices fit, a later lookup raised. If not, it is this table: 512 or 1024
# rows are often positions, 1 or 2 token types.

import matplotlib.pyplot as plt


def look(module, inputs):
    if isinstance(module, nn.Embedding) and inputs[0].numel():
        print(f"{module} gets {inputs[0].min()} to {inputs[0].max()}")


handle = nn.modules.module.register_module_forward_pre_hook(look)
try:
    embedding(words)
except IndexError as error:
    print("IndexError:", error)
handle.remove()

# figure: The words 1, 4 and 10 as dots beside a shaded band of the rows 0 to 9. The third dot, 10, lies outside of it.
fig, ax = plt.subplots(figsize=(7, 1.6), layout="constrained")
ax.axvspan(-0.5, embedding.num_embeddings - 0.5, color="#2563eb", alpha=0.25)
ax.plot(words[0], [0] * 3, "o", color="#c2410c", ms=9)
ax.set(xticks=range(12), yticks=[], xlabel="row of the table", xlim=(-0.6, 11.6))
ax.set_title("Blue: rows of the embedding. Dots: words.")

# sphinx_gallery_start_ignore
assert words.max() == embedding.num_embeddings == 10
import contextlib
import io

import torch.nn.functional as F


class _Text(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(30, 4), nn.Embedding(8, 4)

    def forward(self, text):
        return self.words(text) + self.places(torch.arange(text.shape[1]))


_handle = nn.modules.module.register_module_forward_pre_hook(look)
with contextlib.redirect_stdout(io.StringIO()) as _seen:
    assert says(lambda: _Text()(torch.arange(9)[None])) == f"IndexError: {message}"
    for _shape in ((0, 3), (3, 0), ()):
        _Text().words(torch.zeros(_shape).long())
    _place = nn.Parameter(torch.zeros(8, 4))  # looked up without a module

    def _later(text):
        return embedding(text) + F.embedding(torch.arange(text.shape[1]), _place)

    assert says(lambda: _later(torch.ones(1, 9).long())) == f"IndexError: {message}"
_handle.remove()
assert _seen.getvalue().endswith("Embedding(10, 4) gets 1 to 1\n")  # which fits
assert _seen.getvalue().split("\n")[:2] == [
    "Embedding(30, 4) gets 0 to 8",
    "Embedding(8, 4) gets 0 to 8",
]
# sphinx_gallery_end_ignore

# %%
# The message tells where to look:
#
# .. list-table::
#    :header-rows: 1
#    :widths: 44 56
#
#    * - the message
#      - what is too large
#    * - ``index out of range in self``, in ``embedding``. GPU: ``srcIndex < srcSelectDimSize``, or ``ind < ind_dim_size``
#      - a word, a position, a token type, or a user
#    * - the same, or ``index 2 is out of bounds``, in ``index_select`` or ``index_add``
#      - often a node of a graph: number the nodes from 0
#    * - ``Target 3 is out of bounds.``, ``Class values must be smaller``. GPU: ``t < n_classes``
#      - a label
#    * - ``index 3 is out of bounds for dimension 0``. GPU: ``index < sizes[i]``, ``idx_dim < index_size``, or
#        ``ind < ind_dim_size``
#      - an index in square brackets, of ``gather`` or ``scatter``
#    * - GPU: ``cumdist[size - 1] > 0``
#      - the probabilities of ``multinomial`` are 0, or :ref:`NaN <sphx_glr_gallery_errors_nan_in_backward.py>`
#
# Why
# ---
# An embedding is a table: row ``i`` belongs to word ``i``. ``cross_entropy`` looks up the score of the right class.
#
# The fix
# -------
# - **A new table**: ``num_embeddings`` is the largest index in all your data, plus 1. If −1 is padding, first add 1 to all, and
#   set ``padding_idx=0``.
# - **A trained table**: load its vocabulary. New words share the index of unknown words.
# - **New tokens** in the tokenizer of a trained model: ``model.resize_token_embeddings(len(tokenizer))`` in Transformers,
#   before you create the optimizer. For LoRA, name embedding and head in ``modules_to_save``, or the new rows stay random. A
#   tokenizer must be that of the model.
# - **A sequence longer than the table of positions**: ``tokenizer(text, truncation=True, max_length=512)``. To generate text,
#   keep the end: ``words[:, -positions:]``.
# - **A token type**: RoBERTa has one. Do not pass ``token_type_ids``.
# - **−100 among the words**: write ``labels = words.clone()``, not ``labels = words``, before you mask labels. For
#   ``gather``, take ``labels.clamp(min=0)``, and ``masked_fill(labels == -100, 0)`` of the result. DPO wants its sum for each
#   sequence, a cross entropy the sum divided by the number of labels.

embedding = nn.Embedding(num_embeddings=11, embedding_dim=4)
embedding(words)
print(tuple(embedding(words).shape))

# sphinx_gallery_start_ignore
assert embedding(words).shape == (1, 3, 4)
_users = torch.arange(1, 101)
assert says(lambda: nn.Embedding(100, 4)(_users)) == f"IndexError: {message}"
assert says(lambda: nn.Embedding(int(_users.max()) + 1, 4)(_users)) == "nothing"
for _copy, _said in (
    (lambda words: words, f"IndexError: {message}"),
    (torch.clone, "nothing"),
):
    _words = words.clone()
    _labels = _copy(_words)
    _labels[:, :2] = -100  # the prompt has no label
    assert says(lambda words=_words: embedding(words)) == _said
    assert torch.equal(_words, words) == (_said == "nothing")
_position, _text = nn.Embedding(4, 4), torch.arange(6)[None]
for _kept, _said in ((_text, f"IndexError: {message}"), (_text[:, -4:], "nothing")):
    _place = torch.arange(_kept.shape[1])
    assert says(lambda place=_place: _position(place)) == _said
assert _text[:, -4:].tolist() == [[2, 3, 4, 5]] and words[:, -4:].equal(words)
for _call in (
    lambda: torch.ones(2, 3).index_select(0, torch.tensor([2])),
    lambda: torch.zeros(2).index_add(0, torch.tensor([2]), torch.ones(1)),
):
    assert says(_call) == f"IndexError: {message}"
assert "index 2 is out of bounds for dimension 0" in says(
    lambda: torch.zeros(2, 3).index_add(0, torch.tensor([2]), torch.ones(1, 3))
)
_padded = torch.tensor([[3, 0, -1]])
_shifted = nn.Embedding(5, 4, padding_idx=0)
assert says(lambda: nn.Embedding(4, 4)(_padded)) == f"IndexError: {message}"
assert not _shifted(_padded + 1)[0, 2].any() and _shifted(_padded + 1)[0, 1].any()
# sphinx_gallery_end_ignore

# %%
# Target 3 is out of bounds
# -------------------------
# The labels of three classes are 0, 1 and 2. Print ``labels.unique()``, and ``logits.shape``, whose dimension 1 is the classes:

import torch
import torch.nn.functional as F

# sphinx_gallery_start_ignore
raised = []
try:
    # sphinx_gallery_end_ignore
    logits, labels = torch.zeros(2, 3), torch.tensor([1, 3])  # labels from 1 to 3
    loss = F.cross_entropy(logits, labels)
# sphinx_gallery_start_ignore
except IndexError as error:
    raised.append(str(error))
    print("IndexError:", error)
assert raised == ["Target 3 is out of bounds."]
assert "Class values must be smaller" in says(lambda: F.one_hot(labels, 3))
assert "index 3 is out of bounds for" in says(
    lambda: torch.zeros(2, 4)[:, :3].scatter(1, labels[:, None], 1.0)
)
_unlabeled = torch.tensor([2, -100])
_log = torch.tensor([[0.1, 0.2, 0.7], [0.3, 0.3, 0.4]]).log()
assert "out of bounds" in says(lambda: _log.gather(1, _unlabeled[:, None]))
_log[1, 0] = float("-inf")  # a forbidden word: times 0 it is NaN
_all = _log.gather(1, _unlabeled.clamp(min=0)[:, None])[:, 0]
_picked = _all.masked_fill(_unlabeled == -100, 0)
_number = (_unlabeled != -100).sum()
assert torch.allclose(_picked.sum() / _number, -F.nll_loss(_log, _unlabeled))
assert torch.allclose(_picked.sum(), -F.nll_loss(_log, _unlabeled, reduction="sum"))
assert not torch.allclose(_picked.mean(), -F.nll_loss(_log, _unlabeled))
assert (_all * (_unlabeled != -100)).sum().isnan()
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
_signs = torch.tensor([-1, 0, 1])  # three classes
assert "Target -1" in says(lambda: F.cross_entropy(torch.eye(3), _signs))
_right = torch.tensor(torch.e + 2).log() - 1
assert torch.isclose(F.cross_entropy(torch.eye(3), _signs + 1), _right)
# sphinx_gallery_end_ignore

# %%
# - **Labels from 1**: subtract 1 in the dataset, so that the accuracy uses the same.
# - **Only classes 3 and 5**, or such gray values of a mask: ``torch.searchsorted(torch.tensor([3, 5]), labels)`` numbers them
#   from 0. List what all your data has, sorted: a 4 would get the number of 5. Set −100 afterwards.
# - **Fewer outputs than classes**: give the last layer one for each. In torchvision's detectors, the background is a class.
# - **Masks with 255**: ``ignore_index=255`` if it marks a border. For a mask in black and white, ``(mask > 127).long()``.
#   Resize masks with *nearest*.
# - **−1 for no label**: ``ignore_index=-1``. The default is −100. If −1 is a class, as in −1, 0, 1: ``labels + 1``.

print("labels from 0:", (labels - 1).tolist())
print(f"{F.cross_entropy(logits, labels - 1):.4f}")

# sphinx_gallery_start_ignore
assert torch.isclose(F.cross_entropy(logits, labels - 1), torch.tensor(3.0).log())
_sure = F.one_hot(labels - 1, 3).float()  # right each time
assert torch.equal(_sure.argmax(1), labels - 1) and (_sure.argmax(1) != labels).all()
_mask = torch.tensor([0, 255])
_white = (_mask.to(torch.uint8) > 127).long()
assert F.cross_entropy(logits, _white) == F.cross_entropy(logits, labels - 1)
assert "Target 1 is out of bounds" in says(
    lambda: F.cross_entropy(logits[:, :1], _white)
)
assert F.cross_entropy(logits[:, :2], _white) > 0
assert F.cross_entropy(logits, _mask, ignore_index=255) > 0
for _classes in ([3, 5, 5], [5, 5, 5]):  # also in a batch that has one of them
    _numbered = torch.searchsorted(torch.tensor([3, 5]), torch.tensor(_classes))
    assert _numbered.tolist() == [_classes[0] // 4, 1, 1]
    assert says(lambda n=_numbered: F.cross_entropy(torch.zeros(3, 2), n)) == "nothing"
for _numbers, _classes in (([3, 5], [0, 1, 1]), ([5, 3], [0, 2, 2])):
    _found = torch.searchsorted(torch.tensor(_numbers), torch.tensor([3, 5, 5]))
    assert _found.tolist() == _classes
assert torch.searchsorted(torch.tensor([3, 5]), -100) == 0
assert torch.searchsorted(torch.tensor([3, 5]), torch.tensor([4, 5])).tolist() == [1, 1]
_gray = torch.tensor([[0, 192], [64, 0]], dtype=torch.uint8)
_gray = torch.searchsorted(torch.tensor([0, 64, 192]), _gray)
assert _gray.tolist() == [[0, 2], [1, 0]] and _gray.dtype == torch.int64
assert "Target 4" in says(lambda: F.cross_entropy(torch.zeros(1, 2), torch.tensor([4])))
# sphinx_gallery_end_ignore

# %%
# On a GPU: device-side assert triggered
# --------------------------------------
# The traceback can show a later line. Restart the program with model,
# batch and labels on the CPU, or set ``CUDA_LAUNCH_BLOCKING=1`` before it starts.
#
# Dimension out of range (expected to be in range of [-1, 0], but got 1)
# ----------------------------------------------------------------------
# You ask for dimension 1 of a vector. Often ``squeeze()`` took the batch away, because the last batch has one sample:

import torch

# sphinx_gallery_start_ignore
try:
    # sphinx_gallery_end_ignore
    features = torch.ones(1, 3, 1, 1)  # after the pooling: 1 image, 3 channels
    scores = features.squeeze()
    classes = scores.argmax(dim=1)
# sphinx_gallery_start_ignore
except IndexError as error:
    raised.append(str(error))
    print("IndexError:", error)
assert raised[1:] == [
    "Dimension out of range (expected to be in range of [-1, 0], but got 1)"
]
_said = f"IndexError: {raised[1]}"
for _call in (
    lambda: scores.sum(1),
    lambda: scores.size(1),
    lambda: F.softmax(scores, dim=1),
):
    assert says(_call) == _said
_columns = torch.ones(3), torch.zeros(3)
assert says(lambda: torch.cat(_columns, dim=1)) == _said
assert torch.stack(_columns, dim=1).tolist() == [[1, 0]] * 3
_kept = features.squeeze((2, 3))
assert _kept.shape == (1, 3) and _kept.argmax(dim=1).shape == (1,)
assert torch.equal(_kept, features.flatten(1))
_scores = torch.tensor([[0.1, 0.2, 0.7], [0.8, 0.1, 0.1]])
assert _scores.argmax(dim=1).tolist() == [2, 0]
assert _scores.argmax(dim=0).tolist() == [1, 0, 0]
# sphinx_gallery_end_ignore

# %%
# - **squeeze()**: name the dimensions, ``features.squeeze((2, 3))``.
# - **One sample without a batch**: ``model(sample[None])``.
# - **torch.cat of vectors**, as columns: ``torch.stack([a, b], dim=1)``.
# - **labels.argmax(dim=1)** is for one-hot labels.
#
# Not ``dim=0``: it compares the samples of a batch.
#
# Other messages of an index
# --------------------------

import torch

row, number = torch.ones(3), torch.tensor(0.5)
for call in (lambda: row[:, 0], lambda: row[3], lambda: number[0]):
    try:
        call()
    except IndexError as error:
        print(f"IndexError: {error}")

# sphinx_gallery_start_ignore
assert says(lambda: row[:, 0]).endswith("too many indices for tensor of dimension 1")
assert says(lambda: row[3]).endswith(
    "index 3 is out of bounds for dimension 0 with size 3"
)
assert "invalid index of a 0-dim tensor." in says(lambda: number[0])
# sphinx_gallery_end_ignore

# %%
# - **too many indices**: look for ``squeeze()``, or a missing batch.
# - **index 3 is out of bounds**: often a loop runs to ``batch_size``, and the last batch is smaller: ``range(len(images))``.
# - **0-dim tensor**: in a log, write ``loss.item()`` for ``loss[0]`` or ``loss.data[0]``.
#
# See also
# --------
# - :ref:`sphx_glr_gallery_errors_wrong_target_dtype.py`, when the labels have the wrong type or shape.
