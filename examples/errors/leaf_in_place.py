r"""
a leaf Variable that requires grad is being used in an in-place operation
=========================================================================

.. index::
   ! single: a leaf Variable that requires grad has been used in an in-place operation
   ! single: updating a weight by hand with -= raises
   ! single: manual gradient descent without an optimizer changes nothing
   ! single: cannot resize variables that require grad
   ! single: a view of a leaf Variable that requires grad is being used in an in-place operation
   ! single: leaf variable has been moved into the graph interior
   ! single: setting some entries of a weight raises
   ! single: _initialize_biases fails when a YOLO model is built
   ! single: A view was created in no_grad mode and is being modified inplace with grad mode enabled

.. in-short::

   You write to a parameter, or to an input whose gradient you want, while autograd is recording. For an update, write inside
   ``torch.no_grad()``. For a step of the computation, make a new tensor: ``noisy = x + noise``. The same goes for a part of it:
   *a view of a leaf Variable*.

   .. code-block:: diff

      - w -= 0.5 * w.grad
      + with torch.no_grad():
      +     w -= 0.5 * w.grad
      + w.grad = None

   **Not this:** ``w = w - 0.5 * w.grad``. That makes a new tensor, and ``w`` is no longer the parameter.
"""

# %%
# The code that raises it
# -----------------------

import torch

# sphinx_gallery_start_ignore
# isort: split
import warnings

from torch import nn

try:
    # sphinx_gallery_end_ignore
    x = torch.linspace(-1, 1, 20)
    y = 3 * x
    w = torch.zeros(1, requires_grad=True)

    for _ in range(20):
        loss = (w * x - y).square().mean()
        loss.backward()
        w -= 0.5 * w.grad
# sphinx_gallery_start_ignore
except RuntimeError as error:
    message = str(error)
    print("RuntimeError:", message)
assert message.startswith("a leaf Variable that requires grad is being used in an")
assert _ == 0 and w == 0 and w.is_leaf
_writes = [
    lambda leaf: leaf.add_(0.1),
    lambda leaf: leaf.clamp_(0, 1),
    lambda leaf: leaf.copy_(torch.ones(3)),
    lambda leaf: leaf.fill_(0),
    nn.ReLU(inplace=True),
]
raised = []
for _write in _writes:
    try:
        _write(torch.ones(3, requires_grad=True))
    except RuntimeError as error:
        raised.append(str(error))
assert raised == len(_writes) * [message]
# sphinx_gallery_end_ignore

# %%
# The last frame of the traceback that is not PyTorch's tells what to do:
#
# .. list-table::
#    :header-rows: 1
#    :widths: 52 48
#
#    * - the frame
#      - what to do
#    * - ``w -= lr * w.grad``, ``delta.clamp_(-eps, eps)`` after it, your own initialization
#      - Write inside ``no_grad``.
#    * - ``weight[:2] = ...``, ``b[:, 4] += ...`` of a YOLO head, ``E[:, 0::2] = ...`` in ``__init__``
#      - the same: :ref:`a part of a weight <part-of-a-leaf>`
#    * - ``x += noise``, a model that begins with ``nn.ReLU(inplace=True)``
#      - Make a new tensor, as below.
#    * - ``p -= lr * g`` as the inner step of MAML
#      - Put ``p - lr * g`` into a dictionary by name, and call ``torch.func.functional_call(model, fast, x)``, without
#        gradient checkpointing.
#    * - ``total += loss`` or ``outputs[t] = model(x)``, into a tensor made with ``requires_grad=True``
#      - Delete ``requires_grad=True``. In ``no_grad``, the model would get no gradient.
#    * - ``inputs_embeds[mask] = image_embeds`` of a library, with LoRA
#      - Write ``inputs_embeds = inputs_embeds.clone()`` below the line that computes it, before a loop takes parts of it.
#
# Why
# ---
# ``w`` is a leaf: no recorded operation computed it. Graphs begin at ``w``, and ``backward()`` stores the gradient there.

w = torch.zeros(1, requires_grad=True)
loss = (w * x - y).square().mean()
loss.backward()
print("w.is_leaf:", w.is_leaf, "  w.grad:", w.grad)

# graph: loss -- The graph begins at the leaf w, and backward stores the gradient there

# sphinx_gallery_start_ignore
assert w.is_leaf and torch.allclose(w.grad, -6 * x.square().mean())
_result = torch.zeros(1, requires_grad=True) * 1
_result -= 0.5
assert not _result.is_leaf and _result.grad_fn.name() == "SubBackward0"
# sphinx_gallery_end_ignore

# %%
# If ``w -= ...`` were recorded, ``w`` would be the result of a subtraction and no longer a leaf, so the next ``backward()``
# would store no gradient in it.
#
# The fix
# -------
# **For an update,** write inside ``torch.no_grad()``. ``w`` stays the same tensor, and stays a leaf. Reset the gradient.

w = torch.zeros(1, requires_grad=True)
for _ in range(20):
    loss = (w * x - y).square().mean()
    loss.backward()
    with torch.no_grad():
        w -= 0.5 * w.grad
    w.grad = None
print("w =", w)

# sphinx_gallery_start_ignore
assert w.is_leaf and w.requires_grad and abs(w - 3) < 0.01
# sphinx_gallery_end_ignore

# %%
# **For a step of the computation,** such as noise that is added to an input, make a new tensor. If a model begins with
# ``nn.ReLU(inplace=True)``, call ``model(x.clone())``.

image = torch.ones(4, requires_grad=True)
noisy = image + 0.5
noisy.square().sum().backward()
print("image.grad =", image.grad)

# sphinx_gallery_start_ignore
assert image.grad.tolist() == [3, 3, 3, 3]
image.grad = None
nn.ReLU(inplace=True)(image.clone()).sum().backward()
assert image.grad.tolist() == [1, 1, 1, 1]
# results that are collected, and images that replace words
_net, _frozen = nn.Linear(2, 1), nn.Embedding(3, 2).requires_grad_(False)
_frozen.register_forward_hook(lambda module, ids, out: out.requires_grad_(True))


def _collected(total, outputs, hidden):
    total += _net(torch.ones(2)).sum()
    outputs[1] = _net(torch.ones(2))
    hidden[:1] = _net(torch.ones(1, 2))
    _net.zero_grad()
    (total + outputs.sum() + hidden.sum()).backward()
    return _net.weight.grad


_made = torch.zeros((), requires_grad=True), torch.zeros(3, requires_grad=True)
_hidden, _seen = _frozen(torch.tensor([0, 1])), []
assert _hidden.is_leaf and _hidden.requires_grad
for _tensors in (
    (_made[0], torch.zeros(3), _hidden.clone()),
    (torch.zeros(()), _made[1], _hidden.clone()),
    (torch.zeros(()), torch.zeros(3), _hidden),
):
    try:
        _collected(*_tensors)
    except RuntimeError as error:
        _seen.append(str(error))
assert [message in text for text in _seen] == 3 * [True]
_slope = _collected(torch.zeros(()), torch.zeros(3), _hidden.clone())
assert _slope.tolist() == [[4, 4]]  # a total, an output, and two columns
for _whole in (True, False):  # a copy of a part alone is not what the model reads
    _net.zero_grad()
    _batch = _frozen(torch.tensor([[0, 1]]))
    _batch = _batch.clone() if _whole else _batch
    _part = _batch[0] if _whole else _batch[0].clone()
    _part[:1] = _net(torch.ones(1, 2))
    _batch.sum().backward()
    assert (_net.weight.grad is not None) == _whole
with torch.no_grad():
    _made[1][1] = _net(torch.ones(2))
_net.zero_grad()
_made[1].sum().backward()  # no message, and no gradient
assert _net.weight.grad is None
# a perturbation that is kept in a box, as an attack on an image does
_delta = torch.zeros(3, requires_grad=True)
for _ in range(3):
    _delta.sum().backward()
    with torch.no_grad():
        _delta += 0.2 * _delta.grad.sign()
        _delta.clamp_(-0.3, 0.3)
    _delta.grad = None
assert _delta.is_leaf and torch.allclose(_delta, torch.full((3,), 0.3))
# sphinx_gallery_end_ignore

# %%
# .. _part-of-a-leaf:
#
# a view of a leaf Variable
# -------------------------
# You write to a part of a parameter. ``weight[:2]`` shares the memory of ``weight``, so ``weight`` itself would change:

from torch import nn

# sphinx_gallery_start_ignore
try:
    # sphinx_gallery_end_ignore
    embedding = nn.Embedding(5, 3)
    pretrained = torch.ones(2, 3)

    embedding.weight[:2] = pretrained
# sphinx_gallery_start_ignore
except RuntimeError as error:
    view_message = str(error)
    print("RuntimeError:", view_message)
assert view_message == "a view of " + message
assert not torch.equal(embedding.weight[:2], pretrained)
# sphinx_gallery_end_ignore

# %%
# **To set values**, write inside ``no_grad``. The parameter stays a leaf, so delete a line after it such as
# ``conv.bias = nn.Parameter(b.view(-1))``:

with torch.no_grad():
    embedding.weight[:2] = pretrained

conv = nn.Conv2d(1, 6, 1)
with torch.no_grad():
    b = conv.bias.view(3, 2)  # as in a YOLO head
    b[:, 0] += 1.5

nn.init.zeros_(embedding.weight[4])  # runs without recording by itself
print(embedding.weight.detach()[[0, 1, 4]])

# sphinx_gallery_start_ignore
assert torch.equal(embedding.weight[:2], pretrained) and not embedding.weight[4].any()
for _parameter in (embedding.weight, conv.bias):
    assert _parameter.is_leaf and _parameter.requires_grad
assert (conv.bias[::2] >= 0.5).all() and (conv.bias[1::2] <= 1).all()
embedding(torch.tensor([0])).sum().backward()
assert embedding.weight.grad[0].tolist() == [1, 1, 1]
raised = []
try:  # what that line says after the block
    nn.Parameter(b.view(-1))
except RuntimeError as error:
    raised.append(str(error))
assert len(raised) == 1 and raised[0].startswith("A view was created in no_grad mode")
# sphinx_gallery_end_ignore

# %%
# **For a step of the computation**, write to a copy, and read from ``z``. The gradient goes back to ``z``.

z = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
changed = z.clone()
changed[0] = 0
(changed * 5).sum().backward()
print("z.grad:", z.grad, "  z:", z.tolist())

# sphinx_gallery_start_ignore
assert z.grad.tolist() == [0, 5, 5] and z.tolist() == [1, 2, 3]
raised = []
for _old in (True, False):
    z.grad, changed = None, z.clone()
    changed[0] = (z if _old else changed)[0].sin()
    try:
        changed.sum().backward()
    except RuntimeError as error:
        raised.append(str(error))
    else:
        assert torch.allclose(z.grad[0], z[0].cos()) and z.grad[1:].tolist() == [1, 1]
assert len(raised) == 1 and "modified by an inplace operation" in raised[0]
# the inner step of MAML: a new tensor keeps the gradient through the step
_through = []
for _new in (True, False):
    _w = torch.tensor(1.0, requires_grad=True)
    (_g,) = torch.autograd.grad((_w - 3) ** 2, _w, create_graph=True)
    if _new:
        _fast = _w - 0.1 * _g
    else:
        with torch.no_grad():
            _w -= 0.1 * _g
        _fast = _w
    ((_fast - 5) ** 2).backward()
    _through.append(_w.grad.item() / (2 * (_fast.item() - 5)))
assert abs(_through[0] - 0.8) < 1e-6 and abs(_through[1] - 1) < 1e-6
# and for a model: the outer gradient agrees with differences of the outer loss
_linear, _batch = nn.Linear(2, 1).double(), torch.randn(4, 2).double()


def _outer(linear):
    named = dict(linear.named_parameters())
    inner = torch.func.functional_call(linear, named, _batch).square().mean()
    slopes = torch.autograd.grad(inner, [*named.values()], create_graph=True)
    fast = {
        name: p - 0.1 * g for (name, p), g in zip(named.items(), slopes, strict=True)
    }
    return (torch.func.functional_call(linear, fast, _batch) - 1).square().mean()


_outer(_linear).backward()
_losses = []
for _step in (1e-6, -2e-6):
    _linear.weight.data[0, 0] += _step
    _losses.append(_outer(_linear).item())
assert abs((_losses[0] - _losses[1]) / 2e-6 - _linear.weight.grad[0, 0]) < 1e-6
# sphinx_gallery_end_ignore

# %%
# What not to do
# --------------
# **Write** ``w = w - 0.5 * w.grad``. The name ``w`` then belongs to a result. In the second round its ``grad`` is ``None``.

# sphinx_gallery_start_ignore
raised = []
try:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        # sphinx_gallery_end_ignore
        w = torch.zeros(1, requires_grad=True)
        for _ in range(20):
            loss = (w * x - y).square().mean()
            loss.backward()
            w = w - 0.5 * w.grad
# sphinx_gallery_start_ignore
except TypeError as error:
    raised.append(str(error))
    print("TypeError:", error)
assert len(raised) == 1 and "'float' and 'NoneType'" in raised[0]
assert _ == 1 and not w.is_leaf
assert "The .grad attribute of a Tensor that is not a leaf" in str(caught[-1].message)
# sphinx_gallery_end_ignore

# %%
# In a loop over the parameters of a model the same line raises nothing. It gives the name ``p`` to a new tensor, the model
# keeps the old one, and nothing is learned.

torch.manual_seed(0)
model = nn.Linear(1, 1, bias=False)
losses = []
for _ in range(3):
    model.zero_grad()
    loss = (model(x[:, None]) - y[:, None]).square().mean()
    loss.backward()
    for p in model.parameters():
        p = p - 0.5 * p.grad
    losses.append(round(loss.item(), 4))
print("losses:", losses)

# sphinx_gallery_start_ignore
assert len(set(losses)) == 1 and losses[0] > 0.1 and p is not model.weight
# sphinx_gallery_end_ignore

# %%
# **Write through** ``.data``. Autograd does not see the write. Before ``backward()``, it can give a wrong gradient and no
# message:

w = torch.tensor(2.0, requires_grad=True)
loss = w**2
w.data += 1
loss.backward()
print("w.grad is", w.grad.item(), "and should be", 2 * 2.0)

# sphinx_gallery_start_ignore
assert w.grad == 6
raised = []
w = torch.tensor(2.0, requires_grad=True)
loss = w**2
with torch.no_grad():
    w += 1
try:
    loss.backward()
except RuntimeError as error:
    raised.append(str(error))
assert len(raised) == 1
assert "has been modified by an inplace operation" in raised[0]
# sphinx_gallery_end_ignore

# %%
# With ``no_grad``, that backward raises :ref:`modified by an inplace operation
# <sphx_glr_gallery_errors_modified_in_place.py>`.
#
# Messages that are close to this one
# -----------------------------------
# **A view was created in no_grad mode and is being modified inplace with grad mode enabled.** The write is outside of
# the block:

# sphinx_gallery_start_ignore
raised = []
try:
    # sphinx_gallery_end_ignore
    with torch.no_grad():
        row = embedding.weight[0]
    row += 1
# sphinx_gallery_start_ignore
except RuntimeError as error:
    raised.append(str(error))
    print("RuntimeError:", str(error).partition(" Given")[0])
assert len(raised) == 1
assert raised[0].startswith("A view was created in no_grad mode and is being modified")
_before = embedding.weight.detach().clone()
with torch.no_grad():
    _row = embedding.weight[0]
    _row += 1
assert torch.equal(embedding.weight[0], _before[0] + 1)
_copy = embedding.weight.clone()
_row = _copy[0]
_row += 1
assert _copy.grad_fn.name().endswith("CopySlices")
# sphinx_gallery_end_ignore

# %%
# Move all lines with the view into the block, if they set values. Or index a clone outside of it, for a step of the
# computation.
#
# **cannot resize variables that require grad:**

# sphinx_gallery_start_ignore
raised = []
try:
    # sphinx_gallery_end_ignore
    scores = nn.Linear(2, 1)(torch.ones(4, 2))
    scores.resize_(8, 1)
# sphinx_gallery_start_ignore
except RuntimeError as error:
    raised.append(str(error))
    print("RuntimeError:", error)
assert raised == ["cannot resize variables that require grad"]
_seen = {}
for _detached in (False, True):  # a meter that collects the outputs of all batches
    _meter, _seen[_detached] = torch.zeros(0, 1), ""
    try:
        for _batch in range(2):
            _meter.resize_(4 * _batch + 4, 1)
            _given = scores.detach() if _detached else scores
            _meter.narrow(0, 4 * _batch, 4).copy_(_given)
    except RuntimeError as error:
        _seen[_detached] = str(error)
assert _seen == {False: raised[0], True: ""}
assert torch.equal(_meter, torch.cat([scores, scores]))
_longer = nn.Parameter(torch.cat([nn.Parameter(torch.ones(3)), torch.zeros(2)]))
assert _longer.is_leaf and _longer.tolist() == [1, 1, 1, 0, 0]
# sphinx_gallery_end_ignore

# %%
# If the traceback ends in a meter, it was given outputs with a graph: pass ``scores.detach()``. To make a parameter longer,
# create a new one, ``nn.Parameter(torch.cat([w, more]))``, before you create the optimizer.
#
# See also
# --------
# - :ref:`sphx_glr_gallery_graphs_leaves_and_roots.py`: what makes a leaf.
# - :ref:`sphx_glr_gallery_training_fit_by_hand.py`: a whole training loop by hand.
# - :ref:`sphx_glr_gallery_differentiation_slice_assignment.py`: writes to a part, and how they are recorded.
# - `torch.no_grad <https://docs.pytorch.org/docs/stable/generated/torch.no_grad.html>`__ in PyTorch's reference.
