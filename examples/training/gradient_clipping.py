r"""
Gradient clipping by norm and by value
======================================

.. index::
   ! single: the loss explodes
   ! single: exploding gradients
   ! single: clip_grad_norm_ or clip_grad_value_
   ! single: the loss suddenly becomes NaN
   single: clip_grads_with_norm_ and get_total_norm clip nothing

.. in-short::

   Clip after ``backward()`` and before ``step()``:

   .. code-block:: python

      loss.backward()
      norm = torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
      optimizer.step()

   If the norm of all gradients together is larger than 1, each gradient is multiplied by one and the same number, so that the
   norm becomes 1. The call returns the norm *before* clipping: log it. With a ``GradScaler``, call
   ``scaler.unscale_(optimizer)`` first. ``clip_grad_norm_`` does not remove a NaN: it spreads it.
"""

# %%
# A few steps ruin the training
# -----------------------------
# A recurrent network reads 15 numbers and has to remember the first one. On its way back through the 15 steps, the gradient is
# multiplied by the same weight again and again, and it may grow each time. This is its training, with and without clipping:

import warnings

import torch
from torch import nn
from torch.nn.utils import clip_grad_norm_, clip_grad_value_, get_total_norm


class Memory(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.RNN(1, 16, batch_first=True)
        self.head = nn.Linear(16, 1)
        nn.init.orthogonal_(self.rnn.weight_hh_l0, gain=1.3)

    def forward(self, x):
        return self.head(self.rnn(x)[0][:, -1])


def train(max_norm):
    torch.manual_seed(0)
    model = Memory()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
    norms, losses = [], []
    for _ in range(100):
        x = torch.randn(32, 15, 1)
        loss = nn.functional.mse_loss(model(x), x[:, 0])
        optimizer.zero_grad()
        loss.backward()
        norm = get_total_norm([p.grad for p in model.parameters()])
        if max_norm:
            clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()
        norms.append(norm.item())
        losses.append(loss.item())
    return {"norm": norms, "loss": losses}


# %%
# .. how-measured:: This code draws the norms.

import matplotlib.pyplot as plt


def plot_norms(without, clipped):
    _, ax = plt.subplots(figsize=(7, 2.7), layout="constrained")
    ax.plot(without["norm"], "--", color="#c2410c", label="not clipped")
    label = "clipped to 1: the norm before clipping"
    ax.plot(clipped["norm"], color="#2563eb", label=label)
    ax.set(xlabel="step", ylabel="norm of the gradient", yscale="log")
    ax.set_title("Without clipping the norm explodes")
    ax.legend()


# %%
# Train the network twice:

# varies: The weights that fly away depend on the last bits of the arithmetic.
without = train(max_norm=None)
clipped = train(max_norm=1.0)

# figure: The norm of the gradient over 100 steps, on a logarithmic axis. Without clipping the curve rises from 1 to more than a
#   billion, and ends where the norm is no longer a finite number. With clipping the norm before clipping stays between 0.4
#   and 20 in all 100 steps.
plot_norms(without, clipped)

# %%
# The clipped run learns. The other run ends in NaN:

for name, run in {"not clipped": without, "clipped": clipped}.items():
    last = sum(run["loss"][-20:]) / 20
    print(f"{name:<12} loss at first {run['loss'][0]:.2f}, last 20 steps {last:.2f}")

# sphinx_gallery_start_ignore
import math

_finite = [norm for norm in without["norm"] if math.isfinite(norm)]
assert len(_finite) < 95 and max(_finite) > 1e9
assert math.isnan(without["loss"][-1]) and 0.5 < without["norm"][0] < 5
assert min(clipped["norm"]) > 0.4 and max(clipped["norm"]) < 20
assert sum(clipped["loss"][-20:]) / 20 < 0.4 * clipped["loss"][0]
# sphinx_gallery_end_ignore

# %%
# What the two functions do
# -------------------------
# A model with two parameters is enough to see it. Their gradients are (3, 4) and 12, and the norm of all three numbers is
# :math:`\sqrt{3^2 + 4^2 + 12^2} = 13`:


def parameters():
    a, b = torch.zeros(2, requires_grad=True), torch.zeros(1, requires_grad=True)
    a.grad, b.grad = torch.tensor([3.0, 4.0]), torch.tensor([12.0])
    return [a, b]


a, b = parameters()
norm = clip_grad_norm_([a, b], max_norm=1.0)
print("by norm:         ", a.grad, b.grad, "  norm before:", norm.item())
# sphinx_gallery_start_ignore
_rows = {"all": torch.cat([a.grad, b.grad])}
assert norm == 13
# sphinx_gallery_end_ignore

a, b = parameters()
for p in (a, b):
    clip_grad_norm_(p, max_norm=1.0)
print("norm, one by one:", a.grad, b.grad)
# sphinx_gallery_start_ignore
_rows["each"] = torch.cat([a.grad, b.grad])
# sphinx_gallery_end_ignore

a, b = parameters()
clip_grad_value_([a, b], clip_value=1.0)
print("by value:        ", a.grad, b.grad)
# sphinx_gallery_start_ignore
_rows["value"] = torch.cat([a.grad, b.grad])
# sphinx_gallery_end_ignore

# sphinx_gallery_start_ignore
_norms = [f"{_after.norm():.2f}" for _after in _rows.values()]
assert _norms == ["1.00", "1.41", "1.73"]
_all, _each, _ = _rows.values()
assert torch.allclose(_all, torch.tensor([3.0, 4.0, 12.0]) / 13)
assert torch.allclose(_each, torch.tensor([0.6, 0.8, 1.0]))


def _grads(*values, dtype=torch.float32, clip=clip_grad_norm_, **options):
    p = torch.zeros(len(values), dtype=dtype, requires_grad=True)
    p.grad = torch.tensor(values, dtype=dtype)
    returned = clip(p, **options)
    return returned, p.grad


for _dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
    for _foreach in (None, True, False):
        _options = {"max_norm": 1.0, "foreach": _foreach, "dtype": _dtype}
        _norm, _small = _grads(0.3, -0.4, **_options)  # below the limit: untouched
        assert torch.equal(_small, torch.tensor([0.3, -0.4], dtype=_dtype))
        _norm, _large = _grads(3, -4, **_options)
        assert abs(_norm - 5) < 0.05 and abs(_large.norm() - 1) < 0.01
        _value = {"clip_value": 1.0, "foreach": _foreach, "dtype": _dtype}
        assert _grads(0.5, -4, clip=clip_grad_value_, **_value)[1].tolist() == [0.5, -1]
_norm, _large = _grads(3 + 4j, dtype=torch.complex64, max_norm=1.0)
assert _norm == 5 and abs(_large.abs() - 1) < 1e-5
TORCH = tuple(int(part) for part in torch.__version__.split(".")[:2])
_table, _raised = nn.Embedding(3, 2, sparse=True), []
_table(torch.tensor([1])).sum().backward()
for _clip in (clip_grad_norm_, clip_grad_value_):
    try:
        _clip(_table.parameters(), 1.0)
    except NotImplementedError:
        _raised.append(_clip)
_both = [clip_grad_norm_, clip_grad_value_]
assert _raised == (_both[1:] if TORCH >= (2, 14) else _both)
_norm_after = _table.weight.grad.to_dense().norm()  # of the gradients 1 and 1
assert abs(_norm_after - (1 if TORCH >= (2, 14) else 2**0.5)) < 1e-5
_skipped, _three = torch.zeros(2, requires_grad=True), parameters()
_total = nn.utils.get_total_norm(
    [p.grad for p in [*_three, _skipped] if p.grad is not None]
)
assert _total == 13 and _three[1].grad == 12
assert clip_grad_norm_([*_three, _skipped], 1.0) == 13 and _skipped.grad is None
# sphinx_gallery_end_ignore

# %%
# - **By norm, all gradients are multiplied by the same factor. So the whole gradient becomes shorter and keeps its direction.**
#   The factor is :math:`\min\left(1, \frac{\text{max\_norm}}{\text{norm} + 10^{-6}}\right)`.
# - One call for each parameter gives each its own factor, so the direction changes.
# - By value, each number is limited to the range from -1 to 1. The direction changes, too.
#
# A norm well below ``max_norm`` changes nothing. So read the norms of a healthy run in your log before you choose ``max_norm``.
# Sparse gradients, as of ``nn.Embedding(..., sparse=True)``, raise a ``NotImplementedError`` in PyTorch 2.13.
#
# .. torch-changed:: 2.14
#    :probe: refuses: torch.linalg.vector_norm(torch.eye(2).to_sparse())
#
#    On 2.14 a sparse gradient has a norm (`pytorch#185309 <https://github.com/pytorch/pytorch/pull/185309>`__), and
#    ``clip_grad_norm_`` clips it. ``clip_grad_value_`` still raises.

# %%
# ``clip_grad_norm_`` does not remove NaN or infinity
# ---------------------------------------------------
# The norm of gradients with a NaN is NaN, so the factor is NaN, and so is each gradient afterwards. With an infinite norm the
# factor is 0. Then finite gradients become 0, and infinite ones become NaN. The norm of large finite numbers can overflow, too.

for gradient in ([3.0, float("nan")], [3.0, float("inf")], [3.0, 1e20]):
    w = torch.zeros(2, requires_grad=True)
    w.grad = torch.tensor(gradient)
    norm = clip_grad_norm_([w], max_norm=1.0)
    print(f"{gradient!s:<12} norm {norm.item()}, clipped to {w.grad.tolist()}")

# sphinx_gallery_start_ignore
_nan = float("nan")
for _foreach in (True, False):
    _options = {"max_norm": 1.0, "foreach": _foreach}
    assert _grads(3.0, _nan, **_options)[1].isnan().all()
    _norm, _after = _grads(3.0, float("inf"), **_options)
    assert _norm.isinf() and _after[0] == 0 and _after[1].isnan()
    _norm, _after = _grads(3.0, 1e20, **_options)
    assert _norm.isinf() and not _after.any()
    _options["max_norm"] = float("inf")
    assert _grads(3.0, 4.0, **_options)[1].tolist() == [3, 4]
    assert _grads(3.0, 1e20, **_options)[1].isnan().all()
# sphinx_gallery_end_ignore

# %%
# With ``error_if_nonfinite=True`` such a norm raises an error and the gradients do not change:

w.grad = torch.tensor([3.0, float("nan")])
try:
    clip_grad_norm_([w], max_norm=1.0, error_if_nonfinite=True)
except RuntimeError as error:
    message = str(error)
    print("RuntimeError:", message.split(" To disable")[0])
print("w.grad:", w.grad.tolist())

# sphinx_gallery_start_ignore
assert "is non-finite, so it cannot be clipped" in message and w.grad[0] == 3
# sphinx_gallery_end_ignore

# %%
# With gradient accumulation: once, before the step
# -------------------------------------------------
# Clip the finished sum, not the sum of some pieces. Four pieces of two samples, clipped once, and clipped after each piece:


def accumulated(clip_each_piece):
    torch.manual_seed(0)
    layer, x, target = nn.Linear(3, 1), torch.randn(8, 3), 5 * torch.randn(8, 1)
    for piece in torch.arange(8).chunk(4):
        loss = nn.functional.mse_loss(layer(x[piece]), target[piece]) / 4
        loss.backward()
        if clip_each_piece:
            clip_grad_norm_(layer.parameters(), max_norm=1.0)
    clip_grad_norm_(layer.parameters(), max_norm=1.0)
    return torch.cat([p.grad.flatten() for p in layer.parameters()])


once, each = accumulated(clip_each_piece=False), accumulated(clip_each_piece=True)
angle = torch.cosine_similarity(once, each, dim=0).arccos().rad2deg()
print(f"angle between the two steps: {angle:.0f} degrees")

# sphinx_gallery_start_ignore
torch.manual_seed(0)
_layer, _x, _target = nn.Linear(3, 1), torch.randn(8, 3), 5 * torch.randn(8, 1)
nn.functional.mse_loss(_layer(_x), _target).backward()
_whole = torch.cat([p.grad.flatten() for p in _layer.parameters()])
assert _whole.norm() > 1 and torch.allclose(once, _whole / _whole.norm(), atol=1e-5)
assert angle > 10
_layer.zero_grad()
for _piece in torch.arange(8).chunk(4):
    (nn.functional.mse_loss(_layer(_x[_piece]), _target[_piece]) / 4).backward()
    assert clip_grad_norm_(_layer.parameters(), max_norm=1.0) > 1
# sphinx_gallery_end_ignore

# %%
# Each clipping also shortens the pieces before. So the last pieces count more than the first.

# %%
# With GradScaler: ``unscale_`` first
# -----------------------------------
# In ``float16`` training, ``scaler.scale(loss).backward()`` leaves gradients that are too large by a factor. ``unscale_``
# divides by it, and ``scaler.step`` does not divide again.


def mixed_step(unscale):
    torch.manual_seed(0)
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu")  # "cuda" on a GPU
    before = model.weight.detach().clone()
    loss = model(torch.ones(1, 2)).sum()
    scaler.scale(loss).backward()
    if unscale:
        scaler.unscale_(optimizer)
    norm = clip_grad_norm_(model.parameters(), max_norm=1.0)
    scaler.step(optimizer)
    scaler.update()
    return norm.item(), (model.weight - before).norm().item()


for unscale in (True, False):
    norm, moved = mixed_step(unscale)
    print(f"unscale_: {unscale!s:<5}  norm {norm:>9.1f}   weight moved by {moved:.7f}")

# sphinx_gallery_start_ignore
(_right_norm, _right), (_wrong_norm, _wrong) = mixed_step(True), mixed_step(False)
assert abs(_right_norm - 3**0.5) < 1e-5 and abs(_right - 0.1 * (2 / 3) ** 0.5) < 1e-5
assert _wrong_norm > 1e5 and 0 < _wrong < 1e-5
_net, _scaler = nn.Linear(2, 1), torch.amp.GradScaler("cpu")
_optimizer = torch.optim.SGD(_net.parameters(), lr=0.1)
_scaler.scale(_net(torch.ones(1, 2)).sum()).backward()
_scaler.unscale_(_optimizer)
_raised = []
_scaler.update()
_optimizer.zero_grad()
_scaler.scale(_net(torch.ones(1, 2)).sum() * float("inf")).backward()
_scaler.unscale_(_optimizer)
try:
    clip_grad_norm_(_net.parameters(), 1.0, error_if_nonfinite=True)
except RuntimeError as error:
    _raised.append(str(error))
assert len(_raised) == 1 and "is non-finite" in _raised[0]
_start = _net.weight.detach().clone()
clip_grad_norm_(_net.parameters(), 1.0)
_scaler.step(_optimizer)  # left out: unscale_ has seen the infinity
_factor = _scaler.get_scale()
_scaler.update()
assert torch.equal(_net.weight, _start) and _scaler.get_scale() == _factor / 2
# sphinx_gallery_end_ignore

# %%
# Call ``unscale_`` once for each step, after the last piece of an accumulation. Leave ``error_if_nonfinite`` off, because an
# infinite gradient is normal for a scaler: it skips that step. :ref:`The page on GradScaler
# <sphx_glr_gallery_memory_grad_scaler.py>` explains it.

# %%
# By hand: ``get_total_norm`` and ``clip_grads_with_norm_``
# ---------------------------------------------------------
# These are the two halves of ``clip_grad_norm_``. The first takes gradients, and the second takes *parameters*:

from torch.nn.utils import clip_grads_with_norm_

a, b = parameters()
gradients = [p.grad for p in (a, b) if p.grad is not None]
norm = get_total_norm(gradients)  # to log it, this line is enough

clip_grads_with_norm_(gradients, max_norm=1.0, total_norm=norm)
print(f"given the gradients:  norm {get_total_norm(gradients):.0f}")
clip_grads_with_norm_([a, b], max_norm=1.0, total_norm=norm)
print(f"given the parameters: norm {get_total_norm(gradients):.0f}")

# sphinx_gallery_start_ignore
assert norm == 13 and abs(get_total_norm([a.grad, b.grad]) - 1) < 1e-5
_stages = parameters()
_squares = [get_total_norm([p.grad]) ** 2 for p in _stages]  # of two processes
for _p in _stages:
    clip_grads_with_norm_([_p], 1.0, sum(_squares) ** 0.5)
assert all(torch.allclose(p.grad, q.grad) for p, q in zip(_stages, (a, b), strict=True))
_no_root = parameters()
clip_grads_with_norm_(_no_root, 1.0, sum(_squares))
assert get_total_norm([p.grad for p in _no_root]) < 0.1
_layer = nn.Linear(3, 2)
(100 * _layer(torch.ones(4, 3))).sum().backward()
_generator = _layer.parameters()
_norm = get_total_norm([p.grad for p in _generator])
with warnings.catch_warnings():
    warnings.simplefilter("error")
    for _foreach in (None, False):
        _gradients = [p.grad for p in _layer.parameters()]
        for _given in (_gradients, _generator):
            clip_grads_with_norm_(_given, 1.0, _norm, foreach=_foreach)
            assert get_total_norm([p.grad for p in _layer.parameters()]) == _norm > 1
    _of_weights = get_total_norm(_layer.parameters())
assert _of_weights < _norm
# sphinx_gallery_end_ignore

# %%
# The first call gets the gradients, which have no ``.grad``. So it clips nothing, without an error (`transformers#46113
# <https://github.com/huggingface/transformers/pull/46113>`__). To log the norm, avoid ``max_norm=inf``: if the norm overflows,
# finite gradients become NaN. With pipeline stages, take the root of the sum of all stages' squared norms between the calls.
#
# If FSDP2 shards all parameters, ``clip_grad_norm_`` is enough (`torchtune#2169
# <https://github.com/meta-pytorch/torchtune/issues/2169>`__). If it shards only some, you get *got mixed torch.Tensor and
# DTensor* (`accelerate#4219 <https://github.com/huggingface/accelerate/pull/4219>`__), and the other gradients are not averaged
# over the processes. Call ``fully_shard`` on the root module, too.

# %%
# What people get wrong
# ---------------------
# **Clipping after the step**, **clipping the loss**. Neither raises an error. With ``w = 10``, the loss :math:`w^2` has the
# gradient 20, and the learning rate is 0.1. A clipped step should move ``w`` by 0.1:


def distance_moved(mistake):
    w = torch.tensor([10.0], requires_grad=True)
    optimizer = torch.optim.SGD([w], lr=0.1)
    loss = (w**2).sum()
    if mistake == "clip the loss":
        loss = loss.clamp(max=1.0)
    loss.backward()
    if mistake is None:
        clip_grad_norm_([w], max_norm=1.0)
    optimizer.step()
    if mistake == "clip after step":
        clip_grad_norm_([w], max_norm=1.0)
    return 10 - w.item()


for mistake in (None, "clip after step", "clip the loss"):
    print(f"{mistake or 'right':<16} w moved by {distance_moved(mistake):.2f}")

# sphinx_gallery_start_ignore
_moved = [distance_moved(m) for m in (None, "clip after step", "clip the loss")]
assert abs(_moved[0] - 0.1) < 1e-5 and abs(_moved[1] - 2) < 1e-5 and _moved[2] == 0
# sphinx_gallery_end_ignore

# %%
# The step has used the whole gradient. The clamped loss is constant above its limit, so its gradient is zero there.
#
# **A generator that is empty the second time.** ``model.parameters()`` is a generator. Write it in each call, or keep a list.
# With a used generator, ``clip_grad_norm_`` clips nothing, and warns:

weights = nn.RNN(1, 16).parameters()  # list(...) would be right
optimizer = torch.optim.SGD(weights, lr=0.2)  # reads the generator to its end
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    norm = clip_grad_norm_(weights, max_norm=1.0)
print(f"norm {norm.item()}\nUserWarning: {caught[0].message}")

# sphinx_gallery_start_ignore
assert norm == 0 and len(caught) == 1 and caught[0].category is UserWarning
assert "empty generator, no gradient clipping will occur" in str(caught[0].message)
# sphinx_gallery_end_ignore

# %%
# Exercise
# --------
# A weight gets the gradient 5 in each of 200 steps. What does ``clip_grad_norm_`` with ``max_norm=1`` change with SGD, and what
# with Adam? And with Adam, if the gradient of step 100 is 5000?
#
# .. solution::
#
# SGD moves a fifth as far. Adam divides each gradient by the size of its recent gradients. So a factor that is the same in
# each step changes next to nothing. One large gradient is different: Adam forgets its square slowly, so each of the following
# steps is shorter. Clipping prevents that.


def travelled(optimizer_class, clip, spike=5.0):
    w = torch.tensor([0.0], requires_grad=True)
    optimizer = optimizer_class([w], lr=0.01)
    for step in range(200):
        w.grad = torch.tensor([spike if step == 100 else 5.0])
        if clip:
            clip_grad_norm_([w], max_norm=1.0)
        optimizer.step()
    return -w.item()


SGD, Adam = torch.optim.SGD, torch.optim.Adam
for case in ((SGD,), (Adam,), (Adam, 5000.0)):
    free, limited = (travelled(case[0], clip, *case[1:]) for clip in (False, True))
    gradient = "spike of 5000" if case[1:] else "always 5"
    print(f"{case[0].__name__:<5} {gradient:<14} {free:6.2f}  clipped {limited:5.2f}")

# sphinx_gallery_start_ignore
assert abs(travelled(SGD, True) - travelled(SGD, False) / 5) < 1e-3
assert abs(travelled(Adam, True) - travelled(Adam, False)) < 1e-3
assert travelled(Adam, False, 5000.0) < 0.7 * travelled(Adam, True, 5000.0)
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_debugging_finding_nans.py`, where a NaN comes from.
# - :ref:`sphx_glr_gallery_differentiation_accumulation.py`, one step for several batches.
# - In PyTorch's reference: `clip_grad_norm_
#   <https://docs.pytorch.org/docs/stable/generated/torch.nn.utils.clip_grad_norm_.html>`__, `clip_grad_value_
#   <https://docs.pytorch.org/docs/stable/generated/torch.nn.utils.clip_grad_value_.html>`__ and `gradient clipping with
#   GradScaler <https://docs.pytorch.org/docs/stable/notes/amp_examples.html#gradient-clipping>`__.
