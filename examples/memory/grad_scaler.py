r"""
GradScaler in a training loop
=============================

.. index::
   ! single: Gradient overflow. Skipping step, loss scaler 0 reducing loss scale to
   single: loss scaling for float16 gradients
   single: GradScaler with gradient accumulation, clipping and a learning rate scheduler
   single: GradScaler with two optimizers
   ! single: the scale of GradScaler becomes 0

.. in-short::

   ``GradScaler`` keeps small gradients from becoming 0 in float16:

   .. code-block:: python

      scaler.scale(loss).backward()
      scaler.step(optimizer)
      scaler.update()

   These lines multiply the loss by a scale and divide the gradients by it. If a gradient is infinite or NaN, the step is
   skipped and the scale is halved. Some skipped steps are normal. If the scale falls below 1, gradients are infinite or NaN
   even without it: look for the cause in data, forward pass and backward. bfloat16 is used without a scaler.
"""

# %%
# The loop
# --------
# float16 ends at 65,504, and numbers smaller than about 3e-8 become 0 in it. So the loss is multiplied before ``backward()``,
# and the gradients are divided after it. One ``Linear`` layer whose gradients are 1:

import torch
import torch.nn.functional as F
from torch import nn

model = nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu")  # "cuda" on a GPU

for step in range(3):
    before = model.weight.detach().clone()
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.float16):
        loss = model(torch.ones(1, 2)).sum()
    scaler.scale(loss).backward()
    scaler.step(optimizer)  # divides the gradients; skips the step if one is not finite
    scaler.update()  # halves the scale after a skipped step
    skipped, gradient = torch.equal(before, model.weight), model.weight.grad.tolist()
    print(f"skipped: {skipped}   gradient: {gradient}   scale: {scaler.get_scale()}")

    # sphinx_gallery_start_ignore
    assert torch.equal(before, model.weight) == (step == 0)
    assert model.weight.grad.isinf().all() == (step == 0)
assert torch.allclose(model.weight.grad, torch.ones(1, 2))
assert scaler.get_scale() == 32768
# sphinx_gallery_end_ignore

# %%
# In the first step a gradient of 1, times 65,536, is infinite, and the weights stay as they were. From the second step on, the
# gradient is 1 after the division.

# %%
# Skipped steps, and a scale that goes to 0
# -----------------------------------------
# Your log says that steps are skipped, or the scale is ``7e-15`` and nothing is learned. Below are two runs of one small
# network. In the second, each batch from step 20 on has a NaN.
#
# .. how-measured:: This code draws the scale.

import matplotlib.pyplot as plt


def plot_scales(healthy, sick):
    _, ax = plt.subplots(figsize=(7, 2.2), layout="constrained")
    ax.step(range(60), sick, "--", color="#c2410c", label="a NaN in each batch from 20")
    ax.step(range(60), healthy, color="#2563eb", label="healthy")
    ax.axhline(1, color="#64748b", linestyle=":")
    ax.set_yscale("log", base=2)
    ax.set_yticks([2.0**-30, 2.0**-15, 1, 2.0**15])
    ax.set(xlabel="step", ylabel="scale")
    ax.set_title("Healthy: down, and up again. Sick: down from step 20 on")
    ax.legend(loc="lower left")


# %%
# The training loop notes the scale of each step, and which steps were skipped:


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1))


def data(size=64):
    x = torch.randn(size, 8)
    return x, 10 * x.sum(1, keepdim=True)


def train(bad_from, scaler=None, steps=60):
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    scaler = scaler or torch.amp.GradScaler("cpu", growth_interval=10)
    scales, skipped = [], []
    for step in range(steps):
        x, y = data()
        if step >= bad_from:
            x[0, 0] = float("nan")
        before = model[0].weight.detach().clone()
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.float16):
            loss = F.mse_loss(model(x), y)
        scales.append(scaler.get_scale())
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        if torch.equal(before, model[0].weight):
            skipped.append(step)
    return scales, skipped


# figure: The scale over 60 steps, on a logarithmic axis. In both runs it falls from 65,536 to a few thousand in the first
#   steps. The scale of the healthy run then doubles after ten good steps, with a few halvings. In the other run the scale is
#   halved in each step from 20 on, and ends far below 1.
(healthy, skips), (sick, sick_skips) = train(bad_from=60), train(bad_from=20)
plot_scales(healthy, sick)

# sphinx_gallery_start_ignore
assert skips[:4] == [0, 1, 2, 3] and 5 <= len(skips) <= 10
assert any(healthy[step] == 2 * healthy[step - 1] for step in skips if step)
assert healthy[:5] == [2.0**power for power in (16, 15, 14, 13, 12)]
assert 256 <= min(healthy) <= 4096 and max(healthy[20:]) >= 4 * min(healthy)
assert sick_skips[-40:] == list(range(20, 60)) and sick[-1] < 1e-6
assert sick[:20] == healthy[:20]
assert all(sick[step + 1] == sick[step] / 2 for step in range(20, 59))
# sphinx_gallery_end_ignore

# %%
# The blue run is healthy. 65,536 is too large for it, so the first steps are skipped until the gradients fit into float16.
# After ``growth_interval`` good steps in a row (by default 2,000, in this loop 10) the scale is doubled, which now and then
# costs a step.

# %%
# Why a scale
# -----------
# A factor on the loss makes each gradient larger by the same factor. If it is too large, gradients become infinite.
#
# .. how-measured:: For each factor, this code counts the gradients of five layers that come out as 0, infinite or NaN.


def measure_lost_gradients(kind, scale):
    torch.manual_seed(0)
    blocks = [nn.Sequential(nn.Linear(64, 64), nn.Tanh()) for _ in range(4)]
    net, batch = nn.Sequential(*blocks, nn.Linear(64, 1)), torch.randn(256, 64)
    with torch.autocast("cpu", dtype=kind):
        loss = F.mse_loss(net(batch), torch.zeros(256, 1)) / 1000
    (loss * scale).backward()
    gradient = torch.cat([weight.grad.flatten() for weight in net.parameters()])
    return 100 * ((gradient == 0) | ~gradient.isfinite()).float().mean().item()


def plot_lost_gradients(shares):
    _, ax = plt.subplots(figsize=(7, 2.6), layout="constrained")
    ax.plot(exponents, shares[torch.float16], "s-", color="#c2410c", label="float16")
    ax.plot(exponents, shares[torch.bfloat16], "o--", color="#2563eb", label="bfloat16")
    ax.set(xlabel="power of 2 that multiplies the loss", ylabel="% of gradients lost")
    ax.set_title("Without a scale, float16 loses the small gradients")
    ax.legend()


# %%
# The share of gradients that are lost, for factors from 1 to 2 to the 44:

# figure: The share of lost gradients over the factor, from 2 to the 0 to 2 to the 44. For float16 it starts near 40
#   percent, is close to zero between 2 to the 4 and 2 to the 32, and 100 percent from 2 to the 40 on. For bfloat16 it
#   is zero everywhere.
exponents = range(0, 45, 4)
shares = {
    kind: [measure_lost_gradients(kind, 2.0**exponent) for exponent in exponents]
    for kind in (torch.float16, torch.bfloat16)
}
plot_lost_gradients(shares)
print(
    f"float16 without a scale loses {shares[torch.float16][0]:.0f} % of the gradients"
)

# sphinx_gallery_start_ignore
assert 30 < shares[torch.float16][0] < 55 and max(shares[torch.bfloat16]) < 0.1
assert max(shares[torch.float16][2:9]) < 1 and shares[torch.float16][1] < 5
assert all(share == 100 for share in shares[torch.float16][10:])
# sphinx_gallery_end_ignore

# %%
# From :math:`2^8` to :math:`2^{32}` less than 1 % of the gradients is lost. So a rough scale is enough.

# %%
# Accumulation, clipping, schedule: the whole loop
# ------------------------------------------------
# Each call has one place:

torch.manual_seed(0)
model = network()
optimizer = torch.optim.AdamW(model.parameters(), lr=0.05)
scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.1, total_iters=60)
scaler = torch.amp.GradScaler("cpu")
batches = [data(size=16) for _ in range(4)]
# sphinx_gallery_start_ignore
_steps_taken = []
optimizer.register_step_post_hook(lambda *_: _steps_taken.append(1))
# sphinx_gallery_end_ignore

for _ in range(60):
    optimizer.zero_grad()
    for x, y in batches:  # accumulation: one step for four equal batches
        with torch.autocast("cpu", dtype=torch.float16):
            loss = F.mse_loss(model(x), y) / len(batches)
        scaler.scale(loss).backward()
    scaler.unscale_(optimizer)  # once, before you read or change gradients
    nn.utils.clip_grad_norm_(model.parameters(), max_norm=100.0)
    scale = scaler.get_scale()
    scaler.step(optimizer)
    scaler.update()
    if scaler.get_scale() >= scale:  # the step was not skipped
        scheduler.step()

print("steps of the scheduler:", scheduler.last_epoch, "  scale:", scaler.get_scale())
print(f"loss of the last batch: {loss.item() * len(batches):.2f}")

# sphinx_gallery_start_ignore
assert len(_steps_taken) == scheduler.last_epoch < 60
_scaler = torch.amp.GradScaler("cpu")
optimizer.zero_grad()
_scaler.scale(model(batches[0][0]).sum() * float("inf")).backward()
_scaler.unscale_(optimizer)
nn.utils.clip_grad_norm_(model.parameters(), max_norm=100.0)
_before = model[0].weight.detach().clone()
_scaler.step(optimizer)
assert torch.equal(_before, model[0].weight)
_off = torch.amp.GradScaler("cpu", enabled=False)
assert _off.scale(loss) is loss and _off.get_scale() == 1
model[0].weight.grad = torch.full_like(model[0].weight, float("inf"))
_off.unscale_(optimizer)
assert model[0].weight.grad.isinf().all()
_off.step(optimizer)
_off.update()
assert len(_steps_taken) == scheduler.last_epoch + 1


import warnings


def _warnings_if_skipped(bad):
    model, scaler = nn.Linear(2, 1), torch.amp.GradScaler("cpu")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.1, total_iters=9)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for step in range(3):
            optimizer.zero_grad()
            loss = model(torch.ones(1, 2)).sum() * (torch.inf if step == bad else 1)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            scheduler.step()
    assert scaler.get_scale() == 32768 and scheduler.last_epoch == 3
    return len(caught)


assert _warnings_if_skipped(0) == 1 and _warnings_if_skipped(1) == 0
assert 65536 / 2 ** (60 - scheduler.last_epoch) == scaler.get_scale()
assert loss.item() * len(batches) < 40 < 10 * data()[1].square().mean()
# sphinx_gallery_end_ignore

# %%
# - All pieces of one step need the same scale. So ``unscale_``, ``step`` and ``update`` come after the last of them.
# - ``clip_grad_norm_`` :ref:`needs divided gradients <sphx_glr_gallery_training_gradient_clipping.py>`. It does not hide the
#   infinity: ``unscale_`` has seen it already, and the step is skipped.
# - A scheduler that steps after a skipped step changes the learning rate too early. If that was the first step, it :ref:`warns
#   <sphx_glr_gallery_errors_scheduler_before_optimizer.py>`.
# - On a GPU, ``get_scale()`` waits for the device, as its documentation says.
# - ``GradScaler("cuda", enabled=dtype == torch.float16)`` lets one loop serve bfloat16 too: a scaler that is off only calls
#   ``optimizer.step()``.

# %%
# What people get wrong
# ---------------------
# **Waiting while the scale falls.** Halving helps if the *scale* made the infinity. A NaN in the data, or a number above 65,504
# in the forward pass, is there at any scale. Test the loss and the scale in each step, and stop:


def check(loss, scaler):
    if not loss.isfinite():
        raise ArithmeticError(f"loss is {loss.item()}: look at data and forward")
    if scaler.get_scale() < 1:
        raise ArithmeticError("scale below 1: gradients are not finite without it")


loss = nn.Linear(2, 1)(torch.full((1, 2), float("nan"))).sum()
try:
    check(loss, scaler)
except ArithmeticError as error:
    print("ArithmeticError:", error)

# sphinx_gallery_start_ignore
_raised = []
for _value, _start in ((float("nan"), 65536.0), (1.0, 0.5)):
    try:
        check(torch.tensor(_value), torch.amp.GradScaler("cpu", init_scale=_start))
    except ArithmeticError as error:
        _raised.append(str(error))
assert _raised == [
    "loss is nan: look at data and forward",
    "scale below 1: gradients are not finite without it",
]
check(torch.tensor(1.0), torch.amp.GradScaler("cpu"))


def _steps_until(reached):
    model, scaler = nn.Linear(2, 1), torch.amp.GradScaler("cpu")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    count = 0
    while not reached(scaler.get_scale()):
        optimizer.zero_grad()
        scaler.scale(model(torch.ones(1, 2)).sum() * float("nan")).backward()
        scaler.step(optimizer)
        scaler.update()
        count += 1
    return count


assert _steps_until(lambda scale: scale < 1) == 17
assert _steps_until(lambda scale: scale == 2**-128) == 144
assert _steps_until(lambda scale: scale == 0) == 166
# sphinx_gallery_end_ignore

# %%
# Waiting also does harm. The scaler looks for infinities *before* it divides. After 144 skipped steps in a row, the scale is
# :math:`2^{-128}`, and the division itself overflows. Then one good batch ruins the weights:

model = nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu")

for step in range(145):
    x = torch.ones(1, 2) if step == 144 else torch.full((1, 2), float("nan"))
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.float16):
        loss = model(x).sum()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
print(f"loss {loss.item():.2f}, then weight {model.weight.tolist()}")

# sphinx_gallery_start_ignore
assert loss.isfinite() and model.weight.isnan().all()
for _make in (torch.optim.Adam, torch.optim.AdamW, torch.optim.RMSprop):
    _model = nn.Linear(2, 1)
    _optimizer = _make(_model.parameters())
    _scaler = torch.amp.GradScaler("cpu", init_scale=2.0**-128)
    with torch.autocast("cpu", dtype=torch.float16):
        loss = _model(torch.ones(1, 2)).sum()
    _scaler.scale(loss).backward()
    _scaler.step(_optimizer)
    assert not _model.weight.isfinite().any()
_scaler.update(65536.0)
assert _scaler.get_scale() == 65536
# sphinx_gallery_end_ignore

# %%
# What to do:
#
# - The loss is NaN or infinite: :ref:`find the operation <sphx_glr_gallery_debugging_finding_nans.py>`. Typical are a NaN in
#   the data, float16 overflow in attention scores, and a model that was trained in bfloat16 and has larger numbers than
#   float16.
# - The loss is finite, and the scale still falls below 1: :ref:`backward makes the NaN
#   <sphx_glr_gallery_errors_nan_in_backward.py>`, for example at the root of 0, or the gradients are that large: take the mean
#   and not the sum over the batch.
# - Compute the part that overflows :ref:`in float32 <sphx_glr_gallery_memory_precision.py>`, or take bfloat16. Then make a new
#   scaler, or call ``scaler.update(65536.0)``.
#
# **update() for each optimizer.** Two models, two optimizers, one scaler. If the first has an infinite gradient, ``update()``
# halves the scale. The gradients of the second are then divided by the wrong scale:

a, b = nn.Linear(1, 1, bias=False), nn.Linear(1, 1, bias=False)
optimizer_a = torch.optim.SGD(a.parameters(), lr=0.1)
optimizer_b = torch.optim.SGD(b.parameters(), lr=0.1)
scaler, before = torch.amp.GradScaler("cpu"), b.weight.item()

loss = a(torch.full((1, 1), float("inf"))).sum() + b(torch.ones(1, 1)).sum()
scaler.scale(loss).backward()
scaler.step(optimizer_a)  # skipped
scaler.update()  # wrong: update once, after both steps
scaler.step(optimizer_b)
print(f"the gradient of b is 1, and b moves by {before - b.weight.item():.2f}")


# sphinx_gallery_start_ignore
def _moved(update_between):
    a, b = nn.Linear(1, 1, bias=False), nn.Linear(1, 1, bias=False)
    optimizers = [torch.optim.SGD(m.parameters(), lr=0.1) for m in (a, b)]
    scaler, before = torch.amp.GradScaler("cpu"), b.weight.item()
    x = torch.ones(1, 1)
    scaler.scale(a(x * float("inf")).sum() + b(x).sum()).backward()
    for optimizer in optimizers:
        scaler.step(optimizer)
        if update_between:
            scaler.update()
    if not update_between:
        scaler.update()
    assert scaler.get_scale() == 32768
    return before - b.weight.item()


assert abs(before - b.weight.item() - 0.2) < 1e-5
assert abs(_moved(False) - 0.1) < 1e-5 and abs(_moved(True) - 0.2) < 1e-5
# sphinx_gallery_end_ignore

# %%
# The right number is 0.1. With one ``update()`` at the end, ``b`` moves by 0.1, although the step of ``a`` is skipped.
#
# **A gradient penalty from scaled gradients.** A penalty, as in some GANs, uses the norm of a gradient. If the output was
# scaled, ``torch.autograd.grad`` returns scaled gradients. Divide them before you take their norm:

critic, x = nn.Linear(4, 1), torch.randn(8, 4, requires_grad=True)
nn.init.ones_(critic.weight)  # each gradient is (1, 1, 1, 1), and has the norm 2
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
scaled = scaler.scale(critic(x).sum())
(slope,) = torch.autograd.grad(scaled, x, create_graph=True)
for name, part in {"as it is": slope, "divided": slope / scaler.get_scale()}.items():
    print(f"penalty, {name}: {(part.norm(dim=1) - 1).square().mean():.2f}")

# sphinx_gallery_start_ignore
(_right,) = torch.autograd.grad(critic(x).sum(), x)
assert torch.allclose(slope / 1024, _right) and slope.requires_grad
_penalty = ((slope / 1024).norm(dim=1) - 1).square().mean()
scaler.scale(_penalty).backward()
assert torch.allclose(_penalty, torch.ones(())) and critic.weight.grad.norm() > 1
# sphinx_gallery_end_ignore

# %%
# Add the penalty to the loss, then ``scaler.scale(loss).backward()`` as always.
#
# **Resuming without the scaler.** A new scaler starts at 65,536 again, and the first steps may be skipped. Save
# ``scaler.state_dict()`` after ``update()``, together with model and optimizer:

scaler = torch.amp.GradScaler("cpu", growth_interval=10)
train(bad_from=60, scaler=scaler, steps=20)
saved = scaler.state_dict()
print(saved)

resumed = torch.amp.GradScaler("cpu")
resumed.load_state_dict(saved)

# sphinx_gallery_start_ignore
assert resumed.state_dict() == saved and saved["scale"] < 5000
assert set(saved) == {
    "scale",
    "growth_factor",
    "backoff_factor",
    "growth_interval",
    "_growth_tracker",
}
_off = torch.amp.GradScaler("cpu", enabled=False)
_raised = []
try:
    resumed.load_state_dict(_off.state_dict())
except RuntimeError as error:
    _raised.append(str(error))
assert _off.state_dict() == {} and len(_raised) == 1
assert "The source state dict is empty" in _raised[0]
with warnings.catch_warnings(record=True) as _caught:
    warnings.simplefilter("always")
    _cuda = torch.amp.GradScaler()
_texts = [str(w.message) for w in _caught]
assert _cuda.is_enabled() == torch.cuda.is_available()
assert (
    any("CUDA is not available.  Disabling" in t for t in _texts) != _cuda.is_enabled()
)
# sphinx_gallery_end_ignore

# %%
# Exercise
# --------
# A scaler doubles its scale after 100 good steps. In your data, one batch in 20 has a NaN. When does the scale fall below 1?
# And what if the infinity in one step of 20 comes from a *scale* that is too large?
#
# .. solution::
#
# Each bad batch halves the scale and resets the count of good steps to 0, so 100 are never reached. After 17 bad batches, in
# step 340, the scale is 0.5. Remove these batches, or skip them before ``backward()``. An infinity that the scale has made goes
# away after some halvings.

scaler = torch.amp.GradScaler("cpu", growth_interval=100)
w = nn.Parameter(torch.zeros(1))
optimizer = torch.optim.SGD([w], lr=0.1)

step = 0
while scaler.get_scale() >= 1:
    step += 1
    optimizer.zero_grad()
    loss = w.sum() * (float("nan") if step % 20 == 0 else 1.0)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
print(f"step {step}: scale {scaler.get_scale()}")

# sphinx_gallery_start_ignore
assert step == 340 and scaler.get_scale() == 0.5
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_errors_unscale_fp16.py`, and *No inf checks were recorded*.
# - :ref:`sphx_glr_gallery_differentiation_accumulation.py`, one step for several batches.
# - In PyTorch's reference: `GradScaler <https://docs.pytorch.org/docs/stable/amp.html#torch.amp.GradScaler>`__ and `Automatic
#   mixed precision examples <https://docs.pytorch.org/docs/stable/notes/amp_examples.html>`__, with gradient penalties.
