r"""
Dataset and DataLoader: batches, shuffling, workers
===================================================

.. index::
   ! single: worker_init_fn
   ! single: every worker draws the same random numbers
   ! single: the dataset does not change between epochs
   single: make batches, shuffle the data, drop the last batch
   single: class imbalance, WeightedRandomSampler
   single: collate_fn, pad sequences of different lengths
   single: persistent_workers, prefetch_factor
   single: IterableDataset, every worker reads the whole stream

.. in-short::

   A ``Dataset`` has ``__len__`` and ``__getitem__``. A ``DataLoader`` makes batches of its samples:

   .. code-block:: python

      loader = DataLoader(dataset, batch_size=4, shuffle=True, num_workers=2)

   ``shuffle=True`` draws a new order in each epoch. With ``num_workers=2``, two other processes fetch the samples. Each
   has a copy of the dataset: a random generator in the dataset draws the same numbers in each worker, and a counter
   that a worker increases stays in the worker.
"""

# %%
# Batches in a new order
# ----------------------
# A model trains on a few samples at a time. A ``range`` can be a dataset: these are twelve samples, in batches of four:

import torch
from torch.utils.data import DataLoader

generator = torch.Generator().manual_seed(0)
loader = DataLoader(range(12), batch_size=4, shuffle=True, generator=generator)
orders = [torch.cat(list(loader)).tolist() for epoch in (1, 2, 3)]
print("the first batch:", orders[0][:4])

# %%
# .. how-measured:: This code draws each sample as a square, and one row for each order.

import matplotlib.pyplot as plt


def draw_samples(orders):
    _, ax = plt.subplots(figsize=(7, 2.7), layout="constrained")
    for row, order in enumerate([list(range(12)), *orders]):
        for column, sample in enumerate(order):
            left = column + 0.6 * (column // 4)
            fill, ink = ("#c2410c", "white") if sample < 4 else ("#e2e8f0", "#1e293b")
            square = {"facecolor": fill, "edgecolor": "#64748b"}
            ax.add_patch(plt.Rectangle((left, row), 0.9, 0.8, **square))
            center = {"color": ink, "ha": "center", "va": "center"}
            ax.text(left + 0.45, row + 0.42, sample, **center)
    names = ["no shuffle", *(f"epoch {epoch}" for epoch in (1, 2, 3))]
    ax.set_yticks([row + 0.4 for row in range(4)], names)
    ax.set_xticks([2, 6.6, 11.2], ["batch 1", "batch 2", "batch 3"])
    ax.set(xlim=(-0.2, 13.4), ylim=(4, -0.2))
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    ax.set_title("Which sample lands in which batch (samples 0 to 3 are marked)")


# %%
# All samples, first in the order without shuffling, then in three epochs:

# figure: Four rows of twelve numbered squares in three batches. Without shuffling the samples 0 to 3, which are
#   marked, are the first batch. In each of three shuffled epochs the order is another, and the marked samples are
#   spread over several batches.
draw_samples(orders)

# sphinx_gallery_start_ignore
assert torch.cat(list(DataLoader(range(12), batch_size=4))).tolist() == [*range(12)]
for _order in orders:
    assert len({_order.index(_sample) // 4 for _sample in range(4)}) > 1
    assert sorted(_order) == list(range(12))
assert orders[0] != orders[1] != orders[2] != orders[0]


def _shuffled(seed, data=range(12), **options):
    options["generator"] = torch.Generator().manual_seed(seed)
    loader = DataLoader(data, batch_size=4, shuffle=True, **options)
    return [torch.cat(list(loader)).tolist() for _ in range(3)]


assert _shuffled(0) == orders != _shuffled(1)
assert _shuffled(0, list(range(12))) == _shuffled(0, torch.arange(12)) == orders
for _workers in (1, 2):
    _fork = {"num_workers": _workers, "multiprocessing_context": "fork"}
    _epochs = _shuffled(0, **_fork)
    assert _epochs == _shuffled(0, **_fork) and _epochs[0] == orders[0]
    assert all(sorted(_order) == list(range(12)) for _order in _epochs)
for _call in ("__len__", "__getitem__"):
    assert hasattr(range, _call) and hasattr(list, _call)
# sphinx_gallery_end_ignore

# %%
# Without shuffling, the samples 0 to 3 are one batch. With ``shuffle=True``, each loop over the loader draws a new order, and
# each sample comes once. The orders are drawn from ``generator``, so the same seed gives the same orders.

# %%
# A dataset has two methods
# -------------------------
# The loader asks ``__len__`` for the number of samples and ``__getitem__`` for one sample:

from torch.utils.data import Dataset


class Squares(Dataset):
    def __init__(self, n):
        self.x = torch.arange(float(n))

    def __len__(self):
        return len(self.x)

    def __getitem__(self, index):
        return self.x[index], self.x[index] ** 2


dataset = Squares(10)
print("dataset[3]:", dataset[3])
for x, y in DataLoader(dataset, batch_size=4):
    print(x.tolist(), y.tolist())

# sphinx_gallery_start_ignore
assert x.tolist() == [8, 9] and y.tolist() == [64, 81]
assert torch.equal(dataset[3][1], torch.tensor(9.0)) and len(dataset) == 10
for _drop, _expected in ((False, [4, 4, 2]), (True, [4, 4])):
    _loader = DataLoader(dataset, batch_size=4, drop_last=_drop)
    assert [len(x) for x, _ in _loader] == _expected and len(_loader) == len(_expected)
for _n in (0, 1, 3, 4, 8):
    for _drop in (False, True):
        _loader = DataLoader(Squares(_n), batch_size=4, drop_last=_drop)
        _sizes = [len(x) for x, _ in _loader]
        assert sum(_sizes) == (_n // 4 * 4 if _drop else _n)
        assert set(_sizes) <= {4} or not _drop
# sphinx_gallery_end_ignore

# %%
# The last batch has only the two samples that are left. ``drop_last=True`` leaves out an incomplete batch: one
# sample alone can be an error for :ref:`batch normalization in training <sphx_glr_gallery_modes_train_and_eval.py>`.

# %%
# Rare classes: WeightedRandomSampler
# -----------------------------------
# The order comes from a *sampler*, which gives indices. ``WeightedRandomSampler`` can draw the same sample several times. If 5
# of 100 labels are ones, these weights make about half of the drawn labels ones:

from torch.utils.data import WeightedRandomSampler

labels = torch.tensor([0] * 95 + [1] * 5)
weights = 1 / labels.bincount()[labels]
generator = torch.Generator().manual_seed(0)
drawn = WeightedRandomSampler(weights, 1000, generator=generator)
loader = DataLoader(labels, batch_size=100, sampler=drawn)
ones = sum(batch.sum().item() for batch in loader)
print("ones among 1000 samples:", ones)

# sphinx_gallery_start_ignore
assert torch.allclose(weights[[0, 99]], torch.tensor([1 / 95, 1 / 5]))
assert 430 < ones < 570 and sum(labels) == 5 and len(labels) == 100
for _shuffle, _name in ((False, "SequentialSampler"), (True, "RandomSampler")):
    assert type(DataLoader(labels, shuffle=_shuffle).sampler).__name__ == _name
# sphinx_gallery_end_ignore

# %%
# collate_fn: how samples become a batch
# --------------------------------------
# The default stacks tensors and makes tensors of ints and floats. It keeps strings, and does the same inside tuples and
# dictionaries. For ``None`` it :ref:`raises an error <sphx_glr_gallery_errors_stack_unequal_sizes.py>`. Two samples each:

import numpy as np
from torch.utils.data import default_collate

for sample in (2, 1.5, np.float32(1.5), "cat", (2, "cat"), {"label": 2}):
    print(f"{sample!r:<16} {default_collate([sample, sample])}")

# sphinx_gallery_start_ignore
assert default_collate([1.5, 1.5]).dtype == torch.float64
assert default_collate([2, 2]).dtype == torch.int64
assert default_collate([np.float32(1.5)]).dtype == torch.float32
assert default_collate([torch.ones(3)] * 2).shape == (2, 3)
assert default_collate(["cat", "cat"]) == ["cat", "cat"]
_refused = []
for _sample in (None, 1j):
    try:
        default_collate([_sample, _sample])
    except TypeError as error:
        _refused.append(str(error))
assert len(_refused) == 2 and "found <class 'NoneType'>" in _refused[0]
assert default_collate([True, False]).dtype == torch.bool
# sphinx_gallery_end_ignore

# %%
# Tensors of different lengths :ref:`cannot be stacked <sphx_glr_gallery_errors_stack_unequal_sizes.py>`, so write a function
# that takes a list of samples and returns the batch, and pass it as ``collate_fn``. This function pads, and returns the
# lengths, so that the loss can leave the padding out. (Pad class labels with ``padding_value=-100``, which ``cross_entropy``
# ignores.)

from torch.nn.utils.rnn import pad_sequence

sentences = [torch.tensor([5, 8, 2]), torch.tensor([7])]
try:
    next(iter(DataLoader(sentences, batch_size=2)))
except RuntimeError as error:
    print("RuntimeError:", str(error).split(", but")[0])
    assert "stack expects each tensor to be equal size" in str(error)


def pad(samples):
    lengths = torch.tensor([len(sample) for sample in samples])
    return pad_sequence(samples, batch_first=True), lengths


loader = DataLoader(sentences, batch_size=2, collate_fn=pad)
padded, lengths = next(iter(loader))
print(padded.tolist(), " lengths", lengths.tolist())
assert padded.tolist() == [[5, 8, 2], [7, 0, 0]] and lengths.tolist() == [3, 1]

# %%
# Workers: other processes, other random numbers
# ----------------------------------------------
# With ``num_workers=2``, two processes fetch the batches in turn, while your program computes. **Each worker has its own copy
# of the dataset**, made by ``fork`` on this page. Which random numbers does an augmentation get? There are five sources, and
# two belong to the dataset:

import random

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


WORKERS = {"num_workers": 2, "multiprocessing_context": "fork"}

# %%
# .. how-measured:: Two epochs, after one seed in the program; the samples come one by one, since batch_size is None.

import pandas as pd

torch.manual_seed(0)
noise = Noise()
columns = {}
for epoch in (1, 2):
    for sample in DataLoader(noise, batch_size=None, **WORKERS):
        columns[f"epoch {epoch}, worker {sample.pop('worker')}"] = sample
numbers_of_workers = pd.DataFrame(columns).map("{:.4f}".format)

# sphinx_gallery_start_ignore
import multiprocessing
from os.path import exists as _exists

_labels = [torch.tensor([2, 0, 1]), torch.tensor([1])]
_labels = pad_sequence(_labels, batch_first=True, padding_value=-100)
_scores = torch.arange(18.0).reshape(2, 3, 3).sin()
assert torch.allclose(
    torch.nn.functional.cross_entropy(_scores.mT, _labels),
    torch.nn.functional.cross_entropy(
        _scores[_labels != -100], torch.tensor([2, 0, 1, 1])
    ),
)

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


class _Spawning:  # what spawn and forkserver do with the files of shared memory
    def __init__(self):
        self.files = []

    def duplicate_for_child(self, file):
        self.files.append(file)
        return file

    def DupFd(self, file):
        return file


def _open_files(sent):
    spawning = _Spawning()
    multiprocessing.context.set_spawning_popen(spawning)
    try:
        multiprocessing.reduction.ForkingPickler.dumps(sent)
    finally:
        multiprocessing.context.set_spawning_popen(None)
    return [_exists(f"/proc/self/fd/{file}") for file in spawning.files]


if torch.multiprocessing.get_sharing_strategy() == "file_descriptor":
    assert _open_files(_sent) == [True]
    assert _open_files(torch.Generator()) == [False]  # closed before the worker starts
assert _open_files(np.random.default_rng(0)) == []
# sphinx_gallery_end_ignore

# %%
# What each worker draws:

numbers_of_workers.rename_axis(index=None, columns="source")

# %%
# The three *global* generators get a new seed in each worker when the worker starts, which is in every epoch by default.
#
# The generators of your dataset keep their state. Each worker gets a copy, so both workers draw the same numbers, and the new
# workers of the next epoch draw them again. ``worker_init_fn`` runs in each worker at its start. There, ``get_worker_info()``
# returns the worker's seed and its copy of the dataset:


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
from torch.utils.data import Subset


def _reseed_as_dataset(worker_id):
    info = get_worker_info()
    info.dataset.rng = np.random.default_rng(info.seed)


def _reseed_inside(worker_id):
    info = get_worker_info()
    info.dataset.dataset.rng = np.random.default_rng(info.seed)


for _function, _different in ((_reseed_as_dataset, 1), (_reseed_inside, 2)):
    _options = {"batch_size": None, "worker_init_fn": _function} | WORKERS
    _subset = DataLoader(Subset(noise, range(2)), **_options)
    assert len({_sample["own default_rng"] for _sample in _subset}) == _different
for _sample in loader:
    assert _sample["own torch.Generator"] != _sample["torch.rand()"]


def _seed_itself(worker_id):
    get_worker_info().dataset.generator.manual_seed(get_worker_info().seed)


_loader = DataLoader(noise, batch_size=None, worker_init_fn=_seed_itself, **WORKERS)
for _sample in _loader:
    assert _sample["own torch.Generator"] == _sample["torch.rand()"]
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
# If your loader got a ``Subset``, as from ``random_split``, write ``info.dataset.dataset``. Otherwise the line with ``rng``
# sets an attribute of the ``Subset`` that nothing reads, and all workers draw the same numbers.
#
# With ``"spawn"`` and ``"forkserver"`` on Linux, a ``torch.Generator`` in the dataset can end the worker: *unable to resize
# file* (`pytorch#146828 <https://github.com/pytorch/pytorch/issues/146828>`__). Then make the generator in ``worker_init_fn``.

# %%
# ``persistent_workers``: what is kept between epochs
# ---------------------------------------------------
# By default each epoch starts new workers. ``persistent_workers=True`` keeps them. This dataset counts its calls, and the
# program sets ``epoch`` before each epoch:

import os


class Counting(Dataset):
    epoch = calls = 0

    def __len__(self):
        return 4

    def __getitem__(self, index):
        self.calls += 1
        return {"process": os.getpid(), "calls": self.calls, "epoch": self.epoch}


# %%
# .. how-measured:: Three epochs of each kind; a process that no epoch had before counts as new.

rows, known = {}, set()
for persistent in (False, True):
    counting = Counting()
    options = {"batch_size": None, "persistent_workers": persistent} | WORKERS
    loader = DataLoader(counting, **options)
    for counting.epoch in (1, 2, 3):
        samples = list(loader)
        processes = {sample["process"] for sample in samples}
        rows[f"persistent_workers={persistent}, epoch {counting.epoch}"] = {
            "new processes": len(processes - known),
            "calls counted": [sample["calls"] for sample in samples],
            "epoch that the workers see": {sample["epoch"] for sample in samples},
        }
        known |= processes


def tabulate_epochs():
    return pd.DataFrame(rows).T


# sphinx_gallery_start_ignore
_table = tabulate_epochs()
assert _table["new processes"].tolist() == [2, 2, 2, 2, 0, 0]
_calls = _table["calls counted"].tolist()
assert _calls == [[1, 1, 2, 2]] * 4 + [[3, 3, 4, 4], [5, 5, 6, 6]]
_seen = _table["epoch that the workers see"].tolist()
assert _seen == [{1}, {2}, {3}, {1}, {1}, {1}] and counting.calls == 0
_started = multiprocessing.get_context("fork").Value("i", 0)


def _init(worker_id):
    with _started.get_lock():
        _started.value += 1


for _persistent, _expected in ((False, 6), (True, 2)):
    _started.value = 0
    _options = {"persistent_workers": _persistent, "worker_init_fn": _init} | WORKERS
    _loader = DataLoader(range(4), shuffle=True, **_options)
    _orders = {tuple(x.item() for x in _loader) for _ in range(3)}
    assert _started.value == _expected
assert len(_orders) > 1
_orders = {}
for _persistent in (False, True):
    torch.manual_seed(0)
    _options = {"persistent_workers": _persistent, "batch_size": 6} | WORKERS
    _loader = DataLoader(range(6), shuffle=True, **_options)
    _orders[_persistent] = [batch.tolist() for _ in range(3) for batch in _loader]
assert _orders[False][0] == _orders[True][0] and _orders[False] != _orders[True]

del loader, _loader
assert not multiprocessing.active_children()
# sphinx_gallery_end_ignore

# %%
# What the samples of each epoch say:

tabulate_epochs()

# %%
# The processes keep their copies of the dataset, so they miss a later change of ``epoch``: all three epochs show 1.

# %%
# ``prefetch_factor``: how far the workers run ahead
# --------------------------------------------------
# The loader asks the workers for batches before you need them. This sampler counts how many:


class Watched:
    given = 0

    def __iter__(self):
        for index in range(40):
            self.given += 1
            yield index


def asked_for(factor):
    watched = Watched()
    options = {"sampler": watched, "prefetch_factor": factor} | WORKERS
    loader = DataLoader(range(40), **options)
    return [watched.given for batch in loader][:3]


for factor in (1, 2, 4):
    print(f"prefetch_factor={factor}: after 1, 2, 3:", asked_for(factor))

# sphinx_gallery_start_ignore
_default = DataLoader(range(40), **WORKERS)
assert _default.prefetch_factor == 2
for _factor in (1, 2, 4):
    assert asked_for(_factor) == [2 * _factor + _taken for _taken in (1, 2, 3)]
# sphinx_gallery_end_ignore

# %%
# So ``num_workers`` times ``prefetch_factor`` batches are in preparation or ready. The default factor is 2. If the GPU waits
# for batches, try more workers, up to the number of your CPU cores.

# %%
# Start workers from a script, and send batches to a GPU
# ------------------------------------------------------
# Put everything that starts workers below ``if __name__ == "__main__":``. On Windows and macOS, and on Linux from Python 3.14
# on, a worker imports your script, and without that line it starts the loader again: *An attempt has been made to start a new
# process before …* If a worker ends, the program raises :ref:`DataLoader worker exited unexpectedly
# <sphx_glr_gallery_errors_dataloader_worker.py>`.
#
# ``pin_memory=True`` copies each batch to memory from where ``x.to("cuda", non_blocking=True)`` can :ref:`run beside other
# work <sphx_glr_gallery_cuda_pinned_memory.py>`. Without a GPU it only warns.

# %%
# Data that require gradients
# ---------------------------
# If you encode all data once, before training, each sample has a graph by accident:

from torch.utils.data import TensorDataset

encoder = torch.tensor(0.5, requires_grad=True)
encoded = TensorDataset((encoder * torch.tensor([1.0, 2.0])).tanh())
(first,), (second,) = DataLoader(encoded, batch_size=1)
loss_1, loss_2 = first.sum(), second.sum()

# graph: loss_1, loss_2 -- Both batches share the nodes of the encoder, whose saved tensors are freed by now

loss_1.backward()
try:
    loss_2.backward()
except RuntimeError as error:
    print("RuntimeError:", str(error).split(" (or")[0], "...")
    assert "Trying to backward through the graph a second time" in str(error)

# sphinx_gallery_start_ignore

with torch.no_grad():
    _features = TensorDataset((encoder * torch.tensor([1.0, 2.0])).tanh())
for (_x,) in DataLoader(_features, batch_size=1):
    (torch.tensor(2.0, requires_grad=True) * _x).sum().backward()
assert not _x.requires_grad and _x.is_leaf and _x.grad is None
# sphinx_gallery_end_ignore

# %%
# The first ``backward`` freed what the encoder had saved, for both batches. If you do not train the encoder, encode under
# ``torch.no_grad()``. To train it, encode in the loop.

# %%
# IterableDataset: a stream
# -------------------------
# For data without an index, such as lines from a socket, write an ``IterableDataset``. It needs only ``__iter__``.

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
# With two workers, each number comes twice: each worker reads the whole stream.

# %%
# What people get wrong
# ---------------------
# **Python numbers as features.** A ``float`` becomes ``float64``, an ``int`` becomes ``int64``, and a model is ``float32`` by
# default. Return ``float32`` tensors, or ``np.float32``.

from torch import nn

x, y = next(iter(DataLoader([(0.5, 1), (1.5, 0)], batch_size=2)))
try:
    nn.Linear(1, 1)(x[:, None])
except RuntimeError as error:
    print("RuntimeError:", error)
    assert "must have the same dtype" in str(error)

# %%
# **A validation loop changes the order of the training.** Each new loop takes a seed from the global generator, even without
# workers and without shuffling (`pytorch#11062 <https://github.com/pytorch/pytorch/issues/11062>`__). Give the validation
# loader its own ``generator=``:


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

# sphinx_gallery_start_ignore
from torch.utils.data import RandomSampler

for _options, _disturbs in (
    ({"shuffle": True}, False),
    ({"batch_size": None}, False),
    ({"sampler": RandomSampler(range(3))}, True),
    ({"sampler": WeightedRandomSampler([1.0] * 3, 3)}, True),
):
    _own = DataLoader(range(3), generator=torch.Generator(), **_options)
    assert (training_orders(_own) != plain) == _disturbs


def _draws(loader):
    before = torch.get_rng_state()
    list(loader)
    return not torch.equal(before, torch.get_rng_state())


for _options in ({}, {"batch_size": None}, {"sampler": [2, 0]}, {"drop_last": True}):
    assert _draws(DataLoader(range(3), **_options))
_kept = {"num_workers": 1, "multiprocessing_context": "fork"}
_loader = DataLoader(range(3), persistent_workers=True, **_kept)
assert _draws(_loader)
assert not _draws(_loader)  # its workers have their seed
del _loader
_whole = next(iter(DataLoader([(1, 1), (2, 0)], batch_size=2)))[0]
assert _whole.dtype == torch.int64
# sphinx_gallery_end_ignore

# %%
# Exercise
# --------
# Write ``Shared``, a stream of the numbers from 0 to 5. Two workers should deliver every number once, and so should a loader
# without workers.
#
# .. solution::
#
# ``get_worker_info()`` is ``None`` in the program. In a worker it knows the worker's number, and how many there are.


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
# - :ref:`sphx_glr_gallery_training_training_loop.py`, the loop around the loader.
# - In PyTorch's reference: `torch.utils.data <https://docs.pytorch.org/docs/stable/data.html>`__ and `multiprocessing
#   best practices <https://docs.pytorch.org/docs/stable/notes/multiprocessing.html>`__.
