r"""
Storage: why a small slice keeps, and torch.save writes, the whole tensor
=========================================================================

.. index::
   single: saved file is much bigger than the tensor
   single: memory is not freed after del

.. in-short::

   A slice such as ``big[:10]`` has no memory of its own: it shares the *storage* of ``big``, a block of bytes. The slice
   keeps all of the block in memory, and ``torch.save`` writes all of it. Call ``big[:10].clone()`` before you
   keep or save a small part. ``contiguous()`` does not help if the slice is contiguous already. Do not clone if the loaded
   tensors must share memory.
"""

# %%
# The problem: ten numbers in a file of 4 MB
# ------------------------------------------
# You save ten numbers, such as the activations of one image of a batch, and the checkpoint is as large as the original:
#
# .. how-measured:: This code saves each thing into a buffer, as into a file, and draws its size.

import io

import matplotlib.pyplot as plt
import torch


def saved(thing):
    buffer = io.BytesIO()
    torch.save(thing, buffer)
    return buffer


def size(thing):
    return len(saved(thing).getvalue())


def draw(things):
    _, ax = plt.subplots(figsize=(7, 2), layout="constrained")
    for y, bytes_ in enumerate(map(size, things.values())):
        color = "#c2410c" if bytes_ > 100_000 else "#2563eb"
        ax.barh(y, bytes_, color=color, height=0.6)
        ax.text(bytes_ * 1.15, y, f"{bytes_ / 1000:,.0f} kB", va="center")
    ax.set_yticks(range(len(things)), things)
    ax.set(xscale="log", xlim=(500, 4e7), ylim=(4.6, -0.6), xlabel="bytes, logarithmic")
    ax.set_title("torch.save writes whole storages, each once")


# %%
# The size of the file, for five things:

import torch

big = torch.zeros(1_000_000)
things = {"big": big, "big[:10]": big[:10], "big[:10].clone()": big[:10].clone()}
things["[big[:10], big[5:15]]"] = [big[:10], big[5:15]]
things["big[:1].expand(1000, 1000)"] = big[:1].expand(1000, 1000)
draw(things)

# figure: Five bars on a logarithmic scale, the kilobytes that torch.save writes. About 4,000: big, its first ten
#   elements, a list of two small views of big, and one element of big expanded to a million. About 2: a clone of
#   the first ten elements.

# sphinx_gallery_start_ignore
_sizes = [size(thing) for thing in things.values()]
assert [_size > 4_000_000 for _size in _sizes] == [True, True, False, True, True]
assert max(_sizes) < 4_010_000 and min(_sizes) < 5000
assert size([big, big.view(10, -1)]) < 4_010_000  # once
assert size([big[:10].clone(), big[5:15].clone()]) < 5000
assert size(big[:1].clone().expand(1000, 1000)) < 5000
# sphinx_gallery_end_ignore

# %%
# What people get wrong
# ---------------------
# **Deleting the big tensor.** ``del big`` removes a name, and the slice still keeps the storage. Here ``big`` uses the memory
# of a NumPy array, and a weak reference tells when that array is freed:

import weakref

import numpy as np


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
_factor = torch.ones(10, requires_grad=True)
big, watch = watched()
_loss = (big[:10] * _factor).sum()
del big
assert watch() is not None
_loss.backward()
assert watch() is None
# sphinx_gallery_end_ignore

# %%
# A graph keeps a storage in the same way, if a node has :ref:`saved <sphx_glr_gallery_memory_what_is_saved.py>` a view of it.
#
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
        "file, kB": round(size(small) / 1000),
    }


table = pd.DataFrame({name: measure(call) for name, call in CALLS.items()}).T

# sphinx_gallery_start_ignore
assert table["keeps big"].tolist() == ["yes"] * 6 + ["no"] * 3
assert table["storage, bytes"].tolist() == [4_000_000] * 7 + [40] * 2
assert all(table["file, kB"].iloc[:7] > 4000) and all(table["file, kB"].iloc[7:] < 5)
_grid = torch.zeros(1000, 1000)
assert _grid[:, :1].contiguous().untyped_storage().nbytes() == 4000
assert _grid[:, ::2].clone().untyped_storage().nbytes() == 2_000_000
# sphinx_gallery_end_ignore

# %%
# The slice is contiguous, so ``contiguous()`` returns it unchanged:

table.rename_axis(columns="call")

# %%
# The result of ``deepcopy`` does not keep ``big``, but it has a copy of the *whole* storage.
#
# **Adding up nbytes to see what is in use.** ``nbytes`` of a tensor is what its elements would need. ``nbytes()`` of its
# storage is what is there. So count storages, and each of them once:

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
# **Using storage() from old code.** The first call warns:

import warnings

# sphinx_gallery_start_ignore
torch.storage._reset_warn_typed_storage_removal()
# sphinx_gallery_end_ignore
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    row.storage()

print(str(caught[0].message).split(". ")[0])

# sphinx_gallery_start_ignore
assert str(caught[0].message).startswith("TypedStorage is deprecated")
assert "use tensor.untyped_storage() instead" in str(caught[0].message)
# sphinx_gallery_end_ignore

# %%
# Write ``untyped_storage()``. It counts bytes, not elements.

# %%
# What a storage is
# -----------------
# A storage is a block of bytes on one device. It knows nothing of shapes or dtypes: a view with another dtype reads the same
# bytes as other numbers.

t = torch.tensor([1.0, 2.0])

print(t.untyped_storage().nbytes(), "bytes on", t.untyped_storage().device)
print(t.view(torch.int32).tolist())
print(t.view(torch.uint8).tolist())

# sphinx_gallery_start_ignore
assert t.view(torch.uint8).tolist() == list(t.untyped_storage())
assert t.untyped_storage().nbytes() == 8
# sphinx_gallery_end_ignore

# %%
# The tensor adds a dtype, a shape, :ref:`strides <sphx_glr_gallery_tensors_strides.py>` and an offset, the place of its first
# element:

x = torch.zeros(4, 6)
last = x[2:, 3:]
for tensor in (x, last, last.clone()):
    storage = tensor.untyped_storage()
    print(tensor.nbytes, "of", storage.nbytes(), "offset", tensor.storage_offset())

# sphinx_gallery_start_ignore
assert last.data_ptr() - x.data_ptr() == last.storage_offset() * 4 == 60
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
# sphinx_gallery_end_ignore

# %%
# Clones would be small, and they would not share. For a large file, ``torch.load(path, mmap=True)`` maps the file into memory
# instead of reading it all at once, as PyTorch's reference says. Since 2.6, ``torch.load`` has ``weights_only=True`` by
# default. It loads plain tensors, Python's numbers and strings in a list, tuple, dict or set, and :ref:`refuses a whole module
# <sphx_glr_gallery_errors_weights_only_load_failed.py>`.
#
# Most pairs of dtypes on one storage cannot be saved together: ``torch.save([t, t.view(torch.int32)], path)`` raises an error.
# For a complex ``z``, ``[z, z.real]`` does too.
#
# To share a storage with other processes, move it to shared memory with ``share_memory_()``. That moves it for each tensor on
# it:

slice_of_x = x[0]
x.share_memory_()
print(x.is_shared(), slice_of_x.is_shared())

# sphinx_gallery_start_ignore
assert x.is_shared() and slice_of_x.is_shared() and not torch.zeros(2).is_shared()
slice_of_x[0] = 5
assert x[0, 0] == 5
import tempfile
from pathlib import Path

with tempfile.TemporaryDirectory() as _folder:
    _path = Path(_folder) / "ten.pt"
    torch.save(torch.arange(10.0), _path)
    _mapped = torch.load(_path, mmap=True)
    if (_maps := Path("/proc/self/maps")).exists():  # Linux lists what is mapped
        assert str(_path.resolve()) in _maps.read_text()
        _mapped = _mapped.tolist()
        assert str(_path.resolve()) not in _maps.read_text()
        assert torch.load(_path).tolist() == _mapped == list(range(10))
    del _mapped
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
assert saved([t.view(torch.uint8), t.view(torch.uint16)])  # an exception
_plain = [{"a": (1, 2.5, "b", None)}, {3}, {"t": torch.ones(1)}]
buffer = saved(_plain)
buffer.seek(0)
assert torch.load(buffer) == _plain
# sphinx_gallery_end_ignore

# %%
# Who keeps the storage?
# ----------------------
# ``big[:10]._base`` is ``big``. After ``detach()``, ``_base`` is None. To find the other tensors on a storage, ask Python's
# garbage collector:

import gc


def on_storage(address):
    plain = (torch.Tensor, torch.nn.Parameter)
    found = [o for o in gc.get_objects() if type(o) in plain]
    dense = [t for t in found if t.layout == torch.strided]
    return [t for t in dense if t.untyped_storage().data_ptr() == address]


report = {"features": big[:10], "loss": big.mean()}
print(report["features"]._base is big)
print(sorted(tuple(t.shape) for t in on_storage(big.untyped_storage().data_ptr())))

# sphinx_gallery_start_ignore
_found = on_storage(big.untyped_storage().data_ptr())
assert sorted(len(t) for t in _found) == [10, 1_000_000]
assert big[:20][:10]._base is big and big[:10].detach()._base is None
_lazy = torch.nn.LazyLinear(2)  # its parameters have no storage yet
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
# This finds plain tensors and parameters that have a Python object. A graph can keep a storage without one. On a GPU, :ref:`a
# memory snapshot <sphx_glr_gallery_cuda_memory_snapshot.py>` shows where each block was allocated.

# %%
# Complex and sparse tensors
# --------------------------
# A complex number is stored as two real ones. The real part and the imaginary part are views. ``conj()`` is a view too, with a
# mark on it. A sparse tensor has no storage of its own:

z = torch.tensor([1 + 2j, 3 + 4j])
print(z.imag.stride(), z.imag.storage_offset(), z.conj().is_conj())

sparse = torch.eye(1000).to_sparse()
print(sparse.values().nbytes, "bytes of values", sparse.indices().nbytes, "of indices")
try:
    sparse.untyped_storage()
except NotImplementedError as error:
    message = str(error)
    print("NotImplementedError:", message)

# sphinx_gallery_start_ignore
assert message == "Cannot access storage of SparseTensorImpl"
assert z.imag.stride() == (2,) and z.imag.storage_offset() == 1 and z.conj().is_conj()
for _part in (z.real, z.imag, z.conj(), torch.view_as_real(z)):
    assert _part.untyped_storage().data_ptr() == z.untyped_storage().data_ptr()
_resolved = z.conj().resolve_conj()
assert _resolved.untyped_storage().data_ptr() != z.untyped_storage().data_ptr()
assert sparse.values().nbytes == 4000 and sparse.indices().nbytes == 16000
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    _rows = torch.eye(1000).to_sparse_csr()
assert [len(_rows.crow_indices()), len(_rows.col_indices()), len(_rows.values())] == [
    1001,
    1000,
    1000,
]
_raised = []
try:
    _rows.untyped_storage()
except NotImplementedError as error:
    _raised.append("Cannot access storage of SparseCsr" in str(error))
assert _raised == [True]
# sphinx_gallery_end_ignore

# %%
# This one has the layout ``torch.sparse_coo`` and holds two tensors, values and indices. A tensor of the layout
# ``torch.sparse_csr`` holds three: values, column indices, and where each row begins.

# %%
# Exercise
# --------
# A loop runs over 20 batches of shape ``(64, 1000)`` and keeps the first row of each in a list. How many bytes does the list
# keep in memory, as written, and with ``.clone()``?
#
# .. solution::
#
# A row is a view, so each row keeps its batch: 20 · 64 · 1000 numbers of four bytes. A clone keeps the row alone, a 64th of
# that.

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
