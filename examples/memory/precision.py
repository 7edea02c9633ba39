r"""
Mixed precision: autocast, bfloat16 and GradScaler
==================================================

In half precision a number takes two bytes in place of four. ``torch.autocast`` computes the products of a network in
it and leaves the weights in float32. This page shows which operation gives which type, how many bytes the graph
keeps, how wrong the gradients become, and why float16 needs a ``GradScaler`` and bfloat16 does not.
"""

# %%
# What autocast does
# ------------------
# Inside the ``with``, some operations cast their operands first. ``x`` and ``w`` stay as they are. The cast of
# ``w`` is a node of the graph, because a gradient passes there.

import textwrap
import warnings

import matplotlib.pyplot as plt
import pandas as pd
import torch
import torch.nn.functional as F
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.autograd.graph import saved_tensors_hooks

x = torch.tensor([[1.0, 2.0]])
w = torch.tensor([[0.25], [0.125]], requires_grad=True)

with torch.autocast("cpu", dtype=torch.bfloat16):
    y = x @ w
    z = y - 1

# graph: z -- autocast cast w to bfloat16 before the product, and the cast is a node

# %%
# ``backward()`` stands outside: it uses the types that the forward pass used. The cast gives the gradient back in
# float32.

z.backward()
for name, tensor in (("w", w), ("y", y), ("z", z), ("w.grad", w.grad)):
    print(f"{name:<7} {tensor.dtype!s:<15} {tensor.flatten().tolist()}")
del name, tensor

# sphinx_gallery_start_ignore
assert y.dtype == z.dtype == torch.bfloat16 and w.grad.dtype == w.dtype == torch.float32
assert y.grad_fn.next_functions[1][
    0
].name() == "ToCopyBackward0" and w.grad.tolist() == [[1], [2]]
# sphinx_gallery_end_ignore

# %%
# The product and what follows are in bfloat16, ``w`` and its gradient in float32.

# %%
# Which operation gives which type
# --------------------------------
# Each expression is computed twice under autocast: with operands in float32, and with operands that are in bfloat16
# already.

expressions = [
    *("a @ b", "F.linear(a, b)", "F.conv1d(a[None], b[:, :, None])"),
    *("a + b", "a.relu()", "a.exp()", "a.sum()", "a.softmax(1)"),
    *("F.layer_norm(a, (4,))", "a @ b + a", "torch.cat([a @ b, a])"),
    *("F.mse_loss(a, b)", "F.cross_entropy(a, b)", "torch.linalg.inv(a)"),
]


def type_of(expression, operands, lower=torch.bfloat16):
    torch.manual_seed(0)
    names = {name: torch.rand(4, 4).to(operands) for name in "ab"}
    with torch.autocast("cpu", dtype=lower):
        return str(eval(expression, globals(), names).dtype).removeprefix("torch.")


kinds = {"from float32": torch.float32, "from bfloat16": torch.bfloat16}
columns = {
    name: [type_of(e, kind) for e in expressions] for name, kind in kinds.items()
}
types = pd.DataFrame(columns, index=expressions)
# sphinx_gallery_start_ignore
assert (types[:3] == "bfloat16").all(axis=None) and (types[11:] == "float32").all(
    axis=None
)
assert (types["from float32"][3:11] == "float32").all()
assert (types["from bfloat16"][3:11] == "bfloat16").all()
for _expression in expressions:
    for _kind, _column in (
        (torch.float32, "from float32"),
        (torch.float16, "from bfloat16"),
    ):
        _type = type_of(_expression, _kind, torch.float16)
        assert _type.replace("float16", "bfloat16") == types[_column][_expression]
# sphinx_gallery_end_ignore
types.rename_axis(columns="expression")

# %%
# Three groups. Products, where the time goes, are computed in the lower type. Losses and matrix inverses are computed
# in float32. Everything else follows its operands, and where they differ the wider type wins. With float16 in place
# of bfloat16 the table is the same. It is that of the CPU: each kind of device has lists of its own.

# %%
# What it saves, and how wrong it is
# ----------------------------------
# Four blocks of ``Linear`` and ``GELU`` in three ways: all in float32, under autocast, and with everything in
# bfloat16, the weights too. Counted is what the graph saves beyond weights and batch, and beside it stands what
# ``FakeTensorMode`` :ref:`predicts without computing <sphx_glr_gallery_memory_memory_by_mode.py>`.


def linear(dtype):
    layer = nn.Linear(256, 256)
    for name, values in list(layer.named_parameters()):
        # to() would not do in FakeTensorMode
        setattr(layer, name, nn.Parameter(values.detach().to(dtype)))
    return layer


def train_step(weights, products):
    torch.manual_seed(0)
    net = nn.Sequential(*(nn.Sequential(linear(weights), nn.GELU()) for _ in range(4)))
    batch = torch.randn(1024, 256).to(weights)
    sizes = {}

    def note(tensor):
        storage = tensor.untyped_storage()
        sizes[storage._cdata] = storage.nbytes()
        return tensor.detach()

    low = products != torch.float32
    with saved_tensors_hooks(note, lambda tensor: tensor):
        with torch.autocast("cpu", dtype=products, enabled=low):
            output = net(batch)
    for tensor in (batch, *net.parameters()):
        sizes.pop(tensor.untyped_storage()._cdata, None)
    output.float().square().sum().backward()
    return sum(sizes.values()), torch.stack([layer.weight.grad for layer, _ in net])


_, exact = train_step(torch.float32, torch.float32)
rows = {}
for name, weights, products in (
    ("float32", torch.float32, torch.float32),
    ("autocast", torch.float32, torch.bfloat16),
    ("all bfloat16", torch.bfloat16, torch.bfloat16),
):
    saved, gradient = train_step(weights, products)
    with FakeTensorMode():  # tensors with a shape and no data
        predicted, _ = train_step(weights, products)
    assert predicted == saved
    error = (gradient.float() - exact).norm() / exact.norm()
    rows[name] = {"bytes saved": f"{saved:,}", "predicted": f"{predicted:,}"}
    rows[name]["error of the gradient"] = f"{error:.1%}"

steps = pd.DataFrame(rows).T
# sphinx_gallery_start_ignore
_bytes = [int(text.replace(",", "")) for text in steps["bytes saved"]]
_batch, _weight = 1024 * 256 * 2, 256 * 256 * 2
assert _bytes == [14 * _batch, 7 * _batch + _batch + 3 * _weight, 7 * _batch]
_errors = [float(text.rstrip("%")) for text in steps["error of the gradient"]]
assert _errors[0] == 0
assert all(0.1 < error < 100 * torch.finfo(torch.bfloat16).eps for error in _errors[1:])
assert train_step(torch.float32, torch.bfloat16)[1].dtype == torch.float32
# sphinx_gallery_end_ignore

steps.rename_axis(columns="step")

# %%
# With autocast, half of each result is left, and lower copies of the batch and of three weights are saved on top.
# (The weight of the first layer is not: the batch asks for no gradient.) The gradients are in the type of the
# weights. Both lower forms are off by a few thousandths, less than the step of bfloat16 above 1.

# %%
# Range or precision: bfloat16 and float16
# ----------------------------------------
# Both take 16 bits. float16 spends them on digits, bfloat16 on range: it has the exponent of float32.

formats = (torch.float32, torch.float16, torch.bfloat16)
rows = {}
for kind in formats:
    info = torch.finfo(kind)
    tiny = info.smallest_normal * info.eps  # the smallest positive number
    rows[str(kind)] = [info.bits, f"{info.max:.3g}", f"{tiny:.1g}", f"{info.eps:.2g}"]

columns = ["bits", "largest", "smallest", "step above 1"]
table = pd.DataFrame(rows, index=columns).T
# sphinx_gallery_start_ignore
assert (
    table["largest"]["torch.float16"] == "6.55e+04"
    and torch.finfo(torch.float16).max == 65504
)
for kind in formats:
    tiny = torch.tensor(
        torch.finfo(kind).smallest_normal * torch.finfo(kind).eps, dtype=torch.float64
    )
    assert tiny.to(kind) > 0 and (tiny / 2).to(kind) == 0
del kind, tiny
# sphinx_gallery_end_ignore

table.rename_axis(columns="format")

# %%
# How far off is a number that is rounded to a format? For each size, the worst of a thousand numbers.

powers = range(-33, 27)
numbers = torch.logspace(0, 1, 1001, base=2, dtype=torch.float64)  # from 1 to 2


def worst(kind, power):
    exact = numbers * 2.0**power
    return ((exact.to(kind).double() - exact) / exact).abs().clamp(max=1).max().item()


errors = {kind: [worst(kind, power) for power in powers] for kind in formats[1:]}

# figure: The worst relative rounding error of numbers from 1e-10 to 1e8. bfloat16 is at 0.004 everywhere. float16 is
#   at 0.0005 from about 6e-5 to 65504. Towards smaller numbers its error grows, and under 3e-8 it is 1, for these
#   numbers become zero. Above 65504 it is 1 too: they become infinite.
_, ax = plt.subplots(figsize=(7, 3.2), layout="constrained")
sizes = [2.0**power for power in powers]
ax.loglog(sizes, errors[torch.float16], "-", color="#c2410c", label="float16")
ax.loglog(sizes, errors[torch.bfloat16], "--", color="#2563eb", label="bfloat16")
ax.set(xlabel="size: from here to twice as much", ylabel="worst relative error")
ax.set_title("float16 is finer, and ends on both sides")
ax.legend(loc="upper center")
print(f"worst error from 1 to 2, float16:  {worst(torch.float16, 0):.4f}")
print(f"worst error from 1 to 2, bfloat16: {worst(torch.bfloat16, 0):.4f}")

# sphinx_gallery_start_ignore
assert (
    0.0004 < worst(torch.float16, 0) < 0.0005
    and 0.003 < worst(torch.bfloat16, 0) < 0.004
)
assert all(error == errors[torch.bfloat16][0] for error in errors[torch.bfloat16])
_normal = [
    error
    for error, power in zip(errors[torch.float16], powers, strict=True)
    if -14 <= power < 15
]
assert (
    max(_normal) == min(_normal)
    and errors[torch.float16][0] == errors[torch.float16][-1] == 1
)
assert torch.tensor(2.9e-8).half() == 0 and torch.tensor(65520.0).half().isinf()
# sphinx_gallery_end_ignore

# %%
# Why float16 needs a GradScaler
# ------------------------------
# Gradients are small numbers. What is below the range of float16 becomes zero on its way back, and nobody is told.
# The remedy: multiply the loss, which multiplies every gradient, and divide the gradients at the end. If the factor
# is too large, they become infinite. Here is what each factor loses.


def gradients(kind, scale):
    torch.manual_seed(0)
    blocks = [nn.Sequential(nn.Linear(64, 64), nn.Tanh()) for _ in range(4)]
    net, batch = nn.Sequential(*blocks, nn.Linear(64, 1)), torch.randn(256, 64)
    with torch.autocast("cpu", dtype=kind):
        loss = F.mse_loss(net(batch), torch.zeros(256, 1)) / 1000
    (loss * scale).backward()
    return torch.cat([weight.grad.flatten() for weight in net.parameters()])


exponents = range(0, 45, 4)
lost = {}
for kind in formats[1:]:
    found = [gradients(kind, 2.0**exponent) for exponent in exponents]
    lost[kind] = [((g == 0) | ~g.isfinite()).float().mean().item() for g in found]

# figure: The share of lost gradients over the factor, from 2 to the 0 to 2 to the 44. For float16 it starts near 40
#   percent, is close to zero between 2 to the 4 and 2 to the 32, and 100 percent from 2 to the 36 on. For bfloat16 it
#   is zero everywhere.
_, ax = plt.subplots(figsize=(7, 3), layout="constrained")
for (kind, shares), style in zip(lost.items(), ("s-", "o--"), strict=True):
    colour = "#c2410c" if kind == torch.float16 else "#2563eb"
    percent = [100 * share for share in shares]
    ax.plot(exponents, percent, style, color=colour, label=str(kind)[6:])
ax.set(xlabel="power of 2 that multiplies the loss", ylabel="% of gradients lost")
ax.set_title("Unscaled, float16 loses the small gradients")
ax.legend()
print(f"unscaled, float16: {lost[torch.float16][0]:.0%} of the gradients are zero")

# sphinx_gallery_start_ignore
assert 0.3 < lost[torch.float16][0] < 0.55 and max(lost[torch.bfloat16]) < 0.01
assert max(lost[torch.float16][2:8]) < 0.01 and lost[torch.float16][1] < 0.05
assert all(share == 1 for share in lost[torch.float16][10:])
# sphinx_gallery_end_ignore

# %%
# ``GradScaler`` multiplies the loss, divides the gradients before the step, and looks for the factor on the way. It
# starts at 65536. If a gradient is infinite, the step is left out and the factor is halved.

net = nn.Linear(2, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu")

for step in range(3):
    before = net.weight.detach().clone()
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.float16):
        loss = net(torch.ones(1, 2)).sum()
    factor = scaler.get_scale()
    scaler.scale(loss).backward()
    scaler.step(optimizer)  # divides the gradients, or leaves the step out
    scaler.update()
    moved = not torch.equal(before, net.weight)
    print(f"step {step}: factor {factor:>7,.0f}   weights moved: {moved}")
    assert moved == (step > 0)

# sphinx_gallery_start_ignore
assert torch.allclose(net.weight.grad, torch.ones(1, 2)) and factor == 32768
# sphinx_gallery_end_ignore

# %%
# The first step did not happen: a gradient of 1, times 65536, is beyond the range. Such steps are normal at the
# start. bfloat16 has the range of float32 and needs none of this.

# %%
# What people get wrong
# ---------------------
# **torch.cuda.amp.** The old names work and warn. ``torch.amp`` takes the kind of device as its first argument.

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    torch.cuda.amp.autocast()

(warning,) = (w for w in caught if w.category is FutureWarning)
print(textwrap.fill(f"FutureWarning: {warning.message}", 88))
assert "`torch.cuda.amp.autocast(args...)` is deprecated" in str(warning.message)

# %%
# **Types that meet outside.** What autocast computed stays in the lower type when the ``with`` ends. The next layer
# does not cast. Either it belongs inside, or the tensor needs ``.float()``.

layer, batch = nn.Linear(4, 4), torch.ones(1, 4)
with torch.autocast("cpu", dtype=torch.bfloat16):
    h = layer(batch)
try:
    layer(h)
except RuntimeError as error:
    print(f"RuntimeError: {error}")
    assert "must have the same dtype" in str(error)

# %%
# **Clipping what is still scaled.** Between ``backward`` and ``step``, gradients are too large by the factor. If
# they are clipped then, and divided after that, next to nothing is left. There is no error. ``unscale_`` comes first.

for unscale in (False, True):
    net, scaler = nn.Linear(2, 1), torch.amp.GradScaler("cpu", init_scale=1024.0)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    scaler.scale(net(torch.ones(1, 2)).sum()).backward()
    if unscale:
        scaler.unscale_(optimizer)
    norm = nn.utils.clip_grad_norm_(net.parameters(), max_norm=1.0).item()
    before = net.bias.item()
    scaler.step(optimizer)
    step = before - net.bias.item()
    print(f"unscale_: {unscale!s:<5} norm seen {norm:>7.1f}   step {step:.5f}")
    assert (step > 0.05) == unscale

# %%
# Exercise
# --------
# A weight is 1, and its gradient is 1 in each of 1000 steps with a learning rate of 0.001. It should end at 0.
# Where does it end if the weight is stored in bfloat16, and in float16? Think of the column *step above 1* before
# you run it.
#
# .. solution::
#
# Below 1 the steps of bfloat16 are 0.0039 wide. Subtracting 0.001 rounds back to 1: the weight never moves. float16
# has steps of 0.0005 there, and gets along, roughly. This is why autocast leaves the weights in float32.

ends = {}
for kind in formats:
    weight = torch.ones((), dtype=kind)
    for _ in range(1000):
        weight -= 0.001 * torch.ones((), dtype=kind)
    ends[kind] = weight.item()
    print(f"{kind!s:<15} {ends[kind]:.4f}")

assert ends[torch.bfloat16] == 1 and abs(ends[torch.float32]) < 1e-4

# sphinx_gallery_start_ignore
assert [round(torch.finfo(kind).eps / 2, 4) for kind in formats[1:]] == [0.0005, 0.0039]
assert 0 < ends[torch.float16] < 0.1
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - Before: :ref:`sphx_glr_gallery_memory_saved_tensor_hooks.py`, lower precision only while tensors wait.
# - Next: :ref:`sphx_glr_gallery_memory_forecast_a_training_step.py`, what a whole training step needs on a GPU.
# - :ref:`sphx_glr_gallery_memory_what_is_saved.py`, which operations save what.
# - In PyTorch's reference: `torch.amp <https://docs.pytorch.org/docs/stable/amp.html>`__ and `Automatic mixed
#   precision examples <https://docs.pytorch.org/docs/stable/notes/amp_examples.html>`__.
