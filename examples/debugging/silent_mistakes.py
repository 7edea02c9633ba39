r"""
Silent mistakes: wrong numbers and no error
===========================================

.. index::
   single: the model does not learn and there is no error
   single: best checkpoint equals the last epoch
   single: loss stuck, all predictions the same

.. in-short::

   PyTorch raises no error for an operation that is possible but is not the one you meant. Find your symptom in the table, or
   write an assert where you first rely on something, for example ``assert prediction.shape == target.shape`` before a loss
   that subtracts the two.
"""

# %%
# The problem: it runs, and it is wrong
# -------------------------------------
# The training loop runs, the loss is a number, and the model is bad. What do you see?
#
# .. list-table::
#    :header-rows: 1
#    :widths: 55 45
#
#    * - what you see
#      - a usual cause
#    * - the loss stops falling early, all predictions are alike
#      - `1. Broadcasting`_
#    * - cross entropy stays high, though the predictions are right
#      - `2. softmax before cross_entropy`_
#    * - the weights swing and do not settle
#      - `3. zero_grad is missing`_
#    * - the same input gives different predictions
#      - `4. eval is missing`_
#    * - the best checkpoint has the values of the last epoch
#      - `5. state_dict is not a copy`_
#    * - colors are mixed, pictures look scrambled
#      - `6. reshape instead of permute`_
#    * - only a batch with one sample is wrong
#      - `7. squeeze`_
#    * - the loss grows, with a small learning rate
#      - `8. detach on the wrong side`_
#    * - two runs from one checkpoint disagree
#      - `9. Two optimizers share their state`_
#    * - a Jacobian or a Hessian is zero
#      - `10. A Jacobian in inference mode`_
#    * - the loss does not change at all
#      - Exercise_
#
# PyTorch checks whether it can compute a line. It cannot know what you meant, so **write what you rely on as an assert, where
# you first rely on it.** Below, each mistake begins with the wrong line in red, and the right one in green with its assert.
# The code after it runs both.

# %%
# What people get wrong
# ---------------------
# 1. Broadcasting
# ~~~~~~~~~~~~~~~
# A model returns the shape ``(20, 1)``, and the targets have the shape ``(20,)``. Their difference is broadcast to
# ``(20, 20)``: each prediction is compared with *every* target. The best answer to all of them is their mean, so the fitted
# line is flat: its slope is 0 instead of 2.
#
# .. code-block:: diff
#
#    - prediction = model(x)
#    + prediction = model(x).squeeze(1)
#    + assert prediction.shape == target.shape
#      loss = ((prediction - target) ** 2).mean()

import torch
from torch import nn

x = torch.linspace(-1, 1, 20)[:, None]
target = (2 * x + 1)[:, 0]


def fit(squeeze):
    model = nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
    for _ in range(100):
        prediction = model(x).squeeze(1) if squeeze else model(x)
        loss = ((prediction - target) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return prediction.detach(), round(model.weight.item(), 2) + 0.0


flat, slope = fit(squeeze=False)
fitted, right_slope = fit(squeeze=True)
print("slope, wrong:", slope, "  right:", right_slope)

# sphinx_gallery_start_ignore
import warnings

assert (slope, right_slope) == (0, 2) and fitted.shape == target.shape != flat.shape
for _warns in (
    nn.functional.mse_loss,
    nn.functional.l1_loss,
    nn.functional.smooth_l1_loss,
    nn.functional.huber_loss,
):
    with warnings.catch_warnings(record=True) as _seen:
        warnings.simplefilter("always")
        _warns(flat, target)
    assert "Using a target size" in str(_seen[0].message)
with warnings.catch_warnings(record=True) as _seen:
    warnings.simplefilter("always")
    ((flat - target) ** 2).mean()
assert not _seen
# sphinx_gallery_end_ignore

# %%
# ``nn.functional.mse_loss`` warns about different sizes, but your own formula is silent.
#
# 2. softmax before cross_entropy
# ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
# ``cross_entropy`` applies ``log_softmax`` itself, so give it the scores of the last layer (the *logits*). It takes
# probabilities for scores between 0 and 1. With three classes, the loss then stays above 0.55, however good the model is.
#
# .. code-block:: diff
#
#    - model = nn.Sequential(nn.Linear(3, 3), nn.Softmax(dim=1))
#    + model = nn.Sequential(nn.Linear(3, 3))
#    + assert not isinstance(model[-1], nn.Softmax)
#      loss = nn.functional.cross_entropy(model(x), label)

scores, label = torch.tensor([[20.0, 1.0, -3.0]]), torch.tensor([0])

loss = nn.functional.cross_entropy(scores.softmax(dim=1), label).item()
right_loss = nn.functional.cross_entropy(scores, label).item()
print(f"loss, wrong: {loss:.2f}   right: {right_loss:.2f}")

# sphinx_gallery_start_ignore
assert abs(loss - 0.5514) < 1e-4 and right_loss < 1e-6
torch.manual_seed(0)
_given = torch.cat([torch.randn(1000, 3).mul(9).softmax(dim=1), torch.eye(3)])
_loss = nn.functional.cross_entropy(_given, torch.zeros(1003).long(), reduction="none")
assert _loss.min() > 0.5514
_last = nn.Softmax(dim=1)
assert torch.equal(_last(scores), scores.softmax(dim=1))
# sphinx_gallery_end_ignore

# %%
# 3. zero_grad is missing
# ~~~~~~~~~~~~~~~~~~~~~~~
# :ref:`Gradients add up <sphx_glr_gallery_differentiation_accumulation.py>` until you clear them. Without that, each step uses
# the sum of all gradients so far.
#
# .. code-block:: diff
#
#    + optimizer.zero_grad()
#    + assert all(p.grad is None for p in model.parameters())
#      loss.backward()


def descend(clear):
    w = nn.Parameter(torch.tensor(0.0))
    optimizer = torch.optim.SGD([w], lr=0.1)
    path = []
    for _ in range(60):
        path.append(w.item())
        if clear:
            optimizer.zero_grad()
        loss = (w - 3) ** 2
        loss.backward()
        optimizer.step()
    return path


path, right_path = descend(clear=False), descend(clear=True)
print(f"last weight, wrong: {path[-1]:.2f}   right: {right_path[-1]:.2f}")

# sphinx_gallery_start_ignore
assert round(right_path[-1], 2) == 3 and max(path[30:]) > 5.5 and min(path[30:]) < 0.5
assert right_path == sorted(right_path)
for _optimizer in ("SGD", "Adam", "LBFGS"):
    _p = torch.ones(2, requires_grad=True)
    _optimizer = getattr(torch.optim, _optimizer)([_p])
    _p.sum().backward()
    assert _p.grad is not None
    _optimizer.zero_grad()
    assert _p.grad is None
# sphinx_gallery_end_ignore

# %%
# .. how-measured:: This code draws the fits of mistake 1 and the paths of mistake 3.

import matplotlib.pyplot as plt


def plot_fits_and_paths():
    _, (left, right) = plt.subplots(1, 2, figsize=(7, 3), layout="constrained")
    left.plot(x, target, "o", color="#64748b", markersize=4, label="targets")
    left.plot(x, fitted, color="#2563eb", label="same shapes")
    left.plot(x, flat, "--", color="#c2410c", label="broadcast")
    left.set(xlabel="x", ylabel="y")
    left.set_title("1. The fit is flat")
    right.plot(right_path, color="#2563eb", label="with zero_grad")
    right.plot(path, "--", color="#c2410c", label="without")
    right.set(xlabel="step", ylabel="weight", ylim=(-0.5, 8.5))
    right.set_title("3. The weight swings around 3")
    for ax in (left, right):
        ax.legend(frameon=False, fontsize=8)


# %%
# Mistakes 1 and 3 as you would see them in a plot:

plot_fits_and_paths()

# figure: Two panels. On the left, points on a rising line; the right fit goes through them, the fit with broadcasting
#   is horizontal at their mean. On the right, the weight over 60 steps: with zero_grad it rises to 3 and stays,
#   without it swings between 0 and 6.

# sphinx_gallery_start_ignore
assert torch.allclose(flat, target.mean().expand(20, 1), atol=1e-3)
assert torch.allclose(fitted, target, atol=1e-3)
assert min(path) > -0.5 and max(path) < 6.5
# sphinx_gallery_end_ignore

# %%
# 4. eval is missing
# ~~~~~~~~~~~~~~~~~~
# Until you call ``model.eval()``, dropout sets a random part of its input to 0, and ``BatchNorm`` uses the mean of the batch.
# ``torch.no_grad()`` changes neither. In ``forward``, write ``F.dropout(h, training=self.training)``: without the argument it
# drops after ``eval()`` too. Call ``model.train()`` before you train on.
#
# .. code-block:: diff
#
#    + model.eval()
#    + assert not any(layer.training for layer in model.modules())
#      prediction = model(sample)

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 64), nn.Dropout(0.5), nn.Linear(64, 1))
sample = torch.ones(1, 4)


@torch.no_grad()
def predict_twice():
    return [round(model(sample).item(), 2) for _ in range(2)]


model.eval()
right_twice = predict_twice()
model.train()
twice = predict_twice()

print("same input, wrong:", twice, "  right:", right_twice)

# sphinx_gallery_start_ignore
assert twice[0] != twice[1] and right_twice[0] == right_twice[1]
_norm, _batch = nn.BatchNorm1d(1), torch.tensor([[1.0], [3.0]])
with torch.no_grad():
    _before = _norm(_batch)[0]
    assert _norm.running_mean != 0  # changed, without gradients too
    _norm.eval()
    assert _norm(_batch)[0] != _before


class _Drops(nn.Module):
    def __init__(self, **options):
        super().__init__()
        self.options = options

    def forward(self, h):
        options = {"training": self.training} if self.options else {}
        return nn.functional.dropout(h, **options)


for _given, _zeros in (({}, True), ({"training": True}, False)):
    _drops = _Drops(**_given).eval()
    assert not any(layer.training for layer in _drops.modules())
    assert (_drops(torch.ones(100)) == 0).any() == _zeros
# sphinx_gallery_end_ignore

# %%
# 5. state_dict is not a copy
# ~~~~~~~~~~~~~~~~~~~~~~~~~~~
# You keep the best weights and train on. But the tensors in ``state_dict()`` share their memory with the parameters, so they
# follow each step of the optimizer. Copy them, or save a file.
#
# .. code-block:: diff
#
#    - best = model.state_dict()
#    + best = copy.deepcopy(model.state_dict())
#    + assert best["weight"].data_ptr() != model.weight.data_ptr()

import copy

model = nn.Linear(1, 1, bias=False)
nn.init.zeros_(model.weight)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
lowest = float("inf")

for _ in range(9):
    loss = (model.weight - 3).square().sum()  # of nine steps, lowest at 2.81
    if loss.item() < lowest:
        lowest = loss.item()
        best, copied = model.state_dict(), copy.deepcopy(model.state_dict())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

kept, right_kept = (round(s["weight"].item(), 2) for s in (best, copied))
print("best weight, wrong:", kept, "  right:", right_kept)

# sphinx_gallery_start_ignore
assert kept == round(model.weight.item(), 2) and (kept - 3) ** 2 > lowest + 0.5
assert abs((copied["weight"].item() - 3) ** 2 - lowest) < 1e-6
assert best["weight"].data_ptr() == model.weight.data_ptr()
assert copied["weight"].data_ptr() != model.weight.data_ptr()
# sphinx_gallery_end_ignore

# %%
# 6. reshape instead of permute
# ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
# This image has its three colors last, and the model wants them first. Both calls return the shape ``(3, 6, 6)``, but only
# ``permute`` moves the dimension. ``reshape`` keeps the order of the numbers, so the red picture turns gray: the mean of each
# color is one third.
#
# .. code-block:: diff
#
#    - planes = image.reshape(3, 6, 6)
#    + planes = image.permute(2, 0, 1)
#    + assert torch.equal(planes[0], image[..., 0])

image = torch.zeros(6, 6, 3)
image[..., 0] = 1  # red

planes = image.reshape(3, 6, 6)
right_planes = image.permute(2, 0, 1)


def red(planes):
    return round(planes[0].mean().item(), 2)


print("mean of red, wrong:", red(planes), "  right:", red(right_planes))

# sphinx_gallery_start_ignore
assert (red(planes), red(right_planes)) == (0.33, 1)
assert torch.equal(right_planes[0], image[..., 0])
assert not torch.equal(planes[0], image[..., 0])
assert planes.shape == right_planes.shape == (3, 6, 6)
assert torch.allclose(planes.mean(dim=(1, 2)), torch.full((3,), 1 / 3))
# sphinx_gallery_end_ignore

# %%
# 7. squeeze
# ~~~~~~~~~~
# You want to remove the last dimension of ``(batch, time, 1)``, and take the mean over the batch. With one sample in the batch,
# ``squeeze()`` removes the batch too, and the mean is over time. So name the dimension.
#
# .. code-block:: diff
#
#    - series = signals.squeeze()
#    + series = signals.squeeze(-1)
#    + assert series.shape == signals.shape[:2]

signals = torch.tensor([[[1.0], [2.0], [6.0]]])  # one sample, three times

series = signals.squeeze()
right_series = signals.squeeze(-1)

wrong, right = series.mean(dim=0).tolist(), right_series.mean(dim=0).tolist()
print("mean over the batch, wrong:", wrong, "  right:", right)

# sphinx_gallery_start_ignore
assert series.mean(dim=0) == 3 and right_series.shape == signals.shape[:2]
assert series.shape != signals.shape[:2]
assert torch.ones(2, 3, 1).squeeze().shape == torch.ones(2, 3, 1).squeeze(-1).shape
# sphinx_gallery_end_ignore

# %%
# 8. detach on the wrong side
# ~~~~~~~~~~~~~~~~~~~~~~~~~~~
# In reinforcement learning, an estimate should approach a goal, which contains the model's next estimate. Only the estimate
# should move. With ``detach`` on the estimate, the loss is the same, but the gradient has the wrong sign.
#
# .. code-block:: diff
#
#    - loss = (estimate.detach() - goal) ** 2
#    + goal = goal.detach()
#    + assert estimate.requires_grad and not goal.requires_grad
#    + loss = (estimate - goal) ** 2


def step(weight, detach_goal):
    estimate, goal = 2 * weight, 1 + 0.9 * weight  # reward + 0.9 * next value
    if detach_goal:
        goal = goal.detach()
    else:
        estimate = estimate.detach()
    loss = (estimate - goal) ** 2
    (gradient,) = torch.autograd.grad(loss, weight)
    return loss.item(), gradient.item()


weight = torch.tensor(0.0, requires_grad=True)
loss, gradient = step(weight, detach_goal=False)
right_loss, right_gradient = step(weight, detach_goal=True)
print(f"loss, wrong: {loss:.1f}   right: {right_loss:.1f}")
print(f"gradient, wrong: {gradient:.1f}   right: {right_gradient:.1f}")


# sphinx_gallery_start_ignore
def _last_loss(detach_goal):
    weight = torch.tensor(0.0, requires_grad=True)
    for _ in range(100):
        loss, gradient = step(weight, detach_goal)
        weight = (weight - 0.05 * gradient).detach().requires_grad_()
    return loss


assert (loss, right_loss, round(gradient, 2), right_gradient) == (1, 1, 1.8, -4)
assert _last_loss(True) < 1e-6 and _last_loss(False) > 1e6
# sphinx_gallery_end_ignore

# %%
# 9. Two optimizers share their state
# ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
# You train two copies of a model, and pass the state of the first optimizer to the second. ``load_state_dict`` does not copy
# tensors that already fit, so both optimizers write to the same momentum, and the same step gives different weights.
#
# .. code-block:: diff
#
#    - two.load_state_dict(one.state_dict())
#    + two.load_state_dict(copy.deepcopy(one.state_dict()))
#    + mine, other = (next(iter(o.state.values())) for o in (one, two))
#    + assert mine["momentum_buffer"] is not other["momentum_buffer"]


def step(optimizer, weight):
    optimizer.zero_grad()
    (weight**2).backward()
    optimizer.step()


def two_runs(pass_on):
    first = torch.tensor(1.0, requires_grad=True)
    one = torch.optim.SGD([first], lr=0.1, momentum=0.9)
    step(one, first)
    second = first.detach().clone().requires_grad_()
    two = torch.optim.SGD([second], lr=0.1, momentum=0.9)
    two.load_state_dict(pass_on(one.state_dict()))
    step(one, first)
    step(two, second)
    # sphinx_gallery_start_ignore
    mine, other = (next(iter(o.state.values())) for o in (one, two))
    _shared.append(mine["momentum_buffer"] is other["momentum_buffer"])
    # sphinx_gallery_end_ignore
    return [round(first.item(), 3), round(second.item(), 3)]


# sphinx_gallery_start_ignore
_shared = []
# sphinx_gallery_end_ignore
weights = two_runs(pass_on=lambda state: state)
right_weights = two_runs(pass_on=copy.deepcopy)
print("two weights, wrong:", weights, "  right:", right_weights)

# sphinx_gallery_start_ignore
assert right_weights == [0.46, 0.46] and weights == [0.46, 0.334]
assert _shared == [True, False]

import io


def _through_a_file(state):
    file = io.BytesIO()
    torch.save(state, file)
    file.seek(0)
    return torch.load(file)


assert two_runs(_through_a_file) == right_weights
for _dtype, _same in ((torch.float32, True), (torch.float64, False)):
    _p = torch.ones(2, requires_grad=True)
    _q = torch.ones(2, dtype=_dtype, requires_grad=True)
    _one, _two = torch.optim.Adam([_p]), torch.optim.Adam([_q])
    _p.sum().backward()
    _one.step()
    _two.load_state_dict(_one.state_dict())
    for _name in ("exp_avg", "exp_avg_sq"):
        _pointers = [o.state[t][_name].data_ptr() for o, t in ((_one, _p), (_two, _q))]
        assert (_pointers[0] == _pointers[1]) == _same
# sphinx_gallery_end_ignore

# %%
# 10. A Jacobian in inference mode
# ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
# ``torch.autograd.functional`` needs a graph, and :ref:`inference mode <sphx_glr_gallery_modes_grad_modes.py>` records none, so
# the result is zero. ``torch.func.jacrev`` is right in the mode too. If you stay with ``functional.jacobian``, write
# ``assert not torch.is_inference_mode_enabled()`` before it, or pass ``strict=True`` to get an error instead of zero.
#
# .. code-block:: diff
#
#    - slope = torch.autograd.functional.jacobian(cube, point)
#    + slope = torch.func.jacrev(cube)(point)


def cube(x):
    return x**3


point = torch.tensor(2.0)
with torch.inference_mode():
    slope = torch.autograd.functional.jacobian(cube, point).item()
    right_slope = torch.func.jacrev(cube)(point).item()
print("slope, wrong:", slope, "  right:", right_slope)

# sphinx_gallery_start_ignore
assert (slope, right_slope) == (0, 12)
_functional, _raised = torch.autograd.functional, []
with torch.inference_mode():
    assert _functional.hessian(lambda x: x**3, point) == 0
    for _call in (_functional.jacobian, _functional.hessian):
        try:
            _call(lambda x: x**3, point, strict=True)
        except RuntimeError as error:
            _raised.append("strict mode" in str(error))
assert _raised == [True, True]
with torch.no_grad():
    assert _functional.jacobian(lambda x: x**3, point) == 12
_raised = []
with torch.inference_mode():
    _made_inside = torch.tensor(2.0)
    for _point in (point, _made_inside):
        assert torch.func.jacrev(lambda x: x**3)(_point) == 12
        assert _functional.jacobian(lambda x: x**3, _point, vectorize=True) == 0
    with torch.inference_mode(False):
        assert _functional.jacobian(lambda x: x**3, _made_inside.clone()) == 12
        try:
            _functional.jacobian(lambda x: x**3, _made_inside)
        except RuntimeError as error:
            _raised.append("requires_grad=True on inference tensor" in str(error))
assert _raised == [True]
# sphinx_gallery_end_ignore

# %%
# Asserts with a trap
# -------------------
# **assert with ==.** ``==`` compares element by element, and ``assert`` wants one answer:

a = torch.tensor([0.1, 0.2, 0.3])
b = 3 * a / 3
b[2] += 1e-3

try:
    assert a == b
except RuntimeError as error:
    message = str(error)
    print("RuntimeError:", message)

# sphinx_gallery_start_ignore
assert "more than one value is ambiguous" in message
# sphinx_gallery_end_ignore

# %%
# ``torch.equal`` gives one. For computed floats use ``torch.testing.assert_close``, which allows for rounding and says what
# differs:

try:
    torch.testing.assert_close(a, b)
except AssertionError as error:
    message = str(error)
    print(message)

# sphinx_gallery_start_ignore
assert "Mismatched elements: 1 / 3" in message
torch.testing.assert_close(a, a * (1 + 1e-7))
assert not torch.equal(a, a * (1 + 1e-6))
# sphinx_gallery_end_ignore

# %%
# **Asserts that are switched off.** ``python -O`` skips asserts. So test what comes from outside, such as files and arguments,
# with ``if`` and ``raise``.

# %%
# Exercise
# --------
# A layer gets a new weight after the optimizer was made. What does the step change? Which assert would have found it?
#
# .. code-block:: python
#
#    model = nn.Linear(1, 1, bias=False)
#    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
#    model.weight = nn.Parameter(torch.tensor([[2.0]]))
#
# .. solution::
#
# Nothing, because the optimizer still holds the old weight, which gets no gradient. Compare what the optimizer holds with what
# the model has, by ``id``: ``assert trained <= held``.

model = nn.Linear(1, 1, bias=False)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model.weight = nn.Parameter(torch.tensor([[2.0]]))

model(torch.ones(1, 1)).square().sum().backward()
optimizer.step()
after = model.weight.item()

held = {id(p) for group in optimizer.param_groups for p in group["params"]}
trained = {id(p) for p in model.parameters() if p.requires_grad}
print("weight after the step:", after)
print("the optimizer holds what is trained:", trained <= held)

# predict: after -- The weight was 2. What is it after the step?

# sphinx_gallery_start_ignore
assert after == 2 and model.weight.grad == 4 and not trained <= held
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
held = {id(p) for group in optimizer.param_groups for p in group["params"]}
assert trained <= held
optimizer.step()
assert abs(model.weight.item() - 1.6) < 1e-6
# sphinx_gallery_end_ignore

# %%
# Make the optimizer after the last change to the model, or copy the new values into the old parameter.

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_graphs_why_is_grad_none.py`: another reason why a parameter is not trained.
# - :ref:`sphx_glr_gallery_tensors_copy_table.py`: which operations share memory.
# - :ref:`sphx_glr_gallery_differentiation_inplace_and_versions.py`: writes through ``.data``, which autograd overlooks.
# - In PyTorch's reference: `Broadcasting semantics
#   <https://docs.pytorch.org/docs/stable/notes/broadcasting.html>`__ and `torch.testing
#   <https://docs.pytorch.org/docs/stable/testing.html>`__.
