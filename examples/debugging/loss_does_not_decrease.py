r"""
The loss does not decrease: what to check, in order
===================================================

.. index::
   single: the loss does not go down and there is no error
   single: the network does not learn, how to debug
   single: overfit one batch
   single: sanity checks before training
   single: initial loss of a classifier, log of the number of classes
   single: a parameter has a gradient and does not change
   single: loss is constant
   single: wrong gradients on MPS, compared with the CPU
   single: PYTORCH_ENABLE_MPS_FALLBACK, PYTORCH_MPS_PREFER_METAL
   single: Cannot convert a MPS Tensor to float64 dtype as the MPS framework doesn't support float64

.. in-short::

   Train on one fixed batch of 16 samples for a few hundred steps. If the loss does not fall to almost zero (or the least value
   that it can have), take one more step, and print which parameters have no gradient and which stay the same:

   .. code-block:: python

      old = [p.detach().clone() for p in model.parameters()]
      model.zero_grad()
      loss_function(model(x), target).backward()
      optimizer.step()
      for (name, p), before in zip(model.named_parameters(), old):
          print(name, p.grad is None, torch.equal(p, before))

   Without a gradient, the parameter is frozen, unused or cut from the graph. With a gradient, but the same as before, it is
   often missing in the optimizer. The batch test can miss wrong labels, so look at the data too.
"""

# %%
# The loss stays where it is
# --------------------------
# You fine-tune a network: the body is frozen, and the head is new. But the loss stays where it is, without an error. Five steps
# find such a mistake. This is the code with the mistake, on 800 random samples of five classes:

import math

import torch
import torch.nn.functional as F
from torch import nn

# sphinx_gallery_start_ignore
_threads = torch.get_num_threads()
torch.set_num_threads(1)  # small matrices: more threads do not help
# sphinx_gallery_end_ignore
torch.manual_seed(2)
centers = torch.randn(5, 20)
labels = torch.randint(5, (800,))
inputs = centers[labels] + torch.randn(800, 20)
x, target = inputs[:16], labels[:16]
one = [(x, target)] * 200
changing = [(inputs[i], labels[i]) for i in torch.randint(800, (200, 16))]


def fit(model, optimizer, batches):
    losses = []
    for x, target in batches:
        loss = F.cross_entropy(model(x), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def fine_tune(lr=1e-2):
    torch.manual_seed(2)
    first, second = nn.Linear(20, 64), nn.Linear(64, 64)
    body = nn.Sequential(first, nn.ReLU(), second, nn.ReLU())
    for layer in (first, second):
        nn.init.kaiming_normal_(layer.weight)
    model = nn.Sequential(body.requires_grad_(False), nn.Linear(64, 10))
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    model[1] = nn.Linear(64, 5)  # five classes now
    return model, optimizer


model, optimizer = fine_tune()
losses = fit(model, optimizer, changing)
first, last = sum(losses[:50]) / 50, sum(losses[-50:]) / 50
print(f"mean loss: first 50 batches {first:.2f}, last 50 batches {last:.2f}")

# sphinx_gallery_start_ignore
assert (
    abs(first - last) < 0.1
    and f"{math.log(5):.2f}" == "1.61"
    and min(first, last) > 1.8
)
# sphinx_gallery_end_ignore

# %%
# Giving each of the five classes the same probability has the loss :math:`\log 5`, about 1.61. So the model is worse than that.

# %%
# .. how-measured:: This code trains the broken and the corrected version on 200 batches, or on one batch 200 times.

import matplotlib.pyplot as plt


def plot_broken_and_corrected():
    _, axes = plt.subplots(
        1, 2, figsize=(7, 3), sharex=True, sharey=True, layout="constrained"
    )
    curves = {}
    kinds = {"Changing batches": changing, "One batch": one}
    for ax, (name, batches) in zip(axes, kinds.items(), strict=True):
        broken, right = curves[name] = [
            fit(*make(), batches) for make in (fine_tune, corrected)
        ]
        ax.plot(broken, color="#c2410c", label="broken")
        ax.plot(right, "--", color="#2563eb", label="corrected")
        ax.set(xlabel="step", ylim=(-0.1, 2.6))
        ax.set_title(name)
    axes[0].set(ylabel="loss")
    axes[1].legend(frameon=False)
    return curves


# %%
# The loss at each step:


def corrected(lr=1e-2):
    model, _ = fine_tune()
    return model, torch.optim.Adam(model.parameters(), lr=lr)


# figure: Two panels, each with the loss over 200 steps. On the left, with changing batches, the
#   broken loss goes up and down around 1.9. On the right, with one batch, it is a horizontal line. In both
#   panels the loss of the corrected code falls, on one batch to almost 0.
curves = plot_broken_and_corrected()

# sphinx_gallery_start_ignore
from itertools import pairwise

_noisy, _right_noisy = curves["Changing batches"]
_flat, _right = curves["One batch"]
assert len(set(_flat)) == 1 and f"{_flat[0]:.2f}" == "1.62"
assert max(_noisy) - min(_noisy) > 0.6 and min(_noisy) > 1.2 and max(_noisy) < 2.6
assert abs(sum(_noisy) / 200 - 1.9) < 0.1 and _right[-1] < 0.01
assert max(_right) == _right[0] and sum(_right_noisy[-20:]) / 20 < 0.3
assert sum(b < a for a, b in pairwise(_noisy)) > 80
# sphinx_gallery_end_ignore

# %%
# On the right, you see at once that nothing is learned. This batch is easier than most, so the line is at 1.62.

# %%
# Step 1: is the first loss what chance gives?
# --------------------------------------------
# If the scores of an untrained classifier are small, the classes are almost equally likely. With five classes, the cross
# entropy is then near :math:`\log 5`. A small batch varies, so take many samples, before the first update:

model, _ = fine_tune()
scores = model(inputs)
losses = {
    "log(5)": math.log(5),
    "this model": F.cross_entropy(scores, labels),
    "inputs times 255": F.cross_entropy(model(255 * inputs), labels),
    "one output": F.cross_entropy(scores[:, :1], labels[:, None].float()),
}
for name, loss in losses.items():
    print(f"{name:<16} {loss:6.2f}")

# sphinx_gallery_start_ignore
_log, _first, _unscaled, _single = losses.values()
assert 0.2 < _first - _log < 0.5 and _unscaled > 100 and _single == 0
assert abs(F.cross_entropy(model(x), target).item() - _flat[0]) < 1e-5
assert abs(F.cross_entropy(scores.softmax(dim=1), labels) - _log) < 0.1
assert abs(F.cross_entropy(torch.zeros(16, 5), target) - _log) < 1e-6
assert F.cross_entropy(torch.randn(16, 1) * 9, torch.rand(16, 1)) == 0
assert F.cross_entropy(torch.randn(16, 1) * 9, torch.zeros(16).long()) == 0
_goal = torch.randn(50, 3) * 4 + 1
torch.testing.assert_close(
    F.mse_loss(_goal.mean(0).expand(50, 3), _goal), _goal.var(0, correction=0).mean()
)
# sphinx_gallery_end_ignore

# %%
# This model is a little above :math:`\log 5`, because its scores are not quite small. That is fine. A loss over 100 means large
# scores, so look at the scale of the inputs and of the last layer. An exact 0, printed as -0.00, often means that there is
# nothing to choose: with one output, softmax is 1. For the squared error, compare with the variance of each target, which is
# the loss of predicting its mean.
#
# A first loss near :math:`\log 5` proves little. It is there too with softmax before ``cross_entropy``.

# %%
# Step 2: overfit one batch
# -------------------------
# Take about 16 samples and train on them for a few hundred steps. Turn off dropout, augmentation, label smoothing, weight
# decay and the schedule. A network with enough parameters should learn 16 different samples by heart:

for name, make in {"broken": fine_tune, "corrected": corrected}.items():
    losses = fit(*make(), one)
    print(f"{name:<9}  first {losses[0]:.4f}  last {losses[-1]:.4f}")

# sphinx_gallery_start_ignore
assert losses[-1] < 0.01
# sphinx_gallery_end_ignore

# %%
# - **It falls to almost zero.** Then this batch can be learned, so look at the data and the labels, as below. Then look at the
#   learning rate over time, and at what you turned off.
# - **It falls, slowly.** Take more steps or a larger rate.
# - **It stops, or it stays the same.** With label smoothing or soft targets, zero is out of reach. Otherwise, suspect the code,
#   and go on with the same batch.
#
# A network learns wrong labels by heart too. So print what the model gets, after all transforms, and read a few samples with
# their labels. Show images with ``plt.imshow``, and turn ids of tokens back into text:

wrong = (target + torch.randint(1, 5, (16,))) % 5  # each label is wrong
last = fit(*corrected(), [(x, wrong)] * 200)[-1]
print(f"last loss with wrong labels {last:.4f}")

print(f"{tuple(x.shape)}, {x.dtype}, mean {x.mean():.2f}, std {x.std():.2f}")
print("samples of each class:", labels.bincount(minlength=5).tolist())
for sample, label in zip(x[:3], target[:3], strict=True):
    numbers = [round(number, 1) for number in sample[:6].tolist()]
    print("label", label.item(), "sample", numbers)

# sphinx_gallery_start_ignore
assert (wrong != target).all() and last < 0.02
# sphinx_gallery_end_ignore

# %%
# Is the mean near 0, and the standard deviation about 1? Does each class have samples? Does each label fit?

# %%
# Steps 3 and 4: does each parameter get a gradient, and does it move?
# --------------------------------------------------------------------
# Take one step on the batch. For each parameter, print the norm of its gradient, and its relative change:


def report(model, old):
    for (name, p), before in zip(model.named_parameters(), old, strict=True):
        gradient = p.grad if p.grad is None else f"{p.grad.norm():.1e}"
        moved = (p.detach() - before).norm() / before.norm()
        print(f"{name:<11} gradient {gradient!s:<8} moved {moved:.1e}")


def loss_on_batch(model):
    return F.cross_entropy(model(x), target)


def take_one_step(model, optimizer, loss_of=loss_on_batch):
    old = [p.detach().clone() for p in model.parameters()]
    model.zero_grad()
    loss_of(model).backward()
    optimizer.step()
    report(model, old)


model, optimizer = fine_tune()
take_one_step(model, optimizer)

# sphinx_gallery_start_ignore
import contextlib
import io


def _reported(model, old):
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        report(model, old)
    lines = [line.split() for line in printed.getvalue().splitlines()]
    return {line[0]: (line[2], line[4]) for line in lines}


_fresh, _its = fine_tune()
_old = [p.detach().clone() for p in _fresh.parameters()]
fit(_fresh, _its, one[:1])
_rows = _reported(_fresh, _old)
assert [*_rows] == [name for name, _ in model.named_parameters()] and len(_rows) == 6
assert {_rows[_name] for _name in [*_rows][:4]} == {("None", "0.0e+00")}
for _name in ("1.weight", "1.bias"):
    assert float(_rows[_name][0]) > 0.01 and _rows[_name][1] == "0.0e+00"
# sphinx_gallery_end_ignore

# %%
# Use ``model.zero_grad()``: ``optimizer.zero_grad()`` clears only the parameters that the optimizer has.
#
# .. list-table::
#    :header-rows: 1
#    :widths: 30 70
#
#    * - what you see
#      - usual causes
#    * - gradient ``None``
#      - frozen; unused in the forward pass; cut off by ``detach``, ``no_grad``, ``.data``, ``argmax``, or a new tensor made
#        of numbers: :ref:`why is grad None <sphx_glr_gallery_graphs_why_is_grad_none.py>`
#    * - gradient ``None``, but moved
#      - your loop calls ``zero_grad()`` after the step: print before it
#    * - gradient 0
#      - a ReLU whose inputs are all negative; a saturated sigmoid; ``round`` or ``sign``; a layer of zeros behind it, as in
#        the first step of LoRA
#    * - gradient, moved 0
#      - missing in the optimizer; ``lr`` is 0; the step is too small for ``bfloat16`` weights and is rounded to nothing;
#        :ref:`GradScaler <sphx_glr_gallery_memory_grad_scaler.py>` skipped it
#    * - moved near 1, or more
#      - the learning rate is too large: step 5; or the parameter was almost 0, as a bias of zeros after one step
#    * - moved ``inf`` or ``nan``
#      - the parameter was exactly 0 before, as some biases are; otherwise, :ref:`look for a NaN
#        <sphx_glr_gallery_debugging_finding_nans.py>`
#
# If a layer is missing in the list, it may be in a Python list: put it into ``nn.ModuleList`` instead.
#
# The head is a case of the third row. So compare the optimizer's parameters with those of the model:

known = {id(p) for group in optimizer.param_groups for p in group["params"]}
print([name for name, p in model.named_parameters() if id(p) not in known])

# sphinx_gallery_start_ignore
assert [n for n, p in model.named_parameters() if id(p) not in known] == [
    "1.weight",
    "1.bias",
]
_cleared, _its = corrected()
_old = [p.detach().clone() for p in _cleared.parameters()]
fit(_cleared, _its, one[:1])
_its.zero_grad()
_row = _reported(_cleared, _old)["1.weight"]
assert _row[0] == "None" and float(_row[1]) > 0
optimizer.zero_grad()
assert model[1].weight.grad is not None
model.zero_grad()
assert model[1].weight.grad is None


def _one(make_loss, p, lr=1e-2, kind=torch.optim.SGD):
    net = nn.Module()
    net.p = p if isinstance(p, nn.Parameter) else nn.Parameter(p.clone())
    optimizer = kind(net.parameters(), lr=lr)
    old = [net.p.detach().clone()]
    loss = make_loss(net.p)
    if loss.requires_grad:
        loss.backward()
    optimizer.step()
    return _reported(net, old)["p"]


_p = torch.ones(4)
_else = torch.ones(4, requires_grad=True)


def _without(p):
    with torch.no_grad():
        h = 2 * p
    return (h * _else).sum()


for _cut in (
    lambda p: (p.detach() * _else).sum(),
    _without,
    lambda p: (p.data * _else).sum(),
    lambda p: p.argmax() * _else.sum(),
    lambda p: (torch.tensor(p.tolist()) * _else).sum(),
    lambda p: _else.sum(),
):
    assert _one(_cut, _p) == ("None", "0.0e+00")
_frozen = nn.Parameter(_p.clone(), requires_grad=False)
assert _one(lambda p: (p * _else).sum(), _frozen) == ("None", "0.0e+00")
for _zero in (
    lambda p: F.relu(-p).sum(),
    lambda p: torch.sigmoid(200 * p).sum(),
    lambda p: (0 * p).sum(),
    lambda p: p.round().sum() + p.sign().sum(),
    lambda p: (p @ torch.zeros(4, 2, requires_grad=True)).sum(),  # zeros behind it
):
    assert _one(_zero, _p) == ("0.0e+00", "0.0e+00")
_tiny = torch.full((4,), 1e-6)
assert float(_one(lambda p: p.sum(), _tiny, 1e-3, torch.optim.Adam)[1]) > 100
_listed = nn.Module()
_listed.layers = [nn.Linear(2, 2)]
assert not list(_listed.parameters())
_smooth = F.cross_entropy(scores, labels, label_smoothing=0.1)
_model, _optimizer = corrected()
for _ in range(300):
    _optimizer.zero_grad()
    _loss = F.cross_entropy(_model(x), target, label_smoothing=0.1)
    _loss.backward()
    _optimizer.step()
assert 0.38 < _loss < 0.40 < _smooth
_scaled = nn.Linear(1, 1)
_optimizer = torch.optim.SGD(_scaled.parameters(), lr=0.1)
_old = [p.detach().clone() for p in _scaled.parameters()]
_scaler = torch.amp.GradScaler("cpu")
_scaler.scale(_scaled(torch.full((1, 1), math.inf)).sum()).backward()
_scaler.step(_optimizer)
assert {moved for _, moved in _reported(_scaled, _old).values()} == {"0.0e+00"}
assert _one(lambda p: p.sum(), _p, lr=0.0) == ("2.0e+00", "0.0e+00")
_half = torch.ones(4, dtype=torch.bfloat16)
for _kind in (torch.optim.SGD, torch.optim.Adam):
    assert _one(lambda p: p.sum(), _half, 1e-3, _kind)[1] == "0.0e+00"
    assert _one(lambda p: p.sum(), _p, 1e-3, _kind)[1] == "1.0e-03"
    assert _one(lambda p: p.sum(), _p, 1.0, _kind)[1] == "1.0e+00"
    assert _one(lambda p: p.sum(), torch.zeros(4), 1e-3, _kind)[1] == "inf"
    assert _one(lambda p: (0 * p).sum(), torch.zeros(4), 1e-3, _kind)[1] == "nan"
    assert _one(lambda p: (p / 0 * 0).sum(), _p, 1e-3, _kind)[1] == "nan"
# sphinx_gallery_end_ignore

# %%
# The optimizer was made before the new head, so it has the old one. So make it after the last change to the model:

optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
# sphinx_gallery_start_ignore
old = [p.detach().clone() for p in model.parameters()]
# sphinx_gallery_end_ignore
take_one_step(model, optimizer)

# sphinx_gallery_start_ignore
_rows = _reported(model[1], old[4:])
assert all(0.03 < float(_moved) < 0.3 for _, _moved in _rows.values())
_change = (model[1].weight - old[4]).abs()
_there = model[1].weight.grad.abs() > 1e-5
assert ((_change - 1e-2).abs() < 1e-4)[_there].all() and _there.float().mean() > 0.5
_model, _optimizer = corrected(1e-3)
_old = [p.detach().clone() for p in _model.parameters()]
F.cross_entropy(_model(x), target).backward()
_optimizer.step()
for (_, _moved), (_, _small) in zip(
    _rows.values(), _reported(_model[1], _old[4:]).values(), strict=True
):
    assert abs(float(_moved) / float(_small) - 10) < 1
# sphinx_gallery_end_ignore

# %%
# A common rule of thumb for ``moved`` is ``1e-3``. But in its first step, Adam changes most numbers by about ``lr``, so
# ``1e-2`` in this case.
#
# **Do steps 3 and 4 even if step 2 succeeds.** If the body learns too, it learns to serve a head that stays the same:

model, optimizer = fine_tune()
model.requires_grad_(True)
print(f"last loss {fit(model, optimizer, one)[-1]:.4f}")

take_one_step(model, optimizer)

# sphinx_gallery_start_ignore
assert fit(model, optimizer, one[:1])[-1] < 0.01
_old = [p.detach().clone() for p in model.parameters()]
fit(model, optimizer, one[:1])
_still = [torch.equal(p, q) for p, q in zip(model.parameters(), _old, strict=True)]
assert _still == [False] * 4 + [True] * 2
# sphinx_gallery_end_ignore

# %%
# Step 5: the learning rate
# -------------------------
# Try a few powers of ten on the one batch, each with a new model:

for lr in (1e-5, 1e-3, 1e-1, 1e1):
    model, _ = fine_tune()
    model.requires_grad_(True)
    losses = fit(model, torch.optim.Adam(model.parameters(), lr=lr), one)
    after_10, last = losses[10], losses[-1]
    print(f"lr {lr:<6g} after 10 steps {after_10:<9.2f} after 200 {last:.4f}")

    # sphinx_gallery_start_ignore
    _ten = {1e-5: (1.5, 1.62), 1e-3: (0.5, 1.2), 1e-1: (0, 0.1), 1e1: (1e3, 1e5)}[lr]
    assert _ten[0] <= losses[10] < _ten[1]
    assert (0.1 < losses[0] - losses[-1] < 0.5) == (lr == 1e-5)
    assert (losses[-1] < 0.01) == (lr > 1e-5)
    assert (max(losses) > 1e6) == (lr == 1e1) and (max(losses) < 5) == (lr < 1e1)
    # sphinx_gallery_end_ignore

# %%
# The loss after 10 steps tells the rates apart: with the smallest it has hardly fallen, with the largest it is in the
# thousands, although this run too ends near 0. Take a rate with which the loss falls at once, then go back to changing batches.

# %%
# What people get wrong
# ---------------------
# **Judging by changing batches.** The broken loss in the left panel goes down more than 80 times, whenever the next batch is
# easier.
#
# **Changing the learning rate first.** In the broken code it changes nothing. The last loss on the one batch:

for lr in (1e-4, 1e-2, 1.0):
    last = fit(*fine_tune(lr), one)[-1]
    print(f"lr {lr:<6g} loss {last:.4f}")

    # sphinx_gallery_start_ignore
    assert last == _flat[0]
for _lr in (0.0, 1e-7, 1e3):
    assert {*fit(*fine_tune(_lr), one[:5])} == {last}
# sphinx_gallery_end_ignore

# %%
# Exercise
# --------
# Model and optimizer are right, and the loss is wrong. Which step shows that, and which step says why?
#
# .. code-block:: python
#
#    loss = F.cross_entropy(model(x).softmax(dim=1), target)  # A
#
#    value = F.cross_entropy(model(x), target).item()  # B
#    loss = torch.tensor(value, requires_grad=True)
#
# .. solution::
#
# Step 2 shows both. The loss of B stays the same. The loss of A falls and stops above 0.90, because probabilities are at most
# 1, and such small scores give no smaller loss. Step 3 says why: in B the gradients are None, because the new tensor has no
# graph. In A the head has a gradient and moves, so look at the loss.


def loss_a(model):
    return F.cross_entropy(model(x).softmax(dim=1), target)


def loss_b(model):
    value = F.cross_entropy(model(x), target).item()
    return torch.tensor(value, requires_grad=True)


ends = []
for wrong in (loss_a, loss_b):
    model, optimizer = corrected()
    losses = []
    for _ in range(200):
        loss = wrong(model)
        model.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    print(f"{wrong.__name__}: first {losses[0]:.3f}, last {losses[-1]:.3f}")
    take_one_step(model, optimizer, wrong)
    ends.append((losses[0], losses[-1], model[1].weight.grad is None))

# predict: "B" if ends[1][2] and not ends[0][2] else "?" [A | B | both] -- In which of the two has the head no gradient?

# sphinx_gallery_start_ignore
_least = math.log(math.e + 4) - 1
assert 0.90 < _least < 0.91 and _least < ends[0][1] < 1 < 1.5 < ends[0][0]
assert ends[1][0] == ends[1][1] == _flat[0] and [e[2] for e in ends] == [False, True]
assert all(p.grad is None for p in model.parameters()) and loss.grad_fn is None
_sure = F.one_hot(torch.arange(5)).float()
assert abs(F.cross_entropy(_sure, torch.arange(5)) - _least) < 1e-6
_any = torch.cat([torch.randn(1000, 5).mul(50).softmax(dim=1), _sure])
_any = F.cross_entropy(_any, _any.argmax(dim=1), reduction="none")
assert (_any > _least - 1e-6).all()
# sphinx_gallery_end_ignore

# %%
# It learns on the CPU, but not on MPS or CUDA
# --------------------------------------------
# If only the device differs, compare one step of the untrained model. This function takes the same batch twice: on your device,
# and on the CPU in ``float64``. For each parameter it prints how far the gradients are apart, relative to the gradient.
# Rounding usually stays below the ``limit``: 0.001 in ``float32``, 0.4 in ``bfloat16``. In a deep network, rounding can switch
# a ReLU on or off, and errors get larger: then compare two dtypes on the CPU, too. First set dropout to 0, and give tensors
# that ``forward`` makes the dtype of the weights.

from copy import deepcopy


def gradients(model, x, target, device, dtype):
    model = deepcopy(model).cpu().to(dtype).to(device)
    x = x.cpu().to(dtype) if x.is_floating_point() else x  # not the ids of tokens
    loss = F.cross_entropy(model(x.to(device)), target.to(device))  # or your loss
    loss.backward()
    named = model.named_parameters()
    return {n: p.grad.cpu().double() for n, p in named if p.grad is not None}


def compare_with_cpu(model, x, target, dtype=torch.float32):
    device = torch.accelerator.current_accelerator(check_available=True) or "cpu"
    found = gradients(model, x, target, device, dtype)
    exact = gradients(model, x, target, "cpu", torch.float64)
    limit = 4 * torch.finfo(dtype).eps ** 0.5
    whole = sum(g.square().sum() for g in exact.values()).sqrt()
    wrong = []
    for name, g in exact.items():
        error = (found[name] - g).norm() / max(g.norm(), limit * whole)
        wrong += [] if error < limit else [name]
        print(f"{name:<9} {error:.0e}", "" if error < limit else " WRONG")
    return wrong


# %%
# The second model breaks one gradient, except in ``float64``. Of 16 samples, 15 get 0:


class Faulty(nn.Module):
    def forward(self, h):
        if h.dtype != torch.float64:
            kept = torch.arange(len(h), device=h.device) % 16 == 0
            h.register_hook(lambda grad: grad * kept[:, None])
        return h


# varies: An error by rounding depends on the processor.
wrong = []
for between in (nn.Identity(), Faulty()):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(20, 64), between, nn.ReLU(), nn.Linear(64, 5))
    wrong.append(compare_with_cpu(model, inputs[:64], labels[:64]))
    print()

# sphinx_gallery_start_ignore
assert wrong == [[], ["0.weight", "0.bias"]]


class _Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.head = nn.Embedding(9, 32), nn.Linear(32, 5)
        self.block = nn.TransformerEncoderLayer(32, 4, dropout=0.0, batch_first=True)

    def forward(self, x):
        return self.head(self.block(self.embed(x)).mean(dim=1))


assert [
    f"{4 * torch.finfo(k).eps ** 0.5:.1g}" for k in (torch.float, torch.bfloat16)
] == [
    "0.001",
    "0.4",
]
_norm = nn.Sequential(nn.Linear(20, 64), nn.BatchNorm1d(64), nn.ReLU())
_deep = [layer for _ in range(30) for layer in (nn.Linear(64, 64), nn.GELU())]
_ids, _half = torch.randint(9, (64, 12)), fine_tune()[0]  # its body is frozen
with contextlib.redirect_stdout(io.StringIO()):
    for _kind in (torch.float32, torch.float16, torch.bfloat16):  # no false alarm
        assert not compare_with_cpu(_Attention(), _ids, labels[:64], _kind)
        for _more in ((), _deep):
            _net = nn.Sequential(*_norm, *_more, nn.Linear(64, 5))
            assert not compare_with_cpu(_net, inputs[:64], labels[:64], _kind)
    assert not compare_with_cpu(_half, x, target)
    _block = nn.TransformerEncoderLayer(20, 4, dropout=0.0, batch_first=True)
    _faulty = Faulty()
    _block.activation = lambda h: F.relu(_faulty(h))
    _block = nn.Sequential(_block, nn.Linear(20, 5))
    _listed = compare_with_cpu(_block, inputs[:64], labels[:64])
# the order of the list is not that of forward: the fault is after linear1
assert _listed[-1] == "0.norm1.bias" and "0.linear1.weight" in _listed
assert "0.linear2.weight" not in _listed
torch.set_num_threads(_threads)
# sphinx_gallery_end_ignore

# %%
# The gradient is wrong from the faulty operation back to the input. So, in the order of ``forward``, look between the last
# wrong parameter and the next one. Take your real batch: some faults need
# large tensors. These were reported for MPS. The loss was right:
#
# .. list-table::
#    :header-rows: 1
#    :widths: 46 22 32
#
#    * - what was wrong
#      - reported with
#      - state in September 2026
#    * - A product with an expanded gradient, as after ``y.sum()``: 15 of 16 rows were 0 (`#180201
#        <https://github.com/pytorch/pytorch/issues/180201>`__).
#      - 2.11, macOS 26.3
#      - `worked around <https://github.com/pytorch/pytorch/pull/180236>`__ before macOS 26.4; seen again in a beta of macOS 27
#    * - A linear layer with more than 32,768 samples times positions: up to 100,000 times too large (`#177116
#        <https://github.com/pytorch/pytorch/issues/177116>`__).
#      - 2.10 to 2.13, M1 and M2
#      - 2.14 avoids it; ``bmm`` and ``einsum`` `are still wrong <https://github.com/pytorch/pytorch/issues/195163>`__
#    * - ``bmm`` with a result of more than 2\ :sup:`32` numbers (`#197636
#        <https://github.com/pytorch/pytorch/issues/197636>`__).
#      - 2.14, M2 Ultra
#      - open
#    * - Two linear layers, the last with 50,257 outputs, and 512 samples: the gradient of the first (`#153957
#        <https://github.com/pytorch/pytorch/issues/153957>`__).
#      - May 2025
#      - open
#
# For a wrong matrix product, try ``PYTORCH_MPS_PREFER_METAL=1``, which takes other kernels (the forward of ``nn.Linear``
# `ignores it <https://github.com/pytorch/pytorch/issues/188728>`__). ``PYTORCH_ENABLE_MPS_FALLBACK=1`` does not help: it is for
# operators that MPS lacks. MPS has no ``float64``, so ``gradcheck`` needs the CPU. On CUDA, first turn off :ref:`TF32
# <sphx_glr_gallery_cuda_cudnn_and_tf32.py>`, which rounds more.

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_graphs_why_is_grad_none.py`, if step 3 prints ``None``.
# - :ref:`sphx_glr_gallery_modes_freezing.py`, which parameters should not move.
# - :ref:`sphx_glr_gallery_training_learning_rate_schedules.py`, the learning rate over time.
# - :ref:`sphx_glr_gallery_training_vanishing_gradients.py`, if the gradients of a deep network are tiny or huge.
# - In PyTorch's reference: `torch.nn.functional.cross_entropy
#   <https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.cross_entropy.html>`__ and `Optimizer.add_param_group
#   <https://docs.pytorch.org/docs/stable/generated/torch.optim.Optimizer.add_param_group.html>`__.
