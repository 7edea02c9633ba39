r"""
derivative for aten::_scaled_dot_product_flash_attention_for_cpu_backward is not implemented
============================================================================================

.. index::
   ! single: double backward of attention, gradient penalty of a transformer
   ! single: the derivative for '_cdist_backward' is not implemented
   ! single: torch.compile with aot_autograd does not currently support double backward
   ! single: FlexAttention does not support backward on CPU
   ! single: The function is not differentiable with respect to argument 'weight'

.. in-short::

   You differentiate a gradient, and the fast attention kernel has no second derivative. Choose the plain one, ``MATH``, where
   the attention is computed.

   .. code-block:: diff

      - score, _ = attention(x, x, x, need_weights=False)
      + with sdpa_kernel(SDPBackend.MATH):
      +     score, _ = attention(x, x, x, need_weights=False)

   **Not this:** ``create_graph=False``. The penalty is then a constant, and trains nothing.
"""

# %%
# The code that raises it
# -----------------------
# A gradient penalty, as in a GAN:

import torch
from torch import nn

# sphinx_gallery_start_ignore
# isort: split
import functools

import torch.utils.checkpoint

TORCH = tuple(int(part) for part in torch.__version__.split(".")[:2])
torch.manual_seed(0)
raised = []
try:
    # sphinx_gallery_end_ignore
    attention = nn.MultiheadAttention(8, 2, batch_first=True)
    x = torch.randn(2, 5, 8, requires_grad=True)

    score, _ = attention(x, x, x, need_weights=False)
    (slope,) = torch.autograd.grad(score.sum(), x, create_graph=True)
    penalty = slope.square().mean()
    penalty.backward()
# sphinx_gallery_start_ignore
except RuntimeError as error:
    raised.append(str(error))
    print("RuntimeError:", error)


def _says(call):
    try:
        call()
    except RuntimeError as error:
        return str(error)
    return None


assert len(raised) == 1
# the same words for the kernels of a GPU; the meta device has their nodes, and no GPU is needed
_aten = torch.ops.aten


def _twice(kernel, *options):
    query = torch.empty(1, 2, 4, 64, device="meta", requires_grad=True)
    result = kernel(query, query, query, *options)[0]
    (first,) = torch.autograd.grad(result.sum(), query, create_graph=True)
    return _says(lambda: first.sum().backward())


for _name, _options in (
    ("flash", ()),
    ("efficient", (None, True)),
    ("cudnn", (None, True)),
):
    _operation = f"_scaled_dot_product_{_name}_attention"
    assert _twice(getattr(_aten, _operation), *_options) == (
        f"derivative for aten::{_operation}_backward is not implemented"
    )
# sphinx_gallery_end_ignore

# %%
# The word before *backward* names the operation:
#
# .. list-table::
#    :header-rows: 1
#    :widths: 50 50
#
#    * - the name
#      - what to do
#    * - ``_scaled_dot_product_flash_attention``, ``..._efficient_attention``, ``..._cudnn_attention``
#      - ``MATH``, as below
#    * - ``_cudnn_rnn``
#      - :ref:`the page on recurrent layers <sphx_glr_gallery_errors_cudnn_rnn_double_backward.py>`
#    * - ``grid_sampler_2d``, ``grid_sampler_3d``, ``im2col``, ``_thnn_fused_lstm_cell``; ``angle``, ``to_dense``,
#        ``to_sparse``, ``linalg_lstsq`` without *backward*
#      - Update: PyTorch 2.13 has this derivative.
#    * - ``linear``, ``mps_...`` on a Mac
#      - Update, or run the model on the CPU.
#    * - ``_cdist``
#      - Build the distance from simple operations, as below.
#    * - ``hardsigmoid``
#      - ``F.relu6(x + 3) / 6``
#
# Why
# ---
# The backward of the fast kernel is one operation, and PyTorch has no formula for its derivative. ``MATH`` is made of matrix
# products and a softmax, which have one. Its price is memory: it keeps the whole table of attention weights.
#
# .. how-measured:: This code counts what attention saves for backward.

import matplotlib.pyplot as plt
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

LENGTHS = (128, 256, 512, 1024)


def saved(backend):
    result = []
    for length in LENGTHS:
        query = torch.zeros(1, 2, length, 32, requires_grad=True)
        storages = {}

        def pack(tensor, storages=storages):
            storage = tensor.untyped_storage()
            storages[storage.data_ptr()] = storage
            return tensor

        hooks = torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor)
        with hooks, sdpa_kernel(backend):
            scaled_dot_product_attention(query, query, query)
        result.append(sum(s.nbytes() for s in storages.values()) / 2**20)
    return result


mib = {"fast": saved(SDPBackend.FLASH_ATTENTION), "MATH": saved(SDPBackend.MATH)}


def plot_saved(mib):
    _, ax = plt.subplots(figsize=(7, 2), layout="constrained")
    for (name, numbers), color in zip(mib.items(), ("#2563eb", "#c2410c"), strict=True):
        ax.plot(LENGTHS, numbers, "o-", color=color)
        ax.text(LENGTHS[-1] + 20, numbers[-1], name, color=color, va="center")
    ax.set(xlabel="length of the sequence", ylabel="MiB", xlim=(0, 1240))
    ax.set_title("What one attention keeps for backward: 2 heads of 32")


# %%
# What each one saves:

# figure: Two lines. The fast kernel stays below 1 MiB, MATH grows with the square of the length.
plot_saved(mib)

# sphinx_gallery_start_ignore
_fast, _math = mib.values()
assert _math[-1] > 8 > 1 > _fast[-1]
assert _math[-1] / _math[-2] > 3 and 1.9 < _fast[-1] / _fast[-2] < 2.1
# sphinx_gallery_end_ignore

# %%
# The fix
# -------
# Put ``sdpa_kernel`` around the *forward* pass of what you differentiate twice. With gradient checkpointing, put ``grad`` and
# ``backward`` into the same block, because they compute the forward pass again.

from torch.nn.attention import SDPBackend, sdpa_kernel

with sdpa_kernel(SDPBackend.MATH):
    score, _ = attention(x, x, x, need_weights=False)
(slope,) = torch.autograd.grad(score.sum(), x, create_graph=True)
penalty = slope.square().mean()
penalty.backward()
print(attention.in_proj_weight.grad.norm() > 0)


# sphinx_gallery_start_ignore
def _penalty(**options):
    result, _ = attention(x, x, x, **options)
    (slope,) = torch.autograd.grad(result.sum(), x, create_graph=True)
    return slope.square().mean()


_reference = attention.in_proj_weight.grad.clone()
attention.zero_grad()
_penalty(need_weights=True).backward()
assert torch.allclose(attention.in_proj_weight.grad, _reference, atol=1e-6)
assert _reference.norm() > 0
_checkpoint = functools.partial(torch.utils.checkpoint.checkpoint, use_reentrant=False)


def _plain(y):
    with sdpa_kernel(SDPBackend.MATH):
        return attention(y, y, y, need_weights=False)[0]


(_slope,) = torch.autograd.grad(_checkpoint(_plain, x).sum(), x, create_graph=True)
attention.zero_grad()
_slope.square().mean().backward()
assert torch.allclose(attention.in_proj_weight.grad, _reference, atol=1e-6)
with sdpa_kernel(SDPBackend.MATH):
    _score = _checkpoint(lambda y: attention(y, y, y, need_weights=False)[0], x)
assert "different metadata" in _says(_score.sum().backward)
attention.zero_grad()
with sdpa_kernel(SDPBackend.MATH):  # the whole step
    _score = _checkpoint(lambda y: attention(y, y, y, need_weights=False)[0], x)
    (_slope,) = torch.autograd.grad(_score.sum(), x, create_graph=True)
    _slope.square().mean().backward()
assert torch.allclose(attention.in_proj_weight.grad, _reference, atol=1e-6)
_late = _penalty(need_weights=False)
with sdpa_kernel(SDPBackend.MATH):
    assert _says(_late.backward) == raised[0]
with sdpa_kernel([SDPBackend.MATH, SDPBackend.FLASH_ATTENTION]):
    assert _says(lambda: _penalty(need_weights=False).backward()) == raised[0]
attention.zero_grad()
_score, _ = attention(x, x, x, need_weights=False)
(_slope,) = torch.autograd.grad(_score.sum(), x, retain_graph=True)
_loss = _score.square().mean()
(_alone,) = torch.autograd.grad(_loss, attention.in_proj_weight, retain_graph=True)
(_loss + _slope.square().mean()).backward()
assert torch.allclose(attention.in_proj_weight.grad, _alone)
# sphinx_gallery_end_ignore

# %%
# Other messages of this kind
# ---------------------------
# **the derivative for ... is not implemented.** A loss of forces raises it up to PyTorch 2.13:

# sphinx_gallery_start_ignore
raised = []
try:
    # sphinx_gallery_end_ignore
    points = torch.randn(4, 3, requires_grad=True)
    centers = torch.randn(2, 3)
    energy = torch.cdist(points, centers).square().sum()
    (force,) = torch.autograd.grad(energy, points, create_graph=True)
    force.norm().backward()
# sphinx_gallery_start_ignore
except NotImplementedError as error:
    raised.append(str(error))
    print("NotImplementedError:", error)
_no_derivative = ["the derivative for '_cdist_backward' is not implemented."]
assert raised == ([] if TORCH >= (2, 14) else _no_derivative)
# sphinx_gallery_end_ignore

# %%
# .. torch-changed:: 2.14
#    :probe: refuses: torch.autograd.functional.hessian(lambda x: torch.cdist(x, 2 * x).sum(), torch.ones(1, 2))
#
#    The code above runs on 2.14, where ``cdist`` and ``pdist`` have a second derivative (`pytorch#188901
#    <https://github.com/pytorch/pytorch/pull/188901>`__).
#
# Before 2.14, build the Euclidean distance from simple operations. The small number avoids NaN where two points are equal:

difference = points.unsqueeze(-2) - centers.unsqueeze(-3)
distance = (difference.square().sum(dim=-1) + 1e-12).sqrt()
energy = distance.square().sum()
(force,) = torch.autograd.grad(energy, points, create_graph=True)
force.norm().backward()
assert points.grad.isfinite().all()

# %%
# **A name without backward.** The operation itself may have no derivative. ``bincount`` has none:

# sphinx_gallery_start_ignore
for _dimensions in (2, 3):
    _image = torch.randn(1, 1, *[3] * _dimensions, dtype=torch.float64)
    _place = 0.6 * torch.rand(1, *[2] * _dimensions, _dimensions, dtype=torch.float64)
    assert torch.autograd.gradgradcheck(
        lambda image, place=_place: nn.functional.grid_sample(
            image.sin(), place, align_corners=False
        ),
        _image.requires_grad_(),
    )
_image = torch.rand(1, 1, 3, 3, dtype=torch.float64, requires_grad=True)
assert torch.autograd.gradgradcheck(
    lambda image: nn.functional.unfold(image.sin(), 2), _image
)
_direct = 2 * (2 * points - centers.sum(0))
assert torch.allclose(force, _direct, atol=1e-5)
assert torch.allclose(distance, torch.cdist(points, centers), atol=1e-5)
_sets, _others = torch.randn(2, 4, 3), torch.randn(2, 4, 3)
_each = (_sets.unsqueeze(-2) - _others.unsqueeze(-3)).norm(dim=-1)
assert torch.allclose(_each, torch.cdist(_sets, _others), atol=1e-5)
_said = _says(
    lambda: torch.autograd.functional.hessian(lambda x: torch.pdist(x).sum(), points)
)
_expected = "the derivative for '_pdist_backward' is not implemented."
assert _said == (None if TORCH >= (2, 14) else _expected)
_place = torch.randn(4, 3, requires_grad=True)
_difference = _place[:, None] - _place  # 0 on the diagonal


def _second(distance):
    (force,) = torch.autograd.grad(distance.exp().sum(), _place, create_graph=True)
    return torch.autograd.grad((force - 1).square().sum(), _place, retain_graph=True)[0]


assert _second(_difference.norm(dim=-1)).isnan().all()
assert _second((_difference.square().sum(-1) + 1e-12).sqrt()).isfinite().all()
raised = []
try:
    # sphinx_gallery_end_ignore
    index = torch.tensor([0, 2, 0])
    weights = torch.rand(3, requires_grad=True)
    torch.bincount(index, weights).square().sum().backward()
# sphinx_gallery_start_ignore
except RuntimeError as error:
    raised.append(str(error))
    print("RuntimeError:", error)
assert raised == ["derivative for aten::bincount is not implemented"]
# sphinx_gallery_end_ignore

# %%
# Here ``index_add`` computes the same. ``heaviside``, ``histc``, ``floor_divide`` and ``//`` have steps, so their slope is 0:
# give them ``x.detach()``, or use a soft step. For a spike: ``soft + ((x > 0).to(x) - soft).detach()`` with
# ``soft = torch.sigmoid(x)``. A soft histogram: ``-torch.sigmoid((x.flatten()[:, None] - edges) / width).diff().sum(0)``.

weights.new_zeros(3).index_add(0, index, weights).square().sum().backward()
assert weights.grad.all()

# %%
# **is not differentiable with respect to argument 'weight'**, or ``'target'``: pass ``weight.detach()``. To train a weight,
# multiply the losses of ``reduction="none"`` by it, for classes by ``weight[labels]``.
#
# **FlexAttention does not support backward on CPU.** The forward pass raises it, if an argument requires grad:

# sphinx_gallery_start_ignore
_counted = torch.zeros(3).index_add(0, index, weights)
assert torch.allclose(_counted, torch.bincount(index, weights.detach()))
_steps = torch.tensor([2.5, 7.0], requires_grad=True)
for _name, _step in (
    ("heaviside", lambda y: torch.heaviside(y, torch.tensor(0.0))),
    ("floor_divide", lambda y: y // 2),
):
    _told = _says(_step(_steps).sum().backward)
    assert _told == f"derivative for aten::{_name} is not implemented"
(_rest,) = torch.autograd.grad((_steps - 2 * (_steps.detach() // 2)).sum(), _steps)
assert torch.equal(_rest, torch.autograd.grad((_steps % 2).sum(), _steps)[0])
_hard = torch.linspace(-4, 4, 17, requires_grad=True)
_soft = torch.sigmoid(_hard)
_spike = _soft + ((_hard > 0).to(_hard) - _soft).detach()
_half = _hard.bfloat16()
assert (torch.sigmoid(_half) + (_half > 0).to(_half)).dtype == torch.bfloat16
assert torch.allclose(_spike, torch.heaviside(_hard.detach(), torch.tensor(0.0)))
_slope = torch.autograd.grad(_spike.sum(), _hard)[0]
assert torch.allclose(_slope, (_soft * (1 - _soft)).detach())
_values = torch.tensor([0.1, 0.6, 0.7, 1.3, 2.9], requires_grad=True)
_edges = torch.tensor([0.0, 0.5, 1.0, 2.0, 3.0])
_values = _values.view(1, 5)
_counts = -torch.sigmoid((_values.flatten()[:, None] - _edges) / 1e-3).diff().sum(0)
assert torch.allclose(_counts, torch.tensor([1.0, 2, 1, 1]), atol=1e-3)
_counts = -torch.sigmoid((_values.flatten()[:, None] - _edges) / 0.2).diff().sum(0)
assert torch.autograd.grad(_counts[1], _values)[0].all()
_six = nn.functional.relu6(_hard + 3) / 6
assert torch.allclose(_six, nn.functional.hardsigmoid(_hard))
_slopes = torch.autograd.grad(_six.sum(), _hard, create_graph=True)[0]
assert _says(_slopes.sum().backward) is None
_slopes = torch.autograd.grad(
    nn.functional.hardsigmoid(_hard).sum(), _hard, create_graph=True
)[0]
assert "aten::hardsigmoid_backward" in _says(_slopes.sum().backward)
# an update is enough for these
for _name, _used in (
    ("angle", lambda y: torch.view_as_complex(y).angle()),
    ("to_dense", lambda y: y.to_sparse().to_dense()),
    ("to_sparse", lambda y: torch.sparse.sum(y.to_sparse())),
    ("linalg_lstsq", lambda y: torch.linalg.lstsq(y, torch.ones(4, 1)).solution),
):
    _table = torch.rand(4, 2, requires_grad=True)
    assert _says(_used(_table).sum().backward) is None and _table.grad.any()
_logits, _labels = torch.randn(4, 3), torch.tensor([0, 2, 1, 2])
_classes = torch.rand(3, requires_grad=True)
_loss = nn.functional.cross_entropy
_told = _says(lambda: _loss(_logits, _labels, weight=_classes))
assert "is not differentiable with respect to argument 'weight'" in _told
_fixed = _loss(_logits, _labels, weight=_classes.detach())
_each = _classes[_labels] * _loss(_logits, _labels, reduction="none")
assert not _fixed.requires_grad and _each.sum().requires_grad
assert torch.allclose(_each.sum() / _classes[_labels].sum(), _fixed)
_probabilities, _hit = torch.rand(4, 3), torch.rand(4, 3).round()
_loss = nn.functional.binary_cross_entropy
_each = _classes * _loss(_probabilities, _hit, reduction="none")
_fixed = _loss(_probabilities, _hit, weight=_classes.detach())
assert torch.allclose(_each.mean(), _fixed) and _each.requires_grad
_double = torch.rand(3, dtype=torch.float64, requires_grad=True)
_counted = _double.new_zeros(3).index_add(0, index, _double)
assert torch.equal(_counted, torch.bincount(index, _double.detach()))
raised = []
try:
    # sphinx_gallery_end_ignore
    from torch.nn.attention.flex_attention import create_mask, flex_attention

    query = torch.randn(1, 2, 8, 16, requires_grad=True)
    flex_attention(query, query, query)
# sphinx_gallery_start_ignore
except NotImplementedError as error:
    raised.append(str(error))
    print("NotImplementedError:", error)
assert len(raised) == 1
assert raised[0].startswith("FlexAttention does not support backward on CPU.")
# sphinx_gallery_end_ignore

# %%
# For a test on a CPU, give ``scaled_dot_product_attention`` a mask. For inference, run the whole model under
# ``torch.no_grad()``: ``eval()`` is not enough.


def causal(batch, head, query, key):
    return query >= key


mask = create_mask(causal, None, None, 8, 8, device="cpu")
plain = nn.functional.scaled_dot_product_attention(query, query, query, attn_mask=mask)
plain.sum().backward()

# %%
# Up to 2.13, a learned number in ``score_mod``, as in ``score * scale``, raises *can not return a BatchedTensor when out_dim is
# None* in backward (asked in `attention-gym#171 <https://github.com/meta-pytorch/attention-gym/issues/171>`__). Multiply the
# query by ``scale`` instead, also for ``scaled_dot_product_attention``.

# %%
# **torch.compile** compiles the backward, too, but no second one:

# sphinx_gallery_start_ignore
import warnings

from torch.nn.attention.flex_attention import create_block_mask

_blocks = create_block_mask(causal, None, None, 8, 8, device="cpu")
_layer = nn.Linear(16, 16).eval()
with warnings.catch_warnings(), torch.no_grad():  # it asks for torch.compile
    warnings.simplefilter("ignore")
    _flex = flex_attention(*[query.detach()] * 3, block_mask=_blocks)
    assert flex_attention(*[_layer(query)] * 3).shape == query.shape
assert torch.allclose(_flex, plain, atol=1e-5)
_attend = nn.functional.scaled_dot_product_attention
_scale = torch.tensor(0.7, requires_grad=True)
_scales = torch.full((2,), 0.7, requires_grad=True)
_fixed, _weights = torch.randn(1, 2, 8, 16), torch.randn(1, 2, 8, 16)
_modified = {
    "number": lambda score, batch, head, i, j: score * _scale,
    "head": lambda score, batch, head, i, j: score * _scales[head],
}
_losses = {}
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    for _name, _score_mod in _modified.items():
        _result = flex_attention(*[_fixed] * 3, score_mod=_score_mod)
        _losses[_name] = (_result * _weights).sum()
_scaled = _attend(_scale * _fixed, _fixed, _fixed)
(_slope,) = torch.autograd.grad((_scaled * _weights).sum(), _scale)
(_slopes,) = torch.autograd.grad(_losses["head"], _scales)
assert torch.allclose(_slopes.sum(), _slope, atol=1e-4) and _slopes.all()
_told = ""
try:
    _losses["number"].backward()
except ValueError as error:
    _told = str(error)
_raises = "can not return a BatchedTensor when out_dim is None" in _told
assert _raises == (TORCH < (2, 14))
assert _raises or torch.allclose(_scale.grad, _slope, atol=1e-4)
assert query.grad.any() and _says(lambda: flex_attention(*[_layer(query)] * 3))
_compiled = torch.compile(flex_attention, backend="aot_eager")
assert _says(lambda: _compiled(query, query, query)) == raised[0]
raised = []
try:
    # sphinx_gallery_end_ignore
    energy = torch.compile(lambda x: (x**3).sum(), backend="aot_eager")
    x = torch.ones(3, requires_grad=True)
    (slope,) = torch.autograd.grad(energy(x), x, create_graph=True)
    slope.square().sum().backward()
# sphinx_gallery_start_ignore
except RuntimeError as error:
    raised.append(str(error))
    print("RuntimeError:", error)
assert len(raised) == 1 and raised[0] == (
    "torch.compile with aot_autograd does not currently support double backward"
)
# sphinx_gallery_end_ignore

# %%
# Compute the forward pass of the penalty under ``with torch.compiler.set_stance("force_eager"):``. Or take the first gradient
# inside of the compiled function, with ``torch.func.grad``, if there is no batch norm:

slope = torch.compile(torch.func.grad(lambda x: (x**3).sum()), backend="aot_eager")
slope(x).square().sum().backward()
print(x.grad)

# sphinx_gallery_start_ignore
assert x.grad.tolist() == [36, 36, 36]  # of 9 x**4
_net = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))
_x = torch.randn(5, 3, requires_grad=True)
(_slope,) = torch.autograd.grad(_net(_x).sum(), _x, create_graph=True)
_expected = torch.autograd.grad(_slope.square().sum(), _net[0].weight)[0]
_fast = torch.compile(_net, backend="aot_eager")
(_slope,) = torch.autograd.grad(_fast(_x).sum(), _x, create_graph=True)
assert "does not currently support double backward" in _says(_slope.sum().backward)
for _form in (_fast, torch.compile(lambda x: _net(x), backend="aot_eager")):
    with torch.compiler.set_stance("force_eager"):
        _score = _form(_x)
    (_slope,) = torch.autograd.grad(_score.sum(), _x, create_graph=True)
    assert torch.equal(
        torch.autograd.grad(_slope.square().sum(), _net[0].weight)[0], _expected
    )
_slopes = torch.compile(torch.func.grad(lambda x: _net(x).sum()), backend="aot_eager")
_slopes(_x.detach()).square().sum().backward()
assert torch.allclose(_net[0].weight.grad, _expected, atol=1e-6)
_norm = nn.BatchNorm1d(3)  # torch.func.grad does not let it count the batches
assert "in-place operation" in _says(
    lambda: torch.func.grad(lambda x: _norm(x).square().sum())(_x.detach())
)
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_functions_double_backward.py`, for your own Function.
# - In PyTorch's reference: `sdpa_kernel
#   <https://docs.pytorch.org/docs/stable/generated/torch.nn.attention.sdpa_kernel.html>`__.
