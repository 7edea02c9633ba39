r"""
Legacy autograd function with non-static forward method is deprecated
=====================================================================

.. index::
   ! single: custom Function from an old repository no longer runs
   ! single: calling an instance of torch.autograd.Function
   ! single: Function should not be instantiated

An object of an autograd ``Function`` was made and called, as code for early versions of PyTorch does. The message
speaks of a static ``forward``, but what raises it is the call.
"""

# %%
# The shortest code that raises it
# --------------------------------

import warnings

import torch
from torch.autograd import Function


class Double(Function):
    def forward(self, x):
        return 2 * x

    def backward(self, gradient):
        return 2 * gradient


x = torch.tensor(3.0, requires_grad=True)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    try:
        Double()(x)
    except RuntimeError as error:
        message = str(error)
        print("RuntimeError:", message)
        assert message.startswith("Legacy autograd function with non-static forward")

# %%
# Before it comes a warning, from the first pair of parentheses, which makes the object.

warning = str(caught[0].message)
print(f"{caught[0].category.__name__}: ... {warning[warning.index('should not') :]}")

# sphinx_gallery_start_ignore
assert len(caught) == 1 and "invoke them on the class itself" in warning
# sphinx_gallery_end_ignore

# %%
# Earlier versions only warned, in the same words and with *and will be removed in 1.3* added.

# %%
# Why
# ---
# Code in the old style makes an object, calls it, and keeps on ``self`` what backward needs. Today the class holds
# the formula, and each ``apply`` makes a new node, which ``forward`` and ``backward`` get as ``ctx``. An object of
# the class has no part in this.


class Reverse(Function):
    @staticmethod
    def forward(ctx, x, strength):
        ctx.strength = strength
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        return -ctx.strength * gradient, None


y = Reverse.apply(x, 1.0)
z = Reverse.apply(y, 0.5)

# graph: z -- Two calls of apply made two nodes, each with a strength of its own

print(z.grad_fn.name(), z.grad_fn.strength)
print(y.grad_fn.name(), y.grad_fn.strength)

# sphinx_gallery_start_ignore
assert z.grad_fn.strength == 0.5 and y.grad_fn.strength == 1.0
assert z.grad_fn is not y.grad_fn and z.grad_fn.next_functions[0][0] is y.grad_fn
# sphinx_gallery_end_ignore

# %%
# So the decorator ``@staticmethod`` alone does not help: the call decides. ``Double`` stands above without it,
# ``Reverse`` with it.


def outcome(call):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            y = call()
            return y.grad_fn.name()
        except RuntimeError as error:
            return f"RuntimeError: {str(error)[:24]} ..."


calls = {
    "Double()(x)": lambda: Double()(x),
    "Reverse()(x, 1.0)": lambda: Reverse()(x, 1.0),
    "Double.apply(x)": lambda: Double.apply(x),
    "Reverse.apply(x, 1.0)": lambda: Reverse.apply(x, 1.0),
}
for name, call in calls.items():
    print(f"{name:<22} {outcome(call)}")

# sphinx_gallery_start_ignore
refused = f"RuntimeError: {message[:24]} ..."
assert [outcome(c) for c in calls.values()] == [
    refused,
    refused,
    "DoubleBackward",
    "ReverseBackward",
]
# sphinx_gallery_end_ignore

# %%
# The fix
# -------
# Write both methods as static methods with ``ctx`` in place of ``self``, and call ``apply`` on the class. What the
# old code gave to the constructor, as in ``Reverse(0.5)(x)``, becomes an argument of ``apply``. Backward then returns
# one value more, ``None``, for each such argument. ``Reverse`` above is written in this way.

z.backward()
print("x.grad =", x.grad.item())
assert x.grad == 0.5

# %%
# Both nodes turn the sign, and one of them halves: :math:`(-1) \cdot (-0.5) = 0.5`. Old modules often kept the object
# as an attribute, to call it in their ``forward``. Let them keep its settings instead.


class ReverseLayer(torch.nn.Module):
    def __init__(self, strength):
        super().__init__()
        self.strength = strength

    def forward(self, x):
        return Reverse.apply(x, self.strength)


x.grad = None
ReverseLayer(0.5)(x).backward()
print("x.grad =", x.grad.item())
assert x.grad == -0.5

# %%
# What not to do
# --------------
# Calling ``forward`` by hand also silences the message. No node of the class is made then: autograd records the
# operations *inside* ``forward``, and your ``backward`` never runs. Here the gradient should be turned around, and is
# not.


class Context:
    pass


x.grad = None
y = Reverse.forward(Context(), x, 0.5)
y.backward()
print(f"{y.grad_fn.name()}: x.grad = {x.grad.item()}, not -0.5")
assert y.grad_fn.name() == "CloneBackward0" and x.grad == 1

# %%
# Installing an old version of PyTorch, as threads about this message advise, keeps one repository alive and costs all
# that came since. The change above is a few lines for each class.

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_functions_exp_function.py`: a custom function from the start
# - :ref:`sphx_glr_gallery_functions_change_the_gradient.py`: more on gradient reversal and its relatives
# - `Extending torch.autograd <https://docs.pytorch.org/docs/stable/notes/extending.html#extending-torch-autograd>`__
#   in PyTorch's reference
