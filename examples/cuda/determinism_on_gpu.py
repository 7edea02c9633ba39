r"""
Same seed, different sums: determinism on a GPU
===============================================

A seed fixes random numbers. It does not fix the order in which thousands of threads add to one number, and with the
order the last digits change. This page counts how many different results one operation gives, makes them equal with
``use_deterministic_algorithms``, and shows what that costs, what still raises, and what the switches of cuDNN are
for.
"""

# %%
# The order of a sum
# ------------------
# Each addition of floats is rounded, so the order matters, on any device.

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

# %%
# The rest needs a GPU.
#
# .. needs-a-gpu::

if not torch.cuda.is_available():
    print("What follows is measured, and needs a CUDA device.")
    sys.exit()


print((0.1 + 0.2) + 0.3, 0.1 + (0.2 + 0.3))
assert (0.1 + 0.2) + 0.3 != 0.1 + (0.2 + 0.3)

# %%
# ``index_add`` adds each of a million values to one of ten sums. On the GPU all threads do so at once, with *atomic*
# additions: none is lost, but whoever comes first is added first. Here is one of the sums, five times.

# varies: This is the page's subject: the last digits differ from run to run.

torch.manual_seed(0)
values = torch.randn(1_000_000, device="cuda")
index = torch.randint(10, (1_000_000,), device="cuda")
zeros = torch.zeros(10, device="cuda")

runs = torch.stack([zeros.index_add(0, index, values) for _ in range(5)])
for run in runs:
    print(f"{run[0].item():.6f}")
spread = (runs.max(0).values - runs.min(0).values).max().item()
assert 0 < spread < 0.1

# %%
# How many different results?
# ---------------------------
# Five operations, the last two of them gradients. Backward of ``index_select`` is an ``index_add``: all the places
# where a row was read send their gradients to it.


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
# ``different`` counts the results, bit by bit. ``deterministic`` turns the switch on, and off again at the end: it
# holds for the whole process.


def different(operation, times=20):
    return len({operation().detach().cpu().numpy().tobytes() for _ in range(times)})


@contextlib.contextmanager
def deterministic(warn_only=False):
    torch.use_deterministic_algorithms(True, warn_only=warn_only)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(False)


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
# Twenty calls of each, without the switch and with it, and the time with it as a multiple of the time without.

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
adding = ["index_add", "scatter_add", "gradient of index_select"]
assert (table["results of 20"][adding] > 1).all()
table.rename_axis(columns="operation")

# %%
# - ``sum`` adds in an order that is fixed by the shape. Most operations are like that.
# - Operations with atomic additions differ. With the switch, PyTorch takes another algorithm.
# - For a convolution the switch restricts which of cuDNN's algorithms may be taken.

# %%
# From a digit to another model
# -----------------------------
# The same training twice, from one seed: a table of 100 rows, read 20,000 times a step, and a small network after
# it. Only the table's gradient comes from atomic additions. The tables of the two trainings are compared after each
# step.


def train(steps=40):
    torch.manual_seed(0)
    table = torch.zeros(100, 32, device="cuda", requires_grad=True)
    net = nn.Sequential(nn.Linear(32, 64), nn.Tanh(), nn.Linear(64, 1)).cuda()
    words = torch.randint(100, (20_000,), device="cuda")
    targets = torch.randn(20_000, 1, device="cuda")
    optimizer = torch.optim.SGD([table, *net.parameters()], lr=0.1, momentum=0.9)
    path = []
    for _ in range(steps):
        optimizer.zero_grad()
        F.mse_loss(net(table.index_select(0, words)), targets).backward()
        optimizer.step()
        path.append(table.detach().clone())
    return path


def gap():
    pairs = zip(train(), train(), strict=True)
    return [(first - second).abs().max().item() for first, second in pairs]


usual = gap()
with deterministic():
    fixed = gap()

# %%
# By default one seed gives two trainings. With the switch it gives the same one twice, to the last bit.

# varies: Where the two trainings part, and how far, depends on the GPU and on chance.

# figure: The largest difference between the tables of two trainings, over 40 steps, on a logarithmic axis that
#   includes zero. By default the curve rises above zero. With the switch it is zero throughout.
fig, ax = plt.subplots(figsize=(7, 3.2))
steps = range(1, len(usual) + 1)
ax.plot(steps, usual, "o-", color="#c2410c", markersize=4, label="by default")
ax.plot(steps, fixed, "s-", color="#2563eb", markersize=4, label="deterministic")
ax.set_yscale("symlog", linthresh=1e-12)
ax.set_yticks([0, 1e-12, 1e-9, 1e-6, 1e-3])
ax.set_xlabel("step")
ax.set_ylabel("largest difference")
ax.set_title("Two trainings from one seed")
ax.legend(loc="upper right")
fig.tight_layout()

print("largest difference, by default:   ", f"{max(usual):.1e}")
print("largest difference, deterministic:", max(fixed))
assert max(usual) > 0 and max(fixed) == 0

# %%
# What raises
# -----------
# Some operations have no other algorithm. With the switch on they raise, and for many of them it is backward that
# raises: forward is no warning.


def pool():
    pixels = torch.randn(1, 1, 7, 7, device="cuda", requires_grad=True)
    return F.adaptive_avg_pool2d(pixels, 3).sum()


with deterministic():
    loss = pool()
    try:
        loss.backward()
    except RuntimeError as error:
        print(textwrap.fill(f"RuntimeError: {error}", 88))
        assert str(error).startswith("adaptive_avg_pool2d_backward_cuda does not have")

# %%
# With ``warn_only=True`` they warn and run. Everything else is deterministic as before. It is a way to find out what
# is left.

with warnings.catch_warnings(record=True) as caught, deterministic(warn_only=True):
    warnings.simplefilter("always")
    pool().backward()
for warning in caught:
    message = str(warning.message).partition(" (Triggered")[0]
    print(textwrap.fill(f"{warning.category.__name__}: {message}", 88))
assert any("adaptive_avg_pool2d_backward_cuda" in str(w.message) for w in caught)

# %%
# Products, and an environment variable
# -------------------------------------
# cuBLAS gives equal products as long as each stream of work has a workspace of its own. PyTorch sees to that.

a = torch.randn(512, 512, device="cuda")
with deterministic():
    results = different(lambda: a @ a)
print("different products:", results)
assert results == 1

# varies: Whether the variable is set depends on the machine.
print("CUBLAS_WORKSPACE_CONFIG:", os.environ.get("CUBLAS_WORKSPACE_CONFIG"))

# %%
# Earlier versions left it to that variable. With the switch on and the variable not set, every product raised there:
# *Deterministic behavior was enabled with either …, but this operation is not deterministic because it uses CuBLAS
# and you have CUDA >= 10.2.* A script that has to run there too begins with
# ``os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")``, before the first product: cuBLAS reads it once.

# %%
# The switches of cuDNN
# ---------------------
# ``cudnn.deterministic`` is older and narrower: it speaks to cuDNN, which computes convolutions. ``cudnn.benchmark``
# is about speed: for each new shape the first call tries several algorithms, and the fastest is kept.

# varies: Times depend on the GPU and on cuDNN.

cudnn = torch.backends.cudnn
print(
    "by default:", f"deterministic={cudnn.deterministic}, benchmark={cudnn.benchmark}"
)
assert not cudnn.deterministic and not cudnn.benchmark

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
# The fastest is found by a clock, so another run may keep another algorithm, with other last digits. Where two runs
# must agree, leave ``benchmark`` off, or add one of the deterministic switches: then only deterministic algorithms
# are tried.

# %%
# What people get wrong
# ---------------------
# **cudnn.deterministic for everything.** It does nothing for ``index_add``.

# varies: How many results differ depends on chance.

cudnn.deterministic = True
for name in ("gradient of conv2d", "index_add"):
    print(f"cudnn.deterministic=True: {name:<20} {different(operations[name])} results")
assert different(operations["gradient of conv2d"]) == 1
assert different(operations["index_add"]) > 1
cudnn.deterministic = False

# %%
# **Comparing runs bit by bit.** Another GPU or another version may add in another order, with every switch on. Tests
# that compare runs need a tolerance.

equal = all(torch.equal(runs[0], run) for run in runs)
close = all(torch.allclose(runs[0], run, atol=0.1) for run in runs)
print(f"equal: {equal}   allclose: {close}")
assert close and not equal

# %%
# **Taking NaN for an error of the model.** With the switch on, memory that nobody has written is filled: floats with
# NaN. It makes a use of such memory visible. ``fill_uninitialized_memory`` turns it off.

with deterministic():
    filled = torch.empty(3, device="cuda")
    torch.utils.deterministic.fill_uninitialized_memory = False
    unfilled = torch.empty(3, device="cuda")
    torch.utils.deterministic.fill_uninitialized_memory = True
print("torch.empty(3):", filled.tolist())
assert filled.isnan().all() and unfilled.shape == (3,)

# %%
# Exercise
# --------
# Count how often each index occurs: ``index_add`` with ones in the place of the values, without any switch. How many
# different results do twenty calls give? And with values that are rounded to whole numbers?
#
# .. solution::
#
# One, both times. Sums of whole numbers are exact in float32 as long as they stay below 2 to the 24, so no addition
# is rounded, and the order does not matter. Rounding is what makes it visible.

ones, whole = torch.ones_like(values), values.round()
for name, numbers in (("ones", ones), ("whole numbers", whole)):
    count = different(lambda numbers=numbers: zeros.index_add(0, index, numbers))
    print(f"{name:<14} {count} result")
    assert count == 1
assert whole.abs().sum() < 2**24

# sphinx_gallery_start_ignore
assert not torch.are_deterministic_algorithms_enabled()
assert not torch.is_deterministic_algorithms_warn_only_enabled()
assert torch.utils.deterministic.fill_uninitialized_memory
assert not cudnn.benchmark and not cudnn.deterministic
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - Before: :ref:`sphx_glr_gallery_cuda_checkpoint_and_precision.py`, where bfloat16 changes more than last digits.
# - :ref:`sphx_glr_gallery_training_reproducibility.py`, seeds, generators and data loaders.
# - :ref:`sphx_glr_gallery_cuda_devices.py`, the generators of the CPU and of the GPU.
# - In PyTorch's reference: `Reproducibility <https://docs.pytorch.org/docs/stable/notes/randomness.html>`__ and
#   `torch.use_deterministic_algorithms
#   <https://docs.pytorch.org/docs/stable/generated/torch.use_deterministic_algorithms.html>`__.
