r"""
Gradient descent by hand: fit a curve with backward() and no optimizer
======================================================================

Two numbers are to be found, ``w`` and ``b``, so that :math:`w x^2 + b` runs through a hundred noisy points. Four
steps do it: compute the loss, call ``backward()``, move ``w`` and ``b`` against their gradients, clear the
gradients. The last two are what an optimizer does for you. Without one you see what it has to respect: which
tensors are leaves, what is recorded, and what stays in ``.grad``.
"""

# %%
# The points
# ----------
# A parabola with noise. ``torch.rand`` draws between 0 and 1, so the noise lies between 0 and 0.2. ``x`` and ``y``
# require no gradient: they are data, and will not be moved.

import warnings

import matplotlib.pyplot as plt
import pandas as pd
import torch

torch.manual_seed(100)
x = torch.linspace(-1, 1, 100).unsqueeze(1)
noise = 0.2 * torch.rand(x.shape)
y = 3 * x**2 + 2 + noise

w = torch.randn(1, 1, requires_grad=True)
b = torch.zeros(1, 1, requires_grad=True)
start = w.item()

print("shapes:", tuple(x.shape), tuple(y.shape), tuple(w.shape), tuple(b.shape))
print(f"start:  w = {w.item():.4f}, b = {b.item():.4f}")

# sphinx_gallery_start_ignore
assert abs(start - 0.2437) < 1e-4 and x.shape == y.shape == (100, 1)
assert w.is_leaf and b.is_leaf and not x.requires_grad and not y.requires_grad
assert noise.min() >= 0 and noise.max() < 0.2
# sphinx_gallery_end_ignore

# %%
# One step
# --------
# **Forward and backward.** Each operation that involves ``w`` or ``b`` leaves a node. ``backward()`` walks the nodes
# from ``loss`` to the leaves, and stores two gradients.

r = w * x**2 + b - y
loss = (r**2).sum()
loss.backward()

# graph: loss -- One step: a hundred rows on the way, and one number in each leaf

print(f"loss = {loss.item():.2f}")
print(f"w.grad = {w.grad.item():.2f}   b.grad = {b.grad.item():.2f}")

# sphinx_gallery_start_ignore
assert abs(loss.item() - 992.99) < 0.02
assert w.grad.shape == b.grad.shape == (1, 1)
# sphinx_gallery_end_ignore

# %%
# ``w`` has one row and ``x**2`` has a hundred. The product uses the same ``w`` in every row, so a hundred paths lead
# from the loss back to it, and their contributions add up. By hand, with :math:`r_i` for the residuals:
#
# .. math::
#
#    \frac{\partial L}{\partial w} = \sum_i 2 r_i x_i^2, \qquad \frac{\partial L}{\partial b} = \sum_i 2 r_i

with torch.no_grad():
    by_hand = (2 * r * x**2).sum(), (2 * r).sum()

print(f"by hand: {by_hand[0].item():.2f} and {by_hand[1].item():.2f}")
torch.testing.assert_close(w.grad[0, 0], by_hand[0])
torch.testing.assert_close(b.grad[0, 0], by_hand[1])

# sphinx_gallery_start_ignore
assert abs(w.grad.item() + 257.12) < 0.01 and abs(b.grad.item() + 607.97) < 0.01
# sphinx_gallery_end_ignore

# %%
# **Update and clear.** Both gradients are negative: the loss falls when ``w`` and ``b`` rise. The update changes the
# leaves *in place*, so that they are the same tensors in the next step. It stands under ``no_grad``, since it is no
# part of the loss. Then the gradients go, because the next ``backward()`` would add to them.

lr = 0.001

with torch.no_grad():
    w -= lr * w.grad
    b -= lr * b.grad
w.grad = b.grad = None

print(f"after one step: w = {w.item():.4f}, b = {b.item():.4f}")
print("w.is_leaf:", w.is_leaf, "  w.requires_grad:", w.requires_grad)
print("times that w was written to:", w._version)

# sphinx_gallery_start_ignore
assert w.is_leaf and w.requires_grad and w._version == 1 and w.grad is None
assert abs(w.item() - (start + 0.001 * 257.1234)) < 1e-4
# sphinx_gallery_end_ignore

# %%
# The other 799 steps
# -------------------
# Each round computes a new loss with a new graph. The old graph goes when the name ``loss`` gets the next one.

losses = [loss.item()]

for _ in range(799):
    loss = ((w * x**2 + b - y) ** 2).sum()
    loss.backward()
    with torch.no_grad():
        w -= lr * w.grad
        b -= lr * b.grad
    w.grad = b.grad = None
    losses.append(loss.item())

for step in (0, 1, 10, 100, 799):
    print(f"step {step:>3}   loss {losses[step]:8.3f}")
print(f"w = {w.item():.4f}, b = {b.item():.4f}")

# sphinx_gallery_start_ignore
assert abs(w.item() - 2.9668) < 1e-4 and abs(b.item() - 2.1138) < 1e-4
assert len(losses) == 800 and abs(losses[-1] - 0.3335) < 1e-3
assert all(losses[i + 1] < losses[i] + 1e-3 for i in range(799))
# sphinx_gallery_end_ignore

# %%
# The loss stops falling at 0.334. What is left is the noise: no curve :math:`w x^2 + b` runs through all of the
# points.

# figure: Two panels. On the left, a hundred points around a parabola, with the first guess, a nearly flat line far
#   below them, and the fit, which runs through them. On the right, the loss over 800 steps on a logarithmic axis. It
#   falls from 993 steeply for ten steps, then slowly, and is flat at 0.334 from about step 250.
fig, (left, right) = plt.subplots(1, 2, figsize=(7, 3.2), layout="constrained")
left.plot(x, y, "o", color="#94a3b8", markersize=3, label="points")
left.plot(x, start * x**2, "--", color="#c2410c", label="first guess")
left.plot(x, w.item() * x**2 + b.item(), color="#2563eb", label="fit")
left.set(xlabel="x", ylabel="y")
left.legend()
left.set_title("The points and the fit")
right.semilogy(range(0, 800, 3), losses[::3], color="#2563eb")
right.set(xlabel="step", ylabel="loss")
right.set_title("The loss")

# sphinx_gallery_start_ignore
assert losses[10] < 30 and losses[240] < 0.36 and losses[150] > 0.5
assert (start * x**2).max() < y.min() - 1
# sphinx_gallery_end_ignore

# %%
# Is it the right answer?
# -----------------------
# The points were made with 3 and 2, and the fit says 2.9668 and 2.1138. Nothing is wrong with the descent. The loss
# is quadratic in ``w`` and ``b``, so its minimum can be computed directly, as a least-squares problem with the
# columns :math:`x^2` and 1. Solve it for ``y``, and once more for the noise alone.

columns = torch.cat([x**2, torch.ones_like(x)], dim=1)
solution = torch.linalg.lstsq(columns, y).solution
of_noise = torch.linalg.lstsq(columns, noise).solution
true = torch.tensor([[3.0], [2.0]])
fitted = torch.cat([w, b]).detach()

answers = {
    "800 steps": fitted,
    "least squares for y": solution,
    "made with": true,
    "least squares for the noise": of_noise,
    "the last two added": true + of_noise,
}
table = pd.DataFrame({k: v.flatten().tolist() for k, v in answers.items()}).T
table.columns = ["w", "b"]

print(f"mean of the noise: {noise.mean().item():.4f}")

# sphinx_gallery_start_ignore
torch.testing.assert_close(fitted, solution, rtol=0, atol=5e-5)
assert abs(((columns @ solution - y) ** 2).sum().item() - losses[-1]) < 1e-4
torch.testing.assert_close(true + of_noise, solution, rtol=0, atol=5e-5)
assert abs(noise.mean() - 0.1025) < 1e-4
assert abs((columns @ of_noise).mean() - noise.mean()) < 1e-6

torch.manual_seed(0)
_x = torch.linspace(-1, 1, 200_000, dtype=torch.float64).unsqueeze(1)
_y = 3 * _x**2 + 2 + 0.2 * torch.rand_like(_x)
_w, _b = torch.linalg.lstsq(torch.cat([_x**2, torch.ones_like(_x)], 1), _y).solution
assert abs(_w - 3) < 1e-3 and abs(_b - 2.1) < 1e-3
# sphinx_gallery_end_ignore
table.rename_axis(index=None, columns="answer").map("{:.4f}".format)

# %%
# The descent has found the minimum. ``b`` is above 2 because the noise is not centred: ``rand`` has the mean 0.5,
# so ``0.2 * rand`` has the mean 0.1. The rest is the luck of this sample. With many more points ``w`` goes to 3 and
# ``b`` to 2.1, and still not to 2.

# %%
# How large may the learning rate be?
# -----------------------------------
# Along each principal direction of a quadratic loss, one step multiplies the distance to the minimum by :math:`1 -
# \eta \lambda`. Here :math:`\eta` is the learning rate, and :math:`\lambda` the second derivative in that
# direction, an eigenvalue of the :ref:`Hessian <sphx_glr_gallery_differentiation_jacobian_and_hessian.py>`. The
# factor must lie between -1 and 1, so the learning rate must stay below :math:`2 / \lambda_{\max}`.

hessian = 2 * columns.T @ columns
slow, fast = torch.linalg.eigvalsh(hessian).tolist()

print(f"eigenvalues {slow:.2f} and {fast:.2f}, limit {2 / fast:.5f}")
for rate in (0.001, 0.008, 0.009):
    print(f"lr {rate}: factors {1 - rate * slow:+.3f} and {1 - rate * fast:+.3f}")

# sphinx_gallery_start_ignore
_hessian = torch.autograd.functional.hessian(
    lambda v: ((columns @ v - y) ** 2).sum(), fitted
)
torch.testing.assert_close(_hessian.reshape(2, 2), hessian)
assert 0.008 < 2 / fast < 0.009 and abs(2 / fast - 0.00888) < 1e-5
assert 1 - 0.008 * fast > -1 > 1 - 0.009 * fast
# sphinx_gallery_end_ignore

# %%
# The same descent as a function, with four things to choose:


def descend(lr, steps=100, clear=True, reduce=torch.sum):
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
# Three learning rates, one of them above the limit:

# figure: The loss over 100 steps on a logarithmic axis, for three learning rates. With 0.001 it falls slowly to about
#   1. With 0.008 it falls to 0.334 within fifty steps. With 0.009 it rises in a straight line from 993 to about
#   200000.
fig, ax = plt.subplots(figsize=(7, 3.2), layout="constrained")
for rate, style, color in [
    (0.009, "--", "#c2410c"),
    (0.001, ":", "#64748b"),
    (0.008, "-", "#2563eb"),
]:
    course, *_ = descend(rate)
    ax.semilogy(course, style, color=color, label=f"lr {rate}")
    print(f"lr {rate}: loss in step 99 {course[-1]:.3g}")
ax.set(xlabel="step", ylabel="loss")
ax.legend(loc="center right", bbox_to_anchor=(1, 0.6))
ax.set_title("Just below the limit it is fast, just above it diverges")

# sphinx_gallery_start_ignore
_far, _near, _small = (descend(rate)[0] for rate in (0.009, 0.008, 0.001))
assert _far[-1] > 1.5e5 and _far == sorted(_far)
assert abs(_near[50] - 0.3335) < 1e-3 and 1 < _small[-1] < 2
assert all(torch.tensor(descend(0.01, 420)[1:]).isnan())
# sphinx_gallery_end_ignore

# %%
# Above the limit each step jumps over the minimum to a point that is higher on the other side. The gradient there
# is larger, and so is the next jump. With 0.01 the numbers leave the range of 32 bits within a few hundred steps,
# and ``w`` becomes ``nan``.

# %%
# What people get wrong
# ---------------------
# **An update that is not in place, or not under** ``no_grad``. Three ways to write it, for two steps each:


def rebind(w):
    return w - lr * w.grad


@torch.no_grad()
def rebind_unrecorded(w):
    return w - lr * w.grad


def in_place_but_recorded(w):
    w -= lr * w.grad
    return w


def two_steps(update):
    w = torch.tensor(0.5, requires_grad=True)
    for _ in range(2):
        loss = ((w * x**2 + 2 - y) ** 2).sum()
        loss.backward()
        w = update(w)


# %%
# Each of them fails, and each in its own way:

messages = []
for update in (rebind, rebind_unrecorded, in_place_but_recorded):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            two_steps(update)
        except (TypeError, RuntimeError) as error:
            messages.append(f"{type(error).__name__}: {error}")
    print(f"--- {update.__name__}")
    for warning in caught:
        print("UserWarning:", str(warning.message).split(". ")[0])
    print(messages[-1])

# sphinx_gallery_start_ignore
assert "'float' and 'NoneType'" in messages[0]
assert "does not require grad and does not have a grad_fn" in messages[1]
assert "a leaf Variable that requires grad is being used" in messages[2]
# sphinx_gallery_end_ignore

# %%
# ``w - lr * w.grad`` is a *new* tensor. Recorded, it is a result: in the second step its ``.grad`` is ``None``. Not
# recorded, it requires no gradient: the second loss has no graph. The third changes the leaf itself, but as part of
# the computation, and that is
# :ref:`refused <sphx_glr_gallery_errors_leaf_in_place.py>`. In place *and* under ``no_grad`` is the way.
#
# **Forgetting to clear.** Each step then moves by the sum of all gradients so far. No error, and no fit:

forgotten, last_w, last_b = descend(0.001, 800, clear=False)

print(f"cleared:   w = {w.item():.3f}, b = {b.item():.3f}, last loss {losses[-1]:.3f}")
print(f"forgotten: w = {last_w:.3f}, b = {last_b:.3f}, last loss {forgotten[-1]:.0f}")
print(f"forgotten, smallest loss of all steps: {min(forgotten):.2f}")
assert forgotten[-1] > 1000 * losses[-1]

# sphinx_gallery_start_ignore
assert abs(last_b + 0.958) < 0.02 and abs(forgotten[-1] - 981) < 5
assert max(forgotten[700:]) > 900
# sphinx_gallery_end_ignore

# %%
# Why it swings instead of settling is shown on the page on
# :ref:`accumulation <sphx_glr_gallery_differentiation_accumulation.py>`.
#
# Exercise
# --------
# Replace ``.sum()`` in the loss by ``.mean()``. Which learning rate gives the same path of ``w`` and ``b``? How large
# may it be now?
#
# .. solution::
#
# The mean is the sum divided by 100, and so are its gradients and its Hessian. A learning rate of 0.1 makes up for
# it, and the limit rises from 0.0089 to 0.89. A good learning rate for a sum depends on the number of points, one
# for a mean does not. That is one reason why the loss functions of ``torch.nn`` take the mean unless you ask
# otherwise.

_, mean_w, mean_b = descend(0.1, 800, reduce=torch.mean)

print(f"mean, lr 0.1:  w = {mean_w:.4f}, b = {mean_b:.4f}")
print(f"sum, lr 0.001: w = {w.item():.4f}, b = {b.item():.4f}")
print(f"limit for the mean: {2 / (fast / 100):.3f}")
assert abs(mean_w - w.item()) < 1e-4 and abs(mean_b - b.item()) < 1e-4

# sphinx_gallery_start_ignore
_paths = [descend(0.001)[0], descend(0.1, reduce=torch.mean)[0]]
torch.testing.assert_close(
    torch.tensor(_paths[0]) / 100, torch.tensor(_paths[1]), rtol=1e-3, atol=1e-6
)
_names = ("MSELoss", "L1Loss", "CrossEntropyLoss", "BCEWithLogitsLoss", "NLLLoss")
assert {getattr(torch.nn, name)().reduction for name in _names} == {"mean"}
assert abs(100 * 2 / fast - 0.888) < 1e-3
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - Before: :ref:`sphx_glr_gallery_profiling_cost_of_recording.py`, what the record costs.
# - Next: :ref:`sphx_glr_gallery_training_training_loop.py`, the same loop with a model, batches and an optimizer.
# - :ref:`sphx_glr_gallery_training_optimizers.py`, updates that remember earlier gradients.
# - :ref:`sphx_glr_gallery_graphs_leaves_and_roots.py`, which tensors get a ``.grad``.
# - In PyTorch's reference: `torch.no_grad
#   <https://docs.pytorch.org/docs/stable/generated/torch.no_grad.html>`__ and `torch.linalg.lstsq
#   <https://docs.pytorch.org/docs/stable/generated/torch.linalg.lstsq.html>`__.
