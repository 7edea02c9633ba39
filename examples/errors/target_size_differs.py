r"""
Target size (torch.Size([2])) must be the same as input size (torch.Size([2, 1]))
=================================================================================

.. index::
   ! single: BCEWithLogitsLoss with outputs (n, 1) and labels (n,)
   ! single: all elements of input should be between 0 and 1
   ! single: all elements of target should be between 0 and 1
   ! single: Loss.cu Assertion input_val >= zero && input_val <= one failed

.. in-short::

   A binary loss compares outputs and labels number by number, so both need one shape. A layer with one output returns
   ``(batch, 1)``, and your labels are ``(batch,)``. Remove dimension 1 of the output.

   .. code-block:: diff

      - loss = criterion(logits, labels)
      + loss = criterion(logits.squeeze(1), labels)

   **Not this:** ``squeeze()`` without the 1. A last batch with one sample loses its batch dimension, and the loss raises again.
"""

# %%
# The code that raises it
# -----------------------

import torch
from torch import nn

torch.manual_seed(0)

# sphinx_gallery_start_ignore
import warnings
from functools import partial

try:
    # sphinx_gallery_end_ignore
    model = nn.Linear(3, 1)
    criterion = nn.BCEWithLogitsLoss()
    x = torch.rand(2, 3)
    labels = torch.tensor([0.0, 1.0])

    logits = model(x)
    loss = criterion(logits, labels)
# sphinx_gallery_start_ignore
except ValueError as error:
    message = str(error)
    print("ValueError:", message)
assert message == (
    "Target size (torch.Size([2])) must be the same as input size (torch.Size([2, 1]))"
)
# sphinx_gallery_end_ignore

# %%
# *Target* means the labels, the second argument. *Input* is what the model returned. ``BCELoss`` says the same in other words:

# sphinx_gallery_start_ignore
raised = []
try:
    # sphinx_gallery_end_ignore
    nn.BCELoss()(logits.sigmoid(), labels)
# sphinx_gallery_start_ignore
except ValueError as error:
    raised.append(str(error))
    print("ValueError:", error)
assert raised == [
    "Using a target size (torch.Size([2])) that is different to the input size "
    "(torch.Size([2, 1])) is deprecated. Please ensure they have the same size."
]
# sphinx_gallery_end_ignore

# %%
# Why
# ---
# A difference ``logits - labels`` would repeat the two labels, and compare each output with each label: four pairs instead of
# two. ``MSELoss`` does that, :ref:`with a warning <sphx_glr_gallery_errors_sizes_do_not_match.py>`. The binary losses raise.
#
# The fix
# -------
# Compare the two sizes.
#
# **The input size has a 1 more**: one output for each sample or pixel. Remove that dimension, or give it to the labels with
# ``labels.unsqueeze(1)``. If the target size has it, use ``labels.squeeze(1)``. Integer labels also need ``.float()``.

loss = criterion(logits.squeeze(1), labels)
print(loss)

# sphinx_gallery_start_ignore
assert loss == criterion(logits, labels.unsqueeze(1))
assert (logits - labels).shape == (2, 2)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    assert nn.MSELoss()(logits, labels) == (logits - labels).square().mean()
assert "Using a target size" in str(caught[0].message)


def says(call):
    try:
        call()
    except (RuntimeError, ValueError) as error:
        return str(error)
    return ""


_two = nn.Linear(3, 2)(x)
assert says(lambda: criterion(_two, labels)) == (
    "Target size (torch.Size([2])) must be the same as input size (torch.Size([2, 2]))"
)
assert "size (torch.Size([2, 4, 4]))" in says(
    lambda: criterion(torch.zeros(2, 1, 4, 4), torch.zeros(2, 4, 4))
)
assert says(lambda: criterion(torch.zeros(2, 4, 4), torch.zeros(2, 4, 4))) == ""
_image = torch.zeros(2, 1, 4, 4)
assert says(lambda: criterion(_image.squeeze(1), torch.zeros(2, 4, 4))) == ""
_column = torch.zeros(2, 1)
assert "Target size (torch.Size([2, 1]))" in says(
    lambda: criterion(torch.zeros(2), _column)
)
assert says(lambda: criterion(torch.zeros(2), _column.squeeze(1))) == ""
_classes = labels.long()
assert "can't be cast" in says(lambda: criterion(logits.squeeze(1), _classes))
assert says(lambda: criterion(logits.squeeze(1), _classes.float())) == ""
assert "Target size (torch.Size([8]))" in says(
    lambda: criterion(torch.zeros(3), torch.ones(8))
)
# sphinx_gallery_end_ignore

# %%
# **The first numbers differ**: the labels were made for a full batch, and the last batch is smaller. Make them from the output,
# as with ``torch.ones_like(logits)``.
#
# **The input size has the number of classes**, and each sample has one class. Then you want ``CrossEntropyLoss``, with class
# numbers:

scores = nn.Linear(3, 4)(x)
classes = torch.tensor([3, 0])
print(nn.CrossEntropyLoss()(scores, classes))

# %%
# **The input size has the number of classes**, and a sample may have several. Then the labels need a 0 or a 1 for each class:

several = torch.tensor([[1.0, 0.0, 0.0, 1.0], [0.0, 1.0, 0.0, 0.0]])
print(criterion(scores, several))
assert scores.shape == several.shape

# %%
# all elements of input should be between 0 and 1
# -----------------------------------------------
# ``BCELoss`` takes probabilities, and it got the scores of a layer without a sigmoid:

# sphinx_gallery_start_ignore
raised = []
try:
    # sphinx_gallery_end_ignore
    scores = torch.tensor([-2.0, -0.5, 1.5, 4.0])
    labels = torch.tensor([0.0, 0.0, 1.0, 1.0])
    nn.BCELoss()(scores, labels)
# sphinx_gallery_start_ignore
except RuntimeError as error:
    raised.append(str(error))
    print("RuntimeError:", error)
assert raised == ["all elements of input should be between 0 and 1"]
# sphinx_gallery_end_ignore

# %%
# Use ``BCEWithLogitsLoss``, which applies the sigmoid itself. It is also exact where a sigmoid is rounded to 0. There
# ``BCELoss`` replaces the logarithm by -100, and the gradient is 0.

import matplotlib.pyplot as plt

loss = nn.BCEWithLogitsLoss()(scores, labels)
print(loss, nn.BCELoss()(scores.sigmoid(), labels))

# figure: The curve of the sigmoid, with four scores on it. Three of the four scores are outside of the range from 0 to 1,
#   and their sigmoids are inside.
line = torch.linspace(-4, 5, 100)
fig, ax = plt.subplots(figsize=(7, 2), layout="constrained")
ax.axvspan(0, 1, color="#94a3b8", alpha=0.4, label="what BCELoss accepts")
ax.plot(line, line.sigmoid(), color="#64748b")
ax.plot(scores, scores.sigmoid(), "o", color="#047857", label="the sigmoid of a score")
ax.plot(scores, [0] * 4, "x", color="#c2410c", label="a score")
ax.set(xlabel="score", ylabel="probability", title="Scores are not probabilities")
ax.legend(loc="center left", fontsize=8)

# sphinx_gallery_start_ignore
assert torch.allclose(loss, nn.BCELoss()(scores.sigmoid(), labels))
assert ((scores < 0) | (scores > 1)).all()
_zero, _one = torch.tensor([-200.0]), torch.tensor([1.0])
assert nn.BCEWithLogitsLoss()(_zero, _one) == 200
assert nn.BCELoss()(_zero.sigmoid(), _one) == 100  # it cuts the logarithm at -100
for _loss, _slope in (
    (lambda s: nn.BCELoss()(s.sigmoid(), _one), 0),
    (lambda s: nn.BCEWithLogitsLoss()(s, _one), -1),
):
    _leaf = _zero.clone().requires_grad_()
    _loss(_leaf).backward()
    assert _leaf.grad == _slope
_between = "all elements of {} should be between 0 and 1".format
_nan = torch.tensor([float("nan")])
assert says(lambda: nn.BCELoss()(_nan, _one)) == _between("input")
assert says(lambda: nn.BCELoss()(torch.tensor([1.0 + 1e-6]), _one)) == _between("input")
# sphinx_gallery_end_ignore

# %%
# If your model has a sigmoid already, look for NaN: ``BCELoss`` says the same of it. Then go to
# :ref:`sphx_glr_gallery_errors_loss_is_nan.py`.
#
# On a GPU the error is ``CUDA error: device-side assert triggered``. This page runs on a CPU. Above that error there are lines
# like this one, `from a public issue <https://github.com/wurenkai/MHorUNet/issues/4>`__:
#
# .. parsed-literal::
#
#    Loss.cu:94: operator(): ... Assertion \`input_val >= zero && input_val <= one\` failed.
#
# The labels need that range, too. Masks with 255, or labels -1 and 1 or 1 and 2, raise:

# sphinx_gallery_start_ignore
raised = []
try:
    # sphinx_gallery_end_ignore
    mask = torch.tensor([0.0, 0.0, 255.0, 255.0])
    nn.BCELoss()(scores.sigmoid(), mask)
# sphinx_gallery_start_ignore
except RuntimeError as error:
    raised.append(str(error))
    print("RuntimeError:", error)
assert raised == [_between("target")]
for _labels in ([-1.0, 1.0], [1.0, 2.0]):
    _call = partial(nn.BCELoss(), torch.rand(2), torch.tensor(_labels))
    assert says(_call) == _between("target")
# sphinx_gallery_end_ignore

# %%
# ``BCEWithLogitsLoss`` does not check the labels. A negative loss is a sign of labels outside of 0 to 1:

print(nn.BCEWithLogitsLoss()(scores, mask))
print(nn.BCEWithLogitsLoss()(scores, mask / 255))

# sphinx_gallery_start_ignore
assert (
    nn.BCEWithLogitsLoss()(scores, mask)
    < 0
    < nn.BCEWithLogitsLoss()(scores, mask / 255)
)
assert torch.equal(mask / 255, labels)
# sphinx_gallery_end_ignore

# %%
# Expected input batch_size to match target batch_size
# ----------------------------------------------------
# ``CrossEntropyLoss`` says this if the numbers of samples differ. Here a ``view`` has mixed the batch with another dimension:

# sphinx_gallery_start_ignore
raised = []
try:
    # sphinx_gallery_end_ignore
    features = torch.rand(2, 3, 16)
    scores = nn.Linear(16, 4)(features.view(-1, 16))
    nn.CrossEntropyLoss()(scores, classes)
# sphinx_gallery_start_ignore
except ValueError as error:
    raised.append(str(error))
    print("ValueError:", error)
assert raised == ["Expected input batch_size (6) to match target batch_size (2)."]
# sphinx_gallery_end_ignore

# %%
# Keep the batch with ``flatten(1)``:

scores = nn.Linear(48, 4)(features.flatten(1))
print(nn.CrossEntropyLoss()(scores, classes))

# %%
# What not to do
# --------------
# **squeeze() without a number.** It works until a batch has one sample:

# sphinx_gallery_start_ignore
raised = []
try:
    # sphinx_gallery_end_ignore
    logits = model(x[:1])
    criterion(logits.squeeze(), torch.tensor([1.0]))
# sphinx_gallery_start_ignore
except ValueError as error:
    raised.append(str(error))
    print("ValueError:", error)
assert raised == [
    "Target size (torch.Size([1])) must be the same as input size (torch.Size([]))"
]
assert says(lambda: criterion(logits.squeeze(1), torch.tensor([1.0]))) == ""
# sphinx_gallery_end_ignore

# %%
# **A sigmoid in front of BCEWithLogitsLoss.** Nothing raises, and the sigmoid is applied twice. For label 1, the loss of a sure
# and right answer is then 0.31 instead of 0:

sure = torch.tensor([30.0])
right = torch.tensor([1.0])
print(criterion(sure.sigmoid(), right).item(), criterion(sure, right).item())

# sphinx_gallery_start_ignore
assert round(criterion(sure.sigmoid(), right).item(), 2) == 0.31
assert criterion(sure, right) < 1e-12
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_errors_wrong_target_dtype.py`: which labels go with which loss.
# - :ref:`sphx_glr_gallery_errors_index_out_of_range.py`: the device-side assert.
# - In PyTorch's reference: `BCEWithLogitsLoss
#   <https://docs.pytorch.org/docs/stable/generated/torch.nn.BCEWithLogitsLoss.html>`__.
