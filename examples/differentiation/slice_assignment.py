r"""
Slice assignment y[0] = 0: what autograd records
================================================

.. in-short::

   ``y[0] = 0`` on a result that requires grad is recorded: backward through this write sends 0 to the old ``y[0]``, and the
   other elements pass on their gradients. You get an error, for example, if ``y`` is a leaf that requires grad, or a view of
   one, if ``unbind`` or ``split`` returned it, or if backward needs what you overwrote. Then build a new tensor instead:
   ``masked_fill``, ``torch.where``, ``torch.stack``.
"""

# %%
# The problem: one value of a tensor was overwritten
# --------------------------------------------------
# You mask a score by assigning to it, before you compute the loss. Nothing is raised. Is the gradient right?

import torch

x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
scores = x * 2
scores[0] = 0.0

total = scores.sum()
total.backward()
print("x.grad:", x.grad)

# graph: total -- scores has a new node, CopySlices: the old tensor with one part replaced

# sphinx_gallery_start_ignore
assert x.grad.tolist() == [0, 2, 2] and scores.tolist() == [0, 4, 6]
doubled = x * 2
early = doubled * 3  # the old value is used before the write, too
doubled[0] = 0.0
assert torch.autograd.grad((early + doubled).sum(), x)[0].tolist() == [6, 8, 8]
assert scores.grad_fn.name() == "torch::autograd::CopySlices"
at_zero = torch.tensor([0.0, 4.0], requires_grad=True)
logs = at_zero.log()
logs[0] = 0.0
logs.sum().backward()
assert at_zero.grad[0].isnan() and at_zero.grad[1] == 0.25
for view_of_leaf in (x[:], x[1:], x[::2], x[:0], x.view(3), x[None]):
    raised = []
    try:
        view_of_leaf[...] = 0.0
    except RuntimeError as error:
        raised.append(str(error))
    assert len(raised) == 1 and "a view of a leaf Variable" in raised[0]
for whole in (torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)[:]):
    with torch.no_grad():
        whole[0] = 0.0
    assert whole.tolist() == [0, 1, 1]
# sphinx_gallery_end_ignore

# %%
# It is right. The first score is now the constant 0, so the gradient of ``x[0]`` is 0. The assignment
# gave ``scores`` a new node, ``CopySlices``. It passes on 0 for the first score, and the multiplication before it turns this
# into 0 · 2 = 0. (For ``x.log()`` at 0 the slope is infinite, and you get NaN.)
#
# Below, ``x[1]`` is on the right-hand side too, and its gradient is 2 + 5:

x.grad = None
scores = x * 2
scores[0] = x[1] * 5
scores.sum().backward()
print("x.grad:", x.grad)

# sphinx_gallery_start_ignore
assert x.grad.tolist() == [0, 7, 2]


def assign(x):
    y = x * 2
    y[0] = 0.0
    return y


def assign_tensor(x):
    y = x * 2
    y[0] = x[1] * 5
    return y


def buffer(x):
    y = torch.zeros(3, dtype=x.dtype)
    y[0] = x[0] * 2
    return y


double = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64, requires_grad=True)
complex_x = torch.tensor([1.0, 2.0j, 3.0], dtype=torch.complex128, requires_grad=True)
for function in (assign, assign_tensor, buffer):
    for point in (double, complex_x):
        assert torch.autograd.gradcheck(function, point)
        assert torch.autograd.gradgradcheck(function, point)
    (expected,) = torch.autograd.grad(function(x).sum(), x)
    _, pullback = torch.func.vjp(function, x.detach())
    assert torch.equal(pullback(torch.ones(3))[0], expected)
# sphinx_gallery_end_ignore

# %%
# Why: a view shares the memory of its base
# -----------------------------------------
# ``part`` is a view of ``a``. A write into ``part`` changes ``a``, so the graph of ``a`` has to change too:

x.grad = None
a = x * 2
part = a[:2]
print("before:", a.grad_fn.name(), part.grad_fn.name(), a._version)
part.mul_(10)
print("after: ", a.grad_fn.name(), part.grad_fn.name(), a._version)

total = a.sum()
total.backward()
print("x.grad:", x.grad)

# graph: total -- a was written to through the view part: CopySlices records the write

# sphinx_gallery_start_ignore
assert x.grad.tolist() == [20, 20, 2] and a.tolist() == [20, 40, 6]
assert a.grad_fn.name().endswith("CopySlices") and a._version == 1 == part._version
assert part.grad_fn.name() == "AsStridedBackward0"
assert part.grad_fn.next_functions[0][0] is a.grad_fn
assert a.grad_fn.next_functions[0][0].name() == "MulBackward0"
# sphinx_gallery_end_ignore

# %%
# The node ``CopySlices`` means: ``a`` as it was, with one region replaced. In backward it multiplies the gradient of that
# region by 10, and passes on the gradient of the rest unchanged. ``part`` has a new node as well, which reads its region from
# the new ``a``.
#
# On the leaf ``x``, the same step would make ``x`` the result of an operation. It would no longer be a leaf, so PyTorch
# refuses. And ``_version`` went from 0 to 1: this number is how backward notices that a saved tensor was written to.

# %%
# Which writes are refused?
# -------------------------
# Some writes raise on their own line. In the table, ``x`` is a leaf that requires grad, and ``y`` is ``x * 2``.
#
# .. how-measured:: Each case runs. Its row has the node that y got by the write, "not recorded", or the error.

import pandas as pd

pd.set_option("display.max_colwidth", None)


def view_under_no_grad(y):
    with torch.no_grad():
        part = y[:2]
    part.mul_(10)


def plain(x):
    with torch.no_grad():
        x[0] = 0


CASES = {
    "y[0] = 0": lambda x, y: y.__setitem__(0, 0.0),
    "y[:2].mul_(10)": lambda x, y: y[:2].mul_(10),
    "y[y > 3] = 0": lambda x, y: y.__setitem__(y > 3, 0.0),
    "y[[0, 1]] = 0": lambda x, y: y.__setitem__([0, 1], 0.0),
    "y[:] = x * 3": lambda x, y: y.__setitem__(slice(None), x * 3),
    "y += 1": lambda x, y: y.add_(1),
    "x += 1": lambda x, y: x.add_(1),
    "x[0] = 0": lambda x, y: x.__setitem__(0, 0.0),
    "x[0] = 0 under no_grad": lambda x, y: plain(x),
    "for part in y: part += 1": lambda x, y: [part.add_(1) for part in y],
    "y.split([1, 2])[0].add_(1)": lambda x, y: y.split([1, 2])[0].add_(1),
    "a view made under no_grad": lambda x, y: view_under_no_grad(y),
    "y[0].expand(3).mul_(2)": lambda x, y: y[0].expand(3).mul_(2),
    "y[1:] = y[:-1]": lambda x, y: y.__setitem__(slice(1, None), y[:-1]),
}


def outcome(write):
    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = x * 2
    try:
        write(x, y)
    except RuntimeError as error:
        return f"refused: {error}"
    assert x.is_leaf
    node = type(y.grad_fn).__name__
    return "not recorded" if node == "MulBackward0" else f"recorded: {node}"


def tabulate_writes():
    outcomes = {written: outcome(write) for written, write in CASES.items()}
    return pd.DataFrame({"what happens": outcomes}).rename_axis(columns="you write")


# %%
# What each write leaves in ``y``, or the error that it raises. (PyTorch 2.15 has ``MaskedFill`` and ``IndexFill`` in place of
# ``IndexPut``.)

# sphinx_gallery_start_ignore
_outcomes = tabulate_writes()["what happens"].tolist()
leaf = torch.ones(3, requires_grad=True)
plain(leaf)
assert leaf.tolist() == [0, 1, 1] and leaf.is_leaf and leaf.requires_grad
TORCH = tuple(int(part) for part in torch.__version__.split(".")[:2])
_by_mask, _by_list = "IndexPutBackward0", "IndexPutBackward0"
if TORCH >= (2, 15):
    _by_mask, _by_list = "MaskedFillBackward0", "IndexFillBackward0"
assert _outcomes[:6] == [
    "recorded: CopySlices",
    "recorded: CopySlices",
    f"recorded: {_by_mask}",
    f"recorded: {_by_list}",
    "recorded: CopyBackwards",
    "recorded: AddBackward0",
]
kinds = [happens.partition(":")[0] for happens in _outcomes]
assert kinds[6:] == ["refused"] * 2 + ["not recorded"] + ["refused"] * 5
for refused in list(CASES.values())[-2:]:  # without any gradient, too
    raised = []
    for y in (torch.ones(3), torch.ones(3, requires_grad=True) * 2):
        try:
            refused(None, y)
        except RuntimeError as error:
            raised.append(str(error))
    assert len(raised) == 2 and raised[0] == raised[1]
    assert "to a single memory location" in raised[0]

for factor in (torch.tensor(1.0), torch.tensor(1.0, requires_grad=True)):
    wrong = 0
    for columns in range(3, 17):
        m, copied = (torch.arange(2.0 * columns).view(2, -1) * factor for _ in range(2))
        m[:, 1:] = m[:, :-1]  # nothing is raised
        copied[:, 1:] = copied[:, :-1].clone()
        assert copied[1].tolist() == [columns, *range(columns, 2 * columns - 1)]
        wrong += not torch.equal(m, copied)
    assert wrong
_values = torch.tensor([10.0, 20.0], requires_grad=True)
_twice = torch.zeros(3)
_twice[[0, 0]] = _values
assert _twice[0] in (10, 20)
assert torch.autograd.grad(_twice[0], _values)[0].tolist() == [1, 1]
# sphinx_gallery_end_ignore
tabulate_writes()

# %%
# The last two writes raise the same error if ``y`` requires no grad. All elements of ``y[0].expand(3)`` are in one place in
# memory. And ``y[:-1]`` is partly the same memory as ``y[1:]``, to which the assignment writes. In a matrix of several
# rows, ``m[:, 1:] = m[:, :-1]`` raises nothing, and can be wrong: put ``.clone()`` after the right-hand side.
#
# A list with an index twice, as in ``y[[0, 0]] = values``, writes one of the two values, but both get a gradient.
#
# Pages on single errors: :ref:`a leaf, or a view of one <sphx_glr_gallery_errors_leaf_in_place.py>`, and
# :ref:`one of several views <sphx_glr_gallery_errors_view_of_several.py>`.

# %%
# What people get wrong
# ---------------------
# **Masking a result that backward needs.** ``softmax`` saved its result for backward, and the assignment overwrites it:

probs = torch.softmax(x, dim=0)
probs[probs < 0.1] = 0
try:
    probs.sum().backward()
except RuntimeError as error:
    message = str(error).split(" Hint")[0]
    print(message)

probs = torch.softmax(x, dim=0)
probs = probs.masked_fill(probs < 0.1, 0)  # a new tensor
probs.sum().backward()

# sphinx_gallery_start_ignore
assert "modified by an inplace operation" in message and "expected version 0" in message
assert probs[0] == 0 and (probs[1:] > 0).all()
whole = torch.autograd.grad(torch.softmax(x, 0)[1:].sum(), x)[0]
probs = torch.softmax(x, dim=0)
assert torch.equal(
    torch.autograd.grad(probs.masked_fill(probs < 0.1, 0).sum(), x)[0], whole
)
# sphinx_gallery_end_ignore

# %%
# :ref:`sphx_glr_gallery_differentiation_inplace_and_versions.py` explains this message.

# %%
# **Reading one row of a buffer and writing the next.** A recurrent loop that stores its states in one tensor:


def states_in_a_buffer(w, steps=3):
    h = torch.ones(steps + 1)
    for t in range(steps):
        h[t + 1] = torch.tanh(w * h[t])
    return h[1:]


w = torch.tensor(0.5, requires_grad=True)
try:
    states_in_a_buffer(w).sum().backward()
except RuntimeError as error:
    message = str(error).split(" Hint")[0]
    print(message)

# sphinx_gallery_start_ignore
assert "is at version 3; expected version 2" in message and "AsStrided" in message
# sphinx_gallery_end_ignore

# %%
# The product saved ``h[t]``. This row and ``h[t + 1]`` are views of ``h`` and share its version counter, so the write to
# ``h[t + 1]`` makes the saved row look changed. Keep the states in a list:


def states_in_a_list(w, steps=3):
    h = [torch.ones(())]
    for _ in range(steps):
        h.append(torch.tanh(w * h[-1]))
    return torch.stack(h[1:])


states_in_a_list(w).sum().backward()
print("w.grad:", w.grad)

# sphinx_gallery_start_ignore
assert torch.equal(states_in_a_list(w), states_in_a_buffer(w))
h = torch.ones(3)
saved, other = h[0], h[1]
h[1] = 2.0
assert saved._version == other._version == h._version == 1 and saved == 1
assert (w * saved).grad_fn._saved_other.data_ptr() == h.data_ptr()
w64 = w.detach().double().requires_grad_()
assert torch.autograd.gradcheck(states_in_a_list, w64)


def sums_in_a_buffer(w):
    h = torch.ones(4, dtype=w.dtype)
    for t in range(3):
        h[t + 1] = h[t] + w
    return h


assert torch.autograd.gradcheck(sums_in_a_buffer, w64)
# sphinx_gallery_end_ignore

# %%
# **Filling a long buffer in a loop.** The loop below works. But backward goes through the writes one by one, and each
# ``CopySlices`` copies the gradient of the *whole* buffer. ``n`` rows of eight numbers are put into one tensor:


def by_assignment(rows):
    out = torch.zeros(len(rows), 8)
    for i, row in enumerate(rows):
        out[i] = row
    return out


def by_stack(rows):
    return torch.stack(rows)


# %%
# .. how-measured:: A dispatch mode sees the operators that backward calls, and adds up the elements of their results.

import pandas as pd
from torch.utils._python_dispatch import TorchDispatchMode


class Elements(TorchDispatchMode):
    total = 0

    def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
        result = operator(*args, **(kwargs or {}))
        self.total += result.numel()  # each operator here returns one tensor
        return result


def elements_in_backward(fill, n):
    source = torch.ones(8, requires_grad=True)
    loss = fill([source * k for k in range(n)]).sum()
    with Elements() as elements:
        loss.backward()
    return elements.total


def tabulate_elements_in_backward():
    counts = {
        n: {
            fill.__name__: elements_in_backward(fill, n)
            for fill in (by_assignment, by_stack)
        }
        for n in (10, 20, 40, 80)
    }
    return pd.DataFrame(counts).T.rename_axis(columns="n")


# %%
# How many elements backward's operators return, views counted too:

# sphinx_gallery_start_ignore
table = tabulate_elements_in_backward()
many = table["by_assignment"]
assert all(2 * 8 * n * n <= many[n] <= 2 * 8 * n * n + 100 * n for n in table.index)
few = table["by_stack"]
for n in (10, 20, 40):
    assert 3.45 < many[2 * n] / many[n] < 3.85 and 1.99 < few[2 * n] / few[n] <= 2


class WholeCopies(TorchDispatchMode):
    seen = 0

    def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
        self.seen += operator is torch.ops.aten.copy_.default and args[0].numel() == 56
        return operator(*args, **(kwargs or {}))


loss = by_assignment([torch.ones(8, requires_grad=True) * k for k in range(7)]).sum()
with WholeCopies() as copies:
    loss.backward()
assert copies.seen == 7  # one for each CopySlices
rows = [x * k for k in range(5)]
out = torch.zeros(5, 3)
out[0] = rows[0]
assert out.requires_grad and not out.is_leaf
# sphinx_gallery_end_ignore
tabulate_elements_in_backward()

# %%
# With twice as many rows, the number for ``by_stack`` about doubles. The number for ``by_assignment`` grows 3.5 to 3.8 times.

# %%
# **A write that is not recorded.** Under ``no_grad``, or through ``.detach()`` or ``.data``, the value changes, and no node
# records it. So this gradient ignores the write:

x.grad = None
scores = x * 2
with torch.no_grad():
    scores[0] = 0.0
scores.sum().backward()
print("scores:", scores.tolist(), "  x.grad:", x.grad)

# sphinx_gallery_start_ignore
assert scores.tolist() == [0, 4, 6] and x.grad.tolist() == [2, 2, 2]
for write in (lambda y: y.detach()[:1].zero_(), lambda y: y.data[:1].zero_()):
    scores = x * 2
    write(scores)
    assert scores.tolist() == [0, 4, 6] and scores.grad_fn.name() == "MulBackward0"
    assert torch.autograd.grad(scores.sum(), x)[0].tolist() == [2, 2, 2]
    turned = (
        x[None] * 2
    ).T  # a view gets another node, and the gradient is that of the old value too
    write(turned)
    assert torch.autograd.grad(turned.sum(), x)[0].tolist() == [2, 2, 2]


def under_no_grad(y):
    with torch.no_grad():
        y[0] = 5.0


raised = []
for write in (under_no_grad, lambda y: y.detach()[:1].fill_(5)):
    saved = x.exp()
    write(saved)
    try:
        saved.sum().backward()
    except RuntimeError as error:
        raised.append("modified by an inplace operation" in str(error))
assert raised == [True, True]
saved = x.exp()
saved.data[0] = 5.0
assert torch.autograd.grad(saved.sum(), x)[0][0] == 5  # neither 0 nor exp(1)
# sphinx_gallery_end_ignore

# %%
# If a node saved the tensor, as for ``x.exp()``, the first two raise *modified by an inplace operation*. With ``.data``,
# backward uses the new number.

# %%
# Exercise
# --------
# ``y = x * 2``, then ``y[1:] = y[:-1] * 3``. The right-hand side reads what the assignment overwrites. Does backward work, and
# what is the gradient of ``y.sum()`` for each element of ``x``?
#
# .. solution::
#
# It works. The product is computed before the write, into new memory, and its node saves the number 3 and nothing of
# ``y``. After the assignment, ``y`` is :math:`[2x_1, 6x_1, 6x_2]`. The sum is :math:`8x_1 + 6x_2`, without :math:`x_3`.

x.grad = None
y = x * 2
y[1:] = y[:-1] * 3
y.sum().backward()
print("y:", y.tolist(), "  x.grad:", x.grad)
assert x.grad.tolist() == [8, 6, 0]

# predict: x.grad -- What is the gradient for each element of ``x``?

# sphinx_gallery_start_ignore
product = y[:-1] * 3
assert product.grad_fn._saved_self is None and product.grad_fn._saved_other == 3
assert product.data_ptr() != y.data_ptr()
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_tensors_expand_and_aliasing.py`: which tensors share memory with themselves.
# - In PyTorch's reference: `torch.Tensor.masked_fill
#   <https://docs.pytorch.org/docs/stable/generated/torch.Tensor.masked_fill.html>`__ and `torch.select_scatter
#   <https://docs.pytorch.org/docs/stable/generated/torch.select_scatter.html>`__, which write into a copy.
