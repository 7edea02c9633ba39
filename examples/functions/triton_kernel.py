r"""
Triton kernel with a backward: triton_op, wrap_triton, register_autograd
========================================================================

.. index::
   single: Triton kernel without a gradient
   single: TRITON_INTERPRET
   single: non-contiguous grad_output in a kernel
   single: gradient of RMSNorm
   single: tl.atomic_add in a backward kernel

.. in-short::

   Autograd does not see a Triton kernel, so its output has no ``grad_fn``. Write a second kernel for the gradient, launch each
   in an operator, and connect the two:

   .. code-block:: python

      @torch.library.triton_op("mylib::norm", mutates_args=())
      def norm(x: Tensor, w: Tensor) -> Tensor: ...


      norm.register_autograd(backward, setup_context=keep_inputs)

   In ``backward``, pass ``grad.contiguous()`` to the kernel. After ``torch.cat(..., dim=1)`` or ``sum``, ``grad`` has other
   strides than the output. If the kernel ignores them, the gradient is silently wrong, and ``gradcheck`` still passes.
"""

# %%
# A kernel for forward
# --------------------
# You fuse RMSNorm, a layer of most language models, into one Triton kernel. Each *program* computes one row of ``x``. ``BLOCK``
# must be a power of two, so a mask switches off the columns that ``x`` does not have:

import os

# on a GPU, instead of this line: torch.set_default_device("cuda") after the imports
os.environ["TRITON_INTERPRET"] = "1"
# sphinx_gallery_start_ignore
import sys

for _name in list(sys.modules):  # a build may have imported Triton with the compiler
    if _name.split(".")[0] == "triton" and not _name.startswith("triton._C"):
        del sys.modules[_name]
# sphinx_gallery_end_ignore

import pandas as pd
import torch
import triton
import triton.language as tl
from torch import Tensor, nn
from torch.library import triton_op, wrap_triton


@triton.jit
def norm_kernel(x_ptr, w_ptr, y_ptr, columns, BLOCK: tl.constexpr):
    column = tl.arange(0, BLOCK)
    # int64, for tensors of more than 2**31 numbers
    mask, at = column < columns, tl.program_id(0).to(tl.int64) * columns + column
    x = tl.load(x_ptr + at, mask=mask, other=0.0)
    w = tl.load(w_ptr + column, mask=mask, other=0.0)
    scale = 1 / tl.sqrt(tl.sum(x * x) / columns + 1e-6)
    tl.store(y_ptr + at, x * scale * w, mask=mask)


@triton_op("atlas_triton::norm", mutates_args=())
def norm(x: Tensor, w: Tensor) -> Tensor:
    x, w = x.contiguous(), w.contiguous()
    y, columns = torch.empty_like(x), x.shape[-1]
    grid, block = (x.numel() // columns,), triton.next_power_of_2(columns)
    wrap_triton(norm_kernel)[grid](x, w, y, columns, BLOCK=block)
    return y


# %%
# This page runs its kernels in Triton's interpreter: slowly, without a GPU, and you can ``print`` in a kernel. Set the variable
# before anything imports Triton, as ``torch.compile`` does. If you are late, you get *Cannot call @triton.jit'd outside of the
# scope of a kernel*, and without it *0 active drivers*. ``wrap_triton`` shows the kernel to ``torch.compile`` and
# ``torch.export``. Both need a GPU: with the interpreter they raise *Cannot access data pointer of Tensor*.

# %%
# A kernel for backward
# ---------------------
# With :math:`n = x / \sqrt{\mathrm{mean}(x^2) + \varepsilon}`, the result is :math:`y = n w`. If :math:`g` is the gradient of
# the loss with respect to :math:`y`, a row of :math:`x` gets :math:`(g w - n\,\mathrm{mean}(g w n)) / \sqrt{\mathrm{mean}(x^2)
# + \varepsilon}`. The gradient of :math:`w` is :math:`g n`, added up over the rows. Many programs add to the same memory, so
# use ``tl.atomic_add``, and memory that begins with zeros:


@triton.jit
def norm_backward_kernel(
    g_ptr, x_ptr, w_ptr, grad_x_ptr, grad_w_ptr, columns, BLOCK: tl.constexpr
):
    column = tl.arange(0, BLOCK)
    mask, at = column < columns, tl.program_id(0).to(tl.int64) * columns + column
    g = tl.load(g_ptr + at, mask=mask, other=0.0)
    x = tl.load(x_ptr + at, mask=mask, other=0.0)
    w = tl.load(w_ptr + column, mask=mask, other=0.0)
    scale = 1 / tl.sqrt(tl.sum(x * x) / columns + 1e-6)
    n = x * scale
    mean = tl.sum(g * w * n) / columns
    tl.store(grad_x_ptr + at, scale * (g * w - n * mean), mask=mask)
    tl.atomic_add(grad_w_ptr + column, g * n, mask=mask)


@triton_op("atlas_triton::norm_backward", mutates_args=())
def norm_backward(g: Tensor, x: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
    g, x, w = g.contiguous(), x.contiguous(), w.contiguous()
    grad_x, grad_w, columns = torch.empty_like(x), torch.zeros_like(w), x.shape[-1]
    grid, block = (x.numel() // columns,), triton.next_power_of_2(columns)
    kernel = wrap_triton(norm_backward_kernel)
    kernel[grid](g, x, w, grad_x, grad_w, columns, BLOCK=block)
    return grad_x, grad_w


def keep_inputs(ctx, inputs, output):
    ctx.save_for_backward(*inputs)


def backward(ctx, grad):
    return norm_backward(grad, *ctx.saved_tensors)


norm.register_autograd(backward, setup_context=keep_inputs)

torch.manual_seed(0)
x = torch.randn(4, 6, requires_grad=True)
w = torch.rand(6, requires_grad=True)
loss = norm(x, w).square().mean()

# graph: loss -- Your operator is one node, and its backward launches the second kernel

grads = torch.autograd.grad(loss, (x, w))
reference = nn.functional.rms_norm(x, (6,), w, 1e-6).square().mean()
expected = torch.autograd.grad(reference, (x, w))
torch.testing.assert_close(grads, expected)  # raises if they differ

# sphinx_gallery_start_ignore
_w = torch.rand(1).expand(6).requires_grad_()


def _says(call, *arguments):
    try:
        call(*arguments)
    except Exception as error:
        return str(error)
    return None


_x = (
    torch.randn(3, 6, 2).transpose(1, 2).requires_grad_()
)  # three dimensions, other strides


def _grads(f, x=_x):
    return torch.autograd.grad(f(x, _w).exp().sum(), (x, _w))


def _rms(x, w):
    return nn.functional.rms_norm(x, (6,), w, 1e-6)


torch.testing.assert_close(_grads(norm), _grads(_rms))
_compiled = torch.compile(norm, backend="eager", fullgraph=True)
assert "Cannot access data pointer of Tensor" in _says(_compiled, x, w)


class _Module(nn.Module):
    def forward(self, x, w):
        return norm(x, w)


_export = _says(torch.export.export, _Module(), (x, w))
assert "Cannot access data pointer of Tensor" in _export
_checks = ("test_schema", "test_autograd_registration")
assert set(torch.library.opcheck(norm, (x, w), test_utils=_checks).values()) == {
    "SUCCESS"
}
# sphinx_gallery_end_ignore

# %%
# Why the strides are yours to handle
# -----------------------------------
# A kernel gets the address of the first number, and computes the others from it. Ours assumes that a row begins ``columns``
# numbers after the row before. **So the rule: each stride that a kernel assumes must be true of the tensor that it gets.** An
# incoming gradient has the shape of the output, but its strides depend on what comes after. These are the strides of ``grad``:

uses = {
    "(y * y).sum()": lambda y: (y * y).sum(),
    "torch.cat([y, x], 1).exp().sum()": lambda y: torch.cat([y, x], 1).exp().sum(),
    "y.T.flatten().exp().sum()": lambda y: y.T.flatten().exp().sum(),
    "y.sum()": lambda y: y.sum(),
}
strides = []
for text, use in uses.items():
    y = norm(x, w)
    y.register_hook(lambda grad: strides.append(grad.stride()))
    torch.autograd.grad(use(y), x)
    print(f"{text:<34}{strides[-1]}")

# sphinx_gallery_start_ignore
assert strides == [(6, 1), (12, 1), (1, 4), (0, 0)]
# sphinx_gallery_end_ignore

# %%
# Only the first line has the strides of ``y``. In the last line, ``grad`` is one number in memory, so a kernel that assumes
# ``(6, 1)`` also reads 23 numbers behind it (`TransformerEngine#623
# <https://github.com/ROCm/TransformerEngine/pull/623>`__ saw inf and NaN).

# %%
# Which test finds which mistake
# ------------------------------
# Three mistakes in ``backward``: it ignores the strides of ``grad``, it divides by ``BLOCK`` instead of ``columns``, or each
# program stores its part of the weight's gradient instead of adding it.
#
# .. how-measured:: wrong_kernel has one of the mistakes. The gradients are compared with those of PyTorch's rms_norm.


@triton.jit
def wrong_kernel(
    g_ptr,
    x_ptr,
    w_ptr,
    grad_x_ptr,
    grad_w_ptr,
    columns,
    BLOCK: tl.constexpr,
    MISTAKE: tl.constexpr,
):
    column = tl.arange(0, BLOCK)
    mask, at = column < columns, tl.program_id(0).to(tl.int64) * columns + column
    g = tl.load(g_ptr + at, mask=mask, other=0.0)
    x = tl.load(x_ptr + at, mask=mask, other=0.0)
    w = tl.load(w_ptr + column, mask=mask, other=0.0)
    scale = 1 / tl.sqrt(tl.sum(x * x) / columns + 1e-6)
    n = x * scale
    mean = tl.sum(g * w * n) / (BLOCK if MISTAKE == "block" else columns)
    tl.store(grad_x_ptr + at, scale * (g * w - n * mean), mask=mask)
    if MISTAKE == "store":
        tl.store(grad_w_ptr + column, g * n, mask=mask)
    else:
        tl.atomic_add(grad_w_ptr + column, g * n, mask=mask)


def make_norm(mistake):
    class Norm(torch.autograd.Function):
        @staticmethod
        def forward(x, w):
            x, w = x.contiguous(), w.contiguous()
            y, columns = torch.empty_like(x), x.shape[-1]
            grid, block = (x.numel() // columns,), triton.next_power_of_2(columns)
            norm_kernel[grid](x, w, y, columns, BLOCK=block)
            return y

        @staticmethod
        def backward(ctx, g):
            x, w = (saved.contiguous() for saved in ctx.saved_tensors)
            g = g if mistake == "strides" else g.contiguous()
            results, columns = (torch.empty_like(x), torch.zeros_like(w)), x.shape[-1]
            grid, block = (x.numel() // columns,), triton.next_power_of_2(columns)
            kernel = wrong_kernel[grid]
            kernel(g, x, w, *results, columns, BLOCK=block, MISTAKE=mistake)
            return results

        setup_context = staticmethod(keep_inputs)

    return Norm.apply


def compare(function, rows, columns, cat=False):
    torch.manual_seed(0)
    x = torch.randn(rows, columns, requires_grad=True)
    w = torch.rand(columns, requires_grad=True)
    grads = []
    for call in (function, lambda x, w: nn.functional.rms_norm(x, (columns,), w, 1e-6)):
        y = torch.cat([call(x, w), x], dim=1) if cat else call(x, w)
        grads.append(torch.autograd.grad(y.exp().sum(), (x, w)))
    return all((a - b).norm() < 1e-4 * b.norm() for a, b in zip(*grads, strict=True))


def check_gradient(function):
    x = torch.randn(2, 2, dtype=torch.float64, requires_grad=True)
    w = torch.rand(2, dtype=torch.float64, requires_grad=True)
    return torch.autograd.gradcheck(function, (x, w), raise_exception=False)


# %%
# Five tests of the operator above, and of Functions with one mistake each:

functions = {
    "norm": norm,
    "strides ignored": make_norm("strides"),
    "mean over BLOCK": make_norm("block"),
    "stored, not added": make_norm("store"),
}
tests = {
    "1 row of 8": lambda f: compare(f, 1, 8),
    "4 rows of 8": lambda f: compare(f, 4, 8),
    "4 rows of 6": lambda f: compare(f, 4, 6),
    "4 rows of 6, then cat": lambda f: compare(f, 4, 6, cat=True),
    "gradcheck, 2 rows of 2": check_gradient,
}
table = pd.DataFrame(
    {
        test: {name: "passes" if run(f) else "fails" for name, f in functions.items()}
        for test, run in tests.items()
    }
)

# sphinx_gallery_start_ignore
assert table.replace({"passes": 1, "fails": 0}).astype(int).values.tolist() == [
    [1, 1, 1, 1, 1],
    [1, 1, 1, 0, 1],
    [1, 1, 0, 0, 1],
    [1, 0, 0, 0, 0],
]
assert compare(make_norm(""), 4, 6, cat=True)
for _many in ((4, 1000), (60, 100), (1, 4097)):  # rounding is no mistake
    assert compare(norm, *_many) and compare(norm, *_many, cat=True)
assert not compare(functions["mean over BLOCK"], 4, 1000)
for _like in (_x, torch.randn(6, 4).T, torch.randn(4, 12)[:, ::2], torch.randn(6)):
    _like = _like.detach().requires_grad_()
    torch.testing.assert_close(_grads(make_norm(""), _like), _grads(_rms, _like))


def _through_cat(f):
    return check_gradient(lambda x, w: torch.cat([f(x, w), x], dim=1))


assert _through_cat(norm) and not _through_cat(functions["strides ignored"])
# sphinx_gallery_end_ignore
table

# %%
# One test finds all three: **several rows, a width that is not a power of two, and an output that goes through** ``cat``. A
# ``gradcheck`` calls ``backward`` with contiguous gradients. To let it see others, check ``lambda x, w: torch.cat([norm(x, w),
# x], dim=1)``.

# %%
# Function or triton_op?
# ----------------------
# The wrong versions are autograd Functions that launch their kernels directly. That is enough for training, and PyTorch's
# reference prefers kernels without an operator. Take ``triton_op`` if the kernel needs a name, for example in a
# :ref:`policy of selective checkpoints <sphx_glr_gallery_memory_selective_checkpointing.py>` or for ``torch.export``. Unlike
# :ref:`custom_op <sphx_glr_gallery_functions_custom_operator.py>`, it needs no fake function.

# %%
# What people get wrong
# ---------------------
# **Launching the kernel in the model.** There is no error if a layer with weights follows, or if a residual connection goes
# around it (as in `LongLive#61 <https://github.com/NVlabs/LongLive/pull/61>`__, where some weights did not train):

h = torch.empty_like(x)
norm_kernel[(4,)](x, w, h, 6, BLOCK=8)
(x + h).sum().backward()
print("w.grad:", w.grad)
print("x.grad:", x.grad[0])

# sphinx_gallery_start_ignore
assert w.grad is None and (x.grad == 1).all() and not h.requires_grad
assert torch.equal(h, norm(x, w))
_layer, w.grad, x.grad = nn.Linear(6, 2), None, None
_layer(h).sum().backward()
assert _layer.weight.grad is not None and w.grad is None and x.grad is None
assert "does not require grad" in _says(h.sum().backward)
# sphinx_gallery_end_ignore

# %%
# ``x`` gets only the gradient of the residual connection. Without either, backward raises *does not require grad*.
#
# **No formula for the second derivative.** A gradient penalty differentiates ``norm_backward``:

(grad_x,) = torch.autograd.grad(norm(x, w).exp().sum(), x, create_graph=True)
try:
    grad_x.square().sum().backward()
except RuntimeError as error:
    message = str(error)
    print(message.partition(" Please")[0])

# sphinx_gallery_start_ignore
assert message.startswith(
    "Trying to backward through atlas_triton.norm_backward.default but no autograd"
)


@triton.jit
def _cast_kernel(x_ptr, w_ptr, y_ptr, columns, BLOCK: tl.constexpr):
    column = tl.arange(0, BLOCK)
    mask, at = column < columns, tl.program_id(0).to(tl.int64) * columns + column
    x = tl.load(x_ptr + at, mask=mask, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + column, mask=mask, other=0.0).to(tl.float32)
    scale = 1 / tl.sqrt(tl.sum(x * x) / columns + 1e-6)
    tl.store(y_ptr + at, x * scale * w, mask=mask)


_x, _w, _y = x.bfloat16().detach(), w.bfloat16().detach(), torch.empty(4, 6).bfloat16()
_cast_kernel[(4,)](_x, _w, _y, 6, BLOCK=8)
assert torch.allclose(_y, nn.functional.rms_norm(_x, (6,), _w, 1e-6), rtol=0.02)
_kernel, norm_kernel = norm_kernel, _cast_kernel
assert compare(make_norm(""), 4, 6) and not check_gradient(make_norm(""))
norm_kernel = _kernel
# sphinx_gallery_end_ignore

# %%
# **Computing in bfloat16.** Put ``.to(tl.float32)`` behind each ``tl.load``, and let ``tl.atomic_add`` write into a ``float32``
# tensor. But ``gradcheck`` needs ``float64`` inside too, so compare such a kernel with PyTorch's function.

# %%
# Exercise
# --------
# On a GPU, the additions of ``tl.atomic_add`` come in any order, so the last digits of the weight's gradient can vary. Compute
# it without atomic additions.
#
# .. solution::
#
# Each program stores its part as a row, and PyTorch adds up the rows. That takes as much memory as ``x``:


@triton.jit
def parts_kernel(g_ptr, x_ptr, parts_ptr, columns, BLOCK: tl.constexpr):
    column = tl.arange(0, BLOCK)
    mask, at = column < columns, tl.program_id(0).to(tl.int64) * columns + column
    g = tl.load(g_ptr + at, mask=mask, other=0.0)
    x = tl.load(x_ptr + at, mask=mask, other=0.0)
    scale = 1 / tl.sqrt(tl.sum(x * x) / columns + 1e-6)
    tl.store(parts_ptr + at, g * x * scale, mask=mask)


g, parts = torch.randn(4, 6), torch.empty(4, 6)
parts_kernel[(4,)](g, x, parts, 6, BLOCK=8)
same = torch.allclose(parts.sum(dim=0), norm_backward(g, x, w)[1])
print("same gradient of w:", same)
assert same

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_functions_custom_operator.py`: for a kernel that is not written in Triton.
# - :ref:`sphx_glr_gallery_functions_derive_a_backward.py`: the formulas of other layers, attention too.
# - :ref:`sphx_glr_gallery_functions_gradcheck.py`.
# - :ref:`sphx_glr_gallery_functions_double_backward.py`.
# - In PyTorch's reference: `triton_op and wrap_triton
#   <https://docs.pytorch.org/docs/stable/library.html>`__. In `pytorch#194719
#   <https://github.com/pytorch/pytorch/issues/194719>`__ ``cat`` and the strides of the gradient are discussed.
