r"""
view size is not compatible with input tensor's size and stride
===============================================================

.. index::
   ! single: view fails after transpose, permute or a slice
   ! single: correct[:k].view(-1) fails in a top-k accuracy
   ! single: view fails in backward of a custom Function
   ! single: Cannot view a tensor with shape and strides

.. in-short::

   ``view`` never copies. After a ``transpose``, a ``permute`` or a slice, the elements may no longer be in memory in the order
   in which the new shape reads them. ``reshape`` copies them where it has to.

   .. code-block:: diff

        x = heads.transpose(1, 2)
      - joined = x.view(2, 3, 8)
      + joined = x.reshape(2, 3, 8)

   **Not this:** leaving out the transpose, so that ``view`` works. The shape is right, but the numbers are in the wrong places.
"""

# %%
# The code that raises it
# -----------------------

import torch

# sphinx_gallery_start_ignore
try:
    # sphinx_gallery_end_ignore
    heads = torch.randn(2, 4, 3, 2)  # batch, heads, tokens, size
    x = heads.transpose(1, 2)
    joined = x.view(2, 3, 8)
# sphinx_gallery_start_ignore
except RuntimeError as error:
    message = str(error)
    print("RuntimeError:", message)
assert message.startswith(
    "view size is not compatible with input tensor's size and stride (at least one dimension spans"
)
assert message.endswith("Use .reshape(...) instead.")


def _views(tensor, *shape):
    """Whether ``view`` accepts the shape. If not, it raises this message."""
    try:
        tensor.view(*shape)
    except RuntimeError as error:
        assert str(error) == message
        return False
    return True


_images = torch.randn(2, 3, 8, 8).to(memory_format=torch.channels_last)
_maps = torch.nn.Conv2d(3, 4, 3)(_images)
assert not _views(_maps, 2, -1) and _maps.flatten(1).shape == (2, 144)
_layer = torch.nn.Conv2d(3, 4, 3).to(memory_format=torch.channels_last)
assert not _views(_layer(torch.randn(2, 3, 8, 8)), 2, -1)
assert not _views(torch.randn(3, 4).permute(1, 0), 12)
assert not _views(torch.randn(4, 6)[:, :3], 12) and _views(torch.randn(4, 6)[:2], 12)


class _Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, flatten):
        ctx.flatten = flatten
        return 2 * x

    @staticmethod
    def backward(ctx, grad):
        return 2 * ctx.flatten(grad).view(grad.shape), None


_x, _said = torch.ones(3, 4, requires_grad=True), []
try:
    _Double.apply(_x, lambda grad: grad.view(-1)).sum(1).prod().backward()
except RuntimeError as error:
    _said.append(str(error))
assert _said == [message]
_Double.apply(_x, lambda grad: grad.reshape(-1)).sum(1).prod().backward()
assert torch.equal(_x.grad, torch.full((3, 4), 128.0))


def _at_layer(fix):
    """Are the input of a layer and the gradient of its output contiguous?"""
    torch.manual_seed(0)
    layer, seen = torch.nn.Conv1d(4, 5, 3, padding=1), []
    x = torch.randn(2, 7, 4).permute(0, 2, 1)
    x = x.contiguous() if fix else x
    out = layer(x)
    if fix == "hook" and out.requires_grad:
        out.register_hook(lambda g: g.contiguous())
    if not out.requires_grad:
        return out
    out.register_hook(lambda g: seen.append(g.is_contiguous()))
    (out.permute(0, 2, 1).contiguous() * torch.randn(2, 7, 5)).sum().backward()
    return x.is_contiguous(), seen[0], layer.weight.grad


assert _at_layer("")[:2] == (False, False)
assert _at_layer("input")[:2] == (True, False)
assert _at_layer("hook")[:2] == (True, True)
assert torch.allclose(_at_layer("hook")[2], _at_layer("")[2], atol=1e-5)
with torch.no_grad():  # a validation
    assert torch.allclose(_at_layer("hook"), _at_layer(""), atol=1e-6)


def _steps(make, fix):
    weights = [make()]
    optimizer = torch.optim.LBFGS(weights, max_iter=3)
    for p in weights if fix else ():
        p.data = p.data.contiguous()

    def closure():
        optimizer.zero_grad()
        loss = (weights[0] - 1).square().sum()
        loss.backward()
        return loss

    try:
        optimizer.step(closure)
        torch.nn.utils.parameters_to_vector(weights)
    except RuntimeError as error:
        return str(error)
    return "" if closure() < 1e-6 else "not minimal"


def _transposed():
    return torch.nn.Parameter(torch.randn(3, 4).t())


def _last():
    return torch.nn.Conv2d(3, 4, 3).to(memory_format=torch.channels_last).weight


for _make in (_transposed, _last):
    assert _steps(_make, False) == message and _steps(_make, True) == ""
for _weight in (_transposed(), _last()):
    try:
        torch.nn.utils.parameters_to_vector([_weight])
    except RuntimeError as error:
        _said.append(str(error))
assert _said == [message] * 3
_out = torch.nn.LSTM(3, 4, batch_first=True)(torch.randn(2, 5, 3))[0]
assert not _views(_out, 2, -1) and _out.reshape(2, -1).shape == (2, 20)
assert torch.equal(_out.reshape(2, -1)[1, 4:8], _out[1, 1])
assert not _views(torch.randn(3, 1).expand(3, 4), 12)
# sphinx_gallery_end_ignore

# %%
# Replace ``view`` by ``reshape`` in the last line of the traceback. It may be
#
# - **in your forward**, after a ``transpose``, a ``permute``, a slice, ``expand``, an LSTM with ``batch_first``, or a
#   convolution in the ``channels_last`` format;
# - **in an accuracy** of old code, ``correct[:k].view(-1)``;
# - **in backward of your own Function**: the gradient that arrives there may be expanded, for example by ``sum(1)``;
# - **in** ``loss.backward()`` **or a layer, on a Mac**: update PyTorch. If it stays, :ref:`anomaly mode
#   <sphx_glr_gallery_debugging_anomaly_detection.py>` names the layer. Give it ``x.permute(...).contiguous()``. The
#   gradient of its output can be permuted, too: ``if out.requires_grad: out.register_hook(lambda g: g.contiguous())``. In a
#   library's model, train on the CPU;
# - **in** ``LBFGS`` **or** ``parameters_to_vector``: a weight is not contiguous, as after ``channels_last``. Before you train:
#   ``for p in model.parameters(): p.data = p.data.contiguous()``;
# - **in a library**: try to pass it ``x.contiguous()``.
#
# ``torch.compile`` says *Cannot view a tensor with shape ... and strides ...*.
#
# Why
# ---
# PyTorch reads a tensor by its *strides*: how many places in memory to go on for one step along each dimension. A transpose
# exchanges strides and moves nothing. For a flat tensor, ``view`` needs the same distance from each element to the next:

import matplotlib.pyplot as plt

# figure: Two lines: the place in memory that is read at each of six steps. For x it goes up by one place at each step. For
#   x.t() the places are 0, 3, 1, 4, 2, 5: the line goes 3 up and 2 down in turn.
x = torch.arange(6).reshape(2, 3)  # each value is its place in memory
fig, axes = plt.subplots(1, 2, figsize=(7, 2.3), sharey=True, layout="constrained")
for ax, name, tensor in zip(axes, ("x", "x.t()"), (x, x.t()), strict=True):
    ax.plot(tensor.flatten(), "o-", color="#2563eb" if name == "x" else "#c2410c")
    ax.set(title=f"{name}, strides {tensor.stride()}", xlabel="step of reading")
axes[0].set(ylabel="place in memory", yticks=range(6))

# sphinx_gallery_start_ignore
assert x.flatten().tolist() == [0, 1, 2, 3, 4, 5]
assert x.t().flatten().tolist() == [0, 3, 1, 4, 2, 5]
# sphinx_gallery_end_ignore

# %%
# ``view`` can merge two neighboring dimensions if the outer stride is the inner stride times the inner size:

wide = torch.arange(12).reshape(2, 6)
tensors = {"x.t()": x.t(), "wide[:, :3]": wide[:, :3], "wide[:, ::2]": wide[:, ::2]}
for name, tensor in tensors.items():
    (outer, inner), size = tensor.stride(), tensor.shape[1]
    try:
        works = tensor.view(6).shape == (6,)
    except RuntimeError:
        works = False
    needed = f"{inner} * {size} = {inner * size}"
    print(f"{name:<13} outer stride {outer}, needed {needed}, view works: {works}")

# sphinx_gallery_start_ignore
assert works and not wide[:, ::2].is_contiguous()
assert not _views(x.t(), 6) and not _views(wide[:, :3], 6)
# sphinx_gallery_end_ignore

# %%
# The fix
# -------
# ``reshape`` returns a view where that is possible and a copy where it is not. If your line then writes to the result, as
# ``x.view(-1)[0] = 1`` does, write to ``x`` itself: a copy would keep the change for itself.

heads = torch.randn(2, 4, 3, 2)  # batch, heads, tokens, size
x = heads.transpose(1, 2)
joined = x.reshape(2, 3, 8)
print(joined.shape, "copied:", joined.data_ptr() != heads.data_ptr())

# sphinx_gallery_start_ignore
assert torch.equal(joined, heads.transpose(1, 2).contiguous().view(2, 3, 8))
assert joined.untyped_storage().data_ptr() != heads.untyped_storage().data_ptr()
assert torch.equal(joined[0, 1, 2:4], heads[0, 1, 1])
_lost = torch.zeros(2, 3).t()
_lost.reshape(-1)[0] = 1
assert not _lost.any()  # the write went to the copy
_lost[0, 0] = 1
assert _lost.any()
# sphinx_gallery_end_ignore

# %%
# ``x.contiguous().view(2, 3, 8)`` works, too. ``contiguous()`` alone on a line changes nothing:

columns = wide.t()
columns.contiguous()
print("contiguous:", columns.is_contiguous())
columns = columns.contiguous()
print("contiguous:", columns.is_contiguous())

# sphinx_gallery_start_ignore
assert columns.is_contiguous() and not wide.t().is_contiguous()
# sphinx_gallery_end_ignore

# %%
# In a top-k accuracy, ``correct`` comes from a transpose, and ``correct[:k].view(-1)`` raises for ``k > 1``. Use
# ``reshape(-1)``:

torch.manual_seed(0)
scores, target = torch.randn(8, 5), torch.randint(5, (8,))
correct = scores.topk(3).indices.t() == target
print("among the first two:", correct[:2].reshape(-1).float().sum().item())

# sphinx_gallery_start_ignore
assert not _views(correct[:2], -1)
_rank = (scores > scores.gather(1, target[:, None])).sum(1)
assert correct[:2].sum() == (_rank < 2).sum()
# sphinx_gallery_end_ignore

# %%
# What not to do
# --------------
# **Leave out the transpose, so that** ``view`` **works.** Below, two heads of three tokens are joined, from ``(heads, tokens,
# size)`` to ``(tokens, heads * size)``. Each number says where it belongs: ``21`` is token 2 of head 1.

values = torch.tensor([[[10, 10], [20, 20], [30, 30]], [[11, 11], [21, 21], [31, 31]]])
right = values.transpose(0, 1).reshape(3, 4)
wrong = values.view(3, 4)
print("right", right.shape, right.tolist())
print("wrong", wrong.shape, wrong.tolist())

# sphinx_gallery_start_ignore
assert torch.equal(values.reshape(3, 4), wrong)
assert right.shape == wrong.shape and not torch.equal(right, wrong)
assert right.tolist() == [[10, 10, 11, 11], [20, 20, 21, 21], [30, 30, 31, 31]]
assert wrong.tolist() == [[10, 10, 20, 20], [30, 30, 11, 11], [21, 21, 31, 31]]
# sphinx_gallery_end_ignore

# %%
# The shapes agree, so nothing is raised, but each row mixes tokens. ``reshape`` without the transpose gives the same wrong
# numbers. Move dimensions with ``transpose`` or ``permute`` first, then merge neighbors.
#
# See also
# --------
# - :ref:`sphx_glr_gallery_tensors_copy_table.py`.
# - :ref:`sphx_glr_gallery_debugging_silent_mistakes.py`.
# - In PyTorch's reference: `Tensor.view <https://docs.pytorch.org/docs/stable/generated/torch.Tensor.view.html>`__.
