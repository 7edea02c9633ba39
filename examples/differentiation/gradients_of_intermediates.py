r"""
How to get the gradient of an intermediate tensor
=================================================

.. in-short::

   Call ``h.retain_grad()`` before ``loss.backward()``, then read ``h.grad``. Or ask for that gradient alone:
   ``torch.autograd.grad(loss, h)[0]``. Inside a model, a forward hook on the layer that returns ``h`` gives ``h`` to you. A
   tensor that you made after the loss, such as ``h[0]``, has no gradient: the loss never used it.
"""

# %%
# Three ways, in a few lines each
# -------------------------------
# You want the gradient at a place inside a network, but ``.grad`` is ``None`` there: backward computed it on its way, and then
# dropped it. **So ask for it before backward runs.** In this network, ``h`` is between two layers. (A *hook* is a function that
# PyTorch calls for you.)

import torch
from torch import nn

torch.manual_seed(0)
x, target = torch.randn(8, 3), torch.randn(8, 1)
encoder, head = nn.Linear(3, 4), nn.Linear(4, 1)


def compute():
    h = encoder(x).tanh()
    loss = nn.functional.mse_loss(head(h), target)
    return h, loss


h, loss = compute()
(gradient,) = torch.autograd.grad(loss, h)
print("autograd.grad:", gradient[0])  # of the first of eight samples

h, loss = compute()
seen = []
h.register_hook(seen.append)
loss.backward()
print("register_hook:", seen[0][0])

h, loss = compute()
h.retain_grad()
loss.backward()
print("retain_grad:  ", h.grad[0])

# graph: loss -- After backward: h keeps its gradient, as the weights and biases do

# sphinx_gallery_start_ignore
_right = 2 / 8 * (head(h) - target) * head.weight
assert torch.allclose(gradient, _right) and gradient.shape == (8, 4)
assert torch.equal(seen[0], gradient) and torch.equal(h.grad, gradient)
_w = encoder.weight
encoder.zero_grad()
_h, _loss = compute()
_visits = []
_h.grad_fn.register_prehook(lambda gradients: _visits.append(1))
torch.autograd.grad(_loss, _h, retain_graph=True)
assert _visits == [] and _w.grad is None
torch.autograd.grad(_loss, _w, retain_graph=True)
assert _visits == [1] and _w.grad is None
for _asked in (True, False):  # for h itself, and for a weight
    _h, _loss = compute()
    _h.retain_grad()
    _seen = []
    _h.register_hook(_seen.append)
    torch.autograd.grad(_loss, _h if _asked else _w)
    assert torch.equal(_h.grad, gradient) and torch.equal(_seen[0], gradient)
    assert _w.grad is None
# sphinx_gallery_end_ignore

# %%
# Which part of the picture made the score?
# -----------------------------------------
# To see what a network for pictures looked at, *Grad-CAM* needs the feature maps of a layer and the gradient of a score with
# respect to them. This network has a filter for vertical lines and one for horizontal lines:

model = nn.Sequential(
    nn.Conv2d(1, 2, 3, padding=1, bias=False),
    nn.ReLU(),
    nn.AdaptiveAvgPool2d(1),
    nn.Flatten(),
    nn.Linear(2, 2, bias=False),
)
line = torch.tensor([[-1.0, 2.0, -1.0]]).expand(3, 3)
with torch.no_grad():
    model[0].weight.copy_(torch.stack([line.T, line])[:, None])
    model[4].weight.copy_(torch.tensor([[1.0, -1.0], [-1.0, 1.0]]))

picture = torch.zeros(1, 1, 12, 12)
picture[..., 2:10, 2] = 1  # a vertical line
picture[..., 8, 5:11] = 1  # a horizontal line

# %%
# .. how-measured:: It draws two pictures side by side.

import matplotlib.pyplot as plt


def plot_picture_and_map(picture, values):
    _, axes = plt.subplots(1, 2, figsize=(5, 2.4), layout="constrained")
    titles = ["The picture", 'Where "vertical" looks']
    for ax, title, image in zip(axes, titles, [picture[0, 0], values[0]], strict=True):
        ax.imshow(image.detach().numpy(), cmap="Blues", vmin=0)
        ax.set_title(title)
        ax.set(xticks=[], yticks=[])


# %%
# A *forward hook* gets what a layer returns. (With frozen weights, call ``picture.requires_grad_()`` first. An ``nn.LSTM``
# returns a tuple: take ``output[0]``.) The second score is for vertical lines:

features = []


def keep(module, args, output):
    features.append(output)


model.eval()  # matters if there is dropout or batch normalization
handle = model[1].register_forward_hook(keep)
score = model(picture)[0, 1]
handle.remove()

(maps,) = features
(gradient,) = torch.autograd.grad(score, maps)  # does not touch .grad
weights = gradient.mean(dim=(2, 3), keepdim=True)

# figure: Two small pictures. The first has a vertical and a horizontal line. In the second, the map for the score
#   "vertical", the vertical line stands out.
plot_picture_and_map(picture, (weights * maps).sum(dim=1).relu())

# sphinx_gallery_start_ignore
_map = (weights * maps).sum(dim=1).relu()[0].detach()
assert _map[1:11, 2].sum() > 0.85 * _map.sum() and _map.argmax() % 12 == 2
assert all(p.grad is None for p in model.parameters())
_handle, _refused = model.requires_grad_(False)[1].register_forward_hook(keep), []
try:
    torch.autograd.grad(model(picture)[0, 1], features.pop())
except RuntimeError as error:
    _refused.append(str(error))
assert len(_refused) == 1 and "does not require grad" in _refused[0]
_score = model(picture.clone().requires_grad_())[0, 1]
_handle.remove()
assert torch.equal(torch.autograd.grad(_score, features.pop())[0], gradient)
assert features.pop() is maps
for _change in (nn.ReLU(inplace=True), nn.ReLU()):  # behind the hooked layer
    _net = nn.Sequential(nn.Conv2d(1, 2, 3), _change, nn.Flatten(), nn.LazyLinear(2))
    with _net[0].register_forward_hook(keep):
        _score = _net(picture)[0, 1]
    assert torch.autograd.grad(_score, features.pop())[0].shape == (1, 2, 10, 10)
# sphinx_gallery_end_ignore

# %%
# Which of the three should you take?
# -----------------------------------
# - ``torch.autograd.grad`` to compute with a gradient, as for the map above. It leaves the ``.grad`` of the weights alone, and
#   stops at ``h``. (For a penalty on the gradient, pass ``create_graph=True``.)
# - ``retain_grad()`` to look at a few tensors of a training step. If two losses share ``h``, ``h.grad`` adds up, like the
#   ``.grad`` of a weight.
# - ``register_hook`` to change a gradient, or to look at many gradients without keeping them. It gets each pass for itself.

# sphinx_gallery_start_ignore
encoder.zero_grad()
_h, _loss = compute()
for _ in range(2):
    (_g,) = torch.autograd.grad(_loss, _h, retain_graph=True)
    assert (
        torch.equal(_g, 2 / 8 * (head(_h) - target) * head.weight) and _w.grad is None
    )
_seen = []
_h.retain_grad()
_h.register_hook(_seen.append)
for _ in range(2):
    _loss.backward(retain_graph=True)
assert torch.equal(_h.grad, 2 * _g)
assert torch.equal(_seen[0], _g) and torch.equal(_seen[1], _g)
_h, _loss = compute()
_h.register_hook(lambda gradient: 0 * gradient)
encoder.zero_grad()
_loss.backward()
assert not _w.grad.any()
_weight = torch.tensor(2.0, requires_grad=True)
for _create, _right in ((True, 24 + 576), (False, 24)):  # a penalty on a gradient
    _h = _weight * torch.ones(2)
    (_g,) = torch.autograd.grad((_h**3).sum(), _h, create_graph=_create)
    (_slope,) = torch.autograd.grad((_weight**3) * 2 + _g.square().sum(), _weight)
    assert _slope == _right
# sphinx_gallery_end_ignore

# %%
# What people get wrong
# ---------------------
# **Calling** ``retain_grad()`` **after** ``backward()``. The gradient has been dropped, and ``.grad`` is ``None``. You get no
# error, and the late call silences the :ref:`warning <sphx_glr_gallery_errors_grad_of_non_leaf.py>` that you get without it.

h, loss = compute()
loss.backward()
h.retain_grad()
print("h.grad is", h.grad)
assert h.grad is None

# sphinx_gallery_start_ignore
import warnings

for _late in (False, True):
    _h, _loss = compute()
    _loss.backward()
    if _late:
        _h.retain_grad()
    with warnings.catch_warnings(record=True) as _caught:
        warnings.simplefilter("always")
        assert _h.grad is None and len(_caught) == (not _late)
# sphinx_gallery_end_ignore

# %%
# **Asking for a tensor that was made afterwards.** ``h[0]`` is an operation: it returns a new tensor each time, which the loss
# never used. The same happens with ``h.view(-1)`` and ``h[None]``.

h, loss = compute()
late = h[0]

raised = []
try:
    torch.autograd.grad(loss, late)
except RuntimeError as error:
    raised.append(str(error))
    print(f"RuntimeError: {error}")

# graph: loss, late -- late was computed from h, but the loss was not computed from late

# sphinx_gallery_start_ignore
assert len(raised) == 1 and "appears to not have been used in the graph" in raised[0]
for _other in (h[0], h.view(-1), h[None]):
    _unused = torch.autograd.grad(loss, _other, allow_unused=True, retain_graph=True)
    assert _unused == (None,)
    _refused = False
    try:
        torch.autograd.grad(loss, _other)
    except RuntimeError:
        _refused = True
    assert _refused
assert torch.equal(torch.autograd.grad(loss, h)[0][0], seen[0][0])
# sphinx_gallery_end_ignore

# %%
# Ask for ``h`` and take the entry from the result: ``torch.autograd.grad(loss, h)[0][0]``. With ``allow_unused=True``, as the
# message suggests, you get ``None`` instead of an error.
#
# **Changing the tensor in place afterwards**, for example by ``nn.ReLU(inplace=True)``. The hook gets the gradient for the
# value that ``h`` had when you registered it. ``h.grad`` is for the value that ``h`` has in the end:

h, before = encoder(x), []
h.register_hook(before.append)
h.retain_grad()
nn.functional.relu(h, inplace=True)
nn.functional.mse_loss(head(h), target).backward()

print("zeros after the ReLU:      ", (h == 0).sum().item())
print("zeros in h.grad:           ", (h.grad == 0).sum().item())
print("zeros in what the hook got:", (before[0] == 0).sum().item())

# sphinx_gallery_start_ignore
assert (h.grad != 0).all() and torch.equal(before[0], h.grad * (h > 0))
assert (h == 0).any() and torch.equal(before[0] == 0, h == 0)
_out, _hooked = nn.Sequential(nn.Linear(3, 4), nn.Flatten())(torch.randn(2, 3, 3)), []
_out.register_hook(_hooked.append)
_out.retain_grad()
nn.functional.relu(_out, inplace=True).square().sum().backward()
assert not _hooked and torch.equal(_out.grad, 2 * _out.detach())
# sphinx_gallery_end_ignore

# %%
# Both are right: ``h.grad`` belongs to the result of the ReLU, and what the hook got to its input. If the layer returns a view,
# as ``nn.Flatten`` does, the hook is not even called. So set ``inplace=False``.

# %%
# Exercise
# --------
# A model comes as ``nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))``. Get the gradient of its mean output with
# respect to the output of the Tanh, with ``torch.autograd.grad``, and without a hook.
#
# .. solution::
#
# A Sequential can be sliced, so the intermediate result gets a name. By hand: the mean over five samples gives each of them one
# fifth of the weights of the last layer.

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
inputs = torch.randn(5, 3)

hidden = model[:2](inputs)
(asked,) = torch.autograd.grad(model[2:](hidden).mean(), hidden)

print("shape:", tuple(asked.shape))
assert torch.allclose(asked, model[2].weight.expand(5, 4) / 5)

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_graphs_leaves_and_roots.py`, why ``.grad`` of a non-leaf is ``None``, and the warning.
# - In PyTorch's reference: `torch.autograd.grad
#   <https://docs.pytorch.org/docs/stable/generated/torch.autograd.grad.html>`__ and `Tensor.retain_grad
#   <https://docs.pytorch.org/docs/stable/generated/torch.Tensor.retain_grad.html>`__.
