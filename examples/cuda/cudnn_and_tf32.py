r"""
TF32: why convolutions on a GPU differ from the CPU, and their gradients
========================================================================

.. in-short::

   On NVIDIA GPUs since Ampere, most convolutions and the recurrent layers of float32 tensors use TF32 by default: their inputs
   are rounded to 11 binary digits. With random numbers around 0, results and gradients are off by 0.0003 to 0.001 of their
   size. Matrix products do not use TF32 by default. ``torch.backends.cudnn.allow_tf32 = False`` gives convolutions the accuracy
   of float32 and makes them slower. ``torch.backends.cuda.matmul.allow_tf32 = True`` makes products faster. For gradients, the
   setting during ``backward()`` decides.
"""

# %%
# The problem: the same layer, a different result
# -----------------------------------------------
# You compare a convolution on the GPU with the same one on the CPU, and the results agree to three digits only. With a linear
# layer they agree to six. The reason is a number format, *TF32*, for which the GPU has fast units:
#
# .. list-table::
#    :header-rows: 1
#    :widths: 34 33 33
#
#    * - format
#      - binary digits
#      - largest number
#    * - float32
#      - 24
#      - 3.4e38
#    * - TF32
#      - 11
#      - 3.4e38
#    * - float16
#      - 11
#      - 65,504
#    * - bfloat16
#      - 8
#      - 3.4e38
#
# The tensors stay float32, and only the inputs of the product are rounded. Here is that rounding on the CPU:

import sys

import matplotlib.pyplot as plt
import pandas as pd
import torch
import torch.nn.functional as F
from torch import nn


def tf32(x):
    """Round float32 numbers to 11 binary digits, to the even one if two are as near."""
    bits = x.view(torch.int32)
    return ((bits + 0xFFF + ((bits >> 13) & 1)) & ~0x1FFF).view(torch.float32)


numbers = torch.tensor([1.0004, 3.14159265, 2049.0, 2051.0, 1e-30])
for number, rounded in zip(numbers.tolist(), tf32(numbers).tolist(), strict=True):
    print(f"{number:<12.7g} becomes {rounded:.7g}")
assert tf32(numbers)[2:4].tolist() == [2048, 2052] and tf32(numbers)[0] == 1

# %%
# What that does to a product
# ---------------------------
# Round the inputs, multiply exactly, and compare with the exact product of the original inputs. The error is relative: the norm
# of the difference, divided by the norm of the result.

torch.manual_seed(0)
x, w = torch.randn(1024, 1024), torch.randn(1024, 1024)
exact = x.double() @ w.double()


def error(result, exact):
    exact = exact.double().cpu()
    return ((result.detach().double().cpu() - exact).norm() / exact.norm()).item()


# %%
# .. how-measured:: the matrices are rounded on the CPU to the digits of each format, and all else is done in float64.

formats = {
    "float32": lambda t: t,
    "TF32": tf32,
    "float16": torch.Tensor.half,
    "bfloat16": torch.Tensor.bfloat16,
}
digits = {"float32": 24, "TF32": 11, "float16": 11, "bfloat16": 8}
errors = {
    name: error(rounded(x).double() @ rounded(w).double(), exact)
    for name, rounded in formats.items()
}
errors["float32"] = error(x @ w, exact)  # nothing to round: the sums are rounded


def draw(errors, title):
    fig, ax = plt.subplots(figsize=(7, 2.2))
    ax.barh(list(errors), list(errors.values()), color="#2563eb")
    for row, value in enumerate(errors.values()):
        ax.text(value * 1.2, row, f"{value:.0e}", va="center")
    ax.set(xscale="log", xlim=(1e-8, 1e-1), xlabel="relative error", title=title)
    ax.invert_yaxis()
    fig.tight_layout()


# %%
# One product of random matrices:

# figure: Four bars on a logarithmic axis. The error is below one millionth with float32, 0.0003 with TF32 and with float16, and
#   0.002 with bfloat16.
draw(errors, "A product of 1024 × 1024 numbers (on paper)")
for name, value in errors.items():
    print(f"{name:<9} {digits[name]:>3} binary digits, error {value:.0e}")

# sphinx_gallery_start_ignore
assert errors["float32"] < 1e-6
assert 2.5e-4 < errors["TF32"] < 3.5e-4 and 2.5e-4 < errors["float16"] < 3.5e-4
assert 2e-3 < errors["bfloat16"] < 3e-3
# sphinx_gallery_end_ignore

# %%
# So expect a relative error of about 0.0003 for one such product, and more if large terms cancel. Compare norms, as ``error``
# does, with a tolerance such as 0.002. ``torch.allclose`` fails at the numbers near 0, even with ``rtol=1e-2``.
#
# Which switch is for what
# ------------------------
# The defaults:

switches = {
    "cuda.matmul.allow_tf32": torch.backends.cuda.matmul.allow_tf32,
    "cudnn.allow_tf32": torch.backends.cudnn.allow_tf32,
}
for name, value in switches.items():
    print(f"torch.backends.{name:<24}{value}")
print(f"{'torch.get_float32_matmul_precision()':<39}", end="")
print(torch.get_float32_matmul_precision())
assert list(switches.values()) == [False, True]
assert torch.get_float32_matmul_precision() == "highest"

# sphinx_gallery_start_ignore
torch.set_float32_matmul_precision("high")
assert torch.backends.cuda.matmul.allow_tf32
torch.set_float32_matmul_precision("highest")
assert not torch.backends.cuda.matmul.allow_tf32
# sphinx_gallery_end_ignore

# %%
# - ``cuda.matmul`` is for ``@``, ``nn.Linear``, ``einsum`` and other products. ``torch.set_float32_matmul_precision("high")``
#   sets this switch and the CPU's. Use only one of the two, or ``get_float32_matmul_precision()`` may raise.
# - ``cudnn`` is for convolutions, ``nn.LSTM``, ``nn.GRU`` and ``nn.RNN``.
# - Newer names are ``torch.backends.cuda.matmul.fp32_precision``, ``cudnn.conv.fp32_precision`` and
#   ``cudnn.rnn.fp32_precision``, with the values ``"tf32"`` and ``"ieee"``.
#
# What people get wrong
# ---------------------
# **Mixing old and new names.** If one part of a program sets the new names, a different part that reads an old one may raise:

torch.backends.cuda.matmul.fp32_precision = "tf32"
torch.backends.cudnn.conv.fp32_precision = "ieee"
messages = []
for read in (
    lambda: torch.backends.cuda.matmul.allow_tf32,
    lambda: torch.backends.cudnn.allow_tf32,
    lambda: torch.backends.cudnn.flags(enabled=False).__enter__(),
):
    try:
        read()
    except RuntimeError as raised:
        messages.append(str(raised).partition(",")[0])
        print("RuntimeError:", messages[-1], "…")
assert len(messages) == 3

# the old names set both again
torch.backends.cuda.matmul.allow_tf32 = False
torch.backends.cudnn.allow_tf32 = True

# %%
# The third one reads the old name when it begins. So choose one kind of names for the whole program.
#
# **TF32 is on again inside cudnn.flags(...)**, whatever you set before. Pass ``allow_tf32=False``, too.
#
# **Setting the switch around forward only.** Backward of a product computes two more products, later. The switch at *that* time
# decides. With TF32 in backward, the gradients of ``(x @ w * u).sum()`` have these errors:

u = torch.randn(1024, 1024)
of_x, of_w = u.double() @ w.double().T, x.double().T @ u.double()
print(f"x.grad: {error(tf32(u).double() @ tf32(w).double().T, of_x):.0e}", end="   ")
print(f"w.grad: {error(tf32(x).double().T @ tf32(u).double(), of_w):.0e}")

# sphinx_gallery_start_ignore
assert 2e-4 < error(tf32(u).double() @ tf32(w).double().T, of_x) < 4e-4
assert 2e-4 < error(tf32(x).double().T @ tf32(u).double(), of_w) < 4e-4
# sphinx_gallery_end_ignore

# %%
# **Checking gradients by differences.** A step of 0.0001 is lost in the rounding: above, 1.0004 became 1. So use float64, for
# which there is no TF32.
#
# **Blaming TF32 for noise.** TF32 rounds in the same way each time. If two runs on one GPU differ, see
# :ref:`sphx_glr_gallery_cuda_determinism_on_gpu.py`.
#
# Exercise
# --------
# ``torch.ones(1, n) @ torch.ones(n, 1)`` counts to n. Is the count exact with TF32, for n = 3000? And what is the product of
# 3000 and 3001 if both are rounded to TF32?
#
# .. solution::
#
# The count is exact, because rounding leaves a 1 as it is, and sums are kept in float32. But 3001 has 12 binary digits, and
# becomes 3000.

ones = torch.ones(3000)
print("count:", (tf32(ones) @ tf32(ones)).item())
pair = torch.tensor([3000.0, 3001.0])
print("product:", tf32(pair).prod().item(), "instead of", pair.prod().item())
assert tf32(ones) @ tf32(ones) == 3000
assert tf32(pair).tolist() == [3000, 3000]

# %%
# Measured on a GPU
# -----------------
# TF32 needs an Ampere GPU or a later one.
#
# .. needs-a-gpu::

if not torch.cuda.is_available():
    print("What follows is measured, and needs a CUDA device.")
    sys.exit()

# varies: The device is that of the machine.

matmul, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
print(torch.cuda.get_device_name(), torch.cuda.get_device_capability())
assert torch.cuda.get_device_capability() >= (8, 0), "this GPU has no TF32"

# %%
# A product with the identity shows the rounding itself:

values = torch.arange(2040, 2040 + 64 * 64, dtype=torch.float32).view(64, 64)
identity = torch.eye(64, device="cuda")
matmul.allow_tf32 = True
product = (values.cuda() @ identity).cpu()
matmul.allow_tf32 = False
for number in (9, 11, 13, 15):
    print(f"{values[0, number]:.0f} becomes {product[0, number]:.0f}")
print("as on paper:", (product == tf32(values)).sum().item(), "of", values.numel())
assert torch.equal(product[0, :24], tf32(values)[0, :24])
assert torch.equal((values.cuda() @ identity).cpu(), values)

# %%
# Errors of a result and of its two gradients. The exact ones are computed on the CPU in float64:


def gradients(operation, inputs, device="cuda", dtype=torch.float32):
    """Result and gradients; the inputs are the same numbers each time."""
    x, w = (t.to(device, dtype, copy=True).requires_grad_() for t in inputs)
    result = operation(x, w)
    torch.manual_seed(1)
    upstream = torch.randn(result.shape).to(device, dtype)
    (result * upstream).sum().backward()
    return result, x.grad, w.grad


def conv(x, w):
    return F.conv2d(x, w, padding=1)


images, kernel = torch.randn(8, 64, 32, 32), torch.randn(64, 64, 3, 3)
cases = {"x @ w": (torch.matmul, (x, w)), "conv2d(x, w)": (conv, (images, kernel))}
rows = {}
for name, (operation, inputs) in cases.items():
    exact = gradients(operation, inputs, "cpu", torch.float64)
    for switch in ("default", "off", "on"):
        if switch != "default":
            matmul.allow_tf32 = cudnn.allow_tf32 = switch == "on"
        found = gradients(operation, inputs)
        rows[f"{name}, TF32 {switch}"] = [
            error(a, b) for a, b in zip(found, exact, strict=True)
        ]
        matmul.allow_tf32, cudnn.allow_tf32 = False, True
table = pd.DataFrame(rows, index=["result", "x.grad", "w.grad"]).T

# %%
# The error on paper was 3e-04:

# varies: The last digits depend on the kernels that the libraries choose.

# sphinx_gallery_start_ignore
assert (table.loc[["x @ w, TF32 default", "x @ w, TF32 off"]] < 2e-6).all(axis=None)
assert (table.loc["conv2d(x, w), TF32 off"] < 3e-5).all()
for _row in ("x @ w, TF32 on", "conv2d(x, w), TF32 default", "conv2d(x, w), TF32 on"):
    assert table.loc[_row].between(5e-5, 3e-3).all(), _row
# sphinx_gallery_end_ignore
table.map("{:.0e}".format)

# %%
# By default, the product has the accuracy of float32, and the convolution that of TF32. The gradient of the kernel is off the
# most.
#
# The switch at the time of ``backward()`` decides for the gradients:

# varies: The last digits depend on the kernels that the libraries choose.

exact = gradients(torch.matmul, (x, w), "cpu", torch.float64)
rows = {}
for forward in (False, True):
    for backward in (False, True):
        a, b = (t.cuda().requires_grad_() for t in (x, w))
        torch.manual_seed(1)
        upstream = torch.randn(1024, 1024).cuda()
        matmul.allow_tf32 = forward
        result = a @ b
        matmul.allow_tf32 = backward
        (result * upstream).sum().backward()
        matmul.allow_tf32 = False
        rows[f"forward {forward}, backward {backward}"] = [
            error(found, right)
            for found, right in zip((result, a.grad, b.grad), exact, strict=True)
        ]
table = pd.DataFrame(rows, index=["result", "x.grad", "w.grad"]).T
# sphinx_gallery_start_ignore
for _forward in (False, True):
    for _backward in (False, True):
        _row = table.loc[f"forward {_forward}, backward {_backward}"] > 2e-5
        assert _row.tolist() == [_forward, _backward, _backward]
# sphinx_gallery_end_ignore
table.map("{:.0e}".format).rename_axis(columns="allow_tf32 in")

# %%
# Which operations does a switch change? Each runs with one of the two switches on, and is compared with the CPU in float64:

square = x[:512, :512]
positive = square @ square.T + 512 * torch.eye(512)
images = images[:4]
lstm = nn.LSTM(128, 128)
sequence = torch.randn(20, 16, 128)
q = torch.randn(2, 8, 256, 64)


def run_lstm(sequence):
    copy = nn.LSTM(128, 128).to(sequence.device, sequence.dtype)
    copy.load_state_dict(lstm.state_dict())
    return copy(sequence)[0]


operations = {
    "a @ b": (torch.matmul, square, w[:512, :512]),
    "a @ vector": (torch.matmul, square, w[0, :512]),
    "F.linear": (F.linear, square, w[:512, :512]),
    "torch.cdist": (torch.cdist, square, w[:512, :512]),
    "torch.linalg.solve": (torch.linalg.solve, positive, w[:512, :512]),
    "a * b": (torch.mul, square, w[:512, :512]),
    "a.sum(1)": (lambda a: a.sum(1), square),
    "F.conv2d": (F.conv2d, images, kernel),
    "F.conv_transpose2d": (F.conv_transpose2d, images, kernel),
    "depthwise conv2d": (
        lambda a, b: F.conv2d(a, b, groups=64),
        images,
        kernel[:, :1],
    ),
    "nn.LSTM": (run_lstm, sequence),
    "attention": (F.scaled_dot_product_attention, q, q, q),
}


def off_by(operation, *inputs):
    exact = operation(*(t.double() for t in inputs))
    return error(operation(*(t.cuda() for t in inputs)), exact)


# %%
# An error of more than 0.00003 is marked:

# varies: Which kernels use TF32 depends on the GPU, on the shapes and on the versions of the libraries.

rows = {}
for name, case in operations.items():
    row = []
    for first, second in ((False, False), (True, False), (False, True)):
        matmul.allow_tf32, cudnn.allow_tf32 = first, second
        row.append("TF32" if off_by(*case) > 3e-5 else "")
    rows[name] = row
matmul.allow_tf32, cudnn.allow_tf32 = False, True
columns = ["both off", "cuda.matmul on", "cudnn on"]
concerned = pd.DataFrame(rows, index=columns).T
# sphinx_gallery_start_ignore
assert (concerned["both off"] == "").all()
assert concerned["cuda.matmul on"][["a @ b", "F.linear"]].eq("TF32").all()
assert concerned["cudnn on"][["F.conv2d", "nn.LSTM"]].eq("TF32").all()
assert concerned["cudnn on"][["a @ b", "a * b", "a.sum(1)"]].eq("").all()
assert concerned["cuda.matmul on"][["F.conv2d", "a * b", "a.sum(1)"]].eq("").all()
# sphinx_gallery_end_ignore
concerned

# %%
# ``cdist`` and ``linalg.solve`` contain matrix products, so the switch for products can change them too. Sums and products of
# single elements stay as they are.
#
# How much faster is it?


def milliseconds(operation, times=5):
    operation()
    operation()
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    for _ in range(times):
        operation()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) / times


large = torch.randn(8192, 8192, device="cuda")
batch = torch.randn(32, 128, 64, 64, device="cuda")
layers = nn.Sequential(*(nn.Conv2d(128, 128, 3, padding=1) for _ in range(2))).cuda()
tasks = {
    "a product of 8192 × 8192": (lambda: large @ large),
    "two convolutions, forward and backward": (lambda: layers(batch).sum().backward()),
}

# %%
# In milliseconds:

# varies: Times depend on the GPU and its libraries.

rows = {}
for name, task in tasks.items():
    row = []
    for switch in (False, True):
        matmul.allow_tf32 = cudnn.allow_tf32 = switch
        row.append(milliseconds(task))
    matmul.allow_tf32, cudnn.allow_tf32 = False, True
    with torch.autocast("cuda", torch.bfloat16):
        rows[name] = [*row, milliseconds(task)]
times = pd.DataFrame(rows, index=["float32", "TF32", "autocast, bfloat16"]).T
assert (times["TF32"] < 0.75 * times["float32"]).all()
times.round(2).rename_axis(columns="ms")

# %%
# TF32 saves no memory. For less memory and more speed, see :ref:`autocast to bfloat16
# <sphx_glr_gallery_cuda_checkpoint_and_precision.py>`.
#
# See also
# --------
# - :ref:`sphx_glr_gallery_memory_precision.py`: float16 and bfloat16, and what autocast keeps.
# - :ref:`sphx_glr_gallery_functions_gradcheck.py`: why gradients are checked in float64.
# - In PyTorch's notes: `TensorFloat-32
#   <https://docs.pytorch.org/docs/stable/notes/cuda.html#tensorfloat-32-tf32-on-ampere-and-later-devices>`__. In its reference:
#   `torch.set_float32_matmul_precision
#   <https://docs.pytorch.org/docs/stable/generated/torch.set_float32_matmul_precision.html>`__.
