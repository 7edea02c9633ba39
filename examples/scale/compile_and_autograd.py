r"""
torch.compile and autograd: hooks, double backward, graph breaks
================================================================

.. index::
   single: torch.compile does not currently support double backward
   single: hook does not run after torch.compile
   single: retain_grad and torch.compile, .grad is None
   single: CompiledFunctionBackward
   single: gradient is zero instead of None after torch.compile

.. in-short::

   Parameters and inputs get the gradients of eager PyTorch, up to rounding. But autograd has one node for each compiled graph,
   and sees nothing inside it. Three things change without an error: hooks on layers that come after the first call do not run,
   intermediate results get no gradient, and parameters of an unused output get zeros instead of ``None``. A gradient of a
   gradient raises. For that one call:

   .. code-block:: python

      with torch.compiler.set_stance("force_eager"):
          loss = gradient_penalty(compiled_model, x)
"""

# %%
# The same gradient, another graph
# --------------------------------
# You compile a model, and training works. Then a hook does not run, or a gradient penalty fails. The reason is in the graph
# that autograd records:

import torch


def wave(x):
    return torch.sum(torch.sin(x) * x)


compiled_wave = torch.compile(wave, backend="aot_eager")
x = torch.tensor([1.0, 2.0], requires_grad=True)
eager_value, compiled_value = wave(x), compiled_wave(x)

# graph: eager_value -- In eager PyTorch, each operation has a node
# graph: compiled_value -- Compiled, all operations together have one node

# %%
# The gradients are equal:

for value in (eager_value, compiled_value):
    print(torch.autograd.grad(value, x))

# sphinx_gallery_start_ignore
import contextlib
import io

eager_value, compiled_value = wave(x), compiled_wave(x)


def _nodes(*results):
    """The names of all nodes below the results, AccumulateGrad left out."""
    found, waiting = [], [result.grad_fn for result in results]
    while waiting:
        node = waiting.pop(0)
        if node is not None and node not in found:
            found.append(node)
            waiting += [after for after, _ in node.next_functions]
    names = [node.name() for node in found]
    return [name for name in names if not name.endswith("AccumulateGrad")]


COMPILED = "CompiledFunctionBackward"
assert _nodes(eager_value) == ["SumBackward0", "MulBackward0", "SinBackward0"]
assert _nodes(compiled_value) == [COMPILED]
(_eager,) = torch.autograd.grad(eager_value, x)
(_compiled,) = torch.autograd.grad(compiled_value, x)
assert torch.allclose(_eager, _compiled)
_plain = torch.compile(wave, backend="eager")
assert _nodes(_plain(x)) == _nodes(eager_value)
# sphinx_gallery_end_ignore

# %%
# Why: backward is recorded at the first call
# -------------------------------------------
# ``torch.compile`` runs your function once with tensors that have no values, and records its operations. AOTAutograd, a part
# of it, derives the backward from that record. Later calls run these two graphs, forward and backward, and not your Python
# code. Autograd gets one node, ``CompiledFunctionBackward``, which runs the second graph.
#
# This page uses ``backend="aot_eager"``, which stops there and needs no compiler. The default backend goes on, and makes
# kernels of the graphs. With ``backend="eager"`` there is no AOTAutograd, and the nodes are those of eager PyTorch.

# %%
# What people get wrong
# ---------------------
# **Registering a hook after the first call.** Then a hook on a layer does not run, and nothing tells you (asked in
# `pytorch#117758 <https://github.com/pytorch/pytorch/issues/117758>`__).
#
# .. how-measured:: Five hooks are registered before the first call of a compiled model, or after it; this notes which ones run.

import warnings

import pandas as pd
from torch import nn

warnings.filterwarnings("ignore", "The .grad attribute of a Tensor")  # while compiling
HOOKS = {
    "forward, on a layer": lambda model, compiled: model[0].register_forward_hook,
    "full backward, on a layer": lambda m, _: m[0].register_full_backward_hook,
    "forward, on the compiled model": lambda _, compiled: (
        compiled.register_forward_hook
    ),
    "full backward, on the compiled model": (
        lambda _, compiled: compiled.register_full_backward_hook
    ),
    "on a parameter": lambda model, compiled: model[0].weight.register_hook,
}


def hooks_that_run(late, hooks=tuple(HOOKS)):
    torch.compiler.reset()
    model, ran = nn.Sequential(nn.Linear(3, 3), nn.Tanh()), set()
    compiled = torch.compile(model, backend="aot_eager")
    batch = torch.ones(2, 3, requires_grad=True)
    if late:
        compiled(batch)
    for name in hooks:
        HOOKS[name](model, compiled)(lambda *_, name=name: ran.add(name))
    compiled(batch).sum().backward()
    return ["runs" if name in ran else "" for name in hooks]


# %%
# Which hooks run, if they are registered before or after the first call:

runs = pd.DataFrame(
    {"before": hooks_that_run(late=False), "after": hooks_that_run(late=True)},
    index=list(HOOKS),
)

# sphinx_gallery_start_ignore
assert (runs == "runs").to_numpy().tolist() == [
    [True, False],
    [True, False],
    [True, True],
    [False, False],
    [True, True],
]


def _late_then(action, rows=2):
    """Whether a hook that came after the first call runs, after an action of yours."""
    torch.compiler.reset()
    layers, ran = nn.Sequential(nn.Linear(3, 3), nn.Tanh()), []
    compiled = torch.compile(layers, backend="aot_eager")
    compiled(torch.ones(2, 3))
    layers[0].register_forward_hook(lambda *_: ran.append(1))
    action()
    compiled(torch.ones(rows, 3))
    return bool(ran)


assert not _late_then(lambda: None) and _late_then(torch.compiler.reset)
assert _late_then(lambda: None, rows=5)
assert hooks_that_run(False, ["full backward, on the compiled model"]) == [""]
assert hooks_that_run(False, ["full backward, on a layer"]) == ["runs"]


def _nodes_with(register):
    torch.compiler.reset()
    layers = nn.Sequential(nn.Linear(3, 3), nn.Tanh())
    register(layers[0])
    compiled = torch.compile(layers, backend="aot_eager")
    return _nodes(compiled(torch.ones(2, 3, requires_grad=True)))


assert COMPILED not in _nodes_with(
    lambda layer: layer.register_full_backward_hook(lambda *_: None)
)
assert _nodes_with(lambda layer: layer.register_forward_hook(lambda *_: None)) == [
    COMPILED
]
_ran = []
_layers = nn.Sequential(nn.Linear(3, 3), nn.Tanh())
_compiled = torch.compile(_layers, backend="aot_eager")
_compiled(torch.ones(2, 3))
_layers[0].register_full_backward_hook(lambda *_: _ran.append("full backward"))
with torch.compiler.set_stance("force_eager"):
    _compiled(torch.ones(2, 3, requires_grad=True)).sum().backward()
assert _ran == ["full backward"]
# sphinx_gallery_end_ignore
runs

# %%
# Register hooks on layers before the first call, or call ``torch.compiler.reset()`` afterwards: then the next call compiles
# anew, and the hooks run. (An input of another shape compiled anew here, too.) A hook on a parameter runs in both cases, since
# parameters lie outside of the compiled node.
#
# A *full backward* hook has a price: with it, the whole ``nn.Sequential`` above runs uncompiled, without a message. On the
# compiled model itself, it did not run at all here. If you only want to look at gradients once, register your hooks and call
# the model under ``torch.compiler.set_stance("force_eager")``.

# %%
# **Asking for the gradient of something inside.** Here the model keeps its features, as for Grad-CAM:


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(3, 2), nn.Linear(2, 1)

    def forward(self, x):
        self.features = torch.tanh(self.body(x))
        return self.head(self.features).sum()


torch.manual_seed(0)
net = Net()
compiled_net = torch.compile(net, backend="aot_eager")
for model in (net, compiled_net):
    value = model(torch.ones(1, 3))
    net.features.retain_grad()
    value.backward()
    print(net.features.grad)

# sphinx_gallery_start_ignore
assert net.features.grad is None
value = net(torch.ones(1, 3))
net.features.retain_grad()
value.backward()
assert torch.allclose(net.features.grad, net.head.weight)
_got, _raised = [], []
value = compiled_net(torch.ones(1, 3))
try:
    torch.autograd.grad(value, net.features)
except RuntimeError as error:
    _raised.append(str(error))
assert len(_raised) == 1
assert "appears to not have been used in the graph" in _raised[0]
value = compiled_net(torch.ones(1, 3))
net.features.register_hook(_got.append)
value.backward()
assert _got == [None]
assert _nodes(value) == [COMPILED] and net.features.grad_fn is value.grad_fn


def _retain(x):
    inside = torch.sin(x)
    inside.retain_grad()
    return torch.exp(inside).sum(), inside


value, inside = torch.compile(_retain, backend="aot_eager")(x)
value.backward()
assert inside.grad is not None and COMPILED not in _nodes(value)
_raised = []
torch.compiler.reset()
try:
    torch.compile(_retain, backend="aot_eager", fullgraph=True)(x)
except torch._dynamo.exc.Unsupported as error:
    _raised.append(str(error))
assert len(_raised) == 1 and "retain_grad" in _raised[0]
# sphinx_gallery_end_ignore

# %%
# ``features`` and ``value`` are two results of one node, so the way from one to the other is hidden in it. ``.grad`` stays
# ``None``, a hook on ``features`` gets ``None``, and ``torch.autograd.grad(value, net.features)`` raises *appears to not have
# been used in the graph*. With ``retain_grad()`` *inside* a compiled function the gradient comes, but that function ran
# uncompiled here; ``fullgraph=True`` tells you so by an error (asked in `pytorch#91468
# <https://github.com/pytorch/pytorch/issues/91468>`__).

# %%
# **Counting on None for what is not used.** A model has two results, and the loss uses one. In eager PyTorch, the other head
# gets no gradient, and the optimizer skips it. These are the norms of its weight, before and after ten steps:


class TwoHeads(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(3, 1), nn.Linear(3, 1)

    def forward(self, x):
        return self.first(x), self.second(x)


for compiled in (False, True):
    torch.manual_seed(0)
    net = TwoHeads()
    model = torch.compile(net, backend="aot_eager") if compiled else net
    optimizer = torch.optim.AdamW(net.parameters(), weight_decay=0.1, lr=0.1)
    norms = [net.second.weight.norm().item()]
    for _ in range(10):
        model(torch.ones(2, 3))[0].sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        norms.append(net.second.weight.norm().item())
    print(f"compiled: {compiled!s:<5}  second head: {norms[0]:.3f} -> {norms[-1]:.3f}")

# sphinx_gallery_start_ignore
assert norms[-1] < 0.95 * norms[0]
for _model, _wanted in ((net, type(None)), (model, torch.Tensor)):
    net.zero_grad()
    _model(torch.ones(2, 3))[0].sum().backward()
    assert type(net.second.weight.grad) is _wanted
assert not net.second.weight.grad.any()
net.zero_grad()
_momentum = torch.optim.SGD([net.second.weight], lr=0.1, momentum=0.9)
net.second.weight.grad = torch.ones_like(net.second.weight)
_momentum.step()
for _grad, _moves in ((None, False), (torch.zeros_like(net.second.weight), True)):
    _before, net.second.weight.grad = net.second.weight.detach().clone(), _grad
    _momentum.step()
    assert torch.equal(net.second.weight, _before) != _moves
net.zero_grad()
_first = torch.compile(lambda x: net(x)[0], backend="aot_eager")
_first(torch.ones(2, 3)).sum().backward()
assert net.second.weight.grad is None and net.first.weight.grad is not None
net.second.requires_grad_(False)
model(torch.ones(2, 3))[0].sum().backward()
assert net.second.weight.grad is None
# sphinx_gallery_end_ignore

# %%
# Compiled, the missing gradient enters the backward graph as zeros, and zeros come out (`pytorch#131794
# <https://github.com/pytorch/pytorch/issues/131794>`__ is open). AdamW then applies its weight decay. With SGD, momentum from
# earlier steps would move the weight. Return only what the loss uses, or freeze the other head.

# %%
# **A gradient of a gradient.** ``create_graph=True`` is accepted. The second backward raises:


def gradient_penalty(model, x):
    x = x.clone().requires_grad_()
    (slope,) = torch.autograd.grad(model(x).sum(), x, create_graph=True)
    return (slope.norm() - 1).square()


net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
compiled_net = torch.compile(net, backend="aot_eager")
try:
    gradient_penalty(compiled_net, torch.ones(1, 3)).backward()
except RuntimeError as error:
    message = str(error)
    print(f"RuntimeError: {message}")

with torch.compiler.set_stance("force_eager"):
    loss = gradient_penalty(compiled_net, torch.ones(1, 3))
loss.backward()

# sphinx_gallery_start_ignore
assert (
    message
    == "torch.compile with aot_autograd does not currently support double backward"
)
_with_gradient = list(net.parameters())[:3]  # the last bias does not change the slope
_grads = [p.grad for p in _with_gradient]
net.zero_grad()
gradient_penalty(net, torch.ones(1, 3)).backward()
assert all(map(torch.allclose, [p.grad for p in _with_gradient], _grads))
assert COMPILED not in _nodes(loss)
with torch.compiler.set_stance(
    "eager_on_recompile"
):  # what was compiled is still there
    assert _nodes(compiled_net(torch.ones(1, 3, requires_grad=True))) == [COMPILED]


def _inside(x):
    slope = torch.func.grad(lambda x: net(x).sum())(x)
    return (slope.norm() - 1).square()


net.zero_grad()
value = torch.compile(_inside, backend="aot_eager", fullgraph=True)(torch.ones(1, 3))
value.backward()
assert all(map(torch.allclose, [p.grad for p in _with_gradient], _grads))
# sphinx_gallery_end_ignore

# %%
# ``set_stance("force_eager")`` runs the model uncompiled for this call, and keeps what is compiled for the others. Or take the
# first gradient inside the compiled function with ``torch.func.grad``, as on :ref:`static and dynamic graphs
# <sphx_glr_gallery_graphs_static_and_dynamic.py>`.

# %%
# A node for each graph
# ---------------------
# Where ``torch.compile`` cannot go on, it ends the graph, lets Python run, and begins another: a *graph break*. Each graph has
# a node, and the tensor between them is visible again:


def in_two(x):
    inside = torch.sin(x)
    torch._dynamo.graph_break()  # as a print would do
    return torch.sum(inside * x)


value = torch.compile(in_two, backend="aot_eager")(x)

# graph: value -- A graph break leaves two nodes

# sphinx_gallery_start_ignore
assert _nodes(value) == [COMPILED, COMPILED]
_seen = []


def _visible(x):
    inside = torch.sin(x)
    torch._dynamo.graph_break()
    _seen.append(inside)
    return torch.sum(inside * x)


_value = torch.compile(_visible, backend="aot_eager")(x)
_seen[0].retain_grad()
_value.backward()
assert torch.allclose(_seen[0].grad, x)
x.grad = None
assert _nodes(compiled_wave(torch.ones(3, requires_grad=True))) == [COMPILED]


def _calls_backward(x, weight):
    loss = (x @ weight).sum()
    loss.backward()
    return loss.detach()


def _prints(x):
    inside = torch.sin(x)
    print("here")
    return torch.sum(inside * x)


with contextlib.redirect_stdout(io.StringIO()):
    assert _nodes(torch.compile(_prints, backend="aot_eager")(x)) == [COMPILED] * 2
_weight, _raised = torch.ones(2, requires_grad=True), []
torch.compile(_calls_backward, backend="aot_eager")(torch.ones(3, 2), _weight)
assert _weight.grad.tolist() == [3, 3]
torch.compiler.reset()
try:
    _whole = torch.compile(_calls_backward, backend="aot_eager", fullgraph=True)
    _whole(torch.ones(3, 2), _weight)
except torch._dynamo.exc.Unsupported as error:
    _raised.append(str(error))
assert len(_raised) == 1 and "Tensor.backward()" in _raised[0]
# sphinx_gallery_end_ignore

# %%
# A call of ``backward()`` inside the compiled function breaks the graph as well. :ref:`The page on graph breaks
# <sphx_glr_gallery_errors_data_dependent_branching.py>` finds the lines. A *recompilation* is another thing: one more
# version, with the same single node (:ref:`recompile_limit <sphx_glr_gallery_errors_recompile_limit.py>`).

# %%
# Custom functions
# ----------------
# A ``torch.autograd.Function`` is recorded, too: its ``backward`` becomes part of the backward graph, and its node is gone. If
# ``backward`` does something besides computing, here appending to a list, the graph breaks around the function and its node
# stays (`pytorch#138215 <https://github.com/pytorch/pytorch/issues/138215>`__):

log = []


class Sine(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.sin(x)

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return gradient * torch.cos(x)


class LoggedSine(Sine):
    @staticmethod
    def backward(ctx, gradient):
        log.append("backward")
        return Sine.backward(ctx, gradient)


for function in (Sine, LoggedSine):
    compiled = torch.compile(lambda x, f=function: f.apply(x) * 2, backend="aot_eager")
    result = compiled(x)
    node, _ = result.grad_fn.next_functions[0]
    print(f"{function.__name__}:", result.grad_fn.name(), "<-", node.name())

# sphinx_gallery_start_ignore
assert _nodes(compiled(x)) == [COMPILED, "LoggedSineBackward"]
# sphinx_gallery_end_ignore

# %%
# What is saved for backward
# --------------------------
# In eager PyTorch, each operation saves what its own derivative needs. A compiled graph saves what the recorded backward needs
# as a whole:
#
# .. how-measured:: A hook counts the tensors that are saved for backward.


def saved(function):
    counted = []

    def note(tensor):
        counted.append(tensor.shape)
        return tensor.detach()

    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        function(x)
    return len(counted)


# %%
# The second backend below also chooses what to compute again in place of saving it, as the default backend does:


def curve(x):
    return torch.sigmoid(torch.cos(torch.sin(x)) * torch.exp(x))


print("eager:", saved(curve))
for backend in ("aot_eager", "aot_eager_decomp_partition"):
    torch.compiler.reset()
    print(f"{backend}:", saved(torch.compile(curve, backend=backend)))

# sphinx_gallery_start_ignore
_counts = [saved(curve)]
for backend in ("aot_eager", "aot_eager_decomp_partition"):
    torch.compiler.reset()
    _counts.append(saved(torch.compile(curve, backend=backend)))
assert _counts[0] > _counts[1] > _counts[2]
# sphinx_gallery_end_ignore

# %%
# :ref:`The page on memory under torch.compile <sphx_glr_gallery_memory_memory_under_compile.py>` measures the bytes, and sets a
# budget for them.

# %%
# Exercise
# --------
# Above, the compiled ``Net`` gave no gradient of its features. Compile it in another way, so that you get the gradient and both
# layers still run compiled.
#
# .. solution::
#
# Compile two functions. Each has a node of its own, and the features between them are an ordinary result.

torch.manual_seed(0)
net = Net()
body = torch.compile(lambda x: torch.tanh(net.body(x)), backend="aot_eager")
head = torch.compile(lambda features: net.head(features).sum(), backend="aot_eager")

features = body(torch.ones(1, 3))
features.retain_grad()
value = head(features)
value.backward()
print(features.grad)

assert torch.allclose(features.grad, net.head.weight)

# sphinx_gallery_start_ignore
assert _nodes(value) == [COMPILED, COMPILED]
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - Before: :ref:`sphx_glr_gallery_practice_policy_gradient.py`, a gradient for what was sampled.
# - Next: :ref:`sphx_glr_gallery_scale_ddp_and_autograd.py`, gradients averaged over processes.
# - :ref:`sphx_glr_gallery_graphs_static_and_dynamic.py`: what ``torch.compile``, ``torch.export`` and ``torch.fx`` record.
# - :ref:`sphx_glr_gallery_differentiation_higher_order.py`: gradients of gradients in eager PyTorch.
# - :ref:`sphx_glr_gallery_differentiation_gradients_of_intermediates.py`: ``retain_grad`` and hooks in eager PyTorch.
# - In PyTorch's reference: `torch.compile has different autograd semantics
#   <https://docs.pytorch.org/docs/stable/torch.compiler_backward.html>`__ (also for autocast), `nn.Module hooks
#   <https://docs.pytorch.org/docs/stable/torch.compiler_nn_module.html>`__ and `set_stance
#   <https://docs.pytorch.org/docs/stable/generated/torch.compiler.set_stance.html>`__.
