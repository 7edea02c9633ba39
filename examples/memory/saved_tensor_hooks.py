r"""
saved_tensors_hooks: offload or compress activations
====================================================

.. in-short::

   Put ``with saved_tensors_hooks(pack, unpack):`` around the forward pass. ``pack`` gets a tensor that a node saves, and the
   graph keeps what it returns: a smaller copy, or a copy elsewhere. ``unpack`` turns it into a tensor again for backward.
   ``save_on_cpu()`` is such a pair. Leave weights, integers and small tensors alone, and return ``tensor.detach()`` instead of
   the tensor, which can leak. Hooks switch off the check for changes in place.

.. index::
   single: offload activations to the CPU; save_on_cpu
   single: pack hook; unpack hook
   single: memory leak; a pack hook that returns its tensor
"""

# %%
# The activations need too much memory
# ------------------------------------
# Your training runs out of memory, because the graph keeps tensors for backward. You can keep them in fewer bits, on the CPU or
# on disk, and restore them when backward needs them. A training step that keeps its activations in float16:

import gc
import itertools
import tempfile
import weakref
from pathlib import Path

import torch
from torch import nn
from torch.autograd.graph import save_on_cpu, saved_tensors_hooks


def network(activation=nn.GELU):
    torch.manual_seed(0)
    blocks = [nn.Sequential(nn.Linear(64, 64), activation()) for _ in range(4)]
    return nn.Sequential(*blocks), torch.randn(4096, 64)


def storage_of(tensor):
    return tensor.untyped_storage().data_ptr()  # the address of its memory


net, batch = network()
exists = {storage_of(t) for t in (batch, *net.parameters(), *net.buffers())}
sizes = []


def pack(tensor):
    small = tensor.numel() < 1000  # such as the number of labels
    if small or storage_of(tensor) in exists or tensor.dtype != torch.float32:
        return tensor.detach()
    sizes.append(tensor.nbytes)
    return (tensor.half(),)  # a tuple says that this one was rounded


def unpack(kept):
    return kept[0].float() if isinstance(kept, tuple) else kept


with saved_tensors_hooks(pack, unpack):
    loss = net(batch).square().mean()
loss.backward()
print(f"{sum(sizes) / 1e6:.1f} MB of activations kept as {sum(sizes) / 2e6:.1f} MB")

# sphinx_gallery_start_ignore
assert sum(sizes) == 2 * 4 * 2**20
for _dtype in (torch.float16, torch.bfloat16):  # what is 16 bits already stays as it is
    with saved_tensors_hooks(pack, unpack), torch.autocast("cpu", dtype=_dtype):
        _loss = net(batch).float().square().mean()
    torch.autograd.grad(_loss, [*net.parameters()])
_logits = torch.zeros(70_000, 2, requires_grad=True)  # more rows than float16 can count
with saved_tensors_hooks(pack, unpack):
    _loss = nn.functional.cross_entropy(_logits, torch.ones(70_000, dtype=torch.long))
_loss.backward()
assert torch.allclose(_logits.grad[:, 0], torch.tensor(0.5 / 70_000))
# sphinx_gallery_end_ignore

# %%
# .. how-measured:: This code does the same step with any pair of hooks, measures the bytes that the graph holds and the error
#    of the gradient, and draws both.

import matplotlib.pyplot as plt
import pandas as pd
from torch.utils._pytree import tree_leaves


class Packed:
    """What the graph keeps; it lives as long as a node keeps it."""

    def __init__(self, content):
        self.content = content


def measure_step(pack, unpack, activation=nn.GELU):
    net, batch = network(activation)
    exists = {storage_of(tensor) for tensor in (batch, *net.parameters())}
    alive = weakref.WeakSet()

    def pack_and_note(tensor):
        alone = storage_of(tensor) in exists
        packed = Packed((alone, tensor.detach() if alone else pack(tensor)))
        alive.add(packed)
        return packed

    def restore(packed):
        alone, content = packed.content
        return content if alone else unpack(content)

    with saved_tensors_hooks(pack_and_note, restore):
        loss = net(batch).square().mean()
    kept = [t for one in alive for t in tree_leaves(one.content) if torch.is_tensor(t)]
    sizes = {storage_of(t): t.untyped_storage().nbytes() for t in kept}
    held = sum(size for key, size in sizes.items() if key not in exists)
    loss.backward()
    gradient = torch.cat([p.grad.flatten() for p in net.parameters()])
    return held, gradient, loss.item()


def tabulate_steps(steps):
    exact = steps["float32"][1]
    rows = {}
    for name, (held, gradient, loss) in steps.items():
        error = ((gradient - exact).norm() / exact.norm()).item()
        rows[name] = {"MB": held / 1e6, "error": error, "loss": loss}
    return pd.DataFrame(rows).T


def plot_bytes_and_errors(table):
    _, (left, right) = plt.subplots(1, 2, figsize=(7, 2.1), layout="constrained")
    bars = left.barh(table.index, table["MB"], color="#2563eb")
    left.bar_label(bars, fmt="%.1f", padding=3)
    left.set(title="MB held until backward", xlim=(0, 10))
    right.plot(table["error"][1:], [1, 2, 3], "D", color="#c2410c")
    right.annotate("exact", (3e-6, 0), va="center")
    right.set(title="Relative error of the gradient")
    right.set(xscale="log", xlim=(1.5e-6, 1e-2), yticks=range(4), yticklabels=[])
    right.grid(axis="y", color="#94a3b8", linewidth=0.4)
    for ax in (left, right):
        ax.set_ylim(3.6, -0.6)


# %%
# The same step with activations in four formats, each a pair of hooks:


def to_int8(tensor):
    scale = tensor.abs().max() / 127
    return (tensor / scale).round().to(torch.int8), scale


formats = {
    "float32": (lambda tensor: tensor.detach(), lambda kept: kept),
    "bfloat16": (lambda tensor: tensor.bfloat16(), lambda kept: kept.float()),
    "float16": (lambda tensor: tensor.half(), lambda kept: kept.float()),
    "int8": (to_int8, lambda kept: kept[0] * kept[1]),
}
steps = {name: measure_step(*pair) for name, pair in formats.items()}
plot_bytes_and_errors(tabulate_steps(steps))

# figure: On the left, bars for the megabytes held: float32 8.4, bfloat16 and float16 4.2, int8 2.1. On the right, dots for
#   the error of the gradient on a logarithmic axis: float16 lowest, bfloat16 several times larger, int8 largest, and none for
#   float32, which is exact.

# sphinx_gallery_start_ignore
table = tabulate_steps(steps)
assert table["MB"].round(2).tolist() == [8.39, 4.19, 4.19, 2.1]
_errors = table["error"].tolist()
assert _errors[0] == 0 < _errors[2] < _errors[1] < _errors[3] < 0.01, _errors
assert 4 < _errors[1] / _errors[2] < 16
_low, _high = plt.gcf().axes[1].get_xlim()
assert all(_low < _error < _high for _error in _errors[1:]), _errors
assert table["loss"].nunique() == 1 and loss.item() == table["loss"].iloc[0]
_gradient = torch.cat([p.grad.flatten() for p in net.parameters()])
assert torch.equal(_gradient, steps["float16"][1])
assert torch.finfo(torch.bfloat16).max > 1e38
assert torch.finfo(torch.float16).eps < torch.finfo(torch.bfloat16).eps
# sphinx_gallery_end_ignore

# %%
# The forward pass computes in float32 as before, so the loss is the same, but backward computes with rounded numbers.

# %%
# How a pair of hooks works
# -------------------------
# ``pack`` runs when a node saves a tensor, which is usually in forward. The node keeps what ``pack`` returns, such as the
# Python list below. In backward, ``unpack`` gets that object back. It should return a tensor of the same shape, dtype and
# device, with equal or similar values, which PyTorch does not check.


def pack_as_list(tensor):
    print("pack  ", tensor.tolist())
    return tensor.tolist()


def unpack_list(numbers):
    print("unpack", numbers)
    return torch.tensor(numbers)


x = torch.tensor([0.0, 1.0], requires_grad=True)
with saved_tensors_hooks(pack_as_list, unpack_list):
    y = (x * x).sum()
y.backward()

# sphinx_gallery_start_ignore
assert x.grad.tolist() == [0, 2]
_calls = []
with saved_tensors_hooks(lambda t: _calls.append(t) or t.detach(), lambda t: t):
    (x * x).sum()
assert len(_calls) == 2
_raised = []
with saved_tensors_hooks(lambda t: t.detach(), lambda t: None):
    _y = x.exp().sum()
try:
    _y.backward()
except TypeError as _error:
    _raised.append("unpack_hook expected to be a Tensor" in str(_error))
with saved_tensors_hooks(lambda t: t.detach(), lambda t: t.flip(0)):
    _y = x.exp().sum()
assert torch.autograd.grad(_y, x)[0].tolist() == x.exp().flip(0).tolist()  # unchecked
assert _raised == [True]
_seen = []
with saved_tensors_hooks(lambda t: _seen.append(t) or t.detach(), lambda t: t):
    _y = x.exp().sum()
    assert len(_seen) == 1
    torch.autograd.grad(_y, x, create_graph=True)
assert len(_seen) == 2  # in backward, which makes a graph of its own
del _y
gc.freeze()  # gc.collect() below is fast then, and still looks at what is made from here on
# sphinx_gallery_end_ignore

# %%
# The product saves both factors, so ``pack`` is called twice. Backward may run outside of the ``with``.

# %%
# Move saved tensors to the CPU, or to disk
# -----------------------------------------
# ``save_on_cpu`` is a pair of hooks: ``pack`` copies a tensor to the CPU's memory, ``unpack`` copies it back to its device. It
# copies weights too, although they stay on the device. On a CPU there is nothing to copy:

net, batch = network()
with save_on_cpu():  # on a GPU: save_on_cpu(pin_memory=True)
    loss = net(batch).square().mean()
loss.backward()

device, kept = save_on_cpu().pack_hook(batch)
print(device, storage_of(kept) == storage_of(batch))

# sphinx_gallery_start_ignore
assert issubclass(save_on_cpu, saved_tensors_hooks)
assert device == torch.device("cpu") and kept is batch
_moved = []
with saved_tensors_hooks(lambda t: _moved.append(t) or t.detach(), lambda t: t):
    net(batch)
_weights = {storage_of(p) for p in net.parameters()}
assert any(storage_of(t) in _weights for t in _moved)

# sphinx_gallery_end_ignore

# %%
# According to `its reference <https://docs.pytorch.org/docs/stable/autograd.html#torch.autograd.graph.save_on_cpu>`__,
# ``pin_memory=True`` copies to pinned memory, asynchronously.
#
# A file works too. ``torch.save`` writes the whole storage of a view, so a clone is saved:

numbers = itertools.count()
w = torch.rand(500, 500, requires_grad=True)

with tempfile.TemporaryDirectory() as folder:

    def to_disk(tensor):
        path = Path(folder) / f"{next(numbers)}.pt"
        torch.save(tensor.detach().clone(), path)
        return path

    with saved_tensors_hooks(to_disk, torch.load):
        y = torch.exp(w).sin().sum()
    print(len(list(Path(folder).iterdir())), "files")
    y.backward()

print("gradient right:", torch.allclose(w.grad, torch.exp(w).cos() * torch.exp(w)))

# sphinx_gallery_start_ignore
import io

assert torch.allclose(w.grad, torch.exp(w).cos() * torch.exp(w)) and next(numbers) == 2


class _Stored:
    def __init__(self, tensor):
        self.path = Path(_folder) / "tensor.pt"
        torch.save(tensor.detach().clone(), self.path)

    def __del__(self):
        self.path.unlink()


with tempfile.TemporaryDirectory() as _folder:
    with saved_tensors_hooks(_Stored, lambda stored: torch.load(stored.path)):
        _y = torch.exp(w)
    assert len(list(Path(_folder).iterdir())) == 1
    _y.sum().backward()
    assert not list(Path(_folder).iterdir())
_file = io.BytesIO()
torch.save(w.detach()[0], _file)
assert len(_file.getvalue()) > w.nbytes
# sphinx_gallery_end_ignore

# %%
# The files stay until the folder is removed. To remove each as soon as its node is done, return an object that deletes the file
# in ``__del__`` instead.

# %%
# Pack one tensor only
# --------------------
# A saved tensor can get its own pair, through the attribute ``_raw_saved_...`` of its node, before backward:

y = torch.exp(x)
y.grad_fn._raw_saved_result.register_hooks(*formats["float16"])
y.sum().backward()

# sphinx_gallery_start_ignore
x.grad, _events = None, []
_y = torch.exp(x)
_y.grad_fn._raw_saved_result.register_hooks(
    lambda t: _events.append(1) or t.detach(), lambda t: t
)
_y.sum().backward()
assert len(_events) == 1 and torch.equal(x.grad, x.exp())
# sphinx_gallery_end_ignore

# %%
# What people get wrong
# ---------------------
# **Returning the tensor itself.** ``exp`` saves its own result. If ``pack`` returns that tensor, the tensor refers to its
# ``grad_fn``, and the ``grad_fn`` to the tensor. ``backward()`` frees both, but without it, or with ``retain_graph=True``, they
# stay even after ``gc.collect()``. So an evaluation loop without ``no_grad`` needs more memory with each step (`pytorch#115255
# <https://github.com/pytorch/pytorch/issues/115255>`__).


def leaks(pack):
    x = torch.ones(1000, requires_grad=True)
    with saved_tensors_hooks(pack, lambda kept: kept):
        y = torch.exp(x)
    memory = weakref.ref(y.untyped_storage())
    del x, y
    gc.collect()
    return memory() is not None


print("tensor          leaks:", leaks(lambda tensor: tensor))
print("tensor.cpu()    leaks:", leaks(lambda tensor: tensor.cpu()))
print("[tensor]        leaks:", leaks(lambda tensor: [tensor]))
print("tensor.detach() leaks:", leaks(lambda tensor: tensor.detach()))

# sphinx_gallery_start_ignore
assert leaks(lambda t: t) and leaks(lambda t: t.cpu()) and leaks(lambda t: [t])
assert leaks(save_on_cpu().pack_hook) and leaks(lambda t: t.float())
assert leaks(lambda t: t.view(-1)) and leaks(Packed)
assert not leaks(save_on_cpu(pin_memory=True).pack_hook)
_short = torch.ones(2).half()
assert _short.half() is _short
assert not any(map(leaks, (torch.Tensor.detach, torch.Tensor.half, torch.Tensor.clone)))


def _leaks_after(retain):
    x = torch.ones(1000, requires_grad=True)
    with saved_tensors_hooks(lambda t: t, lambda t: t):
        y = torch.exp(x)
    memory = weakref.ref(y.untyped_storage())
    y.sum().backward(retain_graph=retain)
    del x, y
    gc.collect()
    return memory() is not None


assert not _leaks_after(retain=False) and _leaks_after(retain=True)
# sphinx_gallery_end_ignore

# %%
# ``tensor.cpu()`` of a tensor on the CPU is the tensor itself, so ``save_on_cpu()`` leaks in the same way on a CPU. So does
# ``half()`` of a tensor that is float16 already. ``clone()`` copies, and ``pack`` runs without recording.
#
# **Relying on the check for changes in place.** Without hooks, the change below makes backward raise: a saved tensor was
# :ref:`modified by an inplace operation <sphx_glr_gallery_errors_modified_in_place.py>`. With hooks this check is off. So if
# ``pack`` kept the same memory, the gradient is silently wrong:


def slope(pack):
    x = torch.tensor(2.0, requires_grad=True)
    h = x * 1
    with saved_tensors_hooks(pack, lambda kept: kept):
        y = h**2
    h.detach().fill_(10)
    y.backward()
    return x.grad.item()


print("the derivative of x**2 at 2 with detach():", slope(lambda t: t.detach()))
print("with clone(), a copy:", slope(lambda t: t.detach().clone()))

# sphinx_gallery_start_ignore
assert slope(lambda t: t.detach()) == 20 and slope(lambda t: t.clone()) == 4
_x = torch.tensor(2.0, requires_grad=True)
_h = _x * 1
_y = _h**2
_h.detach().fill_(10)
_raised = []
try:
    _y.backward()
except RuntimeError as _error:
    _raised.append("modified by an inplace operation" in str(_error))
assert _raised == [True]
_x = torch.tensor(0.0, requires_grad=True)
with saved_tensors_hooks(lambda t: t.detach(), lambda t: t):
    _y = _x.exp()
_y.detach().fill_(10)
_y.backward()
assert _x.grad == 10  # a saved result, silently wrong too
# sphinx_gallery_end_ignore

# %%
# **Packing what should be left alone.** The hooks also get weights, buffers, positions and masks. A copy of a weight comes on
# top of the weight, so ``pack`` above looks it up in ``exists``. Positions and row numbers are integers. float16 rounds some
# integers above 2048, so a gradient goes to the wrong row:

embedding = nn.Embedding(5000, 4)
with saved_tensors_hooks(lambda t: t.half(), lambda kept: kept.long()):
    row = embedding(torch.tensor([4097]))
row.sum().backward()
print("rows with a gradient:", embedding.weight.grad[:, 0].nonzero().flatten())

# sphinx_gallery_start_ignore
assert embedding.weight.grad[:, 0].nonzero().flatten().tolist() == [4096]
_integers = torch.arange(-2049, 2050)
_wrong = _integers[_integers.half().long() != _integers]
assert _wrong.tolist() == [-2049, 2049]
_values = torch.rand(3, 5000, requires_grad=True)
_raised = []
with saved_tensors_hooks(lambda t: t.half(), lambda t: t.float()):
    _largest = _values.max(1).values.sum()
try:
    _largest.backward()
except RuntimeError as _error:
    _raised.append("Expected dtype int32/int64 for index" in str(_error))
assert _raised == [True]
# sphinx_gallery_end_ignore

# %%
# So test the dtype in ``pack``. Mind the range too: the largest number of float16 is 65504. A larger one becomes infinity, and
# then so does the gradient of ``exp``. (So can the number of labels that ``cross_entropy`` saves, and its gradients become 0.
# So ``pack`` above leaves small tensors alone.)

large = torch.tensor(12.0, requires_grad=True)
for name in ("float16", "bfloat16"):
    with saved_tensors_hooks(*formats[name]):
        y = torch.exp(large)
    print(name, y.item(), torch.autograd.grad(y, large))

# sphinx_gallery_start_ignore
assert torch.finfo(torch.float16).max == 65504
for _name, _infinite in (("float16", True), ("bfloat16", False)):
    with saved_tensors_hooks(*formats[_name]):
        _y = torch.exp(large)
    _slope = torch.autograd.grad(_y, large)[0]
    assert _slope.isinf() == _infinite
assert abs(_slope / _y - 1) < 0.01
# sphinx_gallery_end_ignore

# %%
# **Nesting two pairs.** Only the innermost pair is called:

events = []


def noting(name):
    def pack(tensor):
        events.append(name)
        return tensor.detach()

    return pack, lambda kept: kept


with saved_tensors_hooks(*noting("outer")), saved_tensors_hooks(*noting("inner")):
    torch.exp(x)
print(events)

# sphinx_gallery_start_ignore
assert events == ["inner"]
_raised = []
with saved_tensors_hooks(*noting("func")):
    try:
        torch.func.grad(lambda t: t.exp().sum())(torch.ones(2))
    except RuntimeError as _error:
        _quote = "torch.func.{grad, vjp, jacrev, hessian} don't yet support saved"
        _raised.append(str(_error).startswith(_quote))
assert events == ["inner"] and _raised == [True]
# sphinx_gallery_end_ignore

# %%
# ``torch.func.grad`` refuses to run inside: *torch.func.{grad, vjp, jacrev, hessian} don't yet support saved tensor hooks*.

# %%
# Exercise
# --------
# With ``Tanh`` in place of ``GELU``, float16 should halve what is held, and frees nothing:

full, _, _ = measure_step(*formats["float32"], activation=nn.Tanh)
half, rounded, _ = measure_step(*formats["float16"], activation=nn.Tanh)
print("float32:", full, "bytes; float16:", half, "bytes")

# sphinx_gallery_start_ignore
assert full == half == 4 * 2**20
# sphinx_gallery_end_ignore

# %%
# Why? And how can you change the pack hook?
#
# .. solution::
#
# The result of a ``Tanh`` is the input of the next ``Linear``. Both nodes save it, in the same memory, so the hook is called
# twice and makes two copies. A hook that remembers its copies returns the same one again. The dictionaries are weak, so a copy
# is forgotten with the original or with its node.

copies = weakref.WeakKeyDictionary()


def half_once(tensor):
    known = copies.setdefault(tensor.untyped_storage(), weakref.WeakValueDictionary())
    place = (tensor.storage_offset(), tensor.shape, tensor.stride())
    key = (*place, tensor.dtype, tensor._version)
    copy = known.get(key)
    if copy is None:
        copy = known[key] = tensor.detach().half()
    return copy


once, gradient, _ = measure_step(
    half_once, lambda kept: kept.float(), activation=nn.Tanh
)
print("remembering:", once, "bytes")
assert once == full / 2
assert torch.equal(gradient, rounded)  # the same as with two copies

# sphinx_gallery_start_ignore
with saved_tensors_hooks(half_once, lambda kept: kept):
    _y = torch.ones(3, requires_grad=True).half().exp()
_memory = weakref.ref(_y.untyped_storage())
del _y
gc.collect()
assert _memory() is None
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_memory_what_is_saved.py`, which tensors the hooks get.
# - :ref:`sphx_glr_gallery_graphs_graph_lifetime.py`, when a graph is freed.
# - In PyTorch's reference: `Hooks for saved tensors
#   <https://docs.pytorch.org/docs/stable/notes/autograd.html#hooks-for-saved-tensors>`__ and
#   `torch.autograd.graph.saved_tensors_hooks
#   <https://docs.pytorch.org/docs/stable/autograd.html#torch.autograd.graph.saved_tensors_hooks>`__.
