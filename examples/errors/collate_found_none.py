r"""
default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found <class 'NoneType'>
============================================================================================================

.. index::
   ! single: the dataset returns None for a broken image
   ! single: default_collate found <class 'PIL.Image.Image'>
   ! single: expected Tensor as element 1 in argument 0, but got NoneType
   ! single: skip bad samples in a DataLoader

.. in-short::

   Your ``__getitem__`` returned ``None``, often for a file that it could not read. Leave such samples out, in a ``collate_fn``
   or before training. The class after *found* is that of the sample, or of a part of the sample.

   .. code-block:: diff

      - loader = DataLoader(Photos(), batch_size=2)
      + loader = DataLoader(Photos(), batch_size=2, collate_fn=without_none)

   **Not this:** a black image in place of ``None``. The error is gone, and the model learns from images that do not exist.
"""

# %%
# The code that raises it
# -----------------------

import numpy as np
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset

# sphinx_gallery_start_ignore
try:
    # sphinx_gallery_end_ignore
    files = ["cat.png", "dog.png"]  # not there

    class Photos(Dataset):
        def __len__(self):
            return len(files)

        def __getitem__(self, index):
            try:
                image = Image.open(files[index]).convert("RGB")
            except OSError:
                return None
            return torch.from_numpy(np.array(image))

    loader = DataLoader(Photos(), batch_size=2)
    batch = next(iter(loader))
# sphinx_gallery_start_ignore
except TypeError as error:
    message = str(error)
    print("TypeError:", message)
assert message == (
    "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found <class 'NoneType'>"
)
# sphinx_gallery_end_ignore

# %%
# Why
# ---
# The loader asks for two samples and calls ``default_collate([None, None])``. That function looks at the first sample to know
# how to join all of them: tensors are stacked, numbers become a tensor, tuples and dictionaries are joined part by part. For
# ``None`` it has no rule. If ``None`` is not the first sample, you read one of these messages:

from torch.utils.data import default_collate

image = torch.ones(2, 2)
for samples in ([image, None], [(image, 7), None], [7, None], [(image, None)]):
    try:
        default_collate(samples)
    except (TypeError, RuntimeError) as error:
        print(f"{type(error).__name__}:", error)

# sphinx_gallery_start_ignore
_said = []
for _samples in ([image, None], [(image, 7), None], [7, None], [(image, None)]):
    try:
        default_collate(_samples)
    except (TypeError, RuntimeError) as error:
        _said.append(str(error))
assert _said[0] == "expected Tensor as element 1 in argument 0, but got NoneType"
assert _said[1] == "object of type 'NoneType' has no len()"
assert _said[2:] == ["Could not infer dtype of NoneType", message]
_others = {
    "found <U3": np.array(["cat"]),
    "found object": np.array([None]),
    "found <class 'set'>": {1},
    "found <class 'PIL.Image.Image'>": Image.new("RGB", (2, 2)),
}
_raised = []
for _words, _sample in _others.items():
    for _batch in ([_sample] * 2, [(_sample, 1)] * 2, [{"image": _sample}]):
        try:
            default_collate(_batch)
        except TypeError as error:
            _raised.append(str(error).endswith(_words))
assert _raised == [True] * 12
# sphinx_gallery_end_ignore

# %%
# The second is the usual one for samples with a label. In the last one the label is ``None``, as in a test set without labels.
# Return the image alone, or a label such as -1.
#
# The fix
# -------
# Write a ``collate_fn`` that leaves the ``None`` out and joins the rest. For a broken file, return ``None`` alone, and not
# ``(None, label)``, which this function keeps. Here 6 of 12 files can be read:

import tempfile

folder = tempfile.TemporaryDirectory()
files = [f"{folder.name}/{number}.png" for number in range(12)]
for number in (1, 2, 3, 4, 7, 9):
    Image.new("RGB", (8, 6)).save(files[number])


def without_none(samples):
    return default_collate([sample for sample in samples if sample is not None])


loader = DataLoader(Photos(), batch_size=2, collate_fn=without_none)
batch = next(iter(loader))
print(tuple(batch.shape))

# sphinx_gallery_start_ignore
assert batch.shape == (1, 6, 8, 3)
assert without_none([None, (image, 7), None])[1].tolist() == [7]
_kept = []
try:
    without_none([(None, 7)])
except TypeError as error:
    _kept.append(str(error) == message)
assert _kept == [True]
# sphinx_gallery_end_ignore

# %%
# Now a batch can have fewer samples than you asked for, and a batch in which all are ``None`` raises *IndexError: list index
# out of range* (`pytorch#57429 <https://github.com/pytorch/pytorch/issues/57429>`__). So it is better to look for the bad
# files once, before training:

photos = Photos()
good = [index for index in range(len(photos)) if photos[index] is not None]
dataset = torch.utils.data.Subset(photos, good)

import matplotlib.pyplot as plt

# figure: Two rows of bars, the samples in each batch of four. With without_none the three batches have 3, 2 and 1
#   samples. With the good files alone there are two batches, of 4 and 2 samples.
loaders = {
    "without_none": DataLoader(Photos(), batch_size=4, collate_fn=without_none),
    "good files only": DataLoader(dataset, batch_size=4),
}
sizes = {name: [len(batch) for batch in loader] for name, loader in loaders.items()}
fig, axes = plt.subplots(1, 2, figsize=(6.5, 1.8), sharey=True, layout="constrained")
for ax, (name, size) in zip(axes, sizes.items(), strict=True):
    ax.bar(range(1, len(size) + 1), size, color="#2563eb")
    ax.set(title=name, xlabel="batch", xticks=range(1, 4), xlim=(0.4, 3.6))
axes[0].set_ylabel("samples")

# sphinx_gallery_start_ignore
assert good == [1, 2, 3, 4, 7, 9]
try:
    default_collate([])
except IndexError as error:
    _raised.append(str(error) == "list index out of range")
assert _raised[12:] == [True]
assert list(sizes.values()) == [[3, 2, 1], [4, 2]]
# sphinx_gallery_end_ignore

# %%
# **Found <class 'PIL.Image.Image'>**: the dataset has no transform, or the transform does not end with a tensor.

# sphinx_gallery_start_ignore
raised = []
try:
    # sphinx_gallery_end_ignore
    photos = [Image.open(name).convert("RGB") for name in files[1:3]]
    next(iter(DataLoader(photos, batch_size=2)))
# sphinx_gallery_start_ignore
except TypeError as error:
    raised.append(str(error))
    print("TypeError:", error)
assert len(raised) == 1 and raised[0].endswith("found <class 'PIL.Image.Image'>")
# sphinx_gallery_end_ignore

# %%
# Make a tensor of the image. Most image models want the channels first, and small numbers, for example from 0 to 1:

photos = [torch.from_numpy(np.array(image)).permute(2, 0, 1) / 255 for image in photos]
batch = next(iter(DataLoader(photos, batch_size=2)))
print(tuple(batch.shape))

# sphinx_gallery_start_ignore
assert batch.shape == (2, 3, 6, 8) and batch.dtype == torch.float32
# sphinx_gallery_end_ignore

# %%
# **Found your own class**: return a tuple or a dictionary of tensors instead. Or keep the objects as a list:


class Box:
    pass


boxes = next(iter(DataLoader([Box(), Box()], batch_size=2, collate_fn=list)))
print(type(boxes), len(boxes))

# sphinx_gallery_start_ignore
assert type(boxes[0]) is Box and len(boxes) == 2
try:
    default_collate(boxes)
except TypeError as error:
    raised.append(str(error))
assert len(raised) == 2 and raised[1].endswith("found <class '__main__.Box'>")
folder.cleanup()
# sphinx_gallery_end_ignore

# %%
# **Found <U3**, or **found object**: a NumPy array of strings, or of Python objects. Return numbers.
#
# What not to do
# --------------
# **Do not return a different sample for the bad one.** It then counts twice, and you do not see how many files are bad.
#
# **Do not catch every exception in __getitem__.** A mistake in your own code then looks like a bad file. Catch the one
# that opening a file raises, here ``OSError``.
#
# See also
# --------
# - :ref:`sphx_glr_gallery_errors_stack_unequal_sizes.py`, when the samples are tensors of different sizes.
# - :ref:`sphx_glr_gallery_errors_dataloader_worker.py`, what a worker adds to the message.
# - In PyTorch's reference: `default_collate
#   <https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.default_collate>`__.
