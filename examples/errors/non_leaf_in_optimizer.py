r"""
can't optimize a non-leaf Tensor
================================

.. index::
   ! single: the optimizer does not accept my parameter
   ! single: my learnable tensor never changes

An optimizer updates leaves, the tensors whose gradient is stored. What it was given is the result of an operation:
a scaling, a conversion to another type, a move to another device, after ``requires_grad=True`` was set.
"""

# %%
# The shortest code that raises it
# --------------------------------

import torch

torch.manual_seed(0)
w = torch.randn(3, requires_grad=True) * 0.01
try:
    torch.optim.SGD([w], lr=0.1)
except ValueError as error:
    print("ValueError:", error)
    assert str(error) == "can't optimize a non-leaf Tensor"

# %%
# Why
# ---
# The leaf is the tensor that ``randn`` returned. It has no name. ``w`` is the product, and a product has no ``.grad``
# that an optimizer could use.

loss = ((w - 1) ** 2).sum()
loss.backward()

# graph: loss -- w is a result: the gradient is stored one step before it, in a leaf without a name

leaf = w.grad_fn.next_functions[0][0].variable
print("w is a leaf:", w.is_leaf)
print("the gradient is in the leaf:", leaf.grad is not None)
assert not w.is_leaf and leaf.is_leaf and leaf.grad is not None

# %%
# Whatever computes does it: ``* 0.01``, ``.double()``, ``.to(device)``, ``.reshape(...)``, ``.t()``. A conversion that
# has nothing to do returns the tensor itself, so that the same line may pass on one machine and fail on another.

made = torch.randn(3, requires_grad=True)
for name, tensor in {
    "made * 1": made * 1,
    "made.double()": made.double(),
    "made.reshape(3)": made.reshape(3),
    "made.float()": made.float(),
    'made.to("cpu")': made.to("cpu"),
}.items():
    print(f"{name:<16} is_leaf {tensor.is_leaf}")
assert made.float() is made and not made.double().is_leaf

# sphinx_gallery_start_ignore
assert not (made * 1).is_leaf and not made.reshape(3).is_leaf and made.to("cpu") is made
assert not made.to("meta").is_leaf
# sphinx_gallery_end_ignore

# %%
# The fix
# -------
# Compute first, and ask for the gradient last. Then what you hold is the leaf.

w = (torch.randn(3) * 0.01).requires_grad_()
optimizer = torch.optim.SGD([w], lr=0.1)
for _ in range(30):
    optimizer.zero_grad()
    loss = ((w - 1) ** 2).sum()
    loss.backward()
    optimizer.step()
print("w =", [round(value, 2) for value in w.tolist()])
assert w.is_leaf and (w - 1).abs().max() < 0.01

# %%
# In a module, wrap the finished tensor in ``nn.Parameter``, which is always a leaf.

scale = torch.nn.Parameter(torch.randn(3) * 0.01)
print("a Parameter is a leaf:", scale.is_leaf)
assert scale.is_leaf

# %%
# What not to do
# --------------
# **Make a leaf of it for the optimizer's eyes only.** ``w.detach().requires_grad_()`` is accepted. But it is not the
# tensor in the loss: it never gets a gradient, and the optimizer skips it. Nothing is raised, and nothing is learned.

made = torch.ones(3, requires_grad=True)
optimizer = torch.optim.SGD([(made * 0.01).detach().requires_grad_()], lr=0.1)
losses = []
for _ in range(3):
    optimizer.zero_grad()
    w = made * 0.01
    loss = ((w - 1) ** 2).sum()
    loss.backward()
    optimizer.step()
    losses.append(round(loss.item(), 3))
print("losses:", losses)
assert len(set(losses)) == 1

# %%
# **Build the optimizer before the conversion.** If a conversion replaces the parameters, the optimizer goes on with
# the old ones. ``module.double()`` keeps them, as it changes their data; an assignment of your own does not.

layer = torch.nn.Linear(1, 1, bias=False)
optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
layer.weight = torch.nn.Parameter(layer.weight.detach().double())

before = layer.weight.clone()
layer(torch.ones(1, 1, dtype=torch.float64)).sum().backward()
optimizer.step()
print("changed by the step:", not torch.equal(layer.weight, before))
assert torch.equal(layer.weight, before)

# sphinx_gallery_start_ignore
_layer = torch.nn.Linear(1, 1, bias=False)
_weight = _layer.weight
assert _layer.double().weight is _weight
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_graphs_leaves_and_roots.py`: how a tensor stops being a leaf by accident
# - :ref:`sphx_glr_gallery_errors_grad_of_non_leaf.py`: the warning that the same tensor gives when its ``.grad`` is
#   read
# - `torch.optim <https://docs.pytorch.org/docs/stable/optim.html>`__ in PyTorch's reference
