r"""
one of the variables needed for gradient computation has been modified by an inplace operation
==============================================================================================

.. index::
   ! single: which is output 0 of AsStridedBackward0, is at version 2
   ! single: inplace=False everywhere and the error stays
   ! single: GAN training fails in the second backward, with optimizer.step() in between

.. in-short::

   Backward needs a tensor that the forward pass saved, and something has written to that tensor since. Let the write make a
   new tensor. If it is the ``optimizer.step()`` of another network, compute your loss after it. If your loss takes only a
   number from there, such as an advantage, ``detach()`` that.

   .. code-block:: diff

      - gate += 1
      + gate = gate + 1

   **Not this:** a write through ``.data``. The message is gone, and the gradient is wrong.
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
    layer = nn.Linear(3, 4)
    x = torch.ones(2, 3)

    gate = torch.sigmoid(layer(x))
    gate += 1
    gate.sum().backward()
# sphinx_gallery_start_ignore
except RuntimeError as error:
    message = str(error)
    print("RuntimeError:", message)
assert message.startswith("one of the variables needed for gradient computation")
assert "[torch.FloatTensor [2, 4]]" in message and "output 0 of Sigmoid" in message
assert "is at version 1; expected version 0 instead" in message


def _says(saved, recorded=True):
    """What the message names if an operation that saves its input is followed by ``+=``."""
    loss = (saved * saved).sum()
    with torch.set_grad_enabled(recorded and not saved.is_leaf):
        saved += 1
    try:
        loss.backward()
    except RuntimeError as error:
        return str(error).partition("inplace operation: ")[2]


assert "[2]], which is output 0 of Add" in _says(torch.ones(2, requires_grad=True) * 2)
assert "output 0 of Addmm" in _says(layer(x), recorded=False)


def _raises(forward, *arguments):
    try:
        forward(*arguments).sum().backward()
    except RuntimeError as error:
        return "modified by an inplace operation" in str(error)
    return False


def _part():
    gate = torch.sigmoid(layer(x))
    gate.view(-1)[0] = 0
    return gate


assert _raises(_part)
# sphinx_gallery_end_ignore

# %%
# Read the message from the middle:
#
# - ``[torch.FloatTensor [2, 4]]``: type and shape of the tensor as it was *saved*. ``nn.Linear`` saves its weight transposed:
#   ``[3, 4]`` can be a weight of shape ``(4, 3)``.
# - ``output 0 of Sigmoid``: the operation that made the tensor, or one that wrote to it. For the transposed weight of a linear
#   layer it says ``AsStrided``.
# - ``is at version 1; expected version 0``: a tensor counts writes, also to a part of it, as in ``gate[0] = 0``.
#
# Why
# ---
# The derivative of the sigmoid is :math:`s (1 - s)`, where :math:`s` is its result. So its node keeps the result: the
# saved tensor and ``gate`` share one memory and one counter.

gate = torch.sigmoid(layer(x))
print("saved is gate:", gate.grad_fn._saved_result.data_ptr() == gate.data_ptr())

# graph: gate (saved) -- The node of sigmoid has saved its own result, and that is gate

# sphinx_gallery_start_ignore
assert gate.grad_fn._saved_result.data_ptr() == gate.data_ptr() and gate._version == 0
# sphinx_gallery_end_ignore

# %%
# Each operation saves what its derivative needs: ``exp`` its result, ``x**2`` its input, ``10 * x`` neither. So a ReLU with
# ``inplace=True`` works after a linear layer, a convolution or a batch norm, if nothing else uses the result. It raises after a
# sigmoid, a tanh or a softmax, because those save their result.
#
# The fix
# -------
# **The write is in the model.** Write to a new tensor: ``gate = gate + 1`` instead of ``gate += 1``, ``nn.ReLU()`` instead of
# ``nn.ReLU(inplace=True)``, ``out = out + skip`` instead of ``out += skip``. Give it to whoever reads the old one, as with
# ``features = [h * scale for h in features]`` for a loop of ``h *= scale``. For a part, as in ``gate[0] = 0``, write to
# ``new = gate.clone()`` and read from ``gate``. A loop that fills a tensor and reads it again can collect the parts in
# a list: ``torch.stack(parts, dim)``. If forward reads and then updates a queue or codebook, read from ``queue.clone()``.

gate = torch.sigmoid(layer(x))
gate = gate + 1
gate.sum().backward()
print("layer.weight.grad:", layer.weight.grad[0])


# sphinx_gallery_start_ignore
def _relu_after(operation):
    return nn.ReLU(inplace=True)(operation(torch.rand(4, 4, requires_grad=True)))


def _used_before():
    hidden = layer(x)
    return hidden.square() + nn.ReLU(inplace=True)(hidden)


def _used_after(inplace):
    hidden = layer(x) - 10
    return (nn.ReLU(inplace)(hidden) + hidden).sum()


with torch.random.fork_rng():
    _fine = [nn.Linear(4, 4), nn.Conv1d(4, 4, 1), nn.BatchNorm1d(4)]
    _fine += [nn.BatchNorm1d(4).eval(), lambda x: 10 * x, torch.square]
    _saving = [torch.sigmoid, torch.tanh, torch.exp]
    assert not any(_raises(_relu_after, operation) for operation in _fine)
    assert all(_raises(_relu_after, it) for it in [*_saving, nn.Softmax(-1)])
_scale, _learned = nn.Parameter(torch.tensor(2.0)), []
for _kept in (False, True):  # in a loop over a list, the list has the old tensors
    _features = [torch.sigmoid(layer(x)) for _ in range(2)]
    if _kept:
        _features = [h * _scale for h in _features]
    else:
        for h in _features:
            h = h * _scale
    _learned.append(torch.cat(_features).sum())
assert torch.allclose(2 * _learned[0], _learned[1])
assert _raises(_used_before)
assert _used_after(False) < 0 and _used_after(True) == 0  # silently another number


def _parts(copy):
    gate = torch.sigmoid(layer(x))
    gate = gate.clone() if copy else gate
    gate[0] = 0
    return gate


with torch.no_grad():
    _wanted = torch.sigmoid(layer(x))[1].sum()
assert _raises(_parts, False) and torch.allclose(_parts(True).sum(), _wanted)
_kept = layer.weight.grad.clone()


def _part_of_itself(read_old):
    gate = torch.sigmoid(layer(x))
    new = gate.clone()
    new[:, 0] = (gate if read_old else new)[:, 0] * (gate if read_old else new)[:, 1]
    return new


assert _raises(_part_of_itself, False) and not _raises(_part_of_itself, True)
layer.zero_grad()
_part_of_itself(True).sum().backward()
_found = layer.weight.grad.clone()
layer.zero_grad()
_s = torch.sigmoid(layer(x))
torch.cat([_s[:, :1] * _s[:, 1:2], _s[:, 1:]], dim=1).sum().backward()
assert torch.allclose(_found, layer.weight.grad)
assert not _raises(_parts, True)
layer.weight.grad = _kept
_s = torch.sigmoid(layer(x)).detach()
assert torch.allclose(layer.weight.grad, (_s * (1 - _s)).t() @ x)


def _filled(stack):
    parts, whole = [x[0]], torch.zeros(4, 3)
    whole[0] = x[0]
    factor = torch.ones(3, requires_grad=True)
    for i in range(3):
        if stack:
            parts.append(torch.sin(parts[i] * factor))
        else:
            whole[i + 1] = torch.sin(whole[i] * factor)
    return (torch.stack(parts, 0) if stack else whole).sum()


assert _raises(_filled, False) and not _raises(_filled, True)
assert torch.allclose(_filled(True), _filled(False))
_columns = torch.zeros(3, 3)  # out[:, t] = ... needs dim=1, and a square hides that
for _t in range(3):
    _columns[:, _t] = _t
_rows = [_columns[:, _t] for _t in range(3)]
assert torch.equal(torch.stack(_rows, 1), _columns)
assert torch.stack(_rows).shape == _columns.shape
assert not torch.equal(torch.stack(_rows), _columns)
# sphinx_gallery_end_ignore

# %%
# **You do not see the write?** Print each write of a training step. Yours comes after the line that saved the tensor, which
# :ref:`anomaly mode <sphx_glr_gallery_debugging_anomaly_detection.py>` prints:

import os
import traceback

from torch.utils._python_dispatch import TorchDispatchMode

inside = os.path.join(torch.__path__[0], "")  # the files of PyTorch


class Writes(TorchDispatchMode):
    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        if operation._schema.is_mutable:
            lines = traceback.extract_stack()[:-1]
            lines = [each for each in lines if not each.filename.startswith(inside)]
            print(operation, "in:", lines[-1].line if lines else "backward")
        return operation(*args, **(kwargs or {}))


with Writes():
    gate = torch.sigmoid(layer(x))
    gate.clamp_(max=0.9)

# sphinx_gallery_start_ignore
import contextlib
import io
from unittest import mock

import torch.distributed as dist

_norm, _step = nn.BatchNorm1d(4), torch.optim.SGD(layer.parameters(), lr=0.0)
_before = layer.weight.grad.clone()
with contextlib.redirect_stdout(io.StringIO()) as _seen, Writes():
    gate = torch.sigmoid(_norm(layer(x)))
    gate[0] = 0
    nn.ReLU(inplace=True)(gate)
    _step.step()
_seen = [line.split(" in: ")[1] for line in _seen.getvalue().splitlines()]
assert [line for i, line in enumerate(_seen) if line not in _seen[:i]] == [
    "gate = torch.sigmoid(_norm(layer(x)))",
    "gate[0] = 0",
    "nn.ReLU(inplace=True)(gate)",
    "_step.step()",
]
assert torch.equal(layer.weight.grad, _before)
with mock.patch(
    "traceback.extract_stack", list
):  # a thread that runs backward on a GPU
    with contextlib.redirect_stdout(io.StringIO()) as _seen, Writes():
        gate.detach().zero_()
assert _seen.getvalue() == "aten.zero_.default in: backward\n"
assert inside.endswith("torch" + os.sep) and not "torchvision".startswith(inside[-6:])
# sphinx_gallery_end_ignore

# %%
# **The write is outside of the model,** most often in ``optimizer.step()``. Two networks are trained in turn (`pytorch#39141
# <https://github.com/pytorch/pytorch/issues/39141>`__), and ``generator_loss`` was computed with the critic's old weights:

critic = nn.Linear(3, 1)
optimizer = torch.optim.SGD(critic.parameters(), lr=0.1)
fake = torch.ones(4, 3, requires_grad=True)  # what a generator made

# sphinx_gallery_start_ignore
try:
    # sphinx_gallery_end_ignore
    generator_loss = -critic(fake).mean()
    critic(fake.detach()).mean().backward()
    optimizer.step()
    generator_loss.backward()
# sphinx_gallery_start_ignore
except RuntimeError as error:
    message = str(error)
    print("RuntimeError: ..." + message.split("operation: ")[1].partition(" Hint")[0])
assert "[torch.FloatTensor [3, 1]], which is output 0 of AsStrided" in message
assert "is at version 2; expected version 1 instead" in message


def _steps(cut):
    cell, state = nn.RNNCell(3, 4), torch.zeros(2, 4)
    optimizer = torch.optim.SGD(cell.parameters(), lr=0.1)
    for _ in range(3):
        state = cell(x, state.detach() if cut else state)
        state.square().mean().backward(retain_graph=not cut)
        optimizer.step()


with torch.random.fork_rng():
    try:
        _steps(cut=False)
    except RuntimeError as error:
        message = str(error)
    _steps(cut=True)
assert message.startswith("one of the variables needed") and "[4, 4]" in message
# sphinx_gallery_end_ignore

# %%
# Compute the second loss, with its forward pass, after the step:

optimizer.zero_grad()
critic(fake.detach()).mean().backward()
optimizer.step()
generator_loss = -critic(fake).mean()
generator_loss.backward()
print("fake.grad:", fake.grad[0])

# sphinx_gallery_start_ignore
assert torch.allclose(fake.grad, -critic.weight.detach().expand(4, 3) / 4)
critic.zero_grad()
critic(fake.detach()).mean().backward()
_alone = critic.weight.grad.clone()
(-critic(fake).mean()).backward()  # without a step in between
assert _alone.any() and not critic.weight.grad.any()  # the two cancel out


def _trained(way):
    """A generator and a critic, after three rounds with momentum and weight decay."""
    torch.manual_seed(1)
    networks = (
        nn.Linear(2, 3),
        nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1)),
    )
    maker, judge = networks
    maker.bias.requires_grad_(False)
    settings = {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.1}
    steps = [torch.optim.SGD(each.parameters(), **settings) for each in networks]
    start = maker.bias.clone()
    for _ in range(3):
        made = maker(torch.rand(5, 2))
        judge_loss = (
            judge(made.detach()).sigmoid().mean() - judge(torch.rand(5, 3)).mean()
        )
        losses = -judge(made).sigmoid().mean(), judge_loss
        for step in steps:
            step.zero_grad()
        for loss, network in zip(losses, networks, strict=True):
            weights = [p for p in network.parameters() if p.requires_grad]
            if way == "inputs":
                loss.backward(inputs=weights)
            elif way == "all":
                loss.backward()
            else:
                slopes = torch.autograd.grad(loss, weights, retain_graph=True)
                for weight, slope in zip(weights, slopes, strict=True):
                    weight.grad = slope
        for step in steps:
            step.step()
    assert torch.equal(maker.bias, start)
    return [*maker.parameters(), *judge.parameters()]


with torch.random.fork_rng():
    assert all(map(torch.equal, _trained("inputs"), _trained("grad")))
    assert not all(map(torch.allclose, _trained("all"), _trained("grad")))


def _synchronized(way):
    """Real and fake through a batch norm whose buffers are overwritten between."""
    torch.manual_seed(1)
    judge = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))
    frozen, losses = judge[1].eval(), []
    for sign in (1, -1):
        if way != "none":
            with torch.no_grad():
                frozen.running_mean.copy_(frozen.running_mean.clone())
        losses.append(sign * judge(torch.rand(5, 3)).square().mean())
        if way == "each":
            losses[-1].backward()
    if way != "each":
        sum(losses).backward()
    return judge[0].weight.grad


with torch.random.fork_rng():
    assert torch.allclose(_synchronized("each"), _synchronized("none"))
    try:
        _synchronized("one")
    except RuntimeError as error:
        message = str(error)
assert message.startswith("one of the variables needed for gradient")


def _distributed(each):
    """The same with DistributedDataParallel."""
    torch.manual_seed(1)
    judge = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))
    judge, total = nn.parallel.DistributedDataParallel(judge), 0
    for sign in (1, -1):
        loss = sign * judge(torch.rand(5, 3)).square().mean()
        if each:
            loss.backward()
        else:
            total = total + loss
    if not each:
        total.backward()
    return judge.module[0].weight.grad


_new = not dist.is_initialized()
if _new:
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
with torch.random.fork_rng():
    _each = _distributed(True)
    assert torch.allclose(_distributed(False), _each) and _each.any()
if _new:
    dist.destroy_process_group()


def _shared_body(again):
    body, head, value = nn.Linear(3, 4), nn.Linear(4, 2), nn.Linear(4, 1)
    optimizer = torch.optim.SGD([*body.parameters(), *value.parameters()], lr=0.1)
    hidden = torch.tanh(body(x))
    value(hidden).mean().backward()
    optimizer.step()
    hidden = torch.tanh(body(x)) if again else hidden
    head(hidden).square().mean().backward()


def _actor(way):
    """The actor's gradient, with the critic's step before its backward."""
    torch.manual_seed(1)
    actor = nn.Linear(3, 2)
    value = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    optimizer = torch.optim.SGD(value.parameters(), lr=0.5)
    states, returns = torch.rand(6, 3), torch.rand(6, 1)
    advantage = returns - value(states)
    advantage.square().mean().backward(retain_graph=True)
    if way != "alone":
        optimizer.step()
    if way == "again":
        advantage = returns - value(states)
    if way in ("detached", "alone"):
        advantage = advantage.detach()
    log_prob = actor(states).log_softmax(-1)[:, :1]
    (-(log_prob * advantage).mean()).backward()
    return actor.weight.grad


def _through_critic(way):
    """The gradient of an actor that learns through the critic, as in SAC."""
    torch.manual_seed(1)
    actor = nn.Linear(3, 2)
    value = nn.Sequential(nn.Linear(5, 4), nn.Tanh(), nn.Linear(4, 1))
    optimizer = torch.optim.SGD(value.parameters(), lr=0.5)
    states = torch.rand(6, 3)

    def loss():
        return -value(torch.cat([states, actor(states)], 1)).mean()

    before = loss()
    value(torch.rand(6, 5)).square().mean().backward()
    optimizer.step()
    (before if way == "before" else loss()).backward()
    return actor.weight.grad


def _queue(copy, update=True):
    """The gradient of a query, if forward reads a queue and then writes to it."""
    torch.manual_seed(1)
    encoder, queue = nn.Linear(3, 4), torch.rand(8, 4)
    query = encoder(x)
    scores = query @ (queue.clone() if copy else queue).t()
    if update:
        queue[:2] = query.detach()
    scores.logsumexp(1).mean().backward()
    return encoder.weight.grad


raised = []
with torch.random.fork_rng():
    for _call in (lambda: _through_critic("before"), lambda: _queue(copy=False)):
        try:
            _call()
        except RuntimeError as error:
            raised.append(str(error).startswith("one of the variables needed"))
    assert raised == [True, True] and _through_critic("after").any()
    assert torch.equal(_queue(copy=True), _queue(copy=False, update=False))
    raised.clear()
    try:
        _actor("as it was")
    except RuntimeError as error:
        raised.append(str(error))
    assert raised.pop().startswith("one of the variables needed for gradient")
    assert torch.equal(_actor("detached"), _actor("alone"))
    assert not torch.allclose(_actor("again"), _actor("alone"), rtol=0.1)
    _shared_body(again=True)
    try:
        _shared_body(again=False)
    except RuntimeError as error:
        raised.append(str(error))
assert len(raised) == 1 and raised[0].startswith("Trying to backward through the graph")
# sphinx_gallery_end_ignore

# %%
# Or let both backwards come before both steps, each for its own network:
# ``generator_loss.backward(inputs=[p for p in generator.parameters() if p.requires_grad])``. Without ``inputs``, the critic
# would be trained for the generator.
#
# - **Reinforcement learning**: an advantage from the critic would be a different number after its step, so ``detach()`` the one
#   that you have: ``-(log_prob * advantage.detach()).mean()``. In SAC and DDPG the actor learns through the critic: compute
#   ``-critic(states, actor(states)).mean()`` after the step, without ``detach()``. In a replay memory, keep the inputs, and
#   compute features when you sample.
# - **DistributedDataParallel**, a batch norm and two forward passes before ``backward()``: update, PyTorch 2.13 runs this. In
#   older versions, call ``backward()`` after each of them, or use ``broadcast_buffers=False``, and evaluate and save the model
#   of rank 0.
# - **MAML**: :ref:`new weights <sphx_glr_gallery_modules_parameters_as_arguments.py>` instead of the inner ``optimizer.step()``
# - **After you set** ``retain_graph=True``: take it out, and see :ref:`the message before it
#   <sphx_glr_gallery_errors_backward_twice.py>`.
#
# What not to do
# --------------
# **Write through** ``.data``. The counter does not see that write, and backward takes the new value for the old one.

layer.zero_grad()
gate = torch.sigmoid(layer(x))
gate.data += 1
gate.sum().backward()
print("layer.weight.grad:", layer.weight.grad[0])

# sphinx_gallery_start_ignore
_s = torch.sigmoid(layer(x)).detach() + 1
assert torch.allclose(layer.weight.grad, (_s * (1 - _s)).t() @ x)
assert (layer.weight.grad < 0).all()  # a sigmoid's slope is positive, and so is x
# sphinx_gallery_end_ignore

# %%
# **Clone somewhere.** Here the copy is the input of the sigmoid, and the write still hits its result:

# sphinx_gallery_start_ignore
raised = []
try:
    # sphinx_gallery_end_ignore
    gate = torch.sigmoid(layer(x).clone())
    gate += 1
    gate.sum().backward()
# sphinx_gallery_start_ignore
except RuntimeError as error:
    raised.append(str(error))
    print(
        "RuntimeError: ..." + str(error).split("operation: ")[1].partition(" Hint")[0]
    )
assert len(raised) == 1 and "is at version 1; expected version 0 instead" in raised[0]
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_differentiation_inplace_and_versions.py`: which operations need which value, and which writes are not
#   counted.
# - In PyTorch's reference: `In-place operations with autograd
#   <https://docs.pytorch.org/docs/stable/notes/autograd.html#in-place-operations-with-autograd>`__.
