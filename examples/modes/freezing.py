r"""
Freeze layers: requires_grad_(False), batch norm and memory
===========================================================

.. index::
   single: train only the last layer, fine-tuning, transfer learning
   single: a frozen layer still changes
   single: freeze only some rows of an embedding
   single: prune.remove, pruned weights that grow back
   single: LoRA adapter beside a frozen layer

.. in-short::

   ``model.body.requires_grad_(False)`` freezes a part of a model: its parameters get no gradient. If it has batch
   normalization, also call ``model.body.eval()`` after each ``model.train()``, because the running statistics still change.
   This turns off the dropout in the part too. Was the part trained before? Then call ``optimizer.zero_grad()``. If a layer
   before the frozen one still learns, the gradient passes through the frozen layer.
"""

# %%
# Train the head and leave the body as it is
# ------------------------------------------
# You have a trained body and put a new head on it. Freeze the body and take three steps. What still moves?

import copy

import torch
from torch import nn
from torch.nn.functional import cross_entropy

torch.manual_seed(0)
body = nn.Sequential(nn.Linear(20, 30), nn.BatchNorm1d(30), nn.ReLU())
head = nn.Linear(30, 5)
model = nn.Sequential(body, head)  # "0.1" in a name: layer 1 of the body
x, labels = torch.randn(64, 20), torch.randint(5, (64,))


def moved_by_three_steps():
    optimizer = torch.optim.AdamW(model.parameters())
    before = copy.deepcopy(model.state_dict())
    for _ in range(3):
        loss = cross_entropy(model(x), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    after = model.state_dict()
    return [key for key in after if not torch.equal(after[key], before[key])]


body.requires_grad_(False)
print("requires_grad_(False):", moved_by_three_steps())
body.eval()
print("and eval():           ", moved_by_three_steps())

loss = cross_entropy(model(x), labels)

# graph: loss -- The graph begins at the head: the frozen body has no node in it

# sphinx_gallery_start_ignore
assert all(p.grad is None for p in body.parameters())
assert head.weight.grad.shape == (5, 30) and not body(x).requires_grad
assert moved_by_three_steps() == ["1.weight", "1.bias"]
body.train()
assert moved_by_three_steps() == [
    *(f"0.1.{name}" for name in ("running_mean", "running_var", "num_batches_tracked")),
    "1.weight",
    "1.bias",
]
_optimizer = torch.optim.AdamW(model.parameters())
_optimizer.step()
assert set(_optimizer.state) == set(head.parameters())


def _batch_norm_step(training, frozen):
    norm = nn.BatchNorm1d(3).train(training).requires_grad_(not frozen)
    before = {name: value.clone() for name, value in norm.state_dict().items()}
    scale = torch.tensor(1.0, requires_grad=True)  # something to learn in any case
    (scale * norm(torch.randn(16, 3) + 1)).square().sum().backward()
    torch.optim.SGD(norm.parameters(), lr=0.1).step()
    after, names = norm.state_dict(), ["weight", "bias", "running_mean", "running_var"]
    return [not torch.equal(before[name], after[name]) for name in names]


assert _batch_norm_step(True, False) == [True, True, True, True]
assert _batch_norm_step(True, True) == [False, False, True, True]
assert _batch_norm_step(False, False) == [True, True, False, False]
assert _batch_norm_step(False, True) == [False, False, False, False]
# sphinx_gallery_end_ignore

# %%
# **requires_grad_(False) stops the gradients, eval() stops the running statistics. To freeze a part, use both.** The optimizer
# may have all parameters, because it skips those without a gradient.
#
# The next ``model.train()`` also puts the body back into training. So override ``train``:


class FineTuned(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
        self.body.requires_grad_(False).eval()
        self.head = nn.Linear(4, 2)

    def train(self, mode=True):
        super().train(mode)
        self.body.eval()
        return self

    def forward(self, x):
        return self.head(self.body(x))


model = FineTuned().train()
print("head:", model.head.training, "  body:", model.body[1].training)

# sphinx_gallery_start_ignore
assert model.head.training and not model.body[1].training
assert not FineTuned().body[1].training and FineTuned().head.training
_outer = nn.Sequential(FineTuned()).eval().train()
assert _outer[0].head.training and not _outer[0].body[1].training
_before = {name: value.clone() for name, value in model.body.state_dict().items()}
model(torch.randn(8, 3)).sum().backward()
torch.optim.AdamW(model.parameters()).step()
assert all(
    torch.equal(_before[name], value) for name, value in model.body.state_dict().items()
)
assert model.head.weight.grad is not None
_plain = nn.Sequential(nn.BatchNorm1d(4), nn.Linear(4, 2))
_plain[0].eval()
assert not _plain[0].training and _plain.train()[0].training
# sphinx_gallery_end_ignore

# %%
# A frozen layer between others
# -----------------------------
# Here a layer before the frozen one learns. Each layer is one weight, and ``w2`` is frozen:

x0 = torch.tensor(0.5)
w1, w2, w3 = (torch.tensor(w, requires_grad=True) for w in (1.0, 2.0, 3.0))
w2.requires_grad_(False)

loss = w3 * (w2 * (w1 * x0))
loss.backward()

# graph: loss -- The frozen w2 is one of the two constants, and the path to w1 goes on

print(f"w1.grad {w1.grad}, which is w3 * w2 * x0 = {w3 * w2 * x0:.1f}")
print(f"w2.grad {w2.grad}")

# sphinx_gallery_start_ignore
assert w1.grad == w3 * w2 * x0 == 3 and w2.grad is None and w3.grad == 1
# sphinx_gallery_end_ignore

# %%
# The value of ``w2`` is still a factor in the gradient of ``w1``, so backward goes through the frozen layer.

# %%
# What people get wrong
# ---------------------
# **A gradient that was left behind.** If you freeze a layer in the middle of training, its ``.grad`` may still hold a gradient.
# The optimizer uses it again in each step:


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(20, 30), nn.GELU(), nn.Linear(30, 5))


for clear in (False, True):
    net = network()
    optimizer = torch.optim.AdamW(net.parameters())
    cross_entropy(net(x), labels).backward()
    optimizer.step()
    net[0].requires_grad_(False)
    if clear:
        optimizer.zero_grad()
    before = net[0].weight.clone()
    cross_entropy(net(x), labels).backward()
    optimizer.step()
    moved = not torch.equal(before, net[0].weight)
    print(f"zero_grad() after freezing: {clear!s:<5}  moved: {moved}")

# sphinx_gallery_start_ignore
assert not moved

import pandas as _pd

OPTIMIZERS = {
    "SGD": lambda p: torch.optim.SGD(p, lr=0.1),
    "SGD, momentum": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
    "SGD, weight decay": lambda p: torch.optim.SGD(p, lr=0.1, weight_decay=0.1),
    "Adam": lambda p: torch.optim.Adam(p, lr=0.1),
    "AdamW": lambda p: torch.optim.AdamW(p, lr=0.1),
}
CLEARED = {
    ".grad left as it is": lambda optimizer: None,
    "zero_grad(set_to_none=False)": lambda optimizer: optimizer.zero_grad(False),
    "zero_grad()": lambda optimizer: optimizer.zero_grad(),
}


def moves(make, clear):
    net = network()
    optimizer = make(net.parameters())
    x = torch.ones(64, 20)

    def closure():
        loss = net(x).square().sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    clear(optimizer)
    net[0].requires_grad_(False)
    before = net[0].weight.clone()
    optimizer.step(closure)
    return "same" if torch.equal(before, net[0].weight) else "moves"


def tabulate_moves():
    columns = {
        how: {name: moves(make, clear) for name, make in OPTIMIZERS.items()}
        for how, clear in CLEARED.items()
    }
    return _pd.DataFrame(columns).rename_axis(columns="before freezing")


moved = tabulate_moves()
assert set(moved[".grad left as it is"]) == {"moves"}
assert moved["zero_grad(set_to_none=False)"].tolist() == ["same"] + ["moves"] * 4
assert set(moved["zero_grad()"]) == {"same"}
# a gradient that was left is used again in each later step
_net = network()
_optimizer = torch.optim.SGD(_net.parameters(), lr=0.1)
_net(torch.ones(64, 20)).sum().backward()
_net[0].requires_grad_(False)
_weights = []
for _ in range(4):
    _weights.append(_net[0].weight.clone())
    _net(torch.ones(64, 20)).sum().backward()
    _optimizer.step()
_steps = torch.stack(_weights).detach().diff(dim=0)
assert all(torch.allclose(s, _steps[0], atol=1e-5) and s.any() for s in _steps)
_optimizer.zero_grad()  # after freezing
_net(torch.ones(64, 20)).sum().backward()
_before = _net[0].weight.clone()
_optimizer.step()
assert torch.equal(_before, _net[0].weight)
# sphinx_gallery_end_ignore

# %%
# Call ``zero_grad()`` after you freeze and before the next ``backward()``. A loop with ``zero_grad()`` before each
# ``backward()`` does so already. (``set_to_none=False`` is not enough with momentum or weight decay.)
#
# **no_grad() around the frozen layer.** It cuts the graph in two, so layers before the block get no gradient either:

first, middle, last = nn.Linear(20, 30), nn.Linear(30, 30), nn.Linear(30, 5)
hidden = first(torch.randn(64, 20))
with torch.no_grad():
    hidden = middle(hidden)
last(hidden).sum().backward()
print("first:", first.weight.grad, "  last:", last.weight.grad.shape)

# sphinx_gallery_start_ignore
assert first.weight.grad is middle.weight.grad is None is not last.weight.grad
# sphinx_gallery_end_ignore

# %%
# **An attribute in place of the method.** On a module, the assignment makes a new attribute. Use the method with the
# underscore:

layer = nn.Linear(2, 2)
layer.requires_grad = False
print("layer.requires_grad = False: ", layer.weight.requires_grad)
layer = nn.Linear(2, 2).requires_grad_(False)
print("layer.requires_grad_(False): ", layer.weight.requires_grad)

# sphinx_gallery_start_ignore
assert not layer.weight.requires_grad
_layer = nn.Linear(2, 2)
_layer.requires_grad = False
assert _layer.weight.requires_grad and not hasattr(nn.Linear(2, 2), "requires_grad")
_body, _head = nn.Embedding(5, 3), nn.Linear(3, 5, bias=False)
_head.weight = _body.weight  # tied
_body.requires_grad_(False)
assert not _head.weight.requires_grad
# sphinx_gallery_end_ignore

# %%
# **A body and a head that share a weight.** In many language models the output layer uses the weight of the embedding. If you
# freeze the body, this head is frozen too.
#
# **Freezing after DDP was made.** ``DistributedDataParallel`` waits for and averages the gradients of the parameters that
# required grad when it was made. So freeze first, then wrap. After you unfreeze, wrap again. See :ref:`the page on this error
# <sphx_glr_gallery_errors_ddp_finished_reduction.py>`.

# %%
# Freeze a part of an embedding
# -----------------------------
# ``requires_grad`` belongs to a whole tensor. A common workaround sets the gradient of the frozen rows to zero. But weight
# decay, which is on by default in ``AdamW``, shrinks them anyway:

mask = torch.tensor([[0.0], [0.0], [0.0], [1.0]])  # train row 3 only

for make in (torch.optim.Adam, torch.optim.AdamW):
    table = nn.Embedding(4, 2)
    table.weight.register_hook(lambda grad: grad * mask)
    before = table.weight.detach().clone()
    table(torch.tensor([0, 3])).sum().backward()
    make(table.parameters()).step()
    moved = (table.weight != before).any(dim=1)
    print(make.__name__, "moves rows:", moved.tolist())

# sphinx_gallery_start_ignore
assert (table.weight != before).any(1).all()
_table = nn.Embedding(4, 2)
_table.weight.register_hook(lambda grad: grad * mask)
_before = _table.weight.detach().clone()
_table(torch.tensor([0, 3])).sum().backward()
torch.optim.Adam(_table.parameters()).step()
assert (_table.weight != _before).any(1).tolist() == [False, False, False, True]
# momentum from before: row 0 has learned, and moves without a gradient
_table = nn.Embedding(4, 2)
_optimizer = torch.optim.Adam(_table.parameters())
for _step in range(2):
    _before = _table.weight.detach().clone()
    _optimizer.zero_grad()
    _table(torch.tensor([0, 3])).sum().backward()
    if _step == 1:
        _table.weight.grad *= mask
    _optimizer.step()
assert (_table.weight != _before).any(1).tolist() == [True, False, False, True]
# sphinx_gallery_end_ignore

# %%
# ``Adam`` moves them too if they have learned before, because it remembers earlier gradients. So give the optimizer only what
# may change: copy the old rows into a buffer, and make the new ones a parameter.


class PartlyFrozen(nn.Module):
    def __init__(self, old, new):
        super().__init__()
        self.register_buffer("old", old.detach().clone())
        self.new = nn.Parameter(new)

    def forward(self, ids):
        return nn.functional.embedding(ids, torch.cat([self.old, self.new]))


table = PartlyFrozen(old=torch.ones(3, 2), new=torch.zeros(1, 2))
table(torch.tensor([0, 3])).sum().backward()
torch.optim.AdamW(table.parameters()).step()
print("old:", table.old[0], "  new:", table.new[0].detach())

# sphinx_gallery_start_ignore
assert table.old.eq(1).all() and table.new.ne(0).all()
_whole = nn.Embedding(4, 2)
_part = PartlyFrozen(_whole.weight[:3], torch.zeros(1, 2))
for _ in range(2):
    _part(torch.tensor([0, 3])).sum().backward()
assert _whole.weight.grad is None and not _part.old.requires_grad
_kept = _part.old.clone()
nn.init.zeros_(_whole.weight)  # an optimizer may still move the old table
assert torch.equal(_part.old, _kept) and _kept.any()
assert _part.old.untyped_storage().nbytes() == _kept.nbytes
assert not nn.Embedding.from_pretrained(torch.ones(3, 2)).weight.requires_grad
# sphinx_gallery_end_ignore

# %%
# Which frozen layers keep their input
# ------------------------------------
# If something before the frozen layer learns, freezing often saves no memory: 8 of the 12 layers below keep as many bytes for
# backward as before.
#
# .. how-measured:: A hook notes each tensor that is saved for backward; parameters and buffers are not counted.

import pandas as pd
from torch.autograd.graph import saved_tensors_hooks


class SelfAttention(nn.MultiheadAttention):
    def forward(self, x):
        return super().forward(x, x, x, need_weights=False)[0]


IDS = torch.arange(4096) % 100
LAYERS = {
    "Linear(16, 16)": (nn.Linear(16, 16), (512, 16)),
    "Conv1d(16, 16, 3)": (nn.Conv1d(16, 16, 3), (8, 16, 64)),
    "Conv2d(16, 16, 3)": (nn.Conv2d(16, 16, 3), (8, 16, 8, 8)),
    "ConvTranspose2d(16, 16, 3)": (nn.ConvTranspose2d(16, 16, 3), (8, 16, 8, 8)),
    "BatchNorm2d(16)": (nn.BatchNorm2d(16), (8, 16, 8, 8)),
    "BatchNorm2d(16).eval()": (nn.BatchNorm2d(16).eval(), (8, 16, 8, 8)),
    "LayerNorm(16)": (nn.LayerNorm(16), (512, 16)),
    "GroupNorm(4, 16)": (nn.GroupNorm(4, 16), (8, 16, 8, 8)),
    "RMSNorm(16)": (nn.RMSNorm(16), (512, 16)),
    "PReLU()": (nn.PReLU(), (512, 16)),
    "MultiheadAttention(16, 4)": (SelfAttention(16, 4), (64, 8, 16)),
    "Embedding(100, 16)": (nn.Embedding(100, 16), None),
}


def measure_saved(layer, x):
    saved = {}

    def pack(tensor):
        saved[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor.detach()

    with saved_tensors_hooks(pack, lambda tensor: tensor):
        out = layer(x)
    for own in (*layer.parameters(), *layer.buffers()):
        saved.pop(own.untyped_storage().data_ptr(), None)
    del out
    return sum(saved.values()), x.untyped_storage().data_ptr() in saved


def row(layer, shape):
    torch.manual_seed(0)
    x = torch.randn(shape, requires_grad=True) * 1 if shape else IDS  # * 1: no leaf
    learning, _ = measure_saved(layer.requires_grad_(True), x)
    frozen, keeps_input = measure_saved(layer.requires_grad_(False), x)
    return {
        "kept if it learns": f"{learning:,}",
        "kept if frozen": f"{frozen:,}",
        "frozen keeps its input": "yes" if keeps_input else "no",
    }


def tabulate_saved_bytes():
    rows = {name: row(*how) for name, how in LAYERS.items()}
    return pd.DataFrame(rows).T.rename_axis(index=None, columns="bytes")


# %%
# The input of each layer has 32,768 bytes (``float32``, on the CPU, without autocast). Something before each layer learns,
# except before the embedding:

# sphinx_gallery_start_ignore
table = tabulate_saved_bytes()
_keeps = table["frozen keeps its input"] == "yes"
assert len(table) == 12 and _keeps.sum() == 9
assert _keeps.tolist() == [False] + [True] * 9 + [False] * 2
for _, _shape in LAYERS.values():
    assert (torch.ones(_shape) if _shape else IDS).nbytes == 32_768
_frozen, _learns = (
    table[c].str.replace(",", "").astype(int)
    for c in ("kept if frozen", "kept if it learns")
)
assert _frozen["Linear(16, 16)"] == _frozen["Embedding(100, 16)"] == 0
assert (_frozen[_keeps] >= 32_768).all() and (_learns[_keeps] >= _frozen[_keeps]).all()
_less = _frozen.index[_frozen < _learns].tolist()
assert _less == [
    "Linear(16, 16)",
    "RMSNorm(16)",
    "MultiheadAttention(16, 4)",
    "Embedding(100, 16)",
]
assert _learns["MultiheadAttention(16, 4)"] > _frozen["MultiheadAttention(16, 4)"]
assert _frozen["MultiheadAttention(16, 4)"] > 3 * 32_768  # queries, keys and values
_x = torch.randn(64, 8, 16, requires_grad=True) * 1
_attention = LAYERS["MultiheadAttention(16, 4)"][0]
_three = []
with saved_tensors_hooks(lambda t: (_three.append(t), t.detach())[1], lambda t: t):
    _attention(_x)
assert [t.numel() for t in _three].count(_x.numel()) == 4  # and their result
assert (_frozen == _learns).sum() == 8  # most of 12


def _needs_input(layer, shape):
    grads = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        x = torch.randn(shape, requires_grad=True)
        out = layer(x)
        (out * torch.linspace(0, 1, out.numel()).view_as(out)).sum().backward()
        grads.append(x.grad)
    return not torch.allclose(*grads, atol=1e-6)


_need = [_needs_input(*how) for how in LAYERS.values() if how[1]]
assert _need == [False] * 4 + [True, False] + [True] * 5
for _shape in [(16,), (0, 16), (2, 3, 16), (1, 16)]:
    _x = torch.randn(_shape, requires_grad=True) * 1
    assert measure_saved(nn.Linear(16, 16).requires_grad_(False), _x) == (0, False)
    assert measure_saved(nn.Linear(16, 16, bias=False).requires_grad_(False), _x) == (
        0,
        False,
    )
_x = torch.randn(16, 512, requires_grad=True).t() * 1
assert measure_saved(nn.Linear(16, 16).requires_grad_(False), _x) == (0, False)
for _layer, _shape in LAYERS.values():  # frozen by row(), and nothing before it learns
    assert measure_saved(_layer, torch.randn(_shape) if _shape else IDS) == (0, False)
    if _shape:
        assert not _layer(torch.randn(_shape)).requires_grad
with torch.autocast("cpu", torch.bfloat16):
    _x = torch.randn(512, 16, requires_grad=True) * 1
    assert measure_saved(nn.Linear(16, 16).requires_grad_(False), _x) == (
        16 * 16 * 2,
        False,
    )
    _saved = []
    with saved_tensors_hooks(lambda t: (_saved.append(t), t.detach())[1], lambda t: t):
        nn.Linear(16, 16).requires_grad_(False)(_x)
    assert [t.dtype for t in _saved] == [torch.bfloat16]  # and not the weight itself
for _layer, _shape in [
    (nn.Conv3d(16, 16, 3), (2, 16, 4, 4, 4)),
    (nn.Conv2d(16, 16, 1), (8, 16, 8, 8)),
    (nn.Conv2d(16, 16, 3, groups=16), (8, 16, 8, 8)),
    (nn.InstanceNorm2d(16, affine=True), (8, 16, 8, 8)),
]:
    _x = torch.randn(_shape, requires_grad=True) * 1
    assert measure_saved(_layer.requires_grad_(False), _x)[1]
# sphinx_gallery_end_ignore
tabulate_saved_bytes()

# %%
# - A ``Linear`` needs its input for the gradient of its weight only. The frozen one keeps only the weight.
# - ``PReLU`` and most normalizations need their input for the gradient of the input. The convolutions, and batch normalization
#   in ``eval()``, could do without, but PyTorch saves it anyway.
# - Attention keeps the queries, the keys, the values and their result, each as large as the input.
#
# If nothing before it learns, each frozen layer of this table keeps 0 bytes. So freeze from the input on. If you cannot,
# :ref:`checkpointing <sphx_glr_gallery_memory_checkpointing.py>` saves memory.

# %%
# LoRA: a small trained part beside a frozen layer
# ------------------------------------------------
# LoRA freezes the layer and trains two thin matrices beside it. ``B`` starts at zero, so at first the output is that of the
# frozen layer:


class LoRA(nn.Module):
    def __init__(self, layer, rank):
        super().__init__()
        self.layer = layer.requires_grad_(False)
        self.A = nn.Parameter(layer.weight.new_empty(rank, layer.in_features))
        nn.init.kaiming_uniform_(self.A, a=5**0.5)  # as nn.Linear does
        self.B = nn.Parameter(layer.weight.new_zeros(layer.out_features, rank))

    def forward(self, x):
        return self.layer(x) + x @ self.A.T @ self.B.T


layer = nn.Linear(256, 256)
lora = LoRA(layer, rank=4)
x = torch.randn(64, 256, requires_grad=True) * 1  # something before it learns

print("trained:", lora.A.numel() + lora.B.numel())
print("frozen: ", layer.weight.numel())
for module in (layer, lora):
    saved_bytes, keeps_input = measure_saved(module, x)
    print(type(module).__name__, "keeps", saved_bytes, "bytes")

# sphinx_gallery_start_ignore
assert lora.A.numel() + lora.B.numel() == 2 * 4 * 256 and layer.weight.numel() == 65536
assert torch.equal(lora(x), layer(x))
assert measure_saved(layer, x) == (0, False) and measure_saved(lora, x) == (
    64 * 256 * 4 + 64 * 4 * 4,
    True,
)
_bound = layer.in_features**-0.5  # that of nn.Linear, whatever the rank
for _weight in (lora.A, layer.weight):
    assert 0.95 * _bound < _weight.abs().max() <= _bound
lora(x).square().sum().backward()
assert lora.A.grad.eq(0).all() and lora.B.grad.ne(0).any() and layer.weight.grad is None
_half = LoRA(nn.Linear(8, 6).bfloat16(), rank=2)
_half(torch.ones(3, 8, dtype=torch.bfloat16)).sum().backward()
assert _half.A.dtype == _half.B.grad.dtype == torch.bfloat16 and _half.A.requires_grad
_unfrozen = nn.Linear(256, 256)
assert measure_saved(_unfrozen, x) == (64 * 256 * 4, True)
# sphinx_gallery_end_ignore

# %%
# You save gradients and optimizer state, because 2,048 numbers learn instead of 65,536. But ``A`` needs the input for its
# gradient, so the graph keeps it again.

# %%
# Weights that stay at zero: prune
# --------------------------------
# ``nn.utils.prune`` trains ``weight_orig``, and computes ``weight = weight_orig * weight_mask`` before each forward pass. After
# ``prune.remove`` the zeros train too, so call it last:

from torch.nn.utils import prune

pruned, data = nn.Linear(20, 5), torch.randn(64, 20)
prune.l1_unstructured(pruned, "weight", amount=0.5)  # the smallest half
optimizer = torch.optim.SGD(pruned.parameters(), lr=0.1)


def zeros_after_a_step():
    optimizer.zero_grad()
    pruned(data).square().sum().backward()
    optimizer.step()
    pruned(data)  # computes the weight again
    return (pruned.weight == 0).sum().item()


print("zeros:", zeros_after_a_step(), "of 100")
prune.remove(pruned, "weight")
print("after remove:", zeros_after_a_step())

# sphinx_gallery_start_ignore
import copy

assert zeros_after_a_step() == 0 and not prune.is_pruned(pruned)
for _prune in (
    lambda layer: prune.random_unstructured(layer, "weight", 0.5),
    lambda layer: prune.ln_structured(layer, "weight", 0.5, n=2, dim=1),
    lambda layer: prune.custom_from_mask(layer, "weight", torch.eye(4)),
    lambda layer: prune.global_unstructured(
        [(layer, "weight")], prune.L1Unstructured, amount=0.5
    ),
):
    _layer = nn.Linear(4, 4, bias=False)
    _before = _layer.weight
    _prune(_layer)
    assert _layer.weight_orig is _before and list(_layer.parameters()) == [_before]
    _zeros = _layer.weight == 0
    _optimizer = torch.optim.AdamW(_layer.parameters(), lr=0.1)
    for _ in range(2):
        _layer(torch.randn(8, 4)).square().sum().backward()
        _optimizer.step()
    assert not _layer.weight_orig.grad[_zeros].any()
    _layer(torch.randn(8, 4))
    _raised = []
    try:
        copy.deepcopy(_layer)
    except RuntimeError as error:
        _raised.append("Only Tensors created explicitly by the user" in str(error))
    assert _raised == [True] and "weight_orig" in _layer.state_dict()
    with torch.no_grad():
        _layer(torch.randn(8, 4))
    copy.deepcopy(_layer)
    assert _zeros.any() and torch.equal(_layer.weight == 0, _zeros)
    prune.remove(_layer, "weight")
    assert _layer.weight is _before and torch.equal(_before == 0, _zeros)
# sphinx_gallery_end_ignore

# %%
# If ``copy.deepcopy`` raises *Only Tensors created explicitly*, run a forward pass under ``no_grad()`` first.

# %%
# Exercise
# --------
# An optimizer was made for the trainable parameters only: ``SGD([p for p in net.parameters() if p.requires_grad])``, with the
# first layer frozen. Later you unfreeze the layer, and it gets gradients. Does it learn? If not, fix it.
#
# .. solution::
#
# It does not learn, because the optimizer has its own list, without the layer. ``add_param_group`` puts it there. With a
# ``LambdaLR``, the next ``scheduler.step()`` then raises: pass all parameters from the start.

net = nn.Sequential(nn.Linear(20, 30), nn.GELU(), nn.Linear(30, 5))
net[0].requires_grad_(False)
trained = [p for p in net.parameters() if p.requires_grad]
optimizer = torch.optim.SGD(trained, lr=0.1)


def first_layer_moves():
    before = net[0].weight.clone()
    optimizer.zero_grad()
    net(torch.ones(64, 20)).sum().backward()
    optimizer.step()
    return not torch.equal(before, net[0].weight)


net[0].requires_grad_(True)
unfrozen = first_layer_moves()
optimizer.add_param_group({"params": net[0].parameters(), "lr": 0.01})
added = first_layer_moves()

print("moves when unfrozen:", unfrozen, "  when added:", added)
assert not unfrozen and added

# sphinx_gallery_start_ignore
for _from_start in (True, False):
    net = nn.Sequential(nn.Linear(20, 30), nn.GELU(), nn.Linear(30, 5))
    net[0].requires_grad_(False)
    optimizer = torch.optim.AdamW(
        net.parameters() if _from_start else net[2:].parameters()
    )
    _scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 0.5**epoch)
    assert not first_layer_moves()
    _scheduler.step()
    net[0].requires_grad_(True)
    if not _from_start:
        optimizer.add_param_group({"params": net[0].parameters()})
    assert first_layer_moves()
    try:
        _scheduler.step()
    except ValueError:
        assert not _from_start
    else:
        assert _from_start and {g["lr"] for g in optimizer.param_groups} == {0.00025}
# sphinx_gallery_end_ignore

# predict: "yes" if unfrozen else "no" [yes | no] -- Does the unfrozen layer learn?

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_memory_memory_by_mode.py`: which end of a network to freeze to save memory.
# - :ref:`sphx_glr_gallery_graphs_leaves_and_roots.py`: ``requires_grad_(False)`` works on leaves only.
# - :doc:`Which switch do I want? </guide/which-switch>`, by purpose.
# - In PyTorch's reference: `Setting requires_grad
#   <https://docs.pytorch.org/docs/stable/notes/autograd.html#setting-requires-grad>`__ and `Module.requires_grad_
#   <https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.requires_grad_>`__.
