r"""
mat1 and mat2 shapes cannot be multiplied (2x2304 and 400x10)
=============================================================

.. index::
   ! single: in_features of the first linear layer after a convolution
   ! single: the classifier fails after the image size changed
   ! single: size mismatch, m1: [2 x 2304], m2: [400 x 10]
   ! single: input.size(-1) must be equal to input_size. Expected 10, got 5
   ! single: Expected hidden[0] size (1, 1, 4), got [1, 2, 4]
   ! single: einsum(): subscript j has size 4 for operand 1 which does not broadcast with previously seen size 3
   ! single: number of subscripts in the equation does not match the number of dimensions for operand

.. in-short::

   The input of a linear layer does not have the length ``in_features``. The second number of the message is what arrives, the
   third is what the layer was made for. If what arrives is right, make the layer for it.

   .. code-block:: diff

          nn.Flatten(),
      -   nn.Linear(400, 10),
      +   nn.Linear(2304, 10),

   **Not this:** ``view(-1, 400)`` before the layer. It cuts the batch at the wrong places, and may not even raise.
"""

# %%
# The code that raises it
# -----------------------

import torch
from torch import nn

# sphinx_gallery_start_ignore
try:
    # sphinx_gallery_end_ignore
    net = nn.Sequential(
        nn.Conv2d(1, 16, 5),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(400, 10),
    )
    images = torch.ones(2, 1, 28, 28)
    net(images)
# sphinx_gallery_start_ignore
except RuntimeError as error:
    message = str(error)
    print("RuntimeError:", message)
TORCH = tuple(int(part) for part in torch.__version__.split(".")[:2])
_operator = "addmm: " if TORCH >= (2, 15) else ""
assert message == (
    f"{_operator}mat1 and mat2 shapes cannot be multiplied (2x2304 and 400x10)"
)


def _says(call, *inputs):
    try:
        call(*inputs)
    except (RuntimeError, ValueError) as error:
        return str(error)
    return ""


# sphinx_gallery_end_ignore

# %%
# - ``2``: how many vectors arrive, usually the batch.
# - ``2304``: how long each vector is.
# - ``400x10``: ``in_features`` and ``out_features`` of the layer.
#
# Why
# ---
# ``nn.Linear(400, 10)`` computes ``x @ weight.T + bias``, where ``weight.T`` is 400 × 10. Let each layer of your model print
# what arrives. The last line is the layer that raises, or the last one before it:


def show(layer, inputs):
    if not list(layer.children()):
        print(layer, *(tuple(x.shape) for x in inputs if torch.is_tensor(x)))


# sphinx_gallery_start_ignore
_last, _plain = [], show


def _note(layer, inputs):
    if not list(layer.children()):
        _last[:] = [layer, inputs[0].shape]


def show(layer, inputs):
    _note(layer, inputs)
    _plain(layer, inputs)


_raised = []
try:
    # sphinx_gallery_end_ignore
    for layer in net.modules():
        layer.register_forward_pre_hook(show)

    net(images)
# sphinx_gallery_start_ignore
except RuntimeError as error:
    _raised.append(str(error))
    print("RuntimeError:", error)
assert _raised == [message] and _last == [net[-1], (2, 2304)]


class _Deep(nn.Module):
    """Raises in a layer of a layer, or in a product of forward."""

    def __init__(self, width):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 8), nn.Linear(8, width))
        self.weight = nn.Parameter(torch.ones(6, 2))

    def forward(self, x):
        return self.body(x) @ self.weight


for _width, _input, _where in ((6, 5, 0), (7, 4, 1)):
    _deep = _Deep(_width)
    for _part in _deep.modules():
        _part.register_forward_pre_hook(_note)
    assert "shapes cannot be multiplied" in _says(_deep, torch.ones(2, _input))
    assert _last[0] is _deep.body[_where]
_layer = nn.Linear(400, 10)
assert _says(_layer, torch.ones(2, 16, 12, 12)).endswith("(384x12 and 400x10)")
_operator = "mm: " if TORCH >= (2, 15) else ""
assert _says(nn.Linear(400, 10, bias=False), torch.ones(2, 3, 5)) == (
    f"{_operator}mat1 and mat2 shapes cannot be multiplied (6x5 and 400x10)"
)
# sphinx_gallery_end_ignore

# %%
# The fix
# -------
# If the first number is your batch (of sequences, times the length), make the layer for what arrives, the second number.

net = nn.Sequential(
    nn.Conv2d(1, 16, 5),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Flatten(),
    nn.Linear(2304, 10),
)
scores = net(images)
print(tuple(scores.shape))

# graph: scores -- Here the linear layer is AddmmBackward0: mat1 is its input, mat2 the transposed weight

# sphinx_gallery_start_ignore
assert scores.shape == (2, 10) and type(scores.grad_fn).__name__ == "AddmmBackward0"
_pooled = nn.Sequential(*net[:-2], nn.AdaptiveAvgPool2d(5), nn.Flatten(), _layer)
for _size in (28, 64):
    assert _pooled(torch.ones(2, 1, _size, _size)).shape == (2, 10)
# sphinx_gallery_end_ignore

# %%
# - **Images of several sizes**: ``nn.AdaptiveAvgPool2d(5)`` before ``nn.Flatten()`` makes 16 × 5 × 5 = 400 of all of them.
# - **A new head of a ResNet**: ``model.fc = nn.Linear(model.fc.in_features, classes)``, before you make the optimizer.
# - **A trained model gets new data**: keep the layer, and give the data the size and columns of the training data.
# - **The first number is neither**: ``nn.Flatten()`` is missing, or a ``view`` mixed the samples. If the batch comes first,
#   write ``x.flatten(1)``. A single image, or one saved latent, needs ``image.unsqueeze(0)``. After ``nn.Conv1d``, a layer for
#   each time needs ``x.transpose(1, 2)``.
# - **The second number is your batch**: ``(64x1024 and 64x2)`` needs ``x.T``. For 100 samples of one number,
#   ``(1x100 and 1x10)``, it is ``x.unsqueeze(1)``.
# - **In a model of a library**: often two parts do not belong together (768: SD 1.5, 1024: SD 2, 2048: SDXL, 4096: T5). A
#   weight of ``1x8388608`` is packed in 4 bits: update bitsandbytes and PEFT.
# - **Your own product**, ``(3x2 and 5x2)``: if the weight is ``(out, in)``, as ``nn.Linear`` stores it, write ``x @ w.T``.
#
# With ``view(-1, 400)``, 25 images of 2,304 numbers become 144 rows. Some rows have two images:

features = torch.arange(25.0)[:, None].expand(25, 2304)  # image number i is all i
rows = features.reshape(-1, 400)
print(tuple(rows.shape), "row 5 has images", rows[5].unique().tolist())
assert rows.shape == (144, 400) and rows[5].unique().tolist() == [0.0, 1.0]

# sphinx_gallery_start_ignore
_head = nn.Linear(net[-1].in_features, 3)  # a new head
assert nn.Sequential(*net[:-1], _head)(images).shape == (2, 3)
# one number for each sample, the batch as second dimension, and positions of a Conv1d
_numbers = torch.rand(100)
assert _says(nn.Linear(1, 10), _numbers).endswith("(1x100 and 1x10)")
assert nn.Linear(1, 10)(_numbers.unsqueeze(1)).shape == (100, 10)
_columns, _layer = torch.rand(64, 1024), nn.Linear(64, 2)
assert _says(_layer, _columns).endswith("(64x1024 and 64x2)")
assert torch.allclose(_layer(_columns.T)[7], _layer(_columns[:, 7]), atol=1e-6)
_words = torch.rand(8, 20, 300)  # sequences: batch times length
assert _says(nn.Linear(512, 2), _words).endswith("(160x300 and 512x2)")
assert nn.Linear(300, 2)(_words).shape == (8, 20, 2)
_maps = torch.rand(8, 64, 100)
assert _says(_layer, _maps).endswith("(512x100 and 64x2)")
assert torch.allclose(
    _layer(_maps.transpose(1, 2))[3, 7], _layer(_maps[3, :, 7]), atol=1e-6
)
# a weight of 4096 x 4096 in 4 bits is a column of bytes
_packed = torch.empty(4096 * 4096 // 2, 1, device="meta")
_said = _says(nn.functional.linear, torch.empty(2, 4096, device="meta"), _packed)
assert ("4096" in _said) and ("8388608" in _said), _said
_x, _by_columns = torch.ones(3, 2), torch.ones(5, 2)
assert _says(_x.matmul, _by_columns).endswith("(3x2 and 5x2)")
assert (_x @ _by_columns.T).shape == (3, 5)
assert _says(net, images[0]).endswith("(16x144 and 2304x10)")
assert torch.allclose(net(images[0].unsqueeze(0)), scores[:1], atol=1e-5)
# sphinx_gallery_end_ignore

# %%
# input.size(-1) must be equal to input_size. Expected 10, got 5
# --------------------------------------------------------------
# *Expected* is the layer's ``input_size``, *got* the last dimension of the input:

import torch
from torch import nn

# sphinx_gallery_start_ignore
raised = []
try:
    # sphinx_gallery_end_ignore
    series = torch.ones(3, 7, 5)  # 3 samples, 7 times, 5 sensors
    lstm = nn.LSTM(input_size=10, hidden_size=4, batch_first=True)
    output, state = lstm(series)
# sphinx_gallery_start_ignore
except RuntimeError as error:
    raised.append(str(error))
    print("RuntimeError:", error)
assert raised == ["input.size(-1) must be equal to input_size. Expected 10, got 5"]
for _kind in (nn.LSTM, nn.GRU, nn.RNN):
    assert _says(_kind(10, 4), series) == raised[0]
    _layer = _kind(10, 4, batch_first=True)
    _x = torch.randn(3, 10, 5)
    _steps = torch.stack([_x[:, :, time] for time in range(5)], 1)
    assert torch.allclose(_layer(_x.transpose(1, 2))[0], _layer(_steps)[0])
_prices, _layer = torch.randn(3, 6), nn.LSTM(1, 4, batch_first=True)
assert torch.allclose(
    _layer(_prices.unsqueeze(2))[0][1], _layer(_prices[1, :, None])[0], atol=1e-6
)
# sphinx_gallery_end_ignore

# %%
# - **Vectors of another length**: ``input_size=5``.
# - **Prices of shape** ``(batch, time)``: ``input_size=1``, ``batch_first=True`` and ``prices.unsqueeze(2)``.
# - **After** ``nn.Conv1d``: ``maps.transpose(1, 2)`` with ``batch_first=True``.
#
# Expected hidden[0] size
# -----------------------
# Below, the state is kept from a batch of 2 for a batch of 1:

import torch
from torch import nn

# sphinx_gallery_start_ignore
try:
    # sphinx_gallery_end_ignore
    lstm, state = nn.LSTM(10, 4, batch_first=True), None
    for batch in torch.ones(5, 7, 10).split(2):
        output, state = lstm(batch, state)
# sphinx_gallery_start_ignore
except RuntimeError as error:
    raised.append(str(error))
    print("RuntimeError:", error)
assert raised[1:] == ["Expected hidden[0] size (1, 1, 4), got [1, 2, 4]"]
_two, _input = (torch.zeros(1, 2, 4),) * 2, torch.ones(2, 5, 10)
for _options, _first in (
    ({"num_layers": 2}, 2),
    ({"bidirectional": True}, 2),
    ({"num_layers": 3, "bidirectional": True}, 6),
):
    _said = _says(nn.LSTM(10, 4, batch_first=True, **_options), _input, _two)
    assert _said == f"Expected hidden[0] size ({_first}, 2, 4), got [1, 2, 4]"
_said = _says(nn.GRU(10, 4, batch_first=True), torch.ones(1, 5, 10), _two[0])
assert _said == "Expected hidden size (1, 1, 4), got [1, 2, 4]"
_zeros = torch.zeros(1, 1, 4), torch.zeros(1, 1, 4)
assert torch.equal(lstm(batch)[0], lstm(batch, _zeros)[0])
_swapped, _samples = nn.LSTM(10, 4), torch.randn(2, 7, 10)
_said = _says(_swapped, _samples, _two)
assert _said == "Expected hidden[0] size (1, 7, 4), got [1, 2, 4]"
_without = _swapped(_samples)[0]  # carries the state from sample to sample
assert not torch.allclose(_without[1], _swapped(_samples[1:])[0][0], atol=1e-3)
_swapped.batch_first = True
_alone = _swapped(_samples[1:])[0][0]
assert torch.allclose(_swapped(_samples, _two)[0][1], _alone, atol=1e-6)
_said = _says(_swapped, _samples.transpose(0, 1), _two)  # time comes first
assert _said == "Expected hidden[0] size (1, 7, 4), got [1, 2, 4]"
_swapped.batch_first = False
_alone = _swapped(_samples[1:].transpose(0, 1))[0][:, 0]
_found = _swapped(_samples.transpose(0, 1), _two)[0][:, 1]
assert torch.allclose(_found, _alone, atol=1e-6)
# sphinx_gallery_end_ignore

# %%
# The three numbers are ``num_layers`` (times 2 if ``bidirectional``), batch size and ``hidden_size``, also with
# ``batch_first``. If the batch size expected is the length of your sequences, set ``batch_first=True``, or remove it
# if time comes first. If the state is zeros or from other samples, call ``lstm(batch)``. If each batch goes on where the last
# one stopped, see
# :ref:`sphx_glr_gallery_practice_rnn_in_chunks.py`.
#
# einsum(): subscript j has size 4 for operand 1
# ----------------------------------------------
# One letter has two sizes. The weight of a linear layer is ``(out, in)``:

import torch
from torch import nn

# sphinx_gallery_start_ignore
try:
    # sphinx_gallery_end_ignore
    x = torch.rand(2, 3)  # 2 samples, 3 features
    weight = nn.Linear(in_features=3, out_features=4).weight
    y = torch.einsum("ij,jk->ik", x, weight)
# sphinx_gallery_start_ignore
except RuntimeError as error:
    raised.append(str(error))
    print("RuntimeError:", error)
assert raised[2:] == [
    "einsum(): subscript j has size 4 for operand 1 which does not broadcast "
    "with previously seen size 3"
]


def _einsum(*arguments):
    return _says(torch.einsum, *arguments)


_batch = torch.rand(5, 2, 3)
assert _einsum("ij,kj->ik", _batch, weight) == (
    "einsum(): the number of subscripts in the equation (2) does not match the number "
    "of dimensions (3) for operand 0 and no ellipsis was given"
)
assert torch.einsum("...j,kj->...k", _batch, weight).shape == (5, 2, 4)
_maps, _gate = torch.rand(1, 3, 4, 4), torch.rand(1, 3, 1)
assert "(2) does not match the number" in _einsum(
    "bchw,bc->bchw", _maps, _gate.squeeze()
)
assert torch.einsum("bchw,bc->bchw", _maps, _gate.squeeze(2)).shape == (1, 3, 4, 4)
_wrong = torch.einsum("ij,kl->ik", x, weight)  # a new letter is summed alone
assert torch.allclose(_wrong, x.sum(1, keepdim=True) * weight.sum(1), atol=1e-6)
# sphinx_gallery_end_ignore

# %%
# Give each tensor the letters of its own dimensions. Operand 1 is the second:

print(torch.allclose(torch.einsum("ij,kj->ik", x, weight), x @ weight.T, atol=1e-6))

# sphinx_gallery_start_ignore
assert torch.allclose(torch.einsum("ij,kj->ik", x, weight), x @ weight.T, atol=1e-6)
# sphinx_gallery_end_ignore

# %%
# If the *number of subscripts* does not match, a tensor has more or fewer dimensions than letters: ``"...j,kj->...k"`` takes
# any number of dimensions before the last, and ``squeeze(dim)`` keeps a batch of one. A new letter, ``"ij,kl->ik"``, runs and
# returns wrong numbers.
#
# See also
# --------
# - :ref:`sphx_glr_gallery_errors_sizes_do_not_match.py`, for operations element by element.
# - :ref:`sphx_glr_gallery_errors_expected_channels.py`, for convolutions.
# - In PyTorch's reference: `nn.Linear <https://docs.pytorch.org/docs/stable/generated/torch.nn.Linear.html>`__.
