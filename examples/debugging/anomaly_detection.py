r"""
Anomaly detection: find the forward line behind a backward error
================================================================

An error in ``backward()`` names the backward code that failed. It does not say which line of your forward pass put that
node into the graph, and that is the line you need. ``torch.autograd.detect_anomaly()`` stores the Python stack with
every node and prints it when the node fails. It also raises when a node returns NaN. This page shows what it finds,
what it misses, and what it costs.
"""

# %%
# A backward that raises
# ----------------------
# ``OneOver`` computes :math:`1/x`. Its backward refuses to work where the result is infinite.

import contextlib
import re
import time
import traceback
import warnings
from pathlib import Path

import pandas as pd
import torch


class OneOver(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = 1 / x
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad):
        (y,) = ctx.saved_tensors
        if y.isinf().any():
            raise ValueError("1/x has no derivative at x = 0")
        return -grad * y * y


# %%
# Two helpers call it through a third one, each with another centre.


def inverse_distance(x, centre):
    return OneOver.apply(x - centre)


def near(x):
    return inverse_distance(x, 1.0)


def far(x):
    return inverse_distance(x, 4.0)


def potential(x):
    return near(x) + far(x)


def step():
    x = torch.tensor(4.0, requires_grad=True)
    potential(x).backward()


# %%
# At ``x = 4`` the forward pass raises nothing: in floating point, ``1 / 0`` is ``inf``. Both nodes carry the same name,
# so a name alone cannot say which call is to blame.

x = torch.tensor(4.0, requires_grad=True)
from_near, from_far = near(x), far(x)
total = from_near + from_far

# graph: total -- Two nodes of the same Function: the one that computed inf is the one that will raise

print(f"near: {from_near.item():.4f}, made by {from_near.grad_fn.name()}")
print(f"far:  {from_far.item()}, made by {from_far.grad_fn.name()}")

# sphinx_gallery_start_ignore
assert from_far.isinf() and total.isinf() and abs(from_near.item() - 1 / 3) < 1e-6
assert from_near.grad_fn.name() == from_far.grad_fn.name() == "OneOverBackward"
# sphinx_gallery_end_ignore

# %%
# The traceback, without and with anomaly mode
# --------------------------------------------
# Anomaly mode reports the forward stack as a *warning*, not in the exception. So that both can be compared, ``report``
# runs a step, catches the exception and all warnings, and keeps the first line of each message and the frames that lie
# on this page. The many frames of PyTorch's own files are left out.


def first_line(message):
    return str(message).splitlines()[0].split(" (Triggered internally")[0]


def frames_in(text):
    found = re.findall(r'File "(.+)", line (\d+), in (.+)\n +(.+)', text)
    return [traceback.FrameSummary(file, int(number), name, line=code) for file, number, name, code in found]


def show(frames, step):
    own_files = {function.__code__.co_filename for function in (OneOver.backward, step)}
    own = [f for f in frames if f.filename in own_files and f.name not in ("<module>", "report")]
    for f in own:
        print(f"    {Path(f.filename).name}, line {f.lineno}, in {f.name}: {f.line}")
    return [f.line for f in own]


# %%
# With these three, the report is short.


def report(step, mode=contextlib.nullcontext):
    lines = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            with mode():
                step()
        except (ValueError, RuntimeError) as error:
            print(f"{type(error).__name__}: {error}")
            lines += show(traceback.extract_tb(error.__traceback__), step)
    for warning in caught:
        print(f"{warning.category.__name__}: {first_line(warning.message)}")
        lines += show(frames_in(str(warning.message)), step)
    return lines


# %%
# Without anomaly mode, the exception shows where ``backward()`` was called and what raised. Between the two lies the
# engine, which is C++ and keeps no record of your forward pass.

lines = report(step)
assert "return inverse_distance(x, 4.0)" not in lines

# %%
# With anomaly mode, the exception is the same. Two warnings come with it: one when the mode is entered, and one with the
# stack of the forward call that made the failing node.

lines = report(step, torch.autograd.detect_anomaly)
assert "return inverse_distance(x, 4.0)" in lines and "return inverse_distance(x, 1.0)" not in lines

# sphinx_gallery_start_ignore
assert lines[:2] == ["potential(x).backward()", 'raise ValueError("1/x has no derivative at x = 0")']
assert lines[2:4] == ["potential(x).backward()", "return near(x) + far(x)"]
with warnings.catch_warnings(record=True) as raw:
    warnings.simplefilter("always")
    try:
        with torch.autograd.detect_anomaly():
            step()
    except ValueError:
        pass
assert [w.category for w in raw] == [UserWarning, UserWarning]
assert raw[0].message.args[0].startswith("Anomaly Detection has been enabled")
assert "python_anomaly_mode.cpp" in str(raw[1].message)  # a Python warning, issued from C++
# sphinx_gallery_end_ignore

# %%
# Read the last block from top to bottom: ``potential`` called ``far``, ``far`` called ``inverse_distance`` with 4.0,
# and that call made the node. ``near`` is not in it.
#
# Where the stack is kept
# -----------------------
# A node has a dictionary, ``metadata``. In anomaly mode, the forward pass writes the formatted Python stack into the
# dictionary of each new node. This is why the mode has to be on while the forward pass runs.

plain = far(x)
with torch.autograd.set_detect_anomaly(True):
    watched = far(x)

print("mode off:", plain.grad_fn.metadata)
print("mode on: ", list(watched.grad_fn.metadata))
stored = frames_in("".join(watched.grad_fn.metadata["traceback_"]))
print("stored:  ", [f.name for f in stored if f.name in ("far", "inverse_distance")])

# sphinx_gallery_start_ignore
assert plain.grad_fn.metadata == {} and list(watched.grad_fn.metadata) == ["traceback_"]
assert [f.name for f in stored if f.name in ("far", "inverse_distance")] == ["far", "inverse_distance"]
# sphinx_gallery_end_ignore

# %%
# It must also be on during backward, which prints what the forward pass stored. The table tries all four combinations
# and shows what is warned.


def warned(in_forward, in_backward):
    with warnings.catch_warnings(record=True) as caught, contextlib.suppress(ValueError):
        warnings.simplefilter("always")
        with torch.autograd.set_detect_anomaly(in_forward):
            total = potential(x)
        with torch.autograd.set_detect_anomaly(in_backward):
            total.backward()
    return first_line(caught[0].message) if caught else "nothing"


both = [(False, False), (True, False), (False, True), (True, True)]
table = pd.DataFrame([("on" if f else "off", "on" if b else "off", warned(f, b)) for f, b in both])
table.columns = ["in forward", "in backward", "warned"]
table.index = pd.RangeIndex(1, 5, name="run")
table

# sphinx_gallery_start_ignore
assert list(table["warned"][:2]) == ["nothing", "nothing"]
no_information = "No forward pass information available. Enable detect anomaly during forward pass for more information."
assert table["warned"][3] == f"Error detected in OneOverBackward. {no_information}"
assert table["warned"][4] == "Error detected in OneOverBackward. Traceback of forward call that caused the error:"
# sphinx_gallery_end_ignore

# %%
# NaN in backward
# ---------------
# The distance between two equal points is 0, a finite loss. Its gradient is NaN: the derivative of the square root at 0
# is ``inf``, the derivative of the square is 0, and ``inf * 0`` is NaN.

p = torch.tensor(3.0, requires_grad=True)
q = torch.tensor(3.0)
gap = p - q
square = gap**2
distance = torch.sqrt(square)
for tensor in (gap, square):
    tensor.retain_grad()
distance.backward()

# graph: distance -- The gradient is inf behind the square root and NaN behind the square

print(f"distance {distance.item()}, gradients: square {square.grad}, gap {gap.grad}, p {p.grad}")

# sphinx_gallery_start_ignore
del tensor
assert distance.item() == 0 and square.grad.isinf() and gap.grad.isnan() and p.grad.isnan()
# sphinx_gallery_end_ignore

# %%
# No error so far: autograd does not look at the numbers. Anomaly mode looks at what every node returns, and stops at the
# first NaN.


def distance_step():
    p, q = torch.tensor(3.0, requires_grad=True), torch.tensor(3.0)
    square = (p - q) ** 2
    distance = torch.sqrt(square)
    distance.backward()
    return p.grad


lines = report(distance_step, torch.autograd.detect_anomaly)
assert "square = (p - q) ** 2" in lines and "distance = torch.sqrt(square)" not in lines

# %%
# The message counts outputs from 0: the 0th output of a node is the gradient of its first input. The line named is the
# square, because NaN appears there first. The cause is one step nearer to the loss: ``inf`` is no NaN, so the square
# root passed the check. When a line looks innocent, look at the operation that uses its result.
#
# ``check_nan=False`` keeps the stacks and leaves out this test, for a graph in which NaN is expected.

with torch.autograd.set_detect_anomaly(True, check_nan=False):
    print("check_nan=False:", distance_step())

# sphinx_gallery_start_ignore
with torch.autograd.set_detect_anomaly(True, check_nan=False):
    assert distance_step().isnan()
    lines = report(step)
assert "return inverse_distance(x, 4.0)" in lines
# sphinx_gallery_end_ignore

# %%
# Switching it on
# ---------------
# ``detect_anomaly()`` is a context and warns on entry. ``set_detect_anomaly(mode)`` takes a flag, does not warn, and
# works in two ways: as a context that restores the earlier state, or as a function call that stays in force.

enabled = torch.is_anomaly_enabled
with torch.autograd.set_detect_anomaly(True):
    print("in the context:", enabled())
print("after it:", enabled())

torch.autograd.set_detect_anomaly(True)
print("after the call:", enabled())
with torch.autograd.set_detect_anomaly(False):
    print("excepted part:", enabled())
torch.autograd.set_detect_anomaly(False)
print("switched off:", enabled())

# sphinx_gallery_start_ignore
assert not enabled()
# sphinx_gallery_end_ignore

# %%
# What it costs
# -------------
# The forward pass formats a stack for each node, the backward pass tests each gradient for NaN. Times of a chain of 50
# operations on 10,000 numbers, as multiples of the time without the mode:

# varies: ratios of times, which depend on the machine, its load and the depth of the call stack


def seconds(mode, check_nan, repeats=10):
    x = torch.ones(10_000, requires_grad=True)
    forward, backward = [], []
    with torch.autograd.set_detect_anomaly(mode, check_nan=check_nan):
        for _ in range(repeats):
            start, y = time.perf_counter(), x
            for _ in range(50):
                y = torch.tanh(y)
            middle = time.perf_counter()
            y.sum().backward()
            forward.append(middle - start)
            backward.append(time.perf_counter() - middle)
    return min(forward), min(backward)


off, stacks, full = seconds(False, False), seconds(True, False), seconds(True, True)
for name, times in [("check_nan=False", stacks), ("check_nan=True", full)]:
    ratio = sum(times) / sum(off)
    print(f"{name:<15}  forward x {times[0] / off[0]:.1f}   backward x {times[1] / off[1]:.1f}   both x {ratio:.1f}")
assert sum(full) > sum(off) and stacks[0] > off[0] and full[1] > stacks[1]

# %%
# Each pass pays for its own part. Switch the mode on for the run that fails, and off again.
#
# What people get wrong
# ---------------------
# **Taking it for a test of the loss.** Only what backward returns is checked. A NaN made in the forward pass goes
# unnoticed where the derivative is finite: the logarithm of -1 is NaN, its derivative there is -1. If an operation after it
# does return NaN in backward, that operation is blamed, since backward meets it first.


def log_step():
    x = torch.tensor(-1.0, requires_grad=True)
    logarithm = torch.log(x)
    logarithm.backward(retain_graph=True)
    print(f"logarithm {logarithm.item()}, gradient {x.grad.item()}, no error")
    loss = torch.exp(logarithm)
    loss.backward()


lines = report(log_step, lambda: torch.autograd.set_detect_anomaly(True))
assert "loss = torch.exp(logarithm)" in lines and "logarithm = torch.log(x)" not in lines

# %%
# The remedy is a check of forward values, such as ``assert loss.isfinite()``, or hooks that test every module's output.
#
# **Confusing the two names.** The argument of ``detect_anomaly`` is ``check_nan``, not an on-off flag:
# ``detect_anomaly(False)`` switches the mode on. And without ``with``, ``detect_anomaly()`` warns that the mode is on and
# switches nothing.

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    with torch.autograd.detect_anomaly(False):
        print("detect_anomaly(False) in a with:", enabled())
    torch.autograd.detect_anomaly()
    print("detect_anomaly() as a call:", enabled(), "| warned:", first_line(caught[-1].message)[:34])

# sphinx_gallery_start_ignore
assert len(caught) == 2 and not enabled()
with torch.autograd.set_detect_anomaly(True, check_nan=False):
    assert enabled() and not torch.is_anomaly_check_nan_enabled()
# sphinx_gallery_end_ignore

# %%
# **Silencing warnings.** The forward stack is a warning. A filter that ignores warnings, or a log that keeps exceptions
# only, loses it, and the mode seems to do nothing.

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("ignore")
    try:
        with torch.autograd.detect_anomaly():
            step()
    except ValueError as error:
        print(f"ValueError: {error} | warnings seen: {len(caught)}")
        assert not caught

# %%
# Exercise
# --------
# A mask multiplies the invalid entry by 0, so the loss is finite. Will backward return NaN, and which node will anomaly
# mode name? Mend ``loss`` so that the gradient is 0 for the masked entry and right for the other.
#
# .. code-block:: python
#
#    x, mask = torch.tensor([0.0, 4.0], requires_grad=True), torch.tensor([0.0, 1.0])
#    loss = (mask * torch.sqrt(x)).sum()
#
# .. solution::
#
# The mask sends 0 into the backward of the square root, which divides it by :math:`2\sqrt{0} = 0`, and ``0 / 0`` is NaN.


def masked_step():
    x, mask = torch.tensor([0.0, 4.0], requires_grad=True), torch.tensor([0.0, 1.0])
    loss = (mask * torch.sqrt(x)).sum()
    loss.backward()


lines = report(masked_step, lambda: torch.autograd.set_detect_anomaly(True))
assert "loss = (mask * torch.sqrt(x)).sum()" in lines

# %%
# Keep the invalid entry out of the square root: replace it by a harmless number first, and mask afterwards. The
# derivative at 4 is :math:`1 / (2\sqrt{4}) = 0.25`.

x, mask = torch.tensor([0.0, 4.0], requires_grad=True), torch.tensor([0.0, 1.0])
with torch.autograd.set_detect_anomaly(True):
    safe = torch.where(mask > 0, x, 1.0)
    (mask * torch.sqrt(safe)).sum().backward()

print("gradient:", x.grad.tolist())
assert x.grad.tolist() == [0.0, 0.25]

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_graphs_functions_are_nodes.py`, what a node is and how the engine walks the graph.
# - :ref:`sphx_glr_gallery_functions_exp_function.py`, how to write a Function with its own backward.
# - In PyTorch's reference: `Anomaly detection
#   <https://docs.pytorch.org/docs/stable/autograd.html#anomaly-detection>`__ and `detect_anomaly
#   <https://docs.pytorch.org/docs/stable/generated/torch.autograd.anomaly_mode.detect_anomaly.html>`__.
