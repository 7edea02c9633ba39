r"""
Mixture of experts: the gradient of the router
==============================================

.. index::
   single: the router of a mixture of experts does not learn
   single: softmax before or after topk
   single: norm_topk_prob with top-1
   single: load balancing loss, aux_loss
   single: an expert without tokens, grad is None
   single: upcycling: all experts are copies

.. in-short::

   ``topk`` picks experts by index, and an index has no gradient. The router learns only through the weights that multiply
   the outputs of the chosen experts:

   .. code-block:: python

      weight, chosen = router(x).softmax(-1).topk(k)

   If the softmax comes after ``topk``, or if you divide the weights by their sum, they add up to 1. With ``k = 1`` the weight
   is then always 1, and the gradient of the router is 0 or rounding noise. No error tells you.
"""

# %%
# Which logits get a gradient?
# ----------------------------
# A router is a linear layer. Its output, the logits, decides which ``k`` of four experts compute a token:

import torch
from torch import nn

torch.manual_seed(0)
x, target = torch.randn(256, 8) + 1, torch.randn(256, 8)  # 256 tokens


class MoE(nn.Module):
    def __init__(self, k, softmax_first):
        super().__init__()
        self.router = nn.Linear(8, 4)
        self.experts = nn.ModuleList(nn.Linear(8, 8) for _ in range(4))
        self.k, self.softmax_first = k, softmax_first

    def forward(self, x):
        # x: one row for each token, as from x.flatten(0, 1)
        logits = self.router(x)
        if self.softmax_first:
            weight, chosen = logits.softmax(-1).topk(self.k)
        else:
            top, chosen = logits.topk(self.k)
            weight = top.softmax(-1)
        out = torch.zeros_like(x)
        for number, expert in enumerate(self.experts):
            token, place = (chosen == number).nonzero(as_tuple=True)
            part = weight[token, place, None] * expert(x[token])
            out = out.index_add(0, token, part.to(out.dtype))
        return out, logits, chosen


# %%
# Train two models with ``k = 1``, which differ in the place of the softmax:

for softmax_first in (True, False):
    torch.manual_seed(0)
    model = MoE(1, softmax_first)
    before = model.router.weight.detach().clone()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    losses = []
    for _ in range(100):
        loss = nn.functional.mse_loss(model(x)[0], target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    moved = (model.router.weight - before).norm().item()
    place = "before" if softmax_first else "after"
    print(f"softmax {place:<6} topk: loss {losses[0]:.2f} to {losses[-1]:.2f},")
    print(f"    and the router moved by {moved:.2f}")
    # sphinx_gallery_start_ignore
    assert losses[-1] < losses[0] - 0.1 and (moved > 0.1) == softmax_first
    assert softmax_first or moved == 0
    # sphinx_gallery_end_ignore

# %%
# Both losses fall, because the experts learn. Only the gradient shows why the second router never moved:


def model_after_backward(k, softmax_first):
    torch.manual_seed(0)
    model = MoE(k, softmax_first)
    out, logits, chosen = model(x)
    logits.retain_grad()
    nn.functional.mse_loss(out, target).backward()
    return model, logits, chosen


# %%
# .. how-measured:: This code draws the gradient of the four logits of the first token.

import matplotlib.pyplot as plt


def plot_gradients():
    figure, axes = plt.subplots(2, 2, figsize=(7, 3.6), sharey=True)
    figure.set_layout_engine("constrained", h_pad=0.12)  # inches between the rows
    for row, softmax_first in zip(axes, (True, False), strict=True):
        for ax, k in zip(row, (1, 2), strict=True):
            _, logits, chosen = model_after_backward(k, softmax_first)
            blue = chosen[0].tolist()
            colors = ["#2563eb" if e in blue else "#94a3b8" for e in range(4)]
            ax.bar(range(4), (1000 * logits.grad[0]).tolist(), color=colors)
            ax.axhline(0, color="#64748b", linewidth=0.8)
            ax.set_xticks(range(4), [f"expert {e}" for e in range(4)])
            ax.set_title(f"softmax {'before' if softmax_first else 'after'} top-{k}")
    figure.supylabel("gradient × 1000")
    figure.suptitle("A softmax after top-1 leaves no gradient")


# %%
# The gradient of one token's logits. The chosen experts are blue:

# figure: Four panels with the gradient of four logits. With the softmax before top-1 or top-2, all four logits have a gradient.
#   After top-2, only the two chosen ones have one, of equal size and opposite sign. After top-1, there is none.
plot_gradients()

# %%
# For the weight of the router, over all tokens:

for k in (1, 2, 4):
    before = model_after_backward(k, True)[0].router.weight.grad.norm()
    after = model_after_backward(k, False)[0].router.weight.grad.norm()
    print(f"k = {k}: softmax before {before:.3f}, after {after:.3f}")

# sphinx_gallery_start_ignore
torch.set_num_threads(1)  # small tensors: more threads do not help
for _k in (1, 2, 4):
    _, _before, _same = model_after_backward(_k, True)
    _model, _after, _chosen = model_after_backward(_k, False)
    assert torch.equal(_same, _chosen)
    assert (_before.grad != 0).all()
    _kept = torch.zeros(256, 4).scatter(1, _chosen, 1.0).bool()
    assert not _after.grad[~_kept].any()
    assert (_after.grad[_kept] != 0).all() == (_k > 1)
    assert _after.grad.sum(1).abs().max() < 1e-8
    assert all(p.grad.any() for p in _model.experts.parameters())
    assert _model.router.weight.grad.any() == (_k > 1)
_four = [
    model_after_backward(4, _first)[0].router.weight.grad for _first in (True, False)
]
assert torch.allclose(*_four, atol=1e-7)
_, _logits, _chosen = model_after_backward(
    1, True
)  # the rest, in proportion to its probability
_p = _logits.detach().softmax(-1)
_ratio = _logits.grad / _p
_not = torch.ones(256, 4).scatter(1, _chosen, 0.0).bool()
_rest = _ratio[_not].view(256, 3)
assert torch.allclose(_rest, _rest[:, :1].expand(-1, 3), rtol=1e-3, atol=1e-7)
for _k, _nothing in ((1, True), (2, False)):  # dividing by the sum; and a sigmoid
    for _gate in (lambda z: z.softmax(-1), torch.sigmoid):
        _z = torch.randn(64, 4, requires_grad=True)
        _top, _ = _gate(_z).topk(_k)
        _weights = _top / (_top.sum(-1, keepdim=True) + 1e-20)
        (_weights * torch.randn(64, _k)).sum().backward()
        assert (_z.grad.abs().max() < 1e-6) == _nothing
torch.manual_seed(0)
_router = nn.Linear(8, 4)
_start = _router.weight.detach().clone()
_adam = torch.optim.Adam(_router.parameters(), lr=0.01)
for _ in range(20):  # divided by its sum: Adam moves the router by rounding noise
    _top, _ = _router(x).softmax(-1).topk(1)
    _adam.zero_grad()
    (_top / _top.sum(-1, keepdim=True) * target).sum().backward()
    assert _router.weight.grad.norm() < 1e-4
    _adam.step()
assert (_router.weight - _start).norm() > 1e-3
for _first in (True, False):
    with torch.autocast("cpu", torch.bfloat16):
        assert MoE(2, _first)(x)[0].isfinite().all()
    assert MoE(2, _first)(x[:0])[0].shape == (0, 8)
_z = torch.randn(64, 4, requires_grad=True)
_top, _index = _z.topk(2)
assert not _index.requires_grad
_soft, _ = _z.softmax(-1).topk(2)
assert torch.allclose(_soft / _soft.sum(-1, keepdim=True), _top.softmax(-1))
# sphinx_gallery_end_ignore

# %%
# **The router learns only from what multiplies an expert's output.**
#
# - **Softmax first:** each weight has all logits in its denominator, so all logits get a gradient.
# - **Softmax after top-k**, or ``weight / weight.sum(-1, keepdim=True)``: the weights add up to 1, so the router learns which
#   of the chosen experts is better. With ``k = 1`` there is nothing to compare (`mixture-of-experts#27
#   <https://github.com/davidmrau/mixture-of-experts/issues/27>`__, `minimind#858
#   <https://github.com/jingyaogong/minimind/issues/858>`__).
#
# Check the norm of ``router.weight.grad`` once, without a balancing loss. After a division by the sum, it is rounding noise,
# and Adam makes full steps of it.

# %%
# The load-balancing loss
# -----------------------
# A router may send most tokens to one expert. The usual loss against this multiplies, for each expert, its share of the
# tokens by its mean probability. The share is a count and has no gradient. It is a weight: the logits of busy experts are
# pushed down.


def balance_loss(probability, chosen):
    experts = probability.shape[1]
    count = torch.bincount(chosen.flatten(), minlength=experts)
    return experts * (count / chosen.numel() * probability.mean(0)).sum()


torch.manual_seed(0)
router = nn.Linear(8, 4)
optimizer = torch.optim.Adam(router.parameters(), lr=0.05)
for step in range(51):
    probability = router(x).softmax(-1)
    weight, chosen = probability.topk(1)
    loss = balance_loss(probability, chosen)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step in (0, 50):
        count = torch.bincount(chosen.flatten(), minlength=4)
        print(f"step {step:<2} loss {loss.item():.2f}   tokens {count.tolist()}")
    # sphinx_gallery_start_ignore
    if step == 0:
        assert loss > 1.2 and count.max() > 120
        assert ((router.bias.grad > 0) == (count > 64)).all()
    # sphinx_gallery_end_ignore

# sphinx_gallery_start_ignore
assert abs(loss.item() - 1) < 0.03 and count.min() > 40 and count.max() < 90
_flat = torch.tensor([1e-3, 0, 0, 0]).softmax(0).expand(256, 4)
assert abs(balance_loss(_flat, torch.zeros(256, 1, dtype=torch.long)) - 1) < 0.001
for _n in (2, 8, 64):  # other numbers of experts
    _p = torch.randn(256, _n).softmax(-1)
    assert abs(balance_loss(_p, torch.arange(256) % _n) - 1) < 1e-5
    balance_loss(_p, torch.zeros(256, 1, dtype=torch.long))
# sphinx_gallery_end_ignore

# %%
# Add it to the main loss with a small factor, and leave padding out of it. In balance it is 1. But with nearly equal
# probabilities it is near 1 even if one expert gets all tokens. So print the counts.

# %%
# Experts without tokens
# ----------------------
# Does the weight of an expert without tokens move?
#
# .. how-measured:: This code takes a step in which both experts get tokens, and one in which all tokens go to the first. The
#    table says what happens to the second.

import pandas as pd

OPTIMIZERS = {
    "SGD": lambda p: torch.optim.SGD(p, 0.01),
    "SGD, momentum": lambda p: torch.optim.SGD(p, 0.01, momentum=0.9),
    "AdamW": lambda p: torch.optim.AdamW(p, 0.01),
}


def idle_expert(make_optimizer, stacked, skip):
    torch.manual_seed(0)
    experts = torch.randn(2, 8, 8, requires_grad=True)
    if not stacked:
        experts = [weight.detach().clone().requires_grad_() for weight in experts]
    optimizer = make_optimizer([experts] if stacked else experts)
    for chosen in (torch.arange(256) % 2, torch.zeros(256)):
        out = torch.zeros_like(x)
        for number in range(2):
            token = (chosen == number).nonzero()[:, 0]
            if len(token) or not skip:
                out = out.index_add(0, token, x[token] @ experts[number])
        optimizer.zero_grad()
        nn.functional.mse_loss(out, target).backward()
        before = experts[1].detach().clone()
        optimizer.step()
    grad = experts.grad[1] if stacked else experts[1].grad
    moved = "stays" if torch.equal(before, experts[1]) else "moves"
    return "None" if grad is None else f"{grad.norm():.0f}", moved


def tabulate_idle_experts():
    table = {}
    for way, options in {
        "if len(token): expert(x[token])": {"stacked": False, "skip": True},
        "expert(x[token])": {"stacked": False, "skip": False},
        "all experts in one Parameter": {"stacked": True, "skip": True},
    }.items():
        found = [idle_expert(make, **options) for make in OPTIMIZERS.values()]
        table[way] = [found[0][0], *(moved for _, moved in found)]
    return pd.DataFrame(table, [".grad", *OPTIMIZERS]).T


# %%
# The weight of the second expert, in three ways to write this:

table = tabulate_idle_experts()

# sphinx_gallery_start_ignore
assert table[".grad"].tolist() == ["None", "0", "0"]
assert table["SGD"].tolist() == ["stays"] * 3
for _name in ("SGD, momentum", "AdamW"):
    assert table[_name].tolist() == ["stays", "moves", "moves"]
_empty = nn.Linear(8, 8)
_empty(x[:0]).sum().backward()
assert _empty.weight.grad is not None and not _empty.weight.grad.any()
# sphinx_gallery_end_ignore
table

# %%
# PyTorch's optimizers skip a parameter whose ``.grad`` is ``None``. A gradient of 0 is a gradient: momentum continues, and
# AdamW shrinks the weight. With several processes, a skipped expert can stop all of them (`DeepSpeed#5066
# <https://github.com/deepspeedai/DeepSpeed/issues/5066>`__, or :ref:`the error of DDP
# <sphx_glr_gallery_errors_ddp_finished_reduction.py>`). Calling the expert with an empty batch avoids the ``None``.

# %%
# What people get wrong
# ---------------------
# **The choice without the weight.** Only the index is used, so the ``.grad`` of the router is ``None``:

router, experts = nn.Linear(8, 4), torch.randn(4, 8, 8, requires_grad=True)
chosen = router(x).argmax(-1)
out = torch.einsum("ti,toi->to", x, experts[chosen])
nn.functional.mse_loss(out, target).backward()
print("router:", router.weight.grad, "  experts:", experts.grad.shape)

# sphinx_gallery_start_ignore
assert router.weight.grad is None and experts.grad.any()
# sphinx_gallery_end_ignore

# %%
# **A balancing loss without a gradient.** It needs the probabilities before ``topk``. Two wrong ways, which train nothing:

probability = router(x).softmax(-1)
weight, chosen = probability.topk(1)
normalized = weight / weight.sum(-1, keepdim=True)

for name, used in {
    "all probabilities": probability,
    "normalized top-1": torch.zeros(256, 4).scatter(1, chosen, normalized),
    "counts": torch.zeros(256, 4).scatter(1, chosen, 1.0),
}.items():
    loss = balance_loss(used, chosen)
    router.zero_grad()
    if loss.requires_grad:
        loss.backward(retain_graph=True)
    grad = router.weight.grad
    norm = None if grad is None else round(grad.norm().item(), 2)
    print(f"{name:<18} {loss.item():.2f}   gradient {norm}")
    # sphinx_gallery_start_ignore
    if name == "all probabilities":
        assert grad.norm() > 0.01
    else:
        assert grad is None if name == "counts" else grad.norm() < 1e-6
    # sphinx_gallery_end_ignore

# %%
# **The parts are overwritten.** With ``k = 2``, ``out[token] = part`` replaces the part of another expert (`makeMoE#2
# <https://github.com/AviSoori1x/makeMoE/issues/2>`__). Half of the weights get no gradient:

weight, chosen = router(x).softmax(-1).topk(2)
added, overwritten = torch.zeros(256), torch.zeros(256)
for number in range(4):
    token, place = (chosen == number).nonzero(as_tuple=True)
    added = added.index_add(0, token, weight[token, place])
    overwritten[token] = weight[token, place]

for name, out in {"index_add": added, "out[token] = part": overwritten}.items():
    (grad,) = torch.autograd.grad(out.sum(), weight, retain_graph=True)
    print(f"{name:<18} weights with a gradient: {grad.count_nonzero() / 512:.0%}")

# sphinx_gallery_start_ignore
assert grad.count_nonzero() == 256 and torch.allclose(added, weight.sum(1))
# sphinx_gallery_end_ignore

# %%
# Exercise
# --------
# You *upcycle* a model: all experts start as copies of one trained layer, and ``k = 2``. What is the gradient of the router in
# the first step, with the softmax before and after ``topk``?
#
# .. solution::
#
# After ``topk``, it is 0: with two equal outputs, weights that add up to 1 change nothing. The experts see different tokens, so
# they differ after the first step, and then the router learns. With the softmax first, the router gets a gradient at once.

for softmax_first in (True, False):
    model = MoE(2, softmax_first)
    for expert in model.experts:
        expert.load_state_dict(model.experts[0].state_dict())
    nn.functional.mse_loss(model(x)[0], target).backward()
    norm = model.router.weight.grad.norm()
    print(f"softmax {'before' if softmax_first else 'after'}: {norm:.4f}")

# sphinx_gallery_start_ignore
assert norm < 1e-6
torch.optim.SGD(model.parameters(), 0.1).step()
model.zero_grad()
nn.functional.mse_loss(model(x)[0], target).backward()
assert model.router.weight.grad.norm() > 1e-4
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_practice_argmax_round_and_sampling.py`, gradients for choices: straight-through, Gumbel-softmax.
# - :ref:`sphx_glr_gallery_graphs_why_is_grad_none.py`, all causes of ``None``.
# - In PyTorch's reference: `torch.Tensor.topk <https://docs.pytorch.org/docs/stable/generated/torch.Tensor.topk.html>`__ and
#   `torch.Tensor.index_add_ <https://docs.pytorch.org/docs/stable/generated/torch.Tensor.index_add_.html>`__.
