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

   Write one element of the result, differentiate it with respect to one entry of an input, and multiply by the element's
   upstream gradient ``v``. Add that up over all elements. For a linear layer on rows:

   .. code-block:: python

      y = x @ W.T + b
      grad_x, grad_W, grad_b = v @ W, v.T @ x, v.sum(0)

   Split a longer layer into short lines, and go back line by line. Compare with autograd in ``float64``, with sizes above 1
   that are all different. If you only combine PyTorch's operations, you need no backward: autograd writes it.
"""

# %%
# The backward of a linear layer
# ------------------------------
# You write a kernel or a custom Function, and need its backward. Backward gets ``v``, the *upstream gradient*: that of the loss
# with respect to the result. A gradient has the shape of its tensor, which helps: with 5 rows, 3 inputs and 2 outputs, only one
# matrix product of ``v`` and ``W`` has the shape of ``x``. Compared with autograd:

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
#    up. The entry :math:`x_{ik}` is in all of :math:`y_{i1}, y_{i2}`, so we add over :math:`j`. The entries :math:`W_{jk}` and
#    :math:`b_j` are in all of :math:`y_{1j}, \ldots, y_{5j}`, so we add over :math:`i`:
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
# Instead of step 3, ``einsum`` takes the indices as they are:

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
# If ``x`` has more dimensions, such as batch and time, make rows of it first: ``x.reshape(-1, 3)``, ``v.reshape(-1, 2)``.

# %%
# Layer norm, line by line
# ------------------------
# A layer norm is too long for one derivative. So split it into lines whose derivative you know:

x = torch.randn(4, 6, dtype=torch.float64, requires_grad=True)
v = torch.randn(4, 6, dtype=torch.float64)

mean = x.mean(1, keepdim=True)
centered = x - mean
variance = centered.square().mean(1, keepdim=True)
deviation = (variance + 1e-5).sqrt()
normal = centered / deviation

# %%
# Now go back from the last line to the first. Where a whole row uses one number, add up over the row. Where two lines use one
# tensor, as :math:`c` and :math:`x`, add up both terms. :math:`\bar c` is the gradient with respect to :math:`c`, and a row has
# :math:`n = 6` entries:
#
# .. list-table::
#    :widths: 40 60
#    :header-rows: 1
#
#    * - forward
#      - backward
#    * - normal: :math:`\hat x_k = c_k / \sigma`
#      - :math:`\bar\sigma = -\sum_k v_k c_k / \sigma^2`, and :math:`\bar c_k` gets :math:`v_k / \sigma`
#    * - deviation: :math:`\sigma = \sqrt{s + \varepsilon}`
#      - :math:`\bar s = \bar\sigma / (2 \sigma)`
#    * - variance: :math:`s = \frac{1}{n} \sum_k c_k^2`
#      - :math:`\bar c_k` gets also :math:`\bar s \cdot 2 c_k / n`
#    * - centered: :math:`c_k = x_k - m`
#      - :math:`\bar m = -\sum_k \bar c_k`, and :math:`\bar x_k` gets :math:`\bar c_k`
#    * - mean: :math:`m = \frac{1}{n} \sum_k x_k`
#      - :math:`\bar x_k` gets also :math:`\bar m / n`
#
# In code, each step compared with autograd:

grad_deviation = -(v * centered).sum(1, keepdim=True) / deviation**2
grad_variance = grad_deviation / (2 * deviation)
grad_centered = v / deviation + grad_variance * 2 * centered / 6
grad_mean = -grad_centered.sum(1, keepdim=True)
grad_x = grad_centered + grad_mean / 6

by_hand = grad_deviation, grad_variance, grad_centered, grad_mean, grad_x
steps = deviation, variance, centered, mean, x
by_autograd = torch.autograd.grad(normal, steps, v)
print([torch.allclose(*pair) for pair in zip(by_hand, by_autograd, strict=True)])

# sphinx_gallery_start_ignore
assert all(torch.allclose(*_p) for _p in zip(by_hand, by_autograd, strict=True))
(right,) = torch.autograd.grad(torch.nn.functional.layer_norm(x, (6,)), x, v)
assert torch.allclose(normal, torch.nn.functional.layer_norm(x, (6,)))
assert torch.allclose(grad_x, right)
assert torch.allclose(
    grad_deviation, -(v * normal).sum(1, keepdim=True) / deviation
) and torch.allclose(
    grad_centered, (v - normal * (v * normal).mean(1, keepdim=True)) / deviation
)
assert torch.allclose(grad_mean / 6, -v.mean(1, keepdim=True) / deviation)
one_way = v / deviation
_off = (one_way - right).norm() / right.norm()
assert _off > 0.2
_fixed = (x - x.mean(1, keepdim=True).detach()) / deviation.detach()
assert torch.allclose(torch.autograd.grad(_fixed, x, v)[0], one_way)
# sphinx_gallery_end_ignore

# %%
# Put the lines into each other. With :math:`c = \sigma \hat x`, the first three give
# :math:`\bar c = (v - \hat x \, \text{mean}(v \hat x)) / \sigma`. The :math:`\hat x` of a row add up to 0, so the last two
# lines only subtract :math:`\text{mean}(v) / \sigma`:
#
# .. math:: \bar x = \bigl( v - \text{mean}(v) - \hat x \, \text{mean}(v \hat x) \bigr) \, / \, \sigma

(right,) = torch.autograd.grad(torch.nn.functional.layer_norm(x, (6,)), x, v)
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
# With a weight and a bias of 6 numbers, put ``v * weight`` in place of ``v`` in this formula. The weight's own gradient is
# ``(v * normal).sum(0)``, and the bias's is ``v.sum(0)``.
#
# Softmax and cross entropy
# -------------------------
# A softmax is :math:`e_k = \exp(z_k)`, then :math:`s = \sum_k e_k`, then :math:`p_k = e_k / s`. A whole row uses :math:`s`, and
# two lines use :math:`e`:
#
# .. math::
#
#    \bar s = -\sum_k v_k e_k / s^2 \qquad \bar e_k = v_k / s + \bar s \qquad \bar z_k = \bar e_k e_k

scores = torch.randn(4, 6, dtype=torch.float64, requires_grad=True)
v = torch.randn(4, 6, dtype=torch.float64)

e = scores.exp()
s = e.sum(1, keepdim=True)
p = e / s

grad_s = -(v * e).sum(1, keepdim=True) / s**2
grad_e = v / s + grad_s
grad_scores = grad_e * e

by_hand = grad_s, grad_e, grad_scores
by_autograd = torch.autograd.grad(p, (s, e, scores), v)
print([torch.allclose(*pair) for pair in zip(by_hand, by_autograd, strict=True)])

# sphinx_gallery_start_ignore
assert all(torch.allclose(*_p) for _p in zip(by_hand, by_autograd, strict=True))
assert torch.allclose(p, scores.softmax(1))
# sphinx_gallery_end_ignore

# %%
# Put into each other, with :math:`e / s = p`, they are :math:`p \cdot (v - \sum_k v_k p_k)`:


def softmax_backward(p, v):
    return p * (v - (v * p).sum(-1, keepdim=True))


print(torch.allclose(softmax_backward(p, v), grad_scores))

# sphinx_gallery_start_ignore
assert torch.allclose(softmax_backward(p, v), grad_scores)
# sphinx_gallery_end_ignore

# %%
# Cross entropy is shorter. For one row, the loss is :math:`\log s - z_\text{label}`. The derivative of :math:`\log s` with
# respect to :math:`z_k` is :math:`e_k / s = p_k`. So the gradient is :math:`p_k`, less 1 at the label. The mean over the rows
# divides it by their number:

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
_hand = (p - _one_hot) * _kept / _kept.sum()
assert torch.allclose(_cross_entropy_grad(labels, ignore_index=2), _hand)
assert not torch.allclose(_hand, grad)
_loss = torch.nn.functional.cross_entropy(scores, labels)
_v, _quarter = torch.autograd.grad(_loss / 4, (_loss, scores))
assert _v == 0.25 and torch.allclose(_quarter, _v * grad)
assert not torch.allclose(_quarter, grad)
for _list in ([0, 5, -100, 2], [0, 5, -100, -100], [-100] * 4):
    _padded = torch.tensor(_list)
    _kept = _padded != -100
    _hand = p - torch.nn.functional.one_hot(_padded.clamp(min=0), 6)
    _hand[~_kept] = 0
    _hand[_kept] /= _kept.sum()
    assert torch.allclose(_cross_entropy_grad(_padded), _hand)
# sphinx_gallery_end_ignore

# %%
# In ``loss.backward()``, the upstream gradient of the loss is 1. In a Function's ``backward``, multiply by the one you get.
# Rows that ``ignore_index`` leaves out get 0, and do not count in the number.

# %%
# Attention
# ---------
# Attention is two products with a softmax between them, so you have all formulas:

sizes = (4, 8), (5, 8), (5, 3)  # 4 queries, 5 keys, 5 values
q, k, values = (
    torch.randn(*size, dtype=torch.float64, requires_grad=True) for size in sizes
)
v = torch.randn(4, 3, dtype=torch.float64)  # the upstream gradient, as above

p = (q @ k.T / 8**0.5).softmax(-1)
out = p @ values
right = torch.autograd.grad(out, (q, k, values), v)

grad_values = p.T @ v
grad_p = v @ values.T
grad_scores = softmax_backward(p, grad_p) / 8**0.5
grad_q, grad_k = grad_scores @ k, grad_scores.T @ q
by_hand = grad_q, grad_k, grad_values
print([torch.allclose(*pair) for pair in zip(by_hand, right, strict=True)])

# sphinx_gallery_start_ignore
assert all(torch.allclose(*_pair) for _pair in zip(by_hand, right, strict=True))
_inputs = q, k, values
(_out,) = torch.nn.functional.scaled_dot_product_attention(
    *(_t[None] for _t in _inputs)
)
assert torch.allclose(_out, out)
assert all(
    torch.allclose(*_pair)
    for _pair in zip(torch.autograd.grad(_out, _inputs, v), right, strict=True)
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
# The sum in ``softmax_backward`` is the same as ``(v * out).sum(-1)``. `FlashAttention <https://arxiv.org/abs/2205.14135>`__
# uses that, and computes ``p`` again, block by block, instead of storing the whole matrix.

# %%
# What people get wrong
# ---------------------
# **The shape fits, and the gradient is wrong.** With a square ``W``, ``v @ W.T`` has the right shape as well:

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
# **A broadcast is not summed.** Each entry of ``b`` was used in 5 rows. With ``v`` instead of the sum, ``b = b - 0.1 * v``
# silently makes a ``b`` of shape (5, 2). In a Function, you may return ``v`` itself, and autograd adds up the rows:


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
# **Treating mean and deviation as constants.** If you ``detach()`` both in a layer norm, only ``v / deviation`` is left, and
# that is far off.

# %%
# Exercise
# --------
# RMSNorm divides each row by :math:`r = \sqrt{\text{mean}(x^2) + \varepsilon}`, and subtracts no mean. Derive its backward.
#
# .. solution::
#
# The lines are those of layer norm without the mean, so the term of the mean goes:

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
