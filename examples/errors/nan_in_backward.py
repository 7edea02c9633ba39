r"""
Function 'SqrtBackward0' returned nan values in its 0th output.
===============================================================

.. index::
   ! single: loss is fine and the weights become NaN
   ! single: Function 'PowBackward0' returned nan values in its 0th output
   ! single: Function 'MmBackward0' returned nan values, with a GradScaler
   ! single: Function 'PowBackward1' returned nan values in its 1th output

.. in-short::

   The value is fine, but the derivative of a root at 0 is infinite. Backward multiplied it by a gradient of 0, and that is
   NaN. Keep the argument of the root away from 0.

   .. code-block:: diff

      - distance = squared.sqrt()
      + distance = (squared + 1e-12).sqrt()

   **Not this:** ``torch.where`` or ``nan_to_num`` on the result. Backward still passes through the root, and returns NaN.
"""

# %%
# The code that raises it
# -----------------------
# In these distances between all samples of a batch, that of a sample to itself is multiplied by 0.

import torch
from torch import nn

torch.manual_seed(0)

# sphinx_gallery_start_ignore
import warnings

from torch.nn import functional

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    try:
        # sphinx_gallery_end_ignore
        layer = nn.Linear(3, 2)
        x = torch.rand(4, 3)
        others = 1 - torch.eye(4)

        with torch.autograd.detect_anomaly():
            z = layer(x)
            squared = (z[:, None] - z).square().sum(dim=2)
            distance = squared.sqrt()
            loss = (distance * others).mean()
            loss.backward()
    # sphinx_gallery_start_ignore
    except RuntimeError as error:
        message = str(error)
        print("RuntimeError:", message)
assert message == "Function 'SqrtBackward0' returned nan values in its 0th output."
assert loss.isfinite() and not any(p.grad for p in layer.parameters())
(_warned,) = (
    str(w.message) for w in caught if "Traceback of forward" in str(w.message)
)


def _anomaly(function, *values):
    """The node that anomaly mode names, whether the loss is finite, and the gradient without the mode."""
    x = torch.tensor(values, requires_grad=True)
    function(x).backward()
    gradient, x.grad = x.grad, None
    named = None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            with torch.autograd.detect_anomaly():
                y = function(x)
                y.backward()
        except RuntimeError as error:
            named = str(error).split("'")[1]
    return named, y.isfinite().item(), gradient


# sphinx_gallery_end_ignore

# %%
# ``SqrtBackward0``, the backward of the root, is the node in whose result the NaN was first seen. Without :ref:`anomaly mode
# <sphx_glr_gallery_debugging_anomaly_detection.py>` there is no message, and the NaN is in the gradients:

z = layer(x)
squared = (z[:, None] - z).square().sum(dim=2)
distance = squared.sqrt()
loss = (distance * others).mean()
loss.backward()
print("loss:", loss)
print("layer.bias.grad:", layer.bias.grad)

# sphinx_gallery_start_ignore
assert loss.isfinite() and layer.bias.grad.isnan().all()
assert layer.weight.grad.isnan().all()
for _kind in (torch.optim.SGD, torch.optim.Adam):
    _copy = nn.Linear(3, 2)
    for _p, _from in zip(_copy.parameters(), layer.parameters(), strict=True):
        _p.grad = _from.grad.clone()
    _kind(_copy.parameters(), lr=0.1).step()
    assert _copy(x).isnan().all()
# sphinx_gallery_end_ignore

# %%
# Why
# ---
# The derivative of the root is :math:`\frac{1}{2 \sqrt{x}}`, infinite at 0. A gradient of 0 arrives there, and 0 times
# infinity is NaN.

x = torch.tensor(0.0, requires_grad=True)
root = torch.sqrt(x)
root.retain_grad()
y = root * 0
y.backward()

# graph: y -- The values are fine; between root and x, a gradient of 0 meets an infinite derivative

print("root.grad:", root.grad, "  x.grad:", x.grad)

# sphinx_gallery_start_ignore
assert root.grad == 0 and x.grad.isnan() and y == 0

assert "distance = squared.sqrt()" in _warned.split("File")[-1]
_named, _finite, _gradient = _anomaly(lambda w: (w**2).sum().sqrt(), 0.0, 0.0)
assert _named == "PowBackward0" and _finite and _gradient.isnan().all()
# sphinx_gallery_end_ignore

# %%
# How to find the line
# --------------------
# Before the error comes a warning with the traceback of the *forward* call, which ends in ``distance =
# squared.sqrt()``. That is not always the line to fix:
#
# - **Infinity is not NaN.** In ``(w**2).sum().sqrt()`` the root returns infinity, and the square turns it into NaN. The message
#   names ``PowBackward0``, but the root is the line to fix.
# - **A GradScaler is in use.** Scaled gradients overflow now and then. The scaler skips these steps, but anomaly mode raises:
#   turn it off. Look for a line only if ``scaler.get_scale()`` falls below 1.
# - **The loss is NaN already,** often with ``MseLossBackward0`` or ``LogSoftmaxBackward0``: print ``loss.isfinite()``. If it
#   says ``False``, start with :ref:`sphx_glr_gallery_debugging_finding_nans.py`.
#
# The fix
# -------
# **A root**, also ``x ** 0.25``, ``hypot``, or a distance, deviation or RMSE that you wrote yourself: *under* the root, add a
# number far below your squares.

layer.zero_grad()
z = layer(torch.rand(4, 3))
squared = (z[:, None] - z).square().sum(dim=2)
distance = (squared + 1e-12).sqrt()
loss = (distance * others).mean()
loss.backward()
print("layer.weight.grad:", layer.weight.grad[0])

# sphinx_gallery_start_ignore
assert layer.weight.grad.isfinite().all() and (layer.weight.grad != 0).all()
_z = z.detach().requires_grad_()
(((_z[:, None] - _z).square().sum(dim=2) + 1e-12).sqrt() * others).mean().backward()
_pairs = z.detach().requires_grad_()
_apart = ~torch.eye(4, dtype=torch.bool)
((_pairs[:, None] - _pairs)[_apart].square().sum(dim=1).sqrt().sum() / 16).backward()
assert torch.allclose(_z.grad, _pairs.grad) and (_z.grad != 0).all()
_named, _finite, _gradient = _anomaly(
    lambda w: (functional.mse_loss(w, w.detach()) + 1e-12).sqrt(), 1.0, 2.0
)
assert _named is None and _gradient.tolist() == [0, 0]
_half = torch.zeros(2, dtype=torch.float16, requires_grad=True)
(_half.square().sum() + 1e-12).sqrt().backward()
assert _half.grad.isnan().all()
_layer = nn.Linear(3, 2)
for _to, _fine in ((torch.Tensor.half, False), (torch.Tensor.float, True)):
    _layer.zero_grad()
    with torch.autocast("cpu", dtype=torch.float16):
        _z = _to(_layer(torch.rand(4, 3)))
        _squared = (_z[:, None] - _z).square().sum(dim=2)
        (((_squared + 1e-12).sqrt()) * others).mean().backward()
    assert _layer.weight.grad.isfinite().all().item() is _fine
_ones = torch.ones(1, dtype=torch.float16, requires_grad=True)
_ones.float().clamp(-1 + 1e-6, 1 - 1e-6).acos().sum().backward()
assert _ones.grad == 0
_half.grad = None
(_half.float().square().sum() + 1e-12).sqrt().backward()
assert _half.grad.tolist() == [0, 0]


def _penalty(norm):
    x = torch.zeros(3, requires_grad=True)
    (slope,) = torch.autograd.grad(norm(x), x, create_graph=True)
    return torch.autograd.grad((slope + x).square().sum(), x)[0]


_named, _finite, _gradient = _anomaly(torch.linalg.vector_norm, 0.0, 0.0, 0.0)
assert _named is None and _gradient.tolist() == [0, 0, 0]
_named, _finite, _gradient = _anomaly(
    lambda q: torch.linalg.vector_norm(q.view(2, 2), dim=-1).sum(), 0.0, 0.0, 3.0, 4.0
)
assert _named is None and torch.allclose(_gradient, torch.tensor([0, 0, 0.6, 0.8]))
assert _penalty(torch.linalg.vector_norm).isnan().all()
assert _penalty(lambda x: (x.square().sum() + 1e-12).sqrt()).isfinite().all()
_tiny = 1e-9 * torch.tensor([3.0, 4.0])  # squares far below 1e-12
assert torch.allclose(_tiny.square().sum().sqrt(), torch.tensor(5e-9), atol=0)
assert (_tiny.square().sum() + 1e-12).sqrt() > 9e-7
assert torch.allclose((_tiny.square().sum() + 1e-24).sqrt(), torch.tensor(5e-9), atol=0)
_values = torch.linspace(0.1, 0.9, 99)[:, None].expand(99, 1000).contiguous()
assert ((_values**2).mean(1) - _values.mean(1) ** 2).min() < 0
for _function, _name in (
    (lambda x: x.sqrt().sum(), "SqrtBackward0"),
    (lambda x: (x + 1e-12).sqrt().sum(), "SqrtBackward0"),
    (lambda x: x.clamp(min=1e-12).sqrt().sum(), None),
):
    _named, _finite, _ = _anomaly(_function, -1e-10, 1.0)
    assert _named == _name and _finite is (_name is None)
# sphinx_gallery_end_ignore

# %%
# If rounding makes the argument *negative*, as in ``(x**2).mean() - x.mean()**2``, use ``squared.clamp(min=1e-12).sqrt()``. In
# ``float16``, also under ``autocast``, ``1e-12`` is 0: compute from ``z.float()``.
#
# **A norm**: ``torch.linalg.vector_norm(x, dim=-1)`` has a gradient of 0 where a row is 0. If you differentiate it twice, use
# the root above.
#
# **A logarithm, division, exp**, in ``float32``: limit the argument, as in ``(p + 1e-6).log()``, ``a / (b + 1e-6)`` for ``b >=
# 0``, ``logvar.clamp(-10, 10).exp()``. Where you do not use the result, you need ``where`` twice: the inner one protects
# backward, the outer picks the values.

p = torch.tensor([0.0, 0.5], requires_grad=True)
safe = torch.where(p > 0, p, 1.0)
entropy = -torch.where(p > 0, p * safe.log(), 0.0).sum()
entropy.backward()
print("p.grad:", p.grad)

# sphinx_gallery_start_ignore
assert p.grad[0] == 0 and torch.allclose(p.grad[1], -p[1].log() - 1)
for _function in (
    lambda q: -(q * q.log()),
    lambda q: q**0.5,
    lambda q: 1 / q,
):

    def _once(q, function=_function):
        return torch.where(q > 0, function(q), 0.0).sum()

    def _twice(q, function=_function):
        return torch.where(q > 0, function(torch.where(q > 0, q, 1.0)), 0.0).sum()

    _named, _finite, _gradient = _anomaly(_once, 0.0, 0.5)
    assert _named and _finite and _gradient[0].isnan()
    _named, _finite, _gradient = _anomaly(_twice, 0.0, 0.5)
    assert not _named and _gradient[0] == 0 and _gradient[1].isfinite()

# elements that are dropped
_target = torch.tensor([0.0, 1.0, torch.nan])


def _late(q):
    error = (q - _target) ** 2 / (q + _target)
    return error[~error.isnan()].mean()


def _early(q):
    ok = (q + _target) > 0
    ok = ok & (q < 9)
    error = (q - _target)[ok] ** 2 / (q + _target)[ok]
    return error.sum() / ok.sum().clamp(min=1)


assert _anomaly(_early, 9.0, 9.0, 1.0)[:2] == (None, True)  # all are dropped
_named, _finite, _gradient = _anomaly(_late, 0.0, 3.0, 1.0)
assert _named and _finite and _gradient[0].isnan()
_named, _finite, _gradient = _anomaly(_early, 0.0, 3.0, 1.0)
assert not _named and _gradient.tolist() == [0, 0.75, 0]
_ok = ~_target.isnan()
_named, _finite, _gradient = _anomaly(
    lambda q: functional.mse_loss(q, _target, reduction="none")[_ok].sum(),
    0.0,
    3.0,
    1.0,
)
assert _named == "MseLossBackward0" and _finite and _gradient[2].isnan()
_named, _finite, _gradient = _anomaly(
    lambda q: functional.mse_loss(q[_ok], _target[_ok]), 0.0, 3.0, 1.0
)
assert not _named and _gradient.tolist() == [0, 2, 0]

# a loss that is NaN already
_named, _finite, _ = _anomaly(
    lambda q: functional.mse_loss(q, 0 * _target), 0.0, 3.0, 1.0
)
assert _named == "MseLossBackward0" and not _finite
_named, _finite, _ = _anomaly(
    lambda q: functional.cross_entropy(q * torch.inf, torch.tensor(0)), 1.0, 2.0
)
assert _named == "LogSoftmaxBackward0" and not _finite

# the limits
for _bare, _limited, _values in (
    (
        lambda q: q.log().exp().sum(),
        lambda q: (q + 1e-6).log().exp().sum(),
        (0.0, 0.5),
    ),
    (
        lambda q: (q[0] / q[1]).sin(),
        lambda q: (q[0] / (q[1] + 1e-6)).sin(),
        (0.0, 0.0),
    ),
    (
        lambda q: (q / q.exp()).sum(),
        lambda q: (q / q.clamp(-10, 10).exp()).sum(),
        (-200.0, 0.5),
    ),
):
    assert _anomaly(_bare, *_values)[2].isnan().any()
    _named, _finite, _gradient = _anomaly(_limited, *_values)
    assert not _named and _finite and _gradient.isfinite().all()
_expected = _anomaly(lambda q: q.log().exp().sum(), 0.3, 0.5)[2]
_found = _anomaly(lambda q: (q + 1e-6).log().exp().sum(), 0.3, 0.5)[2]
assert torch.allclose(_found, _expected)
_named, _finite, _gradient = _anomaly(lambda q: q[0] ** q[1], -1.0, 2.0)
assert _named == "PowBackward1" and _finite and _gradient[1].isnan()
for _power in (
    lambda q: q[0].clamp(min=1e-6) ** q[1],
    lambda q: q[0] ** q[1].detach(),
):
    _named, _, _gradient = _anomaly(_power, -1.0, 2.0)
    assert not _named and _gradient.isfinite().all()
    assert _anomaly(_power, 3.0, 2.0)[2][0] == 6
    _learns = _anomaly(_power, 3.0, 2.0)[2][1] != 0
    assert (_gradient[0] == -2) != _learns
for _values in ((0.0, 0.5), (0.0, 2.0), (0.0, 0.0)):  # not at 0
    assert _anomaly(lambda q: q[0] ** q[1], *_values)[2][1] == 0
_named, _finite, _gradient = _anomaly(
    lambda q: 0 * q[0].abs() ** torch.tensor(0.5), 0.0, 2.0
)
assert _finite and _gradient[0].isnan()  # its 0th output, as of any root

# the list
for _naive, _stable in (
    (lambda q: q.softmax(0).log()[0], lambda q: q.log_softmax(0)[0]),
    (lambda q: q.sigmoid().log()[0], lambda q: functional.logsigmoid(q)[0]),
):
    _named, _, _ = _anomaly(_naive, -200.0, 200.0)
    assert _named in ("SoftmaxBackward0", "SigmoidBackward0")
    _named, _finite, _gradient = _anomaly(_stable, -200.0, 200.0)
    assert not _named and _finite and _gradient[0] == 1
for _inverse in (torch.acos, torch.asin):
    _named, _, _ = _anomaly(
        lambda q, f=_inverse: (f(q) * q.new([0, 1])).sum(), 1.0, 0.5
    )
    assert _named in ("AcosBackward0", "AsinBackward0")
    _named, _, _gradient = _anomaly(
        lambda q, f=_inverse: f(q.clamp(-1 + 1e-6, 1 - 1e-6)).sum(), 1.0, 0.5
    )
    assert not _named and _gradient[0] == 0 and _gradient[1].abs() > 1
_alone = torch.tensor([0.1, 0.2], requires_grad=True)
(_alone.softmax(0)[0] ** 2).backward()
_mask = torch.tensor([[True, True], [False, False]])
for _one_open in (False, True):
    if _one_open:
        _mask[_mask.all(1), 0] = False
    _named, _finite, _gradient = _anomaly(
        lambda q: q.view(2, 2).masked_fill(_mask, -torch.inf).softmax(1)[1, 0] ** 2,
        *(0.3, 0.4, 0.1, 0.2),
    )
    assert _finite and _named == (None if _one_open else "SoftmaxBackward0")
assert torch.allclose(_gradient, torch.cat([torch.zeros(2), _alone.grad]))
for _vectors, _values in (
    (lambda m: torch.linalg.svd(m)[0], torch.linalg.svdvals),
    (lambda m: torch.linalg.eigh(m)[1], torch.linalg.eigvalsh),
):
    _eye = 1.0, 0.0, 0.0, 1.0
    _named, _, _ = _anomaly(lambda q, f=_vectors: f(q.view(2, 2)).sum(), *_eye)
    assert _named in ("LinalgSvdBackward0", "LinalgEighBackward0")
    _named, _, _gradient = _anomaly(lambda q, f=_values: f(q.view(2, 2)).sum(), *_eye)
    assert not _named and torch.allclose(_gradient, torch.tensor(_eye))
_sizes = [torch.tensor(size) for size in ([[1, 1]], [2], [2])]
for _zero in (False, True):
    _loss_of = nn.CTCLoss(zero_infinity=_zero)
    _named, _finite, _gradient = _anomaly(
        lambda q, f=_loss_of: f(q.view(2, 1, 3).log_softmax(2), *_sizes),
        *(0.1, 0.2, 0.3, 0.4, 0.5, 0.6),
    )
    assert _named == (None if _zero else "CtcLossBackward0") and _finite is _zero
_net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 8))
_before = [p.detach().clone() for p in _net.parameters()]
_scaler, _steps = torch.amp.GradScaler("cpu", init_scale=2.0**24), []
_sgd = torch.optim.SGD(_net.parameters(), lr=0.1)
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    for _check in (True, False):
        _sgd.zero_grad()
        with torch.autocast("cpu", dtype=torch.float16):
            _loss = (_net(torch.ones(2, 3)) - 9).square().mean()
        try:
            with torch.autograd.set_detect_anomaly(_check):
                _scaler.scale(_loss).backward()
        except RuntimeError as error:
            _steps.append("nan values" in str(error))
    _scaler.step(_sgd)
assert _steps == [True] and _loss.isfinite()
for _right in (
    True,
    False,
):  # the scale of a loss that is right, and of one with a root at 0
    _scaler = torch.amp.GradScaler("cpu")
    _sgd = torch.optim.SGD(_net.parameters(), lr=0.0)
    for _ in range(20):
        _sgd.zero_grad()
        with torch.autocast("cpu", dtype=torch.float16):
            _loss_of = (_net(torch.ones(2, 3)) - 9).square().mean()
        _root = (0 * _loss_of).sqrt()
        _scaler.scale(_loss_of if _right else _loss_of + _root).backward()
        _scaler.step(_sgd)
        _scaler.update()
    assert (_scaler.get_scale() < 1) is (not _right)
assert all(map(torch.equal, _before, _net.parameters()))
# sphinx_gallery_end_ignore

# %%
# **Elements that you drop from a mean**, NaN targets too: drop them before the operation, ``(a[ok] / b[ok]).sum() /
# ok.sum().clamp(min=1)``. A ``where`` with ``mean()`` would count them.
#
# - ``x.softmax(1).log()``, ``x.sigmoid().log()``: ``x.log_softmax(1)``, ``F.logsigmoid(x)``.
# - ``acos``, ``asin``: ``x.float().clamp(-1 + 1e-6, 1 - 1e-6)``.
# - ``softmax`` or attention over a row that is masked everywhere: leave one position open, and ignore its result.
# - ``PowBackward1``, *1th output*: ``x`` is below 0, and ``e`` requires grad. If it need not learn: ``x ** e.detach()``. If
#   only rounding made ``x`` negative: ``x.clamp(min=1e-6) ** e``.
# - ``svd``, ``eigh`` with equal values, if you need only these: ``svdvals``, ``eigvalsh``.
# - ``CTCLoss`` that is infinite: ``zero_infinity=True``.
#
# What not to do
# --------------
# **Replace the result.** One ``where``, or ``nan_to_num``, comes too late:

x = torch.tensor(0.0, requires_grad=True)
torch.where(x > 0, torch.sqrt(x), 0.0).backward()
print("where:      x.grad =", x.grad.item())

x.grad = None
torch.nan_to_num(torch.sqrt(x) * 0).backward()
print("nan_to_num: x.grad =", x.grad.item())

# sphinx_gallery_start_ignore
assert x.grad.isnan()
assert _anomaly(lambda q: torch.where(q > 0, torch.sqrt(q), 0.0), 0.0)[2].isnan()
# sphinx_gallery_end_ignore

# %%
# **Replace the NaN in the gradient by 0.** A gradient is the *sum* over all paths, so one NaN also removes the part that was
# right. That of ``good`` is 2 for both numbers:

w = torch.tensor([0.0, 3.0], requires_grad=True)
bad = (w - w.detach()).square().sum().sqrt()
good = (2 * w).sum()
(bad + good).backward()
print("w.grad:", w.grad, "  replaced:", w.grad.nan_to_num())

# sphinx_gallery_start_ignore
assert w.grad.isnan().all() and w.grad.nan_to_num().tolist() == [0, 0]
assert _anomaly(lambda w: (2 * w).sum(), 0.0, 3.0)[2].tolist() == [2, 2]
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_debugging_anomaly_detection.py`: how to read the two tracebacks.
