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
   ``(batch,)``. Yours have a different type, such as ``float32``, ``int32`` or ``bool``, or one more dimension.

   .. code-block:: diff

      - loss = F.cross_entropy(logits, labels)
      + loss = F.cross_entropy(logits, labels.long())

   **Not this:** ``labels.long()`` for probabilities or for ``MSELoss``. All digits after the point are cut off.
"""

# %%
# The code that raises it
# -----------------------

import torch
import torch.nn.functional as F

# sphinx_gallery_start_ignore
# isort: split
import warnings

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
# The function in the last lines of the traceback tells what to convert:
#
# .. list-table::
#    :header-rows: 1
#    :widths: 50 50
#
#    * - function and message
#      - what to do
#    * - ``cross_entropy``, ``nll_loss``: *Long or Byte, but got Float*, *Long but found Byte* or *Double*, *not implemented for
#        'Int'*
#      - If ``labels.unique()`` has class numbers, such as 0.0, 1.0, 2.0, and there are two scores or more: ``labels.long()``
#    * - ``cross_entropy``: *Float but found Double*
#      - class weights, as NumPy makes them: ``weight.float()``
#    * - ``cross_entropy``: *class probabilities, got Long*
#      - labels as large as the scores. One-hot, or one score for two classes: see below. Several ones in a row:
#        ``BCEWithLogitsLoss`` with ``labels.float()``.
#    * - ``cross_entropy``: *only batches of spatial targets supported*
#      - a mask of class numbers with one channel: ``mask.squeeze(1).long()``
#    * - ``binary_cross_entropy``, or ``backward()`` of ``huber_loss``, formerly ``mse_loss``: *Found dtype Long* or *Double*,
#        *result type Float can't be cast*
#      - ``labels.float()``, in the shape of ``scores``, with ``scores.float()`` if they have a different type. Below
#        ``torch.autograd.detect_anomaly()``, a warning names the line.
#    * - ``clamp_``, ``+=``, ``add_``: *result type Float can't be cast*
#      - an integer tensor is the result: ``index.clamp_(0, int(limit) - 1)``, ``total = total + x``. In an average of models,
#        skip what is not ``value.is_floating_point()``, as ``num_batches_tracked``.
#    * - ``gather``, ``scatter``: *Expected dtype int32/int64 for index*
#      - ``index.long()``
#    * - a layer in ``forward``
#      - :ref:`two types meet there <sphx_glr_gallery_errors_different_dtypes.py>`
#
# Which target goes with which loss? The result, or the message:

numbers = labels.long()
one_hot = F.one_hot(numbers, 3)
score = logits[:, 0]
bce = F.binary_cross_entropy_with_logits
said = []
for loss_of, scores, target in (
    (F.cross_entropy, logits, numbers),
    (F.cross_entropy, logits, numbers[:, None]),
    (F.cross_entropy, logits, one_hot),
    (F.cross_entropy, logits, one_hot.float()),
    (F.cross_entropy, logits, torch.arange(3)),
    (bce, score, labels),
    (bce, score, numbers),
    (bce, score, labels[:, None]),
):
    try:
        result = f"{loss_of(scores, target).item():.4f}"
    except (RuntimeError, ValueError) as error:
        result = str(error)
        said.append(result)
    name = loss_of.__name__.removesuffix("_with_logits")
    print(f"{name:<20} {tuple(target.shape)!s:<6} {target.dtype}: {result}")

# sphinx_gallery_start_ignore
assert said == [
    "0D or 1D target tensor expected, multi-target not supported",
    "Expected floating point type for target with class probabilities, got Long",
    "Expected input batch_size (2) to match target batch_size (3).",
    "result type Float can't be cast to the desired output type Long",
    "Target size (torch.Size([2, 1])) must be the same as input size (torch.Size([2]))",
]
assert F.cross_entropy(logits, numbers) == F.cross_entropy(logits, one_hot.float())
# each other type that is not one of these two
_raised = []
for _dtype, _name in (
    (torch.int32, "Int"),
    (torch.int16, "Short"),
    (torch.int8, "Char"),
    (torch.bool, "Bool"),
    (torch.float64, "Double"),
    (torch.bfloat16, "BFloat16"),
):
    try:
        F.cross_entropy(logits, numbers.to(_dtype))
    except RuntimeError as error:
        _raised.append(str(error).endswith(f"Long or Byte, but got {_name}"))
assert _raised == [True] * 6


def _says(call, *inputs):
    try:
        call(*inputs)
    except RuntimeError as error:
        return str(error)
    return ""


_scores, _mask = torch.randn(2, 3, 4, 4), torch.zeros(2, 1, 4, 4)
assert "only batches of spatial targets" in _says(F.cross_entropy, _scores, _mask)
assert F.cross_entropy(_scores, _mask.squeeze(1).long()) > 0
assert not (torch.tensor([0, 1, 2, 254]) / 255).long().any()  # as ToTensor has it
assert labels.unique().tolist() == [0, 1]
assert "Long but found Byte" in _says(F.cross_entropy, _scores, _mask[:, 0].byte())
# classes last, as in texts: argmax(1) is another loss
_scores = torch.arange(40.0).reshape(2, 4, 5).sin()
_labels = torch.tensor([[0, 1, 2, 4], [3, 0, 0, 1]])
_one_hot = F.one_hot(_labels, 5)
assert "got Long" in _says(F.cross_entropy, _scores, _one_hot)
_loss = F.cross_entropy(_scores.movedim(-1, 1), _one_hot.argmax(-1))
assert torch.isclose(_loss, F.cross_entropy(_scores.flatten(0, 1), _labels.flatten()))
assert not torch.isclose(_loss, F.cross_entropy(_scores, _one_hot.argmax(1)))
for _dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16):
    _p = score.sigmoid().to(_dtype)
    assert "Found dtype Long" in _says(F.binary_cross_entropy, _p, numbers)
    assert F.binary_cross_entropy(_p.float(), numbers.float()) > 0
    assert bce(_p.float(), numbers.float()) > 0
    _leaf = torch.zeros(2, dtype=_dtype, requires_grad=True)
    F.huber_loss(
        _leaf.float(), torch.tensor([1001.0, -70000.0]).double().float()
    ).backward()
    assert _leaf.grad.tolist() == [-0.5, 0.5]
_far = torch.tensor([1001.0, 70000.0])  # targets in half precision
assert _far.half()[1].isinf() and _far.bfloat16()[0] == 1000
_leaf = score.clone().requires_grad_()
_said = _says(F.huber_loss(_leaf, numbers.double()).backward)
assert "Found dtype Double but expected Float" in _said
F.huber_loss(_leaf, numbers.double().float()).backward()


def _wrong_loss():
    return F.huber_loss(_leaf, numbers.double())


with warnings.catch_warnings(record=True) as _caught:
    warnings.simplefilter("always")
    with torch.autograd.detect_anomaly():
        _said = _says((F.mse_loss(_leaf, labels) + _wrong_loss()).backward)
assert "Found dtype Double" in _said
assert "in _wrong_loss" in str(_caught[-1].message)
_models = [torch.nn.BatchNorm1d(2) for _ in range(2)]
with torch.no_grad():
    _models[1].weight.fill_(3)
_mean, _other = (one.state_dict() for one in _models)
assert "result type Float can't be cast" in _says(
    lambda: _mean["num_batches_tracked"].add_(0.5)
)
for _name, _value in _mean.items():
    if _value.is_floating_point():
        _value.mul_(0.5).add_(_other[_name], alpha=0.5)
assert _models[0].weight.tolist() == [2, 2]
assert "Long or Byte, but got Double" in _says(
    lambda: F.cross_entropy(logits, labels.double())
)
with warnings.catch_warnings(record=True) as _caught:
    warnings.simplefilter("always")
    for _loss_of in (F.mse_loss, F.huber_loss):  # right numbers, each against each
        _numbers = numbers.float()
        assert _loss_of(_numbers[:, None], _numbers) > 0
        assert _loss_of(_numbers[:, None], _numbers[:, None]) == 0
assert ["target size" in str(one.message) for one in _caught] == [True, True]
assert _leaf.grad.any()
assert "Float but found Double" in _says(
    lambda: F.cross_entropy(logits, numbers, weight=torch.ones(3).double())
)
_index, _limit = torch.tensor([-1, 9]), torch.tensor(5.0)  # as in a YOLO loss
assert "result type Float can't be cast" in _says(_index.clamp_, 0, _limit - 1)
assert _index.clamp_(0, int(_limit) - 1).tolist() == [0, 4]
assert "result type Float can't be cast" in _says(_index.add_, 0.5)
# several ones in a row
_several = torch.tensor([[1, 1, 0], [0, 1, 0]])
assert "got Long" in _says(F.cross_entropy, logits, _several)
assert bce(logits, _several.float()) > 0
assert "for index" in _says(torch.gather, logits, 1, labels[:, None])
# one score for each of two samples is taken for the scores of two classes
_said = _says(F.cross_entropy, score, numbers)
assert (
    _said
    == "Expected floating point type for target with class probabilities, got Long"
)
_silent = F.cross_entropy(score, numbers.float())
assert not torch.allclose(_silent, bce(score, labels))
for _scores in (score, torch.randn(2)):
    assert F.cross_entropy(_scores[:, None], labels[:, None]) == 0
# a class for each pixel
assert F.cross_entropy(torch.zeros(2, 3, 4, 4), torch.zeros(2, 4, 4).long()) > 0
# sphinx_gallery_end_ignore

# %%
# Why
# ---
# ``cross_entropy`` uses the target as an index: the number of the right class picks one of the scores. A target of the shape of
# the scores is a probability for each class. So the shape decides which type is wanted.
#
# ``BCEWithLogitsLoss`` and ``MSELoss`` compute with floating point targets in the shape of the input.
#
# The fix
# -------
# Convert class numbers where they are made:

logits.requires_grad_()
loss = F.cross_entropy(logits, labels.long())
print(loss)

# graph: loss -- Integer labels are not in the graph: they pick a score, and get no gradient

# sphinx_gallery_start_ignore
assert torch.allclose(loss, -torch.log_softmax(logits, 1)[[0, 1], [0, 1]].mean())
# sphinx_gallery_end_ignore

# %%
# - **Shape (batch, 1)**, as from a column of a table: ``labels.squeeze(1).long()``.
# - **A class for each pixel**: scores ``(batch, classes, height, width)``, labels ``(batch, height, width)``.
# - **One-hot** ``(batch, classes)``, with a single 1: ``labels.argmax(1)``. Classes last, as in texts: ``labels.argmax(-1)``
#   and ``scores.movedim(-1, 1)``.
# - **Two classes with one score**: ``BCEWithLogitsLoss`` with ``labels.float()``, in the shape of the score.
#
# What not to do
# --------------
# **Do not convert only to silence the message.** Probabilities below 1 become class 0:

probabilities = torch.tensor([0.2, 0.9])
print(probabilities.long())

# sphinx_gallery_start_ignore
assert probabilities.long().tolist() == [0, 0]
assert torch.tensor([1.0]).long().tolist() == [1]
# sphinx_gallery_end_ignore

# %%
# The same happens to class numbers in a mask that ``ToTensor`` divided by 255: load such a mask with ``PILToTensor``.
#
# **.float() for one score and two classes.** ``cross_entropy`` of scores and labels of shape ``(batch,)`` then takes the batch
# for the classes of one sample, and returns a number. With the shape ``(batch, 1)`` the loss is always 0.
#
# See also
# --------
# - :ref:`sphx_glr_gallery_errors_index_out_of_range.py`, when a label is too large.
# - :ref:`sphx_glr_gallery_errors_different_dtypes.py`, types of the inputs of a layer.
