r"""
Reproducibility: same seed, different results
=============================================

.. index::
   single: same seed, different results
   single: seed everything
   single: reproducible training in PyTorch
   single: torch.manual_seed
   single: random state in a checkpoint
   single: use_deterministic_algorithms
   single: results differ after resuming training

.. in-short::

   Seed each library that draws random numbers, and turn on deterministic algorithms:

   .. code-block:: python

      random.seed(0)
      np.random.seed(0)
      torch.manual_seed(0)  # the CPU and the GPUs
      torch.use_deterministic_algorithms(True)

   A seed does not fix the order in which numbers are added. With another number of threads, batch size, processor or version
   of PyTorch, the last bits may change, and unstable training can turn this into different weights. To resume a run, save
   the states of the random generators too.
"""

# %%
# The problem: one seed, two models
# ---------------------------------
# A seed fixes the random numbers. But the last bits of a sum depend on its order, because each intermediate sum is rounded:

import io
import random
from itertools import permutations

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

print((0.1 + 0.2) + 0.3, "and", 0.1 + (0.2 + 0.3))

# %%
# You train twice with ``torch.manual_seed(0)``. The second run sees the same batch with its rows in reverse. The loss is a
# mean over the rows, so without rounding the two runs would be equal.
#
# .. how-measured:: This code trains pairs of runs, and draws the largest difference between their weights.

import matplotlib.pyplot as plt


def train_and_keep_weights(lr, dtype, reverse=False):
    torch.manual_seed(0)
    x = torch.linspace(-2, 2, 64, dtype=dtype)[:, None]
    x = x.flip(0) if reverse else x
    target = (torch.sin(3 * x) > 0).to(dtype)
    model = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 1)).to(dtype)
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    path = []
    for _ in range(100):
        optimizer.zero_grad()
        nn.functional.binary_cross_entropy_with_logits(model(x), target).backward()
        optimizer.step()
        path.append(nn.utils.parameters_to_vector(model.parameters()).detach())
    return torch.stack(path)


def plot_gaps():
    gaps = {}
    _, ax = plt.subplots(figsize=(7, 3), layout="constrained")
    for lr, dtype, color, style in [
        (5, torch.float32, "#c2410c", "-"),
        (2, torch.float32, "#2563eb", "--"),
        (5, torch.float64, "#047857", "-."),
    ]:
        gap = (
            (
                train_and_keep_weights(lr, dtype)
                - train_and_keep_weights(lr, dtype, reverse=True)
            )
            .abs()
            .amax(dim=1)
        )
        name = f"lr {lr}, {str(dtype).removeprefix('torch.')}"
        gaps[name] = gap[-1].item()
        ax.semilogy(range(1, 101), gap, style, color=color, label=name)
    ax.set(xlabel="step", ylabel="gap", ylim=(1e-17, 100))
    ax.set_title("One seed, the rows of the batch in another order")
    ax.legend(loc="lower right", ncols=3)
    return gaps


# %%
# The gap is the largest difference between two weights:

# varies: The last bits, and what grows out of them, depend on the processor and on the version of PyTorch.

# figure: Gap between two runs over 100 steps on a logarithmic scale, which begins near the rounding error. With
#   learning rate 2 in float32 it grows little, to a few millionths. With learning rate 5 it grows until weights differ
#   in their first digits. With learning rate 5 in float64 it grows in the same way, and stays small because it began far lower.
for name, gap in (gaps := plot_gaps()).items():
    print(f"{name}: {gap:.0e} after 100 steps")
again = (
    (
        train_and_keep_weights(5, torch.float32)
        - train_and_keep_weights(5, torch.float32)
    )
    .abs()
    .max()
    .item()
)
print("rows not reversed:", again)

# sphinx_gallery_start_ignore
_chaotic, _tame, _double = gaps.values()
assert _tame < 1e-4 and _chaotic > 1e-3 and _double < 1e-5
assert again == 0
_run, _reversed = (
    train_and_keep_weights(5, torch.float32),
    train_and_keep_weights(5, torch.float32, True),
)
assert (_run - _reversed)[0].abs().max() < 1e-5
_relative = (_run - _reversed)[-1].abs() / _run[-1].abs()
assert _relative.max() > 0.1


def _boxed():
    random.seed(0)
    np.random.seed(0)
    torch.manual_seed(0)
    torch.use_deterministic_algorithms(True)
    numbers = random.random(), np.random.rand(), torch.rand(()).item()
    torch.use_deterministic_algorithms(False)
    return numbers


assert _boxed() == _boxed()
# sphinx_gallery_end_ignore

# %%
# With learning rate 5 this training is unstable: a difference in the last bit grows until the first digits of weights differ.
# If two of your runs differ like this, compare what they achieve, over several seeds.

# %%
# Why: the order of a sum
# -----------------------
# Floating-point addition is not associative. The same 1,000 numbers, added in 1, 2, 4 or 8 parts, have four different sums:

values = torch.rand(1000, generator=torch.Generator().manual_seed(0))
for parts in (1, 2, 4, 8):
    total = sum(sum(part) for part in values.chunk(parts))
    print(f"1000 numbers in {parts} parts: {total.item():.6f}")
print(f"in float64:              {values.double().sum().item():.6f}")

# sphinx_gallery_start_ignore
assert (0.1 + 0.2) + 0.3 != 0.1 + (0.2 + 0.3)
_totals = [
    sum(sum(_part) for _part in values.chunk(_parts)).item() for _parts in (1, 2, 4, 8)
]
_exact = values.double().sum().item()
assert len(set(_totals)) == 4 and all(abs(_total - _exact) < 1e-3 for _total in _totals)
_threads = torch.get_num_threads()
_large = torch.rand(4_000_000, generator=torch.Generator().manual_seed(0))


def _sums_by_threads():
    sums = set()
    for threads in (1, 2, 3, 4, 5, 7, 8):
        torch.set_num_threads(threads)
        sums.add((_large.sum().item(), (_large @ _large).item()))
    torch.set_num_threads(_threads)
    return sums


assert len(_sums_by_threads()) > 1
_rows, _differ = torch.randn(64, 50), []
for _width in (1, 3, 10, 30, 64, 100):
    _linear = nn.Linear(50, _width)
    _differ.append(not torch.equal(_linear(_rows)[:1], _linear(_rows[:1])))
assert any(_differ)
# sphinx_gallery_end_ignore

# %%
# The number of threads (``torch.set_num_threads``), the shapes, the processor and the library can each change how a sum is
# divided. So one row alone may give a slightly different output than the same row in a batch.
#
# A gradient is also a sum, over the paths through the graph. In these losses ``x`` has three paths, and the derivative is 1:


def three_paths(a, b, c):
    x = torch.tensor(1.0, requires_grad=True)
    return x, a * x + b * x + c * x


large, one = torch.tensor(1e8), torch.tensor(1.0)
x, loss = three_paths(large, one, -large)
other, other_loss = three_paths(one, large, -large)

# graph: loss -- The gradient of x is a sum over three paths. The loss is 1, and has been rounded to 0

loss.backward()
other_loss.backward()
print("1e8 x + x - 1e8 x   gradient", x.grad.item())
print("x + 1e8 x - 1e8 x   gradient", other.grad.item())

# sphinx_gallery_start_ignore
assert loss == other_loss == 0
assert x.grad == 0 and other.grad == 1
# sphinx_gallery_end_ignore

# %%
# Backward begins with the operation that was recorded last. In the first loss it computes :math:`(-10^8 + 1) + 10^8`, and
# the 1 is rounded away. In the second it computes :math:`(-10^8 + 10^8) + 1`. :ref:`On a GPU the order of a sum may change
# from run to run <sphx_glr_gallery_cuda_determinism_on_gpu.py>`.

# %%
# One draw more changes the numbers that follow
# ---------------------------------------------
# Each draw takes the next numbers of a generator. So an additional layer changes the weights of the layers after it:


def draw_numbers(seed, before=0):
    torch.manual_seed(seed)
    torch.rand(before)
    return [round(number, 4) for number in torch.rand(4).tolist()]


print("seed 0:                    ", draw_numbers(0))
print("seed 0 again:              ", draw_numbers(0))
print("seed 0, after another draw:", draw_numbers(0, before=1))

# sphinx_gallery_start_ignore
assert (
    draw_numbers(0) == draw_numbers(0) != draw_numbers(1)
    and draw_numbers(0, before=1)[:3] == draw_numbers(0)[1:]
)
_weights = []
for _extra in (False, True):
    torch.manual_seed(0)
    if _extra:
        nn.Linear(2, 2)
    _weights.append(nn.Linear(2, 2).weight)
assert not torch.equal(*_weights)
# sphinx_gallery_end_ignore

# %%
# A part with its own ``torch.Generator`` leaves the numbers of the others alone. Use one for the :ref:`order of the data
# <sphx_glr_gallery_training_data_loading.py>`. ``nn.Dropout`` has no argument for a generator, so put code that should not
# change its numbers, such as an evaluation that samples, into ``fork_rng``. It restores PyTorch's own generators, on the CPU
# and the GPUs that you name (``devices=[0]`` for the first), but not those of Python and NumPy:

generator = torch.Generator().manual_seed(0)
torch.manual_seed(0)
torch.rand(3, generator=generator)
with torch.random.fork_rng(devices=[]):  # the CPU is included
    torch.rand(1000)
after = [round(number, 4) for number in torch.rand(4).tolist()]
print("after both:", after)

# sphinx_gallery_start_ignore
import inspect

assert after == draw_numbers(0)
assert "generator" not in inspect.signature(nn.Dropout).parameters
_random, _numpy = random.getstate(), np.random.get_state()[2]
with torch.random.fork_rng(devices=[]):
    random.random()
    np.random.rand()
assert random.getstate() != _random and np.random.get_state()[2] != _numpy
_state = generator.get_state()
with torch.random.fork_rng(devices=[]):
    torch.rand(3, generator=generator)
assert not torch.equal(generator.get_state(), _state)
_own = []
for _other in (0, 100):
    generator.manual_seed(0)
    torch.rand(_other)
    _own.append(torch.rand(3, generator=generator))
assert torch.equal(*_own)
# sphinx_gallery_end_ignore

# %%
# Deterministic algorithms
# ------------------------
# After ``torch.use_deterministic_algorithms(True)``, operations that PyTorch lists as nondeterministic use another algorithm,
# which may be slower, or raise. Most of them run on a GPU. On the CPU, ``put_`` raises, even if no place occurs twice:

torch.use_deterministic_algorithms(True)
place, pair = torch.tensor([0, 1]), torch.tensor([1.0, 2.0])
try:
    torch.zeros(3).put_(place, pair)
except RuntimeError as error:
    message = str(error).split(". ")[0]
    print("RuntimeError:", message)
torch.use_deterministic_algorithms(False)

# sphinx_gallery_start_ignore
import warnings

assert "put_ does not have a deterministic implementation" in message
torch.use_deterministic_algorithms(True, warn_only=True)
for _place in ([0, 1], [0, 0]):
    with warnings.catch_warnings(record=True) as _caught:
        warnings.simplefilter("always")
        torch.zeros(3).put_(torch.tensor(_place), pair)
    assert "does not have a deterministic" in str(_caught[0].message)
assert len(_sums_by_threads()) > 1  # with the mode on
assert not torch.backends.cudnn.deterministic
torch.use_deterministic_algorithms(False)
assert not torch.are_deterministic_algorithms_enabled()
assert not torch.backends.cudnn.deterministic and not torch.backends.cudnn.benchmark
# sphinx_gallery_end_ignore

# %%
# - ``warn_only=True`` warns instead.
# - **Another number of threads** still changes a large sum. Fix it with ``torch.set_num_threads``.

# %%
# Resume a run without a difference
# ---------------------------------
# This run has four states: the model, the optimizer, the global generator (for dropout) and the generator of the data loader:

inputs = torch.linspace(-1, 1, 32)[:, None]
data = TensorDataset(inputs, inputs**2)


def start(seed):
    torch.manual_seed(seed)
    parts = nn.Linear(1, 16), nn.Tanh(), nn.Dropout(0.2), nn.Linear(16, 1)
    model = nn.Sequential(*parts)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    return model, optimizer, torch.Generator().manual_seed(seed)


def go_on(model, optimizer, order, epochs=3):
    for _ in range(epochs):
        for x, y in DataLoader(data, batch_size=8, shuffle=True, generator=order):
            optimizer.zero_grad()
            (model(x) - y).square().mean().backward()
            optimizer.step()
    return nn.utils.parameters_to_vector(model.parameters()).detach()


# %%
# Train three epochs, save, and train three more:

model, optimizer, order = start(seed=0)
go_on(model, optimizer, order)
checkpoint = io.BytesIO()  # a file, in real life
state = {
    "model": model.state_dict(),
    "optimizer": optimizer.state_dict(),
    "global generator": torch.get_rng_state(),
    "loader's generator": order.get_state(),
}
torch.save(state, checkpoint)
uninterrupted = go_on(model, optimizer, order)

# %%
# A new program builds everything, then loads it. Set the global generator last, because a new ``Linear`` draws numbers:

model, optimizer, order = start(seed=1)
checkpoint.seek(0)
saved = torch.load(checkpoint)
model.load_state_dict(saved["model"])
optimizer.load_state_dict(saved["optimizer"])
order.set_state(saved["loader's generator"])
torch.set_rng_state(saved["global generator"])
resumed = go_on(model, optimizer, order)
print("equal to the last bit:", torch.equal(resumed, uninterrupted))

# %%
# .. how-measured:: This code resumes again, with one of the four states left out.


def resume_without(left_out):
    model, optimizer, order = start(seed=1)
    restore = {
        "model": model.load_state_dict,
        "optimizer": optimizer.load_state_dict,
        "global generator": torch.set_rng_state,
        "loader's generator": order.set_state,
    }
    checkpoint.seek(0)
    for part, saved in torch.load(checkpoint).items():
        if part != left_out:
            restore[part](saved)
    return go_on(model, optimizer, order)


# %%
# With one of the four left out, the weights differ:

gaps = {}
for left_out in ("nothing", *state):
    gaps[left_out] = (resume_without(left_out) - uninterrupted).abs().max().item()
    print(f"left out: {left_out:<18}  largest difference {gaps[left_out]:.3f}")

# sphinx_gallery_start_ignore
import pickle

assert torch.equal(resumed, uninterrupted)
assert gaps.pop("nothing") == 0 and len(gaps) == 4 and min(gaps.values()) > 1e-3
torch.set_rng_state(saved["global generator"])
nn.Linear(1, 16)
assert not torch.equal(torch.get_rng_state(), saved["global generator"])


def _loads(state):
    file = io.BytesIO()
    torch.save(state, file)
    file.seek(0)
    try:
        torch.load(file)
    except pickle.UnpicklingError:
        return False
    return True


assert not _loads(np.random.get_state())
assert _loads(random.getstate())
assert _loads(np.random.default_rng(0).bit_generator.state)
checkpoint.seek(0)
_elsewhere = torch.load(checkpoint, map_location="meta")["global generator"]
_raised = []
try:
    torch.set_rng_state(_elsewhere)
except TypeError as error:
    _raised.append(str(error))
assert _raised == ["RNG state must be a torch.ByteTensor"]
# sphinx_gallery_end_ignore

# %%
# - You may have more states: a scheduler, a ``GradScaler``, ``torch.cuda.get_rng_state_all()``, ``random.getstate()``, NumPy's.
# - By default ``torch.load`` rejects ``np.random.get_state()``. Use ``np.random.default_rng()``: its ``bit_generator.state``
#   loads.
# - *RNG state must be a torch.ByteTensor*: ``map_location`` moved the state to another device. Call ``.cpu()`` on it.
# - This checkpoint is made between two epochs. In the middle of one, save the position of the loader too.

# %%
# What people get wrong
# ---------------------
# **Seeding in each step.** The same numbers come again, so dropout drops the same units in each step:

for seed_again in (False, True):
    torch.manual_seed(0)
    masks = set()
    for _ in range(100):
        if seed_again:
            torch.manual_seed(0)
        masks.add(tuple(nn.functional.dropout(torch.ones(20)).tolist()))
    print(f"seeded {'in each step' if seed_again else 'once':<12} {len(masks)} masks")
    # sphinx_gallery_start_ignore
    assert len(masks) == (1 if seed_again else 100)
    # sphinx_gallery_end_ignore

# %%
# **One seed for all libraries.** ``torch.manual_seed`` seeds PyTorch on all devices, but neither Python nor NumPy:

sources = {
    "torch.rand": lambda: torch.rand(()).item(),
    "random.random": random.random,
    "np.random.rand": np.random.rand,
}
for name, number in sources.items():
    torch.manual_seed(0)
    first = number()
    torch.manual_seed(0)
    same = number() == first
    print(f"{name:<15} same number after the same seed: {same}")

    # sphinx_gallery_start_ignore
    assert same == (name == "torch.rand")
import os
import subprocess
import sys

_code = "import random; random.seed(0); print([*{'cat', 'dog', 'owl', 'fox'}])"
_listed = {
    subprocess.run(
        [sys.executable, "-S", "-c", _code],
        env=os.environ | {"PYTHONHASHSEED": _seed},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    for _seed in ("1", "2", "3", "4", "1", "2")
}
assert 1 < len(_listed) <= 4
_late = "import os; os.environ['PYTHONHASHSEED'] = '0'; print(hash('cat'))"
_environment = {k: v for k, v in os.environ.items() if k != "PYTHONHASHSEED"}
_hashes = {
    subprocess.run(
        [sys.executable, "-S", "-c", _late],
        env=_environment,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    for _ in range(3)
}
assert len(_hashes) > 1
_numbers = []
for _ in range(2):
    np.random.seed(0)
    _numbers.append(
        (np.random.default_rng().random(), np.random.default_rng(0).random())
    )
assert _numbers[0][0] != _numbers[1][0] and _numbers[0][1] == _numbers[1][1]
# sphinx_gallery_end_ignore

# %%
# ``np.random.seed`` has no effect on a ``np.random.default_rng()``: pass the seed to it. The order of a ``set`` of strings
# changes from one start of Python to the next, whatever ``random.seed`` got. Sort class names before you use their order. (To
# set ``PYTHONHASHSEED`` in the running program is too late.)
#
# **A loop that seems to draw nothing.** Even without shuffling, a loop over a ``DataLoader`` takes a seed from the global
# generator. So a new validation loop can change the dropout masks of training. ``DataLoader(..., generator=torch.Generator())``
# leaves them alone:

loader = DataLoader(TensorDataset(torch.arange(4.0)))
before = torch.get_rng_state()
batches = list(loader)
print("global generator unchanged:", torch.equal(before, torch.get_rng_state()))

# sphinx_gallery_start_ignore
assert not torch.equal(before, torch.get_rng_state())
_masks = []
for _loops in (0, 1):
    torch.manual_seed(0)
    for _ in range(_loops):
        list(loader)
    _masks.append(nn.functional.dropout(torch.ones(20)))
assert not torch.equal(*_masks)
for _kind in (
    {"batch_size": None},
    {"batch_size": 4},
    {"sampler": [0, 1]},
    {"dataset": TensorDataset(torch.ones(0))},
):
    _before = torch.get_rng_state()
    list(DataLoader(**{"dataset": loader.dataset} | _kind))
    assert not torch.equal(_before, torch.get_rng_state())
for _shuffle in (False, True):
    _before = torch.get_rng_state()
    list(DataLoader(loader.dataset, shuffle=_shuffle, generator=torch.Generator()))
    assert torch.equal(_before, torch.get_rng_state())
# sphinx_gallery_end_ignore

# %%
# Exercise
# --------
# There are six orders of the weights 1, :math:`10^8` and :math:`-10^8` in ``three_paths``. For how many of them is
# the gradient right?
#
# .. solution::
#
# The engine adds the last two terms first. The 1 survives only as the first term, because among the last two it is rounded
# away. Two of the six orders begin with it.

right = []
for weights in permutations((one, large, -large)):
    x, loss = three_paths(*weights)
    loss.backward()
    print(" ".join(f"{weight:>6g}" for weight in weights), "  gradient", x.grad.item())
    right += [weights] if x.grad == 1 else []

# predict: len(right) -- For how many of the six orders is the gradient right?

# sphinx_gallery_start_ignore
assert len(right) == 2 and all(weights[0] == 1 for weights in right)
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_memory_precision.py`, what rounding does to small gradients.
# - :ref:`sphx_glr_gallery_graphs_functions_are_nodes.py`, a gradient as a sum over paths.
# - In PyTorch's reference: `Reproducibility <https://docs.pytorch.org/docs/stable/notes/randomness.html>`__ and
#   `torch.use_deterministic_algorithms
#   <https://docs.pytorch.org/docs/stable/generated/torch.use_deterministic_algorithms.html>`__.
