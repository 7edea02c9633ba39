r"""
Expected to have finished reduction in the prior iteration before starting a new one.
=====================================================================================

.. index::
   ! single: DistributedDataParallel fails in the second iteration, unused parameters
   ! single: Expected to mark a variable ready only once, parameter has been marked as ready twice
   ! single: Parameter indices which did not receive grad for rank 0
   ! single: 'DistributedDataParallel' object has no attribute, 'DataParallel' object has no attribute
   ! single: It looks like your LightningModule has parameters that were not used in producing the loss
   ! single: got mixed torch.Tensor and DTensor, need to convert all torch.Tensor to DTensor
   ! single: find_unused_parameters=True was specified in DDP constructor, but did not find any unused parameters
   ! single: Grad strides do not match bucket view strides
   ! single: torch.distributed.elastic.multiprocessing.errors.ChildFailedError
   ! single: subprocess.CalledProcessError: Command returned non-zero exit status 1, with accelerate launch

.. in-short::

   ``DistributedDataParallel`` (DDP) waits for a gradient of each parameter that requires one, and some got none. Use these
   layers in the loss. If you do not want to train them, delete or freeze them before you wrap the model.

   .. code-block:: diff

        net = Net()
      + net.old_head.requires_grad_(False)
        model = DistributedDataParallel(net)

   **Not this:** ``find_unused_parameters=True`` as a first try. If ``forward`` forgot a layer, it stays untrained, in silence.
"""

# %%
# The code that raises it
# -----------------------

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

# sphinx_gallery_start_ignore
# isort: split
import os
import tempfile
import warnings

from torch.nn.parallel import DataParallel
from torch.utils.checkpoint import checkpoint as _checkpoint

try:
    # sphinx_gallery_end_ignore
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.classes = 2
            self.body = nn.Linear(3, 4)
            self.old_head = nn.Linear(4, 5)
            self.head = nn.Linear(4, self.classes)

        def forward(self, x):
            return self.head(self.body(x))

    net = Net()
    model = DistributedDataParallel(net)
    for x in torch.rand(2, 8, 3):
        model(x).sum().backward()
# sphinx_gallery_start_ignore
except RuntimeError as error:
    message = str(error)
    print("RuntimeError:", message)
assert message.startswith("Expected to have finished reduction in the prior iteration")
assert "did not receive grad for rank 0: 2 3" in message
# sphinx_gallery_end_ignore

# %%
# - *prior iteration*: the mistake is in the step before.
# - ``2 3``: positions in the list of the parameters that require a gradient.
#
# How to find them
# ----------------
# Take one step without DDP, with the same loss, and print which parameters have no gradient. With
# ``TORCH_DISTRIBUTED_DEBUG=INFO`` in the shell, the message has the names.

net = Net()
net(torch.rand(8, 3)).sum().backward()
trained = {name: p for name, p in net.named_parameters() if p.requires_grad}
unused = [name for name, p in trained.items() if p.grad is None]
print(unused)

# sphinx_gallery_start_ignore
assert unused == ["old_head.weight", "old_head.bias"] == list(trained)[2:4]


def _says(net, *inputs, steps=3, **options):
    model = DistributedDataParallel(net, **options)
    try:
        for _ in range(steps):
            output = model(*inputs)
            (output[0] if isinstance(output, tuple) else output).sum().backward()
    except RuntimeError as error:
        return str(error)
    return ""


class CutOff(Net):
    def forward(self, x):
        hidden = _checkpoint(self.body, x, use_reentrant=True)
        return self.head(hidden) + self.old_head(hidden).sum()


class TwoOutputs(Net):
    def forward(self, x):
        return self.head(self.body(x)), self.old_head(self.body(x))


_one = torch.rand(8, 3)
assert _says(Net(), _one, steps=1) == ""  # the last step of a run is silent
with warnings.catch_warnings(action="ignore"):
    assert "for rank 0: 0 1" in _says(CutOff(), _one)
# the position counts only what requires a gradient
_net = Net()
_net.body.requires_grad_(False)
assert "for rank 0: 0 1" in _says(_net, _one)
# two outputs, one of them in the loss
assert "for rank 0: 2 3" in _says(TwoOutputs(), _one)
# frozen after it was wrapped
_model = DistributedDataParallel(Net())
_model.module.old_head.requires_grad_(False)
_said = []
try:
    for _ in range(3):
        _model(_one).sum().backward()
except RuntimeError as error:
    _said.append(str(error))
assert len(_said) == 1 and _said[0].startswith("Expected to have finished reduction")
# sphinx_gallery_end_ignore

# %%
# Why
# ---
# DDP averages the gradients over the processes in buckets, and a bucket needs all its gradients:

import matplotlib.pyplot as plt

# figure: Six fields, one for each parameter. The gradients of body and head are there. The two of old_head are missing, and
#   DDP still waits for them.
colors = ["#c2410c" if name in unused else "#047857" for name in trained]
fig, ax = plt.subplots(figsize=(7, 1.6), layout="constrained")
ax.bar(range(6), [1] * 6, color=colors, width=0.9)
for number, name in enumerate(trained):
    text = name.replace(".", "\n") + ("\nmissing" if name in unused else "\nis there")
    ax.text(number, 0.5, text, ha="center", va="center", color="white", fontsize=9)
ax.set_axis_off()
ax.set_title("Gradients after one backward, as DDP counts them")

# sphinx_gallery_start_ignore
assert colors.count("#c2410c") == 2 and len(colors) == 6
# sphinx_gallery_end_ignore

# %%
# The fix
# -------
# **You want to train the layer**: ``forward`` forgot it, or a ``detach`` or :ref:`a checkpoint
# <sphx_glr_gallery_errors_checkpoint_without_gradients.py>` cut it off.
#
# **You do not need the layer, or its output is not in the loss**: delete it, or freeze it *before* ``DistributedDataParallel``
# or ``accelerator.prepare``, which makes the list. If you unfreeze the layer later, give it to the optimizer, and wrap the
# model again, or its gradients are not averaged.

net = Net()
net.old_head.requires_grad_(False)
model = DistributedDataParallel(net)
for x in torch.rand(2, 8, 3):
    model(x).sum().backward()

# sphinx_gallery_start_ignore
_reductions = []


def _count(state, bucket):
    _reductions.append(sum(p.numel() for p in bucket.parameters()))
    future = torch.futures.Future()
    future.set_result(bucket.buffer())
    return future


# unfrozen after it was wrapped: trained, and not averaged
_net = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2))
_net[0].requires_grad_(False)
_optimizer = torch.optim.SGD([p for p in _net.parameters() if p.requires_grad], lr=0.1)
assert len(_optimizer.param_groups[0]["params"]) == 2  # of 4
for _again, _numbers in ((False, 10), (True, 26)):
    if not _again:
        _model = DistributedDataParallel(_net)
    _net[0].requires_grad_(True)
    if _again:
        _model = DistributedDataParallel(_net)
    _model.register_comm_hook(None, _count)
    _model(x).sum().backward()
    assert _net[0].weight.grad.any() and sum(_reductions) == _numbers
    _reductions.clear()
_before = _net[0].weight.detach().clone()
_optimizer.step()
assert torch.equal(_net[0].weight, _before)
_optimizer.add_param_group({"params": _net[0].parameters()})
_optimizer.step()
assert not torch.equal(_net[0].weight, _before)


# two losses of one forward
class Two(Net):
    def forward(self, x):
        hidden = self.body(x)
        return self.head(hidden), self.old_head(hidden)


_said = []
for _once in (False, True):
    _net, _plain = Two(), Two()
    _plain.load_state_dict(_net.state_dict())
    _model = DistributedDataParallel(_net)
    try:
        for _each in (_model, _plain):
            _first, _second = (output.square().sum() for output in _each(x))
            if _once:
                (_first + _second).backward()
            else:
                _first.backward(retain_graph=True)
                _second.backward()
    except RuntimeError as error:
        _said.append((_once, str(error)))
assert len(_said) == 1 and not _said[0][0]
assert _said[0][1].startswith("Expected to mark a variable ready only once")
for _one_grad, _other in zip(_net.parameters(), _plain.parameters(), strict=True):
    assert torch.allclose(_one_grad.grad, _other.grad)
# sphinx_gallery_end_ignore

# %%
# **Each step takes a different branch**, as in a mixture of experts, a GAN in Lightning or a detector whose batch has no boxes:
# pass ``find_unused_parameters=True``. In Lightning it is ``strategy="ddp_find_unused_parameters_true"``, in Transformers
# ``ddp_find_unused_parameters=True``, in Accelerate ``DistributedDataParallelKwargs(find_unused_parameters=True)``, in the
# configuration of mmdetection ``find_unused_parameters = True``.


class Branches(nn.Module):
    def __init__(self):
        super().__init__()
        self.experts = nn.ModuleList([nn.Linear(3, 2), nn.Linear(3, 2)])

    def forward(self, x, expert):
        return self.experts[expert](x)


model = DistributedDataParallel(Branches(), find_unused_parameters=True)
for expert in (0, 1, 0):
    model(torch.rand(8, 3), expert).sum().backward()

# sphinx_gallery_start_ignore
_wrapped, _plain = Branches(), Branches()
_plain.load_state_dict(_wrapped.state_dict())
_model = DistributedDataParallel(_wrapped, find_unused_parameters=True)
for expert in (0, 1, 0):
    for _each in (_model, _plain):
        _each(_one, expert).square().sum().backward()
assert all(
    torch.allclose(one.grad, two.grad)
    for one, two in zip(_wrapped.parameters(), _plain.parameters(), strict=True)
)
_net = TwoOutputs()
_net.old_head.requires_grad_(False)
assert _says(_net, _one) == "" and _net.head.weight.grad is not None
assert _says(Net(), _one, find_unused_parameters=True) == ""
assert _says(Branches(), _one, 0).startswith("Expected to have finished reduction")


# a GAN in one module, each half frozen while the other learns
class _GAN(nn.Module):
    def __init__(self):
        super().__init__()
        self.maker, self.judge = nn.Linear(2, 3), nn.Linear(3, 1)

    def forward(self, real, noise, making):
        made = self.maker(noise)
        if making:
            return -self.judge(made).sigmoid().log().mean()
        return self.judge(made.detach()).exp().mean() - self.judge(real).mean()


def _adversarial(wrap):
    torch.manual_seed(0)
    net = _GAN()
    halves, model, steps = (net.judge, net.maker), wrap(net), []
    for half in halves:
        steps.append(torch.optim.SGD(half.parameters(), lr=0.1, momentum=0.9))
    try:
        for _ in range(2):
            for making in (True, False):
                halves[not making].requires_grad_(False)
                steps[making].zero_grad()
                model(torch.ones(4, 3), torch.ones(4, 2), making).backward()
                steps[making].step()
                net.requires_grad_(True)
    except RuntimeError as error:
        return str(error)
    return torch.cat([p.detach().flatten() for p in net.parameters()])


def _finding(net):
    return DistributedDataParallel(net, find_unused_parameters=True)


_said = _adversarial(DistributedDataParallel)
assert _said.startswith("Expected to have finished reduction")
assert torch.allclose(_adversarial(_finding), _adversarial(lambda net: net))


# the forgotten layer learns nothing
_net = Net()
assert _says(_net, _one, find_unused_parameters=True) == ""
assert all(p.grad is None for p in _net.old_head.parameters())


# an error in backward leaves the step half done, whatever the option says
def _out_of_memory(gradient):
    raise torch.OutOfMemoryError


def _skips(where, option):
    net, said = Net(), []
    net.old_head.requires_grad_(option)
    model = DistributedDataParallel(net, find_unused_parameters=option)
    for step in range(3):
        net.zero_grad()
        try:
            if step == 1 and where == "before forward":
                raise torch.OutOfMemoryError
            output = model(_one)
            if step == 1 and where == "before backward":
                raise torch.OutOfMemoryError
            hook = net.body.weight.register_hook(_out_of_memory if step == 1 else abs)
            output.square().sum().backward()
        except torch.OutOfMemoryError:
            said.append("skipped")
        except RuntimeError as error:
            said.append(str(error))
        if where == "in backward":
            hook.remove()
    return said


for _option in (False, True):
    _said = _skips("in backward", _option)
    assert len(_said) == 2 and _said[1].startswith("Expected to have finished")
    for _where in ("before forward", "before backward"):
        assert _skips(_where, _option) == ["skipped"]
# sphinx_gallery_end_ignore

# %%
# **You catch an out-of-memory error in** ``backward`` **and skip the batch**: let the program end. Skip batches before
# ``backward``, on all processes together.

# %%
# Marked as ready twice
# ---------------------
# A gradient comes twice in one step:
#
# - ``backward`` **twice after one** ``forward``: add the two losses.
# - ``find_unused_parameters=True`` with ``forward`` twice before ``backward``, a parameter used outside of ``forward``, or an
#   output of your own class: leave the option out, or do all in one ``forward`` that returns a tuple.
# - **A checkpoint** with ``use_reentrant=True``, together with this option, or of one layer twice:

from torch.utils.checkpoint import checkpoint

# sphinx_gallery_start_ignore
raised = []
try:
    # sphinx_gallery_end_ignore
    class Checkpointed(Net):
        def forward(self, x):
            x = self.body(x)
            return checkpoint(self.head, x, use_reentrant=True)

    net = Checkpointed()
    model = DistributedDataParallel(net, find_unused_parameters=True)
    model(torch.rand(8, 3)).sum().backward()
# sphinx_gallery_start_ignore
except RuntimeError as error:
    raised.append(str(error))
    print("RuntimeError:", error)
assert len(raised) == 1 and "name head.bias has been marked as ready twice" in raised[0]
assert raised[0].startswith("Expected to mark a variable ready only once.")


class Twice(nn.Module):
    def __init__(self, reentrant):
        super().__init__()
        self.reentrant = reentrant
        self.body, self.head = nn.Linear(3, 3), nn.Linear(3, 3)

    def forward(self, x):
        x = checkpoint(self.head, self.body(x), use_reentrant=self.reentrant)
        return checkpoint(self.head, x, use_reentrant=self.reentrant)


assert _says(Twice(True), _one).startswith(
    "Expected to mark a variable ready only once"
)
assert _says(Twice(False), _one) == ""


# two forwards, a parameter outside, an output that DDP does not see
class _Output:
    def __init__(self, value):
        self.value = value


class _Hidden(nn.Linear):
    def forward(self, x):
        return _Output(super().forward(x))


_cases = [
    (Branches, lambda model, net: model(_one, 0).sum() + model(_one, 1).sum()),
    (Net, lambda model, net: model(_one).sum() + net.old_head.weight.square().sum()),
    (lambda: _Hidden(3, 2), lambda model, net: model(_one).value.square().sum()),
]
for _make, _loss in _cases:
    for _option in (True, False):
        _net = _make()
        if isinstance(_net, Net):
            _net.old_head.bias.requires_grad_(False)
        _plain = _make()
        _plain.load_state_dict(_net.state_dict())
        _model = DistributedDataParallel(_net, find_unused_parameters=_option)
        _said = ""
        try:
            for _ in range(2):
                _net.zero_grad()
                _loss(_model, _net).backward()
        except RuntimeError as error:
            _said = str(error)
        assert ("Expected to mark a variable ready only once" in _said) == _option
    _loss(_plain, _plain).backward()
    for _each, _other in zip(_net.parameters(), _plain.parameters(), strict=True):
        assert not _each.requires_grad or torch.allclose(_each.grad, _other.grad)
# sphinx_gallery_end_ignore

# %%
# Use ``use_reentrant=False``, in a Trainer of Transformers ``gradient_checkpointing_kwargs={"use_reentrant": False}``.


class Checkpointed(Net):
    def forward(self, x):
        x = self.body(x)
        return checkpoint(self.head, x, use_reentrant=False)


net = Checkpointed()
model = DistributedDataParallel(net, find_unused_parameters=True)
for x in torch.rand(2, 8, 3):
    model(x).sum().backward()

# %%
# The wrapper has no such attribute
# ---------------------------------
# ``DistributedDataParallel`` and ``DataParallel`` are modules around yours:

# sphinx_gallery_start_ignore
raised = []
try:
    # sphinx_gallery_end_ignore
    print(model.classes)
# sphinx_gallery_start_ignore
except AttributeError as error:
    raised.append(str(error))
    print("AttributeError:", error)
try:
    DataParallel(Net()).classes
except AttributeError as error:
    raised.append(str(error))
assert raised == [
    "'DistributedDataParallel' object has no attribute 'classes'",
    "'DataParallel' object has no attribute 'classes'",
]
# sphinx_gallery_end_ignore

# %%
# Your attributes and methods are in ``model.module``. In Accelerate, ``accelerator.unwrap_model(model)`` works on one GPU, too:

print(model.module.classes)

# sphinx_gallery_start_ignore
_reductions.clear()
_model = DistributedDataParallel(nn.Linear(3, 2))
_model.register_comm_hook(None, _count)
_model(_one).sum().backward()
assert _reductions == [8]
_model.module(_one).sum().backward()
assert _reductions == [8]  # no average, if the wrapper was not called
# sphinx_gallery_end_ignore

# %%
# In training, call ``model(x)``: ``model.module(x)`` would not average the gradients.
#
# got mixed torch.Tensor and DTensor
# ----------------------------------
# ``fully_shard`` (FSDP2) cuts each weight into parts. ``forward`` puts them together. This line uses a weight outside of it:

from torch.distributed.fsdp import fully_shard

# sphinx_gallery_start_ignore
raised = []
try:
    # sphinx_gallery_end_ignore
    net = fully_shard(Net(), mesh=dist.device_mesh.init_device_mesh("cpu", (1,)))
    scores = torch.rand(8, 4) @ net.head.weight.T
# sphinx_gallery_start_ignore
except RuntimeError as error:
    raised.append(str(error))
    print("RuntimeError:", error)
assert len(raised) == 1 and raised[0].startswith(
    "aten.mm.default got mixed torch.Tensor and DTensor, need to convert all"
)
_whole = net.state_dict()["head.weight"].full_tensor().detach()
_plain = Net()
_plain.load_state_dict({n: p.full_tensor() for n, p in net.state_dict().items()})
for _each in (net, _plain):
    _each(_one).square().sum().backward()
_grad = net.body.weight.grad.full_tensor()
assert torch.equal(_whole, _plain.head.weight) and torch.allclose(
    _grad, _plain.body.weight.grad
)
# sphinx_gallery_end_ignore

# %%
# - **In a loss**: compute it in the ``forward`` of the sharded module that holds the weight.
# - **In a method** such as ``generate``: call ``torch.distributed.fsdp.register_fsdp_forward_method(net, "generate")``.
# - **In clip_grad_norm_**, if only a part is sharded: call ``fully_shard(net)``, too, or the rest is not averaged.
# - **A plain checkpoint**: ``set_model_state_dict`` of ``torch.distributed.checkpoint.state_dict``, with
#   ``options=StateDictOptions(full_state_dict=True)``. ``set_optimizer_state_dict`` needs what ``get_optimizer_state_dict``
#   saved.
# - **EMA**: make it before you shard, and shard ``ema.module``, too.
# - **For a log**: read the state dict, on all processes:

with torch.no_grad():
    net(torch.rand(8, 3))
print("head.weight:", net.state_dict()["head.weight"].full_tensor().shape)

# sphinx_gallery_start_ignore
from torch.distributed.fsdp import register_fsdp_forward_method


class _Generating(Net):
    def generate(self, x):
        return self.head(self.body(x))


_net = fully_shard(_Generating(), mesh=dist.device_mesh.init_device_mesh("cpu", (1,)))
_said = []
try:
    _net.generate(_one)
except RuntimeError as error:
    _said.append("got mixed torch.Tensor and DTensor" in str(error))
assert _said == [True]
register_fsdp_forward_method(_net, "generate")
_net.generate(_one).sum().backward()
assert _net.head.weight.grad.full_tensor().any()
_mesh = dist.device_mesh.init_device_mesh("cpu", (1,))

# only the body is sharded, and then the rest: only DTensors are averaged
from torch.distributed.tensor import DTensor
from torch.nn.utils import clip_grad_norm_

for _root in (False, True):
    _net, _plain, _said = Net(), Net(), []
    _plain.load_state_dict(_net.state_dict())
    fully_shard(_net.body, mesh=_mesh)
    if _root:
        fully_shard(_net, mesh=_mesh)
    for _each in (_net, _plain):
        (9 * _each(_one)).square().sum().backward()
    assert isinstance(_net.head.weight.grad, DTensor) == _root
    _net.old_head.requires_grad_(False)
    try:
        _norm = clip_grad_norm_(_net.parameters(), 1.0)
    except RuntimeError as error:
        _said.append("got mixed torch.Tensor and DTensor" in str(error))
    assert _said == ([] if _root else [True])
_whole = clip_grad_norm_(_plain.parameters(), 1.0)
assert torch.allclose(_norm.full_tensor(), _whole) and _whole > 1
for _part in ("body", "head"):
    _one_grad = getattr(_net, _part).weight.grad.full_tensor()
    assert torch.allclose(_one_grad, getattr(_plain, _part).weight.grad)


class _Reading(Net):
    def forward(self, x):
        return self.body(x) @ self.head.weight.T


for _head_too in (False, True):
    _net, _said = _Reading(), []
    if _head_too:
        fully_shard(_net.head, mesh=_mesh)
    fully_shard(_net, mesh=_mesh)
    for _call, _input in ((_net, _one), (_net.head, torch.rand(8, 4))):
        try:
            _call(_input).sum().backward()
        except RuntimeError as error:
            _said.append("got mixed torch.Tensor and DTensor" in str(error))
        else:
            _said.append(False)
    assert _said == [_head_too, not _head_too]

# a plain checkpoint of the model and of the optimizer, and an average
from copy import deepcopy

from torch.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_optimizer_state_dict,
    set_model_state_dict,
    set_optimizer_state_dict,
)
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn


def _mixes(function, *arguments):
    try:
        function(*arguments)
    except RuntimeError as error:
        assert "got mixed torch.Tensor and DTensor" in str(error)
        return True
    return False


def _step(net, optimizer):
    net.zero_grad()
    net(_one).square().mean().backward()
    optimizer.step()


_options = StateDictOptions(full_state_dict=True)
_plain = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2))
_net = fully_shard(nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2)), mesh=_mesh)
_old = torch.optim.AdamW(_plain.parameters())
_step(_plain, _old)
_state = _plain.state_dict()
assert _mixes(_net.load_state_dict, _state)
assert _mixes(set_model_state_dict, _net, _state)
for _way in ("load_state_dict", "set_optimizer_state_dict"):
    set_model_state_dict(_net, _state, options=_options)
    _optimizer = torch.optim.AdamW(_net.parameters())
    if _way == "load_state_dict":
        _optimizer.load_state_dict(deepcopy(_old.state_dict()))
        assert _mixes(_step, _net, _optimizer)
        _net.zero_grad()
    else:
        _saved = deepcopy(get_optimizer_state_dict(_plain, _old, options=_options))
        set_optimizer_state_dict(_net, _optimizer, _saved, options=_options)
        _step(_net, _optimizer)
_step(_plain, _old)
for _name, _part in _net.state_dict().items():
    assert torch.allclose(_part.full_tensor(), _plain.state_dict()[_name])

_averages = []
for _sharded in (None, False, True):
    torch.manual_seed(0)
    _net = Net()
    _ema = AveragedModel(_net, multi_avg_fn=get_ema_multi_avg_fn(0.9))
    if _sharded is not None:
        fully_shard(_net, mesh=_mesh)
    if _sharded:
        fully_shard(_ema.module, mesh=_mesh)
    if _sharded is False:
        assert _mixes(_ema.update_parameters, _net)
        continue
    for _ in range(3):
        with torch.no_grad():
            for _each in _net.parameters():
                _each.add_(1.0)
        _ema.update_parameters(_net)
    _averages.append(_ema(_one))
assert torch.allclose(*_averages)
# sphinx_gallery_end_ignore

# %%
# Two warnings of DDP
# -------------------
# **Grad strides do not match bucket view strides**, often from a convolution of size 1 or of gray images. The gradients
# are right.

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

# sphinx_gallery_start_ignore
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    # sphinx_gallery_end_ignore
    if not dist.is_initialized():
        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    images = torch.ones(2, 1, 8, 8).to(memory_format=torch.channels_last)
    model = DistributedDataParallel(nn.Conv2d(1, 6, 5))
    model(images).square().sum().backward()
# sphinx_gallery_start_ignore
warning = str(caught[0].message)
print("UserWarning:", warning.partition(" (Triggered")[0])
assert warning.startswith("Grad strides do not match bucket view strides.")
assert "This is not an error, but may impair performance." in warning
assert "[6, 1, 5, 5], strides() = [25, 1, 5, 1]" in warning
assert "[6, 1, 5, 5], strides() = [25, 25, 5, 1]" in warning
_grad = model.module.weight.grad
_alone = nn.Conv2d(1, 6, 5)
_alone.load_state_dict(model.module.state_dict())
_alone(images).square().sum().backward()
assert torch.allclose(_grad, _alone.weight.grad)
with warnings.catch_warnings(action="ignore"):
    _images = torch.rand(2, 3, 8, 8).to(memory_format=torch.channels_last)
    _small = DistributedDataParallel(nn.Conv2d(3, 6, 1))
    _small(_images).square().sum().backward()
_alone = nn.Conv2d(3, 6, 1)
_alone.load_state_dict(_small.module.state_dict())
_alone(_images).square().sum().backward()
assert torch.allclose(_small.module.weight.grad, _alone.weight.grad, atol=1e-5)
# sphinx_gallery_end_ignore

# %%
# **find_unused_parameters=True was specified … but did not find any unused parameters**: remove it, unless a later step uses a
# different branch:

# sphinx_gallery_start_ignore
with tempfile.TemporaryFile("w+") as _file:
    _saved = os.dup(2)
    os.dup2(_file.fileno(), 2)
    # sphinx_gallery_end_ignore
    model = DistributedDataParallel(nn.Linear(3, 2), find_unused_parameters=True)
    model(torch.ones(8, 3)).sum().backward()
    # sphinx_gallery_start_ignore
    os.dup2(_saved, 2)
    _file.seek(0)
    _log = _file.read()
print("Warning:", _log.partition("Warning: ")[2].partition(" This flag")[0])
assert (
    "Warning: find_unused_parameters=True was specified in DDP constructor, but did not "
    "find any unused parameters in the forward pass."
) in _log
dist.destroy_process_group()
# sphinx_gallery_end_ignore

# %%
# ChildFailedError and CalledProcessError
# ---------------------------------------
# ``torchrun`` and ``accelerate launch`` raise these if your program fails. The cause is printed *above*:

import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

program = """
import os
batches = [[1, 2], []]
print(batches[int(os.environ["RANK"])][0])
"""
torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
with TemporaryDirectory() as folder:
    file = Path(folder, "train.py")
    file.write_text(program)
    ended = subprocess.run(
        [*torchrun, "--nproc-per-node=2", file], capture_output=True, text=True
    )
for line in ended.stderr.splitlines():
    words = line.strip()
    if words.startswith(("IndexError", "torch.distributed.e", "Root", "rank      : 1")):
        print(words)

# sphinx_gallery_start_ignore
_log = ended.stderr
assert ended.returncode == 1 and "ChildFailedError" in _log, _log[-3000:]
assert "IndexError: list index out of range" in _log.partition("ChildFailedError")[0]
_cause = _log.partition("Root Cause (first observed failure):")[2]
assert "rank      : 1 (local_rank: 1)" in _cause and "exitcode  : 1 " in _cause
_said = []
try:  # as the launcher of accelerate does for one process
    subprocess.run([sys.executable, "-c", "import sys; sys.exit(1)"], check=True)
except subprocess.CalledProcessError as error:
    _said.append(str(error))
assert _said[0].endswith("returned non-zero exit status 1.")
# sphinx_gallery_end_ignore

# %%
# Search the log from its *beginning* for the first ``Traceback``. Exit code -9, without a traceback, most often means
# that main memory ran out.
#
# See also
# --------
# - :ref:`sphx_glr_gallery_graphs_why_is_grad_none.py`.
# - :ref:`sphx_glr_gallery_errors_state_dict_keys.py`: ``module.`` in front of the names of a checkpoint.
# - :ref:`sphx_glr_gallery_scale_fsdp_and_dtensor.py`: the gradients of ``fully_shard``.
