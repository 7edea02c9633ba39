r"""
grad_fn names: what AddmmBackward0 and others mean
==================================================

.. in-short::

   ``grad_fn=<MulBackward0>`` names the *last* operation that was recorded for this tensor: ``mul``, which you may have written
   as ``*``. The node computes the gradient of that operation. The number tells two formulas apart: ``x.sum()`` leaves
   ``SumBackward0``, and ``x.sum(0)`` leaves ``SumBackward1``. The name can differ from what you wrote: below,
   ``nn.Linear(3, 2)`` ends with ``AddmmBackward0`` on a matrix and, in PyTorch 2.13, with ``ViewBackward0`` on a batch of
   sequences.
"""

# %%
# The problem: a name that you did not write
# ------------------------------------------
# You print a tensor, or read an error, and find a name that is not in your code (as in `mmdetection#5584
# <https://github.com/open-mmlab/mmdetection/issues/5584>`__). A single layer, on four sequences of five tokens:

import torch
from torch import nn

torch.manual_seed(0)
tokens = torch.rand(4, 5, 3, requires_grad=True)
output = nn.Linear(3, 2)(tokens)

print(output.grad_fn.name())

# graph: output -- A Linear layer on a batch of sequences: no node here is called Linear

# sphinx_gallery_start_ignore
TORCH = tuple(int(part) for part in torch.__version__.split(".")[:2])
_last = "UnsafeViewBackward0" if TORCH >= (2, 15) else "ViewBackward0"
assert output.grad_fn.name() == _last
# sphinx_gallery_end_ignore

# %%
# Each step of the layer leaves a *node*, which will compute the gradient of that step: flatten the sequences to 20 rows
# (``View``), transpose the weight (``T``), multiply and add the bias (``Addmm``), and give the result its three dimensions back
# (``View``). ``grad_fn`` is the last of them.
#
# .. torch-changed:: 2.15
#    :probe: nodes: nn.Linear(2, 2)(torch.ones(1, 1, 2))
#
#    The last step is ``UnsafeView`` there, so the result is no view (`pytorch#194077
#    <https://github.com/pytorch/pytorch/pull/194077>`__).

# %%
# Look up any name
# ----------------
# 1. Take away ``Backward0``: ``AddmmBackward0`` belongs to the operation ``addmm``.
# 2. Paste the name into the page of :doc:`formulas </reference/formulas>`. It says what the node computes and what it saves.
# 3. Find your line. In anomaly mode, each node keeps the traceback of the call that made it:

with torch.autograd.set_detect_anomaly(True):
    output = nn.Linear(3, 2)(tokens)

frames = output.grad_fn.metadata["traceback_"]
yours = [frame for frame in frames if "site-packages" not in frame]
print(yours[-1].splitlines()[1].strip())

# sphinx_gallery_start_ignore
assert yours[-1].splitlines()[1].strip() == "output = nn.Linear(3, 2)(tokens)"
# sphinx_gallery_end_ignore

# %%
# Layers, attention and losses
# ----------------------------
# The tables say what each expression leaves on a CPU. ``node_names`` walks from a result to the leaves:

import torch.nn.functional as F

x = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], requires_grad=True)
vector = torch.ones(3, requires_grad=True)
matrix = torch.ones(3, 2, requires_grad=True)
batch = torch.ones(4, 2, 3, requires_grad=True)
image = torch.rand(1, 1, 4, 4, requires_grad=True)
rows = torch.tensor([0, 1])


def node_names(result):
    names, waiting, seen = [], [result.grad_fn], {None}
    while waiting:
        node = waiting.pop(0)
        if node not in seen and not hasattr(node, "variable"):  # a leaf has a variable
            seen.add(node)
            names.append(type(node).__name__)
            waiting += [next_node for next_node, _ in node.next_functions]
    return names


print(node_names(output))

# %%
# .. how-measured:: Each expression is run and sorted by the name of its last node.

import pandas as pd


def tabulate_last_nodes(text):
    """Run expressions, one a line, and sort them by the last node of each."""
    found = []
    for written in text.strip().split("\n"):
        last, *before = node_names(eval(written))
        short = [name.removesuffix("Backward0") for name in before]
        found.append((last, written, ", ".join(short[:2]) + ", ..." * (len(short) > 2)))
    table = pd.DataFrame(sorted(found), columns=["grad_fn", "you wrote", "behind it"])
    return table.set_index("grad_fn").rename_axis(index=None, columns="grad_fn")


pd.set_option("display.max_rows", None, "display.max_colwidth", None)

LAYERS = """
nn.Linear(3, 2)(x)
nn.Linear(3, 2)(batch)
nn.Linear(3, 2, bias=False)(batch)
x @ matrix
x @ vector
vector @ vector
batch @ batch.mT
batch @ matrix
nn.ReLU()(x)
nn.Dropout(0.5)(x)
nn.Embedding(4, 2)(rows)
nn.Conv2d(1, 1, 2)(image)
nn.BatchNorm2d(1)(image)
nn.GroupNorm(1, 1)(image)
nn.LayerNorm(3)(x)
nn.RMSNorm(3)(x)
nn.MaxPool2d(2)(image)
nn.AdaptiveAvgPool2d(1)(image)
nn.LSTM(3, 2)(batch)[0]
F.cross_entropy(x, rows)
F.mse_loss(x, x)
F.l1_loss(x, x)
"""

# %%
# Sorted by name. ``x`` has the shape ``(2, 3)``, ``matrix`` ``(3, 2)``, ``batch`` ``(4, 2, 3)``, and ``vector`` has 3 elements.
# The last column has up to two of the nodes behind it, without ``Backward0``:

# sphinx_gallery_start_ignore
layers = tabulate_last_nodes(LAYERS)
assert len(layers) == 22
last = dict(zip(layers["you wrote"], layers.index, strict=True))
# the steps that the text tells, and the same on other batches
assert node_names(output)[:3] == [_last, "AddmmBackward0", "ViewBackward0"]
assert sorted(node_names(output)[1:]) == [
    "AddmmBackward0",
    "TBackward0",
    "ViewBackward0",
]
for size in ((3,), (4, 5, 3), (2, 4, 5, 3), (0, 5, 3)):
    assert node_names(nn.Linear(3, 2)(torch.ones(size)))[:2] == [
        _last,
        "AddmmBackward0",
    ]
for size in ((1, 3), (7, 3), (0, 3)):
    assert node_names(nn.Linear(3, 2)(torch.ones(size))) == [
        "AddmmBackward0",
        "TBackward0",
    ]
assert last["nn.Linear(3, 2)(x)"] == "AddmmBackward0"
assert last["nn.Linear(3, 2)(batch)"] == _last
assert last["nn.Linear(3, 2, bias=False)(batch)"] == "UnsafeViewBackward0"
assert last["nn.Dropout(0.5)(x)"] == "MulBackward0"
assert node_names(batch @ batch.mT)[:2] == ["UnsafeViewBackward0", "BmmBackward0"]
assert node_names(batch @ matrix) == [
    "UnsafeViewBackward0",
    "MmBackward0",
    "ViewBackward0",
]
assert [node_names(t)[0] for t in (x @ matrix, x @ vector, vector @ vector)] == [
    "MmBackward0",
    "MvBackward0",
    "DotBackward0",
]
q = torch.rand(1, 2, 5, 8, requires_grad=True)
attention = F.scaled_dot_product_attention(q, q, q)
assert node_names(attention) == ["ScaledDotProductFlashAttentionForCpuBackward0"]
assert node_names(F.scaled_dot_product_attention(q, q, q, dropout_p=0.5))[0] == (
    "UnsafeViewBackward0"
)
assert node_names(nn.Linear(3, 2, bias=False)(x))[0] == "MmBackward0"
assert not {"LinearBackward0", "MatmulBackward0", "LstmBackward0"} & {
    name for written in last for name in node_names(eval(written))
}
# sphinx_gallery_end_ignore
tabulate_last_nodes(LAYERS)

# %%
# ``UnsafeView`` is harmless: it gives a temporary result a new shape (`an explanation
# <https://discuss.pytorch.org/t/unsafeviewbackward-in-grad-fn/25992>`__).
#
# A different device or dtype may leave different names. For example, ``F.scaled_dot_product_attention`` leaves
# ``ScaledDotProductFlashAttentionForCpuBackward0`` on this CPU.

# %%
# Arithmetic and reductions
# -------------------------
# Each of these expressions leaves a single node.
#
# .. how-measured:: Each expression is run, and sorted by the name of its one node.


def tabulate_single_nodes(text):
    made_by = {}
    for written in text.strip().replace("\n", "; ").split("; "):
        (name,) = node_names(eval(written))  # fails where there is more than one node
        made_by.setdefault(name, []).append(written)
    listed = {name: "  ·  ".join(made_by[name]) for name in sorted(made_by)}
    table = pd.DataFrame({"you wrote": listed})
    return table.rename_axis(index=None, columns="grad_fn")


ARITHMETIC = """
x + x; x + 1; x - x; x - 1; 1 - x; x * x; x * 2; x / x; x / 2; -x; x.abs()
x ** 2; x.square(); x ** x; 2 ** x; x.sqrt(); x.exp(); x.log(); x.sin(); x.cos()
x.tanh(); x.relu(); F.relu(x); x.sigmoid(); F.gelu(x); F.silu(x); x.softmax(1)
F.leaky_relu(x); F.softplus(x); x.log_softmax(1); x.logsumexp(1); x.clamp(0, 1)
torch.maximum(x, x); x.sum(); x.sum(0); x.mean(); x.mean(0); x.max()
x.max(0).values; x.amax(0); x.prod(); x.std(); x.var(); x.norm(); x.cumsum(0)
x.topk(1).values; x.sort().values
"""
SHAPES = """
x.view(6); x.reshape(6); x.flatten(); x.t(); x.T; x.mT; x.transpose(0, 1)
x.permute(1, 0); vector.expand(2, 3); x.repeat(2, 1); x.unsqueeze(0); x[None]
x.squeeze(); x.squeeze(0); x.clone(); x.double(); x.to(torch.bfloat16)
torch.cat([x, x]); torch.stack([x, x]); torch.hstack([x, x]); x[0]; x[:, 0]; x[0:1]
x[:, 1:]; x[...]; x[[0, 1]]; x[rows]; x[x > 2]; x.index_select(0, rows)
x.gather(1, rows[:, None]); x.diagonal(); x.unbind()[0]; x.split(1)[0]
x.chunk(2)[0]; x.masked_fill(x > 2, 0); torch.where(x > 2, x, 0); F.pad(x, (1, 1))
"""

# %%
# The names on the left are what ``print`` shows of these results in ``grad_fn=<...>``:

# sphinx_gallery_start_ignore
made_by = {
    written: name
    for table in map(tabulate_single_nodes, (ARITHMETIC, SHAPES))
    for name, line in table["you wrote"].items()
    for written in line.split("  ·  ")
}
assert len(made_by) > 80
for written, name in made_by.items():
    assert f"grad_fn=<{name}>" in repr(eval(written)), written
assert {"AddBackward0", "MulBackward0", "SumBackward0"} < set(made_by.values())
for written, name in {
    "x.reshape(6)": "ViewBackward0",
    "x.flatten()": "ViewBackward0",
    "x.T": "PermuteBackward0",
    "x[0]": "SelectBackward0",
    "x[:, 0]": "SelectBackward0",
    "x[0:1]": "SliceBackward0",
    "x[:, 1:]": "SliceBackward0",
    "x[[0, 1]]": "IndexBackward0",
    "x[rows]": "IndexBackward0",
    "x[x > 2]": "IndexBackward0",
    "torch.hstack([x, x])": "CatBackward0",
}.items():
    assert made_by[written] == name
for name in ("Reshape", "Flatten", "Hstack"):
    assert not hasattr(torch._C._functions, f"{name}Backward0")
assert node_names(x.T.reshape(6))[0] != "ViewBackward0"
assert node_names(x.T.contiguous()) == ["CloneBackward0", "PermuteBackward0"]
assert node_names(2 / x) == ["MulBackward0", "ReciprocalBackward0"]
y = x * 1
view = y.T
assert view.grad_fn.name() == "PermuteBackward0"
y.add_(1)
assert view.grad_fn.name() == "AsStridedBackward0"
assert (
    made_by["x[...]"] == "AliasBackward0" and made_by["x[None]"] == "UnsqueezeBackward0"
)
written = x.clone()
written[rows] = torch.zeros(3)
assert written.grad_fn.name() == "IndexPutBackward0"
# sphinx_gallery_end_ignore
tabulate_single_nodes(ARITHMETIC)

# %%
# Shapes, indexing and copies
# ---------------------------
# ``reshape``, ``flatten``, ``hstack`` and ``.T`` call a different operation, and that one is recorded. An index that is a
# number leaves ``Select``, a slice such as ``0:1`` leaves ``Slice``, and a list, a mask or the tensor ``rows`` leaves
# ``Index``. Writing a tensor, as in ``t[rows] = new``, leaves ``IndexPutBackward0``.
#
# ``AsStridedBackward0`` can come from a change in place: change ``y`` after ``view = y.T``, and the view gets this node.

tabulate_single_nodes(SHAPES)

# %%
# Names without a number
# ----------------------
# These nodes are not built from a formula:
#
# .. how-measured:: Each row makes one such node and notes its type.

from torch.utils.checkpoint import checkpoint


class Exp(torch.autograd.Function):
    @staticmethod
    def forward(ctx, t):
        return t.exp()


@torch.library.custom_op("atlas::twice", mutates_args=())
def twice(t: torch.Tensor) -> torch.Tensor:
    return t * 2


hooked = nn.Linear(3, 2)
hooked.register_full_backward_hook(lambda *_: None)
part = x.clone()
part[0] = 0.0

made = {
    "a leaf, such as a parameter": (x + 1).grad_fn.next_functions[0][0],
    "t = x.clone(); t[0] = 0.0": part.grad_fn,
    "x.clone().copy_(x)": x.clone().copy_(x).grad_fn,
    "x // 2": (x // 2).grad_fn,
    "your class Exp(torch.autograd.Function)": Exp.apply(x).grad_fn,
    "a layer with a full backward hook": hooked(x).grad_fn,
    "checkpoint(..., use_reentrant=True)": checkpoint(
        torch.sin, x, use_reentrant=True
    ).grad_fn,
    'torch.compile(torch.sin, backend="aot_eager")(x)': torch.compile(
        torch.sin, backend="aot_eager"
    )(x).grad_fn,
    "torch.library.custom_op": twice(x).grad_fn,
}
types = {type(node).__name__: written for written, node in made.items()}


def tabulate_names_without_number():
    special = pd.DataFrame({"left by": types})
    return special.rename_axis(index=None, columns="grad_fn")


# %%
# For the first four, ``node.name()`` is longer: ``torch::autograd::CopySlices``.

# sphinx_gallery_start_ignore
assert list(types) == [
    "AccumulateGrad",
    "CopySlices",
    "CopyBackwards",
    "NotImplemented",
    "ExpBackward",
    "BackwardHookFunctionBackward",
    "CheckpointFunctionBackward",
    "CompiledFunctionBackward",
    "GeneratedBackwardFor_atlas_twice_defaultBackward",
]
for number, node in enumerate(made.values()):
    name = type(node).__name__
    assert node.name() == ("torch::autograd::" if number < 4 else "") + name
assert node_names(checkpoint(torch.sin, x, use_reentrant=False)) == ["SinBackward0"]
assert x.exp().grad_fn.name() == "ExpBackward0"
# sphinx_gallery_end_ignore
tabulate_names_without_number()

# %%
# The class ``Exp`` becomes ``ExpBackward``. The missing number tells it from the built-in ``ExpBackward0``.
# ``checkpoint(torch.sin, x, use_reentrant=False)`` leaves only ``SinBackward0``, as if there were no checkpoint.

# %%
# Why: where the number comes from
# --------------------------------
# The nodes with a number are generated from one file, ``derivatives.yaml``, which is installed with PyTorch. ``sum()`` and
# ``sum(0)`` have two formulas there. Formulas of the same name are numbered from 0, in the order of that file:

import re
from pathlib import Path

import torchgen

folder = Path(torchgen.__file__).parent / "packaged" / "autograd"
formulas = (folder / "derivatives.yaml").read_text()
for operation in ("sum", "max", "leaky_relu"):
    entry = rf"^- name: ({operation}_?(?:\.\w+)?)\("
    print(dict(enumerate(re.findall(entry, formulas, re.MULTILINE))))

for result in (x.sum(), x.sum(0), x.max(), x.max(0).values):
    print(result.grad_fn.name())

# sphinx_gallery_start_ignore
# The rule, for the whole file: an entry counts if it has a formula for at least one input. Formulas under "dispatch" other
# than Default get names of their own, such as SumBackwardAutogradNestedTensor0.
expected, position = set(), {}
for text in re.split(r"^- name: +", formulas, flags=re.MULTILINE)[1:]:
    head, *lines = text.split("\n")
    operation = re.match(r"\w+", head)[0]
    arguments = re.findall(r"(\w+)(?:=[^,)]+)?(?=,|\) ->)", head)
    default, has_formula = True, False
    for line in lines:
        key, _, formula = line.strip().partition(":")
        if key == "Default" or key.startswith("Autograd"):
            default = key == "Default"
        if default and {name.strip() for name in key.split(",")} <= set(arguments):
            has_formula |= formula.strip() != "non_differentiable"
    camel = "".join(word.title() for word in operation.split("_")) + "Backward"
    camel = camel.replace("ForwardBackward", "Backward")
    if has_formula:
        number = position[camel] = position.get(camel, -1) + 1
        expected.add(f"{camel}{number}")
numbered = {n for n in vars(torch._C._functions) if re.fullmatch(r"\w+Backward\d+", n)}
assert expected == numbered
for result, name in (
    (x.sum(), "SumBackward0"),
    (x.sum(0), "SumBackward1"),
    (x.max(), "MaxBackward1"),
    (x.max(0).values, "MaxBackward0"),
    (F.leaky_relu(x), "LeakyReluBackward0"),
    (F.leaky_relu(x * 1, inplace=True), "LeakyReluBackward1"),
    (nn.LeakyReLU(inplace=True)(x * 1), "LeakyReluBackward1"),
    (nn.ELU(inplace=True)(x * 1), "EluBackward1"),
    ((x * 1).squeeze_(), "SqueezeBackward3"),
    ((x * 1).t_(), "TBackward1"),
    ((x * 1).relu_(), "ReluBackward0"),
    ((x * 1).add_(1), "AddBackward0"),
):
    assert result.grad_fn.name() == name, name
(slope,) = torch.autograd.grad(x.sigmoid().sum(), x, create_graph=True)
assert slope.grad_fn.name() == "SigmoidBackwardBackward0"
# sphinx_gallery_end_ignore

# %%
# In place, ``leaky_relu_`` has its own formula, so ``nn.LeakyReLU(inplace=True)`` leaves ``LeakyReluBackward1``. ``relu`` and
# ``relu_`` share one formula. In ``SigmoidBackwardBackward0``, the operation was itself a step of backward,
# ``sigmoid_backward``: you find it on a gradient from ``create_graph=True``.

# %%
# What people get wrong
# ---------------------
# **Searching the graph for the layer you wrote.** A search for ``Linear`` silently finds nothing:

model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
recorded = node_names(model(x))

print(recorded)
print("layers called Linear:", sum("Linear" in name for name in recorded))

# sphinx_gallery_start_ignore
assert not any("Linear" in name for name in recorded)
assert [
    name for name, part in model.named_modules() if isinstance(part, nn.Linear)
] == [
    "0",
    "2",
]
# sphinx_gallery_end_ignore

# %%
# To find the layers, use ``model.named_modules()``.

# %%
# **Reading the number as a counter.** Two additions leave two nodes of the same name. To tell them apart, compare the objects:

z = (x + 1) + 2
first, second = z.grad_fn.next_functions[0][0], z.grad_fn
print(first.name(), second.name(), "the same node:", first is second)

# sphinx_gallery_start_ignore
assert first.name() == second.name() == "AddBackward0" and first is not second
# sphinx_gallery_end_ignore

# %%
# **Taking a grad_fn for a gradient.** ``x // 2`` has a ``grad_fn``, and ``requires_grad`` is True. But PyTorch has no formula
# for the derivative, as the name of the node says. So ``backward()`` raises an error:

y = x // 2
print("requires_grad:", y.requires_grad, "  grad_fn:", y.grad_fn.name())
try:
    y.sum().backward()
except RuntimeError as error:
    message = str(error)
    print(f"RuntimeError: {message}")

# sphinx_gallery_start_ignore
assert y.requires_grad and type(y.grad_fn).__name__ == "NotImplemented"
assert "not implemented" in message
# sphinx_gallery_end_ignore

# %%
# Exercise
# --------
# ``grad_fn`` of a tensor is ``UnsafeViewBackward0``. Behind it is ``CloneBackward0``, and behind that ``PermuteBackward0``.
# Which single line could have made them, and which of the three steps copied the data?
#
# .. solution::
#
# For example ``x.T.reshape(6)``. ``PermuteBackward0`` is ``.T``, and ``UnsafeViewBackward0`` gives a new shape. The ``Clone``
# between them copied the data: ``reshape`` needs the elements of ``x.T`` in a different order. Without the transpose,
# ``reshape`` leaves one node and copies nothing.

print(node_names(x.T.reshape(6)))
print(node_names(x.reshape(6)))

assert node_names(x.T.reshape(6)) == [
    "UnsafeViewBackward0",
    "CloneBackward0",
    "PermuteBackward0",
]
assert x.reshape(6).data_ptr() == x.data_ptr() != x.T.reshape(6).data_ptr()
# sphinx_gallery_start_ignore
assert node_names(x.movedim(0, 1).reshape(6)) == node_names(x.T.reshape(6))
assert node_names(x.permute(1, 0).reshape(6)) == node_names(x.T.reshape(6))
# sphinx_gallery_end_ignore

# %%
# Names in old notes
# ------------------
# Old tutorials (`pytorch#27974 <https://github.com/pytorch/pytorch/issues/27974>`__) show names that are gone.
#
# .. how-measured:: The module torch._C._functions has the classes of built-in nodes. Each old name is looked up there.


def tabulate_names_today(old_names):
    found = []
    for old, expressions in old_names.items():
        assert not hasattr(torch._C._functions, old)
        for written in expressions.split("; "):
            found.append((old, node_names(eval(written))[0], written))
    table = pd.DataFrame(found, columns=["old notes", "today", "you wrote"])
    return table.set_index("old notes").rename_axis(index=None, columns="old notes")


# %%
# The last node that the same operation leaves today:

old_names = {
    "AddBackward": "x + x",
    "MatMulBackward": "x @ matrix; x @ vector; vector @ vector; batch @ batch.mT",
    "ReLUBackward": "x.relu()",
    "ReluBackward1": "x.clone().relu_()",
    "MkldnnConvolutionBackward": "nn.Conv2d(1, 1, 2)(image)",
}
# sphinx_gallery_start_ignore
assert hasattr(torch._C._functions, "AddBackward0")
assert tabulate_names_today(old_names)["today"].tolist() == [
    "AddBackward0",
    "MmBackward0",
    "MvBackward0",
    "DotBackward0",
    "UnsafeViewBackward0",
    "ReluBackward0",
    "ReluBackward0",
    "ConvolutionBackward0",
]
# sphinx_gallery_end_ignore
tabulate_names_today(old_names)

# %%
# See also
# --------
# - :doc:`Derivative formulas </reference/formulas>`, what each node with a number computes.
# - :ref:`sphx_glr_gallery_graphs_functions_are_nodes.py`, how nodes are connected.
# - :ref:`sphx_glr_gallery_differentiation_inplace_and_versions.py`, which node an in-place error names.
# - In PyTorch's reference: `torch.autograd.graph.Node.name
#   <https://docs.pytorch.org/docs/stable/generated/torch.autograd.graph.Node.name.html>`__.
