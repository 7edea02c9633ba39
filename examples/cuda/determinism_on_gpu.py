r"""
Same seed, different sums: determinism on a GPU
===============================================

.. in-short::

   A seed fixes random numbers, but the order in which the threads of a GPU add to one number is left to chance. Additions are
   rounded, so the last digits may change from run to run. ``torch.use_deterministic_algorithms(True)`` takes algorithms with a
   fixed order, or raises where PyTorch has none. Other versions and other GPUs may still differ: compare with a tolerance.
"""

# %%
# The problem: one seed, two trainings
# ------------------------------------
# You set the seed, train twice on one GPU, and get two models. Every random number was the same, but the order of additions was
# different. For example, ``index_add`` adds each of 20,000 values to one of ten sums. On a GPU many threads do so at once, with
# *atomic* additions: no value is lost, but the order is left to chance. A shuffled order on the CPU shows what that does:

import contextlib
import os
import sys
import textwrap
import warnings

import matplotlib.pyplot as plt
import pandas as pd
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
values, index = torch.randn(20_000), torch.randint(10, (20_000,))
zeros = torch.zeros(10)


def shuffled_sums(values):
    order = torch.randperm(len(values))
    return zeros.index_add(0, index[order], values[order])


runs = torch.stack([shuffled_sums(values) for _ in range(200)])
results = runs[:, 0].unique()

# %%
# The first of the ten sums, computed from the same numbers in 200 orders:

# figure: A histogram of 200 sums of the same numbers in shuffled orders. They spread around the middle like a bell.
fig, ax = plt.subplots(figsize=(7, 2.6))
exact = values[index == 0].double().sum()
ax.hist((runs[:, 0] - exact) * 1e6, bins=30, color="#2563eb")
ax.set_xlabel("difference from the sum in float64, millionths")
ax.set_ylabel("orders")
ax.set_title("The same numbers, added in 200 orders")
fig.tight_layout()

# %%
# In numbers:

print(f"{len(results)} different results, from {results[0]:.6f} to {results[-1]:.6f}")
assert len(results) > 10 and results[-1] - results[0] < 1e-3

# sphinx_gallery_start_ignore
_again = {tuple(zeros.index_add(0, index, values).tolist()) for _ in range(20)}
assert len(_again) == 1  # one order, one result
# sphinx_gallery_end_ignore

# %%
# Most additions of floats are rounded, so the order can change the result:

print((0.1 + 0.2) + 0.3, 0.1 + (0.2 + 0.3))
assert (0.1 + 0.2) + 0.3 != 0.1 + (0.2 + 0.3)

# %%
# So compare two runs with a tolerance, sometimes a larger one than the default:

equal = all(torch.equal(runs[0], run) for run in runs)
close = all(torch.allclose(runs[0], run, atol=1e-3) for run in runs)
print(f"equal: {equal}   allclose: {close}")
assert close and not equal

# %%
# Which switch does what
# ----------------------
# - ``torch.use_deterministic_algorithms(True)`` asks all of PyTorch for a fixed order. It holds for the whole process, so
#   ``deterministic`` below turns it off at the end of the ``with``.
# - ``cudnn.deterministic`` is only for cuDNN, which computes convolutions among other things.
# - ``cudnn.benchmark`` is about speed: for each new shape the first call tries several algorithms and keeps the fastest. A
#   clock decides, so the next run may keep a different one.
#
# The last two are off by default:

cudnn = torch.backends.cudnn
print(f"deterministic={cudnn.deterministic}, benchmark={cudnn.benchmark}")
assert not cudnn.deterministic and not cudnn.benchmark


@contextlib.contextmanager
def deterministic(warn_only=False):
    torch.use_deterministic_algorithms(True, warn_only=warn_only)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(False)


# %%
# With the first switch on, ``torch.empty`` fills floats with NaN. So you see where a program reads memory that nobody has
# written. ``torch.utils.deterministic.fill_uninitialized_memory = False`` stops that.

with deterministic():
    filled = torch.empty(3)
print("torch.empty(3):", filled.tolist())
assert filled.isnan().all()

# sphinx_gallery_start_ignore
_settings = torch.utils.deterministic
for _fill in (True, False):
    _settings.fill_uninitialized_memory = _fill
    with deterministic(), torch.autograd.profiler.profile() as _prof:
        torch.empty(3)
    assert any(event.name == "aten::fill_" for event in _prof.function_events) == _fill
_settings.fill_uninitialized_memory = True
# sphinx_gallery_end_ignore

# %%
# How one digit changes a training
# --------------------------------
# We train a table of 100 rows, read 500 times a step, and a small network behind it. With ``shuffle``, the gradients of the
# table are added in a shuffled order:


def train(shuffle=False, device="cpu", words=500, steps=40):
    torch.manual_seed(0)
    table = torch.zeros(100, 32, device=device, requires_grad=True)
    net = nn.Sequential(nn.Linear(32, 64), nn.Tanh(), nn.Linear(64, 1)).to(device)
    rows = torch.randint(100, (words,), device=device)
    targets = torch.randn(words, 1, device=device)
    optimizer = torch.optim.SGD([table, *net.parameters()], lr=0.1, momentum=0.9)
    path = []
    for _ in range(steps):
        optimizer.zero_grad()
        read = table.index_select(0, rows)
        read.retain_grad()
        F.mse_loss(net(read), targets).backward()
        if shuffle:
            order = torch.randperm(words)
            table.grad = torch.zeros_like(table)
            table.grad.index_add_(0, rows[order], read.grad[order])
        optimizer.step()
        path.append(table.detach().clone())
    return path


# %%
# .. how-measured:: the largest difference between two trainings, after each step, and a drawing of it.


def gap(first, second):
    return [(a - b).abs().max().item() for a, b in zip(first, second, strict=True)]


def draw(gaps, title):
    fig, ax = plt.subplots(figsize=(7, 3))
    for (name, path), style in zip(gaps.items(), ("o-", "s-"), strict=True):
        color = "#c2410c" if style == "o-" else "#2563eb"
        ax.plot(range(1, 41), path, style, color=color, markersize=4, label=name)
    ax.set_yscale("symlog", linthresh=1e-12)
    ax.set_yticks([0, 1e-12, 1e-9, 1e-6, 1e-3])
    ax.set_xlabel("step")
    ax.set_ylabel("largest difference")
    ax.set_title(title)
    ax.legend(loc="upper left")
    fig.tight_layout()


# %%
# The same training twice, from one seed. The largest difference between the two tables, after each step:

gaps = {
    "other order": gap(train(), train(shuffle=True)),
    "same order": gap(train(), train()),
}

# figure: Two curves over 40 steps, on a logarithmic axis that includes zero. With another order of additions the
#   difference rises above zero. With the same order it is zero throughout.
draw(gaps, "Two trainings from one seed, on the CPU")
print(
    "other order:", f"{max(gaps['other order']):.0e}", " same:", max(gaps["same order"])
)
assert max(gaps["other order"]) > 0 and max(gaps["same order"]) == 0

# %%
# Products and CUBLAS_WORKSPACE_CONFIG
# ------------------------------------
# In earlier versions products on the GPU raised with ``use_deterministic_algorithms(True)``, unless the variable
# ``CUBLAS_WORKSPACE_CONFIG`` was set: *Deterministic behavior was enabled with either …, but this operation is not
# deterministic because it uses CuBLAS and you have CUDA >= 10.2.* A script that has to run there too begins with
# ``os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"``, before the first product.
#
# What people get wrong
# ---------------------
# **Comparing runs bit by bit.** A different GPU or version may add in a different order, even with every switch on.
#
# **Setting only cudnn.deterministic.** It does nothing for ``index_add``: the last digits still change.
#
# **Taking NaN for an error of the model.** With the switch on, it may be memory of ``torch.empty`` that nobody has written.
#
# Exercise
# --------
# Count how often each index occurs: ``index_add`` with ones in the place of the values. How many different results do 20
# shuffled orders give? And with values that are rounded to whole numbers?
#
# .. solution::
#
# One, both times. Sums of whole numbers are exact in float32 as long as they stay below 2 to the 24, so no addition is rounded,
# and the order does not matter.

ones, whole = torch.ones_like(values), values.round()
for name, numbers in (("ones", ones), ("whole numbers", whole)):
    sums = {tuple(shuffled_sums(numbers).tolist()) for _ in range(20)}
    print(f"{name:<14} {len(sums)} result")
    assert len(sums) == 1
assert whole.abs().sum() < 2**24

# %%
# Measured on a GPU
# -----------------
# Now only chance shuffles the order. First, one of ten sums of a million values, five times.
#
# .. needs-a-gpu::

if not torch.cuda.is_available():
    print("What follows is measured, and needs a CUDA device.")
    sys.exit()

# varies: This is the page's subject: the last digits differ from run to run.

torch.manual_seed(0)
values = torch.randn(1_000_000, device="cuda")
index = torch.randint(10, (1_000_000,), device="cuda")
zeros = torch.zeros(10, device="cuda")

runs = torch.stack([zeros.index_add(0, index, values) for _ in range(5)])
for run in runs:
    print(f"{run[0].item():.6f}")
spread = (runs.max(0).values - runs.min(0).values).max().item()
print("different:", spread > 0)
assert spread < 0.1

# %%
# Five operations, the last two of them gradients. Backward of ``index_select`` is an ``index_add``: each place where a row was
# read sends its gradient to the row.


def gradient_of_index_select():
    table = torch.ones(10, device="cuda", requires_grad=True)
    (table.index_select(0, index) * values).sum().backward()
    return table.grad


images = torch.randn(16, 32, 64, 64, device="cuda")
kernel = torch.randn(32, 32, 3, 3, device="cuda")


def gradient_of_conv2d():
    weight = kernel.clone().requires_grad_()
    F.conv2d(images, weight, padding=1).square().mean().backward()
    return weight.grad


operations = {
    "sum": lambda: values.sum(),
    "index_add": lambda: zeros.index_add(0, index, values),
    "scatter_add": lambda: zeros.scatter_add(0, index, values),
    "gradient of index_select": gradient_of_index_select,
    "gradient of conv2d": gradient_of_conv2d,
}

# %%
# ``different`` counts the results, bit by bit.


def different(operation, times=20):
    return len({operation().detach().cpu().numpy().tobytes() for _ in range(times)})


def milliseconds(operation, times=20):
    operation()
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    for _ in range(times):
        operation()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) / times


# %%
# Twenty calls of each, without the switch and with it. The time ratio is the time with it, divided by the time without.

# varies: How many results differ, and the times, depend on the GPU and on chance. With the switch there is one
#   result.

rows = {}
for name, operation in operations.items():
    row = {"results of 20": different(operation)}
    usual = milliseconds(operation)
    with deterministic():
        row["deterministic"] = different(operation)
        row["time ratio"] = f"{milliseconds(operation) / usual:.1f}"
    rows[name] = row
table = pd.DataFrame(rows).T
assert (table["deterministic"] == 1).all() and table["results of 20"]["sum"] == 1
table.rename_axis(columns="operation")

# %%
# - ``sum`` adds in an order that does not depend on chance.
# - ``index_add`` and ``scatter_add`` use atomic additions, so their results may differ. The switch takes a different algorithm,
#   which may be many times slower.
# - For a convolution cuDNN may choose an algorithm that repeats anyway. The switch insists on one.
#
# The two trainings, with 20,000 words, by default and with the switch:

# varies: Where the two trainings part, and how far, depends on the GPU and on chance.

# figure: The largest difference between the tables of two trainings on a GPU, over 40 steps, on a logarithmic axis
#   that includes zero. By default the curve rises above zero. With the switch it is zero throughout.
usual = gap(*(train(device="cuda", words=20_000) for _ in range(2)))
with deterministic():
    fixed = gap(*(train(device="cuda", words=20_000) for _ in range(2)))
draw({"by default": usual, "deterministic": fixed}, "Two trainings from one seed")
print("largest difference, by default:   ", f"{max(usual):.1e}")
print("largest difference, deterministic:", max(fixed))
assert max(fixed) == 0

# %%
# Some operations have no algorithm with a fixed order. With the switch on they raise, many of them only in backward.


def pool():
    pixels = torch.randn(1, 1, 7, 7, device="cuda", requires_grad=True)
    return F.adaptive_avg_pool2d(pixels, 3).sum()


raised = ""
with deterministic():
    loss = pool()
    try:
        loss.backward()
    except RuntimeError as error:
        raised = str(error)
print(textwrap.fill(f"RuntimeError: {raised}", 88))
assert "does not have a deterministic implementation" in raised

# %%
# With ``warn_only=True`` they warn and run, so the warnings tell you which operations are left.

with warnings.catch_warnings(record=True) as caught, deterministic(warn_only=True):
    warnings.simplefilter("always")
    pool().backward()
for warning in caught:
    message = str(warning.message).partition(" (Triggered")[0]
    print(textwrap.fill(f"{warning.category.__name__}: {message}", 88))
assert any(raised.partition(" ")[0] in str(warning.message) for warning in caught)

# %%
# cuBLAS, which computes the products, gives equal products for equal inputs as long as each stream has its own workspace.
# PyTorch gives each stream its own. Here is one product, 20 times:

a = torch.randn(512, 512, device="cuda")
with deterministic():
    results = different(lambda: a @ a)
print("different products:", results)
assert results == 1

# varies: Whether the variable is set depends on the machine.
print("CUBLAS_WORKSPACE_CONFIG:", os.environ.get("CUBLAS_WORKSPACE_CONFIG"))

# %%
# The first call for a new shape takes longer, and much longer with ``cudnn.benchmark``, which tries several algorithms. The
# later calls may be faster or not.

# varies: Times depend on the GPU and on cuDNN.

F.conv2d(torch.randn(32, 32, 99, 99, device="cuda"), kernel)  # loads the library
for size, benchmark in ((100, False), (101, True)):
    cudnn.benchmark = benchmark
    picture = torch.randn(32, 32, size, size, device="cuda")
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    F.conv2d(picture, kernel)
    end.record()
    end.synchronize()
    first = begin.elapsed_time(end)
    later = milliseconds(lambda picture=picture: F.conv2d(picture, kernel))
    print(
        f"benchmark={benchmark!s:<5} first call {first:8.2f} ms, later {later:8.3f} ms"
    )
cudnn.benchmark = False

# %%
# ``cudnn.deterministic`` alone:

# varies: How many results differ depends on chance.

cudnn.deterministic = True
for name in ("gradient of conv2d", "index_add"):
    print(
        f"cudnn.deterministic=True: {name:<20} results: {different(operations[name])}"
    )
assert different(operations["gradient of conv2d"]) == 1
cudnn.deterministic = False

# sphinx_gallery_start_ignore
assert not torch.are_deterministic_algorithms_enabled()
assert not torch.is_deterministic_algorithms_warn_only_enabled()
assert torch.utils.deterministic.fill_uninitialized_memory
assert not cudnn.benchmark and not cudnn.deterministic
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_training_reproducibility.py`, seeds, generators and data loaders.
# - :ref:`sphx_glr_gallery_cuda_devices.py`, the generators of the CPU and of the GPU.
# - In PyTorch's reference: `Reproducibility <https://docs.pytorch.org/docs/stable/notes/randomness.html>`__ and
#   `torch.use_deterministic_algorithms
#   <https://docs.pytorch.org/docs/stable/generated/torch.use_deterministic_algorithms.html>`__.
