r"""
Attempting to unscale FP16 gradients.
=====================================

.. index::
   ! single: GradScaler and a model in half precision
   ! single: fine-tuning LoRA with fp16 raises in scaler.step or clip_grad_norm_
   ! single: No inf checks were recorded for this optimizer
   ! single: unscale_() has already been called on this optimizer since the last update()

.. in-short::

   ``GradScaler`` works with weights in ``float32``, and yours are in ``float16``. Keep the trained weights in ``float32``, and
   let ``autocast`` compute in ``float16``.

   .. code-block:: diff

      - model = nn.Linear(4, 1).half()
      + model = nn.Linear(4, 1)
        scaler = torch.amp.GradScaler("cpu")

   **Not this:** training in ``float16`` without the scaler. Small steps are rounded away, and Adam can write infinities.
"""

# %%
# The code that raises it
# -----------------------
# On a GPU you write ``"cuda"`` instead of ``"cpu"``.

import torch
from torch import nn
from torch.nn import functional

# sphinx_gallery_start_ignore
# isort: split
import copy

try:
    # sphinx_gallery_end_ignore
    torch.manual_seed(0)
    x, y = torch.rand(8, 4), torch.rand(8, 1)
    model = nn.Linear(4, 1).half()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    scaler = torch.amp.GradScaler("cpu")

    with torch.autocast("cpu", dtype=torch.float16):
        loss = functional.mse_loss(model(x), y)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
# sphinx_gallery_start_ignore
except ValueError as error:
    message = str(error)
    print("ValueError:", message)
assert message == "Attempting to unscale FP16 gradients."
# sphinx_gallery_end_ignore

# %%
# The last frame of the traceback that is not PyTorch's:
#
# .. list-table::
#    :header-rows: 1
#    :widths: 44 56
#
#    * - the frame
#      - cause
#    * - ``scaler.step``, or ``scaler.unscale_`` before clipping
#      - Often ``.half()`` or ``.to(torch.float16)`` on the model, or on one layer of it. OpenAI's ``clip.load`` does so on a
#        GPU: call ``model.float()``.
#    * - the same, only after an evaluation or a save
#      - It called ``.half()`` on the model. Give it ``copy.deepcopy(model)``: after ``.float()`` the weights stay rounded.
#    * - ``trainer.train()``, ``accelerator.clip_grad_norm_``, ``accelerate/optimizer.py``
#      - The model was loaded in ``float16``. Write ``from_pretrained(..., torch_dtype=torch.float32)``, in newer versions
#        ``dtype=torch.float32``, and keep ``fp16=True``.
#    * - the same, with LoRA, or after you unfroze a part
#      - That part was loaded in ``float16``: convert it, as below.
#
# Which trained weights are in ``float16``?

trained = [(name, p) for name, p in model.named_parameters() if p.requires_grad]
print([name for name, p in trained if p.dtype == torch.float16])

# sphinx_gallery_start_ignore
assert [(name, p.dtype) for name, p in trained] == [
    ("weight", torch.float16),
    ("bias", torch.float16),
]
# one layer is enough
_net = nn.Sequential(nn.Linear(4, 4), nn.PReLU().half(), nn.Linear(4, 1))
_adam, _scaler = torch.optim.Adam(_net.parameters()), torch.amp.GradScaler("cpu")
with torch.autocast("cpu", dtype=torch.float16):
    _loss = functional.mse_loss(_net(x), y)
_scaler.scale(_loss).backward()
_raised = []
try:
    _scaler.unscale_(_adam)
except ValueError as error:
    _raised.append(str(error))
assert _raised == [message]


def _trained(evaluate):
    torch.manual_seed(0)
    model, scaler = nn.Linear(4, 1), torch.amp.GradScaler("cpu")
    adam = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(2):
        with torch.autocast("cpu", dtype=torch.float16):
            loss = functional.mse_loss(model(x), y)
        adam.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(adam)
        scaler.update()
        before = model.weight.detach().clone()
        evaluate(model)
    return torch.equal(before, model.weight)


try:
    _trained(nn.Module.half)
except ValueError as error:
    _raised.append(str(error))
assert _raised == [message] * 2
assert not _trained(lambda model: model.half().float())
assert _trained(lambda model: copy.deepcopy(model).half())
# sphinx_gallery_end_ignore

# %%
# Why
# ---
# The scaler multiplies the loss by a large number, so that small gradients do not become 0 in ``float16``. Before the step it
# divides the gradients by it. A gradient has the type of its weight, and in ``float16`` small ones would be 0 again.
#
# The weights need ``float32``, too: a step of 0.0001 is lost next to a weight of 1.

import matplotlib.pyplot as plt

# figure: A weight over 1,000 steps of 0.0001. In float32 it falls from 1 to 0.9. In float16 it stays at 1.
fig, ax = plt.subplots(figsize=(7, 1.8), layout="constrained")
last = {}
for dtype, color in ((torch.float16, "#c2410c"), (torch.float32, "#047857")):
    w = nn.Parameter(torch.ones(1, dtype=dtype))
    sgd = torch.optim.SGD([w], lr=0.0001)
    path = []
    for _ in range(1000):
        w.grad = torch.ones_like(w)
        sgd.step()
        path.append(w.item())
    ax.plot(path, color=color, label=str(dtype), linewidth=2)
    last[dtype] = path[-1]
ax.set(xlabel="step", ylabel="weight", title="1,000 small steps, lost in float16")
ax.legend()

# sphinx_gallery_start_ignore
assert last[torch.float16] == 1 and abs(last[torch.float32] - 0.9) < 1e-4
_one = torch.ones(1, dtype=torch.float16)
assert _one.nextafter(0 * _one) == 1 - 2**-11 and _one.nextafter(2 * _one) == 1 + 2**-10
# sphinx_gallery_end_ignore

# %%
# The fix
# -------
# Load or make the model in ``float32``. Inside of ``autocast`` the layer still computes in ``float16``:

model = nn.Linear(4, 1)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
scaler = torch.amp.GradScaler("cpu")

for _ in range(100):
    with torch.autocast("cpu", dtype=torch.float16):
        output = model(x)
        loss = functional.mse_loss(output, y)
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
print(output.dtype, model.weight.dtype, f"loss {loss.item():.3f}")

# sphinx_gallery_start_ignore
assert output.dtype == torch.float16 and model.weight.dtype == torch.float32
assert loss < 0.5
_scaled = (torch.tensor(1e-9) * 65536).half()
assert torch.tensor(1e-9).half() == 0 and _scaled > 0
assert _scaled / 65536 == 0 and _scaled.float() / 65536 > 0
# sphinx_gallery_end_ignore

# %%
# **A large frozen model with a small trained part**, as in LoRA: the frozen part may stay in ``float16``. Convert the trained
# part before you make the optimizer or DDP:

base = nn.Linear(4, 4).half().requires_grad_(False)
adapter = nn.Linear(4, 4).half()
for p in nn.ModuleList([base, adapter]).parameters():
    if p.requires_grad:
        p.data = p.data.float()

optimizer = torch.optim.Adam(adapter.parameters(), lr=0.01)
with torch.autocast("cpu", dtype=torch.float16):
    loss = (base(x) + adapter(x)).square().mean()
scaler.scale(loss).backward()
scaler.step(optimizer)
scaler.update()
print(base.weight.dtype, adapter.weight.dtype, adapter.weight.grad.dtype)

# sphinx_gallery_start_ignore
assert adapter.weight.grad.dtype == torch.float32 and adapter.weight.isfinite().all()
# sphinx_gallery_end_ignore

# %%
# **Or use bfloat16**: ``autocast(..., dtype=torch.bfloat16)`` with weights in ``float32`` needs no scaler.
#
# No inf checks were recorded for this optimizer
# ----------------------------------------------
# The scaler found no gradient in the parameters of this optimizer. Here the model was made after the optimizer:

# sphinx_gallery_start_ignore
raised = []
try:
    # sphinx_gallery_end_ignore
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    model = nn.Linear(4, 1)

    optimizer.zero_grad()
    loss = functional.mse_loss(model(x), y)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
# sphinx_gallery_start_ignore
except AssertionError as error:
    raised.append(str(error))
    print("AssertionError:", error)
assert raised == ["No inf checks were recorded for this optimizer."]
assert model.weight.grad is not None
_model = nn.Linear(4, 1)
_optimizer = torch.optim.SGD(_model.parameters(), lr=0.1)


def _says(call, *arguments):
    try:
        call(*arguments)
    except AssertionError as error:
        return str(error)
    return ""


_scaler = torch.amp.GradScaler("cpu")
_scaler.scale(_model(x).sum()).backward()
_optimizer.zero_grad()
assert _says(_scaler.step, _optimizer) == raised[0]
_scaler = torch.amp.GradScaler("cpu")
_scaler.scale(_model(x).sum()).backward()
_optimizer.step()
assert _says(_scaler.update) == "No inf checks were recorded prior to update."
_pair = [nn.Linear(4, 1), nn.Linear(4, 1)]
_steps = [torch.optim.SGD(one.parameters(), lr=0.1) for one in _pair]
_scaler, _start = torch.amp.GradScaler("cpu"), _pair[1].weight.detach().clone()
for _used in (1, 2):  # the second model has a loss in the second iteration only
    for _optimizer in _steps:
        _optimizer.zero_grad()
    _scaler.scale(sum(one(x).mean() for one in _pair[:_used])).backward()
    assert (_says(_scaler.unscale_, _steps[1]) == "") and (
        len(_scaler._found_inf_per_device(_steps[1])) == _used - 1
    )
    for _optimizer in _steps[:_used]:
        _scaler.step(_optimizer)
    _scaler.update()
    assert torch.equal(_pair[1].weight, _start) == (_used == 1)
assert torch.allclose(_pair[1].weight, _start - 0.1 * x.mean(0))
_alone = torch.amp.GradScaler(
    "cpu"
)  # unscale_ without a gradient, and no update: the next one raises
_steps[1].zero_grad()
_alone.scale(_pair[0](x).mean()).backward()
_alone.unscale_(_steps[1])
assert _says(_alone.update) == "No inf checks were recorded prior to update."
_alone.scale(_pair[1](x).mean()).backward()
try:
    _alone.unscale_(_steps[1])
    _again = ""
except RuntimeError as error:
    _again = str(error)
assert _again.startswith("unscale_() has already been called")
_alone, _start = torch.amp.GradScaler("cpu"), _pair[1].weight.detach().clone()
for _used in (0, 1):
    _steps[1].zero_grad()
    _alone.scale(_pair[_used](x).mean()).backward()
    if any(p.grad is not None for p in _pair[1].parameters()):
        _alone.unscale_(_steps[1])
        _alone.step(_steps[1])
        _alone.update()
    assert torch.equal(_pair[1].weight, _start) == (_used == 0)
assert torch.allclose(_pair[1].weight, _start - 0.1 * x.mean(0))
_cut = (_pair[0](x).mean().detach()).requires_grad_()  # made to run: no gradient
_steps[0].zero_grad()
_alone.scale(_cut).backward()
assert _says(_alone.step, _steps[0]) == raised[0]
# nothing steps this time: update() raises, and without it the next step is right
assert _says(_scaler.update) == "No inf checks were recorded prior to update."
_steps[0].zero_grad()
_scaler.scale(_pair[0](x).mean()).backward()
assert _says(_scaler.step, _steps[0]) == _says(_scaler.update) == ""
# sphinx_gallery_end_ignore

# %%
# Create the optimizer after the model. Other causes: ``zero_grad()`` between ``backward()`` and ``step()``, a loss made to
# run by ``requires_grad_()`` (:ref:`its graph <sphx_glr_gallery_errors_no_grad_fn.py>` is missing), or one that does not use
# these weights. If that is intended, leave out ``unscale_`` and ``scaler.step`` this time, and, without another step,
# ``update()``. So ask first: ``any(p.grad is not None for p in model.parameters())``.
#
# *No inf checks were recorded prior to update* comes from ``scaler.update()``, often because the loop calls
# ``optimizer.step()`` instead of ``scaler.step(optimizer)``.
#
# unscale_() has already been called
# ----------------------------------
# For one optimizer, ``unscale_`` may run once between two calls of ``update()``. Here it runs for each batch of an
# accumulation:

# sphinx_gallery_start_ignore
raised = []
try:
    # sphinx_gallery_end_ignore
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    scaler = torch.amp.GradScaler("cpu")
    for part in range(2):
        loss = functional.mse_loss(model(x[part::2]), y[part::2]) / 2
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
    scaler.step(optimizer)
    scaler.update()
# sphinx_gallery_start_ignore
except RuntimeError as error:
    raised.append(str(error))
    print("RuntimeError:", error)
assert raised == [
    "unscale_() has already been called on this optimizer since the last update()."
]
# sphinx_gallery_end_ignore

# %%
# Unscale, clip, step and update once, after the last ``backward()``. With ``accelerate``, call ``clip_grad_norm_`` once, under
# ``if accelerator.sync_gradients:``. If a ``Trainer`` raises it, update Transformers and Accelerate.

scaler = torch.amp.GradScaler("cpu")
optimizer.zero_grad()
for part in range(2):
    loss = functional.mse_loss(model(x[part::2]), y[part::2]) / 2
    scaler.scale(loss).backward()
scaler.unscale_(optimizer)
nn.utils.clip_grad_norm_(model.parameters(), 1.0)
scaler.step(optimizer)
scaler.update()


# sphinx_gallery_start_ignore
def _skips(update):
    model, scaler = nn.Linear(4, 1), torch.amp.GradScaler("cpu")
    sgd = torch.optim.SGD(model.parameters(), lr=0.1)
    for skip in (True, False):
        sgd.zero_grad()
        scaler.scale(model(x).mean()).backward()
        try:
            scaler.unscale_(sgd)
        except RuntimeError as error:
            return str(error)
        assert torch.allclose(model.weight.grad, x.mean(0))
        if not skip:
            scaler.step(sgd)
        if update or not skip:
            scaler.update()
    return ""


assert _skips(update=False) == raised[0] and _skips(update=True) == ""
# sphinx_gallery_end_ignore

# %%
# Without ``update()`` the second step raises. A step that you skip after ``unscale_`` needs it, too.

# sphinx_gallery_start_ignore
raised = []
try:
    # sphinx_gallery_end_ignore
    for _ in range(2):
        loss = functional.mse_loss(model(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
# sphinx_gallery_start_ignore
except RuntimeError as error:
    raised.append(str(error))
    print("RuntimeError:", error)
assert raised == ["step() has already been called since the last update()."]
# sphinx_gallery_end_ignore

# %%
# What not to do
# --------------
# **Train in float16 without a scaler.** Adam divides by the root of the squared gradient plus ``1e-8``, and in
# ``float16`` both can be 0:

model = nn.Linear(4, 1).half()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
(model(x.half()).mean() * 0.0001).backward()
optimizer.step()
print(model.weight.data)

# sphinx_gallery_start_ignore
assert model.weight.isinf().all()
assert torch.tensor(1e-8, dtype=torch.float16) == 0
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_memory_grad_scaler.py`.
# - :ref:`sphx_glr_gallery_memory_precision.py`.
# - :ref:`sphx_glr_gallery_errors_different_dtypes.py`.
# - `Gradient scaling <https://docs.pytorch.org/docs/stable/amp.html#gradient-scaling>`__ in PyTorch's reference.
