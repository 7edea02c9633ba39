r"""
The gradient of svd and eigh: NaN for repeated values
=====================================================

.. index::
   single: Function 'LinalgEighBackward0' returned nan values
   single: Function 'LinalgSvdBackward0' returned nan values
   single: linalg.eigh: The algorithm failed to converge
   single: repeated singular values or eigenvalues
   single: ZCA whitening, differentiable PCA
   single: symmetric matrix square root
   single: sign of an eigenvector
   single: eigenvectors are specified up to multiplication by e^{i phi}
   single: nuclear norm, spectral norm, Lorentzian broadening

.. in-short::

   Backward through the vectors of ``eigh`` or ``svd`` divides by the difference of two values. So two equal values give
   NaN, and two close ones a large or a wrong gradient. If the values are enough, leave the vectors out:

   .. code-block:: python

      loss = torch.linalg.svdvals(A).sum()  # or eigvalsh(A): no such division

   The inverse or the root of a positive definite ``A`` has a gradient at equal values, which the backward of ``eigh``
   misses. Use ``inv``, write the derivative of the root, or whiten with ``cholesky``. If the loss needs one of several vectors
   with one value, no gradient exists.
"""

# %%
# The loss is fine, and the gradient is NaN
# -----------------------------------------
# You whiten features (ZCA): you multiply them by the inverse root of their covariance, so that they are uncorrelated and have
# the variance 1. Two of six units are dead: ``relu`` returns 0.

import torch


def whiten(h, eps=1e-3):
    h = h - h.mean(0)
    covariance = h.T @ h / len(h) + eps * torch.eye(h.shape[1])
    values, Q = torch.linalg.eigh(covariance)
    return h @ (Q * values.rsqrt()) @ Q.T


torch.manual_seed(0)
h = torch.randn(64, 6).relu()
h[:, :2] = 0  # two dead units

loss = whiten(h.requires_grad_()).abs().mean()
loss.backward()
print(f"loss: {loss.item():.2f}   NaN: {h.grad.isnan().sum().item()} of {h.numel()}")

# sphinx_gallery_start_ignore
import itertools
import warnings

assert loss.isfinite() and (h[:, :2] == 0).all() and (h[:, 2:] > 0).any(0).all()
assert h.grad.isnan().all() and h.numel() == 384
_white = whiten(h.detach())[:, 2:]
_white = _white - _white.mean(0)
assert (_white.T @ _white / 64 - torch.eye(4)).abs().max() < 0.1
_named = []
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    try:
        with torch.autograd.detect_anomaly():
            whiten(h).abs().mean().backward()
    except RuntimeError as error:
        _named.append(str(error))
    try:
        with torch.autograd.detect_anomaly():
            _eye = torch.eye(3, requires_grad=True)
            (torch.linalg.svd(_eye).U * 0.3).exp().sum().backward()
    except RuntimeError as error:
        _named.append(str(error))
assert _named == [
    f"Function 'Linalg{name}Backward0' returned nan values in its 0th output."
    for name in ("Eigh", "Svd")
]
_seeded = torch.Generator().manual_seed(0)
_nan = {}  # other dead columns: rounding can separate the two values
for _pair in itertools.combinations(range(6), 2):
    _h = torch.randn(64, 6, generator=_seeded).relu()
    _h[:, list(_pair)] = 0
    whiten(_h.requires_grad_()).abs().mean().backward()
    _nan[_pair] = _h.grad.isnan().any().item()
assert _nan[0, 1] and not all(_nan.values())
try:  # the next step: a matrix of NaN
    _next = "NaN" if torch.linalg.eigh(h.grad[:6]).eigenvalues.isnan().any() else ""
except RuntimeError as error:
    _next = str(error)
assert _next == "NaN" or "failed to converge" in _next
_centered = h.detach() - h.detach().mean(0)
for _eps in (1e-5, 1e-3, 1e-1, 10.0):
    _h = h.detach().clone().requires_grad_()
    whiten(_h, _eps).sum().backward()
    assert _h.grad.isnan().any()
    _found = torch.linalg.eigvalsh(_centered.T @ _centered / 64 + _eps * torch.eye(6))
    assert (_found[:2] == torch.tensor(_eps)).all() and _found[2] > _found[1]


def _grad(f, A):
    A = A.detach().clone().requires_grad_()
    return torch.autograd.grad(f(A), A)[0]


for _dtype in (torch.float32, torch.float64, torch.complex64, torch.complex128):
    for _n in (2, 3, 5):
        _eye = torch.eye(_n, dtype=_dtype)
        _some = torch.randn(_n, _n, dtype=_dtype)

        def _by_vectors(A, _some=_some):
            values, Q = torch.linalg.eigh(A)
            return ((Q * values.rsqrt()) @ Q.mH * _some).real.sum()

        def _by_svd(A, _some=_some):
            U, S, Vh = torch.linalg.svd(A)
            return ((U * S) @ Vh * _some).real.sum()

        def _inverse(A, _some=_some):
            values, Q = torch.linalg.eigh(A)
            return ((Q / values) @ Q.mH * _some).real.sum()

        assert _grad(_by_vectors, _eye).isnan().any()
        assert _grad(_inverse, _eye).isnan().any()
        assert _grad(_by_svd, _eye).isnan().any()
        for _only in (
            lambda A: torch.linalg.eigvalsh(A).square().sum(),
            lambda A: torch.linalg.eigh(A).eigenvalues.square().sum(),
            lambda A: torch.linalg.svdvals(A).square().sum(),
            lambda A: torch.linalg.svd(A).S.square().sum(),
        ):
            assert torch.allclose(_grad(_only, _eye), 2 * _eye)
# sphinx_gallery_end_ignore

# %%
# Both dead units have the variance 0, so the covariance has the eigenvalue ``eps`` twice.
# :ref:`Anomaly mode <sphx_glr_gallery_debugging_anomaly_detection.py>` names ``LinalgEighBackward0``. After a step, the weights
# are NaN, and the next ``eigh`` may raise *failed to converge*.

# %%
# A gap that closes
# -----------------
# Let two eigenvalues come close: 1, 1 + gap and 2. Of three losses, *values* needs no vectors. *Projector* is the squared
# length of ``t`` in the plane of the first two vectors, whichever two of the plane ``eigh`` returns. *One vector* needs the
# first alone. With the gap 0:

t = torch.tensor([0.6, 0.64, 0.48], dtype=torch.float64)
losses = {
    "values": lambda values, Q: values[:2].sum(),
    "projector": lambda values, Q: (t @ Q[:, :2]).square().sum(),
    "one vector": lambda values, Q: (t @ Q[:, 0]).square(),
}
A = torch.diag(torch.tensor([1, 1, 2], dtype=torch.float64)).requires_grad_()
for name, loss in losses.items():
    (gradient,) = torch.autograd.grad(loss(*torch.linalg.eigh(A)), A)
    print(f"{name:<10} norm of the gradient {gradient.norm():.2f}")

# %%
# .. how-measured:: This code computes the norm of each gradient for shrinking gaps, and draws it.

import matplotlib.pyplot as plt

GAPS = [10.0**-k for k in range(1, 9)] + [0.0]


def norms(loss):
    for gap in GAPS:
        A = torch.diag(torch.tensor([1, 1 + gap, 2], dtype=torch.float64))
        gradient = torch.autograd.grad(loss(*torch.linalg.eigh(A.requires_grad_())), A)
        yield gradient[0].norm().item()


def plot_gradient_norms(losses):
    _, ax = plt.subplots(figsize=(7, 2.8), layout="constrained")
    for (name, loss), color, marker, height in zip(
        losses.items(),
        ("#2563eb", "#047857", "#c2410c"),
        "s^o",
        (None, 5e-2, 1e8),
        strict=True,
    ):
        sizes = curves[name] = list(norms(loss))
        ax.plot(range(8), sizes[:8], color=color, marker=marker, label=name)
        ax.plot(9, sizes[8], color=color, marker=marker)
        if height:
            ax.text(9, height, "NaN", color=color, ha="center", va="center")
    ax.set(yscale="log", ylim=(1e-2, 1e9), xlabel="gap", ylabel="norm of the gradient")
    ax.set_xticks([*range(8), 9], [f"1e-{k}" for k in range(1, 9)] + ["0"])
    ax.set_title("The gap closes: one gradient grows, two stay")
    ax.legend(loc="upper left")


curves = {}

# %%
# The same gradients, for gaps that shrink to 0:

# figure: The norm of three gradients against a gap that shrinks from 0.1 to 1e-8, and then to 0. Through one vector it grows
#   from below 10 to below 1e8, tenfold with each step. Through the values and through the projector it stays about 1. At the
#   gap 0, the values have a gradient as before. The projector and the vector have NaN.
plot_gradient_norms(losses)

# sphinx_gallery_start_ignore
import math


def of_values(A):
    return losses["values"](*torch.linalg.eigh(A))


def of_projector(A):
    return losses["projector"](*torch.linalg.eigh(A))


def of_one_vector(A):
    return losses["one vector"](*torch.linalg.eigh(A))


_vector, _values, _plane = (curves[n] for n in ("one vector", "values", "projector"))
assert math.isnan(_vector[8]) and math.isnan(_plane[8])
assert all(abs(size - 2**0.5) < 1e-6 for size in _values)
assert all(0.5 < size < 2 for size in _plane[:8]) and 1 < _vector[0] < 10
assert all(abs(_vector[k + 1] / _vector[k] - 10) < 0.2 for k in range(7))
assert 1e7 < _vector[7] < 1e8
for _gap in (1e-1, 1e-4):  # the large derivative is the right one
    _A = torch.diag(torch.tensor([1, 1 + _gap, 2], dtype=torch.float64))
    for _loss in (of_values, of_projector, of_one_vector):
        assert torch.autograd.gradcheck(
            lambda A, f=_loss: f((A + A.T) / 2),
            _A.clone().requires_grad_(),
            eps=1e-9 if _gap < 1e-3 else 1e-6,
            atol=1e-3,
            rtol=1e-3,
        )
_A = torch.diag(torch.tensor([1.0, 1, 2], dtype=torch.float64))  # no derivative here
_step = torch.zeros(3, 3, dtype=torch.float64)
_step[0, 0] = 1e-9
assert abs(of_one_vector(_A + _step) - of_one_vector(_A - _step)) > 0.01
_near = torch.diag(torch.tensor([1, 1 + 1e-6, 2], dtype=torch.float64))
_near[0, 1] = _near[1, 0] = 1e-6
_turned = torch.linalg.eigh(_near).eigenvectors[0, 0].abs().acos().rad2deg()
assert 30 < _turned < 35
assert abs(of_projector(_A + _step) - of_projector(_A - _step)) < 1e-8
_turn = torch.tensor([[0.6, -0.8], [0.8, 0.6]], dtype=torch.float64)
_Q = torch.eye(3, dtype=torch.float64)[:, :2]
assert torch.allclose((t @ _Q @ _turn).square().sum(), (t @ _Q).square().sum())
assert not torch.allclose((t @ _Q @ _turn)[0] ** 2, (t @ _Q)[0] ** 2)
_P = _Q @ _Q.T
assert torch.allclose((_P @ t).square().sum(), (t @ _Q).square().sum())
# sphinx_gallery_end_ignore

# %%
# The large gradient of the vector is right: at the gap 1e-6, a change of 1e-6 can turn the vector by 30 degrees. At the gap
# 0, every vector of the plane is an eigenvector, so no derivative exists. The projector and the whitening do have one there,
# but backward computes 0 / 0.

# %%
# Why: the formula
# ----------------
# **Backward through the vectors divides by the gap.** With the gradients :math:`\bar\lambda` of the values and :math:`\bar Q`
# of the vectors, the gradient of a real matrix is
#
# .. math:: \bar A = Q \left( \mathrm{diag}(\bar\lambda) + \frac{M - M^T}{2 E} \right) Q^T,
#    \quad M = Q^T \bar Q, \quad E_{ij} = \lambda_j - \lambda_i
#
# with 1 on the diagonal of :math:`E`. PyTorch's source cites `Boeddeker et al., equation 4.77
# <https://arxiv.org/abs/1701.00392>`__. By hand:

A = torch.tensor([[2.0, 1, 0], [1, 3, 1], [0, 1, 5]], dtype=torch.float64)
values, Q = torch.linalg.eigh(A.requires_grad_())
loss = (t @ Q[:, 0]).square() + values[2]
bar_values, bar_Q, bar_A = torch.autograd.grad(loss, (values, Q, A))

M = Q.T @ bar_Q
E = (values - values[:, None]).fill_diagonal_(1)
by_hand = Q @ (torch.diag(bar_values) + (M - M.T) / (2 * E)) @ Q.T
print("equal:", torch.allclose(by_hand, bar_A))

# sphinx_gallery_start_ignore
assert torch.allclose(by_hand, bar_A) and bar_A.abs().max() > 0.1
_same = torch.diag(torch.tensor([1.0, 1, 2], dtype=torch.float64)).requires_grad_()
_sym = torch.tensor([[1.0, 2, 3], [2, 5, 4], [3, 4, 6]], dtype=torch.float64)
for _loss, _zero in (
    (lambda L, Q: (((Q * L.rsqrt()) @ Q.T) * _sym).sum(), True),
    (losses["projector"], True),
    (losses["one vector"], False),
):
    _L, _Q = torch.linalg.eigh(_same)
    (_bar,) = torch.autograd.grad(_loss(_L, _Q), _Q)
    _M = _Q.T @ _bar
    assert bool(abs((_M - _M.T)[0, 1]) < 1e-12) is _zero
_t2 = torch.linspace(-1, 1, 12, dtype=torch.float64).reshape(4, 3)
_X = torch.randn(4, 3, dtype=torch.float64)
_X.requires_grad_()
_U, _S, _Vh = torch.linalg.svd(_X, full_matrices=False)
_bar_U, _bar = torch.autograd.grad((_U * _t2).square().sum(), (_U, _X))
_M = _U.T @ _bar_U
_E = (_S**2 - _S[:, None] ** 2).fill_diagonal_(1)
_hand = _U @ ((_M - _M.T) / _E * _S) @ _Vh
_hand = _hand + (torch.eye(4) - _U @ _U.T) @ (_bar_U / _S) @ _Vh
assert torch.allclose(_hand, _bar)


def _finite(diagonal, rows):  # is the gradient of U finite?
    A = torch.zeros(rows, 3)
    A[:3] = torch.diag(torch.tensor(diagonal))
    return _grad(_bent, A).isfinite().all().item()


def _bent(A):
    return (torch.linalg.svd(A, full_matrices=False).U * 0.3).exp().sum()


assert _finite([3.0, 2, 1], 3) and _finite([3.0, 2, 1], 4)
assert _finite([3.0, 2, 0], 3) and not _finite([3.0, 2, 0], 4)
assert not _finite([3.0, 0, 0], 3) and not _finite([3.0, 1, 1], 3)
_wide = torch.zeros(3, 4)
_wide[:, :3] = torch.diag(torch.tensor([3.0, 2, 0]))


def _by(A, k):
    return (torch.linalg.svd(A, full_matrices=False)[k] * 0.3).exp().sum()


assert _grad(lambda A: _by(A, 2), _wide).isfinite().all().item() is False
assert _grad(lambda A: _by(A, 0), _wide).isfinite().all()
assert _grad(lambda A: _by(A, 2), _wide.T).isfinite().all()
# sphinx_gallery_end_ignore

# %%
# If the loss needs only values, the division is left out. For the inverse root :math:`A^{-1/2}` and the projector, :math:`M -
# M^T` is 0 wherever :math:`E` is: 0 / 0.
#
# ``svd`` divides by :math:`\sigma_j^2 - \sigma_i^2` (`Townsend <https://j-towns.github.io/papers/svd-derivative.pdf>`__). So
# ``U`` of ``diag(3, 0, 0)`` gives NaN (as in `pytorch#49886 <https://github.com/pytorch/pytorch/issues/49886>`__). For ``U``
# of a tall matrix and ``Vh`` of a wide one, a single 0 is enough.

# %%
# What people get wrong
# ---------------------
# **Raising eps.** ``eps * torch.eye(n)`` raises all values by the same amount, so the gap stays. But keep ``eps`` above 1e-6
# times the largest value: below, rounding can make the smallest one negative, and its root NaN.
#
# **Trusting a finite gradient.** Often rounding separates equal values, and you divide one rounding error by another. For the
# inverse root of 50 matrices, ``float32`` and ``float64`` disagree:


def inverse_root(A):
    values, Q = torch.linalg.eigh(A)
    return (Q * values.rsqrt().unsqueeze(-2)) @ Q.mT


R = torch.linalg.qr(torch.randn(50, 4, 4, dtype=torch.float64)).Q
weight = torch.randn(50, 4, 4, dtype=torch.float64)
weight = weight + weight.mT

for gap in (1e-1, 1e-3, 1e-6):
    A = R @ torch.diag(torch.tensor([1, 1 + gap, 2, 3], dtype=torch.float64)) @ R.mT
    gradients = []
    for dtype in (torch.float32, torch.float64):
        B = A.to(dtype).requires_grad_()
        loss = (inverse_root(B) * weight.to(dtype)).sum()
        gradients += torch.autograd.grad(loss, B)
    off = (gradients[0] - gradients[1]).norm(dim=(1, 2)) / gradients[1].norm(dim=(1, 2))
    print(f"gap {gap:g}: median error {off.nanmedian().item():.2%}")

# sphinx_gallery_start_ignore
assert 0.005 < off.nanmedian() < 0.5 and off.isfinite().double().mean() > 0.8
_A = R @ torch.diag(torch.tensor([1.0, 1, 2, 3], dtype=torch.float64)) @ R.mT
_found = torch.linalg.eigvalsh(_A.float())
assert (_found[:, 0] != _found[:, 1]).double().mean() > 0.2
_lost = _grad(lambda A: (inverse_root(A) * weight.float()).sum(), _A.float())
assert _lost.isfinite().all((1, 2)).double().mean() > 0.2
_A = torch.diag(torch.tensor([1e-9, 2e-9, 1.0]))  # a larger eps closes this gap


def _of_vectors(A):
    return (torch.linalg.eigh(A).eigenvectors * 0.3).exp().sum()


assert _grad(_of_vectors, _A).isfinite().all()
assert _grad(_of_vectors, _A + torch.eye(3)).isnan().any()
_negative = []
for _rows, _n in ((8, 32), (16, 64), (64, 256)):  # fewer rows than features
    for _seed in range(5):
        _x = torch.randn(_rows, _n, generator=torch.Generator().manual_seed(_seed)) * 10
        _x = _x - _x.mean(0)
        _x = _x.T @ _x / _rows
        _top = torch.linalg.eigvalsh(_x)[-1]
        _least = [
            torch.linalg.eigvalsh(_x + _e * _top * torch.eye(_n))[0]
            for _e in (1e-8, 1e-6)
        ]
        _negative.append(bool(_least[0] < 0))
        assert _least[1] > 0
assert any(_negative)
# sphinx_gallery_end_ignore

# %%
# **A loss of the vector itself.** If :math:`q` is an eigenvector, so is :math:`-q`, and another machine may return that one.
# So the gradient of ``t @ q`` has a meaningless sign. A complex vector can have any phase, and ``backward`` raises:

Z = torch.tensor([[1, 1j, 0], [-1j, 3, 1 + 1j], [0, 1 - 1j, 6]], requires_grad=True)
raised = []
try:
    torch.linalg.eigh(Z).eigenvectors.real.sum().backward()
except RuntimeError as error:
    raised.append(str(error))
print(*raised[0].split(". "), sep="\n")

# sphinx_gallery_start_ignore
assert len(raised) == 1 and raised[0].startswith(
    "linalg_eigh_backward: The eigenvectors in the complex case are specified up to "
    "multiplication by e^{i phi}. The specified loss function depends on this quantity"
)
_small = 1e-3 * torch.linalg.eigh(Z).eigenvectors.real.sum()
assert torch.autograd.grad(_small, Z)[0].isfinite().all()
for _loss in (
    lambda Q: Q[:, 0].abs().square() @ torch.arange(3.0),
    lambda Q: (Q[:, :2] @ Q[:, :2].mH).real.sum(),
):
    assert _grad(lambda A, f=_loss: f(torch.linalg.eigh(A).eigenvectors), Z).abs().max()
assert torch.func.grad(lambda A: torch.linalg.eigh(A).eigenvectors.real.sum())(
    Z.detach()
).any()  # no check in torch.func.grad
_ways = (
    lambda A: torch.linalg.svd(A).U.real.sum(),
    lambda A: torch.linalg.eig(A).eigenvectors.real.sum(),
)
_refused = []
for _way in _ways:
    try:
        _grad(_way, Z.detach())
    except RuntimeError as error:
        _refused.append(str(error))
assert len(_refused) == 2 and all("e^{i phi}" in text for text in _refused)
_A = torch.tensor([[2.0, 1, 0], [1, 3, 1], [0, 1, 5]], dtype=torch.float64)
_L, _Q = torch.linalg.eigh(_A)
for _sign in (1, -1):
    assert torch.allclose(_A @ (_sign * _Q[:, 0]), _L[0] * _sign * _Q[:, 0])


def _of_vector(A, sign=1):
    return t @ (sign * torch.linalg.eigh(A).eigenvectors[:, 0])


assert torch.equal(_grad(_of_vector, _A), -_grad(lambda A: _of_vector(A, -1), _A))
assert _grad(_of_vector, _A).abs().max() > 0.01


def _sign_fixed(q):
    return q * q[q.abs().argmax()].sgn().conj()


def _fixed(A, sign=1):
    q = sign * torch.linalg.eigh(A).eigenvectors[:, 0]
    return t @ _sign_fixed(q)


assert torch.equal(_grad(_fixed, _A), _grad(lambda A: _fixed(A, -1), _A))
assert torch.autograd.gradcheck(lambda A: _fixed((A + A.T) / 2), _A.requires_grad_())
_A = _A.detach()
_Z = torch.tensor(
    [[1, 1j, 0], [-1j, 3, 1 + 1j], [0, 1 - 1j, 6]], dtype=torch.complex128
)


def _first(Z):
    return torch.linalg.eigh((Z + Z.mH) / 2).eigenvectors[:, 0]


for _fine in (
    lambda Z: (t.to(Z) @ _first(Z)).abs() ** 2,
    lambda Z: _sign_fixed(_first(Z)).real.sum(),
):
    assert torch.autograd.gradcheck(_fine, _Z.clone().requires_grad_())
_q = torch.tensor([[1, -1 - 1e-7], [1 + 1e-7, -1]])  # a tie: rounding picks the sign
_q = torch.stack([row * row[row.abs().argmax()].sign() for row in _q])
assert torch.allclose(_q[0], -_q[1])
assert torch.autograd.gradcheck(
    lambda A: t @ t - (t @ torch.linalg.svd(A, full_matrices=False).U).square().sum(),
    torch.randn(3, 2, dtype=torch.float64, requires_grad=True),
)
for _shape in ((3, 2), (3, 1), (2, 3)):
    _A = torch.randn(_shape, dtype=torch.float64, requires_grad=True)
    _U, _S, _Vh = torch.linalg.svd(_A)
    _k = min(_shape)
    _new = _U[:, _k:] if _shape[0] > _k else _Vh[_k:]
    (_found,) = torch.autograd.grad(_new.square().sum() + _new.sum(), _A)
    assert not _found.any() and _new.numel()
# sphinx_gallery_end_ignore

# %%
# %%
# Use a loss without a sign or phase, such as ``(t @ q).abs() ** 2`` or the projector. Or, if one entry is clearly the largest,
# fix it: ``q * q[q.abs().argmax()].sgn().conj()``.
#
# **full_matrices=True**, the default of ``svd``, adds columns to ``U`` or rows to ``Vh``. Backward treats them as constants.
#
# **A matrix that is not symmetric.** ``eigh`` reads one triangle, by default the lower one, and the gradient is symmetric:

B = torch.tensor([[1.0, 99.0], [0.5, 3.0]], requires_grad=True)
(gradient,) = torch.autograd.grad(torch.linalg.eigvalsh(B)[1], B)
print(gradient.numpy().round(4))

# sphinx_gallery_start_ignore
_B = B.detach().double()
_lower, _upper = torch.zeros(2, 2).double(), torch.zeros(2, 2).double()
_lower[1, 0] = _upper[0, 1] = 1e-6


def _slope(step):
    up, down = (torch.linalg.eigvalsh(_B + s * step)[1] for s in (1, -1))
    return ((up - down) / 2e-6).item()


assert _slope(_upper) == 0 and abs(_slope(_lower) - 2 * gradient[1, 0]) < 1e-4
assert gradient[0, 1] == gradient[1, 0] and abs(gradient[1, 0] - 0.2236) < 1e-4
for _f in (torch.linalg.eigvalsh, lambda A: torch.linalg.eigh(A).eigenvectors.abs()):
    assert torch.autograd.gradcheck(
        lambda A, f=_f: f((A + A.T) / 2), _B.requires_grad_()
    )
_C = torch.tensor([[1, 2j, 0], [1 + 1j, 3, 1], [0.5, 1j, 7]], dtype=torch.complex128)
_C.requires_grad_()
for _other, _agrees in ((lambda A: A.mH, True), (lambda A: A.mT, False)):
    assert _agrees is torch.autograd.gradcheck(
        lambda A, f=_other: torch.linalg.eigvalsh((A + f(A)) / 2),
        _C,
        raise_exception=False,
    )
_refused = []
try:
    torch.autograd.gradcheck(torch.linalg.eigvalsh, _B)
except torch.autograd.gradcheck.__globals__["GradcheckError"] as error:
    _refused.append(str(error))
assert len(_refused) == 1 and "Jacobian mismatch" in _refused[0]
# sphinx_gallery_end_ignore

# %%
# The 99 is not read and gets a gradient; the 0.5 gets half of its true one. If ``A`` is meant to be symmetric, write
# ``eigh((A + A.mH) / 2)``, and :ref:`gradcheck <sphx_glr_gallery_functions_gradcheck.py>` agrees.

# %%
# What to do instead
# ------------------
# **You need values.** ``eigvalsh``, ``svdvals``, and what is made of them. For example, for a matrix of rank 1:

low = torch.ones(3, 3, requires_grad=True)
for name, loss in {
    "nuclear norm": torch.linalg.matrix_norm(low, "nuc"),
    "spectral norm": torch.linalg.matrix_norm(low, 2),
    "pinv": torch.linalg.pinv(low).sum(),
}.items():
    (gradient,) = torch.autograd.grad(loss, low)
    print(f"{name:<13}  finite: {gradient.isfinite().all().item()}")

# sphinx_gallery_start_ignore
for _name in ("nuc", 2):
    for _A in (torch.ones(3, 3), torch.zeros(3, 3), torch.eye(3), torch.ones(4, 3)):
        _found = _grad(lambda A, n=_name: torch.linalg.matrix_norm(A, n), _A)
        assert _found.isfinite().all()
        if _name == "nuc" and _A.shape == (3, 3):  # a full step for zero values too
            assert torch.allclose(_found @ _found.T, torch.eye(3), atol=1e-5)
for _A in (torch.ones(3, 3), torch.eye(3), torch.ones(4, 3)):
    assert _grad(lambda A: torch.linalg.pinv(A).sum(), _A).isfinite().all()
for _h in (1e-3, -1e-3):
    _A = torch.diag(torch.tensor([1.0, _h]))
    assert abs(torch.linalg.matrix_norm(_A, "nuc") - 1.001) < 1e-6
    assert torch.linalg.pinv(_A).abs().max() > 999
assert torch.linalg.pinv(torch.diag(torch.tensor([1.0, 0]))).abs().max() == 1
_top = _grad(lambda A: torch.linalg.eigvalsh(A)[-1], torch.eye(3))
assert torch.linalg.matrix_rank(_top) == 1 and abs(_top.trace() - 1) < 1e-6
_top = _grad(lambda A: torch.linalg.matrix_norm(A, 2), torch.eye(3))
assert torch.allclose(_top, torch.eye(3) / 3)
_eye = torch.eye(3, requires_grad=True)
(_first,) = torch.autograd.grad(
    torch.linalg.eigvalsh(_eye).square().sum(), _eye, create_graph=True
)
assert torch.autograd.grad((_first * torch.ones(3, 3)).sum(), _eye)[0].isnan().any()
# sphinx_gallery_end_ignore

# %%
# A single value has a :ref:`kink <sphx_glr_gallery_differentiation_points_without_a_derivative.py>` where it meets another one,
# and PyTorch picks a slope. A second derivative needs the vectors.
#
# **You need a function of the matrix.** Compute it without vectors: ``matrix_exp``, ``solve``, ``logdet``, ``cholesky``. If any
# whitening will do, take one with ``cholesky``:

L = torch.linalg.cholesky(torch.cov(h.T) + 1e-3 * torch.eye(6))
white = torch.linalg.solve_triangular(L, (h - h.mean(0)).T, upper=False).T

# sphinx_gallery_start_ignore
_h = h.detach().clone().requires_grad_()
_L = torch.linalg.cholesky(torch.cov(_h.T) + 1e-3 * torch.eye(6))
_w = torch.linalg.solve_triangular(_L, (_h - _h.mean(0)).T, upper=False).T
_w.abs().mean().backward()
assert _h.grad.isfinite().all() and _h.grad.abs().max() > 0
assert (torch.cov(white.T)[2:, 2:] - torch.eye(4)).abs().max() < 0.1
for _f in (
    torch.matrix_exp,
    torch.linalg.inv,
    torch.linalg.cholesky,
    lambda A: torch.linalg.solve(A, torch.ones(3).double()),
    torch.logdet,
):
    assert torch.autograd.gradcheck(
        lambda A, f=_f: f((A + A.T) / 2), torch.eye(3).double().requires_grad_()
    )
# sphinx_gallery_end_ignore

# %%
# For the inverse root, write the derivative in a :ref:`Function <sphx_glr_gallery_functions_exp_function.py>` (`pytorch#25481
# <https://github.com/pytorch/pytorch/issues/25481>`__ requests a built-in root). The quotient
# :math:`\frac{f(\lambda_i) - f(\lambda_j)}{\lambda_i - \lambda_j}` of :math:`f(\lambda) = \lambda^{-1/2}` has a form without a
# difference:

from torch.autograd.function import once_differentiable


class InverseRoot(torch.autograd.Function):
    @staticmethod
    def forward(ctx, A):
        values, Q = torch.linalg.eigh(A)
        ctx.save_for_backward(values.sqrt(), Q)
        return (Q * values.rsqrt().unsqueeze(-2)) @ Q.mH

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        root, Q = ctx.saved_tensors
        row, column = root.unsqueeze(-1), root.unsqueeze(-2)
        quotient = -1 / (row * column * (row + column))
        return Q @ (quotient * (Q.mH @ grad @ Q)) @ Q.mH


# sphinx_gallery_start_ignore
def _symmetric(A):
    return InverseRoot.apply((A + A.mH) / 2)


for _values in ([1.0, 1, 1], [1, 1, 2], [0.5, 1, 3]):
    _A = torch.diag(torch.tensor(_values, dtype=torch.float64)).expand(2, 3, 3)
    assert torch.autograd.gradcheck(_symmetric, _A.clone().requires_grad_())
    assert torch.allclose(InverseRoot.apply(_A), inverse_root(_A))
    _A = (_A + 0.1 * torch.tensor([[0, 1j, 0], [-1j, 0, 0], [0, 0, 0]])).detach()
    _root = InverseRoot.apply(_A)
    assert torch.allclose(_root @ _root @ _A, torch.eye(3, dtype=_A.dtype))
    assert torch.autograd.gradcheck(_symmetric, _A.requires_grad_())
_one = torch.eye(2, requires_grad=True)


def _firsts(loss):
    value = loss(InverseRoot.apply(_one))
    return torch.autograd.grad(value, _one, create_graph=True)[0]


_raises = []
for _try in (
    lambda: _firsts(lambda R: R.square().sum()).sum().backward(),
    lambda: torch.func.grad(lambda A: InverseRoot.apply(A).sum())(_one.detach()),
):
    try:
        _try()
    except RuntimeError as error:
        _raises.append(str(error))
assert "once_differentiable" in _raises[0]
assert "setup_context" in _raises[1] and len(_raises) == 2
assert not _firsts(torch.sum).requires_grad  # a linear loss: not even an error
_h = h.detach().clone().requires_grad_()
_c = _h - _h.mean(0)
_w = _c @ InverseRoot.apply(_c.T @ _c / 64 + 1e-3 * torch.eye(6))
assert torch.allclose(_w, whiten(h.detach()), atol=1e-5)
_w.abs().mean().backward()
assert _h.grad.isfinite().all() and _h.grad.abs().max() > 0
_h, _found, _refused = h.detach().bfloat16().requires_grad_(), [], []
with torch.autocast("cpu", torch.bfloat16):
    for _on in (True, False):
        with torch.autocast("cpu", torch.bfloat16, enabled=_on):
            _c = _h.float() - _h.float().mean(0)
            _found.append(_c @ InverseRoot.apply(_c.T @ _c / 64 + 1e-3 * torch.eye(6)))
try:
    _found[0].abs().mean().backward()
except RuntimeError as error:
    _refused.append(str(error))
assert "dtype" in _refused[0]
_found[1].abs().mean().backward()
assert _h.grad.isfinite().all() and _found[1].dtype == torch.float32
# sphinx_gallery_end_ignore

# %%
# **You need vectors.** Broadening replaces :math:`1/d` by :math:`d / (d^2 + \varepsilon)`, a Lorentzian, in the formula
# (as in `PEPSKit.jl#139 <https://github.com/QuantumKitHub/PEPSKit.jl/issues/139>`__). So the gradient is finite even where none
# exists. Choose :math:`\varepsilon` much smaller than the squares of the gaps that you need, or their gradient is lost:


class BroadEigh(torch.autograd.Function):
    @staticmethod
    def forward(ctx, A, eps):
        values, Q = torch.linalg.eigh(A)
        ctx.save_for_backward(values, Q)
        ctx.eps = eps
        return values, Q

    @staticmethod
    @once_differentiable
    def backward(ctx, bar_values, bar_Q):
        values, Q = ctx.saved_tensors
        d = values.unsqueeze(-2) - values.unsqueeze(-1)
        M = Q.mH @ bar_Q
        M = (M - M.mH) / 2 * d / (d * d + ctx.eps)
        return Q @ (torch.diag_embed(bar_values) + M) @ Q.mH, None


# sphinx_gallery_start_ignore
_both = []
for _eig in (torch.linalg.eigh, lambda A: BroadEigh.apply(A, 1e-12)):
    _both.append(
        _grad(
            lambda A, f=_eig: (f(A)[1].abs()[1:] ** 3).sum() + (f(A)[0] ** 2).sum(),
            Z.to(torch.complex128),
        )
    )
assert torch.allclose(*_both) and _both[0].abs().max() > 1
_same = torch.diag(torch.tensor([1.0, 1, 2], dtype=torch.float64))
assert _grad(of_one_vector, _same).isnan().any()
_made_up = _grad(lambda A: losses["one vector"](*BroadEigh.apply(A, 1e-8)), _same)
assert _made_up.isfinite().all() and _made_up.any()
_A = 1e-5 * torch.tensor([[2.0, 1, 0], [1, 3, 1], [0, 1, 5]], dtype=torch.float64)
_kept = _grad(lambda A: losses["one vector"](*torch.linalg.eigh(A)), _A)
for _eps, _lost in ((1e-8, True), (1e-16, False)):
    _off = (
        _grad(lambda A, e=_eps: losses["one vector"](*BroadEigh.apply(A, e)), _A)
        - _kept
    )
    assert (
        (_off.norm() > 0.9 * _kept.norm())
        == _lost
        == (_off.norm() > 1e-4 * _kept.norm())
    )
# sphinx_gallery_end_ignore


# %%
# .. how-measured:: Gradients in float32 are compared with exact ones: the median relative error over 50 matrices with the
#    eigenvalues 1, 1 + gap, 2, 3. For the gap 0 they are diagonal, so that the computed values are equal too.

import pandas as pd


def matrices(gap):
    basis = R if gap else torch.eye(4, dtype=torch.float64).expand(50, 4, 4)
    diagonal = torch.tensor([1, 1 + gap, 2, 3], dtype=torch.float64)
    return basis @ torch.diag(diagonal) @ basis.mT


def root_of(eig):
    def root(A):
        values, Q = eig(A)
        return (Q * values.rsqrt().unsqueeze(-2)) @ Q.mT

    return root


def plane_of(eig):
    def plane(A):
        Q = eig(A)[1][..., :2]
        return Q @ Q.mT

    return plane


def gradient_of(function, A):
    A = A.clone().requires_grad_()
    return torch.autograd.grad((function(A) * weight.to(A)).sum(), A)[0].double()


def exact_plane(A):  # divides by the large gaps alone
    values, Q = torch.linalg.eigh(A)
    inverse = torch.zeros_like(A)
    inverse[..., :2, 2:] = 1 / (values[..., :2, None] - values[..., None, 2:])
    return Q @ ((inverse + inverse.mT) * (Q.mT @ weight @ Q)) @ Q.mT


def separated(A, width=1e-3):
    return torch.linalg.eigh(A + torch.diag(torch.linspace(0, width, 4)))


def broadened(A):
    return BroadEigh.apply(A, 1e-8)


def error(way, A, exact):
    off = (gradient_of(way, A) - exact).flatten(1).norm(dim=1)
    return (off / exact.flatten(1).norm(dim=1)).nanmedian().item()


def measured():
    for gap in (0.1, 1e-6, 0.0):
        A = matrices(gap)
        for kind, exact, wrap in (
            ("root", gradient_of(InverseRoot.apply, A), root_of),
            ("projector", exact_plane(A), plane_of),
        ):
            ways = {"eigh": wrap(torch.linalg.eigh), "separated": wrap(separated)}
            ways["broadened"] = wrap(broadened)
            if kind == "root":
                ways["InverseRoot"] = InverseRoot.apply
            for name, way in ways.items():
                errors[name, kind, gap] = error(way, A.float(), exact)


errors = {}
measured()
COLUMNS = [(kind, gap) for kind in ("root", "projector") for gap in (0.1, 1e-6, 0.0)]
WAYS = ["eigh", "separated", "broadened", "InverseRoot"]


def tabulate_errors():
    cells = [[f"{errors.get((way, *c), -1):.2%}" for way in WAYS] for c in COLUMNS]
    index = [f"{kind}, gap {gap:g}" for kind, gap in COLUMNS]
    table = pd.DataFrame(cells, index, WAYS)
    return table.replace({"nan%": "NaN", "-100.00%": ""})


# %%
# The error of the gradient in ``float32``, of the inverse root and of a projector. *Separated* is ``eigh`` of ``A +
# torch.diag(torch.linspace(0, 1e-3, 4))``. *Broadened* has :math:`\varepsilon` = 1e-8:

# sphinx_gallery_start_ignore
for _kind in ("root", "projector"):
    assert errors["eigh", _kind, 0.1] < 1e-5
    assert 0.005 < errors["eigh", _kind, 1e-6] < 0.8
    assert math.isnan(errors["eigh", _kind, 0.0])
    for _gap in (0.1, 1e-6, 0.0):
        assert 1e-4 < errors["separated", _kind, _gap] < 2e-3
for _gap in (0.1, 1e-6, 0.0):
    assert errors["InverseRoot", "root", _gap] < 2e-6
    assert errors["broadened", "projector", _gap] < 2e-5
assert errors["broadened", "root", 0.1] < 1e-5
for _gap in (1e-6, 0.0):
    assert 0.25 < errors["broadened", "root", _gap] < 0.6
for _gap in (1e-6, 0.0):  # broadening: the same in float64
    _A = matrices(_gap)
    _exact = gradient_of(InverseRoot.apply, _A)
    assert error(root_of(broadened), _A, _exact) > 0.25
    _steps = torch.eye(16, dtype=torch.float64).reshape(16, 1, 4, 4) * 1e-6
    _steps = (_steps + _steps.mT) / 2
    for _f, _want in (
        (inverse_root, _exact),
        (plane_of(torch.linalg.eigh), exact_plane(_A)),
    ):
        _rise = ((_f(_A + _steps) - _f(_A - _steps)) / 2e-6 * weight).sum((-1, -2))
        _want = (_want + _want.mT) / 2
        assert torch.allclose(_rise.T.reshape(50, 4, 4), _want, atol=1e-5, rtol=1e-4)
_A = R @ torch.diag(torch.tensor([1.0, 1, 2, 3], dtype=torch.float64)) @ R.mT
_exact = gradient_of(InverseRoot.apply, _A)
_by_width = [
    error(root_of(lambda A, w=_w: separated(A, w)), _A.float(), _exact)
    for _w in (1e-2, 1e-3)
]
assert 3e-3 < _by_width[0] < 3e-2 and 3e-4 < _by_width[1] < 3e-3
_open = torch.diag(torch.tensor([1, 1 - 1e-3 / 3, 2, 3], dtype=torch.float64))
_values = separated(_open).eigenvalues
assert _values[1] - _values[0] < 1e-9
# sphinx_gallery_end_ignore
tabulate_errors()

# %%
# Broadening is right for the projector. The root needs the limit of 0 / 0, but broadening puts a 0 there: more than a quarter
# of the gradient is lost, in ``float64`` too. Separating is off by about as much as it adds to ``A``.
#
# ``InverseRoot`` gives no NaN in the whitening at the top. It has no second derivative, and ``torch.func`` refuses it. Under
# autocast, compute ``whiten(h.float())`` inside ``with torch.autocast("cuda", enabled=False):``.

# %%
# Exercise
# --------
# ``B = (Q * values) @ Q.T`` is ``A`` again, so each entry of ``A`` should have the gradient 1 from ``B.sum()``. What do you get
# at ``diag(1, 2)`` and at ``diag(1, 1)``? Somebody writes ``Q.detach()`` against the NaN. Is that right?
#
# .. solution::
#
# At ``diag(1, 2)`` it is 1 everywhere, and at ``diag(1, 1)`` NaN. With ``detach``, the entries off the diagonal are 0: finite
# and wrong.

found = {}
for name, second in {"diag(1, 2)": 2.0, "diag(1, 1)": 1.0}.items():
    for cut in (False, True):
        A = torch.diag(torch.tensor([1.0, second])).requires_grad_()
        values, Q = torch.linalg.eigh(A)
        Q = Q.detach() if cut else Q
        B = (Q * values) @ Q.T
        (found[name, cut],) = torch.autograd.grad(B.sum(), A)
        print(f"{name}  detach: {cut!s:<5}  gradient: {found[name, cut].tolist()}")

# predict: found["diag(1, 2)", True][0, 1].item() -- With ``Q.detach()``, what is the
#   gradient of the entry in row 0, column 1?

# sphinx_gallery_start_ignore
assert torch.allclose(found["diag(1, 2)", False], torch.ones(2, 2))
assert found["diag(1, 1)", False].isnan().all()
for _name in ("diag(1, 2)", "diag(1, 1)"):
    assert torch.allclose(found[_name, True], torch.eye(2))
_A = torch.randn(4, 4, dtype=torch.float64)
_L, _Q = torch.linalg.eigh((_A + _A.T) / 2)
assert torch.allclose((_Q * _L) @ _Q.T, (_A + _A.T) / 2)
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_differentiation_points_without_a_derivative.py`: slopes at a kink.
# - :ref:`sphx_glr_gallery_functions_exp_function.py`, and :ref:`how to test it <sphx_glr_gallery_functions_gradcheck.py>`.
# - :ref:`sphx_glr_gallery_differentiation_complex_gradients.py`.
# - In PyTorch's reference: `eigh <https://docs.pytorch.org/docs/stable/generated/torch.linalg.eigh.html>`__ and `svd
#   <https://docs.pytorch.org/docs/stable/generated/torch.linalg.svd.html>`__.
