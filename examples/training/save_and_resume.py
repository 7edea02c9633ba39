r"""
Save and load a checkpoint, and resume training
===============================================

.. index::
   single: save and load a model
   single: checkpoint, save and resume training
   single: loss jumps after resuming from a checkpoint
   single: torch.save and state_dict
   single: keep the best model during training
   single: CUDA out of memory after loading a checkpoint

.. in-short::

   Save the state of everything that changes in training. To resume, build the same objects, then load each state:

   .. code-block:: python

      torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, path)

      saved = torch.load(path, map_location="cpu")
      model.load_state_dict(saved["model"])
      optimizer.load_state_dict(saved["optimizer"])

   To use a trained model, its own state is enough; then call ``model.eval()``. Schedulers and a ``GradScaler`` have states too,
   flags such as ``requires_grad`` none.
"""

# %%
# The problem: the loss jumps after a restart
# -------------------------------------------
# A training ends after 300 steps. You load the weights and go on, and after one step the loss is about 20 times as large.
#
# .. how-measured:: This code builds a small model, trains it on one batch, and draws losses.

import tempfile

import matplotlib.pyplot as plt
import torch
from torch import nn

x = torch.linspace(-2, 2, 64)[:, None]
y = torch.sin(3 * x)


def start(seed, lr=0.01):
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 1))
    return model, torch.optim.Adam(model.parameters(), lr=lr)


def train(model, optimizer, steps):
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = (model(x) - y).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def draw(before, curves):
    _, ax = plt.subplots(figsize=(7, 3), layout="constrained")
    ax.semilogy(before, color="#64748b", label="before the restart")
    colors = {"the model alone": "#c2410c", "model and optimizer": "#2563eb"}
    for name, losses in curves.items():
        ax.semilogy(range(300, 400), losses, color=colors[name], label=name)
    ax.set(xlabel="step", ylabel="loss", xlim=(200, 400), ylim=(1e-3, 0.2))
    ax.set_title("What was loaded decides how the training goes on")
    ax.legend(loc="upper left")
    for name, losses in curves.items():
        print(f"{name:<20} largest loss {max(losses):.4f}   last loss {losses[-1]:.4f}")


def resume(*names):
    model, optimizer = start(seed=1)
    saved = torch.load(path, map_location="cpu")
    for name, part in {"model": model, "optimizer": optimizer}.items():
        if name in names:
            part.load_state_dict(saved[name])
    return train(model, optimizer, steps=100)


folder = tempfile.TemporaryDirectory()
path = folder.name + "/checkpoint.pt"

# %%
# The training, the file, and two ways to go on in a new program, with new weights:

import copy
import io
import os

import pandas as pd
import torch
from torch import nn

model, optimizer = start(seed=0)
before = train(model, optimizer, steps=300)
state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
torch.save(state, path)
uninterrupted = train(model, optimizer, steps=100)

# figure: Loss on a logarithmic scale, steps 200 to 400. Until the restart at step 300 it falls to less than 0.003. With the
#   model alone it jumps to about 20 times that in one step, and needs about 40 steps to stay below the loss of step 300. With
#   model and optimizer it goes on as before.
curves = {
    "the model alone": resume("model"),
    "model and optimizer": resume("model", "optimizer"),
}
draw(before, curves)
print("as if never interrupted:", curves["model and optimizer"] == uninterrupted)

# sphinx_gallery_start_ignore
_alone, _both = curves.values()
# rounding differs between processors, and 300 steps make it visible
assert 15 < max(_alone) / before[-1] < 30 and _alone.index(max(_alone)) == 1
assert 30 < max(step for step in range(100) if _alone[step] > before[-1]) < 60
assert before[-1] < 0.003
assert max(_both) < 1.1 * before[-1] and _both == uninterrupted
assert _alone[-1] > _both[-1]
_saved = torch.load(path, map_location="cpu")
assert list(_saved) == ["model", "optimizer"]
# sphinx_gallery_end_ignore

# %%
# Add to the dictionary what else you need, such as the number of the epoch.
#
# Nothing here is random after the start, so the resumed run is the same to the last bit. With shuffling or dropout, a resumed
# run is as good, and differs. For the same numbers, save between two epochs, and save :ref:`the states of the generators
# <sphx_glr_gallery_training_reproducibility.py>` as well.
#
# What people get wrong
# ---------------------
# **The best model is not kept.** ``state_dict()`` returns tensors that share the model's memory, and the optimizer writes into
# it. What you keep goes on training:

model, optimizer = start(seed=0)
best = model.state_dict()
copied = copy.deepcopy(best)
train(model, optimizer, steps=10)
print("best is the model of now:", torch.equal(best["0.weight"], model[0].weight))
print("the copy is older:       ", not torch.equal(copied["0.weight"], model[0].weight))

# sphinx_gallery_start_ignore
assert all(torch.equal(_t, best[_name]) for _name, _t in model.state_dict().items())
assert not any(
    torch.equal(_t, copied[_name]) for _name, _t in model.state_dict().items()
)
assert best["0.weight"].data_ptr() == model[0].weight.data_ptr()
_frozen = optimizer.state_dict()
_step = _frozen["state"][0]["exp_avg"].clone()
train(model, optimizer, steps=1)
assert not torch.equal(
    _step, _frozen["state"][0]["exp_avg"]
)  # the optimizer's state, too
# sphinx_gallery_end_ignore

# %%
# Use ``copy.deepcopy(model.state_dict())``, or ``torch.save`` at once.
#
# **A new learning rate has no effect.** The optimizer's state has its options in it, and loading puts the old ones back.
# Change the learning rate after that:

model, optimizer = start(seed=1, lr=0.002)
optimizer.load_state_dict(torch.load(path)["optimizer"])
print("asked for 0.002, has", optimizer.param_groups[0]["lr"])
for group in optimizer.param_groups:
    group["lr"] = 0.002

# sphinx_gallery_start_ignore
assert optimizer.state_dict()["param_groups"][0]["lr"] == 0.002
for _make, _stays in (
    (lambda o: torch.optim.lr_scheduler.StepLR(o, 100), True),
    (
        lambda o: torch.optim.lr_scheduler.LambdaLR(o, lambda step: 1 / (step + 1)),
        False,
    ),
):
    _optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    _scheduler = _make(_optimizer)
    _optimizer.param_groups[0]["lr"] = 0.002
    _optimizer.step()
    _scheduler.step()
    assert (_optimizer.param_groups[0]["lr"] == 0.002) == _stays
optimizer.load_state_dict(torch.load(path)["optimizer"])
assert optimizer.param_groups[0]["lr"] == 0.01
_decayed = torch.optim.Adam(model.parameters(), weight_decay=0.5, betas=(0.5, 0.5))
_decayed.load_state_dict(torch.load(path)["optimizer"])
assert (
    _decayed.param_groups[0]["weight_decay"] == 0
    and _decayed.param_groups[0]["betas"][0] == 0.9
)
# sphinx_gallery_end_ignore

# %%
# With a scheduler it may not stay: ``StepLR`` goes on from your number, ``LambdaLR`` overwrites it. See :ref:`resuming a
# schedule <sphx_glr_gallery_training_learning_rate_schedules.py>`.
#
# **The program ends while it writes,** and the only checkpoint is broken. Write a second file, then let it replace the first.
# Whenever the program ends, ``path`` is a whole file, the old one or the new one:

torch.save(state, path + ".tmp")
os.replace(path + ".tmp", path)

# sphinx_gallery_start_ignore
assert os.listdir(folder.name) == ["checkpoint.pt"] and len(torch.load(path)) == 2
with open(path, "rb") as _file:
    _whole = _file.read()
for _part in (len(_whole) // 2, 9 * len(_whole) // 10):
    with open(path, "wb") as _file:
        _file.write(_whole[:_part])
    try:
        torch.load(path)
    except (RuntimeError, OSError):
        continue
    raise AssertionError
with open(path, "wb") as _file:
    _file.write(_whole)
# sphinx_gallery_end_ignore

# %%
# What is in the file, and what is not
# ------------------------------------
# Below, a model that was trained, frozen and changed is saved in two ways. ``torch.save(model, path)`` writes the whole
# object.
#
# .. how-measured:: This code changes a model, saves and loads it, and asks what the loaded one has.


def build():
    return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))


def hook(module, args, output):
    pass


def changed_model():
    model = build()
    model(torch.randn(8, 3)).sum().backward()  # gradients, and running statistics
    model[0].requires_grad_(False)
    model[2].register_forward_hook(hook)
    model.register_buffer("mask", torch.ones(1), persistent=False)
    model.threshold = 0.5
    return model.eval().double()


def by_state(model, file):
    torch.save(model.state_dict(), file)
    file.seek(0)
    loaded = build()
    loaded.load_state_dict(torch.load(file))
    return loaded


def whole(model, file):
    torch.save(model, file)
    file.seek(0)
    return torch.load(file, weights_only=False)


def kept(loaded, model):
    mean = loaded[1].running_mean
    return {
        "parameters": torch.equal(loaded[0].weight.double(), model[0].weight),
        "buffers, as in BatchNorm": torch.equal(mean.double(), model[1].running_mean),
        "buffers that are not persistent": hasattr(loaded, "mask"),
        "dtype": loaded[0].weight.dtype == torch.float64,
        "requires_grad": not loaded[0].weight.requires_grad,
        "train or eval": not loaded.training,
        "forward hooks, as functions of a module": bool(loaded[2]._forward_hooks),
        "attributes": hasattr(loaded, "threshold"),
        ".grad": loaded[2].weight.grad is not None,
    }


# %%
# What the loaded model has of the saved one:

model = changed_model()
table = pd.DataFrame(
    {
        "model.state_dict()": kept(by_state(model, io.BytesIO()), model),
        "the whole model": kept(whole(model, io.BytesIO()), model),
    }
).replace({True: "yes", False: "no"})

# sphinx_gallery_start_ignore
assert table["model.state_dict()"].tolist() == ["yes"] * 2 + ["no"] * 7
assert table["the whole model"].tolist() == ["yes"] * 8 + ["no"]
# sphinx_gallery_end_ignore
table.rename_axis(index=None, columns="the loaded model has")

# %%
# - The state has numbers: parameters and buffers, but no buffer that was registered with ``persistent=False``. By default,
#   ``load_state_dict`` copies them into the model that you built, with that model's dtype and device. Freeze layers,
#   call ``eval()`` and register hooks again after you load.
# - The whole model needs ``weights_only=False``, which can run code from the file, or a list of safe classes:
#   :ref:`sphx_glr_gallery_errors_weights_only_load_failed.py`. After you rename or move a class, the file no longer loads.
#   Prefer the state.
# - ``map_location="cpu"`` loads to the CPU. Without it, tensors return to the GPU that they come from, as a second copy beside
#   the model: *CUDA out of memory*. See :ref:`moving and loading <sphx_glr_gallery_modules_parameters_and_buffers.py>`.
# - Neither keeps gradients. If you add up the gradients of several batches, save after ``optimizer.step()``.
#
# Schedulers, ``torch.amp.GradScaler`` (for float16) and ``AveragedModel`` (averages of weights) have a ``state_dict()`` too.
# Under ``DistributedDataParallel``, save ``ddp.module.state_dict()`` in one of the processes, or the names :ref:`begin with a
# prefix <sphx_glr_gallery_errors_state_dict_keys.py>`.

# sphinx_gallery_start_ignore
from torch.optim.lr_scheduler import StepLR
from torch.optim.swa_utils import AveragedModel

_model, _optimizer = start(seed=0)
for _part in (
    StepLR(_optimizer, 1),
    torch.amp.GradScaler("cpu"),
    AveragedModel(_model),
):
    assert _part.state_dict()
with torch.device("meta"):
    _elsewhere = nn.Linear(2, 2).half()
_here = nn.Linear(2, 2).half()
_here.load_state_dict(nn.Linear(2, 2).state_dict())
assert _here.weight.dtype == torch.float16
_model, _optimizer = start(seed=0)
train(_model, _optimizer, 1)
assert set(_optimizer.state_dict()["state"][0]) == {"step", "exp_avg", "exp_avg_sq"}
# sphinx_gallery_end_ignore

# %%
# Why the loss jumps without the optimizer
# ----------------------------------------
# Adam keeps two running averages for each parameter, and divides one by the root of the other. A new Adam has none. Here, its
# first step moves nearly every parameter by the whole learning rate, 0.01, though the gradients are small by now:


def first_step(*names):
    model, optimizer = start(seed=1)
    saved = torch.load(path)
    for name, part in {"model": model, "optimizer": optimizer}.items():
        if name in names:
            part.load_state_dict(saved[name])
    before = nn.utils.parameters_to_vector(model.parameters()).detach()
    train(model, optimizer, steps=1)
    after = nn.utils.parameters_to_vector(model.parameters()).detach()
    return (after - before).abs()


for names in (["model"], ["model", "optimizer"]):
    step = first_step(*names)
    print(f"{' and '.join(names):<20} median step {step.median():.4f}")

# sphinx_gallery_start_ignore
_new, _old = first_step("model"), first_step("model", "optimizer")
assert (_new > 0.0099).float().mean() > 0.95 and (_new < 0.0101).all()
assert _old.median() < 0.001


def _plain(cls, **options):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 1))
    optimizer = cls(model.parameters(), **options)
    train(model, optimizer, 300)
    kept = copy.deepcopy(model.state_dict()), copy.deepcopy(optimizer.state_dict())
    on = train(model, optimizer, 50)
    model.load_state_dict(kept[0])
    return on, train(model, cls(model.parameters(), **options), 50)


_on, _again = _plain(torch.optim.SGD, lr=0.05)
assert _on == _again
_on, _again = _plain(torch.optim.SGD, lr=0.05, momentum=0.9)
assert _on != _again
# sphinx_gallery_end_ignore

# %%
# Plain SGD has no such averages. With the same learning rate it goes on as before without its state. With momentum it does not.
#
# Exercise
# --------
# You save the checkpoint, and a layer is frozen. You resume as above, and that layer trains again. Where do you put which line,
# and does it matter that the optimizer has been built before?
#
# .. solution::
#
# ``requires_grad_(False)`` after building the model, before or after loading: the state has no flags. Adam skips a parameter
# whose ``.grad`` is ``None``. So, made from ``model.parameters()``, it may be built before or after.

model, optimizer = start(seed=1)
saved = torch.load(path)
model.load_state_dict(saved["model"])
optimizer.load_state_dict(saved["optimizer"])
model[0].requires_grad_(False)
weight = model[0].weight.clone()
train(model, optimizer, steps=20)
print("the frozen layer is unchanged:", torch.equal(weight, model[0].weight))

# sphinx_gallery_start_ignore
assert torch.equal(weight, model[0].weight)
assert not torch.equal(saved["model"]["2.weight"], model[2].weight)
folder.cleanup()
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_training_learning_rate_schedules.py`, resuming with a scheduler.
# - :ref:`sphx_glr_gallery_errors_optimizer_group_size.py`: the optimizer's state does not fit.
# - :ref:`sphx_glr_gallery_tensors_storage.py`: why the file of a small slice is large.
# - In PyTorch's tutorials: `Saving and loading models
#   <https://docs.pytorch.org/tutorials/beginner/saving_loading_models.html>`__.
