r"""
Gradient reversal, scaling and straight-through
===============================================

.. in-short::

   Write a Function whose ``forward`` returns the value and whose ``backward`` returns the gradient that you want. ``return
   grad_output * coefficient`` scales the gradient, and a negative coefficient reverses it. For a straight-through estimator,
   use ``torch.round`` in ``forward`` and ``return grad_output`` in ``backward``. Without a Function, it is one line: ``x +
   (torch.round(x) - x).detach()``. :ref:`gradcheck <sphx_glr_gallery_functions_gradcheck.py>`, which compares a gradient with
   finite differences, fails for all of these, on purpose.
"""

# %%
# The problem: the value is right, the gradient is not
# ----------------------------------------------------
# You want to train a feature *against* a second head, or get a gradient past a rounding step. ``GradCoeff`` leaves the value
# alone and multiplies the gradient. It is a :ref:`custom Function <sphx_glr_gallery_functions_exp_function.py>`:
# ``setup_context`` keeps in ``ctx`` what ``backward`` needs, and ``x.view_as(x)`` is a new tensor that shares the memory of
# ``x``.

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
# The true derivative of :math:`x^2` at 2 is 4. The output ``y`` gets this gradient, and ``x`` gets -0.1 times as much:

print(f"z: {z.item()}   y.grad: {y.grad.item()}   x.grad: {x.grad.item():.1f}")

# sphinx_gallery_start_ignore
assert z.item() == 4 and y.grad.item() == 4
assert abs(x.grad.item() + 0.4) < 1e-6
# sphinx_gallery_end_ignore

# %%
# **The rule: forward decides the value, backward decides the gradient, and autograd never compares the two.** ``backward``
# returns one gradient for each argument of ``forward``. The coefficient is a number, so its gradient is ``None``.


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
assert _try_to_return(lambda g: (None, None)) is None
# sphinx_gallery_end_ignore

# %%
# Gradient reversal
# -----------------
# With a negative coefficient, gradient descent pushes the layers before ``GradCoeff`` *up* the loss, and the layers after it
# down. Domain adaptation uses this. You have labels for one domain (the source), and want the model to work in a second one
# (the target). A second head learns which domain a sample comes from, and the reversal in front of it makes the feature less
# useful to that head.
#
# Below, the feature is one number, computed from two coordinates. In the source, both tell the label. In the target, only
# :math:`x_1` does. ``train`` also notes the share of :math:`x_2` in the feature:

torch.manual_seed(0)
label = torch.arange(500) % 2.0
domain = (torch.arange(500) >= 250).float()
source, target = domain == 0, domain == 1
sign = 2 * label - 1
points = torch.stack([sign, torch.where(source, sign, 2.0)], dim=1)
points += torch.randn(500, 2)


def right(score, truth):
    return ((score > 0) == truth).float().mean().item()


def train(coefficient, steps=200):
    body = nn.Linear(2, 1, bias=False)
    label_head, domain_head = nn.Linear(1, 1), nn.Linear(1, 1)
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
        # the labels of the target are not used
        loss = bce(label_score[source], label[source])
        loss = loss + bce(domain_score, domain)
        optimizer.zero_grad()
        loss.backward()
        w = body.weight.detach()[0]
        shares.append((w[1] / w.norm()).item())
        optimizer.step()
    return shares, (
        right(label_score[source], label[source]),
        right(label_score[target], label[target]),
        right(domain_score, domain),
    )


# %%
# .. how-measured:: This code draws the points and the shares.

import matplotlib.pyplot as plt

styles = {1: ("--", "#2563eb"), 0: (":", "#64748b"), -2: ("-", "#c2410c")}


def draw_points_and_shares(curves):
    _, (left, ax) = plt.subplots(
        1, 2, figsize=(7, 3.2), width_ratios=(1, 1), layout="constrained"
    )
    for shown, marker in ((source, "o"), (target, "^")):
        some = points[shown][:60]
        ones = label[shown][:60]
        colors = ["#2563eb" if one else "#c2410c" for one in ones]
        left.scatter(*some.T, s=22, marker=marker, c=colors)
    left.set(xlabel="$x_1$", ylabel="$x_2$")
    left.set_title("Color: label. Circle: source,\ntriangle: target")
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

# figure: On the left 60 points of each domain. The circles of the source have one color at the lower left and the other at the
#   upper right. The triangles of the target are all high, with one color on the left and the other on the right. On the right
#   three lines over 200 training steps, all starting at 0.7. With coefficient 1 the share of the second coordinate rises to
#   almost 0.9, with 0 it falls to almost 0.6, with minus 2 it falls to almost 0.3.

# %%
# How often each head is right after these 200 steps:

for coefficient, numbers in found.items():
    shown = "source {:.0%}, target {:.0%}, domain {:.0%}".format(*numbers)
    print(f"coefficient {coefficient:>2}: label in {shown}")

# sphinx_gallery_start_ignore
_percents = [[f"{number:.0%}" for number in numbers] for numbers in found.values()]
assert _percents[1] == ["93%", "67%", "60%"] and _percents[2] == ["92%", "81%", "51%"]
assert all(abs(curve[0] - 0.7) < 0.01 for curve in curves.values())
assert 0.85 < curves[1][-1] < 0.9 and 0.55 < curves[0][-1] < 0.6
assert min(curves[-2]) == curves[-2][-1] and 0.25 < curves[-2][-1] < 0.3
# sphinx_gallery_end_ignore

# %%
# With the reversal, the domain head is right for 51 % of the samples, where guessing finds half. The share of :math:`x_2` is
# small, so the label in the target is right for 81 % instead of 67 %, almost without a loss in the source.

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

data = torch.randn(500, 2)


def fit(rounding):
    w = nn.Parameter(torch.tensor([0.2, 0.2]))
    optimizer = torch.optim.SGD([w], lr=0.2)
    wanted = data @ torch.tensor([3.0, -2.0])
    for step in range(11):
        used = rounding(w)
        loss = (data @ used - wanted).square().mean()
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
# In vector quantization, the encoder's output ``z`` is replaced by the nearest vector of a codebook. The same trick in one line
# has the value of ``code`` and passes its gradient to ``z``. For ``torch.sign``, the gradient is often kept only near 0:

z = torch.tensor([0.2, 0.9], requires_grad=True)
code = torch.tensor([0.0, 1.0])
quantized = z + (code - z).detach()
quantized.square().sum().backward()
print("quantized", quantized.tolist(), "gradient", z.grad.tolist())


class Sign(torch.autograd.Function):
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


x = torch.tensor([-2.0, -0.5, 0.5, 2.0], requires_grad=True)
signs = Sign.apply(x)
signs.sum().backward()
print("signs", signs.tolist(), "gradient", x.grad.tolist())

# sphinx_gallery_start_ignore
assert quantized.tolist() == [0, 1] and z.grad.tolist() == [0, 2]
assert signs.tolist() == [-1, -1, 1, 1] and x.grad.tolist() == [0, 1, 1, 0]
_z, _code = torch.randn(2, 4, requires_grad=True), torch.randn(2, 4, requires_grad=True)
_copied = _z + (_code - _z).detach()
assert torch.allclose(_copied, _code)
_copied.square().sum().backward()
assert torch.allclose(_z.grad, 2 * _code) and _code.grad is None
for _type in (torch.float16, torch.bfloat16, torch.float32):
    _z = torch.tensor([-2.0, -0.5, 0.0, 1.0, 3.0], dtype=_type, requires_grad=True)
    Sign.apply(_z).sum().backward()
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
# **None for an argument that should learn.** Return its gradient. With ``None``, a parameter learns nothing:

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
