r"""
appears to not have been used in the graph
==========================================

.. index::
   ! single: torch.autograd.grad returns None for an input
   ! single: gradient with respect to a slice or a copy of the input

``torch.autograd.grad`` was asked for the gradient of a tensor that the result does not depend on. Often the tensor is
a slice or a copy of the right one, made beside the computation. Sometimes it is a parameter that this loss does not
reach, on purpose or by mistake.
"""

# %%
# The shortest code that raises it
# --------------------------------

import torch

x = torch.tensor(2.0, requires_grad=True)
z = torch.tensor(3.0, requires_grad=True)
y = x**2
try:
    torch.autograd.grad(y, [x, z])
except RuntimeError as error:
    message = str(error)
    print("RuntimeError:", message)
    assert "appears to not have been used in the graph" in message

# %%
# The index counts the inputs from 0: here it is ``z``. Earlier versions gave no index and said *One of the
# differentiated Tensors appears to not have been used in the graph*, or *Variables* in place of *Tensors*.

# %%
# Why
# ---
# ``grad`` walks from the result back to the tensors asked about, and ``z`` is on no path. Often the tensor looks as
# if it were: ``first`` below is a row of ``points``, and the loss is computed from ``points``. But the slice is a
# result of its own, and the loss was not computed from the slice.

points = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
loss = (points**2).sum()
first = points[0]
try:
    torch.autograd.grad(loss, first)
except RuntimeError as error:
    print("RuntimeError:", str(error).split(". ")[0])
    assert "not have been used" in str(error)

# graph: loss, first -- Two branches of points: no path leads from loss back to first

# %%
# The fix
# -------
# **Ask about the tensor that was used**, and slice its gradient.

(gradient,) = torch.autograd.grad(loss, points)
print("gradient of the first row:", gradient[0].tolist())
assert gradient[0].tolist() == [2, 4]

# %%
# **Or slice first**, and compute from the slices. Now ``first`` lies on the path, and so does ``second``.

first, second = points[0], points[1]
loss = (torch.stack([first, second]) ** 2).sum()
(gradient,) = torch.autograd.grad(loss, first)
print("gradient of the first row:", gradient.tolist())
assert gradient.tolist() == [2, 4]

# %%
# **If it is a parameter of a model**, find out which one before you decide. Here is a network with two heads, and a
# loss that reaches one of them.

torch.manual_seed(0)
net = torch.nn.ModuleDict({name: torch.nn.Linear(2, 2) for name in ("body", "a", "b")})
loss = net["a"](net["body"](points)).square().sum()

gradients = torch.autograd.grad(loss, list(net.parameters()), allow_unused=True)
names = [name for name, _ in net.named_parameters()]
unused = [n for n, g in zip(names, gradients, strict=True) if g is None]
print("not reached:", unused)
assert unused == ["b.weight", "b.bias"]

# %%
# If that is what you meant, as it is for the second head, leave these parameters out of the call, or ask for zeros in
# their place.

loss = net["a"](net["body"](points)).square().sum()
gradients = torch.autograd.grad(loss, list(net.parameters()), materialize_grads=True)
for name, g in zip(names, gradients, strict=True):
    print(f"{name:<12} {'zeros' if not g.any() else 'gradient'} {tuple(g.shape)}")

# sphinx_gallery_start_ignore
assert [bool(g.any()) for g in gradients] == [name not in unused for name in names]
# sphinx_gallery_end_ignore

# %%
# What not to do
# --------------
# **Pass** ``allow_unused=True`` **because the message says so.** With the slice from above the gradient is now
# ``None``, and the program stops a few lines further down, with a message that does not mention the graph.

loss = (points**2).sum()
first = points[0]
(gradient,) = torch.autograd.grad(loss, first, allow_unused=True)
try:
    first - 0.1 * gradient
except TypeError as error:
    print("TypeError:", error)
assert gradient is None

# %%
# Skipping every ``None`` silences this one as well, and a mistake in the model stays. One of these two functions was
# typed with an ``a`` too many.

t = torch.linspace(-2, 2, 21)
target = 3 * torch.tanh(0.5 * t)


def mistyped(a, b):
    return a * torch.tanh(a * t)


def meant(a, b):
    return b * torch.tanh(a * t)


# %%
# Fit both to the same target, by gradient descent.


def fit(model, **options):
    parameters = [torch.tensor(1.0, requires_grad=True) for _ in range(2)]
    for _ in range(200):
        loss = (model(*parameters) - target).square().mean()
        gradients = torch.autograd.grad(loss, parameters, **options)
        with torch.no_grad():
            for parameter, gradient in zip(parameters, gradients, strict=True):
                if gradient is not None:
                    parameter -= 0.1 * gradient
    a, b = (parameter.item() for parameter in parameters)
    print(f"{model.__name__:<8} a = {a:.3f}  b = {b:.3f}  loss {loss.item():.4f}")
    return a, b, loss.item()


wrong = fit(mistyped, allow_unused=True)
right = fit(meant)
assert wrong[1] == 1 and wrong[2] > 10 * right[2]

# %%
# The first fit runs, its loss goes down, and ``b`` has never moved. Without the option, the message comes in the
# first step, and its index points at ``b``.

try:
    fit(mistyped)
except RuntimeError as error:
    print("RuntimeError:", str(error).split(". ")[0])
    assert str(error) == message

# sphinx_gallery_start_ignore
assert wrong[2] < (torch.tanh(t) - target).square().mean().item()
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_differentiation_gradients_of_intermediates.py`: gradients of any tensor on the way
# - :ref:`sphx_glr_gallery_graphs_leaves_and_roots.py`: a slice or a copy of a leaf is another tensor
# - `torch.autograd.grad <https://docs.pytorch.org/docs/stable/generated/torch.autograd.grad.html>`__ in PyTorch's
#   reference
