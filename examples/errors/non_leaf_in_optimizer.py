r"""
can't optimize a non-leaf Tensor
================================

.. index::
   ! single: the optimizer does not accept my parameter
   ! single: my learnable tensor never changes
   ! single: optimizer got an empty parameter list

.. in-short::

   What you gave the optimizer is the result of an operation, such as ``* 0.01``, ``.double()`` or ``.to(device)``. Compute
   first, and set ``requires_grad`` on the finished tensor. A constraint, such as ``softmax``, belongs into each step instead.

   .. code-block:: diff

        w = torch.randn(3)
      - w.requires_grad_()
        w = w * 0.01
      + w.requires_grad_()
        optimizer = SGD([w], lr=0.1)

   **Not this:** ``w.retain_grad()``, or a ``w.detach().requires_grad_()`` for the optimizer only. The optimizer takes both, but
   in a loop that computes ``w`` again, nothing is learned.
"""

# %%
# The code that raises it
# -----------------------

import torch
from torch.optim import SGD

torch.manual_seed(0)

# sphinx_gallery_start_ignore
# isort: split
import itertools

try:
    # sphinx_gallery_end_ignore
    w = torch.randn(3)
    w.requires_grad_()
    w = w * 0.01
    optimizer = SGD([w], lr=0.1)
# sphinx_gallery_start_ignore
except ValueError as error:
    message = str(error)
    print("ValueError:", message)
assert message == "can't optimize a non-leaf Tensor"

raised = []
for _optimizer in (torch.optim.Adam, torch.optim.AdamW, torch.optim.LBFGS):
    try:
        _optimizer([torch.randn(3, requires_grad=True) * 0.01])
    except ValueError as error:
        raised.append(str(error))
assert raised == [message] * 3
# sphinx_gallery_end_ignore

# %%
# A *leaf* is a tensor without a ``grad_fn``. ``print(w.is_leaf)`` tells which of your tensors is not, and
# ``print([n for n, p in model.named_parameters() if not p.is_leaf])`` which of a model's. Rows of a weight are not leaves, as
# ``itertools.chain(*net.parameters(), w)`` gives them: write ``[*net.parameters(), w]``. If a library makes the views,
# update it.
#
# Why
# ---
# Backward stores gradients in leaves that require grad. After the multiplication, ``w`` is the product, and no variable holds
# the leaf that ``randn`` returned.

loss = ((w - 1) ** 2).sum()
loss.backward()

# graph: loss -- w is a result: the gradient is stored one step before it, in a leaf without a name

leaf = w.grad_fn.next_functions[0][0].variable
print("w is a leaf:", w.is_leaf)
print("the gradient is in the leaf:", leaf.grad is not None)

# sphinx_gallery_start_ignore
assert not w.is_leaf and leaf.is_leaf and leaf.grad is not None
# sphinx_gallery_end_ignore

# %%
# A conversion that has nothing to do returns the tensor itself, so a line may raise only on a machine with a GPU. Here ``meta``
# is the other device:

made = torch.randn(3, requires_grad=True)
for name, tensor in {
    "made * 0.01": made * 0.01,
    "made.reshape(3)": made.reshape(3),
    "made.double()": made.double(),
    "made.float()": made.float(),
    'made.to("meta")': made.to("meta"),
    'made.to("cpu")': made.to("cpu"),
}.items():
    print(f"{name:<16} is_leaf {tensor.is_leaf}")

# sphinx_gallery_start_ignore
assert made.float() is made and made.to("cpu") is made
assert not (made * 0.01).is_leaf and not made.reshape(3).is_leaf
assert not made.double().is_leaf and not made.to("meta").is_leaf
# sphinx_gallery_end_ignore

# %%
# The fix
# -------
# **Compute first, and ask for the gradient last.** Give a device or a type to the function that makes the tensor:
# ``torch.randn(3, device=device, requires_grad=True)``. If you start from an image or a slice, write
# ``image.to(device).detach().clone().requires_grad_()``, or the optimizer may change the original, too.

w = torch.randn(3)
w = w * 0.01
w.requires_grad_()
optimizer = SGD([w], lr=0.1)
for _ in range(30):
    optimizer.zero_grad()
    loss = ((w - 1) ** 2).sum()
    loss.backward()
    optimizer.step()
print("w:", w.detach())

# sphinx_gallery_start_ignore
assert w.is_leaf and (w - 1).abs().max() < 0.01
for _copied in (True, False):
    _image = torch.ones(2, 3)
    _attack = _image[0].float().to("cpu")
    _attack = _attack.detach().clone() if _copied else _attack
    _steps = SGD([_attack.requires_grad_()], lr=1.0)
    _attack.sum().backward()
    _steps.step()
    assert not _attack.any() and _image[0].all() == _copied
assert torch.randn(3, device="meta", requires_grad=True).is_leaf
# sphinx_gallery_end_ignore

# %%
# **A network computes the start** of a latent or an embedding: ``w = mapping(z).detach().clone().requires_grad_()``, once
# before the loop. That does not train ``mapping``: in meta-learning, use ``w = w - lr * g``, where ``g`` comes from
# ``torch.autograd.grad(loss, w, create_graph=True)``. A slice, too: ``torch.cat`` puts it back in each step.
#
# **In a module,** wrap the finished tensor in ``nn.Parameter``. On a GPU, ``nn.Parameter(w).to(device)`` is
# not a leaf, nor a parameter of the module. Move the module instead. A *buffer* that requires grad (``MetaModule``) is no leaf
# after ``model.cuda()``: build the model in ``with torch.device("cuda"):``. For weight dropout in ``_parameters``, take
# ``nn.utils.parametrize.register_parametrization(lstm, "weight_hh_l0", nn.Dropout(0.5))``.

from torch import nn

scale = nn.Parameter(torch.randn(3) * 0.01)
print("is_leaf:", scale.is_leaf)

# sphinx_gallery_start_ignore
assert scale.is_leaf and scale.requires_grad


def _refused(*parameters):
    try:
        SGD(*parameters, lr=0.1)
    except (TypeError, ValueError) as error:
        return str(error)
    return None


class _Moved(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(3)).to(torch.float64)


assert not list(_Moved().parameters())


class _Buffered(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("weight", torch.ones(3).requires_grad_())


assert _refused([_Buffered().weight]) is None
assert _refused([_Buffered().to("meta").weight]) == message
with torch.device("meta"):
    _there = _Buffered()
assert _refused([_there.to("meta").weight]) is None
_dropped = nn.LSTM(3, 4)
_raw = nn.Parameter(_dropped.weight_hh_l0.detach().clone())
_dropped._parameters["weight_hh_l0"] = nn.functional.dropout(_raw)
assert _refused(_dropped.parameters()) == message
assert [n for n, p in _dropped.named_parameters() if not p.is_leaf] == ["weight_hh_l0"]


class _Seeded(nn.Dropout):
    def forward(self, weight):
        torch.manual_seed(1)
        return super().forward(weight)


_plain, _dropped = nn.LSTM(3, 4), nn.LSTM(3, 4)
_dropped.load_state_dict(_plain.state_dict())
nn.utils.parametrize.register_parametrization(_dropped, "weight_hh_l0", _Seeded())
assert _refused(_dropped.parameters()) is None
_words, _of = torch.rand(5, 2, 3), _dropped.parametrizations.weight_hh_l0
_dropped(_words)[0].square().sum().backward()
_weights = {"weight_hh_l0": _plain.weight_hh_l0 * _Seeded()(torch.ones(16, 4))}
_same = torch.func.functional_call(_plain, _weights, (_words,))[0]
(_slope,) = torch.autograd.grad(_same.square().sum(), _plain.weight_hh_l0)
assert torch.allclose(_of.original.grad, _slope, atol=1e-6) and _slope.any()
assert torch.allclose(_dropped.eval()(_words)[0], _plain(_words)[0], atol=1e-6)
_net = nn.Linear(3, 2)
assert _refused(itertools.chain(*_net.parameters(), _row := made[None])) == message
assert _refused([*_net.parameters(), made]) is None and not _row.is_leaf
_latent = _net(torch.ones(1, 3))
assert _refused([_latent.requires_grad_()]) == message
_latent = _latent.detach().clone().requires_grad_()
_text = _net(torch.ones(4, 3)).detach()
_part = _text[1:3].detach().clone().requires_grad_()
for _learned, _make in (
    (_latent, lambda: _latent),
    (_part, lambda: torch.cat([_text[:1], _part, _text[3:]])),
):
    _steps = SGD([_learned], lr=0.4)
    for _ in range(30):
        _steps.zero_grad()
        (_make() - 1).square().sum().backward()
        _steps.step()
    assert torch.allclose(_learned, torch.ones_like(_learned))
assert torch.equal(_make()[[0, 3]], _text[[0, 3]]) and not (_text[1:3] == 1).any()
for _detached in (True, False):  # two steps, and then the network that gave the start
    _w = _net(torch.ones(1, 3))
    if _detached:
        _w = _w.detach().clone().requires_grad_()
    for _ in range(2):
        _loss = (_w - 1).square().sum()
        (_g,) = torch.autograd.grad(_loss, _w, create_graph=True)
        _w = _w - 0.1 * _g
    (_bias,) = torch.autograd.grad(_w.sum(), _net.bias, allow_unused=True)
    assert _bias is None if _detached else torch.allclose(_bias, torch.tensor(0.64))
_normed = nn.utils.parametrizations.weight_norm(nn.Linear(3, 2))
assert _refused([_normed.weight]) == message and _refused(_normed.parameters()) is None
assert _refused([_net.parameters(), made]).endswith("params is Module.parameters")
assert _refused([*_net.parameters(), made]) is None
assert _refused({"params": [made]}).endswith("params is str")
assert _refused([{"params": [made]}]) is None
assert nn.Parameter(made.double()).is_leaf
# sphinx_gallery_end_ignore

# %%
# **The operation belongs to the model,** such as a factor, ``softmax`` or ``exp``: give the optimizer the leaf, and compute in
# each step. For ``weight_norm``, that is ``module.parameters()``, in Pyro ``pyro.param(name).unconstrained()``.

raw = torch.randn(3, requires_grad=True)
optimizer = SGD([raw], lr=0.5)
for _ in range(30):
    optimizer.zero_grad()
    w = raw * 0.5
    loss = ((w - 1) ** 2).sum()
    loss.backward()
    optimizer.step()
print(f"loss: {loss.item():.4f}")

# sphinx_gallery_start_ignore
assert loss < 0.05
_three = torch.eye(3)[:, :2]
for _each_step in (
    True,
    False,
):  # weights of three models: softmax once is no constraint
    _raw = torch.zeros(3)
    _raw = _raw.requires_grad_() if _each_step else _raw.softmax(0).requires_grad_()
    _steps = SGD([_raw], lr=0.5)
    for _ in range(50):
        _steps.zero_grad()
        _mixed = _raw.softmax(0) if _each_step else _raw
        (_mixed @ _three - torch.tensor([2.0, -1.0])).square().sum().backward()
        _steps.step()
    assert (_mixed.min() >= 0) == _each_step
# sphinx_gallery_end_ignore

# %%
# What not to do
# --------------
# **Make a leaf for the optimizer only,** or call ``retain_grad()``:


def train(prepare):
    raw = torch.ones(3, requires_grad=True)
    optimizer = SGD([prepare(raw * 0.5)], lr=0.1)
    losses = []
    for _ in range(3):
        optimizer.zero_grad()
        loss = ((raw * 0.5 - 1) ** 2).sum()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def retained(w):
    w.retain_grad()
    return w


print("detached:", train(lambda w: w.detach().requires_grad_()))
print("retained:", train(retained))


# sphinx_gallery_start_ignore
assert train(lambda w: w.detach().requires_grad_()) == [0.75] * 3
assert train(retained) == [0.75] * 3
# sphinx_gallery_end_ignore

# %%
# **Forget** ``requires_grad``. ``step()`` then skips the tensor:

w = torch.randn(3) * 0.01
before = w.clone()
optimizer = SGD([w], lr=0.1)
offset = torch.zeros(3, requires_grad=True)
((w + offset - 1) ** 2).sum().backward()
optimizer.step()
print("changed:", not torch.equal(w, before))

# sphinx_gallery_start_ignore
assert torch.equal(w, before) and w.is_leaf and w.grad is None
# sphinx_gallery_end_ignore

# %%
# Messages that are close to this one
# -----------------------------------
# A module does not register the layers of a plain Python list:


# sphinx_gallery_start_ignore
raised = []
try:
    # sphinx_gallery_end_ignore
    class Stack(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = [nn.Linear(3, 3), nn.Linear(3, 1)]

    optimizer = SGD(Stack().parameters(), lr=0.1)
# sphinx_gallery_start_ignore
except ValueError as error:
    raised.append(str(error))
    print("ValueError:", error)
assert raised == ["optimizer got an empty parameter list"]

_parameters = nn.Linear(3, 1).parameters()
assert sum(p.numel() for p in _parameters) == 4
_frozen = nn.Linear(3, 1).requires_grad_(False)
for _empty in (_parameters, filter(lambda p: p.requires_grad, _frozen.parameters())):
    try:
        SGD(_empty, lr=0.1)
    except ValueError as error:
        raised.append(str(error))
assert raised == raised[:1] * 3


class _Listed(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(3, 3), nn.Linear(3, 1)])


assert len(list(_Listed().parameters())) == 4
assert len(SGD(_Listed().parameters(), lr=0.1).param_groups[0]["params"]) == 4
# sphinx_gallery_end_ignore

# %%
# Write ``nn.ModuleList([...])`` instead of the list. The message also comes if all are frozen before a filter by
# ``requires_grad``, if LoRA found none of its modules or has no learning rate, or if ``filter(...)`` or a stored
# ``model.parameters()`` was used up by a loop: pass a list.
#
# *One of the params is Module.parameters*: write ``[*a.parameters(), *b.parameters()]``. *One of the params is str*: put the
# dict into a list. A single tensor, too, ``SGD([w], lr=0.1)``:

# sphinx_gallery_start_ignore
raised = []
try:
    # sphinx_gallery_end_ignore
    SGD(nn.Parameter(torch.ones(3)), lr=0.1)
# sphinx_gallery_start_ignore
except TypeError as error:
    raised.append(str(error))
    print("TypeError:", error)
assert len(raised) == 1 and "should be an iterable of Tensors or dicts" in raised[0]
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_graphs_leaves_and_roots.py`.
# - :ref:`sphx_glr_gallery_errors_grad_of_non_leaf.py`: the warning that the same tensor gives when its ``.grad`` is read.
