r"""
Can't call numpy() on Tensor that requires grad
===============================================

.. index::
   ! single: plotting a tensor that requires grad with matplotlib fails
   ! single: part of the loss is computed with NumPy and has no effect on training

.. in-short::

   You plot, average or log a tensor that still belongs to a graph, and a NumPy array cannot carry the graph. Store numbers
   with ``loss.item()``, or convert with ``x.detach().numpy()``.

   .. code-block:: diff

      - losses.append(loss)
      + losses.append(loss.item())

   **Not this:** ``detach()`` inside a computation that leads to the loss. The message is gone, and a part of the gradient, too.
"""

# %%
# The code that raises it
# -----------------------

import matplotlib.pyplot as plt
import torch
from torch.nn import functional

torch.manual_seed(0)

# sphinx_gallery_start_ignore
# isort: split
import warnings

import numpy as np

try:
    # sphinx_gallery_end_ignore
    model = torch.nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    batches = [(torch.rand(8, 3), torch.rand(8, 1)) for _ in range(5)]

    losses = []
    for x, y in batches:
        optimizer.zero_grad()
        loss = functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss)

    plt.plot(losses)
# sphinx_gallery_start_ignore
except RuntimeError as error:
    message = str(error)
    print("RuntimeError:", message)
plt.close("all")
assert message == (
    "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead."
)
assert len(losses) == 5 and all(loss.requires_grad for loss in losses)


def _message(call):
    try:
        call()
    except (RuntimeError, TypeError) as error:
        return f"{type(error).__name__}: {error}"
    return ""


prediction = model(x)
with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # by NumPy, for np.array
    _said = [
        _message(call)
        for call in (
            lambda: np.mean(losses),
            lambda: np.array(prediction),
            lambda: plt.scatter(y, prediction),
            lambda: prediction * np.ones((8, 1)),
        )
    ]
plt.close("all")
assert _said == [f"RuntimeError: {message}"] * 4
# sphinx_gallery_end_ignore

# %%
# You do not see ``numpy()`` in your code? NumPy and Matplotlib call it on the tensors that you give them. ``np.mean(losses)``,
# ``np.array(prediction)``, ``plt.scatter(y, prediction)`` and ``prediction * np.ones((8, 1))`` raise the same message. Older
# versions write *Can't call numpy() on Variable that requires grad. Use var.detach().numpy() instead.*
#
# Why
# ---
# An array holds numbers and nothing else. What NumPy computes from it is not recorded, and the result comes back as a
# constant. Here :math:`z = w^2 + \sqrt{w^2}`, and the root is computed by NumPy.

import numpy as np

w = torch.tensor(3.0, requires_grad=True)
y = w**2
root = torch.tensor(np.sqrt(y.detach().numpy()))
z = y + root
z.backward()

# graph: z -- The root went through NumPy: it enters z as a constant, and no path leads from it to w

print(f"z = {z.item()}, root.requires_grad = {root.requires_grad}")
print(f"w.grad = {w.grad.item()}")

# sphinx_gallery_start_ignore
assert z.item() == 12 and not root.requires_grad and w.grad.item() == 6
# sphinx_gallery_end_ignore

# %%
# The value is right, but the gradient should be :math:`2w + 1`, which is 7. The error exists so that you notice this.
#
# The fix
# -------
# **To log or plot losses**: ``loss.item()`` is a Python number. A list of numbers also keeps no graphs in memory.

losses = []
for x, y in batches:
    optimizer.zero_grad()
    loss = functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())

figure, ax = plt.subplots(figsize=(7, 2.5), layout="constrained")
ax.plot(losses)
ax.set(title="Five losses, stored as numbers", xlabel="step", ylabel="loss")

# figure: A curve through the losses of five steps. The last is below the first.

# sphinx_gallery_start_ignore
assert all(isinstance(loss, float) for loss in losses) and losses[-1] < losses[0]
# sphinx_gallery_end_ignore

# %%
# **To look at a tensor**: ``x.detach().numpy()``. For a tensor on a GPU use ``x.detach().cpu().numpy()``.
# ``x.numpy(force=True)`` works for both.

prediction = model(torch.rand(2, 3))
print(prediction.detach().numpy())

# sphinx_gallery_start_ignore
assert np.shares_memory(prediction.detach().numpy(), prediction.numpy(force=True))
# sphinx_gallery_end_ignore

# %%
# **To evaluate a model**: results that are computed under ``no_grad`` are not recorded, so you can convert them. A view is the
# exception: ``model.weight[0]`` still requires grad after the block, and needs ``detach()``.

with torch.no_grad():
    prediction = model(torch.rand(2, 3))
print(prediction.numpy())

# sphinx_gallery_start_ignore
with torch.no_grad():
    _row, _product = model.weight[0], model.weight[0] * 1
assert _message(_row.numpy) == f"RuntimeError: {message}"
assert _message(_product.numpy) == _message(_row.detach().numpy) == ""
# sphinx_gallery_end_ignore

# %%
# **In a computation that leads to the loss**: use PyTorch's own function, which is recorded. If there is none, write
# :ref:`a Function with its own backward <sphx_glr_gallery_functions_exp_function.py>`.

w.grad = None
y = w**2
z = y + torch.sqrt(y)
z.backward()
print(f"z = {z.item()}, w.grad = {w.grad.item()}")

# sphinx_gallery_start_ignore
assert w.grad.item() == 7

_elsewhere = _message(torch.ones(2, device="meta").numpy)
assert _elsewhere.startswith("TypeError: can't convert meta device type tensor to")
_short = torch.ones(2, dtype=torch.bfloat16)
assert _message(_short.numpy) == "TypeError: Got unsupported ScalarType BFloat16"
assert _short.float().numpy().tolist() == [1, 1]
_complex = torch.ones(2, dtype=torch.complex64).conj()
assert "that has conjugate bit set" in _message(_complex.numpy)
assert _complex.resolve_conj().numpy().tolist() == [1, 1]
# sphinx_gallery_end_ignore

# %%
# Messages that are close to this one
# -----------------------------------
# - ``can't convert cuda:0 device type tensor to numpy``: the array would be on the CPU. Add ``.cpu()``.
# - ``Got unsupported ScalarType BFloat16``: NumPy has no such type. Add ``.float()``.
# - ``Can't call numpy() on Tensor that has conjugate bit set``: add ``.resolve_conj()``.
#
# What not to do
# --------------
# **Write into the array.** After ``detach().numpy()`` it is the memory of the tensor, and autograd does not see the write.
# Here the values are shifted for a plot, between forward and backward. ``exp`` saved its result, so its gradient is now wrong.

x = torch.tensor([0.0, 1.0, 2.0], requires_grad=True)
y = torch.exp(x)
curve = y.detach().numpy()
curve -= curve.max()
y.sum().backward()
print("x.grad:", x.grad.numpy().round(4))
print("exp(x):", np.exp([0.0, 1.0, 2.0]).round(4), " the right gradient")

# sphinx_gallery_start_ignore
assert y._version == 0 and x.grad[2] == 0 and (x.grad[:2] < 0).all()
x.grad = None
y = torch.exp(x)
curve = y.detach().numpy()
curve = curve - curve.max()
y.sum().backward()
assert torch.allclose(x.grad, torch.exp(x))
# sphinx_gallery_end_ignore

# %%
# There is no message. Make a new array: ``curve = curve - curve.max()``.
#
# **Make the result a leaf.** If you call ``requires_grad_()`` on the tensor from NumPy, backward runs, and stops there:

w.grad = None
root = torch.tensor(np.sqrt((w**2).detach().numpy())).requires_grad_()
root.backward()
print("root.grad:", root.grad, "  w.grad:", w.grad)

# sphinx_gallery_start_ignore
assert root.grad == 1 and w.grad is None and root.is_leaf
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_tensors_detach_clone_data.py`: which copies share memory, and which keep the graph.
# - :ref:`sphx_glr_gallery_differentiation_inplace_and_versions.py`: which writes autograd sees.
# - In PyTorch's reference: `Tensor.numpy
#   <https://docs.pytorch.org/docs/stable/generated/torch.Tensor.numpy.html>`__.
