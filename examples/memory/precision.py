r"""
Mixed precision with autocast: bfloat16 or float16
==================================================

.. index::
   single: automatic mixed precision (AMP)
   single: torch.cuda.amp.autocast is deprecated
   single: fp16 or bf16
   single: TF32 and set_float32_matmul_precision
   single: custom_fwd and custom_bwd

.. in-short::

   Put the forward pass and the loss under ``torch.autocast``, and nothing else:

   .. code-block:: python

      with torch.autocast("cuda", dtype=torch.bfloat16):
          loss = loss_fn(model(x), y)
      loss.backward()

   Most matrix products are then computed with 16 bits. Weights, their gradients and the optimizer stay in float32, so leave out
   ``model.half()``. Take bfloat16 if your GPU computes with it. float16 is finer, but it ends at 65504, and small gradients
   become 0, so for training it needs a ``GradScaler``.
"""

# %%
# What autocast does
# ------------------
# On a GPU, linear layers and convolutions then run in 16 bits, which is usually faster and takes less memory. ``softmax``,
# ``layer_norm`` and most losses run in float32. **Forward and loss are inside of the** ``with``, **backward and the optimizer's
# step are outside**:

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
model, x = nn.Linear(4, 1), torch.randn(64, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

for _ in range(30):
    with torch.autocast("cpu", dtype=torch.bfloat16):  # "cuda" on a GPU
        output = model(x)
        loss = F.mse_loss(output, x.sum(1, keepdim=True))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

print(f"loss {loss.item():.4f}")
print("output:", output.dtype, "  loss:", loss.dtype)
weight = model.weight
print("weight:", weight.dtype, "  its gradient:", weight.grad.dtype)

# sphinx_gallery_start_ignore
assert loss < 0.001
assert output.dtype == torch.bfloat16
assert loss.dtype == model.weight.dtype == model.weight.grad.dtype == torch.float32
# sphinx_gallery_end_ignore

# %%
# Before a product, autocast *casts* (converts) the weight to bfloat16. The weight itself stays in float32. The cast is a node
# of the graph, and returns the gradient in float32:

w = torch.tensor([[0.25], [0.125]], requires_grad=True)

with torch.autocast("cpu", dtype=torch.bfloat16):
    y = torch.tensor([[1.0, 2.0]]) @ w

# graph: y -- autocast cast w to bfloat16 before the product, and the cast is a node

# sphinx_gallery_start_ignore
assert y.dtype == torch.bfloat16
assert y.grad_fn.next_functions[1][0].name() == "ToCopyBackward0"
(_gradient,) = torch.autograd.grad(y.sum(), w)
assert _gradient.dtype == torch.float32
# sphinx_gallery_end_ignore

# %%
# Less memory for the same model
# ------------------------------
# How many bytes does the graph save for backward, without weights and batch? Four blocks of ``Linear`` and ``GELU`` are trained
# in float32, under autocast, and with everything in bfloat16, the weights too.
#
# .. how-measured:: The hook note adds up the bytes. The error is the distance to the gradient in float32.

import pandas as pd
from torch.autograd.graph import saved_tensors_hooks


def train_step(weights, products):
    torch.manual_seed(0)
    blocks = [nn.Sequential(nn.Linear(256, 256), nn.GELU()) for _ in range(4)]
    net, batch = nn.Sequential(*blocks).to(weights), torch.randn(1024, 256).to(weights)
    sizes = {}

    def note(tensor):
        storage = tensor.untyped_storage()
        sizes[storage.data_ptr()] = storage.nbytes()
        return tensor.detach()

    with saved_tensors_hooks(note, lambda tensor: tensor):
        use_autocast = products != weights
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=use_autocast):
            output = net(batch)
    for tensor in (batch, *net.parameters()):
        sizes.pop(tensor.untyped_storage().data_ptr(), None)
    output.float().square().sum().backward()
    return sum(sizes.values()), torch.stack([layer.weight.grad for layer, _ in net])


_, exact = train_step(torch.float32, torch.float32)
rows = {}
for name, *types in (
    ("float32", torch.float32, torch.float32),
    ("autocast", torch.float32, torch.bfloat16),
    ("all bfloat16", torch.bfloat16, torch.bfloat16),
):
    saved, gradient = train_step(*types)
    error = (gradient.float() - exact).norm() / exact.norm()
    rows[name] = {
        "gradients": str(gradient.dtype)[6:],
        "bytes saved for backward": f"{saved:,}",
        "error of the gradient": f"{error:.1%}",
    }
steps = pd.DataFrame(rows).T

# %%
# Autocast saves fewer bytes, and its gradients stay in float32:

# sphinx_gallery_start_ignore
_bytes = [int(text.replace(",", "")) for text in steps["bytes saved for backward"]]
_batch, _weight = 1024 * 256 * 2, 256 * 256 * 2
assert _bytes == [14 * _batch, 7 * _batch + _batch + 3 * _weight, 7 * _batch]
_errors = [float(text.rstrip("%")) for text in steps["error of the gradient"]]
assert _errors[0] == 0
assert all(0.1 < error < 100 * torch.finfo(torch.bfloat16).eps for error in _errors[1:])
assert steps["gradients"].tolist() == ["float32", "float32", "bfloat16"]
# sphinx_gallery_end_ignore
steps.rename_axis(columns="step")

# %%
# Autocast adds copies of the batch and of three weights in bfloat16. Weights and optimizer take as much memory as before.

# %%
# Which operation gives which type
# --------------------------------
# ``nn.Linear`` returns bfloat16 under autocast. So for the operation that follows, look at *from bfloat16*.
#
# .. how-measured:: Each expression runs under FakeTensorMode, which computes types and shapes for CUDA without a GPU.


from torch._subclasses.fake_tensor import FakeTensorMode


class Casting:
    """As torch.autocast, which turns itself off for "cuda" without a GPU."""

    def __init__(self, device, dtype=torch.bfloat16):
        self.device, self.dtype = device, dtype

    def __enter__(self):
        self.before = torch.get_autocast_dtype(self.device)
        torch.set_autocast_enabled(self.device, True)
        torch.set_autocast_dtype(self.device, self.dtype)

    def __exit__(self, *error):
        torch.set_autocast_enabled(self.device, False)
        torch.set_autocast_dtype(self.device, self.before)
        torch.clear_autocast_cache()


def type_of(function, device, operands, lower=torch.bfloat16):
    with FakeTensorMode(), torch.no_grad():
        shapes = ((4, 4), (4, 4), (4,))
        tensors = [torch.rand(s, dtype=operands, device=device) for s in shapes]
        with Casting(device, lower):
            return str(function(*tensors).dtype)[6:]


def tabulate_types(expressions):
    rows = {}
    for name, function in expressions.items():
        rows[name] = {
            f"{device.upper()}, from {str(kind)[6:]}": type_of(function, device, kind)
            for kind in (torch.bfloat16, torch.float32)
            for device in ("cpu", "cuda")
        }
    return pd.DataFrame(rows).T


def attention(a, b, v):
    return F.scaled_dot_product_attention(a, b, b)


expressions = {
    "a @ b": lambda a, b, v: a @ b,
    "torch.mv(a, v)": lambda a, b, v: torch.mv(a, v),
    "F.scaled_dot_product_attention": attention,
    "a + b": lambda a, b, v: a + b,
    "a.relu()": lambda a, b, v: a.relu(),
    "a.mean()": lambda a, b, v: a.mean(),
    "a.exp()": lambda a, b, v: a.exp(),
    "a.sum()": lambda a, b, v: a.sum(),
    "a.softmax(1)": lambda a, b, v: a.softmax(1),
    "F.layer_norm(a, (4,))": lambda a, b, v: F.layer_norm(a, (4,)),
    "F.mse_loss(a, b)": lambda a, b, v: F.mse_loss(a, b),
    "F.cross_entropy(a, b)": lambda a, b, v: F.cross_entropy(a, b),
}

# %%
# The type of each result on a GPU, under ``autocast(dtype=torch.bfloat16)``:

types = tabulate_types(expressions)

# sphinx_gallery_start_ignore
for _name, _function in expressions.items():
    for _kind in (torch.float32, torch.bfloat16):
        _operands = [torch.rand(s).to(_kind) for s in ((4, 4), (4, 4), (4,))]
        with torch.autocast("cpu", dtype=torch.bfloat16):
            _found = str(_function(*_operands).dtype)[6:]
        assert _found == types.loc[_name, f"CPU, from {str(_kind)[6:]}"]
    for _device in ("cpu", "cuda"):
        for _kind, _half in (
            (torch.float32, torch.float32),
            (torch.bfloat16, torch.float16),
        ):
            _found = type_of(_function, _device, _half, torch.float16)
            _column = f"{_device.upper()}, from {str(_kind)[6:]}"
            assert _found.replace("float16", "bfloat16") == types.loc[_name, _column]
_cpu, _cuda = types.filter(like="CPU"), types.filter(like="CUDA")
assert (
    list(types.index[(_cpu.values != _cuda.values).any(axis=1)])
    == """torch.mv(a, v)
a.exp()
a.sum()
a.softmax(1)
F.layer_norm(a, (4,))""".splitlines()
)
assert (
    types.loc[["F.mse_loss(a, b)", "F.cross_entropy(a, b)"]]
    .eq("float32")
    .all(axis=None)
)
_rows = ["a.exp()", "a.sum()", "a.softmax(1)", "F.layer_norm(a, (4,))"]
assert (types.loc[_rows, "CPU, from bfloat16"] == "bfloat16").all()
assert (types.loc[_rows].filter(like="CUDA") == "float32").all(axis=None)
# sphinx_gallery_end_ignore
types.filter(like="CUDA").rename_axis(columns="expression")

# %%
# The CPU has different rules: ``exp``, ``sum``, ``softmax`` and ``layer_norm`` keep bfloat16 there. With float16, the table is
# the same. On CUDA, ``binary_cross_entropy`` raises an error, so use
# ``binary_cross_entropy_with_logits``. :ref:`Near the end of the page <autocast-rules>` are all operations.

# %%
# bfloat16 or float16
# -------------------
# Both take 16 bits. float16 spends more of them on digits, bfloat16 on range.
#
# .. how-measured:: This code rounds numbers to both formats. Each point is the largest relative error of about a thousand
#    numbers, from that size to twice that size.

import matplotlib.pyplot as plt

powers = range(-33, 27)
numbers = torch.logspace(0, 1, 1001, base=2, dtype=torch.float64)  # from 1 to 2


def measure_worst_error(kind, power):
    exact = numbers * 2.0**power
    return ((exact.to(kind).double() - exact) / exact).abs().clamp(max=1).max().item()


def plot_worst_errors(errors):
    _, ax = plt.subplots(figsize=(7, 2.8), layout="constrained")
    sizes = [2.0**power for power in powers]
    ax.loglog(sizes, errors[torch.float16], "-", color="#c2410c", label="float16")
    ax.loglog(sizes, errors[torch.bfloat16], "--", color="#2563eb", label="bfloat16")
    ax.set(xlabel="size of the number", ylabel="worst relative error")
    ax.set_title("float16 is finer, and ends on both sides")
    ax.legend(loc="upper center")


# %%
# The rounding error of each format, from tiny numbers to large ones:

formats = (torch.float16, torch.bfloat16)
errors = {}
for kind in formats:
    errors[kind] = [measure_worst_error(kind, power) for power in powers]

# figure: The worst relative rounding error of numbers from 1e-10 to 1e8. bfloat16 is at 0.004 everywhere. float16 is
#   at 0.0005 from about 6e-5 to more than 1e4. Towards smaller numbers its error grows, and under 3e-8 it is 1, for
#   these numbers become zero. At the other end it jumps to 1, where numbers become infinite.
plot_worst_errors(errors)

print("largest float16:", torch.finfo(torch.float16).max)
print("3e-8 in float16: ", torch.tensor(3e-8).half().item())
print("2e-8 in float16: ", torch.tensor(2e-8).half().item())

# sphinx_gallery_start_ignore
assert 0.0004 < measure_worst_error(torch.float16, 0) < 0.0005
assert 0.003 < measure_worst_error(torch.bfloat16, 0) < 0.004
assert all(error == errors[torch.bfloat16][0] for error in errors[torch.bfloat16])
_normal = [
    e for e, p in zip(errors[torch.float16], powers, strict=True) if -14 <= p < 15
]
assert max(_normal) == min(_normal)
assert errors[torch.float16][0] == errors[torch.float16][-1] == 1
assert torch.tensor(2.9e-8).half() == 0 and torch.tensor(65520.0).half().isinf()
assert torch.tensor(65519.0).half() == 65504 and -torch.tensor(2.9e-8).half() == 0
assert torch.tensor(3e-8).half() > 0 and torch.finfo(torch.float16).max == 65504
assert torch.get_float32_matmul_precision() == "highest"
_bf, _single = torch.finfo(torch.bfloat16), torch.finfo(torch.float32)
assert _bf.smallest_normal == _single.smallest_normal and _bf.max > 0.99 * _single.max
# sphinx_gallery_end_ignore

# %%
# Gradients smaller than about 3e-8 become 0 in float16. So float16 needs :ref:`a GradScaler
# <sphx_glr_gallery_memory_grad_scaler.py>`. bfloat16 has nearly the range of float32, and is used without a scaler.
# ``torch.cuda.is_bf16_supported(including_emulation=False)`` says whether your GPU has it.
#
# **TF32** is a different switch. ``torch.set_float32_matmul_precision("high")`` lets matrix products of float32 tensors use
# fewer digits on GPUs that have TF32.

# %%
# An island in float32
# --------------------
# For a part that needs more digits or range, switch autocast off and convert the inputs:

layer, head = nn.Linear(4, 4), nn.Linear(4, 2)
with torch.autocast("cpu", dtype=torch.bfloat16):
    h = layer(x)
    with torch.autocast("cpu", enabled=False):  # "cuda" on a GPU
        scores = head(h.float())
print("h:", h.dtype, "  scores:", scores.dtype)

# sphinx_gallery_start_ignore
assert (h.dtype, scores.dtype) == (torch.bfloat16, torch.float32)
_raised = []
with torch.autocast("cpu", dtype=torch.bfloat16):
    with torch.autocast("cpu", enabled=False):
        try:
            head(h)
        except RuntimeError as error:
            _raised.append("have the same dtype" in str(error))
assert _raised == [True]
# sphinx_gallery_end_ignore

# %%
# What people get wrong
# ---------------------
# **A training loop inside of one** ``with``. Autocast keeps the 16-bit copy of a weight until you leave the outermost ``with``.
# But the optimizer changes only the float32 weight, so the loss silently stays where it is:

torch.manual_seed(0)
model, x = nn.Linear(4, 1), torch.randn(64, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

with torch.autocast("cpu", dtype=torch.bfloat16):
    for step in range(30):
        loss = F.mse_loss(model(x), x.sum(1, keepdim=True))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step in (0, 29):
            print(f"step {step}: loss {loss.item():.4f}")

# sphinx_gallery_start_ignore
assert 5 < loss < 6 and model.weight.min() > 4  # it has moved far, to no effect
# sphinx_gallery_end_ignore

# %%
# Instead write the ``with`` inside the loop, as at the top of this page.

# sphinx_gallery_start_ignore
_layer = nn.Linear(2, 2)
with torch.autocast("cpu", torch.bfloat16):
    _first = _layer(torch.ones(1, 2))
    with torch.no_grad():
        _layer.weight.zero_()
    assert torch.equal(_layer(torch.ones(1, 2)), _first)
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(_layer(torch.ones(1, 2)), _first)
with torch.autocast("cpu", torch.bfloat16):
    assert not torch.equal(_layer(torch.ones(1, 2)), _first)
with torch.autocast("cpu", torch.bfloat16, cache_enabled=False):
    _first = _layer(torch.ones(1, 2))
    with torch.no_grad():
        _layer.weight.fill_(1)
    assert not torch.equal(_layer(torch.ones(1, 2)), _first)
for _other in (_layer.half(), nn.Linear(2, 2).requires_grad_(False)):  # not kept
    with torch.autocast("cpu", torch.bfloat16):
        _first = _other(torch.ones(1, 2))
        with torch.no_grad():
            _other.weight.add_(1)
        assert not torch.equal(_other(torch.ones(1, 2)), _first)
_layer = nn.Linear(2, 2)
with torch.autocast("cpu", enabled=False):  # an outer one that is off keeps it too
    _found = []
    for _value in (1, 2):
        with torch.no_grad():
            _layer.weight.fill_(_value)
        with torch.autocast("cpu", torch.bfloat16):
            _found.append(_layer(torch.ones(1, 2)))
    assert torch.equal(*_found)
# sphinx_gallery_end_ignore

# %%
# **Types that meet outside.** ``h`` stays in bfloat16 after the ``with``. So move the next layer inside, or write
# ``h.float()``, which NumPy needs too:

layer, batch = nn.Linear(4, 4), torch.ones(1, 4)
with torch.autocast("cpu", dtype=torch.bfloat16):
    h = layer(batch)
try:
    layer(h)
except RuntimeError as error:
    message = str(error)
    print(f"RuntimeError: {message}")

# sphinx_gallery_start_ignore
_scores, _mask, _raised = torch.ones(2, 2).half(), torch.eye(2).bool(), []
_mask[1] = True  # a row without any score
try:
    _scores.masked_fill(_mask, -1e9)
except RuntimeError as error:
    _raised.append("Half without overflow" in str(error))
assert _raised == [True]
for _kind in (torch.float16, torch.bfloat16, torch.float32):
    _filled = _scores.to(_kind).masked_fill(_mask, torch.finfo(_kind).min)
    assert _filled.softmax(1).tolist() == [[0, 1], [0.5, 0.5]]
_raised = []
try:
    h.detach().numpy()
except TypeError as error:
    _raised.append("unsupported ScalarType BFloat16" in str(error))
assert _raised == [True] and h.detach().float().numpy().dtype.name == "float32"
assert "must have the same dtype" in message and layer(h.float()).dtype == torch.float32
import threading
import warnings

_seen = []
with torch.autocast("cpu", torch.bfloat16):
    _thread = threading.Thread(
        target=lambda: _seen.append(torch.is_autocast_enabled("cpu"))
    )
    _thread.start()
    _thread.join()
    assert torch.is_autocast_enabled("cpu") and _seen == [False]
    _wide = torch.ones(2, 2, dtype=torch.float64)
    assert (_wide @ _wide).dtype == torch.float64
    _out = torch.zeros(2, 2)
    torch.mm(torch.ones(2, 2), torch.ones(2, 2), out=_out)
    assert _out.dtype == torch.float32
    assert torch.ones(2, 2).addmm_(_out, _out).dtype == torch.float32
with warnings.catch_warnings(record=True) as _caught:
    warnings.simplefilter("always")
    torch.cuda.amp.autocast()
_texts = [str(w.message) for w in _caught if w.category is FutureWarning]
assert len(_texts) == 1
assert "`torch.cuda.amp.autocast(args...)` is deprecated" in _texts[0]
assert "Please use `torch.amp.autocast('cuda', args...)` instead." in _texts[0]
# sphinx_gallery_end_ignore

# %%
# **-1e9 in a mask.** It is out of the range of float16, so ``scores.masked_fill(mask, -1e9)`` raises. Instead of -1e9 write
# ``torch.finfo(scores.dtype).min``.
#
# **Expecting autocast everywhere.** These keep their types: a product of float64 matrices, ``torch.mm`` with ``out=``, and
# in-place ``addmm_``. A thread that you start begins with autocast off.
#
# **torch.cuda.amp.autocast()** still works, with a ``FutureWarning``: write ``torch.autocast("cuda")``.

# %%
# Exercise
# --------
# A weight is 1, and its gradient is 1 in each of 1000 steps with a learning rate of 0.001. It should end at 0. Where does it
# end if the weight is stored in bfloat16, and in float16?
#
# .. solution::
#
# Just below 1, neighbors in bfloat16 are 0.0039 apart, so 1 minus 0.001 is rounded back to 1, and the weight stays. In float16
# they are 0.0005 apart, so the weight arrives near 0. Therefore leave the weights in float32, as autocast does.

ends = {}
for kind in (torch.bfloat16, torch.float16, torch.float32):
    weight = torch.ones((), dtype=kind)
    for _ in range(1000):
        weight -= 0.001 * torch.ones((), dtype=kind)
    ends[kind] = weight.item()
    print(f"{kind!s:<15} {ends[kind]:.4f}")

assert ends[torch.bfloat16] == 1 and abs(ends[torch.float32]) < 1e-4

# predict: ends[torch.bfloat16] -- Where does the weight end in bfloat16?

# sphinx_gallery_start_ignore
assert [round(torch.finfo(kind).eps / 2, 4) for kind in formats] == [0.0005, 0.0039]
assert 0 < ends[torch.float16] < 0.1
_net = nn.Linear(1, 1, bias=False, dtype=torch.bfloat16)
nn.init.ones_(_net.weight)
_sgd = torch.optim.SGD(_net.parameters(), lr=0.001)
for _ in range(1000):
    _net.weight.grad = torch.ones_like(_net.weight)
    _sgd.step()
assert _net.weight == 1
# sphinx_gallery_end_ignore

# %%
# Your own autograd.Function
# --------------------------
# Two decorators turn autocast off in forward and backward, and convert the inputs. ``device_type`` is that of the autocast
# outside:

from torch.amp import custom_bwd, custom_fwd


class Square(torch.autograd.Function):
    @staticmethod
    @custom_fwd(device_type="cpu", cast_inputs=torch.float32)
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x @ x

    @staticmethod
    @custom_bwd(device_type="cpu")
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return gradient @ x.T + x.T @ gradient


x = torch.rand(2, 2, requires_grad=True)
with torch.autocast("cpu", dtype=torch.bfloat16):
    y = Square.apply(x @ x)
print(y.dtype)

# sphinx_gallery_start_ignore
assert y.dtype == torch.float32
y.sum().backward()
_x = x.detach().clone().requires_grad_()
_low = (_x.bfloat16() @ _x.bfloat16()).float()
(_low @ _low).sum().backward()
assert torch.allclose(x.grad, _x.grad, rtol=0.02)


class _Uncast(Square):
    @staticmethod
    @custom_fwd(device_type="cpu")
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x @ x


def _penalty(square):
    _z = torch.arange(4.0).reshape(2, 2).requires_grad_()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        _h = _z @ _z
        with torch.autocast("cpu", enabled=False):
            _y = square(_h)
    (_slope,) = torch.autograd.grad(_y.sum(), _h, create_graph=True)
    if not _slope.requires_grad:
        return None
    return torch.autograd.grad(_slope.float().square().sum(), _z)[0]


with torch.autocast("cpu", dtype=torch.bfloat16):
    _h = x.detach().bfloat16().requires_grad_()
    (_slope,) = torch.autograd.grad(Square.apply(_h).sum(), _h, create_graph=True)
assert not _slope.requires_grad  # cast_inputs has cut the second derivative
_found = _penalty(lambda h: _Uncast.apply(h.float()))
assert torch.allclose(_found, _penalty(lambda h: h.float() @ h.float()), rtol=0.02)


class _New(torch.autograd.Function):
    forward = staticmethod(custom_fwd(lambda x: x * 2, device_type="cpu"))
    setup_context = staticmethod(lambda ctx, inputs, output: None)
    backward = staticmethod(custom_bwd(lambda ctx, g: g * 2, device_type="cpu"))


_raised = []
try:
    _New.apply(x).sum().backward()
except AttributeError as error:
    _raised.append(str(error))
assert _raised == ["'_NewBackward' object has no attribute '_fwd_used_autocast'"]
# sphinx_gallery_end_ignore

# %%
# ``cast_inputs`` converts outside of the graph, so a gradient penalty silently loses this part. For a penalty, leave it out,
# and call ``Square.apply(h.float())`` in an island. With a separate ``setup_context``, backward raises ``AttributeError: ...
# '_fwd_used_autocast'`` (`pytorch#132388 <https://github.com/pytorch/pytorch/issues/132388>`__).

# %%
# .. _autocast-rules:
#
# All operations with a rule
# --------------------------
# An operation with *no rule*, or outside of both lists, works with the types that it gets, or consists of others that have a
# rule, as ``cross_entropy`` does on CUDA.
#
# .. how-measured:: For each operation that PyTorch registers for autocast, a dispatch mode notes the first cast and stops
#    there. So shapes that do not fit do no harm.


import itertools
import textwrap

from torch.utils._python_dispatch import TorchDispatchMode


class Stopped(Exception):
    pass


class FirstCast(TorchDispatchMode):
    dtype = None

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        if str(operation).startswith("prim."):  # asks for the device
            return operation(*args, **(kwargs or {}))
        self.dtype = (kwargs or {}).get("dtype")
        raise Stopped


def value_for(kind, tensor):
    if kind in ("Tensor", "Optional[Tensor]"):
        return tensor()
    if kind in ("List[Tensor]", "List[Optional[Tensor]]"):
        return [tensor(), tensor()]
    if "List" in kind:
        return [1]
    simple = {"number": 2, "int": 1, "float": 0.5, "bool": False, "str": "nuc"}
    return simple.get(kind)


def first_cast(operation, device, first, *others):
    made = []

    def tensor():
        kind = others[0] if made and others else first
        made.append(torch.empty((2, 2), dtype=kind, device=device))
        return made[-1]

    needed = [a for a in operation._schema.arguments if not a.has_default_value()]
    with FakeTensorMode(), torch.no_grad():
        values = {a.name: value_for(str(a.type), tensor) for a in needed}
        args = [values.pop(a.name) for a in needed if not a.kwarg_only]
        if "Tensor self, Tensor other, int? dim" in str(operation._schema):
            values["dim"] = 0  # cross warns without it
        with FirstCast() as seen, Casting(device):
            try:
                operation(*args, **values)
            except Exception as error:
                return "raises" if "unsafe to autocast" in str(error) else seen.dtype


def rule(operation, device):
    low, wide = torch.bfloat16, torch.float32
    mixed = first_cast(operation, device, low, wide)
    if mixed == wide:
        alone = first_cast(operation, device, low)
        return "float32" if alone == wide else "widest"
    if mixed == low or first_cast(operation, device, wide) == low:
        return "16 bits"
    return mixed


def rules(device):
    found = {}
    key = "Autocast" + device.upper()
    for name in torch._C._dispatch_get_registrations_for_dispatch_key(key):
        packet, _, overload = name.removeprefix("aten::").partition(".")
        operation = getattr(getattr(torch.ops.aten, packet), overload or "default")
        if not packet.startswith("_"):
            found[packet] = rule(operation, device) or found.get(packet)
    return found


rules_of = pd.DataFrame({d.upper(): rules(d) for d in ("cpu", "cuda")})
rules_of = rules_of.fillna("no rule").sort_index().rename_axis("operations")
order = ["16 bits", "float32", "widest", "raises", "no rule"]


def print_rules(rules_of):
    for cuda, cpu in itertools.product(order, order):
        chosen = (rules_of["CUDA"] == cuda) & (rules_of["CPU"] == cpu)
        if chosen.any():
            print(f"CUDA: {cuda}   CPU: {cpu}")
            start = {"initial_indent": "    ", "subsequent_indent": "    "}
            print(textwrap.fill(", ".join(rules_of.index[chosen]), 86, **start))


# %%
# *16 bits* and *float32* say to what the operands are cast, if you do not pass a ``dtype=`` to ``sum`` or ``softmax``. *widest*
# is the wider type of 16 bits and float32 among them:

# sphinx_gallery_start_ignore
import pathlib
import re

_header = pathlib.Path(torch.__file__).parent / "include/ATen/autocast_mode.h"
_text = _header.read_text()
for _macro, _what in (
    ("LOWER_PRECISION_FP", "16 bits"),
    ("FP32", "float32"),
    ("FP32_SET_OPT_DTYPE", "float32"),
    ("PROMOTE", "widest"),
):
    _body = _text.split(f"define AT_FORALL_{_macro}(_)")[1].split("\n\n")[0]
    _names = {n for n in re.findall(r"_\((\w+)", _body) if not n.startswith("_")}
    assert len(_names) > 7 and all(rules_of["CUDA"][n] == _what for n in _names)
for _function, _operand, _wanted in (
    (lambda a, b, v: a.sum(dtype=torch.bfloat16), torch.float32, "bfloat16"),
    (lambda a, b, v: a.softmax(0, dtype=torch.bfloat16), torch.float32, "bfloat16"),
    (lambda a, b, v: a.sum(), torch.float64, "float64"),
    (lambda a, b, v: a.softmax(0), torch.float64, "float64"),
):
    assert type_of(_function, "cuda", _operand) == _wanted
for _operand in (torch.float32, torch.float64, torch.bfloat16):
    _raised = []
    try:
        type_of(lambda a, b, v: F.binary_cross_entropy(a, b), "cuda", _operand)
    except RuntimeError as error:
        _raised.append("unsafe to autocast" in str(error))
    assert _raised == [True]
assert set(rules_of["CUDA"]) | set(rules_of["CPU"]) == set(order)
assert (rules_of["CUDA"] == "raises").sum() == 1 and len(rules_of) > 150
for _name in ("trace", "prod", "avg_pool3d", "cdist"):
    assert rules_of["CPU"][_name] == "float32"
for _name in ("mv", "dot", "addmv", "addr"):
    assert rules_of["CPU"][_name] == "no rule"
_h, _v = torch.rand(4, 4), torch.rand(4)
with torch.autocast("cpu", torch.bfloat16):
    assert torch.mv(_h, _v).dtype == torch.dot(_v, _v).dtype == torch.float32
    assert torch.outer(_v, _v).dtype == torch.float32
    assert _h.bfloat16().trace().dtype == _h.bfloat16().prod().dtype == torch.float32
    _gauss = F.gaussian_nll_loss(*[t.bfloat16() for t in (_v, _v, _v)])
    assert _gauss.dtype == torch.bfloat16 and "gaussian_nll_loss" not in rules_of.index
    assert torch.einsum("ij,jk->ik", _h, _h).dtype == torch.bfloat16
    assert F.binary_cross_entropy(_v.bfloat16(), _v).dtype == torch.float32
# sphinx_gallery_end_ignore
print_rules(rules_of)

# %%
# ``gaussian_nll_loss`` has no rule on either device. The lists differ a little between releases.

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_cuda_checkpoint_and_precision.py`, memory and time of bfloat16 on a GPU.
# - :ref:`sphx_glr_gallery_errors_different_dtypes.py`, the message for types that meet.
# - :ref:`sphx_glr_gallery_debugging_finding_nans.py`, when float16 overflows.
# - In PyTorch's reference: `torch.amp <https://docs.pytorch.org/docs/stable/amp.html>`__ with its lists of operations, and
#   `Automatic mixed precision examples <https://docs.pytorch.org/docs/stable/notes/amp_examples.html>`__.
