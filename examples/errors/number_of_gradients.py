r"""
returned an incorrect number of gradients (expected 2, got 1)
=============================================================

.. index::
   ! single: None in the return value of a custom backward
   ! single: backward of a custom Function without a return statement
   ! single: gradient different than None at position 2

.. in-short::

   ``backward`` of your Function returned one value, and ``forward`` has two arguments. Return one value for each argument, in
   the same order: ``None`` for a number, a flag or anything else that has no gradient.

   .. code-block:: diff

      - return gradient * ctx.scale * y
      + return gradient * ctx.scale * y, None

   **Not this:** ``None`` for a tensor that you want to train. The message is gone, and the tensor is never updated.
"""

# %%
# The code that raises it
# -----------------------

import torch
from torch.autograd import Function

# sphinx_gallery_start_ignore
raised = []
try:
    # sphinx_gallery_end_ignore
    class Exp(Function):
        @staticmethod
        def forward(x, scale):
            return torch.exp(scale * x)

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.scale = inputs[1]
            ctx.save_for_backward(output)

        @staticmethod
        def backward(ctx, gradient):
            (y,) = ctx.saved_tensors
            return gradient * ctx.scale * y

    x = torch.tensor(1.0, requires_grad=True)
    Exp.apply(x, 0.5).backward()
# sphinx_gallery_start_ignore
except RuntimeError as error:
    raised.append(str(error))
    print("RuntimeError:", error)
_words = "returned an incorrect number of gradients (expected 2, got 1)"
assert raised == [f"function ExpBackward {_words}"]


def _message(call):
    try:
        call()
    except RuntimeError as error:
        return str(error)
    return ""


class _OldExp(Function):
    @staticmethod
    def forward(ctx, x, scale=0.5):
        y = torch.exp(scale * x)
        ctx.save_for_backward(y)
        ctx.scale = scale
        return y

    backward = Exp.backward


class _DefaultExp(Exp):
    @staticmethod
    def forward(x, scale=0.5):
        return torch.exp(scale * x)


assert _message(_OldExp.apply(x, 0.5).backward).endswith(_words)
assert not _message(_OldExp.apply(x).backward)  # here a default does not count
assert _message(_DefaultExp.apply(x).backward).endswith(_words)


class _ListExp(Exp):
    @staticmethod
    def forward(x, scales):
        return torch.exp(x * sum(scales))

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.scale = sum(inputs[1])
        ctx.save_for_backward(output)


assert _message(_ListExp.apply(x, [0.2, 0.3]).backward).endswith(_words)


@torch.library.custom_op("atlas_number_of_gradients::scale", mutates_args=())
def _scale(x: torch.Tensor, factor: float) -> torch.Tensor:
    return x * factor


_scale.register_autograd(lambda ctx, gradient: gradient)
assert "returned an incorrect number of gradients" in _message(_scale(x, 2.0).backward)
_scale.register_autograd(lambda ctx, gradient: (gradient, None))
assert not _message(_scale(x, 2.0).backward)
x.grad = None
# sphinx_gallery_end_ignore

# %%
# - ``ExpBackward``: the name of your class, here ``Exp``, with *Backward* appended.
# - ``expected 2``: the arguments of ``forward``. Each one counts, also a number, a flag, or one that has its default value. A
#   list counts as one.
# - ``got 1``: the values that ``backward`` returned.
#
# With the older form, ``forward(ctx, x, scale)`` without ``setup_context``, the message is the same. There ``ctx`` does not
# count, nor does a default that you do not pass. ``register_autograd`` of a ``torch.library.custom_op`` wants one value for
# each argument, too.
#
# Why
# ---
# Autograd matches by position: the first value belongs to the first argument, the second to the second. It cannot know which
# one you left out.
#
# .. how-measured:: The function draw_pairs() draws each argument with the value that belongs to it.

import matplotlib.pyplot as plt


def draw_pairs(pairs):
    _, ax = plt.subplots(figsize=(7, 2), layout="constrained")
    ax.set_title("One value for each argument, in the same order")
    ax.set_axis_off()
    ax.axis((0, 10, 0, 2))
    ax.text(0, 1.7, "forward takes")
    ax.text(0, 0.2, "backward returns")
    for middle, (argument, value) in pairs.items():
        style = {"family": "monospace", "ha": "center"}
        ax.text(middle, 1.7, argument, color="#2563eb", **style)
        ax.text(middle, 0.2, value, color="#c2410c", **style)
        ends = {"xy": (middle, 0.55), "xytext": (middle, 1.6)}
        ax.annotate("", **ends, arrowprops={"arrowstyle": "->", "color": "#64748b"})


# %%
# For ``Exp``:

draw_pairs({4.6: ("x", "gradient * ctx.scale * y"), 8.5: ("scale", "None")})

# figure: Above, the arguments of forward: x and scale. Below, the values that backward returns: the gradient under x,
#   None under scale. An arrow leads down from each argument to its value.

# %%
# What happens with other return values, for ``forward(x, flag)`` with the gradient ``dx``:


def attempt(returned):
    class Double(Function):
        @staticmethod
        def forward(x, flag):
            return 2 * x

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

        @staticmethod
        def backward(ctx, gradient):
            return returned(2 * gradient)

    try:
        return f"x.grad = {torch.autograd.grad(Double.apply(x, True), x)[0]:g}"
    except RuntimeError as error:
        return str(error).partition("returned ")[2].partition(", but")[0]


attempts = {
    "dx": lambda dx: dx,
    "dx, None": lambda dx: (dx, None),
    "dx, None, None": lambda dx: (dx, None, None),
    "dx, None, dx": lambda dx: (dx, None, dx),
    "None, dx": lambda dx: (None, dx),
    "[dx, None]": lambda dx: [dx, None],
}
for values, returned in attempts.items():
    print(f"{values:<15} {attempt(returned)}")

# sphinx_gallery_start_ignore
_came = {values: attempt(returned) for values, returned in attempts.items()}
assert _came["dx, None"] == _came["dx, None, None"] == "x.grad = 2"
assert "(expected 2, got 1)" in _came["dx"] and "got 3" in _came["dx, None, dx"]
assert _came["None, dx"] == "a gradient different than None at position 2"
assert attempt(lambda dx: (dx, 0)) == "a gradient different than None at position 2"
assert "(expected 2, got 1)" in _came["[dx, None]"]
assert "got 1" in attempt(lambda dx: None) and "got 0" in attempt(lambda dx: ())
assert attempt(lambda dx: (dx, *[None] * 9)) == "x.grad = 2"
# sphinx_gallery_end_ignore

# %%
# Surplus values are accepted if they are ``None``. A gradient in the place of the flag raises another message. And a list in
# square brackets counts as one value: return a tuple.
#
# The fix
# -------
# Return ``None`` in the place of each argument that has no gradient.


class FixedExp(Exp):
    @staticmethod
    def backward(ctx, gradient):
        (y,) = ctx.saved_tensors
        return gradient * ctx.scale * y, None


FixedExp.apply(x, 0.5).backward()
print("x.grad:", x.grad)

# sphinx_gallery_start_ignore
assert torch.allclose(x.grad, 0.5 * torch.exp(torch.tensor(0.5)))
_at = x.detach()
assert torch.func.grad(lambda x: FixedExp.apply(x, 0.5))(_at) == x.grad
# sphinx_gallery_end_ignore

# %%
# If the argument is a tensor to be trained, its place needs its gradient. ``gradcheck`` compares both gradients with numerical
# ones.

from torch.autograd import gradcheck


class TrainedExp(Exp):
    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs, output)

    @staticmethod
    def backward(ctx, gradient):
        x, scale, y = ctx.saved_tensors
        return gradient * scale * y, gradient * x * y


inputs = [torch.tensor(v, dtype=torch.float64, requires_grad=True) for v in (1.0, 0.5)]
print("gradcheck:", gradcheck(TrainedExp.apply, inputs))

# sphinx_gallery_start_ignore
assert gradcheck(TrainedExp.apply, inputs)
# sphinx_gallery_end_ignore

# %%
# What not to do
# --------------
# **Return** ``None`` **for a tensor to be trained.** To autograd this means that the tensor has no gradient. Training goes on
# and does not change ``scale``:

scale = torch.tensor(0.5, requires_grad=True)
optimizer = torch.optim.SGD([scale], lr=0.1)
for _ in range(3):
    optimizer.zero_grad()
    FixedExp.apply(x, scale).backward()
    optimizer.step()
print("scale.grad:", scale.grad, "  scale:", scale)

# sphinx_gallery_start_ignore
assert scale.grad is None and scale == 0.5
# sphinx_gallery_end_ignore

# %%
# ``gradcheck`` sees it:

# sphinx_gallery_start_ignore
raised = []
try:
    # sphinx_gallery_end_ignore
    gradcheck(FixedExp.apply, inputs)
# sphinx_gallery_start_ignore
except RuntimeError as error:
    raised.append(str(error))
    print("GradcheckError:", str(error).partition(",")[0] + ", ...")
assert len(raised) == 1
assert raised[0].startswith("Jacobian mismatch for output 0 with respect to input 1,")
# sphinx_gallery_end_ignore

# %%
# **Forget** ``return``. Python then returns one ``None``. With one argument that is the right number: nothing is raised, and
# the gradient is missing.


class Forgotten(Function):
    @staticmethod
    def forward(x):
        return 2 * x

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, gradient):
        2 * gradient


x.grad = None
Forgotten.apply(x).backward()
print("x.grad:", x.grad)

# sphinx_gallery_start_ignore
assert x.grad is None
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_functions_change_the_gradient.py`: what backward may return, and where ``None`` belongs.
# - :ref:`sphx_glr_gallery_functions_gradcheck.py`: how the check works.
# - :ref:`sphx_glr_gallery_errors_invalid_gradient.py`: the right number of gradients, one of the wrong shape.
# - In PyTorch's reference: `Extending torch.autograd
#   <https://docs.pytorch.org/docs/stable/notes/extending.html#extending-torch-autograd>`__.
