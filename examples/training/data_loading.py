r"""
Dataset and DataLoader: batches, shuffling, workers and their seeds
===================================================================

A ``Dataset`` gives one sample for an index. A ``DataLoader`` decides on the order, makes batches, and can let other
processes fetch the samples. This page shows what each option does to the data, what a worker shares with the program
that started it, and where the data touch the graph.
"""

# %%
# A dataset has two methods
# -------------------------
# ``__len__`` and ``__getitem__``. The loader calls them, and joins what it gets into batches.

import random
import textwrap

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset, TensorDataset


class Squares(Dataset):
    def __init__(self, n):
        self.x = torch.arange(float(n))

    def __len__(self):
        return len(self.x)

    def __getitem__(self, index):
        return self.x[index], self.x[index] ** 2


dataset = Squares(10)
print(f"len(dataset) = {len(dataset)}, dataset[3] = {dataset[3]}")
for x, y in DataLoader(dataset, batch_size=4):
    print(x.tolist(), y.tolist())

# sphinx_gallery_start_ignore
assert x.tolist() == [8, 9] and y.tolist() == [64, 81]
assert torch.equal(dataset[3][1], torch.tensor(9.0))
# sphinx_gallery_end_ignore

# %%
# The last batch is what is left over. ``drop_last=True`` leaves it out, which is right where a batch must not be too
# small, as with :ref:`batch normalisation in training <sphx_glr_gallery_modes_train_and_eval.py>`.

for drop in (False, True):
    loader = DataLoader(dataset, batch_size=4, drop_last=drop)
    sizes = [len(x) for x, _ in loader]
    print(f"drop_last={drop!s:<5}  {len(loader)} batches of {sizes}")
    assert len(sizes) == len(loader)

# sphinx_gallery_start_ignore
assert sizes == [4, 4]
# sphinx_gallery_end_ignore

# %%
# Shuffling: a new order in every epoch
# -------------------------------------
# With ``shuffle=True`` each loop over the loader is a new permutation. Nothing is left out and nothing comes twice.
# The orders are drawn from ``generator``, so a seed fixes them, all of them and one after the other. Anything that
# has a length and an index will do as a dataset, here a ``range``.


def epochs(loader, count=3):
    return [torch.cat(list(loader)).tolist() for _ in range(count)]


def shuffled(seed):
    generator = torch.Generator().manual_seed(seed)
    return DataLoader(range(12), batch_size=4, shuffle=True, generator=generator)


orders = epochs(shuffled(seed=0))
assert orders == epochs(shuffled(seed=0)) != epochs(shuffled(seed=1))
assert all(sorted(order) == list(range(12)) for order in orders)
assert orders[0] != orders[1] != orders[2] != orders[0]
orders = epochs(DataLoader(range(12), batch_size=4), count=1) + orders
names = ["no shuffle", *(f"epoch {epoch}" for epoch in (1, 2, 3))]
for name, order in zip(names, orders, strict=True):
    print(f"{name:<10}", [order[start : start + 4] for start in (0, 4, 8)])

# sphinx_gallery_start_ignore
assert orders[0] == list(range(12)) and len(orders) == 4
# sphinx_gallery_end_ignore

# %%
# The samples 0 to 3, which are one batch without shuffling, are scattered over the batches:

# figure: Four rows of twelve numbered squares in three batches. Without shuffling the samples 0 to 3, which are
#   marked, are the first batch. In each of three shuffled epochs the order is another, and the marked samples are
#   spread over several batches.
fig, ax = plt.subplots(figsize=(7, 2.7), layout="constrained")
for row, order in enumerate(orders):
    for column, sample in enumerate(order):
        left = column + 0.6 * (column // 4)
        fill, ink = ("#c2410c", "white") if sample < 4 else ("#e2e8f0", "#1e293b")
        box = plt.Rectangle((left, row), 0.9, 0.8, facecolor=fill, edgecolor="#64748b")
        ax.add_patch(box)
        ax.text(left + 0.45, row + 0.42, sample, color=ink, ha="center", va="center")
ax.set_yticks([row + 0.4 for row in range(4)], names)
ax.set_xticks([2, 6.6, 11.2], ["batch 1", "batch 2", "batch 3"])
ax.set(xlim=(-0.2, 13.4), ylim=(4, -0.2))
ax.tick_params(length=0)
ax.spines[:].set_visible(False)
ax.set_title("Which sample lands in which batch (samples 0 to 3 are marked)")

# sphinx_gallery_start_ignore
for _order in orders[1:]:
    assert len({_order.index(_sample) // 4 for _sample in range(4)}) > 1
# sphinx_gallery_end_ignore

# %%
# The order is the work of a *sampler*, an iterable of indices. ``shuffle`` chooses between two of them,
# ``SequentialSampler`` and ``RandomSampler``, and ``sampler=`` takes another. ``WeightedRandomSampler`` draws with
# replacement: here a class of 5 in 100 samples becomes about half of what the loader gives.

from torch.utils.data import WeightedRandomSampler

labels = [0] * 95 + [1] * 5
weights = [1 / labels.count(label) for label in labels]
drawn = WeightedRandomSampler(weights, 1000, generator=torch.Generator().manual_seed(0))
ones = sum(batch.sum().item() for batch in DataLoader(labels, 100, sampler=drawn))
print("ones among 1000 samples:", ones)

# sphinx_gallery_start_ignore
assert 430 < ones < 570 and sum(labels) == 5 and len(labels) == 100
for _shuffle, _name in ((False, "SequentialSampler"), (True, "RandomSampler")):
    assert type(DataLoader(labels, shuffle=_shuffle).sampler).__name__ == _name
# sphinx_gallery_end_ignore

# %%
# collate_fn: how samples become a batch
# --------------------------------------
# The default stacks tensors, makes tensors of numbers, leaves strings as they are, and goes into tuples and
# dictionaries. Two equal samples each:

from torch.utils.data import default_collate

for sample in (2, 1.5, np.float32(1.5), "cat", (2, "cat"), {"label": 2}):
    print(f"{sample!r:<16} {default_collate([sample, sample])}")

# sphinx_gallery_start_ignore
assert default_collate([1.5, 1.5]).dtype == torch.float64
assert default_collate([2, 2]).dtype == torch.int64
assert default_collate([np.float32(1.5)]).dtype == torch.float32
assert default_collate([torch.ones(3)] * 2).shape == (2, 3)
assert default_collate(["cat", "cat"]) == ["cat", "cat"]
# sphinx_gallery_end_ignore

# %%
# Tensors of different lengths cannot be stacked. What to do then only you can know, so you write the function. It
# gets a list of samples and returns the batch. Here it pads, and returns the lengths too, so that the loss can leave
# the padding out.

sentences = [torch.tensor([5, 8, 2]), torch.tensor([7])]
try:
    next(iter(DataLoader(sentences, batch_size=2)))
except RuntimeError as error:
    print(textwrap.fill(f"RuntimeError: {error}", 88))
    assert "stack expects each tensor to be equal size" in str(error)


def pad(samples):
    lengths = torch.tensor([len(sample) for sample in samples])
    return pad_sequence(samples, batch_first=True), lengths


padded, lengths = next(iter(DataLoader(sentences, batch_size=2, collate_fn=pad)))
print(padded.tolist(), " lengths", lengths.tolist())
assert padded.tolist() == [[5, 8, 2], [7, 0, 0]] and lengths.tolist() == [3, 1]

# %%
# Workers: other processes, other random numbers
# ----------------------------------------------
# With ``num_workers=2`` two processes fetch the batches, in turn, while the program computes. It pays where a sample
# takes time, to be read or decoded.
#
# Each worker has a *copy* of the dataset, here made by ``fork``. What does that mean for random numbers, such as those of an
# augmentation? Five sources of them. Two are generators that belong to the dataset.

from torch.utils.data import get_worker_info


class Noise(Dataset):
    def __init__(self):
        self.generator = torch.Generator().manual_seed(0)
        self.rng = np.random.default_rng(0)

    def __len__(self):
        return 2

    def __getitem__(self, index):
        return {
            "worker": get_worker_info().id,
            "torch.rand()": torch.rand(()).item(),
            "random.random()": random.random(),
            "np.random.rand()": np.random.rand(),
            "own torch.Generator": torch.rand((), generator=self.generator).item(),
            "own default_rng": self.rng.random(),
        }


# %%
# Two epochs, after one seed in the program. ``batch_size=None`` hands the samples on one by one.

WORKERS = {"num_workers": 2, "multiprocessing_context": "fork"}

torch.manual_seed(0)
noise = Noise()
columns = {}
for epoch in (1, 2):
    for sample in DataLoader(noise, batch_size=None, **WORKERS):
        columns[f"epoch {epoch}, worker {sample.pop('worker')}"] = sample
table = pd.DataFrame(columns).map("{:.4f}".format)

# sphinx_gallery_start_ignore
import multiprocessing

_rows = pd.DataFrame(columns).to_numpy().tolist()
assert [len(set(_row)) for _row in _rows] == [4, 4, 4, 1, 1]
assert list(columns)[:2] == ["epoch 1, worker 0", "epoch 1, worker 1"]
assert not multiprocessing.active_children()
_loader = DataLoader(noise, batch_size=None, persistent_workers=True, **WORKERS)
_epochs = [list(_loader), list(_loader)]
assert len({sample["torch.rand()"] for epoch in _epochs for sample in epoch}) == 4
_own = [[sample["own torch.Generator"] for sample in epoch] for epoch in _epochs]
assert _own[0][0] == _own[0][1] != _own[1][0]  # it went on
del _loader
_sent = torch.zeros(3)
multiprocessing.reduction.ForkingPickler.dumps(_sent)  # as spawn sends it
assert _sent.is_shared()
# sphinx_gallery_end_ignore
table.rename_axis(index=None, columns="source")

# %%
# The loader seeds the three *global* generators in each worker when the worker starts, here in every epoch. With
# ``persistent_workers=True`` the workers stay, are seeded once, and go on in the next epoch. For NumPy's that was not always
# so, and older articles warn of it (`pytorch#56488 <https://github.com/pytorch/pytorch/pull/56488>`__).
#
# It does not know the generators of your dataset. They are copied in the state that they are in, so all workers draw
# the same numbers, and new workers draw them again in the next epoch. Nothing complains. ``worker_init_fn`` runs in each worker
# at its start, and there ``get_worker_info()`` gives the worker's seed and its copy of the dataset:


def reseed(worker_id):
    info = get_worker_info()
    info.dataset.generator.manual_seed(torch.randint(2**62, ()).item())
    info.dataset.rng = np.random.default_rng(info.seed)


loader = DataLoader(noise, batch_size=None, worker_init_fn=reseed, **WORKERS)
for name in ("own torch.Generator", "own default_rng"):
    values = [round(sample[name], 4) for _ in range(2) for sample in loader]
    print(f"{name:<20}", values)
    assert len(set(values)) == 4

# sphinx_gallery_start_ignore
for _sample in loader:
    assert _sample["own torch.Generator"] != _sample["torch.rand()"]
assert noise.rng.random() == float(columns["epoch 1, worker 0"]["own default_rng"])
import warnings


def _warns():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        batch = next(iter(DataLoader(range(2), pin_memory=True)))
    return "pin_memory" in str(caught[0].message) and not batch.is_pinned()


assert torch.accelerator.is_available() or _warns()
# sphinx_gallery_end_ignore

# %%
# The generator gets a seed that the worker draws, and not ``info.seed`` itself. The worker's global generator began
# with that one, so the two would draw the same numbers.
#
# The generators of ``noise`` itself have not moved: what a worker changes in its copy, a cache or a counter, is lost
# for the program and for the other workers. With ``"spawn"`` or ``"forkserver"`` that holds for all but tensors: the dataset is
# sent to the worker then, and a tensor is sent as shared memory.
#
# **In a script of your own**, put everything that starts workers below ``if __name__ == "__main__":``. Under Windows
# and macOS, and on Linux from Python 3.14 on, a worker does not begin as a copy of the program. It imports your
# script, and without that line comes to the loader again: *An attempt has been made to start a new process before the
# current process has finished its bootstrapping phase*. This page asks for the copy, ``"fork"``, which Windows does
# not have.
#
# ``pin_memory=True`` copies each batch to memory that cannot be swapped out. From there
# ``x.to("cuda", non_blocking=True)`` can run beside other work. Without a GPU it does nothing, and warns.

# %%
# Where data touch the graph
# --------------------------
# A batch is a leaf that requires no gradient. ``backward`` passes it by. If you want the gradient of the input, call
# ``x.requires_grad_()`` on the batch, in the loop.

w = torch.tensor(2.0, requires_grad=True)
x, y = next(iter(DataLoader(dataset, batch_size=4)))
(w * x - y).square().mean().backward()
print("leaf:", x.is_leaf, "  requires_grad:", x.requires_grad, "  x.grad:", x.grad)
assert x.is_leaf and not x.requires_grad and x.grad is None and w.grad is not None

# sphinx_gallery_start_ignore
x.requires_grad_()
(w * x - y).square().mean().backward()
assert torch.allclose(x.grad, 2 * (w * x - y) * w / 4)
# sphinx_gallery_end_ignore

# %%
# The dataset itself should hold no graph. The usual way to get one by accident is to encode all data once, before
# training. An encoder of one weight, and two samples:

encoder = torch.tensor(0.5, requires_grad=True)
encoded = TensorDataset((encoder * torch.tensor([1.0, 2.0])).tanh())
(first,), (second,) = DataLoader(encoded, batch_size=1)
loss_1, loss_2 = first.sum(), second.sum()

# graph: loss_1, loss_2 -- Both batches hang on one part of the graph, whose saved tensors are freed by now

loss_1.backward()
try:
    loss_2.backward()
except RuntimeError as error:
    print("RuntimeError:", str(error).split(" (or")[0], "...")
    assert "Trying to backward through the graph a second time" in str(error)

# %%
# The first ``backward`` freed what the nodes of the encoder had saved, for all batches. If the encoder is to stay as
# it is, encode under ``torch.no_grad()``. If it is to be trained, encode in the loop, batch by batch.
#
# From a worker such samples do not arrive at all, since a graph cannot go from one process to another. An exception
# in a worker is raised again in the loop over the loader, below the worker's traceback. Here ``careful`` returns only
# its message.


def careful(samples):
    try:
        return default_collate(samples)
    except RuntimeError as error:
        return f"RuntimeError: {error}"


message, _ = DataLoader(encoded, batch_size=1, collate_fn=careful, **WORKERS)
print(textwrap.fill(message, 88))
assert "out=... arguments don't support automatic differentiation" in message

# sphinx_gallery_start_ignore
from multiprocessing.reduction import ForkingPickler

_refused = ""
try:
    ForkingPickler.dumps(first)
except RuntimeError as _error:
    _refused = str(_error)
assert "Cowardly refusing to serialize non-leaf tensor which requires_grad" in _refused
with torch.no_grad():
    _features = TensorDataset((encoder * torch.tensor([1.0, 2.0])).tanh())
for (_x,) in DataLoader(_features, batch_size=1):
    (w * _x).sum().backward()
assert not _x.requires_grad
# sphinx_gallery_end_ignore

# %%
# The default function builds the batch in shared memory, hence ``out=``. With a function of your own the message is
# *Cowardly refusing to serialize non-leaf tensor which requires_grad*.

# %%
# IterableDataset: a stream
# -------------------------
# For data without an index, such as lines from a socket, there is ``IterableDataset``. It has ``__iter__`` only. So
# there is no length, and ``shuffle=True`` raises an error: there are no indices to shuffle.

from torch.utils.data import IterableDataset


class Stream(IterableDataset):
    def __iter__(self):
        return iter(range(6))


print("no workers:", [batch.tolist() for batch in DataLoader(Stream(), batch_size=2)])
twice = [batch.tolist() for batch in DataLoader(Stream(), batch_size=2, **WORKERS)]
print("2 workers: ", twice)
assert twice == [[0, 1], [0, 1], [2, 3], [2, 3], [4, 5], [4, 5]]


# sphinx_gallery_start_ignore
def _raises(call):
    try:
        call()
    except (TypeError, ValueError) as error:
        return str(error)


assert "has no len()" in _raises(lambda: len(DataLoader(Stream())))
assert "got shuffle=True" in _raises(lambda: DataLoader(Stream(), shuffle=True))
# sphinx_gallery_end_ignore

# %%
# With two workers everything comes twice, because each has a copy of the stream and reads all of it. The exercise
# mends that.

# %%
# What people get wrong
# ---------------------
# **Python numbers as features.** They become ``float64``, and the model is ``float32``. Return tensors, or
# ``np.float32``.

x, y = next(iter(DataLoader([(0.5, 1), (1.5, 0)], batch_size=2)))
try:
    nn.Linear(1, 1)(x[:, None])
except RuntimeError as error:
    print("RuntimeError:", error)
    assert "must have the same dtype" in str(error)

# %%
# **A loop over one loader changes the order of another.** Each loop takes a seed for its workers from the global
# generator, even if it has no workers and does not shuffle (`pytorch#11062
# <https://github.com/pytorch/pytorch/issues/11062>`__). So the training goes another way if you validate in between.
# A loader with a generator of its own leaves the global one alone.


def training_orders(validation=None):
    torch.manual_seed(0)
    train, orders = DataLoader(range(6), batch_size=6, shuffle=True), []
    for _ in range(2):
        orders += [batch.tolist() for batch in train]
        if validation:
            list(validation)
    return orders


plain = training_orders()
disturbed = training_orders(DataLoader(range(3)))
separate = training_orders(DataLoader(range(3), generator=torch.Generator()))
print("no validation: ", plain)
print("validation:    ", disturbed)
print("own generator: ", separate)
assert plain[0] == disturbed[0] and plain[1] != disturbed[1] and separate == plain

# %%
# Exercise
# --------
# Write ``Shared``, a stream of the numbers from 0 to 5 of which each worker reads its own part. Two workers are to
# deliver every number once, and so is a loader without workers.
#
# .. solution::
#
# ``get_worker_info()`` is ``None`` in the program itself. In a worker it knows the worker's number, and how many
# there are. Worker 0 takes every second number from 0 on, worker 1 from 1 on.


class Shared(IterableDataset):
    def __iter__(self):
        info = get_worker_info()
        start, step = (info.id, info.num_workers) if info else (0, 1)
        return iter(range(start, 6, step))


for options in ({}, WORKERS):
    batches = list(DataLoader(Shared(), batch_size=2, **options))
    print([batch.tolist() for batch in batches])
    assert sorted(torch.cat(batches).tolist()) == list(range(6))

# sphinx_gallery_start_ignore
assert not multiprocessing.active_children()
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - Before: :ref:`sphx_glr_gallery_training_learning_rate_schedules.py`, which are counted in batches or in epochs.
# - Next: :ref:`sphx_glr_gallery_training_reproducibility.py`, generators, and what a seed does not fix.
# - :ref:`sphx_glr_gallery_training_training_loop.py`, the loop around the loader.
# - :ref:`sphx_glr_gallery_differentiation_accumulation.py`, for batches that do not fit into memory.
# - In PyTorch's reference: `torch.utils.data <https://docs.pytorch.org/docs/stable/data.html>`__ and `multiprocessing
#   best practices <https://docs.pytorch.org/docs/stable/notes/multiprocessing.html>`__.
