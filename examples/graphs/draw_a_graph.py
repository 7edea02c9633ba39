r"""
Draw the autograd graph with Graphviz
=====================================

The autograd graph of your model is in memory after every forward pass, and ``next_functions`` leads through it. A
walk of 25 lines turns it into a drawing: useful to check what a loss depends on, where a path was cut, and what was
recorded at all. This page builds that walk, and says what the ready-made tools draw, since they do not all draw
this graph.
"""

# %%
# What there is to draw
# ---------------------
# A small expression with a leaf for each parameter, a constant input ``x``, and a result ``y`` that is used twice.

import io
import os
from unittest import mock

import graphviz
import matplotlib.pyplot as plt
import torch

torch.manual_seed(0)
x = torch.randn(3)
weight = torch.randn(2, 3, requires_grad=True)
bias = torch.zeros(2, requires_grad=True)

y = torch.relu(weight @ x + bias)
loss = (y * y).sum()

print("loss.grad_fn:", loss.grad_fn.name())
print("leads to:    ", [node.name() for node, _ in loss.grad_fn.next_functions])

# sphinx_gallery_start_ignore
assert (
    loss.grad_fn.name() == "SumBackward0"
    and loss.grad_fn.next_functions[0][0].name() == "MulBackward0"
)
# sphinx_gallery_end_ignore

# %%
# The walk
# --------
# A ``Digraph`` of the package ``graphviz`` collects nodes and edges. Each node of the autograd graph gets a short
# name of its own, in the order in which it is found: ``n0``, ``n1``. Names of operations would not do, because they
# repeat. A leaf is drawn filled, with its shape, and with a name if you give one: tensors do not know what they are
# called.


def draw(root, names):
    """The graph behind root, and the key of each node. names: from leaf to text."""
    style = {"shape": "box", "fontname": "monospace"}
    graph = graphviz.Digraph(graph_attr={"rankdir": "RL"}, node_attr=style)
    key = {}

    def add(node):
        key[node] = f"n{len(key)}"
        if hasattr(node, "variable"):  # AccumulateGrad, the node of a leaf
            leaf = node.variable
            label = f"{names.get(leaf, 'leaf')} {tuple(leaf.shape)}"
            graph.node(key[node], label, style="filled", fillcolor="#d1fae5")
        else:
            graph.node(key[node], node.name())

    add(root.grad_fn)
    nodes = [root.grad_fn]
    for node in nodes:  # the list grows while it is read
        for next_node, _ in node.next_functions:
            if next_node is not None:
                if next_node not in key:
                    add(next_node)
                    nodes.append(next_node)
                graph.edge(key[node], key[next_node])
    return graph, key


graph, key = draw(loss, names={weight: "weight", bias: "bias"})
print(graph.source)

# sphinx_gallery_start_ignore
assert [line.strip() for line in graph.source.splitlines() if "->" in line] == [
    f"n{tail} -> n{head}"
    for tail, head in [(0, 1), (1, 2), (1, 2), (2, 3), (3, 4), (3, 5), (4, 6)]
]
import inspect

assert (
    len([line for line in inspect.getsource(draw).splitlines() if line.strip()]) <= 25
)
# sphinx_gallery_end_ignore

# %%
# This text is the whole drawing. Any Graphviz renders it: the program ``dot``, an editor's preview, a web page. The
# arrows are those of ``next_functions``, from a node to the ones that get its gradients. With ``rankdir=RL`` they run
# from right to left, so that the computation reads from left to right.
#
# The picture
# -----------
# ``graph.render()`` of the package calls the program ``dot``, which has to be installed beside it. The wheels of
# ``pygraphviz`` contain a Graphviz of their own, so it can do the layout inside this process.

try:
    import pygraphviz
except ImportError:
    pygraphviz = None


def show(graph, title, width=7.0):
    if pygraphviz is None:
        print("install pygraphviz, or render this text with Graphviz:\n", graph.source)
        return
    drawing = pygraphviz.AGraph(string=graph.source)
    drawing.layout("dot")
    image = plt.imread(io.BytesIO(drawing.draw(format="png:cairo", args="-Gdpi=200")))
    size = (width, width * image.shape[0] / image.shape[1] + 0.4)
    _, ax = plt.subplots(figsize=size, layout="constrained")
    ax.imshow(image)
    ax.set_title(title)
    ax.axis("off")


# figure: The graph from right to left: SumBackward0, MulBackward0, two arrows to ReluBackward0, AddBackward0, and
#   from there to the leaf bias and over MvBackward0 to the leaf weight.
show(graph, "Two arrows from the product to relu: y is used twice")

# %%
# What the drawing tells:
#
# - ``x`` is not in it. It requires no gradient, so its edge leads to ``None``, and the walk passes it over.
# - Neither is ``y``. A node stands for an operation, and it does not know the names of its results.
# - The two arrows are the two uses of ``y`` in ``y * y``. Two paths lead to each leaf.
#
# A model
# -------
# ``named_parameters()`` supplies the names. Every parameter that the optimizer is to change should appear, since one
# that does not gets no gradient. Here one of four is missing:

model = torch.nn.Sequential(
    torch.nn.Linear(4, 3), torch.nn.Tanh(), torch.nn.Linear(3, 1)
)
hidden = model[1](model[0](torch.randn(8, 4)))
output = hidden.mean(1, keepdim=True) + model[2].bias

names = {parameter: name for name, parameter in model.named_parameters()}
model_graph, _ = draw(output.mean(), names)

# figure: MeanBackward0, AddBackward0, and from there the leaf 2.bias and a path over MeanBackward1 and TanhBackward0
#   to AddmmBackward0, which leads to 0.bias and over TBackward0 to 0.weight. There is no 2.weight.
show(model_graph, "The weight of the last layer is missing")

missing = [name for name in names.values() if name not in model_graph.source]
print("not in the drawing:", missing)

# sphinx_gallery_start_ignore
assert missing == ["2.weight"]
unused = {"allow_unused": True, "retain_graph": True}
assert torch.autograd.grad(output.mean(), model[2].weight, **unused) == (None,)
x_edges = [
    node
    for node, _ in loss.grad_fn.next_functions[0][0].next_functions[0][0].next_functions
]
matrix_vector = x_edges[0].next_functions[0][0]
assert matrix_vector.name() == "MvBackward0" and matrix_vector.next_functions[1] == (
    None,
    0,
)
del x_edges, matrix_vector
# sphinx_gallery_end_ignore

# %%
# A large graph
# -------------
# Graphs of real models have thousands of nodes, and a picture of them all says nothing. What repeats can be folded: a
# run of nodes in which each feeds only the next becomes one box. The figures of this site do that in large graphs.

start = torch.tensor(0.5, requires_grad=True)
end = start
for _ in range(100):
    end = torch.tanh(end)

# graph: end -- A hundred nodes in a row: all but the root are drawn as one card

count, node = 0, end.grad_fn
while node.name() == "TanhBackward0":
    count, node = count + 1, node.next_functions[0][0]
print(count, "nodes before", node.name())
assert count == 100

# %%
# What the ready-made tools draw
# ------------------------------
# - `torchviz <https://github.com/szagoruyko/pytorchviz>`__ draws this graph, from a result, with a walk like the one
#   above. It can add what the nodes saved.
# - `torchview <https://github.com/mert-kurttutan/torchview>`__ draws the forward pass, from a model and the size of
#   its input: modules, functions and tensors with their shapes.
# - `Netron <https://github.com/lutzroeder/netron>`__ draws model *files*: ONNX, TorchScript, exported programs and
#   others. The autograd graph is never in a file. It belongs to one forward pass, and saving drops it:

file = io.BytesIO()
torch.save({"output": output, **model.state_dict()}, file)
file.seek(0)
loaded = torch.load(file)

print("in memory:", output.grad_fn.name())
print("from file:", loaded["output"].grad_fn)
print("a leaf now, with requires_grad:", loaded["output"].requires_grad)

# sphinx_gallery_start_ignore
assert (
    loaded["output"].grad_fn is None
    and loaded["output"].is_leaf
    and loaded["output"].requires_grad
)
assert (
    not any(tensor.grad_fn for tensor in loaded.values()) and output.grad_fn is not None
)
# sphinx_gallery_end_ignore

# %%
# What people get wrong
# ---------------------
# **Installing the Python package only.** ``pip install graphviz`` brings the classes, not the program. Here the
# search path is empty, as on a machine without it.

with mock.patch.dict(os.environ, PATH=""):
    try:
        graph.pipe(format="svg")
    except graphviz.ExecutableNotFound as error:
        print("ExecutableNotFound:", str(error).replace(", ", ",\n"))
        assert "make sure the Graphviz executables" in str(error)

# %%
# Install Graphviz itself, or let ``pygraphviz`` do the layout as above. The text in ``graph.source`` is there
# in any case.
#
# **Drawing what was not recorded.** A result computed under ``no_grad`` or cut off by ``detach()`` has no node: its
# ``grad_fn`` is ``None``.

try:
    draw(loss.detach(), {})
except AttributeError as error:
    print(f"AttributeError: {error}")
    assert str(error) == "'NoneType' object has no attribute 'name'"

# %%
# **Using the names of nodes as keys.** Graphviz takes equal names for the same box. Two operations of one kind become
# one, and the drawing shows a loop that no graph of autograd has.

outer = torch.tanh(torch.tanh(weight)).grad_fn
inner = outer.next_functions[0][0]

merged = graphviz.Digraph()
merged.edge(outer.name(), inner.name())
print(merged.source)

# sphinx_gallery_start_ignore
assert outer is not inner and outer.name() == inner.name() == "TanhBackward0"
assert merged.source.count("TanhBackward0 -> TanhBackward0") == 1
# sphinx_gallery_end_ignore

# %%
# Exercise
# --------
# Add the constants to the drawing of ``loss``: each ``None`` in ``next_functions`` as a box without a frame. How many
# do you expect, and where?
#
# .. solution::
#
# One, at the product of ``weight`` and ``x``. It needs a key of its own for each place.

extended = graph.copy()
for node, name in key.items():
    for place, (next_node, _) in enumerate(node.next_functions):
        if next_node is None:
            extended.node(f"{name}c{place}", "constant", shape="plaintext")
            extended.edge(name, f"{name}c{place}", style="dashed")

# figure: The graph of before, with one more box: a dashed arrow leads from MvBackward0 to a constant without a frame.
show(extended, "The constant x has a place at MvBackward0")

added = set(extended.source.splitlines()) - set(graph.source.splitlines())
print("\n".join(sorted(line.strip() for line in added)))
assert len(added) == 2 and "n4 -> n4c1" in extended.source

# %%
# The key says where: ``n4`` is ``MvBackward0``, and ``c1`` its second argument, counted from 0.

# %%
# See also
# --------
# - Before: :ref:`sphx_glr_gallery_graphs_static_and_dynamic.py`, graphs that are captured once.
# - :ref:`sphx_glr_gallery_graphs_graph_lifetime.py`, how long the graph is there to be drawn.
# - Next: :ref:`sphx_glr_gallery_differentiation_vector_jacobian_products.py`, what backward computes on it.
# - :ref:`sphx_glr_gallery_graphs_functions_are_nodes.py`, nodes and edges one by one.
# - :ref:`sphx_glr_gallery_graphs_static_and_dynamic.py`, the graphs that ``torch.fx`` and ``torch.export`` make.
# - In PyTorch's reference: `Node.next_functions
#   <https://docs.pytorch.org/docs/stable/generated/torch.autograd.graph.Node.next_functions.html>`__.
