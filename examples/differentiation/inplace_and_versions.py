r"""
In-place operations: version counters, silent errors
====================================================

.. in-short::

   Backward reads values that the forward pass saved. If you overwrite one of them, ``backward()`` usually raises *modified by
   an inplace operation*. The usual cure is to leave out the underscore: ``y = y + 1`` instead of ``y.add_(1)`` or ``y += 1``.
   Writes through ``.data``, NumPy or a fused optimizer (``fused=True``) are not noticed, so the gradient can be silently wrong.
"""

# %%
# The problem: the same write is harmless here and fatal there
# ------------------------------------------------------------
# To save memory, you add a skip connection with ``+=``. With ``gelu`` the training step runs, with ``relu`` it raises:

import torch
import torch.nn.functional as F
from torch import nn
from torch.autograd.graph import (
    allow_mutation_on_saved_tensors,
    saved_tensors_hooks,
)

linear, batch = nn.Linear(3, 3), torch.ones(4, 3)


def loss_with(activation):
    hidden = activation(linear(batch))
    hidden += batch
    return hidden.square().mean()


loss_with(F.gelu).backward()
print("gelu: weight.grad has the shape", tuple(linear.weight.grad.shape))
try:
    loss_with(F.relu).backward()
except RuntimeError as error:
    message = str(error).split(" Hint")[0]
    print("relu:", message)

# sphinx_gallery_start_ignore
assert "is at version 1; expected version 0 instead" in message
_found = linear.weight.grad.clone()
linear.zero_grad()
(F.gelu(linear(batch)) + batch).square().mean().backward()
assert torch.equal(linear.weight.grad, _found)
(F.relu(linear(batch)) + batch).square().mean().backward()  # raises nothing
# sphinx_gallery_end_ignore

# %%
# Forward records a *node* for each operation, which computes its gradient in backward. **Overwriting is safe for backward if no
# node has saved the old value.** The node of ``gelu`` saves its input, that of ``relu`` its result, which ``+=`` destroys. Two
# simple functions show why. The derivative of :math:`\log x` is :math:`1/x`, so ``log`` saves its input. The derivative of
# :math:`e^x` is :math:`e^x`, so ``exp`` saves its result:

x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
y = torch.exp(x)
z = torch.log(x)

# graph: y, z -- Each node saves one tensor: exp its result y, log its input x

# sphinx_gallery_start_ignore
assert torch.equal(y.grad_fn._saved_result, y) and torch.equal(z.grad_fn._saved_self, x)
assert not hasattr(y.grad_fn, "_saved_self") and not hasattr(z.grad_fn, "_saved_result")
_x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
_z = torch.log(_x)
_z.add_(1)
_z.sum().backward()
assert torch.allclose(_x.grad, 1 / _x.detach())
_y = torch.exp(_x)
_y.add_(1)
_raised = []
try:
    _y.sum().backward()
except RuntimeError as error:
    _raised.append("has been modified by an inplace operation" in str(error))
assert _raised == [True]
# sphinx_gallery_end_ignore

# %%
# How to read the message
# -----------------------
# In this function, ``gate`` is saved twice: as the result of ``sigmoid`` and as a factor. Then three lines write to it.


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


print(error_of(gated))

# sphinx_gallery_start_ignore
import re

assert "is at version 3; expected version 0" in error_of(gated)
assert re.search(r"output 0 of Add(Backward0)?, ", error_of(gated))


def unrecorded(x):
    gate = torch.sigmoid(x)
    out = gate * x
    with torch.no_grad():
        gate.add_(1)
    return out.sum()


def own_result(x):
    gate = torch.sigmoid(x)
    gate.add_(1)
    return gate.sum()


assert re.search(r"output 0 of Sigmoid(Backward0)?, ", error_of(unrecorded))
assert re.search(r"output 0 of Sigmoid(Backward0)?, ", error_of(own_result))
assert re.search(r"output 0 of Relu(Backward0)?, ", message)


def saved_view(x):
    a = x * 2
    part = a[:2]
    out = part * part
    a.mul_(3)
    return out.sum()


def through_view(x):
    a = x * 2
    out = a * a
    a[:2].mul_(3)
    return out.sum()


def constant(x):
    factor = torch.ones(3)
    out = factor * x
    factor.add_(1)
    return out.sum()


assert re.search(r"output 0 of AsStrided(Backward0)?, ", error_of(saved_view))
assert "[torch.FloatTensor [2]]" in error_of(saved_view)  # the view's shape, not a's


def other_view(x):
    a = x * 2
    part = a[:2]
    out = part * part
    a[1:].mul_(3)
    return out.sum()


assert re.search(r"output 0 of AsStrided(Backward0)?, ", error_of(other_view))


def first_element(x):
    a = x * 2
    out = a * a
    a[0] = 5
    return out.sum()


assert re.search(r"output 0 of \S*CopySlices, ", error_of(first_element))
assert re.search(r"output 0 of \S*CopySlices, ", error_of(through_view))


def parameter(x):
    out = x * x
    with torch.no_grad():
        x.add_(1)
    return out.sum()


for _leaf in (constant, parameter):
    assert "output" not in error_of(_leaf).split("operation")[1]


_gate = torch.sigmoid(torch.ones(3, requires_grad=True))
_saved = (_gate * torch.ones(3, requires_grad=True)).grad_fn._saved_self
assert torch.equal(_gate.grad_fn._saved_result, _gate) and torch.equal(_saved, _gate)

import warnings

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    with torch.autograd.set_detect_anomaly(True):
        error_of(gated)
frames = re.findall(r"line \d+, in (\w+)\n +(.+)", str(caught[0].message))
assert frames[-1] == ("gated", "out = gate * x")


def fixed(x):
    gate = torch.sigmoid(x)
    out = gate * x
    gate = (gate * 2).clamp(max=1.5) + 1
    return out.sum() + gate.sum()


double = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64, requires_grad=True)
assert torch.autograd.gradcheck(fixed, double)
# sphinx_gallery_end_ignore

# %%
# - ``[torch.FloatTensor [3]]``: type and shape of the tensor that was *saved*. In this function it is ``gate``.
# - ``version 3; expected version 0``: the counter now, and the counter when ``gate`` was saved. Three writes came between.
# - ``output 0 of Add``: in this message it is the *last write*, ``gate.add_(1)``.
#
# Other names that you may read there:
#
# - ``AsStrided``: a *view* was saved, such as a slice. Look for a write to a tensor that shares its memory.
# - ``CopySlices``: the tensor was written to through a view, as ``gate[0] = 5`` does.
# - An operation before the write: its node saved its own result, as ``Relu`` above, or the write was under ``no_grad``.
# - No operation: the tensor is a leaf, such as a parameter or a constant.

# %%
# :ref:`Anomaly mode <sphx_glr_gallery_debugging_anomaly_detection.py>` adds the forward stack of the node that failed. Your
# last line in it, ``out = gate * x``, is the one that *saved* the value. To find the write, print ``gate._version`` after each
# call, and see where it grows.

# %%
# Why: each tensor counts its writes
# ----------------------------------
# The counter is ``t._version``. For example, ``t.add_(1)``, ``t += 1``, ``t[0] = 5`` and ``torch.exp(u, out=t)`` each add one
# to it. A node keeps the version of what it saves, and compares when backward reads it. Inside ``saved_tensors_hooks`` or
# ``save_on_cpu`` it skips the comparison.
#
# Tensors that share memory can have separate counters:
#
# .. how-measured:: For each name, this code makes a new tensor, writes through the name, and reads the counter.

import pandas as pd


def write_through(way):
    t = torch.zeros(3)
    other = way(t)
    other[:] = 1
    return {"t has changed": bool(t.any()), "t._version": t._version}


WAYS = {
    "t": lambda t: t,
    "t[:2]": lambda t: t[:2],
    "t.view(3)": lambda t: t.view(3),
    "t.detach()": lambda t: t.detach(),
    "t.clone()": lambda t: t.clone(),
    "t.data": lambda t: t.data,
    "t.numpy()": lambda t: t.numpy(),
    "torch.from_dlpack(t)": torch.from_dlpack,
}


def tabulate_writes():
    table = pd.DataFrame({name: write_through(way) for name, way in WAYS.items()}).T
    return table.rename_axis(index=None, columns="write through")


# %%
# A changed ``t`` with the version 0 is the dangerous combination:

# sphinx_gallery_start_ignore
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
assert counts == [0, 1, 2, 3, 4]

for _hooks in (
    torch.autograd.graph.save_on_cpu(),
    saved_tensors_hooks(torch.Tensor.detach, torch.Tensor.detach),
):
    with _hooks:
        _x = torch.ones(3, requires_grad=True)
        _loss = own_result(_x)  # overwrites what sigmoid saved
    _loss.backward()  # not compared: nothing is raised
_table = tabulate_writes()
assert _table["t has changed"].tolist() == [True] * 4 + [False] + [True] * 3
assert _table["t._version"].tolist() == [1] * 4 + [0] * 4
# sphinx_gallery_end_ignore
tabulate_writes()

# %%
# Views and ``detach()`` share the counter of ``t``. So a write to one row makes the other rows look changed, too: see
# :ref:`sphx_glr_gallery_differentiation_slice_assignment.py`.

# %%
# What is silently wrong
# ----------------------
# A write that the counter misses can give a wrong gradient. Four such writes:


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
# To find such a write, compare *values* in a test. ``saved_tensors_hooks`` calls ``keep_copy`` when a tensor is saved, and
# ``unchanged`` when backward reads it. An alarm can be false: for a saved ``nan``, or for the running statistics of
# ``nn.BatchNorm1d`` in training.


def numbers(t):
    return [round(value, 2) for value in t.flatten().tolist()]


def keep_copy(saved):
    copy = saved.clone()
    return (saved if saved.is_leaf else saved.detach()), copy  # saved itself can leak


def unchanged(pair):
    saved, copy = pair
    assert torch.equal(saved, copy), f"{numbers(copy)} became {numbers(saved)}"
    return saved


def gradient(function):
    x = torch.tensor([0.0, 1.0, 2.0], requires_grad=True)
    function(x).backward()
    return numbers(x.grad)


# %%
# .. how-measured:: Each case runs without the hooks and with them. The right gradients are written by hand.

right = {
    clamp_data: [1.0, 2.72, 0.0],
    clear_numpy: [1.0, 2.72, 7.39],
    refill_buffer: [1.0, 1.0, 1.0],
    assign_data: [0.0, 2.0, 4.0],
}


def tabulate_silent_writes():
    rows = {}
    for function, expected in right.items():
        found = gradient(function)
        assert found != expected
        row = rows[function.__name__] = {"x.grad": str(found), "right": str(expected)}
        try:
            with saved_tensors_hooks(keep_copy, unchanged):
                gradient(function)
        except AssertionError as error:
            row["what the assert says"] = str(error)
    return pd.DataFrame(rows).T.rename_axis(index=None, columns="silent write")


# %%
# Without the hooks, each of the four rows has a wrong gradient and no error:

# sphinx_gallery_start_ignore
_table = tabulate_silent_writes()
assert _table["what the assert says"].str.contains(" became ").all()
assert _table["x.grad"].tolist() == [
    "[1.0, 2.72, 3.0]",
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


def _step_between(x):
    weight = torch.ones(3, requires_grad=True)
    loss = (weight * (x + 1)).sum()
    loss.backward(retain_graph=True)
    torch.optim.SGD([weight], lr=0.1, fused=True).step()
    return loss


gradient(_step_between)  # nothing is raised
_caught = []
try:
    with saved_tensors_hooks(keep_copy, unchanged):
        gradient(_step_between)
except AssertionError as error:
    _caught.append(error)
assert _caught

# what the hooks cannot see, and where they see too much
from torch.utils.checkpoint import checkpoint


def _inside_checkpoint(x):
    return checkpoint(clamp_data, x, use_reentrant=False)


def _inside_save_on_cpu(x):
    with torch.autograd.graph.save_on_cpu():
        return clamp_data(x)


with saved_tensors_hooks(keep_copy, unchanged):
    assert gradient(_inside_checkpoint) != right[clamp_data]
    assert gradient(_inside_save_on_cpu) != right[clamp_data]
_raised = []
try:
    unchanged(keep_copy(torch.tensor([float("nan")])))
except AssertionError as error:
    _raised.append(str(error))
assert _raised == ["[nan] became [nan]"]
for _training in (True, False):
    _norm, _alarms = nn.BatchNorm1d(3).train(_training), []
    try:
        with saved_tensors_hooks(keep_copy, unchanged):
            _norm(
                torch.tensor([[1.0, 2, 3], [4, 6, 8]], requires_grad=True)
            ).sum().backward()
    except AssertionError as error:
        _alarms.append(str(error))
    assert _alarms == (
        ["[0.0, 0.0, 0.0] became [0.25, 0.4, 0.55]"] if _training else []
    )
import gc
import weakref


def _leaks(pack):
    with saved_tensors_hooks(pack, unchanged):
        y = torch.exp(torch.ones(3, requires_grad=True))
    memory = weakref.ref(y.untyped_storage())
    del y
    gc.collect()
    return memory() is not None


assert not _leaks(keep_copy) and _leaks(lambda saved: (saved, saved.clone()))
# sphinx_gallery_end_ignore
tabulate_silent_writes()

# %%
# The assert catches all four. The cures:
#
# - ``y = y.clamp(max=3)`` instead of ``.data``.
# - ``y.detach().numpy().copy()`` for an array that somebody may write to.
# - ``torch.tensor(buffer)``, which copies, instead of ``torch.from_numpy(buffer)``, which shares.
# - ``with torch.no_grad(): x.zero_()`` for a change of a parameter. It is counted, so ``assign_data`` raises with it.
#
# The hooks also catch the step of a fused optimizer. They miss what is saved inside ``checkpoint(..., use_reentrant=False)`` or
# ``save_on_cpu``.

# %%
# What people get wrong
# ---------------------
# **An optimizer step between forward and backward.** Two networks are trained in turn, as in a GAN
# (`pytorch#39141 <https://github.com/pytorch/pytorch/issues/39141>`__). The step writes to the weight of the critic in place,
# and the graph of the second loss has saved it:

torch.manual_seed(0)
generator, critic = nn.Linear(3, 2), nn.Linear(2, 1)
optimizer = torch.optim.SGD(critic.parameters(), lr=0.1)

fake = generator(torch.ones(4, 3))
critic_loss = critic(fake.detach()).mean()
generator_loss = -critic(fake).mean()

optimizer.zero_grad()
critic_loss.backward()
optimizer.step()
try:
    generator_loss.backward()
except RuntimeError as error:
    message = str(error).split(" Hint")[0]
    print(message)

# sphinx_gallery_start_ignore
assert "is at version 2; expected version 1" in message and "[2, 1]]" in message
assert re.search(r"output 0 of AsStrided(Backward0)?, ", message)
# sphinx_gallery_end_ignore

# %%
# A view was saved: ``[2, 1]`` is the shape of the critic's weight, transposed. Compute the generator's loss after the step:

generator_loss = -critic(fake).mean()
generator_loss.backward()
print("gradient of shape", tuple(generator.weight.grad.shape))

# sphinx_gallery_start_ignore
assert critic.weight.shape == (1, 2) and critic.weight._version == 2
assert generator.weight.grad.abs().sum() > 0
# sphinx_gallery_end_ignore

# %%
# **The same step, fused.** With ``fused=True``, the optimizers of PyTorch 2.13 write without counting. So you silently get the
# gradient for the weights *after* the step. The cure is the same: compute the loss after the step.

optimizer = torch.optim.SGD(critic.parameters(), lr=0.1, fused=True)
critic.zero_grad()
critic(fake.detach()).mean().backward()
generator_loss = -critic(fake).mean()
(right,) = torch.autograd.grad(generator_loss, fake, retain_graph=True)

optimizer.step()
(wrong,) = torch.autograd.grad(generator_loss, fake)
print("right:", right[0], "  after the step:", wrong[0])

# sphinx_gallery_start_ignore
assert not torch.allclose(right, wrong)
assert torch.allclose(wrong, -critic.weight.detach().expand(4, 2) / 4)
version = critic.weight._version
optimizer.step()
assert critic.weight._version == version
for _name in ("SGD", "Adam", "AdamW", "Adagrad"):
    _weight = nn.Parameter(torch.ones(3))
    _weight.grad = torch.ones(3)
    getattr(torch.optim, _name)([_weight], lr=0.1, fused=True).step()
    assert (_weight < 1).all() and _weight._version == 0
_raised = []
with saved_tensors_hooks(keep_copy, unchanged):
    _loss = -critic(fake.detach().requires_grad_()).mean()
critic(fake.detach()).mean().backward()
optimizer.step()
try:
    _loss.backward()
except AssertionError as error:
    _raised.append(str(error))
assert len(_raised) == 1 and " became " in _raised[0]
# sphinx_gallery_end_ignore

# %%
# **Trusting** ``allow_mutation_on_saved_tensors()``. It copies a saved tensor just before a write, and backward reads the copy.
# But in PyTorch 2.13 it silently misses some writes, such as the one to ``y[1:]``:

x = torch.tensor([0.0, 1.0, 2.0], requires_grad=True)
for start in (0, 1):
    with allow_mutation_on_saved_tensors():
        y = torch.exp(x)
        y[start:].add_(1)
        (found,) = torch.autograd.grad(y.sum(), x)
    print(f"write to y[{start}:], gradient {numbers(found)}, right {numbers(x.exp())}")

# sphinx_gallery_start_ignore


def _repaired(write):
    x = torch.tensor([0.0, 1.0, 2.0], requires_grad=True)
    with allow_mutation_on_saved_tensors():
        y = torch.exp(x)
        loss = y.sum()
        write(y)
        loss.backward()
    return torch.allclose(x.grad, x.detach().exp())


assert _repaired(lambda y: y.add_(1)) and _repaired(lambda y: y[:2].add_(1))
assert not _repaired(lambda y: y[1:].add_(1))
assert not _repaired(lambda y: y.__setitem__(1, 5))
assert numbers(found) == [1.0, 3.72, 8.39]
refused = []
try:
    with allow_mutation_on_saved_tensors():
        y = torch.exp(x)
    y.sum().backward()
except AssertionError as error:
    refused.append(str(error))
assert len(refused) == 1 and "outside of the" in refused[0]
# sphinx_gallery_end_ignore

# %%
# Exercise
# --------
# Which results may be overwritten before backward, if nothing else has saved them: those of ``exp``, ``log``, ``sin``,
# ``sigmoid``, ``tanh``, ``sqrt``, ``relu``, ``abs`` and ``square``? Write down the derivative of each. Is it simpler in terms
# of the input or of the result? (For ``relu``, PyTorch uses the result.)
#
# .. solution::
#
# Four of these nodes save the input, and their results may be overwritten: :math:`1/x`, :math:`\cos x`,
# :math:`\operatorname{sign} x`, :math:`2x`. The other five save the result :math:`y`: :math:`y`, :math:`y(1-y)`,
# :math:`1-y^2`, :math:`1/(2y)`, and for ``relu`` whether :math:`y > 0`.

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

# predict: len(saving_result) -- How many of the nine results may not be overwritten?

# sphinx_gallery_start_ignore
assert saving_result == ["exp", "sigmoid", "tanh", "sqrt", "relu"]
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_tensors_copy_table.py`: which operations share memory, all measured.
# - In PyTorch's reference: `In-place operations with autograd
#   <https://docs.pytorch.org/docs/stable/notes/autograd.html#in-place-operations-with-autograd>`__.
