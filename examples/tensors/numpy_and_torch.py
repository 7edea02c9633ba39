r"""
torch.tensor, as_tensor, from_numpy: copy or share
==================================================

.. index::
   single: convert a NumPy array to a tensor without a copy
   single: convert a tensor to a NumPy array
   single: torch.Tensor or torch.tensor
   single: UserWarning Creating a tensor from a list of numpy.ndarrays is extremely slow
   ! single: At least one stride in the given numpy array is negative
   ! single: torch.from_numpy fails after np.flip, np.rot90 or [::-1]
   ! single: BGR to RGB, image[:, :, ::-1] to a tensor
   ! single: UserWarning The given NumPy array is not writable
   ! single: reverse a tensor, step must be greater than zero

.. in-short::

   ``torch.tensor(a)`` copies the NumPy array ``a``. On the CPU, ``torch.from_numpy(a)`` and ``torch.as_tensor(a)`` share its
   memory: ``a[0] = 9`` changes the tensor, too. ``x.numpy()`` shares in the other direction. A ``float64`` array gives a
   ``float64`` tensor. To get ``float32``, write ``torch.as_tensor(a, dtype=torch.float32)``, which copies only if it has to
   convert. If your program writes to the array later, use ``torch.tensor(a)``.
"""

# %%
# Does a write into the array change the tensor?
# ----------------------------------------------
# Images, sensor data and columns of pandas come as NumPy arrays, and often the array is filled again after you made a tensor.
# A tensor that shares the memory then changes too. A copy stays as it was:

import weakref

import numpy as np
import torch

a = np.array([1.0, 2.0, 3.0])
t, c = torch.from_numpy(a), torch.tensor(a)
a[0] = 9
print("from_numpy:", t.tolist(), "  tensor:", c.tolist())

# %%
# The table asks the same of more calls, with an array of ``float32`` and one of ``float64``, NumPy's default. *Shares* means
# that the tensor saw the write. The last column is the dtype that the ``float64`` array gives.
#
# .. how-measured:: Each call makes a tensor, then the array is written to: does the tensor see it?

import pandas as pd

CALLS = {
    "torch.tensor(a)": torch.tensor,
    "torch.from_numpy(a),  torch.from_dlpack(a)": torch.from_numpy,
    "torch.as_tensor(a),  torch.asarray(a)": torch.as_tensor,
    "torch.as_tensor(a, dtype=torch.float32)": lambda a: torch.as_tensor(
        a, dtype=torch.float32
    ),
    "torch.from_numpy(a).float()": lambda a: torch.from_numpy(a).float(),
    "torch.Tensor(a),  torch.FloatTensor(a)": torch.Tensor,
}


def sees_a_write(call, dtype):
    a = np.zeros(3, dtype=dtype)
    tensor = call(a)
    a[0] = 9
    return "shares" if tensor[0] == 9 else "copies"


def tabulate_sharing():
    rows = {}
    for name, call in CALLS.items():
        dtypes = ("float32", "float64")
        rows[name] = {f"{dtype} array": sees_a_write(call, dtype) for dtype in dtypes}
        made = call(np.zeros(3))
        rows[name]["dtype of the tensor"] = str(made.dtype).removeprefix("torch.")
    return pd.DataFrame(rows).T


# %%
# Avoid the last row, ``torch.Tensor`` with a capital T. It reads a single integer as a size, so ``torch.Tensor(3)`` has three
# numbers that nobody set.

# sphinx_gallery_start_ignore
table = tabulate_sharing()
_both, _neither, _depends = ["shares"] * 2, ["copies"] * 2, ["shares", "copies"]
assert [list(_row) for _row in table.to_numpy()] == [
    [*_neither, "float64"],
    [*_both, "float64"],
    [*_both, "float64"],
    [*_depends, "float32"],
    [*_depends, "float32"],
    [*_depends, "float32"],
]
for _pair in (
    (torch.from_numpy, torch.from_dlpack),
    (torch.as_tensor, torch.asarray),
    (torch.Tensor, torch.FloatTensor),
):
    for _dtype in ("float32", "float64"):
        assert len({sees_a_write(_call, _dtype) for _call in _pair}) == 1
        assert len({_call(np.zeros(3, dtype=_dtype)).dtype for _call in _pair}) == 1
for _call in CALLS.values():
    for _dtype in ("float32", "float64"):
        _a = np.zeros(3, dtype=_dtype)
        _call(_a)[0] = 9
        assert (_a[0] == 9) == (sees_a_write(_call, _dtype) == "shares")
assert torch.Tensor(3).shape == (3,) and torch.tensor(3).shape == ()
# sphinx_gallery_end_ignore
tabulate_sharing()

# %%
# Why: one block of memory, two objects
# -------------------------------------
# An array and a tensor are both a small object that points to a block of memory. ``from_numpy`` makes a second object for the
# same block. A list of Python numbers lacks such a block, so ``torch.tensor``, ``as_tensor`` and ``asarray`` copy a list.
#
# .. how-measured:: This code draws each object with an arrow to its block. Equal addresses are one block.

import matplotlib.pyplot as plt


def draw_memory_blocks(objects):
    _, ax = plt.subplots(figsize=(5.4, 2.4), layout="constrained")
    addresses = [t.__array_interface__["data"][0] for t in objects.values()]
    blocks = list(dict.fromkeys(addresses))
    for row, (name, values) in enumerate(objects.items()):
        ax.text(0, -row, name, va="center", family="monospace")
        block = blocks.index(addresses[row])
        y = (-0.5, -2.0)[block]
        color = ("#2563eb", "#c2410c")[block]
        arrow = {"arrowstyle": "->", "color": color}
        ax.annotate("", (5.1, y), (3.9, -row), arrowprops=arrow)
        for i, number in enumerate(values):
            box = plt.Rectangle(
                (5.2 + 0.8 * i, y - 0.3), 0.8, 0.6, fill=False, edgecolor=color
            )
            ax.add_patch(box)
            ax.text(5.6 + 0.8 * i, y, f"{number:g}", ha="center", va="center")
    ax.set(xlim=(-0.1, 7.7), ylim=(-2.5, 0.5))
    ax.axis("off")
    ax.set_title("Two names for one block, and a copy")


# %%
# The array and the two tensors from the beginning, after ``a[0] = 9``:

# figure: Three objects and two blocks of memory. The array a and the tensor from_numpy(a) point to the same block, which
#   holds 9, 2, 3. The tensor made by torch.tensor(a) points to a separate block, which holds 1, 2, 3.
arrays = {"a": a, "torch.from_numpy(a)": t.numpy(), "torch.tensor(a)": c.numpy()}
draw_memory_blocks(arrays)

# sphinx_gallery_start_ignore
assert t.tolist() == [9, 2, 3] and c.tolist() == [1, 2, 3]
assert t.numpy().__array_interface__["data"] == a.__array_interface__["data"]
assert c.numpy().__array_interface__["data"] != a.__array_interface__["data"]
for _call in (torch.tensor, torch.as_tensor, torch.asarray, torch.Tensor):
    _list = [1.0, 2.0]
    _call(_list)[0] = 9
    assert _list == [1.0, 2.0]
# sphinx_gallery_end_ignore

# %%
# The tensor keeps the array alive, so you may delete the name ``a``. In the same way, an array from ``x.numpy()`` keeps the
# memory of ``x``. If you convert ten numbers out of a large array, the :ref:`whole large block
# <sphx_glr_gallery_tensors_storage.py>` stays in memory.

del arrays
alive = weakref.ref(a)
del a
print("array alive:", alive() is not None, "  tensor:", t.tolist())
del t
print("array alive:", alive() is not None)

# sphinx_gallery_start_ignore
assert alive() is None
_a = np.ones(2)
_t = torch.from_numpy(_a)
_a += 1
_a = _a + 1
assert _t.tolist() == [2, 2] and _a.tolist() == [3, 3]
_a = np.zeros(100)
_alive, _t = weakref.ref(_a), torch.from_numpy(_a[:10])
del _a
assert _alive() is not None
_n = torch.ones(100)[:10].numpy()
assert _n.base.untyped_storage().nbytes() == 400
# sphinx_gallery_end_ignore

# %%
# ``a = a + 1`` makes a new array, so the tensor keeps the old one. But ``a += 1`` writes, so the tensor changes.
#
# From a tensor to an array
# -------------------------
# .. how-measured:: Each call makes an array, then the tensor is written to: does the array see it?

TENSORS = {
    "plain": lambda: torch.tensor([1.0, 2.0]),
    "requires grad": lambda: torch.tensor([1.0, 2.0], requires_grad=True),
    "bfloat16": lambda: torch.tensor([1.0, 2.0]).bfloat16(),
}
WAYS = {
    "x.numpy(),  np.asarray(x)": torch.Tensor.numpy,
    "x.detach().numpy(),  x.numpy(force=True)": lambda x: x.detach().numpy(),
    "x.numpy().copy()": lambda x: x.numpy().copy(),
    "np.array(x.tolist())": lambda x: np.array(x.tolist()),
}


def back(way, make):
    x = make()
    try:
        array = way(x)
    except (RuntimeError, TypeError):
        return "raises"
    x.detach()[0] = 9
    return "shares" if array[0] == 9 else "copies"


def tabulate_ways_back():
    found = [[back(way, make) for make in TENSORS.values()] for way in WAYS.values()]
    return pd.DataFrame(found, index=list(WAYS), columns=list(TENSORS))


# %%
# The same question the other way round, for three kinds of tensor:

# sphinx_gallery_start_ignore
ways = tabulate_ways_back()
assert ways.to_numpy().tolist() == [
    ["shares", "raises", "raises"],
    ["shares", "shares", "raises"],
    ["copies", "raises", "raises"],
    ["copies"] * 3,
]
assert [back(np.asarray, _make) for _make in TENSORS.values()] == list(ways.iloc[0])
_force = [back(lambda x: x.numpy(force=True), _make) for _make in TENSORS.values()]
assert _force == list(ways.iloc[1])
for _way in WAYS.values():
    assert _way(torch.tensor([1.0, 2.0])).tolist() == [1, 2]
assert torch.ones(2).bfloat16().float().numpy().tolist() == [1, 1]
assert np.array(torch.ones(2).tolist()).dtype == np.float64
_a = np.ones(2)
_own = torch.tensor(_a, requires_grad=True)
_a[0] = 9
assert _own[0] == 1 and _own.is_leaf
_meta = []
try:
    torch.ones(2, device="meta").numpy()
except TypeError as error:
    _meta.append(str(error))
assert _meta[0].startswith("can't convert meta device type tensor to numpy. Use")
# sphinx_gallery_end_ignore
tabulate_ways_back()

# %%
# - NumPy lacks ``bfloat16``, so write ``x.float().numpy()``.
# - ``tolist`` gives Python floats, and an array of those is ``float64``.
# - A tensor on a GPU :ref:`has to come to the CPU first <sphx_glr_gallery_errors_numpy_of_grad.py>`: ``x.cpu().numpy()``.
#   ``force=True`` does that, too.
#
# To train the values of an array, write ``torch.tensor(a, requires_grad=True)``: a leaf with separate memory.

# %%
# What people get wrong
# ---------------------
# **Keeping tensors of a buffer that is filled again.** A camera or a simulator writes each frame into the same array. So with
# ``from_numpy``, all frames that you kept are the last one:

buffer = np.zeros(2, dtype=np.float32)
shared, copied = [], []
for step in range(3):
    buffer[:] = step
    shared.append(torch.from_numpy(buffer))
    copied.append(torch.tensor(buffer))

print("from_numpy:", [t[0].item() for t in shared])
print("tensor:    ", [t[0].item() for t in copied])

# sphinx_gallery_start_ignore
assert [t[0].item() for t in shared] == [2, 2, 2]
assert [t[0].item() for t in copied] == [0, 1, 2]
# sphinx_gallery_end_ignore

# %%
# **Writing into an array that a graph needs.** Autograd counts in-place operations on a tensor, so that ``backward`` can refuse
# a saved tensor that has changed. It overlooks a write through NumPy. The gradient of :math:`w^2` at 1 is 2, but each number
# comes out as 10, without an error:

a = np.ones(3)
w = torch.from_numpy(a).requires_grad_()
loss = (w**2).sum()
a[:] = 5
loss.backward()
print(w.grad)

# graph: loss -- The leaf w lies on the memory of the array, and the write into the array is nowhere in the graph

# sphinx_gallery_start_ignore
assert w.grad.tolist() == [10, 10, 10] and w._version == 0
_w = torch.ones(2, requires_grad=True)
_y = _w.exp()
_y.detach().numpy()[:] = 0
_y.sum().backward()
assert _w.grad.tolist() == [0, 0]
_refused = []
_y = torch.ones(2, requires_grad=True).exp()
_y.detach().zero_()  # the same write, by PyTorch
try:
    _y.sum().backward()
except RuntimeError as error:
    _refused.append("modified by an inplace operation" in str(error))
assert _refused == [True]
# sphinx_gallery_end_ignore

# %%
# The array of ``y.detach().numpy()`` has the same danger (:ref:`more on such writes
# <sphx_glr_gallery_differentiation_inplace_and_versions.py>`). Use ``torch.tensor(a)`` and ``y.detach().numpy().copy()``.
#
# **Feeding float64 into a float32 model.** ``from_numpy`` and ``tensor`` keep the dtype of an array. Convert on the way in:

model = torch.nn.Linear(2, 1)
try:
    model(torch.from_numpy(np.ones(2)))
except RuntimeError as error:
    message = str(error)
    print("RuntimeError:", message)

output = model(torch.as_tensor(np.ones(2), dtype=torch.float32))

# sphinx_gallery_start_ignore
assert message == "mat1 and mat2 must have the same dtype, but got Double and Float"
assert output.dtype == torch.float32
# sphinx_gallery_end_ignore

# %%
# Exercise
# --------
# This function is called once with a ``float32`` array and once with a ``float64`` array. Which of them does it change? Change
# one call, so that it changes neither.


def centered(a):
    x = torch.as_tensor(a, dtype=torch.float32)
    x -= x.mean()
    return x


# %%
# .. solution::
#
# It changes the ``float32`` array: ``as_tensor`` has nothing to convert, so it shares. ``torch.tensor(a, dtype=torch.float32)``
# copies both.


def centered_copy(a):
    x = torch.tensor(a, dtype=torch.float32)
    x -= x.mean()
    return x


for function in (centered, centered_copy):
    f, d = np.array([1, 3], dtype=np.float32), np.array([1, 3], dtype=np.float64)
    function(f)
    function(d)
    print(function.__name__, f.tolist(), d.tolist())

# sphinx_gallery_start_ignore
_f, _d = np.array([1, 3], dtype=np.float32), np.array([1, 3], dtype=np.float64)
centered(_f), centered(_d)
assert (_f.tolist(), _d.tolist()) == ([-1, 1], [1, 3])
assert (f.tolist(), d.tolist()) == ([1, 3], [1, 3])
# sphinx_gallery_end_ignore

# %%
# Messages: reversed, read-only, a list of arrays
# -----------------------------------------------
# **At least one stride is negative.** NumPy reverses an array without moving a number, by a negative stride, which a tensor
# cannot have. ``[:, :, ::-1]`` of a BGR image, ``np.flip`` and ``np.rot90`` do that:

import numpy as np
import torch

# sphinx_gallery_start_ignore
raised = []
try:
    # sphinx_gallery_end_ignore
    image = np.array([[[1, 2, 3], [4, 5, 6]]])  # blue, green, red, as OpenCV reads it
    rgb = image[:, :, ::-1]
    x = torch.from_numpy(rgb)
# sphinx_gallery_start_ignore
except ValueError as error:
    raised.append(str(error))
    print("ValueError:", str(error).strip())
assert len(raised) == 1 and raised[0].startswith(
    "At least one stride in the given numpy array is negative, and tensors with negative strides are not currently supported."
)


def _refused(array, make=torch.from_numpy):
    try:
        make(array)
    except ValueError as error:
        return str(error) == raised[0]
    return False


assert _refused(rgb, torch.tensor) and _refused(rgb, torch.as_tensor)
assert _refused([rgb, rgb], torch.utils.data.default_collate)
for _array in (np.flip(image, 0), np.fliplr(image), np.rot90(np.ones((2, 3)))):
    assert _refused(_array) and not _refused(_array.copy())
assert not _refused(rgb.astype("float32"))
_one = np.ones((1, 2))[::-1]  # counts as contiguous, so this copies nothing
assert _refused(np.ascontiguousarray(_one)) and not _refused(_one.copy())
try:
    torch.from_numpy(image)[:, :, ::-1]
except ValueError as error:
    raised.append(str(error))
assert raised[1:] == ["step must be greater than zero"]
# sphinx_gallery_end_ignore

# %%
# Copy the array, or flip the tensor. Slices of a tensor have no negative steps: they say *step must be greater than zero*.

print(torch.from_numpy(rgb.copy()).tolist())
print(torch.from_numpy(image).flip(-1).tolist())

# sphinx_gallery_start_ignore
assert torch.from_numpy(rgb.copy()).tolist() == [[[3, 2, 1], [6, 5, 4]]]
assert torch.from_numpy(image).flip(-1).tolist() == [[[3, 2, 1], [6, 5, 4]]]
import warnings

locked = np.zeros(2)
locked.flags.writeable = False
torch.from_dlpack(locked)[0] = 7
assert locked.tolist() == [7, 0]
_column = pd.DataFrame({"age": [1.0]})["age"].to_numpy()
assert _column.flags.writeable == (int(pd.__version__.partition(".")[0]) < 3)
assert not np.frombuffer(b"1234", dtype=np.uint8).flags.writeable
_messages = []
_calls = (torch.from_dlpack, torch.tensor, torch.from_numpy, torch.as_tensor)
for _each_time, _call in [(False, _call) for _call in _calls] + [(True, _calls[3])]:
    torch.set_warn_always(_each_time)
    with warnings.catch_warnings(record=True) as _caught:
        warnings.simplefilter("always")
        _call(locked)
    _messages.append([str(_one.message)[:37] for _one in _caught])
torch.set_warn_always(False)
_warning = ["The given NumPy array is not writable"]
assert _messages == [[], [], _warning, [], _warning]
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    _rows = [np.ones(3), np.zeros(3)]
    _slow = torch.tensor(_rows)
    _fast = torch.from_numpy(np.array(_rows))
(message,) = (str(one.message) for one in caught)
assert torch.equal(_slow, _fast)
assert "list of numpy.ndarrays is extremely slow" in message
# sphinx_gallery_end_ignore

# %%
# Earlier versions said *some of the strides of a given numpy array are negative. This is currently not supported*. Do not try
# ``torch.from_dlpack``: up to PyTorch 2.13 it ends the whole process (`pytorch#188023
# <https://github.com/pytorch/pytorch/issues/188023>`__).
#
# .. torch-changed:: 2.14
#    :probe: refuses: torch.from_dlpack(np.ones(3)[::-1])
#
#    On 2.14, it gives an error that you can catch, and still no tensor.

# %%
# **The given NumPy array is not writable.** Such an array comes, for example, from ``np.frombuffer(some_bytes)``, or from
# ``to_numpy()`` of a column in pandas 3. A tensor that shares could write into it anyway. Use ``torch.tensor``, which copies.
#
# **Creating a tensor from a list of numpy.ndarrays is extremely slow.** Join the arrays in NumPy first: replace
# ``torch.tensor(rows)`` by ``torch.from_numpy(np.array(rows))``.

# %%
# See also
# --------
# - :doc:`Shape operations </reference/shapes>`: these calls and more, on more kinds of arrays and tensors.
# - :ref:`sphx_glr_gallery_errors_numpy_of_grad.py`, and :ref:`sphx_glr_gallery_errors_copy_construct_from_tensor.py`.
# - In PyTorch's reference: `torch.from_numpy <https://docs.pytorch.org/docs/stable/generated/torch.from_numpy.html>`__,
#   `torch.asarray <https://docs.pytorch.org/docs/stable/generated/torch.asarray.html>`__ and `Tensor.numpy
#   <https://docs.pytorch.org/docs/stable/generated/torch.Tensor.numpy.html>`__.
