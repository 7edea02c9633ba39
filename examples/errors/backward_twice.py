r"""
Trying to backward through the graph a second time
==================================================

.. index::
   ! single: loss.backward() works once and fails in the second iteration
   ! single: backward fails only from the second step on

.. in-short::

   This loss contains a part of the graph that an earlier ``backward()`` went through, and that part was freed. Most often it
   is a state that each iteration passes to the next: cut it off with ``detach()``, or set it to zeros for a new sequence.
   Compute a tensor from before the loop in the loop, or ``detach()`` it if it must keep its old value.

   .. code-block:: diff

        loss.backward()
        optimizer.step()
      + state = state.detach()

   **Not this:** ``retain_graph=True``, as the message suggests. After an ``optimizer.step()`` the next error usually follows.
"""

# %%
# The code that raises it
# -----------------------

import torch
from torch import nn

torch.manual_seed(0)

# sphinx_gallery_start_ignore
try:
    # sphinx_gallery_end_ignore
    cell = nn.RNNCell(3, 4)
    optimizer = torch.optim.SGD(cell.parameters(), lr=0.1)
    state = torch.zeros(2, 4)

    for x in torch.ones(3, 2, 3):
        state = cell(x, state)
        loss = state.square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
# sphinx_gallery_start_ignore
except RuntimeError as error:
    message = str(error)
    print("RuntimeError:", message)
assert message.startswith("Trying to backward through the graph a second time")
# sphinx_gallery_end_ignore

# %%
# Why
# ---
# To save memory, ``backward()`` frees what the forward pass kept for it. Below, ``loss2`` is computed from ``state1``, so its
# graph includes the first step, where ``loss1.backward()`` has freed what ``tanh`` kept.

w = torch.tensor(0.5, requires_grad=True)
state1 = torch.tanh(w * 1.0)
loss1 = state1**2
loss1.backward()

state2 = torch.tanh(w * state1)
loss2 = state2**2

# graph: loss2 -- The graph of the second loss reaches back through state1 into the first step

# sphinx_gallery_start_ignore
raised = []
try:
    loss2.backward()
except RuntimeError as error:
    raised.append(str(error))
assert raised == [message]


def _nodes(loss):
    seen, waiting = set(), [loss.grad_fn]
    while waiting:
        node = waiting.pop()
        if node not in seen:
            seen.add(node)
            waiting += [following for following, _ in node.next_functions if following]
    return seen


assert state1.grad_fn in _nodes(loss2)
# sphinx_gallery_end_ignore

# %%
# How to find the line
# --------------------
# Look at the tensors that a step gets from outside, such as the state. One that has a ``grad_fn`` brings its history along:

state = torch.zeros(2, 4)
for step, x in enumerate(torch.ones(2, 2, 3)):
    print(f"step {step}: state.grad_fn is {state.grad_fn and state.grad_fn.name()}")
    state = cell(x, state)

# sphinx_gallery_start_ignore
import warnings

assert state.grad_fn.name() == "TanhBackward0" and torch.zeros(2, 4).grad_fn is None
with (
    warnings.catch_warnings(record=True) as caught,
    torch.autograd.set_detect_anomaly(True),
):
    warnings.simplefilter("always")
    _early = torch.tanh(cell.weight_ih)  # this line is named
    for _ in range(2):
        try:
            _early.sum().backward()
        except RuntimeError as error:
            raised.append(str(error))
assert raised == 2 * [message]
assert "Error detected in TanhBackward0" in str(caught[-1].message)
assert "this line is named" in str(caught[-1].message)
# sphinx_gallery_end_ignore

# %%
# :ref:`Anomaly mode <sphx_glr_gallery_debugging_anomaly_detection.py>` prints the line that created the node.
#
# **With a trainer** that calls backward itself, delete your own ``loss.backward()``. Then look at what the model keeps on
# ``self``, and write ``self.state = state.detach()``. Gradient checkpointing runs forward twice: there, make the state an
# argument. **In a notebook**, run forward again, too.
#
# The fix
# -------
# **A state from the step before:** cut the graph with ``detach()``.

state = torch.zeros(2, 4)
for x in torch.ones(3, 2, 3):
    state = cell(x, state)
    loss = state.square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    state = state.detach()
    print(f"loss {loss.item():.4f}")

# sphinx_gallery_start_ignore
assert torch.equal(state.detach(), state) and state.detach().grad_fn is None
_one_step = len(_nodes(cell(x, torch.zeros(2, 4)).square().mean()))
assert len(_nodes(loss)) == _one_step
_first = nn.Parameter(torch.zeros(2, 4))  # a learned state keeps its gradient
state = _first
for _ in range(2):
    state = cell(x, state)
    state.square().mean().backward()
    state = state.detach()
assert _first.grad.any()
_lstm = nn.LSTMCell(3, 4)
_state = (torch.zeros(2, 4), torch.zeros(2, 4))
for _ in range(3):
    _state = _lstm(x, tuple(s.detach() for s in _state))
    _state[0].sum().backward()
_state, _loss = torch.zeros(2, 4), 0
for _ in range(3):
    _state = cell(x, _state)
    _loss = _loss + _state.square().mean()
assert len(_nodes(_loss)) > 2 * _one_step
_loss.backward()


def _of_second_batch(start):
    """Is the output for a batch of other sequences the one that they get alone?"""
    torch.manual_seed(0)
    rnn, batches = nn.RNN(3, 4), torch.randn(2, 5, 2, 3)
    state = torch.zeros(1, 2, 4)
    for batch in batches:
        outputs, state = rnn(batch, start(state))
        outputs.square().mean().backward()
    return torch.allclose(outputs, rnn(batches[1])[0])


assert _of_second_batch(torch.zeros_like) and not _of_second_batch(torch.detach)
# sphinx_gallery_end_ignore

# %%
# To train through several steps, add their losses, and call ``backward()`` and ``optimizer.step()`` once. The state of an LSTM
# is a tuple: ``state = tuple(s.detach() for s in state)``. If each batch brings new sequences, as often in a spiking network,
# set the state to zeros: ``detach()`` would keep that of other samples.
#
# **A tensor computed once, before the loop** or in ``__init__``, such as a penalty on the weights or an embedding of all nodes:
# compute it in the loop, or in ``forward``. If it is not trained or must keep its old value, as the old log-probabilities in
# PPO, ``detach()`` it instead.

model = nn.Linear(3, 1)
for inputs in torch.ones(3, 2, 3):
    penalty = model.weight.square().sum()  # not above the loop
    loss = model(inputs).mean() + 0.01 * penalty
    loss.backward()


# sphinx_gallery_start_ignore
def _penalty_before():
    penalty = model.weight.square().sum()
    for inputs in torch.ones(3, 2, 3):
        (model(inputs).mean() + 0.01 * penalty).backward()


def _computed_in_init():
    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.log = nn.Parameter(torch.zeros(3))
            self.scale = self.log.exp()

        def forward(self, x):
            return x * self.scale

    scaled = Scaled()
    for inputs in torch.ones(3, 2, 3):
        scaled(inputs).sum().backward()


def _total_in_loop():
    total = 0
    for inputs in torch.ones(3, 2, 3):
        total = total + model(inputs).square().mean()
        total.backward()


def _total(item):
    total = 0
    for inputs in torch.ones(3, 2, 3):
        loss = model(inputs).square().mean()
        if item:
            loss.backward()
        total += loss.item() if item else loss
    if not item:
        total.backward()


def _learns(step_in_loop):
    """One backward after the loop: does a loop over epochs change the weight?"""
    network, total = nn.Linear(3, 1), 0
    before = network.weight.detach().clone()
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
    for _ in range(2):
        total = 0
        optimizer.zero_grad()
        for inputs in torch.ones(3, 2, 3):
            total = total + network(inputs).square().mean()
            if step_in_loop:
                optimizer.zero_grad()
                optimizer.step()
        total.backward()
        if not step_in_loop:
            optimizer.step()
    return not torch.equal(network.weight, before)


def _features_before(detach):
    encoder, head = nn.Sequential(nn.Linear(3, 4), nn.Tanh()), nn.Linear(4, 1)
    features = encoder(torch.ones(2, 3))
    if detach:
        features = features.detach()
    optimizer = torch.optim.SGD(head.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        head(features).square().mean().backward()
        optimizer.step()
    assert torch.equal(features, encoder(torch.ones(2, 3)))  # not out of date


def _policy_moves(where):
    policy = nn.Linear(2, 3)
    before = policy.weight.detach().clone()
    optimizer = torch.optim.SGD(policy.parameters(), lr=0.1)
    states, advantage = torch.ones(4, 2), torch.tensor([1.0, -1.0, 1.0, -1.0])

    def log_prob():
        return torch.log_softmax(policy(states), 1)[range(4), [0, 1, 2, 1]]

    old = log_prob().detach() if where == "detached" else log_prob()
    for _ in range(3):
        old = log_prob() if where == "in the loop" else old
        optimizer.zero_grad()
        (-((log_prob() - old).exp() * advantage).mean()).backward()
        optimizer.step()
    return (policy.weight - before).abs().max() > 1e-3


def _gradient_in_loss(**options):
    torch.manual_seed(0)
    net, at = nn.Sequential(nn.Linear(3, 4), nn.Tanh()), torch.ones(2, 3)
    energy = net(at.requires_grad_()).sum()
    (forces,) = torch.autograd.grad(energy, at, **options)
    (energy.square() + forces.square().sum()).backward()
    trained = net[0].weight.grad
    energy = net(at).sum()
    alone = torch.autograd.grad(energy.square(), net[0].weight)[0]
    return forces.requires_grad, torch.allclose(trained, alone)


def _shared(add):
    shared = torch.exp(model(torch.ones(1, 3))).sum()
    one, other = shared.sin(), shared.cos()
    if add:
        (one + other).backward()
    else:
        one.backward()
        other.backward()


def _episodes(clear):
    torch.manual_seed(0)
    policy, log_probs, rewards, gradients = nn.Linear(2, 3), [], [], []
    for states, received in zip(torch.rand(2, 4, 2), torch.rand(2, 4), strict=True):
        log_probs += torch.log_softmax(policy(states), 1)[:, 0]
        rewards += received
        policy.zero_grad()
        (-sum(p * r for p, r in zip(log_probs, rewards, strict=False))).backward()
        gradients.append(policy.weight.grad)
        policy.weight.grad = None
        if "log_probs" in clear:
            log_probs.clear()
        if "rewards" in clear:
            rewards.clear()
    loss = -(torch.log_softmax(policy(states), 1)[:, 0] * received).sum()
    alone = torch.autograd.grad(loss, policy.weight)[0]
    return torch.allclose(gradients[-1], alone)


def _adversarial(embedded, detach=False, **options):
    """The gradient makes a second input: is it trained as with the direction given?"""
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
    table, labels = nn.Embedding(5, 3), torch.tensor([0, 1])
    x = table(torch.tensor([1, 2])) if embedded else torch.rand(2, 3).requires_grad_()
    loss = nn.functional.cross_entropy(net(x), labels)
    (direction,) = torch.autograd.grad(loss, x, **options)
    step = direction / direction.norm()
    given = step.detach()
    second = nn.functional.cross_entropy(net(x + (given if detach else step)), labels)
    if embedded or (not detach and "create_graph" in options):
        (loss + second).backward()
    else:
        loss.backward()
        second.backward()
    found = net[0].weight.grad
    net.zero_grad()
    first = nn.functional.cross_entropy(net(x.detach()), labels)
    second = nn.functional.cross_entropy(net(x.detach() + given), labels)
    (first + second).backward()
    assert not embedded or table.weight.grad.any()
    return torch.allclose(found, net[0].weight.grad)


def _keys(cache, detach=False):
    torch.manual_seed(0)
    query, key, kept = nn.Linear(3, 3), nn.Linear(3, 3), torch.zeros(2, 4, 3)
    for _ in range(2):
        x = torch.ones(2, 4, 3).cumsum(1)
        keys = key(x)
        if cache:
            kept[:] = keys.detach() if detach else keys
            keys = kept
        nn.functional.scaled_dot_product_attention(query(x), keys, x).sum().backward()
    return key.weight.grad is not None


def _checkpointed(reentrant):
    """Decoder layers that all read the output of one encoder, as in Whisper."""
    torch.manual_seed(0)
    encoder, decoder = nn.Linear(3, 3), [nn.Linear(3, 3) for _ in range(2)]
    encoded = encoder(torch.rand(2, 3)).tanh()
    y = torch.ones(2, 3, requires_grad=True)
    for layer in decoder:

        def block(y, layer=layer):
            return (layer(y) + encoded.square()).tanh()

        if reentrant is None:
            y = block(y)
        else:
            y = torch.utils.checkpoint.checkpoint(block, y, use_reentrant=reentrant)
    y.sum().backward()
    return torch.cat([layer.weight.grad for layer in (encoder, *decoder)])


class _Keeps(nn.Module):
    def __init__(self, detach):
        super().__init__()
        self.cell, self.state, self.detach = cell, torch.zeros(2, 4), detach

    def forward(self, x):
        state = self.cell(x, self.state)
        self.state = state.detach() if self.detach else state
        return state


def _kept(detach, checkpointed=""):
    """The gradient of the third step, with a state on the module and one in the loop."""
    keeper, state, passed = _Keeps(detach), torch.zeros(2, 4), torch.zeros(2, 4)
    recompute = torch.utils.checkpoint.checkpoint
    for x in torch.ones(3, 2, 3).cumsum(0):
        cell.zero_grad()
        if checkpointed == "argument":
            passed = recompute(cell, x, passed.detach(), use_reentrant=False)
            passed.square().mean().backward()
        elif checkpointed:
            recompute(keeper, x, use_reentrant=False).square().mean().backward()
        else:
            keeper(x).square().mean().backward()
        found = cell.weight_hh.grad
        cell.zero_grad()
        state = cell(x, state.detach())
        state.square().mean().backward()
    return torch.allclose(found, cell.weight_hh.grad) and bool(found.any())


def _lbfgs(inside):
    torch.manual_seed(0)
    network, inputs = nn.Linear(3, 1), torch.rand(5, 3)
    steps = torch.optim.LBFGS(network.parameters())
    outputs = network(inputs)

    def closure():
        steps.zero_grad()
        loss = ((network(inputs) if inside else outputs) - 1).square().mean()
        loss.backward()
        return loss

    steps.step(closure)
    return (network(inputs) - 1).square().mean() < 1e-4


def _compiled(add):
    one, other = nn.Linear(3, 1), nn.Linear(3, 1)
    both = torch.compile(
        lambda x: (one(x).square().mean(), other(x).square().mean()),
        backend="aot_eager",
    )
    loss1, loss2 = both(torch.ones(2, 3))
    if add:
        (loss1 + loss2).backward()
    else:
        loss1.backward()
        loss2.backward()
    right = torch.autograd.grad(other(torch.ones(2, 3)).square().mean(), other.weight)[
        0
    ]
    return torch.allclose(other.weight.grad, right)


raised = []
for _function in (
    lambda: _episodes(clear=()),
    lambda: _adversarial(False),
    lambda: _adversarial(True),
    lambda: _keys(cache=True),
    lambda: _lbfgs(inside=False),
    lambda: _checkpointed(True),
    lambda: _kept(False),
    lambda: _compiled(add=False),
    _penalty_before,
    _computed_in_init,
    _total_in_loop,
    lambda: _shared(add=False),
    lambda: _features_before(False),
    lambda: _policy_moves("before the loop"),
    lambda: _gradient_in_loss(),
):
    try:
        _function()
    except RuntimeError as error:
        raised.append(str(error))
assert raised == 15 * [message]
assert torch.allclose(_checkpointed(False), _checkpointed(None)) and _kept(True)
assert not _kept(True, "self") and _kept(True, "argument")
assert not _episodes(clear=("log_probs",)) and _episodes(clear=("log_probs", "rewards"))
for _embedded in (False, True):
    assert _adversarial(_embedded, retain_graph=True)
    assert not _adversarial(_embedded, create_graph=True)
    assert _adversarial(_embedded, detach=True, create_graph=True)
assert _lbfgs(inside=True) and _compiled(add=True)
assert _keys(cache=False) and not _keys(cache=True, detach=True)
_features_before(True)
assert _policy_moves("detached") and not _policy_moves("in the loop")
assert _gradient_in_loss(retain_graph=True) == (False, True)
assert _gradient_in_loss(create_graph=True) == (True, False)
assert _learns(step_in_loop=False) and not _learns(step_in_loop=True)
_total(item=True)
_total(item=False)
_shared(add=True)
# sphinx_gallery_end_ignore

# %%
# **A running total:** ``total = total + loss`` holds every graph so far. For the log, write ``total += loss.item()``. To train
# on it, call ``total.backward()`` and ``optimizer.step()`` after the loop.
#
# **A loss that contains a gradient**, such as forces or a gradient penalty: write ``create_graph=True`` in
# ``torch.autograd.grad``. With ``retain_graph=True``, :ref:`that part of the loss trains nothing
# <sphx_glr_gallery_differentiation_higher_order.py>`. This is right if the gradient only makes a new input, as in adversarial
# training.
#
# **A list that is never emptied**, of log-probabilities or hooked outputs: ``log_probs.clear()`` and
# ``rewards.clear()`` after the step.
#
# **Gradient checkpointing**: ``checkpoint(..., use_reentrant=False)``, in a trainer
# ``gradient_checkpointing_kwargs={"use_reentrant": False}``.
#
# **A key-value cache**: train without it, ``use_cache=False``.
#
# **LBFGS**: compute the loss from the model in the closure.
#
# **torch.compile**: add the losses of one compiled call, or compile the parts separately.
#
# **Two losses that share a part:** add them, and call ``(loss1 + loss2).backward()``. First detach what one of them must not
# train, such as the advantage in the actor's loss. If the second needs the new weights, run the forward pass again. In a GAN,
# the critic's loss does not need the generator's graph:

generator = nn.Linear(2, 3)
critic = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1))

fake = generator(torch.ones(5, 2))
critic.zero_grad()  # the last line writes to the critic's gradients, too
critic(fake.detach()).mean().backward()  # then the step of the critic
generator.zero_grad()
(-critic(fake).mean()).backward()  # then the step of the generator

# sphinx_gallery_start_ignore
assert generator.weight.grad.any()
for _ in range(2):  # each step has the gradients that its loss has alone
    fake = generator(torch.ones(5, 2))
    _alone = (
        torch.autograd.grad(critic(fake.detach()).mean(), critic[0].weight)[0],
        torch.autograd.grad(-critic(fake).mean(), generator.weight, retain_graph=True)[
            0
        ],
    )
    critic.zero_grad()
    critic(fake.detach()).mean().backward()
    assert torch.allclose(critic[0].weight.grad, _alone[0]) and _alone[0].any()
    generator.zero_grad()
    (-critic(fake).mean()).backward()
    assert torch.allclose(generator.weight.grad, _alone[1])
    assert not torch.allclose(critic[0].weight.grad, _alone[0])
fake = generator(torch.ones(5, 2))
critic(fake).mean().backward()
raised = []
try:
    (-critic(fake).mean()).backward()
except RuntimeError as error:
    raised.append(str(error))
assert raised == [message]
# actor and critic share a body: the sum trains the critic by the actor's loss, too
_body, _actor, _value = nn.Linear(2, 3), nn.Linear(3, 2), nn.Linear(3, 1)


def _of_value(detach, critic_only=False):
    body = torch.tanh(_body(torch.ones(4, 2)))
    value = _value(body).squeeze(1)
    advantage = 1.0 - (value.detach() if detach else value)
    actor = -(torch.log_softmax(_actor(body), 1)[:, 0] * advantage).mean()
    critic = (1.0 - value).square().mean()
    loss = critic if critic_only else actor + critic
    return torch.autograd.grad(loss, _value.weight)[0]


_alone = _of_value(True, critic_only=True)
assert torch.allclose(_of_value(True), _alone)
assert not torch.allclose(_of_value(False), _alone)
# sphinx_gallery_end_ignore

# %%
# What not to do
# --------------
# ``retain_graph=True`` **in the loop above.** The gradient then goes back through the earlier steps too, and needs the weights
# that ``optimizer.step()`` has changed:

# sphinx_gallery_start_ignore
raised = []
try:
    # sphinx_gallery_end_ignore
    state = torch.zeros(2, 4)
    for x in torch.ones(3, 2, 3):
        state = cell(x, state)
        loss = state.square().mean()
        optimizer.zero_grad()
        loss.backward(retain_graph=True)
        optimizer.step()
# sphinx_gallery_start_ignore
except RuntimeError as error:
    raised.append(str(error))
    print(f"RuntimeError: ...{raised[0].partition(' Hint')[0].partition('tion')[2]}")
assert len(raised) == 1
assert "has been modified by an inplace operation: [torch.Float" in raised[0]
# sphinx_gallery_end_ignore

# %%
# That is :ref:`modified by an inplace operation <sphx_glr_gallery_errors_modified_in_place.py>`.
#
# ``retain_graph=True`` is right if you want the gradients of two losses separately.
#
# See also
# --------
# - :ref:`sphx_glr_gallery_graphs_graph_lifetime.py`: what is freed, and when.
# - `Tensor.backward <https://docs.pytorch.org/docs/stable/generated/torch.Tensor.backward.html>`__ in PyTorch's reference.
