r"""
Hooks: see and change gradients
===============================

.. in-short::

   ``handle = tensor.register_hook(f)``: a backward pass calls ``f(gradient)`` with the gradient of that tensor. Backward goes
   on with the tensor that ``f`` returns, or with ``gradient`` if ``f`` returns ``None``. ``handle.remove()`` ends it. A
   parameter keeps its hooks from step to step, so register them once, before the training loop. If a hook has to read the
   accumulated ``.grad``, use ``register_post_accumulate_grad_hook``.
"""

# %%
# Which layers still get a gradient?
# ----------------------------------
# Your network of ten layers learns nothing. Does the gradient fade on its way to the first one? A *hook* is a function that
# backward calls with the gradient of a tensor, as it passes:

import gc
import weakref

import matplotlib.pyplot as plt
import torch
from torch import nn
from torch.nn.functional import cross_entropy

torch.manual_seed(0)
x, norms = torch.randn(64, 32), []
for _ in range(10):
    x = torch.sigmoid(nn.Linear(32, 32)(x))
    x.register_hook(lambda gradient: norms.append(gradient.norm().item()))
x.square().mean().backward()  # runs the hooks from the last layer to the first

# figure: The norm of the gradient at each of ten layers, on a logarithmic axis. It falls from the last layer to the first,
#   by more than six orders of magnitude.
_, ax = plt.subplots(figsize=(7, 1.8))
ax.semilogy(range(10, 0, -1), norms, "o-")
ax.set_title("Norm of the gradient, layer 1 to layer 10")

# sphinx_gallery_start_ignore
assert len(norms) == 10 and norms == sorted(norms, reverse=True)
assert norms[0] / norms[-1] > 1e6
_calls, _base = [], torch.ones(2, requires_grad=True)
_idle = _base * 2
_idle.register_hook(_calls.append)
(_base * 3).sum().backward()
assert not _calls  # no gradient reaches _idle: its hook does not run
(_idle.sum() + (_idle * 4).sum()).backward()
assert len(_calls) == 1 and torch.equal(
    _calls[0], torch.full((2,), 5.0)
)  # once, and complete
_early, _order = _base.exp(), []
_late = _base.sin()
_early.register_hook(lambda gradient: _order.append("hook"))
_late.grad_fn.register_hook(lambda *_: _order.append("a newer node"))
(_early * _late).sum().backward()
assert _order == ["a newer node", "hook"]  # complete, but not called at once
# sphinx_gallery_end_ignore

# %%
# The norm at the first layer is less than a millionth of the norm at the last.
#
# **The rule: a backward pass calls the hook of a tensor once, with the complete gradient of this tensor. Whatever the tensor
# was computed from gets what the hook returned.**

# %%
# Train only some rows of a weight
# --------------------------------
# You add two tokens to a language model and want to train only their rows of the embedding. But ``requires_grad`` is one switch
# for the whole weight. So a hook sets the gradient of the old rows to zero:

tokens, targets = torch.randint(6, (2, 32))
is_new = torch.arange(6)[:, None] >= 4  # a row for each token: 4, 5 are new


def train(decay):
    model = nn.Sequential(nn.Embedding(6, 8), nn.Linear(8, 6))
    weight = model[0].weight
    weight.register_hook(lambda gradient: gradient.masked_fill(~is_new, 0))
    before = weight.detach().clone()
    optimizer = torch.optim.AdamW(model.parameters(), weight_decay=decay)
    for _ in range(10):
        optimizer.zero_grad()
        cross_entropy(model(tokens), targets).backward()
        optimizer.step()
    return (weight != before).any(dim=1).tolist()  # which rows changed?


print("weight_decay=0:   ", train(0))
print("weight_decay=0.01:", train(0.01))

# sphinx_gallery_start_ignore
assert train(0) == [False] * 4 + [True] * 2 and train(0.01) == [True] * 6
assert torch.optim.AdamW([torch.ones(1)]).defaults["weight_decay"] == 0.01


def _rows(late, tied, optimizer_class, **options):
    model = nn.Sequential(nn.Embedding(6, 8), nn.Linear(8, 6))
    weight = model[0].weight
    if tied:
        model[1].weight = weight
    optimizer = optimizer_class(model.parameters(), lr=0.1, **options)
    for step in range(4):
        if step == 2 * late:
            weight.register_hook(lambda gradient: gradient.masked_fill(~is_new, 0))
            before = weight.detach().clone()
        optimizer.zero_grad()
        for part in (slice(0, 16), slice(16, 32)):
            with torch.autocast("cpu", enabled=tied):
                loss = cross_entropy(model(tokens[part]), targets[part])
            loss.backward()
        optimizer.step()
    return (weight != before).any(dim=1).tolist()


for _tied in (False, True):
    for _class, _options in (
        (torch.optim.SGD, {"momentum": 0.9}),
        (torch.optim.Adam, {}),
        (torch.optim.AdamW, {"weight_decay": 0}),
    ):
        assert _rows(False, _tied, _class, **_options) == [False] * 4 + [True] * 2
        assert _rows(True, _tied, _class, **_options) == [True] * 6  # it remembers
_signs, _scaler = (
    torch.tensor([-5.0, 5.0], requires_grad=True),
    torch.amp.GradScaler("cpu", init_scale=1024.0),
)
_hooked, _sizes = _signs * 1, []
_hooked.register_hook(lambda gradient: _sizes.append(gradient) or gradient.clamp(-1, 1))
_scaler.scale(_hooked.square().sum() / 2).backward()
assert _sizes[0].tolist() == [-5 * 1024, 5 * 1024] and _signs.grad.tolist() == [-1, 1]

for _both in (False, True):
    _base = torch.tensor(3.0, requires_grad=True)
    _earlier, _hooked = _base * 2, _base**3
    if _both:
        _hooked.register_hook(lambda gradient: gradient.clamp(-1, 1))
    _earlier.retain_grad()
    (5 * _hooked + _earlier).backward()
    assert (_base.grad, _earlier.grad) == ((29, 1) if _both else (137, 1))
# sphinx_gallery_end_ignore

# %%
# A zero gradient alone does not freeze a row, because weight decay still shrinks it. ``AdamW`` has ``weight_decay=0.01`` by
# default, so set it to 0 for this weight. Register the hook before the first step: momentum goes on with older gradients.
#
# To limit the gradient, return ``gradient.clamp(-1, 1)``. (With a ``GradScaler``, hooks see the scaled gradient.)

# %%
# On a parameter: before or after accumulation
# --------------------------------------------
# The hook of ``register_hook`` gets the gradient of *this* ``backward()``. That of ``register_post_accumulate_grad_hook`` runs
# after this gradient was added to ``.grad``, and gets the leaf ``x``:

x = torch.tensor(1.0, requires_grad=True)
x.register_hook(lambda grad: print("  register_hook:     ", grad.item()))
x.register_post_accumulate_grad_hook(
    lambda leaf: print("  after accumulation:", leaf.grad.item())
)

for number in (1, 2):
    print("backward", number)
    (3 * x).backward()
assert x.grad == 6

# sphinx_gallery_start_ignore
_leaf, _same = torch.tensor(1.0, requires_grad=True), []
_leaf.register_post_accumulate_grad_hook(lambda given: _same.append(given is _leaf))
(3 * _leaf).backward()
assert _same == [True]
# sphinx_gallery_end_ignore

# %%
# The second hook can take the optimizer step at once and drop the gradient. Fewer gradients are then in memory together:

model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 1))
present = []


@torch.no_grad()
def step_and_drop(parameter):
    present.append(sum(p.grad is not None for p in model.parameters()))
    parameter -= 0.1 * parameter.grad
    parameter.grad = None


for parameter in model.parameters():
    parameter.register_post_accumulate_grad_hook(step_and_drop)

model(torch.ones(2, 4)).sum().backward()
print("gradients in memory at each call:", present)

# sphinx_gallery_start_ignore
assert present == [1, 1, 1, 1] and all(p.grad is None for p in model.parameters())
_plain = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 1))
_plain(torch.ones(2, 4)).sum().backward()
assert sum(p.grad is not None for p in _plain.parameters()) == 4
present.clear()
for _rows in torch.ones(2, 4).split(1):
    model(_rows).sum().backward()
assert len(present) == 8  # two micro-batches: two steps for each parameter
# sphinx_gallery_end_ignore

# %%
# Without the hook, four gradients are there at the end. The price: each ``backward()`` is a step, so
# :ref:`gradient accumulation <sphx_glr_gallery_differentiation_accumulation.py>` is not possible, nor is clipping by the norm
# of all gradients.

# %%
# What people get wrong
# ---------------------
# **Registering inside the training loop.** Each call of ``register_hook`` adds a hook, and a parameter keeps all of them. This
# one was meant to halve the gradient, which is 8. Register it before the loop:

weight = nn.Parameter(torch.tensor(1.0))

halved = []
for _ in range(3):
    weight.register_hook(lambda gradient: gradient / 2)
    weight.grad = None
    (8 * weight).backward()
    halved.append(weight.grad.item())

print(halved)
assert halved == [4, 2, 1]

# %%
# **A hook that uses its own tensor.** The hook below reads ``h``. Then ``h`` keeps its ``grad_fn``, which keeps the hook, which
# keeps ``h``. Python cannot free this circle, because a part of it is in C++:


def train_step(remove):
    h = torch.ones(250_000, requires_grad=True).exp()
    handle = h.register_hook(lambda gradient: gradient / h)
    h.sum().backward()
    if remove:
        handle.remove()
    return weakref.ref(h)


for remove in (False, True):
    references = [train_step(remove) for _ in range(20)]
    gc.collect()
    alive = sum(reference() is not None for reference in references)
    print(f"remove={remove}: {alive} of 20 tensors are still in memory")
    assert alive == (0 if remove else 20)


# sphinx_gallery_start_ignore
def _shape_only():
    h = torch.ones(5, requires_grad=True).exp()
    shape, copy = h.shape, h.detach()
    h.register_hook(lambda gradient: gradient.reshape(shape) / copy)
    h.sum().backward()
    return weakref.ref(h)


_references = [_shape_only() for _ in range(20)]
gc.collect()
assert not any(reference() is not None for reference in _references)
# sphinx_gallery_end_ignore

# %%
# Remove the hook, or compute what it needs before you register it, for example ``size = h.detach().norm()``.

# %%
# **Changing the gradient in place.** Other nodes may get the same tensor. Below, ``r`` and ``s`` receive the same tensor from
# their sum, so the hook on ``s`` silently changes both:


def slope(hook):
    x = torch.tensor(1.0, requires_grad=True)
    r, s = 2 * x, 3 * x
    total = r + s
    s.register_hook(hook)
    total.backward()
    return x.grad.item()


print("new tensor:", slope(lambda grad: grad * 10), "= 2 + 3 * 10")
print("in place:  ", slope(lambda grad: grad.mul_(10)), "= 2 * 10 + 3 * 10")

# sphinx_gallery_start_ignore
assert slope(lambda gradient: gradient * 10) == 32
assert slope(lambda gradient: gradient.mul_(10)) == 50
# sphinx_gallery_end_ignore

# %%
# **Changing a view in place behind its hook.** ``flatten`` returns a *view*, a tensor that shares the memory of another one.
# After ``relu_()``, or ``nn.ReLU(inplace=True)``, backward silently skips the hook on the view. The hook on a clone runs:

layer, inputs = nn.Linear(4, 4), torch.randn(2, 3, 4)

view = layer(inputs).flatten(1)
view.register_hook(lambda gradient: print("hook on the view"))
view.relu_().sum().backward()

clone = layer(inputs).flatten(1).clone()
clone.register_hook(lambda gradient: print("hook on the clone"))
clone.relu_().sum().backward()

# sphinx_gallery_start_ignore
for _prepare, _expected in ((lambda h: h, 0), (torch.clone, 1)):
    for _behind in (nn.ReLU(inplace=True), torch.relu_):
        _hidden = _prepare(nn.Linear(4, 4)(torch.randn(20, 3, 4)).flatten(1))
        _got = []
        assert _hidden._is_view() == (not _expected)
        _hidden.register_hook(_got.append)
        _before = _hidden.detach().clone()
        _behind(_hidden).sum().backward()
        assert len(_got) == _expected
        if _got:  # with respect to the value before
            assert torch.equal(_got[0], (_before > 0).float()) and (_before < 0).any()
# sphinx_gallery_end_ignore

# %%
# **Pieces of one tensor.** This loss uses only ``query``, one of two pieces. But the hook on the other piece runs too, and gets
# ``None``. So a hook ``lambda gradient: gradient * 2`` fails with a ``TypeError`` there. ``split`` and ``unbind`` do the same.

query, key = torch.ones(4, requires_grad=True).exp().chunk(2)
key.register_hook(lambda gradient: print("key gets", gradient))
query.sum().backward()

# sphinx_gallery_start_ignore
for _cut in (lambda t: t.chunk(2), lambda t: t.split(2), lambda t: t.unbind()):
    _got, _pieces = [], _cut(torch.ones(4, requires_grad=True).exp())
    _pieces[1].register_hook(_got.append)
    _pieces[0].sum().backward()
    assert _got == [None]
_pieces = torch.ones(4, requires_grad=True).exp().chunk(2)
_pieces[1].register_hook(lambda gradient: gradient * 2)
_failed = False
try:
    _pieces[0].sum().backward()
except TypeError:
    _failed = True
assert _failed
# sphinx_gallery_end_ignore

# %%
# **Three hooks that PyTorch refuses.** The first returns a different shape. The second is on a tensor that requires no grad (as
# under ``no_grad``), the third on one that is not a leaf:

z = torch.tensor(1.0, requires_grad=True)
z.register_hook(lambda gradient: torch.ones(2))
mistakes = [
    lambda: (2 * z).backward(),
    lambda: torch.ones(2).register_hook(print),
    lambda: (2 * z).register_post_accumulate_grad_hook(print),
]

raised = []
for mistake in mistakes:
    try:
        mistake()
    except RuntimeError as error:
        raised.append(str(error))
        print("RuntimeError:", error)

# sphinx_gallery_start_ignore
assert len(raised) == 3 and "has changed the size of value" in raised[0]
assert "doesn't require gradient" in raised[1] and "non-leaf" in raised[2]
# sphinx_gallery_end_ignore

# %%
# When does each hook run?
# ------------------------
# A node of the graph, such as ``v.grad_fn``, takes hooks too: ``register_prehook`` runs before the node computes,
# ``register_hook`` after it. Each of six hooks notes its name, ``v.grad`` and ``u.grad``:

calls = []


def note(name):
    return lambda *_: calls.append((name, str(v.grad), str(u.grad)))


u = torch.tensor(2.0, requires_grad=True)
v = u * 3
w = v * v

name = "u.register_post_accumulate_grad_hook"
u.register_post_accumulate_grad_hook(note(name))
u.register_hook(note("u.register_hook"))
v.grad_fn.register_hook(note("v.grad_fn.register_hook"))
v.grad_fn.register_prehook(note("v.grad_fn.register_prehook"))
v.retain_grad()
v.register_hook(note("v.register_hook"))
w.register_hook(note("w.register_hook"))
w.backward()

# sphinx_gallery_start_ignore
assert [name for name, _, _ in calls] == [
    "w.register_hook",
    "v.register_hook",
    "v.grad_fn.register_prehook",
    "v.grad_fn.register_hook",
    "u.register_hook",
    "u.register_post_accumulate_grad_hook",
]
assert [v_grad for _, v_grad, _ in calls] == ["None"] * 2 + ["tensor(12.)"] * 4
assert [u_grad for _, _, u_grad in calls] == ["None"] * 5 + ["tensor(36.)"]
for _first in (
    True,
    False,
):  # retain_grad keeps what the tensor's hooks made, registered before or after it
    _kept = torch.tensor(2.0, requires_grad=True) * 1
    if _first:
        _kept.retain_grad()
    _kept.register_hook(lambda gradient: gradient * 10)
    if not _first:
        _kept.retain_grad()
    _kept.backward()
    assert _kept.grad == 10
_got = []
_b = torch.tensor(2.0, requires_grad=True) * 3
_b.grad_fn.register_prehook(lambda *given: _got.append(given))
_b.grad_fn.register_hook(lambda *given: _got.append(given))
(5 * _b).backward()
assert _got == [((5,),), ((15, None), (5,))]
_got, _b = [], torch.tensor(2.0, requires_grad=True) * 3
_b.grad_fn.register_prehook(lambda arriving: (arriving[0] * 7,))
_b.grad_fn.register_hook(lambda *given: _got.append(given))
_b.backward()
assert _got == [((21, None), (7,))]  # 1 arrived
# sphinx_gallery_end_ignore

# %%
# .. how-measured:: The code draws one row for each recorded call, and a bar for each .grad.


def plot_order_of_calls(calls):
    _, ax = plt.subplots(figsize=(7, 3), layout="constrained")
    names = [name for name, _, _ in calls]
    ax.scatter(range(1, 7), names, s=70, color="#2563eb", zorder=3)
    ax.hlines(names, 0.5, range(1, 7), color="#cbd5e1", linewidth=1)
    for column, row in ((1, "v.grad"), (2, "u.grad")):
        seen = [call[column] for call in calls]
        start = 0.5 + seen.count("None")
        ax.barh(row, 7 - start, left=start, height=0.6, color="#cbd5e1")
        ax.text(start + 0.1, row, seen[-1], va="center")
    ax.set(xlim=(0.5, 7), xticks=range(1, 7), xlabel="time: the order of the calls")
    ax.set_title("From the root to the leaf, one hook after the other")
    ax.invert_yaxis()
    ax.tick_params(axis="y", length=0)


# %%
# A gray bar shows from when on ``.grad`` has its value:

# figure: Six hooks, one row each, and the time from left to right. They run in this order: the tensor hook of w, the
#   tensor hook of v, the prehook and the hook of the node of v, the tensor hook of u, the hook of u after accumulation.
#   v.grad is filled before the third call, u.grad before the sixth.
plot_order_of_calls(calls)

# %%
# At ``v``, the tensor hook comes first. Then ``v.grad`` is stored, as the tensor hook left it. Then the node runs, between its
# two hooks. The prehook gets a tuple, the gradients that arrive. The other gets two: the gradients that the node returns, and
# those that it was called with.

# %%
# Exercise
# --------
# ``x`` is used twice, in ``2 * x + 3 * x``. Of two hooks on ``x`` the first adds 1 to the gradient, and the second doubles it.
# How often does each run, and what is ``x.grad``?
#
# .. solution::
#
# Once each, on the whole sum: :math:`(5 + 1) \cdot 2 = 12`. The second gets what the first returned.

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

# predict: x.grad -- What is ``x.grad``?

# %%
# See also
# --------
# - In PyTorch's reference: `Backward hooks execution
#   <https://docs.pytorch.org/docs/stable/notes/autograd.html#backward-hooks-execution>`__ and `Tensor.register_hook
#   <https://docs.pytorch.org/docs/stable/generated/torch.Tensor.register_hook.html>`__.
