r"""
Per-sample gradients: vmap and grad
===================================

.. index::
   single: gradient for each sample of a batch
   single: individual gradients without a loop, DP-SGD
   single: norm of the gradient of each sample
   single: autograd.grad inside vmap: element 0 of tensors does not require grad
   single: batch norm in vmap(grad): in-place operation would mutate a captured Tensor

.. in-short::

   Write the loss of *one* sample, and let ``vmap`` run its gradient for the batch:

   .. code-block:: python

      def loss_of_one(weights, x, y):
          return loss_fn(functional_call(model, weights, (x[None],)), y[None])
      weights = {n: w.detach() for n, w in model.named_parameters()
                 if w.requires_grad}
      grads = vmap(grad(loss_of_one), in_dims=(None, 0, 0))(weights, inputs, targets)

   Each result has the shape of its weight, with the batch in front. In training mode, dropout needs
   ``randomness="different"``, and batch norm that tracks its statistics raises an error.
"""

# %%
# Which samples change the weights most?
# --------------------------------------
# ``backward()`` on a mean loss gives you the mean of all gradients. You want one for each sample: to find unusual samples, or
# to clip each one (DP-SGD). In these two groups, three of the 60 labels are wrong:

import torch
import torch.nn.functional as F
from torch import nn
from torch.func import functional_call, grad, vmap

torch.set_num_threads(1)  # such small tensors are slower on several
torch.manual_seed(0)
group = torch.arange(60) % 2
centers = torch.tensor([[-1.3, -0.6], [1.3, 0.6]])
points = centers[group] + 0.7 * torch.randn(60, 2)
wrong = [10, 27, 44]
labels = group.clone()
labels[wrong] = 1 - labels[wrong]

model = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
for _ in range(60):
    optimizer.zero_grad()
    F.cross_entropy(model(points), labels).backward()
    optimizer.step()
optimizer.zero_grad()

# %%
# One call gives 60 gradients of each weight:


def per_sample_gradients(model, inputs, targets, **options):
    def loss_of_one(weights, x, y):
        return F.cross_entropy(functional_call(model, weights, (x[None],)), y[None])

    named = model.named_parameters()
    weights = {name: w.detach() for name, w in named if w.requires_grad}
    gradient = vmap(grad(loss_of_one), in_dims=(None, 0, 0), **options)
    return gradient(weights, inputs, targets)


grads = per_sample_gradients(model, points, labels)
norms = torch.cat([g.flatten(1) for g in grads.values()], dim=1).norm(dim=1)

print("model[0].weight:", tuple(model[0].weight.shape))
print("its gradients:  ", tuple(grads["0.weight"].shape))
print("three longest:  ", sorted(norms.topk(3).indices.tolist()), "wrong:", wrong)

# %%
# .. how-measured:: This code draws the norms.

import matplotlib.pyplot as plt


def draw_norms(norms):
    _, ax = plt.subplots(figsize=(7, 2.9), layout="constrained")
    for label, color, marker in ((0, "#2563eb", "o"), (1, "#c2410c", "s")):
        chosen = labels == label
        x, y = points[chosen].T
        area = 12 + 70 * norms[chosen]
        name = f"labeled {label}"
        ax.scatter(x, y, s=area, color=color, marker=marker, alpha=0.75, label=name)
    ax.set_title("The larger the mark, the longer the gradient of that sample")
    ax.set(xlabel="x[0]", ylabel="x[1]")
    for handle in ax.legend(loc="upper left").legend_handles:
        handle.set_sizes([30])


# %%
# The wrong labels have the longest gradients:

# figure: Two groups of points, blue circles on the left and orange squares on the right. Three marks are much larger than the
#   others: two orange squares among the circles, and one blue circle among the squares.
draw_norms(norms)

# sphinx_gallery_start_ignore
assert sorted(norms.topk(3).indices.tolist()) == wrong
assert norms.topk(4).values[2] > 1.5 * norms.topk(4).values[3]
for _name, _w in model.named_parameters():
    assert grads[_name].shape == (60, *_w.shape) and not grads[_name].requires_grad


_calls = []


def _one(weights, x, y):
    _calls.append(tuple(x.shape))
    return F.cross_entropy(functional_call(model, weights, (x[None],)), y[None])


_mapped = vmap(grad(_one), in_dims=(None, 0, 0))
_attached = _mapped(dict(model.named_parameters()), points, labels)
assert all(g.requires_grad for g in _attached.values()) and _calls == [(2,)]
model[0].requires_grad_(False)
_found = per_sample_gradients(model, points, labels)
assert list(_found) == ["2.weight", "2.bias"]
torch.testing.assert_close(_found["2.weight"], grads["2.weight"])
_ = model.requires_grad_(True)
# sphinx_gallery_end_ignore

# %%
# **grad is the gradient for one sample, and vmap runs it for all samples at once.** ``in_dims`` says that all samples share the
# weights (``None``), and that samples and targets are numbered in their dimension 0. The weights are detached, so that the
# results keep no graph. Frozen weights are left out.

# %%
# Clip the gradient of each sample
# --------------------------------
# :ref:`clip_grad_norm_ <sphx_glr_gallery_training_gradient_clipping.py>` clips the mean. To limit what a single sample can do,
# clip each one before the mean, and then call ``optimizer.step()``. (DP-SGD also adds noise.) To accumulate several batches,
# add to ``w.grad`` instead of assigning it. The output shows the longest gradient, and how much of all lengths comes from the
# wrong labels:

factors = (1.0 / norms).clamp(max=1.0)  # the norm of each sample becomes at most 1
for name, g in grads.items():
    w = model.get_parameter(name)
    w.grad = torch.einsum("n,n...->...", factors, g) / len(points)

for when, weight in {"before": norms, "after": norms * factors}.items():
    share = weight[wrong].sum() / weight.sum()
    print(f"{when:<7} longest {weight.max():.2f}, wrong labels: {share:.0%}")

# sphinx_gallery_start_ignore
for _name, _w in model.named_parameters():
    _slow = sum(f * g for f, g in zip(factors, grads[_name], strict=True)) / 60
    torch.testing.assert_close(_w.grad, _slow)
assert norms.max() > 3 and (norms * factors).max() < 1.0001
# sphinx_gallery_end_ignore

# %%
# The same numbers in three ways
# ------------------------------
# **A loop** is the definition:


def by_loop(model, inputs, targets):
    rows = []
    for x, y in zip(inputs, targets, strict=True):
        loss = F.cross_entropy(model(x[None]), y[None])
        rows.append(torch.autograd.grad(loss, list(model.parameters())))
    stacked = [torch.stack(column) for column in zip(*rows, strict=True)]
    names = (name for name, _ in model.named_parameters())
    return dict(zip(names, stacked, strict=True))


# %%
# **Hooks** use what a linear layer does. The gradient of one sample is an outer product: the slope of the loss at the output,
# times the input. A forward hook keeps the input and the output, and ``torch.autograd.grad`` gives the slope:


def inputs_and_slopes(model, inputs, targets):
    seen = {}

    def remember(layer, args, output):
        assert layer not in seen, "a layer that runs twice"
        seen[layer] = args[0].detach(), output

    layers = {n: part for n, part in model.named_modules() if type(part) is nn.Linear}
    handles = [layer.register_forward_hook(remember) for layer in layers.values()]
    try:
        loss = F.cross_entropy(model(inputs), targets, reduction="sum")
    finally:
        for handle in handles:
            handle.remove()
    assert all(output._version == 0 for _, output in seen.values()), "inplace=True"
    slopes = torch.autograd.grad(loss, [seen[layer][1] for layer in layers.values()])
    return {
        name: (seen[layer][0], slope)
        for (name, layer), slope in zip(layers.items(), slopes, strict=True)
    }


def by_hooks(model, inputs, targets):
    grads = {}
    for name, (x, slope) in inputs_and_slopes(model, inputs, targets).items():
        grads[f"{name}.weight"] = torch.einsum("no,ni->noi", slope, x)
        if model.get_submodule(name).bias is not None:
            grads[f"{name}.bias"] = slope
    names = {name for name, _ in model.named_parameters()}
    assert grads.keys() == names, "shared, or not of an nn.Linear"
    return grads


# %%
# The three agree, and their mean is ``.grad``. If your loss adds up the samples instead, their sum is ``.grad``:

model.zero_grad()
F.cross_entropy(model(points), labels).backward()  # the mean of 60 losses

looped, hooked = by_loop(model, points, labels), by_hooks(model, points, labels)
for name, w in model.named_parameters():
    torch.testing.assert_close(grads[name], looped[name])
    torch.testing.assert_close(hooked[name], looped[name])
    largest = (grads[name].mean(0) - w.grad).abs().max()
    print(f"{name:<9} mean equals .grad: {largest < 1e-5}")

# sphinx_gallery_start_ignore
model.zero_grad()
F.cross_entropy(model(points), labels, reduction="sum").backward()
for _name, _w in model.named_parameters():
    torch.testing.assert_close(grads[_name].sum(0), _w.grad, rtol=1e-4, atol=1e-5)
    assert (grads[_name].mean(0) - _w.grad / 60).abs().max() < 1e-6
_seen = []
_handle = model[2].register_forward_hook(lambda *given: _seen.append(given[1:]))
_loss = F.cross_entropy(model(points), labels, reduction="sum")
_handle.remove()
((_input,), _output) = _seen[0]
(_slope,) = torch.autograd.grad(_loss, _output)
torch.testing.assert_close(_slope.T @ _input, model[2].weight.grad)
for _name, _w in model.named_parameters():  # what is printed has room for rounding
    assert (grads[_name].mean(0) - _w.grad / 60).abs().max() < 1e-6
_state = torch.random.get_rng_state()  # hidden draws change nothing that is shown


class _Last(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.GRU(2, 2, batch_first=True)

    def forward(self, x):
        return self.layer(x)[0][:, -1]


_refused = []
try:
    per_sample_gradients(_Last(), torch.randn(4, 3, 2), torch.tensor([0, 1, 0, 1]))
except RuntimeError as error:
    _refused.append(str(error))
assert len(_refused) == 1
_again = nn.Sequential(*[nn.Linear(2, 2)] * 2)
_relu = nn.Sequential(nn.Linear(2, 2), nn.ReLU(inplace=True), nn.Linear(2, 2))
_norm = nn.Sequential(nn.Linear(2, 2, bias=False), nn.RMSNorm(2), nn.Linear(2, 2))
_tied = nn.Sequential(nn.Linear(2, 2), nn.Tanh(), nn.Linear(2, 2))
_tied[2].weight = _tied[0].weight
_refused.clear()
for _way, _net in (
    (inputs_and_slopes, _again),
    (inputs_and_slopes, _relu),
    (by_hooks, _norm),
    (by_hooks, _tied),
):
    try:
        _way(_net, points, labels)
    except AssertionError as error:
        _refused.append(str(error))
_other = ["shared, or not of an nn.Linear"] * 2
assert _refused == ["a layer that runs twice", "inplace=True", *_other]
assert not any(part._forward_hooks for net in (_again, _relu) for part in net.modules())
_middle = nn.Linear(2, 2, bias=False)
_right = nn.Sequential(nn.Linear(2, 2), nn.Tanh(), _middle, nn.Tanh(), nn.Linear(2, 2))
_hooked, _looped = (way(_right, points, labels) for way in (by_hooks, by_loop))
assert _hooked.keys() == _looped.keys()
for _name in _hooked:
    torch.testing.assert_close(_hooked[_name], _looped[_name])
torch.random.set_rng_state(_state)
# sphinx_gallery_end_ignore

# %%
# Why does ``.grad`` not have them? For a linear layer, ``backward()`` computes ``slope.T @ input``. This matrix product has the
# sum over the samples inside, so the single gradients never exist as tensors. ``einsum`` computes them instead of the sum.
#
# These hooks are for an ``nn.Linear`` that runs once, because every kind of layer needs its own formula. With ``vmap`` you
# write no formula, but ``nn.GRU`` raises an error (`pytorch#134606
# <https://github.com/pytorch/pytorch/issues/134606>`__).

# %%
# What it costs
# -------------
# A network with two hidden layers of 64 units gets 128 samples.
#
# .. how-measured:: It counts the operators of PyTorch that each way calls, and the peak of the bytes in tensors that it makes.

import weakref

import pandas as pd
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class Alive(TorchDispatchMode):
    """Counts operators, and the bytes of all storages made under it.

    It does not see what a kernel takes for itself.
    """

    def __init__(self):
        super().__init__()
        self.sizes, self.peak, self.operators = {}, 0, 0

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        result = operation(*args, **(kwargs or {}))
        self.operators += 1
        for tensor in tree_leaves(result):
            if isinstance(tensor, torch.Tensor):
                storage = tensor.untyped_storage()
                if storage._cdata not in self.sizes:
                    self.sizes[storage._cdata] = storage.nbytes()
                    weakref.finalize(storage, self.sizes.pop, storage._cdata)
        self.peak = max(self.peak, sum(self.sizes.values()))
        return result


def one_mean(model, inputs, targets):
    loss = F.cross_entropy(model(inputs), targets)
    return torch.autograd.grad(loss, list(model.parameters()))


def norms_only(model, inputs, targets):
    def norm_of_one(weights, x, y):
        def loss(weights):
            return F.cross_entropy(functional_call(model, weights, (x[None],)), y[None])

        return sum(g.square().sum() for g in grad(loss)(weights).values()).sqrt()

    weights = {name: w.detach() for name, w in model.named_parameters()}
    mapped = vmap(norm_of_one, in_dims=(None, 0, 0), chunk_size=16)
    return mapped(weights, inputs, targets)


def measure_cost(way):
    with Alive() as alive:
        kept = way(*wide)
    assert len(kept) > 0
    return {"operators": alive.operators, "MB": round(alive.peak / 1e6, 2)}


hidden = nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh()
wide = (
    nn.Sequential(*hidden, nn.Linear(64, 10)),
    torch.randn(128, 64),
    torch.randint(0, 10, (128,)),
)
WAYS = {
    "one gradient, the mean": one_mean,
    "loop": by_loop,
    "vmap(grad)": per_sample_gradients,
    "hooks": by_hooks,
    "vmap, norms, chunk_size=16": norms_only,
}


def tabulate_costs():
    costs = pd.DataFrame({name: measure_cost(way) for name, way in WAYS.items()}).T
    return costs.astype({"operators": int})


# %%
# Calls of operators, and megabytes:

# sphinx_gallery_start_ignore
costs = tabulate_costs()
_calls, _mb = costs["operators"], costs["MB"]
assert _calls["loop"] > 40 * _calls["vmap(grad)"] > 40 * _calls["hooks"]
assert _mb[["loop", "vmap(grad)", "hooks"]].min() > 10 * _mb.iloc[0]
assert _mb["vmap, norms, chunk_size=16"] < 0.4 * _mb["vmap(grad)"]
assert _mb["loop"] > _mb["vmap(grad)"]
_grads = per_sample_gradients(*wide)
_size = sum(g.nbytes for g in _grads.values()) / 1e6
assert _size == 128 * sum(w.nbytes for w in wide[0].parameters()) / 1e6
assert _size < _mb["vmap(grad)"] < 1.5 * _size
_norms = torch.cat([g.flatten(1) for g in _grads.values()], dim=1).norm(dim=1)
torch.testing.assert_close(norms_only(*wide), _norms, rtol=1e-3, atol=1e-5)
assert 128 * 25e6 * 4 == 12.8e9
# sphinx_gallery_end_ignore
tabulate_costs()

# %%
# The loop calls the operators once for each sample, ``vmap`` and the hooks once for all samples. All need more memory than
# the mean, because the result is as large as all weights, times the samples. If you need only the norms, return the norm of one
# sample, and pass ``chunk_size=16``. Then the gradients of 16 samples exist at a time.

# %%
# What people get wrong
# ---------------------
# **Batch norm in training mode.** It normalizes with the mean of the batch, so the output for one sample depends on the others.
# It also writes to its running statistics, and that raises the error (`functorch#986
# <https://github.com/pytorch/functorch/issues/986>`__):

images, digits = torch.randn(16, 1, 8, 8), torch.randint(0, 3, (16,))


def conv_net(norm):
    torch.manual_seed(0)
    head = nn.Flatten(), nn.Linear(4 * 6 * 6, 3)
    return nn.Sequential(nn.Conv2d(1, 4, 3), norm, nn.ReLU(), *head)


raised = []
try:
    per_sample_gradients(conv_net(nn.BatchNorm2d(4)), images, digits)
except RuntimeError as error:
    raised.append(str(error))
    print("RuntimeError:", raised[0].partition(" This is not")[0])

# sphinx_gallery_start_ignore
assert len(raised) == 1 and "that would mutate a captured Tensor" in raised[0]
_net = conv_net(nn.BatchNorm2d(4))
_other = images.clone()
_other[1] += 1
assert (_net(images)[0] - _net(_other)[0]).abs().max() > 1e-3
# sphinx_gallery_end_ignore

# %%
# Use a norm that looks at one sample only, as group norm does, also for training. Or call ``eval()``, where batch norm uses its
# stored statistics. ``track_running_stats=False`` or ``torch.func.replace_all_batch_norm_modules_`` only remove the error: each
# sample is then normalized alone, instead of with its batch.
#
# .. how-measured:: The mean of the gradients is compared with the gradient of the mean loss, for the first weight.


def distance(model):
    grads = per_sample_gradients(model, images, digits)
    loss = F.cross_entropy(model(images), digits)
    (expected,) = torch.autograd.grad(loss, model[0].weight)
    return ((grads["0.weight"].mean(0) - expected).norm() / expected.norm()).item()


def tabulate_distances(nets):
    distances = {name: f"{distance(net):.0%}" for name, net in nets.items()}
    return pd.DataFrame({"mean differs from .grad by": distances})


# %%
# Does the mean of the gradients still agree with ``.grad``?

nets = {
    "group norm": conv_net(nn.GroupNorm(2, 4)),
    "batch norm, eval()": conv_net(nn.BatchNorm2d(4)).eval(),
    "track_running_stats=False": conv_net(nn.BatchNorm2d(4, track_running_stats=False)),
    "replace_all_...": torch.func.replace_all_batch_norm_modules_(
        conv_net(nn.BatchNorm2d(4))
    ),
}
# sphinx_gallery_start_ignore
assert tabulate_distances(nets).iloc[:2, 0].tolist() == ["0%", "0%"]
assert distance(nets["track_running_stats=False"]) > 0.1
_net = nets["replace_all_..."]
assert distance(_net) > 0.1
_alone, _batch = nets["track_running_stats=False"](images[:1]), _net(images)[:1]
assert not torch.allclose(_alone, _batch, atol=1e-2)
_mapped = vmap(lambda image: _net(image[None])[0])(images)
_each = torch.cat([_net(image[None]) for image in images])
torch.testing.assert_close(_mapped, _each, rtol=1e-3, atol=1e-5)
# sphinx_gallery_end_ignore
tabulate_distances(nets)

# %%
# **torch.autograd.grad inside vmap.** It raises an error for a loss that is computed inside (asked in `pytorch#53445
# <https://github.com/pytorch/pytorch/issues/53445>`__). Write ``torch.func.grad``, as above.


def gradient_of_one(x, y):
    loss = F.cross_entropy(model(x[None]), y[None])
    return torch.autograd.grad(loss, list(model.parameters()))


try:
    vmap(gradient_of_one)(points, labels)
except RuntimeError as error:
    raised.append(str(error))
    print("RuntimeError:", error)

# sphinx_gallery_start_ignore
assert len(raised) == 2 and raised[1].startswith(
    "element 0 of tensors does not require grad"
)
# sphinx_gallery_end_ignore

# %%
# **Class weights and ignored labels.** The mean of ``F.cross_entropy`` divides by the class weights of the batch, or by the
# number of labels other than -100. In a batch of one, class weights cancel, and a token of a short sequence counts more than
# one of a long one. Pass ``reduction="sum"`` in ``loss_of_one``, and divide by the sum over the whole batch.
#
# **No batch dimension.** In ``loss_of_one``, ``x`` is a single sample, and ``x[None]`` makes it a batch of one. Without
# ``[None]``, ``nn.Flatten`` takes the channels of the one image for a batch, and the next layer raises :ref:`shapes cannot be
# multiplied <sphx_glr_gallery_errors_shapes_cannot_be_multiplied.py>`.
#
# **Dropout.** By default ``vmap`` raises :ref:`an error <sphx_glr_gallery_errors_vmap_item.py>`, since it does not know whether
# the samples share one mask. ``"different"`` is what ordinary training does. One sample, repeated eight times:

dropped = nn.Sequential(nn.Linear(2, 16), nn.Dropout(0.5), nn.Linear(16, 2))
repeated = points[:1].expand(8, 2), labels[:1].expand(8)
for randomness in ("different", "same"):
    grads_of = per_sample_gradients(dropped, *repeated, randomness=randomness)
    masks = grads_of["2.weight"][:, 0] != 0
    print(f"{randomness:<9} masks: {len(masks.unique(dim=0))}")

# sphinx_gallery_start_ignore
for _randomness, _masks in (("different", 8), ("same", 1)):
    _found = per_sample_gradients(dropped, *repeated, randomness=_randomness)
    assert len((_found["2.weight"][:, 0] != 0).unique(dim=0)) == _masks
_refused.clear()
try:
    per_sample_gradients(dropped, *repeated)
except RuntimeError as error:
    _refused.append(str(error))


def _without_batch(weights, x, y):
    return F.cross_entropy(functional_call(_unbatched, weights, (x,)), y)


_unbatched = conv_net(nn.GroupNorm(2, 4).eval())
_unbatched[1] = nn.Identity()
_weights = {n: w.detach() for n, w in _unbatched.named_parameters()}
try:
    vmap(grad(_without_batch), in_dims=(None, 0, 0))(_weights, images, digits)
except RuntimeError as error:
    _refused.append(str(error))
assert len(_refused) == 2 and "randomness error mode" in _refused[0]
assert "shapes cannot be multiplied" in _refused[1]
_class_weights = torch.tensor([1.0, 5.0])


def _weighted(reduction):
    def one(weights, x, y):
        output = functional_call(model, weights, (x[None],))
        return F.cross_entropy(output, y[None], _class_weights, reduction=reduction)

    weights = {n: w.detach() for n, w in model.named_parameters()}
    return vmap(grad(one), in_dims=(None, 0, 0))(weights, points, labels)["0.weight"]


torch.testing.assert_close(_weighted("mean"), grads["0.weight"], rtol=1e-4, atol=1e-5)
_loss = F.cross_entropy(model(points), labels, _class_weights)
(_expected,) = torch.autograd.grad(_loss, model[0].weight)
_summed = _weighted("sum").sum(0) / _class_weights[labels].sum()
torch.testing.assert_close(_summed, _expected, rtol=1e-4, atol=1e-5)
assert (_weighted("mean").mean(0) - _expected).norm() > 0.05 * _expected.norm()
_words, _next = torch.arange(18).view(3, 6) % 5, torch.arange(18).view(3, 6) % 4
_next[0, 2:] = -100  # a short sequence
_table = {"w": torch.randn(5, 4)}


def _of_sequence(reduction):
    def one(weights, x, y):
        return F.cross_entropy(weights["w"][x], y, reduction=reduction)

    return vmap(grad(one), in_dims=(None, 0, 0))(_table, _words, _next)["w"]


_expected = grad(lambda w: F.cross_entropy(w["w"][_words].mT, _next))(_table)["w"]
_summed = _of_sequence("sum").sum(0) / (_next != -100).sum()
torch.testing.assert_close(_summed, _expected, rtol=1e-4, atol=1e-5)
assert (_of_sequence("mean").mean(0) - _expected).norm() > 0.05 * _expected.norm()
# sphinx_gallery_end_ignore

# %%
# Exercise
# --------
# For this network of linear layers, the norms need no gradient of a weight. Compute ``norms`` from ``inputs_and_slopes`` alone.
#
# .. solution::
#
# The gradient of a weight is an outer product, and its norm is the product of the norms of its two vectors. The gradient of the
# bias is the slope. So a layer adds :math:`\|\text{slope}\|^2 (\|x\|^2 + 1)` to the squared norm of a sample.

squares = torch.zeros(60)
for x, slope in inputs_and_slopes(model, points, labels).values():
    squares += slope.square().sum(1) * (x.square().sum(1) + 1)

print("equal:", torch.allclose(squares.sqrt(), norms, rtol=1e-3))

# sphinx_gallery_start_ignore
assert torch.allclose(squares.sqrt(), norms, rtol=1e-3)
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_differentiation_jacobian_and_hessian.py`: ``vmap`` and ``jacrev``, where each sample has several
#   outputs.
# - :ref:`sphx_glr_gallery_modules_parameters_as_arguments.py`: ``functional_call``, and ``vmap`` over tasks and models.
# - :ref:`sphx_glr_gallery_errors_func_grad_of_vector.py` and :ref:`sphx_glr_gallery_errors_vmap_item.py`: what ``grad`` and
#   ``vmap`` refuse.
# - :ref:`sphx_glr_gallery_functions_functions_and_transforms.py`: ``vmap`` through a custom Function.
# - :ref:`sphx_glr_gallery_differentiation_hooks_on_modules.py`: forward hooks.
# - In PyTorch's reference: `vmap <https://docs.pytorch.org/docs/stable/generated/torch.vmap.html>`__, `patching batch norm
#   <https://docs.pytorch.org/docs/stable/func.batch_norm.html>`__ and `torch.autograd.grad
#   <https://docs.pytorch.org/docs/stable/generated/torch.autograd.grad.html>`__.
