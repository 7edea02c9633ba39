r"""
The size of tensor a (3) must match the size of tensor b (4)
============================================================

.. index::
   ! single: the loss of predictions (n, 1) and targets (n,) is wrong
   ! single: UserWarning Using a target size that is different to the input size, will likely lead to incorrect results
   ! single: a skip connection adds feature maps of different sizes

.. in-short::

   You combine two tensors element by element, and their shapes do not fit. Often you have one number for each row, and PyTorch
   lines it up with the columns. Give that tensor a last dimension of size 1.

   .. code-block:: diff

      - centered = table - mean
      + centered = table - mean.unsqueeze(-1)

   **Not this:** adding and removing dimensions until the message is gone. By accident, each element of one tensor can then meet
   each element of the other.
"""

# %%
# The code that raises it
# -----------------------

import torch

# sphinx_gallery_start_ignore
try:
    # sphinx_gallery_end_ignore
    table = torch.arange(12.0).reshape(4, 3)
    mean = table.mean(dim=1)
    centered = table - mean
# sphinx_gallery_start_ignore
except RuntimeError as error:
    message = str(error)
    print("RuntimeError:", message)
assert (
    message
    == "The size of tensor a (3) must match the size of tensor b (4) at non-singleton dimension 1"
)
assert table.shape == (4, 3) and mean.shape == (4,)


def _said(operation):
    try:
        operation()
    except RuntimeError as error:
        return str(error)
    raise AssertionError("nothing was raised")


assert "tensor a (4) must match the size of tensor b (3)" in _said(lambda: mean - table)
assert "non-singleton dimension 0" in _said(lambda: torch.ones(2, 3) + torch.ones(4, 3))
assert "non-singleton dimension 2" in _said(lambda: torch.ones(2, 1, 3) + torch.ones(4))
# sphinx_gallery_end_ignore

# %%
# - *a* and *b* are the first and the second operand, here ``table`` and ``mean``. Your sizes replace 3 and 4.
# - ``at non-singleton dimension 1``: where the two sizes meet, counted from 0 in the tensor with more dimensions.
#
# Older versions say *inconsistent tensor size* and that the two should *have the same number of elements*.
#
# Why
# ---
# The two shapes are aligned at their last dimension: the 4 numbers of ``mean`` meet the 3 columns. Two sizes fit if they are
# equal, or if one of them is 1 or missing. Then that tensor is repeated along the dimension. This is *broadcasting*.
#
# A size of 1 fits where it should not, too. ``(4, 1)`` and ``(4,)`` are the same four numbers to a reader. Their difference has
# 16 numbers, and nothing is raised:

import matplotlib.pyplot as plt

# figure: A table of four by four differences, prediction in row i minus target in column j. The four on the diagonal
#   are zero and green: these were meant. The twelve others, from -3 to 3, compare different samples.
predictions = torch.tensor([[1.0], [2.0], [3.0], [4.0]])
targets = torch.tensor([1.0, 2.0, 3.0, 4.0])
difference = predictions - targets
print(tuple(predictions.shape), tuple(targets.shape), tuple(difference.shape))

fig, ax = plt.subplots(figsize=(7, 2.6), layout="constrained")
for i in range(4):
    for j in range(4):
        color = "#047857" if i == j else "#c2410c"
        number = f"{difference[i, j]:.0f}"
        ax.text(j, i, number, color=color, ha="center", va="center")
ax.set_xticks(range(4), [f"target {t:.0f}" for t in targets])
ax.set_yticks(range(4), [f"prediction {p:.0f}" for p in predictions.flatten()])
ax.set(xlim=(-0.6, 3.6), ylim=(3.6, -0.6))
ax.set_title("Four differences were meant (green), and sixteen computed")

# sphinx_gallery_start_ignore
assert difference.shape == (4, 4) and not difference.diagonal().any()
assert difference.min() == -3 and difference.max() == 3
assert (difference != 0).sum() == 12
for _one, _other in (((4, 3), (3,)), ((4, 3), (4, 1)), ((4, 3), ()), ((0, 3), (1, 3))):
    assert (torch.rand(_one) + torch.rand(_other)).shape == _one
# sphinx_gallery_end_ignore

# %%
# The fix
# -------
# Print both shapes, and say what each dimension means. Then one of these applies.
#
# **One number for each row** needs its own dimension at the end: ``unsqueeze(-1)``, or ``keepdim=True`` where it is computed.

table = torch.arange(12.0).reshape(4, 3)
mean = table.mean(dim=1)
centered = table - mean.unsqueeze(-1)
print(centered[0], centered.mean(dim=1))

# sphinx_gallery_start_ignore
assert torch.equal(centered, table - table.mean(dim=1, keepdim=True))
assert not centered.mean(dim=1).any()
# sphinx_gallery_end_ignore

# %%
# **One number for each channel** of images ``(batch, channel, height, width)`` needs two dimensions behind it:

images = torch.rand(2, 3, 8, 8)
of_channels = torch.tensor([0.5, 0.4, 0.3])
print(tuple((images - of_channels[:, None, None]).shape))

# sphinx_gallery_start_ignore
for _numbers in (of_channels, of_channels.unsqueeze(-1)):
    assert "tensor a (8) must match the size of tensor b (3)" in _said(
        lambda numbers=_numbers: images - numbers
    )
_shifted = images - of_channels[:, None, None]
assert torch.equal(_shifted[1, 2], images[1, 2] - of_channels[2])
# sphinx_gallery_end_ignore

# %%
# **One element too many**: a forecast of the next value has no target for the last input. Cut it off.

series = torch.tensor([1.0, 2.0, 4.0, 8.0, 16.0])
forecast, following = series * 2, series[1:]
print("errors:", forecast[:-1] - following)

# sphinx_gallery_start_ignore
assert torch.equal(forecast[:-1], following)
assert "tensor a (5) must match the size of tensor b (4)" in _said(
    lambda: forecast - following
)
# sphinx_gallery_end_ignore

# %%
# **An odd size on a skip connection**: here 7 is halved to 4 and doubled to 8. Upsample to the size of the other tensor.

from torch import nn

x = torch.randn(1, 1, 7)
halved = nn.Conv1d(1, 1, 3, stride=2, padding=1)(x)
upsampled = nn.functional.interpolate(halved, size=x.shape[2:])
print(tuple(halved.shape), tuple((x + upsampled).shape))

# sphinx_gallery_start_ignore
assert halved.shape[-1] == 4 and upsampled.shape == x.shape
_doubled = nn.functional.interpolate(halved, scale_factor=2)
assert "tensor a (7) must match the size of tensor b (8)" in _said(lambda: x + _doubled)
# sphinx_gallery_end_ignore

# %%
# **A loss**: bring both to one shape, and put the assert there. For a sequence that is longer than a table of positions, see
# :ref:`the page on expanded sizes <sphx_glr_gallery_errors_expanded_size.py>`.

flat = predictions.squeeze(1)
assert flat.shape == targets.shape
print("loss:", nn.functional.mse_loss(flat, targets).item())

# sphinx_gallery_start_ignore
assert nn.functional.mse_loss(flat, targets) == 0
# sphinx_gallery_end_ignore

# %%
# What not to do
# --------------
# **Unsqueeze until it fits.** The forecast above is perfect. With a dimension more, every forecast is compared with every
# target, and it has an error:

pairs = forecast.unsqueeze(1) - following
print(tuple(pairs.shape), "error:", round(pairs.square().mean().item(), 4))
assert pairs.shape == (5, 4) and pairs.square().mean() > 100

# %%
# In training, such a loss goes down and the model is wrong. Below, the data lie on a line with slope 3 and offset 5. The second
# fit compares each prediction with all targets. The best answer to all of them is their mean, so it finds the slope 0.


def fit(shape):
    torch.manual_seed(0)
    inputs = torch.randn(100, 1)
    outputs = 3 * inputs.squeeze(1) + 5
    model = nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for _ in range(200):
        loss = (model(inputs).reshape(shape) - outputs).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    slope, offset = abs(model.weight.item()), model.bias.item()
    print(f"{shape!s:<9} slope {slope:.2f}, offset {offset:.2f}, loss {losses[-1]:.2f}")
    return slope, offset, losses, outputs


right, wrong = fit((100,)), fit((100, 1))

# sphinx_gallery_start_ignore
assert abs(right[0] - 3) < 0.01 and abs(right[1] - 5) < 0.01 and right[2][-1] < 1e-4
assert wrong[0] < 0.01 and abs(wrong[1] - wrong[3].mean()) < 0.01
assert 1 < wrong[2][-1] < wrong[2][0]
# sphinx_gallery_end_ignore

# %%
# **Ignore the warning.** ``mse_loss`` computes the same wrong number, and warns. The subtraction above does not.

import warnings

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    nn.functional.mse_loss(predictions, targets)
print("UserWarning:", caught[0].message)

# sphinx_gallery_start_ignore
assert len(caught) == 1 and "Using a target size" in str(caught[0].message)
assert "will likely lead to incorrect results due to broadcasting" in str(
    caught[0].message
)
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_debugging_silent_mistakes.py`: this one and others, each with the assert that finds it.
# - :ref:`sphx_glr_gallery_errors_invalid_shape.py`: when the shape asked for does not fit the number of elements.
# - In PyTorch's reference: `Broadcasting <https://docs.pytorch.org/docs/stable/notes/broadcasting.html>`__.
