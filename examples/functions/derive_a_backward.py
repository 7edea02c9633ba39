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

   Write one element of the result, differentiate it with respect to one entry, and add up all elements that use this entry. For
   a linear layer with the upstream gradient ``v``:

   .. code-block:: python

      y = x @ W.T + b
      grad_x, grad_W, grad_b = v @ W, v.T @ x, v.sum(0)

   Compare with autograd in ``float64``, with sizes that are all different. If your function is made of PyTorch's operations,
   autograd derives it for you. The formulas of this page are for real numbers: complex ones need conjugates.
"""

# %%
# The backward of a linear layer
# ------------------------------
# You write a kernel or a custom Function, and need its backward. Backward gets ``v``, the gradient of the loss with respect to
# the result, and returns the gradient for each input. A gradient has the shape of its tensor, which helps: with 5 rows, 3
# inputs and 2 outputs there is one way to multiply.
#
# .. how-measured:: This code draws two products, each matrix as large as its shape.

import matplotlib.pyplot as plt
from matplotlib.patches import Rectangle

PRODUCTS = [
    (("v", 5, 2), "@", ("W", 2, 3), ("x's gradient", 5, 3)),
    (("v.T", 2, 5), "@", ("x", 5, 3), ("W's gradient", 2, 3)),
]


def draw_products():
    _, axes = plt.subplots(1, 2, figsize=(7, 2.4), layout="constrained")
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
# Two of the three gradients of ``x @ W.T + b``:

# figure: Two products of matrices, drawn with their shapes. v, 5 x 2, times W, 2 x 3, is the gradient of x, 5 x 3. The
#   transpose of v, 2 x 5, times x, 5 x 3, is the gradient of W, 2 x 3.
draw_products()

# %%
# The third, that of ``b``, is a sum over the rows. Compared with autograd:

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

# sphinx_gallery_start_ignore
assert all(torch.allclose(*_p) for _p in zip(by_hand, by_autograd, strict=True))
assert [tuple(g.shape) for g in by_hand] == [tuple(t.shape) for t in (x, W, b)]
_x, _W = (torch.randn(n, 3, dtype=torch.complex128).requires_grad_() for n in (5, 2))
_v = torch.randn(5, 2, dtype=torch.complex128)
_found = torch.autograd.grad(_x @ _W.T, (_x, _W), _v)
assert torch.allclose(_found[0], _v @ _W.conj())
assert torch.allclose(_found[1], _v.T @ _x.conj())
assert not torch.allclose(_found[0], _v @ _W)
# sphinx_gallery_end_ignore

# %%
# Three steps
# -----------
# 1. Write **one element** of the result: :math:`y_{ij} = \sum_k x_{ik} W_{jk} + b_j`.
# 2. Choose **one entry** of an input, and add up every element that uses it, each times its :math:`v`. Row :math:`i` of
#    the result uses :math:`x_{ik}`, and column :math:`j` uses :math:`W_{jk}` and :math:`b_j`:
#
#    .. math::
#
#       \frac{\partial L}{\partial x_{ik}} = \sum_j v_{ij} W_{jk} \qquad
#       \frac{\partial L}{\partial W_{jk}} = \sum_i v_{ij} x_{ik} \qquad
#       \frac{\partial L}{\partial b_j} = \sum_i v_{ij}
#
# 3. Read each sum **as a product** of matrices: the index that is summed must stand side by side.
#
# If you prefer indices to transposes, ``einsum`` takes step 2 as it is:

grad_x = torch.einsum("ij,jk->ik", v, W)
grad_W = torch.einsum("ij,ik->jk", v, x)
print(torch.allclose(grad_x, by_autograd[0]), torch.allclose(grad_W, by_autograd[1]))

# sphinx_gallery_start_ignore
assert torch.allclose(grad_x, by_hand[0]) and torch.allclose(grad_W, by_hand[1])
# sphinx_gallery_end_ignore

# %%
# What people get wrong
# ---------------------
# **The shape fits, and the gradient is wrong.** With a square ``W``, ``v @ W.T`` has the right shape as well. Test with sizes
# that are all different:

square = torch.randn(3, 3, dtype=torch.float64)
result = x @ square.T
u = torch.randn_like(result)
(right,) = torch.autograd.grad(result, x, u)
for name, grad in {"v @ W": u @ square, "v @ W.T": u @ square.T}.items():
    print(f"{name:<8} shape {tuple(grad.shape)}  right: {torch.allclose(grad, right)}")

# sphinx_gallery_start_ignore
assert torch.allclose(u @ square, right) and not torch.allclose(u @ square.T, right)
assert (u @ square.T).shape == right.shape
# sphinx_gallery_end_ignore

# %%
# **A broadcast is not summed.** ``b`` has 2 entries, and each was used in 5 rows, so its gradient is a sum over the rows. A
# step that takes ``v`` for it raises. In a custom Function you may return ``v`` itself: here the engine adds up the rows.


class Shift(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, b):
        return x + b

    @staticmethod
    def backward(ctx, v):
        return v, v  # v has the shape (5, 2), b has (2,)


(grad_b,) = torch.autograd.grad(Shift.apply(y.detach(), b), b, v)
print(tuple(v.shape), "was summed to", tuple(grad_b.shape))
try:
    b.detach().sub_(0.1 * v)
except RuntimeError as error:
    print("RuntimeError:", error)

# sphinx_gallery_start_ignore
assert torch.equal(grad_b, v.sum(0))
_said = []
try:
    b.detach().clone().sub_(0.1 * v)
except RuntimeError as _error:
    _said.append(str(_error))
assert _said == ["output with shape [2] doesn't match the broadcast shape [5, 2]"]
assert (b + v).shape == (5, 2)
# sphinx_gallery_end_ignore

# %%
# **A way is forgotten.** In a layer norm, each ``x`` enters three times: itself, in the mean and in the variance. Who takes
# mean and variance for constants divides by the deviation and stops. The result has the right shape, and is far off:

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
# Layer norm
# ----------
# With all three ways, the gradient of one row is
#
# .. math:: \frac{1}{\sigma} \left( v - \text{mean}(v) - \hat{x} \, \text{mean}(v \hat{x}) \right)
#
# The first term is ``x`` itself. The second is the way through the mean, the third the way through the variance. The hat marks
# the normalized row, and sigma is the square root of the variance plus ``eps``.

all_ways = v - v.mean(1, keepdim=True) - normal * (v * normal).mean(1, keepdim=True)
print(torch.allclose(all_ways / deviation, right))

# sphinx_gallery_start_ignore
assert torch.allclose(all_ways / deviation, right)
_normal, _deviation = normal.detach(), deviation.detach()
_mean_only = (x - x.mean(1, keepdim=True)) / _deviation
assert torch.allclose(
    torch.autograd.grad(_mean_only, x, v)[0],
    (v - v.mean(1, keepdim=True)) / _deviation,
)
_spread_only = (x - x.mean(1, keepdim=True).detach()) / (
    (x - x.mean(1, keepdim=True).detach()).square().mean(1, keepdim=True) + 1e-5
).sqrt()
assert torch.allclose(
    torch.autograd.grad(_spread_only, x, v)[0],
    (v - _normal * (v * _normal).mean(1, keepdim=True)) / _deviation,
)
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
# With a weight and a bias, put ``v * weight`` in place of ``v``. The weight's gradient is ``(v * normal).sum(0)``, the bias's
# ``v.sum(0)``.
#
# Softmax and cross entropy
# -------------------------
# For one row of scores :math:`z` and the label :math:`c`, the loss is :math:`\log \sum_k e^{z_k} - z_c`. The derivative of the
# first part is the softmax :math:`p`. So the gradient is :math:`p_j`, less 1 at the label. Here the mean divides by the number
# of rows:

scores = torch.randn(4, 6, dtype=torch.float64, requires_grad=True)
labels = torch.tensor([0, 5, 2, 2])
loss = torch.nn.functional.cross_entropy(scores, labels)
(right,) = torch.autograd.grad(loss, scores)

p = scores.softmax(1).detach()
grad = (p - torch.nn.functional.one_hot(labels, 6)) / len(labels)
print(torch.allclose(grad, right))

# sphinx_gallery_start_ignore
assert torch.allclose(grad, right)
# sphinx_gallery_end_ignore

# %%
# Alone, a softmax has another backward. Each score enters every probability of its row, through the sum. Each row of the
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

q, k, w = (torch.randn(4, 8, dtype=torch.float64, requires_grad=True) for _ in "qkw")
v = torch.randn(4, 8, dtype=torch.float64)

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
# sphinx_gallery_end_ignore

# %%
# The sum in ``softmax_backward`` is ``(grad_p * p).sum(-1)``, which is ``(v * out).sum(-1)`` here. So a kernel can compute
# it from the result, without the whole matrix ``p``: `FlashAttention <https://arxiv.org/abs/2205.14135>`__ does that.

# %%
# Exercise
# --------
# RMSNorm divides each row by :math:`r = \sqrt{\text{mean}(x^2) + \varepsilon}`, and subtracts no mean. Derive its backward.
#
# .. solution::
#
# ``x`` enters in two ways: itself, and in ``r``. The term of the mean goes, the other two stay:

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
# - Before: :ref:`sphx_glr_gallery_functions_gradcheck.py`, which compares a backward with differences.
# - Next: :ref:`sphx_glr_gallery_functions_double_backward.py`, the derivative of a backward.
# - :ref:`sphx_glr_gallery_functions_exp_function.py`, how to write the Function.
# - :ref:`sphx_glr_gallery_differentiation_vector_jacobian_products.py`, what ``v`` is.
# - :ref:`sphx_glr_gallery_debugging_softmax_and_neighbors.py`, where these formulas give NaN.
# - In PyTorch's reference: `torch.autograd.gradcheck.gradcheck
#   <https://docs.pytorch.org/docs/stable/generated/torch.autograd.gradcheck.gradcheck.html>`__.
