r"""
model.train() and model.eval(): what they change, and what they do not
======================================================================

``eval()`` tells a few kinds of layers to compute differently, dropout and batch normalisation above all. It does not
touch autograd: a model in ``eval()`` records its graph and fills its gradients as before. This page shows which
layers listen, watches running statistics move, and measures six effects of the switches that are taken for one
another.
"""

# %%
# A flag, and who reads it
# ------------------------
# ``train()`` and ``eval()`` set the attribute ``training`` of a module and of all modules inside it. Nothing else
# happens at that moment.

import copy
import textwrap
from contextlib import nullcontext

import matplotlib.pyplot as plt
import pandas as pd
import torch
from torch import nn
from torch.autograd.graph import saved_tensors_hooks
from torch.nn import functional as F

model = nn.Sequential(nn.Linear(20, 30), nn.Sequential(nn.Dropout(), nn.ReLU()))
print("at first:", {module.training for module in model.modules()})
model.eval()
print("eval():  ", {module.training for module in model.modules()})

# sphinx_gallery_start_ignore
assert not any(module.training for module in model.modules())
assert all(module.training for module in model.train().modules())
# sphinx_gallery_end_ignore

# %%
# What the flag does is decided by each layer in its ``forward``. Run one layer of each kind in both modes, on the
# same input and from the same seed: does the output differ, and has the layer changed its buffers?

LAYERS = """
nn.Linear(8, 8); nn.ReLU(); nn.RReLU(); nn.Dropout(); nn.LayerNorm(8);
nn.GroupNorm(2, 8); nn.BatchNorm1d(8); nn.BatchNorm1d(8, track_running_stats=False);
nn.LSTM(8, 8, 2, dropout=0.5); nn.TransformerEncoderLayer(8, 2, 16)
"""


def run(layer, training):
    layer = copy.deepcopy(layer).train(training)
    before = copy.deepcopy(layer.state_dict())
    torch.manual_seed(1)
    out = layer(torch.randn(4, 8))
    moved = any(not torch.equal(before[k], v) for k, v in layer.state_dict().items())
    return (out[0] if isinstance(out, tuple) else out), moved


def compare(layer):
    (in_train, moved), (in_eval, moved_in_eval) = run(layer, True), run(layer, False)
    found = {
        "output differs": not torch.allclose(in_train, in_eval, atol=1e-5),
        "train() moves buffers": moved,
        "eval() moves buffers": moved_in_eval,
    }
    return {question: ("no", "yes")[answer] for question, answer in found.items()}


# %%
# Half of these layers do not listen.

torch.manual_seed(0)
calls = [call.strip() for call in LAYERS.split(";")]
layers = pd.DataFrame({call: compare(eval(call)) for call in calls}).T

# sphinx_gallery_start_ignore
_listen = layers.index[layers["output differs"] == "yes"].tolist()
assert len(_listen) == 5 == len(calls) / 2
assert {"nn.RReLU()", "nn.Dropout()", "nn.BatchNorm1d(8)"} < set(_listen)
assert layers.index[layers["train() moves buffers"] == "yes"].tolist() == [
    "nn.BatchNorm1d(8)"
]
assert set(layers["eval() moves buffers"]) == {"no"}
# sphinx_gallery_end_ignore
layers.rename_axis(index=None, columns="layer")

# %%
# Those that differ draw random numbers in training (``LSTM`` and the Transformer layer contain dropout), or keep
# statistics, as batch normalisation does. Without ``track_running_stats`` it has none to use, and ``eval()`` changes
# nothing.
#
# Dropout
# -------
# In training each unit is dropped with probability ``p``, and the others are divided by ``1 - p``, so that the mean
# stays about the same. In evaluation it returns its input, not even a copy.

torch.manual_seed(0)
drop, ones = nn.Dropout(p=0.5), torch.ones(10_000)
dropped = drop(ones)
print("train:", dropped[:8].tolist(), f" mean {dropped.mean():.2f}")
drop.eval()
print("eval: ", drop(ones)[:8].tolist(), " the input itself:", drop(ones) is ones)
assert drop(ones) is ones

# sphinx_gallery_start_ignore
assert drop(ones) is ones and abs(dropped.mean() - 1) < 0.05
_kept = drop.train()(ones)
assert set(_kept.tolist()) == {0, 2} and abs(_kept.mean() - 1) < 0.05
# sphinx_gallery_end_ignore

# %%
# Batch normalisation
# -------------------
# In training it normalises by the mean and the variance of the *batch*, and moves its running statistics a little
# towards them. In evaluation it normalises by the *running* ones, and leaves them alone. One step by hand:

norm = nn.BatchNorm1d(1)
batch = torch.tensor([[4.0], [5.0], [9.0]])
out = norm(batch)

mean, var = batch.mean().item(), batch.var().item()
print(f"output  mean {out.mean():.4f}   variance {out.var(correction=0):.4f}")
print(f"running mean {norm.running_mean.item():.4f} = 0.9 * 0 + 0.1 * {mean:.0f}")
print(f"running var  {norm.running_var.item():.4f} = 0.9 * 1 + 0.1 * {var:.0f}")

# sphinx_gallery_start_ignore
assert abs(out.mean()) < 1e-6 and norm.momentum == 0.1
assert abs(out.var(correction=0) - 1) < 1e-4
_before = copy.deepcopy(norm.state_dict())
_scaled = (batch - norm.running_mean) / (norm.running_var + norm.eps).sqrt()
assert torch.allclose(norm.eval()(batch), _scaled)
assert all(torch.equal(_before[key], now) for key, now in norm.state_dict().items())
assert torch.allclose(norm.running_mean, torch.tensor(0.6))
assert torch.allclose(norm.running_var, torch.tensor(1.6))
# sphinx_gallery_end_ignore

# %%
# ``momentum`` is the 0.1 here: the weight of the *new* value. The 7 is the batch's variance with :math:`n - 1` in the
# denominator; the output is scaled by the one with :math:`n`. Now many batches in three phases. The data of the first
# have mean 5, the data of the other two have mean 0.

torch.manual_seed(0)
norm, course = nn.BatchNorm1d(1), []
PHASES = [
    ("train()", 40, 5.0, True, nullcontext),
    ("eval()", 20, 0.0, False, nullcontext),
    ("train() and no_grad()", 20, 0.0, True, torch.no_grad),
]
for name, steps, mean, training, mode in PHASES:
    norm.train(training)
    for _ in range(steps):
        with mode():
            norm(mean + torch.randn(64, 1))
        course.append(norm.running_mean.item())
    print(f"after {name:<22} running mean {course[-1]:.2f}")

# sphinx_gallery_start_ignore
assert abs(course[39] - 5) < 0.15 and set(course[40:60]) == {course[39]}
assert course[-1] < 1 and len(course) == 80
# sphinx_gallery_end_ignore

# %%
# ``eval()`` holds the statistics still, whatever the data. ``no_grad`` does not: they are no matter of gradients.

# figure: Running mean over 80 batches. In train() it rises from 0 to 5, the mean of the data. In eval() it stays
#   there, while the mean of the data is 0. In train() under no_grad() it falls towards 0.
fig, ax = plt.subplots(figsize=(7, 3.2), layout="constrained")
first = 1
for name, steps, mean, *_ in PHASES:
    span = range(first, first + steps)
    ax.plot(span, [mean] * steps, "--", color="#64748b", linewidth=1.2)
    ax.text(first, 5.5, name)
    ax.axvline(first - 0.5, color="#cbd5e1", linewidth=1)
    first += steps
ax.plot(range(1, 81), course, color="#2563eb", label="running mean")
ax.plot([], [], "--", color="#64748b", linewidth=1.2, label="mean of the data")
ax.set(xlabel="batch", ylim=(-0.5, 6.2))
ax.set_title("eval() stops the running statistics, no_grad() does not")
ax.legend(loc="lower left", bbox_to_anchor=(0.12, 0.1))
assert first == 81

# %%
# Three switches, six effects
# ---------------------------
# ``train()`` or ``eval()``, ``no_grad()`` and ``requires_grad_(False)`` are often taken for one another. One small
# network is run under combinations of them, and each effect is measured.


def network():
    torch.manual_seed(0)
    parts = (
        nn.Linear(20, 30),
        nn.BatchNorm1d(30),
        nn.ReLU(),
        nn.Dropout(),
        nn.Linear(30, 5),
    )
    return nn.Sequential(*parts)


def storage_of(tensor):
    return tensor.untyped_storage().data_ptr()


def forward(model, mode, x):
    outs, saved = [x], {}

    def note(tensor):
        saved[storage_of(tensor)] = tensor.nbytes
        return tensor

    with mode(), saved_tensors_hooks(note, lambda tensor: tensor):
        for layer in model:
            outs.append(layer(outs[-1]))
    for own in (x, *model.parameters(), *model.buffers()):
        saved.pop(storage_of(own), None)
    return outs, sum(saved.values())


# %%
# ``forward`` returns the outputs of all layers, and how many bytes were saved for backward beyond the input and the
# model itself. If batch normalisation subtracted the batch's own mean, its output has mean 0.


def effects(training, frozen, mode):
    model, x = network().train(training), torch.randn(64, 20) + 1
    model.requires_grad_(not frozen)
    before = model[1].running_mean.clone()
    (_, _, norm, relu, dropout, result), saved = forward(model, mode, x)
    if result.requires_grad:
        result.sum().backward()
    found = {
        "builds a graph": result.requires_grad,
        "fills .grad": any(p.grad is not None for p in model.parameters()),
        "drops units": not torch.equal(dropout, relu),
        "updates statistics": not torch.equal(before, model[1].running_mean),
        "uses batch statistics": bool(norm.mean(0).abs().max() < 1e-5),
    }
    row = {question: ("no", "yes")[answer] for question, answer in found.items()}
    return row | {"bytes saved": saved}


# %%
# Six of the combinations:

COMBINATIONS = {
    "train()": (True, False, nullcontext),
    "eval()": (False, False, nullcontext),
    "train(), no_grad()": (True, False, torch.no_grad),
    "eval(), no_grad()": (False, False, torch.no_grad),
    "train(), requires_grad_(False)": (True, True, nullcontext),
    "eval(), requires_grad_(False)": (False, True, nullcontext),
}
table = pd.DataFrame({name: effects(*how) for name, how in COMBINATIONS.items()}).T

# sphinx_gallery_start_ignore
_training = [how[0] for how in COMBINATIONS.values()]
for _column in ("drops units", "updates statistics", "uses batch statistics"):
    assert (table[_column] == "yes").tolist() == _training
for _column in ("builds a graph", "fills .grad"):
    assert (table[_column] == "yes").tolist() == [True, True] + [False] * 4
assert table["bytes saved"].tolist() == [30960, 15360, 0, 0, 0, 0]
_unit = 64 * 30 * 4
assert 2 * _unit + 2 * 30 * 4 == 30960 - 15360


def _without_dropout(training):
    model = network().train(training)
    model[3] = nn.Identity()
    return forward(model, nullcontext, torch.randn(64, 20))[1]


assert _without_dropout(True) - _without_dropout(False) == 2 * 30 * 4
assert 0 < _without_dropout(True) / _without_dropout(False) - 1 < 0.02
# sphinx_gallery_end_ignore
table.rename_axis(index=None, columns="switches")

# %%
# Read it by columns. The first two belong to ``no_grad`` and ``requires_grad_``, the next three to ``train()`` and
# ``eval()``, and none of them to both. To evaluate a model you want ``eval()`` *and* ``no_grad()`` or
# ``inference_mode()``; why they are not one switch has been asked before (`pytorch#31361
# <https://github.com/pytorch/pytorch/issues/31361>`__).
#
# Only the last column depends on both. ``eval()`` also saves some memory: dropout keeps no mask and hands on its
# input, and batch normalisation keeps no statistics of the batch. Nearly all of the saving here is due to the dropout
# layer, so do not expect half in general. ``no_grad`` saves all of it.

# %%
# What people get wrong
# ---------------------
# **Validating under** ``no_grad`` **alone.** Batch normalisation then goes on using the batch. What the model says
# about a sample depends on the samples beside it, and the statistics move, as in the figure.


def first_sample(model, others):
    x = torch.linspace(-1, 1, 20).repeat(64, 1)
    x[1:] += others
    with torch.no_grad():
        return [round(value, 3) for value in model(x)[0, :2].tolist()]


model = network()
model[3] = nn.Identity()  # no dropout, to see batch normalisation alone
for training in (True, False):
    model.train(training)
    one, another = first_sample(model, 1.0), first_sample(model, torch.arange(20.0))
    print(f"training {training!s:<5}  among some: {one}   among others: {another}")
    assert (one == another) is not training

# %%
# **Dropout as a function.** ``F.dropout`` knows no module. Its argument ``training`` is ``True`` unless you pass the
# flag on (`pytorch#26338 <https://github.com/pytorch/pytorch/issues/26338>`__).


class Net(nn.Module):
    def forward(self, x):
        return F.dropout(x), F.dropout(x, training=self.training)


torch.manual_seed(0)
always, flagged = Net().eval()(torch.ones(8))
print("F.dropout(x):                         ", always.tolist())
print("F.dropout(x, training=self.training): ", flagged.tolist())
assert 0 in always and flagged.tolist() == [1.0] * 8

# %%
# **A batch of one in training.** One value has no variance. It usually is the last batch of an epoch: see
# ``drop_last`` of the ``DataLoader``.

try:
    network()(torch.ones(1, 20))
except ValueError as error:
    print(textwrap.fill(f"ValueError: {error}", 88))
    assert str(error).startswith("Expected more than 1 value per channel when training")

# %%
# **Leaving** ``eval()`` **on.** The flag stays where a validation function has put it: the rest of the training runs
# without dropout and with old statistics, and nothing tells you. Call ``train()`` at the top of each epoch, not once
# before the loop.
#
# Exercise
# --------
# Dropout left on at prediction time gives a spread of answers, which some take as a sign of how sure the model is.
# Write ``spread(model, x)``, the standard deviation of each output over 100 predictions: with dropout on, with batch
# normalisation in ``eval()``, and with nothing recorded.
#
# .. solution::
#
# The flag can be set on a part of the model: first ``eval()`` for all of it, then ``train()`` for the dropout layers.
# At the end each module gets back the flag that it had.


@torch.no_grad()
def spread(model, x):
    flags = {module: module.training for module in model.modules()}
    model.eval()
    for module in flags:
        if isinstance(module, nn.Dropout):
            module.train()
    predictions = torch.stack([model(x) for _ in range(100)])
    for module, flag in flags.items():
        module.training = flag
    return predictions.std(dim=0)


model = network()
before = copy.deepcopy(model[1].state_dict())
deviation = spread(model, torch.ones(1, 20))

print([round(value, 2) for value in deviation[0].tolist()])
assert (deviation > 0).all() and not deviation.requires_grad
assert all(torch.equal(before[key], now) for key, now in model[1].state_dict().items())
assert all(module.training for module in model.modules())

# %%
# See also
# --------
# - Before: :ref:`sphx_glr_gallery_modes_grad_modes.py`, the switches that decide what is recorded.
# - Next: :ref:`sphx_glr_gallery_modes_freezing.py`, where a layer keeps its weights and batch normalisation moves.
# - :ref:`sphx_glr_gallery_memory_memory_by_mode.py`, the last column for a larger network.
# - :doc:`Which switch do I want? </guide/which-switch>`, by purpose.
# - In PyTorch's reference: `Module.eval
#   <https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.eval>`__ and `Evaluation mode
#   <https://docs.pytorch.org/docs/stable/notes/autograd.html#evaluation-mode-nn-module-eval>`__.
