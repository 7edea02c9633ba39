r"""
Expected all tensors to be on the same device
=============================================

.. index::
   ! single: found at least two devices, cuda:0 and cpu
   ! single: Tensor on device meta is not on the expected device cpu
   ! single: Input type (torch.cuda.FloatTensor) and weight type (torch.FloatTensor) should be the same

An operation got tensors from two devices. Usually the model was moved and the data was not, or the forward pass makes
a new tensor, which is made on the CPU unless it is told otherwise.
"""

# %%
# The shortest code that raises it
# --------------------------------
# The device ``meta`` stands in for the second device on this page. Its tensors have a shape and no data, and every
# machine has it. Here a result is to be written into a buffer on the other device.

import torch
from torch import nn
from torch.autograd.graph import saved_tensors_hooks

data = torch.ones(2, 3)
buffer = torch.empty(2, 3, device="meta")
try:
    torch.special.ndtr(data, out=buffer)
except RuntimeError as error:
    print("RuntimeError:", error)
    assert str(error).startswith("Expected all tensors to be on the same device")

# %%
# With ``meta``, most operations check earlier and say it in other words. Models that were loaded without their
# weights end like this.

weight = torch.ones(3, device="meta")
try:
    data * weight
except RuntimeError as error:
    print("RuntimeError:", error)
    assert str(error).startswith("Tensor on device meta is not on the expected device")

# %%
# A convolution says *Input type (torch.cuda.FloatTensor) and weight type (torch.FloatTensor) should be the same*. It
# is the same fault.

# %%
# Why
# ---
# PyTorch moves nothing on its own, as a hidden copy between devices would be slow and hard to find. One exception: a
# tensor with a single number and no dimension goes along with the others.

single = torch.tensor(3.0)
print("with a single number:", (single * weight).device)
assert single.dim() == 0 and (single * weight).device.type == "meta"

# %%
# ``model.to(device)`` moves parameters and buffers. A tensor that is only an attribute stays where it is, and the
# forward pass brings the two together.


class Shift(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(3))
        self.register_buffer("mean", torch.zeros(3))
        self.offset = torch.zeros(3)

    def forward(self, x):
        return (x - self.mean) * self.scale + self.offset


moved = Shift().to("meta")
for name in ("scale", "mean", "offset"):
    print(f"{name:<7} {getattr(moved, name).device}")
assert moved.offset.device.type == "cpu" and moved.mean.device.type == "meta"

# %%
# The move as a graph: a parameter that is moved by hand becomes a result, so the leaf stays on the old device.

leaf = torch.ones(3, requires_grad=True)
copy = leaf.to("meta")

# graph: copy -- .to() is an operation: the copy on the other device is computed from the leaf

print("copy is a leaf:", copy.is_leaf)
assert not copy.is_leaf

# %%
# The error can wait for backward. Here a hook sends what is saved to another device, and none brings it back.

with saved_tensors_hooks(lambda saved: saved.to("meta"), lambda packed: packed):
    total = nn.functional.silu(data.clone().requires_grad_()).sum()
try:
    total.backward()
except RuntimeError as error:
    print("RuntimeError:", error)
    assert str(error).startswith("Expected all tensors to be on the same device")

# %%
# The fix
# -------
# Make every tensor that belongs to the module a parameter or a buffer, and make new tensors where the data is:
# ``torch.zeros(..., device=x.device)``, ``torch.zeros_like(x)``, ``x.new_zeros(...)``.


class Moved(Shift):
    def __init__(self):
        super().__init__()
        del self.offset
        self.register_buffer("offset", torch.zeros(3))

    def forward(self, x):
        noise = torch.zeros(x.shape, device=x.device)
        return super().forward(x + noise)


for device in ("cpu", "meta"):
    result = Moved().to(device)(torch.ones(2, 3, device=device))
    print(f"model on {device}: result on {result.device}")
    assert result.device.type == device

# %%
# Then move the model once, before the optimizer is made, and each batch as it comes: ``x = x.to(device)``. To find
# the tensor at fault, print the devices of what the failing line uses, and of the module's parameters and buffers.

devices = {tensor.device.type for tensor in [*moved.parameters(), *moved.buffers()]}
print("parameters and buffers on:", devices)
assert devices == {"meta"}

# %%
# What not to do
# --------------
# **Move inside forward what should have been moved once.** ``self.offset.to(x.device)`` ends the message, and copies
# the tensor in every call. For a parameter outside of ``parameters()`` it is worse than slow: the optimizer does not
# know the tensor, and it is never trained.


class Patched(Shift):
    def __init__(self):
        super().__init__()
        self.offset = torch.zeros(3, requires_grad=True)  # not a Parameter

    def forward(self, x):
        return (x - self.mean) * self.scale + self.offset.to(x.device)


patched = Patched()
print("to be trained:", [name for name, _ in patched.named_parameters()])
assert [name for name, _ in patched.named_parameters()] == ["scale"]

# %%
# **Take silence for agreement.** Not every operation checks. This product with a tensor that has no values is let
# through, and the result calls itself a tensor on the CPU. Nothing was computed: its numbers are whatever lay in
# memory.

product = data @ torch.ones(3, 2, device="meta")
print(product.device, tuple(product.shape))
assert product.device.type == "cpu"

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_cuda_devices.py`: which devices there are, and how tensors get there
# - :ref:`sphx_glr_gallery_errors_non_leaf_in_optimizer.py`: a parameter that was moved by hand
# - `torch.Tensor.to <https://docs.pytorch.org/docs/stable/generated/torch.Tensor.to.html>`__ in PyTorch's reference
