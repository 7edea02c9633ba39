r"""
appears to not have been used in the graph
==========================================

.. index::
   ! single: torch.autograd.grad returns None for an input
   ! single: gradient with respect to a slice or a copy of the input
   ! single: One of the differentiated Tensors does not require grad

.. in-short::

   You asked ``torch.autograd.grad`` for the gradient of a tensor from which the result was not computed. Often it is a slice or
   a copy of the right tensor. Compute the result from the tensor that you ask for, or ask for the one that was used.

   .. code-block:: diff

        x, t = points[:, :1], points[:, 1:]
      - u = net(points)
      + u = net(torch.cat([x, t], dim=1))
        (u_x,) = torch.autograd.grad(u.sum(), x, create_graph=True)

   **Not this:** ``allow_unused=True``, as the message suggests. The gradient is then ``None``.
"""

# %%
# The code that raises it
# -----------------------

import torch
from torch import nn

# sphinx_gallery_start_ignore
try:
    # sphinx_gallery_end_ignore
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1))
    points = torch.rand(5, 2, requires_grad=True)

    x, t = points[:, :1], points[:, 1:]
    u = net(points)
    (u_x,) = torch.autograd.grad(u.sum(), x, create_graph=True)
# sphinx_gallery_start_ignore
except RuntimeError as error:
    message = str(error)
    print("RuntimeError:", message)
assert message.startswith("The differentiated Tensor at index 0 appears to not have ")


def _says(function):
    try:
        function()
    except RuntimeError as error:
        return str(error)
    return ""


assert _says(lambda: torch.autograd.grad(u.sum(), [points, x])) == message.replace(
    "index 0", "index 1"
)
# sphinx_gallery_end_ignore

# %%
# ``index 0`` is the first of the tensors that you ask for.
#
# Why
# ---
# ``grad`` walks from the result ``u`` back to the tensor that you ask for, and meets ``points`` on the way. ``x`` was computed
# from ``points`` too, but nothing in ``u`` was computed from ``x``. A small example:

point = torch.tensor([1.0, 2.0], requires_grad=True)
first = point[0]
loss = (point**2).sum()

# graph: loss, first -- Two branches of point: no path leads from loss back to first

# sphinx_gallery_start_ignore
assert _says(lambda: torch.autograd.grad(loss, first)) == message


def _copied(copy):
    tensor = torch.rand(5, 2, requires_grad=True)
    u = net(tensor)
    return _says(lambda: torch.autograd.grad(u.sum(), copy(tensor)))


for _copy in (torch.clone, torch.Tensor.double, lambda tensor: tensor.view(5, 2)):
    assert _copied(_copy) == message
_cut = torch.rand(5, 2, requires_grad=True)
_u = net(_cut.detach())
assert _says(lambda: torch.autograd.grad(_u.sum(), _cut)) == message
# sphinx_gallery_end_ignore

# %%
# The message also comes if you ask for a ``points.clone()`` or ``points.double()`` made after the forward pass, or if the
# forward pass used ``points.detach()``.
#
# The fix
# -------
# **Compute the result from the tensor that you ask for.** Slice first, and give the slices to the network. A loss with
# ``u_x`` in it needs ``create_graph=True``.

x, t = points[:, :1], points[:, 1:]
u = net(torch.cat([x, t], dim=1))
(u_x,) = torch.autograd.grad(u.sum(), x, create_graph=True)
print("u_x:", u_x.detach().flatten())

# %%
# **Or ask for the tensor that was used,** and slice its gradient. ``[:, :1]`` keeps the shape of ``u``:

u = net(points)
(gradient,) = torch.autograd.grad(u.sum(), points, create_graph=True)
print("u_x:", gradient[:, :1].detach().flatten())

# sphinx_gallery_start_ignore
assert torch.allclose(u_x, gradient[:, :1]) and u.shape == gradient[:, :1].shape
assert (u + gradient[:, 0]).shape == (5, 5)  # with [:, 0], and without a message


def _trains(residual):
    return torch.autograd.grad(residual.square().mean(), net[0].weight)[0]


_slices = _trains(u * gradient[:, :1] + gradient[:, 1:])
u = net(torch.cat([x, t], dim=1))
_asked = torch.autograd.grad(u.sum(), (x, t), create_graph=True)
assert torch.allclose(_slices, _trains(u * _asked[0] + _asked[1]))
_step = torch.zeros(5, 2)
_step[:, 0] = 1e-2
with torch.no_grad():
    _slope = (net(points + _step) - net(points - _step)) / 2e-2
assert torch.allclose(u_x, _slope, atol=1e-3)
# sphinx_gallery_end_ignore

# %%
# **If it is a parameter of a model,** find out its name before you decide. Here a loss reaches one of two heads:

parts = nn.ModuleDict({name: nn.Linear(2, 2) for name in ("body", "a", "b")})
loss = parts["a"](parts["body"](points)).square().sum()

parameters = {n: p for n, p in parts.named_parameters() if p.requires_grad}
gradients = torch.autograd.grad(loss, parameters.values(), allow_unused=True)
print([n for n, g in zip(parameters, gradients, strict=True) if g is None])

# sphinx_gallery_start_ignore
_unused = [n for n, g in zip(parameters, gradients, strict=True) if g is None]
assert _unused == ["b.weight", "b.bias"]
# A call without head a gives the gradients of b, and zip() with all parameters takes them for those of a.
_loss = parts["b"](parts["body"](points)).square().sum()
_used = {n: p for n, p in parameters.items() if not n.startswith("a.")}
_left = torch.autograd.grad(_loss, _used.values(), retain_graph=True)
_paired = dict(zip(_used, _left, strict=True))
for _name, _parameter in _used.items():
    (_one,) = torch.autograd.grad(_loss, _parameter, retain_graph=True)
    assert torch.equal(_one, _paired[_name])
_wrong = dict(zip(parameters, _left, strict=False))
assert torch.equal(_wrong["a.weight"], _paired["b.weight"]) and "b.weight" not in _wrong
parts["body"].requires_grad_(False)  # frozen
assert not _says(
    lambda: torch.autograd.grad(parts["a"](points).sum(), parts["a"].weight)
)
_frozen = {n: p for n, p in parts.named_parameters() if p.requires_grad}
assert list(_frozen) == ["a.weight", "a.bias", "b.weight", "b.bias"]
assert "does not require grad" in _says(
    lambda: torch.autograd.grad(
        parts["a"](parts["body"](points)).sum(), parts.parameters(), allow_unused=True
    )
)
_x = torch.rand(5, 1, requires_grad=True)
_u = nn.Linear(1, 1)(_x)
(_u_x,) = torch.autograd.grad(_u.sum(), _x, create_graph=True)
assert (
    _u_x.requires_grad
    and not torch.autograd.grad(points.exp().sum(), points)[0].requires_grad
)
assert _says(lambda: torch.autograd.grad(_u_x.sum(), _x, retain_graph=True)) == message
(_u_xx,) = torch.autograd.grad(_u_x.sum(), _x, materialize_grads=True)
assert _u_xx.tolist() == [[0]] * 5
# sphinx_gallery_end_ignore

# %%
# If that is intended, remove them from ``parameters``. If a second derivative raises the message because ``u`` is linear in
# ``x``, pass ``materialize_grads=True``: the derivative of ``u_x`` is zero.
#
# What not to do
# --------------
# **Pass** ``allow_unused=True`` **because the message says so.** The program then stops some lines below:

# sphinx_gallery_start_ignore
raised = []
try:
    # sphinx_gallery_end_ignore
    x, t = points[:, :1], points[:, 1:]
    u = net(points)
    (u_x,) = torch.autograd.grad(u.sum(), x, allow_unused=True)
    residual = u_x + u
# sphinx_gallery_start_ignore
except TypeError as error:
    raised.append(str(error))
    print("TypeError:", error)
assert len(raised) == 1 and u_x is None and "NoneType" in raised[0]
# sphinx_gallery_end_ignore

# %%
# A similar message
# -----------------
# ``One of the differentiated Tensors does not require grad``: ``requires_grad`` of a tensor that you ask for is off.

# sphinx_gallery_start_ignore
raised = []
try:
    # sphinx_gallery_end_ignore
    points = torch.rand(5, 2)
    u = net(points)
    (gradient,) = torch.autograd.grad(u.sum(), points)
# sphinx_gallery_start_ignore
except RuntimeError as error:
    raised.append(str(error))
    print("RuntimeError:", error)
assert raised == ["One of the differentiated Tensors does not require grad"]
_leaf = torch.ones(3, requires_grad=True)
_sum = (2 * _leaf).sum()
_leaf.requires_grad_(False)  # after the forward pass, too
assert _says(lambda: torch.autograd.grad(_sum, _leaf)) == raised[0]
# sphinx_gallery_end_ignore

# %%
# Switch it on before the forward pass:

points = torch.rand(5, 2).requires_grad_()
u = net(points)
(gradient,) = torch.autograd.grad(u.sum(), points)

# sphinx_gallery_start_ignore
assert gradient.shape == (5, 2) and gradient.any()
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_differentiation_gradients_of_intermediates.py`: gradients of any tensor on the way.
# - :ref:`sphx_glr_gallery_graphs_leaves_and_roots.py`: a slice or a copy of a leaf is another tensor.
# - `torch.autograd.grad <https://docs.pytorch.org/docs/stable/generated/torch.autograd.grad.html>`__ in PyTorch's reference.
