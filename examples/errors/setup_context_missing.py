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
try:
    # sphinx_gallery_end_ignore
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

    x = torch.tensor([0.0, 1.0, 2.0])
    grad(lambda x: OldSwish.apply(x).sum())(x)
# sphinx_gallery_start_ignore
except RuntimeError as error:
    message = str(error)
    print("RuntimeError:", message)
assert message.endswith("notes/extending.func.html")


def _says(call, *inputs):
    try:
        call(*inputs)
    except (RuntimeError, NotImplementedError, TypeError) as error:
        return str(error)
    return None


class _OnlyRule(OldSwish):
    generate_vmap_rule = True


assert _says(torch.func.vmap(_OnlyRule.apply), x) == message
assert _says(grad(lambda x: _OnlyRule.apply(x).sum()), x) == message
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
from torch.utils.checkpoint import checkpoint

_right = grad(lambda x: torch.nn.functional.silu(x).sum())(x)
assert torch.allclose(grad(lambda x: Swish.apply(x).sum())(x), _right)


class _Half(Swish):  # setup_context, and forward still with ctx
    @staticmethod
    def forward(ctx, x):
        return x * torch.sigmoid(x)


class _OtherHalf(torch.autograd.Function):  # forward without ctx, and no setup_context
    forward = Swish.forward


assert _says(_Half.apply, x) == "missing a required argument: 'x'"
assert "takes 1 positional argument but 2 were given" in _says(_OtherHalf.apply, x)
_jacobian = torch.autograd.functional.jacobian(OldSwish.apply, x)
assert torch.allclose(_jacobian, torch.diag(_right))
for _reentrant, _said in ((True, message), (False, "don't yet support saved tensor")):
    _call = grad(
        lambda x, r=_reentrant: checkpoint(torch.exp, x, use_reentrant=r).sum()
    )
    assert _said in _says(_call, x)


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


_slopes = grad(lambda x: _Leaky.apply(x, 0.1)[0].sum())(x)
assert torch.allclose(_slopes, torch.tensor([0.1, 0.1, 1.0]))
# sphinx_gallery_end_ignore

# %%
# Change both. If ``forward`` keeps ``ctx``, the call raises ``missing a required argument: 'x'``. If there is no
# ``setup_context``, it raises ``takes 1 positional argument but 2 were given``.
#
# ``save_for_backward`` takes tensors only. Keep a number as an attribute: ``x, slope = inputs``, then ``ctx.slope = slope``. If
# ``backward`` needs a tensor that ``forward`` computes, ``forward`` must return it, as a second output.
#
# **The Function is not yours**, as in flash attention or mamba? Outside of ``torch.func`` it works: use
# ``torch.autograd.functional.jacobian``, or ``torch.autograd.grad`` for each sample. ``checkpoint`` with ``use_reentrant=True``
# is such a Function, too. With ``False`` it raises a different message under ``grad``.
#
# Why
# ---
# A transform gives your function tensors of its own kind, which wrap the real ones. Under ``grad``, PyTorch runs ``forward`` on
# the real tensors, and shows the wrapped ones to ``setup_context``, so that a derivative of what you save can be taken again.
#
# ``setup_context`` is enough for ``grad``. ``vmap`` and forward mode need one rule each.
#
# .. how-measured:: This code tries seven transforms with four versions of the Function, and compares the results with silu.

from torch.func import jacfwd, jacrev, jvp, vmap


class WithRule(Swish):
    generate_vmap_rule = True


class WithBoth(WithRule):
    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    jvp = Swish.backward


def gradient_by_backward(f):
    leaf = x.clone().requires_grad_()
    f(leaf).sum().backward()
    return leaf.grad


transforms = {
    "backward()": gradient_by_backward,
    "grad": lambda f: grad(lambda x: f(x).sum())(x),
    "jacrev": lambda f: jacrev(f)(x),
    "vmap": lambda f: vmap(f)(x),
    "vmap(grad)": lambda f: vmap(grad(f))(x),
    "jvp": lambda f: jvp(f, (x,), (x,))[1],
    "jacfwd": lambda f: jacfwd(f)(x),
}
versions = {"forward(ctx, x)": OldSwish, "setup_context": Swish}
versions |= {"+ vmap rule": WithRule, "+ jvp": WithBoth}


def is_right(transform, function):
    try:
        result = transform(function.apply)
    except (RuntimeError, NotImplementedError):
        return False
    return torch.allclose(result, transform(torch.nn.functional.silu))


# %%
# What each version can do:

import matplotlib.pyplot as plt

# figure: A table. forward(ctx, x) works in backward() only. setup_context adds grad and jacrev, a rule vmap, jvp the rest.
fig, ax = plt.subplots(figsize=(7, 2), layout="constrained")
for i, function in enumerate(versions.values()):
    for j, transform in enumerate(transforms.values()):
        works = is_right(transform, function)
        ax.barh(i, 0.94, left=j - 0.47, color="#047857" if works else "#c2410c")
        word = "works" if works else "raises"
        ax.text(j, i, word, color="white", ha="center", va="center", fontsize=8)
ax.set_xticks(range(len(transforms)), transforms)
ax.set_yticks(range(len(versions)), versions)
ax.invert_yaxis()
ax.set_title("What each version of the Function can do")

# sphinx_gallery_start_ignore
_rows = [[is_right(t, f) for t in transforms.values()] for f in versions.values()]
_wanted = ["TFFFFFF", "TTTFFFF", "TTTTTFF", "TTTTTTT"]
assert ["".join("FT"[works] for works in row) for row in _rows] == _wanted
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
# sphinx_gallery_end_ignore

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
# If they use NumPy or a kernel, write a static method ``vmap`` instead.
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
_hessian = torch.func.hessian(lambda x: BatchedSwish.apply(x).sum())
assert raised == [_says(_hessian, x)]
_second = jacrev(jacrev(lambda x: BatchedSwish.apply(x).sum()))(x)
assert torch.allclose(
    _second, torch.func.hessian(lambda x: torch.nn.functional.silu(x).sum())(x)
)
# sphinx_gallery_end_ignore

# %%
# Instead of ``jacfwd`` use ``jacrev``, and instead of ``hessian`` use ``jacrev(jacrev(f))``: both need no ``jvp``.
#
# See also
# --------
# - :ref:`sphx_glr_gallery_functions_functions_and_transforms.py`: all rules, with code for NumPy and for ``jvp``.
# - :ref:`sphx_glr_gallery_errors_legacy_function.py`: an even older form of a Function.
# - :ref:`sphx_glr_gallery_errors_vmap_item.py`: what else ``vmap`` refuses.
# - In PyTorch's reference: `Extending torch.func with autograd.Function
#   <https://docs.pytorch.org/docs/stable/notes/extending.func.html>`__.
