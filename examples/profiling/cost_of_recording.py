r"""
The cost of recording: grad, no_grad, inference_mode, hooks, anomaly mode
=========================================================================

.. in-short::

   Recording a forward pass costs some time for each operation, whatever the size of your tensors. So you see it where they
   are tiny. What grows with them is the memory, because results are kept for backward, and on a CPU new memory can cost time
   too. For validation call ``model.eval()`` and write ``with torch.no_grad():``; ``inference_mode()`` saves a little more in
   a program that only predicts. Anomaly mode stores a Python stack for each node, so switch it on only for the run that
   fails.
"""

# %%
# The problem: is autograd slowing me down?
# -----------------------------------------
# Would ``no_grad`` make your evaluation faster? Take ten layers:

import time
from contextlib import nullcontext
from functools import partial

import torch
from torch.autograd.graph import saved_tensors_hooks

# sphinx_gallery_start_ignore
_threads = torch.get_num_threads()
# sphinx_gallery_end_ignore
torch.set_num_threads(1)


def make_matrices(size):
    torch.manual_seed(0)
    w = torch.randn(size, size) / size**0.5
    return torch.randn(size, size), w.requires_grad_()


def forward(h, w, hook=None):
    for _ in range(10):
        h = torch.tanh(h @ w)
        if hook is not None:
            h.register_hook(hook)
    return h


def kept_bytes(x, w):  # what is kept for backward, beside x and w
    kept = {}

    def note(tensor):
        kept[tensor.data_ptr()] = tensor.nbytes
        return tensor.detach()  # saved, so its memory is not used again

    with saved_tensors_hooks(note, lambda tensor: tensor):
        forward(x, w)
    own = {x.data_ptr(), w.data_ptr()}
    return sum(size for address, size in kept.items() if address not in own)


# %%
# The fastest run in three modes, small and larger:

# varies: Times depend on the machine and its load. The bytes do not.

MODES = nullcontext, torch.no_grad, torch.inference_mode
for size, rounds in ((16, 300), (128, 50)):
    x, w = make_matrices(size)
    times = {mode: [] for mode in MODES}
    for _ in range(rounds):
        for mode in MODES:
            with mode():
                start = time.perf_counter()
                forward(x, w)
                times[mode].append(time.perf_counter() - start)
    for mode in MODES:
        with mode():
            kept = kept_bytes(x, w)
        took = min(times[mode]) * 1e6
        print(f"n = {size:<3}  {mode.__name__:<15} {took:4.0f} us  {kept:>7,} bytes")
        # sphinx_gallery_start_ignore
        assert kept == (10 * x.nbytes if mode is nullcontext else 0)
        assert x.nbytes in (1024, 65_536)
        # sphinx_gallery_end_ignore

# %%
# **Recording costs some time for each operation, and memory that grows with your tensors.** In each size, compare the first row
# (``nullcontext`` changes nothing, so it records) with the second. All ten results are kept for backward, but under ``no_grad``
# none. With large tensors, that is the main reason to use it: see :ref:`memory by mode
# <sphx_glr_gallery_memory_memory_by_mode.py>`.
#
# What does a forgotten debugging switch cost? Six ways through these layers, for several sizes:
#
# .. how-measured:: In a new thread, each round runs all ways in turn, and the fastest run of each counts.

from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import matplotlib.pyplot as plt
import pandas as pd

calls = 0


def tensor_hook(gradient):
    global calls
    calls += 1


def pack(tensor):  # not the tensor itself: the graph would keep itself alive
    tensor_hook(tensor)
    return tensor.detach()


def unpack(tensor):
    tensor_hook(tensor)
    return tensor


anomaly = torch.autograd.set_detect_anomaly
WAYS = {
    "no_grad": (torch.no_grad, None),
    "inference_mode": (torch.inference_mode, None),
    "recorded": (nullcontext, None),
    "saved-tensor hooks": (lambda: saved_tensors_hooks(pack, unpack), None),
    "tensor hooks": (nullcontext, tensor_hook),
    "anomaly mode": (lambda: anomaly(True), None),
}


def prepare(way, size):
    (mode, hook), (x, w) = WAYS[way], make_matrices(size)

    def run():
        with mode():
            return forward(x, w, hook)

    return run


def measure_fastest(runs, rounds):
    times = {name: [] for name in runs}
    names = list(runs)
    for number in range(rounds):
        first = number % len(names)
        for name in names[first:] + names[:first]:
            start = time.perf_counter()
            runs[name]()
            times[name].append(time.perf_counter() - start)
    return {name: min(seconds) for name, seconds in times.items()}


def measure(rounds):
    torch.set_num_threads(1)  # in the new thread too
    rows = {
        n: measure_fastest({way: prepare(way, n) for way in WAYS}, count)
        for n, count in rounds.items()
    }
    seconds = pd.DataFrame(rows).T
    return seconds.div(seconds["no_grad"], axis=0)


def measure_six_ways():
    with ThreadPoolExecutor(1) as thread:
        rounds = {2: 24, 16: 24, 64: 24, 128: 16, 256: 16}
        return thread.submit(measure, rounds).result()


def plot_six_ways(ratios):
    styles = {
        "no_grad": ("#64748b", "-", "."),
        "inference_mode": ("#047857", "--", "v"),
        "recorded": ("#2563eb", "-", "o"),
        "saved-tensor hooks": ("#7c3aed", "--", "s"),
        "tensor hooks": ("#94a3b8", "-.", "^"),
        "anomaly mode": ("#c2410c", "-", "D"),
    }
    _, ax = plt.subplots(figsize=(7, 2.5), layout="constrained")
    for way, (color, line, marker) in styles.items():
        ax.loglog(ratios[way], color=color, linestyle=line, marker=marker, label=way)
    ax.set_xticks(list(ratios.index), [str(size) for size in ratios.index])
    ax.set(xlabel="n, for n x n matrices", ylabel="time / time under no_grad")
    ax.set_title("The same forward pass, six ways")
    ax.set_yticks([1, 10, 100], ["1", "10", "100"])
    ax.legend(ncols=2, fontsize="small")
    ax.minorticks_off()


# %%
# Times relative to ``no_grad``:

# varies: Ratios of times depend on the machine and its load.

ratios = measure_six_ways()
plot_six_ways(ratios)

# figure: Time of the forward pass divided by its time under no_grad, over the size of the matrices, one line for each of six
#   ways. Both axes are logarithmic.

# sphinx_gallery_start_ignore
assert list(ratios.index) == [2, 16, 64, 128, 256] and list(ratios) == list(WAYS)
assert ratios.notna().all(axis=None) and (ratios["no_grad"] == 1).all()
import gc
import weakref

gc.disable()
for _way in WAYS:  # no way keeps its results alive after the run
    _result = prepare(_way, 2)()
    _ref = weakref.ref(_result)
    del _result
    assert _ref() is None
gc.enable()
with torch.inference_mode():
    try:
        torch.ones(1)._version
        _tracked = True
    except RuntimeError as _error:
        _tracked = "do not track version counter" not in str(_error)
assert not _tracked
# sphinx_gallery_end_ignore

# %%
# On the left a matrix has 4 numbers, and the time is mostly what PyTorch needs to call an operation at all. So you see what
# each way adds. On the right the products take most of the time. ``inference_mode`` leaves out more than ``no_grad``: its
# tensors have :ref:`no version counter <sphx_glr_gallery_modes_grad_modes.py>`.

# %%
# What each way adds
# ------------------
# Counts do not depend on the machine.
#
# .. how-measured:: The profiler counts operators. A walk over the graph counts nodes, what they saved, and stored stacks.


def nodes_of(node, found):
    if node is not None and node not in found:
        found.append(node)
        for following, _ in node.next_functions:
            nodes_of(following, found)
    return found


def saved_by(node):
    names = [name for name in dir(node) if name.startswith("_saved_")]
    return sum(torch.is_tensor(getattr(node, name)) for name in names)


def count_operators(run):
    with torch.autograd.profiler.profile() as prof:
        result = run()
    return result, Counter(event.name for event in prof.function_events)


def count_additions(way):
    global calls
    calls = 0
    result, called = count_operators(prepare(way, 4))
    in_forward = calls
    nodes = nodes_of(result.grad_fn, [])
    row = {
        "operators": called["aten::mm"] + called["aten::tanh"],
        "nodes": len(nodes),
        "saved": sum(map(saved_by, nodes)),
        "stacks": sum("traceback_" in node.metadata for node in nodes),
        "hook calls, forward": in_forward,
    }
    calls = 0
    if nodes:
        result.sum().backward()
    return row | {"hook calls, backward": calls}


def tabulate_counts():
    rows = {way: count_additions(way) for way in WAYS}
    return pd.DataFrame(rows).T.rename_axis(index=None, columns="way")


# %%
# One forward pass of ten layers, and its backward where there is a graph:

# sphinx_gallery_start_ignore
counts = tabulate_counts()
assert counts.loc["no_grad"].tolist() == [20, 0, 0, 0, 0, 0]
assert counts.loc["inference_mode"].tolist() == [20, 0, 0, 0, 0, 0]
assert counts.loc["recorded"].tolist() == [20, 21, 29, 0, 0, 0]
assert counts.loc["saved-tensor hooks"].tolist() == [20, 21, 29, 0, 29, 29]
assert counts.loc["tensor hooks"].tolist() == [20, 21, 29, 0, 0, 10]
assert counts.loc["anomaly mode"].tolist() == [20, 21, 29, 21, 0, 0]
_seen = Counter()
_x, _w = make_matrices(4)


def _note(tensor):
    _seen.update([tensor.data_ptr()])
    return tensor.detach()


with saved_tensors_hooks(_note, lambda tensor: tensor):
    _result = forward(_x, _w)
assert _seen[_x.data_ptr()] == _seen[_result.data_ptr()] == 1
assert _seen[_w.data_ptr()] == 9 and sorted(_seen.values()) == [1, 1] + [2] * 9 + [9]
_, _called = count_operators(lambda: forward(_x, _w.detach()))
for _way, (_mode, _hook) in WAYS.items():
    with _mode():
        _, _these = count_operators(lambda: forward(_x, _w, _hook))  # noqa: B023
    if _way == "saved-tensor hooks":  # its hook detaches what it gets
        _these = Counter(
            {name: n for name, n in _these.items() if not name.endswith("detach")}
        )
    assert all(_these[name] == _called[name] for name in ("aten::mm", "aten::tanh"))
    assert set(_these) <= set(_called)
_encoder = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
for _function, _operator, _recorded in (
    (lambda: torch.max_pool1d(_w, 2), "aten::max_pool1d_with_indices", True),
    (lambda: _encoder(torch.ones(1, 3, 8)), "aten::_transformer_encoder_layer_fwd", 0),
):
    with torch.no_grad():
        _, _without = count_operators(_function)
    _, _with = count_operators(_function)
    assert (_with[_operator], _without[_operator]) == (_recorded, not _recorded)
# sphinx_gallery_end_ignore
tabulate_counts()

# %%
# Each way computes the same 10 products and 10 times ``tanh``. Recording makes a node for each, and one more that adds to
# ``w.grad``. It saves 29 references, several to the same tensor. Saved-tensor hooks are called for each of them, when it is
# saved and when backward needs it. A tensor hook is called in backward. Anomaly mode stores a stack for each node.
#
# A few functions compute differently when they are recorded. In eval mode, ``nn.TransformerEncoderLayer`` calls one fused
# operator under ``no_grad``, but many when it is recorded.

# %%
# Backward costs more than recording
# ----------------------------------
# The gradient of one matrix product takes two products, one for each factor. The first layer takes one, because its input is
# data:

x, w = make_matrices(4)
result, in_forward = count_operators(lambda: forward(x, w).sum())
_, in_backward = count_operators(result.backward)
print("products in forward: ", in_forward["aten::mm"])
print("products in backward:", in_backward["aten::mm"])
assert in_forward["aten::mm"] == 10 and in_backward["aten::mm"] == 19

# %%
# So if you train all weights, and matrix products take most of the time, forward and backward together take about three times
# as long as forward alone.

# %%
# What people get wrong
# ---------------------
# **Expecting equal times with large tensors.** An element-wise product is little work, so you see what memory costs. Under
# ``no_grad``, PyTorch uses the memory of an earlier result again. Recording needs new memory each time:

x, w = make_matrices(1024)


def ten_products(mode):
    addresses, h = set(), x
    with mode():
        for _ in range(10):
            h = h * w
            addresses.add(h.data_ptr())
    return len(addresses)


# varies: The ratio of times depends on the machine and its load, and the allocator chooses the addresses.

modes = {"no_grad": torch.no_grad, "recorded": nullcontext}
seconds = measure_fastest(
    {name: partial(ten_products, modes[name]) for name in modes}, 10
)
for name, mode in modes.items():
    times = round(seconds[name] / seconds["no_grad"], 1)
    print(f"{name:<9} {ten_products(mode):>2} addresses, {times} times as long")

# sphinx_gallery_start_ignore
assert ten_products(nullcontext) == 10 > ten_products(torch.no_grad)
# sphinx_gallery_end_ignore

# %%
# **Expecting no_grad to help where nothing is recorded.** An operation is recorded only if one of its inputs requires grad. A
# frozen weight and data do not:

x, w = make_matrices(4)
result = forward(x, w.requires_grad_(False))
print("gradient mode on:", torch.is_grad_enabled(), "  node:", result.grad_fn)
assert torch.is_grad_enabled() and result.grad_fn is None

# %%
# **Leaving anomaly mode on.** For each node it formats the whole Python stack. So its cost grows with the depth at which your
# model is called, and a training framework calls it from far down.
#
# .. how-measured:: Two functions call each other, up to 80 times, and the last one runs the forward pass in anomaly mode.


def odd(depth, run):
    return deeper(depth - 1, run)


def deeper(depth, run):
    return run() if depth == 0 else odd(depth - 1, run)


def frames_in_stack():
    return len(forward(*make_matrices(2)).grad_fn.metadata["traceback_"])


def by_depth():
    runs = {depth: partial(deeper, depth, frames_in_stack) for depth in (0, 20, 80)}
    with anomaly(True):
        return {depth: run() for depth, run in runs.items()}, measure_fastest(runs, 10)


def measure_depths():
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(by_depth).result()


# %%
# The same forward pass from three depths:

# varies: Ratios of times depend on the machine and its load. The numbers of frames do not.

frames, seconds = measure_depths()
for depth, took in seconds.items():
    times = round(took / seconds[0], 1)
    print(depth, "deeper:", frames[depth], "frames,", times, "times as long")

# sphinx_gallery_start_ignore
assert [_number - frames[0] for _number in frames.values()] == [0, 20, 80]
assert not torch.is_anomaly_enabled()
# sphinx_gallery_end_ignore

# %%
# :ref:`Switch it on for the run that fails <sphx_glr_gallery_debugging_anomaly_detection.py>`, and off again.

# %%
# Exercise
# --------
# 32 samples of 4 numbers are evaluated with a 4 x 4 weight. Version A calls ``forward`` for each sample, in ``inference_mode``.
# Version B calls it once with the 32 x 4 matrix, and records. Which is faster? Count the operators first.
#
# .. solution::
#
# The batch. ``inference_mode`` takes a part off the cost of each operator, but the batch takes away 31 of 32 operators.

_, w = make_matrices(4)
samples = torch.randn(32, 4)


@torch.inference_mode()
def one_by_one():
    return torch.cat([forward(sample, w) for sample in samples.split(1)])


def batched():
    return forward(samples, w)


for run in (one_by_one, batched):
    _, called = count_operators(run)
    print(run.__name__, called["aten::mm"] + called["aten::tanh"], "operators")

    # sphinx_gallery_start_ignore
    assert called["aten::mm"] + called["aten::tanh"] == (20 if run is batched else 640)
assert torch.allclose(one_by_one(), batched(), atol=1e-6)
# sphinx_gallery_end_ignore

# %%
# By the clock:

# varies: The ratio of times depends on the machine and its load.

seconds = measure_fastest({"one by one": one_by_one, "batch": batched}, 10)
print(f"one by one / batch: {seconds['one by one'] / seconds['batch']:.0f}")

# sphinx_gallery_start_ignore
torch.set_num_threads(_threads)
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_modes_grad_modes.py`, what the modes do and how they nest.
# - :ref:`sphx_glr_gallery_memory_saved_tensor_hooks.py` and :ref:`sphx_glr_gallery_differentiation_hooks.py`, what
#   hooks are good for.
# - :doc:`Which switch do I want? </guide/which-switch>`
# - In PyTorch's reference: `inference_mode
#   <https://docs.pytorch.org/docs/stable/generated/torch.autograd.grad_mode.inference_mode.html>`__ and
#   `Anomaly detection <https://docs.pytorch.org/docs/stable/autograd.html#anomaly-detection>`__.
