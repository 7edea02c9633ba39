r"""
can't convert cuda:0 device type tensor to numpy
================================================

.. index::
   ! single: can't convert CUDA tensor to numpy
   ! single: plotting a tensor that is on the GPU with matplotlib fails
   ! single: sklearn or pandas fails on a CUDA tensor
   ! single: can't convert mps:0 device type tensor to numpy

.. in-short::

   A NumPy array can only use the memory of the CPU, and your tensor is on the GPU. Copy the tensor with ``.cpu()`` first. For a
   loss that you log, use ``.item()``.

   .. code-block:: diff

        scores = model(images.to(device))
      - predicted = scores.argmax(1).numpy()
      + predicted = scores.argmax(1).cpu().numpy()

   **Not this:** ``model.cpu()``. It moves the model itself. Your next batch is then on another device than the model.
"""

# %%
# The code that raises it
# -----------------------

# This needs a GPU.
import numpy as np
import torch
from torch import nn

# sphinx_gallery_start_ignore
# isort: split
import contextlib
import ctypes
from unittest import mock

from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_map

_new = ctypes.pythonapi.PyCapsule_New
_new.restype = ctypes.py_object
_new.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
_TYPES = {torch.float32: (2, 32, 1, 0), torch.int64: (0, 64, 1, 0)}
_numbers = {}  # of each tensor on the GPU that is imitated


class _Managed(ctypes.Structure):
    """A tensor as DLPack describes it: where it is, its device, type and shape."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", ctypes.c_int32 * 2),
        ("ndim", ctypes.c_int32),
        ("dtype", ctypes.c_uint8 * 4),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("offset", ctypes.c_uint64),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
    ]


def _on_gpu(x):
    """A tensor of PyTorch that says it is on cuda:0, and whose numbers are on the CPU."""
    x = x.detach().clone(memory_format=torch.contiguous_format)
    sizes = (ctypes.c_int64 * 8)(*x.shape)
    steps = (ctypes.c_int64 * 8)(*x.stride())
    shape = ctypes.addressof(sizes), ctypes.addressof(steps)
    what = _Managed(x.data_ptr(), (2, 0), x.ndim, _TYPES[x.dtype], *shape)
    _numbers[x.data_ptr()] = x, what, sizes, steps
    capsule = _new(ctypes.addressof(what), b"dltensor", None)
    with mock.patch("torch.cuda._lazy_init"):
        return torch._C._from_dlpack(capsule)


class _Gpu(TorchFunctionMode):
    """Computes on the CPU what takes tensors of the imitated GPU. Conversions to NumPy are PyTorch's own."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        converts = function in (torch.Tensor.__array__, torch.Tensor.numpy)
        if function.__name__ == "__get__" or (converts and "force" not in kwargs):
            return function(*args, **kwargs)
        found = []

        def down(x):
            if not (isinstance(x, torch.Tensor) and x.is_cuda):
                return x
            found.append(x)
            return _numbers[x.data_ptr()][0]

        args, kwargs = tree_map(down, (args, kwargs))
        if function is torch.Tensor.to and torch.device(args[1]).type == "cuda":
            return _on_gpu(args[0])
        result = function(*args, **kwargs)
        stays = found and function is not torch.Tensor.cpu
        return tree_map(
            lambda x: _on_gpu(x) if stays and isinstance(x, torch.Tensor) else x, result
        )


_gpu = contextlib.ExitStack()
_gpu.enter_context(torch.no_grad())
_gpu.enter_context(_Gpu())
try:
    # sphinx_gallery_end_ignore
    torch.manual_seed(0)
    model, device = nn.Linear(4, 3), "cuda"
    images, labels = torch.randn(8, 4), np.array([0, 1, 2, 2, 1, 0, 0, 1])

    model.to(device)
    scores = model(images.to(device))
    predicted = scores.argmax(1).numpy()
    accuracy = (predicted == labels).mean()
# sphinx_gallery_start_ignore
except TypeError as error:
    message = str(error)
    print("TypeError:", message)
assert message == (
    "can't convert cuda:0 device type tensor to numpy. "
    "Use Tensor.cpu() to copy the tensor to host memory first."
)
assert scores.is_cuda and str(scores.device) == "cuda:0"


def _says(call):
    try:
        call()
    except (TypeError, RuntimeError) as error:
        return f"{type(error).__name__}: {error}"
    return "works"


with torch.enable_grad():
    _asks = _on_gpu(torch.ones(2)).requires_grad_()
    assert _says(_asks.numpy) == f"TypeError: {message}"  # first the device
    assert "Can't call numpy() on Tensor that requires grad" in _says(
        torch.ones(2, requires_grad=True).numpy
    )
# sphinx_gallery_end_ignore

# %%
# This site is built without a GPU: hidden code computes on the CPU with tensors that say ``cuda:0``. The check that raises is
# PyTorch's own.
#
# ``cuda:0`` is the device of the tensor. On a Mac it is ``mps:0``. Older versions said *can't convert CUDA tensor to numpy*.
#
# Find the line
# -------------
# The line need not contain the word NumPy: scikit-learn, pandas and matplotlib convert their arguments. Here ``loss`` is a
# number on the GPU:

# This needs a GPU.
import matplotlib.pyplot as plt
import pandas as pd

loss = scores.square().mean()
calls = {
    "np.asarray(scores)": lambda: np.asarray(scores),
    "np.mean([loss, loss])": lambda: np.mean([loss, loss]),
    "plt.plot([loss, loss])": lambda: plt.plot([loss, loss]),
    "plt.imshow(scores)": lambda: plt.imshow(scores),
    "pd.Series(scores[0])": lambda: pd.Series(scores[0]),
    "loss.item()": lambda: loss.item(),
    "float(loss)": lambda: float(loss),
    "scores.tolist()": lambda: scores.tolist(),
}
for name, call in calls.items():
    try:
        call()
        print(f"{name:<23} works")
    except TypeError as error:
        print(f"{name:<23} {str(error)[:48]}")

# sphinx_gallery_start_ignore
plt.close("all")
_said = [_says(call) for call in calls.values()]
plt.close("all")
assert _said == [f"TypeError: {message}"] * 5 + ["works"] * 3
# sphinx_gallery_end_ignore

# %%
# Why
# ---
# ``x.numpy()`` copies nothing. The array uses the memory of the tensor.
#
# .. how-measured:: This code draws who uses which memory.

import matplotlib.pyplot as plt


def plot_memory():
    _, ax = plt.subplots(figsize=(7, 2), layout="constrained")
    for left, name in ((0, "memory of the CPU"), (6, "memory of the GPU")):
        ax.add_patch(plt.Rectangle((left, 0), 4, 2, fill=False, ec="#64748b"))
        ax.text(left + 2, 2.1, name, ha="center", va="bottom")
    colors = ["#2563eb", "#047857", "#c2410c"]
    blocks = [
        (0.3, 1.1, "x and x.numpy()"),
        (0.3, 0.2, "the copy"),
        (6.3, 0.2, "scores"),
    ]
    for (left, low, name), color in zip(blocks, colors, strict=True):
        ax.add_patch(plt.Rectangle((left, low), 3.4, 0.7, fc=color, alpha=0.25))
        ax.text(left + 1.7, low + 0.35, name, ha="center", va="center")
    arrow = {"arrowstyle": "->", "color": "#64748b"}
    ax.annotate("", (3.8, 0.55), (6.2, 0.55), arrowprops=arrow)
    ax.text(5, 0.65, ".cpu()", ha="center", va="bottom")
    ax.set(xlim=(-0.1, 10.1), ylim=(-0.1, 2.6), title="An array of NumPy shares memory")
    ax.axis("off")


# %%
# A write into the array changes the tensor:

x = torch.zeros(3)
array = x.numpy()
array[0] = 7
print(x)

# figure: Two boxes. In the memory of the CPU, x and x.numpy() share one block. In the memory of the GPU there is another
#   tensor, and an arrow from it, cpu(), makes a copy in the memory of the CPU.
plot_memory()

# sphinx_gallery_start_ignore
assert x.tolist() == [7.0, 0.0, 0.0]
# sphinx_gallery_end_ignore

# %%
# An array cannot share memory with the GPU, so ``.cpu()`` makes a copy.
#
# The fix
# -------
# Copy where you convert. The line runs on both devices:

device = "cuda" if torch.cuda.is_available() else "cpu"
# sphinx_gallery_start_ignore
device = "cuda"
# sphinx_gallery_end_ignore
model.to(device)
scores = model(images.to(device))
predicted = scores.argmax(1).cpu().numpy()
accuracy = (predicted == labels).mean()
print(predicted, accuracy)

# sphinx_gallery_start_ignore
assert predicted.shape == (8,) and 0 <= accuracy <= 1
assert x.cpu() is x
_weight = torch.ones(3, requires_grad=True)
_kept = _weight.detach().cpu().numpy(), _weight.detach().cpu().numpy().copy()
_weight.mul_(5)  # as an optimizer does
assert [array.tolist() for array in _kept] == [[5, 5, 5], [1, 1, 1]]
# sphinx_gallery_end_ignore

# %%
# On the CPU, the array still shares memory with the tensor. To keep the values of a weight that an optimizer changes, add
# ``.copy()``.
#
# **For a curve**, keep numbers: ``losses.append(loss.item())``. To train on a mean of losses, stay in PyTorch:
# ``torch.stack(losses).mean()``.
#
# **A tensor with a graph** needs ``.detach()``, too. ``force=True`` does both. (``bfloat16``, as from autocast, needs
# ``.float()`` as well: NumPy has no such type.)

array = scores.detach().cpu().numpy()
assert np.array_equal(array, scores.numpy(force=True))

# sphinx_gallery_start_ignore
assert torch.ones(2, requires_grad=True).numpy(force=True).tolist() == [1, 1]
_half = torch.ones(2, dtype=torch.bfloat16)
assert "unsupported ScalarType BFloat16" in _says(lambda: _half.numpy(force=True))
assert _half.float().numpy(force=True).tolist() == [1, 1]
# sphinx_gallery_end_ignore

# %%
# **In a loop**, your program waits for the GPU at each copy. Collect small results, such as these, and copy once:

collected = [model(batch.to(device)).argmax(1) for batch in images.split(2)]
predicted = torch.cat(collected).cpu().numpy()
print(predicted)

# sphinx_gallery_start_ignore
assert np.array_equal(predicted, scores.argmax(1).cpu().numpy())
# sphinx_gallery_end_ignore

# %%
# The same message with meta
# --------------------------
# A tensor on the device ``meta`` has no data. ``.cpu()`` does not help there:

# sphinx_gallery_start_ignore
raised = []
try:
    # sphinx_gallery_end_ignore
    torch.ones(3, device="meta").numpy()
# sphinx_gallery_start_ignore
except TypeError as error:
    raised.append(str(error))
    print("TypeError:", error)
assert raised == [message.replace("cuda:0", "meta")]
assert "Cannot copy out of meta tensor" in _says(torch.ones(3, device="meta").cpu)
_gpu.close()
# sphinx_gallery_end_ignore

# %%
# See :ref:`sphx_glr_gallery_errors_copy_out_of_meta.py`.
#
# What not to do
# --------------
# **Do not compute a part of the loss in NumPy.** The copy has no graph, and the model learns nothing from that part.
#
# **Do not move the model to convert one result.** Batches on the GPU :ref:`no longer fit
# <sphx_glr_gallery_errors_two_devices.py>` it.
#
# See also
# --------
# - :ref:`sphx_glr_gallery_errors_numpy_of_grad.py`: the next message, if the tensor has a graph.
# - :ref:`sphx_glr_gallery_cuda_devices.py`: when the value of a tensor on the GPU is there.
# - In PyTorch's reference: `Tensor.numpy <https://docs.pytorch.org/docs/stable/generated/torch.Tensor.numpy.html>`__.
