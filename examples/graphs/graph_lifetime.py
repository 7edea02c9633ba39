r"""
retain_graph=True, and when memory is freed
===========================================

.. index::
   ! single: memory grows
   ! single: memory is not freed after backward

.. in-short::

   ``loss.backward()`` drops the tensors that the graph saved for it, so a second backward through the same graph usually raises
   an error. ``retain_graph=True`` keeps them. You rarely need it: add losses that train the same parameters, ``(loss1 +
   loss2).backward()``. If you carry a state into the next step, write ``state = state.detach()`` *after* each step. Without a
   backward, memory is freed when the last reference to the graph is gone, so sum up ``loss.item()`` instead of ``loss``.
"""

# %%
# The problem: backward fails in the second step
# ----------------------------------------------
# You train a recurrent model, which gets the *state* that its previous step computed. ``carry`` decides what goes from one step
# into the next. Three versions of this loop:

import gc
from collections import Counter

import torch


def train(carry, retain_graph=False):
    cell = torch.nn.RNNCell(2, 2)
    optimizer = torch.optim.SGD(cell.parameters(), lr=0.1)
    state = torch.zeros(1, 2)
    for step in (1, 2, 3):
        state = cell(torch.ones(1, 2), state)
        loss = state.square().mean()
        optimizer.zero_grad()
        try:
            loss.backward(retain_graph=retain_graph)
        except RuntimeError as error:
            return f"step {step}, RuntimeError: {str(error)[:94]} ..."
        optimizer.step()
        state = carry(state)
    return "all three steps ran"


print("1.", train(lambda state: state))
print("2.", train(lambda state: state, retain_graph=True))
print("3.", train(lambda state: state.detach()))

# sphinx_gallery_start_ignore
first, second = train(lambda h: h), train(lambda h: h, retain_graph=True)
assert first.startswith("step 2") and "the graph a second time" in first
assert second.startswith("step 3") and "modified by an inplace operation" in second
assert train(lambda state: state.detach()) == "all three steps ran"
_wrong = []
for _fused in (False, True):
    _w = torch.tensor([3.0], requires_grad=True)
    _state = _w * 1
    for _step in (1, 2):
        _optimizer = torch.optim.SGD([_w], lr=1.0, fused=_fused)
        _w.grad, _before = None, _w.item()
        _state = _state * _w
        try:
            _state.sum().backward(retain_graph=True)
            _wrong.append(_w.grad.item())
        except RuntimeError as error:
            _wrong.append("modified by an inplace" in str(error))
        _optimizer.step()
# the weights were 3 and -3: step 2 has the gradient 9 + (-3) * (3 + 3) = -9
assert _wrong == [6, True, 6, 9]
cell = torch.nn.RNNCell(2, 2)
start = torch.zeros(1, 2, requires_grad=True)  # a first state that is trained
for cut_first in (True, False):
    start.grad, hidden = None, start
    for _ in range(3):
        hidden = cell(torch.ones(1, 2), hidden.detach() if cut_first else hidden)
        hidden.pow(2).sum().backward()
        hidden = hidden.detach()
    assert (start.grad is None) == cut_first
lstm = torch.nn.LSTM(2, 2)
carried = None
for _ in range(3):
    out, carried = lstm(torch.ones(1, 1, 2), carried)
    out.sum().backward()
    carried = tuple(t.detach() for t in carried)
carried, reached = torch.tensor(1.0), []
weight = torch.tensor(0.5, requires_grad=True)
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
# 1. The state leads from step 2 back into step 1. But the first backward dropped what step 1 had saved.
# 2. The message suggests ``retain_graph=True``. Then step 3 fails: its backward reaches weights that step 2 saved, and the
#    optimizer has changed them in place since. (An optimizer with ``fused=True`` hides this error: the gradients are wrong.)
# 3. ``detach()`` returns the value of the state without its history. So each backward ends in its own step. The state of an
#    LSTM is a tuple: carry ``tuple(t.detach() for t in state)``.

# %%
# Why: what a node saves, and what backward frees
# -----------------------------------------------
# A graph is made of *nodes*, one for each operation. The derivative of :math:`x^2` is :math:`2x`, so the node that will compute
# it saves ``x``. Attributes that begin with ``_saved`` show what a node keeps:

x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
y = (x**2).sum()
power = y.grad_fn.next_functions[0][0]
print(power.name(), "saved", power._saved_self.tolist())

# graph: y (saved) -- The node of x ** 2 saved x, the node of the sum no tensor

# %%
# After backward, the node is still there, but the tensor is gone:

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
print("still there:", y.grad_fn.name(), "and", power.name())

# sphinx_gallery_start_ignore
assert y.grad_fn.next_functions[0][0] is power
assert power.next_functions[0][0].variable is x
assert power._saved_exponent == 2  # a number is not freed
# sphinx_gallery_end_ignore

# %%
# **The rule: a node keeps its saved tensors until a backward without retain_graph goes through it, or until nothing refers to
# the node.** The graph of ``(x + 1).sum()`` saved no tensor, so you can go through it twice:

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
# When you need retain_graph
# --------------------------
# Two losses share a part, such as an encoder (below, only ``exp``), and you want a backward for each:

x.grad = None
h = torch.exp(x)
loss1 = h.sum()
loss2 = (h * h).sum()

# graph: loss1, loss2 -- Both losses are computed from h, and the node of h saved its result

# %%
# One after the other, and the sum of both:

loss1.backward(retain_graph=True)  # keep what the second backward needs
loss2.backward()
separate = x.grad

x.grad = None
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
_judge, _fake = (torch.tensor(value, requires_grad=True) for value in (2.0, 3.0))
_losses = _judge * _fake.detach(), -_judge * _fake  # of two networks: do not add
(_apart,) = torch.autograd.grad(_losses[0], _judge, retain_graph=True)
(_added,) = torch.autograd.grad(sum(_losses), _judge)
assert _apart == 3 and _added == 0
# sphinx_gallery_end_ignore

# %%
# The sum gives the same gradient, without ``retain_graph``. To get the two gradients apart, as for the two networks of a
# :ref:`GAN <sphx_glr_gallery_practice_gan.py>`, use it: ``torch.autograd.grad(loss1, x, retain_graph=True)``, then
# ``torch.autograd.grad(loss2, x)``.

# %%
# Memory grows, and you do not know why
# -------------------------------------
# Count the tensors that Python holds, by their shape, before and after some steps:


def count_tensors():
    gc.collect()
    objects = gc.get_objects()
    tensors = [o for o in objects if issubclass(type(o), torch.Tensor)]
    return Counter(tuple(tensor.shape) for tensor in tensors)


weight, history = torch.ones(3, requires_grad=True), []
before = count_tensors()
for _ in range(4):
    loss = (weight**2).sum()
    loss.backward()
    history.append(loss)  # loss.item() would be right
del loss
print(count_tensors() - before)

# sphinx_gallery_start_ignore
assert count_tensors() - before == Counter({(): 4})
assert sum(found is history for found in gc.get_referrers(history[0])) == 1
history.clear()
assert not count_tensors() - before


def _loss_of():
    h = weight.exp()
    return (h * h).sum()


_loss = _loss_of()
assert count_tensors() - before == Counter({(3,): 1, (): 1})  # h, which is saved
del _loss
# sphinx_gallery_end_ignore

# %%
# Four losses have stayed. ``gc.get_referrers(tensor)`` shows who holds one, such as the list ``history``, but misses local
# variables and graphs.
#
# Another cause is a :ref:`hook that uses its own tensor <sphx_glr_gallery_differentiation_hooks.py>`
# (`pytorch#12863 <https://github.com/pytorch/pytorch/issues/12863>`__). ``gc.collect()`` cannot free this reference cycle.

# %%
# What people get wrong
# ---------------------
# **Adding up losses instead of numbers.** ``total = total + loss`` makes ``total`` a tensor that refers to the graph of every
# step. In a loop without ``backward()``, nothing drops what these graphs saved. Three loops:

w = torch.ones(1000, requires_grad=True)


def add_tensors():
    total = 0
    for _ in range(20):
        loss = torch.tanh(w * torch.ones(1000)).sum()
        total = total + loss
        yield  # one step is done


def add_numbers():
    total = 0
    for _ in range(20):
        loss = torch.tanh(w * torch.ones(1000)).sum()
        total = total + loss.item()
        yield


def add_tensors_after_backward():
    total = 0
    for _ in range(20):
        loss = torch.tanh(w * torch.ones(1000)).sum()
        loss.backward()
        total = total + loss
        yield


# %%
# .. how-measured:: A hook puts each tensor that a node saves into an object, which lives as long as the node keeps it. The
#    bytes of their storages are added up after each step.

import weakref

import matplotlib.pyplot as plt
from torch.autograd.graph import saved_tensors_hooks


def measure_kept_bytes(loop):
    alive = weakref.WeakSet()

    class Saved:
        def __init__(self, tensor):
            self.tensor = tensor.detach()  # without grad_fn, which would form a cycle
            alive.add(self)

    history = []
    with saved_tensors_hooks(Saved, lambda saved: saved.tensor):
        for _ in loop():
            storages = [saved.tensor.untyped_storage() for saved in alive]
            sizes = {storage.data_ptr(): storage.nbytes() for storage in storages}
            history.append(sum(sizes.values()))
    return history, alive


def plot_kept_bytes(*loops):
    _, ax = plt.subplots(figsize=(7, 3.2), layout="constrained")
    looks = zip(("o-", "s-", "^-"), ("#c2410c", "#2563eb", "#047857"), strict=True)
    for loop, (marker, color) in zip(loops, looks, strict=True):
        kilobytes = [size / 1000 for size in measure_kept_bytes(loop)[0]]
        ax.plot(range(1, 21), kilobytes, marker, color=color, label=loop.__name__)
    ax.set(xlabel="step", ylabel="kB in saved tensors", xticks=range(1, 21))
    ax.set_title("Without backward, a sum of tensors keeps what every step saved")
    ax.legend(frameon=False)


# %%
# The bytes of saved tensors that the graphs keep after each step:

plot_kept_bytes(add_tensors, add_numbers, add_tensors_after_backward)

# figure: Kilobytes in saved tensors after each of 20 steps. With add_tensors the line rises steadily from 8 to 160. With
#   add_numbers it stays at 8. With a backward in each step it stays at 0.

# sphinx_gallery_start_ignore
for loop, sizes in (
    (add_tensors, [8000 * (step + 1) for step in range(20)]),
    (add_numbers, [8000] * 20),
    (add_tensors_after_backward, [0] * 20),
    (torch.no_grad()(add_tensors), [0] * 20),
):
    history, alive = measure_kept_bytes(loop)
    assert history == sizes and not alive  # nothing refers to a graph any more
total = 0
for _ in range(3):
    loss = (w * 2).tanh().sum()
    loss.backward()
    total = total + loss
found = [total.grad_fn]
for node in found:
    found += [n for n, _ in node.next_functions if n and n not in found]
assert len(found) == 4 * 3 + 1
assert (torch.zeros(()) + loss.detach()).grad_fn is None
del total, loss, found, node
# sphinx_gallery_end_ignore

# %%
# In ``add_numbers`` only the graph of the latest step is left. A backward in each step frees the saved tensors, but ``total``
# keeps the nodes of all steps. If the sum is to stay a tensor, add ``loss.detach()``. In a validation loop, write ``with
# torch.no_grad():``, so that nothing is recorded.

# %%
# **Thinking that retain_graph accumulates.** Gradients are added to ``.grad`` with it and without it:

x.grad = None
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
# Exercise
# --------
# Which of these allow a second backward: ``x - 1``, ``-x``, ``2 * x``, ``x.exp()``, ``x.sum()``, ``x.relu()``?
#
# .. solution::
#
# The derivatives of a difference, a minus and a sum use no value. ``relu`` and ``exp`` save their result. But ``2 * x`` saves
# the factor as a tensor, though you wrote a plain number.

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
