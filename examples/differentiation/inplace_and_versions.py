r"""
"Modified by an inplace operation": version counters, views, silent errors
==========================================================================

A backward pass reads values that the forward pass left behind, and an in-place operation can overwrite them in
between. Autograd guards against that: a tensor counts the writes to it, and ``backward()`` raises an error when a
value it needs was written to. This page shows the counter, how to read the error and find the lines behind it, and
the writes that are not counted (fused optimizers and batch norm's statistics too), where the gradient is wrong and
nothing is raised.
"""

# %%
# A tensor counts its writes
# --------------------------
# ``_version`` starts at 0, and an in-place operation adds one: a method such as ``add_``, an augmented assignment, an
# assignment to an index, an ``out=`` argument.

import re
import textwrap
import warnings

import pandas as pd
import torch
from torch import nn
from torch.autograd.graph import saved_tensors_hooks

t = torch.zeros(3)
counts = [t._version]
t.add_(1)
counts.append(t._version)
t += 1
counts.append(t._version)
t[0] = 5
counts.append(t._version)
torch.exp(torch.zeros(3), out=t)
counts.append(t._version)

print("at first, and after each write:", counts)
assert counts == [0, 1, 2, 3, 4]

# %%
# Several tensors can share one memory. Whether they share the counter too is another question. Write through seven
# names, and look at ``t`` each time:


def write_through(way):
    t = torch.zeros(3)
    other = way(t)
    other[:] = 1
    return {"t has changed": bool(t.any()), "t._version": t._version}


ways = {
    "t": lambda t: t,
    "t[:2]": lambda t: t[:2],
    "t.view(3)": lambda t: t.view(3),
    "t.detach()": lambda t: t.detach(),
    "t.clone()": lambda t: t.clone(),
    "t.data": lambda t: t.data,
    "t.numpy()": lambda t: t.numpy(),
}
table = pd.DataFrame({name: write_through(way) for name, way in ways.items()}).T

# sphinx_gallery_start_ignore
assert table["t has changed"].tolist() == [True] * 4 + [False] + [True] * 2
assert table["t._version"].tolist() == [1] * 4 + [0] * 3
# sphinx_gallery_end_ignore
table.rename_axis(index=None, columns="write through")

# %%
# A view shares the counter of its base, and so does the result of ``detach()``. A clone has memory of its own. The
# last two rows are the dangerous ones: ``t`` has changed, and its counter has not moved.

# %%
# Who needs the old value
# -----------------------
# A node saves what its derivative formula reads. The derivative of :math:`e^x` is :math:`e^x`, so the node of ``exp``
# saves its *result*. The derivative of :math:`\log x` is :math:`1/x`, so the node of ``log`` saves its *input*. With
# the tensor, the node keeps the version that the tensor had.

x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
y = torch.exp(x)
z = torch.log(x)

# graph: y, z -- Each node saves one tensor: exp its result y, log its input x

print("exp saved y:", torch.equal(y.grad_fn._saved_result, y))
print("log saved x:", torch.equal(z.grad_fn._saved_self, x))

# sphinx_gallery_start_ignore
assert torch.equal(y.grad_fn._saved_result, y) and torch.equal(z.grad_fn._saved_self, x)
assert not hasattr(y.grad_fn, "_saved_self") and not hasattr(z.grad_fn, "_saved_result")
# sphinx_gallery_end_ignore

# %%
# So the same write is harmless to one and fatal to the other. Add 1 to both results:


def numbers(t):
    return [round(value, 4) for value in t.tolist()]


y.add_(1)
z.add_(1)

z.sum().backward()
print("gradient of log:", numbers(x.grad))
try:
    y.sum().backward()
except RuntimeError as error:
    message = str(error)
    print(textwrap.fill(f"RuntimeError: {message}", 88))
assert "has been modified by an inplace operation" in message

# sphinx_gallery_start_ignore
assert torch.allclose(x.grad, 1 / x.detach())
assert "is at version 1; expected version 0 instead" in message
# sphinx_gallery_end_ignore

# %%
# The write to ``z`` was recorded like any other operation, and the gradient :math:`1/x` is right. The write to ``y``
# destroyed what the backward of ``exp`` reads. The versions are compared when a node takes out what it saved. So the
# error comes from ``backward()``, far from the write, and only where a node needs the old value.

# %%
# Reading the message
# -------------------
# Here the three lines that matter are three different lines: one computes ``gate``, one saves it, one writes to it.


def gated(x):
    gate = torch.sigmoid(x)
    out = gate * x
    gate.mul_(2)
    gate.clamp_(max=1.5)
    gate.add_(1)
    return out.sum() + gate.sum()


def error_of(function):
    try:
        function(torch.tensor([1.0, 2.0, 3.0], requires_grad=True)).backward()
    except RuntimeError as error:
        return str(error).split(" Hint")[0]


message = error_of(gated)
print(textwrap.fill(message, 88))
assert "is at version 3; expected version 0" in message

# sphinx_gallery_start_ignore
assert re.search(r"output 0 of Add(Backward0)?, ", message)


def _unrecorded(x):
    gate = torch.sigmoid(x)
    out = gate * x
    with torch.no_grad():
        gate.add_(1)
    return out.sum()


def _own_result(x):
    gate = torch.sigmoid(x)
    gate.add_(1)
    return gate.sum()


assert re.search(r"output 0 of Sigmoid(Backward0)?, ", error_of(_unrecorded))
assert re.search(r"output 0 of Sigmoid(Backward0)?, ", error_of(_own_result))


def _saved_view(x):
    a = x * 2
    part = a[:2]
    out = part * part
    a.mul_(3)
    return out.sum()


def _saved_transposed(x):
    weight = torch.ones(2, 3, requires_grad=True) * 1
    out = weight.t() @ torch.ones(2) + (x[:, None] * weight.t()).sum(1)
    weight.mul_(3)
    return out.sum()


def _through_view(x):
    a = x * 2
    out = a * a
    a[:2].mul_(3)
    return out.sum()


def _constant(x):
    factor = torch.ones(3)
    out = factor * x
    factor.add_(1)
    return out.sum()


assert re.search(r"output 0 of AsStrided(Backward0)?, ", error_of(_saved_view))
assert re.search(r"output 0 of AsStrided(Backward0)?, ", error_of(_saved_transposed))
assert re.search(r"output 0 of \S*CopySlices, ", error_of(_through_view))
assert "output" not in error_of(_constant).split("operation")[1]
# sphinx_gallery_end_ignore

# %%
# - ``[torch.FloatTensor [3]]``: type and shape of the tensor that was overwritten. Look for that shape in your model.
# - ``version 3; expected version 0``: the counter now, and when it was saved. The difference is the number of writes.
# - ``output 0 of Add``: a recorded write makes the tensor an output of the write, so this is the *last write*,
#   ``gate.add_(1)``. Other names mean something else. ``AsStrided``: a *view* was saved, such as a slice or a
#   transposed weight, so look for a write to the tensor that it is a view of. ``CopySlices``: the write went through a
#   view of the saved tensor. A node that saved its own result, as ``exp`` above, names itself. And a write under
#   ``no_grad`` is counted but not recorded, so the message names an older operation, or none.

# %%
# Finding the lines
# -----------------
# In :ref:`anomaly mode <sphx_glr_gallery_debugging_anomaly_detection.py>`, a warning carries the forward stack of the
# node that failed. Its last frame is the line that *saved* the value:

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    with torch.autograd.set_detect_anomaly(True):
        error_of(gated)

report = str(caught[0].message)
print(report.splitlines()[0])
function, line = re.findall(r"line \d+, in (\w+)\n +(.+)", report)[-1]
print(f"  in {function}: {line}")
assert line == "out = gate * x"

# %%
# That line did nothing wrong: it used ``gate``, and the write came after it. To find a write that the message does
# not name, ask for the counter after each call that gets hold of the tensor. Where it moves, there is the write.

suspects = {
    "scale": lambda t: t * 2,
    "shift": lambda t: t.add_(1),
    "report": lambda t: t.detach().mean(),
}
gate = torch.sigmoid(x)
versions = []
for name, suspect in suspects.items():
    suspect(gate)
    versions.append(gate._version)
    print(f"after {name:<6} version {gate._version}")
assert versions == [0, 1, 1]

# sphinx_gallery_start_ignore


def _mended(x):
    gate = torch.sigmoid(x)
    out = gate * x
    gate = (gate * 2).clamp(max=1.5) + 1
    return out.sum() + gate.sum()


_x = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64, requires_grad=True)
assert torch.autograd.gradcheck(_mended, _x)
# sphinx_gallery_end_ignore

# %%
# The cure is nearly always to leave out the underscore: ``gate = gate + 1`` makes a new tensor and leaves the saved
# one alone.

# %%
# Writing through a view
# ----------------------
# ``part`` is a view of ``a``. A write into ``part`` changes ``a``, so the graph of ``a`` has to change too. Autograd
# gives ``a`` a new node, ``CopySlices``: it stands for ``a`` as it was, with one region replaced.

x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
a = x * 2
part = a[:2]
print("before:", a.grad_fn.name(), "version", a._version)
part.mul_(10)
print("after: ", a.grad_fn.name(), "version", a._version, a.tolist())

total = a.sum()
total.backward()
print("x.grad:", x.grad.tolist())

# graph: total -- a was written to through the view part: CopySlices holds the write

# sphinx_gallery_start_ignore
assert x.grad.tolist() == [20, 20, 2] and a.tolist() == [20, 40, 6]
assert a.grad_fn.name().endswith("CopySlices") and a._version == 1 == part._version
# sphinx_gallery_end_ignore

# %%
# The first two gradients carry the factor 10, the third does not: writing into a part of a tensor is supported, and
# right. What autograd cannot follow is refused at the write itself: a leaf that requires a gradient, a view of one,
# and one of several views that a single operation returned.


def leaf(x):
    x.add_(1)


def view_of_leaf(x):
    x[0] = 0


def one_of_several(x):
    first, *_ = (x * 2).unbind()
    first.add_(1)


for function in (leaf, view_of_leaf, one_of_several):
    message = error_of(function)
    print(textwrap.fill(f"{function.__name__}: {message}", 88))
    assert "in-place operation" in message or "modified inplace" in message

# %%
# What is silently wrong
# ----------------------
# A write that the counter misses gives a wrong gradient and no error. Here are four of them.


def clamp_data(x):  # activations clipped "behind the back of autograd"
    y = torch.exp(x)
    y.data.clamp_(max=3)
    return y.sum()


def clear_numpy(x):  # an array taken for a log, emptied afterwards
    y = torch.exp(x)
    loss = y.sum()
    y.detach().numpy()[:] = 0
    return loss


def refill_buffer(x):  # a NumPy buffer filled with the next batch too early
    buffer = torch.ones(3).numpy()
    loss = (x * torch.from_numpy(buffer)).sum()
    buffer[:] = 0
    return loss


def assign_data(x):  # a parameter replaced between forward and backward
    loss = (x**2).sum()
    x.data = torch.zeros(3)
    return loss


# %%
# To compare versions does not help here, so compare *values*. This pair of hooks keeps a copy of every tensor that is
# saved, and asserts that it is unchanged when backward takes it out. It needs the memory of all saved tensors a
# second time: a tool for a test of the model, not for training.


def keep_copy(saved):
    return saved, saved.clone()


def unchanged(pair):
    saved, copy = pair
    assert torch.equal(saved, copy), f"{numbers(copy)} became {numbers(saved)}"
    return saved


def gradient(function):
    x = torch.tensor([0.0, 1.0, 2.0], requires_grad=True)
    function(x).backward()
    return numbers(x.grad)


# %%
# Each case runs without the hooks and with them. The column *right* is the gradient of the intended function, written
# down by hand.

right = {
    clamp_data: [1.0, 2.7183, 0.0],
    clear_numpy: [1.0, 2.7183, 7.3891],
    refill_buffer: [1.0, 1.0, 1.0],
    assign_data: [0.0, 2.0, 4.0],
}
rows = []
for function, expected in right.items():
    found = gradient(function)
    assert found != expected
    rows.append([function.__name__, str(found), str(expected)])
    try:
        with saved_tensors_hooks(keep_copy, unchanged):
            gradient(function)
    except AssertionError as error:
        rows[-1].append(str(error))

# sphinx_gallery_start_ignore


class _Attribute(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.result = torch.exp(x)
        return ctx.result.clone()

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.result


_x = torch.tensor([0.0, 1.0, 2.0], requires_grad=True)
with saved_tensors_hooks(keep_copy, unchanged):
    _loss = _Attribute.apply(_x)
    _loss.grad_fn.result.zero_()
    _loss.sum().backward()
assert not _x.grad.any()

assert [len(row) for row in rows] == [4] * 4
assert [row[1] for row in rows] == [
    "[1.0, 2.7183, 3.0]",
    "[0.0, 0.0, 0.0]",
    "[0.0, 0.0, 0.0]",
    "[0.0, 0.0, 0.0]",
]


def _clamp(x):
    return torch.exp(x).clamp(max=3).sum()


def _copy(x):
    y = torch.exp(x)
    loss = y.sum()
    y.detach().numpy().copy()[:] = 0
    return loss


def _tensor(x):
    buffer = torch.ones(3).numpy()
    loss = (x * torch.tensor(buffer)).sum()
    buffer[:] = 0
    return loss


def _no_grad(x):
    loss = (x**2).sum()
    with torch.no_grad():
        x.zero_()
    return loss


def _clamp_(x):
    return torch.exp(x).clamp_(max=3).sum()


with saved_tensors_hooks(keep_copy, unchanged):
    assert gradient(_clamp) == right[clamp_data]
    assert gradient(_copy) == right[clear_numpy]
    assert gradient(_tensor) == right[refill_buffer]
assert "is at version 1; expected version 0" in error_of(_no_grad)
assert "is at version 1; expected version 0" in error_of(_clamp_)
# sphinx_gallery_end_ignore
columns = ["silent write", "x.grad", "right", "what the assert says"]
table = pd.DataFrame(rows, columns=columns).set_index("silent write")
table.rename_axis(index=None, columns="silent write")

# %%
# Every gradient is wrong, no call raised, and the assert catches all four. The cures:
#
# - ``y = y.clamp(max=3)`` instead of ``.data``. Even ``y.clamp_(max=3)`` is better: it raises.
# - ``y.detach().numpy().copy()`` for an array that somebody may write to.
# - ``torch.tensor(buffer)``, which copies, instead of ``torch.from_numpy(buffer)``, which shares.
# - ``with torch.no_grad(): x.zero_()`` for a change of a parameter. It is counted, so at the wrong moment it raises.
#
# The assert sees what is saved through autograd. What a custom Function keeps as an attribute of ``ctx`` bypasses the
# hooks and the counter.

# %%
# What people get wrong
# ---------------------
# **An optimizer step between forward and backward.** A step writes to the parameters in place, and the graph of the
# second loss has saved them. Losses of two networks that are trained in turn are the usual place
# (`pytorch#39141 <https://github.com/pytorch/pytorch/issues/39141>`__).

torch.manual_seed(0)
generator, critic = nn.Linear(3, 2), nn.Linear(2, 1)
optimizer = torch.optim.SGD(critic.parameters(), lr=0.1)

fake = generator(torch.ones(4, 3))
critic_loss = critic(fake.detach()).mean()
generator_loss = -critic(fake).mean()

critic_loss.backward()
optimizer.step()
try:
    generator_loss.backward()
except RuntimeError as error:
    print(textwrap.fill(str(error).split(" Hint")[0], 88))
    assert "is at version 2; expected version 1" in str(error)

# %%
# Read it as above. ``AsStrided`` says that a view was saved, and ``[2, 1]`` is the shape of the critic's weight,
# transposed. It was at version 1, not 0, because its initialization was a write.
# One more write came: the step. Compute the generator's loss after
# the step:

generator_loss = -critic(fake).mean()
generator_loss.backward()
print("gradient of shape", tuple(generator.weight.grad.shape))

# sphinx_gallery_start_ignore
assert critic.weight.shape == (1, 2) and critic.weight._version == 2
assert generator.weight.grad.abs().sum() > 0
# sphinx_gallery_end_ignore

# %%
# **The same step, fused.** With ``fused=True`` an optimizer of the release that built this page writes without
# counting. Nothing is raised, and the gradient is that of the weights *after* the step:

optimizer = torch.optim.SGD(critic.parameters(), lr=0.1, fused=True)
critic.zero_grad()
critic(fake.detach()).mean().backward()
generator_loss = -critic(fake).mean()
(right,) = torch.autograd.grad(generator_loss, fake, retain_graph=True)

version = critic.weight._version
optimizer.step()
(wrong,) = torch.autograd.grad(generator_loss, fake)
print("writes counted:", critic.weight._version - version)
print("right:", numbers(right[0]), "  after the step:", numbers(wrong[0]))
assert critic.weight._version == version and not torch.allclose(right, wrong)

# sphinx_gallery_start_ignore
assert torch.allclose(wrong, -critic.weight.detach().expand(4, 2) / 4)


def _step_between(x):
    weight = torch.ones(3, requires_grad=True)
    loss = (weight * (x + 1)).sum()
    loss.backward(retain_graph=True)
    torch.optim.SGD([weight], lr=0.1, fused=True).step()
    return loss


def _batch_between(x):
    norm = nn.BatchNorm1d(1).eval()
    loss = norm(x[:, None]).sum()
    norm.train()(torch.arange(8.0)[:, None])
    return loss


for _function in (_step_between, _batch_between):
    gradient(_function)  # nothing is raised
    _caught = []
    try:
        with saved_tensors_hooks(keep_copy, unchanged):
            gradient(_function)
    except AssertionError as error:
        _caught.append(error)
    assert _caught
_norm, _x = nn.BatchNorm1d(1).eval(), torch.ones(8, 1, requires_grad=True)
_loss = _norm(_x).sum()
(_right,) = torch.autograd.grad(_loss, _x, retain_graph=True)
_versions = [_norm.running_mean._version, _norm.running_var._version]
_norm.train()(torch.arange(8.0)[:, None])
assert [_norm.running_mean._version, _norm.running_var._version] == _versions
assert not torch.allclose(torch.autograd.grad(_loss, _x)[0], _right)
# sphinx_gallery_end_ignore

# %%
# Compute the loss after the step, as above. The running statistics of a batch norm are written uncounted too: in
# evaluation its node saves them, and a batch in training mode before ``backward()`` changes the gradient. The pair of
# hooks that compares values catches both.
#
# **Silencing the error with** ``.data``. ``y.clamp_(max=3)`` raises, ``y.data.clamp_(max=3)`` does not. The message
# is gone and the gradient is wrong: that is ``clamp_data`` above.

# %%
# Exercise
# --------
# Which results may be overwritten before backward: those of ``exp``, ``log``, ``sin``, ``sigmoid``, ``tanh``,
# ``sqrt``, ``relu``, ``abs`` and ``square``? Write down the derivative of each, in terms of the input or of the
# result, whichever is shorter.
#
# .. solution::
#
# A result may be overwritten when the derivative is computed from the input: :math:`1/x`, :math:`\cos x`,
# :math:`\operatorname{sign} x`, :math:`2x`. The others are computed from the result :math:`y`: :math:`y`,
# :math:`y(1-y)`, :math:`1-y^2`, :math:`1/(2y)`, and for ``relu`` whether :math:`y > 0`.

saving_result = []
for name in ["exp", "log", "sin", "sigmoid", "tanh", "sqrt", "relu", "abs", "square"]:
    y = getattr(torch, name)(torch.tensor([1.0, 2.0], requires_grad=True))
    saves = "result" if hasattr(y.grad_fn, "_saved_result") else "input"
    y.add_(1)
    try:
        y.sum().backward()
        outcome = "passes"
    except RuntimeError:
        outcome = "raises"
        saving_result.append(name)
    print(f"{name:<8} saves its {saves:<7} write, then backward: {outcome}")
    assert (saves == "result") == (outcome == "raises")

# sphinx_gallery_start_ignore
assert saving_result == ["exp", "sigmoid", "tanh", "sqrt", "relu"]
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - Before: :ref:`sphx_glr_gallery_differentiation_forward_mode.py`, derivatives without a backward pass.
# - Next: :ref:`sphx_glr_gallery_differentiation_complex_gradients.py`, what ``.grad`` means for a complex tensor.
# - :ref:`sphx_glr_gallery_tensors_copy_table.py`: which operations share memory, all measured.
# - In PyTorch's reference: `In-place operations with autograd
#   <https://docs.pytorch.org/docs/stable/notes/autograd.html#in-place-operations-with-autograd>`__.
