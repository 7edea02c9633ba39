r"""
Rarely used functions of autograd and checkpoint, each in a few lines
=====================================================================

.. index::
   single: a kernel or NumPy wrote into a tensor and the gradient is silently wrong
   single: increment_version, when to call it
   single: gradient with respect to a tensor that is gone
   single: GradientEdge and get_gradient_edge
   single: checkpoint the layers of an nn.Sequential
   single: AccumulateGrad node that was poisoned by swap_tensors

.. in-short::

   Most programs never call these functions. ``increment_version`` guards against wrong gradients. If code that autograd cannot
   see writes into the tensor ``t``, call:

   .. code-block:: python

      torch.autograd.graph.increment_version(t)

   If a PyTorch operation had saved ``t`` or a view of it, its backward then raises an error instead of returning a wrong
   gradient. This check is off for a saved tensor that has hooks, and under ``torch.func``.
"""

# %%
# ``increment_version``: tell autograd that a tensor was written
# --------------------------------------------------------------
# NumPy, a C library, or your own kernel that gets ``data_ptr()``, writes into the memory of a tensor. Autograd cannot notice,
# because the tensor's version counter stays as it is. Below, ``sin`` has saved ``y``, and NumPy overwrites it before backward:

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
# The old values are lost. So write into a clone of the tensor, or write after backward.
#
# A tensor and its views share one counter, so a call for a view counts for its base, too. A sum saves nothing of its input's
# values, so its backward still runs.
#
# In these cases backward still returned a wrong gradient after the call:
#
# - The operation ran inside hooks on saved tensors that kept the tensor, such as ``save_on_cpu`` for a CPU tensor.
# - A custom Function kept the tensor as ``ctx.y = y``. Use ``ctx.save_for_backward(y)``.
# - The operation saved ``y.data`` or ``torch.from_numpy(...)`` of the same memory. Each of them has its own counter.
# - The operation ran under ``torch.func``, or in a checkpoint that takes the tensor from a closure.

# %%
# ``GradientEdge``: a gradient at a place, without its tensor
# -----------------------------------------------------------
# ``autograd.grad`` asks for a gradient with respect to a tensor, and keeping that tensor keeps its memory. A ``GradientEdge``
# names the same place in the graph, by a node and the number of one of its outputs:

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
print(type(edge).__name__, edge.node.name(), edge.output_nr)
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
# ``del y`` freed the memory of ``y``, because neither product saved ``y``. In ``x.exp().sin()``, both operations save ``y =
# x.exp()``, so the graph keeps it.
#
# A tensor that does not require grad has no edge, so ``get_gradient_edge`` raises an error.

# %%
# ``disable_saved_tensors_hooks``: forbid hooks around your operation
# -------------------------------------------------------------------
# Your operation needs its saved tensors where they are. A user who wraps the model in ``save_on_cpu`` can move them away. With
# this block in your code, the user gets an error with your own message:

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
# The error comes for ``save_on_cpu`` inside the block, too, and for non-reentrant checkpoints, which use such hooks.

# %%
# ``set_multithreading_enabled``: backward in the thread that called it
# ---------------------------------------------------------------------
# By default, backward runs the nodes of each GPU in a separate thread. With ``False`` it runs them in the thread that called
# ``backward()``. On a CPU that thread usually runs them anyway:

import threading

ran_here = []
for enabled in (True, False):
    leaf = torch.ones(2, requires_grad=True)
    leaf.register_hook(lambda g: ran_here.append(threading.get_ident()))
    with torch.autograd.set_multithreading_enabled(enabled):
        leaf.sum().backward()
print([thread == threading.get_ident() for thread in ran_here])
assert set(ran_here) == {threading.get_ident()} and len(ran_here) == 2

# %%
# ``enter_dual_level``: forward mode without a ``with``
# -----------------------------------------------------
# :ref:`Forward mode <sphx_glr_gallery_differentiation_forward_mode.py>` usually runs in ``with dual_level():``. In ``setUp``
# and ``tearDown`` of a test, open and close the level yourself instead. Close it after an error, too, because while it is open,
# another ``dual_level()`` and ``torch.func.jvp`` raise an error. ``unpack_dual`` returns a named tuple, ``UnpackedDualTensor``.

from torch.autograd import forward_ad

level = forward_ad.enter_dual_level()
dual = forward_ad.make_dual(torch.tensor(2.0), torch.tensor(1.0))
inside = forward_ad.unpack_dual(dual**3)
forward_ad.exit_dual_level(level=level)
print(inside)
print("after the level:", forward_ad.unpack_dual(dual).tangent)
assert inside.tangent == 12 and forward_ad.unpack_dual(dual).tangent is None

# sphinx_gallery_start_ignore
assert type(inside).__name__ == "UnpackedDualTensor" and isinstance(inside, tuple)
_still_open = []
level = forward_ad.enter_dual_level()
for _again in (
    forward_ad.enter_dual_level,
    forward_ad.dual_level().__enter__,
    lambda: torch.func.jvp(torch.sin, (torch.ones(1),), (torch.ones(1),)),
):
    try:
        _again()
    except RuntimeError as error:
        _still_open.append("Nested forward mode" in str(error))
forward_ad.exit_dual_level(level=level)
assert _still_open == [True] * 3
# sphinx_gallery_end_ignore

# %%
# ``functional.vjp``, ``hvp`` and ``vhp``: the older interface
# ------------------------------------------------------------
# ``vjp`` and ``jvp`` multiply a vector with the Jacobian, ``hvp`` and ``vhp`` multiply it with the Hessian. Each returns the
# function's value, too. For a function with continuous second derivatives, ``hvp`` and ``vhp`` are the same product. ``vhp``
# runs backward twice, and ``hvp`` three times. In new code use :ref:`torch.func
# <sphx_glr_gallery_differentiation_jacobian_and_hessian.py>`.

from torch.autograd.functional import hessian, hvp, jvp, vhp, vjp


def f(x):
    return (x**3).sum() + x[0] * x[1]


point, v = torch.tensor([1.0, 2.0]), torch.tensor([1.0, 0.0])
print("vjp", vjp(torch.sin, point, v)[1])
print("jvp", jvp(torch.sin, point, v)[1])
print("vhp", vhp(f, point, v)[1])
print("hvp", hvp(f, point, v)[1])
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
from unittest import mock

from torch.autograd import functional as _functional

for _product, _times in ((vhp, 2), (hvp, 3)):
    with mock.patch.object(
        _functional, "_autograd_grad", wraps=_functional._autograd_grad
    ) as _grads:
        _product(f, point, v)
    assert _grads.call_count == _times
# sphinx_gallery_end_ignore

# %%
# With this strategy the Hessian keeps a graph, as its ``grad_fn`` shows. If you store it, call ``detach()``.

# %%
# ``checkpoint_sequential``: checkpoint an ``nn.Sequential`` in pieces
# --------------------------------------------------------------------
# Six layers in three pieces. Each piece but the last is :ref:`checkpointed <sphx_glr_gallery_memory_checkpointing.py>`, so its
# layers run again in backward.

from torch import nn
from torch.utils.checkpoint import checkpoint_sequential

ran = []


class Layer(nn.Linear):
    def forward(self, x):
        ran.append(self.number)
        return super().forward(x).tanh()


layers = nn.Sequential(*(Layer(4, 4) for _ in range(6)))
for number, layer in enumerate(layers):
    layer.number = number

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
# ``GraphExecGroup``: several backwards, one recomputation
# --------------------------------------------------------
# Two losses come out of one checkpointed block, and each has its own backward. Each backward runs the block again. In a
# ``GraphExecGroup``, the first backward keeps what it recomputed for the second:

from contextlib import nullcontext

from torch.utils.checkpoint import GraphExecGroup, checkpoint


def runs_of_the_block(group):
    runs = []

    def block(x):
        runs.append(x)
        return x.sin(), x.exp()

    x = torch.ones(3, requires_grad=True)
    first, second = checkpoint(block, x, use_reentrant=False)
    with group:
        first.sum().backward()
        second.sum().backward()
    return len(runs)


print("without:", runs_of_the_block(nullcontext()))
print("with:   ", runs_of_the_block(GraphExecGroup()))
assert runs_of_the_block(nullcontext()) == 3
assert runs_of_the_block(GraphExecGroup()) == 2

# sphinx_gallery_start_ignore


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
# Inside the block, the two losses must not share an operation that saves a tensor. If both come from ``h = x.sin()`` there, the
# second backward raises an error in the group, with and without ``retain_graph=True``. Then add the losses, and call
# ``backward()`` once, without a group.

# %%
# ``swap_tensors``: new content for a parameter that others hold
# --------------------------------------------------------------
# You want a parameter of a different type, but the optimizer holds the old one. ``swap_tensors`` exchanges everything in two
# tensors: type, numbers, ``.grad``, and hooks. Both Python objects stay what they are, so the optimizer gets the new content:

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
# So swap before the forward pass, or after backward. After ``torch.__future__.set_swap_module_params_on_conversion(True)``,
# ``module.to()`` swaps, too.

# %%
# What people get wrong
# ---------------------
# **Calling** ``increment_version`` **before the operation.** Call it after the operation that saves the tensor, and before
# backward. An operation after the call saves the new version, so backward compares equal numbers.

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
# the counter rises by itself.

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
# The product saves ``w``, because the gradient with respect to ``x`` is ``w``. So its backward raises. The sum saves neither of
# them.

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
# See also
# --------
# - :ref:`sphx_glr_gallery_differentiation_inplace_and_versions.py`: what the version counter guards.
# - :ref:`sphx_glr_gallery_memory_saved_tensor_hooks.py`: hooks on saved tensors, and ``save_on_cpu``.
# - :ref:`sphx_glr_gallery_memory_selective_checkpointing.py`: ``CheckpointPolicy``.
# - :ref:`sphx_glr_gallery_tensors_numpy_and_torch.py`: memory that NumPy and PyTorch share.
# - In PyTorch's reference: `torch.autograd <https://docs.pytorch.org/docs/stable/autograd.html>`__.
