r"""
detach, clone, .data, item, deepcopy: which one to use
======================================================

.. in-short::

   ``t.detach()`` gives you the values without history, so it stops the gradient. It shares the memory of ``t``. ``t.clone()``
   has its own memory, and the gradient passes. For an independent copy, write ``t.detach().clone()``. For one number, write
   ``loss.item()``; on a GPU it waits until the number is computed. Do not write through ``t.data``: autograd overlooks it, so
   the gradient can be silently wrong.
"""

# %%
# Which one do I want?
# --------------------
# You want the values of ``t``, a result in the middle of your network, for a report, a target or an attack. Three of these
# eight calls let you make a gradient silently wrong:
#
# .. how-measured:: This code asks four questions of each call. Hooks tell if what exp saved is kept when only y is left.

import copy
import weakref

import pandas as pd
import torch
from torch.autograd.graph import saved_tensors_hooks

CALLS = {
    "t.detach()": lambda t: t.detach(),
    "t.clone()": lambda t: t.clone(),
    "t.detach().clone()": lambda t: t.detach().clone(),
    "t.data": lambda t: t.data,
    "t.detach().numpy()": lambda t: t.detach().numpy(),
    "t[0].item()": lambda t: t[0].item(),
    "copy.copy(t)": lambda t: copy.copy(t),
    "copy.deepcopy(t)": lambda t: copy.deepcopy(t),
}


def start():
    w = torch.ones(1000, requires_grad=True)
    return w, torch.exp(w)  # backward of exp reads its result again


def gradient_goes(call):
    w, t = start()
    y = call(t)
    other = torch.ones(1000, requires_grad=True)
    (other * torch.as_tensor(y)).sum().backward()
    assert other.grad is not None
    if w.grad is not None:
        return "to w"
    return "to y only" if getattr(y, "requires_grad", False) else "no"


def memory(call):
    _, t = start()
    y = torch.as_tensor(call(t))  # an array keeps its memory
    return "shared" if y.data_ptr() == t.data_ptr() else "own"


def write(call):
    w, t = start()
    y = call(t)
    if isinstance(y, float):
        return "no write into a number"
    with torch.no_grad():
        y[0] = 7
    try:
        t.sum().backward()
    except RuntimeError:
        return "raises"
    return "right" if torch.equal(w.grad, w.exp()) else "wrong, no error"


class Saved:
    alive = weakref.WeakSet()

    def __init__(self, tensor):
        self.tensor = tensor.detach()
        Saved.alive.add(self)


def keeps_graph(call):
    with saved_tensors_hooks(Saved, lambda saved: saved.tensor):
        _, t = start()
        y = call(t)
    del _, t
    kept = len(Saved.alive)
    del y
    assert not Saved.alive
    return "yes" if kept else "no"


def answers(call):
    questions = {
        "gradient": gradient_goes,
        "memory": memory,
        "after y[0] = 7": write,
        "keeps the graph": keeps_graph,
    }
    try:
        return {text: question(call) for text, question in questions.items()}
    except RuntimeError:
        return dict.fromkeys(questions, "raises")


table = pd.DataFrame({name: answers(call) for name, call in CALLS.items()}).T

# %%
# ``t = torch.exp(w)``, and ``y`` is what the call returns. The third column is about backward of ``t`` after a write into
# ``y``:

import copy
import sys
import warnings

import pandas as pd
import torch

# sphinx_gallery_start_ignore
_no = "no write into a number"
assert table.to_dict("split")["data"] == [
    ["no", "shared", "raises", "no"],
    ["to w", "own", "right", "yes"],
    ["no", "own", "right", "no"],
    ["no", "shared", "wrong, no error", "no"],
    ["no", "shared", "wrong, no error", "no"],
    ["no", "own", _no, "no"],
    ["to y only", "shared", "wrong, no error", "no"],
    ["raises"] * 4,
]
assert (table == "wrong, no error").sum().sum() == 3
_exp = torch.exp(torch.ones(3, requires_grad=True))
with torch.inference_mode():
    _exp.detach().zero_()
assert _exp._version == 1  # the counter is shared there too
_many = torch.ones(3, requires_grad=True) * 2
for _way in ("t.detach()", "t.data"):  # also for other layouts and dtypes
    for _t in (_many, _many[:0], _many[0], _many.expand(2, 3), _many.to(torch.cfloat)):
        _y = CALLS[_way](_t)
        assert _y.data_ptr() == _t.data_ptr() and not _y.requires_grad and _y.is_leaf
for _t in (_many, _many[0], _many.expand(2, 3), _many.to(torch.cfloat)):
    assert _t.clone().data_ptr() != _t.data_ptr() and _t.clone().grad_fn is not None
    assert _t.detach().clone().data_ptr() != _t.data_ptr()
# sphinx_gallery_end_ignore
table.rename_axis(columns="y")

# %%
# - **To stop the gradient at one tensor**: ``t.detach()``. It shares memory with ``t``, so only read it.
# - **A copy that the gradient passes through**: ``t.clone()``.
# - **An independent copy**: ``t.detach().clone()``.
# - **A number for a log**: ``loss.item()``.
# - **An array**: ``t.detach().numpy()`` shares memory too. Use ``t.detach().cpu().numpy().copy()`` if you will write into it.
# - **To record nothing in a whole block**: ``with torch.no_grad():``. See :doc:`Which switch do I want? </guide/which-switch>`.
#
# Memory and history are two questions
# ------------------------------------
# Of each call, ask two questions. Does the result share the memory of ``t``? If so, a write into one changes the other. Does it
# keep the history of ``t``? If so, the gradient passes through it, and the graph stays alive with it. ``clone()`` copies the
# memory and keeps the history. ``detach()`` shares the memory and drops the history.

# %%
# What people get wrong
# ---------------------
# **Using detach() as a copy.** An attack on a classifier moves an image along the sign of its gradient. With ``detach()``
# alone, the original image moves too:

# sphinx_gallery_start_ignore
_array = _many.detach().cpu().numpy().copy()
_array[0] = 9
assert _many[0] == 2
_w = torch.ones(3, requires_grad=True)
with torch.inference_mode():
    _k, _index = _w.detach() * 2, torch.tensor([0, 1])
(_w + _k).sum().backward()
_raised = []
for _use in (lambda: _w * _k, lambda: _w[_index]):
    try:
        _use()
    except RuntimeError as error:
        _raised.append(str(error).startswith("Inference tensors cannot be saved"))
assert _raised == [True, True] and _w.grad.tolist() == [1, 1, 1]
# sphinx_gallery_end_ignore
image = torch.zeros(3)
attacked = image.detach().requires_grad_()  # detach().clone() would be right
(attacked * torch.tensor([1.0, -2.0, 3.0])).sum().backward()
with torch.no_grad():
    attacked += 0.5 * attacked.grad.sign()

print(image)

# sphinx_gallery_start_ignore
assert image.tolist() == [0.5, -0.5, 0.5]
image = torch.zeros(3)
attacked = image.detach().clone().requires_grad_()
(attacked * torch.tensor([1.0, -2.0, 3.0])).sum().backward()
with torch.no_grad():
    attacked += 0.5 * attacked.grad.sign()
assert not image.any() and attacked.tolist() == [0.5, -0.5, 0.5]
# sphinx_gallery_end_ignore

# %%
# **Writing through .data.** ``detach()`` shares the :ref:`version counter
# <sphx_glr_gallery_differentiation_inplace_and_versions.py>` of ``t``, so backward can tell that a value it needs was changed.
# ``.data`` has a separate counter (`pytorch#6990 <https://github.com/pytorch/pytorch/issues/6990>`__):

w = torch.ones(2, requires_grad=True)
t = torch.exp(w)
t.detach().zero_()
try:
    t.sum().backward()
except RuntimeError as error:
    message = str(error).split(":")[0]
    print("after t.detach().zero_():", message)

t = torch.exp(w)
t.data.zero_()
t.sum().backward()
print("after t.data.zero_():", w.grad, "instead of", w.exp().detach())

# sphinx_gallery_start_ignore
assert "has been modified by an inplace operation" in message
assert not w.grad.any() and t._version == 0
from torch.overrides import TorchFunctionMode


class _Assignments(TorchFunctionMode):
    number = 0

    def __torch_function__(self, function, types, args=(), kwargs=None):
        _Assignments.number += function == torch.Tensor.data.__set__
        return function(*args, **(kwargs or {}))


_layer = torch.nn.Linear(2, 2)
_weight = _layer.weight
with _Assignments():
    _layer.to(torch.float64)
assert _Assignments.number == 2  # one for each parameter
assert _layer.weight is _weight and _weight.dtype == torch.float64
_weight.data = torch.ones(5)
assert _layer.weight is _weight and _weight.shape == (5,)
_kept = {}
with saved_tensors_hooks(Saved, lambda saved: saved.tensor):
    for _name, _keep in {
        "loss": lambda loss: loss,
        "detach": lambda loss: loss.detach(),
        "item": lambda loss: loss.item(),
    }.items():
        _history = [_keep(torch.exp(w).sum()) for _ in range(3)]
        _kept[_name] = len(Saved.alive)
        del _history
    assert _kept == {"loss": 3, "detach": 0, "item": 0} and not Saved.alive
    _loss = torch.exp(w).sum()
    _detached = _loss.detach()
    assert len(Saved.alive) == 1  # as long as the loss is there
    del _loss
    assert not Saved.alive
    with torch.no_grad():
        _loss = torch.exp(w).sum()
    assert not Saved.alive
    _loss = torch.exp(w).sum()
    _loss.backward()
    assert not Saved.alive and _loss.grad_fn.name() == "SumBackward0"
_twice = w * 2  # its backward needs no value of t: a write raises nothing
_twice.detach().zero_()
w.grad = None
_twice.sum().backward()
assert w.grad.tolist() == [2, 2]
# sphinx_gallery_end_ignore

# %%
# **Keeping a loss with its graph.** In a validation loop without ``no_grad``, ``history.append(loss)`` keeps each graph with
# the values that it saved, and memory grows. Append ``loss.item()`` or ``loss.detach()``. To save nothing in forward either,
# use ``torch.no_grad()``.
#
# **Copying with copy.copy().** The copy of ``t`` shares its memory, and it is a new leaf that requires grad. So the gradient
# stops there, in ``y.grad``:

y = copy.copy(t)
print("is_leaf:", y.is_leaf, "  same memory:", y.data_ptr() == t.data_ptr())

# sphinx_gallery_start_ignore
assert y.is_leaf and y.requires_grad and y.data_ptr() == t.data_ptr() and y is not t
w.grad = None
(y * 3).sum().backward()
assert w.grad is None and y.grad.tolist() == [3, 3]
# sphinx_gallery_end_ignore

# %%
# **Copying a result with copy.deepcopy().** It works for leaves, such as the parameters of a model. For a result with
# a ``grad_fn`` it raises, and :ref:`so does deepcopy of a module that keeps such a result
# <sphx_glr_gallery_errors_deepcopy_of_non_leaf.py>` in an attribute:

try:
    copy.deepcopy(t)
except RuntimeError as error:
    message = str(error).split(".")[0]
    print("RuntimeError:", message)

# sphinx_gallery_start_ignore
assert message.startswith("Only Tensors created explicitly by the user (graph leaves)")
with torch.no_grad():
    _view = w[:1]
for _leaf in (w, _view, w.detach()[:0].requires_grad_(), w.detach().expand(3, 2)):
    _same = copy.deepcopy(_leaf)
    assert _same.is_leaf and _same.requires_grad == _leaf.requires_grad
    assert _same.data_ptr() != _leaf.data_ptr() or not len(_leaf)
_module = torch.nn.Linear(1, 1)
_module.last = _module(torch.ones(1))
_raised = []
try:
    copy.deepcopy(_module)
except RuntimeError as error:
    _raised.append(str(error).startswith("Only Tensors created explicitly"))
assert _raised == [True]
# sphinx_gallery_end_ignore

# %%
# **Copying with torch.tensor(t).** It copies, and a warning recommends ``t.detach().clone()``. ``t.clone().detach()`` gives the
# same, but ``clone()`` first records a node, which ``detach()`` then drops.

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    torch.tensor(t)

print(str(caught[0].message).split(" or ")[0])

# sphinx_gallery_start_ignore
assert "sourceTensor.detach().clone()" in str(caught[0].message)
assert t.clone().grad_fn.name() == "CloneBackward0" and t.detach().grad_fn is None
for _y in (t.clone().detach(), t.detach().clone()):
    assert _y.is_leaf and not _y.requires_grad and _y.data_ptr() != t.data_ptr()
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    assert torch.tensor(t).data_ptr() != t.data_ptr()
# sphinx_gallery_end_ignore

# %%
# A clone and a detached tensor in one product
# --------------------------------------------
# ``clone()`` keeps the history and ``detach()`` drops it. So in the product of both, the gradient takes only one of two paths:

w = torch.tensor(1.0, requires_grad=True)
t = torch.exp(w)
c = t.clone()
d = t.detach()
product = c * d
product.backward()

# graph: product -- The clone is a node on the way to w. The detached tensor is a constant

print(w.grad, "is half of", 2 * product.detach())

# sphinx_gallery_start_ignore
assert torch.isclose(w.grad, product) and torch.isclose(product, torch.exp(2 * w))
# sphinx_gallery_end_ignore

# %%
# The derivative of :math:`e^{2w}` is :math:`2 e^{2w}`. Because ``d`` counts as a constant, you get half of it.

# %%
# item() in a loop: what waits for the GPU
# ----------------------------------------
# By default, most calls on a GPU tensor only put work into a queue, and return before it is done. ``item()`` needs the
# number, so it waits. In a training loop, add up on the device and read once:

batches = [torch.full((4,), float(i)) for i in range(5)]

total = torch.zeros((), device=w.device)
for batch in batches:
    loss = (batch * w).mean()
    total += loss.detach()  # on a GPU: no wait
print(total.item())  # waits once

# sphinx_gallery_start_ignore
assert total.item() == sum((batch * w).mean().item() for batch in batches) == 10
assert not total.requires_grad
# sphinx_gallery_end_ignore

# %%
# Which calls need the values? You can try it without a GPU. A tensor on the device ``"meta"`` has only a shape, so most such
# calls raise there:

x = torch.ones(4, device="meta")
try:
    x.sum().item()
except RuntimeError as error:
    print("RuntimeError:", error)

# sphinx_gallery_start_ignore
assert not x.detach().sum().requires_grad
# sphinx_gallery_end_ignore

# %%
# .. how-measured:: This code runs each call on a meta tensor, and sorts them by whether they raise.

USES = {
    "x[0].item()": lambda x: x[0].item(),
    "float(x[0])": lambda x: float(x[0]),
    "if x[0] > 0": lambda x: bool(x[0] > 0),
    "x.tolist()": lambda x: x.tolist(),
    "x.cpu()": lambda x: x.cpu(),
    "x.cpu().numpy()": lambda x: x.cpu().numpy(),
    "torch.equal(x, -x)": lambda x: torch.equal(x, -x),
    "x.nonzero()": lambda x: x.nonzero(),
    "x[x > 0]": lambda x: x[x > 0],
    "x.unique()": lambda x: x.unique(),
    "x.detach()": lambda x: x.detach(),
    "x.clone()": lambda x: x.clone(),
    "x.shape": lambda x: x.shape,
    "x.sum()": lambda x: x.sum(),
    "x.argmax()": lambda x: x.argmax(),
    "(x > 0).any()": lambda x: (x > 0).any(),
    "x.masked_fill(x > 0, 0)": lambda x: x.masked_fill(x > 0, 0),
    "torch.where(x > 0, x, 0)": lambda x: torch.where(x > 0, x, 0),
}


def raises(use):
    try:
        use(torch.ones(4, device="meta"))
    except RuntimeError:
        return True
    return False


needs = {name: raises(use) for name, use in USES.items()}
reads = [name for name in needs if needs[name]]
runs = [name for name in needs if not needs[name]]
runs += [""] * (len(reads) - len(runs))
sorted_calls = pd.DataFrame({"does not need them": runs}, index=reads)

# %%
# What raises there, and what does not:

# sphinx_gallery_start_ignore
assert reads == list(USES)[:10] and runs == [*list(USES)[10:], "", ""]
_x, _mask = torch.ones(4, device="meta"), torch.ones(4, device="meta") > 0
assert "..." in str(_x)  # these three do not raise, and read values all the same
_x[_mask] = torch.ones(4, device="meta")
import io

torch.save(_x, io.BytesIO())
from torch._subclasses import FakeTensorMode

with FakeTensorMode():  # agrees, except on cpu(), which gives one more fake tensor
    for _name, _use in USES.items():
        _raised = False
        try:
            _use(torch.ones(4))
        except RuntimeError:  # what FakeTensorMode raises is one
            _raised = True
        assert _raised == needs[_name] or _name == "x.cpu()", _name
# sphinx_gallery_end_ignore
sorted_calls.rename_axis(columns="needs the values")

# %%
# ``x[x > 0]`` is there because only the values tell how many elements it has. ``print(x)`` waits too, although it does not
# raise on ``"meta"``. On a GPU, ``torch.cuda.set_sync_debug_mode("warn")`` warns at calls that wait; its documentation says
# that it does not find all of them. `Measured on a GPU`_ compares its warnings with the waits. :ref:`The profiler on a GPU
# <sphx_glr_gallery_cuda_cuda_profiler.py>` shows what a wait looks like.

# %%
# Exercise
# --------
# You keep the hidden values of each step for a report, before an in-place operation changes them. Put a call in place of
# ``hidden`` in the marked line, so that the report has the right values and no graph:

weight = torch.ones(2, requires_grad=True)

notes = []
for _ in range(3):
    hidden = torch.tensor([1.0, -1.0]) * weight
    notes.append(hidden)  # this line
    hidden.relu_()
print(notes[0])

# sphinx_gallery_start_ignore
assert notes[0].tolist() == [1, 0] and notes[0].requires_grad
# sphinx_gallery_end_ignore

# %%
# .. solution::
#
# ``hidden.detach()`` shares the memory, so it shows the values after ``relu_()``. ``hidden.clone()`` keeps the graph. Use
# both:

hidden = torch.tensor([1.0, -1.0]) * weight
for note in (hidden.detach(), hidden.clone(), hidden.detach().clone()):
    notes.append(note)
hidden.relu_()
for note in notes[3:]:
    print(note)

# sphinx_gallery_start_ignore
assert [note.tolist() for note in notes[3:]] == [[1, 0], [1, -1], [1, -1]]
assert [note.requires_grad for note in notes[3:]] == [False, True, False]
# sphinx_gallery_end_ignore

# %%
# Measured on a GPU
# -----------------
# Does a call wait? Put ten products of large matrices into the queue, and an event after them. Then make the call on a small
# tensor. If the GPU has already reached the event when the call returns, the call has waited for the products.
#
# .. needs-a-gpu::

if not torch.cuda.is_available():
    print("What follows is measured, and needs a CUDA device.")
    sys.exit()

import io
import warnings

big = torch.randn(8192, 8192, device="cuda")
product = torch.empty_like(big)


def waits(use, x):
    use(x.clone())  # the first call of an operation loads its kernel
    x = x.clone()
    torch.cuda.synchronize()
    for _ in range(10):
        torch.mm(big, big, out=product)
    queued = torch.cuda.Event()
    queued.record()
    use(x)
    return queued.query()


def warns(use, x):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        torch.cuda.set_sync_debug_mode("warn")  # warns that it is a prototype
        use(x.clone())
        torch.cuda.set_sync_debug_mode("default")
    return any("called a synchronizing" in str(one.message) for one in caught)


# %%
# The calls of the table above, and some more:

# varies: Another version of PyTorch, or another build, may wait elsewhere.

MORE = {
    "print(x)": str,  # what print calls
    "torch.save(x, file)": lambda x: torch.save(x, io.BytesIO()),
    "x[x > 0] = other": lambda x: x.__setitem__(x > 0, x.clone()),
    "x[x > 0] = 0": lambda x: x.__setitem__(x > 0, 0),
    "x[[0, 2]]": lambda x: x[[0, 2]],
    "torch.tensor([0, 2], device=x.device)": lambda x: torch.tensor(
        [0, 2], device="cuda"
    ),
    'x.to("cpu", non_blocking=True)': lambda x: x.to("cpu", non_blocking=True),
    "x.sum().backward()": lambda x: x.requires_grad_().sum().backward(),
}
x = torch.ones(4, device="cuda")
rows = {
    name: {
        "raises on meta": needs.get(name, ""),
        "waits": waits(use, x),
        "debug mode warns": warns(use, x),
    }
    for name, use in (USES | MORE).items()
}
on_gpu = pd.DataFrame(rows).T
# sphinx_gallery_start_ignore
_waits = on_gpu["waits"]
for _name in ("x[0].item()", "float(x[0])", "if x[0] > 0", "x.tolist()", "x.cpu()"):
    assert _waits[_name], _name
for _name in (
    "x.nonzero()",
    "x[x > 0]",
    "x.unique()",
    "print(x)",
    "torch.save(x, file)",
):
    assert _waits[_name], _name
for _name in ("x[x > 0] = other", "x[[0, 2]]", "torch.tensor([0, 2], device=x.device)"):
    assert _waits[_name], _name
for _name in runs[:8]:
    assert not _waits[_name], _name
assert not _waits["x.sum().backward()"] and not _waits["x[x > 0] = 0"]
assert not _waits['x.to("cpu", non_blocking=True)']
assert (_waits == on_gpu["debug mode warns"]).mean() > 0.9
# sphinx_gallery_end_ignore
on_gpu.replace({True: "yes", False: "no"}).rename_axis(columns="call")

# %%
# - The ten calls that raise on ``meta`` all wait, and the eight that run there do not.
# - Of the other eight, five wait. ``print`` and ``torch.save`` read the values. ``x[[0, 2]]`` and ``torch.tensor`` copy a list
#   of Python numbers to the GPU, and that copy waits. ``x[x > 0] = other`` must know how many elements the mask selects;
#   ``x[x > 0] = 0`` does not need to know it.
# - ``x.sum().backward()`` does not wait, and neither does ``x.to("cpu", non_blocking=True)``. So when this call returns, the
#   values may not be in the CPU tensor yet: see :ref:`sphx_glr_gallery_cuda_pinned_memory.py`.

# %%
# See also
# --------
# - :doc:`Shape operations </reference/shapes>`: more than a hundred calls, and whether they copy.
# - :doc:`Which switch do I want? </guide/which-switch>`, and :ref:`sphx_glr_gallery_modes_grad_modes.py`.
# - In PyTorch's reference: `Tensor.detach <https://docs.pytorch.org/docs/stable/generated/torch.Tensor.detach.html>`__,
#   `torch.clone <https://docs.pytorch.org/docs/stable/generated/torch.clone.html>`__, `Tensor.item
#   <https://docs.pytorch.org/docs/stable/generated/torch.Tensor.item.html>`__ and `asynchronous execution
#   <https://docs.pytorch.org/docs/stable/notes/cuda.html#asynchronous-execution>`__.
