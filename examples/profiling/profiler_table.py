r"""
How to read the profiler's table: Self CPU, CPU total, calls
============================================================

The profiler counts and times every operator that PyTorch runs, in the forward pass and in the backward pass, and
prints a table. Two of its columns decide what you conclude: *Self CPU* and *CPU total*. This page profiles a
ResNet-18, reads the table column by column, and explains every count in it from the model.
"""

# %%
# The model: ResNet-18 written out
# --------------------------------
# Nothing but PyTorch is needed to profile. pandas and matplotlib are here for a narrow table and a figure.

import time
import warnings
from collections import Counter

import pandas as pd
import torch
import torch.nn.functional as F
from torch import nn

# %%
# A residual block computes two things from its input and adds them: two convolutions on the main path, and a
# shortcut. The shortcut is the input itself, or one 1x1 convolution where the shape changes.


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.shortcut = nn.Sequential()
        if stride != 1:
            conv = nn.Conv2d(inputs, outputs, 1, stride, bias=False)
            self.shortcut = nn.Sequential(conv, nn.BatchNorm2d(outputs))

    def forward(self, x):
        path = self.bn2(self.conv2(torch.relu(self.bn1(self.conv1(x)))))
        return torch.relu(path + self.shortcut(x))


# %%
# Eight blocks, with one convolution before them and one linear layer after them. The number of parameters is that of
# the standard ResNet-18.


def resnet18():
    layers = [nn.Conv2d(3, 64, 7, 2, padding=3, bias=False), nn.BatchNorm2d(64)]
    layers += [nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    width = 64
    for outputs, stride in [(64, 1), (128, 2), (256, 2), (512, 2)]:
        layers += [Block(width, outputs, stride), Block(outputs, outputs, 1)]
        width = outputs
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 1000)]
    return nn.Sequential(*layers)


torch.manual_seed(0)
model = resnet18()
parameters = sum(p.numel() for p in model.parameters())
print(f"{parameters:,} parameters")
assert parameters == 11_689_512

# %%
# Profile forward and backward
# ----------------------------
# Whatever runs inside the ``with`` block is recorded. Small images keep the page quick, and one thread keeps its
# times steady. The very first step gets a profile of its own; it is looked at near the end of the page.

# sphinx_gallery_start_ignore
threads = torch.get_num_threads()
# sphinx_gallery_end_ignore
torch.set_num_threads(1)
images, labels = torch.randn(2, 3, 64, 64), torch.tensor([1, 2])


def step():
    model.zero_grad()
    F.cross_entropy(model(images), labels).backward()


with torch.autograd.profiler.profile() as first:
    step()

# %%
# Then two steps together, after one that is not recorded. ``key_averages()`` groups the recorded calls by name, and
# ``table()`` prints the groups: here the six with the largest *Self CPU*.

# varies: Times and shares depend on the machine and its load, and so does the order of the rows. The counts do not.

step()

steps = 2
with torch.autograd.profiler.profile() as prof:
    start = time.perf_counter()
    for _ in range(steps):
        step()
    wall = (time.perf_counter() - start) * 1e6

rows = prof.key_averages()
print(rows.table(sort_by="self_cpu_time_total", row_limit=6, max_name_column_width=36))

# %%
# What each column means
# ----------------------
# A row stands for *all* calls with one name, added up.
#
# - **Name**: what was called. ``aten::`` marks an operator of PyTorch's C++ library. Most of the other names belong
#   to the backward pass; they are explained below.
# - **Self CPU**: time inside the operator itself, *without* the operators that it called. In Python:
#   ``self_cpu_time_total``, in microseconds.
# - **CPU total**: the same *with* the operators that it called: ``cpu_time_total``.
# - **CPU time avg**: CPU total divided by the number of calls: ``cpu_time``.
# - **# of Calls**: ``count``.
# - **Self CPU %** and **CPU total %**: both are shares of one number, the sum of the whole *Self CPU* column. It is
#   printed below the table as *Self CPU time total*.
#
# The names in code font are also the values that ``sort_by`` takes.

# varies: Times depend on the machine and its load.

by_name = {row.key: row for row in rows}
self_sum = sum(row.self_cpu_time_total for row in rows)

conv = by_name["aten::conv2d"]
print(f"{conv.key}: {conv.count} calls, on average {conv.cpu_time:.0f} us")
for attribute in ("self_cpu_time_total", "cpu_time_total"):
    spent = getattr(conv, attribute)
    share = f"{100 * spent / self_sum:.2f}%"
    print(f"{attribute:<19} {spent:8.0f} us of {self_sum:.0f} us is {share}")
    assert share in rows.table()

# sphinx_gallery_start_ignore
assert abs(conv.cpu_time - conv.cpu_time_total / conv.count) < 1e-6
assert abs(self_sum - prof.self_cpu_time_total) < 1e-6 * self_sum
for sort_by in ("self_cpu_time_total", "cpu_time_total", "cpu_time", "count"):
    biggest = max(rows, key=lambda row: getattr(row, sort_by)).key
    text = rows.table(sort_by=sort_by, row_limit=1, max_name_column_width=100)
    assert biggest in text
others = [name for name in by_name if not name.startswith("aten::")]
of_backward = ["Backward" in name or "AccumulateGrad" in name for name in others]
assert sum(of_backward) >= len(others) - 1
# sphinx_gallery_end_ignore

# %%
# The printed table is wide. Here are the same rows as a narrow DataFrame, sorted by self share, with the prefix
# ``autograd::engine::evaluate_function:`` cut to ``engine:``.

# varies: Shares depend on the machine and its load, and so does the order of the rows. The counts do not.

ENGINE = "autograd::engine::evaluate_function: "
shares = pd.DataFrame(
    {
        "calls": [row.count for row in rows],
        "self %": [100 * row.self_cpu_time_total / self_sum for row in rows],
        "total %": [100 * row.cpu_time_total / self_sum for row in rows],
    },
    index=[row.key.replace(ENGINE, "engine: ") for row in rows],
)
shares = shares.round(1).rename_axis(columns="operator")

# sphinx_gallery_start_ignore
assert all(row.self_cpu_time_total <= row.cpu_time_total + 1e-6 for row in rows)
# sphinx_gallery_end_ignore
shares.sort_values("self %", ascending=False).head(10)

# %%
# Self against total on one call
# ------------------------------
# Operators call operators. The profiler keeps every single call in ``function_events``, with its children. Here is
# the last ``aten::conv2d`` of the run, opened down to the bottom.

# varies: Times depend on the machine. Which kernel computes the convolution depends on the processor.


def show(event, depth=0):
    name = "  " * depth + event.name.replace(ENGINE, "engine: ")
    own, total = event.self_cpu_time_total, event.cpu_time_total
    print(f"{name:<36} self {own:8.1f} us   total {total:8.1f} us")
    for child in event.cpu_children:
        show(child, depth + 1)


def last(name):
    return [event for event in prof.function_events if event.name == name][-1]


conv2d = last("aten::conv2d")
show(conv2d)

for event in prof.function_events:
    children = sum(child.cpu_time_total for child in event.cpu_children)
    assert abs(event.self_cpu_time_total - (event.cpu_time_total - children)) < 1e-3

# sphinx_gallery_start_ignore
assert [child.name for child in conv2d.cpu_children] == ["aten::convolution"]
_calls = [event for event in prof.function_events if event.name == "aten::conv2d"]
# of one call: another program may take the processor in any of them
assert min(_call.self_cpu_time_total / _call.cpu_time_total for _call in _calls) < 0.2
del event, children
# sphinx_gallery_end_ignore

# %%
# Self is total less the totals of the direct children. That holds for every recorded call, and the loop asserts it.
#
# So ``aten::conv2d`` has a large total and almost no self time: it passes its arguments on. The work is done further
# down. Sort by *self* to find where the time is spent, and by *total* to find which call of yours spent it.

# %%
# Every count has a reason
# ------------------------
# Times vary from run to run. The counts do not: they follow from the model and the number of steps.

convolutions = sum(isinstance(module, nn.Conv2d) for module in model.modules())
tensors = len(list(model.parameters()))
per_step = {
    "aten::conv2d": convolutions,
    "aten::batch_norm": convolutions,  # one after each convolution
    "aten::relu": 1 + 2 * 8,  # one before the blocks, two in each
    "aten::add": 8,  # one in each block
    "aten::linear": 1,
    "ConvolutionBackward0": convolutions,
    "AddBackward0": 8,
    "torch::autograd::AccumulateGrad": tensors,  # one for each parameter tensor
}
for name, expected in per_step.items():
    count = by_name[name].count
    print(f"{name:<31} {expected:>2} per step x {steps} steps = {count:>3} calls")
    assert count == expected * steps

# sphinx_gallery_start_ignore
assert convolutions == 20 and tensors == 62 and by_name["aten::conv2d"].count == 40
del name, expected
# sphinx_gallery_end_ignore

# %%
# Names: forward, backward, then and now
# --------------------------------------
# The forward rows carry the operators' names. The backward rows carry the names of the nodes of the computation
# graph. One residual step is enough to see both.

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
# When the engine reaches the node ``ConvolutionBackward0``, three rows record it, one inside the other: the engine
# handles the node (``autograd::engine::evaluate_function: ConvolutionBackward0``), the node runs
# (``ConvolutionBackward0``), and the node calls the operator that computes (``aten::convolution_backward``).

# varies: Times depend on the machine. What the operator calls depends on the processor.

show(last(ENGINE + "ConvolutionBackward0"))

# sphinx_gallery_start_ignore
nested = ["ConvolutionBackward0", "aten::convolution_backward"]
nested.insert(0, ENGINE + nested[0])
assert [by_name[name].count for name in nested] == [40, 40, 40]
_node = last(nested[0]).cpu_children[0]
assert [_node.name, _node.cpu_children[0].name] == nested[1:]
assert "conv2d" not in by_name
assert not any(name.startswith("MkldnnConvolutionBackward") for name in by_name)
# sphinx_gallery_end_ignore

# %%
# Tables in older notes look different. The forward row was ``conv2d``, without ``aten::``. The backward row was
# named after the library that computed it, ``MkldnnConvolutionBackward`` on a CPU or ``CudnnConvolutionBackward`` on
# a GPU. There was no ``evaluate_function`` row. Today the old names are gone, and one node serves all libraries.

# %%
# Forward against backward
# ------------------------
# Each operator of the model has an outermost row: for the convolution ``aten::conv2d`` forward, and the engine's row
# backward. These rows do not contain each other, so their totals may be compared.

pairs = {
    "convolution": ("aten::conv2d", "ConvolutionBackward0"),
    "batch norm": ("aten::batch_norm", "NativeBatchNormBackward0"),
    "relu": ("aten::relu", "ReluBackward0"),
    "max pool": ("aten::max_pool2d", "MaxPool2DWithIndicesBackward0"),
    "linear": ("aten::linear", "AddmmBackward0"),
    "addition": ("aten::add", "AddBackward0"),
}


def ms_per_step(name):
    return by_name[name].cpu_time_total / 1000 / steps


# %%
# The lengths of the bars are these totals, for one step.

# varies: The lengths of the bars are times. They depend on the machine and its load.

forward = [ms_per_step(name) for name, _ in pairs.values()]
backward = [ms_per_step(ENGINE + node) for _, node in pairs.values()]
times = pd.DataFrame({"forward": forward, "backward": backward}, index=list(pairs))

# figure: Horizontal bars, two for each operator, in milliseconds per step: forward plain and blue, backward hatched
#   and orange. As a rule convolution, which does most of the arithmetic, has the longest bars, and the longest of
#   all in backward.
colors = ["#2563eb", "#c2410c"]
ax = times.plot.barh(figsize=(7, 3.8), color=colors, edgecolor="white", width=0.8)
for bar in ax.containers[1]:
    bar.set_hatch("///")
for bars in ax.containers:
    ax.bar_label(bars, fmt="%.2f", padding=3, fontsize=8)
ax.invert_yaxis()
ax.margins(x=0.12)
ax.set_xlabel("CPU total, ms per step")
ax.set_title("ResNet-18: time by operator, forward and backward")
ax.legend()
ax.figure.tight_layout()

# sphinx_gallery_start_ignore
from torch.utils.flop_counter import FlopCounterMode

with FlopCounterMode(display=False) as _counter:
    step()
_flops = _counter.get_flop_counts()["Global"]
_forward = _flops[torch.ops.aten.convolution]
_backward = _flops[torch.ops.aten.convolution_backward]
assert 1.5 * _forward < _backward <= 2 * _forward
assert _forward + _backward > 0.99 * sum(_flops.values())
# sphinx_gallery_end_ignore

# %%
# Convolution does most of the arithmetic, so its bars are the ones to look at first. In backward there is nearly twice
# as much of it: ``aten::convolution_backward`` computes two results, the gradient of its input and the gradient of its
# weight.

# %%
# The same table from ``torch.profiler``
# --------------------------------------
# ``torch.autograd.profiler`` is the older entrance. ``torch.profiler`` is the one to use today: you name the
# ``activities`` to record, and the rest is as above. It records the same calls, to the last one.

# varies: Times and shares depend on the machine and its load. The counts do not.

# sphinx_gallery_start_ignore
# torch 2.11 warns that events of earlier cycles are cleared, even where there is one cycle only.
warnings.filterwarnings("ignore", message="Warning: Profiler clears events")
# sphinx_gallery_end_ignore
cpu = torch.profiler.ProfilerActivity.CPU
with torch.profiler.profile(activities=[cpu]) as prof_new:
    for _ in range(steps):
        step()

new = prof_new.key_averages()
print(new.table(sort_by="self_cpu_time_total", row_limit=3, max_name_column_width=36))
assert {row.key: row.count for row in new} == {row.key: row.count for row in rows}

# %%
# What people get wrong
# ---------------------
# **Adding up CPU total.** A call is part of the total of its parent, of its parent's parent, and so on. The sum
# counts it once for each of them. *Self CPU* counts every moment once. On a single thread, as here, its sum stays
# below the time on the clock.

# varies: Times depend on the machine and its load.

total_sum = sum(row.cpu_time_total for row in rows)
print(f"time on the clock   {wall / 1000:7.1f} ms")
print(f"sum of Self CPU     {self_sum / 1000:7.1f} ms")
print(f"sum of CPU total    {total_sum / 1000:7.1f} ms")
assert self_sum < wall < total_sum

# sphinx_gallery_start_ignore
assert len({event.thread for event in prof.function_events}) == 1
# sphinx_gallery_end_ignore

# %%
# **Judging by the first step.** As a rule it pays for things that later steps find ready, such as memory and kernels
# prepared for these shapes. Let a few steps pass before you record.

# varies: Times depend on the machine, its load, and what ran before in the same process.

print(f"the first step      {first.self_cpu_time_total / 1000:7.1f} ms")
print(f"a later step        {prof.self_cpu_time_total / 1000 / steps:7.1f} ms")

# %%
# **Asking for the GPU with an old argument.** ``use_cuda=True`` is still accepted by the old class, with a warning.
# The new class does not know ``use_device``, which the warning recommends: there, add ``ProfilerActivity.CUDA`` to
# ``activities``.

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    torch.autograd.profiler.profile(use_cuda=True)
print(f"{caught[0].category.__name__}: {caught[0].message}")
assert "`use_cuda` will be deprecated" in str(caught[0].message)

try:
    torch.profiler.profile(use_device="cuda")
except TypeError as error:
    print(f"TypeError: {error}")
    assert "unexpected keyword argument 'use_device'" in str(error)

# %%
# Exercise
# --------
# The table has a row ``aten::add_``, an addition in place, with 56 calls. The code above has no in-place addition.
# Where do the 56 calls come from? Each recorded call knows its ``cpu_parent``.
#
# .. solution::
#
# Group the calls by parent. 16 are made by the engine, 8 in each step: one for each block, where the gradients of the
# two paths meet in the block's input, as in the graph above. The sum over paths is this addition.

parents = Counter()
for call in prof.function_events:
    if call.name == "aten::add_":
        parents[call.cpu_parent.name if call.cpu_parent else "no parent"] += 1
for name, count in sorted(parents.items()):
    print(f"{count:>3}  {name}")

assert by_name["aten::add_"].count == 56
assert parents == {"no parent": 40, ENGINE + "ConvolutionBackward0": 16}

# %%
# The other 40 are 20 in each step. Every batch norm in training mode adds 1 to its counter ``num_batches_tracked``.
# In evaluation mode it does not, and only the 8 remain.

model.eval()
with torch.profiler.profile(activities=[cpu]) as prof_eval:
    step()
in_eval = {row.key: row.count for row in prof_eval.key_averages()}["aten::add_"]
print(f"add_ in one step: {56 // steps} in training mode, {in_eval} in evaluation mode")
assert in_eval == 8

# sphinx_gallery_start_ignore
torch.set_num_threads(threads)
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - Before: :ref:`sphx_glr_gallery_debugging_silent_mistakes.py`, programs that run and are wrong.
# - Next: :ref:`sphx_glr_gallery_profiling_profiler_traces.py`, single steps, lines and bytes instead of sums.
# - :ref:`sphx_glr_gallery_graphs_functions_are_nodes.py`, the nodes whose names the backward rows carry.
# - :ref:`sphx_glr_gallery_graphs_first_graph.py`, the sum over paths by hand.
# - :ref:`sphx_glr_gallery_debugging_anomaly_detection.py`, from a backward node to the forward line that made it.
# - In PyTorch's reference: `torch.profiler <https://docs.pytorch.org/docs/stable/profiler.html>`__ and
#   `the autograd profiler <https://docs.pytorch.org/docs/stable/autograd.html#profiler>`__.
