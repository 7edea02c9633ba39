r"""
Who calls backward? Trainer, Accelerate, Lightning, PEFT
========================================================

.. index::
   single: gradient_accumulation_steps, max_grad_norm, accumulate_grad_batches
   single: accelerator.backward, accelerator.accumulate, sync_gradients
   single: manual_backward, automatic_optimization = False
   single: loss.backward() in training_step or compute_loss
   single: the loss is divided twice by the accumulation steps

.. in-short::

   Lightning and the ``Trainer`` of Transformers call ``backward()`` on the loss that you return, so do not call it yourself.
   With Accelerate, call ``accelerator.backward(loss)``. In Lightning's manual optimization, call
   ``self.manual_backward(loss)``. PEFT only changes the model. A step over ``k`` batches has this order: divide the
   loss by ``k``, ``backward()``, unscale, clip, ``step()``, ``zero_grad()``.

   Leave out what the library does: a loss that is divided twice raises no error.
"""

# %%
# The order in plain PyTorch
# --------------------------
# A library hides the training loop, so you no longer see what is divided, clipped and cleared. This loop takes one step for
# ``k`` batches, with a scaler for float16. Without ``i == len(batches)``, the gradients of batches that are left at the end of
# an epoch would go into the next one:

import pandas as pd
import torch
from torch import nn
from torch.nn.functional import mse_loss
from torch.nn.utils import clip_grad_norm_, parameters_to_vector

torch.manual_seed(0)
x, y = torch.randn(8, 3), 5 * torch.randn(8, 1)
batches = list(zip(x.split(2), y.split(2), strict=True))
k = len(batches)


def make_model():
    torch.manual_seed(0)
    return nn.Linear(3, 1)


model = make_model()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu")  # "cuda" on a GPU

for i, (xs, ys) in enumerate(batches, start=1):
    loss = mse_loss(model(xs), ys)
    scaler.scale(loss / k).backward()
    if i % k == 0 or i == len(batches):
        scaler.unscale_(optimizer)  # the true gradients again
        norm = clip_grad_norm_(model.parameters(), max_norm=1.0)
        # sphinx_gallery_start_ignore
        _clipped = torch.cat([p.grad.flatten() for p in model.parameters()])
        # sphinx_gallery_end_ignore
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()

print(f"{k} batches, one step, norm before clipping {norm:.2f}")

# sphinx_gallery_start_ignore
assert all(p.grad is None for p in model.parameters())  # nothing is left for the next
assert [i for i in range(1, 7) if i % 4 == 0 or i == 6] == [4, 6]
torch.set_num_threads(1)  # small tensors: more threads do not help
assert k == 4 and norm > 1 and abs(_clipped.norm() - 1) < 1e-5


def _of_one_batch(x, y, divisor=1):
    net = make_model()
    (mse_loss(net(x), y) / divisor).backward()
    return torch.cat([p.grad.flatten() for p in net.parameters()])


_whole = _of_one_batch(x, y)
assert torch.allclose(_clipped, _whole / _whole.norm(), atol=1e-5)
assert abs(_whole.norm() - norm) < 1e-4
# sphinx_gallery_end_ignore

# %%
# .. how-measured:: The entries are read from the sources of the versions in the table below.

import matplotlib.pyplot as plt

PARTS = ["loss / k", "backward", "unscale, clip", "step", "zero_grad"]
WHO = {
    "plain loop": ["you", "you", "you", "you", "you"],
    "Accelerate": ["library", "method", "method", "method", "method"],
    "Lightning,\nmanual": ["you", "method", "method", "method", "you"],
    "Lightning": ["library"] * 5,
    "Trainer": ["library"] * 5,
}
COLORS = {"you": "#c2410c", "method": "#7c3aed", "library": "#2563eb"}


def plot_who_does_what():
    _, ax = plt.subplots(figsize=(7, 2.9), layout="constrained")
    for column, entries in enumerate(WHO.values()):
        for row, who in enumerate(entries):
            ax.barh(row, 0.94, 0.86, column - 0.47, color=COLORS[who])
            ax.text(column, row, who, color="#ffffff", ha="center", va="center")
    ax.set_xticks(range(len(WHO)), list(WHO))
    ax.set_yticks(range(len(PARTS)), PARTS)
    ax.invert_yaxis()
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    ax.set_title("Who does it: you, you with the library's method, or the library")


# %%
# Libraries take over parts of this loop:

# figure: A table of five parts of a step, for five kinds of loop. In the plain loop all five are yours. With Accelerate the
#   library divides the loss, and you call its methods for the rest. With Lightning's manual optimization you divide and clear
#   the gradients, and call its methods for backward, clipping and step. With automatic Lightning and the Trainer, the library
#   does all five.
plot_who_does_what()

# sphinx_gallery_start_ignore
assert all(len(_entries) == len(PARTS) for _entries in WHO.values())
# sphinx_gallery_end_ignore

# %%
# Where each library does it
# --------------------------
# The names of the functions, to search for in the source:
#
# .. list-table::
#    :header-rows: 1
#    :widths: 19 28 28 25
#
#    * - package
#      - divides, calls backward
#      - unscales, clips
#      - steps, clears
#    * - transformers 5.24.0, ``Trainer``
#      - ``training_step`` divides by the batches of this step, unless the model gets ``num_items_in_batch`` or you pass
#        ``compute_loss_func``
#      - ``_clip_grad_norm``. The default of ``max_grad_norm`` is 1.0.
#      - ``_run_epoch``, with ``model.zero_grad()`` after the step
#    * - accelerate 1.15.0
#      - ``Accelerator.backward`` divides by ``gradient_accumulation_steps``
#      - ``Accelerator.clip_grad_norm_``: call it ``if accelerator.sync_gradients``
#      - ``AcceleratedOptimizer``: both calls do nothing until ``sync_gradients`` is true
#    * - lightning 2.6.6, automatic
#      - ``from_training_step_output`` divides by ``accumulate_grad_batches``, then ``LightningModule.backward``
#      - ``MixedPrecision.optimizer_step``, then ``configure_gradient_clipping``. The default clips nothing.
#      - ``LightningModule.optimizer_step``. ``optimizer_zero_grad`` runs after ``training_step``, before backward.
#    * - lightning 2.6.6, manual
#      - you divide; ``manual_backward`` scales
#      - ``clip_gradients`` clips, ``optimizer.step()`` unscales: see below
#      - you: ``optimizer.step()``, ``zero_grad()``
#    * - peft 0.21.2
#      - nothing
#      - nothing
#      - nothing: any of these loops, or your own, trains the adapters
#
# The ``Trainer`` calls ``accelerator.backward``, but does not divide twice (asked in `transformers#40709
# <https://github.com/huggingface/transformers/issues/40709>`__): its ``Accelerator`` has one accumulation step.
#
# In Lightning's manual optimization, ``gradient_clip_val`` and ``accumulate_grad_batches`` raise *is not supported for manual
# optimization*.
#
# **In a trainer, your code ends with the loss: return it with its graph, and leave the other parts to the library.**

# %%
# What people get wrong
# ---------------------
# Five mistakes in the loop above. The angle is between the step and the right one:


def take_step(mistake=None):
    model = make_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu")
    start = parameters_to_vector(model.parameters()).detach()
    for i, (xs, ys) in enumerate(batches, start=1):
        if mistake == "zero_grad before forward" and i == k:
            optimizer.zero_grad()
        loss = mse_loss(model(xs), ys)
        if mistake == "a second backward":
            scaler.scale(loss).backward(retain_graph=True)
        divisor = {"never divided": 1, "divided twice": k * k}.get(mistake, k)
        scaler.scale(loss / divisor).backward()
    if mistake != "clipped before unscale":
        scaler.unscale_(optimizer)
    norm = clip_grad_norm_(model.parameters(), max_norm=1.0)
    scaler.step(optimizer)
    end = parameters_to_vector(model.parameters()).detach()
    return norm.item(), end - start


mistakes = "none", "never divided", "divided twice", "zero_grad before forward"
mistakes += "a second backward", "clipped before unscale"
right = take_step()[1]
rows = {}
for mistake in mistakes:
    norm, change = take_step(mistake)
    angle = torch.cosine_similarity(right, change, dim=0).clamp(max=1).arccos()
    rows[mistake] = {
        "norm": f"{norm:,.2f}",
        "weights moved": f"{change.norm():.7f}",
        "angle": f"{angle.rad2deg():.0f}°",
    }
    # sphinx_gallery_start_ignore
    rows[mistake] |= {"_": (norm, change.norm().item(), angle.rad2deg().item())}
    # sphinx_gallery_end_ignore

# sphinx_gallery_start_ignore
_found = {_name: _row.pop("_") for _name, _row in rows.items()}
_norm, _moved, _angle = zip(*_found.values(), strict=True)
assert abs(_moved[0] - 0.1) < 1e-5 and _angle[0] < 0.1
for _i, _factor in ((1, k), (2, 1 / k), (4, k + 1)):
    assert abs(_norm[_i] - _factor * _norm[0]) < 1e-2 and _norm[_i] > 1
    assert abs(_moved[_i] - 0.1) < 1e-5 and _angle[_i] < 0.1  # clipping hides it
assert _angle[3] > 10
assert _norm[5] > 1e5 and 0 < _moved[5] < 1e-5
assert abs(_norm[3] - _of_one_batch(*batches[-1], k).norm()) < 1e-4  # the last alone
# sphinx_gallery_end_ignore
pd.DataFrame(rows).T.rename_axis(columns="mistake")

# %%
# - **Never divided.** The ``Trainer`` does not divide if you pass ``compute_loss_func``, or if the model's ``forward`` has
#   ``**kwargs`` (`trl#2615 <https://github.com/huggingface/trl/pull/2615>`__). If your loss is a plain mean, write
#   ``loss_is_scaled_for_ga = False`` into a subclass of ``Trainer``. In older versions, override ``compute_loss``, and set
#   ``self.model_accepts_loss_kwargs = False`` after ``super().__init__()``. Clipping and Adam hide such a factor: look at the
#   norm before clipping.
# - **Divided twice.** ``accelerator.backward(loss / k)`` divides again. Pass the loss undivided.
# - **zero_grad before forward** inside ``accelerator.accumulate(model)`` (`accelerate#1299
#   <https://github.com/huggingface/accelerate/issues/1299>`__). At the last batch of the step, it clears the gradients of the
#   other three. Write it after ``optimizer.step()``.
# - **A second backward** in ``compute_loss`` or ``training_step`` (asked in `lightning#1771
#   <https://github.com/Lightning-AI/pytorch-lightning/issues/1771>`__). It raises the first error below. With
#   ``retain_graph=True``, its undivided gradient is added.
# - **Clipped before unscale.** The scaled norm is huge, so almost nothing is left of SGD's step. This happens in Lightning's
#   manual optimization with ``precision="16-mixed"``, if ``training_step`` calls ``self.clip_gradients`` (`lightning#18089
#   <https://github.com/Lightning-AI/pytorch-lightning/issues/18089>`__). Call it in ``on_before_optimizer_step`` instead.
#
# **Clipped after each batch.** ``accelerator.clip_grad_norm_`` unscales, which is allowed once for a step. Without ``if
# accelerator.sync_gradients``, it raises the second error in float16 (`accelerate#641
# <https://github.com/huggingface/accelerate/issues/641>`__). In other precisions, it :ref:`clips unfinished sums
# <sphx_glr_gallery_training_gradient_clipping.py>` silently:


def second_backward():
    loss = mse_loss(model(x), y)
    loss.backward()  # yours, in training_step
    loss.backward()  # the library's


def clip_after_each_batch():
    for xs, ys in batches:
        scaler.scale(mse_loss(model(xs), ys) / k).backward()
        scaler.unscale_(optimizer)
        clip_grad_norm_(model.parameters(), max_norm=1.0)


messages = []
for mistake in (second_backward, clip_after_each_batch):
    try:
        mistake()
    except RuntimeError as error:
        messages.append(str(error))
        print(str(error).partition(" (")[0])

# sphinx_gallery_start_ignore
assert messages[0].startswith("Trying to backward through the graph a second time")
assert messages[1].startswith("unscale_() has already been called on this optimizer")
# sphinx_gallery_end_ignore

# %%
# Exercise
# --------
# An epoch has 6 batches, and ``k`` is 4. In the last step, Accelerate and Lightning divide by 4, too. The ``Trainer`` divides
# by 2. How large is the gradient of Accelerate's last step, compared with the mean over both batches?
#
# .. solution::
#
# Half as large. If that matters, multiply the loss by ``k / 2`` in that step.


def gradient(batches, divisor):
    model = make_model()
    for xs, ys in batches:
        (mse_loss(model(xs), ys) / divisor).backward()
    return torch.cat([p.grad.flatten() for p in model.parameters()])


left_over = batches[:2]
by_4, by_2 = (gradient(left_over, divisor=d).norm() for d in (4, 2))
ratio = by_4 / by_2
print(f"ratio of the norms: {ratio:.2f}")

# sphinx_gallery_start_ignore
assert abs(ratio - 0.5) < 1e-6
_both = _of_one_batch(x[:4], y[:4])
assert torch.allclose(gradient(left_over, divisor=2), _both, atol=1e-5)
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_differentiation_accumulation.py` and :ref:`sphx_glr_gallery_training_unequal_batches.py`: what to
#   divide by.
# - :ref:`sphx_glr_gallery_training_gradient_clipping.py` and :ref:`sphx_glr_gallery_memory_grad_scaler.py`.
# - :ref:`sphx_glr_gallery_modules_tied_weights_and_lora.py`: what PEFT puts into the model.
# - In the libraries' documentation: `gradient accumulation with Accelerate
#   <https://huggingface.co/docs/accelerate/usage_guides/gradient_accumulation>`__ and `Lightning's manual optimization
#   <https://lightning.ai/docs/pytorch/stable/model/manual_optimization.html>`__.
