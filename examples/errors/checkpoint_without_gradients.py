r"""
None of the inputs have requires_grad=True. Gradients will be None
==================================================================

.. index::
   ! single: gradient checkpointing with LoRA or a frozen embedding trains nothing
   ! single: the use_reentrant parameter should be passed explicitly
   ! single: checkpoint is incompatible with .grad() or passing an inputs parameter to .backward()
   ! single: enable_input_require_grads
   ! single: none of output has requires_grad=True, this checkpoint() is not necessary

.. in-short::

   With ``use_reentrant=True``, a checkpoint looks only at its arguments, not at the weights of the block. If no argument
   requires grad, the block is not trained. Use ``use_reentrant=False``.

   .. code-block:: diff

      - hidden = checkpoint(block, hidden, use_reentrant=True)
      + hidden = checkpoint(block, hidden, use_reentrant=False)

   **Not this:** ``warnings.filterwarnings("ignore")``. The block still gets no gradient.
"""

# %%
# The code that raises it
# -----------------------
# It is a warning. Here the embedding is frozen, as in training with LoRA:

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

torch.manual_seed(0)

# sphinx_gallery_start_ignore
import functools
import warnings

from torch.utils.checkpoint import checkpoint_sequential

with warnings.catch_warnings(record=True) as warned:
    warnings.simplefilter("always")
    # sphinx_gallery_end_ignore
    embedding = nn.Embedding(10, 8).requires_grad_(False)
    block = nn.Sequential(nn.Linear(8, 8), nn.Tanh())
    head = nn.Linear(8, 1)

    hidden = embedding(torch.tensor([1, 2, 3]))
    hidden = checkpoint(block, hidden, use_reentrant=True)
    head(hidden).sum().backward()
# sphinx_gallery_start_ignore
for _warning in warned:
    print(f"{_warning.category.__name__}: {_warning.message}")
assert len(warned) == 1 and hidden.requires_grad is False
assert str(warned[0].message) == (
    "None of the inputs have requires_grad=True. Gradients will be None"
)
# sphinx_gallery_end_ignore

# %%
# The block gets no gradient. After the first ``backward()``, print what you train and what got none:

model = nn.ModuleDict({"embedding": embedding, "block": block, "head": head})
print([n for n, p in model.named_parameters() if p.requires_grad and p.grad is None])

# sphinx_gallery_start_ignore
assert block[0].weight.grad is None and head.weight.grad.norm() > 0


def _without_gradient(model):
    return [
        n for n, p in model.named_parameters() if p.requires_grad and p.grad is None
    ]


assert _without_gradient(model) == ["block.0.weight", "block.0.bias"]
with warnings.catch_warnings(action="ignore"):  # a frozen vision tower: harmless
    _vision, _text = nn.Linear(8, 8).requires_grad_(False), nn.Linear(8, 8)
    for _trained in (False, True):  # and with LoRA inside of it
        _tower = nn.ModuleDict(
            {"vision": _vision, "text": _text, "head": nn.Linear(8, 1)}
        )
        _tower["vision"].bias.requires_grad_(_trained)
        _seen = checkpoint(_vision, torch.ones(3, 8), use_reentrant=True)
        # requires_grad_() of the text, as by enable_input_require_grads, does not help
        _words = torch.ones(3, 8).requires_grad_()
        _read = checkpoint(_text, _words, use_reentrant=True)
        _tower["head"](_seen + _read).sum().backward()
        assert _without_gradient(_tower) == ["vision.bias"] * _trained
    _twice = nn.Linear(8, 8)  # the list says nothing of its second run
    _seen = checkpoint(_twice, torch.ones(3, 8), use_reentrant=True)
    (checkpoint(_twice, _words, use_reentrant=True) + _seen).sum().backward()
    assert _twice.bias.grad.eq(3).all() and _without_gradient(_twice) == []
# sphinx_gallery_end_ignore

# %%
# If the list is empty and no block runs twice, the warning is harmless, as for a frozen vision tower. In Hugging Face's
# trainer, print in a callback's ``on_pre_optimizer_step``. DeepSpeed may take ``.grad`` away.
#
# Why
# ---
# The reentrant checkpoint is a custom Function around the block. Autograd sees its inputs, and not the weights inside:

loss = head(hidden).sum()

# graph: loss -- With use_reentrant=True the graph ends at the head, and the block is not in it

# sphinx_gallery_start_ignore
assert not hidden.requires_grad
# sphinx_gallery_end_ignore

# %%
# The fix
# -------
# ``use_reentrant=False`` builds the usual graph, weights included:

hidden = embedding(torch.tensor([1, 2, 3]))
hidden = checkpoint(block, hidden, use_reentrant=False)
loss = head(hidden).sum()
loss.backward()
print("block:", block[0].weight.grad.norm() > 0)

# graph: loss -- With use_reentrant=False the graph reaches the weights of the block

# sphinx_gallery_start_ignore
_weight = block[0].weight
_checkpointed = _weight.grad.clone()
_plain = head(block(embedding(torch.tensor([1, 2, 3])))).sum()
assert torch.allclose(_checkpointed, torch.autograd.grad(_plain, _weight)[0])
with warnings.catch_warnings(record=True) as warned:
    warnings.simplefilter("always")
    _inputs = {"hidden": torch.ones(3, 8, requires_grad=True)}
    _out = checkpoint(lambda d: block(d["hidden"]), _inputs, use_reentrant=True)
    assert not _out.requires_grad and "None of the inputs" in str(warned[0].message)
    _out = checkpoint(lambda d: block(d["hidden"]), _inputs, use_reentrant=False)
    assert _out.requires_grad and len(warned) == 1
    _listed = checkpoint(lambda h: block(h[0]), [*_inputs.values()], use_reentrant=True)
    assert not _listed.requires_grad and len(warned) == 2
    with torch.no_grad():
        checkpoint(block, embedding(torch.tensor([1])), use_reentrant=True)
    assert len(warned) == 3
    # a frozen block, and before it a layer that is to be trained: not harmless
    _first, _frozen = nn.Linear(8, 8), nn.Linear(8, 8).requires_grad_(False)
    for _reentrant, _trained in ((True, False), (False, True)):
        _inputs = {"hidden": _first(torch.ones(3, 8))}
        _out = checkpoint(
            lambda d: _frozen(d["hidden"]), _inputs, use_reentrant=_reentrant
        )
        assert _out.requires_grad is _trained
    assert len(warned) == 4
    # a sequence, and keyword arguments
    _layers = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 8), nn.Tanh())
    _gradients = []
    for _run in (
        _layers,
        *(
            functools.partial(checkpoint_sequential, _layers, 2, use_reentrant=u)
            for u in (False, True)
        ),
    ):
        _layers.zero_grad()
        _run(input=torch.ones(3, 8)).sum().backward()
        _gradients.append([weight.grad for weight in _layers.parameters()])
    assert all(map(torch.allclose, *_gradients[:2]))
    assert [g is None for g in _gradients[2]] == [True, True, False, False]
    _raised = []
    for _reentrant in (False, True):
        try:
            checkpoint(block, input=torch.ones(3, 8), use_reentrant=_reentrant)
        except ValueError as error:
            _raised.append(str(error))
    assert len(_raised) == 1 and "Unexpected keyword arguments" in _raised[0]
# a checkpoint inside of functional_call, and outside
_weights = {n: 2 * p.detach() for n, p in block.named_parameters(prefix="block")}
_weights = {n: p.requires_grad_() for n, p in _weights.items()}
_row = torch.randn(3, 8)


class _Inside(nn.Module):
    def __init__(self, stored):
        super().__init__()
        self.block, self.stored = block, stored

    def forward(self, x):
        if self.stored:
            return checkpoint(self.block, x, use_reentrant=False)
        return self.block(x)


def _slopes_of(run):
    loss = run(_weights, _row).square().sum()
    return torch.autograd.grad(loss, [*_weights.values()])


def _with(stored):
    return lambda p, x: torch.func.functional_call(_Inside(stored), p, (x,))


_right = _slopes_of(_with(False))
_around = functools.partial(checkpoint, _with(False), use_reentrant=False)
assert all(map(torch.allclose, _slopes_of(_around), _right))
assert not any(map(torch.allclose, _slopes_of(_with(True)), _right))
# the argument requires grad
_weight.grad = None
_hidden = embedding(torch.tensor([1, 2, 3])).requires_grad_(True)
head(checkpoint(block, _hidden, use_reentrant=True)).sum().backward()
assert torch.allclose(_checkpointed, _weight.grad)
# sphinx_gallery_end_ignore

# %%
# - In Hugging Face's trainer: ``TrainingArguments(gradient_checkpointing_kwargs={"use_reentrant": False})``. It overwrites what
#   ``model.gradient_checkpointing_enable`` got. ``checkpoint_sequential`` takes ``use_reentrant=False``, too.
# - If a library does not let you: ``model.enable_input_require_grads()`` of ``transformers``, or ``hidden.requires_grad_()``
#   before the first block. Print the list after that.
# - ``True`` finds no tensors in a list or a dictionary, as argument or result. ``False`` does.
# - **In functional_call, as in MAML,** a checkpoint inside the model recomputes with the module's own weights. Gradients
#   are silently wrong. Put it outside, around a ``model`` without checkpoints:
#   ``checkpoint(lambda p, x: functional_call(model, p, (x,)), weights, x, use_reentrant=False)``.
#
# Other messages of use_reentrant=True
# ------------------------------------
# **Everything else is frozen, too.** Then the whole loss has no graph, and ``backward()`` raises:

# sphinx_gallery_start_ignore
raised = []
with warnings.catch_warnings(record=True) as warned:
    warnings.simplefilter("always")
    try:
        # sphinx_gallery_end_ignore
        head.requires_grad_(False)
        hidden = embedding(torch.tensor([1, 2, 3]))
        hidden = checkpoint(block, hidden, use_reentrant=True)
        head(hidden).sum().backward()
    # sphinx_gallery_start_ignore
    except RuntimeError as error:
        raised.append(str(error))
        print("RuntimeError:", error)
assert len(raised) == len(warned) == 1
assert raised[0].startswith("element 0 of tensors does not require grad")
# sphinx_gallery_end_ignore

# %%
# **The block runs under** ``no_grad``, as a vision tower that is kept fixed, and an argument requires grad. Backward then finds
# no graph in the second run:

# sphinx_gallery_start_ignore
raised = []
try:
    # sphinx_gallery_end_ignore
    vision, head = nn.Linear(8, 8), nn.Linear(8, 1)

    def tower(hidden):
        with torch.no_grad():
            return vision(hidden)

    hidden = torch.randn(3, 8, requires_grad=True)
    head(checkpoint(tower, hidden, use_reentrant=True)).sum().backward()
# sphinx_gallery_start_ignore
except RuntimeError as error:
    raised.append(str(error))
    print("RuntimeError:", error)
assert raised == [
    "none of output has requires_grad=True, this checkpoint() is not necessary"
]
# without a checkpoint: the head learns as before, and what comes before the tower does not
_before = nn.Linear(8, 8)
_heads = []
for _run in (tower, functools.partial(checkpoint, tower, use_reentrant=False)):
    head.zero_grad()
    head(_run(_before(hidden))).sum().backward()
    _heads.append(head.weight.grad)
assert torch.equal(*_heads) and _before.weight.grad is None
assert vision.weight.grad is None
vision.requires_grad_(False)
_slopes = []
for _run in (
    vision,
    *(functools.partial(checkpoint, vision, use_reentrant=u) for u in (True, False)),
):
    hidden.grad = None
    head(_run(hidden)).sum().backward()
    _slopes.append(hidden.grad)
assert _slopes[0].any() and vision.weight.grad is None
assert torch.equal(_slopes[0], _slopes[1]) and torch.equal(_slopes[0], _slopes[2])
for _reentrant in (True, False):  # a dictionary as the result
    _out = checkpoint(lambda h: {"h": block(h)}, hidden, use_reentrant=_reentrant)
    assert _out["h"].requires_grad is not _reentrant
# sphinx_gallery_end_ignore

# %%
# Call the tower without a checkpoint: under ``no_grad`` it saves nothing. To train what comes before it, write
# ``vision.requires_grad_(False)`` instead of ``no_grad``.
#
# **torch.autograd.grad**, as in a gradient penalty, raises:

# sphinx_gallery_start_ignore
raised = []
try:
    # sphinx_gallery_end_ignore
    x = torch.randn(3, 8, requires_grad=True)
    score = checkpoint(block, x, use_reentrant=True).sum()
    torch.autograd.grad(score, x)
# sphinx_gallery_start_ignore
except RuntimeError as error:
    raised.append(str(error))
    print("RuntimeError:", error)
assert len(raised) == 1
assert raised[0].startswith(
    "When use_reentrant=True, torch.utils.checkpoint is incompatible with .grad() or"
)
try:
    checkpoint(block, x, use_reentrant=True).sum().backward(inputs=[x])
except RuntimeError as error:
    raised.append(str(error))
assert len(raised) == 2 and raised[0] == raised[1]
checkpoint(block, x, use_reentrant=False).sum().backward(inputs=[x])
assert x.grad is not None
_score = checkpoint(block, x, use_reentrant=False).sum()
(_slope,) = torch.autograd.grad(_score, x, create_graph=True)
(_second,) = torch.autograd.grad(_slope.square().sum(), x)
(_plain,) = torch.autograd.grad(block(x).sum(), x, create_graph=True)
assert torch.allclose(_second, torch.autograd.grad(_plain.square().sum(), x)[0])
# sphinx_gallery_end_ignore

# %%
# ``use_reentrant=False`` can do this, takes keyword arguments, and avoids *mark a variable ready only once* of
# :ref:`DDP <sphx_glr_gallery_errors_ddp_finished_reduction.py>`.
#
# **You passed neither True nor False.** PyTorch warns and uses ``True``:

# sphinx_gallery_start_ignore
with warnings.catch_warnings(record=True) as warned:
    warnings.simplefilter("always")
    # sphinx_gallery_end_ignore
    hidden = checkpoint(block, x)
# sphinx_gallery_start_ignore
for _warning in warned:
    print(f"{_warning.category.__name__}: {_warning.message}")
assert len(warned) == 1
assert "the use_reentrant parameter should be passed explicitly" in str(
    warned[0].message
)
assert "CheckpointFunction" in hidden.grad_fn.name()  # as with True
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_memory_checkpointing.py`: what a checkpoint saves, and what it costs.
# - :ref:`sphx_glr_gallery_errors_checkpoint_metadata.py`.
# - :ref:`sphx_glr_gallery_errors_no_grad_fn.py`, for *element 0 of tensors*.
# - In PyTorch's reference: `torch.utils.checkpoint <https://docs.pytorch.org/docs/stable/checkpoint.html>`__.
