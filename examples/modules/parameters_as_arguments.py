r"""
functional_call and MAML: backward through an update step
=========================================================

.. index::
   single: MAML: the gradient of the outer loss is None
   single: differentiate through optimizer.step()
   single: parameters of a module that are not leaves
   single: run a module with other weights
   single: ensemble of models with vmap, stack_module_state
   single: learn the learning rate, hypergradient
   single: torch.optim with differentiable=True

.. in-short::

   ``functional_call`` runs a module with weights that you pass as an argument. They may be computed, so backward can go
   through a training step:

   .. code-block:: python

      weights = dict(model.named_parameters())
      grads = torch.autograd.grad(loss, list(weights.values()), create_graph=True)
      new = {n: w - lr * g for (n, w), g in zip(weights.items(), grads)}
      outer = loss_fn(functional_call(model, new, (x,)), y)

   If the step is ``load_state_dict``, a write to ``.data`` or ``optimizer.step()``, autograd by default records
   nothing. Then the old weights get ``None`` from ``outer``, or a gradient that silently leaves out the step.
"""

# %%
# A loss that is measured after a training step
# ---------------------------------------------
# You look for a *start*: weights from which one gradient step is enough for a new task. (This is meta-learning, and the method
# is called MAML.) The *inner step* trains on some points of a task. After it, the *outer loss* is measured on other points. You
# need its gradient for the weights *before* the step. This model has one weight, 1, so that you can check each number by hand:

import torch
from torch import nn
from torch.func import functional_call, grad, stack_module_state, vmap

mse = nn.functional.mse_loss
x, y, x_outer, y_outer = torch.tensor([1.0, 3.0, 2.0, 8.0])
lr = 0.1


class OneWeight(nn.Module):
    def __init__(self, weight=1.0):
        super().__init__()
        self.weight = nn.Parameter(torch.tensor(weight))

    def forward(self, x):
        return self.weight * x


model = OneWeight()

# the inner step, with its graph
weights = dict(model.named_parameters())
inner = mse(model(x), y)
grads = torch.autograd.grad(inner, list(weights.values()), create_graph=True)
new = {name: w - lr * g for (name, w), g in zip(weights.items(), grads, strict=True)}

outer = mse(functional_call(model, new, (x_outer,)), y_outer)
outer.backward()

# graph: outer -- Two paths lead to the weight: the weight itself, and the gradient of the step

print(f"new weight {new['weight'].item():.2f}, the old one {model.weight.item():.2f}")
print(f"model.weight.grad: {model.weight.grad.item():.2f}")

# sphinx_gallery_start_ignore
assert abs(new["weight"].item() - 1.4) < 1e-6 and model.weight.item() == 1
assert abs(model.weight.grad.item() + 16.64) < 1e-4
assert not new["weight"].is_leaf and model.weight.is_leaf


def _paths(node):
    if node is None:
        return 0
    if hasattr(node, "variable"):
        return node.variable is model.weight
    return sum(_paths(following) for following, _ in node.next_functions)


assert _paths(outer.grad_fn) == 2


class _Part(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(1, 1), nn.Linear(1, 1)

    def forward(self, x):
        return self.first(x)


_module = _Part()
_given = torch.autograd.grad(
    _module(torch.ones(2, 1)).sum(),
    list(_module.parameters()),
    create_graph=True,
    materialize_grads=True,
)
assert _given[0].item() == 2 and not _given[2].any() and not _given[3].any()
# sphinx_gallery_end_ignore

# %%
# **Compute the new weights as** ``w - lr * g`` **with** ``create_graph=True``, **and call the model with them.** Then the graph
# has a long path: the backward pass of the inner loss. Leave frozen weights out of ``weights``. For weights that the inner loss
# does not use, pass ``materialize_grads=True``: their gradient is then zero.
#
# Is -16.64 right? Start an ordinary training step a little to the left and to the right, and compare the two losses after it:


def loss_after_a_step(start):
    model = OneWeight(start)
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    mse(model(x), y).backward()
    optimizer.step()
    return mse(model(x_outer), y_outer).item()


difference = loss_after_a_step(1.01) - loss_after_a_step(0.99)
print(f"slope: {difference / 0.02:.2f}")

# sphinx_gallery_start_ignore
assert abs(difference / 0.02 + 16.64) < 5e-3
# sphinx_gallery_end_ignore

# %%
# Why not the module itself?
# --------------------------
# ``nn.Parameter`` makes a leaf, without a graph. Assigning the new weight, ``model.weight = new["weight"]``, raises
# :ref:`cannot assign ... as parameter <sphx_glr_gallery_errors_cannot_assign_parameter.py>`.
#
# ``functional_call(model, new, (x,))`` puts the tensors of ``new`` in place of the parameters with those names, runs
# ``forward``, and puts the parameters back. What you leave out, it takes from the module, buffers too: with parameters alone,
# ``nn.BatchNorm1d`` updates its own running mean. Of tied weights, pass one. (``tie_weights=False`` replaces only the one that
# you name.)
#
# Switch off gradient checkpointing in the model: its backward would run ``forward`` again with the old parameters, and the
# gradient is wrong, without an error.

# sphinx_gallery_start_ignore
from torch.utils.checkpoint import checkpoint

_refused = []
try:
    model.weight = new["weight"]
except TypeError as error:
    _refused.append(str(error))
assert len(_refused) == 1 and "cannot assign" in _refused[0]
assert "as parameter 'weight'" in _refused[0] and model.weight is weights["weight"]


class _Fails(nn.Linear):
    def forward(self, x):
        raise ValueError("in forward")


_net = _Fails(2, 2)
_before = _net.weight
try:
    functional_call(_net, {"weight": torch.zeros(2, 2)}, (torch.ones(1, 2),))
except ValueError as error:
    _refused.append(str(error))
assert len(_refused) == 2 and _net.weight is _before
_norm, _rows = nn.BatchNorm1d(2), torch.tensor([[1.0, 2.0], [3.0, 4.0]])
_weights, _buffers = dict(_norm.named_parameters()), dict(_norm.named_buffers())
_buffers = {name: buffer.clone() for name, buffer in _buffers.items()}
functional_call(_norm, (_weights, _buffers), (_rows,))
assert not _norm.running_mean.any() and _buffers["running_mean"].all()
functional_call(_norm, _weights, (_rows,))
assert torch.equal(_norm.running_mean, _buffers["running_mean"])
assert nn.Parameter(new["weight"]).is_leaf


class _Checkpointed(nn.Linear):
    inside = True

    def forward(self, x):
        def run(x):
            return super(_Checkpointed, self).forward(x).tanh()

        return checkpoint(run, x, use_reentrant=False) if self.inside else run(x)


def _backward_through_a_step(inside):
    torch.manual_seed(0)
    net, rows = _Checkpointed(2, 1), torch.tensor([[1.0, 2.0], [3.0, -4.0]])
    net.inside = inside
    old = dict(net.named_parameters())
    leaves = list(old.values())
    grads = torch.autograd.grad(net(rows).sum(), leaves, create_graph=True)
    stepped = {n: w - g for (n, w), g in zip(old.items(), grads, strict=True)}
    functional_call(net, stepped, (rows,)).sum().backward()
    return net.weight.grad


assert not torch.allclose(*map(_backward_through_a_step, (True, False)), rtol=0.1)
# sphinx_gallery_end_ignore
result = functional_call(model, {"weight": torch.tensor(5.0)}, (x,))
print(f"with the weight 5: {result.item()}")
print(f"the weight of the module: {model.weight.item()}")

# sphinx_gallery_start_ignore
_tied = nn.Sequential(OneWeight(), OneWeight())
_tied[1].weight = _tied[0].weight
assert functional_call(_tied, {"0.weight": 3 * x}, (x,), tie_weights=False) == 3
assert functional_call(_tied, {"0.weight": 3 * x}, (x,)) == 9
assert functional_call(model, {"weight": torch.tensor(5.0)}, (x,)) == 5
assert model.weight == 1 and model(x) == 1
assert torch.equal(functional_call(model, new, x), functional_call(model, new, (x,)))
# sphinx_gallery_end_ignore

# %%
# The same with torch.func.grad
# -----------------------------
# Write the loss as a function of the weights. ``torch.func.grad`` needs no ``create_graph``: it also differentiates an inner
# ``grad``. (``first_order`` is explained below.)


def inner_loss(weights, x, y):
    return mse(functional_call(model, weights, (x,)), y)


def outer_loss(weights, first_order=False):
    g = grad(inner_loss)(weights, x, y)
    if first_order:
        g = {name: part.detach() for name, part in g.items()}
    new = {name: weights[name] - lr * g[name] for name in weights}
    return inner_loss(new, x_outer, y_outer)


start = {name: w.detach() for name, w in model.named_parameters()}
full, first = (grad(outer_loss)(start, option)["weight"] for option in (False, True))
print(f"MAML: {full.item():.2f}   first-order MAML: {first.item():.2f}")

# sphinx_gallery_start_ignore
assert abs(full + 16.64) < 1e-4 and abs(first + 20.8) < 1e-4
assert not full.requires_grad
assert grad(outer_loss)(dict(model.named_parameters()))["weight"].requires_grad
# a larger network: by hand, with torch.func, and first order differ by lr * H @ gradient


def _net():
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(1, 8), nn.Tanh(), nn.Linear(8, 1))


def _flat(tensors):
    return torch.cat([tensor.flatten() for tensor in tensors])


torch.manual_seed(0)
_x, _y, _xo, _yo = torch.randn(4, 8, 1)


def _step_of(model, **option):
    _names = dict(model.named_parameters())
    _grads = torch.autograd.grad(mse(model(_x), _y), [*_names.values()], **option)
    return {n: w - lr * g for (n, w), g in zip(_names.items(), _grads, strict=True)}


def _outer_grad(**option):
    model = _net()
    new = _step_of(model, **option)
    mse(functional_call(model, new, (_xo,)), _yo).backward()
    return _flat(p.grad for p in model.parameters())


_full, _first = _outer_grad(create_graph=True), _outer_grad()
assert (_full - _first).norm() > 0.1 * _full.norm()
model_ = _net()


def _inner(weights, x, y):
    return mse(functional_call(model_, weights, (x,)), y)


def _outer(weights):
    g = grad(_inner)(weights, _x, _y)
    return _inner({n: weights[n] - lr * g[n] for n in weights}, _xo, _yo)


_start = {n: w.detach() for n, w in model_.named_parameters()}
_by_func = grad(_outer)(_start)
assert torch.allclose(_flat(_by_func.values()), _full, rtol=1e-4, atol=1e-6)
_new = {n: w.detach() for n, w in _step_of(model_).items()}
_at_new = grad(_inner)(_new, _xo, _yo)
assert torch.allclose(_flat(_at_new.values()), _first, rtol=1e-4, atol=1e-6)
_, _times_hessian = torch.func.vjp(lambda w: grad(_inner)(w, _x, _y), _start)
(_hv,) = _times_hessian(_at_new)
_difference = _flat(_by_func.values()) - _first
assert torch.allclose(_difference, -lr * _flat(_hv.values()), rtol=1e-3, atol=1e-5)


# batch norm: an error under grad, and with track_running_stats=False the same as by hand
def _with_norm(**option):
    torch.manual_seed(1)
    return nn.Sequential(
        nn.Linear(1, 8), nn.BatchNorm1d(8, **option), nn.Tanh(), nn.Linear(8, 1)
    )


def _func_grad(model, first_order=False):
    def loss(weights, x, y):
        return mse(functional_call(model, weights, (x,)), y)

    def outer(weights):
        g = grad(loss)(weights, _x, _y)
        if first_order:
            g = {name: part.detach() for name, part in g.items()}
        return loss({n: weights[n] - lr * g[n] for n in weights}, _xo, _yo)

    return grad(outer)({n: w.detach() for n, w in model.named_parameters()})


_errors = []
try:
    _func_grad(_with_norm())
except RuntimeError as error:
    _errors.append(str(error))
assert len(_errors) == 1 and "mutate a captured Tensor" in _errors[0]
_model = _with_norm()
_new = _step_of(_model, create_graph=True)
mse(functional_call(_model, _new, (_xo,)), _yo).backward()
for _name, _found in _func_grad(_with_norm(track_running_stats=False)).items():
    _expected = _model.get_parameter(_name).grad
    assert torch.allclose(_found, _expected, rtol=1e-3, atol=1e-4)


# fused attention on the CPU: only the first order
class _Attention(nn.Linear):
    def forward(self, x):
        x = super().forward(x).view(1, 1, 8, 4)
        return nn.functional.scaled_dot_product_attention(x, x, x).mean(-1).view(8, 1)


_found = _func_grad(_Attention(1, 4), first_order=True)
assert _found["weight"].any()
try:
    _func_grad(_Attention(1, 4))
except RuntimeError as error:
    _errors.append(str(error))
assert len(_errors) == 2 and "is not implemented" in _errors[1]
# sphinx_gallery_end_ignore

# %%
# **Batch norm** in training mode raises an error under ``torch.func.grad``, since it writes to its running statistics. Use
# ``track_running_stats=False``.
#
# **First-order MAML** treats the gradient in the step as a constant. It needs no second derivative, so it also works for
# :ref:`fused attention, which has none <sphx_glr_gallery_errors_derivative_not_implemented.py>`. What it leaves out: the new
# weight is :math:`w - 0.1 \cdot 2 (w - 3) = 0.8 w + 0.6`, so a change of ``w`` arrives there times 0.8, and
# :math:`0.8 \cdot (-20.80) = -16.64`. For a network, the factor is :math:`I - \text{lr} \cdot H`, with the Hessian :math:`H` of
# the inner loss.
#
# **The learning rate** can be learned too, as a tensor that requires grad:

rate = torch.tensor(0.1, requires_grad=True)
g = grad(inner_loss)(start, x, y)["weight"]
inner_loss({"weight": start["weight"] - rate * g}, x_outer, y_outer).backward()
print(f"rate.grad: {rate.grad.item():.1f}, by hand {-g.item() * first.item():.1f}")

# sphinx_gallery_start_ignore
assert abs(rate.grad + g * first).item() < 1e-3 and abs(rate.grad + 83.2) < 1e-3
# sphinx_gallery_end_ignore

# %%
# The whole loop
# --------------
# A task is a sine curve with its own amplitude and phase. The inner step sees 10 points of it, the outer loss 10 others. The
# outer step uses 25 tasks, which ``vmap`` runs in one call.

torch.set_num_threads(1)  # such small tensors are slower on several


def make_net(seed=0):
    torch.manual_seed(seed)
    layers = nn.Linear(1, 40), nn.Tanh(), nn.Linear(40, 40), nn.Tanh(), nn.Linear(40, 1)
    return nn.Sequential(*layers)


def sample_tasks(count, generator):
    amplitude = 1 + 4 * torch.rand(count, 1, 1, generator=generator)
    phase = 3 * torch.rand(count, 1, 1, generator=generator)
    x = 10 * torch.rand(count, 20, 1, generator=generator) - 5
    y = amplitude * torch.sin(x + phase)
    return x[:, :10], y[:, :10], x[:, 10:], y[:, 10:]


# %%
# ``with_step`` is the loss that MAML minimizes:

net = make_net()


def loss_of(weights, x, y):
    return mse(functional_call(net, weights, (x,)), y)


def one_step(weights, x, y):
    g = grad(loss_of)(weights, x, y)
    return {name: weights[name] - 0.05 * g[name] for name in weights}


def with_step(weights, x, y, x_outer, y_outer):
    return loss_of(one_step(weights, x, y), x_outer, y_outer)


def without_step(weights, x, y, x_outer, y_outer):
    return loss_of(weights, x_outer, y_outer)


# %%
# ``in_dims`` says that all tasks begin with the same weights, and that each has its own points:


def train_start(loss_of_task):
    weights = dict(make_net().named_parameters())
    optimizer = torch.optim.Adam(weights.values(), lr=0.01)
    generator = torch.Generator().manual_seed(1)
    for _ in range(200):
        tasks = sample_tasks(25, generator)
        losses = vmap(loss_of_task, in_dims=(None, 0, 0, 0, 0))(weights, *tasks)
        optimizer.zero_grad()
        losses.mean().backward()
        optimizer.step()
    return weights


maml, plain = train_start(with_step), train_start(without_step)

# %%
# .. how-measured:: This code measures a start on 200 new tasks, and draws one of them.

import matplotlib.pyplot as plt


def measure_on_new_tasks(weights):
    tasks = sample_tasks(200, torch.Generator().manual_seed(9))
    return vmap(with_step, in_dims=(None, 0, 0, 0, 0))(weights, *tasks).mean().item()


def draw_new_task(maml, plain):
    x, y, *_ = (part[0] for part in sample_tasks(200, torch.Generator().manual_seed(9)))
    line = torch.linspace(-5, 5, 100)[:, None]
    figure, ax = plt.subplots(figsize=(7, 3.4), layout="constrained")
    for weights, style, label in (
        (maml, "b:", "MAML, before the step"),
        (one_step(maml, x, y), "b-", "MAML, after it"),
        (one_step(plain, x, y), "o--", "trained without the step, after it"),
    ):
        color = {"b": "#2563eb", "o": "#c2410c"}[style[0]]
        curve = functional_call(net, weights, (line,)).detach()
        ax.plot(line, curve, style[1:], color=color, label=label)
    ax.plot(x, y, "o", color="#64748b", label="ten points of a new task")
    ax.set(xlabel="x", ylabel="y")
    ax.set_title("One step on ten points, from two starts")
    figure.legend(loc="outside lower center", ncols=2)


# %%
# The mean loss on 200 new tasks, after one step:

# figure: Ten points of a sine curve. The dotted blue curve, MAML before the step, is a flat wave that misses most of them. The
#   solid blue curve, after one step, passes near nine of the ten. The dashed orange curve, the other start after the same step,
#   misses most.
draw_new_task(maml, plain)
for name, weights in {"with the step": maml, "without it": plain}.items():
    print(f"trained {name:<14} {measure_on_new_tasks(weights):.1f}")

# sphinx_gallery_start_ignore
assert measure_on_new_tasks(maml) < 1.5 < 2.5 < measure_on_new_tasks(plain)
assert measure_on_new_tasks(dict(make_net().named_parameters())) > 2.5
_x, _y, *_ = (part[0] for part in sample_tasks(200, torch.Generator().manual_seed(9)))
_losses = [
    loss_of(w, _x, _y).item()
    for w in (maml, one_step(maml, _x, _y), one_step(plain, _x, _y))
]
assert _losses[1] < 0.25 * min(_losses[0], _losses[2])
_misses = [
    (functional_call(net, w, (_x,)) - _y).abs().flatten()
    for w in (maml, one_step(maml, _x, _y), one_step(plain, _x, _y))
]
_near = [int((miss < 0.8).sum()) for miss in _misses]
assert _near[0] <= 4 and _near[1] == 9 and _near[2] <= 4
# vmap over the tasks is the same as a loop with one backward for each
_start = make_net()
_weights = dict(_start.named_parameters())
_tasks = sample_tasks(5, torch.Generator().manual_seed(3))
vmap(with_step, in_dims=(None, 0, 0, 0, 0))(_weights, *_tasks).sum().backward()
_at_once = [p.grad for p in _start.parameters()]
_start.zero_grad()
for _task in zip(*_tasks, strict=True):
    with_step(_weights, *_task).backward()
for _p, _g in zip(_start.parameters(), _at_once, strict=True):
    assert torch.allclose(_p.grad, _g, rtol=1e-3, atol=1e-4)
# sphinx_gallery_end_ignore

# %%
# Memory grows with each inner step
# ---------------------------------
# With ``create_graph=True``, backward must be able to go through all steps, so each step keeps its tensors.
#
# .. how-measured:: It counts the bytes of the tensors that the graph of the outer loss has saved, each storage once.

import weakref

import pandas as pd


class Saved:
    def __init__(self, tensor):
        self.tensor = tensor.detach()


def outer_loss_after(inner_steps, create_graph):
    x, y, x_outer, y_outer = sample_tasks(1, torch.Generator().manual_seed(0))
    weights = dict(net.named_parameters())
    for _ in range(inner_steps):
        loss, leaves = loss_of(weights, x, y), list(weights.values())
        grads = torch.autograd.grad(loss, leaves, create_graph=create_graph)
        stepped = zip(weights.items(), grads, strict=True)
        weights = {name: w - 0.05 * g for (name, w), g in stepped}
    return loss_of(weights, x_outer, y_outer)


def watched(alive):
    def pack(tensor):
        saved = Saved(tensor)
        alive.add(saved)  # a weak set: it forgets what a graph has freed
        return saved

    return torch.autograd.graph.saved_tensors_hooks(pack, lambda saved: saved.tensor)


def saved_bytes(inner_steps, create_graph):
    alive = weakref.WeakSet()
    with watched(alive):
        loss = outer_loss_after(inner_steps, create_graph)
    assert loss.requires_grad  # the graph is still there
    storages = [saved.tensor.untyped_storage() for saved in alive]
    return sum({s.data_ptr(): s.nbytes() for s in storages}.values())


def tabulate_saved_kilobytes():
    rows = [[saved_bytes(n, full) / 1000 for full in (True, False)] for n in (1, 4, 16)]
    index = pd.Index([1, 4, 16], name="inner steps")
    return pd.DataFrame(rows, index, columns=["MAML", "first-order"]).round(1)


# %%
# Kilobytes, for the network above:

# sphinx_gallery_start_ignore
import itertools

memory = tabulate_saved_kilobytes()
_full = [saved_bytes(n, True) for n in range(5)]
assert len({after - before for before, after in itertools.pairwise(_full)}) == 1
assert _full[1] > 2 * _full[0] and memory["MAML"][16] > 8 * memory["MAML"][1]
assert len({saved_bytes(n, False) for n in range(5)}) == 1
# sphinx_gallery_end_ignore
tabulate_saved_kilobytes()

# %%
# So call ``(loss / number_of_tasks).backward()`` for each task: the gradients add up to that of the mean, and only one graph is
# in memory at a time.

# %%
# Several models in one call
# --------------------------
# ``stack_module_state`` stacks the parameters and buffers of models of one class and size. ``vmap`` runs them all, through the
# ``forward`` of ``models[0]``.

models = [make_net(seed) for seed in range(4)]
stacked, buffers = stack_module_state(models)


def call(weights, buffers, x):
    return functional_call(models[0], (weights, buffers), (x,))


inputs = torch.linspace(-5, 5, 30)[:, None]
outputs = vmap(call, in_dims=(0, 0, None))(stacked, buffers, inputs)
outputs.square().sum().backward()

print("outputs:", tuple(outputs.shape))
print("a stacked weight:", tuple(stacked["0.weight"].shape))
print("its .grad:", tuple(stacked["0.weight"].grad.shape))
print(".grad in the model:", models[0][0].weight.grad)

# sphinx_gallery_start_ignore
assert (
    outputs.std(0).min() > 1e-3
    and outputs.shape == (4, 30, 1)
    and stacked["0.weight"].grad.shape == (4, 40, 1)
)
assert all(w.is_leaf for w in stacked.values()) and models[0][0].weight.grad is None
_alone = make_net(0)
_alone(inputs).square().mean().backward()
for _over_models, _share in (("sum", 1), ("mean", 4)):
    for _w in stacked.values():
        _w.grad = None
    _losses = vmap(call, in_dims=(0, 0, None))(stacked, buffers, inputs).square()
    getattr(_losses.mean((1, 2)), _over_models)().backward()
    _found = _share * stacked["0.weight"].grad[0]
    assert torch.allclose(_found, _alone[0].weight.grad, rtol=1e-3, atol=1e-5)
for _model, _output in zip(models, outputs, strict=True):
    assert torch.allclose(_model(inputs), _output, atol=1e-5)
_refused = []
for _pair in (
    [nn.Linear(3, 1), nn.Linear(3, 2)],
    [nn.Linear(3, 1), nn.Conv1d(3, 1, 1)],
    [nn.Linear(3, 1), nn.Linear(3, 1).eval()],
):
    try:
        stack_module_state(_pair)
    except RuntimeError as error:
        _refused.append(str(error))
assert len(_refused) == 3


def _through_first(weights, buffers):
    return functional_call(_pair[0], (weights, buffers), (inputs,))


_pair = [nn.BatchNorm1d(1).eval() for _ in range(2)]
_pair[1].running_mean.fill_(3)
_weights, _means = stack_module_state(_pair)
_both = torch.stack([norm(inputs) for norm in _pair])
assert torch.allclose(vmap(_through_first)(_weights, _means), _both, atol=1e-5)
_wrong = vmap(lambda w: functional_call(_pair[0], w, (inputs,)))(_weights)
assert torch.equal(_wrong[0], _wrong[1]) and not torch.allclose(_wrong, _both)
# sphinx_gallery_end_ignore

# %%
# The stacked weights are new leaves: give ``stacked.values()`` to the optimizer. The models keep their own numbers. Add up the
# losses of the models: a mean over them divides each gradient by their number. Pass the buffers as well: without them, batch
# norm in ``eval()`` uses the statistics of ``models[0]`` for each model.

# %%
# What people get wrong
# ---------------------
# **The step is not recorded.** These are other ways to write the inner step, on the model itself and on
# ``copy.deepcopy(model)``. The table shows ``.grad`` of the first weight.
#
# .. how-measured:: Each function makes the inner step. Then the outer loss is computed, and its backward called.

import copy


def new_weights(model):
    grads = torch.autograd.grad(mse(model(x), y), model.parameters(), create_graph=True)
    named = zip(model.named_parameters(), grads, strict=True)
    return {name: w - lr * g for (name, w), g in named}


def optimizer_step(model):
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    mse(model(x), y).backward()
    optimizer.step()
    optimizer.zero_grad()


def write_to_data(model):
    (g,) = torch.autograd.grad(mse(model(x), y), model.parameters(), create_graph=True)
    model.weight.data -= lr * g


def load(model):
    model.load_state_dict(new_weights(model))


def new_parameter(model):
    model.weight = nn.Parameter(new_weights(model)["weight"])


def through_call(model, **option):
    (g,) = torch.autograd.grad(mse(model(x), y), model.parameters(), **option)
    return functional_call(model, {"weight": model.weight - lr * g}, (x_outer,))


def shown(grad):
    return "None" if grad is None else f"{grad.item():.2f}"


def outcome(step, on_a_copy):
    model = OneWeight()
    start, used = model.weight, copy.deepcopy(model) if on_a_copy else model
    step(used)
    mse(used(x_outer), y_outer).backward()
    return shown(start.grad)


def outcome_of_call(**option):
    model = OneWeight()
    mse(through_call(model, **option), y_outer).backward()
    return shown(model.weight.grad)


def tabulate_steps():
    rows = {
        "functional_call, create_graph=True": [outcome_of_call(create_graph=True), ""],
        "functional_call without it": [outcome_of_call(), ""],
    }
    for name, step in {
        "optimizer.step()": optimizer_step,
        "weight.data -= lr * g": write_to_data,
        "load_state_dict(new)": load,
        "weight = nn.Parameter(new)": new_parameter,
    }.items():
        rows[name] = [outcome(step, on_a_copy=False), outcome(step, on_a_copy=True)]
    return pd.DataFrame(rows, index=["model itself", "copy"]).T


# %%
# Only the first row is the slope from above:

# sphinx_gallery_start_ignore
table = tabulate_steps()
assert table["model itself"].tolist() == ["-16.64"] + ["-20.80"] * 4 + ["None"]
assert table["copy"].tolist() == ["", ""] + ["None"] * 4
for _step in (optimizer_step, write_to_data, load):
    _model = OneWeight()
    _step(_model)
    assert abs(_model.weight.item() - 1.4) < 1e-6  # the start is overwritten


torch.manual_seed(0)
_x, _y, _xo, _yo = torch.randn(4, 8, 1)


def _w_data(model):
    for p, w in zip(model.parameters(), _step_of(model).values(), strict=True):
        p.data.copy_(w)


def _w_no_grad(model):
    new = _step_of(model)
    with torch.no_grad():
        for p, w in zip(model.parameters(), new.values(), strict=True):
            p.copy_(w)


def _w_load(model):
    model.load_state_dict(_step_of(model, create_graph=True))


def _w_optimizer(model):
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    mse(model(_x), _y).backward()
    optimizer.step()
    optimizer.zero_grad()


for _write in (_w_data, _w_no_grad, _w_load, _w_optimizer):
    _model = _net()
    _write(_model)
    mse(_model(_xo), _yo).backward()
    assert torch.allclose(
        _flat(p.grad for p in _model.parameters()), _first, rtol=1e-4, atol=1e-6
    )
    _model = _net()
    _used = copy.deepcopy(_model)
    _write(_used)
    mse(_used(_xo), _yo).backward()
    assert all(p.grad is None for p in _model.parameters())
# sphinx_gallery_end_ignore
tabulate_steps()

# %%
# - On a copy, no path leads to the model: ``None``. ``nn.Parameter`` makes a new leaf, even on the model itself.
# - On the model itself, you get -20.80, and no error: the slope with respect to the *new* weight, as in first-order MAML.
# - ``optimizer.step()``, ``.data`` and ``load_state_dict`` also overwrite the start, with 1.4.
#
# Published code has such steps (`MeLU#9 <https://github.com/hoyeoplee/MeLU/issues/9>`__), so compare with finite differences.
#
# With ``differentiable=True`` an optimizer records its step. It writes in place: give it a computed copy, and the inner loss a
# clone:


def slope_through_optimizer(**options):
    model = OneWeight()
    copied = 1 * model.weight
    optimizer = torch.optim.SGD([copied], lr=lr, differentiable=True, **options)
    inner = mse(functional_call(model, {"weight": copied.clone()}, (x,)), y)
    (copied.grad,) = torch.autograd.grad(inner, copied, create_graph=True)
    optimizer.step()
    mse(functional_call(model, {"weight": copied}, (x_outer,)), y_outer).backward()
    return model.weight.grad.item()


print(f"SGD:               {slope_through_optimizer():.2f}")
print(f"SGD with momentum: {slope_through_optimizer(momentum=0.9):.2f}")


# sphinx_gallery_start_ignore
def _outer_of(make, w, steps, clone=True, **options):
    w = w * 1
    optimizer = make([w], lr=0.1, differentiable=True, **options)
    for _ in range(steps):
        loss = ((w.clone() if clone else w) ** 3).sum()
        (w.grad,) = torch.autograd.grad(loss, w, create_graph=True)
        optimizer.step()
    return w.square().sum()


def _is_right(make, steps, **options):
    w = torch.tensor([1.0, 0.5], dtype=torch.float64, requires_grad=True)
    (slope,) = torch.autograd.grad(_outer_of(make, w, steps, **options), w)
    shifts = 1e-6 * torch.eye(2, dtype=torch.float64)
    ends = [
        [_outer_of(make, (w + s * shift), steps, **options).item() for shift in shifts]
        for s in (1, -1)
    ]
    left, right = torch.tensor(ends, dtype=torch.float64)
    return torch.allclose(slope, (left - right) / 2e-6, atol=1e-4)


assert abs(slope_through_optimizer() + 16.64) < 1e-4
assert abs(slope_through_optimizer(momentum=0.9) + 20.80) < 1e-4
for _make in (torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW):
    assert _is_right(_make, 1) and _is_right(_make, 3)
for _steps in (1, 3):
    assert not _is_right(torch.optim.SGD, _steps, momentum=0.9)
for _make in (torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW):
    _w = torch.tensor([1.0, 0.0], requires_grad=True)  # the gradient of 0**3 is 0
    (_slope,) = torch.autograd.grad(_outer_of(_make, _w, 1), _w)
    assert _slope.isnan().tolist() == [False, _make is not torch.optim.SGD]
_refused = []
try:
    _w = torch.ones(2, requires_grad=True)
    _outer_of(torch.optim.SGD, _w, 1, clone=False).backward()
except RuntimeError as error:
    _refused.append("modified by an inplace operation" in str(error))
assert _refused == [True]
# sphinx_gallery_end_ignore

# %%
# With momentum, ``SGD`` detaches its first gradient, so the slope is wrong. ``Adam`` gives ``nan`` if a gradient is 0
# (dead ReLU).
#
# **A wrong name is ignored.** ``weights`` is a misspelled ``weight``, and by default the call runs with the old weight. So
# pass ``strict=True``. It also wants each buffer: pass ``(weights, buffers)``.

wrong = {"weights": new["weight"]}
print("without strict:", functional_call(model, wrong, (x,)).item())
raised = []
try:
    functional_call(model, wrong, (x,), strict=True)
except RuntimeError as error:
    raised.append(str(error))
    print("RuntimeError:", error)

# sphinx_gallery_start_ignore
assert functional_call(model, wrong, (x,)).item() == 1 and len(raised) == 1
assert "Unexpected key(s): 'weights'" in raised[0] and "Missing key(s)" in raised[0]
_part = functional_call(_net(), {"0.weight": torch.zeros(8, 1)}, (_x,))
assert torch.equal(functional_call(_net(), {"0.other": _x}, (_x,)), _net()(_x))
_zeroed = _net()
nn.init.zeros_(_zeroed[0].weight)
assert torch.equal(_part, _zeroed(_x))
_weights = {name: w.detach() for name, w in _norm.named_parameters()}
_buffers = {name: buffer.clone() for name, buffer in _norm.named_buffers()}
try:
    functional_call(_norm, _weights, (_rows,), strict=True)
except RuntimeError as error:
    raised.append(str(error))
assert len(raised) == 2 and "'running_mean'" in raised[1]
_out = functional_call(_norm, (_weights, _buffers), (_rows,), strict=True)
assert torch.equal(_out, _norm(_rows))
# sphinx_gallery_end_ignore

# %%
# **state_dict() as weights.** By default its tensors are detached. Take ``dict(model.named_parameters())``:

for name, source in {
    "state_dict()": model.state_dict(),
    "named_parameters()": dict(model.named_parameters()),
}.items():
    print(f"{name:<19}", functional_call(model, source, (x,)).requires_grad)

# sphinx_gallery_start_ignore
assert not functional_call(model, model.state_dict(), (x,)).requires_grad
assert functional_call(model, dict(model.named_parameters()), (x,)).requires_grad
# sphinx_gallery_end_ignore

# %%
# Exercise
# --------
# Compare MAML with first-order MAML for the one weight, with the learning rates 0.1, 0.5 and 0.7. Why is one of them 0 at 0.5,
# and what happens at 0.7?
#
# .. solution::
#
# The new weight is :math:`(1 - 2\,\text{lr})\, w + 6\,\text{lr}`. At 0.5 that is 3 from each start, the best weight for the
# inner loss, so MAML's gradient is 0. At 0.7 the step goes too far: a larger start gives a smaller new weight. First-order
# MAML misses this, and has the wrong sign.

for lr in (0.1, 0.5, 0.7):  # outer_loss reads lr
    full, first = (
        grad(outer_loss)(start, option)["weight"] for option in (False, True)
    )
    print(f"lr {lr}: MAML {full.item():6.2f}, first-order {first.item():6.2f}")

# sphinx_gallery_start_ignore
assert abs(full - 0.64) < 1e-3 and abs(first + 1.6) < 1e-3
lr = 0.5
assert abs(grad(outer_loss)(start)["weight"]) < 1e-4
assert abs(grad(outer_loss)(start, True)["weight"] + 8) < 1e-3
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_differentiation_higher_order.py`: what ``create_graph=True`` does and costs.
# - :ref:`sphx_glr_gallery_differentiation_jacobian_and_hessian.py`: the Jacobian with respect to the parameters of a module.
# - :ref:`sphx_glr_gallery_modules_per_sample_gradients.py`: ``vmap`` over the samples, with batch norm and dropout.
# - :ref:`sphx_glr_gallery_errors_func_grad_of_vector.py` and :ref:`sphx_glr_gallery_errors_vmap_item.py`: messages of
#   ``torch.func``.
# - :ref:`sphx_glr_gallery_tensors_detach_clone_data.py`: what ``.data`` is.
# - In PyTorch's reference: `functional_call
#   <https://docs.pytorch.org/docs/stable/generated/torch.func.functional_call.html>`__, `stack_module_state
#   <https://docs.pytorch.org/docs/stable/generated/torch.func.stack_module_state.html>`__ and `torch.func
#   <https://docs.pytorch.org/docs/stable/func.html>`__.
