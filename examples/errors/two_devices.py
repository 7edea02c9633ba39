r"""
Expected all tensors to be on the same device
=============================================

.. index::
   ! single: found at least two devices, cuda:0 and cpu
   ! single: Input and parameter tensors are not at the same device
   ! single: indices should be either on cpu or on the same device as the indexed tensor
   ! single: but got mat1 is on cpu, different from other tensors on cuda:0
   ! single: Tensor on device meta is not on the expected device cpu
   ! single: Input type (torch.cuda.FloatTensor) and weight type (torch.FloatTensor) should be the same
   ! single: Expected a 'cuda' device type for generator but found 'cpu'
   ! single: Placeholder storage has not been allocated on MPS device

.. in-short::

   One operation got tensors on two devices. Move the model once, move each batch, and make new tensors where the data is.

   .. code-block:: diff

        model = nn.Linear(3, 2).to(device)
      + x = x.to(device)
        scores = model(x)

   **Not this:** ``self.scale.to(x.device)`` in ``forward``, for a plain tensor that you want to train. ``model.parameters()``
   does not have it.
"""

# %%
# The code that raises it
# -----------------------

# This needs a GPU.
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


class _Cpu(TorchDispatchMode):
    """Within a FakeTensorMode: only tensors on a GPU are fake, with a shape and no data. Those on the CPU are real."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        on_gpu = str(kwargs.get("device", "")).startswith("cuda")
        if on_gpu or any(issubclass(one, FakeTensor) for one in types):
            return func(*args, **kwargs)
        with unset_fake_temporarily():
            return func(*args, **kwargs)


_gpu = contextlib.ExitStack()
_gpu.enter_context(FakeTensorMode(allow_non_fake_inputs=True))
_gpu.enter_context(_Cpu())
torch.set_grad_enabled(
    False
)  # without CUDA, autograd ends the process at such a weight

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
_same = "Expected all tensors to be on the same device"
assert message == _same + ", but found at least two devices, cpu and cuda:0!"
assert model.weight.device.type == model.bias.device.type == "cuda" and x.is_cpu
for _operator, _names in (
    (torch.ops.aten.addmm, ["self", "mat1", "mat2"]),
    (torch.ops.aten.index_select, ["self", "dim", "index"]),
    (torch.ops.aten.nll_loss_forward, ["self", "target"]),
):
    _arguments = [one.name for one in _operator.default._schema.arguments]
    assert _arguments[: len(_names)] == _names
# sphinx_gallery_end_ignore

# %%
# On a GPU, many messages name an argument: *but got mat1 is on cpu, different from other tensors on cuda:0 (when checking
# argument in method wrapper_CUDA_addmm)* (seen in `RES4LYF#223 <https://github.com/ClownsharkBatwing/RES4LYF/pull/223>`__).
# ``addmm`` is a linear layer with its input ``mat1``, ``index_select`` an embedding that looks up ``index``, and
# ``nll_loss_forward`` a cross entropy with your labels as ``target``.
#
# The last frame that is not PyTorch's tells where to look:
#
# .. list-table::
#    :header-rows: 1
#    :widths: 38 62
#
#    * - the frame
#      - what is on the other device
#    * - ``model(x)``, in the first layer
#      - the batch, or the model
#    * - a later line of ``forward``
#      - a second input, a tensor or layer that ``forward`` makes, a plain attribute, or a layer in a Python list or added after
#        ``model.to``
#    * - ``criterion(output, labels)``
#      - the labels, or the class weights of the loss
#    * - a metric of ``torchmetrics``
#      - ``metric.to(device)``
#    * - ``optimizer.step()``
#      - the optimizer's state: move the model, then make the optimizer, then load its state. If a package's optimizer still
#        raises, load with ``map_location=device``.
#    * - a model with ``device_map="auto"``: *cuda:0 and cuda:1*
#      - the inputs: ``x.to(model.device)``; the labels: ``labels.to(scores.device)``; a block on two GPUs: its class belongs in
#        ``_no_split_modules``
#    * - the same with ``torchrun`` or ``accelerate launch``
#      - the model: ``device_map={"": int(os.environ["LOCAL_RANK"])}``
#    * - ``trainer.train()`` without a ``device_map``, on several GPUs
#      - a tensor of the model: the ``Trainer`` uses ``DataParallel``. Start with ``torchrun``.
#
# Why
# ---
# Most operations do not move their inputs.
#
# How to find the tensor
# ----------------------
# Print ``.device`` of each tensor in the line that raised. ``model.to`` moves parameters and buffers. This finds a plain
# attribute that is a tensor:


# This needs a GPU.
class Shift(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(3))
        self.register_buffer("mean", torch.zeros(3))
        self.offset = torch.zeros(3)

    def forward(self, x):
        return (x - self.mean) * self.scale + self.offset


model = nn.Sequential(nn.Linear(3, 3), Shift()).to(device)
kept = [*model.named_parameters(), *model.named_buffers()]
for path, part in model.named_modules():
    kept += [(f"{path}.{name}", value) for name, value in vars(part).items()]
for name, value in kept:
    if isinstance(value, torch.Tensor):
        print(f"{name:<9} {value.device}")

# sphinx_gallery_start_ignore
module = model[1]
assert module.scale.device.type == module.mean.device.type == "cuda"
assert module.offset.is_cpu and "offset" in vars(module)
_cpu = [n for n, value in kept if isinstance(value, torch.Tensor) and value.is_cpu]
assert _cpu == ["1.offset"]


def _raises(call, *inputs):
    try:
        call(*inputs)
    except RuntimeError as error:
        assert str(error).startswith(_same)
        return True
    return False


_there, _here = torch.ones(3, device=device), torch.ones(3)
_index = torch.tensor([0, 1])
assert _raises(module, torch.ones(2, 3, device=device)) and _raises(_there.add, _here)
assert _raises(nn.Embedding(5, 2).to(device), _index)
assert _raises(nn.functional.cross_entropy, torch.ones(2, 3, device=device), _index)
_first, _rows = nn.Linear(3, 3).to(device), torch.ones(4, 3, device=device)
assert _raises(lambda one, mask: _first(one) * mask, _rows, torch.ones(4, 3))
assert not _raises(lambda one, mask: _first(one) * mask, _rows, _rows)
_convolutions = nn.Module()
_convolutions.layers = [nn.Conv1d(3, 3, 1)]
assert _convolutions.to(device).layers[0].weight.is_cpu
# sphinx_gallery_end_ignore

# %%
# The fix
# -------
# **Move the batch, and keep what** ``to`` **returns.** A module is moved in place, a tensor is not. A loss with class weights
# needs it, too: ``nn.CrossEntropyLoss(w).to(device)``.

# This needs a GPU.
model = nn.Linear(3, 2).to(device)
x, labels = torch.ones(4, 3), torch.tensor([0, 1, 1, 0])
x = x.to(device)
labels = labels.to(device)
scores = model(x)
print("loss on", nn.functional.cross_entropy(scores, labels).device)

# sphinx_gallery_start_ignore
assert nn.functional.cross_entropy(scores, labels).device.type == "cuda"
_weighted = nn.CrossEntropyLoss(torch.ones(2))
assert _raises(_weighted, scores, labels)
assert not _raises(_weighted.to(device), scores, labels)
_alone = torch.ones(4, 3)
_alone.to(device)
assert _alone.is_cpu
# sphinx_gallery_end_ignore

# %%
# **A tensor of the module** becomes a parameter if you train it, or a buffer. For a constant, ``persistent=False`` lets old
# checkpoints load. **Layers in a Python list** become an ``nn.ModuleList``. **A layer that** ``forward`` **makes** belongs in
# ``__init__``: with ``device=x.device`` it never learns. **A new tensor in** ``forward`` gets ``device=x.device``:


# This needs a GPU.
class ShiftAndMask(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("offset", torch.zeros(3))
        self.layers = nn.ModuleList([nn.Linear(3, 3), nn.Linear(3, 3)])

    def forward(self, x):
        mask = torch.arange(x.shape[1], device=x.device) < 2
        for layer in self.layers:
            x = layer(x * mask + self.offset)
        return x


x = torch.ones(4, 3, device=device)
print("result on", ShiftAndMask().to(device)(x).device)

# sphinx_gallery_start_ignore
assert ShiftAndMask().to(device)(x).device.type == "cuda"
_listed = ShiftAndMask()
_layers = list(_listed.layers)
del _listed.layers
_listed.layers = _layers
assert _raises(_listed.to(device), x)


class _Made(nn.Module):
    def __init__(self, **options):
        super().__init__()
        self.options = options

    def forward(self, x):
        return nn.Linear(3, 3, **self.options)(x)


assert _raises(_Made().to(device), x)
_metric = nn.Module()
_metric.register_buffer("counts", torch.zeros(3))
assert _raises(lambda: _metric.counts + x.sum(dim=0))
assert not _raises(lambda: _metric.to(device).counts + x.sum(dim=0))


class _Patched(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 3)
        self.scale = torch.ones(3, requires_grad=True)  # not a Parameter

    def forward(self, x):
        return self.layer(x) * self.scale.to(x.device)


_patched = _Patched().to(device)
assert _patched(x).device.type == "cuda"
_names = ["layer.weight", "layer.bias"]
assert (
    [n for n, _ in _patched.named_parameters()] == _names == list(_patched.state_dict())
)
_late = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3)).to(device)
_late[1] = nn.Linear(3, 2)  # after the move
assert _raises(_late, x) and not _raises(_late.to(device), x)
_gpu.close()
torch.set_grad_enabled(True)
_made, _x = _Made(device="meta"), torch.ones(4, 3, device="meta")
assert _made(_x).device == _x.device and not list(_made.parameters())
_adagrad = torch.optim.Adagrad(nn.Linear(3, 2).parameters())
assert all(one["sum"].is_cpu for one in _adagrad.state.values()) and _adagrad.state
_cpu, _trained = nn.Linear(3, 2), torch.optim.Adam(nn.Linear(3, 2).parameters())
_state = _trained.state_dict()
for _number, _tensor in enumerate(_cpu.parameters()):
    _state["state"][_number] = {
        "step": torch.tensor(1.0),
        "exp_avg": torch.zeros_like(_tensor),
    }
for _place in ("cpu", "meta"):  # loading moves the state to the weights
    _resumed = torch.optim.Adam(nn.Linear(3, 2).to(_place).parameters())
    _resumed.load_state_dict(_state)
    _devices = {one["exp_avg"].device.type for one in _resumed.state.values()}
    assert _devices == {_place}
# of a package: a number in a group stays where the file has it
_resumed = torch.optim.SGD(nn.Linear(3, 2, device="meta").parameters())
_package = torch.optim.SGD(nn.Linear(3, 2).parameters())
_package.param_groups[0]["d"] = torch.ones(1)
_resumed.load_state_dict(_package.state_dict())
assert _resumed.param_groups[0]["d"].is_cpu
# sphinx_gallery_end_ignore

# %%
# The same problem in other words
# -------------------------------
# - **A convolution**: *Input type (torch.cuda.FloatTensor) and weight type (torch.FloatTensor) should be the same* (`seen
#   here <https://github.com/sksq96/pytorch-summary/issues/52>`__). Move the layer.
# - **An LSTM**: *Input and parameter tensors are not at the same device*. Move the input. *Input and hidden tensors*: make the
#   state with ``device=x.device``.
# - ``x[index]``: *indices should be either on cpu or on the same device as the indexed tensor*: ``x[index.to(x.device)]``.
# - A ``DataLoader`` or ``random_split`` after ``torch.set_default_device("cuda")``: *Expected a 'cuda' device type for
#   generator but found 'cpu'*. Pass ``generator=torch.Generator("cuda").manual_seed(torch.initial_seed())``. Without
#   ``manual_seed``, each run shuffles equally.
# - **A Mac**: *Placeholder storage has not been allocated on MPS device!* One tensor is on the CPU.
# - *Tensor on device meta is not on the expected device cpu!* :ref:`sphx_glr_gallery_errors_copy_out_of_meta.py`.


# sphinx_gallery_start_ignore
def _order(seed, seeded):
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        generator = torch.Generator()
        if seeded:
            generator = torch.Generator().manual_seed(torch.initial_seed())
        loader = torch.utils.data.DataLoader(
            torch.arange(30), shuffle=True, generator=generator
        )
        return [one.item() for one in loader], [one.item() for one in loader]


assert _order(1, seeded=False) == _order(2, seeded=False)
assert _order(1, seeded=True) == _order(1, seeded=True) != _order(2, seeded=True)
assert _order(1, seeded=True)[0] != _order(1, seeded=True)[1]
_plain, _loaded = nn.Module(), []
for _options in ({"persistent": False}, {}):
    _module = nn.Module()
    _module.register_buffer("offset", torch.zeros(3), **_options)
    _loaded.append(_module.load_state_dict(_plain.state_dict(), strict=False))
assert [one.missing_keys for one in _loaded] == [[], ["offset"]]
raised = []
try:
    nn.Linear(3, 2, device="meta")(torch.ones(4, 3))
except RuntimeError as error:
    raised.append(str(error))
assert raised == ["Tensor on device meta is not on the expected device cpu!"]
try:
    nn.LSTM(3, 2, device="meta")(torch.ones(1, 4, 3))
except RuntimeError as error:
    raised.append(str(error))
assert raised[1:] == [
    "Input and parameter tensors are not at the same device, "
    "found input tensor at cpu and parameter tensor at meta"
]
try:
    nn.LSTM(3, 2)(torch.ones(1, 4, 3), torch.zeros(2, 1, 4, 2, device="meta").unbind())
except RuntimeError as error:
    raised.append(str(error))
assert raised[2:] == [
    "Input and hidden tensors are not at the same device, "
    "found input tensor at cpu and hidden tensor at meta"
]
# sphinx_gallery_end_ignore

# %%
# What ``to`` does to the graph
# -----------------------------
# The leaf stays on the old device and gets its gradient there:

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
# - :ref:`sphx_glr_gallery_cuda_devices.py`.
# - :ref:`sphx_glr_gallery_errors_non_leaf_in_optimizer.py`.
# - In PyTorch's reference: `torch.Tensor.to <https://docs.pytorch.org/docs/stable/generated/torch.Tensor.to.html>`__.
