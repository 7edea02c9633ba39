r"""
Loss is NaN: find what made it
==============================

.. index::
   ! single: Loss is nan, stopping training
   ! single: loss becomes NaN after a few steps
   ! single: loss becomes inf during training
   ! single: cross_entropy returns NaN
   ! single: The total norm for gradients is non-finite, so it cannot be clipped
   single: NaN in float16 (fp16) and mixed precision
   single: NaN in the input data
   single: find the layer that returns NaN

.. in-short::

   Often the learning rate is too large, or the data has a NaN. Test the batch first, then the output of each module (tuples and
   dicts need a loop):

   .. code-block:: python

      assert x.isfinite().all()
      def check(module, inputs, output):
          if torch.is_tensor(output):
              assert output.isfinite().all(), module
      torch.nn.modules.module.register_module_forward_hook(check)

   A dispatch mode names the operation and your line. Anomaly mode is for a NaN that is made in *backward*, because it tests
   gradients only.
"""

# %%
# Loss is nan, stopping training
# ------------------------------
# PyTorch does not print this line. Many training scripts do, and stop. (The ``Trainer`` of Transformers leaves a NaN out of its
# log by default: you see a loss of 0.0 and ``grad_norm: nan``.) Three runs of one small network:

import traceback
from functools import partial

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

torch.manual_seed(0)
x = torch.rand(64, 3) * 10
y = x.sum(dim=1, keepdim=True)


def train(lr, bad_step=None):
    layers = [nn.Linear(3, 64), nn.LeakyReLU(), nn.Linear(64, 64), nn.Linear(64, 1)]
    model = nn.Sequential(*layers)
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    log = []
    for step in range(100):
        batch = x.clone()
        if step == bad_step:
            batch[0, 0] = float("nan")
        loss = F.mse_loss(model(batch), y)
        log.append(loss.item())
        if not loss.isfinite():
            print(f"Loss is {loss.item()}, stopping training")
            break
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model, log


model, too_fast = train(lr=0.1)
_, bad_batch = train(lr=0.001, bad_step=6)
right, fine = train(lr=0.001)
print(f"steps: {len(too_fast)}, {len(bad_batch)}, {len(fine)}   loss: {fine[-1]:.2f}")

# sphinx_gallery_start_ignore
assert fine[-1] < 5 and fine[-1] < fine[0] / 10 and len(fine) == 100
assert too_fast[:-1] == sorted(too_fast[:-1])
assert len(bad_batch) == 7 and max(bad_batch[:6]) < 300
# sphinx_gallery_end_ignore

# %%
# If the learning rate is too large, the loss grows before the NaN. Bad data comes without a warning:

import matplotlib.pyplot as plt

# figure: Two logs on a logarithmic axis. With a learning rate of 0.1 the loss grows in each step to more than 1e30, and is NaN
#   then. With a NaN in the batch of step 6, the loss falls until step 5 and is NaN at step 6.
fig, ax = plt.subplots(figsize=(7, 2), layout="constrained")
logs = ((too_fast, "#c2410c", "lr=0.1"), (bad_batch, "#2563eb", "bad batch"))
for values, color, name in logs:
    last = [v < float("inf") for v in values].index(False)
    ax.semilogy(values[:last], "o-", color=color, label=name)
    ax.annotate("NaN", (last, values[last - 1]), color=color, ha="center")
title = "Grows before the NaN, or comes from nowhere"
ax.set(xlabel="step", ylabel="loss", title=title)
ax.legend(loc="upper right")

# sphinx_gallery_start_ignore
assert max(v for v in too_fast if v < float("inf")) > 1e30
# sphinx_gallery_end_ignore

# %%
# Which module makes it
# ---------------------
# **A sum or product with a NaN is NaN, so look for the first one. What comes after it says nothing.** Call ``watch(model)``
# once, before the loop. The first module whose output is not finite raises, with the largest number of each of its inputs,
# parameters and buffers:


def check(name, module, inputs, kwargs, output):
    if torch.is_tensor(output) and not output.isfinite().all():
        parts = {f"input {i}": given for i, given in enumerate(inputs)} | kwargs
        parts |= dict(module.named_parameters()) | dict(module.named_buffers())
        parts = {n: t for n, t in parts.items() if torch.is_tensor(t) and t.numel()}
        largest = {part: f"{(1.0 * t).abs().max():.0e}" for part, t in parts.items()}
        raise ArithmeticError(f"module {name}, {module}: {largest}")


def watch(model):
    for name, module in model.named_modules():
        module.register_forward_hook(partial(check, name), with_kwargs=True)


# sphinx_gallery_start_ignore
raised = []
# sphinx_gallery_end_ignore
try:
    watch(model)
    model(x)
except ArithmeticError as error:
    # sphinx_gallery_start_ignore
    raised.append(str(error))
    # sphinx_gallery_end_ignore
    print("ArithmeticError:", error)


# sphinx_gallery_start_ignore
class _Log(nn.Module):
    def forward(self, x):
        return x.log()


def _named(model, *inputs):
    watch(model)
    try:
        model(*inputs)
    except ArithmeticError as error:
        return str(error)


assert len(raised) == 1 and raised[0].startswith("module 2, Linear")
assert min(float(n) for n in raised[0].split("'")[3:8:4]) > 1e10
_nan = torch.tensor([[float("nan"), 1.0]])
_said = _named(nn.Sequential(nn.Linear(2, 2), nn.ReLU()), _nan)
assert _said.startswith("module 0, ") and "{'input 0': 'nan', 'weight': '" in _said
_said = _named(nn.Sequential(nn.ReLU(), _Log(), nn.Linear(2, 2)), -torch.ones(1, 2))
assert _said == "module 1, _Log(): {'input 0': '0e+00'}"
_said, _log = [], _Log()
watch(_log)
try:
    _log(x=torch.zeros(2))  # passed by name
except ArithmeticError as error:
    _said.append(str(error))
assert _said == ["module , _Log(): {'x': '0e+00'}"]
_said, _log = [], _Log()
_log.register_buffer("empty", torch.ones(0))
assert _named(_log, torch.zeros(2)) == "module , _Log(): {'input 0': '0e+00'}"
assert _named(nn.Sequential(nn.Linear(2, 2), nn.ReLU()), torch.ones(1, 2)) is None
# modules that return a tuple or a dict are passed over
assert _named(nn.LSTM(2, 2), _nan) is None
# one NaN batch stays in the running statistics
_norm = nn.BatchNorm1d(2)
_norm(torch.cat([_nan, _nan]))
_said = _named(_norm.eval(), torch.ones(1, 2))
assert "'input 0': '1e+00', 'weight': '1e+00'" in _said
assert "'running_mean': 'nan'" in _said
_norm.reset_running_stats()
assert _norm(torch.ones(1, 2)).isfinite().all()
# the hook of the box


def _check(module, inputs, output):
    if torch.is_tensor(output):
        assert output.isfinite().all(), module


_handle, _raised = nn.modules.module.register_module_forward_hook(_check), []
try:
    nn.LSTM(2, 2)(torch.ones(1, 2))
    nn.Sequential(nn.ReLU(), _Log())(-torch.ones(1, 2))
except AssertionError as error:
    _raised.append(str(error))
_handle.remove()
assert _raised == ["_Log()"]
# sphinx_gallery_end_ignore

# %%
# - ``nan`` or ``inf`` in the input of the first module (not in a mask): the data. See 1 below.
# - ``nan`` or ``inf`` in the input of a later module: a line of ``forward`` before it, or a module that ``check`` passes over,
#   because it returns a tuple or a dict, such as ``nn.LSTM``.
# - ``nan``, ``inf`` or huge numbers in a weight, as here: the last steps wrote them. See 2 and 5. If the loss was fine until
#   then: :ref:`sphx_glr_gallery_errors_nan_in_backward.py`.
# - ``nan`` in ``running_mean``: an earlier batch had a NaN. Call ``reset_running_stats()`` on that layer.
# - Numbers of usual size: the module makes the NaN, or the loss if there is no error. See 3 to 6.

# %%
# The usual causes, in this order
# -------------------------------
# **1. The data.** Are inputs and targets finite? A missing value of a table is NaN.

table = torch.tensor([[30.0, 1.0], [float("nan"), 0.0], [25.0, 1.0]])
finite = table.isfinite().all(dim=1)
print("rows with a NaN:", (~finite).nonzero().flatten().tolist())
table = table[finite]
assert table.isfinite().all()

# %%
# **2. The learning rate.** Divide it by 10 until the loss falls, as above. Scale inputs and targets to about 1. Clip the
# gradients. With ``error_if_nonfinite=True`` the clipping raises before the optimizer writes a NaN into the weights:

try:
    batch = x.clone()
    batch[0, 0] = float("nan")
    F.mse_loss(right(batch), y).backward()
    nn.utils.clip_grad_norm_(right.parameters(), 100.0, error_if_nonfinite=True)
except RuntimeError as error:
    message = str(error)
    print("RuntimeError:", message.split(" To disable")[0])

# sphinx_gallery_start_ignore
assert message.startswith(
    "The total norm of order 2.0 for gradients from `parameters` is non-finite, so it "
)
# a GradScaler skips the step itself
_model, _said = nn.Linear(3, 1), []
_optimizer, _scaler = torch.optim.SGD(_model.parameters()), torch.amp.GradScaler("cpu")
with torch.autocast("cpu", dtype=torch.float16):
    loss = F.mse_loss(_model(torch.ones(8, 3)), 10 * torch.ones(8, 1))
_scaler.scale(loss).backward()
_scaler.unscale_(_optimizer)
try:
    nn.utils.clip_grad_norm_(_model.parameters(), 1.0, error_if_nonfinite=True)
except RuntimeError as error:
    _said.append(str(error))
assert len(_said) == 1 and "is non-finite" in _said[0]
_scaler.step(_optimizer)
assert all(p.isfinite().all() for p in _model.parameters())
# sphinx_gallery_end_ignore

# %%
# (Not with a ``GradScaler``, which skips infinite gradients itself.)
#
# **3. log(0), the root of a negative number, 0 / 0.** Clamp *before* the operation, which makes the gradient finite.
# (Where it clamps, the gradient is 0. So for the log of a probability in a loss, see 4.)

p = torch.tensor([0.0, 1.0])
variance = torch.tensor(-1e-8)  # mean(x**2) - mean(x)**2, after rounding
hits, total = torch.tensor(0.0), torch.tensor(0.0)
print("p * log(p):", (p * p.log()).sum(), "->", (p * p.clamp(min=1e-6).log()).sum())
print("root:      ", variance.sqrt(), "->", variance.clamp(min=1e-6).sqrt())
print("0 / 0:     ", hits / total, "->", hits / total.clamp(min=1))

# sphinx_gallery_start_ignore
assert (p * p.log()).sum().isnan() and (p * p.clamp(min=1e-6).log()).sum() == 0
assert variance.sqrt().isnan() and variance.clamp(min=1e-6).sqrt() > 0
assert (hits / total).isnan() and hits / total.clamp(min=1) == 0
for _dtype in (torch.float32, torch.float16, torch.bfloat16):
    for _numbers, _cure in (
        (p, lambda p: p * p.clamp(min=1e-6).log()),
        (variance, lambda variance: variance.clamp(min=1e-6).sqrt()),
        (total, lambda total: 1 / total.clamp(min=1)),
    ):
        _input = _numbers.to(_dtype).requires_grad_()
        _cured = _cure(_input).sum()
        assert _cured.isfinite()
        assert torch.autograd.grad(_cured, _input)[0].isfinite().all()
_input = p.clone().requires_grad_()
_slope = torch.autograd.grad(-_input.clamp(min=1e-6).log().sum(), _input)[0]
assert _slope.tolist() == [0, -1]
# sphinx_gallery_end_ignore

# %%
# **4. Softmax and log by hand.** Softmax rounds to 0, and its log is ``-inf``. Give the scores to ``cross_entropy``:

scores, target = torch.tensor([[0.0, 200.0]]), torch.tensor([[0.0, 1.0]])
loss = -(target * scores.softmax(dim=1).log()).sum()
print("by hand:", loss, "->", F.cross_entropy(scores, target))

# sphinx_gallery_start_ignore
assert loss.isnan() and F.cross_entropy(scores, target) == 0
# sphinx_gallery_end_ignore

# %%
# **5. float16.** After ``model.half()``, ``Adam`` can write NaN, because its ``eps`` of 1e-8 is 0 in ``float16``: keep
# ``float32`` weights under autocast. The largest number is 65,504. In attention, the division by the root of the width often
# comes after the overflow. Use ``bfloat16``, divide first, or call ``F.scaled_dot_product_attention``:

torch.manual_seed(0)
q = 60 * torch.randn(1, 4, 64)
for dtype in (torch.float16, torch.bfloat16):
    with torch.autocast("cpu", dtype=dtype):
        late = q @ q.transpose(1, 2) / 8
        early = (q / 8) @ q.transpose(1, 2)
    print(
        f"{dtype!s:<15} largest score {late.max():.0f}, divided early {early.max():.0f}"
    )

# sphinx_gallery_start_ignore
assert torch.finfo(torch.float16).max == 65504
for _class in (torch.optim.Adam, torch.optim.AdamW):
    for _foreach in (False, True):
        _w = torch.ones(3, dtype=torch.float16, requires_grad=True)
        _w.grad = torch.tensor([0, 1e-3, 1], dtype=torch.float16)
        _class([_w], foreach=_foreach).step()
        assert _w.isfinite().tolist() == [False, False, True] and _w[0].isnan()
for _dtype, _isnan in ((torch.float16, True), (torch.bfloat16, False)):
    with torch.autocast("cpu", dtype=_dtype):
        assert (q @ q.transpose(1, 2) / 8).softmax(-1).isnan().any() == _isnan
        assert F.scaled_dot_product_attention(*[q[:, None]] * 3).isfinite().all()
        assert ((q / 8) @ q.transpose(1, 2)).softmax(-1).isfinite().all()
# sphinx_gallery_end_ignore

# %%
# **6. Nothing is left**: a sequence is all padding, a selection is empty, or all labels are ``ignore_index``. Divide by at
# least 1, or leave such samples out:

row = torch.zeros(1, 2)
padding = torch.tensor([[True, True]])
weights = row.masked_fill(padding, -torch.inf).softmax(dim=1)
finite = row.masked_fill(padding, torch.finfo(row.dtype).min).softmax(dim=1)
print("attention:", weights, "->", finite * ~padding)

errors = torch.tensor([0.1, 0.2])
large = errors[errors > 1]
print("mean:     ", large.mean(), "->", large.sum() / max(len(large), 1))

labels = torch.tensor([-100, -100])
loss = F.cross_entropy(torch.zeros(2, 3), labels)
count = (labels != -100).sum()
total = F.cross_entropy(torch.zeros(2, 3), labels, reduction="sum")
print("labels:   ", loss, "->", total / count.clamp(min=1))

# sphinx_gallery_start_ignore
assert weights.isnan().all() and not (finite * ~padding).any()
assert large.mean().isnan() and loss.isnan() and total / count.clamp(min=1) == 0
_attention = nn.MultiheadAttention(2, 1, batch_first=True)
assert _attention(*[torch.ones(1, 2, 2)] * 3, key_padding_mask=padding)[0].isnan().all()
# sphinx_gallery_end_ignore

# %%
# A mode names the operation
# --------------------------
# A ``TorchDispatchMode`` sees the PyTorch operations that run while it is on, in your code, in modules and in backward. This
# one is a trap:


class NanTrap(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        if "empty" in str(func):  # new memory, with whatever was there before
            return result
        for t in result if isinstance(result, (tuple, list)) else (result,):
            if torch.is_tensor(t) and t.isnan().any():
                raise ArithmeticError(f"{func} returned NaN")
        return result


def scores(x):
    total = x.sum()
    shares = x / total
    ranked = shares.sort().values
    return torch.log(ranked).mean()


try:
    with NanTrap():
        scores(torch.tensor([2.0, -3.0, 2.0]))
except ArithmeticError as error:
    message, stack = str(error), traceback.extract_tb(error.__traceback__)

print("ArithmeticError:", message)
print(next(frame.line for frame in stack if frame.name == "scores"))

# sphinx_gallery_start_ignore
assert message == "aten.log.default returned NaN"
assert [f.line for f in stack if f.name == "scores"] == [
    "return torch.log(ranked).mean()"
]
torch.use_deterministic_algorithms(True)  # fills new memory with NaN
with NanTrap():
    assert torch.empty(3).isnan().all() and torch.zeros(3).new_empty(3).isnan().all()
    nn.Linear(64, 64)
torch.use_deterministic_algorithms(False)


def _trapped(function):
    try:
        with NanTrap():
            function()
    except ArithmeticError as error:
        return str(error).split()[0]


_zero = torch.zeros(2)
assert _trapped(lambda: (torch.complex(_zero, _zero) / 0).real) == "aten.div.Tensor"
assert _trapped(lambda: torch._foreach_div_([_zero.clone()], [_zero])) is None
assert _trapped(lambda: _zero.clone().div_(_zero)) == "aten.div_.Tensor"
assert _trapped(lambda: (_zero.sort(), torch.tensor([True]).any(), _zero < 1)) is None
# sphinx_gallery_end_ignore

# %%
# The trap names the first operation that it saw return a NaN, and the traceback names your line. (In backward, it names the
# line that called ``backward()``.) But it misses what an operation writes without returning it, as optimizers with
# ``foreach=True`` do. Use the trap for a step whose loss or gradient *is* NaN. In a healthy step it may raise, because PyTorch
# makes some NaNs and throws them away, as in the backward of ``(x - x.mean()) / (x.std() + 1e-5)`` for equal numbers.
#
# **On a GPU**, the hooks wait for the GPU once for each call of a module, the trap once for each tensor.

# %%
# Made in backward
# ----------------
# A sigmoid is rounded to 0, so its logarithm is ``-inf``, but a ``clamp`` hides that. The loss is 100, and the gradient is NaN:

x = torch.tensor(-200.0, requires_grad=True)
p = torch.sigmoid(x)
logarithm = torch.log(p)
loss = -logarithm.clamp(min=-100)
loss.backward()

# graph: loss -- Backward runs from right to left: the gradient is 0 past clamp, and NaN past log

print("loss:", loss.item(), "  gradient:", x.grad.item())

# sphinx_gallery_start_ignore
assert loss == 100 and p == 0 and logarithm.isinf() and x.grad.isnan()
# sphinx_gallery_end_ignore

# %%
# ``clamp`` sends back 0 for a number that it cut off. The derivative of the logarithm divides that by ``p``, and :math:`0 / 0`
# is NaN. For this there is :ref:`anomaly mode <sphx_glr_gallery_debugging_anomaly_detection.py>`. It names ``LogBackward0`` and
# your line. The cure is an operation that stays in range, such as ``-F.logsigmoid(x)``; :ref:`more on such gradients
# <sphx_glr_gallery_errors_nan_in_backward.py>`.

# sphinx_gallery_start_ignore
import contextlib
import warnings


def _message_of(step, tool):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the stack of the forward pass
        try:
            with tool():
                step()
        except (RuntimeError, ArithmeticError) as error:
            return str(error)


def _clamped():
    x = torch.tensor(-200.0, requires_grad=True)
    (-torch.log(torch.sigmoid(x)).clamp(min=-100)).backward()


def _normalized():
    x = torch.tensor([2.0, 2.0, 2.0], requires_grad=True)
    ((x - x.mean()) / (x.std() + 1e-5)).square().sum().backward()
    return x.grad.tolist()


assert "LogBackward0" in _message_of(_clamped, torch.autograd.detect_anomaly)
_x = torch.tensor(-1.0, requires_grad=True)
with torch.autograd.set_detect_anomaly(True):  # it does not test the forward pass
    _loss = torch.log(_x)
    _loss.backward()
assert _loss.isnan() and _x.grad == -1
assert _normalized() == [0, 0, 0]
assert "aten.div.Tensor returned NaN" in _message_of(_normalized, NanTrap)
_x = torch.tensor(-200.0, requires_grad=True)
(-F.logsigmoid(_x)).backward()
assert _x.grad == -1


class _Count(TorchDispatchMode):
    reads = tensors = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        self.reads += func.__name__ in (
            "is_nonzero.default",
            "_local_scalar_dense.default",
        )
        parts = result if isinstance(result, (tuple, list)) else (result,)
        self.tensors += sum(map(torch.is_tensor, parts)) * ("empty" not in str(func))
        return result


def _count(tool, watched=False):
    healthy = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 2))
    if watched:
        watch(healthy)
    with _Count() as seen, tool():
        healthy(torch.ones(4, 3)).mean().backward()
    return seen


_none, _hooks = (_count(contextlib.nullcontext, watched) for watched in (False, True))
_trap = _count(NanTrap)
assert (_none.reads, _hooks.reads) == (0, 4)
assert _trap.reads == _none.tensors > 3 * _hooks.reads
# sphinx_gallery_end_ignore

# %%
# What people get wrong
# ---------------------
# **Comparing with NaN.** A NaN differs even from itself, so the first test is never true:

loss = torch.tensor(float("nan"))
print(loss.item() == float("nan"), loss.isnan().item(), loss.isfinite().item())

# sphinx_gallery_start_ignore
assert loss.item() != float("nan") and loss.isnan() and loss != loss
# sphinx_gallery_end_ignore

# %%
# **Replacing the NaN.** ``nan_to_num`` makes the loss look healthy. But the gradient of the root is still NaN, because backward
# divides 0 by that NaN:

for function in (torch.log, torch.sqrt):
    x = torch.tensor([-1.0, 4.0], requires_grad=True)
    loss = torch.nan_to_num(function(x)).sum()
    loss.backward()
    print(f"{function.__name__:<5} loss {loss.item():.2f}   gradient {x.grad.tolist()}")
assert loss.isfinite() and x.grad[0].isnan()

# sphinx_gallery_start_ignore
assert x.sqrt().grad_fn(torch.tensor([0.0, 1.0]))[0].isnan()
# sphinx_gallery_end_ignore

# %%
# Exercise
# --------
# An attention mask puts ``-inf`` at the entries to be left out, and ``softmax`` makes weights of the rest. In one row, all
# entries are masked. What does the trap say? Change the code so that such a row gets weights of 0, and the other row stays as
# it is.
#
# .. solution::
#
# The softmax subtracts the largest entry of the row first: ``-inf - -inf`` is NaN. Use the lowest finite number in place of
# ``-inf``. The row then has equal weights, and the mask sets them to 0.

scores_in = torch.tensor([[1.0, 2.0, 3.0], [1.0, 2.0, 3.0]], requires_grad=True)
mask = torch.tensor([[True, True, False], [False, False, False]])


def attention(lowest):
    return scores_in.masked_fill(~mask, lowest).softmax(dim=1) * mask


try:
    with NanTrap():
        attention(float("-inf"))
except ArithmeticError as error:
    message = str(error)
    print("ArithmeticError:", message)
weights = attention(torch.finfo(scores_in.dtype).min)
weights.square().sum().backward()
print("weights: ", weights.tolist())
print("gradient finite:", scores_in.grad.isfinite().all().item())
assert weights.isfinite().all() and not weights[1].any()

# sphinx_gallery_start_ignore
assert scores_in.grad.isfinite().all() and not scores_in.grad[1].any()
assert torch.equal(weights[0], attention(float("-inf"))[0]) and weights[0].sum() == 1
assert message == "aten._softmax.default returned NaN"
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_training_gradient_clipping.py`, what clipping does with an infinite norm.
# - :ref:`sphx_glr_gallery_errors_nan_in_backward.py`, the loss is fine and the gradient is NaN.
# - :ref:`sphx_glr_gallery_memory_grad_scaler.py`, when the scale goes to 0.
# - :ref:`sphx_glr_gallery_differentiation_points_without_a_derivative.py`, how a gradient becomes NaN although every
#   value is fine.
# - In PyTorch's reference: `torch.isfinite
#   <https://docs.pytorch.org/docs/stable/generated/torch.isfinite.html>`__ and `Module.register_forward_hook
#   <https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.register_forward_hook>`__.
