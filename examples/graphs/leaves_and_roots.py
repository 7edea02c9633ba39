r"""
Leaf tensors, and why ``.grad`` is None
=======================================

A computation graph begins at its *leaves* and ends at its *root*. ``backward()`` starts at the root and stores
gradients on the leaves that ask for one; every other tensor of the graph keeps none. When ``.grad`` is ``None``, or
an optimizer refuses a tensor, the first thing to find out is whether the tensor is a leaf.
"""

# %%
# Leaf, non-leaf, root
# --------------------
# A linear function of one number. ``x`` is data, ``w`` and ``b`` are to be learned, and ``c`` takes part in nothing.

import textwrap
import warnings

import pandas as pd
import torch
from torch import nn

x = torch.tensor(2.0)
w = torch.tensor(3.0, requires_grad=True)
b = torch.tensor(1.0, requires_grad=True)
c = torch.tensor(4.0, requires_grad=True)

y = w * x
z = y + b

# graph: z -- The leaves w and b, the intermediate result y, and the root z

# %%
# The graph hangs on ``grad_fn``, the node that computed a tensor. Behind it are the nodes of its inputs.


def nodes_behind(tensor):
    return [node.name() if node else None for node, _ in tensor.grad_fn.next_functions]


print(f"y = {y.item()}  {y.grad_fn.name()}, behind it {nodes_behind(y)}")
print(f"z = {z.item()}  {z.grad_fn.name()}, behind it {nodes_behind(z)}")

# sphinx_gallery_start_ignore
assert (y.item(), z.item()) == (6.0, 7.0)
assert nodes_behind(y)[0].endswith("AccumulateGrad") and nodes_behind(y)[1] is None
assert nodes_behind(z)[0] == "MulBackward0"
assert nodes_behind(z)[1].endswith("AccumulateGrad")
# sphinx_gallery_end_ignore

# %%
# Where a path ends in a leaf stands ``AccumulateGrad``: it adds the gradient to the ``.grad`` of that leaf. ``w`` and
# ``b`` have one. In place of ``x`` stands ``None``, a constant in the figure: no gradient is asked for there, and
# backward does not go that way.
#
# Four attributes tell what a tensor is to autograd. ``describe`` makes a table of them.


def attributes(t):
    node = t.grad_fn.name() if t.grad_fn else "None"
    grad = "None" if t.grad is None else str(t.grad.item())
    return t.is_leaf, t.requires_grad, node, grad


def describe(tensors):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # reading .grad of y and z warns: see below
        rows = [attributes(t) for t in tensors.values()]
    columns = ["is_leaf", "requires_grad", "grad_fn", "grad"]
    return pd.DataFrame(rows, list(tensors), columns).rename_axis(columns="tensor")


# %%
# This is the table before backward.

tensors = {"x": x, "w": w, "b": b, "c": c, "y": y, "z": z}
before = describe(tensors)

# sphinx_gallery_start_ignore
assert list(before.index[before["is_leaf"]]) == ["x", "w", "b", "c"]
assert list(before.index[before["requires_grad"]]) == ["w", "b", "c", "y", "z"]
assert (before["is_leaf"] == (before["grad_fn"] == "None")).all()
assert (before["grad"] == "None").all()
# sphinx_gallery_end_ignore
before

# %%
# Two things to see. A tensor is a leaf when it has no ``grad_fn``, so ``x`` is a leaf too, although it requires no
# gradient. And ``requires_grad`` of ``y`` and ``z`` was never set: it spreads from the inputs of an operation to its
# result. One input that requires a gradient is enough.

# %%
# Before and after backward
# -------------------------
# ``backward()`` changes one column only, and in it two rows: :math:`\partial z / \partial w = x = 2` and
# :math:`\partial z / \partial b = 1`.

z.backward()

# graph: z -- After backward: the leaves w and b hold a gradient, y and z hold none

after = describe(tensors)
assert after.drop(columns="grad").equals(before.drop(columns="grad"))

both = after.rename(columns={"grad": "grad after"})
both.insert(3, "grad before", before["grad"])

# sphinx_gallery_start_ignore
assert after["grad"].tolist() == ["None", "2.0", "1.0", "None", "None", "None"]
batch = torch.ones(4, 3, requires_grad=True) * 2
batch.retain_grad()
batch.sum().backward()
assert batch.grad.shape == batch.shape
# sphinx_gallery_end_ignore
both

# %%
# The table holds four reasons for a ``.grad`` that is ``None``:
#
# - **no backward yet**: the whole column *grad before*;
# - **no gradient asked for**: ``x`` has ``requires_grad=False``;
# - **not in the graph**: ``c`` is a leaf and requires a gradient, but ``z`` was not computed from it;
# - **not a leaf**: ``y`` and ``z``. Their gradients were computed, passed on and dropped. A gradient has the shape of
#   its tensor, so to keep one for every intermediate result would cost as much memory as those results, and training
#   needs only the gradients of the parameters.
#
# PyTorch warns about the last reason and about no other. The warning names the cure, ``retain_grad()``.


def read_grad(t):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        grad = t.grad
    # cut off the end, "(Triggered internally at ...)": a line of PyTorch's own source
    texts = [f"{one.category.__name__}: {one.message}" for one in caught]
    return grad, [text.split(" (Triggered internally")[0] for text in texts]


grad, messages = read_grad(y)
print(f"y.grad is {grad}\n{textwrap.fill(messages[0], 88)}\n")
print(f"warnings for x: {len(read_grad(x)[1])}, for c: {len(read_grad(c)[1])}")

# sphinx_gallery_start_ignore
assert grad is None and len(messages) == 1
assert messages[0].startswith("UserWarning: The .grad attribute of a Tensor")
assert ".retain_grad()" in messages[0] and "is not a leaf Tensor" in messages[0]
assert read_grad(x) == (None, []) and read_grad(c) == (None, [])
assert len(read_grad(z)[1]) == 1
assert read_grad(torch.tensor(1.0, requires_grad=True)) == (None, [])
# sphinx_gallery_end_ignore

# %%
# ``retain_grad()`` asks a non-leaf to keep its gradient. It has to be called before ``backward()``. Keeping a
# gradient does not make ``y`` a leaf.

y = w * x
y.retain_grad()
z = y + b
z.backward()

print(f"y.is_leaf {y.is_leaf}   y.retains_grad {y.retains_grad}   y.grad {y.grad}")

# sphinx_gallery_start_ignore
assert y.grad == 1 and not y.is_leaf
# sphinx_gallery_end_ignore

# %%
# *Root* is not an attribute but a role: it is the tensor on which ``backward()`` is called. A leaf can be the root
# too. Then the whole graph is one point, and the derivative of a value with respect to itself is 1.

point = torch.tensor(5.0, requires_grad=True)
point.backward()
print("point.grad =", point.grad)

# sphinx_gallery_start_ignore
assert point.grad == 1 and point.is_leaf
# sphinx_gallery_end_ignore

# %%
# What makes a leaf
# -----------------
# A result gets a ``grad_fn`` only under three conditions: an input requires a gradient, recording is on, and the type
# of the result can be differentiated. If one of them fails, the result is a leaf, although it was computed.

with torch.no_grad():
    unrecorded = w * 2

made = {
    "w * x": w * x,
    "x * 5": x * 5,
    "w * 2 under no_grad": unrecorded,
    "w.detach()": w.detach(),
    "w > 0": w > 0,
    "w.long()": w.long(),
    "nn.Parameter(w * 2)": nn.Parameter(w * 2),
}

# sphinx_gallery_start_ignore
found = [(t.is_leaf, t.requires_grad) for t in made.values()]
assert found == [(False, True)] + [(True, False)] * 5 + [(True, True)]
assert all(t.is_leaf == (t.grad_fn is None) for t in made.values())
assert made["w > 0"].dtype == torch.bool and made["w.long()"].dtype == torch.int64
source = torch.tensor(3.0, requires_grad=True)
(nn.Parameter(source * 2) * 5).backward()
assert source.grad is None
# sphinx_gallery_end_ignore
describe(made).drop(columns="grad")

# %%
# Two calls make a leaf on purpose. ``detach()`` asks for one with the same value. ``nn.Parameter`` always makes a
# leaf, and by default one that requires a gradient: it takes the values and leaves their history behind, so no
# gradient flows from it back to ``w``.
#
# ``w > 0`` is boolean and ``w.long()`` an integer. A derivative asks what a small change does, and these types have
# no small changes, so they cannot require a gradient. Inside a computation the conversion ends the graph without a
# word. Asked for directly, a gradient is refused. The fix is to write ``[1.0, 2.0]``, with the decimal point.

try:
    torch.tensor([1, 2], requires_grad=True)
except RuntimeError as error:
    print(f"RuntimeError: {error}")
    assert "floating point" in str(error)

# %%
# What people get wrong
# ---------------------
# **Making a non-leaf by accident.** A tensor is created with ``requires_grad=True``, and on the same line one more
# operation follows. The name then belongs to the result of that operation, which is no leaf, and an optimizer refuses
# it (`pytorch#140469 <https://github.com/pytorch/pytorch/issues/140469>`__).

weight = torch.tensor(100.0, requires_grad=True) * 0.01

try:
    torch.optim.SGD([weight], lr=0.1)
except ValueError as error:
    print(f"ValueError: {error}")
    assert "non-leaf" in str(error)

loss = weight**2
loss.backward()

# graph: loss -- The gradient went past weight, to a leaf without a name

# %%
# The gradient is not lost. It is on the leaf in front of the multiplication, the tensor that holds 100. No variable
# names it any more, but the graph still leads there.

hidden = weight.grad_fn.next_functions[0][0].variable
gradient = hidden.grad.item()
print(f"weight: {weight.item()}, is_leaf {weight.is_leaf}, grad {read_grad(weight)[0]}")
print(f"hidden: {hidden.item()}, is_leaf {hidden.is_leaf}, grad {gradient:.2f}")

# sphinx_gallery_start_ignore
assert hidden.is_leaf and hidden.item() == 100 and abs(hidden.grad.item() - 0.02) < 1e-6
assert weight.item() == 1 and not weight.is_leaf and read_grad(weight)[0] is None
# sphinx_gallery_end_ignore

# %%
# Every recorded operation does this. A change of dtype or device is one too, but only when there is something to
# change.

p = torch.ones(2, requires_grad=True)

made = {
    "p * 0.01": p * 0.01,
    "p.to(torch.float64)": p.to(torch.float64),
    'p.to("cpu", copy=True)': p.to("cpu", copy=True),
    'p.to("meta")': p.to("meta"),
    'p.to("cpu")': p.to("cpu"),
    "p.to(torch.float32)": p.to(torch.float32),
}
table = describe(made).drop(columns="grad")
table.insert(0, "is p itself", [t is p for t in made.values()])

# sphinx_gallery_start_ignore
assert table["is p itself"].tolist() == [False] * 4 + [True] * 2
assert table["is_leaf"].tolist() == [False] * 4 + [True] * 2
assert table["grad_fn"].tolist()[1:4] == ["ToCopyBackward0"] * 3
# sphinx_gallery_end_ignore
table

# %%
# ``to()`` returns the tensor itself when dtype and device are right already, and a recorded copy otherwise. The
# device ``meta``, which has shapes but no data, stands here for any second device: ``p.cuda()`` on a tensor in main
# memory is the same kind of operation, a recorded copy. So ``x = x.to(device)`` is harmless where the device is the
# CPU. Where it is a GPU, ``x`` becomes a non-leaf, and ``x.grad`` stays ``None`` (`pytorch#12627
# <https://github.com/pytorch/pytorch/issues/12627>`__).
#
# The fix is the order: first values, dtype and device, then the gradient. On a leaf ``requires_grad_()`` switches it
# on. On a non-leaf it changes nothing, so it does not mend the accident afterwards.

late = (torch.tensor(100.0) * 0.01).to(torch.float64).requires_grad_()
at_once = torch.tensor(1.0, dtype=torch.float64, device="cpu", requires_grad=True)
cut = (p * 0.01).detach().requires_grad_()
not_mended = (p * 0.01).requires_grad_()

print("is_leaf:", late.is_leaf, at_once.is_leaf, cut.is_leaf, not_mended.is_leaf)
torch.optim.SGD([late, at_once, cut], lr=0.1)  # accepted

# sphinx_gallery_start_ignore
assert late.is_leaf and at_once.is_leaf and cut.is_leaf and not not_mended.is_leaf
assert late.requires_grad and at_once.requires_grad and cut.requires_grad
# sphinx_gallery_end_ignore

# %%
# **Computing on a parameter inside a module.** ``nn.Parameter(...) * 0.01`` is a plain tensor, and so is
# ``nn.Parameter(...).to(device)`` on a new device (`pytorch#17484
# <https://github.com/pytorch/pytorch/issues/17484>`__). A module collects what has the type ``nn.Parameter``. It does
# not see the others, and raises no error.


class Scale(nn.Module):
    def __init__(self):
        super().__init__()
        self.good = nn.Parameter(torch.ones(2) * 0.01)
        self.lost = nn.Parameter(torch.ones(2)) * 0.01


scale = Scale()
good = scale.good
scale.to(torch.float64)

print("parameters:", [name for name, _ in scale.named_parameters()])
for name, t in [("good", scale.good), ("lost", scale.lost)]:
    print(f"{name}: {type(t).__name__}, {t.dtype}, is_leaf {t.is_leaf}")
print("good is the same object as before:", scale.good is good)

# sphinx_gallery_start_ignore
assert scale.good is good
assert [name for name, _ in scale.named_parameters()] == ["good"]
assert good.is_leaf and good.dtype == torch.float64 and type(good) is nn.Parameter
assert not scale.lost.is_leaf and scale.lost.dtype == torch.float32
assert type(scale.lost) is torch.Tensor
assert type(nn.Parameter(torch.ones(2)).to("meta")) is torch.Tensor
# sphinx_gallery_end_ignore

# %%
# The conversion reached ``good`` alone. To convert or move the whole *module* is safe: ``Module.to`` replaces the
# data inside each parameter, and the parameter stays the same leaf.

# %%
# **Switching requires_grad off on a result.** On a leaf ``requires_grad`` is a setting. On a non-leaf it follows from
# the inputs, and to switch it off is an error. ``detach()`` gives a tensor with the same value outside the graph.

try:
    y.requires_grad_(False)
except RuntimeError as error:
    print(textwrap.fill(f"RuntimeError: {error}", 88))
    assert "of leaf variables" in str(error)

fixed = y.detach()
print(f"detached: requires_grad {fixed.requires_grad}, is_leaf {fixed.is_leaf}")

# sphinx_gallery_start_ignore
assert not fixed.requires_grad and fixed.is_leaf and fixed == y
setting = torch.tensor(1.0, requires_grad=True)
assert not setting.requires_grad_(False).requires_grad
assert setting.requires_grad_(True).requires_grad
# sphinx_gallery_end_ignore

# %%
# **Calling retain_grad too late.** After ``backward()`` the gradient is gone. The call also turns the warning off,
# because the tensor now counts as one that keeps its gradient.

y = w * x
y.backward()
y.retain_grad()
grad, messages = read_grad(y)
print(f"y.grad is {grad}, warnings: {len(messages)}")

# sphinx_gallery_start_ignore
assert grad is None and messages == []
# sphinx_gallery_end_ignore

# %%
# Exercise
# --------
# You minimise :math:`v^2` by hand, from a leaf :math:`v = 3`. One step is ``(v**2).backward()`` and then
# ``v = v - 0.1 * v.grad``. What are ``v.is_leaf`` and ``v.grad`` after a second backward? Change the second line so
# that the step can be repeated.
#
# .. solution::
#
# The subtraction is an operation like any other. The new ``v`` is a non-leaf, and the second gradient goes to the old
# one.

v = torch.tensor(3.0, requires_grad=True)
first = v
(v**2).backward()
v = v - 0.1 * v.grad
first.grad = None  # gradients add up otherwise
(v**2).backward()

print(f"v.is_leaf {v.is_leaf}, v.grad {read_grad(v)[0]}")
print(f"gradient of the first v: {first.grad.item():.2f}")

# sphinx_gallery_start_ignore
assert not v.is_leaf and read_grad(v)[0] is None and abs(first.grad.item() - 4.8) < 1e-5
# sphinx_gallery_end_ignore

# %%
# Change the leaf in place, and without recording. ``v`` remains the same tensor, and each backward finds it.

v = torch.tensor(3.0, requires_grad=True)
for step in (1, 2):
    (v**2).backward()
    with torch.no_grad():
        v -= 0.1 * v.grad
    v.grad = None
    print(f"step {step}: v = {v.item():.2f}, is_leaf {v.is_leaf}")

# sphinx_gallery_start_ignore
assert v.is_leaf and abs(v.item() - 1.92) < 1e-5
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - Before: :ref:`sphx_glr_gallery_graphs_first_graph.py`, one expression forward and backward.
# - Next: :ref:`sphx_glr_gallery_graphs_functions_are_nodes.py`, more about ``AccumulateGrad`` and ``next_functions``.
# - In PyTorch's reference: `Tensor.is_leaf
#   <https://docs.pytorch.org/docs/stable/generated/torch.Tensor.is_leaf.html>`__ and `Tensor.retain_grad
#   <https://docs.pytorch.org/docs/stable/generated/torch.Tensor.retain_grad.html>`__.
