r"""
Hooks: see and change gradients during backward
===============================================

A hook is a function that backward calls when a gradient comes by. It can print the gradient, keep it, replace it, or
use it at once. There are hooks on tensors, on leaves after accumulation, on nodes and on modules. This page runs each
kind, shows the order in which they fire, and uses them to clip gradients and to watch them layer by layer.
"""

# %%
# A hook sees the gradient
# ------------------------
# ``register_hook`` on a tensor: the function is called with the gradient of the root with respect to that tensor.
# ``C`` is not a leaf, so backward leaves nothing in ``C.grad``. The hook sees the number all the same.

import warnings

import matplotlib.pyplot as plt
import torch

A = torch.tensor(2.0, requires_grad=True)
B = torch.tensor(0.5, requires_grad=True)
C = A * B
D = torch.exp(C)

seen = []
handle = C.register_hook(lambda gradient: seen.append(gradient.item()))
D.backward(retain_graph=True)

# graph: D -- The hook stands at C, on the way of every gradient from D to A and B

print(f"at C: {seen[0]:.4f}   A.grad = {A.grad:.4f}   B.grad = {B.grad:.4f}")

# sphinx_gallery_start_ignore
assert (
    abs(seen[0] - 2.7182818) < 1e-6
    and abs(A.grad - 1.3591409) < 1e-6
    and abs(B.grad - 5.4365637) < 1e-6
)
assert not C.is_leaf and not C.retains_grad
# sphinx_gallery_end_ignore

# %%
# A hook replaces the gradient, until it is removed
# -------------------------------------------------
# What a hook returns takes the place of the gradient for everything before it in the forward pass. If it returns
# ``None``, nothing changes. The handle that ``register_hook`` gave back removes the hook.


def gradient_of_a():
    A.grad = None
    D.backward(retain_graph=True)
    return A.grad.item()


handle.remove()
scale = C.register_hook(lambda gradient: gradient * 10)
print(f"with the hook:    A.grad = {gradient_of_a():.4f}")
scale.remove()
print(f"after its removal A.grad = {gradient_of_a():.4f}")

# sphinx_gallery_start_ignore
assert abs(gradient_of_a() - 1.3591409) < 1e-6 and len(seen) == 1
scale = C.register_hook(lambda gradient: gradient * 10)
assert abs(gradient_of_a() - 13.591409) < 1e-5
scale.remove()
# sphinx_gallery_end_ignore

# %%
# On a leaf: before or after accumulation
# ---------------------------------------
# A tensor hook on a leaf gets what *this* backward brings. ``register_post_accumulate_grad_hook`` runs after that was
# added to ``.grad``, and gets the leaf itself.

x = torch.tensor(1.0, requires_grad=True)
x.register_hook(lambda gradient: print(f"  tensor hook: {gradient.item():g}"))
x.register_post_accumulate_grad_hook(
    lambda leaf: print(f"  after accumulation: {leaf.grad.item():g}")
)

for number in (1, 2):
    print("backward", number)
    (3 * x).backward()
assert x.grad == 6

# %%
# By then the gradient is complete, so an optimizer step can be taken on the spot and the gradient dropped. The
# gradients of all the parameters need never be there at the same time.

layers = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 1))
before = [parameter.detach().clone() for parameter in layers.parameters()]


@torch.no_grad()
def step_and_drop(parameter):
    parameter -= 0.1 * parameter.grad
    parameter.grad = None


for parameter in layers.parameters():
    parameter.register_post_accumulate_grad_hook(step_and_drop)
del parameter

layers(torch.ones(2, 4)).sum().backward()
pairs = zip(before, layers.parameters(), strict=True)
changed = [not torch.equal(old, new) for old, new in pairs]
print("changed:", changed, "  gradients left:", [p.grad for p in layers.parameters()])

# sphinx_gallery_start_ignore
assert all(changed) and all(parameter.grad is None for parameter in layers.parameters())
# sphinx_gallery_end_ignore

# %%
# On a module
# -----------
# A full backward hook gets the gradients with respect to the inputs of the module and to its outputs, each as a
# tuple. The pre-hook runs before the module's backward and gets the outputs' only.


def shapes(gradients):
    return [tuple(gradient.shape) for gradient in gradients]


def before_it(module, outputs):
    print("before:", shapes(outputs))


def after_it(module, inputs, outputs):
    print("after: ", shapes(inputs), shapes(outputs))


linear = torch.nn.Linear(4, 3)
linear.register_full_backward_pre_hook(before_it)
linear.register_full_backward_hook(after_it)
linear(torch.ones(8, 4, requires_grad=True)).sum().backward()

# sphinx_gallery_start_ignore
found = []
other = torch.nn.Linear(4, 3)
other.register_full_backward_hook(
    lambda module, inputs, outputs: found.append((inputs[0].shape, outputs[0].shape))
)
other(torch.ones(8, 4, requires_grad=True)).sum().backward()
assert found == [((8, 4), (8, 3))]
# sphinx_gallery_end_ignore

# %%
# The last line made its input with ``requires_grad=True`` for a reason. If no input of the module requires a
# gradient, there is none to pass on: ``inputs`` is ``(None,)``, and PyTorch warns.

layer, given = torch.nn.Linear(4, 3), []
layer.register_full_backward_hook(lambda module, inputs, outputs: given.append(inputs))
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    layer(torch.ones(8, 4)).sum().backward()

print("inputs:", given[0], "  warnings:", len(caught))
assert given == [(None,)] and "no inputs require gradients" in str(caught[0].message)

# %%
# On a node, and the order of all of them
# ---------------------------------------
# A node takes hooks too: ``register_prehook`` before it runs, ``register_hook`` after. Here are all the hooks on
# tensors and nodes at once, in an order of registration that is not the order of firing:

order = []
u = torch.tensor(2.0, requires_grad=True)
v = u * 3
w = v * v

v.grad_fn.register_hook(lambda inputs, outputs: order.append("v: node, after"))
v.grad_fn.register_prehook(lambda outputs: order.append("v: node, before"))
v.retain_grad()
v.register_hook(lambda gradient: order.append(f"v: tensor, v.grad is {v.grad}"))
u.register_post_accumulate_grad_hook(lambda leaf: order.append("u: accumulated"))
u.register_hook(lambda gradient: order.append("u: tensor"))
w.register_hook(lambda gradient: order.append("w: tensor"))

w.backward()
print("\n".join(order))

# sphinx_gallery_start_ignore
assert order == [
    "w: tensor",
    "v: tensor, v.grad is None",
    "v: node, before",
    "v: node, after",
    "u: tensor",
    "u: accumulated",
], order
assert v.grad == 12
kept = A * B
kept.retain_grad()
kept.register_hook(lambda gradient: gradient * 10)
kept.backward()
assert kept.grad == 10
# sphinx_gallery_end_ignore

# %%
# The hooks fire from the root to the leaf. At each place the tensor's hook comes first, then the node's, before and
# after. ``retain_grad`` comes after the tensor hooks: it keeps what they made of the gradient, whatever the order of
# registration.

# %%
# Use: watch the gradients, layer by layer
# ----------------------------------------
# Ten layers of the same width, once with Tanh and once with Sigmoid. A hook on each activation keeps the norm of the
# gradient that arrives there.


def norms(activation):
    torch.manual_seed(0)
    net = torch.nn.Sequential()
    found = []
    for _ in range(10):
        net.extend([torch.nn.Linear(32, 32), activation()])
        net[-1].register_full_backward_hook(
            lambda module, inputs, outputs: found.append(outputs[0].norm().item())
        )
    net(torch.randn(64, 32)).square().mean().backward()
    return found[::-1]


by_layer = {kind.__name__: norms(kind) for kind in (torch.nn.Tanh, torch.nn.Sigmoid)}

# figure: The norm of the gradient at each of ten layers, on a logarithmic axis. For both functions it falls from the
#   last layer to the first. For Sigmoid it falls by more than six orders of magnitude, for Tanh by less than three.
_, ax = plt.subplots(figsize=(7, 3.2), layout="constrained")
ax.semilogy(range(1, 11), by_layer["Tanh"], "o-", color="#2563eb", label="Tanh")
ax.semilogy(range(1, 11), by_layer["Sigmoid"], "s-", color="#c2410c", label="Sigmoid")
ax.set(xlabel="layer, from the input", ylabel="norm of the gradient")
ax.set_title("The gradient fades on its way to the first layer")
ax.legend(frameon=False)

for name, values in by_layer.items():
    print(f"{name:<8} last layer {values[-1]:.0e}   first layer {values[0]:.0e}")

# sphinx_gallery_start_ignore
assert by_layer["Sigmoid"][-1] / by_layer["Sigmoid"][0] > 1e6
assert 10 < by_layer["Tanh"][-1] / by_layer["Tanh"][0] < 1e3
assert all(
    len(values) == 10 and sorted(values) == values for values in by_layer.values()
)
# sphinx_gallery_end_ignore

# %%
# With Sigmoid, what reaches the first layer is less than a millionth of what reaches the last: the first layer hardly
# learns.
#
# Use: clip where it is needed
# ----------------------------
# A hook on one tensor limits the gradient that passes there, and with it those of all that the tensor was computed
# from. The forward pass and the rest of the graph do not notice.

p = torch.tensor([3.0, 0.1], requires_grad=True)
q = p**3
q.register_hook(lambda gradient: gradient.clamp(-1, 1))
(5 * q).sum().backward()

print("clipped:  ", [round(number, 4) for number in p.grad.tolist()])
print("unclipped:", [round(number, 4) for number in (15 * p**2).tolist()])
assert torch.allclose(p.grad, 3 * p**2)

# %%
# What people get wrong
# ---------------------
# **Changing the gradient in place.** The same tensor may be on its way to other nodes. Here ``r`` and ``s`` get one
# and the same gradient from their sum, and the hook on ``s`` changes both. There is no error.


def slope(hook):
    x = torch.tensor(1.0, requires_grad=True)
    r, s = 2 * x, 3 * x
    total = r + s
    s.register_hook(hook)
    total.backward()
    return x.grad.item()


print("new tensor:", slope(lambda gradient: gradient * 10), "= 2 + 3 * 10")
print("in place:  ", slope(lambda gradient: gradient.mul_(10)), "= 2 * 10 + 3 * 10")
assert slope(lambda gradient: gradient * 10) == 32
assert slope(lambda gradient: gradient.mul_(10)) == 50

# %%
# **Returning another shape.** A replacement has to fit.

z = torch.tensor(1.0, requires_grad=True)
z.register_hook(lambda gradient: torch.ones(2))
try:
    (2 * z).backward()
except RuntimeError as error:
    print(f"RuntimeError: {error}")
    assert "has changed the size of value" in str(error)

# %%
# **A hook where no gradient comes.** A tensor that requires none takes no hook, and only a leaf accumulates.

for register in (torch.ones(2).register_hook, C.register_post_accumulate_grad_hook):
    try:
        register(print)
    except RuntimeError as error:
        print(f"RuntimeError: {error}")
        assert "cannot" in str(error)

# %%
# Exercise
# --------
# ``x`` is used twice, in ``2 * x + 3 * x``. Of two hooks on ``x`` the first adds 1 to the gradient, and the second
# doubles it. How often does each run, and what is ``x.grad``?
#
# .. solution::
#
# Once each, on the whole sum: :math:`(5 + 1) \cdot 2 = 12`. Hooks run in the order of registration, and each gets
# what the one before returned.

x, runs = torch.tensor(1.0, requires_grad=True), []


def add_one(gradient):
    runs.append("add")
    return gradient + 1


def double(gradient):
    runs.append("double")
    return gradient * 2


x.register_hook(add_one)
x.register_hook(double)
(2 * x + 3 * x).backward()

print("runs:", runs, "  x.grad =", x.grad.item())
assert runs == ["add", "double"] and x.grad == 12

# %%
# See also
# --------
# - Before: :ref:`sphx_glr_gallery_differentiation_gradients_of_intermediates.py`, three ways to a gradient in the
#   middle.
# - Next: :ref:`sphx_glr_gallery_differentiation_build_the_engine.py`, the walk on which hooks are called.
# - In PyTorch's reference: `Backward hooks execution
#   <https://docs.pytorch.org/docs/stable/notes/autograd.html#backward-hooks-execution>`__ and `Tensor.register_hook
#   <https://docs.pytorch.org/docs/stable/generated/torch.Tensor.register_hook.html>`__.
