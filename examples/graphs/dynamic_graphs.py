r"""
Dynamic graphs: if, for and while in a model
============================================

.. in-short::

   Write Python's ``if``, ``for`` and ``while`` in ``forward()``. Autograd records only the operations that run in this call, so
   each call can build a different graph. The gradient is that of the branch that was taken. The condition itself gets none. So
   to learn the threshold of ``if x > threshold``, use ``torch.sigmoid((x - threshold) / width)`` as a weight instead.
"""

# %%
# The problem: forward() branches on the data
# -------------------------------------------
# Your model skips inputs, stops early, or loops until a value is reached. Does ``backward()`` still work? This function
# multiplies the positive numbers among its inputs:

import torch


def product_of_positives(numbers):
    result = 1
    for number in numbers:
        if number > 0:
            result = result * number
    return result


x0, x1, x2 = (torch.tensor(v, requires_grad=True) for v in (0.5, -1.0, 4.0))
p = product_of_positives([x0, x1, x2])
p.backward()

# graph: p -- The first call multiplied x0 and x2; x1 is not in the graph

# sphinx_gallery_start_ignore
assert (x0.grad, x1.grad, x2.grad, p) == (4, None, 0.5, 2)
# sphinx_gallery_end_ignore

# %%
# The same function, called with other numbers:

y0, y1, y2 = (torch.tensor(v, requires_grad=True) for v in (3.0, 2.0, 5.0))
q = product_of_positives([y0, y1, y2])
q.backward()

# graph: q -- The second call multiplied all three numbers

# sphinx_gallery_start_ignore
assert (y0.grad, y1.grad, y2.grad, q) == (10, 15, 6, 30)
# sphinx_gallery_end_ignore

# %%
# Autograd recorded the multiplications while they ran, so the graphs contain neither ``if`` nor loop. None ran for ``x1``, so
# ``x1.grad`` is None.

# %%
# In a module: layers that are skipped
# ------------------------------------
# This network stops as soon as the norm of its features is less than 1. Then the skipped layers have no ``.grad``, and
# ``torch.optim.Adam`` leaves them as they are. The input is one sample: for a batch, ``features.norm()`` would be a single
# number, and all samples would stop together. A ``print`` in ``forward`` shows where it stopped:


class EarlyExit(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(4, 4) for _ in range(4))

    def forward(self, features):
        for number, layer in enumerate(self.layers):
            features = torch.tanh(layer(features))
            print(f"layer {number}: norm {features.norm():.2f}")
            if features.norm() < 1:
                break
        return features.sum()


torch.manual_seed(0)
model = EarlyExit()
model(torch.ones(4)).backward()
print("has a gradient:", [layer.weight.grad is not None for layer in model.layers])

# sphinx_gallery_start_ignore
used = [layer.weight.grad is not None for layer in model.layers]
assert used[0] and not used[-1]
before = [[p.detach().clone() for p in layer.parameters()] for layer in model.layers]
for layer, called in zip(model.layers, used, strict=True):
    assert [p.grad is not None for p in layer.parameters()] == [called] * 2
torch.optim.Adam(model.parameters(), weight_decay=0.1).step()
for layer, olds, called in zip(model.layers, before, used, strict=True):
    for parameter, old in zip(layer.parameters(), olds, strict=True):
        assert torch.equal(parameter, old) != called
del layer, olds, parameter, old, called
import io
import pdb


class _Stops(torch.nn.Module):
    def forward(self, features):
        doubled = features * 2
        _debugger.set_trace()
        return doubled.sum()


_session = io.StringIO()
_debugger = pdb.Pdb(
    stdin=io.StringIO("p doubled.tolist()\np doubled.grad_fn.name()\nc\n"),
    stdout=_session,
    readrc=False,
)
_stopped = _Stops()(torch.ones(2, requires_grad=True))
assert "[2.0, 2.0]" in _session.getvalue() and "MulBackward0" in _session.getvalue()
assert _stopped.item() == 4
# sphinx_gallery_end_ignore

# %%
# ``breakpoint()`` in the same place opens Python's debugger, where you can look at ``features.norm()`` or ``features.grad_fn``,
# and go on with ``c``.

# %%
# A loop whose length depends on the value
# ----------------------------------------
# ``grow`` doubles a positive number until it is at least 10, so the value decides how many multiplications are recorded:


def grow(start):
    value = start
    while value < 10:
        value = value * 2
    return value


for number in (7.0, 3.0, 1.0):
    start = torch.tensor(number, requires_grad=True)
    value = grow(start)
    value.backward()
    print(f"grow({number}) = {value.item()}   gradient {start.grad.item()}")

# sphinx_gallery_start_ignore
for number, doublings in ((7.0, 1), (3.0, 2), (1.0, 4), (0.1, 7), (12.0, 0)):
    start = torch.tensor(number, requires_grad=True)
    node, found = grow(start).grad_fn, 0
    while node is not None and node.name() == "MulBackward0":
        node, found = node.next_functions[0][0], found + 1
    assert found == doublings
    assert torch.autograd.grad(grow(start), start)[0] == 2**doublings
del node, start, value
# sphinx_gallery_end_ignore

# %%
# With ``k`` doublings the gradient is ``2**k``. The figure shows where ``k`` changes.
#
# .. how-measured:: plot_growth() draws grow(x) above its gradient.

import matplotlib.pyplot as plt


def plot_growth(starts, values, slopes):
    fig, (top, bottom) = plt.subplots(2, 1, figsize=(7, 4.6), sharex=True)
    for edge in (1.25, 2.5, 5, 10):
        top.axvline(edge, color="#64748b", linewidth=0.8, linestyle=":")
        bottom.axvline(edge, color="#64748b", linewidth=0.8, linestyle=":")
    top.plot(starts.detach(), values.detach(), ".", color="#2563eb", markersize=2)
    top.set(
        title="grow(x) jumps where the number of doublings changes", ylabel="grow(x)"
    )
    bottom.plot(starts.detach(), slopes, ".", color="#c2410c", markersize=2)
    bottom.set(title="Its gradient knows the slopes, not the jumps", ylabel="gradient")
    bottom.set(xlabel="x", yscale="log")
    bottom.set_yticks([1, 2, 4, 8, 16], labels=["1", "2", "4", "8", "16"], minor=False)
    bottom.minorticks_off()
    fig.tight_layout()


# %%
# 800 starts between 0.7 and 12:

starts = torch.linspace(0.7, 12, 800, requires_grad=True)
values = torch.stack([grow(start) for start in starts])
(slopes,) = torch.autograd.grad(values.sum(), starts)
plot_growth(starts, values, slopes)

# figure: Above, grow(x) rises in straight pieces to almost 20 and falls back to 10 at x = 1.25, 2.5, 5 and 10; after
#   that it rises with slope 1. Below, the gradient is a staircase with steps at the same four places: 16, 8, 4, 2
#   and 1 from left to right.

# sphinx_gallery_start_ignore
for low, high, slope in [
    (0.7, 1.25, 16),
    (1.25, 2.5, 8),
    (2.5, 5, 4),
    (5, 10, 2),
    (10, 12, 1),
]:
    inside = (starts > low) & (starts < high)
    assert inside.any() and (slopes[inside] == slope).all()
assert (values >= 10).all() and values.max() < 20
for edge, slope in [(1.25, 8), (2.5, 4), (5, 2), (10, 1)]:
    _at = torch.tensor(float(edge), requires_grad=True)
    assert grow(_at) == 10 and 20 - 1e-4 < grow(edge - 1e-6) < 20
    assert torch.autograd.grad(grow(_at), _at)[0] == slope
# sphinx_gallery_end_ignore

# %%
# At the dotted lines there is no derivative: just left of them ``grow`` is almost 20, and at them it is 10. Autograd raises no
# error there, but returns the slope on the right: at 5 it is 2. From the left, ``grow`` falls by almost 10 however small the
# step:

start = torch.tensor(5.0, requires_grad=True)
print("autograd:", torch.autograd.grad(grow(start), start)[0].item())

for step in (0.1, 0.01, 0.001):
    right = (grow(5 + step) - grow(5)) / step
    left = (grow(5) - grow(5 - step)) / step
    print(f"step {step:<5}   on the right {right:.1f}   on the left {left:.0f}")

# sphinx_gallery_start_ignore
assert torch.autograd.grad(grow(start), start)[0] == 2
for step in (0.1, 0.01, 0.001, 1e-6):
    assert abs((grow(5 + step) - grow(5)) / step - 2) < 1e-6
    assert abs((grow(5) - grow(5 - step)) + 10 - 4 * step) < 1e-9
# sphinx_gallery_end_ignore

# %%
# What people get wrong
# ---------------------
# **Learning a threshold through an if.** The comparison returns a boolean, and autograd does not record it. So ``scale`` gets a
# gradient below, but no path leads from the result to the threshold:

x = torch.tensor([0.5, -1.0, 4.0, 0.25])
threshold = torch.tensor(0.3, requires_grad=True)
scale = torch.tensor(1.0, requires_grad=True)

result = scale * sum(number for number in x if number > threshold)
try:
    torch.autograd.grad(result, threshold)
except RuntimeError as error:
    message = str(error)
    print(f"RuntimeError: {message}")

# sphinx_gallery_start_ignore
assert "appears to not have been used in the graph" in message
assert (x > threshold).dtype == torch.bool and (x > threshold).grad_fn is None
assert result == 4.5
del message
# sphinx_gallery_end_ignore

# %%
# Give each number a weight between 0 and 1 that changes smoothly with the threshold. If you need the hard choice in the
# forward pass, take its value and the gradient of the smooth weight (a *straight-through* estimator). In ``hard``, the
# parentheses are exactly 0, so the result is that of the ``if``:

soft = torch.sigmoid((x - threshold) / 0.1)
hard = (x > threshold).to(x.dtype) + (soft - soft.detach())

for name, weights in (("soft", soft), ("hard", hard)):
    result = (weights * x).sum()
    (gradient,) = torch.autograd.grad(result, threshold, retain_graph=True)
    print(f"{name}: result {result.item():.3f}, gradient {gradient.item():.3f}")

# sphinx_gallery_start_ignore
assert (hard * x).sum() == 4.5 and abs((soft * x).sum() - 4.5) > 0.01
for _dtype in (torch.float16, torch.bfloat16, torch.float64):
    _numbers, _at = x.to(_dtype), threshold.to(_dtype)
    _soft = torch.sigmoid((_numbers - _at) / 0.1)
    _hard = (_numbers > _at).to(_dtype) + (_soft - _soft.detach())
    assert _hard.tolist() == [1, 0, 1, 0] and _hard.dtype == _dtype
slopes = [
    torch.autograd.grad((weights * x).sum(), threshold, retain_graph=True)[0]
    for weights in (soft, hard)
]
assert slopes[0] == slopes[1] != 0 and slopes[0].isfinite()
delta = 1e-3
with torch.no_grad():
    up, down = (
        (torch.sigmoid((x - threshold - d) / 0.1) * x).sum() for d in (delta, -delta)
    )
assert abs((up - down) / (2 * delta) - slopes[0]) < 0.01
for _weight in ((x[2] - threshold) / 0.1).sigmoid(), soft[2], hard[2]:
    assert (
        x[2] == 4 and torch.autograd.grad(_weight, threshold, retain_graph=True)[0] == 0
    )
_wide = torch.sigmoid((x[2] - threshold) / 1.0)
assert torch.autograd.grad(_wide, threshold)[0] != 0
for _moved in (threshold - 0.01, threshold + 0.01):
    assert sum(number for number in x if number > _moved) == 4.5
# sphinx_gallery_end_ignore

# %%
# :ref:`sphx_glr_gallery_functions_change_the_gradient.py` trains through rounding with such a gradient. The 0.1 is the width of
# the smooth step. The number 4 is far outside of it, so it adds nothing to the gradient.

# %%
# **Forgetting the call in which no branch is taken.** Both weights below are smaller than 1, so ``penalty`` returns the
# constant that it started with. Then ``backward()`` raises an error:


def penalty(weights):
    total = torch.tensor(0.0)
    for weight in weights:
        if weight > 1:
            total = total + (weight - 1) ** 2
    return total


small = torch.tensor([0.5, 0.9], requires_grad=True)
try:
    penalty(small).backward()
except RuntimeError as error:
    message = str(error)
    print(f"RuntimeError: {message}")

# sphinx_gallery_start_ignore
assert "does not require grad and does not have a grad_fn" in message
del message
assert penalty(small).is_leaf and penalty(small) == 0
assert next(iter(small)).grad_fn is not None  # the loop itself is recorded
# sphinx_gallery_end_ignore

# %%
# Write it as operations on the whole tensor. For these weights they are recorded too, and the gradient is zero:

(torch.relu(small - 1) ** 2).sum().backward()
print(small.grad)

# sphinx_gallery_start_ignore
assert small.grad.tolist() == [0, 0]
for entries in ([0.5, 0.9], [2.0, 0.1], [3.0, 1.5], [-4.0, 7.0]):
    one, two = (torch.tensor(entries, requires_grad=True) for _ in range(2))
    other = (torch.relu(two - 1) ** 2).sum()
    assert torch.allclose(penalty(one), other)
    if penalty(one).requires_grad:
        penalty(one).backward()
        other.backward()
        assert torch.allclose(one.grad, two.grad)
# sphinx_gallery_end_ignore

# %%
# **Computing with item().** In a formula, ``item()`` is a constant: below, the result is right, and a part of the gradient is
# missing without a message.

pair = torch.tensor([2.0, 3.0], requires_grad=True)
right = pair[0] * pair[1]
wrong = pair[0] * pair[1].item()

print("right:", right.item(), torch.autograd.grad(right, pair)[0])
print("wrong:", wrong.item(), torch.autograd.grad(wrong, pair)[0])

# sphinx_gallery_start_ignore
right, wrong = pair[0] * pair[1], pair[0] * pair[1].item()
assert right == wrong == 6
assert torch.autograd.grad(right, pair)[0].tolist() == [3, 2]
assert torch.autograd.grad(wrong, pair)[0].tolist() == [3, 0]
# sphinx_gallery_end_ignore

# %%
# Exercise
# --------
# Let ``product_of_positives`` stop as soon as the product is greater than 2: add ``if result > 2: break`` at the end of the
# loop's body. Before you run it, write down the gradients for ``x0``, ``x1``, ``x2`` and for ``y0``, ``y1``, ``y2``.
#
# .. solution::
#
# The product of the first call is 2, which is not greater than 2: nothing changes. In the second call the loop ends after
# ``y0 = 3``. The result is ``1 * y0``, so the gradient of ``y0`` is 1, and the other two have none.


def product_until_2(numbers):
    result = 1
    for number in numbers:
        if number > 0:
            result = result * number
        if result > 2:
            break
    return result


for leaves in ([x0, x1, x2], [y0, y1, y2]):
    result = product_until_2(leaves)
    gradients = torch.autograd.grad(result, leaves, allow_unused=True)
    print(result.item(), [None if g is None else g.item() for g in gradients])

# predict: sum(g is None for g in gradients) -- In the second call, how many of the
#   three gradients are None?

# sphinx_gallery_start_ignore
assert gradients == (1, None, None)
first = torch.autograd.grad(product_until_2([x0, x1, x2]), (x0, x2))
assert first == (x0.grad, x2.grad)
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_graphs_static_and_dynamic.py`: what becomes of an ``if`` when a graph is captured in advance.
# - :ref:`sphx_glr_gallery_differentiation_points_without_a_derivative.py`: what autograd returns where there is no
#   derivative.
# - In PyTorch's notes: `Autograd mechanics <https://docs.pytorch.org/docs/stable/notes/autograd.html>`__.
