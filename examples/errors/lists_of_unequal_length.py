r"""
expected sequence of length 2 at dim 1 (got 1)
==============================================

.. index::
   ! single: can't convert np.ndarray of type numpy.object_
   ! single: Unable to create tensor, you should probably activate truncation and/or padding
   ! single: turn a list of tensors into a tensor

.. in-short::

   The inner lists have different lengths, but the rows of a tensor have one length. Pad the lists. With a Hugging Face
   tokenizer: ``padding=True, truncation=True``.

   .. code-block:: diff

      - batch = torch.tensor(sentences)
      + rows = [torch.tensor(sentence) for sentence in sentences]
      + batch = nn.utils.rnn.pad_sequence(rows, batch_first=True)

   **Not this:** ``np.array(sentences, dtype=object)``. It is an array of lists, and ``torch.tensor`` refuses it too.
"""

# %%
# The code that raises it
# -----------------------

import torch

# sphinx_gallery_start_ignore
# isort: split
import warnings

import numpy as np

try:
    # sphinx_gallery_end_ignore
    sentences = [[4, 2], [7], [5, 9, 3]]
    batch = torch.tensor(sentences)
# sphinx_gallery_start_ignore
except ValueError as error:
    message = str(error)
    print("ValueError:", message)
assert message == "expected sequence of length 2 at dim 1 (got 1)"


def says(data, make=torch.tensor):
    try:
        make(data)
    except (ValueError, TypeError, RuntimeError) as error:
        return str(error)
    return ""


assert says([[1, 2], [1, 2], [5, 9, 3]]) == message.replace("got 1", "got 3")
assert says([[[1, 2], [3]], [[1, 2], [3]]]) == message.replace("dim 1", "dim 2")
assert torch.tensor([[], [1]]).shape == (2, 0)
assert says([[1, 2], []]) == message.replace("got 1", "got 0")
for _make in (torch.as_tensor, torch.FloatTensor, torch.LongTensor):
    assert says(sentences, _make) == message
# sphinx_gallery_end_ignore

# %%
# - ``length 2``: the first inner list has two elements, and PyTorch expects two of each. The odd one may be the first.
# - ``dim 1``: the lists at this depth differ. The outer list is dim 0.
# - ``got 1``: the length of the first list that differs.
#
# If the first inner list is empty, nothing is raised, and your numbers are lost: ``torch.tensor([[], [1]])`` is empty.
#
# Why
# ---
# A tensor is a block of numbers with one length for each dimension. Lists can end early, the rows of a tensor cannot:

import matplotlib.pyplot as plt

lengths = [len(sentence) for sentence in sentences]
print(lengths)

# figure: Three rows of tiles. The sentences have 2, 1 and 3 numbers, in blue. Gray tiles fill each row up to the length 3.
_, ax = plt.subplots(figsize=(5, 1.9), layout="constrained")
for row, sentence in enumerate(sentences):
    for column in range(3):
        inside = column < len(sentence)
        ax.barh(row, 0.94, left=column, color="#2563eb" if inside else "#64748b")
        text = sentence[column] if inside else 0
        ax.text(column + 0.47, row, text, color="white", ha="center", va="center")
ax.set(xticks=[], yticks=[], title="Blue: your lists. Gray: what a tensor needs.")
ax.invert_yaxis()

# sphinx_gallery_start_ignore
assert lengths == [2, 1, 3]
# sphinx_gallery_end_ignore

# %%
# The fix
# -------
# Pad the lists to one length. Losses and attention also need the true lengths: see
# :ref:`sphx_glr_gallery_errors_stack_unequal_sizes.py`. A tokenizer pads by itself if you ask it to
# (`transformers#15183 <https://github.com/huggingface/transformers/issues/15183>`__).

from torch import nn

rows = [torch.tensor(sentence) for sentence in sentences]
batch = nn.utils.rnn.pad_sequence(rows, batch_first=True)
print(batch)

# sphinx_gallery_start_ignore
assert batch.tolist() == [[4, 2, 0], [7, 0, 0], [5, 9, 3]]
_rows = [torch.tensor(sentence) for sentence in ([], [4, 2])]
assert nn.utils.rnn.pad_sequence(_rows).dtype == torch.float32
_rows = [torch.tensor(sentence, dtype=torch.long) for sentence in ([], [4, 2])]
assert nn.utils.rnn.pad_sequence(_rows, batch_first=True).tolist() == [[0, 0], [4, 2]]
assert says([[1, 2], [3]]) == message  # one element of a list, for dim 2
_rows = [torch.tensor(rows) for rows in ([[1, 2], [3, 0]], [[4, 0]])]
assert nn.utils.rnn.pad_sequence(_rows, batch_first=True).shape == (2, 2, 2)
# sphinx_gallery_end_ignore

# %%
# If a sentence may be empty, write ``torch.tensor(sentence, dtype=torch.long)``: an empty list becomes ``float32``. If the
# message says ``dim 2``, pad the innermost lists to one length first.
#
# **Should all lists have one length?** Look in ``lengths`` for the one that differs.
#
# **A list of tensors**, such as the outputs of a loop, has another message:

# sphinx_gallery_start_ignore
raised = []
try:
    # sphinx_gallery_end_ignore
    outputs = [torch.ones(2), torch.zeros(2)]
    batch = torch.tensor(outputs)
# sphinx_gallery_start_ignore
except ValueError as error:
    raised.append(str(error))
    print("ValueError:", error)
assert raised == ["only one element tensors can be converted to Python scalars"]
assert says(torch.ones(2), float) == raised[0]
# sphinx_gallery_end_ignore

# %%
# ``torch.stack`` joins tensors of one shape in a new dimension, ``torch.cat`` in one that exists. Both keep the graph.
# ``float(x)`` raises the same message if ``x`` has several elements.

batch = torch.stack(outputs)
print(tuple(batch.shape), tuple(torch.cat(outputs).shape))

# sphinx_gallery_start_ignore
assert batch.shape == (2, 2) and torch.cat(outputs).shape == (4,)
# sphinx_gallery_end_ignore

# %%
# **A pandas table** with numbers in one column and ``bool`` or text in another becomes an array of Python objects. Often
# ``get_dummies`` has made a column of ``bool``, or a column of numbers holds text:

import pandas as pd

# sphinx_gallery_start_ignore
try:
    # sphinx_gallery_end_ignore
    table = pd.DataFrame({"age": [22.0, 38.0], "sex": ["male", "female"]})
    table = pd.get_dummies(table)
    x = torch.tensor(table.values)
# sphinx_gallery_start_ignore
except TypeError as error:
    raised.append(str(error))
    print("TypeError:", error)
assert len(raised) == 2
assert raised[1].startswith("can't convert np.ndarray of type numpy.object_.")
assert says(np.array(sentences, dtype=object)) == raised[1]  # as the box says
assert says(pd.DataFrame({"age": ["22", 38]}).values) == raised[1]
for _column in ([True], ["a"]):
    for _number in ([1], [1.5]):
        assert says(pd.DataFrame({"x": _number, "y": _column}).values) == raised[1]
assert torch.tensor(pd.DataFrame({"x": [1], "y": [1.5]}).values).shape == (1, 2)
# sphinx_gallery_end_ignore

# %%
# Look at ``table.dtypes``. Replace text such as ``"Rome"``, as ``get_dummies`` did here for ``sex``. Then ask for one type:

import numpy as np

print(table.dtypes)
x = torch.tensor(table.to_numpy(dtype=np.float32))
print(x)

# sphinx_gallery_start_ignore
assert x.tolist() == [[22, 0, 1], [38, 1, 0]]
assert says(["x"], lambda text: pd.DataFrame(text).to_numpy(dtype=np.float32)) != ""
assert torch.tensor(pd.Series([[1, 2], [3, 4]]).tolist()).shape == (2, 2)
# sphinx_gallery_end_ignore

# %%
# A column whose cells are lists is an array of objects too: ``torch.tensor(table["x"].tolist())``.
#
# What not to do
# --------------
# **Do not make a tensor of losses with torch.tensor.** For tensors of one element nothing is raised, and the result has no
# graph:

# sphinx_gallery_start_ignore
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    # sphinx_gallery_end_ignore
    w = torch.tensor(3.0, requires_grad=True)
    losses = [w * 2, w * w]
    print(torch.tensor(losses).requires_grad, torch.stack(losses).requires_grad)
    # sphinx_gallery_start_ignore
    assert torch.tensor(losses).requires_grad is False
    assert len(caught) == 1  # once
    assert torch.stack(losses).requires_grad is True
    assert torch.cat([loss[None] for loss in losses]).requires_grad is True
assert "requires_grad=True to a scalar may lead to unexpected" in str(caught[0].message)
# sphinx_gallery_end_ignore

# %%
# PyTorch warns here, once: *Converting a tensor with requires_grad=True to a scalar may lead to unexpected behavior*.
#
# **Do not cut the lists to the shortest.** The model cannot learn from the rest.
#
# See also
# --------
# - :ref:`sphx_glr_gallery_errors_stack_unequal_sizes.py`: the same for tensors, in a ``DataLoader``.
# - :ref:`sphx_glr_gallery_errors_different_dtypes.py`, when the numbers are float64.
# - In PyTorch's reference: `pad_sequence
#   <https://docs.pytorch.org/docs/stable/generated/torch.nn.utils.rnn.pad_sequence.html>`__.
