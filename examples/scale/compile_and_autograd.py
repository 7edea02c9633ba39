r"""
torch.compile and autograd: hooks, double backward, graph breaks
================================================================

.. index::
   single: torch.compile does not currently support double backward
   single: hook does not run after torch.compile
   single: retain_grad and torch.compile, .grad is None
   single: CompiledFunctionBackward
   single: gradient is zero instead of None after torch.compile
   single: This backward function was compiled with non-empty donated buffers
   single: retain_graph=True raises after torch.compile
   single: Hessian is zero after torch.compile
   single: gradient is NaN only with torch.compile

.. in-short::

   Parameters and inputs should get the gradients of eager PyTorch, up to rounding and random numbers. But autograd has one
   node for each compiled graph, and sees nothing inside it. So, without an error, hooks that you register on layers after
   the first call are skipped, intermediate results get no gradient, and parameters of an unused output get zeros (or NaN)
   instead of ``None``. A gradient of a gradient by ``torch.autograd`` raises, or is silently zero. Run that one call
   uncompiled:

   .. code-block:: python

      with torch.compiler.set_stance("force_eager"):
          loss = gradient_penalty(compiled_model, x)
"""

# %%
# The same gradient, another graph
# --------------------------------
# You compile a model, and training works. Then a hook does not run, or a gradient penalty fails. To see why, look at the graph
# that autograd records for a loss, first in *eager* PyTorch, which is PyTorch without ``torch.compile``:

import pandas as pd
import torch
from torch import nn
from torch.nn.functional import mse_loss

batch, targets = torch.ones(4, 2), torch.zeros(4)
weight = torch.tensor([0.5, -0.2], requires_grad=True)


def get_loss(weight):
    return mse_loss(torch.tanh(batch @ weight), targets)


compiled_get_loss = torch.compile(get_loss, backend="aot_eager")
eager_loss, compiled_loss = get_loss(weight), compiled_get_loss(weight)

# graph: eager_loss -- In eager PyTorch, each operation has a node
# graph: compiled_loss -- Compiled, all operations together have one node

# %%
# The gradients are equal:

for loss in (eager_loss, compiled_loss):
    print(torch.autograd.grad(loss, weight))

# sphinx_gallery_start_ignore
import warnings

warnings.filterwarnings("ignore", "The .grad attribute of a Tensor")  # while compiling
x = torch.tensor([1.0, 2.0], requires_grad=True)
eager_loss, compiled_loss = get_loss(weight), compiled_get_loss(weight)


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
assert _nodes(eager_loss) == ["MseLossBackward0", "TanhBackward0", "MvBackward0"]
assert _nodes(compiled_loss) == [COMPILED]
(_eager,) = torch.autograd.grad(eager_loss, weight)
(_compiled,) = torch.autograd.grad(compiled_loss, weight)
assert torch.allclose(_eager, _compiled)


def _with_a_view(x):
    y = torch.sin(x)
    return y, y.view(-1, 1)


_with_a_view = torch.compile(_with_a_view, backend="aot_eager")
assert [_nodes(result)[0] for result in _with_a_view(x)] == [COMPILED, "ViewBackward0"]
# sphinx_gallery_end_ignore

# %%
# Why: backward is recorded at the first call
# -------------------------------------------
# ``torch.compile`` follows your function once with tensors that have no values, and records its operations. AOTAutograd, a
# part of it, derives the backward from that record. Later calls with inputs of the same kind run these two graphs, forward
# and backward, instead of your Python code. Autograd gets one node, ``CompiledFunctionBackward``, which runs the second
# graph. **Autograd sees what enters a compiled graph and what leaves it. What lies between is hidden.**
#
# This page uses ``backend="aot_eager"``, which needs no compiler. The default backend also makes kernels of the graphs.

# %%
# A node for each graph
# ---------------------
# Where ``torch.compile`` cannot go on, it may leave the whole function uncompiled. Or it ends the graph, lets Python run, and
# begins another: a *graph break*. Then each graph has a node, and the tensor between them is visible again:


def in_two(weight):
    output = torch.tanh(batch @ weight)
    print("between two graphs")
    return mse_loss(output, targets)


loss = torch.compile(in_two, backend="aot_eager")(weight)

# graph: loss -- A graph break leaves two nodes

# sphinx_gallery_start_ignore
assert _nodes(loss) == [COMPILED, COMPILED]
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
# sphinx_gallery_end_ignore

# %%
# :ref:`The page on graph breaks <sphx_glr_gallery_errors_data_dependent_branching.py>` finds the lines.

# %%
# Custom functions
# ----------------
# The ``backward`` of a ``torch.autograd.Function`` becomes part of the backward graph. But if it does something besides
# computing, such as appending to a list, the graph breaks around the function, and its node stays (`pytorch#138215 <https://github.com/pytorch/pytorch/issues/138215>`__):

log, x = [], torch.tensor([1.0, 2.0], requires_grad=True)


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


for kind in (Sine, LoggedSine):
    run = torch.compile(lambda x, f=kind: 2 * f.apply(x), backend="aot_eager")
    result = run(x)
    node, _ = result.grad_fn.next_functions[0]
    print(f"{kind.__name__}:", result.grad_fn.name(), "<-", node.name())

# sphinx_gallery_start_ignore
assert _nodes(run(x)) == [COMPILED, "LoggedSineBackward"]
# sphinx_gallery_end_ignore

# %%
# What people get wrong
# ---------------------
# **Registering a hook after the first call.** Then a hook on a layer does not run, and nothing tells you (asked in
# `pytorch#117758 <https://github.com/pytorch/pytorch/issues/117758>`__).
#
# .. how-measured:: Five hooks are registered before the first call of a compiled model, or after it; this notes which ones run.

HOOKS = {
    "forward, on a layer": lambda m, _: m[0].register_forward_hook,
    "full backward, on a layer": lambda m, _: m[0].register_full_backward_hook,
    "forward, on the compiled model": lambda _, compiled: (
        compiled.register_forward_hook
    ),
    "full backward, on the compiled model": (
        lambda _, compiled: compiled.register_full_backward_hook
    ),
    "on a parameter": lambda model, compiled: model[0].weight.register_hook,
}


def list_hooks_that_run(late, hooks=tuple(HOOKS)):
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
    {
        "before": list_hooks_that_run(late=False),
        "after": list_hooks_that_run(late=True),
    },
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


assert _late_then(torch.compiler.reset)


def _nodes_with(register):
    torch.compiler.reset()
    layers = nn.Sequential(nn.Linear(3, 3), nn.Tanh())
    register(layers[0])
    compiled = torch.compile(layers, backend="aot_eager")
    return _nodes(compiled(torch.ones(2, 3, requires_grad=True)))


assert COMPILED not in _nodes_with(
    lambda layer: layer.register_full_backward_hook(lambda *_: None)
)
_ran = []
_layers = nn.Sequential(nn.Linear(3, 3), nn.Tanh())
_compiled = torch.compile(_layers, backend="aot_eager")
_compiled(torch.ones(2, 3))
_layers[0].register_full_backward_hook(lambda *_: _ran.append("full backward"))
with torch.compiler.set_stance("force_eager"):
    _compiled(torch.ones(2, 3, requires_grad=True)).sum().backward()
assert _ran == ["full backward"]
# sphinx_gallery_end_ignore
runs.rename_axis(columns="hook")

# %%
# Register hooks on layers before the first call, or call ``torch.compiler.reset()`` afterwards: then the next call compiles
# again, and the hooks run. A hook on a parameter runs in both cases, because parameters lie outside of the compiled node.
#
# A *full backward* hook has a price: with it, the whole ``nn.Sequential`` above runs uncompiled, without a message. To look at
# gradients once, register your hooks and call the model under ``torch.compiler.set_stance("force_eager")``.

# %%
# **Asking for the gradient of something inside.** This model keeps its features, as for Grad-CAM:


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
# ``features`` and ``value`` are two results of one node, and the way between them is hidden in it. So a hook on ``features``
# gets ``None``, too, and ``torch.autograd.grad(value, net.features)`` raises *appears to not have been used in the graph*. With
# ``retain_grad()`` *inside* a compiled function the gradient comes, because that function runs uncompiled (asked in
# `pytorch#91468 <https://github.com/pytorch/pytorch/issues/91468>`__). The exercise below gets it from compiled code.

# %%
# **Counting on None for what is not used.** This model has two heads, and the loss uses the first. In eager PyTorch, the second
# gets no gradient, and the optimizer skips it. The norm of its weight, before and after ten steps:


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
    first, *_, last = norms
    print(f"compiled: {compiled!s:<5}  second head: {first:.3f} -> {last:.3f}")

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


def _three(x):
    return x.sum(), x.sqrt().sum(), x.log().sum()


for _used, _wanted in (
    (torch.compile(_three, backend="aot_eager"), True),
    (_three, False),
):
    _zero = torch.tensor([0.0, 1.0], requires_grad=True)
    _used(_zero)[0].backward()
    assert _zero.grad.isnan().tolist() == [_wanted, False]
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
# earlier steps would move the weight. If the unused branch has an infinite derivative, as ``sqrt`` and ``log`` have at 0, the
# zeros become NaN, and spoil gradients that the loss does need. Return only what the loss uses, or freeze the other head.

# %%
# **A gradient of a gradient.** A gradient penalty calls ``backward()`` on a gradient. That raises:


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
# ``set_stance("force_eager")`` runs the model uncompiled for this call, and keeps what is compiled for the others. You can also
# pass ``net``. Or take the first gradient inside the compiled function with ``torch.func.grad``, as on
# :ref:`static and dynamic graphs <sphx_glr_gallery_graphs_static_and_dynamic.py>`.
#
# In PyTorch 2.13, a Hessian can be wrong without an error. (PyTorch 2.14 raises one.) The sums of its absolute entries:


def hessian_of(model, **options):
    return torch.autograd.functional.hessian(
        lambda x: model(x).sum(), torch.ones(1, 3), **options
    )


print(f"eager:    {hessian_of(net).abs().sum():.3f}")
try:
    print(f"compiled: {hessian_of(compiled_net).abs().sum():.3f}")
except RuntimeError as error:  # from PyTorch 2.14 on
    print(f"compiled: {error}")

# sphinx_gallery_start_ignore
_silent = tuple(map(int, torch.__version__.split(".")[:2])) < (2, 14)
assert not _silent or not hessian_of(compiled_net).any()
assert hessian_of(net).abs().sum() > 0.01
_raised = []
try:
    hessian_of(compiled_net, strict=True)
except RuntimeError as error:
    _raised.append(str(error))
assert len(_raised) == 1
assert ("independent of input" if _silent else "double backward") in _raised[0]
_raised, _batch = [], torch.ones(1, 3, requires_grad=True)
for _given in (_batch.view(1, 3), _batch * 1):
    (_slope,) = torch.autograd.grad(
        compiled_net(_given).sum(), _given, create_graph=True
    )
    try:
        torch.autograd.grad(_slope.sum(), _given)
    except RuntimeError as error:
        _raised.append(str(error))
assert not _silent or "appears to not have been used" in _raised[0]
assert _raised[1:] == [message]
with torch.compiler.set_stance("force_eager"):
    _forced = hessian_of(compiled_net)
assert torch.allclose(_forced, hessian_of(net))
# sphinx_gallery_end_ignore

# %%
# Pass ``strict=True`` to ``hessian``: then it raises, instead of taking a missing way to the input for zero.

# %%
# **retain_graph=True after an ordinary step.** You keep the graph once, for example to weigh two losses:

compiled_net(torch.ones(2, 3)).sum().backward()
value = compiled_net(torch.ones(2, 3)).sum()
try:
    value.backward(retain_graph=True)
except RuntimeError as error:
    kept = str(error).split(". ")[0]
    print("RuntimeError:", kept)

# sphinx_gallery_start_ignore
assert "compiled with non-empty donated buffers" in kept
_raised = []
try:
    gradient_penalty(compiled_net, torch.ones(2, 3))
except RuntimeError as error:
    _raised.append(str(error))
assert len(_raised) == 1 and "donated buffers" in _raised[0]
torch.compiler.reset()
value = compiled_net(torch.ones(2, 3)).sum()
value.backward(retain_graph=True)
value.backward()
torch.compiler.reset()
with torch._functorch.config.patch(donated_buffer=False):
    compiled_net(torch.ones(2, 3)).sum().backward()
    value = compiled_net(torch.ones(2, 3)).sum()
    value.backward(retain_graph=True)
    value.backward()
    _raised = []
    try:
        gradient_penalty(compiled_net, torch.ones(2, 3)).backward()
    except RuntimeError as error:
        _raised.append(str(error))
assert _raised == [message]
# sphinx_gallery_end_ignore

# %%
# The first, ordinary ``backward()`` made a backward graph that reuses the memory of what is saved for it. ``create_graph=True``
# raises with the same message. Setting ``torch._functorch.config.donated_buffer = False`` before the first call lets you keep
# the graph. A second gradient still raises.

# %%
# Exercise
# --------
# Compile ``Net``, from Grad-CAM above, so that you get the gradient and both layers still
# run compiled.
#
# .. solution::
#
# Compile two functions. Each has its own node, and the features between them are an ordinary result.

torch.manual_seed(0)
net = Net()
body = torch.compile(lambda x: torch.tanh(net.body(x)), backend="aot_eager")
head = torch.compile(lambda h: net.head(h).sum(), backend="aot_eager")

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
# - :ref:`sphx_glr_gallery_scale_gradients_under_compile.py`: compare gradients, find the fault, call ``backward()`` inside.
# - :ref:`sphx_glr_gallery_graphs_static_and_dynamic.py`: what ``torch.compile``, ``torch.export`` and ``torch.fx`` record.
# - :ref:`sphx_glr_gallery_differentiation_higher_order.py`: gradients of gradients in eager PyTorch.
# - :ref:`sphx_glr_gallery_differentiation_gradients_of_intermediates.py`: ``retain_grad`` and hooks in eager PyTorch.
# - :ref:`sphx_glr_gallery_memory_memory_under_compile.py`: what a compiled graph saves for its backward, in bytes.
# - In PyTorch's reference: `torch.compile has different autograd semantics
#   <https://docs.pytorch.org/docs/stable/user_guide/torch_compiler/torch.compiler_backward.html>`__ (also for
#   autocast), `nn.Module hooks
#   <https://docs.pytorch.org/docs/stable/user_guide/torch_compiler/torch.compiler_nn_module.html>`__ and `set_stance
#   <https://docs.pytorch.org/docs/stable/generated/torch.compiler.set_stance.html>`__.
