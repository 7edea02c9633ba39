r"""
Optimizer variants: foreach, fused, LBFGS and Muon
==================================================

.. index::
   ! single: optimizer.step is slow
   ! single: closure
   ! single: fused AdamW
   single: Muon only supports 2D parameters
   single: maximize=True, gradient ascent
   single: capturable=True on the CPU

.. in-short::

   For many ``float32`` weights, ``AdamW(model.parameters(), foreach=True)`` and ``fused=True`` take the same step as
   the for-loop, up to rounding, with fewer operators. ``fused=True`` exists for ``SGD``, ``Adam``, ``AdamW`` and
   ``Adagrad``. On a CPU its writes are not counted, and it can go wrong without an error: with ``SGD`` in
   ``bfloat16`` up to PyTorch 2.13, or after a late switch to ``channels_last``. ``Muon`` takes matrices only.
   ``LBFGS`` may compute the loss several times in one step, so it needs a closure:

   .. code-block:: python

      def closure():
          optimizer.zero_grad()
          loss = loss_function(model(x), target)
          loss.backward()
          return loss

      optimizer.step(closure)
"""

# %%
# The same step with 900 operators or with 2
# ------------------------------------------
# Your model has 100 parameters. A for-loop over them computes each line of Adam's formula 100 times. On a GPU nearly every
# one of these operators starts a kernel, and for small tensors starting one can take longer than computing. An argument changes
# that:

import matplotlib.pyplot as plt
import torch
from torch.optim import LBFGS, SGD, Adam, AdamW, Muon

model = torch.nn.Sequential(*[torch.nn.Linear(8, 8) for _ in range(50)])
optimizer = AdamW(model.parameters(), lr=0.01, foreach=True)  # or fused=True
model(torch.ones(1, 8)).sum().backward()
optimizer.step()

# %%
# .. how-measured:: A dispatch mode counts the operators of a step, and the versions are read in a second run without the mode.

import pandas as pd
from torch.optim import Adagrad
from torch.utils._python_dispatch import TorchDispatchMode


class Operators(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.count = self.largest = 0

    def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
        result = operator(*args, **(kwargs or {}))
        name = str(operator)
        # not counted: the profiler's marks, and reading one number
        if name.startswith("aten.") and "_local_scalar" not in name:
            self.count += 1
            if not name.split(".")[1].endswith("_"):  # in-place: nothing new
                new = result if isinstance(result, (list, tuple)) else [result]
                self.largest = max(self.largest, sum(t.numel() for t in new))
        return result


def two_steps(optimizer_class, parameters=100, **options):
    torch.manual_seed(0)
    weights = [torch.randn(8, 8, requires_grad=True) for _ in range(parameters)]
    optimizer = optimizer_class(weights, lr=0.01, **options)
    for w in weights:
        w.grad = torch.randn(8, 8)
    versions = [w._version for w in weights]
    optimizer.step()
    counted = {w._version - v > 0 for w, v in zip(weights, versions, strict=True)}
    with Operators() as operators:
        optimizer.step()
    return torch.stack(weights).detach(), operators, counted


VARIANTS = {
    "for-loop": {"foreach": False},
    "foreach=True": {"foreach": True},
    "fused=True": {"fused": True},
}


def tabulate_variants(optimizer_class):
    rows = {}
    for name, options in VARIANTS.items():
        weights, operators, counted = two_steps(optimizer_class, **options)
        if name == "for-loop":
            reference = weights
        rows[name] = {
            "operators": operators.count,
            "same result": torch.allclose(weights, reference, rtol=1e-5, atol=1e-6),
            "largest temporary": f"{operators.largest} numbers",
            "write is counted": all(counted),
        }
    return pd.DataFrame(rows).T


# %%
# The second step of AdamW over 100 parameters of 8 by 8 numbers, in three ways:

# sphinx_gallery_start_ignore
_table = tabulate_variants(AdamW)
_loop, _all, _one = _table["operators"]
assert _loop == 900 and 2 < _all < 20 and _one == 2
assert _table["same result"].all()
assert not torch.allclose(two_steps(AdamW)[0], two_steps(SGD)[0], atol=1e-3)
assert _table["largest temporary"].tolist() == [
    "64 numbers",
    "6400 numbers",
    "0 numbers",
]
assert _table["write is counted"].tolist() == [True, True, False]
for _class in (SGD, Adam, AdamW, Adagrad):
    _loop, _all, _one = (two_steps(_class, **o) for o in VARIANTS.values())
    assert _loop[1].count > _all[1].count >= _one[1].count
    assert _loop[2] == _all[2] == {True} and _one[2] == {False}
    for _variant in (_all, _one):
        assert torch.allclose(_variant[0], _loop[0], rtol=1e-5, atol=1e-6)
    assert two_steps(_class)[1].count == _loop[1].count  # the default on a CPU
_refused = []
for _class in (
    torch.optim.RMSprop,
    torch.optim.NAdam,
    torch.optim.RAdam,
    torch.optim.Adadelta,
    torch.optim.Adamax,
    torch.optim.ASGD,
    torch.optim.Rprop,
):
    try:
        two_steps(_class, fused=True)
    except TypeError as error:
        _refused.append("unexpected keyword argument 'fused'" in str(error))
    _loop, _all = (two_steps(_class, foreach=f) for f in (False, True))
    assert torch.allclose(_all[0], _loop[0], rtol=1e-5, atol=1e-5)
    assert _all[1].count < _loop[1].count and _all[2] == _loop[2] == {True}
assert _refused == [True] * 7
for _name in ("foreach", "fused"):
    _saved = AdamW([torch.ones(1, requires_grad=True)]).state_dict()
    _resumed = AdamW([torch.ones(1, requires_grad=True)], **{_name: True})
    _resumed.load_state_dict(_saved)
    assert _resumed.param_groups[0][_name] is None
_raised, _table = [], torch.nn.Embedding(3, 2, sparse=True)
_table(torch.tensor([1])).sum().backward()
for _options in VARIANTS.values():
    try:
        SGD(_table.parameters(), lr=0.1, **_options).step()
    except RuntimeError as error:
        _raised.append("does not support sparse gradients" in str(error))
assert _raised == [True]
# sphinx_gallery_end_ignore
tabulate_variants(AdamW)

# %%
# - ``foreach`` calls operators that take a *list* of tensors, such as ``torch._foreach_add_``. A line of the formula is one
#   operator for all parameters. The price is memory: a temporary result exists for all parameters at once.
# - ``fused`` computes the whole formula in one operator, without temporary results. The other operator increases the step
#   count.
# - If you set neither, this CPU gets the for-loop. For parameters on a CUDA device, PyTorch chooses ``foreach`` by default (see
#   `the reference <https://docs.pytorch.org/docs/stable/optim.html>`__). ``load_state_dict`` restores the setting of
#   the checkpoint.

# %%
# LBFGS needs a closure
# ---------------------
# The other optimizers take one gradient and make one step. ``LBFGS`` estimates the curvature from earlier gradients, and tries
# several points within one ``step``. For that it must be able to compute the loss and the gradient again: the *closure*.


def rosenbrock(w):
    return (1 - w[0]) ** 2 + 100 * (w[1] - w[0] ** 2) ** 2


w = torch.tensor([-1.5, 2.0], requires_grad=True)
optimizer = LBFGS([w], line_search_fn="strong_wolfe")
losses = []


def closure():
    optimizer.zero_grad()
    loss = rosenbrock(w)
    loss.backward()
    losses.append(loss.item())
    return loss


for step in range(3):
    returned = optimizer.step(closure)
    after = rosenbrock(w).item()
    print(f"step {step}: {len(losses)} calls, returned {returned:.4f}, now {after:.1e}")

# sphinx_gallery_start_ignore
assert losses[0] == 12.5 and after < 1e-6 and len(losses) < 100
_w = torch.tensor([-1.5, 2.0], requires_grad=True)
_optimizer = LBFGS([_w], line_search_fn="strong_wolfe")


def _first():
    _optimizer.zero_grad()
    _loss = rosenbrock(_w)
    _loss.backward()
    return _loss


for _ in range(2):
    _before = rosenbrock(_w).item()
    assert _optimizer.step(_first).item() == _before > rosenbrock(_w).item()
# sphinx_gallery_end_ignore

# %%
# ``step`` returns the loss of its *first* call, at the point where it began. The same valley with Adam, which needs one
# evaluation for each step:


def with_adam(evaluations):
    w = torch.tensor([-1.5, 2.0], requires_grad=True)
    optimizer, losses = Adam([w], lr=0.1), []
    for _ in range(evaluations):
        optimizer.zero_grad()
        loss = rosenbrock(w)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


adam = with_adam(200)

# figure: The loss over the number of its evaluations, on a logarithmic axis. LBFGS reaches values below a millionth within 50
#   evaluations, with some worse points on the way. Adam is still far above that after 200 evaluations.
fig, ax = plt.subplots(figsize=(7, 2.6), layout="constrained")
ax.plot(losses, ".-", color="#2563eb", label="LBFGS")
ax.plot(adam, "--", color="#c2410c", label="Adam, lr=0.1")
ax.set(xlabel="evaluations of the loss", ylabel="loss", yscale="log")
ax.set_title("LBFGS on a smooth function without noise")
ax.legend()

# sphinx_gallery_start_ignore
assert min(losses[:50]) < 1e-6 < 1e-4 < min(adam)
assert sorted(losses, reverse=True) != losses
# sphinx_gallery_end_ignore

# %%
# With new batches or dropout, the same point has different losses: use one batch for all calls of a step, and switch dropout
# off. ``LBFGS`` also takes one parameter group only.
#
# Two closures that people write, and what happens:


def closure_without(what):
    w = torch.tensor([-1.5, 2.0], requires_grad=True)
    optimizer = LBFGS([w], line_search_fn="strong_wolfe")

    def closure():
        if what != "zero_grad":
            optimizer.zero_grad()
        loss = rosenbrock(w)
        loss.backward()
        return None if what == "return" else loss

    try:
        for _ in range(3):
            optimizer.step(closure)
    except TypeError as error:
        return f"TypeError: {error}"
    return f"loss {rosenbrock(w).item():.1e}"


for what in ("nothing", "zero_grad", "return"):
    print(f"without {what:<10} {closure_without(what)}")

# sphinx_gallery_start_ignore
assert "not 'NoneType'" in closure_without("return")
assert float(closure_without("zero_grad").split()[1]) > 0.1
assert float(closure_without("nothing").split()[1]) < 1e-6
_raised = []
_w = torch.zeros(1, requires_grad=True)
for _wrong in (
    lambda: LBFGS([_w]).step(),
    lambda: LBFGS([{"params": [_w]}, {"params": [torch.zeros(1, requires_grad=True)]}]),
):
    try:
        _wrong()
    except (TypeError, ValueError) as error:
        _raised.append(str(error))
assert len(_raised) == 2 and "required positional argument: 'closure'" in _raised[0]
assert "doesn't support per-parameter options" in _raised[1]
# sphinx_gallery_end_ignore

# %%
# Without ``zero_grad`` the gradients of all calls add up, and the search goes wrong without an error.

# %%
# Muon takes matrices only
# ------------------------
# ``Muon`` gets the weight matrices of hidden layers, and AdamW the embeddings, the output layer, norms and biases:

embedding, output = torch.nn.Embedding(9, 8), torch.nn.Linear(8, 9)
hidden = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.LayerNorm(8))
language_model = torch.nn.Sequential(embedding, hidden, output)

try:
    Muon(language_model.parameters())
except ValueError as error:
    muon_message = str(error)
    print("ValueError:", error)

matrices = [p for p in hidden.parameters() if p.ndim == 2]
others = [p for p in language_model.parameters() if all(p is not m for m in matrices)]
optimizers = [
    Muon(matrices, lr=1e-3, adjust_lr_fn="match_rms_adamw"),
    AdamW(others, lr=1e-3),
]

language_model(torch.arange(9)).sum().backward()
for optimizer in optimizers:
    optimizer.step()
    optimizer.zero_grad()

# sphinx_gallery_start_ignore
assert muon_message.startswith("Muon only supports 2D parameters whereas we found a")
assert [len(matrices), len(others)] == [1, 6]
assert len(list(language_model.parameters())) == 7
Muon([embedding.weight, output.weight])  # no error
assert [o.defaults["weight_decay"] for o in optimizers] == [0.1, 0.01]
for _shape in ((64, 32), (32, 64), (256, 64)):
    torch.manual_seed(0)
    _w = torch.zeros(_shape, requires_grad=True)
    _w.grad = 1e-3 * torch.randn(_shape)
    Muon([_w], lr=1.0, weight_decay=0, adjust_lr_fn="match_rms_adamw").step()
    assert 0.14 < _w.square().mean().sqrt() < 0.22
_refused = []
for _module in (torch.nn.Conv2d(3, 4, 3), torch.nn.LayerNorm(4)):
    try:
        Muon(_module.parameters())
    except ValueError as error:
        _refused.append("only supports 2D" in str(error))
assert _refused == [True, True]
# sphinx_gallery_end_ignore

# %%
# Choose by layer: with ``p.ndim == 2`` alone, ``Muon`` also gets the embedding and the output layer, without an error. With
# ``match_rms_adamw``, both can have the same learning rate, but ``Muon`` has ten times the default ``weight_decay``.
# Each needs its own scheduler.

# %%
# What people get wrong
# ---------------------
# **Both at once.** Choose one:

messages = []
try:
    AdamW([torch.zeros(3, requires_grad=True)], foreach=True, fused=True)
except RuntimeError as error:
    messages.append(str(error))
    print("RuntimeError:", error)
assert messages == ["`fused` and `foreach` cannot be `True` together."]

# %%
# **maximize=True and a minus.** ``maximize=True`` already goes up. With ``-reward`` as the loss, you go down again:

for name, sign in {"reward": 1, "-reward": -1}.items():
    w = torch.tensor([1.0], requires_grad=True)
    reward = -((w - 3) ** 2).sum()  # highest at 3
    (sign * reward).backward()
    SGD([w], lr=0.1, maximize=True).step()
    print(f"maximize {name}: w = {w.item():.1f}")

# sphinx_gallery_start_ignore
assert abs(w.item() - 0.6) < 1e-6  # away from 3
for _class in (SGD, Adam, AdamW, Adagrad, torch.optim.RMSprop):
    for _up in (False, True):
        _w = torch.ones(1, requires_grad=True)
        _w.grad = torch.ones(1)
        _class([_w], lr=0.1, maximize=_up).step()
        assert (_w > 1) == _up
    _w = torch.ones(1, requires_grad=True)
    _w.grad = torch.zeros(1)
    _class([_w], lr=0.1, maximize=True, weight_decay=0.5).step()
    assert _w < 1
# sphinx_gallery_end_ignore

# %%
# **A run with capturable=True, continued on a CPU.** This option is for :ref:`CUDA graphs
# <sphx_glr_gallery_cuda_cuda_graphs.py>`. Without ``fused``, ``step()`` raises *If capturable=True, params and state_steps must
# be on supported devices*. After loading, set ``group["capturable"] = False`` in ``optimizer.param_groups``.

# sphinx_gallery_start_ignore
for _class in (Adam, AdamW, torch.optim.RMSprop):
    _w = torch.ones(3, requires_grad=True)
    _w.grad, _raised = torch.ones(3), []
    _saved = _class([_w]).state_dict()
    _saved["param_groups"][0]["capturable"] = True  # as from a GPU
    _optimizer = _class([_w])
    _optimizer.load_state_dict(_saved)
    try:
        _optimizer.step()
    except AssertionError as error:
        _raised.append(str(error))
    _message = "If capturable=True, params and state_steps must be on supported devices"
    assert len(_raised) == 1 and _raised[0].startswith(_message)
    for _group in _optimizer.param_groups:
        _group["capturable"] = False
    _optimizer.step()
    assert (_w < 1).all()
Adam([_w], capturable=True, fused=True).step()  # no error
# sphinx_gallery_end_ignore

# %%
# **A fused step between forward and backward.** Each tensor has a version counter, and autograd looks at it to see whether a
# saved tensor was overwritten. On a CPU, the fused step does not increase the counter. So there is no error, and the gradient
# is wrong: it should be 2.

for name, options in VARIANTS.items():
    w = torch.tensor([1.0], requires_grad=True)
    loss = (w**2).sum()
    w.grad = torch.tensor([1.0])
    SGD([w], lr=0.5, **options).step()  # w is 0.5 now
    w.grad = None
    try:
        loss.backward()
        print(f"{name:<12}  w.grad = {w.grad.item()}")
        messages.append(w.grad.item())
    except RuntimeError as error:
        print(f"{name:<12}  RuntimeError: {str(error)[:40]}...")
        messages.append("modified by an inplace operation" in str(error))
assert messages[1:] == [True, True, 1.0]

# %%
# **Fused SGD in bfloat16 on a CPU.** In PyTorch 2.13, most of these weights do not move at all, and there is no error.
# ``float16`` has the same fault (`pytorch#191763 <https://github.com/pytorch/pytorch/issues/191763>`__). PyTorch 2.14 is
# right in both types. ``Adam``, ``AdamW`` and ``Adagrad`` were right in the same test.

# varies: How many weights move depends on the width of the processor's vector registers.

w = torch.ones(40, dtype=torch.bfloat16, requires_grad=True)
w.grad = torch.ones_like(w)
SGD([w], lr=0.5, fused=True).step()
print("weights that moved:", (w < 1).sum().item(), "of 40")

# sphinx_gallery_start_ignore
TORCH = tuple(int(part) for part in torch.__version__.split(".")[:2])
assert ((w < 1).sum() < 40) == (TORCH < (2, 14))
for _dtype in (torch.bfloat16, torch.float16, torch.float32):
    for _class in (SGD, Adam, AdamW, Adagrad):
        for _options in VARIANTS.values():
            _w = torch.ones(40, dtype=_dtype, requires_grad=True)
            _w.grad = torch.ones_like(_w)
            _class([_w], lr=0.5, **_options).step()
            _faulty = "fused" in _options and _class is SGD and _dtype.itemsize == 2
            _faulty = _faulty and TORCH < (2, 14)
            assert (_w < 1).all() == (not _faulty)
# sphinx_gallery_end_ignore

# %%
# **channels_last after the first fused step.** The optimizer's state then has another memory order than the weight. This CPU
# kernel goes through both as they are stored, pairs the wrong numbers, and raises nothing. The same happens if you load the
# checkpoint of a contiguous model into a ``channels_last`` model. (``SGD`` without momentum has no state, and is right.)


def convolution(options):
    torch.manual_seed(0)
    model, x = torch.nn.Conv2d(3, 4, 3), torch.randn(2, 3, 8, 8)
    optimizer = Adam(model.parameters(), lr=0.01, **options)
    for step in range(4):
        if step == 1:
            model.to(memory_format=torch.channels_last)
        optimizer.zero_grad()
        model(x).square().sum().backward()
        optimizer.step()
    return model.weight.detach()


reference = convolution(VARIANTS["for-loop"])
for name, options in VARIANTS.items():
    difference = (convolution(options) - reference).abs().max().item()
    print(f"{name:<12}  largest difference to the for-loop: {difference:.3f}")
    messages.append(difference)
assert max(messages[4:6]) < 1e-6 and messages[6] > 0.01


# sphinx_gallery_start_ignore
def _fused(options, resume, optimizer_class=Adam, **more):
    torch.manual_seed(0)
    x = torch.randn(2, 3, 8, 8)
    model = torch.nn.Conv2d(3, 4, 3)
    if not resume:
        model.to(memory_format=torch.channels_last)  # before the first step: right
    optimizer = optimizer_class(model.parameters(), lr=0.01, **options, **more)
    for step in range(4):
        if step == 1 and resume:
            saved = model.state_dict(), optimizer.state_dict()
            model = torch.nn.Conv2d(3, 4, 3).to(memory_format=torch.channels_last)
            optimizer = optimizer_class(model.parameters(), lr=0.01, **options, **more)
            model.load_state_dict(saved[0])
            optimizer.load_state_dict(saved[1])
        optimizer.zero_grad()
        model(x).square().sum().backward()
        optimizer.step()
    return model.weight.detach()


for _class, _more in ((Adam, {}), (AdamW, {}), (SGD, {"momentum": 0.9})):
    for _resume in (False, True):
        _loop, _all, _one = (
            _fused(o, _resume, _class, **_more) for o in VARIANTS.values()
        )
        assert torch.allclose(_loop, _all, atol=1e-6)
        assert torch.allclose(_loop, _one, atol=1e-4) == (not _resume)
_loop, _all, _one = (_fused(o, True, SGD) for o in VARIANTS.values())
assert torch.equal(_loop, _all) and torch.allclose(_loop, _one, atol=1e-6)


def _other_order(options, slice_of_weight):
    torch.manual_seed(0)
    w = torch.randn(4, 10)[:, :5] if slice_of_weight else torch.randn(4, 5)
    w, grad = w.requires_grad_(), torch.randn(5, 4).t()
    w.grad = grad.contiguous() if slice_of_weight else grad
    SGD([w], lr=0.1, **options).step()
    return w.detach().clone()


for _slice in (True, False):
    _loop, _all, _one = (_other_order(o, _slice) for o in VARIANTS.values())
    assert torch.equal(_loop, _all) and (_loop - _one).abs().max() > 0.01
_stored = torch.tensor([1.0, 5.0, 5.0])  # what lies behind the number of the gradient
for _options, _moved in (({"foreach": False}, [1, 1, 1]), ({"fused": True}, [1, 5, 5])):
    _w = torch.zeros(3, requires_grad=True)
    _w.grad = _stored[:1].expand(3)
    SGD([_w], lr=1.0, **_options).step()
    assert (-_w).tolist() == _moved
# sphinx_gallery_end_ignore

# %%
# So choose the memory format before you make the optimizer. Two rarer cases go wrong in the same way: a weight that is a
# slice of a larger tensor, and a ``.grad`` that you set by hand in another memory order, or expanded.
#
# On CUDA the fused operator was seen to refuse different strides:
# *params, grads, exp_avgs, and exp_avg_sqs must have same dtype, device, and layout* (`pytorch#106951
# <https://github.com/pytorch/pytorch/issues/106951>`__).
#
# ``SGD`` takes the sparse gradients of ``nn.Embedding(..., sparse=True)``, but ``SGD(..., fused=True)`` raises an error.

# %%
# Exercise
# --------
# How many operators does a step of ``SGD`` with momentum need for 10 parameters and for 1000, as a for-loop and with
# ``foreach``? Count a later step: the first one also creates the momentum.
#
# .. solution::
#
# The for-loop needs three for each parameter: two for the momentum, and one for the weight. ``foreach`` needs three in both
# cases, however many parameters there are. Parameters of another dtype are another list, and need three more.

for count in (10, 1000):
    for name in ("for-loop", "foreach=True"):
        options = {"momentum": 0.9, "parameters": count} | VARIANTS[name]
        print(f"{count:>4} parameters, {name:<12} {two_steps(SGD, **options)[1].count}")

# predict: [two_steps(SGD, momentum=0.9, parameters=1000, **VARIANTS[name])[1].count
#   for name in ("for-loop", "foreach=True")] -- How many operators do 1000 parameters
#   need, as a for-loop and with ``foreach``?

# sphinx_gallery_start_ignore
for _count in (10, 1000):
    _options = {"momentum": 0.9, "parameters": _count}
    assert two_steps(SGD, foreach=False, **_options)[1].count == 3 * _count
    assert two_steps(SGD, foreach=True, **_options)[1].count == 3
_mixed = [
    torch.zeros(3, dtype=d, requires_grad=True) for d in (torch.half, torch.float)
]
for _w in _mixed:
    _w.grad = torch.ones_like(_w)
_optimizer = SGD(_mixed, lr=0.1, momentum=0.9, foreach=True)
_optimizer.step()
with Operators() as _operators:
    _optimizer.step()
assert _operators.count == 6
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_differentiation_inplace_and_versions.py`, what a version counter notices.
# - :ref:`sphx_glr_gallery_graphs_from_module_to_kernel.py`, how an operator reaches its kernel.
# - In PyTorch's reference: `AdamW <https://docs.pytorch.org/docs/stable/generated/torch.optim.AdamW.html>`__ and `LBFGS
#   <https://docs.pytorch.org/docs/stable/generated/torch.optim.LBFGS.html>`__.
