r"""
torch.compile and memory: what is saved for backward
====================================================

.. index::
   single: activation_memory_budget
   single: region_activation_memory_budget
   single: min-cut partitioner
   single: rematerialization

.. in-short::

   ``torch.compile(model)`` plans forward and backward together. For the model below, it keeps 2 results for backward where
   eager mode keeps 5: cheap element-wise results are computed again. For less, ``import torch._functorch.config`` and set a
   budget before the first call: ``torch._functorch.config.activation_memory_budget = 0.5``. Not with dropout: in PyTorch 2.13
   your gradients can then be wrong, without an error.
"""

# %%
# The problem: a layer of many steps keeps many tensors
# -----------------------------------------------------
# This GELU is written by hand. In eager mode, each of its steps saves what its own derivative needs.
#
# .. how-measured:: A hook notes the storages that are saved, without weights, input and result; matrix products in backward are
#    counted too.

import warnings

import matplotlib.pyplot as plt
import torch
import torch._functorch.config as functorch_config
from torch.autograd.graph import saved_tensors_hooks
from torch.utils.flop_counter import FlopCounterMode

warnings.filterwarnings("ignore", ".*torch.jit", DeprecationWarning)
warnings.filterwarnings("ignore", "The .grad attribute of a Tensor")


def measure(forward, x, *owned):
    """MiB of each storage saved beyond x, y and owned; products in backward."""
    there = {tensor.untyped_storage()._cdata for tensor in (x, *owned)}
    saved = {}

    def note(tensor):
        storage = tensor.untyped_storage()
        if storage._cdata not in there:
            saved[storage._cdata] = storage.nbytes() / 2**20
        return tensor.detach()

    with saved_tensors_hooks(note, lambda tensor: tensor):
        y = forward(x)
    saved.pop(y.untyped_storage()._cdata, None)
    with FlopCounterMode(display=False) as counter:
        gradients.append(torch.autograd.grad(y.sum(), (x, *owned)))
    return list(saved.values()), counter.get_total_flops() / (2 * 1024 * 64 * 256)


gradients = []


def four_ways(model):
    torch.manual_seed(0)
    x, own = torch.randn(1024, 64, requires_grad=True), list(model.parameters())
    rows = {"eager": measure(model, x, *own)}
    for budget in (1.0, 0.5, 0.0):  # 1.0 is the default
        torch.compiler.reset()
        with functorch_config.patch(activation_memory_budget=budget):
            compiled = torch.compile(model, backend="aot_eager_decomp_partition")
            rows[f"compiled, budget {budget}"] = measure(compiled, x, *own)
    return x, own, rows


def draw(rows):
    names, sizes = list(rows), [sum(saved) for saved, _ in rows.values()]
    _, ax = plt.subplots(figsize=(7, 1.75), layout="constrained")
    bars = ax.barh(names, sizes, color=["#64748b", "#2563eb", "#2563eb", "#2563eb"])
    ax.bar_label(bars, [f"{size:.0f}" for size in sizes], padding=4)
    ax.set(xlabel="MiB saved for backward, beyond weights and input", xlim=(0, 6))
    ax.set_title("torch.compile keeps less, and a budget still less")
    ax.invert_yaxis()


# %%
# Each result of the first layer takes 1 MiB:

import torch._functorch.config as functorch_config
from functorch.compile import aot_function, nop
from torch import nn


class GELU(nn.Module):
    def forward(self, h):
        inner = 0.79788 * (h + 0.044715 * h**3)
        return 0.5 * h * (1 + torch.tanh(inner))


model = nn.Sequential(nn.Linear(64, 256), GELU(), nn.Linear(256, 64))
x, own, rows = four_ways(model)
draw(rows)

# figure: Bars of what is saved for backward. Eager keeps 5 MiB, compiled keeps 2, with a budget of 0.5 it keeps 1, and with a
#   budget of 0 nothing beyond weights and input.

# sphinx_gallery_start_ignore
assert [saved for saved, _ in rows.values()] == [[1.0] * n for n in (5, 2, 1, 0)]
assert [products for _, products in rows.values()] == [4, 4, 4, 5]
assert functorch_config.activation_memory_budget == 1.0 and len(gradients) == 4
for _others in gradients[1:]:
    for _a, _b in zip(gradients[0], _others, strict=True):
        assert torch.allclose(_a, _b, rtol=1e-4, atol=1e-3)
import inspect

import torch._inductor.compile_fx as _inductor

assert "min_cut_rematerialization_partition" in inspect.getsource(_inductor)
# sphinx_gallery_end_ignore

# %%
# The gradients agree up to rounding. This is how the third bar came about:

torch.compiler.reset()  # forget what was compiled with another budget

with functorch_config.patch(activation_memory_budget=0.5):
    compiled = torch.compile(model, backend="aot_eager_decomp_partition")
    compiled(x)  # the first call compiles

# sphinx_gallery_start_ignore
_y = compiled(x)
assert _y.grad_fn.name() == "CompiledFunctionBackward"
_there = {t.untyped_storage()._cdata for t in (x, *own)}
_kept = [
    t for t in _y.grad_fn.saved_tensors if t.untyped_storage()._cdata not in _there
]
assert [t.nbytes for t in _kept] == [2**20]
# A checkpoint around it, of which the end of the page speaks, keeps the input and no more.
from torch.utils.checkpoint import checkpoint as _checkpoint

_held = []
with saved_tensors_hooks(lambda t: (_held.append(t.shape), t.detach())[1], lambda t: t):
    _y = _checkpoint(compiled, x, use_reentrant=False)
assert set(_held) <= {x.shape, torch.Size([0])}
_again = torch.autograd.grad(_y.sum(), (x, *own))
for _a, _b in zip(gradients[0], _again, strict=True):
    assert torch.allclose(_a, _b, rtol=1e-4, atol=1e-3)
# sphinx_gallery_end_ignore

# %%
# ``functorch_config`` is ``torch._functorch.config``. The backend ``aot_eager_decomp_partition`` chooses what to save and
# compiles no kernels, so this page needs no C++ compiler. The default backend, inductor, calls the same partitioner,
# ``min_cut_rematerialization_partition``.

# %%
# What people get wrong
# ---------------------
# **Setting the budget at the wrong time.** It is read when a graph is compiled. ``compiled`` was compiled with 0.5, and
# meanwhile the budget is 1 again. For the same shape of input nothing changes. For another shape PyTorch compiles anew here,
# with the budget of now:

print("budget now:", functorch_config.activation_memory_budget)
for batch in (x, x[:512]):
    saved, _ = measure(compiled, batch, *own)
    print(len(batch), "rows, MiB saved:", saved)

    # sphinx_gallery_start_ignore
    assert saved == ([1.0] if batch is x else [0.5, 0.5])
assert functorch_config.activation_memory_budget == 1.0
# sphinx_gallery_end_ignore

# %%
# So set it once for the whole program, or call ``torch.compiler.reset()`` after a change.

# %%
# **Setting a budget where there is dropout.** With a budget below 1, backward may draw the random numbers again, and they are
# others. There is no error and no warning (`pytorch#190758 <https://github.com/pytorch/pytorch/issues/190758>`__ is open):


def noisy(x):
    return nn.functional.dropout(x.sin(), 0.5).cos()


ones = torch.ones(1000, requires_grad=True)
for budget in (1.0, 0.5):
    torch.compiler.reset()
    torch.manual_seed(0)
    with functorch_config.patch(activation_memory_budget=budget):
        y = torch.compile(noisy, backend="aot_eager_decomp_partition")(ones)
    (gradient,) = torch.autograd.grad(y.sum(), ones)
    dropped = y.detach() == 1  # cos(0)
    wrong = ((gradient == 0) != dropped).sum().item()
    print(f"budget {budget}: {wrong} of 1000 gradients belong to another mask")

    # sphinx_gallery_start_ignore
    assert wrong == 0 if budget == 1 else wrong > 400
# sphinx_gallery_end_ignore

# %%
# **Setting the budget in the wrong place.** ``torch._dynamo.config`` refuses the name. ``torch._dynamo`` itself accepts it,
# as a new attribute that nothing reads (`pytorch#161650 <https://github.com/pytorch/pytorch/issues/161650>`__):

import torch._dynamo

try:
    torch._dynamo.config.activation_memory_budget = 0.5
except AttributeError as error:
    message = str(error)
    print(f"AttributeError: {message}")

# sphinx_gallery_start_ignore
assert "activation_memory_budget does not exist" in message
assert not hasattr(torch._dynamo, "activation_memory_budget")
from torch._functorch import partitioners as _partitioners

assert "config.activation_memory_budget" in inspect.getsource(_partitioners)
assert "_dynamo.activation" not in inspect.getsource(_partitioners)
# sphinx_gallery_end_ignore

# %%
# **Expecting less of every function.** A ReLU that is compiled alone saves a mask of booleans. In eager mode it saves its
# result, which you have anyway:

torch.compiler.reset()
compiled_relu = torch.compile(torch.relu, backend="aot_eager_decomp_partition")
numbers = torch.randn(1024, 1024, requires_grad=True)
for name, relu in (("eager", torch.relu), ("compiled", compiled_relu)):
    saved, _ = measure(relu, numbers)
    print(f"{name:<9} {sum(saved):.0f} MiB beyond input and result")

# sphinx_gallery_start_ignore
assert saved == [1.0] and measure(torch.relu, numbers)[0] == []
# sphinx_gallery_end_ignore

# %%
# Why: one graph, cut in two
# --------------------------
# The compiler has one graph of forward and backward, and cuts it in two. What crosses the cut is saved. Backward can compute
# other forward results again from that. The partitioner looks for a cut with few bytes (a *min-cut*). By default it does not
# repeat matrix products and random numbers.
#
# .. how-measured:: This code prints what a backward graph gets, and what it computes.

from functorch.compile import make_boxed_func


def show(graph, inputs):
    names = {"placeholder": [], "call_function": [], "output": []}
    for node in graph.graph.nodes:
        names[node.op].append(node.name)
    print("  gets    ", *names["placeholder"])
    print("  computes", *names["call_function"])
    shown.append(names)
    return make_boxed_func(graph)


shown = []

# %%
# The backward graph of three cheap steps, cut by the plain rule and by that of ``torch.compile``:

from functorch.compile import default_partition, min_cut_rematerialization_partition

for partition in (default_partition, min_cut_rematerialization_partition):
    print(partition.__name__)
    steps = aot_function(lambda x: x.sin().cos().sin(), nop, show, partition)
    steps(ones).sum().backward()

# sphinx_gallery_start_ignore
assert shown[0]["placeholder"] == ["primals_1", "sin", "cos", "tangents_1"]
assert shown[1]["placeholder"] == ["primals_1", "tangents_1"]
assert shown[1]["call_function"] == ["sin", "cos", *shown[0]["call_function"]]


def _in_graphs(function):
    targets = [], []

    def note(into):
        def compiler(graph, inputs):
            into.extend(str(node.target) for node in graph.graph.nodes)
            return make_boxed_func(graph)

        return compiler

    cut = min_cut_rematerialization_partition
    traced = aot_function(function, note(targets[0]), note(targets[1]), cut)
    traced(torch.rand(4, 4, requires_grad=True)).sum().backward()
    return targets


def _noise(x):
    x = (x @ x).sin() * torch.rand_like(x) + torch.randn(4, 4)
    x = x.cos() * torch.bernoulli(torch.full_like(x, 0.5))
    return nn.functional.dropout(x.sin()).cos()


_forward, _backward = _in_graphs(_noise)
assert (_forward.count("aten.mm.default"), _backward.count("aten.mm.default")) == (1, 2)
for _name in ("rand_like", "randn", "bernoulli", "native_dropout"):
    assert f"aten.{_name}.default" in _forward
    assert f"aten.{_name}.default" not in _backward
# sphinx_gallery_end_ignore

# %%
# ``primals_1`` is the input, ``tangents_1`` the incoming gradient. With the second cut, backward begins with ``sin`` and
# ``cos`` again. That is cheap: inductor can fuse such steps into one kernel. PyTorch's reference calls these functions of
# ``functorch.compile`` experimental.

# %%
# What a budget means
# -------------------
# The comment in PyTorch's source says: 1 is the default cut, which looks for speed; 0 is the memory of one checkpoint around
# the whole graph; 0.4 saves 40 % of what the default saves. Within the budget, PyTorch picks what costs least to repeat, by
# an estimate. Above, 0.5 computes element-wise steps again, and 0 also repeats a matrix product:

for name, (_, products) in rows.items():
    print(f"{name:<21} {products:.0f} matrix products in backward")

# %%
# - The budget is for what forward saves, and not for the peak of a step. A smaller budget can have a higher peak
#   (`pytorch#197838 <https://github.com/pytorch/pytorch/issues/197838>`__).
# - ``torch._functorch`` begins with an underscore: it is private and may change. In PyTorch 2.13, a budget that one thread sets
#   is not seen in another.
# - PyTorch 2.13 has a public name, marked as a prototype: ``with torch.autograd.graph.region_activation_memory_budget(0.5):``.
#   Write it inside the compiled function, around everything that one graph computes.
# - A ``checkpoint`` inside a compiled function is respected here, as the next lines show. A checkpoint around a compiled
#   function works too. (`pytorch#143176 <https://github.com/pytorch/pytorch/issues/143176>`__ lists what saves nothing with
#   *compiled autograd*, another feature.)

from torch.utils.checkpoint import checkpoint


@torch.compile(backend="aot_eager_decomp_partition")
def checkpointed(x):
    return checkpoint(model, x, use_reentrant=False)


saved, products = measure(checkpointed, x, *own)
print(f"saved: {saved}, {products:.0f} products in backward")

# sphinx_gallery_start_ignore
assert (saved, products) == ([], 5)
TORCH = tuple(int(part) for part in torch.__version__.split(".")[:2])
_known = hasattr(torch.autograd.graph, "region_activation_memory_budget")
assert _known == (TORCH >= (2, 13))
_region_saved, _refused = [], []
if _known:

    @torch.compile(backend="aot_eager_decomp_partition")
    def _region(x):
        with torch.autograd.graph.region_activation_memory_budget(0.5):
            return model(x)

    _region_saved = measure(_region, x, *own)[0]

    @torch.compile(backend="aot_eager_decomp_partition")
    def _part(x):
        with torch.autograd.graph.region_activation_memory_budget(0.5):
            h = x.sin()
        return h.cos()

    def _outside(x):
        with torch.autograd.graph.region_activation_memory_budget(0.5):
            return _region(x)

    for _wrong in (_part, _outside):
        try:
            _wrong(x)
        except RuntimeError as _error:
            _refused.append(str(_error))
assert _region_saved == [1.0] * _known and len(_refused) == 2 * _known
_parts = "Unannotated ops: ['cos']", "can only be used inside a torch.compile region"
assert all(part in said for part, said in zip(_parts, _refused, strict=_known))
import threading

_budgets = []
with functorch_config.patch(activation_memory_budget=0.5):
    _thread = threading.Thread(
        target=lambda: _budgets.append(functorch_config.activation_memory_budget)
    )
    _thread.start()
    _thread.join()
assert _budgets == [1.0] if _known else _budgets in ([1.0], [0.5])
# sphinx_gallery_end_ignore

# %%
# Exercise
# --------
# A graph break splits your function into two graphs, and each has a cut of its own. Put ``torch._dynamo.graph_break()``
# between the GELU and the last layer of the model. What is saved with a budget of 0?
#
# .. solution::
#
# The result of the GELU, 1 MiB. It is an input of the second graph, and a graph with a budget of 0 still keeps the inputs that
# backward needs.


def in_two(x):
    h = model[:2](x)
    torch._dynamo.graph_break()
    return model[2](h)


torch.compiler.reset()
with functorch_config.patch(activation_memory_budget=0.0):
    compiled = torch.compile(in_two, backend="aot_eager_decomp_partition")
    saved, _ = measure(compiled, x, *own)
print(f"saved: {saved}")

# sphinx_gallery_start_ignore
assert saved == [1.0]
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_graphs_static_and_dynamic.py`, what else ``torch.compile`` does to the graph.
# - In PyTorch's reference: `torch.compile <https://docs.pytorch.org/docs/stable/generated/torch.compile.html>`__,
#   `min_cut_rematerialization_partition
#   <https://docs.pytorch.org/functorch/stable/generated/functorch.compile.min_cut_rematerialization_partition.html>`__.
