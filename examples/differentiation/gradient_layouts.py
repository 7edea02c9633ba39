r"""
Memory layout of .grad: strides, channels_last, fused
=====================================================

.. in-short::

   ``backward()`` gives a new ``.grad`` the strides of the parameter: the same order in memory. If you assign ``.grad``
   yourself, do the same: ``w.grad = torch.empty_like(w).copy_(gradient)``. In PyTorch 2.13, an optimizer with ``fused=True``
   on the CPU ignores the strides and combines the wrong elements. If the gradients of two parameters share memory, the next
   backward can add too much.
"""

# %%
# The problem: the step is wrong with ``fused=True``
# --------------------------------------------------
# You set ``.grad`` by hand, from another process or your own formula. Your gradient is a transposed matrix: the right
# values, in a different order in memory. ``foreach`` and ``fused`` are two ways to compute one step. The gradient that ``SGD``
# uses with each:

import time
import warnings

import torch


def step(**options):
    w = torch.zeros(2, 3, requires_grad=True)
    w.grad = torch.tensor([[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]]).t()
    torch.optim.SGD([w], lr=1.0, **options).step()
    return (0 - w.detach()).flatten().tolist()  # the gradient that it used


used = {"foreach=True": step(foreach=True), "fused=True": step(fused=True)}
for option, gradient in used.items():
    print(f"{option:<13}", gradient)

# sphinx_gallery_start_ignore
assert step() == step(foreach=True) == step(foreach=False) == [0, 1, 2, 3, 4, 5]
assert step(fused=True) == [0, 3, 1, 4, 2, 5]


def _stepped(optimizer, gradient, fused):
    w = torch.zeros(gradient.shape, dtype=gradient.dtype, requires_grad=True)
    w.grad = gradient
    optimizer([w], lr=1.0, fused=fused).step()
    return w.detach()


for _name in ("SGD", "Adam", "AdamW", "Adagrad"):
    _class = getattr(torch.optim, _name)
    _turned = torch.tensor([[0.0, 3.0], [-1.0, 4.0], [2.0, -5.0]]).t()
    _by_memory = _turned.t().reshape(2, 3)
    _cells = torch.tensor([0.0, 1.0, -2.0, 3.0, -4.0, 5.0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # nothing warns
        _wrong = _stepped(_class, _turned, True)
        _of_one = _stepped(_class, _cells[:1].expand(6), True)  # expanded: all are 0
        _of_gaps = _stepped(_class, _cells[::2], True)  # with gaps: 0, -2, -4
    assert torch.allclose(_wrong, _stepped(_class, _by_memory, False))
    assert not torch.allclose(_wrong, _stepped(_class, _turned, False))
    assert torch.allclose(_of_one, _stepped(_class, _cells, False)) and _of_one.any()
    assert torch.allclose(_of_gaps, _stepped(_class, _cells[:3], False))
    _w = torch.zeros(2, 3, requires_grad=True)
    _fused = _stepped(_class, torch.empty_like(_w).copy_(_turned), True)
    assert torch.allclose(_fused, _stepped(_class, _turned, False))
for _class, _more in ((torch.optim.Adam, {}), (torch.optim.SGD, {"momentum": 0.9})):
    _weights = []
    for _fused in (False, True):
        torch.manual_seed(0)
        _net, _images = torch.nn.Conv2d(3, 4, 3), torch.randn(2, 3, 8, 8)
        _optimizer = _class(_net.parameters(), lr=0.1, fused=_fused, **_more)
        for _format in (torch.contiguous_format, torch.channels_last):
            _net.to(memory_format=_format)
            _net.zero_grad()
            _net(_images).square().mean().backward()
            _optimizer.step()
        _weights.append(_net.weight.detach())
    assert not torch.allclose(*_weights, rtol=0.01)
_broadcast = torch.empty_like(torch.zeros(2, 3)).copy_(torch.arange(3))
assert _broadcast.tolist() == [[0, 1, 2]] * 2
# sphinx_gallery_end_ignore

# %%
# On the CPU, the fused optimizer walks over the memory of parameter and gradient side by side, and silently combines the wrong
# elements. With an expanded gradient, the step reads memory behind it, and can end the process. ``Adam``, ``AdamW`` and
# ``Adagrad`` do the same, with their state too. So do not convert a model to ``channels_last`` between two steps.
#
# So copy your gradient into the layout of the parameter: ``w.grad = torch.empty_like(w).copy_(gradient)``. ``copy_`` also
# broadcasts, so check the shape first.
#
# *Strides* are the steps in memory between neighbors along each dimension. Below, one matrix is stored by columns, and its
# elements are numbered row by row.

factors = torch.arange(12.0).reshape(3, 4)  # the gradient will be these numbers
by_row = torch.zeros(3, 4, requires_grad=True)
by_column = torch.zeros(4, 3).t().requires_grad_()
(arrived,) = torch.autograd.grad((by_column * factors).sum(), by_column)

(by_row * factors).sum().backward()
(by_column * factors).sum().backward()

# sphinx_gallery_start_ignore
assert torch.equal(by_row.grad, factors) and torch.equal(by_column.grad, factors)
assert by_column.is_leaf and by_row.grad.stride() == (4, 1)
assert by_column.grad.stride() == by_column.stride() == (1, 3)
# sphinx_gallery_end_ignore

# %%
# .. how-measured:: This code reads the twelve cells of each tensor's memory, from the first to the last, and draws them.

import matplotlib.pyplot as plt


def plot_memory_cells(tensors):
    _, ax = plt.subplots(figsize=(7, 2.3), layout="constrained")
    colors = ["#2563eb", "#64748b", "#c2410c"]
    for y, (tensor, color) in enumerate(zip(tensors.values(), colors, strict=True)):
        for x, number in enumerate(tensor.as_strided((12,), (1,)).tolist()):
            cell = plt.Rectangle((x, y), 1, 0.7, facecolor="white", edgecolor=color)
            ax.add_patch(cell)
            ax.text(x + 0.5, y + 0.35, f"{number:.0f}", ha="center", va="center")
    labels = [f"{name}\n{tensor.stride()}" for name, tensor in tensors.items()]
    ax.set_yticks([0.35, 1.35, 2.35], labels)
    ax.set(xlim=(-0.1, 12.1), ylim=(2.8, -0.1), xticks=[], frame_on=False)
    ax.tick_params(length=0)
    ax.set_title("Memory cell by memory cell: elements numbered row by row")


# %%
# The gradient arrives in rows. On the way into ``.grad``, backward copies it into columns:

numbers = torch.empty_strided((3, 4), by_column.stride()).copy_(factors)

# figure: Three rows of twelve memory cells, each cell with the number of an element of the matrix. The parameter is
#   stored as 0, 4, 8, 1, 5, 9 and so on. The gradient arrives as 0, 1, 2, 3. In .grad the order is the parameter's.
plot_memory_cells(
    {
        "by_column": numbers,
        "gradient, arriving": arrived,
        "by_column.grad": by_column.grad,
    }
)

# sphinx_gallery_start_ignore
assert numbers.stride() == by_column.stride()
order = [0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11]
assert by_column.grad.as_strided((12,), (1,)).tolist() == order
assert arrived.as_strided((12,), (1,)).tolist() == list(range(12))
# sphinx_gallery_end_ignore

# %%
# Which parameters are dense
# --------------------------
# ``.grad`` takes the strides of a parameter that is *dense*: its elements fill a piece of memory, each in its own cell. A slice
# has gaps, and an expanded tensor has several elements in one cell. For those two, ``.grad`` is stored row by row. The weight
# of a convolution converted to ``channels_last`` is dense. Its gradient follows the weight, although the images are in the
# default layout. With ``enforce_grad_layout_policy(False)``, ``.grad`` keeps the strides that arrive.

gaps = torch.zeros(3, 8)[:, ::2].requires_grad_()
(gaps * factors).sum().backward()
expanded = torch.zeros(3, 1).expand(3, 4).requires_grad_()
(expanded * 2).sum().backward()
print("gaps       ", gaps.stride(), "  .grad", gaps.grad.stride())
print("expanded   ", expanded.stride(), "  .grad", expanded.grad.stride())

conv = torch.nn.Conv2d(3, 4, 3).to(memory_format=torch.channels_last)
conv(torch.ones(2, 3, 8, 8)).sum().backward()
print("conv.weight", conv.weight.stride(), "  .grad", conv.weight.grad.stride())

free = torch.zeros(4, 3).t().requires_grad_()
with torch.autograd.enforce_grad_layout_policy(False):
    (free * factors).sum().backward()
print("no policy  ", free.stride(), "  .grad", free.grad.stride())

# sphinx_gallery_start_ignore
assert gaps.grad.stride() == expanded.grad.stride() == (4, 1)
assert free.stride() == (1, 3) and free.grad.stride() == (4, 1)
assert conv.weight.grad.stride() == conv.weight.stride() == (27, 1, 9, 3)
single = torch.zeros(3, 1).t().requires_grad_()
(single * 2).sum().backward()
assert single.stride() == (1, 1) and single.grad.stride() == (3, 1)
assert gaps.stride() == (8, 2) and expanded.stride() == (1, 0)
columns = torch.zeros(3, 8)[:, ::2].requires_grad_()
(columns * factors.t().contiguous().t()).sum().backward()
assert columns.grad.stride() == (4, 1)
plain = torch.nn.Conv2d(3, 4, 3)
plain(torch.ones(2, 3, 8, 8).to(memory_format=torch.channels_last)).sum().backward()
assert plain.weight.grad.stride() == plain.weight.stride() == (27, 9, 3, 1)
_table = torch.nn.Embedding(5, 3, sparse=True)
_table(torch.tensor([1])).sum().backward()
assert _table.weight.grad.is_sparse
for _dense in (
    torch.zeros(()),
    torch.zeros(12)[4:8],
    torch.zeros(4, 0).t(),
    torch.zeros(4, 3, dtype=torch.cfloat).t(),
    torch.zeros(8, 1, 3, 3).to(memory_format=torch.channels_last),
):
    _dense.requires_grad_().sum().abs().backward()
    assert _dense.grad.stride() == _dense.stride()
# sphinx_gallery_end_ignore

# %%
# Why the layout matters for speed
# --------------------------------
# A step of SGD goes through parameter and gradient element by element. With equal strides it reads both from front to
# back. In a different order it has to jump in one of them:

# sphinx_gallery_start_ignore
_threads = torch.get_num_threads()
# sphinx_gallery_end_ignore
torch.set_num_threads(1)  # for steady times
large, equal = torch.zeros(2048, 2048), torch.ones(2048, 2048)
other = torch.ones(2048, 2048).t()
times = {"equal": [], "other": []}

# varies: The ratio depends on the machine and its load.
for _ in range(7):
    for name, gradient in (("equal", equal), ("other", other)):
        start = time.thread_time()  # stands still while other programs run
        large.add_(gradient, alpha=-0.1)
        times[name].append(time.thread_time() - start)

ratio = min(times["other"]) / min(times["equal"])
print(f"a step with the other layout takes {ratio:.1f} times as long")
assert ratio > 1

# sphinx_gallery_start_ignore
torch.set_num_threads(_threads)
# sphinx_gallery_end_ignore

# %%
# Who owns the memory
# -------------------
# If nothing else refers to the first gradient, and its strides are right, ``.grad`` usually takes its memory over, without a
# copy. A hook from ``w.register_hook`` can look at the address. If this hook *keeps* the gradient, ``.grad`` is a copy, and so
# it is if you pass your own gradient to the leaf:

kept = []


def taken_over(hook):
    w = torch.zeros(3, 4, requires_grad=True)
    addresses = []
    w.register_hook(lambda gradient: addresses.append(gradient.data_ptr()))
    w.register_hook(hook)
    (w * factors).sum().backward()
    return w.grad.data_ptr() == addresses[0]


w, own = torch.zeros(3, 4, requires_grad=True), torch.ones(3, 4)
w.backward(own)

print("nobody holds it:   taken over?", taken_over(lambda gradient: None))
print("a hook keeps it:   taken over?", taken_over(kept.append))
print("w.backward(own):   taken over?", w.grad.data_ptr() == own.data_ptr())

w.grad = None
w.view(4, 3).backward(own.view(4, 3))
print("through a view:    taken over?", w.grad.data_ptr() == own.data_ptr())

# sphinx_gallery_start_ignore
assert taken_over(lambda gradient: None)
assert not taken_over(kept.append) and w.grad.data_ptr() == own.data_ptr()
w.sum().backward()
assert own.eq(2).all()  # the next backward changed it
w.grad, own = None, torch.ones(3, 4)
w.backward(own)
assert w.grad.data_ptr() != own.data_ptr()
for _name in ("detach", "numpy", "__array__"):
    assert taken_over(
        lambda gradient, name=_name: kept.append(getattr(gradient, name)())
    )
_w, _addresses = torch.zeros(3, 4, requires_grad=True), []
_w.register_hook(lambda gradient: _addresses.append(gradient.data_ptr()))
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    (_w * factors).sum().backward(create_graph=True)
assert _w.grad.data_ptr() != _addresses[0]
for _keep, _safe in ((lambda g: g, False), (torch.clone, True)):
    _w, _held = torch.zeros(3, 4, requires_grad=True), []
    _view = _w.view(4, 3)
    _view.register_hook(lambda g, keep=_keep, held=_held: held.append(keep(g)))
    (_view * 2).sum().backward()
    (_w * 3).sum().backward()
    assert _held[0].eq(2 if _safe else 5).all()
    # on a leaf, whose gradient shares the memory with that of another leaf
    _a, _b = torch.zeros(4, requires_grad=True), torch.zeros(4, requires_grad=True)
    _a.register_hook(lambda g, keep=_keep, held=_held: held.append(keep(g)))
    for _ in range(2):
        ((_a.view(2, 2) + _b.view(2, 2)) * 2).sum().backward()
    assert _held[1].eq(2 if _safe else 4).all()
for _cleared, _then in ((False, 5), (True, 2)):
    _w, _held = torch.zeros(3, requires_grad=True), []
    _w.register_hook(lambda g, held=_held: held.append(g.detach()))
    (_w * 2).sum().backward()
    if _cleared:
        _w.grad = None
    (_w * 3).sum().backward()
    assert _held[0].eq(_then).all()
_w, _held = torch.zeros(3, requires_grad=True), []
_w.register_hook(lambda g: _held.append(g.detach()))
(_w * 2).sum().backward()
torch.nn.utils.clip_grad_norm_(_w, 1.0)
assert _held[0].lt(1).all()
# sphinx_gallery_end_ignore

# %%
# In a hook, keep ``gradient.clone()``. ``gradient.detach()`` and ``gradient.numpy()`` share the memory, and autograd cannot see
# that you hold it. So what is then added to ``.grad`` changes what you kept, and so does clipping. It is the same in a hook on
# a view, and with your own gradient behind a view, the last line above.
#
# Once a ``.grad`` exists, the next gradients are added *in place*, so its strides stay as they are.
# ``zero_grad(set_to_none=False)`` keeps the tensor too. With ``create_graph=True`` the sum is a new tensor.

w = torch.ones(3, requires_grad=True)
(w**2).sum().backward()
first = w.grad

(w**2).sum().backward()
print("second backward:              same tensor?", w.grad is first)
torch.optim.SGD([w]).zero_grad(set_to_none=False)
print("zero_grad(set_to_none=False): same tensor?", w.grad is first)
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # create_graph warns of a reference cycle
    (w**2).sum().backward(create_graph=True)
print("backward(create_graph=True):  same tensor?", w.grad is first)

# sphinx_gallery_start_ignore
assert w.grad is not first and w.grad.grad_fn.name() == "AddBackward0"
w.grad = None
(w**2).sum().backward()
first = w.grad
(w**2).sum().backward()
assert w.grad is first and first.tolist() == [4.0] * 3
torch.optim.SGD([w]).zero_grad(set_to_none=False)
assert w.grad is first and first.tolist() == [0.0] * 3
# sphinx_gallery_end_ignore

# %%
# Setting .grad yourself
# ----------------------
# A tensor that you assign must match in shape and device, and by default in data type. Its strides are not checked. They stay,
# because backward adds in place. There is a warning, once in a process.

w = torch.zeros(2, 3, requires_grad=True)
try:
    w.grad = torch.zeros(3, 2)
except RuntimeError as error:
    refused = str(error)
    print(f"RuntimeError: {refused}")

w.grad = torch.zeros(3, 2).t()
torch.set_warn_always(True)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    w.sum().backward()
torch.set_warn_always(False)

message = str(caught[0].message).split(" (Triggered")[0]
print(f"{caught[0].category.__name__}: {message}")
assert "do not obey the gradient layout contract" in message

# sphinx_gallery_start_ignore
assert "attempting to assign a gradient of size" in refused
assert w.grad.stride() == (1, 2) and w.stride() == (3, 1)
_counts = []
for _graph in (False, False, False, True):  # the sum of create_graph warns on its own
    with warnings.catch_warnings(record=True) as _again:
        warnings.simplefilter("always")
        _w = torch.zeros(2, 3, requires_grad=True)
        _w.grad = torch.zeros(3, 2).t()
        _w.sum().backward(create_graph=_graph)
    _counts.append(sum("layout contract" in str(w.message) for w in _again))
assert _counts[1:] == [0, 0, 1]
_w, _raised = torch.zeros(2, 3, requires_grad=True), []
(_w.grad,) = torch.autograd.grad(_w.sum(), _w)
assert _w.grad.stride() == (0, 0)
try:
    _w.sum().backward()
except RuntimeError as error:
    _raised.append("more than one element of the written-to tensor" in str(error))
assert _raised == [True]
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    _w.sum().backward(create_graph=True)  # not in place: no error
    assert _w.grad.tolist() == [[2] * 3] * 2
    _w = torch.zeros(1, requires_grad=True)
    (_w.grad,) = torch.autograd.grad(_w.sum(), _w)
    _w.sum().backward()  # expanded, but to a single element: no error
    assert _w.grad.tolist() == [2]
_texts = []
for _options in ({"device": "meta"}, {"dtype": torch.float64}):
    try:
        w.grad = torch.zeros(2, 3, **_options)
    except RuntimeError as error:
        _texts.append(str(error))
assert len(_texts) == 2
assert "device type 'meta'" in _texts[0] and "dtype 'double'" in _texts[1]
# sphinx_gallery_end_ignore

# %%
# The type may differ if the leaf says so: ``grad_dtype`` is the type of its gradient. On the CPU, ``SGD`` accepts such a
# ``.grad`` by default, and ``Adam`` raises an error.

half = torch.zeros(3, dtype=torch.bfloat16, requires_grad=True)
half.grad_dtype = torch.float32
half.sum().backward()
print("leaf:", half.dtype, "  .grad:", half.grad.dtype)
assert half.grad.dtype == torch.float32

# sphinx_gallery_start_ignore
_failed = []
narrow = torch.zeros(3, requires_grad=True)
narrow.grad_dtype = torch.bfloat16
narrow.sum().backward()
assert narrow.grad.dtype == torch.bfloat16
for leaf in (half, narrow):
    for _class in (torch.optim.SGD, torch.optim.Adam):
        try:
            _class([leaf], lr=1.0).step()
        except RuntimeError:
            _failed.append(_class)
    assert leaf.tolist() == [-1] * 3
assert _failed == [torch.optim.Adam] * 2
# sphinx_gallery_end_ignore

# %%
# What people get wrong
# ---------------------
# **Two gradients, one memory.** Both branches of the sum receive the same gradient, each through its own view. Autograd does
# not notice that the views share memory, and both leaves take it over (`issue 34082
# <https://github.com/pytorch/pytorch/issues/34082>`__). The second backward adds to that memory once for each leaf, so the
# result is three times the gradient instead of twice:

weights = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
a = torch.zeros(4, requires_grad=True)
b = torch.zeros(4, requires_grad=True)
for call in (1, 2):
    loss = ((a.view(2, 2) + b.view(2, 2)) * weights).sum()
    loss.backward()
    print(f"backward {call}: a.grad = {a.grad.tolist()}")

# graph: loss -- The sum passes one gradient to both views: a.grad and b.grad end up in the same memory

print("same memory:", a.grad.data_ptr() == b.grad.data_ptr())
assert a.grad.tolist() == [3, 6, 9, 12]  # right is [2, 4, 6, 8]

# sphinx_gallery_start_ignore
assert b.grad.tolist() == [3, 6, 9, 12] and a.grad.data_ptr() == b.grad.data_ptr()
a.grad = b.grad = None
for _ in range(2):
    ((a + b).view(2, 2) * weights).sum().backward()
assert a.grad.tolist() == b.grad.tolist() == [2, 4, 6, 8]
a.grad = b.grad = None
_handles = [leaf.register_hook(torch.clone) for leaf in (a, b)]
for _ in range(2):
    ((a.view(2, 2) + b.view(2, 2)) * weights).sum().backward()
assert a.grad.tolist() == b.grad.tolist() == [2, 4, 6, 8]
for _handle in _handles:
    _handle.remove()
a.grad = b.grad = None
((a.view(2, 2) + b.view(2, 2)) * weights).sum().backward()
assert a.grad.tolist() == b.grad.tolist() == [1, 2, 3, 4]
_norm = torch.nn.utils.clip_grad_norm_([a, b], 1.0)
assert torch.cat([a.grad, b.grad]).norm() < 0.5  # clipped twice, should be 1
# sphinx_gallery_end_ignore

# %%
# After one backward the values are right, but ``clip_grad_norm_`` then divides this memory twice. A view after the sum, ``(a +
# b).view(2, 2)``, avoids it. So does a copy on the way into each leaf: ``a.register_hook(torch.clone)``, and ``b`` the same.
#
# **An expanded parameter**, as above. Its gradient is stored row by row, but the optimizer cannot write the result back:

try:
    torch.optim.SGD([expanded]).step()
except RuntimeError as error:
    refused = str(error)
    print(f"RuntimeError: {refused}")

# sphinx_gallery_start_ignore
assert "more than one element of the written-to tensor" in refused
for _class in (
    torch.optim.SGD,
    torch.optim.Adam,
    torch.optim.AdamW,
    torch.optim.Adagrad,
):
    _memory = torch.zeros(12)  # the parameter has only the first three numbers of it
    _leaf = _memory[:3].view(3, 1).expand(3, 4).requires_grad_()
    (_leaf * 2).sum().backward()
    _class([_leaf], lr=1.0, fused=True).step()
    assert _memory[3:].all()  # written, although it is not the parameter's memory
# sphinx_gallery_end_ignore

# %%
# Make the small tensor the parameter, and expand it in the forward pass. Its gradient is the sum over the copies.
#
# With ``fused=True`` on the CPU there is no error: the step writes twelve numbers into a memory of three. It can change
# other tensors or end the process.

# %%
# Exercise
# --------
# What strides does ``.grad`` have for ``torch.zeros(2, 3, 4).permute(2, 0, 1)``, and for every second row of a
# matrix, ``torch.zeros(6, 4)[::2]``?
#
# .. solution::
#
# The permuted tensor is dense, so ``.grad`` has its strides. The slice skips rows, so its gradient is stored row by row.

for w in (torch.zeros(2, 3, 4).permute(2, 0, 1), torch.zeros(6, 4)[::2]):
    (w.requires_grad_() * 2).sum().backward()
    print(f"shape {tuple(w.shape)}   w {w.stride()}   w.grad {w.grad.stride()}")
assert w.stride() == (8, 1) and w.grad.stride() == (4, 1)

# sphinx_gallery_start_ignore
_w = torch.zeros(2, 3, 4).permute(2, 0, 1).requires_grad_()
(_w * 2).sum().backward()
assert _w.grad.stride() == _w.stride() == (1, 12, 4)
_small = torch.zeros(3, 1, requires_grad=True)
(_small.expand(3, 4) * torch.ones(3, 4)).sum().backward()
assert _small.grad.tolist() == [[4], [4], [4]]
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_differentiation_inplace_and_versions.py`, writing into tensors that autograd saved.
# - :ref:`sphx_glr_gallery_differentiation_accumulation.py`: backward adds, and ``zero_grad``.
# - :doc:`Shape operations </reference/shapes>`: which operations share memory, and the strides of their results.
# - In PyTorch's reference: `Default gradient layouts
#   <https://docs.pytorch.org/docs/stable/autograd.html#default-gradient-layouts>`__.
