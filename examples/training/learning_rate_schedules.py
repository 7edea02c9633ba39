r"""
Learning rate schedules: warm-up and decay
==========================================

.. index::
   ! single: the learning rate is stuck at zero
   ! single: the learning rate goes up again
   ! single: scheduler.step per batch or per epoch
   ! single: the loss jumps after resuming from a checkpoint

.. in-short::

   Call ``scheduler.step()`` after ``optimizer.step()``. Count the schedule in the calls of ``scheduler.step()``: with gradient
   accumulation, these are fewer than the batches.

   .. code-block:: python

      warm_up = LinearLR(optimizer, start_factor=0.01, total_iters=100)
      decay = CosineAnnealingLR(optimizer, T_max=900)
      scheduler = SequentialLR(optimizer, [warm_up, decay], milestones=[100])

   ``optimizer.param_groups[0]["lr"]`` is the rate that the next step uses. To resume, create optimizer *and* scheduler first,
   and then load both state dicts.
"""

# %%
# Warm up for 100 steps, then decay for 900
# -----------------------------------------
# The first steps start from random weights, so many recipes begin with a small rate. At the end, a large rate makes the weights
# jump around the minimum, so the rate decays. ``SequentialLR`` runs one scheduler after the other:

import copy

import torch
from torch import nn
from torch.nn.functional import mse_loss
from torch.optim import SGD
from torch.optim.lr_scheduler import (
    ConstantLR,
    CosineAnnealingLR,
    LambdaLR,
    LinearLR,
    OneCycleLR,
    ReduceLROnPlateau,
    SequentialLR,
)


def warmup_cosine(optimizer, warm=100, total=1000):
    warm_up = LinearLR(optimizer, start_factor=0.01, total_iters=warm)
    decay = CosineAnnealingLR(optimizer, T_max=total - warm)
    return SequentialLR(optimizer, [warm_up, decay], milestones=[warm])


# %%
# .. how-measured:: This code reads the rate just before each step.

import matplotlib.pyplot as plt


def make_optimizer():
    return SGD([torch.zeros(1, requires_grad=True)], lr=0.1)


def record_rates(make_scheduler, steps):
    optimizer = make_optimizer()
    scheduler = make_scheduler(optimizer)
    used = []
    for _ in range(steps):
        used.append(optimizer.param_groups[0]["lr"])  # what this step uses
        optimizer.step()
        scheduler.step()
    return used


def plot_rates(schedules):
    _, ax = plt.subplots(figsize=(7, 2.7), layout="constrained")
    for (name, used), style in zip(schedules.items(), ("-", "--"), strict=True):
        ax.plot(used, style, label=name)
    ax.set(xlabel="batch", ylabel="learning rate", ylim=(0, 0.105))
    ax.set_title("Two schedules with warm-up and decay")
    ax.legend()


# %%
# The rates of 1000 steps. ``OneCycleLR`` has warm-up and decay in one:


def one_cycle(optimizer):
    return OneCycleLR(optimizer, max_lr=0.1, total_steps=1000)


used = record_rates(warmup_cosine, 1000)

# figure: Two curves of the learning rate over 1000 batches. The first rises in a straight line to 0.1 within 100 batches and
#   falls along a cosine to zero. OneCycleLR begins at 0.004, rises along a cosine to 0.1 at batch 300 and falls to zero.
plot_rates({"SequentialLR": used, "OneCycleLR": record_rates(one_cycle, 1000)})

# sphinx_gallery_start_ignore
import math
import warnings

_cosine, _cycle = used, record_rates(one_cycle, 1000)
for _step, _used in enumerate(_cosine):
    _by_hand = (
        0.1 * (0.01 + 0.99 * _step / 100)
        if _step < 100
        else 0.1 * (1 + math.cos(math.pi * (_step - 100) / 900)) / 2
    )
    assert math.isclose(_used, _by_hand, abs_tol=1e-9)
assert _cycle.index(max(_cycle)) in (298, 299, 300) and abs(_cycle[0] - 0.1 / 25) < 1e-9
assert _cycle[-1] < 1e-5 and max(_cycle) == max(_cosine) == 0.1
_w = torch.zeros(1, dtype=torch.float64, requires_grad=True)
_w.grad = torch.ones_like(_w)
_optimizer = SGD([_w], lr=0.1)
_scheduler = warmup_cosine(_optimizer)
for _rate in _cosine[:300]:
    _before = _w.item()
    _optimizer.step()
    _scheduler.step()
    assert abs(_before - _w.item() - _rate) < 1e-12  # the step does use this rate
# sphinx_gallery_end_ignore

# %%
# **Call** ``scheduler.step()`` **once after each** ``optimizer.step()``. This loop trains one net on noisy data, twice:

torch.manual_seed(0)
x = torch.randn(1000, 10)
y = x[:, :1].sin() + x[:, 1:2] * x[:, 2:3] + 0.5 * torch.randn(1000, 1)


def train(make_scheduler):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(10, 64), nn.Tanh(), nn.Linear(64, 1))
    optimizer = SGD(model.parameters(), lr=0.1)
    scheduler = make_scheduler(optimizer)
    for _ in range(1000):
        batch = torch.randint(800, (8,))
        loss = mse_loss(model(x[batch]), y[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
    with torch.no_grad():
        return mse_loss(model(x[800:]), y[800:]).item()


def constant(optimizer):
    return ConstantLR(optimizer, factor=1.0)


print(f"constant rate:      loss on new data {train(constant):.2f}")
print(f"warm-up and decay:  loss on new data {train(warmup_cosine):.2f}")

# sphinx_gallery_start_ignore
assert train(constant) > train(warmup_cosine) + 0.05
assert set(record_rates(constant, 20)) == {0.1}
# sphinx_gallery_end_ignore

# %%
# The scheduler writes the rate into ``optimizer.param_groups[i]["lr"]``, and ``optimizer.step()`` reads it there. After
# ``scheduler.step()``, it is the rate of the *next* step, so log it before.

# %%
# ReduceLROnPlateau: when a metric stops improving
# ------------------------------------------------
# Give it the metric after each validation: ``scheduler.step(loss)``. When the metric has not improved for more than
# ``patience`` calls in a row, the rate is multiplied by ``factor``.
#
# .. how-measured:: The plot of the rate and the loss.


def plot_rate_and_loss(rates, losses):
    _, ax = plt.subplots(figsize=(7, 2.5), layout="constrained")
    ax.step(range(24), rates, where="mid", label="learning rate")
    ax.plot(losses, ".--", label="validation loss")
    ax.set(xlabel="epoch", yscale="log")
    ax.set_title("The rate falls when the loss has stood still for 4 epochs")
    ax.legend(loc="lower left")


# %%
# This made-up validation loss falls to a level that depends on the rate:

optimizer = make_optimizer()
scheduler = ReduceLROnPlateau(optimizer, factor=0.1, patience=3)
loss, history = 1.0, []
for _ in range(24):
    rate = optimizer.param_groups[0]["lr"]
    optimizer.step()  # stands for one epoch of training
    loss = max(0.6 * loss, rate**0.5)
    history.append((rate, loss))
    scheduler.step(loss)

rates, losses = zip(*history, strict=True)

# figure: Two curves over 24 epochs, on a logarithmic axis. The validation loss falls and stays at one level. Four epochs
#   later the learning rate falls to a tenth, from 0.1 to 0.01. The loss falls again, stays, and the rate falls to 0.001, and
#   so on.
plot_rate_and_loss(rates, losses)

# sphinx_gallery_start_ignore
_drops = [i for i in range(1, 24) if rates[i] != rates[i - 1]]
assert len(_drops) >= 3 and math.isclose(rates[_drops[0]], 0.01)
for _drop in _drops:
    _best = min(losses[: _drop - 4])
    assert all(loss > _best * (1 - 1e-4) for loss in losses[_drop - 4 : _drop])
_raised = []
try:
    scheduler.step()
except TypeError as error:
    _raised.append("missing 1 required positional argument: 'metrics'" in str(error))
assert _raised == [True]
_fell = {}
for _mode in ("min", "max"):
    _optimizer = make_optimizer()
    _scheduler = ReduceLROnPlateau(_optimizer, mode=_mode, patience=3)
    for _accuracy in range(60, 70):
        _optimizer.step()
        _scheduler.step(_accuracy / 100)
    _fell[_mode] = _optimizer.param_groups[0]["lr"] < 0.1
assert _fell == {"min": True, "max": False}
for _loss, _options, _stays in (
    (-1.0, {}, True),
    (-1.0, {"threshold_mode": "abs"}, False),
    (1.0, {}, False),
    (0.0, {}, False),
):
    _optimizer = make_optimizer()
    _scheduler = ReduceLROnPlateau(_optimizer, patience=3, **_options)
    for _ in range(30):
        _optimizer.step()
        _scheduler.step(_loss)
    assert (_optimizer.param_groups[0]["lr"] == 0.1) == _stays
# sphinx_gallery_end_ignore

# %%
# For an accuracy, say ``mode="max"``. With the default ``"min"`` the rate falls although the accuracy rises. For a loss that
# can be negative, such as a negative log-likelihood, say ``threshold_mode="abs"``: with the default, a loss that stays at -1
# counts as better in each epoch.

# %%
# Resume from a checkpoint
# ------------------------
# Save both: the optimizer has the rate, and the scheduler its position in the schedule. When you resume, the order counts,
# because many schedulers write their first rate into the optimizer when you create them. This training stops after 5 of 10
# steps:


def make():
    optimizer = make_optimizer()
    return optimizer, warmup_cosine(optimizer, warm=3, total=10)


def go_on(optimizer, scheduler, steps):
    used = []
    for _ in range(steps):
        used.append(round(optimizer.param_groups[0]["lr"], 4))
        optimizer.step()
        scheduler.step()
    return used


optimizer, scheduler = make()
go_on(optimizer, scheduler, 5)
both = {"optimizer": optimizer, "scheduler": scheduler}
saved = {name: part.state_dict() for name, part in both.items()}
saved = copy.deepcopy(saved)  # as torch.save and torch.load do
resumed = {"never stopped": go_on(optimizer, scheduler, 3)}

# %%
# Create both, then load both. Two wrong ways follow:

optimizer, scheduler = make()
optimizer.load_state_dict(saved["optimizer"])
scheduler.load_state_dict(saved["scheduler"])
resumed["create both, then load both"] = go_on(optimizer, scheduler, 3)

optimizer, scheduler = make()
optimizer.load_state_dict(saved["optimizer"])
resumed["scheduler not loaded"] = go_on(optimizer, scheduler, 3)

optimizer = make_optimizer()
optimizer.load_state_dict(saved["optimizer"])
scheduler = warmup_cosine(optimizer, warm=3, total=10)
scheduler.load_state_dict(saved["scheduler"])
resumed["scheduler created after loading"] = go_on(optimizer, scheduler, 3)

for name, used in resumed.items():
    print(f"{name:<32} rates {used}")

# sphinx_gallery_start_ignore
import io

_right = resumed["never stopped"]
assert resumed["create both, then load both"] == _right
assert max(resumed["scheduler not loaded"]) > 5 * 0.1
assert max(resumed["scheduler created after loading"]) < 0.2 * min(_right)
assert 50 < max(resumed["scheduler not loaded"]) / 0.1 < 55
_kinds = {
    "one cycle": lambda o: OneCycleLR(o, 0.1, total_steps=10),
    "cosine": lambda o: CosineAnnealingLR(o, 10),
    "plateau": lambda o: ReduceLROnPlateau(o, patience=0),
}
for _name, _kind in _kinds.items():
    _metric = [1.0] if _name == "plateau" else []
    for _first in ("optimizer", "scheduler"):
        _optimizer = make_optimizer()
        _scheduler = _kind(_optimizer)
        _paths = []
        for _part in range(2):
            if _part:
                _file = io.BytesIO()
                _both = {"optimizer": _optimizer, "scheduler": _scheduler}
                torch.save({k: v.state_dict() for k, v in _both.items()}, _file)
                _file.seek(0)
            for _branch in range(2 if _part else 1):
                if _branch:
                    _optimizer = make_optimizer()
                    _scheduler = _kind(_optimizer)
                    _both = {"optimizer": _optimizer, "scheduler": _scheduler}
                    for _key in sorted(_both, reverse=_first == "scheduler"):
                        _file.seek(0)
                        _both[_key].load_state_dict(torch.load(_file)[_key])
                _path = []
                for _ in range(4):
                    _path.append(_optimizer.param_groups[0]["lr"])
                    _optimizer.step()
                    _scheduler.step(*_metric)
                _paths.append(_path)
        assert _paths[1] == _paths[2] != _paths[0], _name
_optimizer = make_optimizer()
_scheduler = warmup_cosine(_optimizer, warm=3, total=20)  # longer
_optimizer.load_state_dict(saved["optimizer"])
_scheduler.load_state_dict(saved["scheduler"])
_rates = go_on(_optimizer, _scheduler, 15)
assert _rates[:3] == _right and _rates[5] == min(_rates) == 0 and _rates[12] == 0.1
_optimizer = SGD([torch.zeros(1, requires_grad=True)], lr=0.01)  # a new rate
_scheduler = warmup_cosine(_optimizer, warm=3, total=10)
_optimizer.load_state_dict(saved["optimizer"])
_scheduler.load_state_dict(saved["scheduler"])
assert go_on(_optimizer, _scheduler, 3) == _right
_file = io.BytesIO()
torch.save(saved, _file)
_file.seek(0)
assert torch.load(_file)["scheduler"] == saved["scheduler"]
# sphinx_gallery_end_ignore

# %%
# Neither wrong way raises an error. A scheduler that is not loaded warms up again from the rate in the checkpoint, to more than
# 50 times the highest rate. One that is created last writes its own first rate, and computes each later rate from that.
#
# Loading restores the old settings, too. A new ``lr=`` has no effect, and with ``total=20`` this cosine still goes up again
# after step 10.

# %%
# What people get wrong
# ---------------------
# **A schedule for epochs that is stepped per batch.** ``CosineAnnealingLR`` goes up again after ``T_max`` calls:
#
# .. how-measured:: The plot of two schedules.


def plot_two_cosines(per_batch, right):
    _, ax = plt.subplots(figsize=(7, 2.3), layout="constrained")
    ax.plot(per_batch, color="#c2410c", label="T_max=10: counted in epochs")
    ax.plot(right, "--", color="#2563eb", label="T_max=200: counted in batches")
    ax.set(xlabel="batch", ylabel="learning rate", ylim=(-0.005, 0.15))
    ax.set_title("scheduler.step() after each batch")
    ax.legend(loc="upper center", ncols=2)


# %%
# These are 10 epochs of 20 batches, with ``T_max=10`` and with ``T_max=200``:


def cosine(optimizer, T_max):
    return CosineAnnealingLR(optimizer, T_max=T_max)


per_batch = record_rates(lambda optimizer: cosine(optimizer, T_max=10), 200)
right = record_rates(lambda optimizer: cosine(optimizer, T_max=200), 200)

# figure: The learning rate over 200 batches. With T_max=200 it falls once along a cosine from 0.1 to zero. With T_max=10,
#   meant for epochs and stepped after each batch, it swings between 0.1 and zero ten times.
plot_two_cosines(per_batch, right)

# sphinx_gallery_start_ignore
assert abs(per_batch[10]) < 1e-9 and abs(per_batch[20] - 0.1) < 1e-9
assert sum(abs(rate) < 1e-9 for rate in per_batch) == 10
assert all(right[i] > right[i + 1] for i in range(199))
# sphinx_gallery_end_ignore

# %%
# If ``T_max`` counts batches, but you step once for each epoch, the rate hardly decays. ``OneCycleLR`` raises an error if it is
# stepped too often:

messages = []
try:
    record_rates(lambda optimizer: OneCycleLR(optimizer, 0.1, total_steps=10), 11)
except ValueError as error:
    messages.append(str(error))
    print("ValueError:", error)

# sphinx_gallery_start_ignore
assert messages == ["Tried to step 11 times. The specified number of total steps is 10"]
# sphinx_gallery_end_ignore

# %%
# **The scheduler before the optimizer.** The first rate is never used, and most schedulers :ref:`warn
# <sphx_glr_gallery_errors_scheduler_before_optimizer.py>`.
#
# **A loss in** ``step()``. Only ``ReduceLROnPlateau`` takes one. ``StepLR`` warns, and takes 0.73 for the number of the epoch.

# sphinx_gallery_start_ignore
from torch.optim.lr_scheduler import StepLR

_optimizer = make_optimizer()
_scheduler = StepLR(_optimizer, step_size=1, gamma=0.5)
_optimizer.step()
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    _scheduler.step(0.73)
assert len(caught) == 1
assert "epoch parameter in `scheduler.step()`" in str(caught[0].message)
assert _scheduler.get_last_lr() == [0.1] and _scheduler.last_epoch == 0.73
_used = []
for _first in (True, False):
    _optimizer = make_optimizer()
    _scheduler = StepLR(_optimizer, step_size=2, gamma=0.5)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(4):
            if _first:
                _scheduler.step()
            _used.append(_optimizer.param_groups[0]["lr"])
            _optimizer.step()
            if not _first:
                _scheduler.step()
    assert len(caught) == _first
    assert not _first or "Detected call of `lr_scheduler.step()`" in str(
        caught[0].message
    )
assert _used == [0.1, 0.05, 0.05, 0.025, 0.1, 0.1, 0.05, 0.05]
_warned = {}
for _make, _metric in (
    (one_cycle, []),
    (warmup_cosine, []),
    (lambda o: CosineAnnealingLR(o, 5), []),
    (lambda o: torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(o, 5), []),
    (ReduceLROnPlateau, [1.0]),
):
    _scheduler = _make(make_optimizer())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        _scheduler.step(*_metric)
    _warned[type(_scheduler).__name__] = len(caught)
assert list(_warned.values()) == [1, 1, 1, 0, 0], _warned
# sphinx_gallery_end_ignore

# %%
# **The rate of the optimizer with** ``OneCycleLR``. It is ignored: by default the schedule begins at ``max_lr / 25``. It also
# sets the momentum of SGD, even if that was 0, and the first beta of Adam. Turn that off with ``cycle_momentum=False``:

optimizer = make_optimizer()
group = optimizer.param_groups[0]
print(f"before: lr {group['lr']:.2f}, momentum {group['momentum']}")
OneCycleLR(optimizer, max_lr=0.5, total_steps=1000)
print(f"after:  lr {group['lr']:.2f}, momentum {group['momentum']}")

# sphinx_gallery_start_ignore
assert abs(group["lr"] - 0.5 / 25) < 1e-9 and group["momentum"] == 0.95
_optimizer = make_optimizer()
OneCycleLR(_optimizer, max_lr=0.5, total_steps=1000, cycle_momentum=False)
assert _optimizer.param_groups[0]["momentum"] == 0
_optimizer = torch.optim.Adam([torch.zeros(1, requires_grad=True)])
OneCycleLR(_optimizer, max_lr=0.5, total_steps=1000)
assert _optimizer.param_groups[0]["betas"] == (0.95, 0.999)
# sphinx_gallery_end_ignore

# %%
# Exercise
# --------
# Write a schedule as one function of the step, for ``LambdaLR``: it rises in a straight line from a thousandth within 100
# steps, and falls in a straight line to 0 at step 1000. What does the function return at step 0, 100 and 1000?
#
# .. solution::
#
# ``LambdaLR`` multiplies the first rate of the optimizer by what your function returns: 0.001, 1 and 0. To resume, you need the
# same function: the state dict leaves it out.


def factor(step, warm=100, total=1000):
    if step < warm:
        return 0.001 + 0.999 * step / warm
    return max(0.0, (total - step) / (total - warm))


used = record_rates(lambda optimizer: LambdaLR(optimizer, factor), 1001)
print([f"{used[step]:.4f}" for step in (0, 50, 100, 550, 1000)])

# sphinx_gallery_start_ignore
assert factor(0) == 0.001 and factor(100) == 1 and factor(1000) == 0
assert all(math.isclose(used[s], 0.1 * factor(s)) for s in range(1001))
_state = LambdaLR(make_optimizer(), factor).state_dict()
assert _state["lr_lambdas"] == [None]
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_training_optimizers.py`, what the step does with the rate.
# - :ref:`sphx_glr_gallery_training_reproducibility.py`, what else belongs into a checkpoint.
# - In PyTorch's reference: `how to adjust the learning rate
#   <https://docs.pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate>`__, `SequentialLR
#   <https://docs.pytorch.org/docs/stable/generated/torch.optim.lr_scheduler.SequentialLR.html>`__ and `OneCycleLR
#   <https://docs.pytorch.org/docs/stable/generated/torch.optim.lr_scheduler.OneCycleLR.html>`__.
