r"""
Profile a training loop: schedule, prof.step() and record_function
==================================================================

.. in-short::

   To record a few steps of a long loop, pass ``schedule=torch.profiler.schedule(wait=1, warmup=1, active=2, repeat=1)`` to
   ``profile`` and call ``prof.step()`` after each step, because that moves the schedule on. Name parts: ``with
   record_function("forward"):``. By default each cycle replaces the events of the cycle before, so read them in
   ``on_trace_ready``.

.. index::
   single: profiler; schedule
   single: profiler; memory of each part
   single: record_function
   single: on_trace_ready
   single: ProfilerAction, profile only chosen steps
"""

# %%
# A few steps instead of the whole run
# ------------------------------------
# Where does the time of a training loop go? A schedule records a few steps of it:

import warnings
from collections import Counter

import pandas as pd
import torch
import torch.nn.functional as F
from torch import nn
from torch.profiler import ProfilerActivity, profile, record_function, schedule
from torch.utils.data import DataLoader, TensorDataset

# sphinx_gallery_start_ignore
_threads = torch.get_num_threads()
# Shown below. It comes once in a process.
warnings.filterwarnings("ignore", message="Warning: Profiler clears events")
# Quoted below, and asserted there.
warnings.filterwarnings("ignore", message="Profiler won't be using warmup")
# sphinx_gallery_end_ignore
torch.set_num_threads(1)  # for steady times
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
data = TensorDataset(torch.randn(1280, 64), torch.randint(10, (1280,)))
loader = DataLoader(data, batch_size=128)  # ten batches


def train_step(inputs, labels):
    optimizer.zero_grad()
    F.cross_entropy(model(inputs), labels).backward()
    optimizer.step()


def print_calls(prof):
    for row in prof.key_averages():
        if row.key == "aten::linear":
            print(f"after step {prof.step_num - 1}: {row.count} calls of {row.key}")


cpu = [ProfilerActivity.CPU]
plan = schedule(wait=1, warmup=1, active=2, repeat=2)
with profile(activities=cpu, schedule=plan, on_trace_ready=print_calls) as prof:
    for inputs, labels in loader:
        train_step(inputs, labels)
        prof.step()  # this step has ended

# %%
# The model has two linear layers, so each recorded step has two calls.
#
# .. how-measured:: This code runs the loop again and draws what was recorded in each step.

import matplotlib.pyplot as plt


def list_names_inside(event):
    below = [name for e in event.cpu_children for name in list_names_inside(e)]
    return [event.name, *below]


def find_steps(prof):
    return [event for event in prof.events() if event.name == "ProfilerStep*"]


def record_steps(plan):
    recorded, ready_after = {}, []

    def ready(prof):
        steps = find_steps(prof)
        for number, event in enumerate(steps, prof.step_num - len(steps)):
            recorded[number] = Counter(list_names_inside(event))
        ready_after.append(prof.step_num - 1)

    with profile(activities=cpu, schedule=plan, on_trace_ready=ready) as prof:
        for inputs, labels in loader:
            train_step(inputs, labels)
            prof.step()
    return recorded, ready_after


def plot_recorded_steps(plan):
    recorded, ready_after = record_steps(plan)
    _fig, ax = plt.subplots(figsize=(7, 1.6), layout="constrained")
    layers = [recorded.get(number, Counter())["aten::linear"] for number in range(10)]
    ax.bar(range(10), layers, 0.9, color="#2563eb")
    for number in ready_after:
        ax.plot(number + 0.5, 2.4, "v", color="#c2410c", ms=9, clip_on=False)
        ax.text(number + 0.7, 2.4, "on_trace_ready", va="center")
    names = {"NONE": "off", "WARMUP": "warmup"}
    actions = [names.get(plan(number).name, "active") for number in range(10)]
    ax.set_xticks(range(10), [f"{number}\n{a}" for number, a in enumerate(actions)])
    ax.set(ylim=(0, 3.2), yticks=[0, 2], ylabel="linear calls")
    ax.set_title("Calls of aten::linear recorded in each of ten steps")


# %%
# Ten steps, of which four are recorded:

# figure: A bar for each of ten steps: how many calls of aten::linear were recorded. Steps 2, 3, 6 and 7 have two calls each,
#   the others none. Below, what the profiler does in each step: off, warmup, active, active, twice, then off. Marks after
#   steps 3 and 7 show when on_trace_ready is called.
plot_recorded_steps(plan)

# sphinx_gallery_start_ignore
_cycle = ["NONE", "WARMUP", "RECORD", "RECORD_AND_SAVE"]
assert [plan(_number).name for _number in range(10)] == _cycle * 2 + ["NONE"] * 2
recorded, ready_after = record_steps(plan)
assert list(recorded) == [2, 3, 6, 7] and ready_after == [3, 7]
assert {_names["aten::linear"] for _names in recorded.values()} == {2}
assert {_names["AddmmBackward0"] for _names in recorded.values()} == {2}
_later = schedule(wait=0, warmup=1, active=2, skip_first=3)
assert [_later(_n).name for _n in range(7)] == ["NONE"] * 3 + _cycle[1:] + ["WARMUP"]
_partial = []
with profile(activities=cpu, schedule=plan, on_trace_ready=_partial.append) as _prof:
    for _ in range(3):
        train_step(inputs, labels)
        _prof.step()
assert len(_partial) == 1  # the loop ended in an active step
_on = []
with profile(activities=cpu, schedule=plan) as _prof:
    for _ in range(6):
        _on.append(torch._C._autograd._profiler_enabled())
        _prof.step()
assert _on == [False, False, True, True, False, False]
# sphinx_gallery_end_ignore

# %%
# ``prof.step()`` says that a step has ended. One cycle of the schedule has three parts:
#
# - ``wait``: the profiler is off.
# - ``warmup``: the profiler gets ready, and these steps are not in the results. Without them, ``schedule`` warns: ``Profiler
#   won't be using warmup, this can skew profiler results``.
# - ``active``: the steps are recorded. After the last of them, the profiler calls ``on_trace_ready`` with itself. To print the
#   usual table there, call ``print(prof.key_averages().table(row_limit=5))``.
#
# After ``repeat`` cycles it stays off. With ``repeat=0``, the default, it goes on as long as the loop does. To skip the
# beginning of a run once, pass ``skip_first=100``.

# %%
# Which part of the step takes the time?
# --------------------------------------
# ``record_function`` gives a name to a piece of code. PyTorch itself names the other parts of this loop, and the whole step:
# ``ProfilerStep*``.

plan = schedule(wait=1, warmup=1, active=3, repeat=1)
options = {"profile_memory": True, "record_shapes": True}

with profile(activities=cpu, schedule=plan, **options) as prof:
    for inputs, labels in loader:
        optimizer.zero_grad()
        with record_function("forward"):
            loss = F.cross_entropy(model(inputs), labels)
        with record_function("backward"):
            loss.backward()
        optimizer.step()
        prof.step()

steps = [event for event in prof.events() if event.name == "ProfilerStep*"]
step = steps[-1]
for part in step.cpu_children:
    print(part.name)

# sphinx_gallery_start_ignore
_parts = {part.name: part for part in step.cpu_children}
assert list(_parts) == [
    "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__",
    "Optimizer.zero_grad#SGD.zero_grad",
    "forward",
    "backward",
    "Optimizer.step#SGD.step",
]
assert len(find_steps(prof)) == 3 and step.cpu_parent is None
assert Counter(list_names_inside(step.cpu_children[0]))["aten::select"] == 2 * 128
_below = [part.name for part in _parts["backward"].cpu_children]
assert _below[0] == "aten::ones_like" and len(_below) == 12
_engine = "autograd::engine::evaluate_function: "
assert all(name.startswith(_engine) for name in _below[1:])
del part
# sphinx_gallery_end_ignore

# %%
# .. how-measured:: This code draws the CPU total of each part, its time with all calls inside it.


def plot_parts_of_step(steps):
    names = ["next batch", "zero_grad", "forward", "backward", "optimizer.step"]
    times = [[part.cpu_time_total for part in step.cpu_children] for step in steps]
    spent = [min(of_part) / 1000 for of_part in zip(*times, strict=True)]
    _fig, ax = plt.subplots(figsize=(7, 2.3), layout="constrained")
    ax.bar_label(ax.barh(names, spent, color="#2563eb"), fmt="%.2f", padding=3)
    ax.invert_yaxis()
    ax.margins(x=0.1)
    ax.set(xlabel="CPU total, ms")
    ax.set_title("The time of one training step, by its parts")


# %%
# The CPU total of each part, the shortest of three steps:

# varies: Times depend on the machine and its load.

# figure: Five horizontal bars, the times of the parts of one training step: the next batch, zero_grad, forward,
#   backward and optimizer.step.
plot_parts_of_step(steps)

# sphinx_gallery_start_ignore
with profile(activities=cpu) as _prof:
    data[torch.arange(128)]
_picked = {row.key: row.count for row in _prof.key_averages()}
assert _picked["aten::index"] == 2 and "aten::select" not in _picked
# sphinx_gallery_end_ignore

# %%
# For the next batch, the loader picks 128 samples one by one with 256 calls of ``aten::select``, and stacks them.
# ``data[torch.arange(128)]`` would get them with two calls of ``aten::index``.
#
# The CPU total leaves out :ref:`the work of a GPU <sphx_glr_gallery_cuda_cuda_profiler.py>`. And the profiler adds time to each
# recorded call, so a part with many short calls looks longer than it is: measure with :ref:`a benchmark
# <sphx_glr_gallery_profiling_benchmarking.py>` before you change code.

# %%
# Bytes: what each part allocates and frees
# -----------------------------------------
# With ``profile_memory=True``, each call also has bytes: what it allocated, minus what it freed. The last recorded step:

rows = {part.name.split("#")[0]: part.cpu_memory_usage for part in step.cpu_children}
rows["the whole step"] = step.cpu_memory_usage

# sphinx_gallery_start_ignore
_gradients = sum(parameter.grad.nbytes for parameter in model.parameters())
_batch = inputs.nbytes + labels.nbytes
_kept = 128 * 256 * 4 + 128 * 10 * 4 + 4  # of ReLU, log-softmax, and the total weight
assert rows == {
    "enumerate(DataLoader)": _batch,
    "Optimizer.zero_grad": -_gradients,
    "forward": _kept,
    "backward": _gradients - _kept,
    "Optimizer.step": 0,
    "the whole step": 0,
}
assert (_batch, _gradients, _kept) == (33_792, 76_840, 136_196)
assert F.cross_entropy(model(inputs), labels).grad_fn._saved_total_weight.nbytes == 4
assert step.self_cpu_memory_usage == -_batch
_before = {
    part.name: part.cpu_memory_usage for part in find_steps(prof)[0].cpu_children
}
assert _before["Optimizer.zero_grad#SGD.zero_grad"] == 0
assert find_steps(prof)[1].cpu_memory_usage == 0 != find_steps(prof)[0].cpu_memory_usage
_hoard = []
with profile(activities=cpu, schedule=plan, profile_memory=True) as _leaky:
    for inputs, labels in loader:
        optimizer.zero_grad()
        _hoard.append(F.cross_entropy(model(inputs), labels))
        _hoard[-1].backward()
        _leaky.step()
assert [_step.cpu_memory_usage for _step in find_steps(_leaky)[1:]] == [4, 4]
# sphinx_gallery_end_ignore
pd.Series(rows, name="bytes").to_frame()

# %%
# - The next batch is 33,792 bytes. The old one is freed between the parts.
# - ``zero_grad`` frees the gradients of all parameters, 76,840 bytes, and ``backward`` allocates them again.
# - ``forward`` leaves 136,196 bytes: the results that :ref:`autograd saves <sphx_glr_gallery_memory_what_is_saved.py>`.
#   ``backward`` frees them.
# - The whole step is 0: it frees as much as it allocates. If this number is positive in each step, look for tensors that your
#   loop keeps. (The first recorded step differs: memory from before the recording is left out when it is freed.)

# %%
# Shapes: one row for each kind of input
# --------------------------------------
# With ``record_shapes=True``, ``group_by_input_shape`` keeps calls with different shapes apart. The matrix products of three
# backward passes:

for row in prof.key_averages(group_by_input_shape=True):
    if row.key == "aten::mm":
        print(row.count, row.input_shapes)

# sphinx_gallery_start_ignore
_mm = [
    (row.count, row.input_shapes)
    for row in prof.key_averages(group_by_input_shape=True)
    if row.key == "aten::mm"
]
_shapes = [[[128, 10], [10, 256]], [[10, 128], [128, 256]], [[256, 128], [128, 64]]]
assert _mm == [(3, _one) for _one in _shapes]
with profile(activities=cpu, schedule=plan) as _unshaped:
    for inputs, labels in loader:
        train_step(inputs, labels)
        _unshaped.step()
_plain = _unshaped.key_averages(group_by_input_shape=True)
_mm = [(row.count, row.input_shapes) for row in _plain if row.key == "aten::mm"]
assert _mm == [(9, [])]
del row
# sphinx_gallery_end_ignore

# %%
# The second layer needs two products: for the gradient of its input, of shape (128, 256), and for that of its weight,
# (10, 256). The first layer needs one, for its weight, because its input is data. Without ``record_shapes=True``, all nine
# calls are silently in one row.

# %%
# Your own schedule: ProfilerAction
# ---------------------------------
# A schedule is a function of the step number, which begins at 0. This one records the steps 3 and 7:

from torch.profiler import ProfilerAction


def chosen_steps(step):
    if step in (3, 7):
        return ProfilerAction.RECORD_AND_SAVE  # the last step of a recording
    return ProfilerAction.WARMUP if step in (2, 6) else ProfilerAction.NONE


with profile(activities=cpu, schedule=chosen_steps, on_trace_ready=print_calls) as prof:
    for inputs, labels in loader:
        train_step(inputs, labels)
        prof.step()

# sphinx_gallery_start_ignore
_again = record_steps(chosen_steps)
assert list(_again[0]) == _again[1] == [3, 7]
assert {_names["aten::linear"] for _names in _again[0].values()} == {2}
assert [action.name for action in ProfilerAction][:4] == _cycle
# sphinx_gallery_end_ignore

# %%
# What people get wrong
# ---------------------
# .. how-measured:: This function runs ten steps under a schedule. It prints how often on_trace_ready was called, and how
#    many calls of aten::linear the profiler has afterwards. A recorded step has two.

outcomes = []


def run_ten_steps(title, plan, mark=True, **options):
    ready = []
    options = {"schedule": plan, "on_trace_ready": ready.append, **options}
    with profile(activities=cpu, **options) as prof:
        for inputs, labels in loader:
            train_step(inputs, labels)
            if mark:
                prof.step()
    try:
        rows = prof.key_averages()
        found = sum(row.count for row in rows if row.key == "aten::linear")
    except AssertionError as error:
        found = f"AssertionError: {error}"
    outcomes.append((len(ready), found))
    print(f"{title}: on_trace_ready {len(ready)} times, aten::linear {found}")


# %%
# **Forgetting prof.step().** Then step 0 goes on, so its action is in force for the whole loop:

run_ten_steps("wait=1, warmup=1", schedule(wait=1, warmup=1, active=2), mark=False)
run_ten_steps("wait=0, warmup=1", schedule(wait=0, warmup=1, active=2), mark=False)
run_ten_steps("wait=0, warmup=0", schedule(wait=0, warmup=0, active=2), mark=False)

# sphinx_gallery_start_ignore
_error = "AssertionError: Profiler must be initialized before getting key averages"
assert outcomes == [(0, _error), (0, 0), (1, 20)]
outcomes.clear()
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    schedule(wait=0, warmup=0, active=2)
with profile(activities=cpu, schedule=schedule(wait=0, warmup=0, active=2)) as _prof:
    train_step(inputs, labels)
    train_step(inputs, labels)
assert len(find_steps(_prof)) == 1
_warning = "Profiler won't be using warmup, this can skew profiler results"
assert {str(entry.message) for entry in caught} == {_warning}
# sphinx_gallery_end_ignore

# %%
# In the first case the profiler stayed off. In the second the table is empty. In the third all ten steps are recorded as one.
#
# **Reading the results after the loop.** Two cycles record four steps, or eight calls, but only the last cycle is left:

# sphinx_gallery_start_ignore
import textwrap

getattr(torch.profiler.profiler, "_WARNINGS_SHOWN", set()).clear()
_context = warnings.catch_warnings(record=True)
caught = _context.__enter__()
warnings.simplefilter("always")
# sphinx_gallery_end_ignore
two = schedule(wait=1, warmup=1, active=2, repeat=2)
endless = schedule(wait=1, warmup=1, active=2)
run_ten_steps("repeat=2", two)
run_ten_steps("repeat=2, acc_events=True", two, acc_events=True)
run_ten_steps("repeat=0", endless)
# sphinx_gallery_start_ignore
_context.__exit__(None, None, None)
message = str(caught[0].message)
print(textwrap.fill(f"{caught[0].category.__name__}: {message}", 88))
assert "Profiler clears events at the end of each cycle" in message
assert outcomes == [(2, 4), (2, 8), (3, 0)] and len(caught) == 1
assert endless(10).name == "RECORD"
import json
import tempfile
from pathlib import Path

_files = {}


def _save(prof):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        prof.export_chrome_trace(str(path))
        _files[prof.step_num] = json.loads(path.read_text())["traceEvents"]


def _run(plan, **options):
    with profile(activities=cpu, schedule=plan, **options) as prof:
        for inputs, labels in loader:
            train_step(inputs, labels)
            prof.step()
    return prof


_run(endless, on_trace_ready=_save)
_counts = {
    number: sum(event.get("cat") == "cpu_op" for event in file)
    for number, file in _files.items()
}
assert list(_counts) == [4, 8, 10]
assert min(_counts[4], _counts[8]) > 100 and _counts[10] == 0
with tempfile.TemporaryDirectory() as _folder:
    _run(endless, on_trace_ready=torch.profiler.tensorboard_trace_handler(_folder))
    assert len(list(Path(_folder).glob("*.pt.trace.json"))) == 3
_seen = []


def _count(prof):
    _seen.append({row.key: row.count for row in prof.key_averages()}["aten::linear"])


_run(two, acc_events=True, on_trace_ready=_count)
assert _seen == [4, 8]
# sphinx_gallery_end_ignore

# %%
# With ``acc_events=True`` it keeps the events of all cycles for the table, so ``on_trace_ready`` sees the sum so far.
#
# With ``repeat=0`` and ten steps, even the last cycle is gone. Step 10 would be the first active step of a third cycle, so the
# profiler has begun it. When the block ends, it calls ``on_trace_ready`` with an empty profile. If your callback always writes
# to the same path, it replaces a good file. Put ``prof.step_num`` into the name, or pass
# ``on_trace_ready=torch.profiler.tensorboard_trace_handler("folder")``, which makes a new name for each file.

# %%
# Exercise
# --------
# Use ``torch.optim.Adam`` and record each step from the first on. Which calls does the first step have that the second does
# not? Then record again with ``warmup=1``.
#
# .. solution::
#
# Each recorded step is an event ``ProfilerStep*``. Count the names inside it.


def count_calls(warmup):
    optimizer = torch.optim.Adam(model.parameters())
    plan = schedule(wait=0, warmup=warmup, active=3, repeat=1)
    with profile(activities=cpu, schedule=plan) as prof:
        for _ in range(4):
            optimizer.zero_grad()
            F.cross_entropy(model(inputs), labels).backward()
            optimizer.step()
            prof.step()
    # sphinx_gallery_start_ignore
    for _state in optimizer.state.values():
        assert _state.keys() == {"step", "exp_avg", "exp_avg_sq"}
    # sphinx_gallery_end_ignore
    return [Counter(list_names_inside(event)) for event in find_steps(prof)]


for warmup in (0, 1):
    first, second, third = count_calls(warmup)
    print(f"warmup={warmup}:", dict(first - second))
    assert second == third and (first == second) == (warmup == 1)

    # sphinx_gallery_start_ignore
    assert (first - second)["aten::zeros_like"] == 8 * (warmup == 0)
    # sphinx_gallery_end_ignore

# sphinx_gallery_start_ignore
torch.set_num_threads(_threads)
# sphinx_gallery_end_ignore

# %%
# In its first step, Adam makes two buffers and a counter for each of the four parameters. With ``warmup=1`` that step is not
# recorded.

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_training_data_loading.py`, how a loader makes a batch.
# - :ref:`sphx_glr_gallery_memory_what_is_saved.py`, which tensors stay for backward, and why.
# - In PyTorch's reference: `torch.profiler.schedule
#   <https://docs.pytorch.org/docs/stable/profiler.html#torch.profiler.schedule>`__ and `record_function
#   <https://docs.pytorch.org/docs/stable/generated/torch.autograd.profiler.record_function.html>`__.
