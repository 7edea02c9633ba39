r"""
Custom Function under torch.func: vmap and jvp
==============================================

.. index::
   ! single: In order to use an autograd.Function with functorch transforms
   ! single: it must override the setup_context staticmethod
   ! single: You tried to vmap over my Function, but it does not have vmap support
   ! single: vmap over flash attention or mamba

.. in-short::

   Take ``ctx`` out of ``forward`` and fill it in ``setup_context``: then ``torch.func.grad`` takes the Function, if its
   ``backward`` consists of differentiable PyTorch operations. For ``vmap`` add ``generate_vmap_rule = True``, or a static
   ``vmap`` if ``vmap`` cannot run ``forward``; for ``jvp`` add a static ``jvp``. ``jacfwd`` and ``hessian`` need both. Two
   things can be silently 0: ``jvp`` of a ``torch.library.custom_op``, and ``jvp`` of ``jvp`` of a Function.
"""

# %%
# The problem: vmap does not accept your Function
# -----------------------------------------------
# Your model contains a custom Function, and you want one gradient for each example of a batch. ``vmap(grad(loss))`` stops: *You
# tried to vmap over Exp, but it does not have vmap support.* So write an ``Exp`` with all rules:

import numpy as np
import torch
from torch.autograd import gradcheck
from torch.func import grad, hessian, jacfwd, jvp, vmap


class Exp(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x):
        return torch.exp(x)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(output)
        ctx.save_for_forward(output)  # what jvp reads

    @staticmethod
    def backward(ctx, grad_output):
        (result,) = ctx.saved_tensors
        return grad_output * result

    @staticmethod
    def jvp(ctx, tangent):
        (result,) = ctx.saved_tensors
        return tangent * result


def loss(example, factor):
    return (factor * Exp.apply(example)).sum()


batch = torch.tensor([[0.0, 1.0], [0.0, 2.0], [1.0, 3.0]])
factors = torch.tensor([1.0, 2.0, 3.0])
print(vmap(grad(loss))(batch, factors))

# sphinx_gallery_start_ignore
assert torch.allclose(vmap(grad(loss))(batch, factors), factors[:, None] * batch.exp())
# sphinx_gallery_end_ignore

# %%
# Each row is the gradient of one example with its own factor.

# %%
# Which transform needs which rule
# --------------------------------
# A Function has a rule for each kind of transform. The table also has :math:`e^x` as an *operator*, with two rules:


@torch.library.custom_op("atlas_demo::exp", mutates_args=())
def exp_operator(x: torch.Tensor) -> torch.Tensor:
    return torch.exp(x)


def keep_output(ctx, inputs, output):
    ctx.save_for_backward(output)


exp_operator.register_autograd(
    lambda ctx, gradient: gradient * ctx.saved_tensors[0], setup_context=keep_output
)
exp_operator.register_vmap(lambda info, in_dims, x: (exp_operator(x), in_dims[0]))


# %%
# .. how-measured:: make_exp_with() makes the Function Exp with some of its rules. Each transform is applied, and its result
#    compared with that of torch.exp.

import pandas as pd

messages = {}


def make_exp_with(*rules):
    class Exp(torch.autograd.Function):
        generate_vmap_rule = "vmap" in rules

        @staticmethod
        def forward(x):
            return torch.exp(x)

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(output)
            ctx.save_for_forward(output)

        @staticmethod
        def backward(ctx, grad_output):
            return grad_output * ctx.saved_tensors[0]

    def tangent_of_output(ctx, tangent):
        return tangent * ctx.saved_tensors[0]

    if "jvp" in rules:
        Exp.jvp = staticmethod(tangent_of_output)
    return Exp.apply


def backward(f):
    leaf = x.clone().requires_grad_()
    f(leaf).square().sum().backward()
    return leaf.grad


def squares(f):
    return lambda v: f(v).square().sum()


transforms = {
    "backward()": backward,
    "grad": lambda f: grad(squares(f))(x),
    "vmap": lambda f: vmap(f)(batch),
    "vmap(grad)": lambda f: vmap(grad(squares(f)))(batch),
    "jacrev": lambda f: torch.func.jacrev(f)(x),
    "jvp": lambda f: jvp(f, (x,), (tangent,))[1],
    "jacfwd": lambda f: jacfwd(f)(x),
    "hessian": lambda f: hessian(squares(f))(x),
}


def outcome(name, transform, f, reference):
    try:
        result = transform(f)
    except (RuntimeError, NotImplementedError) as error:
        messages[name, f] = str(error)
        return "raises"
    return "right" if torch.allclose(result, transform(reference)) else "WRONG"


def tabulate_transforms(functions, reference):
    table = {
        title: [outcome(name, t, f, reference) for name, t in transforms.items()]
        for title, f in functions.items()
    }
    return pd.DataFrame(table, list(transforms)).rename_axis(columns="transform")


# %%
# Four versions of ``Exp``, and the operator:

x, tangent = torch.tensor([1.0, 3.0]), torch.tensor([1.0, -1.0])
functions = {
    "no rule": make_exp_with(),
    "vmap rule": make_exp_with("vmap"),
    "jvp rule": make_exp_with("jvp"),
    "both rules": make_exp_with("vmap", "jvp"),
    "custom_op": exp_operator,
}
# sphinx_gallery_start_ignore
_table = tabulate_transforms(functions, torch.exp)
assert [" ".join(word[:2] for word in _table[title]) for title in _table] == [
    "ri ri ra ra ri ra ra ra",
    "ri ri ri ri ri ra ra ra",
    "ri ri ra ra ri ri ra ra",
    "ri ri ri ri ri ri ri ri",
    "ri ra ri ra ra WR WR ra",
]
# each "raises" is about the missing rule, not about a mistake in the code
_reasons = {
    "no rule": ("does not have vmap support", "must implement the jvp function"),
    "vmap rule": ("must implement the jvp function",),
    "jvp rule": ("does not have vmap support",),
    "custom_op": ("must override the setup_context staticmethod",),
}
for _title, _expected in _reasons.items():
    _said = [text for (_, f), text in messages.items() if f is functions[_title]]
    assert len(_said) == list(_table[_title]).count("raises")
    assert all(any(part in text for part in _expected) for text in _said), _title
assert messages["vmap(grad)", functions["no rule"]].startswith(
    "You tried to vmap over Exp, but it does not have vmap support."
)
assert set(tabulate_transforms({"Exp": Exp.apply}, torch.exp)["Exp"]) == {"right"}
# sphinx_gallery_end_ignore
tabulate_transforms(functions, torch.exp)

# %%
# "Right" means: the same result as ``torch.exp``. The two entries "WRONG" are silent: see *Forward mode through a custom
# operator* below.

# %%
# Why each rule is needed
# -----------------------
# Under ``vmap``, your code can get a tensor that looks like a single example, or the tensor with the whole batch. So you have
# to say which one it expects. ``generate_vmap_rule`` says: a single example, and ``vmap`` may transform each operation inside.
# ``backward`` is the rule for reverse mode, ``jvp`` the rule for forward mode: from the tangents of the inputs (how fast each
# input moves), it computes the tangent of the output. ``jacfwd`` runs ``vmap`` over ``jvp``, one direction for each element of
# the input. ``hessian`` is ``jacfwd`` over ``jacrev``. That is why ``jacfwd`` and ``hessian`` need both rules. ``grad`` and
# ``jacrev`` run your ``backward`` on special tensors, too: there, ``grad_output.numpy()`` raises the same *Cannot access data
# pointer*.

# %%
# A forward in NumPy: write the vmap rule
# ---------------------------------------
# The generated rule runs your ``forward`` under ``vmap``. There, ``x`` is a special tensor, and NumPy cannot read it:


class RunningSum(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x, dim):
        return torch.from_numpy(np.cumsum(x.numpy(), axis=dim))

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.dim = inputs[1]

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output.flip(ctx.dim).cumsum(ctx.dim).flip(ctx.dim), None


try:
    vmap(lambda v: RunningSum.apply(v, 0))(batch)
except RuntimeError as error:
    message = str(error)
    print(f"RuntimeError: {message}")

# sphinx_gallery_start_ignore
assert "Cannot access data pointer" in message
# sphinx_gallery_end_ignore

# %%
# Write the rule yourself, as a static method ``vmap``. It gets the tensor with the whole batch, and ``in_dims`` says which
# dimension is the batch (``None`` for an argument without one). It returns the output and the output's batch dimension:


class BatchedSum(RunningSum):
    generate_vmap_rule = False  # one of the two, not both

    @staticmethod
    def vmap(info, in_dims, x, dim):
        x = x.movedim(in_dims[0], 0)
        return BatchedSum.apply(x, dim + 1), 0

    @staticmethod
    def jvp(ctx, tangent, _):
        return BatchedSum.apply(tangent, ctx.dim)


print(vmap(lambda v: BatchedSum.apply(v, 0))(batch))


# sphinx_gallery_start_ignore
def _rows(v):
    return BatchedSum.apply(v, 0)


assert torch.equal(vmap(_rows)(batch), batch.cumsum(1))
assert torch.equal(vmap(_rows, in_dims=1)(batch), batch.T.cumsum(1))
assert set(tabulate_transforms({"sum": _rows}, lambda v: v.cumsum(0))["sum"]) == {
    "right"
}
_nested = torch.rand(2, 3, 4)
assert torch.allclose(vmap(vmap(_rows))(_nested), _nested.cumsum(2))


class _TwoRules(BatchedSum):
    generate_vmap_rule = True


_raised = []
try:
    vmap(lambda v: _TwoRules.apply(v, 0))(batch)
except RuntimeError as error:
    _raised.append(str(error))
assert len(_raised) == 1
assert "both generate_vmap_rule=True and an overridden vmap" in _raised[0]
# sphinx_gallery_end_ignore

# %%
# In ``forward`` of one example, ``dim=0`` is the first dimension. In the batch it is the second, so the rule adds 1.

# %%
# custom_op: one step for torch.compile
# -------------------------------------
# A Function belongs to autograd. :ref:`An operator <sphx_glr_gallery_functions_custom_operator.py>` is one step for
# ``torch.compile`` and ``torch.export``, too:


@torch.library.custom_op("atlas_demo::running_sum", mutates_args=())
def running_sum(x: torch.Tensor, dim: int) -> torch.Tensor:
    return torch.from_numpy(np.cumsum(x.numpy(force=True), axis=dim))


@running_sum.register_fake  # shapes and types, without data
def _(x, dim):
    return torch.empty_like(x)


running_sum.register_autograd(
    RunningSum.backward, setup_context=RunningSum.setup_context
)


@running_sum.register_vmap
def _(info, in_dims, x, dim):
    dim = dim if dim < 0 else dim + 1
    return running_sum(x.movedim(in_dims[0], 0), dim), 0


leaf = x.double().requires_grad_()
y = running_sum(leaf, 0)
z = Exp.apply(leaf) * y

# graph: z -- A Function and an operator are one node each, named after the class and after the operator


# sphinx_gallery_start_ignore
import warnings


class _NumpyBackward(RunningSum):
    generate_vmap_rule = False

    @staticmethod
    def backward(ctx, grad_output):
        flipped = np.flip(grad_output.numpy(), ctx.dim)
        return torch.from_numpy(np.flip(flipped.cumsum(ctx.dim), ctx.dim).copy()), None


_raised = []
assert grad(lambda v: RunningSum.apply(v, 0).sum())(x).tolist() == [2, 1]
jacrev = torch.func.jacrev
assert backward(lambda v: _NumpyBackward.apply(v, 0)).tolist() == [10, 8]
for _transform in (grad, jacrev):
    try:
        _transform(lambda v: _NumpyBackward.apply(v, 0).sum())(x)
    except RuntimeError as error:
        _raised.append(str(error))
assert len(_raised) == 2 and all("Cannot access data pointer" in t for t in _raised)
assert gradcheck(running_sum, (leaf, 0))
assert y.grad_fn.name().startswith("GeneratedBackwardFor_atlas_demo_running_sum")
for _dim in (0, -1):
    assert torch.equal(
        vmap(lambda v, d=_dim: running_sum(v, d))(batch), batch.cumsum(1)
    )
# sphinx_gallery_end_ignore

# %%
# For ``torch.func``, put a Function around the operator. ``Wrapped`` inherits ``setup_context``, ``backward`` and
# ``generate_vmap_rule`` from ``RunningSum``. The generated rule works now: it uses the operator's ``vmap`` rule (without one,
# a slow loop):


class Wrapped(RunningSum):
    @staticmethod
    def forward(x, dim):
        return running_sum(x, dim)

    @staticmethod
    def jvp(ctx, tangent, _):
        return Wrapped.apply(tangent, ctx.dim)  # not running_sum


print(jvp(lambda v: Wrapped.apply(v, 0), (x,), (tangent,))[1])

# sphinx_gallery_start_ignore
assert jvp(lambda v: Wrapped.apply(v, 0), (x,), (tangent,))[1].tolist() == [1, 0]
assert gradcheck(lambda v: Wrapped.apply(v, 0), leaf, check_forward_ad=True)
_wrapped = tabulate_transforms(
    {"w": lambda v: Wrapped.apply(v, 0)}, lambda v: v.cumsum(0)
)
assert set(_wrapped["w"]) == {"right"}


@torch.library.custom_op("atlas_demo::no_vmap_rule", mutates_args=())
def _no_vmap_rule(x: torch.Tensor, dim: int) -> torch.Tensor:
    _shapes.append(tuple(x.shape))
    return torch.from_numpy(np.cumsum(x.numpy(force=True), axis=dim))


class _Looped(RunningSum):
    @staticmethod
    def forward(x, dim):
        return _no_vmap_rule(x, dim)


_shapes = []
with warnings.catch_warnings():  # "There is a performance drop", from C++
    warnings.simplefilter("ignore")
    _by_rows = vmap(lambda v: _Looped.apply(v, 0))(batch)
assert torch.equal(_by_rows, batch.cumsum(1)) and _shapes == [(2,)] * 3


def _double(v):
    return Wrapped.apply(v, 0) * 2


_raised, _leaf = [], torch.ones(3, requires_grad=True)
try:
    torch.compile(_double, fullgraph=True, backend="eager")(_leaf)
except Exception as error:  # a class of PyTorch's own, in a private module
    _raised.append(str(error))
assert len(_raised) == 1 and "Unsupported custom jvp" in _raised[0]
with warnings.catch_warnings():  # Dynamo itself reads .grad of a tensor that is no leaf
    warnings.simplefilter("ignore")
    torch.compile(_double, backend="eager")(_leaf).sum().backward()
    assert _leaf.grad.tolist() == [6, 4, 2]
    _graphs = []

    def _count(module, inputs):
        _graphs.append(module)
        return module

    torch._dynamo.reset()
    torch.compile(_double, backend=_count)(_leaf)
    assert len(_graphs) > 1
    _graphs.clear()
    torch.compile(lambda v: running_sum(v, 0) * 2, backend=_count)(_leaf)
    assert len(_graphs) == 1
_operator = torch.compile(
    lambda v: running_sum(v, 0) * 2, fullgraph=True, backend="eager"
)
_leaf.grad = None
_operator(_leaf).sum().backward()
assert _leaf.grad.tolist() == [6, 4, 2]


def _speed(v):
    return jvp(lambda u: Wrapped.apply(u, 0), (v,), (torch.ones_like(v),))[1]


_fast, _in_213 = torch.compile(_speed, backend="eager"), "2.13." in torch.__version__
assert _speed(x).tolist() == [1, 2] and (not _in_213 or _fast(x).tolist() == [0, 0])
# sphinx_gallery_end_ignore

# %%
# In a training step that you compile, call the operator itself. If ``v`` requires grad, ``torch.compile(..., fullgraph=True)``
# refuses ``Wrapped.apply(v, 0) * 2``, since ``Wrapped`` has a ``jvp``: *Unsupported custom jvp*. Without ``fullgraph=True`` it
# becomes more than one graph, and its gradient is right. But a compiled ``jvp`` of ``Wrapped`` is silently 0 in PyTorch 2.13.

# %%
# In order to use an autograd.Function with functorch transforms
# --------------------------------------------------------------
# This message comes first, if your ``forward`` has ``ctx`` as an argument. The same Function works with ``loss.backward()``:


class OldSwish(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * torch.sigmoid(x)

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        sigma = torch.sigmoid(x)
        return gradient * sigma * (1 + x * (1 - sigma))


points = torch.tensor([0.0, 1.0, 2.0])
try:
    grad(lambda x: OldSwish.apply(x).sum())(points)
except RuntimeError as error:
    message = str(error)
    print("RuntimeError:", message)

# sphinx_gallery_start_ignore
assert message.startswith("In order to use an autograd.Function with functorch")
assert "it must override the setup_context staticmethod" in message
# sphinx_gallery_end_ignore

# %%
# Split ``forward`` in two. ``backward`` stays:


class Swish(OldSwish):
    @staticmethod
    def forward(x):
        return x * torch.sigmoid(x)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)


print(grad(lambda x: Swish.apply(x).sum())(points))

# sphinx_gallery_start_ignore
from torch.utils.checkpoint import checkpoint

_right = grad(lambda x: torch.nn.functional.silu(x).sum())(points)
assert torch.allclose(grad(lambda x: Swish.apply(x).sum())(points), _right)


def _says(call, *inputs):
    try:
        call(*inputs)
    except (RuntimeError, TypeError) as error:
        return str(error)
    return None


class _OnlyRule(OldSwish):
    generate_vmap_rule = True


class _Half(Swish):  # setup_context, and forward still with ctx
    @staticmethod
    def forward(ctx, x):
        return x * torch.sigmoid(x)


class _OtherHalf(torch.autograd.Function):  # forward without ctx, and no setup_context
    forward = Swish.forward


assert _says(vmap(_OnlyRule.apply), points) == message
assert _says(_Half.apply, points) == "missing a required argument: 'x'"
assert "takes 1 positional argument but 2 were given" in _says(_OtherHalf.apply, points)
_jacobian = torch.autograd.functional.jacobian(OldSwish.apply, points)
assert torch.allclose(_jacobian, torch.diag(_right))
_reentrant = lambda x: checkpoint(torch.exp, x, use_reentrant=True)  # noqa: E731
_other = grad(lambda x: checkpoint(torch.exp, x, use_reentrant=False).sum())
assert _says(grad(lambda x: _reentrant(x).sum()), points) == message
_jacobian = torch.autograd.functional.jacobian
assert "is incompatible with .grad()" in _says(_jacobian, _reentrant, points)
assert "don't yet support saved tensor hooks" in _says(_other, points)


class _Leaky(torch.autograd.Function):  # a number as input, a computed tensor as output
    @staticmethod
    def forward(x, slope):
        factor = torch.where(x > 1, 1.0, slope)
        return x * factor, factor

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.slope = inputs[1]
        ctx.save_for_backward(output[1])

    @staticmethod
    def backward(ctx, gradient, _):
        return gradient * ctx.saved_tensors[0], None


_slopes = grad(lambda x: _Leaky.apply(x, 0.1)[0].sum())(points)
assert torch.allclose(_slopes, torch.tensor([0.1, 0.1, 1.0]))


class _TwoOutputs(torch.autograd.Function):
    used = 1.0

    @staticmethod
    def forward(x):
        sigma = torch.sigmoid(x)
        return x * sigma, sigma

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs, output[1])

    @staticmethod
    def backward(ctx, gradient, of_sigma):
        x, sigma = ctx.saved_tensors
        slope = sigma * (1 - sigma)
        both = gradient * (sigma + x * slope)
        return both + _TwoOutputs.used * of_sigma * slope


def _twice(f):
    return grad(grad(lambda x: f(x).sum()))(torch.tensor(0.5))


_second = _twice(torch.nn.functional.silu)
for _TwoOutputs.used in (1.0, 0.0):
    _found = _twice(lambda x: _TwoOutputs.apply(x)[0])
    assert torch.allclose(_found, _second) == bool(_TwoOutputs.used)
# sphinx_gallery_end_ignore

# %%
# - Change both. Only ``setup_context`` raises *missing a required argument: 'x'*, only ``forward`` *takes 1 positional argument
#   but 2 were given*.
# - A number becomes an attribute: ``x, slope = inputs``, then ``ctx.slope = slope``. A tensor that ``forward`` computes for
#   ``backward`` must be a second output. For second derivatives, ``backward`` has to use :ref:`its gradient
#   <sphx_glr_gallery_functions_double_backward.py>`.
# - **The Function is not yours**, as in flash attention or mamba: use ``torch.autograd.functional.jacobian``, or
#   ``torch.autograd.grad`` for each sample. For ``checkpoint``: switch it off.
#
# The next messages are *You tried to vmap over Swish, but it does not have vmap support* and *You must implement the jvp
# function*: see above. Without a ``jvp``, take ``jacrev`` for ``jacfwd`` and ``jacrev(jacrev(f))`` for ``hessian``.

# %%
# What people get wrong
# ---------------------
# **A rule that mixes the examples.** PyTorch trusts your rule. But that of ``BatchedSum`` is wrong for a ``dim`` that counts
# from the end: -1 plus 1 is 0, the dimension of the batch.

by_vmap = vmap(lambda v: BatchedSum.apply(v, -1))(batch)
by_loop = torch.stack([BatchedSum.apply(example, -1) for example in batch])
print("vmap:", by_vmap.tolist())
print("loop:", by_loop.tolist())
assert not torch.equal(by_vmap, by_loop)

# sphinx_gallery_start_ignore
assert torch.equal(by_vmap, batch.cumsum(0)) and torch.equal(by_loop, batch.cumsum(1))


class _Mended(BatchedSum):
    @staticmethod
    def vmap(info, in_dims, x, dim):
        dim = dim if dim < 0 else dim + 1
        return BatchedSum.apply(x.movedim(in_dims[0], 0), dim), 0


_deep = torch.rand(2, 3, 4)
for _dim in (0, 1, -1, -2):
    for _batch_dim in (0, 1, 2):
        assert torch.allclose(
            vmap(lambda v, d=_dim: _Mended.apply(v, d), in_dims=_batch_dim)(_deep),
            vmap(lambda v, d=_dim: v.cumsum(d), in_dims=_batch_dim)(_deep),
        )
# sphinx_gallery_end_ignore

# %%
# The sum ran over the examples. Write ``dim if dim < 0 else dim + 1``. Compare your rule with a loop over the examples, for
# each kind of argument.
#
# **Forgetting save_for_forward.** In ``jvp``, tensors from ``save_for_backward`` are missing: ``ctx.saved_tensors`` is empty,
# and ``(result,) = ctx.saved_tensors`` raises *not enough values to unpack (expected 1, got 0)*.
#
# **Forward mode through a custom operator.** ``exp_operator`` has ``register_autograd`` and ``register_vmap``, but no
# ``register_jvp``. So its tangent is silently zero:

print("custom_op:", jvp(exp_operator, (x,), (tangent,))[1])
print("Function: ", jvp(Exp.apply, (x,), (tangent,))[1])

try:
    gradcheck(exp_operator, leaf, check_forward_ad=True)
except RuntimeError as error:
    message = str(error)
    print(message.split(",")[0])

# sphinx_gallery_start_ignore
assert "Jacobian computed with forward mode mismatch" in message


class _Unsaved(Exp):
    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(output)


_raised = []
try:
    jvp(_Unsaved.apply, (x,), (tangent,))
except ValueError as error:
    _raised.append(str(error))
assert _raised == ["not enough values to unpack (expected 1, got 0)"]
assert not jvp(exp_operator, (x,), (tangent,))[1].any()
assert gradcheck(exp_operator, leaf)
assert gradcheck(Exp.apply, leaf, check_forward_ad=True)
with torch.autograd.forward_ad.dual_level():
    _dual = torch.autograd.forward_ad.make_dual(x, tangent)
    _moved = torch.autograd.forward_ad.unpack_dual(exp_operator(_dual)).tangent
    assert _moved is None
assert not hasattr(exp_operator, "register_jvp")
assert exp_operator.register_autograd and exp_operator.register_vmap
_wrt = x.clone().requires_grad_()  # the same where the input requires grad
assert not jvp(exp_operator, (_wrt,), (tangent,))[1].any()
# sphinx_gallery_end_ignore

# %%
# By default, ``gradcheck`` passes, so use ``check_forward_ad=True``. For ``jvp`` and for ``torch.func.grad``, call the operator
# in the ``forward`` of a Function that has all rules, as ``Wrapped`` does.
#
# **Forward mode inside forward mode.** Each derivative of :math:`e^x` at 1 is 2.718. For the second one, ``jacfwd`` of
# ``jacfwd`` silently gives 0 (`pytorch#197867 <https://github.com/pytorch/pytorch/issues/197867>`__):

one = torch.tensor(1.0)
print("jacfwd(jacfwd):", jacfwd(jacfwd(Exp.apply))(one))
print("hessian:       ", hessian(Exp.apply)(one))


# sphinx_gallery_start_ignore
def _jvp_of_jvp(f):
    speed = torch.ones_like
    first = lambda v: jvp(f, (v,), (speed(v),))[1]  # noqa: E731
    return jvp(first, (one,), (one,))[1]


assert torch.allclose(_jvp_of_jvp(torch.exp), one.exp())
assert _jvp_of_jvp(Exp.apply) == jacfwd(jacfwd(Exp.apply))(one) == 0
assert jacfwd(hessian(Exp.apply))(one) == 0  # forward mode twice, with one reverse
for _second in (
    hessian(Exp.apply),
    grad(grad(Exp.apply)),
    grad(hessian(Exp.apply)),
    torch.func.jacrev(torch.func.jacrev(Exp.apply)),
):
    assert torch.allclose(_second(one), one.exp())
# sphinx_gallery_end_ignore

# %%
# Use forward mode once, as ``hessian`` does, or not at all: ``jacrev(jacrev)``.

# %%
# Exercise
# --------
# Write a Function ``Product`` for :math:`a \cdot b`, with ``backward``, ``jvp`` and a generated rule for ``vmap``. What does
# ``jvp`` get for an input that stands still? Test forward mode, too.
#
# .. solution::
#
# The product rule: :math:`t_a \cdot b + a \cdot t_b`. A float tensor that stands still has a tangent of zeros.


class Product(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(a, b):
        return a * b

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx, grad_output):
        a, b = ctx.saved_tensors
        return grad_output * b, grad_output * a

    @staticmethod
    def jvp(ctx, tangent_a, tangent_b):
        a, b = ctx.saved_tensors
        return tangent_a * b + a * tangent_b


# %%
# With 3 and 5, and the first input moving at speed 1, the product moves at speed 5.

a, b = torch.tensor(3.0), torch.tensor(5.0)
_, moved = jvp(lambda a: Product.apply(a, b), (a,), (torch.tensor(1.0),))
pair = [leaf, (leaf**2).detach().requires_grad_()]
passed = gradcheck(Product.apply, pair, check_forward_ad=True, check_batched_grad=True)

print(f"tangent: {moved.item()}   gradcheck: {passed}")
assert moved == 5 and passed

# sphinx_gallery_start_ignore
_tangents = []


class _Noted(Product):
    @staticmethod
    def jvp(ctx, tangent_a, tangent_b):
        _tangents.append(tangent_b)
        return Product.jvp(ctx, tangent_a, tangent_b)


jvp(lambda a: _Noted.apply(a, b), (a,), (torch.tensor(1.0),))
assert _tangents[0].item() == 0
assert _jvp_of_jvp(lambda v: Product.apply(v, v)) == 0  # wrong, right is 2
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_functions_gradcheck.py`, which tests a ``backward``.
# - :ref:`sphx_glr_gallery_differentiation_forward_mode.py`, what tangents are, and
#   :ref:`sphx_glr_gallery_differentiation_jacobian_and_hessian.py`, where ``vmap`` saves the loop.
# - In PyTorch's reference: `Extending torch.func with autograd.Function
#   <https://docs.pytorch.org/docs/stable/notes/extending.func.html>`__.
