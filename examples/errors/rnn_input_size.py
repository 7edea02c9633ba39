r"""
input.size(-1) must be equal to input_size. Expected 10, got 5
==============================================================

.. index::
   ! single: LSTM or GRU, input of the wrong shape
   ! single: Expected hidden[0] size (1, 1, 4), got [1, 2, 4]
   ! single: batch_first and the shape of the hidden state
   ! single: LSTM fails in the last batch of an epoch

.. in-short::

   An LSTM, GRU or RNN reads the features from the last dimension of its input. The layer was made for 10 features and gets 5.
   Print the shape. If the last dimension is the features, change ``input_size``. If not, move the features there.

   .. code-block:: diff

      - lstm = nn.LSTM(input_size=10, hidden_size=4, batch_first=True)
      + lstm = nn.LSTM(input_size=5, hidden_size=4, batch_first=True)
        output, state = lstm(series)

   **Not this:** ``reshape`` or ``transpose`` until it fits. The layer then reads times as features, and raises nothing.
"""

# %%
# The code that raises it
# -----------------------

import torch
from torch import nn

# sphinx_gallery_start_ignore
try:
    # sphinx_gallery_end_ignore
    series = torch.ones(3, 7, 5)  # 3 samples, 7 times, 5 sensors
    lstm = nn.LSTM(input_size=10, hidden_size=4, batch_first=True)
    output, state = lstm(series)
# sphinx_gallery_start_ignore
except RuntimeError as error:
    message = str(error)
    print("RuntimeError:", message)
assert message == "input.size(-1) must be equal to input_size. Expected 10, got 5"


def _says(layer, *inputs):
    try:
        layer(*inputs)
    except (RuntimeError, ValueError) as error:
        return str(error)
    return ""


for _layer in (nn.LSTM, nn.GRU, nn.RNN):
    for _first in (True, False):
        assert _says(_layer(10, 4, batch_first=_first), series) == message
for _cell in (nn.LSTMCell, nn.GRUCell, nn.RNNCell):
    assert _says(_cell(10, 4), torch.ones(3, 5)).endswith(
        "input has inconsistent input_size: got 5 expected 10"
    )
_packed = nn.utils.rnn.pack_sequence([torch.ones(3, 5), torch.ones(2, 5)])
assert "shapes cannot be multiplied" in _says(lstm, _packed)
assert _says(nn.GRU(10, 4), _packed) == _says(nn.RNN(10, 4), _packed) == message
# sphinx_gallery_end_ignore

# %%
# - ``Expected 10``: the ``input_size`` of the layer, how many numbers it reads at each time.
# - ``got 5``: the last dimension of your input.
#
# ``nn.LSTMCell`` says *input has inconsistent input_size: got 5 expected 10*. For an LSTM and a packed sequence the message
# is :ref:`mat1 and mat2 shapes cannot be multiplied <sphx_glr_gallery_errors_shapes_cannot_be_multiplied.py>`.
#
# Why
# ---
# The layer was made for vectors of another length. This is the usual cause, for example with word vectors of 768 numbers.
#
# The fix
# -------
# Make the layer for what arrives:

lstm = nn.LSTM(input_size=5, hidden_size=4, batch_first=True)
output, state = lstm(series)
print("output", tuple(output.shape))

# sphinx_gallery_start_ignore
assert output.shape == (3, 7, 4)
_both = nn.LSTM(5, 4, batch_first=True, bidirectional=True)
assert _both(series)[0].shape == (3, 7, 2 * 4)
# sphinx_gallery_end_ignore

# %%
# - **Words.** Their ids go through ``nn.Embedding`` first. Its ``embedding_dim`` is the ``input_size``.
# - **A layer after a bidirectional one** gets ``2 * hidden_size`` features.
# - **One number for each time**, as in a series of prices of shape ``(batch, time)``: use ``input_size=1`` and
#   ``prices.unsqueeze(2)``.
#
# The features are in another dimension
# -------------------------------------
# Convolutions have the features before the times. Recurrent layers want them last: ``(batch, time, features)`` with
# ``batch_first=True``, ``(time, batch, features)`` without. ``transpose`` moves them. ``reshape`` gives the same shape, and
# mixes them:

import matplotlib.pyplot as plt

# figure: Two grids of 5 times and 10 features. After transpose each column has one color: one sensor. After reshape each row
#   has two colors: numbers of two sensors fill the ten features of one time.
sensors = torch.arange(10.0)[:, None].expand(10, 5)  # sensor number i is all i
fig, axes = plt.subplots(1, 2, figsize=(7, 2), layout="constrained")
ways = {"transpose": sensors.transpose(0, 1), "reshape": sensors.reshape(5, 10)}
for ax, (name, times) in zip(axes, ways.items(), strict=True):
    ax.imshow(times.numpy(), cmap="Blues", vmin=-2, aspect="auto")
    ax.set(xticks=range(10), yticks=[], xlabel="feature", ylabel="time")
    ax.set_title(f"{name}. Color: the sensor")

# sphinx_gallery_start_ignore
assert ways["transpose"][:, 3].unique().tolist() == [3.0]
assert all(len(row.unique()) == 2 for row in ways["reshape"])
# sphinx_gallery_end_ignore

# %%
# So transpose the output of a convolution:

maps = torch.ones(3, 10, 5)  # 3 samples, 10 channels, 5 times
lstm = nn.LSTM(input_size=10, hidden_size=4, batch_first=True)
output, state = lstm(maps.transpose(1, 2))
print("output", tuple(output.shape))

# sphinx_gallery_start_ignore
assert output.shape == (3, 5, 4)
_data = torch.randn(3, 10, 5)
_last = nn.LSTM(10, 4)
_last.load_state_dict(lstm.state_dict())
_moved = _last(_data.permute(2, 0, 1))[0].transpose(0, 1)
assert torch.allclose(_moved, lstm(_data.transpose(1, 2))[0], atol=1e-6)
# sphinx_gallery_end_ignore

# %%
# A layer without ``batch_first=True`` wants ``maps.permute(2, 0, 1)`` instead: time, batch, features.
#
# Expected hidden[0] size
# -----------------------
# The state that you give does not fit the layer or the batch. Below, 5 samples come in batches of 2, 2 and 1, and the state of
# one batch is kept for the next:

# sphinx_gallery_start_ignore
raised = []
try:
    # sphinx_gallery_end_ignore
    state = None
    for batch in torch.ones(5, 7, 10).split(2):
        output, state = lstm(batch, state)
# sphinx_gallery_start_ignore
except RuntimeError as error:
    raised.append(str(error))
    print("RuntimeError:", error)
assert raised == ["Expected hidden[0] size (1, 1, 4), got [1, 2, 4]"]
# sphinx_gallery_end_ignore

# %%
# The three numbers are ``num_layers`` (times 2 if ``bidirectional``), batch size and ``hidden_size``, also with
# ``batch_first=True``. Compare them to see which one differs. ``hidden[0]`` is ``h``, and ``hidden[1]`` is ``c``. ``nn.GRU``
# says *Expected hidden size (1, 1, 4), got [1, 2, 4]*.
#
# If the batches are different samples, begin each without a state. The layer then begins with zeros:

for batch in torch.ones(5, 7, 10).split(2):
    output, state = lstm(batch)
print("state", tuple(state[0].shape))

# sphinx_gallery_start_ignore
assert state[0].shape == (1, 1, 4)
_zeros = torch.zeros(1, 1, 4), torch.zeros(1, 1, 4)
assert torch.equal(lstm(batch)[0], lstm(batch, _zeros)[0])
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
_rows = torch.randn(5, 10)
assert torch.allclose(lstm(_rows)[0], lstm(_rows[None])[0][0], atol=1e-6)
_said = "For {}, hx and cx should also be {} but got ({}, {}) tensors".format
assert _says(lstm, _rows, state) == _said("unbatched 2-D input", "2-D", "3-D", "3-D")
_flat = torch.zeros(2, 4), torch.zeros(2, 4)
assert _says(lstm, _input, _flat) == _said("batched 3-D input", "3-D", "2-D", "2-D")
# sphinx_gallery_end_ignore

# %%
# If each batch goes on where the last one stopped, keep and detach the state, and leave out the small batch
# (``drop_last=True``): see :ref:`sphx_glr_gallery_errors_backward_twice.py`.
#
# An input of two dimensions is one sample, ``(time, features)``.
# If only one of input and state has a batch, the message is *For batched 3-D input, hx and cx should also be 3-D* or *For
# unbatched 2-D input, hx and cx should also be 2-D*.
#
# What not to do
# --------------
# **Do not forget batch_first.** Without it the same input is 5 samples of 3 times, and nothing is raised. To see it, change
# sample 0 and ask which outputs change:

x = torch.randn(3, 5, 10)
other = x.clone()
other[0] += 1
for batch_first in (True, False):
    layer = nn.LSTM(10, 4, batch_first=batch_first)
    changed = layer(x)[0] != layer(other)[0]
    print(f"batch_first={batch_first!s:<6}", changed.flatten(1).any(dim=1).tolist())

# sphinx_gallery_start_ignore
for _layer in (nn.LSTM, nn.GRU, nn.RNN):
    for _first, _which in ((True, [True, False, False]), (False, [True] * 3)):
        _made = _layer(10, 4, batch_first=_first)
        _changed = (_made(x)[0] - _made(other)[0]).abs().flatten(1).amax(1) > 1e-6
        assert _changed.tolist() == _which
# sphinx_gallery_end_ignore

# %%
# Without ``batch_first`` the output of one sample depends on the others in the batch.
#
# See also
# --------
# - :ref:`sphx_glr_gallery_errors_stack_unequal_sizes.py`: sequences of different lengths in a batch.
# - :ref:`sphx_glr_gallery_errors_expected_channels.py`, the same question for convolutions.
# - In PyTorch's reference: `nn.LSTM <https://docs.pytorch.org/docs/stable/generated/torch.nn.LSTM.html>`__.
