r"""
PyTorch profiler traces: export_chrome_trace, timeline, stacks
==============================================================

.. in-short::

   After a ``with torch.profiler.profile() as prof:``, ``prof.export_chrome_trace("trace.json")`` writes each recorded call
   with its start and its duration. Open the file in `Perfetto <https://ui.perfetto.dev>`__. Export once: after the block has
   ended, or in ``on_trace_ready``. With ``with_stack=True`` it has the Python calls too.

.. index::
   single: profiler; trace in Perfetto
   single: profiler; call stacks
   single: profiler; peak of memory
   single: export_chrome_trace
   single: chrome://tracing
   single: with_stack
"""

# %%
# When did each operator run?
# ---------------------------
# A table adds up all calls of an operator. A trace has each call with its time, so it shows gaps, the peak of memory, and which
# operator of the forward pass made which node of the graph that backward runs. Write one for a training step:

# varies: How many events there are depends on the processor.

import json
import tempfile
from itertools import accumulate
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn
from torch.profiler import ProfilerActivity, profile

# sphinx_gallery_start_ignore
_threads = torch.get_num_threads()
# sphinx_gallery_end_ignore
torch.set_num_threads(1)  # for steady times
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 10))
x, labels = torch.randn(128, 64), torch.randint(10, (128,))
folder = tempfile.TemporaryDirectory()
path = f"{folder.name}/trace.json"
cpu = [ProfilerActivity.CPU]


def step():
    loss = F.cross_entropy(model(x), labels)
    loss.backward()


def load_events(path):
    return json.loads(Path(path).read_text())["traceEvents"]


for _ in range(5):
    step()
model.zero_grad()
with profile(activities=cpu, profile_memory=True) as prof:
    step()
prof.export_chrome_trace(path)
print(len(load_events(path)), "events")

# %%
# Open the file in Perfetto or at ``chrome://tracing``. You see all calls, and can zoom and search.
#
# .. how-measured:: This code reads the file, finds its links and draws a part of it.

import matplotlib.pyplot as plt


def select_kind(events, kind):
    return [event for event in events if event.get("cat") == kind]


def find_links(events):
    ops = {event["ts"]: event for event in select_kind(events, "cpu_op")}
    ends = {"s": {}, "f": {}}  # start and finish
    for event in select_kind(events, "fwdbwd"):
        ends[event["ph"]][event["id"]] = ops[event["ts"]]
    return [(operator, ends["f"][number]) for number, operator in ends["s"].items()]


def plot_forward_and_backward(events):
    links, ops = find_links(events), select_kind(events, "cpu_op")
    start = min(op["ts"] for op in ops)
    end = max(op["ts"] + op["dur"] for op in ops)
    styles = (
        (1, 0.17, "bottom", "left", {"color": "#2563eb"}),
        (0, -0.17, "top", "right", {"color": "#c2410c", "hatch": "////"}),
    )
    _, ax = plt.subplots(figsize=(7, 2.8))
    for side, (y, gap, va, ha, style) in enumerate(styles):
        place = -1000
        for event in sorted((link[side] for link in links), key=lambda e: e["ts"]):
            x0, name = event["ts"] - start, event["name"].removeprefix("aten::")
            ax.barh(y, event["dur"], 0.24, x0, edgecolor="white", **style)
            if name not in ("t", "TBackward0"):
                place = max(x0 + event["dur"] / 2, place + 0.06 * (end - start))
                text = {"rotation": 25, "rotation_mode": "anchor", "fontsize": 8}
                ax.text(place, y + gap, name, va=va, ha=ha, **text)
    for operator, node in links:
        x0, x1 = operator["ts"] - start, node["ts"] - start
        ax.plot([x0, x1], [0.87, 0.13], color="#94a3b8", lw=1)
    ax.set(yticks=[1, 0], yticklabels=["forward", "backward"], ylim=(-1.9, 2.3))
    ax.set(xlabel="microseconds", xlim=(0, 1.03 * (end - start)))
    ax.set_title("Forward operators and the backward nodes that they made")
    ax.figure.tight_layout()


# %%
# A part of the trace as a picture:

# varies: Where the bars are, and how long, depends on the machine and its load. The links do not.

# figure: Seven operators of the forward pass on a lane to the left, and seven nodes of the backward pass, hatched, on a lower
#   lane to the right. Gray lines link each operator to its node. They all cross, because the last operator is the first to
#   have its turn in backward.
plot_forward_and_backward(load_events(path))

# sphinx_gallery_start_ignore
events = load_events(path)
_starts = [
    [event["ts"] for event in side] for side in zip(*find_links(events), strict=True)
]
assert max(_starts[0]) < min(_starts[1])
assert [len(side) for side in _starts] == [7, 7]
_starts = [node for _, node in sorted(zip(*_starts, strict=True))]
assert _starts == sorted(_starts, reverse=True)
# sphinx_gallery_end_ignore

# %%
# Each gray line goes from an operator to the node that it made; the node runs in backward. The bars without a name are
# ``aten::t`` and ``TBackward0``. (A path that ends in ``.gz`` makes a compressed file.)

# %%
# What is in the file
# -------------------
# The file is JSON. ``traceEvents`` is the list of events. Most of them have their kind in ``cat``:

# varies: How many operators there are depends on the processor: a product may call others to do its work.

events = load_events(path)

for kind in ("cpu_op", "fwdbwd", "cpu_instant_event"):
    print(len(select_kind(events, kind)), kind)

# sphinx_gallery_start_ignore
_ops = select_kind(events, "cpu_op")
assert len(_ops) == sum(event.name != "[memory]" for event in prof.events())
assert all({"ts", "dur"} <= event.keys() for event in _ops)
assert 0 < sum("cat" not in event for event in events) < 0.5 * len(events)
_spent = sum(event["dur"] for event in _ops if event["name"] == "aten::addmm")
_rows = {row.key: row.cpu_time_total for row in prof.key_averages()}
assert abs(_spent - _rows["aten::addmm"]) < 0.1
assert (
    len(select_kind(events, "fwdbwd")) == 14
    and len(select_kind(events, "cpu_instant_event")) == 26
)
import gzip

from torch.profiler import record_function, schedule

with profile(activities=cpu, schedule=schedule(wait=1, warmup=1, active=1)) as _plan:
    for _ in range(3):
        with record_function("label"):
            step()
        _plan.step()
_plan.export_chrome_trace(path + ".gz")
with gzip.open(path + ".gz") as _file:
    _labels = select_kind(json.load(_file)["traceEvents"], "user_annotation")
assert [event["name"] for event in _labels] == ["ProfilerStep#2", "label"]
model.zero_grad()
# sphinx_gallery_end_ignore

# %%
# - ``cpu_op``: the operators and the nodes, with a start ``ts`` and a duration ``dur`` in microseconds.
# - ``fwdbwd``: the two ends of each link from forward to backward.
# - ``cpu_instant_event``: allocations and releases of memory, recorded with ``profile_memory=True``.
#
# With labels or a schedule there is ``user_annotation`` too: a label of :ref:`record_function
# <sphx_glr_gallery_profiling_profiler_schedule.py>`, or a step such as ``ProfilerStep#2``.

# %%
# Which line and which layer ran an operator?
# -------------------------------------------
# With ``with_stack=True`` the file has the Python calls too, and so the layers:

with profile(activities=cpu, with_stack=True) as stacked:
    step()
stacked.export_chrome_trace(path)
stack_events = load_events(path)
python = select_kind(stack_events, "python_function")

print("modules in the file:")
for call in python:
    if call["name"].startswith("nn.Module"):
        print("   ", call["name"])

# sphinx_gallery_start_ignore
_modules = [event["name"] for event in python if "nn.Module" in event["name"]]
_names = ["Sequential_0", "Linear_0", "ReLU_0", "Linear_1"]
assert _modules == [f"nn.Module: {name}" for name in _names]
_here = f"({step.__code__.co_firstlineno}): step"
assert sum(event["name"].endswith(_here) for event in python) == 1


class _Reversed(nn.Module):
    def __init__(self):
        super().__init__()
        self.last, self.first = nn.Linear(3, 4), nn.Linear(3, 3)

    def forward(self, x):
        return self.last(self.first(self.first(x)))


with profile(activities=cpu, with_stack=True) as _modules:
    _Reversed()(torch.ones(2, 3))
_modules.export_chrome_trace(path + "r.json")
_calls = [
    event["name"]
    for event in select_kind(load_events(path + "r.json"), "python_function")
]
assert [name[-8:] for name in _calls if "Linear_" in name] == [
    "Linear_0",
    "Linear_0",
    "Linear_1",
]
# sphinx_gallery_end_ignore

# %%
# ``Linear_0`` is the linear layer that ran first, ``Linear_1`` the next. In the viewer, the Python calls are the bars above an
# operator. In code, if there is one thread, take the calls whose time contains it:


def find_around(events, event):
    """The events of a list that contain an event, the outermost first."""
    end = event["ts"] + event["dur"]
    found = [e for e in events if e["ts"] <= event["ts"] and end <= e["ts"] + e["dur"]]
    return sorted(found, key=lambda e: (e["ts"], -e["dur"]))


for op in select_kind(stack_events, "cpu_op"):
    if op["name"] in ("aten::addmm", "aten::mm"):
        names = [Path(call["name"]).name for call in find_around(python, op)]
        names = [n for n in names if n.startswith("nn.") or n.endswith(": step")]
        print(" > ".join([*names, op["name"]]))

# sphinx_gallery_start_ignore
_products = [
    op
    for op in select_kind(stack_events, "cpu_op")
    if op["name"] in ("aten::addmm", "aten::mm")
]
_layers = [
    [call["name"][-8:] for call in find_around(python, op) if "Linear_" in call["name"]]
    for op in _products
]
assert [op["name"][6:] for op in _products] == ["addmm"] * 2 + ["mm"] * 3
assert _layers == [["Linear_0"], ["Linear_1"], [], [], []]
for _op in _products:
    _calls = [call["name"] for call in find_around(python, _op)]
    assert any(name.endswith(_here) for name in _calls)
    _backward = [name for name in _calls if "_engine_run_backward" in name]
    assert len(_backward) == (_op["name"] == "aten::mm")
del op, names
# sphinx_gallery_end_ignore

# %%
# The number in parentheses is the line where the function ``step`` begins. The three products ``aten::mm`` ran inside
# ``loss.backward()``, so no layer is around them. With a private option, each has a stack: that of the forward operator that
# made its node. (The exercise does without the option.)

verbose = torch._C._profiler._ExperimentalConfig(verbose=True)
options = {"with_stack": True, "experimental_config": verbose}
with profile(activities=cpu, **options) as detailed:
    step()

for event in detailed.events():
    if event.name == "aten::mm":
        print(event.name, [call for call in event.stack if "Linear" in call])

# sphinx_gallery_start_ignore
_stacks = [event.stack for event in detailed.events() if event.name == "aten::mm"]
_layers = [[call[-8:] for call in stack if "Linear" in call] for stack in _stacks]
assert _layers == [["Linear_1"], ["Linear_1"], ["Linear_0"]]
_made = [event.stack for event in detailed.events() if event.name == "aten::addmm"]
assert _stacks == [_made[1], _made[1], _made[0]]
del event
# sphinx_gallery_end_ignore

# %%
# The link from forward to backward
# ---------------------------------
# These are the gray lines of the figure:

for operator, node in find_links(events):
    number = operator["args"]["Sequence number"]
    print(operator["name"], "->", node["name"])
    assert number == node["args"]["Sequence number"]

# sphinx_gallery_start_ignore
_expected = ["TBackward0", "AddmmBackward0", "ReluBackward0"]
_expected += ["TBackward0", "AddmmBackward0", "LogSoftmaxBackward0", "NllLossBackward0"]
assert [node["name"] for _, node in find_links(events)] == _expected
_linked = [operator["name"] for operator, _ in find_links(events)]
assert "aten::linear" not in _linked and not any("Accumulate" in n for n in _expected)
_linear = [event for event in events if event["name"] == "aten::linear"]
_shared = [operator["args"]["Sequence number"] for operator, _ in find_links(events)]
assert [event["args"]["Sequence number"] for event in _linear] == [
    _shared[0],
    _shared[3],
]
_accumulate = [
    event for event in select_kind(events, "cpu_op") if "Accumul" in event["name"]
]
assert _accumulate and all("Sequence number" not in e["args"] for e in _accumulate)
del operator, node, number
# sphinx_gallery_end_ignore

# %%
# Both ends have the same *sequence number*, because autograd counts the nodes that it makes, and the profiler notes the count.
# ``AccumulateGrad`` belongs to a parameter and has no number, so it has no link. ``aten::linear`` has no link either, because
# the nodes are made by ``aten::t`` and ``aten::addmm``, which it calls.

# %%
# The peak of memory
# ------------------
# In the trace, each allocation and each release is an event, so add them up in the order of time, for one device.
#
# .. how-measured:: This code draws the sum of the bytes over time, and marks its highest point.


def plot_memory(memory, level):
    start, top = memory[0]["ts"], level.index(max(level))
    times = [event["ts"] - start for event in memory]
    _, ax = plt.subplots(figsize=(7, 2.4), layout="constrained")
    ax.step(times, [size / 1000 for size in level], color="#2563eb", where="post")
    ax.plot(times[top], level[top] / 1000, "o", color="#c2410c")
    ax.text(times[top], level[top] / 1000, "peak  ", ha="right", va="center")
    ax.set(xlabel="microseconds", ylabel="kB", ylim=(0, 1.2 * level[top] / 1000))
    ax.set_title("Memory allocated since the profile began")


# %%
# Which operator runs at the peak?

# varies: When it happens depends on the machine and its load. The bytes do not.

memory = select_kind(events, "cpu_instant_event")
memory = [e for e in memory if e["args"]["Device Type"] == 0]  # CPU; CUDA is 1
memory.sort(key=lambda event: event["ts"])
level = list(accumulate(event["args"]["Bytes"] for event in memory))
peak = level.index(max(level))
moment = {"ts": memory[peak]["ts"], "dur": 0}

print("peak:", max(level), "bytes, at the end:", level[-1])
print("running:", find_around(select_kind(events, "cpu_op"), moment)[-1]["name"])

# figure: A curve in steps, the memory over the time of one training step. It is 136 kB after the forward pass, has its
#   peak of 404 kB in ReluBackward0, and ends at 77 kB.
plot_memory(memory, level)

# sphinx_gallery_start_ignore
assert all(event["name"] == "[memory]" for event in memory) and len(memory) == 26
assert max(level) == 403_504 and level[-1] == 76_840
assert level[-1] == sum(parameter.grad.nbytes for parameter in model.parameters())
assert [op["name"] for op in find_around(select_kind(events, "cpu_op"), moment)][
    -2:
] == [
    "ReluBackward0",
    "aten::threshold_backward",
]
_alive = {}
for _event in memory[: peak + 1]:
    _address, _size = _event["args"]["Addr"], _event["args"]["Bytes"]
    if _size > 0:
        _alive[_address] = _size
    else:
        del _alive[_address]
# The rest: gradients of the second layer's weight and bias, the loss, and the gradient of the loss.
_sizes = [128 * 256 * 4] * 3 + [10 * 256 * 4, 10 * 4, 4, 4]
assert sorted(_alive.values(), reverse=True) == _sizes and sum(_sizes[:3]) == 393_216
assert [event["ts"] for event in memory] == sorted(event["ts"] for event in memory)
_first_node = min(node["ts"] for _, node in find_links(events))
_before = [size for size, e in zip(level, memory, strict=True) if e["ts"] < _first_node]
assert 136_200 <= _before[-1] <= 136_210
# sphinx_gallery_end_ignore

# %%
# The model and the input were there before, so they are left out. At the peak, 393,216 bytes are three tensors of the shape of
# the hidden layer: the saved result of ReLU, the gradient that came in, and the gradient that is being computed. At the end
# only the gradients of the parameters are left.

# %%
# What people get wrong
# ---------------------
# **Exporting inside the block, or twice.** Without a schedule, the trace is ready when the block has ended. Save it once:

try:
    with profile(activities=cpu) as early:
        step()
        early.export_chrome_trace(path)
except AttributeError as error:
    message = str(error)
    print(f"AttributeError: {message}")

try:
    prof.export_chrome_trace(path)
except RuntimeError as error:
    second = str(error)
    print(f"RuntimeError: {second}")

# sphinx_gallery_start_ignore
assert message == "'NoneType' object has no attribute 'save'"
assert second == "Trace is already saved."
# sphinx_gallery_end_ignore

# %%
# **Looking for stacks in event.stack.** With ``with_stack=True`` alone the lists of this model stay empty, and
# ``export_stacks`` writes an empty file (`pytorch#100253 <https://github.com/pytorch/pytorch/issues/100253>`__):

print("calls with a stack:", sum(len(event.stack) > 0 for event in stacked.events()))

# sphinx_gallery_start_ignore
assert not any(event.stack for event in stacked.events())
stacked.export_stacks(path + ".txt", "self_cpu_time_total")
assert Path(path + ".txt").stat().st_size == 0
# sphinx_gallery_end_ignore

# %%
# For ``event.stack``, pass ``experimental_config`` as above.

# %%
# Exercise
# --------
# Which layer does each ``aten::mm`` of backward belong to? Use only what the trace of ``with_stack=True`` has: the links, and
# the modules around an operator.
#
# .. solution::
#
# The product runs inside a node. The link leads from the node to its forward operator, and around that is the module.

ops = select_kind(stack_events, "cpu_op")
modules = [call for call in python if call["name"].startswith("nn.Module")]
forward_of = {node["ts"]: operator for operator, node in find_links(stack_events)}

layers = []
for op in ops:
    if op["name"] == "aten::mm":
        node = next(o for o in find_around(ops, op) if o["ts"] in forward_of)
        operator = forward_of[node["ts"]]
        layers.append(find_around(modules, operator)[-1]["name"])
        print(op["name"], "<-", node["name"], "<-", operator["name"], "<-", layers[-1])

# sphinx_gallery_start_ignore
torch.set_num_threads(_threads)
folder.cleanup()
del op, node, operator
# sphinx_gallery_end_ignore
assert [layer[-8:] for layer in layers] == ["Linear_1", "Linear_1", "Linear_0"]

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_memory_what_is_saved.py`, which tensors stay for backward, and why.
# - :ref:`sphx_glr_gallery_graphs_functions_are_nodes.py`, the nodes whose names the backward lane has.
# - In PyTorch's reference: `torch.profiler.profile
#   <https://docs.pytorch.org/docs/stable/profiler.html#torch.profiler.profile>`__.
