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
# isort: split
import copy

import torch.utils.checkpoint

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
# ``index 0``: the first tensor that you ask for.
#
# Why
# ---
# ``grad`` walks back from the result ``u``, and meets ``points``. ``x`` was computed from ``points``, too, but ``u`` was not
# computed from ``x``:

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


def _cut(forward, later=lambda tensor: tensor):
    tensor = torch.rand(5, 2, requires_grad=True)
    made = tensor * 1
    result = net(forward(made)).sum()
    return _says(lambda: torch.autograd.grad(result, later(made)))


_plain = [torch.detach, lambda x: torch.tensor(x.tolist()), lambda x: x.long().float()]
for _forward in (*_plain, lambda x: x.argmax(dim=1, keepdim=True).expand(5, 2).float()):
    assert _cut(_forward) == message
assert _cut(lambda x: x, lambda x: (x, x + 1)[0]) == ""
assert _cut(lambda x: x) == "" and _cut(lambda x: x, lambda x: x.add_(1)) == message
_middle = torch.rand(5, 2, requires_grad=True)
_normal = torch.distributions.Normal(_middle, 1.0)
assert (
    _says(lambda: torch.autograd.grad(net(_normal.sample()).sum(), _middle)) == message
)
assert not _says(lambda: torch.autograd.grad(net(_normal.rsample()).sum(), _middle))
_table, _ids = nn.Embedding(5, 2), torch.tensor([0, 3])
_found = _table(_ids)
assert torch.autograd.grad(net(_found).sum(), _found)[0].any()
_inner = nn.Linear(2, 2)


def _stored(reentrant):
    run = torch.utils.checkpoint.checkpoint(_inner, points, use_reentrant=reentrant)
    return _says(lambda: torch.autograd.grad(net(run).sum(), _inner.weight))


assert _stored(True) == message and not _stored(False)
# sphinx_gallery_end_ignore

# %%
# .. list-table::
#    :header-rows: 1
#    :widths: 54 46
#
#    * - what the program does
#      - what to do
#    * - the forward pass uses ``no_grad``, ``x.detach()``, ``x.item()`` or ``torch.tensor(x)``
#      - use ``x``
#    * - ``x = x.clone()``, ``x.double()`` or ``x += 1`` after the forward pass
#      - ask for the earlier ``x``; write ``y = x + 1``
#    * - ``x.long()``, ``argmax`` or ``dist.sample()`` on the way
#      - ask for the embedding's output; ``dist.rsample()``
#    * - ``deepcopy(model)``, ``optimizer.step()`` or ``load_state_dict`` on the way (MAML, LSTM too)
#      - compute the new weights, as below
#    * - ``checkpoint(..., use_reentrant=True)`` around a parameter
#      - ``use_reentrant=False``; in MAML, :ref:`outside <sphx_glr_gallery_errors_checkpoint_without_gradients.py>`
#    * - ``nn.DataParallel`` returns ``x``
#      - compute the penalty in ``forward``
#    * - you ask for the parameters of an FSDP model
#      - ``backward()``, then their ``.grad``
#
# **To find the line** that loses ``x``, print this after each line. The first False is the one:


def reaches(h, x):
    if not h.requires_grad:
        return False
    (g,) = torch.autograd.grad(h.sum(), x, retain_graph=True, allow_unused=True)
    return g is not None


h = net[0](points)
print("after the layer: ", reaches(h, points))
h = torch.tanh(h.detach())
print("after detach():  ", reaches(h, points))


# sphinx_gallery_start_ignore
def _found(*lines):
    x = h = torch.rand(5, 2, requires_grad=True)
    reached = [reaches(h := line(h), x) for line in lines]
    assert reached == sorted(reached, reverse=True)
    return reached.index(False)


def _without(x):
    with torch.no_grad():
        return x * 2


for _line in (*_plain, lambda x: x.argmax(1, keepdim=True).expand(5, 2), _without):
    assert _found(torch.exp, _line, lambda x: net[0](x.float()), torch.tanh) == 1
assert reaches(net(points), points) and not reaches(net(points), points[:, :1])
assert reaches(net[0](points), points) and not reaches(h, points)
_chunks = [c * 1 for c in points.chunk(2)]  # as DataParallel scatters
_results = torch.cat([net(c) for c in _chunks])
assert _says(lambda: torch.autograd.grad(_results.sum(), torch.cat(_chunks))) == message
_penalties = [
    torch.autograd.grad(net(c).sum(), c, create_graph=True)[0].square().sum()
    for c in _chunks
]
_whole = torch.autograd.grad(net(points).sum(), points, create_graph=True)[0]
assert torch.allclose(sum(_penalties), _whole.square().sum())
_copy = copy.deepcopy(net)
assert _says(lambda: torch.autograd.grad(_copy(points).sum(), net[0].weight)) == message
# sphinx_gallery_end_ignore

# %%
# The fix
# -------
# **Compute the result from the tensor that you ask for.** A loss with ``u_x`` in it needs ``create_graph=True``. Of several
# outputs, take one: ``u[:, :1].sum()``.

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
# **If it is a parameter of a model,** print its name. This loss reaches one of two heads:

parts = nn.ModuleDict({name: nn.Linear(2, 2) for name in ("body", "a", "b")})
loss = parts["a"](parts["body"](points)).square().sum()

parameters = {n: p for n, p in parts.named_parameters() if p.requires_grad}
gradients = torch.autograd.grad(
    loss, parameters.values(), retain_graph=True, allow_unused=True
)
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
# If that is intended, remove them from ``parameters``, and ``zip`` the gradients with the rest (learn2learn:
# ``allow_unused=True``). If the derivative is zero, as that of ``u_x`` for a linear ``u``, pass ``materialize_grads=True``.
#
# **If an update of the weights is on the way,** a plain ``optimizer.step()`` does not record it. Compute the new weights:

decay = torch.tensor(0.1, requires_grad=True)
weights = dict(net.named_parameters())
loss = net(points).square().mean() + decay * net[0].weight.square().sum()
steps = torch.autograd.grad(loss, weights.values(), create_graph=True)
fast = {n: w - 0.1 * s for (n, w), s in zip(weights.items(), steps, strict=True)}
new_loss = torch.func.functional_call(net, fast, (points,)).square().mean()
print(torch.autograd.grad(new_loss, decay, retain_graph=True))


# sphinx_gallery_start_ignore
def _after(size, loaded=False):
    other = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1)).double()
    other.load_state_dict({n: w.double() for n, w in net.state_dict().items()})
    inputs = points.detach().double()
    first = other(inputs).square().mean() + size * other[0].weight.square().sum()
    optimizer = torch.optim.SGD(other.parameters(), lr=0.1)
    first.backward()
    optimizer.step()
    if loaded:
        other.load_state_dict(fast)
    return other(inputs).square().mean()


_slope = (_after(0.1 + 1e-4) - _after(0.1 - 1e-4)).item() / 2e-4
(_decay_grad,) = torch.autograd.grad(new_loss, decay, retain_graph=True)
assert abs(_decay_grad.item() - _slope) < 1e-5 and abs(_slope) > 1e-3
assert _says(lambda: torch.autograd.grad(_after(decay), decay)) == message
assert _says(lambda: torch.autograd.grad(_after(decay, loaded=True), decay)) == message
_steps = torch.autograd.grad(loss, weights.values(), retain_graph=True)  # no graph
_fast = {n: w - 0.1 * s for (n, w), s in zip(weights.items(), _steps, strict=True)}
_new = torch.func.functional_call(net, _fast, (points,)).square().mean()
assert _says(lambda: torch.autograd.grad(_new, decay)) == message
x, t = points[:, :1], points[:, 1:]
(u_x,) = torch.autograd.grad(net(points).sum(), x, allow_unused=True)
assert u_x is None
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
# A frozen parameter: leave it out, as above. An input: switch it on before the forward pass:

points = torch.rand(5, 2).requires_grad_()
u = net(points)
(gradient,) = torch.autograd.grad(u.sum(), points)

# sphinx_gallery_start_ignore
assert gradient.shape == (5, 2) and gradient.any()
_two = nn.Linear(2, 2)
(_of_one,) = torch.autograd.grad(_two(points)[:, :1].sum(), points)
(_of_both,) = torch.autograd.grad(_two(points).sum(), points)
assert torch.allclose(_of_one, _two.weight[0].expand(5, 2))
assert torch.allclose(_of_both, _two.weight.sum(0).expand(5, 2))
# MAML of an LSTM: the gradient through the new weights
_lstm, _rate = nn.LSTM(2, 3).double(), torch.tensor(0.1, requires_grad=True)
_of, _data = dict(_lstm.named_parameters()), torch.rand(4, 1, 2, dtype=torch.float64)
_steps = torch.autograd.grad(
    _lstm(_data)[0].square().sum(), _of.values(), create_graph=True
)


def _adapted(rate):
    new = {n: w - rate * g for (n, w), g in zip(_of.items(), _steps, strict=True)}
    return torch.func.functional_call(_lstm, new, (_data,))[0].square().sum()


(_by_rate,) = torch.autograd.grad(_adapted(_rate), _rate, retain_graph=True)
_slope = (_adapted(0.1 + 1e-5) - _adapted(0.1 - 1e-5)).item() / 2e-5
assert abs(_by_rate.item() - _slope) < 1e-4 * abs(_slope)
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_differentiation_gradients_of_intermediates.py`.
# - :ref:`sphx_glr_gallery_graphs_leaves_and_roots.py`.
# - `torch.autograd.grad <https://docs.pytorch.org/docs/stable/generated/torch.autograd.grad.html>`__ in PyTorch's reference.
