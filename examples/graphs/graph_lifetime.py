r"""
retain_graph: when the graph is freed, and what backward frees
==============================================================

.. index::
   ! single: memory grows
   ! single: memory is not freed after backward

"Trying to backward through the graph a second time": something was freed. This page shows what, and it is not the
graph. It is the tensors that the nodes had saved. It also shows what ``retain_graph=True`` changes, when memory is
given back without any backward, and why a running sum of losses can hold the memory of every step.
"""

# %%
# What backward frees
# -------------------
# The derivative of :math:`x^2` is :math:`2x`, so the node of the power needs ``x`` again. It saves it, and the
# attributes that begin with ``_saved`` show what a node keeps.

import textwrap
import weakref

import matplotlib.pyplot as plt
import torch
from torch.autograd.graph import saved_tensors_hooks

x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
y = (x**2).sum()
power = y.grad_fn.next_functions[0][0]

print(power.name(), "keeps", power._saved_self.tolist())
y.backward()
try:
    print(power._saved_self)
except RuntimeError as error:
    print(textwrap.fill(f"RuntimeError: {error}", 88))
    assert "after they have already been freed" in str(error)

# %%
# Backward has run, and the node has let go of its tensor. (``x`` lives on, because the script still holds it.) A
# second backward needs what is gone, and fails with the same message. The nodes and the edges are all still there.

try:
    y.backward()
except RuntimeError as error:
    print(f"RuntimeError: {str(error)[:50]} ...")
    assert "backward through the graph a second time" in str(error)

leaf = power.next_functions[0][0].variable
print("still there:", y.grad_fn.name(), power.name(), leaf.tolist())
del leaf

# sphinx_gallery_start_ignore
try:
    _ = power._saved_self
except RuntimeError as error:
    message = str(error)
try:
    y.backward()
except RuntimeError as error:
    assert str(error) == message
assert (
    y.grad_fn.next_functions[0][0] is power and power.next_functions[0][0].variable is x
)
# sphinx_gallery_end_ignore

# %%
# So a graph whose nodes saved no tensors survives any number of backwards. The derivative of :math:`x + 1` is 1, and
# nothing has to be kept for that.

x.grad = None
z = (x + 1).sum()
z.backward()
z.backward()

print("x.grad after two backwards:", x.grad.tolist())
assert x.grad.tolist() == [2, 2, 2]

# %%
# A meter for what is kept
# ------------------------
# ``saved_tensors_hooks`` calls a function for each tensor that a node saves. Here it puts the tensor in a ``Saved``
# object, which lives exactly as long as the node keeps it. ``kept`` counts the bytes that are alive, each storage
# once.

alive = weakref.WeakSet()


class Saved:
    def __init__(self, tensor):
        self.tensor = tensor.detach()  # without its grad_fn, which would form a cycle
        alive.add(self)


def kept():
    storages = [saved.tensor.untyped_storage() for saved in alive]
    return sum({storage.data_ptr(): storage.nbytes() for storage in storages}.values())


def loss_of(w):
    data = torch.ones(1000)
    with saved_tensors_hooks(Saved, lambda saved: saved.tensor):
        return torch.tanh(w * data).sum()


w = torch.ones(1000, requires_grad=True)
loss = loss_of(w)

print("after forward:", kept(), "bytes in", len(alive), "tensors")

# sphinx_gallery_start_ignore
assert kept() == 8000 and len(alive) == 2
# sphinx_gallery_end_ignore

# %%
# The product keeps ``data`` and ``tanh`` keeps its result: 1000 numbers of four bytes each. Here is what becomes
# of them:

loss.backward()
print("forward, backward:                      ", kept())

loss = loss_of(w)
loss.backward(retain_graph=True)
print("forward, backward with retain_graph:    ", kept())
loss.backward()
print("... and a backward without:             ", kept())

loss = loss_of(w)
before = kept()
del loss
print("forward, and the last reference dropped:", kept(), "after", before)

loss = loss_of(w)
root = loss.grad_fn
del loss
print("forward, but grad_fn still held:        ", kept())
del root

# sphinx_gallery_start_ignore
assert kept() == 0 and before == 8000
loss = loss_of(w)
loss.backward(retain_graph=True)
assert kept() == 8000
loss.backward()
assert kept() == 0
loss = loss_of(w)
root = loss.grad_fn
del loss
assert kept() == 8000
del root
assert kept() == 0
# sphinx_gallery_end_ignore

# %%
# No backward is needed to give the memory back. When the last reference to the root goes, the whole graph goes with
# everything it kept. Whoever holds a node, or a result in the middle, holds all that it was computed from.
#
# retain_graph does not accumulate
# --------------------------------
# It keeps the saved tensors, and that is all. Gradients are *always* added to ``.grad``, with ``retain_graph`` or
# without, from one graph or from two.

x.grad = None
y = (x**2).sum()
y.backward(retain_graph=True)
print("first backward:             ", x.grad.tolist())

x.grad = None
y.backward(retain_graph=True)
print("again, after clearing .grad:", x.grad.tolist())
assert x.grad.tolist() == [2, 4, 6]

x.grad = None
for _ in range(2):
    (x**2).sum().backward()
print("two graphs, none retained:  ", x.grad.tolist())
assert x.grad.tolist() == [4, 8, 12]

# %%
# When you need it: two roots over one part
# -----------------------------------------
# Both losses are computed from ``h``. The backward of the first frees what the node of ``h`` has saved, and the
# second needs it.

x.grad = None
h = torch.exp(x)
loss1 = h.sum()
loss2 = (h * h).sum()

print(f"loss1 = {loss1.item():.4f}   loss2 = {loss2.item():.4f}")

# graph: loss1, loss2 -- Two roots share the part to the left of h, and the node of h saved its result

# %%
# With ``retain_graph=True`` in the first call, both go through. The gradient is that of the sum of the losses.

loss1.backward(retain_graph=True)  # keep what the second backward needs
loss2.backward()
separate, x.grad = x.grad, None

h = torch.exp(x)
(h.sum() + (h * h).sum()).backward()

print("one after the other:", [round(number, 4) for number in separate.tolist()])
print("the sum, in one go: ", [round(number, 4) for number in x.grad.tolist()])
assert torch.allclose(separate, x.grad)

# sphinx_gallery_start_ignore
h = torch.exp(x)
loss1, loss2 = h.sum(), (h * h).sum()
loss1.backward()
try:
    loss2.backward()
except RuntimeError as error:
    message = str(error)
    assert "second time" in message
# sphinx_gallery_end_ignore

# %%
# Where the losses can be added, one backward over the sum is the better way. It goes through the shared part once,
# and nothing has to be retained.
#
# A sum of losses that grows
# --------------------------
# ``total = total + loss`` adds a tensor, so ``total`` holds the graph of every step. What that costs depends on
# whether a backward frees the saved tensors. The nodes stay in any case.


def walk(root):
    """Every node within reach of root, each of them once."""
    found = [root]
    for node in found:  # the list grows while it is read
        for edge, _ in node.next_functions:
            if edge is not None and edge not in found:
                found.append(edge)
    return found


def run(steps, backward, number):
    total, history = 0.0, []
    for _ in range(steps):
        loss = loss_of(w)
        if backward:
            loss.backward()
        total = total + (loss.item() if number else loss)
        history.append(kept() / 1000)
    return history, 0 if number else len(walk(total.grad_fn))


plain, plain_nodes = run(20, backward=False, number=False)
trained, trained_nodes = run(20, backward=True, number=False)
with_item, item_nodes = run(20, backward=False, number=True)

print("                                kB at the end   nodes held by total")
print(f"total + loss, no backward:      {plain[-1]:>13} {plain_nodes:>21}")
print(f"total + loss, loss.backward():  {trained[-1]:>13} {trained_nodes:>21}")
print(f"total + loss.item():            {with_item[-1]:>13} {item_nodes:>21}")

# sphinx_gallery_start_ignore
assert (
    plain == [8.0 * (step + 1) for step in range(20)]
    and plain_nodes == trained_nodes == 81 == 4 * 20 + 1
)
assert trained == [0.0] * 20 and with_item == [8.0] * 20 and kept() == 0


def with_detach(steps):
    total = torch.zeros(())
    for _ in range(steps):
        total = total + loss_of(w).detach()
    return total


assert with_detach(3).grad_fn is None and kept() == 0
# sphinx_gallery_end_ignore

# %%
# The trap is the first row: a validation loop that never calls backward, and a running sum for the report. The second
# row is the usual training loop. It keeps no tensors, and still four nodes for each step, plus the leaf's.

# figure: Kilobytes kept after each of 20 steps. Without backward the sum of tensors rises in a straight line from 8
#   to 160. With item() in place of the tensor it stays at 8. With a backward in each step it stays at 0.
fig, ax = plt.subplots(figsize=(7, 3.2), layout="constrained")
for history, label, marker, color in [
    (plain, "total + loss, no backward", "o-", "#c2410c"),
    (with_item, "total + loss.item(), no backward", "s-", "#2563eb"),
    (trained, "total + loss, loss.backward()", "^-", "#047857"),
]:
    ax.plot(range(1, 21), history, marker, color=color, label=label)
ax.set(xlabel="step", ylabel="kB kept by all graphs", xticks=range(1, 21))
ax.set_title("A sum of tensors keeps the graph of every step")
ax.legend(frameon=False)
assert max(plain) == 160 and max(with_item) == 8 and max(trained) == 0

# %%
# With ``loss.item()``, or ``loss.detach()`` where the number is to stay a tensor, only the graph of the latest step
# is there: ``loss`` still names its root.
#
# What people get wrong
# ---------------------
# **Silencing the error with retain_graph=True.** A state that is carried from step to step carries its graph along.
# The second backward runs into the first step, where everything has been freed.


def recurrent(steps, carry, **options):
    weight = torch.tensor(0.5, requires_grad=True)
    state, reached = torch.tensor(1.0), []
    for _ in range(steps):
        state = torch.tanh(weight * carry(state))
        state.backward(**options)
        reached.append(len(walk(state.grad_fn)))
    return reached


try:
    recurrent(5, carry=lambda state: state)
except RuntimeError as error:
    print(f"RuntimeError: {str(error)[:50]} ...")
    assert "backward through the graph a second time" in str(error)

retained = recurrent(5, carry=lambda state: state, retain_graph=True)
detached = recurrent(5, carry=lambda state: state.detach())

print("nodes within reach, retain_graph=True:", retained)
print("nodes within reach, state.detach():   ", detached)
assert retained == [3, 5, 7, 9, 11] and detached == [3, 3, 3, 3, 3]

# %%
# With ``retain_graph=True`` the error is gone, and each backward goes through all the steps since the first: more
# work and more memory with every step. If the gradient is meant to end at the step, cut it there with ``detach()``.
#
# **Waiting for backward to free a graph.** ``del`` is enough, and so is leaving the function. If the memory stays,
# look for what still refers to the graph: a list of losses, a state, an attribute of a module.

history = [loss_of(w) for _ in range(10)]
print("a list of ten losses keeps", kept(), "bytes")
history = [loss.item() for loss in history]
print("a list of ten numbers keeps", kept(), "bytes")
assert kept() == 0

# %%
# Exercise
# --------
# Which of these allow a second backward: ``x - 1``, ``-x``, ``2 * x``, ``x.exp()``, ``x.sum()``, ``x.relu()``? Decide
# first what the derivative needs.
#
# .. solution::
#
# The derivatives of a difference, a sign and a sum need no value. For ``relu`` and ``exp`` the result is kept. The
# surprise is ``2 * x``: the factor counts as a saved tensor, though it is a plain number.

verdicts = {}
for text, function in {
    "x - 1": lambda: x - 1,
    "-x": lambda: -x,
    "2 * x": lambda: 2 * x,
    "x.exp()": lambda: x.exp(),
    "x.sum()": lambda: x.sum(),
    "x.relu()": lambda: x.relu(),
}.items():
    root = function().sum()
    root.backward()
    try:
        root.backward()
        verdicts[text] = "runs again"
    except RuntimeError:
        verdicts[text] = "raises"
    print(f"{text:<9} {verdicts[text]}")

assert [text for text, verdict in verdicts.items() if verdict == "raises"] == [
    "2 * x",
    "x.exp()",
    "x.relu()",
]

# sphinx_gallery_start_ignore
doubled = 2 * x
assert doubled.grad_fn._saved_other.item() == 2 and doubled.grad_fn._saved_self is None
assert torch.equal(x.exp().grad_fn._saved_result, x.exp()) and torch.equal(
    x.relu().grad_fn._saved_result, x
)
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - Before: :ref:`sphx_glr_gallery_graphs_static_and_dynamic.py`, graphs that are made before the data come.
# - Next: :ref:`sphx_glr_gallery_graphs_draw_a_graph.py`, a drawing of what is there.
# - :ref:`sphx_glr_gallery_differentiation_accumulation.py`, why gradients are added, and how to clear them.
# - In PyTorch's reference: `Saved tensors
#   <https://docs.pytorch.org/docs/stable/notes/autograd.html#saved-tensors>`__ and `torch.Tensor.backward
#   <https://docs.pytorch.org/docs/stable/generated/torch.Tensor.backward.html>`__.
