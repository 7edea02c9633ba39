r"""
Boolean value of Tensor with more than one value is ambiguous
=============================================================

.. index::
   ! single: if tensor == tensor raises
   ! single: and, or, not on tensors
   ! single: tensor in list raises

.. in-short::

   ``if`` wants one yes or no, and your comparison gave one for each element. Say which question you mean: ``all()``, ``any()``,
   or ``torch.equal(a, b)``.

   .. code-block:: diff

      - if prediction == target:
      + if torch.equal(prediction, target):
            correct = True

   **Not this:** ``if (a == b).sum():``. It asks whether *at least one* element is equal.
"""

# %%
# The code that raises it
# -----------------------

import torch

# sphinx_gallery_start_ignore
try:
    # sphinx_gallery_end_ignore
    prediction = torch.tensor([1, 2, 3])
    target = torch.tensor([1, 2, 4])
    if prediction == target:
        correct = True
# sphinx_gallery_start_ignore
except RuntimeError as error:
    message = str(error)
    print("RuntimeError:", message)
assert message == "Boolean value of Tensor with more than one value is ambiguous"


def _says(call):
    try:
        return call()
    except (RuntimeError, ValueError) as error:
        return str(error)


assert "no values is ambiguous" in _says(lambda: bool(torch.ones(0)))
assert bool(torch.ones(1, 1)) and not bool(torch.zeros(()))
for _statement in ("while p: break", "assert p", "p and 1", "p or 1", "not p"):
    assert _says(lambda s=_statement: exec(s, {"p": prediction})) == message
# sphinx_gallery_end_ignore

# %%
# Why
# ---
# ``prediction == target`` is a tensor of three answers: ``[True, True, False]``. But ``if``, ``while``, ``and``, ``or``,
# ``not`` and ``assert`` want one answer. PyTorch could mean *all* or *any*, and does not guess. A tensor with one element has
# one answer, so such code works until the batch is larger. For an empty tensor the message has *no values* in it.

import matplotlib.pyplot as plt

# figure: Three cells, one for each element. The first two say True, the third says False.
fig, ax = plt.subplots(figsize=(5, 1.3), layout="constrained")
answers = (prediction == target).tolist()
ax.imshow([answers], cmap="Blues", vmin=-0.3, vmax=1.6, aspect="auto")
for place, answer in enumerate(answers):
    ax.text(place, 0, answer, ha="center", va="center", color="black")
ax.set(xticks=[], yticks=[], title="prediction == target")

# %%
# Python also compares inside ``in``, ``index``, ``max`` and ``0 < x < 5``. And a loss of ``torch.nn`` that gets the tensors too
# early takes them for settings:

from torch import nn

# sphinx_gallery_start_ignore
raised = []
try:
    # sphinx_gallery_end_ignore
    outputs, targets = torch.ones(4, 2), torch.ones(4, 2)
    loss = nn.MSELoss(outputs, targets)
# sphinx_gallery_start_ignore
except RuntimeError as error:
    raised.append(str(error))
    print("RuntimeError:", error)
assert raised == [message]
_values = [prediction, target]
for _call in (
    lambda: nn.CrossEntropyLoss(outputs, torch.tensor([0, 1, 1, 0])),
    lambda: target in _values,
    lambda: _values.index(target),
    lambda: max(prediction, target),
    lambda: 0 < prediction < 5,
):
    assert _says(_call) == message
# sphinx_gallery_end_ignore

# %%
# The fix
# -------
# **A loss**: make it first, then call it.

loss = nn.MSELoss()(outputs, targets)

# %%
# **A comparison**: say which question you ask.

if torch.equal(prediction, target):
    correct = True
print("same shape, all equal:", torch.equal(prediction, target))
print("all equal:            ", (prediction == target).all().item())
print("any equal:            ", (prediction == target).any().item())
print("equal up to rounding: ", torch.allclose(prediction / 3, target / 3))
print("how many:             ", (prediction == target).sum().item())

# sphinx_gallery_start_ignore
assert not torch.equal(prediction, target) and not torch.equal(
    torch.ones(1), torch.ones(2)
)
assert (torch.ones(1) == torch.ones(2)).all()
assert torch.equal(prediction, prediction.float())  # the type does not count
assert loss == 0
# & means "and" for comparisons, and works on bits for numbers
assert ((prediction > 1) & (target > 3)).tolist() == [False, False, True]
assert _says(lambda: 0 < prediction & prediction < 5) == message
assert (torch.tensor([1]) & torch.tensor([2])).tolist() == [0]
assert (~prediction).tolist() == [-2, -3, -4]
# sphinx_gallery_end_ignore

# %%
# - **A choice for each element**: ``torch.where(x > 0, x, 0)`` instead of ``if x > 0``.
# - **Two conditions**: ``(0 < x) & (x < 5)``, with parentheses. ``&``, ``|`` and ``~`` mean *and*, *or* and *not* for each
#   element of a comparison. With integers they work on the bits.
# - **Is there a tensor at all?** ``if x is not None:`` instead of ``if x:``.
# - **Is this tensor in the list?** ``any(t is x for t in tensors)``.
#
# ``float()`` and ``item()`` want one number, too:

# sphinx_gallery_start_ignore
try:
    # sphinx_gallery_end_ignore
    prediction.item()
# sphinx_gallery_start_ignore
except RuntimeError as error:
    raised.append(str(error))
    print("RuntimeError:", error)
assert raised[1:] == ["a Tensor with 3 elements cannot be converted to Scalar"]
assert "only one element tensors can be converted" in _says(lambda: float(prediction))
# sphinx_gallery_end_ignore

# %%
# What not to do
# --------------
# **Do not use a sum as the condition.** The sum of a comparison is true as soon as one element is equal. And a sum of
# differences can be 0 although the tensors differ:

difference = torch.tensor([1, -1])
print("any equal:", bool((prediction == target).sum()), " sum:", difference.sum())

# sphinx_gallery_start_ignore
assert bool((prediction == target).sum()) and difference.sum() == 0
# sphinx_gallery_end_ignore

# %%
# **Do not compare floating point results with ==.** Use ``torch.allclose``, or ``torch.testing.assert_close`` in a test.
#
# See also
# --------
# - :ref:`sphx_glr_gallery_errors_sizes_do_not_match.py`, when the comparison itself raises.
# - :ref:`sphx_glr_gallery_graphs_dynamic_graphs.py`: ``if`` and loops in a forward pass.
# - In PyTorch's reference: `torch.where <https://docs.pytorch.org/docs/stable/generated/torch.where.html>`__.
