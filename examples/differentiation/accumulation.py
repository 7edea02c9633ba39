r"""
Gradient accumulation and zero_grad
===================================

.. in-short::

   ``backward()`` *adds* to ``.grad``, so call ``optimizer.zero_grad()`` once in each step. If a batch is too large for memory,
   call ``(loss / pieces).backward()`` for each piece, then step. You then get the gradient of the large batch if the loss is a
   plain mean, all pieces have the same size, and no layer mixes the samples. Batch normalization and dropout in training mode
   usually break this.
"""

# %%
# The weights swing and do not settle
# -----------------------------------
# Your training runs without an error, and the loss goes up and down. One line may be missing: ``optimizer.zero_grad()``. To see
# what it does, take one weight and the loss :math:`w^2 / 2`, which is smallest at 0. Train once with that line, and once
# without it:

import pandas as pd
import torch
from torch import nn


def train(clear):
    w = torch.tensor(1.0, requires_grad=True)
    optimizer = torch.optim.SGD([w], lr=0.1)
    path = []
    for _ in range(60):
        if clear:
            optimizer.zero_grad()
        loss = w**2 / 2
        loss.backward()
        optimizer.step()
        path.append(w.item())
    return path


paths = pd.DataFrame({"zero_grad in each step": train(True), "never": train(False)})
ax = paths.plot(style=["-", "--"], figsize=(7, 2.3), ylim=(-1.2, 2))
ax.set(xlabel="step", ylabel="w")
ax.set_title("Without zero_grad, w swings around the minimum at 0")

# figure: Two curves of w over 60 steps. With zero_grad in each step, w falls smoothly toward the minimum at 0. Without it,
#   w swings between about 1 and -1, and the swings do not get smaller.

# sphinx_gallery_start_ignore
_cleared, _never = paths["zero_grad in each step"], paths["never"]
assert abs(_cleared.iloc[-1] - 0.9**60) < 1e-6 and _cleared.is_monotonic_decreasing
_swings = [_never.iloc[i : i + 20].abs().max() for i in (0, 20, 40)]
assert all(0.98 < swing < 1.03 for swing in _swings) and _never.min() < -0.98
# sphinx_gallery_end_ignore

# %%
# Without the line, each step uses the sum of all gradients so far, which drives ``w`` past the minimum.

# %%
# ``backward()`` adds
# -------------------
# The derivative of :math:`x^2` at 3 is 6. Three backward passes, each on a new graph:

x = torch.tensor(3.0, requires_grad=True)

totals = []
for _ in range(3):
    (x**2).backward()
    totals.append(x.grad.item())

print(totals)
assert totals == [6, 12, 18]

# %%
# For two losses, call ``backward()`` on their sum. Two calls add up to the same gradient, but if both losses come from one
# forward pass of a model, the second call usually raises an error.

x.grad = None
(x**2 + 5 * x).backward()
together = x.grad.item()

x.grad = None
(x**2).backward()
(5 * x).backward()

print(f"one backward of the sum: {together}   two backwards: {x.grad.item()}")
assert x.grad.item() == together == 11

# sphinx_gallery_start_ignore
_state = torch.random.get_rng_state()
_net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
for _twice in (False, True):
    _first, _second = _net(torch.randn(5, 3)).square().mean(0)
    try:
        if _twice:
            _first.backward()
            _second.backward()
        else:
            (_first + _second).backward()
        _refused = ""
    except RuntimeError as error:
        _refused = str(error)
    assert ("backward through the graph a second time" in _refused) == _twice
torch.random.set_rng_state(_state)
# sphinx_gallery_end_ignore

# %%
# A large batch in small pieces
# -----------------------------
# Because gradients add up, you can compute a batch in pieces and take one step at the end. A mean over twelve samples is one
# third of the sum of three means over four. So divide each loss by the number of pieces that ``chunk`` gives:

torch.manual_seed(0)
data = torch.randn(12, 8, dtype=torch.float64)
targets = torch.randn(12, 1, dtype=torch.float64)


def gradient(model, pieces, divisor):
    model.zero_grad()
    for rows in torch.arange(12).chunk(pieces):
        loss = nn.functional.mse_loss(model(data[rows]), targets[rows])
        (loss / divisor).backward()
    return torch.cat([p.grad.flatten() for p in model.parameters()])


model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1)).double()
large = gradient(model, pieces=1, divisor=1)
divided = gradient(model, pieces=3, divisor=3)
undivided = gradient(model, pieces=3, divisor=1)

print("divided by 3: equal to the large batch?", torch.allclose(divided, large))
print(f"not divided:  {undivided.norm() / large.norm():.4f} times the large batch")

# sphinx_gallery_start_ignore
assert torch.allclose(divided, large, rtol=1e-10, atol=1e-12)
assert torch.allclose(undivided, 3 * large, rtol=1e-10, atol=1e-12)
assert torch.allclose(gradient(model, pieces=5, divisor=4), large)  # chunk gives four
# sphinx_gallery_end_ignore

# %%
# Each ``backward()`` frees what its piece saved, before the next piece is computed. That saves the memory:
#
# .. how-measured:: The code counts the numbers that a graph keeps for backward, except those of the parameters.

import weakref

import matplotlib.pyplot as plt


class Box:
    def __init__(self, tensor):
        self.tensor = tensor


def count_numbers_kept(pieces):
    own = {p.untyped_storage().data_ptr() for p in model.parameters()}
    alive, kept = weakref.WeakSet(), [0]

    def pack(tensor):
        box = Box(tensor.detach())
        if tensor.untyped_storage().data_ptr() not in own:
            alive.add(box)
        return box

    def measure():
        tensors = {box.tensor.data_ptr(): box.tensor.numel() for box in alive}
        kept.append(sum(tensors.values()))

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda box: box.tensor):
        for rows in torch.arange(12).chunk(pieces):
            loss = nn.functional.mse_loss(model(data[rows]), targets[rows])
            measure()
            loss.backward()
            measure()
    return kept


def plot_numbers_kept(large, pieces):
    _, ax = plt.subplots(figsize=(7, 2.8), layout="constrained")
    moments = ["start"] + [f"{what} {i}" for i in (1, 2, 3) for what in ("fwd", "bwd")]
    ax.step(moments[:3], large, "--", where="post", label="one batch of 12")
    ax.step(moments, pieces, "-", where="post", label="three pieces of 4")
    ax.set_title("In three pieces, at most a third is kept")
    ax.set(ylabel="numbers kept for backward", ylim=(0, None))
    ax.legend()


# %%
# How many numbers the graph keeps after each forward and each backward:

in_one, in_pieces = count_numbers_kept(pieces=1), count_numbers_kept(pieces=3)

# figure: The numbers that the graph keeps, after each forward and each backward. One batch of twelve keeps three times as
#   much after its forward pass as each of three pieces of four. After each backward nothing is kept.
plot_numbers_kept(in_one, in_pieces)

# sphinx_gallery_start_ignore
assert in_one[0] == in_one[2] == 0 and in_one[1] > 0
assert in_pieces == [0, *[in_one[1] // 3, 0] * 3] and in_one[1] % 3 == 0
# sphinx_gallery_end_ignore

# %%
# In the training loop, clear the gradients, :ref:`clip <sphx_glr_gallery_training_gradient_clipping.py>` them (shorten them if
# they are too long) and step once for every ``k`` pieces. At the end of an epoch, fewer can be left:

from torch.utils.data import DataLoader, TensorDataset

loader = DataLoader(TensorDataset(data, targets), batch_size=2)  # gives 6 pieces
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
# sphinx_gallery_start_ignore
_at_steps = []


def _remember_step(*_):
    rows = slice(0, 8) if not _at_steps else slice(8, 12)
    loss = nn.functional.mse_loss(model(data[rows]), targets[rows])
    wanted = torch.autograd.grad(loss, list(model.parameters()))
    found = [p.grad for p in model.parameters()]
    _at_steps.append([torch.cat([g.flatten() for g in gs]) for gs in (found, wanted)])


optimizer.register_step_pre_hook(_remember_step)
# sphinx_gallery_end_ignore
k = 4

for i, (inputs, wanted) in enumerate(loader):
    if i % k == 0:
        optimizer.zero_grad()
        pieces = min(k, len(loader) - i)  # 4, then the 2 that are left
    loss = nn.functional.mse_loss(model(inputs), wanted)
    (loss / pieces).backward()
    if (i + 1) % k == 0 or i + 1 == len(loader):
        nn.utils.clip_grad_norm_(model.parameters(), max_norm=3.0)
        optimizer.step()


# sphinx_gallery_start_ignore
assert len(_at_steps) == 2 and pieces == 2
for _found, _wanted in _at_steps:
    _factor = min(1, 3 / _wanted.norm().item())
    torch.testing.assert_close(_found, _factor * _wanted, rtol=1e-4, atol=0)


def _clipped(each_piece):
    model.zero_grad()
    for rows in torch.arange(12).chunk(3):
        loss = nn.functional.mse_loss(model(data[rows]), targets[rows])
        (loss / 3).backward()
        if each_piece:
            nn.utils.clip_grad_norm_(model.parameters(), max_norm=0.1)
    nn.utils.clip_grad_norm_(model.parameters(), max_norm=0.1)
    return torch.cat([p.grad.flatten() for p in model.parameters()])


_full = gradient(model, pieces=1, divisor=1)
_direction = torch.nn.functional.cosine_similarity
assert _direction(_clipped(False), _full, dim=0) > 1 - 1e-9
assert _direction(_clipped(True), _full, dim=0) < 0.999
for _rows in torch.arange(12).chunk(3):
    model.zero_grad()
    nn.functional.mse_loss(model(data[_rows]), targets[_rows]).backward()
_last = torch.cat([p.grad.flatten() for p in model.parameters()])
assert _direction(_last, _full, dim=0) < 0.999
# sphinx_gallery_end_ignore

# %%
# When pieces do not add up to the large batch
# --------------------------------------------
# In the large batch, each sample must be computed from itself alone. Batch normalization breaks this, because in training it
# uses the mean and the variance of the samples that it gets at one time. Layer and group normalization look at one sample at a
# time. Dropout draws different masks for the pieces, and some losses compare samples with each other: these break it too.

for layer in (nn.BatchNorm1d(16), nn.LayerNorm(16), nn.GroupNorm(4, 16)):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(8, 16), layer, nn.Linear(16, 1)).double()
    large = gradient(net, pieces=1, divisor=1)
    difference = (gradient(net, pieces=3, divisor=3) - large).norm() / large.norm()
    print(f"{type(layer).__name__:<12} relative difference {difference:.2f}")
    assert difference > 0.1 if isinstance(layer, nn.BatchNorm1d) else difference < 1e-12


# sphinx_gallery_start_ignore
def _both(net):
    found = []
    for pieces in (1, 3):
        torch.manual_seed(0)
        found.append(gradient(net, pieces=pieces, divisor=pieces))
    return found


_net = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.Linear(16, 1)).double()
_net.append(nn.Dropout()).insert(0, nn.Dropout())
assert torch.allclose(*_both(_net.eval()))  # in eval mode both add up
_net[2] = nn.Identity()
assert not torch.allclose(*_both(_net.train()), rtol=0.1)  # dropout alone
_net, _found = nn.Linear(8, 4).double(), []
for _pieces in (1, 3):
    _net.zero_grad()
    for _rows in torch.arange(12).chunk(_pieces):
        _similar = _net(data[_rows]) @ _net(data[_rows].flip(1)).T
        _loss = nn.functional.cross_entropy(_similar, torch.arange(len(_rows)))
        (_loss / _pieces).backward()
    _found.append(_net.weight.grad)
assert (_found[1] - _found[0]).norm() / _found[0].norm() > 0.1
# sphinx_gallery_end_ignore

# %%
# **In bfloat16 the sum stops growing.** ``bfloat16`` is a dtype with two to three digits, which saves memory. By default,
# ``.grad`` has the dtype of its parameter. So once the sum is large, a small gradient is rounded away:

for dtype in (torch.bfloat16, torch.float32):
    w = torch.zeros(1, dtype=dtype, requires_grad=True)
    for _ in range(1000):
        (w * 0.001).sum().backward()
    print(f"{dtype}: 1,000 gradients of 0.001 are {w.grad.item():.3f}")

# sphinx_gallery_start_ignore
assert abs(w.grad.item() - 1) < 1e-4 and w.grad.dtype == torch.float32
w = torch.zeros(1, dtype=torch.bfloat16, requires_grad=True)
for _ in range(1000):
    (w * 0.001).sum().backward()
assert w.grad.item() == 0.5 and w.grad.dtype == torch.bfloat16
# sphinx_gallery_end_ignore

# %%
# Keep the parameters in float32, and let :ref:`autocast <sphx_glr_gallery_memory_precision.py>` choose the dtype of each
# operation.

# %%
# ``None`` and zero are different
# -------------------------------
# ``optimizer.zero_grad()`` sets ``.grad`` to ``None``; ``zero_grad(set_to_none=False)`` fills it with zeros. The optimizers
# below skip a parameter whose gradient is ``None``. With a gradient of zero they can still move it, because they remember
# earlier gradients (momentum, Adam) or shrink each weight a little (weight decay).
#
# .. how-measured:: A parameter takes two steps, and its value after each goes into a table.


def two_steps(second_gradient, optimizer_class, **options):
    w = torch.tensor(1.0, requires_grad=True)
    optimizer = optimizer_class([w], lr=0.1, **options)
    values = []
    for gradient in (torch.tensor(1.0), second_gradient):
        w.grad = gradient
        optimizer.step()
        values.append(w.item())
    return values


def tabulate_second_steps():
    rows = {}
    for name, choice, options in [
        ("SGD", torch.optim.SGD, {}),
        ("SGD, momentum=0.9", torch.optim.SGD, {"momentum": 0.9}),
        ("SGD, weight_decay=0.5", torch.optim.SGD, {"weight_decay": 0.5}),
        ("Adam", torch.optim.Adam, {}),
    ]:
        first, with_none = two_steps(None, choice, **options)
        _, with_zero = two_steps(torch.tensor(0.0), choice, **options)
        rows[name] = {
            "w after gradient 1": first,
            "then grad None": with_none,
            "then grad 0": with_zero,
        }
    return pd.DataFrame(rows).T.rename_axis(columns="optimizer")


# %%
# Where ``w`` is after a step with the gradient 1, and after one more with None or zero:

# sphinx_gallery_start_ignore
table = tabulate_second_steps()
assert (table["then grad None"] == table["w after gradient 1"]).all()
_moved = table["then grad 0"] != table["w after gradient 1"]
assert _moved.tolist() == [False, True, True, True]
assert table.loc["SGD, momentum=0.9"].round(6).tolist() == [0.9, 0.9, 0.81]
_w = torch.tensor(1.0, requires_grad=True)
_optimizer = torch.optim.SGD([_w], lr=0.1)
(_w**2).backward()
_kept = _w.grad
_optimizer.zero_grad(set_to_none=False)
assert _w.grad is _kept and _kept == 0
_optimizer.zero_grad()
assert _w.grad is None
for _to_none in (True, False):  # b is a head that the second step does not use
    _a, _b = (torch.tensor(1.0, requires_grad=True) for _ in range(2))
    _optimizer = torch.optim.SGD([_a, _b], lr=0.1, momentum=0.9)
    (_a * _b).backward()
    _optimizer.step()
    _before = _b.item()
    for _frozen in (False, True):  # in the third step it is frozen too
        _b.requires_grad_(not _frozen)
        _optimizer.zero_grad(set_to_none=_to_none)
        _a.square().backward()
        _optimizer.step()
        assert (_b.item() == _before) == _to_none
        _before = _b.item()
# sphinx_gallery_end_ignore
tabulate_second_steps().round(4)

# %%
# This matters for parameters that only some steps use, or a layer that you freeze later.

# %%
# What people get wrong
# ---------------------
# **Clearing between** ``backward`` **and** ``step``. Then the optimizer finds no gradient, and silently trains nothing:

w = torch.tensor(1.0, requires_grad=True)
optimizer = torch.optim.SGD([w], lr=0.1)

for _ in range(100):
    (w**2 / 2).backward()
    optimizer.zero_grad()
    optimizer.step()

print(f"w after 100 steps: {w.item()}")
assert w.item() == 1.0 and w.grad is None

# %%
# The order is ``zero_grad``, ``backward``, ``step``.
#
# **Keeping a gradient without a copy.** Backward adds to the tensor that ``w.grad`` already is. So the list ``history`` holds
# the same tensor three times. Keep ``w.grad.clone()`` instead:

w.grad = None
history, copies = [], []
for _ in range(3):
    (w**2 / 2).backward()
    history.append(w.grad)
    copies.append(w.grad.clone())

print("kept:  ", [g.item() for g in history])
print("copied:", [g.item() for g in copies])

# sphinx_gallery_start_ignore
assert [g.item() for g in history] == [3, 3, 3] and [g.item() for g in copies] == [
    1,
    2,
    3,
]
assert history[0] is history[1] is history[2] is w.grad


def _steps(order):
    w = torch.tensor(1.0, requires_grad=True)
    optimizer = torch.optim.SGD([w], lr=0.1)
    for _ in range(5):
        for word in order:
            (w**2 / 2).backward() if word == "backward" else getattr(optimizer, word)()
    return w.item()


assert (
    _steps(["zero_grad", "backward", "step"])
    == _steps(["backward", "step", "zero_grad"])
    < 0.6
)
# sphinx_gallery_end_ignore

# %%
# Exercise
# --------
# Twelve samples, but the pieces have 5, 5 and 2 of them. Dividing each mean by 3 no longer gives the gradient of the large
# batch. What do you have to multiply each loss by, and why?
#
# .. solution::
#
# Each sample must count :math:`\frac{1}{12}`. A mean over :math:`n` samples gives each of them :math:`\frac{1}{n}`, so multiply
# the loss of a piece by :math:`\frac{n}{12}`. Dividing by 3 gives the samples of the last piece a weight of
# :math:`\frac{1}{6}`, twice what they should have.
#
# Language models meet this with padding: ``cross_entropy(..., ignore_index=...)`` takes the mean over the tokens that count,
# and a piece can have fewer of them, or none. So pass ``reduction="sum"`` too, and divide by their number in the large batch.
# The Trainer of Hugging Face had this bug: `transformers#34191 <https://github.com/huggingface/transformers/pull/34191>`__.


def uneven(scale):
    model.zero_grad()
    for rows in torch.arange(12).split(5):
        loss = nn.functional.mse_loss(model(data[rows]), targets[rows])
        (loss * scale(len(rows))).backward()
    return torch.cat([p.grad.flatten() for p in model.parameters()])


large = gradient(model, pieces=1, divisor=1)
print("divided by 3:   ", torch.allclose(uneven(lambda n: 1 / 3), large))
print("times n over 12:", torch.allclose(uneven(lambda n: n / 12), large))

# sphinx_gallery_start_ignore
assert not torch.allclose(uneven(lambda n: 1 / 3), large, rtol=1e-2)
assert torch.allclose(uneven(lambda n: n / 12), large, rtol=1e-10, atol=1e-12)
assert [len(rows) for rows in torch.arange(12).split(5)] == [5, 5, 2]
_logits, _labels = torch.randn(6, 4), torch.tensor([0, 1, -100, -100, -100, 2])
_loss = nn.functional.cross_entropy(_logits, _labels, ignore_index=-100)
_counted = _labels != -100
assert torch.allclose(
    _loss, nn.functional.cross_entropy(_logits[_counted], _labels[_counted])
)
_parts = zip(_logits.split(2), _labels.split(2), strict=True)
_sums = [nn.functional.cross_entropy(*part, reduction="sum") for part in _parts]
assert torch.allclose(sum(_sums) / _counted.sum(), _loss) and _sums[1] == 0
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_training_who_calls_backward.py`: what Trainer, Accelerate and Lightning do for you.
# - :ref:`sphx_glr_gallery_graphs_graph_lifetime.py`, what backward frees, and what ``retain_graph`` keeps.
# - In PyTorch's reference: `Optimizer.zero_grad
#   <https://docs.pytorch.org/docs/stable/generated/torch.optim.Optimizer.zero_grad.html>`__, `accumulation with mixed precision
#   <https://docs.pytorch.org/docs/stable/notes/amp_examples.html#gradient-accumulation>`__, and for several processes
#   `DistributedDataParallel.no_sync
#   <https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html#torch.nn.parallel.DistributedDataParallel.no_sync>`__.
