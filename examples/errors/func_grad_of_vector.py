r"""
to return a scalar Tensor, got tensor with 1 dims
=================================================

.. index::
   ! single: grad_and_value(f)(*args): Expected f(*args) to return a scalar Tensor
   ! single: torch.func.grad of a function that returns a vector or a tuple
   ! single: requires_grad_ or backward inside of a function under torch.func
   ! single: gradient for each sample with torch.func

.. in-short::

   ``torch.func.grad`` needs a function that returns a scalar: one number, without a dimension. Reduce your outputs to a loss,
   or take ``jacrev`` if you want the derivative of each.

   .. code-block:: diff

        def loss(weight):
      -     return (x @ weight - y) ** 2
      +     return ((x @ weight - y) ** 2).mean()

   **Not this:** ``.sum()`` if you want a gradient for each output. The message is gone, and you get their sum.
"""

# %%
# The code that raises it
# -----------------------

import torch
from torch.func import grad

torch.manual_seed(0)

# sphinx_gallery_start_ignore
raised = []
try:
    # sphinx_gallery_end_ignore
    x, y = torch.randn(5, 3), torch.randn(5)
    weight = torch.zeros(3)

    def loss(weight):
        return (x @ weight - y) ** 2

    grad(loss)(weight)
# sphinx_gallery_start_ignore
except RuntimeError as error:
    raised.append(str(error))
    print("RuntimeError:", error)


def says(call):
    try:
        call()
    except (RuntimeError, NotImplementedError) as error:
        return str(error)
    return None


assert len(raised) == 1
assert raised[0].startswith("grad_and_value(f)(*args): Expected f(*args) to return")
assert says(lambda: torch.func.grad_and_value(loss)(weight)) == raised[0]
assert says(lambda: grad(lambda w: loss(w)[:1])(weight)) == raised[0]
assert says(lambda: grad(lambda w: loss(w)[:1].squeeze())(weight)) is None
assert "got tensor with 2 dims" in says(lambda: grad(lambda w: w[None] * 2)(weight))
_net = torch.nn.Sequential(
    torch.nn.Linear(1, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1)
)
_points = torch.linspace(-1, 1, 5)[:, None]
_slopes = torch.func.vmap(grad(lambda t: _net(t).squeeze()))(_points)
_leaf = _points.clone().requires_grad_()
_net(_leaf).sum().backward()
assert torch.allclose(_slopes, _leaf.grad, atol=1e-6)
_bends = torch.func.vmap(
    grad(lambda t: grad(lambda t: _net(t).squeeze())(t).squeeze())
)(_points)
(_slope,) = torch.autograd.grad(_net(_leaf).sum(), _leaf, create_graph=True)
(_bend,) = torch.autograd.grad(_slope.sum(), _leaf)
assert torch.allclose(_bends, _bend, atol=1e-5) and _bend.any()
_bends = torch.func.vmap(grad(lambda t: grad(lambda t: _net(t).squeeze())(t)[0]))
assert torch.allclose(_bends(_points), _bend, atol=1e-5)
# three inputs: the second derivative by input 1, and by 1 and 2
_wide = torch.nn.Sequential(
    torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1)
)
_leaf = torch.randn(5, 3, requires_grad=True)
(_slope,) = torch.autograd.grad(_wide(_leaf).sum(), _leaf, create_graph=True)
(_bend,) = torch.autograd.grad(_slope[:, 1].sum(), _leaf)
_of_one = torch.func.vmap(grad(lambda t: grad(lambda t: _wide(t).squeeze())(t)[1]))
assert torch.allclose(_of_one(_leaf.detach()), _bend, atol=1e-5) and _bend.any()
_squeezed = torch.func.vmap(
    grad(lambda t: grad(lambda t: _wide(t).squeeze())(t).squeeze())
)
assert "got tensor with 1 dims" in says(lambda: _squeezed(_leaf.detach()))
# two outputs
_two = torch.nn.Sequential(
    torch.nn.Linear(1, 4), torch.nn.Tanh(), torch.nn.Linear(4, 2)
)
_both = torch.func.vmap(torch.func.jacrev(_two))(_points)
for _i in range(2):
    _leaf = _points.clone().requires_grad_()
    _two(_leaf)[:, _i].sum().backward()
    assert torch.allclose(_both[:, _i], _leaf.grad, atol=1e-6)


# a function of each element, for any shape
_table = torch.randn(4, 2)
assert "got tensor with 2 dims" in says(lambda: grad(torch.sin)(_table))
assert "got tensor with 1 dims" in says(
    lambda: torch.func.vmap(grad(torch.sin))(_table)
)
assert torch.allclose(grad(lambda x: torch.sin(x).sum())(_table), _table.cos())


def _energies(atoms):
    return torch.exp(-(atoms[:, None] - atoms).square().sum(-1)).sum(1)


# forces: an energy for each atom depends on all atoms, so vmap over atoms gives 0
_atoms = torch.randn(4, 3)
assert "got tensor with 1 dims" in says(lambda: grad(_energies)(_atoms))
_leaf = _atoms.clone().requires_grad_()
sum(_energies(_leaf)[i] for i in range(4)).backward()
_forces = grad(lambda atoms: _energies(atoms).sum())
assert torch.allclose(_forces(_atoms), _leaf.grad, atol=1e-6) and _leaf.grad.any()
_alone = torch.func.vmap(grad(lambda atom: _energies(atom[None]).squeeze()))
assert not _alone(_atoms).any()
_molecules = torch.randn(2, 4, 3)
_each = torch.func.vmap(_energies)
_of_all = grad(lambda r: _each(r).sum())(_molecules)
assert torch.allclose(_of_all, torch.stack([_forces(r) for r in _molecules]), atol=1e-6)
assert "got tensor with 1 dims" in says(lambda: grad(_net)(_points[0]))
assert "got tensor with 2 dims" in says(lambda: grad(_net)(_points[:1]))
# sphinx_gallery_end_ignore

# %%
# The message names ``grad_and_value``, which ``grad`` calls. Its end, and the function that you gave to ``grad``, tell the
# cause:
#
# .. list-table::
#    :header-rows: 1
#    :widths: 54 46
#
#    * - the function, and the end of the message
#      - what to do
#    * - a loss without a mean: *tensor with 1 dims*
#      - Remove ``reduction="none"``, or add ``.mean()``, as below. With a mask or class weights, see :ref:`the same for
#        backward() <sphx_glr_gallery_errors_not_a_scalar.py>`.
#    * - a loss, and *tensor with 2 dims*
#      - Print the shapes first. Predictions of shape ``(5, 1)`` and targets of shape ``(5,)`` are broadcast to ``(5, 5)``: take
#        ``predictions.squeeze(1)``.
#    * - a network with one output, for one sample: *tensor with 1 dims*, or *2 dims*
#      - The output has shape ``(1,)`` or ``(1, 1)``: add ``.squeeze()``.
#    * - a slope at each point, as in a PINN
#      - ``vmap(grad(f))`` over the points, with ``.squeeze()`` after the network. An inner ``grad`` gives a row, so choose an
#        input: ``grad(f)(point)[0]``. For several outputs, ``vmap(jacrev(f))``.
#    * - forces, from an energy for each atom or molecule
#      - Add ``.sum()``.
#    * - a function of each element, such as ``torch.sin``
#      - ``grad(lambda x: f(x).sum())``
#    * - a loss for each model of an ensemble
#      - ``vmap(grad(loss), in_dims=(0, None, None))(weights, x, y)``. A ``.mean()`` divides each gradient by their number.
#    * - a loss and predictions: *got <class 'tuple'>*
#      - ``has_aux=True``, below
#    * - *got <class 'float'>*, *'dict'*, *'NoneType'* or a class of a library
#      - Return the loss as a tensor: ``output.loss``, without ``.item()``.
#
# Why
# ---
# A gradient has one slope for each element of the weight, of *one* number. Five numbers have five such rows, which together
# are the Jacobian. ``grad`` of the mean is the mean of these rows:

import matplotlib.pyplot as plt
from torch.func import jacrev

rows = jacrev(loss)(weight)
mean = grad(lambda weight: loss(weight).mean())(weight)

# figure: A table. Five rows of three slopes, one for each output, and below them one row, their mean.
_, ax = plt.subplots(figsize=(7, 2), layout="constrained")
table = torch.cat([rows, mean[None]])
ax.imshow(table.numpy(), cmap="PuOr", vmin=-6, vmax=6, aspect="auto")
for i, row in enumerate(table.tolist()):
    for j, slope in enumerate(row):
        ax.text(j, i, f"{slope:.2f}", ha="center", va="center", fontsize=8)
ax.axhline(4.5, color="white", linewidth=6)
ax.set_xticks(range(3), [f"weight[{j}]" for j in range(3)])
ax.set_yticks([2, 5], ["jacrev: a row for each output", "grad of the mean"])
ax.set_title("Slopes of five outputs, and of their mean")

# sphinx_gallery_start_ignore
assert rows.shape == (5, 3) and torch.allclose(rows.mean(0), mean)
# sphinx_gallery_end_ignore

# %%
# The fix
# -------
# For training, return one number, the loss.


def loss(weight):
    return ((x @ weight - y) ** 2).mean()


print(grad(loss)(weight))

# sphinx_gallery_start_ignore
_leaf = weight.clone().requires_grad_()
loss(_leaf).backward()
assert torch.allclose(grad(loss)(weight), _leaf.grad)
# sphinx_gallery_end_ignore

# %%
# If you want something else:
#
# - the slope of each output: ``jacrev(f)(weight)``;
# - one gradient for each sample: ``vmap(grad(f), in_dims=(None, 0, 0))``, with an ``f`` for one sample; a network and a loss
#   that expect a batch get ``x[None]`` and ``y[None]``, class weights ``reduction="sum"``.

from torch.func import vmap


def sample_loss(weight, x, y):
    return (x @ weight - y) ** 2


print(jacrev(sample_loss)(weight, x, y).shape)
print(vmap(grad(sample_loss), in_dims=(None, 0, 0))(weight, x, y).shape)

# sphinx_gallery_start_ignore
_per_sample = vmap(grad(sample_loss), in_dims=(None, 0, 0))(weight, x, y)
assert torch.allclose(_per_sample, rows)
assert torch.allclose(jacrev(sample_loss)(weight, x, y), rows)
_layer = torch.nn.Linear(3, 2)
_labels = torch.tensor([0, 1, 1, 0, 1])


def _one(parameters, x, y):
    scores = torch.func.functional_call(_layer, parameters, (x[None],))
    return torch.nn.functional.cross_entropy(scores, y[None])


_parameters = dict(_layer.named_parameters())
_found = vmap(grad(_one), in_dims=(None, 0, 0))(_parameters, x, _labels)["weight"]
for _i in range(5):
    _loss = torch.nn.functional.cross_entropy(_layer(x)[_i], _labels[_i])
    _right = torch.autograd.grad(_loss, _layer.weight)[0]
    assert torch.allclose(_found[_i], _right, atol=1e-6)
_class_weights = torch.tensor([1.0, 9.0])
for _reduction in ("mean", "sum"):

    def _weighted(parameters, x, y, reduction=_reduction):
        scores = torch.func.functional_call(_layer, parameters, (x[None],))
        return torch.nn.functional.cross_entropy(
            scores, y[None], _class_weights, reduction=reduction
        )

    _all = vmap(grad(_weighted), in_dims=(None, 0, 0))(_parameters, x, _labels)
    _right = _found * _class_weights[_labels][:, None, None]
    assert torch.allclose(_all["weight"], _right) == (_reduction == "sum")
assert "got tensor with 2 dims" in says(
    lambda: grad(lambda w: (x @ w[:, None] - y) ** 2)(weight)
)
_wide = grad(lambda w: ((x @ w[:, None] - y) ** 2).mean())(weight)
_fixed = grad(lambda w: (((x @ w[:, None]).squeeze(1) - y) ** 2).mean())(weight)
assert torch.allclose(_fixed, mean, atol=1e-6) and not torch.allclose(_wide, mean)
# sphinx_gallery_end_ignore

# %%
# Other messages of torch.func.grad
# ---------------------------------
# **A tuple.** Say with ``has_aux=True`` that the rest needs no gradient. The loss comes first. The rest is a tensor, or a
# tuple or dictionary of tensors:

# sphinx_gallery_start_ignore
raised = []
try:
    # sphinx_gallery_end_ignore
    def loss(weight):
        prediction = x @ weight
        return ((prediction - y) ** 2).mean(), prediction

    grad(loss)(weight)
# sphinx_gallery_start_ignore
except RuntimeError as error:
    raised.append(str(error))
    print("RuntimeError:", error)
assert len(raised) == 1 and "to return a Tensor, got <class 'tuple'>" in raised[0]
for _result, _class in (
    (lambda w: w.sum().item(), "float"),
    (lambda w: {"loss": w.sum()}, "dict"),
    (lambda w: None, "NoneType"),
):
    _said = says(lambda result=_result: grad(result)(weight))
    assert f"got <class '{_class}'>" in _said
# an ensemble: four models, each with its own weight
_weights = torch.randn(4, 3)


def _of_one(weight):
    return ((x @ weight - y) ** 2).mean()


assert "got tensor with 1 dims" in says(lambda: grad(vmap(_of_one))(_weights))
_each = torch.stack([grad(_of_one)(w) for w in _weights])
assert torch.allclose(vmap(grad(_of_one))(_weights), _each, atol=1e-6)
_five = torch.randn(5, 3)  # as many models as samples
_each_of_five = torch.stack([grad(_of_one)(w) for w in _five])
for _dims, _right in ((0, False), ((0, None, None), True)):
    _found = vmap(
        grad(lambda w, x, y: sample_loss(w, x, y).mean()),
        in_dims=_dims,
    )(_five, x, y)
    assert torch.allclose(_found, _each_of_five, atol=1e-6) == _right
_smaller = grad(lambda w: vmap(_of_one)(w).mean())(_weights)
assert torch.allclose(_smaller, _each / 4, atol=1e-6)
_aux = grad(lambda w: (w.sum(), (w, {"twice": 2 * w})), has_aux=True)
assert torch.equal(_aux(weight)[0], torch.ones(3))
_three = grad(lambda w: (w.sum(), w, w), has_aux=True)
assert "should be a tuple: (output, aux)" in says(lambda: _three(weight))
_float = grad(lambda w: (w.sum(), w.sum().item()), has_aux=True)
assert "unsupported type <class 'float'>" in says(lambda: _float(weight))
# sphinx_gallery_end_ignore

# %%
# The result is then a pair:

gradient, prediction = grad(loss, has_aux=True)(weight)
assert torch.equal(prediction, x @ weight)

# %%
# **requires_grad_() in the function.** ``grad`` watches its argument by itself. Delete the call, and a ``.detach()`` before it,
# which makes the gradient 0:

# sphinx_gallery_start_ignore
assert torch.allclose(gradient, mean)
raised = []
try:
    # sphinx_gallery_end_ignore
    def loss(weight):
        weight.requires_grad_()
        return ((x @ weight - y) ** 2).mean()

    grad(loss)(weight)
# sphinx_gallery_start_ignore
except RuntimeError as error:
    raised.append(str(error))
    print("RuntimeError:", error)
assert len(raised) == 1
assert "You are attempting to call Tensor.requires_grad_()" in raised[0]
_cut = grad(lambda weight: sample_loss(weight.detach(), x, y).mean())(weight)
assert torch.equal(_cut, torch.zeros(3)) and gradient.abs().min() > 0
assert (
    says(lambda: grad(lambda w: w.detach().requires_grad_().sum())(weight))
    == (raised[0])
)
# sphinx_gallery_end_ignore

# %%
# **backward() in the function:**

from torch import nn

# sphinx_gallery_start_ignore
raised = []
try:
    # sphinx_gallery_end_ignore
    def penalty(x):
        net(x).sum().backward()
        return x.grad.norm()

    net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    grad(penalty)(x[0])
# sphinx_gallery_start_ignore
except RuntimeError as error:
    raised.append(str(error))
    print("RuntimeError:", error)
assert len(raised) == 1
assert "backward() called inside a functorch transform" in raised[0]
# sphinx_gallery_end_ignore

# %%
# Inside a transform, call ``grad`` again, also in place of ``torch.autograd.grad``:


def penalty(x):
    return grad(lambda x: net(x).sum())(x).norm()


print(grad(penalty)(x[0]).detach())

# sphinx_gallery_start_ignore
_sample = x[0].clone().requires_grad_()
(_first,) = torch.autograd.grad(net(_sample).sum(), _sample, create_graph=True)
(_second,) = torch.autograd.grad(_first.norm(), _sample)
assert torch.allclose(grad(penalty)(x[0]), _second)
# without create_graph, torch.autograd.grad silently ends the gradient
_ended = grad(lambda t: torch.autograd.grad(net(t).sum(), t)[0].norm())(x[0])
assert not _ended.any() and _second.any()
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_functions_functions_and_transforms.py`: a custom Function inside of ``grad``.
# - :ref:`sphx_glr_gallery_differentiation_jacobian_and_hessian.py`: ``jacrev``, ``jacfwd`` and what they cost.
# - In PyTorch's reference: `torch.func.grad <https://docs.pytorch.org/docs/stable/generated/torch.func.grad.html>`__ and
#   `its limits <https://docs.pytorch.org/docs/stable/func.ux_limitations.html>`__.
