r"""
torch.profiler: schedule, labels, memory, stacks and Chrome traces
==================================================================

A table adds up all calls of an operator. Often the question is a different one: which step, which layer, which line,
how many bytes, in what order? This page records chosen steps of a training loop, asks the profiler for labels,
shapes, bytes and call stacks, and reads the trace file that it writes. The trace links each backward node to the
forward operator that made it.
"""

# %%
# A step with labels
# ------------------
# The table itself, with its columns and counts, is explained in
# :ref:`how to read the profiler's table <sphx_glr_gallery_profiling_profiler_table.py>`. Here the model is small, so
# that every event of a step can be followed. ``record_function`` gives a name to a stretch of code.

import json
import tempfile
import textwrap
import warnings
from collections import Counter
from itertools import accumulate
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd
import torch
import torch.nn.functional as F
from torch import nn
from torch.profiler import ProfilerActivity, profile, record_function, schedule

# sphinx_gallery_start_ignore
threads = torch.get_num_threads()
# Shown below. It comes once in a process, and torch 2.11 gives it even where there is one cycle only.
warnings.filterwarnings("ignore", message="Warning: Profiler clears events")
# Quoted below, and asserted there.
warnings.filterwarnings("ignore", message="Profiler won't be using warmup")
# sphinx_gallery_end_ignore
torch.set_num_threads(1)  # for steady times
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 10))
x, labels = torch.randn(128, 64), torch.randint(10, (128,))


def step():
    model.zero_grad()
    with record_function("forward"):
        loss = F.cross_entropy(model(x), labels)
    with record_function("backward"):
        loss.backward()


# %%
# Each label becomes an event of its own. What runs inside the ``with`` block becomes its child. The prefix
# ``autograd::engine::evaluate_function:`` of the backward nodes is cut off here.

cpu = [ProfilerActivity.CPU]
ENGINE = "autograd::engine::evaluate_function: "

with profile(activities=cpu) as plain:
    step()

for label in plain.events():
    if label.cpu_parent is None:
        names = [child.name.replace(ENGINE, "") for child in label.cpu_children]
        print(textwrap.fill(f"{label.name}: {', '.join(names)}", 88))

# sphinx_gallery_start_ignore
_labels = [event for event in plain.events() if event.cpu_parent is None]
assert [event.name for event in _labels] == ["forward", "backward"]
_names = [child.name for child in _labels[1].cpu_children]
assert _names[0] == "aten::ones_like" and len(_names) == 12
assert all(name.startswith(ENGINE) for name in _names[1:])
assert (
    sum("AccumulateGrad" in name for name in _names)
    == 4
    == len(list(model.parameters()))
)
del label, names
# sphinx_gallery_end_ignore

# %%
# The label ``backward`` holds ``aten::ones_like``, which makes the gradient of the loss with respect to itself, and
# then the nodes of the graph, in the order in which the engine runs them.

# %%
# A schedule chooses the steps
# ----------------------------
# Recording every step of a training run takes time and memory, and a few steps tell as much. ``schedule`` returns a
# function from the number of a step to an action. ``prof.step()`` tells the profiler that one step has ended. After
# the last active step of a cycle the profiler calls ``on_trace_ready`` with itself.

plan = schedule(wait=1, warmup=1, active=2, repeat=2)
delivered = {}


def inside(event):
    return [event.name] + [name for e in event.cpu_children for name in inside(e)]


def ready(prof):
    for event in prof.events():
        if event.name.startswith("batch"):
            delivered[event.name] = prof.step_num, inside(event)


with profile(activities=cpu, schedule=plan, on_trace_ready=ready) as prof:
    for number in range(10):
        with record_function(f"batch {number}"):
            step()
        prof.step()

# %%
# The table counts, for each of the ten steps, two of the names that were recorded in it.


def frame(title, rows, *columns):
    table = pd.DataFrame.from_dict(rows, orient="index", columns=columns)
    return table.rename_axis(columns=title)


rows = {}
for number in range(10):
    at, names = delivered.get(f"batch {number}", ("never", []))
    counts = [names.count(name) for name in ("aten::linear", "AddmmBackward0")]
    rows[f"batch {number}"] = [plan(number).name, *counts, at]

table = frame(
    "step", rows, "action", "aten::linear", "AddmmBackward0", "ready at step_num"
)
# sphinx_gallery_start_ignore
_cycle = ["NONE", "WARMUP", "RECORD", "RECORD_AND_SAVE"]
assert list(table["action"]) == _cycle * 2 + ["NONE"] * 2
assert list(table["ready at step_num"]) == [
    *["never"] * 2,
    4,
    4,
    *["never"] * 2,
    8,
    8,
    *["never"] * 2,
]
assert (
    list(table["aten::linear"])
    == list(table["AddmmBackward0"])
    == [0, 0, 2, 2] * 2 + [0, 0]
)
del rows, number, at, names, counts
# sphinx_gallery_end_ignore
table

# %%
# One cycle is wait, warmup, active. In ``NONE`` the profiler is off. In ``WARMUP`` it gets ready, and nothing is
# kept. ``RECORD`` and ``RECORD_AND_SAVE`` are recorded. After ``repeat`` cycles it stays off. ``repeat=0``, the
# default, goes on as long as the loop does.

# %%
# Shapes: one row for each product
# --------------------------------
# With ``record_shapes=True`` each event knows the shapes of its inputs, and ``group_by_input_shape`` keeps calls with
# different shapes apart. ``profile_memory=True`` is for the next section. Of five profiles of the same step, the
# quickest is kept: it was disturbed least.

options = {"record_shapes": True, "profile_memory": True}
attempts = []
for _ in range(5):
    model.zero_grad()
    with profile(activities=cpu, **options) as prof:
        step()
    attempts.append((prof.key_averages().self_cpu_time_total, prof))

_, prof = min(attempts, key=lambda attempt: attempt[0])
for row in prof.key_averages(group_by_input_shape=True):
    if row.key in ("aten::addmm", "aten::mm"):
        shapes = [shape for shape in row.input_shapes if shape]  # numbers have none
        print(f"{row.count} {row.key:<12} {shapes}")

# sphinx_gallery_start_ignore
_mm = [
    row for row in prof.key_averages(group_by_input_shape=True) if row.key == "aten::mm"
]
assert [row.input_shapes for row in _mm] == [
    [[128, 10], [10, 256]],
    [[10, 128], [128, 256]],
    [[256, 128], [128, 64]],
]
assert [row.count for row in _mm] == [1, 1, 1]
_mm = [
    row
    for row in plain.key_averages(group_by_input_shape=True)
    if row.key == "aten::mm"
]
assert [(row.count, row.input_shapes) for row in _mm] == [(3, [])]
del row, shapes
# sphinx_gallery_end_ignore

# %%
# The products ``aten::mm`` are the backward pass. The second layer needs two: the gradient of its input, of shape
# (128, 256), and that of its weight, (10, 256). The first layer needs one, for its weight, (256, 64): ``x`` requires
# no gradient. Without ``record_shapes=True`` the grouping gives no error. All shapes are empty, and the three
# products stay in one row.

# %%
# Memory: bytes by operator
# -------------------------
# With ``profile_memory=True`` a row also has bytes: what was allocated, less what was freed. *Self* counts what the
# operator did itself, *total* includes the operators that it called. Here are the rows with a total of 10,000 bytes
# or more, up or down.

rows = {}
for row in prof.key_averages():
    if abs(row.cpu_memory_usage) >= 10_000:
        name = row.key.replace(ENGINE, "engine: ")
        rows[name] = [row.self_cpu_memory_usage, row.cpu_memory_usage]

table = frame("operator", rows, "self bytes", "total bytes")

# sphinx_gallery_start_ignore
_self, _total = table["self bytes"], table["total bytes"]
_hidden, _log_softmax = 128 * 256 * 4, 128 * 10 * 4
assert _hidden == 131_072 and _log_softmax == 5_120
assert (
    _self["aten::linear"] == 0
    and _total["aten::linear"] == _self["aten::addmm"] == 136_192
)
assert _total["forward"] == _hidden + _log_softmax + 8 == 136_200
assert _self["forward"] == -(
    _hidden + _log_softmax
)  # the results of the two linear layers
assert _self["engine: ReluBackward0"] == -2 * _hidden
assert F.cross_entropy(model(x), labels).grad_fn._saved_total_weight.nbytes == 4
del rows, row, name
# sphinx_gallery_end_ignore
table

# %%
# - ``aten::linear`` allocates nothing itself. The operator that it calls, ``aten::addmm``, allocates the results.
# - The total of the label ``forward`` is what is still there when the forward pass ends: the result of ReLU with
#   131,072 bytes, that of the log-softmax with 5,120, the loss, and the total weight of the samples, one number each.
#   All but the loss are kept for backward. This is
#   :ref:`what autograd saves <sphx_glr_gallery_memory_what_is_saved.py>`, seen from outside.
# - The results of the two linear layers, 136,192 bytes together, were freed between the operators. They are the
#   negative number in *self* of the label.
# - In the engine's rows, self is negative. When a node is done, the engine lets go of what the node had saved and of
#   the gradient that came in: for ReLU two tensors of 131,072 bytes.
#
# The whole *self* column adds up to what the step leaves behind.

left = sum(row.self_cpu_memory_usage for row in prof.key_averages())
gradients = sum(parameter.grad.nbytes for parameter in model.parameters())
print(f"sum of self bytes {left:,}, bytes of all .grad {gradients:,}")
assert left == gradients

# %%
# Stacks: the layer and the line
# ------------------------------
# ``with_stack=True`` also records the Python calls. Each event has a list ``stack`` for them, from the inside out.
# The list stays empty unless an experimental option is set as well: see `issue 100253
# <https://github.com/pytorch/pytorch/issues/100253>`__.

verbose = torch._C._profiler._ExperimentalConfig(verbose=True)
products = ("aten::addmm", "AddmmBackward0", "aten::mm")
for config in (None, verbose):
    options = {"with_stack": True, "experimental_config": config}
    with profile(activities=cpu, **options) as stacked:
        step()
    found = [event for event in stacked.events() if event.name in products]
    print("events with a stack:", sum(len(event.stack) > 0 for event in found))

    # sphinx_gallery_start_ignore
    assert all((len(event.stack) > 0) == (config is verbose) for event in found)
    # sphinx_gallery_end_ignore
for event in found:
    layer = next(entry for entry in event.stack if entry.startswith("nn.Module"))
    line = next(entry for entry in event.stack if entry.endswith(": step"))
    print(f"{event.name:<15} {layer}   {Path(line).name}")

# sphinx_gallery_start_ignore
_layers = {name: [] for name in products}
for event in found:
    assert f"({step.__code__.co_firstlineno})" in "".join(event.stack)
    _layers[event.name] += [entry[-1] for entry in event.stack if "Linear_" in entry]
assert list(_layers.values()) == [["0", "1"], ["1", "0"], ["1", "1", "0"]]
del config, event, layer, line
# sphinx_gallery_end_ignore

# %%
# ``Linear_0`` is the first linear layer that ran, ``Linear_1`` the second. The number in brackets is the line where
# the function begins, not the line of the call.
#
# The last five events ran during backward, yet their stack is that of the forward pass: the profiler knows which
# forward operator made a node, and gives the node, and what the node calls, that operator's stack. So you can see
# which layer a product of the backward pass belongs to.

# %%
# The trace as a file
# -------------------
# ``export_chrome_trace`` writes all events as JSON. Open the file in your browser, in
# `Perfetto <https://ui.perfetto.dev>`__ or, in Chrome, at the address ``chrome://tracing``. A path that ends in
# ``.gz`` makes a compressed file. A trace can be exported once. A second time gives ``RuntimeError: Trace is already
# saved.``
#
# Here the file of the step that was profiled with memory is written and read back.

# varies: How many operators there are depends on the processor: a product may call others to do its work.

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "trace.json"
    prof.export_chrome_trace(str(path))
    trace = json.loads(path.read_text())["traceEvents"]

categories = Counter(event.get("cat", "no category") for event in trace)
for category, count in categories.most_common():
    print(f"{count:>4}  {category}")

# sphinx_gallery_start_ignore
_ops = [event for event in trace if event.get("cat") == "cpu_op"]
assert len(_ops) == sum(
    e.name not in ("forward", "backward", "[memory]") for e in prof.events()
)
assert all({"ts", "dur"} <= event.keys() for event in _ops)
assert (
    abs(
        sum(event["dur"] for event in _ops if event["name"] == "aten::addmm")
        - {row.key: row.cpu_time_total for row in prof.key_averages()}["aten::addmm"]
    )
    < 0.1
)
assert categories["user_annotation"] == 2
assert categories["fwdbwd"] == 14 and categories["cpu_instant_event"] == 26
import gzip

with tempfile.TemporaryDirectory() as _folder:
    _path = Path(_folder) / "trace.json.gz"
    plain.export_chrome_trace(str(_path))
    with gzip.open(_path) as _file:
        assert len(json.load(_file)["traceEvents"]) > 100
    try:
        plain.export_chrome_trace(str(_path))
    except RuntimeError as error:
        assert str(error) == "Trace is already saved."
    else:
        raise AssertionError
del count, category
# sphinx_gallery_end_ignore

# %%
# - ``cpu_op`` are the operators and the nodes, with a start ``ts`` and a duration ``dur`` in microseconds.
# - ``cpu_instant_event`` are allocations and releases of memory.
# - ``fwdbwd`` are the two ends of the links from forward to backward.
# - ``user_annotation`` are the labels. With a schedule, each step has one too, such as ``ProfilerStep#2``.

# %%
# The link from forward to backward
# ---------------------------------
# Each end of a link has the ``id`` of the link and the start of its operator. Together they are the graph, as it ran.

ops = {event["ts"]: event for event in trace if event.get("cat") == "cpu_op"}
ends = {"s": {}, "f": {}}  # start and finish
for event in trace:
    if event["name"] == "fwdbwd":
        ends[event["ph"]][event["id"]] = ops[event["ts"]]

links = [(operator, ends["f"][number]) for number, operator in ends["s"].items()]
for operator, node in links:
    print(f"{operator['name']:<23} -> {node['name']}")
    assert operator["args"]["Sequence number"] == node["args"]["Sequence number"]

# sphinx_gallery_start_ignore
_expected = [
    "TBackward0",
    "AddmmBackward0",
    "ReluBackward0",
    "TBackward0",
    "AddmmBackward0",
]
_expected += ["LogSoftmaxBackward0", "NllLossBackward0"]
assert [node["name"] for _, node in links] == _expected and len(links) == 7
assert all(operator["ts"] < node["ts"] for operator, node in links)
_starts = [node["ts"] for _, node in sorted(links, key=lambda link: link[0]["ts"])]
assert _starts == sorted(_starts, reverse=True)
_numbers = [
    event["args"].get("Sequence number")
    for event in trace
    if event["name"] == "aten::linear"
]
assert _numbers == [
    links[0][0]["args"]["Sequence number"],
    links[3][0]["args"]["Sequence number"],
]
del event, operator, node
# sphinx_gallery_end_ignore

# %%
# Both ends carry the same *sequence number*. Autograd counts the nodes that it makes, and the profiler notes the
# count. ``AccumulateGrad`` has no link: no forward operator made it. ``aten::linear`` has none either, for it makes
# no node itself. The nodes come from ``aten::t``, the transpose of the weight, and ``aten::addmm``.

# %%
# The peak of memory
# ------------------
# A table of sums cannot show a peak. The trace can: its memory events are in the order of time.

memory = [event for event in trace if event["name"] == "[memory]"]
changes = [event["args"]["Bytes"] for event in memory]
level = list(accumulate(changes))
peak = max(level)
moment = memory[level.index(peak)]["ts"]
running = [op["name"] for op in ops.values() if 0 < moment - op["ts"] < op["dur"]]

print(f"allocated in all:  {sum(size for size in changes if size > 0):>7,}")
print(f"at the end:        {level[-1]:>7,}")
print(f"at the peak:       {peak:>7,}")
print("running then:", running[-2:])

# sphinx_gallery_start_ignore
assert sum(size for size in changes if size > 0) == 621_620
assert peak == 403_504 and level[-1] == left
assert running[-2:] == ["ReluBackward0", "aten::threshold_backward"]
_alive = {}
for _event in memory[: level.index(peak) + 1]:
    _address, _size = _event["args"]["Addr"], _event["args"]["Bytes"]
    if _size > 0:
        _alive[_address] = _size
    else:
        del _alive[_address]
# The rest: gradients of the second layer's weight and bias, the loss, and the gradient of the loss.
_sizes = [128 * 256 * 4] * 3 + [10 * 256 * 4, 10 * 4, 4, 4]
assert sorted(_alive.values(), reverse=True) == _sizes and sum(_sizes[:3]) == 393_216
assert [event["ts"] for event in memory] == sorted(event["ts"] for event in memory)
# sphinx_gallery_end_ignore

# %%
# These are bytes since the profile began. The model and the input were there before and are not counted. At the peak,
# 393,216 bytes are three tensors of the hidden layer's shape: the result of ReLU, which its node has saved, the
# gradient that came in, and the gradient that is being computed.
#
# Now both in one picture: the operators, the nodes and their links, and below them the memory, over the same time.

# varies: Where the bars are, and how long, depends on the machine and its load. The links and the bytes do not.

# figure: Two panels over the same time axis. Above, seven operators of the forward pass on a lane to the left, and
#   seven nodes of the backward pass, hatched, on a lower lane to the right. Grey lines link each operator to its
#   node. They all cross, because the last operator is the first to have its turn in backward. Below, the memory as
#   steps: it is 136 kB after the forward pass, has its peak of 404 kB in ReluBackward0, and ends at 77 kB.
start, end = min(ops), max(ts + event["dur"] for ts, event in ops.items())
styles = (
    (1, 0.17, "bottom", "left", {"color": "#2563eb"}),
    (0, -0.17, "top", "right", {"color": "#c2410c", "hatch": "////"}),
)
fig, (lanes, curve) = plt.subplots(2, sharex=True, figsize=(7, 5), height_ratios=[2, 1])
for side, (y, gap, va, ha, style) in enumerate(styles):
    place = -1000
    for event in sorted((link[side] for link in links), key=lambda event: event["ts"]):
        x0, name = event["ts"] - start, event["name"].removeprefix("aten::")
        lanes.barh(y, event["dur"], 0.24, x0, edgecolor="white", **style)
        if name not in ("t", "TBackward0"):
            place = max(x0 + event["dur"] / 2, place + 0.05 * (end - start))
            text = {"rotation": 30, "rotation_mode": "anchor", "fontsize": 9}
            lanes.text(place, y + gap, name, va=va, ha=ha, **text)
for operator, node in links:
    x0, x1 = operator["ts"] - start, node["ts"] - start
    lanes.plot([x0, x1], [0.87, 0.13], color="#94a3b8", lw=1)
lanes.set(yticks=[1, 0], yticklabels=["forward", "backward"], ylim=(-1.5, 2.2))
lanes.set_title("Forward operators and the backward nodes that they made")

times = [0] + [event["ts"] - start for event in memory]
curve.step(times, [0] + [size / 1000 for size in level], color="#1e293b", where="post")
curve.plot(moment - start, peak / 1000, "o", color="#c2410c")
curve.text(moment - start, peak / 1000, "peak  ", ha="right", va="center")
curve.set(xlabel="microseconds", ylabel="kB", ylim=(0, 1.2 * peak / 1000))
curve.set_title("Memory allocated since the start")
fig.tight_layout()

# sphinx_gallery_start_ignore
_forward, _backward = zip(*links, strict=True)
assert max(op["ts"] for op in _forward) < min(op["ts"] for op in _backward)
_node = links[2][1]
assert _node["name"] == "ReluBackward0" and 0 < moment - _node["ts"] < _node["dur"]
# sphinx_gallery_end_ignore

# %%
# The bars without a name are ``aten::t`` and ``TBackward0``. A viewer shows the same with every operator, the
# calls inside each other and the labels, and lets you zoom and search.

# %%
# What people get wrong
# ---------------------
# One function serves the first two mistakes. It runs ten steps under a schedule and prints how often
# ``on_trace_ready`` was called, and how many calls of ``aten::linear`` are in ``key_averages()`` afterwards. A
# recorded step has two.


def ten_steps(title, plan, mark=True, **options):
    ready = []
    options = {"schedule": plan, "on_trace_ready": ready.append, **options}
    with profile(activities=cpu, **options) as prof:
        for _ in range(10):
            step()
            if mark:
                prof.step()
    print(f"{title}: on_trace_ready calls: {len(ready)}")
    try:
        found = sum(r.count for r in prof.key_averages() if r.key == "aten::linear")
        print(f"    aten::linear calls: {found}")
    except AssertionError as error:
        found = f"AssertionError: {error}"
        print("   ", found)

    # sphinx_gallery_start_ignore
    _outcomes.append((len(ready), found))
    # sphinx_gallery_end_ignore


# sphinx_gallery_start_ignore
_outcomes = []
# sphinx_gallery_end_ignore

# %%
# **Forgetting prof.step().** Then step 0 never ends, and its action is in force to the end of the block.

for wait, warmup in ((1, 1), (0, 1), (0, 0)):
    plan = schedule(wait=wait, warmup=warmup, active=2)
    ten_steps(f"wait={wait}, warmup={warmup} ({plan(0).name})", plan, mark=False)

# sphinx_gallery_start_ignore
_error = "AssertionError: Profiler must be initialized before getting key averages"
assert _outcomes == [(0, _error), (0, 0), (1, 20)]
_outcomes.clear()
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    schedule(wait=0, warmup=0, active=2)
_warning = "Profiler won't be using warmup, this can skew profiler results"
assert [str(entry.message) for entry in caught] == [_warning]
del wait, warmup, plan
# sphinx_gallery_end_ignore

# %%
# With ``wait=1`` the profiler never started, and asking it raises an error. With ``wait=0`` and ``warmup=1`` there is
# no error, and the table is empty. With neither, all ten steps are recorded as one.

# %%
# **Asking after the last cycle.** Each cycle replaces the events of the one before it. The place to read them is
# ``on_trace_ready``. ``acc_events=True`` keeps the events of all cycles for the table.

# sphinx_gallery_start_ignore
getattr(torch.profiler.profiler, "_WARNINGS_SHOWN", set()).clear()
# sphinx_gallery_end_ignore
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    for repeat, keep in ((2, False), (0, False), (2, True)):
        plan = schedule(wait=1, warmup=1, active=2, repeat=repeat)
        ten_steps(f"repeat={repeat}, acc_events={keep}", plan, acc_events=keep)

message = str(caught[0].message)
print(textwrap.fill(f"{caught[0].category.__name__}: {message}", 88))
assert "Profiler clears events at the end of each cycle" in message

# sphinx_gallery_start_ignore
assert _outcomes == [(2, 4), (3, 0), (2, 8)] and len(caught) == 1
_plan = schedule(wait=1, warmup=1, active=2, repeat=2)
assert schedule(wait=1, warmup=1, active=2)(10).name == "RECORD"
_files = []


def _save(prof):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        prof.export_chrome_trace(str(path))
        _files.append(json.loads(path.read_text())["traceEvents"])


with profile(activities=cpu, schedule=_plan, acc_events=True) as _kept:
    for _ in range(10):
        step()
        _kept.step()
_save(_kept)
_steps = [event["name"] for event in _files.pop() if "ProfilerStep" in event["name"]]
assert _steps == ["ProfilerStep#6", "ProfilerStep#7"]
_plan = schedule(wait=1, warmup=1, active=2)
with profile(activities=cpu, schedule=_plan, on_trace_ready=_save) as _kept:
    for _ in range(10):
        step()
        _kept.step()
_counts = [sum(event.get("cat") == "cpu_op" for event in file) for file in _files]
assert len(_counts) == 3 and min(_counts[:2]) > 100 and _counts[2] == 0
del repeat, keep, plan
# sphinx_gallery_end_ignore

# %%
# Two cycles record four steps, or eight calls. After the loop only the last cycle is left, with four.
#
# With ``repeat=0`` even that is gone. Step 10 would be the first active step of a third cycle, so the profiler has
# begun it. When the block ends, it hands over an empty trace. A callback that always writes to the same path has by
# then overwritten a good file with an empty one.
#
# An exported trace never holds more than one cycle, with ``acc_events=True`` either. The warning comes once in a
# process.

# %%
# **Recording the first step.** It does work that no later step repeats. ``warmup=1`` lets one step pass, and without
# it ``schedule`` warns: ``Profiler won't be using warmup, this can skew profiler results``. The exercise finds such
# work.

# %%
# Exercise
# --------
# Add ``torch.optim.Adam`` to the loop and record every step from the first on. Which operators run more often in the
# first step than in the second? Then record again with ``warmup=1``.
#
# .. solution::
#
# Each recorded step is an event ``ProfilerStep*``. Count the names inside it.


def counted(warmup):
    optimizer = torch.optim.Adam(model.parameters())
    plan = schedule(wait=0, warmup=warmup, active=3, repeat=1)
    with profile(activities=cpu, schedule=plan) as recorded:
        for _ in range(4):
            step()
            optimizer.step()
            recorded.step()
    steps = [e for e in recorded.events() if e.name == "ProfilerStep*"]
    # sphinx_gallery_start_ignore
    for _state in optimizer.state.values():
        assert _state.keys() == {"step", "exp_avg", "exp_avg_sq"}
    # sphinx_gallery_end_ignore
    return [Counter(inside(event)) for event in steps]


for warmup in (0, 1):
    counts = counted(warmup)
    print(textwrap.fill(f"warmup={warmup}: {dict(counts[0] - counts[1])}", 88))
    assert counts[1] == counts[2] and (counts[0] == counts[1]) == (warmup == 1)

    # sphinx_gallery_start_ignore
    assert (counts[0] - counts[1])["aten::zeros_like"] == 8 * (warmup == 0)
    # sphinx_gallery_end_ignore

# sphinx_gallery_start_ignore
torch.set_num_threads(threads)
# sphinx_gallery_end_ignore

# %%
# When Adam first updates the four parameters, it makes two buffers and a counter for each. With ``warmup=1`` that
# step is not recorded, and the next ones are alike.

# %%
# See also
# --------
# - Before: :ref:`sphx_glr_gallery_profiling_profiler_table.py`, the columns, and every count explained.
# - Next: :ref:`sphx_glr_gallery_profiling_benchmarking.py`, how long one piece of code takes.
# - :ref:`sphx_glr_gallery_memory_what_is_saved.py`, which tensors stay for backward, and why.
# - :ref:`sphx_glr_gallery_graphs_functions_are_nodes.py`, the nodes whose names the backward lane carries.
# - In PyTorch's reference: `torch.profiler <https://docs.pytorch.org/docs/stable/profiler.html>`__ and
#   `record_function
#   <https://docs.pytorch.org/docs/stable/generated/torch.autograd.profiler.record_function.html>`__.
