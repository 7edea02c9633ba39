r"""
Can't call numpy() on Tensor that requires grad
===============================================

.. index::
   ! single: plotting a tensor that requires grad with matplotlib fails
   ! single: part of the loss is computed with NumPy and has no effect on training
   ! single: can't convert cuda:0 device type tensor to numpy
   ! single: can't convert CUDA tensor to numpy
   ! single: plotting a tensor that is on the GPU with matplotlib fails
   ! single: sklearn or pandas fails on a CUDA tensor
   ! single: can't convert mps:0 device type tensor to numpy
   ! single: Got unsupported ScalarType BFloat16

.. in-short::

   You plot, average or log a tensor that still belongs to a graph, and a NumPy array cannot carry the graph. Store numbers
   with ``loss.item()``, or convert with ``x.detach().cpu().numpy()``. If backward still needs the result, stay in PyTorch.

   .. code-block:: diff

      - losses.append(loss)
      + losses.append(loss.item())

   **Not this:** ``detach()`` or ``torch.tensor(losses, requires_grad=True)`` on the way to the loss. The message is gone, and
   so is the gradient, or a part of it.
"""

# %%
# The code that raises it
# -----------------------

import matplotlib.pyplot as plt
import torch
from torch.nn import functional

torch.manual_seed(0)

# sphinx_gallery_start_ignore
# isort: split
import warnings

import numpy as np

try:
    # sphinx_gallery_end_ignore
    model = torch.nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    batches = [(torch.rand(8, 3), torch.rand(8, 1)) for _ in range(5)]

    losses = []
    for x, y in batches:
        optimizer.zero_grad()
        loss = functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss)

    plt.plot(losses)
# sphinx_gallery_start_ignore
except RuntimeError as error:
    message = str(error)
    print("RuntimeError:", message)
plt.close("all")
assert message == (
    "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead."
)
assert len(losses) == 5 and all(loss.requires_grad for loss in losses)


def _message(call):
    try:
        call()
    except (RuntimeError, TypeError) as error:
        return f"{type(error).__name__}: {error}"
    return ""


prediction = model(x)
with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # by NumPy, for np.array
    _said = [
        _message(call)
        for call in (
            lambda: np.mean(losses),
            lambda: np.array(prediction),
            lambda: plt.scatter(y, prediction),
            lambda: prediction * np.ones((8, 1)),
            lambda: np.sum([prediction, prediction], 0),
            lambda: np.concatenate([prediction, prediction]),
            lambda: np.random.normal(prediction, 1),
        )
    ]
plt.close("all")
assert _said == [f"RuntimeError: {message}"] * 7
# sphinx_gallery_end_ignore

# %%
# You do not see ``numpy()`` in your code? NumPy and Matplotlib call it on the tensors that you give them. Look for your own
# line in the traceback, and ask whether backward still needs its result:
#
# .. list-table::
#    :header-rows: 1
#    :widths: 44 56
#
#    * - the line
#      - write
#    * - a log, a plot, a metric, an action for ``env.step``, a matching by SciPy
#      - ``loss.item()``, ``x.detach().cpu().numpy()``
#    * - ``np.sum([...])`` or ``np.mean([...])`` of losses or layers, in training
#      - ``torch.stack([...]).sum()`` or ``.mean()``, with ``axis=0`` ``.sum(0)`` or ``.mean(0)``
#    * - ``np.sqrt(x)``, ``np.concatenate([...])`` in ``forward`` or in a loss
#      - ``torch.sqrt(x)``, ``torch.cat([...])``; for ``np.std(x)``, ``x.std(correction=0)``
#    * - ``np.random.normal(mu, sigma)`` in ``forward``
#      - ``torch.distributions.Normal(mu, sigma).rsample()``; for a loss of ``-log_prob * reward``, ``.sample()``
#    * - ``x * array``, with a constant of NumPy
#      - ``x * torch.tensor(array).to(x)``, with the type and the device of ``x``
#    * - a function for ``scipy.optimize.minimize(..., jac=True)``
#      - ``return loss.item(), torch.autograd.grad(loss, w)[0].numpy().astype(float)``
#
# Why
# ---
# An array holds numbers and nothing else. What NumPy computes from it is not recorded, and the result comes back as a
# constant. Here :math:`z = w^2 + \sqrt{w^2}`, and the root is computed by NumPy.

import numpy as np

w = torch.tensor(3.0, requires_grad=True)
y = w**2
root = torch.tensor(np.sqrt(y.detach().numpy()))
z = y + root
z.backward()

# graph: z -- The root went through NumPy: it enters z as a constant, and no path leads from it to w

print(f"z = {z.item()}, root.requires_grad = {root.requires_grad}")
print(f"w.grad = {w.grad.item()}")

# sphinx_gallery_start_ignore
assert z.item() == 12 and not root.requires_grad and w.grad.item() == 6
# sphinx_gallery_end_ignore

# %%
# The value is right, but the gradient should be :math:`2w + 1`, which is 7.
#
# The fix
# -------
# **To log or plot losses**: ``loss.item()`` is a Python number.

losses = []
for x, y in batches:
    optimizer.zero_grad()
    loss = functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())

figure, ax = plt.subplots(figsize=(7, 2.5), layout="constrained")
ax.plot(losses)
ax.set(title="Five losses, stored as numbers", xlabel="step", ylabel="loss")

# figure: A curve through the losses of five steps. The last is below the first.

# sphinx_gallery_start_ignore
assert all(isinstance(loss, float) for loss in losses) and losses[-1] < losses[0]
# sphinx_gallery_end_ignore

# %%
# **To train on a sum**: ``sum`` of Python and ``torch.stack`` keep the graph. What PyTorch cannot compute needs
# :ref:`your own Function <sphx_glr_gallery_functions_exp_function.py>`.

w.grad = None
parts = [w**2, torch.sqrt(w**2)]
z = sum(parts)
z.backward()
print(f"z = {z.item()}, w.grad = {w.grad.item()}")

# sphinx_gallery_start_ignore
assert z.item() == 12 and w.grad.item() == 7
w.grad = None
torch.stack([w**2, torch.sqrt(w**2)]).sum().backward()
assert w.grad.item() == 7
for _type in (torch.float32, torch.bfloat16):
    _x = torch.ones(2, dtype=_type, requires_grad=True)
    _array = np.full(2, 3.0, dtype=np.float32)
    _scaled = _x * torch.tensor(_array).to(_x)
    _array += (
        4  # as a buffer of noise that is filled anew: torch.as_tensor would share it
    )
    _scaled.sum().backward()
    assert _scaled.dtype == _type and _x.grad.tolist() == [3, 3]
_short = torch.ones(2, dtype=torch.bfloat16)
assert _message(_short.numpy) == "TypeError: Got unsupported ScalarType BFloat16"
assert _short.float().numpy().tolist() == [1, 1]
_rows = [torch.ones(2, 3) * factor for factor in (1, 3)]
_mean = torch.from_numpy(np.mean([row.numpy() for row in _rows], axis=0))
assert torch.equal(torch.stack(_rows).mean(0), _mean) and _mean.shape == (2, 3)
_mu, _sigma = torch.zeros(2, requires_grad=True), torch.ones(2, requires_grad=True)
torch.manual_seed(0)
torch.distributions.Normal(_mu, _sigma).rsample().sum().backward()
torch.manual_seed(0)
assert torch.equal(_mu.grad, torch.ones(2))
assert torch.equal(_sigma.grad, torch.randn(2))
_center = torch.tensor(0.0, requires_grad=True)  # randn_like(mu) is one number here
assert torch.distributions.Normal(_center, _sigma).rsample().unique().numel() == 2
_layers = [torch.rand(4, 2, requires_grad=True) for _ in range(3)]
_by_numpy = np.sum([layer.detach().numpy() for layer in _layers], 0)
assert np.allclose(torch.stack(_layers).sum(0).detach(), _by_numpy)
(2 * torch.stack(_layers).sum(0)).sum().backward()
assert all((layer.grad == 2).all() for layer in _layers)


_place = torch.zeros(2, requires_grad=True)


def _objective(start):
    _place.data = torch.tensor(start, dtype=torch.float32)
    loss = (_place - 3).square().sum()
    return loss.item(), torch.autograd.grad(loss, _place)[0].numpy().astype(float)


for _ in range(2):  # with backward() and _place.grad, the second call would say -12
    _value, _slope = _objective(np.zeros(2))
    assert _value == 18 and _slope.tolist() == [-6, -6] and _slope.dtype == np.float64
_numbers = torch.tensor([1.0, 2.0, 4.0])
assert np.isclose(_numbers.std(correction=0).item(), np.std(_numbers.numpy()))
assert not np.isclose(_numbers.std().item(), np.std(_numbers.numpy()))
_policy = torch.distributions.Normal(_center, 0.5)
for _draw, _learns in ((_policy.rsample, False), (_policy.sample, True)):
    (_slope,) = torch.autograd.grad(_policy.log_prob(_draw()), _center)
    assert (_slope != 0) == _learns
# numbers in a new tensor: nothing reaches the model
_lost = torch.tensor([(w**2).item(), 1.0], requires_grad=True).sum()
w.grad = None
_lost.backward()
assert w.grad is None
_seen = []
_block = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.ReLU(inplace=True))
_block[0].register_forward_hook(
    lambda module, inputs, output: _seen.extend(
        (output.detach().numpy(), output.detach().numpy().copy())
    )
)
_block(torch.randn(8, 3))
assert not (_seen[0] < 0).any() and (_seen[1] < 0).any()
# sphinx_gallery_end_ignore

# %%
# **The array shares memory with the tensor.** Here the values are shifted for a plot, between forward and backward. ``exp``
# saved its result, so its gradient is now wrong, and no message says so. Make a new array: ``curve = curve - curve.max()``. To
# keep a weight before the next optimizer step, or an activation before an in-place ReLU, add ``.copy()``.

x = torch.tensor([0.0, 1.0, 2.0], requires_grad=True)
y = torch.exp(x)
curve = y.detach().numpy()
curve -= curve.max()
y.sum().backward()
print("x.grad:", x.grad.numpy().round(4))
print("exp(x):", np.exp([0.0, 1.0, 2.0]).round(4), " the right gradient")

# sphinx_gallery_start_ignore
assert y._version == 0 and x.grad[2] == 0 and (x.grad[:2] < 0).all()
x.grad = None
y = torch.exp(x)
curve = y.detach().numpy()
curve = curve - curve.max()
y.sum().backward()
assert torch.allclose(x.grad, torch.exp(x))
# sphinx_gallery_end_ignore

# %%
# can't convert cuda:0 device type tensor to numpy
# ------------------------------------------------
# An array can only use the memory of the CPU, and this tensor is on the GPU:

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
raised = []
try:
    # sphinx_gallery_end_ignore
    torch.manual_seed(0)
    model, device = nn.Linear(4, 3), "cuda"
    images, labels = torch.randn(8, 4), np.array([0, 1, 2, 2, 1, 0, 0, 1])

    model.to(device)
    scores = model(images.to(device))
    predicted = scores.argmax(1).numpy()
# sphinx_gallery_start_ignore
except TypeError as error:
    raised.append(str(error))
    print("TypeError:", error)
assert raised == [
    "can't convert cuda:0 device type tensor to numpy. "
    "Use Tensor.cpu() to copy the tensor to host memory first."
]
assert scores.is_cuda and str(scores.device) == "cuda:0"
# sphinx_gallery_end_ignore

# %%
# This site is built without a GPU: hidden code computes on the CPU with tensors that say ``cuda:0``. The check that raises is
# PyTorch's own.
#
# **If backward needs the result**, as for a sum of losses, write the PyTorch call from the table above. To look at a tensor,
# which calls need ``.detach().cpu()`` first?

# This needs a GPU.
import matplotlib.pyplot as plt
import pandas as pd

loss = scores.square().mean()
calls = {
    "np.asarray(scores)": lambda: np.asarray(scores),
    "np.mean([loss, loss])": lambda: np.mean([loss, loss]),
    "plt.plot([loss, loss])": lambda: plt.plot([loss, loss]),
    "pd.Series(scores[0])": lambda: pd.Series(scores[0]),
    "loss.item()": lambda: loss.item(),
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
_said = [_message(call) for call in calls.values()]
plt.close("all")
assert _said == [f"TypeError: {raised[0]}"] * 4 + [""] * 2
# sphinx_gallery_end_ignore

# %%
# With ``.cpu()``, the line runs on both devices:

# This needs a GPU.
predicted = scores.argmax(1).cpu().numpy()
accuracy = (predicted == labels).mean()
print(predicted, accuracy)

# sphinx_gallery_start_ignore
assert predicted.shape == (8,) and 0 <= accuracy <= 1
_gpu.close()
_weight = torch.ones(3, requires_grad=True)
_kept = _weight.detach().cpu().numpy(), _weight.detach().cpu().numpy().copy()
with torch.no_grad():
    _weight.mul_(5)  # as an optimizer does
assert [array.tolist() for array in _kept] == [[5, 5, 5], [1, 1, 1]]
# sphinx_gallery_end_ignore

# %%
# **Do not write model.cpu()**. It moves the model, and your next batch is :ref:`on another device
# <sphx_glr_gallery_errors_two_devices.py>`.
#
# **Got unsupported ScalarType BFloat16**: NumPy has no such type. Add ``.float()`` before ``.numpy()``.
#
# See also
# --------
# - :ref:`sphx_glr_gallery_tensors_detach_clone_data.py`.
# - :ref:`sphx_glr_gallery_tensors_numpy_and_torch.py`.
