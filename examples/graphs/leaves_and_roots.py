r"""
Leaf tensors: is_leaf, retain_grad() and .grad
==============================================

.. in-short::

   A *leaf* is a tensor with no recorded history: its ``grad_fn`` is None. By default, ``backward()`` stores gradients only in
   ``.grad`` of leaves that require grad. For a tensor with a ``grad_fn``, call ``y.retain_grad()`` before ``backward()``.
   To make a leaf that you train, set value, dtype and device first:
   ``w = (torch.ones(2) * 0.01).to(device).requires_grad_()``.
"""

# %%
# The problem: an optimizer refuses your tensor
# ---------------------------------------------
# You train a weight by hand. It should start small, so you scale it on the line that creates it:

import torch
from torch import nn

torch.manual_seed(0)
inputs, targets = torch.randn(8, 3), torch.randn(8, 1)

weight = torch.randn(3, 1, requires_grad=True) * 0.01

try:
    torch.optim.SGD([weight], lr=0.1)
except ValueError as error:
    message = str(error)
    print(f"ValueError: {message}")

# sphinx_gallery_start_ignore
assert message == "can't optimize a non-leaf Tensor"
del message
# sphinx_gallery_end_ignore

# %%
# A loss shows why. Backward works, and gives the gradient to a different tensor:

loss = nn.functional.mse_loss(inputs @ weight, targets)
loss.backward()

# graph: loss -- The gradient passed through weight and was stored in a leaf that has no name in the script

# sphinx_gallery_start_ignore
hidden = weight.grad_fn.next_functions[0][0].variable
assert hidden.is_leaf and torch.equal(hidden * 0.01, weight) and hidden.grad.all()
assert not weight.is_leaf and not weight.retains_grad
del hidden
# sphinx_gallery_end_ignore

# %%
# The leaf is what ``torch.randn`` returned. ``weight`` is the *result* of the multiplication. So compute the value first, and
# ask for the gradient last:

weight = (torch.randn(3, 1) * 0.01).requires_grad_()
optimizer = torch.optim.SGD([weight], lr=0.1)
print("weight.is_leaf", weight.is_leaf)

for step in range(3):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(inputs @ weight, targets)
    loss.backward()
    optimizer.step()
    print(f"step {step}: loss {loss.item():.3f}")

# sphinx_gallery_start_ignore
assert weight.is_leaf and weight.requires_grad and weight.grad.all()
with torch.no_grad():
    assert nn.functional.mse_loss(inputs @ weight, targets) < loss
for dtype in (torch.float64, torch.bfloat16, torch.float16):
    late = (torch.ones(2) * 0.01).to("cpu", dtype).requires_grad_()
    assert late.is_leaf and torch.optim.SGD([late], lr=0.1)
# sphinx_gallery_end_ignore

# %%
# Which tensors get a gradient
# ----------------------------
# You want to learn ``w`` and ``b``. ``x`` is data, and nothing uses ``c``.

x = torch.tensor(2.0)
w = torch.tensor(3.0, requires_grad=True)
b = torch.tensor(1.0, requires_grad=True)
c = torch.tensor(4.0, requires_grad=True)

y = w * x
z = y + b

# graph: z -- The leaves w and b that require grad, the data x (a constant), the intermediate result y, and the root z

# sphinx_gallery_start_ignore
assert (y.item(), z.item()) == (6.0, 7.0)
# sphinx_gallery_end_ignore

# %%
# ``z`` is the *root*: you call ``backward()`` on it. The table shows three attributes of each tensor, and then its ``.grad``.
#
# .. how-measured:: This code reads the attributes of each tensor into a table. read_grad() reads .grad without warning.

import warnings

import pandas as pd


def tabulate_attributes(tensors):
    rows = {
        name: {
            "is_leaf": t.is_leaf,
            "requires_grad": t.requires_grad,
            "grad_fn": t.grad_fn.name() if t.grad_fn else "None",
        }
        for name, t in tensors.items()
    }
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis(columns="tensor")


def read_grad(t):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return t.grad


# %%
# All six tensors after ``z.backward()``:

named = {"x": x, "w": w, "b": b, "c": c, "y": y, "z": z}
z.backward()
six_tensors = tabulate_attributes(named)
six_tensors[".grad"] = [str(read_grad(t)) for t in named.values()]

# sphinx_gallery_start_ignore
assert list(six_tensors.index[six_tensors["is_leaf"]]) == ["x", "w", "b", "c"]
assert list(six_tensors.index[six_tensors["requires_grad"]]) == [
    "w",
    "b",
    "c",
    "y",
    "z",
]
assert (six_tensors["is_leaf"] == (six_tensors["grad_fn"] == "None")).all()
assert six_tensors[".grad"].tolist() == [
    "None",
    "tensor(2.)",
    "tensor(1.)",
    *["None"] * 3,
]
stored = six_tensors[".grad"] != "None"
assert (six_tensors["is_leaf"] & six_tensors["requires_grad"])[stored].all()
assert not any(
    f[1] and f[1].match("The .grad attribute of a Tensor") for f in warnings.filters
)  # so a reader does see the warning
for t, warns in ((x, 0), (c, 0), (w, 0), (y, 1), (z, 1)):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert (t.grad is None) == (t is not w) and len(caught) == warns
    assert all("retain_grad()" in str(one.message) for one in caught)
# sphinx_gallery_end_ignore
six_tensors

# %%
# - ``w`` and ``b`` have their gradients, :math:`\partial z / \partial w = x = 2` and :math:`\partial z / \partial b = 1`.
# - ``x`` does not require grad, and ``z`` was not computed from ``c``.
# - ``y`` and ``z`` are results. They require grad because ``w`` does. Backward passed their gradients on and kept none.
#
# So **backward() stores gradients in leaves that require grad**. For a result, ask before ``backward()``, with
# ``retain_grad()``. If you forget it and read ``y.grad``, PyTorch warns you and names this fix.

y = w * x
y.retain_grad()
z = y + b
z.backward()

print(f"y.grad {y.grad}   y.is_leaf {y.is_leaf}")

# sphinx_gallery_start_ignore
assert y.grad == 1 and not y.is_leaf
_base = torch.ones(2, requires_grad=True)
with torch.no_grad():
    _view = _base[:1]
_view.sum().backward()
assert _view.is_leaf and _view.requires_grad and _view.grad is _base.grad is None
w.retain_grad()
assert not w.retains_grad and w.grad == 4
try:
    x.retain_grad()
except RuntimeError as error:
    assert "requires_grad=False" in str(error)
else:
    raise AssertionError
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    late = w * 2
    late.backward()
    assert late.grad is None and len(caught) == 1
    late.retain_grad()
    assert late.grad is None and len(caught) == 1
# sphinx_gallery_end_ignore

# %%
# After ``backward()``, this call is too late: the gradient is gone, and the call silences the warning.

# %%
# What makes a leaf
# -----------------
# **A result is not a leaf if its operation was recorded**: then it has a ``grad_fn``, the node that sends its gradient on, as
# ``w * x`` has. The next six rows were computed without a record, so they are leaves. In ``x * 5``, no input requires grad.
# Under ``no_grad``, recording is off. ``zeros_like`` and ``detach`` are not recorded. ``w > 0`` is boolean, and ``w.long()``
# is an integer.

with torch.no_grad():
    unrecorded = w * 2

made = {
    "w * x": w * x,
    "x * 5": x * 5,
    "w * 2 under no_grad": unrecorded,
    "torch.zeros_like(w)": torch.zeros_like(w),
    "w.detach()": w.detach(),
    "w > 0": w > 0,
    "w.long()": w.long(),
    "nn.Parameter(w * 2)": nn.Parameter(w * 2),
}

# sphinx_gallery_start_ignore
found = [(t.is_leaf, t.requires_grad) for t in made.values()]
assert found == [(False, True)] + [(True, False)] * 6 + [(True, True)]
to_w, to_x = made["w * x"].grad_fn.next_functions
assert to_w[0].variable is w and to_x[0] is None
assert all(t.is_leaf == (t.grad_fn is None) for t in made.values())
assert made["w > 0"].dtype == torch.bool and made["w.long()"].dtype == torch.int64
# without the cause that the text names, each of these is recorded
recorded = (x.clone().requires_grad_() * 5, w * 2, w.clone(), w.double())
assert not any(t.is_leaf for t in recorded)
assert not x.requires_grad and torch.is_grad_enabled()
source = torch.tensor(3.0, requires_grad=True)
(nn.Parameter(source * 2) * 5).backward()
assert source.grad is None
# sphinx_gallery_end_ignore
tabulate_attributes(made)

# %%
# ``nn.Parameter(w * 2)`` is a new leaf with these values, so no gradient flows from it back to ``w``. A boolean or integer
# tensor cannot have a gradient: see :ref:`the page on this error <sphx_glr_gallery_errors_integer_leaf.py>`.

# sphinx_gallery_start_ignore
refused = []
for made_of in (w > 0, w.long(), torch.tensor(True), torch.tensor([1, 2])):
    try:
        made_of.requires_grad_()
    except RuntimeError as error:
        refused.append("floating point" in str(error))
assert refused == [True] * 4
# sphinx_gallery_end_ignore

# %%
# What people get wrong
# ---------------------
# **Using requires_grad_() as a late repair.** ``p * 0.01`` requires grad already, so ``requires_grad_()`` changes nothing. With
# ``detach()`` first you get a new leaf. It trains, but ``p`` does not:

p = torch.ones(2, requires_grad=True)
print((p * 0.01).requires_grad_().is_leaf)
print((p * 0.01).detach().requires_grad_().is_leaf)

# sphinx_gallery_start_ignore
late = p * 0.01
node = late.grad_fn
assert late.requires_grad and late.requires_grad_() is late
assert late.grad_fn is node and not late.is_leaf
assert late.detach().requires_grad_().is_leaf
assert torch.equal(late.detach().requires_grad_(), late)
late.detach().requires_grad_().sum().backward()
assert p.grad is None
# sphinx_gallery_end_ignore

# %%
# **Moving a leaf to the GPU.** After ``x = x.to("cuda")``, ``x`` is a result, and ``x.grad`` stays None (`pytorch#22860
# <https://github.com/pytorch/pytorch/issues/22860>`__). On a laptop without a GPU the same script works, because
# ``p.to("cpu")`` returns ``p`` itself. To see it without a GPU, the code moves ``p`` to ``"meta"``, a device for shapes without
# data. A new dtype makes a recorded copy, too:

for moved in (p.to("cpu"), p.to("meta"), p.to(torch.float64)):
    print(f"same tensor: {moved is p}, is_leaf: {moved.is_leaf}")

# sphinx_gallery_start_ignore
made = [p.to("cpu"), p.to(torch.float32), p.to("meta"), p.to(torch.float64), p.double()]
made += [p.to("cpu", copy=True), p.to(torch.bfloat16), p.to(torch.float8_e4m3fn)]
assert [t is p for t in made] == [True] * 2 + [False] * 6 == [t.is_leaf for t in made]
assert {t.grad_fn.name() for t in made[2:]} == {"ToCopyBackward0"}
there = torch.ones(2, device="meta", requires_grad=True)
assert there.is_leaf and there.requires_grad and there.device.type == "meta"
# sphinx_gallery_end_ignore

# %%
# Create the leaf where you need it: ``torch.ones(2, device=device, requires_grad=True)``.
#
# **Computing on a parameter inside a module.** ``nn.Parameter(...)`` is a leaf. But ``nn.Parameter(...) * 0.01`` is a plain
# tensor, and so is ``nn.Parameter(...).to("cuda")`` (`pytorch#17484 <https://github.com/pytorch/pytorch/issues/17484>`__). The
# module below takes it without an error, but the optimizer never trains it, because ``scale.parameters()`` does not have it.


class Scale(nn.Module):
    def __init__(self):
        super().__init__()
        self.good = nn.Parameter(torch.ones(2) * 0.01)
        self.lost = nn.Parameter(torch.ones(2)) * 0.01


scale = Scale()
good = scale.good
scale.to(torch.float64)

print("parameters:", [name for name, _ in scale.named_parameters()])
print("dtypes after scale.to(torch.float64):", scale.good.dtype, scale.lost.dtype)

# sphinx_gallery_start_ignore
assert scale.good is good and good.is_leaf and type(good) is nn.Parameter
assert [name for name, _ in scale.named_parameters()] == ["good"]
assert good.dtype == torch.float64 and scale.lost.dtype == torch.float32
assert not scale.lost.is_leaf and type(scale.lost) is torch.Tensor
assert "lost" in vars(scale) and len(list(scale.parameters())) == 1
assert len(torch.optim.SGD(scale.parameters(), lr=0.1).param_groups[0]["params"]) == 1
assert type(nn.Parameter(torch.ones(2)).to("meta")) is torch.Tensor
# sphinx_gallery_end_ignore

# %%
# Convert the whole *module*, as this code does: ``scale.good`` is still the same leaf.

# %%
# Exercise
# --------
# You minimize :math:`v^2` by hand, from a leaf :math:`v = 3`. One step is ``(v**2).backward()`` and then
# ``v = v - 0.1 * v.grad``. What are ``v.is_leaf`` and ``v.grad`` after a second backward? Change the step so that
# you can repeat it.
#
# .. solution::
#
# The subtraction is recorded. The new ``v`` is its result, and the second gradient goes to the old leaf:

v = torch.tensor(3.0, requires_grad=True)
first = v
(v**2).backward()
v = v - 0.1 * v.grad
first.grad = None  # or the gradients add up
(v**2).backward()

print(f"v.is_leaf {v.is_leaf}, v.grad {read_grad(v)}")
print(f"gradient of the first v: {first.grad.item():.2f}")

# predict: str(v.is_leaf) [True | False] -- What is ``v.is_leaf`` after this step?

# sphinx_gallery_start_ignore
assert not v.is_leaf and read_grad(v) is None
assert abs(first.grad.item() - 4.8) < 1e-5
# sphinx_gallery_end_ignore

# %%
# Change the leaf in place, without recording, and clear its gradient after each step. Then ``v`` stays the same leaf:

v = torch.tensor(3.0, requires_grad=True)
# sphinx_gallery_start_ignore
start = v
# sphinx_gallery_end_ignore
for step in (1, 2):
    (v**2).backward()
    with torch.no_grad():
        v -= 0.1 * v.grad
    v.grad = None
    print(f"step {step}: v = {v.item():.2f}, is_leaf {v.is_leaf}")

# sphinx_gallery_start_ignore
assert v is start and v.is_leaf and abs(v.item() - 1.92) < 1e-5  # 3 * 0.8 * 0.8
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_graphs_why_is_grad_none.py`: causes and fixes in one table.
# - The errors about non-leaf tensors: :ref:`in an optimizer <sphx_glr_gallery_errors_non_leaf_in_optimizer.py>`, and
#   :ref:`when you change requires_grad <sphx_glr_gallery_errors_requires_grad_of_non_leaf.py>`.
# - In PyTorch's reference: `Tensor.is_leaf
#   <https://docs.pytorch.org/docs/stable/generated/torch.Tensor.is_leaf.html>`__ and `Tensor.retain_grad
#   <https://docs.pytorch.org/docs/stable/generated/torch.Tensor.retain_grad.html>`__.
