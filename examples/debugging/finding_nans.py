r"""
Loss is NaN: find what made it
==============================

.. index::
   single: NaN in float16 (fp16) and mixed precision
   single: NaN in the input data
   single: loss becomes NaN after many iterations
   single: stop the training when the loss is NaN
   single: find the layer that returns NaN

.. in-short::

   Test the batch first, then the output of each module (tuples and dicts need a loop):

   .. code-block:: python

      assert x.isfinite().all()
      def check(module, inputs, output):
          assert output.isfinite().all(), module
      torch.nn.modules.module.register_module_forward_hook(check)

   A dispatch mode names the operation and your line. Anomaly mode is for a NaN that is made in *backward*, because it tests
   gradients only. On a GPU such tests are slow, so use them for the step that fails.
"""

# %%
# Where NaN comes from
# --------------------
# Your loss was a number, and now it prints ``nan``. Some operations make a NaN from finite numbers. Others first make an
# infinity, and then a later operation turns it into a NaN:

import traceback

import pandas as pd
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

zero, minus, large = torch.tensor([0.0, -1.0, 100.0])
inf = large.exp()
origins = {
    "exp(100)": (inf, "your own loss"),
    "300 * 300 in float16": (torch.tensor(300.0).half() ** 2, "attention, squares"),
    "log(0)": (zero.log(), "log(softmax(x)), log(p)"),
    "sqrt(-1e-8)": ((minus * 1e-8).sqrt(), "a variance, after rounding"),
    "mean of nothing": (torch.empty(0).mean(), "an empty selection"),
    "0 / 0": (zero / zero, "a count that is 0"),
    "inf - inf": (inf - inf, "softmax of infinities"),
    "0 * inf": (zero * inf, "multiplying by a mask"),
}
values = {name: f"{value.item():g}" for name, (value, _) in origins.items()}
places = {name: place for name, (_, place) in origins.items()}

# sphinx_gallery_start_ignore
assert list(values.values()) == ["inf", "inf", "-inf"] + ["nan"] * 5
assert torch.full((3,), float("inf")).softmax(0).isnan().all()
assert torch.full((3,), float("-inf")).softmax(0).isnan().all()
# sphinx_gallery_end_ignore
pd.DataFrame({"value": values, "often in": places})

# %%
# First the data
# --------------
# Test each batch before the model sees it, because then the message comes before the NaN is in the weights:

batch = torch.tensor([[30.0, 1.0], [float("nan"), 0.0], [25.0, 1.0]])
bad = ~batch.isfinite().all(dim=1)

try:
    assert not bad.any(), f"not finite: rows {bad.nonzero().flatten().tolist()}"
except AssertionError as error:
    print("AssertionError:", error)

# sphinx_gallery_start_ignore
assert bad.tolist() == [False, True, False]
assert not torch.tensor([1.0, float("inf")]).isfinite().all()
assert torch.tensor([1, 2]).isfinite().all()  # labels
_norm = nn.BatchNorm1d(2)
with torch.no_grad():
    _norm(batch)
    assert not _norm.eval()(torch.ones(1, 2)).isfinite().all()
# sphinx_gallery_end_ignore

# %%
# Test the targets too. If both are fine, the model or the loss makes the NaN, or an earlier step has left one in
# the weights or in the running mean of a ``BatchNorm``.

# %%
# Hooks name the module
# ---------------------
# PyTorch calls a forward hook with what the module returned. This hook reports on each module:


class Log(nn.Module):
    def forward(self, x):
        return torch.log(x)


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), Log(), nn.Linear(8, 2), nn.Softmax(1))


# sphinx_gallery_start_ignore
found = []


# sphinx_gallery_end_ignore
def report(module, inputs, output):
    state = "nan" if output.isnan().any() else "inf" if output.isinf().any() else "ok"
    print(type(module).__name__, state)
    # sphinx_gallery_start_ignore
    found.append(state)
    # sphinx_gallery_end_ignore


handles = [module.register_forward_hook(report) for module in model]
model(torch.ones(4, 3))
for handle in handles:
    handle.remove()

# sphinx_gallery_start_ignore
assert found == ["ok", "ok", "inf", "nan", "nan"]


def _check(module, inputs, output):
    assert output.isfinite().all(), module


_handle = torch.nn.modules.module.register_module_forward_hook(_check)
_raised = []
try:
    model(torch.ones(4, 3))
except AssertionError as error:
    _raised.append(str(error))
_handle.remove()
assert _raised == ["Log()"]
_layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)


def _seen(global_hook):
    names, handles = [], []

    def hook(module, inputs, output):
        names.append(type(module).__name__)

    if global_hook:
        handles.append(nn.modules.module.register_module_forward_hook(hook))
    else:
        handles += [part.register_forward_hook(hook) for part in _layer.modules()]
    _layer(torch.ones(1, 2, 8))
    for handle in handles:
        handle.remove()
    return names


assert "Linear" in _seen(True)
with torch.no_grad():
    _layer.eval()
    assert _seen(True) == ["TransformerEncoderLayer"] and "Linear" in _seen(False)
# sphinx_gallery_end_ignore

# %%
# The first NaN comes from a ``Linear`` layer without any fault. The fault is one module earlier: ``ReLU`` returned zeros, their
# logarithm is ``-inf``, and in the sum of the layer :math:`\infty - \infty` is NaN. So test with ``isfinite``, which rejects
# both. (In ``eval()`` without gradients, ``TransformerEncoderLayer(..., batch_first=True)`` may call none of its parts for the
# hook of the box. Register hooks on ``model.modules()``, and it does.) For a model whose modules return tuples, and for the
# largest number of each part, take ``watch(model)`` from :ref:`sphx_glr_gallery_errors_loss_is_nan.py`.

# %%
# float16: larger than 65504
# --------------------------
# In mixed precision, attention is a usual place. The scores are sums of products, and the division by the root of the width
# comes after the overflow:

torch.manual_seed(0)
x = 60 * torch.randn(1, 4, 64)

for dtype in (torch.float16, torch.bfloat16):
    with torch.autocast("cpu", dtype=dtype):
        late = x @ x.transpose(1, 2) / 8
        early = (x / 8) @ x.transpose(1, 2)
    print(f"{dtype}: largest score {late.max():.0f}, divided early {early.max():.0f}")
    print("   NaN after softmax:", late.softmax(-1).isnan().any().item())

    # sphinx_gallery_start_ignore
    assert late.softmax(-1).isnan().any() == (dtype == torch.float16)
    assert early.isfinite().all() and early.softmax(-1).isfinite().all()
    with torch.autocast("cpu", dtype=dtype):
        assert F.scaled_dot_product_attention(*[x[:, None]] * 3).isfinite().all()
assert torch.tensor(1e-8).half() == 0 and torch.tensor(1e-8).bfloat16() > 0
_raised = []
try:
    torch.zeros(2, dtype=torch.float16).masked_fill(torch.tensor([True, False]), -1e9)
except RuntimeError as error:
    _raised.append(
        "cannot be converted to type c10::Half without overflow" in str(error)
    )
assert _raised == [True]
# sphinx_gallery_end_ignore

# %%
# So divide first, call ``F.scaled_dot_product_attention``, compute the scores :ref:`in float32
# <sphx_glr_gallery_memory_precision.py>`, or take bfloat16. The other end matters too: an ``eps`` of ``1e-8`` is 0 in float16.

# %%
# A mode names the operation
# --------------------------
# Between two modules there may be many lines. A ``TorchDispatchMode`` sees the PyTorch operations that run in this thread while
# it is on, in your code, in modules and in backward. A few lines turn it into a trap:


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
# ``foreach=True`` do. Use the trap for a step whose loss or gradient *is* NaN, because it may raise in a healthy step: PyTorch
# itself makes some NaNs and throws them away, as in the backward of ``(x - x.mean()) / (x.std() + 1e-5)`` for equal numbers.

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
# is NaN. For this there is :ref:`anomaly mode <sphx_glr_gallery_debugging_anomaly_detection.py>`. The cure is an operation that
# stays in range, such as ``-F.logsigmoid(x)``; :ref:`more on such gradients <sphx_glr_gallery_errors_nan_in_backward.py>`.
#
# .. how-measured:: Three steps under three tools: the clamped one, log(-1), and the model. The part of the message that names
#    something is kept.

import re
import warnings


def message_of(step, tool):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the stack of the forward pass
        try:
            with tool():
                step()
        except (RuntimeError, ArithmeticError) as error:
            return f"{type(error).__name__}: {error}"
    return "nothing was raised"


class ForwardHooks:
    def __enter__(self):
        register = nn.modules.module.register_module_forward_hook  # for all modules
        self.handle = register(self.check)

    def check(self, module, inputs, output):
        if not output.isfinite().all():
            raise ArithmeticError(f"output of {type(module).__name__} is not finite")

    def __exit__(self, *details):
        self.handle.remove()


def clamped_step():
    x = torch.tensor(-200.0, requires_grad=True)
    loss = -torch.log(torch.sigmoid(x)).clamp(min=-100)
    loss.backward()


def log_step():
    torch.log(torch.tensor(-1.0, requires_grad=True)).backward()


def model_step():
    model(torch.ones(4, 3)).mean().backward()


def named(step, tool):
    found = re.search(r"\w+Backward\w*|output of \w+|aten\.\w+", message_of(step, tool))
    return found[0] if found else "nothing"


steps = {
    "log, then clamp": clamped_step,
    "log(-1)": log_step,
    "the model above": model_step,
}
tools = {
    "anomaly mode": torch.autograd.detect_anomaly,
    "forward hooks": ForwardHooks,
    "NanTrap": NanTrap,
}
rows = {n: {t: named(s, tool) for t, tool in tools.items()} for n, s in steps.items()}
compared = pd.DataFrame(rows).T

# %%
# What each tool names:

# sphinx_gallery_start_ignore
import contextlib

assert compared.to_numpy().tolist() == [
    ["LogBackward0", "nothing", "aten.div"],
    ["nothing", "nothing", "aten.log"],
    ["SoftmaxBackward0", "output of Log", "aten.addmm"],
]


def normalized():
    x = torch.tensor([2.0, 2.0, 2.0], requires_grad=True)
    ((x - x.mean()) / (x.std() + 1e-5)).square().sum().backward()
    return x.grad.tolist()


assert normalized() == [0, 0, 0]
assert message_of(normalized, torch.autograd.detect_anomaly) == "nothing was raised"
assert "aten.div.Tensor returned NaN" in message_of(normalized, NanTrap)
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


def _count(tool):
    healthy = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 2))
    with _Count() as seen, tool():
        healthy(torch.ones(4, 3)).mean().backward()
    return seen


_none, _hooks, _trap = map(_count, (contextlib.nullcontext, ForwardHooks, NanTrap))
assert (_none.reads, _hooks.reads) == (0, 4)
assert _trap.reads == _none.tensors > 3 * _hooks.reads
# sphinx_gallery_end_ignore
compared.rename_axis(columns="step")

# %%
# In the model, anomaly mode names the place where backward first meets the NaN, the hooks name the module that made the
# infinity, and the trap names the operation that made the first NaN.
#
# **On a GPU**, an ``if`` or ``assert`` on a tensor needs its value, so Python waits until the GPU has computed it. The hooks
# wait once for each call of a module, and the trap once for each tensor that it tests.
# ``torch.cuda.set_sync_debug_mode("warn")`` reports many such places. Of anomaly mode, PyTorch's reference says that it slows a
# program down and is for debugging only.

# %%
# Before the NaN
# --------------
# A NaN is often the end of a longer story. With too large a learning rate, each step overshoots the minimum, so it ends farther
# away than it began.
#
# .. how-measured:: This code draws the loss of each step.

import matplotlib.pyplot as plt


def plot_losses(losses):
    _, ax = plt.subplots(figsize=(7, 2.8), layout="constrained")
    ax.semilogy(losses[:first_inf], color="#2563eb")
    limit = torch.finfo(torch.float32).max
    ax.axhline(limit, color="#64748b", linestyle=":")
    ax.plot([first_inf, first_nan - 1], [limit] * 2, color="#7c3aed", linewidth=4)
    ax.plot(first_nan, limit, "X", color="#c2410c", markersize=10)
    ax.text(20, 1e10, "finite, and growing", color="#2563eb")
    ax.text((first_inf + first_nan) / 2, 1e34, "inf", color="#7c3aed", ha="center")
    ax.text(first_nan, 1e32, "NaN", color="#c2410c", ha="center")
    ax.set(xlabel="step", ylabel="loss")
    ax.set_title("The loss grows from step 0, and is NaN after more than 100 steps")


# %%
# One weight, fitted with plain gradient steps:

inputs = torch.linspace(-3, 3, 50)
w = torch.tensor(0.0, requires_grad=True)
losses = []

for _ in range(130):
    loss = ((w * inputs - 3 * inputs) ** 2).mean()
    losses.append(loss.item())
    (gradient,) = torch.autograd.grad(loss, w)
    with torch.no_grad():
        w -= 0.5 * gradient

first_inf, first_nan = losses.index(float("inf")), [v != v for v in losses].index(True)

# figure: The loss of each step on a logarithmic axis. It rises on a straight line from 28 to the largest float32,
#   about 3e38. From there to more than twice the number of steps it is infinite, and only then NaN.
plot_losses(losses)
print(f"first infinite loss: step {first_inf}   first NaN: step {first_nan}")

# sphinx_gallery_start_ignore
assert losses[:first_inf] == sorted(losses[:first_inf]) and abs(losses[0] - 28.1) < 0.1
assert 50 <= first_inf <= 60 and 105 <= first_nan <= 125 and first_nan > 2 * first_inf
# sphinx_gallery_end_ignore

# %%
# In such a run, no single operation is to blame. ``loss.isfinite()`` stops it at half of the steps, but a look at the first
# three losses stops it at once: lower the learning rate, or :ref:`clip the gradient
# <sphx_glr_gallery_training_gradient_clipping.py>`.

# %%
# What people get wrong
# ---------------------
# **Comparing with NaN.** A NaN differs even from itself, so the first test never fires:

loss = torch.tensor(float("nan"))
print(loss.item() == float("nan"), loss.isnan().item(), loss.isfinite().item())

# sphinx_gallery_start_ignore
assert loss.item() != float("nan") and loss.isnan() and loss != loss
# sphinx_gallery_end_ignore

# %%
# **Replacing the NaN.** ``nan_to_num`` puts a number in place of the NaN, so the loss looks healthy. But the gradient of the
# root is NaN as before, because backward divides 0 by that NaN:

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
# **Using anomaly mode for a NaN of the forward pass.** It tests gradients only. The logarithm of -1 is NaN, but its derivative
# :math:`1/x` is -1. Nothing is raised:

with torch.autograd.set_detect_anomaly(True):
    x = torch.tensor(-1.0, requires_grad=True)
    loss = torch.log(x)
    loss.backward()
print("loss:", loss.item(), "  gradient:", x.grad.item())

# sphinx_gallery_start_ignore
assert loss.isnan() and x.grad == -1
# sphinx_gallery_end_ignore

# %%
# **Clipping the gradients against NaN.** By default, ``clip_grad_norm_`` :ref:`spreads a NaN to all gradients
# <sphx_glr_gallery_training_gradient_clipping.py>`. With ``error_if_nonfinite=True`` it raises before the optimizer writes NaN
# into the weights:

layer = nn.Linear(2, 1)
layer(torch.tensor([[1.0, float("nan")]])).sum().backward()
try:
    nn.utils.clip_grad_norm_(layer.parameters(), 1.0, error_if_nonfinite=True)
except RuntimeError as error:
    message = str(error)
    print("RuntimeError:", message.split(" To disable")[0])

# sphinx_gallery_start_ignore
assert "is non-finite, so it cannot be clipped" in message
assert layer.bias.grad == 1 and layer.weight.grad.isnan().any()
nn.utils.clip_grad_norm_(layer.parameters(), 1.0)
assert layer.bias.grad.isnan() and layer.weight.grad.isnan().all()
# sphinx_gallery_end_ignore

# %%
# With a ``GradScaler``, leave it out, because some infinite gradients :ref:`are normal then
# <sphx_glr_gallery_memory_grad_scaler.py>`.

# %%
# Exercise
# --------
# An attention mask puts ``-inf`` at the entries to be left out, and ``softmax`` makes weights of the rest. In one row, all
# entries are masked. What does the trap say? Change the code so that such a row gets weights of 0, and the other row stays as
# it is.
#
# .. solution::
#
# The softmax subtracts the largest entry of the row first: ``-inf - -inf`` is NaN. The lowest finite number in the place of
# ``-inf`` avoids that. The row then has equal weights, and the mask sets them to 0.

scores_in = torch.tensor([[1.0, 2.0, 3.0], [1.0, 2.0, 3.0]], requires_grad=True)
mask = torch.tensor([[True, True, False], [False, False, False]])


def attention(lowest):
    return scores_in.masked_fill(~mask, lowest).softmax(dim=1) * mask


print(message_of(lambda: attention(float("-inf")), NanTrap))
weights = attention(torch.finfo(scores_in.dtype).min)
weights.square().sum().backward()
print("weights: ", weights.tolist())
print("gradient finite:", scores_in.grad.isfinite().all().item())
assert weights.isfinite().all() and not weights[1].any()

# sphinx_gallery_start_ignore
assert scores_in.grad.isfinite().all() and not scores_in.grad[1].any()
assert torch.equal(weights[0], attention(float("-inf"))[0]) and weights[0].sum() == 1
_masked = message_of(lambda: attention(float("-inf")), NanTrap)
assert _masked == "ArithmeticError: aten._softmax.default returned NaN"
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_errors_loss_is_nan.py`, the usual causes in order, each with its fix.
# - :ref:`sphx_glr_gallery_errors_nan_in_backward.py`, the loss is fine and the gradient is NaN.
# - :ref:`sphx_glr_gallery_memory_grad_scaler.py`, when the scale goes to 0.
# - :ref:`sphx_glr_gallery_differentiation_points_without_a_derivative.py`, how a gradient becomes NaN although every
#   value is fine.
# - In PyTorch's reference: `torch.isfinite
#   <https://docs.pytorch.org/docs/stable/generated/torch.isfinite.html>`__ and `Module.register_forward_hook
#   <https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.register_forward_hook>`__.
