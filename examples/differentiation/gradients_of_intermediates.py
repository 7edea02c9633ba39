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
# dropped it. Below that tensor is ``C``, with :math:`C = A B = 6` and :math:`D = C^2`. So :math:`\partial D / \partial C = 2 C
# = 12`. (A *hook* is a function that PyTorch calls for you.)

import torch
from torch import nn


def compute():
    A = torch.tensor(2.0, requires_grad=True)
    B = torch.tensor(3.0, requires_grad=True)
    C = A * B
    D = C**2
    return A, B, C, D


A, B, C, D = compute()
(gradient,) = torch.autograd.grad(D, C)
print("autograd.grad:", gradient)

A, B, C, D = compute()
seen = []
C.register_hook(seen.append)
D.backward()
print("register_hook:", seen[0])

A, B, C, D = compute()
C.retain_grad()
D.backward()
print("retain_grad:  ", C.grad)

# graph: D -- After backward: C keeps its gradient, as the two leaves do

# sphinx_gallery_start_ignore
assert (
    C.item() == 6
    and gradient == 12
    and seen == [12]
    and C.grad == 12
    and A.grad == 36
    and B.grad == 24
)
_A, _B, _C, _D = compute()
_visits = []
_C.grad_fn.register_prehook(lambda gradients: _visits.append(1))
torch.autograd.grad(_D, _C, retain_graph=True)
assert _visits == [] and _A.grad is None and _B.grad is None
torch.autograd.grad(_D, _A, retain_graph=True)
assert _visits == [1] and _A.grad is None
for _asked in (0, 2):  # for A, and for C itself
    _A, _B, _C, _D = compute()
    _C.retain_grad()
    _seen = []
    _C.register_hook(_seen.append)
    torch.autograd.grad(_D, (_A, _B, _C)[_asked])
    assert _C.grad == 12 and _seen == [12] and _A.grad is None
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

(h,) = features
(gradient,) = torch.autograd.grad(score, h)  # adds nothing to .grad of the weights
weights = gradient.mean(dim=(2, 3), keepdim=True)

# figure: Two small pictures. The first has a vertical and a horizontal line. In the second, the map for the score
#   "vertical", the vertical line stands out.
plot_picture_and_map(picture, (weights * h).sum(dim=1).relu())

# sphinx_gallery_start_ignore
_map = (weights * h).sum(dim=1).relu()[0].detach()
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
assert features.pop() is h
for _change in (nn.ReLU(inplace=True), nn.ReLU()):  # behind the hooked layer
    _net = nn.Sequential(nn.Conv2d(1, 2, 3), _change, nn.Flatten(), nn.LazyLinear(2))
    with _net[0].register_forward_hook(keep):
        _score = _net(picture)[0, 1]
    assert torch.autograd.grad(_score, features.pop())[0].shape == (1, 2, 10, 10)
# sphinx_gallery_end_ignore

# %%
# Which of the three should you take?
# -----------------------------------
# Each way, twice over one graph:
#
# .. how-measured:: Each way runs backward twice with retain_graph=True, and notes the gradient of C that it gets in each pass.

import pandas as pd


def tabulate_two_passes():
    passes = {}

    A, _, C, D = compute()
    results = [torch.autograd.grad(D, C, retain_graph=True)[0].item() for _ in range(2)]
    passes["autograd.grad"] = [*results, A.grad]

    A, _, C, D = compute()
    C.retain_grad()
    results = []
    for _ in range(2):
        D.backward(retain_graph=True)
        results.append(C.grad.item())
    passes["retain_grad"] = [*results, A.grad.item()]

    A, _, C, D = compute()
    results = []
    C.register_hook(lambda gradient: results.append(gradient.item()))
    for _ in range(2):
        D.backward(retain_graph=True)
    passes["register_hook"] = [*results, A.grad.item()]

    columns = ["C, first pass", "C, second pass", "A.grad after both"]
    table = pd.DataFrame(passes, index=columns, dtype=object).T
    return table.rename_axis(columns="way")


# %%
# What you get for ``C``, and what is left in ``A.grad``:

# sphinx_gallery_start_ignore
table = tabulate_two_passes()
assert table.loc["autograd.grad"].tolist() == [12, 12, None]
assert table.loc["retain_grad"].tolist() == [12, 24, 72]
assert table.loc["register_hook"].tolist() == [12, 12, 72]

_w = torch.tensor(2.0, requires_grad=True)
for _create, _right in ((True, 24 + 576), (False, 24)):  # a penalty on a gradient
    _h = _w * torch.ones(2)
    (_g,) = torch.autograd.grad((_h**3).sum(), _h, create_graph=_create)
    (_slope,) = torch.autograd.grad((_w**3) * 2 + _g.square().sum(), _w)
    assert _slope == _right
# sphinx_gallery_end_ignore
tabulate_two_passes()

# %%
# - ``torch.autograd.grad`` to compute with a gradient, as for the map above. It leaves the ``.grad`` of ``A`` alone, and stops
#   at ``C``. (For a penalty on the gradient, pass ``create_graph=True``.)
# - ``retain_grad()`` to look at a few tensors of a training step. ``C.grad`` adds up, like the ``.grad`` of a leaf.
# - ``register_hook`` to change a gradient, or to look at many gradients without keeping them. It gets each pass for itself.

# %%
# What people get wrong
# ---------------------
# **Calling** ``retain_grad()`` **after** ``backward()``. The gradient has been dropped, and ``.grad`` is ``None``. You get no
# error, and the late call silences the :ref:`warning <sphx_glr_gallery_errors_grad_of_non_leaf.py>` that you get without it.

A, B, C, D = compute()
D.backward()
C.retain_grad()
print("C.grad is", C.grad)
assert C.grad is None

# sphinx_gallery_start_ignore
import warnings

for _late in (False, True):
    _, _, _C, _D = compute()
    _D.backward()
    if _late:
        _C.retain_grad()
    with warnings.catch_warnings(record=True) as _caught:
        warnings.simplefilter("always")
        assert _C.grad is None and len(_caught) == (not _late)
# sphinx_gallery_end_ignore

# %%
# **Asking for a tensor that was made afterwards.** ``x[0]`` is an operation: it returns a new tensor each time, which the loss
# never used. The same happens with ``x.view(-1)`` and ``x[None]``.

x = torch.tensor([1.0, 2.0], requires_grad=True)
y = (x**2).sum()
late = x[0]

raised = []
try:
    torch.autograd.grad(y, late)
except RuntimeError as error:
    raised.append(str(error))
    print(f"RuntimeError: {error}")

# graph: y, late -- late was computed from x, but y was not computed from late

# sphinx_gallery_start_ignore
assert len(raised) == 1 and "appears to not have been used in the graph" in raised[0]
for _other in (x[0], x.view(-1), x[None]):
    _y = (x**2).sum()
    assert torch.autograd.grad(_y, _other, allow_unused=True, retain_graph=True) == (
        None,
    )
    _refused = False
    try:
        torch.autograd.grad(_y, _other)
    except RuntimeError:
        _refused = True
    assert _refused
assert torch.autograd.grad((x**2).sum(), x)[0][0] == 2
# sphinx_gallery_end_ignore

# %%
# Ask for ``x`` and take the entry from the result: ``torch.autograd.grad(y, x)[0][0]``. With ``allow_unused=True``, as the
# message suggests, you get ``None`` instead of an error.
#
# **Changing the tensor in place afterwards.** The hook gets the gradient for the value that ``C`` had when you registered it.
# ``C.grad`` is for the value that ``C`` has in the end. ``nn.ReLU(inplace=True)`` after your layer can cause the same. If the
# layer returns a view, as ``nn.Linear`` does for sequences, the hook is not even called.

A, B, C, _ = compute()
before = []
C.register_hook(before.append)
C.retain_grad()
C.mul_(3)
(C**2).backward()

print(f"C is now {C.item()}, and C.grad = 2 * 18 = {C.grad.item()}")
print(f"the hook got {before[0].item()}, for the old value: 3 * 36")

# sphinx_gallery_start_ignore
assert C == 18 and C.grad == 36 and before == [108]
_conv, _relu = nn.Conv2d(1, 2, 3), nn.ReLU(inplace=True)
_out, _hooked = _conv(picture), []
_out.register_hook(_hooked.append)
_out.retain_grad()
_relu(_out).square().sum().backward()
assert torch.equal(_out.grad, 2 * _out.detach())  # of the value after the ReLU
assert torch.equal(_hooked[0], 2 * _out.detach() * (_out.detach() > 0))
_out, _hooked = nn.Linear(4, 4)(torch.randn(2, 3, 4)), []
_out.register_hook(_hooked.append)
_out.retain_grad()
_relu(_out).square().sum().backward()
assert not _hooked and torch.equal(_out.grad, 2 * _out.detach())
# sphinx_gallery_end_ignore

# %%
# Both are right. Give the new value a new name instead, ``E = C * 3``.

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
