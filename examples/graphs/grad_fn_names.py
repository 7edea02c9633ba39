r"""
grad_fn names: what AddBackward0 and the others mean
====================================================

Print a tensor that was computed, and it ends with something like ``grad_fn=<AddBackward0>``. The name tells which
operation made the tensor, so a graph can be read like a list of what ran. This page runs more than eighty
expressions, collects the names they leave behind, and explains the number at the end.
"""

# %%
# The name of an operation
# ------------------------
# A name has three parts: the operation, the word ``Backward`` (the node computes the gradient of that operation), and
# a number.

import re
from pathlib import Path

import pandas as pd
import torch
import torch.nn.functional as F
import torchgen
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

x = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], requires_grad=True)
y = x + 1

print(y)
print("node.name():        ", y.grad_fn.name())
print("type(node).__name__:", type(y.grad_fn).__name__)

# sphinx_gallery_start_ignore
assert y.grad_fn.name() == type(y.grad_fn).__name__ == "AddBackward0"
assert "grad_fn=<AddBackward0>" in str(y)
# sphinx_gallery_end_ignore

# %%
# How the catalogue is made
# -------------------------
# An expression is a piece of Python text. It is run, and the nodes behind its result are collected, from the result
# towards the leaves. ``AccumulateGrad``, which every leaf has, is left out.


def names(result):
    """The names of the nodes behind a result, the last operation first."""
    found = [result.grad_fn]
    for node in found:  # the list grows while it is read
        for next_node, _ in node.next_functions:
            if not (next_node in [None, *found] or hasattr(next_node, "variable")):
                found.append(next_node)
    return [type(node).__name__ for node in found]


# %%
# Besides ``x``, a matrix of two rows and three columns, the expressions use a vector ``v``, a second matrix ``m``,
# two batches of matrices ``b`` and ``c``, an image, and some indices.

v = torch.ones(3, requires_grad=True)
m = torch.ones(3, 2, requires_grad=True)
b = torch.ones(4, 2, 3, requires_grad=True)
c = torch.ones(4, 3, 2, requires_grad=True)
image = torch.rand(1, 1, 4, 4, requires_grad=True)
rows = torch.tensor([0, 1])


def catalogue(text):
    """Run expressions, and sort them by the name of the one node each of them made."""
    made_by = {}
    for expression in re.split(r"[;\n]\s*", text.strip()):
        (name,) = names(eval(expression))  # fails where there is more than one node
        made_by.setdefault(name, []).append(expression)
    listed = {name: "  ·  ".join(made_by[name]) for name in sorted(made_by)}
    table = pd.DataFrame({"made by": listed})
    return table.rename_axis(index=None, columns="grad_fn")


# sphinx_gallery_start_ignore
everything = {}
plain_catalogue = catalogue


def catalogue(text):
    table = plain_catalogue(text)
    for name, expressions in table["made by"].items():
        for expression in expressions.split("  ·  "):
            assert expression not in everything
            everything[expression] = name
    return table


pd.set_option("display.max_rows", None, "display.max_colwidth", None)
# sphinx_gallery_end_ignore

# %%
# Arithmetic and functions
# ------------------------
# The left column holds the name, in alphabetical order, the right column what was run. All of these record a single
# node.

catalogue("""
x + x; x + 1; x - x; x - 1; 1 - x; x * x; x * 2; x / x; x / 2; -x; x.abs()
x ** 2; x.square(); x ** x; 2 ** x; x.sqrt(); x.exp(); x.log(); x.sin(); x.cos()
x.tanh(); x.relu(); F.relu(x); x.sigmoid(); F.gelu(x); F.silu(x); x.softmax(1)
x.log_softmax(1); x.clamp(0, 1); torch.maximum(x, x)
""")

# %%
# Reductions and joins
# --------------------

catalogue("""
x.sum(); x.sum(0); x.mean(); x.mean(0); x.max(); x.max(0).values; x.amax(0)
x.prod(); x.std(); x.norm(); x.cumsum(0); torch.cat([x, x]); torch.stack([x, x])
""")

# %%
# Shapes and copies
# -----------------
# ``reshape``, ``flatten`` and ``.T`` have no name of their own: they call another operation, and that one is
# recorded.

catalogue("""
x.view(6); x.reshape(6); x.flatten(); x.t(); x.T; x.mT; x.transpose(0, 1)
x.permute(1, 0); v.expand(2, 3); x.repeat(2, 1); x.unsqueeze(0); x[None]
x.squeeze(); x.squeeze(0); x.clone(); x.double()
""")

# %%
# Indexing
# --------
# The kind of index decides. A number selects, a range slices, and a list, a mask or a tensor of indices is one
# general operation.

catalogue("""
x[0]; x[:, 0]; x[0:1]; x[:, 1:]; x[...]; x[[0, 1]]; x[rows]; x[x > 2]
x.index_select(0, rows); x.diagonal(); x.unbind()[0]; x.split(1)[0]
x.masked_fill(x > 2, 0); torch.where(x > 2, x, 0)
""")

# %%
# Products and layers
# -------------------
# A module leaves no name either. What is recorded are the operations inside its ``forward``.

catalogue("""
x @ m; x.mm(m); x @ v; v @ v; v.dot(v); b.bmm(c); torch.addmm(torch.ones(2), x, m)
nn.Conv2d(1, 1, 2)(image); nn.BatchNorm2d(1)(image); nn.LayerNorm(3)(x); nn.ReLU()(x)
nn.MaxPool2d(2)(image); nn.Dropout(0.5)(x); nn.Embedding(4, 2)(rows); nn.MSELoss()(x, x)
""")

# %%
# One expression, several nodes
# -----------------------------
# Many expressions are carried out in steps, and each step leaves a node. ``grad_fn`` is the last step only, and often
# not the one you think of. Here is every node, from the result towards the leaves. A linear layer ends with
# ``AddmmBackward0`` on a matrix and with ``ViewBackward0`` on a batch of matrices; ``@`` on batches ends with
# ``UnsafeViewBackward0``.

several = """
2 / x; x.T.contiguous(); nn.Linear(3, 2)(x); nn.Linear(3, 2)(b)
b @ m; b @ c; F.cross_entropy(x, rows)
"""
for expression in re.split(r"[;\n]\s*", several.strip()):
    last, *before = names(eval(expression))
    print(f"{expression:<25}{last}")
    for name in before:
        print(f"{'':<22}<- {name}")

# sphinx_gallery_start_ignore
assert len(everything) > 80
expected = """
AddBackward0 SubBackward0 MulBackward0 DivBackward0 PowBackward0 ExpBackward0 LogBackward0 SinBackward0 ReluBackward0
SigmoidBackward0 SoftmaxBackward0 SumBackward0 MeanBackward0 MaxBackward0 CatBackward0 StackBackward0 MmBackward0
MvBackward0 DotBackward0 BmmBackward0 AddmmBackward0 ViewBackward0 TransposeBackward0 PermuteBackward0 ExpandBackward0
SelectBackward0 SliceBackward0 IndexBackward0 CloneBackward0 ConvolutionBackward0 NativeBatchNormBackward0
"""
assert set(expected.split()) <= set(everything.values())
for expression, name in {
    "x.reshape(6)": "ViewBackward0",
    "x.flatten()": "ViewBackward0",
    "x.T": "PermuteBackward0",
    "x[0]": "SelectBackward0",
    "x[0:1]": "SliceBackward0",
    "x[[0, 1]]": "IndexBackward0",
    "x[x > 2]": "IndexBackward0",
    "x[rows]": "IndexBackward0",
    "nn.ReLU()(x)": "ReluBackward0",
    "nn.Dropout(0.5)(x)": "MulBackward0",
}.items():
    assert everything[expression] == name
assert not {"ReshapeBackward0", "FlattenBackward0", "LinearBackward0"} & set(
    everything.values()
)
assert names(b @ c)[:2] == ["UnsafeViewBackward0", "BmmBackward0"]
assert names(b @ m) == ["UnsafeViewBackward0", "MmBackward0", "ViewBackward0"]
assert names(nn.Linear(3, 2)(x)) == ["AddmmBackward0", "TBackward0"]
assert names(nn.Linear(3, 2)(b))[:2] == ["ViewBackward0", "AddmmBackward0"]
assert names(F.cross_entropy(x, rows)) == ["NllLossBackward0", "LogSoftmaxBackward0"]
assert names(2 / x) == ["MulBackward0", "ReciprocalBackward0"]
# sphinx_gallery_end_ignore

# %%
# Where do three nodes come from in ``b @ m``? A batch of matrices times one matrix is computed as one large product:
# flatten the batch to eight rows, multiply, and give the result its three dimensions back. Written out, it is the
# same computation, with the same nodes up to the last. There ``@`` uses a variant of ``view`` of its own.

product = b @ m
by_hand = b.view(8, 3).mm(m).view(4, 2, 2)

# graph: product -- One @ on three dimensions, three nodes: flatten, multiply, restore the shape

print("b @ m:  ", names(product))
print("by hand:", names(by_hand))
assert torch.equal(product, by_hand)

# sphinx_gallery_start_ignore
assert names(product)[1:] == names(by_hand)[1:] == ["MmBackward0", "ViewBackward0"]
assert (names(product)[0], names(by_hand)[0]) == (
    "UnsafeViewBackward0",
    "ViewBackward0",
)
# sphinx_gallery_end_ignore

# %%
# What the trailing number means
# ------------------------------
# One name in Python can stand for several operators in PyTorch's core. ``sum()`` and ``sum(0)`` are two of them, with
# two formulas for the gradient. A dispatch mode sees which operator runs below autograd:


class Operators(TorchDispatchMode):
    """Keep the name of every operator that runs."""

    def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
        self.seen.append(str(operator))
        return operator(*args, **(kwargs or {}))


def operator_of(expression):
    with Operators() as mode:
        mode.seen = []
        result = eval(expression)
    return mode.seen[0], result.grad_fn.name()


several = "x.sum(); x.sum(0); x.max(); x.max(0).values; x ** 2; x ** x; 2 ** x; 1 - x"
for expression in several.split("; "):
    operator, name = operator_of(expression)
    print(f"{expression:<16} {name:<13}  {operator}")

# %%
# The gradient formulas of PyTorch's core are written in one file, ``derivatives.yaml``, and a copy of it is installed
# with PyTorch. The number is the place of the formula among those of the same operation, counted from 0.

folder = Path(torchgen.__file__).parent
formulas = (folder / "packaged" / "autograd" / "derivatives.yaml").read_text()

for operation in ("sum", "max", "pow", "rsub", "exp"):
    pattern = rf"^- name: ({operation}(?:\.\w+)?)\("
    variants = re.findall(pattern, formulas, re.MULTILINE)
    print("   ".join(f"{number}: {name}" for number, name in enumerate(variants)))

# sphinx_gallery_start_ignore
for expression in [*several.split("; "), "x.exp()"]:
    operator, name = operator_of(expression)
    operator = operator.removeprefix("aten.").removesuffix(".default")
    operation = operator.split(".")[0]
    variants = re.findall(
        rf"^- name: ({operation}(?:\.\w+)?)\(", formulas, re.MULTILINE
    )
    assert name.lower() == f"{operation}backward{variants.index(operator)}"
# sphinx_gallery_end_ignore

# %%
# So the number is part of the name, and nothing is counted while your program runs. ``MaxBackward1`` is the maximum
# over everything, ``MaxBackward0`` the maximum along a dimension. ``ExpBackward0`` has a number although there is
# only one formula.

# %%
# Names without a number
# ----------------------
# Nodes that are not made from that file have none: the ends of the graph, a write into a part of a tensor, ``copy_``,
# operations for which PyTorch has no derivative formula, and your own functions. The class ``Exp`` below becomes
# ``ExpBackward``; the missing number tells it from the built-in ``ExpBackward0``.


class Exp(torch.autograd.Function):
    @staticmethod
    def forward(ctx, t):
        return t.exp()


t = x.clone()
t[0] = 0.0
made = {
    "x, a leaf": y.grad_fn.next_functions[0][0],
    "t[0] = 0.0": t.grad_fn,
    "x.clone().copy_(x)": x.clone().copy_(x).grad_fn,
    "Exp.apply(x)": Exp.apply(x).grad_fn,
    "x // 2": (x // 2).grad_fn,
}
for expression, node in made.items():
    print(f"{expression:<20}{type(node).__name__}")

try:
    (x // 2).sum().backward()
except RuntimeError as error:
    print(f"RuntimeError: {error}")
    assert "not implemented" in str(error)

# sphinx_gallery_start_ignore
assert [type(node).__name__ for node in made.values()] == [
    "AccumulateGrad",
    "CopySlices",
    "CopyBackwards",
    "ExpBackward",
    "NotImplemented",
]
# sphinx_gallery_end_ignore

# %%
# Mind the name ``NotImplemented``: ``x // 2`` looks like any other result until ``backward()`` raises.

# %%
# Names in old notes, and what holds
# ----------------------------------
# Notes from the first years of PyTorch show names that no longer exist. The private module ``torch._C._functions``
# holds every node class of this build, so each of them can be looked up.

old_names = {
    "AddBackward": ["x + x"],
    "MatMulBackward": ["x @ m", "x @ v", "v @ v", "b @ c"],
    "ReLUBackward": ["x.relu()"],
    "ReluBackward1": ["x.clone().relu_()"],
    "MkldnnConvolutionBackward": ["nn.Conv2d(1, 1, 2)(image)"],
}
found = []
for old, expressions in old_names.items():
    assert not hasattr(torch._C._functions, old)
    for expression in expressions:
        found.append((old, names(eval(expression))[0], expression))
table = pd.DataFrame(found, columns=["old notes", "holds", "run"])
table = table.set_index("old notes")

# sphinx_gallery_start_ignore
assert hasattr(torch._C._functions, "AddBackward0")
assert table["holds"].tolist() == [
    "AddBackward0",
    "MmBackward0",
    "MvBackward0",
    "DotBackward0",
    "UnsafeViewBackward0",
    "ReluBackward0",
    "ReluBackward0",
    "ConvolutionBackward0",
]
for name in ("MatmulBackward0", "MkldnnConvolutionBackward0"):
    assert hasattr(torch._C._functions, name) and name not in everything.values()
# sphinx_gallery_end_ignore
table.rename_axis(index=None, columns="old notes")

# %%
# ``@`` is the one with no successor. It calls ``mm``, ``mv``, ``dot`` or ``bmm``, depending on the dimensions, and
# the node carries that name. Similar names do exist in the build, for example ``MatmulBackward0``, but no expression
# on this page recorded it.

# %%
# What people get wrong
# ---------------------
# **Reading the number as a counter.** Two additions in one expression have the same name. To tell nodes apart,
# compare the objects.

z = (x + 1) + 2
first, second = z.grad_fn.next_functions[0][0], z.grad_fn

print(first.name(), second.name(), "the same node:", first is second)

# sphinx_gallery_start_ignore
assert first.name() == second.name() == "AddBackward0" and first is not second
# sphinx_gallery_end_ignore

# %%
# **Searching a graph for the name you wrote.** A search by a name that is never recorded finds nothing, and raises
# nothing. Search for the operations that are recorded, without their numbers, and check the count once on a model you
# know.

model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
recorded = names(model(b))
operations = [re.sub(r"Backward\d*$", "", name) for name in recorded]

print("Linear or MatMul:", sum(name in ("Linear", "MatMul") for name in operations))
products = ("Mm", "Addmm", "Mv", "Dot", "Bmm", "Baddbmm")
print("products:        ", sum(name in products for name in operations))

# sphinx_gallery_start_ignore
assert sum(name in ("Linear", "MatMul") for name in operations) == 0
assert sum(name in products for name in operations) == 2
assert hasattr(torch._C._functions, "BaddbmmBackward0")
# sphinx_gallery_end_ignore

# %%
# Names are for reading. The table of old notes shows that they change, so a program that has to find layers should
# ask the modules.

# %%
# Exercise
# --------
# A tensor in a slow program ends its graph with three nodes: ``UnsafeViewBackward0``, before it ``CloneBackward0``,
# before that ``PermuteBackward0``. Which single line could have made them, and why was it slow?
#
# .. solution::
#
# ``PermuteBackward0`` is ``.T`` or ``permute``, and ``UnsafeViewBackward0`` gives a new shape. Between them stands a
# copy that nobody asked for: a transposed matrix cannot be flattened in place, so ``reshape`` had to copy it first.
# Without the transpose it makes one node and copies nothing.

print(names(x.T.reshape(6)))
print(names(x.reshape(6)))

assert names(x.T.reshape(6)) == [
    "UnsafeViewBackward0",
    "CloneBackward0",
    "PermuteBackward0",
]
assert x.reshape(6).data_ptr() == x.data_ptr() != x.T.reshape(6).data_ptr()

# %%
# See also
# --------
# - Before: :ref:`sphx_glr_gallery_graphs_from_module_to_kernel.py`, where a module's code and its derivative are written.
# - Next: :ref:`sphx_glr_gallery_graphs_static_and_dynamic.py`, what a capture does with your code.
# - :ref:`sphx_glr_gallery_graphs_functions_are_nodes.py`, how nodes are connected.
# - :ref:`sphx_glr_gallery_tensors_copy_table.py`, which of these operations copy.
# - :ref:`sphx_glr_gallery_differentiation_inplace_and_versions.py`, more about ``CopySlices``.
# - In PyTorch's reference: `torch.autograd.graph.Node.name
#   <https://docs.pytorch.org/docs/stable/generated/torch.autograd.graph.Node.name.html>`__.
