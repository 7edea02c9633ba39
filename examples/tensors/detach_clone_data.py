r"""
detach, clone, .data, item, deepcopy: which one to use
======================================================

.. in-short::

   ``t.detach()`` gives you the values without history, so it stops the gradient. It shares the memory of ``t``. ``t.clone()``
   has its own memory, and the gradient passes. For an independent copy, write ``t.detach().clone()``. For one number, write
   ``loss.item()``. Do not write through ``t.data``: autograd overlooks it, so the gradient can be silently wrong.
"""

# %%
# Which one do I want?
# --------------------
# You want the values of ``t``, a result in the middle of your network, for a report, a target or an attack. With ``detach()``,
# what you get shares the memory of ``t``, and no gradient passes through it:

import copy

import torch

w = torch.ones(3, requires_grad=True)
t = torch.exp(w)
y = t.detach()
print("gradient passes:", y.requires_grad)
print("same memory:    ", y.data_ptr() == t.data_ptr())

# sphinx_gallery_start_ignore
assert not y.requires_grad and y.data_ptr() == t.data_ptr()
# sphinx_gallery_end_ignore

# %%
# The table asks four questions of eight calls, where ``y`` is what the call returns. Does a gradient that reaches ``y`` go on
# to ``w``? Does ``y`` share the memory of ``t``? If you write ``y[0] = 7`` and then call ``t.sum().backward()``, is ``w.grad``
# right? Does ``y`` keep the graph alive?
#
# .. how-measured:: One function for each question. Hooks tell if what exp saved is kept when only y is left.

import weakref

import pandas as pd
from torch.autograd.graph import saved_tensors_hooks

CALLS = {
    "t.detach()": lambda t: t.detach(),
    "t.clone()": lambda t: t.clone(),
    "t.detach().clone()": lambda t: t.detach().clone(),
    "t.data": lambda t: t.data,
    "t.detach().numpy()": lambda t: t.detach().numpy(),
    "t[0].item()": lambda t: t[0].item(),
    "copy.copy(t)": lambda t: copy.copy(t),
    "copy.deepcopy(t)": lambda t: copy.deepcopy(t),
}


def start():
    w = torch.ones(1000, requires_grad=True)
    return w, torch.exp(w)  # backward of exp reads its result again


def gradient_goes(call):
    w, t = start()
    y = call(t)
    other = torch.ones(1000, requires_grad=True)
    (other * torch.as_tensor(y)).sum().backward()
    assert other.grad is not None
    if w.grad is not None:
        return "yes"
    return "no, ends in y" if getattr(y, "requires_grad", False) else "no"


def memory(call):
    _, t = start()
    y = torch.as_tensor(call(t))  # an array keeps its memory
    return "shared" if y.data_ptr() == t.data_ptr() else "own"


def write(call):
    w, t = start()
    y = call(t)
    if isinstance(y, float):
        return "no write into a number"
    with torch.no_grad():
        y[0] = 7
    try:
        t.sum().backward()
    except RuntimeError:
        return "raises"
    return "right" if torch.equal(w.grad, w.exp()) else "wrong, no error"


class Saved:
    alive = weakref.WeakSet()

    def __init__(self, tensor):
        self.tensor = tensor.detach()
        Saved.alive.add(self)


def keeps_graph(call):
    with saved_tensors_hooks(Saved, lambda saved: saved.tensor):
        _, t = start()
        y = call(t)
    del _, t
    kept = len(Saved.alive)
    del y
    assert not Saved.alive
    return "yes" if kept else "no"


def answers(call):
    questions = {
        "gradient reaches w": gradient_goes,
        "memory": memory,
        "w.grad after y[0] = 7": write,
        "keeps the graph": keeps_graph,
    }
    try:
        return {text: question(call) for text, question in questions.items()}
    except RuntimeError:
        return dict.fromkeys(questions, "raises")


def tabulate_answers():
    table = pd.DataFrame({name: answers(call) for name, call in CALLS.items()}).T
    return table.rename_axis(columns="y")


# %%
# Three calls let you make ``w.grad`` silently wrong:

# sphinx_gallery_start_ignore
table = tabulate_answers()
_no = "no write into a number"
assert table.to_dict("split")["data"] == [
    ["no", "shared", "raises", "no"],
    ["yes", "own", "right", "yes"],
    ["no", "own", "right", "no"],
    ["no", "shared", "wrong, no error", "no"],
    ["no", "shared", "wrong, no error", "no"],
    ["no", "own", _no, "no"],
    ["no, ends in y", "shared", "wrong, no error", "no"],
    ["raises"] * 4,
]
assert (table == "wrong, no error").sum().sum() == 3
_exp = torch.exp(torch.ones(3, requires_grad=True))
with torch.inference_mode():
    _exp.detach().zero_()
assert _exp._version == 1  # the counter is shared there too
_many = torch.ones(3, requires_grad=True) * 2
for _way in ("t.detach()", "t.data"):  # also for other layouts and dtypes
    for _t in (_many, _many[:0], _many[0], _many.expand(2, 3), _many.to(torch.cfloat)):
        _y = CALLS[_way](_t)
        assert _y.data_ptr() == _t.data_ptr() and not _y.requires_grad and _y.is_leaf
for _t in (_many, _many[0], _many.expand(2, 3), _many.to(torch.cfloat)):
    assert _t.clone().data_ptr() != _t.data_ptr() and _t.clone().grad_fn is not None
    assert _t.detach().clone().data_ptr() != _t.data_ptr()
# sphinx_gallery_end_ignore
tabulate_answers()

# %%
# - **To stop the gradient at one tensor**: ``t.detach()``. It shares memory with ``t``, so only read it.
# - **A copy that the gradient passes through**: ``t.clone()``.
# - **An independent copy**: ``t.detach().clone()``.
# - **A number for a log**: ``loss.item()``. On a GPU :ref:`it waits for the number <sphx_glr_gallery_cuda_devices.py>`.
# - **An array**: ``t.detach().numpy()`` shares memory too. Use ``t.detach().cpu().numpy().copy()`` if you will write into it.
# - **To record nothing in a whole block**: ``with torch.no_grad():``. See :doc:`Which switch do I want? </guide/which-switch>`.
#
# Memory and history are two questions
# ------------------------------------
# Of each call, ask two questions. Does the result share the memory of ``t``? If so, a write into one changes the other. Does it
# keep the history of ``t``? If so, the gradient passes through it, and the graph stays alive with it. ``clone()`` copies the
# memory and keeps the history. ``detach()`` shares the memory and drops the history.

# %%
# In a product of both, the gradient takes only one of two paths:

w = torch.tensor(1.0, requires_grad=True)
t = torch.exp(w)
c = t.clone()
d = t.detach()
product = c * d
product.backward()

# graph: product -- The clone is a node on the way to w. The detached tensor is a constant

print(w.grad, "is half of", 2 * product.detach())

# sphinx_gallery_start_ignore
assert torch.isclose(w.grad, product) and torch.isclose(product, torch.exp(2 * w))
# sphinx_gallery_end_ignore

# %%
# The product is :math:`e^{2w}`, and its derivative :math:`2 e^{2w}`. Because ``d`` counts as a constant, you get half of it.

# %%
# What people get wrong
# ---------------------
# **Using detach() as a copy.** An attack on a classifier moves an image along the sign of its gradient. With ``detach()``
# alone, the original image moves too:

# sphinx_gallery_start_ignore
_array = _many.detach().cpu().numpy().copy()
_array[0] = 9
assert _many[0] == 2
# sphinx_gallery_end_ignore
image = torch.zeros(3)
attacked = image.detach().requires_grad_()  # detach().clone() would be right
(attacked * torch.tensor([1.0, -2.0, 3.0])).sum().backward()
with torch.no_grad():
    attacked += 0.5 * attacked.grad.sign()

print(image)

# sphinx_gallery_start_ignore
assert image.tolist() == [0.5, -0.5, 0.5]
image = torch.zeros(3)
attacked = image.detach().clone().requires_grad_()
(attacked * torch.tensor([1.0, -2.0, 3.0])).sum().backward()
with torch.no_grad():
    attacked += 0.5 * attacked.grad.sign()
assert not image.any() and attacked.tolist() == [0.5, -0.5, 0.5]
# sphinx_gallery_end_ignore

# %%
# **Writing through .data.** ``detach()`` shares the :ref:`version counter
# <sphx_glr_gallery_differentiation_inplace_and_versions.py>` of ``t``, so backward can tell that a value it needs was changed.
# ``.data`` has a separate counter (`pytorch#6990 <https://github.com/pytorch/pytorch/issues/6990>`__):

w = torch.ones(2, requires_grad=True)
t = torch.exp(w)
t.detach().zero_()
try:
    t.sum().backward()
except RuntimeError as error:
    message = str(error).split(":")[0]
    print("after t.detach().zero_():", message)

t = torch.exp(w)
t.data.zero_()
t.sum().backward()
print("after t.data.zero_():", w.grad, "instead of", w.exp().detach())

# sphinx_gallery_start_ignore
assert "has been modified by an inplace operation" in message
assert not w.grad.any() and t._version == 0
_kept = {}
with saved_tensors_hooks(Saved, lambda saved: saved.tensor):
    for _name, _keep in {
        "loss": lambda loss: loss,
        "detach": lambda loss: loss.detach(),
        "item": lambda loss: loss.item(),
    }.items():
        _history = [_keep(torch.exp(w).sum()) for _ in range(3)]
        _kept[_name] = len(Saved.alive)
        del _history
    assert _kept == {"loss": 3, "detach": 0, "item": 0} and not Saved.alive
    _loss = torch.exp(w).sum()
    _detached = _loss.detach()
    assert len(Saved.alive) == 1  # as long as the loss is there
    del _loss
    assert not Saved.alive
    with torch.no_grad():
        _loss = torch.exp(w).sum()
    assert not Saved.alive
    _loss = torch.exp(w).sum()
    _loss.backward()
    assert not Saved.alive and _loss.grad_fn.name() == "SumBackward0"
_twice = w * 2  # its backward needs no value of t: a write raises nothing
_twice.detach().zero_()
w.grad = None
_twice.sum().backward()
assert w.grad.tolist() == [2, 2]
# sphinx_gallery_end_ignore

# %%
# **Keeping a loss with its graph.** In a validation loop without ``no_grad``, ``history.append(loss)`` keeps each graph with
# the values that it saved, and memory grows. Append ``loss.item()`` or ``loss.detach()``. To save nothing in forward either,
# use ``torch.no_grad()``.
#
# **Copying a result with the copy module.** ``copy.copy(t)`` shares the memory of ``t`` and is a new leaf, so the gradient ends
# in ``y.grad``. ``copy.deepcopy`` is for leaves, such as the parameters of a model. For a result with a ``grad_fn`` it raises,
# and :ref:`so does deepcopy of a module that keeps such a result <sphx_glr_gallery_errors_deepcopy_of_non_leaf.py>`:

try:
    copy.deepcopy(t)
except RuntimeError as error:
    message = str(error).split(".")[0]
    print("RuntimeError:", message)

# sphinx_gallery_start_ignore
import warnings

y = copy.copy(t)
assert y.is_leaf and y.requires_grad and y.data_ptr() == t.data_ptr() and y is not t
w.grad = None
(y * 3).sum().backward()
assert w.grad is None and y.grad.tolist() == [3, 3]
assert message.startswith("Only Tensors created explicitly by the user (graph leaves)")
with torch.no_grad():
    _view = w[:1]
for _leaf in (w, _view, w.detach()[:0].requires_grad_(), w.detach().expand(3, 2)):
    _same = copy.deepcopy(_leaf)
    assert _same.is_leaf and _same.requires_grad == _leaf.requires_grad
    assert _same.data_ptr() != _leaf.data_ptr() or not len(_leaf)
_module = torch.nn.Linear(1, 1)
_module.last = _module(torch.ones(1))
_raised = []
try:
    copy.deepcopy(_module)
except RuntimeError as error:
    _raised.append(str(error).startswith("Only Tensors created explicitly"))
assert _raised == [True]
with warnings.catch_warnings(record=True) as _caught:
    warnings.simplefilter("always")
    assert torch.tensor(t).data_ptr() != t.data_ptr()
assert "sourceTensor.detach().clone()" in str(_caught[0].message)
assert t.clone().grad_fn.name() == "CloneBackward0" and t.detach().grad_fn is None
for _y in (t.clone().detach(), t.detach().clone()):
    assert _y.is_leaf and not _y.requires_grad and _y.data_ptr() != t.data_ptr()
# sphinx_gallery_end_ignore

# %%
# ``torch.tensor(t)`` copies too, but :ref:`warns <sphx_glr_gallery_errors_copy_construct_from_tensor.py>`: write
# ``t.detach().clone()``. ``t.clone().detach()`` gives the same, after recording a node that it then drops.

# %%
# Exercise
# --------
# You keep the hidden values of each step for a report, before an in-place operation changes them. Put a call in place of
# ``hidden`` in the marked line, so that the report has the right values and no graph:

weight = torch.ones(2, requires_grad=True)

notes = []
for _ in range(3):
    hidden = torch.tensor([1.0, -1.0]) * weight
    notes.append(hidden)  # this line
    hidden.relu_()
print(notes[0])

# sphinx_gallery_start_ignore
assert notes[0].tolist() == [1, 0] and notes[0].requires_grad
# sphinx_gallery_end_ignore

# %%
# .. solution::
#
# ``hidden.detach()`` shares the memory, so it shows the values after ``relu_()``. ``hidden.clone()`` keeps the graph. Use
# both:

hidden = torch.tensor([1.0, -1.0]) * weight
for note in (hidden.detach(), hidden.clone(), hidden.detach().clone()):
    notes.append(note)
hidden.relu_()
for note in notes[3:]:
    print(note)

# sphinx_gallery_start_ignore
assert [note.tolist() for note in notes[3:]] == [[1, 0], [1, -1], [1, -1]]
assert [note.requires_grad for note in notes[3:]] == [False, True, False]
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :doc:`Shape operations </reference/shapes>`: more than a hundred calls, and whether they copy.
# - :doc:`Which switch do I want? </guide/which-switch>`, and :ref:`sphx_glr_gallery_modes_grad_modes.py`.
# - In PyTorch's reference: `Tensor.detach <https://docs.pytorch.org/docs/stable/generated/torch.Tensor.detach.html>`__,
#   `torch.clone <https://docs.pytorch.org/docs/stable/generated/torch.clone.html>`__ and `Tensor.item
#   <https://docs.pytorch.org/docs/stable/generated/torch.Tensor.item.html>`__.
