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
# ---------------------------------------------
# Your model skips layers or stops early. Does ``backward()`` still work? This network stops as soon as the norm of its features
# is less than 1. It learns to return the first number of its input:

from collections import Counter

import torch
from torch import nn


class EarlyExit(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))
        self.head = nn.Linear(4, 1)

    def forward(self, features):
        for layer in self.layers:
            features = torch.tanh(layer(features))
            if features.norm() < 1:
                break
        return self.head(features)


torch.manual_seed(1)
model = EarlyExit()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
samples = torch.randn(100, 4)

for epoch in range(5):
    total, used = 0.0, Counter()
    for sample in samples:
        optimizer.zero_grad()
        loss = (model(sample) - sample[0]).square().sum()
        loss.backward()
        optimizer.step()
        total += loss.item()
        used[sum(layer.weight.grad is not None for layer in model.layers)] += 1
    print(f"epoch {epoch}: mean loss {total / 100:.3f}, {dict(sorted(used.items()))}")

# sphinx_gallery_start_ignore
assert total / 100 < 0.2 and len(used) > 1 and used.total() == 100
_patterns = set()
for sample in samples:
    for _options in ({}, {"weight_decay": 0.1}):
        optimizer = torch.optim.Adam(model.parameters(), **_options)
        optimizer.zero_grad()
        (model(sample) - sample[0]).square().sum().backward()
        _called = [layer.weight.grad is not None for layer in model.layers]
        _patterns.add(tuple(_called))
        _before = [layer.weight.detach().clone() for layer in model.layers]
        optimizer.step()
        for layer, _old, _one in zip(model.layers, _before, _called, strict=True):
            assert torch.equal(layer.weight, _old) != _one
            assert (layer.bias.grad is not None) == _one
assert {(True, False, False), (True, True, True)} <= _patterns
# sphinx_gallery_end_ignore

# %%
# The loss falls. The numbers in braces say how many samples gave a gradient to one, two or three layers. A skipped layer has
# ``.grad`` None, so ``torch.optim.Adam`` leaves it as it is. (``DistributedDataParallel`` needs ``find_unused_parameters=True``
# for such a model.) In a batch, ``features.norm()`` would be a single number, and all samples would stop together.

# %%
# Each call records its own graph
# -------------------------------
# A smaller function shows what is recorded. It multiplies the positive numbers among its inputs:


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
# **Autograd records the operations that run, and not the code.** So the graphs contain neither ``if`` nor loop, and ``x1.grad``
# is None.

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
# With ``k`` doublings the gradient is ``2**k``.
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
# 800 starts between 0.7 and 12 show where ``k`` changes:

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
# The gradient is the slope of the piece that ran. At the dotted lines ``grow`` falls from almost 20 to 10, and there is no
# derivative. Autograd raises no error there, but returns the slope on the right.

# %%
# What people get wrong
# ---------------------
# **Learning a threshold through an if.** The sum below keeps the numbers above a threshold, which you want to learn. But the
# comparison returns a boolean, and autograd does not record it. So no path leads from the result to the threshold:

x = torch.tensor([0.5, -1.0, 4.0, 0.25])
threshold = torch.tensor(0.3, requires_grad=True)
scale = torch.tensor(1.0, requires_grad=True)  # gets a gradient

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
# Give each number a weight between 0 and 1 that changes smoothly with the threshold (``soft``). If the forward pass needs the
# hard choice, take its value and the gradient of the smooth weight, a *straight-through* estimator (``hard``). Its parentheses
# are exactly 0, so the result is that of the ``if``:

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
