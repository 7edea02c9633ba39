r"""
Expected more than 1 value per channel when training, got input size torch.Size([1, 4])
=======================================================================================

.. index::
   ! single: batch norm fails with batch size 1
   ! single: training fails in the last batch of an epoch
   ! single: Expected more than 1 spatial element when training

.. in-short::

   Batch norm in training mode divides by the spread of each channel in the batch, and one value has no spread. Often it is the
   last batch of an epoch, with one sample left. Drop that batch, or call ``model.eval()`` if you do not train.

   .. code-block:: diff

      - loader = DataLoader(samples, batch_size=4)
      + loader = DataLoader(samples, batch_size=4, drop_last=True)

   **Not this:** ``model.eval()`` during training. It switches the statistics of the batch off in all batches.
"""

# %%
# The code that raises it
# -----------------------

# sphinx_gallery_start_ignore
import matplotlib.pyplot as plt
import torch
from torch import nn
from torch.utils.data import DataLoader

torch.manual_seed(0)
try:
    # sphinx_gallery_end_ignore
    samples = torch.rand(9, 3)
    loader = DataLoader(samples, batch_size=4)
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    for batch in loader:
        print(tuple(batch.shape))
        model(batch)
# sphinx_gallery_start_ignore
except ValueError as error:
    message = str(error)
    print("ValueError:", message)
assert (
    message
    == "Expected more than 1 value per channel when training, got input size torch.Size([1, 4])"
)


def raises(layer, *shape):
    try:
        layer(torch.rand(shape))
    except ValueError as error:
        return str(error).startswith(
            "Expected more than 1 value per channel when training"
        )
    return False


assert raises(nn.BatchNorm2d(4), 1, 4, 1, 1) and not raises(
    nn.BatchNorm2d(4), 1, 4, 2, 2
)
assert raises(nn.BatchNorm1d(4), 1, 4, 1) and not raises(nn.BatchNorm1d(4), 1, 4, 2)
assert not raises(nn.BatchNorm1d(4).eval(), 1, 4)
assert raises(nn.BatchNorm1d(4, track_running_stats=False).eval(), 1, 4)
assert not any(raises(layer, 1, 4) for layer in (nn.LayerNorm(4), nn.GroupNorm(2, 4)))
# sphinx_gallery_end_ignore

# %%
# Count the values of a channel: the batch size times all dimensions behind the channels. ``[1, 4]`` has one value for each of
# 4 channels. ``[1, 4, 7, 7]`` has 49, and works with a batch of one sample. After global pooling it is ``[1, 4, 1, 1]``, and
# raises again.
#
# Why
# ---
# In training, batch norm subtracts the mean of the batch and divides by its standard deviation. The mean of one value is the
# value: the result would be 0 for each input, and its gradient, too. PyTorch refuses that.
#
# Two values are not much better: whatever they are, the results are nearly +1 and −1.

# figure: The results of one channel for batches of 2 to 9 samples. For 2 samples they are at plus and minus 1. For more samples
#   they spread further, to less than 3 on either side.
fig, ax = plt.subplots(figsize=(7, 2.4), layout="constrained")
with torch.no_grad():
    for size in range(2, 10):
        ax.plot([size] * size, model(samples[:size])[:, 0], "o", color="#2563eb")
ax.set(xlabel="samples in the batch", ylabel="after batch norm", ylim=(-3, 3))
ax.set_title("One channel after batch norm")

# sphinx_gallery_start_ignore
with torch.no_grad():
    two, nine = model(samples[:2]).abs(), model(samples)[:, 0]
assert (two > 0.85).all() and (two < 1).all() and 1.2 < nine.abs().max() < 2.7
# sphinx_gallery_end_ignore

# %%
# In evaluation it uses the running statistics, and one sample is enough:

print(model.eval()(samples[:1]).shape)
model.train()

# %%
# The fix
# -------
# **In training**: leave out the last batch if it is smaller. With ``shuffle=True`` other samples are left out in each epoch.

loader = DataLoader(samples, batch_size=4, drop_last=True)
for batch in loader:
    print(tuple(model(batch).shape))

# sphinx_gallery_start_ignore
assert [len(batch) for batch in loader] == [4, 4]
# sphinx_gallery_end_ignore

# %%
# - **In validation or when you use the model**: ``model.eval()``. Keep all samples there.
# - **Only one sample fits in memory**: ``nn.GroupNorm`` or ``nn.LayerNorm`` compute within one sample. Gradient accumulation
#   does not help, as each forward pass still sees one sample.
# - **Several GPUs** with one sample each: ``nn.SyncBatchNorm`` computes over all of them.
#
# ``nn.InstanceNorm`` says *Expected more than 1 spatial element when training*: it needs several values in each channel of each
# sample.

# sphinx_gallery_start_ignore
said = []
try:
    nn.InstanceNorm1d(2)(torch.ones(1, 2, 1))
except ValueError as error:
    said.append(str(error))
assert len(said) == 1 and said[0].startswith(
    "Expected more than 1 spatial element when training"
)
# sphinx_gallery_end_ignore

# %%
# What not to do
# --------------
# **Repeat the sample to make two of it.** Two equal values have no spread either: the result is the bias of the layer,
# whatever the sample. Nothing is raised.

twice = samples[:1].repeat(2, 1)
print(model(twice).abs().max() < 1e-3)

# sphinx_gallery_start_ignore
assert model[1].bias.abs().max() == 0 and model(twice).abs().max() < 1e-3
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_modes_train_and_eval.py`: what the two modes change.
# - :ref:`sphx_glr_gallery_training_data_loading.py`: batches, and the last one.
# - In PyTorch's reference: `BatchNorm1d <https://docs.pytorch.org/docs/stable/generated/torch.nn.BatchNorm1d.html>`__.
