r"""
How to benchmark PyTorch code: Timer, Measurement, Compare
==========================================================

.. index::
   single: torch.utils.benchmark
   single: torch.utils.bottleneck
   single: time.time or time.perf_counter

.. in-short::

   Print ``Timer("net(batch)", globals={"net": net, "batch": batch}).blocked_autorange()``. It warms up, repeats the statement,
   and shows the median time and the spread. It waits for the GPU, and it uses one thread unless you pass ``num_threads=``.
   Believe a difference only if it is larger than the spread, and if both candidates ran in turn on the same machine.
"""

# %%
# The problem: one reading is one of many
# ---------------------------------------
# Is your change to the model faster? You read the clock before and after a call. The next reading gives a different number:

# varies: Times depend on the machine, its load, and what ran before in the same process.

# sphinx_gallery_start_ignore
import logging

# A build for CUDA without a GPU would print the path of nvcc
logging.getLogger("torch.utils.cpp_extension").setLevel(logging.ERROR)
# sphinx_gallery_end_ignore
import time

import torch
from torch import nn
from torch.utils.benchmark import Compare, Measurement, TaskSpec, Timer

torch.set_num_threads(1)
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
batch = torch.randn(256, 64)


def read_clock():
    start = time.perf_counter()
    net(batch)
    return time.perf_counter() - start


for _ in range(3):
    print(f"{read_clock() * 1e6:.0f} microseconds")

# %%
# .. how-measured:: This code draws readings in their order, and how they spread.

import matplotlib.pyplot as plt
import pandas as pd


def plot_readings(readings):
    ratios = readings / readings.min()
    shape = {"figsize": (7, 2.2), "sharey": True, "width_ratios": (2.2, 1)}
    _, (left, right) = plt.subplots(1, 2, layout="constrained", **shape)
    left.semilogy(ratios, ".", color="#2563eb", markersize=4)
    left.plot(0, ratios[0], "D", color="#c2410c")
    left.set(xlabel="reading", ylabel="time / fastest time")
    left.set_title("400 more; the first is the diamond")
    bins = torch.logspace(0, ratios.max().log10().item(), 40)
    right.hist(ratios, bins.tolist(), orientation="horizontal", color="#64748b")
    right.set(xlabel="number of readings")
    right.set_title("How they spread")


# %%
# 400 more readings:

# varies: Times depend on the machine, its load, and what ran before in the same process.

plot_readings(torch.tensor([read_clock() for _ in range(400)]))

# figure: Two panels with one vertical axis, the time as a multiple of the fastest reading, on a logarithmic scale.
#   Left, the 400 readings in order, the first as a diamond. Right, a histogram of the same readings.

# sphinx_gallery_start_ignore
assert len(plt.gcf().axes[0].lines[0].get_xdata()) == 400
_threads = torch.get_num_threads()
# sphinx_gallery_end_ignore

# %%
# Each dot could have been your one number. The first call can be slow because libraries are loaded and memory is taken from the
# system. Later calls can be slow because other programs use the machine. **So repeat the call, and report the median and the
# spread.** (Use ``time.perf_counter()``: the clock of ``time.time()`` can be set while you measure.)

# %%
# A Timer
# -------
# A ``Timer`` takes the statement as text, and the names in the text as ``globals``. Run it as your program runs the model: for
# inference, after ``net.eval()`` and under ``torch.no_grad()``.

# varies: Times depend on the machine and its load, and so does the number of runs.

timer = Timer("net(batch)", globals={"net": net, "batch": batch})
measured = timer.blocked_autorange()  # for min_run_time=0.2 seconds
print(repr(measured).partition("\n")[2])  # without the object's address

# sphinx_gallery_start_ignore
assert measured.num_threads == 1 and "1 thread" in repr(measured)
assert sum(measured.raw_times) >= 0.2
# sphinx_gallery_end_ignore

# %%
# What a Timer runs
# -----------------
# Reading a clock takes time too, so a ``Timer`` reads it around a *block* of runs. ``timeit(100)`` measures one block of 100.
# ``blocked_autorange`` adds blocks until their times add up to ``min_run_time``. ``adaptive_autorange`` goes on until the
# blocks agree well enough, or until ``max_run_time``.
#
# .. how-measured:: Setup and statement write to a list, which tells the length of each block.


def blocks(measure):
    log = []
    names = {"log": log, "net": net, "batch": batch}
    timer = Timer("net(batch); log.append('.')", "log.append(' ')", globals=names)
    measured = measure(timer)
    lengths = [len(block) for block in "".join(log).split(" ")[1:]]
    warm_up = lengths[: len(lengths) - len(measured.times)]
    return {
        "warm-up blocks": ", ".join(map(str, warm_up)),
        "measured blocks": f"{len(measured.times)} of {measured.number_per_run}",
        "setup ran": len(lengths),
    }


def tabulate_blocks(ways):
    return pd.DataFrame({name: blocks(run) for name, run in ways.items()}).T


# %%
# The number of runs in each block:

# varies: How many runs are needed depends on the machine and its load. The warm-up of timeit(100) does not.

ways = {
    "timeit(100)": lambda timer: timer.timeit(100),
    "blocked_autorange": lambda timer: timer.blocked_autorange(min_run_time=0.05),
    "adaptive_autorange": lambda timer: timer.adaptive_autorange(max_run_time=0.1),
}
# sphinx_gallery_start_ignore
table = tabulate_blocks(ways)
assert table.loc["timeit(100)"].tolist() == ["2", "1 of 100", 2]
for _way in ("blocked_autorange", "adaptive_autorange"):
    _warm_up = [int(_n) for _n in table["warm-up blocks"][_way].split(", ")]
    assert _warm_up[:5] == [0] * 5
    assert _warm_up[5:] == [10**_i for _i in range(len(_warm_up) - 5)]
    _count, _length = map(int, table["measured blocks"][_way].split(" of "))
    assert _length == _warm_up[-1] and table["setup ran"][_way] == _count + len(
        _warm_up
    )
_now = [0.0]


def _pass_time(seconds=1e-7):
    _now[0] += seconds
    return _now[0]


_adaptive = Timer("call(1e-4)", timer=_pass_time, globals={"call": _pass_time})
_steady = _adaptive.adaptive_autorange(min_run_time=0.0)
assert len(_steady.raw_times) == 4
assert sum(_adaptive.adaptive_autorange(min_run_time=0.1).raw_times) > 0.1
_short = _adaptive.adaptive_autorange(min_run_time=0.0, max_run_time=1e-6)
assert len(_short.raw_times) == 1
_runs = []
Timer("_runs.append(gc.isenabled())", "import gc", globals={"_runs": _runs}).timeit(
    1000
)
assert set(_runs) == {False} and len(_runs) == 1010
# sphinx_gallery_end_ignore
tabulate_blocks(ways)

# %%
# The second argument, ``setup``, runs once for each block, **not** for each run. In the two ``autorange`` ways, the first five
# blocks are *empty*: they measure what reading the clock costs. Blocks of 1, 10, 100 and so on follow, until that cost is
# negligible. ``timeit(n)`` warms up with one block of ``n // 100`` runs, at least two.

# %%
# Median, mean and spread
# -----------------------
# A ``Measurement`` holds one time per block, divided by the runs in a block. These two are made by hand, with eight blocks
# each. In the first, one block was disturbed. In the second, four were.

task = TaskSpec("net(batch)", setup="", label="made by hand")
quiet = Measurement(100, [0.100, 0.101, 0.102, 0.103, 0.104, 0.105, 0.106, 0.9], task)
noisy = Measurement(100, [0.100, 0.101, 0.102, 0.103, 0.140, 0.160, 0.180, 0.9], task)

for one in (quiet, noisy):
    print(f"median {one.median * 1e3:.3f} ms, mean {one.mean * 1e3:.3f} ms")
print(repr(noisy).partition("\n")[2])

# sphinx_gallery_start_ignore
assert quiet.times == [_t / 100 for _t in quiet.raw_times]
assert abs(quiet.median - 1.035e-3) < 1e-9 and quiet.mean > 1.9 * quiet.median
assert not quiet.has_warnings and noisy.has_warnings
assert quiet.iqr < 0.1 * quiet.median and noisy.iqr > 0.25 * noisy.median
assert (quiet.significant_figures, noisy.significant_figures) == (2, 1)
assert "WARNING: Interquartile range is" in repr(noisy)
_single = Measurement(100, [0.1], task)
assert _single.iqr == 0 and not _single.has_warnings and "IQR" not in repr(_single)
# sphinx_gallery_end_ignore

# %%
# One slow block nearly doubled the mean of the first, and left its median alone. ``IQR`` is the interquartile range, the width
# of the middle half of the times. A single block shows no spread, so give ``min_run_time`` enough time for many.

# %%
# Several candidates, in turn
# ---------------------------
# ``Compare`` makes a table: a row for each ``sub_label``, a column for each ``description``. Run the candidates in turn, so
# that other load meets each of them. First make sure that they compute the same.

candidates = {
    "Python loop": lambda x: sum(v * v for v in x),
    "(x * x).sum()": lambda x: (x * x).sum(),
    "torch.dot": lambda x: torch.dot(x, x),
}
sizes = {f"n = {n}": torch.randint(10, (n,)).float() for n in (100, 1000)}

for compute in candidates.values():
    for x in sizes.values():
        assert compute(x) == x @ x  # small integers, so nothing is rounded

# %%
# ``trim_significant_figures`` drops digits that the spread does not support:

# varies: Times depend on the machine and its load.

measurements = []
for _ in range(6):
    for way, compute in candidates.items():
        for size, x in sizes.items():
            labels = {"label": "length", "sub_label": way, "description": size}
            timer = Timer("compute(x)", globals={"compute": compute, "x": x}, **labels)
            measurements.append(timer.blocked_autorange(min_run_time=0.002))

compare = Compare(measurements)
compare.trim_significant_figures()
print(compare)

# sphinx_gallery_start_ignore
_merged = Measurement.merge(measurements)
assert len(measurements) == 36 and len(_merged) == 6
assert sum(len(_m.times) for _m in measurements) == sum(len(_m.times) for _m in _merged)
assert all(_way in str(compare) for _way in candidates)
_raised = []
_same = {"label": "same", "sub_label": "way", "description": "size"}
_one, _ten = (
    Measurement(1, [_t], TaskSpec(_s, setup="", **_same))
    for _s, _t in [("one", 1e-6), ("ten", 1e-5)]
)
assert "10" in str(Compare([_one, _ten])) and "10" not in str(Compare([_ten, _one]))
assert str(Compare([_one, _ten])).count("way") == 1
assert len(Measurement.merge([_one, _one, _ten])) == 2
try:
    print(Compare([Timer("torch.ones(1)").timeit(10)]))
except TypeError as error:
    _raised.append("'NoneType' has no len()" in str(error))
assert _raised == [True]
# sphinx_gallery_end_ignore

# %%
# Give each candidate a ``sub_label``: with the same labels, measurements are silently merged, or one is dropped. Without
# ``description``, printing raises a ``TypeError``.

# %%
# What people get wrong
# ---------------------
# **Timing the model that you go on to train.** The statement really runs, often hundreds of times. A training step moves the
# weights, and in ``train()`` mode a forward changes ``BatchNorm``. Time a copy:

from copy import deepcopy


def training_step(net, optimizer):
    optimizer.zero_grad()
    net(batch).square().mean().backward()
    optimizer.step()


def time_training_step(net):
    net = deepcopy(net)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    names = {"net": net, "optimizer": optimizer, "step": training_step}
    timer = Timer("step(net, optimizer)", globals=names)
    return timer.blocked_autorange(min_run_time=0.05)


before = net[0].weight.detach().clone()
time_training_step(net)
print("the weights are as before:", torch.equal(net[0].weight, before))

# sphinx_gallery_start_ignore
assert torch.equal(net[0].weight, before) and net[0].weight.grad is None
_net = nn.Sequential(nn.Linear(64, 4), nn.BatchNorm1d(4))
_old = deepcopy(_net.state_dict())
_names = {"net": _net, "batch": batch}
_names["optimizer"] = torch.optim.SGD(_net.parameters(), lr=0.1)
Timer("net(batch)", globals=_names).timeit(300)
assert torch.equal(_net[0].weight, _old["0.weight"])
assert _net[1].num_batches_tracked > 300
assert not torch.equal(_net[1].running_mean, _old["1.running_mean"])
_step = "optimizer.zero_grad(); net(batch).sum().backward(); optimizer.step()"
Timer(_step, globals=_names).timeit(10)
assert not torch.equal(_net[0].bias, _old["0.bias"]) or not torch.equal(
    _net[1].bias, _old["1.bias"]
)
_many = Timer("len(runs)", globals={"runs": range(3)}, setup="")
assert _many.blocked_autorange(min_run_time=0.01).number_per_run > 100
# sphinx_gallery_end_ignore

# %%
# **Expecting a Timer to see local names.** Without ``globals``, they raise ``NameError``.

# sphinx_gallery_start_ignore


def _in_a_function():
    local = torch.ones(3)
    Timer("local + 1", globals={"local": local}).timeit(10)
    Timer("local + 1").timeit(10)


message = ""
try:
    _in_a_function()
except NameError as error:
    message = str(error)
assert message == "name 'local' is not defined"
_used, scale = [], 1
_timer = Timer("_used.append(scale)", globals=globals())
scale = 2
_timer.timeit(1)
assert set(_used) == {1}
# sphinx_gallery_end_ignore

# %%
# **Comparing a Timer with your own loop.** They can use different numbers of threads:

torch.set_num_threads(2)
inside = []
spy = "inside.append(torch.get_num_threads())"
Timer(spy, globals={"inside": inside}).timeit(1)
Timer(spy, globals={"inside": inside}, num_threads=3).timeit(1)
print("here:", torch.get_num_threads(), "  in the two Timers:", sorted(set(inside)))

# sphinx_gallery_start_ignore
assert torch.get_num_threads() == 2 and set(inside) == {1, 3}
torch.set_num_threads(_threads)
# sphinx_gallery_end_ignore

# %%
# **Reading the clock while a GPU still works.** A call puts its work into a queue and returns. In your own loop, call
# ``torch.cuda.synchronize()`` before each reading of the clock
# (:ref:`see the two times drift apart <sphx_glr_gallery_cuda_devices.py>`). A ``Timer`` does that itself, before and after each
# block of runs.
#
# **Timing the compiler.** The first call of a compiled function compiles, and so can a call with a different shape, under
# ``no_grad``, or with a different number of threads. Run ``timer.timeit(1)`` before you measure. This backend only counts how
# often it compiles:

compiled = []


def backend(graph, inputs):
    compiled.append(graph)
    return graph.forward


compiled_sin = torch.compile(lambda x: x.sin(), backend=backend)
for rows in (8, 8, 16, 32, 1):
    compiled_sin(torch.randn(rows, 64))
    print("batch of", rows, " compiled so far:", len(compiled))

# sphinx_gallery_start_ignore
import importlib.util
from unittest.mock import patch

_file = importlib.util.find_spec("torch.utils.benchmark.utils.timer").origin
_spec = importlib.util.spec_from_file_location("second_copy", _file)
with (
    patch("torch.accelerator.is_available", return_value=True),
    patch("torch.accelerator.synchronize") as _synchronize,
):  # a stand-in for a GPU; some versions look for one when the module is loaded
    _copy = importlib.util.module_from_spec(_spec)
    _spec.loader.exec_module(_copy)
    _copy.Timer("pass").timeit(10)
assert _synchronize.call_count == 4  # the warm-up is a block too
assert len(compiled) == 3
_counts = []
for _context, _n in [(torch.no_grad, 1), (torch.enable_grad, 2)]:
    torch.set_num_threads(_n)
    with _context():
        compiled_sin(torch.randn(1, 64))
    _counts.append(len(compiled))
torch.set_num_threads(_threads)
assert _counts == [4, 5]  # no_grad, then another number of threads
assert importlib.util.find_spec("torch.utils.bottleneck") is None
# sphinx_gallery_end_ignore

# %%
# The batch of 16 made a version for any number of rows above 1.
#
# **Looking for torch.utils.bottleneck.** It has been removed. The
# :ref:`profiler <sphx_glr_gallery_profiling_profiler_table.py>` finds *where* the time goes.

# %%
# Exercise
# --------
# You want the time of backward alone, and build the loss in ``setup``. Why does this fail? Fix it, and predict ``x.grad`` after
# ``timeit(100)`` if each backward adds 1.

x = torch.ones(3, requires_grad=True)
names = {"x": x}
try:
    Timer("loss.backward()", setup="loss = x.log().sum()", globals=names).timeit(100)
except RuntimeError as error:
    message = str(error)
    print("RuntimeError:", message)

# sphinx_gallery_start_ignore
assert message.startswith("Trying to backward through the graph a second time")
# sphinx_gallery_end_ignore

# %%
# .. solution::
#
# ``setup`` runs once for each block, so the second backward finds that the graph was freed. Keep it with ``retain_graph=True``.
# Then ``x.grad`` counts the runs, and the two of the warm-up: 102.

x.grad = None
backward = "loss.backward(retain_graph=True)"
Timer(backward, setup="loss = x.log().sum()", globals=names).timeit(100)
print("x.grad:", x.grad.tolist())
assert x.grad.tolist() == [102, 102, 102]

# sphinx_gallery_start_ignore
x.grad = None
_statement = "torch.autograd.grad(loss, x, retain_graph=True)"
Timer(_statement, setup="loss = x.log().sum()", globals=names).timeit(100)
assert x.grad is None
# sphinx_gallery_end_ignore

# %%
# This times the addition into ``x.grad``, too. ``torch.autograd.grad(loss, x, retain_graph=True)`` leaves it out.

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_errors_backward_twice.py`.
# - In PyTorch's reference: `torch.utils.benchmark
#   <https://docs.pytorch.org/docs/stable/benchmark_utils.html>`__ and the recipe `PyTorch Benchmark
#   <https://docs.pytorch.org/tutorials/recipes/recipes/benchmark.html>`__.
