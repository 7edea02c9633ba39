r"""
Probe an operator: saved tensors, views, in-place changes
=========================================================

.. in-short::

   What does a function keep for backward? Run it inside ``saved_tensors_hooks``. May you change its input or its result in
   place? Change it, run backward, and compare the gradient. The probe on this page asks this and more with one call:
   ``probe(torch.exp, x)``. Each answer is for the inputs that you gave: give it values of both signs, and the shape, dtype and
   device of your model.

.. index::
   single: what does ReLU store for backward, its input or its output
   single: is this function differentiable twice
"""

# %%
# May I change this tensor in place?
# ----------------------------------
# Backward raises *modified by an inplace operation*, or memory is short. Does the function keep its input, its result, or a new
# tensor? You can measure it. By hand, for ``exp``:

import torch
import torch.nn.functional as F
from torch.autograd.graph import saved_tensors_hooks


def number(*shape):
    values = torch.linspace(-1.5, 2, torch.Size(shape).numel(), dtype=torch.float64)
    return values.reshape(shape).requires_grad_()


x = number(4, 8)
copy = x.clone()  # a leaf that requires grad must not be changed in place
saved = []


def pack(tensor):
    saved.append(tensor.detach())
    return saved[-1]


with saved_tensors_hooks(pack, lambda tensor: tensor):
    y = torch.exp(copy)
print("exp keeps its input: ", any(t.data_ptr() == copy.data_ptr() for t in saved))
print("exp keeps its result:", any(t.data_ptr() == y.data_ptr() for t in saved))

y = torch.exp(copy)  # without hooks, which switch the check off
y.add_(1)
try:
    torch.autograd.grad(y.sum(), x)
except RuntimeError as error:
    message = str(error)
    print("RuntimeError:", message.partition(". Hint")[0])

# sphinx_gallery_start_ignore
assert saved[0].data_ptr() != copy.data_ptr() and len(saved) == 1
assert "modified by an inplace operation" in message
# sphinx_gallery_end_ignore

# %%
# Why add 1? The derivative of the call stays the same. So backward must give the same gradient as before, or raise.
#
# .. how-measured:: One function for each question, and one that returns a row with all the answers.

import matplotlib.pyplot as plt
import pandas as pd
from torch.autograd import forward_ad


def storage_of(tensor):
    return tensor.untyped_storage()._cdata  # data_ptr() is 0 for all empty tensors


def results_of(f, *inputs):
    torch.manual_seed(0)  # so that dropout draws the same mask in each call
    results = f(*inputs)
    return [results] if torch.is_tensor(results) else list(results)


def differentiable(tensors):
    return [tensor for tensor in tensors if tensor.requires_grad]


def weights(tensor, seed=0):
    """A fixed random weight for each number of a tensor."""
    generator = torch.Generator().manual_seed(seed)
    numbers = torch.randn(tensor.shape, dtype=tensor.dtype, generator=generator)
    return numbers.to(tensor.device)


def gradients(results, inputs, seed=0, **options):
    results = differentiable(results)
    return torch.autograd.grad(
        results,
        differentiable(inputs),
        [weights(result, seed) for result in results],
        materialize_grads=True,
        **options,
    )


def close(one, other):
    tolerance = torch.finfo(one.dtype).eps ** 0.5
    return torch.allclose(one, other, rtol=tolerance, atol=tolerance, equal_nan=True)


def measure_kept(f, *inputs):
    saved = {}

    def pack(tensor):
        saved[storage_of(tensor)] = tensor.detach()
        return tensor.detach()

    with saved_tensors_hooks(pack, lambda tensor: tensor):
        results = results_of(f, *inputs)
    owner = dict.fromkeys(map(storage_of, results), "the result")
    owner |= dict.fromkeys(map(storage_of, inputs), "an input")
    sizes = {}
    for key, tensor in saved.items():
        name = owner.get(key, "a new tensor")
        sizes[name] = sizes.get(name, 0) + tensor.untyped_storage().nbytes()
    return sizes


def shares(f, *inputs):
    known = {storage_of(tensor) for tensor in inputs}
    return any(storage_of(result) in known for result in results_of(f, *inputs))


def after(change, f, *inputs):
    """What backward does after 1 was added to each "result" or to each "input"."""
    expected = gradients(results_of(f, *inputs), inputs)
    copies = [tensor.clone() for tensor in inputs]
    results = results_of(f, *copies)
    try:
        for tensor in results if change == "result" else copies:
            tensor.add_(1)
    except RuntimeError:
        return "refused"
    try:
        found = gradients(results, inputs)
    except RuntimeError:
        return "raises"
    return "works" if all(map(close, found, expected)) else "wrong"


def second(f, *inputs):
    first = gradients(results_of(f, *inputs), inputs, create_graph=True)
    if not differentiable(first):
        return "zero"
    try:
        found = gradients(first, inputs, seed=2)
    except (NotImplementedError, RuntimeError):
        return "no"
    return "zero" if all(close(g, torch.zeros_like(g)) for g in found) else "yes"


def product(ones, others):
    """The sum of all products; of complex numbers, its real part."""
    return sum((a.conj() * b).real.sum() for a, b in zip(ones, others, strict=True))


def forward_mode(f, *inputs):
    tangents = [weights(tensor, seed=1) for tensor in differentiable(inputs)]
    backward = product(gradients(results_of(f, *inputs), inputs), tangents)
    left = iter(tangents)
    try:
        with forward_ad.dual_level():
            duals = [
                forward_ad.make_dual(t, next(left)) if t.requires_grad else t
                for t in inputs
            ]
            results = differentiable(results_of(f, *duals))
            found = [forward_ad.unpack_dual(result) for result in results]
    except (NotImplementedError, RuntimeError):
        return "no"
    found = [torch.zeros_like(r) if t is None else t for r, t in found]
    forward = product(map(weights, results), found)
    return "yes" if close(forward, backward) else "wrong"


def probe(f, *inputs):
    return {
        "keeps": ", ".join(sorted(measure_kept(f, *inputs))) or "nothing",
        "shares memory": "yes" if shares(f, *inputs) else "no",
        "result changed": after("result", f, *inputs),
        "input changed": after("input", f, *inputs),
        "2nd derivative": second(f, *inputs),
        "forward mode": forward_mode(f, *inputs),
    }


def tabulate_probes(calls, columns=None):
    found = pd.DataFrame({name: probe(*call) for name, call in calls.items()}).T
    return found[columns] if columns else found


# %%
# The answers for eleven operators, with small inputs in double precision:

other, square = number(4, 8), number(8, 8)
calls = {
    "exp": (torch.exp, x),
    "relu": (F.relu, x),
    "gelu": (F.gelu, x),
    "mul": (torch.mul, x, other),
    "mm": (torch.mm, x, square),
    "softmax": (lambda x: x.softmax(-1), x),
    "layer_norm": (lambda x: F.layer_norm(x, (8,)), x),
    "max_pool2d": (lambda x: F.max_pool2d(x, 2), number(1, 1, 8, 8)),
    "cumsum": (lambda x: x.cumsum(0), x),
    "t": (torch.t, x),
    "cdist": (torch.cdist, x, square),
}
answers = tabulate_probes(calls)

# sphinx_gallery_start_ignore
TORCH = tuple(int(part) for part in torch.__version__.split(".")[:2])
_cell = answers.loc
assert _cell["relu", "keeps"] == "the result" and _cell["gelu", "keeps"] == "an input"
for _name in ("max_pool2d", "layer_norm"):
    assert _cell[_name, "keeps"] == "a new tensor, an input"
assert list(answers.index[answers["shares memory"] == "yes"]) == ["t"]
assert not answers.isin(["wrong", "refused"]).any(axis=None)
for _name, _row in answers.iterrows():
    assert (_row["result changed"] == "raises") == ("the result" in _row["keeps"]), (
        _name
    )
    assert (_row["input changed"] == "raises") == ("an input" in _row["keeps"]), _name
_zero = ["relu", "max_pool2d", "cumsum", "t"]
assert list(answers.index[answers["2nd derivative"] == "zero"]) == _zero
_cdist = "yes" if TORCH >= (2, 14) else "no"
assert _cell["cdist", "2nd derivative"] == _cdist
assert (answers["2nd derivative"].drop("cdist") != "no").all()
assert list(answers.index[answers["forward mode"] == "no"]) == ["cdist"]
assert probe(torch.prod, x)["keeps"] == "an input, the result"
assert measure_kept(lambda x: x * other.detach(), x) == {"a new tensor": other.nbytes}
_pair, _frozen = number(2), other.detach()
_hostile = {
    "two results": (lambda x: x.sort(), x),
    "empty": (torch.exp, number(0)),
    "complex": (torch.exp, (x.detach() * (1 + 1j)).requires_grad_()),
    "float32": (lambda x: x.softmax(-1), x.detach().float().requires_grad_()),
    "difference": (lambda x: (x[0] - x[1]) ** 2, _pair),
    "inverse": (lambda x: x.exp().log(), x),
    "constant": (torch.mul, x, _frozen),
    "integer": (F.embedding, torch.tensor([0, 1]), x),
    "unused": (lambda x, other: x.exp(), x, other),
}
_answers = tabulate_probes(_hostile)
assert not _answers.isin(["wrong"]).any(axis=None)
assert (_answers["forward mode"] == "yes").all()
assert (_answers["shares memory"] == "no").all()
_expected = ["zero", "zero", "yes", "yes", "yes", "zero", "zero", "zero", "yes"]
assert _answers["2nd derivative"].tolist() == _expected
assert (_answers["result changed"] == "raises").tolist() == [
    *[True, True, True, True],
    *[False, False, False, False, True],
]
assert _answers.loc["constant", "input changed"] == "raises"
_rows = torch.randn(4, 8, generator=torch.Generator().manual_seed(0))
for _kind in (torch.float64, torch.float32, torch.bfloat16):
    _leaf = _rows.to(_kind).requires_grad_()
    assert second(lambda x: F.layer_norm(x, (8,)), _leaf) == "yes"
_weight = number(8, 8)
assert "a new tensor" in measure_kept(lambda x: F.linear(x, _weight), x)
assert list(measure_kept(F.linear, x, _weight)) == ["an input"]
_meta = torch.empty(2, device="meta", requires_grad=True)  # weights on its device
assert gradients([_meta.exp()], [_meta])[0].device == _meta.device
assert [after(_change, F.dropout, x) for _change in ("result", "input")] == [
    "works"
] * 2
# sphinx_gallery_end_ignore
answers.rename_axis(columns="operator")

# %%
# ``cdist`` has a second derivative from PyTorch 2.14 on. The columns are those of :doc:`the table of all operators
# </reference/operators>`:
#
# - **keeps**: what is saved for backward: an input, the result, or a new tensor, such as the positions of maxima for
#   ``max_pool2d``. The weights of a layer count as new unless you pass them: ``probe(F.linear, x, weight)``.
# - **shares memory**: whether the result uses the memory of an input.
# - **result changed**, **input changed**: 1 is added in place to each result, or to each input, then backward follows. *works*:
#   the gradient is right. *raises*: backward notices the change. *refused*: the change itself raises. *wrong*: the gradient is
#   silently wrong.
# - **2nd derivative**: *yes* (it runs; its value is not checked), *zero* (it is 0 for this input), or *no* (it raises).
# - **forward mode**: *yes* (it agrees with backward), *no* (it raises), or *wrong* (they disagree).
#
# In this table, backward raises exactly where the changed tensor is kept.

# %%
# How many bytes they keep
# ------------------------
# An input that is kept costs nothing while your code holds it too. A result is often the input of the next operator. But only
# the graph holds the new tensors of ``layer_norm`` and ``max_pool2d``.
#
# .. how-measured:: The bytes kept by the operators of the first table, relative to the size of their first input, and the plot.

sizes = {name: measure_kept(*call) for name, call in calls.items()}
parts = (
    pd.DataFrame(sizes, index=["an input", "the result", "a new tensor"]).fillna(0).T
)
relative = parts.div([call[1].nbytes for call in calls.values()], axis=0)


def plot_kept():
    _, ax = plt.subplots(figsize=(7, 3.4), layout="constrained")
    left = torch.zeros(len(relative)).numpy()
    for kind, color, hatch in (
        ("an input", "#2563eb", ""),
        ("the result", "#047857", "//"),
        ("a new tensor", "#c2410c", "xx"),
    ):
        style = {"color": color, "hatch": hatch, "edgecolor": "white"}
        ax.barh(relative.index, relative[kind], left=left, label=kind, **style)
        left = left + relative[kind].to_numpy()
    ax.set_title("What each operator keeps for backward")
    ax.set_xlabel("bytes kept, relative to the first input")
    ax.invert_yaxis()
    ax.legend()


# %%
# ``mm`` and ``cdist`` keep a second input of twice the size:

plot_kept()

# figure: Horizontal bars, one for each operator, for the bytes kept relative to the first input. Softmax, exp, relu and gelu
#   keep as much as one input, mul twice, mm three times and cdist four times as much, cumsum and t nothing. Only layer_norm
#   and max_pool2d have a part for new tensors.

# sphinx_gallery_start_ignore
assert list(relative.index[relative["a new tensor"] > 0]) == [
    "layer_norm",
    "max_pool2d",
]
_sums = relative.sum(axis=1)
assert _sums[["mul", "mm", "cdist", "cumsum", "t"]].tolist() == [2, 3, 4, 0, 0]
assert (_sums[["softmax", "exp", "relu", "gelu"]] == 1).all()
assert (relative.loc[["mm", "cdist"], "an input"] == 3).all()
# sphinx_gallery_end_ignore

# %%
# What people get wrong
# ---------------------
# **"What is kept must not change, and everything else may."** That is a good first guess, but it has exceptions:

columns = ["keeps", "result changed", "input changed"]
exceptions = {
    "split": (lambda x: x.split(2), x),
    "chunk": (lambda x: x.chunk(2), x),
    "unbind": (lambda x: x.unbind(), x),
    "expand": (lambda x: x.expand(2, 4, 8), x),
    "kron": (torch.kron, number(2, 2), number(2, 2)),
}
found = tabulate_probes(exceptions, columns)
# sphinx_gallery_start_ignore
for _name in ("split", "chunk", "unbind"):
    assert found.loc[_name].tolist() == ["nothing", "refused", "raises"]
assert found.loc["expand"].tolist() == ["nothing", "refused", "works"]
assert found.loc["kron"].tolist() == ["an input", "works", "wrong"]
for _name in ("split", "chunk", "unbind"):
    _copy, _raised = x.clone(), []
    _parts = exceptions[_name][0](_copy)
    try:
        _parts[0].add_(1)
    except RuntimeError as _error:
        _raised.append("returns multiple views" in str(_error))
    _copy.add_(1)
    try:
        _parts[0].sum().backward()
    except RuntimeError as _error:
        _raised.append("returns multiple views" in str(_error))
    assert _raised == [True, True]
    with torch.no_grad():
        _parts[0].add_(1)  # not refused
_raised = []
try:
    x.clone().expand(2, 4, 8).add_(1)
except RuntimeError as _error:
    _raised.append("refers to a single memory location" in str(_error))
assert _raised == [True]
for _like_split in (lambda x: x.tensor_split(2), lambda x: x.hsplit(2)):
    _found = tabulate_probes({"": (_like_split, x)}, columns)
    assert _found.iloc[0].tolist() == ["nothing", "works", "works"]
assert (
    tabulate_probes({"": (lambda x: x.expand(4, 8), x)}, columns).iloc[0, 1] == "works"
)
# sphinx_gallery_end_ignore
found.rename_axis(columns="function")

# %%
# ``split``, ``chunk`` and ``unbind`` keep nothing, but return several views of one tensor. Outside of ``no_grad``, PyTorch
# refuses to change these views in place, and backward raises after a change of the input. Several elements of ``expand``'s
# result share one place in memory, so a change of the result is refused. ``kron`` keeps its inputs, but backward overlooks that
# they changed, so the gradient is silently wrong.
#
# **Taking one answer for all inputs.** A shape or a layout can lead to other code inside the operator:


def attention(q):
    return F.scaled_dot_product_attention(q, q, q)


by_input = {
    "reshape": (lambda x: x.reshape(-1), x),
    "reshape of a transpose": (lambda x: x.reshape(-1), x.t()),
    "cdist, 25 rows": (torch.cdist, number(25, 8), square),
    "cdist, 26 rows": (torch.cdist, number(26, 8), square),
    "attention, 3 dimensions": (attention, number(1, 4, 8)),
    "attention, 4 dimensions": (attention, number(1, 1, 4, 8)),
}
found = tabulate_probes(by_input, ["shares memory", "result changed", "2nd derivative"])
# sphinx_gallery_start_ignore
for _sizes, _second in (((8, 25), _cdist), ((8, 26), "yes"), ((25, 25), _cdist)):
    assert second(torch.cdist, *(number(_size, 8) for _size in _sizes)) == _second
for _q in (number(4, 8), number(1, 4, 8), number(1, 1, 4, 8), number(1, 1, 1, 4, 8)):
    _y = attention(_q)
    assert ("FlashAttention" in _y.grad_fn.name()) == (_q.dim() == 4), _y.grad_fn.name()
assert found["shares memory"].tolist() == ["yes", "no", "no", "no", "no", "no"]
assert found["2nd derivative"].tolist() == [
    *["zero", "zero", _cdist],
    *["yes", "no" if TORCH >= (2, 14) else "yes", "no"],
]
assert found["result changed"].tolist() == [
    *["works", "works", "raises", "raises"],
    *["raises" if TORCH >= (2, 14) else "works", "raises"],
]
# sphinx_gallery_end_ignore
found.rename_axis(columns="function")

# %%
# According to `its reference <https://docs.pytorch.org/docs/stable/generated/torch.cdist.html>`__, ``cdist`` by default
# multiplies matrices if an input has more than 25 rows. In PyTorch 2.13, attention with 3 dimensions runs as several operations
# on the CPU, and with 4 as a fused one.
#
# .. torch-changed:: 2.14
#    :probe: refuses: torch.autograd.functional.hessian(lambda x: torch.cdist(x, 2 * x).sum(), torch.ones(1, 2))
#
#    On 2.14 both rows of ``cdist`` say *yes* (`pytorch#188901 <https://github.com/pytorch/pytorch/pull/188901>`__). Attention
#    with 3 dimensions is fused there, too, so its row is the same as with 4.
#
# **A Function that hides what it keeps.** Both of these compute the square. ``Careless`` stores its input on ``ctx``.


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


found = tabulate_probes(
    {"Square": (Square.apply, x), "Careless": (Careless.apply, x)}, columns
)

# sphinx_gallery_start_ignore
assert found["input changed"].tolist() == ["raises", "wrong"]
assert found["keeps"].tolist() == ["an input", "nothing"]
_both = [gradients([_square.apply(x)], [x])[0] for _square in (Square, Careless)]
assert torch.equal(*_both)
assert torch.autograd.gradcheck(Careless.apply, x)
assert torch.autograd.gradcheck(Square.apply, x)


class _CarelessRelu(Careless):
    @staticmethod
    def backward(ctx, gradient):
        return gradient * (ctx.x > 0)


for _inputs, _answer in ((x, "wrong"), (x.detach().abs().requires_grad_(), "works")):
    assert after("input", _CarelessRelu.apply, _inputs) == _answer  # both signs
# sphinx_gallery_end_ignore
found.rename_axis(columns="function")

# %%
# ``Careless`` seems to keep nothing, because an attribute is hidden from hooks, and from the check for :ref:`changes in place
# <sphx_glr_gallery_differentiation_inplace_and_versions.py>`. ``gradcheck`` passes for both.

# %%
# Exercise
# --------
# ``F.silu(x)`` is ``x * torch.sigmoid(x)``. Which of the two keeps more, and which tensors are they? Answer before you probe.
#
# .. solution::
#
# By hand, two nodes keep something: the product its factors, and sigmoid its result, which is one of them. That makes two
# tensors. ``F.silu`` is one node: it keeps its input, and computes the sigmoid again in backward.


def by_hand(x):
    return x * torch.sigmoid(x)


print("by hand:", measure_kept(by_hand, x))
print("F.silu: ", measure_kept(F.silu, x))

# graph: y -- The product keeps x and the sigmoid; the sigmoid keeps its result, the same tensor
gate = torch.sigmoid(x)
y = x * gate

assert measure_kept(by_hand, x) == {"an input": x.nbytes, "a new tensor": x.nbytes}
assert measure_kept(F.silu, x) == {"an input": x.nbytes}

# sphinx_gallery_start_ignore
assert torch.allclose(by_hand(x), F.silu(x))
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :doc:`All operators </reference/operators>`, the same questions for more than 500 of them, and
#   :doc:`all shape operations </reference/shapes>`.
# - :ref:`sphx_glr_gallery_memory_what_is_saved.py`, why a node keeps its input or its result.
# - :ref:`sphx_glr_gallery_functions_context_methods.py`, how a Function saves tensors for backward.
# - In PyTorch's notes: `saved tensors
#   <https://docs.pytorch.org/docs/stable/notes/autograd.html#saved-tensors>`__.
