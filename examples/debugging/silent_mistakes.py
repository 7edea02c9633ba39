r"""
Silent mistakes: wrong numbers and no error
===========================================

PyTorch raises an error when an operation is impossible. It raises none when the operation is possible and not the one
that you meant. This page makes eight such mistakes. Each comes with the wrong number, the right number, and the one
``assert`` that would have caught it.
"""

# %%
# How they are shown
# ------------------
# Under each mistake stands its assert, inside a context manager that expects it to fail. It prints both numbers and
# keeps them for the table at the end.

import contextlib
import copy
import traceback

import matplotlib.pyplot as plt
import pandas as pd
import torch
from torch import nn

rows = {}


@contextlib.contextmanager
def caught(mistake, wrong, right):
    try:
        yield
    except AssertionError as error:
        line = traceback.extract_tb(error.__traceback__)[-1].line
        test = line.removeprefix("assert ")
        rows[mistake] = {"wrong": wrong, "right": right, "assert": test}
        print(f"wrong: {wrong}   right: {right}   caught")
    else:
        raise SystemExit(f"{mistake}: the assert has not failed")


# %%
# 1. Broadcasting
# ---------------
# A model returns a column of shape ``(20, 1)``, and the targets have shape ``(20,)``. Their difference is no error:
# it is broadcast to ``(20, 20)``, and compares each prediction with *every* target. The best answer to all of them at
# once is their mean, so the line that should have slope 2 comes out flat.

x = torch.linspace(-1, 1, 20)[:, None]
target = (2 * x + 1)[:, 0]


def fit(target):
    line = torch.zeros(2, requires_grad=True)
    optimizer = torch.optim.SGD([line], lr=0.3)
    for _ in range(100):
        optimizer.zero_grad()
        prediction = line[0] * x + line[1]
        ((prediction - target) ** 2).mean().backward()
        optimizer.step()
    return prediction.detach(), round(line[0].item(), 2) + 0.0


prediction, slope = fit(target)
fitted, right_slope = fit(target[:, None])

with caught("broadcasting", slope, right_slope):
    assert prediction.shape == target.shape

# sphinx_gallery_start_ignore
import warnings

assert (slope, right_slope) == (0, 2) and fitted.shape == target[:, None].shape
with warnings.catch_warnings(record=True) as _seen:
    warnings.simplefilter("always")
    nn.functional.mse_loss(prediction, target)
assert "Using a target size" in str(_seen[0].message)
# sphinx_gallery_end_ignore

# %%
# ``nn.functional.mse_loss`` warns about different sizes. A formula of your own does not.

# %%
# 2. reshape for permute
# ----------------------
# An image file stores the three colours of a pixel side by side, PyTorch wants one plane for each colour. Both calls
# below give the shape ``(3, 6, 6)``. ``permute`` moves the dimensions, ``reshape`` deals out the numbers anew. A red
# picture becomes grey: the mean of each colour is one third.

image = torch.zeros(6, 6, 3)
image[..., 0] = 1  # red

planes = image.reshape(3, 6, 6)
right_planes = image.permute(2, 0, 1)


def red(planes):
    return round(planes[0].mean().item(), 2)


with caught("reshape for permute", red(planes), red(right_planes)):
    assert torch.equal(planes[0], image[..., 0])

# sphinx_gallery_start_ignore
assert (red(planes), red(right_planes)) == (0.33, 1)
assert torch.equal(right_planes[0], image[..., 0])
assert planes.shape == right_planes.shape == (3, 6, 6)
assert torch.allclose(planes.mean(dim=(1, 2)), torch.full((3,), 1 / 3))
# sphinx_gallery_end_ignore

# %%
# 3. squeeze
# ----------
# Signals of shape ``(batch, time, 1)`` lose their last dimension, then the mean over the batch is taken. With one
# example in the batch, ``squeeze()`` removes the batch too, and the mean runs over time.

signals = torch.tensor([[[1.0], [2.0], [6.0]]])  # one example, three times

series = signals.squeeze()
right_series = signals.squeeze(-1)

with caught("squeeze", series.mean(dim=0).tolist(), right_series.mean(dim=0).tolist()):
    assert series.shape == signals.shape[:2]

# sphinx_gallery_start_ignore
assert series.mean(dim=0) == 3 and right_series.shape == signals.shape[:2]
# sphinx_gallery_end_ignore

# %%
# 4. Aliasing: the best weights
# -----------------------------
# A training run keeps the best weights and goes on. ``state_dict()`` copies nothing: it returns the tensors of the
# model, which the next step overwrites. What was kept as the best is always the latest.

model = nn.Linear(1, 1, bias=False)
nn.init.zeros_(model.weight)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
lowest = float("inf")

for _ in range(9):
    loss = (model.weight - 3).square().sum()  # best at 3
    if loss.item() < lowest:
        lowest = loss.item()
        best, copied = model.state_dict(), copy.deepcopy(model.state_dict())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

kept, right_kept = (round(s["weight"].item(), 2) for s in (best, copied))
stored, live = best["weight"], model.weight
with caught("aliasing", kept, right_kept):
    assert stored.data_ptr() != live.data_ptr()

# sphinx_gallery_start_ignore
assert kept == round(model.weight.item(), 2) and (kept - 3) ** 2 > lowest + 0.5
assert abs((copied["weight"].item() - 3) ** 2 - lowest) < 1e-6
assert copied["weight"].data_ptr() != model.weight.data_ptr()
# sphinx_gallery_end_ignore

# %%
# 5. Writing through .data
# ------------------------
# A unit is rounded to 0 or 1, and the gradient should be that of the sigmoid. ``.data`` hides the rounding from
# autograd, but not from the node: the derivative is :math:`y (1 - y)`, computed with the *rounded* ``y``. It is 0.
# (:ref:`The right way <sphx_glr_gallery_functions_change_the_gradient.py>` is called a straight-through estimator.)

z = torch.tensor(2.0, requires_grad=True)
y = torch.sigmoid(z)
y.data.round_()
(gradient,) = torch.autograd.grad(y, z, retain_graph=True)

smooth = torch.sigmoid(z)
rounded = smooth + (smooth.round() - smooth).detach()
(right_gradient,) = torch.autograd.grad(rounded, z)

saved = y.grad_fn._saved_result
with caught(".data", gradient.item(), round(right_gradient.item(), 3)):
    assert saved == torch.sigmoid(z)

# sphinx_gallery_start_ignore
assert gradient == 0 and abs(right_gradient - 0.105) < 1e-3 and rounded == y == 1
assert torch.sigmoid(z).grad_fn._saved_result == torch.sigmoid(z)
# sphinx_gallery_end_ignore

# %%
# 6. Forgotten zero_grad
# ----------------------
# :ref:`Gradients add up <sphx_glr_gallery_differentiation_accumulation.py>` until somebody clears them. Where nobody
# does, each step repeats all the earlier ones, and the weight swings around the minimum instead of settling there. The
# assert belongs before each ``backward``.


def descend(clear):
    w = torch.tensor(0.0, requires_grad=True)
    path = []
    for _ in range(60):
        path.append(w.item())
        if clear:
            w.grad = None
        ((w - 3) ** 2).backward()
        with torch.no_grad():
            w -= 0.1 * w.grad
    return path, w


(path, w), (right_path, _) = descend(clear=False), descend(clear=True)

with caught("forgotten zero_grad", round(path[-1], 2), round(right_path[-1], 2)):
    assert w.grad is None

# sphinx_gallery_start_ignore
assert round(right_path[-1], 2) == 3 and max(path[30:]) > 5.5 and min(path[30:]) < 0.5
assert right_path == sorted(right_path)
# sphinx_gallery_end_ignore

# %%
# The first and the sixth mistake to look at:

# figure: Two panels. On the left, points on a rising line; the right fit goes through them, the fit with broadcasting
#   is horizontal at their mean. On the right, the weight over 60 steps: with zero_grad it rises to 3 and stays,
#   without it swings between 0 and 6 for ever.
figure, (left, right) = plt.subplots(1, 2, figsize=(7, 3.2), layout="constrained")
left.plot(x, target, "o", color="#64748b", markersize=4, label="targets")
left.plot(x, fitted, color="#2563eb", label="same shapes")
left.plot(x, prediction, "--", color="#c2410c", label="broadcast")
left.set(xlabel="x", ylabel="y")
left.set_title("1. The fit")
right.plot(right_path, color="#2563eb", label="with zero_grad")
right.plot(path, "--", color="#c2410c", label="without")
right.set(xlabel="step", ylabel="weight", ylim=(-0.5, 8.5))
right.set_title("6. The descent to 3")
for ax in (left, right):
    ax.legend(frameon=False, fontsize=8)

# sphinx_gallery_start_ignore
assert torch.allclose(prediction, target.mean().expand(20, 1), atol=1e-3)
assert torch.allclose(fitted[:, 0], target, atol=1e-3)
assert min(path) > -0.5 and max(path) < 6.5
# sphinx_gallery_end_ignore

# %%
# 7. detach in the wrong place
# ----------------------------
# A value estimate is moved towards a target that contains the next estimate. The target should be held fixed. If
# ``detach`` stands at the estimate instead, the loss is the same number, and its gradient points the other way.


def bootstrap_loss(detach):
    weight = torch.tensor(1.0, requires_grad=True)
    estimate, goal = weight * 1.0, 1 + 0.9 * (weight * 2.0)
    if detach == "estimate":
        estimate = estimate.detach()
    else:
        goal = goal.detach()
    loss = (estimate - goal) ** 2
    loss.backward()
    return estimate, goal, round(weight.grad.item(), 2), round(loss.item(), 2)


estimate, goal, gradient, loss = bootstrap_loss("estimate")
_, _, right_gradient, right_loss = bootstrap_loss("goal")
print(f"the loss both times: {loss}, {right_loss}")

with caught("detach", gradient, right_gradient):
    assert not goal.requires_grad

# sphinx_gallery_start_ignore
assert (loss, right_loss, gradient, right_gradient) == (3.24, 3.24, 6.48, -3.6)
estimate, goal, *_ = bootstrap_loss("goal")
assert estimate.requires_grad and not goal.requires_grad
# sphinx_gallery_end_ignore

# %%
# 8. Shared optimizer state
# -------------------------
# A model is copied to train both copies further, and the optimizer's state is handed over. Neither ``state_dict`` nor
# ``load_state_dict`` copies it: both optimizers use the same momentum. Two equal models take the same step on the
# same loss, and end at different weights.


def two_runs(hand_over):
    first = torch.tensor(1.0, requires_grad=True)
    one = torch.optim.SGD([first], lr=0.1, momentum=0.9)
    step(one, first)
    second = first.detach().clone().requires_grad_()
    two = torch.optim.SGD([second], lr=0.1, momentum=0.9)
    two.load_state_dict(hand_over(one.state_dict()))
    step(one, first)
    step(two, second)
    moments = one.state[first]["momentum_buffer"], two.state[second]["momentum_buffer"]
    return [round(first.item(), 3), round(second.item(), 3)], moments


def step(optimizer, weight):
    optimizer.zero_grad()
    (weight**2).backward()
    optimizer.step()


weights, (mine, other) = two_runs(hand_over=lambda state: state)
right_weights, apart = two_runs(hand_over=copy.deepcopy)

with caught("shared optimizer state", weights, right_weights):
    assert mine.data_ptr() != other.data_ptr()

# sphinx_gallery_start_ignore
assert right_weights == [0.46, 0.46] and weights == [0.46, 0.334]
assert apart[0].data_ptr() != apart[1].data_ptr()

import io


def _through_a_file(state):
    file = io.BytesIO()
    torch.save(state, file)
    file.seek(0)
    return torch.load(file)


assert two_runs(_through_a_file)[0] == right_weights
# sphinx_gallery_end_ignore

# %%
# A state that has been saved to a file and loaded again is a copy. It is the short way, inside one program, that
# shares.

# %%
# All of them
# -----------

# sphinx_gallery_start_ignore
assert len(rows) == 8 and all(len(row["assert"]) < 45 for row in rows.values())
# sphinx_gallery_end_ignore
pd.DataFrame(rows).T.rename_axis(index=None, columns="mistake")

# %%
# What they have in common: each assert compares the thing with what you *believe* about it, a shape, a memory, a
# place in the graph. Write it down where the belief begins.

# %%
# What people get wrong
# ---------------------
# **assert with ==.** Between tensors, ``==`` compares each element, and ``assert`` cannot make one answer of many:

a = torch.tensor([0.1, 0.2, 0.3])
b = 3 * a / 3
b[2] += 1e-3

try:
    assert a == b
except RuntimeError as error:
    print(f"RuntimeError: {error}")
    assert "more than one value is ambiguous" in str(error)

# %%
# ``torch.equal`` gives one answer, and takes the last bit seriously. For results of arithmetic use
# ``torch.testing.assert_close``, which allows for rounding and says what differs:

try:
    torch.testing.assert_close(a, b)
except AssertionError as error:
    print(error)
    assert "Mismatched elements: 1 / 3" in str(error)

# sphinx_gallery_start_ignore
torch.testing.assert_close(a, a * (1 + 1e-7))
assert not torch.equal(a, a * (1 + 1e-6))
# sphinx_gallery_end_ignore

# %%
# **Asserts that are switched off.** ``python -O`` leaves out every assert. Here one line is compiled both ways:

outcomes = []
for optimize in (0, 1):
    try:
        exec(compile("assert 1 == 2", "demo", "exec", optimize=optimize))
        outcomes.append("passed")
    except AssertionError:
        outcomes.append("AssertionError")
    print(f"optimize={optimize}: {outcomes[-1]}")
assert outcomes == ["AssertionError", "passed"]

# %%
# They are for mistakes in the program. Test what comes from outside, files and arguments, with ``if`` and ``raise``.
#
# Exercise
# --------
# A layer gets a new weight after the optimizer was made. What does the training step change? Which assert would have
# caught it?
#
# .. code-block:: python
#
#    model = nn.Linear(1, 1, bias=False)
#    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
#    model.weight = nn.Parameter(torch.tensor([[2.0]]))
#
# .. solution::
#
# Nothing. The optimizer holds the old weight, which gets no gradient and is skipped. Compare what it holds with what
# the model has, by identity.

model = nn.Linear(1, 1, bias=False)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model.weight = nn.Parameter(torch.tensor([[2.0]]))

model(torch.ones(1, 1)).square().sum().backward()
optimizer.step()
after = model.weight.item()

held = {id(p) for group in optimizer.param_groups for p in group["params"]}
with caught("replaced parameter", after, after - 0.1 * model.weight.grad.item()):
    assert held == {id(p) for p in model.parameters()}

# sphinx_gallery_start_ignore
assert after == 2 and model.weight.grad == 4
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
held = {id(p) for group in optimizer.param_groups for p in group["params"]}
assert held == {id(p) for p in model.parameters()}
optimizer.step()
assert abs(model.weight.item() - 1.6) < 1e-6
# sphinx_gallery_end_ignore

# %%
# Make the optimizer after the last change to the model, or copy the new values into the old parameter.

# %%
# See also
# --------
# - Before: :ref:`sphx_glr_gallery_debugging_finding_nans.py`, for numbers that are plainly wrong.
# - Next: :ref:`sphx_glr_gallery_profiling_profiler_table.py`, where the time goes.
# - :ref:`sphx_glr_gallery_tensors_copy_table.py`: which operations share memory.
# - :ref:`sphx_glr_gallery_differentiation_inplace_and_versions.py`: the writes that autograd notices, and more that
#   it does not.
# - In PyTorch's reference: `Broadcasting semantics
#   <https://docs.pytorch.org/docs/stable/notes/broadcasting.html>`__ and `torch.testing
#   <https://docs.pytorch.org/docs/stable/testing.html>`__.
