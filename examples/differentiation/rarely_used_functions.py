r"""
increment_version: NumPy or a kernel writes into a tensor
=========================================================

.. index::
   single: a kernel or NumPy wrote into a tensor and the gradient is silently wrong
   single: increment_version, when to call it
   single: rarely used functions of autograd and checkpoint
   single: gradient with respect to a tensor that is gone
   single: GradientEdge and get_gradient_edge
   single: checkpoint the layers of an nn.Sequential
   single: AccumulateGrad node that was poisoned by swap_tensors

.. in-short::

   If NumPy, a C library or your own kernel writes into a tensor ``t`` before backward, the gradient can be silently wrong,
   because autograd does not see the write. Call this after the write:

   .. code-block:: python

      torch.autograd.graph.increment_version(t)

   If a PyTorch operation had saved ``t`` or a view of it, backward now raises an error instead. Some cases escape, and they are
   listed below. So it is safer to write into a clone, or after backward.
"""

# %%
# The problem: a write that autograd cannot see
# ---------------------------------------------
# NumPy writes into the memory that it shares with a tensor, and so does a kernel that gets ``data_ptr()``. Below, ``sin`` has
# saved ``y``, because its derivative is ``cos(y)``. Then NumPy overwrites ``y`` before backward:

import numpy as np
import torch
from torch.autograd.graph import increment_version

x = torch.tensor(1.0, requires_grad=True)
y = 1 * x
loss = y.sin()

# graph: loss (saved) -- sin saved y, which was 1 and now holds 5
np.copyto(y.detach().numpy(), 5.0)  # autograd does not see this

# %%
loss.backward()
print("gradient ", x.grad)
print("should be", torch.tensor(1.0).cos())
assert torch.allclose(x.grad, torch.tensor(5.0).cos())
assert not torch.allclose(x.grad, torch.tensor(1.0).cos())

# sphinx_gallery_start_ignore
import ctypes

_written = torch.ones(4)
ctypes.memset(_written.data_ptr(), 0, 4 * _written.element_size())  # a C library
assert not _written.any() and _written._version == 0
np.copyto(_written.numpy(), 5.0)
assert _written.eq(5).all() and _written._version == 0
# sphinx_gallery_end_ignore

# %%
# The gradient is silently wrong. With one more line, backward sees the write:

x = torch.tensor(1.0, requires_grad=True)
y = 1 * x
loss = y.sin()
np.copyto(y.detach().numpy(), 5.0)
increment_version(y)

try:
    loss.backward()
except RuntimeError as error:
    message = str(error)
    print("RuntimeError:", message.split(" Hint")[0])

# sphinx_gallery_start_ignore
assert "is at version 1; expected version 0 instead" in message
_x = torch.ones(4, requires_grad=True)
_y = 1 * _x
_view = _y[:2]
increment_version(_view)  # a view and its base have one counter
assert _y._version == _view._version == 1
increment_version([_y, _x])
assert _y._version == 2 and _x._version == 1
_sum = (1 * _x).sum()  # a sum saves no values, so nothing is raised
increment_version(_x)
_sum.backward()
assert torch.equal(_x.grad, torch.ones(4))


class _KeepsOnCtx(torch.autograd.Function):
    @staticmethod
    def forward(ctx, y):
        ctx.y = y
        return y.sin()

    @staticmethod
    def backward(ctx, gradient):
        return gradient * ctx.y.cos()


class _Saves(_KeepsOnCtx):
    @staticmethod
    def forward(ctx, y):
        ctx.save_for_backward(y)
        return y.sin()

    @staticmethod
    def backward(ctx, gradient):
        return gradient * ctx.saved_tensors[0].cos()


def _hooks_on_one(y):
    result = y.sin()
    result.grad_fn._raw_saved_self.register_hooks(lambda t: t, lambda t: t)
    return result


def _with_hooks(y):
    with torch.autograd.graph.save_on_cpu():
        return y.sin()


def _after_a_write(operation):
    x = torch.ones(3, requires_grad=True)
    y = 1 * x
    loss = operation(y).sum()
    np.copyto(y.detach().numpy(), 5.0)
    increment_version(y)
    try:
        loss.backward()
    except RuntimeError:
        return "raised"
    return x.grad


for _operation in (torch.sin, torch.square, lambda y: y[:2].sin(), _Saves.apply):
    assert isinstance(_after_a_write(_operation), str)
for _operation in (
    _KeepsOnCtx.apply,
    _with_hooks,
    _hooks_on_one,
):  # not noticed: cos(5) instead of cos(1)
    assert torch.allclose(_after_a_write(_operation), torch.full((3,), 5.0).cos())
_shared = _after_a_write(lambda y: y * torch.from_numpy(y.detach().numpy()))
assert torch.equal(_shared, torch.full((3,), 5.0))  # should be 1
assert torch.equal(_after_a_write(lambda y: y * y.data), torch.full((3,), 5.0))
_w = torch.ones(3)
_pull = torch.func.vjp(torch.sin, _w)[1]
_x = torch.ones(3, requires_grad=True)
_loss = torch.utils.checkpoint.checkpoint(lambda x: x * _w, _x, use_reentrant=False)
np.copyto(_w.numpy(), 5.0)
increment_version(_w)
_loss.sum().backward()
assert torch.equal(_x.grad, torch.full((3,), 5.0))  # should be 1
assert torch.allclose(_pull(torch.ones(3))[0], torch.full((3,), 5.0).cos())
_whole = torch.ones(4)
for _part in (_whole.expand(2, 4), _whole.detach(), _whole.view(2, 2).T):
    _before = _whole._version
    increment_version(_part)
    assert _whole._version == _before + 1
# sphinx_gallery_end_ignore

# %%
# Why: each tensor counts its writes
# ----------------------------------
# A tensor and its views share a :ref:`version counter <sphx_glr_gallery_differentiation_inplace_and_versions.py>`. PyTorch's
# operations in place raise it. A node notes the version of what it saves, and backward raises an error if the counter has
# moved. NumPy leaves the counter alone, so you raise it yourself.
#
# In these cases, backward can still return a wrong gradient:
#
# - The operation ran under ``save_on_cpu`` or other :ref:`hooks on saved tensors
#   <sphx_glr_gallery_memory_saved_tensor_hooks.py>`, or under ``torch.func``.
# - A custom Function kept the tensor as ``ctx.y = y``. Use ``ctx.save_for_backward(y)``.
# - The operation saved ``y.data`` or ``torch.from_numpy(...)`` of the same memory. Each of them has its own counter.
# - The function in ``checkpoint(function, x)`` got the tensor in another way than as a positional argument.

# %%
# What people get wrong
# ---------------------
# **Calling** ``increment_version`` **before the operation.** An operation after the call saves the new version, so backward
# finds nothing. Call it after the operation:

x = torch.tensor(1.0, requires_grad=True)
y = 1 * x
increment_version(y)  # too early: sin saves y after it
loss = y.sin()
np.copyto(y.detach().numpy(), 5.0)
loss.backward()
print(x.grad)

# sphinx_gallery_start_ignore
assert torch.allclose(x.grad, torch.tensor(5.0).cos())
_x = torch.ones(3, requires_grad=True)
_y = 1 * _x
_loss = _y.sin().sum()
increment_version(_y)  # before the write, and after the save
np.copyto(_y.detach().numpy(), 5.0)
_raised = []
try:
    _loss.backward()
except RuntimeError as error:
    _raised.append(error)
assert len(_raised) == 1
# sphinx_gallery_end_ignore

# %%
# **Writing through** ``.data``. It hides the write in the same way. Write to the tensor itself under ``torch.no_grad()``: then
# the counter rises without your help.

t = torch.ones(3)
t.data.fill_(5.0)
hidden = t._version
with torch.no_grad():
    t.fill_(5.0)
print("version after .data:", hidden, "  after no_grad:", t._version)
assert hidden == 0 and t._version == 1

# %%
# Exercise
# --------
# A leaf ``w`` is overwritten by NumPy between forward and backward. The loss is ``(w * x).sum()`` in one case and
# ``(w + x).sum()`` in the other, and ``x`` requires grad. You call ``increment_version(w)``. Which backward raises?
#
# .. solution::
#
# The product saves ``w``, because the gradient with respect to ``x`` is ``w``. So its backward raises. The sum saves nothing.

raised = {}
for name, combine in {"w * x": torch.mul, "w + x": torch.add}.items():
    w, x = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    loss = combine(w, x).sum()
    np.copyto(w.detach().numpy(), 5.0)
    increment_version(w)
    try:
        loss.backward()
        raised[name] = False
    except RuntimeError:
        raised[name] = True
print(raised)
assert raised == {"w * x": True, "w + x": False}

# %%
# More functions that are rarely needed
# -------------------------------------
# ``get_gradient_edge`` returns a place in the graph, a ``GradientEdge``. It gives you the gradient there after the tensor is
# gone:

from torch.autograd.graph import get_gradient_edge

x = torch.tensor(2.0, requires_grad=True)
y = 3 * x
edge = get_gradient_edge(y)
z = 5 * y
# sphinx_gallery_start_ignore
from torch.multiprocessing.reductions import StorageWeakRef

_memory = StorageWeakRef(y.untyped_storage())
assert not _memory.expired()
# sphinx_gallery_end_ignore
del y

(gradient,) = torch.autograd.grad(z, edge)
print("dz/dy:", gradient)
assert gradient == 5

# sphinx_gallery_start_ignore
assert _memory.expired()
_from = torch.tensor(2.0, requires_grad=True)
_saved = _from.exp()
_edge, _memory = get_gradient_edge(_saved), StorageWeakRef(_saved.untyped_storage())
_end = _saved.sin()
del _saved
assert not _memory.expired()  # exp and sin have saved it
assert torch.allclose(torch.autograd.grad(_end, _edge)[0], _from.exp().cos())
_said = []
try:
    get_gradient_edge(torch.ones(2))
except RuntimeError as error:
    _said.append(str(error))
assert len(_said) == 1 and "does not require gradients" in _said[0]
_leaf = torch.ones(2, requires_grad=True)
assert get_gradient_edge(_leaf).node.name() == "torch::autograd::AccumulateGrad"
# sphinx_gallery_end_ignore

# %%
# ``disable_saved_tensors_hooks`` guards an operation that needs its saved tensors where they are. ``save_on_cpu`` then raises
# your message:

from torch.autograd.graph import disable_saved_tensors_hooks, save_on_cpu


def fast_exp(x):
    with disable_saved_tensors_hooks("fast_exp needs its saved tensors in place"):
        return x.exp()


try:
    with save_on_cpu():
        fast_exp(x)
except RuntimeError as error:
    message = str(error)
    print("RuntimeError:", message)
assert message == "fast_exp needs its saved tensors in place"

# sphinx_gallery_start_ignore
from concurrent.futures import ThreadPoolExecutor

from torch.utils.checkpoint import checkpoint as _checkpoint

_refused, _allowed = [], []


def _elsewhere():
    with save_on_cpu():
        _allowed.append("another thread")


with disable_saved_tensors_hooks("refused"):
    for _hooked in (
        save_on_cpu().__enter__,
        lambda: _checkpoint(torch.sin, x, use_reentrant=False),
    ):
        try:
            _hooked()
        except RuntimeError as error:
            _refused.append(str(error))
    _result = x.exp()
    _result.grad_fn._raw_saved_result.register_hooks(lambda t: t, lambda t: t)
    with ThreadPoolExecutor(1) as _pool:
        _pool.submit(_elsewhere).result()
assert _refused == ["refused"] * 2 and _allowed == ["another thread"]
with save_on_cpu():
    x.exp()
# sphinx_gallery_end_ignore

# %%
# ``set_multithreading_enabled(False)`` runs backward in the thread that calls it. By default, the nodes of each GPU run in a
# separate thread:

with torch.autograd.set_multithreading_enabled(False):
    torch.ones(2, requires_grad=True).sum().backward()

# sphinx_gallery_start_ignore
import threading

_ran_in = []
for _enabled in (True, False):
    _leaf = torch.ones(2, requires_grad=True)
    _leaf.register_hook(lambda g: _ran_in.append(threading.get_ident()))
    with torch.autograd.set_multithreading_enabled(_enabled):
        _leaf.sum().backward()
assert set(_ran_in) == {threading.get_ident()} and len(_ran_in) == 2
# sphinx_gallery_end_ignore

# %%
# ``enter_dual_level`` opens :ref:`forward mode <sphx_glr_gallery_differentiation_forward_mode.py>` without a ``with``, for
# example in ``setUp`` of a test. Close it in ``tearDown``:

from torch.autograd import forward_ad

level = forward_ad.enter_dual_level()
dual = forward_ad.make_dual(torch.tensor(2.0), torch.tensor(1.0))
inside = forward_ad.unpack_dual(dual**3)
forward_ad.exit_dual_level(level=level)
print(inside)
assert inside.tangent == 12 and forward_ad.unpack_dual(dual).tangent is None

# sphinx_gallery_start_ignore
assert type(inside).__name__ == "UnpackedDualTensor" and isinstance(inside, tuple)
# sphinx_gallery_end_ignore

# %%
# ``torch.autograd.functional`` is older than :ref:`torch.func
# <sphx_glr_gallery_differentiation_jacobian_and_hessian.py>`. ``vjp`` and ``jvp`` multiply a vector with the Jacobian, ``hvp``
# and ``vhp`` with the Hessian. A Hessian in ``"forward-mode"`` keeps its graph, so call ``detach()`` before you store it:

from torch.autograd.functional import hessian, hvp, jvp, vhp, vjp


def f(x):
    return (x**3).sum() + x[0] * x[1]


point, v = torch.tensor([1.0, 2.0]), torch.tensor([1.0, 0.0])
print("vjp", vjp(torch.sin, point, v)[1], "  jvp", jvp(torch.sin, point, v)[1])
print("vhp", vhp(f, point, v)[1], "  hvp", hvp(f, point, v)[1])
print(hessian(f, point, vectorize=True, outer_jacobian_strategy="forward-mode"))
assert torch.equal(vhp(f, point, v)[1], hvp(f, point, v)[1])

# sphinx_gallery_start_ignore
assert torch.equal(hvp(f, point, v)[1], torch.tensor([6.0, 1.0]))
_H = torch.tensor([[6.0, 1.0], [1.0, 12.0]])
_forward = {"vectorize": True, "outer_jacobian_strategy": "forward-mode"}
assert torch.equal(hessian(f, point, **_forward), _H)
assert hessian(f, point, **_forward).requires_grad
assert not hessian(f, point, vectorize=True).requires_grad
assert torch.equal(jvp(torch.sin, point, v)[1], vjp(torch.sin, point, v)[1])
assert torch.allclose(vjp(torch.sin, point, v)[1], point.cos() * v)
# sphinx_gallery_end_ignore

# %%
# ``checkpoint_sequential`` cuts an ``nn.Sequential`` into pieces. Each piece but the last is :ref:`checkpointed
# <sphx_glr_gallery_memory_checkpointing.py>`, so its layers run again in backward:

from torch import nn
from torch.utils.checkpoint import checkpoint_sequential

ran = []
layers = nn.Sequential(*(nn.Linear(4, 4) for _ in range(6)))
for number, layer in enumerate(layers):
    layer.register_forward_pre_hook(lambda *_, number=number: ran.append(number))

out = checkpoint_sequential(layers, 3, torch.ones(2, 4), use_reentrant=False)
print("forward ", ran)
ran.clear()
out.sum().backward()
print("backward", ran)
assert ran == [2, 3, 0, 1]

# sphinx_gallery_start_ignore
ran.clear()
out = checkpoint_sequential(layers, 1, torch.ones(2, 4), use_reentrant=False)
out.sum().backward()
assert ran == [0, 1, 2, 3, 4, 5]  # the forward alone
# sphinx_gallery_end_ignore

# %%
# ``GraphExecGroup`` is for two losses from one checkpointed block, each with its own backward. Each backward would run the
# block again, so three times in all. In the group, the second uses what the first has computed:

from torch.utils.checkpoint import GraphExecGroup, checkpoint

runs = []


def block(x):
    runs.append(x)
    return x.sin(), x.exp()


first, second = checkpoint(block, x, use_reentrant=False)
with GraphExecGroup():
    first.sum().backward()
    second.sum().backward()
print("runs of the block:", len(runs))

# sphinx_gallery_start_ignore
from contextlib import nullcontext

assert len(runs) == 2
runs.clear()
first, second = checkpoint(block, x, use_reentrant=False)
first.sum().backward()
second.sum().backward()
assert len(runs) == 3


def _shared_part(x):
    both = x.sin()
    return both.cos(), both.exp()


def _overlap(group, retain, block=_shared_part):
    leaf = torch.ones(3, requires_grad=True)
    first, second = checkpoint(block, leaf, use_reentrant=False)
    with group:
        first.sum().backward(retain_graph=retain)
        try:
            second.sum().backward()
            return "fine"
        except RuntimeError as error:
            return type(error).__name__


assert _overlap(nullcontext(), True) == "fine"
assert _overlap(GraphExecGroup(), True) == "CheckpointError"
assert _overlap(GraphExecGroup(), False) == "RuntimeError"
for _retain in (True, False):  # both save x, and they share no operation
    assert _overlap(GraphExecGroup(), _retain, lambda x: (x.sin(), x.cos())) == "fine"
_grads = []
for _run in (
    lambda leaf: checkpoint(_shared_part, leaf, use_reentrant=False),
    _shared_part,
):
    _leaf = torch.ones(3, requires_grad=True)
    first, second = _run(_leaf)
    (first.sum() + second.sum()).backward()
    _grads.append(_leaf.grad)
assert torch.allclose(*_grads)
# sphinx_gallery_end_ignore

# %%
# If the losses share an operation in the block that saves a tensor, the second backward raises an error.

# %%
# ``swap_tensors`` exchanges everything in two tensors: type, numbers, ``.grad``, and hooks. So an optimizer that holds ``w``
# gets the new content. Swap between ``optimizer.step()`` and the next forward, since ``.grad`` goes with the old content.
# Adam's state stays as it was, so make a new optimizer if the type changes. If you swap too late, backward raises an error:

w = nn.Parameter(torch.zeros(2))
optimizer = torch.optim.SGD([w], lr=0.1)
loss = (2 * w).sum()

torch.utils.swap_tensors(w, nn.Parameter(torch.ones(2, dtype=torch.float64)))
print(optimizer.param_groups[0]["params"])

try:
    loss.backward()
except RuntimeError as error:
    message = str(error)
    print("RuntimeError:", message.split(" this can")[0])

# sphinx_gallery_start_ignore
assert optimizer.param_groups[0]["params"][0] is w and w.dtype == torch.float64
assert "AccumulateGrad node that was poisoned by swap_tensors" in message
_w, _new = nn.Parameter(torch.zeros(2)), nn.Parameter(torch.ones(2))
_w.register_hook(lambda gradient: 10 * gradient)
_w.sum().backward()
torch.utils.swap_tensors(_w, _new)
assert _w.grad is None and _new.grad.tolist() == [10, 10]
_w.sum().backward()
_new.sum().backward()
assert _w.grad.tolist() == [1, 1] and _new.grad.tolist() == [20, 20]
_loss, _refused = (_w * _w).sum(), []
try:
    torch.utils.swap_tensors(_w, _new)  # the product has saved _w
except RuntimeError as error:
    _refused.append("Expected use_count of t1 to be 1 or 2" in str(error))
_loss.backward()
torch.utils.swap_tensors(_w, _new)  # after backward
assert _refused == [True]
_v = nn.Parameter(torch.ones(2))
_adam = torch.optim.Adam([_v])
_v.sum().backward()
_adam.step()
torch.utils.swap_tensors(_v, nn.Parameter(_v.detach().double()))
assert _v.grad is None
_v.sum().backward()
try:
    _adam.step()
except RuntimeError as error:
    assert "expected dtype" in str(error)
else:
    raise AssertionError
torch.__future__.set_swap_module_params_on_conversion(True)
_layer = nn.Linear(2, 2, bias=False)
_loss = _layer(torch.ones(1, 2)).sum()
_layer.double()
try:
    _loss.backward()
except RuntimeError as error:
    _refused.append("poisoned by swap_tensors" in str(error))
torch.__future__.set_swap_module_params_on_conversion(False)
assert _refused == [True] * 2
# sphinx_gallery_end_ignore

# %%
# After ``torch.__future__.set_swap_module_params_on_conversion(True)``, ``module.to()`` swaps, too.

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_differentiation_inplace_and_versions.py`: what the version counter guards.
# - :ref:`sphx_glr_gallery_tensors_numpy_and_torch.py`: memory that NumPy and PyTorch share.
# - In PyTorch's reference: `torch.autograd <https://docs.pytorch.org/docs/stable/autograd.html>`__.
