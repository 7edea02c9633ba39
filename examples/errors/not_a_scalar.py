r"""
grad can be implicitly created only for scalar outputs
======================================================

.. index::
   ! single: backward on a vector
   ! single: loss has one value for each sample or each GPU
   ! single: backward works with batch size 1 only

``backward()`` was called on a tensor with more than one number: a loss for each sample, for each pixel, for each GPU
of ``DataParallel``, or a whole output. Backward wants to know which of them counts how much.
"""

# %%
# The shortest code that raises it
# --------------------------------

import torch

x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
y = x**2
try:
    y.backward()
except RuntimeError as error:
    print("RuntimeError:", error)
    assert str(error).startswith("grad can be implicitly created only for scalar")

# sphinx_gallery_start_ignore
for _shape in ((1,), (1, 1)):
    _x = torch.ones(_shape, requires_grad=True)
    (3 * _x).backward()
    assert _x.grad.tolist() == torch.full(_shape, 3.0).tolist()
# sphinx_gallery_end_ignore

# %%
# One number in brackets counts as a scalar. So the same code runs with a batch of 1, or on one GPU, and fails with
# more.

# %%
# Why
# ---
# Four samples and one weight. Each loss has a derivative of its own, and ``w.grad`` has room for one number.

w = torch.tensor(1.0, requires_grad=True)
samples = torch.tensor([1.0, 2.0, 3.0, 4.0])
targets = torch.tensor([3.0, 5.0, 7.0, 9.0])
losses = (w * samples - targets) ** 2

each = [torch.autograd.grad(one, w, retain_graph=True)[0].item() for one in losses]
print("derivatives:", each)
assert each == [-4, -12, -24, -40]

# graph: losses -- Four numbers at the root, and one at the leaf

# %%
# Backward starts at the root with the derivative of the result with respect to itself. For one number that is 1, and
# it is filled in for you: this is the gradient that is *implicitly created*. For four numbers the weights of their
# sum are your choice.

# %%
# The fix
# -------
# Say how the numbers become one. For a loss that is nearly always the mean. In a loss function, take away
# ``reduction="none"``; with ``DataParallel``, take ``loss.mean()`` of what comes back from the GPUs.

losses.mean().backward()
print("w.grad =", w.grad.item())
assert w.grad == sum(each) / 4

# %%
# If samples count differently, weigh them before the mean or the sum.

w.grad = None
weights = torch.tensor([0.5, 0.5, 0.0, 0.0])
losses = (w * samples - targets) ** 2
(weights * losses).sum().backward()
print("w.grad =", w.grad.item())
assert w.grad == 0.5 * each[0] + 0.5 * each[1]

# %%
# If you want the gradient of one entry, as for a map of what a class score depends on, index it.

pixels = torch.tensor([1.0, 2.0], requires_grad=True)
scores = torch.stack([pixels.sum(), pixels.prod(), pixels[0] ** 3])
scores[1].backward()
print("gradient of score 1:", pixels.grad.tolist())
assert pixels.grad.tolist() == [2, 1]

# %%
# What not to do
# --------------
# **Pass ones and go on.** ``losses.backward(torch.ones_like(losses))`` is the gradient of the sum. It grows with the
# number of samples: here it is four times the gradient of the mean, and so is each step of the optimizer.

w.grad = None
losses = (w * samples - targets) ** 2
losses.backward(torch.ones_like(losses))
print("w.grad =", w.grad.item())
assert w.grad == 4 * -20

# %%
# **Take the mean without a look at the shape.** A loss can have too many numbers because two shapes were broadcast.
# Here the prediction is a column and the target a row, so every prediction is compared with every target.

column = torch.tensor([[3.0], [5.0], [7.0], [9.0]], requires_grad=True)
losses = (column - targets) ** 2
losses.mean().backward()
print("shape of the losses:", tuple(losses.shape))
print(f"mean {losses.mean().item()}, gradient {column.grad.flatten().tolist()}")
assert losses.shape == (4, 4) and losses.mean() == 10

# %%
# Every prediction is right, and yet the mean is not 0, and the gradient pulls them together. With equal shapes both
# are 0.

losses = (column.squeeze(1) - targets) ** 2
(gradient,) = torch.autograd.grad(losses.mean(), column)
print(f"mean {losses.mean().item()}, gradient {gradient.flatten().tolist()}")
assert losses.shape == (4,) and losses.mean() == 0 and not gradient.any()

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_differentiation_vector_jacobian_products.py`: backward of a vector, and its ``gradient=``
# - :ref:`sphx_glr_gallery_errors_gradient_shape.py`: the next message, if ``gradient=`` has the wrong shape
# - `torch.autograd.backward <https://docs.pytorch.org/docs/stable/generated/torch.autograd.backward.html>`__ in
#   PyTorch's reference
