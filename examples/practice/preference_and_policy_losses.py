r"""
GRPO, PPO and DPO losses: KL, ratio, clip
=========================================

.. index::
   single: k1, k2, k3: KL estimators
   single: KL penalty in the loss or in the reward
   single: the loss is 0 in GRPO
   single: the ratio is always 1 in GRPO or PPO
   single: DPO loss stays at 0.693
   single: F.kl_div: which argument is first

.. in-short::

   At the first step, the loss of GRPO is often 0 and that of DPO is 0.693, but the gradient of each is not 0. A KL penalty
   that is estimated from samples can have the right value and a wrong gradient: ``(logp - ref_logp).mean()`` has the gradient
   0 on average. This one has the right value and the right gradient for answers of one token:

   .. code-block:: python

      difference = logp - ref_logp  # of the sampled tokens
      k3 = torch.expm1(-difference) + difference
      kl_loss = ((logp - logp.detach()).exp() * k3).mean()

   After a step, write ``old_logp``, kept from the sampling, instead of ``logp.detach()``. ``ref_logp`` comes from a frozen copy
   of the model.
"""

# %%
# A KL estimate as a loss
# -----------------------
# A language model (the *policy*) learns from rewards (PPO, proximal policy optimization, and GRPO, group relative policy
# optimization) or from pairs of answers (DPO, direct preference optimization). A KL penalty keeps it near a frozen copy, the
# *reference*. The exact KL needs a sum over the vocabulary, so most code takes the mean of k1, k2 or k3 over the sampled
# tokens (`Schulman's names <http://joschu.net/blog/kl-approx.html>`__). With the penalty alone as the loss, and a vocabulary of
# four words, does the policy come back to the reference?

import torch
from torch.nn.functional import kl_div, logsigmoid

start = torch.tensor([0.5, 1.5, 0.0, -0.5])
ref_logp = torch.tensor([2.0, 0.5, 0.0, -1.0]).log_softmax(0)


def estimate(name, logp, ref_logp):
    difference = logp - ref_logp
    if name == "k1":
        return difference
    if name == "k2":
        return difference**2 / 2
    k3 = torch.expm1(-difference) + difference
    # the exp is 1, with the gradient of logp
    return k3 if name == "k3" else (logp - logp.detach()).exp() * k3


def exact_kl(logp):
    return (logp.exp() * (logp - ref_logp)).sum()


NAMES = ["k1", "k2", "k3", "on_policy * k3"]
torch.manual_seed(0)
print(f"at the start: KL {exact_kl(start.log_softmax(0)):.2f}")
for name in NAMES:
    policy = start.clone().requires_grad_()
    optimizer = torch.optim.SGD([policy], lr=0.1)
    for _ in range(200):
        logp = policy.log_softmax(0)
        tokens = torch.multinomial(logp.detach().exp(), 16, replacement=True)
        loss = estimate(name, logp[tokens], ref_logp[tokens]).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    left = exact_kl(policy.detach().log_softmax(0)).item()
    print(f"{name:<15} KL after 200 steps: {left:.2f}")
    # sphinx_gallery_start_ignore
    assert left > 0.4 if name == "k1" else left < 0.05
    # sphinx_gallery_end_ignore

# %%
# With ``k1``, it does not. The mean of each estimate, weighted by how often each word is sampled:

logits = start.clone().requires_grad_()
logp = logits.log_softmax(0)
probs = logp.detach().exp()
losses = {"exact KL": exact_kl(logp)}
for name in NAMES:
    losses[name] = (probs * estimate(name, logp, ref_logp)).sum()


def gradient(loss):
    return torch.autograd.grad(loss, logits, retain_graph=True)[0]


for name, loss in losses.items():
    print(f"{name:<15} value {loss.item():.2f}")

# %%
# .. how-measured:: This code draws the gradients for the four words.

import matplotlib.pyplot as plt


def plot_gradients():
    _, ax = plt.subplots(figsize=(7, 2.7), layout="constrained")
    colors = "#1e293b", "#c2410c", "#047857", "#7c3aed", "#2563eb"
    for number, (name, color) in enumerate(zip(losses, colors, strict=True)):
        place = [word + 0.16 * number - 0.32 for word in range(4)]
        bars = gradient(losses[name]).tolist()
        ax.bar(place, bars, 0.16, color=color, label=name)
    ax.axhline(0, color="#64748b", linewidth=0.8)
    ax.set_xticks(range(4), [f"word {word}" for word in range(4)])
    ax.set(ylabel="gradient of the logit")
    ax.set_title("k2 and on_policy * k3 have the gradient of the exact KL")
    ax.legend(fontsize=8)


# %%
# The gradient that each has on average:

# figure: Bars for the gradients of four logits. The exact KL, k2 and on_policy * k3 have equal bars: negative for word 0,
#   positive for word 1, and small ones for the other two. k1 has no bars. k3 has a longer negative bar for word 0, and for
#   word 2 a positive bar where the exact one is negative.
plot_gradients()

# sphinx_gallery_start_ignore
difference, on_policy = logp - ref_logp, (logp - logp.detach()).exp()
_exact = gradient(losses["exact KL"])
_reverse = gradient((ref_logp.exp() * (ref_logp - logp)).sum())
assert abs(losses["k1"] - losses["exact KL"]) < 1e-6
assert abs(losses["k3"] - losses["exact KL"]) < 1e-6
assert losses["k2"] - losses["exact KL"] > 0.05
assert gradient(losses["k1"]).abs().max() < 1e-6
assert torch.allclose(gradient(losses["k2"]), _exact, atol=1e-6)
assert torch.allclose(gradient(losses["k3"]), _reverse, atol=1e-6)
assert torch.allclose(gradient(losses["on_policy * k3"]), _exact, atol=1e-6)
assert _exact[2] < 0 < _reverse[2] and (_exact - _reverse).abs().max() > 0.1
_in_reward = (probs * logp * difference.detach()).sum()  # minus beta * k1, as a reward
assert torch.allclose(gradient(_in_reward), _exact, atol=1e-6)
_scored = (probs * on_policy * difference).sum()
assert torch.allclose(gradient(_scored), _exact, atol=1e-6)
for _seed in range(20):  # other policies and vocabularies, in double
    torch.manual_seed(_seed)
    _q = torch.randn(2 + _seed, dtype=torch.float64).log_softmax(0)
    _w = torch.randn(2 + _seed, dtype=torch.float64, requires_grad=True)
    _l = _w.log_softmax(0)
    _p, _d, _on = _l.detach().exp(), _l - _q, (_l - _l.detach()).exp()
    _right = torch.autograd.grad((_l.exp() * _d).sum(), _w, retain_graph=True)[0]
    _other = -_q.exp() + _p  # of KL(ref || policy)
    for _k, _wanted in (
        (_d, 0 * _right),
        (_d**2 / 2, _right),
        (torch.expm1(-_d) + _d, _other),
        (_on * (torch.expm1(-_d) + _d), _right),
        (_on * _d, _right),
        (_l * _d.detach(), _right),
    ):
        _found = torch.autograd.grad((_p * _k).sum(), _w, retain_graph=True)[0]
        assert torch.allclose(_found, _wanted, atol=1e-9)
    assert (torch.expm1(-_d) + _d >= 0).all()
    _old = torch.randn(2 + _seed, dtype=torch.float64).log_softmax(0)  # off-policy
    assert torch.autograd.grad(_old.exp() @ _d, _w, retain_graph=True)[0].any()
    _later = _old.exp() @ ((_l - _old).exp() * (torch.expm1(-_d) + _d))
    _found = torch.autograd.grad(_later, _w, retain_graph=True)[0]
    assert torch.allclose(_found, _right, atol=1e-9)
_ends = {}
for _name in ("exact KL", "k3"):  # beside a reward of 2 for word 3
    _w = start.clone().requires_grad_()
    for _ in range(3000):
        _l = _w.log_softmax(0)
        _p = _l.exp()
        _kl = exact_kl(_l)
        if _name == "k3":
            _kl = (_p.detach() * estimate("k3", _l, ref_logp)).sum()
        (_g,) = torch.autograd.grad(_kl - 2 * _p[3], _w)
        _w = (_w - 0.1 * _g).detach().requires_grad_()
    _ends[_name] = _w.softmax(0)[3].item()
_best = (ref_logp + torch.tensor([0.0, 0, 0, 2])).softmax(0)[3].item()
assert abs(_ends["exact KL"] - _best) < 0.01 and abs(_ends["k3"] - _best) > 0.1
torch.manual_seed(0)  # answers of two tokens, the second after the first
_w1 = start.double().requires_grad_()
_w2 = torch.randn(4, 4, dtype=torch.float64, requires_grad=True)
_r1, _r2 = ref_logp.double(), torch.randn(4, 4, dtype=torch.float64).log_softmax(1)
_l1, _l2 = _w1.log_softmax(0), _w2.log_softmax(1)
_both = _l1.exp()[:, None] * _l2.exp()
_k1 = (_l1 - _r1)[:, None] + (_l2 - _r2)
_kl, _p = (_both * _k1).sum(), _both.detach()


def _each(logp, ref):
    return (logp - logp.detach()).exp() * (torch.expm1(ref - logp) + logp - ref)


_by_token = (_p * (_each(_l1, _r1)[:, None] + _each(_l2, _r2))).sum()
_in_rewards = (_p * _k1.detach() * (_l1[:, None] + _l2)).sum()
_want = torch.autograd.grad(_kl, (_w1, _w2), retain_graph=True)
_part = torch.autograd.grad(_by_token, (_w1, _w2), retain_graph=True)
_whole = torch.autograd.grad(_in_rewards, (_w1, _w2))
assert torch.allclose(_kl, _by_token) and (_want[0] - _part[0]).abs().max() > 0.1
assert torch.allclose(_want[1], _part[1])
assert all(torch.allclose(*pair) for pair in zip(_want, _whole, strict=True))
_tiny = torch.tensor([1e-6, -1e-5])
assert ((-_tiny).exp() - 1 + _tiny).min() < 0 <= (torch.expm1(-_tiny) + _tiny).min()
# sphinx_gallery_end_ignore

# %%
# - ``k1`` has the right value. But its gradient is that of ``logp`` alone, which is 0 on average (`open-instruct#535
#   <https://github.com/allenai/open-instruct/pull/535>`__).
# - ``k2`` has a different value and the right gradient.
# - ``k3``, which many GRPO trainers use, has the right value and the gradient of the KL from the reference to the policy.
#   Alone, it also leads to the reference. Beside a reward, it can lead to a different policy.
# - ``on_policy * k3`` has the right value and the right gradient (`NeMo-RL#2506
#   <https://github.com/NVIDIA-NeMo/RL/pull/2506>`__).
#
# **The policy also decides which words are sampled, and the gradient of an estimate leaves this out.** The factor
# ``on_policy``, which is ``(logp - logp.detach()).exp()``, puts it back, :ref:`as in a policy gradient
# <sphx_glr_gallery_practice_policy_gradient.py>`. In a longer answer, a token also decides what *follows*, and a mean over
# tokens leaves this out (`Tang and Munos <https://arxiv.org/abs/2506.09477>`__). PPO includes it: it adds ``-k1``, detached, to
# the reward of each token.

# %%
# GRPO and PPO: ratio 1, loss 0, and a gradient
# ---------------------------------------------
# Five sampled answers of one word, with their rewards. The *advantage* says how much better than its group an answer is. The
# *ratio* is its probability divided by the one at the time of sampling. The clip ends at 0.8 and 1.2 (``epsilon`` is 0.2):

words = torch.tensor([0, 1, 1, 2, 3])
rewards = torch.tensor([1.0, 0.0, 0.0, 1.0, 0.0])
advantage = (rewards - rewards.mean()) / (rewards.std() + 1e-4)
old_logp = logp[words].detach()  # kept from the sampling


def grpo_loss(logp, old_logp, advantage):
    ratio = (logp - old_logp).exp()
    clipped = ratio.clamp(0.8, 1.2)
    return -torch.minimum(ratio * advantage, clipped * advantage).mean()


loss = grpo_loss(logp[words], old_logp, advantage)
print("loss", round(loss.item(), 4) + 0.0)
print("gradient", gradient(loss).numpy().round(2))

ratio = torch.tensor([0.7, 1.0, 1.3], requires_grad=True)
for sign in (1.0, -1.0):
    gain = torch.minimum(ratio * sign, ratio.clamp(0.8, 1.2) * sign)
    (slope,) = torch.autograd.grad(gain.sum(), ratio)
    print(f"advantage {sign:4}, ratios 0.7, 1, 1.3: slopes {slope.tolist()}")

# sphinx_gallery_start_ignore
assert abs(loss) < 1e-6 and gradient(loss).abs().max() > 0.1
assert torch.allclose(gradient(loss), gradient(-(logp[words] * advantage).mean()))
_lengths = torch.tensor([1000, 100, 100, 100])  # a mean over all tokens is not 0
_one = torch.tensor([1.5, -0.5, -0.5, -0.5])
_rows = torch.zeros(1300)
_tokens = grpo_loss(_rows, _rows, _one.repeat_interleave(_lengths))
assert _one.mean() == 0 and _tokens < -1
_policy = ref_logp.clone().requires_grad_()  # the reference is the start
_rises = []
for _ in range(30):  # with a penalty of 0.1 times k3, one step for each draw
    _l = _policy.log_softmax(0)
    _d = (_l - ref_logp)[words]
    _kl = torch.expm1(-_d) + _d
    _loss = grpo_loss(_l[words], _l[words].detach(), advantage) + 0.1 * _kl.mean()
    assert torch.allclose(_loss, 0.1 * _kl.mean(), atol=1e-6)
    _rises.append((_loss.item(), _l[[0, 2]].exp().sum().item()))  # the mean reward
    _policy = _policy - 0.3 * torch.autograd.grad(_loss, _policy)[0]
    _policy = _policy.detach().requires_grad_()
assert abs(_rises[0][0]) < 1e-6 and _rises[-1][0] > _rises[5][0] > 1e-3
assert _rises[-1][1] > _rises[5][1] > _rises[0][1]
for _sign, _wanted in ((1.0, [1, 1, 0]), (-1.0, [0, -1, -1])):
    _gain = torch.minimum(ratio * _sign, ratio.clamp(0.8, 1.2) * _sign)
    assert torch.autograd.grad(_gain.sum(), ratio)[0].tolist() == _wanted
# sphinx_gallery_end_ignore

# %%
# Before the first step, the ratio is 1, so the loss is minus the mean advantage: 0 (`trl#3452
# <https://github.com/huggingface/trl/issues/3452>`__). With a KL penalty, it starts at 0 and rises while the policy gets better
# (`open-r1#239 <https://github.com/huggingface/open-r1/issues/239>`__). Watch the reward instead.
#
# After some steps, the clip ends the gradient of a token whose ratio has moved far enough in the direction of its advantage.
#
# In longer answers, each token gets the advantage of its answer, and the mean leaves out the padding:


def masked_grpo_loss(logp, old_logp, ref_logp, advantage, mask, beta=0.04):
    ratio = (logp - old_logp).exp()  # (answers, tokens)
    clipped = ratio.clamp(0.8, 1.2)
    advantage = advantage[:, None]
    gain = torch.minimum(ratio * advantage, clipped * advantage)
    difference = logp - ref_logp
    k3 = torch.expm1(-difference) + difference
    return (beta * ratio * k3 - gain)[mask].mean()


torch.manual_seed(0)
token_logits = torch.randn(2, 3, 4, requires_grad=True)  # 2 answers, 3 tokens
ids = torch.tensor([[1, 0, 3], [2, 1, 0]])
mask = torch.tensor([[True, True, True], [True, False, False]])
token_logp = token_logits.log_softmax(-1).gather(-1, ids[..., None])[..., 0]
sampled = token_logp.detach()
loss = masked_grpo_loss(
    token_logp, sampled, sampled - 0.1, torch.tensor([1.0, -1.0]), mask
)
loss.backward()
print(f"loss {loss.item():.3f}, norm of each token's gradient:")
print(token_logits.grad.norm(dim=2).numpy().round(2))

# sphinx_gallery_start_ignore
assert round(loss.item(), 3) == -0.5
assert (token_logits.grad.norm(dim=2) > 0).equal(mask)
_alone = masked_grpo_loss(
    logp[words, None],
    old_logp[:, None],
    old_logp[:, None],
    advantage,
    mask=words[:, None] >= 0,
)
assert torch.allclose(_alone, grpo_loss(logp[words], old_logp, advantage), atol=1e-6)
# sphinx_gallery_end_ignore

# %%
# This loss is not 0, because :ref:`longer answers count more <sphx_glr_gallery_practice_language_model_losses.py>`.

# %%
# DPO starts at 0.693
# -------------------
# The log-probability of an answer is the *sum* over its tokens, which
# :ref:`cross_entropy with reduction="none" <sphx_glr_gallery_practice_language_model_losses.py>` gives with a minus sign. Use
# ``logits.float()``: the sum over a long answer may be -800, and near there, ``bfloat16`` has only multiples of 4. ``beta`` is
# the weight of the KL penalty that DPO replaces.


def dpo_loss(chosen, rejected, ref_chosen, ref_rejected, beta=0.1):
    margin = (chosen - ref_chosen) - (rejected - ref_rejected)
    return -logsigmoid(beta * margin).mean()


chosen = torch.tensor([-12.0], requires_grad=True)
rejected = torch.tensor([-30.0], requires_grad=True)
loss = dpo_loss(chosen, rejected, chosen.detach(), rejected.detach())
loss.backward()
print(f"loss {loss.item():.3f}")
print(f"gradients {chosen.grad.item():.2f} and {rejected.grad.item():.2f}")

# sphinx_gallery_start_ignore
assert round(loss.item(), 3) == 0.693
assert abs(chosen.grad + 0.05) < 1e-6 and abs(rejected.grad - 0.05) < 1e-6
assert dpo_loss(chosen - 3, rejected - 9, chosen, rejected) < loss  # less likely, both
_found = torch.linspace(-820, -800, 2001).bfloat16().unique()
assert (_found.float().diff() == 4).all() and len(_found) == 6
# sphinx_gallery_end_ignore

# %%
# Policy and reference are equal, so the margin is 0 and the loss is :math:`\log 2`. Only the margin counts: the loss can fall
# while the chosen answer becomes *less* likely.

# %%
# What people get wrong
# ---------------------
# **The reference is the model itself.** ``reference = model`` copies nothing. Write ``copy.deepcopy(model).eval()``. 100 steps
# of DPO:


def train(kind):
    policy = torch.zeros(4, requires_grad=True)
    reference = policy.detach().clone() if kind == "a frozen copy" else policy
    optimizer = torch.optim.SGD([policy], lr=1.0)
    for _ in range(100):
        logp = policy.log_softmax(0)
        with torch.set_grad_enabled(kind == "the model"):
            ref = reference.log_softmax(0)
        loss = dpo_loss(logp[0], logp[1], ref[0], ref[1])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item(), policy.grad.norm().item(), logp[0].exp().item()


for kind in ("a frozen copy", "the model", "the model, under no_grad"):
    loss, norm, probability = train(kind)
    numbers = f"gradient {norm:.3f}  chosen {probability:.2f}"
    print(f"{kind:<25} loss {loss:.3f}  {numbers}")

# sphinx_gallery_start_ignore
(_copy, _norm, _), (_same, _none, _at) = train("a frozen copy"), train("the model")
assert _copy < 0.5 and _norm > 0.01 and _none == 0 and _at == 0.25
_same_too, _constant, _far = train("the model, under no_grad")
assert round(_same, 3) == 0.693 == round(_same_too, 3)
assert abs(_constant - 0.05 * 2**0.5) < 1e-6 and _far > 0.9
# sphinx_gallery_end_ignore

# %%
# A model compared with itself always has the margin 0. With gradients on both sides, nothing moves (`trl#4023
# <https://github.com/huggingface/trl/issues/4023>`__). Under ``no_grad``, the gradient stays as large as in the first step, and
# nothing holds the policy near its start. If your loss stays at 0.693, print the norm of the gradient.
#
# **old_logp is computed again** in each of several steps. Then the ratio stays 1 and the clip never acts. If it is not detached
# either, the gradient is 0:


def probability_ratio(kind):
    policy = torch.zeros(4, requires_grad=True)
    first = policy.log_softmax(0)[words].detach()
    for _ in range(20):
        logp = policy.log_softmax(0)[words]
        old = {"kept": first, "again": logp.detach()}.get(kind, logp)
        (grad,) = torch.autograd.grad(grpo_loss(logp, old, advantage), policy)
        policy = (policy - 0.3 * grad).detach().requires_grad_()
    return (policy.log_softmax(0)[words] - first).exp().detach()


for kind in ("kept", "again", "not detached"):
    moved = probability_ratio(kind).numpy().round(2)
    print(f"{kind:<13} ratio to the first policy {moved}")

# sphinx_gallery_start_ignore
_kept, _again = probability_ratio("kept"), probability_ratio("again")
assert _kept.min() > 0.7 and _kept.max() < 1.35
assert _again.max() > 1.6 and _again.min() < 0.5
assert torch.equal(probability_ratio("not detached"), torch.ones(5))
# sphinx_gallery_end_ignore

# %%
# **kl_div has the reference first.** ``kl_div(input, target)`` is the KL from the *target* to the input:

options = {"reduction": "sum", "log_target": True}
for name, value in {
    "exact_kl(logp)": exact_kl(logp),
    "kl_div(ref_logp, logp)": kl_div(ref_logp, logp, **options),
    "kl_div(logp, ref_logp)": kl_div(logp, ref_logp, **options),
}.items():
    print(f"{name:<22} gradient {gradient(value).numpy().round(2)}")

# sphinx_gallery_start_ignore
_first = kl_div(ref_logp, logp, reduction="sum", log_target=True)
assert torch.allclose(gradient(_first), _exact, atol=1e-6)
assert torch.allclose(gradient(value), _reverse, atol=1e-6)
# sphinx_gallery_end_ignore

# %%
# Exercise
# --------
# All answers of a group have the reward 0. What is the gradient of ``grpo_loss``? And without the ``1e-4``?
#
# .. solution::
#
# All advantages are 0, and so is the gradient (`ms-swift#4547 <https://github.com/modelscope/ms-swift/issues/4547>`__).
# Without ``1e-4``, 0 / 0 makes the gradients of the whole batch NaN.

rewards = torch.zeros(5)
for epsilon in (1e-4, 0.0):
    advantage = (rewards - rewards.mean()) / (rewards.std() + epsilon)
    loss = grpo_loss(logp[words], old_logp, advantage)
    print(epsilon, gradient(loss).tolist())

# sphinx_gallery_start_ignore
assert gradient(grpo_loss(logp[words], old_logp, advantage)).isnan().all()
advantage = (rewards - rewards.mean()) / (rewards.std() + 1e-4)
assert not gradient(grpo_loss(logp[words], old_logp, advantage)).any()
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_practice_policy_gradient.py`, why ``log_prob`` times reward, and what to detach.
# - :ref:`sphx_glr_gallery_practice_language_model_losses.py`, shift, mask, and the mean over tokens or rows.
# - :ref:`sphx_glr_gallery_modules_tied_weights_and_lora.py`: with an adapter, the model without it is the reference.
# - In PyTorch's reference: `torch.nn.functional.kl_div
#   <https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.kl_div.html>`__.
