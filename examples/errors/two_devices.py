r"""
Expected all tensors to be on the same device
=============================================

.. index::
   ! single: found at least two devices, cuda:0 and cpu
   ! single: but got mat1 is on cpu, different from other tensors on cuda:0
   ! single: Tensor on device meta is not on the expected device cpu
   ! single: Input type (torch.cuda.FloatTensor) and weight type (torch.FloatTensor) should be the same

.. in-short::

   One operation got a tensor on the GPU and another on the CPU. Move the model once, move each batch, and make new tensors
   where the data is.

   .. code-block:: diff

        model = nn.Linear(3, 2).to(device)
      + x = x.to(device)
        scores = model(x)

   **Not this:** ``.to(x.device)`` in ``forward``, for a tensor that should be a parameter. The message is gone, and the tensor
   is never trained.
"""

# %%
# The code that raises it
# -----------------------

import torch
from torch import nn

# sphinx_gallery_start_ignore
# isort: split
import contextlib

from torch._subclasses.fake_tensor import (
    FakeTensor,
    FakeTensorMode,
    unset_fake_temporarily,
)
from torch.utils._python_dispatch import TorchDispatchMode

_fake = FakeTensorMode(allow_non_fake_inputs=True)


class _Cpu(TorchDispatchMode):
    """Within a FakeTensorMode: only tensors on a GPU are fake, with a shape and no data. Those on the CPU are real."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if str(kwargs.get("device", "")).startswith("cuda") or any(
            issubclass(one, FakeTensor) for one in types
        ):
            return func(*args, **kwargs)
        with unset_fake_temporarily():
            return func(*args, **kwargs)


_gpu = contextlib.ExitStack()
_gpu.enter_context(_fake)
_gpu.enter_context(_Cpu())
torch.set_grad_enabled(
    False
)  # without CUDA, autograd aborts the process at a weight on it

try:
    # sphinx_gallery_end_ignore
    device = "cuda:0"
    model = nn.Linear(3, 2).to(device)
    x = torch.ones(4, 3)
    scores = model(x)
# sphinx_gallery_start_ignore
except RuntimeError as error:
    message = str(error)
    print("RuntimeError:", message)
assert (
    message
    == "Expected all tensors to be on the same device, but found at least two devices, cpu and cuda:0!"
)
assert model.weight.device.type == model.bias.device.type == "cuda" and x.is_cpu

assert [one.name for one in torch.ops.aten.addmm.default._schema.arguments][:3] == [
    "self",
    "mat1",
    "mat2",
]
assert [one.name for one in torch.ops.aten.mm.default._schema.arguments] == [
    "self",
    "mat2",
]
assert [one.name for one in torch.ops.aten.index_select.default._schema.arguments] == [
    "self",
    "dim",
    "index",
]
assert [one.name for one in torch.ops.aten.nll_loss_forward.default._schema.arguments][
    :2
] == ["self", "target"]
# sphinx_gallery_end_ignore

# %%
# This site is built without a GPU: PyTorch's *fake tensors*, which have a device and no data, take its place. On a GPU, many
# operations also say which argument is at fault. The same line ends there in *but got mat1 is on cpu, different from other
# tensors on cuda:0 (when checking argument in method wrapper_CUDA_addmm)* (seen in `RES4LYF#223
# <https://github.com/ClownsharkBatwing/RES4LYF/pull/223>`__), or in the older words *found at least two devices, cpu and
# cuda:0! (when checking argument for argument mat1 in method wrapper_CUDA_addmm)*.
#
# - ``wrapper_CUDA_addmm``: the operation. ``addmm`` and ``mm`` are a linear layer, ``index_select`` is an embedding,
#   ``nll_loss_forward`` is a cross entropy.
# - ``mat1``: the argument. In ``addmm``, ``mat1`` is the layer's input and ``mat2`` its weight. ``index`` is what you look up
#   in an embedding, and ``target`` is your labels.
#
# Why
# ---
# Most operations do not move their inputs, because such a copy is slow and would be hard to find. The usual exceptions: a CPU
# tensor with no dimensions may take part in what works element by element, the index in ``x[index]`` :ref:`may be on the CPU
# <sphx_glr_gallery_cuda_devices.py>`, and ``copy_`` copies between devices. (The index of ``gather`` and ``index_select`` may
# not.) A tensor with no dimensions on the *GPU* is no
# exception: such a loss cannot be added to a CPU tensor of shape ``(3,)``.
#
# How to find the tensor
# ----------------------
# Print ``.device`` of each tensor in the line that raised. If that line is in a module, this shows what belongs to it.
# ``model.to`` moves parameters and buffers. A tensor that is only an attribute stays where it is:

# sphinx_gallery_start_ignore
_there, _here = torch.ones(3, device=device), torch.ones(3)
assert (_there + torch.tensor(1.0)).device.type == "cuda"
assert torch.where(_there > 0, _there, torch.tensor(1.0)).device.type == "cuda"
_meta = torch.ones(3, device="meta")
assert (
    _meta[torch.tensor([0, 1])].device.type == _meta.copy_(_here).device.type == "meta"
)
_meta[:2] = torch.ones(2)
raised = []
for _call in (
    lambda: _here + torch.tensor(1.0, device=device),
    lambda: _there + torch.ones(1),
    lambda: _there + _here,
    lambda: _there @ _here,
    lambda: torch.cat([_there, _here]),
    lambda: nn.functional.cross_entropy(
        torch.ones(2, 3, device=device), torch.tensor([0, 1])
    ),
    lambda: nn.Embedding(5, 2).to(device)(torch.tensor([0, 1])),
    lambda: _there.gather(0, torch.tensor([0, 1])),
    lambda: _there.index_select(0, torch.tensor([0, 1])),
    lambda: nn.CrossEntropyLoss(weight=_here)(
        torch.ones(2, 3, device=device), torch.tensor([0, 1], device=device)
    ),
):
    try:
        _call()
    except RuntimeError as error:
        raised.append(
            str(error).startswith("Expected all tensors to be on the same device")
        )
assert raised == [True] * 10
# sphinx_gallery_end_ignore


class Shift(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(3))
        self.register_buffer("mean", torch.zeros(3))
        self.offset = torch.zeros(3)

    def forward(self, x):
        return (x - self.mean) * self.scale + self.offset


module = Shift().to(device)
kept = [*module.named_parameters(), *module.named_buffers(), *vars(module).items()]
for name, value in kept:
    if isinstance(value, torch.Tensor):
        print(f"{name:<7} {value.device}")

# sphinx_gallery_start_ignore
assert module.scale.device.type == module.mean.device.type == "cuda"
assert module.offset.is_cpu and "offset" in vars(module)
raised = []
try:
    module(torch.ones(2, 3, device=device))
except RuntimeError as error:
    raised.append(str(error))
assert raised == [
    "Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!"
]
# sphinx_gallery_end_ignore

# %%
# The fix
# -------
# **Move the batch, and keep what** ``to`` **returns.** ``x.to(device)`` on a line of its own changes nothing: a tensor is not
# moved in place, a module is. The labels have to be moved as well.

model = nn.Linear(3, 2).to(device)
x, labels = torch.ones(4, 3), torch.tensor([0, 1, 1, 0])
x = x.to(device)
labels = labels.to(device)
scores = model(x)
print("loss on", nn.functional.cross_entropy(scores, labels).device)

# sphinx_gallery_start_ignore
assert nn.functional.cross_entropy(scores, labels).device.type == "cuda"
raised = []
try:
    nn.functional.cross_entropy(scores, labels.cpu())
except RuntimeError as error:
    raised.append(str(error))
assert len(raised) == 1
_alone = torch.ones(4, 3)
_alone.to(device)
assert _alone.is_cpu
_layer = nn.Linear(3, 2)
_layer.to(device)
assert _layer.weight.device.type == "cuda"
# sphinx_gallery_end_ignore

# %%
# **A tensor of the module** becomes a buffer, or a parameter if it is to be trained. **Layers in a Python list** become an
# ``nn.ModuleList``. **A new tensor in** ``forward`` is made where the data is, with ``device=x.device`` or ``zeros_like``:


class Shift(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("offset", torch.zeros(3))
        self.layers = nn.ModuleList([nn.Linear(3, 3), nn.Linear(3, 3)])

    def forward(self, x):
        mask = torch.arange(x.shape[1], device=x.device) < 2
        for layer in self.layers:
            x = layer(x * mask + self.offset)
        return x


print("result on", Shift().to(device)(torch.ones(4, 3, device=device)).device)

# sphinx_gallery_start_ignore
assert Shift().to(device)(torch.ones(4, 3, device=device)).device.type == "cuda"
assert Shift()(torch.ones(4, 3)).is_cpu


class _Listed(Shift):
    def __init__(self):
        super().__init__()
        del self.layers
        self.layers = [nn.Linear(3, 3)]


class _Masked(Shift):
    def forward(self, x):
        return x * (torch.arange(x.shape[1]) < 2)


raised = []
for _module in (_Listed(), _Masked()):
    try:
        _module.to(device)(torch.ones(4, 3, device=device))
    except RuntimeError as error:
        raised.append(
            str(error).startswith("Expected all tensors to be on the same device")
        )
assert raised == [True, True] and not list(_Listed().parameters())
# sphinx_gallery_end_ignore

# %%
# What not to do
# --------------
# **Move a weight inside** ``forward``. ``self.scale.to(x.device)`` ends the message and copies the tensor in every call. And if
# ``scale`` is a plain tensor, the optimizer does not know it:


class Patched(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 3)
        self.scale = torch.ones(3, requires_grad=True)  # not a Parameter

    def forward(self, x):
        return self.layer(x) * self.scale.to(x.device)


patched = Patched().to(device)
patched(torch.ones(2, 3, device=device))
print("to be trained:", [name for name, _ in patched.named_parameters()])
print("saved:", list(patched.state_dict()))

# sphinx_gallery_start_ignore
assert (
    [name for name, _ in patched.named_parameters()]
    == list(patched.state_dict())
    == ["layer.weight", "layer.bias"]
)
_copies = [patched.scale.to(device) for _ in range(2)]
assert _copies[0] is not _copies[1]
# sphinx_gallery_end_ignore

# %%
# The same fault in other words
# -----------------------------
# **A convolution** on a GPU says *Input type (torch.cuda.FloatTensor) and weight type (torch.FloatTensor) should be the same*
# (seen in `pytorch-summary#52 <https://github.com/sksq96/pytorch-summary/issues/52>`__): the input was moved, and the model was
# not. The other way around, the two types change places.
#
# **The device** ``meta`` has shapes and no data. A model that was loaded without its weights ends like this:

# sphinx_gallery_start_ignore
try:
    # sphinx_gallery_end_ignore
    norm = nn.BatchNorm1d(3, device="meta").eval()
    x = torch.ones(2, 3)
    x * norm.weight
# sphinx_gallery_start_ignore
except RuntimeError as error:
    print("RuntimeError:", error)
    raised.append(str(error))
assert raised[2:] == ["Tensor on device meta is not on the expected device cpu!"]
# sphinx_gallery_end_ignore

# %%
# Load the weights first, with ``assign=True``:

norm.load_state_dict(nn.BatchNorm1d(3).state_dict(), assign=True)
print((x * norm.weight).device)

# sphinx_gallery_start_ignore
assert torch.equal(x * norm.weight, x)
torch.set_grad_enabled(True)
_gpu.close()
# sphinx_gallery_end_ignore

# %%
# What ``to`` does to the graph
# -----------------------------
# ``to`` another device is an operation like any other. What it returns is computed from the weight. So the leaf stays on the
# old device, and its gradient arrives there:

scale = torch.ones(3, requires_grad=True)
copy = scale.to("meta")
print("copy is a leaf:", copy.is_leaf)

# graph: copy -- The copy on the other device is computed from the leaf

# sphinx_gallery_start_ignore
assert not copy.is_leaf and copy.grad_fn.next_functions[0][0].variable is scale
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_cuda_devices.py`: which calls take tensors of two devices, and how tensors get there.
# - :ref:`sphx_glr_gallery_errors_non_leaf_in_optimizer.py`: a parameter that was moved by hand.
# - In PyTorch's reference: `torch.Tensor.to <https://docs.pytorch.org/docs/stable/generated/torch.Tensor.to.html>`__.
