r"""
Loss is nan, stopping training
==============================

.. index::
   ! single: loss becomes NaN after a few steps
   ! single: loss becomes inf during training
   ! single: cross_entropy returns NaN
   ! single: The total norm for gradients is non-finite, so it cannot be clipped

.. in-short::

   The data, a layer or the loss made an infinity or a NaN, and it reached the loss. Often the learning rate is too large, or
   the data has a NaN. The function below names the module.

   .. code-block:: diff

      - optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
      + optimizer = torch.optim.SGD(model.parameters(), lr=0.001)

   **Not this:** ``torch.nan_to_num(loss)``, or skipping the batch. Once the weights are NaN, the next loss is NaN again.
"""

# %%
# The code that raises it
# -----------------------
# PyTorch does not print this line. Many training scripts do, and stop:

import sys

import torch
from torch import nn
from torch.nn import functional

torch.manual_seed(0)

# sphinx_gallery_start_ignore
try:
    # sphinx_gallery_end_ignore
    x = torch.rand(64, 3) * 10
    y = x.sum(dim=1, keepdim=True)
    model = nn.Sequential(
        nn.Linear(3, 64), nn.LeakyReLU(), nn.Linear(64, 64), nn.Linear(64, 1)
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    log = []
    for _ in range(100):
        loss = functional.mse_loss(model(x), y)
        log.append(loss.item())
        if not loss.isfinite():
            sys.exit(f"Loss is {loss.item()}, stopping training")
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
# sphinx_gallery_start_ignore
except SystemExit as error:
    message = str(error)
    print(message)
assert message == "Loss is nan, stopping training" and len(log) < 8
# sphinx_gallery_end_ignore

# %%
# How to find the module
# ----------------------
# Call ``watch(model)`` once, before the loop. The first module whose output is not finite raises, with the largest number of
# its input, parameters and buffers:

from functools import partial


def check(name, module, inputs, output):
    if torch.is_tensor(output) and not output.isfinite().all():
        state = [*module.named_parameters(), *module.named_buffers()]
        parts = {"input": inputs[0], **dict(state)}
        largest = {part: f"{(1.0 * t).abs().max():.0e}" for part, t in parts.items()}
        raise ArithmeticError(f"module {name}, {module}: {largest}")


def watch(model):
    for name, module in model.named_modules():
        module.register_forward_hook(partial(check, name))


# sphinx_gallery_start_ignore
raised = []
try:
    # sphinx_gallery_end_ignore
    watch(model)
    model(x)
# sphinx_gallery_start_ignore
except ArithmeticError as error:
    raised.append(str(error))
    print("ArithmeticError:", error)


class Log(nn.Module):
    def forward(self, x):
        return x.log()


def _named(model, *inputs):
    watch(model)
    try:
        model(*inputs)
    except ArithmeticError as error:
        return str(error)


assert len(raised) == 1 and raised[0].startswith("module 2, Linear")
assert min(float(n) for n in raised[0].split("'")[3:8:4]) > 1e10
_nan = torch.tensor([[float("nan"), 1.0]])
_said = _named(nn.Sequential(nn.Linear(2, 2), nn.ReLU()), _nan)
assert _said.startswith("module 0, ") and "{'input': 'nan', 'weight': '" in _said
_said = _named(nn.Sequential(nn.ReLU(), Log(), nn.Linear(2, 2)), -torch.ones(1, 2))
assert _said == "module 1, Log(): {'input': '0e+00'}"
assert _named(nn.Sequential(nn.Linear(2, 2), nn.ReLU()), torch.ones(1, 2)) is None
# modules that return a tuple or a dict are passed over
assert _named(nn.LSTM(2, 2), _nan) is None
# one NaN batch stays in the running statistics
_norm = nn.BatchNorm1d(2)
_norm(torch.cat([_nan, _nan]))
_said = _named(_norm.eval(), torch.ones(1, 2))
assert "'input': '1e+00', 'weight': '1e+00'" in _said
assert "'running_mean': 'nan'" in _said
_norm.reset_running_stats()
assert _norm(torch.ones(1, 2)).isfinite().all()
# sphinx_gallery_end_ignore

# %%
# - ``nan`` or ``inf`` in the input of the first module: the data. See 1 below.
# - ``nan`` or ``inf`` in the input of a later module: a line of ``forward`` before it, or a module that ``check`` passes over,
#   because it returns a tuple or a dict, such as ``nn.LSTM``.
# - ``nan``, ``inf`` or huge numbers in a weight, as here: the last steps wrote them. See 2. If the loss was fine until then:
#   :ref:`sphx_glr_gallery_errors_nan_in_backward.py`.
# - ``nan`` in ``running_mean``: an earlier batch had a NaN. Call ``reset_running_stats()`` on that layer and train on.
# - Numbers of usual size: the module itself makes the NaN. See 3 to 6.
# - No error: print the output. If its numbers are huge, see 2. If they are of usual size, the loss makes the NaN: see 3 to 6.
#
# ``check`` expects an input without a keyword.
#
# Why
# ---
# Often infinity comes first, from a huge number or a division by 0. Then ``inf - inf``, ``0 * inf`` and
# ``inf / inf`` are NaN. Backward and one optimizer step bring the NaN to the weights.
#
# If the learning rate is too large, the loss grows before the NaN. Bad data comes without a warning:

import matplotlib.pyplot as plt

# figure: Two logs on a logarithmic axis. With a learning rate of 0.1 the loss grows from 200 to above 1e30 in three steps
#   and is NaN in the next. With a NaN in the batch of step 6, the loss falls until step 5 and is NaN at step 6.
model = nn.Sequential(nn.Linear(3, 64), nn.LeakyReLU(), nn.Linear(64, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
fine = []
for step in range(7):
    batch = x.clone()
    batch[0, 0] = float("nan") if step == 6 else 1.0
    loss = functional.mse_loss(model(batch), y)
    fine.append(loss.item())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

fig, ax = plt.subplots(figsize=(7, 2), layout="constrained")
for values, color, name in ((log, "#c2410c", "lr=0.1"), (fine, "#2563eb", "bad batch")):
    last = len(values) - 1
    ax.semilogy(values[:last], "o-", color=color, label=name)
    ax.annotate("NaN", (last, values[last - 1]), color=color, ha="center")
ax.set(
    xlabel="step", ylabel="loss", title="Grows before the NaN, or comes from nowhere"
)
ax.set_xlim(-0.3, 6.5)
ax.legend(loc="center right")

# sphinx_gallery_start_ignore
assert log[:-1] == sorted(log[:-1]) and log[-2] > 1e30
assert fine[5] < fine[0] and fine[6] != fine[6] and max(fine[:6]) < 300
assert all(p.isnan().all() for p in model.parameters())
# sphinx_gallery_end_ignore

# %%
# The fix
# -------
# Go through this list in order.
#
# **1. The data.** Are inputs and targets finite? A missing value of a table is NaN.

table = torch.tensor([[30.0, 1.0], [float("nan"), 0.0], [25.0, 1.0]])
finite = table.isfinite().all(dim=1)
print("rows with a NaN:", (~finite).nonzero().flatten().tolist())
table = table[finite]
assert table.isfinite().all()

# %%
# **2. The learning rate.** Divide it by 10 until the loss falls. Scale inputs and targets to about 1. Clip the gradients:

torch.manual_seed(0)
model = nn.Sequential(
    nn.Linear(3, 64), nn.LeakyReLU(), nn.Linear(64, 64), nn.Linear(64, 1)
)
optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
for _ in range(100):
    loss = functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 100.0, error_if_nonfinite=True)
    optimizer.step()
print(f"loss {loss.item():.2f}")

# sphinx_gallery_start_ignore
assert loss < 1
# sphinx_gallery_end_ignore

# %%
# With ``error_if_nonfinite=True`` the clipping raises before the optimizer writes a NaN into the weights:

# sphinx_gallery_start_ignore
raised = []
_before = [p.clone() for p in model.parameters()]
try:
    # sphinx_gallery_end_ignore
    x[0, 0] = float("nan")
    loss = functional.mse_loss(model(x), y)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 100.0, error_if_nonfinite=True)
# sphinx_gallery_start_ignore
except RuntimeError as error:
    raised.append(str(error))
    print("RuntimeError:", error)
assert len(raised) == 1 and raised[0].startswith(
    "The total norm of order 2.0 for gradients from `parameters` is non-finite, so it "
)
assert all(map(torch.equal, _before, model.parameters()))
# a GradScaler skips the step itself
_model, _said = nn.Linear(3, 1), []
_optimizer, _scaler = torch.optim.SGD(_model.parameters()), torch.amp.GradScaler("cpu")
with torch.autocast("cpu", dtype=torch.float16):
    loss = functional.mse_loss(_model(torch.ones(8, 3)), 10 * torch.ones(8, 1))
_scaler.scale(loss).backward()
_scaler.unscale_(_optimizer)
try:
    nn.utils.clip_grad_norm_(_model.parameters(), 1.0, error_if_nonfinite=True)
except RuntimeError as error:
    _said.append(str(error))
assert len(_said) == 1 and "is non-finite" in _said[0]
_scaler.step(_optimizer)
assert all(p.isfinite().all() for p in _model.parameters())
# sphinx_gallery_end_ignore

# %%
# Not with a ``GradScaler``, which skips infinite gradients itself.
#
# **3. log(0), the root of a negative number, 0 / 0.** Use the function that is made for it, or clamp *before* the operation:

p = torch.tensor([0.0, 1.0])
variance = torch.tensor(-1e-8)  # mean(x**2) - mean(x)**2, after rounding
hits, total = torch.tensor(0.0), torch.tensor(0.0)
print("p * log(p):", (p * p.log()).sum(), "->", torch.xlogy(p, p).sum())
print("root:      ", variance.sqrt(), "->", variance.clamp(min=1e-12).sqrt())
print("0 / 0:     ", hits / total, "->", hits / total.clamp(min=1))

# sphinx_gallery_start_ignore
assert (p * p.log()).sum().isnan() and torch.xlogy(p, p).sum() == 0
assert variance.sqrt().isnan() and variance.clamp(min=1e-12).sqrt() > 0
assert (hits / total).isnan() and hits / total.clamp(min=1) == 0
# sphinx_gallery_end_ignore

# %%
# **4. Softmax and log by hand.** Softmax rounds to 0, and its log is ``-inf``. Give the scores to ``cross_entropy``:

scores, target = torch.tensor([[0.0, 200.0]]), torch.tensor([[0.0, 1.0]])
loss = -(target * scores.softmax(dim=1).log()).sum()
print("by hand:", loss, "->", functional.cross_entropy(scores, target))

# sphinx_gallery_start_ignore
assert loss.isnan() and functional.cross_entropy(scores, target) == 0
# sphinx_gallery_end_ignore

# %%
# **5. float16.** Its largest number is 65,504. Use ``bfloat16``, or ``float32`` for sums and squares:

for dtype in (torch.float16, torch.bfloat16, torch.float32):
    squares = torch.tensor([300.0, 1.0], dtype=dtype) ** 2
    print(f"{dtype!s:<15}", (squares / squares.sum()).tolist())

# sphinx_gallery_start_ignore
assert torch.finfo(torch.float16).max == 65504
for _dtype, _isnan in ((torch.float16, True), (torch.bfloat16, False)):
    _squares = torch.tensor([300.0, 1.0], dtype=_dtype) ** 2
    assert (_squares / _squares.sum()).isnan().any() == _isnan
# sphinx_gallery_end_ignore

# %%
# **6. Nothing is left**: a sequence is all padding, a selection is empty, or all labels are ``ignore_index``. Divide by at
# least 1, or leave such samples out:

row = torch.zeros(1, 2)
padding = torch.tensor([[True, True]])
weights = row.masked_fill(padding, -torch.inf).softmax(dim=1)
finite = row.masked_fill(padding, torch.finfo(row.dtype).min).softmax(dim=1)
print("attention:", weights, "->", finite * ~padding)

errors = torch.tensor([0.1, 0.2])
large = errors[errors > 1]
print("mean:     ", large.mean(), "->", large.sum() / max(len(large), 1))

labels = torch.tensor([-100, -100])
loss = functional.cross_entropy(torch.zeros(2, 3), labels)
count = (labels != -100).sum()
total = functional.cross_entropy(torch.zeros(2, 3), labels, reduction="sum")
print("labels:   ", loss, "->", total / count.clamp(min=1))

# sphinx_gallery_start_ignore
assert weights.isnan().all() and not (finite * ~padding).any()
assert large.mean().isnan() and loss.isnan() and total / count.clamp(min=1) == 0
_attention = nn.MultiheadAttention(2, 1, batch_first=True)
assert _attention(*[torch.ones(1, 2, 2)] * 3, key_padding_mask=padding)[0].isnan().all()
# sphinx_gallery_end_ignore

# %%
# What not to do
# --------------
# **Replace the NaN of the loss.** One step with a NaN in the gradient, and the weights are NaN:

model = nn.Linear(3, 1)
loss = torch.nan_to_num(functional.mse_loss(model(x), y))
loss.backward()
torch.optim.SGD(model.parameters(), lr=0.001).step()
print("loss:", loss.item(), "  weight:", model.weight.tolist())

# sphinx_gallery_start_ignore
assert loss == 0 and model.weight.isnan().any()
# sphinx_gallery_end_ignore

# %%
# **Compare with** ``loss == float("nan")``. A NaN is not equal to itself. Use ``loss.isfinite()``.
#
# See also
# --------
# - :ref:`sphx_glr_gallery_debugging_finding_nans.py`: a trap that names the operation and your line.
# - :ref:`sphx_glr_gallery_errors_nan_in_backward.py`: the loss is fine, and the gradient is NaN.
# - :ref:`sphx_glr_gallery_memory_grad_scaler.py`: steps that a scaler skips, and a scale that becomes 0.
# - :ref:`sphx_glr_gallery_memory_precision.py`: float16, bfloat16 and autocast.
# - In PyTorch's reference: `clip_grad_norm_
#   <https://docs.pytorch.org/docs/stable/generated/torch.nn.utils.clip_grad_norm_.html>`__.
