r"""
expected target dtype to be Long or Byte, but got Float
=======================================================

.. index::
   ! single: expected scalar type Long but found Float
   ! single: 0D or 1D target tensor expected, multi-target not supported
   ! single: Expected floating point type for target with class probabilities, got Long
   ! single: result type Float can't be cast to the desired output type Long

.. in-short::

   ``cross_entropy`` wants the number of the right class for each sample: integers of type ``int64`` (*Long*) and of shape
   ``(batch,)``. Yours are floating point numbers, or have a dimension more.

   .. code-block:: diff

      - loss = F.cross_entropy(logits, labels)
      + loss = F.cross_entropy(logits, labels.long())

   **Not this:** ``labels.long()`` for ``BCEWithLogitsLoss`` or ``MSELoss``. Those want floating point targets.
"""

# %%
# The code that raises it
# -----------------------

# sphinx_gallery_start_ignore
import torch
import torch.nn.functional as F

try:
    # sphinx_gallery_end_ignore
    logits = torch.tensor([[2.0, 0.0, 1.0], [0.0, 3.0, 1.0]])  # 2 samples, 3 classes
    labels = torch.tensor([0.0, 1.0])
    loss = F.cross_entropy(logits, labels)
# sphinx_gallery_start_ignore
except RuntimeError as error:
    message = str(error)
    print("RuntimeError:", message)
assert message == "expected target dtype to be Long or Byte, but got Float"
# sphinx_gallery_end_ignore

# %%
# Which target goes with which loss? Here ``tell`` prints the result of a call, or the message that it raises:

# sphinx_gallery_start_ignore
said = []


def tell(name, call):
    try:
        print(f"{name:<36} {call().item():.4f}")
    except (RuntimeError, ValueError) as error:
        said.append(str(error))
        print(f"{name:<36} {error}")


# sphinx_gallery_end_ignore
numbers = labels.long()
tell("cross_entropy, (2,) Long", lambda: F.cross_entropy(logits, numbers))
tell("cross_entropy, (2, 1) Long", lambda: F.cross_entropy(logits, numbers[:, None]))
one_hot = F.one_hot(numbers, 3)
tell("cross_entropy, one-hot Long", lambda: F.cross_entropy(logits, one_hot))
tell("cross_entropy, one-hot Float", lambda: F.cross_entropy(logits, one_hot.float()))
tell("cross_entropy, (3,) Long", lambda: F.cross_entropy(logits, torch.arange(3)))
score = logits[:, 0]
bce = F.binary_cross_entropy_with_logits
tell("binary_cross_entropy, Float", lambda: bce(score, labels))
tell("binary_cross_entropy, Long", lambda: bce(score, numbers))
tell("binary_cross_entropy, (2, 1) Float", lambda: bce(score, labels[:, None]))

# sphinx_gallery_start_ignore
assert said == [
    "0D or 1D target tensor expected, multi-target not supported",
    "Expected floating point type for target with class probabilities, got Long",
    "Expected input batch_size (2) to match target batch_size (3).",
    "result type Float can't be cast to the desired output type Long",
    "Target size (torch.Size([2, 1])) must be the same as input size (torch.Size([2]))",
]
assert F.cross_entropy(logits, numbers) == F.cross_entropy(logits, one_hot.float())
# sphinx_gallery_end_ignore

# %%
# Why
# ---
# ``cross_entropy`` uses the targets to look up: the number of the right class picks one of the scores. An index is an integer,
# and here the function also takes ``uint8`` (*Byte*). A target of the shape of the scores means something else: a probability
# for each class, which is a floating point number. So the shape decides which type is wanted.
#
# ``BCEWithLogitsLoss`` and ``MSELoss`` compute with the targets, so these are floating point numbers of the shape of the input.
#
# The fix
# -------
# Convert the labels where they are made. ``.long()`` if they are numbers of classes:

logits.requires_grad_()
loss = F.cross_entropy(logits, labels.long())
print(loss)

# graph: loss -- The labels are not in the graph: they choose, and get no gradient

# sphinx_gallery_start_ignore
assert torch.allclose(loss, -torch.log_softmax(logits, 1)[[0, 1], [0, 1]].mean())
assert F.cross_entropy(logits, labels.byte()) == loss
# sphinx_gallery_end_ignore

# %%
# - **Shape (batch, 1)**, as from a column of a table: ``labels.squeeze(1).long()``. Name the dimension: without it, a batch of
#   one sample becomes a number without dimensions.
# - **One-hot**: ``labels.argmax(1)``, or ``labels.float()`` if they are probabilities.
# - **Two classes with one score**: ``BCEWithLogitsLoss`` with ``labels.float()``, in the shape of the score.
#
# What not to do
# --------------
# **Do not convert until it is silent.** ``.long()`` cuts off what is behind the point. Probabilities become class 0:

probabilities = torch.tensor([0.2, 0.9])
print(probabilities.long())

# sphinx_gallery_start_ignore
assert probabilities.long().tolist() == [0, 0]
# sphinx_gallery_end_ignore

# %%
# **Do not reshape the scores to the labels.** ``MSELoss`` of scores ``(2, 1)`` and labels ``(2,)`` warns and compares each
# score with each label: see :ref:`sphx_glr_gallery_errors_sizes_do_not_match.py`.
#
# See also
# --------
# - :ref:`sphx_glr_gallery_errors_index_out_of_range.py`, when a label is larger than the number of classes.
# - :ref:`sphx_glr_gallery_errors_different_dtypes.py`, types of the inputs of a layer.
# - In PyTorch's reference: `CrossEntropyLoss
#   <https://docs.pytorch.org/docs/stable/generated/torch.nn.CrossEntropyLoss.html>`__.
