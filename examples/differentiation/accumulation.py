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
# The batch that you want does not fit
# ------------------------------------
# Your GPU has memory for two samples, and you want to train with batches of eight. So let the loader give pieces of two, call
# ``backward()`` for each, and step after every ``k = 4`` pieces:

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def train_epoch(model, loader, optimizer, k):
    for i, (inputs, wanted) in enumerate(loader):
        if i % k == 0:
            optimizer.zero_grad()
            pieces = min(k, len(loader) - i)  # fewer can be left at the end
        loss = nn.functional.mse_loss(model(inputs), wanted)
        (loss / pieces).backward()
        if (i + 1) % k == 0 or i + 1 == len(loader):
            nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
            optimizer.step()


torch.manual_seed(0)
data, targets = torch.randn(12, 8), torch.randn(12, 1)

for batch_size, k in ((8, 1), (2, 4)):
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1))
    loader = DataLoader(TensorDataset(data, targets), batch_size=batch_size)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for _ in range(5):
        train_epoch(model, loader, optimizer, k)
    loss = nn.functional.mse_loss(model(data), targets)
    print(f"batch_size={batch_size}, k={k}: loss {loss.item():.4f}")

# sphinx_gallery_start_ignore
for _kind, _options in (
    (torch.optim.SGD, {"momentum": 0.9, "weight_decay": 0.1}),
    (torch.optim.SGD, {}),
):
    _found = []
    for _size, _k in ((8, 1), (2, 4), (1, 8), (4, 2)):
        torch.manual_seed(1)
        _net = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1)).double()
        _loader = DataLoader(
            TensorDataset(data.double(), targets.double()), batch_size=_size
        )
        _optimizer = _kind(_net.parameters(), lr=0.1, **_options)
        for _ in range(5):
            train_epoch(_net, _loader, _optimizer, _k)
        _found.append(torch.cat([p.flatten() for p in _net.parameters()]))
    for _one in _found[1:]:
        torch.testing.assert_close(_one, _found[0], rtol=1e-9, atol=1e-12)
_uneven = TensorDataset(torch.randn(13, 8), torch.randn(13, 1))
_cut = torch.utils.data.Subset(_uneven, range(12))
for _drop in (True, False):
    _found = []
    for _set, _size, _k in ((_cut, 8, 1), (_uneven, 2, 4)):
        torch.manual_seed(1)
        _net = nn.Linear(8, 1)
        _loader = DataLoader(_set, _size, drop_last=_drop and _set is _uneven)
        train_epoch(_net, _loader, torch.optim.SGD(_net.parameters(), lr=0.1), _k)
        _found.append(_net.weight.detach())
    assert torch.allclose(*_found, atol=1e-6) == _drop
_start = nn.functional.mse_loss(torch.zeros(12, 1), targets)
assert loss < _start
# sphinx_gallery_end_ignore

# %%
# Both trainings reach the same loss. (:ref:`Clipping <sphx_glr_gallery_training_gradient_clipping.py>` shortens a gradient that
# is too long. It comes once per step, as does ``scheduler.step()``.) If the last piece can be smaller, use ``drop_last=True``,
# or the weights of the exercise.
#
# In pieces, each ``backward()`` frees what its piece saved, before the next piece is computed:
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
# How many numbers the graph keeps for twelve samples, after each forward and each backward:

in_one, in_pieces = count_numbers_kept(pieces=1), count_numbers_kept(pieces=3)

# figure: The numbers that the graph keeps, after each forward and each backward. One batch of twelve keeps three times as
#   much after its forward pass as each of three pieces of four. After each backward nothing is kept.
plot_numbers_kept(in_one, in_pieces)

# sphinx_gallery_start_ignore
assert in_one[0] == in_one[2] == 0 and in_one[1] > 0
assert in_pieces == [0, *[in_one[1] // 3, 0] * 3] and in_one[1] % 3 == 0
_alive, _peaks, _grads = weakref.WeakSet(), [], []


def _pack(tensor):
    box = Box(tensor)
    _alive.add(box)
    return box


for _together in (False, True):
    model.zero_grad()
    _total, _peak = 0, 0
    with torch.autograd.graph.saved_tensors_hooks(_pack, lambda box: box.tensor):
        for _rows in torch.arange(12).chunk(3):
            _loss = nn.functional.mse_loss(model(data[_rows]), targets[_rows]) / 3
            _peak = max(_peak, len(_alive))
            if _together:
                _total = _total + _loss
            else:
                _loss.backward()
        _peak = max(_peak, len(_alive))
        if _together:
            _total.backward()
    _peaks.append(_peak)
    _grads.append(model[0].weight.grad.clone())
    assert not _alive
assert _peaks[1] == 3 * _peaks[0] > 0
torch.testing.assert_close(*_grads)
# sphinx_gallery_end_ignore

# %%
# ``backward()`` adds
# -------------------
# Why does this work? Here are three backward passes for :math:`x^2` at 3, where the derivative is 6:

x = torch.tensor(3.0, requires_grad=True)

totals = []
for _ in range(3):
    (x**2).backward()
    totals.append(x.grad.item())

print(totals)
assert totals == [6, 12, 18]

# %%
# **backward() adds to .grad, until zero_grad() clears it.** So the pieces of a batch add up. A mean over twelve samples is one
# third of the sum of three means over four, so divide each loss by the number of pieces:


def gradient(model, pieces, divisor):
    model.zero_grad()
    for rows in torch.arange(12).chunk(pieces):
        loss = nn.functional.mse_loss(model(data[rows]), targets[rows])
        (loss / divisor).backward()
    return torch.cat([p.grad.flatten() for p in model.parameters()])


large = gradient(model, pieces=1, divisor=1)
for divisor in (3, 1):
    length = gradient(model, pieces=3, divisor=divisor).norm() / large.norm()
    print(f"divided by {divisor}: {length:.3f} times the gradient of the large batch")

# sphinx_gallery_start_ignore
torch.testing.assert_close(gradient(model, 3, 3), large, rtol=1e-4, atol=1e-6)
torch.testing.assert_close(gradient(model, 3, 1), 3 * large, rtol=1e-4, atol=1e-6)


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
assert _direction(_clipped(False), _full, dim=0) > 1 - 1e-6
assert _direction(_clipped(True), _full, dim=0) < 0.999
for _rows in torch.arange(12).chunk(3):
    model.zero_grad()
    nn.functional.mse_loss(model(data[_rows]), targets[_rows]).backward()
_last = torch.cat([p.grad.flatten() for p in model.parameters()])
assert _direction(_last, _full, dim=0) < 0.999
# sphinx_gallery_end_ignore

# %%
# What if you never clear it? Below, one weight minimizes :math:`w^2 / 2`, once with ``zero_grad()`` in each step, and once
# without it:

import pandas as pd


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
# Without ``zero_grad()``, each step uses the sum of all gradients so far, which drives ``w`` past the minimum.

# %%
# When pieces do not add up to the large batch
# --------------------------------------------
# In the large batch, each sample must be computed from itself alone. Batch normalization breaks this: in training it uses the
# mean and the variance of the samples that it gets at one time. Layer and group normalization look at one sample at a time.

for layer in (nn.BatchNorm1d(16), nn.LayerNorm(16), nn.GroupNorm(4, 16)):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(8, 16), layer, nn.Linear(16, 1))
    large = gradient(net, pieces=1, divisor=1)
    difference = (gradient(net, pieces=3, divisor=3) - large).norm() / large.norm()
    print(f"{type(layer).__name__:<12} relative difference {difference:.2f}")
    assert difference > 0.1 if isinstance(layer, nn.BatchNorm1d) else difference < 1e-5


# sphinx_gallery_start_ignore
def _both(net):
    found = []
    for pieces in (1, 3):
        torch.manual_seed(0)
        found.append(gradient(net, pieces=pieces, divisor=pieces))
    return found


_net = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.Linear(16, 1))
_net.append(nn.Dropout()).insert(0, nn.Dropout())
assert torch.allclose(
    *_both(_net.eval()), rtol=1e-4, atol=1e-6
)  # in eval mode both add up
_net[2] = nn.Identity()
assert not torch.allclose(*_both(_net.train()), rtol=0.1)  # dropout alone
_net, _found = nn.Linear(8, 4), []
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
# Dropout draws different masks for the pieces, which is usually harmless. A contrastive loss compares the samples of a piece
# only with each other, so it is a different loss.

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
# ``optimizer.zero_grad()`` sets ``.grad`` to ``None``, and optimizers such as SGD and Adam skip such a parameter.
# ``zero_grad(set_to_none=False)`` fills it with zeros. Then momentum, Adam or weight decay can still move it. This matters for
# parameters that only some steps use:

w = torch.tensor(1.0, requires_grad=True)
optimizer = torch.optim.SGD([w], lr=0.1, momentum=0.9)
w.backward()
optimizer.step()

for set_to_none in (True, False):
    w.grad = torch.tensor(1.0)
    optimizer.zero_grad(set_to_none=set_to_none)
    optimizer.step()
    print(f"set_to_none={set_to_none}: grad {w.grad}, w {w.item():.2f}")

# sphinx_gallery_start_ignore
assert abs(w.item() - 0.81) < 1e-6
for _kind, _options, _moves in [
    (torch.optim.SGD, {}, False),
    (torch.optim.SGD, {"momentum": 0.9}, True),
    (torch.optim.SGD, {"weight_decay": 0.5}, True),
    (torch.optim.Adam, {}, True),
    (torch.optim.AdamW, {}, True),
]:
    for _second in (None, torch.tensor(0.0)):
        _w = torch.tensor(1.0, requires_grad=True)
        _optimizer = _kind([_w], lr=0.1, **_options)
        _w.grad = torch.tensor(1.0)
        _optimizer.step()
        _first, _w.grad = _w.item(), _second
        _optimizer.step()
        assert (_w.item() != _first) == (_moves and _second is not None)
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

# %%
# What people get wrong
# ---------------------
# **Adding the losses, for one backward at the end.** The gradient is the same, but until then the graphs of all pieces stay in
# memory. Call ``backward()`` for each piece.
#
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
# **Keeping a gradient without a copy.** Backward adds into the tensor ``w.grad``. So ``history`` holds the same tensor three
# times. Keep ``w.grad.clone()`` instead:

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
for name, scale in (("1/3", lambda n: 1 / 3), ("n/12", lambda n: n / 12)):
    error = (uneven(scale) - large).norm() / large.norm()
    print(f"times {name}: relative error {error.item():.3f}")

# sphinx_gallery_start_ignore
assert not torch.allclose(uneven(lambda n: 1 / 3), large, rtol=1e-2)
assert torch.allclose(uneven(lambda n: n / 12), large, rtol=1e-4, atol=1e-6)
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
# - :ref:`sphx_glr_gallery_training_unequal_batches.py`: pieces with different numbers of tokens.
# - :ref:`sphx_glr_gallery_training_who_calls_backward.py`: what Trainer, Accelerate and Lightning do for you.
# - :ref:`sphx_glr_gallery_graphs_graph_lifetime.py`, what backward frees, and what ``retain_graph`` keeps.
# - In PyTorch's reference: `Optimizer.zero_grad
#   <https://docs.pytorch.org/docs/stable/generated/torch.optim.Optimizer.zero_grad.html>`__, `accumulation with mixed precision
#   <https://docs.pytorch.org/docs/stable/notes/amp_examples.html#gradient-accumulation>`__, and for several processes
#   `DistributedDataParallel.no_sync
#   <https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html#torch.nn.parallel.DistributedDataParallel.no_sync>`__.
