r"""
input.size(-1) must be equal to input_size. Expected 10, got 5
==============================================================

.. index::
   ! single: LSTM or GRU, input of the wrong shape
   ! single: Expected hidden[0] size (1, 1, 4), got [1, 2, 4]
   ! single: batch_first and the shape of the hidden state
   ! single: LSTM fails in the last batch of an epoch

.. in-short::

   An LSTM, GRU or RNN wants the features in the last dimension. The layer was made for 10 features, and there are 5 numbers. If
   the features are in another dimension, move them. If not, change ``input_size``.

   .. code-block:: diff

        lstm = nn.LSTM(input_size=10, hidden_size=4, batch_first=True)
      - output, state = lstm(series)
      + output, state = lstm(series.transpose(1, 2))

   **Not this:** ``series.reshape(3, 5, 10)``. It mixes features and times, and raises nothing. And check ``batch_first``: by
   default the batch is not the first dimension, but the second.
"""

# %%
# The code that raises it
# -----------------------

import torch
from torch import nn

# sphinx_gallery_start_ignore
torch.manual_seed(0)
try:
    # sphinx_gallery_end_ignore
    series = torch.ones(3, 10, 5)  # 3 samples, 10 sensors, 5 times
    lstm = nn.LSTM(input_size=10, hidden_size=4, batch_first=True)
    output, state = lstm(series)
# sphinx_gallery_start_ignore
except RuntimeError as error:
    message = str(error)
    print("RuntimeError:", message)
assert message == "input.size(-1) must be equal to input_size. Expected 10, got 5"


def says(call):
    try:
        output = call()[0]
        return f"no message, output {tuple(output.shape)}"
    except (RuntimeError, ValueError) as error:
        return f"{type(error).__name__}: {error}"


for _layer in (nn.LSTM, nn.GRU, nn.RNN):
    for _first in (True, False):
        _made = _layer(10, 4, batch_first=_first)
        assert says(lambda m=_made: m(series)) == f"RuntimeError: {message}"
for _cell in (nn.LSTMCell, nn.GRUCell, nn.RNNCell):
    assert says(lambda c=_cell: c(10, 4)(torch.ones(3, 5))).endswith(
        "input has inconsistent input_size: got 5 expected 10"
    )
_packed = nn.utils.rnn.pack_sequence([torch.ones(3, 5), torch.ones(2, 5)])
assert "shapes cannot be multiplied" in says(lambda: lstm(_packed))
# sphinx_gallery_end_ignore

# %%
# - ``Expected 10``: the ``input_size`` of the layer, how many numbers arrive at each time.
# - ``got 5``: the last dimension of your input. Here these are the times.
#
# ``nn.LSTMCell`` says *input has inconsistent input_size: got 5 expected 10*. For a packed sequence the message
# is :ref:`mat1 and mat2 shapes cannot be multiplied <sphx_glr_gallery_errors_shapes_cannot_be_multiplied.py>`.
#
# Why
# ---
# The layer reads one vector of features at each time. Convolutions keep the features in dimension 1, recurrent layers want them
# last: ``(batch, time, features)`` with ``batch_first=True``, ``(time, batch, features)`` without. ``transpose`` moves them.
# ``reshape`` gives the same shape, and mixes them:

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
# The fix
# -------
# Move the features to the end:

lstm = nn.LSTM(input_size=10, hidden_size=4, batch_first=True)
output, state = lstm(series.transpose(1, 2))
print("output", tuple(output.shape))

# sphinx_gallery_start_ignore
assert output.shape == (3, 5, 4)
_data = torch.randn(3, 10, 5)
_last = nn.LSTM(10, 4)
_last.load_state_dict(lstm.state_dict())
_right = lstm(_data.transpose(1, 2))[0]
assert torch.allclose(
    _last(_data.permute(2, 0, 1))[0].transpose(0, 1), _right, atol=1e-6
)
_silent = _last(_data.transpose(1, 2))[0]  # the times of one sample for the batch
assert _silent.shape == _right.shape and not torch.allclose(_silent, _right)
# sphinx_gallery_end_ignore

# %%
# A layer without ``batch_first=True`` wants ``series.permute(2, 0, 1)`` instead: time, batch, features.
#
# **One number for each time.** A series of prices has the shape ``(batch, time)``. Give it a dimension of 1 feature. Here
# ``says`` returns the message of a call, or the shape of the output:

prices = torch.ones(3, 5)
one = nn.LSTM(input_size=1, hidden_size=4, batch_first=True)
print(says(lambda: one(prices)))
print(says(lambda: one(prices.unsqueeze(2))))

# sphinx_gallery_start_ignore
assert says(lambda: one(prices)).endswith("Expected 1, got 5")
assert says(lambda: one(prices.unsqueeze(2))) == "no message, output (3, 5, 4)"
# sphinx_gallery_end_ignore

# %%
# **Words.** Their ids go through ``nn.Embedding`` first. Its ``embedding_dim`` is the ``input_size``. With word vectors of
# another model, such as 768 numbers instead of 1,024, change ``input_size``.
#
# Expected hidden[0] size
# -----------------------
# The state that you give has another batch size than the input. Here 5 samples come in batches of 2, 2 and 1, and the state of
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
# The three numbers are ``num_layers`` (times 2 if ``bidirectional``), batch size and ``hidden_size``. ``batch_first=True`` does
# not change this order. ``hidden[0]`` is ``h``, and ``hidden[1]`` is ``c``. The last number of ``h`` is ``proj_size``, if you
# give one. ``nn.GRU`` says *Expected hidden size (1, 1, 4), got [1, 2, 4]*.
#
# If the batches are different samples, begin each without a state. The layer then begins with zeros:

for batch in torch.ones(5, 7, 10).split(2):
    output, state = lstm(batch)
print("state", tuple(state[0].shape))

# sphinx_gallery_start_ignore
assert state[0].shape == (1, 1, 4)
_zeros = torch.zeros(1, 1, 4), torch.zeros(1, 1, 4)
assert torch.equal(lstm(batch)[0], lstm(batch, _zeros)[0])
_own = torch.zeros(3, 1, 4), torch.zeros(3, 1, 4)
assert "Expected hidden[0] size (1, 3, 4), got [3, 1, 4]" in says(
    lambda: lstm(torch.ones(3, 5, 10), _own)
)
_pair = torch.zeros(1, 2, 4), torch.zeros(1, 3, 4)
assert "Expected hidden[1] size (1, 2, 4)" in says(
    lambda: lstm(torch.ones(2, 5, 10), _pair)
)
_two = torch.zeros(1, 2, 4), torch.zeros(1, 2, 4)
for _options, _first in (
    ({"num_layers": 2}, 2),
    ({"bidirectional": True}, 2),
    ({"num_layers": 3, "bidirectional": True}, 6),
):
    _deep = nn.LSTM(10, 4, batch_first=True, **_options)
    assert f"Expected hidden[0] size ({_first}, 2, 4), got [1, 2, 4]" in says(
        lambda d=_deep: d(torch.ones(2, 5, 10), _two)
    )
_projected = nn.LSTM(10, 4, proj_size=3, batch_first=True)
assert "Expected hidden[0] size (1, 2, 3)" in says(
    lambda: _projected(torch.ones(2, 5, 10), _two)
)
assert "Expected hidden[1] size (1, 2, 4), got [1, 2, 3]" in says(
    lambda: _projected(torch.ones(2, 5, 10), (torch.zeros(1, 2, 3),) * 2)
)
_gru = nn.GRU(10, 4, batch_first=True)
assert "Expected hidden size (1, 1, 4), got [1, 2, 4]" in says(
    lambda: _gru(torch.ones(1, 5, 10), torch.zeros(1, 2, 4))
)
# sphinx_gallery_end_ignore

# %%
# If each batch goes on where the last one stopped, keep the state, leave out the small batch (``drop_last=True``), and detach
# the state: see :ref:`sphx_glr_gallery_errors_backward_twice.py`.
#
# **An input of two dimensions** is one sample without a batch: ``(time, features)``. So a batch of shape ``(batch, features)``
# is taken for one sample, without a message. For two dimensions the state has two dimensions, too:

print(says(lambda: lstm(torch.ones(5, 10))))
print(says(lambda: lstm(torch.ones(5, 10), state)))

# sphinx_gallery_start_ignore
assert says(lambda: lstm(torch.ones(5, 10))) == "no message, output (5, 4)"
_rows = torch.randn(5, 10)
assert torch.allclose(lstm(_rows)[0], lstm(_rows[None])[0][0], atol=1e-6)
assert not torch.allclose(lstm(_rows)[0], lstm(_rows[:, None])[0][:, 0])
assert says(lambda: lstm(torch.ones(5, 10), state)) == (
    "RuntimeError: For unbatched 2-D input, hx and cx should also be 2-D but got (3-D, 3-D) tensors"
)
# sphinx_gallery_end_ignore

# %%
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
# Without ``batch_first`` the output of each sample depends on the samples before it in the batch.
#
# See also
# --------
# - :ref:`sphx_glr_gallery_errors_stack_unequal_sizes.py`: sequences of different lengths in a batch.
# - :ref:`sphx_glr_gallery_errors_expected_channels.py`, the same question for convolutions.
# - In PyTorch's reference: `nn.LSTM <https://docs.pytorch.org/docs/stable/generated/torch.nn.LSTM.html>`__.
