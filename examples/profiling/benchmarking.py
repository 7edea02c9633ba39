r"""
How to benchmark PyTorch code: Timer, Measurement, Compare
==========================================================

How long does an operation take? One reading of a clock does not say: it includes the warm-up and whatever else the
machine was doing. ``torch.utils.benchmark`` takes many readings under fixed conditions and tells how far they agree.
This page counts what it runs, explains its numbers, and shows how to end up timing something else.
"""

# %%
# One reading is one of many
# --------------------------
# A small network runs 400 times, always on the same batch and on one thread. Each run is timed on its own.

import importlib
import itertools
import time

import matplotlib.pyplot as plt
import pandas as pd
import torch
from torch import nn
from torch.utils.benchmark import Compare, Measurement, TaskSpec, Timer

# sphinx_gallery_start_ignore
_threads = torch.get_num_threads()
# sphinx_gallery_end_ignore
torch.set_num_threads(1)
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
batch = torch.randn(64, 64)


def reading():
    start = time.perf_counter()
    net(batch)
    return time.perf_counter() - start


# %%
# Any of the 400 could have been the one number that a single reading gives.

# varies: Times depend on the machine, its load, and what ran before in the same process.

readings = torch.tensor([reading() for _ in range(400)])
ratios = readings / readings.min()

# figure: Two panels with one vertical axis, the time as a multiple of the fastest reading, on a logarithmic scale.
#   Left, the 400 readings in order: most lie in a band, single ones above it, and the first is marked. Right, a
#   histogram of the same readings: a peak near the fastest one, and a tail above.
shape = {"figsize": (7, 3.4), "sharey": True, "width_ratios": (2.2, 1)}
fig, (left, right) = plt.subplots(1, 2, layout="constrained", **shape)
left.semilogy(ratios, ".", color="#2563eb", markersize=4)
left.plot(0, ratios[0], "D", color="#c2410c", label="the first reading")
left.set(xlabel="reading", ylabel="time / fastest time")
left.set_title("400 readings of one forward pass")
left.legend()
bins = torch.logspace(0, ratios.max().log10().item(), 40)
right.hist(ratios, bins.tolist(), orientation="horizontal", color="#64748b")
right.set(xlabel="number of readings")
right.set_title("How they spread")

print(f"first  {ratios[0].item():7.2f} times the fastest")
for name in ("median", "mean", "max"):
    print(f"{name:<7}{getattr(ratios, name)().item():7.2f} times the fastest")

# sphinx_gallery_start_ignore
assert len(readings) == 400 and readings.min() > 0
assert readings.min() <= readings.median() <= readings.max()
# sphinx_gallery_end_ignore

# %%
# Nothing makes a run faster than the work it has to do, and many things make it slower. So the readings crowd at the
# lower end and have a tail upwards. The first one pays, as a rule, for what later ones find ready: libraries are
# loaded, kernels are prepared, memory is taken from the system. The mean is drawn towards the tail, the median much
# less, and the minimum not at all.
#
# The name of the clock matters too. ``time.time()`` tells the date, and the system may set it while you measure.

for name in ("time", "perf_counter"):
    clock = time.get_clock_info(name)
    print(f"time.{name:<13} may be set: {clock.adjustable!s:<6}", end="")
    print(f" never runs backwards: {clock.monotonic}")

# sphinx_gallery_start_ignore
assert time.get_clock_info("time").adjustable
assert not time.get_clock_info("time").monotonic
assert time.get_clock_info("perf_counter").monotonic
assert not time.get_clock_info("perf_counter").adjustable
# sphinx_gallery_end_ignore

# %%
# A Timer
# -------
# A ``Timer`` takes the statement as text, not as a function, and the names in it as ``globals``. ``torch`` is known
# without being passed. ``setup`` would be a second text, for preparations that are not timed.


def show(measurement):
    print(repr(measurement).partition("\n")[2])  # without the object's address


# varies: Times depend on the machine and its load, and so does the number of runs.

names = {"net": net, "batch": batch}
timer = Timer("net(batch)", globals=names, label="two layers", sub_label="batch of 64")
measured = timer.blocked_autorange(min_run_time=0.3)
show(measured)

# sphinx_gallery_start_ignore
assert measured.num_threads == 1 and "1 thread" in repr(measured)
assert sum(measured.raw_times) >= 0.3
assert Timer("torch.ones(1)").timeit(1).number_per_run == 1
try:
    Timer(reading)
    raise AssertionError
except ValueError as _error:
    assert "only a `str` stmt is supported" in str(_error)
# sphinx_gallery_end_ignore

# %%
# What a Timer runs
# -----------------
# The clock is read around a *block* of runs, since reading it takes time too. There are three ways to choose the
# blocks. ``count`` lets the statement and the setup count how often they are executed.


def count(measure):
    runs, setups = itertools.count(), itertools.count()
    counted = names | {"runs": runs, "setups": setups}
    timer = Timer("net(batch); next(runs)", setup="next(setups)", globals=counted)
    measured = measure(timer)
    times, block = len(measured.times), measured.number_per_run
    return {
        "measurements": times,
        "runs in each": block,
        "runs not counted": next(runs) - times * block,
        "setups": next(setups),
    }


# %%
# ``timeit`` makes one block, as long as you say. ``blocked_autorange`` makes blocks until ``min_run_time`` has
# passed. ``adaptive_autorange`` goes on until the blocks agree: until their spread is below a tenth of the median, or
# ``max_run_time`` is over.

# varies: How many runs are needed depends on the machine and its load. The two warm-up runs of timeit do not.

ways = {
    "timeit(100)": lambda timer: timer.timeit(100),
    "blocked_autorange": lambda timer: timer.blocked_autorange(min_run_time=0.1),
    "adaptive_autorange": lambda timer: timer.adaptive_autorange(max_run_time=0.5),
}
table = pd.DataFrame({name: count(measure) for name, measure in ways.items()}).T

# sphinx_gallery_start_ignore
_block, _extra = table["runs in each"], table["runs not counted"]
assert list(table.loc["timeit(100)"]) == [1, 100, 2, 2]
for _way in ("blocked_autorange", "adaptive_autorange"):
    assert _extra[_way] == (10 * _block[_way] - 1) // 9  # 1 + 10 + 100 + ...
    _steps = len(str(_block[_way]))
    assert table["setups"][_way] == table["measurements"][_way] + _steps + 5
_on = []
Timer("on.append(gc.isenabled())", setup="import gc", globals={"on": _on}).timeit(1)
assert set(_on) == {False} and len(_on) == 3
# sphinx_gallery_end_ignore
table.rename_axis(index=None, columns="way")

# %%
# The runs that are not counted are the warm-up. The two automatic ways use it to find the length of a block: 1, 10,
# 100 and so on, until reading the clock is a negligible part. ``setup`` is executed once for each block, those of the
# warm-up included, and **not** for each run. Python's garbage collector is off while a block runs.

# %%
# A Measurement
# -------------
# The result holds ``raw_times``, one for each block, and ``times``, the same divided by the runs in a block. The rest
# is computed from them. To see how, here are two made by hand: a quiet one, and one in which half of the blocks were
# disturbed.

task = TaskSpec("net(batch)", setup="", label="made by hand")
quiet = Measurement(100, [0.100, 0.101, 0.102, 0.103, 0.104, 0.105, 0.106, 0.9], task)
noisy = Measurement(100, [0.100, 0.101, 0.102, 0.103, 0.140, 0.160, 0.180, 0.9], task)

for one in (quiet, noisy):
    print(f"median {one.median * 1e3:.3f} ms   mean {one.mean * 1e3:.3f} ms", end="")
    print(f"   iqr {one.iqr * 1e3:.3f} ms   figures {one.significant_figures}")
show(noisy)

# sphinx_gallery_start_ignore
assert quiet.times == [_t / 100 for _t in quiet.raw_times]
assert abs(quiet.median - 1.035e-3) < 1e-9 and quiet.mean > 1.9 * quiet.median
assert not quiet.has_warnings and noisy.has_warnings
assert quiet.iqr < 0.1 * quiet.median and noisy.iqr > 0.25 * noisy.median
assert (quiet.significant_figures, noisy.significant_figures) == (2, 1)
assert abs(quiet.iqr - 0.035e-3) < 1e-9
# sphinx_gallery_end_ignore

# %%
# One block of 0.9 s nearly doubles the mean of the quiet one and leaves its median alone. ``iqr`` is the
# interquartile range, the width of the middle half of the times. Above a tenth of the median, the printed form
# carries a warning. ``significant_figures`` is an estimate of how many digits of the median mean anything: of the
# noisy one, the first.
#
# Several candidates, in turn
# ---------------------------
# The squared length of a vector, in three ways. First make sure that they compute the same.

statements = {
    "Python loop": "sum(v * v for v in x)",
    "(x * x).sum()": "(x * x).sum()",
    "torch.dot": "torch.dot(x, x)",
}
sizes = {f"n = {n}": torch.randint(10, (n,)).float() for n in (100, 2000)}

for statement in statements.values():
    for x in sizes.values():
        assert eval(statement) == x @ x  # small integers, so there is no rounding

# %%
# ``Compare`` makes a table of measurements: a row for each ``sub_label``, a column for each ``description``. All
# of them are timed in turn, in six short rounds, so that a busy moment cannot hit one alone. Measurements of one task
# are merged. ``trim_significant_figures`` drops the digits that mean nothing.

# varies: Times depend on the machine and its load.

measurements = []
for _ in range(6):
    for way, statement in statements.items():
        for size, x in sizes.items():
            labels = {"label": "length", "sub_label": way, "description": size}
            timer = Timer(statement, globals={"x": x}, **labels)
            measurements.append(timer.blocked_autorange(min_run_time=0.002))

compare = Compare(measurements)
compare.trim_significant_figures()
print(compare)

# %%
# Times belong to the machine. Their ratios travel better, if the things compared ran in turn.

# varies: Ratios of times depend on the machine and its load.

merged = Measurement.merge(measurements)
best = pd.DataFrame(index=list(statements), columns=list(sizes), dtype=float)
for one in merged:
    best.loc[one.sub_label, one.description] = min(one.times)
ratios = best / best.min()
assert (ratios.loc["Python loop"] > 10).all()

# sphinx_gallery_start_ignore
assert len(measurements) == 36 and len(merged) == 6
assert sum(len(_m.times) for _m in measurements) == sum(len(_m.times) for _m in merged)
assert all(_way in str(compare) for _way in statements)
# sphinx_gallery_end_ignore
ratios.round(1).rename_axis(index=None, columns="times the fastest")

# %%
# The loop makes calls of PyTorch for each number, and no load of the machine hides that. Between the other two the
# difference is far smaller. Before you believe it, repeat the whole measurement and see whether the order stays.
#
# Threads
# -------
# A ``Timer`` runs its statement on **one** thread, whatever the process uses. ``num_threads`` changes that, and
# ``Compare`` keeps the numbers of threads apart.

torch.set_num_threads(2)
inside = []
spy = "inside.append(torch.get_num_threads())"
Timer(spy, globals={"inside": inside}).timeit(1)
Timer(spy, globals={"inside": inside}, num_threads=3).timeit(1)
print("here:", torch.get_num_threads(), "  in the two Timers:", sorted(set(inside)))
assert torch.get_num_threads() == 2 and set(inside) == {1, 3}

# %%
# So the number of a ``Timer`` and the number of a loop of your own differ in threads, and should not be compared. On
# one thread you measure the work; with all of them, what your machine makes of it today.

# varies: Times depend on the machine, the number of its cores, and its load.

task = {"label": "product", "sub_label": "a @ a", "description": "300 x 300"}
square = {"a": torch.rand(300, 300)}
products = [
    Timer("a @ a", globals=square, num_threads=threads, **task) for threads in (1, 2)
]
compare = Compare([timer.blocked_autorange(min_run_time=0.02) for timer in products])
print(compare)

# sphinx_gallery_start_ignore
_text = str(compare)
assert "1 threads: -" in _text and "2 threads: -" in _text
torch.set_num_threads(_threads)
# sphinx_gallery_end_ignore

# %%
# More threads are not faster by themselves. They wait for one another, and for cores that others are using.
#
# On a GPU
# --------
# An operation on a GPU is put into a queue, and the call returns before the result is there. A plain clock then
# measures how long it takes to *ask*. A ``Timer`` waits for the queue to be empty before each reading of the clock.
# In a loop of your own, call ``torch.cuda.synchronize()`` before both readings:
# :ref:`see the two times drift apart <sphx_glr_gallery_cuda_devices.py>`.
#
# torch.utils.bottleneck is gone
# ------------------------------
# Older notes recommend ``python -m torch.utils.bottleneck script.py``, which ran a script under Python's profiler and
# under autograd's. The module has been removed.

try:
    importlib.import_module("torch.utils.bottleneck")
except ModuleNotFoundError as error:
    print(f"ModuleNotFoundError: {error}")
    assert error.name == "torch.utils.bottleneck"

# %%
# Use the :ref:`profiler <sphx_glr_gallery_profiling_profiler_table.py>` to find *where* the time goes, and a
# ``Timer`` to find *how long* one piece takes.
#
# What people get wrong
# ---------------------
# **Expecting a Timer to see local names.** The statement is compiled in a namespace of its own. Its names are looked
# up when it runs, and that is when the error comes.


def in_a_function(**arguments):
    local = torch.ones(3)
    timer = Timer("local + 1", **arguments)
    try:
        print(timer.timeit(10).number_per_run, "runs, with local", local.tolist())
    except NameError as error:
        print(f"NameError: {error}")
        assert error.name == "local" and not arguments


in_a_function()
in_a_function(globals={"local": torch.ones(3)})

# %%
# **Changing a name afterwards.** The ``Timer`` copies the dictionary when it is made, even if you pass ``globals()``.
# A new value of ``scale`` does not reach it.

used, scale = [], 1
timer = Timer("used.append(scale)", globals=globals())
scale = 2
timer.timeit(1)
print("scale here:", scale, "  scale in the Timer:", set(used))
assert set(used) == {1}

# %%
# **Timing a promise.** ``map`` and generators do no work until somebody asks for the elements. Here the time
# would be that of making an iterator: the rows are never touched.

for statement in ("map(touched.append, rows)", "list(map(touched.append, rows))"):
    touched = []
    Timer(statement, globals={"touched": touched, "rows": torch.ones(3, 2)}).timeit(100)
    print(f"{statement:<32} rows touched: {len(touched)}")

# sphinx_gallery_start_ignore
assert len(touched) == 306
# sphinx_gallery_end_ignore

# %%
# The 306 are three rows in 102 runs, two of them warm-up.
#
# **Leaving out what Compare needs.** Without a ``description`` there is no head for the column, and the message does
# not say so.

try:
    print(Compare([Timer("torch.ones(1)").timeit(10)]))
except TypeError as error:
    print(f"TypeError: {error}")
    assert "'NoneType' has no len()" in str(error)

# %%
# Exercise
# --------
# You want the time of the backward pass alone, and build the loss in ``setup``. Why does this fail? Mend it, and
# predict what is in ``x.grad`` after ``timeit(100)`` if each backward adds 1.

x = torch.ones(3, requires_grad=True)
names = {"x": x}
try:
    Timer("loss.backward()", setup="loss = x.log().sum()", globals=names).timeit(100)
except RuntimeError as error:
    print(f"RuntimeError: {str(error).partition('(')[0]}...")
    assert str(error).startswith("Trying to backward through the graph a second time")

# %%
# .. solution::
#
# ``setup`` runs once for each block, the statement many times: the second backward finds the graph freed. It has to
# be retained. Then ``x.grad`` counts the runs, with the warm-up: 102.

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
# The accumulation into ``x.grad`` is timed along with it. ``torch.autograd.grad(loss, x, retain_graph=True)`` leaves
# it out.

# %%
# See also
# --------
# - Before: :ref:`sphx_glr_gallery_profiling_profiler_traces.py`, when each operator ran.
# - Next: :ref:`sphx_glr_gallery_profiling_cost_of_recording.py`, what autograd's bookkeeping costs.
# - :ref:`sphx_glr_gallery_errors_backward_twice.py`, the error of the exercise.
# - In PyTorch's reference: `torch.utils.benchmark
#   <https://docs.pytorch.org/docs/stable/benchmark_utils.html>`__ and the recipe `PyTorch Benchmark
#   <https://docs.pytorch.org/tutorials/recipes/recipes/benchmark.html>`__.
