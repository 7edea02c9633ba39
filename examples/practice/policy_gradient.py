r"""
Policy gradient: REINFORCE, log_prob, rsample, detach
=====================================================

.. index::
   single: the reward has no gradient
   single: actor-critic: what to detach
   single: detach the advantage, the value or the reward
   single: rsample or sample
   single: exp(logp - logp.detach())
   single: sum log_prob over the action dimension
   single: NotImplementedError without a message from rsample

.. in-short::

   An action from ``sample()`` has no gradient, but its log-probability has one:

   .. code-block:: python

      policy = Categorical(logits=actor(state))
      action = policy.sample()
      loss = -(policy.log_prob(action) * advantage.detach()).mean()

   On average, the gradient of this loss is that of the average reward, with a minus sign. The advantage is the reward minus
   a baseline, such as a critic's value: this often lowers the noise. It is a plain weight, so detach it, even if the reward
   comes from a network. If the reward is a differentiable function of a continuous action, you can use ``rsample()``
   instead, and a reward that is not detached.
"""

# %%
# The reward has no gradient
# --------------------------
# Three slot machines pay 10, 11 and 12 on average. A policy picks one, and its three logits should learn to pick the last. A
# game has no derivative, so the loss uses the log-probability of the action. It has a minus sign, because an optimizer
# minimizes, and the policy should earn as much as possible:

import torch
from torch.distributions import Categorical, Normal

torch.manual_seed(0)
payout = torch.tensor([10.0, 11.0, 12.0])


def play(action):
    return payout[action] + torch.randn(action.shape)


logits = torch.tensor([1.0, 0.0, 0.0], requires_grad=True)
optimizer = torch.optim.SGD([logits], lr=0.2)
for step in range(101):
    policy = Categorical(logits=logits)
    action = policy.sample((100,))  # 100 games
    reward = play(action)
    advantage = reward - reward.mean()
    loss = -(policy.log_prob(action) * advantage).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step in (0, 10, 100):
        probs = policy.probs.detach().numpy().round(2)
        print(f"step {step:3}: probabilities {probs}, loss {loss.item():5.2f}")

# graph: loss -- Only log_prob leads back to the logits; the action and the reward are constants

# sphinx_gallery_start_ignore
assert not reward.requires_grad and not action.requires_grad
assert policy.probs[2] > 0.9 and abs(loss.item()) < 0.5
with torch.no_grad():  # a policy that acts under no_grad
    assert not Categorical(logits=logits).log_prob(action).requires_grad
_logits = torch.tensor([1.0, 0.0, 0.0], requires_grad=True)
_action = torch.tensor(2)
(-Categorical(logits=_logits).log_prob(_action) * 12).backward()
_one_hot = torch.eye(3)[_action]
assert torch.allclose(_logits.grad, -12 * (_one_hot - _logits.detach().softmax(0)))
# sphinx_gallery_end_ignore

# %%
# **The gradient goes through** ``log_prob`` **alone. The advantage is its weight, a plain number.** The value of the loss says
# nothing.
#
# How good is this gradient? You know what the machines pay, so you can compute the average reward of the first policy, and its
# exact gradient:

logits = torch.tensor([1.0, 0.0, 0.0], requires_grad=True)
average = logits.softmax(0) @ payout
(exact,) = torch.autograd.grad(average, logits)
print(f"average reward {average.item():.2f}")
print("gradient", exact.numpy().round(2))

# sphinx_gallery_start_ignore
_probs = logits.detach().softmax(0)
assert torch.allclose(exact, _probs * (payout - _probs @ payout), atol=1e-5)
assert abs(average.item() - 10.64) < 0.005
# sphinx_gallery_end_ignore

# %%
# Now play 100,000 games. Each has its own row of logits, whose gradient is the estimate from this game.

rows = logits.detach().expand(100_000, 3).clone().requires_grad_()
policy = Categorical(logits=rows)
action = policy.sample()
reward = play(action)


def estimates(weight):
    gain = policy.log_prob(action) * weight
    return torch.autograd.grad(gain.sum(), rows, retain_graph=True)[0]


plain, less_noisy = estimates(reward), estimates(reward - reward.mean())

# %%
# .. how-measured:: This code draws the running mean of the estimates for the third logit.

import matplotlib.pyplot as plt
import pandas as pd


def plot_running_means():
    games = torch.logspace(1, 5, 400).long()
    _, ax = plt.subplots(figsize=(7, 2.8), layout="constrained")
    for gradients, color, name in (
        (plain, "#c2410c", "log_prob * reward"),
        (less_noisy, "#2563eb", "log_prob * (reward - baseline)"),
    ):
        sums = gradients[:, 2].cumsum(0)
        ax.plot(games, sums[games - 1] / games, color=color, label=name)
    ax.axhline(exact[2], color="#1e293b", lw=1, ls="--", label="exact")
    ax.set(xscale="log", xlabel="number of games", ylabel="mean of the gradient")
    ax.set_title("With this baseline, the mean settles sooner")
    ax.legend(loc="lower right")


# %%
# The running mean of the estimates for the third logit, whose exact gradient is 0.29:

# figure: Running means of the estimates for the third logit, from 10 to 100,000 games, on a logarithmic axis. Without a
#   baseline the curve swings widely and nears the exact value only after thousands of games. With the baseline it stays close
#   to it from the start.
plot_running_means()

# sphinx_gallery_start_ignore
assert (plain.mean(0) - exact).abs().max() < 0.08
assert (less_noisy.mean(0) - exact).abs().max() < 0.01
_spreads = plain.std(0)[2].item(), less_noisy.std(0)[2].item()
assert 4 < _spreads[0] < 5.5 and 0.5 < _spreads[1] < 0.7
_running = [
    (g[:, 2].cumsum(0) / torch.arange(1, len(g) + 1) - exact[2]).abs()
    for g in (plain, less_noisy)
]
assert _running[0][9:1000].max() > 0.5 and _running[0][10_000:].max() < 0.2
assert _running[1][9:].max() < 0.7
assert (_running[1][9:].mean() < 0.5 * _running[0][9:].mean()).item()
_policy = Categorical(logits=logits)
_each = torch.stack(
    [
        torch.autograd.grad(
            _policy.log_prob(torch.tensor(a)), logits, retain_graph=True
        )[0]
        for a in range(3)
    ]
)
assert (_probs @ _each).abs().max() < 1e-6
assert torch.allclose((_probs * payout) @ _each, exact, atol=1e-5)
# episodes of two actions: the whole return, the return from here on, one reward
_both = torch.tensor([[0.3, -0.2], [0.5, 0.1], [-0.4, 0.7]], requires_grad=True)
_first, _second = torch.tensor([1.0, 4.0]), torch.tensor([[2.0, 7.0], [5.0, 3.0]])
_expected, _whole, _to_go, _own = 0, 0, 0, 0
for _a in range(2):
    for _b in range(2):
        _log_a = _both[0].log_softmax(0)[_a]
        _log_b = _both[1 + _a].log_softmax(0)[_b]
        _chance, _r1, _r2 = (_log_a + _log_b).exp(), _first[_a], _second[_a, _b]
        _expected = _expected + _chance * (_r1 + _r2)
        _chance = _chance.detach()
        _whole = _whole + _chance * (_log_a + _log_b) * (_r1 + _r2)
        _to_go = _to_go + _chance * (_log_a * (_r1 + _r2) + _log_b * _r2)
        _own = _own + _chance * (_log_a * _r1 + _log_b * _r2)
_wanted = torch.autograd.grad(_expected, _both, retain_graph=True)[0]
for _gain, _right in ((_whole, True), (_to_go, True), (_own, False)):
    _found = torch.autograd.grad(_gain, _both, retain_graph=True)[0]
    assert torch.allclose(_found, _wanted, atol=1e-5) is _right
# sphinx_gallery_end_ignore

# %%
# Both ways, the mean approaches the exact gradient. The spread of a single estimate, its standard deviation, falls from about 5
# to 0.6.

# %%
# Why log_prob
# ------------
# The average reward is a sum over the actions, weighted by their probabilities. Since :math:`\nabla p = p \, \nabla \log p`,
# its gradient is an average again, and a sample can estimate it:
#
# .. math:: \nabla \sum_a p(a) \, r(a) = \sum_a p(a) \, r(a) \, \nabla \log p(a)
#
# A baseline is a number that does not depend on the action. It changes nothing on average, because the probabilities sum to 1,
# so :math:`\sum_a p(a) \, \nabla \log p(a) = 0`. In an episode of several actions, the weight of each action is the return:
# the sum of the rewards from this action on.

# %%
# rsample or sample
# -----------------
# ``rsample()`` writes a sample of a normal distribution as ``mean + std * noise``, so its action has a gradient. If the reward
# is a differentiable function of the action, the gradient can go through the action itself. Take the reward
# :math:`-(a - 3)^2`: at the mean 0, the exact gradient of the average is 6.
#
# .. how-measured:: This code makes 100,000 estimates in four ways, and tabulates their mean and their standard deviation.


def reward_of(action):
    return -((action - 3) ** 2)


def four_ways():
    means = torch.zeros(100_000, requires_grad=True)
    policy = Normal(means, 1.0)
    fixed, moving = policy.sample(), policy.rsample()
    reward = reward_of(fixed)
    gains = {
        "log_prob * reward": policy.log_prob(fixed) * reward,
        "with a baseline": policy.log_prob(fixed) * (reward - reward.mean()),
        "reward of rsample()": reward_of(moving),
        "log_prob of rsample()": policy.log_prob(moving) * reward_of(moving).detach(),
    }
    for name, gain in gains.items():
        (gradients,) = torch.autograd.grad(gain.sum(), means, retain_graph=True)
        yield name, gradients


ways = {name: (g.mean().item(), g.std().item()) for name, g in four_ways()}
table = pd.DataFrame(ways, index=["mean", "spread"]).T

# %%
# The estimates of the exact 6:

# sphinx_gallery_start_ignore
assert (table["mean"] - [6, 6, 6, 0]).abs().max() < 0.3
assert (table["spread"] - [15, 9.2, 2, 0]).abs().max() < 0.5
assert table["mean"].iloc[3] == table["spread"].iloc[3] == 0
_mean = torch.zeros((), requires_grad=True)
_average = reward_of(_mean) - 1  # of a normal distribution with the variance 1
assert torch.autograd.grad(_average, _mean)[0] == 6
assert not Normal(_mean, 1.0).sample().requires_grad
assert Normal(_mean, 1.0).rsample().requires_grad and not Categorical.has_rsample
_refused = []
try:
    Categorical(logits=logits).rsample()
except NotImplementedError as error:
    _refused.append(str(error))
assert _refused == [""]
_policy = Normal(_mean, 1.0)
_drawn = _policy.rsample()
for _action, _moves in ((_drawn, False), (_drawn.detach(), True)):
    _logp = _policy.log_prob(_action)
    _slope = torch.autograd.grad(_logp, _mean, retain_graph=True)[0]
    assert _slope == (_drawn if _moves else 0)
from torch.distributions import (
    Bernoulli,
    LogNormal,
    MixtureSameFamily,
    Poisson,
    VonMises,
    kl_divergence,
)

_five = torch.full((5,), 0.5, requires_grad=True)
_mixture = MixtureSameFamily(Categorical(logits=_five), Normal(_five, 1.0))
for _other in (Bernoulli(_five), Poisson(_five), VonMises(_five, 1.0), _mixture):
    assert not _other.has_rsample
_other = LogNormal(_five, 1.0)  # here the gradient is not 0
(_slope,) = torch.autograd.grad(_other.log_prob(_other.rsample()).sum(), _five)
assert (_slope + 1).abs().max() < 1e-4
_std = torch.tensor(
    0.7, requires_grad=True
)  # the entropy's gradient, with a minus sign
_other = Normal(_mean, _std)
(_slope,) = torch.autograd.grad(_other.log_prob(_other.rsample()), _std)
(_wanted,) = torch.autograd.grad(-_other.entropy(), _std)
assert abs(_slope - _wanted) < 1e-5 and _wanted < -1


def _encoder_gradient(draw):
    torch.manual_seed(0)
    mean = torch.tensor([0.5, -1.0], requires_grad=True)
    code = Normal(mean, 1.0)
    drawn = getattr(code, draw)()
    kl = kl_divergence(code, Normal(torch.zeros(2), 1.0)).sum()
    loss = (3 * drawn - 1).square().sum() + kl
    return torch.autograd.grad(loss, mean)[0], torch.autograd.grad(
        kl_divergence(Normal(mean, 1.0), Normal(torch.zeros(2), 1.0)).sum(), mean
    )[0]


_whole, _kl = _encoder_gradient("sample")
assert torch.equal(_whole, _kl)
_whole, _kl = _encoder_gradient("rsample")
assert (_whole - _kl).abs().min() > 0.1
# sphinx_gallery_end_ignore
(table.round(1) + 0.0).map("{:.1f}".format)

# %%
# ``rsample()`` is the least noisy of the right ways in this table. The last row is the trap: if the mean moves, the action
# moves with it, and stays as likely (`pytorch#10943 <https://github.com/pytorch/pytorch/issues/10943>`__). So for a weighted
# ``log_prob``, detach the action, or call ``sample()``. Keep its gradient in an entropy bonus, as in soft actor-critic.
#
# In a VAE, ``sample()`` is a silent mistake: all that the encoder gets is the gradient of ``kl_divergence``. Some
# distributions lack ``rsample()``: ``Categorical`` raises a ``NotImplementedError`` without a message. See
# :ref:`sphx_glr_gallery_practice_argmax_round_and_sampling.py`.

# %%
# exp(logp - logp.detach())
# -------------------------
# Some GRPO code has ``torch.exp(logp - logp.detach()) * advantage``. The exponential is 1, and its gradient is that of ``logp``
# (asked in `trl#2769 <https://github.com/huggingface/trl/issues/2769>`__). So the gradient is that of ``logp * advantage``:

action = Categorical(logits=logits).sample((1000,))
advantage = payout[action] - 11
logp = Categorical(logits=logits).log_prob(action)

for name, gain in {
    "logp": logp * advantage,
    "exp(logp - logp.detach())": (logp - logp.detach()).exp() * advantage,
}.items():
    (gradient,) = torch.autograd.grad(gain.mean(), logits, retain_graph=True)
    value, gradient = gain.mean().item(), gradient.numpy().round(2)
    print(f"{name:<25}  value {value:5.2f}  gradient {gradient}")

# sphinx_gallery_start_ignore
_once = (logp - logp.detach()).exp()
assert torch.equal(_once, torch.ones_like(logp))
_pair = [
    torch.autograd.grad((weight * advantage).mean(), logits, retain_graph=True)[0]
    for weight in (logp, _once)
]
assert torch.allclose(*_pair, atol=1e-5) and _pair[0].abs().max() > 0.1
_new = torch.tensor([-1.0, 0.0, 1.0], requires_grad=True)  # after some steps
_old_action = Categorical(logits=logits).sample((100_000,))
_old_logp = Categorical(logits=logits).log_prob(_old_action).detach()
_logp, _gain = Categorical(logits=_new).log_prob(_old_action), payout[_old_action] - 11
_gradients = [
    torch.autograd.grad(gain, _new, retain_graph=True)[0]
    for gain in (
        (_logp * _gain).mean(),
        ((_logp - _old_logp).exp() * _gain).mean(),
        _new.softmax(0) @ (payout - 11),
    )
]
assert (_gradients[1] - _gradients[2]).abs().max() < 0.02
assert _gradients[0][1] > 0.07 and _gradients[2][1] < -0.13  # the wrong sign
_again = Categorical(logits=logits).log_prob(action)  # an old_logp that is not detached
(_found,) = torch.autograd.grad(((logp - _again).exp() * advantage).mean(), logits)
assert _found.abs().max() < 1e-5
# sphinx_gallery_end_ignore

# %%
# Both need actions of the current policy. After a step of the optimizer, the same actions come from an older one. Then keep
# ``old_logp`` from the draw, detached, and use :ref:`the ratio
# <sphx_glr_gallery_practice_preference_and_policy_losses.py>` ``exp(logp - old_logp)``. Without it, the gradient can have the
# wrong sign. If you do not detach ``old_logp``, it is 0 before the first step.

# %%
# What people get wrong
# ---------------------
# **The advantage is not detached.** A critic learns the average reward, and its value is the baseline. Without ``detach``,
# the loss of the actor has a gradient for the critic too. To see it, only the critic learns in this loop:


def learned_value(detach):
    value = torch.tensor(0.0, requires_grad=True)
    optimizer = torch.optim.SGD([value], lr=0.2)
    path = []
    for _ in range(60):
        policy = Categorical(logits=logits.detach().expand(500, 3))
        action = policy.sample()
        advantage = play(action) - value
        weight = advantage.detach() if detach else advantage
        actor_loss = -(policy.log_prob(action) * weight).mean()
        loss = actor_loss + advantage.square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        path.append(value.item())
    return sum(path[-30:]) / 30


values = {detach: learned_value(detach) for detach in (True, False)}
print(f"average reward:  {average.item():.1f}")
print(f"with detach:     {values[True]:.1f}")
print(f"without detach:  {values[False]:.1f}")

# sphinx_gallery_start_ignore
_entropy = Categorical(logits=logits.detach()).entropy()
assert abs(values[True] - average) < 0.05
assert abs(values[False] - average - _entropy / 2) < 0.05
_value = torch.tensor(3.0, requires_grad=True)
_policy, _action = Categorical(logits=logits), torch.tensor([0, 2, 2, 1])
_advantage = payout[_action] - _value
_given = [
    torch.autograd.grad(
        (_policy.log_prob(_action) * weight).mean(),
        (logits, _value),
        retain_graph=True,
        allow_unused=True,
    )
    for weight in (_advantage, _advantage.detach())
]
assert torch.equal(_given[0][0], _given[1][0])
assert _given[0][1] != 0 and _given[1][1] is None
_judge = torch.nn.Linear(3, 1)  # a reward from a network
_reward = _judge(torch.eye(3)[_action]).squeeze(1)
(-_policy.log_prob(_action) * _reward).mean().backward()
assert _judge.weight.grad.any()
_trunk = torch.tensor([0.3, -0.2], requires_grad=True)  # shared by actor and critic
_shared = []
for _cut in (False, True):
    _policy = Categorical(logits=torch.outer(_trunk, torch.tensor([1.0, 2.0, 3.0])))
    _value = _trunk * 5
    _advantage = payout[:2] - (_value.detach() if _cut else _value)
    _gain = (_policy.log_prob(torch.tensor([0, 2])) * _advantage).mean()
    _shared.append(torch.autograd.grad(_gain, _trunk)[0])
assert (_shared[0] - _shared[1]).abs().min() > 0.1
logits.grad = None
# sphinx_gallery_end_ignore

# %%
# The value is too high. In this example the actor's own gradient does not change, so nothing looks wrong there
# (`encode-attend-navigate#2 <https://github.com/astariul/encode-attend-navigate-pytorch/issues/2>`__). Detach only in the
# actor's loss: the critic's loss needs the gradient of its value, though not of :ref:`the value of the next state
# <sphx_glr_gallery_modules_ema_and_stop_gradient.py>`.

# %%
# **The shapes differ.** The ``log_prob`` has the shape ``(N,)``. A critic that ends in ``nn.Linear(..., 1)`` returns ``(N,
# 1)``. If the rewards are a column too, so is the advantage, and the product has the shape ``(N, N)``, without an error:

policy = Categorical(logits=logits.expand(1000, 3))
action = policy.sample()
reward = play(action)
for advantage in (reward - reward.mean(), (reward - reward.mean())[:, None]):
    gain = policy.log_prob(action) * advantage
    (gradient,) = torch.autograd.grad(gain.mean(), logits, retain_graph=True)
    print(tuple(gain.shape), "gradient", gradient.numpy().round(2) + 0.0)

# sphinx_gallery_start_ignore
assert gain.shape == (1000, 1000) and gradient.abs().max() < 1e-5
_right = policy.log_prob(action) * advantage[:, 0]
(_right,) = torch.autograd.grad(_right.mean(), logits, retain_graph=True)
assert (_right - exact).abs().max() < 0.1 and _right[2] > 0.2
_shifted = (policy.log_prob(action) * (advantage + 5)).mean()
_mean = 5 * policy.log_prob(action).mean()
for _found, _expected in zip(
    torch.autograd.grad(_shifted, logits, retain_graph=True),
    torch.autograd.grad(_mean, logits, retain_graph=True),
    strict=True,
):
    assert torch.allclose(_found, _expected, atol=1e-4)
_values = torch.tensor([[4.0], [7.0]], requires_grad=True)  # of two states
_rewards = torch.tensor([0.0, 10.0])
for _given, _answer in ((_values, [5.0, 5.0]), (_values.squeeze(-1), [0.0, 10.0])):
    assert (_rewards - _given).shape == ((2, 2) if _given is _values else (2,))
    (_slope,) = torch.autograd.grad((_rewards - _given).square().sum(), _values)
    _best = _values.flatten() - _slope.flatten() / (4 if _given is _values else 2)
    assert torch.allclose(_best, torch.tensor(_answer), atol=1e-5)
assert Categorical(logits=torch.zeros(4, 3)).log_prob(torch.zeros(4, 1)).shape == (4, 4)
_means = torch.zeros(2, 2, requires_grad=True)  # as many games as action dimensions
_normal, _moves = Normal(_means, 1.0), torch.tensor([[1.0, 2.0], [3.0, 4.0]])
_weights = torch.tensor([1.0, -1.0])
assert _normal.log_prob(_moves).shape == (2, 2)
_summed = _normal.log_prob(_moves).sum(-1)
(_slope,) = torch.autograd.grad((_summed * _weights).sum(), _means)
assert torch.allclose(_slope, _moves * _weights[:, None])
(_slope,) = torch.autograd.grad((_normal.log_prob(_moves) * _weights).sum(), _means)
assert torch.allclose(_slope, _moves * _weights)  # a sign for each dimension, not game
# sphinx_gallery_end_ignore

# %%
# Now each game is weighted by the mean of all advantages, which is 0, so the policy learns nothing (`rl#1243
# <https://github.com/pytorch/rl/issues/1243>`__). If only the value is a column, ``reward - value`` is ``(N, N)`` already,
# and a critic with a squared loss learns one average for all states. The ``log_prob`` of a column of actions is ``(N, N)``,
# too. Call ``squeeze(-1)`` on every column.
#
# With actions of shape ``(N, A)``, the ``log_prob`` of a ``Normal`` has the shape ``(N, A)``. Call ``.sum(-1)`` on it before
# you multiply.

# %%
# **torch.tensor of the log-probabilities.** It copies numbers, without the graph (`SLM-Lab#133
# <https://github.com/kengz/SLM-Lab/pull/133>`__), and PyTorch warns only once. Use ``torch.stack``, or ``torch.cat`` if each
# has the shape ``(1,)``.

# sphinx_gallery_start_ignore
import subprocess
import sys

log_probs = [policy.log_prob(action)[i] for i in range(4)]
kept = torch.stack(log_probs)
_singles = [value.reshape(1) for value in log_probs]
assert torch.stack(_singles).shape == (4, 1) and torch.cat(_singles).shape == (4,)
assert torch.equal(torch.cat(_singles), kept) and torch.cat(_singles).requires_grad
_code = """
import torch, warnings
warnings.simplefilter("always")
x = torch.ones(2, requires_grad=True)
for _ in range(3):
    assert not torch.tensor([x[0], x[1]]).requires_grad
"""
_told = subprocess.run([sys.executable, "-c", _code], capture_output=True, text=True)
assert _told.returncode == 0 and _told.stderr.count("Converting a tensor") == 1
# sphinx_gallery_end_ignore

# %%
# Exercise
# --------
# You play two games, and the baseline is the mean of both rewards. Is the gradient right on average? Compute it without noise,
# over the nine pairs of actions.
#
# .. solution::
#
# It is half of the exact one, because the baseline contains the game's own reward and so depends on the action. With *n*
# games, the factor is :math:`1 - \frac{1}{n}`. A baseline from the other games alone gives the exact one.

pairs = torch.cartesian_prod(torch.arange(3), torch.arange(3))
log_probs = Categorical(logits=logits).log_prob(pairs)
chance = log_probs.sum(1).exp().detach()
reward = payout[pairs]

for name, baseline in {
    "mean of both": reward.mean(1, keepdim=True),
    "the other game": reward.flip(1),
}.items():
    gain = (log_probs * (reward - baseline)).mean(1)
    (gradient,) = torch.autograd.grad(chance @ gain, logits, retain_graph=True)
    ratio = (gradient / exact).numpy().round(2)
    print(f"{name:<15} gradient / exact: {ratio}")
assert torch.allclose(gradient, exact, atol=1e-5)

# sphinx_gallery_start_ignore
for _n in (2, 3, 5):
    _games = torch.cartesian_prod(*[torch.arange(3)] * _n)
    _logs = Categorical(logits=logits).log_prob(_games)
    _paid = payout[_games]
    _gain = (_logs * (_paid - _paid.mean(1, keepdim=True))).mean(1)
    (_found,) = torch.autograd.grad(_logs.sum(1).exp().detach() @ _gain, logits)
    assert torch.allclose(_found, (1 - 1 / _n) * exact, atol=1e-5)
    _others = (_paid.sum(1, keepdim=True) - _paid) / (_n - 1)
    _logs = Categorical(logits=logits).log_prob(_games)
    _gain = (_logs * (_paid - _others)).mean(1)
    (_found,) = torch.autograd.grad(_logs.sum(1).exp().detach() @ _gain, logits)
    assert torch.allclose(_found, exact, atol=1e-5)
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_practice_argmax_round_and_sampling.py`, straight-through and Gumbel-softmax.
# - :ref:`sphx_glr_gallery_practice_preference_and_policy_losses.py`, clip, KL penalty and DPO.
# - :ref:`sphx_glr_gallery_tensors_detach_clone_data.py`, what ``detach`` cuts and what it shares.
# - :ref:`sphx_glr_gallery_errors_no_grad_fn.py`, the error of a loss without a graph.
# - :ref:`sphx_glr_gallery_debugging_silent_mistakes.py`, more training loops that are wrong without an error.
# - In PyTorch's reference: `torch.distributions <https://docs.pytorch.org/docs/stable/distributions.html>`__, with the score
#   function and the pathwise derivative.
