r"""
Probe an operator: what it keeps, shares and allows
===================================================

What does this function keep for backward? Is its result on the memory of its input? May you change either in place
before backward? PyTorch's reference seldom says, and the answer can be measured. This page builds the probe in plain
PyTorch, four short functions, and points it at operators and at a function of your own.
"""

# %%
# What it keeps
# -------------
# A pair of :ref:`hooks <sphx_glr_gallery_memory_saved_tensor_hooks.py>` sees every tensor that a node saves. Two
# tensors on the same storage are one piece of memory. So each piece is an input's, the output's, or new: a tensor
# that nobody else holds.

import matplotlib.pyplot as plt
import pandas as pd
import torch
import torch.nn.functional as F
from torch.autograd import forward_ad
from torch.autograd.graph import saved_tensors_hooks


def storage_of(tensor):
    return tensor.untyped_storage().data_ptr()


def kept(f, *inputs):
    saved = {}

    def pack(tensor):
        saved[storage_of(tensor)] = tensor.untyped_storage().nbytes()
        return tensor.detach()

    with saved_tensors_hooks(pack, lambda tensor: tensor):
        output = f(*inputs)
    owner = {storage_of(output): "output"}
    owner |= dict.fromkeys(map(storage_of, inputs), "input")
    sizes = {}
    for key, size in saved.items():
        sizes[owner.get(key, "new")] = sizes.get(owner.get(key, "new"), 0) + size
    return sizes


def number(*shape):
    values = torch.linspace(0.5, 2, torch.Size(shape).numel(), dtype=torch.float64)
    return values.reshape(shape).requires_grad_()


x, other = number(4, 8), number(4, 8)
print(f"one input has {x.nbytes} bytes")
print("exp: ", kept(torch.exp, x))
print("log: ", kept(torch.log, x))
print("mul: ", kept(torch.mul, x, other))
print("add: ", kept(torch.add, x, other))
print("prod:", kept(torch.prod, x))

# sphinx_gallery_start_ignore
assert kept(torch.exp, x) == {"output": x.nbytes} and kept(torch.log, x) == {
    "input": x.nbytes
}
assert (
    kept(torch.mul, x, other) == {"input": 2 * x.nbytes}
    and kept(torch.add, x, other) == {}
)
assert kept(torch.prod, x) == {"input": x.nbytes, "output": 8}
# sphinx_gallery_end_ignore

# %%
# The formulas of the derivatives explain it. The derivative of exp is its result; that of log is one over its input;
# a product needs the other factor; a sum needs nothing.
#
# Whose memory the result is on
# -----------------------------


def shares(f, *inputs):
    return storage_of(f(*inputs)) in {storage_of(tensor) for tensor in inputs}


print("exp:      ", shares(torch.exp, x))
print("transpose:", shares(torch.t, x))
print("reshape:  ", shares(lambda x: x.reshape(-1), x))
print("reshape of a transpose:", shares(lambda x: x.reshape(-1), x.t()))

# sphinx_gallery_start_ignore
assert shares(torch.t, x) and not shares(torch.exp, x)
assert shares(lambda x: x.reshape(-1), x) and not shares(lambda x: x.reshape(-1), x.t())
# sphinx_gallery_end_ignore

# %%
# For one input the answer is a fact about that input. ``reshape`` shows that a probe must try more than one.
#
# What may be changed before backward
# -----------------------------------
# Adding 1 to the result, or to an input, after the call changes no derivative of the call. So backward must give
# what it gives without the change, or raise. Anything else is a wrong gradient that nobody reports. The inputs are
# clones, because a leaf that requires a gradient :ref:`must not be changed
# <sphx_glr_gallery_errors_leaf_in_place.py>`.


def gradients(f, *inputs, change=None):
    copies = [tensor.clone() for tensor in inputs]
    output = f(*copies)
    if change == "output":
        output.add_(1)
    if change == "input":
        for copy in copies:
            copy.add_(1)
    weights = torch.linspace(1, 2, output.numel(), dtype=output.dtype)
    return torch.autograd.grad(output, inputs, weights.view_as(output))


def after(change, f, *inputs):
    try:
        changed = gradients(f, *inputs, change=change)
    except RuntimeError:
        return "raises"
    right = all(map(torch.allclose, changed, gradients(f, *inputs)))
    return "works" if right else "wrong"


for name, f in {"exp": torch.exp, "log": torch.log, "neg": torch.neg}.items():
    found = [
        f"{change} changed: {after(change, f, x)}" for change in ("output", "input")
    ]
    print(f"{name:<4} {',  '.join(found)}")

# sphinx_gallery_start_ignore
assert [after(_c, torch.exp, x) for _c in ("output", "input")] == ["raises", "works"]
assert [after(_c, torch.log, x) for _c in ("output", "input")] == ["works", "raises"]
assert [after(_c, torch.neg, x) for _c in ("output", "input")] == ["works", "works"]
# sphinx_gallery_end_ignore

# %%
# What is kept must not change; everything else may. This is the message behind *raises*.

try:
    gradients(torch.exp, x, change="output")
except RuntimeError as error:
    message = str(error)
    print("RuntimeError:", message.partition(". Hint")[0])
assert "modified by an inplace operation" in message

# %%
# Second derivative and forward mode
# ----------------------------------
# Both are optional for an operator. Where one is missing, it raises. Forward mode can be checked against backward: the
# product with one vector on each side must be the same number.


def forward_mode(f, *inputs):
    tangents = [torch.linspace(1, 3, t.numel()).to(t).view_as(t) for t in inputs]
    backward = sum(
        (g * t).sum() for g, t in zip(gradients(f, *inputs), tangents, strict=True)
    )
    try:
        with forward_ad.dual_level():
            duals = map(forward_ad.make_dual, inputs, tangents)
            tangent = forward_ad.unpack_dual(f(*duals)).tangent
    except (NotImplementedError, RuntimeError):
        return "no"
    weights = torch.linspace(1, 2, tangent.numel()).to(tangent).view_as(tangent)
    return "yes" if torch.allclose((weights * tangent).sum(), backward) else "wrong"


def second(f, *inputs):
    output = f(*inputs)
    first = torch.autograd.grad(output.sum(), inputs, create_graph=True)
    first = [gradient for gradient in first if gradient.requires_grad]
    if not first:
        return "zero"
    try:
        torch.autograd.grad([g.sum() for g in first], inputs, allow_unused=True)
    except (NotImplementedError, RuntimeError):
        return "no"
    return "yes"


for name, call in {
    "exp": (torch.exp, x),
    "neg": (torch.neg, x),
    "cdist": (torch.cdist, x, other),
}.items():
    print(f"{name:<6} 2nd: {second(*call):<5} forward mode: {forward_mode(*call)}")

# sphinx_gallery_start_ignore
assert (second(torch.exp, x), forward_mode(torch.exp, x)) == ("yes", "yes")
assert (second(torch.neg, x), forward_mode(torch.neg, x)) == ("zero", "yes")
assert (second(torch.cdist, x, other), forward_mode(torch.cdist, x, other)) == (
    "no",
    "no",
)
# sphinx_gallery_end_ignore

# %%
# The whole row
# -------------
# The four answers side by side, for operators that a network is made of.


def probe(f, *inputs):
    sizes = kept(f, *inputs)
    return {
        "keeps": ", ".join(sorted(sizes)) or "nothing",
        "shares": "yes" if shares(f, *inputs) else "no",
        "output changed": after("output", f, *inputs),
        "input changed": after("input", f, *inputs),
        "2nd derivative": second(f, *inputs),
        "forward mode": forward_mode(f, *inputs),
    }


image, square = number(1, 1, 8, 8), number(8, 8)
CALLS = {
    "exp": (torch.exp, x),
    "relu": (F.relu, x),
    "gelu": (F.gelu, x),
    "tanh": (torch.tanh, x),
    "mul": (torch.mul, x, other),
    "mm": (torch.mm, x, square),
    "softmax": (lambda x: x.softmax(-1), x),
    "layer_norm": (lambda x: F.layer_norm(x, (8,)), x),
    "max_pool2d": (lambda x: F.max_pool2d(x, 2), image),
    "cumsum": (lambda x: x.cumsum(0), x),
    "t": (torch.t, x),
    "cdist": (torch.cdist, x, number(8, 8)),
}
table = pd.DataFrame({name: probe(*call) for name, call in CALLS.items()}).T

# sphinx_gallery_start_ignore
_row = table.loc
assert _row["relu", "keeps"] == "output" and _row["gelu", "keeps"] == "input"
assert (_row["max_pool2d", "keeps"], _row["layer_norm", "keeps"]) == (
    "input, new",
    "input, new",
)
assert list(table.index[table["shares"] == "yes"]) == ["t"]
assert not (table == "wrong").any(axis=None)
for _name, _found in table.iterrows():
    assert (_found["output changed"] == "raises") == ("output" in _found["keeps"]), (
        _name
    )
    assert (_found["input changed"] == "raises") == ("input" in _found["keeps"]), _name
# sphinx_gallery_end_ignore
table.rename_axis(columns="operator")

# %%
# Read across, the table holds one rule twice: backward raises after a change exactly where the changed tensor is
# kept. The new tensors are what the operator computed on the way: mean and deviation of ``layer_norm``, the place of
# each maximum.
#
# The figure counts bytes. An input that is kept costs nothing as long as somebody else needs it too; the output is
# most often the next operator's input. What is new always costs.

# figure: Horizontal bars, one for each operator, for the bytes kept relative to one input. Softmax, exp, relu, tanh and
#   gelu keep as much as one input, mul twice, mm three times and cdist four times as much, cumsum and t nothing. Only
#   layer_norm and max_pool2d have a part for new tensors.
sizes = {name: kept(*call) for name, call in CALLS.items()}
parts = pd.DataFrame(sizes, index=["input", "output", "new"]).fillna(0).T
relative = parts.div([call[1].nbytes for call in CALLS.values()], axis=0)

fig, ax = plt.subplots(figsize=(7, 3.6), layout="constrained")
left = torch.zeros(len(relative)).numpy()
colors = {"input": "#2563eb", "output": "#047857", "new": "#c2410c"}
hatches = {"input": "", "output": "//", "new": "xx"}
for kind, color in colors.items():
    style = {"color": color, "hatch": hatches[kind], "edgecolor": "white"}
    ax.barh(relative.index, relative[kind], left=left, label=kind, **style)
    left = left + relative[kind].to_numpy()
ax.set_title("What each operator keeps for backward")
ax.set_xlabel("bytes kept, relative to the first input")
ax.invert_yaxis()
ax.legend(title="memory of")

# sphinx_gallery_start_ignore
assert list(relative.index[relative["new"] > 0]) == ["layer_norm", "max_pool2d"]
assert relative.sum(axis=1)[["mul", "mm", "cdist", "cumsum", "t"]].tolist() == [
    2,
    3,
    4,
    0,
    0,
]
assert (relative.sum(axis=1)[["softmax", "exp", "relu", "tanh", "gelu"]] == 1).all()
# sphinx_gallery_end_ignore

# %%
# What people get wrong
# ---------------------
# **A Function that hides what it keeps.** Both of these compute the square. One hands its input to
# ``save_for_backward``, the other puts it on ``ctx``.


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return 2 * x * gradient


class Careless(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.x = x
        return x * x

    @staticmethod
    def backward(ctx, gradient):
        return 2 * ctx.x * gradient


columns = ["keeps", "output changed", "input changed"]
functions = {"Square": Square.apply, "Careless": Careless.apply}
found = pd.DataFrame({name: probe(f, x) for name, f in functions.items()}).T

# sphinx_gallery_start_ignore
assert found["input changed"].tolist() == ["raises", "wrong"]
assert found["keeps"].tolist() == ["input", "nothing"]
# sphinx_gallery_end_ignore
found[columns].rename_axis(columns="Function")

# %%
# The careless one seems to keep nothing, since hooks cannot see it. Neither can the check of :ref:`versions
# <sphx_glr_gallery_differentiation_inplace_and_versions.py>`: after its input was changed, its gradient is wrong
# and nothing is said. A test of the gradient alone passes for both.

assert torch.equal(gradients(Square.apply, x)[0], gradients(Careless.apply, x)[0])
print("before:", [g.item() for g in gradients(Careless.apply, x[0, :1])])
print(
    "after: ", [g.item() for g in gradients(Careless.apply, x[0, :1], change="input")]
)

# sphinx_gallery_start_ignore
assert gradients(Careless.apply, x[0, :1])[0].item() == 1
assert gradients(Careless.apply, x[0, :1], change="input")[0].item() == 3
# sphinx_gallery_end_ignore

# %%
# Exercise
# --------
# ``F.silu(x)`` is ``x * torch.sigmoid(x)``. Which of the two keeps more, and which tensors are they? Say it before
# you probe.
#
# .. solution::
#
# Written by hand, two nodes keep something: the product its factors, and sigmoid its result, which is one of them.
# That makes two tensors, an input and a new one. ``F.silu`` is one node. It keeps its input, and computes the sigmoid
# again in backward.


def by_hand(x):
    return x * torch.sigmoid(x)


for name, f in {"by hand": by_hand, "F.silu": F.silu}.items():
    print(f"{name:<8} {kept(f, x)}")

# graph: y -- The product keeps x and the sigmoid; the sigmoid keeps its result, the same tensor
gate = torch.sigmoid(x)
y = x * gate

assert kept(by_hand, x) == {"input": x.nbytes, "new": x.nbytes}
assert kept(F.silu, x) == {"input": x.nbytes}

# sphinx_gallery_start_ignore
assert torch.allclose(by_hand(x), F.silu(x))
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - Before: :ref:`sphx_glr_gallery_memory_forecast_a_training_step.py`, what all of them need in a training step.
# - Next: :ref:`sphx_glr_gallery_debugging_anomaly_detection.py`, to find the call that made a gradient NaN.
# - :doc:`All operators </reference/operators>`, this probe for more than 500 of them, and
#   :doc:`all shape operations </reference/shapes>`.
# - :ref:`sphx_glr_gallery_functions_context_methods.py`, how a Function hands over what it keeps.
# - In PyTorch's notes: `saved tensors
#   <https://docs.pytorch.org/docs/stable/notes/autograd.html#saved-tensors>`__.
