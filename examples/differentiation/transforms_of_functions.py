r"""
torch.func: grad, vmap, vjp, jvp and linearize
==============================================

.. index::
   single: vmap, in_dims and out_dims
   single: derivative of a function at many points without a loop
   single: grad_and_value, value and gradient in one call
   single: called random operation while in randomness error mode
   single: your tensor may have escaped from inside a function being vmapped
   single: JAX style gradients in PyTorch

.. in-short::

   ``torch.func`` makes new functions of yours: ``grad(f)`` returns the gradient of ``f``, and ``vmap(f)`` returns ``f`` of each
   row of a batch. Transforms can be nested:

   .. code-block:: python

      slopes = vmap(grad(f))(points)  # the gradient at each point

   In ``vmap``, random numbers need ``randomness=``, and an ``if`` on a value and ``.item()`` raise an error. To train a model,
   ``loss.backward()`` is enough.
"""

# %%
# The derivative at two hundred points
# ------------------------------------
# You have a function of one number, and want its slope and its curvature at many points. With ``autograd.grad`` that takes a
# loop, or a trick with a sum. Here you say what you mean: the gradient of ``f``, for each point.
#
# .. how-measured:: This code draws the three curves.

import warnings

import matplotlib.pyplot as plt
import pandas as pd
import torch
from torch.func import grad, vmap


def draw(curves):
    _, ax = plt.subplots(figsize=(6.4, 2.7), layout="constrained")
    colors = ["#2563eb", "#c2410c", "#047857"]
    for (name, values), color in zip(curves.items(), colors, strict=True):
        ax.plot(points, values, color=color, label=name)
    ax.set(xlabel="x", title="A function, its slope and its curvature")
    ax.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False)


# %%
# ``grad(grad(f))`` is the second derivative, and ``vmap`` applies each of them to all points:


def f(x):
    return torch.sin(x) * torch.exp(-x / 4)


points = torch.linspace(0, 10, 200)
slopes = vmap(grad(f))(points)
curvatures = vmap(grad(grad(f)))(points)

# figure: Three damped waves over x from 0 to 10. The slope of the function is 0 where the function has a maximum or a
#   minimum, and the curvature is negative at its maxima.
draw({"f": f(points), "grad(f)": slopes, "grad(grad(f))": curvatures})

# sphinx_gallery_start_ignore
_wave, _decay = torch.sin(points), torch.exp(-points / 4)
_slope = _decay * (torch.cos(points) - _wave / 4)
_second = _decay * (-_wave - torch.cos(points) / 2 + _wave / 16)
assert torch.allclose(slopes, _slope, atol=1e-5)
assert torch.allclose(curvatures, _second, atol=1e-5)
assert not slopes.requires_grad and points.grad is None
_turns = (slopes[:-1] * slopes[1:] < 0).nonzero().flatten()
assert 3 <= len(_turns) <= 4 and curvatures[_turns[0]] < 0 < curvatures[_turns[1]]
_loop = torch.stack([grad(f)(p) for p in points])
assert torch.allclose(slopes, _loop, atol=1e-6)
# sphinx_gallery_end_ignore

# %%
# Neither ``requires_grad`` nor ``.grad`` is used: ``grad(f)`` returns its result. And ``f`` is written for one point.
#
# What each transform returns
# ---------------------------
# A function from three numbers to two, at the point ``x``. ``v`` is a direction in the space of the inputs, and ``u`` has one
# weight for each output.

from torch.func import hessian, jacfwd, jacrev, jvp, linearize, vjp


def g(x):
    return torch.stack([x.prod(), x.sum().sin()])


x, v = torch.tensor([1.0, 2.0, 3.0]), torch.tensor([1.0, 0.0, 0.0])
u = torch.tensor([1.0, 0.0])
# sphinx_gallery_start_ignore
_quiet = warnings.catch_warnings()
_quiet.__enter__()
warnings.simplefilter("ignore")  # linearize: a constant of torch.fx has no name
# sphinx_gallery_end_ignore
value, pull_back = vjp(g, x)
value, push_forward = linearize(g, x)
shapes = {
    "pull_back(u)[0]": pull_back(u)[0],
    "push_forward(v)": push_forward(v),
    "jvp(g, (x,), (v,))[1]": jvp(g, (x,), (v,))[1],
    "jacrev(g)(x)": jacrev(g)(x),
    "jacfwd(g)(x)": jacfwd(g)(x),
    "hessian(g)(x)": hessian(g)(x),
}
# sphinx_gallery_start_ignore
_quiet.__exit__(None, None, None)
_jacobian = torch.stack([torch.tensor([6.0, 3.0, 2.0]), x.sum().cos().expand(3)])
for _name, _right in {
    "pull_back(u)[0]": u @ _jacobian,
    "push_forward(v)": _jacobian @ v,
    "jvp(g, (x,), (v,))[1]": _jacobian @ v,
    "jacrev(g)(x)": _jacobian,
    "jacfwd(g)(x)": _jacobian,
}.items():
    assert torch.allclose(shapes[_name], _right), _name
assert shapes["hessian(g)(x)"].shape == (2, 3, 3)
_calls = []


def _counted(x):
    _calls.append(1)
    return g(x)


with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    _push = linearize(_counted, x)[1]
_made = len(_calls)
assert torch.allclose(_push(v), _jacobian @ v)
assert torch.allclose(_push(x), _jacobian @ x) and len(_calls) == _made
jvp(_counted, (x,), (v,))
assert len(_calls) == _made + 1
# sphinx_gallery_end_ignore
pd.DataFrame({"shape": {name: str(tuple(t.shape)) for name, t in shapes.items()}})

# %%
# - ``vjp`` runs ``g`` once, and returns a function that does backward for a given ``u``.
# - ``jvp`` runs ``g`` in forward mode, with one ``v``. ``linearize`` returns a function for any number of directions at this
#   ``x``, which does not call ``g`` again.
# - ``jacrev`` and ``jacfwd`` return the whole Jacobian: :ref:`which one, and when
#   <sphx_glr_gallery_differentiation_jacobian_and_hessian.py>`.

# %%
# What people get wrong
# ---------------------
# **Random numbers in** ``vmap``. PyTorch does not guess whether each row should get numbers of its own:


def noisy(x):
    return x + torch.rand(())


rows = torch.zeros(3)
try:
    vmap(noisy)(rows)
except RuntimeError as error:
    message = str(error)
    print("RuntimeError:", message.split(". ")[0])

torch.manual_seed(0)
print("different", vmap(noisy, randomness="different")(rows))
print("same     ", vmap(noisy, randomness="same")(rows))

# sphinx_gallery_start_ignore
assert message.startswith(
    "vmap: called random operation while in randomness error mode"
)
assert len(vmap(noisy, randomness="different")(rows).unique()) == 3
assert len(vmap(noisy, randomness="same")(rows).unique()) == 1
# sphinx_gallery_end_ignore

# %%
# **Keeping a tensor from inside.** What ``f`` stores elsewhere is a wrapper, which is valid only while ``f`` runs. Return the
# tensor instead: ``has_aux=True`` passes a second result through.

kept = []


def storing(x):
    kept.append(x * 2)
    return x.sum()


vmap(storing)(torch.ones(2, 3))
try:
    kept[0].sum()
except RuntimeError as error:
    message = str(error)
    print("RuntimeError:", message.split(" and this is")[0])


def with_extra(x):
    return (x**2).sum(), x * 2


print(grad(with_extra, has_aux=True)(torch.ones(3)))

# sphinx_gallery_start_ignore
assert "may have escaped from inside a function being vmapped" in message
_gradient, _extra = grad(with_extra, has_aux=True)(torch.ones(3))
assert torch.equal(_gradient, 2 * torch.ones(3)) and torch.equal(_gradient, _extra)
# sphinx_gallery_end_ignore

# %%
# To look at such a wrapper in a debugger, ``torch.func.debug_unwrap`` returns the tensor inside:

from torch.func import debug_unwrap

shown = []


def looked_at(x):
    shown.append(debug_unwrap(x).shape)
    return x.sum()


vmap(looked_at)(torch.ones(2, 3))
print(shown)
assert shown == [(2, 3)]  # the whole batch: inside, x.shape is (3,)

# %%
# **An** ``if`` **on a value.** In ``vmap``, all rows run at once, so there is no single ``True`` or ``False``. Use
# ``torch.where``:

try:
    vmap(lambda x: x if x > 0 else -x)(torch.tensor([1.0, -2.0]))
except RuntimeError as error:
    message = str(error)
    print("RuntimeError:", message.split(". ")[0])
print(vmap(lambda x: torch.where(x > 0, x, -x))(torch.tensor([1.0, -2.0])))

# sphinx_gallery_start_ignore
assert "data-dependent control flow" in message
assert grad(lambda x: x if x > 0 else -x)(torch.tensor(-2.0)) == -1  # grad alone: fine
with torch.no_grad():
    assert grad(lambda x: x**2)(torch.tensor(3.0)) == 6


def _constant(x):
    with torch.no_grad():
        c = x**2
    return x - c


assert grad(_constant)(torch.tensor(3.0)) == 1
_weight = torch.tensor(2.0, requires_grad=True)
_outer = grad(lambda x: _weight * x**2)(torch.tensor(3.0))
assert _outer.requires_grad and _weight.grad is None
_outer.backward()
assert _weight.grad == 6
# sphinx_gallery_end_ignore

# %%
# ``grad`` without ``vmap`` can follow an ``if``. ``.item()`` fails in the same way: :ref:`its error page
# <sphx_glr_gallery_errors_vmap_item.py>`.
#
# **A** ``no_grad`` **around the call.** It does not switch ``grad(f)`` off. A ``no_grad`` *inside* ``f`` does make constants.
#
# Which argument is batched: ``in_dims``
# --------------------------------------
# By default ``vmap`` walks along the first dimension of each argument. ``None`` passes an argument whole, and a number names
# another dimension:

weights, inputs = torch.ones(4), torch.ones(4, 10)  # here samples are columns
print(vmap(torch.dot, in_dims=(None, 1))(weights, inputs).shape)

try:
    vmap(torch.dot)(torch.ones(3, 2), torch.ones(4, 2))
except ValueError as error:
    message = str(error)
    print("ValueError:", message)

# sphinx_gallery_start_ignore
assert vmap(torch.dot, in_dims=(None, 1))(weights, inputs).shape == (10,)
assert "same size in the mapped dimension, got sizes [3, 4]" in message
# sphinx_gallery_end_ignore

# %%
# ``grad(f)`` is the gradient with respect to the first argument of ``f``; ``argnums=(0, 1)`` names others. ``grad_and_value``
# returns the value as well, from the same run:

from torch.func import grad_and_value


def loss(weight, x):
    return (weight @ x) ** 2


(of_weight, of_x), value = grad_and_value(loss, argnums=(0, 1))(
    torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0])
)
print(of_weight, of_x, value)
assert value == 121 and torch.equal(of_weight, 22 * torch.tensor([3.0, 4.0]))

# %%
# ``functionalize``: the same function without in-place operations
# ----------------------------------------------------------------
# It is for those who read or write graphs: what ``make_fx`` records of a function with in-place operations, and of the same
# function after ``functionalize``.

from torch.func import functionalize
from torch.fx.experimental.proxy_tensor import make_fx


def in_place(x):
    y = x.clone()
    y.add_(1)
    return y.mul_(2)


def operations(function):
    nodes = make_fx(function)(torch.ones(3)).graph.nodes
    return [n.target.__name__ for n in nodes if n.op == "call_function"]


print(operations(in_place))
print(operations(functionalize(in_place)))

# sphinx_gallery_start_ignore
assert operations(in_place) == ["clone.default", "add_.Tensor", "mul_.Tensor"]
assert not any("_." in name for name in operations(functionalize(in_place)))
assert torch.equal(functionalize(in_place)(x), in_place(x))
# sphinx_gallery_end_ignore

# %%
# Exercise
# --------
# ``kernel(a, b)`` compares two vectors. Write the table of all pairs of the rows of ``A`` and ``B`` with ``vmap`` twice.
#
# .. solution::
#
# The inner ``vmap`` walks over the rows of ``B`` with a fixed ``a``, the outer one over the rows of ``A``.


def kernel(a, b):
    return torch.exp(-((a - b) ** 2).sum())


A, B = torch.randn(3, 2), torch.randn(5, 2)
pairs = vmap(vmap(kernel, in_dims=(None, 0)), in_dims=(0, None))(A, B)
print(pairs.shape)
assert torch.allclose(pairs, torch.exp(-(torch.cdist(A, B) ** 2)), atol=1e-5)

# %%
# See also
# --------
# - Before: :ref:`sphx_glr_gallery_differentiation_forward_mode.py`, derivatives along a direction, with the forward pass.
# - Next: :ref:`sphx_glr_gallery_differentiation_inplace_and_versions.py`, what a recorded graph has to guard against.
# - :ref:`sphx_glr_gallery_functions_functions_and_transforms.py`: a custom Function inside ``vmap`` and ``jvp``.
# - :ref:`sphx_glr_gallery_errors_func_grad_of_vector.py`: ``grad`` of a function that returns a vector.
# - In PyTorch's reference: `torch.func <https://docs.pytorch.org/docs/stable/func.html>`__.
