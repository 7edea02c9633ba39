r"""
Gradient descent from scratch: fit a curve without an optimizer
===============================================================

.. index::
   single: gradient descent by hand
   single: update the weights without an optimizer
   single: fit a curve, linear regression in PyTorch
   single: w.grad is None in the second step
   single: learning rate too large, the loss diverges or is NaN
   single: forget to clear the gradients, zero_grad

.. in-short::

   Call ``backward()``, change the parameters in place under ``no_grad``, then clear their gradients:

   .. code-block:: python

      loss.backward()
      with torch.no_grad():
          w -= lr * w.grad
          b -= lr * b.grad
      w.grad = b.grad = None

   Make ``w`` and ``b`` leaves that require grad. With ``w = w - lr * w.grad``, ``w`` is a new tensor, and the second step
   fails. If ``lr`` is too large, the loss grows: on this page above 0.0089. For momentum or Adam, use ``torch.optim``.
"""

# %%
# Fit two numbers to 100 points
# -----------------------------
# This is the whole of training, with two weights in place of millions. You want ``w`` and ``b`` so that the curve
# :math:`w x^2 + b` is close to 100 noisy points. Start with any two numbers, compute the loss, and call ``backward()``:

import torch

torch.manual_seed(100)
x = torch.linspace(-1, 1, 100).unsqueeze(1)
noise = 0.2 * torch.rand(x.shape)
y = 3 * x**2 + 2 + noise

w = torch.randn(1, 1, requires_grad=True)
b = torch.zeros(1, 1, requires_grad=True)
r = w * x**2 + b - y
loss = (r**2).sum()
loss.backward()

# graph: loss -- One step: a hundred rows on the way, and one number in each leaf

# sphinx_gallery_start_ignore
assert abs(w.item() - 0.2437) < 1e-4 and x.shape == y.shape == (100, 1)
assert w.is_leaf and b.is_leaf and not x.requires_grad and not y.requires_grad
assert noise.min() >= 0 and noise.max() < 0.2
assert abs(loss.item() - 992.99) < 0.02
assert w.grad.shape == b.grad.shape == (1, 1) and x.grad is None and y.grad is None
# sphinx_gallery_end_ignore

# %%
# ``x`` and ``y`` are data, so they require no gradient. Both gradients are negative, so the loss falls if you raise ``w`` or
# ``b`` a little. All 100 rows use the same ``w``, so backward adds up 100 contributions. By hand, with :math:`r_i` for the
# residuals:
#
# .. math::
#
#    \frac{\partial L}{\partial w} = \sum_i 2 r_i x_i^2, \qquad \frac{\partial L}{\partial b} = \sum_i 2 r_i

with torch.no_grad():
    by_hand = (2 * r * x**2).sum(), (2 * r).sum()

print(f"backward(): {w.grad.item():.2f} and {b.grad.item():.2f}")
print(f"by hand:    {by_hand[0].item():.2f} and {by_hand[1].item():.2f}")

# sphinx_gallery_start_ignore
torch.testing.assert_close(w.grad[0, 0], by_hand[0])
torch.testing.assert_close(b.grad[0, 0], by_hand[1])
assert abs(w.grad.item() + 257.12) < 0.01 and abs(b.grad.item() + 607.97) < 0.01
with torch.no_grad():
    for _dw, _db in ((0.01, 0), (0, 0.01)):
        assert (((w + _dw) * x**2 + b + _db - y) ** 2).sum() < loss
# sphinx_gallery_end_ignore

# %%
# Update under no_grad, then clear
# --------------------------------
# Gradient descent subtracts the gradient, times a learning rate:

lr = 0.001
start = w.item()

with torch.no_grad():
    w -= lr * w.grad
    b -= lr * b.grad
w.grad = b.grad = None

print(f"after one step: w = {w.item():.4f}, b = {b.item():.4f}")
print("w.is_leaf:", w.is_leaf, "  w.requires_grad:", w.requires_grad)

# sphinx_gallery_start_ignore
assert w.is_leaf and w.requires_grad and w._version == 1 and w.grad is None
assert abs(w.item() - (start + 0.001 * 257.1234)) < 1e-4
# sphinx_gallery_end_ignore

# %%
# - ``-=`` changes the leaf **in place**. ``w`` is still the same tensor, and the next ``backward()`` finds it.
# - ``no_grad`` keeps the update out of the graph: the update is not part of the loss.
# - The gradients are **cleared**, because the next ``backward()`` would add to them.

# %%
# 800 steps
# ---------
# Repeat this 799 times. Each step computes a new loss, with a new graph:

losses = [loss.item()]

for _ in range(799):
    loss = ((w * x**2 + b - y) ** 2).sum()
    loss.backward()
    with torch.no_grad():
        w -= lr * w.grad
        b -= lr * b.grad
    w.grad = b.grad = None
    losses.append(loss.item())

print(f"w = {w.item():.4f}, b = {b.item():.4f}, loss = {losses[-1]:.3f}")

# sphinx_gallery_start_ignore
assert abs(w.item() - 2.9668) < 1e-4 and abs(b.item() - 2.1138) < 1e-4
assert len(losses) == 800 and abs(losses[-1] - 0.3335) < 1e-3
assert all(losses[i + 1] < losses[i] + 1e-3 for i in range(799))
assert losses[10] < 30 and losses[240] < 0.36 and losses[150] > 0.5
assert abs(losses[300] - losses[-1]) < 0.01
_points = torch.cat([x**2, torch.ones_like(x)], dim=1)
_best = torch.linalg.lstsq(_points.double(), y.double())
for _start in (-50.0, 0.0, 30.0):
    _w, _b = (torch.full((1, 1), _s, requires_grad=True) for _s in (_start, -_start))
    for _ in range(2000):
        ((_w * x**2 + _b - y) ** 2).sum().backward()
        with torch.no_grad():
            _w -= lr * _w.grad
            _b -= lr * _b.grad
        _w.grad = _b.grad = None
    assert abs(_w.item() - w.item()) < 1e-3 and abs(_b.item() - b.item()) < 1e-3
assert 0.33 < (_points.double() @ _best.solution - y).square().sum() < 0.34
# sphinx_gallery_end_ignore

# %%
# .. how-measured:: The plot of the points, the fit and the losses.

import matplotlib.pyplot as plt


def plot_fit_and_loss():
    _, (left, right) = plt.subplots(1, 2, figsize=(7, 3.2), layout="constrained")
    left.plot(x, y, "o", color="#94a3b8", markersize=3, label="points")
    some = x[::3]
    left.plot(some, start * some**2, "--", color="#c2410c", label="start")
    left.plot(some, w.item() * some**2 + b.item(), color="#2563eb", label="fit")
    left.set(xlabel="x", ylabel="y", title="The points and the fit")
    left.legend()
    right.semilogy(range(0, 800, 10), losses[::10], color="#2563eb")
    right.set(xlabel="step", ylabel="loss", title="The loss")


# %%
# The fit, and the loss on the way:

# figure: Two panels. On the left, a hundred points around a parabola, with the start, a nearly flat line far below
#   them, and the fit, which runs through them. On the right, the loss over 800 steps on a logarithmic axis. It falls
#   from 993 steeply for ten steps, then slowly, and is flat at 0.334 from about step 250.
plot_fit_and_loss()

# sphinx_gallery_start_ignore
assert (start * x**2).max() < y.min() - 1
# sphinx_gallery_end_ignore

# %%
# The loss stops falling near 0.334. The rest comes from the noise: no curve :math:`w x^2 + b` has a smaller loss on these
# points. Because this loss has a single minimum, every start leads to this fit. For a network, :ref:`the start matters
# <sphx_glr_gallery_training_initialisation.py>`.
#
# The list keeps ``loss.item()``, a plain number. If it kept ``loss``, it would also keep the nodes of 800 graphs.

# %%
# How large may the learning rate be?
# -----------------------------------
# Over ``w`` and ``b``, this loss is a bowl, steep in one direction and flat in the other. The two directions are the
# *eigenvectors* of the matrix of second derivatives, the :ref:`Hessian
# <sphx_glr_gallery_differentiation_jacobian_and_hessian.py>`. In each of them the *eigenvalue* :math:`\lambda` says how fast
# the slope grows on the way from the minimum. With the learning rate :math:`\eta`, one step multiplies the distance to the
# minimum by :math:`1 - \eta \lambda`. The distance shrinks if this factor is between -1 and 1, so the learning rate must be
# below :math:`2 / \lambda_{\max}`:

columns = torch.cat([x**2, torch.ones_like(x)], dim=1)
slow, fast = torch.linalg.eigvalsh(2 * columns.T @ columns).tolist()

print(f"eigenvalues {slow:.2f} and {fast:.2f}, limit {2 / fast:.5f}")
for rate in (0.001, 0.008, 0.009):
    print(f"lr {rate}: factors {1 - rate * slow:+.3f} and {1 - rate * fast:+.3f}")

# sphinx_gallery_start_ignore
_fitted = torch.cat([w, b]).detach()
_hessian = torch.autograd.functional.hessian(
    lambda v: ((columns @ v - y) ** 2).sum(), _fitted
)
torch.testing.assert_close(_hessian.reshape(2, 2), 2 * columns.T @ columns)
assert slow > 0 and abs(2 / fast - 0.00888) < 1e-5
assert 1 - 0.008 * fast > -1 > 1 - 0.009 * fast

# sphinx_gallery_end_ignore

# %%
# The loop as a function, to try other learning rates:


def descend(lr, steps=100, clear=True, reduce=torch.sum, y=y):
    w = torch.full((1, 1), start, requires_grad=True)
    b = torch.zeros(1, 1, requires_grad=True)
    losses = []
    for _ in range(steps):
        loss = reduce((w * x**2 + b - y) ** 2)
        loss.backward()
        with torch.no_grad():
            w -= lr * w.grad
            b -= lr * b.grad
        if clear:
            w.grad = b.grad = None
        losses.append(loss.item())
    return losses, w.item(), b.item()


# %%
# .. how-measured:: The plot of 100 steps with each learning rate.


def plot_losses_for(rates):
    _, ax = plt.subplots(figsize=(7, 3.2), layout="constrained")
    looks = zip(rates, ("--", ":", "-"), ("#c2410c", "#64748b", "#2563eb"), strict=True)
    for rate, style, color in looks:
        course, *_ = descend(rate)
        steps = range(0, len(course), 4)
        ax.semilogy(steps, course[::4], style, color=color, label=f"lr {rate}")
        print(f"lr {rate}: loss in step 99 {course[-1]:.3g}")
    ax.set(xlabel="step", ylabel="loss")
    ax.legend(loc="center right", bbox_to_anchor=(1, 0.6))
    ax.set_title("0.008 converges fast, and 0.009 diverges")


# %%
# Three learning rates, one of them above the limit:

# figure: The loss over 100 steps on a logarithmic axis, for three learning rates. With 0.001 it falls slowly to about
#   1. With 0.008 it falls to 0.334 within fifty steps. With 0.009 it rises in a straight line from 993 to about
#   200000.
plot_losses_for([0.009, 0.001, 0.008])

# sphinx_gallery_start_ignore
_far, _near, _small = (descend(rate)[0] for rate in (0.009, 0.008, 0.001))
assert _far[-1] > 1.5e5 and _far == sorted(_far)
assert abs(_near[50] - 0.3335) < 1e-3 and 1 < _small[-1] < 2
assert descend(0.0088, 800)[0][-1] < 0.3345 and descend(0.0089)[0][-1] > 993
assert -1 < 1 - 0.009 * slow < 1 and fast * 0.01 > 2
_burst, *_ends = descend(0.01, 400)
assert all(torch.tensor(_ends).isnan())
_infinite = _burst.index(float("inf"))
assert all(torch.tensor(_burst[:_infinite]).isfinite()) and 100 < _infinite < 200
_nans = [i for i, value in enumerate(_burst) if value != value]
assert _nans[0] > _infinite
# sphinx_gallery_end_ignore

# %%
# With 0.009, each step along one of the eigenvectors jumps over the minimum and ends farther away than before. The gradient
# there is larger, so the next jump is larger too. With 0.01, the loss overflows ``float32`` to ``inf`` within 200 steps, and
# then ``w`` becomes ``nan``.

# %%
# Why the fit is not exactly 3 and 2
# ----------------------------------
# The fit is 2.9668 and 2.1138. That is the right answer for these points: a least-squares solver finds the same minimum.

solution = torch.linalg.lstsq(columns, y).solution
of_noise = torch.linalg.lstsq(columns, noise).solution

print("fit of y:        ", solution.flatten())
print("fit of the noise:", of_noise.flatten())

# sphinx_gallery_start_ignore
torch.testing.assert_close(_fitted, solution, rtol=0, atol=5e-5)
_true = torch.tensor([[3.0], [2.0]])
torch.testing.assert_close(_true + of_noise, solution, rtol=0, atol=5e-5)
assert abs(((columns @ solution - y) ** 2).sum().item() - losses[-1]) < 1e-4
assert of_noise[0] < 0 < of_noise[1] and abs(noise.mean() - 0.1) < 0.005
_x = torch.linspace(-1, 1, 200_000, dtype=torch.float64).unsqueeze(1)
_columns = torch.cat([_x**2, torch.ones_like(_x)], 1)
_many = 3 * _x**2 + 2 + 0.2 * torch.rand_like(_x)
_w, _b = torch.linalg.lstsq(_columns, _many).solution
assert abs(_w - 3) < 2e-3 and abs(_b - 2.1) < 1e-3
# sphinx_gallery_end_ignore

# %%
# 3 and 2, plus the fit of the noise, is the solution. The noise has a mean of about 0.1, because ``0.2 * torch.rand`` draws
# between 0 and 0.2. So with 200,000 points, ``w`` is close to 3, but ``b`` is close to 2.1.

# %%
# What people get wrong
# ---------------------
# **w is a new tensor.** The operation is recorded, so the new ``w`` is a result. In the second step its ``.grad`` is ``None``:

# sphinx_gallery_start_ignore
import warnings as _warnings

_said = []
_warnings.simplefilter("ignore")
try:
    # sphinx_gallery_end_ignore
    w = torch.zeros(1, 1, requires_grad=True)
    for step in (1, 2):
        print("step", step)
        loss = ((w * x**2 + 2 - y) ** 2).sum()
        loss.backward()
        w = w - lr * w.grad
# sphinx_gallery_start_ignore
except TypeError as error:
    _said.append(f"TypeError: {error}")
    print(_said[0])
_warnings.simplefilter("default")
assert step == 2 and "'float' and 'NoneType'" in _said[0]
assert not w.is_leaf
# sphinx_gallery_end_ignore

# %%
# **w is new, under no_grad.** The new ``w`` does not require grad, so the second loss has no graph:

# sphinx_gallery_start_ignore
try:
    # sphinx_gallery_end_ignore
    w = torch.zeros(1, 1, requires_grad=True)
    for step in (1, 2):
        print("step", step)
        loss = ((w * x**2 + 2 - y) ** 2).sum()
        loss.backward()
        with torch.no_grad():
            w = w - lr * w.grad
# sphinx_gallery_start_ignore
except RuntimeError as error:
    _said.append(f"RuntimeError: {error}")
    print(_said[1])
assert step == 2
assert "does not require grad and does not have a grad_fn" in _said[1]
w = torch.ones(1, 1, requires_grad=True)
w.square().sum().backward()
try:
    w -= lr * w.grad
except RuntimeError as error:
    _said.append(str(error))
assert "a leaf Variable that requires grad is being used in an in-place" in _said[2]
_w = 0.1 * torch.randn(1, 1, requires_grad=True)
((_w * x**2 + 2 - y) ** 2).sum().backward()
with _warnings.catch_warnings(), torch.no_grad():
    _warnings.simplefilter("ignore")
    try:
        _w -= lr * _w.grad
    except TypeError as error:
        _said.append(str(error))
assert "'float' and 'NoneType'" in _said[3] and not _w.is_leaf
_w = (0.1 * torch.randn(1, 1)).requires_grad_()
assert _w.is_leaf and _w.requires_grad
_w.sum().backward()
_w.data -= lr * _w.grad
assert _w._version == 0
# sphinx_gallery_end_ignore

# %%
# **w -= lr * w.grad without no_grad** raises in the first step: :ref:`a leaf Variable that requires grad is being used in an
# in-place operation <sphx_glr_gallery_errors_leaf_in_place.py>`.
#
# **w is a result from the start.** With ``w = 0.1 * torch.randn(1, 1, requires_grad=True)``, even the right update fails in
# the first step: its ``.grad`` is ``None``. Write ``w = (0.1 * torch.randn(1, 1)).requires_grad_()``.

# %%
# **Forgetting to clear.** Each step then uses the sum of all gradients so far. There is no error, and the fit is useless.
# These are the same 800 steps, with and without clearing:

for clear in (True, False):
    course, last_w, last_b = descend(0.001, 800, clear=clear)
    print(f"cleared: {clear!s:<6} w = {last_w:.3f}, b = {last_b:.3f}", end="  ")
    print(f"last loss {course[-1]:.3g}, smallest {min(course):.3g}")

# sphinx_gallery_start_ignore
assert abs(last_b + 0.958) < 0.02 and abs(course[-1] - 981) < 5
assert max(course[700:]) > 900 and min(course) > 2 * losses[-1]
_turns = sum(
    (course[i] - course[i - 1]) * (course[i + 1] - course[i]) < 0 for i in range(1, 799)
)
assert _turns > 20 and max(course[-50:]) > course[-1] + 1 > min(course[-50:]) + 100
# sphinx_gallery_end_ignore

# %%
# The loss goes up and down until the end. :ref:`Gradient accumulation
# <sphx_glr_gallery_differentiation_accumulation.py>` shows why.

# %%
# **y has the shape (100,).** Then ``w * x**2 + b - y`` has the shape ``(100, 100)``, without an error: each prediction is
# compared with every ``y``. With the mean as the loss:

_, flat_w, flat_b = descend(0.1, 800, reduce=torch.mean, y=y.flatten())
print(f"w = {flat_w:.4f}, b = {flat_b:.4f}, mean of y: {y.mean().item():.4f}")

# sphinx_gallery_start_ignore
assert abs(flat_w) < 1e-3 and abs(flat_b - y.mean()) < 1e-3
assert (w * x**2 + b - y.flatten()).shape == (100, 100)
assert not torch.tensor(descend(0.001, 800, y=y.flatten())[1]).isfinite()
with _warnings.catch_warnings(record=True) as _caught:
    _warnings.simplefilter("always")
    torch.nn.functional.mse_loss((w * x**2 + b).detach(), y.flatten())
assert len(_caught) == 1 and "target size" in str(_caught[0].message)
# sphinx_gallery_end_ignore

# %%
# The fit is a flat line at the mean of ``y``. ``F.mse_loss`` would have warned you. In your own loss, write ``assert
# prediction.shape == y.shape``.

# %%
# Exercise
# --------
# Replace ``.sum()`` in the loss by ``.mean()``. Which learning rate gives the same path of ``w`` and ``b``? How large
# may it be now?
#
# .. solution::
#
# The mean is the sum divided by 100, and so are its gradients and its Hessian. So a learning rate of 0.1 gives the same path,
# and the limit rises from 0.0089 to 0.89.

_, mean_w, mean_b = descend(0.1, 800, reduce=torch.mean)
_, sum_w, sum_b = descend(0.001, 800)

print(f"mean, lr 0.1:  w = {mean_w:.4f}, b = {mean_b:.4f}")
print(f"sum, lr 0.001: w = {sum_w:.4f}, b = {sum_b:.4f}")
print(f"limit for the mean: {2 / (fast / 100):.3f}")

# sphinx_gallery_start_ignore
assert abs(mean_w - sum_w) < 1e-4 and abs(mean_b - sum_b) < 1e-4
_paths = [descend(0.001)[0], descend(0.1, reduce=torch.mean)[0]]
torch.testing.assert_close(
    torch.tensor(_paths[0]) / 100, torch.tensor(_paths[1]), rtol=1e-3, atol=1e-6
)
assert abs(100 * 2 / fast - 0.888) < 1e-3
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_training_optimizers.py`, updates that remember earlier gradients.
# - :ref:`sphx_glr_gallery_graphs_leaves_and_roots.py`, which tensors get a ``.grad``.
# - :ref:`sphx_glr_gallery_tensors_detach_clone_data.py`, why ``w.data -= lr * w.grad`` works and what it hides.
# - In PyTorch's reference: `torch.no_grad
#   <https://docs.pytorch.org/docs/stable/generated/torch.no_grad.html>`__ and `torch.linalg.lstsq
#   <https://docs.pytorch.org/docs/stable/generated/torch.linalg.lstsq.html>`__.
