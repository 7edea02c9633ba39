r"""
Reproducibility: seeds, generators and deterministic algorithms
===============================================================

Two runs of a program come out equal if they draw the same random numbers and add in the same order. A seed settles
the first and not the second. This page shows what ``manual_seed`` reaches, where an order of additions hides in a
gradient, what the deterministic mode does, and what to save so that an interrupted run goes on as if nothing had
happened.
"""

# %%
# A seed fixes a sequence
# -----------------------
# Every draw takes the next numbers of it. So one draw more, of an additional layer for instance, shifts all that
# come after.

import io
import random
import textwrap
from itertools import permutations

import matplotlib.pyplot as plt
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def draw(seed, before=0):
    torch.manual_seed(seed)
    torch.rand(before)
    return [round(number, 4) for number in torch.rand(4).tolist()]


print("seed 0:                    ", draw(0))
print("seed 0 again:              ", draw(0))
print("seed 0, after another draw:", draw(0, before=1))
assert draw(0) == draw(0) != draw(1) and draw(0, before=1)[:3] == draw(0)[1:]

# %%
# ``torch.manual_seed`` seeds the generators of all devices: the one of the CPU, and one on each GPU. From the same
# seed a GPU's gives other numbers than the CPU's. ``torch.cuda.manual_seed`` seeds the current GPU only and
# ``torch.cuda.manual_seed_all`` all GPUs. Neither of the two touches the CPU, and without a GPU they do nothing.

before = torch.get_rng_state()
torch.cuda.manual_seed(0)
torch.cuda.manual_seed_all(0)
print("the CPU's generator is as before:", torch.equal(before, torch.get_rng_state()))
assert torch.equal(before, torch.get_rng_state())

# %%
# Generators
# ----------
# Where one sequence serves everything, each part disturbs the others. A ``torch.Generator`` of its own, for the
# :ref:`order of the data <sphx_glr_gallery_training_data_loading.py>` for instance, makes a part independent. Its
# state can be saved and set back.

generator = torch.Generator().manual_seed(0)
state = generator.get_state()
once = torch.rand(3, generator=generator)
torch.rand(100)  # the global generator, which is another one
generator.set_state(state)
print("the same numbers:", torch.equal(once, torch.rand(3, generator=generator)))

# sphinx_gallery_start_ignore
generator.set_state(state)
torch.rand(100)
assert torch.equal(once, torch.rand(3, generator=generator))
# sphinx_gallery_end_ignore

# %%
# Layers draw from the global generator: ``nn.Dropout`` has no argument for another. ``fork_rng`` protects it. What is
# drawn inside is not taken from the sequence outside.

torch.manual_seed(0)
with torch.random.fork_rng(devices=[]):  # no GPU, the CPU is always included
    torch.rand(1000)
after = [round(number, 4) for number in torch.rand(4).tolist()]
print("after fork_rng:", after)
assert after == draw(0)

# %%
# With autograd this goes well because random numbers are drawn in the forward pass. Dropout saves its mask in the
# graph, and ``backward`` draws nothing. :ref:`Checkpointing <sphx_glr_gallery_memory_checkpointing.py>` runs the
# forward pass twice, and therefore saves the state of the generator and sets it back.

x = torch.ones(8, requires_grad=True)
y = nn.functional.dropout(x)
before = torch.get_rng_state()
y.sum().backward()
print("output:  ", y.tolist())
print("gradient:", x.grad.tolist())
print("drawn in backward:", not torch.equal(before, torch.get_rng_state()))
assert torch.equal(x.grad, y.detach()) and torch.equal(before, torch.get_rng_state())

# %%
# What a seed does not fix: the order of a sum
# --------------------------------------------
# Addition of floating-point numbers is not associative. Each intermediate sum is rounded.

left, right = (0.1 + 0.2) + 0.3, 0.1 + (0.2 + 0.3)
print(f"{left!r} and {right!r}")
assert left != right

values = torch.rand(1000, generator=torch.Generator().manual_seed(0))
for parts in (1, 2, 4, 8):
    total = sum(sum(part) for part in values.chunk(parts))
    print(f"1000 numbers, parts: {parts}   sum: {total.item():.6f}")
exact = values.double().sum().item()
print(f"the same in float64      sum: {exact:.6f}")

# sphinx_gallery_start_ignore
_totals = [
    sum(sum(_part) for _part in values.chunk(_parts)).item() for _parts in (1, 2, 4, 8)
]
assert len(set(_totals)) == 4 and all(abs(_total - exact) < 1e-3 for _total in _totals)
# sphinx_gallery_end_ignore

# %%
# No seed is involved. Into how many parts a large sum is divided can depend on the number of threads
# (``torch.set_num_threads``), on the shapes, on the processor, and on the library that is called.
#
# A gradient is a sum too: over all paths, and over all samples. Here ``x`` is used three times.


def three_paths(a, b, c):
    x = torch.tensor(1.0, requires_grad=True)
    return x, a * x + b * x + c * x


large, one = torch.tensor(1e8), torch.tensor(1.0)
x, loss = three_paths(large, one, -large)
other, other_loss = three_paths(one, large, -large)

# graph: loss -- The gradient of x is a sum over three paths. The loss is 1, and has been rounded to 0

print("loss:", loss.item(), "  in another order:", other_loss.item())
assert loss == other_loss == 0

# %%
# Both sums should be 1. Already in the forward pass the 1 was lost, beside :math:`10^8`. What does backward do?

loss.backward()
other_loss.backward()
print("1e8 x + x - 1e8 x   gradient", x.grad.item())
print("x + 1e8 x - 1e8 x   gradient", other.grad.item())
assert x.grad == 0 and other.grad == 1

# %%
# The derivative is 1. The engine starts at the node that was recorded last, and adds as it goes: in the first case
# :math:`(-10^8 + 1) + 10^8`, where the 1 is lost, in the second :math:`(-10^8 + 10^8) + 1`. Here this order is the
# same in every run. Within one node it need not be: where the threads of a GPU add to one place, as in the backward
# pass of ``gather`` or ``index_select`` with repeated indices, nothing fixes who comes first.

# %%
# How far the last bit gets
# -------------------------
# The loss of a batch is a mean, so the order of its rows should not matter. Two runs are trained with one seed. The
# second sees the same batch with its rows in reverse. The gap between the two is the largest difference of a weight.


def train(lr, dtype, reverse=False):
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


# %%
# Three pairs of runs, and at the end one run again with nothing changed:

# varies: The last bits, and what grows out of them, depend on the processor and on the version of PyTorch.

# figure: Gap between two runs over 100 steps on a logarithmic scale, which begins near the rounding error. With
#   learning rate 2 in float32 it grows little, to a few millionths. With learning rate 5 it grows until weights differ
#   in their first digits. With learning rate 5 in float64 it grows in the same way, and stays small because it began far lower.
fig, ax = plt.subplots(figsize=(7, 3.2), layout="constrained")
gaps = {}
for lr, dtype, colour, style in [
    (5, torch.float32, "#c2410c", "-"),
    (2, torch.float32, "#2563eb", "--"),
    (5, torch.float64, "#047857", "-."),
]:
    run = train(lr, dtype)
    gap = (run - train(lr, dtype, reverse=True)).abs().amax(dim=1)
    name = f"lr {lr}, {str(dtype).removeprefix('torch.')}"
    gaps[name] = gap[-1].item()
    ax.semilogy(range(1, 101), gap, style, color=colour, label=name)
    print(f"{name}: {gaps[name]:.0e} after 100 steps")
again = (run - train(lr, dtype)).abs().max().item()
print("nothing changed:", again)
ax.set(xlabel="step", ylabel="gap", ylim=(1e-17, 100))
ax.set_title("One seed, the rows of the batch in another order")
ax.legend(loc="lower right", bbox_to_anchor=(1, 0.12))

# sphinx_gallery_start_ignore
_chaotic, _tame, _double = gaps.values()
assert _tame < 1e-4 and _chaotic > 1e-3 and _double < 1e-5
assert again == 0
# sphinx_gallery_end_ignore

# %%
# By mathematics the two runs of a pair are the same. Where the training is unstable, here with the larger learning
# rate, a difference in the last bit grows until it is one in the first digit. So two trainings that are not equal to
# the last bit need not have similar weights at the end. Compare what they achieve, over several seeds.

# %%
# Deterministic algorithms
# ------------------------
# ``torch.use_deterministic_algorithms(True)`` makes operations take an algorithm that always gives the same result,
# which may be slower. Where there is none, they raise. Many of those are backward passes on the GPU. This one is
# neither: ``put_`` writes values to places, here two to one. It raises whatever the places are.

torch.use_deterministic_algorithms(True)
place, pair = torch.tensor([0, 0]), torch.tensor([1.0, 2.0])
try:
    torch.zeros(3).put_(place, pair)
except RuntimeError as error:
    message = str(error).split(" You can also")[0]
    print(textwrap.fill(f"RuntimeError: {message}", 88))
    assert "put_ does not have a deterministic implementation" in message

print("a sum is allowed:", torch.zeros(3).put_(place, pair, accumulate=True).tolist())
print("torch.empty(3):  ", torch.empty(3).tolist())
print("torch.backends.cudnn.deterministic:", torch.backends.cudnn.deterministic)
torch.use_deterministic_algorithms(False)

# sphinx_gallery_start_ignore
import warnings

torch.use_deterministic_algorithms(True, warn_only=True)
assert torch.empty(3).isnan().all()
assert torch.zeros(3).put_(place, pair, accumulate=True).tolist() == [3, 0, 0]
with warnings.catch_warnings(record=True) as _caught:
    warnings.simplefilter("always")
    torch.zeros(3).put_(torch.tensor([0, 1]), pair)  # two places
assert "does not have a deterministic" in str(_caught[0].message)
torch.utils.deterministic.fill_uninitialized_memory = False
torch.empty(3)
torch.utils.deterministic.fill_uninitialized_memory = True
torch.use_deterministic_algorithms(False)
assert not torch.are_deterministic_algorithms_enabled()
assert not torch.backends.cudnn.deterministic and not torch.backends.cudnn.benchmark
# sphinx_gallery_end_ignore

# %%
# - ``warn_only=True`` warns instead.
# - What ``torch.empty`` returns is otherwise what happened to be in memory. In this mode it is filled with ``nan``,
#   so that a use of it shows. ``torch.utils.deterministic.fill_uninitialized_memory = False`` saves the time.
# - ``torch.backends.cudnn.deterministic`` is another switch, and a narrower one: it decides about the convolutions of
#   cuDNN only, which the deterministic mode covers too. ``torch.backends.cudnn.benchmark = True`` tries several
#   algorithms and keeps the fastest, which may be another one in the next run.
#
# All of this is about one machine and one version. PyTorch does not promise equal results between its versions,
# between processors, or between CPU and GPU, whatever the seed. Write down what you ran on.

# %%
# Stop and go on
# --------------
# A run that is saved and resumed should end where an uninterrupted one does. Four things have a state here: the
# model, the optimizer, the global generator, which dropout uses, and the generator of the loader.

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
# Three epochs, a checkpoint, three more:

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


def resume(left_out):
    model, optimizer, order = start(seed=1)  # as a new program would
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
# With all four the weights are equal to the last bit. With one left out:

gaps = {}
for left_out in ("nothing", *state):
    gaps[left_out] = (resume(left_out) - uninterrupted).abs().max().item()
    print(f"left out: {left_out:<18}  largest difference {gaps[left_out]:.3f}")

assert gaps.pop("nothing") == 0 and min(gaps.values()) > 1e-3

# sphinx_gallery_start_ignore
import pickle


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
# sphinx_gallery_end_ignore

# %%
# In your own program there may be more: a scheduler, ``torch.cuda.get_rng_state_all()``, ``random.getstate()``, and NumPy's.
# ``np.random.get_state()`` holds an array, and ``torch.load`` refuses arrays by default. Use a ``np.random.default_rng()``
# instead: its ``bit_generator.state`` is made of numbers, and loads.
#
# This checkpoint is taken between two epochs. Within one, the position of the loader would belong to it.

# %%
# What people get wrong
# ---------------------
# **Seeding in every step.** The same numbers come again each time. Dropout then always drops the same units.

for seed_again in (False, True):
    torch.manual_seed(0)
    masks = set()
    for _ in range(100):
        if seed_again:
            torch.manual_seed(0)
        masks.add(tuple(nn.functional.dropout(torch.ones(20)).tolist()))
    print(f"seeded {'in every step' if seed_again else 'once':<13} {len(masks)} masks")
    assert len(masks) == (1 if seed_again else 100)

# %%
# **One seed for all libraries.** PyTorch does not know of the generators of Python and NumPy.

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
    assert same == (name == "torch.rand")

# %%
# **The same seed, another size.** A long draw need not begin like a short one. On the CPU, normal numbers are made in
# another way if there are 16 or more.

for size in (5, 15, 16, 20):
    torch.manual_seed(0)
    start_of = [round(number, 4) for number in torch.randn(size)[:4].tolist()]
    print(f"randn({size:>2}) begins {start_of}")

# sphinx_gallery_start_ignore
_starts = []
for _size in (5, 15, 16, 20):
    torch.manual_seed(0)
    _starts.append(torch.randn(_size)[:4])
assert torch.equal(_starts[0], _starts[1]) and not torch.equal(_starts[1], _starts[2])
# sphinx_gallery_end_ignore

# %%
# Exercise
# --------
# There are six orders of the weights 1, :math:`10^8` and :math:`-10^8` in ``three_paths``. For how many of them is
# the gradient right? Answer before you run it.
#
# .. solution::
#
# The engine adds the last two terms first. The 1 survives only if it is not among them, so it must be the first term.
# Two of the six orders begin with it.

right = []
for weights in permutations((one, large, -large)):
    x, loss = three_paths(*weights)
    loss.backward()
    print(" ".join(f"{weight:>6g}" for weight in weights), "  gradient", x.grad.item())
    right += [weights] if x.grad == 1 else []
assert len(right) == 2 and all(weights[0] == 1 for weights in right)

# predict: len(right) -- For how many of the six orders is the gradient right?

# %%
# See also
# --------
# - Before: :ref:`sphx_glr_gallery_training_data_loading.py`, where workers get their seeds from.
# - Next: :ref:`sphx_glr_gallery_modules_parameters_and_buffers.py`, what a module registers, moves and saves.
# - :ref:`sphx_glr_gallery_memory_precision.py`, what rounding does to small gradients.
# - :ref:`sphx_glr_gallery_graphs_functions_are_nodes.py`, a gradient as a sum over paths.
# - In PyTorch's reference: `Reproducibility <https://docs.pytorch.org/docs/stable/notes/randomness.html>`__ and
#   `torch.use_deterministic_algorithms
#   <https://docs.pytorch.org/docs/stable/generated/torch.use_deterministic_algorithms.html>`__.
