r"""
What autograd saves for backward, in bytes
==========================================

Some derivatives need a tensor that the forward pass had: the input, the result, a mask. The node of the operation
keeps it until backward has used it, and training needs memory for all of these at the same time. This page shows who
keeps what, builds a meter of 20 lines for the bytes, and measures the common operations with it.
"""

# %%
# Each formula keeps what it needs
# --------------------------------
# Three operations compute :math:`\log(1 + e^x)`. The derivative of :math:`e^x` is :math:`e^x`, so the first node
# keeps its *result*. The derivative of :math:`\log s` is :math:`1 / s`, so the last one keeps its *input*. The
# addition needs nothing.

import pandas as pd
import torch
import torch.nn.functional as F
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.autograd.graph import saved_tensors_hooks

x = torch.tensor([0.0, 1.0, 2.0], requires_grad=True)
e = torch.exp(x)
s = e + 1
y = torch.log(s)

# graph: y -- exp saved its result, log saved its input, the addition saved nothing

for tensor in (e, s, y):
    node = tensor.grad_fn
    names = [name for name in dir(node) if name.startswith("_saved")]
    print(f"{node.name():<13} {names}")

for name, kept in (("exp", e.grad_fn._saved_result), ("log", y.grad_fn._saved_self)):
    print(name, "keeps", [round(number, 4) for number in kept.tolist()])

# sphinx_gallery_start_ignore
assert torch.equal(e.grad_fn._saved_result, e) and torch.equal(y.grad_fn._saved_self, s)
assert s.grad_fn._saved_alpha == 1 and not torch.is_tensor(s.grad_fn._saved_alpha)
del tensor, node, names, name, kept
# sphinx_gallery_end_ignore

# %%
# The attributes that begin with ``_saved`` belong to the node. ``self`` is the first operand, ``other`` the second.
# ``_saved_alpha`` of the addition is a Python number, the factor of its second operand, and no tensor.

# %%
# A meter for the bytes
# ---------------------
# ``saved_tensors_hooks`` calls its first function for each tensor that a node is about to save. The meter notes it
# and hands it on, detached: a result that kept its ``grad_fn`` would hold the node that holds it. Two tensors may
# lie in the same memory, so the meter counts by *storage*, each once.


class Meter(saved_tensors_hooks):
    def __init__(self):
        self.saved = []
        super().__init__(self.note, lambda tensor: tensor)

    def note(self, tensor):
        self.saved.append(tensor.detach())
        return self.saved[-1]

    @property
    def bytes(self):
        storages = [tensor.untyped_storage() for tensor in self.saved]
        # _cdata is private, but the storages of FakeTensorMode below have no address
        sizes = {storage._cdata: storage.nbytes() for storage in storages}
        return sum(sizes.values())


def metered(operation, *operands):
    meter = Meter()
    with meter:
        result = operation(*operands)
    return meter, result


torch.manual_seed(0)
v = torch.rand(1000, 1000, requires_grad=True)
w = torch.rand(1000, 1000)  # a constant: no gradient is asked for
print(f"the tensor v:      {v.nbytes:>9,} bytes")
print(f"saved by exp(v):   {metered(torch.exp, v)[0].bytes:>9,} bytes")
print(f"saved by v + w:    {metered(torch.add, v, w)[0].bytes:>9,} bytes")

# sphinx_gallery_start_ignore
assert v.nbytes == metered(torch.exp, v)[0].bytes == 4_000_000
assert metered(torch.add, v, w)[0].bytes == 0
# sphinx_gallery_end_ignore

# %%
# Operation by operation
# ----------------------
# All of them on ``v``, a million float32 numbers or 4 MB. The last column says which tensor is kept: an operand, the
# result, or one that the operation made for this purpose, with its type and shape. Beside each measurement stands a
# prediction: ``FakeTensorMode`` runs the same expression on tensors that have a shape and no data.

expressions = [
    *("v + w", "v.sum()", "v.mean()", "v.view(-1)", "v.clone()", "v.cumsum(0)"),
    *("v.expand(2, 1000, 1000)", "v.double()", "v * 2.5", "v.max(1).values"),
    *("torch.where(w > 0.5, v, 0)", "v * w", "v @ w", "F.dropout(v)", "v * v"),
    *("v.log()", "v.sin()", "F.gelu(v)", "F.silu(v)", "F.layer_norm(v, (1000,))"),
    *("v.exp()", "v.sigmoid()", "v.relu()", "v.softmax(1)"),
    *("v.sort().values", "v * v.sigmoid()"),
]


def storage_of(tensor):
    return tensor.untyped_storage().data_ptr()


def row(expression):
    meter, result = metered(eval, expression)
    known = {storage_of(v): "v", storage_of(w): "w", storage_of(result): "the result"}
    kept = [
        known.get(storage_of(t), f"{str(t.dtype)[6:]} {tuple(t.shape)}")
        for t in meter.saved
    ]
    kept = ", ".join(dict.fromkeys(kept)) or "nothing"  # each of them once
    megabytes = {"MB": meter.bytes / 1e6, "predicted": predicted(expression) / 1e6}
    return {"node": result.grad_fn.name(), **megabytes, "keeps": kept}


def predicted(expression):
    with FakeTensorMode():
        fake = {"v": torch.rand(1000, 1000, requires_grad=True)}
        fake["w"] = torch.rand(1000, 1000)
        return metered(eval, expression, {"torch": torch, "F": F, **fake})[0].bytes


table = pd.DataFrame([row(text) for text in expressions], index=expressions)
assert (table["MB"] == table["predicted"]).all()
# sphinx_gallery_start_ignore
# fmt: off
kept_by = table["keeps"]
assert (table["MB"][:9] == 0).all() and (kept_by[:9] == "nothing").all()
assert (table["MB"][11:24].round(1) == 4).all() and (table["MB"][24:] == 8).all()
assert table["MB"]["v.max(1).values"] == 0.008 and table["MB"]["torch.where(w > 0.5, v, 0)"] == 1
assert [name for name in expressions if kept_by[name] == "the result"] == expressions[20:24]
assert kept_by["v * w"] == kept_by["v @ w"] == "w"
assert [name for name in expressions if kept_by[name] == "v"] == expressions[14:19]
assert kept_by["F.dropout(v)"] == "float32 (1000, 1000)"
assert kept_by["torch.where(w > 0.5, v, 0)"] == "bool (1000, 1000)"
assert kept_by["v.max(1).values"] == "int64 (1000,)" and kept_by["v.sort().values"] == "int64 (1000, 1000)"
# fmt: on
# sphinx_gallery_end_ignore
table.round(3).rename_axis(columns="expression")

# %%
# The first rows keep nothing: their derivative is the same whatever the values are. The shape, which views and sums
# need, is no tensor. A maximum along a dimension keeps the positions only, as int64: that is little for 1000 rows,
# and for a sort it is twice the size of ``v``. The predictions are right to the byte. Dropout on the CPU keeps its
# mask in the type of ``v``.
#
# The same 4 MB can cost more or less. ``v`` and ``w`` exist anyway. A result or a mask is held by the graph alone,
# once the script has let go of it.

# %%
# Not every intermediate result is kept
# -------------------------------------
# Five steps, each with a result of 4 MB, and a mean. Which of the results does the graph keep?


def chain():
    a = v + 1
    b = torch.exp(a)
    c = torch.sin(b)
    d = c - 3
    e = torch.sigmoid(d)
    return {"v": v, "a": a, "b": b, "c": c, "d": d, "e": e, "mean": e.mean()}


meter, results = metered(chain)
names = {storage_of(tensor): name for name, tensor in results.items()}
kept = [names[storage_of(tensor)] for tensor in meter.saved]

print("saved by the nodes, in order:", kept)
print(f"{meter.bytes:,} bytes for 5 results of {v.nbytes:,}")

# sphinx_gallery_start_ignore
assert kept == ["b", "b", "e"] and meter.bytes == 8_000_000
del meter, results
# sphinx_gallery_end_ignore

# %%
# ``b`` is the result of exp and the input of sin. Both nodes keep it, and it is there once. ``a``, ``c`` and ``d``
# can be freed as soon as the next step is done. No gradients are stored either: they come into being in backward.

# %%
# One operation in place of several
# ---------------------------------
# Each operation of a formula keeps what *its* derivative needs. An operation with a derivative of its own keeps what
# the whole formula needs. The product ``v * sigmoid(v)`` keeps ``v`` and the sigmoid, ``F.silu`` keeps ``v`` and
# computes the rest again in backward.


def norm(t):
    spread = (t.var(1, keepdim=True, unbiased=False) + 1e-5).sqrt()
    return (t - t.mean(1, keepdim=True)) / spread


def gelu(t):
    return 0.5 * t * (1 + torch.tanh(0.7978846 * (t + 0.044715 * t**3)))


formulas = {
    "SiLU": (F.silu, lambda t: t * torch.sigmoid(t)),
    "sigmoid": (torch.sigmoid, lambda t: 1 / (1 + torch.exp(-t))),
    "softplus": (F.softplus, lambda t: torch.log(1 + torch.exp(t))),
    "layer norm": (lambda t: F.layer_norm(t, (1000,)), norm),
    "GELU (tanh)": (lambda t: F.gelu(t, approximate="tanh"), gelu),
}
sizes = {}
for name, (built_in, by_hand) in formulas.items():
    (one, y1), (several, y2) = metered(built_in, v), metered(by_hand, v)
    mb1, mb2 = sizes[name] = (one.bytes / 1e6, several.bytes / 1e6)
    print(f"{name:<11} built in {mb1:.3f} MB, by hand {mb2:>6.3f} MB")
    assert torch.allclose(y1, y2, atol=1e-5)

# sphinx_gallery_start_ignore
assert [(round(one), round(several)) for one, several in sizes.values()] == [
    (4, 8)
] * 4 + [(4, 16)]
for built_in, by_hand in formulas.values():
    upstream = torch.rand(1000, 1000)
    g1, g2 = (torch.autograd.grad(f(v), v, upstream)[0] for f in (built_in, by_hand))
    assert torch.allclose(g1, g2, atol=1e-4)
del y1, y2, one, several, upstream, g1, g2
# sphinx_gallery_end_ignore

# %%
# Results and gradients agree, up to rounding. What is kept does not.

# figure: Two bars for each of five functions, in megabytes kept. Built in, each keeps 4. Written by hand, SiLU,
#   sigmoid, softplus and layer norm keep 8, and GELU keeps 16.
bars = pd.DataFrame(sizes, index=["built in", "by hand"]).T
ax = bars.plot.barh(figsize=(7, 3.4), color=["#2563eb", "#c2410c"], edgecolor="white")
for bar in ax.containers[1]:
    bar.set_hatch("///")
for container in ax.containers:
    ax.bar_label(container, fmt="%.0f", padding=3, fontsize=9)
ax.invert_yaxis()
ax.set(xlabel="MB kept for backward; the input is 4 MB")
ax.set_title("One operation keeps less than a formula of several")
ax.legend()
ax.figure.tight_layout()

# %%
# Only for gradients that are asked for
# -------------------------------------
# A product keeps its second factor for the gradient of the first, and the first for the gradient of the second. If
# one of them is a constant, one tensor is enough.

u = torch.rand(1000, 1000, requires_grad=True)
both, one = metered(torch.mul, v, u)[0], metered(torch.mul, v, w)[0]
print(f"both factors require a gradient: {both.bytes:,} bytes")
print(f"one of them:                     {one.bytes:,} bytes")

# sphinx_gallery_start_ignore
assert both.bytes == 8_000_000 and one.bytes == 4_000_000
assert [storage_of(tensor) for tensor in one.saved] == [storage_of(w)]
# sphinx_gallery_end_ignore

# %%
# What the meter does not see
# ---------------------------
# A Python number in an expression is wrapped in a tensor, and the node keeps it. Such *wrapped numbers* bypass the
# hooks. They hardly change a number of bytes, but they are missing when you count the saved tensors.

for text in ("v * 2.5", "v * torch.tensor(2.5)"):
    meter, product = metered(eval, text)
    kept = product.grad_fn._saved_other
    print(f"{text:<21} tensors seen: {len(meter.saved)}   the node keeps {kept}")

# sphinx_gallery_start_ignore
assert len(meter.saved) == 1 and meter.bytes == 4
meter, product = metered(torch.mul, v, 2.5)
assert not meter.saved and product.grad_fn._saved_other.nbytes == 8
# sphinx_gallery_end_ignore

# %%
# A custom Function that keeps tensors as :ref:`attributes of ctx <sphx_glr_gallery_functions_context_methods.py>`
# bypasses the hooks too, and there it can be megabytes.

# %%
# What people get wrong
# ---------------------
# **Adding up the sizes of the saved tensors.** ``v * v`` saves two tensors in the same memory. The other way round, a
# small view keeps the whole storage that it looks into.

print("                    sum over tensors   by storage")
by_storage = []
for text in ("v * v", "v * w[0]", "v * w[0].clone()"):
    meter, _ = metered(eval, text)
    by_storage.append(meter.bytes)
    added = sum(tensor.nbytes for tensor in meter.saved)
    print(f"{text:<17} {added:>18,} {meter.bytes:>12,}")

assert by_storage == [4_000_000, 4_000_000, 4_000]

# sphinx_gallery_start_ignore
for factor, expected in ((v, 8_000_000), (w[0], 4_000)):
    assert sum(t.nbytes for t in metered(torch.mul, v, factor)[0].saved) == expected
del factor, expected
# sphinx_gallery_end_ignore

# %%
# **Operations in place to keep less.** ``nn.ReLU(inplace=True)`` overwrites the result of the layer before it. The
# graph did not keep that result anyway: a linear layer needs its input and its weight, and ReLU its own result.

linear = torch.nn.Linear(1000, 1000)
for inplace in (False, True):
    net = torch.nn.Sequential(linear, torch.nn.ReLU(inplace))
    kept = metered(net, w)[0].bytes
    print(f"inplace={inplace!s:<5} {kept:,} bytes")
    assert kept == w.nbytes + 4_000_000

# sphinx_gallery_start_ignore
meter, _ = metered(torch.nn.Sequential(linear, torch.nn.ReLU()), w)
assert {tuple(t.shape) for t in meter.saved} == {(1000, 1000)} and len(meter.saved) == 2
assert storage_of(meter.saved[0]) == storage_of(w)
# sphinx_gallery_end_ignore

# %%
# These are the input and the result. The weight is not among them, because the input requires no gradient.

# %%
# Exercise
# --------
# ``v * sigmoid(v)`` keeps 8 MB. Write it as a custom Function that keeps 4, without ``F.silu``. What is the price?
#
# .. solution::
#
# Save the input only, and compute the sigmoid a second time in backward. The price is that computation. With
# :math:`s = \sigma(x)` the derivative is :math:`s \, (1 + x \, (1 - s))`.


class Silu(torch.autograd.Function):
    @staticmethod
    def forward(x):
        return x * torch.sigmoid(x)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        s = torch.sigmoid(x)
        return grad_output * s * (1 + x * (1 - s))


meter, result = metered(Silu.apply, v)
print(f"kept: {meter.bytes:,} bytes")
assert meter.bytes == 4_000_000 and torch.allclose(result, F.silu(v))
points = torch.linspace(-3, 3, 7, dtype=torch.float64, requires_grad=True)
assert torch.autograd.gradcheck(Silu.apply, points)

# %%
# See also
# --------
# - Before: :ref:`sphx_glr_gallery_modes_freezing.py`, layers without gradients.
# - Next: :ref:`sphx_glr_gallery_memory_memory_by_mode.py`, the bytes of a whole network in training, in evaluation
#   and frozen.
# - :ref:`sphx_glr_gallery_graphs_graph_lifetime.py`, when all this is freed.
# - :ref:`sphx_glr_gallery_memory_saved_tensor_hooks.py`, the hooks that the meter uses, put to work. They switch a
#   safety check off, so measure and then take the meter away.
# - In PyTorch's reference: `Saved tensors <https://docs.pytorch.org/docs/stable/notes/autograd.html#saved-tensors>`__
#   and `Hooks for saved tensors
#   <https://docs.pytorch.org/docs/stable/notes/autograd.html#hooks-for-saved-tensors>`__.
