r"""
model.train() and model.eval(): what they change
================================================

.. index::
   single: other results in training and in evaluation
   single: validation gives other numbers on each run
   single: functional dropout; a different output on every run
   single: fuse_conv_bn_eval, fold batch normalization into a convolution

.. in-short::

   ``model.eval()`` turns off dropout, and batch normalization then uses the averages that it kept in training.
   ``torch.no_grad()`` turns off recording for ``backward()``. To evaluate, use both. Call ``model.train()`` before you train
   again, then ``eval()`` on layers that stay in it, such as frozen batch norm.

   .. code-block:: python

      model.eval()
      with torch.no_grad():
          predictions = model(x)
"""

# %%
# Three switches that people confuse
# ----------------------------------
# You called ``eval()``, and memory runs out. You called ``no_grad()``, and the results still change from run to run. Take a
# network with batch normalization and dropout:

import copy
from contextlib import nullcontext

import torch
from torch import nn
from torch.nn import functional as F


def make_network():
    torch.manual_seed(0)
    first, norm = nn.Linear(20, 30), nn.BatchNorm1d(30)
    return nn.Sequential(first, norm, nn.ReLU(), nn.Dropout(), nn.Linear(30, 5))


model, x = make_network(), torch.randn(64, 20)
print("train():", [round(model(x)[0, 0].item(), 3) for _ in range(3)])
model.eval()
print("eval(): ", [round(model(x)[0, 0].item(), 3) for _ in range(3)])
print("is a graph built in eval()?", model(x).requires_grad)
with torch.no_grad():
    print("and under no_grad()?       ", model(x).requires_grad)

# %%
# **train() and eval() set a flag that a few layers read, and autograd records in both. no_grad() turns recording off, and
# leaves dropout and batch statistics on.**
#
# .. how-measured:: This code runs the network under each combination, and a hook counts what is saved for backward.

import pandas as pd
from torch.autograd.graph import saved_tensors_hooks


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
    model, x = make_network().train(training), torch.randn(64, 20) + 1
    model.requires_grad_(not frozen)
    before = model[1].running_mean.clone()
    (_, _, norm, relu, dropout, result), saved = forward(model, mode, x)
    found = {
        "builds a graph": result.requires_grad,
        "dropout is on": not torch.equal(dropout, relu),
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
}


def tabulate_effects():
    effects_of = {name: effects(*how) for name, how in COMBINATIONS.items()}
    return pd.DataFrame(effects_of).T.rename_axis(index=None, columns="switches")


# %%
# *Bytes kept* is what the graph saves for ``backward()``:

# sphinx_gallery_start_ignore
table = tabulate_effects()
_training = [how[0] for how in COMBINATIONS.values()]
for _column in ("dropout is on", "updates statistics", "uses batch statistics"):
    assert (table[_column] == "yes").tolist() == _training
assert (table["builds a graph"] == "yes").tolist() == [True, True] + [False] * 3
assert table["bytes kept"].tolist() == ["30,960", "15,360", "0", "0", "0"]
for _training in (True, False):
    _model = make_network().train(_training)
    _model(torch.randn(64, 20)).sum().backward()
    assert all(p.grad is not None for p in _model.parameters())
    _model.requires_grad_(False)
    assert not _model(torch.randn(64, 20)).requires_grad
_unit = 64 * 30 * 4
assert 2 * _unit + 2 * 30 * 4 == 30960 - 15360

# sphinx_gallery_end_ignore
tabulate_effects()

# %%
# ``eval()`` halves the bytes in this network, because the mask and the result of dropout fall away. For 0 bytes, use
# ``no_grad()``.
#
# An ``LSTM``, a ``GRU`` or an ``RNN`` on cuDNN can run backward only after ``train()``: see :ref:`cudnn RNN backward can only
# be called in training mode <sphx_glr_gallery_errors_cudnn_rnn_double_backward.py>`.

# %%
# Which layers change
# -------------------
# ``train()`` and ``eval()`` only set the attribute ``training`` of a module and of the modules in it. A layer may read it in
# its ``forward``. Below, each layer runs in both modes, with the same input and the same seed.
#
# .. how-measured:: This code compares the outputs and the buffers of copies of each layer.


def layers():
    torch.manual_seed(0)
    return {
        "Linear(8, 8)": nn.Linear(8, 8),
        "LayerNorm(8)": nn.LayerNorm(8),
        "GroupNorm(2, 8)": nn.GroupNorm(2, 8),
        "Dropout()": nn.Dropout(),
        "RReLU()": nn.RReLU(),
        "BatchNorm1d(8)": nn.BatchNorm1d(8),
        "… track_running_stats=False": nn.BatchNorm1d(8, track_running_stats=False),
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
    (in_train, moved), (in_eval, _) = run(layer, True), run(layer, False)
    found = {
        "output differs": not torch.allclose(in_train, in_eval, atol=1e-6),
        "train() moves statistics": moved,
    }
    return {question: ("no", "yes")[answer] for question, answer in found.items()}


def tabulate_layers():
    found = {name: compare(layer) for name, layer in layers().items()}
    return pd.DataFrame(found).T.rename_axis(index=None, columns="layer")


# %%
# Does the output differ between the modes, and does a call in ``train()`` change statistics that the layer keeps?

# sphinx_gallery_start_ignore
table = tabulate_layers()
assert table.index[table["output differs"] == "yes"].tolist() == [
    "Dropout()",
    "RReLU()",
    "BatchNorm1d(8)",
    "… track_running_stats=True",
    "LSTM(8, 8, 2, dropout=0.5)",
    "TransformerEncoderLayer(8, 2)",
]
assert table.index[table["train() moves statistics"] == "yes"].tolist() == [
    "BatchNorm1d(8)",
    "… track_running_stats=True",
]
for _layer in (*layers().values(), nn.AlphaDropout(), nn.SyncBatchNorm(8)):
    assert not run(_layer, False)[1]  # eval() moves no buffer
assert set(compare(nn.SyncBatchNorm(8)).values()) == {"yes"}
assert compare(nn.AlphaDropout())["output differs"] == "yes"
assert layers()["TransformerEncoderLayer(8, 2)"].dropout.p == 0.1
_plain = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0)
assert compare(_plain)["output differs"] == "no"
assert compare(nn.Dropout(0.0))["output differs"] == "no"
# sphinx_gallery_end_ignore
tabulate_layers()

# %%
# The layers whose output differs draw random numbers in training (the LSTM and the Transformer layer contain dropout), or keep
# statistics. Without statistics, batch and instance normalization compute the same in both modes.

# %%
# What dropout computes
# ---------------------
# In training ``nn.Dropout`` sets each number to 0 with the probability ``p`` and
# divides the others by ``1 - p``, so that the mean stays the same on average. In evaluation it returns its input, without a
# copy.

torch.manual_seed(0)
drop, ones = nn.Dropout(p=0.5), torch.ones(10_000)
print("train:", drop(ones)[:6], " mean", drop(ones).mean())
drop.eval()
print("eval: ", drop(ones)[:6], " the input itself:", drop(ones) is ones)

# sphinx_gallery_start_ignore
assert drop(ones) is ones
_kept = drop.train()(ones)
assert set(_kept.tolist()) == {0, 2} and abs(_kept.mean() - 1) < 0.05
# sphinx_gallery_end_ignore

# %%
# What batch normalization computes
# ---------------------------------
# In training it normalizes by the mean and the variance of the *batch*, and moves its *running statistics*, an average over
# batches, towards them. In evaluation it normalizes by the running statistics. One step:

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
# sphinx_gallery_end_ignore

# %%
# ``momentum=0.1``, the default, is the weight of the *new* value.
#
# Now 80 batches. The data of the first 40 have mean 5, the others mean 0.
#
# .. how-measured:: This code feeds 80 batches and draws the running mean after each.

import matplotlib.pyplot as plt


def follow_running_mean(phases):
    torch.manual_seed(0)
    norm, course = nn.BatchNorm1d(1), []
    for _, steps, mean, training, mode in phases:
        norm.train(training)
        for _ in range(steps):
            with mode():
                norm(mean + torch.randn(64, 1))
            course.append(norm.running_mean.item())
    return course


def plot_running_mean(phases, course):
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


# %%
# ``eval()`` stops the statistics. ``no_grad()`` does not, because their update needs no gradient:

phases = [
    ("train()", 40, 5.0, True, nullcontext),
    ("eval()", 20, 0.0, False, nullcontext),
    ("train() and no_grad()", 20, 0.0, True, torch.no_grad),
]
course = follow_running_mean(phases)
plot_running_mean(phases, course)

# figure: Running mean over 80 batches. In train() it rises towards 5, the mean of the data. In eval() it stays
#   there, while the mean of the data is 0. In train() under no_grad() it falls towards 0.

# sphinx_gallery_start_ignore
assert abs(course[39] - 5) < 0.15 and set(course[40:60]) == {course[39]}
assert course[-1] < 1 and len(course) == 80
# sphinx_gallery_end_ignore

# %%
# In evaluation, batch normalization only scales and shifts each channel. ``nn.utils.fuse_conv_bn_eval(conv, norm)`` puts this
# into the convolution before it. Both must be in ``eval()``.

# sphinx_gallery_start_ignore
conv, norm = nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8)
images = torch.randn(16, 3, 10, 10)
norm(conv(images))  # moves the statistics
fused = nn.utils.fuse_conv_bn_eval(conv.eval(), norm.eval())
assert torch.allclose(fused(images), norm(conv(images)), atol=1e-5)
assert not torch.allclose(fused(images), conv(images), atol=1e-2)
assert fused.weight is not conv.weight and fused.weight.is_leaf
fused(images).sum().backward()
assert conv.weight.grad is None and fused.weight.grad is not None
_linear, _norm = nn.Linear(20, 8), nn.BatchNorm1d(8)
_norm(_linear(x))
_fused = nn.utils.fuse_linear_bn_eval(_linear.eval(), _norm.eval())
assert torch.allclose(_fused(x), _norm(_linear(x)), atol=1e-5)
_refused = []
try:
    nn.utils.fuse_conv_bn_eval(conv, norm.train())
except AssertionError as error:
    _refused.append(str(error))
assert _refused == ["Fusion only for eval!"]
# sphinx_gallery_end_ignore

# %%
# What people get wrong
# ---------------------
# **Accuracy is bad only in eval().** The running statistics start at mean 0 and variance 1, so after a few steps, or with a
# small ``momentum``, they do not yet fit the data. Five steps on handwritten digits:

from sklearn.datasets import load_digits
from torch.optim.swa_utils import update_bn

images, digits = map(torch.tensor, load_digits(return_X_y=True))
images = images.float() / 16
loader = torch.utils.data.DataLoader(images[:1400], batch_size=64)


def block(inputs):
    return nn.Linear(inputs, 64), nn.BatchNorm1d(64), nn.ReLU()


def accuracy(model):
    with torch.no_grad():
        right = model(images[1400:]).argmax(dim=1) == digits[1400:]
    return round(right.float().mean().item(), 2)


torch.manual_seed(0)
model = nn.Sequential(*block(64), *block(64), *block(64), nn.Linear(64, 10))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for _ in range(5):
    chosen = torch.randint(1400, (64,))
    loss = F.cross_entropy(model(images[chosen]), digits[chosen])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

model.eval()
print("eval():         ", accuracy(model))
update_bn(loader, model)  # measures the statistics again, on the training data
print("after update_bn:", accuracy(model))

# sphinx_gallery_start_ignore
_fitted = accuracy(model)
assert not model.training and _fitted > 0.75
for _name, _layer in model.named_modules():
    if isinstance(_layer, nn.BatchNorm1d):
        assert _layer.momentum == 0.1
        _layer.reset_running_stats()
assert accuracy(model) < _fitted - 0.15
model.train()
update_bn([(images[:1400], digits[:1400])], model)  # a loader of pairs
assert model.training and abs(accuracy(model.eval()) - _fitted) < 0.05
# sphinx_gallery_end_ignore

# %%
# **Validating under no_grad() alone.** Dropout stays on. Batch normalization uses the batch, so the answer for one sample
# depends on the other samples, and the validation data move the running statistics.


# sphinx_gallery_start_ignore
def first_sample(model, others):
    x = torch.linspace(-1, 1, 20).repeat(64, 1)
    x[1:] += others
    with torch.no_grad():
        return model(x)[0, :3]


model = make_network()
model[3] = nn.Identity()  # no dropout: see batch normalization alone
for _training in (True, False):
    model.train(_training)
    _one, _another = first_sample(model, 1.0), first_sample(model, torch.arange(20.0))
    assert torch.allclose(_one, _another, atol=1e-6) is not _training
# sphinx_gallery_end_ignore

# %%
# **Leaving eval() on.** A function that validates sets the flag, and then the next epoch silently trains without dropout and
# with old statistics:


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
model, x = make_network(), torch.randn(64, 20)
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
# Call ``model.train()`` at the top of each epoch. If a part is frozen, :ref:`its batch norm needs eval() again
# <sphx_glr_gallery_modes_freezing.py>`.
#
# **Dropout as a function.** ``F.dropout`` belongs to no module, so it drops unless you pass the flag on. The ``dropout_p`` of
# ``F.scaled_dot_product_attention`` drops in ``eval()`` too: pass ``p if self.training else 0.0``.


class Net(nn.Module):
    def forward(self, x):
        return F.dropout(x), F.dropout(x, training=self.training)


torch.manual_seed(0)
always, flagged = Net().eval()(torch.ones(8))
print("F.dropout(x):                        ", always.tolist())
print("F.dropout(x, training=self.training):", flagged.tolist())

# sphinx_gallery_start_ignore
assert 0 in always and flagged.tolist() == [1.0] * 8
_q = torch.ones(1, 1, 8, 8)
_full, _dropped = (
    F.scaled_dot_product_attention(_q, _q, _q, dropout_p=_p) for _p in (0.0, 0.5)
)
assert torch.allclose(_full, _q) and not torch.allclose(_dropped, _q)
# sphinx_gallery_end_ignore

# %%
# eval() and no_grad() together: the fast path
# --------------------------------------------
# In ``eval()``, if nothing needs a gradient, ``nn.TransformerEncoderLayer`` may run as one fused operator. It reads
# ``linear1.weight`` instead of calling ``linear1``, so it silently leaves out an adapter:


class Adapted(nn.Module):  # as in LoRA: a small trained part beside a layer
    def __init__(self, base):
        super().__init__()
        self.base, self.added = base, nn.Linear(8, 16)
        self.weight, self.bias = base.weight, base.bias

    def forward(self, x):
        return self.base(x) + self.added(x)


torch.manual_seed(0)
layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
layer.linear1 = Adapted(layer.linear1)
x = torch.randn(2, 3, 8)


def evaluate(layer):
    layer.eval()
    with torch.no_grad():
        return layer(x)


recorded = layer.eval()(x).detach()
gap = (evaluate(layer) - recorded).abs().max().item()
print(f"largest difference under no_grad(): {gap:.2f}")
torch.backends.mha.set_fastpath_enabled(False)
gap = (evaluate(layer) - recorded).abs().max().item()
print(f"without the fast path:              {gap:.2f}")
torch.backends.mha.set_fastpath_enabled(True)


# sphinx_gallery_start_ignore
def raised_by(function):
    try:
        function()
    except (RuntimeError, AssertionError) as error:
        return str(error)


assert (evaluate(layer) - recorded).abs().max() > 0.1
_plain = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, dropout=0.0)
_encoder = nn.TransformerEncoder(_plain, 2).eval()
_padded = torch.tensor([[False, False, False], [False, True, True]])
_bias = torch.zeros(3, 3, requires_grad=True)
_plain.requires_grad_(False)
_encoder.layers[0].requires_grad_(False)


def learn_bias():
    _plain.eval()(x, src_mask=_bias).sum().backward()


def tune_last():
    _encoder(x, src_key_padding_mask=_padded).sum().backward()


with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # nested tensors are a prototype, it says
    _messages = raised_by(learn_bias), raised_by(tune_last)
    torch.backends.mha.set_fastpath_enabled(False)
    assert torch.allclose(evaluate(layer), recorded, atol=1e-5)
    assert raised_by(learn_bias) is raised_by(tune_last) is None
    torch.backends.mha.set_fastpath_enabled(True)
assert "derivative for aten::_transformer_encoder_layer_fwd is not" in _messages[0]
assert "does not support NestedTensor outside of its fast path" in _messages[1]
# sphinx_gallery_end_ignore

# %%
# ``set_fastpath_enabled(False)`` also helps if frozen layers in ``eval()`` raise *derivative for
# aten::_transformer_encoder_layer_fwd is not implemented* (with a trained attention bias) or *MultiheadAttention does not
# support NestedTensor outside of its fast path* (with a padding mask).

# %%
# Exercise
# --------
# With dropout on, predictions vary, and some read from their spread how sure the model is. Write ``spread(model, x)``, the
# standard deviation of each output over 100 predictions: with dropout on, batch normalization in ``eval()``, and nothing
# recorded.
#
# .. solution::
#
# Take a copy, so that the model stays as it is. Set its flags one by one, because a model may override ``train()``. Dropout can
# be inside any module, such as an LSTM, so all are in training, except batch normalization.


BATCH_NORM = nn.modules.batchnorm._NormBase  # of BatchNorm1d and the others


@torch.no_grad()
def spread(model, x):
    model = copy.deepcopy(model)
    for module in model.modules():
        module.training = not isinstance(module, BATCH_NORM)
    return torch.stack([model(x) for _ in range(100)]).std(dim=0)


deviation = spread(make_network(), torch.ones(1, 20))

print(deviation)
assert (deviation > 0).all() and not deviation.requires_grad


# sphinx_gallery_start_ignore
class _FineTuned(nn.Sequential):
    def train(self, mode=True):
        super().train(mode)
        self[0].eval()
        return self


assert (spread(_FineTuned(nn.Dropout()).eval(), torch.ones(1, 20)) > 0).any()
assert isinstance(nn.SyncBatchNorm(4), BATCH_NORM)
_convolution = nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.Dropout2d(), nn.Flatten()
_layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.5, batch_first=True)
for _model, _x in (
    (nn.Sequential(*_convolution).eval(), torch.randn(1, 1, 4, 4)),
    (nn.Sequential(_layer).eval(), torch.randn(2, 3, 8)),
    (nn.ModuleList([nn.LSTM(4, 4, 2, dropout=0.5)]), torch.randn(3, 1, 4)),
):
    if isinstance(_model, nn.ModuleList):
        _model.forward = lambda x, lstm=_model[0]: lstm(x)[0]
    _before, _mode = copy.deepcopy(_model.state_dict()), _model.training
    assert (spread(_model, _x) > 0).any() and _model.training == _mode
    assert all(torch.equal(_before[key], t) for key, t in _model.state_dict().items())
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_memory_memory_by_mode.py`: the bytes of a larger network.
# - :doc:`Which switch do I want? </guide/which-switch>`, by purpose.
# - :ref:`sphx_glr_gallery_errors_one_value_per_channel.py`: batch normalization and a batch of one sample.
# - In PyTorch's reference: `Module.eval
#   <https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.eval>`__, `Evaluation mode
#   <https://docs.pytorch.org/docs/stable/notes/autograd.html#evaluation-mode-nn-module-eval>`__ and `TransformerEncoderLayer
#   <https://docs.pytorch.org/docs/stable/generated/torch.nn.TransformerEncoderLayer.html>`__ with its fast path.
