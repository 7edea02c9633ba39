r"""
Dynamic graphs: if and for decide what autograd records
=======================================================

PyTorch needs no language of its own for branches and loops. You write Python's ``if``, ``for`` and ``while``, and
autograd records the operations that were executed. So one function can leave a different graph at every call. This
page draws two graphs of one function, and shows what the gradient of such a function sees and what it does not.
"""

# %%
# One function, two inputs
# ------------------------
# The function multiplies the positive entries of a vector. Which entries those are is known only when it runs.

import textwrap

import matplotlib.pyplot as plt
import torch


def product_of_positives(entries):
    result = torch.tensor(1.0)
    for entry in entries:
        if entry > 0:
            result = result * entry
    return result


x = torch.tensor([0.3071, 1.1043, 1.3605, -0.3471], requires_grad=True)
y = torch.tensor([1.2817, 1.7840, -1.7033, 0.1302], requires_grad=True)

p = product_of_positives(x)
q = product_of_positives(y)
p.backward()
q.backward()

print(f"p = {p.item():.4f}   gradient {x.grad}")
print(f"q = {q.item():.4f}   gradient {y.grad}")

# sphinx_gallery_start_ignore
for found, expected in [
    (x.grad, [1.5024, 0.4178, 0.3391, 0]),
    (y.grad, [0.2323, 0.1669, 0, 2.2866]),
    (p, 0.4614),
    (q, 0.2977),
]:
    torch.testing.assert_close(
        found, torch.tensor(expected), atol=6e-5, rtol=0, check_dtype=False
    )
del found
assert x.grad[3] == 0 and y.grad[2] == 0
# sphinx_gallery_end_ignore

# %%
# Each gradient is the product of the *other* positive entries. For the first entry of ``x`` that is
# :math:`1.1043 \cdot 1.3605 = 1.5024`. A negative entry had no part in the product, so its gradient is 0.

# %%
# Two graphs of one function
# --------------------------
# To see each entry in a figure, the same function is run on four scalars instead of a vector. The values are those
# of ``x``.

x0, x1, x2, x3 = (v.requires_grad_() for v in x.detach().clone().unbind())
p = product_of_positives([x0, x1, x2, x3])
p.backward()

# graph: p -- The first call multiplied x0, x1 and x2; x3 is not part of the graph

print("gradients:", x0.grad, x1.grad, x2.grad, x3.grad)

# %%
# And the values of ``y``:

y0, y1, y2, y3 = (v.requires_grad_() for v in y.detach().clone().unbind())
q = product_of_positives([y0, y1, y2, y3])
q.backward()

# graph: q -- The second call multiplied y0, y1 and y3; y2 is not part of the graph

print("gradients:", y0.grad, y1.grad, y2.grad, y3.grad)

# sphinx_gallery_start_ignore
assert x3.grad is None and y2.grad is None
for i, leaf in enumerate((x0, x1, x2)):
    assert leaf.grad == x.grad[i]
for i, leaf in zip((0, 1, 3), (y0, y1, y3), strict=True):
    assert leaf.grad == y.grad[i]
del leaf
# sphinx_gallery_end_ignore

# %%
# No graph holds an ``if``, or a trace of the entry that was skipped: no operation was recorded for it. As a leaf of
# its own, ``x3`` has the gradient ``None``. As an entry of the vector ``x`` it got a 0, because a gradient has the
# shape of its tensor, and each place has to hold a number.

# %%
# A new graph at every call
# -------------------------
# The graph belongs to the call, not to the function. Two calls with the same input leave two graphs. The walk below
# collects the nodes of a result.


def walk(result):
    found = [result.grad_fn] if result.grad_fn else []
    for node in found:  # the list grows while it is read
        for next_node, _ in node.next_functions:
            if next_node is not None and next_node not in found:
                found.append(next_node)
    return found


once, again = product_of_positives([x0, x1]), product_of_positives([x0, x1])
shared = [node for node in walk(once) if node in walk(again)]

print("nodes of each call:", len(walk(once)), "and", len(walk(again)))
print("in both graphs:    ", len(shared))
print("of these, leaves:  ", sum(hasattr(node, "variable") for node in shared))

# sphinx_gallery_start_ignore
assert len(walk(once)) == len(walk(again)) == 4 and len(shared) == 2
assert {id(node.variable) for node in shared} == {id(x0), id(x1)}
# sphinx_gallery_end_ignore

# %%
# The two graphs meet only at the leaves. That is why nothing has to be declared in advance, and why a model may
# change between two steps of training: the next call records what is there then.

# %%
# A loop of unknown length
# ------------------------
# ``grow`` doubles a number until it reaches 10. The value decides how often the loop runs, and each round records
# one more multiplication.


def grow(start):
    value = start
    while value < 10:
        value = value * 2
    return value


for number in (7.0, 3.0, 1.0, 0.1):
    start = torch.tensor(number, requires_grad=True)
    value = grow(start)
    value.backward()
    rounds = len(walk(value)) - 1  # without the node of the leaf
    print(
        f"grow({number}) = {value.item():g}   rounds {rounds}   gradient {start.grad:g}"
    )
    assert start.grad == 2**rounds

# sphinx_gallery_start_ignore
assert [grow(number) for number in (7.0, 3.0, 1.0)] == [14.0, 12.0, 16.0]
# sphinx_gallery_end_ignore

# %%
# The gradient of :math:`k` doublings is :math:`2^k`. It is exact for the path that was taken, and it holds as long as
# a small change of the input leads down the same path. The figure shows where it does not.

starts = torch.linspace(0.7, 12, 800, requires_grad=True)
values = torch.stack([grow(start) for start in starts])
(slopes,) = torch.autograd.grad(values.sum(), starts)

fig, (top, bottom) = plt.subplots(2, 1, figsize=(7, 4.6), sharex=True)
for edge in (1.25, 2.5, 5, 10):
    top.axvline(edge, color="#64748b", linewidth=0.8, linestyle=":")
    bottom.axvline(edge, color="#64748b", linewidth=0.8, linestyle=":")
top.plot(starts.detach(), values.detach(), ".", color="#2563eb", markersize=2)
top.set(title="grow(x) jumps where the number of rounds changes", ylabel="grow(x)")
bottom.plot(starts.detach(), slopes, ".", color="#c2410c", markersize=2)
bottom.set(title="Its gradient knows the slopes, not the jumps", ylabel="gradient")
bottom.set(xlabel="x", yscale="log")
bottom.set_yticks([1, 2, 4, 8, 16], labels=["1", "2", "4", "8", "16"], minor=False)
bottom.minorticks_off()
fig.tight_layout()

# figure: Above, grow(x) rises in straight pieces to almost 20 and falls back to 10 at x = 1.25, 2.5, 5 and 10; after
#   that it rises with slope 1. Below, the gradient is a staircase with steps at the same four places: 16, 8, 4, 2
#   and 1 from left to right.

# sphinx_gallery_start_ignore
del start, value
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
# sphinx_gallery_end_ignore

# %%
# At the dotted lines there is no derivative. Autograd raises no error there: it gives the slope of the piece that the
# comparison chose.

start = torch.tensor(5.0, requires_grad=True)
(gradient,) = torch.autograd.grad(grow(start), start)
step = 0.01
left = (grow(5.0) - grow(5.0 - step)) / step
right = (grow(5.0 + step) - grow(5.0)) / step

print(f"autograd {gradient:.0f}")
print(f"slope to the right {right:.0f}, to the left {left:.0f}")

# sphinx_gallery_start_ignore
assert gradient == 2 and abs(right - 2) < 1e-6 and round(left) == -996
# sphinx_gallery_end_ignore

# %%
# What people get wrong
# ---------------------
# **Learning a threshold through an if.** The comparison decides, but it is not differentiable and not recorded. No
# path leads from the result to the threshold.


def product_above(entries, threshold):
    result = torch.tensor(1.0)
    for entry in entries:
        if entry > threshold:
            result = result * entry
    return result


threshold = torch.tensor(0.5, requires_grad=True)
result = product_above(x, threshold)

print("does x > threshold require a gradient?", (x > threshold).requires_grad)
try:
    torch.autograd.grad(result, threshold)
except RuntimeError as error:
    print(textwrap.fill(f"RuntimeError: {error}", 88))
    assert "appears to not have been used in the graph" in str(error)

# %%
# To learn a threshold, replace the choice by a weight that changes smoothly with it. The result is another function,
# with a gradient for the threshold.

weights = torch.sigmoid((x - threshold) / 0.1)
soft = (weights * x + (1 - weights)).prod()
(gradient,) = torch.autograd.grad(soft, threshold)

print(f"product {soft.item():.4f}, gradient for the threshold {gradient.item():.4f}")

# sphinx_gallery_start_ignore
assert gradient != 0 and gradient.isfinite()
delta = 1e-3
with torch.no_grad():
    moved = [
        (w * x + (1 - w)).prod()
        for w in (torch.sigmoid((x - threshold - d) / 0.1) for d in (delta, -delta))
    ]
torch.testing.assert_close(
    (moved[0] - moved[1]) / (2 * delta), gradient, rtol=0.02, atol=1e-4
)
# sphinx_gallery_end_ignore

# %%
# **Forgetting the call in which no branch is taken.** With no positive entry, the function returns its constant. That
# is the right value, but nothing was recorded.

negative = torch.tensor([-1.0, -2.0], requires_grad=True)
try:
    product_of_positives(negative).backward()
except RuntimeError as error:
    print(textwrap.fill(f"RuntimeError: {error}", 88))
    assert "does not require grad and does not have a grad_fn" in str(error)

# %%
# An operation on the whole tensor is recorded in every call. Selecting by a mask gives the same values and the same
# gradients with three nodes instead of a loop, and for an empty product a gradient of zeros.


def masked_product(entries):
    return entries[entries > 0].prod()


for t in (x, y, negative):
    value = masked_product(t)
    (gradient,) = torch.autograd.grad(value, t)
    print(f"{value.item():.4f}   {gradient}   {len(walk(value))} nodes")
    assert t is negative or torch.allclose(gradient, t.grad)

# sphinx_gallery_start_ignore
assert value == 1 and not gradient.any() and len(walk(value)) == 3
assert value == product_of_positives(negative)
assert len(walk(masked_product(x))) == len(walk(masked_product(y))) == 3
del t, value
# sphinx_gallery_end_ignore

# %%
# **Computing with a number that left the graph.** For a decision, ``item()`` is fine. In a product it is a constant,
# and its gradient is lost without a word.

vector = torch.tensor([2.0, 3.0], requires_grad=True)
right = vector[0] * vector[1] if vector[0].item() > 0 else vector[1]
wrong = vector[0] * vector[1].item()

print("right:", right.item(), torch.autograd.grad(right, vector)[0])
print("wrong:", wrong.item(), torch.autograd.grad(wrong, vector)[0])

# sphinx_gallery_start_ignore
right = vector[0] * vector[1]
assert torch.autograd.grad(right, vector)[0].tolist() == [3, 2]
wrong = vector[0] * vector[1].item()
assert torch.autograd.grad(wrong, vector)[0].tolist() == [3, 0]
# sphinx_gallery_end_ignore

# %%
# Exercise
# --------
# Let the product stop as soon as it is greater than 2: add ``if result > 2: break`` at the end of the loop's body.
# Before you run it, write down the gradients for ``x`` and for ``y``. For which of them did the graph change?
#
# .. solution::
#
# The product over ``x`` never exceeds 2, so nothing changes. Over ``y`` it is
# :math:`1.2817 \cdot 1.7840 = 2.2866` after two entries, and the loop ends. Only these two have a gradient, and each
# is the value of the other.


def product_until_2(entries):
    result = torch.tensor(1.0)
    for entry in entries:
        if entry > 0:
            result = result * entry
        if result > 2:
            break
    return result


for vector in (x, y):
    result = product_until_2(vector)
    (gradient,) = torch.autograd.grad(result, vector)
    print(f"{result.item():.4f}   {gradient}")

assert torch.allclose(gradient, torch.tensor([1.7840, 1.2817, 0, 0]))

# sphinx_gallery_start_ignore
assert torch.equal(torch.autograd.grad(product_until_2(x), x)[0], x.grad)
assert abs(result.item() - 2.2866) < 5e-5
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - Before: :ref:`sphx_glr_gallery_graphs_grad_fn_names.py`, what the names of the nodes mean.
# - Next: :ref:`sphx_glr_gallery_graphs_static_and_dynamic.py`, what becomes of an ``if`` when a graph is captured in
#   advance.
# - :ref:`sphx_glr_gallery_differentiation_points_without_a_derivative.py`, what autograd gives where there is no
#   derivative.
# - In PyTorch's reference: `Autograd mechanics <https://docs.pytorch.org/docs/stable/notes/autograd.html>`__.
