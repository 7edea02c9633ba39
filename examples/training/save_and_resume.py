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

   To use a trained model, its own state is enough. Then call ``model.eval()``. Frozen layers have to be frozen again.
"""

# %%
# What a checkpoint holds
# -----------------------
# A long training can stop at any time. To go on as if it had never stopped, save everything that changes:
#
# .. list-table::
#    :header-rows: 1
#    :widths: 40 60
#
#    * - save
#      - what it holds
#    * - ``model.state_dict()``
#      - parameters, and buffers such as the averages of BatchNorm
#    * - ``optimizer.state_dict()``
#      - Adam's averages or momentum, and options such as the learning rate
#    * - ``scheduler.state_dict()``, ``scaler.state_dict()``
#      - the place in the schedule, the loss scale of ``torch.amp.GradScaler`` (for float16)
#    * - the number of the epoch, the best loss so far
#      - where to go on, and what to compare with

# %%
# The problem: the loss jumps after a restart
# -------------------------------------------
# This training stops after 300 steps. If you load the weights alone and go on, one step makes the loss about 20 times as large.

import copy
import os
import tempfile

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


# %%
# .. how-measured:: The plot of the losses before and after the restart.

import matplotlib.pyplot as plt


def plot_losses_around_restart(before, after):
    _, ax = plt.subplots(figsize=(7, 3), layout="constrained")
    ax.semilogy(before, color="#64748b", label="before the restart")
    colors = {"the model alone": "#c2410c", "model and optimizer": "#2563eb"}
    for name, losses in after.items():
        ax.semilogy(range(300, 400), losses, color=colors[name], label=name)
    ax.set(xlabel="step", ylabel="loss", xlim=(200, 400), ylim=(1e-3, 0.2))
    ax.set_title("What was loaded decides how the training goes on")
    ax.legend(loc="upper left")


# %%
# Train, save, and go on in two ways, each with a new model:

folder = tempfile.TemporaryDirectory()
path = folder.name + "/checkpoint.pt"

model, optimizer = start(seed=0)
before = train(model, optimizer, steps=300)
state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
torch.save(state, path)
uninterrupted = train(model, optimizer, steps=100)

after = {}
for name in ("the model alone", "model and optimizer"):
    model, optimizer = start(seed=1)
    saved = torch.load(path, map_location="cpu")
    model.load_state_dict(saved["model"])
    if name == "model and optimizer":
        optimizer.load_state_dict(saved["optimizer"])
    after[name] = losses = train(model, optimizer, steps=100)
    print(f"{name:<20} largest loss {max(losses):.4f}   last loss {losses[-1]:.4f}")

print("as if never interrupted:", after["model and optimizer"] == uninterrupted)

# figure: Loss on a logarithmic scale, steps 200 to 400. Until the restart at step 300 it falls to less than 0.003. With the
#   model alone it jumps to about 20 times that in one step, and needs about 40 steps to stay below the loss of step 300. With
#   model and optimizer it goes on as before.
plot_losses_around_restart(before, after)

# sphinx_gallery_start_ignore
_alone, _both = after.values()
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
# With shuffling or dropout, the numbers of a resumed run differ: see :ref:`the states of the generators
# <sphx_glr_gallery_training_reproducibility.py>`. Load the file anew for each run, because the optimizer changes the loaded
# tensors.

# sphinx_gallery_start_ignore
_loaded = torch.load(path)
_runs = []
for _ in range(2):  # one loaded dictionary, resumed twice
    _model, _optimizer = start(seed=1)
    _model.load_state_dict(_loaded["model"])
    _optimizer.load_state_dict(_loaded["optimizer"])
    _runs.append(train(_model, _optimizer, 5))
assert _runs[0] == uninterrupted[:5] != _runs[1]
assert _loaded["optimizer"]["state"][0]["step"] == 310
# sphinx_gallery_end_ignore

# %%
# Why the loss jumps without the optimizer
# ----------------------------------------
# Adam keeps two running averages for each parameter, and divides one by the root of the other. A new Adam has none. So its
# first step moves nearly every parameter by the whole learning rate, 0.01, though the gradients are small:

for name in ("the model alone", "model and optimizer"):
    model, optimizer = start(seed=1)
    saved = torch.load(path)
    model.load_state_dict(saved["model"])
    if name == "model and optimizer":
        optimizer.load_state_dict(saved["optimizer"])
    train(model, optimizer, steps=1)
    step = (model[0].weight - saved["model"]["0.weight"]).abs()
    print(f"{name:<20} median step of the first weight {step.median().item():.4f}")

    # sphinx_gallery_start_ignore
    if name == "the model alone":
        assert (step > 0.0099).float().mean() > 0.9 and (step < 0.0101).all()
    else:
        assert step.median() < 0.001
    # sphinx_gallery_end_ignore


# sphinx_gallery_start_ignore
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
# Plain SGD has no such averages. With momentum, it needs its state.

# %%
# The whole loop
# --------------
# If the program ends while it writes, the file is broken. So write a second file, and let it replace the first:


def fit(path, epochs):
    model, optimizer = start(seed=0)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.9)
    first = 0
    if os.path.exists(path):
        saved = torch.load(path, map_location="cpu")
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        scheduler.load_state_dict(saved["scheduler"])
        first = saved["epoch"]
    for epoch in range(first, epochs):
        losses = train(model, optimizer, steps=20)
        scheduler.step()
        print(f"epoch {epoch}: loss {losses[-1]:.3f}")
        state = {
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "scheduler": scheduler.state_dict(),
            "epoch": epoch + 1,
        }
        torch.save(state, path + ".tmp")
        os.replace(path + ".tmp", path)
    return model


fit(folder.name + "/fit.pt", epochs=2)
print("started again:")
model = fit(folder.name + "/fit.pt", epochs=4)

# sphinx_gallery_start_ignore
import contextlib

assert sorted(os.listdir(folder.name)) == ["checkpoint.pt", "fit.pt"]
with contextlib.redirect_stdout(None):
    _straight = fit(folder.name + "/straight.pt", epochs=4)
for _one, _two in zip(model.parameters(), _straight.parameters(), strict=True):
    assert torch.equal(_one, _two)
_last, _other = (torch.load(f"{folder.name}/{n}.pt") for n in ("fit", "straight"))
assert _last["optimizer"]["param_groups"] == _other["optimizer"]["param_groups"]
assert _last["scheduler"] == _other["scheduler"] and _last["epoch"] == 4
assert abs(_last["optimizer"]["param_groups"][0]["lr"] - 0.01 * 0.9**4) < 1e-12
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
# ``torch.save(model, path)`` writes the whole model, not only its state. What comes back differs:
#
# .. how-measured:: A model is trained, frozen and changed. This code saves and loads it in both ways, and asks what the loaded
#    one has.

import io

import pandas as pd


def build():
    return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))


def hook(module, args, output):
    pass


def change(model):
    model(torch.randn(8, 3)).sum().backward()  # gradients, and running statistics
    model[0].requires_grad_(False)
    model[2].register_forward_hook(hook)
    model.register_buffer("mask", torch.ones(1), persistent=False)
    model.threshold = 0.5
    return model.eval().double()


def load_by_state(model, file):
    torch.save(model.state_dict(), file)
    file.seek(0)
    loaded = build()
    loaded.load_state_dict(torch.load(file))
    return loaded


def load_whole(model, file):
    torch.save(model, file)
    file.seek(0)
    return torch.load(file, weights_only=False)


def list_what_came_back(loaded, model):
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


def tabulate_what_comes_back():
    model = change(build())
    by_state, whole = (
        load(model, io.BytesIO()) for load in (load_by_state, load_whole)
    )
    table = {
        "model.state_dict()": list_what_came_back(by_state, model),
        "the whole model": list_what_came_back(whole, model),
    }
    return pd.DataFrame(table).replace({True: "yes", False: "no"})


# %%
# What the loaded model has of the saved one:

# sphinx_gallery_start_ignore
_table = tabulate_what_comes_back()
assert _table["model.state_dict()"].tolist() == ["yes"] * 2 + ["no"] * 7
assert _table["the whole model"].tolist() == ["yes"] * 8 + ["no"]
_model, _optimizer = start(seed=0)
assert torch.optim.lr_scheduler.StepLR(_optimizer, 1).state_dict()
assert torch.amp.GradScaler("cpu").state_dict()
_half = nn.Linear(2, 2).half()
_half.load_state_dict(nn.Linear(2, 2).state_dict())
assert _half.weight.dtype == torch.float16
_first, _second = (torch.zeros(1, requires_grad=True) for _ in range(2))
_first.grad, _second.grad = torch.tensor([1.0]), torch.tensor([9.0])
_optimizer = torch.optim.Adam([_first, _second])
_optimizer.step()
_swapped = torch.optim.Adam([_second, _first])
_swapped.load_state_dict(_optimizer.state_dict())
_averages = [o.state[_second]["exp_avg"].item() for o in (_optimizer, _swapped)]
assert abs(_averages[0] - 0.9) < 1e-6 and abs(_averages[1] - 0.1) < 1e-6
# sphinx_gallery_end_ignore
tabulate_what_comes_back().rename_axis(columns="the loaded model has")

# %%
# - ``load_state_dict`` copies the numbers into the model that you built, with that model's dtype and device. So freeze layers,
#   call ``eval()`` and register hooks again after you load.
# - The optimizer stores its state by position, not by name. So build it with the same parameters in the same order.
# - The whole model needs ``weights_only=False``, which can run code from the file: see
#   :ref:`sphx_glr_gallery_errors_weights_only_load_failed.py`. After you rename or move a class, the file no longer loads.
#   Prefer the state.
# - ``map_location="cpu"`` loads to the CPU. Without it, tensors return to the GPU that they come from. There they are a second
#   copy beside the model, and you can get *CUDA out of memory*.
# - Neither keeps gradients. If you add up the gradients of several batches, save after ``optimizer.step()``.
#
# Under ``DistributedDataParallel``, save ``ddp.module.state_dict()`` in one of the processes, or the names :ref:`begin with a
# prefix <sphx_glr_gallery_errors_state_dict_keys.py>`.

# %%
# What people get wrong
# ---------------------
# **The best model is not kept.** ``state_dict()`` returns tensors that share the model's memory, and the optimizer writes into
# it. So what you keep goes on training:

model, optimizer = start(seed=0)
best = model.state_dict()
copied = copy.deepcopy(best)
train(model, optimizer, steps=10)
print("best is the current model:", torch.equal(best["0.weight"], model[0].weight))
print(
    "the copy is older:        ", not torch.equal(copied["0.weight"], model[0].weight)
)

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
# Keep ``copy.deepcopy(model.state_dict())``, or call ``torch.save`` at once.
#
# **A new learning rate has no effect.** Loading the optimizer's state brings the old one back. Change it after loading:

model, optimizer = start(seed=1, lr=0.002)
optimizer.load_state_dict(torch.load(path)["optimizer"])
print("asked for 0.002, has", optimizer.param_groups[0]["lr"])
for group in optimizer.param_groups:
    group["lr"] = 0.002

# sphinx_gallery_start_ignore
assert optimizer.state_dict()["param_groups"][0]["lr"] == 0.002
_optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
_scheduler = torch.optim.lr_scheduler.LambdaLR(_optimizer, lambda step: 1 / (step + 1))
_optimizer.param_groups[0]["lr"] = 0.002
_optimizer.step()
_scheduler.step()
assert _optimizer.param_groups[0]["lr"] != 0.002
# sphinx_gallery_end_ignore

# %%
# A scheduler can overwrite your number: see :ref:`resuming a schedule <sphx_glr_gallery_training_learning_rate_schedules.py>`.

# %%
# Exercise
# --------
# You save the checkpoint while a layer is frozen. You resume as above, and that layer trains again. Which line is missing?
#
# .. solution::
#
# ``requires_grad_(False)``, before or after loading, as the state has no flags. Adam skips a parameter whose ``.grad`` is
# ``None``.

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
