r"""
stack expects each tensor to be equal size, but got [3] at entry 0 and [5] at entry 1
=====================================================================================

.. index::
   ! single: default_collate fails on samples of different lengths
   ! single: images of different sizes in one batch
   ! single: expected sequence of length 2 at dim 1 (got 1)
   ! single: can't convert np.ndarray of type numpy.object_
   ! single: Unable to create tensor, you should probably activate truncation and/or padding
   ! single: the dataset returns None for a broken image
   ! single: default_collate found <class 'PIL.Image.Image'>
   ! single: expected Tensor as element 1 in argument 0, but got NoneType
   ! single: each element in list of batch should be of equal size
   ! single: skip bad samples in a DataLoader
   ! single: Trying to resize storage that is not resizable, in a DataLoader worker
   single: pack_padded_sequence, pad_packed_sequence, LSTM and padding

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


def says(call):
    try:
        call()
    except (ValueError, TypeError, RuntimeError, IndexError) as error:
        return f"{type(error).__name__}: {error}"
    return ""


# sphinx_gallery_end_ignore

# %%
# If the traceback ends at your own ``torch.stack``, print the shapes in that list. The last batch is smaller: join the outputs
# of all batches with ``torch.cat``, and make tensors for ``len(x)`` samples instead of ``batch_size``.
#
# With workers the message may be *Trying to resize storage that is not resizable*, for lists *each element in list of batch
# should be of equal size*.
#
# Why
# ---
# The loader calls ``torch.stack``. Find out which samples differ:

from collections import Counter

print(Counter(tuple(sample.shape) for sample in sentences))

# sphinx_gallery_start_ignore
assert Counter(tuple(sample.shape) for sample in sentences) == {(3,): 1, (5,): 1}
# sphinx_gallery_end_ignore

# %%
# For pairs, count ``sample[0].shape``, then ``sample[1].shape``. What the shapes tell:
#
# - **(3, 112, 112) and (3, 112, 149)**, images: write ``Resize((112, 112))``, since ``Resize(112)`` sets the shorter side only.
#   A mask of classes needs ``InterpolationMode.NEAREST``. Scale boxes by the same factors.
# - **(4, 72, 120) and (4, 80, 112)**, latents in buckets: put one shape into each batch, by ``batch_sampler=``.
# - **(3, …) and (1, …)**, or (4, …): color and gray images, or transparency. Open photos with ``convert("RGB")``,
#   and black and white masks with ``convert("L")``.
# - **(2, …) and (1, …)**, or (…, 2) and (…): stereo and mono. Take the mean of the two channels.
# - **Points, rays**: draw equally many.
# - **Words, sounds**: pad them. With a tokenizer, see below.
# - **Boxes**, for torchvision's detectors: return ``tuple(zip(*samples))`` in the ``collate_fn``.
#
# The fix
# -------
# ``pad_sequence`` pads the first dimension. In sounds, time is the last one: begin with ``samples = [sample.T for sample in
# samples]``, and return ``batch.transpose(1, 2)``. For lists of measurements, write ``as_tensor(sample, dtype=torch.float)``.

from torch import nn


def pad(samples):
    samples = [torch.as_tensor(sample) for sample in samples]
    lengths = torch.tensor([len(sample) for sample in samples])
    return nn.utils.rnn.pad_sequence(samples, batch_first=True), lengths


loader = DataLoader(sentences, batch_size=2, collate_fn=pad)
batch, lengths = next(iter(loader))
print(batch, lengths, sep="\n")

# sphinx_gallery_start_ignore
assert batch.tolist() == [[4, 2, 7, 0, 0], [5, 9, 3, 1, 8]]
assert lengths.tolist() == [3, 5]
_boxes = [torch.ones(2, 4), torch.ones(3, 4)]  # boxes of two images
assert pad(_boxes)[0].shape == (2, 3, 4) and pad(_boxes)[1].tolist() == [2, 3]
assert pad([_boxes[0].numpy(), _boxes[1].numpy()])[0].equal(pad(_boxes)[0])
_sounds = [torch.ones(1, 5), torch.ones(1, 7)]
assert "must match the size" in says(lambda: pad(_sounds))
_padded, _lengths = pad([sample.T for sample in _sounds])
assert _padded.shape == (2, 7, 1) and _lengths.tolist() == [5, 7]
_padded, _lengths = pad([sample.T for sample in (torch.ones(80, 5), torch.ones(80, 7))])
assert _padded.shape == (2, 7, 80) and _lengths.tolist() == [5, 7]
_convolution = nn.Conv1d(80, 4, 3)
assert "to have 80 channels, but got 7" in says(lambda: _convolution(_padded))
assert _convolution(_padded.transpose(1, 2)).shape == (2, 4, 5)
_lists = [[4, 2, 7], [5, 9]]
assert "each element in list of batch should be of equal size" in says(
    lambda: next(iter(DataLoader(_lists, 2)))
)
_padded, _lengths = next(iter(DataLoader(_lists, 2, collate_fn=pad)))
assert _padded.tolist() == [[4, 2, 7], [5, 9, 0]] and _lengths.tolist() == [3, 2]
_outputs = [torch.ones(4, 2), torch.ones(3, 2)]
assert "equal size" in says(lambda: torch.stack(_outputs))
assert torch.cat(_outputs).shape == (7, 2)
_pairs = [(torch.ones(3, 8, 8), {"boxes": boxes}) for boxes in _boxes]
assert "equal size" in says(lambda: next(iter(DataLoader(_pairs, 2))))
_collated = DataLoader(_pairs, 2, collate_fn=lambda b: tuple(zip(*b, strict=True)))
_images, _targets = next(iter(_collated))
assert _targets[1]["boxes"] is _boxes[1] and len(_images) == 2
from torch.utils.data import default_collate

_targets = torch.ones(1), torch.zeros(1)  # torch.tensor loses their dimension
assert torch.stack(_targets).equal(default_collate(_targets))
assert torch.stack(_targets).shape == (2, 1) and torch.tensor(_targets).shape == (2,)
_mixed = [[1, 2], [1.5]]  # the first row is of integers
assert pad(_mixed)[0].tolist() == [[1, 2], [1, 0]]
_floats = [torch.as_tensor(sample, dtype=torch.float) for sample in _mixed]
assert pad(_floats)[0].tolist() == [[1, 2], [1.5, 0]]
# one shape into each batch: lists of numbers are a batch_sampler
_latents = [
    torch.full((4, *size), 1.0) for size in ((9, 15), (10, 14), (9, 15), (10, 14))
]
assert "equal size" in says(lambda: next(iter(DataLoader(_latents, 2))))
_shapes = {}
for _i, _latent in enumerate(_latents):
    _shapes.setdefault(_latent.shape, []).append(_i)
_buckets = DataLoader(_latents, batch_sampler=[*_shapes.values()])
assert [tuple(b.shape) for b in _buckets] == [(2, 4, 9, 15), (2, 4, 10, 14)]
from unittest import mock

with mock.patch("torch.utils.data.get_worker_info"):  # as in a worker
    for _lengths, _worker_says in (((3, 5), message), ((5, 3), "not resizable")):
        _loader = DataLoader([torch.ones(n) for n in _lengths], 2)
        assert _worker_says in says(lambda loader=_loader: next(iter(loader)))
# sphinx_gallery_end_ignore

# %%
# If your samples are pairs of a text and a number, begin with ``texts, labels = zip(*samples)``, pad the texts, and return
# ``torch.tensor(labels)`` too, for tensors ``torch.stack(labels)``. The lengths tell words from padding:

import matplotlib.pyplot as plt

mask = torch.arange(batch.shape[1], device=lengths.device) < lengths[:, None]
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
# Leave the padding out of a mean:

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
for _layer in (nn.LSTM, nn.GRU):
    _rnn = _layer(4, 6, batch_first=True)

    def _last(batch, rnn=_rnn):
        state = rnn(batch)[1]
        return state[0][0] if isinstance(state, tuple) else state[0]

    _alone = torch.cat([_last(_words[i : i + 1, :n]) for i, n in enumerate(lengths)])
    _packed = nn.utils.rnn.pack_padded_sequence(
        _words, lengths, batch_first=True, enforce_sorted=False
    )
    assert torch.allclose(_last(_packed), _alone, atol=1e-6)
    assert not torch.allclose(_last(_words), _alone, atol=1e-2)
_scores = torch.randn(2, 5, 7, requires_grad=True)
_labels = nn.utils.rnn.pad_sequence(
    [torch.arange(3), torch.arange(5)], batch_first=True, padding_value=-100
)
_loss = nn.functional.cross_entropy(_scores.movedim(-1, 1), _labels)
assert torch.isclose(_loss, nn.functional.cross_entropy(_scores[mask], _labels[mask]))
# sphinx_gallery_end_ignore

# %%
# - **LSTM, GRU**: pack the batch, as below, or the last state is that of the padding.
# - **cross_entropy**: pad labels of words with ``padding_value=-100``, which it leaves out.
# - **Attention**: ``src_key_padding_mask=~mask`` in ``nn.TransformerEncoder``, ``key_padding_mask=~mask`` in
#   ``nn.MultiheadAttention``.

from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

lstm = nn.LSTM(4, 6, batch_first=True)
embedded = nn.Embedding(10, 4)(batch)
packed = pack_padded_sequence(embedded, lengths, batch_first=True, enforce_sorted=False)
output, (last, _) = lstm(packed)
width = batch.shape[1]
output, _ = pad_packed_sequence(output, batch_first=True, total_length=width)
print(output.shape, "last is after word 3:", torch.equal(last[-1, 0], output[0, 2]))

# sphinx_gallery_start_ignore
from torch.nn.utils.rnn import pack_sequence, unpack_sequence, unpad_sequence

assert output.shape == (2, 5, 6)
_wide = nn.functional.pad(embedded, (0, 0, 0, 3))  # as padding="max_length" does
_wide = pack_padded_sequence(_wide, lengths, batch_first=True, enforce_sorted=False)
for _option, _expected in (({}, 5), ({"total_length": 8}, 8)):
    _output, _ = pad_packed_sequence(lstm(_wide)[0], batch_first=True, **_option)
    assert _output.shape == (2, _expected, 6)
    assert torch.equal(_output[:, :5], output) and not _output[:, 5:].any()
assert torch.equal(last[-1, 0], output[0, 2]) and not output[0, 3:].any()
output.square().sum().backward()
assert all(parameter.grad.any() for parameter in lstm.parameters())
_parts = [embedded[0, :3], embedded[1]]
_packed = pack_sequence(_parts, enforce_sorted=False)
assert torch.equal(_packed.data, packed.data)
for _one, _two, _three in zip(
    unpack_sequence(packed),
    unpad_sequence(embedded, lengths, batch_first=True),
    _parts,
    strict=True,
):
    assert torch.equal(_one, _two) and torch.equal(_two, _three)
assert "must be sorted in decreasing order" in says(lambda: pack_sequence(_parts))
_meta = torch.ones(2, dtype=torch.long, device="meta")
assert "should be a 1D CPU int64 tensor" in says(
    lambda: pack_padded_sequence(embedded, _meta, batch_first=True)
)
# sphinx_gallery_end_ignore

# %%
# Keep ``lengths`` on the CPU.
#
# expected sequence of length 2 at dim 1 (got 1)
# ----------------------------------------------
# The same for Python lists:

import torch

# sphinx_gallery_start_ignore
raised = []
try:
    # sphinx_gallery_end_ignore
    lists = [[4, 2], [7], [5, 9, 3]]
    batch = torch.tensor(lists)
# sphinx_gallery_start_ignore
except ValueError as error:
    raised.append(str(error))
    print("ValueError:", error)
assert raised == ["expected sequence of length 2 at dim 1 (got 1)"]
for _make in (torch.as_tensor, torch.FloatTensor, torch.LongTensor):
    assert says(lambda make=_make: make(lists)) == f"ValueError: {raised[0]}"
assert "at dim 2" in says(lambda: torch.tensor([[[1, 2], [3]], [[1, 2], [3]]]))
assert torch.tensor([[], [1]]).shape == (2, 0)
# a state of Gymnasium, in a list as it comes from reset()
assert says(lambda: torch.FloatTensor(([0.1, 0.2], {}))) == (
    "ValueError: expected sequence of length 2 at dim 1 (got 0)"
)
assert says(lambda: torch.tensor([[1, 2], []])) == says(
    lambda: torch.FloatTensor(([0.1, 0.2], {}))
)
assert torch.tensor([row for row in ([1, 2], []) if row]).tolist() == [[1, 2]]
# sphinx_gallery_end_ignore

# %%
# - **A tokenizer of Hugging Face** (*you should probably activate truncation and/or padding*) pads the texts of one call with
#   ``padding=True, truncation=True``. In a loader, pass ``collate_fn=DataCollatorWithPadding(tokenizer)``, or
#   ``DataCollatorForTokenClassification`` if each *token* has a label (by ``word_ids()``),
#   ``DataCollatorForSeq2Seq`` if the labels are a text, or the tokens of an LLM with −100 for the prompt:
#   ``DataCollatorForLanguageModeling`` would overwrite those. Remove text columns.
# - **(got 0)**: leave out empty rows and their labels. Gymnasium returns a pair: ``state, info = env.reset()``.
# - **Other lists**: pad them. Tokens are ``torch.long``, measurements ``torch.float``.

rows = [torch.tensor(row, dtype=torch.long) for row in lists]
print(nn.utils.rnn.pad_sequence(rows, batch_first=True))

# sphinx_gallery_start_ignore
assert nn.utils.rnn.pad_sequence(rows, batch_first=True).tolist() == [
    [4, 2, 0],
    [7, 0, 0],
    [5, 9, 3],
]
_mixed = [[1, 2], [1.5]]  # without a type, the first row's cuts off the digits
for _type, _last in (({}, 1), ({"dtype": torch.float}, 1.5)):
    _rows = [torch.tensor(row, **_type) for row in _mixed]
    assert nn.utils.rnn.pad_sequence(_rows)[0, 1] == _last
# sphinx_gallery_end_ignore

# %%
# can't convert np.ndarray of type numpy.object\_
# -----------------------------------------------
# Its cells are Python objects: rows of different lengths, or columns of numbers and of ``bool`` or text.

import pandas as pd
import torch

# sphinx_gallery_start_ignore
# isort: split
import numpy as np

try:
    # sphinx_gallery_end_ignore
    table = pd.DataFrame({"age": [22.0, 38.0], "sex": ["male", "female"]})
    table = pd.get_dummies(table)
    x = torch.tensor(table.values)
# sphinx_gallery_start_ignore
except TypeError as error:
    raised.append(str(error))
    print("TypeError:", error)
assert raised[1].startswith("can't convert np.ndarray of type numpy.object_.")
_object = f"TypeError: {raised[1]}"
assert says(lambda: torch.tensor(np.array(lists, dtype=object))) == _object
for _column in ([True], ["a"]):
    for _number in ([1], [1.5]):
        _table = pd.DataFrame({"x": _number, "y": _column})
        assert says(lambda t=_table: torch.tensor(t.values)) == _object
# sphinx_gallery_end_ignore

# %%
# Print ``table.dtypes``. ``get_dummies`` is for classes, with test rows in the same call, ``pd.to_numeric`` for text such as
# ``"22"``, ``np.stack`` for a column of vectors, ``list(d.values())`` for a dictionary. Ask for one type:

x = torch.tensor(table.to_numpy(dtype="float32"))
print(x)

# sphinx_gallery_start_ignore
assert x.tolist() == [[22, 0, 1], [38, 1, 0]]
_train, _test = (pd.DataFrame({"c": [*letters]}) for letters in ("xy", "yz"))
_train_part, _test_part = (pd.get_dummies(part) for part in (_train, _test))
assert _train_part.shape == _test_part.shape  # other columns, and no error
assert _train_part["c_y"].tolist() == [False, True] and next(iter(_test_part)) == "c_y"
assert pd.get_dummies(pd.concat([_train, _test])).shape == (4, 3)
_text = pd.DataFrame({"age": ["22", "?", "38"]})
assert pd.get_dummies(_text).shape == (3, 3)  # a column for each number
assert "Unable to parse string" in says(lambda: pd.to_numeric(_text["age"]))
assert pd.to_numeric(_text["age"][::2]).tolist() == [22, 38]
_weights = {"a": 1.0, "b": 3.0}
assert says(lambda: torch.tensor(np.array(_weights.values()))) == _object
assert torch.tensor(list(_weights.values())).tolist() == [1, 3]
_vectors = pd.Series([np.ones(3), np.zeros(3)])
assert says(lambda: torch.tensor(_vectors.values)) == _object
assert torch.tensor(np.stack(_vectors)).shape == (2, 3)
# sphinx_gallery_end_ignore

# %%
# default_collate: found <class 'NoneType'>
# -----------------------------------------
# The dataset could not read a file, or has no ``return``, or a part of a sample, such as its label, is ``None``.

import torch
from torch.utils.data import DataLoader, Dataset

# sphinx_gallery_start_ignore
try:
    # sphinx_gallery_end_ignore
    files = {0: None, 1: "1.0 2.0", 2: "3.0 4.0"}  # of number 0 nothing can be read

    class Rows(Dataset):
        def __len__(self):
            return len(files)

        def __getitem__(self, index):
            if files[index] is None:
                return None
            return torch.tensor([float(word) for word in files[index].split()])

    batch = next(iter(DataLoader(Rows(), batch_size=3)))
# sphinx_gallery_start_ignore
except TypeError as error:
    raised.append(str(error))
    print("TypeError:", error)
assert raised[2] == (
    "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found <class 'NoneType'>"
)
_image = torch.ones(2, 2)
assert says(lambda: default_collate([(_image, None)] * 2)) == f"TypeError: {raised[2]}"
assert says(lambda: default_collate([_image, None])) == (
    "TypeError: expected Tensor as element 1 in argument 0, but got NoneType"
)
assert says(lambda: default_collate([(_image, 7), None])) == (
    "TypeError: object of type 'NoneType' has no len()"
)


class _Box:
    pass


for _array, _kind in (
    (np.array([1, "a"], dtype=object), "object"),
    (np.array("a"), "<U1"),
):
    assert f"found {_kind}" in says(lambda a=_array: default_collate([a, a]))
_texts = np.array("a"), np.array(["a", "b"])
assert [default_collate([text.tolist()] * 2) for text in _texts] == [
    ["a", "a"],
    [("a", "a"), ("b", "b")],
]
assert str(_texts[1]) == "['a' 'b']"  # no longer two texts
assert default_collate(["a", "b"]) == ["a", "b"]
assert default_collate([np.array([1, 2], dtype=object).astype("float32")]).tolist() == [
    [1, 2]
]
assert "found <class '__main__._Box'>" in says(lambda: default_collate([_Box()]))
assert type(next(iter(DataLoader([_Box(), _Box()], 2, collate_fn=list)))) is list
# sphinx_gallery_end_ignore

# %%
# Leave out the samples that are ``None``. If only the label is, test ``Rows()[index][1]``, or, in a test set, return −1.

good = [index for index in range(len(files)) if Rows()[index] is not None]
dataset = torch.utils.data.Subset(Rows(), good)
print(good, next(iter(DataLoader(dataset, batch_size=3))))

# sphinx_gallery_start_ignore
assert good == [1, 2]
_pairs = [(_image, 3), (_image, None)]
assert all(pair is not None for pair in _pairs)  # the test of whole samples
assert "found <class 'NoneType'>" in says(lambda: default_collate(_pairs[1:]))
_labeled = [pair for pair in _pairs if pair[1] is not None]
assert default_collate(_labeled)[1].tolist() == [3]
_test = [(image, -1 if label is None else label) for image, label in _pairs]
assert default_collate(_test)[1].tolist() == [3, -1]
from PIL import Image

_masks = Image.new("L", (2, 2), 255), Image.new("RGB", (2, 2), (255, 255, 255))
_gray, _color = (torch.from_numpy(np.array(mask)) for mask in _masks)
assert "equal size, but got [2, 2] at entry 0 and [2, 2, 3] at entry 1" in says(
    lambda: torch.stack([_gray, _color])
)
_gray, _color = (torch.from_numpy(np.array(m.convert("L"))) for m in _masks)
assert torch.equal(_gray, _color) and (_gray == 255).all()
_classes = Image.new("P", (1, 1), 1)  # a mask with a palette must stay
_classes.putpalette([0, 0, 0, 128, 0, 0])
assert np.array(_classes) == 1 and np.array(_classes.convert("L")) != 1
assert next(iter(DataLoader(dataset, batch_size=3))).tolist() == [[1, 2], [3, 4]]
# sphinx_gallery_end_ignore

# %%
# - **found <class 'PIL.Image.Image'>**: give the dataset a transform that has ``ToTensor()``. Masks need ``PILToTensor()``,
#   which keeps the classes.
# - **found your own class**: return a tuple or dictionary of tensors, or keep the objects with ``collate_fn=list``. For
#   ``Data`` of PyG, use ``torch_geometric.loader.DataLoader``.
# - **found object, found <U14**: use ``array.astype("float32")``, for text ``array.tolist()``.
#
# See also
# --------
# - :ref:`sphx_glr_gallery_training_data_loading.py`: workers and ``collate_fn``.
# - :ref:`sphx_glr_gallery_errors_sizes_do_not_match.py`: ``torch.cat`` and sums.
# - In PyTorch's reference: `pad_sequence
#   <https://docs.pytorch.org/docs/stable/generated/torch.nn.utils.rnn.pad_sequence.html>`__.
