r"""
Gradient reversal, scaling and straight-through
===============================================

.. in-short::

   Write a Function whose ``forward`` returns the value and whose ``backward`` returns the gradient that you want. ``return
   grad_output * coefficient`` scales the gradient, and a negative coefficient reverses it. For a straight-through estimator,
   use ``torch.round`` in ``forward`` and ``return grad_output`` in ``backward``. Without a Function, it is one line: ``x +
   (torch.round(x) - x).detach()``. ``gradcheck`` fails for all of these, on purpose.
"""

# %%
# The problem: the value is right, the gradient is not
# ----------------------------------------------------
# You want to slow down a backbone, train a feature *against* a second head, or get a gradient past a rounding step.
# ``GradCoeff`` leaves the value alone and multiplies the gradient:

import torch
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits as bce


class GradCoeff(torch.autograd.Function):
    @staticmethod
    def forward(x, coefficient):
        return x.view_as(x)

    @staticmethod
    def setup_context(ctx, inputs, output):
        _, ctx.coefficient = inputs

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * ctx.coefficient, None


x = torch.tensor(2.0, requires_grad=True)
y = GradCoeff.apply(x, -0.1)
z = y**2
y.retain_grad()
z.backward()

# graph: z -- Up to y the gradient is the true one; GradCoeff multiplies it by -0.1, and x gets the changed one

# %%
# The true derivative of :math:`x^2` at 2 is 4. The output ``y`` of ``GradCoeff`` gets this gradient, its input ``x`` -0.1 times
# as much:

print(f"z: {z.item()}   y.grad: {y.grad.item()}   x.grad: {x.grad.item():.1f}")

# sphinx_gallery_start_ignore
assert z.item() == 4 and y.grad.item() == 4
assert abs(x.grad.item() + 0.4) < 1e-6
# sphinx_gallery_end_ignore

# %%
# **The rule: forward decides the value, backward decides the gradient, and autograd never compares the two.** ``backward``
# returns one gradient for each argument of ``forward``. The coefficient is a number, so its gradient is ``None``. (Surplus
# values at the end are ignored if all are ``None``.)


# sphinx_gallery_start_ignore
def _try_to_return(returned):
    class Trial(GradCoeff):
        @staticmethod
        def backward(ctx, g):
            return returned(g)

    x = torch.tensor(2.0, requires_grad=True)
    try:
        Trial.apply(x, -0.1).backward()
    except RuntimeError as error:
        return str(error)
    return x.grad


assert "expected 2, got 1" in _try_to_return(lambda g: g)
assert "expected 2, got 3" in _try_to_return(lambda g: (g, None, g))
assert "different than None at position 2" in _try_to_return(lambda g: (g, g))
assert _try_to_return(lambda g: (g, None)) == 1
assert _try_to_return(lambda g: (g, None, None, None)) == 1
assert _try_to_return(lambda g: (None, None)) is None
# sphinx_gallery_end_ignore

# %%
# Gradient reversal
# -----------------
# With a negative coefficient, gradient descent pushes the layers before ``GradCoeff`` *up* the loss, and the layers after it
# down. In domain adaptation, one head learns a label from a feature, and a second head learns which domain a sample comes
# from. The reversal in front of the second head should make the feature less useful to that head.
#
# Below, the feature is one number, computed from two coordinates. The label depends on both of them, the domain only on the
# second, :math:`x_2`. ``train`` also notes the share of :math:`x_2` in the feature:

torch.manual_seed(0)
points = torch.randn(500, 2)
label = (points.sum(dim=1) > 0).float()
domain = (points[:, 1] > 0).float()


def train(coefficient, steps=100):
    body = nn.Linear(2, 1, bias=False)
    label_head = nn.Linear(1, 1, bias=False)
    domain_head = nn.Linear(1, 1, bias=False)
    model = nn.ModuleList([body, label_head, domain_head])
    for parameter in model.parameters():
        nn.init.ones_(parameter)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    shares = []
    for _ in range(steps):
        feature = body(points)
        label_score = label_head(feature).squeeze(1)
        against = GradCoeff.apply(feature, coefficient)
        domain_score = domain_head(against).squeeze(1)
        loss = bce(label_score, label) + bce(domain_score, domain)
        optimizer.zero_grad()
        loss.backward()
        w = body.weight.detach()[0]
        shares.append((w[1] / w.norm()).item())
        optimizer.step()
    label_found = ((label_score > 0) == label).float().mean().item()
    domain_found = ((domain_score > 0) == domain).float().mean().item()
    return shares, (label_found, domain_found)


# %%
# .. how-measured:: This code draws the points and the shares.

import matplotlib.pyplot as plt

styles = {1: ("--", "#2563eb"), 0: (":", "#64748b"), -2: ("-", "#c2410c")}


def draw_points_and_shares(curves):
    _, (left, ax) = plt.subplots(
        1, 2, figsize=(7, 2.8), width_ratios=(2, 3), layout="constrained"
    )
    for shown, marker in ((domain == 0, "o"), (domain == 1, "^")):
        colors = ["#2563eb" if one else "#c2410c" for one in label[shown]]
        left.scatter(*points[shown].T, s=6, marker=marker, c=colors)
    left.axhline(0, color="#64748b", lw=1)
    left.set(xlabel="$x_1$", ylabel="$x_2$", title="Color: label, mark: domain")
    for coefficient, (style, color) in styles.items():
        name = f"coefficient {coefficient}"
        ax.plot(curves[coefficient], style, color=color, label=name)
    ax.set(xlabel="step", ylabel=r"$w_2$ / length of $w$", ylim=(0, 1))
    ax.set_title("Share of $x_2$ in the feature")
    ax.legend(fontsize=8)


# %%
# The gradient from the domain's head reaches the feature as it is (1), as zero (0), or reversed and doubled (-2):

curves, found = {}, {}
for coefficient in (1, 0, -2):
    curves[coefficient], found[coefficient] = train(coefficient)

draw_points_and_shares(curves)

# figure: On the left 500 points; a horizontal line separates the two marks. The colors change along a falling diagonal. On the
#   right three lines over 100 training steps, all starting at 0.7. With coefficient 1 the share of the second coordinate rises
#   to about 0.9, with 0 it stays at 0.7, with minus 2 it falls to about 0.1 and rises again to almost 0.4.

# %%
# How often each head is right after these 100 steps:

for coefficient, (of_label, of_domain) in found.items():
    shown = f"label {of_label:.0%}, domain {of_domain:.0%}"
    print(f"coefficient {coefficient:>2}: {shown}")

# sphinx_gallery_start_ignore
assert (
    0.88 < curves[1][-1] < 0.94
    and 0.35 < curves[-2][-1] < 0.4
    and 0.08 < min(curves[-2]) < 0.16
)
assert 0.45 < domain.mean() < 0.55
assert max(abs(share - 0.7) for share in curves[0]) < 0.05
assert all(abs(curve[0] - 0.7) < 0.01 for curve in curves.values())
assert [f"{label:.0%}" for label, _ in found.values()] == ["88%", "100%", "87%"], found
assert [f"{domain:.0%}" for _, domain in found.values()] == ["88%", "76%", "63%"], found
assert 20 < curves[-2].index(min(curves[-2])) < 50
# sphinx_gallery_end_ignore

# %%
# With the reversal, the domain is found in 63 % of the samples instead of 76 %, where guessing finds half. The label, which
# needs the same coordinate, falls from 100 % to 87 %. The share of :math:`x_2` falls to about 0.1 at first, and then rises
# again, so the number of steps matters.

# %%
# The straight-through estimator
# ------------------------------
# ``torch.round`` is flat between its steps, so its derivative is zero, and nothing learns through it. This
# straight-through estimator rounds in ``forward``, and its ``backward`` returns the gradient that it received.


class Round(torch.autograd.Function):
    @staticmethod
    def forward(x):
        return torch.round(x)

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output


# %%
# Fit two weights that are used as whole numbers only. The right ones are 3 and -2.


def fit(rounding):
    w = nn.Parameter(torch.tensor([0.2, 0.2]))
    optimizer = torch.optim.SGD([w], lr=0.2)
    target = points @ torch.tensor([3.0, -2.0])
    for step in range(11):
        used = rounding(w)
        loss = (points @ used - target).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 5 == 0:
            print(f"  step {step:>2}  loss {loss:5.2f}  used {used.tolist()}")
    return used.tolist()


print("torch.round")
plain = fit(torch.round)
print("Round.apply")
through = fit(Round.apply)
assert plain == [0, 0] and through == [3, -2]

# sphinx_gallery_start_ignore
_w = torch.tensor([0.2, 0.2], requires_grad=True)
assert not torch.autograd.grad(torch.round(_w).sum(), _w)[0].any()
_inside = torch.tensor([2.2], dtype=torch.float64, requires_grad=True)
assert not torch.autograd.gradcheck(Round.apply, _inside, raise_exception=False)
# sphinx_gallery_end_ignore

# %%
# With ``torch.round`` the gradient is zero and the weights stay. With ``Round`` the gradient of the rounded weights goes to the
# weights before rounding. That is not the derivative of this loss, so there is no guarantee that it leads to the right weights.
#
# In one line, without a class: ``x + (torch.round(x) - x).detach()``. In vector quantization, ``z + (code - z).detach()`` has
# the value of ``code``, and passes its gradient to the encoder's output ``z``. For ``torch.sign``, the gradient is often kept
# only near 0: ``return grad_output * (x.abs() <= 1)``, with ``x`` from ``ctx.saved_tensors``.

# sphinx_gallery_start_ignore
_z, _code = torch.randn(2, 4, requires_grad=True), torch.randn(2, 4, requires_grad=True)
_copied = _z + (_code - _z).detach()
assert torch.allclose(_copied, _code)
_copied.square().sum().backward()
assert torch.allclose(_z.grad, 2 * _code) and _code.grad is None


class _Sign(torch.autograd.Function):
    @staticmethod
    def forward(x):
        return torch.sign(x)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * (x.abs() <= 1)


for _type in (torch.float16, torch.bfloat16, torch.float32):
    _z = torch.tensor([-2.0, -0.5, 0.0, 1.0, 3.0], dtype=_type, requires_grad=True)
    _Sign.apply(_z).sum().backward()
    assert _z.grad.tolist() == [0, 1, 1, 1, 0] and _z.grad.dtype == _type
# sphinx_gallery_end_ignore

# %%
# What people get wrong
# ---------------------
# **A backward method on a module.** Autograd ignores a method ``backward`` of an ``nn.Module``, so the gradient silently keeps
# its sign:


class ReversalModule(nn.Module):
    def forward(self, x):
        return x

    def backward(self, grad_output):
        return -grad_output


x = torch.tensor(2.0, requires_grad=True)
ReversalModule()(x).square().backward()
print(f"the gradient is {x.grad.item()}, a reversed one would be -4.0")
assert x.grad.item() == 4

# %%
# Call the Function in ``forward``: ``return GradCoeff.apply(x, -1.0)``.

# %%
# **An in-place operation on the result.** The output is a view of the input, so autograd refuses ``nn.ReLU(inplace=True)``:

import textwrap

w = torch.tensor([2.0, -1.0], requires_grad=True)
try:
    nn.ReLU(inplace=True)(GradCoeff.apply(w * 1, -0.1))
except RuntimeError as error:
    message = str(error)
    print(textwrap.fill(f"RuntimeError: {message}", 88))

# sphinx_gallery_start_ignore
assert "is a view and is being modified inplace" in message
assert "would override the custom backward" in " ".join(message.split())


class _Cloned(GradCoeff):
    @staticmethod
    def forward(x, coefficient):
        return x.clone()


_after = nn.ReLU(inplace=True)(_Cloned.apply(w * 1, -0.1))
(_gradient,) = torch.autograd.grad(_after.sum(), w)
assert torch.allclose(_gradient, torch.tensor([-0.1, 0.0]))
# sphinx_gallery_end_ignore

# %%
# Use ``nn.ReLU()``, or return ``x.clone()`` in ``forward``.
#
# **None for an argument that should learn.** Return its gradient. ``None`` is accepted for a parameter too, but then it learns
# nothing:

scale = nn.Parameter(torch.tensor(3.0))
GradCoeff.apply(w, scale).sum().backward()
print("scale.grad:", scale.grad)
assert scale.grad is None and w.grad.tolist() == [3.0, 3.0]

# %%
# **A small coefficient with Adam.** Adam divides its step by the size of the recent gradients. If *all* gradients of a weight
# have the same positive factor, the step hardly changes. To slow down a backbone, give it a smaller ``lr``.

# sphinx_gallery_start_ignore
inputs = torch.tensor([2.0], dtype=torch.float64, requires_grad=True)
for _changed in (
    lambda x: GradCoeff.apply(x, -0.1),
    lambda x: x + (torch.round(x) - x).detach(),
):
    assert not torch.autograd.gradcheck(_changed, inputs, raise_exception=False)


def _way(optimizer_class, coefficient):
    w = torch.ones(3, requires_grad=True)
    optimizer = optimizer_class([w], lr=0.01)
    for _ in range(5):
        optimizer.zero_grad()
        GradCoeff.apply(w, coefficient).square().sum().backward()
        optimizer.step()
    return 1 - w[0].item()


assert _way(torch.optim.SGD, 0.1) < 0.15 * _way(torch.optim.SGD, 1.0)
for _adaptive in (torch.optim.Adam, torch.optim.AdamW):
    for _factor in (100, 0.1, 0.001):
        assert abs(_way(_adaptive, _factor) / _way(_adaptive, 1.0) - 1) < 1e-3
    assert _way(_adaptive, -0.1) < 0  # a negative factor turns it around
# sphinx_gallery_end_ignore

# %%
# Exercise
# --------
# ``GradCoeff`` can be written in one line with ``detach()``, too. How, for a coefficient ``c``?
#
# .. solution::
#
# Add a detached term that corrects the value. No gradient goes through that term, so only the first term counts.

x = torch.tensor(2.3, requires_grad=True)
c = -0.1

scaled = c * x + ((1 - c) * x).detach()
(gradient,) = torch.autograd.grad(scaled, x)
print(f"value {scaled.item():.4f}   gradient {gradient.item():+.4f}")

# sphinx_gallery_start_ignore
assert abs(scaled.item() - 2.3) < 1e-6
assert gradient.item() == torch.tensor(c).item()
for _type in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
    _many = (torch.randn(10_000, dtype=torch.float64) * 10).to(_type)
    assert torch.equal(_many + (torch.round(_many) - _many), torch.round(_many))
    assert not torch.equal(c * _many + (1 - c) * _many, _many)
assert torch.equal(GradCoeff.apply(_many, c), _many)
assert torch.equal(Round.apply(_many), torch.round(_many))
# sphinx_gallery_end_ignore

# %%
# ``scaled`` is a sum, so it can have a rounding error. ``GradCoeff`` returns the exact value.

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_differentiation_hooks.py`: a hook on a tensor can change its gradient, too.
# - :ref:`sphx_glr_gallery_differentiation_points_without_a_derivative.py`, where the true derivative is zero or undefined.
# - In PyTorch's reference: `torch.autograd.Function.backward
#   <https://docs.pytorch.org/docs/stable/generated/torch.autograd.Function.backward.html>`__ and `Extending PyTorch
#   <https://docs.pytorch.org/docs/stable/notes/extending.html>`__.
