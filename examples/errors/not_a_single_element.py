r"""
a Tensor with 3 elements cannot be converted to Scalar
======================================================

.. index::
   ! single: loss.item() fails with reduction="none" or with several GPUs
   ! single: only one element tensors can be converted to Python scalars
   ! single: only integer tensors of a single element can be converted to an index
   ! single: torch.tensor of a list of tensors raises
   ! single: Boolean value of Tensor with more than one value is ambiguous
   ! single: if tensor == tensor raises
   ! single: boolean and, or, not on tensors
   ! single: tensor in list raises
   ! single: iteration over a 0-d tensor, len() of a 0-d tensor

.. in-short::

   ``.item()`` turns a tensor with one element into a Python number. Yours has more, often one for each sample. First take the
   mean of losses, or the sum of right answers. For all numbers, use ``tolist()``.

   .. code-block:: diff

        losses = F.cross_entropy(scores, labels, reduction="none")
      - total += losses.item()
      + total += losses.mean().item()

   **Not this:** ``losses[0].item()``. It is the loss of the first sample.
"""

# %%
# The code that raises it
# -----------------------

import torch
import torch.nn.functional as F

# sphinx_gallery_start_ignore
# isort: split
import math

try:
    # sphinx_gallery_end_ignore
    scores = torch.tensor([[2.0, 0.0], [0.5, 0.0], [1.5, 0.0]])
    labels = torch.tensor([0, 0, 1])

    total = 0.0
    losses = F.cross_entropy(scores, labels, reduction="none")
    total += losses.item()
# sphinx_gallery_start_ignore
except RuntimeError as error:
    message = str(error)
    print("RuntimeError:", message)
assert message == "a Tensor with 3 elements cannot be converted to Scalar"


def says(call):
    try:
        return call()
    except (RuntimeError, ValueError, TypeError, IndexError) as error:
        return f"{type(error).__name__}: {error}"


assert says(lambda: torch.ones(1, 1, 1).item()) == 1.0
assert "a Tensor with 0 elements" in says(lambda: torch.ones(0).item())
assert torch.ones(0).mean().isnan()
# sphinx_gallery_end_ignore

# %%
# ``3 elements`` is often the batch size, or the number of GPUs. With ``0 elements`` the tensor is empty: ``nonzero()`` found
# nothing, for example.
#
# Python's own conversions say it differently:

names = ["cat", "dog"]
classes = scores.argmax(dim=1)
for call in (
    lambda: float(losses),
    lambda: torch.tensor([losses, losses]),
    lambda: names[classes],
    lambda: f"{losses:.2f}",
):
    try:
        call()
    except (TypeError, ValueError) as error:
        print(f"{type(error).__name__}: {error}")

# sphinx_gallery_start_ignore
_float = "ValueError: only one element tensors can be converted to Python scalars"
_index = (
    "TypeError: only integer tensors of a single element can be converted to an index"
)
assert says(lambda: float(losses)) == _float
assert says(lambda: names[classes]) == _index
assert says(lambda: torch.tensor([losses, losses])) == _float
for _call in (int, math.sqrt):
    assert says(lambda call=_call: call(losses)) == _float
for _call in (range, lambda x: losses[:x]):
    assert says(lambda call=_call: call(classes)) == _index
assert says(lambda: torch.tensor([classes, classes])) == _index
assert says(lambda: names[torch.tensor(3) / 2]) == _index
assert names[torch.tensor(3) // 2] == names[int(torch.tensor(1.5))] == "dog"
assert says(lambda: (classes > 5).nonzero().item()) == (
    "RuntimeError: a Tensor with 0 elements cannot be converted to Scalar"
)
for _shape in ((3,), (1,), (1, 1)):
    assert says(lambda s=_shape: f"{torch.ones(s):.2f}").startswith(
        "TypeError: unsupported format string passed to Tensor.__format__"
    )
assert f"{losses.mean():.2f}" == "0.77"
# sphinx_gallery_end_ignore

# %%
# - ``only one element tensors``: ``float()``, ``int()``, ``math.sqrt``, and ``torch.tensor`` of a list of tensors.
# - ``to an index``: ``torch.tensor`` of a list of integer tensors, the place in a list, ``range`` or a slice. A single float
#   says this too: write ``int(i)``.
# - ``unsupported format string``: ``.2f`` of a tensor with a dimension, even with one element.
#
# Why
# ---
# A tensor of three losses is three numbers, and Python wants one: the sum, the mean or the first?

import matplotlib.pyplot as plt

# figure: Three bars, the losses of three samples: small, medium and large. A line shows their mean, well above the first bar.
fig, ax = plt.subplots(figsize=(6, 1.9), layout="constrained")
ax.barh(["sample 0", "sample 1", "sample 2"], losses.tolist(), color="#2563eb")
ax.axvline(losses.mean().item(), color="#c2410c")
ax.annotate("mean", (losses.mean().item() + 0.02, 0), color="#c2410c", va="center")
ax.set(xlabel="loss", title="Three losses: which one is the number?")
ax.invert_yaxis()

# sphinx_gallery_start_ignore
assert losses[0] < losses[1] < losses.mean() < losses[2]
# sphinx_gallery_end_ignore

# %%
# The fix
# -------
# For a loss, use the mean:

losses = F.cross_entropy(scores, labels, reduction="none")
total += losses.mean().item()
print(f"{total:.4f}  {F.cross_entropy(scores, labels):.4f}")

# sphinx_gallery_start_ignore
assert math.isclose(total, F.cross_entropy(scores, labels).item(), rel_tol=1e-6)
_ignored, _weight = torch.tensor([0, 1, -100]), torch.tensor([1.0, 3.0])
for _labels in (labels, _ignored):
    for _options in ({}, {"weight": _weight}):
        _each = F.cross_entropy(scores, _labels, reduction="none", **_options)
        _mean = F.cross_entropy(scores, _labels, **_options)
        _differs = bool(_options) or _labels is _ignored
        assert torch.isclose(_each.mean(), _mean) != _differs
_each = F.cross_entropy(scores, _ignored.clamp(min=0), reduction="none")
_mask = torch.tensor([1.0, 1.0, 0.0])
_mean = F.cross_entropy(scores, _ignored)
_raw = F.cross_entropy(scores, _ignored, reduction="none")
for _losses, _keep in (
    (_each, _mask.bool()),
    (_each, _mask.long().bool()),
    (_raw, _ignored != -100),
):
    assert torch.isclose(_losses[_keep].sum() / _keep.sum().clamp(min=1), _mean)
assert not torch.isclose((_each * _mask).mean(), _mean)
_nothing = torch.zeros(3).bool()
assert _each[_nothing].sum() / _nothing.sum().clamp(min=1) == 0
assert _each[_nothing].mean().isnan()
assert F.cross_entropy(scores, torch.full((3,), -100)).isnan()
_long = torch.ones(70_000, dtype=torch.float16)  # a sum in half precision is inf
assert _long.sum().isinf() and _long.bool().sum() == 70_000
# sphinx_gallery_end_ignore

# %%
# With ``weight=``, leave out ``reduction="none"``: ``F.cross_entropy`` then divides by the weights. With labels of −100 or a
# mask of zeros and ones, set ``keep = labels != -100`` or ``keep = mask.bool()``, and use
# ``losses[keep].sum() / keep.sum().clamp(min=1)``, which is 0 rather than NaN if nothing is left.
#
# Call ``backward`` on the mean, and then ``.item()`` for your log: a Python number has no graph. The other usual cases:

correct = (classes == labels).sum().item()  # both have the shape (batch,)
print(correct, "of", len(labels))
print([names[i] for i in classes])  # one name for each sample
print([i for i, keep in zip(range(3), losses > 1, strict=True) if keep])  # with a mask
print(tuple(torch.stack([losses, losses]).shape))  # for tensors of one shape
print(losses.tolist())  # all numbers

# sphinx_gallery_start_ignore
assert correct == 2
assert says(lambda: (classes == labels).item()) == f"RuntimeError: {message}"
assert [names[i] for i in classes] == ["cat", "cat", "cat"]
_mask = losses > 1
assert says(lambda: range(3)[_mask]) == _index and _mask.tolist() == [
    False,
    False,
    True,
]
assert [i for i, keep in zip(range(3), _mask, strict=True) if keep] == [2]
assert [range(3)[i] for i in _mask] == [0, 0, 1]  # not this: True is the place 1
assert torch.stack([losses, losses]).shape == (2, 3)
_kept = torch.ones(2, requires_grad=True) * 2
assert torch.stack([_kept, _kept]).requires_grad
_gpus = torch.arange(5.0).chunk(2)
assert torch.stack([part.mean() for part in _gpus]).mean() != torch.cat(_gpus).mean()
# sphinx_gallery_end_ignore

# %%
# **Several GPUs with nn.DataParallel.** A model that returns its loss gives one for each GPU. Use ``loss.mean()`` if all GPUs
# get the same number of samples. For a Trainer of Transformers, start the script with ``torchrun``: each process then has one.
#
# Boolean value of Tensor with more than one value is ambiguous
# -------------------------------------------------------------
# ``if`` wants one yes or no, and a comparison gives one for each element:

import torch

# sphinx_gallery_start_ignore
raised = []
try:
    # sphinx_gallery_end_ignore
    prediction = torch.tensor([1, 2, 3])
    target = torch.tensor([1, 2, 4])
    if prediction == target:
        correct = True
# sphinx_gallery_start_ignore
except RuntimeError as error:
    raised.append(str(error))
    print("RuntimeError:", error)
assert raised == ["Boolean value of Tensor with more than one value is ambiguous"]
_said = f"RuntimeError: {raised[0]}"
for _statement in ("while p: break", "assert p", "0 < p and p < 5", "p or 1", "not p"):
    assert says(lambda s=_statement: exec(s, {"p": prediction})) == _said
_values = [prediction, target]
_outputs, _targets = torch.ones(4, 2), torch.ones(4, 2)
for _call in (
    lambda: torch.nn.MSELoss(_outputs, _targets),
    lambda: F.mse_loss(_outputs, _targets, _outputs),
    lambda: target in [2, 3],
    lambda: target > 1 or target < 0,
    lambda: target in _values,
    lambda: _values.index(target),
    lambda: max(prediction, target),
    lambda: max(prediction, 0),
    lambda: 0 < prediction < 5,
    lambda: 1 if prediction > 2 else 0,
    lambda: (True and target) or prediction,
):
    assert says(_call) == _said
for _new, _is, _equal in ((target, True, True), (target.clone(), False, True)):
    assert any(t is _new for t in _values) == _is
    assert any(torch.equal(t, _new) for t in _values) == _equal
assert torch.nn.MSELoss()(_outputs, _targets) == 0
assert torch.isin(target, torch.tensor([2, 3])).tolist() == [False, True, False]
assert torch.equal(torch.maximum(prediction, target), target)
assert (prediction - 2).clamp(min=0).tolist() == [0, 0, 1]
# sphinx_gallery_end_ignore

# %%
# Look at the line of your code that is last in the traceback:
#
# .. list-table::
#    :header-rows: 1
#    :widths: 46 54
#
#    * - the line
#      - write
#    * - ``nn.MSELoss(outputs, targets)``: tensors for a class
#      - ``nn.MSELoss()(outputs, targets)``
#    * - ``if a == b: correct += 1``
#      - ``correct += (a == b).sum().item()``, both of shape ``(batch,)``; if each row is one answer,
#        ``(a == b).all(dim=1).sum().item()``
#    * - ``if a == b:``
#      - ``if torch.equal(a, b):``, with a number ``if (a == b).all():``; ``.any()``, if one equal element is enough
#    * - ``if x:``, ``x or y``, where ``x`` may be ``None``
#      - ``if x is not None:``, ``x if x is not None else y``
#    * - ``flag and x or y``
#      - ``x if flag else y``
#    * - ``if x > 0:`` for a choice for each element
#      - ``torch.where(x > 0, x, 0)``; with a root or a logarithm, see :ref:`sphx_glr_gallery_errors_nan_in_backward.py`
#    * - ``0 < x < 5``, ``0 < x and x < 5``
#      - ``(0 < x) & (x < 5)``; for ``or``, write ``|``
#    * - ``max(x, 0)``, ``max(a, b)``
#      - ``x.clamp(min=0)``, ``torch.maximum(a, b)``
#    * - ``x in [2, 3]``
#      - ``torch.isin(x, torch.tensor([2, 3], device=x.device))``
#    * - ``x in tensors``
#      - ``any(t is x for t in tensors)``; for equal numbers ``any(torch.equal(t, x) for t in tensors)``
#    * - ``tensors.index(x)``
#      - ``[t is x for t in tensors].index(True)``
#    * - ``if score > best:``
#      - ``if score.mean() > best:``, if ``score`` has one number for each sample

print("same shape, all equal:", torch.equal(prediction, target))
print("any equal:            ", (prediction == target).any().item())
print("equal up to rounding: ", torch.allclose(prediction / 3, target / 3))
print("between 1 and 4:      ", ((target > 1) & (target < 4)).tolist())

# sphinx_gallery_start_ignore
assert not torch.equal(prediction, target)
assert ((target > 1) & (target < 4)).tolist() == [False, True, False]
assert "no values is ambiguous" in says(lambda: bool(torch.ones(0)))
assert says(lambda: exec("if p == 2: pass", {"p": prediction})) == _said
assert (prediction == 2).any() and not (prediction == 2).all()
# counted in two batches of three: 3 and 2 are right, though all() holds for one
_right = [(prediction, prediction), (prediction, target)]
assert sum((p == t).sum().item() for p, t in _right) == 5
assert sum(1 for p, t in _right if (p == t).all()) == 1
# a column against a row compares each with each, and of a sequence all must be right
assert (prediction == prediction).sum() == 3
assert (prediction[:, None] == torch.ones(3)).sum() == 3  # one is right
_rows, _answers = torch.tensor([[1, 2], [3, 4]]), torch.tensor([[1, 2], [3, 5]])
assert (_rows == _answers).sum() == 3 and (_rows == _answers).all(dim=1).sum() == 1
assert [t is target for t in _values].index(True) == 1
assert says(lambda: torch.equal(prediction, 2)).startswith("TypeError")
_ones = torch.ones(3)
assert (_ones == _ones[0]).all() and not torch.equal(_ones, _ones[0])  # shapes
# sphinx_gallery_end_ignore

# %%
# iteration over a 0-d tensor
# ---------------------------
# The opposite: a tensor with one number and no dimension. ``squeeze()`` of a batch of one makes it:

import torch

# sphinx_gallery_start_ignore
try:
    # sphinx_gallery_end_ignore
    scores = torch.tensor([[0.1, 0.7, 0.2]])  # the last batch: one sample
    for label in scores.argmax(dim=1).squeeze():
        print(label)
# sphinx_gallery_start_ignore
except TypeError as error:
    raised.append(str(error))
    print("TypeError:", error)
assert raised[1:] == ["iteration over a 0-d tensor"]
assert scores.argmax(dim=1).squeeze(0).dim() == 0  # the name alone does not help
assert torch.ones(1, 1).squeeze(1).shape == (1,)
_loss = torch.tensor(0.5)
for _call in (lambda: [*_loss], lambda: any(_loss <= 0), lambda: sum(_loss)):
    assert says(_call) == "TypeError: iteration over a 0-d tensor"
assert says(lambda: len(_loss)) == "TypeError: len() of a 0-d tensor"


def _repackage(h):  # as an old example has it: nothing of a tensor is a Variable's type
    return h.detach() if type(h).__name__ == "Variable" else tuple(map(_repackage, h))


assert says(lambda: _repackage(torch.ones(1, 2))) == (
    "TypeError: iteration over a 0-d tensor"
)
# sphinx_gallery_end_ignore

# %%
# - **squeeze()**: leave it out. For ``(batch, 1)``, name the dimension: ``squeeze(1)``.
# - **for, sum(), any(), len(), *loss** on a single loss: it is one number already. Use ``loss`` itself, ``(x <= 0).any()``.
# - **loss, output = f(...)**: ``f`` returns only the loss. Write ``loss = f(...)``.
# - **repackage_hidden(h)**: begin it with ``if isinstance(h, torch.Tensor): return h.detach()``.

print([label.item() for label in scores.argmax(dim=1)])


# sphinx_gallery_start_ignore
def repackage_hidden(h):
    if isinstance(h, torch.Tensor):
        return h.detach()
    return tuple(repackage_hidden(v) for v in h)


assert [label.item() for label in scores.argmax(dim=1)] == [1]
_h = torch.ones(1, 2, requires_grad=True) * 2
assert not any(v.requires_grad for v in repackage_hidden((_h, _h)))
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_errors_not_a_scalar.py`, when ``backward`` wants a single loss.
# - :ref:`sphx_glr_gallery_errors_stack_unequal_sizes.py`.
# - In PyTorch's reference: `Tensor.item <https://docs.pytorch.org/docs/stable/generated/torch.Tensor.item.html>`__.
