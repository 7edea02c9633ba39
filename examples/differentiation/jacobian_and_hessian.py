r"""
Jacobian and Hessian in PyTorch: torch.func
===========================================

.. in-short::

   ``jacrev(f)(x)`` is the Jacobian: its shape is the shape of the output, then the shape of the input. ``hessian(f)(x)`` holds
   the second derivatives of a scalar function. For a batch, let ``f`` take one sample and write ``vmap(jacrev(f))(batch)``.
   They build the whole matrix. If you need only a product with it, use ``jvp``, ``vjp``, or ``hvp`` below. A few operations
   silently give wrong numbers: see the last mistake below.
"""

# %%
# Which input moves which output?
# -------------------------------
# ``backward()`` gives you the gradient of one number, the loss. But how much does each of many outputs react to each input? The
# table of these derivatives is the Jacobian. Below, ``pool`` averages each 2 x 2 block of an image:

from functools import partial

import torch
import torch.nn.functional as F
from torch import nn
from torch.autograd.functional import jacobian, vhp
from torch.func import functional_call, grad, hessian, jacfwd, jacrev, jvp, vjp, vmap


def pool(image):
    return F.avg_pool2d(image[None], 2)[0]


J = jacrev(pool)(torch.randn(4, 4))
print("shape of the output, then of the input:", tuple(J.shape))

# %%
# .. how-measured:: It defines how to draw a Jacobian as four images.

import matplotlib.pyplot as plt


def plot_jacobian(J):
    figure, axes = plt.subplots(1, 4, figsize=(7, 2.3), layout="constrained")
    titles = ["J[0, 0]", "J[0, 1]", "J[1, 0]", "J[1, 1]"]
    for image, title, ax in zip(J.flatten(0, 1), titles, axes, strict=True):
        ax.imshow(image, cmap="Blues", vmin=-0.05, vmax=0.5)
        for row in range(4):
            for column in range(4):
                number = f"{image[row, column]:g}"
                ax.text(column, row, number, ha="center", va="center", fontsize=8)
        ax.set_title(title)
        ax.set_axis_off()
    figure.suptitle("Jacobian of a 2x2 average pool: one image for each output")


# %%
# ``J[i, j]`` is how much each pixel counts for output ``(i, j)``:

# figure: Four squares of 4 by 4 pixels in a row, one for each output of the pool. In each, one quarter is dark and
#   marked 0.25, top left for output (0, 0), top right for (0, 1) and so on; the other twelve pixels are 0.
plot_jacobian(J)

# sphinx_gallery_start_ignore
assert J.shape == (2, 2, 4, 4)
for _i in range(2):
    for _j in range(2):
        _expected = torch.zeros(4, 4)
        _expected[2 * _i : 2 * _i + 2, 2 * _j : 2 * _j + 2] = 0.25
        assert torch.equal(J[_i, _j], _expected)
for _shape in [(), (1,), (3,), (2, 0), (2, 3)]:
    for _function in (
        torch.sin,
        lambda x: x.sum(),
        lambda x: torch.stack([x, x]),
        lambda x: x.flatten(),
    ):
        _x = torch.randn(_shape)
        _J = jacrev(_function)(_x)
        assert _J.shape == (*_function(_x).shape, *_shape)
        if _J.numel():
            assert torch.allclose(_J, torch.autograd.functional.jacobian(_function, _x))
_failed = 0
for _x, _function in (
    (torch.ones(2) * 1j, torch.abs),
    (torch.ones(2), lambda x: x * 1j),
):
    for _way in (jacrev, hessian):
        try:
            _way(_function)(_x)
        except RuntimeError as error:
            _failed += "to be real but received complex" in str(error)
assert _failed == 4
for _way in (jacrev(torch.sin), hessian(lambda x: x.sin().sum())):
    try:
        _way(torch.tensor([1, 2]))
    except (RuntimeError, ValueError) as error:
        _failed += "floating point" in str(error)
assert _failed == 6
# sphinx_gallery_end_ignore

# %%
# For a linear layer, :math:`y = Wx + b`, it is the weight. For a scalar output it is the gradient.

torch.manual_seed(0)
linear, x = nn.Linear(4, 2), torch.randn(4)
print("Jacobian equals the weight:", torch.equal(jacrev(linear)(x), linear.weight))
print("Jacobian of a sum:", jacrev(torch.sum)(x))

# sphinx_gallery_start_ignore
assert torch.equal(jacrev(linear)(x), linear.weight)
assert torch.equal(jacrev(torch.sum)(x), torch.ones(4))
# sphinx_gallery_end_ignore

# %%
# One Jacobian for each sample
# ----------------------------
# ``jacrev`` takes a whole batch for one input. So you also get the derivatives of each sample's outputs with respect to the
# *other* samples: below, 48 zeros among 72 numbers. **Write the function for one sample, and let vmap run it for the batch:**

net = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 2))
batch = torch.randn(3, 4)
whole = jacrev(net)(batch)
per_sample = vmap(jacrev(net))(batch)

print("jacrev(f):      ", tuple(whole.shape), "zeros:", (whole == 0).sum().item())
print("vmap(jacrev(f)):", tuple(per_sample.shape))

# sphinx_gallery_start_ignore
assert (whole == 0).sum() == 48 and whole.numel() == 72 and (per_sample == 0).sum() == 0
for _i in range(3):
    assert torch.allclose(whole[_i, :, _i], per_sample[_i])
# sphinx_gallery_end_ignore

# %%
# When jacrev, when jacfwd
# ------------------------
# A backward pass from one output gives a row of the Jacobian, so ``jacrev`` computes a row for each output. ``jacfwd`` computes
# a column for each input, in :ref:`forward mode <sphx_glr_gallery_differentiation_forward_mode.py>`. So the rule is: **more
# inputs than outputs, jacrev; more outputs than inputs, jacfwd**. Both take all rows or columns in one pass, under ``vmap``.
# The older ``jacobian`` runs a backward pass for each row.
#
# .. how-measured:: A hook on the result of a layer with 32 inputs and 32 outputs is called once for each backward pass.


def count_backward_passes(way):
    passes, weight = [], torch.randn(32, 32) / 32**0.5

    def layer(x):
        y = torch.tanh(weight @ x)
        if y.requires_grad:
            y.register_hook(passes.append)
        return y

    x = torch.randn(32)
    expected = (1 - torch.tanh(weight @ x) ** 2)[:, None] * weight
    assert torch.allclose(way(layer, x), expected, atol=1e-5)
    return len(passes)


# %%
# Backward passes for a layer with 32 outputs. If memory is short, ``chunk_size`` limits the rows of one pass:

ways = {
    "jacobian": jacobian,
    "jacobian, vectorize=True": partial(jacobian, vectorize=True),
    "jacobian, forward mode": partial(
        jacobian, vectorize=True, strategy="forward-mode"
    ),
    "jacrev": lambda f, x: jacrev(f)(x),
    "jacrev, chunk_size=8": lambda f, x: jacrev(f, chunk_size=8)(x),
    "jacfwd": lambda f, x: jacfwd(f)(x),
}

for name, way in ways.items():
    print(f"{name:<25} {count_backward_passes(way):>2}")

# sphinx_gallery_start_ignore
assert [count_backward_passes(way) for way in ways.values()] == [32, 1, 0, 1, 4, 0]
# sphinx_gallery_end_ignore

# %%
# If you need only a product with the Jacobian :math:`J`, ``jvp(f, (x,), (t,))`` returns ``f(x)`` and :math:`J t`, and
# ``vjp(f, x)`` returns ``f(x)`` and a function that computes :math:`v^\top J`. Neither builds the Jacobian.

x, v, t = torch.randn(4), torch.randn(2), torch.randn(4)
_, pull_back = vjp(linear, x)
print("v^T J equal:", torch.allclose(pull_back(v)[0], v @ linear.weight))
print("J t equal:  ", torch.allclose(jvp(linear, (x,), (t,))[1], linear.weight @ t))

# sphinx_gallery_start_ignore
assert torch.allclose(pull_back(v)[0], v @ linear.weight)
assert torch.allclose(jvp(linear, (x,), (t,))[1], linear.weight @ t)
assert torch.equal(vjp(linear, x)[0], linear(x))
assert torch.allclose(jvp(linear, (x,), (t,))[0], linear(x))
_one = torch.tensor([1 + 0j])
assert jvp(lambda z: z * (2 + 3j), (_one,), (_one,))[1].item() == 2 + 3j
assert vjp(lambda z: z * (2 + 3j), _one)[1](_one)[0].item() == 2 - 3j  # not 2 + 3j
# sphinx_gallery_end_ignore

# %%
# Several inputs, several outputs
# -------------------------------
# ``argnums`` names the arguments to differentiate by. For each output, you get one Jacobian for each argument:


def model(x, scale):
    return {"scaled": scale * x, "energy": (scale * x).square().sum()}


x, scale = torch.randn(3), torch.tensor(2.0)
J = jacrev(model, argnums=(0, 1))(x, scale)
for name, (by_x, by_scale) in J.items():
    print(f"{name}: by x {tuple(by_x.shape)}, by scale {tuple(by_scale.shape)}")

# sphinx_gallery_start_ignore
_J = jacrev(lambda pair: (pair["a"] * pair["b"], pair["a"].sum()))({"a": x, "b": 2 * x})
assert torch.allclose(_J[0]["b"], torch.diag(x)) and torch.equal(
    _J[1]["b"], torch.zeros(3)
)
assert torch.allclose(J["scaled"][0], 2 * torch.eye(3)) and torch.allclose(
    J["scaled"][1], x
)
assert torch.allclose(J["energy"][0], 8 * x) and torch.allclose(
    J["energy"][1], 4 * x.square().sum()
)
# sphinx_gallery_end_ignore

# %%
# A module's parameters, and per-sample gradients
# -----------------------------------------------
# ``jacrev`` differentiates by arguments, so pass in the parameters with ``functional_call``:

params = dict(linear.named_parameters())
inputs, targets = torch.randn(8, 4), torch.randn(8, 2)


def predict(params, x):
    return functional_call(linear, params, (x,))


J = jacrev(predict)(params, inputs[0])
print({name: tuple(part.shape) for name, part in J.items()})

# sphinx_gallery_start_ignore
assert {name: tuple(part.shape) for name, part in J.items()} == {
    "weight": (2, 2, 4),
    "bias": (2, 2),
}
assert torch.equal(J["bias"], torch.eye(2))
assert torch.allclose(J["weight"], torch.einsum("ij,k->ijk", torch.eye(2), inputs[0]))
# sphinx_gallery_end_ignore

# %%
# In the same way you get :ref:`one gradient for each sample <sphx_glr_gallery_modules_per_sample_gradients.py>`, where
# ``backward()`` gives you only their mean. ``in_dims`` says that the parameters are shared.


def loss_of_one(params, x, target):
    return F.mse_loss(predict(params, x), target)


per_sample = vmap(grad(loss_of_one), in_dims=(None, 0, 0))(params, inputs, targets)
F.mse_loss(linear(inputs), targets).backward()

one_each = per_sample["weight"].detach()
print("weight:", tuple(one_each.shape))
print("mean is .grad:", torch.allclose(one_each.mean(0), linear.weight.grad, atol=1e-6))
print("norms:", one_each.flatten(1).norm(dim=1))

# sphinx_gallery_start_ignore
assert per_sample["weight"].shape == (8, 2, 4)
for _name, _p in linear.named_parameters():
    assert torch.allclose(per_sample[_name].mean(0), _p.grad, atol=1e-6)
for _i in range(8):
    _one = torch.autograd.grad(
        F.mse_loss(linear(inputs[_i]), targets[_i]), linear.weight
    )[0]
    assert torch.allclose(per_sample["weight"][_i], _one, atol=1e-6)
# sphinx_gallery_end_ignore

# %%
# The Hessian and Hessian-vector products
# ---------------------------------------
# The Hessian is the Jacobian of the gradient. For the Rosenbrock function at its minimum:


def rosenbrock(p):
    x, y = p
    return (1 - x) ** 2 + 100 * (y - x**2) ** 2


H = hessian(rosenbrock)(torch.tensor([1.0, 1.0]))
print(H)
print("eigenvalues:", [round(value, 2) for value in torch.linalg.eigvalsh(H).tolist()])

# sphinx_gallery_start_ignore
p = torch.tensor([1.0, 1.0])
assert torch.equal(H, torch.tensor([[802.0, -400.0], [-400.0, 200.0]]))
assert torch.equal(H, jacfwd(jacrev(rosenbrock))(p))
_low, _high = torch.linalg.eigvalsh(H).tolist()
assert 0 < 2000 * _low < _high and torch.equal(grad(rosenbrock)(p), torch.zeros(2))
_p = torch.tensor([1.0, 0.9])  # two positive eigenvalues, and no minimum
assert torch.linalg.eigvalsh(hessian(rosenbrock)(_p)).min() > 0
assert grad(rosenbrock)(_p).norm() > 10
# sphinx_gallery_end_ignore

# %%
# The gradient is zero at this point, and both eigenvalues are positive, so it is a minimum.
#
# For a network with a million parameters, the Hessian would have :math:`10^{12}` entries. Its product with a vector has a
# million. It is the derivative of the gradient along that vector, so ``hvp`` below is the ``jvp`` of ``grad``.
#
# ``hvp`` raises an error on fused attention and, on PyTorch 2.13, on ``F.mse_loss(y, t)`` and ``F.huber_loss(y, t)``. For these
# losses, use PyTorch's ``vhp``, which runs backward twice. It returns ``f(x)``, and the same product.


def chain(x):
    return (1 - torch.cos(x[1:] - x[:-1])).sum() + 0.1 * (x**4).sum()


def hvp(f, x, v):
    return jvp(grad(f), (x,), (v,))[1]


x, v = torch.randn(2, 100, dtype=torch.float64)
H = hessian(chain)(x)
print("entries of H:", H.numel(), "  of Hv:", hvp(chain, x, v).numel())
assert torch.allclose(hvp(chain, x, v), H @ v)
assert torch.allclose(vhp(chain, x, v)[1], H @ v)

# sphinx_gallery_start_ignore
_failed, _q = 0, torch.randn(1, 1, 2, 2)
for _way in (lambda f, q: hessian(f)(q), lambda f, q: hvp(f, q, q)):
    try:
        _way(lambda q: F.scaled_dot_product_attention(q, q, q).sum(), _q)
    except NotImplementedError as error:
        _failed += "forward AD" in str(error) and "flash_attention" in str(error)
assert _failed == 2
_y, _v, _t = torch.randn(3, 5)
for _loss in (F.mse_loss, F.huber_loss):

    def _f(y, loss=_loss):
        return loss(y, _t)

    assert torch.allclose(vhp(_f, _y, _v)[1], hessian(_f)(_y) @ _v)
    _failed = False
    try:
        hvp(_f, _y, _v)
    except RuntimeError as error:
        _failed = "ZeroTensors" in str(error) or "huber_loss" in str(error)
    assert _failed or not torch.__version__.startswith("2.13.")
# sphinx_gallery_end_ignore

# %%
# For the loss of a model, differentiate the gradient a second time. If you multiply a vector by the Hessian again and again,
# the factor by which it grows becomes the largest absolute value of an eigenvalue, a measure of how sharp the loss is:

model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
params = list(model.parameters())
data, target = torch.randn(16, 3), torch.randn(16, 1)

loss = F.mse_loss(model(data), target)
gradients = torch.autograd.grad(loss, params, create_graph=True)
v = [torch.randn_like(p) for p in params]
for _ in range(100):
    length = torch.stack([part.norm() for part in v]).norm()
    v = [part / length for part in v]
    v = torch.autograd.grad(gradients, params, v, retain_graph=True)  # Hv
print(f"largest |eigenvalue| {torch.stack([part.norm() for part in v]).norm():.3f}")

# sphinx_gallery_start_ignore
_shapes = [p.shape for p in params]


def _loss_of(flat):
    parts = flat.split([shape.numel() for shape in _shapes])
    names = [name for name, _ in model.named_parameters()]
    values = {n: part.view(s) for n, part, s in zip(names, parts, _shapes, strict=True)}
    return (functional_call(model, values, (data,)) - target).square().mean()


_flat = torch.cat([p.detach().flatten() for p in params])
_H = hessian(_loss_of)(_flat)
_length = torch.stack([part.norm() for part in v]).norm()
assert abs(torch.linalg.eigvalsh(_H).abs().max() - _length) < 1e-3 * _length
_one = [torch.randn_like(p) for p in params]
_Hv = torch.autograd.grad(gradients, params, _one)
_all = [torch.cat([part.flatten() for part in parts]) for parts in (_one, _Hv)]
assert torch.allclose(_H @ _all[0], _all[1], atol=1e-5)
# sphinx_gallery_end_ignore

# %%
# What people get wrong
# ---------------------
# **if and .item() under vmap.** ``vmap`` runs your function once for all samples, so an ``if`` would need several answers. Use
# ``torch.where``. It differentiates both branches: give each a :ref:`safe input
# <sphx_glr_gallery_differentiation_points_without_a_derivative.py>`, or the Jacobian can be NaN.
#
# **nn.Dropout under vmap.** To draw a mask for each sample, write ``vmap(jacrev(f), randomness="different")``. ``jacfwd`` and
# ``hessian`` use ``vmap`` themselves: write ``jacfwd(f, randomness="same")`` and ``jacfwd(jacrev(f), randomness="same")``. With
# ``"different"``, each column gets a different mask, without an error.


def positive_part(x):
    return x * x if x.sum() > 0 else x


raised = []
for function in (positive_part, nn.Dropout(0.5)):
    try:
        vmap(jacrev(function))(batch)
    except RuntimeError as error:
        raised.append(str(error))
        print(raised[-1].partition(" or (3)")[0].partition(". ")[0])

# sphinx_gallery_start_ignore
import warnings

assert len(raised) == 2 and "data-dependent control flow" in raised[0]
assert "called random operation while in randomness error mode" in raised[1]
assert vmap(jacrev(nn.Dropout(0.5)), randomness="different")(batch).shape == (3, 4, 4)
assert jacrev(positive_part)(batch[0]).shape == (4, 4)
_state, _drop = torch.get_rng_state(), nn.Dropout(0.5)
_failed = 0
for _way in (jacfwd(_drop), hessian(lambda x: _drop(x).square().sum())):
    try:
        vmap(_way, randomness="different")(batch)
    except RuntimeError as error:
        _failed += "randomness error mode" in str(error)
for _way in (jacfwd(_drop), hessian(lambda x: _drop(x).square().sum())):
    try:
        _way(batch[0])
    except RuntimeError as error:
        _failed += "randomness error mode" in str(error)
assert _failed == 4
assert jacfwd(_drop, randomness="same")(batch[0]).shape == (4, 4)
_J = jacfwd(lambda x: _drop(x.sum().expand(50)), randomness="different")(batch[0])
assert not torch.equal(_J[:, 0], _J[:, 1])  # one mask would give equal columns
_J = vmap(jacfwd(_drop, randomness="same"), randomness="different")(torch.ones(3, 50))
assert set(_J.diagonal(dim1=1, dim2=2).unique().tolist()) == {0, 2}
assert not torch.equal(_J[0], _J[1]) and torch.equal(_J[0].diag().diag(), _J[0])
_H = vmap(
    jacfwd(jacrev(lambda x: _drop(x).square().sum()), randomness="same"),
    randomness="different",
)(torch.ones(3, 50))
assert set(_H.diagonal(dim1=1, dim2=2).unique().tolist()) == {0, 8}
assert not torch.equal(_H[0], _H[1])
torch.set_rng_state(_state)
_runs = []
vmap(lambda sample: _runs.append(1) or sample * 2)(batch)
assert len(_runs) == 1
_failed = False
try:
    vmap(lambda sample: sample * sample.sum().item())(batch)
except RuntimeError as error:
    _failed = ".item()" in str(error)
assert _failed
_masked = vmap(jacrev(lambda x: torch.where(x.sum() > 0, x * x, x)))(batch)
for _one, _sample in zip(_masked, batch, strict=True):
    assert torch.allclose(_one, jacrev(positive_part)(_sample))


def _unit(x, divisor):
    return torch.where(x.norm() > 0, x / divisor(x.norm()), x)


_J = vmap(jacrev(lambda x: _unit(x, lambda norm: norm)))(torch.zeros(1, 3))
assert _J.isnan().all()  # the derivative of the branch taken is the identity
_J = vmap(jacrev(lambda x: _unit(x, lambda norm: torch.where(norm > 0, norm, 1.0))))(
    torch.zeros(1, 3)
)
assert torch.equal(_J[0], torch.eye(3))
_points, _c = batch[:, :2], batch[:, 2:]
_J = torch.autograd.functional.jacobian(lambda x: torch.cdist(x, _c), _points)
assert torch.allclose(jacrev(lambda x: (x[:, None] - _c).norm(dim=-1))(_points), _J)
_matrices = torch.randn(4, 3, 3, dtype=torch.float64)
_matrices = _matrices @ _matrices.mT + torch.eye(3)


def _solved(a):
    return torch.linalg.solve(a, a[0].sin()).sum()


_wrong = []
for _f in (_solved, torch.linalg.det, torch.det, torch.logdet):
    _slopes, _curves = [
        torch.stack([way(_f, a) for a in _matrices])
        for way in (jacobian, torch.autograd.functional.hessian)
    ]
    assert torch.allclose(vmap(jacrev(_f))(_matrices), _slopes)
    assert torch.allclose(vmap(jacrev(jacrev(_f)))(_matrices), _curves)
    assert torch.allclose(hessian(_f)(_matrices[0]), _curves[0])
    _wrong.append(not torch.allclose(vmap(jacfwd(_f))(_matrices), _slopes))
    _wrong.append(not torch.allclose(vmap(hessian(_f))(_matrices), _curves))
assert all(_wrong) or not torch.__version__.startswith("2.13.")
_net = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.PReLU())
_one_by_one = torch.stack([jacrev(_net)(sample) for sample in batch])
assert torch.allclose(vmap(jacfwd(_net))(batch), _one_by_one)
with warnings.catch_warnings(record=True) as _caught:
    warnings.simplefilter("always")
    _right = [
        torch.allclose(jacrev(lambda x: torch.cdist(x, _c))(_points), _J),
        torch.allclose(vmap(jacrev(_net))(batch), _one_by_one),
    ]
assert not torch.__version__.startswith("2.13.") or (
    _right == [False] * 2 and not _caught
)
# sphinx_gallery_end_ignore

# %%
# **Training on a constant.** By default the older ``torch.autograd.functional.jacobian`` returns a tensor without history. Pass
# ``create_graph=True``, or use ``jacrev``:

x = torch.randn(4, requires_grad=True)
print("jacobian:", jacobian(torch.tanh, x).requires_grad)
print("  with create_graph:", jacobian(torch.tanh, x, create_graph=True).requires_grad)
print("jacrev:  ", jacrev(torch.tanh)(x).requires_grad)

# sphinx_gallery_start_ignore
for _function in (torch.tanh, linear, lambda x: linear(x).tanh()):
    for _vectorize in (False, True):
        assert not jacobian(_function, x, vectorize=_vectorize).requires_grad
_gradients = []
for _J in (jacobian(torch.tanh, x, create_graph=True), jacrev(torch.tanh)(x)):
    _gradients += torch.autograd.grad(_J.square().sum(), x)
assert torch.allclose(*_gradients) and _gradients[0].abs().sum() > 0
# sphinx_gallery_end_ignore

# %%
# **A Jacobian of zeros.** A ``detach()`` inside the function cuts the graph, so the Jacobian is 0, without a message. The older
# ``jacobian`` can tell you, with ``strict=True``:


def cut(x):
    return x.detach() ** 2


print("jacrev:  ", jacrev(cut)(batch[0]).count_nonzero().item(), "numbers are not 0")
try:
    jacobian(cut, batch[0], strict=True)
except RuntimeError as error:
    message = str(error)
    print("jacobian:", message.partition(". ")[0])

# sphinx_gallery_start_ignore
assert not jacrev(cut)(batch[0]).any() and not jacobian(cut, batch[0]).any()
assert "does not require gradients" in message
# sphinx_gallery_end_ignore

# %%
# **Wrong numbers without a message.** On PyTorch 2.13, these are wrong, or can be:
#
# - with ``torch.linalg.solve``, ``torch.det`` or ``torch.logdet``: ``vmap(jacfwd(f))`` and ``vmap(hessian(f))``. Write
#   ``vmap(jacrev(f))`` and ``vmap(jacrev(jacrev(f)))``;
# - with ``torch.cdist(x, c)``: ``jacrev(f)``. Write ``(x[:, None] - c).norm(dim=-1)``;
# - with ``nn.PReLU``: ``vmap(jacrev(f))``. Write ``vmap(jacfwd(f))``;
# - with ``nn.LayerNorm``, an instance norm, or a batch norm in training: third derivatives (`pytorch#175754
#   <https://github.com/pytorch/pytorch/issues/175754>`__), ``jacrev(jacfwd(f))``, and the gradient of a loss that contains
#   ``jvp``, ``jacfwd`` or ``hessian``. ``nn.GroupNorm`` and ``nn.RMSNorm`` are right.

# sphinx_gallery_start_ignore


class _ByHand(nn.Module):
    """What a norm computes, in plain operations over some dimensions."""

    def __init__(self, norm, dims, eps=1e-5):
        super().__init__()
        self.norm, self.dims, self.eps = norm, dims, eps

    def forward(self, x):
        if isinstance(self.norm, nn.RMSNorm):
            eps = torch.finfo(x.dtype).eps
        else:
            x, eps = x - x.mean(self.dims, keepdim=True), self.eps
        x = x / (x.square().mean(self.dims, keepdim=True) + eps).sqrt()
        shape = [1, -1, *[1] * (x.ndim - 2)]
        affine = [p.view(shape) for p in self.norm.parameters()]
        return x * affine[0] + (affine[1] if len(affine) > 1 else 0)


def _of_both(norm, dims, shape, measure):
    """Whether ``measure`` is the same for a norm and for its formula."""
    torch.manual_seed(0)
    norm = norm.double()
    for p in norm.parameters():
        nn.init.normal_(p)
    first = nn.Linear(2, shape[1:].numel(), dtype=torch.float64)
    upstream, x = torch.randn(shape).double(), torch.randn(shape[0], 2).double()
    answers = []
    for layer in (norm, _ByHand(norm, dims)):
        assert torch.allclose(norm(upstream), layer(upstream))

        def function(x, layer=layer):
            return (layer(first(x).view(shape)).tanh() * upstream).sum()

        measured = measure(function, x)
        if not isinstance(measured, torch.Tensor):
            loss, parameters = measured[0], [first.weight, *norm.parameters()]
            parts = torch.autograd.grad(loss, parameters)
            measured = torch.cat([part.flatten() for part in parts])
        answers.append(measured)
    return torch.allclose(*answers, rtol=1e-6, atol=1e-8)


def _along(f, x):
    return jvp(f, (x,), (x.flip(0).cos(),))[1]


_RIGHT = [
    lambda f, x: hessian(f)(x),
    lambda f, x: jacrev(jacrev(f))(x),
    lambda f, x: jacfwd(f)(x),
    lambda f, x: [jacrev(f)(x).square().sum()],  # a list: the gradient of a loss
]
_WRONG = [
    lambda f, x: jacrev(jacrev(jacrev(f)))(x),
    lambda f, x: jacrev(jacfwd(f))(x),
    lambda f, x: [_along(f, x).square().sum()],
    lambda f, x: [jacfwd(f)(x).square().sum()],
    lambda f, x: [hessian(f)(x).square().sum()],
]
for _norm, _dims, _shape in (
    (nn.LayerNorm(6), (1,), (2, 6)),
    (nn.BatchNorm1d(6, track_running_stats=False), (0,), (4, 6)),
    (nn.InstanceNorm1d(3, affine=True), (2,), (2, 3, 4)),
    (nn.GroupNorm(1, 6), (1,), (2, 6)),
    (nn.RMSNorm(6), (1,), (2, 6)),
):
    _fine = isinstance(_norm, (nn.GroupNorm, nn.RMSNorm))
    for _measure in _RIGHT:
        assert _of_both(_norm, _dims, torch.Size(_shape), _measure), _norm
    for _measure in _WRONG:
        if not _fine and not torch.__version__.startswith("2.13."):
            continue
        assert _of_both(_norm, _dims, torch.Size(_shape), _measure) == _fine, _norm
# sphinx_gallery_end_ignore

# %%
# Exercise
# --------
# Find the largest eigenvalue of the Hessian of ``chain`` at a random point with 100 inputs, without building the Hessian.
#
# .. solution::
#
# Multiply again and again, as above, with ``hvp``. The eigenvalue with the largest absolute value is positive.

torch.manual_seed(1)
x, v = torch.randn(2, 100, dtype=torch.float64)
for step in range(1, 17):
    v = hvp(chain, x, v / v.norm())
    if step % 4 == 0:
        print(f"step {step:>2}: {v.norm():.4f}")

exact = torch.linalg.eigvalsh(hessian(chain)(x))
print(f"exact:   {exact[-1]:.4f}")
assert torch.isclose(v.norm(), exact[-1], rtol=1e-3) and exact[-1] > -exact[0]

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_differentiation_vector_jacobian_products.py`, what one backward pass computes.
# - In PyTorch's reference: `torch.func <https://docs.pytorch.org/docs/stable/func.html>`__ and `per-sample gradients
#   <https://docs.pytorch.org/tutorials/intermediate/per_sample_grads.html>`__.
