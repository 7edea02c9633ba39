r"""
detach, clone, .data, item, deepcopy: which one to take
=======================================================

All of these give you the value of a tensor. They differ in whether the result has memory of its own, whether the
gradient passes through it, whether autograd notices a write into it, and what stays in memory. The wrong choice ends
in an error, in a wrong gradient, or in a leak. This page measures them side by side.
"""

# %%
# Two questions, four answers
# ---------------------------
# Memory and history are independent of one another. ``clone`` copies the memory and stays in the graph. ``detach``
# shares the memory and leaves the graph. To leave both behind, you need both.

import copy
import textwrap
import warnings
import weakref

import pandas as pd
import torch
from torch.autograd.graph import saved_tensors_hooks

w = torch.tensor(1.0, requires_grad=True)
t = torch.exp(w)
c = t.clone()
d = t.detach()
both = t.detach().clone()

for name, tensor in {"t": t, "c": c, "d": d, "both": both}.items():
    shares = tensor.untyped_storage().data_ptr() == t.untyped_storage().data_ptr()
    node = tensor.grad_fn.name() if tensor.grad_fn else "none"
    print(f"{name:<5} memory of t: {shares!s:<6} grad_fn: {node}")

# sphinx_gallery_start_ignore
assert d.data_ptr() == t.data_ptr() and d.grad_fn is None and not d.requires_grad
assert c.data_ptr() != t.data_ptr() and c.grad_fn.name() == "CloneBackward0"
assert both.data_ptr() != t.data_ptr() and both.grad_fn is None
# sphinx_gallery_end_ignore

# %%
# In a product of ``c`` and ``d``, the gradient takes one way only.

product = c * d

# graph: product -- The clone is a node on the way to w. The constant is d

print(f"product {product.item():.4f}")

# %%
# The product is :math:`e^{2w}`, and the derivative of that would be :math:`2 e^{2w}`. With a constant for one of the
# factors, it is half of it.

product.backward()
print(f"gradient {w.grad.item():.4f}")
assert torch.isclose(w.grad, product)

# %%
# What is measured
# ----------------
# Each way makes ``y`` out of ``t``, where ``t = torch.exp(w)``. The backward of ``exp`` reads ``t`` again, so a write
# into ``t`` matters.


def in_mode(mode):
    return lambda t: mode()(torch.mul)(t, 2)  # the mode as a decorator


WAYS = {
    "t": lambda t: t,
    "t.clone()": lambda t: t.clone(),
    "t.detach()": lambda t: t.detach(),
    "t.data": lambda t: t.data,
    "t.detach().clone()": lambda t: t.detach().clone(),
    "t * 2 in no_grad": in_mode(torch.no_grad),
    "t * 2 in inference_mode": in_mode(torch.inference_mode),
    "t.detach().numpy()": lambda t: t.detach().numpy(),
    "t[0].item()": lambda t: t[0].item(),
    "copy.deepcopy(t)": lambda t: copy.deepcopy(t),
}


def start():
    w = torch.ones(1000, requires_grad=True)
    return w, torch.exp(w)


# %%
# First question: is ``y`` recorded, and does it share the memory of ``t``?


def recorded(way):
    y = way(start()[1])
    return "yes" if getattr(y, "grad_fn", None) else "no"


def shares_memory(way):
    _, t = start()
    y = way(t)
    y = torch.as_tensor(y)  # an array keeps its memory
    return "yes" if y.data_ptr() == t.data_ptr() else "no"


# %%
# Second: write into ``y``, then run the backward of ``t``. The right gradient is :math:`e^w`.


def write(way):
    w, t = start()
    y = way(t)
    try:
        y[0] = 7
    except (RuntimeError, TypeError):
        return "write refused"
    try:
        t.sum().backward()
    except RuntimeError:
        return "raises"
    return "right" if torch.equal(w.grad, w.exp()) else "wrong gradient"


# %%
# Third: multiply ``y`` with another weight in a later loss. Does that work, and does the gradient reach ``w``, or is
# ``y`` a constant to it?


def later(way):
    w, t = start()
    other = torch.ones(1000, requires_grad=True)
    y = way(t)
    try:
        (other * y).sum().backward()
    except RuntimeError:
        return "raises"
    return "reaches w" if w.grad is not None else "constant"


# %%
# Fourth: how many bytes does the graph keep for backward while ``t`` is there, and how many when only ``y`` is left?
# A ``Saved`` object lives as long as the node that keeps it.

alive = weakref.WeakSet()


class Saved:
    def __init__(self, tensor):
        self.tensor = tensor.detach()
        alive.add(self)


def kept():
    return sum(saved.tensor.nbytes for saved in alive)


def bytes_kept(way, drop_t=False):
    with saved_tensors_hooks(Saved, lambda saved: saved.tensor):
        held = [start()[1]]
        held.append(way(held[0]))
    if drop_t:
        del held[0]
    return kept()


# %%
# Every question is put to every way. Where the way itself fails, the cell says so.

QUESTIONS = {
    "recorded": recorded,
    "shares memory": shares_memory,
    "write, then backward of t": write,
    "later loss": later,
    "bytes kept": bytes_kept,
    "without t": lambda way: bytes_kept(way, drop_t=True),
}


def answer(question, way):
    try:
        return question(way)
    except RuntimeError:
        return "fails"


table = pd.DataFrame(
    {
        text: {name: answer(question, way) for name, way in WAYS.items()}
        for text, question in QUESTIONS.items()
    }
)

# sphinx_gallery_start_ignore
assert (table.loc["copy.deepcopy(t)"] == "fails").all()
_rest = table.drop("copy.deepcopy(t)")
assert _rest.index[_rest["recorded"] == "yes"].tolist() == ["t", "t.clone()"]
assert _rest.index[_rest["shares memory"] == "yes"].tolist() == [
    "t",
    "t.detach()",
    "t.data",
    "t.detach().numpy()",
]
assert _rest["write, then backward of t"].to_dict() == {
    "t": "raises",
    "t.clone()": "right",
    "t.detach()": "raises",
    "t.data": "wrong gradient",
    "t.detach().clone()": "right",
    "t * 2 in no_grad": "right",
    "t * 2 in inference_mode": "write refused",
    "t.detach().numpy()": "wrong gradient",
    "t[0].item()": "write refused",
}
_raises = ["t * 2 in inference_mode", "t.detach().numpy()"]
assert _rest.index[_rest["later loss"] == "raises"].tolist() == _raises
assert ((_rest["later loss"] == "reaches w") == (_rest["recorded"] == "yes")).all()
assert (_rest["bytes kept"] == 4000).all() and kept() == 0
assert ((_rest["without t"] == 4000) == (_rest["recorded"] == "yes")).all()
assert set(_rest["without t"]) == {0, 4000}
# sphinx_gallery_end_ignore
table.rename_axis(index=None, columns="y")

# %%
# How to read it, by what you want:
#
# - **Stop the gradient at one tensor**, and nobody will write into the result: ``t.detach()``. It takes no memory of
#   its own.
# - **A copy that goes on learning**: ``t.clone()``. **A copy that does not**: ``t.detach().clone()``.
# - **A number**: ``item()``. It can hold nothing.
# - **Compute further without recording**: a block. The result of ``inference_mode`` is refused in a later loss,
#   which ``no_grad`` allows.
# - ``.data`` does what ``t.detach()`` does, without the check on writes. Nothing speaks for it.
#
# detach or .data
# ---------------
# Both share the memory. The difference is the :ref:`version counter
# <sphx_glr_gallery_differentiation_inplace_and_versions.py>`: ``detach`` shares that too, ``.data`` does not. Write
# through each of them (`pytorch#6990 <https://github.com/pytorch/pytorch/issues/6990>`__):

for name in ("t.detach()", "t.data"):
    w, t = start()
    WAYS[name](t).zero_()
    print(f"\n{name}: t._version is {t._version}")
    try:
        t.sum().backward()
        print("no error, gradient", w.grad[0].item(), "instead of", w[0].exp().item())
        assert name == "t.data" and not w.grad.any()
    except RuntimeError as error:
        print(textwrap.fill(str(error).split(";")[0], 84))
        assert "modified by an inplace operation" in str(error)

# %%
# detach frees nothing while the graph lives
# ------------------------------------------
# In the table, the graph keeps its 4000 bytes as long as ``t`` is there, whatever was made of ``t``. ``detach`` makes
# another tensor; it does not undo the recording. In a block nothing is recorded in the first place.

with saved_tensors_hooks(Saved, lambda saved: saved.tensor):
    out = start()[1]
    detached = out.detach()
    print("out and out.detach():", kept())
    del out
    print("out.detach() alone:  ", kept())
    with torch.no_grad():
        out = start()[1]
    print("out, under no_grad:  ", kept())

# sphinx_gallery_start_ignore
assert kept() == 0 and not out.requires_grad
with saved_tensors_hooks(Saved, lambda saved: saved.tensor):
    out = start()[1]
    detached = out.detach()
    assert kept() == 4000
    del out
    assert kept() == 0
# sphinx_gallery_end_ignore

# %%
# So ``detach`` helps if the original is dropped, as in ``history.append(loss.detach())`` in a loop. It does not make
# the forward pass smaller: while that ran, everything was kept.
#
# What people get wrong
# ---------------------
# **Taking detach for a copy.** An attack on a classifier moves an image along the sign of its gradient. It begins by
# making a leaf of the image. With ``detach`` alone the image itself moves too, and there is no error.

image, moved = torch.zeros(3), []
for begin in (lambda t: t.detach(), lambda t: t.detach().clone()):
    attacked = begin(image).requires_grad_()
    (attacked * torch.tensor([1.0, -2.0, 3.0])).sum().backward()
    with torch.no_grad():
        attacked += 0.5 * attacked.grad.sign()
    print("attacked", attacked.tolist(), "  image", image.tolist())
    moved.append(bool(image.any()))
    image = torch.zeros(3)
assert moved == [True, False]

# %%
# **Copying with** ``torch.tensor``. It works, with a warning that names the better way. Which of the two the warning
# means depends on whether the copy is to learn on its own.

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    torch.tensor(t)
print(textwrap.fill(f"UserWarning: {caught[0].message}", 88))
assert "sourceTensor.detach().clone()" in str(caught[0].message)

# %%
# **Copying a result with deepcopy.** It copies leaves only. Usually a model keeps a result in an attribute, and
# :ref:`the whole model can no longer be copied <sphx_glr_gallery_errors_deepcopy_of_non_leaf.py>`.

w, t = start()
same = copy.deepcopy(w)
print("copy of a leaf: is_leaf", same.is_leaf, "  requires_grad", same.requires_grad)
try:
    copy.deepcopy(t)
except RuntimeError as error:
    print(textwrap.fill("RuntimeError: " + str(error).split(".")[0], 88))
    assert str(error).startswith("Only Tensors created explicitly by the user")

# sphinx_gallery_start_ignore
assert same.is_leaf and same.requires_grad and same.data_ptr() != w.data_ptr()
# sphinx_gallery_end_ignore

# %%
# Exercise
# --------
# For a report you note the hidden values of each of three steps, before an in-place operation changes them. Which of
# the ways above may stand for ``note``, so that the report holds the right values, and no graph?


def report(note):
    notes = []
    for _ in range(3):
        with saved_tensors_hooks(Saved, lambda saved: saved.tensor):
            weight = torch.ones(2, requires_grad=True)
            hidden = torch.tensor([1.0, -1.0]) * weight
            notes.append(note(hidden))
            hidden.relu_()
    del hidden
    return notes[0].tolist(), kept()


# %%
# .. solution::
#
# ``detach()`` shares the memory, and shows the values after ``relu_``. ``clone()`` holds the graph. It takes both.

for name in ("t.detach()", "t.clone()", "t.detach().clone()"):
    print(f"{name:<19} values, bytes kept: {report(WAYS[name])}")
assert report(WAYS["t.detach().clone()"]) == ([1.0, -1.0], 0)

# sphinx_gallery_start_ignore
assert report(WAYS["t.detach()"]) == ([1.0, 0.0], 0)
assert report(WAYS["t.clone()"])[0] == [1.0, -1.0] and report(WAYS["t.clone()"])[1] > 0
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - Before: :ref:`sphx_glr_gallery_tensors_squeeze_and_permute.py`, shapes that change and values that do not.
# - Next: :ref:`sphx_glr_gallery_tensors_storage.py`, the memory that these tensors share.
# - :ref:`sphx_glr_gallery_tensors_copy_table.py`: more than seventy calls, and whether they copy.
# - :ref:`sphx_glr_gallery_modes_grad_modes.py`: ``no_grad`` and ``inference_mode`` at length.
# - :doc:`Which switch do I want? </guide/which-switch>`, by purpose.
# - In PyTorch's reference: `Tensor.detach
#   <https://docs.pytorch.org/docs/stable/generated/torch.Tensor.detach.html>`__ and `torch.clone
#   <https://docs.pytorch.org/docs/stable/generated/torch.clone.html>`__.
