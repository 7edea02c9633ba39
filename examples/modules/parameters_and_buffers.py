r"""
nn.Parameter, register_buffer and state_dict: what a module registers
=====================================================================

.. index::
   ! single: layers in a Python list are not trained
   single: difference between nn.Parameter, register_buffer and a plain tensor
   single: number of parameters of a model
   single: model.zero_grad or optimizer.zero_grad
   single: load_state_dict and .grad, assign=True
   single: vector_to_parameters, all weights in one vector
   single: register_parameter with None, a layer without bias

.. in-short::

   .. code-block:: python

      self.weight = nn.Parameter(t)  # trained, moved, saved
      self.layers = nn.ModuleList([a, b])  # the same
      self.register_buffer("mean", t)  # moved, saved

   An optimizer gets what is in ``model.parameters()``. A plain tensor under a new name, ``self.scale = t``, is left out
   there, by ``model.to()`` and by ``state_dict()``. The same goes for layers that are only in a Python list. Often
   there is no error, so count the parameters.
"""

# %%
# Most of the model does not learn
# --------------------------------
# A network has several layers of one kind, so you put them into a list. With a Python list, and with an ``nn.ModuleList``: how
# many numbers does an optimizer get?

import copy

import pandas as pd
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = [nn.Linear(2, 16), nn.Linear(16, 16)]  # a Python list
        self.head = nn.Linear(16, 1)

    def forward(self, x):
        for layer in self.layers:
            x = torch.tanh(layer(x))
        return self.head(x)


torch.manual_seed(0)
listed = Net()
registered = copy.deepcopy(listed)
registered.layers = nn.ModuleList(registered.layers)

for model in (listed, registered):
    print("parameters:", sum(p.numel() for p in model.parameters()))

# %%
# With the list, only the 17 numbers of the head learn. The loss still falls a little, so this is easy to miss:


def train(model):
    torch.manual_seed(0)
    x = 4 * torch.rand(256, 2) - 2
    y = torch.sin(2 * x[:, :1]) * x[:, 1:]
    optimizer, losses = torch.optim.Adam(model.parameters(), lr=0.02), []
    for _ in range(150):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


# %%
# .. how-measured:: This code draws the losses.

import matplotlib.pyplot as plt


def draw_losses(losses):
    _, ax = plt.subplots(figsize=(6, 2.8), layout="constrained")
    for (name, curve), color in zip(
        losses.items(), ["#c2410c", "#2563eb"], strict=True
    ):
        ax.plot(curve, color=color)
        ax.text(len(curve) + 2, curve[-1], name, color=color, va="bottom")
    ax.set(xlabel="step", ylabel="loss", xlim=(0, 195), ylim=(0, None))
    ax.set_xticks(range(0, 151, 50))
    ax.set_title("Layers in a Python list do not learn")


# %%
# Trained for 150 steps:

# figure: The loss over 150 steps. With the Python list it falls a little at first, and then stays. With ModuleList it
#   falls close to 0.
losses = {"a list": train(listed), "ModuleList": train(registered)}
draw_losses(losses)

# sphinx_gallery_start_ignore
torch.manual_seed(0)
_start = Net()
_short, _long = losses["a list"], losses["ModuleList"]
assert abs(_short[0] - _long[0]) < 1e-6 and _short[50] < 1.3 * _short[-1]
assert _short[-1] < 0.9 * _short[0] and _long[-1] < 0.2 * _short[-1]
for _layer, _old in zip(listed.layers, _start.layers, strict=True):
    assert torch.equal(_layer.weight, _old.weight)
    assert torch.equal(_layer.bias, _old.bias)
    assert _layer.weight.grad.abs().max() > 0
assert not torch.equal(listed.head.weight, _start.head.weight)
assert sum(p.numel() for p in listed.parameters()) == 17
assert sum(p.numel() for p in registered.parameters()) == 337 == 17 + 48 + 272
_old = [layer.weight.grad.clone() for layer in listed.layers]
torch.optim.Adam(listed.parameters()).zero_grad()
listed.zero_grad()
for _layer, _grad in zip(listed.layers, _old, strict=True):
    assert torch.equal(_layer.weight.grad, _grad)
assert listed.head.weight.grad is None and "layers" not in repr(listed)
_other = nn.Module()
_other.layers = [nn.Linear(2, 2), nn.Dropout()]
assert _other.eval().layers[1].training  # a Dropout in a list stays on
_raised = []
try:
    torch.optim.SGD(_other.parameters(), lr=0.1)
except ValueError as error:
    _raised.append(str(error))
assert _raised == ["optimizer got an empty parameter list"]
for _kind, _made in (
    (nn.ModuleDict, {"a": nn.Linear(2, 2)}),
    (nn.ParameterList, [torch.ones(4), torch.ones(2)]),
    (nn.ParameterDict, {"a": torch.ones(4), "b": torch.ones(2)}),
    (nn.Sequential, nn.Linear(2, 2)),
):
    _other = nn.Module()
    _other.layers = _kind(_made)
    assert sum(p.numel() for p in _other.parameters()) == 6
# sphinx_gallery_end_ignore

# %%
# It happened to a master's thesis (`pytorch#72580 <https://github.com/pytorch/pytorch/issues/72580>`__). **A module has only
# what you assign to it as a parameter, buffer or module. It does not look into a Python list.** So the optimizer does not get
# the listed layers, and ``model.eval()`` leaves a ``Dropout`` among them on. Only backward finds them, because it follows the
# graph. If all layers are in the list, you get *optimizer got an empty parameter list*.

# %%
# Trained, moved, saved: what each kind of attribute gets
# -------------------------------------------------------
# A module with eight attributes:


class Parts(nn.Module):
    def __init__(self):
        super().__init__()
        self.parameter = nn.Parameter(torch.ones(2))
        self.layer = nn.Linear(2, 2)
        self.module_list = nn.ModuleList([nn.Linear(2, 2)])
        self.register_buffer("buffer", torch.ones(2))
        self.register_buffer("unsaved_buffer", torch.ones(2), persistent=False)
        self.tensor = torch.ones(2)
        self.grad_tensor = torch.ones(2, requires_grad=True)
        self.python_list = [nn.Linear(2, 2)]


# %%
# .. how-measured:: Each column is measured: after one backward, one step of SGD, a conversion, and by memory.


def tensor_of(part):
    if isinstance(part, torch.Tensor):
        return part
    return (part if isinstance(part, nn.Linear) else part[0]).weight


NAMES = [
    *("parameter", "layer", "module_list", "buffer", "unsaved_buffer"),
    *("tensor", "grad_tensor", "python_list"),
]


def tabulate_parts(module, names=NAMES):
    before = {name: tensor_of(getattr(module, name)) for name in names}
    saved = {tensor.data_ptr() for tensor in module.state_dict().values()}
    optimizer = torch.optim.SGD(module.parameters(), lr=1.0)
    sum(tensor.sum() for tensor in before.values()).backward()
    old = {name: tensor.detach().clone() for name, tensor in before.items()}
    optimizer.step()
    rows = {
        name: {
            "grad": tensor.grad is not None,
            "trained": not torch.equal(tensor, old[name]),
            "saved": tensor.data_ptr() in saved,
        }
        for name, tensor in before.items()
    }
    module.double()
    for name in names:
        rows[name]["moved"] = tensor_of(getattr(module, name)).dtype == torch.float64
    columns = ["grad", "trained", "moved", "saved"]
    table = pd.DataFrame(rows).T[columns].map(lambda yes: "yes" if yes else "")
    return table.rename_axis(columns="self.")


# %%
# Does backward fill its ``.grad``? Does ``optimizer.step()`` change it? Does ``module.double()`` convert it, as ``.to("cuda")``
# would move it? Is it in ``state_dict()``?

# sphinx_gallery_start_ignore
assert (tabulate_parts(Parts()) == "yes").to_numpy().tolist() == [
    *[[True] * 4] * 3,
    [False, False, True, True],
    [False, False, True, False],
    [False, False, False, False],
    [True, False, False, False],
    [True, False, False, False],
]
_parts = Parts().to("meta")  # another device: the same column
assert [tensor_of(getattr(_parts, name)).is_meta for name in NAMES] == [
    *[True] * 5,
    *[False] * 3,
]
_short, _t = nn.Module(), torch.ones(2)
_short.mean, _short.mask = nn.Buffer(_t), nn.Buffer(_t, persistent=False)
assert list(_short.state_dict()) == ["mean"] and len(list(_short.buffers())) == 2
_frozen = nn.Linear(2, 2).requires_grad_(False)
assert len(list(_frozen.parameters())) == 2 and len(_frozen.state_dict()) == 2
# sphinx_gallery_end_ignore
tabulate_parts(Parts())

# %%
# Which one should you take?
#
# - The numbers are learned: ``nn.Parameter``, also while :ref:`it is frozen <sphx_glr_gallery_modes_freezing.py>`.
# - A loaded model needs them, but they are not learned: a buffer, such as the running mean of a batch normalization.
# - They can be computed again, such as a mask: a buffer with ``persistent=False``, which is left out of the file.
#
# ``requires_grad=True`` alone registers nothing: ``grad_tensor`` gets a gradient, but the optimizer does not get the tensor.
#
# ``self.name = value`` calls a method of ``nn.Module`` that looks at the value. A
# ``Parameter``, an ``nn.Buffer`` or a ``Module`` goes into one of three dictionaries, which are printed below. Everything else
# under a new name is an ordinary attribute, such as a list, or the tensor :ref:`nn.Parameter(...) * 0.01
# <sphx_glr_gallery_graphs_leaves_and_roots.py>`. (``register_parameter("bias", None)`` reserves the name of a parameter.)

parts = Parts()
for names in (parts._parameters, parts._buffers, parts._modules):
    print(list(names))

# sphinx_gallery_start_ignore
parts.register_parameter("bias", None)
assert "bias" not in dict(parts.named_parameters()) and parts.bias is None
assert "bias" not in parts.state_dict() and nn.Linear(2, 2, bias=False).bias is None
_refused = []
try:
    parts.bias = torch.ones(2)
except TypeError as error:
    _refused.append("cannot assign 'torch.FloatTensor' as parameter" in str(error))
parts.bias = nn.Parameter(torch.ones(2))
assert _refused == [True] and parts.bias is dict(parts.named_parameters())["bias"]
assert "grad_tensor" not in dict(Parts().named_parameters())
_assigned = nn.Module()
_assigned.a, _assigned.b = nn.Parameter(torch.ones(2)), nn.Buffer(torch.ones(2))
_assigned.c, _assigned.d = nn.Linear(2, 2), nn.Parameter(torch.ones(2)) * 0.01
assert [n for n, _ in _assigned.named_parameters(recurse=False)] == ["a"]
assert [n for n, _ in _assigned.named_buffers()] == ["b"]
assert [n for n, _ in _assigned.named_children()] == ["c"]
assert "d" in vars(_assigned) and not {"a", "b", "c"} & vars(_assigned).keys()
assert [*_assigned._parameters] == ["a"] and [*_assigned._buffers] == ["b"]
assert [*_assigned._modules] == ["c"]
# sphinx_gallery_end_ignore

# %%
# load_state_dict copies numbers, assign=True replaces parameters
# ---------------------------------------------------------------
# A layer has a gradient, and an optimizer holds its parameters. Now it loads weights that are stored as ``float16``:


def describe_loading(assign):
    layer = nn.Linear(2, 2)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    layer(torch.ones(1, 2)).sum().backward()
    saved = {name: t.half() for name, t in nn.Linear(2, 2).state_dict().items()}

    layer.load_state_dict(saved, assign=assign)

    return {
        "in the optimizer": layer.weight is optimizer.param_groups[0]["params"][0],
        ".grad": "kept" if layer.weight.grad is not None else "None",
        "dtype": str(layer.weight.dtype).removeprefix("torch."),
        "saved's memory": layer.weight.data_ptr() == saved["weight"].data_ptr(),
    }


table = pd.DataFrame(
    {"default": describe_loading(False), "assign=True": describe_loading(True)}
)

# sphinx_gallery_start_ignore
import io
from unittest import mock

assert table["default"].tolist() == [True, "kept", "float32", False]
assert table["assign=True"].tolist() == [False, "None", "float16", True]


def _bytes(*holders):
    tensors = [t for holder in holders for t in holder.values()]
    sizes = {t.untyped_storage().data_ptr(): t.nbytes for t in tensors}
    return sum(sizes.values())


_net = nn.Linear(2, 2)
_sgd = torch.optim.SGD(_net.parameters(), lr=0.1, momentum=0.9)
_net(torch.ones(1, 2)).sum().backward()
_sgd.step()
_momentum = _sgd.state[_net.weight]["momentum_buffer"].clone()
_net.load_state_dict(nn.Linear(2, 2).state_dict())
assert torch.equal(_sgd.state[_net.weight]["momentum_buffer"], _momentum)
assert _momentum.all()
for _assign in (False, True):
    _net, _file = nn.Linear(8, 8), nn.Linear(8, 8).state_dict()
    _net.load_state_dict(_file, assign=_assign)
    assert _bytes(_net.state_dict(), _file) == (1 if _assign else 2) * 4 * 72
_empty = nn.Linear(8, 8, device="meta")
_empty.load_state_dict(nn.Linear(8, 8).state_dict(), assign=True)
assert _empty.weight.is_cpu and _empty.weight.requires_grad
_file = io.BytesIO()
with mock.patch("torch.serialization.location_tag", lambda storage: "cuda:0"):
    torch.save(nn.Linear(8, 8).state_dict(), _file)
_raised = []
with mock.patch("torch.cuda.is_available", lambda: False):
    try:
        _file.seek(0)
        torch.load(_file)  # to the GPU, if there is one
    except RuntimeError as error:
        _raised.append(str(error))
    _file.seek(0)
    assert torch.load(_file, map_location="cpu")["weight"].is_cpu
assert len(_raised) == 1 and "deserialize object on a CUDA device" in _raised[0]
# sphinx_gallery_end_ignore
table.replace({True: "yes", False: "no"})

# %%
# By default, the numbers are written into the parameters that are there, so you can make the optimizer before or after. The old
# ``.grad`` and the optimizer's momentum stay: call ``zero_grad()``, and load the optimizer's state too. With ``assign=True``,
# the module gets new parameters, and :ref:`the optimizer has to be made afterwards
# <sphx_glr_gallery_training_optimizers.py>`.
#
# **Out of memory after loading** (as in `nanoGPT#236 <https://github.com/karpathy/nanoGPT/pull/236>`__). The module and
# ``saved`` are two copies, until you delete ``saved`` and the checkpoint that holds it. Load it with ``torch.load(path,
# map_location="cpu")``, because what was saved on a GPU is loaded to the GPU.

# %%
# The number of parameters of a model
# -----------------------------------
# Count the elements of ``parameters()``. In this model two layers share a weight, and the parameters of the layer between
# them are frozen:


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(100, 8)
        self.norm = nn.BatchNorm1d(8).requires_grad_(False)
        self.out = nn.Linear(8, 100, bias=False)
        self.out.weight = self.embed.weight


model = Tied()
print("all       ", sum(p.numel() for p in model.parameters()))
print("trainable ", sum(p.numel() for p in model.parameters() if p.requires_grad))
print("state_dict", sum(t.numel() for t in model.state_dict().values()))

# sphinx_gallery_start_ignore
assert sum(p.numel() for p in model.parameters()) == 816 == 800 + 16
assert sum(p.numel() for p in model.parameters() if p.requires_grad) == 800
assert sum(t.numel() for t in model.state_dict().values()) == 1633
assert 1633 == 2 * 800 + 16 + 8 + 8 + 1
assert len({t.data_ptr() for t in model.state_dict().values()}) == 6
assert sum(b.numel() for b in model.buffers()) == 17
# sphinx_gallery_end_ignore

# %%
# ``parameters()`` yields a shared weight once, and leaves out buffers. ``state_dict()`` has the weight under both names, and
# the 17 numbers of the buffers. (:ref:`assign=True breaks such a tie <sphx_glr_gallery_modules_tied_weights_and_lora.py>`.)

# %%
# model.zero_grad or optimizer.zero_grad?
# ---------------------------------------
# If the optimizer has exactly the parameters of the model, both do the same. This one has only the head of the model, and a
# temperature from outside. Each of three passes calls one of the two, and then backward, which adds 1 to each gradient:


def gradients_after_three_passes(clear):
    body, head = nn.Linear(2, 2), nn.Linear(2, 1)
    temperature = nn.Parameter(torch.ones(1))
    optimizer = torch.optim.SGD([*head.parameters(), temperature], lr=0.1)
    owner = {"model": nn.Sequential(body, head), "optimizer": optimizer}[clear]
    for _ in range(3):
        owner.zero_grad()
        loss = body.bias.sum() + head.bias.sum() + temperature
        loss.backward()
    return {
        "body": body.bias.grad[0].item(),
        "head": head.bias.grad[0].item(),
        "temperature": temperature.grad.item(),
    }


owners = "model", "optimizer"
table = pd.DataFrame({name: gradients_after_three_passes(name) for name in owners})

# sphinx_gallery_start_ignore
assert table.to_numpy().tolist() == [[1, 3], [1, 1], [3, 1]]


def _later(place, also=None):  # the body is added to the optimizer after three passes
    body, head = nn.Linear(1, 1), nn.Linear(1, 1)
    model = nn.Sequential(body, head)
    optimizer = torch.optim.SGD(head.parameters(), lr=1.0)
    body.requires_grad_(also != "freeze")
    for step in range(4):
        if step == 3:
            body.requires_grad_(True)
            optimizer.add_param_group({"params": list(body.parameters())})
            start = body.bias.item()
        if place == "before backward":
            optimizer.zero_grad()
        (body.bias + head.bias).sum().backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 100.0).item()
        norms.append(round(norm, 3))
        optimizer.step()
        if place == "after step":
            optimizer.zero_grad()
        if also == "both":
            model.zero_grad()
    return round(start - body.bias.item(), 3)


norms = []
assert _later("after step") == 4  # three passes before, and this one
assert norms[:3] == [round((n**2 + 1) ** 0.5, 3) for n in (1, 2, 3)]
assert _later("before backward") == 1
assert _later("after step", "freeze") == _later("after step", "both") == 1
assert norms[8:] == [1, 1, 1, round(2**0.5, 3), *[round(2**0.5, 3)] * 4]
_both = nn.Linear(1, 1)
_optimizers = [
    getattr(torch.optim, _kind)(_both.parameters(), lr=0.1)
    for _kind in ("SGD", "Adam", "RMSprop", "LBFGS")
]
for _owner in (_both, *_optimizers):  # the same parameters: the same effect
    for _to_none in (True, False):
        _both(torch.ones(1)).sum().backward()
        _owner.zero_grad(set_to_none=_to_none)
        _grads = [p.grad for p in _both.parameters()]
        assert all(g is None if _to_none else not g.any() for g in _grads)
# sphinx_gallery_end_ignore
table.rename_axis(columns="zero_grad of")

# %%
# Where it is 3, nothing cleared the gradient, and ``clip_grad_norm_(model.parameters())`` counts it. So freeze the body while
# the optimizer does not have it, or call both.

# %%
# What people get wrong
# ---------------------
# **A plain tensor that should have moved.** The model runs until somebody converts or moves it:


class Masked(nn.Linear):
    def __init__(self):
        super().__init__(3, 3)
        self.mask = torch.ones(3, 3).tril()

    def forward(self, x):
        return super().forward(x) @ self.mask


raised = []
try:
    Masked().double()(torch.ones(1, 3).double())
except RuntimeError as error:
    raised.append(str(error))
    print("RuntimeError:", error)

# sphinx_gallery_start_ignore
assert len(raised) == 1 and "same dtype" in raised[0]
Masked()(torch.ones(1, 3))


class _Buffered(Masked):
    def __init__(self):
        super().__init__()
        mask = self.mask
        del self.mask
        self.register_buffer("mask", mask, persistent=False)


assert _Buffered().double()(torch.ones(1, 3).double()).dtype == torch.float64
_loaded = _Buffered().load_state_dict(nn.Linear(3, 3).state_dict())
assert not _loaded.missing_keys and not _loaded.unexpected_keys


class _Random(nn.Linear):
    def __init__(self):
        super().__init__(3, 3)
        self.frequency = torch.randn(3)


_saved, _fresh = _Random(), _Random()
_loaded = _fresh.load_state_dict(_saved.state_dict())  # strict
assert not _loaded.missing_keys and not _loaded.unexpected_keys
assert torch.equal(_fresh.weight, _saved.weight)
assert not torch.equal(_fresh.frequency, _saved.frequency)
# sphinx_gallery_end_ignore

# %%
# Register it as a buffer. After ``.to("cuda")`` the message is :ref:`Expected all tensors to be on the same device
# <sphx_glr_gallery_errors_two_devices.py>`. A plain tensor is also missing from the file, so if its numbers are random, the
# loaded model has different ones, without an error.
#
# **A buffer that is rounded.** ``model.bfloat16()`` and ``model.half()`` convert buffers too. Of 1,000 positions:

for positions in (torch.arange(1000.0), torch.arange(1000)):
    model = nn.Module()
    model.register_buffer("positions", positions, persistent=False)
    model.bfloat16()
    print(model.positions.dtype, model.positions.unique().numel())

# sphinx_gallery_start_ignore
assert model.positions.unique().numel() == 1000
model.positions = torch.arange(1000.0)
assert model.bfloat16().positions.unique().numel() < 520
# sphinx_gallery_end_ignore

# %%
# Store positions as integers, which are not converted, and compute with them in float32.
#
# **A buffer that keeps the graph.** A running mean is computed from activations that require grad. So the next backward goes
# back into the previous step:


class Centered(nn.Linear):
    def __init__(self):
        super().__init__(3, 3)
        self.register_buffer("mean", torch.zeros(3))

    def forward(self, x):
        h = super().forward(x)
        if self.training:
            self.mean = 0.9 * self.mean + 0.1 * h.mean(dim=0)
        return h - self.mean


centered, raised = Centered(), []
for step in (1, 2):
    try:
        centered(torch.randn(8, 3)).square().sum().backward()
    except RuntimeError as error:
        raised.append(f"step {step}: {error}")
print(raised[0].split(" (")[0])

# sphinx_gallery_start_ignore
assert len(raised) == 1
assert raised[0].startswith(
    "step 2: Trying to backward through the graph a second time"
)


class _InPlace(Centered):
    def forward(self, x):
        h = nn.functional.linear(x, self.weight, self.bias)
        self.mean.mul_(0.9).add_(0.1 * h.mean(dim=0))
        return h - self.mean


class _Detached(Centered):
    def forward(self, x):
        h = nn.functional.linear(x, self.weight, self.bias)
        if self.training:
            self.mean = 0.9 * self.mean + 0.1 * h.detach().mean(dim=0)
        return h - self.mean


for _kind, _fails in ((_InPlace, 1), (_Detached, 0)):
    _model, _raised = _kind(), []
    _optimizer = torch.optim.SGD(_model.parameters(), lr=0.001)
    for _ in range(3):
        try:
            _model(torch.randn(8, 3)).square().sum().backward()
            _optimizer.step()
        except RuntimeError as error:
            _raised.append(str(error))
    assert bool(_raised) == bool(_fails)
    assert "mean" in _model.state_dict() and _model.mean.requires_grad == bool(_fails)
    assert _model.double().mean.dtype == torch.float64
_mean = _model.mean.clone()
_model.eval()(torch.randn(8, 3).double())
assert torch.equal(_model.mean, _mean)  # evaluation leaves it alone
# sphinx_gallery_end_ignore

# %%
# Write ``h.detach().mean(dim=0)``.
#
# **Keeping state_dict() as a copy.** Its tensors share the memory of the parameters. So the next step changes them:

layer = nn.Linear(2, 2)
best = layer.state_dict()
with torch.no_grad():
    layer.weight.fill_(7.0)  # as an optimizer would write
print("kept:", best["weight"].tolist())

# sphinx_gallery_start_ignore
assert (best["weight"] == 7).all()
assert best["weight"].data_ptr() == layer.weight.data_ptr()
assert not best["weight"].requires_grad and best["weight"] is not layer.weight
_copy = copy.deepcopy(layer.state_dict())
with torch.no_grad():
    layer.weight.fill_(1.0)
assert (_copy["weight"] == 7).all()
for _kind in ("SGD", "Adam"):
    _layer = nn.Linear(2, 2)
    _optimizer = getattr(torch.optim, _kind)(_layer.parameters(), lr=0.1)
    _best, _copy = _layer.state_dict(), copy.deepcopy(_layer.state_dict())

    def _closure(layer=_layer, optimizer=_optimizer):
        optimizer.zero_grad()
        loss = (layer(torch.ones(1, 2)) - 9).square().sum()
        loss.backward()
        return loss

    _optimizer.step(_closure)
    assert torch.equal(_best["weight"], _layer.weight)
    assert not torch.equal(_copy["weight"], _layer.weight)
# sphinx_gallery_end_ignore

# %%
# Keep ``copy.deepcopy(layer.state_dict())``, as in :ref:`the list of silent mistakes
# <sphx_glr_gallery_debugging_silent_mistakes.py>`.
#
# ``parameters_to_vector`` copies all parameters into one vector. But ``vector_to_parameters`` makes them views of the vector
# that you pass, so training changes it. Pass ``vector.clone()``:

from torch.nn.utils import parameters_to_vector, vector_to_parameters

vector = parameters_to_vector(layer.parameters()).detach()
vector_to_parameters(vector, layer.parameters())
with torch.no_grad():
    layer.weight.fill_(5.0)
print("vector:", vector[:4].tolist())

# sphinx_gallery_start_ignore
assert vector[:4].eq(5).all() and vector.data_ptr() == layer.weight.data_ptr()
assert layer.weight.grad_fn is None and layer.weight.requires_grad
_layer = nn.Linear(2, 2)
_vector = parameters_to_vector(_layer.parameters()).detach()
_kept = _vector.clone()
torch.optim.SGD(_layer.parameters(), lr=0.1)
with torch.no_grad():
    _layer.weight.fill_(5.0)
assert torch.equal(_vector, _kept)  # a copy
vector_to_parameters(_vector.clone(), _layer.parameters())
_optimizer = torch.optim.SGD(_layer.parameters(), lr=0.1)
_layer(torch.ones(1, 2)).sum().backward()
_optimizer.step()
assert torch.equal(_vector, _kept) and not torch.equal(_layer.weight[0], _kept[:2])
# sphinx_gallery_end_ignore

# %%
# Exercise
# --------
# How many parameters does this module report? And why does it raise for a ``float64`` input, even after ``.double()``? Repair
# both.
#
# .. code-block:: python
#
#    class Scaled(nn.Module):
#        def __init__(self):
#            super().__init__()
#            self.scales = [nn.Parameter(torch.ones(3)) for _ in range(2)]
#            self.table = torch.eye(3)
#
#        def forward(self, x):
#            return (x * self.scales[0] * self.scales[1]) @ self.table
#
# .. solution::
#
# None: the list hides both parameters. ``table`` stays ``float32``, so ``@`` gets two dtypes. A ``ParameterList`` and a
# buffer are registered.


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.scales = nn.ParameterList(torch.ones(3) for _ in range(2))
        self.register_buffer("table", torch.eye(3), persistent=False)

    def forward(self, x):
        return (x * self.scales[0] * self.scales[1]) @ self.table


scaled = Scaled().double()
assert sum(p.numel() for p in scaled.parameters()) == 6
assert scaled(torch.ones(1, 3).double()).dtype == torch.float64
print(list(scaled.state_dict()))

# predict: len(list(_broken.parameters())) -- How many parameters does the module
#   report?

# sphinx_gallery_start_ignore
_broken, _raised = nn.Module(), []
_broken.scales = [nn.Parameter(torch.ones(3)) for _ in range(2)]
_broken.table = torch.eye(3)
assert not list(_broken.double().parameters())
_product = torch.ones(1, 3).double() * _broken.scales[0] * _broken.scales[1]
assert _product.dtype == torch.float64  # the list is no obstacle, the table is
try:
    _product @ _broken.table
except RuntimeError as _error:
    _raised.append(str(_error))
assert len(_raised) == 1 and "same dtype" in _raised[0]
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_errors_cannot_assign_parameter.py`: assigning a tensor to the name of a parameter.
# - :ref:`sphx_glr_gallery_training_optimizers.py`: what else separates a model from its optimizer.
# - :ref:`sphx_glr_gallery_training_reproducibility.py`: what a checkpoint must hold besides the weights.
# - :ref:`sphx_glr_gallery_errors_weights_only_load_failed.py`: when ``torch.load`` refuses a file.
# - In PyTorch's reference: `Parameter <https://docs.pytorch.org/docs/stable/generated/torch.nn.parameter.Parameter.html>`__,
#   `register_buffer <https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.register_buffer>`__
#   and `load_state_dict
#   <https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.load_state_dict>`__.
