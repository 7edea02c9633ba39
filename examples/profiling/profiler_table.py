r"""
How to read the torch.profiler table: Self CPU and CPU total
============================================================

.. in-short::

   Run a few steps inside ``with torch.profiler.profile() as prof:``, and
   after the block ``print(prof.key_averages().table(sort_by="self_cpu_time_total"))``. *Self CPU* is the time in the operator
   itself. *CPU total* includes the operators that it called. So sort by self to find where the time goes. Do not add up CPU
   total, because it counts the same time several times. Let the first steps pass before you record. For kernels on a GPU,
   read the CUDA columns.

.. index::
   single: profiler; Self CPU and CPU total
   single: Self CPU
   single: CPU total
   single: torch.autograd.profiler.profile
   single: with_flops, FLOPs of each operator
"""

# %%
# Which operator takes the time?
# ------------------------------
# A training step is slow. In which operators does it spend its time? Record forward and backward of two steps, after one that
# is not recorded:

# varies: Times depend on the machine and its load. The counts do not.

import threading
import time
from collections import Counter

import torch
import torch.nn.functional as F
from torch import nn
from torch.profiler import ProfilerActivity, profile, record_function

# sphinx_gallery_start_ignore
import warnings  # isort: skip

_threads = torch.get_num_threads()
# sphinx_gallery_end_ignore
torch.set_num_threads(1)  # for steady times
torch.manual_seed(0)
model = nn.Sequential(
    nn.Conv2d(3, 32, 3),
    nn.ReLU(),
    nn.Conv2d(32, 64, 3),
    nn.ReLU(),
    nn.AdaptiveAvgPool2d(1),
    nn.Flatten(),
    nn.Linear(64, 10),
)
images, labels = torch.randn(8, 3, 64, 64), torch.arange(8)


def step():
    model.zero_grad()
    F.cross_entropy(model(images), labels).backward()


step()
with profile(activities=[ProfilerActivity.CPU]) as prof:
    for _ in range(2):
        step()

rows = prof.key_averages()  # one row for all calls with one name
width = {"max_name_column_width": 32}
print(rows.table(sort_by="self_cpu_time_total", row_limit=5, **width))

# sphinx_gallery_start_ignore
by_name = {row.key: row for row in rows}
assert len(by_name) == len(rows)
self_sum = sum(row.self_cpu_time_total for row in rows)
_conv = by_name["aten::conv2d"]
_line = next(
    line.split()
    for line in rows.table(time_unit="us").splitlines()
    if "aten::conv2d " in line
)
_own, _total = _conv.self_cpu_time_total, _conv.cpu_time_total
_shown = [100 * _own / self_sum, _own, 100 * _total / self_sum, _total, _total / 4]
assert len(_line) == 7 and _line[-1] == "4" == str(_conv.count)
_units = ["%", "us", "%", "us", "us"]
assert _line[1:6] == [
    (f"{value:.2f}" if unit == "%" else f"{value:.3f}") + unit
    for value, unit in zip(_shown, _units, strict=True)
]
assert all(abs(row.cpu_time - row.cpu_time_total / row.count) < 1e-6 for row in rows)
for _sort in ("self_cpu_time_total", "cpu_time_total", "cpu_time", "count"):
    _biggest = max(rows, key=lambda row: getattr(row, _sort))
    _text = rows.table(sort_by=_sort, row_limit=1, max_name_column_width=100)
    _first = next(row for row in rows if f" {row.key} " in _text)
    assert getattr(_first, _sort) == getattr(_biggest, _sort)
# sphinx_gallery_end_ignore

# %%
# The two convolutions take most of the time. ``aten::clamp_min`` is the ReLU, ``aten::threshold_backward`` is its backward, and
# ``aten::div`` is part of the backward of the average pooling.
#
# In these rows, self and total are nearly equal, because such operators call little else. Sort by total to see what called
# them. ``aten::conv2d`` does almost nothing itself:

# varies: Times depend on the machine and its load. The counts do not.

print(rows.table(sort_by="cpu_time_total", row_limit=7, **width))

# sphinx_gallery_start_ignore
_callers = {}
for _event in prof.events():
    _callers.setdefault(_event.name, set()).add(
        getattr(_event.cpu_parent, "name", None)
    )
assert _callers["aten::clamp_min"] == {"aten::relu"}
assert _callers["aten::threshold_backward"] == {"ReluBackward0"}
assert _callers["aten::div"] == {"MeanBackward1"}
assert _callers["aten::convolution_backward"] == {"ConvolutionBackward0"}
assert _conv.self_cpu_time_total < 0.1 * _conv.cpu_time_total
# sphinx_gallery_end_ignore

# %%
# What each column means
# ----------------------
# - **Name**: what ran. ``aten::`` marks an operator of PyTorch's C++ library, in forward or backward. A name such as
#   ``ConvolutionBackward0`` is a node of the graph: in backward, it calls the operator ``aten::convolution_backward``.
# - **Self CPU**: time in the operator itself, *without* the operators that it called.
# - **CPU total**: the same *with* the operators that it called.
# - **CPU time avg**: CPU total divided by the number of calls.
# - **# of Calls**: how many recorded calls the row adds up.
# - **Self CPU %** and **CPU total %**: both are shares of *Self CPU time total*, the sum below the table.
#
# In Python, a row has ``self_cpu_time_total``, ``cpu_time_total`` and ``cpu_time`` (the average), in microseconds, and
# ``count``. You can also pass these names to ``sort_by``.

# %%
# Which of your layers is it?
# ---------------------------
# All convolutions share one row. ``record_function`` makes a row with a name that you choose:

# varies: Times depend on the machine and its load. The names do not.

with profile(activities=[ProfilerActivity.CPU]) as prof_layers:
    x = images
    for name, layer in model.named_children():
        with record_function(f"layer {name}"):
            x = layer(x)

for row in prof_layers.key_averages():
    if row.key.startswith("layer"):
        layer = model[int(row.key.split()[1])]
        print(f"{row.key} {row.cpu_time_total / 1000:6.1f} ms", layer)

# sphinx_gallery_start_ignore
_named = [row.key for row in prof_layers.key_averages() if row.key[:5] == "layer"]
assert sorted(_named) == [f"layer {_i}" for _i in range(7)]
with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as _prof:
    step()
for _name, _index in {"aten::conv2d": 1, "aten::convolution_backward": 2}.items():
    _shapes = [
        row.input_shapes[_index]
        for row in _prof.key_averages(group_by_input_shape=True)
        if row.key == _name
    ]
    assert sorted(_shapes) == [[32, 3, 3, 3], [64, 32, 3, 3]]
# sphinx_gallery_end_ignore

# %%
# In your own model, put the ``with`` into ``forward``. The row includes the time of Python, but not backward, which runs later.
# For backward too, record with ``record_shapes=True``: ``key_averages(group_by_input_shape=True)`` then splits rows by the
# shapes of the inputs.

# %%
# Self against total on one call
# ------------------------------
# Operators call operators. ``prof.events()`` lists the recorded calls, and each knows its children. So you can open the last
# convolution of a forward pass, down to the bottom:

# varies: Times depend on the machine. Which kernel computes the convolution depends on the processor.

ENGINE = "autograd::engine::evaluate_function: "


def print_calls_of(event, depth=0):
    name = "  " * depth + event.name.replace(ENGINE, "engine: ")
    own, total = event.self_cpu_time_total, event.cpu_time_total
    print(f"{name:<36} self {own:8.1f} us   total {total:8.1f} us")
    for child in event.cpu_children:
        print_calls_of(child, depth + 1)


def find_last(name):
    return [event for event in prof.events() if event.name == name][-1]


print_calls_of(find_last("aten::conv2d"))

# sphinx_gallery_start_ignore
for event in prof.events():
    children = sum(child.cpu_time_total for child in event.cpu_children)
    assert abs(event.self_cpu_time_total - (event.cpu_time_total - children)) < 1e-3
_calls = [_event for _event in prof.events() if _event.name == "aten::conv2d"]
_below = [[_child.name for _child in _call.cpu_children] for _call in _calls]
assert _below == [["aten::convolution"]] * 4
del event, children
# sphinx_gallery_end_ignore

# %%
# **Self is total minus the totals of the direct children.** So sort by *self* to find where the time is spent, at the bottom of
# such a tree, and by *total* to find which call of yours spent it.

# %%
# The counts follow from the model
# --------------------------------
# Times change from run to run, but counts do not. So compare them with your model: if a count is twice what you expect, a layer
# runs twice. This small residual network has two blocks:


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.conv1 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)

    def forward(self, x):
        path = torch.relu(self.bn1(self.conv1(x)))
        return torch.relu(self.bn2(self.conv2(path)) + x)


start = [nn.Conv2d(3, 32, 3, padding=1, bias=False), nn.BatchNorm2d(32)]
start += [nn.ReLU(), nn.MaxPool2d(2)]
end = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10)]
model = nn.Sequential(*start, Block(32), Block(32), *end)

step()
with profile(activities=[ProfilerActivity.CPU]) as prof:
    for _ in range(2):
        step()
rows = prof.key_averages()

# %%
# It has five convolutions, one at the start and two in each block:

per_step = {
    "aten::conv2d": 5,
    "aten::batch_norm": 5,  # one after each convolution
    "aten::relu": 5,  # one at the start, two in each block
    "aten::add": 2,  # one in each block
    "aten::linear": 1,
    "ConvolutionBackward0": 5,
    "AddBackward0": 2,
    "torch::autograd::AccumulateGrad": len(list(model.parameters())),
}
counts = {row.key: row.count for row in rows}
for name, expected in per_step.items():
    count = counts[name]
    print(f"{name:<31} {expected:>2} per step x 2 steps = {count:>3} calls")
    assert count == expected * 2

# sphinx_gallery_start_ignore
by_name = {row.key: row for row in rows}
assert by_name["aten::conv2d"].count == 10
del name, expected
# sphinx_gallery_end_ignore

# %%
# Names of the backward rows
# --------------------------
# A node of the graph that runs in backward has a row with its name. One residual step shows two such nodes:

torch.manual_seed(0)
h = torch.randn(1, 4, 8, 8, requires_grad=True)
weight = torch.randn(4, 4, 3, 3, requires_grad=True)
path = F.conv2d(h, weight, padding=1)
joined = path + h

# graph: joined -- A residual step: h reaches the sum on two paths, so two gradients meet in h on the way back

print(joined.grad_fn.name(), "<-", path.grad_fn.name())

# sphinx_gallery_start_ignore
assert joined.grad_fn.name() == "AddBackward0"
assert path.grad_fn.name() == "ConvolutionBackward0"
# sphinx_gallery_end_ignore

# %%
# Three rows record the node ``ConvolutionBackward0``, one inside the other: the engine's row
# (``autograd::engine::evaluate_function: ...``, shortened to ``engine:``), the node's, and that of the operator that computes.

# varies: Times depend on the machine. What the operator calls depends on the processor.

print_calls_of(find_last(ENGINE + "ConvolutionBackward0"))

# sphinx_gallery_start_ignore
nested = ["ConvolutionBackward0", "aten::convolution_backward"]
nested.insert(0, ENGINE + nested[0])
assert [by_name[name].count for name in nested] == [10, 10, 10]
_node = find_last(nested[0]).cpu_children[0]
assert [_node.name, _node.cpu_children[0].name] == nested[1:]
# sphinx_gallery_end_ignore

# %%
# Forward against backward
# ------------------------
# Rows that do not contain each other can be compared by their totals, such as ``aten::conv2d`` and the engine's row for
# ``ConvolutionBackward0``.
#
# .. how-measured:: This code takes CPU total of the outermost row of each operator, for one step, and draws bars.

import pandas as pd

PAIRS = {
    "convolution": ("aten::conv2d", "ConvolutionBackward0"),
    "batch norm": ("aten::batch_norm", "NativeBatchNormBackward0"),
    "relu": ("aten::relu", "ReluBackward0"),
    "max pool": ("aten::max_pool2d", "MaxPool2DWithIndicesBackward0"),
    "linear": ("aten::linear", "AddmmBackward0"),
    "addition": ("aten::add", "AddBackward0"),
}


def measure_pairs(rows):
    ms = {row.key: row.cpu_time_total / 1000 / 2 for row in rows}
    pairs = [(ms[name], ms[ENGINE + node]) for name, node in PAIRS.values()]
    return pd.DataFrame(pairs, list(PAIRS), ["forward", "backward"])


def plot_forward_and_backward(times):
    colors = ["#2563eb", "#c2410c"]
    look = {"color": colors, "edgecolor": "white", "width": 0.8}
    ax = times.plot.barh(figsize=(7, 3.6), **look)
    for bar in ax.containers[1]:
        bar.set_hatch("///")
    for bars in ax.containers:
        ax.bar_label(bars, fmt="%.2f", padding=3, fontsize=8)
    ax.invert_yaxis()
    ax.margins(x=0.12)
    ax.set_xlabel("CPU total, ms per step")
    ax.set_title("Time by operator, forward and backward")
    ax.legend()
    ax.figure.tight_layout()


# %%
# A convolution has more to compute in backward: the gradient of the weight and, except in the first layer, that of the input.

# varies: The lengths of the bars are times. They depend on the machine and its load.

times = measure_pairs(rows)
# figure: Horizontal bars, two for each operator, in milliseconds per step: forward plain and blue, backward hatched
#   and orange. The operators are convolution, batch norm, relu, max pool, linear and addition.
plot_forward_and_backward(times)

# sphinx_gallery_start_ignore
# No parent of a pair's row is the row of another pair.
_outermost = [one for name, node in PAIRS.values() for one in (name, ENGINE + node)]
_nested = []
for _event in prof.events():
    _parent = _event.cpu_parent
    while _event.name in _outermost and _parent is not None:
        _nested += [_parent.name] * (_parent.name in _outermost)
        _parent = _parent.cpu_parent
assert not _nested
assert sum(_event.name in _outermost for _event in prof.events()) == 2 * 2 * 19
# sphinx_gallery_end_ignore

# %%
# What people get wrong
# ---------------------
# **Adding up CPU total.** The time of a call is also part of the total of its parent. *Self CPU* counts it once:

# varies: Times depend on the machine and its load.

with profile(activities=[ProfilerActivity.CPU]) as prof_timed:
    start = time.perf_counter()
    step()
    clock = (time.perf_counter() - start) * 1e6

averages = prof_timed.key_averages()
sums = {
    "time on the clock": clock,
    "sum of Self CPU": sum(row.self_cpu_time_total for row in averages),
    "sum of CPU total": sum(row.cpu_time_total for row in averages),
}
for name, microseconds in sums.items():
    print(f"{name:<18} {microseconds / 1000:6.1f} ms")

# sphinx_gallery_start_ignore
from itertools import pairwise

del name, microseconds
assert 0 < sums["sum of Self CPU"] < clock
# In one thread, calls contain each other or do not overlap: the outermost ones, one after the other, are the sum.
assert len({_event.thread for _event in prof_timed.events()}) == 1
_outer = [_e.time_range for _e in prof_timed.events() if _e.cpu_parent is None]
_outer.sort(key=lambda _one: _one.start)
assert all(_a.end <= _b.start for _a, _b in pairwise(_outer))
assert abs(sum(_one.elapsed_us() for _one in _outer) - sums["sum of Self CPU"]) < 1
assert any(_event.cpu_children for _event in prof_timed.events())
# sphinx_gallery_end_ignore

# %%
# **Sorting by a heading.** ``sort_by`` takes names of attributes, not the headings of the table:

try:
    rows.table(sort_by="CPU total")
except AttributeError as error:
    message = str(error)
    print(f"AttributeError: {message}")

# sphinx_gallery_start_ignore
assert message == "'FunctionEventAvg' object has no attribute 'CPU total'"
_text = rows.table(sort_by="self_cuda_time_total", row_limit=-1)
assert not any(row.self_device_time_total for row in rows)
assert _text.splitlines() == rows.table(row_limit=-1).splitlines()
# sphinx_gallery_end_ignore

# %%
# If nothing ran on a GPU, ``sort_by="self_cuda_time_total"`` silently leaves the rows unsorted, because all values are 0.
#
# **Reading select and as_strided as work.** They only make a view. Many calls of ``select`` often come from a loop over a
# tensor. Let one operator do it instead:

numbers = torch.ones(100)
for name, add_up in {"sum(numbers)": sum, "numbers.sum()": torch.sum}.items():
    with profile(activities=[ProfilerActivity.CPU]) as prof_sum:
        add_up(numbers)
    calls = {row.key: row.count for row in prof_sum.key_averages()}
    selects = calls.get("aten::select", 0)
    strided = calls.get("aten::as_strided", 0)
    print(f"{name:<14} {selects} select, {strided} as_strided")

# sphinx_gallery_start_ignore
assert "aten::select" not in calls and calls["aten::sum"] == 1
with profile(activities=[ProfilerActivity.CPU]) as _prof:
    sum(numbers)
_calls = {row.key: row.count for row in _prof.key_averages()}
assert (
    _calls["aten::select"] == _calls["aten::add"] == 100 == _calls["aten::as_strided"]
)
for _view in (lambda t: t.t(), lambda t: t.expand(2, 3, 4), lambda t: t[0]):
    with profile(activities=[ProfilerActivity.CPU]) as _prof:
        _view(torch.ones(3, 4))
    assert "aten::as_strided" in {row.key for row in _prof.key_averages()}
# sphinx_gallery_end_ignore

# %%
# **Taking with_flops for the cost of a step.** Its column has matrix products, ``add``, ``mul`` and ``conv2d``. It lacks the
# backward of convolutions, and ``conv1d``. ``FlopCounterMode`` counts these:

from torch.utils.flop_counter import FlopCounterMode

conv = nn.Conv2d(8, 16, 3)
image = torch.randn(1, 8, 10, 10, requires_grad=True)
with profile(activities=[ProfilerActivity.CPU], with_flops=True) as prof_flops:
    conv(image).sum().backward()
with FlopCounterMode(display=False) as counter:
    conv(image).sum().backward()
rows_flops = prof_flops.key_averages()
counted = {row.key: row.flops for row in rows_flops if row.flops}
print("with_flops:     ", counted)
print("FlopCounterMode:", counter.get_total_flops(), "in total")

# sphinx_gallery_start_ignore
_forward = 2 * 16 * 8 * 3 * 3 * 8 * 8  # multiply and add, for each output
assert counted == {"aten::conv2d": _forward}
for _name in ("conv1d", "conv2d", "conv3d"):
    _conv = {1: nn.Conv1d, 2: nn.Conv2d, 3: nn.Conv3d}[int(_name[4])](3, 4, 3)
    _x = torch.ones(1, 3, *[5] * int(_name[4]), requires_grad=True)
    with profile(activities=[ProfilerActivity.CPU], with_flops=True) as _prof:
        (_conv(_x) * 2).sum().backward()
    with FlopCounterMode(display=False) as _counter:
        _conv(_x).sum().backward()
    _counted = {row.key for row in _prof.key_averages() if row.flops}
    assert ("aten::conv2d" in _counted) == (_name == "conv2d")
    assert _counted <= {"aten::conv2d", "aten::mul"} and "aten::mul" in _counted
    assert _counter.get_total_flops() > 0
assert counter.get_total_flops() == 3 * _forward  # image.grad and weight.grad
with profile(activities=[ProfilerActivity.CPU], with_flops=True) as _prof:
    nn.Linear(8, 4)(image[0, 0, :, :8]).sum().backward()
_counted = {row.key: row.flops for row in _prof.key_averages() if row.flops}
assert set(_counted) == {"aten::addmm", "aten::mm"}  # of backward too
assert "FLOPs" in prof_flops.key_averages().table().splitlines()[1]
assert not any(row.flops for row in rows)
# sphinx_gallery_end_ignore

# %%
# **Starting a thread inside the block.** By default the profiler follows the thread of its ``with`` block. So if the step runs
# in another thread, the table stays empty:

with profile(activities=[ProfilerActivity.CPU]) as prof_thread:
    thread = threading.Thread(target=step)
    thread.start()
    thread.join()

print("events:", len(prof_thread.events()))
assert len(prof_thread.events()) == 0

# sphinx_gallery_start_ignore
_seen = []


def _inside():
    with profile(activities=[ProfilerActivity.CPU]) as _prof:
        step()
    _seen.extend(_prof.events())


thread = threading.Thread(target=_inside)
thread.start()
thread.join()
assert sum(_event.name == "aten::conv2d" for _event in _seen) == 5
# sphinx_gallery_end_ignore

# %%
# Open the profiler in the thread that does the work.
#
# **Copying use_cuda from older notes.** They write ``torch.autograd.profiler.profile(use_cuda=True)``. Write
# ``torch.profiler.profile()`` instead: by default it records the CPU, and CUDA where it is available.
#
# .. torch-changed:: 2.14
#    :probe: refuses: torch.autograd.profiler.profile(use_cuda=True)
#
#    This argument is gone, and the old class takes ``use_device="cuda"`` (`pytorch#192543 <https://github.com/pytorch/pytorch/pull/192543>`__).

# sphinx_gallery_start_ignore
_context = warnings.catch_warnings(record=True)
caught = _context.__enter__()
warnings.simplefilter("always")
try:
    torch.autograd.profiler.profile(use_cuda=True)
    profile(use_device="cuda")
except TypeError as error:
    message = str(error)
_context.__exit__(None, None, None)
with torch.autograd.profiler.profile() as _older:
    for _ in range(2):
        step()
_older = _older.key_averages()
assert {row.key: row.count for row in _older} == counts
_heads = [
    table.table(max_name_column_width=32).splitlines()[1] for table in (rows, _older)
]
assert _heads[0] == _heads[1] and "conv2d" not in counts
_old = tuple(int(part) for part in torch.__version__.split(".")[:2]) < (2, 14)
_argument = "use_device" if _old else "use_cuda"
assert f"unexpected keyword argument '{_argument}'" in message
_warned = [str(warning.message) for warning in caught]
assert any("`use_cuda` will be deprecated" in text for text in _warned) == _old
assert "use_device" not in profile.__init__.__code__.co_varnames
assert "use_device" in torch.autograd.profiler.profile.__init__.__code__.co_varnames
_default = {ProfilerActivity.CPU}
if torch.cuda.is_available():
    _default.add(ProfilerActivity.CUDA)
if torch.xpu.is_available():
    _default.add(ProfilerActivity.XPU)
assert profile().activities == _default == torch.profiler.supported_activities()
# sphinx_gallery_end_ignore

# %%
# Exercise
# --------
# The residual network has a row ``aten::add_``, an addition in place, with 14 calls. Where do they come from? Each recorded
# call knows its ``cpu_parent``.
#
# .. solution::
#
# Group the calls by parent. Four are made by the engine, two in each step: one for each block, where the gradients of the two
# paths meet in the block's input, as in the graph above.

parents = Counter()
for call in prof.events():
    if call.name == "aten::add_":
        parents[call.cpu_parent.name if call.cpu_parent else "no parent"] += 1
for name, count in sorted(parents.items()):
    print(count, name)

assert parents.total() == counts["aten::add_"] == 14

# sphinx_gallery_start_ignore
assert parents == {"no parent": 10, ENGINE + "ConvolutionBackward0": 4}
# sphinx_gallery_end_ignore

# %%
# The other ten are five in each step: in training mode, each batch norm of this model adds 1 to ``num_batches_tracked``.

# sphinx_gallery_start_ignore
model.eval()
with profile(activities=[ProfilerActivity.CPU]) as _prof:
    step()
_counts = {row.key: row.count for row in _prof.key_averages()}
assert _counts["aten::add_"] == 2
torch.set_num_threads(_threads)
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_profiling_profiler_schedule.py`, to let the first steps pass.
# - :ref:`sphx_glr_gallery_cuda_cuda_profiler.py`, the columns of a GPU.
# - :ref:`sphx_glr_gallery_graphs_functions_are_nodes.py`, the nodes whose names the backward rows have.
# - :ref:`sphx_glr_gallery_debugging_anomaly_detection.py`, from a backward node to the forward line that made it.
# - In PyTorch's reference: `torch.profiler <https://docs.pytorch.org/docs/stable/profiler.html>`__ and
#   `the autograd profiler <https://docs.pytorch.org/docs/stable/autograd.html#profiler>`__.
