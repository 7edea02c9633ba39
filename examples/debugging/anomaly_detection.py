r"""
Anomaly detection: find the forward line behind a backward error
================================================================

An error in ``backward()`` names the backward code that failed. It does not say which line of your forward pass put
that node into the graph, and that is the line you need. ``torch.autograd.detect_anomaly()`` stores the Python stack
with every node and reports it when the node fails. It also raises when a node returns NaN. This page shows what it
finds, what it misses, and what it costs.
"""

# %%
# A backward that raises
# ----------------------
# Besides PyTorch, the page needs parts of the standard library: to read tracebacks, to catch warnings, to take times.

import contextlib
import re
import time
import traceback
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import torch

# %%
# ``OneOver`` computes :math:`1/x`. Its backward refuses to work where the result is infinite.


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
            raise ValueError("no derivative at x = 0")
        return -grad * y * y


# %%
# Two functions, ``near`` and ``far``, call it through a third one. Each passes a different centre.


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
# At ``x = 4`` the forward pass raises nothing: in floating point, ``1 / 0`` is ``inf``. Both nodes carry the same
# name, so a name alone cannot say which call is to blame.

x = torch.tensor(4.0, requires_grad=True)
from_near, from_far = near(x), far(x)
total = from_near + from_far

# graph: total -- Two nodes of the same Function: the one whose result is inf will raise

print(f"near: {from_near.item():.4f}, made by {from_near.grad_fn.name()}")
print(f"far:  {from_far.item()}, made by {from_far.grad_fn.name()}")

# sphinx_gallery_start_ignore
assert from_far.isinf() and total.isinf() and abs(from_near.item() - 1 / 3) < 1e-6
assert from_near.grad_fn.name() == from_far.grad_fn.name() == "OneOverBackward"
# sphinx_gallery_end_ignore

# %%
# The traceback, without and with anomaly mode
# --------------------------------------------
# Anomaly mode leaves the exception as it is and reports the forward stack in a *warning*. Here a function ``report``
# catches both, and prints of each the message and the frames that lie on this page. The frames of PyTorch's own files
# are left out. It needs three small tools. You can skip them and read on at the output.


def headline(message):
    first_line = str(message).splitlines()[0].split(" (Triggered internally")[0]
    return first_line.replace(". ", ".\n  ")


def frames_in(text):
    found = re.findall(r'File "(.+)", line (\d+), in (.+)\n +(.+)', text)
    return [
        traceback.FrameSummary(f, int(n), name, line=code) for f, n, name, code in found
    ]


def show(frames, step):
    own_files = {f.__code__.co_filename for f in (OneOver.backward, step)}
    own = [f for f in frames if f.filename in own_files]
    own = [f for f in own if f.name not in ("<module>", "report")]
    for f in own:
        print(f"    {Path(f.filename).name}:{f.lineno}, in {f.name}: {f.line}")
    return [f.line for f in own]


# %%
# ``report`` runs a step. It returns the source lines that it printed, so that they can be asserted.


def report(step, mode=contextlib.nullcontext):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            with mode():
                step()
        except (ValueError, RuntimeError) as error:
            print(f"{type(error).__name__}: {error}")
            lines = show(traceback.extract_tb(error.__traceback__), step)
    for warning in caught:
        print(f"{warning.category.__name__}: {headline(warning.message)}")
        lines += show(frames_in(str(warning.message)), step)
    return lines


# %%
# Without anomaly mode, the exception shows where ``backward()`` was called and what raised. The functions that built
# the graph have returned by then. They are not on the stack, and no traceback can show them.

lines = report(step)
assert "return inverse_distance(x, 4.0)" not in lines

# %%
# With anomaly mode, two warnings join the same exception: one from entering the mode, and one with the stack of the
# forward call that made the failing node.

lines = report(step, torch.autograd.detect_anomaly)
assert "return inverse_distance(x, 4.0)" in lines
assert "return inverse_distance(x, 1.0)" not in lines

# sphinx_gallery_start_ignore
raising = 'raise ValueError("no derivative at x = 0")'
assert lines[:2] == ["potential(x).backward()", raising]
assert lines[2:4] == ["potential(x).backward()", "return near(x) + far(x)"]
with warnings.catch_warnings(record=True) as raw, contextlib.suppress(ValueError):
    warnings.simplefilter("always")
    with torch.autograd.detect_anomaly():
        step()
assert [warning.category for warning in raw] == [UserWarning, UserWarning]
assert str(raw[0].message).startswith("Anomaly Detection has been enabled")
# a Python warning, issued from C++
assert "python_anomaly_mode.cpp" in str(raw[1].message)
# sphinx_gallery_end_ignore

# %%
# Read the last block from top to bottom: ``potential`` called ``far``, ``far`` called ``inverse_distance`` with 4.0,
# and that call made the node. ``near`` is not in it.
#
# Where the stack is kept
# -----------------------
# A node has a dictionary, ``metadata``. In anomaly mode, the forward pass writes the formatted Python stack into the
# dictionary of each new node. ``set_detect_anomaly(True)`` is the same mode, without the warning on entry.

plain = far(x)
with torch.autograd.set_detect_anomaly(True):
    watched = far(x)

print("mode off:", plain.grad_fn.metadata)
print("mode on: ", list(watched.grad_fn.metadata))
stored = frames_in("".join(watched.grad_fn.metadata["traceback_"]))
for frame in stored:
    if frame.name in ("far", "inverse_distance"):
        print("stored:  ", frame.line)

# sphinx_gallery_start_ignore
assert plain.grad_fn.metadata == {}
assert list(watched.grad_fn.metadata) == ["traceback_"]
lines = [f.line for f in stored if f.name in ("far", "inverse_distance")]
assert lines == ["return inverse_distance(x, 4.0)", "return OneOver.apply(x - centre)"]
# sphinx_gallery_end_ignore

# %%
# So the mode has to be on while the forward pass runs. Around backward alone, there is nothing to report:


def anomaly_mode():
    return torch.autograd.set_detect_anomaly(True)


def backward_only():
    unwatched.backward()


unwatched = potential(x)
lines = report(backward_only, anomaly_mode)

# sphinx_gallery_start_ignore
told = []
for in_forward, in_backward in ((0, 0), (1, 0), (0, 1), (1, 1)):
    with warnings.catch_warnings(record=True) as raw, contextlib.suppress(ValueError):
        warnings.simplefilter("always")
        with torch.autograd.set_detect_anomaly(bool(in_forward)):
            unwatched = potential(x)
        with torch.autograd.set_detect_anomaly(bool(in_backward)):
            unwatched.backward()
    told.append(headline(raw[0].message).splitlines() if raw else [])
assert told[:2] == [[], []]
assert told[2] == [
    "Error detected in OneOverBackward.",
    "  No forward pass information available.",
    "  Enable detect anomaly during forward pass for more information.",
]
assert told[3][1:] == ["  Traceback of forward call that caused the error:"]
# sphinx_gallery_end_ignore

# %%
# Around the forward pass alone, the stack is stored and never reported. Put both passes into the context.
#
# NaN in backward
# ---------------
# The distance between two equal points is 0, a finite loss. Its gradient is NaN: the derivative of the square root at
# 0 is ``inf``, the derivative of the square is 0, and ``inf * 0`` is NaN.

p = torch.tensor(3.0, requires_grad=True)
q = torch.tensor(3.0)
gap = p - q
square = gap**2
distance = torch.sqrt(square)
gap.retain_grad()
square.retain_grad()
# keep what the nodes saved, so that the figure can show their derivatives
distance.backward(retain_graph=True)

# graph: distance -- Backward runs from right to left: the gradient is inf at square, and NaN from gap on

print("distance:", distance.item())
print(f"gradients: square {square.grad}, gap {gap.grad}, p {p.grad}")

# sphinx_gallery_start_ignore
assert distance.item() == 0 and square.grad.isinf()
assert gap.grad.isnan() and p.grad.isnan()
# sphinx_gallery_end_ignore

# %%
# No error so far. Anomaly mode tests what every node returns, and stops at the first NaN.


def distance_step():
    p, q = torch.tensor(3.0, requires_grad=True), torch.tensor(3.0)
    square = (p - q) ** 2
    distance = torch.sqrt(square)
    distance.backward()
    return p.grad


lines = report(distance_step, anomaly_mode)
assert "square = (p - q) ** 2" in lines
assert "distance = torch.sqrt(square)" not in lines

# sphinx_gallery_start_ignore
nan = torch.tensor(float("nan"), requires_grad=True)
one = torch.tensor(1.0, requires_grad=True)
with warnings.catch_warnings(record=True):
    warnings.simplefilter("always")
    try:
        with anomaly_mode():
            (nan * one).backward()  # the gradient of nan is 1, that of one is NaN
    except RuntimeError as error:
        assert "MulBackward0' returned nan values in its 1th output" in str(error)
# sphinx_gallery_end_ignore

# %%
# Outputs are counted from 0: the 0th output of a node is the gradient of its first input. The line found is the
# square's, where NaN appears first. The cause is one operation nearer to the loss: ``inf`` is not NaN, so the square
# root passed the test. If the line found looks innocent, look at the operation that uses its result.
#
# ``check_nan=False`` keeps the stacks and leaves out the test. NaN passes again:

with torch.autograd.set_detect_anomaly(True, check_nan=False):
    print("gradient:", distance_step())

# sphinx_gallery_start_ignore
with torch.autograd.set_detect_anomaly(True, check_nan=False):
    assert distance_step().isnan()
    with warnings.catch_warnings(record=True) as raw, contextlib.suppress(ValueError):
        warnings.simplefilter("always")
        step()
assert "return inverse_distance(x, 4.0)" in str(raw[0].message)
# sphinx_gallery_end_ignore

# %%
# Switching it on and off
# -----------------------
# ``set_detect_anomaly(mode)`` works in two ways: as a function whose effect stays, or as a context that restores the
# earlier state. ``detect_anomaly()`` is a context only.

enabled = torch.is_anomaly_enabled
torch.autograd.set_detect_anomaly(True)
print("after a call:    ", enabled())
with torch.autograd.set_detect_anomaly(False):
    print("an exempted part:", enabled())
print("after it:        ", enabled())
torch.autograd.set_detect_anomaly(False)
print("switched off:    ", enabled())

# sphinx_gallery_start_ignore
assert not enabled()
with torch.autograd.set_detect_anomaly(True):
    assert enabled()
assert not enabled()
torch.autograd.set_detect_anomaly(True)
with torch.autograd.set_detect_anomaly(False):
    assert not enabled()
assert enabled()
torch.autograd.set_detect_anomaly(False)
assert not enabled()
# sphinx_gallery_end_ignore

# %%
# What it costs
# -------------
# The forward pass formats a stack for each node, and the backward pass tests each gradient for NaN. To see what that
# costs, 50 operations on 1000 numbers are timed forward and backward, in turn with the mode off and on.


def seconds(mode):
    start, y = time.perf_counter(), torch.ones(1000, requires_grad=True)
    with torch.autograd.set_detect_anomaly(mode):
        for _ in range(50):
            y = torch.tanh(y)
        y.sum().backward()
    return time.perf_counter() - start


# %%
# A thread of its own starts with an empty stack, whatever runs around this page. The fastest of 15 runs is taken: it
# is the one that was least disturbed.

# varies: The number is a ratio of times, which depend on the machine and its load.


def ratio():
    rounds = [(seconds(False), seconds(True)) for _ in range(15)]
    off, on = map(min, zip(*rounds, strict=True))
    return on / off


with ThreadPoolExecutor(1) as thread:
    cost = thread.submit(ratio).result()
print(f"with anomaly mode on: {cost:.1f} times as long")
assert cost > 1

# %%
# Switch it on for the run that fails, and off again.
#
# What people get wrong
# ---------------------
# **Taking it for a test of the loss.** Only what backward returns is tested. A NaN made in the forward pass goes
# unnoticed where the derivative is finite: the logarithm of -1 is NaN, while its derivative :math:`1/x` is -1. And if
# a later operation does return NaN in backward, the mode names that one, because backward meets it first.


def log_step():
    x = torch.tensor(-1.0, requires_grad=True)
    logarithm = torch.log(x)
    logarithm.backward(retain_graph=True)
    print(f"logarithm {logarithm.item()}, gradient {x.grad.item()}, no error")
    loss = torch.exp(logarithm)
    loss.backward()


lines = report(log_step, anomaly_mode)
assert "loss = torch.exp(logarithm)" in lines
assert "logarithm = torch.log(x)" not in lines

# %%
# The fix is to test forward values too, for example with ``assert loss.isfinite()``.
#
# **Confusing the two names.** The argument of ``detect_anomaly`` is ``check_nan``, not a switch:
# ``detect_anomaly(False)`` turns the mode on. And a call of ``detect_anomaly()`` without ``with`` turns nothing on,
# though its warning says so. For a flag or a plain call, use ``set_detect_anomaly``.

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    with torch.autograd.detect_anomaly(False):
        print("with detect_anomaly(False):", enabled())
        assert enabled() and not torch.is_anomaly_check_nan_enabled()
    torch.autograd.detect_anomaly()
    print("detect_anomaly() as a call:", enabled())
    print("its warning:", headline(caught[-1].message).splitlines()[0])
    assert not enabled() and len(caught) == 2

# sphinx_gallery_start_ignore
with warnings.catch_warnings(record=True) as caught, contextlib.suppress(ValueError):
    warnings.simplefilter("ignore")
    with torch.autograd.detect_anomaly():
        step()
assert not caught
# sphinx_gallery_end_ignore

# %%
# **Silencing warnings.** The forward stack is a warning. A filter that ignores warnings loses it, and so does a log
# that keeps exceptions only. What is left is the exception, which does not know the forward line.
#
# Exercise
# --------
# A mask multiplies the invalid entry by 0, so the loss is finite. Which node will anomaly mode name, if any? Mend the
# loss so that the gradient is 0 for the masked entry and right for the other.
#
# .. code-block:: python
#
#    x, mask = torch.tensor([0.0, 4.0], requires_grad=True), torch.tensor([0.0, 1.0])
#    loss = (mask * torch.sqrt(x)).sum()
#
# .. solution::
#
# The mask sends 0 into the backward of the square root, which divides it by :math:`2\sqrt{0} = 0`: ``0 / 0`` is NaN.


def masked_step():
    x, mask = torch.tensor([0.0, 4.0], requires_grad=True), torch.tensor([0.0, 1.0])
    loss = (mask * torch.sqrt(x)).sum()
    loss.backward()


lines = report(masked_step, anomaly_mode)
assert "loss = (mask * torch.sqrt(x)).sum()" in lines

# %%
# Keep the invalid entry out of the square root: put a harmless number in its place, then mask. The derivative at 4 is
# :math:`1 / (2\sqrt{4}) = 0.25`.

x, mask = torch.tensor([0.0, 4.0], requires_grad=True), torch.tensor([0.0, 1.0])
with torch.autograd.set_detect_anomaly(True):
    safe = torch.where(mask > 0, x, 1.0)
    (mask * torch.sqrt(safe)).sum().backward()

print("gradient:", x.grad.tolist())
assert x.grad.tolist() == [0.0, 0.25]

# %%
# See also
# --------
# - Before: :ref:`sphx_glr_gallery_memory_probe_an_operator.py`, a probe for what an operator keeps and allows.
# - Next: :ref:`sphx_glr_gallery_debugging_finding_nans.py`, for a NaN that is born in forward.
# - :ref:`sphx_glr_gallery_graphs_functions_are_nodes.py`, what a node is and how nodes are connected.
# - :ref:`sphx_glr_gallery_functions_exp_function.py`, how to write a Function with its own backward.
# - In PyTorch's reference: `Anomaly detection
#   <https://docs.pytorch.org/docs/stable/autograd.html#anomaly-detection>`__ and `Node.metadata
#   <https://docs.pytorch.org/docs/stable/generated/torch.autograd.graph.Node.metadata.html>`__.
