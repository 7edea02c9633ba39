r"""
The graph of a product
======================

One node with two inputs, :math:`y = w x`. The guide has :ref:`more <the-guide>`.
"""

# %%
# Two leaves
# ----------
# The derivative by one factor is the other factor:
#
# .. math:: \frac{\partial y}{\partial w} = x

import os

import torch

w = torch.tensor(2.0, requires_grad=True)
x = torch.tensor(3.0, requires_grad=True)
y = w * x
y.backward()

# graph: y -- A product & its leaves: w < x

print(f"dy/dw = {w.grad.item()}")

# sphinx_gallery_start_ignore
assert w.grad == x  # hidden
with open(os.environ["RUNS"], "a") as file:
    file.write("graph_of_a_product\n")
# sphinx_gallery_end_ignore

# %%
# Three asserts more: one of several lines, one that runs twice, one in a function.

assert (
    x.grad
    == w
)  # fmt: skip

for leaf in (w, x):
    assert leaf.is_leaf


def check(tensor):
    assert tensor.grad_fn is not None


check(y)

# %%
# A cell that only asks for another drawing:

# graph: y (AccumulateGrad) -- With its AccumulateGrad nodes

# %%
# The end
# -------
# The last section has text only.
