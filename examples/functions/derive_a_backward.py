r"""
Derive a backward: linear, cross entropy, layer norm, attention
===============================================================

.. index::
   single: derivative of a matrix product
   single: gradient of a linear layer by hand
   single: gradient of softmax with cross entropy
   single: layer norm backward by hand
   single: attention backward by hand
   single: backpropagation with matrices, by hand

.. in-short::

   Write one element of the result, differentiate it with respect to one entry of an input, and multiply by this element's
   upstream gradient ``v``. Add that up over all elements. For a linear layer:

   .. code-block:: python

      y = x @ W.T + b
      grad_x, grad_W, grad_b = v @ W, v.T @ x, v.sum(0)

   This is for ``x`` with two dimensions. Compare with autograd in ``float64``, with sizes above 1 that are all different. If
   you only combine PyTorch's differentiable operations, you need no backward: autograd writes it for you.
"""

# %%
# The backward of a linear layer
# ------------------------------
# You write a kernel or a custom Function, and need its backward. Backward gets ``v``, the gradient of the loss with respect to
# the result. A gradient has the shape of its tensor, which helps: with 5 rows, 3 inputs and 2 outputs, only one matrix product
# of ``v`` and ``W`` has the shape of ``x``. Compared with autograd:

import torch

torch.manual_seed(0)
x = torch.randn(5, 3, dtype=torch.float64, requires_grad=True)
W = torch.randn(2, 3, dtype=torch.float64, requires_grad=True)
b = torch.randn(2, dtype=torch.float64, requires_grad=True)

y = x @ W.T + b
v = torch.randn_like(y)  # what backward gets
by_hand = v @ W, v.T @ x, v.sum(0)
by_autograd = torch.autograd.grad(y, (x, W, b), v)
print([torch.allclose(*pair) for pair in zip(by_hand, by_autograd, strict=True)])

# %%
# The gradient of ``b`` is a sum over the rows. The other two are products:
#
# .. how-measured:: This code draws two products, each matrix as large as its shape.

import matplotlib.pyplot as plt
from matplotlib.patches import Rectangle

PRODUCTS = [
    (("v", 5, 2), "@", ("W", 2, 3), ("x's gradient", 5, 3)),
    (("v.T", 2, 5), "@", ("x", 5, 3), ("W's gradient", 2, 3)),
]


def draw_products_as_boxes():
    _, axes = plt.subplots(
        1, 2, figsize=(7, 2.4), width_ratios=[12, 15], layout="constrained"
    )
    for ax, (left, sign, right, result) in zip(axes, PRODUCTS, strict=True):
        at = 0
        for (name, rows, columns), after in ((left, sign), (right, "="), (result, "")):
            box = Rectangle((at, -rows / 2), columns, rows, fc="#e2e8f0", ec="#2563eb")
            ax.add_patch(box)
            ax.text(at + columns / 2, 2.9, name, ha="center", va="bottom")
            ax.text(
                at + columns / 2, 0, f"{rows} x {columns}", ha="center", va="center"
            )
            ax.text(at + columns + 0.8, 0, after, ha="center", va="center")
            at += columns + 1.6
        ax.set(xlim=(-0.2, at - 1), ylim=(-2.8, 3.7), aspect="equal")
        ax.axis("off")
    axes[0].figure.suptitle("The shapes leave one product for each gradient")


# %%
# Drawn with their shapes:

# figure: Two products of matrices, drawn with their shapes. v, 5 x 2, times W, 2 x 3, is the gradient of x, 5 x 3. The
#   transpose of v, 2 x 5, times x, 5 x 3, is the gradient of W, 2 x 3.
draw_products_as_boxes()

# sphinx_gallery_start_ignore
assert all(torch.allclose(*_p) for _p in zip(by_hand, by_autograd, strict=True))
assert [tuple(g.shape) for g in by_hand] == [tuple(t.shape) for t in (x, W, b)]


def _products(wanted, first, second):
    found = []
    for _left, _right in ((first, second), (second, first)):
        for _a in (_left, _left.T):
            for _b in (_right, _right.T):
                if _a.shape[1] == _b.shape[0] and (_a @ _b).shape == wanted:
                    found.append(_a @ _b)
    return found


for _tensor, _other, _hand in ((x, W, by_hand[0]), (W, x, by_hand[1])):
    (_only,) = _products(_tensor.shape, v, _other)
    assert torch.equal(_only, _hand)
_named = {"v": v, "v.T": v.T, "W": W, "x": x}
for (_left, _, _right, (_, *_shape)), _hand in zip(PRODUCTS, by_hand[:2], strict=True):
    assert all(tuple(_size) == _named[_n].shape for _n, *_size in (_left, _right))
    assert torch.equal(_named[_left[0]] @ _named[_right[0]], _hand)
    assert tuple(_shape) == _hand.shape
# sphinx_gallery_end_ignore

# %%
# Three steps
# -----------
# 1. Write **one element** of the result: :math:`y_{ij} = \sum_k x_{ik} W_{jk} + b_j`.
# 2. Choose **one entry** of an input. For each element that uses it, take the derivative times the element's :math:`v`, and add
#    up. Row :math:`i` of the result uses :math:`x_{ik}`, and column :math:`j` uses :math:`W_{jk}` and :math:`b_j`:
#
#    .. math::
#
#       \frac{\partial L}{\partial x_{ik}} = \sum_j v_{ij} W_{jk} \qquad
#       \frac{\partial L}{\partial W_{jk}} = \sum_i v_{ij} x_{ik} \qquad
#       \frac{\partial L}{\partial b_j} = \sum_i v_{ij}
#
# 3. Read the first two sums **as products** of matrices. In ``A @ B``, the summed index is the last one of ``A`` and the
#    first one of ``B``. So :math:`v_{ij} W_{jk}` is ``v @ W``, and :math:`v_{ij} x_{ik}` needs a transpose: ``v.T @ x``.
#
# If you prefer indices to transposes, ``einsum`` takes step 2 as it is:

grad_x = torch.einsum("ij,jk->ik", v, W)
grad_W = torch.einsum("ij,ik->jk", v, x)
print(torch.allclose(grad_x, by_autograd[0]), torch.allclose(grad_W, by_autograd[1]))

# sphinx_gallery_start_ignore
assert torch.allclose(grad_x, by_hand[0]) and torch.allclose(grad_W, by_hand[1])
for _shape in ((4, 5, 3), (2, 2, 3), (2, 3, 4, 3), (1, 3), (0, 3), (3,)):
    _x = torch.randn(*_shape, dtype=torch.float64, requires_grad=True)
    _y = _x @ W.T + b
    _v = torch.randn_like(_y)
    _right = torch.autograd.grad(_y, (_x, W, b), _v)
    _vr, _xr = _v.reshape(-1, 2), _x.reshape(-1, 3)
    _hand = _v @ W, _vr.T @ _xr, _vr.sum(0)
    assert all(torch.allclose(*_p) for _p in zip(_hand, _right, strict=True))
    assert (_v.sum(0).shape == b.shape) == (len(_shape) == 2)
# sphinx_gallery_end_ignore

# %%
# For an ``x`` with more dimensions, such as batch, time and 3 inputs, make rows first: use ``v.reshape(-1, 2)`` and
# ``x.reshape(-1, 3)`` for ``W`` and ``b``.

# %%
# Layer norm
# ----------
# In a layer norm, each ``x`` enters three times: itself, in the mean and in the variance. If you treat mean and variance as
# constants, you only divide by the deviation, and the result is far off:

x = torch.randn(4, 6, dtype=torch.float64, requires_grad=True)
v = torch.randn(4, 6, dtype=torch.float64)
deviation = (x.var(1, correction=0, keepdim=True) + 1e-5).sqrt()
normal = (x - x.mean(1, keepdim=True)) / deviation

(right,) = torch.autograd.grad(torch.nn.functional.layer_norm(x, (6,)), x, v)
one_way = v / deviation
print(f"relative error: {(one_way - right).norm() / right.norm():.0%}")

# sphinx_gallery_start_ignore
_off = (one_way - right).norm() / right.norm()
assert _off > 0.2
assert torch.allclose(normal, torch.nn.functional.layer_norm(x, (6,)))
_fixed = (x - x.mean(1, keepdim=True).detach()) / deviation.detach()
assert torch.allclose(torch.autograd.grad(_fixed, x, v)[0], one_way)
# sphinx_gallery_end_ignore

# %%
# With all three ways, the gradient of one row is
#
# .. math:: \bigl( v - \text{mean}(v) - \hat{x} \, \text{mean}(v \hat{x}) \bigr) \, / \, \sigma
#
# The first term comes from ``x`` itself, the second from the mean, the third from the variance. The hat marks the normalized
# row, and :math:`\sigma = \sqrt{\text{var} + \varepsilon}`, with ``correction=0`` in the variance.

all_ways = v - v.mean(1, keepdim=True) - normal * (v * normal).mean(1, keepdim=True)
print(torch.allclose(all_ways / deviation, right))

# sphinx_gallery_start_ignore
assert torch.allclose(all_ways / deviation, right)


def _layer_norm_backward(x, v, deviation):
    normal = (x - x.mean(-1, keepdim=True)) / deviation
    ways = v - v.mean(-1, keepdim=True) - normal * (v * normal).mean(-1, keepdim=True)
    return ways / deviation


assert torch.allclose(_layer_norm_backward(x, v, deviation), right)
for _wrong in (
    (x.var(1, keepdim=True) + 1e-5).sqrt(),  # correction=1
    x.var(1, correction=0, keepdim=True).sqrt() + 1e-5,  # eps outside of the root
):
    assert not torch.allclose(_layer_norm_backward(x, v, _wrong), right)
_normal, _deviation = normal.detach(), deviation.detach()
_weight = torch.randn(6, dtype=torch.float64, requires_grad=True)
_bias = torch.randn(6, dtype=torch.float64, requires_grad=True)
_grads = torch.autograd.grad(
    torch.nn.functional.layer_norm(x, (6,), _weight, _bias), (x, _weight, _bias), v
)
_g = v * _weight
_by_hand = (
    (_g - _g.mean(1, keepdim=True) - _normal * (_g * _normal).mean(1, keepdim=True))
    / _deviation,
    (v * _normal).sum(0),
    v.sum(0),
)
assert all(torch.allclose(*_pair) for _pair in zip(_grads, _by_hand, strict=True))
# sphinx_gallery_end_ignore

# %%
# With a weight and a bias of 6 numbers, put ``v * weight`` in place of ``v`` in this formula. For rows, the weight's own
# gradient is ``(v * normal).sum(0)``, and the bias's is ``v.sum(0)``.
#
# Softmax and cross entropy
# -------------------------
# For one row of scores :math:`z` and the label :math:`c`, the loss is :math:`\log \sum_k e^{z_k} - z_c`. The derivative of the
# first part is the softmax :math:`p`. So the gradient is :math:`p_j`, less 1 at the label. The mean divides by the number of
# rows:

scores = torch.randn(4, 6, dtype=torch.float64, requires_grad=True)
labels = torch.tensor([0, 5, 2, 2])
loss = torch.nn.functional.cross_entropy(scores, labels)
(right,) = torch.autograd.grad(loss, scores)

p = scores.softmax(1).detach()
grad = (p - torch.nn.functional.one_hot(labels, 6)) / len(labels)
print(torch.allclose(grad, right))

# sphinx_gallery_start_ignore
assert torch.allclose(grad, right)


def _cross_entropy_grad(labels, **options):
    _loss = torch.nn.functional.cross_entropy(scores, labels, **options)
    return torch.autograd.grad(_loss, scores)[0]


_one_hot = torch.nn.functional.one_hot(labels, 6)
_kept = (labels != 2)[:, None]
for _options, _hand in (
    ({"ignore_index": 2}, (p - _one_hot) * _kept / _kept.sum()),
    ({"label_smoothing": 0.1}, (p - (0.9 * _one_hot + 0.1 / 6)) / 4),
    ({"reduction": "sum"}, p - _one_hot),
):
    assert torch.allclose(_cross_entropy_grad(labels, **_options), _hand)
    assert not torch.allclose(_cross_entropy_grad(labels, **_options), grad)
_loss = torch.nn.functional.cross_entropy(scores, labels)
_v, _quarter = torch.autograd.grad(_loss / 4, (_loss, scores))
assert _v == 0.25 and torch.allclose(_quarter, _v * grad)
assert not torch.allclose(_quarter, grad)
_losses = torch.nn.functional.cross_entropy(scores, labels, reduction="none")
_v = torch.randn_like(_losses)
(_right,) = torch.autograd.grad(_losses, scores, _v)
assert torch.allclose((p - _one_hot) * _v[:, None], _right)
for _list in ([0, 5, -100, 2], [0, 5, -100, -100], [-100] * 4):
    _padded = torch.tensor(_list)
    _kept = _padded != -100
    _hand = p - torch.nn.functional.one_hot(_padded.clamp(min=0), 6)
    _hand[~_kept] = 0
    _hand[_kept] /= _kept.sum()
    assert torch.allclose(_cross_entropy_grad(_padded), _hand)
    _said = []
    try:
        torch.nn.functional.one_hot(_padded, 6)
    except RuntimeError as _error:
        _said.append(str(_error))
    assert len(_said) == 1 and "non-negative" in _said[0]
# sphinx_gallery_end_ignore

# %%
# This is for a ``v`` of 1, as in ``loss.backward()``. In a Function's ``backward``, multiply by ``v``. Options of
# ``cross_entropy`` change the formula:
#
# - ``reduction="none"``: do not divide, and multiply each row by its own ``v``.
# - ``ignore_index``, by default -100: ignored rows of finite scores get 0, the others are divided by their number. ``one_hot``
#   refuses -100, so give it ``labels.clamp(min=0)``.
# - ``label_smoothing=s``: replace ``one_hot`` by ``(1 - s) * one_hot + s / 6``, for 6 classes.
#
# Alone, a softmax has a different backward. Each score enters every probability of its row, through the sum. Each row of the
# gradient is :math:`p \cdot (v - \sum_k v_k p_k)`:


def softmax_backward(p, v):
    return p * (v - (v * p).sum(-1, keepdim=True))


(right,) = torch.autograd.grad(scores.softmax(1), scores, v)
print(torch.allclose(softmax_backward(p, v), right))

# sphinx_gallery_start_ignore
assert torch.allclose(softmax_backward(p, v), right)
# sphinx_gallery_end_ignore

# %%
# Attention
# ---------
# Attention is two products with a softmax between them. So walk back through the three, with the formulas from above:

sizes = (4, 8), (5, 8), (5, 3)  # 4 queries, 5 keys, 5 values
q, k, w = (torch.randn(*s, dtype=torch.float64, requires_grad=True) for s in sizes)
v = torch.randn(4, 3, dtype=torch.float64)

p = (q @ k.T / 8**0.5).softmax(-1)
out = p @ w  # w: the values, since v is the upstream gradient
right = torch.autograd.grad(out, (q, k, w), v)

grad_w = p.T @ v
grad_p = v @ w.T
grad_s = softmax_backward(p, grad_p) / 8**0.5
grad_q, grad_k = grad_s @ k, grad_s.T @ q
by_hand = grad_q, grad_k, grad_w
print([torch.allclose(*pair) for pair in zip(by_hand, right, strict=True)])

# sphinx_gallery_start_ignore
assert all(torch.allclose(*_pair) for _pair in zip(by_hand, right, strict=True))
_out = torch.nn.functional.scaled_dot_product_attention(q[None], k[None], w[None])[0]
assert torch.allclose(_out, out)
assert all(
    torch.allclose(*_pair)
    for _pair in zip(torch.autograd.grad(_out, (q, k, w), v), right, strict=True)
)
_rows = (grad_p * p).sum(-1)
assert torch.allclose(_rows, (v * out).sum(-1))


def _attention_agrees(mask, *batch):
    _q, _k, _w = (
        torch.randn(*batch, *_s, dtype=torch.float64, requires_grad=True)
        for _s in sizes
    )
    _s = (_q @ _k.mT / 8**0.5).masked_fill(~mask, -torch.inf)
    _p = _s.softmax(-1)
    _out = _p @ _w
    _v = torch.randn_like(_out)
    _right = torch.autograd.grad(_out, (_q, _k, _w), _v)
    _grad_p = _v @ _w.mT
    _grad_s = softmax_backward(_p, _grad_p) / 8**0.5
    _hand = _grad_s @ _k, _grad_s.mT @ _q, _p.mT @ _v
    return all(torch.allclose(*_pair) for _pair in zip(_hand, _right, strict=True))


_mask = torch.ones(4, 5, dtype=torch.bool)
for _batch in ((), (2,), (2, 3)):
    assert _attention_agrees(_mask, *_batch)
    assert _attention_agrees(_mask.tril(), *_batch)
# sphinx_gallery_end_ignore

# %%
# With batch and heads in front, write ``.mT`` for each ``.T``. A mask that sets scores to ``-inf`` leaves the formulas as they
# are, if each query keeps at least one key.
#
# The sum in ``softmax_backward`` is ``(grad_p * p).sum(-1)``, which is ``(v * out).sum(-1)``. So a kernel can compute it from
# ``v`` and the result. `FlashAttention <https://arxiv.org/abs/2205.14135>`__ does that, and computes ``p`` again, block by
# block, instead of storing the whole matrix.

# %%
# What people get wrong
# ---------------------
# **The shape fits, and the gradient is wrong.** With a square ``W``, ``v @ W.T`` has the right shape as well, so test with
# sizes that are all different:

x = torch.randn(5, 3, dtype=torch.float64, requires_grad=True)
square = torch.randn(3, 3, dtype=torch.float64)
result = x @ square.T
u = torch.randn_like(result)
(right,) = torch.autograd.grad(result, x, u)
for name, grad in {"v @ W": u @ square, "v @ W.T": u @ square.T}.items():
    print(f"{name:<8} shape {tuple(grad.shape)}  right: {torch.allclose(grad, right)}")

# sphinx_gallery_start_ignore
assert torch.allclose(u @ square, right) and not torch.allclose(u @ square.T, right)
assert (u @ square.T).shape == right.shape
_row = torch.randn(1, 2, dtype=torch.float64)  # size 1: the sum over rows is not tested
assert torch.allclose(_row, _row.sum(0)) and _row.shape != b.shape
# sphinx_gallery_end_ignore

# %%
# **A broadcast is not summed.** ``b`` has 2 entries, and each was used in 5 rows, so its gradient is a sum over the rows. With
# ``v`` instead, ``b = b - 0.1 * v`` silently makes a ``b`` of shape (5, 2). A test with a single row does not notice. In a
# Function, you may return ``v`` itself, and autograd adds up the rows:


class Shift(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, b):
        return x + b

    @staticmethod
    def backward(ctx, v):
        return v, v  # v has the shape (5, 2), b has (2,)


v = torch.randn_like(y)
(grad_b,) = torch.autograd.grad(Shift.apply(y.detach(), b), b, v)
print(tuple(v.shape), "was summed to", tuple(grad_b.shape))

# sphinx_gallery_start_ignore
assert torch.equal(grad_b, v.sum(0)) and not torch.allclose(v, v.sum(0))
assert (b - 0.1 * v).shape == (5, 2)
assert torch.autograd.gradcheck(Shift.apply, (y.detach().requires_grad_(), b))
# sphinx_gallery_end_ignore

# %%
# Exercise
# --------
# RMSNorm divides each row by :math:`r = \sqrt{\text{mean}(x^2) + \varepsilon}`, and subtracts no mean. Derive its backward.
#
# .. solution::
#
# ``x`` enters in two ways: itself, and in ``r``. The term of the mean goes, the other two stay. Compare with the same ``eps``:

x = torch.randn(4, 6, dtype=torch.float64, requires_grad=True)
v = torch.randn(4, 6, dtype=torch.float64)
r = (x.square().mean(1, keepdim=True) + 1e-5).sqrt()
normal = x / r

grad = (v - normal * (v * normal).mean(1, keepdim=True)) / r
(right,) = torch.autograd.grad(torch.nn.functional.rms_norm(x, (6,), eps=1e-5), x, v)
print(torch.allclose(grad, right))

# sphinx_gallery_start_ignore
assert torch.allclose(grad, right)
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_functions_exp_function.py`, how to write the Function.
# - :ref:`sphx_glr_gallery_differentiation_vector_jacobian_products.py`, what ``v`` is.
# - :ref:`sphx_glr_gallery_debugging_softmax_and_neighbors.py`, where a softmax gives NaN.
# - In PyTorch's reference: `torch.autograd.gradcheck.gradcheck
#   <https://docs.pytorch.org/docs/stable/generated/torch.autograd.gradcheck.gradcheck.html>`__.
