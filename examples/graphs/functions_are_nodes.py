r"""
grad_fn and next_functions explained
====================================

.. in-short::

   ``t.grad_fn`` is the node that receives the gradient of ``t``. For a leaf it is None.
   ``t.grad_fn.next_functions`` says where this node sends gradients: pairs of a node and an input number. Follow the pairs to
   walk the graph of a loss. Two traps: an entry can be ``(None, 0)``, and several paths can lead to one node.
"""

# %%
# The problem: which parameters does this loss reach?
# ---------------------------------------------------
# Your model has two heads. After ``loss.backward()``, some parameters have no gradient, and ``DistributedDataParallel``
# complains about unused ones. The graph that PyTorch recorded knows which. Start at ``loss.grad_fn`` and follow the pairs:

import torch
from torch import nn
from torch.autograd.graph import get_gradient_edge
from torch.nn.functional import cross_entropy


def walk(root):
    found, waiting = set(), [root]
    while waiting:
        node = waiting.pop()
        if node is not None and node not in found:
            found.add(node)
            waiting += [next_node for next_node, _ in node.next_functions]
    return found


body, classes, boxes = nn.Linear(4, 8), nn.Linear(8, 3), nn.Linear(8, 4)
model = nn.ModuleDict({"body": body, "classes": classes, "boxes": boxes})

scores = classes(body(torch.randn(2, 4)).relu())
loss = cross_entropy(scores, torch.tensor([0, 2]))

reached = {n.variable for n in walk(loss.grad_fn) if hasattr(n, "variable")}
for name, parameter in model.named_parameters():
    print(f"{name:<14}", "reached" if parameter in reached else "NOT reached")

# sphinx_gallery_start_ignore
_never = [name for name, p in model.named_parameters() if p not in reached]
assert _never == ["boxes.weight", "boxes.bias"]
loss.backward()
assert all((p.grad is not None) == (p in reached) for p in model.parameters())
assert walk(None) == set()
_hidden = torch.utils.checkpoint.checkpoint(
    body, torch.randn(2, 4, requires_grad=True), use_reentrant=True
)
assert not any(
    n.variable is body.weight for n in walk(_hidden.grad_fn) if hasattr(n, "variable")
)
_hidden.sum().backward()  # and yet it gets a gradient
del _hidden, loss
# sphinx_gallery_end_ignore

# %%
# This loss never used the head ``boxes``. (Parameters inside ``checkpoint(..., use_reentrant=True)`` are missing from this
# graph, but get gradients.)

# %%
# Nodes and pairs
# ---------------
# How does ``walk`` work? A graph small enough to see whole:

values = (4.0, 2.0, 5.0, 9.0, 7.0)
a, w1, w2, w3, w4 = (torch.tensor(v, requires_grad=True) for v in values)

b = w1 * a
c = w2 * a
d = w3 * b + w4 * c
L = 10 - d

# graph: L -- Five leaves, six operations: two of the results have no name in the script

# sphinx_gallery_start_ignore
assert [t.item() for t in (b, c, d, L)] == [8, 20, 212, -202]
# sphinx_gallery_end_ignore

# %%
# The graph is made of *functions*, not of tensors. Each of the six operations recorded one node, its backward step. The line
# that computes ``d`` has two products and a sum, so it recorded three nodes. Only the last one is ``d.grad_fn``:

(left, _), (right, _) = d.grad_fn.next_functions

print("d.grad_fn:", d.grad_fn.name())
print("and next: ", left.name(), "and", right.name())

# sphinx_gallery_start_ignore
names = [node.name() for node in (d.grad_fn, left, right)]
assert names == ["AddBackward0", "MulBackward0", "MulBackward0"]
assert left is not right and not {left, right} & {b.grad_fn, c.grad_fn}
# sphinx_gallery_end_ignore

# %%
# **The rule: each pair leads one step from the loss back to the leaves.** From the node of ``d`` you can reach the node of
# ``b``, but not that of ``L``.

# %%
# AccumulateGrad: where a path ends
# ---------------------------------
# A leaf has no ``grad_fn``. It has an ``AccumulateGrad`` node, which keeps the leaf in ``.variable`` and has no next functions.
# In ``backward()``, it adds what arrives to the leaf's ``.grad``. With one for each of the five leaves, ``L`` has 11 nodes:

nodes = walk(L.grad_fn)
print(len(nodes), "nodes")

# graph: L (AccumulateGrad) -- Every path ends in an AccumulateGrad node; the two edges to a share one

# sphinx_gallery_start_ignore
assert len(nodes) == 11
assert sum(not node.name().endswith("AccumulateGrad") for node in nodes) == 6
edges = [edge for node in nodes for edge in node.next_functions]
assert len(edges) == 11 and all(number == 0 for _, number in edges)
assert b.grad_fn in walk(d.grad_fn) and L.grad_fn not in walk(d.grad_fn)
ends = [node for node in nodes if hasattr(node, "variable")]
from_b, from_c = b.grad_fn.next_functions[1][0], c.grad_fn.next_functions[1][0]
assert len(ends) == 5 and a.grad_fn is None and from_b is from_c
assert get_gradient_edge(a).node is from_b and from_b.variable is a
assert {node.variable for node in ends} == {a, w1, w2, w3, w4}
assert all(node.next_functions == () for node in ends)
for node in nodes:
    assert hasattr(node, "variable") == node.name().endswith("AccumulateGrad")
_alone = torch.tensor(3.0, requires_grad=True)
torch.autograd.grad(_alone * 2, _alone)  # grad() adds nothing to .grad
_constant = torch.tensor(10.0)
assert _alone.grad is None and _constant.is_leaf
for _sum in (2, 4):  # and backward() does add
    (_alone * 2).backward()
    assert _alone.grad == _sum
assert (_alone * _constant).grad_fn.next_functions[1] == (None, 0)
del ends, from_b, from_c
# sphinx_gallery_end_ignore

# %%
# The number in a pair
# --------------------
# An operation can have several results and one node for all of them. Then the node has several inputs, and the number in a pair
# says which input the gradient goes to. In the graph of ``L``, each number is 0. But ``unbind`` has three results:

x = torch.tensor([2.0, 5.0, 9.0], requires_grad=True)
first, middle, last = x.unbind()
y = first * last

# graph: y -- One UnbindBackward0 node for three results; y uses the first and the last

print([(node.name(), number) for node, number in y.grad_fn.next_functions])
first.grad_fn.register_prehook(lambda grads: print("arrived:", grads))
y.backward()

# sphinx_gallery_start_ignore
pairs = [(node.name(), number) for node, number in y.grad_fn.next_functions]
assert pairs == [("UnbindBackward0", 0), ("UnbindBackward0", 2)]
assert first.grad_fn is middle.grad_fn is last.grad_fn


def arrivals():
    tensor = torch.tensor([2.0, 5.0, 9.0], requires_grad=True)
    parts, found = tensor.unbind(), []
    parts[0].grad_fn.register_prehook(found.extend)
    (parts[0] * parts[2]).backward()
    return found


assert arrivals() == [9, None, 2] and x.grad.tolist() == [9, 0, 2]
assert len(first.grad_fn._input_metadata) == 3
# sphinx_gallery_end_ignore

# %%
# Nothing used ``middle``, so the node gets ``None`` at input 1, and counts it as zero. If you write hooks for nodes, expect
# ``None`` among the gradients.
#
# ``get_gradient_edge(t)`` gives the pair for a tensor ``t``, as ``edge.node`` and ``edge.output_nr``. It works for a leaf, too.

# sphinx_gallery_start_ignore
_edges = [get_gradient_edge(t) for t in (first, last, a)]
assert [edge.output_nr for edge in _edges] == [0, 2, 0]
assert _edges[1].node is last.grad_fn and _edges[2].node.variable is a
# sphinx_gallery_end_ignore

# %%
# Constants: (None, 0), or nothing at all
# ---------------------------------------
# In ``ten - d``, the constant ``ten`` has a slot in ``next_functions`` although it needs no gradient, and the slot contains
# ``None``. A plain Python number has a slot in some operations and none in others:

ten = torch.tensor(10.0)
expressions = {
    "ten - d": ten - d,
    "d - 10": d - 10,
    "d * 2": d * 2,
    "10 - d": 10 - d,
    "d ** 2": d**2,
}
for text, result in expressions.items():
    pairs = result.grad_fn.next_functions
    print(text.ljust(8), [node and "d" for node, _ in pairs])

# sphinx_gallery_start_ignore
slots = [
    [node and "d" for node, _ in t.grad_fn.next_functions] for t in expressions.values()
]
assert slots == [[None, "d"], ["d", None], ["d", None], ["d"], ["d"]]
assert all(
    node in (None, d.grad_fn)
    for t in expressions.values()
    for node, _ in t.grad_fn.next_functions
)
one = torch.tensor(1.0)
assert (d - 10).grad_fn(one) == (1, None) and (ten - d).grad_fn(one) == (None, -1)
assert not ten.requires_grad


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, tensor, index, factor):
        return tensor * factor

    @staticmethod
    def backward(ctx, grad):
        return grad * 3, None, None


(slot, empty) = Scale.apply(a, torch.tensor([1]), 3.0).grad_fn.next_functions
assert slot[0].variable is a and empty == (None, 0)

# sphinx_gallery_end_ignore

# %%
# So code that walks a graph has to expect ``None``. A custom ``torch.autograd.Function`` has one slot for each argument that
# is a tensor.

# %%
# What backward does with the nodes
# ---------------------------------
# ``backward()`` calls each node of this graph once, when everything that will arrive there has arrived, and passes the
# results on. Two paths lead to ``a``. A hook on its node shows that one sum arrives:

visits = {node: [] for node in nodes}
for node, seen in visits.items():
    node.register_prehook(lambda g, seen=seen: seen.append(g[0].item()))

L.backward()

# graph: L -- One path leads to each weight, and two to a: multiply along a path, add over paths

print("calls of each node:      ", [len(seen) for seen in visits.values()])
print("arrived at the node of a:", visits[get_gradient_edge(a).node])

# sphinx_gallery_start_ignore
assert all(len(seen) == 1 for seen in visits.values())
assert visits[get_gradient_edge(a).node] == [-53]
grads = [leaf.grad.item() for leaf in (a, w1, w2, w3, w4)]
assert grads == [-53, -36, -28, -8, -20]
# sphinx_gallery_end_ignore

# %%
# The two paths to ``a``, in numbers:
#
# .. math::
#
#    \frac{\partial L}{\partial a}
#      = \underbrace{(-1) \cdot 1 \cdot w_3 \cdot w_1}_{\text{through } b}
#      + \underbrace{(-1) \cdot 1 \cdot w_4 \cdot w_2}_{\text{through } c}
#      = -18 - 35 = -53
#
# Because ``backward()`` calls each node once, it needs no list of the paths. That matters: a graph of 16 nodes can have 32768
# paths, as you see next.

# %%
# What people get wrong
# ---------------------
# **A walk that forgets shared nodes and None.** This short recursion looks right. It counts a node once for *each path* that
# leads to it. With 15 additions in a row, 32768 paths lead to ``a``, and the 16 nodes are counted as 65535. At a ``None`` the
# recursion stops with an error. In ``d * 2``, that is the entry of the 2:


def count(node):
    return 1 + sum(count(next_node) for next_node, _ in node.next_functions)


z = a
for _ in range(15):
    z = z + z

print("walk: ", len(walk(z.grad_fn)), "nodes")
print("count:", count(z.grad_fn), "nodes")
try:
    count((d * 2).grad_fn)
except AttributeError as error:
    message = str(error)
    print(f"AttributeError: {message}")

# sphinx_gallery_start_ignore
assert message == "'NoneType' object has no attribute 'next_functions'"
del message
assert len(walk(z.grad_fn)) == 16 and count(z.grad_fn) == 2**16 - 1
assert count(L.grad_fn) == 12  # the constant 10 of L has no entry
assert len(walk((d * 2).grad_fn)) == 11
assert (d * 2).grad_fn.next_functions[1] == (None, 0)
# sphinx_gallery_end_ignore

# %%
# **Asking a node for its tensor.** Among these nodes, only those of leaves have a ``.variable``. ``d.grad_fn`` cannot give
# you ``d``, so keep the tensor if you want to look at it later.

try:
    d.grad_fn.variable
except AttributeError as error:
    message = str(error)
    print(f"AttributeError: {message}")

# sphinx_gallery_start_ignore
assert "'AddBackward0' object has no attribute 'variable'" in message
del message
# sphinx_gallery_end_ignore

# %%
# Exercise
# --------
# Replace the last line of the computation by ``M = d * d``. Before you run anything, write down the ``next_functions`` of
# ``M.grad_fn``, the number of paths from ``M`` to ``a``, and :math:`\partial M / \partial a`.
#
# .. solution::
#
# One node with two pairs, and both lead to the node of ``d``. From there, two paths lead to ``a``, so there are four in
# all. The derivative of ``d`` with respect to ``a`` is :math:`9 \cdot 2 + 7 \cdot 5 = 53`, and the gradient is
# :math:`2 \cdot 212 \cdot 53 = 22472`.

d = w3 * (w1 * a) + w4 * (w2 * a)
M = d * d


def paths_to(leaf, node):
    if hasattr(node, "variable"):
        return int(node.variable is leaf)
    return sum(paths_to(leaf, n) for n, _ in node.next_functions if n)


print([node.name() for node, _ in M.grad_fn.next_functions])
print(paths_to(a, M.grad_fn), "paths")
gradient = torch.autograd.grad(M, a)[0].item()
print("gradient", gradient)

# predict: paths_to(a, M.grad_fn) -- How many paths lead from ``M`` to ``a``?
# predict: gradient -- What is ∂M/∂a?

# sphinx_gallery_start_ignore
assert all(node is d.grad_fn for node, _ in M.grad_fn.next_functions)
assert gradient == 22472 and paths_to(a, M.grad_fn) == 4
assert paths_to(a, (M * 2).grad_fn) == 4  # with a constant
assert paths_to(a, z.grad_fn) == 32768 and len(walk(z.grad_fn)) == 16
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_graphs_grad_fn_names.py`: which operation records which node.
# - :ref:`sphx_glr_gallery_differentiation_build_the_engine.py`: your own backward over these nodes.
# - In PyTorch's reference: `Node.next_functions
#   <https://docs.pytorch.org/docs/stable/generated/torch.autograd.graph.Node.next_functions.html>`__ and
#   `How autograd encodes the history
#   <https://docs.pytorch.org/docs/stable/notes/autograd.html#how-autograd-encodes-the-history>`__.
