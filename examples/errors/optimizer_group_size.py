r"""
loaded state dict contains a parameter group that doesn't match the size of optimizer's group
=============================================================================================

.. index::
   ! single: loaded state dict has a different number of parameter groups
   ! single: optimizer.load_state_dict fails when training is resumed
   ! single: resume training after unfreezing layers
   ! single: KeyError 'betas', 'momentum', 'step' or 'exp_avg' after loading an optimizer

.. in-short::

   A group of the optimizer in the file had a different number of parameters, often because some layers were frozen. Make the
   optimizer as it was, load its state, and add the new parameters afterwards.

   .. code-block:: diff

      - optimizer = torch.optim.Adam(net.parameters())
      + optimizer = torch.optim.Adam(net[2].parameters())
        optimizer.load_state_dict(saved)
      + optimizer.add_param_group({"params": net[0].parameters()})

   **Not this:** changing ``saved["param_groups"]`` until the sizes agree. Weights can then get the state of other weights.
"""

# %%
# The code that raises it
# -----------------------
# First you train the head alone. Then training goes on with all layers:

import torch
from torch import nn

# sphinx_gallery_start_ignore
# isort: split
import torch.distributed as dist
from torch.distributed.checkpoint import state_dict as checkpoint

try:
    # sphinx_gallery_end_ignore
    net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    optimizer = torch.optim.Adam(net[2].parameters())
    net(torch.ones(3, 4)).sum().backward()
    optimizer.step()
    saved = optimizer.state_dict()

    optimizer = torch.optim.Adam(net.parameters())
    optimizer.load_state_dict(saved)
# sphinx_gallery_start_ignore
except ValueError as error:
    message = str(error)
    print("ValueError:", message)
assert (
    message
    == "loaded state dict contains a parameter group that doesn't match the size of optimizer's group"
)
# sphinx_gallery_end_ignore

# %%
# - **Layers were frozen or unfrozen,** as above: build the optimizer with the parameters that it had before. A LoRA adapter is
#   loaded frozen, unless you write ``PeftModel.from_pretrained(..., is_trainable=True)``.
# - **The model has more or fewer layers** than before. Load the weights that still fit, and begin with a new optimizer and a
#   new scheduler: a loaded one gives a wrong learning rate.
# - **A trainer resumes everything,** as ``trainer.fit(ckpt_path=...)`` does. To fine-tune, load only the weights yourself, and
#   leave ``ckpt_path`` out.
# - **The file belongs to a different optimizer,** as the generator's. Load the right one.
# - **The library was updated,** as YOLOv5: resume with the version that wrote the file.
# - **FSDP split the parameters.** Save and load with ``get_optimizer_state_dict`` and ``set_optimizer_state_dict`` from
#   ``torch.distributed.checkpoint.state_dict``, which go by names.
#
# Why
# ---
# The optimizer's state dict finds parameters by number: 0 is the first that the optimizer got. So each number must mean the
# same parameter as before. PyTorch only compares how many each group has:

import matplotlib.pyplot as plt

# figure: Two rows of tiles. The file has the slots 0 and 1, which hold the state of 2.weight and 2.bias. The new optimizer
#   has the slots 0 to 3, and there the slots 0 and 1 are 0.weight and 0.bias.
print("file:     ", [group["params"] for group in saved["param_groups"]])
print("optimizer:", [len(group["params"]) for group in optimizer.param_groups])

names = [name for name, _ in net.named_parameters()]
fig, ax = plt.subplots(figsize=(6, 1.7), layout="constrained")
for row, tiles in enumerate([names[2:], names]):
    for number, name in enumerate(tiles):
        color = "#2563eb" if name.startswith("2") else "#64748b"
        ax.barh(row, 0.9, left=number, height=0.7, color=color)
        ax.text(number + 0.45, row, name, color="white", ha="center", va="center")
ax.set(xticks=[0.45, 1.45, 2.45, 3.45], xticklabels=range(4), yticks=[0, 1])
ax.set(yticklabels=["file", "optimizer"], title="Which parameter has which number")
ax.invert_yaxis()

# sphinx_gallery_start_ignore
assert saved["param_groups"][0]["params"] == [0, 1] and len(saved["param_groups"]) == 1
assert saved["state"][0]["exp_avg"].shape == net[2].weight.shape
assert len(optimizer.param_groups[0]["params"]) == 4
# sphinx_gallery_end_ignore

# %%
# The fix
# -------
# Load first, then add the new parameters as a second group.

optimizer = torch.optim.Adam(net[2].parameters())
optimizer.load_state_dict(saved)
optimizer.add_param_group({"params": net[0].parameters()})
print([len(group["params"]) for group in optimizer.param_groups])

# sphinx_gallery_start_ignore
assert [len(group["params"]) for group in optimizer.param_groups] == [2, 2]
assert torch.equal(
    optimizer.state[net[2].weight]["exp_avg"], saved["state"][0]["exp_avg"]
)
assert net[0].weight not in optimizer.state
_rates = torch.optim.Adam(net[2].parameters(), lr=0.5, weight_decay=0.1)
_rates.load_state_dict(saved)
_rates.add_param_group({"params": net[0].parameters()})
_rates.add_param_group({"params": [nn.Parameter(torch.ones(1))], "lr": 0.01})
assert [group["lr"] for group in _rates.param_groups] == [0.001, 0.5, 0.01]
assert [group["weight_decay"] for group in _rates.param_groups] == [0, 0.1, 0.1]


def _rate(epoch):
    return 1 / (1 + epoch)


def _continued(way):
    """The rates of the third and the fourth step, after two steps, a file and a new group."""
    adam = torch.optim.Adam(net[2].parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.LambdaLR(adam, _rate)
    for _ in range(2):
        adam.step()
        scheduler.step()
    files = adam.state_dict(), scheduler.state_dict()
    adam = torch.optim.Adam(net[2].parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.LambdaLR(adam, _rate)
    adam.load_state_dict(files[0])
    scheduler.load_state_dict(files[1])
    group = {"params": net[0].parameters(), "lr": 0.01, "initial_lr": 0.01}
    adam.add_param_group(group)
    if way != "before":
        last = {"anew": -1, "same": 2, "right": files[1]["last_epoch"] - 1}[way]
        scheduler = torch.optim.lr_scheduler.LambdaLR(adam, _rate, last_epoch=last)
    rates = [[group["lr"] for group in adam.param_groups]]
    adam.step()
    try:
        scheduler.step()
    except ValueError as error:
        return str(error)
    return [*rates, [group["lr"] for group in adam.param_groups]]


def _restarted(with_scheduler):
    """The rate of a new optimizer, below the scheduler of a file with four steps in it."""
    rates, file = [], None
    for _loads in (False, True):
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        scheduler = torch.optim.lr_scheduler.StepLR(sgd, step_size=3)
        if _loads and with_scheduler:
            scheduler.load_state_dict(file)
        for _ in range(4):
            rates.append(sgd.param_groups[0]["lr"])
            sgd.step()
            scheduler.step()
        file = scheduler.state_dict()
    return rates


_two_files = torch.tensor([_restarted(True), _restarted(False)])
assert _two_files[1].allclose(torch.tensor([0.1, 0.1, 0.1, 0.01] * 2))
# the epoch goes on from four, and the rate, which was 0.01, does not
assert _two_files[0, 4:].allclose(torch.tensor([0.1, 0.1, 0.01, 0.01]))
assert "zip() argument 2 is shorter" in str(_continued("before"))
_wanted = [[rate * _rate(epoch) for rate in (0.1, 0.01)] for epoch in (2, 3)]
for _way in ("right", "same", "anew"):
    _equal = torch.tensor(_continued(_way)).allclose(torch.tensor(_wanted))
    assert _equal == (_way == "right")


def _with_adapter(resumes, frozen=False):
    """The adapter after two steps, between which a file may be written and loaded."""
    torch.manual_seed(0)
    head, adapter = nn.Linear(2, 2), nn.Linear(4, 2)
    adam = torch.optim.AdamW([*adapter.parameters(), *head.parameters()], lr=0.1)
    for step in range(2):
        if resumes and step == 1:
            file = adam.state_dict()
            adapter.requires_grad_(not frozen)
            both = [*adapter.parameters(), *head.parameters()]
            adam = torch.optim.AdamW([p for p in both if p.requires_grad], lr=0.1)
            adam.load_state_dict(file)
        head(adapter(torch.ones(3, 4))).square().sum().backward()
        adam.step()
        adam.zero_grad()
    return adapter.weight.detach()


assert torch.equal(_with_adapter(True), _with_adapter(False))
try:
    _with_adapter(True, frozen=True)
except ValueError as error:
    assert str(error) == message
else:
    raise AssertionError
_averaged = []


def _average(_, bucket):
    _averaged.extend(bucket.parameters())
    future = torch.futures.Future()
    future.set_result(bucket.buffer())
    return future


dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
_late = nn.Sequential(nn.Linear(4, 2), nn.Linear(2, 1))
_late[0].requires_grad_(False)
for _made_again in (False, True):
    _wrapped = nn.parallel.DistributedDataParallel(_late)
    _late[0].requires_grad_(True)
    _averaged.clear()
    _wrapped.register_comm_hook(None, _average)
    _wrapped(torch.ones(3, 4)).sum().backward()
    assert _late[0].weight.grad is not None
    assert any(p is _late[0].weight for p in _averaged) == _made_again
dist.destroy_process_group()
_named = torch.optim.Adam(net.parameters())
net(torch.ones(3, 4)).square().sum().backward()
_named.step()
_turned = torch.optim.Adam(list(net.parameters())[::-1])
_file = checkpoint.get_optimizer_state_dict(net, _named)
checkpoint.set_optimizer_state_dict(net, _turned, _file)
for _parameter in net.parameters():
    _averages = [one.state[_parameter]["exp_avg"] for one in (_named, _turned)]
    assert torch.equal(*_averages)
# frozen, but in the optimizer: nothing to add later
_whole = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
_whole[0].requires_grad_(False)
_before = _whole[0].weight.clone()
_file = None
for _frozen in (True, False):
    _whole[0].requires_grad_(not _frozen)
    _resumed = torch.optim.AdamW(_whole.parameters())
    if _file is not None:
        _resumed.load_state_dict(_file)
    _whole(torch.ones(3, 4)).square().sum().backward()
    _resumed.step()
    assert torch.equal(_whole[0].weight, _before) == _frozen
    _file = _resumed.state_dict()
# sphinx_gallery_end_ignore

# %%
# ``load_state_dict`` also takes the settings of the file, such as the learning rate and the weight decay. The added group has
# those of the constructor, unless you give it its own: ``{"params": net[0].parameters(), "lr": 1e-4}``.
#
# A ``LambdaLR`` made before then raises *zip() argument 2 is shorter*. Make it after the new group, which needs an
# ``"initial_lr"``, with ``last_epoch=scheduler_state["last_epoch"] - 1``.
#
# **Before the first run,** give Adam all parameters, the frozen ones too. You can unfreeze them later without a new group. Then
# wrap the model in DDP again, or their gradients are not averaged.
#
# loaded state dict has a different number of parameter groups
# ------------------------------------------------------------
# The file has two groups now, and the optimizer has one:

# sphinx_gallery_start_ignore
raised = []
try:
    # sphinx_gallery_end_ignore
    saved = optimizer.state_dict()

    optimizer = torch.optim.Adam(net.parameters())
    optimizer.load_state_dict(saved)
# sphinx_gallery_start_ignore
except ValueError as error:
    raised.append(str(error))
    print("ValueError:", error)
assert raised == ["loaded state dict has a different number of parameter groups"]
# sphinx_gallery_end_ignore

# %%
# Build both groups before you load, in the same order. Weight decay for some parameters makes two groups, too. For a Hugging
# Face trainer, ``trainer.create_optimizer()`` builds them.

groups = [{"params": net[2].parameters()}, {"params": net[0].parameters()}]
optimizer = torch.optim.Adam(groups)
optimizer.load_state_dict(saved)

# sphinx_gallery_start_ignore
assert torch.equal(
    optimizer.state[net[2].weight]["exp_avg"], saved["state"][0]["exp_avg"]
)
# sphinx_gallery_end_ignore

# %%
# KeyError: 'betas'
# -----------------
# The file of a different class of optimizer can raise a ``KeyError``, sometimes only in ``step()``: SGD has no ``'betas'`` for
# Adam, and Adam has no ``'momentum'`` for SGD. Make an optimizer of the file's class, or begin with a new one as above.

# sphinx_gallery_start_ignore
try:
    # sphinx_gallery_end_ignore
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    adam = torch.optim.Adam(net.parameters())
    adam.load_state_dict(sgd.state_dict())
    adam.step()
# sphinx_gallery_start_ignore
except KeyError as error:
    raised.append(str(error))
    print("KeyError:", error)
for _of, _into in (
    (torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9), torch.optim.Adam),
    (torch.optim.Adam(net.parameters()), torch.optim.SGD),
):
    _of.step()
    _wrong = _into(net.parameters())
    try:
        _wrong.load_state_dict(_of.state_dict())
        _wrong.step()
    except KeyError as error:
        raised.append(str(error))
assert raised[1:] == ["'betas'", "'step'", "'momentum'"]
# sphinx_gallery_end_ignore

# %%
# What not to do
# --------------
# **Do not trust that it loads.** Below, two layers of one shape have changed places, and each weight goes on
# with the momentum of the other:

first, second = nn.Linear(2, 2, bias=False), nn.Linear(2, 2, bias=False)
optimizer = torch.optim.SGD([first.weight, second.weight], lr=0.1, momentum=0.9)
first.weight.grad = torch.full((2, 2), 1.0)
second.weight.grad = torch.full((2, 2), 2.0)
optimizer.step()

resumed = torch.optim.SGD([second.weight, first.weight], lr=0.1, momentum=0.9)
resumed.load_state_dict(optimizer.state_dict())
for name, weight in {"first": first.weight, "second": second.weight}.items():
    before = optimizer.state[weight]["momentum_buffer"][0, 0].item()
    after = resumed.state[weight]["momentum_buffer"][0, 0].item()
    print(f"{name:<7} saved {before}, resumed {after}")

# sphinx_gallery_start_ignore
assert resumed.state[first.weight]["momentum_buffer"].eq(2).all()
assert resumed.state[second.weight]["momentum_buffer"].eq(1).all()
# the sizes made to agree by hand: it loads, and a weight has the state of another one
_file = {
    **saved,
    "param_groups": [{**saved["param_groups"][0], "params": [0, 1, 2, 3]}],
}
_three = torch.optim.Adam(net.parameters())
_three.load_state_dict(_file)
assert _three.state[net[0].weight]["exp_avg"].shape == net[2].weight.shape
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_errors_state_dict_keys.py`, the same for the model.
# - :ref:`sphx_glr_gallery_modes_freezing.py`.
# - In PyTorch's reference: `Optimizer.load_state_dict
#   <https://docs.pytorch.org/docs/stable/generated/torch.optim.Optimizer.load_state_dict.html>`__.
