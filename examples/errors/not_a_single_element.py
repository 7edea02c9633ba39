r"""
a Tensor with 3 elements cannot be converted to Scalar
======================================================

.. index::
   ! single: loss.item() fails with reduction="none" or with several GPUs
   ! single: only one element tensors can be converted to Python scalars
   ! single: only integer tensors of a single element can be converted to an index
   ! single: torch.tensor of a list of tensors raises

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
    except (RuntimeError, ValueError, TypeError) as error:
        return f"{type(error).__name__}: {error}"


assert says(lambda: torch.ones(1, 1, 1).item()) == 1.0
assert "a Tensor with 0 elements" in says(lambda: torch.ones(0).item())
assert torch.ones(0).mean().isnan()
# sphinx_gallery_end_ignore

# %%
# ``3 elements`` is often the batch size. With ``0 elements`` the tensor is empty, and its mean is ``nan``.
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
for _call in (range, lambda x: losses[:x], lambda x: torch.tensor([x, x])):
    assert says(lambda call=_call: call(classes)) == _index
assert says(lambda: names[torch.tensor(1.0)]) == _index
for _shape in ((3,), (1,), (1, 1)):
    assert says(lambda s=_shape: f"{torch.ones(s):.2f}").startswith(
        "TypeError: unsupported format string passed to Tensor.__format__"
    )
assert f"{losses.mean():.2f}" == "0.77"
# sphinx_gallery_end_ignore

# %%
# - ``only one element tensors``: ``float()``, ``int()``, ``math.sqrt``, and ``torch.tensor`` of a list of tensors. (For integer
#   tensors, ``torch.tensor`` can say ``to an index``.)
# - ``to an index``: the place in a list, ``range`` or a slice. A single floating point number raises it there, too.
# - ``unsupported format string``: a tensor with a dimension, even with one element, and a format such as ``.2f``. A number,
#   ``losses.mean()``, takes the format.
#
# Why
# ---
# A tensor of three losses is three numbers, and Python wants one. PyTorch could take the sum, the mean or the first, so it does
# not guess. With a batch of one sample there is one number, so ``.item()`` works until the batch is larger.

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
# For a loss, use the mean, as without ``reduction="none"``:

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
_each = _each * torch.tensor([1.0, 1.0, 0.0])
_mean = F.cross_entropy(scores, _ignored)
assert torch.isclose(_each.sum() / 2, _mean) and not torch.isclose(_each.mean(), _mean)
# sphinx_gallery_end_ignore

# %%
# With ``ignore_index`` or ``weight=``, the mean of ``F.cross_entropy`` can differ: it counts only used labels, with their
# weights. For that one, leave out ``reduction="none"``. With a mask of zeros and ones, use
# ``(losses * mask).sum() / mask.sum()``, because a plain mean counts the padding. And if the last batch is smaller, the mean
# of the batch means is :ref:`not the mean of all samples <sphx_glr_gallery_training_unequal_batches.py>`.
#
# The other usual cases:

correct = (classes == labels).sum().item()  # of the batch; without .sum() it raises
print(correct, "of", len(labels))
print([names[i] for i in classes])  # one name for each sample
print(tuple(torch.stack([losses, losses]).shape))  # instead of torch.tensor([...])
print(losses.tolist())  # all numbers

# sphinx_gallery_start_ignore
assert correct == 2
assert says(lambda: (classes == labels).item()) == f"RuntimeError: {message}"
assert [names[i] for i in classes] == ["cat", "cat", "cat"]
assert torch.stack([losses, losses]).shape == (2, 3)
# sphinx_gallery_end_ignore

# %%
# - **Several GPUs with nn.DataParallel.** A model that returns its loss gives one for each GPU, as a user `reports
#   <https://github.com/zhaozhengChen/ReCAM/issues/4>`__. Use ``loss.mean()``. (This page ran without a GPU.)
# - **Samples of different lengths** in the list: see :ref:`sphx_glr_gallery_errors_stack_unequal_sizes.py`.
#
# What not to do
# --------------
# **Do not take the first element.** It is the loss of one sample.
#
# **Do not call .item() and then backward.** A Python number has no graph. Call ``backward`` on the mean, and then ``.item()``
# for your log.

total = losses.mean().item()
print(type(total), hasattr(total, "backward"))

# sphinx_gallery_start_ignore
assert type(total) is float and not hasattr(total, "backward")
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_errors_not_a_scalar.py`, when ``backward`` wants a single loss.
# - :ref:`sphx_glr_gallery_errors_ambiguous_truth.py`, the same question in an ``if``.
# - In PyTorch's reference: `Tensor.item <https://docs.pytorch.org/docs/stable/generated/torch.Tensor.item.html>`__.
