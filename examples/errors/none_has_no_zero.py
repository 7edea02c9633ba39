r"""
'NoneType' object has no attribute 'zero\_'
===========================================

.. index::
   ! single: w.grad.zero_() raises in a hand-written training loop
   ! single: the update w = w - lr * w.grad works once, then there is no gradient
   ! single: 'NoneType' object has no attribute 'data' in p.grad.data.zero_()
   ! single: 'NoneType' object has no attribute 'data' in m.bias.data.zero_()

.. in-short::

   ``w.grad`` is ``None``: this tensor has no gradient. After ``w = w - ...`` the name ``w`` is a computed tensor, and PyTorch
   keeps gradients for leaves. Change ``w`` in place instead.

   .. code-block:: diff

      - w = w - 0.1 * w.grad
      + with torch.no_grad():
      +     w -= 0.1 * w.grad
        w.grad.zero_()

   **Not this:** ``w = w - ...`` with ``if w.grad is not None:`` around ``zero_()``. The second step needs the gradient, too.
"""

# %%
# The code that raises it
# -----------------------

import torch

# sphinx_gallery_start_ignore
# isort: split
import warnings

from torch import nn

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    try:
        # sphinx_gallery_end_ignore
        w = torch.tensor([1.0, 2.0], requires_grad=True)

        for _ in range(3):
            loss = (w - 5).square().sum()
            loss.backward()
            w = w - 0.1 * w.grad
            w.grad.zero_()
    # sphinx_gallery_start_ignore
    except AttributeError as error:
        message = str(error)
        print("AttributeError:", message)
assert message == "'NoneType' object has no attribute 'zero_'"
assert ["not a leaf" in str(w.message) for w in caught] == [True]
# sphinx_gallery_end_ignore

# %%
# Above the error there may be a warning that :ref:`the .grad attribute of a Tensor that is not a leaf Tensor
# <sphx_glr_gallery_errors_grad_of_non_leaf.py>` is being accessed. Then ``w`` was computed, as here.
#
# If your line is ``m.bias.data.zero_()`` or ``init.zeros_(m.bias)``, the layer has no bias: write ``if m.bias is not None:``
# before it.
#
# Why
# ---
# ``w - 0.1 * w.grad`` makes a new tensor, and ``w =`` gives it the old name. The gradient is in the old tensor, and the new one
# has none.

old = torch.tensor([1.0, 2.0], requires_grad=True)
(old - 5).square().sum().backward()
w = old - 0.1 * old.grad

# graph: w -- After one step, w is the result of a subtraction, and the leaf behind it is the old w

print("old:", old.grad, "  leaf:", old.is_leaf)
print("w:  ", w.grad_fn.name(), "  leaf:", w.is_leaf)

# sphinx_gallery_start_ignore
assert old.is_leaf and old.grad.tolist() == [-8, -6] and not w.is_leaf
with torch.no_grad():
    _new = old - 0.1 * old.grad
assert _new.is_leaf and not _new.requires_grad and _new.grad is None
for _in_place in (True, False):  # as in MAML: two steps, and the gradient by the start
    _start = torch.tensor(2.0, requires_grad=True)
    _fast = _start
    for _ in range(2):
        (_slope,) = torch.autograd.grad(_fast**2, _fast, create_graph=True)
        if _in_place:
            with torch.no_grad():
                _fast -= 0.1 * _slope
        else:
            _fast = _fast - 0.1 * _slope
    assert torch.isclose(_fast, torch.tensor(2 * 0.8**2))
    (_meta,) = torch.autograd.grad(_fast**2, _start)
    assert torch.isclose(_meta, 2 * _fast * (1 if _in_place else 0.8**2))
# sphinx_gallery_end_ignore

# %%
# How to find the cause
# ---------------------
# Print ``w.is_leaf`` and ``w.requires_grad`` in front of the line that raises:
#
# - ``False``, ``True``: ``w`` was computed. If an update did it, write ``w -= ...`` under ``no_grad()``, as below. In MAML,
#   keep the result, and use ``torch.autograd.grad(loss, w, create_graph=True)`` instead of ``w.grad``. If it was computed when
#   it was made, by ``.to(device)`` or ``* 0.01``, make it without ``requires_grad=True``, and call ``requires_grad_()``, in a
#   module ``nn.Parameter(...)``, last. For an activation, call ``w.retain_grad()`` before ``backward()``.
# - ``True``, ``False``: often ``w = w - ...`` under ``no_grad()``. Write ``w -= ...`` there. If nothing has changed ``w`` yet,
#   it is frozen, so skip it, or it was made without ``requires_grad=True``.
# - ``True``, ``True``: often no ``backward()`` has run yet, the loss does not depend on ``w``, or ``zero_grad()`` set the
#   gradient to ``None``. ``torch.autograd.grad`` returns gradients and does not write ``w.grad``. After
#   ``.detach().requires_grad_()``, ``w`` is a new leaf: delete the line with ``zero_()``.

w = torch.ones(2, requires_grad=True) * 0.01
print(w.is_leaf, w.requires_grad)
w = (torch.ones(2) * 0.01).requires_grad_()
print(w.is_leaf, w.requires_grad)

# sphinx_gallery_start_ignore
assert (w.is_leaf, w.requires_grad) == (True, True)
_raised = []
_w = torch.tensor([1.0, 2.0], requires_grad=True)
try:
    for _ in range(3):
        (_w - 5).square().sum().backward()
        with torch.no_grad():
            _w = _w - 0.1 * _w.grad
        assert (_w.is_leaf, _w.requires_grad) == (True, False)
        _w.grad.zero_()
except AttributeError as error:
    _raised.append(str(error))
assert _raised == [message]
_kept = torch.ones(2, requires_grad=True) * 0.01
assert not _kept.requires_grad_().is_leaf  # so requires_grad=True has to go
assert torch.autograd.grad(w.sum(), w)[0].tolist() == [1, 1] and w.grad is None
_w, _same = (torch.tensor([1.0, 2.0], requires_grad=True) for _ in range(2))
for _ in range(3):  # a new leaf in each step, without zero_()
    (_w - 5).square().sum().backward()
    _w = (_w - 0.1 * _w.grad).detach().requires_grad_()
    assert (_w.is_leaf, _w.requires_grad, _w.grad) == (True, True, None)
    (_same - 5).square().sum().backward()
    with torch.no_grad():
        _same -= 0.1 * _same.grad
    _same.grad.zero_()
assert torch.allclose(_w, _same)


def _attack(in_place, keep=lambda image: image.data):
    """How far do five steps go from the original image? They may go 0.2 far."""
    torch.manual_seed(0)
    network, original = nn.Linear(4, 2), torch.rand(3, 4)
    image = original.clone()
    start = keep(image)
    image.requires_grad_()
    for _ in range(5):
        loss = nn.functional.cross_entropy(network(image), torch.tensor([0, 1, 0]))
        loss.backward()
        if in_place:
            with torch.no_grad():
                image += 0.1 * image.grad.sign()
                image.copy_(start + (image - start).clamp(-0.2, 0.2))
            image.grad.zero_()
        else:
            image = image + 0.1 * image.grad.sign()
            image = start + (image - start).clamp(-0.2, 0.2)
            image = image.detach().requires_grad_()
    return round((image - original).abs().max().item(), 2)


assert _attack(in_place=False) == 0.2 and _attack(in_place=True) == 0.5
assert _attack(in_place=True, keep=lambda image: image.detach().clone()) == 0.2


def _path(keep):
    """The first number of w before each of three steps that change it in place."""
    w, path = torch.tensor([1.0, 2.0], requires_grad=True), []
    for _ in range(3):
        path.append(keep(w))
        (w - 5).square().sum().backward()
        with torch.no_grad():
            w -= 0.1 * w.grad
        w.grad.zero_()
    return [round(float(point[0]), 2) for point in path]


assert _path(lambda w: w.detach().clone()) == [1, 1.8, 2.44]
for _keep in (lambda w: w.data, lambda w: w.detach().numpy()):  # one memory
    assert _path(_keep) == [2.95] * 3


class _Own(nn.Module):
    def __init__(self, make):
        super().__init__()
        self.w = make(torch.ones(2))


assert not [*_Own(lambda w: nn.Parameter(w).to(torch.float64)).parameters()]
assert not [*_Own(lambda w: w.to(torch.float64).requires_grad_()).parameters()]
assert len([*_Own(lambda w: nn.Parameter(w.to(torch.float64))).parameters()]) == 1
_hidden = torch.ones(2, requires_grad=True) * 3
_hidden.retain_grad()
_hidden.square().sum().backward()
assert _hidden.grad.tolist() == [6, 6]
_layer = nn.Conv2d(1, 1, 1, bias=False)
for _init in (lambda: _layer.bias.data.zero_(), lambda: nn.init.zeros_(_layer.bias)):
    try:
        _init()
    except AttributeError as error:
        _raised.append(str(error))
assert _raised[1:] == [message.replace("zero_", "data"), message]
_made = torch.ones(2, requires_grad=True) * 0.01
assert (_made.is_leaf, _made.requires_grad) == (False, True)
_moved = torch.randn(2, requires_grad=True).to(torch.float64)
assert (_moved.is_leaf, _moved.requires_grad) == (False, True)
assert (_new.is_leaf, _new.requires_grad) == (True, False)
# sphinx_gallery_end_ignore

# %%
# The fix
# -------
# **You update by hand.** Write into ``w`` while nothing is recorded. This also changes what you kept of it, as ``w.data`` or
# ``w.detach().numpy()``. For a plot, or the original in an attack, keep ``w.detach().clone()``.

w = torch.tensor([1.0, 2.0], requires_grad=True)

for _ in range(12):
    loss = (w - 5).square().sum()
    loss.backward()
    with torch.no_grad():
        w -= 0.1 * w.grad
    w.grad.zero_()
print(w)

# sphinx_gallery_start_ignore
assert w.is_leaf and w.requires_grad and (w > 4.7).all()
w = torch.tensor([1.0, 2.0], requires_grad=True)
w.grad = None  # before the first backward
# sphinx_gallery_end_ignore

# %%
# **zero_() comes before the first backward().** Use ``w.grad = None`` instead of ``w.grad.zero_()``. It works before the first
# ``backward()``, too.
#
# **There is an optimizer.** Since PyTorch 2.0, its ``zero_grad()`` sets the gradients to ``None``. Older code that then writes
# to them raises:

from torch import nn

# sphinx_gallery_start_ignore
raised = []
try:
    # sphinx_gallery_end_ignore
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    for p in model.parameters():
        p.grad.data.zero_()
# sphinx_gallery_start_ignore
except AttributeError as error:
    raised.append(str(error))
    print("AttributeError:", error)
assert raised == ["'NoneType' object has no attribute 'data'"]
assert all(p.grad is None for p in model.parameters())
# sphinx_gallery_end_ignore

# %%
# Delete the loop: ``zero_grad()`` alone is enough, if the optimizer has all of these parameters. Code that reads or scales
# gradients belongs between ``backward()`` and ``step()``, with a scaler after ``scaler.unscale_(optimizer)``. Skip parameters
# without a gradient. In a vector of all gradients, or before ``all_reduce``, put ``torch.zeros_like(p)`` there. From a
# library's optimizer, leave them out.

model.bias.requires_grad_(False)
model(torch.ones(1, 2)).sum().backward()
print([p.grad.norm() for p in model.parameters() if p.grad is not None])
optimizer.zero_grad()

# sphinx_gallery_start_ignore
assert model.weight.grad is None and model.bias.grad is None


def _stepped(clips, scale=1.0, unscales=False):
    """What one step of SGD changes, if clips tells the places at which it clips."""
    layer = nn.Linear(2, 1, bias=False)
    before = layer.weight.detach().clone()
    sgd = torch.optim.SGD(layer.parameters(), lr=1.0)
    scaler = torch.amp.GradScaler("cpu", init_scale=scale)
    scaler.scale(3 * layer(torch.ones(1, 2)).sum()).backward()
    if unscales:
        scaler.unscale_(sgd)
    if "before the step" in clips:
        nn.utils.clip_grad_norm_(layer.parameters(), 0.1)
    scaler.step(sgd)
    if "after the step" in clips:
        nn.utils.clip_grad_norm_(layer.parameters(), 0.1)
    return (layer.weight - before).norm().item()


assert abs(_stepped("before the step") - 0.1) < 1e-4
assert _stepped("after the step") == _stepped("") > 4  # too late, and silent
assert abs(_stepped("before the step", 1024.0, unscales=True) - 0.1) < 1e-4
assert _stepped("before the step", 1024.0) < 1e-3  # clips the scaled gradient
_used, _unused = nn.Parameter(torch.ones(3)), nn.Parameter(torch.ones(2))
_both = [_unused, _used]
_used.square().sum().backward()
_joined = torch.cat([torch.zeros_like(p) if p.grad is None else p.grad for p in _both])
nn.utils.vector_to_parameters(
    nn.utils.parameters_to_vector(_both).detach() - 0.1 * _joined, _both
)
assert _unused.eq(1).all() and torch.allclose(_used, torch.tensor(0.8))
# What not to do: the second step fails where it needs the gradient.
raised = []
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    try:
        w = torch.tensor([1.0, 2.0], requires_grad=True)
        for _ in range(3):
            loss = (w - 5).square().sum()
            loss.backward()
            w = w - 0.1 * w.grad
            if w.grad is not None:
                w.grad.zero_()
    except TypeError as error:
        raised.append(str(error))
assert raised == ["unsupported operand type(s) for *: 'float' and 'NoneType'"]
assert torch.allclose(w, torch.tensor([1.8, 2.6]))  # after one step
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_graphs_why_is_grad_none.py`: the other reasons for ``None``.
# - :ref:`sphx_glr_gallery_errors_leaf_in_place.py`: the error if ``no_grad()`` is missing.
# - :ref:`sphx_glr_gallery_training_fit_by_hand.py`: the whole loop by hand.
# - In PyTorch's reference: `Optimizer.zero_grad
#   <https://docs.pytorch.org/docs/stable/generated/torch.optim.Optimizer.zero_grad.html>`__.
