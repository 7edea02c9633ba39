r"""
How to get the gradient of an intermediate tensor
=================================================

``backward()`` stores gradients on leaves. The gradient of an intermediate result is computed as well, since
everything to its left needs it, and then it is dropped. There are three ways to get hold of it: ask for it with
``torch.autograd.grad``, have it kept with ``retain_grad()``, or catch it with a hook. They differ in what else they
change.

.. math::

   C = A B, \qquad D = e^{C}, \qquad A = 2, \quad B = \tfrac{1}{2}
"""

# %%
# The value to look for
# ---------------------
# ``C`` is 1, so :math:`\partial D / \partial C = e^C = e`, and
# :math:`\partial D / \partial A = e^C B = e / 2`.

import math
import textwrap

import pandas as pd
import torch
from torch import nn


def compute():
    A = torch.tensor(2.0, requires_grad=True)
    B = torch.tensor(0.5, requires_grad=True)
    C = A * B
    D = torch.exp(C)
    return A, B, C, D


A, B, C, D = compute()

# graph: D -- C is neither leaf nor root: its gradient passes through and is not kept

print(f"C = {C.item()}   D = {D.item():.4f}   is C a leaf? {C.is_leaf}")

# sphinx_gallery_start_ignore
assert C == 1 and math.isclose(D.item(), math.e, rel_tol=1e-6) and not C.is_leaf
# sphinx_gallery_end_ignore

# %%
# First way: ask for it
# ---------------------
# ``torch.autograd.grad(D, (C, A))`` returns :math:`\partial D / \partial C` and :math:`\partial D / \partial A`, in
# the order of the request. Leaves and intermediate results are equal here. No leaf's ``.grad`` is filled, so nothing
# has to be cleared before or after.

dC, dA = torch.autograd.grad(D, (C, A))

print(f"dD/dC = {dC.item():.4f}   dD/dA = {dA.item():.4f}")
print(f"A.grad is {A.grad}, B.grad is {B.grad}")

# sphinx_gallery_start_ignore
assert math.isclose(dC.item(), math.e, rel_tol=1e-6) and f"{dC.item():.4f}" == "2.7183"
assert (
    math.isclose(dA.item(), math.e / 2, rel_tol=1e-6) and f"{dA.item():.4f}" == "1.3591"
)
assert A.grad is None and B.grad is None
# sphinx_gallery_end_ignore

# %%
# The engine goes no further than the request makes it. If only ``C`` is asked for, the multiplication that made
# ``C`` is never entered. A hook on its node counts the visits:

counts = {}

for names in ("C A", "C"):
    A, B, C, D = compute()
    visits = []
    C.grad_fn.register_prehook(lambda gradients, visits=visits: visits.append(1))
    torch.autograd.grad(D, [{"C": C, "A": A}[name] for name in names.split()])
    counts[names] = len(visits)
    print(f"asked for {names:<4}  visits of the multiplication: {len(visits)}")

# sphinx_gallery_start_ignore
assert counts == {"C A": 1, "C": 0}
# sphinx_gallery_end_ignore

# %%
# Second way: have it kept
# ------------------------
# ``retain_grad()`` makes ``backward`` store the gradient on ``C`` as if ``C`` were a leaf. Call it before the
# backward pass. It is the right way when the training step does a ``backward`` anyway.

A, B, C, D = compute()
C.retain_grad()
D.backward()

# graph: D -- After backward: C keeps its gradient beside the two leaves

for name, tensor in [("C", C), ("A", A), ("B", B)]:
    print(f"{name}.grad = {tensor.grad.item():.4f}")
del tensor

# sphinx_gallery_start_ignore
assert (
    C.grad == dC
    and A.grad == dA
    and math.isclose(B.grad.item(), 2 * math.e, rel_tol=1e-6)
)
# sphinx_gallery_end_ignore

# %%
# Third way: catch it with a hook
# -------------------------------
# ``register_hook`` calls a function with the gradient, at the moment when it is complete. What the function does with
# it is up to you: store it, print it, take its norm and let it go. A value that the hook returns *replaces* the
# gradient for everything further to the left.

A, B, C, D = compute()
norms = []
C.register_hook(lambda gradient: norms.append(gradient.norm().item()))
D.backward()
print(f"norm of dD/dC: {norms[0]:.4f}   A.grad = {A.grad.item():.4f}")

A, B, C, D = compute()
C.register_hook(lambda gradient: gradient * 10)
D.backward()
print(f"with a replaced gradient:  A.grad = {A.grad.item():.4f}")

# sphinx_gallery_start_ignore
assert math.isclose(norms[0], math.e, rel_tol=1e-6) and len(norms) == 1
shared, arrived = torch.tensor(3.0, requires_grad=True) * 1, []
shared.register_hook(arrived.append)
(shared * 2 + shared * 5).backward()
assert [g.item() for g in arrived] == [7.0]  # once, and the whole sum
del shared, arrived
assert math.isclose(A.grad.item(), 10 * math.e / 2, rel_tol=1e-6)
# sphinx_gallery_end_ignore

# %%
# ``list.append`` returns ``None``, so the first hook replaced nothing.

# %%
# The three compared
# ------------------
# Each way runs over one graph twice. ``retain_graph=True`` makes the second pass possible.


def twice(way):
    A, _, C, D = compute()
    seen, results = [], []
    if way == "retain_grad":
        C.retain_grad()
    if way == "hook":
        C.register_hook(seen.append)
    for _ in range(2):
        if way == "autograd.grad":
            results += torch.autograd.grad(D, C, retain_graph=True)
        else:
            D.backward(retain_graph=True)
            results.append(C.grad if way == "retain_grad" else seen[-1])
    return [*results, A.grad]


# %%
# One row for each way:

names = ["C, first pass", "C, second pass", "A.grad after both"]
ways = ["autograd.grad", "retain_grad", "hook"]
table = pd.DataFrame(
    [["None" if t is None else f"{t.item():.4f}" for t in twice(way)] for way in ways],
    columns=names,
    index=ways,
).rename_axis(index=None, columns="way")

# sphinx_gallery_start_ignore
assert table.loc["autograd.grad"].tolist() == ["2.7183", "2.7183", "None"]
assert table.loc["retain_grad"].tolist() == ["2.7183", "5.4366", "2.7183"]
assert table.loc["hook"].tolist() == ["2.7183", "2.7183", "2.7183"]
A, B, C, D = compute()
C.retain_grad()
met = []
C.register_hook(met.append)
torch.autograd.grad(D, A)
assert C.grad == met[0] == dC
del met
# sphinx_gallery_end_ignore
table

# %%
# ``retain_grad`` makes ``C.grad`` behave like the gradient of a leaf: it adds up, and 5.4366 is twice 2.7183. A hook
# sees each pass for itself. Only ``torch.autograd.grad`` leaves the leaf alone. It does run the hooks on its way,
# and fill the gradients that are retained there, as ``backward`` would. (The 2.7183 in the last column is two passes
# of 1.3591. That it equals the gradient of ``C`` is chance.)
#
# - Use ``torch.autograd.grad`` when the gradient is a result: for an attribution map, a penalty, a test.
# - Use ``retain_grad`` to look at a few tensors of a training step.
# - Use a hook to change a gradient, or to look at many tensors without keeping them.

# %%
# What people get wrong
# ---------------------
# **Asking for a tensor that was made afterwards.** ``x[0]`` is an operation. It returns a new tensor each time, and
# the loss was not computed from that one. The same happens with ``x.view(-1)``, ``x[None]`` or ``x.double()``.

x = torch.tensor([1.0, 2.0], requires_grad=True)
y = (x**2).sum()
late = x[0]

try:
    torch.autograd.grad(y, late)
except RuntimeError as error:
    print(textwrap.fill(f"RuntimeError: {error}", 88))
    assert "appears to not have been used in the graph" in str(error)

# graph: y, late -- late was computed from x, but y was not computed from late

# %%
# The advice in the message turns the error into a ``None``, and the question stays open. The fix is to ask for ``x``
# and to take the entry from the result.

y = (x**2).sum()
(unanswered,) = torch.autograd.grad(y, late, allow_unused=True, retain_graph=True)
(whole,) = torch.autograd.grad(y, x)
print(f"allow_unused=True: {unanswered}   ask for x, take [0]: {whole[0].item()}")

# sphinx_gallery_start_ignore
assert unanswered is None and whole[0] == 2
for other in (x.view(-1), x[None], x.double()):
    y = (x**2).sum()
    assert torch.autograd.grad(y, other, allow_unused=True) == (None,)
del other
# sphinx_gallery_end_ignore

# %%
# **Changing C in place after the hook.** A hook belongs to the value that ``C`` had when it was registered. A
# gradient that is retained belongs to the value that ``C`` has in the end. After ``C.mul_(3)`` these are two
# different nodes.

A, B, C, _ = compute()
before = []
C.register_hook(before.append)
C.retain_grad()
C.mul_(3)
D = torch.exp(C)
D.backward()

print(f"C is now {C.item()}, and dD/dC = e^3 = {math.exp(3):.4f}")
print(f"C.grad = {C.grad.item():.4f}   the hook saw {before[0].item():.4f}")

# sphinx_gallery_start_ignore
assert C == 3 and math.isclose(C.grad.item(), math.exp(3), rel_tol=1e-6)
assert math.isclose(before[0].item(), 3 * math.exp(3), rel_tol=1e-6)
# sphinx_gallery_end_ignore

# %%
# The hook saw :math:`3 e^3`, the derivative with respect to the old value 1. Both numbers are right, and they answer
# different questions. The fix is a new name, ``E = C * 3``, so that each name has one value.

# %%
# Exercise
# --------
# A model comes as ``nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))``. Get the gradient of its mean output
# with respect to the *output of the Tanh*, without writing a new class. Find one way with ``torch.autograd.grad`` and
# one with ``retain_grad``.
#
# .. solution::
#
# A Sequential can be sliced, so the intermediate result gets a name. Where a model cannot be cut, a forward hook on
# the layer receives its output and can call ``retain_grad()`` on it.

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
inputs = torch.randn(5, 3)

hidden = model[:2](inputs)
(asked,) = torch.autograd.grad(model[2:](hidden).mean(), hidden)

kept = []


def keep(module, args, output):
    output.retain_grad()
    kept.append(output)


handle = model[1].register_forward_hook(keep)
model(inputs).mean().backward()
handle.remove()

print("shape:", tuple(asked.shape), "  equal:", torch.equal(asked, kept[0].grad))
assert torch.allclose(asked, model[2].weight.expand(5, 4) / 5)

# sphinx_gallery_start_ignore
assert torch.allclose(asked, kept[0].grad, rtol=1e-6) and asked.shape == (5, 4)
# sphinx_gallery_end_ignore

# %%
# By hand: the mean over five samples gives each of them one fifth of the weights of the last layer.

# %%
# See also
# --------
# - Before: :ref:`sphx_glr_gallery_differentiation_accumulation.py`, how ``.grad`` adds up.
# - Next: :ref:`sphx_glr_gallery_differentiation_hooks.py`, everything that hooks can do.
# - :ref:`sphx_glr_gallery_graphs_leaves_and_roots.py`, why ``.grad`` of a non-leaf is ``None``, and the warning.
# - In PyTorch's reference: `torch.autograd.grad
#   <https://docs.pytorch.org/docs/stable/generated/torch.autograd.grad.html>`__ and `Tensor.register_hook
#   <https://docs.pytorch.org/docs/stable/generated/torch.Tensor.register_hook.html>`__.
