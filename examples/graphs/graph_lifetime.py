r"""
retain_graph=True, and when memory is freed
===========================================

.. index::
   ! single: memory grows
   ! single: memory is not freed after backward

.. in-short::

   ``loss.backward()`` drops the tensors that the graph saved for it, so a second backward through the same graph usually raises
   an error. ``retain_graph=True`` keeps them. You rarely need it: add losses that share a part, ``(loss1 + loss2).backward()``,
   and carry ``state.detach()`` into the next step if the gradient may end there. Without a backward, memory is freed when
   nothing refers to the graph any more, so sum up ``loss.item()``, not ``loss``.
"""

# %%
# The problem: backward fails in the second step
# ----------------------------------------------
# You train a recurrent model and carry its state from one step to the next. (To keep the figure small, the state is also
# the loss here.) The first step works:

import weakref

import torch

weight = torch.tensor(0.5, requires_grad=True)

state = torch.tanh(weight * 1.0)
state.backward()
new_state = torch.tanh(weight * state)

# graph: new_state (saved) -- Step 2 is still connected to step 1, which no longer has what it saved

# sphinx_gallery_start_ignore
tanh1 = state.grad_fn
assert new_state.grad_fn._saved_result == new_state
assert new_state.grad_fn.next_functions[0][0].next_functions[1][0] is tanh1
raised = []
for node, name in (
    (tanh1, "_saved_result"),
    (tanh1.next_functions[0][0], "_saved_other"),
):
    try:
        getattr(node, name)
    except RuntimeError as error:
        raised.append("after they have already been freed" in str(error))
assert raised == [True, True]
del tanh1, node
# sphinx_gallery_end_ignore

# %%
# The second backward needs what the nodes of step 1 had saved, and the first backward dropped it:

try:
    new_state.backward()
except RuntimeError as error:
    message = str(error)
    print(f"RuntimeError: {message}")

# sphinx_gallery_start_ignore
assert "backward through the graph a second time" in message
del message
# sphinx_gallery_end_ignore

# %%
# If the gradient may end at the step, cut the graph there. ``detach()`` gives the next step the value of the state without
# its history:

new_state = torch.tanh(weight * state.detach())
new_state.backward()

# graph: new_state (saved) -- With detach, step 2 does not lead to step 1, and its backward ran

# sphinx_gallery_start_ignore
product = new_state.grad_fn.next_functions[0][0]
assert (
    product.next_functions[1][0] is None
    and product.next_functions[0][0].variable is weight
)
del product
# sphinx_gallery_end_ignore

# %%
# What people get wrong
# ---------------------
# **Silencing the error with retain_graph=True.** The message suggests it. But in a training loop the next error usually
# follows: backward goes into an earlier step, which saved the weights, and the optimizer has changed them in place since.
# Here is a loop with a real layer and an optimizer, in three versions:


def train(carry, **options):
    cell = torch.nn.RNNCell(2, 2)
    optimizer = torch.optim.SGD(cell.parameters(), lr=0.1)
    hidden = torch.zeros(1, 2)
    for step in (1, 2, 3):
        hidden = cell(torch.ones(1, 2), carry(hidden))
        optimizer.zero_grad()
        try:
            hidden.pow(2).sum().backward(**options)
        except RuntimeError as error:
            return f"step {step}, RuntimeError: {str(error)[:94]} ..."
        optimizer.step()
    return "all three steps ran"


print("1.", train(lambda hidden: hidden))
print("2.", train(lambda hidden: hidden, retain_graph=True))
print("3.", train(lambda hidden: hidden.detach()))

# sphinx_gallery_start_ignore
first, second = train(lambda h: h), train(lambda h: h, retain_graph=True)
assert first.startswith("step 2") and "the graph a second time" in first
assert second.startswith("step 3") and "modified by an inplace operation" in second
assert train(lambda hidden: hidden.detach()) == "all three steps ran"
cell = torch.nn.RNNCell(2, 2)
product = cell(torch.ones(1, 2), weight.expand(1, 2)).grad_fn.next_functions[0][0]
kept_weights = [node._saved_mat2 for node, _ in product.next_functions]
kept_weights = [kept for kept in kept_weights if kept is not None]
assert any(torch.equal(kept, cell.weight_hh.T) for kept in kept_weights)
del cell, product, kept_weights
cubed = torch.tensor(1.0, requires_grad=True)
cube = cubed**3
for grad_there in (3, 0.75):  # the second should be 3 too: the graph is the same
    cubed.grad = None
    cube.backward(retain_graph=True)
    assert cubed.grad == grad_there
    torch.optim.SGD([cubed], lr=0.5, fused=True).step()
from torch.func import functional_call


def fused_gradients(copied):
    torch.manual_seed(0)
    cell = torch.nn.RNNCell(2, 2).double()
    optimizer = torch.optim.SGD(cell.parameters(), lr=0.1, fused=True)
    carried, gradients = torch.zeros(1, 2).double(), []
    for _ in range(3):
        weights = dict(cell.named_parameters())
        if copied:  # each step saves weights that no optimizer changes
            weights = {name: weight.clone() for name, weight in weights.items()}
        carried = functional_call(cell, weights, (torch.ones(1, 2).double(), carried))
        optimizer.zero_grad()
        carried.pow(2).sum().backward(retain_graph=True)  # no error
        gradients.append(torch.cat([p.grad.flatten() for p in cell.parameters()]))
        optimizer.step()
    return gradients


pairs = zip(fused_gradients(False), fused_gradients(True), strict=True)
gaps = [(one - other).abs().max().item() for one, other in pairs]
assert gaps[:2] == [0, 0] and gaps[2] > 1e-4
del cubed, cube, pairs, gaps, fused_gradients
lstm = torch.nn.LSTM(2, 2)
carried = None
for _ in range(3):
    out, carried = lstm(torch.ones(1, 1, 2), carried)
    out.sum().backward()
    carried = tuple(t.detach() for t in carried)
carried, reached = torch.tensor(1.0), []
for _ in range(4):
    carried = torch.tanh(weight * carried)
    carried.backward(retain_graph=True)
    found = [carried.grad_fn]
    for node in found:
        found += [n for n, _ in node.next_functions if n and n not in found]
    reached.append(len(found))
assert reached == [3, 5, 7, 9]
del found, node, carried
# sphinx_gallery_end_ignore

# %%
# Version 2 fails in step 3, where backward reaches the weights that step 2 saved. Without the optimizer it does not raise, but
# each backward walks through all steps since the first. With ``torch.optim.SGD(..., fused=True)`` it does not raise either, and
# the gradient of step 3 is wrong: :ref:`sphx_glr_gallery_differentiation_inplace_and_versions.py` shows why. The state of an
# LSTM is a tuple: carry ``tuple(t.detach() for t in state)``.

# %%
# **Adding up losses instead of numbers.** ``total = total + loss`` makes ``total`` a tensor that refers to the graph of
# every step. A validation loop without ``torch.no_grad()`` records graphs too, and no backward drops what they saved. The
# figure shows how many bytes of saved tensors the graphs keep after each step of three loops.
#
# .. how-measured:: A hook puts each tensor that a node saves here into an object, which lives as long as the node keeps it.
#    The function kept() adds up the bytes of their storages.

import matplotlib.pyplot as plt
from torch.autograd.graph import saved_tensors_hooks

alive = weakref.WeakSet()


class Saved:
    def __init__(self, tensor):
        self.tensor = tensor.detach()  # without its grad_fn, which would form a cycle
        alive.add(self)


def kept():
    storages = [saved.tensor.untyped_storage() for saved in alive]
    return sum({storage.data_ptr(): storage.nbytes() for storage in storages}.values())


w = torch.ones(1000, requires_grad=True)


def loss_of(w):
    data = torch.ones(1000)
    with saved_tensors_hooks(Saved, lambda saved: saved.tensor):
        return torch.tanh(w * data).sum()


def run(number, backward):
    total, history = 0, []
    for _ in range(20):
        loss = loss_of(w)
        if backward:
            loss.backward()
        total = total + (loss.item() if number else loss)
        history.append(kept() / 1000)
    return history


def plot(histories):
    _, ax = plt.subplots(figsize=(7, 3.2), layout="constrained")
    looks = zip(("o-", "s-", "^-"), ("#c2410c", "#2563eb", "#047857"), strict=True)
    for (label, history), (marker, color) in zip(histories.items(), looks, strict=True):
        ax.plot(range(1, 21), history, marker, color=color, label=label)
    ax.set(xlabel="step", ylabel="kB in saved tensors", xticks=range(1, 21))
    ax.set_title("Without backward, a sum of tensors keeps what every step saved")
    ax.legend(frameon=False)


# %%
# Two loops without backward and one with it, 20 steps each:

histories = {
    "total + loss": run(number=False, backward=False),
    "total + loss.item()": run(number=True, backward=False),
    "loss.backward(), total + loss": run(number=False, backward=True),
}
plot(histories)

# figure: Kilobytes in saved tensors after each of 20 steps. With total + loss the line rises steadily from 8 to 160. With
#   total + loss.item() it stays at 8. With a backward in each step it stays at 0.

# sphinx_gallery_start_ignore
adding, items, trained = histories.values()
assert adding == [8.0 * (step + 1) for step in range(20)]
assert items == [8.0] * 20 and trained == [0.0] * 20 and kept() == 0
with torch.no_grad():
    assert run(number=False, backward=False) == [0.0] * 20
total = torch.zeros(())
for _ in range(3):
    total = total + loss_of(w).detach()
assert total.grad_fn is None and kept() == 0
total = 0
for _ in range(3):
    loss = loss_of(w)
    loss.backward()
    total = total + loss
found = [total.grad_fn]
for node in found:
    found += [n for n, _ in node.next_functions if n and n not in found]
assert len(found) == 4 * 3 + 1
del total, loss, found, node
# sphinx_gallery_end_ignore

# %%
# With ``total + loss.item()`` only the graph of the latest step is left, because ``loss`` refers to it. With a backward in each
# step, no saved tensor is left here, but ``total`` keeps the nodes of all steps. If the sum is to stay a tensor, add
# ``loss.detach()``. Under ``torch.no_grad()`` the first loop stays at 0 too.
#
# **A hook on a result that names the result.** The tensor ``h`` below refers to its node, the node to the hook, and the hook to
# ``h``. Part of this cycle is in C++, where Python's garbage collector does not look. So all 20 tensors outlive their function:

import gc

ratios = []


def train_step():
    h = (torch.ones(1000, requires_grad=True) * 2).exp()
    handle = h.register_hook(lambda grad: ratios.append(grad.norm() / h.norm()))
    h.sum().backward()
    return handle, weakref.ref(h)


steps = [train_step() for _ in range(20)]
gc.collect()
print("outputs still in memory:", sum(h() is not None for _, h in steps))

for handle, _ in steps:
    handle.remove()
print("after handle.remove():  ", sum(h() is not None for _, h in steps))

# sphinx_gallery_start_ignore
assert len(ratios) == 20 and not any(h() is not None for _, h in steps)


def left(kind):
    source = torch.ones(10, requires_grad=True)
    h = (source * 2).exp()
    detached, shape = h.detach(), h.shape
    hooks = {
        "own": lambda grad: grad * h.numel(),
        "shape": lambda grad: grad * shape.numel(),
        "detached": lambda grad: grad * detached,
    }
    if kind == "node":
        h.grad_fn.register_prehook(lambda grads: (grads[0] * h.numel(),))
    else:
        h.register_hook(hooks[kind])
    del hooks
    h.sum().backward()
    return weakref.ref(h)


for kind, stays in (("own", 3), ("node", 3), ("shape", 0), ("detached", 0)):
    refs = [left(kind) for _ in range(3)]
    gc.collect()
    assert sum(ref() is not None for ref in refs) == stays, kind
# sphinx_gallery_end_ignore

# %%
# Call ``handle.remove()`` when you are done. Or compute ``shape = h.shape`` or ``detached = h.detach()`` first, and let the
# hook name that (`pytorch#12863 <https://github.com/pytorch/pytorch/issues/12863>`__).

# %%
# **Thinking that retain_graph accumulates.** ``retain_graph=True`` keeps what backward would drop. Gradients are added to
# ``.grad`` with it and without it:

x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)

y = (x**2).sum()
y.backward(retain_graph=True)
y.backward()
print("one graph, retained:", x.grad.tolist())

x.grad = None
for _ in range(2):
    (x**2).sum().backward()
print("two graphs:         ", x.grad.tolist())
assert x.grad.tolist() == [4, 8, 12]

# sphinx_gallery_start_ignore
x.grad = None
y = (x**2).sum()
y.backward(retain_graph=True)
y.backward()
assert x.grad.tolist() == [4, 8, 12]
# sphinx_gallery_end_ignore

# %%
# Why: what a node saves, and what backward frees
# -----------------------------------------------
# The derivative of :math:`x^2` is :math:`2x`, so the node saves ``x``. Attributes that begin with ``_saved`` show what
# this node keeps. After backward, the node and its edges are still there. But the node no longer has the tensor:

y = (x**2).sum()
power = y.grad_fn.next_functions[0][0]
print(power.name(), "saved", power._saved_self.tolist())

y.backward()
try:
    power._saved_self
except RuntimeError as error:
    message = str(error)
    print(f"RuntimeError: {message[:77]} ...")

# sphinx_gallery_start_ignore
assert "after they have already been freed" in message
del message
# sphinx_gallery_end_ignore
print("still there:", y.grad_fn.name(), power.name(), power.next_functions[0][0].name())

# sphinx_gallery_start_ignore
assert y.grad_fn.next_functions[0][0] is power
assert power.next_functions[0][0].variable is x
assert power._saved_exponent == 2  # a number is not freed


class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, tensor):
        ctx.save_for_backward(tensor)
        ctx.mine = tensor.clone()
        return tensor * 2

    @staticmethod
    def backward(ctx, grad):
        return grad * 2


own = Twice.apply(x)
assert torch.equal(own.grad_fn.saved_tensors[0], x) and not hasattr(
    own.grad_fn, "_saved"
)
assert not [name for name in dir(own.grad_fn) if name.startswith("_saved")]
own.sum().backward()
assert torch.equal(own.grad_fn.mine, x)
_dropped = []
try:
    own.grad_fn.saved_tensors
except RuntimeError as error:
    _dropped.append(str(error))
assert len(_dropped) == 1 and "after they have already been freed" in _dropped[0]
del own
# sphinx_gallery_end_ignore

# %%
# In a custom ``Function``, backward drops what you gave to ``save_for_backward``. A tensor that you store as ``ctx.name``
# stays.
#
# The graph of ``(x + 1).sum()`` saved no tensor, and you can go through it twice:

z = (x + 1).sum()
z.backward()
z.backward()  # no error

# sphinx_gallery_start_ignore
for node in (z.grad_fn, z.grad_fn.next_functions[0][0]):
    stored = [getattr(node, name) for name in dir(node) if name.startswith("_saved")]
    assert not any(torch.is_tensor(value) for value in stored)  # shapes and numbers
del node, stored
# sphinx_gallery_end_ignore

# %%
# Without a backward, memory is freed when nothing refers to the graph any more. Here is the function from the figure:

loss = loss_of(w)
print("after forward:     ", kept(), "bytes")
root = loss.grad_fn
del loss
print("grad_fn still held:", kept())
del root
print("nothing held:      ", kept())

# sphinx_gallery_start_ignore
assert kept() == 0
loss = loss_of(w)
assert kept() == 8000 and len(alive) == 2
root = loss.grad_fn
del loss
assert kept() == 8000
del root
assert kept() == 0
loss = loss_of(w)
loss.backward(retain_graph=True)
assert kept() == 8000
loss.backward()
assert kept() == 0
del loss
# sphinx_gallery_end_ignore

# %%
# When you need retain_graph
# --------------------------
# Two losses share a part, and you want a backward for each:

x.grad = None
h = torch.exp(x)
loss1 = h.sum()
loss2 = (h * h).sum()

# graph: loss1, loss2 -- Both losses are computed from h, and the node of h saved its result

# %%
# One after the other, and both at once:

loss1.backward(retain_graph=True)  # keep what the second backward needs
loss2.backward()
separate, x.grad = x.grad, None

h = torch.exp(x)
(h.sum() + (h * h).sum()).backward()
print("the same gradient:", torch.allclose(separate, x.grad))

# sphinx_gallery_start_ignore
assert torch.allclose(separate, x.grad)
h = torch.exp(x)
loss1, loss2 = h.sum(), (h * h).sum()
loss1.backward()
raised = []
try:
    loss2.backward()
except RuntimeError as error:
    raised.append(str(error))
assert len(raised) == 1 and "second time" in raised[0]
h = torch.exp(x)
loss1, loss2 = h.sum(), (h * h).sum()
(grad1,) = torch.autograd.grad(loss1, x, retain_graph=True)
(grad2,) = torch.autograd.grad(loss2, x)
assert torch.allclose(grad1, x.exp()) and torch.allclose(grad2, 2 * (2 * x).exp())
# sphinx_gallery_end_ignore

# %%
# The sum of the losses gives the same gradient up to rounding here, and needs no ``retain_graph``. To get the two gradients
# apart, use it: ``torch.autograd.grad(loss1, x, retain_graph=True)``, then ``torch.autograd.grad(loss2, x)``.

# %%
# Memory grows, and you do not know why
# -------------------------------------
# Count the tensors that Python holds, before and after some steps. The shape leads to the name:

import gc
from collections import Counter


def census():
    gc.collect()
    tensors = [
        found for found in gc.get_objects() if issubclass(type(found), torch.Tensor)
    ]
    return Counter(tuple(tensor.shape) for tensor in tensors)


weight, history = torch.ones(3, requires_grad=True), []
before = census()
for _ in range(4):
    loss = (weight**2).sum()
    loss.backward()
    history.append(loss)  # loss.item() would be right
del loss
print(census() - before)

# sphinx_gallery_start_ignore
assert census() - before == Counter({(): 4})
assert sum(found is history for found in gc.get_referrers(history[0])) == 1
history.clear()
assert not census() - before


def _loss_of():
    h = weight.exp()
    return (h * h).sum()


_loss = _loss_of()
assert census() - before == Counter({(3,): 1, (): 1})  # h, which the graph has saved
del _loss
_x = torch.ones(8, 5, requires_grad=True)
_start = census()
_dropped = torch.nn.functional.dropout(_x).sum()
assert census() - _start == Counter({(): 1})
del _dropped, _x
assert weight.grad is not None and census() - before == Counter({(3,): 1})
# sphinx_gallery_end_ignore

# %%
# Four losses have stayed. ``gc.get_referrers(tensor)`` shows the objects that hold one, here the list ``history``, but neither
# local variables nor graphs. Tensors that never had a Python object are not counted, such as the mask of dropout, and a
# ``.grad`` that nobody has read.

# %%
# Exercise
# --------
# Which of these allow a second backward: ``x - 1``, ``-x``, ``2 * x``, ``x.exp()``, ``x.sum()``, ``x.relu()``? Decide
# first what the derivative needs.
#
# .. solution::
#
# The derivatives of a difference, a minus and a sum need no value. ``relu`` and ``exp`` save their result. The surprise is
# ``2 * x``: it saves the factor as a tensor, though you wrote a plain number.

results = {
    "x - 1": x - 1,
    "-x": -x,
    "2 * x": 2 * x,
    "x.exp()": x.exp(),
    "x.sum()": x.sum(),
    "x.relu()": x.relu(),
}

again = []
for text, result in results.items():
    root = result.sum()
    root.backward()
    try:
        root.backward()
        again.append(text)
    except RuntimeError:
        print(f"{text} raises")

print("run again:", again)
assert again == ["x - 1", "-x", "x.sum()"]

# predict: len(again) -- How many of the six allow a second backward?

# sphinx_gallery_start_ignore
doubled = 2 * x
assert doubled.grad_fn._saved_other.item() == 2 and doubled.grad_fn._saved_self is None
assert torch.equal(x.exp().grad_fn._saved_result, x.exp())
assert torch.equal(x.relu().grad_fn._saved_result, x)
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`The page on this error <sphx_glr_gallery_errors_backward_twice.py>`, with short fixes.
# - :ref:`sphx_glr_gallery_differentiation_accumulation.py`: why gradients are added, and how to clear them.
# - In PyTorch's reference: `Saved tensors
#   <https://docs.pytorch.org/docs/stable/notes/autograd.html#saved-tensors>`__ and `torch.Tensor.backward
#   <https://docs.pytorch.org/docs/stable/generated/torch.Tensor.backward.html>`__.
