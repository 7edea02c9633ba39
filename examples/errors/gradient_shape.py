r"""
Mismatch in shape: grad_output[0] has a shape of torch.Size([1])
================================================================

.. index::
   ! single: invalid gradient at index 0 - expected shape [] but got [1]
   ! single: loss.backward(one) and loss.backward(mone) in a WGAN
   ! single: grad_outputs has the wrong shape

A gradient was passed to ``backward()`` or ``torch.autograd.grad()``, and its shape is not that of the tensor it is
for. Often a ``torch.ones(1)`` meets a loss without dimensions, in code from a time when PyTorch had no such scalars.
"""

# %%
# The shortest code that raises it
# --------------------------------

import torch

w = torch.tensor(2.0, requires_grad=True)
loss = w**2
try:
    loss.backward(torch.ones(1))
except RuntimeError as error:
    print("RuntimeError:", error)
    assert str(error).startswith("Mismatch in shape: grad_output[0] has a shape of")

# %%
# The first shape is that of the gradient you passed, the second that of the loss. Other numbers in the brackets are
# the same error. An earlier wording is *invalid gradient at index 0 - expected shape [] but got [1]*.

# %%
# Why
# ---
# The gradient that you pass has one weight for each number of the output: ``y.backward(v)`` is the gradient of
# ``(v * y).sum()``. It is put at the root as it is, and no shape is guessed.

x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
v = torch.tensor([1.0, 0.0, 10.0])
y = x**2
y.retain_grad()
y.backward(v)
print("y.grad =", y.grad.tolist(), "  x.grad =", x.grad.tolist())

# graph: y -- The root y has 3 numbers, and the gradient v that was put there has 3

(same,) = torch.autograd.grad((v * x**2).sum(), x)
assert torch.equal(x.grad, same) and torch.equal(y.grad, v)

# %%
# The fix
# -------
# For a loss that is one number, pass nothing. If a sign is meant, put it into the loss. This is the critic of a WGAN,
# where ``real.backward(mone)`` and ``fake.backward(one)`` used to stand.

w = torch.tensor(1.0, requires_grad=True)
real = (w * torch.tensor([1.0, 2.0])).mean()
fake = (w * torch.tensor([3.0, 5.0])).mean()
(fake - real).backward()
print("w.grad =", w.grad.item())
assert w.grad == 4 - 1.5

# %%
# To keep two calls, drop the brackets: ``torch.tensor(1.0)`` has the shape of such a loss.

one, bracketed = torch.tensor(1.0), torch.tensor([1.0])
print("the loss:     ", tuple(real.shape))
print("1.0 and [1.0]:", tuple(one.shape), tuple(bracketed.shape))
assert one.shape == real.shape != bracketed.shape

# sphinx_gallery_start_ignore
_w = torch.tensor(1.0, requires_grad=True)
(_w * torch.tensor([1.0, 2.0])).mean().backward(torch.tensor(-1.0))
(_w * torch.tensor([3.0, 5.0])).mean().backward(torch.tensor(1.0))
assert _w.grad == 2.5
# sphinx_gallery_end_ignore

# %%
# For an output of several numbers, take the shape from the output itself. These weights are those of the mean.

x = torch.tensor([[1.0], [2.0], [3.0], [4.0]])
output = w * x
weights = torch.full_like(output, 1 / len(output))
(gradient,) = torch.autograd.grad(output, w, grad_outputs=weights)
print("shape:", tuple(weights.shape), "  gradient:", gradient.item())
assert gradient == x.mean()

# %%
# What not to do
# --------------
# **Repeat the one until it fits.** Then every sample counts 1, and the gradient is that of the sum. It grows with the
# batch: here it is four times the one above.

output = w * x
(gradient,) = torch.autograd.grad(output, w, torch.ones(1).repeat(4, 1))
print("gradient:", gradient.item())
assert gradient == x.sum() == 4 * x.mean()

# %%
# **Reshape the gradient until it fits.** The numbers then stand at the wrong places. A gradient of shape (2, 3) for
# an output of shape (3, 2) is most likely the transposed one.

w = torch.zeros(3, 2, requires_grad=True)
v = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])

(reshaped,) = torch.autograd.grad(w * 1, w, v.reshape(3, 2))
(transposed,) = torch.autograd.grad(w * 1, w, v.T)
print("reshaped:  ", reshaped.tolist())
print("transposed:", transposed.tolist())
assert transposed[0].tolist() == [1, 4] and reshaped[0].tolist() == [1, 2]

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_differentiation_vector_jacobian_products.py`: what the vector means
# - :ref:`sphx_glr_gallery_errors_not_a_scalar.py`: the message without any gradient passed
# - `torch.autograd.grad <https://docs.pytorch.org/docs/stable/generated/torch.autograd.grad.html>`__ in PyTorch's
#   reference
