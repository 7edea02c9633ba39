r"""
Target size (torch.Size([2])) must be the same as input size (torch.Size([2, 1]))
=================================================================================

.. index::
   ! single: BCEWithLogitsLoss with outputs (n, 1) and labels (n,)
   ! single: all elements of input should be between 0 and 1
   ! single: all elements of target should be between 0 and 1
   ! single: Expected target size [2, 4], got [2, 5]
   ! single: Loss.cu Assertion input_val >= zero && input_val <= one failed

.. in-short::

   A binary loss compares outputs and labels number by number, so both need the same shape. A layer with one output returns
   ``(batch, 1)``, and the labels are often ``(batch,)``. Remove dimension 1.

   .. code-block:: diff

      - logits = model(x)
      + logits = model(x).squeeze(1)
        loss = criterion(logits, labels)

   **Not this:** ``squeeze()`` without the 1. A last batch with one sample loses its batch dimension, and the loss raises again.
"""

# %%
# The code that raises it
# -----------------------

import torch
from torch import nn

# sphinx_gallery_start_ignore
try:
    # sphinx_gallery_end_ignore
    torch.manual_seed(0)
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
# *Target* means the labels, *input* the outputs. ``BCELoss`` says:

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
# ``MSELoss`` compares each output with each label, :ref:`with a warning <sphx_glr_gallery_errors_sizes_do_not_match.py>`, and
# an accuracy does so silently. So change the shape before both, and that of a weight for each sample.
#
# The fix
# -------
# Compare the two sizes of the message:
#
# .. list-table::
#    :header-rows: 1
#    :widths: 44 56
#
#    * - target and input
#      - cause and fix
#    * - ``[2]``, ``[2, 1]``
#      - One output for each sample or pixel: ``logits.squeeze(1)``. If the labels have the 1, ``labels.squeeze(1)``
#    * - ``[9]``, ``[1, 9]``
#      - The labels of one sample: ``labels.unsqueeze(0)``
#    * - ``[2, 5]``, ``[2, 5, 1]``
#      - One output for each step of a sequence: ``logits.squeeze(2)``; of both, take ``[labels >= 0]`` if -100 marks padding
#    * - ``[2]``, ``[2, 5, 1]``
#      - One label for a sequence: its last step before the padding,
#        ``logits[torch.arange(len(lengths)), lengths - 1, 0]``
#    * - ``[4]`` or ``[4, 1]``, ``[4, 2]``
#      - One class for each sample: ``CrossEntropyLoss``, below, with ``labels.long()`` of shape ``[4]``
#    * - ``[2, 1, 64, 64]``, ``[2, 5, 64, 64]``
#      - One class for each pixel: ``CrossEntropyLoss`` with ``labels.squeeze(1).long()``. Load the mask with ``PILToTensor``:
#        ``ToTensor`` divides by 255, and class numbers become 0.
#    * - ``[8, 5]``, ``[8, 6]``
#      - The last layer needs an output for each class (``num_labels``), and ``one_hot`` needs ``num_classes``.
#    * - ``[8]``, ``[8, 1, 1, 1]``, ``[5]`` or ``[288]``
#      - A discriminator: ``torch.ones_like(outputs)``, ``zeros_like`` for fakes. If 288 should be 8, resize the images.
#    * - ``[1, 3, 64, 64]``, ``[1, 1, 64, 64]``
#      - A black and white mask that was read in color: open it with ``convert("L")``, and make its values 0 and 1. If colors
#        are classes, number them.
#    * - ``[1, 1, 572, 572]``, ``[1, 1, 388, 388]``
#      - Convolutions lose the border: give them ``padding``, or crop the labels at the center.
#
# Convert integer labels with ``labels.float()``.

logits = model(x).squeeze(1)
loss = criterion(logits, labels)
print(loss, ((logits > 0) == labels).float().mean())

# sphinx_gallery_start_ignore
assert ((logits > 0) == labels).shape == (2,)
_column = model(x)
assert loss == criterion(_column, labels.unsqueeze(1))
assert (_column - labels).shape == ((_column > 0) == labels).shape == (2, 2)
_weights = torch.rand(2, 1)
_losses = nn.BCEWithLogitsLoss(reduction="none")(logits, labels)
assert (_losses * _weights).shape == (2, 2)


def _says(loss, *inputs):
    try:
        loss(*inputs)
    except (RuntimeError, ValueError) as error:
        return str(error)
    return ""


_image, _mask = torch.zeros(2, 1, 4, 4), torch.zeros(2, 4, 4)
assert "size (torch.Size([2, 4, 4]))" in _says(criterion, _image, _mask)
assert _says(criterion, _image.squeeze(1), _mask) == ""
assert "input size (torch.Size([]))" in _says(
    criterion, _column[:1].squeeze(), labels[:1]
)
_steps, _marks = torch.randn(2, 5, 1), torch.ones(2, 5)
assert "size (torch.Size([2, 5, 1]))" in _says(criterion, _steps, _marks)
assert _says(criterion, _steps.squeeze(2), _marks) == ""
_marks[1, 3:] = -100
_logits, _taken = _steps.squeeze(2), _marks >= 0
_each = nn.BCEWithLogitsLoss(reduction="none")(_logits, torch.ones(2, 5))
assert torch.isclose(
    criterion(_logits[_taken], _marks[_taken]), _each.flatten()[:8].mean()
)
assert not torch.isclose(criterion(_logits, _marks), _each.flatten()[:8].mean())
_two = torch.randn(4, 2)
assert "size (torch.Size([4, 2]))" in _says(criterion, _two, torch.ones(4))
assert _says(nn.CrossEntropyLoss(), _two, torch.ones(4).long()) == ""
_sure = torch.tensor([[30.0, -30.0]])
for _scores, _least in ((_sure, 0), (_sure.sigmoid(), 0.31), (_sure.softmax(1), 0.31)):
    assert round(nn.CrossEntropyLoss()(_scores, torch.tensor([0])).item(), 2) == _least
_fakes = torch.randn(8, 1, 1, 1)
assert "size (torch.Size([8, 1, 1, 1]))" in _says(criterion, _fakes, torch.ones(8))
assert criterion(_fakes, torch.ones_like(_fakes)) == criterion(
    _fakes.flatten(), torch.ones(8)
)
_patches = torch.randn(8, 6, 6)
assert "size (torch.Size([8, 6, 6]))" in _says(criterion, _patches, torch.ones(8))
assert "size (torch.Size([288]))" in _says(criterion, _patches.view(-1), torch.ones(8))
assert _says(criterion, _patches, torch.ones_like(_patches)) == ""
assert _says(criterion, torch.randn(1, 9), torch.ones(9)[None]) == ""
_whole = torch.arange(10.0).view(2, 5, 1)
assert "size (torch.Size([2, 5, 1]))" in _says(criterion, _whole, torch.ones(2))
assert _whole[torch.arange(2), torch.tensor([5, 5]) - 1, 0].tolist() == [4, 9]
assert _whole[torch.arange(2), torch.tensor([2, 4]) - 1, 0].tolist() == [1, 8]
_scores = torch.randn(2, 5, 4, 4, requires_grad=True)
_classes = torch.randint(5, (2, 1, 4, 4)).float()
assert "size (torch.Size([2, 1, 4, 4]))" in _says(criterion, _scores, _classes)
_loss = nn.CrossEntropyLoss()(_scores, _classes.squeeze(1).long())
_each = -_scores.log_softmax(1).gather(1, _classes.long())
assert torch.allclose(_loss, _each.mean())
assert torch.allclose(
    *(torch.autograd.grad(it, _scores)[0] for it in (_loss, _each.mean()))
)
_columns = torch.ones(4, 1)
assert "size (torch.Size([4, 1]))" in _says(criterion, _two, _columns)
assert _says(nn.CrossEntropyLoss(), _two, _columns.squeeze(1).long()) == ""
assert not (torch.tensor([0, 1, 4]) / 255).long().any()  # as ToTensor has it
assert nn.functional.one_hot(torch.tensor([0, 2])).shape == (2, 3)
_picture = torch.rand(1, 1, 8, 8)
_kernel = torch.zeros(1, 1, 3, 3)
_kernel[0, 0, 1, 1] = 1
_inside = nn.functional.conv2d(_picture, _kernel)
assert torch.equal(_inside, _picture[:, :, 1:-1, 1:-1])  # interpolated, it is shifted
_wrong = nn.functional.interpolate(_inside, size=(8, 8), mode="bilinear")
assert not torch.allclose(_wrong[:, :, 1:-1, 1:-1], _inside, atol=0.1)
_last = torch.randn(5)
assert "size (torch.Size([8]))" in _says(criterion, _last, torch.ones(8))
for _like in (torch.ones_like, torch.zeros_like):
    assert _says(criterion, _last, _like(_last)) == ""
assert "can't be cast" in _says(criterion, logits, labels.long())
# sphinx_gallery_end_ignore

# %%
# **Each sample has one class.** Use ``CrossEntropyLoss`` without a sigmoid or softmax, with class numbers:

scores = nn.Linear(3, 4)(x)
classes = torch.tensor([3, 0])
print(nn.CrossEntropyLoss()(scores, classes))

# %%
# **A sample may have several classes.** Then the labels need a 0 or a 1 for each class:

several = torch.tensor([[1.0, 0.0, 0.0, 1.0], [0.0, 1.0, 0.0, 0.0]])
print(criterion(scores, several))
assert scores.shape == several.shape

# %%
# all elements of input should be between 0 and 1
# -----------------------------------------------
# ``BCELoss`` takes probabilities, and got the scores of a linear layer:

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
# Use ``BCEWithLogitsLoss``, which applies the sigmoid itself. The model then returns scores: to predict, write ``scores > 0``
# instead of ``scores > 0.5``.

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
assert torch.equal(line > 0, line.sigmoid() > 0.5)
assert not torch.equal(line > 0.5, line.sigmoid() > 0.5)
_between = "all elements of {} should be between 0 and 1".format
assert _says(nn.BCELoss(), torch.full((2,), torch.nan), torch.ones(2)) == _between(
    "input"
)
# sphinx_gallery_end_ignore

# %%
# If the model ends with a sigmoid already, look for :ref:`NaN <sphx_glr_gallery_debugging_finding_nans.py>` in its output.
#
# On a GPU the error is ``CUDA error: device-side assert triggered``, below lines with `Assertion \`input_val >= zero &&
# input_val <= one\` failed <https://github.com/wurenkai/MHorUNet/issues/4>`__.
#
# The labels, too. A mask with 255 raises:

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
# sphinx_gallery_end_ignore

# %%
# Divide such a mask by 255. ``BCEWithLogitsLoss`` does not check the labels, and can become negative:

print(nn.BCEWithLogitsLoss()(scores, mask))
print(nn.BCEWithLogitsLoss()(scores, mask / 255))

# sphinx_gallery_start_ignore
_wrong, _right = (nn.BCEWithLogitsLoss()(scores, m) for m in (mask, mask / 255))
assert _wrong < 0 < _right
assert torch.equal(mask / 255, labels)
# sphinx_gallery_end_ignore

# %%
# Expected input batch_size to match target batch_size
# ----------------------------------------------------
# ``CrossEntropyLoss`` says this. Below, a ``view`` mixed batch and time:

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
# If the batch comes first, write ``flatten(1)``:

scores = nn.Linear(48, 4)(features.flatten(1))
print(nn.CrossEntropyLoss()(scores, classes))

# sphinx_gallery_start_ignore
_said = _says(nn.CrossEntropyLoss(), torch.zeros(2, 5, 4), torch.zeros(2, 5).long())
assert _said == "Expected target size [2, 4], got [2, 5]"
assert nn.CrossEntropyLoss()(torch.zeros(2, 4, 5), torch.zeros(2, 5).long()) > 0
_each = torch.randn(2, 5, 5)[:, :-1]  # of the next token
_text = torch.randint(5, (2, 5))
_said = _says(nn.CrossEntropyLoss(), _each.reshape(-1, 5), _text.view(-1))
assert _said == "Expected input batch_size (8) to match target batch_size (10)."
_loss = nn.CrossEntropyLoss()(_each.reshape(-1, 5), _text[:, 1:].flatten())
_next = _text[:, 1:, None]
assert torch.allclose(_loss, -_each.log_softmax(2).gather(2, _next).mean())
# sphinx_gallery_end_ignore

# %%
# - **Scores of the next token:** ``scores[:, :-1]`` goes with ``labels[:, 1:]``. Shift both before you flatten them.
# - **A causal language model** needs ``input_ids.clone()`` as labels, with -100 at the prompt and the padding.
# - **(8) to match (1024):** labels of tokens, and a model of texts. Take ``AutoModelForTokenClassification``.
# - *Expected target size [2, 4], got [2, 5]*, and there are 4 classes: ``scores.transpose(1, 2)``.
#
# What not to do
# --------------
# **A sigmoid before BCEWithLogitsLoss** is applied twice. A sure and right answer then has a loss of 0.31:

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
# - :ref:`sphx_glr_gallery_errors_wrong_target_dtype.py`
