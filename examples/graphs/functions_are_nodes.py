r"""
grad_fn and next_functions: the nodes of the autograd graph
===========================================================

The graph that autograd records is made of *functions*, not of tensors. Each node is the backward step of one
operation, and ``next_functions`` tells it where to send the gradients it computes. This page walks such a graph node
by node, so that you can read one yourself: to debug a model, to draw it, or to understand what ``backward()`` does.

.. math::

   b = w_1 a, \quad c = w_2 a, \quad d = w_3 b + w_4 c, \quad L = 10 - d
"""

# %%
# Nodes are functions, not tensors
# --------------------------------
# Five leaves, and four lines that compute with them.

import math

import torch
from torch.autograd.graph import get_gradient_edge

values = (4.0, 2.0, 5.0, 9.0, 7.0)
a, w1, w2, w3, w4 = (torch.tensor(value, requires_grad=True) for value in values)

b = w1 * a
c = w2 * a
d = w3 * b + w4 * c
L = 10 - d

# graph: L -- Five leaves, six operations: two of the results have no name in the script

print(f"b = {b.item():g}   c = {c.item():g}   d = {d.item():g}   L = {L.item():g}")

# sphinx_gallery_start_ignore
assert [t.item() for t in (b, c, d, L)] == [8, 20, 212, -202]
# sphinx_gallery_end_ignore

# %%
# ``grad_fn`` is the node that belongs to a tensor. The line that computes ``d`` has two products and a sum, so it
# recorded three nodes. Only the last one is ``d.grad_fn``. The other two belong to results that never got a name. The
# graph keeps their nodes all the same, because the gradient has to pass through them.

left, right = (node for node, _ in d.grad_fn.next_functions)

print("d.grad_fn:         ", d.grad_fn.name())
print("and the two before:", left.name(), right.name())
print("the node of b is one of the two:", b.grad_fn in (left, right))
print("the node of c is one of the two:", c.grad_fn in (left, right))

# sphinx_gallery_start_ignore
names = [node.name() for node in (d.grad_fn, left, right)]
assert names == ["AddBackward0", "MulBackward0", "MulBackward0"]
assert left is not right and not {left, right} & {b.grad_fn, c.grad_fn}
# sphinx_gallery_end_ignore

# %%
# next_functions: pairs of a node and a number
# --------------------------------------------
# ``next_functions`` holds one pair for each argument that the operation can be differentiated by, in order.
# Following the pairs from ``L.grad_fn`` reaches the whole graph. A node can be reached in more than one way, so the
# walk keeps a list of what it has found.


def walk(root):
    """Every node that can be reached from root, each of them once, nearest first."""
    found = [root]
    for node in found:  # the list grows while it is read
        for next_node, _ in node.next_functions:
            if next_node is not None and next_node not in found:
                found.append(next_node)
    return found


# %%
# The walk from ``L`` finds these nodes. Each pair is shown as the row of the next node, and the number.

nodes = walk(L.grad_fn)
tensor_of = {b.grad_fn: "b", c.grad_fn: "c", d.grad_fn: "d", L.grad_fn: "L"}

print("row  node                            result  next_functions as (row, number)")
for row, node in enumerate(nodes):
    pairs = [(nodes.index(near), number) for near, number in node.next_functions]
    shown = ", ".join(map(str, pairs)) or "none"
    print(f"{row:>3}  {node.name():<31} {tensor_of.get(node, '-'):<7} {shown}")

# sphinx_gallery_start_ignore
assert len(nodes) == 11
assert sum(not node.name().endswith("AccumulateGrad") for node in nodes) == 6
edges = [edge for node in nodes for edge in node.next_functions]
assert len(edges) == 11 and all(number == 0 for _, number in edges)
assert nodes[2] is left and nodes[3] is right
assert [len(node.next_functions) for node in nodes] == [1, 2, 2, 2, 0, 2, 0, 2, 0, 0, 0]
assert [edge[0] for edge in edges].count(nodes[9]) == 2 and nodes[9].variable is a
edges = nodes[5].next_functions + nodes[7].next_functions
assert [nodes.index(node) for node, _ in edges] == [8, 9, 10, 9]
# sphinx_gallery_end_ignore

# %%
# Eleven nodes: six operations, and one ``AccumulateGrad`` for each of the five leaves. Rows 2 and 3 are the two
# nameless products. Row 9 is reached twice, from row 5 and from row 7: both ``b`` and ``c`` were computed from ``a``.
#
# The number in a pair says *which input* of the next node the gradient goes to. An input of a backward node stands
# for an output of the operation, so it is 0 as long as every operation has a single result. ``unbind`` has several:

x = torch.tensor([2.0, 5.0, 9.0], requires_grad=True)
first, middle, last = x.unbind()
y = first * last

# graph: y -- One UnbindBackward0 node has three results; y uses the first and the last

edge = get_gradient_edge(last)
print("y:   ", [(node.name(), number) for node, number in y.grad_fn.next_functions])
print("last:", (edge.node.name(), edge.output_nr))
print("one node for all three:", first.grad_fn is middle.grad_fn is last.grad_fn)
y.backward()
print("x.grad:", x.grad.tolist())

# sphinx_gallery_start_ignore
pairs = [(node.name(), number) for node, number in y.grad_fn.next_functions]
assert pairs == [("UnbindBackward0", 0), ("UnbindBackward0", 2)]
assert first.grad_fn is middle.grad_fn is last.grad_fn
assert edge.node is last.grad_fn and edge.output_nr == 2
assert x.grad.tolist() == [9.0, 0.0, 2.0]
# sphinx_gallery_end_ignore

# %%
# The node alone does not say which of the three results was used. The pair does. Nothing used ``middle``, so no edge
# leads to input 1, and the gradient at that place is zero. ``get_gradient_edge`` gives the same pair for any tensor
# that requires a gradient.

# %%
# AccumulateGrad: where a path ends
# ---------------------------------
# A leaf has no ``grad_fn``, because nothing computed it. The graph still needs a place where its gradient arrives: a
# node that holds the leaf in ``.variable`` and adds what arrives to the leaf's ``.grad``. No other node of this graph
# has a ``.variable``, and none of the five has a next function. Here every path ends.

leaves = {"a": a, "w1": w1, "w2": w2, "w3": w3, "w4": w4}

for row, node in enumerate(nodes):
    if hasattr(node, "variable"):
        name = next(name for name, leaf in leaves.items() if leaf is node.variable)
        value = f"{name:<2} = {node.variable.item():g}"
        print(f"row {row:>2}: {value}   next_functions: {node.next_functions}")

# graph: L (AccumulateGrad) -- Every path ends in an AccumulateGrad node; the two edges to a share one

from_b, from_c = b.grad_fn.next_functions[1][0], c.grad_fn.next_functions[1][0]
print("a.grad_fn:", a.grad_fn)
print("b and c lead to the same node:", from_b is from_c)
assert get_gradient_edge(a).node.variable is a

# sphinx_gallery_start_ignore
ends = [node for node in nodes if hasattr(node, "variable")]
assert len(ends) == 5 and a.grad_fn is None and from_b is from_c is nodes[9]
for node, leaf in zip(ends, (w3, w4, w1, a, w2), strict=True):
    assert node.variable is leaf and node.next_functions == ()
for node in nodes:
    assert hasattr(node, "variable") == node.name().endswith("AccumulateGrad")
# sphinx_gallery_end_ignore

# %%
# Constants: an edge to nowhere, or no edge
# -----------------------------------------
# A tensor argument that requires no gradient keeps its place in ``next_functions``, with ``None`` for the node. What
# a backward node returns has one entry for each place, so a place cannot be left out.

ten = torch.tensor(10.0)

for text in ("10 - d", "ten - d", "d - 10", "d * 2", "d ** 2"):
    node = eval(text).grad_fn
    pairs = [(near and near.name(), number) for near, number in node.next_functions]
    print(f"{text:<8} {node.name():<14} {pairs}")

# sphinx_gallery_start_ignore
places = []
for result in (L, ten - d, d - 10, d * 2, d**2):
    ends = [node and "d" for node, _ in result.grad_fn.next_functions]
    places.append(ends)
del result
assert places == [["d"], [None, "d"], ["d", None], ["d", None], ["d"]]
assert L.grad_fn.name() == "RsubBackward1"
one = torch.tensor(1.0)
assert (d - 10).grad_fn(one) == (1, None) and (ten - d).grad_fn(one) == (None, -1)
# sphinx_gallery_end_ignore

# %%
# The place tells which argument it was: the first in ``ten - d``, the second in ``d - 10``.
#
# A plain number can go either way. In ``d - 10`` and ``d * 2`` it takes the place of a tensor and leaves a ``None``.
# In ``10 - d`` and ``d ** 2`` the operation recorded is one that takes a number as such, and there is no place for it
# at all. You cannot tell from the expression, so code that follows edges has to expect ``None`` everywhere.

# %%
# Edges run opposite to the data
# ------------------------------
# The data went from ``a`` through ``b`` to ``d``. The edges lead from ``d`` through ``b`` to ``a``, and never the
# other way. A result knows what it was computed from; it does not know what was made of it later.

print("from d, is the node of b within reach?", b.grad_fn in walk(d.grad_fn))
print("from b, is the node of d within reach?", d.grad_fn in walk(b.grad_fn))

# sphinx_gallery_start_ignore
assert b.grad_fn in walk(d.grad_fn) and d.grad_fn not in walk(b.grad_fn)
# sphinx_gallery_end_ignore

# %%
# Multiply along a path, add over the paths
# -----------------------------------------
# A node can be called with a gradient and returns one gradient for each edge. Called with 1, the operations of this
# graph return their local derivatives. So every path from ``L`` to a leaf can be listed, with the factors on its
# edges. (This is for learning: the reference lists no call among a node's methods. In programs, use
# ``torch.autograd.grad``.)


def paths(node, leaf, factors=()):
    """For each path from node to leaf: the local derivatives on the way."""
    if hasattr(node, "variable"):
        if node.variable is leaf:
            yield factors
        return
    local = node(torch.tensor(1.0))
    local = local if isinstance(local, tuple) else (local,)
    for (next_node, _), derivative in zip(node.next_functions, local, strict=True):
        if next_node is not None:
            yield from paths(next_node, leaf, (*factors, derivative.item()))


# %%
# The factors along one path multiply. Where several paths lead to a leaf, the products add.

totals = {}
for name, leaf in leaves.items():
    routes = list(paths(L.grad_fn, leaf))
    for factors in routes:
        product = " * ".join(f"({factor:+g})" for factor in factors)
        print(f"L to {name:<2}  {product} = {math.prod(factors):g}")
    totals[name] = sum(map(math.prod, routes))
    print(f"    dL/d{name} = {totals[name]:g}")

# sphinx_gallery_start_ignore
assert totals == {"a": -53, "w1": -36, "w2": -28, "w3": -8, "w4": -20}
assert list(paths(L.grad_fn, a)) == [(-1, 1, 9, 2), (-1, 1, 7, 5)]
assert [len(list(paths(L.grad_fn, t))) for t in (w1, w2, w3, w4)] == [1, 1, 1, 1]
# sphinx_gallery_end_ignore

# %%
# Each weight is reached by one path, so its gradient is one product. Two paths reach ``a``, one through each of the
# edges to row 9, and its gradient is the sum of two products:
#
# .. math::
#
#    \frac{\partial L}{\partial a}
#      = \underbrace{(-1) \cdot 1 \cdot w_3 \cdot w_1}_{\text{through } b}
#      + \underbrace{(-1) \cdot 1 \cdot w_4 \cdot w_2}_{\text{through } c}
#      = -18 - 35 = -53
#
# ``backward()`` comes to the same numbers without listing paths. It visits each node once, when everything that is to
# arrive there has arrived, and passes on the sum. A hook on every node shows it.

arrived = [[] for _ in nodes]
for node, visits in zip(nodes, arrived, strict=True):
    node.register_prehook(lambda sent, visits=visits: visits.append(sent[0].item()))

L.backward()

print("visits of each node:     ", [len(visits) for visits in arrived])
print("what arrived at row 9, a:", arrived[9])

# graph: L -- The gradients: one path to each weight, and two paths to a whose products add

for name, leaf in leaves.items():
    gradient = leaf.grad.item()
    print(f"dL/d{name:<2}   autograd {gradient:+g}   over paths {totals[name]:+g}")
    assert gradient == totals[name]

# sphinx_gallery_start_ignore
assert all(len(visits) == 1 for visits in arrived) and arrived[9] == [-53]
# sphinx_gallery_end_ignore

# %%
# What people get wrong
# ---------------------
# **A walk that forgets None and shared nodes.** The short recursion below gets through this graph, but it counts the
# node of ``a`` once for each path. In ``z``, every result is used twice by the next, so each of the 15 steps doubles
# the number of paths. And the first constant stops the recursion.


def count(node):
    return 1 + sum(count(next_node) for next_node, _ in node.next_functions)


z = a
for _ in range(15):
    z = z + z

print(f"L: {len(walk(L.grad_fn))} nodes, counted {count(L.grad_fn)}")
print(f"z: {len(walk(z.grad_fn))} nodes, counted {count(z.grad_fn)}")
try:
    count((d * 2).grad_fn)
except AttributeError as error:
    print(f"AttributeError: {error}")
    assert str(error) == "'NoneType' object has no attribute 'next_functions'"

# sphinx_gallery_start_ignore
assert len(walk(z.grad_fn)) == 16 and count(z.grad_fn) == 2**16 - 1
assert count(L.grad_fn) == 12 and len(walk(L.grad_fn)) == 11
assert len(walk((d * 2).grad_fn)) == 11
# sphinx_gallery_end_ignore

# %%
# ``walk`` above has both cures: it skips ``None``, and it keeps what it has found.
#
# **Asking a node for its tensor.** Only the nodes of leaves have a ``.variable``. ``d.grad_fn`` cannot give you ``d``
# back: keep the tensor itself if you want to look at its value later.

try:
    print(d.grad_fn.variable)
except AttributeError as error:
    print(f"AttributeError: {error}")
    assert "'AddBackward0' object has no attribute 'variable'" in str(error)

# %%
# Exercise
# --------
# Replace the last line of the computation by ``M = d * d``. Before you run anything, write down the
# ``next_functions`` of ``M.grad_fn``, the number of paths from ``M`` to ``a``, and :math:`\partial M / \partial a`.
#
# .. solution::
#
# One node with two edges, and both lead to the node of ``d``. Each of them goes on to ``a`` by two paths, so there
# are four. The factor on either first edge is :math:`d = 212`, so the gradient is
# :math:`2 \cdot 212 \cdot (9 \cdot 2 + 7 \cdot 5) = 22472`.

d = w3 * (w1 * a) + w4 * (w2 * a)
M = d * d
routes = list(paths(M.grad_fn, a))

print([(node.name(), number) for node, number in M.grad_fn.next_functions])
for factors in routes:
    product = " * ".join(f"{factor:g}" for factor in factors)
    print(f"{product} = {math.prod(factors):g}")
(gradient,) = torch.autograd.grad(M, a)
total = sum(map(math.prod, routes))
print(f"sum over {len(routes)} paths: {total:g}, autograd: {gradient.item():g}")

assert all(node is d.grad_fn for node, _ in M.grad_fn.next_functions)
assert total == gradient.item() == 22472 and len(routes) == 4

# %%
# See also
# --------
# - Before: :ref:`sphx_glr_gallery_graphs_leaves_and_roots.py`, which tensors keep a gradient, and why.
# - Next: :ref:`sphx_glr_gallery_graphs_grad_fn_names.py`, which operation records which node.
# - :ref:`sphx_glr_gallery_graphs_first_graph.py`, a sum over two paths derived by hand.
# - :ref:`sphx_glr_gallery_functions_exp_function.py`, how to write a node of your own.
# - In PyTorch's reference: `Node.next_functions
#   <https://docs.pytorch.org/docs/stable/generated/torch.autograd.graph.Node.next_functions.html>`__ and
#   `How autograd encodes the history
#   <https://docs.pytorch.org/docs/stable/notes/autograd.html#how-autograd-encodes-the-history>`__.
