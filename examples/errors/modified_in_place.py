r"""
one of the variables needed for gradient computation has been modified by an inplace operation
==============================================================================================

.. index::
   ! single: which is output 0 of AsStridedBackward0, is at version 2
   ! single: inplace=False everywhere and the error stays
   ! single: GAN training fails in the second backward, with optimizer.step() in between

Backward reads a tensor that the forward pass saved, and finds that it was written to since. The write is ``+=``, a
method that ends in an underscore, an assignment to an index, an activation with ``inplace=True``, or an
``optimizer.step()`` between a forward pass and its backward.
"""

# %%
# The shortest code that raises it
# --------------------------------

import torch

x = torch.tensor(1.0, requires_grad=True)
y = torch.exp(x)
y += 1
try:
    y.backward()
except RuntimeError as error:
    message = str(error)
    print("RuntimeError:", message)
    assert message.startswith("one of the variables needed for gradient computation")
assert "is at version 1; expected version 0 instead" in message

# %%
# Read it from the middle:
#
# - ``[torch.FloatTensor []]``: type and shape of the tensor that was saved. Look for that shape in your code.
# - ``is at version 1; expected version 0``: a tensor counts its writes. Backward needs the tensor as it was at 0,
#   and finds it at 1: one write has come in between.
# - ``output 0 of Exp``: the operation that the tensor came from, or the one that wrote to it last. It is missing
#   where the tensor is a parameter. Earlier versions write *ExpBackward* or *ExpBackward0*, and the oldest ones end
#   before all this, after *inplace operation*.

# %%
# Why
# ---
# The derivative of :math:`e^x` is :math:`e^x`, so the node of ``exp`` keeps its result for backward. It keeps no
# copy: what it saved and ``y`` are one memory with one counter.

x = torch.tensor(1.0, requires_grad=True)
y = torch.exp(x)
print("saved is y:", y.grad_fn._saved_result.data_ptr() == y.data_ptr())
print(f"y = {y.item():.4f}, version {y._version}")

# graph: y (saved) -- The node of exp has saved its own result, and that is y

# sphinx_gallery_start_ignore
assert y.grad_fn._saved_result.data_ptr() == y.data_ptr() and y._version == 0
# sphinx_gallery_end_ignore

# %%
# A write to ``y`` is a write to the saved value. Only the counter tells that it has changed.

y += 1
print(f"y = {y.item():.4f}, version {y._version}")
assert y._version == 1

# sphinx_gallery_start_ignore
assert abs(y.item() - 1 - torch.exp(x).item()) < 1e-6
# sphinx_gallery_end_ignore

# %%
# The fix
# -------
# Write to a new tensor. ``y = y + 1`` gives the name ``y`` to another tensor, and the saved one stays as it is. In
# the same way ``nn.ReLU(inplace=True)`` becomes ``nn.ReLU()``, and ``out += skip`` becomes ``out = out + skip``.

y = torch.exp(x)
y = y + 1
y.backward()
print(f"x.grad = {x.grad.item():.4f}")
assert torch.allclose(x.grad, torch.exp(x.detach()))

# %%
# If nothing in the model writes in place, it is the optimizer. Its ``step()`` writes to the parameters, and here the
# second loss was computed before that, with the old ones. Two networks that are trained in turn are the usual case
# (`pytorch#39141 <https://github.com/pytorch/pytorch/issues/39141>`__).

g = torch.tensor(0.5, requires_grad=True)  # the generator
w = torch.tensor(2.0, requires_grad=True)  # the critic
optimizer = torch.optim.SGD([w], lr=1.0)


def critic(fake):
    return torch.tanh(w * fake)


critic_loss = critic(g.detach())
generator_loss = -critic(g)
critic_loss.backward()
optimizer.step()
try:
    generator_loss.backward()
except RuntimeError as error:
    print(str(error).split(": ", 1)[1].split(" Hint")[0])
    assert "is at version 1; expected version 0 instead" in str(error)

# %%
# With a layer ``nn.Linear`` the same message says *output 0 of AsStrided* (or *AsStridedBackward0*, *TBackward*) and
# *version 2; expected version 1*: the layer saves its weight transposed, and its initialisation was the first write.
#
# Compute the second loss after the step. Or, if both losses are meant for the same parameters, let every backward run
# before the first step. A fused optimizer (``fused=True``) :ref:`is not counted
# <sphx_glr_gallery_differentiation_inplace_and_versions.py>`: the gradient is wrong and nothing is raised.

# sphinx_gallery_start_ignore
_layer = torch.nn.Linear(2, 1)
_step = torch.optim.SGD(_layer.parameters(), lr=0.1)
_fake = torch.ones(3, 2, requires_grad=True)
_first, _second = _layer(_fake.detach()).mean(), -_layer(_fake).mean()
_first.backward()
_step.step()
try:
    _second.backward()
except RuntimeError as error:
    _message = str(error)
assert "[torch.FloatTensor [2, 1]], which is output 0 of AsStrided" in _message
assert "is at version 2; expected version 1 instead" in _message
# sphinx_gallery_end_ignore
generator_loss = -critic(g)
generator_loss.backward()
after = g.grad.item()
print(f"w = {w.item():.4f}, g.grad = {after:.4f}")

# sphinx_gallery_start_ignore
with torch.no_grad():
    assert torch.allclose(g.grad, -w * (1 - torch.tanh(w * g) ** 2))
# sphinx_gallery_end_ignore

# %%
# What not to do
# --------------
# **Write through** ``.data``. The counter does not see it, so there is no message, and backward takes the new value
# for the old one.

x.grad = None
y = torch.exp(x)
y.data += 1
y.backward()
print(f"x.grad = {x.grad.item():.4f}, right is {torch.exp(x).item():.4f}")

# sphinx_gallery_start_ignore
assert torch.allclose(x.grad, torch.exp(x.detach()) + 1)
# sphinx_gallery_end_ignore

# %%
# **Clone somewhere.** A copy helps where the write goes to the copy, or where the copy is what gets saved. Here it is
# the input of ``exp``, and the write hits the result as before.

y = torch.exp(x.clone())
y += 1
try:
    y.backward()
except RuntimeError as error:
    print(str(error).split(": ", 1)[1].split(" Hint")[0])
    assert "is at version 1; expected version 0 instead" in str(error)

# %%
# **Go back to PyTorch 1.4.** It is common advice, since the message is gone there: up to that version the optimizers
# wrote through ``.data`` (`pytorch#34211 <https://github.com/pytorch/pytorch/pull/34211>`__). The gradient then
# belongs to neither critic: one of its factors is from before the step, the other from after it.

new = w.item()
w.data.fill_(2.0)
(before,) = torch.autograd.grad(-critic(g), g)

generator_loss = -critic(g)
w.data.fill_(new)  # a step as the old optimizers made it
(mixed,) = torch.autograd.grad(generator_loss, g)
print(f"before {before:.4f}, after {after:.4f}, mixed {mixed:.4f}")
assert abs(mixed - before) > 0.05 and abs(mixed - after) > 0.05

# sphinx_gallery_start_ignore
with torch.no_grad():
    assert torch.allclose(before, -2 * (1 - torch.tanh(2 * g) ** 2))
    assert torch.allclose(mixed, -new * (1 - torch.tanh(2 * g) ** 2))
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_differentiation_inplace_and_versions.py`: which operations need which value, and how to
#   find the lines
# - :ref:`sphx_glr_gallery_debugging_anomaly_detection.py`, the mode that the hint at the end of the message names
# - `In-place operations with autograd
#   <https://docs.pytorch.org/docs/stable/notes/autograd.html#in-place-operations-with-autograd>`__ in PyTorch's
#   reference
