r"""
Custom Function under torch.func: vmap and jvp
==============================================

.. in-short::

   With ``setup_context``, a Function works under ``torch.func.grad``. For ``vmap`` add the line ``generate_vmap_rule = True``,
   or a static ``vmap`` if ``forward`` leaves PyTorch; for ``jvp`` add a static ``jvp``. ``jacfwd`` and ``hessian`` need
   both. An operator from ``torch.library.custom_op`` stays one step in ``torch.compile``, but here forward mode through it
   gives a tangent of zeros, without an error.
"""

# %%
# vmap needs a rule
# -----------------
# The Function ``Exp`` has a ``forward`` without ``ctx`` and a ``setup_context``. That is enough for
# ``torch.func.grad``, as :ref:`the page about Exp <sphx_glr_gallery_functions_exp_function.py>` shows.

import textwrap

import numpy as np
import pandas as pd
import torch
from torch.autograd import gradcheck
from torch.func import grad, hessian, jacfwd, jacrev, jvp, vmap


class Exp(torch.autograd.Function):
    @staticmethod
    def forward(x):
        return torch.exp(x)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(output)

    @staticmethod
    def backward(ctx, grad_output):
        (result,) = ctx.saved_tensors
        return grad_output * result


# %%
# ``vmap`` needs more. Inside it, a tensor is one example, but the real tensor contains the whole batch. PyTorch does not
# guess which of the two your ``forward`` expects:


def message_of(call):
    try:
        call()
    except (RuntimeError, NotImplementedError) as error:
        return f"{type(error).__name__}: {error}"


batch = torch.tensor([[0.0, 1.0], [0.0, 2.0], [1.0, 3.0]])
message = message_of(lambda: vmap(Exp.apply)(batch))
print(textwrap.fill(message, 88))
assert "does not have vmap support" in message

# sphinx_gallery_start_ignore
assert torch.equal(grad(lambda v: Exp.apply(v).sum())(batch), batch.exp())
# sphinx_gallery_end_ignore

# %%
# generate_vmap_rule
# ------------------
# One line makes a rule: ``vmap`` transforms the operations in ``forward`` and ``backward``, as it does outside a Function.


class ExpVmap(Exp):
    generate_vmap_rule = True


def loss(example, factor):
    return (factor * ExpVmap.apply(example)).sum()


factors = torch.tensor([1.0, 2.0, 3.0])
print("values:   ", vmap(loss)(batch, factors))
print("gradients:", vmap(grad(loss))(batch, factors), sep="\n")

# sphinx_gallery_start_ignore
assert torch.allclose(vmap(loss)(batch, factors), factors * batch.exp().sum(dim=1))
_each = vmap(grad(loss))(batch, factors)
assert torch.allclose(_each, factors[:, None] * batch.exp())
# sphinx_gallery_end_ignore

# %%
# Each row of the gradients belongs to one example and its own factor: ``vmap`` of ``grad`` gives a gradient for each
# example, without a loop.

# %%
# jvp: the forward derivative
# ---------------------------
# ``backward`` is for reverse mode only. Forward mode computes how the output moves when the inputs move, and that rule is
# missing:

x, tangent = batch[0], torch.tensor([1.0, -1.0])
message = message_of(lambda: jvp(ExpVmap.apply, (x,), (tangent,)))
print(textwrap.fill(message, 88))
assert "must implement the jvp function" in message

# %%
# The static method ``jvp`` gets ``ctx`` and one tangent for each input, and returns the tangent of the output. What
# it reads has to be saved with ``save_for_forward``. Without that, ``ctx.saved_tensors`` is empty there.


class ExpBoth(ExpVmap):
    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(output)
        ctx.save_for_forward(output)

    @staticmethod
    def jvp(ctx, tangent):
        (result,) = ctx.saved_tensors
        return tangent * result


value, moved = jvp(ExpBoth.apply, (x,), (tangent,))
print("value:  ", value)
print("tangent:", moved)
print("hessian:", hessian(lambda v: ExpBoth.apply(v).sum())(x), sep="\n")

# sphinx_gallery_start_ignore
assert torch.allclose(value, x.exp()) and torch.allclose(moved, tangent * x.exp())
_hessian = hessian(lambda v: ExpBoth.apply(v).sum())(x)
assert torch.allclose(_hessian, torch.diag(x.exp()))


class _Unsaved(ExpBoth):
    setup_context = Exp.setup_context


try:
    jvp(_Unsaved.apply, (x,), (tangent,))
except ValueError as error:
    assert "expected 1, got 0" in str(error)
# sphinx_gallery_end_ignore

# %%
# ``hessian`` needs all three rules: it runs ``jvp`` over ``backward``, and ``vmap`` over that.

# %%
# A rule of your own: the static vmap
# -----------------------------------
# If ``forward`` leaves PyTorch, there is nothing inside that ``vmap`` could transform. Here NumPy computes a running
# sum along ``dim``:


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


message = message_of(lambda: vmap(lambda v: RunningSum.apply(v, 0))(batch))
print(message)
assert "Cannot access data pointer" in message

# %%
# The static method ``vmap`` gets the real tensor, with the batch in it. ``in_dims`` says which dimension is the
# batch, ``None`` for an argument without one. Return the output and the dimension of its batch. For the caller, a
# tensor has one dimension less, so its ``dim`` is ours minus 1.


class BatchedSum(RunningSum):
    generate_vmap_rule = False

    @staticmethod
    def vmap(info, in_dims, x, dim):
        x = x.movedim(in_dims[0], 0)
        return BatchedSum.apply(x, dim + 1), 0

    @staticmethod
    def jvp(ctx, tangent, _):
        return BatchedSum.apply(tangent, ctx.dim)


def running(v):
    return BatchedSum.apply(v, 0)


print("rows:   ", vmap(running)(batch).tolist())
print("columns:", vmap(running, in_dims=1)(batch).tolist())
print("jacfwd:", jacfwd(running)(torch.arange(3.0)), sep="\n")

# sphinx_gallery_start_ignore
assert torch.equal(vmap(running)(batch), batch.cumsum(1))
assert torch.equal(vmap(running, in_dims=1)(batch), batch.T.cumsum(1))
assert torch.equal(jacfwd(running)(torch.arange(3.0)), torch.ones(3, 3).tril())
# sphinx_gallery_end_ignore

# %%
# The running sum is linear, so its tangent is the running sum of the tangent. ``jacfwd`` uses both rules: ``vmap``
# over ``jvp``, one direction for each input.

# %%
# custom_op and register_autograd
# -------------------------------
# A Function belongs to autograd. ``torch.library.custom_op`` goes further and adds an *operator* to PyTorch: it has a
# name, a schema read from the type annotations, and rules that are registered one by one. ``torch.compile``
# and ``torch.export`` keep it as one step.


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
    return running_sum(x.movedim(in_dims[0], 0), dim + 1), 0


# %%
# The same ``backward`` and ``setup_context`` serve again. ``opcheck`` tests the registrations, and ``gradcheck`` the
# derivative.

x = torch.tensor([1.0, 2.0, 4.0], dtype=torch.float64, requires_grad=True)
y = running_sum(x, 0)
z = Exp.apply(x) * y

# graph: z -- A Function and an operator are one node each, named after the class and after the operator

checks = torch.library.opcheck(running_sum, (x, 0))
for name, outcome in checks.items():
    print(f"{name:<28} {outcome}")
print(f"{'gradcheck':<28} {gradcheck(running_sum, (x, 0))}")
print("without data:", running_sum(torch.empty(2, 3, device="meta"), 0).shape)

recorded = []


def keep(module, inputs):  # a backend that shows what torch.compile recorded
    recorded.extend(
        str(n.target) for n in module.graph.nodes if n.op == "call_function"
    )
    return module


compiled = torch.compile(lambda v: running_sum(v, 0) * 2, fullgraph=True, backend=keep)
print("compiled:", compiled(torch.ones(3)).tolist(), recorded)

# sphinx_gallery_start_ignore
assert set(checks.values()) == {"SUCCESS"} and gradcheck(running_sum, (x, 0))
assert recorded[0] == "atlas_demo.running_sum.default" and len(recorded) == 2


class _Module(torch.nn.Module):
    def forward(self, v):
        return running_sum(v, 0) * 2


_exported = torch.export.export(_Module(), (torch.ones(3),))
_steps = [n.target for n in _exported.graph.nodes if n.op == "call_function"]
assert _steps[0] is torch.ops.atlas_demo.running_sum.default and len(_steps) == 2
assert y.grad_fn.name().startswith("GeneratedBackwardFor_atlas_demo_running_sum")
# sphinx_gallery_end_ignore

# %%
# What works where
# ----------------
# Every combination, tried out. The results are compared with those of ``torch.exp`` and ``torch.cumsum``. ``Wrapped``
# is a Function whose ``forward`` calls the operator. It inherits the rest from ``RunningSum``, with
# ``generate_vmap_rule``, which works now: the operator has a rule of its own.


class Wrapped(RunningSum):
    @staticmethod
    def forward(x, dim):
        return running_sum(x, dim)

    @staticmethod
    def jvp(ctx, tangent, _):
        return running_sum(tangent, ctx.dim)


def square(f):
    return lambda v: (f(v) ** 2).sum()


def backward(f):
    leaf = batch[2].clone().requires_grad_()
    square(f)(leaf).backward()
    return leaf.grad


# %%
# The rows of the table are ``backward()`` and the transforms, each applied to a function ``f``.

rows = {
    "backward()": backward,
    "grad": lambda f: grad(square(f))(batch[2]),
    "vmap": lambda f: vmap(f)(batch),
    "vmap of grad": lambda f: vmap(grad(square(f)))(batch),
    "jacrev": lambda f: jacrev(f)(batch[2]),
    "jvp": lambda f: jvp(f, (batch[2],), (tangent,))[1],
    "jacfwd": lambda f: jacfwd(f)(batch[2]),
    "hessian": lambda f: hessian(square(f))(batch[2]),
}

# %%
# The columns are what was made on this page, each with PyTorch's own function beside it.

columns = {
    "Exp": (Exp.apply, torch.exp),
    "ExpVmap": (ExpVmap.apply, torch.exp),
    "ExpBoth": (ExpBoth.apply, torch.exp),
    "BatchedSum": (running, lambda v: v.cumsum(0)),
    "running_sum": (lambda v: running_sum(v, 0), lambda v: v.cumsum(0)),
    "Wrapped": (lambda v: Wrapped.apply(v, 0), lambda v: v.cumsum(0)),
}


def outcome(transform, f, reference):
    try:
        result = transform(f)
    except (RuntimeError, NotImplementedError):
        return "raises"
    return "right" if torch.allclose(result, transform(reference)) else "WRONG"


table = {n: [outcome(t, *both) for t in rows.values()] for n, both in columns.items()}
# sphinx_gallery_start_ignore
assert [" ".join(word[:2] for word in row) for row in table.values()] == [
    "ri ri ra ra ri ra ra ra",
    "ri ri ri ri ri ra ra ra",
    "ri ri ri ri ri ri ri ri",
    "ri ri ri ri ri ri ri ri",
    "ri ra ri ra ra WR WR ra",
    "ri ri ri ri ri ri ri ri",
]
# sphinx_gallery_end_ignore
pd.DataFrame(table, list(rows)).rename_axis(index=None, columns="transform")

# %%
# Each rule adds its transforms. The operator ``running_sum`` works with ``backward()`` and ``vmap``. In PyTorch 2.11
# and 2.13, ``torch.func.grad`` does not accept it. If you need both, put a Function around it, as in the last column.

# %%
# What people get wrong
# ---------------------
# **Forward mode through a custom operator.** The two entries "WRONG" in the table are the dangerous ones. There is no
# rule for tangents to register, and no error: the tangent is zero.

print("custom_op:  ", jvp(lambda v: running_sum(v, 0), (batch[2],), (tangent,))[1])
print("in Function:", jvp(lambda v: Wrapped.apply(v, 0), (batch[2],), (tangent,))[1])

message = message_of(lambda: gradcheck(running_sum, (x, 0), check_forward_ad=True))
print(textwrap.fill(message.split(",")[0], 88))
assert "Jacobian computed with forward mode mismatch" in message

# sphinx_gallery_start_ignore
assert not jvp(lambda v: running_sum(v, 0), (batch[2],), (tangent,))[1].any()
assert jvp(lambda v: Wrapped.apply(v, 0), (batch[2],), (tangent,))[1].tolist() == [1, 0]
assert gradcheck(lambda v: Wrapped.apply(v, 0), x, check_forward_ad=True)
# sphinx_gallery_end_ignore

# %%
# ``gradcheck`` tests forward mode only if it is asked to: with ``check_forward_ad=True``.
#
# **A vmap rule that mixes the examples.** PyTorch does not check your rule. The one above adds 1 to ``dim``. For
# ``dim=-1`` that gives 0, the dimension of the batch, and the sum runs over the examples:


def last(v):
    return BatchedSum.apply(v, -1)


by_vmap = vmap(last)(batch)
by_loop = torch.stack([last(example) for example in batch])
print("vmap:", by_vmap.tolist())
print("loop:", by_loop.tolist())
assert not torch.equal(by_vmap, by_loop)

# %%
# A negative ``dim`` counts from the end, where the batch adds nothing: pass it on unchanged, ``dim if dim < 0 else
# dim + 1``. Test each rule against a loop over the examples, with every kind of argument.
#
# **Two rules at once.** ``generate_vmap_rule`` and a static ``vmap`` exclude each other. A subclass that overrides
# one has to switch off the other, as ``BatchedSum`` does.


class TwoRules(BatchedSum):
    generate_vmap_rule = True


message = message_of(lambda: vmap(lambda v: TwoRules.apply(v, 0))(batch))
print(textwrap.fill(message.split(" Please")[0], 88))
assert "both generate_vmap_rule=True and an overridden vmap" in message

# sphinx_gallery_start_ignore


class _Mended(BatchedSum):
    @staticmethod
    def vmap(info, in_dims, x, dim):
        dim = dim if dim < 0 else dim + 1
        return BatchedSum.apply(x.movedim(in_dims[0], 0), dim), 0


for _dim in (0, -1):
    assert torch.equal(vmap(lambda v, d=_dim: _Mended.apply(v, d))(batch), by_loop)
# sphinx_gallery_end_ignore

# %%
# Exercise
# --------
# Write a Function ``Product`` for :math:`a \cdot b`, with ``backward``, ``jvp`` and a generated rule for ``vmap``.
# What does ``jvp`` get for an input that does not move? Test forward mode, too.
#
# .. solution::
#
# The product rule: :math:`t_a \cdot b + a \cdot t_b`. An input that does not move has a tangent of zeros.


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
pair = [x, (x**2).detach().requires_grad_()]
passed = gradcheck(Product.apply, pair, check_forward_ad=True, check_batched_grad=True)

print(f"tangent: {moved.item()}   gradcheck: {passed}")
assert moved == 5 and passed

# %%
# See also
# --------
# - Before: :ref:`sphx_glr_gallery_functions_double_backward.py`, derivatives of a backward.
# - :ref:`sphx_glr_gallery_functions_gradcheck.py`, the test for every derivative on this page.
# - Next: :ref:`sphx_glr_gallery_tensors_copy_table.py`, where the chapter on tensors begins.
# - :ref:`sphx_glr_gallery_differentiation_forward_mode.py`, what tangents are, and
#   :ref:`sphx_glr_gallery_differentiation_jacobian_and_hessian.py`, where ``vmap`` saves the loop.
# - In PyTorch's reference: `Extending torch.func with autograd.Function
#   <https://docs.pytorch.org/docs/stable/notes/extending.func.html>`__ and `torch.library
#   <https://docs.pytorch.org/docs/stable/library.html>`__.
