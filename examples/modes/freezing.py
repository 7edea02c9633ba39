r"""
Freezing layers: what still flows, what is saved, what still moves
==================================================================

To freeze a layer is to switch off ``requires_grad`` of its parameters. They get no gradient, and yet the layer takes
part in backward if there is something to train before it. This page shows where the gradient goes, what memory
freezing saves, when an optimizer moves a frozen weight all the same, and why frozen batch normalisation is not
frozen.
"""

# %%
# A frozen weight is a constant
# -----------------------------
# Three layers in a row, each a single weight. The middle one is frozen.

import textwrap

import pandas as pd
import torch
from torch import nn
from torch.autograd.graph import saved_tensors_hooks
from torch.nn.functional import gelu

x = torch.tensor(0.5)
w1, w2, w3 = (torch.tensor(value, requires_grad=True) for value in (1.0, 2.0, 3.0))
w2.requires_grad_(False)

h1 = w1 * x
h2 = w2 * h1
loss = w3 * h2

# graph: loss -- w2 is frozen. It stands there as a constant, the second from the left, and the path to w1 goes on

print(f"loss = {loss.item():.1f}")

# %%
# The gradient of ``w1`` is the product along that path, and the value of ``w2`` is a factor in it.

loss.backward()
by_hand = w3 * w2 * x
print(f"w1.grad = {w1.grad:.1f}, by hand {by_hand:.1f}")
print(f"w2.grad = {w2.grad}")
print(f"w3.grad = {w3.grad:.1f}")
assert w1.grad == by_hand == 3 and w2.grad is None

# sphinx_gallery_start_ignore
assert w3.grad == h2
# sphinx_gallery_end_ignore

# %%
# Freezing says that ``w2`` is not to change. It does not say that ``w2`` is not there. With the *first* weight frozen
# instead, nothing up to ``h1`` depends on anything that learns, and the graph ends earlier.

w1.grad = w3.grad = None
w1.requires_grad_(False)
w2.requires_grad_(True)
h1 = w1 * x
h2 = w2 * h1
loss = w3 * h2

# graph: loss -- With w1 frozen, h1 is a constant, and what led to it was not recorded

print("h1 is recorded:", h1.requires_grad, "  h2 is recorded:", h2.requires_grad)
assert not h1.requires_grad and h2.requires_grad

# %%
# Which layers you freeze decides what it saves
# ---------------------------------------------
# Now three linear layers, with an activation function between them. For each choice: which layers get a gradient, how
# many nodes the graph has, and how many bytes are kept for backward, beyond the input and the weights.


def network():
    torch.manual_seed(0)
    sizes = {"first": (20, 30), "middle": (30, 30), "last": (30, 5)}
    return nn.ModuleDict({name: nn.Linear(*size) for name, size in sizes.items()})


def forward(net, x):
    return net["last"](gelu(net["middle"](gelu(net["first"](x)))))


def walk(root):
    found = [root] if root else []
    for node in found:  # the list grows while it is read
        found += [n for n, _ in node.next_functions if n and n not in found]
    return found


# %%
# ``saved_tensors_hooks`` sees each tensor that is kept for backward.


def storage_of(tensor):
    return tensor.untyped_storage().data_ptr()


def measure(net, forward):
    x, saved = torch.ones(64, 20), {}

    def note(tensor):
        saved[storage_of(tensor)] = tensor.nbytes
        return tensor

    with saved_tensors_hooks(note, lambda tensor: tensor):
        out = forward(net, x)
    for own in (x, *net.parameters()):
        saved.pop(storage_of(own), None)
    count, kept = len(walk(out.grad_fn)), sum(saved.values())
    if out.requires_grad:
        out.sum().backward()
    learning = [name for name in net if net[name].weight.grad is not None]
    return {
        "get a gradient": ", ".join(learning) or "none",
        "nodes": count,
        "bytes kept": kept,
    }


# %%
# Each choice is a list of names.

CHOICES = [
    [],
    ["first"],
    ["middle"],
    ["last"],
    ["first", "middle"],
    ["middle", "last"],
    ["first", "middle", "last"],
]
rows = {}
for choice in CHOICES:
    net = network()
    for name in choice:
        net[name].requires_grad_(False)
    rows[", ".join(choice) or "(none)"] = measure(net, forward)
table = pd.DataFrame(rows).T

# sphinx_gallery_start_ignore
assert table["bytes kept"].tolist() == [k * 64 * 30 * 4 for k in (4, 3, 3, 3, 1, 2, 0)]
assert table["nodes"].tolist() == [14, 9, 11, 11, 4, 8, 0]
assert table.loc["middle", "get a gradient"] == "first, last"
# sphinx_gallery_end_ignore
table.rename_axis(index=None, columns="frozen")

# %%
# - A frozen layer keeps no input. Its input is needed for the gradient of its weight, and for nothing else.
# - The activation function between two layers keeps its own input as long as any layer to its left is to learn. So
#   two layers save more at the beginning of the network (``first, middle``) than at its end (``middle, last``).
# - Through a frozen layer in the middle, backward has to go all the same: the layer stays in the graph, with fewer
#   nodes.
#
# What the optimizer does
# -----------------------
# An optimizer skips a parameter whose ``.grad`` is ``None``. It does not look at ``requires_grad``. So the question
# is what was in ``.grad`` when the layer was frozen. Four ways to freeze it, five optimizers: does the frozen weight
# move?

OPTIMIZERS = {
    "SGD": lambda p: torch.optim.SGD(p, lr=0.1),
    "SGD, momentum": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
    "SGD, weight decay": lambda p: torch.optim.SGD(p, lr=0.1, weight_decay=0.1),
    "Adam": lambda p: torch.optim.Adam(p, lr=0.1),
    "AdamW": lambda p: torch.optim.AdamW(p, lr=0.1),
}
CLEARED = {
    "before the first step": None,
    "later, .grad left": lambda optimizer: None,
    "later, zero_grad()": lambda optimizer: optimizer.zero_grad(),
    "later, set to zeros": lambda optimizer: optimizer.zero_grad(set_to_none=False),
}


def moves(make, clear):
    net = network()
    optimizer = make(net.parameters())

    def step():
        forward(net, torch.ones(64, 20)).sum().backward()
        optimizer.step()

    if clear:
        step()
        clear(optimizer)
    net["first"].requires_grad_(False)
    before = net["first"].weight.clone()
    step()
    return "no" if torch.equal(before, net["first"].weight) else "moves"


# %%
# The columns say when the layer was frozen, and what had become of ``.grad`` by then.

moved = pd.DataFrame(
    {
        when: {name: moves(make, clear) for name, make in OPTIMIZERS.items()}
        for when, clear in CLEARED.items()
    }
)

# sphinx_gallery_start_ignore
assert set(moved["before the first step"]) == {"no"} == set(moved["later, zero_grad()"])
assert set(moved["later, .grad left"]) == {"moves"}
assert moved["later, set to zeros"].tolist() == ["no"] + ["moves"] * 4
_net = network()
_optimizer = torch.optim.SGD(_net.parameters(), lr=0.1)
forward(_net, torch.ones(64, 20)).sum().backward()
_net["first"].requires_grad_(False)
_weights = []
for _ in range(4):
    _weights.append(_net["first"].weight.clone())
    forward(_net, torch.ones(64, 20)).sum().backward()
    _optimizer.step()
_steps = torch.stack(_weights).detach().diff(dim=0)
assert all(
    torch.allclose(_step, _steps[0], atol=1e-5) and _step.any() for _step in _steps
)
# sphinx_gallery_end_ignore
moved.rename_axis(index=None, columns="frozen")

# %%
# A gradient that was left behind is used in every step from then on. Zeros are a gradient too: momentum, weight decay
# and Adam move the weight without any. :ref:`Why None and zero differ
# <sphx_glr_gallery_differentiation_accumulation.py>` has a page. After freezing in the midst of training, call
# ``zero_grad()`` once, as the default sets ``None``.
#
# There is no need to filter the parameters for the optimizer. For those that never get a gradient, it keeps no state.

net = network()
net["first"].requires_grad_(False)
optimizer = torch.optim.Adam(net.parameters())
forward(net, torch.ones(64, 20)).sum().backward()
optimizer.step()
print(len(list(net.parameters())), "parameters, state for", len(optimizer.state))

# sphinx_gallery_start_ignore
assert len(optimizer.state) == 4 and len(list(net.parameters())) == 6
# sphinx_gallery_end_ignore

# %%
# Frozen batch normalisation still moves
# --------------------------------------
# Its weight and bias are parameters. Its running statistics are buffers: they are moved by every forward pass in
# ``train()``, without a gradient and without an optimizer. Two switches, four combinations, one training step:


def batch_norm_step(frozen, training):
    torch.manual_seed(0)
    norm = nn.BatchNorm1d(3).train(training).requires_grad_(not frozen)
    before = {name: value.clone() for name, value in norm.state_dict().items()}
    scale = torch.tensor(1.0, requires_grad=True)  # something to learn in any case
    (scale * norm(torch.randn(16, 3) + 1)).square().sum().backward()
    torch.optim.SGD(norm.parameters(), lr=0.1).step()
    after = norm.state_dict()
    names = ["weight", "bias", "running_mean", "running_var"]
    return {n: "no" if torch.equal(before[n], after[n]) else "moves" for n in names}


# %%
# The module has two parameters and two buffers that matter here.

table = pd.DataFrame(
    {
        "train()": batch_norm_step(frozen=False, training=True),
        "train(), requires_grad_(False)": batch_norm_step(frozen=True, training=True),
        "eval()": batch_norm_step(frozen=False, training=False),
        "eval(), requires_grad_(False)": batch_norm_step(frozen=True, training=False),
    }
).T

# sphinx_gallery_start_ignore
assert (table == "moves").to_numpy().tolist() == [
    [True, True, True, True],
    [False, False, True, True],
    [True, True, False, False],
    [False, False, False, False],
]
# sphinx_gallery_end_ignore
table.rename_axis(index=None, columns="one step")

# %%
# Each switch stops two of the four (`pytorch#86590 <https://github.com/pytorch/pytorch/issues/86590>`__). And
# ``eval()`` does not last: the next ``model.train()`` sets the flag of every layer again. Override ``train`` where a
# part is to stay frozen.


class FineTuned(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
        self.body.requires_grad_(False)
        self.head = nn.Linear(4, 2)

    def train(self, mode=True):
        super().train(mode)
        self.body.eval()
        return self

    def forward(self, x):
        return self.head(self.body(x))


model = FineTuned().train()
print("head:", model.head.training, "  body:", model.body[1].training)
assert model.head.training and not model.body[1].training

# sphinx_gallery_start_ignore
_before = {name: value.clone() for name, value in model.body.state_dict().items()}
model(torch.randn(8, 3)).sum().backward()
torch.optim.AdamW(model.parameters()).step()
assert all(
    torch.equal(_before[name], value) for name, value in model.body.state_dict().items()
)
assert model.head.weight.grad is not None
# sphinx_gallery_end_ignore

# %%
# What people get wrong
# ---------------------
# **Freezing with a block.** ``no_grad`` around a layer in the middle cuts the graph in two. The layer is frozen, and
# so is everything before it.


def middle_in_block(net, x):
    hidden = gelu(net["first"](x))
    with torch.no_grad():
        hidden = net["middle"](hidden)
    return net["last"](gelu(hidden))


found = measure(network(), middle_in_block)
print("get a gradient:", found["get a gradient"])
assert found["get a gradient"] == "last"

# %%
# **Setting the attribute of the module.** A module has no such switch. Python makes a new attribute, which nobody
# reads. The method ends in an underscore.

layer = nn.Linear(2, 2)
layer.requires_grad = False
print("layer.requires_grad = False: ", layer.weight.requires_grad)
layer = nn.Linear(2, 2).requires_grad_(False)
print("layer.requires_grad_(False): ", layer.weight.requires_grad)

# sphinx_gallery_start_ignore
assert not layer.weight.requires_grad
_layer = nn.Linear(2, 2)
_layer.requires_grad = False
assert _layer.weight.requires_grad
# sphinx_gallery_end_ignore

# %%
# **Freezing everything.** Then nothing is recorded, and backward has no place to start.

try:
    layer(torch.ones(1, 2)).sum().backward()
except RuntimeError as error:
    print(textwrap.fill(f"RuntimeError: {error}", 88))
    assert "does not require grad and does not have a grad_fn" in str(error)

# %%
# Exercise
# --------
# An optimizer was made for the trainable parameters only: ``SGD([p for p in net.parameters() if p.requires_grad])``,
# with the first layer frozen. Later the layer is unfrozen, and gets gradients. Does it learn? If not, mend it.
#
# .. solution::
#
# It does not. The optimizer has a list of its own, and the layer is not on it. ``add_param_group`` puts it there,
# with a learning rate of its own if you like.

net = network()
net["first"].requires_grad_(False)
optimizer = torch.optim.SGD([p for p in net.parameters() if p.requires_grad], lr=0.1)


def first_layer_moves():
    before = net["first"].weight.clone()
    optimizer.zero_grad()
    forward(net, torch.ones(64, 20)).sum().backward()
    optimizer.step()
    return not torch.equal(before, net["first"].weight)


net["first"].requires_grad_(True)
unfrozen = first_layer_moves()
optimizer.add_param_group({"params": net["first"].parameters(), "lr": 0.01})
added = first_layer_moves()

print("moves when unfrozen:", unfrozen, "  when added:", added)
assert not unfrozen and added

# %%
# See also
# --------
# - Before: :ref:`sphx_glr_gallery_modes_train_and_eval.py`, running statistics and the other effects of the flag.
# - Next: :ref:`sphx_glr_gallery_memory_what_is_saved.py`, what each operation keeps for backward.
# - :ref:`sphx_glr_gallery_graphs_leaves_and_roots.py`: ``requires_grad_(False)`` works on leaves only.
# - :doc:`Which switch do I want? </guide/which-switch>`, by purpose.
# - In PyTorch's reference: `Setting requires_grad
#   <https://docs.pytorch.org/docs/stable/notes/autograd.html#setting-requires-grad>`__ and `Module.requires_grad_
#   <https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.requires_grad_>`__.
