r"""
grad can be implicitly created only for scalar outputs
======================================================

.. index::
   ! single: backward on a vector
   ! single: loss has one value for each sample or each GPU
   ! single: backward works with batch size 1 only
   ! single: Mismatch in shape: grad_output[0] has a shape of torch.Size([1])
   ! single: invalid gradient at index 0 - expected shape [] but got [1]
   ! single: loss.backward(one) and loss.backward(mone) in a WGAN
   ! single: attempting to assign a gradient of size '[3, 2]' to a tensor of size '[2, 3]'

.. in-short::

   ``backward()`` without an argument needs a single number to start from. Your loss has several: one for each sample,
   pixel or GPU. Remove an unneeded ``reduction="none"``, or take the mean. If it is not a loss and you want dy/dx at each x,
   take the sum.

   .. code-block:: diff

        loss = loss_fn(model(x), labels)
      - loss.backward()
      + loss.mean().backward()

   **Not this:** ``loss.backward(torch.ones_like(loss))``. That is the gradient of the sum: with 4 samples, 4 times as large.
"""

# %%
# The code that raises it
# -----------------------

import torch
from torch import nn

torch.manual_seed(0)

# sphinx_gallery_start_ignore
try:
    # sphinx_gallery_end_ignore
    model = nn.Linear(3, 2)
    loss_fn = nn.CrossEntropyLoss(reduction="none")
    x, labels = torch.randn(4, 3), torch.tensor([0, 1, 1, 0])

    loss = loss_fn(model(x), labels)
    loss.backward()
# sphinx_gallery_start_ignore
except RuntimeError as error:
    message = str(error)
    print("RuntimeError:", message)
assert message == "grad can be implicitly created only for scalar outputs"
assert loss.shape == (4,)

for _shape in ((), (1,), (1, 1)):
    _x = torch.ones(_shape, requires_grad=True)
    (3 * _x).backward()
    assert _x.grad.tolist() == torch.full(_shape, 3.0).tolist()
# sphinx_gallery_end_ignore

# %%
# - ``outputs``: the tensor that you called ``backward()`` on, gave to ``torch.autograd.grad``, or returned to a trainer. Print
#   its shape, here ``[4]``: one number for each sample.
# - ``scalar``: exactly one number. The shape ``[1]`` passes, so the same code can run with a batch of 1, or on one GPU. For
#   *real scalar outputs but got torch.complex64*, square ``(y - target).abs()``.
#
# Why
# ---
# Each of four losses has its own derivative, but ``w.grad`` has room for only one number.

w = torch.tensor(1.0, requires_grad=True)
samples = torch.tensor([1.0, 2.0, 3.0, 4.0])
targets = torch.tensor([3.0, 5.0, 7.0, 9.0])
losses = (w * samples - targets) ** 2

each = [torch.autograd.grad(one, w, retain_graph=True)[0].item() for one in losses]
print("derivatives:", each)

# graph: losses -- Four numbers at the root, and one at the leaf

# sphinx_gallery_start_ignore
assert each == [-4, -12, -24, -40]
# sphinx_gallery_end_ignore

# %%
# Backward needs one weight for each number of the output. For a single number PyTorch *implicitly* fills in 1.
#
# The fix
# -------
# **It is a loss:** take the mean. If it comes straight from ``CrossEntropyLoss``, remove ``reduction="none"`` instead: the mean
# is the default, and it handles class weights and ``ignore_index``. With a mask that is 1 where the loss counts, such as
# ``labels != -100``, write ``kept = loss[mask.bool()]``, and take ``kept.mean()``, or ``kept.sum()`` if it is empty.
# ``nn.DataParallel`` with the loss computed in ``forward`` returns one loss for each GPU: take the mean (for equal parts), or
# the sum if each is a sum.

loss = loss_fn(model(x), labels)
loss.mean().backward()
print("model.bias.grad:", model.bias.grad)

# sphinx_gallery_start_ignore
_gradient = model.bias.grad.clone()
model.zero_grad()
nn.CrossEntropyLoss()(model(x), labels).backward()
assert torch.equal(model.bias.grad, _gradient)
for _options, _divisor in (
    ({"weight": torch.tensor([1.0, 3.0])}, 1 + 3 + 3 + 1),
    ({"ignore_index": 0}, 2),
):
    _each = nn.CrossEntropyLoss(reduction="none", **_options)(model(x), labels)
    _mean = nn.CrossEntropyLoss(**_options)(model(x), labels)
    assert torch.allclose(_mean, _each.sum() / _divisor) and _mean != _each.mean()
# A loss that is weighted afterwards, or a focal loss, needs the losses one by one.
_each = loss_fn(model(x), labels)
_focal = (1 - torch.exp(-_each)) ** 2 * _each
assert not torch.allclose(_focal.mean(), (1 - torch.exp(-_mean)) ** 2 * _mean)
assert (nn.CrossEntropyLoss()(model(x), labels) * torch.ones(4)).shape == (4,)
_kept = torch.tensor([1, 0, 1, 0])
_each = loss_fn(model(x), labels)
for _mask in (_kept, _kept.bool(), _kept.float()):
    _masked = _each[_mask.bool()].mean()
    assert torch.allclose(_masked, nn.CrossEntropyLoss()(model(x[::2]), labels[::2]))
for _parts, _right in ((_each.split([2, 2]), True), (_each.split([3, 1]), False)):
    _of_parts = torch.stack([part.mean() for part in _parts]).mean()
    assert torch.allclose(_of_parts, _each.mean()) == _right
_ignored = torch.tensor([0, -100, 1, -100])
_each = loss_fn(model(x), _ignored)
_right = nn.CrossEntropyLoss()(model(x), _ignored)
assert torch.allclose(_each[_ignored != -100].mean(), _right)
assert torch.allclose(_each.mean(), _right / 2)
_rest = _each[(_kept * 0).bool()]
assert _rest.mean().isnan() and _rest.sum() == 0
model.zero_grad()
_rest.sum().backward()
assert model.weight.grad is not None and not model.weight.grad.any()
_halves = torch.full((9999,), 10.0, dtype=torch.float16)  # the sum overflows
assert _halves.mean() == 10 and (_halves.sum() / len(_halves)).isinf()
# sphinx_gallery_end_ignore

# %%
# **It is a list of terms,** such as two kinds of loss, or the steps of an episode: take ``sum()``. Reduce each term in the same
# way before you add them. In a VAE with one ``kl`` for each sample, that is ``(recon.flatten(1).sum(1) + kl).mean()``.
#
# **It is not a loss,** and you want the derivative at each x, for a plot or a physics-informed network: take the sum. It is
# right if each x has one y, and no y depends on another x. For a Jacobian, call ``torch.autograd.functional.jacobian(f, x)``.
# If the result enters a loss, pass ``create_graph=True``. So too for a Hessian times ``v``, the gradient of
# ``(gradient * v).sum()``.

points = torch.linspace(-2, 2, 5, requires_grad=True)
(slopes,) = torch.autograd.grad((points**3).sum(), points)
print("slopes of x**3:", slopes)

# sphinx_gallery_start_ignore
assert torch.allclose(slopes, 3 * points**2) and not slopes.requires_grad
_cubes = (points**3).sum()
(_kept,) = torch.autograd.grad(_cubes, points, create_graph=True)
_kept.sum().backward()
assert torch.allclose(points.grad, 6 * points)
points.grad = None
_complex = torch.tensor([1 + 2j, 3j], requires_grad=True)
_target = torch.tensor([0j, 1])
for _square, _right in (
    ((_complex - _target) ** 2, False),
    ((_complex - _target).abs() ** 2, True),
):
    try:
        _square.mean().backward()
    except RuntimeError as error:
        assert "for real scalar outputs but got torch.complex64" in str(error)
        assert not _right
    else:
        assert _right and torch.allclose(_complex.grad, (_complex - _target).detach())


def _pair(x):
    return torch.stack([x.sum() * x[0], x.prod()])


_x, _v = torch.tensor([1.0, 2.0, 3.0], requires_grad=True), torch.tensor([1.0, 0, 2])
_rows = torch.autograd.functional.jacobian(_pair, _x)
for _row, _one in zip(_rows, _pair(_x), strict=True):
    assert torch.equal(_row, torch.autograd.grad(_one, _x, retain_graph=True)[0])
(_slope,) = torch.autograd.grad(_pair(_x)[1] ** 2, _x, create_graph=True)
_kept = torch.autograd.functional.jacobian(_pair, _x, create_graph=True)
assert _kept.requires_grad and not _rows.requires_grad
_hessian = torch.autograd.functional.hessian(lambda x: _pair(x)[1] ** 2, _x)
for _number, _right in (((_slope * _v).sum(), True), (_slope.sum(), False)):
    (_product,) = torch.autograd.grad(_number, _x, retain_graph=True)
    assert torch.allclose(_product, _hessian @ _v) == _right
# a VAE: the mean of what each sample has alone
_recon, _kl = torch.rand(4, 1, 3, 3), torch.rand(4)
_alone = torch.stack([_recon[i].sum() + _kl[i] for i in range(4)]).mean()
for _total, _right in (
    ((_recon.flatten(1).sum(1) + _kl).mean(), True),
    ((_recon.sum() + _kl).mean(), False),
    (_recon.mean() + _kl.mean(), False),
):
    assert torch.allclose(_total, _alone) == _right
_two = torch.stack([points**3, points**2], dim=1)
assert torch.allclose(
    torch.autograd.grad(_two.sum(), points)[0], 3 * points**2 + 2 * points
)
# sphinx_gallery_end_ignore

# %%
# **You want the gradient of one entry,** for example of one class score: index it. For a batch of images, as in Grad-CAM, with
# the model in ``eval()``, take ``scores[:, 1].sum()``, or with a class for each image
# ``scores.gather(1, classes[:, None]).sum()``.

pixels = torch.tensor([1.0, 2.0], requires_grad=True)
scores = torch.stack([pixels.sum(), pixels.prod(), pixels[0] ** 3])
scores[1].backward()
print("gradient of score 1:", pixels.grad)

# sphinx_gallery_start_ignore
assert pixels.grad.tolist() == [2, 1]
_images = torch.rand(3, 2, requires_grad=True)
_scores = torch.stack([_images.sum(1), _images.prod(1)], dim=1)
(_all,) = torch.autograd.grad(_scores[:, 1].sum(), _images, retain_graph=True)
for _i in range(3):
    (_one,) = torch.autograd.grad(_scores[_i, 1], _images, retain_graph=True)
    assert torch.equal(_all[_i], _one[_i])
with torch.random.fork_rng():
    _net = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3), nn.Tanh())
_classes = torch.tensor([1, 0, 1])
_scores = torch.stack([_images.sum(1), _images.prod(1)], dim=1)
_alone = torch.stack(
    [
        torch.autograd.grad(_scores[_i, _classes[_i]], _images, retain_graph=True)[0][
            _i
        ]
        for _i in range(3)
    ]
)
for _number, _right in (
    (_scores.gather(1, _classes[:, None]).sum(), True),
    (_scores[:, _classes].sum(), False),
):
    (_all,) = torch.autograd.grad(_number, _images, retain_graph=True)
    assert torch.allclose(_all, _alone) == _right
for _training in (False, True):
    _scores = _net.train(_training)(_images)
    (_all,) = torch.autograd.grad(_scores[:, 1].sum(), _images, retain_graph=True)
    (_one,) = torch.autograd.grad(_scores[0, 1], _images)
    assert torch.allclose(_all[0], _one[0]) is not _training


def _said(call):
    """The message of a call, or nothing."""
    try:
        call()
    except RuntimeError as error:
        return str(error)
    return ""


# sphinx_gallery_end_ignore

# %%
# Mismatch in shape: grad_output[0] has a shape of torch.Size([1])
# ----------------------------------------------------------------
# You passed these weights, and their shape must be the shape of the output. ``[1]`` does not fit ``[]``, the shape of a loss:

# sphinx_gallery_start_ignore
raised = []
try:
    # sphinx_gallery_end_ignore
    model = nn.Linear(3, 2)
    loss = nn.CrossEntropyLoss()(model(torch.randn(4, 3)), torch.tensor([0, 1, 1, 0]))
    loss.backward(torch.ones(1))
# sphinx_gallery_start_ignore
except RuntimeError as error:
    raised.append(str(error))
    print("RuntimeError:", error)
assert raised == [
    "Mismatch in shape: grad_output[0] has a shape of torch.Size([1]) and output[0] has "
    "a shape of torch.Size([])."
]
_w = torch.ones(3, 2, requires_grad=True)
for _shape in ((2, 3), (6,), (), (1,), (3, 1), (2,)):
    _given = torch.ones(_shape)
    assert "Mismatch in shape" in _said(lambda v=_given: (_w * 1).backward(v))
_list, _two = torch.autograd.backward, [_w.sum(), _w.sum()]
assert _said(lambda: _list(_two, 2 * [torch.ones(1)])) == raised[0]
sum(_two).backward(retain_graph=True)
assert torch.equal(_w.grad, torch.full((3, 2), 2.0))
_w.grad = None
_list(_two, 2 * [torch.ones(())])
assert torch.equal(_w.grad, torch.full((3, 2), 2.0))
# sphinx_gallery_end_ignore

# %%
# - **The loss is one number:** pass nothing. ``sum(losses).backward()`` takes the place of
#   ``torch.autograd.backward(losses, [torch.ones(1)] * n)``.
# - **The output has several numbers,** as in a gradient penalty: ``torch.ones_like(output)`` has its shape and its device.
# - **A sign is meant,** as in a WGAN with ``real.backward(mone)`` and ``fake.backward(one)``. Put a minus for ``mone`` into the
#   loss:

critic = nn.Linear(1, 1)
real = critic(torch.tensor([[1.0], [2.0]])).mean()
fake = critic(torch.tensor([[3.0], [5.0]])).mean()
(fake - real).backward()
print("critic.weight.grad:", critic.weight.grad)

# sphinx_gallery_start_ignore
assert critic.weight.grad == 4 - 1.5
critic.weight.grad = None
critic(torch.tensor([[1.0], [2.0]])).mean().backward(torch.tensor(-1.0))
critic(torch.tensor([[3.0], [5.0]])).mean().backward(torch.tensor(1.0))
assert critic.weight.grad == 4 - 1.5
# sphinx_gallery_end_ignore

# %%
# **A gradient written to** ``.grad`` must have the shape of its tensor. ``nn.Linear(3, 2)`` has a weight of shape ``[2, 3]``:

# sphinx_gallery_start_ignore
raised = []
try:
    # sphinx_gallery_end_ignore
    layer = nn.Linear(3, 2)
    layer.weight.grad = torch.ones(3, 2)
# sphinx_gallery_start_ignore
except RuntimeError as error:
    raised.append(str(error))
    print("RuntimeError:", error)
assert len(raised) == 1 and raised[0].startswith(
    "attempting to assign a gradient of size '[3, 2]' to a tensor of size '[2, 3]'"
)
# sphinx_gallery_end_ignore

# %%
# What not to do
# --------------
# **Pass ones and go on:**

w.grad = None
losses = (w * samples - targets) ** 2
losses.backward(torch.ones_like(losses))
print("with ones: ", w.grad)

w.grad = None
losses = (w * samples - targets) ** 2
losses.mean().backward()
print("with mean():", w.grad)

# sphinx_gallery_start_ignore
assert w.grad == sum(each) / 4 == -20
# sphinx_gallery_end_ignore

# %%
# **Take the mean without a look at the shape.** A loss can have too many numbers because two shapes were broadcast: here each
# prediction is compared with each target.

predictions = torch.tensor([[3.0], [5.0], [7.0], [9.0]], requires_grad=True)
losses = (predictions - targets) ** 2
losses.mean().backward()
print("shape:", losses.shape, " mean:", losses.mean().item())
print("gradient:", predictions.grad.flatten())

# sphinx_gallery_start_ignore
assert losses.shape == (4, 4) and losses.mean() == 10 and predictions.grad.any()
assert ((predictions.squeeze(1) - targets) ** 2).mean() == 0
# sphinx_gallery_end_ignore

# %%
# ``predictions.squeeze(1)`` has the shape of the targets, and gives 0.
#
# See also
# --------
# - :ref:`sphx_glr_gallery_differentiation_vector_jacobian_products.py`.
# - :ref:`sphx_glr_gallery_errors_sizes_do_not_match.py`.
# - :ref:`sphx_glr_gallery_errors_func_grad_of_vector.py`: the message of ``torch.func.grad``, and a gradient
#   of the weights for each sample.
# - In PyTorch's reference: `torch.autograd.backward
#   <https://docs.pytorch.org/docs/stable/generated/torch.autograd.backward.html>`__.
