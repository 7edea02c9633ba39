r"""
The size of tensor a (3) must match the size of tensor b (4)
============================================================

.. index::
   ! single: the loss of predictions (n, 1) and targets (n,) is wrong
   ! single: UserWarning Using a target size that is different to the input size
   ! single: a skip connection adds feature maps of different sizes

Two tensors meet in an operation that works element by element, and their shapes do not fit. The cause is often an
offset of one, an odd image size, or a factor for each row that is taken for one for each column. Adding dimensions
until the message goes away gives a number for every *pair* of elements.
"""

# %%
# The shortest code that raises it
# --------------------------------

import warnings

import matplotlib.pyplot as plt
import torch
from torch import nn

try:
    torch.ones(2, 3) + torch.ones(2, 4)
except RuntimeError as error:
    message = str(error)
    print("RuntimeError:", message)
    assert message.startswith("The size of tensor a (3) must match the size of")

# %%
# The message has your numbers in place of these, and *a* and *b* are the first and the second operand. Earlier
# versions began with *inconsistent tensor size*, and said that the two should *have the same number of elements*.

# %%
# Why
# ---
# The shapes are aligned at their last dimension. Two sizes fit if they are equal, or if one of them is 1 or missing,
# and then that tensor is stretched. That is *broadcasting*. A size of 1 fits everything, also where it should not:
# ``(4, 1)`` and ``(4,)`` are the same four numbers to a reader, and their difference has 16.

predictions = torch.tensor([[1.0], [2.0], [3.0], [4.0]])
targets = torch.tensor([1.0, 2.0, 3.0, 4.0])
difference = predictions - targets
print(f"{tuple(predictions.shape)} and {tuple(targets.shape)} give", end=" ")
print(tuple(difference.shape))

# %%
# Each prediction is compared with each target.

# figure: A table of four by four differences, prediction in row i minus target in column j. The four on the diagonal
#   are zero and framed: these were meant. The twelve others, from -3 to 3, compare different samples.
fig, ax = plt.subplots(figsize=(7, 3))
for i in range(4):
    for j in range(4):
        text = ax.text(j, -i, f"{difference[i, j]:.0f}", ha="center", va="center")
        text.set_color("#047857" if i == j else "#c2410c")
        if i == j:
            text.set_bbox({"facecolor": "white", "edgecolor": "#047857", "pad": 7})
ax.set_xticks(range(4), [f"target {t:.0f}" for t in targets])
ax.set_yticks(range(0, -4, -1), [f"prediction {p:.0f}" for p in predictions.flatten()])
ax.set(xlim=(-0.6, 3.6), ylim=(-3.6, 0.6))
ax.set_title("Four differences were meant, and sixteen computed")

# sphinx_gallery_start_ignore
assert difference.shape == (4, 4) and not difference.diagonal().any()
assert difference.min() == -3 and difference.max() == 3
assert (difference != 0).sum() == 12
# sphinx_gallery_end_ignore

# %%
# The fix
# -------
# Print both shapes, and say what each dimension stands for. Then one of these applies.
#
# **One number for each row** needs its own dimension at the end.

table, weights = torch.ones(3, 4), torch.tensor([1.0, 2.0, 3.0])
try:
    table * weights
except RuntimeError as error:
    print("RuntimeError:", error)
    assert "tensor a (4) must match the size of tensor b (3)" in str(error)
print((table * weights.unsqueeze(1)).sum(1).tolist())
assert (table * weights.unsqueeze(1)).sum(1).tolist() == [4, 8, 12]

# %%
# **An offset of one**: a forecast of the next value has no target for the last input. Cut the longer one where the
# extra element is.

series = torch.tensor([1.0, 2.0, 4.0, 8.0, 16.0])
forecast, following = series * 2, series[1:]
try:
    forecast - following
except RuntimeError as error:
    print("RuntimeError:", error)
    assert "tensor a (5) must match the size of tensor b (4)" in str(error)
print("error:", (forecast[:-1] - following).square().mean().item())
assert torch.equal(forecast[:-1], following)

# %%
# **An odd size on a skip connection**: 7 is halved to 4 and doubled to 8. Upsample to the size that is wanted.

x = torch.randn(1, 1, 7)
halved = nn.Conv1d(1, 1, 3, stride=2, padding=1)(x)
try:
    x + nn.functional.interpolate(halved, scale_factor=2)
except RuntimeError as error:
    print("RuntimeError:", error)
    assert "tensor a (7) must match the size of tensor b (8)" in str(error)
print(tuple((x + nn.functional.interpolate(halved, size=x.shape[-1])).shape))

# sphinx_gallery_start_ignore
assert halved.shape[-1] == 4
assert nn.functional.interpolate(halved, size=x.shape[-1]).shape == x.shape
# sphinx_gallery_end_ignore

# %%
# **A loss**: bring both to one shape, and assert it. For a sequence that is longer than a table of positions, see
# :ref:`the page on expanded sizes <sphx_glr_gallery_errors_expanded_size.py>`.

flat = predictions.squeeze(1)
assert flat.shape == targets.shape
print("loss:", nn.functional.mse_loss(flat, targets).item())
assert nn.functional.mse_loss(flat, targets) == 0

# %%
# What not to do
# --------------
# **Unsqueeze until it broadcasts.** The perfect forecast from above now has an error, because every forecast is
# compared with every target.

pairs = forecast.unsqueeze(1) - following
print(tuple(pairs.shape), "error:", round(pairs.square().mean().item(), 4))
assert pairs.shape == (5, 4) and pairs.square().mean() > 100

# %%
# Such a loss goes down in training, and leads elsewhere. The best answer to all targets at once is their mean, so the
# slope goes to 0. The line to be found has slope 3 and offset 5.

torch.manual_seed(0)
inputs = torch.randn(100, 1)
outputs = 3 * inputs.squeeze(1) + 5


def fit(shape):
    model = nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(200):
        loss = (model(inputs).reshape(shape) - outputs).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    slope, offset = model.weight.item(), model.bias.item()
    result = f"slope {abs(slope):.2f}, offset {offset:.2f}, loss {loss.item():.2f}"
    print(f"predictions {shape}: {result}")
    return slope


# %%
# The predictions have the shape of the targets at first, and one dimension more in the second run.

right, wrong = fit((100,)), fit((100, 1))
assert abs(right - 3) < 0.01 and abs(wrong) < 0.01

# sphinx_gallery_start_ignore
_model = nn.Linear(1, 1)
_optimizer = torch.optim.SGD(_model.parameters(), lr=0.1)
_losses = []
for _ in range(20):
    _loss = (_model(inputs) - outputs).square().mean()
    _optimizer.zero_grad()
    _loss.backward()
    _optimizer.step()
    _losses.append(_loss.item())
assert _losses[-1] < _losses[0]
# sphinx_gallery_end_ignore

# %%
# **Ignore the warning.** ``mse_loss`` notices the two shapes. The subtraction above said nothing.

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    nn.functional.mse_loss(predictions, targets)
warning = str(caught[0].message)
print("UserWarning:", warning)
assert "will likely lead to incorrect results due to broadcasting" in warning

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_debugging_silent_mistakes.py`: this one and others, each with the assert that finds it
# - :ref:`sphx_glr_gallery_errors_invalid_shape.py`: when the shape asked for does not fit the number of elements
# - `Broadcasting <https://docs.pytorch.org/docs/stable/notes/broadcasting.html>`__ in PyTorch's reference
