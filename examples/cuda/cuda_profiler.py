r"""
The profiler on a GPU: kernels, launches, and where the CPU waits
=================================================================

.. in-short::

   An operation on a GPU takes time twice: the CPU launches its kernels, and the GPU runs them. Look for slow operators in the
   CUDA columns of the profiler's table, and for waits in the CPU columns: ``aten::item`` and calls with *Synchronize* in their
   name. Let a few steps pass first, and call ``torch.cuda.synchronize()`` at the end of each step. Do not add up a CUDA column,
   because it counts each kernel more than once.
"""

# %%
# The problem: item() takes all the time
# --------------------------------------
# You profile a loop, and most of the CPU's time is in ``aten::item``, which fetches one number. It waits, because CUDA calls
# return before the work is done, and ``item()`` needs the result. Take ten products of large matrices and one ``item()``. We
# assume 10 µs for a launch, and 20 · 10¹² floating-point operations a second.
#
# .. how-measured:: a kernel starts when it has been launched and the kernel before it is done.

import matplotlib.pyplot as plt

LAUNCH, RATE, SIZE = 10e-6, 20e12, 8192

launches = [(n * LAUNCH, LAUNCH) for n in range(10)]
product = 2 * SIZE**3 / RATE
runs, free = [], 0.0
for start, length in launches:
    free = max(free, start + length)  # launched, and the GPU has done what came before
    runs.append((free, product))
    free += product
question = (10 * LAUNCH, free - 10 * LAUNCH)
assert 0.5 < free < 0.6 and len(runs) == 10


def draw(launches, runs, question, title):
    fig, ax = plt.subplots(figsize=(7, 2))
    marks = {"color": "#2563eb", "markersize": 24, "markeredgewidth": 2}
    ax.plot([start * 1e3 for start, _ in launches], [1] * len(launches), "|", **marks)
    for lane, color, spans in ((1, "#64748b", [question]), (0, "#c2410c", runs)):
        parts = [(start * 1e3, length * 1e3) for start, length in spans]
        ax.broken_barh(parts, (lane - 0.3, 0.6), facecolors=color, edgecolor="white")
    middle = (question[0] + question[1] / 2) * 1e3
    ax.text(middle, 1, "item()", color="white", ha="center", va="center")
    ax.set_yticks([0, 1], ["GPU", "CPU"])
    ax.set_xlabel("ms since the first launch")
    ax.set_title(title)
    fig.tight_layout()


# %%
# The time line:

import sys
from collections import Counter

import matplotlib.pyplot as plt
import pandas as pd
import torch
import torch.nn.functional as F
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile, schedule

# figure: A time line with two lanes, computed from the assumed rates. In the upper one, the CPU, ten marks at the
#   left edge are so close that they look like one, and a long bar, item, spans the rest. In the lower one, the GPU,
#   ten bars follow each other.
draw(launches, runs, question, "Ten launches, ten products, one question (on paper)")

# %%
# How long the CPU waits, and how many products are done when the loop of launches ends:

done = sum(start + length <= 10 * LAUNCH for start, length in runs)
print(f"item() waits for {question[1] * 1e3:.0f} of {free * 1e3:.0f} ms")
print(f"done when the loop ends: {done} of 10 products")
assert question[1] / free > 0.99 and done == 0

# %%
# Is the step bound by launches?
# ------------------------------
# A small convolutional network, for which we count the launches of one training step, without the update:


def build(images, device):
    torch.manual_seed(0)
    with torch.device(device):
        model = nn.Sequential(
            *(nn.Conv2d(3, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU()),
            *(nn.Conv2d(64, 128, 3, padding=1), nn.BatchNorm2d(128), nn.ReLU()),
            *(nn.MaxPool2d(2), nn.AdaptiveAvgPool2d(1), nn.Flatten()),
            nn.Linear(128, 10),
        )
        labels = torch.zeros(images, dtype=torch.long)
        return model, torch.randn(images, 3, 64, 64), labels


# %%
# .. how-measured:: the step runs on the meta device, where tensors have no data; one mode counts operations that fill a new
#    storage or change a tensor in place, and FlopCounterMode counts the floating-point operations of products and convolutions.

from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import FlopCounterMode


class Launches(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        def storages(tree):
            tensors = [
                one for one in tree_leaves(tree) if isinstance(one, torch.Tensor)
            ]
            return {tensor.untyped_storage()._cdata for tensor in tensors}

        result = operation(*args, **(kwargs or {}))
        name = str(operation.overloadpacket)
        new = storages(result) - storages((args, kwargs)) and "empty" not in name
        if new or operation._schema.is_mutable:
            self.names.append(name)
        return result


def count(images):
    model, batch, labels = build(images, "meta")
    with FlopCounterMode(display=False) as flops, Launches() as launches:
        loss = F.cross_entropy(model(batch), labels)
        forward = list(launches.names)
        loss.backward()
    return forward, launches.names[len(forward) :], flops.get_total_flops()


# %%
# An operation that writes values launches at least one kernel, copy or fill. Views and ``torch.empty`` write no values. With
# the same two rates:

rows = {}
for images in (1, 8, 64, 512):
    forward, backward, flops = count(images)
    rows[images] = {
        "launches, forward": len(forward),
        "backward": len(backward),
        "launching, ms": (len(forward) + len(backward)) * LAUNCH * 1e3,
        "10⁹ operations": flops / 1e9,
        "computing, ms": flops / RATE * 1e3,
    }
steps = pd.DataFrame(rows).T

# sphinx_gallery_start_ignore
assert steps["launches, forward"].nunique() == steps["backward"].nunique() == 1
assert steps["computing, ms"][1] < steps["launching, ms"][1] / 2
with Launches() as _launches, torch.device("meta"):
    torch.empty(3).view(3, 1).t()
    assert _launches.names == []
    torch.ones(3).add_(1)
    assert _launches.names == ["aten.ones", "aten.add_"]
assert steps["computing, ms"][64] > 5 * steps["launching, ms"][64]
_convolution = 2 * 64 * 64 * 9 * (3 * 64 + 64 * 128)  # of one image, forward
assert 2.9 < steps["10⁹ operations"][1] * 1e9 / _convolution < 3.01
# sphinx_gallery_end_ignore
steps.round(2).astype(dict.fromkeys(steps.columns[:2], int)).rename_axis("images")

# %%
# The number of launches is the same for each batch, while the work grows. With one image, launching takes longer than
# computing, so the GPU would be idle most of the time. With 64 images the launches are a small part. (Only products and
# convolutions are counted as work.)
#
# Backward launches more than forward. Six of its operations, the most frequent first:

print(*[f"{n} × {name}" for name, n in Counter(backward).most_common(6)], sep="\n")
assert Counter(backward)["aten.convolution_backward"] == 2
assert len(backward) > len(forward)

# %%
# What people get wrong
# ---------------------
# **Timing without synchronizing.** A clock that stops when the loop ends has measured the launches: 0.1 ms for the ten products
# above.
#
# **Adding up a CUDA column.** The time of a kernel is in the row of the kernel, in the row of the operator that launched it,
# and in *CUDA total* once more for every operator around it. For the time on the GPU read the line below the table.
#
# **Profiling the first step.** It loads kernels and chooses algorithms, so let two steps pass within the same profile.
#
# Exercise
# --------
# Which of these wait for the GPU: ``x.sum()``, ``x.sum().item()``, ``x[x > 0]``, ``torch.where(x > 0, x, -x)``,
# ``x.nonzero()``, ``if x.any():``?
#
# .. solution::
#
# Those wait whose result Python must know to go on: a number, a truth value, or how many elements there are. A mask gives a
# result of unknown size, but ``torch.where`` with three arguments gives one of a known size. Fake tensors have no values, so
# the four calls that wait raise. (``x.cpu()`` waits too, but does not raise with fake tensors.)

questions = {
    "x.sum()": lambda x: x.sum(),
    "x.sum().item()": lambda x: x.sum().item(),
    "x[x > 0]": lambda x: x[x > 0],
    "torch.where(x > 0, x, -x)": lambda x: torch.where(x > 0, x, -x),
    "x.nonzero()": lambda x: x.nonzero(),
    "if x.any():": lambda x: bool(x.any()),
}
needs = {}
with FakeTensorMode():
    x = torch.zeros(1000)
    for text, ask in questions.items():
        try:
            ask(x)
            needs[text] = ""
        except RuntimeError as error:
            needs[text] = type(error).__name__
for text, what in needs.items():
    print(f"{text:<26} {what or 'needs no value'}")
assert [bool(what) for what in needs.values()] == [0, 1, 1, 0, 1, 1]

# sphinx_gallery_start_ignore
with FakeTensorMode():
    torch.zeros(3).cpu()
# sphinx_gallery_end_ignore

# %%
# Measured on a GPU
# -----------------
# The step with 64 images. A schedule lets two steps pass, and records three. The CPU waits at the end of each step, so that all
# its kernels belong to it.
#
# .. needs-a-gpu::

if not torch.cuda.is_available():
    print("What follows is measured, and needs a CUDA device.")
    sys.exit()

# sphinx_gallery_start_ignore
import warnings

# It comes once in a process, and torch 2.11 gives it even where there is one cycle only.
warnings.filterwarnings("ignore", message="Warning: Profiler clears events")
# sphinx_gallery_end_ignore
model, images, labels = build(64, "cuda")


def step():
    model.zero_grad()
    F.cross_entropy(model(images), labels).backward()


def record(action, steps):
    both = [ProfilerActivity.CPU, ProfilerActivity.CUDA]
    plan = schedule(wait=0, warmup=2, active=steps, repeat=1)
    with profile(activities=both, schedule=plan) as prof:
        for _ in range(2 + steps):
            action()
            torch.cuda.synchronize()
            prof.step()
    return prof


# %%
# The table has four more columns than on the CPU:

# varies: Times and kernels depend on the GPU and the libraries.

prof = record(step, steps=3)
rows = prof.key_averages()
table = rows.table(
    sort_by="self_device_time_total", row_limit=8, max_name_column_width=36
)
print(table)
for column in ("Self CUDA", "Self CUDA %", "CUDA total", "CUDA time avg"):
    assert column in table

# sphinx_gallery_start_ignore
for _new in ("self_device_time_total", "device_time_total", "device_time"):
    _old = rows.table(sort_by=_new.replace("device", "cuda"), row_limit=3)
    assert _old == rows.table(sort_by=_new, row_limit=3)
with warnings.catch_warnings(record=True) as _caught:
    warnings.simplefilter("always")
    _total = prof.events()[0].cuda_time_total
assert [warning.category for warning in _caught] == [FutureWarning]
assert not hasattr(rows[0], "cuda_time_total")
# the mark on the GPU: from the first kernel that this thread launched to the last, which is long before backward is done
_on_gpu = [event for event in prof.events() if event.device_type == DeviceType.CUDA]
_marks = [event for event in _on_gpu if event.is_user_annotation]
_kernels = [event for event in _on_gpu if not event.is_user_annotation]
assert len(_marks) == 3
_last = max(event.time_range.end for event in _kernels)
_marked = max(event.time_range.end for event in _marks)
_within = sum(
    _mark.time_range.start <= _kernel.time_range.start < _mark.time_range.end
    for _mark in _marks
    for _kernel in _kernels
)
assert _marked < _last and 0.2 < _within / len(_kernels) < 0.6
# sphinx_gallery_end_ignore

# %%
# The CPU columns mean the same as :ref:`without a GPU <sphx_glr_gallery_profiling_profiler_table.py>`. The new ones, with their
# names in Python:
#
# - **Self CUDA**: the time that the GPU spent on what the row itself launched: ``self_device_time_total``.
# - **CUDA total**: the same with the operators that it called: ``device_time_total``.
# - **CUDA time avg**: CUDA total for one call: ``device_time``.
# - **Self CUDA %**: the share of the number printed as *Self CUDA time total*.
#
# A row ``ProfilerStep*`` is the profiler's mark for a step. On the GPU it spans what the loop's thread launched, gaps
# included: forward, and hardly any of backward, which runs in a separate thread.
#
# *Self CPU time total* includes waits and the cost of the profiler. So it does not tell whether launches bound the step.
#
# Besides these marks there are three kinds of rows. A *kernel* runs on the GPU, an *operator* of PyTorch runs on the CPU and
# launches kernels, and a *CUDA call* is how it talks to the GPU.


def kind(event):
    if event.is_user_annotation:
        return "mark"
    if event.device_type == DeviceType.CUDA:
        return "kernel, copy or fill"
    name = event.name
    if name.startswith("aten::") or "Backward" in name or "autograd::" in name:
        return "operator"
    return "CUDA call" if name.startswith("cu") else "mark"


# varies: Times and kernels depend on the GPU and the libraries.

events = prof.events()
sums = {
    "operator": Counter(),
    "CUDA call": Counter(),
    "kernel, copy or fill": Counter(),
}
for event in events:
    if (row := kind(event)) != "mark":
        sums[row]["count"] += 1
        sums[row]["self CPU, ms"] += event.self_cpu_time_total / 1e3
        sums[row]["self CUDA, ms"] += event.self_device_time_total / 1e3
kinds = pd.DataFrame(sums).T
# sphinx_gallery_start_ignore
_cuda = kinds["self CUDA, ms"]
assert kinds["self CPU, ms"]["kernel, copy or fill"] == 0 < _cuda["operator"]
assert 0.9 < _cuda["operator"] / _cuda["kernel, copy or fill"] < 1.1
assert (kinds["count"] > 3).all()
# sphinx_gallery_end_ignore
kinds.round(2).astype({"count": int}).rename_axis(columns="all three steps")

# %%
# The GPU's time is in the table **twice**: in the rows of the kernels, and in those of the operators that launched them.
#
# One operator may launch several kernels, so there are more than on paper:

# varies: The number of kernels depends on the libraries.

kernels = [event for event in events if kind(event) == "kernel, copy or fill"]
each, on_paper = len(kernels) // 3, len(forward + backward)
print(f"{each} kernels, copies and fills a step; on paper at least {on_paper}")
assert each >= on_paper

# %%
# Each operator knows its kernels. For example, the last convolution of a backward pass:

# varies: Which kernels compute a convolution depends on the GPU and on cuDNN.

convolution = [e for e in events if e.name == "aten::convolution_backward"][-1]


def show(event, depth=0):
    print(f"{'  ' * depth}{event.name[: 84 - 2 * depth]}")
    for kernel in event.kernels:
        print(f"{'  ' * depth}  > {kernel.name[: 70 - 2 * depth]}")
    for child in event.cpu_children:
        if kind(child) == "operator":
            show(child, depth + 1)


show(convolution)
assert convolution.device_time_total > 0

# %%
# The outermost operators of the forward pass, and the engine's rows of the backward pass, do not contain each other. So you can
# add up their *CUDA total*.

ENGINE = "autograd::engine::evaluate_function: "


def outermost(event):
    return event.cpu_parent is None or event.cpu_parent.name.startswith("ProfilerStep")


# varies: The share depends on what the libraries launch on their own.

forward, backward = Counter(), Counter()
for event in events:
    milliseconds = event.device_time_total / 3e3  # for one step of three
    if event.name.startswith(ENGINE):
        backward[event.name.removeprefix(ENGINE)] += milliseconds
    elif event.name.startswith("aten::") and outermost(event):
        forward[event.name] += milliseconds

in_kernels = sum(event.device_time_total for event in kernels) / 3e3
in_operators = forward.total() + backward.total()
print(f"in these operators: {in_operators / in_kernels:.0%} of the time of all kernels")
assert 0.9 < in_operators / in_kernels < 1.1

# %%
# The longest of both. What moves memory, such as batch norm, counts in this figure, but on paper it did not.

# varies: The lengths are times. They depend on the GPU, and so may their order.

# figure: Horizontal bars, the time on the GPU of one step by operator: above, plain and blue, up to six operators of
#   the forward pass, the longest first; below, hatched and orange, up to six nodes of the backward pass.
bars = forward.most_common(6) + backward.most_common(6)
split = min(6, len(forward))
fig, ax = plt.subplots(figsize=(7, 4))
place = range(len(bars))
lengths = [length for _, length in bars]
ax.barh(place[:split], lengths[:split], color="#2563eb", label="forward")
style = {"color": "#c2410c", "hatch": "///", "edgecolor": "white", "label": "backward"}
ax.barh(place[split:], lengths[split:], **style)
ax.set_yticks(place, [name.removeprefix("torch::autograd::") for name, _ in bars])
ax.invert_yaxis()
ax.set_xlabel("CUDA total, ms per step")
ax.set_title("One step on the GPU, by operator")
ax.legend(loc="lower right")
fig.tight_layout()

# sphinx_gallery_start_ignore
assert "aten::conv2d" in forward and "ConvolutionBackward0" in backward
# sphinx_gallery_end_ignore

# %%
# Ten products of large matrices, and then ``item()``. The profiler notes when each event begins and ends, on one time axis for
# both sides.

a = torch.randn(SIZE, SIZE, device="cuda")


def products():
    for _ in range(10):
        b = a @ a
    return b[0, 0].item()


line = record(products, steps=1).events()
launches = [event.time_range for event in line if event.name == "aten::mm"]
question = next(event.time_range for event in line if event.name == "aten::item")
runs = [event for event in line if kind(event) == "kernel, copy or fill"]
runs = sorted(runs, key=lambda event: event.time_range.elapsed_us())[-10:]
runs = sorted((event.time_range for event in runs), key=lambda run: run.start)
first, last = runs[0], runs[-1]

ahead = launches[-1].end < first.end
# the clocks of the two sides may differ by a tenth of a product
waited = question.end > last.end - last.elapsed_us() / 10
print("all launched before the first product was done: ", ahead)
print("item() returned only when the last one was done:", waited)
assert len(launches) == len(runs) == 10 and ahead and waited

# %%
# When the call for the tenth product returned, the first product was not done.

# varies: The lengths are times. They depend on the GPU.

# figure: A measured time line with two lanes. In the upper one, the CPU, ten marks at the left edge are close
#   together, and a long bar, item, spans most of the width. In the lower one, the GPU, ten bars follow each other.
zero = launches[0].start


def span(event):
    return (event.start - zero) / 1e6, event.elapsed_us() / 1e6


draw(
    [span(one) for one in launches],
    [span(one) for one in runs],
    span(question),
    "Ten launches, ten products, one question (measured)",
)

# sphinx_gallery_start_ignore
assert question.elapsed_us() > 5 * (launches[-1].end - launches[0].start)
# sphinx_gallery_end_ignore

# %%
# Such a wait looks like work: ``aten::item`` has most of *CPU total*. The events inside it say what it did. A CUDA call with
# *Synchronize* in its name is a wait.

# varies: Times depend on the GPU, and how a value is copied depends on the version.


def tree(event, depth=0):
    name = "  " * depth + event.name
    print(f"{name:<34} CPU total {event.cpu_time_total / 1e3:9.3f} ms")
    for child in event.cpu_children:
        tree(child, depth + 1)


tree(next(event for event in line if event.name == "aten::item"))
waits = [event.time_range for event in line if "Synchronize" in event.name]
assert any(question.start <= wait.start < question.end for wait in waits)
share = question.elapsed_us() / (question.end - zero)
print(f"of the CPU's time until then: {share:.0%}")
assert share > 0.5

# %%
# The sum of a column, compared with the time of the kernels:

# varies: How often a kernel is counted depends on how operators are nested.

real = sum(event.device_time_total for event in kernels)
for column in ("self_device_time_total", "device_time_total"):
    total = sum(getattr(row, column) for row in rows if not row.is_user_annotation)
    print(f"sum of {column:<23} {total / real:.1f} times the time of the kernels")
    assert total > 1.8 * real

# %%
# The exercise, on the GPU: in the mode ``set_sync_debug_mode("error")`` most waits raise. (``torch.cuda.synchronize()`` does
# not.)

# sphinx_gallery_start_ignore
warnings.filterwarnings("ignore", message="Synchronization debug mode is a prototype")
# sphinx_gallery_end_ignore
x = torch.randn(1000, device="cuda")
waits = {}
torch.cuda.set_sync_debug_mode("error")
for text, ask in questions.items():
    try:
        ask(x)
        waits[text] = ""
    except RuntimeError as error:
        waits[text] = str(error)
torch.cuda.set_sync_debug_mode("default")
for text, message in waits.items():
    print(f"{text:<26} {message or 'does not wait'}")
assert [bool(message) for message in waits.values()] == [0, 1, 1, 0, 1, 1]
assert "called a synchronizing CUDA operation" in waits["x.nonzero()"]

# sphinx_gallery_start_ignore
torch.cuda.set_sync_debug_mode("error")
torch.cuda.synchronize()  # raises nothing
torch.cuda.set_sync_debug_mode("default")
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_cuda_devices.py`, events and ``synchronize``.
# - :ref:`sphx_glr_gallery_profiling_profiler_table.py`, the CPU columns.
# - :ref:`sphx_glr_gallery_profiling_profiler_schedule.py`, chosen steps, and labels.
# - :ref:`sphx_glr_gallery_profiling_profiler_traces.py`, stacks and trace files.
# - In PyTorch's reference: `torch.profiler <https://docs.pytorch.org/docs/stable/profiler.html>`__ and `CUDA semantics
#   <https://docs.pytorch.org/docs/stable/notes/cuda.html#asynchronous-execution>`__.
