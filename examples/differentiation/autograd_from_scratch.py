r"""
Autograd from scratch in 60 lines of Python
===========================================

.. in-short::

   Autograd does two things: it records every operation, and then it walks back over the record. On this page, each result keeps
   its inputs, and a function that turns the gradient of the result into gradients of the inputs. ``backward()`` goes from the
   last result to the first, calls these functions and adds up. Fewer than 60 lines of Python do this. They agree with PyTorch
   on 200 random expressions, with broadcasting. Unlike PyTorch, they miss in-place writes.
"""

# %%
# What is there to build?
# -----------------------
# You write a formula for the loss and call ``loss.backward()``. Where do the gradients of ``w`` and ``b`` come from?

import torch

w = torch.tensor(3.0, requires_grad=True)
b = torch.tensor(-4.0, requires_grad=True)
x = torch.tensor(2.0)

h = w * x + b
loss = h * h

# graph: loss -- What PyTorch recorded for this loss. You will build such a record in Python

# %%
# The loss uses ``h`` twice, so two edges leave ``h``. The number on an edge is a local derivative: if the value changes a
# little in this one use, the result changes by that number times as much. **Multiply along each path from the loss to** ``w``,
# **and add over the paths.** Both paths have the numbers 2, 1 and 2, so the gradient is :math:`4 + 4 = 8`:

loss.backward()
print(f"w.grad = {w.grad:g}, b.grad = {b.grad:g}")
assert w.grad == 8 and b.grad == 4

# sphinx_gallery_start_ignore
assert (
    h.grad_fn(torch.tensor(1.0))[0] == 1
    and loss.grad_fn.next_functions == ((h.grad_fn, 0),) * 2
)
_h = torch.tensor(2.0, requires_grad=True)
assert [part.item() for part in (_h * _h).grad_fn(torch.tensor(1.0))] == [2, 2]
assert torch.autograd.grad(_h * _h, _h)[0] == 4  # both uses together
assert w.grad == 2 * 1 * 2 + 2 * 1 * 2 and b.grad == 1 * 2 + 1 * 2
# sphinx_gallery_end_ignore

# %%
# Step 1: record what was computed from what
# ------------------------------------------
# Python lets a class define ``+`` and ``*``. So wrap each number in a ``Value``. The result of ``+`` or ``*`` keeps the two
# values that it was computed from.


class Value:
    def __init__(self, data, inputs=()):
        self.data = data
        self.inputs = inputs

    def __add__(self, other):
        return Value(self.data + other.data, (self, other))

    def __mul__(self, other):
        return Value(self.data * other.data, (self, other))


w, b, x = Value(3.0), Value(-4.0), Value(2.0)
h = w * x + b
loss = h * h

product, _ = h.inputs
print("loss:   ", loss.data, "from", [value.data for value in loss.inputs])
print("h:      ", h.data, "from", [value.data for value in h.inputs])
print("product:", product.data, "from", [value.data for value in product.inputs])

# sphinx_gallery_start_ignore
assert loss.inputs == (h, h) and h.inputs[1] is b and product.inputs == (w, x)
# sphinx_gallery_end_ignore

# %%
# This is the graph of the figure. But it is not enough for gradients:

two = Value(2.0)
for result in (two + two, two * two):
    print(result.data, "from", [value.data for value in result.inputs])

# sphinx_gallery_start_ignore
assert (two + two).data == (two * two).data == 4
assert (two + two).inputs == (two * two).inputs == (two, two)
# sphinx_gallery_end_ignore

# %%
# Both left the same record, but their derivatives differ. So record the derivative, too.

# %%
# Step 2: record the derivative, and walk
# ---------------------------------------
# Let each operation leave a function, ``local``. It takes ``g``, the gradient of the result, and returns one gradient for each
# input. For a sum both are ``g``. For a product, each is ``g`` times the *other* factor.


class Value:
    def __init__(self, data, inputs=(), local=lambda g: ()):
        self.data, self.inputs, self.local = data, inputs, local
        self.grad = 0.0

    def __add__(self, other):
        return Value(self.data + other.data, (self, other), lambda g: (g, g))

    def __mul__(self, other):
        def local(g):
            return g * other.data, g * self.data

        return Value(self.data * other.data, (self, other), local)

    def backward(self, g=1.0):
        self.grad += g
        for value, part in zip(self.inputs, self.local(g), strict=True):
            value.backward(part)


w, b, x = Value(3.0), Value(-4.0), Value(2.0)
h = w * x + b
loss = h * h
loss.backward()
print(f"w.grad = {w.grad:g}, b.grad = {b.grad:g}")
assert (w.grad, b.grad) == (8, 4)

# %%
# These are PyTorch's numbers. But this ``backward`` follows each path from the loss to a leaf, which is slow:

x = Value(1.0)
y = x
for _ in range(16):
    y = y + y
y.backward()
print(f"16 additions: x.grad = {x.grad:g}")

# sphinx_gallery_start_ignore
assert x.grad == 2**16
_calls = []


class Counted(Value):
    def backward(self, g=1.0):
        _calls.append(self)
        super().backward(g)


_y = _x = Counted(1.0)
for _ in range(5):
    _y = Counted(_y.data + _y.data, (_y, _y), lambda g: (g, g))
_y.backward()
assert _calls.count(_x) == _x.grad == 32
# sphinx_gallery_end_ignore

# %%
# The gradient is right, but it took 65,536 calls of ``x.backward``.

# %%
# Step 3: the last recorded value goes first
# ------------------------------------------
# **Visit each value once, after all its uses in this loss have sent their part.** So number the values as they are made. A
# result is made after its inputs, and gets a higher number. So the waiting value with the highest number is always ready. (Such
# an order is called *topological*.) ``class Value(Value)`` extends the class of step 2.


class Value(Value):
    made = 0

    def __init__(self, *arguments):
        super().__init__(*arguments)
        Value.made += 1
        self.number = Value.made

    def backward(self):
        self.grad = 1.0
        waiting = {self.number: self}
        while waiting:
            value = waiting.pop(max(waiting))
            for before, part in zip(value.inputs, value.local(value.grad), strict=True):
                before.grad += part
                waiting[before.number] = before


x = Value(1.0)
y = x
for _ in range(1000):
    y = y + y * Value(0.001)
y.backward()
w = Value(3.0)
h = w * Value(2.0)
(h + h * h).backward()
print(f"1000 steps: x.grad = {x.grad:.4f}, by hand {1.001**1000:.4f}")
print(f"h + h*h: w.grad = {w.grad:g}")

# sphinx_gallery_start_ignore
assert abs(x.grad - 1.001**1000) < 1e-9 and w.grad == 26


def _visits(root):
    visited, found = [], {root: None}
    queue = [root]
    for value in queue:
        queue += [before for before in value.inputs if before not in found]
        found.update(dict.fromkeys(value.inputs))
    for value in found:
        value.local = lambda g, v=value, plain=value.local: (
            visited.append(v) or plain(g)
        )
    root.backward()
    assert set(visited) == set(found)
    return len(visited)


assert _visits(y) == 3 * 1000 + 1 and _visits(h + h * h) == 5
# sphinx_gallery_end_ignore

# %%
# Both are right. A second loss breaks it. Let :math:`h^2` and :math:`2h` share ``h``, which is 2. Their derivatives are 4 and
# 2, so ``w.grad`` should be :math:`(4 + 2) \cdot 2 = 12`.

w, b, x = Value(3.0), Value(-4.0), Value(2.0)
h = w * x + b
(h * h).backward()
(h + h).backward()
print(f"w.grad = {w.grad:g}")

# sphinx_gallery_start_ignore
assert (
    w.grad == 28 and h.grad == 6
)  # the product got 4, then 6 more: 4 * 2 + (4 + 6) * 2 = 28
# sphinx_gallery_end_ignore

# %%
# Step 4: only leaves keep a gradient
# -----------------------------------
# The 4 of the first walk was still in ``h`` and in the product, and the second walk sent it back again. So keep what is on its
# way in a dictionary of this walk. Only leaves add it to their ``grad``, as in PyTorch.


class Value(Value):
    def backward(self):
        arrived = {self: 1.0}
        while arrived:
            value = max(arrived, key=lambda value: value.number)
            g = arrived.pop(value)
            if not value.inputs:  # a leaf
                value.grad += g
            for before, part in zip(value.inputs, value.local(g), strict=True):
                arrived[before] = arrived.get(before, 0) + part


w, b, x = Value(3.0), Value(-4.0), Value(2.0)
h = w * x + b
(h * h).backward()
(h + h).backward()
print(f"w.grad = {w.grad:g}")
assert w.grad == 12

# sphinx_gallery_start_ignore
_w = Value(3.0)
_h = _w * Value(2.0)
(_h + _h * _h).backward()
assert _w.grad == 26  # the order of step 3
# sphinx_gallery_end_ignore

# %%
# Step 5: arrays
# --------------
# Put NumPy arrays into a ``Value``, and a product of equal shapes works. It breaks when one of them is broadcast, for example
# when two numbers scale four rows. A plain number as a factor breaks it, too.

import numpy as np

raised = []
rows, scale = Value(np.arange(8.0).reshape(4, 2)), Value(np.ones(2))
(rows * scale).backward()
try:
    scale.data -= 0.1 * scale.grad
except ValueError as error:
    raised.append(str(error))
try:
    scale * 2
except AttributeError as error:
    raised.append(str(error))
print(*raised, sep="\n")

# sphinx_gallery_start_ignore
assert len(raised) == 2 and scale.grad.shape == (4, 2)
_p, _q = Value(np.ones(2)), Value(np.ones(2))
(_p * _q).backward()
assert _p.grad.shape == (2,)
(Value(np.ones(2)) + (_sum := Value(np.ones(2)))).backward()
assert np.shape(_sum.grad) == ()  # for a sum, the gradient is one number
assert (
    "non-broadcastable output operand" in raised[0]
    and "no attribute 'data'" in raised[1]
)
# sphinx_gallery_end_ignore

# %%
# ``scale`` has two numbers, and its gradient has eight: broadcasting used each number four times. Add these four.

# %%
# The whole engine
# ----------------
# ``fit`` sums over the dimensions that broadcasting added in front, and over those of size 1 that it stretched. A plain number
# becomes a leaf, and ``grad`` starts as ``None``, as in PyTorch. This cell runs alone, so you can copy it.

import numpy as np


def fit(g, shape):
    g = g.sum(axis=tuple(range(g.ndim - len(shape))))
    return g.sum(axis=tuple(np.flatnonzero(np.equal(shape, 1))), keepdims=True)


class Tensor:
    made = 0

    def __init__(self, data, inputs=(), local=lambda g: ()):
        self.data, self.inputs, self.local = np.array(data, float), inputs, local
        Tensor.made += 1
        self.number, self.grad = Tensor.made, None

    def backward(self):
        arrived = {self: np.ones_like(self.data)}
        while arrived:
            tensor = max(arrived, key=lambda tensor: tensor.number)
            g = arrived.pop(tensor)
            if not tensor.inputs:
                tensor.grad = g if tensor.grad is None else tensor.grad + g
            for before, part in zip(tensor.inputs, tensor.local(g), strict=True):
                part = fit(part, before.data.shape)
                arrived[before] = arrived[before] + part if before in arrived else part

    def __add__(self, other):
        other = other if isinstance(other, Tensor) else Tensor(other)
        return Tensor(self.data + other.data, (self, other), lambda g: (g, g))

    def __mul__(self, other):
        other = other if isinstance(other, Tensor) else Tensor(other)
        p, q = self.data, other.data
        return Tensor(p * q, (self, other), lambda g: (g * q, g * p))

    def __sub__(self, other):
        return self + other * -1

    def __matmul__(self, other):
        p, q = self.data, other.data
        assert p.ndim == q.ndim == 2  # the formulas below are for matrices
        return Tensor(p @ q, (self, other), lambda g: (g @ q.T, p.T @ g))

    def tanh(self):
        y = np.tanh(self.data)
        return Tensor(y, (self,), lambda g: (g * (1 - y * y),))

    def sum(self):
        return Tensor(self.data.sum(), (self,), lambda g: (np.full_like(self.data, g),))


# %%
# Each further operation is one more method, with its derivative:


def exp(self):
    y = np.exp(self.data)
    return Tensor(y, (self,), lambda g: (g * y,))


def log(self):
    x = self.data
    return Tensor(np.log(x), (self,), lambda g: (g / x,))


def sin(self):
    x = self.data
    return Tensor(np.sin(x), (self,), lambda g: (g * np.cos(x),))


Tensor.exp, Tensor.log, Tensor.sin = exp, log, sin

rows, scale = Tensor(np.arange(8.0).reshape(4, 2)), Tensor(np.ones(2))
(rows * scale * 2).backward()
print("scale.grad:", scale.grad)

# sphinx_gallery_start_ignore
assert scale.grad.tolist() == [24, 32]  # twice the sums of 0 2 4 6 and of 1 3 5 7
import ast
import inspect
from pathlib import Path

_source = Path(inspect.getsourcefile(fit)).read_text(encoding="utf-8")
_engine = {getattr(node, "name", ""): node for node in ast.parse(_source).body}
assert _engine["Tensor"].end_lineno - _engine["fit"].lineno < 60
# sphinx_gallery_end_ignore

# %%
# Train a network with it
# -----------------------
# A network with 16 hidden units learns a sine from 64 points:

generator = np.random.default_rng(0)
start = [generator.normal(size=s) for s in [(1, 16), (16,), (16, 1), (1,)]]
points = np.linspace(-3, 3, 64).reshape(64, 1)


def network(x, W1, b1, W2, b2):
    return (x @ W1 + b1).tanh() @ W2 + b2


x, target = Tensor(points), Tensor(np.sin(points))
parameters = [Tensor(array) for array in start]
curves, losses = [network(x, *parameters).data], []
for _ in range(1000):
    error = network(x, *parameters) - target
    loss = (error * error).sum() * (1 / 64)
    loss.backward()
    losses.append(loss.data.item())
    for p in parameters:
        p.data = p.data - 0.05 * p.grad
        p.grad = None
curves.append(network(x, *parameters).data)

# %%
# .. how-measured:: The same training with PyTorch from the same start, and a function that draws the results.

import matplotlib.pyplot as plt

x, target = torch.tensor(points), torch.tensor(np.sin(points))
parameters = [torch.tensor(array, requires_grad=True) for array in start]
optimizer, by_torch = torch.optim.SGD(parameters, lr=0.05), []
for _ in range(1000):
    optimizer.zero_grad()
    loss = (network(x, *parameters) - target).square().mean()
    loss.backward()
    by_torch.append(loss.item())
    optimizer.step()


def plot_training():
    figure, (left, right) = plt.subplots(1, 2, figsize=(7, 3), layout="constrained")
    figure.suptitle("A network trained by the 60 lines")
    left.plot(points, np.sin(points), color="#64748b", linewidth=4, label="sine")
    left.plot(points, curves[0], ":", color="#c2410c", label="before")
    left.plot(points, curves[1], "--", color="#2563eb", label="after 1000 steps")
    left.set(xlabel="x", ylabel="output", ylim=(-4, 4))
    right.semilogy(losses, color="#2563eb", linewidth=4, label="60 lines")
    right.semilogy(by_torch, ":", color="#c2410c", linewidth=2, label="PyTorch")
    right.set(xlabel="step", ylabel="loss")
    for ax in (left, right):
        ax.legend(fontsize=8)


# %%
# After 1000 steps the network follows the sine to within 0.2. PyTorch's losses agree to a millionth:

# figure: On the left the sine, the curve of the untrained network, which is far from it, and the curve after 1000 steps,
#   which lies close to the sine. On the right the loss of both trainings, two curves that lie on each other and fall.
plot_training()
print(f"loss of the first step: {losses[0]:.6f}   PyTorch {by_torch[0]:.6f}")
print(f"loss of the last step:  {losses[-1]:.6f}   PyTorch {by_torch[-1]:.6f}")
assert np.allclose(losses, by_torch, rtol=1e-6, atol=0) and losses[-1] < losses[0] / 100

# sphinx_gallery_start_ignore
_before, _after = (np.abs(curve - np.sin(points)).max() for curve in curves)
assert _before > 2 and _after < 0.2 and (np.diff(losses) < 0).all()
# sphinx_gallery_end_ignore

# %%
# Compared with PyTorch on 200 random expressions
# -----------------------------------------------
# Is the engine right for other formulas, too? Each of the 200 combines five leaves of different shapes in 5 to 30 random steps.
#
# .. how-measured:: One function builds the expression for both libraries, in double precision.

import random

STEPS = [
    lambda p, q: p + q,
    lambda p, q: p - q,
    lambda p, q: p * q.tanh(),
    lambda p, q: (p * q).sin() * 2,
    lambda p, q: (p * p + 1).log() + q.sum(),
    lambda p, q: (p - q).tanh().exp(),
]


def expression(leaves, seed):
    choose, values = random.Random(seed), list(leaves)
    for _ in range(choose.randint(5, 30)):
        values.append(choose.choice(STEPS)(*choose.choices(values, k=2)))
    return values[-1].sum() + values[-2].sum() * values[-3].sum()


worst, compared, missing = 0.0, 0, 0
for seed in range(200):
    generator = np.random.default_rng(seed)
    arrays = [generator.normal(size=s) for s in [(), (3,), (4, 1), (1, 3), (4, 3)]]
    ours = [Tensor(array) for array in arrays]
    theirs = [torch.tensor(array, requires_grad=True) for array in arrays]
    our_loss, their_loss = expression(ours, seed), expression(theirs, seed)
    our_loss.backward()
    their_loss.backward()
    np.testing.assert_allclose(our_loss.data, their_loss.item(), rtol=1e-10)
    for one, other in zip(ours, theirs, strict=True):
        assert (one.grad is None) == (other.grad is None)
        if one.grad is None:
            missing += 1
            continue
        assert one.grad.shape == tuple(other.grad.shape)
        assert np.isfinite(one.grad).all() and other.grad.isfinite().all()
        gap = np.abs(one.grad - other.grad.numpy()).max()
        worst = max(worst, gap / (np.abs(one.grad).max() or 1))
        compared += 1

# %%
# A leaf that an expression does not use has ``None`` in both. No other gradient differs by more than a billionth of its largest
# entry:

print(f"{compared} gradients compared, {missing} are None in both")
assert worst < 1e-9

# sphinx_gallery_start_ignore
assert compared > 700
_ours = Tensor([[1.0, 2.0], [3.0, 4.0]])
_theirs = torch.tensor(_ours.data, requires_grad=True)
for _square in (_ours, _theirs):
    (_square @ _square @ _square).sum().backward()
assert np.allclose(_ours.grad, _theirs.grad.numpy())
for _shapes in [
    ((0, 3), (1, 3)),
    ((2, 1), (2, 0)),
    ((1,), ()),
    ((1, 1, 1), (3, 1)),
    ((5, 1, 2), (4, 1)),
]:
    _arrays = [np.random.default_rng(1).normal(size=shape) for shape in _shapes]
    _ours, _theirs = (
        [Tensor(a) for a in _arrays],
        [torch.tensor(a, requires_grad=True) for a in _arrays],
    )
    for _p, _q in (_ours, _theirs):
        (_p * _q - _q).sum().backward()
    for _one, _other in zip(_ours, _theirs, strict=True):
        assert _one.grad.shape == tuple(_other.grad.shape)
        assert np.allclose(_one.grad, _other.grad.numpy())
# sphinx_gallery_end_ignore

# %%
# What PyTorch does in addition
# -----------------------------
# A ``grad_fn`` does the work of ``local``. PyTorch also skips tensors that require no gradient, frees what it saved, and checks
# for in-place writes. The ``local`` of a product keeps the arrays of its factors. If you change such an array before backward,
# the gradient of the other factor can be wrong, without an error:

ours = Tensor([1.0, 2.0])
result = (ours * ours).sum()
ours.data[:] = 0
result.backward()
print("60 lines:", ours.grad, "and it should be [2. 4.]")

raised = []
theirs = torch.tensor([1.0, 2.0], requires_grad=True)
result = (theirs * theirs).sum()
with torch.no_grad():
    theirs.zero_()
try:
    result.backward()
except RuntimeError as error:
    raised.append(str(error))
    print("PyTorch: ", raised[0].partition(":")[0])

# sphinx_gallery_start_ignore
assert ours.grad.tolist() == [0, 0] and len(raised) == 1
for _first, _second in [((), ()), ((2,), (2,)), ((2, 1), (3,)), ((2, 2), ())]:
    _p, _q = Tensor(np.ones(_first)), Tensor(np.ones(_second))
    _kept = [cell.cell_contents for cell in (_p * _q).local.__closure__]
    assert {id(array) for array in _kept} == {id(_p.data), id(_q.data)}
    for _written, _asked in ((_p, _q), (_q, _p)):
        _product = _p * _q
        _written.data[...], _asked.grad = 5, None
        _product.backward()
        assert (_asked.grad == 5 * _product.data.size / _asked.data.size).all()
        _written.data[...] = 1
_data, _leaf = torch.ones(1), torch.ones(1, requires_grad=True)
_product = (_data * _leaf).exp()
_product.backward()
assert _data.grad is None and _leaf.grad is not None
try:
    _product.backward()
except RuntimeError as error:
    raised.append(str(error))
assert "already been freed" in raised[1]
_leaf = torch.tensor([1.0, 2.0], requires_grad=True)
_product = (_leaf * _leaf).sum()
_leaf.data.zero_()
_product.backward()
assert _leaf.grad.tolist() == [0, 0]  # no error, and wrong
assert raised[0].startswith(
    "one of the variables needed for gradient computation has been modified by an inplace operation"
)
# sphinx_gallery_end_ignore

# %%
# PyTorch's check does not see a write through ``.data``: :ref:`sphx_glr_gallery_differentiation_inplace_and_versions.py`.

# %%
# What people get wrong
# ---------------------
# **Visiting in the order of discovery.** A list of the values found so far, each visited once:


def hasty(root):
    root.grad, found = 1.0, [root]
    for value in found:  # the list grows while it is read
        for before, part in zip(value.inputs, value.local(value.grad), strict=True):
            before.grad += part
            if before not in found:
                found.append(before)


for text, expression in [
    ("h*h + h", lambda h: h * h + h),
    ("h + h*h", lambda h: h + h * h),
]:
    w, x = Value(3.0), Value(2.0)
    hasty(expression(w * x))
    print(f"{text}: w.grad = {w.grad:g}")

# sphinx_gallery_start_ignore
assert w.grad == 2
_w, _x = Value(3.0), Value(2.0)
_h = _w * _x
hasty(_h * _h + _h)
assert _w.grad == (2 * 6 + 1) * 2 == 26
# sphinx_gallery_end_ignore

# %%
# For both, the derivative is :math:`(2h + 1) \cdot x = 26`. In ``h + h*h`` the walk finds ``h`` first and passes on the 1 that
# has arrived there. The 12 from ``h*h`` arrives too late.
#
# **Setting where you should add.** With ``before.grad = part`` in place of ``+=``, the last part wins. ``x * x`` at 3 then has
# the derivative 3:


def setting(root):
    for before, part in zip(root.inputs, root.local(1.0), strict=True):
        before.grad = part


x = Value(3.0)
setting(x * x)
print(f"set: {x.grad:g}, but the derivative is {2 * x.data:g}")

# sphinx_gallery_start_ignore
assert x.grad == 3
# sphinx_gallery_end_ignore

# %%
# Exercise
# --------
# In step 4, ``x.grad`` is a plain number, which has no derivative. Change the class of step 4 so that it has one: the second
# derivative of :math:`x^3` at 2 is 12. What has to be a ``Value`` that was a number?
#
# .. solution::
#
# The gradients. Let ``local`` compute with the inputs themselves instead of their ``data``. Then the walk is recorded too. In
# PyTorch, ``create_graph=True`` does this.


class Value(Value):
    def __mul__(self, other):
        both = (self, other)
        return Value(self.data * other.data, both, lambda g: (g * other, g * self))

    def gradient(self, leaf):
        arrived = {self: Value(1.0)}
        while arrived:
            value = max(arrived, key=lambda value: value.number)
            g = arrived.pop(value)
            if value is leaf:
                return g
            for before, part in zip(value.inputs, value.local(g), strict=True):
                arrived[before] = arrived[before] + part if before in arrived else part
        return Value(0.0)


x = Value(2.0)
derivative = x * x * x
for order in (1, 2, 3, 4):
    derivative = derivative.gradient(x)
    print(f"order {order}: {derivative.data:g}")

# sphinx_gallery_start_ignore
assert derivative.data == 0 and (x * x * x).gradient(x).gradient(x).data == 12
_h = x * x
assert (_h * _h).gradient(_h).data == 8  # by a value that is no leaf
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_functions_exp_function.py`: give PyTorch your own ``local``.
# - Elsewhere: `micrograd <https://github.com/karpathy/micrograd>`__, and `Autodidax
#   <https://docs.jax.dev/en/latest/autodidax.html>`__, which builds JAX's core.
