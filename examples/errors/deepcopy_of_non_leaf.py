r"""
Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol
========================================================================================

.. index::
   ! single: copy.deepcopy(model) fails after the first forward pass
   ! single: self.attribute assigned in forward breaks copying the model

A computed tensor hangs in a graph, and a graph cannot be copied with it. Usually nobody meant to copy that tensor: a
model has kept an output of its forward pass in an attribute, and the whole model is copied for a moving average or as
the best model so far.
"""

# %%
# The shortest code that raises it
# --------------------------------

import copy

import torch
from torch import nn

w = torch.tensor(2.0, requires_grad=True)
y = w * 3
try:
    copy.deepcopy(y)
except RuntimeError as error:
    message = str(error)
    print("RuntimeError:", message)
    assert message.startswith("Only Tensors created explicitly by the user")

# %%
# Earlier versions said *Only Variables created explicitly by the user (graph leaves) support the deepcopy protocol*,
# and did not mention ``weight_norm``.

# %%
# Why
# ---
# ``y`` is a value and a place in a graph. A copy that keeps the place would not be independent of ``w``, and one that
# drops it would not be a copy, so PyTorch refuses. A leaf has no such place. Here is how a model comes to hold a
# computed tensor.


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 2)
        self.head = nn.Linear(2, 1)

    def forward(self, x):
        self.features = torch.tanh(self.layer(x))
        return self.head(self.features)


# %%
# New, it can be copied. After a forward pass it cannot.

torch.manual_seed(0)
net = Net()
copy.deepcopy(net)

x = torch.randn(4, 3)
net(x)
try:
    copy.deepcopy(net)
except RuntimeError as error:
    print(f"RuntimeError: {str(error)[:70]} ...")
    assert str(error) == message

weight, bias, features = net.layer.weight, net.layer.bias, net.features

# graph: features -- The attribute holds the end of a graph that begins at the weights

# sphinx_gallery_start_ignore
assert not features.is_leaf and weight.is_leaf
assert "features" not in message
# sphinx_gallery_end_ignore

# %%
# The fix
# -------
# The message does not name the attribute. This does:


def computed_tensors(model):
    for name, module in model.named_modules():
        for attribute, value in vars(module).items():
            if isinstance(value, torch.Tensor) and not value.is_leaf:
                yield f"{name}.{attribute}".lstrip(".")


print(list(computed_tensors(net)))
assert list(computed_tensors(net)) == ["features"]

# %%
# **The attribute is there to be looked at**: store it detached. The model can be copied, and the graph is no longer
# kept alive between the steps.


class Watched(Net):
    def forward(self, x):
        features = torch.tanh(self.layer(x))
        self.features = features.detach()
        return self.head(features)


watched = Watched()
watched(x).sum().backward()
twin = copy.deepcopy(watched)
print("copied:", torch.equal(twin.features, watched.features))
assert torch.equal(twin(x), watched(x)) and watched.layer.weight.grad.any()

# sphinx_gallery_start_ignore
assert torch.equal(twin.features, watched.features) and watched.features.grad_fn is None
# sphinx_gallery_end_ignore

# %%
# **The model is not yours to change**: copy its state into a new one. A state holds parameters and buffers, and no
# other attributes.

fresh = Net()
fresh.load_state_dict(net.state_dict())
print("same outputs:", torch.equal(fresh(x), net(x)))
assert torch.equal(fresh(x), net(x))

# %%
# **The tensor is the weight under** ``weight_norm``, as the message says: the older function stores a computed
# weight. The one in ``parametrizations`` computes it when it is asked for.

normed = nn.utils.parametrizations.weight_norm(nn.Linear(3, 2))
normed(x)
twin = copy.deepcopy(normed)
print("copied:", torch.equal(twin(x), normed(x)))
assert torch.equal(twin(x), normed(x))

# sphinx_gallery_start_ignore
import warnings as _warnings

with _warnings.catch_warnings():
    _warnings.simplefilter("ignore")
    _old = nn.utils.weight_norm(nn.Linear(3, 2))
assert list(computed_tensors(_old)) == ["weight"]
try:
    copy.deepcopy(_old)
except RuntimeError as _error:
    assert str(_error) == message
else:
    raise AssertionError("the older weight_norm can be copied")
# sphinx_gallery_end_ignore

# %%
# **It is one tensor**: ``y.clone()`` is a copy in the graph, and ``y.detach().clone()`` one outside of it.

inside, outside = y.clone(), y.detach().clone()
print("clone:", inside.grad_fn.name(), "  detach, clone:", outside.grad_fn)
assert inside.requires_grad and not outside.requires_grad

# %%
# What not to do
# --------------
# **Detach an attribute that belongs to the loss.** Some layers keep a penalty for the training loop to add. Detached,
# it still changes the loss, and no longer the gradients.


class Penalised(nn.Linear):
    cut = False

    def forward(self, x):
        penalty = self.weight.square().sum()
        self.penalty = penalty.detach() if self.cut else penalty
        return super().forward(x)


layer = Penalised(3, 1)
for cut in (False, True):
    layer.cut = cut
    layer.zero_grad()
    loss = layer(x).square().mean() + layer.penalty
    loss.backward()
    norm = layer.weight.grad.norm().item()
    print(f"detached: {cut!s:<5}  loss {loss.item():.4f}  gradient {norm:.4f}")

# sphinx_gallery_start_ignore
_layer, _found = Penalised(3, 1), []
for _cut in (False, True):
    _layer.zero_grad()
    _layer.cut = _cut
    _loss = _layer(x).square().mean() + _layer.penalty
    _loss.backward()
    _found.append((_loss.item(), _layer.weight.grad.clone()))
assert _found[0][0] == _found[1][0]
with torch.no_grad():
    assert torch.allclose(_found[0][1] - _found[1][1], 2 * _layer.weight, atol=1e-6)
# sphinx_gallery_end_ignore

# %%
# The losses are equal, so a log does not show it. Return the penalty from ``forward`` beside the output, or set the
# attribute to ``None`` after the backward pass: then the model can be copied.

layer.cut, layer.penalty = False, None
twin = copy.deepcopy(layer)
assert torch.equal(twin.weight, layer.weight)

# %%
# **Take** ``copy.copy`` **instead.** It raises nothing, because it copies no tensor: the parameters of the "copy" are
# those of the model, and training changes both.

best = copy.copy(net)
before = best.head.bias.item()
with torch.no_grad():
    net.head.bias += 1
print(f"best.head.bias: {before:.4f}, then {best.head.bias.item():.4f}")
assert best.head.bias is net.head.bias

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_graphs_leaves_and_roots.py`: what is a leaf, and what is not
# - :ref:`sphx_glr_gallery_graphs_graph_lifetime.py`: what a kept tensor keeps alive
# - `Module.load_state_dict <https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html>`__ in PyTorch's
#   reference
