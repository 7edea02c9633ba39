r"""
element 0 of tensors does not require grad and does not have a grad_fn
======================================================================

.. index::
   ! single: element 0 of variables does not require grad
   ! single: loss.grad_fn is None
   ! single: backward inside of a hook, a custom Function or a closure raises

.. in-short::

   The loss has no graph: a step such as ``argmax`` or ``item()`` cut it off from the parameters, recording was off, or the
   parameters are frozen. Print ``requires_grad`` of each result up to the loss, and change the step after the last ``True``.

   .. code-block:: diff

        scores = model(inputs)
      - loss = (scores.argmax(dim=1) != labels).float().mean()
      + loss = nn.functional.cross_entropy(scores, labels)

   **Not this:** ``loss.requires_grad_(True)``. The message is gone, and the model learns nothing.
"""

# %%
# The code that raises it
# -----------------------

import torch
from torch import nn

torch.manual_seed(0)

# sphinx_gallery_start_ignore
# isort: split
import warnings

try:
    # sphinx_gallery_end_ignore
    model = nn.Linear(2, 3)
    inputs, labels = torch.randn(4, 2), torch.tensor([0, 1, 2, 1])

    scores = model(inputs)
    loss = (scores.argmax(dim=1) != labels).float().mean()
    loss.backward()
# sphinx_gallery_start_ignore
except RuntimeError as error:
    message = str(error)
    print("RuntimeError:", message)
assert message.startswith("element 0 of tensors does not require grad")
assert loss.grad_fn is None and not loss.requires_grad
# sphinx_gallery_end_ignore

# %%
# Why
# ---
# An operation is recorded only if recording is on, an input requires a gradient, and its result can have one. The result of
# ``argmax`` cannot: it is a position, which jumps from one integer to the next.
#
# How to find the line
# --------------------
# Look at your lines of the traceback, from the last one up:
#
# .. list-table::
#    :header-rows: 1
#    :widths: 50 50
#
#    * - the traceback has
#      - cause
#    * - ``loss.backward()``, or a trainer's ``accelerator.backward(loss)``
#      - the forward pass, as below
#    * - ``backward`` of a Function, a backward hook, or a closure in a custom optimizer
#      - recording is usually off: compute that loss below ``with torch.enable_grad():``. In a Function, start from
#        ``x.detach().requires_grad_()``.
#    * - ``loss.backward()``, after batches that worked
#      - Often the loss is still its first ``torch.tensor(0.0)``, as in a batch without boxes. Begin with
#        ``loss = (0 * scores).sum()``, with all outputs of the model (``scores.nan_to_num()`` if they are masked by
#        ``-inf``). The gradient is then zero, which DDP, a scaler and gradient accumulation need. If a constant replaced a
#        loss that was NaN, :ref:`find the NaN <sphx_glr_gallery_errors_nan_in_backward.py>`. After a validation, recording
#        may still be off: see below.
#    * - a warning of ``checkpoint.py`` before it
#      - :ref:`a checkpoint <sphx_glr_gallery_errors_checkpoint_without_gradients.py>`
#
# In the forward pass, print ``requires_grad`` along the way:

scores = model(inputs)
choice = scores.argmax(dim=1)
loss = (choice != labels).float().mean()

for name, tensor in {"scores": scores, "choice": choice, "loss": loss}.items():
    print(f"{name:<6} requires_grad {tensor.requires_grad}")

# graph: scores -- The graph of the model ends at scores: choice and loss are not in it

# sphinx_gallery_start_ignore
assert scores.requires_grad and not choice.requires_grad and not loss.requires_grad
# sphinx_gallery_end_ignore

# %%
# Is ``scores`` already ``False``? Print these lines where the forward pass runs. A frozen model has no ``True`` in the
# first. In ``no_grad`` and after ``set_grad_enabled(False)`` the second is ``False``. In ``inference_mode`` the third is
# ``True``.

print([parameter.requires_grad for parameter in model.parameters()])
print(torch.is_grad_enabled())
print(torch.is_inference_mode_enabled())


# sphinx_gallery_start_ignore
def _loss(network=model):
    return nn.functional.cross_entropy(network(inputs), labels)


def _raises(function):
    try:
        function().backward()
    except RuntimeError as error:
        return str(error) == message
    return False


assert torch.is_grad_enabled() and all(p.requires_grad for p in model.parameters())
with torch.set_grad_enabled(False):
    assert not torch.is_grad_enabled() and not _loss().requires_grad
assert not torch.is_inference_mode_enabled()
with torch.inference_mode():
    assert torch.is_inference_mode_enabled()
    with torch.enable_grad():
        assert torch.is_grad_enabled() and _raises(_loss)
    with torch.inference_mode(False):
        assert not _raises(_loss)
        model.zero_grad()
assert _raises(torch.no_grad()(_loss)) and _raises(torch.inference_mode()(_loss))
model.requires_grad_(False)
assert _raises(_loss)
_wanted = inputs.clone().requires_grad_()
nn.functional.cross_entropy(model(_wanted), labels).backward()
assert _wanted.grad.any() and model.weight.grad is None
model.requires_grad_(True)
assert not _raises(_loss)
model.zero_grad()
# sphinx_gallery_end_ignore

# %%
# The fix
# -------
# **A frozen model, or recording that is off.** Call ``requires_grad_(True)`` on the layers that you train, before you make the
# optimizer. A quantized model needs an adapter (``get_peft_model``), a loaded adapter ``is_trainable=True``. Move the forward
# pass out of ``no_grad``. ``predict()``, ``encode()`` and ``generate()`` of libraries often have it inside: call the model
# itself. In ``inference_mode``, ``enable_grad()`` does not help: write ``with torch.inference_mode(False):``, in Lightning
# ``Trainer(inference_mode=False)`` and ``enable_grad()``. An input or a weight made by hand needs ``requires_grad_()`` before
# the forward pass.
#
# **A choice in between.** The results of ``argmax``, ``>``, ``==`` and ``long()`` have no history. Compute the loss from the
# scores.

scores = model(inputs)
accuracy = (scores.argmax(dim=1) == labels).float().mean()
loss = nn.functional.cross_entropy(scores, labels)
loss.backward()
print("requires_grad:", accuracy.requires_grad, loss.requires_grad)

# sphinx_gallery_start_ignore
assert loss.requires_grad and not accuracy.requires_grad
for _cut in (scores.argmax(), scores > 0, scores == scores, scores.long()):
    assert not _cut.requires_grad
_right = model.weight.grad.clone()
assert torch.allclose(_right, torch.autograd.grad(_loss(), model.weight)[0])
# sphinx_gallery_end_ignore

# %%
# **A number in between.** ``item()``, ``tolist()`` and ``torch.tensor(...)`` keep the value and drop the history. ``detach()``,
# ``.data``, NumPy, ``autograd.grad`` without ``create_graph=True`` and a distribution's ``sample()`` (not ``rsample()``) drop
# it, too. Put losses together with ``torch.stack``.

losses = [
    nn.functional.cross_entropy(model(inputs[:2]), labels[:2]),
    nn.functional.cross_entropy(model(inputs[2:]), labels[2:]),
]
numbers = torch.tensor([loss.item() for loss in losses]).mean()
tensors = torch.stack(losses).mean()
print("requires_grad:", numbers.requires_grad, tensors.requires_grad)

# sphinx_gallery_start_ignore
assert tensors.requires_grad and not numbers.requires_grad
assert abs(numbers - tensors) < 1e-6
assert torch.allclose(torch.autograd.grad(tensors, model.weight)[0], _right)
assert not scores.detach().requires_grad and not scores.data.requires_grad
_wanted.grad, _network = None, nn.Sequential(model, nn.Tanh())
for _kept in (False, True):
    _total = _network(_wanted).sum()
    (_slope,) = torch.autograd.grad(_total, _wanted, create_graph=_kept)
    assert _raises(lambda s=_slope: (s.norm(dim=1) - 1).square().mean()) != _kept
assert not torch.from_numpy(scores.detach().numpy()).requires_grad
_normal = torch.distributions.Normal(scores, 1.0)
assert not _normal.sample().requires_grad and _normal.rsample().requires_grad
# a batch without a match: a loss that begins with a constant raises, zero times the scores does not
_initial = {name: value.clone() for name, value in model.state_dict().items()}


def _accumulated(start, scaled=False):
    """Two steps of two batches each, the last one without a row, or what backward says."""
    model.load_state_dict(_initial)
    model.zero_grad()
    sgd = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9, weight_decay=0.1)
    scaler = torch.amp.GradScaler("cpu", enabled=scaled)
    for step, batch in enumerate((inputs, inputs[:1], inputs[1:], inputs[:0])):
        rows = model(batch)
        loss = start(rows)
        for row in rows:
            loss = loss + row.square().sum()
        if start is not _constant or len(batch):
            scaler.scale(loss / 2).backward()
        else:
            assert _raises(loss.clone)
        if step % 2:
            scaler.step(sgd)
            scaler.update()
            sgd.zero_grad()
    return model.weight.detach().clone()


def _constant(rows):
    return torch.tensor(0.0)


def _zero(rows):
    return (0 * rows).sum()


assert torch.equal(_accumulated(_constant), _accumulated(_zero))
assert torch.allclose(_accumulated(_zero), _accumulated(_zero, scaled=True))
_large = torch.full((100,), 6e4, dtype=torch.float16)
assert _zero(_large) == 0 and (0 * _large.sum()).isnan()
_masked = model(inputs).masked_fill(torch.tensor([True, False, False]), -torch.inf)
assert _zero(_masked).isnan()
(_slope,) = torch.autograd.grad(_zero(_masked.nan_to_num()), model.weight)
assert not _slope.any() and not _slope.isnan().any()
model.load_state_dict(_initial)
model.zero_grad()
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # it advises detach().clone()
    assert not torch.tensor(scores).requires_grad
# sphinx_gallery_end_ignore

# %%
# **A checkpoint after a frozen part.** With ``use_reentrant=True``, the checkpoint records nothing if its input requires no
# gradient. Pass ``use_reentrant=False``, in Hugging Face's trainer ``gradient_checkpointing_kwargs={"use_reentrant": False}``:

from torch.utils.checkpoint import checkpoint

output = checkpoint(model, inputs, use_reentrant=False)
print("requires_grad:", output.requires_grad)

# sphinx_gallery_start_ignore
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    assert not checkpoint(model, inputs, use_reentrant=True).requires_grad
assert "None of the inputs have requires_grad=True. Gradients will be None" in str(
    caught[-1].message
)
_input = inputs.clone().requires_grad_()
for _output in (output, checkpoint(model, _input, use_reentrant=True)):
    model.zero_grad()
    nn.functional.cross_entropy(_output, labels).backward()
    assert torch.allclose(model.weight.grad, _right)


class _Recomputed(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sin()

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        x = x.detach().requires_grad_() if _detached else x
        with torch.set_grad_enabled(_enabled):
            y = x.sin()
        y.backward(gradient)
        return x.grad


class _Step(torch.optim.SGD):
    @torch.no_grad()
    def step(self, closure):
        with torch.set_grad_enabled(_enabled):
            loss = closure()
        loss.backward()
        super().step()


def _recomputed():
    x = torch.tensor([0.0, 1.0], requires_grad=True)
    _Recomputed.apply(x).sum().backward()
    assert torch.allclose(x.grad, x.detach().cos())


def _hooked():
    w = torch.ones(2, requires_grad=True)

    def hook(_):
        with torch.set_grad_enabled(_enabled):
            loss = w.square().sum()
        loss.backward()

    x = torch.ones(2, requires_grad=True)
    x.register_hook(hook)
    x.sum().backward()
    assert w.grad.tolist() == [2, 2]


def _closed():
    w = torch.ones(2, requires_grad=True)
    _Step([w], lr=0.1).step(lambda: w.square().sum())
    assert torch.allclose(w, torch.full((2,), 0.8))


raised, _detached = [], True
for _enabled in (False, True):
    for _call in (_recomputed, _hooked, _closed):
        try:
            _call()
        except RuntimeError as error:
            raised.append(str(error))
assert raised == [message] * 3
_detached = False  # enable_grad alone: the gradient of a leaf arrives twice
_twice = torch.tensor([0.0, 1.0], requires_grad=True)
_Recomputed.apply(_twice).sum().backward()
assert torch.allclose(_twice.grad, 2 * _twice.detach().cos())
# sphinx_gallery_end_ignore

# %%
# What not to do
# --------------
# ``loss.requires_grad_(True)`` **before backward**, or ``torch.tensor(loss, requires_grad=True)``. The loss still has no
# history: no gradient reaches the model.

model.zero_grad()
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
for _ in range(3):
    optimizer.zero_grad()
    loss = (model(inputs).argmax(dim=1) != labels).float().mean()
    loss.requires_grad_(True)
    loss.backward()
    optimizer.step()
    print(f"loss {loss.item():.2f}, gradient of the weight: {model.weight.grad}")

# graph: loss -- The whole graph after requires_grad_(True): the loss is leaf and root at once

# sphinx_gallery_start_ignore
assert model.weight.grad is None and loss.is_leaf and loss.grad == 1
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    torch.tensor(_loss(), requires_grad=True).backward()
assert model.weight.grad is None
_losses = []
for _ in range(4):
    optimizer.zero_grad()
    _fixed = _loss()
    _fixed.backward()
    optimizer.step()
    _losses.append(_fixed.item())
assert _losses == sorted(_losses, reverse=True) and _losses[-1] < _losses[0]
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_graphs_leaves_and_roots.py`: how ``requires_grad`` spreads from inputs to results.
# - :ref:`sphx_glr_gallery_graphs_graph_lifetime.py`: what ``detach()`` and ``item()`` drop.
# - `Tensor.requires_grad_ <https://docs.pytorch.org/docs/stable/generated/torch.Tensor.requires_grad_.html>`__ in PyTorch's
#   reference.
