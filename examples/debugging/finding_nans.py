r"""
Loss is NaN: find the operation that made it
============================================

A NaN in the loss has been made somewhere, and every later step has passed it on. Anomaly mode finds it only if it was
made in backward. This page shows where NaN comes from, and three traps for it: anomaly mode for the backward pass,
hooks that name the module, and a short dispatch mode that names the operation and your line.
"""

# %%
# Where NaN comes from
# --------------------
# A few operations make a NaN out of numbers that are not. Many more make an infinity, and the next operation turns
# that into a NaN.

import re
import traceback
import warnings

import matplotlib.pyplot as plt
import pandas as pd
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

zero, minus, large = torch.tensor([0.0, -1.0, 100.0])
inf = large.exp()
births = {
    "exp(100)": inf,
    "1 / 0": 1 / zero,
    "log(0)": zero.log(),
    "log(-1)": minus.log(),
    "sqrt(-1)": minus.sqrt(),
    "mean of nothing": torch.empty(0).mean(),
    "0 / 0": zero / zero,
    "inf - inf": inf - inf,
    "0 * inf": zero * inf,
}
table = pd.DataFrame({"value": {name: f"{v.item():g}" for name, v in births.items()}})
# sphinx_gallery_start_ignore
assert table["value"].tolist() == ["inf", "inf", "-inf"] + ["nan"] * 6
# sphinx_gallery_end_ignore
table.rename_axis(index=None, columns="operation")

# %%
# Made in backward
# ----------------
# This loss is the negative logarithm of a sigmoid. At -200 the sigmoid is rounded to 0 and its
# logarithm is ``-inf``, so somebody has put a ``clamp`` after it. The loss is fine now. The gradient is not:

x = torch.tensor(-200.0, requires_grad=True)
p = torch.sigmoid(x)
logarithm = torch.log(p)
clamped = logarithm.clamp(min=-100)
loss = -clamped

for tensor in (p, logarithm, clamped):
    tensor.retain_grad()
del tensor
loss.backward(retain_graph=True)

# graph: loss -- Backward runs from right to left: the gradient is 0 past clamp, and NaN past log

print(f"p {p.item()}   logarithm {logarithm.item()}   loss {loss.item()}")
print(f"gradients: logarithm {logarithm.grad}, p {p.grad}, x {x.grad}")

# sphinx_gallery_start_ignore
assert loss == 100 and p == 0 and logarithm.isinf() and logarithm.grad == 0
assert p.grad.isnan() and x.grad.isnan()
# sphinx_gallery_end_ignore

# %%
# ``clamp`` sends back 0 for a number that it cut off. The derivative of the logarithm divides that by ``p``, and
# :math:`0 / 0` is NaN. :ref:`Anomaly mode <sphx_glr_gallery_debugging_anomaly_detection.py>` tests what each node
# returns, and raises:


def message_of(step, mode):
    with warnings.catch_warnings():
        # the stack of the forward pass, which is not shown here
        warnings.simplefilter("ignore")
        try:
            with mode():
                step()
        except (RuntimeError, ArithmeticError) as error:
            return f"{type(error).__name__}: {error}"
    return "nothing was raised"


def clamped_step():
    x = torch.tensor(-200.0, requires_grad=True)
    loss = -torch.log(torch.sigmoid(x)).clamp(min=-100)
    loss.backward()


message = message_of(clamped_step, torch.autograd.detect_anomaly)
print(message)
assert "Function 'LogBackward0' returned nan values in its 0th output" in message

# %%
# The cure is an operation that never leaves the range, here ``logsigmoid``. Where there is none, keep the dangerous
# input out *before* the operation, and not after it: the section on ``torch.where`` in
# :ref:`sphx_glr_gallery_differentiation_points_without_a_derivative.py`.

x = torch.tensor(-200.0, requires_grad=True)
loss = -nn.functional.logsigmoid(x)
loss.backward()
print(f"loss {loss.item()}   gradient {x.grad.item()}")
assert loss == 200 and x.grad == -1

# %%
# Made in forward
# ---------------
# Anomaly mode looks at gradients only. The logarithm of -1 is NaN, but its derivative :math:`1/x` is an innocent
# number:


with torch.autograd.set_detect_anomaly(True):
    x = torch.tensor(-1.0, requires_grad=True)
    loss = torch.log(x)
    loss.backward()

print("loss:", loss.item(), "  gradient:", x.grad.item())
assert loss.isnan() and x.grad == -1

# %%
# So the forward pass needs a trap of its own.
#
# Hooks name the module
# ---------------------
# A forward hook is called with what the module returned. Put one on each module, and let it report what it sees.


class Log(nn.Module):
    def forward(self, x):
        return torch.log(x)


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), Log(), nn.Linear(8, 2), nn.Softmax(1))
found = {}


def report(module, inputs, output):
    state = "nan" if output.isnan().any() else "inf" if output.isinf().any() else "ok"
    found[names[module]] = state
    print(f"{names[module]:<10} {state}")


names = {m: f"{n} {type(m).__name__}" for n, m in model.named_children()}
handles = [module.register_forward_hook(report) for module in names]
model(torch.ones(4, 3))
for handle in handles:
    handle.remove()

# sphinx_gallery_start_ignore
assert list(found.values()) == ["ok", "ok", "inf", "nan", "nan"]
# sphinx_gallery_end_ignore

# %%
# The first NaN is in module 3, a Linear layer without any fault. The fault is in module 2: the logarithm of the zeros
# that ``ReLU`` returns is ``-inf``, and in the sum of the layer :math:`\infty - \infty` is NaN. Therefore test with
# ``isfinite``, which rejects both.

# %%
# A mode names the operation
# --------------------------
# A ``TorchDispatchMode`` sees every operation that runs while it is on, in your code, in modules and in backward. A
# few lines make a trap of it:


class NanTrap(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        if "empty" in str(func):  # new memory, with whatever lay there before
            return result
        tensors = result if isinstance(result, (tuple, list)) else (result,)
        for t in tensors:
            if torch.is_tensor(t) and t.is_floating_point() and t.isnan().any():
                raise ArithmeticError(f"{func} returned NaN")
        return result


def scores(x):
    total = x.sum()
    shares = x / total
    ranked = shares.sort().values
    return torch.log(ranked).mean()


# sphinx_gallery_start_ignore
torch.use_deterministic_algorithms(True)  # fills new memory with NaN
with NanTrap():
    assert torch.empty(3).isnan().all() and torch.zeros(3).new_empty(3).isnan().all()
    nn.Linear(64, 64)
torch.use_deterministic_algorithms(False)
# sphinx_gallery_end_ignore


# %%
# The operation that raises is the first one that returned a NaN. Its Python stack is still there, so the line in your
# own code can be read off the traceback:

try:
    with NanTrap():
        scores(torch.tensor([2.0, -3.0, 2.0]))
except ArithmeticError as error:
    print(f"ArithmeticError: {error}")
    stack = traceback.extract_tb(error.__traceback__)

frame = next(f for f in stack if f.name == "scores")
print("in", frame.name + ":", frame.line)
assert frame.line == "return torch.log(ranked).mean()"

# sphinx_gallery_start_ignore
_caught = message_of(lambda: scores(torch.tensor([2.0, -3.0, 2.0])), NanTrap)
assert _caught == "ArithmeticError: aten.log.default returned NaN"
# sphinx_gallery_end_ignore

# %%
# In backward the trap works too, but there the stack ends at the line that called ``backward()``: anomaly mode tells
# more. The three steps of this page under each tool:


class ForwardHooks:
    def __enter__(self):
        register = nn.modules.module.register_module_forward_hook  # for all modules
        self.handle = register(self.check)

    def check(self, module, inputs, output):
        if not output.isfinite().all():
            raise ArithmeticError(f"output of {type(module).__name__} is not finite")

    def __exit__(self, *details):
        self.handle.remove()


def log_step():
    torch.log(torch.tensor(-1.0, requires_grad=True)).backward()


def model_step():
    model(torch.ones(4, 3)).mean().backward()


# %%
# Each entry is the real outcome, the part of the message that names something.

steps = {"clamped": clamped_step, "log": log_step, "model": model_step}
tools = {
    "anomaly mode": torch.autograd.detect_anomaly,
    "forward hooks": ForwardHooks,
    "NanTrap": NanTrap,
}


def named(step, tool):
    found = re.search(r"\w+Backward\w*|output of \w+|aten\.\w+", message_of(step, tool))
    return found[0] if found else "nothing"


rows = {n: {t: named(s, tool) for t, tool in tools.items()} for n, s in steps.items()}
# sphinx_gallery_start_ignore
assert [list(row.values()) for row in rows.values()] == [
    ["LogBackward0", "nothing", "aten.div"],
    ["nothing", "nothing", "aten.log"],
    ["SoftmaxBackward0", "output of Log", "aten.addmm"],
]
# sphinx_gallery_end_ignore
pd.DataFrame(rows).T.rename_axis(index=None, columns="step")

# %%
# Anomaly mode misses what is born in forward, and in the model it names the place where backward first meets the NaN.
# Hooks see modules only. The trap sees every operation, but it looks for NaN and not for infinities.

# %%
# Before the NaN
# --------------
# In training, a NaN is often the end of a longer story. Here the learning rate is too large: every step overshoots
# the minimum, and lands farther away than it came from.

inputs = torch.linspace(-3, 3, 50)
targets = 3 * inputs
w = torch.tensor(0.0, requires_grad=True)
losses = []

for _ in range(130):
    loss = ((w * inputs - targets) ** 2).mean()
    losses.append(loss.item())
    (gradient,) = torch.autograd.grad(loss, w)
    with torch.no_grad():
        w -= 0.5 * gradient

first_inf, first_nan = losses.index(float("inf")), [v != v for v in losses].index(True)
print(f"loss at steps 0, 1, 2: {losses[0]:.0f}, {losses[1]:.0f}, {losses[2]:.0f}")
print(f"first infinite loss: step {first_inf}   first NaN: step {first_nan}")

# figure: The loss of each step on a logarithmic axis. It rises on a straight line from 28 to the largest float32,
#   about 3e38. From there to more than twice the number of steps it is infinite, and only then NaN.
_, ax = plt.subplots(figsize=(7, 3.2), layout="constrained")
ax.semilogy(losses[:first_inf], color="#2563eb")
limit = torch.finfo(torch.float32).max
ax.axhline(limit, color="#64748b", linestyle=":")
ax.plot([first_inf, first_nan - 1], [limit] * 2, color="#b45309", linewidth=4)
ax.plot(first_nan, limit, "X", color="#c2410c", markersize=10)
ax.text(20, 1e10, "finite, and growing", color="#2563eb")
ax.text((first_inf + first_nan) / 2, 1e35, "inf", color="#b45309", ha="center")
ax.text(first_nan, 1e33, "NaN", color="#c2410c", ha="center")
ax.set(xlabel="step", ylabel="loss")
ax.set_title("The loss grows from step 0, and is NaN after more than 100 steps")

# sphinx_gallery_start_ignore
assert losses[:first_inf] == sorted(losses[:first_inf]) and abs(losses[0] - 28.1) < 0.1
assert 50 <= first_inf <= 60 and 105 <= first_nan <= 125 and first_nan > 2 * first_inf
# sphinx_gallery_end_ignore

# %%
# To look for the operation that made this NaN would be a waste of time. A test with ``isfinite`` stops the run at
# half of the steps, and a look at the first three losses stops it at once: lower the learning rate, or clip the
# gradient.

# %%
# What people get wrong
# ---------------------
# **Comparing with NaN.** A NaN is equal to nothing, not even to itself. This test never fires:

print("nan == nan:", loss.item() == float("nan"), "  isnan:", loss.isnan().item())
assert loss.item() != float("nan") and loss.isnan()

# %%
# **Replacing the NaN.** ``nan_to_num`` puts a number in place of the NaN, and the loss looks healthy. The gradient is
# NaN as before, if the derivative of the operation is: 0 times NaN is NaN.

for function in (torch.log, torch.sqrt):
    x = torch.tensor([-1.0, 4.0], requires_grad=True)
    loss = torch.nan_to_num(function(x)).sum()
    loss.backward()
    print(f"{function.__name__:<5} loss {loss.item():.2f}   gradient {x.grad.tolist()}")
assert loss.isfinite() and x.grad[0].isnan()

# %%
# **Taking every NaN for an error.** PyTorch itself makes some and throws them away. Here three equal numbers are
# normalised. The backward of ``std`` divides 0 by 0 on the way, then puts 0 in its place. Anomaly mode tests the
# result and is content. The trap is not:


def normalise():
    x = torch.tensor([2.0, 2.0, 2.0], requires_grad=True)
    normalised = (x - x.mean()) / (x.std() + 1e-5)
    normalised.square().sum().backward()
    return x.grad.tolist()


print("gradient:    ", normalise())
print("anomaly mode:", message_of(normalise, torch.autograd.detect_anomaly))
print("NanTrap:     ", message_of(normalise, NanTrap))
assert normalise() == [0, 0, 0]

# sphinx_gallery_start_ignore
assert message_of(normalise, torch.autograd.detect_anomaly) == "nothing was raised"
assert "aten.div.Tensor returned NaN" in message_of(normalise, NanTrap)
# sphinx_gallery_end_ignore

# %%
# So use the trap for a step whose loss or gradient *is* NaN, and not as a test for every step.
#
# Exercise
# --------
# An attention mask puts ``-inf`` at the entries to be left out, and ``softmax`` makes weights of the rest. In one
# row, all entries are masked. What does the trap say? Mend the code so that such a row gets weights of 0, and the
# other row stays as it is.
#
# .. solution::
#
# The softmax subtracts the largest entry of the row first: ``-inf - -inf`` is NaN. The lowest finite number in the
# place of ``-inf`` avoids that. The row then has equal weights, and the mask sets them to 0.

scores_in = torch.tensor([[1.0, 2.0, 3.0], [1.0, 2.0, 3.0]], requires_grad=True)
mask = torch.tensor([[True, True, False], [False, False, False]])


def attention(lowest):
    return scores_in.masked_fill(~mask, lowest).softmax(dim=1) * mask


print(message_of(lambda: attention(float("-inf")), NanTrap))
weights = attention(torch.finfo(torch.float32).min)
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
# - Before: :ref:`sphx_glr_gallery_debugging_anomaly_detection.py`, the stack of the forward line behind an error.
# - Next: :ref:`sphx_glr_gallery_debugging_silent_mistakes.py`, wrong numbers that are not NaN.
# - :ref:`sphx_glr_gallery_errors_loss_is_nan.py`, the usual causes in order, each with its fix.
# - :ref:`sphx_glr_gallery_differentiation_points_without_a_derivative.py`, how a gradient becomes NaN although every
#   value is fine.
# - :ref:`sphx_glr_gallery_differentiation_hooks.py`, on hooks.
# - In PyTorch's reference: `torch.isfinite
#   <https://docs.pytorch.org/docs/stable/generated/torch.isfinite.html>`__ and `Module.register_forward_hook
#   <https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.register_forward_hook>`__.
