r"""
gather: one index per row, and pairwise distances with cdist
============================================================

.. index::
   single: batched index_select
   single: pick one element per row
   single: gather or index_select or take_along_dim
   single: pairwise distance matrix
   single: cdist is not zero on the diagonal
   single: NaN in a distance matrix

.. in-short::

   One entry of each row, ``index`` with one number per row:

   .. code-block:: python

      x.gather(1, index[:, None]).squeeze(1)
      x[torch.arange(len(x)), index]  # the same, and -1 is the last column

   ``x[:, index]`` takes the same columns from *each* row. The distances of all pairs of rows are ``torch.cdist(x, y)``.
   Its gradient at distance 0 is 0, where your own square root gives NaN. If two points are much closer to each other
   than to 0, add ``compute_mode="donot_use_mm_for_euclid_dist"``.
"""

# %%
# The loss runs, and the network learns the average
# -------------------------------------------------
# A network returns a value for each action (Q-learning), or a score for each class. For each sample, the loss needs one of
# them: the value of the action that was taken. The reward is the state for action 1, and minus the state for action 0:

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
state = torch.linspace(-1, 1, 64)[:, None]
action = torch.randint(0, 2, (64,))
reward = torch.where(action == 1, state[:, 0], -state[:, 0])

values = nn.Linear(1, 2)(state)
print("values[:, action]:", tuple(values[:, action].shape))
picked = values.gather(1, action[:, None]).squeeze(1)
print("gather:           ", tuple(picked.shape))

# %%
# .. how-measured:: This code trains a linear layer on the 64 states, and draws the learned values.

import matplotlib.pyplot as plt


def learn_values(pick):
    network = nn.Linear(1, 2)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.5)
    for _ in range(100):
        loss = (pick(network(state), action) - reward).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return network(state).detach()


def plot_values(learned):
    _, axes = plt.subplots(1, 2, figsize=(7, 2.9), sharey=True, layout="constrained")
    for (name, values), ax in zip(learned.items(), axes, strict=True):
        for number, (style, color) in enumerate([("--", "#c2410c"), ("-", "#2563eb")]):
            taken = action == number
            ax.plot(state[taken], reward[taken], ".", color=color, alpha=0.5)
            label = f"action {number}"
            y, order = values[:, number], 3 - number
            ax.plot(state, y, style, color=color, label=label, zorder=order)
        ax.set(xlabel="state", title=name)
    axes[0].set_ylabel("value, and reward (dots)")
    axes[0].legend(fontsize=8)


# %%
# Two ways to pick the values. Both losses run without an error or a warning:


def with_slice(values, action):
    return values[:, action]


def with_gather(values, action):
    return values.gather(1, action[:, None]).squeeze(1)


# figure: Learned values over the state, with the rewards as dots, which form a cross. With values[:, action] the lines of both
#   actions are flat and near 0. With gather they lie on the dots: one rises from -1 to 1, the other falls.
plot_values(
    {"values[:, action]": learn_values(with_slice), "gather": learn_values(with_gather)}
)

# sphinx_gallery_start_ignore
_exact = torch.cat([-state, state], dim=1)
assert (learn_values(with_gather) - _exact).abs().max() < 0.01
_flat = learn_values(with_slice)
_means = torch.stack([reward[action == a].mean() for a in (0, 1)])
assert (_flat - _means).abs().max() < 0.05 and _means.abs().max() < 0.2
assert with_slice(values, action).shape == (64, 64)
assert with_gather(values, action).shape == (64,)
# sphinx_gallery_end_ignore

# %%
# **In row i, gather takes the columns that row i of the index names.** ``action[:, None]`` has one column, so the result has
# one, which ``squeeze(1)`` removes. But ``values[:, action]`` has the shape (64, 64): from each row it takes the columns of
# *all* 64 actions. Subtracting the 64 rewards broadcasts, so each row is compared with all rewards, and the network learns the
# average reward of each action (reported for a Keras program in `dqn#4
# <https://github.com/sherjilozair/dqn/issues/4>`__). Compare shapes before you subtract:
# ``assert picked.shape == reward.shape``.
#
# For scores of shape (batch, time, classes), write ``scores.gather(-1, index[..., None]).squeeze(-1)``.
#
# The gradient shows which entries were picked, and how often:

x = torch.arange(12.0).reshape(3, 4).requires_grad_()
index = torch.tensor([2, 0, 2])

(by_gather,) = torch.autograd.grad(with_gather(x, index).sum(), x)
(by_slice,) = torch.autograd.grad(with_slice(x, index).sum(), x)
print(by_gather.int().tolist())
print(by_slice.int().tolist())

# sphinx_gallery_start_ignore
assert by_gather.tolist() == [[0, 0, 1, 0], [1, 0, 0, 0], [0, 0, 1, 0]]
assert by_slice.tolist() == [[1, 0, 2, 0]] * 3
assert torch.equal(x.index_select(1, index), x[:, index])
_scores, _index = torch.randn(2, 5, 7), torch.randint(7, (2, 5))
_picked = _scores.gather(-1, _index[..., None]).squeeze(-1)
_flat_picks = _scores.view(10, 7)[torch.arange(10), _index.view(10)]
assert torch.equal(_picked, _flat_picks.view(2, 5))
# sphinx_gallery_end_ignore

# %%
# Four ways to pick one entry per row
# -----------------------------------
# For finite numbers, values and gradients are the same.
#
# .. how-measured:: For 1000 rows of 1000 numbers, which are the result of a computation, this code counts the bytes that each
#    way saves for backward. Then it tries the index -1, and a row with an infinity elsewhere.

import pandas as pd

ways = {
    "gather": lambda x, i: x.gather(1, i[:, None]).squeeze(1),
    "take_along_dim": lambda x, i: x.take_along_dim(i[:, None], dim=1).squeeze(1),
    "x[arange, index]": lambda x, i: x[torch.arange(len(x)), i],
    "(x * one_hot).sum(1)": lambda x, i: (x * F.one_hot(i, x.shape[1])).sum(1),
}


def saved_bytes(compute, known=()):
    saved = []
    with torch.autograd.graph.saved_tensors_hooks(
        lambda tensor: saved.append(tensor) or tensor, lambda tensor: tensor
    ):
        compute()
    storages = {s.untyped_storage().data_ptr(): s.untyped_storage() for s in saved}
    known = {tensor.untyped_storage().data_ptr() for tensor in known}
    return sum(s.nbytes() for place, s in storages.items() if place not in known)


def last_column(way):
    try:
        return (
            "last" if way(x, torch.tensor([-1, -1, -1])).tolist() == [3, 7, 11] else ""
        )
    except RuntimeError:
        return "raises"


def tabulate_ways_to_pick():
    large = torch.zeros(1000, 1000, requires_grad=True) + 1
    picks = torch.arange(1000)
    infinite = torch.tensor([[1.0, float("inf")]])
    rows = {}
    for name, way in ways.items():
        saved = saved_bytes(lambda way=way: way(large, picks))
        rows[name] = {
            "saved, kB": f"{saved / 1000:,.0f}",
            "index -1": last_column(way),
            "[1, inf][0]": way(infinite, torch.tensor([0])).item(),
        }
    return pd.DataFrame(rows).T


# %%
# What each way keeps for backward, and what it does with the index -1 and with an infinity that is not picked:

# sphinx_gallery_start_ignore
_table = tabulate_ways_to_pick()
assert _table["saved, kB"].tolist() == ["4,008", "4,008", "16", "8,000"]
assert _table["index -1"].tolist() == ["raises", "last", "last", "raises"]
assert [str(v) for v in _table["[1, inf][0]"]] == ["1.0", "1.0", "1.0", "nan"]
for _x, _i in (
    (x, index),
    (torch.randn(5, 3, dtype=torch.float64), torch.randint(0, 3, (5,))),
    (torch.randn(3, 4).T, torch.randint(0, 3, (4,))),
):
    _results = []
    for _way in ways.values():
        _leaf = _x.detach().requires_grad_()
        _picked = _way(_leaf, _i)
        _picked.square().sum().backward()
        _results.append((_picked.detach(), _leaf.grad))
    for _picked, _gradient in _results[1:]:
        assert torch.equal(_picked, _results[0][0])
        assert torch.allclose(_gradient, _results[0][1])
_wide, _ignored = torch.arange(200.0)[None], torch.tensor([-100])
for _name in ("x[arange, index]", "take_along_dim"):
    assert ways[_name](_wide, _ignored) == 100
# sphinx_gallery_end_ignore
tabulate_ways_to_pick()

# %%
# ``gather`` keeps its input alive until backward, and ``x[arange, index]`` only the two indices. ``one_hot`` multiplies all
# entries, and 0 times infinity is NaN. Negative indices count from the end, so an ignored label of -100 is a trap: with 100 or
# more columns, ``x[arange, index]`` and ``take_along_dim`` silently pick a wrong entry. Select the rows first.

# %%
# All pairs: three ways to a distance matrix
# ------------------------------------------
# You want the distance between each row of ``x`` and each row of ``y``. Because :math:`|x - y|^2 = |x|^2 + |y|^2 - 2 x^\top y`,
# one matrix product is enough (asked in `Efficient distance matrix
# <https://discuss.pytorch.org/t/efficient-distance-matrix-computation/9065>`__):


def by_cdist(x, y):
    return torch.cdist(x, y)


def by_broadcasting(x, y):
    return (x[:, None] - y).square().sum(-1).sqrt()


def by_matmul(x, y):
    squares = x.square().sum(1)[:, None] + y.square().sum(1) - 2 * x @ y.T
    return squares.sqrt()


# %%
# .. how-measured:: For 300 points with 64 coordinates around 0, this code counts the bytes saved for backward, and looks for
#    NaN in the distances and in the gradient of their sum. For 300 points with coordinates around 10, each moved by about
#    0.008, it compares the distance from the old to the new place with the right one, in float64.


def by_cdist_direct(x, y):
    return torch.cdist(x, y, compute_mode="donot_use_mm_for_euclid_dist")


def by_vector_norm(x, y):
    return torch.linalg.vector_norm(x[:, None] - y, dim=-1)


def by_clamp(x, y):
    squares = x.square().sum(1)[:, None] + y.square().sum(1) - 2 * x @ y.T
    return squares.clamp(min=1e-12).sqrt()


def measure(distances):
    torch.manual_seed(0)
    points = torch.randn(300, 64, requires_grad=True)
    saved = saved_bytes(lambda: distances(points, points), known=[points])
    matrix = distances(points, points)
    (gradient,) = torch.autograd.grad(matrix.sum(), points)
    parts = {"values": matrix, "grad": gradient}
    bad = [name for name, part in parts.items() if part.isnan().any()]
    old = torch.randn(300, 64) + 10
    new = old + 0.001 * torch.randn(300, 64)
    right = (old.double() - new.double()).norm(dim=1)
    error = (distances(old, new).diagonal() - right).abs() / right
    return {
        "MB": f"{saved / 1e6:.1f}",
        "NaN in": "both" if len(bad) == 2 else "".join(bad),
        "error": f"{error.nan_to_num(0).max():.0%}",
    }


ways = {
    "cdist": by_cdist,
    "cdist, direct": by_cdist_direct,
    "broadcasting": by_broadcasting,
    "vector_norm": by_vector_norm,
    "matmul": by_matmul,
    "matmul, clamp": by_clamp,
}


def tabulate_distances():
    return pd.DataFrame({name: measure(way) for name, way in ways.items()}).T


# %%
# What each keeps for backward in MB, where a NaN is (the gradient or also the values), and the largest relative error for two
# points close together. *direct* is ``compute_mode="donot_use_mm_for_euclid_dist"``, *vector_norm* is
# ``torch.linalg.vector_norm(x[:, None] - y, dim=-1)``, and *clamp* is ``clamp(min=1e-12)`` before the root:

# sphinx_gallery_start_ignore
_table = tabulate_distances()
_percent = _table["error"].str.rstrip("%").astype(int)
assert (_percent[["cdist", "matmul", "matmul, clamp"]] > 100).all()
assert (_percent.drop(["cdist", "matmul", "matmul, clamp"]) == 0).all()
assert _table["NaN in"].tolist() == ["", "", "grad", "", "both", ""]
_megabytes = _table["MB"].astype(float)
assert (
    _megabytes[["broadcasting", "vector_norm"]].min() > 23 and 300 * 300 * 64 * 4 > 23e6
)
assert _megabytes.drop(["broadcasting", "vector_norm"]).max() < 1
_same = torch.zeros(30, 2, requires_grad=True)
for _way in (by_cdist, by_cdist_direct, by_vector_norm, by_clamp):
    assert not torch.autograd.grad(_way(_same, _same).sum(), _same)[0].any()
_two, _other = torch.randn(7, 3), torch.randn(5, 3)
for _way in ways.values():
    assert torch.allclose(_way(_two, _other), torch.cdist(_two, _other), atol=1e-4)
# sphinx_gallery_end_ignore
tabulate_distances()

# %%
# **Memory.** *broadcasting* and *vector_norm* keep the differences of all pairs, 300 x 300 x 64 numbers.
#
# **Close pairs.** In the matrix form, two numbers near 13,000 are subtracted to get about 0.00006. In ``float32``, neighboring
# numbers of that size differ by 0.001, so only rounding is left. If it is negative, its root is NaN. ``cdist`` and ``clamp``
# avoid the NaN, but not the error. The gradient of a close pair is wrong, too. Its length should be 1:

old = (torch.randn(300, 64) + 10).requires_grad_()
new = old.detach() + 0.001 * torch.randn(300, 64)
for name, distances in {
    "cdist": torch.cdist(old, new),
    "direct": torch.cdist(old, new, compute_mode="donot_use_mm_for_euclid_dist"),
}.items():
    (gradient,) = torch.autograd.grad(distances.diagonal().sum(), old)
    lengths = gradient.norm(dim=1)
    print(f"{name:<6} from {lengths.min():.1f} to {lengths.max():.1f}")

# sphinx_gallery_start_ignore
_norms = {}
for _name in ("cdist", "cdist, direct"):
    _total = ways[_name](old, new).diagonal().sum()
    _norms[_name] = torch.autograd.grad(_total, old)[0].norm(dim=1)
assert (_norms["cdist"] - 1).abs().mean() > 0.2
assert (_norms["cdist, direct"] - 1).abs().max() < 1e-3
_terms = (old.square().sum(1) + new.square().sum(1)).detach()
assert 12500 < _terms.mean() < 13500
assert 4e-5 < (old - new).square().sum(1).mean() < 9e-5
_spacing = torch.nextafter(_terms, torch.tensor(torch.inf)) - _terms
assert 9e-4 < _spacing.median() < 1.1e-3
# sphinx_gallery_end_ignore

# %%
# With ``p=2``, ``cdist`` computes the differences for up to 25 rows, and takes the matrix form if ``x`` or ``y`` has more,
# unless you choose with ``compute_mode``. So the distance of a point to itself is no longer 0 (asked in `pytorch#123082
# <https://github.com/pytorch/pytorch/issues/123082>`__):

for count in (25, 26):
    points = torch.randn(count, 64) + 10
    diagonal = torch.cdist(points, points).diagonal()
    print(f"{count} rows: up to {diagonal.max():.1g}")
    # sphinx_gallery_start_ignore
    assert bool(diagonal.any()) == (count > 25)
    for _rows in (1, 25):
        _y = points[:_rows]
        _mode = {"compute_mode": "use_mm_for_euclid_dist"}
        _product = torch.equal(
            torch.cdist(points, _y), torch.cdist(points, _y, **_mode)
        )
        assert _product == (count > 25)
    assert not by_cdist_direct(points, points).diagonal().any()
    for _p in (1, 3, torch.inf):  # the matrix form is for p=2
        assert not torch.cdist(points, points, p=_p).diagonal().any()
    _leaf = (
        points.clone().requires_grad_()
    )  # a computed distance above 0, a gradient of 0
    _itself = torch.cdist(_leaf, _leaf).diagonal().sum()
    assert not torch.autograd.grad(_itself, _leaf)[0].any()
    # second derivatives: before PyTorch 2.14 only the matrix form has them
    _refused = []
    for _way in (by_cdist, by_cdist_direct):
        _total = _way(_leaf, _leaf + 1).square().sum()
        (_slope,) = torch.autograd.grad(_total, _leaf, create_graph=True)
        try:
            torch.autograd.grad(_slope.square().sum(), _leaf)
        except RuntimeError as _problem:
            _refused.append(str(_problem))
    _before_2_14 = tuple(map(int, torch.__version__.split(".")[:2])) < (2, 14)
    assert len(_refused) == _before_2_14 * (2 if count == 25 else 1)
    assert all("'_cdist_backward' is not implemented" in _text for _text in _refused)
    # sphinx_gallery_end_ignore

# %%
# ``float64`` makes the error small, and so does subtracting the same center from ``x`` and ``y``, which changes no distance.
# Under autocast, ``cdist`` computes in ``float32``, but the product of a matrix form in half precision. Before PyTorch 2.14,
# ``cdist`` without the matrix form has no second derivative: a gradient penalty raises an error.

# sphinx_gallery_start_ignore
far = torch.randn(300, 64) + 10
near = far + 0.001 * torch.randn(300, 64)
right = (far.double() - near.double()).norm(dim=1)
center = far.mean(dim=0)
_errors = [
    ((torch.cdist(a, b).diagonal() - right).abs() / right).max()
    for a, b in (
        (far, near),
        (far - center, near - center),
        (far.double(), near.double()),
    )
]
assert _errors[1] < 0.3 * _errors[0] and _errors[2] < 1e-3
with torch.autocast("cpu", dtype=torch.bfloat16):
    _h = nn.Linear(64, 64)(torch.randn(300, 64))
    assert by_cdist(_h, _h).dtype == torch.float32
    assert by_clamp(_h, _h).dtype == torch.bfloat16
    _right = torch.cdist(_h.double(), _h.double().roll(1, 0))
    assert (by_clamp(_h, _h.roll(1, 0)) - _right).abs().max() > 0.1
_points = torch.zeros(3, 2, requires_grad=True)
for _squares in (
    (_points[:, None] - _points).square().sum(-1),
    torch.cdist(_points, _points).square(),
):
    assert not torch.autograd.grad(_squares.sum(), _points)[0].isnan().any()
_spread = torch.randn(300, 64)
_others = torch.randn(300, 64)
_exact = torch.cdist(_spread.double(), _others.double())
assert ((torch.cdist(_spread, _others) - _exact).abs() / _exact).max() < 1e-5
_spread, _others = torch.randn(2, 300, 2)
_exact = torch.cdist(_spread.double(), _others.double())
assert ((torch.cdist(_spread, _others) - _exact).abs() / _exact).max() > 1e-5
# sphinx_gallery_end_ignore

# %%
# **Distance 0.** The root has an infinite slope at 0, and backward multiplies it by a difference of 0: NaN. ``cdist`` and
# ``vector_norm`` return 0 there (:ref:`why <sphx_glr_gallery_differentiation_points_without_a_derivative.py>`). If you need
# squares only, leave the root out.

# %%
# What people get wrong
# ---------------------
# **index[None] in place of index[:, None].** ``gather`` does not broadcast. It accepts an index with fewer rows than ``x``, and
# picks from the first rows only. All three numbers are from row 0 (reported in `pytorch#47610
# <https://github.com/pytorch/pytorch/issues/47610>`__):

print("index[:, None]:", x.gather(1, index[:, None]).flatten().tolist())
print("index[None]:   ", x.gather(1, index[None]).flatten().tolist())

# sphinx_gallery_start_ignore
assert x.gather(1, index[:, None]).flatten().tolist() == [2, 4, 10]
assert x.gather(1, index[None]).flatten().tolist() == [2, 0, 2]
assert with_gather(x, index[:2]).tolist() == [
    2,
    4,
]  # a row without an index is left out
# sphinx_gallery_end_ignore

# %%
# **A vector of each row.** The output of a recurrent network has the shape (batch, time, features), and you want the last valid
# step of each sequence. ``gather`` gives only the first feature, unless you expand the index (asked in `Batched index select
# <https://discuss.pytorch.org/t/batched-index-select/9115>`__):

output, last = torch.randn(3, 5, 4), torch.tensor([4, 1, 2])
at = last[:, None, None]

print("output[arange, last]:", tuple(output[torch.arange(3), last].shape))
print("take_along_dim:      ", tuple(output.take_along_dim(at, dim=1).shape))
print("gather:              ", tuple(output.gather(1, at).shape))
expanded = at.expand(-1, 1, 4)
print("gather, expanded:    ", tuple(output.gather(1, expanded).shape))

# sphinx_gallery_start_ignore
_right = torch.stack([output[i, last[i]] for i in range(3)])
assert torch.equal(output[torch.arange(3), last], _right)
assert torch.equal(output.take_along_dim(at, dim=1)[:, 0], _right)
assert torch.equal(output.gather(1, at.expand(-1, 1, 4))[:, 0], _right)
assert torch.equal(output.gather(1, at)[:, 0], _right[:, :1])
# sphinx_gallery_end_ignore

# %%
# **Counting with += at an index.** Where an index repeats, backward *adds*, and so does ``index_add_``. But of several ``+=``
# at one place, one is left:

weight = torch.zeros(3, requires_grad=True)
repeated = torch.tensor([0, 2, 2])
weight[repeated].sum().backward()

counts, added = torch.zeros(3), torch.zeros(3)
counts[repeated] += 1
added.index_add_(0, repeated, torch.ones(3))
print("gradient:  ", weight.grad.tolist())
print("+=:        ", counts.tolist())
print("index_add_:", added.tolist())

# sphinx_gallery_start_ignore
assert weight.grad.tolist() == added.tolist() == [1, 0, 2] and counts.tolist() == [
    1,
    0,
    1,
]
for _pick in (
    lambda w: w.gather(0, repeated),
    lambda w: w.take_along_dim(repeated, 0),
    lambda w: w.index_select(0, repeated),
    lambda w: w.take(repeated),
    lambda w: F.embedding(repeated, w[:, None]),
):
    _w = torch.zeros(3, requires_grad=True)
    _pick(_w).sum().backward()
    assert _w.grad.tolist() == [1, 0, 2]
# sphinx_gallery_end_ignore

# %%
# Exercise
# --------
# You leave the diagonal out with a mask: ``by_broadcasting(x, x)[off_diagonal].mean()``. Is the NaN gone from the gradient?
# Write it so that it is.
#
# .. solution::
#
# It is not gone. Backward passes through the diagonal with a gradient of 0, which is multiplied by the infinite slope. So
# choose the pairs first, and compute only their distances. ``F.pdist`` does the same. For two equal points its gradient is 0,
# and that of the pairs NaN.

x = torch.randn(6, 2, requires_grad=True)
off_diagonal = ~torch.eye(6, dtype=torch.bool)
i, j = torch.triu_indices(6, 6, offset=1)

losses = {
    "mask": by_broadcasting(x, x)[off_diagonal].mean(),
    "pairs": (x[i] - x[j]).square().sum(-1).sqrt().mean(),
    "F.pdist": F.pdist(x).mean(),
}
for name, loss in losses.items():
    (gradient,) = torch.autograd.grad(loss, x)
    has_nan = gradient.isnan().any()
    print(f"{name:<8} loss {loss:.4f}, NaN in the gradient: {has_nan}")

# sphinx_gallery_start_ignore
_gradients = [
    torch.autograd.grad(way, x, retain_graph=True)[0]
    for way in (
        by_broadcasting(x, x)[off_diagonal].mean(),
        (x[i] - x[j]).square().sum(-1).sqrt().mean(),
        F.pdist(x).mean(),
    )
]
assert _gradients[0].isnan().all() and torch.allclose(*_gradients[1:], atol=1e-5)
assert all(torch.allclose(loss, losses["mask"]) for loss in losses.values())
_equal = torch.ones(3, 2, requires_grad=True)
assert not torch.autograd.grad(F.pdist(_equal).sum(), _equal)[0].any()
_roots = (_equal[:2] - _equal[1:]).square().sum(-1).sqrt()
assert torch.autograd.grad(_roots.sum(), _equal)[0].isnan().any()
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_debugging_finding_nans.py`, where a NaN comes from.
# - :ref:`No second derivative <sphx_glr_gallery_errors_derivative_not_implemented.py>`, for ``cdist`` in a gradient penalty.
# - :ref:`sphx_glr_gallery_errors_index_out_of_range.py`, the error of an index that is too large.
# - In PyTorch's reference: `torch.gather <https://docs.pytorch.org/docs/stable/generated/torch.gather.html>`__,
#   `torch.take_along_dim <https://docs.pytorch.org/docs/stable/generated/torch.take_along_dim.html>`__ and `torch.cdist
#   <https://docs.pytorch.org/docs/stable/generated/torch.cdist.html>`__.
