r"""
shape '[2, 4]' is invalid for input of size 6
=============================================

.. index::
   ! single: view(-1, 400) fails after the image size changed
   ! single: the last batch of an epoch is smaller and a reshape fails
   ! single: wrong number of rows after flattening a batch
   ! single: cannot reshape tensor of 0 elements into shape

.. in-short::

   Six elements cannot fill 2 × 4 places. Usually a flattened size was computed for other images, or a batch size is written
   into the code. Keep the batch (if it comes first), and flatten the rest.

   .. code-block:: diff

      - flat = features.view(2, 4)
      + flat = features.flatten(1)

   **Not this:** a ``-1`` in place of the batch, ``view(-1, 4)``. Four such images then become three rows. The samples are
   mixed, and nothing is raised.
"""

# %%
# The code that raises it
# -----------------------

import torch
from torch import nn

# sphinx_gallery_start_ignore
raised = []
try:
    # sphinx_gallery_end_ignore
    images = torch.rand(2, 1, 2, 6)  # two images of 2 by 6
    features = nn.MaxPool2d(2)(images)
    flat = features.view(2, 4)
# sphinx_gallery_start_ignore
except RuntimeError as error:
    raised.append(str(error))
    print("RuntimeError:", error)
assert raised == ["shape '[2, 4]' is invalid for input of size 6"]
assert features.shape == (2, 1, 1, 3)
assert nn.MaxPool2d(2)(torch.rand(4, 1, 2, 6)).view(-1, 4).shape == (3, 4)
# sphinx_gallery_end_ignore

# %%
# Look for the last frame of the traceback that is not PyTorch's, and print ``x.shape`` in front of its line:
#
# .. list-table::
#    :header-rows: 1
#    :widths: 44 56
#
#    * - the frame
#      - what to fix
#    * - ``x.view(-1, 400)`` before a linear layer
#      - The images or the layers changed: ``x.flatten(1)``.
#    * - ``x.view(batch_size, ...)``, in the last batch or under ``DataParallel``
#      - The batch size stands in the code, see below.
#    * - ``logits.view(-1, vocab_size)`` in a loss
#      - The vocabulary was resized: ``logits.view(-1, logits.shape[-1])``. If the line is in a library, set
#        ``model.config.vocab_size`` to that number.
#    * - ``x.view(B, H, W, C)`` or ``x.view(B, -1, segment, C)`` in a transformer
#      - The model does not take this size. Resize the images, or pad the sequence and mask the padding.
#    * - ``x.view(B, T, heads, head_dim)`` in an attention layer
#      - ``heads * head_dim`` must be the last dimension of ``x``. Keys and values may have fewer heads: update a library that
#        does not know it.
#    * - the call of ``nn.MultiheadAttention``
#      - If the batch comes first in your tensors: ``batch_first=True``.
#    * - ``x.view(B, C, H, W)``, ``x.view(B, anchors, 5 + classes, H, W)``
#      - The linear layer before it must have ``C * H * W`` outputs, the convolution ``anchors * (5 + classes)`` channels.
#    * - ``weights[...].view_as(conv.weight)``
#      - The file does not fit the ``.cfg``, for example its number of classes, or it is cut off.
#
# An empty batch says *cannot reshape tensor of 0 elements into shape [0, -1]*. Skip its step. If only a part is empty, write
# ``x.flatten(1)``.
#
# Why
# ---
# ``view`` uses each element once, so the product of the sizes must be the number of elements. It takes them row after row,
# whichever sample they belong to. In this network, ``16 * 5 * 5`` is right for images of 32 by 32. These are 28 by 28:

# sphinx_gallery_start_ignore
try:
    # sphinx_gallery_end_ignore
    pool = nn.MaxPool2d(2)
    layers = nn.Sequential(nn.Conv2d(3, 6, 5), pool, nn.Conv2d(6, 16, 5), pool)
    x = layers(torch.randn(6, 3, 28, 28))
    x.view(-1, 16 * 5 * 5)
# sphinx_gallery_start_ignore
except RuntimeError as error:
    raised.append(str(error))
    print("RuntimeError:", error)
assert raised[1:] == ["shape '[-1, 400]' is invalid for input of size 1536"]
assert layers(torch.randn(1, 3, 32, 32)).shape == (1, 16, 5, 5) and x.shape == (
    6,
    16,
    4,
    4,
)
# sphinx_gallery_end_ignore

# %%
# If 400 divides the number of elements, nothing is raised. ``view(-1, 6)`` turns three samples of four numbers into two
# rows:

import matplotlib.pyplot as plt

samples = torch.arange(3).repeat_interleave(4).view(3, 4)
mixed = samples.view(-1, 6)

# figure: Left, three rows of four letters: aaaa, bbbb, cccc. Right, the same twelve letters in two rows of six:
#   aaaabb and bbcccc. Each of these rows mixes two samples.
fig, axes = plt.subplots(1, 2, figsize=(7, 1.8))
for ax, rows in zip(axes, (samples, mixed), strict=True):
    for y, row in enumerate(rows.tolist()):
        for place, sample in enumerate(row):
            color = ["#2563eb", "#c2410c", "#047857"][sample]
            ax.text(place, -y, "abc"[sample], color=color, backgroundcolor="#e2e8f0")
    ax.set(xlim=(-0.6, 5.6), ylim=(-2.5, 0.5))
    ax.axis("off")
axes[0].set_title("three samples: (3, 4)")
axes[1].set_title("view(-1, 6): (2, 6)")

# sphinx_gallery_start_ignore
assert samples.tolist() == [[0] * 4, [1] * 4, [2] * 4]
assert mixed.tolist() == [[0, 0, 0, 0, 1, 1], [1, 1, 2, 2, 2, 2]]
# sphinx_gallery_end_ignore

# %%
# The fix
# -------
# **Flatten everything but the batch.** ``flatten(1)`` keeps the first dimension. In ``h_n`` of an LSTM, the batch is second:
# ``h_n.transpose(0, 1).flatten(1)``. So it is in ``output``, unless you set ``batch_first=True``.

flat = features.flatten(1)
print(tuple(flat.shape))

# sphinx_gallery_start_ignore
assert torch.equal(flat[1], features[1].flatten()) and flat.shape == (2, 3)
_times, _lstm = torch.rand(5, 2, 4), nn.LSTM(4, 6, num_layers=2)  # 5 steps of 2 samples
_swapped = nn.LSTM(4, 6, num_layers=2, batch_first=True)
_swapped.load_state_dict(_lstm.state_dict())
_output, (_state, _) = _lstm(_times)
assert _swapped(_times.transpose(0, 1))[1][0].allclose(_state)
for _result in (_output, _state):
    _mixed = _result.contiguous().view(2, -1)  # nothing raised
    _result = _result.transpose(0, 1).flatten(1)
    _output, (_state, _) = _lstm(_times[:, 1:])
    _alone = _output if _result.shape[1] == 30 else _state
    assert _result[1].allclose(_alone.flatten()) and not _mixed[1].allclose(_result[1])
_query, _keys = torch.rand(3, 1, 4), torch.rand(3, 5, 4)
try:
    nn.MultiheadAttention(4, 2)(_query, _keys, _keys)
except RuntimeError as error:
    _said = str(error)
assert _said == "shape '[3, 2, 2]' is invalid for input of size 60"
_attention = nn.MultiheadAttention(4, 2, batch_first=True)
_alone = _attention(_query[1], _keys[1], _keys[1])[0]
assert _attention(_query, _keys, _keys)[0][1].allclose(_alone, atol=1e-6)
_tokens = torch.randn(2, 5, 9)
try:
    _tokens.view(-1, 7)
except RuntimeError as error:
    _said = str(error)
assert _said == "shape '[-1, 7]' is invalid for input of size 90"
assert torch.equal(_tokens.view(-1, _tokens.shape[-1])[7], _tokens[1, 2])
try:
    torch.rand(0, 3, 2).view(0, -1)
except RuntimeError as error:
    _said = str(error)
assert _said.startswith("cannot reshape tensor of 0 elements into shape [0, -1]")
_layer, _no_labels = nn.Linear(6, 2), torch.zeros(0, dtype=torch.long)
_momentum = torch.optim.SGD(_layer.parameters(), lr=0.1, momentum=0.9)
_layer(torch.rand(4, 6)).square().mean().backward()
_momentum.step()
_momentum.zero_grad()
_before = _layer.weight.detach().clone()
_loss = nn.functional.cross_entropy(_layer(torch.rand(0, 3, 2).flatten(1)), _no_labels)
_loss.backward()
assert _loss.isnan() and not _layer.weight.grad.any()
_momentum.step()  # moves without a sample
assert not torch.equal(_layer.weight, _before)
_last_state = nn.LSTM(4, 6, num_layers=2)(torch.rand(5, 3, 4))[1][0]  # 3 samples
assert _last_state.view(_last_state.shape[0], -1).shape == (2, 18)
for _shape in ((1, 3), (0, 3, 2), (5, 1, 1), (2, 3, 4, 5)):
    assert torch.rand(_shape).flatten(1).shape[0] == _shape[0]
# sphinx_gallery_end_ignore

# %%
# The linear layer for the wrong size now raises. Its message has the right size in it, here 256. If the layer is trained,
# resize the images instead.

# sphinx_gallery_start_ignore
try:
    # sphinx_gallery_end_ignore
    nn.Linear(16 * 5 * 5, 10)(x.flatten(1))
# sphinx_gallery_start_ignore
except RuntimeError as error:
    raised.append(str(error))
    print("RuntimeError:", error)
TORCH = tuple(int(part) for part in torch.__version__.split(".")[:2])
_operator = "addmm: " if TORCH >= (2, 15) else ""
assert raised[2:] == [
    f"{_operator}mat1 and mat2 shapes cannot be multiplied (6x256 and 400x10)"
]
assert nn.Linear(256, 10)(x.flatten(1)).shape == (6, 10)
_resized = nn.functional.interpolate(torch.rand(6, 3, 28, 28), size=32, mode="bilinear")
assert nn.Linear(400, 10)(layers(_resized).flatten(1)).shape == (6, 10)
_key = torch.rand(2, 5, 8 * 4)  # 32 heads of queries, 8 of keys
try:
    _key.view(2, 5, 32, 4)
except RuntimeError as error:
    _said = str(error)
assert _said == "shape '[2, 5, 32, 4]' is invalid for input of size 320"
assert _key.view(2, 5, 8, 4).shape == (2, 5, 8, 4)
# sphinx_gallery_end_ignore

# %%
# **Images of several sizes**: bring the feature maps to one size before the linear layer.

head = nn.Sequential(nn.AdaptiveAvgPool2d(5), nn.Flatten(), nn.Linear(16 * 5 * 5, 10))
for side in (28, 32, 64):
    print(side, tuple(head(layers(torch.randn(6, 3, side, side))).shape))

# sphinx_gallery_start_ignore
for _side in (28, 32, 64):
    assert head(layers(torch.randn(6, 3, _side, _side))).shape == (6, 10)
# sphinx_gallery_end_ignore

# %%
# **A batch size in the code**: ask a tensor that has the batch first.

for batch in torch.arange(10.0).split(4):
    rows = batch.view(batch.shape[0], 1)  # not view(4, 1)
    print(tuple(rows.shape), end=" ")

# sphinx_gallery_start_ignore
try:
    batch.view(4, 1)
except RuntimeError as error:
    raised.append(str(error))
assert raised[3:] == ["shape '[4, 1]' is invalid for input of size 2"]
# a batch size with which it runs: 25 images, 16 rows, and the first is made of two
images = torch.randn(25, 3, 28, 28, requires_grad=True)
rows = layers(images).view(-1, 16 * 5 * 5)
(gradient,) = torch.autograd.grad(rows[0].sum(), images)
used = gradient.flatten(1).any(1).nonzero().flatten().tolist()
assert len(rows) == 16 and used == [0, 1]
_yolo = nn.Conv2d(3, 3 * (5 + 2), 1)(torch.rand(2, 3, 4, 4))
assert _yolo.view(2, 3, 5 + 2, 4, 4).shape == (2, 3, 7, 4, 4)
# sphinx_gallery_end_ignore

# %%
# What not to do
# --------------
# **Drop the last batch of an evaluation.** In batches of four, two of ten samples are not counted:

loader = torch.utils.data.DataLoader(torch.arange(10), batch_size=4, drop_last=True)
print("seen:", sum(len(batch) for batch in loader), "of 10")

# sphinx_gallery_start_ignore
assert sum(len(batch) for batch in loader) == 8
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_errors_view_not_compatible.py`.
# - :ref:`sphx_glr_gallery_debugging_silent_mistakes.py`.
# - In PyTorch's reference: `torch.flatten <https://docs.pytorch.org/docs/stable/generated/torch.flatten.html>`__ and
#   `torch.reshape <https://docs.pytorch.org/docs/stable/generated/torch.reshape.html>`__.
