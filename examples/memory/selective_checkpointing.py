r"""
Selective activation checkpointing: what to keep, what to recompute
===================================================================

.. index::
   single: create_selective_checkpoint_contexts
   single: CheckpointPolicy, MUST_SAVE and PREFER_RECOMPUTE
   ! single: Trying to backward an extra time. You are only allowed to backward once
   ! single: Tensor cached during selective activation checkpoint has been mutated
   ! single: Unpack is being triggered for a tensor that was already unpacked once
   single: keep attention, recompute the rest

.. in-short::

   List the operators whose results a checkpoint should keep. Backward computes the rest again:

   .. code-block:: python

      aten = torch.ops.aten
      operators = [
          aten._scaled_dot_product_flash_attention.default,
          aten._scaled_dot_product_efficient_attention.default,
      ]
      keep = partial(create_selective_checkpoint_contexts, operators)
      y = checkpoint(block, x, use_reentrant=False, context_fn=keep)

   Keep what is slow to compute and small, as the result of attention (these are its names on a GPU). Such a block allows one
   ``backward()``, and no write into a kept result. Do not keep an operator that draws random numbers.
"""

# %%
# Which operators does a block run?
# ---------------------------------
# :ref:`A checkpoint <sphx_glr_gallery_memory_checkpointing.py>` runs a whole block again, with its attention, which is slow for
# long sequences. A *policy* decides for each operator. This one only notes the names:

from functools import partial

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import (
    CheckpointPolicy,
    checkpoint,
    create_selective_checkpoint_contexts,
    noop_context_fn,
)


class Block(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        qkv = self.qkv(self.norm1(x)).unflatten(-1, (3, 4, -1))
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        heads = F.scaled_dot_product_attention(q, k, v)
        x = x + self.out(heads.transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


names = []


def note_names(ctx, op, *args, **kwargs):
    names.append(str(op))
    return CheckpointPolicy.PREFER_RECOMPUTE


x = torch.randn(8, 128, 64, requires_grad=True)
note = partial(create_selective_checkpoint_contexts, note_names)
y = checkpoint(Block(), x, use_reentrant=False, context_fn=note)
print(*dict.fromkeys(names), sep="\n")

# sphinx_gallery_start_ignore
for _name, _calls in {
    "addmm.default": 4,
    "_scaled_dot_product_flash_attention_for_cpu.default": 1,
    "native_layer_norm.default": 2,
    "gelu.default": 1,
}.items():
    assert names.count(f"aten.{_name}") == _calls
for _backend in ("flash", "efficient", "cudnn"):
    _name = f"_scaled_dot_product_{_backend}_attention"
    assert getattr(torch.ops.aten, _name).default


def _names_of(call, *inputs):
    names.clear()
    checkpoint(call, *inputs, use_reentrant=False, context_fn=note)
    return names


assert "aten.addmm.default" not in _names_of(nn.Linear(64, 64, bias=False), x)
assert "aten.mm.default" in _names_of(nn.Linear(64, 64, bias=False), x)
_transposed = _names_of(nn.Linear(128, 64), x.transpose(1, 2))
assert "aten.mm.default" in _transposed and "aten.addmm.default" not in _transposed
assert "aten.bmm.default" in _names_of(torch.matmul, x, x.transpose(1, 2))
# sphinx_gallery_end_ignore

# %%
# ``nn.Linear`` is ``addmm``. It is ``mm`` without a bias, or after a ``transpose`` of a sequence. Attention has another
# name for each kernel, on a GPU ``_scaled_dot_product_flash_attention``, ``_efficient_attention`` or ``_cudnn_attention``.

# %%
# What it keeps, and what runs again
# ----------------------------------
# A policy can look at the arguments, and at the result, which is ``ctx.op_output``. ``narrow`` keeps products with at most 64
# columns:

attention = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default
product = torch.ops.aten.addmm.default


def narrow(ctx, op, *args, **kwargs):
    if op is attention or (op is product and ctx.op_output.shape[-1] <= 64):
        return CheckpointPolicy.MUST_SAVE
    return CheckpointPolicy.PREFER_RECOMPUTE


def everything(ctx, op, *args, **kwargs):
    return CheckpointPolicy.MUST_SAVE


# %%
# .. how-measured:: A mode adds up the bytes that exist when forward ends, without weights and batch, and counts the operators
#    that backward calls.

import weakref
from collections import Counter

import matplotlib.pyplot as plt
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class Meter(TorchDispatchMode):
    def __init__(self, *existing):
        super().__init__()
        self.existing = {tensor.untyped_storage()._cdata for tensor in existing}
        self.sizes, self.calls, self.peak = {}, Counter(), 0

    def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
        result = operator(*args, **(kwargs or {}))
        self.calls[operator] += 1
        for tensor in tree_leaves(result):
            if isinstance(tensor, torch.Tensor):
                storage = tensor.untyped_storage()
                key = storage._cdata
                if key not in self.sizes and key not in self.existing:
                    self.sizes[key] = storage.nbytes()
                    weakref.finalize(storage, self.sizes.pop, key)
        self.peak = max(self.peak, self.mib())
        return result

    def mib(self):
        return sum(self.sizes.values()) / 2**20


def measure(policy):
    torch.manual_seed(0)
    blocks = nn.ModuleList([Block() for _ in range(4)])
    x = torch.randn(8, 128, 64, requires_grad=True)
    context_fn = partial(create_selective_checkpoint_contexts, policy)
    with Meter(x, *blocks.parameters()) as meter:
        y = x
        for block in blocks:
            if policy is None:
                y = block(y)
            else:
                y = checkpoint(block, y, use_reentrant=False, context_fn=context_fn)
        loss = y.square().mean()
        del y
        kept = meter.mib()
        meter.calls.clear()
        loss.backward()
    again = meter.calls[product], meter.calls[attention]
    return {"kept": kept, "peak": meter.peak, "again": again, "gradient": x.grad}


def plot_memory(rows):
    _, ax = plt.subplots(figsize=(7, 3.1), layout="constrained")
    kept, peak = ([row[key] for row in rows.values()] for key in ("kept", "peak"))
    bars = ax.barh(list(rows), peak, color="#94a3b8", label="at the peak, in backward")
    ax.barh(list(rows), kept, color="#2563eb", label="when forward ends")
    labels = []
    for row in rows.values():
        products, attentions = row["again"]
        labels.append(f"{products} products, {attentions} attentions")
    ax.bar_label(bars, labels, padding=4, fontsize=9)
    ax.invert_yaxis()
    ax.set(xlim=(0, 30), xlabel="MiB")
    ax.set_title("Memory, and how many products and attentions run again")
    ax.legend(fontsize=8, loc="upper right", bbox_to_anchor=(1, 0.82))


# %%
# Six ways to run four such blocks. A list of operators is a policy, too:

ways = {
    "no checkpoint": None,
    "keep nothing": [],
    "keep attention": [attention],
    "keep narrow": narrow,
    "keep attention, addmm": [attention, product],
    "keep everything": everything,
}
rows = {name: measure(policy) for name, policy in ways.items()}

# figure: Bars of the memory when forward ends, and of the peak. No checkpoint: 16.1 and 17.2 MiB, and no product or attention
#   runs again. Keep nothing: 1.0 and 5.8, and 12 products and 4 attentions run again. Keep attention: 2.1 and 6.6, 12 products.
#   Keep narrow: 4.1 and 8.4, 8 products. Keep attention and addmm: 11.1 and 13.6, none. Keep everything: 18.1 and 19.2, none.
plot_memory(rows)


# sphinx_gallery_start_ignore
def _numbers(policy):
    row = measure(policy) if policy not in rows else rows[policy]
    return round(row["kept"], 1), round(row["peak"], 1), *row["again"]


assert [_numbers(_name) for _name in rows] == [
    (16.1, 17.2, 0, 0),
    (1.0, 5.8, 12, 4),
    (2.1, 6.6, 12, 0),
    (4.1, 8.4, 8, 0),
    (11.1, 13.6, 0, 0),
    (18.1, 19.2, 0, 0),
]
_gradient = rows["no checkpoint"]["gradient"]
assert all(torch.equal(_row["gradient"], _gradient) for _row in rows.values())
assert _numbers(lambda ctx, op, *_, **__: op is product)[2:] == (0, 4)
for _policy, _same in {
    (lambda *_, **__: CheckpointPolicy.PREFER_SAVE): "keep everything",
    (lambda ctx, op, *_, **__: op is attention): "keep attention",
    (lambda ctx, op, *_, **__: op is torch.ops.aten.mm.default): "keep nothing",
}.items():
    assert _numbers(_policy) == _numbers(_same)
# sphinx_gallery_end_ignore

# %%
# All six have the same gradient, to the last bit. One more MiB spares all four attentions.
#
# The first run keeps the results that the policy names, *whether backward needs them or not*. The second run takes them from
# there instead of computing them, and each can be taken once. So "keep everything" holds more than no checkpoint.
#
# A policy can return six values. Without ``torch.compile`` there are only two results:

for policy in CheckpointPolicy:
    row = measure(lambda *_, answer=policy, **__: answer)
    kept, again = row["kept"], row["again"][0]
    print(f"{policy.name:<18} {kept:>4.1f} MiB, {again:>2} products again")

    # sphinx_gallery_start_ignore
    _same = "keep everything" if "SAVE" in policy.name else "keep nothing"
    _kept, _, _products, _ = _numbers(_same)
    assert (round(row["kept"], 1), row["again"][0]) == (_kept, _products)
# sphinx_gallery_end_ignore

# %%
# The ``CPU_OFFLOAD`` policies move nothing to the CPU: they compute again. ``MUST`` and ``PREFER`` differ only under
# ``torch.compile``, which may overrule ``PREFER``.

# %%
# The messages
# ------------
# **Trying to backward an extra time.** Two losses of one output, a gradient penalty (``create_graph=True``), or one pair of
# contexts for several blocks:

block, x = Block(), torch.randn(2, 8, 64, requires_grad=True)
keep = partial(create_selective_checkpoint_contexts, [attention, product])
options = {"use_reentrant": False, "context_fn": keep}

y = checkpoint(block, x, **options)
y.sum().backward(retain_graph=True)
try:
    y.square().sum().backward()
except RuntimeError as error:
    message = str(error)
    print(message)

# sphinx_gallery_start_ignore
assert message.startswith("Trying to backward an extra time. You are only allowed to")
x.grad = None


def _says(call, *arguments):
    try:
        call(*arguments)
    except RuntimeError as error:
        return str(error)
    return None


def _penalty(**options):
    y = checkpoint(block, x, use_reentrant=False, **options)
    (slope,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    (slope.square().sum() + y.sum()).backward()


_pair = keep()


def _one_pair():
    y = checkpoint(block, x, use_reentrant=False, context_fn=lambda: _pair)
    checkpoint(block, y, use_reentrant=False, context_fn=lambda: _pair).sum().backward()


def _two_losses(**options):
    x.grad = None
    y = checkpoint(block, x, use_reentrant=False, **options)
    y.sum().backward(retain_graph=True)
    y.square().sum().backward()
    return x.grad


assert _says(_one_pair) == message
from torch.nn.attention import SDPBackend, sdpa_kernel

with sdpa_kernel(SDPBackend.MATH):  # the fast kernel has no second derivative
    assert _says(lambda: _penalty(context_fn=keep)) == message
    assert _says(_penalty) is None
_right = _two_losses()
x.grad = None
y = checkpoint(block, x, **options)
(y.sum() + y.square().sum()).backward()
assert torch.allclose(x.grad, _right, atol=1e-5)
# sphinx_gallery_end_ignore

# %%
# Add the losses, and call ``backward()`` once. If you cannot, as with a penalty, leave ``context_fn`` out. It must return a new
# pair at each call, as ``partial`` does.
#
# **Tensor cached during selective activation checkpoint has been mutated.** An operator writes into a kept result, as
# ``nn.ReLU(inplace=True)`` or ``h += x``:

linear = nn.Linear(64, 64)


def in_place(x):
    h = linear(x)
    h *= 2
    return h.sin()


try:
    checkpoint(in_place, x, **options).sum().backward()
except RuntimeError as error:
    message = str(error)
    print(message)

# sphinx_gallery_start_ignore
_mutated = "Tensor cached during selective activation checkpoint has been mutated"
_says_so = tuple(int(part) for part in torch.__version__.split(".")[:2]) < (2, 15)
assert (message == _mutated) == _says_so


def _gradient_of(call, **options):
    x.grad = None
    checkpoint(call, x, use_reentrant=False, **options).sum().backward()
    return x.grad


_relu = nn.Sequential(nn.Linear(64, 64), nn.ReLU(inplace=True), nn.Linear(64, 64))
_residual = lambda x: linear(x).add_(x).sin()  # noqa: E731
for _call in (_relu, _residual):
    _said = _says(lambda call=_call: _gradient_of(call, context_fn=keep))
    assert _said == (_mutated if _says_so else None)
    assert _says(lambda call=_call: _gradient_of(call)) is None
_rows = x[0].detach().requires_grad_()  # no view after the product: all raise
_said = _says(lambda: checkpoint(in_place, _rows, **options).sum().backward())
assert _said == _mutated
assert _says_so or not torch.allclose(
    _gradient_of(_residual, context_fn=keep), _gradient_of(_residual), atol=0.1
)
_allow = partial(keep, allow_cache_entry_mutation=True)
_right = _gradient_of(in_place)
assert not torch.allclose(_gradient_of(in_place, context_fn=_allow), _right, atol=0.1)
_fixed = _gradient_of(lambda x: (linear(x) * 2).sin(), context_fn=keep)
assert torch.allclose(_fixed, _right, atol=1e-6)
# sphinx_gallery_end_ignore

# %%
# Write ``h = h * 2``. ``allow_cache_entry_mutation=True`` also silences it, but here the gradient is then wrong: the second
# run multiplies by 2 again. PyTorch 2.15 does this without a message after an ``nn.Linear`` whose input has three dimensions.

allow = partial(keep, allow_cache_entry_mutation=True)
for name, context_fn in (("right:", noop_context_fn), ("allowed:", allow)):
    y = checkpoint(in_place, x, use_reentrant=False, context_fn=context_fn)
    (gradient,) = torch.autograd.grad(y.sum(), x)
    print(f"{name:<8}", gradient[0, 0, :3])

# sphinx_gallery_start_ignore
assert not torch.allclose(gradient, _right, atol=0.1)
_noop = checkpoint(in_place, x, use_reentrant=False, context_fn=noop_context_fn)
assert torch.allclose(torch.autograd.grad(_noop.sum(), x)[0], _right)
# sphinx_gallery_end_ignore

# %%
# **Unpack is being triggered for a tensor that was already unpacked once.** Your own Function reads ``ctx.saved_tensors``
# twice (as in `mamba#1021 <https://github.com/state-spaces/mamba/pull/1021>`__), or a hook reads ``grad_fn._saved_self`` during
# backward (`pytorch#82156 <https://github.com/pytorch/pytorch/issues/82156>`__ asks to allow it). Any checkpoint with
# ``use_reentrant=False`` raises it:


class Sine(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sin()

    @staticmethod
    def backward(ctx, grad):
        if len(ctx.saved_tensors) == 1:  # the first time
            (x,) = ctx.saved_tensors  # the second time
            return grad * x.cos()


try:
    checkpoint(Sine.apply, x, use_reentrant=False).sum().backward()
except RuntimeError as error:
    message = str(error)
    print(message.partition(": ")[2])

# sphinx_gallery_start_ignore
assert "Unpack is being triggered for a tensor that was already unpacked" in message
assert _says(lambda: Sine.apply(x).sum().backward()) is None


class _Once(Sine):
    @staticmethod
    def backward(ctx, grad):
        saved = ctx.saved_tensors
        return grad * saved[0].cos() if len(saved) == 1 else None


for _options in ({}, {"context_fn": keep}):
    assert _says(lambda options=_options: _gradient_of(Sine.apply, **options)) == (
        message
    )
    assert torch.equal(_gradient_of(_Once.apply, **_options), x.detach().cos())


def _hooked(x):
    y = x.sin()
    node = y.grad_fn
    y.register_hook(lambda grad: grad * node._saved_self.cos())
    return y * 1


for _options in ({}, {"context_fn": keep}):
    _said = _says(lambda options=_options: _gradient_of(_hooked, **options))
    assert _said == message
_hooked(x).sum().backward()  # without a checkpoint, it may


def _other_run(x):
    _runs.append(len(_runs))
    return x.cos().tanh() if len(_runs) > 1 else x.sin().exp()


_runs = []
_said = _says(lambda: _gradient_of(_other_run, context_fn=keep))
assert "encountered during backward but not found in storage" in _said
# sphinx_gallery_end_ignore

# %%
# Access it exactly once, and keep the result in a variable. If :ref:`the second run differs from the first
# <sphx_glr_gallery_errors_checkpoint_metadata.py>`, you may see *encountered during backward but not found in storage*.

# %%
# What people get wrong
# ---------------------
# **Keeping an operator that draws random numbers.** A checkpoint restores the random generator before the second run. But a
# kept operator does not run there and draws nothing. So the next dropout gets its numbers, and a different mask:

dropout = nn.Dropout()


def noisy(x):
    x = x + torch.randn_like(x)
    return dropout(x.sin())


for kept in [], [torch.ops.aten.randn_like.default]:
    keep = partial(create_selective_checkpoint_contexts, kept)
    torch.manual_seed(0)
    x = torch.zeros(1000, requires_grad=True)
    y = checkpoint(noisy, x, use_reentrant=False, context_fn=keep)
    y.sum().backward()
    wrong = ((y == 0) != (x.grad == 0)).sum().item()
    print(f"{len(kept)} operators kept: {wrong} of 1000 gradients wrong")

    # sphinx_gallery_start_ignore
    assert wrong > 400 if kept else wrong == 0
for _operator in (
    torch.ops.aten.randn_like,
    torch.ops.aten.native_dropout,
    torch.ops.aten._scaled_dot_product_flash_attention,
    torch.ops.aten._scaled_dot_product_efficient_attention,
):
    assert torch.Tag.nondeterministic_seeded in _operator.default.tags
assert torch.Tag.nondeterministic_seeded not in product.tags
# sphinx_gallery_end_ignore

# %%
# No error is raised. Attention with ``dropout_p`` above 0 on a GPU draws numbers, too.
#
# **Naming an operator that never runs.** ``[torch.ops.aten.addmm.default]`` keeps nothing of a ``Linear`` without a bias, and
# the CPU's attention is no GPU's. There is no warning. Note the names, as above, on the device on which you train.

# %%
# Exercise
# --------
# ``keep narrow`` keeps the results of ``out`` and of ``down``. Backward takes only one of the two. Which one is kept for
# nothing? Change the policy, and predict the MiB.
#
# .. solution::
#
# That of ``down``. It is only added, and a sum saves nothing, so the second run stops before it. Its input has 256 columns,
# which tells it from ``out``. Four results of 0.25 MiB are gone:


def narrower(ctx, op, *args, **kwargs):
    if op is product and args[1].shape[-1] > 64:
        return CheckpointPolicy.PREFER_RECOMPUTE
    return narrow(ctx, op, *args, **kwargs)


row = measure(narrower)
print(f"{row['kept']:.1f} MiB, and {row['again'][0]} products run again")

# sphinx_gallery_start_ignore
assert _numbers(narrower)[::2] == (3.1, 8)
assert abs(rows["keep narrow"]["kept"] - row["kept"] - 4 * 0.25) < 0.01
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_memory_checkpointing.py`: where to cut a network into blocks.
# - :ref:`sphx_glr_gallery_memory_memory_under_compile.py`, which chooses by itself.
# - :ref:`sphx_glr_gallery_functions_custom_operator.py`: give your own kernel a name that a policy can keep.
# - In PyTorch's reference: `create_selective_checkpoint_contexts
#   <https://docs.pytorch.org/docs/stable/checkpoint.html>`__.
