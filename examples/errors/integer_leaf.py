r"""
Only Tensors of floating point and complex dtype can require gradients
======================================================================

.. index::
   ! single: only Tensors of floating point dtype can require gradients
   ! single: requires_grad=True on integers
   ! single: loading an int8 or int4 model fails in nn.Parameter
   ! single: Cannot flatten integer dtype tensors
   ! single: data set to a tensor that requires gradients must be floating point

.. in-short::

   A tensor of integers or booleans cannot require grad. Mostly a decimal point is missing: write ``1.0`` or convert with
   ``float()``. Indices, labels and quantized weights need no gradient: write ``requires_grad=False``.

   .. code-block:: diff

      - w = torch.tensor([1, 2], requires_grad=True)
      + w = torch.tensor([1.0, 2.0], requires_grad=True)

   **Not this:** ``scores.argmax().float().requires_grad_()``. The message is gone, and ``scores`` gets no gradient.
"""

# %%
# The code that raises it
# -----------------------

import torch

# sphinx_gallery_start_ignore
# isort: split
from torch import nn

try:
    # sphinx_gallery_end_ignore
    x = torch.tensor([0.5, 1.5])
    w = torch.tensor([1, 2], requires_grad=True)
    loss = (w * x).sum()
# sphinx_gallery_start_ignore
except RuntimeError as error:
    message = str(error)
    print("RuntimeError:", message)
assert (
    message == "Only Tensors of floating point and complex dtype can require gradients"
)


def _said(call):
    """The message of a call, or nothing."""
    try:
        call()
    except RuntimeError as error:
        return str(error)
    return ""


_integers = torch.tensor([1, 2])
assert _said(lambda: torch.arange(3, requires_grad=True)) == message
assert _said(lambda: torch.randint(3, (2,), requires_grad=True)) == message
assert _said(lambda: nn.Parameter(_integers)) == message
assert _said(lambda: nn.Linear(2, 2, dtype=torch.int8)) == message
_method = "only Tensors of floating point dtype can require gradients"
_max = torch.ones(2, 2, requires_grad=True).max(1).indices
for _tensor in (_integers, _integers > 1, _integers.to(torch.int8), _max):
    assert _said(_tensor.requires_grad_) == _method
assert _said(lambda: torch.func.grad(lambda z: (z * 1.0).sum())(_integers)) == _method
assert (
    _said(lambda: torch.autograd.functional.jacobian(torch.square, _integers))
    == _method
)
assert _said(lambda: torch.full((2,), 1, requires_grad=True)) == message
_norm = nn.BatchNorm1d(2)
assert (
    _said(lambda: [v.requires_grad_() for v in _norm.state_dict().values()]) == _method
)
_copies = [p.detach().clone().requires_grad_() for _, p in _norm.named_parameters()]
sum(copy.sum() for copy in _copies).backward()
assert all((copy.grad == 1).all() for copy in _copies) and _norm.weight.grad is None
_linked = _norm.weight.clone().requires_grad_()  # without detach: not a leaf
_linked.sum().backward()
assert not _linked.is_leaf and (_norm.weight.grad == 1).all()
assert (torch.tensor([255], dtype=torch.uint8) / 255).tolist() == [1.0]
assert _said(
    lambda: setattr(nn.Parameter(torch.ones(2)), "data", _integers)
).startswith("data set to a tensor that requires gradients must be floating point")
assert _said(lambda: setattr(_integers, "requires_grad", True)) == message.replace(
    "O", "o", 1
)
assert not _said(lambda: _integers.requires_grad_(False))
# sphinx_gallery_end_ignore

# %%
# - ``dtype``: print ``tensor.dtype``. ``torch.tensor([1, 2])``, ``torch.arange(3)`` and ``torch.full((2,), 1)`` make integers,
#   and so does the second result of ``max``. Images are often ``uint8``: most models
#   take ``image / 255``.
# - ``requires_grad_()``, ``torch.func.grad`` and ``jacobian`` say *only Tensors of floating point dtype can require gradients*.
# - **state_dict()** also has the integers of batch norm. Use ``named_parameters()``, and for copies ``p.detach().clone()``.
#
# Why
# ---
# A derivative says what a small change does, and an integer has no small changes. When ``x`` grows, ``x.long()``
# stays for a while, then jumps.

import matplotlib.pyplot as plt

x = (torch.arange(33) / 8).requires_grad_()
steps = x.long()
print("steps.requires_grad:", steps.requires_grad)

# figure: The line x rises evenly. Its integer part is a staircase: level on each step, with a
#   jump at each whole number, so its slope is 0 or does not exist.
numbers = x.detach()
_, ax = plt.subplots(figsize=(7, 2.6), layout="constrained")
ax.plot(numbers, numbers, "--", color="#64748b", label="x: slope 1")
ax.step(numbers, steps, where="post", color="#c2410c", label="x.long(): slope 0")
ax.set_title("The integer part of x does not move when x moves a little")
ax.set_xlabel("x")
ax.legend()

# sphinx_gallery_start_ignore
assert not steps.requires_grad and set((steps[1:] - steps[:-1]).tolist()) == {0, 1}
# sphinx_gallery_end_ignore

# %%
# The fix
# -------
# **Numbers to be learned:** write the decimal point, give the dtype, or convert before you ask for the gradient.

x = torch.tensor([0.5, 1.5])
w = torch.tensor([1.0, 2.0], requires_grad=True)
a = torch.tensor([1, 2], dtype=torch.float32, requires_grad=True)
b = torch.tensor([1, 2]).float().requires_grad_()
loss = ((w + a + b) * x).sum()
loss.backward()
print(w.grad, a.grad, b.grad)

# sphinx_gallery_start_ignore
assert torch.equal(w.grad, x) and torch.equal(a.grad, x) and torch.equal(b.grad, x)
# sphinx_gallery_end_ignore

# %%
# **Indices and labels** need no gradient. It belongs to what they select: here to rows 0 and 2 of a table. If you want to know
# how much each word of an input counts, take the gradient of the selected rows. In Transformers, pass them as
# ``inputs_embeds``.

from torch import nn

table = nn.Embedding(3, 2)
words = torch.tensor([0, 2])
rows = table(words).requires_grad_()  # for a frozen table
rows.retain_grad()
(rows * torch.tensor([[1.0], [5.0]])).sum().backward()
print("of the table:", table.weight.grad.tolist())
print("of the words:", rows.grad.tolist())

# sphinx_gallery_start_ignore
assert table.weight.grad.tolist() == [[1, 1], [0, 0], [5, 5]]
assert rows.grad.tolist() == [[1, 1], [5, 5]]
_frozen = table.requires_grad_(False)(words).requires_grad_()
_frozen.retain_grad()
(_frozen * torch.tensor([[1.0], [5.0]])).sum().backward()
assert torch.equal(_frozen.grad, rows.grad)
# sphinx_gallery_end_ignore

# %%
# **Masks and integer weights of a quantized layer.** In your own layer, register a buffer. For QLoRA with FSDP, which also says
# *Cannot flatten integer dtype tensors*, load 4 bits and set ``bnb_4bit_quant_storage`` to the dtype of the other weights, such
# as ``torch.bfloat16`` (`accelerate#2813 <https://github.com/huggingface/accelerate/issues/2813>`__); 8 bits has no such
# setting. In another library, try a newer version.

layer = nn.Module()
weight = torch.tensor([3, -5], dtype=torch.int8)
layer.register_buffer("weight", weight)
layer.scale = nn.Parameter(torch.tensor(0.1))
output = (layer.weight * layer.scale).sum()
output.backward()
print(list(layer.state_dict()), layer.scale.grad)

# sphinx_gallery_start_ignore
assert set(layer.state_dict()) == {"weight", "scale"} and layer.scale.grad == -2
assert not layer.weight.requires_grad and not _said(layer.requires_grad_)
assert _said(lambda: nn.Parameter(weight)) == message
_layer = nn.Module()
_layer.weight = nn.Parameter(weight, requires_grad=False)
assert _said(_layer.requires_grad_) == _method
_float = nn.Parameter(torch.zeros(2))
assert _said(lambda: setattr(_float, "data", weight)).startswith("data set to a tensor")
_float.data = weight * layer.scale
assert torch.allclose(_float, torch.tensor([0.3, -0.5])) and _float.requires_grad
assert _float.is_leaf
# sphinx_gallery_end_ignore

# %%
# After ``nn.Parameter(weight, requires_grad=False)``, ``layer.requires_grad_()`` raises. So does ``parameter.data = weight``:
# write ``weight * scale``.
#
# What not to do
# --------------
# **Convert a result back to floats.** Backward runs after ``argmax().float().requires_grad_()``, but ``guess`` is a new leaf,
# and the gradient ends there.

scores = torch.tensor([0.2, 0.7, 0.1], requires_grad=True)
guess = scores.argmax().float().requires_grad_()
((guess - 2) ** 2).backward()
print("guess.grad:", guess.grad, " scores.grad:", scores.grad)

# sphinx_gallery_start_ignore
assert scores.grad is None and guess.grad == -2
# sphinx_gallery_end_ignore

# %%
# Use the scores themselves instead: in a loss such as ``cross_entropy``, in ``log_prob`` of a sampled action, or in the mean of
# the choices weighted by ``softmax``.

choices = torch.tensor([0.0, 1.0, 2.0])
guess = (scores.softmax(-1) * choices).sum(-1)
((guess - 2) ** 2).backward()
print("scores.grad:", scores.grad)

# sphinx_gallery_start_ignore
assert scores.grad.all()
_batch = torch.randn(4, 3, requires_grad=True)
(_batch.softmax(-1) * choices).sum(-1)[0].backward()
assert _batch.grad[0].all() and not _batch.grad[1:].any()
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_functions_change_the_gradient.py`: a gradient that passes a rounding step.
# - :ref:`sphx_glr_gallery_errors_no_grad_fn.py`: the error if an integer stands between the weights and the loss.
# - In PyTorch's reference: `torch.Tensor.requires_grad
#   <https://docs.pytorch.org/docs/stable/generated/torch.Tensor.requires_grad.html>`__.
