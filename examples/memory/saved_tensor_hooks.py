r"""
saved_tensors_hooks: pack what backward keeps
=============================================

Between forward and backward, saved tensors do nothing but take memory. A pair of hooks decides in which form they
wait: in half precision, on disk, in another device's memory. This page writes such hooks, measures what they save
and what they do to the gradient, and shows how they go wrong without a word.
"""

# %%
# A pair of functions
# -------------------
# The first is called with each tensor that a node saves, and the node keeps what it returns. The second gets that
# back when backward needs the tensor, and must return a tensor. Together they should change nothing.

import gc
import itertools
import tempfile
import weakref
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd
import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.autograd.graph import save_on_cpu, saved_tensors_hooks
from torch.utils._pytree import tree_leaves


def pack(tensor):
    print("  pack", [round(number, 2) for number in tensor.tolist()])
    return tensor.tolist()


def unpack(numbers):
    print("  unpack")
    return torch.tensor(numbers)


x = torch.tensor([1.0, 2.0], requires_grad=True)
print("forward")
with saved_tensors_hooks(pack, unpack):
    y = torch.exp(x).log().sum()
print("backward")
y.backward()
print("x.grad =", x.grad.tolist())

# sphinx_gallery_start_ignore
assert torch.allclose(x.grad, torch.ones(2))
# sphinx_gallery_end_ignore

# %%
# The result of exp is saved twice: by exp, as its result, and by log, as its input. The hooks hold for what is
# recorded inside the ``with``; backward may run outside of it. Between the two, the numbers here waited in a Python
# list.

# %%
# Fewer bits
# ----------
# ``Packed`` wraps what a hook returns. It lives as long as the node keeps it, so a ``WeakSet`` knows what is held.
# Weights and batch pass through the hooks like everything else. They exist anyway, and a packed copy would come on
# top, so ``hooks`` leaves alone what is in ``exists``.

alive = weakref.WeakSet()


class Packed:
    def __init__(self, content, restore):
        self.content, self.restore = content, restore
        alive.add(self)


def storage_of(tensor):
    return tensor.untyped_storage()._cdata  # private: a fake storage has no address


def hooks(pack, unpack, exists=()):
    def wrap(tensor):
        if storage_of(tensor) in exists:
            return Packed(tensor.detach(), lambda same: same)
        return Packed(pack(tensor), unpack)

    return saved_tensors_hooks(wrap, lambda packed: packed.restore(packed.content))


def held(exists=()):
    tensors = [t for packed in alive for t in tree_leaves(packed.content)]
    sizes = {storage_of(t): t.untyped_storage().nbytes() for t in tensors}
    return sum(size for key, size in sizes.items() if key not in exists)


# %%
# Four formats, on four blocks of ``Linear`` and ``GELU``. For int8 the pack hook scales the largest number to 127.
# The forward pass computes in float32 as ever, so the loss does not change. Backward works with rounded numbers.


def to_int8(tensor):
    scale = tensor.abs().max() / 127
    return (tensor / scale).round().to(torch.int8), scale


formats = {
    "float32": (lambda tensor: tensor.detach(), lambda kept: kept),
    "bfloat16": (lambda tensor: tensor.bfloat16(), lambda kept: kept.float()),
    "float16": (lambda tensor: tensor.half(), lambda kept: kept.float()),
    "int8": (to_int8, lambda kept: kept[0] * kept[1]),
}


def run(pack, unpack, leave_weights=True, activation=nn.GELU):
    torch.manual_seed(0)
    blocks = [nn.Sequential(nn.Linear(256, 256), activation()) for _ in range(4)]
    net, batch = nn.Sequential(*blocks), torch.randn(1024, 256)
    exists = {storage_of(tensor) for tensor in (batch, *net.parameters())}
    with hooks(pack, unpack, exists if leave_weights else ()):
        output = net(batch)
    bytes_ = held(exists)
    output.square().sum().backward()
    return bytes_, torch.stack([linear.weight.grad for linear, _ in net])


exact = run(*formats["float32"])[1]
rows = {}
for name, (pack, unpack) in formats.items():
    bytes_, gradient = run(pack, unpack)
    with FakeTensorMode():  # predicts without computing
        predicted, _ = run(pack, unpack)
    error = ((gradient - exact).norm() / exact.norm()).item()
    rows[name] = {"MB held": round(bytes_ / 1e6, 2)}
    rows[name]["predicted"] = round(predicted / 1e6, 2)
    rows[name]["error of the gradient"] = error
    assert predicted == bytes_

table = pd.DataFrame(rows).T
# sphinx_gallery_start_ignore
assert list(table["MB held"]) == [7.34, 3.67, 3.67, 1.84]
_errors = list(table["error of the gradient"])
assert _errors[0] == 0 < _errors[2] < _errors[1] < _errors[3] < 0.01, _errors
assert 4 < _errors[1] / _errors[2] < 16
# sphinx_gallery_end_ignore
table.map("{:.2g}".format).rename_axis(columns="format")

# %%
# bfloat16 spends its 16 bits on a larger range, float16 on finer steps. The error is that of the gradients of all
# four weights, relative to their length.

# figure: On the left, bars for the megabytes held: float32 7.3, bfloat16 and float16 3.7, int8 1.8. On the right,
#   dots for the error of the gradient on a logarithmic axis: float16 lowest, bfloat16 several times larger, int8
#   largest, and none for float32, which is exact.
fig, (left, right) = plt.subplots(1, 2, figsize=(7, 2.6), layout="constrained")
bars = left.barh(table.index, table["MB held"], color="#2563eb")
left.bar_label(bars, fmt="%.1f", padding=3)
left.set(title="What packing saves", xlabel="MB held", xlim=(0, 9))
right.plot(table["error of the gradient"][1:], [1, 2, 3], "D", color="#c2410c")
right.annotate("exact", (1e-5, 0), va="center")
right.set(title="What it costs", xlabel="relative error of the gradient")
right.set(xscale="log", xlim=(5e-6, 1e-2), yticks=range(4), yticklabels=[])
right.grid(axis="y", color="#e2e8f0")
for ax in (left, right):
    ax.set_ylim(3.6, -0.6)

# %%
# Without ``exists``, the hooks copy batch and weights too.

left_alone, _ = run(*formats["float16"])
copied, _ = run(*formats["float16"], leave_weights=False)
print(f"float16, weights left alone: {left_alone:,} bytes")
print(f"float16, weights copied:     {copied:,} bytes")
assert copied > left_alone

# %%
# To disk and back
# ----------------
# A file is a form to wait in too. ``Stored`` writes one, and removes it when the node lets go.


class Stored:
    numbers = itertools.count()

    def __init__(self, tensor, folder):
        self.path = Path(folder) / f"{next(self.numbers)}.pt"
        torch.save(tensor.detach().clone(), self.path)

    def load(self):
        return torch.load(self.path)

    def __del__(self):
        self.path.unlink(missing_ok=True)


def files(folder):
    return [path.stat().st_size for path in Path(folder).iterdir()]


w = torch.rand(500, 500, requires_grad=True)

with tempfile.TemporaryDirectory() as folder:
    with saved_tensors_hooks(lambda tensor: Stored(tensor, folder), Stored.load):
        y = torch.exp(w).sin().sum()
    sizes = files(folder)
    print(f"after forward:  {len(sizes)} files, {sum(sizes) / 1e6:.1f} MB")
    y.backward()
    print(f"after backward: {len(files(folder))} files")
    assert files(folder) == []

by_hand = torch.exp(w).cos() * torch.exp(w)
print("gradient right:", torch.allclose(w.grad, by_hand))

# sphinx_gallery_start_ignore
import io

_file = io.BytesIO()
torch.save(w.detach()[0], _file)
assert len(_file.getvalue()) > w.nbytes
assert (
    torch.finfo(torch.bfloat16).max > 1e38
    and torch.finfo(torch.float16).eps < torch.finfo(torch.bfloat16).eps
)
assert len(sizes) == 2 and not Path(folder).exists() and torch.allclose(w.grad, by_hand)
# sphinx_gallery_end_ignore

# %%
# ``torch.save`` writes the whole storage of a view, so a clone is saved. The node drops what was packed when backward
# has used it, and Python calls ``__del__``.

# %%
# Hooks that PyTorch brings along, and where hooks apply
# ------------------------------------------------------
# ``save_on_cpu`` is such a pair: pack moves a tensor to the host's memory, unpack moves it back to its device. For
# tensors that are on the CPU already there is nothing to move and no memory to gain.

device, waiting = save_on_cpu().pack_hook(w)
print("a pair of hooks:", issubclass(save_on_cpu, saved_tensors_hooks))
same = storage_of(waiting) == storage_of(w)
print("to go back to:  ", device.type, "  same memory:", same)
assert issubclass(save_on_cpu, saved_tensors_hooks) and same

# %%
# The hooks of a ``with`` are *default hooks*: they apply to all that is saved inside. Of two nested pairs the inner
# one applies alone. A single saved tensor can get hooks of its own, through the attribute ``_raw_saved_...`` of its
# node.

events = []


def named(name):
    def pack(tensor):
        events.append(name)
        return tensor.detach()

    return pack, lambda kept: kept


with saved_tensors_hooks(*named("outer")):
    with saved_tensors_hooks(*named("inner")):
        torch.exp(w)
y = torch.exp(w)
y.grad_fn._raw_saved_result.register_hooks(*named("only this one"))
print(events)
assert events == ["inner", "only this one"]

# %%
# What people get wrong
# ---------------------
# **Returning the tensor itself.** What pack gets still has its ``grad_fn``. If that is the node that keeps it, the
# two hold each other, and not even the garbage collector can free them. Only backward can. In a loop that evaluates
# without ``no_grad``, memory grows with every step. Return ``tensor.detach()``.


def survives(pack, backward):
    leaf = torch.ones(1000, requires_grad=True)
    with saved_tensors_hooks(pack, lambda kept: kept):
        y = torch.exp(leaf)
    memory = weakref.ref(y.untyped_storage())
    if backward:
        y.sum().backward()
    del y
    gc.collect()
    return memory() is not None


print("tensor          survives:", survives(lambda tensor: tensor, backward=False))
print("tensor.detach() survives:", survives(lambda t: t.detach(), backward=False))
print("tensor, after backward:  ", survives(lambda tensor: tensor, backward=True))

# sphinx_gallery_start_ignore
assert survives(lambda tensor: tensor, False) and survives(
    lambda tensor: tensor.cpu(), False
)
assert not survives(lambda tensor: tensor.detach(), False)
assert not survives(lambda tensor: tensor, True)
# sphinx_gallery_end_ignore

# %%
# ``tensor.cpu()`` for a tensor on the CPU returns the tensor itself, so ``save_on_cpu`` does the same there.

# %%
# **Trusting the check for changes in place.** Without hooks, autograd compares :ref:`versions
# <sphx_glr_gallery_differentiation_inplace_and_versions.py>` and raises. With hooks it does not: it cannot know
# what pack has made of the tensor. If pack kept the same memory, the gradient is wrong.


def slope(pack):
    x = torch.tensor(2.0, requires_grad=True)
    h = x * 1
    with saved_tensors_hooks(pack, lambda kept: kept):
        y = h**2
    with torch.no_grad():
        h.fill_(10)
    y.backward()
    return x.grad.item()


print("gradient of x**2 at 2, the same memory:", slope(lambda t: t.detach()))
print("gradient of x**2 at 2, a copy:         ", slope(lambda t: t.detach().clone()))
assert slope(lambda t: t.detach()) == 20 and slope(lambda t: t.clone()) == 4

# sphinx_gallery_start_ignore
x = torch.tensor(2.0, requires_grad=True)
h = x * 1
y = h**2
with torch.no_grad():
    h.fill_(10)
try:
    y.backward()
except RuntimeError as error:
    message = str(error)
assert "modified by an inplace operation" in message
# sphinx_gallery_end_ignore

# %%
# **A branch that no test reaches.** This mistake has stood in `PyTorch's own tutorial
# <https://docs.pytorch.org/tutorials/intermediate/autograd_saved_tensors_hooks_tutorial.html>`__: the pack hook leaves
# small tensors alone, and in the branch for large ones it uses a name that it does not have. Tests with small tensors
# pass.


def pack_large(t):
    if t.numel() < 1000:
        return t.detach()
    return tensor.half()  # noqa: F821, and that is the mistake


for size in (10, 1000):
    leaf = torch.ones(size, requires_grad=True)
    try:
        with saved_tensors_hooks(pack_large, lambda kept: kept.float()):
            torch.exp(leaf).sum().backward()
        print(f"{size:>4} numbers: no error")
    except NameError as error:
        print(f"{size:>4} numbers: NameError: {error}")
        assert "name 'tensor' is not defined" in str(error) and size == 1000

# %%
# **Forgetting the range.** float16 ends at 65504. A larger number waits as infinity, and the gradient is infinite
# too.

for name in ("float16", "bfloat16"):
    leaf = torch.tensor(12.0, requires_grad=True)
    with saved_tensors_hooks(*formats[name]):
        y = torch.exp(leaf)
    y.backward()
    print(f"{name:<9} exp(12) = {y.item():.0f}   gradient {leaf.grad.item():.0f}")

# sphinx_gallery_start_ignore
assert torch.finfo(torch.float16).max == 65504 and leaf.grad.isfinite()
assert abs(leaf.grad.item() / y.item() - 1) < 0.01
with saved_tensors_hooks(*formats["float16"]):
    y = torch.exp(leaf)
assert torch.autograd.grad(y, leaf)[0].isinf()
# sphinx_gallery_end_ignore

# %%
# Exercise
# --------
# With ``Tanh`` in place of ``GELU``, float16 should halve what is held, and does not:

full, _ = run(*formats["float32"], activation=nn.Tanh)
half, _ = run(*formats["float16"], activation=nn.Tanh)
print(f"float32: {full:,} bytes, float16: {half:,} bytes")

# sphinx_gallery_start_ignore
assert full == 4 * 2**20 and half == 7 * 2**19
# sphinx_gallery_end_ignore

# %%
# Why? And how can the pack hook be mended?
#
# .. solution::
#
# The result of a Tanh is the input of the next linear layer. Both nodes save it, in the same memory. The hook is
# called twice and makes two copies. A hook that remembers its copies returns the same one again. It must forget
# them when the original is freed, because the memory is used again for other numbers: hence the weak dictionaries.

copies = weakref.WeakKeyDictionary()


def half_once(tensor):
    known = copies.setdefault(tensor.untyped_storage(), weakref.WeakValueDictionary())
    key = (tensor.storage_offset(), tensor.shape, tensor.stride(), tensor._version)
    copy = known.get(key)
    if copy is None:
        copy = known[key] = tensor.half()
    return copy


once, gradient = run(half_once, lambda kept: kept.float(), activation=nn.Tanh)
print(f"remembering: {once:,} bytes")
assert once == full / 2
assert torch.equal(gradient, run(*formats["float16"], activation=nn.Tanh)[1])

# %%
# See also
# --------
# - Before: :ref:`sphx_glr_gallery_memory_checkpointing.py`, which uses these hooks to keep nothing and compute again.
# - Next: :ref:`sphx_glr_gallery_memory_precision.py`, fewer bits in the forward pass as well.
# - :ref:`sphx_glr_gallery_memory_what_is_saved.py`, a meter made of hooks.
# - :ref:`sphx_glr_gallery_graphs_graph_lifetime.py`, when a graph lets go of what it keeps.
# - In PyTorch's reference: `Hooks for saved tensors
#   <https://docs.pytorch.org/docs/stable/notes/autograd.html#hooks-for-saved-tensors>`__ and
#   `torch.autograd.graph.save_on_cpu
#   <https://docs.pytorch.org/docs/stable/autograd.html#torch.autograd.graph.save_on_cpu>`__.
