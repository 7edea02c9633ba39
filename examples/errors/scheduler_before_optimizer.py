r"""
Detected call of \`lr_scheduler.step()\` before \`optimizer.step()\`
====================================================================

.. index::
   ! single: lr_scheduler warning although optimizer.step() stands before scheduler.step()
   ! single: GradScaler and a learning rate scheduler, warning in the first step
   ! single: Seems like optimizer.step() has been overridden after learning rate scheduler initialization

.. in-short::

   ``scheduler.step()`` ran before the first step of the optimizer. Call it after ``optimizer.step()``. If it is there already,
   perhaps a ``GradScaler`` skipped the step, or the scheduler belongs to a different optimizer.

   .. code-block:: diff

      - scheduler.step()
        optimizer.step()
      + scheduler.step()

   **Not this:** one empty ``optimizer.step()`` before the loop. The warning is gone, and the first learning rate is still lost.
"""

# %%
# The code that raises it
# -----------------------

import torch
from torch import nn
from torch.optim.lr_scheduler import StepLR

# sphinx_gallery_start_ignore
# isort: split
import warnings

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    # sphinx_gallery_end_ignore
    torch.manual_seed(0)
    x, y = torch.rand(8, 3), torch.rand(8, 1)
    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.8)
    scheduler = StepLR(optimizer, step_size=1, gamma=0.5)
    before = []  # the learning rates

    for _ in range(5):
        scheduler.step()
        before.append(optimizer.param_groups[0]["lr"])
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
# sphinx_gallery_start_ignore
(message,) = (str(w.message) for w in caught)
print("UserWarning:", message)
assert message.startswith(
    "Detected call of `lr_scheduler.step()` before `optimizer.step()`. In PyTorch 1.1.0"
)
assert before == [0.4, 0.2, 0.1, 0.05, 0.025]
# sphinx_gallery_end_ignore

# %%
# Why
# ---
# The scheduler sets the first learning rate when you make it. Each ``step()`` sets the next one. A ``step()`` before the first
# update therefore skips the first value, and each later one comes an update too early:

import matplotlib.pyplot as plt

model = nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.8)
scheduler = StepLR(optimizer, step_size=1, gamma=0.5)
after = []

for _ in range(5):
    after.append(optimizer.param_groups[0]["lr"])
    loss = nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()

# figure: The learning rate of five updates. In the right order they are 0.8, 0.4, 0.2, 0.1 and 0.05. In the wrong order
#   0.8 is missing, and each later one comes an update too early.
fig, ax = plt.subplots(figsize=(7, 1.8), layout="constrained")
ax.plot(after, "o-", color="#047857", label="scheduler.step() last")
ax.plot(before, "x--", color="#c2410c", label="scheduler.step() first")
ax.set(xlabel="update", ylabel="learning rate", xticks=range(5))
ax.set_title("In the wrong order 0.8 is never used")
ax.legend()

# sphinx_gallery_start_ignore
assert after == [0.8, *before[:-1]]


def _fresh():
    optimizer = torch.optim.SGD(nn.Linear(3, 1).parameters(), lr=0.8)
    return optimizer, StepLR(optimizer, step_size=1, gamma=0.5)


def _warned(run):
    """How many warnings about the order a run gives with a new optimizer and its scheduler."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run(*_fresh())
    return sum(str(w.message) == message for w in caught)


# sphinx_gallery_end_ignore

# %%
# The fix
# -------
# **The order is wrong**: put ``scheduler.step()`` after ``optimizer.step()``, as above. A schedule in epochs steps after
# the loop over the batches. A warm-up such as ``epoch / 5`` then begins at 0: write ``(epoch + 1) / 5``. If a package begins
# at 0, one ``scheduler.step()`` before the loop is harmless.
#
# **A GradScaler skipped the step.** Its first scale is large, and ``float16`` gradients can become infinite. Then
# ``scaler.step`` skips ``optimizer.step()``, and ``update()`` halves the scale:

# sphinx_gallery_start_ignore
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    # sphinx_gallery_end_ignore
    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    scheduler = StepLR(optimizer, step_size=1, gamma=0.5)
    scaler = torch.amp.GradScaler("cpu")  # "cuda" on a GPU
    with torch.autocast("cpu", dtype=torch.float16):
        loss = nn.functional.mse_loss(model(x), 10 * y)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    scheduler.step()
# sphinx_gallery_start_ignore
print("UserWarning:", str(caught[0].message).partition(". ")[0])
assert [str(w.message) for w in caught] == [message]
assert scaler.get_scale() == 32768
# sphinx_gallery_end_ignore

# %%
# If the schedule counts updates, not epochs, step the scheduler only if the scale did not fall. ``accelerate`` does so with a
# scheduler that it prepared. Lightning's ``precision="bf16-mixed"`` skips no step.

optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
scheduler = StepLR(optimizer, step_size=1, gamma=0.5)
scaler = torch.amp.GradScaler("cpu")

for _ in range(6):
    with torch.autocast("cpu", dtype=torch.float16):
        loss = nn.functional.mse_loss(model(x), 10 * y)
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scale = scaler.get_scale()
    scaler.step(optimizer)
    scaler.update()
    if scaler.get_scale() >= scale:
        scheduler.step()
print("scale:", scaler.get_scale(), "  steps of the scheduler:", scheduler.last_epoch)

# sphinx_gallery_start_ignore
assert scaler.get_scale() < 65536 and 0 < scheduler.last_epoch < 6
assert scaler.get_scale() == 65536 / 2 ** (6 - scheduler.last_epoch)
_scaler = torch.amp.GradScaler("cpu", init_scale=2.0)
_pair = [torch.optim.SGD([nn.Parameter(torch.ones(1))], lr=0.8) for _ in range(2)]
_schedules = [StepLR(one, step_size=1, gamma=0.5) for one in _pair]
for _one, _its in zip(_pair, _schedules, strict=True):
    _one.register_step_post_hook(lambda *_, s=_its: s.step())
for _slopes in ((1.0, torch.inf), (1.0, 1.0)):  # the second one is skipped once
    for _one, _slope in zip(_pair, _slopes, strict=True):
        _one.zero_grad()
        _scaler.scale(_one.param_groups[0]["params"][0] * _slope).backward()
        _scaler.step(_one)
    _scaler.update()
assert [one.param_groups[0]["lr"] for one in _pair] == [0.2, 0.4]
# sphinx_gallery_end_ignore

# %%
# If several optimizers share the scaler, let each update call its schedule, unless the optimizer is ``fused``:
# ``optimizer.register_step_post_hook(lambda *_, s=scheduler: s.step())``.
#
# **Gradients are accumulated:** put ``scheduler.step()`` below ``optimizer.step()``, inside of the same ``if``. If it ran for
# each small batch before, count ``total_steps``, ``T_max`` or ``step_size`` in updates now. An optimizer that starts later, as
# of a discriminator, needs its scheduler in its own ``if``, too.
#
# **You resume** with ``for _ in range(epoch): scheduler.step()``. Instead, make the optimizer and the scheduler, then load the
# ``state_dict()`` of both. If the file has neither, keep the loop: its learning rates are right.
#
# **The optimizer has its own method**, as SAM's ``second_step()``. The learning rates are right. Without the warning:
# ``StepLR(optimizer.base_optimizer, ...)``.
#
# **DeepSpeed's** ``engine.step()`` also steps the scheduler that it was given: delete yours.
#
# **The optimizer was made anew** after the scheduler, which still changes the old one. Make the scheduler last. In a plain
# loop this prints ``True``:

print(scheduler.optimizer is optimizer)

# sphinx_gallery_start_ignore
assert scheduler.optimizer is optimizer


def _accumulated(optimizer, scheduler):
    scheduler.step()
    optimizer.step()


for _t_max in (8, 4):  # eight small batches, four updates
    _optimizer, _ = _fresh()
    _cosine = torch.optim.lr_scheduler.CosineAnnealingLR(_optimizer, T_max=_t_max)
    for _ in range(4):
        _optimizer.step()
        _cosine.step()
    assert (_optimizer.param_groups[0]["lr"] < 1e-6) == (_t_max == 4)


def _warm_up(factor, first):
    optimizer, rates = _fresh()[0], []
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, factor)
    for _ in range(5):
        with warnings.catch_warnings(action="ignore"):
            if first:
                scheduler.step()
            rates.append(optimizer.param_groups[0]["lr"])
            optimizer.step()
            if not first:
                scheduler.step()
    return rates


assert _warm_up(lambda epoch: epoch / 5, first=False)[0] == 0
assert _warm_up(lambda epoch: (epoch + 1) / 5, first=False) == _warm_up(
    lambda epoch: epoch / 5, first=True
)


def _made_anew(old, scheduler):
    optimizer = torch.optim.SGD(old.param_groups[0]["params"], lr=0.8)
    for _ in range(3):
        optimizer.step()
        scheduler.step()
    assert optimizer.param_groups[0]["lr"] == 0.8 and scheduler.optimizer is old


def _resumed_by_steps(optimizer, scheduler):
    for _ in range(3):
        scheduler.step()
    assert optimizer.param_groups[0]["lr"] == 0.1  # as after three epochs


def _resumed(optimizer, scheduler):
    old, its = _fresh()
    for _ in range(3):
        old.step()
        its.step()
    scheduler.load_state_dict(its.state_dict())
    assert optimizer.param_groups[0]["lr"] == 0.8
    optimizer.load_state_dict(old.state_dict())
    scheduler.step()
    assert optimizer.param_groups[0]["lr"] == 0.05


class _Sam(torch.optim.Optimizer):
    def __init__(self, parameters, lr):
        super().__init__(parameters, {"lr": lr})
        self.base_optimizer = torch.optim.SGD(self.param_groups, lr=lr)
        self.param_groups = self.base_optimizer.param_groups

    def second_step(self):
        self.base_optimizer.step()


def _sam(of_base, rates):
    optimizer = _Sam(nn.Linear(3, 1).parameters(), lr=0.8)
    base = optimizer.base_optimizer
    scheduler = StepLR(base if of_base else optimizer, step_size=1, gamma=0.5)
    for _ in range(3):
        rates.append(base.param_groups[0]["lr"])
        optimizer.second_step()
        scheduler.step()


def _epochs_with_a_skip(optimizer, scheduler):
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0)
    weight = optimizer.param_groups[0]["params"][0]
    for slope in (1.0, torch.inf):  # the last update of the epoch is skipped
        optimizer.zero_grad()
        scaler.scale((weight * slope).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
    scheduler.step()
    assert scaler.get_scale() == 1 and optimizer.param_groups[0]["lr"] == 0.4


assert _warned(_epochs_with_a_skip) == 0
for _of_base in (False, True):
    _rates = []
    assert _warned(lambda *_, b=_of_base, r=_rates: _sam(b, r)) == (not _of_base)
    assert _rates == [0.8, 0.4, 0.2]
assert [*map(_warned, (_accumulated, _made_anew, _resumed_by_steps))] == [1, 1, 1]
assert _warned(_resumed) == 0
# sphinx_gallery_end_ignore

# %%
# **A library replaced** ``optimizer.step`` after the scheduler was made, for example to count the steps:

import functools

# sphinx_gallery_start_ignore
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    # sphinx_gallery_end_ignore
    optimizer = torch.optim.SGD(model.parameters(), lr=0.8)
    scheduler = StepLR(optimizer, step_size=1, gamma=0.5)
    optimizer.step = functools.partial(optimizer.step)
    optimizer.step()
    scheduler.step()
# sphinx_gallery_start_ignore
print("UserWarning:", caught[0].message)
assert len(caught) == 1 and str(caught[0].message).startswith(
    "Seems like `optimizer.step()` has been overridden after learning rate scheduler "
    "initialization."
)
assert optimizer.param_groups[0]["lr"] == 0.4


# sphinx_gallery_end_ignore

# %%
# If the order is right, the learning rate changes as it should.
#
# What not to do
# --------------
# **Call optimizer.step() once before the loop.** It silences the warning, and the order is still wrong:

optimizer = torch.optim.SGD(model.parameters(), lr=0.8)
scheduler = StepLR(optimizer, step_size=1, gamma=0.5)
optimizer.zero_grad()
optimizer.step()
scheduler.step()
print("first learning rate of the loop:", optimizer.param_groups[0]["lr"])

# sphinx_gallery_start_ignore
assert optimizer.param_groups[0]["lr"] == 0.4

# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_memory_grad_scaler.py`: a scaler that skips a step, and the schedule that must not.
# - :ref:`sphx_glr_gallery_errors_unscale_fp16.py`: the messages of ``GradScaler``.
