r"""
you can only change requires_grad flags of leaf variables
=========================================================

.. index::
   ! single: freezing a layer by its output raises
   ! single: requires_grad = False on the result of a computation
   ! single: image.requires_grad = True fails in the second step of an attack

``requires_grad`` is a choice for leaves only: tensors that you made, not tensors that were computed. A result
requires a gradient because one of its inputs does, and that cannot be taken back afterwards.
"""

# %%
# The shortest code that raises it
# --------------------------------

import torch

x = torch.tensor(2.0, requires_grad=True)
y = x * 3
try:
    y.requires_grad = False
except RuntimeError as error:
    message = str(error)
    print("RuntimeError:", message)
    assert message.startswith("you can only change requires_grad flags of leaf")

# sphinx_gallery_start_ignore
try:
    y.requires_grad_(False)
except RuntimeError as error:
    assert str(error) == message
# sphinx_gallery_end_ignore

# %%
# ``y.requires_grad_(False)`` says the same.

# %%
# Why
# ---
# ``y`` is held to the graph by its ``grad_fn``. If it stopped requiring a gradient, the node would still be there,
# and what has been computed from ``y`` already would still lead to ``x``.

z = y**2

# graph: z -- z was computed through y, and y through x: no flag on y can undo that

print("x:", x.requires_grad, " y:", y.requires_grad, " z:", z.requires_grad)
print("y was computed by", y.grad_fn.name())
assert y.requires_grad and y.grad_fn.name() == "MulBackward0"

# %%
# The other direction raises too, with the first half of the message, if it is an assignment. The method
# ``requires_grad_(True)`` is let through, and changes nothing. Loops that attack or explain an image meet it: in the
# second round the image is a result of the first.

image = torch.tensor(1.0)
for step in (1, 2):
    try:
        image.requires_grad = True
    except RuntimeError as error:
        print("RuntimeError:", error)
        assert str(error) == message.partition(" If you")[0] and step == 2
    (gradient,) = torch.autograd.grad(image**2, image)
    image = image + 0.1 * gradient

y.requires_grad_(True)
print("still computed by", y.grad_fn.name(), "and a leaf:", y.is_leaf)
assert not y.is_leaf and not image.is_leaf

# %%
# The fix
# -------
# Decide what you want. To use the *value* and stop the gradient there, take ``detach()``. To start the next round of
# a loop from it, ``detach().requires_grad_()``.

value = y.detach()
print("detached:", value.item(), "requires_grad", value.requires_grad)
assert value == 6 and not value.requires_grad

image = image.detach().requires_grad_()
(gradient,) = torch.autograd.grad(image**2, image)
print(f"third round: image {image.item():.2f}, gradient {gradient.item():.2f}")
assert image.is_leaf and gradient == 2 * image

# %%
# To freeze a layer, set the flag on its parameters, which are leaves, before the forward pass. The gradient still
# goes through the layer to what is before it.

first, second = torch.nn.Linear(3, 3), torch.nn.Linear(3, 1)
second.requires_grad_(False)
second(first(torch.ones(2, 3))).sum().backward()
print("first: ", first.weight.grad is not None)
print("second:", second.weight.grad is not None)
assert first.weight.grad is not None and second.weight.grad is None

# %%
# To compute without a record from the start, work under ``no_grad``.

with torch.no_grad():
    unrecorded = x * 3
print("requires_grad", unrecorded.requires_grad)
assert not unrecorded.requires_grad

# %%
# What not to do
# --------------
# ``detach_()`` changes the tensor itself, which is what the flag would have done. It is accepted. But other nodes
# have saved ``y``, and what was computed from it before is broken: its backward finds a tensor without the history
# that it had.

y = x * 3
before = y**2
y.detach_()
print("y is a leaf now:", y.is_leaf)
try:
    before.backward()
except RuntimeError as error:
    print("RuntimeError:", error)
    assert "detached in-place" in str(error)

# %%
# Where no node has saved ``y``, nothing is raised, and two lines that look alike mean different things by their place
# alone.

y = x * 3
before = y + 1
y.detach_()
after = y + 1
print("before:", before.requires_grad, " after:", after.requires_grad)
assert before.requires_grad and not after.requires_grad

# %%
# ``detach()`` gives the cut tensor a name of its own, and leaves ``y`` as it was.

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_graphs_leaves_and_roots.py`: leaves, results, and who may have the flag
# - :ref:`sphx_glr_gallery_errors_integer_leaf.py`: the flag on a tensor of whole numbers
# - `Tensor.requires_grad_ <https://docs.pytorch.org/docs/stable/generated/torch.Tensor.requires_grad_.html>`__ in
#   PyTorch's reference
