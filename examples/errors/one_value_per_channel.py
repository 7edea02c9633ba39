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

      - loader = DataLoader(samples, batch_size=4, shuffle=True)
      + loader = DataLoader(samples, batch_size=4, shuffle=True, drop_last=True)

   **Not this:** ``model.eval()`` while you train a new model. Batch norm then uses a mean of 0 and a variance of 1.
"""

# %%
# The code that raises it
# -----------------------

import torch
from torch import nn
from torch.utils.data import DataLoader

torch.manual_seed(0)

# sphinx_gallery_start_ignore
try:
    # sphinx_gallery_end_ignore
    samples = torch.rand(9, 3)
    loader = DataLoader(samples, batch_size=4, shuffle=True)
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


assert raises(nn.BatchNorm1d(4, track_running_stats=False).eval(), 1, 4)
assert not raises(nn.GroupNorm(2, 4), 1, 4)
assert raises(nn.GroupNorm(4, 4), 1, 4)  # one channel, and so one value, in each group
assert raises(nn.BatchNorm2d(4), 1, 4, 1, 1) and not raises(
    nn.BatchNorm2d(4), 1, 4, 7, 7
)
# sphinx_gallery_end_ignore

# %%
# ``[1, 4]`` has one value for each of 4 channels. ``[1, 4, 7, 7]`` has 49, and works with a batch of one sample. After global
# pooling it is ``[1, 4, 1, 1]``, and raises again.
#
# Why
# ---
# Batch norm subtracts the mean of the batch. The mean of one value is the value itself, so every value and its gradient would
# become 0. Two values come out near +1 and −1:

import matplotlib.pyplot as plt

# figure: The results of one channel for batches of 2 to 9 samples. For 2 samples they are near plus and minus 1. For more
#   samples they spread further, to less than 3 on either side.
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
# what would come out of one value: 0, and no gradient
_one = torch.rand(1, 4, requires_grad=True)
_zero = torch.batch_norm(_one, None, None, None, None, True, 0.1, 1e-5, False)
_zero.square().sum().backward()
assert _zero.abs().max() < 1e-3 and _one.grad.abs().max() < 1e-3
# sphinx_gallery_end_ignore

# %%
# In evaluation it uses the running statistics, and one sample is enough, unless the layer has ``track_running_stats=False`` or
# is made inside of ``forward``:

print(model.eval()(samples[:1]).shape)

# %%
# The fix
# -------
# **In training**: leave out the last batch if it is smaller. With ``shuffle=True``, each epoch leaves out other samples. A
# dataset that is smaller than one batch then gives no batch at all.

model.train()
loader = DataLoader(samples, batch_size=4, shuffle=True, drop_last=True)
for batch in loader:
    print(tuple(model(batch).shape))

# sphinx_gallery_start_ignore
assert [len(batch) for batch in loader] == [4, 4]
_seen = [{tuple(row.tolist()) for batch in loader for row in batch} for _ in range(20)]
assert all(len(rows) == 8 for rows in _seen) and len(set.union(*_seen)) == 9
_fixed = DataLoader(samples, batch_size=4, drop_last=True)
_seen = [{tuple(row.tolist()) for batch in _fixed for row in batch} for _ in range(20)]
assert len(set.union(*_seen)) == 8  # the ninth is never seen
_synced = nn.SyncBatchNorm.convert_sync_batchnorm(nn.Sequential(nn.BatchNorm1d(4)))
assert type(_synced[0]) is nn.SyncBatchNorm
assert list(DataLoader(samples[:3], batch_size=4, drop_last=True)) == []
for _row in DataLoader(samples, batch_size=1, drop_last=True):
    assert raises(nn.BatchNorm1d(3), *_row.shape)
# sphinx_gallery_end_ignore

# %%
# - **With** ``batch_size=1``: take a larger one. ``drop_last=True`` does not help.
# - **DataParallel** splits each batch, and so does TabNet (``virtual_batch_size``). Take a batch size that makes equal parts of
#   two samples or more, and ``drop_last=True``.
# - **The batch is larger**, the message says ``[1, ...]``: look for a mask, ``squeeze`` or mean that leaves one row.
# - **In validation, or when you use the model**, such as an actor for one state: call ``model.eval()``, and ``model.train()``
#   before you train on. For Monte Carlo dropout, call ``train()`` on the dropout layers alone.
# - **In a dry run with one image**, as in ``__init__`` of YOLO or in a summary: ``eval()`` before it and ``train()`` after it.
# - **Only one sample fits in memory**: in a new model or head, take ``nn.GroupNorm``, with more than one channel in each group.
#   In pretrained layers, call ``eval()`` on the batch norms after each ``model.train()``.
# - **DistributedDataParallel** with one sample on each GPU: wrap ``nn.SyncBatchNorm.convert_sync_batchnorm(model)``.
#
# ``nn.InstanceNorm`` says *Expected more than 1 spatial element when training*. Use larger images, or leave it out where they
# are one pixel.

# sphinx_gallery_start_ignore
_fine = nn.ModuleDict({"backbone": nn.BatchNorm1d(4), "head": nn.Linear(4, 2)})
_fine["backbone"].requires_grad_(False)
assert raises(_fine.train()["backbone"], 1, 4)
_fine["backbone"].eval()
_fine["head"](_fine["backbone"](torch.rand(1, 4))).sum().backward()
assert _fine["head"].weight.grad.any()
# Monte Carlo dropout: batch norm in evaluation, dropout in training
_mc = nn.Sequential(nn.Linear(3, 64), nn.BatchNorm1d(64), nn.Dropout())
assert raises(_mc.train(), 1, 3)
_mc.eval()
for _part in _mc.modules():
    if isinstance(_part, nn.Dropout):
        _part.train()
assert not torch.equal(_mc(samples[:1]), _mc(samples[:1]))
assert not _mc[1].running_mean.any()
# a new batch norm in evaluation does not normalize, a group norm of one sample does
_large = 50 + torch.rand(1, 4)
assert torch.allclose(nn.BatchNorm1d(4).eval()(_large), _large, rtol=1e-3)
assert nn.GroupNorm(2, 4)(_large).mean().abs() < 1e-3
# a trained batch norm with one sample: the layers learn, the statistics stay
_tuned = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Dropout()).train()
_tuned[1].eval()
_tuned(samples[:1]).sum().backward()
assert _tuned[2].training and _tuned[1].bias.grad.any()
# DataParallel splits a batch of 5 for 4 devices into 2, 2 and 1, and 10 into 3, 3, 3, 1
assert [len(part) for part in samples[:5].chunk(4)] == [2, 2, 1]
assert [len(part) for part in torch.rand(10).chunk(4)] == [3, 3, 3, 1]
# 8 makes equal parts, and a last batch of 5 does not
_whole = DataLoader(torch.rand(21, 3), batch_size=8)
assert [len(b.chunk(4)[-1]) for b in _whole] == [2, 2, 1]
_whole = DataLoader(torch.rand(21, 3), batch_size=8, drop_last=True)
assert [len(b.chunk(4)[-1]) for b in _whole] == [2, 2]
# a dry run in train() with two images changes what the model learned of the data
_dry = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.BatchNorm2d(3))
_dry.eval()(torch.ones(1, 3, 8, 8))
assert not _dry.train()[1].running_mean.any()
_dry(torch.ones(2, 3, 8, 8))
assert _dry[1].running_mean.any()
for _parts in range(1, 9):
    for _times in range(2, 5):
        assert len({len(p) for p in torch.rand(_times * _parts).chunk(_parts)}) == 1
_norm, _kept = nn.BatchNorm1d(4).eval(), torch.zeros(4)
assert torch.allclose(_norm(samples[:, :1].expand(9, 4)), samples[:, :1].expand(9, 4))
assert torch.equal(_norm.running_mean, _kept)
_pooled = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.BatchNorm2d(3))
assert raises(_pooled, 1, 3, 8, 8) and _pooled.eval()(torch.ones(1, 3, 8, 8)).sum() > 0
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
# **Do not repeat the sample.** Two equal values have no spread either. The result is the bias of the layer, here nearly 0.

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
