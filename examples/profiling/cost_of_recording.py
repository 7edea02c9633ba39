r"""
The cost of recording: grad, no_grad, inference_mode, hooks, anomaly mode
=========================================================================

Autograd does its bookkeeping while your forward pass runs. How much slower does that make it? It depends on the size
of the tensors: the bookkeeping costs the same for each operation, the arithmetic grows. This page counts what each
mode adds, measures it for small and for large tensors, and shows when it is worth worrying.
"""

# %%
# Six ways through the same forward pass
# --------------------------------------
# Everything runs on one thread.

import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from functools import partial

import matplotlib.pyplot as plt
import pandas as pd
import torch
from torch.autograd.graph import saved_tensors_hooks

# sphinx_gallery_start_ignore
_threads = torch.get_num_threads()
# sphinx_gallery_end_ignore
torch.set_num_threads(1)

# %%
# Ten layers, a matrix product and a ``tanh`` in each. A hook, if there is one, is registered on every result. It does
# nothing but count its calls.


def forward(h, w, hook=None):
    for _ in range(10):
        h = torch.tanh(h @ w)
        if hook is not None:
            h.register_hook(hook)
    return h


calls = 0


def same(tensor):
    global calls
    calls += 1
    return tensor


# %%
# Each way is a mode to run in, and a hook or none. ``prepare`` makes the tensors, and a function that goes that way.

anomaly = torch.autograd.set_detect_anomaly
WAYS = {
    "no_grad": (torch.no_grad, None),
    "inference_mode": (torch.inference_mode, None),
    "recorded": (nullcontext, None),
    "saved-tensor hooks": (lambda: saved_tensors_hooks(same, same), None),
    "tensor hooks": (nullcontext, same),
    "anomaly mode": (lambda: anomaly(True), None),
}


def make(size):
    torch.manual_seed(0)
    w = torch.randn(size, size) / size**0.5
    return torch.randn(size, size), w.requires_grad_()


def prepare(way, size):
    (mode, hook), (x, w) = WAYS[way], make(size)

    def run():
        with mode():
            return forward(x, w, hook)

    return run


# %%
# What each of them adds
# ----------------------
# Counts do not depend on the machine. The profiler counts the operators. The nodes are found by walking the graph,
# and each knows what it saved and, in anomaly mode, the Python stack of its forward call.


def nodes_of(node, found):
    if node is not None and node not in found:
        found.append(node)
        for following, _ in node.next_functions:
            nodes_of(following, found)
    return found


def saved_by(node):
    names = [name for name in dir(node) if name.startswith("_saved_")]
    return sum(torch.is_tensor(getattr(node, name)) for name in names)


def operators(run):
    with torch.autograd.profiler.profile() as prof:
        result = run()
    return result, Counter(event.name for event in prof.function_events)


# %%
# ``count`` runs one way, forward and, where there is a graph, backward.


def count(way):
    global calls
    calls = 0
    result, called = operators(prepare(way, 4))
    in_forward = calls
    nodes = nodes_of(result.grad_fn, [])
    row = {
        "operators": called["aten::mm"] + called["aten::tanh"],
        "nodes": len(nodes),
        "tensors saved": sum(map(saved_by, nodes)),
        "stacks": sum("traceback_" in node.metadata for node in nodes),
        "hook calls, forward": in_forward,
    }
    calls = 0
    if nodes:
        result.sum().backward()
    return row | {"hook calls, backward": calls}


# %%
# The table has a row for each way.

counts = pd.DataFrame({way: count(way) for way in WAYS}).T

# sphinx_gallery_start_ignore
assert (counts["operators"] == 20).all()
_plain = [20, 21, 29, 0, 0, 0]
assert (
    list(counts.loc["no_grad"])
    == list(counts.loc["inference_mode"])
    == [20, 0, 0, 0, 0, 0]
)
assert list(counts.loc["recorded"]) == _plain
assert list(counts.loc["saved-tensor hooks"]) == [20, 21, 29, 0, 29, 29]
assert list(counts.loc["tensor hooks"]) == [20, 21, 29, 0, 0, 10]
assert list(counts.loc["anomaly mode"]) == [20, 21, 29, 21, 0, 0]
_seen = Counter()
_x, _w = make(4)
with saved_tensors_hooks(
    lambda tensor: (_seen.update([tensor.data_ptr()]), tensor), same
):
    _result = forward(_x, _w)
assert (
    _seen[_x.data_ptr()] == _seen[_result.data_ptr()] == 1 and _seen[_w.data_ptr()] == 9
)
assert sorted(_seen.values()) == [1, 1] + [2] * 9 + [9]
_frozen = _w.detach()
_, _called = operators(lambda: forward(_x, _frozen))
for _mode, _hook in WAYS.values():
    with _mode():
        assert operators(lambda: forward(_x, _w, _hook))[1] == _called  # noqa: B023
# sphinx_gallery_end_ignore
counts.rename_axis(index=None, columns="way")

# %%
# The arithmetic is the same in every row: 20 operators. Recording computes nothing. It makes a node for each of them
# and one more that accumulates into ``w``. It saves 29 tensors: the weight nine times, nine of the ten results twice,
# the last result and the input once. A saved-tensor hook is called for each of the 29, when it is saved and when it
# is needed. A tensor hook is registered in the forward pass and called in backward. Anomaly mode stores a Python
# stack for each of the 21 nodes.
#
# Measured by size
# ----------------
# All of that is work for each operation, and the size of the tensors does not enter. Each round runs all ways in
# turn and begins with a different one. The fastest run of each way counts.


def fastest(runs, rounds):
    times = {name: [] for name in runs}
    names = list(runs)
    for number in range(rounds):
        first = number % len(names)
        for name in names[first:] + names[:first]:
            start = time.perf_counter()
            runs[name]()
            times[name].append(time.perf_counter() - start)
    return {name: min(seconds) for name, seconds in times.items()}


# %%
# A new thread starts with an empty Python stack, whatever runs around this page. Anomaly mode makes that necessary,
# as the next section shows.

# varies: Ratios of times depend on the machine and its load.

ROUNDS = {2: 24, 16: 24, 64: 24, 128: 16, 256: 16}


def measure():
    torch.set_num_threads(1)  # in the new thread too
    rows = {}
    for n, rounds in ROUNDS.items():
        rows[n] = fastest({way: prepare(way, n) for way in WAYS}, rounds)
    return pd.DataFrame(rows).T


with ThreadPoolExecutor(1) as thread:
    seconds = thread.submit(measure).result()
ratios = seconds.div(seconds["no_grad"], axis=0)

# sphinx_gallery_start_ignore
_small, _large = ratios.loc[2], ratios.loc[256]
assert (
    _small["anomaly mode"] > 4 and _small["anomaly mode"] > 2 * _large["anomaly mode"]
)
assert _large["recorded"] < 3 and _small["anomaly mode"] == _small.max()
with torch.inference_mode():
    try:
        torch.ones(1)._version
        raise AssertionError
    except RuntimeError as _error:
        assert "do not track version counter" in str(_error)
# sphinx_gallery_end_ignore
ratios.round(2).rename_axis(index=None, columns="n")

# %%
# The same as a figure. Both axes are logarithmic.

# varies: Ratios of times depend on the machine and its load.

STYLES = {
    "no_grad": ("#64748b", "-", "."),
    "inference_mode": ("#047857", "--", "v"),
    "recorded": ("#2563eb", "-", "o"),
    "saved-tensor hooks": ("#7c3aed", "--", "s"),
    "tensor hooks": ("#b45309", "-.", "^"),
    "anomaly mode": ("#c2410c", "-", "D"),
}

# figure: Time of the forward pass divided by its time under no_grad, over the size of the matrices, one line for each
#   way. For small matrices anomaly mode lies far above all others. Towards large ones the lines come together near 1.
fig, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for way, (colour, line, marker) in STYLES.items():
    ax.loglog(ratios[way], color=colour, linestyle=line, marker=marker, label=way)
ax.set_xticks(list(ROUNDS), [str(size) for size in ROUNDS])
ax.set(xlabel="n, for n x n matrices", ylabel="time / time under no_grad")
ax.set_title("The larger the tensors, the less recording costs")
ax.set_yticks([1, 2, 5, 10, 20], ["1", "2", "5", "10", "20"])
ax.legend(loc="center left", bbox_to_anchor=(1, 0.5))
ax.minorticks_off()

# %%
# On the left the tensors hold 4 numbers, and the time is what PyTorch needs to call an operation at all. Everything
# that is added shows. On the right a matrix product is millions of multiplications, and what is added counts for less
# and less. ``inference_mode`` leaves out more than ``no_grad`` does: its tensors have
# :ref:`no version counter <sphx_glr_gallery_modes_grad_modes.py>`, and views are not tracked.

# %%
# Why anomaly mode stands out
# ---------------------------
# It formats the whole Python stack for each node: every frame from the start of the thread to the operation. So its
# cost grows with the depth at which your model is called. ``deeper`` makes a call from further down. Two functions
# take turns, because repeated lines would be abbreviated in the stack.


def odd(depth, run):
    return deeper(depth - 1, run)


def deeper(depth, run):
    return run() if depth == 0 else odd(depth - 1, run)


# %%
# The same forward pass, from three depths.


def frames_in_stack():
    return len(forward(*make(2)).grad_fn.metadata["traceback_"])


def by_depth():
    runs = {depth: partial(deeper, depth, frames_in_stack) for depth in (0, 20, 80)}
    with anomaly(True):
        return {depth: run() for depth, run in runs.items()}, fastest(runs, 10)


# varies: Ratios of times depend on the machine and its load. The numbers of frames do not.

with ThreadPoolExecutor(1) as thread:
    frames, seconds = thread.submit(by_depth).result()
for depth, took in seconds.items():
    longer = took / seconds[0]
    print(f"{depth:>3} deeper: {frames[depth]:>3} frames, {longer:5.1f} times as long")

# sphinx_gallery_start_ignore
assert [_number - frames[0] for _number in frames.values()] == [0, 20, 80]
assert seconds[80] > 1.5 * seconds[0]
# sphinx_gallery_end_ignore

# %%
# Code inside a training framework is called from far down. Switch the mode on
# :ref:`for the run that fails <sphx_glr_gallery_debugging_anomaly_detection.py>`, and off again.
#
# What recording is for
# ---------------------
# Recording prepares the backward pass, and that is more work than the forward pass. The gradient of one matrix
# product takes two, one for each factor. Only the first layer makes do with one, because its input wants no gradient.

x, w = make(4)
result, in_forward = operators(lambda: forward(x, w).sum())
_, in_backward = operators(result.backward)
for name in ("aten::mm", "aten::tanh", "aten::tanh_backward"):
    print(f"{name:<20} forward {in_forward[name]:>2}   backward {in_backward[name]:>2}")
assert in_forward["aten::mm"] == 10 and in_backward["aten::mm"] == 19

# %%
# Where matrix products take the time, a step with backward therefore takes about three times as long as the forward
# pass alone: 29 products, not 10.
#
# What people get wrong
# ---------------------
# **Judging by time alone.** For large tensors recording costs little time, and a lot of memory: every result is kept.

# varies: The ratio of times depends on the machine and its load. The memory does not.

x, w = make(256)
kept = {}
with saved_tensors_hooks(lambda t: kept.setdefault(t.data_ptr(), t), same):
    result = forward(x, w)
extra = sum(tensor.nbytes for tensor in kept.values()) - x.nbytes - w.nbytes

ratio = ratios.loc[256, "recorded"]
print(f"n = 256: {ratio:.2f} times the time, {extra:,} bytes kept beside x and w")
assert extra == 10 * result.nbytes

# %%
# ``no_grad`` keeps nothing: :ref:`see memory by mode <sphx_glr_gallery_memory_memory_by_mode.py>`. For large
# tensors that is the reason to use it.
#
# **Expecting no_grad to help where nothing is recorded.** An operation is recorded if one of its inputs requires a
# gradient. In a model with frozen weights, none does.

x, w = make(4)
result = forward(x, w.requires_grad_(False))
print("gradient mode on:", torch.is_grad_enabled(), "  node:", result.grad_fn)
assert torch.is_grad_enabled() and result.grad_fn is None and not result.requires_grad

# %%
# Exercise
# --------
# 32 samples of 4 numbers are evaluated with a 4 x 4 weight. Version A calls ``forward`` for each sample, in
# ``inference_mode``. Version B calls it once with the 32 x 4 matrix, and records. Which is faster? Count the
# operators first.
#
# .. solution::
#
# The batch. ``inference_mode`` takes a part off the cost of each operator; the batch takes away 31 of 32 operators.

_, w = make(4)
samples = torch.randn(32, 4)


@torch.inference_mode()
def one_by_one():
    return torch.cat([forward(sample, w) for sample in samples.split(1)])


def batched():
    return forward(samples, w)


assert torch.allclose(one_by_one(), batched(), atol=1e-6)
for run, expected in ((one_by_one, 32 * 20), (batched, 20)):
    _, called = operators(run)
    print(f"{run.__name__:<11}{called['aten::mm'] + called['aten::tanh']:>5} operators")
    assert called["aten::mm"] + called["aten::tanh"] == expected

# %%
# The clock agrees.

# varies: The ratio of times depends on the machine and its load.

seconds = fastest({"one by one": one_by_one, "batch": batched}, 10)
ratio = seconds["one by one"] / seconds["batch"]
print(f"one by one takes {ratio:.0f} times as long as the recorded batch")
assert ratio > 3

# sphinx_gallery_start_ignore
torch.set_num_threads(_threads)
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - Before: :ref:`sphx_glr_gallery_profiling_benchmarking.py`, how to measure such ratios.
# - Next: :ref:`sphx_glr_gallery_training_fit_by_hand.py`, what the recording is for.
# - :ref:`sphx_glr_gallery_modes_grad_modes.py`, what the modes do and how they nest.
# - :ref:`sphx_glr_gallery_memory_saved_tensor_hooks.py` and :ref:`sphx_glr_gallery_differentiation_hooks.py`, what
#   hooks are good for.
# - :doc:`Which switch do I want? </guide/which-switch>`
# - In PyTorch's reference: `inference_mode
#   <https://docs.pytorch.org/docs/stable/generated/torch.autograd.grad_mode.inference_mode.html>`__ and
#   `Anomaly detection <https://docs.pytorch.org/docs/stable/autograd.html#anomaly-detection>`__.
