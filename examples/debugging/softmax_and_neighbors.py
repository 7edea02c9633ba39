r"""
NaN gradients: log(softmax(x)), a fully masked row, acos
========================================================

.. index::
   single: log_softmax or softmax and log
   single: masked softmax: all entries are -inf
   single: NaN from an attention mask or key_padding_mask
   single: MultiheadAttention returns NaN, need_weights
   single: TransformerEncoderLayer is NaN in eval mode
   single: nll_loss is negative
   single: nll_loss or cross_entropy
   single: acos of a cosine similarity gives NaN
   single: LayerNorm of a constant row

.. in-short::

   The log of a softmax has a NaN gradient where a probability is tiny. The softmax of a fully masked row (all scores are
   ``-inf``) is NaN, and it is too late to leave that row out of the loss. Call the function that does the whole step:

   .. code-block:: python

      loss = F.cross_entropy(scores, labels)  # not softmax, log, nll_loss
      out = F.scaled_dot_product_attention(q, k, v, attn_mask=keep)  # True: look here

   If a score is NaN or ``inf`` already, look for its cause instead.
"""

# %%
# The loss is right, and the gradient is NaN
# ------------------------------------------
# A classifier is sure of a wrong class: for one sample its scores are 95 and 0, and the second class is right. With softmax and
# log, the loss is right, but its gradient has a NaN, so one ``optimizer.step()`` ruins the model:

import pandas as pd
import torch
import torch.nn.functional as F
from torch import nn

scores, label = torch.tensor([[95.0, 0.0]], requires_grad=True), torch.tensor([1])
by_hand = F.nll_loss(scores.softmax(1).log(), label)
made_for_it = F.cross_entropy(scores, label)

for loss in (by_hand, made_for_it):
    (gradient,) = torch.autograd.grad(loss, scores)
    print(f"loss {loss.item():.2f}, gradient {gradient.tolist()}")

# sphinx_gallery_start_ignore
assert abs(by_hand.item() - 95) < 0.01 and abs(made_for_it.item() - 95) < 0.01
assert gradient.tolist() == [[1, -1]]
(_gradient,) = torch.autograd.grad(F.nll_loss(scores.softmax(1).log(), label), scores)
assert _gradient[0, 0].isinf() and _gradient[0, 1].isnan()
assert (0 * torch.tensor([torch.nan, torch.inf])).isnan().all()
for _start in (torch.nan, torch.inf):  # what was NaN or infinite before
    _bad = torch.tensor([[_start, 0.0]])
    assert F.cross_entropy(_bad, label).isnan()
    _row = torch.tensor([[_start, 0.0]]).expand(1, 2, 2)
    assert F.scaled_dot_product_attention(_row, _row, _row).isnan().any()
# sphinx_gallery_end_ignore

# %%
# .. how-measured:: This code computes the loss and its gradient for scores that are 0 to 120 apart, and draws both.

import matplotlib.pyplot as plt


def over(gaps, function):
    x = torch.stack([gaps, torch.zeros_like(gaps)], 1).requires_grad_()
    losses = -function(x)[:, 1]
    return losses.detach(), torch.autograd.grad(losses.sum(), x)[0][:, 1]


def plot_losses_and_gradients(gaps):
    _, axes = plt.subplots(1, 2, figsize=(7, 2.8), layout="constrained")
    for name, (function, color, style) in versions.items():
        for ax, y in zip(axes, over(gaps, function), strict=True):
            ax.plot(gaps, y, style, color=color, label=name)
            last = y.isfinite().nonzero()[-1]
            if last < len(gaps) - 1:
                ax.plot(gaps[last], y[last], "X", color=color, markersize=9)
    axes[0].text(109, 96, "then inf", color="#c2410c", va="top", ha="center")
    axes[1].text(88, -0.95, "then NaN", color="#c2410c", ha="center")
    axes[0].set(title="Loss", xlabel="distance of the scores")
    axes[1].set(title="Gradient", xlabel="distance of the scores")
    axes[1].legend(loc="center right")


# %%
# Two classes, with scores that are 0 to 120 apart. Right: the gradient for the score of the label, which should approach -1:

versions = {
    "softmax, + 1e-8, log": (lambda x: (x.softmax(1) + 1e-8).log(), "#7c3aed", "-"),
    "softmax, log": (lambda x: x.softmax(1).log(), "#c2410c", "-"),
    "log_softmax": (lambda x: x.log_softmax(1), "#2563eb", "--"),
}

# figure: Two panels over the distance of the scores, from 0 to 120. Left, the loss: log_softmax is a straight line. Softmax
#   and log follow it up to 103, then inf. With 1e-8 added, the loss stops growing at 18. Right, the gradient: log_softmax
#   stays at -1. Softmax and log follow it up to 88, then NaN. With 1e-8 added, the gradient is back at 0 from about 25.
plot_losses_and_gradients(torch.linspace(0, 120, 481))

# sphinx_gallery_start_ignore
_gaps = torch.arange(121.0)
_losses, _slopes = {}, {}
for _name, (_function, _, _) in versions.items():
    _losses[_name], _slopes[_name] = over(_gaps, _function)
_best = _slopes["log_softmax"]
assert (_best[10:] + 1).abs().max() < 1e-4 and _best[0] == -0.5
assert (_losses["log_softmax"][10:] - _gaps[10:]).abs().max() < 1e-4
_hand = _slopes["softmax, log"]
assert (_hand - _best)[:89].abs().max() < 1e-5 and _hand[89:].isnan().all()
assert (_losses["softmax, log"] - _gaps)[10:101].abs().max() < 0.05
assert _losses["softmax, log"][:104].isfinite().all()
assert _losses["softmax, log"][104:].isinf().all()
_eps = _slopes["softmax, + 1e-8, log"]
assert _eps[25:].abs().max() < 0.01 and _eps[5] < -0.99 and not _eps[104:].any()
assert abs(_eps[20] + 0.17) < 0.005 and _eps[50].abs() < 1e-13
assert (_losses["softmax, + 1e-8, log"][30:] - 18.4).abs().max() < 0.05
_, _slope = over(torch.tensor([11.0, 11.1]).half(), lambda x: x.softmax(1).log())
assert _slope[0].isfinite() and _slope[1].isnan()
for _type, _first in (
    (torch.float16, 12),
    (torch.bfloat16, 89),
    (torch.float32, 89),
    (torch.float64, 710),
):
    _gaps = torch.arange(800.0, dtype=_type)
    _loss, _slope = over(_gaps, lambda x: x.softmax(1).log())
    assert _slope[:_first].isfinite().all() and _slope[_first:].isnan().all()
    assert torch.allclose(_loss[_first], _gaps[_first], rtol=0.01)
    for _safe in (lambda x: x.log_softmax(1), lambda x: x - x.logsumexp(1)[:, None]):
        _loss, _slope = over(_gaps, _safe)
        assert _loss.isfinite().all() and (_slope[9:] + 1).abs().max() < 0.01
for _many in (3, 64, 1000):  # more classes
    _wide = torch.zeros(1, _many).index_fill(1, torch.tensor([0]), 95).requires_grad_()
    for _function, _bad in ((torch.softmax, True), (torch.log_softmax, False)):
        _out = _function(_wide, 1)
        _loss = -(_out.log() if _bad else _out)[0, 1]
        assert _loss.isfinite()
        assert torch.autograd.grad(_loss, _wide)[0].isnan().any() == _bad
_huge = torch.full((1, 2), 1e8)  # the formula on paper, and its rounding
assert (_huge.log_softmax(1) + 0.693).abs().max() < 1e-3
assert not (_huge - _huge.logsumexp(1, keepdim=True)).any()
_half = torch.tensor([20.0], dtype=torch.float16)
assert over(_half, versions["softmax, + 1e-8, log"][0])[1].isnan().all()
_exps = torch.tensor([[95.0, 0.0]])
assert _exps.exp().sum().log().isinf() and abs(_exps.logsumexp(1).item() - 95) < 1e-4
# sphinx_gallery_end_ignore

# %%
# The probability :math:`p` of the label is about :math:`e^{-95}`. The slope of its log is :math:`1/p`, which is too large for
# ``float32`` from a distance of 89 on, and for ``float16`` above 11. So it becomes infinite, and the backward of softmax
# turns it into NaN. ``log_softmax`` computes neither ``p`` nor ``1/p``: on paper it is ``x - x.logsumexp(1, keepdim=True)``.
#
# **A factor of 0 does not remove NaN or inf from backward, because 0 * nan and 0 * inf are NaN. So do not let them arise.**
#
# With ``1e-8`` added, all is finite in ``float32``, but the samples that are most wrong silently get a gradient near 0. In
# ``float16``, ``1e-8`` is 0.

# %%
# A fully masked row: which gradients are NaN
# -------------------------------------------
# A batch is padded on the left, and a causal mask hides what comes later. So the first two rows of this attention may look at
# nothing. We call such rows *dead* (more masks that make them: `pytorch#41508
# <https://github.com/pytorch/pytorch/issues/41508>`__). The loss leaves them out:

torch.manual_seed(0)
x = torch.randn(4, 8)  # four words, of which two are padding
padding = torch.tensor([True, True, False, False])
keep = torch.ones(4, 4).tril().bool() & ~padding  # True: look here
mask = torch.zeros(4, 4).masked_fill(~keep, -torch.inf)

q, k, v = (nn.Linear(8, 8) for _ in range(3))
weights = (q(x) @ k(x).T / 8**0.5 + mask).softmax(-1)
out = weights @ v(x)
loss = out[~padding].square().mean()
loss.backward()

print(keep.int())
print("dead row:", weights[0].tolist(), f"  loss: {loss.item():.3f}")
print("NaN in W_q.grad:", q.weight.grad.isnan().any().item())
print("NaN in W_v.grad:", v.weight.grad.isnan().any().item())

# sphinx_gallery_start_ignore
assert weights[:2].isnan().all() and loss.isfinite()
assert all(layer.weight.grad.isnan().all() for layer in (q, k, v))
for _select in (
    lambda out: torch.where(padding[:, None], 0.0, out),
    lambda out: out.masked_fill(padding[:, None], 0.0),
    lambda out: out.nan_to_num(),
    lambda out: out[torch.tensor([2, 3])],
):
    _out = (q(x) @ k(x).T / 8**0.5 + mask).softmax(-1) @ v(x)
    _loss = _select(_out).square().sum()
    assert torch.allclose(_loss, 16 * loss)
    for _slope in torch.autograd.grad(_loss, [q.weight, v.weight]):
        assert _slope.isnan().all()
_out = (q(x[2:]) @ k(x).T / 8**0.5 + mask[2:]).softmax(-1) @ v(x)  # left out before
assert torch.allclose(_out.square().mean(), loss)
for _slope in torch.autograd.grad(_out.square().mean(), [q.weight, v.weight]):
    assert _slope.isfinite().all()
# sphinx_gallery_end_ignore

# %%
# The loss is fine. But backward starts with a gradient of 0 for each dead row, and multiplies it by the row's NaN weights. All
# rows share ``W_q``, ``W_k`` and ``W_v``, so these get NaN. ``torch.where`` or ``nan_to_num`` on ``out`` is too late. Six ways
# by hand:

dead = ~keep.any(-1, keepdim=True)


def lowest(s):
    return torch.finfo(s.dtype).min


ways = {
    "s + mask": lambda s: (s + mask).softmax(-1),
    "s + mask, nan_to_num": lambda s: (s + mask).softmax(-1).nan_to_num(),
    "masked_fill(-inf)": lambda s: s.masked_fill(~keep, -torch.inf).softmax(-1),
    "masked_fill(-inf), nan_to_num": lambda s: (
        s.masked_fill(~keep, -torch.inf).softmax(-1).nan_to_num()
    ),
    "masked_fill(lowest)": lambda s: s.masked_fill(~keep, lowest(s)).softmax(-1),
    "dead rows open, then 0": lambda s: (
        s.masked_fill(~(keep | dead), -torch.inf).softmax(-1).masked_fill(dead, 0.0)
    ),
}

# %%
# .. how-measured:: This code runs each way, then two functions of PyTorch, and looks for NaN in the first row of the output and
#    in the gradients of the weights that make queries and values.

shared = [q.weight, k.weight, v.weight]


def found(out, parameters):
    gradients = torch.autograd.grad(out[~padding].square().mean(), parameters)
    gradients = gradients if len(gradients) == 3 else gradients[0].chunk(3)
    first = "NaN" if out[0].isnan().any() else "a mean" if out[0].any() else "0"
    return [first, *("NaN" if g.isnan().any() else "fine" for g in gradients[::2])]


def by_hand(way):
    return way(q(x) @ k(x).T / 8**0.5) @ v(x)


rows = {name: found(by_hand(way), shared) for name, way in ways.items()}
out = F.scaled_dot_product_attention(q(x), k(x), v(x), attn_mask=keep)
rows["scaled_dot_product_attention"] = found(out, shared)

layer = nn.MultiheadAttention(8, 2, bias=False)
for name, not_these, options in (
    ("MultiheadAttention", ~keep, {}),
    ("same, need_weights=False", ~keep, {"need_weights": False}),
    ("same, dead rows open", ~keep & ~dead, {}),
):
    out = layer(x, x, x, attn_mask=not_these, **options)[0]
    rows[name] = found(out, [layer.in_proj_weight])

columns = ["a dead row of the output", "W_q.grad", "W_v.grad"]
table = pd.DataFrame(rows, index=columns).T

# %%
# The result of each, and of two functions of PyTorch (on a CPU). ``W_k`` is like ``W_q``:

# sphinx_gallery_start_ignore

TORCH = tuple(int(part) for part in torch.__version__.split(".")[:2])
_n, _f = "NaN", "fine"
assert rows["s + mask"] == [_n, _n, _n]
assert dead.flatten().tolist() == [True, True, False, False]
assert rows["s + mask, nan_to_num"] == ["0", _n, _f]
assert rows["masked_fill(-inf)"] == [_n, _f, _n]
assert rows["masked_fill(-inf), nan_to_num"] == ["0", _f, _f]
assert rows["masked_fill(lowest)"] == ["a mean", _f, _f]
assert rows["dead rows open, then 0"] == ["0", _f, _f]
assert rows["scaled_dot_product_attention"] == ["0", _f, _f]
assert rows["MultiheadAttention"] == [_n, _n, _n] or TORCH > (2, 13)
assert rows["same, need_weights=False"][1:] == [_f, _f]
assert rows["same, dead rows open"][1:] == [_f, _f]
assert torch.allclose(by_hand(ways["masked_fill(lowest)"])[:2], v(x).mean(0), atol=1e-6)
_good = by_hand(ways["dead rows open, then 0"])
_grads = torch.autograd.grad(_good[~padding].square().mean(), shared)
for _name in (*ways, "sdpa", "sdpa float"):  # the good rows, and their gradient
    if _name in ways:
        _out = by_hand(ways[_name])
    else:
        _which = keep if _name == "sdpa" else mask
        _out = F.scaled_dot_product_attention(q(x), k(x), v(x), attn_mask=_which)
    assert torch.allclose(_out[2:], _good[2:], atol=1e-6)
    _these = torch.autograd.grad(_out[~padding].square().mean(), shared)
    assert _these[0].isnan().any() == _these[1].isnan().any()  # W_q and W_k
    for _one, _right in zip(_these, _grads, strict=True):
        assert _one.isnan().all() or torch.allclose(_one, _right, atol=1e-6)
_opened = layer(x, x, x, attn_mask=~keep & ~dead)[0]
_plain = layer(x, x, x, attn_mask=~keep)[0]
assert torch.allclose(_opened[2:], _plain[2:], atol=1e-6) and _opened.isfinite().all()
_open = ways["dead rows open, then 0"]
for _chance in (0.0, 0.2, 0.5, 1.0):  # other masks, with all rows or none dead
    _keep, _dead = keep, dead
    for _type in (torch.float16, torch.float32, torch.float64):
        keep = torch.rand(6, 6) < _chance
        dead = ~keep.any(-1, keepdim=True)
        _s = torch.randn(6, 6, dtype=_type, requires_grad=True)
        _w = _open(_s)
        assert torch.equal(_w != 0, keep) and not _w[dead[:, 0]].any()
        assert torch.autograd.grad(_w.square().sum(), _s)[0].isfinite().all()
    keep, dead = _keep, _dead
# nan_to_num on the output, and a product with the mask
for _fill, _after, _found in (
    (-torch.inf, lambda w: (w @ v(x)).nan_to_num(), ["0", _f, _n]),
    (-torch.inf, lambda w: (w * keep) @ v(x), [_n, _f, _n]),
    (lowest(x), lambda w: (w * keep) @ v(x), ["0", _f, _f]),
):
    _scores = q(x) @ k(x).T / 8**0.5
    _late = _after(_scores.masked_fill(~keep, _fill).softmax(-1))
    assert torch.allclose(_late[2:], _good[2:], atol=1e-6)
    assert found(_late, shared) == _found
for _type in (torch.float16, torch.bfloat16):
    _low = ways["masked_fill(lowest)"](torch.randn(4, 4, dtype=_type))
    assert (_low[:2] == 0.25).all()
# a batch: one mask for each sample
_padding = torch.tensor([[1, 1, 0, 0], [0, 0, 0, 0], [1, 1, 1, 1]]).bool()
_keep = torch.ones(4, 4).tril().bool() & ~_padding[:, None]
_closed = ~_keep & _keep.any(-1, keepdim=True)
_three = torch.randn(4, 3, 8)
_each = _closed.repeat_interleave(2, 0)
_out = layer(_three, _three, _three, attn_mask=_each)[0]
for _i in range(3):
    _one = _three[:, _i]
    _one = layer(_one, _one, _one, attn_mask=_closed[_i])[0]
    assert torch.allclose(_out[:, _i], _one, atol=1e-6) and _one.isfinite().all()
_slope = torch.autograd.grad(_out[2:, :2].sum(), layer.in_proj_weight)[0]
assert _slope.isfinite().all()
_options = {"attn_mask": _each, "key_padding_mask": _padding}
_out = layer(_three, _three, _three, **_options)[0]
assert _out[:, :2].isfinite().all() and (_out[:, 2].isnan().all() or TORCH > (2, 13))
# sphinx_gallery_end_ignore
table.rename_axis(columns="way")

# %%
# - "Dead rows open" is our choice: no row is all ``-inf``, because the dead ones may look at everything. Their weights become 0
#   after the softmax.
# - ``masked_fill(-inf)`` keeps ``W_q`` clean, because its backward sends 0 to what it filled. An added mask passes the NaN on.
# - ``nan_to_num`` on the *weights* keeps ``W_v`` clean.
# - With ``lowest``, a dead row takes the mean of all values, padding included. Multiply the weights by ``keep`` if you use it.
#
# ``nn.MultiheadAttention`` returns its weights by default, for which PyTorch 2.13 calls a plain softmax. Open dead rows with
# ``attn_mask=~keep & ~dead``, and ignore their output. If each sample has its own ``keep``, pass
# ``(~keep & ~dead).repeat_interleave(num_heads, 0)``, without ``key_padding_mask``. In its boolean mask, ``True`` means *do not
# look here*. For ``scaled_dot_product_attention``, ``True`` means *look here*.

# %%
# What people get wrong
# ---------------------
# **Training is fine, and evaluation is NaN.** Training of a ``TransformerEncoderLayer`` is clean, because it asks for no
# weights of its attention. But in evaluation without gradients it takes the fast path, which returns NaN in PyTorch 2.13:

layer = nn.TransformerEncoderLayer(8, 2, batch_first=True)
train = layer(x[None], src_mask=~keep)
layer.eval()
with torch.no_grad():
    fast = layer(x[None], src_mask=~keep)
    torch.backends.mha.set_fastpath_enabled(False)
    slow = layer(x[None], src_mask=~keep)
    torch.backends.mha.set_fastpath_enabled(True)

for name, out in (("train", train), ("eval", fast), ("no fast path", slow)):
    print(f"{name:<13} NaN: {out.isnan().any().item()}")

# sphinx_gallery_start_ignore
assert train.isfinite().all() and slow.isfinite().all()
assert fast[0, :2].isnan().all() or TORCH > (2, 13)
assert torch.allclose(fast[0, 2:], slow[0, 2:], atol=1e-5)
train.sum().backward()
assert all(p.grad.isfinite().all() for p in layer.parameters())
with torch.no_grad():
    assert layer(x[None], src_mask=~keep & ~dead).isfinite().all()
_alone = nn.MultiheadAttention(8, 2, batch_first=True)
_x = x[None]
_options = {"attn_mask": ~keep, "need_weights": False}
assert _alone(_x, _x, _x, **_options)[0].isfinite().all()
_alone.eval()
with torch.no_grad():
    _fast = _alone(_x, _x, _x, **_options)[0]
    _options["attn_mask"] = ~keep & ~dead
    assert _alone(_x, _x, _x, **_options)[0].isfinite().all()
assert _fast[0, :2].isnan().all() or TORCH > (2, 13)
# sphinx_gallery_end_ignore

# %%
# Self-attention by ``nn.MultiheadAttention(…, batch_first=True)`` with ``need_weights=False`` does the same. Switch the fast
# path off, or open the dead rows.

# %%
# **The wrong input for nll_loss.** ``nll_loss`` only picks the number of the label and changes its sign.
#
# .. how-measured:: Six combinations for scores of 5 and 0, where the second class is right.

scores = torch.tensor([[5.0, 0.0]], requires_grad=True)
log_probs, probs = scores.log_softmax(1), scores.softmax(1)
losses = {
    "cross_entropy(scores)": F.cross_entropy(scores, label),
    "nll_loss(log_softmax)": F.nll_loss(log_probs, label),
    "cross_entropy(log_softmax)": F.cross_entropy(log_probs, label),
    "nll_loss(softmax)": F.nll_loss(probs, label),
    "nll_loss(scores)": F.nll_loss(scores, label),
    "cross_entropy(softmax)": F.cross_entropy(probs, label),
}
rows = {}
for name, loss in losses.items():
    (gradient,) = torch.autograd.grad(loss, scores, retain_graph=True)
    values = (loss.item(), *gradient[0].tolist())
    rows[name] = [f"{value + 0.0:.3f}" for value in values]

# %%
# The first three are the same. The others raise nothing:

# sphinx_gallery_start_ignore
assert list(rows.values()) == [
    *[["5.007", "0.993", "-0.993"]] * 3,
    ["-0.007", "0.007", "-0.007"],
    ["0.000", "0.000", "-1.000"],
    ["1.303", "0.010", "-0.010"],
]
for _seed in range(20):
    torch.manual_seed(_seed)
    _s = (9 * torch.randn(6, 4)).requires_grad_()
    _y = torch.randint(4, (6,))
    assert -1 <= F.nll_loss(_s.softmax(1), _y) <= 0
    _slope = torch.autograd.grad(F.nll_loss(_s, _y, reduction="sum"), _s)[0]
    assert torch.equal(_slope, -F.one_hot(_y, 4).float())
# sphinx_gallery_end_ignore
pd.DataFrame(rows, index=["loss", "gradient, score 0", "gradient, score 1"]).T

# %%
# With probabilities, the mean of ``nll_loss`` is between -1 and 0, and a badly wrong sample has almost no gradient. With
# scores, the loss can fall without end. The last line is one of the :ref:`silent mistakes
# <sphx_glr_gallery_debugging_silent_mistakes.py>`.

# %%
# acos: the angle between two vectors
# -----------------------------------
# The slope of ``acos`` at 1 and -1 is infinite (`a question about it
# <https://discuss.pytorch.org/t/nan-gradient-for-torch-cos-torch-acos/9617>`__). For small angles, rounding can make the cosine
# 1, or more than 1, where ``acos`` is NaN.


def with_acos(a, b):
    return F.cosine_similarity(a, b, dim=-1).acos()


def with_clamp(a, b):
    return F.cosine_similarity(a, b, dim=-1).clamp(-1 + 1e-6, 1 - 1e-6).acos()


def with_atan2(a, b):
    a, b = F.normalize(a, dim=-1), F.normalize(b, dim=-1)
    return 2 * torch.atan2((a - b).norm(dim=-1), (a + b).norm(dim=-1))


# sphinx_gallery_start_ignore
assert torch.acos(torch.tensor(1.0 + 2**-23)).isnan()
for _edge in (1.0, -1.0):
    _at = torch.tensor(_edge, requires_grad=True)
    assert torch.autograd.grad(_at.acos(), _at)[0].isinf()
_same = [torch.randn(2000, size) for size in (2, 3, 16, 64)]
assert max(F.cosine_similarity(_a, _a, dim=-1).max() for _a in _same) > 1
# sphinx_gallery_end_ignore

# %%
# .. how-measured:: This code turns a unit vector by an angle, and computes the angle and the length of its gradient, which
#    should be 1.


def measure(function, angle, dtype=torch.float32):
    a = torch.tensor([1.0, 0.0, 0.0], dtype=dtype)
    turn = torch.tensor(angle, dtype=torch.float64)
    b = torch.stack([turn.cos(), turn.sin(), 0 * turn]).to(dtype).requires_grad_()
    value = function(a, b)
    return value.item(), torch.autograd.grad(value, b)[0].norm().item()


cells = {
    function.__name__: {
        name: "{:.4f}, gradient {:.1f}".format(*measure(function, angle))
        for name, angle in (
            ("0", 0.0),
            ("0.0001", 1e-4),
            ("1", 1.0),
            ("3.1415", 3.1415),
        )
    }
    for function in (with_acos, with_clamp, with_atan2)
}

# %%
# The angle that each version finds, and the length of the gradient:

# sphinx_gallery_start_ignore
assert list(cells["with_acos"].values())[1:] == [
    "0.0000, gradient nan",
    "1.0000, gradient 1.0",
    "3.1416, gradient nan",
]
assert list(cells["with_clamp"].values()) == [
    "0.0014, gradient 0.0",
    "0.0014, gradient 0.0",
    "1.0000, gradient 1.0",
    "3.1402, gradient 0.0",
]
assert list(cells["with_atan2"].values()) == [
    "0.0000, gradient 0.0",
    "0.0001, gradient 1.0",
    "1.0000, gradient 1.0",
    "3.1415, gradient 1.0",
]
assert (
    measure(with_clamp, 0.0013)[1] == 0 and abs(measure(with_clamp, 0.002)[1] - 1) < 0.1
)
for _size in (2, 3, 50):
    _a, _b = torch.randn(2, 100, _size, dtype=torch.float64)
    assert torch.allclose(with_atan2(_a, _b), with_acos(_a, _b), atol=1e-6)
    _a.requires_grad_()
    _one = torch.autograd.grad(with_atan2(_a, _b).sum(), _a)[0]
    _other = torch.autograd.grad(with_acos(_a, _b).sum(), _a)[0]
    assert torch.allclose(_one, _other, rtol=1e-4)
    for _b in (_a.detach().clone(), -_a.detach()):  # the same, and opposite
        assert torch.autograd.grad(with_atan2(_a, _b).sum(), _a)[0].isfinite().all()
_before_2_14 = tuple(map(int, torch.__version__.split(".")[:2])) < (2, 14)
for _type in (torch.float16, torch.bfloat16):
    assert torch.tensor(1 - 1e-6, dtype=_type) == 1
    _a = torch.tensor([3.0, 4.0], dtype=_type, requires_grad=True)
    _at_bound = torch.ones(1, dtype=_type, requires_grad=True)
    _passes = torch.autograd.grad(_at_bound.clamp(max=1.0), _at_bound)[0] == 1
    _slope = torch.autograd.grad(with_clamp(_a, _a.detach()), _a)[0]
    assert _slope.isnan().all() == _passes and _passes == _before_2_14
    assert _passes or not _slope.any()
    assert not torch.autograd.grad(with_atan2(_a, _a.detach()), _a)[0].any()
_zeros = torch.zeros(2, requires_grad=True)
_slope = torch.autograd.grad(with_atan2(_zeros, torch.tensor([3.0, 4.0])), _zeros)[0]
assert 1e12 < _slope.norm() < 3e12
_zeros, _other = torch.tensor([[0.0, 0.0], [3.0, 4.0]], dtype=torch.float16)
_zeros.requires_grad_()
assert torch.autograd.grad(with_atan2(_zeros, _other), _zeros)[0].isnan().all()
# sphinx_gallery_end_ignore
pd.DataFrame(cells).rename_axis(columns="angle")

# %%
# ``clamp`` replaces NaN by a gradient of 0: two vectors at an angle of less than 0.0014, or almost opposite, get no gradient.
# In ``float16`` and ``bfloat16``, ``1 - 1e-6`` is 1, so it is no cure there.
#
# ``with_atan2`` is right in each row. For a vector of zeros its gradient is about ``1e12``, and NaN in ``float16``.

# %%
# LayerNorm of a constant row
# ---------------------------
# A row of equal numbers has a variance of 0, up to rounding. ``F.layer_norm`` adds ``eps`` *under* the root. By hand, its place
# matters:

normalizations = {
    "F.layer_norm(x, (4,))": lambda x: F.layer_norm(x, (4,)),
    "d / (var + eps).sqrt()": lambda x: (x - x.mean()) / (x.var() + 1e-5).sqrt(),
    "d / (std + eps)": lambda x: (x - x.mean()) / (x.std() + 1e-5),
    "d / (var.sqrt() + eps)": lambda x: (x - x.mean()) / (x.var().sqrt() + 1e-5),
}
for name, function in normalizations.items():
    row = torch.full((4,), 2.0, requires_grad=True)
    first = function(row)[0]
    (gradient,) = torch.autograd.grad(first, row)
    print(f"{name:<23} value {first.item()}, gradient {gradient[0].item():.0f}")

# sphinx_gallery_start_ignore
_found = []
for _function in normalizations.values():
    _row = torch.full((4,), 2.0, requires_grad=True)
    _first = _function(_row)[0]
    _found.append(torch.autograd.grad(_first, _row)[0][0].item())
    assert _first == 0
assert [round(slope, -1) for slope in _found[:3]] == [240, 240, 75000]
assert gradient.isnan().all() and _found[3] != _found[3]
_small = torch.tensor([2e-6, -2e-6])
assert ((F.layer_norm(_small, (2,)) / _small) - 316).abs().max() < 1
assert abs(_found[2] - 0.75 / 1e-5) < 1
_equal = [torch.full((size,), 1e4 / 3) for size in (3, 5, 6, 7, 10, 64, 100)]
_third = normalizations["d / (std + eps)"]
assert 0.8 < max(_third(_row).abs().max() for _row in _equal) < 1.1
# sphinx_gallery_end_ignore

# %%
# ``F.layer_norm`` divides by :math:`\sqrt{10^{-5}}`, so it multiplies small differences by 316. The third line divides by
# ``eps`` itself, so a rounding error of the mean can make its value 0.9 instead of 0. In the last, the root has an infinite
# slope.

# %%
# Exercise
# --------
# A policy may not choose its third action. Its entropy is NaN, since 0 times ``-inf`` is NaN. Which of these two gives the
# right entropy, and which the right gradient?
#
# .. code-block:: python
#
#    -torch.where(allowed, p * log_p, 0.0).sum()
#    -(p * torch.where(allowed, log_p, 0.0)).sum()
#
# .. solution::
#
# Both give the right entropy. In the first, backward multiplies the 0 of the branch not taken by ``log_p``, which is ``-inf``.
# In the second, all factors are finite. One ``where`` is enough, because the backward of ``log_softmax`` is finite.

logits = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
allowed = torch.tensor([True, True, False])
log_p = logits.masked_fill(~allowed, -torch.inf).log_softmax(0)
p = log_p.exp()

product = -torch.where(allowed, p * log_p, 0.0).sum()
factor = -(p * torch.where(allowed, log_p, 0.0)).sum()
for entropy in (product, factor):
    (gradient,) = torch.autograd.grad(entropy, logits, retain_graph=True)
    print(f"{entropy.item():.3f}", gradient.numpy().round(3))

# predict: "second" [first | second | both] -- Which of the two has a gradient without
#   NaN?

# sphinx_gallery_start_ignore
assert (p * log_p).sum().isnan()
(_first,) = torch.autograd.grad(product, logits, retain_graph=True)
assert _first[:2].isnan().all() and _first[2] == 0
_two = logits.detach()[:2].requires_grad_()
_entropy = -(_two.softmax(0) * _two.log_softmax(0)).sum()
assert torch.allclose(product, _entropy) and torch.allclose(factor, _entropy)
_right = torch.autograd.grad(_entropy, _two)[0]
assert torch.allclose(gradient[:2], _right) and gradient[2] == 0
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_differentiation_points_without_a_derivative.py`: roots, distances, and ``where`` used twice.
# - :ref:`sphx_glr_gallery_errors_nan_in_backward.py`: the message.
# - In PyTorch's reference: `log_softmax
#   <https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.log_softmax.html>`__,
#   `scaled_dot_product_attention
#   <https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.scaled_dot_product_attention.html>`__ and
#   `MultiheadAttention <https://docs.pytorch.org/docs/stable/generated/torch.nn.MultiheadAttention.html>`__.
