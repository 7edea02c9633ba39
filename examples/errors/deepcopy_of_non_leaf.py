r"""
Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol
========================================================================================

.. index::
   ! single: copy.deepcopy(model) fails after the first forward pass
   ! single: self.attribute assigned in forward breaks copying the model
   ! single: Cowardly refusing to serialize non-leaf tensor which requires_grad

.. in-short::

   The model keeps a computed tensor, mostly an output of a layer that ``forward`` stored in an attribute. If you need only
   the weights, write ``copy.deepcopy(model.state_dict())``. If you only look at the attribute, store it detached. If a loss
   uses it, set it to ``None`` once the loss is computed.

   .. code-block:: diff

      - self.features = hidden
      + self.features = hidden.detach()

   **Not this:** ``copy.copy(model)``. It shares the parameters with the model, so training changes the "copy" as well.
"""

# %%
# The code that raises it
# -----------------------

import copy

import torch
from torch import nn

torch.manual_seed(0)

# sphinx_gallery_start_ignore
try:
    # sphinx_gallery_end_ignore
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer, self.head = nn.Linear(3, 2), nn.Linear(2, 1)

        def forward(self, x):
            hidden = torch.tanh(self.layer(x))
            self.features = hidden
            return self.head(hidden)

    model, x = Net(), torch.randn(4, 3)
    model(x)
    best = copy.deepcopy(model)
# sphinx_gallery_start_ignore
except RuntimeError as error:
    message = str(error)
    print("RuntimeError:", message)
assert message.startswith("Only Tensors created explicitly by the user")
assert hasattr(model, "features") and "features" not in message


def _copies(value):
    """Whether it can be copied."""
    try:
        copy.deepcopy(value)
    except RuntimeError as error:
        assert str(error) == message
        return False
    return True


_w = torch.ones(2, requires_grad=True)
assert _copies(Net()) and not _copies(model)
assert not _copies(_w * 3) and _copies(_w) and _copies(torch.ones(2) * 3)
_averaged = []
try:
    torch.optim.swa_utils.AveragedModel(model)
except RuntimeError as error:
    _averaged.append(str(error))
assert _averaged == [message]


class _Built(nn.Module):
    def __init__(self, recorded):
        super().__init__()
        self.layer = nn.Linear(3, 2)
        with torch.set_grad_enabled(recorded):
            self.stride = self.layer(torch.ones(1, 3))


assert not _copies(_Built(True)) and _copies(_Built(False))


class _Graphs:  # a batch of them
    def __init__(self):
        self.x, self.edges = _w * 2, torch.ones(2)


_data = _Graphs()
assert not _copies(_data)
for _cloned in (False, True):
    _given, _twin = _data.x.detach().clone(), copy.copy(_data)
    if _cloned:
        _twin.x = _twin.x.clone()
    _twin.x += 1
    assert torch.equal(_given, _data.x) == _cloned
    assert torch.autograd.grad(_twin.x.sum(), _w, retain_graph=True)[0].tolist() == [
        2,
        2,
    ]
for _recorded in (True, False):  # the keys of a prompt
    with torch.set_grad_enabled(_recorded):
        _cache = [(nn.Linear(3, 2)(torch.ones(1, 3)),) * 2]
    assert _copies(_cache) != _recorded
# sphinx_gallery_end_ignore

# %%
# *Graph leaves* are tensors without a ``grad_fn``. Look at when the copy fails:
#
# - **After the first batch:** ``forward`` or a hook keeps an output of a layer. Or ``nn.utils.spectral_norm`` computed a
#   weight.
# - **Before any batch,** often in ``AveragedModel`` or ``ModelEMA``: a weight was computed in ``__init__``, by
#   ``nn.utils.weight_norm`` or by pruning. Or ``__init__`` runs a batch through the model: put ``torch.no_grad()`` around that.
# - **In forward, under nn.DataParallel:** the weights of a replica are computed. Copy ``model.module`` outside of ``forward``.
# - **In forward, of the batch,** as ``copy.deepcopy(data)``: take ``copy.copy(data)``, and clone what you change in place.
# - **Of a KV cache,** to generate: put ``torch.no_grad()`` around the forward pass that fills it.
#
# Why
# ---
# A copy that kept the ``grad_fn`` would send its gradients to the weights of the
# original. A copy without it would be cut off from the weights.

weight, bias, features = model.layer.weight, model.layer.bias, model.features

# graph: features -- The attribute keeps the end of a graph that begins at the weights

# sphinx_gallery_start_ignore
assert not features.is_leaf and weight.is_leaf and bias.is_leaf
# sphinx_gallery_end_ignore

# %%
# How to find the tensor
# ----------------------
# Copy the model before the line that raises, and print the way to the tensor:

import traceback

try:
    copy.deepcopy(model)
except RuntimeError as error:
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    inside = [f.f_locals for f in frames if f.f_code.co_filename == copy.__file__]
    print([found["key"] for found in inside if "key" in found])

# sphinx_gallery_start_ignore
import collections
import functools


def _way(value):
    try:
        copy.deepcopy(value)
    except RuntimeError as error:
        frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
        inside = [f.f_locals for f in frames if f.f_code.co_filename == copy.__file__]
        return [found["key"] for found in inside if "key" in found]


assert _way(model) == ["features"] and _way(Net()) is None


class _Keeper(nn.Module):
    def __init__(self, keep):
        super().__init__()
        self.layer, self.seen, self.cache = nn.Linear(3, 2), [], {}
        self.register_buffer("state", torch.zeros(2))
        self.keep = keep

    def forward(self, x):
        y = self.layer(x)
        if self.keep == "attribute":
            self.last = y
        elif self.keep == "list":
            self.seen.append(y)
        elif self.keep == "dict":
            self.cache["a"] = (y,)
        elif self.keep == "deque":
            self.queue = collections.deque([y])
        elif self.keep == "set":
            self.kinds = {y}
        elif self.keep == "buffer":
            self.state = y.mean(0)
        return y


class _Hook:
    def __call__(self, module, inputs, output):
        self.output = output


_hooked = nn.Linear(3, 2)
_hook = _Hook()
_hooked.register_forward_hook(_hook)
_hooked(x)
assert not _copies(_hooked) and _way(_hooked)[-1] == "output"
_hook.output = None
assert _copies(_hooked)
_partial, _kept = nn.Linear(3, 2), []
_partial.register_forward_hook(functools.partial(lambda k, *a: k.append(a[2]), _kept))
_partial(x)
assert _way(_partial)[0] == "_forward_hooks"
_names = {
    "attribute": ["last"],
    "list": ["seen"],
    "dict": ["cache", "a"],
    "deque": ["queue"],
    "set": ["kinds"],
    "buffer": ["_buffers", "state"],
}
for _keep, _name in _names.items():
    _model = nn.Sequential(_Keeper(_keep))
    assert _copies(_model)
    _model(x)
    assert not _copies(_model) and _way(_model) == ["_modules", "0", *_name]
    _model.load_state_dict(copy.deepcopy(_model.state_dict()))


class _Method(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.kept = nn.Linear(3, 2), []
        self.layer.register_forward_hook(self.keep)

    def keep(self, module, inputs, output):
        self.kept.append(output)


class _Agent:
    def __init__(self):
        self.policy, self.itself = nn.Linear(3, 2), self
        self.optimizer = torch.optim.Adam(self.policy.parameters())
        self.past = [torch.distributions.Categorical(logits=self.policy(x))]


_method = _Method()
_method.layer(x)
assert not _copies(_method) and _way(_method.layer)[-1] == "kept"
assert _way(_Agent()) == ["past", "logits"]
# sphinx_gallery_end_ignore

# %%
# The fix
# -------
# **You want the weights,** of the best epoch or for a target network. A ``state_dict`` has no such attributes:

best = copy.deepcopy(model.state_dict())
target = Net()
target.load_state_dict(best)
print("copied:", torch.equal(target(x), model(x)))

# sphinx_gallery_start_ignore
assert torch.equal(target(x), model(x)) and not _copies(model)
_rate = {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.1}
_trained, _twins = Net(), []
_optimizer = torch.optim.SGD(_trained.parameters(), **_rate)
for _ in range(3):
    _twins.append((_trained(x).detach().clone(), copy.deepcopy(_trained.state_dict())))
    _optimizer.zero_grad()
    _trained(x).square().mean().backward()
    _optimizer.step()
for _wanted, _state in _twins:  # training does not change what was copied
    target.load_state_dict(_state)
    assert torch.equal(target(x), _wanted) and not torch.equal(_trained(x), _wanted)
# eval mode, what is frozen, and other attributes are not in it, so dropout is on
_still, _again = (nn.Sequential(nn.Linear(3, 2), nn.Dropout()) for _ in range(2))
_still.eval().requires_grad_(False).temperature = 2.0
_again.load_state_dict(_still.state_dict())
assert _again.training and _again[0].weight.requires_grad
assert not hasattr(_again, "temperature")
torch.manual_seed(0)
assert not torch.equal(_still(x), _again(x))
assert torch.equal(_still(x), _again.eval()(x))
# sphinx_gallery_end_ignore

# %%
# ``target`` is in train mode, with nothing frozen and the plain attributes of a new ``Net()``.
#
# **The attribute is only there to be looked at:** store it detached.


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.head = nn.Linear(3, 2), nn.Linear(2, 1)

    def forward(self, x):
        hidden = torch.tanh(self.layer(x))
        self.features = hidden.detach()
        return self.head(hidden)


watched = Net()
watched(x).sum().backward()
best = copy.deepcopy(watched)
print("copied:", torch.equal(best(x), watched(x)))

# sphinx_gallery_start_ignore
assert torch.equal(best(x), watched(x)) and watched.layer.weight.grad.any()
assert watched.features.grad_fn is None
assert best.layer.weight is not watched.layer.weight
# sphinx_gallery_end_ignore

# %%
# **A loss uses the attribute, or the class is not yours:** once the loss is computed, set the attribute to ``None``. Empty a
# list with ``clear()``. A state from which the next ``forward`` continues needs ``detach()`` instead.

model.features = None
best = copy.deepcopy(model)
print("copied:", torch.equal(best(x), model(x)))

# sphinx_gallery_start_ignore
assert torch.equal(best(x), model(x)) and best.head.bias is not model.head.bias
_seen = _Keeper("list")
_seen(x)
assert not _copies(_seen)
_seen.seen.clear()
assert _copies(_seen)


class _Stateful(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.state = nn.GRUCell(3, 2), None

    def forward(self, x):
        self.state = self.cell(x, self.state)
        return self.state


_stateful = _Stateful()
_stateful(x)
_next = _stateful.cell(x, _stateful.state)
assert not _copies(_stateful)
_stateful.state = _stateful.state.detach()
_twin = copy.deepcopy(_stateful)
assert torch.equal(_twin(x), _next) and torch.equal(_stateful(x), _next)
_twin.state = None  # as for a penalty: the state is lost
assert not torch.allclose(_twin(x), _next)
# sphinx_gallery_end_ignore

# %%
# For the ``weight`` of a layer under ``nn.utils.weight_norm``, ``nn.utils.spectral_norm`` or ``nn.utils.prune`` do so before
# each copy. The next forward computes it again. ``weight_norm`` of ``nn.utils.parametrizations`` can be copied as it is.

from torch.nn.utils import prune

layer = prune.l1_unstructured(nn.Linear(3, 2), "weight", amount=0.5)
layer.weight = None
twin = copy.deepcopy(layer)
print("copied:", torch.equal(twin(x), layer(x)))

# sphinx_gallery_start_ignore
import warnings

assert torch.equal(twin(x), layer(x)) and twin.weight.eq(0).sum() == 3
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    _old = [
        nn.utils.weight_norm(nn.Linear(3, 2)),
        nn.utils.weight_norm(nn.LSTM(3, 2), "weight_hh_l0"),
    ]
    _old += [nn.utils.spectral_norm(nn.Linear(3, 2)), nn.Sequential(layer)]
assert _copies(_old[2])  # and once it has run, it cannot be copied
for _layer in _old:
    _layer(x)
    assert not _copies(_layer)
    for _name in ("weight", "weight_hh_l0"):
        if hasattr(_layer, _name):
            setattr(_layer, _name, None)
    if _layer is _old[-1]:
        layer.weight = None
    _layer = copy.deepcopy(_layer).eval()
    _out = _layer(x)
    (_out[0] if isinstance(_out, tuple) else _out).sum().backward()
    assert all(p.grad is not None for p in _layer.parameters())
_new = nn.utils.parametrizations.weight_norm(nn.Linear(3, 2))
_new(x)
assert _copies(_new)
# sphinx_gallery_end_ignore

# %%
# **A weight computed in** ``__init__``, such as ``torch.randn(3, requires_grad=True) * 0.1`` or ``nn.Parameter(w).cuda()``: put
# ``nn.Parameter`` around the result. Detached, it would never learn. If it is computed from other parameters, compute it in
# ``forward``.

scale = nn.Parameter(torch.randn(3) * 0.1)
print("copied:", torch.equal(copy.deepcopy(scale), scale))

# sphinx_gallery_start_ignore
assert copy.deepcopy(scale).requires_grad and copy.deepcopy(scale) is not scale
assert not _copies(scale.double())  # as .cuda() does, a new tensor from a parameter
# sphinx_gallery_end_ignore

# %%
# **You copy a single tensor:** write ``y.detach().clone()``, or ``y.clone()`` to keep the graph.
#
# What not to do
# --------------
# **Detach an attribute that belongs to the loss.** Some layers keep a penalty for the training loop to add. Detached, it still
# changes the loss, but not the gradients.


class Penalized(nn.Linear):
    cut = False

    def forward(self, x):
        penalty = self.weight.square().sum()
        self.penalty = penalty.detach() if self.cut else penalty
        return super().forward(x)


layer = Penalized(3, 1)
for cut in (False, True):
    layer.cut = cut
    layer.zero_grad()
    loss = layer(x).square().mean() + layer.penalty
    loss.backward()
    norm = layer.weight.grad.norm().item()
    print(f"detached: {cut!s:<5}  loss {loss.item():.4f}  gradient {norm:.4f}")

# sphinx_gallery_start_ignore
_layer, _found = Penalized(3, 1), []
for _cut in (False, True):
    _layer.zero_grad()
    _layer.cut = _cut
    _loss = _layer(x).square().mean() + _layer.penalty
    _loss.backward()
    _found.append((_loss.item(), _layer.weight.grad.clone()))
assert _found[0][0] == _found[1][0]
with torch.no_grad():
    assert torch.allclose(_found[0][1] - _found[1][1], 2 * _layer.weight, atol=1e-6)
_layer.cut = False
_layer(x)
assert not _copies(_layer)
_layer.penalty = None
assert _copies(_layer)
# sphinx_gallery_end_ignore

# %%
# Messages that are close to this one
# -----------------------------------
# A computed tensor cannot be sent to another process:

# sphinx_gallery_start_ignore
raised = []
try:
    # sphinx_gallery_end_ignore
    queue = torch.multiprocessing.SimpleQueue()
    queue.put(torch.tanh(model.layer(x)))
# sphinx_gallery_start_ignore
except RuntimeError as error:
    raised.append(str(error))
    print("RuntimeError:", error)
_words = "Cowardly refusing to serialize non-leaf tensor which requires_grad"
assert len(raised) == 1 and raised[0].startswith(_words)
# sphinx_gallery_end_ignore

# %%
# Send ``y.detach()``.
#
# See also
# --------
# - :ref:`sphx_glr_gallery_graphs_leaves_and_roots.py`: what is a leaf, and what is not.
# - :ref:`sphx_glr_gallery_graphs_graph_lifetime.py`: what a kept tensor keeps alive.
