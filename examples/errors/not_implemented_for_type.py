r"""
"log_softmax_lastdim_kernel_impl" not implemented for 'Long'
============================================================

.. index::
   ! single: mean(): could not infer output dtype. Got: Bool
   ! single: the arguments of a loss in the wrong order
   ! single: Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int
   ! single: "addmm_impl_cpu_" not implemented for 'Half'

.. in-short::

   This function computes with floating point numbers, and got integers: *Long* is ``int64``. In a loss, the scores come first
   and the labels second. Elsewhere, convert: ``x.float()``.

   .. code-block:: diff

      - loss = F.cross_entropy(labels, scores)
      + loss = F.cross_entropy(scores, labels)

   **Not this:** ``.float()`` for everything. The labels of ``F.cross_entropy``, and the indices of an embedding, must stay
   integers.
"""

# %%
# The code that raises it
# -----------------------

import torch
import torch.nn.functional as F

# sphinx_gallery_start_ignore
# isort: split
import matplotlib.pyplot as plt
from matplotlib.colors import ListedColormap

try:
    # sphinx_gallery_end_ignore
    scores = torch.tensor([[2.0, 0.0, 1.0], [0.0, 3.0, 1.0]])
    labels = torch.tensor([0, 1])
    loss = F.cross_entropy(labels, scores)
# sphinx_gallery_start_ignore
except NotImplementedError as error:
    message = str(error)
    print("NotImplementedError:", message)
assert message == "\"log_softmax_lastdim_kernel_impl\" not implemented for 'Long'"


def says(call):
    try:
        return f"no message, {call().dtype}"
    except (NotImplementedError, RuntimeError, ValueError, IndexError) as error:
        return f"{type(error).__name__}: {error}"


_whole = scores.long()  # scores that are integers
assert (
    says(lambda: F.cross_entropy(_whole, labels)) == f"NotImplementedError: {message}"
)
assert "\"softmax_lastdim_kernel_impl\" not implemented for 'Long'" in says(
    lambda: _whole.softmax(1)
)
assert "\"mse_cpu\" not implemented for 'Long'" in says(
    lambda: F.mse_loss(labels, labels)
)
for _dtype, _name in (
    (torch.int64, "Long"),
    (torch.int32, "Int"),
    (torch.uint8, "Byte"),
    (torch.bool, "Bool"),
    (torch.complex64, "ComplexFloat"),
):
    assert says(lambda d=_dtype: scores.to(d).log_softmax(1)).endswith(f"'{_name}'")
# sphinx_gallery_end_ignore

# %%
# - ``"log_softmax_lastdim_kernel_impl"``: the code inside PyTorch. Its name often tells the function: here ``log_softmax``,
#   which ``cross_entropy`` computes first.
# - ``'Long'``: the type that arrived. *Long* is ``int64``, *Int* ``int32``, *Byte* ``uint8``, *Bool* ``bool``, *Half*
#   ``float16``, *Float* ``float32``, *Double* ``float64``, *ComplexFloat* ``complex64``. If it is *Float*, you need the
#   opposite: see masks, below.
#
# Why
# ---
# Each function has code for some types. A mean or a probability is a fraction, which an integer cannot hold. A place in a table
# is an integer, and 1.5 is no place. Each of these functions was called with six types, on a CPU:

# figure: A grid of functions and types. Sum and product of matrices run for integers and floating point numbers. Mean, softmax,
#   mse_loss and cross_entropy run for floating point numbers only. Embedding takes int32 and int64, one_hot int64 only.
functions = {
    "x + x": lambda x: x + x,
    "x @ x": lambda x: x @ x,
    "mean, std": lambda x: x.mean() + x.std(),
    "softmax": lambda x: x.softmax(0),
    "mse_loss": lambda x: F.mse_loss(x, x),
    "cross_entropy, scores": lambda x: F.cross_entropy(x, torch.tensor([0, 1])),
    "embedding, indices": lambda x: F.embedding(x, torch.ones(2, 2)),
    "one_hot": lambda x: F.one_hot(x),
}

# sphinx_gallery_start_ignore
types = ["bool", "uint8", "int32", "int64", "float16", "float32"]
x = torch.eye(2)
runs = [
    ["no message" in says(lambda f=f, d=d: f(x.to(getattr(torch, d)))) for d in types]
    for f in functions.values()
]
fig, ax = plt.subplots(figsize=(7, 2.6), layout="constrained")
colors = ListedColormap(["#94a3b8", "#2563eb"])
ax.pcolormesh(runs, cmap=colors, vmin=0, vmax=1, edgecolors="w", linewidth=2)
ax.set_xticks([i + 0.5 for i in range(6)], types)
ax.set_yticks([i + 0.5 for i in range(8)], list(functions))
ax.tick_params(length=0)
ax.invert_yaxis()
ax.set_title("Blue: it runs. Gray: it raises.")

assert dict(zip(functions, runs, strict=True)) == {
    "x + x": [True] * 6,
    "x @ x": [False] + [True] * 5,
    "mean, std": [False] * 4 + [True] * 2,
    "softmax": [False] * 4 + [True] * 2,
    "mse_loss": [False] * 4 + [True] * 2,
    "cross_entropy, scores": [False] * 4 + [True] * 2,
    "embedding, indices": [False, False, True, True, False, False],
    "one_hot": [False, False, False, True, False, False],
}
# sphinx_gallery_end_ignore

# %%
# The fix
# -------
# Losses take the output of the model first, and then the labels:

loss = F.cross_entropy(scores, labels)
print(loss)

# sphinx_gallery_start_ignore
assert torch.allclose(loss, -torch.log_softmax(scores, 1)[[0, 1], [0, 1]].mean())
# sphinx_gallery_end_ignore

# %%
# **An accuracy** is the mean of True and False. Here ``says`` returns the message of a call, or the type of its result:

correct = scores.argmax(dim=1) == labels
print(says(lambda: correct.mean()))
print(says(lambda: correct.float().mean()))

# sphinx_gallery_start_ignore
TORCH = tuple(int(part) for part in torch.__version__.split(".")[:2])
_kind = "NotImplementedError" if TORCH >= (2, 15) else "RuntimeError"
assert says(lambda: correct.mean()) == (
    f"{_kind}: mean(): could not infer output dtype. Input dtype must be either a floating "
    "point or complex dtype. Got: Bool"
)
assert says(lambda: labels.mean()).endswith("Got: Long")
assert says(lambda: labels.std()).endswith(
    "std and var only support floating point and complex dtypes"
)
assert says(lambda: correct.float().mean()) == "no message, torch.float32"
# sphinx_gallery_end_ignore

# %%
# Earlier versions said *Can only calculate the mean of floating types. Got Long instead.*
#
# .. torch-changed:: 2.15
#    :probe: refuses: torch.ones(2, dtype=torch.bool).mean()
#
#    The error has another type (`pytorch#192351 <https://github.com/pytorch/pytorch/pull/192351>`__). An ``except
#    RuntimeError`` still catches it.
#
# **Images or counts** as integers: ``image.float() / 255``, ``counts.float()``. If the integers are the ids of words, the
# embedding is missing.
#
# **Words for an embedding** go the other way, from float to integer. ``torch.Tensor`` with a capital T makes ``float32`` of
# whole numbers (or the default type that you set); ``torch.tensor`` makes ``int64``:

from torch import nn

embedding = nn.Embedding(10, 4)
print(says(lambda: embedding(torch.Tensor([1, 4]))))
print(says(lambda: embedding(torch.tensor([1, 4]))))

# sphinx_gallery_start_ignore
assert says(lambda: embedding(torch.Tensor([1, 4]))) == (
    "RuntimeError: Expected tensor for argument #1 'indices' to have one of the following scalar types: "
    "Long, Int; but got torch.FloatTensor instead (while checking arguments for embedding)"
)
assert says(lambda: embedding(torch.tensor([1, 4]))) == "no message, torch.float32"
# sphinx_gallery_end_ignore

# %%
# **Masks** go from float to bool. ``&``, ``|`` and ``^`` have no code for floating point numbers:

mask = torch.tensor([1.0, 0.0])
print(says(lambda: mask & mask))
print(says(lambda: mask.bool() & mask.bool()))

# sphinx_gallery_start_ignore
assert says(lambda: mask & mask) == (
    "NotImplementedError: \"bitwise_and_cpu\" not implemented for 'Float'"
)
assert says(lambda: mask | mask).endswith("not implemented for 'Float'")
assert says(lambda: mask ^ mask).endswith("not implemented for 'Float'")
assert says(lambda: mask.bool() & mask.bool()) == "no message, torch.bool"
# sphinx_gallery_end_ignore

# %%
# **Half precision on a CPU.** Users of earlier versions met *"addmm_impl_cpu_" not implemented for 'Half'*, as `in this report
# <https://github.com/huggingface/transformers/issues/27769>`__. In PyTorch 2.13 these layers run:

half = torch.ones(1, 4, dtype=torch.float16)
print(says(lambda: nn.Linear(4, 2).half()(half)))
print(says(lambda: nn.Conv1d(1, 2, 3).half()(half)))
print(says(lambda: nn.LayerNorm(4).half()(half)))

# sphinx_gallery_start_ignore
assert says(lambda: nn.Linear(4, 2).half()(half)) == "no message, torch.float16"
assert says(lambda: nn.Conv1d(1, 2, 3).half()(half)) == "no message, torch.float16"
assert says(lambda: nn.LayerNorm(4).half()(half)) == "no message, torch.float16"
_both = nn.Linear(4, 2).half().float()
assert "must have the same dtype" in says(lambda: _both(half))
assert says(lambda: _both(half.float())) == "no message, torch.float32"
assert "Low precision dtypes not supported. Got Half" in says(
    lambda: torch.linalg.inv(torch.eye(2).half())
)
# sphinx_gallery_end_ignore

# %%
# Where a function has no code for ``float16``, use ``float32`` for both, the model and its input: ``model.float()`` and
# ``x.float()``.
#
# What not to do
# --------------
# **Do not convert the result of argmax to use it in a loss.** The message is gone, and so is the gradient:

scores.requires_grad_()
loss = F.mse_loss(scores.argmax(dim=1).float(), labels.float())
print(loss.requires_grad)

# sphinx_gallery_start_ignore
assert not loss.requires_grad
assert "not implemented for 'Long'" in says(
    lambda: F.mse_loss(scores.argmax(dim=1), labels)
)
# sphinx_gallery_end_ignore

# %%
# **Do not keep ids as floating point numbers.** ``float32`` holds all whole numbers up to 16,777,216. Above that it
# skips some:

print(torch.tensor([16_777_216, 16_777_217]).float().long())

# sphinx_gallery_start_ignore
assert torch.tensor([16_777_217]).float().long() == 2**24
_all = torch.arange(2**24 + 1, dtype=torch.int32)
assert torch.equal(_all.float().int(), _all)
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_errors_wrong_target_dtype.py`, the type that each loss wants for its target.
# - :ref:`sphx_glr_gallery_errors_different_dtypes.py`, when two types meet.
# - In PyTorch's reference: `the types of tensors <https://docs.pytorch.org/docs/stable/tensor_attributes.html>`__.
