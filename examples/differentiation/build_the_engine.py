r"""
How backward() works: build the engine yourself
===============================================

``backward()`` is a walk over the recorded graph: call a node, hand what it returns to the next nodes, go on until
the leaves are reached. This page builds that walk in Python. The first version is a queue, and it finds the right
gradients of a small expression. Then ordinary models break it, one fault after the other. The mended version agrees
with PyTorch on every graph it is given here, and each mend is something that the real engine does too.
"""

# %%
# Call a node by hand
# -------------------
# The small expression has a shared result: ``E`` uses ``D``, and so does ``F``.

import random
from collections import deque

import matplotlib.pyplot as plt
import torch
from torch import nn
from torch.autograd.graph import get_gradient_edge

A = torch.tensor(3.0, requires_grad=True)
B = torch.tensor(2.0, requires_grad=True)
C = A**2
D = B**2
E = C * D
F = D + E

# graph: F -- D is used twice, so two paths lead from F to B

# %%
# A node is the backward step of one operation. Called with the gradient of its result, it returns one gradient for
# each of its edges. Everything an engine does is built on this call. (The reference lists no call among a node's
# methods: this is for learning. In programs, use ``torch.autograd.grad``.)


def call(node, *gradients):
    parts = node(*gradients)  # a bare tensor where the node has one edge
    return parts if isinstance(parts, tuple) else (parts,)


one = torch.tensor(1.0)
for name, tensor in [("F", F), ("E", E), ("C", C)]:
    parts = [part.item() for part in call(tensor.grad_fn, one)]
    print(f"{name}: {tensor.grad_fn.name():<13} called with 1 returns {parts}")

# sphinx_gallery_start_ignore
assert [part.item() for part in call(E.grad_fn, one)] == [D.item(), C.item()] == [4, 9]
assert [part.item() for part in call(F.grad_fn, one)] == [1, 1]
assert C.grad_fn(one).item() == 6
del tensor
# sphinx_gallery_end_ignore

# %%
# For ``E = C * D`` the node returns the value of ``D`` to be passed to ``C``, and the value of ``C`` to be passed to
# ``D``: the local derivatives.
#
# The queue
# ---------
# Start with the root and a gradient of 1. Take a pair from the queue, call the node, and append one pair for each
# edge. At a leaf, add what arrives. ``visits`` keeps a record of the walk.


def queue_engine(root):
    gradients, visits = {}, []
    queue = deque([(root.grad_fn, torch.ones_like(root))])
    while queue:
        node, gradient = queue.popleft()
        visits.append((node, gradient))
        if hasattr(node, "variable"):  # AccumulateGrad, the node of a leaf
            leaf = node.variable
            gradients[leaf] = gradients.get(leaf, 0) + gradient
        else:
            edges = zip(node.next_functions, call(node, gradient), strict=True)
            queue.extend((next_node, part) for (next_node, _), part in edges)
    return gradients, visits


by_queue, visits = queue_engine(F)
expected = torch.autograd.grad(F, (A, B), retain_graph=True)

print(f"queue:   dF/dA = {by_queue[A].item():g}   dF/dB = {by_queue[B].item():g}")
print(f"PyTorch: dF/dA = {expected[0].item():g}   dF/dB = {expected[1].item():g}")
assert (by_queue[A], by_queue[B]) == expected == (24, 40)

# %%
# Both numbers are right. Now the record of the walk: each node, and the gradient it was called with.

name_of = {A: "A", B: "B", C: "C", D: "D", E: "E", F: "F"}
name_of = {get_gradient_edge(t).node: name for t, name in name_of.items()}


def trace(visits):
    return "   ".join(f"{name_of[node]}: {part.item():g}" for node, part in visits)


print(trace(visits))

# sphinx_gallery_start_ignore
assert trace(visits) == "F: 1   D: 1   E: 1   B: 4   C: 4   D: 9   A: 24   B: 36"
# sphinx_gallery_end_ignore

# %%
# ``D`` was visited twice, with 1 from its use in ``F`` and 9 from its use in ``E``, and so was ``B`` after it. The
# queue visits a node once for each *path* that leads to it, and adds up only at the leaves.
#
# Three faults
# ------------
# **It crashes on constants.** In ``C * 2``, the constant keeps a place in ``next_functions`` that holds ``None``, and
# the queue takes it for a node.

try:
    queue_engine(C * 2)
except AttributeError as error:
    print(f"AttributeError: {error}")
    assert str(error) == "'NoneType' object has no attribute 'next_functions'"

# %%
# **It is slow where paths meet.** In a chain of diamonds, the path splits in two and meets again, many times. A
# residual connection, ``x + f(x)``, splits it in the same way, so a deep residual network is such a chain.


def diamonds(count):
    x = torch.tensor(0.5, requires_grad=True)
    for _ in range(count):
        x = torch.sin(x) + torch.cos(x)
    return x


two = diamonds(2)

# graph: two -- Two diamonds in a row: 2 x 2 = 4 paths lead from the root to the leaf

for count in (4, 8):
    _, visits = queue_engine(diamonds(count))
    print(f"{count} diamonds: {len(dict(visits))} nodes, {len(visits)} visits")

# sphinx_gallery_start_ignore
assert len(dict(visits)) == 25 and len(visits) == 1021 == 2**10 - 3
# sphinx_gallery_end_ignore

# %%
# Each diamond doubles the number of paths, and about doubles the number of visits.
#
# **It keeps a graph.** The nodes compute with tensors that require gradients, so their calls were recorded in turn:
# the gradients have a graph of their own, which nobody asked for.

print("the queue:", by_queue[B].grad_fn.name())
print("PyTorch:  ", expected[1].grad_fn)

# sphinx_gallery_start_ignore
assert by_queue[B].requires_grad and not expected[1].requires_grad
# sphinx_gallery_end_ignore

# %%
# The mend: count, then wait
# --------------------------
# A node may be called when everything that is to arrive there has arrived. To know when that is, count beforehand how
# many edges lead to each node. Each node is looked at once, and ``None`` is passed over.


def count_edges(starts):
    """For each node within reach: the number of edges that lead to it."""
    edges = dict.fromkeys(starts, 0)
    nodes = list(edges)
    for node in nodes:  # the list grows while it is read
        for next_node, _ in node.next_functions:
            if next_node is not None:
                if next_node not in edges:
                    nodes.append(next_node)
                edges[next_node] = edges.get(next_node, 0) + 1
    return edges


print({name_of[node]: number for node, number in count_edges([F.grad_fn]).items()})

# sphinx_gallery_start_ignore
assert [(name_of[n], k) for n, k in count_edges([F.grad_fn]).items()] == list(
    zip("FDEBCA", (0, 2, 1, 1, 1, 1), strict=True)
)
# sphinx_gallery_end_ignore

# %%
# Gradients are added up where they arrive, one sum for each input of a node: the node of ``unbind`` has as many
# inputs as the operation had results. (``_input_metadata``, a private attribute, knows how many there are and their
# shapes.) A part may be larger than the tensor it belongs to, where that was broadcast; ``sum_to_size`` sums it. A
# node goes into ``ready`` when the last edge to it has been served.


@torch.no_grad()  # the calls are not to be recorded
def engine(roots, gradients, count=count_edges):
    """The gradient of each leaf within reach of the roots, and the visits made."""
    starts = [(e.node, e.output_nr) for e in map(get_gradient_edge, roots)]
    missing = count([node for node, _ in starts])
    arrived = {node: [None] * len(node._input_metadata) for node in missing}

    def add(node, number, part):
        if part is not None:
            part = part.sum_to_size(node._input_metadata[number].shape)
            before = arrived[node][number]
            arrived[node][number] = part if before is None else before + part

    for (node, number), gradient in zip(starts, gradients, strict=True):
        add(node, number, gradient)
    visits = []
    ready = deque(node for node in missing if missing[node] == 0)
    while ready:
        node = ready.popleft()
        visits.append((node, *arrived[node]))
        parts = () if hasattr(node, "variable") else call(node, *arrived[node])
        for (next_node, number), part in zip(node.next_functions, parts, strict=True):
            if next_node is not None:
                add(next_node, number, part)
                missing[next_node] -= 1
                if missing[next_node] == 0:
                    ready.append(next_node)
    leaves = [node for node in arrived if hasattr(node, "variable")]
    return {node.variable: arrived[node][0] for node in leaves}, visits


mended, visits = engine([F], [one])
print(trace(visits))
print("C * 2:         dA =", engine([C * 2], [one])[0][A].item())
print("1000 diamonds:", len(engine([diamonds(1000)], [one])[1]), "visits")
assert mended[A] == 24 and mended[B] == 40 and not mended[B].requires_grad

# sphinx_gallery_start_ignore
assert trace(visits) == "F: 1   E: 1   C: 4   D: 10   A: 24   B: 40"
assert engine([C * 2], [one])[0][A] == 12
assert len(engine([diamonds(1000)], [one])[1]) == 3001
x = torch.tensor([2.0, 5.0, 9.0], requires_grad=True)
first, middle, last = x.unbind()
assert len(first.grad_fn._input_metadata) == 3
assert engine([first * last], [one])[0][x].tolist() == [9, 0, 2]
bias = torch.zeros(2, requires_grad=True)
biased = torch.ones(4, 2, requires_grad=True) + bias
assert queue_engine(biased)[0][bias].shape == (4, 2)
assert engine([biased], [torch.ones(4, 2)])[0][bias].tolist() == [4, 4]

import inspect


def code_lines(function):
    lines = [line.strip() for line in inspect.getsource(function).splitlines()]
    return sum(bool(line) and not line.startswith(('"""', "#")) for line in lines)


assert code_lines(call) + code_lines(count_edges) + code_lines(engine) == 39
# sphinx_gallery_end_ignore

# %%
# Six visits for six nodes. ``D`` waited until both parts had come, and passed on their sum, 10, at once. The three
# functions ``call``, ``count_edges`` and ``engine`` have 39 lines of code together.
#
# Against PyTorch: a network with two branches
# --------------------------------------------
# One layer from 10 to 5, then two branches, 5 to 2 and 5 to 2 to 2, which are summed. The gradients of all eight
# parameters are compared bit by bit.

torch.manual_seed(0)
stem, short = nn.Linear(10, 5), nn.Linear(5, 2)
long = nn.Sequential(nn.Linear(5, 2), nn.Tanh(), nn.Linear(2, 2))
network = nn.ModuleDict({"stem": stem, "short": short, "long": long})

hidden = torch.relu(stem(torch.randn(16, 10)))
loss = (short(hidden) + long(hidden)).square().mean()
mended, visits = engine([loss], [one])
loss.backward()

for name, p in network.named_parameters():
    same = torch.equal(mended[p], p.grad)
    print(f"{name:<13} {list(p.shape)!s:<8} |gradient| {p.grad.norm():.4f}   {same=}")

# sphinx_gallery_start_ignore
_parameters = list(network.parameters())
assert all(torch.equal(mended[p], p.grad) and p.grad.norm() > 0 for p in _parameters)
assert len(_parameters) == 8 and len({n for n, *_ in visits}) == len(visits)
del p
# sphinx_gallery_end_ignore

# %%
# Against PyTorch: 50 random graphs
# ---------------------------------
# Each graph begins with four leaves and a constant of different shapes, so that many steps broadcast. Then 10 to
# 40 steps combine what is there, one kind with a node of several results. Two of the tensors are the roots.

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
    return leaves, random.sample([t for t in tensors[5:] if t.requires_grad], k=2)


# %%
# The order in which parts are added may differ from PyTorch's, and so may the last digit. Hence double precision
# and a tolerance. ``None`` stands for a leaf that the roots do not depend on.

visited = []
options = {"allow_unused": True, "retain_graph": True}
for leaves, roots in map(random_graph, range(50)):
    upstream = [torch.randn_like(root) for root in roots]
    expected = torch.autograd.grad(roots, leaves, upstream, **options)
    mended, visits = engine(roots, upstream)
    found = tuple(mended.get(leaf) for leaf in leaves)
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)
    visited += [node for node, *_ in visits]

print("graphs: 50   visits:", len(visited), "  distinct nodes:", len(set(visited)))

# sphinx_gallery_start_ignore
assert len(visited) == len(set(visited)) > 900
edges = [edge for node in visited for edge, _ in node.next_functions]
assert edges.count(None) > 100
assert sum(len(n._input_metadata) > 1 for n in visited) > 50
del visited, edges, leaves, roots
# sphinx_gallery_end_ignore

# %%
# Every gradient is equal, and no node was visited twice.
#
# What the count is worth
# -----------------------
# Both engines on chains of one to twelve diamonds:

counts = range(1, 13)
by_paths = [len(queue_engine(diamonds(count))[1]) for count in counts]
by_nodes = [len(engine([diamonds(count)], [one])[1]) for count in counts]

# figure: The number of visits against the number of diamonds, on a logarithmic axis. The queue's visits rise along a
#   straight line, from 5 to 16381, so they are exponential. The visits of the mended engine rise from 4 to 37.
figure, axes = plt.subplots(figsize=(7, 3.6), layout="constrained")
axes.semilogy(counts, by_paths, "o-", color="#c2410c", label="queue: for each path")
axes.semilogy(counts, by_nodes, "s-", color="#2563eb", label="mended: for each node")
axes.set(xlabel="diamonds in the chain", ylabel="visits", xticks=counts)
axes.set_title("Each diamond doubles the visits of one, and adds three to the other")
axes.legend()

print("queue: ", by_paths)
print("mended:", by_nodes)
assert by_paths == [4 * 2**count - 3 for count in counts]
assert by_nodes == [3 * count + 1 for count in counts]

# sphinx_gallery_start_ignore
_calls = []
_handles = [
    node.register_prehook(lambda _, name=name: _calls.append(name))
    for node, name in name_of.items()
]
torch.autograd.grad(F, (A, B), retain_graph=True)
assert sorted(_calls) in (list("ABCDEF"), list("CDEF")), _calls
# C was recorded before D
assert [name for name in _calls if name in "CDEF"] == list("FEDC")
for handle in _handles:
    handle.remove()
_watched, _seen = torch.tensor(1.0, requires_grad=True), []
_result = _watched.exp()
_result.register_hook(lambda gradient: _seen.append("tensor hook"))
_result.grad_fn.register_prehook(lambda gradients: _seen.append("node prehook"))
_result.grad_fn.register_hook(lambda inputs, outputs: _seen.append("node hook"))
for _ in range(2):
    assert torch.equal(engine([_result], [one])[0][_watched], _result) and _seen == []
_result.backward()
assert sorted(_seen) == ["node hook", "node prehook", "tensor hook"]
try:
    engine([_result], [one])
except RuntimeError as error:
    freed = str(error)
assert "already been freed" in freed, freed


class Own(torch.autograd.Function):
    @staticmethod
    def forward(ctx, tensor):
        return tensor.clone()

    @staticmethod
    def backward(ctx, gradient):
        return gradient


try:
    engine([Own.apply(_watched)], [one])
except TypeError as error:
    freed = str(error)
assert freed == "'OwnBackward' object is not callable", freed
# sphinx_gallery_end_ignore

# %%
# Twelve diamonds have 37 nodes. The queue makes 16381 visits, :math:`4 \cdot 2^n - 3` for :math:`n` diamonds, and the
# mended engine :math:`3n + 1`.
#
# The real engine does more on its walk. It frees what the nodes have saved, it runs hooks, and it runs the nodes of
# your own ``torch.autograd.Function`` classes, which cannot be called like the others. It has an order of its own
# too: of the nodes that are ready, the one that was recorded last goes first (:doc:`how to read a graph
# </guide/how-to-read-a-graph>`).

# %%
# What people get wrong
# ---------------------
# **Visiting each node once, without waiting.** A set of the nodes already seen makes the queue fast, and silently
# wrong: what comes over the second edge is lost. The mended engine does the same with a count of 1 for every node.


def impatient(starts):
    return {node: min(number, 1) for node, number in count_edges(starts).items()}


hasty, visits = engine([F], [one], count=impatient)
print(trace(visits))
assert hasty[A] == 24 and hasty[B] == 4  # and not 40

# %%
# ``D`` was called with the 1 that came first. The 9 that came later was not passed on, so ``B`` gets 4 in place of
# 40.

# %%
# Exercise
# --------
# Ten residual steps, ``x = x + torch.sin(x)``. How many nodes does the graph have? How many visits does the mended
# engine make, and how many the queue?
#
# .. solution::
#
# Each step adds two nodes, and there is the leaf: 21, and as many visits with the count. Each step doubles the number
# of paths. The two nodes with :math:`k` other steps between them and the root are visited :math:`2^k` times each, and
# the leaf :math:`2^{10}` times. Together that is :math:`2 (2^{10} - 1) + 2^{10} = 3070`.

x = torch.tensor(0.5, requires_grad=True)
for _ in range(10):
    x = x + torch.sin(x)

_, visits = queue_engine(x)
_, patient = engine([x], [one])
print(f"nodes {len(dict(visits))}, mended {len(patient)}, queue {len(visits)}")
assert len(dict(visits)) == len(patient) == 21
assert len(visits) == 2 * (2**10 - 1) + 2**10 == 3070

# %%
# See also
# --------
# - Before: :ref:`sphx_glr_gallery_differentiation_hooks_on_modules.py`, code that the real engine runs on its way.
# - Next: :ref:`sphx_glr_gallery_differentiation_higher_order.py`, where the calls *are* recorded, on purpose.
# - :ref:`sphx_glr_gallery_graphs_functions_are_nodes.py`, nodes, edges and their numbers one by one.
# - In PyTorch's reference: `Node.next_functions
#   <https://docs.pytorch.org/docs/stable/generated/torch.autograd.graph.Node.next_functions.html>`__ and
#   `torch.autograd.grad <https://docs.pytorch.org/docs/stable/generated/torch.autograd.grad.html>`__.
