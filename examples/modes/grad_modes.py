r"""
torch.no_grad, inference_mode, enable_grad and set_grad_enabled
===============================================================

.. index::
   single: no_grad or inference_mode
   single: turn off gradients for validation

.. in-short::

   Validate in ``with torch.no_grad():``. Nothing in the block is recorded for backward, and a later loss sees its results as
   constants. ``torch.inference_mode()`` is stricter: a graph cannot save the tensors that it makes. So use it in a program
   that only predicts. ``enable_grad()`` turns recording on again inside ``no_grad()``, but not inside ``inference_mode()``.
   No mode turns dropout off: call ``model.eval()`` too (:doc:`Which switch do I want? </guide/which-switch>`).
"""

# %%
# A validation loop
# -----------------
# In training, autograd *records* each operation: it adds a node to the graph, and saves the tensors that ``backward()`` will
# need. Validation needs the loss, but no gradients, so turn recording off:

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(), nn.Linear(8, 1))
batches = [(torch.randn(16, 4), torch.randn(16, 1)) for _ in range(3)]

model.eval()  # turns dropout off
total = count = 0
with torch.no_grad():  # turns recording off
    for inputs, targets in batches:
        loss = nn.functional.mse_loss(model(inputs), targets)
        total += loss * len(inputs)  # the last batch may be smaller
        count += len(inputs)
model.train()
print("loss", total / count, "  recorded?", total.requires_grad)

# sphinx_gallery_start_ignore
_total = sum(nn.functional.mse_loss(model(_i), _t) for _i, _t in batches)
assert not total.requires_grad and _total.requires_grad
_nodes = [_total.grad_fn]
for _node in _nodes:
    _nodes += [_next for _next, _ in _node.next_functions if _next]
assert sum(_node.name() == "MseLossBackward0" for _node in _nodes) == len(batches)
# sphinx_gallery_end_ignore

# %%
# Without the block, ``total`` would keep the graph of each batch, so memory would grow.
#
# **The mode in which an operation runs decides if it is recorded.** The model does not change: after the block it trains as
# before, and in the block its dropout still needs ``eval()``.

# %%
# A target that should stay fixed
# -------------------------------
# In Q-learning, a network learns to predict a target that it computes itself. The target should count as a constant, so
# compute it in a block:

w = torch.tensor(3.0, requires_grad=True)
x = torch.tensor(2.0)
prediction = w * x
with torch.no_grad():
    target = w * x + 1
loss = (prediction - target) ** 2
loss.backward()
# graph: loss -- The target enters the graph as a constant, although it was computed from w

# sphinx_gallery_start_ignore
assert w.grad == -4 and not target.requires_grad and target.grad_fn is None
_w = torch.tensor(3.0, requires_grad=True)
((_w * x - (_w * x + 1)) ** 2).backward()
assert _w.grad == 0
_dropout = nn.Dropout()
for _mode in (torch.no_grad, torch.inference_mode):
    with _mode():
        assert (_dropout(torch.ones(1000)) == 0).any()
# sphinx_gallery_end_ignore

# %%
# The gradient is -4. Without the block, the same ``w`` would move both sides, and the gradient of this loss would be 0.

# %%
# no_grad or inference_mode?
# --------------------------
# .. list-table::
#    :header-rows: 1
#    :widths: 24 26 50
#
#    * - mode
#      - recorded
#      - use it for
#    * - none
#      - yes
#      - the forward pass in training
#    * - ``no_grad()``
#      - no
#      - validation; your own update of a weight; a target or a cached value that a loss uses
#    * - ``inference_mode()``
#      - no, and a later graph cannot save its results
#      - a program that only predicts
#
# To see what the last row means, make ``k`` in a block and use it after the block:
#
# .. how-measured:: This code makes k in each mode, runs each use outside of the block, and shortens the error.

import pandas as pd


def add_one(k):
    k += 1


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
        return str(error).split(".")[0].split(" outside")[0]
    return "works"


def tabulate_uses(*modes):
    outcomes = {
        mode.__name__: {text: outcome(mode, use) for text, use in USES.items()}
        for mode in modes
    }
    return pd.DataFrame(outcomes).rename_axis(columns="after the block")


pd.set_option("display.max_colwidth", None)

# %%
# The error, or "works":

# sphinx_gallery_start_ignore
uses = tabulate_uses(torch.no_grad, torch.inference_mode)
assert (uses["no_grad"] == "works").all()
assert uses["inference_mode"].tolist() == [
    "works",
    "works",
    "Inference tensors cannot be saved for backward",
    "works",
    "Inplace update to inference tensor",
    "Setting requires_grad=True on inference tensor",
]
with torch.inference_mode():
    _k = torch.ones(4)
assert not (_k * 2).is_inference() and not _k.clone().is_inference()
assert _k[:2].is_inference() and _k.detach().is_inference()
_older, _many = torch.zeros(4), torch.ones(4, requires_grad=True)
with torch.inference_mode():
    _older += 1  # not new, and neither are views of older tensors
    _views = [_older, _older[:2], _many.view(2, 2), _many.detach()]
    assert _older._version == 1 and _older[:2]._base is _older
assert not any(_view.is_inference() for _view in _views)
(_many * _older).sum().backward()
assert _many.grad.tolist() == [1, 1, 1, 1]
assert (w * torch.ones(4)).grad_fn._saved_other is not None
assert not hasattr((w + torch.ones(4)).grad_fn, "_saved_other")
# sphinx_gallery_end_ignore
tabulate_uses(torch.no_grad, torch.inference_mode)

# %%
# A tensor made in inference mode lacks a :ref:`version counter
# <sphx_glr_gallery_differentiation_inplace_and_versions.py>`, so autograd could not tell if it was changed. Therefore a graph
# refuses to save it. ``w * k`` raises because the product has to save ``k``, but ``w + k`` works. :ref:`The page on this
# message <sphx_glr_gallery_errors_inference_tensor.py>` has ways out.
#
# Which is faster? See :ref:`the times <sphx_glr_gallery_profiling_cost_of_recording.py>`.

# %%
# Nested: which one wins
# ----------------------
# Is a product recorded in a block inside a block?


def records():
    return (w * x).requires_grad


with torch.no_grad(), torch.enable_grad():
    print("no_grad(),        enable_grad():        ", records())
with torch.inference_mode(), torch.enable_grad():
    print("inference_mode(), enable_grad():        ", records())
with torch.inference_mode(), torch.inference_mode(False):
    print("inference_mode(), inference_mode(False):", records())
with torch.no_grad(), torch.inference_mode(False):
    print("no_grad(),        inference_mode(False):", records())

# sphinx_gallery_start_ignore
from contextlib import nullcontext as _nullcontext

_no, _inference, _enable = torch.no_grad, torch.inference_mode, torch.enable_grad


def _off():
    return torch.inference_mode(False)


for _outer, _inner, _recorded, _is_inference in (
    (_nullcontext, _enable, True, False),
    (_nullcontext, _off, True, False),
    (_no, _enable, True, False),
    (_no, _no, False, False),
    (_no, _inference, False, True),
    (_no, _off, True, False),
    (_enable, _no, False, False),
    (_inference, _enable, False, True),
    (_inference, lambda: torch.set_grad_enabled(True), False, True),
    (_inference, _no, False, True),
    (_inference, _off, True, False),
):
    with _outer(), _inner():
        assert records() is _recorded and (w * x).is_inference() is _is_inference
# sphinx_gallery_end_ignore

# %%
# Between ``no_grad`` and ``enable_grad``, the inner block wins. Neither of them ends inference mode, but
# ``inference_mode(False)`` does. It turns recording *on*, even in ``no_grad``.

# %%
# As a block, as a decorator, as a call
# -------------------------------------
# All four in the title work in a ``with`` statement and as a decorator. ``set_grad_enabled`` takes a flag, so one piece of code
# serves training and validation:


@torch.no_grad()
def predict(inputs):
    return model(inputs)


print("decorator:", predict(inputs).requires_grad)

for training in (True, False):
    model.train(training)
    with torch.set_grad_enabled(training):
        loss = nn.functional.mse_loss(model(inputs), targets)
    print(f"training = {training}:", loss.requires_grad)

torch.set_grad_enabled(False)  # a plain call: it holds until the next call
print("after the call:", model(inputs).requires_grad)
torch.set_grad_enabled(True)


# sphinx_gallery_start_ignore
@torch.no_grad()
def evaluate():
    return records()


assert not predict(inputs).requires_grad and model(inputs).requires_grad
assert not loss.requires_grad


@torch.no_grad
def _bare():
    return records()


@torch.inference_mode
def _bare_inference():
    return records()


@torch.enable_grad
def _bare_enabled():
    return records()


assert records() and not evaluate() and not _bare() and not _bare_inference()
with torch.no_grad():
    assert _bare_enabled() and torch.enable_grad()(records)() and not records()
with torch.set_grad_enabled(False):
    assert not records()
assert not torch.set_grad_enabled(False)(records)() and records()
_raised = []
try:
    torch.set_grad_enabled(records)
except TypeError as error:
    _raised.append("must be bool, not function" in str(error))
assert _raised == [True] and records()
# sphinx_gallery_end_ignore

# %%
# What people get wrong
# ---------------------
# **Calling torch.no_grad() without with.** On its own line it only makes an object:

torch.no_grad()
print("recorded?", records())

# sphinx_gallery_start_ignore
assert records()
torch.inference_mode()
assert records()
with torch.no_grad():
    torch.enable_grad()
    assert not records()
# sphinx_gallery_end_ignore

# %%
# **Building a model in inference mode.** Most models then raise *Inference tensors cannot be saved for backward* in training.
# A single ``Linear`` layer raises nothing, and its weight silently stays without a gradient:

with torch.inference_mode():
    layer = nn.Linear(4, 1)

layer(torch.ones(2, 4)).sum().backward()
print("weight.grad:", layer.weight.grad, "  bias.grad:", layer.bias.grad)

# sphinx_gallery_start_ignore
with torch.no_grad():
    _layer = nn.Linear(4, 1)
_layer(torch.ones(2, 4)).sum().backward()
assert _layer.weight.requires_grad and _layer.weight.grad.tolist() == [[2, 2, 2, 2]]
assert layer.weight.grad is None and layer.bias.grad == 2
assert layer.weight.requires_grad and not layer.weight.t().requires_grad
assert layer.weight.is_inference()
_out = nn.Linear(4, 1)(torch.ones(2, 4))
assert _out.grad_fn.next_functions[2][0].name() == "TBackward0"
with torch.inference_mode():
    _models = [
        nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 1)),
        nn.Conv1d(2, 2, 1),
        nn.LayerNorm(4),
        nn.LSTM(4, 4),
    ]
_raised = []
for _model in _models:
    try:
        _model(torch.ones(2, 4))
    except RuntimeError as error:
        _raised.append(str(error).startswith("Inference tensors cannot be saved"))
assert _raised == [True] * 4
# sphinx_gallery_end_ignore

# %%
# Build the model outside of the block.
#
# **Taking a view in the block.** A slice takes ``requires_grad`` from its base, but its history is not recorded. So it claims
# to require grad, and no gradient arrives (`pytorch#11390 <https://github.com/pytorch/pytorch/issues/11390>`__):

weights = torch.ones(4, requires_grad=True)
with torch.no_grad():
    view = weights[:2]

view.sum().backward()
print(view.requires_grad, weights.grad, view.grad)

# sphinx_gallery_start_ignore
assert view.requires_grad and weights.grad is None and view.grad is None
with torch.no_grad():
    assert not weights.detach()[:2].requires_grad
    _views = [weights.t(), weights.view(2, 2), weights[:0], weights[0]]
for _view in _views:
    assert _view.requires_grad and _view.grad_fn is None
    _view.sum().backward()
    assert weights.grad is None and _view.grad is None
# sphinx_gallery_end_ignore

# %%
# ``weights.t()`` and ``weights.view(...)`` do the same. For a constant, write ``weights.detach()[:2]`` instead. For a gradient,
# take the slice outside of the block.
#
# **A generator, a coroutine, a thread.** While a generator waits at ``yield`` in a block, the block is still open, so your own
# loop runs in it. Decorate the generator instead. With ``async def``, a decorator ends before the body runs, so write ``with``
# in the body, and no ``await`` in that block. A new thread starts with recording on: open the block in its function.


# sphinx_gallery_start_ignore
def rows():
    with torch.no_grad():
        yield from weights.detach() * 2


loop = rows()
next(loop)
assert not records()
loop.close()
assert records()


@torch.no_grad()
def _rows():
    for _ in range(2):
        yield records()


class _Pause:
    def __await__(self):
        yield


def _run(coroutine):
    try:
        coroutine.send(None)
    except StopIteration as end:
        return end.value


for _mode in (torch.no_grad, torch.inference_mode):

    @_mode()
    async def _decorated():
        return records()

    async def _with_inside(mode=_mode):
        with mode():
            return records()

    async def _await_inside(mode=_mode):
        with mode():
            await _Pause()

    assert _run(_decorated()) and not _run(_with_inside())
    _open = _await_inside()
    _run(_open)
    assert not records()  # whoever runs now is in the block
    _run(_open)
    assert records()


for _recorded in _rows():
    assert not _recorded and records()

from concurrent.futures import ThreadPoolExecutor

with torch.no_grad(), ThreadPoolExecutor() as pool:
    assert pool.submit(records).result()
with torch.inference_mode(), ThreadPoolExecutor() as pool:
    assert pool.submit(records).result()
# sphinx_gallery_end_ignore

# %%
# Exercise
# --------
# ``saliency`` needs the gradient of a score with respect to its input, so it fails in a validation loop. Write a version that
# works in ``no_grad``, in ``inference_mode``, and outside of both.


def saliency(image):
    image = image.detach().requires_grad_()
    return torch.autograd.grad((image**3).sum(), image)[0]


with torch.inference_mode():
    image = torch.tensor([1.0, 2.0])
    try:
        saliency(image)
    except RuntimeError as error:
        message = str(error)
        print("RuntimeError:", message)

# sphinx_gallery_start_ignore
assert "does not require grad" in message
# sphinx_gallery_end_ignore

# %%
# .. solution::
#
# ``inference_mode(False)`` turns recording on in each of them. The image was made in inference mode, so clone it inside the new
# block. Lightning validates in inference mode by default, so this helps there too.


from contextlib import nullcontext


@torch.inference_mode(False)
def saliency_anywhere(image):
    return saliency(image.clone())


for mode in (nullcontext, torch.no_grad, torch.inference_mode):
    with mode():
        gradient = saliency_anywhere(image)
    print(gradient)
    assert gradient.tolist() == [3, 12]

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_tensors_detach_clone_data.py`, to stop the gradient at one tensor, not in a whole block.
# - :doc:`Which switch do I want? </guide/which-switch>`, by purpose, and :ref:`sphx_glr_gallery_memory_memory_by_mode.py`.
# - In PyTorch's reference: `Locally disabling gradient computation
#   <https://docs.pytorch.org/docs/stable/notes/autograd.html#locally-disabling-gradient-computation>`__ and
#   `torch.inference_mode
#   <https://docs.pytorch.org/docs/stable/generated/torch.autograd.grad_mode.inference_mode.html>`__.
