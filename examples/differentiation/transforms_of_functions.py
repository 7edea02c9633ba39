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

   ``torch.func`` makes new functions out of yours: ``grad(f)`` computes the gradient of ``f``, and ``vmap(f)`` applies ``f`` to
   each row of a batch. ``grad`` and ``vmap`` can be nested:

   .. code-block:: python

      slopes = vmap(grad(f))(points)  # the gradient at each point

   In ``vmap``, a call such as ``torch.rand`` needs ``randomness=``, and an ``if`` on a batched value or its ``.item()`` raises
   an error. For an ordinary training loop, ``loss.backward()`` is enough.
"""

# %%
# The derivative at two hundred points
# ------------------------------------
# You have a function of one number, and want its slope and its curvature at many points. ``grad(f)`` is the derivative and
# ``grad(grad(f))`` the second one. ``vmap`` applies them to all points:

import torch
from torch.func import grad, hessian, jacfwd, jacrev, jvp, linearize, vjp, vmap
from torch.fx.experimental.proxy_tensor import make_fx


def f(x):
    return torch.sin(x) * torch.exp(-x / 4)


points = torch.linspace(0, 10, 200)
slopes = vmap(grad(f))(points)
curvatures = vmap(grad(grad(f)))(points)
print(slopes.shape, curvatures.shape)

# %%
# .. how-measured:: This code draws the three curves.

import matplotlib.pyplot as plt


def plot_curves(points, curves):
    _, ax = plt.subplots(figsize=(6.4, 2.7), layout="constrained")
    colors = ["#2563eb", "#c2410c", "#047857"]
    for (name, values), color in zip(curves.items(), colors, strict=True):
        ax.plot(points, values, color=color, label=name)
    ax.set(xlabel="x", title="A function, its slope and its curvature")
    ax.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False)


# %%
# The three curves:

# figure: Three damped waves over x from 0 to 10. The slope of the function is 0 where the function has a maximum or a
#   minimum, and the curvature is negative at its maxima.
plot_curves(points, {"f": f(points), "grad(f)": slopes, "grad(grad(f))": curvatures})

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
_refused = []
_one_output = torch.nn.Linear(1, 1)  # its result has the shape (1,)
for _h, _x in ((f, points), (_one_output, points[:1]), (f, points[3])):
    try:
        grad(_h)(_x)
    except RuntimeError as error:
        _refused.append("scalar" in str(error))
assert _refused == [True, True]  # f(points[3]) has the shape ()
_seen = []


def _shape_inside(x):
    _seen.append(tuple(x.shape))
    return f(x)


vmap(grad(_shape_inside))(points)
assert _seen == [()]
# sphinx_gallery_end_ignore

# %%
# You set no ``requires_grad`` and read no ``.grad``: ``grad(f)(x)`` returns the gradient. ``grad`` needs a function whose
# result has the shape ``()``: one number, not ``(1,)``. Inside ``vmap``, the shape of ``x`` is ``()``, so ``f`` has it too.

# %%
# What each transform returns
# ---------------------------
# A function from three numbers to two, at the point ``x``. ``v`` is a direction in the space of the inputs, and ``u`` has one
# weight for each output.


def g(x):
    return torch.stack([x.prod(), x.sum().sin()])


x, v = torch.tensor([1.0, 2.0, 3.0]), torch.tensor([1.0, 0.0, 0.0])
u = torch.tensor([1.0, 0.0])
# sphinx_gallery_start_ignore
import warnings

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
assert torch.allclose(vmap(_push)(torch.eye(3)), _jacobian.T) and len(_calls) == _made
jvp(_counted, (x,), (v,))
assert len(_calls) == _made + 1
_pull = vjp(_counted, x)[1]
assert torch.equal(_pull(u)[0], _pull(u)[0]) and len(_calls) == _made + 2
_mixed = jacrev(lambda p: jvp(g, (p,), (v,))[1])(x)  # nesting jvp is right
assert torch.allclose(_mixed, hessian(g)(x) @ v, atol=1e-5)
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    _lost = jacrev(lambda p: linearize(g, p)[1](v))(x)
    _dropped, _push = linearize(torch.nn.functional.dropout, torch.ones(100))
_of_213 = torch.__version__.startswith("2.13")
assert not _of_213 or not torch.allclose(_lost, _mixed, rtol=0.1)
assert not _of_213 or not torch.equal(_push(torch.ones(100)), _dropped)
_branch_errors = []
for _transform in (
    lambda h, p: grad(h)(p),
    lambda h, p: vjp(h, p)[1](p),
    lambda h, p: jvp(h, (p,), (p,)),
    lambda h, p: jacrev(h)(p),
    lambda h, p: jacfwd(h)(p),
    lambda h, p: hessian(h)(p),
    lambda h, p: linearize(h, p),
):
    try:
        _transform(lambda a: a if a > 0 else -a, torch.tensor(-2.0))
        _branch_errors.append(False)
    except RuntimeError:
        _branch_errors.append(True)
assert _branch_errors == [False] * 6 + [True]  # only linearize refuses an if
# sphinx_gallery_end_ignore
for name, tensor in shapes.items():
    print(f"{name:<23} {tuple(tensor.shape)}")

# %%
# - ``vjp`` runs ``g`` once. It returns ``g(x)`` and a function that does backward for a given ``u``.
# - ``jvp`` runs ``g`` in forward mode, with one ``v``. It returns ``g(x)`` and the derivative along ``v``.
# - ``linearize`` returns ``g(x)`` and a function of ``v``, which you can call for many directions, and which does not call
#   ``g`` again. In PyTorch 2.13 it is silently wrong under ``jacrev``, and for a ``g`` that draws random numbers, such as
#   dropout. Use ``jvp`` there.
# - ``jacrev`` and ``jacfwd`` return the whole Jacobian: :ref:`which one, and when
#   <sphx_glr_gallery_differentiation_forward_mode.py>`. ``hessian`` returns the second derivatives of each output.

# %%
# Which argument is batched: ``in_dims``
# --------------------------------------
# By default ``vmap`` walks along the first dimension of each positional argument. In ``in_dims``, ``None`` passes an argument
# whole, and a number names the dimension to walk along. ``out_dims`` says where the batch goes in the result:

weights, inputs = torch.ones(4), torch.ones(4, 10)  # here samples are columns
print(vmap(torch.dot, in_dims=(None, 1))(weights, inputs).shape)
print(vmap(torch.mul, in_dims=(None, 1))(weights, inputs).shape)
print(vmap(torch.mul, in_dims=(None, 1), out_dims=1)(weights, inputs).shape)

try:
    vmap(torch.dot)(torch.ones(3, 2), torch.ones(4, 2))
except ValueError as error:
    message = str(error)
    print("ValueError:", message)

# sphinx_gallery_start_ignore
assert vmap(torch.dot, in_dims=(None, 1))(weights, inputs).shape == (10,)
assert "same size in the mapped dimension, got sizes [3, 4]" in message
_side_by_side = vmap(torch.mul, in_dims=(None, 1), out_dims=1)(weights, inputs)
assert _side_by_side.shape == (4, 10)
assert vmap(torch.mul, in_dims=(None, 1))(weights, inputs).shape == (10, 4)
_rows, _number_errors = torch.zeros(3), []
try:
    vmap(lambda x, a: x * a)(_rows, 2.0)
except ValueError as error:
    _number_errors.append(str(error))
assert (
    len(_number_errors) == 1
    and "use None as the respective in_dim" in _number_errors[0]
)
assert vmap(lambda x, a: x * a, in_dims=(0, None))(_rows, 2.0).shape == (3,)
_by_name = []


def _shape_by_name(x, *, a):
    _by_name.append(tuple(a.shape))
    return x * a.sum()


vmap(_shape_by_name)(_rows, a=torch.ones(3, 2))
vmap(_shape_by_name, in_dims=1)(inputs, a=torch.ones(10, 4))
assert _by_name == [(3, 2), (10, 4)]
assert torch.equal(vmap(lambda x, a: x + a)(_rows, a=2.0), torch.full((3,), 2.0))
# sphinx_gallery_end_ignore

# %%
# For a Python number among them, write ``None``. An argument passed by keyword is passed whole, whatever ``in_dims`` says.
#
# ``grad(f)`` is the gradient with respect to the first argument of ``f``. ``argnums=(0, 1)`` asks for the first two.
# ``grad_and_value`` returns the gradient first, then the value, and runs the function once:


def loss(weight, x):
    return (weight @ x) ** 2


(of_weight, of_x), value = torch.func.grad_and_value(loss, argnums=(0, 1))(
    torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0])
)
print(of_weight, of_x, value)
assert value == 121 and torch.equal(of_weight, 22 * torch.tensor([3.0, 4.0]))

# sphinx_gallery_start_ignore
assert torch.equal(of_x, 22 * torch.tensor([1.0, 2.0]))
_calls.clear()
torch.func.grad_and_value(lambda x: _counted(x).sum())(x)
assert len(_calls) == 1
# sphinx_gallery_end_ignore

# %%
# ``functionalize``: a graph without in-place operations
# ------------------------------------------------------
# ``functionalize`` is for tools that read graphs. Below is what ``make_fx`` records of the function ``in_place``, and of the
# same function after ``functionalize``.


def in_place(x):
    y = x.clone()
    y.add_(1)
    return y.mul_(2)


def operations(function):
    nodes = make_fx(function)(torch.ones(3)).graph.nodes
    return [n.target.__name__ for n in nodes if n.op == "call_function"]


print(operations(in_place))
print(operations(torch.func.functionalize(in_place)))

# sphinx_gallery_start_ignore
assert operations(in_place) == ["clone.default", "add_.Tensor", "mul_.Tensor"]
assert not any("_." in name for name in operations(torch.func.functionalize(in_place)))
assert torch.equal(torch.func.functionalize(in_place)(x), in_place(x))
# sphinx_gallery_end_ignore

# %%
# What people get wrong
# ---------------------
# **Random numbers in** ``vmap``. Should each row get its own numbers? PyTorch wants you to say it:


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
_random_errors = []
for _transform in (grad, jacrev, jacfwd, hessian):
    try:
        _transform(lambda x: (x * torch.rand(())).sum())(rows)
        _random_errors.append(False)
    except RuntimeError as error:
        _random_errors.append("randomness error mode" in str(error))
assert _random_errors == [False, False, True, True]
assert jacfwd(noisy, randomness="same")(rows).shape == (3, 3)


def _one_factor(x):  # the three derivatives are equal, whatever number is drawn
    return (x.sum() * torch.rand(())).sin()


assert len(jacfwd(_one_factor, randomness="same")(rows).unique()) == 1
assert len(jacfwd(_one_factor, randomness="different")(rows).unique()) == 3
assert len(vmap(noisy, randomness="different")(rows).unique()) == 3
assert len(vmap(noisy, randomness="same")(rows).unique()) == 1
# sphinx_gallery_end_ignore

# %%
# ``jacfwd`` and ``hessian`` use ``vmap`` inside, and raise the same error for such a function. In ``jacfwd``, write
# ``randomness="same"``. With ``"different"``, each column of the Jacobian can get different numbers, so it is silently wrong.
#
# **Keeping a tensor from inside** ``vmap``. Inside, a tensor computed from the batch is a wrapper, which is useless after
# ``vmap``. Return the tensor instead. Under ``vmap``, a function may return several; for ``grad``, ``has_aux=True`` passes a
# second tensor through.

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


print("grad:", grad(with_extra, has_aux=True)(torch.ones(3)))

# sphinx_gallery_start_ignore
assert "may have escaped from inside a function being vmapped" in message
_gradient, _extra = grad(with_extra, has_aux=True)(torch.ones(3))
assert torch.equal(_gradient, 2 * torch.ones(3)) and torch.equal(_gradient, _extra)
_results = vmap(with_extra)(torch.ones(2, 3))
assert [tuple(t.shape) for t in _results] == [(2,), (2, 3)]
kept.clear()
grad(storing)(torch.ones(3))  # what grad leaves behind can still be read
assert kept[0].sum() == 6
# sphinx_gallery_end_ignore

# %%
# To look at such a wrapper in a debugger, ``torch.func.debug_unwrap`` returns the tensor inside:

shown = []


def looked_at(x):
    shown.append(torch.func.debug_unwrap(x).shape)
    return x.sum()


vmap(looked_at)(torch.ones(2, 3))
print(shown)
assert shown == [(2, 3)]  # the whole batch: inside, x.shape is (3,)

# %%
# **An** ``if`` **on a batched value.** Inside ``vmap``, such a value is that of all rows at once. :ref:`An if raises an error
# <sphx_glr_gallery_errors_vmap_item.py>`, for a batch of one row too. Use ``torch.where``:

print(vmap(lambda x: torch.where(x > 0, x, -x))(torch.tensor([1.0, -2.0])))

# sphinx_gallery_start_ignore
assert grad(lambda x: x if x > 0 else -x)(torch.tensor(-2.0)) == -1  # grad alone: fine
assert grad(lambda x: x * x.item())(torch.tensor(2.0)) == 2  # item() is a constant
_item_errors = []
for _count in (1, 2):
    for _h in (lambda x: x * x.item(), lambda x: x if x > 0 else -x):
        try:
            vmap(_h)(torch.ones(_count))
        except RuntimeError as error:
            _item_errors.append(str(error))
assert len(_item_errors) == 4 and "control flow" in _item_errors[1]
_whole = vmap(lambda x, c: x if c > 0 else x * c.item(), in_dims=(0, None))
assert torch.equal(_whole(rows, torch.tensor(-1.0)), rows)  # c is not batched
_ran = []
vmap(lambda x: (_ran.append(1), x)[1])(torch.ones(4))
assert len(_ran) == 1
vmap(lambda x: (_ran.append(1), x)[1], chunk_size=2)(torch.ones(4))
assert len(_ran) == 3
_guarded = vmap(grad(lambda x: torch.where(x > 0, x.sqrt(), 0.0)))
assert _guarded(torch.tensor([4.0, -1.0])).isnan().tolist() == [False, True]
with torch.no_grad():
    assert grad(lambda x: x**2)(torch.tensor(3.0)) == 6


def _constant(x):
    with torch.no_grad():
        c = x**2
    return x - c


_three, _one = torch.tensor(3.0), torch.tensor(1.0)
assert grad(_constant)(_three) == vjp(_constant, _three)[1](_one)[0] == 1
assert jacrev(_constant)(_three) == 1
assert jvp(_constant, (_three,), (_one,))[1] == jacfwd(_constant)(_three) == -5
assert jvp(lambda x: x - (x**2).detach(), (_three,), (_one,))[1] == 1
assert jacfwd(lambda x: x - (x**2).detach())(_three) == 1
_weight = torch.tensor(2.0, requires_grad=True)
_outer = grad(lambda x: _weight * x**2)(torch.tensor(3.0))
assert _outer.requires_grad and _weight.grad is None
_outer.backward()
assert _weight.grad == 6
# sphinx_gallery_end_ignore

# %%
# Both sides of ``torch.where`` are computed. If the unused side has an infinite or undefined slope, ``grad`` can return
# ``nan``: :ref:`choose a safe input first <sphx_glr_gallery_differentiation_points_without_a_derivative.py>`. ``grad`` without
# ``vmap`` accepts an ``if`` and an ``.item()``, but what ``.item()`` returns is a constant for it.
#
# **Counting on** ``no_grad``. Around the call, ``no_grad`` leaves ``grad(f)`` as it is. Inside ``f``, it makes constants for
# ``grad``, ``vjp`` and ``jacrev``, but ``jvp`` and ``jacfwd`` ignore it. So use ``.detach()``, which makes constants for all
# five.

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
# - :ref:`sphx_glr_gallery_functions_functions_and_transforms.py`: a custom Function inside ``vmap`` and ``jvp``.
# - :ref:`sphx_glr_gallery_errors_func_grad_of_vector.py`: ``grad`` of a function that returns a vector.
# - :doc:`Coming from JAX, TensorFlow or MLX </guide/coming-from-jax>`: names and habits.
# - In PyTorch's reference: `torch.func <https://docs.pytorch.org/docs/stable/func.html>`__.
