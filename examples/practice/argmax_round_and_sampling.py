r"""
Gradients through argmax, round and sampling
============================================

.. index::
   single: how to backprop through argmax
   single: argmax is not differentiable
   single: the gradient is zero after round or sign
   single: differentiable topk, sort or histogram
   single: straight-through estimator
   single: gumbel_softmax with hard=True
   single: grid_sample nearest has no gradient

.. in-short::

   ``argmax``, ``>`` and ``topk(...).indices`` end the graph. The gradient of ``round`` and ``sign`` is 0, without an
   error. So use a soft version such as ``softmax``, or take the value of the hard choice and the gradient of the soft
   one (*straight-through*):

   .. code-block:: python

      soft = scores.softmax(-1)
      hard = F.one_hot(scores.argmax(-1), scores.shape[-1])
      choice = hard + (soft - soft.detach())

   For a random choice, call ``F.gumbel_softmax(scores, hard=True)``. Such a gradient is an approximation, and in general
   it is biased.
"""

# %%
# The loss does not train the choice
# ----------------------------------
# You give each of three options a score. The option with the highest score is used (asked in `pytorch#1339
# <https://github.com/pytorch/pytorch/issues/1339>`__), and the loss says how good it was:

import torch
import torch.nn.functional as F

scores = torch.tensor([0.0, 0.5, 1.0], requires_grad=True)
options = torch.tensor([1.0, 2.0, 4.0])  # the first one would be right

loss = (options[scores.argmax()] - 1).square()
print("loss:", loss.item(), "  requires_grad:", loss.requires_grad)

# sphinx_gallery_start_ignore
assert loss == 9 and not loss.requires_grad
# sphinx_gallery_end_ignore

# %%
# .. how-measured:: This code draws the loss over the first score, for the hard choice and for two soft ones.

import matplotlib.pyplot as plt


def choose_softly(scores, tau):
    return (scores / tau).softmax(-1) @ options


def plot_loss_over_first_score():
    first = torch.linspace(-1, 4, 501)
    rows = torch.stack(torch.broadcast_tensors(first, *torch.tensor([0.5, 1.0])), -1)
    hard = (options[rows.argmax(-1)] - 1).square()
    hard[(first - 1).abs() < 0.005] = torch.nan
    _, ax = plt.subplots(figsize=(7, 2.7), layout="constrained")
    ax.plot(first, hard, color="#c2410c", label="argmax")
    for tau, style in ((0.3, "--"), (1.0, "-")):
        loss = (choose_softly(rows, tau) - 1).square()
        ax.plot(first, loss, style, color="#2563eb", label=f"softmax, tau = {tau}")
    ax.set(xlabel="score of the first option", ylabel="loss")
    ax.set_title("With argmax, the loss is flat, jumps, and is flat again")
    ax.legend()


# %%
# With argmax, the loss stays the same until the first score is the highest. With ``softmax(scores / tau)`` in place of the
# choice it falls smoothly. ``tau`` is called the temperature:

# figure: The loss over the first score. With argmax it is 9 up to a score of 1, where it jumps to 0. With softmax it falls
#   smoothly, with the lower temperature tau more steeply.
plot_loss_over_first_score()

# sphinx_gallery_start_ignore
for _first, _loss in ((-1.0, 9), (0.99, 9), (1.01, 0), (4.0, 0)):
    _scores = torch.tensor([_first, 0.5, 1.0])
    assert (options[_scores.argmax()] - 1).square() == _loss
_rows = torch.tensor([[_first, 0.5, 1.0] for _first in torch.linspace(-1, 4, 51)])
_falls = [(choose_softly(_rows, _tau) - 1).square().diff() for _tau in (0.3, 1.0)]
assert all((_fall < 0).all() for _fall in _falls)
assert _falls[0].min() < 2 * _falls[1].min()
# sphinx_gallery_end_ignore

# %%
# The slope is 0 on both sides of the jump, so it gives no direction. ``argmax`` has no gradient at all, and that of ``round``
# is 0. Neither parameter learns:

width = torch.tensor(2.6, requires_grad=True)

(width.round() - 1).square().backward()
print("width.grad:", width.grad)

# sphinx_gallery_start_ignore
try:
    # sphinx_gallery_end_ignore
    loss.backward()
# sphinx_gallery_start_ignore
except RuntimeError as error:
    message = str(error)
    print(f"RuntimeError: {message}")
assert width.grad == 0 and scores.grad is None
assert message.startswith("element 0 of tensors does not require grad and does not")
# sphinx_gallery_end_ignore

# %%
# Which operations pass a gradient
# --------------------------------
# Each operation gets ``x = [0.2, 1.7, 1.1]``, probabilities ``p`` made from it, or a grid. The table shows ``requires_grad`` of
# the result, and the gradient of its first element with respect to ``x``.
#
# .. how-measured:: This code calls each operation, asks for the gradient, and notes what it got.

import pandas as pd

image = torch.arange(16.0).view(1, 1, 4, 4)


def look_up(x, mode="nearest"):
    grid = x[:2].view(1, 1, 1, 2) / 4  # inside the image
    return F.grid_sample(image, grid, mode, align_corners=False)


OPERATIONS = {
    "x.argmax()": torch.argmax,
    "x > 1": lambda x: x > 1,
    "x.long()": torch.Tensor.long,
    "x.topk(2).indices": lambda x: x.topk(2).indices,
    "x.histc(3)": lambda x: x.histc(3),
    "p.multinomial(1)": lambda x: x.softmax(0).multinomial(1),
    "x.round(), x.sign()": torch.round,
    "grid_sample, nearest": look_up,
    "p.bernoulli()": lambda x: x.sigmoid().bernoulli(),
    "torch.normal(x, 1.0)": lambda x: torch.normal(x, 1.0),
    "x // 1": lambda x: x // 1,
    "x.unique()": torch.unique,
    "x.topk(2).values": lambda x: x.topk(2).values,
    "x.sort().values": lambda x: x.sort().values,
    "x.max()": torch.max,
    "x[x > 1]": lambda x: x[x > 1],
}


def try_operation(operation):
    x = torch.tensor([0.2, 1.7, 1.1], requires_grad=True)
    result = operation(x)
    if not result.requires_grad:
        return False, "-"
    try:
        (gradient,) = torch.autograd.grad(result.flatten()[0], x)
    except RuntimeError:  # NotImplementedError is one too
        return True, "raises"
    return True, ", ".join(f"{g:.0f}" for g in gradient.tolist())


def tabulate_operations():
    rows = {name: try_operation(operation) for name, operation in OPERATIONS.items()}
    return pd.DataFrame(rows, index=["requires grad", "gradient"]).T


# %%
# There are four groups:

# sphinx_gallery_start_ignore
_table = tabulate_operations()
_groups = _table["gradient"].tolist()
assert _groups[:6] == ["-"] * 6 and not _table["requires grad"][:6].any()
assert _groups[6:10] == ["0, 0, 0"] * 4 and _groups[10:12] == ["raises"] * 2
assert _groups[12:] == ["0, 1, 0", "1, 0, 0", "0, 1, 0", "0, 1, 0"]
assert _table["requires grad"][6:].all()
_x = torch.tensor([0.2, 1.7, 1.1], requires_grad=True)
(_slope,) = torch.autograd.grad(look_up(_x, "bilinear").sum(), _x)
assert (_slope[:2] > 0.1).all()  # so the zeros are those of nearest
for _flat in (torch.sign, torch.floor, torch.ceil, torch.trunc, torch.poisson):
    assert try_operation(_flat) == (True, "0, 0, 0")
for _cut in (torch.bincount, torch.argsort, torch.Tensor.int, torch.nonzero):
    assert try_operation(
        lambda x, f=_cut: f(x.long() if f is torch.bincount else x)
    ) == (
        False,
        "-",
    )
assert try_operation(lambda x: torch.histogram(x, 3).hist) == (True, "raises")
_raised = []
for _cut in list(OPERATIONS.values())[:6]:
    _x = torch.tensor([0.2, 1.7, 1.1], requires_grad=True)
    _factor = _cut(_x).float().sum()
    try:
        _factor.backward()
    except RuntimeError as error:
        _raised.append(str(error))
    (_factor * _x.sum()).backward()
    assert torch.equal(_x.grad, _factor.expand(3))
assert _raised == [message] * 6
for _missing in list(OPERATIONS.values())[10:12]:
    try:
        _missing(_x).sum().backward()
    except RuntimeError as error:
        _raised.append(str(error))
assert len(_raised) == 8 and all("is not implemented" in text for text in _raised[6:])
# sphinx_gallery_end_ignore
tabulate_operations().rename_axis(columns="result of")

# %%
# - **No graph.** If the loss uses nothing else, ``backward()`` raises the error above. Beside another term, this part of the
#   gradient is missing without an error.
# - **Zeros.** There is no error, and ``x`` does not learn. (The image of ``grid_sample`` would.) ``torch.poisson`` is in this
#   group, too (`pytorch#4159 <https://github.com/pytorch/pytorch/issues/4159>`__).
# - **An error** in ``backward()``: the derivative *is not implemented*.
# - **A gradient**, for the elements that were picked. The others get 0. So the picked values learn, but no gradient says that
#   a different choice would be better.

# %%
# Straight-through: a hard value with a soft gradient
# ---------------------------------------------------
# ``soft - soft.detach()`` is 0 for finite numbers, and its gradient is that of ``soft``. **Add it to the hard choice: the value
# is hard, and the gradient is soft.**


def one_hot(scores):
    return F.one_hot(scores.argmax(-1), scores.shape[-1])


soft = scores.softmax(-1)
choice = one_hot(scores) + (soft - soft.detach())
loss = (choice @ options - 1).square()
loss.backward()

print("choice:", choice.tolist(), " loss:", loss.item())
print("scores.grad:", scores.grad.numpy().round(2))

# graph: loss -- The one-hot choice is a constant: only softmax leads back to the scores

# sphinx_gallery_start_ignore
assert choice.tolist() == [0, 0, 1] and loss == 9
_jacobian = torch.func.jacrev(lambda s: s.softmax(-1))(scores.detach())
assert torch.allclose(scores.grad, 6 * options @ _jacobian)  # 6 is 2 * (4 - 1)
assert (scores.grad[:2] < 0).all() and scores.grad[2] > 0
# sphinx_gallery_end_ignore

# %%
# The loss is that of the third option. A step down this gradient lowers the third score and raises the other two. In a
# training loop, the choice moves from the third option over the second one to the first, which is right:

learned = scores.detach().clone().requires_grad_()
optimizer = torch.optim.SGD([learned], lr=0.1)
used = []
for _ in range(12):
    soft = learned.softmax(-1)
    choice = one_hot(learned) + (soft - soft.detach())
    used.append(options[choice.argmax()].item())
    loss = (choice @ options - 1).square()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("used:", *used)

# sphinx_gallery_start_ignore
assert used == [4.0] + [2.0] * 8 + [1.0] * 3 and options.tolist() == [1, 2, 4]
# sphinx_gallery_end_ignore

# %%
# :ref:`sphx_glr_gallery_functions_change_the_gradient.py` does the same for ``round``.

# %%
# gumbel_softmax taken apart
# --------------------------
# To draw an option at random, add noise to each score, and take the highest sum. With *Gumbel* noise, option ``k`` is drawn
# with the probability ``softmax(scores)[k]``. The rest is the straight-through choice above:


def gumbel_hard(scores, tau):
    noise = -torch.empty_like(scores).exponential_().log()
    soft = ((scores + noise) / tau).softmax(-1)
    return one_hot(soft) + (soft - soft.detach())


for function in (gumbel_hard, lambda s, tau: F.gumbel_softmax(s, tau, hard=True)):
    torch.manual_seed(0)
    sample = function(scores, tau=0.5)
    (gradient,) = torch.autograd.grad(sample @ options, scores)
    print(sample.detach().numpy(), gradient.numpy().round(3))

# sphinx_gallery_start_ignore
_batch, _results = torch.randn(200, 6, requires_grad=True), []
for function in (gumbel_hard, lambda s, tau: F.gumbel_softmax(s, tau, hard=True)):
    torch.manual_seed(0)
    sample = function(_batch, 0.5)
    _results.append((sample, torch.autograd.grad(sample.square().sum(), _batch)[0]))
assert torch.equal(_results[0][0], _results[1][0])
assert torch.allclose(_results[0][1], _results[1][1]) and _results[0][1].any()
_picks = []
for _tau in (0.01, 0.5, 1.0, 20.0):
    torch.manual_seed(0)
    _picks.append(gumbel_hard(scores.detach().expand(100_000, 3), _tau))
    assert (_picks[0] == _picks[-1]).float().mean() > 0.999  # ties by rounding
assert (_picks[0].mean(0) - scores.detach().softmax(0)).abs().max() < 0.01
torch.manual_seed(0)
_soft = F.gumbel_softmax(scores, 0.5)
torch.manual_seed(0)
_hard = F.gumbel_softmax(scores, 0.5, hard=True)
_slope = (
    3 * (_hard.detach() @ options) ** 2 * options
)  # of the cube, at the hard sample
(_product,) = torch.autograd.grad(_soft, scores, _slope)
(_given,) = torch.autograd.grad((_hard @ options) ** 3, scores)
assert torch.allclose(_given, _product) and _given.any()
# sphinx_gallery_end_ignore

# %%
# Both are equal. ``tau`` changes the gradient, but hardly ever the option that is drawn.

# %%
# The temperature: bias and noise
# -------------------------------
# The average loss over the random choice is smooth in the scores. With three options, you can compute its gradient exactly:


def loss_of(choice):
    return (choice @ options - 1).square()


average = scores.softmax(-1) @ loss_of(torch.eye(3))
(exact,) = torch.autograd.grad(average, scores)

# %%
# .. how-measured:: For each temperature this code makes 50,000 estimates, each from one sample, and draws bias and spread.


def estimates(tau, hard, loss=loss_of):
    torch.manual_seed(0)
    rows = scores.detach().expand(50_000, 3).clone().requires_grad_()
    losses = loss(F.gumbel_softmax(rows, tau, hard=hard))
    return torch.autograd.grad(losses.sum(), rows)[0]


def bias_and_spread(gradients, exact):
    bias = (gradients.mean(0) - exact).norm() / exact.norm()
    return bias.item(), (gradients.var(0).sum().sqrt() / exact.norm()).item()


TAUS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
FOUND = {
    hard: torch.tensor([bias_and_spread(estimates(tau, hard), exact) for tau in TAUS]).T
    for hard in (True, False)
}


def plot_bias_and_spread():
    _, ax = plt.subplots(figsize=(7, 3), layout="constrained")
    for hard, (bias, spread) in FOUND.items():
        color = "#c2410c" if hard else "#2563eb"
        ax.plot(TAUS, bias, "o-", color=color, label=f"bias, hard={hard}")
        ax.plot(TAUS, spread, "s--", color=color, label=f"spread, hard={hard}")
    ax.set(xscale="log", yscale="log", xlabel="temperature tau")
    ax.set(ylabel="relative to the gradient")
    ax.set_title("Here, a low temperature means less bias and more noise")
    ax.legend(loc="center left", bbox_to_anchor=(1, 0.5))


# %%
# The bias is the distance of the mean estimate from the exact gradient, and the spread the standard deviation of one estimate.
# For both, 1 means as large as the exact gradient:

# figure: Bias and spread over the temperature from 0.1 to 5, on logarithmic axes. Both bias lines rise from a few percent to
#   about 80 percent. Both lines of the spread fall from about 3 to less than 0.3. Those of hard=True are above those of
#   hard=False.
plot_bias_and_spread()

# sphinx_gallery_start_ignore
for _bias, _spread in FOUND.values():
    assert (_bias[1:].diff() > 0).all() and (_spread.diff() < 0).all()
    assert _bias[:2].max() < 0.15 and 0.7 < _bias[-1] < 0.9
    assert 2.5 < _spread[0] < 4.5 and _spread[-1] < 0.3
assert (FOUND[True][1] > FOUND[False][1]).all()


def _steep(choice):
    return (choice @ options).exp() / 20


_average = scores.softmax(-1) @ _steep(torch.eye(3))
(_exact,) = torch.autograd.grad(_average, scores)
_low, _high = (
    bias_and_spread(estimates(tau, True, _steep), _exact)[0] for tau in (0.1, 1.0)
)
assert _low > 1.5 * _high > 0.15
_rows = scores.detach().expand(50_000, 3).clone().requires_grad_()
_policy = torch.distributions.Categorical(logits=_rows)
_actions = _policy.sample()
_weighted = _policy.log_prob(_actions) * loss_of(F.one_hot(_actions, 3).float())
_score = bias_and_spread(torch.autograd.grad(_weighted.sum(), _rows)[0], exact)
assert _score[0] < 0.03 and 0.5 < _score[1] < 3
# sphinx_gallery_end_ignore

# %%
# With a different loss, ``(choice @ options).exp() / 20``, the bias of ``hard=True`` is larger at 0.1 than at 1. So try several
# temperatures. :ref:`sphx_glr_gallery_practice_policy_gradient.py` has an estimate without this bias.

# %%
# Quantization: clamp, then round
# -------------------------------
# Four levels, from 0 to 3. A value far outside should get no gradient. Three ways, with equal values:


def through_round(x):
    return x.round() + (x - x.detach())


x = torch.tensor([-0.7, 0.3, 1.4, 3.2, 4.2], requires_grad=True)
for name, levels in {
    "round, then clamp": through_round(x).clamp(0, 3),
    "clamp, then round": through_round(x.clamp(0, 3)),
    "fake_quantize": torch.fake_quantize_per_tensor_affine(x, 1.0, 0, 0, 3),
}.items():
    (gradient,) = torch.autograd.grad(levels.sum(), x)
    print(f"{name:<18} {levels.tolist()}  gradient {gradient.tolist()}")

# sphinx_gallery_start_ignore
TORCH = tuple(int(part) for part in torch.__version__.split(".")[:2])
_x = torch.linspace(-1.9, 4.9, 35).requires_grad_()
_ways = {
    "clamp last": through_round(_x).clamp(0, 3),
    "clamp first": through_round(_x.clamp(0, 3)),
    "fake": torch.fake_quantize_per_tensor_affine(_x, 1.0, 0, 0, 3),
}
_slopes = {n: torch.autograd.grad(w.sum(), _x)[0].bool() for n, w in _ways.items()}
for _way in _ways.values():
    assert torch.equal(_way, _x.round().clamp(0, 3))
_level = _x.detach().round()
_inside = (_level >= 0) & (_level <= 3)
_between = (_level > 0) & (_level < 3)
assert torch.equal(_slopes["clamp last"], _between if TORCH >= (2, 14) else _inside)
assert torch.equal(_slopes["fake"], _inside)
assert torch.equal(_slopes["clamp first"], (_x > 0) & (_x < 3))
_far = torch.tensor([torch.inf, -torch.inf])
assert through_round(_far).clamp(0, 3).isnan().all()
assert through_round(_far.clamp(0, 3)).tolist() == [3, 0]
_last = torch.tensor(3.2, requires_grad=True)
assert torch.autograd.grad(through_round(_last.clamp(0, 3)), _last)[0] == 0
_level = torch.fake_quantize_per_tensor_affine(_last, 1.0, 0, 0, 3)
assert _level == 3 and torch.autograd.grad(_level, _last)[0] == 1
# sphinx_gallery_end_ignore

# %%
# ``fake_quantize`` is straight-through for values that round to a level, such as 3.2, and gives 0 elsewhere (asked in
# `pytorch#38600 <https://github.com/pytorch/pytorch/issues/38600>`__). In your own module, clamp first. Then 3.2 gets 0,
# too. A value that is rounded first often lies on the bound, where the gradient of ``clamp`` has changed.
#
# .. torch-changed:: 2.14
#    :probe: kinks: x.clamp(0, 1) at x = [0, 1]
#
#    With *round, then clamp*, whatever rounds to the lowest or the highest level gets the gradient 0. Of four levels, two are
#    left. Quantization in torchao was hit (`ao#4806 <https://github.com/pytorch/ao/pull/4806>`__).

# %%
# Soft versions of other operations
# ---------------------------------
# - ``x > t``: ``torch.sigmoid((x - t) / tau)``.
# - ``topk`` as a mask: straight-through, with
#   ``hard = torch.zeros_like(soft).scatter(-1, soft.topk(k).indices, 1.0)``.
# - The ranks of a one-dimensional ``x``: ``torch.sigmoid((x[:, None] - x) / tau).sum(1) - 0.5``.
# - ``grid_sample`` with ``mode="nearest"``: ``mode="bilinear"`` has a gradient for the grid.
# - ``histc`` (asked in `the forum <https://discuss.pytorch.org/t/differentiable-torch-histc/25865>`__): with equally spaced
#   centers, a value between two of them counts in both bins, more in the nearer one. Beyond the outermost centers it loses its
#   count, so clamp ``x`` first.


def soft_histogram(x, centers):
    distance = (x[:, None] - centers).abs() / (centers[1] - centers[0])
    return (1 - distance).clamp(min=0).sum(0)


x = torch.tensor([0.9, 1.2, 1.6, 2.8], requires_grad=True)
counts = soft_histogram(x, centers=torch.arange(4.0))
(gradient,) = torch.autograd.grad(counts[1], x)
print("histc:", x.detach().histc(4, min=-0.5, max=3.5).tolist())
print("soft: ", counts.detach().numpy().round(1))
print("gradient of bin 1:", gradient.numpy().round(1))

# sphinx_gallery_start_ignore
assert abs(counts.sum() - 4) < 1e-5 and gradient.tolist() == [1, -1, -1, 0]
_points = torch.tensor([0.9, 1.2, 1.6, 2.8], dtype=torch.float64, requires_grad=True)
_centers = torch.arange(4.0, dtype=torch.float64)
assert soft_histogram(torch.tensor([3.4, -0.4]).clamp(0, 3), _centers).sum() == 2
assert soft_histogram(torch.tensor([3.4, -0.4]), _centers).sum() < 1.3
for _point in (0.1, 1.3, 2.9):
    _shares = soft_histogram(torch.tensor([_point]), torch.arange(4.0))
    assert (_shares > 0).sum() == 2 and _shares.argmax() == round(_point)
_s = torch.tensor([0.2, 1.7, 1.1, -0.5], requires_grad=True)
_ranks = torch.sigmoid((_s[:, None] - _s) / 0.01).sum(1) - 0.5
assert torch.allclose(_ranks, _s.argsort().argsort().float(), atol=1e-3)
_ranks = torch.sigmoid((_s[:, None] - _s) / 1.0).sum(1) - 0.5
assert torch.autograd.grad(_ranks[0], _s)[0].all()
_soft = _s.softmax(-1)
_hard = torch.zeros_like(_soft).scatter(-1, _soft.topk(2).indices, 1.0)
_mask = _hard + (_soft - _soft.detach())
assert _mask.tolist() == [0, 1, 1, 0] and not _hard.requires_grad
assert torch.autograd.grad(_mask @ torch.arange(4.0), _s)[0].all()
assert torch.autograd.gradcheck(lambda x: soft_histogram(x, _centers), _points)
for _mode, _learns in (("nearest", False), ("bilinear", True)):
    _image = torch.arange(16.0).view(1, 1, 4, 4).requires_grad_()
    _grid = torch.tensor([[[[0.1, 0.2], [-0.4, 0.3]]]], requires_grad=True)
    F.grid_sample(_image, _grid, _mode, align_corners=False).sum().backward()
    assert _image.grad.any() and bool(_grid.grad.all()) == _learns
    assert bool(_grid.grad.any()) == _learns
_t = torch.tensor(1.1, requires_grad=True)
assert torch.autograd.grad(torch.sigmoid((x.detach() - _t) / 0.3).sum(), _t)[0] < 0
# sphinx_gallery_end_ignore

# %%
# What people get wrong
# ---------------------
# **The detach and the order.** Without ``detach``, the gradient is 0. Without the parentheses, the sum is rounded on the way,
# and ``.long()`` turns 0.9999999 into 0:

torch.manual_seed(0)
many = torch.randn(1000, 5, requires_grad=True)
hard, soft = one_hot(many), many.softmax(-1)

for name, choice in {
    "hard + (soft - soft.detach())": hard + (soft - soft.detach()),
    "(hard - soft).detach() + soft": (hard - soft).detach() + soft,
    "hard + soft - soft.detach()": hard + soft - soft.detach(),
    "hard + soft - soft": hard + soft - soft,
}.items():
    picked = (choice @ torch.arange(5.0)).sum()
    (gradient,) = torch.autograd.grad(picked, many, retain_graph=True)
    exact, learns = torch.equal(choice, hard.float()), bool(gradient.abs().max() > 1e-3)
    print(f"{name:<30} exactly one-hot: {exact!s:<6} gradient: {learns}")
    # sphinx_gallery_start_ignore
    assert exact == ("(" in name.replace("detach()", ""))
    assert learns == ("detach" in name)
    # sphinx_gallery_end_ignore

# sphinx_gallery_start_ignore
assert not (hard + soft.detach() - soft.detach()).requires_grad
_rounded = (hard + soft - soft.detach()).detach()
assert (_rounded - hard).abs().max() < 1e-6 and (_rounded.long().sum(-1) == 0).any()
for _type in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
    _soft = torch.randn(20_000, 7).to(_type).softmax(-1)
    _hard = one_hot(_soft).to(_type)
    assert torch.equal(_hard + (_soft - _soft), _hard)
    assert torch.equal(_hard - _soft + _soft, _hard)
    assert torch.equal(F.gumbel_softmax(_soft, hard=True).unique(), _hard.unique())
_x = torch.tensor([1e8, -1e9])
assert not ((_x.sign() - _x) + _x).any()
assert torch.equal(_x.sign() + (_x - _x), _x.sign())
# sphinx_gallery_end_ignore

# %%
# For a one-hot choice, the second way is as good as the first (asked in `pytorch#68941
# <https://github.com/pytorch/pytorch/issues/68941>`__), but ``(x.sign() - x) + x`` is 0 for ``x = 1e8``.
#
# **The soft argmax as a position.** The mean of the positions can lie where no peak is. Between two equal peaks, at 0 and 4, it
# is 2:

peaks = torch.tensor([5.0, 0.0, 0.0, 0.0, 5.0])
print(f"soft argmax: {peaks.softmax(0) @ torch.arange(5.0):.2f}")

# sphinx_gallery_start_ignore
for _tau in (0.1, 1.0, 10.0):
    assert abs((peaks / _tau).softmax(0) @ torch.arange(5.0) - 2) < 1e-4
# sphinx_gallery_end_ignore

# %%
# **The defaults of gumbel_softmax.** It draws at random in evaluation, too, so use the argmax there. In ``float16`` a row can
# become NaN (`pytorch#41663 <https://github.com/pytorch/pytorch/issues/41663>`__): pass ``scores.float()``. For scores of shape
# ``(N, C, H, W)``, pass ``dim=1``, because it picks along the last dimension. It expects logits: from
# probabilities it draws from a different distribution, ``softmax(probs)``:

probs = torch.tensor([0.7, 0.2, 0.1])
for name, argument in {"probs": probs, "probs.log()": probs.log()}.items():
    drawn = F.gumbel_softmax(argument.expand(100_000, 3), hard=True)
    print(f"{name:<11} draws {drawn.mean(0).numpy().round(2)}")

# sphinx_gallery_start_ignore
assert (drawn.mean(0) - probs).abs().max() < 0.01
_maps = torch.randn(2, 5, 4, 4)
assert (F.gumbel_softmax(_maps, hard=True, dim=1).sum(1) == 1).all()
assert (F.gumbel_softmax(_maps, hard=True).sum(-1) == 1).all()
_layer = torch.nn.Module().eval()
_layer.forward = lambda s: F.gumbel_softmax(s, hard=True)
assert not torch.equal(_layer(torch.zeros(1000, 3)), _layer(torch.zeros(1000, 3)))
_never = torch.tensor([0.7, 0.3, 0.0], requires_grad=True)
_sample = F.gumbel_softmax(_never.log(), hard=True)
(_slope,) = torch.autograd.grad(_sample @ torch.arange(3.0), _never)
assert _sample[2] == 0 and _sample.sum() == 1
assert _slope.isnan().tolist() == [False, False, True]
_wrong = F.gumbel_softmax(probs.expand(100_000, 3), hard=True).mean(0)
assert (_wrong - probs.softmax(0)).abs().max() < 0.01 and _wrong[0] < 0.5
# sphinx_gallery_end_ignore

# %%
# If a probability is 0, its gradient through ``probs.log()`` is NaN.

# %%
# Exercise
# --------
# A binary layer uses ``x.sign()``. Give it the gradient 1 where ``x`` lies between -1 and 1, and 0 outside, so that a large
# ``x`` is not pushed further.
#
# .. solution::
#
# Take ``hardtanh`` as the soft function, because it has this gradient, and its value cancels out. At 0, ``x.sign()`` is 0.
# For exactly two values, write ``torch.where(x < 0, -1.0, 1.0)``.

x = torch.tensor([-2.0, -0.5, 0.5, 2.0], requires_grad=True)
soft = F.hardtanh(x)
binary = x.sign() + (soft - soft.detach())
(gradient,) = torch.autograd.grad(binary.sum(), x)

print("value:   ", binary.tolist())
print("gradient:", gradient.tolist())

# sphinx_gallery_start_ignore
assert binary.tolist() == [-1, -1, 1, 1] and gradient.tolist() == [0, 1, 1, 0]
_zero = torch.zeros(1)
assert _zero.sign() == 0 and torch.where(_zero < 0, -1.0, 1.0) == 1
assert torch.equal(torch.where(x < 0, -1.0, 1.0), x.sign())
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_functions_change_the_gradient.py`, straight-through as a Function.
# - :ref:`sphx_glr_gallery_practice_policy_gradient.py`, which needs no soft version.
# - :ref:`sphx_glr_gallery_practice_mixture_of_experts.py`, where a router chooses with ``topk``.
# - :ref:`sphx_glr_gallery_differentiation_points_without_a_derivative.py`, kinks, ties in ``max`` and NaN.
# - :ref:`sphx_glr_gallery_errors_no_grad_fn.py`, the error of a loss without a graph.
# - In PyTorch's reference: `gumbel_softmax
#   <https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.gumbel_softmax.html>`__ and
#   `fake_quantize_per_tensor_affine
#   <https://docs.pytorch.org/docs/stable/generated/torch.fake_quantize_per_tensor_affine.html>`__.
