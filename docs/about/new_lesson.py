r"""
To write: what the reader would search for
==========================================

.. in-short::

   To write: the answer, in two to four lines, with one line of code, and when it does not hold.
   A reader who stops here must have been helped.
"""

# %%
# To write: why it matters, in one to three sentences: the loop, the model or the message in which a reader meets it.

import torch

x = torch.tensor(3.0, requires_grad=True)
y = x * x
y.backward()

# graph: y -- To write: what a reader should see in this graph

print("x.grad:", x.grad)
assert x.grad == 6

# %%
# To write: why it works
# ----------------------
# To write: the idea, now that the reader has seen what it does, and the rule in one sentence.
#
# What people get wrong
# ---------------------
# **To write: the mistake, in a few words.** Say what happens then, with the real message or the number that is wrong:

y = x * x
y.backward()
print("after a second backward:", x.grad)
assert x.grad == 12

# %%
# Exercise
# --------
# To write: a question that somebody who has read this page can answer, and that shows whether the page was understood.
#
# .. solution::
#
# To write: the answer, in a sentence or two, before the code that shows it.

(gradient,) = torch.autograd.grad(x * x * x, x)
print("gradient:", gradient)
assert gradient == 27

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_graphs_first_graph.py`: to write: the pages that a reader needs next, and what they find there.
# - In PyTorch's reference: `torch.Tensor.backward
#   <https://docs.pytorch.org/docs/stable/generated/torch.Tensor.backward.html>`__.
