r"""
To write: the message, without what differs from one program to another
=======================================================================

.. index::
   ! single: To write: what somebody sees who has this error

.. in-short::

   To write: the cause in one sentence, and what to change in another. The reader has the message on the screen and one minute.

   .. code-block:: diff

      - raise RuntimeError("To write")
      + (x * x).backward()

   **Not this:** to write: what only hides the error, and what goes wrong then.
"""

# %%
# The code that raises it
# -----------------------

import torch

# sphinx_gallery_start_ignore
try:
    # sphinx_gallery_end_ignore
    x = torch.tensor(3.0, requires_grad=True)
    raise RuntimeError("To write")  # the shortest code that raises it, as people write it
# sphinx_gallery_start_ignore
except RuntimeError as error:
    message = str(error)
    print("RuntimeError:", message)
assert message.startswith("To write")
# sphinx_gallery_end_ignore

# %%
# To write: what each part of the message means, and which of your variables it speaks of.
#
# Why
# ---
# To write: the rule behind the message, with the smallest code that shows it.

y = x * x
print("y:", y)

# graph: y -- To write: what a reader should see in this graph

# %%
# The fix
# -------
# To write: the causes in the order in which people have them, each with the change that makes its code right.

(x * x).backward()
print("x.grad:", x.grad)
assert x.grad == 6

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_graphs_first_graph.py`: to write: the pages that a reader needs next, and what they find there.
# - In PyTorch's reference: `torch.Tensor.backward
#   <https://docs.pytorch.org/docs/stable/generated/torch.Tensor.backward.html>`__.
