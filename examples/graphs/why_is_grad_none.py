r"""
Why is .grad None, zero or NaN?
===============================

.. index::
   ! single: some parameters get no gradient
   ! single: all gradients are zero
   ! single: gradient is inf

.. in-short::

   **None**: the tensor is not a leaf, it does not require grad, the loss has no recorded path to it, or ``zero_grad()`` cleared
   it. **Zero**: the loss does not react to it, as behind ``round()``. **NaN or inf**: the value is NaN already, a derivative is
   infinite, as that of ``sqrt`` at 0, or the gradient is too large for its data type.
"""

# %%
# Which of my parameters are affected?
# ------------------------------------
# Your model does not learn, or its ``.grad`` is None. Call ``report(model)`` between ``backward()`` and ``optimizer.step()``.
# The model below has a good layer and three with a problem:

import torch
from torch import nn


def report(model):
    for name, p in model.named_parameters():
        if p.grad is None:
            print(f"{name}: None, requires_grad={p.requires_grad}")
        elif not p.grad.to_dense().isfinite().all():
            print(f"{name}: NaN or inf")
        else:
            print(f"{name}: {'fine' if p.grad.to_dense().any() else 'zero'}")


class Broken(nn.Module):
    def __init__(self):
        super().__init__()
        self.good, self.cut, self.dead, self.unused = (
            nn.Linear(3, 1) for _ in range(4)
        )

    def forward(self, x):
        cut = self.cut(x).detach()
        dead = torch.relu(self.dead(x) - 100)
        return (self.good(x) + cut + dead).sum()


model = Broken()
model(torch.ones(2, 3)).backward()
report(model)

# sphinx_gallery_start_ignore
import contextlib
import io

with contextlib.redirect_stdout(io.StringIO()) as printed:
    report(model)
    model.good.weight.grad[0, 0] = torch.nan
    report(model)
lines = printed.getvalue().splitlines()
none = "None, requires_grad=True"
for name, state in (
    ("good", "fine"),
    ("cut", none),
    ("dead", "zero"),
    ("unused", none),
):
    assert (
        f"{name}.weight: {state}" in lines[:8] and f"{name}.bias: {state}" in lines[:8]
    )
assert lines[8] == "good.weight: NaN or inf"
# sphinx_gallery_end_ignore

# %%
# All *fine*, but nothing learns? See :ref:`sphx_glr_gallery_debugging_loss_does_not_decrease.py`. With ``GradScaler``, some
# infinities are :ref:`normal <sphx_glr_gallery_memory_grad_scaler.py>`.

# %%
# Find your case
# --------------
# **None: nothing was stored**
#
# .. list-table::
#    :header-rows: 1
#    :widths: 50 50
#
#    * - because
#      - do this
#    * - `It was cleared, or never stored`_
#      - read ``.grad`` after ``backward()`` and before ``zero_grad()``
#    * - `It is not a leaf`_
#      - ``t.retain_grad()`` before backward
#    * - `It does not require grad`_
#      - ``t.requires_grad_()`` before the forward pass
#    * - `The path was cut`_: ``detach``, ``item``, ``.data``, NumPy, ``no_grad``
#      - leave out what cuts it
#    * - `The loss does not use it`_, or only in ``argmax`` or ``>``
#      - call the layer; make a smooth choice
#
# **Zero: a gradient was stored, and each of its numbers is 0**
#
# .. list-table::
#    :header-rows: 1
#    :widths: 50 50
#
#    * - because
#      - do this
#    * - `The function is flat there`_: ``round``, a dead ReLU
#      - a different function or start
#    * - `The loss cannot depend on it`_: ``softmax(x).sum()``
#      - a different loss
#    * - The next weight is 0, as LoRA's ``B`` is at the start
#      - take one step, and look again
#
# **NaN or inf**
#
# .. list-table::
#    :header-rows: 1
#    :widths: 50 50
#
#    * - because
#      - do this
#    * - `The derivative is infinite`_: ``sqrt``, ``log``, ``acos``
#      - keep the input away from the edge
#    * - `Zero times infinity`_: ``where``, ``p * log(p)``, ``(d ** 2).sum().sqrt()``
#      - make the *input* safe
#    * - `The value is NaN already`_: a fully masked softmax
#      - look in the forward pass
#    * - ``eigh`` or ``svd`` with equal values
#      - :ref:`sphx_glr_gallery_practice_svd_and_eigh.py`

# %%
# The gradient is None
# --------------------
#
# It was cleared, or never stored
# ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
# ``optimizer.zero_grad()`` sets ``.grad`` to None, and ``torch.autograd.grad`` returns a gradient without storing it:

layer = nn.Linear(3, 1)
optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)

layer(torch.ones(3)).sum().backward()
print("after backward:     ", layer.weight.grad is not None)
optimizer.zero_grad()
print("after zero_grad:    ", layer.weight.grad is not None)
torch.autograd.grad(layer(torch.ones(3)).sum(), layer.weight)
print("after autograd.grad:", layer.weight.grad is not None)

# sphinx_gallery_start_ignore
assert layer.weight.grad is None and layer.bias.grad is None
layer(torch.ones(3)).sum().backward()
assert layer.weight.grad is not None
for kind in (torch.optim.Adam, torch.optim.AdamW, torch.optim.RMSprop):
    layer(torch.ones(3)).sum().backward()
    kind(layer.parameters()).zero_grad()
    assert layer.weight.grad is None
layer(torch.ones(3)).sum().backward()
optimizer.zero_grad(set_to_none=False)
assert not layer.weight.grad.any()
# sphinx_gallery_end_ignore

# %%
# It is not a leaf
# ~~~~~~~~~~~~~~~~
# ``copy`` is the :ref:`result <sphx_glr_gallery_graphs_leaves_and_roots.py>` of an operation on ``w``, and so is a slice
# ``w[0]``. So ``backward()`` stores a gradient in ``w`` only, unless you call ``copy.retain_grad()`` first.

w = torch.ones(3, requires_grad=True)
copy = w.to(torch.float64)
copy.sum().backward()
print("w.is_leaf", w.is_leaf, "  copy.is_leaf", copy.is_leaf)

# sphinx_gallery_start_ignore
import warnings

assert w.grad.tolist() == [1, 1, 1] and w.is_leaf and not copy.is_leaf
assert not w[0].is_leaf and not w.to("meta").is_leaf and not w.clone().is_leaf
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    assert copy.grad is None and w[0].grad is None
    assert len(caught) == 2 and "is not a leaf Tensor" in str(caught[0].message)
copy = w.to(torch.float64)
copy.retain_grad()
copy.sum().backward()
assert copy.grad.tolist() == [1, 1, 1]
# sphinx_gallery_end_ignore

# %%
# It does not require grad
# ~~~~~~~~~~~~~~~~~~~~~~~~
# Data does not, nor does a frozen parameter:

model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 1))
model[0].requires_grad_(False)
model(torch.ones(3)).backward()
report(model)

# sphinx_gallery_start_ignore
assert [p.grad is None for p in model.parameters()] == [True, True, False, False]
assert not any(p.requires_grad for p in model[0].parameters())
# sphinx_gallery_end_ignore

# %%
# The path was cut
# ~~~~~~~~~~~~~~~~
# ``h.detach()`` has no path to ``w``. You get no error, because the loss has a path to ``v``:

w, v = (torch.tensor(2.0, requires_grad=True) for _ in range(2))
h = w * 3
loss = v * h.detach()
loss.backward()

# graph: loss -- With h.detach() in the loss, there is a constant instead of a path to w

print("w.grad", w.grad)

# sphinx_gallery_start_ignore
assert w.grad is None and v.grad == 6
# sphinx_gallery_end_ignore

# %%
# More ways to cut it:

with torch.no_grad():
    unrecorded = w * 3

cut = {
    "h.data": h.data,
    "h.item()": h.item(),
    "torch.tensor(h.item())": torch.tensor(h.item()),
    "h.detach().numpy()": torch.from_numpy(h.detach().numpy()),
    "w * 3 under no_grad": unrecorded,
    "h.long()": h.long(),
}
for text, value in cut.items():
    (v * value).backward()
    print(f"{text:<23} w.grad {w.grad}")

# sphinx_gallery_start_ignore
assert w.grad is None and all(float(value) == 6 for value in cut.values())
assert v.grad == 6 * (len(cut) + 1)
(v * h).backward()
assert w.grad == 6
# sphinx_gallery_end_ignore

# %%
# The loss does not use it
# ~~~~~~~~~~~~~~~~~~~~~~~~
# A layer was not called, or the tensor is used only to choose, as ``scores`` below: ``argmax`` is not recorded. Ask
# ``torch.autograd.grad``, because it raises an error instead of returning None:

scores = torch.tensor([0.1, 0.7, 0.2], requires_grad=True)
values = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
loss = values[scores.argmax()]

try:
    torch.autograd.grad(loss, scores)
except RuntimeError as error:
    message = str(error)
    print(f"RuntimeError: {message}")

# sphinx_gallery_start_ignore
assert "appears to not have been used in the graph" in message
del message
assert not scores.argmax().requires_grad
for compared in (scores > 0, scores <= 1, scores == scores, scores.isnan()):
    assert not compared.requires_grad
smooth = (torch.softmax(scores, 0) * values).sum()
assert torch.autograd.grad(smooth, scores)[0].all()
# sphinx_gallery_end_ignore

# %%
# A smooth choice has a gradient: ``(torch.softmax(scores, 0) * values).sum()``.

# %%
# The gradient is zero
# --------------------
#
# The function is flat there
# ~~~~~~~~~~~~~~~~~~~~~~~~~~
# These results stay the same if ``x`` moves a little:
#
# .. how-measured:: tabulate_gradients() differentiates each expression at its start and collects values and gradients.

import pandas as pd


def tabulate_gradients(cases):
    rows = {}
    for text, (start, function) in cases.items():
        x = torch.tensor(start, requires_grad=True)
        y = function(x)
        y.sum().backward()
        rows[text] = {"x": start, "value": y.tolist(), "gradient": x.grad.tolist()}
    table = pd.DataFrame.from_dict(rows, orient="index").rename_axis(
        columns="expression"
    )
    return table.map(short)


def short(cell):
    numbers = cell if isinstance(cell, list) else [cell]
    return ", ".join(f"{number:.4g}" for number in numbers)


# %%
# Six flat places:

flat = {
    "x.round()": (1.3, torch.round),
    "x.sign()": (1.3, torch.sign),
    "x.floor()": (1.3, torch.floor),
    "x.relu()": (-2.0, torch.relu),
    "x.clamp(0, 1)": (5.0, lambda x: x.clamp(0, 1)),
    "x.sigmoid()": (20.0, torch.sigmoid),
}

# sphinx_gallery_start_ignore
flat_table = tabulate_gradients(flat)
assert set(flat_table["gradient"]) == {"0"} and len(flat_table) == 6
x = torch.tensor(20.0, dtype=torch.float64, requires_grad=True)
assert 0 < torch.autograd.grad(x.sigmoid(), x)[0] < 1e-8
assert torch.tensor(20.0).sigmoid() == 1
for start, function in flat.values():
    moved = [function(torch.tensor(start + step)) for step in (-1e-3, 0, 1e-3)]
    assert moved[0] == moved[1] == moved[2]
net = nn.Sequential(nn.Linear(3, 2, bias=False), nn.Linear(2, 1, bias=False))
nn.init.zeros_(net[1].weight)
for moved in (False, True):  # as LoRA's B
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    sgd.zero_grad()
    net(torch.ones(3)).sum().backward()
    assert net[0].weight.grad.any() == moved and net[1].weight.grad.all()
    sgd.step()
# sphinx_gallery_end_ignore
tabulate_gradients(flat)

# %%
# A ReLU whose input is negative for *all* your data sends back only zeros: it is *dead*. The ``sigmoid`` of 20 rounds to 1 in
# float32, so its gradient becomes 0. To train through ``round`` or ``sign``, use a :ref:`straight-through gradient
# <sphx_glr_gallery_functions_change_the_gradient.py>`.

# %%
# The loss cannot depend on it
# ~~~~~~~~~~~~~~~~~~~~~~~~~~~~
# The weights of a softmax add up to 1, whatever ``x`` is. So the gradient of their sum is 0, up to rounding. The sum of their
# squares has one:

x = torch.tensor([1.0, 2.0, 4.0], requires_grad=True)
(gradient,) = torch.autograd.grad(x.softmax(0).sum(), x)
print("sum:    ", gradient.round(decimals=4))
(gradient,) = torch.autograd.grad(x.softmax(0).square().sum(), x)
print("squares:", gradient.round(decimals=4))

# sphinx_gallery_start_ignore
assert gradient.abs().max() > 0.01
for start in ([1.0, 2.0, 4.0], [0.0, 0.0, 0.0], [-3.0, 50.0, 0.1], [1.3, -0.4, 0.7]):
    x = torch.tensor(start, requires_grad=True)
    assert abs(x.softmax(0).sum() - 1) < 1e-6
    assert torch.autograd.grad(x.softmax(0).sum(), x)[0].abs().max() < 1e-5
# sphinx_gallery_end_ignore

# %%
# The gradient is NaN or infinite
# -------------------------------
#
# The derivative is infinite
# ~~~~~~~~~~~~~~~~~~~~~~~~~~
# The first three slopes are infinite. The last three rows keep the input from the edge:

edge = {
    "x.sqrt()": (0.0, torch.sqrt),
    "x.log()": (0.0, torch.log),
    "x.acos()": (1.0, torch.acos),
    "x.clamp(min=1e-4).sqrt()": (0.0, lambda x: x.clamp(min=1e-4).sqrt()),
    "(x + 1e-4).log()": (0.0, lambda x: (x + 1e-4).log()),
    "x.clamp(-0.99, 0.99).acos()": (1.0, lambda x: x.clamp(-0.99, 0.99).acos()),
}

# sphinx_gallery_start_ignore
edge_table = tabulate_gradients(edge)
assert edge_table["gradient"].tolist()[:3] == ["inf", "inf", "-inf"]
assert all(torch.tensor(float(g)).isfinite() for g in edge_table["gradient"][3:])
assert edge_table["gradient"].tolist()[3:] == ["0", "1e+04", "0"]
for start, function in list(edge.values())[3:]:
    for dtype in (torch.float16, torch.bfloat16, torch.float64):
        x = torch.tensor(start, dtype=dtype, requires_grad=True)
        assert torch.autograd.grad(function(x), x)[0].isfinite()
x = torch.tensor([-200.0, 0.0, 200.0], requires_grad=True)
assert torch.autograd.grad(x.log_softmax(0).sum(), x)[0].isfinite().all()
assert not torch.autograd.grad(x.softmax(0).log().sum(), x)[0].isfinite().all()
x = torch.tensor(1e-30, requires_grad=True)
(1 / x).backward()
assert (1 / x).isfinite() and x.grad == -torch.inf
x = torch.tensor(1e-3, dtype=torch.float16, requires_grad=True)
(x.float() * 65536).backward()
assert x.grad == torch.inf and torch.finfo(torch.float16).max == 65504
# sphinx_gallery_end_ignore
tabulate_gradients(edge)

# %%
# Where ``clamp`` changes a value, it sends back 0. For the logarithm of a softmax, use ``log_softmax``. In float16, a gradient
# above 65,504 becomes inf.

# %%
# Zero times infinity
# ~~~~~~~~~~~~~~~~~~~
# In the first three rows an infinite slope is multiplied by 0, or 0 is divided by 0:


def safe_log(x):
    tiny = torch.finfo(x.dtype).tiny  # the smallest normal number of this dtype
    return x.clamp(min=tiny).log()


zero_times = {
    "((x - 1) ** 2).sum().sqrt()": ([1.0, 1.0], lambda x: ((x - 1) ** 2).sum().sqrt()),
    "x * x.log()": (0.0, lambda x: x * x.log()),
    "torch.xlogy(x, x)": (0.0, lambda x: torch.xlogy(x, x)),
    "(x - 1).norm()": ([1.0, 1.0], lambda x: (x - 1).norm()),
    "x * safe_log(x)": (0.0, lambda x: x * safe_log(x)),
}

# sphinx_gallery_start_ignore
zero_table = tabulate_gradients(zero_times)
assert ["nan" in g for g in zero_table["gradient"]] == [True] * 3 + [False] * 2
assert ["nan" in v for v in zero_table["value"]] == [False, True] + [False] * 3
for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
    x = torch.tensor(0.0, dtype=dtype, requires_grad=True)
    y = x * safe_log(x)
    assert y == 0 and torch.autograd.grad(y, x)[0].isfinite()
# sphinx_gallery_end_ignore
tabulate_gradients(zero_times)

# %%
# The last two rows replace the first two, with a finite gradient.

# %%
# The value is NaN already
# ~~~~~~~~~~~~~~~~~~~~~~~~
# If every position of a softmax is masked, the weights are NaN. The second version has none:

scores = torch.tensor([1.0, 2.0])
mask = torch.tensor([True, True])
values = torch.tensor([3.0, 5.0], requires_grad=True)

bad = scores.masked_fill(mask, -torch.inf).softmax(0)
lowest = torch.finfo(scores.dtype).min
good = scores.masked_fill(mask, lowest).softmax(0).masked_fill(mask, 0.0)
for weights in (bad, good):
    (gradient,) = torch.autograd.grad((weights * values).sum(), values)
    print("weights", weights.tolist(), "  gradient", gradient.tolist())

# sphinx_gallery_start_ignore
weights = scores.masked_fill(mask, -torch.inf).softmax(0)
assert weights.isnan().all()
assert torch.autograd.grad((weights * values).sum(), values)[0].isnan().all()
assert (
    gradient.tolist() == good.tolist() == [0, 0]
)  # nothing leaks from a masked position
half = torch.tensor([True, False])
assert torch.equal(
    scores.masked_fill(half, lowest).softmax(0).masked_fill(half, 0.0),
    scores.masked_fill(half, -torch.inf).softmax(0),
)
# sphinx_gallery_end_ignore

# %%
# What people get wrong
# ---------------------
# **Calling requires_grad_() on the loss.** It silences "element 0 of tensors does not require grad", but backward ends there:

layer = nn.Linear(3, 1)
with torch.no_grad():
    loss = layer(torch.ones(3)).sum()

loss.requires_grad_().backward()  # no error
print(layer.weight.grad)

# sphinx_gallery_start_ignore
assert layer.weight.grad is None and loss.is_leaf and loss.grad == 1
# sphinx_gallery_end_ignore

# %%
# **Replacing a bad value afterwards.** ``torch.where`` hides the minus infinity of ``log``, and sends it the gradient 0. The
# backward of ``log`` divides that by ``x``, and 0 / 0 is NaN. Make the *input* safe:

x = torch.tensor([0.0, 4.0], requires_grad=True)
positive = x > 0

output_replaced = torch.where(positive, x.log(), 0.0)
input_replaced = torch.where(positive, torch.where(positive, x, 1.0).log(), 0.0)

for y in (output_replaced, input_replaced):
    print(y.tolist(), torch.autograd.grad(y.sum(), x)[0].tolist())

# sphinx_gallery_start_ignore
output_replaced = torch.where(positive, x.log(), 0.0)  # with fresh graphs
input_replaced = torch.where(positive, torch.where(positive, x, 1.0).log(), 0.0)
assert x.log()[0] == -torch.inf and output_replaced[0] == 0
assert torch.equal(output_replaced, input_replaced)
bad, good = (
    torch.autograd.grad(y.sum(), x)[0] for y in (output_replaced, input_replaced)
)
assert bad[0].isnan() and bad[1] == 0.25 and good.tolist() == [0, 0.25]
logs = x.log()
(sent,) = torch.autograd.grad(torch.where(positive, logs, 0.0).sum(), logs)
assert sent.tolist() == [0, 1] and (sent / x)[0].isnan()
# sphinx_gallery_end_ignore

# %%
# Exercise
# --------
# Take ``w = 1.6`` and ``v = 1.0``, both requiring grad. Is ``w.grad`` None, zero or another number after
# ``(w.round() * 2).backward()``, ``(w.detach() * w).backward()`` and ``(w.item() * v).backward()``? Clear it before each call.
#
# .. solution::
#
# Zero, since ``round`` is flat at 1.6. Then 1.6: one factor is cut off, the other is not. Then None: ``w.item()`` is a number.

w = torch.tensor(1.6, requires_grad=True)
v = torch.tensor(1.0, requires_grad=True)

answers = []
for loss in (w.round() * 2, w.detach() * w, w.item() * v):
    w.grad = None
    loss.backward()
    answers.append(w.grad)
print(answers)

# predict: "None" if answers[0] is None else "zero" if answers[0] == 0 else "a number"
#   [None | zero | a number] -- ``w.grad`` after ``(w.round() * 2).backward()``:
# predict: "None" if answers[1] is None else "zero" if answers[1] == 0 else "a number"
#   [None | zero | a number] -- ``w.grad`` after ``(w.detach() * w).backward()``:
# predict: "None" if answers[2] is None else "zero" if answers[2] == 0 else "a number"
#   [None | zero | a number] -- ``w.grad`` after ``(w.item() * v).backward()``:

# sphinx_gallery_start_ignore
assert answers[0] == 0 and answers[1] == w.detach() and answers[2] is None
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_errors_ddp_finished_reduction.py`: parameters without a gradient in ``DistributedDataParallel``.
# - :ref:`sphx_glr_gallery_debugging_finding_nans.py`: find the operation that made a NaN.
# - :ref:`sphx_glr_gallery_differentiation_points_without_a_derivative.py`: what autograd returns where there is no
#   derivative.
# - In PyTorch's reference: `Tensor.grad <https://docs.pytorch.org/docs/stable/generated/torch.Tensor.grad.html>`__.
