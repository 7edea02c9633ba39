r"""
Mismatch in shape: grad_output[0] has a shape of torch.Size([1])
================================================================

.. index::
   ! single: invalid gradient at index 0 - expected shape [] but got [1]
   ! single: loss.backward(one) and loss.backward(mone) in a WGAN
   ! single: grad_outputs has the wrong shape
   ! single: attempting to assign a gradient of size '[3, 2]' to a tensor of size '[2, 3]'

.. in-short::

   The gradient that you passed to ``backward()`` or ``torch.autograd.grad()`` does not have the shape of the output. A loss
   that is one number needs no gradient at all. Its shape is usually ``[]``.

   .. code-block:: diff

        loss = loss_fn(model(inputs), targets)
      - loss.backward(torch.ones(1))
      + loss.backward()

   **Not this:** ``gradient.reshape(output.shape)``. It fits, and the numbers can be in the wrong places.
"""

# %%
# The code that raises it
# -----------------------

import torch
from torch import nn

torch.manual_seed(0)

# sphinx_gallery_start_ignore
try:
    # sphinx_gallery_end_ignore
    model, loss_fn = nn.Linear(3, 1), nn.MSELoss()
    inputs, targets = torch.randn(4, 3), torch.randn(4, 1)

    loss = loss_fn(model(inputs), targets)
    loss.backward(torch.ones(1))
# sphinx_gallery_start_ignore
except RuntimeError as error:
    message = str(error)
    print("RuntimeError:", message)
assert message.startswith(
    "Mismatch in shape: grad_output[0] has a shape of torch.Size([1])"
)
assert message.endswith("output[0] has a shape of torch.Size([]).")


def _said(call, *kind):
    """The message of a call, or nothing."""
    try:
        call()
    except (RuntimeError, *kind) as error:
        return str(error)
    return ""


_w = torch.ones(3, 2, requires_grad=True)
for _shape in ((2, 3), (6,), (), (1,), (3, 1), (2,)):
    _given = torch.ones(_shape)
    assert "Mismatch in shape" in _said(lambda v=_given: (_w * 1).backward(v))
_list, _two = torch.autograd.backward, [_w.sum(), _w.sum()]
assert _said(lambda: _list(_two, [torch.ones(()), torch.ones(1)])) == message
assert _said(lambda: _list(_two, 2 * [torch.ones(1)])) == message
_ambiguous = "Boolean value of Tensor with more than one value is ambiguous"
assert _ambiguous in _said(
    lambda: _list([_w * 1, _w.sum()], [torch.ones(3, 2), torch.ones(1)])
)
# sphinx_gallery_end_ignore

# %%
# - ``grad_output[0]`` is the gradient that you passed, and ``output[0]`` the tensor that you called ``backward()`` on.
# - The shapes must be equal. Nothing is broadcast: ``[1]`` does not fit ``[]``.
# - With a list of outputs, the index can be wrong, or you read *Boolean value of Tensor with more than one value is ambiguous*
#   instead. Compare the shapes pair by pair.
# - Earlier versions write *invalid gradient at index 0 - expected shape [] but got [1]*.
#
# Why
# ---
# The gradient that you pass has one weight for each number of the output: ``y.backward(v)`` computes the gradient of
# ``(v * y).sum()``.

x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
v = torch.tensor([1.0, 0.0, 10.0])
y = x**2
y.retain_grad()
y.backward(v)
print("y.grad:", y.grad, " x.grad:", x.grad)

# graph: y -- The root y has 3 numbers, and so has the gradient v that was put there

# sphinx_gallery_start_ignore
(_same,) = torch.autograd.grad((v * x**2).sum(), x)
assert torch.equal(x.grad, _same) and torch.equal(y.grad, v)
# sphinx_gallery_end_ignore

# %%
# The fix
# -------
# **The loss is one number:** pass nothing. For a list of losses, ``sum(losses).backward()`` takes the place of
# ``torch.autograd.backward(losses, [torch.ones(1)] * n)``.

loss = loss_fn(model(inputs), targets)
loss.backward()
print("shape of the loss:", loss.shape, " model.bias.grad:", model.bias.grad)

# sphinx_gallery_start_ignore
assert torch.allclose(model.bias.grad, 2 * (model(inputs) - targets).mean())
_list(_two, 2 * [torch.ones(())])
assert torch.equal(_w.grad, torch.autograd.grad(_w.sum() + _w.sum(), _w)[0])
# sphinx_gallery_end_ignore

# %%
# **A sign is meant,** as in a WGAN with ``real.backward(mone)`` and ``fake.backward(one)``. Code for PyTorch 0.3 and older had
# no tensors of the shape ``[]``. Put the sign into the loss:

critic = nn.Linear(1, 1)
real = critic(torch.tensor([[1.0], [2.0]])).mean()
fake = critic(torch.tensor([[3.0], [5.0]])).mean()
(fake - real).backward()
print("critic.weight.grad:", critic.weight.grad)

# sphinx_gallery_start_ignore
assert critic.weight.grad == 4 - 1.5
critic.weight.grad = None
critic(torch.tensor([[1.0], [2.0]])).mean().backward(torch.tensor(-1.0))
critic(torch.tensor([[3.0], [5.0]])).mean().backward(torch.tensor(1.0))
assert critic.weight.grad == 4 - 1.5
# sphinx_gallery_end_ignore

# %%
# To keep the two calls, drop the brackets: ``one = torch.tensor(1.0)`` has the shape ``[]``, and ``torch.tensor([1.0])`` has
# the shape ``[1]``.
#
# **The output has several numbers:** take the shape from the output. For a gradient penalty these weights are ones; the weights
# here are those of the mean.

inputs = torch.tensor([[1.0], [2.0], [3.0], [4.0]])
output = critic(inputs)
weights = torch.full_like(output, 1 / len(output))
(gradient,) = torch.autograd.grad(output, critic.weight, grad_outputs=weights)
print("gradient:", gradient)

# sphinx_gallery_start_ignore
assert gradient == inputs.mean()
# sphinx_gallery_end_ignore

# %%
# What not to do
# --------------
# **Reshape the gradient until it fits.** A gradient of shape ``[2, 3]`` for an output of shape ``[3, 2]`` is most likely the
# transposed one.

w = torch.zeros(3, 2, requires_grad=True)
v = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])

(reshaped,) = torch.autograd.grad(w * 1, w, v.reshape(3, 2))
(transposed,) = torch.autograd.grad(w * 1, w, v.T)
print("reshaped:  ", reshaped.tolist())
print("transposed:", transposed.tolist())

# sphinx_gallery_start_ignore
assert transposed[0].tolist() == [1, 4] and reshaped[0].tolist() == [1, 2]
# sphinx_gallery_end_ignore

# %%
# **Repeat** ``torch.ones(1)`` **until it fits.** Then each sample counts 1, and you get the gradient of the sum, here four
# times the gradient of the mean.

output = critic(inputs)
(gradient,) = torch.autograd.grad(output, critic.weight, torch.ones(1).repeat(4, 1))
print("gradient:", gradient)

# sphinx_gallery_start_ignore
assert gradient == inputs.sum() == 4 * inputs.mean()
# sphinx_gallery_end_ignore

# %%
# Messages that are close to this one
# -----------------------------------
# **A gradient written to** ``.grad`` must have the shape and the device of its tensor. ``nn.Linear(3, 2)`` has a weight of
# shape ``[2, 3]``:

# sphinx_gallery_start_ignore
raised = []
try:
    # sphinx_gallery_end_ignore
    layer = nn.Linear(3, 2)
    layer.weight.grad = torch.ones(3, 2)
# sphinx_gallery_start_ignore
except RuntimeError as error:
    raised.append(str(error))
    print("RuntimeError:", error)
assert len(raised) == 1 and raised[0].startswith(
    "attempting to assign a gradient of size '[3, 2]' to a tensor of size '[2, 3]'"
)
_meta = _said(lambda: setattr(layer.weight, "grad", torch.ones(2, 3, device="meta")))
assert _meta.startswith("attempting to assign a gradient with device type 'meta'")
layer.weight.grad = torch.ones(3, 2).T
_loss = (w * 1).sum()
assert (
    _said(lambda: _loss.backward(-1.0), TypeError) == "'float' object is not iterable"
)
_device = _said(lambda: (w * 1).backward(torch.ones(3, 2, device="meta")))
assert _device == "invalid gradient at index 0 - expected device cpu but got meta"
# sphinx_gallery_end_ignore

# %%
# Transpose the gradient, or look for the layer that it belongs to: code that copies gradients from one model to another by
# position can pair the wrong parameters.
#
# **A number instead of a tensor.** ``loss.backward(-1.0)`` says *'float' object is not iterable*: write ``(-loss).backward()``.
#
# **Another device** says *invalid gradient at index 0 - expected device cuda:0 but got cpu*. ``torch.ones_like(output)`` has
# the shape and the device of the output.
#
# See also
# --------
# - :ref:`sphx_glr_gallery_differentiation_vector_jacobian_products.py`: what the gradient that you pass means.
# - :ref:`sphx_glr_gallery_errors_not_a_scalar.py`: the message if none is passed.
# - :ref:`sphx_glr_gallery_errors_invalid_gradient.py`: your own ``backward`` returns a gradient of the wrong shape.
# - In PyTorch's reference: `torch.autograd.grad
#   <https://docs.pytorch.org/docs/stable/generated/torch.autograd.grad.html>`__.
