r"""
Storage: why a small view keeps a large tensor, and torch.save writes it whole
==============================================================================

A tensor does not hold numbers. It is a window on a *storage*, a block of bytes that several tensors can share. The
storage lives as long as any of them does, and ``torch.save`` writes all of it. This page shows what a storage is, how
ten numbers come to occupy four megabytes in memory and in a file, and which calls put an end to it.
"""

# %%
# Bytes, and a window on them
# ---------------------------
# ``untyped_storage()`` gives the block. It knows its size and its device, and nothing of shapes or types: a view with
# another type reads the same bytes as other numbers.

import copy
import io
import textwrap
import warnings
import weakref

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch

t = torch.tensor([1.0, 2.0])
storage = t.untyped_storage()

print("bytes:      ", storage.nbytes(), "on", storage.device)
print("as integers:", t.view(torch.int32).tolist())
print("as bytes:   ", t.view(torch.uint8).tolist())
assert t.view(torch.uint8).tolist() == list(storage)

# sphinx_gallery_start_ignore
assert storage.nbytes() == 8 and str(storage.device) == "cpu"
# sphinx_gallery_end_ignore

# %%
# The tensor adds a type, a shape, an offset and :ref:`strides <sphx_glr_gallery_tensors_strides.py>`. Its
# ``data_ptr()`` is the address of its first element, which need not be the address of the storage.

x = torch.zeros(4, 6)
last = x[2:, 3:]
for name, tensor in (("x", x), ("last", last), ("last.clone()", last.clone())):
    block = tensor.untyped_storage()
    start = tensor.data_ptr() - block.data_ptr()
    print(f"{name:<12} needs {tensor.nbytes} bytes, storage {block.nbytes()}", end="")
    print(f", first element at byte {start}")

# sphinx_gallery_start_ignore
assert last.data_ptr() - x.data_ptr() == last.storage_offset() * 4 == 60
assert last.nbytes == 24 and last.untyped_storage().nbytes() == 96
# sphinx_gallery_end_ignore

# %%
# So there are two numbers of bytes. ``nbytes`` of the tensor is what its elements would need. ``nbytes()`` of the
# storage is what is there.

# %%
# A small view keeps a large storage
# ----------------------------------
# When is memory given back? A NumPy array can be watched, and a tensor can borrow its memory. The array dies when the
# storage on it does.


def watched():
    array = np.zeros(1_000_000, dtype=np.float32)
    return torch.from_numpy(array), weakref.ref(array)


big, watch = watched()
small = big[:10]
del big
print("big deleted, small is a view:", "kept" if watch() is not None else "freed")
small = small.clone()
print("small replaced by its clone: ", "kept" if watch() is not None else "freed")
assert watch() is None

# sphinx_gallery_start_ignore
big, watch = watched()
small = big[:10]
del big
assert watch() is not None
small = small.clone()
assert watch() is None
# sphinx_gallery_end_ignore

# %%
# ``del big`` removed a name. Ten numbers kept a million alive, until they had a storage of their own. A graph keeps a
# storage in the same way, if one of its nodes has :ref:`saved <sphx_glr_gallery_memory_what_is_saved.py>` a view of
# it:

factor = torch.ones(10, requires_grad=True)
big, watch = watched()
loss = (big[:10] * factor).sum()
del big
print("before backward:", "kept" if watch() is not None else "freed")
loss.backward()
print("after backward: ", "kept" if watch() is not None else "freed")
assert watch() is None

# sphinx_gallery_start_ignore
big, watch = watched()
loss = (big[:10] * factor).sum()
del big
assert watch() is not None
# sphinx_gallery_end_ignore

# %%
# torch.save writes the storage
# -----------------------------
# Saving goes into a buffer here, where a file would do as well. Each call below makes something small out of ``big``.
# The first column tells whether it keeps ``big``, the second the storage that it has, the third the size of the file.


def saved(thing):
    buffer = io.BytesIO()
    torch.save(thing, buffer)
    return buffer


def measure(call):
    big, watch = watched()
    small = eval(call, {"big": big, "torch": torch, "copy": copy})
    del big
    return {
        "keeps big": "yes" if watch() is not None else "no",
        "storage, bytes": small.untyped_storage().nbytes(),
        "saved, kB": round(len(saved(small).getvalue()) / 1000),
    }


# %%
# Ten numbers, nine ways:

calls = """
big[:10]; big[:10].contiguous(); big[:10].detach(); big[:10].to("cpu");
torch.nn.Parameter(big[:10]); copy.copy(big[:10]); copy.deepcopy(big[:10]);
big[:10].clone(); big[list(range(10))]
"""
calls = [call.strip() for call in calls.split(";")]
table = pd.DataFrame({call: measure(call) for call in calls}).T

# sphinx_gallery_start_ignore
assert table["keeps big"].tolist() == ["yes"] * 6 + ["no"] * 3
assert table["storage, bytes"].tolist() == [4_000_000] * 7 + [40] * 2
assert all(table["saved, kB"].iloc[:7] > 4000) and all(table["saved, kB"].iloc[7:] < 5)
# sphinx_gallery_end_ignore
table.rename_axis(columns="call")

# %%
# The first ten elements lie in one piece, so ``contiguous()`` returns it as it is. ``detach``, ``to``
# and ``Parameter`` are windows too. ``deepcopy`` is the odd one: it lets ``big`` go, and copies the *whole* storage.
# Of these nine, only ``clone`` and an index that copies leave ten numbers.

# %%
# Why is it saved like this? Because sharing is part of what is saved. Two overlapping views come back as two
# overlapping views, and a storage with several names is written once.

big = torch.zeros(1_000_000)
things = {
    "big": big,
    "[big, big.view(10, -1)]": [big, big.view(10, -1)],
    "[big[:10], big[5:15]]": [big[:10], big[5:15]],
    "the same, cloned": [big[:10].clone(), big[5:15].clone()],
    "big[:1].expand(1000, 1000)": big[:1].expand(1000, 1000),
    "the same, of a clone": big[:1].clone().expand(1000, 1000),
}
sizes = {name: len(saved(thing).getvalue()) for name, thing in things.items()}

# figure: Six bars on a logarithmic scale, the kilobytes that torch.save writes. About 4,000: big, a list of big and a
#   view of it, a list of two small views of big, and one element of big expanded to a million. About 2: the two small
#   views cloned, and the element cloned before it is expanded.
fig, ax = plt.subplots(figsize=(7, 2.8), layout="constrained")
for y, size in enumerate(sizes.values()):
    ax.barh(y, size, color="#c2410c" if size > 100_000 else "#2563eb", height=0.6)
    ax.text(size * 1.15, y, f"{size / 1000:,.0f} kB", va="center")
ax.set_yticks(range(len(sizes)), sizes)
ax.set(xscale="log", xlim=(500, 4e7), ylim=(5.6, -0.6), xlabel="bytes, logarithmic")
ax.set_title("What torch.save writes")

# sphinx_gallery_start_ignore
_large = [size > 4_000_000 for size in sizes.values()]
assert _large == [True, True, True, False, True, False]
assert (
    max(sizes.values()) < 4_010_000
    and sizes["the same, cloned"] < 5000 > sizes["the same, of a clone"]
)
# sphinx_gallery_end_ignore

# %%
# The two views are loaded as windows on one storage again, with all its four megabytes. A write through one of them
# is seen through the other. Clones would be small, and have lost this: it is one or the other (`pytorch#1995
# <https://github.com/pytorch/pytorch/issues/1995>`__).

buffer = saved([big[:10], big[5:15]])
buffer.seek(0)
first, second = torch.load(buffer)
first[5] = 7
print("second[0] =", second[0].item(), "  storage", second.untyped_storage().nbytes())
assert second[0] == 7 and second.untyped_storage().nbytes() == 4_000_000

# %%
# Complex and sparse tensors
# --------------------------
# A complex number is stored as two real ones, next to one another. The real part, the imaginary part and the pairs
# are views. ``conj()`` is one too: it sets a mark on the tensor and computes nothing, until somebody needs the
# numbers.

z = torch.view_as_complex(torch.arange(6.0).reshape(3, 2))
views = "z; z.real; z.imag; torch.view_as_real(z); z.conj(); z.conj().resolve_conj()"
for call in views.split("; "):
    v = eval(call)
    shares = v.untyped_storage().data_ptr() == z.untyped_storage().data_ptr()
    print(f"{call:<23} strides {v.stride()!s:<6} offset {v.storage_offset()}", end="")
    print("   shares" if shares else "   copy", "+ conj mark" * v.is_conj())

# sphinx_gallery_start_ignore
assert z.imag.stride() == (2,) and z.imag.storage_offset() == 1 and not shares
assert z.conj().is_conj() and not v.is_conj()
assert z.conj().untyped_storage().data_ptr() == z.untyped_storage().data_ptr()
# sphinx_gallery_end_ignore

# %%
# A sparse tensor has no storage of its own. It holds two other tensors, the values that are not zero and the indices
# where they belong, and those have one each.

sparse = torch.eye(1000).to_sparse()
try:
    sparse.untyped_storage()
except NotImplementedError as error:
    print("NotImplementedError:", error)
    assert "Cannot access storage of Sparse" in str(error)

for name, part in (("values", sparse.values()), ("indices", sparse.indices())):
    print(f"{name:<7} {part.untyped_storage().nbytes():>7} bytes, {tuple(part.shape)}")
print(f"dense   {sparse.to_dense().untyped_storage().nbytes():>7} bytes")

# sphinx_gallery_start_ignore
assert (
    sparse.values().untyped_storage().nbytes() == 4000
    and part.untyped_storage().nbytes() == 16000
)
# sphinx_gallery_end_ignore

# %%
# What people get wrong
# ---------------------
# **Adding up** ``nbytes`` **to learn what is in use.** Windows on one storage are counted as often as there are
# windows, an expanded tensor with memory that it never had, and a small view without the rest. Count storages, each
# of them once.

small, wide = torch.zeros(1000, 1000)[0], torch.zeros(1).expand(1000, 1000)
cases = {"x, x.t()": [x, x.t()], "one row of 1000": [small], "expanded": [wide]}
for name, tensors in cases.items():
    blocks = [tensor.untyped_storage() for tensor in tensors]
    real = sum({block.data_ptr(): block.nbytes() for block in blocks}.values())
    print(f"{name:<21} nbytes {sum(t.nbytes for t in tensors):>7}   storages {real}")

# sphinx_gallery_start_ignore
assert sum(t.nbytes for t in [x, x.t()]) == 192 == 2 * x.untyped_storage().nbytes()
assert small.nbytes == 4000 and small.untyped_storage().nbytes() == 4_000_000
assert wide.nbytes == 4_000_000 and wide.untyped_storage().nbytes() == 4
# sphinx_gallery_end_ignore

# %%
# **Asking for** ``storage()``. Older code does, and gets a storage with a type, which is about to go.

# sphinx_gallery_start_ignore
torch.storage._reset_warn_typed_storage_removal()
# sphinx_gallery_end_ignore
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    kind = type(x.storage()).__name__
print(textwrap.fill(f"{kind}: {caught[0].message}", 88))
assert "use tensor.untyped_storage() instead" in str(caught[0].message)

# %%
# Exercise
# --------
# A loop runs over 20 batches of shape ``(64, 1000)``, and keeps the first row of each, to look at it later. How many
# bytes does it keep, as written, and with ``.clone()``?
#
# .. solution::
#
# A row is a view, so each keeps its batch: 20 · 64 · 1000 numbers of four bytes. A clone keeps the row alone, a 64th
# of that.

kept = {"view": [], "clone": []}
for _ in range(20):
    batch = torch.zeros(64, 1000)
    kept["view"].append(batch[0])
    kept["clone"].append(batch[0].clone())
del batch

totals = {}
for name, rows in kept.items():
    totals[name] = sum(row.untyped_storage().nbytes() for row in rows)
    print(f"{name:<5} {totals[name]:>7} bytes")
assert totals == {"view": 5_120_000, "clone": 80_000}

# %%
# See also
# --------
# - Before: :ref:`sphx_glr_gallery_tensors_detach_clone_data.py`, which calls leave the graph, and which the memory.
# - Next: :ref:`sphx_glr_gallery_modes_grad_modes.py`, what is recorded at all.
# - :ref:`sphx_glr_gallery_tensors_copy_table.py`: which operations share a storage, for more than seventy calls.
# - In PyTorch's reference: `saving and loading tensors preserves views
#   <https://docs.pytorch.org/docs/stable/notes/serialization.html#saving-and-loading-tensors-preserves-views>`__ and
#   `torch.UntypedStorage <https://docs.pytorch.org/docs/stable/storage.html>`__.
