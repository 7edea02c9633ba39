r"""
Static and dynamic graphs: compile, export, fx
==============================================

.. in-short::

   *Eager* PyTorch, which runs your code line by line, records a new autograd graph in each call: a *dynamic* graph.
   ``torch.fx``, ``torch.export`` and ``torch.compile`` capture a *static* graph, which then runs in place of your code. So a
   changed number may have no effect, and an ``if`` on data or a second derivative may raise an error. ``torch.fx`` and
   ``torch.export`` can lose the ``backward`` of an ``autograd.Function``.
"""

# %%
# The problem: your Python code does not run
# ------------------------------------------
# You append to a list in ``forward``, change ``self.number``, or pass a batch of a different size. In eager PyTorch this works.
# After a capture it may have no effect, or raise an error:

import torch
from torch import nn

calls = []


class Scale(nn.Module):
    def __init__(self):
        super().__init__()
        self.number = 2.0
        self.register_buffer("tensor", torch.tensor(2.0))

    def forward(self, x):
        return torch.sin(x) * self.number * self.tensor


class Appends(Scale):  # apart from Scale: torch.compile also guards the length of calls
    def forward(self, x):
        calls.append(type(x).__name__)
        return super().forward(x)


class Branch(nn.Module):
    def forward(self, x):
        if x.sum() > 0:
            return torch.sin(x)
        return torch.cos(x)


def ones(size=3):
    return torch.ones(size, requires_grad=True)


module = Scale()
captured = torch.fx.symbolic_trace(module)
module.number = 3.0
print("follows the new number:", torch.equal(captured(ones()), module(ones())))

# sphinx_gallery_start_ignore
assert not torch.equal(captured(ones()), module(ones()))
# sphinx_gallery_end_ignore

# %%
# The captured program still multiplies by 2.
#
# .. how-measured:: The modules run in eager PyTorch and after each capture, for torch.compile with the backend "aot_eager".

import contextlib
import io

import pandas as pd


def compiled(module, x):
    torch.compiler.reset()
    return torch.compile(module, backend="aot_eager")


CAPTURES = {
    "eager": lambda module, x: module,
    "torch.fx": lambda module, x: torch.fx.symbolic_trace(module),
    "torch.export": lambda module, x: torch.export.export(module, (x,)).module(),
    "torch.compile": compiled,
}


def python_runs(capture):
    calls.clear()
    captured = capture(Appends(), ones())
    in_calls = [(captured(ones()), len(calls))[1] for _ in range(3)]
    if in_calls[0] == in_calls[1] == in_calls[2]:
        return "at the capture only"
    return "in each call" if in_calls == [1, 2, 3] else "something else"


def after(change):
    """Whether a captured module follows a change of the original module."""

    def measure(capture):
        module = Scale()
        captured = capture(module, ones())
        before = captured(ones())
        change(module)
        return "new value" if not torch.equal(before, captured(ones())) else "old value"

    return measure


def set_number(module):
    module.number = 3.0


def fill_tensor(module):
    module.tensor.fill_(3.0)


def replace_tensor(module):
    module.tensor = torch.tensor(3.0)


def outcome(work):
    """What a capture allows: ``work`` returns whether the values are right."""

    def measure(capture):
        try:
            right = work(capture)
        except (torch.fx.proxy.TraceError, RuntimeError, AssertionError) as error:
            errors.append((work.__name__, error))
            return "an error"
        return "works" if right else "a wrong value"

    return measure


def other_size(capture):
    captured = capture(Scale(), ones(3))
    captured(ones(3))
    return captured(ones(4)).shape == (4,)


def an_if(capture):
    captured = capture(Branch(), ones())
    plus, minus = ones(), torch.full((3,), -1.0, requires_grad=True)
    sides = captured(plus), captured(minus)
    return all(map(torch.equal, sides, (plus.sin(), minus.cos())))


def first_gradient(capture):
    x = ones()
    (gradient,) = torch.autograd.grad(capture(Scale(), x)(x).sum(), x)
    return torch.allclose(gradient, 4 * x.cos())


def second_gradient(capture):
    x = ones()
    value = capture(Scale(), x)(x).sum()
    (gradient,) = torch.autograd.grad(value, x, create_graph=True)
    (second,) = torch.autograd.grad(gradient.sum(), x)
    return torch.allclose(second, -4 * x.sin())


ROWS = {
    "calls.append(...) in forward": python_runs,
    "module.number = 3.0": after(set_number),
    "module.tensor.fill_(3.0)": after(fill_tensor),
    "module.tensor = a new one": after(replace_tensor),
    "an input of a different size": outcome(other_size),
    "an if on the data": outcome(an_if),
    "first derivative": outcome(first_gradient),
    "second derivative": outcome(second_gradient),
}

errors = []


def tabulate_captures():
    columns = {}
    with contextlib.redirect_stderr(io.StringIO()):  # the unfinished graph goes there
        for name, capture in CAPTURES.items():
            columns[name] = [measure(capture) for measure in ROWS.values()]
    return pd.DataFrame(columns, index=list(ROWS))


# %%
# Each row is something you may do:

# sphinx_gallery_start_ignore
import logging

logging.disable(logging.WARNING)  # the failing export logs a line with the date
# sphinx_gallery_end_ignore
effects = tabulate_captures()
# sphinx_gallery_start_ignore
logging.disable(logging.NOTSET)
assert list(effects.loc["calls.append(...) in forward"]) == [
    "in each call",
    *["at the capture only"] * 2,
    "in each call",
]
assert list(effects.loc["module.number = 3.0"]) == [
    "new value",
    *["old value"] * 2,
    "new value",
]
assert set(effects.loc["module.tensor.fill_(3.0)"]) == {"new value"}
assert list(effects.loc["module.tensor = a new one"]) == [
    "new value",
    *["old value"] * 2,
    "new value",
]
assert list(effects.loc["an input of a different size"]) == [
    "works",
    "works",
    "an error",
    "works",
]
captured_graphs = []


def counting(graph, inputs):
    captured_graphs.append(graph)
    return graph


torch.compiler.reset()
module = Scale()
late = torch.compile(module, backend=counting)
for number, size, graphs in ((2.0, 3, 1), (2.0, 3, 1), (3.0, 3, 2), (3.0, 4, 3)):
    module.number = number
    late(ones(size))
    assert len(captured_graphs) == graphs
torch.compiler.reset()
captured_graphs.clear()
calls.clear()
late = torch.compile(Appends(), backend=counting)
for number in (1, 2, 3, 4):  # each append is a capture
    late(ones())
    assert len(calls) == len(captured_graphs) == number
calls.clear()
with torch._dynamo.config.patch(recompile_limit=4):
    logging.disable(logging.WARNING)
    torch.compiler.reset()
    captured_graphs.clear()
    for _ in range(6):
        late(ones())
    logging.disable(logging.NOTSET)
assert len(calls) == 6 and len(captured_graphs) == 4
torch.compiler.reset()
inner = nn.Sequential(nn.Sequential(nn.Linear(3, 3)))
late, again = torch.compile(inner, backend=counting), []
late(torch.ones(2, 3))
inner[0][0].register_forward_hook(lambda *_: again.append("ran"))
late(torch.ones(2, 3))
assert not again
late(torch.ones(5, 3))  # another size: captured again
assert again == ["ran"]
assert {work for work, _ in errors} == {"other_size", "an_if", "second_gradient"}
ifs = ["works", "an error", "an error", "works"]
assert list(effects.loc["an if on the data"]) == ifs
assert set(effects.loc["first derivative"]) == {"works"}
assert list(effects.loc["second derivative"]) == [
    "works",
    "works",
    "works",
    "an error",
]
# sphinx_gallery_end_ignore
effects

# %%
# ``torch.fx`` and ``torch.export`` captured once. ``torch.compile`` is closest to eager PyTorch, because it checks conditions
# before each call, the *guards*. The new number and the new size each broke one, so it captured again. So did each append to
# ``calls``, up to the :ref:`limit of captures <sphx_glr_gallery_errors_recompile_limit.py>`. But some changes are unguarded: in
# a test, a forward hook registered after the first call ran only after the next capture.

# %%
# Why: what a capture keeps
# -------------------------
# ``torch.fx`` calls ``forward`` once, with a stand-in that has no values: a ``Proxy``. The sine and the two products become
# lines of a new program. ``calls.append`` happened once, outside of that program. A ``with torch.no_grad():`` in ``forward`` is
# lost, too, so gradients can silently change.

calls.clear()
captured = torch.fx.symbolic_trace(Appends())
print(captured.code.strip())
print("forward ran on:", calls)

# sphinx_gallery_start_ignore
assert calls == ["Proxy"] and "calls" not in captured.code and "2.0" in captured.code
assert captured.code.count("sin") >= 1 and captured.code.count(" * ") == 2
calls.clear()
CAPTURES["torch.export"](Appends(), ones())
assert set(calls) == {"FakeTensor"}


class Constant(nn.Module):
    def forward(self, x):
        with torch.no_grad():
            factor = 2 * x
        return x * factor


x = ones()
for capture, slope in zip(CAPTURES, (2, 4, 2, 2), strict=True):
    result = CAPTURES[capture](Constant(), ones())(x).sum()
    assert torch.autograd.grad(result, x)[0].tolist() == [slope] * 3, capture
# sphinx_gallery_end_ignore

# %%
# ``torch.export`` runs ``forward`` on a ``FakeTensor``, which has a shape and a dtype but no data. So it cannot decide the
# ``if`` of ``Branch``, and raises an error instead of guessing:

# sphinx_gallery_start_ignore
logging.disable(logging.WARNING)
_quiet = contextlib.redirect_stderr(io.StringIO())
_quiet.__enter__()
# sphinx_gallery_end_ignore
try:
    torch.export.export(Branch(), (ones(),))
except RuntimeError as error:
    message = str(error).splitlines()[0]
    print(f"{type(error).__name__}: {message}")

# sphinx_gallery_start_ignore
_quiet.__exit__(None, None, None)
logging.disable(logging.NOTSET)
assert "Could not guard on data-dependent expression" in message
# sphinx_gallery_end_ignore

# %%
# Two ways around it: ``torch.cond(condition, if_true, if_false, (x,))`` puts both sides into the graph and decides when the
# graph runs, and ``torch.where`` computes both sides and chooses. For a second derivative take ``torch.where``: with
# ``torch.cond``, it :ref:`is missing <sphx_glr_gallery_graphs_loops_as_operators.py>`. ``torch.compile`` breaks the graph of
# ``Branch`` at the ``if`` and lets Python decide.


class WithCond(nn.Module):
    def forward(self, x):
        return torch.cond(x.sum() > 0, torch.sin, torch.cos, (x,))


both = torch.export.export(WithCond(), (ones(),)).module()
for x in (torch.ones(3), -torch.ones(3)):
    assert torch.equal(both(x), Branch()(x))

# sphinx_gallery_start_ignore
from torch._dynamo.exc import Unsupported

raised = []
try:
    with contextlib.redirect_stderr(io.StringIO()):
        torch.compile(Branch(), backend="eager", fullgraph=True)(ones())
except Unsupported:
    raised.append("a graph break")
assert raised == ["a graph break"]
torch.compiler.reset()
captured_graphs.clear()
torch.compile(Branch(), backend=counting)(torch.ones(3))
assert len(captured_graphs) == 2
assert "sum_1" in captured_graphs[0].code and "torch.sin" in captured_graphs[1].code
torch.compiler.reset()
x = ones()
(slope,) = torch.autograd.grad(both(x).sum(), x, create_graph=True)
assert torch.equal(slope, x.cos()) and not slope.requires_grad
# sphinx_gallery_end_ignore

# %%
# The captured graph and the autograd graph
# -----------------------------------------
# The exported graph describes the forward pass. When it runs on a tensor that requires grad, autograd records a second graph.
# For ``Scale`` it has the same nodes as in eager PyTorch:

x = ones()
captured_result = torch.export.export(Scale(), (x,)).module()(x)
eager_result = Scale()(x)

# graph: captured_result -- What autograd records while the exported module runs: the same nodes as in eager PyTorch


# sphinx_gallery_start_ignore
def names(node):
    return [node.name(), *(names(n) for n, _ in node.next_functions if n)]


assert names(captured_result.grad_fn) == names(eager_result.grad_fn)
# sphinx_gallery_end_ignore

# %%
# After this ``torch.compile``, autograd records *one* node for the whole graph:

result = torch.compile(Scale(), backend="aot_eager")(x)
print(type(result.grad_fn).__name__)

# sphinx_gallery_start_ignore
assert type(result.grad_fn).__name__ == "CompiledFunctionBackward"
assert not [
    n for n, _ in result.grad_fn.next_functions if n and not hasattr(n, "variable")
]
plain = torch.compile(Scale(), backend="eager")
assert names(plain(x).grad_fn) == names(eager_result.grad_fn)
torch.compiler.reset()
# sphinx_gallery_end_ignore

# %%
# TorchScript (``torch.jit.script``, ``torch.jit.trace``) is deprecated.

# sphinx_gallery_start_ignore
import warnings

for _make in (torch.jit.script, lambda module: torch.jit.trace(module, ones())):
    with warnings.catch_warnings(record=True) as _caught:
        warnings.simplefilter("always")
        _make(torch.nn.ReLU())
    assert any("is deprecated" in str(entry.message) for entry in _caught)
# sphinx_gallery_end_ignore

# %%
# What people get wrong
# ---------------------
# **Changing a Python number after fx or export.** The number of ``Scale`` was copied, so the captured module silently
# keeps the old value. ``self.training`` in ``forward`` is copied, too, so call ``eval()`` before. Put a value that will change
# into a parameter of the module, with ``requires_grad=False`` if you do not train it, and change it *in place*. In a buffer the
# change can be lost, because ``torch.fx`` computes ``self.number * self.tensor`` once, at the capture.
#
# The captured module sees ``fill_``, ``copy_`` and ``load_state_dict``. It misses a new tensor in the old one's place, and with
# it ``load_state_dict(..., assign=True)``:

module = Scale()
captured = torch.fx.symbolic_trace(module)

module.load_state_dict({"tensor": torch.tensor(3.0)})
print("load_state_dict:", torch.equal(captured(ones()), module(ones())))
module.tensor = torch.tensor(5.0)
print("a new tensor:   ", torch.equal(captured(ones()), module(ones())))

# sphinx_gallery_start_ignore
assert not torch.equal(captured(ones()), module(ones()))
module = Scale()
captured = torch.export.export(module, (ones(),)).module()
module.load_state_dict({"tensor": torch.tensor(3.0)})
assert torch.equal(captured(ones()), module(ones()))
for capture in ("torch.fx", "torch.export"):
    module = Scale()
    captured = CAPTURES[capture](module, ones())
    module.load_state_dict({"tensor": torch.tensor(3.0)}, assign=True)
    assert not torch.equal(captured(ones()), module(ones()))
    module.load_state_dict({"tensor": torch.tensor(3.0)})
    captured = CAPTURES[capture](module, ones())
    module.tensor.copy_(torch.tensor(4.0))
    assert torch.equal(captured(ones()), module(ones()))


class Product(Scale):
    def forward(self, x):
        return torch.sin(x) * (self.number * self.tensor)


class ProductOfParameter(Product):
    def __init__(self):
        super().__init__()
        del self.tensor
        self.tensor = nn.Parameter(torch.tensor(2.0), requires_grad=False)


follows = {}
for kind in (Product, ProductOfParameter):
    for capture in ("torch.fx", "torch.export"):
        module = kind()
        captured = CAPTURES[capture](module, ones())
        assert torch.equal(captured(ones()), module(ones()))
        module.tensor.fill_(3.0)
        follows[kind, capture] = torch.equal(captured(ones()), module(ones()))
assert [key for key, does in follows.items() if not does] == [(Product, "torch.fx")]


class Drops(nn.Module):
    def forward(self, x):
        return nn.functional.dropout(x, training=self.training)


for capture in ("torch.fx", "torch.export"):
    module = Drops()
    captured, evaluated = (
        CAPTURES[capture](m, ones(64)) for m in (module, Drops().eval())
    )
    module.eval()
    if capture == "torch.fx":  # a module of torch.export refuses eval()
        captured.eval()
    assert (captured(ones(64)) == 0).any() and torch.equal(
        evaluated(ones(64)), ones(64)
    )
# sphinx_gallery_end_ignore

# %%
# **A different size after export.** ``torch.export`` has fixed the size 3 of the input. Name a size that will change as
# dynamic. Its example should be at least 2: with size 1, this export raises an error.

exported = torch.export.export(Scale(), (ones(3),)).module()
try:
    exported(ones(4))
except AssertionError as error:
    message = str(error)
    print(f"AssertionError: {message}")

sizes = ({0: torch.export.Dim("size")},)
flexible = torch.export.export(Scale(), (ones(3),), dynamic_shapes=sizes).module()
print("with a dynamic size:", flexible(ones(4)).shape)

# sphinx_gallery_start_ignore
assert "x.size()[0] == 3" in message
assert torch.equal(flexible(ones(4)), Scale()(ones(4)))
exports = {}
logging.disable(logging.ERROR)
for size in (1, 2):
    try:
        exports[size] = torch.export.export(
            Scale(), (ones(size),), dynamic_shapes=sizes
        ).module()
    except (RuntimeError, ValueError) as error:
        exports[size] = str(error)
logging.disable(logging.NOTSET)
assert isinstance(exports[1], str) and exports[2](ones(4)).shape == (4,)
# sphinx_gallery_end_ignore

# %%
# **A gradient of a gradient through** ``torch.compile``. The backward pass is captured too, and cannot be differentiated. For a
# gradient penalty, take the first gradient *inside* the compiled function, with ``torch.func.grad``.

x = ones()
value = torch.compile(Scale(), backend="aot_eager")(x).sum()
(gradient,) = torch.autograd.grad(value, x, create_graph=True)
try:
    gradient.sum().backward()
except RuntimeError as error:
    message = str(error)
    print(f"RuntimeError: {message}")

inside = torch.func.grad(lambda x: Scale()(x).sum())
torch.compile(inside, backend="aot_eager")(x).sum().backward()
print("second derivative:", x.grad)

# sphinx_gallery_start_ignore
assert "aot_autograd does not currently support double backward" in message
assert torch.allclose(x.grad, -4 * torch.ones(3).sin())
_critic = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
_slopes = torch.func.grad(lambda x: _critic(x).sum())
_penalties = [
    (slopes(torch.ones(2, 3)).norm(dim=1) - 1).square().mean()
    for slopes in (_slopes, torch.compile(_slopes, backend="aot_eager"))
]
_weights = [layer.weight for layer in (_critic[0], _critic[2])]
for _pair in zip(*(torch.autograd.grad(p, _weights) for p in _penalties), strict=True):
    assert torch.allclose(*_pair)
# sphinx_gallery_end_ignore

# %%
# **Your own backward.** Tried with a small ``autograd.Function``: ``torch.fx`` and ``torch.export`` wrote down what its
# ``forward`` computes, and lost its ``backward``. So the gradient silently changed. ``torch.compile`` kept it, but in PyTorch
# 2.13 lost it inside ``torch.func.grad``. A :ref:`custom operator <sphx_glr_gallery_functions_custom_operator.py>`
# with the same ``backward`` kept it in all three captures.


# sphinx_gallery_start_ignore
class Reversed(torch.autograd.Function):
    @staticmethod
    def forward(x):
        return torch.sin(x)

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, gradient):
        return -gradient


@torch.library.custom_op("atlas_captures::reversed_sine", mutates_args=())
def reversed_sine(x: torch.Tensor) -> torch.Tensor:
    return torch.sin(x)


@reversed_sine.register_fake
def _(x):
    return torch.empty_like(x)


reversed_sine.register_autograd(
    lambda ctx, gradient: -gradient, setup_context=lambda ctx, inputs, output: None
)


class Applies(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x) * 2


def slope_after(capture, function):
    x = ones()
    result = CAPTURES[capture](Applies(function), ones())(x)
    return torch.autograd.grad(result.sum(), x)[0]


own, plain_sine = torch.full((3,), -2.0), 2 * torch.ones(3).cos()
for capture in CAPTURES:
    lost = capture in ("torch.fx", "torch.export")
    slope = slope_after(capture, Reversed.apply)
    assert torch.allclose(slope, plain_sine if lost else own), capture
    assert torch.equal(slope_after(capture, reversed_sine), own), capture
inside = torch.func.grad(lambda x: Reversed.apply(x).sum())
assert torch.equal(inside(torch.ones(3)), own / 2)
torch.compiler.reset()
slope = torch.compile(inside, backend="aot_eager")(torch.ones(3))
_lost = torch.allclose(slope, plain_sine / 2)
assert _lost or torch.allclose(slope, own / 2)
assert _lost or not torch.__version__.startswith("2.13.")
torch.compiler.reset()
# sphinx_gallery_end_ignore

# %%
# Exercise
# --------
# Write ``Branch`` without ``if`` and without ``torch.cond``, so that ``torch.export`` accepts it. What does it cost?
# Look at the nodes that autograd records.
#
# .. solution::
#
# ``torch.where`` chooses between two results, so Python decides nothing. Both sides are computed, and both are in the autograd
# graph.


class Where(nn.Module):
    def forward(self, x):
        return torch.where(x.sum() > 0, torch.sin(x), torch.cos(x))


where = torch.export.export(Where(), (ones(),)).module()
chosen = where(ones())
print([node.name() for node, _ in chosen.grad_fn.next_functions])

assert torch.equal(chosen, Branch()(ones()))
assert torch.equal(where(-ones()), Branch()(-ones()))

# sphinx_gallery_start_ignore
assert [n.name() for n, _ in chosen.grad_fn.next_functions] == [
    "SinBackward0",
    "CosBackward0",
]
x = ones()
(slope,) = torch.autograd.grad(where(x).sum(), x, create_graph=True)
assert torch.allclose(torch.autograd.grad(slope.sum(), x)[0], -x.sin())
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_graphs_dynamic_graphs.py`: what autograd records of ``if`` and ``for``.
# - :ref:`sphx_glr_gallery_graphs_loops_as_operators.py`: gradients of ``torch.cond``, ``torch.while_loop`` and ``scan``.
# - :ref:`sphx_glr_gallery_differentiation_points_without_a_derivative.py`: ``torch.where`` and the gradient of the side
#   that is not taken.
# - In PyTorch's reference: `torch.compile
#   <https://docs.pytorch.org/docs/stable/generated/torch.compile.html>`__, `torch.export
#   <https://docs.pytorch.org/docs/stable/user_guide/torch_compiler/export.html>`__, `torch.fx
#   <https://docs.pytorch.org/docs/stable/fx.html>`__, `torch.cond
#   <https://docs.pytorch.org/docs/stable/higher_order_ops/cond.html>`__.
