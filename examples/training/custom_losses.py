r"""
Custom loss functions: what keeps the graph
===========================================

.. index::
   single: write my own loss function
   single: custom loss as a function or as nn.Module
   single: the custom loss does not decrease
   single: accuracy or F1 as a loss
   single: Dice loss for segmentation
   single: test a loss function
   single: reduction mean, sum or none
   single: loss with NaN targets or a mask
   single: learn the weights of several losses

.. in-short::

   Your own loss is a function of tensors. Build it from differentiable operations, and autograd derives the backward:

   .. code-block:: python

      def loss_function(prediction, target):
          assert prediction.shape == target.shape
          return (prediction - target).abs().pow(1.5).mean()

   ``item()`` or ``torch.tensor([...])`` cuts a term off: the gradient leaves it out, and beside another term, ``backward()``
   raises no error. So test each term alone: ``torch.autograd.grad(term, prediction, retain_graph=True)`` raises an error if
   the term is cut off. For a penalty on weights, put the weights in place of ``prediction``. ``argmax``, accuracy and F1
   have jumps, so replace them by something smooth.
"""

# %%
# A loss is a function of tensors
# -------------------------------
# A bakery forecasts its sales. A forecast that is too high costs the square of the error, one that is too low four times that.
# Write it, and call ``backward()``:

import torch
import torch.nn.functional as F
from torch import nn


def bakery_loss(prediction, target, factor=4.0):
    assert prediction.shape == target.shape
    error = prediction - target
    weight = torch.where(error < 0, factor, 1.0)
    return (weight * error.square()).mean()


prediction = torch.tensor([7.0, 12.0], requires_grad=True)  # as from model(x)
target = torch.tensor([10.0, 10.0])
loss = bakery_loss(prediction, target)
loss.backward()
print("loss:", loss.item(), "  gradient:", prediction.grad)

# graph: loss -- Autograd recorded the formula, so you write no backward

# sphinx_gallery_start_ignore
assert loss == 20 and prediction.grad.tolist() == [-12, 2]


def _box(prediction, target):
    assert prediction.shape == target.shape
    return (prediction - target).abs().pow(1.5).mean()


_p = torch.tensor([0.7, 0.3, 1.2]).double().requires_grad_()
_t = torch.tensor([1.0, 0.0, 2.0]).double()
assert torch.autograd.gradcheck(lambda p: _box(p, _t), _p)
_zero = torch.zeros(2, requires_grad=True)
assert not torch.autograd.grad(_box(_zero, torch.zeros(2)), _zero)[0].any()
assert torch.autograd.gradcheck(lambda p: bakery_loss(p, _t), _p)
_weight = torch.where(prediction < target, 4.0, 1.0)
assert not _weight.requires_grad and _weight.tolist() == [4, 1]
# sphinx_gallery_end_ignore

# %%
# An ``nn.Module`` does the same, and can hold settings, :ref:`buffers or parameters
# <sphx_glr_gallery_modules_parameters_and_buffers.py>`:


class BakeryLoss(nn.Module):
    def __init__(self, factor=4.0):
        super().__init__()
        self.factor = factor

    def forward(self, prediction, target):
        return bakery_loss(prediction, target, self.factor)


# sphinx_gallery_start_ignore
_p = prediction.detach().requires_grad_()
BakeryLoss()(_p, target).backward()
assert torch.equal(_p.grad, prediction.grad)
assert BakeryLoss(1.0)(_p, target) == F.mse_loss(_p, target)
# sphinx_gallery_end_ignore

# %%
# A part that is cut off still changes the value
# ----------------------------------------------
# Of 20 inputs, only the first matters. An L1 penalty should push the weights of the others to 0. But with ``item()`` the
# penalty is only a number, so the optimizer never hears of it:

torch.manual_seed(0)
x = torch.randn(40, 20)
y = 3 * x[:, :1] + 2 * torch.randn(40, 1)


def train_with_penalty(cut):
    torch.manual_seed(0)
    model, losses = nn.Linear(20, 1), []
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(500):
        penalty = model.weight.abs().sum()
        if cut:
            penalty = penalty.item()
        loss = F.mse_loss(model(x), y) + penalty
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return model, losses


# %%
# .. how-measured:: This code draws the loss over the steps.

import matplotlib.pyplot as plt


def plot_losses(kept, cut):
    _, ax = plt.subplots(figsize=(7, 2.6), layout="constrained")
    ax.plot(cut, "--", color="#c2410c", label="penalty.item()")
    ax.plot(kept, color="#047857", label="penalty kept")
    ax.set(xlabel="step", ylabel="loss", ylim=(0, 19))
    ax.set_title("With a cut penalty, the loss falls at first, and then rises")
    ax.legend(loc="lower right")


# %%
# Both losses fall at first:

# figure: The loss over 500 steps, from 18. With the penalty kept it falls below 9 and stays there. With the cut penalty it
#   falls below 12 in the first 60 steps, and then rises slowly to 16.
kept, losses = train_with_penalty(cut=False)
unpenalized, losses_cut = train_with_penalty(cut=True)
plot_losses(losses, losses_cut)
for name, model in {"kept": kept, "cut": unpenalized}.items():
    small = (model.weight.abs() < 0.05).sum().item()
    print(f"penalty {name:<5} {small:>2} of 20 weights are almost 0")

# sphinx_gallery_start_ignore
assert round(losses[0]) == round(losses_cut[0]) == 18
assert 8 < losses[-1] < 9 and 11 < min(losses_cut) < 12
assert losses_cut.index(min(losses_cut)) < 70 and round(losses_cut[-1]) == 16
assert losses[-1] < min(losses) + 0.1 and losses[60] < losses[30] < losses[0]
assert [(m.weight.abs() < 0.05).sum().item() for m in (kept, unpenalized)] == [19, 1]
assert kept.weight[0, 0] > 2.5
for _scale in (1, 100):
    _w = torch.tensor(0.5, requires_grad=True)
    _loss = (_w - 4).square() + _scale * (3 * _w.square()).item()
    _loss.backward()
    assert _w.grad == -7 and _loss == 12.25 + 0.75 * _scale
_raised = []
_out = kept(x)
for _term in (kept.weight.abs().sum(), _out.abs().mean()):  # the test of the box
    for _by in (_out, kept.weight):
        try:
            torch.autograd.grad(_term, _by, retain_graph=True)
        except RuntimeError:
            _raised.append((_term, _by))
assert len(_raised) == 1 and _raised[0][1] is _out  # the penalty, by the prediction
(kept.weight.abs().sum() + _term).backward()  # retain_graph left the graph
kept.zero_grad()
# sphinx_gallery_end_ignore

# %%
# So a loss that falls at first proves nothing. A sign of a cut term: you change its weight, and training stays the same.
#
# **Between the prediction and the loss, a Python number or a new tensor cuts the gradient.**

# %%
# Which calls cut
# ---------------
# Each call below makes a part of a loss from a prediction ``x``.
#
# .. how-measured:: This code calls each expression with x = [0.5, 2.0], and takes the backward pass of the part alone, and of
#    x.square().sum() + part.

import math
import warnings

import pandas as pd

labels = torch.tensor([1.0, 3.0])
CALLS = {
    "x.numpy()": lambda x: x.numpy(),
    "x.mean().item()": lambda x: x.mean().item(),
    "float(x.mean())": lambda x: float(x.mean()),
    "math.sqrt(x[1])": lambda x: math.sqrt(x[1]),
    "torch.tensor([x[0], x[1]])": lambda x: torch.tensor([x[0], x[1]]),
    "torch.tensor(x)": lambda x: torch.tensor(x),
    "x.detach(), x.data": lambda x: x.detach(),
    "under torch.no_grad()": torch.no_grad()(lambda x: x.mean()),
    "x.argmax(), x.long()": lambda x: x.argmax(),
    "labels[x.argmax()]": lambda x: labels[x.argmax()],
    "(x > 1).float()": lambda x: (x > 1).float(),
    "x.detach().requires_grad_()": lambda x: x.detach().requires_grad_(),
    "x.round(), x.sign()": lambda x: x.round(),
    "x[x.argmax()]": lambda x: x[x.argmax()],
    "max(x[0], x[1])": lambda x: max(x[0], x[1]),
    "x[0] if x.mean() > 1 else x[1]": lambda x: x[0] if x.mean() > 1 else x[1],
    "torch.stack([x[0], x[1]])": lambda x: torch.stack([x[0], x[1]]),
}


def one_number(part):
    return part.sum() if isinstance(part, torch.Tensor) else part


def try_call(call):
    x, y = (torch.tensor([0.5, 2.0], requires_grad=True) for _ in range(2))
    row = {"gradient": "-", "part.backward()": "no message"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            part = one_number(call(x))
        except RuntimeError:
            return row | {"part.backward()": "the call raises"}
        try:
            part.backward()
        except (AttributeError, RuntimeError) as error:
            row["part.backward()"] = type(error).__name__
        (y.square().sum() + one_number(call(y))).backward()
    if x.grad is not None:
        added = (y.grad - 2 * y.detach()).tolist()
        row["gradient"] = ", ".join(f"{g:.0f}" for g in added)
    return row


def tabulate_calls():
    return pd.DataFrame({name: try_call(call) for name, call in CALLS.items()}).T


# %%
# *gradient* is what the part adds to the gradient of a loss. A dash means that it is cut off:

# sphinx_gallery_start_ignore
_table = tabulate_calls()
_what, _gradient = _table["part.backward()"].tolist(), _table["gradient"].tolist()
assert _what == (
    ["the call raises"]
    + ["AttributeError"] * 3
    + ["RuntimeError"] * 7
    + ["no message"] * 6
)
assert _gradient == ["-"] * 12 + ["0, 0", "0, 1", "0, 1", "1, 0", "1, 1"]
_warns = []
torch.set_warn_always(True)
for _name in _table.index[1:]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        CALLS[_name](torch.ones(2, requires_grad=True))
    _warns += [_name] if caught else []
torch.set_warn_always(False)
assert _warns == [
    "float(x.mean())",
    "math.sqrt(x[1])",
    "torch.tensor([x[0], x[1]])",
    "torch.tensor(x)",
]
for _name in _warns:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for _ in range(3):
            CALLS[_name](torch.ones(2, requires_grad=True))
    assert len(caught) <= 1
_said = {}
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    for _name, _call in list(CALLS.items())[:12]:
        _x = torch.tensor([0.5, 2.0], requires_grad=True)
        try:
            one_number(_call(_x)).backward()
        except (AttributeError, RuntimeError) as error:
            _said[_name] = str(error)
        if _name != "x.numpy()":
            (_x.square().sum() + one_number(_call(_x))).backward()
            assert torch.equal(_x.grad, 2 * _x)
for _name, _call in CALLS.items():  # the test of the box
    _x, _error = torch.tensor([0.5, 2.0], requires_grad=True), None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            _part = torch.autograd.grad(one_number(_call(_x)), _x)[0]
        except (RuntimeError, TypeError) as error:
            _error = error
    assert (_error is not None) == (_table.loc[_name, "gradient"] == "-")
assert not torch.autograd.grad(one_number(CALLS["x.round(), x.sign()"](_x)), _x)[
    0
].any()
_said = list(_said.values())
assert "Can't call numpy() on Tensor that requires grad" in _said[0]
assert _said[1:4] == ["'float' object has no attribute 'backward'"] * 3
assert len(_said) == 11 and len(set(_said[4:])) == 1
assert _said[4].startswith("element 0 of tensors does not require grad and does not")
for _call in (torch.Tensor.long, lambda x: x.data):
    assert try_call(_call)["part.backward()"] == "RuntimeError"
_rounded = _table.loc["x.round(), x.sign()"].to_dict()
assert try_call(torch.sign) == _rounded
_new_leaf = try_call(lambda x: torch.tensor(x.tolist(), requires_grad=True))
assert _new_leaf == _table.loc["x.detach().requires_grad_()"].to_dict()
# sphinx_gallery_end_ignore
tabulate_calls()

# %%
# - **AttributeError**: the part is a Python ``float``. **RuntimeError**: it is a tensor without a graph, and the message is
#   :ref:`element 0 of tensors does not require grad <sphx_glr_gallery_errors_no_grad_fn.py>`.
# - **Beside another term**, only ``x.numpy()`` raises. ``float``, ``math.sqrt`` and ``torch.tensor`` warn, but only once.
# - **No message, even alone**: ``requires_grad_()`` and ``torch.tensor(..., requires_grad=True)`` start a new graph.
#   ``round`` and ``sign`` have :ref:`the slope 0 <sphx_glr_gallery_practice_argmax_round_and_sampling.py>`.
# - **The last four keep the gradient**: ``x[i]``, ``max`` and ``if`` pass it to the value that they picked.

# %%
# Test your own loss
# ------------------
# This function has five tests. :ref:`gradcheck <sphx_glr_gallery_functions_gradcheck.py>` compares the gradient with
# differences of the value, so it sees a cut part. The default tolerance would overlook a small penalty:


def examine(loss_function):
    target = torch.tensor([1.0, 0.0, 2.0], dtype=torch.float64)
    p = torch.tensor([0.7, 0.3, 1.2], dtype=torch.float64, requires_grad=True)

    def f(q):
        return torch.as_tensor(loss_function(q, target), dtype=torch.float64)

    loss, gradient = f(p), torch.zeros_like(p)
    if loss.requires_grad:
        (gradient,) = torch.autograd.grad(loss, p, materialize_grads=True)
    step = 0.01 * F.normalize(gradient, dim=0)
    return {
        "requires_grad": loss.requires_grad,
        "gradient not 0": bool(gradient.any()),
        "a step lowers it": bool(f(p - step) < loss),
        "gradcheck": torch.autograd.gradcheck(
            f, p, atol=1e-7, rtol=1e-6, raise_exception=False
        ),
        "0 if perfect": bool(loss_function(target, target) == 0),
    }


# %%
# All but the first of these losses are wrong, and no single test finds all of them:

LOSSES = {
    "bakery_loss": bakery_loss,
    "1 - accuracy": lambda p, t: 1 - (p.round() == t).double().mean(),
    "p.round()": lambda p, t: (p.round() - t).square().mean(),
    "+ worst.item()": lambda p, t: bakery_loss(p, t) + (p - t).abs().max().item(),
    "+ L2.item()": lambda p, t: bakery_loss(p, t) + 1e-4 * (p - t).norm().item(),
    "(N, 1) - (N,)": lambda p, t: (p[:, None] - t).square().mean(),
}
for name, loss_function in LOSSES.items():
    results = examine(loss_function)
    failed = [test for test, passed in results.items() if not passed]
    print(f"{name:<16} fails: {', '.join(failed) or 'nothing'}")

# sphinx_gallery_start_ignore
assert [list(examine(_loss).values()) for _loss in LOSSES.values()] == [
    [True, True, True, True, True],
    [False, False, False, True, True],
    [True, False, False, True, True],
    [True, True, True, False, True],
    [True, True, True, False, True],
    [True, True, True, True, False],
]
_p = torch.tensor([0.7, 0.3, 1.2], dtype=torch.float64, requires_grad=True)
assert torch.autograd.gradcheck(  # with the default tolerance
    lambda q: q.square().mean() + 1e-4 * q.square().sum().item(), _p
)


def _jump(p, t):
    return (p.argmax() != t.argmax()).double()


assert all(examine(lambda p, t: bakery_loss(p, t) + _jump(p, t)).values())
for _scale in (1e-3, 10, 1e3, 1e5):  # a loss in percent, or a sum
    assert all(examine(lambda p, t, s=_scale: s * bakery_loss(p, t)).values())
    assert all(examine(lambda p, t, s=_scale: s * _box(p, t)).values())
assert not examine(_jump)["requires_grad"]
assert not examine(lambda p, t: (p - t).abs().max().item())["requires_grad"]
# sphinx_gallery_end_ignore

# %%
# An ``argmax`` beside ``bakery_loss`` passes all five tests, but alone it fails the first.

# %%
# mean, sum or none
# -----------------
# With ``sum``, the gradient grows with the batch. All samples below are equal:

w = torch.tensor(0.0, requires_grad=True)
for size in (8, 64):
    losses = (w * torch.ones(size) - 2).square()
    (mean,) = torch.autograd.grad(losses.mean(), w, retain_graph=True)
    (total,) = torch.autograd.grad(losses.sum(), w)
    print(f"{size:>2} samples: mean {mean.item():.0f}, sum {total.item():.0f}")

# sphinx_gallery_start_ignore
for _size in (1, 8, 64):
    for _reduce, _right in ((torch.mean, -4), (torch.sum, -4 * _size)):
        _losses = (w * torch.ones(_size) - 2).square()
        assert torch.autograd.grad(_reduce(_losses), w)[0] == _right
_x = torch.tensor([1.0, 2.0, 5.0])
_mean, _sum = (
    torch.autograd.grad(f((w * _x - 2).square()), w)[0] for f in (torch.mean, torch.sum)
)
assert torch.allclose(_sum, 3 * _mean)
_weights, _losses = torch.tensor([1.0, 3.0]), torch.tensor([2.0, 4.0])
assert (_weights * _losses).sum() / _weights.sum() == 3.5
assert (_weights * _losses).mean() == 7
assert torch.allclose(
    (_weights * _losses[:, None]).sum() / _weights.sum(), _losses.sum()
)
_scores = torch.randn(5, 2)
assert F.mse_loss(_scores, _scores, reduction="none").shape == (5, 2)
# sphinx_gallery_end_ignore

# %%
# So with the sum, plain SGD needs a learning rate divided by the number of losses. ``reduction="none"`` returns a number for
# each element, and ``backward()`` :ref:`asks for a scalar <sphx_glr_gallery_errors_not_a_scalar.py>`. For a weighted mean,
# write ``(weights * losses).sum() / weights.sum()``, with weights of the *shape* of the losses: ``(N,)`` and ``(N, 1)``
# silently give the plain sum.

# %%
# A metric with jumps: soft F1
# ----------------------------
# F1 (for masks, the Dice score) counts hits, so it has no graph. Put probabilities in place of the hard decisions. Without the
# ``+ 1``, a batch without positives has the gradient 0. About 7 % of these samples are positive:


def f1(logits, target):
    hard = (logits > 0).float()
    return 2 * (hard * target).sum() / (hard.sum() + target.sum())


def soft_f1_loss(logits, target):
    assert logits.shape == target.shape
    p = logits.sigmoid()
    return 1 - (2 * (p * target).sum() + 1) / (p.sum() + target.sum() + 1)


torch.manual_seed(0)
x = torch.randn(2000, 2)
rare = (x.sum(1) + 0.8 * torch.randn(2000) > 2.2).float()
for loss_function in (F.binary_cross_entropy_with_logits, soft_f1_loss):
    model = nn.Linear(2, 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    for _ in range(200):
        loss = loss_function(model(x[:1000]).squeeze(1), rare[:1000])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    score = f1(model(x[1000:]).squeeze(1), rare[1000:])
    print(f"F1 on new samples: {score.item():.2f}  {loss_function.__name__}")

# sphinx_gallery_start_ignore
assert 0.07 < rare.mean() < 0.08 and loss_function is soft_f1_loss
_scores, _lowered = [], []
for _loss in (F.binary_cross_entropy_with_logits, soft_f1_loss):
    for _seed in range(2):
        torch.manual_seed(_seed)
        _model = nn.Linear(2, 1)
        _optimizer = torch.optim.Adam(_model.parameters(), lr=0.1)
        for _ in range(200):
            _optimizer.zero_grad()
            _loss(_model(x[:1000]).squeeze(1), rare[:1000]).backward()
            _optimizer.step()
        _scores.append(f1(_model(x[1000:]).squeeze(1), rare[1000:]).item())
        _out = _model(x).squeeze(1).detach()
        _best = max(
            torch.linspace(-3, 3, 121).tolist(),
            key=lambda cut, out=_out[:1000]: f1(out - cut, rare[:1000]).item(),
        )
        _lowered.append((_best, f1(_out[1000:] - _best, rare[1000:]).item()))
assert min(_scores[2:]) > max(_scores[:2]) + 0.03
assert abs(score - min(_scores[2:])) < 0.03
for _best, _reached in _lowered[:2]:
    assert _best < 0 and _reached > max(_scores[:2]) + 0.03
    assert abs(_reached - score) < 0.03
_logits = torch.zeros(4, requires_grad=True)
assert not f1(_logits, torch.ones(4)).requires_grad
_p, _none = _logits.sigmoid(), torch.zeros(4)
_plain = 1 - 2 * (_p * _none).sum() / (_p.sum() + _none.sum())
assert not torch.autograd.grad(_plain, _logits)[0].any()
assert (torch.autograd.grad(soft_f1_loss(_logits, _none), _logits)[0] > 0).all()
_hard = torch.tensor([9.0, -9.0, 9.0, -9.0]) * 9
_truth = torch.tensor([1.0, 0.0, 0.0, 1.0])
assert f1(_hard, _truth) == 0.5 and abs(soft_f1_loss(_hard, _truth) - 0.4) < 1e-6
_many = torch.cat([_hard, torch.ones(2)]), torch.cat([_truth, torch.full((2,), 255.0)])
_known = _many[1] != 255
assert soft_f1_loss(*_many) < 0 and _known.sum() == 4
_kept = soft_f1_loss(_many[0][_known].float(), _many[1][_known])
assert _kept == soft_f1_loss(_hard, _truth)
assert torch.zeros(600_000).half().sigmoid().sum().isinf()
_parts = []
for _size in (1000, 10):
    _out = torch.linspace(-3, 3, 1000).sin().requires_grad_()
    for _l, _t in zip(_out.split(_size), rare[:1000].split(_size), strict=True):
        (soft_f1_loss(_l, _t) * _size / 1000).backward(retain_graph=True)
    _parts.append(_out.grad / _out.grad.norm())
assert (_parts[0] - _parts[1]).norm() > 0.1  # not the same direction
_p64 = torch.randn(6).double().requires_grad_()
assert torch.autograd.gradcheck(
    lambda q: soft_f1_loss(q, torch.tensor([1.0, 0, 0, 1, 0, 1])), _p64
)
# sphinx_gallery_end_ignore

# %%
# An ignored label, such as 255, counts as a target, and sums of ``float16`` can overflow. So call
# ``soft_f1_loss(logits[known].float(), target[known])``, with ``known = target != 255``. F1 is not a mean over samples, so
# accumulating small batches gives a different gradient.
#
# First try a threshold below 0: chosen on the first 1,000 samples, it gives cross-entropy about the same F1.

# %%
# What people get wrong
# ---------------------
# **The shapes differ.** A model returns ``(N, 1)``, and the target is ``(N,)``. Their difference is ``(N, N)``: each
# prediction minus each target. So this loss is not 0, although the predictions are perfect:

target = torch.tensor([1.0, 2.0, 3.0])
column = target[:, None]  # a perfect prediction, from nn.Linear(..., 1)

print("your own:", (column - target).square().mean())
print("squeezed:", (column.squeeze(1) - target).square().mean())

# sphinx_gallery_start_ignore
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    F.mse_loss(column, target)
assert str(caught[0].message).startswith("Using a target size (torch.Size([3]))")
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    _wrong = (column - target).square().mean()
assert not caught and abs(_wrong - 4 / 3) < 1e-6
assert (column - target).shape == (3, 3)
assert (column.squeeze(1) - target).square().mean() == 0
_raised = []
try:
    _box(column, target)
except AssertionError as error:
    _raised.append(error)
assert len(_raised) == 1
# sphinx_gallery_end_ignore

# %%
# ``F.mse_loss`` warns, and :ref:`some losses raise <sphx_glr_gallery_errors_target_size_differs.py>`. Begin your own with the
# ``assert`` of the box.
#
# **clamp against log(0).** Where it clamps, the gradient is 0, so a very wrong prediction learns nothing. Use a :ref:`function
# with the logarithm in it <sphx_glr_gallery_debugging_softmax_and_neighbors.py>`, such as ``F.logsigmoid`` or
# ``F.cross_entropy``:

logit = torch.tensor(-20.0, requires_grad=True)  # and the label is 1
for name, loss in {
    "clamp": -logit.sigmoid().clamp(min=1e-7).log(),
    "logsigmoid": -F.logsigmoid(logit),
}.items():
    (gradient,) = torch.autograd.grad(loss, logit)
    print(f"{name:<11} loss {loss.item():.1f}  gradient {gradient.item():.1f}")

    # sphinx_gallery_start_ignore
    assert gradient == {"clamp": 0, "logsigmoid": -1}[name]
    assert abs(loss.item() - {"clamp": 16.1, "logsigmoid": 20}[name]) < 0.05
_scores = torch.tensor([[0.0, 200.0]], requires_grad=True)
_loss = F.cross_entropy(_scores, torch.tensor([0]))
assert torch.autograd.grad(_loss, _scores)[0].tolist() == [[-1, 1]]
# sphinx_gallery_end_ignore

# %%
# **A mask after the computation.** A missing target is NaN. If you square first and select then, the loss is finite, but the
# gradient is NaN (`pytorch#121416 <https://github.com/pytorch/pytorch/issues/121416>`__). Select first:

prediction = torch.tensor([1.0, 2.0], requires_grad=True)
target = torch.tensor([0.0, torch.nan])
known = ~target.isnan()

after = (prediction - target).square()[known].mean()
before = (prediction[known] - target[known]).square().mean()
for name, loss in {"mask after": after, "mask before": before}.items():
    (gradient,) = torch.autograd.grad(loss, prediction)
    print(f"{name:<12} loss {loss.item()}", gradient)

# sphinx_gallery_start_ignore
assert before == after == 1
_after = (prediction - target).square()[known].mean()
assert torch.autograd.grad(_after, prediction)[0].isnan().tolist() == [False, True]
_before = (prediction[known] - target[known]).square().mean()
assert torch.autograd.grad(_before, prediction)[0].tolist() == [2, 0]
_filled = torch.where(known, target, 0.0)
_loss = ((prediction - _filled).square() * known).sum() / known.sum().clamp(min=1)
assert _loss == 1
assert torch.autograd.grad(_loss, prediction)[0].tolist() == [2, 0]
for _name, _finite in {
    "mse_loss": False,
    "smooth_l1_loss": False,
    "huber_loss": False,
    "binary_cross_entropy_with_logits": False,
    "l1_loss": True,
}.items():
    _loss = getattr(F, _name)(prediction, target, reduction="none")[known].mean()
    assert _loss.isfinite()
    assert torch.autograd.grad(_loss, prediction)[0].isfinite().all() == _finite
_abs = (prediction - target).abs()[known].mean()
assert torch.autograd.grad(_abs, prediction)[0].tolist() == [1, 0]
_none = torch.zeros(2, dtype=torch.bool)
assert prediction[_none].mean().isnan()
assert prediction[_none].sum() / _none.sum().clamp(min=1) == 0
# sphinx_gallery_end_ignore

# %%
# If a batch can have no known target, replace ``.mean()`` by ``.sum() / known.sum().clamp(min=1)``: the mean of nothing is NaN.
#
# **Parameters of the loss are missing from the optimizer.** This loss learns the weights of two losses, but
# ``model.parameters()`` does not contain ``log_var``:


class LearnedWeights(nn.Module):
    def __init__(self):
        super().__init__()
        self.log_var = nn.Parameter(torch.zeros(2))

    def forward(self, losses):
        return (losses * (-self.log_var).exp() + self.log_var).sum()


def train(with_loss):
    model, criterion = nn.Linear(1, 2), LearnedWeights()
    added = list(criterion.parameters()) if with_loss else []
    optimizer = torch.optim.SGD([*model.parameters(), *added], lr=0.05)
    for _ in range(500):
        difference = model(x) - noisy
        losses = difference.square().mean(0)  # or torch.stack the losses
        optimizer.zero_grad()
        criterion(losses).backward()
        optimizer.step()
    return criterion.log_var.exp().detach(), losses.detach()


torch.manual_seed(0)
x = torch.randn(200, 1)
noisy = x + torch.randn(200, 2) * torch.tensor([0.5, 2.0])
for with_loss in (False, True):
    variance, losses = train(with_loss)
    # sphinx_gallery_start_ignore
    assert with_loss or variance.tolist() == [1, 1]
    # sphinx_gallery_end_ignore
    rounded = variance.numpy().round(2)
    print(f"in the optimizer: {with_loss!s:<6} variance {rounded}")

# sphinx_gallery_start_ignore
assert torch.allclose(variance, losses, rtol=0.02)
_fit = torch.linalg.lstsq(torch.cat([x, torch.ones_like(x)], 1), noisy)
_rest = (torch.cat([x, torch.ones_like(x)], 1) @ _fit.solution - noisy).square()
assert torch.allclose(variance, _rest.mean(0), rtol=0.02)
assert abs(variance[0] - 0.25) < 0.05 and abs(variance[1] - 4) < 0.5
for _start in (-3.0, 0.0, 3.0):  # without + log_var
    _log_var = torch.full((2,), _start, requires_grad=True)
    _drop = (torch.tensor([3.0, 5.0]) * (-_log_var).exp()).sum()
    assert (torch.autograd.grad(_drop, _log_var)[0] < 0).all()
    _criterion = LearnedWeights()
    with torch.no_grad():
        _criterion.log_var += _start
    _criterion(torch.tensor([0.0, -5.0])).backward()
    assert (_criterion.log_var.grad >= 1).all()  # each step lowers it, without end
# sphinx_gallery_end_ignore

# %%
# With ``[*model.parameters(), *criterion.parameters()]``, each variance becomes the squared error of its task. Keep ``+
# self.log_var``, or the weights shrink to 0. If a loss comes near 0, its weight grows without end.
#
# After the first ``backward()``, list the parameters without a gradient. This finds a layer whose only term is cut:

model, criterion = nn.Linear(1, 2), LearnedWeights()
criterion((model(x) - noisy).square().mean(0)).backward()
named = [*model.named_parameters(), *criterion.named_parameters()]
missing = [name for name, p in named if p.requires_grad and p.grad is None]
print("without a gradient:", missing)

# sphinx_gallery_start_ignore
assert missing == [] and len(named) == 3
_model = nn.ModuleList(nn.Linear(1, 1) for _ in range(3))
_model[2].requires_grad_(False)
_first, _second, _frozen = (layer(x) for layer in _model)
(_first.square().mean() + _second.square().mean().item() + _frozen.mean()).backward()
assert [
    name for name, p in _model.named_parameters() if p.requires_grad and p.grad is None
] == ["1.weight", "1.bias"]
# sphinx_gallery_end_ignore

# %%
# Exercise
# --------
# This hinge loss is for labels -1 and 1. Which call cuts it, and what does ``backward()`` say? Write it without the loop.
#
# .. code-block:: python
#
#    def hinge(prediction, label):
#        losses = [max(0, 1 - p * y) for p, y in zip(prediction, label)]
#        return torch.tensor(losses).mean()
#
# .. solution::
#
# ``torch.tensor``. ``max`` keeps the graph of the tensor that it picks. ``backward()`` raises *element 0 of tensors does not
# require grad*.


def hinge(prediction, label):
    assert prediction.shape == label.shape
    return (1 - prediction * label).clamp(min=0).mean()


prediction = torch.tensor([-2.0, 0.5, -0.5, 3.0], requires_grad=True)
label = torch.tensor([-1.0, 1.0, 1.0, -1.0])
hinge(prediction, label).backward()
print("gradient:", prediction.grad)

# predict: prediction.grad.tolist() -- The predictions are -2, 0.5, -0.5 and 3, and the
#   labels -1, 1, 1 and -1. Which gradient should a correct loss give?

# sphinx_gallery_start_ignore
assert prediction.grad.tolist() == [0, -0.25, -0.25, 0.25]
_losses = [max(0, 1 - p * y) for p, y in zip(prediction, label, strict=True)]
assert all(part.requires_grad for part in _losses[1:])
_raised = []
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    try:
        torch.tensor(_losses).mean().backward()
    except RuntimeError as error:
        _raised.append(str(error))
assert len(_raised) == 1
assert _raised[0].startswith("element 0 of tensors does not require grad")
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_practice_gradient_of_each_loss.py`: how much each term of a loss contributes.
# - :ref:`sphx_glr_gallery_tensors_detach_clone_data.py`: if you want a cut.
# - :ref:`sphx_glr_gallery_functions_exp_function.py`: your own ``backward``.
# - In PyTorch's reference: `loss functions <https://docs.pytorch.org/docs/stable/nn.html#loss-functions>`__ and `gradcheck
#   <https://docs.pytorch.org/docs/stable/generated/torch.autograd.gradcheck.gradcheck.html>`__.
