r"""
GAN: two optimizers, and where to detach
========================================

.. in-short::

   To write: the answer of ``gan``.
   Two to four lines, with one line of code, and when it does not hold. A reader who stops here must have been helped.
"""

# %%
# To write: the problem, as a reader meets it
# -------------------------------------------
# To write: what the reader has and wants, in two sentences. The code that follows is what a reader would type, in ten lines at
# most, with the first figure right below it.

import torch

x = torch.tensor(3.0, requires_grad=True)
y = x * x
y.backward()

# graph: y -- To write: what a reader should see in this graph

print("x.grad:", x.grad)
assert x.grad == 6

# %%
# What people get wrong
# ---------------------
# **To write: the mistake, in a few words.** Say what happens then, with the real message or the number that is wrong:

y = x * x
y.backward()
print("after a second backward:", x.grad)
assert x.grad == 12

# %%
# To write: why it works
# ----------------------
# To write: the mechanism, now that the reader has seen what it does. Each sentence about PyTorch rests on an assert, on this
# page or hidden beside the code that is shown. Write ``always`` and ``never`` only of what you have tried to refute.

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
# - Before: :ref:`sphx_glr_gallery_practice_rnn_in_chunks.py`.
# - Next: :ref:`sphx_glr_gallery_practice_gradient_of_each_loss.py`.
# - In PyTorch's reference: `torch.Tensor.backward
#   <https://docs.pytorch.org/docs/stable/generated/torch.Tensor.backward.html>`__. To write: the pages of the reference that a
#   reader needs next.
