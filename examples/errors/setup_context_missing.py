r"""
In order to use an autograd.Function with functorch transforms
==============================================================

.. index::
   ! single: it must override the setup_context staticmethod
   ! single: You tried to vmap over my Function, but it does not have vmap support
   ! single: You must implement the jvp function for custom autograd.Function
   ! single: vmap over flash attention or mamba

.. in-short::

   The ``forward`` of a custom Function has ``ctx`` as its first argument. For ``torch.func``, leave ``ctx`` out and fill it in
   ``setup_context``.

   .. code-block:: diff

      - def forward(ctx, x):
      -     ctx.save_for_backward(x)
      + def forward(x):
            return x * torch.sigmoid(x)
      +
      + @staticmethod
      + def setup_context(ctx, inputs, output):
      +     ctx.save_for_backward(*inputs)

   **Not this:** ``generate_vmap_rule = True`` and no ``setup_context``. It raises the same message.
"""

# %%
# The code that raises it
# -----------------------

import torch
from torch.func import grad

# sphinx_gallery_start_ignore
# isort: split
import matplotlib.pyplot as plt
from torch.func import jacfwd, jacrev, jvp, vmap
from torch.utils.checkpoint import checkpoint

raised = []
try:
    # sphinx_gallery_end_ignore
    class Swish(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * torch.sigmoid(x)

        @staticmethod
        def backward(ctx, gradient):
            (x,) = ctx.saved_tensors
            sigma = torch.sigmoid(x)
            return gradient * sigma * (1 + x * (1 - sigma))

    x = torch.tensor([0.0, 1.0, 2.0])
    grad(lambda x: Swish.apply(x).sum())(x)
# sphinx_gallery_start_ignore
except RuntimeError as error:
    raised.append(str(error))
    print("RuntimeError:", error)
OldSwish = Swish


def says(call):
    try:
        call()
    except (RuntimeError, NotImplementedError, TypeError) as error:
        return str(error)
    return None


class _OnlyRule(OldSwish):
    generate_vmap_rule = True


assert len(raised) == 1 and raised[0].endswith("notes/extending.func.html")
assert says(lambda: vmap(_OnlyRule.apply)(x)) == raised[0]
assert says(lambda: grad(lambda x: _OnlyRule.apply(x).sum())(x)) == raised[0]
# sphinx_gallery_end_ignore

# %%
# The same Function works with ``loss.backward()``. It fails inside of ``grad``, ``vmap``, ``jvp``, ``jacrev`` and other
# transforms of ``torch.func``.
#
# The fix
# -------
# Split ``forward`` in two. ``setup_context`` gets ``ctx``, all inputs as a tuple, and the output. ``backward`` stays.


class Swish(torch.autograd.Function):
    @staticmethod
    def forward(x):
        return x * torch.sigmoid(x)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        sigma = torch.sigmoid(x)
        return gradient * sigma * (1 + x * (1 - sigma))


print(grad(lambda x: Swish.apply(x).sum())(x))

# sphinx_gallery_start_ignore
_silu = torch.nn.functional.silu
_right = grad(lambda x: _silu(x).sum())(x)
assert torch.allclose(grad(lambda x: Swish.apply(x).sum())(x), _right)


class _Half(Swish):  # setup_context, and forward still with ctx
    @staticmethod
    def forward(ctx, x):
        return x * torch.sigmoid(x)


class _OtherHalf(torch.autograd.Function):  # forward without ctx, and no setup_context
    @staticmethod
    def forward(x):
        return x * torch.sigmoid(x)


assert says(lambda: _Half.apply(x)) == "missing a required argument: 'x'"
assert "takes 1 positional argument but 2 were given" in says(
    lambda: _OtherHalf.apply(x)
)
_jacobian = torch.autograd.functional.jacobian(OldSwish.apply, x)
assert torch.allclose(_jacobian, torch.diag(_right))
_jacobian = torch.autograd.functional.jacobian(OldSwish.apply, x, vectorize=True)
assert torch.allclose(_jacobian, torch.diag(_right))


def _checkpointed(x):
    return checkpoint(torch.exp, x, use_reentrant=True).sum()


assert says(lambda: grad(_checkpointed)(x)) == raised[0]
assert "don't yet support saved tensor hooks" in says(
    lambda: grad(lambda x: checkpoint(torch.exp, x, use_reentrant=False).sum())(x)
)


class _Leaky(torch.autograd.Function):  # a number as input, a computed tensor as output
    @staticmethod
    def forward(x, slope):
        factor = torch.where(x > 1, 1.0, slope)
        return x * factor, factor

    @staticmethod
    def setup_context(ctx, inputs, output):
        _, slope = inputs
        ctx.slope = slope
        ctx.save_for_backward(output[1])
        ctx.mark_non_differentiable(output[1])

    @staticmethod
    def backward(ctx, gradient, _):
        assert ctx.slope == 0.1
        return gradient * ctx.saved_tensors[0], None


class _SavesAll(_Leaky):
    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)


_slopes = grad(lambda x: _Leaky.apply(x, 0.1)[0].sum())(x)
assert torch.allclose(_slopes, torch.tensor([0.1, 0.1, 1.0]))
assert "can only save variables, but argument 1 is of type float" in says(
    lambda: grad(lambda x: _SavesAll.apply(x, 0.1)[0].sum())(x)
)
# sphinx_gallery_end_ignore

# %%
# Change both. If ``forward`` keeps ``ctx``, the call raises ``missing a required argument: 'x'``. If there is no
# ``setup_context``, it raises ``takes 1 positional argument but 2 were given``.
#
# ``save_for_backward`` takes tensors only. Keep a number as an attribute: ``x, slope = inputs``, then ``ctx.slope = slope``. If
# ``backward`` needs a tensor that ``forward`` computes, ``forward`` must return it, as a second output.
#
# **The Function is not yours**, as in flash attention or mamba? Outside of ``torch.func`` it works: take
# ``torch.autograd.functional.jacobian``, or ``torch.autograd.grad`` for each sample. ``checkpoint`` with ``use_reentrant=True``
# is such a Function, too. With ``False`` it raises another message here: ``grad`` and ``checkpoint`` do not go together.
#
# Why
# ---
# A transform gives your function tensors of its own kind, which wrap the real ones. Under ``grad``, PyTorch runs ``forward`` on
# the real tensors, and shows the wrapped ones to ``setup_context``, so that a derivative of what you save can be taken again.
# One method that does both jobs can get one kind of tensor only.
#
# ``setup_context`` is enough for ``grad``. ``vmap`` and forward mode need one rule each:


# sphinx_gallery_start_ignore
_wrapped = []


class _Watched(Swish):
    @staticmethod
    def forward(x):
        _wrapped.append(torch._C._functorch.is_gradtrackingtensor(x))
        return Swish.forward(x)

    @staticmethod
    def setup_context(ctx, inputs, output):
        _wrapped.append(torch._C._functorch.is_gradtrackingtensor(inputs[0]))
        Swish.setup_context(ctx, inputs, output)


grad(lambda x: _Watched.apply(x).sum())(x)
assert _wrapped[0] is False and _wrapped[-1] is True


class _WithRule(Swish):
    generate_vmap_rule = True


class _WithBoth(_WithRule):
    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    jvp = Swish.backward


def _backward(f):
    leaf = x.clone().requires_grad_()
    f(leaf).sum().backward()
    return leaf.grad


_transforms = {
    "backward()": _backward,
    "grad": lambda f: grad(lambda x: f(x).sum())(x),
    "jacrev": lambda f: jacrev(f)(x),
    "vmap": lambda f: vmap(f)(x),
    "vmap(grad)": lambda f: vmap(grad(f))(x),
    "jvp": lambda f: jvp(f, (x,), (x,))[1],
    "jacfwd": lambda f: jacfwd(f)(x),
}
_versions = {
    "forward(ctx, x)": OldSwish,
    "setup_context": Swish,
    "+ vmap rule": _WithRule,
    "+ jvp": _WithBoth,
}


def works():
    """For each version and each transform: is the result that of silu?"""
    table = []
    for function in _versions.values():
        row = []
        for transform in _transforms.values():
            if says(lambda t=transform, f=function: t(f.apply)) is not None:
                row.append(False)
                continue
            assert torch.allclose(transform(function.apply), transform(_silu))
            row.append(True)
        table.append(row)
    return table


def draw(table):
    _, ax = plt.subplots(figsize=(7, 2), layout="constrained")
    for i, row in enumerate(table):
        for j, fine in enumerate(row):
            color = "#047857" if fine else "#c2410c"
            ax.barh(i, 0.94, left=j - 0.47, height=0.86, color=color)
            word = "works" if fine else "raises"
            ax.text(j, i, word, color="white", ha="center", va="center", fontsize=8)
    ax.set_xticks(range(len(_transforms)), _transforms)
    ax.set_yticks(range(len(_versions)), _versions)
    ax.invert_yaxis()
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    ax.set_title("What each version of the Function can do")


assert ["".join("FT"[fine] for fine in row) for row in works()] == [
    "TFFFFFF",
    "TTTFFFF",
    "TTTTTFF",
    "TTTTTTT",
]
# sphinx_gallery_end_ignore
# figure: A table. forward(ctx, x) works in backward() only. setup_context adds grad and jacrev, a rule vmap, jvp the rest.
draw(works())

# %%
# The next two messages
# ---------------------
# **vmap** has to know what your code does with a batch:

from torch.func import vmap

# sphinx_gallery_start_ignore
raised = []
try:
    # sphinx_gallery_end_ignore
    vmap(Swish.apply)(x)
# sphinx_gallery_start_ignore
except RuntimeError as error:
    raised.append(str(error))
    print("RuntimeError:", error)
assert len(raised) == 1
assert "You tried to vmap over Swish, but it does not have vmap support." in raised[0]
# sphinx_gallery_end_ignore

# %%
# If ``forward`` and ``backward`` are made of operations that ``vmap`` can run, one line is enough:


class BatchedSwish(Swish):
    generate_vmap_rule = True


print(vmap(grad(BatchedSwish.apply))(x))

# sphinx_gallery_start_ignore
assert torch.allclose(vmap(grad(BatchedSwish.apply))(x), _right)
# sphinx_gallery_end_ignore

# %%
# If they use NumPy or a kernel of your own, write a static method ``vmap`` instead.
#
# **Forward mode** (``jvp``, and inside of ``jacfwd`` and ``hessian``) needs a static method ``jvp``:

from torch.func import jvp

# sphinx_gallery_start_ignore
raised = []
try:
    # sphinx_gallery_end_ignore
    jvp(BatchedSwish.apply, (x,), (torch.ones(3),))
# sphinx_gallery_start_ignore
except NotImplementedError as error:
    raised.append(str(error))
    print("NotImplementedError:", error)
assert len(raised) == 1
assert says(lambda: jacfwd(BatchedSwish.apply)(x)) == raised[0]
_hessian = torch.func.hessian(lambda x: BatchedSwish.apply(x).sum())
assert says(lambda: _hessian(x)) == raised[0]
_second = jacrev(jacrev(lambda x: BatchedSwish.apply(x).sum()))(x)
assert torch.allclose(_second, torch.func.hessian(lambda x: _silu(x).sum())(x))
# sphinx_gallery_end_ignore

# %%
# In place of ``jacfwd`` you can take ``jacrev``, and in place of ``hessian`` ``jacrev(jacrev(f))``: both need no ``jvp``.
#
# See also
# --------
# - :ref:`sphx_glr_gallery_functions_functions_and_transforms.py`: all rules, with code for NumPy and for ``jvp``.
# - :ref:`sphx_glr_gallery_errors_legacy_function.py`: an even older form of a Function.
# - :ref:`sphx_glr_gallery_errors_vmap_item.py`: what else ``vmap`` refuses.
# - In PyTorch's reference: `Extending torch.func with autograd.Function
#   <https://docs.pytorch.org/docs/stable/notes/extending.func.html>`__.
