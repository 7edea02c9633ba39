r"""
Complex gradients in PyTorch: what z.grad means
===============================================

.. in-short::

   For a real loss :math:`L` and :math:`z = a + bi`, ``z.grad`` is :math:`\partial L / \partial a + i \, \partial L / \partial
   b`. It points uphill in the complex plane. So with a small ``lr``, ``z -= lr * z.grad`` goes downhill without a ``conj()``.
   (JAX returns the conjugate of it.) ``backward()`` refuses a complex loss: take ``.real`` or ``.abs() ** 2``.
"""

# %%
# The problem: do you need a conjugate?
# -------------------------------------
# You train a complex parameter, such as a filter in the frequency domain. Formulas with complex derivatives are full of
# conjugates: :math:`a - bi` for :math:`a + bi`. Does the step need one? Eight steps on :math:`|z|^2`, without and with one:

import warnings

import torch


def descend(direction, steps=8):
    z = torch.tensor(1 + 2j, requires_grad=True)
    path = [z.item()]
    for _ in range(steps):
        (gradient,) = torch.autograd.grad(z.abs() ** 2, z)
        with torch.no_grad():
            z -= 0.1 * direction(gradient)
        path.append(z.item())
    return torch.tensor(path)


good = descend(lambda gradient: gradient)
bad = descend(lambda gradient: gradient.conj())
print(f"|z| at the end: {good[-1].abs():.2f}, with the conjugate {bad[-1].abs():.2f}")

# %%
# .. how-measured:: This code draws both paths.

import matplotlib.pyplot as plt


def plot_paths(good, bad):
    _, ax = plt.subplots(figsize=(7, 2.9), layout="constrained")
    for radius in range(1, 13):
        circle = plt.Circle((0, 0), radius, fill=False, color="#cbd5e1", linewidth=0.8)
        ax.add_patch(circle)
    ax.plot(good.real, good.imag, "o-", color="#2563eb", label="z - lr * z.grad")
    ax.plot(bad.real, bad.imag, "s--", color="#c2410c", label="z - lr * z.grad.conj()")
    ax.plot(0, 0, "+", color="#1e293b", markersize=12)
    ax.set(xlim=(-8, 11), ylim=(-0.6, 9.2), aspect="equal")
    ax.set(xlabel="real", ylabel="imaginary")
    ax.set_title("Descent on |z|² with the gradient, and with its conjugate")
    ax.legend(loc="right", frameon=True, framealpha=1, edgecolor="white")


# %%
# The path of ``z`` in the complex plane, with circles of equal :math:`|z|^2`:

# figure: The complex plane with circles around zero. From 1 + 2i, the path along the gradient runs in a straight line
#   towards zero. The path along the conjugate climbs away from zero, across larger and larger circles.
plot_paths(good, bad)

# sphinx_gallery_start_ignore
assert torch.allclose(good, (1 + 2j) * 0.8 ** torch.arange(9))
assert torch.allclose(bad.real, 0.8 ** torch.arange(9))
assert torch.allclose(bad.imag, 2 * 1.2 ** torch.arange(9))
assert (good.abs().diff() < 0).all() and bad.abs()[-1] > 8
assert (bad.abs().diff() > 0).all()


def _optimized(optimizer_class, start):
    start = start.clone().requires_grad_()
    optimizer = optimizer_class([start], lr=0.1)
    for _ in range(4):
        optimizer.zero_grad()
        pairs = torch.view_as_real(start) if start.is_complex() else start
        pairs.square().sum().backward()
        optimizer.step()
    return start.detach()


_pairs = torch.tensor([[1.0, 2.0]])
_names = "SGD", "Adam", "AdamW", "Adamax", "Adagrad", "Adadelta", "ASGD", "NAdam"
for _name in (*_names, "RAdam", "RMSprop", "Rprop"):
    _class = getattr(torch.optim, _name)
    _complex = _optimized(_class, torch.view_as_complex(_pairs))
    assert torch.allclose(torch.view_as_real(_complex), _optimized(_class, _pairs))
_refused = 0
for _class, _options in (
    (torch.optim.Adafactor, {}),
    (torch.optim.SparseAdam, {}),
    (torch.optim.Muon, {}),
    (torch.optim.SGD, {"fused": True}),
    (torch.optim.Adam, {"fused": True}),
    (torch.optim.AdamW, {"fused": True}),
    (torch.optim.Adagrad, {"fused": True}),
):
    try:
        _leaf = torch.tensor([[1 + 2j]], requires_grad=True)
        _optimizer = _class([_leaf], **_options)
        _leaf.abs().sum().backward()
        _optimizer.step()
    except (RuntimeError, ValueError) as error:
        _refused += "complex param" in str(error).lower() or "`fused=" in str(error)
assert _refused == 7
# sphinx_gallery_end_ignore

# %%
# Without a conjugate, each step multiplies ``z`` by 0.8: straight towards zero. With ``z.grad.conj()`` the imaginary part
# grows. ``torch.optim.SGD`` takes the straight way:

z = torch.tensor(1 + 2j, requires_grad=True)
optimizer = torch.optim.SGD([z], lr=0.1)
for _ in range(8):
    optimizer.zero_grad()
    loss = z.abs() ** 2
    loss.backward()
    optimizer.step()
print(f"after 8 steps: z = {z.item():.4f}")

# sphinx_gallery_start_ignore
assert torch.allclose(z.detach(), good[-1])
# sphinx_gallery_end_ignore

# %%
# (``Adafactor``, ``Muon``, ``SparseAdam``, and ``fused=True`` do not accept complex parameters.)

# %%
# Why: two real numbers in one
# ----------------------------
# A real loss of :math:`z = a + bi` is a function of two real numbers. So the real part of ``z.grad`` says how the loss changes
# with :math:`a`, and the imaginary part how it changes with :math:`b`. The table compares ``z.grad`` with the gradients of two
# real tensors. They agree.
#
# .. how-measured:: This code computes each loss twice: from a complex leaf, and by a formula from two real leaves.

import pandas as pd

losses = {
    "z.abs() ** 2": (lambda z: z.abs() ** 2, lambda a, b: a**2 + b**2),
    "z.abs()": (lambda z: z.abs(), torch.hypot),
    "z.real": (lambda z: z.real, lambda a, b: a + 0 * b),
    "z.imag": (lambda z: z.imag, lambda a, b: 0 * a + b),
    "z.angle()": (lambda z: z.angle(), lambda a, b: torch.atan2(b, a)),
    "(z**2).real": (lambda z: (z**2).real, lambda a, b: a**2 - b**2),
}


def tabulate_gradients(losses):
    rows = {}
    for name, (of_z, of_parts) in losses.items():
        z = torch.tensor(1 + 2j, requires_grad=True)
        of_z(z).backward()
        a, b = (torch.tensor(part, requires_grad=True) for part in (1.0, 2.0))
        of_parts(a, b).backward()
        assert torch.isclose(of_z(z), of_parts(a, b)) and z.grad != 0
        assert torch.isclose(z.grad, torch.complex(a.grad, b.grad))
        numbers = {"z.grad": z.grad, "dL/da": a.grad, "dL/db": b.grad}
        rows[name] = {column: f"{t.item():.3f}" for column, t in numbers.items()}
    return pd.DataFrame(rows).T.rename_axis(index=None, columns="loss at 1+2i")


# %%
# At :math:`z = 1 + 2i`:

# sphinx_gallery_start_ignore
_found = tabulate_gradients(losses)["z.grad"]
assert _found["z.real"] == "1.000+0.000j" and _found["z.imag"] == "0.000+1.000j"
assert _found["(z**2).real"] == "2.000-4.000j"
# sphinx_gallery_end_ignore
tabulate_gradients(losses)

# %%
# Where the conjugate comes from
# ------------------------------
# Textbooks use two *Wirtinger derivatives* of a function :math:`f` of :math:`z = a + bi`. They treat :math:`z` and its
# conjugate :math:`\bar z` as two variables:
#
# .. math::
#
#    \frac{\partial f}{\partial z} = \frac12\Big(\frac{\partial f}{\partial a} - i\frac{\partial f}{\partial b}\Big)
#
# .. math::
#
#    \frac{\partial f}{\partial \bar z}
#    = \frac12\Big(\frac{\partial f}{\partial a} + i\frac{\partial f}{\partial b}\Big)
#
# Compare the second with ``z.grad``: for a real loss, ``z.grad`` is twice :math:`\partial L / \partial \bar z`. For
# :math:`L = z \bar z` the derivative with respect to :math:`\bar z` is :math:`z`. At :math:`1 + 2i`, twice that is
# :math:`2 + 4i`.
#
# Backward gets the gradient :math:`v` of a function's result, and computes that of its input. Write :math:`p` for the
# derivative with respect to :math:`z`, :math:`q` for the one with respect to :math:`\bar z`, and a star for the conjugate. The
# gradient is :math:`v^{*} q + v \, p^{*}`. Three functions, with the two derivatives of each by hand:

v = torch.tensor(0.5 - 1j)
for name, function, by_z, by_conj in [
    ("z**2", lambda z: z**2, lambda z: 2 * z, lambda z: 0 * z),
    ("z.conj()", lambda z: z.conj() * 1, lambda z: 0 * z, lambda z: 0 * z + 1),
    ("z * z.conj()", lambda z: z * z.conj(), lambda z: z.conj(), lambda z: z),
]:
    z = torch.tensor(1 + 2j, requires_grad=True)
    (gradient,) = torch.autograd.grad(function(z), z, v)
    with torch.no_grad():
        by_hand = v.conj() * by_conj(z) + v * by_z(z).conj()
    print(f"{name:<13} autograd {gradient.item()!s:<9}  by hand {by_hand.item()}")
    assert torch.allclose(gradient, by_hand)

# %%
# For a function that is differentiable in the complex sense, such as :math:`z^2`, the derivative with respect to
# :math:`\bar z` is zero. What is left is :math:`v` times the conjugate of the textbook derivative. A graph with a real loss and
# complex results on the way:

z = torch.tensor(1 + 2j, requires_grad=True)
square = z**2
distance = square - (3 + 3j)
loss = distance.abs()
for tensor in (square, distance):
    tensor.retain_grad()
loss.backward()

# graph: loss -- A real loss at the root: complex values and complex gradients on the way to the leaf z

print(f"square.grad: {square.grad.item():.4f}")
print(f"z.grad:      {z.grad.item():.4f}")
assert torch.allclose(z.grad, square.grad * (2 * z.detach()).conj())

# %%
# What people get wrong
# ---------------------
# **Calling backward on a complex result.** It happens by accident: ``z * z.conj()`` is a real number in mathematics, but has a
# complex dtype.

z = torch.tensor(1 + 2j, requires_grad=True)
try:
    (z * z.conj()).backward()
except RuntimeError as error:
    message = str(error)
    print(f"RuntimeError: {message}")

(z * z.conj()).real.backward()
print("with .real:", z.grad.item())

# sphinx_gallery_start_ignore
assert z.grad == 2 + 4j
assert "only for real scalar outputs but got torch.complex64" in message
_product = z * z.conj()
assert _product.imag == 0 and _product.is_complex()
_given = []
for _gradient in (torch.tensor(1.0), torch.tensor(1 + 0j)):
    try:
        torch.autograd.grad(_product, z, _gradient, retain_graph=True)
        _given.append("accepted")
    except RuntimeError as error:
        _given.append("have the same dtype" in str(error))
assert _given == [True, "accepted"]
# sphinx_gallery_end_ignore

# %%
# **Squaring without the modulus.** The real part of a squared complex difference can be negative, so minimizing it can lead
# away from the target. Square the modulus instead:

target = torch.tensor(0.5 + 0j)
z = torch.tensor(1 + 2j)
print("((z - target) ** 2).real:", ((z - target) ** 2).real.item())
print("(z - target).abs() ** 2: ", (z - target).abs().square().item())
assert ((z - target) ** 2).real < 0

# sphinx_gallery_start_ignore
moved = z.clone().requires_grad_()
((moved - target) ** 2).real.backward()
assert (moved - 0.1 * moved.grad - target).abs() > (z - target).abs()
# sphinx_gallery_end_ignore

# %%
# **Casting to a real number.** ``z.to(torch.float32)`` drops the imaginary part, with a warning, so that part is not trained.
# Write ``z.real`` if you want the real part, and ``z.abs()`` if you want the modulus.

z = torch.tensor(1 + 2j, requires_grad=True)
torch.set_warn_always(True)  # the default is once in a process
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    z.to(torch.float32).backward()
torch.set_warn_always(False)

message = str(caught[0].message).split(" (Triggered")[0]
print(f"{caught[0].category.__name__}: {message}")
print("z.grad:", z.grad.item())
assert message == "Casting complex values to real discards the imaginary part"
assert z.grad == 1

# sphinx_gallery_start_ignore
assert len(caught) == 1
for _cast in (
    torch.Tensor.double,
    torch.Tensor.half,
    torch.zeros(()).copy_,
    lambda z: torch.zeros(2).index_fill(0, torch.tensor([0]), z.float()),
):
    _leaf = torch.tensor(1 + 2j, requires_grad=True)
    torch.set_warn_always(True)
    with warnings.catch_warnings(record=True) as _caught:
        warnings.simplefilter("always")
        _cast(_leaf).sum().backward()
    torch.set_warn_always(False)
    assert _leaf.grad == 1
    assert any("discards the imaginary part" in str(w.message) for w in _caught)
# sphinx_gallery_end_ignore

# %%
# Exercise
# --------
# Find a square root of :math:`3 + 4i` by gradient descent on :math:`|z^2 - (3 + 4i)|^2`, from :math:`z = 1`. Write down
# ``z.grad`` by the chain rule first.
#
# .. solution::
#
# With :math:`d = z^2 - (3 + 4i)`, the gradient of :math:`|d|^2` at :math:`d` is :math:`2d`, and the square multiplies by the
# conjugate of :math:`2z`: together :math:`4 d \bar z`.

goal = 3 + 4j
z = torch.tensor(1 + 0j, requires_grad=True)
for step in range(1, 61):
    d = z**2 - goal
    (gradient,) = torch.autograd.grad(d.abs() ** 2, z)
    with torch.no_grad():
        assert torch.allclose(gradient, 4 * d * z.conj(), atol=1e-4)
        z -= 0.02 * gradient
    if step in (1, 5, 20, 60):
        print(f"step {step:>2}: z = {z.item():.4f}, z^2 = {(z**2).item():.4f}")
assert abs(z.item() - (2 + 1j)) < 1e-3

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_differentiation_vector_jacobian_products.py`: the upstream gradient ``v``.
# - In PyTorch's reference: `Autograd for complex numbers
#   <https://docs.pytorch.org/docs/stable/notes/autograd.html#autograd-for-complex-numbers>`__ and `Complex numbers
#   <https://docs.pytorch.org/docs/stable/complex_numbers.html>`__.
