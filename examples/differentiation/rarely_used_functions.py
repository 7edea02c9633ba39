r"""
Rarely used functions of torch.autograd, each in a few lines
============================================================

.. index::
   single: a kernel or NumPy wrote into a tensor and the gradient is silently wrong
   single: increment_version, when to call it
   single: gradient with respect to a tensor that is gone
   single: GradientEdge and get_gradient_edge
   single: checkpoint the layers of an nn.Sequential

.. in-short::

   Most programs never call these functions. The first one can save you. If code that autograd cannot see has written into the
   tensor ``t``, call this:

   .. code-block:: python

      torch.autograd.graph.increment_version(t)

   If an operation had saved ``t``, backward then raises an error, and does not return a wrong gradient.
"""

# %%
# ``increment_version``: tell autograd that a tensor was written
# --------------------------------------------------------------
# NumPy, a Triton kernel or a C library writes into the memory of a tensor. Autograd does not notice: the tensor's version
# counter stays as it is. Here ``sin`` has saved ``y``, and NumPy overwrites it before backward:

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

# %%
# The gradient is wrong, and nothing said so. One call after the write makes backward check:

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
# sphinx_gallery_end_ignore

# %%
# A tensor and its views share one counter, so a call for a view counts for its base, too. Backward raises only if an operation
# had saved the tensor: a sum, for example, does not need its input's values. :ref:`In-place operations and version counters
# <sphx_glr_gallery_differentiation_inplace_and_versions.py>` explains the counter.

# %%
# What people get wrong
# ---------------------
# **Calling it before the write.** It does not matter whether you call it before or after the write. It matters that an
# operation saved the tensor before: what is saved after the call has the new version, so backward compares equal numbers.

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
# ``GradientEdge``: a gradient at a place, without its tensor
# -----------------------------------------------------------
# ``autograd.grad`` asks for a gradient with respect to a tensor, and keeping that tensor keeps its memory. A ``GradientEdge``
# names the same place in the graph by its node and the number of the node's output:

from torch.autograd.graph import get_gradient_edge

x = torch.tensor(2.0, requires_grad=True)
y = x.exp()
edge = get_gradient_edge(y)
z = y.sin()
del y

(gradient,) = torch.autograd.grad(z, edge)
print(type(edge).__name__, edge.node.name(), edge.output_nr)
print("dz/dy:", gradient)
assert torch.allclose(gradient, x.exp().cos())

# sphinx_gallery_start_ignore
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
# For a leaf that requires grad, the node is its ``AccumulateGrad``. A tensor without ``requires_grad`` has no edge:
# ``get_gradient_edge`` raises an error.

# %%
# ``disable_saved_tensors_hooks``: forbid what would change saved tensors
# -----------------------------------------------------------------------
# Your Function hands the memory of its saved tensors to a kernel. A user who wraps the model in ``save_on_cpu`` would move them
# away. In this block, hooks are refused with your own sentence:

from torch.autograd.graph import disable_saved_tensors_hooks, save_on_cpu

with disable_saved_tensors_hooks("fast_attention needs its saved tensors in place"):
    try:
        with save_on_cpu():
            x.exp()
    except RuntimeError as error:
        message = str(error)
        print("RuntimeError:", message)
assert message == "fast_attention needs its saved tensors in place"

# %%
# ``set_multithreading_enabled``: backward in the thread that called it
# ---------------------------------------------------------------------
# By default, backward runs the nodes of each GPU in a thread of its own. With ``False`` all nodes run in the thread that called
# ``backward()``. On a CPU nothing changes here: that thread runs the nodes anyway.

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
# :ref:`Forward mode <sphx_glr_gallery_differentiation_forward_mode.py>` usually stands in ``with dual_level():``. Where a block
# does not fit, as in ``setUp`` and ``tearDown`` of a test, open and close the level yourself. ``unpack_dual`` returns a named
# tuple, ``UnpackedDualTensor``.

from torch.autograd import forward_ad

level = forward_ad.enter_dual_level()
dual = forward_ad.make_dual(torch.tensor(2.0), torch.tensor(1.0))
inside = forward_ad.unpack_dual(dual**3)
forward_ad.exit_dual_level(level=level)
print(inside)
print("after the level:", forward_ad.unpack_dual(dual).tangent)
assert inside.tangent == 12 and forward_ad.unpack_dual(dual).tangent is None

# %%
# ``functional.vjp``, ``hvp`` and ``vhp``: the older interface
# ------------------------------------------------------------
# Each returns the function's value, too. For a function with continuous second derivatives, ``hvp`` and ``vhp`` are the same
# product; ``vhp`` runs backward twice, and ``hvp`` three times. In new code use :ref:`torch.func
# <sphx_glr_gallery_differentiation_jacobian_and_hessian.py>`.

from torch.autograd.functional import hvp, vhp, vjp


def f(x):
    return (x**3).sum() + x[0] * x[1]


point, v = torch.tensor([1.0, 2.0]), torch.tensor([1.0, 0.0])
print("vjp", vjp(torch.sin, point, v)[1])
print("vhp", vhp(f, point, v)[1])
print("hvp", hvp(f, point, v)[1])
assert torch.equal(vhp(f, point, v)[1], hvp(f, point, v)[1])

# sphinx_gallery_start_ignore
assert torch.equal(hvp(f, point, v)[1], torch.tensor([6.0, 1.0]))
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
# ``checkpoint_sequential``: checkpoint an ``nn.Sequential`` in pieces
# --------------------------------------------------------------------
# Six layers in three pieces. Each piece but the last is :ref:`checkpointed <sphx_glr_gallery_memory_checkpointing.py>`: its
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

# %%
# ``GraphExecGroup``: several backwards, one recomputation
# --------------------------------------------------------
# Two losses come out of one checkpointed block. Each backward runs the block again. In a ``GraphExecGroup`` the first one's
# results are kept for the second:

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

# %%
# ``CheckpointPolicy``: decide for each operation
# -----------------------------------------------
# A list of operations that a checkpoint keeps is enough :ref:`in most cases <sphx_glr_gallery_memory_checkpointing.py>`. A
# function can look at the arguments, too. This one keeps only the large matrix products:

from functools import partial

from torch.utils.checkpoint import (
    CheckpointPolicy,
    create_selective_checkpoint_contexts,
)

kept = []


def large_products(ctx, op, *args, **kwargs):
    if op is torch.ops.aten.mm.default and args[0].numel() > 100:
        if not ctx.is_recompute:
            kept.append(tuple(args[0].shape))
        return CheckpointPolicy.MUST_SAVE
    return CheckpointPolicy.PREFER_RECOMPUTE


def two_products(x):
    return (x @ x.T) @ torch.ones(20, 2)


context_fn = partial(create_selective_checkpoint_contexts, large_products)
x = torch.ones(20, 3, requires_grad=True)
checkpoint(two_products, x, use_reentrant=False, context_fn=context_fn).sum().backward()
print("kept the product of", kept)
assert kept == [(20, 20)]

# sphinx_gallery_start_ignore
_expected = x.grad.clone()
x.grad = None
two_products(x).sum().backward()
assert torch.equal(x.grad, _expected)
# sphinx_gallery_end_ignore

# %%
# Exercise
# --------
# A leaf ``w`` is overwritten by NumPy between forward and backward. The loss is ``(w * x).sum()`` in one case and
# ``(w + x).sum()`` in the other, and ``x`` requires grad. You call ``increment_version(w)``. Which backward raises?
#
# .. solution::
#
# The product saves ``w``, because the gradient of ``x`` is ``w``. So its backward raises. The sum saves neither of the two.

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
# - Before: :ref:`sphx_glr_gallery_differentiation_gradient_layouts.py`, the memory of ``.grad``.
# - Next: :ref:`sphx_glr_gallery_functions_exp_function.py`, a node of your own.
# - :ref:`sphx_glr_gallery_differentiation_inplace_and_versions.py`: what the version counter guards.
# - :ref:`sphx_glr_gallery_memory_saved_tensor_hooks.py`: hooks on saved tensors, and ``save_on_cpu``.
# - :ref:`sphx_glr_gallery_tensors_numpy_and_torch.py`: memory that NumPy and PyTorch share.
# - In PyTorch's reference: `torch.autograd <https://docs.pytorch.org/docs/stable/autograd.html>`__.
