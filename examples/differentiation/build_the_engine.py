r"""
How loss.backward() works: walk the graph
=========================================

.. in-short::

   ``loss.backward()`` calls ``loss.grad_fn`` with the gradient 1. A node returns one gradient (or ``None``) for each entry of
   its ``next_functions``. The next node waits for every edge that leads to it from this loss, adds the gradients, and is called
   once. About 40 lines of Python do this walk on PyTorch's own nodes. But they skip hooks, and fail on a custom
   ``torch.autograd.Function``.
"""

# %%
# Call one node by hand
# ---------------------
# In ``loss.backward()``, PyTorch walks over the graph that it recorded. To see how, do the walk yourself. In this example ``D``
# is used twice, by ``E`` and by ``F``.

import torch

A = torch.tensor(3.0, requires_grad=True)
B = torch.tensor(2.0, requires_grad=True)
C = A**2
D = B**2
E = C * D
F = D + E

# graph: F -- D is used twice, so two paths lead from F to B

# %%
# A node is the backward step of one operation, and Python can call it. Give it the gradient of the result. It returns one
# gradient for each edge, or a bare tensor if it has one edge.


def call(node, *gradients):
    parts = node(*gradients)
    return parts if isinstance(parts, tuple) else (parts,)


one = torch.tensor(1.0)
for name, tensor in [("F = D + E", F), ("E = C * D", E), ("C = A**2", C)]:
    print(f"{name:<9}", [part.item() for part in call(tensor.grad_fn, one)])

# sphinx_gallery_start_ignore
assert [part.item() for part in call(E.grad_fn, one)] == [D.item(), C.item()] == [4, 9]
assert [part.item() for part in call(F.grad_fn, one)] == [1, 1]
assert C.grad_fn(one).item() == 6
assert torch.stack([A]).grad_fn(one[None]) == 1
for _shapes in [((), ()), ((3,), ()), ((2, 1), (3,)), ((0,), (1,))]:
    _leaf, _constant = (
        torch.ones(_shapes[0], requires_grad=True),
        torch.ones(_shapes[1]),
    )
    for _product, _place in ((_leaf * _constant, 1), (_constant * _leaf, 0)):
        _parts = _product.grad_fn(torch.ones_like(_product))
        assert _parts[_place] is None and _parts[1 - _place] is not None
assert torch.stack([A, one]).grad_fn(torch.ones(2))[1] is not None  # not each node
_arrived = []
with D.grad_fn.register_prehook(lambda gradients: _arrived.append(gradients)):
    with F.grad_fn.register_prehook(lambda gradients: _arrived.append(gradients)):
        _other = D + 1  # a use of D that F does not depend on
        torch.autograd.grad(F, (A, B), retain_graph=True)
assert _arrived == [(1,), (1 + C.item(),)]  # D's node: once, with the sum of both
del tensor
# sphinx_gallery_end_ignore

# %%
# For ``E = C * D`` the node returns the value of ``D``, which is the gradient for ``C``, and the value of ``C``, which is the
# gradient for ``D``. (In programs, use ``torch.autograd.grad`` instead of this call.)

# %%
# Version 1: a queue
# ------------------
# Start with the root and the gradient 1. Take a node from the queue, call it, and append what it returns. At a leaf, add the
# gradient to those that came before.

from collections import deque


def walk_1(root):
    gradients = {}
    queue = deque([(root.grad_fn, torch.ones_like(root))])
    while queue:
        node, gradient = queue.popleft()
        if hasattr(node, "variable"):  # AccumulateGrad, the node of a leaf
            gradients[node.variable] = gradients.get(node.variable, 0) + gradient
        else:
            edges = zip(node.next_functions, call(node, gradient), strict=True)
            queue.extend((next_node, part) for (next_node, _), part in edges)
    return gradients


found = walk_1(F)
expected = torch.autograd.grad(F, (A, B), retain_graph=True)
print("walk_1: ", [found[leaf].item() for leaf in (A, B)])
print("PyTorch:", [gradient.item() for gradient in expected])
assert (found[A], found[B]) == expected == (24, 40)

# %%
# Both gradients are right. But a linear layer shows the first problem:

from torch import nn

torch.manual_seed(0)
layer, data = nn.Linear(3, 2), torch.randn(4, 3)

# sphinx_gallery_start_ignore
raised = []
try:
    # sphinx_gallery_end_ignore
    walk_1(layer(data))
# sphinx_gallery_start_ignore
except AttributeError as error:
    raised.append(str(error))
    print("AttributeError:", error)
assert raised == ["'NoneType' object has no attribute 'next_functions'"]
# sphinx_gallery_end_ignore

# %%
# Version 2: skip what needs no gradient
# --------------------------------------
# ``data`` requires no gradient, but it has an entry in ``next_functions``, with ``None`` in place of a node. So skip it:


def walk_2(root):
    gradients = {}
    queue = deque([(root.grad_fn, torch.ones_like(root))])
    while queue:
        node, gradient = queue.popleft()
        if hasattr(node, "variable"):
            gradients[node.variable] = gradients.get(node.variable, 0) + gradient
            continue
        parts = call(node, gradient)
        for (next_node, _), part in zip(node.next_functions, parts, strict=True):
            if next_node is not None:  # new
                queue.append((next_node, part))
    return gradients


found = walk_2(layer(data))
for name, p in layer.named_parameters():
    print(f"{name:<6} {tuple(p.shape)}   its gradient {tuple(found[p].shape)}")

# sphinx_gallery_start_ignore
_edges = layer(data).grad_fn.next_functions
assert [node is None for node, _ in _edges] == [False, True, False]
assert found[layer.weight].shape == (2, 3) and found[layer.bias].shape == (4, 2)
# sphinx_gallery_end_ignore

# %%
# Version 3: sum what was broadcast
# ---------------------------------
# The bias was added to four rows, and the node of that addition returned four rows of gradients. They must be summed. The next
# node knows the shape that it expects, in ``_input_metadata``. (The underscore says: private, may change.)


def walk_3(root):
    gradients = {}
    queue = deque([(root.grad_fn, torch.ones_like(root))])
    while queue:
        node, gradient = queue.popleft()
        gradient = gradient.sum_to_size(node._input_metadata[0].shape)  # new
        if hasattr(node, "variable"):
            gradients[node.variable] = gradients.get(node.variable, 0) + gradient
            continue
        parts = call(node, gradient)
        for (next_node, _), part in zip(node.next_functions, parts, strict=True):
            if next_node is not None:
                queue.append((next_node, part))
    return gradients


found = walk_3(layer(data))
print("bias:", tuple(found[layer.bias].shape))

left, right = layer(data).chunk(2, dim=1)
# sphinx_gallery_start_ignore
try:
    # sphinx_gallery_end_ignore
    walk_3(left * right)
# sphinx_gallery_start_ignore
except TypeError as error:
    raised.append(str(error))
    print("TypeError:", error)
assert torch.equal(found[layer.bias], torch.full((2,), 4.0))
assert raised[1:] == ["expected 2 arguments, got 1 instead"]
# sphinx_gallery_end_ignore

# %%
# Version 4: operations with several results
# ------------------------------------------
# ``chunk`` has two results and one node. So that node takes two gradients, one for each result. An edge has a second part,
# which was left out until now: the number of the result. The gradient goes to that place, and the other place gets ``None``.


def walk_4(root):
    gradients = {}
    queue = deque([(root.grad_fn, root.output_nr, torch.ones_like(root))])
    while queue:
        node, number, gradient = queue.popleft()
        gradient = gradient.sum_to_size(node._input_metadata[number].shape)
        if hasattr(node, "variable"):
            gradients[node.variable] = gradients.get(node.variable, 0) + gradient
            continue
        arguments = [None] * len(node._input_metadata)  # new
        arguments[number] = gradient  # new
        parts = call(node, *arguments)
        for edge, part in zip(node.next_functions, parts, strict=True):
            if edge[0] is not None:
                queue.append((*edge, part))
    return gradients


product = left * right
found = walk_4(product)
expected = torch.autograd.grad(product.sum(), layer.weight, retain_graph=True)[0]
print("equal:", torch.allclose(found[layer.weight], expected))
print("requires_grad:", found[layer.weight].requires_grad)
print("from PyTorch: ", expected.requires_grad)

# sphinx_gallery_start_ignore
assert torch.allclose(found[layer.weight], expected)
assert found[layer.weight].requires_grad and not expected.requires_grad
# sphinx_gallery_end_ignore

# %%
# Version 5: do not record the walk
# ---------------------------------
# The node of ``left * right`` computes with tensors that require grad, so the walk was recorded too. ``no_grad`` prevents that:

walk_5 = torch.no_grad()(walk_4)
found = walk_5(product)
print("requires_grad:", found[layer.weight].requires_grad)

# sphinx_gallery_start_ignore
assert not found[layer.weight].requires_grad and torch.allclose(
    found[layer.weight], expected
)
# sphinx_gallery_end_ignore

# %%
# The next problem is time. Each step of this model splits the path in two and joins it again, as a residual block does.


def diamonds(count):
    x = torch.tensor(0.5, requires_grad=True)
    for _ in range(count):
        x = torch.sin(x) + torch.cos(x)
    return x


# %%
# .. how-measured:: While one walk runs, it replaces the function above that calls a node by one that also counts.

from unittest import mock


def count_calls(walk, root):
    calls = []

    def counting(node, *gradients):
        calls.append(node)
        return original(node, *gradients)

    original = call
    with mock.patch.dict(globals(), call=counting):
        walk(root)
    return len(calls)


# %%
# Each diamond has three nodes. ``walk_5`` calls a node once for each *path* from the root to it. With each diamond, the number
# of paths doubles:

for number in (1, 2, 4, 8):
    calls = count_calls(walk_5, diamonds(number))
    print(f"{number} diamonds: {3 * number:>2} nodes, {calls:>3} calls")
    assert calls == 3 * (2**number - 1)

# %%
# The engine: count the edges, then wait
# --------------------------------------
# A node is ready when the walk has used each edge that leads to it from the root. So first count those edges:

from torch.autograd.graph import get_gradient_edge


def count_edges(start):
    edges, nodes = {start: 0}, [start]
    for node in nodes:  # the list grows while it is read
        for next_node, _ in node.next_functions:
            if next_node is not None:
                if next_node not in edges:
                    nodes.append(next_node)
                edges[next_node] = edges.get(next_node, 0) + 1
    return edges


# %%
# Then walk. For each node, ``arrived`` has one sum for each gradient that the node takes, and ``missing`` is the number of
# edges still to come. At 0, the node is ready.


@torch.no_grad()
def engine(root, gradient=None):
    if gradient is None:
        gradient = torch.ones_like(root)
    start = get_gradient_edge(root)
    missing = count_edges(start.node)
    arrived = {node: [None] * len(node._input_metadata) for node in missing}

    def add(node, number, part):
        if part is not None:
            part = part.sum_to_size(node._input_metadata[number].shape)
            before = arrived[node][number]
            arrived[node][number] = part if before is None else before + part

    add(start.node, start.output_nr, gradient)
    gradients, ready = {}, deque([start.node])
    while ready:
        node = ready.popleft()
        if hasattr(node, "variable"):
            gradients[node.variable] = arrived[node][0]
            continue
        parts = call(node, *arrived[node])
        for edge, part in zip(node.next_functions, parts, strict=True):
            if edge[0] is not None:
                add(*edge, part)
                missing[edge[0]] -= 1
                if missing[edge[0]] == 0:
                    ready.append(edge[0])
    return gradients


found = engine(F)
print("engine: ", [found[leaf].item() for leaf in (A, B)])
print("8 diamonds:", count_calls(engine, diamonds(8)), "calls")
assert (found[A], found[B]) == (24, 40) and count_calls(engine, diamonds(8)) == 24

# sphinx_gallery_start_ignore
import inspect


def _code_lines(function):
    lines = [line.strip() for line in inspect.getsource(function).splitlines()]
    return sum(bool(line) and not line.startswith("#") for line in lines)


assert 35 <= _code_lines(call) + _code_lines(count_edges) + _code_lines(engine) <= 42
# sphinx_gallery_end_ignore

# %%
# .. how-measured:: It draws the calls of both walks.

import matplotlib.pyplot as plt


def plot_calls(counts, by_paths, by_nodes):
    _, axes = plt.subplots(figsize=(7, 3.4), layout="constrained")
    axes.semilogy(
        counts, by_paths, "o-", color="#c2410c", label="walk_5: for each path"
    )
    axes.semilogy(
        counts, by_nodes, "s-", color="#2563eb", label="engine: for each node"
    )
    axes.set(xlabel="diamonds in the chain", ylabel="calls of nodes", xticks=counts)
    axes.set_title("Each diamond more than doubles the calls of walk_5")
    axes.legend()


# %%
# The axis is logarithmic, so a straight line is exponential growth:

counts = range(1, 13)
by_paths = [count_calls(walk_5, diamonds(count)) for count in counts]
by_nodes = [count_calls(engine, diamonds(count)) for count in counts]

# figure: The calls of nodes against the number of diamonds, on a logarithmic axis. For walk_5 they rise almost along a
#   straight line, from 3 to 12285. For the engine they rise from 3 to 36.
plot_calls(counts, by_paths, by_nodes)
print("12 diamonds:", by_paths[-1], "calls by walk_5,", by_nodes[-1], "by the engine")
assert by_paths == [3 * (2**n - 1) for n in counts]
assert by_nodes == [3 * n for n in counts]

# sphinx_gallery_start_ignore
_growth = [by_paths[n + 1] / by_paths[n] for n in range(len(by_paths) - 1)]
assert all(2 < ratio <= 3 for ratio in _growth) and _growth[-1] < 2.001
# another use of D, in another result: its edge is not counted
_before = count_edges(F.grad_fn)[D.grad_fn]
_other = D + 1
assert count_edges(F.grad_fn)[D.grad_fn] == _before == 2
assert not engine(product)[layer.weight].requires_grad
# sphinx_gallery_end_ignore

# %%
# Against PyTorch
# ---------------
# A network with two branches, one of which is deeper. All gradients are equal bit by bit:

stem, short = nn.Linear(10, 5), nn.Linear(5, 2)
long = nn.Sequential(nn.Linear(5, 2), nn.Tanh(), nn.Linear(2, 2))
network = nn.ModuleDict({"stem": stem, "short": short, "long": long})

hidden = torch.relu(stem(torch.randn(16, 10)))
loss = (short(hidden) + long(hidden)).square().mean()
found = engine(loss)
loss.backward()
for name, p in network.named_parameters():
    print(f"{name:<13} {list(p.shape)!s:<8} equal: {torch.equal(found[p], p.grad)}")

# sphinx_gallery_start_ignore
_parameters = list(network.parameters())
assert all(torch.equal(found[p], p.grad) and p.grad.norm() > 0 for p in _parameters)
assert len(_parameters) == 8
del p
# sphinx_gallery_end_ignore

# %%
# .. how-measured:: It makes 50 random graphs of four leaves with different shapes, a constant, and 10 to 40 steps of four
#    kinds. One kind has several results. It compares the engine with PyTorch, for a random upstream gradient.

import random

STEPS = [
    lambda left, right: left + right,
    lambda left, right: left - 0.5 * right,
    lambda left, right: torch.sin(left * right),
    lambda left, right: torch.stack(torch.broadcast_tensors(left, right)).unbind()[1],
]


def random_graph(seed):
    random.seed(seed)
    torch.manual_seed(seed)
    tensors = [torch.randn(s).double() for s in [(), (3,), (4, 1), (4, 3), (3,)]]
    leaves = [tensor.requires_grad_() for tensor in tensors[:4]]
    for _ in range(random.randint(10, 40)):
        tensors.append(random.choice(STEPS)(*random.choices(tensors[-10:], k=2)))
    return leaves, next(tensor for tensor in tensors[::-1] if tensor.requires_grad)


def compare_random_graphs(how_many):
    nodes, called = 0, 0
    for leaves, root in map(random_graph, range(how_many)):
        upstream = torch.randn_like(root)
        options = {"allow_unused": True, "retain_graph": True}
        expected = torch.autograd.grad(root, leaves, upstream, **options)
        found = engine(root, upstream)
        found = tuple(found.get(leaf) for leaf in leaves)
        torch.testing.assert_close(found, expected, rtol=1e-12, atol=0)
        reached = count_edges(get_gradient_edge(root).node)
        nodes += sum(not hasattr(node, "variable") for node in reached)
        called += count_calls(engine, root)
    return nodes, called


# sphinx_gallery_start_ignore
for _model in (
    nn.Conv1d(3, 3, 2),
    nn.GRU(4, 4),
    nn.LSTM(4, 4),
    nn.LayerNorm(4),
    nn.BatchNorm1d(3),
    nn.MultiheadAttention(4, 2),
    nn.TransformerEncoderLayer(4, 2, 8, dropout=0),
    nn.Embedding(5, 4),
):
    _batch = (
        torch.randint(5, (2, 3))
        if isinstance(_model, nn.Embedding)
        else torch.randn(2, 3, 4)
    )
    _result = _model(
        *(3 * [_batch] if isinstance(_model, nn.MultiheadAttention) else [_batch])
    )
    _result = (_result[0] if isinstance(_result, tuple) else _result).square().sum()
    _found = engine(_result)
    for _p, _g in zip(
        _model.parameters(),
        torch.autograd.grad(_result, list(_model.parameters())),
        strict=True,
    ):
        torch.testing.assert_close(_found[_p], _g)
# sphinx_gallery_end_ignore

# %%
# On 50 random graphs, the gradients agree to twelve digits, and each node of an operation is called once.

nodes, called = compare_random_graphs(50)
print("nodes:", nodes, "  calls:", called)
assert nodes == called > 400

# sphinx_gallery_start_ignore
_watched, _seen = torch.tensor(1.0, requires_grad=True), []
_result = _watched.exp()
_result.register_hook(_seen.append)
_result.grad_fn.register_prehook(_seen.append)
_result.grad_fn.register_hook(lambda *gradients: _seen.append(gradients))
_watched.register_post_accumulate_grad_hook(_seen.append)
assert torch.equal(engine(_result)[_watched], _result) and _seen == []
_result.backward()
assert len(_seen) == 4
_two = torch.ones(2, 3, requires_grad=True).max(0)  # two results, and one takes part
assert len(_two.values.grad_fn._input_metadata) == 1 and len(_two) == 2
assert torch.equal(*engine(_two.values).values(), torch.tensor([[1.0] * 3, [0.0] * 3]))
for _shape in (), (3,), (0,), (2, 1):
    _leaf = torch.ones(_shape, requires_grad=True)
    _mixed = _leaf * torch.ones(_shape, dtype=torch.float64)
    assert engine(_mixed)[_leaf].dtype == torch.float64
    assert torch.autograd.grad(_mixed.sum(), _leaf)[0].dtype == torch.float32
# sphinx_gallery_end_ignore

# %%
# PyTorch's engine does more. It frees what the nodes saved, adds to ``.grad``, converts dtypes, and runs hooks and custom
# Functions.

# %%
# What people get wrong
# ---------------------
# **Walking after backward.** By then the nodes that ran have freed what they had saved. Pass ``retain_graph=True`` to keep it.
#
# **Calling the node of a Function written in Python.** That node is not callable.


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    def backward(ctx, gradient):
        return 2 * gradient


used, own = A.exp(), Double.apply(A)
used.backward()
raised = []
for result in (used, own):
    try:
        call(result.grad_fn, one)
    except (RuntimeError, TypeError) as error:
        raised.append(str(error))
        print(f"{type(error).__name__}: {raised[-1].partition(' (')[0]}")

# sphinx_gallery_start_ignore
_kept = A.exp()
_kept.backward(retain_graph=True)
assert call(_kept.grad_fn, one)[0] == _kept
assert own.grad_fn.apply(one) == 2
_inside = torch.utils.checkpoint.checkpoint(torch.exp, A, use_reentrant=True)
assert not callable(_inside.grad_fn)  # a Function in Python, inside PyTorch
_failed = []
for _root in (used, Double.apply(A)):
    try:
        engine(_root)
    except (RuntimeError, TypeError) as error:
        _failed.append(type(error))
assert _failed == [RuntimeError, TypeError]
assert len(raised) == 2 and raised[1] == "'DoubleBackward' object is not callable"
assert raised[0].startswith(
    "Trying to backward through the graph a second time (or directly access saved tensors"
)
# sphinx_gallery_end_ignore

# %%
# **Expecting hooks to run.** A call by hand runs neither the hook of this tensor nor that of its node. ``backward`` runs both.

seen, result = [], A.exp()
result.register_hook(lambda gradient: seen.append("hook of the tensor"))
result.grad_fn.register_hook(lambda inputs, outputs: seen.append("hook of the node"))

call(result.grad_fn, one)
print("by hand: ", seen)
result.backward()
print("backward:", seen)

# sphinx_gallery_start_ignore
assert sorted(seen) == ["hook of the node", "hook of the tensor"]
_result = A.exp()
_result.register_hook(seen.append)
_result.grad_fn.register_prehook(seen.append)
call(_result.grad_fn, one)
assert len(seen) == 2
_unpacked = []
with torch.autograd.graph.saved_tensors_hooks(
    lambda tensor: tensor, lambda tensor: _unpacked.append(1) or tensor
):
    _result = A.exp()
call(_result.grad_fn, one)
assert _unpacked == [1]  # a hook of another kind: it runs
_leaf, _ran = torch.tensor(3.0, requires_grad=True), []
_leaf.register_hook(lambda gradient: _ran.append("tensor"))
_leaf.register_post_accumulate_grad_hook(lambda leaf: _ran.append("post accumulate"))
_node = torch.autograd.graph.get_gradient_edge(_leaf).node
_node.register_prehook(lambda gradients: _ran.append("before the node"))
_node.register_hook(lambda inputs, outputs: _ran.append("after the node"))
assert call(_node, one) == () and _ran == ["post accumulate"] and _leaf.grad == 1
A.grad = B.grad = None
# sphinx_gallery_end_ignore

# %%
# Exercise
# --------
# Ten residual steps, ``x = x + torch.sin(x)``. How many calls does the engine make, and how many does ``walk_5`` make?
#
# .. solution::
#
# Each step records two nodes, so the engine makes 20 calls. Each step doubles the number of paths. If :math:`k` steps come
# after a step, ``walk_5`` calls each of its two nodes :math:`2^k` times. The sum for :math:`k = 0, \ldots, 9` is
# :math:`2 (2^{10} - 1) = 2046`.

x = torch.tensor(0.5, requires_grad=True)
for _ in range(10):
    x = x + torch.sin(x)

print("engine:", count_calls(engine, x), "  walk_5:", count_calls(walk_5, x))
assert count_calls(engine, x) == 20 and count_calls(walk_5, x) == 2046

# predict: [count_calls(engine, x), count_calls(walk_5, x)] -- How many calls does the
#   engine make, and how many does ``walk_5``?

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_graphs_functions_are_nodes.py`, nodes, edges and their numbers one by one.
# - In PyTorch's reference: `Node.next_functions
#   <https://docs.pytorch.org/docs/stable/generated/torch.autograd.graph.Node.next_functions.html>`__.
