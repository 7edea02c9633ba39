r"""
model.train() and model.eval(): what they change
================================================

.. index::
   single: other results in training and in evaluation
   single: validation gives other numbers on each run

.. in-short::

   ``model.eval()`` makes dropout layers return their input, and batch normalization use its running statistics.
   ``model.train()`` turns that back. Neither of them stops recording: in ``eval()`` a graph is built and ``.grad`` is filled as
   before (except for an LSTM, GRU or RNN on cuDNN). To evaluate, call ``model.eval()`` *and* write ``with torch.no_grad():``
   (or ``torch.inference_mode()``). Call ``model.train()`` before you train again.
"""

# %%
# Three switches that are taken for one another
# ---------------------------------------------
# You called ``eval()``, and memory runs out. You called ``no_grad()``, and the results still change from run to run. Each
# switch has effects of its own. For a network with batch normalization and dropout:
#
# .. how-measured:: This code runs the network under each combination, and a hook counts what is saved for backward.

from contextlib import nullcontext

import pandas as pd
import torch
from torch import nn
from torch.autograd.graph import saved_tensors_hooks


def network():
    torch.manual_seed(0)
    first, last = nn.Linear(20, 30), nn.Linear(30, 5)
    return nn.Sequential(first, nn.BatchNorm1d(30), nn.ReLU(), nn.Dropout(), last)


def storage_of(tensor):
    return tensor.untyped_storage().data_ptr()


def forward(model, mode, x):
    outs, saved = [x], {}

    def pack(tensor):
        saved[storage_of(tensor)] = tensor.nbytes
        return tensor.detach()

    with mode(), saved_tensors_hooks(pack, lambda tensor: tensor):
        for layer in model:
            outs.append(layer(outs[-1]))
    for own in (x, *model.parameters(), *model.buffers()):
        saved.pop(storage_of(own), None)
    return outs, sum(saved.values())


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
    return row | {"bytes kept": f"{saved:,}"}


COMBINATIONS = {
    "train()": (True, False, nullcontext),
    "eval()": (False, False, nullcontext),
    "train(), no_grad()": (True, False, torch.no_grad),
    "eval(), no_grad()": (False, False, torch.no_grad),
    "train(), requires_grad_(False)": (True, True, nullcontext),
    "eval(), requires_grad_(False)": (False, True, nullcontext),
}
table = pd.DataFrame({name: effects(*how) for name, how in COMBINATIONS.items()}).T

# %%
# Six combinations, and six effects:

import copy

import torch
from torch import nn

# sphinx_gallery_start_ignore
_training = [how[0] for how in COMBINATIONS.values()]
for _column in ("drops units", "updates statistics", "uses batch statistics"):
    assert (table[_column] == "yes").tolist() == _training
for _column in ("builds a graph", "fills .grad"):
    assert (table[_column] == "yes").tolist() == [True, True] + [False] * 4
assert table["bytes kept"].tolist() == ["30,960", "15,360", "0", "0", "0", "0"]
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
# Read it by columns. ``no_grad()`` and ``requires_grad_(False)`` decide the first two. ``train()`` and ``eval()`` decide the
# next three. To evaluate, you want both kinds; people asked before why they are not one switch (`pytorch#31361
# <https://github.com/pytorch/pytorch/issues/31361>`__).
#
# The bytes depend on both. ``eval()`` halves them here: there is no dropout mask, and the last layer keeps the result of ReLU,
# which is kept anyway, instead of the result of dropout. In the same network without dropout, ``eval()`` saves less than 2
# percent.
#
# An exception to the second column, not measured here, because it needs a GPU: where cuDNN runs an ``LSTM``, a ``GRU`` or an
# ``RNN``, backward after ``eval()`` raises :ref:`cudnn RNN backward can only be called in training mode
# <sphx_glr_gallery_errors_cudnn_rnn_double_backward.py>`.

# %%
# What people get wrong
# ---------------------
# **Validating under no_grad() alone.** Batch normalization still uses the batch. So the answer for one sample depends on the
# other samples of its batch:


def first_sample(model, others):
    x = torch.linspace(-1, 1, 20).repeat(64, 1)
    x[1:] += others
    with torch.no_grad():
        return model(x)[0, :3]


model = network()
model[3] = nn.Identity()  # no dropout, to see batch normalization alone
for training in (True, False):
    model.train(training)
    print("training:", training)
    print("  among some:  ", first_sample(model, 1.0))
    print("  among others:", first_sample(model, torch.arange(20.0)))


# sphinx_gallery_start_ignore
for _training in (True, False):
    model.train(_training)
    _one, _another = first_sample(model, 1.0), first_sample(model, torch.arange(20.0))
    assert torch.allclose(_one, _another, atol=1e-6) is not _training
# sphinx_gallery_end_ignore

# %%
# **Leaving eval() on.** A function that validates sets the flag, and the next epoch trains without dropout and with old
# statistics. There is no error and no warning:


def validate(model, x):
    model.eval()
    with torch.no_grad():
        return model(x)


# sphinx_gallery_start_ignore
import warnings

_catch = warnings.catch_warnings(record=True)
_caught = _catch.__enter__()
warnings.simplefilter("always")
_means = []
# sphinx_gallery_end_ignore
model, x = network(), torch.randn(64, 20)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

for epoch in (1, 2):  # model.train() is missing in this loop
    print("epoch", epoch, "trains with model.training =", model.training)
    # sphinx_gallery_start_ignore
    _means.append(model[1].running_mean.clone())
    # sphinx_gallery_end_ignore
    model(x).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
    validate(model, x)

# sphinx_gallery_start_ignore
_catch.__exit__(None, None, None)
assert not _caught and not model.training
assert not torch.equal(*_means)  # the first epoch moves the statistics
assert torch.equal(_means[1], model[1].running_mean)  # the second does not
assert torch.equal(model(x), model(x))  # no dropout
# sphinx_gallery_end_ignore

# %%
# Call ``model.train()`` at the top of each epoch, not once before the loop.
#
# **Dropout as a function.** ``F.dropout`` knows no module. It drops unless you pass the flag on (`pytorch#26338
# <https://github.com/pytorch/pytorch/issues/26338>`__):

from torch.nn import functional as F


class Net(nn.Module):
    def forward(self, x):
        return F.dropout(x), F.dropout(x, training=self.training)


torch.manual_seed(0)
always, flagged = Net().eval()(torch.ones(8))
print("F.dropout(x):                        ", always.tolist())
print("F.dropout(x, training=self.training):", flagged.tolist())

# sphinx_gallery_start_ignore
assert 0 in always and flagged.tolist() == [1.0] * 8
# sphinx_gallery_end_ignore

# %%
# **A batch of one in training.** One value has no variance:

try:
    network()(torch.ones(1, 20))
except ValueError as error:
    message = str(error)
    print(f"ValueError: {message}")

# sphinx_gallery_start_ignore
assert message.startswith("Expected more than 1 value per channel when training")
del message
from torch.utils.data import DataLoader

_loader = DataLoader(torch.ones(129, 20), batch_size=64)
assert [len(_batch) for _batch in _loader] == [64, 64, 1]
_loader = DataLoader(torch.ones(129, 20), batch_size=64, drop_last=True)
assert [len(_batch) for _batch in _loader] == [64, 64]
# sphinx_gallery_end_ignore

# %%
# A ``DataLoader`` gives such a batch if one sample is left over: 129 samples in batches of 64. ``drop_last=True`` leaves it
# out. See :ref:`the page on this error <sphx_glr_gallery_errors_one_value_per_channel.py>`.

# %%
# Which layers change
# -------------------
# ``train()`` and ``eval()`` set the attribute ``training`` of a module and of the modules in it, unless one of them overrides
# ``train()``. What follows is decided by each layer in its ``forward``. Each layer below runs in both modes, with the same
# input and the same seed:
#
# .. how-measured:: This code compares the outputs and the buffers of copies of each layer.


def layers():
    torch.manual_seed(0)
    return {
        "Linear(8, 8)": nn.Linear(8, 8),
        "LayerNorm(8)": nn.LayerNorm(8),
        "GroupNorm(2, 8)": nn.GroupNorm(2, 8),
        "Dropout()": nn.Dropout(),
        "AlphaDropout()": nn.AlphaDropout(),
        "RReLU()": nn.RReLU(),
        "BatchNorm1d(8)": nn.BatchNorm1d(8),
        "… track_running_stats=False": nn.BatchNorm1d(8, track_running_stats=False),
        "SyncBatchNorm(8)": nn.SyncBatchNorm(8),
        "InstanceNorm1d(8)": nn.InstanceNorm1d(8),
        "… track_running_stats=True": nn.InstanceNorm1d(8, track_running_stats=True),
        "LSTM(8, 8, 2)": nn.LSTM(8, 8, 2),
        "LSTM(8, 8, 2, dropout=0.5)": nn.LSTM(8, 8, 2, dropout=0.5),
        "TransformerEncoderLayer(8, 2)": nn.TransformerEncoderLayer(8, 2, 16),
    }


def run(layer, training):
    layer = copy.deepcopy(layer).train(training)
    before = copy.deepcopy(layer.state_dict())
    torch.manual_seed(1)
    out = layer(torch.randn((4, 8, 5) if "Instance" in str(layer) else (4, 8)))
    moved = any(not torch.equal(before[k], v) for k, v in layer.state_dict().items())
    return (out[0] if isinstance(out, tuple) else out), moved


def compare(layer):
    (in_train, moved), (in_eval, moved_in_eval) = run(layer, True), run(layer, False)
    found = {
        "output differs": not torch.allclose(in_train, in_eval, atol=1e-6),
        "train() moves buffers": moved,
        "eval() moves buffers": moved_in_eval,
    }
    return {question: ("no", "yes")[answer] for question, answer in found.items()}


table = pd.DataFrame({name: compare(layer) for name, layer in layers().items()}).T

# %%
# Does the output differ between the modes, and does a call change buffers?

# sphinx_gallery_start_ignore
assert table.index[table["output differs"] == "yes"].tolist() == [
    "Dropout()",
    "AlphaDropout()",
    "RReLU()",
    "BatchNorm1d(8)",
    "SyncBatchNorm(8)",
    "… track_running_stats=True",
    "LSTM(8, 8, 2, dropout=0.5)",
    "TransformerEncoderLayer(8, 2)",
]
assert table.index[table["train() moves buffers"] == "yes"].tolist() == [
    "BatchNorm1d(8)",
    "SyncBatchNorm(8)",
    "… track_running_stats=True",
]
assert set(table["eval() moves buffers"]) == {"no"}
assert layers()["TransformerEncoderLayer(8, 2)"].dropout.p == 0.1
_spectral = compare(nn.utils.parametrizations.spectral_norm(nn.Linear(8, 8)))
assert list(_spectral.values())[1:] == ["yes", "no"]
_plain = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0)
assert compare(_plain)["output differs"] == "no"
assert compare(nn.Dropout(0.0))["output differs"] == "no"
# sphinx_gallery_end_ignore
table.rename_axis(index=None, columns="layer")

# %%
# The layers whose output differs draw random numbers in training (the LSTM and the Transformer layer contain dropout), or keep
# statistics. Without statistics, batch and instance normalization compute the same in both modes. Not in the table:
# ``spectral_norm`` updates its buffers in ``train()`` too.

# %%
# What dropout computes
# ---------------------
# In training each unit is dropped with the probability ``p``. The others are divided by ``1 - p``, so that for ``p`` below 1
# the mean stays the same on average. In evaluation ``nn.Dropout`` returns its input, without a copy.

torch.manual_seed(0)
drop, ones = nn.Dropout(p=0.5), torch.ones(10_000)
print("train:", drop(ones)[:6], " mean", drop(ones).mean())
drop.eval()
print("eval: ", drop(ones)[:6], " the input itself:", drop(ones) is ones)

# sphinx_gallery_start_ignore
assert drop(ones) is ones
_kept = drop.train()(ones)
assert set(_kept.tolist()) == {0, 2} and abs(_kept.mean() - 1) < 0.05
assert not nn.Dropout(1.0)(ones).any()
for _x in (torch.ones(0), torch.tensor(1.0), torch.arange(3), nn.Parameter(ones)):
    assert nn.Dropout().eval()(_x) is _x
# sphinx_gallery_end_ignore

# %%
# What batch normalization computes
# ---------------------------------
# In training it normalizes by the mean and the variance of the *batch*, and moves its running statistics towards them. In
# evaluation it normalizes by the *running* statistics. One step by hand:

norm = nn.BatchNorm1d(1)
batch = torch.tensor([[4.0], [5.0], [9.0]])
out = norm(batch)

print("batch:  mean", batch.mean().item(), " variance", batch.var().item())
print("running mean", norm.running_mean, "= 0.9 * 0 + 0.1 * 6")
print("running var ", norm.running_var, "= 0.9 * 1 + 0.1 * 7")

# sphinx_gallery_start_ignore
assert (batch.mean(), batch.var()) == (6, 7)
assert abs(out.mean()) < 1e-6 and norm.momentum == 0.1
assert abs(out.var(correction=0) - 1) < 1e-4
_before = copy.deepcopy(norm.state_dict())
_scaled = (batch - norm.running_mean) / (norm.running_var + norm.eps).sqrt()
assert torch.allclose(norm.eval()(batch), _scaled)
assert all(torch.equal(_before[key], now) for key, now in norm.state_dict().items())
assert torch.allclose(norm.running_mean, torch.tensor(0.6))
assert torch.allclose(norm.running_var, torch.tensor(1.6))
_average = nn.BatchNorm1d(1, momentum=None)
for _mean in (1.0, 2.0, 6.0):
    _average(torch.tensor([[_mean - 1], [_mean + 1]]))
assert torch.allclose(_average.running_mean, torch.tensor(3.0))
assert torch.allclose(_average.running_var, torch.tensor(2.0))  # each batch: 2
# sphinx_gallery_end_ignore

# %%
# ``momentum=0.1`` is the weight of the *new* value. With ``momentum=None`` the statistics are averages of all batches so far.
# The variance 7 has :math:`n - 1` in its denominator; the output is scaled by the one with :math:`n`.
#
# Now many batches in three phases. The data of the first have mean 5, the data of the other two have mean 0.
#
# .. how-measured:: This code feeds 80 batches and draws the running mean after each.

import matplotlib.pyplot as plt


def course_of(phases):
    torch.manual_seed(0)
    norm, course = nn.BatchNorm1d(1), []
    for _, steps, mean, training, mode in phases:
        norm.train(training)
        for _ in range(steps):
            with mode():
                norm(mean + torch.randn(64, 1))
            course.append(norm.running_mean.item())
    return course


def draw(phases, course):
    _, ax = plt.subplots(figsize=(7, 3.2), layout="constrained")
    first = 1
    for name, steps, mean, *_ in phases:
        span = range(first, first + steps)
        ax.plot(span, [mean] * steps, "--", color="#64748b", linewidth=1.2)
        ax.text(first, 5.5, name)
        ax.axvline(first - 0.5, color="#94a3b8", linewidth=1)
        first += steps
    ax.plot(range(1, first), course, color="#2563eb", label="running mean")
    ax.plot([], [], "--", color="#64748b", linewidth=1.2, label="mean of the data")
    ax.set(xlabel="batch", ylim=(-0.5, 6.2))
    ax.set_title("eval() stops the running statistics, no_grad() does not")
    ax.legend(loc="lower left", bbox_to_anchor=(0.12, 0.1))


PHASES = [
    ("train()", 40, 5.0, True, nullcontext),
    ("eval()", 20, 0.0, False, nullcontext),
    ("train() and no_grad()", 20, 0.0, True, torch.no_grad),
]

# %%
# ``eval()`` stops the statistics. ``no_grad()`` does not, because no gradient is needed to update them:

course = course_of(PHASES)
draw(PHASES, course)

# figure: Running mean over 80 batches. In train() it rises towards 5, the mean of the data. In eval() it stays
#   there, while the mean of the data is 0. In train() under no_grad() it falls towards 0.

# sphinx_gallery_start_ignore
assert abs(course[39] - 5) < 0.15 and set(course[40:60]) == {course[39]}
assert course[-1] < 1 and len(course) == 80
# sphinx_gallery_end_ignore

# %%
# eval() and no_grad() together: the fast path
# --------------------------------------------
# Transformer layers look at both. In ``eval()``, and if no gradient is needed, they may call one fused operator in place of
# many. Your result can then differ in its last digits. With ``src_key_padding_mask`` it can differ more: ``TransformerEncoder``
# may return zeros at the padded positions (`pytorch#86120 <https://github.com/pytorch/pytorch/issues/86120>`__). PyTorch's
# reference lists the conditions; ``batch_first=True`` is one of them. ``torch.backends.mha.set_fastpath_enabled(False)``
# turns it off.
#
# .. how-measured:: A dispatch mode lists the operators that a call runs.

from torch.utils._python_dispatch import TorchDispatchMode


class Operators(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
        self.names.append(str(operator))
        return operator(*args, **(kwargs or {}))


# %%
# How many operators run, with and without a graph:

layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
x = torch.randn(2, 3, 8)

with Operators() as recorded:
    slow = layer(x)
with torch.no_grad(), Operators() as unrecorded:
    fast = layer(x)
print(len(recorded.names), "operators, and under no_grad()", unrecorded.names)

# sphinx_gallery_start_ignore
assert len(recorded.names) > 10
assert unrecorded.names == ["aten._transformer_encoder_layer_fwd.default"]
assert torch.allclose(slow, fast, atol=1e-5)
for _training, _first in ((True, True), (False, False)):
    _layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=_first).train(_training)
    with torch.no_grad(), Operators() as _names:
        _layer(x)
    assert len(_names.names) > 10
torch.backends.mha.set_fastpath_enabled(False)
with torch.no_grad(), Operators() as _names:
    layer(x)
torch.backends.mha.set_fastpath_enabled(True)
assert len(_names.names) > 10
_encoder = nn.TransformerEncoder(
    nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2
).eval()
_padded = torch.tensor([[False, False, False], [False, True, True]])
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # nested tensors are a prototype, it says
    _slow = _encoder(x, src_key_padding_mask=_padded)
    with torch.no_grad():
        _fast = _encoder(x, src_key_padding_mask=_padded)
        torch.backends.mha.set_fastpath_enabled(False)
        _off = _encoder(x, src_key_padding_mask=_padded)
        torch.backends.mha.set_fastpath_enabled(True)
assert torch.allclose(_slow[~_padded], _fast[~_padded], atol=1e-5)
assert not _fast[_padded].any() and _slow[_padded].all()
assert torch.allclose(_slow, _off, atol=1e-5)
# without no_grad(), but with nothing that requires grad
with Operators() as _names:
    layer.requires_grad_(False)(x)
assert _names.names == unrecorded.names
# sphinx_gallery_end_ignore

# %%
# Exercise
# --------
# Dropout left on at prediction time gives a spread of answers, which some take as a sign of how sure the model is. Write
# ``spread(model, x)``, the standard deviation of each output over 100 predictions: with dropout on, with batch normalization in
# ``eval()``, and with nothing recorded.
#
# .. solution::
#
# You can set the flag of a part of the model: first ``eval()`` for all of it, then ``train()`` for each ``nn.Dropout``. At the
# end each module gets back the flag that it had.


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

print(deviation)
assert (deviation > 0).all() and not deviation.requires_grad
assert all(torch.equal(before[key], now) for key, now in model[1].state_dict().items())
assert all(module.training for module in model.modules())

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_memory_memory_by_mode.py`: the bytes of a larger network.
# - :doc:`Which switch do I want? </guide/which-switch>`, by purpose.
# - In PyTorch's reference: `Module.eval
#   <https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.eval>`__, `Evaluation mode
#   <https://docs.pytorch.org/docs/stable/notes/autograd.html#evaluation-mode-nn-module-eval>`__ and `TransformerEncoderLayer
#   <https://docs.pytorch.org/docs/stable/generated/torch.nn.TransformerEncoderLayer.html>`__ with its fast path.
