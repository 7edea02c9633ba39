r"""
Weight tying, parametrize and LoRA from scratch
===============================================

.. index::
   single: tied weights, sharing a weight between the embedding and the output layer
   single: gradient of a shared parameter, one parameter used twice
   single: weight.data = other.weight.data, two parameters in one memory
   single: load_state_dict(assign=True) or to_empty breaks tied weights
   single: weight_norm, spectral_norm, orthogonal: layer.weight.grad is None
   single: remove_parametrizations, remove weight_norm
   single: nn.init has no effect after weight_norm
   single: LoRA from scratch, rank, alpha, merge the weights
   single: the gradient of lora_A is zero

.. in-short::

   To tie two layers, give them one ``Parameter``. The gradients of both uses add up in its ``.grad``:

   .. code-block:: python

      self.out.weight = self.emb.weight

   Do not tie with ``.data``. Some calls undo the tie without an error: test ``model.out.weight is model.emb.weight``. With
   ``parametrize``, ``layer.weight`` is computed at each access: you train the parameters of ``layer.parametrizations.weight``.
   LoRA trains ``B @ A`` beside a frozen weight.
"""

# %%
# One Parameter in two layers: the gradients add
# ----------------------------------------------
# A language model turns tokens into vectors, and vectors into scores for tokens. Both layers have a weight with one row for
# each token, and often share it:

import copy

import torch
from torch import nn
from torch.nn.utils import parametrize


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(100, 16)
        self.out = nn.Linear(16, 100, bias=False)
        self.out.weight = self.emb.weight
        nn.init.normal_(self.emb.weight, std=0.02)

    def forward(self, tokens):
        return self.out(self.emb(tokens))


torch.manual_seed(0)
model = Model()
tokens, targets = torch.tensor([3, 7, 7]), torch.tensor([7, 7, 1])
loss = nn.functional.cross_entropy(model(tokens), targets)
loss.backward()

# graph: loss -- Two paths lead to the one weight

print("parameters():", [name for name, _ in model.named_parameters()])
print("state_dict():", list(model.state_dict()))

# sphinx_gallery_start_ignore
assert [name for name, _ in model.named_parameters()] == ["emb.weight"]
assert list(model.state_dict()) == ["emb.weight", "out.weight"]
assert len(torch.optim.SGD(model.parameters()).param_groups[0]["params"]) == 1
_saved = model.state_dict()
assert _saved["emb.weight"].data_ptr() == _saved["out.weight"].data_ptr()
assert model.emb.weight.shape == nn.Linear(16, 100).weight.shape == (100, 16)
# sphinx_gallery_end_ignore

# %%
# ``parameters()`` yields the weight once, so the optimizer moves it once. ``state_dict()`` names it twice.
#
# ``nn.Embedding`` draws its numbers with a standard deviation of 1. In the output layer they make the first loss huge, so draw
# smaller ones, as GPT-2 does:

for std in (1.0, 0.02):
    emb = nn.Embedding(1000, 256)
    nn.init.normal_(emb.weight, std=std)
    hidden = nn.functional.layer_norm(emb(torch.arange(1000)), [256])
    scores = hidden @ emb.weight.T
    first = nn.functional.cross_entropy(scores, torch.randperm(1000))
    print(f"std {std}: first loss {first.item():.1f}")

# sphinx_gallery_start_ignore
assert first < 7.5
assert nn.Embedding(1000, 256).weight.std().sub(1).abs() < 0.01
# sphinx_gallery_end_ignore

# %%
# **One ``Parameter`` has one ``.grad``, and each use adds to it.** To see the two gradients apart, give a copy of the model two
# weights of equal value:

apart = copy.deepcopy(model)
apart.out.weight = nn.Parameter(model.emb.weight.detach().clone())
apart.zero_grad()
nn.functional.cross_entropy(apart(tokens), targets).backward()

first, second = apart.emb.weight.grad, apart.out.weight.grad
print("tied = sum of both:", torch.allclose(model.emb.weight.grad, first + second))
for name, gradient in {"embedding": first, "output": second}.items():
    print(name, "rows with a gradient:", gradient.any(dim=1).sum().item())

# sphinx_gallery_start_ignore
assert torch.allclose(model.emb.weight.grad, first + second)
assert not torch.allclose(model.emb.weight.grad, (first + second) / 2)
assert first.any(dim=1).nonzero().flatten().tolist() == [3, 7]
assert second.any(dim=1).all()
# sphinx_gallery_end_ignore

# %%
# The embedding gives a gradient to the rows of the two tokens in the batch. The output layer gives one to all 100 rows, because
# the softmax depends on each score.

# %%
# parametrize: the weight is computed at each access
# --------------------------------------------------
# You want a weight that is positive, has a fixed norm, or is orthogonal. A parametrization computes it from another tensor,
# ``original``, which you train. ``right_inverse`` computes the start of ``original`` from the layer's weight:


class Positive(nn.Module):
    def forward(self, original):
        return original.exp()

    def right_inverse(self, weight):
        return weight.clamp(min=1e-3).log()  # the log of a negative number is NaN


layer = nn.Linear(3, 2, bias=False)
nn.init.constant_(layer.weight, 2.0)
parametrize.register_parametrization(layer, "weight", Positive())

y = layer(torch.ones(3)).sum()
y.backward()

# graph: y -- The leaf is the original: the weight is a result of exp

print([name for name, _ in layer.named_parameters()])
print("nodes of three accesses:", len({layer.weight.grad_fn for _ in range(3)}))
with parametrize.cached():
    print("in cached():", len({layer.weight.grad_fn for _ in range(3)}))

# sphinx_gallery_start_ignore
import warnings

from torch.nn.utils.parametrizations import orthogonal, spectral_norm, weight_norm

_original = layer.parametrizations.weight.original
assert next(iter(layer.parameters())) is _original and _original.grad is not None
assert _original.is_leaf and not layer.weight.is_leaf
assert len({layer.weight.grad_fn for _ in range(3)}) == 3
with parametrize.cached():
    assert len({layer.weight.grad_fn for _ in range(3)}) == 1
    _old = layer.weight.detach().clone()
    torch.optim.SGD(layer.parameters(), lr=0.1).step()
    assert torch.equal(layer.weight, _old)
assert not torch.equal(layer.weight, _old)
with parametrize.cached():  # the weight of the first pass is used again
    with torch.no_grad():
        layer(torch.ones(3))
    assert not layer(torch.ones(3)).requires_grad
with torch.no_grad():
    _original.fill_(2.0).log_()


def _register(layer):
    parametrize.register_parametrization(layer, "weight", Positive())


_kinds = {
    _register: ["original"],
    weight_norm: ["original0", "original1"],
    spectral_norm: ["original"],
    orthogonal: ["original"],
}
for _kind, _names in _kinds.items():
    _layer = nn.Linear(3, 3, bias=False)
    nn.init.uniform_(_layer.weight, 0.5, 1.5)
    _weight = _layer.weight
    _optimizer = torch.optim.SGD(_layer.parameters(), lr=0.1)
    _kind(_layer)
    _parameters = dict(_layer.named_parameters())
    assert list(_parameters) == ["parametrizations.weight." + n for n in _names]
    _inner = list(_layer.parametrizations.weight.parameters())
    assert {id(p) for p in _inner} == {id(p) for p in _layer.parameters()}
    assert not _layer.weight.is_leaf and _layer.weight is not _layer.weight
    (_layer.weight * torch.randn(3, 3)).sum().backward()
    assert all(p.grad is not None for p in _parameters.values())
    _kept = any(p is _weight for p in _parameters.values())
    assert _kept == (_kind is not weight_norm)
    _layer.eval()  # spectral_norm updates its buffers at each access in train()
    _before = _layer.weight.detach().clone()
    nn.init.zeros_(_layer.weight)
    _layer.weight.data.zero_()
    with torch.no_grad():
        _layer.weight.fill_(7.0)
    assert torch.equal(_layer.weight, _before)
    _optimizer.step()
    assert torch.equal(_layer.weight, _before) == (_kind is weight_norm)
_layer = nn.Linear(3, 2)
_start = _layer.weight.detach().clone()
assert (_start < 0).any()
parametrize.register_parametrization(_layer, "weight", Positive())
assert torch.allclose(_layer.weight, _start.clamp(min=1e-3))
_layer = nn.Linear(3, 2)
parametrize.register_parametrization(_layer, "weight", nn.Softplus())
_raised = []
try:
    _layer.weight = torch.ones(2, 3)
except RuntimeError as error:
    _raised.append(str(error))
assert len(_raised) == 1 and "does not implement right_inverse" in _raised[0]
try:
    layer.weight = nn.Parameter(torch.ones(2, 3))
except KeyError as error:
    _raised.append(str(error))
assert len(_raised) == 2 and "already exists" in _raised[1]
with warnings.catch_warnings(record=True) as _caught:
    warnings.simplefilter("always")
    assert layer.weight.grad is None
assert any("not a leaf" in str(w.message) for w in _caught)
# sphinx_gallery_end_ignore

# %%
# Each access computes the weight anew, so ``layer.weight.grad`` is ``None``, with a warning: look at
# ``layer.parametrizations.weight.original.grad``. If a forward pass uses the weight often, compute it once, in
# ``parametrize.cached()``. Keep the optimizer's step and passes under ``no_grad`` out of it.
#
# Numbers that you write into this weight are lost (`pytorch#180968 <https://github.com/pytorch/pytorch/issues/180968>`__). If
# there is a ``right_inverse``, assign a plain tensor (not a ``Parameter``):

nn.init.constant_(layer.weight, 5.0)  # writes into a result, which is then dropped
print("after nn.init:", layer.weight[0].tolist())

layer.weight = torch.full((2, 3), 5.0)  # writes right_inverse of it into original
print("after assigning:", layer.weight[0].tolist())

# sphinx_gallery_start_ignore
assert torch.allclose(layer.weight, torch.tensor(5.0))
assert layer.parametrizations.weight.original is _original
assert torch.allclose(_original, torch.tensor(5.0).log())
layer.weight = torch.full((2, 3), 2.0)
_before = layer.weight.detach().clone()
nn.init.constant_(layer.weight, 5.0)
assert torch.equal(layer.weight, _before) and (_before - 2).abs().max() < 1e-5
# sphinx_gallery_end_ignore

# %%
# ``weight_norm`` makes two new parameters, and ``remove_parametrizations`` turns them into a third. An older optimizer does
# not train them. ``orthogonal`` keeps the one ``Parameter``:

from torch.nn.utils.parametrizations import orthogonal

rotation = nn.Linear(3, 3, bias=False)
weight = rotation.weight
orthogonal(rotation)
w = rotation.weight
print("orthogonal:", torch.allclose(w @ w.T, torch.eye(3), atol=1e-6))

parametrize.remove_parametrizations(rotation, "weight")
print("the same Parameter as before:", rotation.weight is weight)

# sphinx_gallery_start_ignore
assert torch.allclose(w @ w.T, torch.eye(3), atol=1e-6) and rotation.weight is weight
assert torch.equal(weight, w) and type(rotation) is nn.Linear
for _kind, _same in ((orthogonal, True), (spectral_norm, True), (weight_norm, False)):
    _layer = nn.Linear(3, 3)
    _weight = _layer.weight
    _kind(_layer)
    assert parametrize.is_parametrized(_layer, "weight") and isinstance(
        _layer, nn.Linear
    )
    assert not parametrize.is_parametrized(_layer, "bias")
    assert parametrize.type_before_parametrizations(_layer) is nn.Linear
    assert type(_layer) is not nn.Linear
    _inner = [*_layer.parametrizations.weight.parameters()]
    _layer.eval()
    _now = _layer.weight.detach().clone()
    parametrize.remove_parametrizations(_layer, "weight")
    assert torch.allclose(_layer.weight, _now) and _layer.weight.is_leaf
    assert (_layer.weight is _weight) == _same
    assert any(_layer.weight is p for p in _inner) == _same
# sphinx_gallery_end_ignore

# %%
# LoRA from scratch
# -----------------
# You want to fine-tune a large layer by training few numbers. LoRA freezes the layer, and adds the product of two thin
# matrices:


class LoRALinear(nn.Module):
    def __init__(self, layer, rank=4, alpha=8):
        super().__init__()
        self.layer = layer.requires_grad_(False)
        rows, columns = layer.out_features, layer.in_features
        kind = {"device": layer.weight.device, "dtype": torch.float32}
        self.A = nn.Parameter(torch.randn(rank, columns, **kind) / columns**0.5)
        self.B = nn.Parameter(torch.zeros(rows, rank, **kind))
        self.scale = alpha / rank

    def forward(self, x):
        y = self.layer(x)
        added = self.scale * (x.to(self.A.dtype) @ self.A.T @ self.B.T)
        return y + added.to(y.dtype)


lora = LoRALinear(nn.Linear(512, 512))
trained = [p for p in lora.parameters() if p.requires_grad]
print("trained:", sum(p.numel() for p in trained), "of", 512 * 512 + 512)

optimizer = torch.optim.Adam(trained, lr=0.001)
x, target = torch.randn(64, 512), torch.randn(64, 512)
for step in range(10):
    optimizer.zero_grad()
    nn.functional.mse_loss(lora(x), target).backward()
    if step < 3:
        print(f"A.grad {lora.A.grad.norm():.5f}   B.grad {lora.B.grad.norm():.5f}")
    optimizer.step()

# sphinx_gallery_start_ignore
assert sum(p.numel() for p in trained) == 4096 == 2 * 4 * 512
assert lora.layer.weight.grad is None and set(optimizer.state) == {lora.A, lora.B}


def _gradients(layer):
    layer.zero_grad()
    nn.functional.mse_loss(layer(_x), _target).backward()
    return layer.A.grad, layer.B.grad


for _dtype in (torch.float32, torch.float64, torch.bfloat16):
    _x, _target = x[:, :32].to(_dtype), target[:, :32].to(_dtype)
    _new = LoRALinear(nn.Linear(32, 32, dtype=_dtype))
    assert _new.A.dtype == _new.B.dtype == torch.float32
    assert torch.equal(_new(_x), _new.layer(_x)) and _new(_x).dtype == _dtype
    _a, _b = _gradients(_new)
    assert not _a.any() and _b.any()
    nn.init.zeros_(_new.A)
    assert not any(g.any() for g in _gradients(_new))
    nn.init.ones_(_new.B)
    _a, _b = _gradients(_new)
    assert _a.any() and not _b.any()
_x, _target = x[:, :32], target[:, :32]
_losses = []
for _dtype in (torch.float32, torch.bfloat16):  # of A and B, beside a bfloat16 layer
    torch.manual_seed(0)
    _new = LoRALinear(nn.Linear(32, 32, dtype=torch.bfloat16))
    _new.A.data, _new.B.data = _new.A.to(_dtype), _new.B.to(_dtype)
    _wanted = _new.layer(_x.bfloat16()).float() + _x @ torch.randn(32, 32) * 0.03
    _adam = torch.optim.Adam([_new.A, _new.B], lr=1e-4)
    for _ in range(1000):
        _adam.zero_grad()
        _loss = nn.functional.mse_loss(_new(_x.bfloat16()).float(), _wanted)
        _loss.backward()
        _adam.step()
    _losses.append(_loss.item())
assert _losses[0] < 0.97 * _losses[1]
_merged = LoRALinear(nn.Linear(32, 32, dtype=torch.bfloat16))
nn.init.normal_(_merged.B)
with torch.autocast("cpu", dtype=torch.bfloat16):
    assert _merged(_x.bfloat16()).dtype == torch.bfloat16
_raised = []
try:
    _gradients(LoRALinear(nn.Linear(32, 32)).requires_grad_(False))
except RuntimeError as error:
    _raised.append(str(error))
assert len(_raised) == 1 and "does not require grad" in _raised[0]

from torch.utils.checkpoint import checkpoint

for _reentrant in (True, False):
    _new = LoRALinear(nn.Linear(32, 32))
    _hidden = nn.Embedding(9, 32).requires_grad_(False)(torch.arange(9))
    with warnings.catch_warnings(record=True) as _caught:
        warnings.simplefilter("always")
        _y = checkpoint(_new, _hidden, use_reentrant=_reentrant)
    _y = _y * torch.ones(32, requires_grad=True)  # the head learns
    _y.square().sum().backward()
    assert (_new.A.grad is None) == (_new.B.grad is None) == _reentrant
    assert _reentrant == any("None of the inputs" in str(w.message) for w in _caught)
# sphinx_gallery_end_ignore

# %%
# ``B`` is a factor in the gradient of ``A``, so the first gradient of ``A`` is zero, while that of ``B`` is not. If you start
# both at zero, neither learns.
#
# ``A`` and ``B`` stay in float32 beside a ``bfloat16`` layer: in ``bfloat16``, Adam's small steps would be rounded away.
#
# Freeze before you add ``A`` and ``B``: a later ``model.requires_grad_(False)`` freezes them as well. With a frozen embedding
# and ``checkpoint(..., use_reentrant=True)``, :ref:`they get no gradient
# <sphx_glr_gallery_errors_checkpoint_without_gradients.py>`.

# %%
# What LoRA keeps for backward
# ----------------------------
# LoRA can also be written as a parametrization:


class LowRank(nn.Module):
    def __init__(self, weight, rank=4, alpha=8):
        super().__init__()
        rows, columns = weight.shape
        kind = {"device": weight.device, "dtype": torch.float32}
        self.A = nn.Parameter(torch.randn(rank, columns, **kind) / columns**0.5)
        self.B = nn.Parameter(torch.zeros(rows, rank, **kind))
        self.scale = alpha / rank

    def forward(self, weight):
        return weight + (self.scale * (self.B @ self.A)).to(weight.dtype)


low = nn.Linear(512, 512).requires_grad_(False)
low = parametrize.register_parametrization(low, "weight", LowRank(low.weight))

# %%
# .. how-measured:: A hook notes each tensor that is saved for backward; parameters are not counted.

import pandas as pd


def count_kept_bytes(layer, x):
    saved = {}

    def pack(tensor):
        storage = tensor.untyped_storage()
        saved[storage.data_ptr()] = storage.nbytes()
        return tensor.detach()

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        y = layer(x)
    for own in layer.parameters():
        saved.pop(own.untyped_storage().data_ptr(), None)
    del y
    return sum(saved.values())


LAYERS = {
    "Linear": nn.Linear(512, 512),
    "Linear, frozen": nn.Linear(512, 512).requires_grad_(False),
    "LoRALinear": lora,
    "LowRank": low,
}
inputs = {"x is data": x, "x requires grad": x.clone().requires_grad_() * 1}


def tabulate_kept_bytes():
    columns = {
        name: {n: count_kept_bytes(layer, h) for n, layer in LAYERS.items()}
        for name, h in inputs.items()
    }
    return pd.DataFrame(columns)


# %%
# Bytes kept for an input ``x`` of 131,072 bytes. It requires grad if something before the layer learns:

# sphinx_gallery_start_ignore
assert x.nbytes == 131072
memory = tabulate_kept_bytes()
assert memory.to_numpy().tolist() == [
    [x.nbytes, x.nbytes],
    [0, 0],
    [x.nbytes + 64 * 4 * 4] * 2,
    [x.nbytes, x.nbytes + 512 * 512 * 4],
]
assert [n for n, p in low.named_parameters() if not p.requires_grad] == [
    "bias",
    "parametrizations.weight.original",
]
with parametrize.cached():
    low.weight.retain_grad()
    low(x).square().sum().backward()
    assert low.weight.grad.shape == (512, 512)  # computed on the way to A and B
assert low.parametrizations.weight.original.grad is None
assert not low.parametrizations.weight[0].A.grad.any()
assert low.parametrizations.weight[0].B.grad.any()
assert (memory.loc[["LoRALinear", "LowRank"]] >= memory.loc["Linear"]).all(axis=None)
# sphinx_gallery_end_ignore
tabulate_kept_bytes().map("{:,}".format)

# %%
# :ref:`The frozen Linear keeps no input <sphx_glr_gallery_modes_freezing.py>`, but ``A`` needs it for its gradient. So LoRA
# keeps at least as much as a layer that learns. You gain elsewhere: the frozen weight needs no optimizer state, and in
# ``LoRALinear`` no gradient. The backward of ``LowRank`` still computes the gradient of the whole weight.

# %%
# Merge the weights, and take them out again
# ------------------------------------------
# For inference, add the product to the weight. The layer alone then gives the same output, up to rounding:

weight = lora.layer.weight
frozen = weight.clone()

with torch.no_grad():
    update = lora.scale * lora.B @ lora.A
    expected = lora(x)
    weight += update
    print("same output:", torch.allclose(lora.layer(x), expected, atol=1e-5))
    weight -= update
    print("restored bit by bit:", torch.equal(weight, frozen))

# sphinx_gallery_start_ignore
with torch.no_grad():
    assert torch.allclose(weight, frozen, atol=1e-6) and not torch.equal(weight, frozen)
    weight.copy_(frozen).add_(update)
    assert torch.allclose(lora.layer(x), expected, atol=1e-5)
    _twice = expected + nn.functional.linear(x, update)
    assert torch.allclose(lora(x), _twice, atol=1e-4)
    assert not torch.allclose(lora(x), expected, atol=1e-2)
    assert not torch.allclose(
        expected, nn.functional.linear(x, frozen, lora.layer.bias)
    )
    weight.copy_(frozen)
# sphinx_gallery_end_ignore

# %%
# Keep a copy of the frozen weight, if you want it back exactly. While it is merged, call ``lora.layer``: ``lora`` would add the
# product twice.

# %%
# What people get wrong
# ---------------------
# **Sharing .data instead of the Parameter.** The two layers then have the same memory, but still two parameters:

shared = Model()
shared.out = nn.Linear(16, 100, bias=False)
shared.out.weight.data = shared.emb.weight.data

print("same numbers:", torch.equal(shared.out.weight, shared.emb.weight))
print("one Parameter:", shared.out.weight is shared.emb.weight)

# sphinx_gallery_start_ignore
assert shared.out.weight.data_ptr() == shared.emb.weight.data_ptr()
assert shared.out.weight is not shared.emb.weight
assert len(list(shared.parameters())) == 2
_encoder, _decoder = nn.Linear(4, 2, bias=False), nn.Linear(2, 4, bias=False)
_decoder.weight = nn.Parameter(_encoder.weight.T)  # a transposed tie
assert _decoder.weight.data_ptr() == _encoder.weight.data_ptr()
assert len(list(nn.Sequential(_encoder, _decoder).parameters())) == 2
_x = torch.randn(3, 4)
nn.functional.linear(_encoder(_x), _encoder.weight.T).square().sum().backward()
_tied, _encoder.weight.grad = _encoder.weight.grad, None
_decoder(_encoder(_x)).square().sum().backward()
assert torch.allclose(_tied, _encoder.weight.grad + _decoder.weight.grad.T, atol=1e-4)
# sphinx_gallery_end_ignore

# %%
# The optimizer steps both, each with its own gradient, and both steps change the one memory. In an autoencoder,
# ``decoder.weight = nn.Parameter(encoder.weight.T)`` is the same mistake: call ``F.linear(h, encoder.weight.T)`` instead.
#
# .. how-measured:: This code ties two weights of one number each, in both ways, and takes one step with given gradients.

OPTIMIZERS = {
    "SGD": lambda p: torch.optim.SGD(p, lr=0.1),
    "SGD, momentum": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
    "SGD, weight decay": lambda p: torch.optim.SGD(p, lr=0.1, weight_decay=0.5),
    "Adam": lambda p: torch.optim.Adam(p, lr=0.1),
    "AdamW": lambda p: torch.optim.AdamW(p, lr=0.1, weight_decay=0.5),
}


def one_step(make, tie, gradients):
    layers = nn.ModuleList([nn.Linear(1, 1, bias=False) for _ in range(2)])
    first, second = layers
    nn.init.ones_(first.weight)
    if tie == "one Parameter":
        second.weight = first.weight
    else:
        second.weight.data = first.weight.data
    optimizer = make(layers.parameters())
    loss = gradients[0] * first.weight + gradients[1] * second.weight
    loss.sum().backward()
    optimizer.step()
    assert torch.equal(first.weight, second.weight)
    return round(1 - first.weight.item(), 2) + 0.0


def tabulate_one_step():
    columns = {
        (f"gradients {a} and {b}", tie): {
            name: one_step(make, tie, (a, b)) for name, make in OPTIMIZERS.items()
        }
        for a, b in [(3, 1), (3, -1)]
        for tie in ["one Parameter", ".data"]
    }
    return pd.DataFrame(columns)


# %%
# How far one step with a learning rate of 0.1 moves the shared number, if the two uses give it these gradients:

# sphinx_gallery_start_ignore
assert tabulate_one_step().to_numpy().tolist() == [
    [0.4, 0.4, 0.2, 0.2],
    [0.4, 0.4, 0.2, 0.2],
    [0.45, 0.48, 0.25, 0.28],
    [0.1, 0.2, 0.1, 0.0],
    [0.15, 0.29, 0.15, 0.09],
]
# sphinx_gallery_end_ignore
tabulate_one_step()

# %%
# SGD without weight decay hides the mistake. Adam divides each gradient by its size, so each of the two steps is 0.1 long:
# together 0.2, or 0.
#
# **Calls that break the tie**, without an error.
#
# .. how-measured:: This code makes a tied model, makes one call, and compares the two weights and their memory.

import io


def tied(how):
    model = Model()
    if how == ".data":
        model.out = nn.Linear(16, 100, bias=False)
        model.out.weight.data = model.emb.weight.data
    return model


def load(model, **options):
    model.load_state_dict(Model().state_dict(), **options)
    return model


def reload(model):
    torch.save(model, file := io.BytesIO())
    file.seek(0)
    return torch.load(file, weights_only=False)


def replace(model):
    model.emb = nn.Embedding(120, 16)
    return model


CALLS = {
    "copy.deepcopy(model)": copy.deepcopy,
    "torch.save(model), torch.load": reload,
    "model.double()": lambda m: m.double(),
    "load_state_dict(d)": load,
    "load_state_dict(d, assign=True)": lambda m: load(m, assign=True),
    'to("meta"), to_empty(device="cpu")': lambda m: m.to("meta").to_empty(device="cpu"),
    "model.emb = nn.Embedding(...)": replace,
}


def state(model):
    a, b = model.emb.weight, model.out.weight
    if a is b:
        return "one Parameter"
    return "two in one memory" if a.data_ptr() == b.data_ptr() else "apart"


def tabulate_ties():
    columns = {
        how: {call: state(run(tied(how))) for call, run in CALLS.items()}
        for how in ["one Parameter", ".data"]
    }
    return pd.DataFrame(columns).rename_axis(columns="tied by")


# %%
# What is left of each kind of tie, where ``d`` is the ``state_dict()`` of another tied model:

# sphinx_gallery_start_ignore
states = tabulate_ties()
assert states["one Parameter"].tolist() == [
    *["one Parameter"] * 4,
    *["two in one memory", "apart", "apart"],
]
assert states[".data"].tolist() == [
    *["apart", "two in one memory", "apart"],
    *["two in one memory", "two in one memory", "apart", "apart"],
]
_other = Model()
_other.out.weight = nn.Parameter(torch.randn(100, 16))
assert state(load(copy.deepcopy(_other), assign=True)) == "two in one memory"
with torch.device("meta"):
    _empty = Model()
assert _empty.out.weight is _empty.emb.weight
assert state(_empty.to_empty(device="cpu")) == "apart"
for _call in CALLS.values():  # and the remedy
    _model = replace(_call(tied(".data")))
    _model.out.weight = _model.emb.weight
    assert state(_model) == "one Parameter"
# sphinx_gallery_end_ignore
tabulate_ties()

# %%
# *Two in one memory* is the mistake above, and ``assign=True`` turns a right tie into it (`pytorch#188346
# <https://github.com/pytorch/pytorch/issues/188346>`__). A model made on ``meta`` loses its tie in ``to_empty``
# (`torchtitan#2252 <https://github.com/pytorch/torchtitan/issues/2252>`__). After such a call, and before you make the
# optimizer, write ``model.out.weight = model.emb.weight`` again.

# %%
# Exercise
# --------
# The weight of ``model.out`` is tied to the embedding. You train LoRA on ``model.out`` alone, and merge it in place. What else
# changes? Repair it.
#
# .. solution::
#
# The vectors of the tokens change, because the weight is the embedding as well (`peft#2018
# <https://github.com/huggingface/peft/issues/2018>`__). ``LoRALinear(model.out)`` also freezes the embedding. Give the output
# layer a separate ``Parameter``: before LoRA, if the embedding has to learn.

model = Model()
update = 0.1 * torch.randn(100, 4) @ torch.randn(4, 16)
vectors = model.emb(tokens)

merged = copy.deepcopy(model)
with torch.no_grad():
    merged.out.weight += update
print("in place, same vectors:", torch.equal(merged.emb(tokens), vectors))

model.out.weight = nn.Parameter(model.out.weight.detach() + update)
print("untied,   same vectors:", torch.equal(model.emb(tokens), vectors))

# sphinx_gallery_start_ignore
assert not torch.equal(merged.emb(tokens), vectors)
assert torch.equal(model.emb(tokens), vectors)
assert torch.allclose(model.out(vectors), merged.out(vectors), atol=1e-5)
LoRALinear(merged.out), LoRALinear(model.out)
assert not merged.emb.weight.requires_grad and model.emb.weight.requires_grad
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_modules_parameters_and_buffers.py`: what a module registers, saves and loads.
# - :ref:`sphx_glr_gallery_errors_cannot_assign_parameter.py`: the error when you assign a computed weight.
# - :ref:`sphx_glr_gallery_errors_non_leaf_in_optimizer.py`: the error when an optimizer gets a computed weight.
# - :ref:`sphx_glr_gallery_errors_unscale_fp16.py`: the error when the trained part is in ``float16``.
# - In PyTorch's reference: `register_parametrization
#   <https://docs.pytorch.org/docs/stable/generated/torch.nn.utils.parametrize.register_parametrization.html>`__ and
#   `parametrize.cached <https://docs.pytorch.org/docs/stable/generated/torch.nn.utils.parametrize.cached.html>`__.
