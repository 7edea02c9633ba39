r"""
Saved tensors: what autograd keeps for backward
===============================================

.. in-short::

   Between forward and backward, the graph keeps tensors that derivatives need: an input (``log``), the result (``exp``,
   ``relu``) or a new tensor (a dropout mask). ``v + w`` keeps none. Count them with ``saved_tensors_hooks(pack, unpack)``.
   Tensors can share memory, so count each storage once. The hooks miss what a custom Function stores as ``ctx.x``. The peak of
   memory can be higher than what is kept.

.. index::
   single: saved tensors; memory of an operation
   single: ReLU; memory with inplace=True
   single: ReLU; its output is stored for backward
"""

# %%
# Why training needs more memory than inference
# ---------------------------------------------
# Under ``torch.no_grad()``, a result is freed once your code no longer refers to it. In training, the graph keeps some results
# for ``backward()``, and with a large batch they fill the memory. Which ones? Take the activation softplus,
# :math:`\log(1 + e^x)`, in three steps:

import sys

import pandas as pd
import torch
import torch.nn.functional as F
from torch import nn
from torch.autograd.graph import saved_tensors_hooks

x = torch.tensor([0.0, 1.0, 2.0], requires_grad=True)
e = torch.exp(x)
s = e + 1
y = torch.log(s)

# graph: y -- exp saved its result, log saved its input, the addition saved nothing

print("exp keeps", e.grad_fn._saved_result)
print("log keeps", y.grad_fn._saved_self)

# sphinx_gallery_start_ignore
assert torch.equal(e.grad_fn._saved_result, e) and torch.equal(y.grad_fn._saved_self, s)
_of_add = [name for name in dir(s.grad_fn) if name.startswith("_saved")]
assert _of_add == ["_saved_alpha"] and s.grad_fn._saved_alpha == 1
assert not torch.is_tensor(s.grad_fn._saved_alpha)
_row = torch.ones(3, 3)
_row[0] *= x  # a change of a view: the product's node is inside another node
assert not [name for name in dir(_row.grad_fn) if "_saved" in name]
assert torch.polygamma(1, e).grad_fn._saved_n == 1  # here, self is the second operand
# sphinx_gallery_end_ignore

# %%
# Each operation leaves a node in the graph, which computes its derivative in backward. The derivative of :math:`e^x` is
# :math:`e^x`, so the node keeps its *result*. That of :math:`\log s` is :math:`1 / s`, so the node keeps its *input*. That of
# ``e + 1`` is 1, so the node keeps no tensor. Most nodes show what they keep in attributes that begin with ``_saved``.

# %%
# The rule: read the formula
# --------------------------
# **A node keeps the values that occur in PyTorch's formula for the derivative.** For ``sin`` it is :math:`\cos x`, with the
# input; for ``sigmoid`` :math:`y \, (1 - y)`, with the result; for a sum 1, without a value. A few operations, such as
# ``F.avg_pool2d`` and ``gather``, keep their input only to know its shape. So measure.

# %%
# Count the bytes of your function
# --------------------------------
# Inside ``saved_tensors_hooks``, PyTorch calls ``pack`` with each tensor that it is about to save:

torch.manual_seed(0)
v = torch.rand(1000, 1000, requires_grad=True)  # 4 MB
saved = []


def pack(tensor):
    saved.append(tensor.detach())
    return saved[-1]


with saved_tensors_hooks(pack, lambda tensor: tensor):
    result = v * torch.exp(v)

sizes = {t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in saved}
print(len(saved), "tensors saved, in", sum(sizes.values()), "bytes")

# sphinx_gallery_start_ignore
assert len(saved) == 3 and sum(sizes.values()) == 8_000_000
# sphinx_gallery_end_ignore

# %%
# ``exp`` saved its result, and the product saved both factors. One of them *is* the result of ``exp``, so three tensors lie in
# two storages (pieces of memory) of 4 MB. For a model, leave out the storages of its weights and of the batch, which exist
# anyway.
#
# Use such hooks to count, not to train: because of ``detach()``, backward does not notice an in-place change of a saved tensor.
# Without it, the graph could hold itself and :ref:`never be freed <sphx_glr_gallery_memory_saved_tensor_hooks.py>`.

# %%
# Operation by operation
# ----------------------
# ``measure`` does the same for any operation. It returns the saved tensors, the size of their storages in MB, and the result:


def storage_of(tensor):
    return tensor.untyped_storage().data_ptr()


def measure(operation, *operands):
    saved = []

    def pack(tensor):
        saved.append(tensor.detach())
        return saved[-1]

    with saved_tensors_hooks(pack, lambda tensor: tensor):
        result = operation(*operands)
    sizes = {storage_of(tensor): tensor.untyped_storage().nbytes() for tensor in saved}
    return saved, sum(sizes.values()) / 1e6, result


# %%
# .. how-measured:: row tells whose memory an operation keeps: that of v, of w, of the result, or a new tensor.


def row(operation):
    saved, megabytes, result = measure(operation)
    known = {storage_of(v): "v", storage_of(w): "w", storage_of(result): "the result"}
    kept = [
        known.get(storage_of(t), f"new: {str(t.dtype)[6:]} {tuple(t.shape)}")
        for t in saved
    ]
    return {"keeps": ", ".join(dict.fromkeys(kept)) or "nothing", "MB": megabytes}


w = torch.rand(1000, 1000)
operations = {
    "v + w": lambda: v + w,
    "v.sum()": lambda: v.sum(),
    "v.mean()": lambda: v.mean(),
    "v.view(-1)": lambda: v.view(-1),
    "v.clone()": lambda: v.clone(),
    "v.cumsum(0)": lambda: v.cumsum(0),
    "v.expand(2, 1000, 1000)": lambda: v.expand(2, 1000, 1000),
    "v.double()": lambda: v.double(),
    "v.log()": lambda: v.log(),
    "v.sin()": lambda: v.sin(),
    "v * v": lambda: v * v,
    "F.gelu(v)": lambda: F.gelu(v),
    "F.silu(v)": lambda: F.silu(v),
    "F.layer_norm(v, (1000,))": lambda: F.layer_norm(v, (1000,)),
    "v.exp()": lambda: v.exp(),
    "v.sigmoid()": lambda: v.sigmoid(),
    "v.relu()": lambda: v.relu(),
    "v.softmax(1)": lambda: v.softmax(1),
    "v * w": lambda: v * w,
    "v @ w": lambda: v @ w,
    "F.dropout(v)": lambda: F.dropout(v),
    "torch.where(w > 0.5, v, 0)": lambda: torch.where(w > 0.5, v, 0),
    "v.max(1).values": lambda: v.max(1).values,
    "v.sort().values": lambda: v.sort().values,
}

# %%
# ``v`` has 4 MB and requires a gradient, and ``w`` is a constant of the same size. *new* is a tensor made for backward:

table = pd.DataFrame([row(operation) for operation in operations.values()], operations)
table = table.rename_axis(columns="operation")
by_operation = table.map(lambda cell: f"{cell:g}" if isinstance(cell, float) else cell)

# sphinx_gallery_start_ignore
# fmt: off
_kept, _names = table["keeps"], list(operations)
assert (_kept[:8] == "nothing").all() and (table["MB"][:8] == 0).all()
assert (_kept[8:13] == "v").all() and _kept.iloc[13] == "v, new: float32 (1000, 1)"
assert (_kept[14:18] == "the result").all() and (_kept[18:20] == "w").all()
assert (table["MB"][8:21].round(1) == 4).all()
assert _kept["F.dropout(v)"] == "new: float32 (1000, 1000)"
assert _kept["torch.where(w > 0.5, v, 0)"] == "new: bool (1000, 1000)"
assert table["MB"]["torch.where(w > 0.5, v, 0)"] == 1
assert _kept["v.max(1).values"] == "new: int64 (1000,)" and table["MB"]["v.max(1).values"] == 0.008
assert _kept["v.sort().values"] == "new: int64 (1000, 1000)" and table["MB"]["v.sort().values"] == 8
_mask = []
with saved_tensors_hooks(lambda t: _mask.append(t.dtype) or t.detach(), lambda t: t):
    torch.native_dropout(v, 0.5, True)
assert _mask == [torch.bool]
assert measure(lambda: F.dropout(v * 1, inplace=True))[0][0].dtype == v.dtype
for _type in (torch.float16, torch.bfloat16, torch.float64):
    _typed = torch.ones(9, dtype=_type, requires_grad=True)
    assert measure(F.dropout, _typed)[0][0].dtype == _type
# fmt: on
# sphinx_gallery_end_ignore
by_operation

# %%
# The first eight have the same derivative for all values of ``v``. Keeping ``v`` or ``w`` costs nothing more while you hold
# them too.
#
# ``v * v`` saves two tensors in one storage. And a small view keeps the whole storage that it looks into:

for name, factor in {"v": v, "w[0]": w[0], "w[0].clone()": w[0].clone()}.items():
    saved, megabytes, _ = measure(torch.mul, v, factor)
    print(f"v * {name:<12} tensors {sum(t.nbytes for t in saved):>9,} bytes", end="")
    print(f"   storages {megabytes * 1e6:>9,.0f} bytes")

# sphinx_gallery_start_ignore
_found = []
for _factor in (v, w[0], w[0].clone()):
    _saved, _mb, _ = measure(torch.mul, v, _factor)
    _found.append((sum(t.nbytes for t in _saved), _mb))
assert _found == [(8_000_000, 4.0), (4_000, 4.0), (4_000, 0.004)]
# sphinx_gallery_end_ignore

# %%
# In-place activations
# --------------------
# Does ``inplace=True`` save memory? A network has four times ``Linear`` and an activation, each with a result of 4 MB.
#
# .. how-measured:: Hooks count what is kept. A TorchDispatchMode adds up the storages that exist after each operation.

import weakref

from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class Alive(TorchDispatchMode):
    def __init__(self, known):
        super().__init__()
        self.known, self.storages, self.peak = known, weakref.WeakSet(), 0

    @classmethod
    def _should_skip_dynamo(cls):
        return False  # otherwise the first call imports torch._dynamo, for seconds

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        for tensor in tree_leaves(result):
            if storage_of(tensor) not in self.known:
                self.storages.add(tensor.untyped_storage())
        self.peak = max(self.peak, sum(s.nbytes() for s in self.storages))
        return result


def kept_and_peak(activation, inplace):
    layers = [(nn.Linear(10, 10), activation(inplace=inplace)) for _ in range(4)]
    net = nn.Sequential(*(layer for pair in layers for layer in pair))
    batch = torch.rand(100_000, 10)
    own = {storage_of(tensor) for tensor in (batch, *net.parameters())}
    saved, _, _ = measure(net, batch)
    sizes = {storage_of(t): t.nbytes for t in saved if storage_of(t) not in own}
    with Alive(own) as alive:
        net(batch)
    return sum(sizes.values()) / 1e6, alive.peak / 1e6


columns = pd.MultiIndex.from_product(
    [["kept, MB", "peak, MB"], ["new result", "in place"]]
)
activations = (nn.ReLU, nn.LeakyReLU, nn.ELU, nn.SiLU, nn.Hardtanh)
rows = {}
for activation in activations:
    (kept, peak), (kept_in, peak_in) = (
        kept_and_peak(activation, inplace) for inplace in (False, True)
    )
    rows[f"nn.{activation.__name__}"] = [kept, kept_in, peak, peak_in]
in_place = pd.DataFrame(rows, columns).T

# %%
# What the graph keeps, and the most memory in use during the *forward* pass, without weights and batch. *In place* is
# ``inplace=True``:

# sphinx_gallery_start_ignore
assert in_place.loc["nn.ReLU"].tolist() == [16, 16, 20, 16]
assert in_place.loc["nn.LeakyReLU"].tolist() == [28, 16, 32, 16]
assert in_place.loc["nn.ELU"].tolist() == [28, 16, 32, 16]
assert in_place.loc["nn.SiLU"].tolist() == in_place.loc["nn.Hardtanh"].tolist()
assert in_place.loc["nn.SiLU"].tolist() == [28, 28, 32, 32]
for _activation in (nn.SiLU, nn.Hardtanh):
    for _before, _after in ((nn.BatchNorm1d, nn.Identity), (nn.Identity, nn.Dropout)):
        _bytes = []
        for _inplace in (False, True):
            _net = nn.Sequential(
                nn.Linear(8, 8),
                _before(8),
                _activation(inplace=_inplace),
                _after(),
                nn.Linear(8, 8),
            )
            _bytes.append(measure(_net, torch.rand(1000, 8))[1])
        assert _bytes[0] == _bytes[1], _bytes
_raised = []
try:
    torch.relu_(v.exp()).sum().backward()
except RuntimeError as _error:
    _raised.append("modified by an inplace operation" in str(_error))
assert _raised == [True]
# sphinx_gallery_end_ignore
in_place.astype(int)

# %%
# - ``ReLU`` keeps its result, which the next ``Linear`` keeps anyway: four tensors. In place, only the peak of forward is
#   lower, and backward can need as much again.
# - ``LeakyReLU`` and ``ELU`` keep their input, four tensors. The next ``Linear`` keeps the result, three more. In place, both
#   keep the result.
# - ``SiLU`` and ``Hardtanh`` keep their input. In place, they first save a copy of it, so you gain nothing.

# %%
# What the hooks do not see
# -------------------------
# The hooks never get a tensor that a custom Function keeps as an :ref:`attribute of ctx
# <sphx_glr_gallery_functions_context_methods.py>`:


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.x = x.clone()
        return x * x

    @staticmethod
    def backward(ctx, grad_output):
        return 2 * ctx.x * grad_output


saved, megabytes, result = measure(Square.apply, v)
print(megabytes, "MB counted by the hooks,", result.grad_fn.x.nbytes / 1e6, "held")

# sphinx_gallery_start_ignore
assert megabytes == 0 and not saved and result.grad_fn.x.nbytes == 4_000_000
_saved, _, _product = measure(torch.mul, v, 2.5)
assert not _saved and _product.grad_fn._saved_other == 2.5
assert _product.grad_fn._saved_other.nbytes == 8
assert measure(torch.mul, v, torch.tensor(2.5))[1] == 4e-6
with saved_tensors_hooks(_mask.append, lambda t: t):
    _seen = len(_mask)
    measure(torch.exp, v)
    assert len(_mask) == _seen == 1
_raised = []
try:
    measure(torch.sparse.mm, torch.eye(3).to_sparse().requires_grad_(), torch.eye(3))
except NotImplementedError as _error:
    _raised.append("Cannot access storage" in str(_error))
assert _raised == [True]
# sphinx_gallery_end_ignore

# %%
# Inside another ``with saved_tensors_hooks(...)``, only the innermost hooks get the tensors.

# %%
# The rule in a chain of steps
# ----------------------------
# Five steps, each with a result of 4 MB, and a mean. Which results are kept?


def chain():
    a = v + 1
    b = torch.exp(a)
    c = torch.sin(b)
    d = c - 3
    e = torch.sigmoid(d)
    return {"a": a, "b": b, "c": c, "d": d, "e": e, "mean": e.mean()}


saved, megabytes, results = measure(chain)
names = {storage_of(tensor): name for name, tensor in results.items()}
print("saved, in order:", [names[storage_of(tensor)] for tensor in saved])
print(megabytes, "MB for 5 results of 4 MB")

# sphinx_gallery_start_ignore
assert [names[storage_of(tensor)] for tensor in saved] == ["b", "b", "e"]
assert megabytes == 8
del results
# sphinx_gallery_end_ignore

# %%
# ``b`` is the result of ``exp`` and the input of ``sin``, so both nodes keep it, in one storage.
#
# A product keeps each factor for the gradient of the other, so if only one requires a gradient, one is enough:

u = torch.rand(1000, 1000, requires_grad=True)
print(measure(torch.mul, v, u)[1], "MB if both factors require a gradient")
print(measure(torch.mul, v, w)[1], "MB if only v does")

# sphinx_gallery_start_ignore
assert measure(torch.mul, v, u)[1] == 8 and measure(torch.mul, v, w)[1] == 4
assert [storage_of(t) for t in measure(torch.mul, v, w)[0]] == [storage_of(w)]


def _mean_of_chain(alive):
    a = v + 1
    b = torch.exp(a)
    del a
    c = torch.sin(b)
    d = c - 3
    e = torch.sigmoid(d)
    del b, c, d
    return e.mean()


with Alive(set()) as _alive:
    _mean = _mean_of_chain(_alive)
    assert sum(s.nbytes() for s in _alive.storages) == 8_000_004
# sphinx_gallery_end_ignore

# %%
# One operation instead of several can keep less
# ----------------------------------------------
# ``v * torch.sigmoid(v)`` keeps ``v`` and the sigmoid. ``F.silu(v)`` has one node, which keeps ``v`` and computes the sigmoid
# again in backward.
#
# .. how-measured:: Six functions, built in and written by hand, with equal results and gradients up to rounding; and the plot.


def norm(t):
    spread = (t.var(1, keepdim=True, unbiased=False) + 1e-5).sqrt()
    return (t - t.mean(1, keepdim=True)) / spread


def gelu(t):
    return 0.5 * t * (1 + torch.tanh(0.7978846 * (t + 0.044715 * t**3)))


def heads(t):
    return t.view(1, 4, -1, 250)  # 4 heads, as many tokens as rows


def attention(t):
    q = heads(t)
    return (q @ q.mT / 250**0.5).softmax(-1) @ q


functions = {
    "SiLU": (F.silu, lambda t: t * torch.sigmoid(t)),
    "sigmoid": (torch.sigmoid, lambda t: 1 / (1 + torch.exp(-t))),
    "softplus": (F.softplus, lambda t: torch.log(1 + torch.exp(t))),
    "layer norm": (lambda t: F.layer_norm(t, (1000,)), norm),
    "GELU (tanh)": (lambda t: F.gelu(t, approximate="tanh"), gelu),
    "self-attention": (
        lambda t: F.scaled_dot_product_attention(heads(t), heads(t), heads(t)),
        attention,
    ),
}


def draw(bars):
    ax = bars.plot.barh(
        figsize=(7, 3.6), color=["#2563eb", "#c2410c"], edgecolor="white"
    )
    for bar in ax.containers[1]:
        bar.set_hatch("///")
    for container in ax.containers:
        ax.bar_label(container, fmt="%.0f", padding=3, fontsize=9)
    ax.invert_yaxis()
    ax.set(xlabel="MB kept for backward; the input is 4 MB", xlim=(0, 23))
    ax.set_title("Six functions: built in, each keeps less than by hand")
    ax.legend(loc="center right")
    ax.figure.tight_layout()


# %%
# Six functions, each built in and by hand:

kept = {
    name: (measure(built_in, v)[1], measure(by_hand, v)[1])
    for name, (built_in, by_hand) in functions.items()
}
draw(pd.DataFrame(kept, index=["built in", "by hand"]).T)

# figure: Two bars for each of six functions, in megabytes kept. Built in, self-attention keeps 8, the others 4. Written by
#   hand, SiLU, sigmoid, softplus and layer norm keep 8, GELU keeps 16 and self-attention 20.

# sphinx_gallery_start_ignore
_rounded = [(round(one), round(several)) for one, several in kept.values()]
assert _rounded == [(4, 8)] * 4 + [(4, 16), (8, 20)]
_few = (torch.randn(50, 1000) * 3).requires_grad_()
_upstream = torch.rand(50, 1000)
for _built_in, _by_hand in functions.values():
    _y1, _y2 = _built_in(_few), _by_hand(_few)
    assert torch.allclose(_y1, _y2, atol=1e-5)
    _g1, _g2 = (
        torch.autograd.grad(_y, _few, _upstream.view_as(_y))[0] for _y in (_y1, _y2)
    )
    assert torch.allclose(_g1, _g2, atol=1e-4)
_attention = functions["self-attention"]
_shapes = [tuple(t.shape) for t in measure(_attention[0], _few)[0]]
assert (1, 4, 50) in _shapes and all(s[-2:] != (50, 50) for s in _shapes)
assert any(t.shape[-2:] == (50, 50) for t in measure(_attention[1], _few)[0])
with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
    assert any(t.shape[-2:] == (50, 50) for t in measure(_attention[0], _few)[0])
assert measure(F.mse_loss, v, u)[1] == 8
assert measure(lambda: (v - u).square().mean())[1] == 4
# sphinx_gallery_end_ignore

# %%
# By hand, self-attention keeps the matrix of weights, with 1000 × 1000 numbers for each head. The built-in one does not.
#
# But measure before you rewrite: ``F.mse_loss(v, u)`` keeps both inputs, and ``(v - u).square().mean()`` only their difference.

# %%
# What people get wrong
# ---------------------
# **Adding up the sizes of tensors.** Count each storage once.
#
# **Expecting much of inplace=True.** ``SiLU`` gains nothing, and ``ReLU`` only in forward. After an ``exp``, backward
# :ref:`raises an error <sphx_glr_gallery_errors_modified_in_place.py>`.
#
# **Training inside hooks that count.** They switch off this error, so a gradient can be silently wrong.

# %%
# Exercise
# --------
# ``v * torch.sigmoid(v)`` keeps 8 MB. Write it as a custom Function that keeps 4, without ``F.silu``. What is the price?
#
# .. solution::
#
# Save only the input. The price is a second sigmoid in backward. With :math:`s = \sigma(x)`, the derivative is
# :math:`s \, (1 + x \, (1 - s))`.


class Silu(torch.autograd.Function):
    @staticmethod
    def forward(x):
        return x * torch.sigmoid(x)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        s = torch.sigmoid(x)
        return grad_output * s * (1 + x * (1 - s))


_, megabytes, result = measure(Silu.apply, v)
print(megabytes, "MB kept")
assert megabytes == 4 and torch.allclose(result, F.silu(v))
points = torch.linspace(-3, 3, 7, dtype=torch.float64, requires_grad=True)
assert torch.autograd.gradcheck(Silu.apply, points)

# %%
# Measured on a GPU
# -----------------
# Some kernels of a GPU keep something different.
#
# .. needs-a-gpu::

if not torch.cuda.is_available():
    print("What follows is measured, and needs a CUDA device.")
    sys.exit()

from torch.nn.attention import SDPBackend, sdpa_kernel


def attention_by(backend, q, dropout=0.0):
    with sdpa_kernel(backend):
        return F.scaled_dot_product_attention(q, q, q, dropout_p=dropout)


def without_cudnn(layer, batch):
    with torch.backends.cudnn.flags(enabled=False):
        return layer(batch)


ALL = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]


# %%
# .. how-measured:: Sixteen operations, for a device. The images are 8.4 MB large, the sequence 0.8 MB, and q 2.1 MB.


def operations_on(device):
    """Functions by name, and the tensors that exist anyway."""

    def leaf(*shape, **options):
        return torch.rand(*shape, device=device, **options).requires_grad_()

    v, images, sequence = leaf(1000, 1000), leaf(16, 32, 64, 64), leaf(50, 32, 128)
    q, q16 = leaf(1, 8, 1024, 64), leaf(1, 8, 1024, 64, dtype=torch.bfloat16)
    labels = torch.arange(1000, device=device)
    batch_norm, conv = nn.BatchNorm2d(32).to(device), nn.Conv2d(32, 32, 3).to(device)
    lstm = nn.LSTM(128, 128).to(device)
    layers = nn.ModuleList([batch_norm, conv, lstm])
    known = [v, images, sequence, q, q16, labels]
    return {
        "F.dropout(v)": lambda: F.dropout(v),
        "F.dropout(v * 1, inplace=True)": lambda: F.dropout(v * 1, inplace=True),
        "F.gelu(v)": lambda: F.gelu(v),
        "v.softmax(1)": lambda: v.softmax(1),
        "F.cross_entropy(v, labels)": lambda: F.cross_entropy(v, labels),
        "F.layer_norm(v, (1000,))": lambda: F.layer_norm(v, (1000,)),
        "F.rms_norm(v, (1000,))": lambda: F.rms_norm(v, (1000,)),
        "batch_norm(images)": lambda: batch_norm(images),
        "conv(images)": lambda: conv(images),
        "F.max_pool2d(images, 2)": lambda: F.max_pool2d(images, 2),
        "lstm(sequence)": lambda: lstm(sequence)[0],
        "lstm, without cuDNN": lambda: without_cudnn(lstm, sequence)[0],
        "attention": lambda: attention_by(ALL, q),
        "attention, bfloat16": lambda: attention_by(ALL, q16),
        "attention, MATH": lambda: attention_by(SDPBackend.MATH, q),
        "attention, dropout": lambda: attention_by(ALL, q, 0.1),
    }, [*known, *layers.parameters(), *layers.buffers()]


# %%
# .. how-measured:: The hooks count, and PyTorch's allocator says how many bytes are in use while only grad_fn is kept.


def seen_by_hooks(operation, known):
    saved = measure(operation)[0]
    sizes = {storage_of(t): t.untyped_storage().nbytes() for t in saved}
    own = {storage_of(t) for t in known}  # the weights of an LSTM can share a storage
    return sum(n for s, n in sizes.items() if s not in own)


def seen_by_allocator(operation):
    def in_use():
        return torch.cuda.memory_stats()["requested_bytes.all.current"]

    operation()  # the first call loads libraries, which keep something
    before = in_use()
    node = operation().grad_fn
    kept = in_use() - before
    del node
    return kept


# %%
# What each keeps beyond its inputs and weights, in MB:

# varies: The GPU and its libraries decide which kernel runs, and what it keeps.

(on_cpu, known_cpu), (on_gpu, known_gpu) = operations_on("cpu"), operations_on("cuda")
rows = {
    name: {
        "CPU, hooks": seen_by_hooks(on_cpu[name], known_cpu) / 1e6,
        "GPU, hooks": seen_by_hooks(on_gpu[name], known_gpu) / 1e6,
        "GPU, allocator": seen_by_allocator(on_gpu[name]) / 1e6,
    }
    for name in on_cpu
}
devices = pd.DataFrame(rows).T
# sphinx_gallery_start_ignore
_mb = devices.round(2)
assert _mb.loc["F.dropout(v)"].to_list() == [4, 1, 1]
assert (_mb.loc["F.dropout(v * 1, inplace=True)"] == 4).all()
assert (_mb.loc["F.gelu(v)"] == 0).all() and (_mb.loc["v.softmax(1)"] == 4).all()
assert _mb["GPU, hooks"]["attention, MATH"] > 30 > 10 > _mb["GPU, hooks"]["attention"]
assert (
    _mb["GPU, hooks"]["attention, dropout"]
    < 10
    < _mb["CPU, hooks"]["attention, dropout"]
)
_gaps = (devices["GPU, hooks"] - devices["GPU, allocator"]).abs()
assert (_gaps < 0.01).all(), _gaps  # in MB: the allocator may round by 512 bytes
assert (_mb["GPU, hooks"] == _mb["CPU, hooks"]).sum() == 12
_lstm = _mb["GPU, hooks"]["lstm(sequence)"]
assert _lstm < _mb["CPU, hooks"]["lstm(sequence)"]
assert _lstm < _mb["GPU, hooks"]["lstm, without cuDNN"] / 2
# sphinx_gallery_end_ignore
devices.round(2).rename_axis(columns="MB")

# %%
# In 12 of the 16 rows, the GPU keeps as much as the CPU. ``F.dropout`` keeps a float for each element on the CPU, a bool on the
# GPU. The hooks and PyTorch's allocator agree in each row.

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_graphs_graph_lifetime.py`, when all this is freed.
# - :ref:`sphx_glr_gallery_memory_saved_tensor_hooks.py`: the same hooks can also make less of what is kept.
# - :doc:`All operators </reference/operators>`: what each one keeps.
# - In PyTorch's notes: `Saved tensors <https://docs.pytorch.org/docs/stable/notes/autograd.html#saved-tensors>`__ and `Hooks
#   for saved tensors <https://docs.pytorch.org/docs/stable/notes/autograd.html#hooks-for-saved-tensors>`__.
