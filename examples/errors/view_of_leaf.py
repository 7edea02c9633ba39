r"""
a view of a leaf Variable that requires grad is being used in an in-place operation
===================================================================================

.. index::
   ! single: leaf variable has been moved into the graph interior
   ! single: setting some entries of a weight raises
   ! single: _initialize_biases fails when a YOLO model is built
   ! single: A view was created in no_grad mode and is being modified inplace with grad mode enabled

.. in-short::

   You write to a part of a parameter, or of an input whose gradient you want, while autograd is recording. To set values, write
   inside ``torch.no_grad()``. For a step of the computation, write to ``x.clone()``.

   .. code-block:: diff

      - embedding.weight[:2] = pretrained
      + with torch.no_grad():
      +     embedding.weight[:2] = pretrained

   **Not this:** a write through ``.data`` in the forward pass. The parameter changes, and the gradient is wrong.
"""

# %%
# The code that raises it
# -----------------------

import torch
from torch import nn

# sphinx_gallery_start_ignore
try:
    # sphinx_gallery_end_ignore
    torch.manual_seed(0)
    embedding = nn.Embedding(5, 3)
    pretrained = torch.ones(2, 3)

    embedding.weight[:2] = pretrained
# sphinx_gallery_start_ignore
except RuntimeError as error:
    message = str(error)
    print("RuntimeError:", message)
assert message.startswith("a view of a leaf Variable that requires grad is being")
assert not torch.equal(embedding.weight[:2], pretrained)
_weight = embedding.weight


def _says(write):
    try:
        write()
    except RuntimeError as error:
        return str(error)
    return ""


_views = [
    lambda: _weight[0].copy_(pretrained[0]),
    lambda: _weight.t().mul_(2),
    lambda: _weight.view(-1)[0].fill_(1),
    lambda: _weight[:, 0].add_(1),
]
assert [_says(write) for write in _views] == 4 * [message]
_indices = [
    lambda: _weight.__setitem__(_weight > 0, 0),
    lambda: _weight.__setitem__(torch.tensor([0, 3]), 0),
    lambda: _weight.__setitem__(slice(None), 0),
]
assert [_says(write) for write in _indices] == 3 * [message.removeprefix("a view of ")]
# sphinx_gallery_end_ignore

# %%
# ``weight[0].copy_(row)``, ``weight[:, 0] += 1``, ``weight.t().mul_(2)`` and ``weight.view(-1)[0] = 1`` raise it too.
#
# Earlier versions let the write pass, and the backward after it fails with *leaf variable has been moved into the graph
# interior*.
#
# Why
# ---
# ``weight[:2]`` is a view: it shares the memory of ``weight``. A write to the view changes ``weight``, so autograd would have
# to record a change of ``weight``. For a copy, it does:

x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
changed = x.clone()
changed[0] = 0
print("x[0] shares the memory of x:", x[0].data_ptr() == x.data_ptr())
print("changed.is_leaf:", changed.is_leaf)

# graph: changed -- The write to a part is recorded as CopySlices, and changed is its result

# sphinx_gallery_start_ignore
assert x[0]._is_view() and x[0]._base is x and x[0].data_ptr() == x.data_ptr()
assert not changed.is_leaf and changed.grad_fn.name().endswith("CopySlices")
# sphinx_gallery_end_ignore

# %%
# After such a write, ``weight`` would be the result of an operation, and not a leaf. Backward would store no gradient in it. So
# PyTorch refuses.
#
# The fix
# -------
# **To set values** before training or between steps, write inside ``torch.no_grad()``. The parameter keeps ``requires_grad``.

with torch.no_grad():
    embedding.weight[:2] = pretrained

conv = nn.Conv2d(1, 6, 1)
with torch.no_grad():
    conv.bias.view(3, 2)[:, 0] += 1.5  # as in a YOLO head

nn.init.zeros_(embedding.weight[4])  # runs without recording by itself
print(embedding.weight)

# sphinx_gallery_start_ignore
assert torch.equal(embedding.weight[:2], pretrained) and not embedding.weight[4].any()
for _parameter in (embedding.weight, conv.bias):
    assert _parameter.is_leaf and _parameter.requires_grad
assert (conv.bias[::2] >= 0.5).all() and (conv.bias[1::2] <= 1).all()
embedding(torch.tensor([0])).sum().backward()
assert embedding.weight.grad[0].tolist() == [1, 1, 1]
# sphinx_gallery_end_ignore

# %%
# **For a step of the computation,** write to a copy. ``clone()`` is recorded, so the gradient goes back to ``x``. It is 0 for
# the overwritten entry, because that entry has no influence on the result.

changed = x.clone()
changed[0] = 0
(changed * 5).sum().backward()
print("x.grad:", x.grad, "  x:", x.tolist())

# sphinx_gallery_start_ignore
assert x.grad.tolist() == [0, 5, 5] and x.tolist() == [1, 2, 3]
# sphinx_gallery_end_ignore

# %%
# ``torch.where`` does the same without a write.

x.grad = None
keep = torch.tensor([False, True, True])
(torch.where(keep, x, 0.0) * 5).sum().backward()
print("x.grad:", x.grad)

# sphinx_gallery_start_ignore
assert x.grad.tolist() == [0, 5, 5]
# sphinx_gallery_end_ignore

# %%
# What not to do
# --------------
# **Write through** ``.data`` **or** ``detach()`` **in the forward pass.** Nothing is recorded, so the overwritten entry gets a
# gradient as if it counted. And the write stays: ``x`` itself is changed.

x.grad = None
x.data[0] = 0
(x * 5).sum().backward()
print("x.grad:", x.grad, "  x:", x.tolist())

# sphinx_gallery_start_ignore
assert x.grad.tolist() == [5, 5, 5] and x.tolist() == [0, 2, 3]
_x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
_x.detach()[0] = 0
(_x * 5).sum().backward()
assert _x.grad.tolist() == [5, 5, 5] and _x.tolist() == [0, 2, 3]
# sphinx_gallery_end_ignore

# %%
# **Replace the parameter.** An optimizer that you made before still has the old parameter, and the new one learns nothing.

layer = nn.Linear(1, 1)
optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
layer.bias = nn.Parameter(layer.bias.detach() + 1)
before = layer.bias.item()
for _ in range(10):
    optimizer.zero_grad()
    layer(torch.ones(1, 1)).square().sum().backward()
    optimizer.step()
print("bias changed in 10 steps:", layer.bias.item() != before)

# sphinx_gallery_start_ignore
assert layer.bias.item() == before and layer.bias.grad != 0
# sphinx_gallery_end_ignore

# %%
# Similar messages
# ----------------
# - Without *a view of* at its start, as after ``weight[weight > 0] = 0`` or ``weight[:] = 0``: :ref:`a leaf Variable
#   <sphx_glr_gallery_errors_leaf_in_place.py>`. The fixes are the same.
# - For a row of ``for row in weight``: :ref:`Output 0 of Unbind is a view <sphx_glr_gallery_errors_view_of_several.py>`.
# - For a view that was made inside ``no_grad``, and is written to outside of it:

# sphinx_gallery_start_ignore
assert "Output 0 of Unbind is a view" in _says(lambda: next(iter(_weight)).mul_(2))
raised = []
try:
    # sphinx_gallery_end_ignore
    with torch.no_grad():
        row = embedding.weight[0]
    row += 1
# sphinx_gallery_start_ignore
except RuntimeError as error:
    raised.append(str(error))
    print("RuntimeError:", str(error).partition(" Given")[0])
assert len(raised) == 1
assert raised[0].startswith("A view was created in no_grad mode and is being modified")
_plain = torch.zeros(2, 3)
with torch.no_grad():
    _row = _plain[0]
_row += 1  # nothing here requires a gradient
assert "A view was created in no_grad" in _says(lambda: _row.mul_(embedding.weight[0]))
# sphinx_gallery_end_ignore

# %%
# Move the write into the block too, if it sets values. If it belongs to the computation, move the view out of the block, and
# make it a view of a clone.

with torch.no_grad():
    row = embedding.weight[0]
    row += 1
print("embedding.weight[0]:", embedding.weight[0].tolist())

# sphinx_gallery_start_ignore
assert embedding.weight[0].tolist() == [2, 2, 2]
_copy = embedding.weight.clone()
_row = _copy[0]
_row += 1
assert _copy.grad_fn.name().endswith("CopySlices")
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_differentiation_slice_assignment.py`: writes to a part, and how they are recorded.
# - :ref:`sphx_glr_gallery_tensors_copy_table.py`: which operations return a view, and which a copy.
# - `Tensor views <https://docs.pytorch.org/docs/stable/tensor_view.html>`__ in PyTorch's reference.
