r"""
a view of a leaf Variable that requires grad is being used in an in-place operation
===================================================================================

.. index::
   ! single: leaf variable has been moved into the graph interior
   ! single: setting some entries of a weight raises
   ! single: _initialize_biases fails when a YOLO model is built

A part of a parameter, or of an input whose gradient you want, is written to: ``w[0] = 0``, ``w[:, 4] += b``,
``w.t().mul_(2)``. Such a part is a view, and a write to a view is a write to the leaf.
"""

# %%
# The shortest code that raises it
# --------------------------------

import torch

w = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
try:
    w[0] = 0
except RuntimeError as error:
    print("RuntimeError:", error)
    assert str(error).startswith("a view of a leaf Variable that requires grad")
print("w is still", w.tolist())
assert w.tolist() == [1, 2, 3]

# %%
# Earlier versions let the write pass, and the backward after it failed with *leaf variable has been moved into the
# graph interior*.

# %%
# Why
# ---
# ``w[0]`` has its memory from ``w``: it is no copy. So autograd would have to record a change of ``w``. On a copy it
# does that:

changed = w.clone()
changed[0] = 0
print("w[0] is a view of w:", w[0]._is_view(), "  changed.is_leaf:", changed.is_leaf)

# graph: changed -- The write to a part is recorded as CopySlices, and changed is its result

# sphinx_gallery_start_ignore
assert w[0]._is_view() and w[0]._base is w and w[0].data_ptr() == w.data_ptr()
assert not changed.is_leaf and changed.grad_fn.name().endswith("CopySlices")
# sphinx_gallery_end_ignore

# %%
# With ``w`` in place of ``changed``, the parameter would be the result of an operation and no leaf any more. Backward
# would leave it without a gradient, and so PyTorch refuses.

# %%
# The fix
# -------
# To set values before training, or between steps, say that the write is not to be recorded.

bias = torch.nn.Parameter(torch.zeros(6))
with torch.no_grad():
    bias.view(3, 2)[:, 0] += 1.5
print(bias.tolist(), " is_leaf", bias.is_leaf, " requires_grad", bias.requires_grad)
assert bias.tolist() == [1.5, 0, 1.5, 0, 1.5, 0] and bias.is_leaf and bias.requires_grad

# %%
# If the write belongs to the computation, write to a copy, as above. ``clone()`` is recorded, so the gradient finds
# its way back to ``w``. It is 0 for the entry that was overwritten: that one has no influence on the result.

changed = w.clone()
changed[0] = 0
(changed * 5).sum().backward()
print("w.grad =", w.grad.tolist(), "  w =", w.tolist())
assert w.grad.tolist() == [0, 5, 5] and w.tolist() == [1, 2, 3]

# %%
# ``torch.where`` does the same without a write.

w.grad = None
keep = torch.tensor([False, True, True])
(torch.where(keep, w, 0.0) * 5).sum().backward()
print("w.grad =", w.grad.tolist())
assert w.grad.tolist() == [0, 5, 5]

# %%
# What not to do
# --------------
# **Write through** ``.data`` **or** ``detach()`` **in the forward pass.** Nothing is recorded, so the entry gets
# the gradient of one that counts. And the write stays: the parameter itself is changed.

w.grad = None
w.data[0] = 0
(w * 5).sum().backward()
print("w.grad =", w.grad.tolist(), "  w =", w.tolist())
assert w.grad.tolist() == [5, 5, 5] and w.tolist() == [0, 2, 3]

# sphinx_gallery_start_ignore
_w = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
_w.detach()[0] = 0
(_w * 5).sum().backward()
assert _w.grad.tolist() == [5, 5, 5] and _w.tolist() == [0, 2, 3]
# sphinx_gallery_end_ignore

# %%
# **Put a new parameter in its place.** ``layer.bias = nn.Parameter(...)`` is often found next to the write above. An
# optimizer that was built before goes on with the old parameter, and the new one learns nothing.

torch.manual_seed(0)
layer = torch.nn.Linear(1, 1)
optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
layer.bias = torch.nn.Parameter(layer.bias.detach() + 1)
before = layer.bias.item()
for _ in range(10):
    optimizer.zero_grad()
    layer(torch.ones(1, 1)).square().sum().backward()
    optimizer.step()
print("bias changed in 10 steps:", layer.bias.item() != before)
assert layer.bias.item() == before and layer.bias.grad != 0

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_errors_leaf_in_place.py`: the whole leaf is written to
# - :ref:`sphx_glr_gallery_tensors_copy_table.py`: which operations return a view, and which a copy
# - `Tensor views <https://docs.pytorch.org/docs/stable/tensor_view.html>`__ in PyTorch's reference
