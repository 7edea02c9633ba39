r"""
vmap: It looks like you're calling .item() on a Tensor
======================================================

.. index::
   ! single: vmap over a slice whose start is a tensor
   ! single: data-dependent control flow in vmap
   ! single: dropout under vmap, randomness error mode
   ! single: Batch norm got a batched tensor as input, per-sample gradients of a network with batch norm

.. in-short::

   Inside of ``vmap``, ``start`` holds the values of all rows, so it cannot become one Python number. A slice needs a number.
   Index with a tensor.

   .. code-block:: diff

        def window(row, start):
      -     return row[start : start + 2]
      +     return row[start + torch.arange(2, device=row.device)]

   **Not this:** ``starts[0]`` with ``in_dims=(0, None)``. All windows then begin where the first one does.
"""

# %%
# The code that raises it
# -----------------------

import torch
from torch.func import vmap

# sphinx_gallery_start_ignore
try:
    # sphinx_gallery_end_ignore
    def window(row, start):
        return row[start : start + 2]

    rows = torch.arange(12.0).reshape(3, 4)
    starts = torch.tensor([0, 2, 1])
    vmap(window)(rows, starts)
# sphinx_gallery_start_ignore
except RuntimeError as error:
    message = str(error)
    print("RuntimeError:", message)
assert message.startswith("vmap: It looks like you're calling .item() on a Tensor. We")


def _says(function, *arguments, **options):
    try:
        vmap(function, **options)(*arguments)
    except RuntimeError as error:
        return str(error)
    return None


_same = vmap(window, in_dims=(0, None))(rows, starts[0])
assert torch.equal(_same, rows[:, :2])
for _call in (
    lambda row, x: row[:x],
    lambda row, x: row * int(x),
    lambda row, x: row * float(x),
    lambda row, x: next(row for _ in range(x + 1)),
    lambda row, x: (f"{x:.2f}", row)[1],
    lambda row, x: row + torch.zeros(x).sum(),
    lambda row, x: row + torch.arange(x).sum(),
    lambda row, x: torch.tensor([x.cos(), x.sin()]),
    lambda row, x: row * [1.0, 2.0, 3.0][x],
):
    assert _says(_call, rows, starts) == message
_stacked = vmap(lambda x: torch.stack([x.cos(), x.sin()]))(starts)
_loop = torch.stack([torch.tensor([x.cos(), x.sin()]) for x in starts])
assert torch.equal(_stacked, _loop)
assert _says(lambda row, x: row[x], rows, starts) is None  # one element: no slice
for _way in (torch.func.grad, torch.func.jacrev, torch.func.hessian):
    _said = _says(_way(lambda row, x: row[x] ** 2), rows, starts)
    assert _said.startswith("vmap: It looks like you're either (1) calling .item()")
    _found = vmap(_way(lambda row, x: row[x[None]][0] ** 2))(rows, starts)
    for _row, _start, _one in zip(rows, starts.tolist(), _found, strict=True):
        assert torch.equal(_one, _way(lambda row, s=_start: row[s] ** 2)(_row))
_matrices = torch.arange(48.0).reshape(3, 4, 4)


def _agrees(mapped, one):
    """Does vmap over the gradient of `mapped` give what a loop over `one` gives?"""
    loop = [
        torch.func.grad(lambda m, s=s: one(m, s))(m)
        for m, s in zip(_matrices, starts.tolist(), strict=True)
    ]
    return torch.equal(
        vmap(torch.func.grad(mapped))(_matrices, starts), torch.stack(loop)
    )


def _of_index(make):
    return lambda m, x: make(m, x).square().sum()


_column = _of_index(lambda m, x: m[:, x])
assert _agrees(_of_index(lambda m, x: m[x[None]][0]), _of_index(lambda m, x: m[x]))
assert _agrees(_of_index(lambda m, x: m[:, x[None]][:, 0]), _column)
assert not _agrees(_of_index(lambda m, x: m[:, x[None]][0]), _column)
assert _agrees(
    _of_index(lambda m, x: m[x[None], x[None]][0]), _of_index(lambda m, x: m[x, x])
)
_number = _of_index(lambda m, x: m * m[0, 1].item())
assert _agrees(_of_index(lambda m, x: m * m[0, 1].detach()), _number)
assert not _agrees(_of_index(lambda m, x: m * m[0, 1]), _number)
assert _says(lambda row, x: torch.full((3,), x), rows, starts) == message
assert torch.equal(vmap(lambda x: x.repeat(3))(starts), starts[:, None].expand(3, 3))


def _begun(x, fill):
    result = fill(x)
    result[0] = 5
    return result


_loop = torch.stack([_begun(x, lambda x: torch.full((3,), x)) for x in starts.tolist()])
assert torch.equal(vmap(lambda x: _begun(x, lambda x: x.repeat(3)))(starts), _loop)
_shared = vmap(lambda x: _begun(x, lambda x: x.expand(3)))(starts.clone())
assert (_shared == 5).all()  # a write into an expanded tensor writes all of it
_halves = torch.tensor([2.5, 1.0, -0.5])
assert vmap(lambda x: x.long())(_halves).tolist() == [int(x) for x in _halves]
for _count, _sum in ((lambda x: x, [3, 1, 0]), (lambda x: x.long(), [2, 1, 0])):
    _rounds = vmap(lambda x, count=_count: (torch.arange(3) < count(x)).sum())
    assert _rounds(_halves).tolist() == _sum  # range(int(2.5)) makes 2 rounds


def _steps(row, x, most):
    y = row
    for i in range(most):
        y = torch.where(i < x, y.sin(), y)
    return y.square().sum()


def _exact(row, count):
    for _ in range(count):
        row = row.sin()
    return row.square().sum()


for _way in (torch.func.grad, lambda function: function):
    _found = vmap(_way(_steps), in_dims=(0, 0, None))(rows, starts, int(starts.max()))
    _loop = [_way(_exact)(r, s) for r, s in zip(rows, starts.tolist(), strict=True)]
    assert torch.allclose(_found, torch.stack(_loop))
_zero = vmap(lambda x: torch.stack([x.cos(), torch.zeros_like(x)]))(rows[:, 1])
assert torch.equal(_zero, torch.stack([rows[:, 1].cos(), torch.zeros(3)], 1))
# sphinx_gallery_end_ignore

# %%
# Each of these calls ``.item()``, if ``vmap`` maps over ``x``:
#
# - a slice: ``row[x : x + 2]``, ``row[:x]``;
# - an index in ``vmap(grad(f))``, in old versions any index: write ``row[x[None]][0]``, ``m[x[None], y[None]][0]``,
#   ``m[:, x[None]][:, 0]``;
# - ``x.item()``, ``float(x)``: write ``x``, or for the same gradient ``x.detach()``. For ``int(x)``, write ``x.long()``;
# - ``range(n)``: count to the largest ``n``, and in the loop write ``y = torch.where(i < n, step(y), y)``;
# - a size: ``torch.zeros(x)``, ``torch.arange(x)``: take the largest, and :ref:`mask what is too much <vmap-lengths>`;
# - ``f"{x:.2f}"``: print after ``vmap``;
# - ``torch.full((3,), x)``: write ``x.repeat(3)``;
# - ``torch.tensor([x.cos(), 0])``: write ``torch.stack([x.cos(), torch.zeros_like(x)])``, for nested lists a stack of stacks;
# - ``values[x]`` of a list: make it a tensor, outside of the function.
#
# Why
# ---
# ``vmap`` calls your function once for all rows.

import matplotlib.pyplot as plt

# figure: Three rows of four numbers. In each, a window of two is blue, and begins at another place.
fig, ax = plt.subplots(figsize=(7, 1.8), layout="constrained")
for i, (row, start) in enumerate(zip(rows.tolist(), starts.tolist(), strict=True)):
    for j, number in enumerate(row):
        color = "#2563eb" if start <= j < start + 2 else "#94a3b8"
        ax.barh(i, 0.94, left=j, height=0.86, color=color)
        ax.text(j + 0.47, i, f"{number:g}", color="white", ha="center", va="center")
ax.set_yticks(range(3), [f"start = {start}" for start in starts.tolist()])
ax.set_xticks([])
ax.invert_yaxis()
ax.set_title("One call of window, three different starts")

# %%
# The fix
# -------
# Keep the positions within the row: a slice stops at the end, and an index does not.


def window(row, start):
    return row[start + torch.arange(2, device=row.device)]


print(vmap(window)(rows, starts))

# sphinx_gallery_start_ignore
_loop = torch.stack([row[s : s + 2] for row, s in zip(rows, starts, strict=True)])
assert torch.equal(vmap(window)(rows, starts), _loop)
try:
    vmap(window)(rows, starts + 1)
except IndexError as error:
    _beyond = str(error)
assert _beyond.startswith("index 4 is out of bounds") and len(rows[0][3:5]) == 1
assert vmap(window)(rows, starts - 1)[0].tolist() == [3, 0]  # from -1
_first = vmap(lambda row, x: torch.where(torch.arange(4) < x, row, 0).sum())
_loop = torch.stack([row[:x].sum() for row, x in zip(rows, starts, strict=True)])
assert torch.equal(_first(rows, starts), _loop)
_r = torch.arange(2)
_crops = vmap(lambda image, y, x: image[..., (y + _r)[:, None], x + _r])
for _images in (_matrices, torch.rand(3, 5, 4, 4)):  # without and with channels
    _found = _crops(_images, starts, starts.flip(0))
    for _crop, _image, _y, _x in zip(
        _found, _images, starts, starts.flip(0), strict=True
    ):
        assert torch.equal(_crop, _image[..., _y : _y + 2, _x : _x + 2])
# sphinx_gallery_end_ignore

# %%
# A crop, with ``r = torch.arange(2)``: ``image[..., (y + r)[:, None], x + r]``.
#
# .. _vmap-lengths:
#
# If the lengths differ, as in ``row[:x].sum()``, keep the length and sum zeros: ``torch.where(places < x, row, 0)`` with
# ``places = torch.arange(4, device=row.device)``.
#
# Other messages with the same cause
# ----------------------------------
# **An if** needs one answer for all rows:

# sphinx_gallery_start_ignore
raised = []
try:
    # sphinx_gallery_end_ignore
    def clip(row):
        return row / row.norm() if row.norm() > 5 else row

    vmap(clip)(rows)
# sphinx_gallery_start_ignore
except RuntimeError as error:
    raised.append(str(error))
    print("RuntimeError:", error)
assert len(raised) == 1 and "in some data-dependent control flow" in raised[0]
# sphinx_gallery_end_ignore

# %%
# Choose what goes *into* the operation: ``row / torch.where(row.norm() > 5, row.norm(), 1)``. If you choose between results, as
# in ``torch.where(x > 0, x.sqrt(), 0)``, the gradient is NaN at 0. Check for NaN before ``vmap``.
#
# For ``and`` and ``max``, write ``&`` and ``torch.maximum``, also in FlexAttention: ``(q >= k) & (q - k < 3)``. A ``while``
# becomes a ``for`` with ``torch.where(x > 1, x / 2, x)``, with enough rounds for the slowest row.
#
# **A write** into ``torch.zeros(4)`` in the function: *index_put_(self, \*extra_args)*, or *inplace arithmetic*, *is not
# possible*. Make it from the mapped value that you write: ``value.new_zeros(4)``.
#
# **A mask**, ``row[row > 4]``: sum ``torch.where(row > 4, row, 0)``. A mean also needs the count, ``(row > 4).sum()``.

# sphinx_gallery_start_ignore
from torch.nn.attention.flex_attention import create_mask


def _put(row, start, make):
    result = make(row)
    result[start] = row[start]
    return result


assert _says(lambda row, s: _put(row, s, lambda row: torch.zeros(4)), rows, starts)[
    6:
].startswith(
    "index_put_(self, *extra_args) is not possible because there exists a Tens"
)
_placed = vmap(lambda row, s: _put(row, s, lambda row: row.new_zeros(4)))(rows, starts)
assert torch.equal(_placed.sum(1), rows[range(3), starts])


def _half(row, make):
    value = row[0] / 2
    result = make(row, value)
    result[0] = value
    return result


_integers = torch.arange(1, 7).reshape(2, 3)
_loop = [_half(row, lambda row, value: torch.zeros(4)) for row in _integers]
_found = vmap(lambda row: _half(row, lambda row, value: value.new_zeros(4)))
assert torch.equal(_found(_integers), torch.stack(_loop)) and _loop[0][0] == 0.5
_cut = vmap(lambda row: _half(row, lambda row, value: row.new_zeros(4)))
assert _cut(_integers)[0].tolist() == [0] * 4  # the digits of the value are gone
_first = _says(lambda row: torch.zeros(4)[:1].copy_(row[:1]), rows)
assert _first[6:].startswith("inplace arithmetic(self, *extra_args) is not possible")
_near = create_mask(lambda b, h, q, k: (q >= k) & (q - k < 3), 1, 1, 4, 4, device="cpu")
assert torch.equal(_near[0, 0], torch.ones(4, 4).tril().triu(-2).bool())


def _while(x):
    while x > 1:
        x = x / 2
    return x


def _for(x):
    for _ in range(9):
        x = torch.where(x > 1, x / 2, x)
    return x


for _way in (torch.func.grad, lambda function: function):
    _each = torch.stack([_way(_while)(x) for x in rows[:, 1]])
    assert torch.equal(vmap(_way(_for))(rows[:, 1]), _each)
for _call in (lambda row: max(row[0], row[1]), lambda row: row[0] > 1 and row[1] > 1):
    assert "data-dependent control flow" in _says(_call, rows)
_clipped = vmap(lambda row: row / torch.where(row.norm() > 5, row.norm(), 1))(rows)
_one = [row / row.norm() if row.norm() > 5 else row for row in rows]
assert torch.allclose(_clipped, torch.stack(_one))
_zero = torch.zeros(3)
_of_results = torch.func.grad(lambda x: torch.where(x > 0, x.sqrt(), 0))
assert vmap(_of_results)(_zero).isnan().all()
_of_inputs = torch.func.grad(lambda x: torch.where(x > 0, x, 1).sqrt() * (x > 0))
assert vmap(_of_inputs)(_zero).tolist() == [0, 0, 0]
_mixed = torch.tensor([[0.0, 0.0], [3.0, 0.0], [6.0, 8.0]])
_divide = torch.func.grad(
    lambda row: (row / torch.where(row.norm() > 5, row.norm(), 1)).sum()
)
_branch = torch.func.grad(
    lambda row: (row / row.norm() if row.norm() > 5 else row).sum()
)
assert torch.allclose(vmap(_divide)(_mixed), torch.stack([*map(_branch, _mixed)]))
_kept = vmap(lambda row: torch.where(row > 4, row, 0).sum())(rows)
assert torch.equal(_kept, torch.stack([row[row > 4].sum() for row in rows]))
raised = []
try:
    # sphinx_gallery_end_ignore
    vmap(lambda row: row[row > 4].sum())(rows)
# sphinx_gallery_start_ignore
except RuntimeError as error:
    raised.append(str(error))
    print("RuntimeError:", error)
assert len(raised) == 1 and "indexing with a boolean mask" in raised[0]
# sphinx_gallery_end_ignore

# %%
# **Dropout, or another random number.** ``vmap`` asks whether all rows get the same mask:

from torch import nn

# sphinx_gallery_start_ignore
raised = []
try:
    # sphinx_gallery_end_ignore
    dropout = nn.Dropout(0.5)
    vmap(dropout)(torch.ones(3, 4))
# sphinx_gallery_start_ignore
except RuntimeError as error:
    raised.append(str(error))
    print("RuntimeError:", error)
assert len(raised) == 1
assert "vmap: called random operation while in randomness error mode" in raised[0]
assert _says(lambda row: row + torch.randn(4), rows) == raised[0]
# sphinx_gallery_end_ignore

# %%
# With ``"different"``, each row gets its own mask:

torch.manual_seed(0)
print(vmap(dropout, randomness="different")(torch.ones(3, 4)))

# sphinx_gallery_start_ignore
_different = vmap(dropout, randomness="different")(torch.ones(64, 4))
assert len(_different.unique(dim=0)) > 1
_equal = vmap(dropout, randomness="same")(torch.ones(64, 4))
assert len(_equal.unique(dim=0)) == 1
for _mode in ("same", "different"):
    _gradient = torch.func.jacrev(lambda row: dropout(row).sum() ** 2)
    _hessian = torch.func.jacfwd(_gradient, randomness=_mode)(torch.ones(64))
    assert torch.equal(_hessian, _hessian.T) == (_mode == "same")
# sphinx_gallery_end_ignore

# %%
# ``jacfwd`` needs ``"same"``. So does a Hessian: ``jacfwd(jacrev(f), randomness="same")``. With ``"different"`` it is silently
# wrong.
#
# **Batch norm.** It updates one running mean, and each row has a different mean. In an ensemble, pass the buffers of
# ``stack_module_state``. For tasks, as in MAML: ``track_running_stats=False``, which changes eval, too.

# sphinx_gallery_start_ignore
raised = []
try:
    # sphinx_gallery_end_ignore
    groups = torch.randn(3, 8, 4)
    vmap(nn.BatchNorm1d(4))(groups)
# sphinx_gallery_start_ignore
except RuntimeError as error:
    raised.append(str(error))
    print("RuntimeError:", error)
assert len(raised) == 1
assert raised[0].startswith(
    "Batch norm got a batched tensor as input while the running"
)
for _mode in (True, False):
    _own = nn.BatchNorm1d(4, track_running_stats=False).train(_mode)
    _loop = torch.stack([nn.BatchNorm1d(4)(group) for group in groups])
    assert torch.allclose(vmap(_own)(groups), _loop, atol=1e-5)
# sphinx_gallery_end_ignore

# %%
# In ``vmap(grad(loss))``, it says this instead:

from torch.func import functional_call, grad

# sphinx_gallery_start_ignore
raised = []
try:
    # sphinx_gallery_end_ignore
    net = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.Linear(6, 1))

    def loss(weights, sample):
        return functional_call(net, weights, (sample[None],)).square().sum()

    weights = dict(net.named_parameters())
    vmap(grad(loss), in_dims=(None, 0))(weights, rows)
# sphinx_gallery_start_ignore
except RuntimeError as error:
    raised.append(str(error))
    print("RuntimeError:", error)
assert len(raised) == 1 and "that would mutate a captured Tensor" in raised[0]
# sphinx_gallery_end_ignore

# %%
# If the network is trained already, call ``net.eval()``. To train it, use group norm:

net[1] = nn.GroupNorm(2, 6)
weights = dict(net.named_parameters())
gradients = vmap(grad(loss), in_dims=(None, 0))(weights, rows)
print(tuple(gradients["0.weight"].shape))

# sphinx_gallery_start_ignore
assert gradients["0.weight"].shape == (3, 6, 4)
_nets = [
    nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.Linear(6, 1)) for _ in range(3)
]
_stack, _buffers = torch.func.stack_module_state(_nets)
_samples, _model = torch.randn(8, 4), _nets[0]


def _of_one(weights, buffers):
    return functional_call(_model, (weights, buffers), (_samples,))


_together = vmap(_of_one)(_stack, _buffers)
_each = torch.stack([net(_samples) for net in _nets])
assert torch.allclose(_together, _each, atol=1e-5)
_means = torch.stack([net[1].running_mean for net in _nets])
assert torch.allclose(_buffers["1.running_mean"], _means, atol=1e-6)
_said = _says(lambda weights: functional_call(_model, weights, (_samples,)), _stack)
assert _said.startswith("Batch norm got a batched tensor as input while the running")
for _i, _row in enumerate(rows):
    net.zero_grad()
    net(_row[None]).square().sum().backward()
    assert torch.allclose(net[0].weight.grad, gradients["0.weight"][_i], atol=1e-4)
net[1] = nn.BatchNorm1d(6).eval()
weights = dict(net.named_parameters())
assert vmap(grad(loss), in_dims=(None, 0))(weights, rows)["0.weight"].shape == (3, 6, 4)
assert vmap(nn.BatchNorm1d(4).eval())(groups).shape == (3, 8, 4)
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_errors_data_dependent_branching.py`, the same ``if`` under ``torch.compile``.
# - In PyTorch's reference: `limitations of vmap
#   <https://docs.pytorch.org/docs/stable/func.ux_limitations.html#vmap-limitations>`__ and `patching batch norm
#   <https://docs.pytorch.org/docs/stable/func.batch_norm.html>`__.
