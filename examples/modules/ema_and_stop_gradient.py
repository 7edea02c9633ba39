r"""
EMA, target networks, stop-gradient
===================================

.. index::
   single: exponential moving average (EMA) of the weights
   single: AveragedModel
   single: BatchNorm statistics of an EMA model
   single: mean teacher, momentum encoder
   single: target network, soft update, tau
   single: stop-gradient in BYOL and SimSiam
   single: why detach the target
   single: SimSiam loss goes to -1, collapse

.. in-short::

   Keep a copy of the model whose weights are the average, and update it after each step:

   .. code-block:: python

      ema = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.999))
      optimizer.step()
      ema.update_parameters(model)

   Autograd does not record the update, and the update copies the statistics of BatchNorm. Evaluate with
   ``ema.eval()(x)``; ``ema.module`` is the copy. If a loss takes its target from the average (a teacher, a target
   network) or from the same network (SimSiam), compute it under ``no_grad`` or ``detach`` it, or the training may
   collapse.
"""

# %%
# A steadier model from noisy steps
# ---------------------------------
# With small batches and a large learning rate, the weights jump, but their *exponential moving average* (EMA) jumps less.
# After each step, it moves a little toward the new weights: ``average = decay * average + (1 - decay) * weights``.
# ``AveragedModel`` makes the copy. The first call of ``update_parameters`` copies the weights, each later one averages:

import copy

import torch
from torch import nn
from torch.nn.functional import cosine_similarity, mse_loss, normalize
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

torch.set_num_threads(1)  # small tensors: more threads do not help
torch.manual_seed(0)


def samples(count, noise=1.0):
    x = 2 * torch.randn(count, 10)
    y = x[:, :1] * x[:, 1:2] / 4 + x[:, 2:3]
    return x + 3, y + noise * torch.randn_like(y)


def network():
    layers = nn.Linear(10, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 1)
    return nn.Sequential(*layers)


test_x, test_y = samples(1000, noise=0.0)

model = network()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
ema = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.95))

# %%
# .. how-measured:: test_loss() measures a model on the test data, and draw_curves() draws.

import matplotlib.pyplot as plt


@torch.no_grad()
def test_loss(model):
    loss = mse_loss(model.eval()(test_x), test_y).item()
    model.train()
    return loss


def draw_curves(curves, title, label, **options):
    _, ax = plt.subplots(figsize=(7, 2.8), layout="constrained")
    styles = [("#c2410c", "--"), ("#2563eb", "-"), ("#047857", "-."), ("#7c3aed", ":")]
    for (name, values), (color, style) in zip(curves.items(), styles, strict=False):
        ax.plot(values, color=color, linestyle=style, label=name)
    ax.set(xlabel="step", ylabel=label, **options)
    ax.set_title(title)
    ax.legend(ncols=2, fontsize=9)


# %%
# Each step of training is followed by one of the average:

losses = {"model": [], "its average": []}
ema.update_parameters(model)
for _ in range(300):
    x, y = samples(16)
    optimizer.zero_grad()
    mse_loss(model(x), y).backward()
    optimizer.step()
    ema.update_parameters(model)
    losses["model"].append(test_loss(model))
    losses["its average"].append(test_loss(ema))

# figure: The test loss over 300 steps, on a logarithmic axis. The curve of the model jumps up and down all the time. The curve
#   of its average is smooth, and from about step 60 it stays below most of the other curve.
title = "The average is better than nearly every model in it"
draw_curves(losses, title, "test loss", yscale="log")

# sphinx_gallery_start_ignore
_model, _average = (torch.tensor(values[-200:]) for values in losses.values())
assert _average.mean() < 0.6 * _model.mean() and _average.std() < 0.5 * _model.std()
assert (_average < _model).double().mean() > 0.9
assert abs(1 - 0.95**20 - 2 / 3) < 0.05
_model, _average = (torch.tensor(values[60:]) for values in losses.values())
assert (_average < _model).double().mean() > 0.85

assert round(0.999**300, 2) == 0.74
_options = {"multi_avg_fn": get_ema_multi_avg_fn(0.95)}
_late = AveragedModel(network(), **_options)
_late.update_parameters(model)
assert torch.equal(_late.module[0].weight, model[0].weight)
assert not any(p.grad_fn for p in ema.parameters())
assert all(p.requires_grad for p in ema.parameters())
_whole, _part = (AveragedModel(network(), **_options) for _ in range(2))
_whole.load_state_dict(ema.state_dict())
_part.module.load_state_dict(ema.module.state_dict())
_wanted = 0.95 * ema.module[0].weight + 0.05 * model[0].weight
for _resumed in (_whole, _part):
    _resumed.update_parameters(model)
assert torch.allclose(_whole.module[0].weight, _wanted)
assert torch.equal(_part.module[0].weight, model[0].weight)
# sphinx_gallery_end_ignore

# %%
# With ``decay=0.95``, the last 20 steps make up about two thirds of the average. A larger decay needs a longer training: with
# 0.999, 74 % still come from the first update after 300 steps. To resume a training, save ``ema.state_dict()``: with that of
# ``ema.module`` alone, the next update counts as the first, and the average is lost.
#
# By hand, the update is four lines:


@torch.no_grad()
def update(average, model, decay):
    for a, p in zip(average.parameters(), model.parameters(), strict=True):
        a.lerp_(p, 1 - decay)  # a = decay * a + (1 - decay) * p
    for a, b in zip(average.buffers(), model.buffers(), strict=True):
        a.copy_(b)


mine = copy.deepcopy(ema.module).requires_grad_(False)
for _ in range(100):
    x, y = samples(16)
    optimizer.zero_grad()
    mse_loss(model(x), y).backward()
    optimizer.step()
    ema.update_parameters(model)
    update(mine, model, decay=0.95)

theirs = ema.module.state_dict()
print(all(torch.allclose(theirs[name], t) for name, t in mine.state_dict().items()))

# sphinx_gallery_start_ignore
for _name, _tensor in mine.state_dict().items():
    assert torch.allclose(theirs[_name], _tensor)
assert len(theirs) == 9 and not torch.allclose(mine[0].weight, model[0].weight)
# sphinx_gallery_end_ignore

# %%
# Stop-gradient: where gradients arrive
# -------------------------------------
# A *mean teacher* is the average of the student. It sees another view of the same input, for example with other noise, and the
# student should agree with it. **The target is a constant for the loss, so no gradient may flow into it.** One training step:

student = network()
teacher = copy.deepcopy(student).requires_grad_(False)
optimizer = torch.optim.SGD(student.parameters(), lr=0.1)

x, _ = samples(16)
view, other_view = x + 0.1 * torch.randn(2, *x.shape)  # two noises
with torch.no_grad():
    target = teacher(other_view)
optimizer.zero_grad()
mse_loss(student(view), target).backward()
optimizer.step()
update(teacher, student, decay=0.99)

# %%
# .. how-measured:: Four ways to compute the target from the teacher.

import pandas as pd


def arrives(target_of, frozen=False):
    torch.manual_seed(0)
    student = nn.Linear(3, 2)
    teacher = copy.deepcopy(student).requires_grad_(not frozen)
    view, other_view = torch.randn(2, 4, 3)
    target = target_of(teacher, other_view)
    mse_loss(student(view), target).backward()
    return {
        "student": "yes" if student.weight.grad is not None else "no",
        "teacher": "yes" if teacher.weight.grad is not None else "no",
        "graph": "yes" if target.grad_fn is not None else "no",
    }


def without_grad(teacher, x):
    with torch.no_grad():
        return teacher(x)


def tabulate_gradients():
    rows = {
        "as it is": arrives(lambda teacher, x: teacher(x)),
        "detach()": arrives(lambda teacher, x: teacher(x).detach()),
        "no_grad": arrives(without_grad),
        "frozen": arrives(lambda teacher, x: teacher(x), frozen=True),
    }
    return pd.DataFrame(rows).T


# %%
# Four ways to compute the target: who gets a gradient, and does the target have a graph? (*frozen* is a teacher with
# ``requires_grad_(False)``.)

# sphinx_gallery_start_ignore
arrivals = tabulate_gradients()
assert arrivals["student"].tolist() == ["yes"] * 4
assert arrivals["teacher"].tolist() == ["yes", "no", "no", "no"]
assert arrivals["graph"].tolist() == ["yes", "no", "no", "no"]
_x = torch.randn(4, 3, requires_grad=True)
_frozen = nn.Linear(3, 2).requires_grad_(False)
_frozen(_x).sum().backward()
assert _x.grad is not None and _frozen.weight.grad is None
# sphinx_gallery_end_ignore
tabulate_gradients()

# %%
# Freezing is too little if the student computed the teacher's input: a frozen layer passes gradients on to its input.
#
# In *SimSiam*, one encoder sees both views, and a small predictor maps the first result to the second. The target is
# ``z2.detach()``:

encoder, predictor = nn.Linear(3, 2), nn.Linear(2, 2)
view, other_view = torch.randn(2, 4, 3)
z1, z2 = encoder(view), encoder(other_view)
loss = mse_loss(predictor(z1), z2.detach())

# graph: loss -- With detach, one way leads back to the encoder

# %%
# Without ``detach``, a second way leads back through ``z2``:

both = mse_loss(predictor(z1), z2)

# graph: both -- Without detach, two ways lead back to the encoder

# sphinx_gallery_start_ignore
_z1, _z2 = encoder(view), encoder(other_view)
_p = predictor(_z1)
_weight = encoder.weight
_stopped = torch.autograd.grad(mse_loss(_p, _z2.detach()), _weight, retain_graph=True)
_alone = torch.autograd.grad(mse_loss(_p.detach(), _z2), _weight, retain_graph=True)
_whole = torch.autograd.grad(mse_loss(_p, _z2), _weight)
assert torch.allclose(_stopped[0] + _alone[0], _whole[0]) and _alone[0].any()
# sphinx_gallery_end_ignore

# %%
# Collapse, as a number
# ---------------------
# The encoder could make the task easy by mapping everything to one vector. ``spread`` shows it: it is 0 if all outputs have the
# same direction, and about 1 if they point equally in all directions. ``train_encoder`` adds noise to random vectors, twice:


def spread(z):
    z = normalize(z.detach(), dim=1)
    return (z.std(dim=0).mean() * z.shape[1] ** 0.5).item()


def train_encoder(target="z.detach()", predict=True):
    torch.manual_seed(0)
    encoder = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 8))
    hidden = (nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 8))
    predictor = nn.Sequential(*hidden) if predict else nn.Identity()
    average = copy.deepcopy(encoder).requires_grad_(False)
    parameters = [*encoder.parameters(), *predictor.parameters()]
    optimizer = torch.optim.SGD(parameters, lr=0.05, momentum=0.9)
    spreads = []
    for _ in range(200):
        x = torch.randn(128, 10)
        views = x + 0.3 * torch.randn(2, *x.shape)
        z = encoder(views.flatten(0, 1))
        goal = {"z": z, "z.detach()": z.detach()}.get(target)
        if goal is None:
            goal = average(views.flatten(0, 1))
        loss = -cosine_similarity(predictor(z), goal.roll(128, 0)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        update(average, encoder, decay=0.95)
        spreads.append(spread(z))
    return spreads, loss.item()


# %%
# The spread of the outputs in four runs:

runs = {
    "EMA target (BYOL)": train_encoder("average(view)"),
    "z.detach() (SimSiam)": train_encoder(),
    "z.detach(), no predictor": train_encoder(predict=False),
    "z, no detach": train_encoder("z"),
}

# figure: The spread of the outputs over 200 steps. With an average as target and with detach, it stays above 0.3. Without
#   detach, and with detach but without a predictor, it falls to about 0.1 or less.
spreads = {name: values for name, (values, _) in runs.items()}
title = "Without detach or without a predictor, the outputs collapse"
draw_curves(spreads, title, "spread of the outputs", ylim=(0, 1.3))

for name, (values, last_loss) in runs.items():
    print(f"{name:<24} spread {values[-1]:.2f}, loss {last_loss:.2f}")

# sphinx_gallery_start_ignore
_last = {name: values[-1] for name, (values, _) in runs.items()}
_losses = {name: loss for name, (_, loss) in runs.items()}
assert min(runs["EMA target (BYOL)"][0]) > 0.3 < min(runs["z.detach() (SimSiam)"][0])
assert _last["z, no detach"] < 0.1 and _last["z.detach(), no predictor"] < 0.2
_good, _collapsed = list(_losses.values())[:2], list(_losses.values())[2:]
assert max(_collapsed) < -0.99 < -0.98 < min(_good)
assert spread(torch.ones(9, 4)) == 0 and abs(spread(torch.randn(9999, 8)) - 1) < 0.02
# sphinx_gallery_end_ignore

# %%
# The loss hides the collapse: the two runs that collapse have the best losses (asked in `SimSiam#50
# <https://github.com/PatrickHua/SimSiam/issues/50>`__). So log the spread. ``detach`` alone is too little: without the
# predictor, the outputs collapse too.

# %%
# Target networks
# ---------------
# In Q-learning, the goal ``reward + gamma * q(next_state)`` uses the network that is trained. Take three states: A is followed
# by B or C, equally often. Then the episode ends, after B with reward 1, after C with 0. With ``gamma = 1``, the values should
# be 0.5, 1 and 0.

state, following = torch.tensor([0, 0, 1, 2]), torch.tensor([1, 2, 0, 0])  # A is 0
reward, goes_on = torch.tensor([0.0, 0, 1, 0]), torch.tensor([1.0, 1, 0, 0])
for stop in (True, False):
    value = torch.zeros(3, requires_grad=True)
    optimizer = torch.optim.SGD([value], lr=0.1)
    for _ in range(300):
        goal = reward + goes_on * value[following]
        error = value[state] - (goal.detach() if stop else goal)
        optimizer.zero_grad()
        (error**2).sum().backward()
        optimizer.step()
    print(f"detach={stop!s:<5} ", *(f"{v:.2f}" for v in value.abs().tolist()))
    assert value[1].isclose(torch.tensor(1.0 if stop else 0.75))

# sphinx_gallery_start_ignore
assert torch.allclose(value, torch.tensor([0.5, 0.75, 0.25]))  # the last: no detach
_w, _far = torch.tensor(0.5, requires_grad=True), []
for _ in range(100):  # q(s) = w * s, from s = 1 to s = 2: the solution is -1.25
    (_slope,) = torch.autograd.grad((_w - (1 + 0.9 * 2 * _w).detach()) ** 2, _w)
    _w = (_w - 0.05 * _slope).detach().requires_grad_()
    _far.append(abs(_w.item() + 1.25))
assert _far[-1] > 100 * _far[0]
_online, _target, _soft = nn.Linear(3, 2), nn.Linear(3, 2), nn.Linear(3, 2)
_target.load_state_dict(_online.state_dict())
assert torch.equal(_target.weight, _online.weight)
assert _target.weight.data_ptr() != _online.weight.data_ptr()
_before, _tau = _soft.weight.detach().clone(), 0.005
update(_soft, _online, decay=1 - _tau)
assert torch.allclose(_soft.weight, _tau * _online.weight + (1 - _tau) * _before)
# sphinx_gallery_end_ignore

# %%
# Without ``detach``, gradient descent also moves the goals, and pulls the values of B and C toward that of A. With larger
# models, the values may diverge even with ``detach``, so a *target network* computes the goal with older weights, under
# ``no_grad``. Copy the weights now and then, with ``target.load_state_dict(online.state_dict())``, or average them in each
# step: ``tau=0.005`` is ``decay=0.995``.

# %%
# What people get wrong
# ---------------------
# **Buffers.** BatchNorm keeps its running mean and variance in buffers, and ``parameters()`` does not return them. Three kinds
# of average:
#
# .. how-measured:: The same training of a network with BatchNorm, with each kind of average.


@torch.no_grad()
def update_parameters_only(average, model, decay):
    for a, p in zip(average.parameters(), model.parameters(), strict=True):
        a.lerp_(p, 1 - decay)


def compare_averages():
    torch.manual_seed(0)
    model = network()
    only, options = copy.deepcopy(model), {"multi_avg_fn": get_ema_multi_avg_fn(0.95)}
    default = AveragedModel(model, **options)
    all_buffers = AveragedModel(model, use_buffers=True, **options)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    default.update_parameters(model)
    all_buffers.update_parameters(model)
    for _ in range(300):
        x, y = samples(16)
        optimizer.zero_grad()
        mse_loss(model(x), y).backward()
        optimizer.step()
        default.update_parameters(model)
        all_buffers.update_parameters(model)
        update_parameters_only(only, model, 0.95)
    return {
        "the model": model,
        "parameters() only": only,
        "AveragedModel": default,
        "use_buffers=True": all_buffers,
    }


# %%
# The test loss after 300 steps:

averages = compare_averages()
for name, average in averages.items():
    print(f"{name:<18} {test_loss(average):.2f}")

# sphinx_gallery_start_ignore
_model, _only, _default, _all = map(test_loss, averages.values())
assert _only > 10 * _model and _default < 0.9 * _model
assert abs(_all / _default - 1) < 0.3
_norms = {name: getattr(each, "module", each)[1] for name, each in averages.items()}
_own = _norms["the model"]
assert _own.num_batches_tracked == 300 == _norms["AveragedModel"].num_batches_tracked
assert torch.equal(_own.running_mean, _norms["AveragedModel"].running_mean)
_unused = _norms["parameters() only"]
assert not _unused.running_mean.any() and (_unused.running_var == 1).all()
assert not torch.allclose(_own.running_mean, _norms["use_buffers=True"].running_mean)
_of_units = torch.stack([normalize(torch.randn(5, 8)) for _ in range(9)]).mean(0)
assert (_of_units.norm(dim=1) < 1).all()
_passed = AveragedModel(averages["the model"], **_options)
torch.optim.swa_utils.update_bn([samples(64)[0] for _ in range(20)], _passed)
_mean = _passed.module[1].running_mean
assert _passed.module[1].num_batches_tracked == 20 and not torch.equal(
    _mean, _own.running_mean
)
# sphinx_gallery_end_ignore

# %%
# A loop over ``parameters()`` leaves the buffers as they were at the copy, with a running mean of 0 and a variance of 1.
# ``AveragedModel`` copies all buffers of the latest model, and ``use_buffers=True`` averages them (not with ``spectral_norm``:
# `miles-credit#394 <https://github.com/NCAR/miles-credit/pull/394>`__).
#
# ``torch.optim.swa_utils.update_bn(loader, ema)`` computes BatchNorm's statistics anew, with the averaged weights.

# %%
# **An update that autograd records.** Without ``no_grad``, the new average is a result that was computed from the weights:
#
# .. how-measured:: This function counts the nodes of a graph.


def count_nodes(tensor):
    seen, todo = set(), [tensor.grad_fn]
    while todo:
        node = todo.pop()
        if node is not None and node not in seen:
            seen.add(node)
            todo.extend(following for following, _ in node.next_functions)
    return len(seen)


# %%
# A dictionary of averages is often called ``shadow``:

layer = nn.Linear(3, 1)
shadow = {name: p.detach().clone() for name, p in layer.named_parameters()}
for step in range(1, 101):
    for name, p in layer.named_parameters():
        shadow[name] = 0.99 * shadow[name] + 0.01 * p  # no_grad is missing
    if step in (1, 10, 100):
        print(f"step {step:>3}: {count_nodes(shadow['weight'])} nodes")

(gradient,) = torch.autograd.grad(shadow["bias"], layer.bias)
print(f"gradient that reaches the bias: {gradient.item():.2f}")

# sphinx_gallery_start_ignore
assert count_nodes(shadow["weight"]) == 300 and abs(gradient - (1 - 0.99**100)) < 1e-5
_teacher = copy.deepcopy(layer).requires_grad_(False)
_counts = []
for _ in range(3):
    _teacher.weight.mul_(0.99).add_(layer.weight, alpha=0.01)
    _counts.append(count_nodes(_teacher.weight))
assert _teacher.weight.requires_grad and _counts[0] < _counts[1] < _counts[2]
_still = AveragedModel(layer, **_options).requires_grad_(False)
_still.update_parameters(layer)
assert not any(p.requires_grad for p in _still.parameters())
_still = AveragedModel(copy.deepcopy(layer).requires_grad_(False), **_options)
assert not any(p.requires_grad for p in _still.parameters())
# sphinx_gallery_end_ignore

# %%
# The graph grows with each step. On a frozen copy, an update in place without ``no_grad`` raises no error either: it makes
# ``teacher.weight`` require grad.
#
# **A copy that requires grad.** ``copy.deepcopy`` and ``AveragedModel`` copy ``requires_grad``. Call ``requires_grad_(False)``
# on a teacher.
#
# **An average in bfloat16**, as ``AveragedModel`` makes it of a ``bfloat16`` model. Its steps become smaller than its
# rounding, and it stops:

average, weight = torch.zeros(1, dtype=torch.bfloat16), torch.ones(1)
for _ in range(10_000):
    average.lerp_(weight.to(average), 1 - 0.999)
print(f"on the way from 0 to 1: {average.item():.2f}")

# sphinx_gallery_start_ignore
assert average.item() < 0.5
_wide = torch.zeros(1, dtype=torch.float32)
for _ in range(10_000):
    _wide.lerp_(weight.bfloat16().to(_wide), 1 - 0.999)
assert _wide.item() > 0.99
_half = nn.Linear(1, 1).bfloat16()
nn.init.zeros_(_half.weight)
_options = {"avg_fn": lambda a, p, n: a.lerp(p.to(a), 1 - 0.99)}
_kinds = (
    AveragedModel(_half, multi_avg_fn=get_ema_multi_avg_fn(0.99)),
    AveragedModel(_half, **_options).float(),
)
for _kind in _kinds:
    _kind.update_parameters(_half)
nn.init.ones_(_half.weight)
for _kind in _kinds:
    for _ in range(1000):
        _kind.update_parameters(_half)
assert _kinds[0].module.weight < 0.9 < 0.99 < _kinds[1].module.weight
# sphinx_gallery_end_ignore

# %%
# Keep the average in float32: call ``.float()`` on the copy, and write ``a.lerp_(p.to(a), 1 - decay)`` in ``update``.
# With ``AveragedModel(...).float()``, pass ``avg_fn=lambda a, p, n: a.lerp(p.to(a), 1 - decay)``.

# %%
# Exercise
# --------
# ``teacher(x).detach()`` and ``teacher(x)`` under ``no_grad`` lead to the same gradients. Count what each saves for backward
# (the teacher is not frozen).
#
# .. solution::
#
# With ``detach``, the forward pass of the teacher is recorded, so its layers save tensors for a backward pass that never comes.
# They live until the end of this line, as long as the graph.

teacher = network()


def tensors_saved(recorded):
    saved = []
    with torch.autograd.graph.saved_tensors_hooks(saved.append, lambda packed: packed):
        with torch.set_grad_enabled(recorded):
            teacher(test_x).detach()
    return len(saved)


print("detach: ", tensors_saved(recorded=True), "tensors saved")
print("no_grad:", tensors_saved(recorded=False), "tensors saved")
assert tensors_saved(recorded=True) > 5 and tensors_saved(recorded=False) == 0

# sphinx_gallery_start_ignore
import weakref


class _Packed:
    def __init__(self, tensor):
        self.tensor = tensor


_references = []


def _pack(tensor):
    packed = _Packed(tensor.detach())  # with its graph, it would keep itself alive
    _references.append(weakref.ref(packed))
    return packed


with torch.autograd.graph.saved_tensors_hooks(_pack, lambda packed: packed.tensor):
    _output = teacher(test_x)
    assert all(reference() is not None for reference in _references)
    target = _output.detach()
    del _output
_frozen, _saved = network().requires_grad_(False), []
with torch.autograd.graph.saved_tensors_hooks(_saved.append, lambda packed: packed):
    _frozen(test_x).detach()
assert not _saved
assert len(_references) > 5 and not any(reference() for reference in _references)
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_modes_train_and_eval.py`, the buffers of BatchNorm.
# - :ref:`sphx_glr_gallery_tensors_detach_clone_data.py`, what ``detach`` returns.
# - :ref:`sphx_glr_gallery_modes_freezing.py`, ``requires_grad_(False)`` and the optimizer.
# - :ref:`sphx_glr_gallery_errors_leaf_in_place.py`, if the in-place update raises an error.
# - :ref:`sphx_glr_gallery_errors_deepcopy_of_non_leaf.py`, if ``copy.deepcopy`` or ``AveragedModel`` raises one.
# - In PyTorch's reference: `weight averaging, SWA and EMA
#   <https://docs.pytorch.org/docs/stable/optim.html#weight-averaging-swa-and-ema>`__, and `the tutorial on DQN
#   <https://docs.pytorch.org/tutorials/intermediate/reinforcement_q_learning.html>`__.
