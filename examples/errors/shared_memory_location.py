r"""
more than one element of the written-to tensor refers to a single memory location
=================================================================================

.. index::
   ! single: in-place write into an expanded tensor
   ! single: optimizer.step() fails for a parameter made with expand or einops.repeat

``expand`` makes a tensor larger without more memory: many elements share one place. Reading such a tensor is fine.
Writing into all of it has no clear meaning, and PyTorch refuses. Parameters and buffers made with ``expand`` fail in
the same way, when an optimizer or ``load_state_dict`` writes to them.
"""

# %%
# The shortest code that raises it
# --------------------------------

import matplotlib.pyplot as plt
import torch
from torch import nn

a = torch.tensor([[1.0], [2.0], [3.0]]).expand(3, 4)
try:
    a += 1
except RuntimeError as error:
    message = str(error)
    print("RuntimeError:", message)
    assert message.startswith("unsupported operation: more than one element of")

# %%
# A sibling says *some elements of the input tensor and the written-to tensor refer to a single memory location*.
# There the tensor that is read and the one that is written overlap.

b = torch.arange(5.0)
try:
    b[1:] += b[:-1]
except RuntimeError as error:
    print("RuntimeError:", str(error).split(". ")[0])
    assert "some elements of the input tensor and the written-to tensor" in str(error)

# %%
# Why
# ---
# The stride along the expanded dimension is 0: one step to the right stays where it is. ``a`` has 12 elements and 3
# places in memory. If ``a += 1`` ran, would it add 1 to each place, or 4?

print("shape", tuple(a.shape), "strides", a.stride())
print("elements", a.numel(), "places", a.untyped_storage().nbytes() // a.element_size())

# figure: Above, the twelve elements of a, in groups of four. Below, three places in memory. From each element a line
#   leads to a place: the four elements of a row all end in the same one.
fig, ax = plt.subplots(figsize=(7, 2.4))
for row in range(3):
    middle = 4 * row + 1.5
    for column in range(4):
        x = 4 * row + column
        ax.plot([x, middle], [1, 0], color="#64748b", linewidth=1, zorder=0)
        label = ax.text(x, 1, f"[{row}, {column}]", backgroundcolor="white")
        label.set(ha="center", va="center", fontsize=9, color="#2563eb")
    place = ax.text(middle, 0, f"place {row}", backgroundcolor="#e2e8f0")
    place.set(ha="center", va="center")
ax.set(xlim=(-0.6, 11.6), ylim=(-0.2, 1.2))
ax.set_title("a has twelve elements and three places in memory")
ax.axis("off")

# sphinx_gallery_start_ignore
assert a.stride() == (1, 0) and a.numel() == 12
assert a.untyped_storage().nbytes() == 3 * a.element_size()
# sphinx_gallery_end_ignore

# %%
# The fix
# -------
# **For a tensor to write to**, copy it first: ``clone()``, or ``repeat`` in place of ``expand``. ``a = a + 1`` makes
# a new tensor as well.

rows = torch.tensor([[1.0], [2.0], [3.0]])
for name, tensor in {
    "expand, clone": rows.expand(3, 4).clone(),
    "repeat": rows.repeat(1, 4),
}.items():
    tensor += 1
    print(f"{name:<13} strides {tensor.stride()} first row {tensor[0].tolist()}")
    assert torch.equal(tensor, rows + torch.ones(3, 4))

# sphinx_gallery_start_ignore
assert (a + 1).stride() == (4, 1) and torch.equal(a + 1, rows + torch.ones(3, 4))
# sphinx_gallery_end_ignore

# %%
# **For the sibling**, copy what is read: ``b[1:] += b[:-1].clone()``.

b[1:] += b[:-1].clone()
print(b.tolist())
assert b.tolist() == [0, 1, 3, 5, 7]

# %%
# **For a buffer**, register the copy. ``load_state_dict`` writes into it.


class Net(nn.Module):
    def __init__(self, copied):
        super().__init__()
        table = torch.arange(4.0).expand(2, 4)
        self.register_buffer("table", table.clone() if copied else table)


for copied in (False, True):
    try:
        Net(copied).load_state_dict(Net(copied).state_dict())
        print(f"copied {copied}: loaded")
    except RuntimeError as error:
        print(f"copied {copied}:", str(error).split(" : (")[1][1:63], "...")
        assert "refers to a single memory location" in str(error) and not copied

# %%
# **For a parameter that all rows are to share**, keep it small and expand it where it is used. The gradients of the
# rows arrive in it as a sum.

torch.manual_seed(0)
data = torch.randn(3, 4)
shared = nn.Parameter(torch.ones(4))
optimizer = torch.optim.SGD([shared], lr=0.1)
(shared.expand(3, 4) * data).sum().backward()
optimizer.step()
print("gradient:", shared.grad.numpy().round(4))
assert torch.allclose(shared.grad, data.sum(0))

# %%
# What not to do
# --------------
# **Clone a parameter that was meant to be shared**, because the message says so. The rows are now parameters of their
# own, and drift apart in the first step.

try:
    tied = nn.Parameter(torch.ones(4).expand(3, 4))
    (tied * data).sum().backward()
    torch.optim.SGD([tied], lr=0.1).step()
except RuntimeError as error:
    print(f"RuntimeError: {str(error)[:69]} ...")
    assert str(error) == message

cloned = nn.Parameter(torch.ones(4).expand(3, 4).clone())
(cloned * data).sum().backward()
torch.optim.SGD([cloned], lr=0.1).step()
print(cloned.detach().numpy().round(2))

# sphinx_gallery_start_ignore
assert not torch.allclose(cloned[0], cloned[1])
assert torch.allclose(cloned, 1 - 0.1 * data)
# sphinx_gallery_end_ignore

# %%
# **Write column by column, or element by element.** PyTorch checks the tensor that is written to, and one column of
# ``a`` shares no memory with itself. Each of these writes goes through, and each of them changes all columns.

a = torch.tensor([[1.0], [2.0], [3.0]]).expand(3, 4)
for column in range(4):
    a[:, column] += 1
print("asked to add 1:", a[:, 0].tolist(), "in place of [2.0, 3.0, 4.0]")

a[0, 0] = 50
print("after a[0, 0] = 50:", a[0].tolist())

# sphinx_gallery_start_ignore
assert a[1:, 0].tolist() == [6, 7] and a[0].tolist() == [50, 50, 50, 50]
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_tensors_copy_table.py`: which operations share memory, and the strides of each
# - :ref:`sphx_glr_gallery_debugging_silent_mistakes.py`: aliasing that no check finds
# - `Tensor.expand <https://docs.pytorch.org/docs/stable/generated/torch.Tensor.expand.html>`__ in PyTorch's reference
