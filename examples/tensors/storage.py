r"""
Storage: why a small slice keeps, and torch.save writes, the whole tensor
=========================================================================

.. index::
   single: saved file is much bigger than the tensor
   single: memory is not freed after del

.. in-short::

   A slice such as ``big[:10]`` shares the *storage* of ``big``, a block of bytes. So the slice keeps all of the block in
   memory, and ``torch.save`` writes all of it. Call ``big[:10].detach().clone()`` before you keep or save a small part. Without
   ``detach()``, a clone can keep the graph, and the graph keeps ``big``.
"""

# %%
# The problem: ten numbers in a file of 4 MB
# ------------------------------------------
# You save ten numbers, such as the activations of one image of a batch, and the checkpoint is as large as the original:

import gc
import io
import weakref

import numpy as np
import torch

big = torch.zeros(1_000_000)


def saved(thing):
    buffer = io.BytesIO()  # in place of a file
    torch.save(thing, buffer)
    return buffer


print(len(saved(big[:10]).getvalue()), "bytes for big[:10]")
print(len(saved(big[:10].clone()).getvalue()), "bytes for a clone of it")

# %%
# .. how-measured:: This code saves each thing into a buffer, as into a file, and draws its size.

import matplotlib.pyplot as plt


def draw_file_sizes(things):
    _, ax = plt.subplots(figsize=(7, 2), layout="constrained")
    for y, thing in enumerate(things.values()):
        bytes_ = len(saved(thing).getvalue())
        color = "#c2410c" if bytes_ > 100_000 else "#2563eb"
        ax.barh(y, bytes_, color=color, height=0.6)
        ax.text(bytes_ * 1.15, y, f"{bytes_ / 1000:,.0f} kB", va="center")
    ax.set_yticks(range(len(things)), things)
    ax.set(xscale="log", xlim=(500, 4e7), ylim=(4.6, -0.6), xlabel="bytes, logarithmic")
    ax.set_title("torch.save writes whole storages, each once")


# %%
# The size of the file, for five things:

things = {"big": big, "big[:10]": big[:10], "big[:10].clone()": big[:10].clone()}
things["[big[:10], big[5:15]]"] = [big[:10], big[5:15]]
things["big[:1].expand(1000, 1000)"] = big[:1].expand(1000, 1000)
draw_file_sizes(things)

# figure: Five bars on a logarithmic scale, the kilobytes that torch.save writes. About 4,000: big, its first ten
#   elements, a list of two small views of big, and one element of big expanded to a million. About 2: a clone of
#   the first ten elements.


# sphinx_gallery_start_ignore
def size(thing):
    return len(saved(thing).getvalue())


_sizes = [size(thing) for thing in things.values()]
assert [_size > 4_000_000 for _size in _sizes] == [True, True, False, True, True]
assert max(_sizes) < 4_010_000 and min(_sizes) < 5000
assert size([big, big.view(10, -1)]) < 4_010_000  # once
assert size([big[:10].clone(), big[5:15].clone()]) < 5000
assert size(big[:1].clone().expand(1000, 1000)) < 5000
# sphinx_gallery_end_ignore

# %%
# What a storage is
# -----------------
# A storage is a block of bytes on one device. A view with another dtype reads the same bytes as different numbers:

t = torch.tensor([1.0, 2.0])

print(t.untyped_storage().nbytes(), "bytes on", t.untyped_storage().device)
print(t.view(torch.int32).tolist())
print(t.view(torch.uint8).tolist())

# sphinx_gallery_start_ignore
assert t.view(torch.uint8).tolist() == list(t.untyped_storage())
assert t.untyped_storage().nbytes() == 8
# sphinx_gallery_end_ignore

# %%
# So the tensor adds a dtype, a shape, :ref:`strides <sphx_glr_gallery_tensors_strides.py>` and an offset, the place of its
# first element:

x = torch.zeros(4, 6)
last = x[2:, 3:]
for tensor in (x, last, last.clone()):
    storage = tensor.untyped_storage()
    print(tensor.nbytes, "of", storage.nbytes(), "offset", tensor.storage_offset())
print("same place, shape, strides:", x.is_set_to(x.detach()), x.is_set_to(x.view(24)))

# sphinx_gallery_start_ignore
assert last.data_ptr() - x.data_ptr() == last.storage_offset() * 4 == 60
assert x.is_set_to(x.detach()) and not x.is_set_to(x.view(24))
assert last.nbytes == 24 and last.untyped_storage().nbytes() == 96
assert last.clone().untyped_storage().nbytes() == 24
# sphinx_gallery_end_ignore

# %%
# Why torch.save writes it all
# ----------------------------
# Because sharing is part of what is saved. Two overlapping views are loaded as two views of one storage again, and a write
# through one is seen in the other (`pytorch#1995 <https://github.com/pytorch/pytorch/issues/1995>`__):

big = torch.zeros(1_000_000)
buffer = saved([big[:10], big[5:15]])
buffer.seek(0)
first, second = torch.load(buffer)
first[5] = 7
print(second[0], second.untyped_storage().nbytes())

# sphinx_gallery_start_ignore
assert second[0] == 7 and second.untyped_storage().nbytes() == 4_000_000
buffer = saved([big[:10].clone(), big[5:15].clone()])
buffer.seek(0)
_first, _second = torch.load(buffer)
_first[5] = 7
assert _second[0] == 0 and _second.untyped_storage().nbytes() == 40
import pickle

_raised = []
try:
    buffer = saved(torch.nn.Linear(1, 1))
    buffer.seek(0)
    torch.load(buffer)
except pickle.UnpicklingError as error:
    _raised.append("Weights only load failed" in str(error))
_z = torch.ones(2, dtype=torch.cfloat)
for _pair in ([t, t.view(torch.int32)], [_z, _z.real]):
    try:
        saved(_pair)
    except RuntimeError as error:
        _raised.append("view the same data as different types" in str(error))
assert _raised == [True] * 3
# sphinx_gallery_end_ignore

# %%
# Clones would be small, but separate. For a large file, ``torch.load(path, mmap=True)`` maps the file into memory instead of
# reading it all at once. Since 2.6, ``torch.load`` has ``weights_only=True`` by default, and :ref:`refuses a whole module
# <sphx_glr_gallery_errors_weights_only_load_failed.py>`.
#
# Most pairs of dtypes on one storage cannot be saved together: ``torch.save([t, t.view(torch.int32)], path)`` raises an error.
# For a complex ``z``, ``[z, z.real]`` does too.

# %%
# Who keeps the storage?
# ----------------------
# To find the other tensors on a storage, ask Python's garbage collector:


def on_storage(address):
    plain = (torch.Tensor, torch.nn.Parameter)
    found = [o for o in gc.get_objects() if type(o) in plain]
    dense = [t for t in found if t.layout == torch.strided]
    return [t for t in dense if t.untyped_storage().data_ptr() == address]


report = {"features": big[:10], "loss": big.mean()}
print(sorted(tuple(t.shape) for t in on_storage(big.untyped_storage().data_ptr())))

# sphinx_gallery_start_ignore
_found = on_storage(big.untyped_storage().data_ptr())
assert sorted(len(t) for t in _found) == [10, 1_000_000]
_lazy = torch.nn.LazyLinear(2)  # its parameters have no storage yet
_sparse = torch.eye(2).to_sparse()  # it never has one
assert len(on_storage(big.untyped_storage().data_ptr())) == 2
del _found
_factor = torch.ones(10, requires_grad=True)
_result = torch.exp(_factor)
_address = _result.untyped_storage().data_ptr()
assert len(on_storage(_address)) == 1
_loss = _result.sum()
del _result  # its node still keeps the storage
assert not on_storage(_address)
_node = _loss.grad_fn.next_functions[0][0]
assert _node._saved_result.untyped_storage().data_ptr() == _address
# sphinx_gallery_end_ignore

# %%
# This finds plain tensors and parameters that have a Python object. But a graph can keep a storage without one. On a GPU,
# :ref:`a memory snapshot <sphx_glr_gallery_cuda_memory_snapshot.py>` shows where each block was allocated.

# %%
# Complex and sparse tensors
# --------------------------
# A complex number is stored as two real ones, so its real and imaginary parts are views. A sparse tensor refuses:

z = torch.tensor([1 + 2j, 3 + 4j])
print(z.imag.stride(), z.imag.storage_offset())

sparse = torch.eye(1000).to_sparse()
print(sparse.values().nbytes, "bytes of values", sparse.indices().nbytes, "of indices")
try:
    sparse.untyped_storage()
except NotImplementedError as error:
    message = str(error)
    print("NotImplementedError:", message)

# sphinx_gallery_start_ignore
assert message == "Cannot access storage of SparseTensorImpl"
assert z.imag.stride() == (2,) and z.imag.storage_offset() == 1
for _part in (z.real, z.imag):
    assert _part.untyped_storage().data_ptr() == z.untyped_storage().data_ptr()
assert sparse.values().nbytes == 4000 and sparse.indices().nbytes == 16000
# sphinx_gallery_end_ignore

# %%
# This one has the layout ``torch.sparse_coo`` and holds two tensors instead, values and indices.

# %%
# What people get wrong
# ---------------------
# **Deleting the big tensor.** ``del big`` removes a name, but the slice still keeps the storage. Below, ``big`` uses the memory
# of a NumPy array, so that a weak reference tells when it is freed:


def watched():
    array = np.zeros(1_000_000, dtype=np.float32)
    return torch.from_numpy(array), weakref.ref(array)


big, watch = watched()
small = big[:10]
del big
print("after del big: freed?", watch() is None)
small = small.clone()
print("after the clone: freed?", watch() is None)

# sphinx_gallery_start_ignore
assert watch() is None
big, watch = watched()
small = big[:10]
del big
assert watch() is not None
small = small.clone()
assert watch() is None
# sphinx_gallery_end_ignore

# %%
# **Cloning an activation without detach().** The clone is a node of the graph, and the graph keeps what it has :ref:`saved
# <sphx_glr_gallery_memory_what_is_saved.py>`: the activations of all 64 images.

h = torch.relu(torch.nn.Linear(1000, 1000)(torch.zeros(64, 1000)))
kept = h[0].clone()
node = kept.grad_fn.next_functions[0][0].next_functions[0][0]
print(node.name(), "keeps", node._saved_result.shape)
print(h[0].detach().clone().grad_fn)

# sphinx_gallery_start_ignore
assert node._saved_result.untyped_storage().data_ptr() == h.untyped_storage().data_ptr()
assert h[0].detach().clone().grad_fn is None
_memory = torch.multiprocessing.reductions.StorageWeakRef(h.untyped_storage())
del h, node
assert not _memory.expired()
kept = kept.detach()
assert _memory.expired()
# sphinx_gallery_end_ignore

# %%
# **Calling contiguous(), detach() or deepcopy().** Of these nine calls, two leave ten numbers only:
#
# .. how-measured:: This code deletes big after each call, asks if its memory was freed, and saves the result.

import copy

import pandas as pd

CALLS = {
    "big[:10]": lambda big: big[:10],
    "big[:10].contiguous()": lambda big: big[:10].contiguous(),
    "big[:10].detach()": lambda big: big[:10].detach(),
    'big[:10].to("cpu")': lambda big: big[:10].to("cpu"),
    "nn.Parameter(big[:10])": lambda big: torch.nn.Parameter(big[:10]),
    "copy.copy(big[:10])": lambda big: copy.copy(big[:10]),
    "copy.deepcopy(big[:10])": lambda big: copy.deepcopy(big[:10]),
    "big[:10].clone()": lambda big: big[:10].clone(),
    "big[list(range(10))]": lambda big: big[list(range(10))],
}


def measure(call):
    big, watch = watched()
    small = call(big)
    del big
    return {
        "keeps big": "yes" if watch() is not None else "no",
        "storage, bytes": small.untyped_storage().nbytes(),
        "file, kB": round(len(saved(small).getvalue()) / 1000),
    }


def tabulate_what_is_kept():
    rows = {name: measure(call) for name, call in CALLS.items()}
    return pd.DataFrame(rows).T.rename_axis(columns="call")


# sphinx_gallery_start_ignore
table = tabulate_what_is_kept()
assert table["keeps big"].tolist() == ["yes"] * 6 + ["no"] * 3
assert table["storage, bytes"].tolist() == [4_000_000] * 7 + [40] * 2
assert all(table["file, kB"].iloc[:7] > 4000) and all(table["file, kB"].iloc[7:] < 5)
_grid = torch.zeros(1000, 1000)
assert _grid[:, :1].contiguous().untyped_storage().nbytes() == 4000
assert _grid[:, ::2].clone().untyped_storage().nbytes() == 2_000_000
# sphinx_gallery_end_ignore

# %%
# The slice is contiguous, so ``contiguous()`` returns it unchanged:

tabulate_what_is_kept()

# %%
# The result of ``deepcopy`` has a copy of the *whole* storage.
#
# **Adding up nbytes to see what is in use.** ``nbytes`` of a tensor is what its elements would need. Count the storages
# instead, each of them once:

row, wide = torch.zeros(1000, 1000)[0], torch.zeros(1).expand(1000, 1000)
for tensor in (row, wide):
    print(tensor.nbytes, tensor.untyped_storage().nbytes())

tensors = [row, row.view(10, 100), wide]
storages = {t.untyped_storage().data_ptr(): t.untyped_storage() for t in tensors}
print("in use:", sum(storage.nbytes() for storage in storages.values()))

# sphinx_gallery_start_ignore
assert (row.nbytes, row.untyped_storage().nbytes()) == (4000, 4_000_000)
assert (wide.nbytes, wide.untyped_storage().nbytes()) == (4_000_000, 4)
assert sum(storage.nbytes() for storage in storages.values()) == 4_000_004
# sphinx_gallery_end_ignore

# %%
# In old code, replace ``storage()`` by ``untyped_storage()``, which counts bytes instead of elements.

# %%
# Exercise
# --------
# A loop runs over 20 batches of shape ``(64, 1000)`` and keeps the first row of each in a list. How many bytes does the list
# keep in memory, as written, and with ``.clone()``?
#
# .. solution::
#
# A row is a view, so each row keeps its batch: 20 · 64 · 1000 numbers of four bytes. The batches have no graph, so a clone
# keeps the row alone, a 64th of that.

views, clones = [], []
for _ in range(20):
    batch = torch.zeros(64, 1000)
    views.append(batch[0])
    clones.append(batch[0].clone())

for rows in (views, clones):
    print(sum(row.untyped_storage().nbytes() for row in rows))

# predict: [sum(row.untyped_storage().nbytes() for row in rows) for rows in (views,
#   clones)] -- How many bytes does the list keep as written, and with ``.clone()``?

# sphinx_gallery_start_ignore
assert sum(row.untyped_storage().nbytes() for row in views) == 5_120_000
assert sum(row.untyped_storage().nbytes() for row in clones) == 80_000
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_tensors_copy_table.py`: which operations share a storage.
# - In PyTorch's reference: `saving and loading tensors preserves views
#   <https://docs.pytorch.org/docs/stable/notes/serialization.html#saving-and-loading-tensors-preserves-views>`__, `torch.load
#   <https://docs.pytorch.org/docs/stable/generated/torch.load.html>`__ and `torch.UntypedStorage
#   <https://docs.pytorch.org/docs/stable/storage.html>`__.
