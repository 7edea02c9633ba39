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
   eager mode keeps 5, because cheap element-wise results are computed again. For less, ``import torch._functorch.config`` and
   set a budget before the first call: ``torch._functorch.config.activation_memory_budget = 0.5``. Do not use it with dropout or
   other random numbers: in PyTorch 2.13 your gradients can then be silently wrong.
"""

# %%
# The problem: a layer of many steps keeps many tensors
# -----------------------------------------------------
# This GELU is written by hand. In eager mode, each of its steps saves what its own derivative needs. Each result of the first
# layer takes 1 MiB, so count what is saved beyond input, weights and the result of the model:

import warnings

import torch
import torch._dynamo
import torch._functorch.config as functorch_config
from functorch.compile import (
    aot_function,
    default_partition,
    min_cut_rematerialization_partition,
    nop,
)
from torch import nn
from torch.autograd.graph import saved_tensors_hooks
from torch.utils.checkpoint import checkpoint

warnings.filterwarnings("ignore", ".*torch.jit", DeprecationWarning)
warnings.filterwarnings("ignore", "The .grad attribute of a Tensor")


class GELU(nn.Module):
    def forward(self, h):
        inner = 0.79788 * (h + 0.044715 * h**3)
        return 0.5 * h * (1 + torch.tanh(inner))


def measure_saved_mib(forward, x):
    sizes = {}

    def note(tensor):
        sizes[tensor.data_ptr()] = tensor.nbytes / 2**20
        return tensor.detach()

    with saved_tensors_hooks(note, lambda tensor: tensor):
        y = forward(x)
    for known in (x, y, *model.parameters()):
        sizes.pop(known.data_ptr(), None)
    return list(sizes.values())


# %%
# In eager mode, and compiled with three budgets:

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(64, 256), GELU(), nn.Linear(256, 64))
x = torch.randn(1024, 64, requires_grad=True)

saved = {"eager": measure_saved_mib(model, x)}
for budget in (1.0, 0.5, 0.0):  # 1.0 is the default
    torch.compiler.reset()  # forget what was compiled with another budget
    compiled = torch.compile(model, backend="aot_eager_decomp_partition")
    with functorch_config.patch(activation_memory_budget=budget):
        saved[f"compiled, budget {budget}"] = measure_saved_mib(compiled, x)
for name, mib in saved.items():
    print(f"{name:<21} {len(mib)} tensors, {sum(mib):.0f} MiB")

# sphinx_gallery_start_ignore
assert list(saved.values()) == [[1.0] * n for n in (5, 2, 1, 0)]
assert functorch_config.activation_memory_budget == 1.0
import inspect

import torch._inductor.compile_fx as _inductor

assert "min_cut_rematerialization_partition" in inspect.getsource(_inductor)
# sphinx_gallery_end_ignore

# %%
# .. how-measured:: This code draws the sums.

import matplotlib.pyplot as plt


def plot_saved_mib(saved):
    _, ax = plt.subplots(figsize=(7, 1.75), layout="constrained")
    sizes = [sum(mib) for mib in saved.values()]
    colors = ["#64748b", "#2563eb", "#2563eb", "#2563eb"]
    bars = ax.barh(list(saved), sizes, color=colors)
    ax.bar_label(bars, [f"{size:.0f}" for size in sizes], padding=4)
    ax.set(xlabel="MiB saved for backward, beyond weights and input", xlim=(0, 6))
    ax.set_title("torch.compile keeps less, and a budget still less")
    ax.invert_yaxis()


# %%
# The sums as bars:

plot_saved_mib(saved)

# figure: Bars of what is saved for backward. Eager keeps 5 MiB, compiled keeps 2, with a budget of 0.5 it keeps 1, and with a
#   budget of 0 nothing beyond weights and input.

# %%
# The backend ``aot_eager_decomp_partition`` only chooses what to save, so this page needs no C++ compiler. The default backend,
# inductor, calls the same partitioner,
# ``min_cut_rematerialization_partition``.

# %%
# Why: one graph, cut in two
# --------------------------
# The compiler has one graph of forward and backward, and cuts it in two. What crosses the cut is saved. Backward can compute
# other forward results again from that. The partitioner looks for a cut with few bytes (a *min-cut*). By default it repeats
# only steps that it counts as cheap, such as element-wise ones.
#
# .. how-measured:: This code prints what a backward graph gets, and what it computes.

from functorch.compile import make_boxed_func


def print_backward_graph(graph, inputs):
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

for partition in (default_partition, min_cut_rematerialization_partition):
    print(partition.__name__)
    cut = (nop, print_backward_graph, partition)
    y = aot_function(lambda x: x.sin().cos().sin(), *cut)(x)
    y.sum().backward()

# sphinx_gallery_start_ignore
assert shown[0]["placeholder"] == ["primals_1", "sin", "cos", "tangents_1"]
assert shown[1]["placeholder"] == ["primals_1", "tangents_1"]
assert shown[1]["call_function"] == ["sin", "cos", *shown[0]["call_function"]]

# sphinx_gallery_end_ignore

# %%
# ``primals_1`` is the input, ``tangents_1`` the incoming gradient. With the second cut, backward begins with ``sin`` and
# ``cos`` again. That is cheap: inductor can fuse such steps into one kernel.

# %%
# What a budget means
# -------------------
# PyTorch's source says in a comment: 1 is the default cut, which looks for speed; 0 is the memory of one checkpoint around the
# whole graph; 0.4 saves 40 % of what the default saves. Within the budget, PyTorch picks what costs least to repeat, by an
# estimate.
#
# .. how-measured:: This code compiles for each budget, counts the matrix products in backward, and compares the gradients.

from torch.utils.flop_counter import FlopCounterMode

gradients = []


def count_products(forward):
    y = forward(x)
    with FlopCounterMode(display=False) as counter:
        gradients.append(torch.autograd.grad(y.sum(), (x, *model.parameters())))
    return counter.get_total_flops() // (2 * 1024 * 64 * 256)


def count_products_for(budget):
    torch.compiler.reset()
    with functorch_config.patch(activation_memory_budget=budget):
        return count_products(
            torch.compile(model, backend="aot_eager_decomp_partition")
        )


# %%
# Above, 0.5 computes element-wise steps again, and 0 also repeats a matrix product:

products = {"eager": count_products(model)}
for budget in (1.0, 0.5, 0.0):
    products[f"compiled, budget {budget}"] = count_products_for(budget)
for name, number in products.items():
    print(f"{name:<21} {number} matrix products in backward")

# sphinx_gallery_start_ignore
assert list(products.values()) == [4, 4, 4, 5] and len(gradients) == 4
for _others in gradients[1:]:
    for _a, _b in zip(gradients[0], _others, strict=True):
        assert torch.allclose(_a, _b, rtol=1e-4, atol=1e-3)
# sphinx_gallery_end_ignore

# %%
# - The budget limits what forward saves. A smaller budget can have a higher peak of a step (`pytorch#197838
#   <https://github.com/pytorch/pytorch/issues/197838>`__).
# - ``torch._functorch`` begins with an underscore: it is private and may change. In PyTorch 2.13, a budget that one thread sets
#   is not seen in another.
# - PyTorch 2.13 has a public name, marked as a prototype: ``with torch.autograd.graph.region_activation_memory_budget(0.5):``.
#   Write it inside the compiled function, around everything that one graph computes. Random numbers can go wrong there too.
# - A ``checkpoint`` inside a compiled function is respected, as the next lines show. A checkpoint around a compiled
#   function works too.


@torch.compile(backend="aot_eager_decomp_partition")
def region(x):
    with torch.autograd.graph.region_activation_memory_budget(0.5):
        return model(x)


@torch.compile(backend="aot_eager_decomp_partition")
def checkpointed(x):
    return checkpoint(model, x, use_reentrant=False)


print(f"region, 0.5: saved {measure_saved_mib(region, x)}")
mib, number = measure_saved_mib(checkpointed, x), count_products(checkpointed)
print(f"checkpoint: saved {mib}, {number} products in backward")

# sphinx_gallery_start_ignore
assert (mib, number) == ([], 5)
_held = []
with saved_tensors_hooks(lambda t: (_held.append(t.shape), t.detach())[1], lambda t: t):
    _y = checkpoint(compiled, x, use_reentrant=False)
assert set(_held) <= {x.shape, torch.Size([0])}
_refused = []


_region_saved = measure_saved_mib(region, x)


@torch.compile(backend="aot_eager_decomp_partition")
def _part(x):
    with torch.autograd.graph.region_activation_memory_budget(0.5):
        h = x.sin()
    return h.cos()


def _outside(x):
    with torch.autograd.graph.region_activation_memory_budget(0.5):
        return region(x)


for _wrong in (_part, _outside):
    try:
        _wrong(x)
    except RuntimeError as _error:
        _refused.append(str(_error))
assert _region_saved == [1.0]
_parts = "Unannotated ops: ['cos']", "can only be used inside a torch.compile region"
assert all(part in said for part, said in zip(_parts, _refused, strict=True))
import threading

_budgets = []
with functorch_config.patch(activation_memory_budget=0.5):
    _thread = threading.Thread(
        target=lambda: _budgets.append(functorch_config.activation_memory_budget)
    )
    _thread.start()
    _thread.join()
assert _budgets == [1.0]
# sphinx_gallery_end_ignore

# %%
# What people get wrong
# ---------------------
# **Setting the budget at the wrong time.** It is read when a graph is compiled. This model is compiled with 0.5, and then the
# budget is 1 again. For another shape of input PyTorch compiles again, with the new budget:

torch.compiler.reset()
compiled = torch.compile(model, backend="aot_eager_decomp_partition")
with functorch_config.patch(activation_memory_budget=0.5):
    compiled(x)  # the first call compiles

print("budget now:", functorch_config.activation_memory_budget)
for batch in (x, x[:512]):
    mib = measure_saved_mib(compiled, batch)
    print(len(batch), "rows, MiB saved:", mib)

    # sphinx_gallery_start_ignore
    assert mib == ([1.0] if batch is x else [0.5, 0.5])
assert functorch_config.activation_memory_budget == 1.0
# sphinx_gallery_end_ignore

# %%
# So set it before the first call, in the thread that makes it, and call ``torch.compiler.reset()`` after a change.

# %%
# **Setting a budget where there are random numbers**, as in dropout or a variational autoencoder. With a budget below 1,
# backward may silently draw the random numbers again, and then gets different ones (`pytorch#190758
# <https://github.com/pytorch/pytorch/issues/190758>`__ is open):


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
for _budget in (1.0, 0.5):
    torch.compiler.reset()
    _scaled = lambda x: (x.sin() * torch.rand_like(x)).cos()  # noqa: E731
    with functorch_config.patch(activation_memory_budget=_budget):
        _y = torch.compile(_scaled, backend="aot_eager_decomp_partition")(ones)
    (_found,) = torch.autograd.grad(_y.sum(), ones)
    _angle = _y.detach().acos()
    _right = -_angle.sin() * _angle / ones.detach().tan()
    assert torch.allclose(_found, _right, atol=1e-3) == (_budget == 1)


@torch.compile(backend="aot_eager_decomp_partition")
def _noisy_region(x):
    with torch.autograd.graph.region_activation_memory_budget(0.5):
        return noisy(x)


_y = _noisy_region(ones)
(_found,) = torch.autograd.grad(_y.sum(), ones)
assert ((_found == 0) != (_y.detach() == 1)).sum() > 400
# sphinx_gallery_end_ignore

# %%
# **Setting the budget in the wrong place.** ``torch._dynamo.config`` refuses the name. ``torch._dynamo`` itself accepts it,
# as a new attribute that nothing reads (`pytorch#161650 <https://github.com/pytorch/pytorch/issues/161650>`__):

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
# **Expecting less from every function.** A ReLU that is compiled alone saves a mask of booleans. But in eager mode it saves its
# result, which exists anyway:

torch.compiler.reset()
compiled_relu = torch.compile(torch.relu, backend="aot_eager_decomp_partition")
numbers = torch.randn(1024, 1024, requires_grad=True)
for name, relu in (("eager", torch.relu), ("compiled", compiled_relu)):
    mib = measure_saved_mib(relu, numbers)
    print(f"{name:<9} {sum(mib):.0f} MiB beyond input and result")

# sphinx_gallery_start_ignore
assert mib == [1.0] and measure_saved_mib(torch.relu, numbers) == []
# sphinx_gallery_end_ignore

# %%
# Exercise
# --------
# A graph break splits your function into two graphs, and each has a cut of its own. Put ``torch._dynamo.graph_break()``
# between the GELU and the last layer of the model. What is saved with a budget of 0?
#
# .. solution::
#
# The result of the GELU, 1 MiB, because it is an input of the second graph, and a graph with a budget of 0 still keeps the
# inputs that backward needs.


def in_two(x):
    h = model[:2](x)
    torch._dynamo.graph_break()
    return model[2](h)


torch.compiler.reset()
with functorch_config.patch(activation_memory_budget=0.0):
    compiled = torch.compile(in_two, backend="aot_eager_decomp_partition")
    mib = measure_saved_mib(compiled, x)
print(f"saved: {mib}")

# sphinx_gallery_start_ignore
assert mib == [1.0]
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_graphs_static_and_dynamic.py`, what else ``torch.compile`` does to the graph.
# - In PyTorch's reference: `torch.compile <https://docs.pytorch.org/docs/stable/generated/torch.compile.html>`__,
#   `min_cut_rematerialization_partition
#   <https://docs.pytorch.org/functorch/stable/generated/functorch.compile.min_cut_rematerialization_partition.html>`__.
