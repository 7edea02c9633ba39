r"""
"log_softmax_lastdim_kernel_impl" not implemented for 'Long'
============================================================

.. index::
   ! single: mean(): could not infer output dtype. Got: Bool
   ! single: the arguments of a loss in the wrong order
   ! single: Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int
   ! single: "addmm_impl_cpu_" not implemented for 'Half'
   ! single: "nll_loss_forward_reduce_cuda_kernel_2d_index" not implemented for 'Int'
   ! single: "addmm_cuda" not implemented for 'Float8_e4m3fn'
   ! single: "triu_tril_cuda_template" not implemented for 'BFloat16'
   ! single: "_amp_foreach_non_finite_check_and_unscale_cuda" not implemented for 'BFloat16'

.. in-short::

   This function computes with floating point numbers, and got integers: *Long* is ``int64``. In a loss, the scores come first
   and the labels second. Elsewhere, convert: ``x.float()``.

   .. code-block:: diff

      - loss = F.cross_entropy(labels, scores)
      + loss = F.cross_entropy(scores, labels)

   **Not this:** ``.float()`` for everything. The labels of ``cross_entropy``, and the indices of an embedding, must stay
   integers.
"""

# %%
# The code that raises it
# -----------------------

import torch
import torch.nn.functional as F

# sphinx_gallery_start_ignore
try:
    # sphinx_gallery_end_ignore
    scores = torch.tensor([[2.0, 0.0, 1.0], [0.0, 3.0, 1.0]])
    labels = torch.tensor([0, 1])
    loss = F.cross_entropy(labels, scores)
# sphinx_gallery_start_ignore
except NotImplementedError as error:
    message = str(error)
    print("NotImplementedError:", message)
assert message == "\"log_softmax_lastdim_kernel_impl\" not implemented for 'Long'"


def says(call):
    try:
        return f"no message, {call().dtype}"
    except RuntimeError as error:
        return f"{type(error).__name__}: {error}"


for _dtype, _name in (
    (torch.int64, "Long"),
    (torch.int32, "Int"),
    (torch.uint8, "Byte"),
    (torch.bool, "Bool"),
    (torch.complex64, "ComplexFloat"),
):
    assert says(lambda d=_dtype: scores.to(d).log_softmax(1)).endswith(f"'{_name}'")
assert says(
    lambda: F.cross_entropy(torch.zeros(1, 4, 4).long(), torch.rand(1, 3, 4, 4))
) == ("NotImplementedError: \"log_softmax_kernel_impl\" not implemented for 'Long'")
_half, _wave = torch.eye(2).half(), torch.ones(2, dtype=torch.complex64)
_small = torch.ones(2).to(torch.float8_e4m3fn)
for _name, _call in (
    ("check_uniform_bounds", lambda: torch.rand_like(torch.arange(3))),
    ("LayerNormKernelImpl", lambda: F.layer_norm(torch.tensor([4, 2]), (2,))),
    ("mse_", lambda: F.mse_loss(scores.argmax(1), labels)),
    ("nll_loss_", lambda: F.nll_loss(torch.eye(2).long(), labels)),
    ("addmm_impl_cpu_", lambda: _half.bool() @ _half.bool()),
    ("lu_", lambda: torch.linalg.det(_half)),
    ("cdist", lambda: torch.cdist(_half, _half)),
    ("cdist", lambda: torch.cdist(_half.bfloat16(), _half.bfloat16())),
    ("linalg_svd", lambda: torch.linalg.svd(_half)),
    ("cholesky", lambda: torch.linalg.cholesky(_half)),
    ("geqrf", lambda: torch.linalg.qr(_half)),
    ("add", lambda: _small + 1),
    ("lt_cpu", lambda: _wave < 1),
    ("batch_norm", lambda: torch.nn.BatchNorm1d(1)(_wave[:, None])),
):
    assert says(_call).startswith(f'NotImplementedError: "{_name}')
assert torch.linalg.cholesky(_half.float()).to(_half.dtype).equal(_half)
assert (_small.to(torch.bfloat16) + 1).tolist() == [2, 2]
assert not (_wave.abs() < 1).any()
assert says(lambda: F.mse_loss(1j * _wave, _wave)).endswith("'ComplexFloat'")
assert F.mse_loss((1j * _wave).abs(), _wave.abs()) == 0  # the phase is lost
assert torch.isclose((1j * _wave - _wave).abs().square().mean(), torch.tensor(2.0))
_choice, _score = torch.tensor([0, 1]), torch.zeros(2)
_bce = F.binary_cross_entropy_with_logits
assert says(lambda: _bce(_choice, _score)).startswith(
    'NotImplementedError: "log_sigmoid'
)
assert "result type Float can't be cast" in says(lambda: _bce(_score, _choice))
assert torch.isclose(_bce(_score, _choice.float()), torch.tensor(2.0).log())
_mask = torch.eye(4).long()[None, None]
for _name, _call in (
    ("softmax", torch.arange(5).softmax),
    ("normal_kernel_cpu", lambda _: torch.tensor([0, 0]).normal_()),
    ("batch_norm", lambda _: torch.nn.BatchNorm2d(1)(_mask)),
    ("upsample_", lambda _: F.interpolate(_mask, 8)),
):
    assert says(lambda call=_call: call(0)).startswith(f'NotImplementedError: "{_name}')
for _one in (_mask, _mask.bool()):
    _large = F.interpolate(_one.float(), 8, mode="nearest").to(_one.dtype)
    assert _large[0, 0].sum() == 4 * 4 and _large.unique().tolist() == [0, 1]
_labels = torch.tensor([[0, 2], [0, 2]])[None, None]
_grid = torch.zeros(1, 1, 1, 2)
_grid[..., 0] = 0.2
_sample = lambda map, **mode: F.grid_sample(map, _grid, align_corners=False, **mode)  # noqa: E731
assert says(lambda: _sample(_labels)).startswith('NotImplementedError: "grid_sampler')
assert _sample(_labels.float(), mode="nearest").to(_labels.dtype) == 2
assert _sample(_labels.float()).to(_labels.dtype) == 1  # a class that is not there
assert torch.ones(8, 8)[_large[0, 0]].shape == (4 * 4,)  # as integers, an index
# sphinx_gallery_end_ignore

# %%
# ``'Long'`` is the type that arrived: ``int64``. *Int* is ``int32``, *Byte* ``uint8``, *Half* ``float16``, *Float* ``float32``.
# Read the type first, then the name before it:
#
# .. list-table::
#    :header-rows: 1
#    :widths: 42 58
#
#    * - type and name
#      - cause and fix
#    * - ``'Long'`` at the loss: ``log_softmax_...``, ``nll_loss_...``, ``log_sigmoid_...``, ``mse_...``
#      - The arguments are in the wrong order, or ``.long()`` or ``argmax`` was called on the scores. For BCE and MSE, also
#        ``labels.float()``.
#    * - ``'Int'``: ``nll_loss_...`` on a GPU
#      - The labels: ``labels.long()``.
#    * - ``'Long'``, ``'Byte'``: ``batch_norm``, ``LayerNormKernelImpl`` at the first layer
#      - Bytes of an image, or ids of words: see below.
#    * - an integer or ``'Bool'``: ``upsample_...``, ``grid_sampler_...``
#      - A mask: ``mask.float()``, with ``mode="nearest"``, and ``.to(mask.dtype)`` after it. An image: see below.
#    * - an integer or ``'Bool'``: another name
#      - A tensor that your code made, as ``torch.arange(5)``: ``.float()``. Times in seconds: ``.double()``.
#    * - ``'Half'``: any name, mostly with ``cpu``
#      - The model runs on the CPU: see below.
#    * - ``'BFloat16'``: ``_amp_foreach_...`` on a GPU
#      - Leave the ``GradScaler`` out, and compute under ``autocast`` with ``dtype=torch.bfloat16``, in a trainer with
#        ``bf16=True``.
#    * - ``'BFloat16'``: another name. ``'Half'`` on a GPU: ``linalg_svd...``, ``cholesky...``, ``lu_...``, ``cdist``
#      - Update PyTorch, or ``x.float()``, and ``.to(x.dtype)`` after it.
#    * - ``'Float8_e4m3fn'``
#      - A type for storage: load the weights in ``bfloat16``, times the scales of the file.
#    * - ``'ComplexFloat'``
#      - A comparison wants ``x.abs()``, a loss ``(a - b).abs().square().mean()``, which sees the phase.
#    * - ``'Float'``: ``bitwise_...``
#      - ``x > 0 & x < 1``: write ``(x > 0) & (x < 1)``.
#
# Why
# ---
# Each function has code for some types. A mean or a probability is a fraction, which an integer cannot hold.
#
# .. how-measured:: The function draw_types() calls each function with six types, and colors the calls that run.

import matplotlib.pyplot as plt
from matplotlib.colors import ListedColormap


def is_run(function, dtype):
    try:
        function(torch.eye(2).to(dtype))
    except (RuntimeError, IndexError):
        return False
    return True


def draw_types(functions):
    types = [torch.bool, torch.uint8, torch.int32, torch.int64]
    types += [torch.float16, torch.float32]
    runs = [[is_run(function, dtype) for dtype in types] for function in functions]
    _, ax = plt.subplots(figsize=(7, 2.6), layout="constrained")
    colors = ListedColormap(["#94a3b8", "#2563eb"])
    ax.pcolormesh(runs, cmap=colors, vmin=0, vmax=1, edgecolors="w", linewidth=2)
    ax.set_xticks([i + 0.5 for i in range(6)], [str(dtype)[6:] for dtype in types])
    ax.tick_params(length=0)
    ax.invert_yaxis()
    ax.set_title("Blue: it runs. Gray: it raises.")
    return ax, runs


# %%
# On a CPU:

functions = {
    "x + x": lambda x: x + x,
    "x @ x": lambda x: x @ x,
    "mean, std": lambda x: x.mean() + x.std(),
    "softmax": lambda x: x.softmax(0),
    "mse_loss": lambda x: F.mse_loss(x, x),
    "cross_entropy, scores": lambda x: F.cross_entropy(x, torch.tensor([0, 1])),
    "embedding, indices": lambda x: F.embedding(x, torch.ones(2, 2)),
    "one_hot": lambda x: F.one_hot(x),
}
ax, runs = draw_types(functions.values())
ax.set_yticks([i + 0.5 for i in range(8)], list(functions))

# figure: A grid of functions and types. Sum and product of matrices run for integers and floating point numbers. Mean, softmax,
#   mse_loss and cross_entropy run for floating point numbers only. Embedding takes int32 and int64, one_hot int64 only.

# sphinx_gallery_start_ignore
assert dict(zip(functions, runs, strict=True)) == {
    "x + x": [True] * 6,
    "x @ x": [False] + [True] * 5,
    "mean, std": [False] * 4 + [True] * 2,
    "softmax": [False] * 4 + [True] * 2,
    "mse_loss": [False] * 4 + [True] * 2,
    "cross_entropy, scores": [False] * 4 + [True] * 2,
    "embedding, indices": [False, False, True, True, False, False],
    "one_hot": [False, False, False, True, False, False],
}
# sphinx_gallery_end_ignore

# %%
# The fix
# -------
# The scores come first. If your code calls ``.long()`` on them, remove that:

loss = F.cross_entropy(scores, labels)
print(loss)

# sphinx_gallery_start_ignore
assert torch.allclose(loss, -torch.log_softmax(scores, 1)[[0, 1], [0, 1]].mean())
# sphinx_gallery_end_ignore

# %%
# **An accuracy** is the mean of True and False. Convert them first:

# sphinx_gallery_start_ignore
try:
    # sphinx_gallery_end_ignore
    correct = scores.argmax(dim=1) == labels
    print(correct.float().mean())
    correct.mean()
# sphinx_gallery_start_ignore
except RuntimeError as error:
    message = f"{type(error).__name__}: {error}"
    print(message)
TORCH = tuple(int(part) for part in torch.__version__.split(".")[:2])
_kind = "NotImplementedError" if TORCH >= (2, 15) else "RuntimeError"
assert message == (
    f"{_kind}: mean(): could not infer output dtype. Input dtype must be either a floating "
    "point or complex dtype. Got: Bool"
)
# sphinx_gallery_end_ignore

# %%
# .. torch-changed:: 2.15
#    :probe: refuses: torch.ones(2, dtype=torch.bool).mean()
#
#    The error has another type (`pytorch#192351 <https://github.com/pytorch/pytorch/pull/192351>`__).
#
# **Images** of bytes: ``image.float() / 255``. If the integers are the ids of words, the embedding is missing.
#
# **An embedding** needs integers. ``torch.tensor`` makes them of Python's integers, ``torch.Tensor`` does not:

from torch import nn

# sphinx_gallery_start_ignore
raised = []
try:
    # sphinx_gallery_end_ignore
    embedding = nn.Embedding(10, 4)
    print(embedding(torch.tensor([1, 4])).shape)
    print(embedding(torch.Tensor([1, 4])).shape)
# sphinx_gallery_start_ignore
except RuntimeError as error:
    raised.append(str(error))
    print("RuntimeError:", error)
assert raised == [
    "Expected tensor for argument #1 'indices' to have one of the following scalar types: "
    "Long, Int; but got torch.FloatTensor instead (while checking arguments for embedding)"
]
# sphinx_gallery_end_ignore

# %%
# **Masks** of 0.0 and 1.0 become bools for ``&``. Comparisons need parentheses:

mask = torch.tensor([1.0, 0.0])
print(mask.bool() & mask.bool())
print((mask > 0) & (mask <= 1))

# sphinx_gallery_start_ignore
for _call in (lambda: mask & mask, lambda: mask > 0 & mask <= 1):
    assert says(_call) == (
        "NotImplementedError: \"bitwise_and_cpu\" not implemented for 'Float'"
    )
half = torch.ones(1, 4, dtype=torch.float16)
for _layer in (nn.Linear(4, 2), nn.Conv1d(1, 2, 3), nn.LayerNorm(4)):
    assert _layer.half()(half).dtype == torch.float16
    assert {str(p.device) for p in _layer.parameters()} == {"cpu"}
_both = nn.Linear(4, 2).half().float()
assert says(lambda: _both(half.float())) == "no message, torch.float32"
assert "Low precision dtypes not supported. Got Half" in says(
    lambda: torch.linalg.inv(torch.eye(2).half())
)
# a scaler left out, and the type of autocast
for _dtype, _kept in ((torch.float16, False), (torch.bfloat16, True)):
    _layer = nn.Linear(4, 4).bfloat16()
    with torch.autocast("cpu", dtype=_dtype):
        _loss = (_layer(half.float()).float() * 1e-9).sum()
    _loss.backward()
    assert _layer.weight.grad.all() == _kept
_seconds = torch.tensor([1_700_000_000, 1_700_000_001])
assert _seconds.double().diff() == 1 and _seconds.float().diff() == 0
_image = torch.tensor([[0, 255]]).expand(2, 2)[None, None]
assert says(lambda: F.interpolate(_image, 4, mode="bilinear")).startswith(
    'NotImplementedError: "upsample_'
)
assert F.interpolate(_image.float() / 255, 4, mode="bilinear").unique().numel() == 4
# sphinx_gallery_end_ignore

# %%
# **Half precision on a CPU.** If it should be a GPU, print ``{p.device for p in model.parameters()}``. Move the model and its
# input there. A PyTorch without CUDA, or ``device_map="auto"`` without enough memory, leaves weights on the CPU. To stay on the
# CPU, update PyTorch, or use ``float32`` for both: ``model.float()`` and ``x.float()``.
#
# What not to do
# --------------
# **Do not convert the result of argmax to use it in a loss.** The message is gone, and so is the gradient:

scores.requires_grad_()
loss = F.mse_loss(scores.argmax(dim=1).float(), labels.float())
print(loss.requires_grad)

# sphinx_gallery_start_ignore
assert not loss.requires_grad
assert "not implemented for 'Long'" in says(
    lambda: F.mse_loss(scores.argmax(dim=1), labels)
)
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_errors_wrong_target_dtype.py`, the type that each loss wants for its target.
# - :ref:`sphx_glr_gallery_errors_different_dtypes.py`, when two types meet.
