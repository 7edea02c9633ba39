r"""
To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone()
=======================================================================================

.. index::
   ! single: UserWarning rather than torch.tensor(sourceTensor)
   ! single: it is recommended to use sourceTensor.clone().detach()
   ! single: torch.tensor of a tensor in a Dataset warns
   ! single: copy a tensor in PyTorch, clone or detach
   ! single: UserWarning from torch/utils/_device.py, return func

.. in-short::

   You pass a tensor to ``torch.tensor``, which makes a copy outside of the graph. Use the tensor itself, or ``detach()`` if the
   gradient should stop there. If you need a copy, add ``clone()``.

   .. code-block:: diff

      - return torch.tensor(tokens[index]), torch.tensor(labels[index])
      + return tokens[index], labels[index]

   **Not this:** ``warnings.filterwarnings("ignore")``. A model learns nothing from a loss inside ``torch.tensor``.
"""

# %%
# The code that raises it
# -----------------------

import torch
from torch.utils.data import DataLoader, Dataset

# sphinx_gallery_start_ignore
# isort: split
import traceback
import warnings

from torch import nn

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    # sphinx_gallery_end_ignore
    tokens = torch.tensor([[4, 2, 7], [5, 9, 3]])
    labels = torch.tensor([0, 1])

    class Reviews(Dataset):
        def __len__(self):
            return len(labels)

        def __getitem__(self, index):
            return torch.tensor(tokens[index]), torch.tensor(labels[index])

    batch = next(iter(DataLoader(Reviews(), batch_size=2)))
    # sphinx_gallery_start_ignore
message = str(caught[0].message)
print("UserWarning:", message)
assert len(caught) == 4 and {str(warning.message) for warning in caught} == {message}
assert message == (
    "To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() or "
    "sourceTensor.detach().clone().requires_grad_(True), rather than torch.tensor(sourceTensor)."
)


def _warned(call):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return [str(warning.message) for warning in caught]


_x = torch.ones(2)
assert _warned(lambda: torch.tensor(_x, dtype=torch.float64)) == [message]
assert _warned(lambda: torch.tensor(_x, requires_grad=True)) == [message]
assert _warned(lambda: torch.tensor(nn.Parameter(_x))) == [message]
assert _warned(lambda: _x.new_tensor(_x))[0].endswith(
    "rather than tensor.new_tensor(sourceTensor)."
)
assert (
    _warned(lambda: torch.as_tensor(_x)) == _warned(lambda: _x.detach().clone()) == []
)
# sphinx_gallery_end_ignore

# %%
# The warning names the line. If it names ``torch/utils/_device.py`` or a library, run
# ``python -W "error:To copy construct" train.py``: the traceback shows which line of yours led there.
#
# .. list-table::
#    :header-rows: 1
#    :widths: 44 56
#
#    * - the line
#      - write
#    * - ``__getitem__``, ``collate_fn``
#      - the tensor itself, such as ``val[index]``
#    * - ``torch.tensor(labels, dtype=torch.long)``, ``torch.tensor(labels, device=device)``
#      - ``labels.long()``, ``labels.to(device)``
#    * - a loss before ``backward``, an activation in ``forward``
#      - the tensor itself, because the gradient stops at the copy
#    * - a target or advantage from the model, the state of an RNN between batches
#      - ``target.detach()``, or ``target.detach().clone()`` if you write into it, as in ``target[action] = reward``. Add
#        ``.to(device)`` or ``.float()`` at the end.
#    * - a loss for a log
#      - ``loss.detach()``, or ``loss.detach().clone()`` if ``+=`` or ``all_reduce`` writes into it. In a library's line, pass
#        ``loss.item()``.
#    * - ``torch.tensor(x)`` for an ``nn.Parameter``, a buffer, ``from_pretrained``, a replay memory or a snapshot of weights
#      - ``x.detach().clone()``. Without ``clone()``, both can change.
#    * - ``torch.tensor(x)``, where ``x`` is a list of numbers or a tensor
#      - ``torch.as_tensor(x)``. It returns a tensor itself, with its graph, so do not write into it.
#    * - ``x.new_tensor(y)``
#      - ``y.detach().to(x, copy=True)``
#
# Why
# ---
# ``torch.tensor`` is for numbers, lists and arrays. It copies the numbers of a tensor, and the copy has no graph. These calls
# do one of the two, both or none:

import matplotlib.pyplot as plt

x = torch.ones(2, requires_grad=True) * 2
results = {
    "x.detach().clone()": x.detach().clone(),
    "x.clone()": x.clone(),
    "x.detach()": x.detach(),
    "torch.as_tensor(x)": torch.as_tensor(x),
}
table = {
    name: (result.data_ptr() != x.data_ptr(), result.requires_grad)
    for name, result in results.items()
}

# figure: A table of four calls. x.detach().clone() copies and leaves the graph, as torch.tensor(x) does. x.clone() copies and
#   keeps the graph. x.detach() shares memory and leaves the graph. torch.as_tensor(x) shares memory and keeps the graph.
words = ("shares memory", "copies"), ("leaves graph", "keeps graph")
fig, ax = plt.subplots(figsize=(6, 1.7), layout="constrained")
for row, found in enumerate(table.values()):
    for column, value in enumerate(found):
        color = "#2563eb" if value else "#64748b"
        ax.barh(row, 0.96, left=column, height=0.86, color=color)
        text = words[column][value]
        ax.text(column + 0.48, row, text, color="white", ha="center", va="center")
ax.set(yticks=range(4), yticklabels=list(table), xticks=[], title="What each call does")
ax.invert_yaxis()

# sphinx_gallery_start_ignore
assert list(table.values()) == [
    (True, False),
    (True, True),
    (False, False),
    (False, True),
]
with warnings.catch_warnings(action="ignore"):
    _copy = torch.tensor(x)
assert _copy.data_ptr() != x.data_ptr() and not _copy.requires_grad
# sphinx_gallery_end_ignore

# %%
# The fix
# -------
# In a dataset, return the tensors. The loader's default ``collate_fn`` copies them into the batch.


class Reviews(Dataset):
    def __len__(self):
        return len(labels)

    def __getitem__(self, index):
        return tokens[index], labels[index]


batch = next(iter(DataLoader(Reviews(), batch_size=2)))
print(batch)

# sphinx_gallery_start_ignore
assert torch.equal(batch[0], tokens) and torch.equal(batch[1], labels)
batch[0].zero_()
assert tokens.tolist() == [[4, 2, 7], [5, 9, 3]]
# sphinx_gallery_end_ignore

# %%
# ``tokens[index]`` shares memory with ``tokens``. If you write into the sample, take ``tokens[index].clone()``.
# ``labels.long()`` and ``labels.to(device)`` return ``labels`` itself if there is nothing to convert.
#
# **A new leaf** that gets its own gradient: ``x.detach().clone().requires_grad_()``.

leaf = (tokens / 10).detach().clone().requires_grad_()
leaf.sum().backward()
print(leaf.grad[0])

# sphinx_gallery_start_ignore
assert labels.float().long().dtype == torch.int64
assert torch.as_tensor([1, 2]).tolist() == [1, 2] and torch.as_tensor(x) is x
_start = torch.ones(2)
_alias, _own = nn.Parameter(_start), nn.Parameter(_start.detach().clone())
(_alias * _own).sum().backward()
torch.optim.SGD([_alias], lr=0.5).step()
assert _start.tolist() == [0.5, 0.5] and _own.tolist() == [1, 1]
_alias, _own = (
    nn.Embedding.from_pretrained(table, freeze=False)
    for table in (_start[None], _start[None].clone())
)
torch.nn.init.zeros_(_alias.weight)
assert _start.tolist() == [0, 0] and _own.weight.tolist() == [[0.5, 0.5]]
_loss = (torch.ones(1, requires_grad=True) * 3).sum()
_total = _loss.detach().clone()
_total += 1
assert _loss == 3
_total = _loss.detach()
_total += 1
assert _loss == 4
for _like in (torch.ones(2), torch.ones(2, dtype=torch.float64)):
    assert _warned(lambda like=_like: like.new_tensor(_start))
    _copy = _start.detach().to(_like, copy=True)
    assert _copy.dtype == _like.dtype and _copy.data_ptr() != _start.data_ptr()
    assert _copy.tolist() == _start.tolist()


def _line_of_yours():
    return torch.tensor(_start)


with warnings.catch_warnings(record=True) as caught, torch.device("cpu"):
    warnings.simplefilter("always")
    _line_of_yours()
assert caught[0].filename.endswith("_device.py")  # and not this file
with warnings.catch_warnings(), torch.device("cpu"):
    warnings.filterwarnings("error", message="To copy construct")  # as python -W
    try:
        _frames = [_line_of_yours()]
    except UserWarning as warning:
        _frames = [one.name for one in traceback.extract_tb(warning.__traceback__)]
assert "_line_of_yours" in _frames
_model, _now, _next = nn.Linear(2, 1), torch.rand(4, 2), torch.rand(4, 2)
_slopes = []
with warnings.catch_warnings(action="ignore"):
    for _as in (torch.tensor, torch.Tensor.detach, lambda target: target):
        _loss = nn.functional.mse_loss(_model(_now), _as(0.9 * _model(_next)))
        _slopes.append(torch.autograd.grad(_loss, _model.weight)[0])
assert torch.equal(_slopes[0], _slopes[1])
assert not torch.allclose(_slopes[0], _slopes[2])
_actor, _critic = nn.Linear(2, 3), nn.Linear(2, 1)
_slopes = []
with warnings.catch_warnings(action="ignore"):
    for _as in (
        lambda values: torch.tensor(values, dtype=torch.float32),
        lambda values: values.detach().to("cpu").float(),
        lambda values: values.float(),
    ):
        _advantage = _as(torch.ones(4, 1) - _critic(_now))
        _log_prob = _actor(_now).log_softmax(-1)[:, :1]
        _loss = -(_log_prob * _advantage).mean()
        _ways = [_actor.weight, _critic.weight]
        _slopes.append(torch.autograd.grad(_loss, _ways, allow_unused=True))
assert torch.equal(_slopes[0][0], _slopes[1][0])
assert _slopes[0][1] is _slopes[1][1] is None and _slopes[2][1].any()
_gaps = []
for _as in (lambda q: q.detach().clone(), torch.Tensor.detach):
    _scores = nn.Linear(2, 3)(_now)
    _target = _as(_scores)
    _target[:, 1] = 5.0  # a reward
    _gaps.append(nn.functional.mse_loss(_scores, _target).item())
assert _gaps[0] > 1 and _gaps[1] == 0  # detach() alone writes into the scores
assert labels.long() is labels and labels.to("cpu") is labels
_one = next(iter(DataLoader(tokens, batch_size=1)))
assert _one.data_ptr() != tokens.data_ptr()
_one = next(iter(DataLoader(tokens, batch_size=1, collate_fn=list)))
assert _one[0].data_ptr() == tokens.data_ptr()
assert tokens[1].data_ptr() != tokens.data_ptr()
_changed = tokens.clone()
_changed[0][:] = 0
assert _changed[0].tolist() == [0, 0, 0]
_changed[1].clone()[:] = 0
assert _changed[1].tolist() == [5, 9, 3]
# sphinx_gallery_end_ignore

# %%
# What not to do
# --------------
# **Do not hide the warning.** The loss is copied out of the graph, and ``requires_grad=True`` lets ``backward`` run:

# sphinx_gallery_start_ignore
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    # sphinx_gallery_end_ignore
    w = torch.tensor(3.0, requires_grad=True)
    loss = torch.tensor((w - 1) ** 2, requires_grad=True)
    loss.backward()
    print("w.grad:", w.grad)
    # sphinx_gallery_start_ignore
assert w.grad is None and [str(warning.message) for warning in caught] == [message]
# sphinx_gallery_end_ignore

# %%
# Without the copy, the gradient arrives:

loss = (w - 1) ** 2
loss.backward()
print("w.grad:", w.grad)

# graph: loss -- Without torch.tensor around it, the loss has a way back to w

# sphinx_gallery_start_ignore
assert w.grad == 4
# sphinx_gallery_end_ignore

# %%
# **Do not write detach().clone() everywhere.** It stops the warning, and cuts the graph as ``torch.tensor`` did.
#
# See also
# --------
# - :ref:`sphx_glr_gallery_tensors_detach_clone_data.py`: what each of the three does.
# - :ref:`sphx_glr_gallery_errors_no_grad_fn.py`, when a loss without a graph raises.
# - In PyTorch's reference: `torch.tensor <https://docs.pytorch.org/docs/stable/generated/torch.tensor.html>`__ and
#   `torch.as_tensor <https://docs.pytorch.org/docs/stable/generated/torch.as_tensor.html>`__.
