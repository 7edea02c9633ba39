r"""
The .grad attribute of a Tensor that is not a leaf Tensor is being accessed
===========================================================================

.. index::
   ! single: .grad is None
   ! single: requires_grad=True and .to(device), and there is no gradient
   ! single: gradient of an intermediate tensor or a hidden layer

.. in-short::

   You read ``.grad`` of a tensor that an operation computed, and ``backward()`` stores gradients in leaves. To make a leaf,
   call ``requires_grad_()`` last. To get the gradient of a result, call ``retain_grad()`` on it before ``backward()``.

   .. code-block:: diff

      - weight = torch.randn(3, requires_grad=True) * 0.1
      + weight = (torch.randn(3) * 0.1).requires_grad_()

   **Not this:** ``weight.requires_grad_()`` one line later. It is on already, and ``weight`` does not become a leaf.
"""

# %%
# The code that raises it
# -----------------------
# It is a warning, so the program goes on, with ``None`` instead of the gradient.

import torch

torch.manual_seed(0)

# sphinx_gallery_start_ignore
import copy
import warnings

from torch import nn
from torch.nn.utils import prune

shown = []


def _show(message, category, *_):
    shown.append(str(message))
    print(f"{category.__name__}: {shown[-1].partition(' (Triggered')[0]}")


with warnings.catch_warnings():
    warnings.simplefilter("always")
    warnings.showwarning = _show
    # sphinx_gallery_end_ignore
    weight = torch.randn(3, requires_grad=True) * 0.1
    x = torch.tensor([1.0, 2.0, 3.0])

    loss = (weight * x).sum().square()
    loss.backward()
    print("weight.grad is", weight.grad)
# sphinx_gallery_start_ignore
assert len(shown) == 1
assert shown[0].startswith("The .grad attribute of a Tensor that is not a leaf Tensor")


def _read(tensor):
    """The gradient, and whether reading it warns."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        gradient = tensor.grad
    assert all("that is not a leaf Tensor" in str(one.message) for one in caught)
    return gradient, bool(caught)


assert _read(weight) == (None, True)
_stopped = []
with warnings.catch_warnings():
    warnings.filterwarnings("error", "The .grad attribute")
    try:
        weight.grad
    except UserWarning as error:
        _stopped.append(str(error))
assert len(_stopped) == 1
# sphinx_gallery_end_ignore

# %%
# **If you do not know which line reads** ``.grad``, put this first into your program:
# ``warnings.filterwarnings("error", "The .grad attribute")``. The traceback ends at that line. If it is in a debugger or a
# logger, which read every tensor, your training is not affected.
#
# Why
# ---
# ``weight`` is the result of a multiplication. The leaf is the tensor before the multiplication, and no variable holds it. The
# gradient went there:

leaf = weight.grad_fn.next_functions[0][0].variable
print("weight.is_leaf:", weight.is_leaf)
print("leaf.is_leaf:  ", leaf.is_leaf, "  leaf.grad:", leaf.grad)

# graph: loss -- The gradient went past weight to a leaf that no variable holds

# sphinx_gallery_start_ignore
assert leaf.is_leaf and not weight.is_leaf
assert torch.allclose(leaf.grad, 0.1 * 2 * (weight * x).sum().detach() * x)
del leaf
for _leaf in (torch.ones(2, requires_grad=True), nn.Parameter(torch.ones(2))):
    assert _leaf.to("cpu") is _leaf and _leaf.float() is _leaf
    for _result in (
        _leaf.to("meta"),
        _leaf.double(),
        _leaf.clone(),
        _leaf.reshape(2, 1),
    ):
        assert not _result.is_leaf and _read(_result) == (None, True)
_doubles = torch.ones(2, dtype=torch.double, requires_grad=True)
assert _doubles.double() is _doubles
# sphinx_gallery_end_ignore

# %%
# ``to(device)``, ``double()``, ``reshape()`` and ``clone()`` are operations like ``* 0.1``. ``to`` and ``double`` return the
# tensor itself if there is nothing to convert. So ``torch.randn(3, requires_grad=True).to(device)`` gives a leaf only if
# ``device`` is the CPU.
#
# The fix
# -------
# **If the tensor should be a leaf,** call ``requires_grad_()`` last, after values, dtype and device.
# In a module, wrap last: ``nn.Parameter((torch.randn(3) * 0.1).to(device))``.

weight = (torch.randn(3) * 0.1).requires_grad_()
loss = (weight * x).sum().square()
loss.backward()
print("weight.is_leaf:", weight.is_leaf, "  weight.grad:", weight.grad)

# sphinx_gallery_start_ignore
assert torch.allclose(weight.grad, 2 * (weight * x).sum().detach() * x)
assert not _read(weight)[1] and nn.Parameter((torch.ones(3) * 0.1).to("meta")).is_leaf
assert not isinstance(nn.Parameter(torch.ones(3)).to("meta"), nn.Parameter)
assert torch.ones(3).to("meta").double().requires_grad_().is_leaf
# sphinx_gallery_end_ignore

# %%
# **If a step made it a result,** as ``weight = weight - lr * weight.grad`` does, change the leaf in place, under ``no_grad``:

lr = 0.01
for _ in range(3):
    loss = (weight * x).sum().square()
    weight.grad = None
    loss.backward()
    with torch.no_grad():
        weight -= lr * weight.grad
print("weight.is_leaf:", weight.is_leaf, f"  loss: {loss.item():.4f}")

# sphinx_gallery_start_ignore
assert weight.is_leaf and weight.grad is not None and not _read(weight)[1]
for _in_place in (True, False):  # a second loss, back through one step
    _start = torch.tensor(2.0, requires_grad=True)
    (_slope,) = torch.autograd.grad(_start**3, _start, create_graph=not _in_place)
    if _in_place:
        with torch.no_grad():
            _start -= 0.01 * _slope
    _fast = _start if _in_place else _start - 0.01 * _slope
    (_meta,) = torch.autograd.grad(_fast.square(), _start)
    assert torch.isclose(_fast, torch.tensor(1.88))
    assert torch.isclose(_meta, torch.tensor(3.76 if _in_place else 3.76 * 0.88))
    assert (_start == 2) != _in_place
_stepped = weight - lr * weight.grad
assert not _stepped.is_leaf and _read(_stepped.requires_grad_()) == (None, True)
_clean = torch.rand(2, 3)
_kept, _image = _clean.clone(), _clean.clone().requires_grad_()
for _ in range(2):
    nn.functional.softplus(_image @ x).sum().backward()
    _image = (_image + 0.1 * _image.grad.sign()).detach().requires_grad_()
assert torch.equal(_clean, _kept) and torch.allclose(_image, _clean + 0.2)


def _adversarial(kind):
    torch.manual_seed(1)
    net = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(net.parameters(), 0.1, momentum=0.9, weight_decay=0.01)
    for _ in range(2):
        optimizer.zero_grad()
        net(_clean).logsumexp(1).mean().backward()  # trained on both
        attacked = copy.deepcopy(net) if kind == "copy" else net
        image = _clean.clone().requires_grad_()
        for _ in range(2):
            loss = attacked(image).logsumexp(1).mean()
            if kind == "grad":
                (slope,) = torch.autograd.grad(loss, image)
            else:
                loss.backward()
                slope = image.grad
            image = (image + 0.1 * slope.sign()).detach().requires_grad_()
        if kind == "zero_grad":
            optimizer.zero_grad()
        net(image.detach()).logsumexp(1).mean().backward()
        optimizer.step()
    return net.weight.detach()


assert torch.allclose(_adversarial("grad"), _adversarial("copy"))
for _wrong in ("backward", "zero_grad"):  # which loses the clean images
    assert not torch.allclose(_adversarial(_wrong), _adversarial("copy"))
for _make in (nn.utils.parametrizations.weight_norm, nn.utils.spectral_norm):
    _layer = _make(nn.Linear(3, 2))
    _layer(x).square().sum().backward()
    assert _read(_layer.weight) == (None, True)
    assert all(p.grad is not None for _, p in _layer.named_parameters())
_layer = prune.l1_unstructured(nn.Linear(3, 2), "weight", amount=1)
_layer(x).square().sum().backward()
assert _read(_layer.weight) == (None, True) and _layer.weight_orig.grad is not None
# sphinx_gallery_end_ignore

# %%
# In MAML, where a second loss goes back through the step, keep the result, and use
# ``autograd.grad(loss, weight, create_graph=True)``. In an attack, ``(slope,) = autograd.grad(loss, x)`` leaves the gradients
# of the model alone. Then ``x = (x + eps * slope.sign()).detach().requires_grad_()``.
#
# **If it is a part of a leaf,** such as ``weight[0]``, read the same part of the gradient: ``weight.grad[0]``.
#
# **If weight norm, spectral norm or pruning computes** ``layer.weight``, the leaves are in ``layer.named_parameters()``.
#
# **If it is a result,** such as a hidden layer's output, call ``retain_grad()`` before ``backward()``. A ReLU after it needs
# ``inplace=False``. In a compiled model, call it in ``forward``. With a ``GradScaler``, divide by ``scaler.get_scale()`` before
# ``scaler.update()``:

from torch import nn

first, second = nn.Linear(3, 2), nn.Linear(2, 1)
hidden = torch.tanh(first(x))
hidden.retain_grad()
second(hidden).sum().backward()
print("hidden.grad:", hidden.grad)

# sphinx_gallery_start_ignore
assert torch.equal(hidden.grad, second.weight.detach()[0]) and not _read(hidden)[1]
assert first.weight.grad is not None
_scaler = torch.amp.GradScaler("cpu", init_scale=64.0)
_hidden = torch.tensor([-1.0, 1.0], requires_grad=True) * 2
_hidden.retain_grad()
_scaler.scale(_hidden.square().sum()).backward()
assert torch.equal(_hidden.grad / _scaler.get_scale(), 2 * _hidden.detach())
for _in_place in (True, False):
    _hidden = torch.tensor([-1.0, 1.0], requires_grad=True) * 2
    _hidden.retain_grad()
    nn.ReLU(inplace=_in_place)(_hidden).sum().backward()
    assert _hidden.grad.tolist() == ([1, 1] if _in_place else [0, 1])


def _retained(inside):
    def forward(x):
        hidden = torch.tanh(first(x))
        if inside:
            hidden.retain_grad()
        return second(hidden), hidden

    result, hidden = torch.compile(forward, backend="aot_eager")(x)
    if not inside:
        hidden.retain_grad()
    result.sum().backward()
    return hidden.grad


assert _retained(inside=False) is None  # a second copy of the result
_second = second.weight.detach()[0]
assert torch.allclose(_retained(inside=True), _second)
# sphinx_gallery_end_ignore

# %%
# Or ask for it with ``torch.autograd.grad``. If ``backward()`` comes after it, pass ``retain_graph=True``.

hidden = torch.tanh(first(x))
(gradient,) = torch.autograd.grad(second(hidden).sum(), hidden)
print("gradient:   ", gradient)

# sphinx_gallery_start_ignore
assert torch.equal(gradient, second.weight.detach()[0])
assert _read(hidden) == (None, True)
_part = weight[0]
assert _read(_part) == (None, True) and weight.grad[0].item() != 0
for _retain in (False, True):
    _loss = second(torch.tanh(first(x))).sum()
    torch.autograd.grad(_loss, second.weight, retain_graph=_retain)
    try:
        _loss.backward()
    except RuntimeError as error:
        assert not _retain and "a second time" in str(error)
    else:
        assert _retain
# sphinx_gallery_end_ignore

# %%
# **If your code reads** ``.grad`` **of every tensor,** ask first:

for name, tensor in {"first.weight": first.weight, "hidden": hidden}.items():
    if (tensor.is_leaf or tensor.retains_grad) and tensor.grad is not None:
        print(name, "has a gradient of shape", tuple(tensor.grad.shape))

# sphinx_gallery_start_ignore
assert first.weight.is_leaf and not hidden.is_leaf and not hidden.retains_grad
assert x.is_leaf and _read(x) == (None, False)  # an input, too, has no gradient
# sphinx_gallery_end_ignore

# %%
# What not to do
# --------------
# **Call** ``requires_grad_()`` **on the result,** or ``retain_grad()`` after ``backward()``. The first changes nothing. The
# second comes too late, and takes the warning away:

# sphinx_gallery_start_ignore
shown.clear()
with warnings.catch_warnings():
    warnings.simplefilter("always")
    warnings.showwarning = _show
    # sphinx_gallery_end_ignore
    weight = torch.randn(3, requires_grad=True) * 0.1
    weight.requires_grad_()
    (weight * x).sum().backward()
    weight.retain_grad()
    print("weight.is_leaf:", weight.is_leaf, "  weight.grad:", weight.grad)
# sphinx_gallery_start_ignore
assert shown == [] and not weight.is_leaf and _read(weight) == (None, False)
weight = (torch.randn(3, requires_grad=True) * 0.1).requires_grad_()
(weight * x).sum().backward()
assert _read(weight) == (None, True)
# sphinx_gallery_end_ignore

# %%
# **Detach in the middle of a model.** ``hidden.detach().requires_grad_()`` is a leaf and gets its gradient. But the layers
# before it learn nothing, and no message says so.

first.zero_grad()
hidden = torch.tanh(first(x)).detach().requires_grad_()
second(hidden).sum().backward()
print("hidden.grad:      ", hidden.grad)
print("first.weight.grad:", first.weight.grad)

# sphinx_gallery_start_ignore
assert hidden.grad is not None and _read(first.weight) == (None, False)
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_graphs_why_is_grad_none.py`.
# - :ref:`sphx_glr_gallery_differentiation_gradients_of_intermediates.py`.
