r"""
The .grad attribute of a Tensor that is not a leaf Tensor is being accessed
===========================================================================

.. index::
   ! single: .grad is None
   ! single: requires_grad=True and .to(device), and there is no gradient
   ! single: gradient of an intermediate tensor or a hidden layer

Backward stores gradients in leaves only. You read ``.grad`` of a tensor that an operation computed, so it is
``None``, and PyTorch warns. Often the tensor was meant to be a leaf, and one more operation slipped in when it was
made.
"""

# %%
# The shortest code that raises it
# --------------------------------
# It is a warning, not an error. Here it is caught, to be printed without the line of PyTorch's source at its end.

import warnings

import torch


def read_grad(tensor):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        grad = tensor.grad
    return grad, [str(one.message).split(" (Triggered")[0] for one in caught]


x = torch.tensor([1.0, 2.0], requires_grad=True) * 0.1
loss = (x**2).sum()
loss.backward()

grad, messages = read_grad(x)
print("UserWarning:", messages[0])
print("x.grad is", grad)
assert messages[0].startswith("The .grad attribute of a Tensor that is not a leaf")
assert grad is None

# %%
# Why
# ---
# ``x`` is the result of a multiplication. The leaf is the tensor in front of it, and no variable holds that one. The
# gradient went there.

in_front = x.grad_fn.next_functions[0][0].variable
print("x.is_leaf:", x.is_leaf, "  the leaf in front of x has", in_front.grad)
assert in_front.is_leaf and torch.allclose(in_front.grad, 2 * 0.1 * x.detach())

# sphinx_gallery_start_ignore
del in_front
# sphinx_gallery_end_ignore
# graph: loss -- The gradient went past x to a leaf without a name

# %%
# The fix
# -------
# **If the tensor should be a leaf**, ask for the gradient last: first values, dtype and device, then
# ``requires_grad_()``. ``x.to(device)`` and ``x.double()`` are operations like ``* 0.1``.

x = (torch.tensor([1.0, 2.0]) * 0.1).to("cpu").requires_grad_()
(x**2).sum().backward()
print("x.is_leaf:", x.is_leaf, "  x.grad =", x.grad)
assert torch.allclose(x.grad, 2 * x.detach()) and read_grad(x)[1] == []

# sphinx_gallery_start_ignore
_x = torch.ones(2, requires_grad=True)
assert not _x.double().is_leaf and not _x.to("meta").is_leaf
# sphinx_gallery_end_ignore

# %%
# **If it is an intermediate result**, say before backward that its gradient is to be kept, or ask for it directly.

x = torch.tensor([1.0, 2.0], requires_grad=True)
hidden = torch.exp(x)
hidden.retain_grad()
(hidden**2).sum().backward()
print("hidden.grad =", hidden.grad, "  x.grad =", x.grad)

hidden = torch.exp(x)
(direct,) = torch.autograd.grad((hidden**2).sum(), hidden)
print("direct      =", direct)
assert torch.equal(direct, 2 * hidden.detach())

# %%
# **If nobody wanted that gradient**, the warning comes from code that looks at every attribute: a debugger, a tool
# that prunes or copies models. Training is not affected. In code of your own, ask ``is_leaf`` and ``retains_grad``
# first.

tensors = {"x": x, "hidden": hidden}
grads = {name: t.grad for name, t in tensors.items() if t.is_leaf or t.retains_grad}
print("read without a warning:", list(grads))
assert list(grads) == ["x"]

# %%
# What not to do
# --------------
# **Switch on** ``requires_grad_()`` **afterwards.** On a result it changes nothing: it is on already.

x = torch.tensor([1.0, 2.0], requires_grad=True) * 0.1
x.requires_grad_()
(x**2).sum().backward()
print("x.is_leaf:", x.is_leaf, "  x.grad is", read_grad(x)[0])
assert read_grad(x)[0] is None

# %%
# **Detach in the middle of a model.** ``hidden.detach().requires_grad_()`` is a leaf and gets its gradient. But there
# the graph ends, and the layers in front learn nothing. No message says so.

w = torch.tensor(2.0, requires_grad=True)
hidden = torch.tanh(w).detach().requires_grad_()
(hidden**2).backward()
print(f"hidden.grad = {hidden.grad:.4f}, w.grad is {w.grad}")
assert w.grad is None

# sphinx_gallery_start_ignore
assert read_grad(w) == (None, [])
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_graphs_leaves_and_roots.py`: the other reasons for a ``.grad`` that is ``None``
# - :ref:`sphx_glr_gallery_differentiation_gradients_of_intermediates.py`: the ways to get one, compared
# - `Tensor.retain_grad <https://docs.pytorch.org/docs/stable/generated/torch.Tensor.retain_grad.html>`__ in PyTorch's
#   reference
