r"""
no_grad, enable_grad, set_grad_enabled, inference_mode: what is recorded
========================================================================

Four switches decide whether operations are recorded for backward. They can be set for a block of code or for a
function, and they can be nested. This page shows which one wins, what they leave alone, and what sets
``inference_mode`` apart: it is the strictest, and its tensors are refused in later training.
"""

# %%
# A block in which nothing is recorded
# ------------------------------------
# ``a`` and ``b`` are the same product. Only the first is recorded.

import textwrap
import threading
import time
import warnings
from contextlib import nullcontext

import pandas as pd
import torch
from torch import nn
from torch.autograd import Variable

w = torch.tensor(3.0, requires_grad=True)
x = torch.tensor(2.0)

a = w * x
with torch.no_grad():
    b = w * x
loss = a * b

# graph: loss -- The constant that goes into loss is b. It was computed from w, but that was not recorded

for name, tensor in {"a": a, "b": b, "loss": loss}.items():
    node = tensor.grad_fn.name() if tensor.grad_fn else "none"
    print(f"{name:<5}{tensor.item():>3.0f}   grad_fn: {node}")

# sphinx_gallery_start_ignore
assert a.requires_grad and not b.requires_grad and b.grad_fn is None and b.is_leaf
# sphinx_gallery_end_ignore

# %%
# The value of ``loss`` is :math:`(wx)^2 = 36`, and the derivative of that would be :math:`2 w x^2 = 24`.

loss.backward()
print("w.grad:", w.grad.item())
assert w.grad == 12

# sphinx_gallery_start_ignore
assert w.grad == x * b and loss == 36
_w = torch.tensor(3.0, requires_grad=True)
((_w * x) * (_w * x)).backward()
assert _w.grad == 24
# sphinx_gallery_end_ignore

# %%
# It is half of that, because the path through ``b`` does not count. This is what the switch is for: whatever is
# computed in the block, a target, a metric, an update of the weights, is no part of the function that is
# differentiated.
#
# As a block, as a decorator, as a call
# -------------------------------------
# Each switch works in a ``with`` statement and as a decorator. ``set_grad_enabled`` takes a flag, so one piece of
# code serves training and validation. It is also the only one that works as a plain call.


def records():
    return (w * x).requires_grad


@torch.no_grad()
def decorated():
    return records()


for training in (True, False):
    with torch.set_grad_enabled(training):
        print(f"with set_grad_enabled({training}):", records())
print("after that block:", records(), "  in a decorated function:", decorated())

torch.set_grad_enabled(False)
print("after a plain call:", records())
torch.set_grad_enabled(True)

# sphinx_gallery_start_ignore
assert records() and not decorated()
with torch.set_grad_enabled(False):
    assert not records()
torch.set_grad_enabled(False)
assert not records()
torch.set_grad_enabled(True)


@torch.no_grad
def _bare():
    return records()


assert not _bare() and records()
for _switch in (
    torch.no_grad,
    torch.inference_mode,
    lambda: torch.set_grad_enabled(False),
):
    assert not _switch()(records)() and records()
with torch.no_grad():
    assert torch.enable_grad()(records)() and not records()
    torch.enable_grad()
    assert not records()
torch.inference_mode()
torch.no_grad()
assert records()
# sphinx_gallery_end_ignore

# %%
# Nested: which one wins
# ----------------------
# Each row is an outer block, each column a block inside of it. What becomes of a product in the inner one?

OUTER = {
    "no block": nullcontext,
    "no_grad()": torch.no_grad,
    "inference_mode()": torch.inference_mode,
}
INNER = {
    "enable_grad()": torch.enable_grad,
    "no_grad()": torch.no_grad,
    "inference_mode()": torch.inference_mode,
    "inference_mode(False)": lambda: torch.inference_mode(False),
}


def product_in(outer, inner):
    with outer(), inner():
        product = w * x
    if product.is_inference():
        return "inference tensor"
    return "recorded" if product.requires_grad else "not recorded"


nested = pd.DataFrame(
    {
        name: {outer: product_in(OUTER[outer], inner) for outer in OUTER}
        for name, inner in INNER.items()
    }
)

# sphinx_gallery_start_ignore
assert nested["enable_grad()"].tolist() == ["recorded"] * 2 + ["inference tensor"]
assert nested["no_grad()"].tolist() == ["not recorded"] * 2 + ["inference tensor"]
assert set(nested["inference_mode()"]) == {"inference tensor"}
assert set(nested["inference_mode(False)"]) == {"recorded"}
# sphinx_gallery_end_ignore
nested.rename_axis(index=None, columns="outer block")

# %%
# Between ``no_grad`` and ``enable_grad`` the inner block wins. Inference mode is a second switch on top of that one,
# and ``enable_grad`` does not leave it. ``inference_mode(False)`` does, and it does more: in a ``no_grad`` block it
# switches recording *on*.
#
# What the switches leave alone
# -----------------------------
# They decide what operations record. They do not decide whether a tensor requires a gradient because somebody asked
# for it. Each tensor below is made in a block and used outside of it: where does a gradient arrive?

EXPRESSIONS = [
    "w * 2",
    "torch.zeros_like(w)",
    "torch.ones(4, requires_grad=True)",
    "nn.Parameter(torch.ones(4))",
    "w.float()",
    "w[:2]",
]


def made_in(mode, expression):
    w = torch.ones(4, requires_grad=True)
    with mode():
        y = eval(expression, {"torch": torch, "nn": nn, "w": w})
    if y.requires_grad:
        (y * 2).sum().backward()
    reached = [name for name, t in {"w": w, "itself": y}.items() if t.grad is not None]
    return {
        "requires_grad": "yes" if y.requires_grad else "no",
        "a gradient reaches": reached[0] if reached else "nothing",
        "inference tensor": "yes" if y.is_inference() else "no",
    }


# %%
# The two modes differ in the last column only. The table shows inference mode; under ``no_grad``, that column is "no"
# throughout.

ordinary, table = (
    pd.DataFrame({text: made_in(mode, text) for text in EXPRESSIONS}).T
    for mode in (torch.no_grad, torch.inference_mode)
)
assert ordinary.iloc[:, :2].equals(table.iloc[:, :2])
assert (ordinary["inference tensor"] == "no").all()

# sphinx_gallery_start_ignore
assert table["requires_grad"].tolist() == ["no"] * 2 + ["yes"] * 4
_reached = ["nothing"] * 2 + ["itself"] * 2 + ["w", "nothing"]
assert table["a gradient reaches"].tolist() == _reached
assert table["inference tensor"].tolist() == ["yes"] * 4 + ["no"] * 2
for _mode in (torch.no_grad, torch.inference_mode):
    assert made_in(_mode, "w.detach()[:2]")["requires_grad"] == "no"
    assert made_in(_mode, "w.view(2, 2)") == made_in(_mode, "w[:2]")
    with _mode():
        assert w.float() is w
# sphinx_gallery_end_ignore
table.rename_axis(index=None, columns="made in the block")

# %%
# - An ordinary result requires no gradient.
# - What is made with ``requires_grad=True``, as every parameter is, becomes a leaf as usual.
# - A conversion with nothing to convert returns ``w`` itself.
# - The last row is a trap. A view takes ``requires_grad`` from its base, but has no history. So it claims to require
#   a gradient, and none arrives anywhere (`pytorch#11390 <https://github.com/pytorch/pytorch/issues/11390>`__).
#   ``w.detach()[:2]`` says what it is.
#
# What inference mode forbids
# ---------------------------
# An inference tensor has no :ref:`version counter <sphx_glr_gallery_differentiation_inplace_and_versions.py>`, so it
# cannot take part in what autograd has to watch. Here are six uses of a tensor ``k`` from each mode.


def add_one(k):
    k += 1


MODES = {"no_grad": torch.no_grad, "inference_mode": torch.inference_mode}
USES = {
    "k * 2": lambda k: k * 2,
    "w + k": lambda k: w + k,
    "w * k": lambda k: w * k,
    "w * k.clone()": lambda k: w * k.clone(),
    "k += 1": add_one,
    "k.requires_grad_()": lambda k: k.requires_grad_(),
}


def outcome(mode, use):
    with mode():
        k = torch.ones(4)
    try:
        use(k)
    except RuntimeError as error:
        return textwrap.shorten(str(error), 66, placeholder=" ...")
    return "works"


# %%
# A cell is "works", or the error.

pd.set_option("display.max_colwidth", None)
uses = pd.DataFrame(
    {
        name: {text: outcome(mode, use) for text, use in USES.items()}
        for name, mode in MODES.items()
    }
)

# sphinx_gallery_start_ignore
assert (uses["no_grad"] == "works").all()
_works = uses.index[uses["inference_mode"] == "works"].tolist()
assert _works == ["k * 2", "w + k", "w * k.clone()"]
_starts = [
    "Inference tensors cannot be saved",
    "Inplace update",
    "Setting requires_grad=True",
]
_found = uses.loc[["w * k", "k += 1", "k.requires_grad_()"], "inference_mode"]
assert all(text.startswith(start) for text, start in zip(_found, _starts, strict=True))
assert not hasattr((w + torch.ones(4)).grad_fn, "_saved_other")
# sphinx_gallery_end_ignore
uses.rename_axis(index=None, columns="use")

# %%
# A sum saves nothing for its backward, a product saves the other factor: so ``w + k`` passes and ``w * k`` does not.
# The way out is :ref:`on the page of this message <sphx_glr_gallery_errors_inference_tensor.py>`. As a rule, take
# ``inference_mode`` for results that leave the program, and ``no_grad`` for what a later loss may use.
#
# What they save in time
# ----------------------
# Recording costs something for each operation, whatever its size. So look for it where the tensors are small, and not
# beside the arithmetic of a large product. The modes are timed in turn, so that a busy machine slows all of them.


def many_small(w):
    for _ in range(200):
        w = (w * 1.01).view(4, 4).t()


def one_large(w):
    w @ w


def ratios(run, size, rounds):
    w = torch.ones(size, size, requires_grad=True)
    seconds = {name: [] for name in ("recorded", *MODES)}
    for _ in range(rounds):
        for name, times in seconds.items():
            with MODES.get(name, nullcontext)():
                start = time.perf_counter()
                run(w)
                times.append(time.perf_counter() - start)
    return {
        name: min(times) / min(seconds["no_grad"]) for name, times in seconds.items()
    }


# %%
# The time under ``no_grad`` counts as 1.

# varies: Times depend on the machine and on its load.

times = pd.DataFrame(
    {"200 small": ratios(many_small, 4, 50), "one large": ratios(one_large, 500, 20)}
).T

times.round(2).rename_axis(index=None, columns="operations")

# %%
# The memory that a mode saves often counts for more:
# :ref:`nothing is kept for backward <sphx_glr_gallery_memory_memory_by_mode.py>`.
#
# Variable and volatile
# ---------------------
# Before PyTorch 0.4, what was to be differentiated had to be wrapped in a ``Variable``, and ``volatile=True``
# switched recording off. Both names are still accepted. The first now makes a tensor, the second has no effect but a
# warning.

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    old = Variable(torch.ones(3), volatile=True)

print(caught[0].message)
print("type:", type(old).__name__, "  w * old is recorded:", (w * old).requires_grad)
assert type(old) is torch.Tensor and (w * old).requires_grad

# %%
# What people get wrong
# ---------------------
# **Calling** ``torch.no_grad()`` **without** ``with``. On a line of its own it makes an object and drops it.

torch.no_grad()
print("recorded after torch.no_grad():", records())
assert records()

# %%
# **Expecting the mode in another thread.** It belongs to the thread that set it. A worker begins with recording on.

seen = []
with torch.no_grad():
    worker = threading.Thread(target=lambda: seen.append(records()))
    worker.start()
    worker.join()
print("recorded in the worker:", seen[0])
assert seen == [True]

# %%
# **Building a model in inference mode.** Its parameters are inference tensors. An operation on inference tensors
# alone is not recorded, and the layer begins by transposing its weight. Nothing is raised, and the weight gets no
# gradient.

with torch.inference_mode():
    layer = nn.Linear(4, 1)
layer(torch.ones(2, 4)).sum().backward()

for name, parameter in layer.named_parameters():
    print(f"{name:<6}  requires_grad {parameter.requires_grad}, grad {parameter.grad}")
print("transposed: requires_grad", layer.weight.t().requires_grad)
assert layer.weight.grad is None and layer.bias.grad == 2
del parameter

# sphinx_gallery_start_ignore
assert layer.weight.requires_grad and not layer.weight.t().requires_grad
assert layer.weight.is_inference()
_out = nn.Linear(4, 1)(torch.ones(2, 4))
assert _out.grad_fn.next_functions[2][0].name() == "TBackward0"
with torch.no_grad():
    _layer = nn.Linear(4, 1)
_layer(torch.ones(2, 4)).sum().backward()
assert _layer.weight.grad.tolist() == [[2, 2, 2, 2]]
# sphinx_gallery_end_ignore

# %%
# Under ``no_grad`` the same lines build a model that can be trained.
#
# Exercise
# --------
# ``saliency`` needs the gradient of a score with respect to its input. Called from a validation loop, it fails. Write
# a version that works anywhere: in ``no_grad``, in ``inference_mode``, and outside of both.


def saliency(image):
    image = image.detach().requires_grad_()
    return torch.autograd.grad((image**3).sum(), image)[0]


with torch.inference_mode():
    image = torch.tensor([1.0, 2.0])
    try:
        saliency(image)
    except RuntimeError as error:
        print(f"RuntimeError: {error}")
        assert "does not require grad" in str(error)

# %%
# .. solution::
#
# The table of nested blocks has the answer: in ``inference_mode(False)`` everything is recorded. The image was made
# in inference mode, so it has to be cloned, and in the new block.


@torch.inference_mode(False)
def saliency_anywhere(image):
    return saliency(image.clone())


for mode in OUTER.values():
    with mode():
        gradient = saliency_anywhere(image)
    print(f"{mode.__name__:<15}{gradient.tolist()}")
    assert gradient.tolist() == [3, 12]

# %%
# See also
# --------
# - Before: :ref:`sphx_glr_gallery_tensors_storage.py`, the memory under a tensor.
# - Next: :ref:`sphx_glr_gallery_modes_train_and_eval.py`, the switch that these are taken for.
# - :ref:`sphx_glr_gallery_tensors_detach_clone_data.py`, to stop the gradient at one tensor, not in a whole block.
# - :doc:`Which switch do I want? </guide/which-switch>`, by purpose.
# - In PyTorch's reference: `Locally disabling gradient computation
#   <https://docs.pytorch.org/docs/stable/notes/autograd.html#locally-disabling-gradient-computation>`__ and
#   `torch.inference_mode
#   <https://docs.pytorch.org/docs/stable/generated/torch.autograd.grad_mode.inference_mode.html>`__.
