r"""
Visualize the autograd graph
============================

.. in-short::

   ``draw(loss)`` of the package ``drawgrad`` draws the graph behind a loss: see :doc:`/guide/draw-your-own-graph`. Or do it
   yourself in eleven lines: walk from ``loss.grad_fn`` along ``next_functions`` and write a line of text for each node and
   each edge. Graphviz makes a picture from the text. A tensor without a ``grad_fn`` has no graph to draw.
"""

# %%
# The problem: a layer does not learn
# -----------------------------------
# One layer of your model keeps its first weights. Is the loss connected to it?

import torch

torch.manual_seed(0)
sizes = {"body": (4, 3), "gate": (4, 3), "head": (3, 1)}
model = torch.nn.ModuleDict({n: torch.nn.Linear(*s) for n, s in sizes.items()})
x = torch.randn(8, 4)

gate = torch.sigmoid(model.gate(x)).detach()
loss = model.head(gate * torch.tanh(model.body(x))).mean()

# graph: loss -- body and head lead to the loss, and gate is missing

# %%
# Nothing leads from ``model.gate`` to the loss, because somebody left a ``detach()`` after it.

# %%
# Eleven lines that draw it
# -------------------------


def to_dot(root, names):
    nodes, lines = [root.grad_fn], ["digraph {"]
    for node in nodes:  # the list grows while it is read
        label = names.get(getattr(node, "variable", None), node.name())
        lines.append(f'{nodes.index(node)} [label="{label}"]')
        for next_node, _ in node.next_functions:
            if next_node is not None:
                if next_node not in nodes:
                    nodes.append(next_node)
                lines.append(f"{nodes.index(node)} -> {nodes.index(next_node)}")
    return "\n".join([*lines, "}"])


names = {parameter: name for name, parameter in model.named_parameters()}

# %%
# .. how-measured:: This code lays out such a text with Graphviz.

import os
import re

try:
    import pygraphviz  # its wheels contain Graphviz
except ImportError:
    pygraphviz = None


class Picture:
    def __init__(self, text, alt):
        self.text, self.alt = text, alt

    def __repr__(self):
        return self.text

    def _repr_html_(self):
        if pygraphviz is None:
            return None
        graph = pygraphviz.AGraph(string=self.text)
        graph.graph_attr.update(rankdir="BT", ranksep=0.2, bgcolor="transparent")
        graph.node_attr.update(shape="box", fontname="monospace")
        graph.node_attr.update(fontsize=12, height=0.3)
        graph.layout("dot")
        svg = graph.draw(format="svg").decode()
        svg = re.sub(r' id="[^"]*"|<title>.*?</title>|<!--.*?-->', "", svg)
        svg = svg.replace('"black"', '"currentColor"')
        svg = svg.replace("<text", '<text fill="currentColor"')
        look = f'<svg role="img" aria-label="{self.alt}" style="max-width: 100%"'
        return svg[svg.index("<svg") :].replace("<svg", look, 1)


def draw_with_graphviz(text, alt):
    return Picture(text, alt)


# sphinx_gallery_start_ignore
_numbers = [n for _, _, n in to_dot.__code__.co_lines() if n]
assert max(_numbers) - to_dot.__code__.co_firstlineno + 1 == 11  # eleven lines
_text = to_dot(loss, names)
_drawn = re.findall(r'label="(.*)"', _text)
assert set(names.values()) - set(_drawn) == {"gate.weight", "gate.bias"}
assert _drawn.count("AddmmBackward0") == 2 and len(_drawn) == 11
assert _text.count("->") == 10
_grads = torch.autograd.grad(
    loss, model.gate.weight, allow_unused=True, retain_graph=True
)
assert _grads == (None,)
_whole = model.head(torch.sigmoid(model.gate(x)) * torch.tanh(model.body(x))).mean()
assert all(name in to_dot(_whole, names) for name in names.values())
model.gate.requires_grad_(False)  # a frozen layer looks the same as a detached one
_frozen = model.head(torch.sigmoid(model.gate(x)) * torch.tanh(model.body(x))).mean()
assert to_dot(_frozen, names) == _text
model.gate.requires_grad_(True)
if pygraphviz is not None:
    assert "#" not in re.sub(r"&#\d+;", "", Picture(_text, "")._repr_html_())
    _plain = pygraphviz.AGraph(string=_text)  # as a viewer on the web draws it
    _plain.layout("dot")
    _heights = {n: float(n.attr["pos"].split(",")[1]) for n in _plain.nodes()}
    assert max(_heights, key=_heights.get) == "0"
# sphinx_gallery_end_ignore
draw_with_graphviz(
    to_dot(loss, names), "Arrows lead from MeanBackward0 up to head and body"
)

# %%
# The computation runs from top to bottom, and the arrows show the way of the gradient, from the loss up to the parameters. A
# layer that you froze with ``requires_grad_(False)`` gives the same picture as a detached one.

# %%
# What is in the picture
# ----------------------
# The text for a small expression, in which ``y`` is used twice:

weight = torch.ones(2, 3, requires_grad=True)
inputs = torch.ones(3)
y = torch.relu(weight @ inputs)
print(to_dot((y * y).sum(), {weight: "weight"}))

# sphinx_gallery_start_ignore
_product = (y * y).grad_fn
assert [node for node, _ in _product.next_functions] == [y.grad_fn] * 2
_matrix_vector = y.grad_fn.next_functions[0][0]
assert _matrix_vector.next_functions[1] == (None, 0)
_text = to_dot((y * y).sum(), {weight: "weight"})
assert _text.count("1 -> 2") == 2 and "inputs" not in _text
assert '[label="torch::autograd::AccumulateGrad"]' in to_dot(y.sum(), {})
# sphinx_gallery_end_ignore

# %%
# - ``1 -> 2`` is there twice: the product ``y * y`` uses ``y`` twice.
# - ``y`` is missing, because a node knows nothing about the names of your variables.
# - ``inputs`` is missing, because it does not require grad. ``MvBackward0`` has ``None`` in its slot, which ``to_dot`` skips.
# - ``weight`` has the name that ``names`` gives it. Without it, its box says ``torch::autograd::AccumulateGrad``.

# %%
# What people get wrong
# ---------------------
# **Installing the Python package only.** ``pip install graphviz`` installs Python classes. They start the program ``dot``,
# which you install separately. On a machine without it:

# sphinx_gallery_start_ignore
_path = os.environ["PATH"]
os.environ["PATH"] = ""
# sphinx_gallery_end_ignore
import graphviz

dot = graphviz.Source(to_dot(loss, names))
try:
    dot.pipe(format="svg")
except graphviz.ExecutableNotFound as error:
    message = str(error)
    print(f"ExecutableNotFound: {message}")

# sphinx_gallery_start_ignore
os.environ["PATH"] = _path
assert "make sure the Graphviz executables are on your systems' PATH" in message
# sphinx_gallery_end_ignore

# %%
# Install Graphviz itself (``apt install graphviz``, ``brew install graphviz``), or use ``pygraphviz``, as the folded code
# above does.
#
# **Drawing a result without a graph.** That is the result of ``loss.detach()``, a loss from a file, or a mean computed under
# ``no_grad``. Then ``make_dot`` of torchviz draws a single box, and ``to_dot`` raises:

import io

file = io.BytesIO()
torch.save(loss, file)
file.seek(0)
loaded = torch.load(file)
try:
    to_dot(loaded, names)
except AttributeError as error:
    message = str(error)
    print(f"AttributeError: {message}")

# sphinx_gallery_start_ignore
assert message == "'NoneType' object has no attribute 'name'"
assert loaded.grad_fn is None and loaded.requires_grad
with torch.no_grad():
    _unrecorded = model.head(model.body(x)).mean()
_raised = []
for _result in (_unrecorded, loss.detach()):
    try:
        to_dot(_result, names)
    except AttributeError as error:
        _raised.append(str(error))
assert _raised == [message] * 2
from torch.utils.checkpoint import checkpoint

for _reentrant in (True, False):
    _hidden = checkpoint(model.head, model.body(x), use_reentrant=_reentrant)
    assert ("head.weight" in to_dot(_hidden.mean(), names)) is not _reentrant
    model.zero_grad()
    _hidden.mean().backward()
    assert model.head.weight.grad.any()
model.zero_grad()
del _hidden
# sphinx_gallery_end_ignore

# %%
# **Missing the parameters in a checkpoint.** With ``use_reentrant=True`` they :ref:`learn
# <sphx_glr_gallery_memory_checkpointing.py>`, but are not drawn.
#
# **Taking an arrow for a gradient.** An arrow says that a parameter is connected. But multiply by zero, and the gradient is
# zero along this arrow:

blocked = torch.sigmoid(model.gate(x))
loss = model.head(0 * blocked + torch.tanh(model.body(x))).mean()
print("drawn:", "gate.weight" in to_dot(loss, names))

loss.backward()
print("largest gradient:", model.gate.weight.grad.abs().max().item())

# sphinx_gallery_start_ignore
assert "gate.weight" in to_dot(loss, names)
assert model.gate.weight.grad.abs().max() == 0
assert model.body.weight.grad.abs().max() > 0
# sphinx_gallery_end_ignore

# %%
# ``draw(loss)`` puts a red mark on such a parameter.

# %%
# Exercise
# --------
# Change ``to_dot`` so that it also draws each ``None`` in ``next_functions``, as a box ``constant``. How many such boxes do
# you expect for ``(y * y).sum()``, and where?
#
# .. solution::
#
# One: beside ``weight``, above the product of ``weight`` and ``inputs``. Each constant needs its own key, for example the
# node's number and the slot.


def to_dot_with_constants(root, names):
    nodes, lines = [root.grad_fn], ["digraph {"]
    for node in nodes:
        number = nodes.index(node)
        label = names.get(getattr(node, "variable", None), node.name())
        lines.append(f'{number} [label="{label}"]')
        for slot, (next_node, _) in enumerate(node.next_functions):
            if next_node is None:
                lines.append(f'c{number}_{slot} [label="constant"]')
                lines.append(f"{number} -> c{number}_{slot}")
                continue
            if next_node not in nodes:
                nodes.append(next_node)
            lines.append(f"{number} -> {nodes.index(next_node)}")
    return "\n".join([*lines, "}"])


text = to_dot_with_constants((y * y).sum(), {weight: "weight"})
assert text.count("label") == to_dot((y * y).sum(), {}).count("label") + 1
assert "3 -> c3_1" in text and '3 [label="MvBackward0"]' in text
draw_with_graphviz(
    text, "From MvBackward0 one arrow leads to weight, and one to a constant"
)

# %%
# See also
# --------
# - :doc:`/guide/draw-your-own-graph`: values, gradients and folded modules in the drawing.
# - :ref:`sphx_glr_gallery_graphs_why_is_grad_none.py`: other reasons why a layer does not learn.
# - :ref:`sphx_glr_gallery_graphs_functions_are_nodes.py`: nodes and edges one by one.
# - In PyTorch's reference: `Node.next_functions
#   <https://docs.pytorch.org/docs/stable/generated/torch.autograd.graph.Node.next_functions.html>`__.
