r"""
Static and dynamic graphs: torch.fx and torch.export against eager PyTorch
==========================================================================

A *dynamic* graph is recorded while a function runs. A *static* graph is captured once, and from then on it is run in
place of the function. PyTorch offers both, and ``torch.compile`` stands between. This page captures one function with
``torch.fx`` and with ``torch.export``, draws the captured graph beside the autograd graph, and shows how an ``if``
can stop the capture, and how ``torch.cond`` and ``torch.compile`` get past it.
"""

# %%
# Define by run
# -------------
# In eager PyTorch, each line computes its result at once, and autograd takes a note of it. Python runs in every call.
# The list ``seen`` keeps the type of the argument, so that we know when Python ran, and on what.

import io
import textwrap
from contextlib import redirect_stderr

import matplotlib.pyplot as plt
import torch
from torch import nn

seen = []


class Model(nn.Module):
    def forward(self, x, w):
        seen.append(type(x).__name__)
        y = torch.sin(x) * w
        return (y * y).sum()


model = Model()
x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
w = torch.tensor([0.5, 1.0, 1.5], requires_grad=True)

result = model(x, w)
result = model(x, w)
print(f"result {result.item():.4f}, grad_fn {result.grad_fn.name()}")
print("Python ran on:", seen)

# sphinx_gallery_start_ignore
assert seen == ["Tensor", "Tensor"] and result.grad_fn.name() == "SumBackward0"
# sphinx_gallery_end_ignore

# %%
# Define, then run: torch.fx
# --------------------------
# ``symbolic_trace`` calls the function once, with a stand-in that has no values: a ``Proxy``. It writes down what is
# done to it, and makes a new function out of that.

seen.clear()
traced = torch.fx.symbolic_trace(model)
print(traced.code.strip())

first, second = traced(x, w), traced(x, w)
print(f"\nresult {first.item():.4f} and again {second.item():.4f}")
print("Python ran on:", seen)

# sphinx_gallery_start_ignore
assert seen == ["Proxy"] and traced(x, w) == result and seen == ["Proxy"]
# sphinx_gallery_end_ignore

# %%
# After the capture, ``forward`` was not called again. What is not an operation on a tensor, here the line with
# ``seen``, took effect once and is not part of the graph.

# %%
# torch.export
# ------------
# ``torch.export`` goes further down. It runs the function on a ``FakeTensor``, which has a shape and a dtype but no
# data, and records operators of PyTorch's core. It is meant for models that are saved and run elsewhere, so the graph
# has to hold for every input that it will accept.

seen.clear()
exported = torch.export.export(model, (x, w))

for node in exported.graph.nodes:
    shape = tuple(node.meta["val"].shape) if "val" in node.meta else ""
    arguments = ", ".join(argument.name for argument in node.all_input_nodes)
    print(f"{node.op:<14}{node.name:<8}{node.target!s:<18}{arguments:<8}{shape}")
print("Python ran on:", seen)

again = exported.module()(x, w)
print(f"result {again.item():.4f}, grad_fn {again.grad_fn.name()}")

# sphinx_gallery_start_ignore
assert seen == ["FakeTensor"] and again == result
# sphinx_gallery_end_ignore

# %%
# The captured graph is not an autograd graph. It describes the *forward* pass, and it can be run any number of times.
# Run under autograd, it records a graph of its own, with the same gradients.

eager = torch.autograd.grad(model(x, w), (x, w))
static = torch.autograd.grad(exported.module()(x, w), (x, w))
print("equal gradients:", all(map(torch.equal, eager, static)))

# sphinx_gallery_start_ignore
assert all(map(torch.equal, eager, static))
# sphinx_gallery_end_ignore

# %%
# The two graphs side by side
# ---------------------------
# The exported graph lists its nodes, each with its inputs. The autograd graph has to be walked, from
# ``result.grad_fn`` along ``next_functions``. Here its nodes get the names of the results they belong to.

forward, data = {}, []
for node in exported.graph.nodes:
    forward[node.name] = str(node.target if node.op == "call_function" else node.op)
    data += [(argument.name, node.name) for argument in node.all_input_nodes]

found = [result.grad_fn]
for node in found:  # the list grows while it is read
    found += [n for n, _ in dict.fromkeys(node.next_functions) if n not in found]
name_of = dict(zip(found, ["sum_1", "mul_1", "mul", "sin", "w", "x"], strict=True))
backward = {name: type(node).__name__ for node, name in name_of.items()}
gradients = {(name_of[a], name_of[b]) for a in found for b, _ in a.next_functions}

opposite = {(end, start) for start, end in data if end != "output"}
print("every edge, the other way:", gradients == opposite)

# sphinx_gallery_start_ignore
assert gradients == opposite
kinds = [type(n).__name__.removesuffix("Backward0") for n in found]
assert kinds == ["Sum", "Mul", "Mul", "Sin", "AccumulateGrad", "AccumulateGrad"]
assert found[4].variable is w and found[5].variable is x
assert found[1].next_functions == ((found[2], 0), (found[2], 0))
assert len(data) == 6 and len(gradients) == 5
# sphinx_gallery_end_ignore

# %%
# ``mul_1`` uses ``mul`` twice; the drawing shows one arrow for both.

places = {"x": (0, 0), "sin": (0, 1), "w": (1, 1), "mul": (0, 2), "mul_1": (0, 3)}
places |= {"sum_1": (0, 4), "output": (0, 5)}


def draw(ax, kinds, edges, color, title):
    for name, kind in kinds.items():
        box = {"boxstyle": "round", "facecolor": "white", "edgecolor": color}
        label = f"{name}\n{kind}" if name != kind else name
        ax.text(*places[name], label, ha="center", va="center", fontsize=9, bbox=box)
    for start, end in edges:
        gap = 15 if places[start][0] == places[end][0] else 34
        arrow = {"arrowstyle": "->", "color": color, "shrinkA": gap, "shrinkB": gap}
        ax.annotate("", places[end], places[start], arrowprops=arrow)
    ax.set(title=title, xlim=(-0.6, 1.5), ylim=(5.4, -0.4))
    ax.axis("off")


fig, (left, right) = plt.subplots(1, 2, figsize=(7, 5.5))
draw(left, forward, data, "#2563eb", "exported: with the data")
draw(right, backward, sorted(gradients), "#c2410c", "autograd: the other way")
fig.tight_layout()
# figure: Two graphs of the same shape. On the left the exported graph runs down from x through sin, mul, mul_1 and
#   sum_1 to output, and w joins at mul. On the right the autograd graph runs up, from SumBackward0 through two
#   MulBackward0 and SinBackward0 to the AccumulateGrad of x, with a branch to the AccumulateGrad of w.

# %%
# A branch that depends on the data
# ---------------------------------
# For eager PyTorch, this is an ``if`` like any other: each call records the side it took.


class Branch(nn.Module):
    def forward(self, x):
        if x.sum() > 0:
            return torch.sin(x)
        return torch.cos(x)


branch = Branch()
print("x:  ", branch(x).grad_fn.name())
print("-x: ", branch(-x).grad_fn.name())

try:
    torch.fx.symbolic_trace(branch)
except torch.fx.proxy.TraceError as error:
    print(textwrap.fill(f"torch.fx: TraceError: {error}", 88))
    assert "cannot be used as inputs to control flow" in str(error)

# sphinx_gallery_start_ignore
assert branch(x).grad_fn.name() == "SinBackward0"
assert branch(-x).grad_fn.name() == "CosBackward0"
# sphinx_gallery_end_ignore

# %%
# A ``Proxy`` is neither true nor false, so ``torch.fx`` gives up. ``torch.export`` fails too. Its message is long;
# these are the lines that tell what happened.

# sphinx_gallery_start_ignore
import logging

logging.disable(logging.WARNING)  # the failing export logs a line with the date
# sphinx_gallery_end_ignore
try:
    with redirect_stderr(io.StringIO()):  # the unfinished graph is printed there
        torch.export.export(branch, (x,))
except RuntimeError as error:
    lines = [line.strip() for line in str(error).splitlines()]
    culprit = next(line for line in lines if line.startswith("if "))
    print(textwrap.fill(f"{type(error).__name__}: {lines[0]}", 88))
    print(f"...\nThe following call raised this error:\n...\n{culprit}")
    assert "Could not guard on data-dependent expression" in lines[0]
    assert "The following call raised this error:" in lines

# sphinx_gallery_start_ignore
logging.disable(logging.NOTSET)
# sphinx_gallery_end_ignore

# %%
# ``u0`` is the name that the capture gave to a number it cannot know: the outcome of ``x.sum() > 0``. The fake tensor
# has no data, so there is nothing to compare. One side could be captured, but then the graph would be wrong for
# inputs that take the other. ``torch.export`` refuses rather than guess.

# %%
# torch.cond: both sides in one graph
# -----------------------------------
# ``torch.cond`` takes the condition, one function for each side, and their arguments. Both sides are captured, as
# graphs inside the graph, and the decision is left to the moment when it runs.


class WithCond(nn.Module):
    def forward(self, x):
        return torch.cond(x.sum() > 0, torch.sin, torch.cos, (x,))


with_cond = torch.export.export(WithCond(), (x,))

for name, graph in with_cond.graph_module.named_modules():
    targets = [node.target for node in graph.graph.nodes if node.op == "call_function"]
    print(f"{name or 'the graph':<14}", ", ".join(str(t) for t in targets[:3]))

for value in (x, -x):
    assert torch.equal(with_cond.module()(value), branch(value))

# sphinx_gallery_start_ignore
for part, operator in [
    ("true_graph_0", "aten.sin.default"),
    ("false_graph_0", "aten.cos.default"),
]:
    nodes = getattr(with_cond.graph_module, part).graph.nodes
    assert [str(n.target) for n in nodes if n.op == "call_function"] == [operator]
# sphinx_gallery_end_ignore

# %%
# The same module runs without an export too. Autograd then records one node for the whole ``cond``, whichever side
# was taken, and the gradient is the one of that side. (The reference calls ``torch.cond`` a prototype.)

value = WithCond()(x)
(gradient,) = torch.autograd.grad(value.sum(), x)
(by_branch,) = torch.autograd.grad(branch(x).sum(), x)

print("grad_fn: ", type(value.grad_fn).__name__)
print("gradient:", gradient)
print("by if:   ", by_branch)
assert torch.equal(gradient, by_branch)

# sphinx_gallery_start_ignore
negative = WithCond()(-x)
(other,) = torch.autograd.grad(negative.sum(), x)
assert torch.equal(other, torch.autograd.grad(branch(-x).sum(), x)[0])
assert type(negative.grad_fn) is type(value.grad_fn)
# sphinx_gallery_end_ignore

# %%
# torch.compile: a capture for each case
# --------------------------------------
# ``torch.compile`` captures the graph when the function is called, and notes under which conditions it holds: the
# *guards*. Where it cannot capture, as at this ``if``, it breaks the graph in two and lets Python decide. Where a
# guard fails, it captures again. The backend below receives each captured graph, lists its operations, and runs it as
# it is.

captured = []


def backend(graph, inputs):
    calls = [node.name for node in graph.graph.nodes if node.op.startswith("call")]
    captured.append(calls)
    return graph.forward


compiled = torch.compile(branch, backend=backend)
data = x.detach()
for name, value in (("x", data), ("x", data), ("-x", -data)):
    before = len(captured)
    assert torch.equal(compiled(value), branch(value))
    print(f"{name:>2}: captured {captured[before:]}")
assert captured == [["sum_1", "gt"], ["sin"], ["cos"]]

# %%
# The second call captured nothing: the guards held. A backend that compiles captures the backward pass too, and
# autograd records one node for the whole of a graph. ``aot_eager`` does so without a compiler:

value = torch.compile(branch, backend="aot_eager")(x)
(gradient,) = torch.autograd.grad(value.sum(), x)
print("grad_fn:", type(value.grad_fn).__name__)
assert torch.equal(gradient, by_branch)

# sphinx_gallery_start_ignore
assert [node.variable is x for node, _ in value.grad_fn.next_functions] == [True]
torch.compiler.reset()
# sphinx_gallery_end_ignore

# %%
# What people get wrong
# ---------------------
# **Changing a Python number after the capture.** The number is copied into the graph. The captured function goes on
# with the old one, and raises no error.


class Scale(nn.Module):
    def __init__(self):
        super().__init__()
        self.number = 2.0
        self.register_buffer("tensor", torch.tensor(2.0))

    def forward(self, x):
        return x * self.number, x * self.tensor


scale = Scale()
captured = torch.fx.symbolic_trace(scale)
scale.number = 3.0
scale.tensor.fill_(3.0)

one = torch.tensor(1.0)
print("eager:   ", [t.item() for t in scale(one)])
print("captured:", [t.item() for t in captured(one)])

# sphinx_gallery_start_ignore
assert [t.item() for t in scale(one)] == [3, 3]
assert [t.item() for t in captured(one)] == [2, 3]
# sphinx_gallery_end_ignore

# %%
# A tensor is looked up whenever the graph runs. What may change later belongs in a buffer or a parameter.
#
# **Expecting a different shape to work.** ``torch.export`` fixes every size that it was not told to leave open.

x4, w4 = torch.ones(4), torch.ones(4)
try:
    exported.module()(x4, w4)
except AssertionError as error:
    print(f"AssertionError: {error}")
    assert "x.size()[0] == 3" in str(error)

size = torch.export.Dim("size")
flexible = torch.export.export(model, (x, w), dynamic_shapes=({0: size}, {0: size}))
print(f"with a dynamic size: {flexible.module()(x4, w4).item():.4f}")

# sphinx_gallery_start_ignore
assert torch.equal(flexible.module()(x4, w4), model(x4, w4))
assert torch.equal(flexible.module()(x, w), model(x, w))
# sphinx_gallery_end_ignore

# %%
# **Calling other frameworks static.** Notes that compare PyTorch's dynamic graphs with TensorFlow's static ones are
# about TensorFlow 1. Since version 2, TensorFlow `executes eagerly by default
# <https://www.tensorflow.org/api_docs/python/tf/compat/v1/enable_eager_execution>`__, and `Keras 3
# <https://keras.io/keras_3/>`__ runs on top of TensorFlow 2, JAX or PyTorch.

# %%
# Exercise
# --------
# Write ``Branch`` without ``if`` and without ``torch.cond``, so that ``torch.export`` accepts it. What does it cost?
# Look at the graph that autograd records.
#
# .. solution::
#
# ``torch.where`` chooses between two results, so there is no decision in Python. Both sides are computed in every
# call, and both are in the autograd graph.


class Where(nn.Module):
    def forward(self, x):
        return torch.where(x.sum() > 0, torch.sin(x), torch.cos(x))


where = torch.export.export(Where(), (x,)).module()
print([node.name() for node, _ in where(x).grad_fn.next_functions])

assert torch.equal(where(x), branch(x)) and torch.equal(where(-x), branch(-x))

# sphinx_gallery_start_ignore
assert where(x).grad_fn.name() == "WhereBackward0"
names = [node.name() for node, _ in where(x).grad_fn.next_functions]
assert names == ["SinBackward0", "CosBackward0"]
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - Before: :ref:`sphx_glr_gallery_graphs_dynamic_graphs.py`, what autograd records of ``if`` and ``for``.
# - Next: :ref:`sphx_glr_gallery_graphs_graph_lifetime.py`, when a recorded graph is freed.
# - :ref:`sphx_glr_gallery_differentiation_points_without_a_derivative.py`, ``torch.where`` and the gradient of the
#   side not taken.
# - In PyTorch's reference: `torch.export
#   <https://docs.pytorch.org/docs/stable/user_guide/torch_compiler/export.html>`__, `torch.fx
#   <https://docs.pytorch.org/docs/stable/fx.html>`__, `torch.cond
#   <https://docs.pytorch.org/docs/stable/higher_order_ops/cond.html>`__ and `torch.compile
#   <https://docs.pytorch.org/docs/stable/generated/torch.compile.html>`__.
