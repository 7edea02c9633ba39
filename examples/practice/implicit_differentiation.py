r"""
Implicit differentiation: backward through a fixed point or a solver
====================================================================

.. index::
   single: deep equilibrium model (DEQ)
   single: implicit function theorem
   single: backward through an iterative solver or a while loop
   single: gradient of an argmin, a bilevel problem or a hyperparameter
   single: backward through root finding, Newton or bisection
   single: phantom gradient, one-step gradient, Jacobian-free backpropagation
   single: autograd.grad inside a hook hangs
   single: the memory grows with the number of iterations

.. in-short::

   Do not record the solver: run it under ``no_grad``, then record one Newton step at its solution.

   .. code-block:: python

      with torch.no_grad():
          z = solver(x)  # F(z) = 0
      z = z - torch.linalg.solve(J, F(z))

   ``z`` is a vector, and ``J`` is the Jacobian of ``F`` at ``z``, detached. For a fixed point, ``F(z) = z - f(z)``. For
   an argmin without constraints, ``F`` is the gradient of the objective. If ``J`` is too large, use a hook. This is for
   first derivatives, at a converged solution, where ``J`` is not singular.
"""

# %%
# Memory grows with the iterations
# --------------------------------
# A deep equilibrium layer (DEQ) repeats :math:`z \leftarrow \tanh(W z + x)` until :math:`z` no longer changes: then :math:`z`
# is a *fixed point*. The code has a row of ``x`` for each sample:

import torch
from torch.autograd import grad, gradcheck


def f(z, W, x):
    return torch.tanh(z @ W.T + x)


def unrolled(W, x, steps):
    z = torch.zeros_like(x)
    for _ in range(steps):
        z = f(z, W, x)
    return z


# sphinx_gallery_start_ignore
_threads = torch.get_num_threads()
torch.set_num_threads(1)  # on a busy machine, two threads would wait for each other
# sphinx_gallery_end_ignore
torch.manual_seed(0)
torch.set_default_dtype(torch.float64)
W = (0.1 * torch.randn(50, 50)).requires_grad_()
x = torch.randn(32, 50, requires_grad=True)
z = unrolled(W, x, steps=40)

# %%
# .. how-measured:: A hook counts the memory that a graph keeps, without W and x.

import matplotlib.pyplot as plt


def saved_kib(call, *arguments):
    kept = {t.untyped_storage().data_ptr(): t for t in (W, x)}

    def pack(t):
        kept.setdefault(t.untyped_storage().data_ptr(), t)
        return t

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        _result = call(*arguments)
    return sum(t.untyped_storage().nbytes() for t in list(kept.values())[2:]) / 1024


def plot_saved_memory(counts):
    _, ax = plt.subplots(figsize=(7, 2.4), layout="constrained")
    sizes = [saved_kib(unrolled, W, x, n) for n in counts]
    ax.plot(counts, sizes, "o-", color="#c2410c")
    ax.set(xlabel="iterations of the solver", ylabel="KiB saved")
    ax.set_title("Each recorded iteration adds to what is saved for backward")


# %%
# Autograd records every iteration, so the graph saves more with each one:

# figure: Kibibytes saved for backward over 1 to 40 recorded iterations. The line rises evenly, to about 500.
plot_saved_memory(counts=[1, 5, 10, 20, 30, 40])

# %%
# **The gradient depends only on the solution, whatever iterations found it.** So this version records none of them. It records
# one step at the solution, and a hook corrects the gradient:


def implicit(W, x, steps):
    with torch.no_grad():
        z = unrolled(W, x, steps)  # or a faster solver

    z = f(z, W, x)  # one recorded step
    z0 = z.detach().requires_grad_()
    f0 = f(z0, W, x)  # a second graph, for the hook

    def solve(v):
        u = v
        for _ in range(steps):
            u = grad(f0, z0, u, retain_graph=True)[0] + v
        return u

    if z.requires_grad:  # not under no_grad
        z.register_hook(solve)
    return z


# sphinx_gallery_start_ignore
for _context in (torch.no_grad, torch.inference_mode):
    with _context():  # without the condition, register_hook raises
        _z = implicit(W, x, 80)
    assert not _z.requires_grad and torch.equal(_z, unrolled(W, x, 81))
assert not implicit(W.detach(), x.detach(), 1).requires_grad
assert implicit(W, x.detach(), 1).requires_grad
# sphinx_gallery_end_ignore

# %%
# The KiB that the two graphs save:

for n in (1, 10, 40):
    in_two = [saved_kib(method, W, x, n) for method in (unrolled, implicit)]
    print("{:>2} iterations: unrolled {:5.1f}, implicit {:.1f}".format(n, *in_two))

# sphinx_gallery_start_ignore
for _n in (1, 2, 7, 40):
    assert saved_kib(unrolled, W, x, _n) == 12.5 * (_n + 1)
    assert saved_kib(implicit, W, x, _n) == 37.5
assert 32 * 50 * 8 / 1024 == 12.5
assert W.dtype == torch.float64
# sphinx_gallery_end_ignore

# %%
# Each recorded iteration saves one more ``z``, of 12.5 KiB. The implicit version saves three. Both gradients agree to the
# precision of ``float64``, and train the layer in the same way:


def gradient(z):
    return grad(z.square().sum(), W)[0]


def error(g):
    return ((g - exact).norm() / exact.norm()).item()


exact = gradient(unrolled(W, x, 80))
print(f"relative difference: {error(gradient(implicit(W, x, 80))):.0e}")

target = torch.randn(32, 50).tanh()
for method in (unrolled, implicit):
    weight = W.detach().clone().requires_grad_()
    optimizer = torch.optim.SGD([weight], lr=0.2, momentum=0.9)
    losses = []
    for _ in range(20):
        loss = (method(weight, x.detach(), 80) - target).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    print(f"{method.__name__:<8} loss {losses[0]:.6f}, later {losses[-1]:.6f}")

# sphinx_gallery_start_ignore
_trained = []
for method in (unrolled, implicit):
    _weight, _losses = W.detach().clone().requires_grad_(), []
    _optimizer = torch.optim.SGD([_weight], lr=0.2, momentum=0.9)
    for _ in range(20):
        _loss = (method(_weight, x.detach(), 80) - target).square().mean()
        _optimizer.zero_grad()
        _loss.backward()
        _optimizer.step()
        _losses.append(_loss.item())
    _trained.append(_losses[-1])
    assert _losses[-1] < 0.8 * _losses[0]
assert abs(_trained[0] - _trained[1]) < 2e-7, _trained
assert error(gradient(implicit(W, x, 80))) < 1e-14
_by_x = [grad(m(W, x, 80).square().sum(), x)[0] for m in (unrolled, implicit)]
assert torch.allclose(*_by_x, rtol=1e-12, atol=1e-14)
# sphinx_gallery_end_ignore

# %%
# Why: one linear system
# ----------------------
# At the solution, :math:`z = f(z, \theta)`, where :math:`\theta` is ``W`` or ``x``. A small change of :math:`\theta` changes
# :math:`z` in two ways, directly and through :math:`z` itself: :math:`dz = f_\theta \, d\theta + f_z \, dz`, with the
# derivatives :math:`f_\theta` and :math:`f_z` of ``f``. The Jacobian of :math:`F(z) = z - f(z)` is :math:`J = I - f_z`, so
# :math:`dz = J^{-1} f_\theta \, d\theta`. This is the implicit function theorem.
#
# If ``v`` is the gradient that arrives at ``z``, backward has to solve :math:`J^T u = v`. Then it sends ``u`` through one step
# of ``f``. The hook solves this by iteration, :math:`u \leftarrow f_z^T u + v`, with a :ref:`vector-Jacobian product
# <sphx_glr_gallery_differentiation_vector_jacobian_products.py>` per round. For a known ``f``, a
# :ref:`Function <sphx_glr_gallery_functions_exp_function.py>` can solve it directly:


class Equilibrium(torch.autograd.Function):
    @staticmethod
    def forward(W, x, steps):
        return unrolled(W, x, steps)  # not recorded inside a Function

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(inputs[0], output)

    @staticmethod
    def backward(ctx, v):
        W, z = ctx.saved_tensors
        slope = 1 - z**2  # of tanh
        J = torch.eye(len(W)).to(W) - slope[:, :, None] * W
        u = torch.linalg.solve(J.mT, v)
        return (slope * u).mT @ z, slope * u, None


small_W = (0.3 * torch.randn(3, 3)).requires_grad_()
small = small_W, torch.randn(2, 3, requires_grad=True), 60
print("Function:", gradcheck(Equilibrium.apply, small))
print("hook:    ", gradcheck(implicit, small, check_undefined_grad=False))

# sphinx_gallery_start_ignore
import warnings

assert error(gradient(Equilibrium.apply(W, x, 80))) < 1e-14
for _n in (1, 40):
    assert saved_kib(lambda n=_n: Equilibrium.apply(W, x, n)) == 12.5
assert 32 * 50 * 50 * 8 / 1024 == 625
for _dtype, _rows in ((torch.float32, 5), (torch.float64, 1), (torch.float64, 0)):
    _leaves = [
        torch.randn(_n, 3).mul(0.3).to(_dtype).requires_grad_() for _n in (3, _rows)
    ]
    _pair = [
        grad(m(*_leaves, 60).square().sum(), _leaves)
        for m in (unrolled, Equilibrium.apply, implicit)
    ]
    for _by_loop, *_others in zip(*_pair, strict=True):
        for _other in _others:
            assert _other.dtype == _dtype
            assert torch.allclose(_by_loop, _other, rtol=1e-4, atol=1e-5)
_raised = []
try:
    with warnings.catch_warnings(action="ignore"):
        gradcheck(implicit, small)
except RuntimeError as _error:
    _raised.append(str(_error))
assert len(_raised) == 1 and "undefined output grads" in _raised[0]
_z = implicit(*small)
_J = torch.func.vmap(torch.func.jacrev(lambda z, x: z - f(z, small_W, x)))(_z, small[1])
_slope = 1 - _z**2
assert torch.allclose(_J, torch.eye(3) - _slope[:, :, None] * small_W)
_v = torch.randn(2, 3)
_u = torch.linalg.solve(_J.mT, _v)
_seen = []
_z.grad_fn.register_prehook(lambda grads: _seen.append(grads[0]))
_z.backward(_v, inputs=[small[1]])
assert torch.allclose(_seen[0], _u.detach(), atol=1e-12)
assert torch.allclose(small[1].grad, (_slope * _u).detach(), atol=1e-12)
small[1].grad = None


class _Closed(Equilibrium):  # W comes from outside: no gradient, and no error
    @staticmethod
    def forward(x):
        return unrolled(W, x, 80)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(W, output)

    @staticmethod
    def backward(ctx, v):
        return Equilibrium.backward(ctx, v)[1]


assert grad(_Closed.apply(x).sum(), W, allow_unused=True)[0] is None
assert not _Closed.apply(x.detach()).requires_grad
# sphinx_gallery_end_ignore

# %%
# The Function saves one ``z``. But its backward makes a matrix ``J`` for each sample, of 625 KiB together, as much as 50
# recorded iterations. Pass what needs a gradient to ``apply``: a ``W`` that ``forward`` takes from outside gets none.

# %%
# A root or an argmin: record one Newton step
# -------------------------------------------
# Where ``F(z)`` is 0, a Newton step does not change ``z``, but its backward is the solve with ``J``. So you need neither a hook
# nor a Function:


def attach(F, z):
    n = z.numel()  # z has any shape
    J = torch.func.jacrev(F)(z).detach().reshape(n, n)
    return z - torch.linalg.solve(J, F(z).flatten()).view_as(z)


# sphinx_gallery_start_ignore
for _shape in ((), (1,), (0,), (3, 2), (2, 2), (2, 1, 3)):
    _t = (1 + torch.rand(_shape)).requires_grad_()
    for _s in (_t, _t.mT if len(_shape) > 1 else _t, _t.expand(2, *_shape)):
        _z = attach(lambda z, s=_s: z**2 - s, _s.detach().sqrt())
        assert _z.shape == _s.shape
        _pair = [
            grad(z.pow(3).sum(), _t, retain_graph=True)[0] for z in (_z, _s.sqrt())
        ]
        assert torch.allclose(*_pair)


def _per_sample(x, z):
    return torch.func.vmap(lambda x, z: attach(lambda z: z - f(z, W, x), z))(x, z)


with torch.no_grad():
    solution = unrolled(W, x, 80)
assert error(gradient(_per_sample(x, solution))) < 1e-14
_few = x[:3].detach()
_pair = [
    gradient(m(_few, solution[:3]))
    for m in (_per_sample, lambda x, z: attach(lambda z: z - f(z, W, x), z))
]
assert torch.allclose(*_pair, atol=1e-12) and _pair[0].norm() > 1
for _context in (torch.no_grad, torch.inference_mode):
    with _context():
        assert attach(lambda z: z**2 - 2, torch.tensor(2.0).sqrt()) ** 2 - 2 < 1e-14
# sphinx_gallery_end_ignore

# %%
# For a batch, call ``attach`` in ``torch.func.vmap``: it makes one ``J`` per sample, not one for all.
#
# At an argmin without constraints, the gradient of the objective is 0, so it is ``F``. In this example, the strength ``lam`` of
# a penalty gets its gradient from a validation loss:

from torch.nn.functional import softplus

torch.manual_seed(0)
rows, labels = torch.randn(2, 40, 5), torch.randint(0, 2, (2, 40)) * 2.0 - 1


def objective(w, lam):
    return softplus(-labels[0] * (rows[0] @ w)).sum() + lam * w.square().sum()


def minimize(lam):
    w = torch.zeros(5)
    for _ in range(200):
        w = w - 0.05 * torch.func.grad(objective)(w, lam)
    return w


def validation(w):
    return softplus(-labels[1] * (rows[1] @ w)).mean()


lam = torch.tensor(1.0, requires_grad=True)
with torch.no_grad():
    w = minimize(lam)
w = attach(lambda w: torch.func.grad(objective)(w, lam), w)
print(f"implicit:   {grad(validation(w), lam)[0].item():.6f}")

values = [validation(minimize(1 + h)).item() for h in (-1e-4, 1e-4)]
print(f"difference: {(values[1] - values[0]) / 2e-4:.6f}")

# sphinx_gallery_start_ignore
_found = grad(
    validation(attach(lambda w: torch.func.grad(objective)(w, lam), w.detach())), lam
)[0]
assert abs(_found.item() - (values[1] - values[0]) / 2e-4) < 1e-8 and abs(_found) > 1e-4
assert torch.allclose(grad(validation(minimize(lam)), lam)[0], _found, rtol=1e-9)
# a solver that calls backward()


def _train(lam):
    w = torch.zeros(5, requires_grad=True)
    optimizer = torch.optim.SGD([w], lr=0.05)
    for _ in range(200):
        optimizer.zero_grad()
        objective(w, lam).backward()
        optimizer.step()
    return w


_raised = []
try:
    with torch.no_grad():
        _train(lam)
except RuntimeError as _error:
    _raised.append(str(_error))
assert len(_raised) == 1 and "does not require grad" in _raised[0]
_w = _train(lam.detach()).detach()
assert lam.grad is None
_w = attach(lambda w: torch.func.grad(objective)(w, lam), _w)
assert torch.allclose(grad(validation(_w), lam)[0], _found, rtol=1e-9)
_train(lam)
assert lam.grad.abs() > 1  # so lam is detached as well
lam.grad = None
# at a bound, or at the kink of a 1-norm, this gradient is wrong
_t = torch.tensor([-1.0, 2.0], requires_grad=True)
_w = attach(lambda w: 2 * (w - _t), _t.detach().clamp(min=0))
assert grad(_w.sum(), _t)[0].tolist() == [1, 1]
assert grad(_t.clamp(min=0).sum(), _t)[0].tolist() == [0, 1]
_t = torch.tensor([0.3, 2.0], requires_grad=True)
_w = attach(lambda w: w - _t + 0.5 * w.sign(), torch.tensor([0.0, 1.5]))
assert grad(_w.sum(), _t)[0].tolist() == [1, 1]  # it is [0, 1]
# a penalty makes a singular J regular
_A, _b = torch.randn(2, 5), torch.randn(2, requires_grad=True)
for _lam in (0.0, 0.1):
    _J = _A.T @ _A + _lam * torch.eye(5)
    assert torch.linalg.matrix_rank(_J) == (5 if _lam else 2)
# a fixed point in this form, a complex linear system, and the second derivative
_one = unrolled(small_W, small[1][:1], 200)[0].detach()
_by_step = attach(lambda z: z - f(z[None], small_W, small[1][:1])[0], _one)
_by_loop = unrolled(small_W, small[1][:1], 200)[0]
for _leaf in small[:2]:
    _pair = [
        grad(z.square().sum(), _leaf, retain_graph=True)[0]
        for z in (_by_step, _by_loop)
    ]
    assert torch.allclose(*_pair, atol=1e-12)
_early = unrolled(small_W, small[1][:1], 1)[0].detach()  # it has not converged
_by_step = attach(lambda z: z - f(z[None], small_W, small[1][:1])[0], _early)
_pair = [grad(z.sum(), small_W)[0] for z in (_by_step, _by_loop)]
assert (_pair[0] - _pair[1]).norm() > 0.01 * _pair[1].norm()
for _dtype in (torch.float64, torch.complex128):
    _A = (torch.randn(4, 4, dtype=_dtype) + 4 * torch.eye(4)).requires_grad_()
    _b, _v = (
        torch.randn(4, dtype=_dtype, requires_grad=True),
        torch.randn(4, dtype=_dtype),
    )
    _x = torch.linalg.solve(_A, _b)
    _dA, _db = grad(_x, (_A, _b), _v)
    _u = torch.linalg.solve(_A.mH, _v)
    assert torch.allclose(_db, _u) and torch.allclose(_dA, -torch.outer(_u, _x.conj()))
assert torch.autograd.gradgradcheck(torch.linalg.solve, (_A, _b))
# sphinx_gallery_end_ignore

# %%
# With a bound on ``w`` or a 1-norm in the objective, this gradient can be wrong. A solver that calls ``backward()`` raises an
# error under ``no_grad``. Instead, pass it ``lam.detach()``, and detach its result.

# %%
# What to do when
# ---------------
#
# .. list-table::
#    :header-rows: 1
#    :widths: 45 55
#
#    * - you have
#      - do
#    * - few iterations
#      - record them, perhaps with :ref:`checkpointing <sphx_glr_gallery_memory_checkpointing.py>`
#    * - a root, an argmin or a fixed point, and ``J`` fits in memory
#      - ``attach``: one recorded Newton step
#    * - a contraction, and ``J`` is too large
#      - the hook, with an iteration in backward
#    * - second derivatives
#      - record the loop, or a Function that passes ``gradgradcheck``
#    * - a linear system
#      - ``torch.linalg.solve``: its backward is a solve with the conjugate transpose
#    * - a large residual ``z - f(z)``, or a singular ``J``
#      - a better solver, a smaller norm of ``W`` or a penalty in the objective: there is no gradient to trust

# %%
# What people get wrong
# ---------------------
# **No recorded step.** The result of ``no_grad`` has no graph. With a layer behind it there is no error, but ``W`` learns
# nothing:

with torch.no_grad():
    solution = unrolled(W, x, 80)
head = torch.nn.Linear(50, 1)
head(solution).sum().backward()
print("head:", head.weight.grad is not None, " W:", W.grad)

# sphinx_gallery_start_ignore
assert head.weight.grad is not None and W.grad is None and x.grad is None
# sphinx_gallery_end_ignore

# %%
# **Recorded steps without the linear system.** If you only call ``f`` once more, the gradient is that of one step. It is known
# as the one-step or Jacobian-free gradient, and with a few steps as a phantom gradient. Its error:

import pandas as pd


def last_steps(count):
    z = solution
    for _ in range(count):
        z = f(z, W, x)
    return z


counts = [1, 2, 5, 10, 20]
table = {
    "error": [f"{error(gradient(last_steps(n))):.2g}" for n in counts],
    "KiB saved": [saved_kib(lambda n=n: last_steps(n)) for n in counts],
}
# sphinx_gallery_start_ignore
_errors = [error(gradient(last_steps(n))) for n in counts]
assert _errors == sorted(_errors, reverse=True)
assert 0.4 < _errors[0] < 0.5 and _errors[-1] < 1e-6
_cosine = (gradient(last_steps(1)) * exact).sum() / exact.norm()
_cosine = (_cosine / gradient(last_steps(1)).norm()).item()
assert 0.85 < _cosine < 0.92
assert table["KiB saved"] == [12.5 * (n + 1) for n in counts]
# sphinx_gallery_end_ignore
pd.DataFrame(table, index=pd.Index(counts, name="recorded steps"))

# %%
# One step is wrong by almost half. Its direction is roughly right (the cosine is about 0.9), so some train with it on purpose
# (`deepinv#419 <https://github.com/deepinv/deepinv/pull/419>`__).

# %%
# **z0 is not detached.** This hook does one round, with ``z0`` made in three ways:

import gc
import weakref


def step(make_z0, limit=50):
    z = f(solution, W, x)
    z0 = make_z0(z)
    f0 = f(z0, W, x)
    calls = []

    def solve(v):
        calls.append(v)
        if len(calls) == limit:  # or it would go on
            return v
        return grad(f0, z0, v, retain_graph=True)[0] + v

    z.register_hook(solve)
    z.sum().backward()
    return len(calls), weakref.ref(f0)


versions = {
    "z.detach().requires_grad_()": lambda z: z.detach().requires_grad_(),
    "z.clone()": torch.clone,
    "z": lambda z: z,
}
# sphinx_gallery_start_ignore
gc.collect()
gc.freeze()  # gc.collect() is quick now
# sphinx_gallery_end_ignore
for name, make_z0 in versions.items():
    calls, f0 = step(make_z0)
    gc.collect()
    print(f"{name:<28} calls: {calls:<3} leaked: {f0() is not None}")

# sphinx_gallery_start_ignore
_seen, _grads = [], []
for _make in versions.values():
    W.grad = None
    _calls, _refs = zip(*(step(_make) for _ in range(3)), strict=True)
    gc.collect()
    _seen.append((set(_calls), sum(_ref() is not None for _ref in _refs)))
    _grads.append(W.grad)
assert _seen == [({1}, 0), ({1}, 3), ({50}, 3)]
assert torch.equal(*_grads[:2]) and not torch.allclose(*_grads[1:])
assert step(lambda z: z, 300)[0] == 300  # it goes on
gc.unfreeze()
W.grad = x.grad = None
# sphinx_gallery_end_ignore

# %%
# With ``z.clone()`` the gradient is right, but each step leaks its graph: the hook keeps ``f0``, whose graph leads to ``z``,
# and the node of ``z`` keeps the hook (:ref:`why it stays <sphx_glr_gallery_graphs_graph_lifetime.py>`). With ``z`` itself,
# ``autograd.grad`` calls the hook again, inside the hook. Without the limit of 50, it hangs (`deq#24
# <https://github.com/locuslab/deq/issues/24>`__).

# %%
# **A recorded loop that stops early.** If you start from the last solution, one iteration may be enough for ``z``, while its
# gradient needs more:


def settle(W, x, tol, z):
    steps, change = 0, float("inf")
    while change > tol:
        last, z = z, f(z, W, x)
        steps, change = steps + 1, (z - last).abs().max()
    return z, steps


for name, start in {"zeros": torch.zeros_like(x), "solution": solution}.items():
    z, steps = settle(W, x, 1e-8, start)
    error_of_W = error(gradient(z))
    print(f"from {name:<9} {steps:>2} iterations, error {error_of_W:.0e}")

# sphinx_gallery_start_ignore
_cold, _n = settle(W, x, 1e-8, torch.zeros_like(x))
_nodes, _count = [_cold.grad_fn], 0
while _nodes:
    _node = _nodes.pop()
    _count += _node.name() == "TanhBackward0"
    _nodes += [parent for parent, _ in _node.next_functions if parent]
assert _count == _n > 20 and error(gradient(_cold)) < 1e-7
assert steps == 1 and abs(error_of_W - _errors[0]) < 1e-6
assert torch.allclose(z, _cold, atol=1e-7)
# sphinx_gallery_end_ignore

# %%
# The second is the one-step gradient.

# %%
# **The solver has not converged.** Then the implicit gradient is wrong, too, without a message.
#
# .. how-measured:: Both gradients at the result of settle(), for tolerances from 0.1 to 1e-10.


class AtSolution(Equilibrium):
    @staticmethod
    def forward(W, x, z):
        return z.clone()


tolerances = [10.0**-n for n in range(1, 11)]
rows = {"unrolled": [], "implicit": [], "one step": []}
for tol in tolerances:
    z, _ = settle(W, x, tol, torch.zeros_like(x))
    rows["unrolled"].append(error(gradient(z)))
    rows["implicit"].append(error(gradient(AtSolution.apply(W, x, z.detach()))))
    rows["one step"].append(error(gradient(f(z.detach(), W, x))))


def plot_errors_of_the_gradient():
    _, ax = plt.subplots(figsize=(7, 2.8), layout="constrained")
    for (name, errors), color in zip(
        rows.items(), ("#c2410c", "#2563eb", "#64748b"), strict=True
    ):
        ax.loglog(tolerances, errors, "o-", color=color, label=name)
    ax.set(xlabel="tolerance of the solver", ylabel="relative error")
    ax.set_title("Error of the gradient of W, by tolerance")
    ax.invert_xaxis()
    ax.legend(loc="lower left")


# %%
# Three gradients at the same result of the solver:

# figure: Relative error of the gradient over the tolerance of the solver, both logarithmic. The implicit and the unrolled
#   error fall in proportion to the tolerance, and the implicit one is lower throughout. The error of one step stays near
#   one half.
plot_errors_of_the_gradient()

# sphinx_gallery_start_ignore
for _tol, _rolled, _at, _one in zip(tolerances, *rows.values(), strict=True):
    assert _at < _rolled and _at < _tol
    assert 0.4 < _one < 0.5
    assert _rolled < 10 * _tol
assert rows["implicit"][-1] < 1e-10 and rows["implicit"][0] > 1e-2
_errors = []
for _rounds in (1, 3, 10, 30):  # at the solution, with few rounds in the hook
    _z, _z0 = f(solution, W, x), solution.clone().requires_grad_()
    _u = _v = 2 * _z.detach()
    for _ in range(_rounds):
        _u = grad(f(_z0, W, x), _z0, _u)[0] + _v
    _errors.append(error(grad(_z, W, _u)[0]))
assert _errors == sorted(_errors, reverse=True)
assert _errors[0] > 0.1 and _errors[-1] < 1e-8
# sphinx_gallery_end_ignore

# %%
# The implicit error is below the tolerance and the unrolled error. The iteration in the hook has to converge, too. With dropout
# in ``f`` neither does, because each call draws a new mask: draw one before the solver.

# sphinx_gallery_start_ignore
_drop = torch.nn.Dropout(0.1)
_mask = _drop(torch.ones_like(x))
_ends = []
for _make in (lambda z: _drop(z), lambda z: _mask * z):
    _z = torch.zeros_like(x)
    with torch.no_grad():
        for _ in range(200):
            _last, _z = _z, f(_make(_z), 0.9 * W, x)
    _ends.append((_z - _last).abs().max())
assert _ends[0] > 0.01 and _ends[1] < 1e-6, _ends
# sphinx_gallery_end_ignore

# %%
# **No contraction.** With ``W = -3`` this iteration jumps between two values, but the formula still returns a number:

w = torch.tensor([[-3.0]], requires_grad=True)
c = torch.tensor([[0.5]], requires_grad=True)
z = Equilibrium.apply(w, c, 1000)
residual = (f(z, w, c) - z).abs().item()
print(f"iteration: residual {residual:.2f}, dz/dx {grad(z, c)[0].item():.3f}")

with torch.no_grad():
    z = torch.zeros(1, 1)
    for _ in range(20):
        z = z - (z - f(z, w, c)) / (1 - (1 - f(z, w, c) ** 2) * w)
z = AtSolution.apply(w, c, z)
residual = (f(z, w, c) - z).abs().item()
print(f"Newton:    residual {residual:.2f}, dz/dx {grad(z, c)[0].item():.3f}")

# sphinx_gallery_start_ignore
_wrong = Equilibrium.apply(w, c, 1000)
assert torch.allclose(_wrong, unrolled(w, c, 1002), rtol=1e-12)
assert abs(f(_wrong, w, c) - _wrong).item() > 1.9
assert abs(f(z, w, c) - z).item() < 1e-12


def _root(c, low=-1.0, high=1.0):
    for _ in range(100):
        middle = (low + high) / 2
        below = middle < torch.tanh(torch.tensor(-3 * middle + c)).item()
        low, high = (middle, high) if below else (low, middle)
    return low


_slope = (_root(0.5 + 1e-5) - _root(0.5 - 1e-5)) / 2e-5
assert abs(_slope - grad(AtSolution.apply(w, c, z.detach()), c)[0].item()) < 1e-6
assert abs(_slope - 0.249) < 0.0005
assert abs(grad(_wrong, c)[0].item() - 0.025) < 0.0005
_z0 = z.detach().requires_grad_()
_f0, _u = f(_z0, w, c), torch.ones(1, 1)
for _ in range(100):
    _u = grad(_f0, _z0, _u, retain_graph=True)[0] + 1
assert _u.abs() > 1e40
for _norm in (0.5, 0.9, 0.99):  # a contraction: it settles, and I - J is not singular
    for _seed in range(4):
        torch.manual_seed(_seed)
        _W = torch.randn(6, 6)
        _W = _W + _W.T if _seed == 3 else _W
        _W = _W * _norm / torch.linalg.matrix_norm(_W, 2)
        _x = torch.randn(4, 6) * 10.0 ** (_seed - 2)
        _zs = [unrolled(_W, _x, 300 + i) for i in range(2)]
        assert torch.allclose(*_zs, atol=1e-12)
        _fz = (1 - _zs[0] ** 2)[:, :, None] * _W
        _least = torch.linalg.svdvals(torch.eye(6) - _fz).min()
        assert _least > 1 - _norm - 1e-9
        assert torch.linalg.matrix_norm(_fz, 2).max() <= _norm + 1e-9  # the hook's
assert torch.linalg.matrix_norm(W, 2) > 1  # sufficient, not necessary
# sphinx_gallery_end_ignore

# %%
# The first gradient is ten times too small, so check the residual. Newton's method finds the fixed point, and there the
# direct solve is right, but the iteration in the hook still diverges. If the 2-norm of ``W`` (its largest singular value) is
# below 1, this ``f`` is a *contraction*: both iterations converge, and ``J`` is not singular. At a singular ``J`` (``W = 1``,
# ``x = 0``), the direct solve raises an error, and the hook returns a number that depends on its rounds.

# sphinx_gallery_start_ignore
w, c = torch.ones(1, 1, requires_grad=True), torch.zeros(1, 1, requires_grad=True)
messages = []
try:
    grad(Equilibrium.apply(w, c, 100), c)
except RuntimeError as error_of_solve:
    messages.append(str(error_of_solve))
assert len(messages) == 1 and "singular" in messages[0]
assert grad(implicit(w, c, 10), c)[0] == 11 and grad(implicit(w, c, 300), c)[0] == 301
for _x, _steep in ((1e-3, 1e2), (1e-6, 1e4), (1e-9, 1e6)):
    _z = (3 * _x) ** (1 / 3)
    for _ in range(50):
        _t = torch.tanh(torch.tensor(_z + _x)).item()
        _z = _z - (_z - _t) / _t**2
    assert abs(_z - torch.tanh(torch.tensor(_z + _x)).item()) < 1e-15
    assert _z / _x > _steep  # from z = 0 at x = 0
# sphinx_gallery_end_ignore

# %%
# **Second derivatives.** The Function's backward consists of differentiable operations, so it can be differentiated again. The
# hook detached ``z0``, and its second derivative is wrong:

a, b = torch.tensor([[0.5]]).requires_grad_(), torch.tensor([[0.4]]).requires_grad_()
second = {}
for method in (unrolled, Equilibrium.apply, implicit):
    first = grad(method(a, b, 100), b, create_graph=True)[0]
    second[method] = grad(first, b)[0].item()
print("unrolled {:.4f}, Function {:.4f}, hook {:.4f}".format(*second.values()))

# sphinx_gallery_start_ignore
_right, _function, _hook = second.values()
assert abs(_right - _function) < 1e-9 and abs(_right - _hook) > 0.5
_twice = attach(lambda z: z - f(z[None], a, b)[0], unrolled(a, b, 100)[0].detach())
_first = grad(_twice, b, create_graph=True)[0]
assert abs(grad(_first, b)[0].item() - _right) > 0.5
assert torch.autograd.gradgradcheck(Equilibrium.apply, small)
# sphinx_gallery_end_ignore

# %%
# If your backward calls ``autograd.grad`` at a detached ``z`` as well, :ref:`forbid the second derivative
# <sphx_glr_gallery_functions_double_backward.py>`.

# %%
# Exercise
# --------
# Kepler's equation is :math:`E - e \sin E = M`. This bisection solves it for ``E``. Does autograd connect ``E`` to ``M``? Give
# ``E`` its gradient, and compute :math:`dE/dM`.
#
# .. code-block:: python
#
#    def bisect(M, e):
#        low, high = torch.tensor(0.0), torch.tensor(4.0)
#        for _ in range(60):
#            E = (low + high) / 2
#            if E - e * E.sin() < M:
#                low = E
#            else:
#                high = E
#        return E
#
# .. solution::
#
# ``E`` is made of 0 and 4, while ``M`` and ``e`` only choose the branches, so nothing connects them. One recorded Newton step
# gives :math:`dE/dM = 1 / (1 - e \cos E)`.


def bisect(M, e):
    low, high = torch.tensor(0.0), torch.tensor(4.0)
    for _ in range(60):
        E = (low + high) / 2
        if E - e * E.sin() < M:
            low = E
        else:
            high = E
    return E


e = torch.tensor(0.5, requires_grad=True)
M = (torch.pi / 3 - e * 0.75**0.5).detach().requires_grad_()  # so E = pi / 3
E = bisect(M, e)
print("connected:", E.requires_grad)

E = E - (E - e * E.sin() - M) / (1 - e * E.cos()).detach()
dE_dM, dE_de = grad(E, (M, e))
print(f"dE/dM = {dE_dM:.4f}, dE/de = {dE_de:.4f}")

# predict: round(dE_dM.item(), 2) -- With e = 0.5 and E = pi / 3, what is dE/dM?

# sphinx_gallery_start_ignore
assert not bisect(M, e).requires_grad
assert torch.allclose(dE_dM, torch.tensor(4 / 3)) and abs(E - torch.pi / 3) < 1e-12
_slope = (bisect(M, e + 1e-6) - bisect(M, e - 1e-6)) / 2e-6
assert torch.allclose(dE_de, _slope, atol=1e-6)
_slope = (bisect(M + 1e-6, e) - bisect(M - 1e-6, e)) / 2e-6
assert torch.allclose(dE_dM, _slope, atol=1e-6)
torch.set_default_dtype(torch.float32)
torch.set_num_threads(_threads)
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_differentiation_hooks.py`: when a hook runs, and what it may return.
# - In PyTorch's reference: `torch.linalg.solve
#   <https://docs.pytorch.org/docs/stable/generated/torch.linalg.solve.html>`__, `torch.func.jacrev
#   <https://docs.pytorch.org/docs/stable/generated/torch.func.jacrev.html>`__ and `register_hook
#   <https://docs.pytorch.org/docs/stable/generated/torch.Tensor.register_hook.html>`__.
