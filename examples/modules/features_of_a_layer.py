r"""
Get the output of a layer: extract features with a forward hook
===============================================================

.. index::
   single: print the output of each layer
   single: intermediate activations, feature maps, embeddings of a trained model
   single: a forward hook is not called
   single: memory grows when a forward hook stores outputs
   single: output of the second last layer

.. in-short::

   .. code-block:: python

      features = []

      def keep(module, args, output):
          features.append(output.detach())

      model.eval()  # no dropout, and batch norm keeps its statistics
      with layer.register_forward_hook(keep):
          for x, _ in loader:
              model(x)
      all_features = torch.cat(features)

   Without ``detach()``, each stored output keeps the graph that was recorded before it. Leave it out only if a loss uses the
   features. If the model changes the output in place later (an in-place ReLU, ``out += x``), store
   ``output.detach().clone()``. The hook runs in ``layer(x)``, but ``layer.forward(x)`` skips it.
"""

# %%
# What does the last layer see?
# -----------------------------
# A network tells the points of two rings apart. No line separates the rings, but its last layer is linear. So what does this
# layer get?

import torch
from torch import nn

torch.manual_seed(0)
angle = 6.2832 * torch.rand(300)
inner = torch.arange(300) < 150
radius = torch.where(inner, 1.0, 2.0) + 0.15 * torch.randn(300)
x = torch.stack([radius * angle.cos(), radius * angle.sin()], dim=1)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 2), nn.Tanh()
        )
        self.head = nn.Linear(2, 1)

    def forward(self, x):
        return self.head(self.body(x))


model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
for _ in range(80):
    optimizer.zero_grad()
    loss = nn.functional.binary_cross_entropy_with_logits(model(x)[:, 0], inner.float())
    loss.backward()
    optimizer.step()
model.zero_grad()

# %%
# The model returns ``head(body(x))``. A forward hook on ``model.body`` stores what ``head`` gets:

features = []


def keep(module, args, output):
    features.append(output.detach())


with model.body.register_forward_hook(keep):
    model(x)

# %%
# .. how-measured:: This code draws points in two colors.

import matplotlib.pyplot as plt


def draw_input_and_features(points, features, head):
    _, axes = plt.subplots(1, 2, figsize=(7, 3), layout="constrained")
    for ax, shown in zip(axes, (points, features), strict=True):
        for mask, color in ((inner, "#2563eb"), (~inner, "#c2410c")):
            ax.scatter(*shown[mask].T, s=8, color=color)
    (slope_x, slope_y), offset = head.weight[0].tolist(), head.bias.item()
    a = torch.linspace(-1.1, 1.1, 2)
    axes[1].plot(a, -(slope_x * a + offset) / slope_y, color="#64748b")
    axes[1].set(ylim=(-1.1, 1.1), title="The features, and the line of head")
    axes[0].set_title("The input")


# %%
# The input of the network, and the features:

# figure: Two scatter plots of the same 300 points in two colors. In the first, one color is a ring around the other. In the
#   second, a straight line separates nearly all points of one color from those of the other.
draw_input_and_features(x, features[0], model.head)

# sphinx_gallery_start_ignore
assert torch.equal(features[0], model.body(x).detach())
assert ((model.head(features[0])[:, 0] > 0) == inner).float().mean() > 0.97
for _ring in (x[inner], x[~inner]):  # both surround the origin: no line separates them
    _angles = torch.atan2(_ring[:, 1], _ring[:, 0]).sort().values
    assert torch.cat([_angles, _angles[:1] + 6.2831]).diff().max() < 3.1
with model.body.register_forward_hook(keep):
    model(x)
model(x)
assert len(features) == 2  # removed, both times
try:
    with model.body.register_forward_hook(keep):
        raise KeyError
except KeyError:
    model(x)
assert len(features) == 2
from torch.utils.checkpoint import checkpoint

with model.body.register_forward_hook(keep):
    checkpoint(model, x, use_reentrant=False).sum().backward()
assert len(features) == 4 and torch.equal(features[2], features[3])
model.zero_grad()
# sphinx_gallery_end_ignore

# %%
# In the features, one line separates nearly all points. **A forward hook gets what a module returns, each time the module is
# called.** So with gradient checkpointing, which calls it again in backward, you get the output twice.
#
# ``register_forward_hook`` returns a handle. The hook stays until you call ``handle.remove()``, so a notebook cell that only
# registers a hook adds one more each time you run it. ``with`` removes it at the end of the block. If your model has dropout or
# batch normalization, call ``model.eval()`` first, and ``model.train()`` before you train on.

# %%
# Print the output of each layer
# ------------------------------
# ``named_modules()`` yields each module once, and ``report(name)`` makes a hook for it:


def report(name):
    def hook(module, args, output):
        print(f"{name:<7} {type(module).__name__:<11} {tuple(output.shape)}")

    return hook


handles = [
    module.register_forward_hook(report(name)) for name, module in model.named_modules()
]
model(x)
for handle in handles:
    handle.remove()

# sphinx_gallery_start_ignore
_names = []
_handles = [
    module.register_forward_hook(lambda *_, name=name: _names.append(name))
    for name, module in model.named_modules()
]
model(x)
assert _names == ["body.0", "body.1", "body.2", "body.3", "body", "head", ""]
for _handle in _handles:
    _handle.remove()
_shared = nn.Module()
_shared.a = _shared.b = nn.Tanh()
assert [name for name, _ in _shared.named_modules()] == ["", "a"]
_given = []
with model.head.register_forward_hook(lambda *given: _given.append(given)):
    model.head(x)
assert _given[0][0] is model.head and type(_given[0][1]) is tuple
_given = []
with model.head.register_forward_pre_hook(
    lambda m, args, kwargs: _given.append((args, list(kwargs))), with_kwargs=True
):
    model.head(input=model.body(x))
assert _given == [((), ["input"])]
# sphinx_gallery_end_ignore

# %%
# A module is printed when its ``forward`` has returned, so the model, whose name is empty, comes last.

# %%
# Without a hook: a slice or torch.fx
# -----------------------------------
# In the next network, the features are the result of a function, ``torch.tanh``, so no module returns them:


class Small(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(2, 4), nn.Linear(4, 1)

    def forward(self, x):
        return self.second(torch.tanh(self.first(x)))


small = Small()

# %%
# Which way should you take?
#
# - Your own model: return the features from ``forward``.
# - An ``nn.Sequential``: a slice, ``model.body[:2](x)``. For other models, ``nn.Sequential(*list(small.children())[:-1])`` is
#   often tried, but it leaves out ``torch.tanh``, without an error.
# - The input of a module: ``register_forward_pre_hook``, whose function gets ``(module, args)``. For ``small.second``, this
#   is the features. Keyword arguments need ``with_kwargs=True``.
# - The output of a module in someone else's model: a forward hook. The rest of the model runs, too.
# - The result of a function in someone else's model: ``torch.fx``, below. For models of torchvision, `create_feature_extractor
#   <https://docs.pytorch.org/vision/stable/feature_extraction.html>`__ uses it.

traced = torch.fx.symbolic_trace(small)
(tanh,) = (node for node in traced.graph.nodes if node.name == "tanh")
traced.graph.output_node().args = (tanh,)  # return this instead
traced.graph.eliminate_dead_code()
traced.recompile()

print(traced.code.strip())


# sphinx_gallery_start_ignore
def _calls_of(module, call):
    calls = []
    with module.register_forward_hook(lambda *_: calls.append(1)):
        call()
    return len(calls)


assert torch.equal(traced(x), torch.tanh(small.first(x)))
assert traced.first.weight is small.first.weight
assert _calls_of(small.second, lambda: traced(x)) == 0
assert "second" not in traced.code and "torch.tanh(first)" in traced.code
_got = []
with small.second.register_forward_pre_hook(lambda m, args: _got.append(args[0])):
    small(x)
assert torch.equal(_got[0], traced(x))
assert torch.equal(model.body[:2](x), torch.tanh(model.body[0](x)))
assert torch.equal(nn.Sequential(*list(small.children())[:-1])(x), small.first(x))


class _OnValues(Small):
    def forward(self, x):
        return super().forward(x if x.sum() > 0 else -x)


class _OnShape(Small):
    def forward(self, x):
        return super().forward(x if x.shape[0] > 0 else -x)


_said = []
for _cls in (_OnValues, _OnShape):
    try:
        torch.fx.symbolic_trace(_cls())
    except torch.fx.proxy.TraceError as error:
        _said.append(str(error))
assert len(_said) == 2 and all("control flow" in message for message in _said)


class _Drops(Small):
    def forward(self, x):
        return self.second(nn.functional.dropout(self.first(x), 0.5, self.training))


_drops, _ones = _Drops(), torch.ones(300, 2)
for _mode in (True, False):  # traced in this mode, called in eval mode
    _fixed = torch.fx.symbolic_trace(_drops.train(_mode)).eval()
    assert torch.equal(_fixed(_ones), _fixed(_ones)) != _mode
    assert f"training = {_mode}" in _fixed.code

assert model.body[:2][0] is model.body[0]
# sphinx_gallery_end_ignore

# %%
# ``torch.fx`` records the calls of ``forward``, and writes a new ``forward`` with the same parameters, which ends at the
# features: ``second`` does not run. It cannot trace an ``if`` on the values or the shape of the input
# (:ref:`sphx_glr_gallery_graphs_static_and_dynamic.py`). Call ``eval()`` or ``train()`` before you trace: ``F.dropout(...,
# training=self.training)`` keeps the mode in which it was traced.

# %%
# What people get wrong
# ---------------------
# **Storing the output itself.** It is part of a graph, and the graph keeps what backward needs:

stored = []
with model.body.register_forward_hook(lambda m, args, output: stored.append(output)):
    model(x)
feature = stored[0]

# graph: feature -- The stored output keeps the graph of all that was computed before it

# sphinx_gallery_start_ignore
assert feature.grad_fn.name() == "TanhBackward0"
# sphinx_gallery_end_ignore

# %%
# .. how-measured:: Storages of stored and saved tensors are counted in bytes, without those of parameters and of the input.

import weakref

import pandas as pd


class Saved:
    def __init__(self, tensor):
        self.tensor = tensor.detach()


def bytes_kept(store, batches, grad=True, retain=None):
    alive, stored = weakref.WeakSet(), []

    def pack(tensor):
        saved = Saved(tensor)
        alive.add(saved)
        return saved

    def hook(module, args, output):
        stored.append(store(output))

    with (
        torch.autograd.graph.saved_tensors_hooks(pack, lambda saved: saved.tensor),
        model.body.register_forward_hook(hook),
        torch.set_grad_enabled(grad),
    ):
        for _ in range(batches):
            output = model(x).sum()
            if retain is not None:
                output.backward(retain_graph=retain)
            del output
    kept = [tensor.untyped_storage() for tensor in [s.tensor for s in alive] + stored]
    there = {t.untyped_storage().data_ptr() for t in [x, *model.parameters()]}
    sizes = {storage.data_ptr(): storage.nbytes() for storage in kept}
    return sum(size for place, size in sizes.items() if place not in there)


STORED = {
    "output": lambda output: output,
    "detach()": lambda output: output.detach(),
    "detach()[0]": lambda output: output.detach()[0],
    "detach()[0].clone()": lambda output: output.detach()[0].clone(),
}


def tabulate_bytes_kept():
    columns = {
        title: {name: f"{bytes_kept(store, n):,}" for name, store in STORED.items()}
        for title, n in (("1 batch", 1), ("10 batches", 10))
    }
    return pd.DataFrame(columns).rename_axis(columns="stored")


# %%
# Bytes in memory after 1 and after 10 batches without ``backward()``, when only what was stored is left:

# sphinx_gallery_start_ignore
table = tabulate_bytes_kept()
assert table["1 batch"].tolist() == ["40,800", "2,400", "2,400", "8"]
assert table["10 batches"].tolist() == ["408,000", "24,000", "24,000", "80"]
assert 300 * 2 * 4 == 2400 and 300 * 32 * 4 == 38400  # the output; what Tanh saved
assert bytes_kept(STORED["output"], 10, grad=False) == 24000
assert bytes_kept(STORED["output"], 10, retain=False) == 24000
assert bytes_kept(STORED["output"], 10, retain=True) == 408000
_loss = feature.square().mean()  # a loss on features needs their graph
_loss.backward()
assert model.body[0].weight.grad.abs().sum() > 0 and not features[0].requires_grad
# sphinx_gallery_end_ignore
tabulate_bytes_kept()

# %%
# The graph keeps 16 times as much as the output itself. With ``detach()`` only the outputs are kept. A slice keeps the memory
# of the whole output, but a clone of the slice is small.
#
# If a loss on the features should train the layers before, leave ``detach()`` out, and clear the list after each step.
#
# **The output is changed in place later.** ``detach()`` shares memory with the output. This ReLU overwrites it (asked about a
# VGG in `pytorch#20705 <https://github.com/pytorch/pytorch/issues/20705>`__):

block = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(inplace=True))
stored = []


def keep_both(module, args, output):
    stored.extend([output.detach(), output.detach().clone()])


with block[0].register_forward_hook(keep_both):
    block(torch.randn(8, 1, 6, 6))

print("smallest, detach():", stored[0].min().item())
print("smallest, clone(): ", round(stored[1].min().item(), 1))

# sphinx_gallery_start_ignore
assert stored[0].min() == 0 and stored[1].min() < -0.3
assert torch.equal(stored[0], stored[1].relu())


class _Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(2, 2)

    def forward(self, x):
        out = self.inner(x)
        out += x
        return out


_residual = _Residual()
with _residual.inner.register_forward_hook(keep_both):
    _sum = _residual(x)
assert torch.equal(stored[-2], _sum.detach()) and not torch.equal(*stored[-2:])
assert torch.equal(stored[-1], _residual.inner(x))
# sphinx_gallery_end_ignore

# %%
# The same happens with ``out += x`` in a residual block.
#
# **A hook that returns something.** What a hook returns replaces the output, unless it is ``None``. ``setdefault`` returns
# the stored value, so the second batch gets the features of the first, and no gradient reaches ``body``:

seen = {}
model.zero_grad()
with model.body.register_forward_hook(
    lambda module, args, output: seen.setdefault("body", output.detach())
):
    first, second = model(x), model(x + 1)

second.sum().backward()
print("the same output:", torch.equal(first, second))
print("gradient of body:", model.body[0].weight.grad)

# sphinx_gallery_start_ignore
assert torch.equal(first, second) and model.body[0].weight.grad is None
assert model.head.weight.grad is not None
assert not torch.equal(model(x), model(x + 1))
for _method in ([].append, {"a": 1}.update, [].extend):
    assert _method([]) is None
# sphinx_gallery_end_ignore

# %%
# ``append`` of a list and ``update`` of a dictionary return ``None``, so a lambda may call them.
#
# **Calling** ``forward`` **directly**, as in `llama#1055 <https://github.com/meta-llama/llama/issues/1055>`__. ``layer(x)``
# calls ``forward`` and then the forward hooks. ``layer.forward(x)`` is ``forward`` alone:

calls = []
with model.body.register_forward_hook(lambda *_: calls.append("hook")):
    model.body.forward(x)
    print("model.body.forward(x):", len(calls))
    model.body(x)
    print("model.body(x):        ", len(calls))

# sphinx_gallery_start_ignore
assert calls == ["hook"]

_attention, _tokens = nn.MultiheadAttention(4, 1), torch.ones(2, 3, 4)
assert (
    _calls_of(_attention.out_proj, lambda: _attention(_tokens, _tokens, _tokens)) == 0
)
_list = nn.Module()
_list.layers = nn.ModuleList([nn.Linear(2, 2)])
_list.forward = lambda x: [x := layer(x) for layer in _list.layers][-1]
assert _calls_of(_list.layers, lambda: _list(x)) == 0
assert _calls_of(_list.layers[0], lambda: _list(x)) == 1
assert _calls_of(model.body, lambda: model.forward(x)) == 1
# sphinx_gallery_end_ignore

# %%
# The same happens on an ``nn.ModuleList``, because nobody calls it, and on ``out_proj`` of ``nn.MultiheadAttention``, whose
# weight is used without a call. With ``torch.compile``, :ref:`register the hook before the first call
# <sphx_glr_gallery_graphs_static_and_dynamic.py>`.
#
# **A lambda in a loop.** It looks up ``name`` when it runs, which is after the loop. Then ``name`` is the last one:

seen, layers = {}, dict(model.body.named_children())
handles = [
    layer.register_forward_hook(
        lambda m, args, output: seen.update({name: output.detach()})
    )
    for name, layer in layers.items()
]
model(x)
for handle in handles:
    handle.remove()
print("stored:", list(seen), "of", list(layers))

# sphinx_gallery_start_ignore
assert list(seen) == ["3"] and len(model.body) == 4
_seen = {}
_handles = [
    module.register_forward_hook(
        lambda m, args, output, name=name: _seen.update({name: output})
    )
    for name, module in model.body.named_children()
]
model(x)
for _handle in _handles:
    _handle.remove()
assert list(_seen) == ["0", "1", "2", "3"]
_said = []
_lstm = nn.LSTM(2, 3)
try:
    with _lstm.register_forward_hook(keep):
        _lstm(x)
except AttributeError as error:
    _said.append(str(error))
assert _said == ["'tuple' object has no attribute 'detach'"]
with _lstm.register_forward_hook(lambda m, a, output: _said.append(output[0].detach())):
    _lstm(x)
assert _said[1].shape == (300, 3)
# sphinx_gallery_end_ignore

# %%
# Make the hook in a function, as ``report`` does, or write ``name=name`` among the arguments of the lambda.
#
# **An output that is a tuple.** With ``keep`` on an ``nn.LSTM``, or on many Hugging Face layers: *'tuple' object has no
# attribute 'detach'*. Take the part that you want, ``output[0].detach()``.

# %%
# Exercise
# --------
# A model uses one ReLU at two places: ``self.relu(self.b(self.relu(self.a(x))))``. A hook stores ``seen["relu"] =
# output.detach()``. What is in ``seen`` after one call? How do you get both outputs?
#
# .. solution::
#
# The second output: the hook ran twice, and the second call replaced the first entry. Append to a list.


class Reused(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.relu = nn.Linear(2, 5), nn.Linear(5, 7), nn.ReLU()

    def forward(self, x):
        return self.relu(self.b(self.relu(self.a(x))))


reused, features = Reused(), []
with reused.relu.register_forward_hook(keep):
    y = reused(x)

print([tuple(feature.shape) for feature in features])
assert len(features) == 2 and torch.equal(features[1], y)

# sphinx_gallery_start_ignore
_seen = {}
with reused.relu.register_forward_hook(
    lambda m, args, output: _seen.update(relu=output.detach())
):
    assert torch.equal(reused(x), _seen["relu"])
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_differentiation_hooks_on_modules.py`: the gradient at a layer, and the clash with in-place layers.
# - :ref:`sphx_glr_gallery_differentiation_gradients_of_intermediates.py`: the gradient of such a feature.
# - :ref:`sphx_glr_gallery_debugging_finding_nans.py`: a forward hook that reports in which layer NaN begins.
# - :ref:`sphx_glr_gallery_memory_what_is_saved.py`: what a graph keeps.
# - In PyTorch's reference: `register_forward_hook
#   <https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.register_forward_hook>`__ and `torch.fx
#   <https://docs.pytorch.org/docs/stable/fx.html>`__.
