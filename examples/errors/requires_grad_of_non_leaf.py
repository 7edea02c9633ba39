r"""
you can only change requires_grad flags of leaf variables
=========================================================

.. index::
   ! single: freezing a layer by its output raises
   ! single: requires_grad = False on the result of a computation
   ! single: image.requires_grad = True fails in the second step of an attack
   ! single: loss.requires_grad = True raises

.. in-short::

   Autograd recorded how this tensor was computed. You can change ``requires_grad`` only on leaves, which are tensors without a
   ``grad_fn``. To stop the gradient, use ``detach()``. To freeze a layer, set the flag on its parameters.

   .. code-block:: diff

      - features.requires_grad = False
      - loss = head(features).mean()
      + loss = head(features.detach()).mean()

   **Not this:** ``features.detach_()``. It can break what was computed from ``features`` before.
"""

# %%
# The code that raises it
# -----------------------

import torch
from torch import nn

# sphinx_gallery_start_ignore
# isort: split
import functools

try:
    # sphinx_gallery_end_ignore
    torch.manual_seed(0)
    body, head = nn.Linear(3, 4), nn.Linear(4, 1)
    x = torch.randn(2, 3)

    features = body(x)
    features.requires_grad = False
    loss = head(features).mean()
# sphinx_gallery_start_ignore
except RuntimeError as error:
    message = str(error)
    print("RuntimeError:", message)
assert message.startswith("you can only change requires_grad flags of leaf variables.")


def _said(call):
    """The message of a call, or nothing."""
    try:
        call()
    except RuntimeError as error:
        return str(error)
    return ""


assert _said(lambda: features.requires_grad_(False)) == message
_loss = body(x).mean()
assert (
    _said(lambda: setattr(_loss, "requires_grad", True))
    == (message.partition(" If you")[0])
)
_loss.backward()
assert torch.allclose(body.weight.grad, x.mean(0).expand(4, 3) / 4, atol=1e-6)
body.zero_grad()
_w = nn.Parameter(torch.ones(2))
assert _said(lambda: setattr(_w.clone(), "requires_grad", False)) == message
for _part in (_w[0], nn.Embedding(10, 4).weight[:3]):
    assert _said(lambda p=_part: setattr(p, "requires_grad", False)) == message
_input = torch.cat([_w, torch.ones(1)])  # requires grad, so autograd.grad takes it
assert _said(lambda: setattr(_input, "requires_grad", True)) in message
assert torch.autograd.grad(_input.square().sum(), _input)[0].tolist() == [2, 2, 2]
_online = nn.Linear(3, 4)
for _recorded in (True, False):
    _target = nn.Linear(3, 4).requires_grad_(False)
    with torch.set_grad_enabled(_recorded):
        for _slow, _fast in zip(
            _target.parameters(), _online.parameters(), strict=True
        ):
            _slow.mul_(0.9).add_(_fast, alpha=0.1)
    assert _target.weight.is_leaf != _recorded
    _found = [n for n, p in _target.named_parameters() if not p.is_leaf]
    assert _found == ["weight", "bias"] * _recorded
    assert _said(lambda m=_target: m.requires_grad_(False)) == message * _recorded
# sphinx_gallery_end_ignore

# %%
# The line that raises tells what you want:
#
# .. list-table::
#    :header-rows: 1
#    :widths: 44 56
#
#    * - the line
#      - what to do
#    * - ``features.requires_grad = False``
#      - ``detach()``, as below
#    * - ``layer.weight.requires_grad = False``
#      - The weight is computed: see below. In MAML, leave it out of the inner update: freezing stops the outer gradient, too.
#        With FSDP, set the flag before wrapping, and pass ``use_orig_params=True``.
#    * - the same, in ``forward``, with ``nn.DataParallel``
#      - The weights there are copies. Set the flag on ``model.module``, outside of ``forward``.
#    * - ``target.requires_grad_(False)``, on a model
#      - Print ``[n for n, p in target.named_parameters() if not p.is_leaf]``, and put ``torch.no_grad()`` around what writes
#        these, often a moving average.
#    * - ``embedding.weight[:3].requires_grad = False``
#      - Freeze some rows: see :ref:`freezing <sphx_glr_gallery_modes_freezing.py>`.
#    * - ``image.requires_grad = True`` in a loop of an attack
#      - ``image.detach().requires_grad_()``, see below.
#    * - ``loss.requires_grad = True``
#      - Delete it: this loss has a graph. If others have none, see :ref:`sphx_glr_gallery_errors_no_grad_fn.py`.
#    * - ``s.requires_grad = True``
#      - Delete it: a result requires grad already. To read ``s.grad``, call ``s.retain_grad()`` before ``backward``.
#
# Why
# ---
# ``features`` requires grad because the parameters of ``body`` do. Its ``grad_fn`` leads to them:

loss = head(features).mean()

# graph: loss -- The loss reaches body's parameters through features: a flag on features would not remove that path

print("features.grad_fn:", features.grad_fn.name())

# sphinx_gallery_start_ignore
assert features.grad_fn.name() == "AddmmBackward0"
# sphinx_gallery_end_ignore

# %%
# The fix
# -------
# **Stop the gradient at this point.** Give ``features.detach()`` only to the use that you want to stop, such as the
# discriminator of a GAN. ``features`` itself keeps its graph for the others.

features = body(x)
loss = head(features.detach()).mean()
loss.backward()
print("body:", body.weight.grad, " head:", head.weight.grad)

# sphinx_gallery_start_ignore
assert body.weight.grad is None and head.weight.grad is not None
_features = body(x)
_loss = head(_features.detach()).mean() + _features.mean()
assert torch.allclose(
    torch.autograd.grad(_loss, body.weight)[0],
    torch.autograd.grad(body(x).mean(), body.weight)[0],
)
# sphinx_gallery_end_ignore

# %%
# **Freeze a layer.** Set the flag of its parameters before the forward pass. The gradient still goes through the layer to the
# layers before it. In the middle of training, set their ``.grad`` to ``None``, too. Batch norm and spectral norm also need
# ``eval()`` after each ``model.train()``.

body, head = nn.Linear(3, 4), nn.Linear(4, 1)
head.requires_grad_(False)
head(body(x)).mean().backward()
print("body:", body.weight.grad is not None, " head:", head.weight.grad is not None)

# sphinx_gallery_start_ignore
assert body.weight.grad is not None and head.weight.grad is None
for _none in (True, False):  # frozen after two of four steps
    with torch.random.fork_rng():
        _body, _head, _past = nn.Linear(3, 4), nn.Linear(4, 1), []
    _optimizer = torch.optim.SGD(
        [*_body.parameters(), *_head.parameters()],
        lr=0.1,
        momentum=0.9,
        weight_decay=0.1,
    )
    for _step in range(4):
        if _step == 2:
            _head.requires_grad_(False)
            for _parameter in _head.parameters():
                _parameter.grad = None if _none else _parameter.grad
        _optimizer.zero_grad(set_to_none=False)
        _head(_body(x)).mean().backward()
        _optimizer.step()
        _past.append(_head.weight.detach().clone())
    assert torch.equal(_past[1], _past[3]) == _none
with torch.random.fork_rng():
    for _normed in (
        nn.BatchNorm1d(3),
        nn.utils.spectral_norm(nn.Linear(3, 4)),
        nn.utils.parametrizations.spectral_norm(nn.Linear(3, 4)),
    ):
        for _mode, _moves in ((True, True), (False, False)):
            _normed.train(_mode).requires_grad_(False)
            _start = {
                name: value.clone() for name, value in _normed.state_dict().items()
            }
            for _ in range(2):
                _normed(torch.randn(8, 3))
            _same = map(torch.equal, _start.values(), _normed.state_dict().values())
            assert all(_same) != _moves
from torch.nn.utils import parametrizations, prune

for _computed in (
    parametrizations.weight_norm(nn.Linear(3, 4)),
    prune.l1_unstructured(nn.Linear(3, 4), "weight", 0.5),
):
    _set = functools.partial(setattr, _computed.weight, "requires_grad", False)
    assert _said(_set) == message
    _computed.requires_grad_(False)
    assert not _computed(x).requires_grad
_slopes = {}
for _way in ("left out", "frozen"):  # an inner step that spares the first weight
    _first, _last = (torch.full((2,), c, requires_grad=True) for c in (2.0, 3.0))
    _first.requires_grad_(_way != "frozen")
    _inner = (_first * _last).sum().square()
    (_slope,) = torch.autograd.grad(_inner, _last, create_graph=True)
    _outer = (_first * (_last - 0.1 * _slope)).sum()
    _outer.backward()
    _slopes[_way] = _first.grad, _last.grad
assert _slopes["frozen"][0] is None and _slopes["left out"][0].any()
assert torch.equal(_slopes["frozen"][1], _slopes["left out"][1])
# sphinx_gallery_end_ignore

# %%
# **A weight is computed,** by ``weight_norm`` or pruning. Freeze what it is computed from: ``layer.requires_grad_(False)``,
# which freezes the bias, too. If it is fastai that sets the flag, update fastai.
#
# **Attack an image in a loop.** In the second round the image is a result of the first, so
# assigning ``True`` raises:

# sphinx_gallery_start_ignore
raised = []
try:
    # sphinx_gallery_end_ignore
    model = nn.Sequential(body, head)
    image = torch.rand(1, 3)
    for _ in range(2):
        image.requires_grad = True
        model(image).sum().backward()
        image = image + 0.1 * image.grad
# sphinx_gallery_start_ignore
except RuntimeError as error:
    raised.append(str(error))
    print("RuntimeError:", error)
assert raised == [message.partition(" If you")[0]] and image.grad_fn is not None
# sphinx_gallery_end_ignore

# %%
# Make it a leaf first. ``torch.autograd.grad`` leaves the ``.grad`` of the model's parameters as it is:

image = torch.rand(1, 3)
for _ in range(2):
    image = image.detach().requires_grad_()
    score = model(image).sum()
    (slope,) = torch.autograd.grad(score, image)
    print(f"score {score.item():.4f}")
    image = image + 0.1 * slope

# sphinx_gallery_start_ignore
for _copied in (True, False):
    _original = torch.full((1, 3), 0.5)
    _image = _original.detach()
    _image = (_image.clone() if _copied else _image).requires_grad_()
    model(_image).sum().backward()
    torch.optim.SGD([_image], lr=0.1).step()
    assert torch.equal(_image, _original) != _copied
assert model(image) > score  # the model is linear, and each round goes up its slope
_image = torch.rand(1, 3).requires_grad_()
_start = _image.detach().clone()
_optimizer = torch.optim.SGD([_image], lr=0.1)
for _inside, _moves in ((True, False), (False, True)):
    _leaf = _image.detach().requires_grad_() if _inside else _image
    _optimizer.zero_grad()
    model(_leaf).sum().backward()
    _optimizer.step()
    assert torch.equal(_image, _start) != _moves
# sphinx_gallery_end_ignore

# %%
# If an optimizer changes the image, make the leaf once before it: ``image.detach().clone().requires_grad_()``. Without
# ``clone()``, it changes the original, too.
#
# What not to do
# --------------
# **Detach in place.** ``detach_()`` turns ``features`` itself into a leaf. If an operation that used ``features`` before has
# saved it, its backward may raise, as that of ``square()``:

# sphinx_gallery_start_ignore
raised = []
try:
    # sphinx_gallery_end_ignore
    features = body(x)
    penalty = features.square().mean()
    features.detach_()
    penalty.backward()
# sphinx_gallery_start_ignore
except RuntimeError as error:
    raised.append(str(error))
    print("RuntimeError:", error)
assert len(raised) == 1 and "detached in-place" in raised[0]
# sphinx_gallery_end_ignore

# %%
# If none of them has saved it, nothing is raised, and two equal lines give different results:

features = body(x)
before = features.mean()
features.detach_()
after = features.mean()
print("before:", before.requires_grad, " after:", after.requires_grad)

# sphinx_gallery_start_ignore
assert before.requires_grad and not after.requires_grad
# sphinx_gallery_end_ignore

# %%
# **Call** ``requires_grad_(True)`` **on features.** It raises nothing and changes nothing: they are not a leaf, and their
# ``.grad`` stays ``None``.

features = body(x)
features.requires_grad_(True)
kept = body(x)
kept.retain_grad()
(features + kept).mean().backward()
print("is_leaf:", features.is_leaf, " kept.grad:", kept.grad is not None)

# sphinx_gallery_start_ignore
assert not features.is_leaf and not features.retains_grad and kept.grad is not None
# sphinx_gallery_end_ignore

# %%
# Messages that are close to this one
# -----------------------------------
# Inside of ``torch.func.grad`` you do not set the flag. Its ``argnums`` says what is differentiated.

# sphinx_gallery_start_ignore
raised = []
try:
    # sphinx_gallery_end_ignore
    torch.func.grad(lambda x: x.requires_grad_().sum())(torch.ones(2))
# sphinx_gallery_start_ignore
except RuntimeError as error:
    raised.append(str(error))
    print("RuntimeError:", error)
assert len(raised) == 1
assert raised[0].startswith("You are attempting to call Tensor.requires_grad_()")
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_graphs_leaves_and_roots.py`
# - :ref:`sphx_glr_gallery_modes_freezing.py`
# - In PyTorch's reference: `Tensor.requires_grad_
#   <https://docs.pytorch.org/docs/stable/generated/torch.Tensor.requires_grad_.html>`__.
