r"""
Can't call numpy() on Tensor that requires grad
===============================================

.. index::
   ! single: plotting a tensor that requires grad with matplotlib fails
   ! single: part of the loss is computed with NumPy and has no effect on training

A NumPy array has no computation graph, so PyTorch does not hand out a tensor of the graph as an array until you say
that the record may end there. It usually happens where losses or outputs are plotted, averaged or logged. Inside a
loss, the message is a real warning.
"""

# %%
# The shortest code that raises it
# --------------------------------

import numpy as np
import torch

x = torch.tensor([1.0, 4.0], requires_grad=True)
try:
    x.numpy()
except RuntimeError as error:
    message = str(error)
    print("RuntimeError:", message)
    assert message.startswith("Can't call numpy() on Tensor that requires grad.")

# %%
# Earlier versions said *Can't call numpy() on Variable that requires grad. Use var.detach().numpy() instead.* It is
# the same error. Often the call is not in your own code: NumPy and Matplotlib convert whatever they are given.

losses = [(x**2).sum(), (x**3).sum()]
callers = {
    "np.sqrt(x)": lambda: np.sqrt(x),
    "np.mean(losses)": lambda: np.mean(losses),
    "x * np.ones(2)": lambda: x * np.ones(2),
}
for call, function in callers.items():
    try:
        function()
    except RuntimeError as error:
        print(f"{call:<16} the same message: {str(error) == message}")
        assert str(error) == message

# sphinx_gallery_start_ignore
import matplotlib.pyplot as _plt

_fig, _ax = _plt.subplots()
try:
    _ax.plot(losses)
except RuntimeError as _error:
    assert str(_error) == message
    _plt.close(_fig)
else:
    raise AssertionError("Matplotlib converts a list of losses")
# sphinx_gallery_end_ignore

# %%
# Why
# ---
# An array holds numbers and nothing else. What NumPy computes from it is not recorded, and when the result comes back
# as a tensor, it is a constant. Here :math:`z = w^2 + \sqrt{w^2}`, and the root takes the way through NumPy.

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
# The value is right. The gradient misses the part of the root: :math:`2w + 1` is 7 at this place. The error exists
# so that this does not happen unnoticed.

# %%
# The fix
# -------
# **To look at numbers** (plot, log, save): ``detach()``. The array shares the memory of the tensor. For a tensor on
# another device the longer form is ``x.detach().cpu().numpy()``, and ``x.numpy(force=True)`` stands for both.

array = x.detach().numpy()
forced = x.numpy(force=True)
print(array, "same memory:", np.shares_memory(array, forced))
assert array.tolist() == x.tolist() and np.shares_memory(array, forced)

# %%
# **To keep the losses of the steps**: ``item()`` gives a Python number when the loss is stored. A list of numbers
# holds no graphs either.

history = [loss.item() for loss in losses]
print(np.mean(history))
assert np.mean(history) == (17 + 65) / 2

# %%
# **To evaluate**: under ``no_grad`` nothing is recorded, so the results require no gradient.

with torch.no_grad():
    outputs = torch.sqrt(x)
print(outputs.numpy())
assert outputs.numpy().tolist() == [1, 2]

# %%
# **Inside a loss**: use PyTorch's own function, which is recorded. Where there is none, write
# :ref:`a Function with a backward of its own <sphx_glr_gallery_functions_exp_function.py>`.

w.grad = None
y = w**2
z = y + torch.sqrt(y)
z.backward()
print(f"z = {z.item()}, w.grad = {w.grad.item()}")
assert w.grad.item() == 2 * 3 + 1

# %%
# What not to do
# --------------
# **Write into the array.** It is the memory of the tensor, and autograd does not see the write. Here the values are
# shifted for a plot, between forward and backward. ``exp`` saved its result, so its gradient is now wrong.

x = torch.tensor([0.0, 1.0, 2.0], requires_grad=True)
y = torch.exp(x)
curve = y.detach().numpy()
curve -= curve.max()
y.sum().backward()
print("x.grad:", x.grad.numpy().round(4))
print("exp(x):", np.exp([0.0, 1.0, 2.0]).round(4), " the right gradient")

# sphinx_gallery_start_ignore
assert y._version == 0 and x.grad[2] == 0 and (x.grad[:2] < 0).all()
# sphinx_gallery_end_ignore

# %%
# No message this time: the last gradient is 0, and the others have the wrong sign. Make a new array
# (``curve = curve - curve.max()``), or take a copy before you write.

x.grad = None
y = torch.exp(x)
curve = y.detach().numpy().copy()
curve -= curve.max()
y.sum().backward()
assert torch.allclose(x.grad, torch.exp(x))

# %%
# **Switch the message off inside a loss**, with ``detach()`` and perhaps a ``requires_grad_()`` on the way back. The
# result is a new leaf: backward runs, and its gradient stays there.

root = torch.tensor(np.sqrt((w**2).detach().numpy())).requires_grad_()
w.grad = None
root.backward()
print("root.grad:", root.grad.item(), "  w.grad:", w.grad)
assert w.grad is None

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_differentiation_inplace_and_versions.py`: which writes autograd sees, and which it does not
# - :ref:`sphx_glr_gallery_graphs_leaves_and_roots.py`: what makes a tensor part of the graph
# - `Tensor.numpy <https://docs.pytorch.org/docs/stable/generated/torch.Tensor.numpy.html>`__ in PyTorch's reference
