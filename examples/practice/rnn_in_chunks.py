r"""
Truncated backpropagation through time: detach the hidden state
===============================================================

.. index::
   single: detach the hidden state of an LSTM or RNN
   single: training gets slower every iteration
   single: truncated BPTT, TBPTT
   single: LSTM: carry or reset the hidden state
   single: init_hidden, repackage_hidden
   single: retain_graph=True in an RNN or LSTM
   single: 'tuple' object has no attribute 'detach'
   single: Expected hidden[0] size
   single: learned initial hidden state h0, c0

.. in-short::

   To train an LSTM on a long sequence in chunks, carry its state into the next chunk without its graph. Detach both tensors
   after each ``backward()``:

   .. code-block:: python

      state = tuple(s.detach() for s in state)

   For an RNN or a GRU, write ``state = state.detach()``. The values continue into the next chunk, but the gradient stops at its
   start. So make the chunks clearly longer than the time that the model should learn to remember. If the sequences are
   independent, carry nothing: pass no state.
"""

# %%
# Backward fails in the second chunk
# ----------------------------------
# Each of 16 rows is one long sequence of the numbers -1 and 1. The target is the input of 6 steps before, so the model has to
# remember it. The model is an LSTM with a linear layer behind it, and ``chunks(k)`` yields inputs and targets of ``k`` steps:

import pandas as pd
import torch
from torch import nn
from torch.nn.functional import mse_loss

torch.manual_seed(0)
torch.set_num_threads(1)  # one is enough for such small tensors
noise = torch.randn(16, 4806, 1).sign()
inputs, targets = noise[:, 6:], noise[:, :-6]


def chunks(k, steps=4800):
    x, y = inputs[:, :steps], targets[:, :steps]
    return zip(x.split(k, 1), y.split(k, 1), strict=True)


class Memory(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(1, 16, batch_first=True)
        self.head = nn.Linear(16, 1)

    def forward(self, x, state=None):
        output, state = self.lstm(x, state)
        return self.head(output), state


# %%
# .. how-measured:: This code draws the chunks.

import matplotlib.pyplot as plt


def draw_chunks():
    _, ax = plt.subplots(figsize=(7, 1.9), layout="constrained")
    for i in range(3):
        ax.barh(0, 2, left=3 * i, height=0.5, color="#e2e8f0", edgecolor="#64748b")
        ax.text(3 * i + 1, 0, f"chunk {i + 1}", ha="center", va="center")
        back = {"arrowstyle": "->", "color": "#c2410c", "lw": 1.5}
        ax.annotate("", (3 * i, -0.55), (3 * i + 2, -0.55), arrowprops=back)
        ax.text(3 * i + 1, -0.95, "gradient", color="#c2410c", ha="center")
        if i < 2:
            on = {"arrowstyle": "->", "color": "#2563eb", "lw": 1.5}
            ax.annotate("", (3 * i + 3, 0), (3 * i + 2, 0), arrowprops=on)
            ax.text(3 * i + 2.5, 0.35, "state", color="#2563eb", ha="center")
            ax.plot([3 * i + 2.5] * 2, [-0.85, -0.2], ":", color="#64748b")
    ax.set(xlim=(-0.1, 8.1), ylim=(-1.2, 0.7))
    ax.set_title("The state goes on to the next chunk, the gradient does not come back")
    ax.axis("off")


# %%
# What you want:

# figure: Three boxes in a row, one for each chunk. An arrow labeled "state" leads from each chunk to the next. Below each one,
#   an arrow labeled "gradient" leads from its end back to its start, and not into the chunk before.
draw_chunks()

# %%
# One backward through all 4,800 steps needs over 200 times as many bytes of saved tensors as one through 20 steps, for a single
# update. So you cut the sequence into chunks of ``k`` steps, and give each chunk the state that the chunk before returned:


def train(k, carry, steps=4800, **options):
    torch.manual_seed(0)
    model, state, losses = Memory(), None, []
    optimizer = torch.optim.Adam(model.parameters(), lr=0.03)
    for x, y in chunks(k, steps):
        output, state = model(x, state)
        loss = mse_loss(output, y)
        optimizer.zero_grad()
        loss.backward(**options)
        optimizer.step()
        state = carry(state)
        losses.append(loss.item())
    return model, losses


# %%
# First, carry the state as the model returned it:

# sphinx_gallery_start_ignore
assert torch.equal(inputs[:, :-6], targets[:, 6:])  # the target comes 6 steps later
assert inputs.shape == (16, 4800, 1) and set(inputs.unique().tolist()) == {-1, 1}
_raised = []
try:
    # sphinx_gallery_end_ignore
    train(20, carry=lambda state: state)
# sphinx_gallery_start_ignore
except RuntimeError as error:
    _raised.append(str(error))
    print("RuntimeError:", str(error).partition("(")[0] + "...")
assert len(_raised) == 1
assert _raised[0].startswith("Trying to backward through the graph a second time")
_SECOND_TIME = _raised[0]
assert len(train(20, lambda state: state, steps=20)[1]) == 1  # the first chunk works
try:
    train(20, lambda state: state, steps=40)
except RuntimeError as error:
    _raised.append(str(error))
assert _raised == 2 * [_SECOND_TIME]
# sphinx_gallery_end_ignore

# %%
# The second chunk fails. Its state comes from the first chunk, with its graph. :ref:`The first backward freed what that graph
# had saved <sphx_glr_gallery_errors_backward_twice.py>`, and the second needs it again. Detach the state after each chunk
# (asked in `pytorch-tutorial#90 <https://github.com/yunjey/pytorch-tutorial/issues/90>`__):


def detach(state):
    return tuple(s.detach() for s in state)


trained, losses = train(20, carry=detach)
print(f"first loss {losses[0]:.2f}, last loss {losses[-1]:.2f}")

# sphinx_gallery_start_ignore
assert losses[0] > 0.9 and losses[-1] < 0.1 and len(losses) == 240
_before = Memory()(inputs[:, :20])[1]
for _s, _cut in zip(_before, detach(_before), strict=True):
    assert torch.equal(_s, _cut) and _s.requires_grad and not _cut.requires_grad


def _loop(kind, carry, options=None, optimizer=None, chunks=4, **retain):
    """The message that a loop over chunks raises, or None."""
    torch.manual_seed(0)
    layer = getattr(nn, kind)(1, 4, batch_first=True, **(options or {}))
    optimizer = optimizer or (lambda p: torch.optim.SGD(p, lr=0.1))
    optimizer, state = optimizer(layer.parameters()), None
    for x in inputs[:4, : 5 * chunks].split(5, 1):
        output, state = layer(x, state)
        optimizer.zero_grad()
        try:
            output.square().mean().backward(**retain)
        except RuntimeError as error:
            return str(error)
        optimizer.step()
        state = carry(state)
    return None


for _options in ({}, {"num_layers": 2}, {"bidirectional": True}):
    for _kind in ("LSTM", "GRU", "RNN"):
        _cut = detach if _kind == "LSTM" else torch.Tensor.detach
        assert _loop(_kind, lambda state: state, _options) == _SECOND_TIME
        assert _loop(_kind, _cut, _options) is None
# sphinx_gallery_end_ignore

# %%
# How far back does the gradient reach?
# -------------------------------------
# ``detach`` **keeps the values and cuts the gradient: the forward pass of a chunk knows the past, but the gradient of a loss
# ends where its chunk begins.** To see that, take a model that has learned for 100 chunks, and measure the gradient of the loss
# at step :math:`t` for the input at step :math:`t - \text{lag}`.
#
# .. how-measured:: The gradient of the loss at each of 20 steps, with signs dropped, averaged over the steps and the rows.

model, _ = train(20, detach, steps=2000)


def in_chunks(x, k):
    state, outputs = None, []
    for chunk in x.split(k, 1):
        output, state = model(chunk, state)
        outputs.append(output)
        state = detach(state)
    return torch.cat(outputs, 1)


def by_lag(run, *options):
    x, lags = inputs[:, :90].clone().requires_grad_(), torch.zeros(30)
    losses = (run(x, *options) - targets[:, :90]).square().sum((0, 2))
    for t in range(30, 90, 3):  # each place in a chunk of 20 steps, once
        (gradient,) = torch.autograd.grad(losses[t], x, retain_graph=True)
        lags += gradient[:, t - 29 : t + 1, 0].flip(1).abs().mean(0) / 20
    return lags


def plot_gradient_by_lag(reach):
    _, ax = plt.subplots(figsize=(7, 2.8), layout="constrained")
    styles = (("#1e293b", "o-"), ("#2563eb", "s-"), ("#c2410c", "^-"), ("#7c3aed", "D"))
    for (k, lags), (color, style) in zip(reach.items(), styles, strict=True):
        label = "one chunk for all" if k == 4800 else f"k = {k}"
        until = min(k, 30)
        ax.plot(lags[:until], style, color=color, ms=4, label=label)
    ax.set(xlabel="lag: how many steps back", ylabel="mean gradient")
    ax.set_title("A chunk of k steps has no gradient for a lag of k or more")
    ax.legend()


reach = {k: by_lag(in_chunks, k) for k in (4800, 20, 5, 1)}

# %%
# The task needs lag 6:

# figure: Mean size of the gradient by lag, from 0 to 29. Without truncation the curve has its peak at lag 6, and a long tail.
#   With chunks of 20 steps it has the same peak, lower, and ends at lag 19. With chunks of 5 steps it ends at lag 4, before
#   the peak. With chunks of 1 step there is one point, at lag 0.
plot_gradient_by_lag(reach)

# sphinx_gallery_start_ignore
assert sorted(t % 20 for t in range(30, 90, 3)) == list(range(20))
for _k in (20, 5, 1):
    assert (reach[_k][:_k] > 0).all() and not reach[_k][_k:].any()
    assert (reach[_k] <= reach[4800] * 1.001).all()
    assert abs(reach[_k][0] - reach[4800][0]) < 1e-4 * reach[4800][0]
assert reach[4800].argmax() == reach[20].argmax() == 6
assert (reach[4800] > 0).all() and reach[4800][20] > 1e-3
with torch.no_grad():  # the values do not depend on the cuts
    _whole = in_chunks(inputs[:, :90], 90)
    for _k in (1, 5, 20):
        assert torch.allclose(in_chunks(inputs[:, :90], _k), _whole, atol=1e-5)
# sphinx_gallery_end_ignore

# %%
# With chunks of 20 steps, the first step of a chunk has no gradient for the past, and the last step reaches back 19 steps.
# For 14 of the 20 steps, lag 6 is inside the chunk. With chunks of 5 steps, it is inside for none. Does that matter? Train
# once on all 4,800 steps:

rows = {}
for k in (5, 20, 60, 4800):
    _, losses = train(k, detach)
    rows[k] = {
        "updates": len(losses),
        "last loss": losses[-1],
    }
table = pd.DataFrame(rows).T.rename_axis(columns="k")

# sphinx_gallery_start_ignore
assert table["updates"].tolist() == [960, 240, 80, 1]
assert reach[5][6] == 0 and 0.6 < reach[20][6] / reach[4800][6] < 0.8
assert abs(table["last loss"][5] - 1) < 0.05 and table["last loss"][20] < 0.1
assert table["last loss"][20] < table["last loss"][60] < 0.6
assert 0.8 < table["last loss"][4800] < 1.3 and targets.square().mean() == 1
torch.manual_seed(0)
_untrained = mse_loss(Memory()(inputs)[0], targets).item()
assert abs(_untrained - table["last loss"][4800]) < 1e-5
assert [sum(step % k >= 6 for step in range(k)) for k in (5, 20)] == [0, 14]
# sphinx_gallery_end_ignore
table.astype({"updates": int}).round(2)

# %%
# The last loss is that of the last chunk. With chunks of 5 steps, it is still about 1, the loss of the constant guess 0. A
# longer chunk saves more for backward, and leaves fewer updates. One chunk for all gives a single update, so its loss is that
# of the untrained model. Of these four, 20 is the best.

# %%
# When to carry, when to reset
# ----------------------------
# **One long text:** carry (`Ordered-Neurons#13 <https://github.com/yikangshen/Ordered-Neurons/issues/13>`__). Give each row a
# contiguous part of the text, then split along time:

text = torch.arange(24)
for chunk in text.view(2, -1).split(3, dim=1):
    print(chunk.tolist())

# sphinx_gallery_start_ignore
from itertools import pairwise

_chunks = text.view(2, -1).split(3, dim=1)
assert len(_chunks) == 4
for _chunk, _following in pairwise(_chunks):
    assert torch.equal(_chunk[:, -1] + 1, _following[:, 0])
# sphinx_gallery_end_ignore

# %%
# **In row 1, a document ends with this chunk:** set the state of this row to 0. The other rows go on.

_, state = model(inputs[:, :20])
ended = torch.zeros(16, 1, dtype=torch.bool)  # one for each row
ended[1] = True
state = tuple(s.detach().masked_fill(ended, 0) for s in state)

# sphinx_gallery_start_ignore
with torch.no_grad():
    _given = model(inputs[:, 20:40], state)[0]
    _fresh = model(inputs[:, 20:40])[0]
    _carried = model(inputs[:, 20:40], model(inputs[:, :20])[1])[0]
_others = [row for row in range(16) if row != 1]
assert not torch.full((2, 16, 8), torch.nan).masked_fill(ended, 0)[:, 1].any()
assert torch.allclose(_given[1], _fresh[1], atol=1e-6)
assert torch.allclose(_given[_others], _carried[_others], atol=1e-6)
assert all((_fresh[row] - _carried[row]).abs().max() > 0.1 for row in range(16))
with (
    torch.no_grad()
):  # two directions: the second half of the output is the backward one
    for _kind in (nn.LSTM, nn.GRU, nn.RNN):
        _both = _kind(1, 4, batch_first=True, bidirectional=True)
        _all, _last = _both(inputs[:, :40])[0], inputs[:, 20:40]
        _with = _both(_last, _both(inputs[:, :20])[1])[0]
        assert torch.allclose(_with[..., :4], _all[:, 20:, :4], atol=1e-5)
        assert (_with[..., 4:] - _all[:, 20:, 4:]).abs().max() > 1e-2
        assert torch.allclose(_both(_last)[0][..., 4:], _all[:, 20:, 4:], atol=1e-5)
# sphinx_gallery_end_ignore

# %%
# **A bidirectional LSTM:** do not carry. Its second direction would need the state of the chunk *after*.

# %%
# What people get wrong
# ---------------------
# **retain_graph=True**, as the message suggests. With an optimizer that steps after each chunk, the next error follows:

# sphinx_gallery_start_ignore
_raised = []
try:
    # sphinx_gallery_end_ignore
    train(20, carry=lambda state: state, retain_graph=True)
# sphinx_gallery_start_ignore
except RuntimeError as error:
    _raised.append(str(error))
    print("RuntimeError:", str(error).partition("operation:")[0] + "operation: ...")
from functools import partial

assert len(_raised) == 1
assert _raised[0].startswith("one of the variables needed for gradient computation has")
assert "modified by an inplace operation: [torch.FloatTensor [" in _raised[0]
for _kind, _name in (
    *(("LSTM", name) for name in ("SGD", "Adam", "AdamW", "RMSprop", "Adagrad")),
    ("GRU", "Adam"),
    ("RNN", "Adam"),
):
    _make = partial(getattr(torch.optim, _name), lr=0.1)
    _told = _loop(_kind, lambda s: s, optimizer=_make, retain_graph=True, chunks=3)
    assert "modified by an inplace operation" in _told


def _fused(parameters):
    return torch.optim.Adam(parameters, lr=0.1, fused=True)


for _kind in ("LSTM", "GRU", "RNN"):
    assert (
        _loop(_kind, lambda state: state, optimizer=_fused, retain_graph=True) is None
    )


def _fused_gradients(copied):
    torch.manual_seed(0)
    layer = nn.LSTM(1, 4, batch_first=True).double()
    optimizer, state, found = _fused(layer.parameters()), None, []
    for x in inputs[:4, :20].double().split(5, 1):
        weights = dict(layer.named_parameters())
        if copied:  # what each chunk saves is changed by nobody
            weights = {name: weight.clone() for name, weight in weights.items()}
        output, state = torch.func.functional_call(layer, weights, (x, state))
        optimizer.zero_grad()
        output.square().mean().backward(retain_graph=True)
        found.append(layer.weight_hh_l0.grad.clone())
        optimizer.step()
    return found


_pairs = list(zip(_fused_gradients(False), _fused_gradients(True), strict=True))
assert torch.equal(*_pairs[0])
assert all((a - b).norm() > 1e-3 * b.norm() for a, b in _pairs[1:])
# sphinx_gallery_end_ignore

# %%
# The graph of the first chunk saved the weights, and ``step()`` :ref:`has changed them
# <sphx_glr_gallery_errors_modified_in_place.py>`. With ``Adam(..., fused=True)`` on a CPU, there is no error, but from the
# second chunk on the gradient is wrong.
#
# .. how-measured:: Hooks see each tensor that the graph saves. Before each backward, growth() adds up the bytes of those that a
#    graph still holds. Parameters and data are left out.

import weakref

from torch.autograd.graph import saved_tensors_hooks


class Saved:
    def __init__(self, tensor):
        self.tensor = tensor


class Meter:
    def __init__(self, *tensors):
        self.alive = weakref.WeakSet()
        self.left_out = {t.untyped_storage().data_ptr() for t in tensors}

    def pack(self, tensor):
        saved = Saved(tensor.detach())
        self.alive.add(saved)
        return saved

    def kib(self):
        storages = [saved.tensor.untyped_storage() for saved in self.alive]
        sizes = {s.data_ptr(): s.nbytes() for s in storages}
        return sum(sizes[p] for p in sizes.keys() - self.left_out) / 1024


def growth(carry, k=20, steps=200, **options):
    model, state, kib = Memory(), None, []
    meter = Meter(*model.parameters(), inputs, targets)
    with saved_tensors_hooks(meter.pack, lambda saved: saved.tensor):
        for x, y in chunks(k, steps):
            output, state = model(x, state)
            loss = mse_loss(output, y)
            kib.append(meter.kib())
            loss.backward(**options)
            state = carry(state)
    return kib


def plot_saved_memory(kept, cut):
    _, ax = plt.subplots(figsize=(7, 2.6), layout="constrained")
    number = range(1, len(kept) + 1)
    ax.plot(number, kept, "o--", color="#c2410c", label="retain_graph=True")
    ax.plot(number, cut, "o-", color="#2563eb", label="detach")
    ax.set(xlabel="chunk", ylabel="saved KiB", xticks=number, ylim=(0, None))
    ax.set_title("Without detach, each chunk adds to the graph")
    ax.legend()


kept = growth(lambda state: state, retain_graph=True)
cut = growth(detach)
# sphinx_gallery_start_ignore
_of = {_k: growth(detach, _k, steps=_k)[0] for _k in (5, 20, 60, 4800)}
assert 200 < _of[4800] / _of[20] < 240
_per_step = [_kib / _k for _k, _kib in _of.items()]
assert max(_per_step) < 1.25 * min(_per_step)
# sphinx_gallery_end_ignore

# %%
# Without ``step()``, nothing raises. But each backward goes through all chunks so far. So memory grows, and *training gets
# slower every iteration*:

# figure: Kibibytes of saved tensors before each of ten backward passes. With retain_graph=True the line rises from chunk to
#   chunk by the same amount, to about nine times its start. With detach it is flat.
plot_saved_memory(kept, cut)

# sphinx_gallery_start_ignore
assert max(cut) == min(cut) == cut[0] == kept[0]
assert 8.5 < kept[-1] / kept[0] < 10
_rises = [b - a for a, b in pairwise(kept)]
assert max(_rises) < 1.1 * min(_rises) and min(_rises) > 0.8 * kept[0]


def _nodes(loss):
    seen, waiting = set(), [loss.grad_fn]
    while waiting:
        node = waiting.pop()
        if node not in seen:
            seen.add(node)
            waiting += [following for following, _ in node.next_functions if following]
    return len(seen)


_state, _counts, _net = None, [], Memory()
for _x, _y in chunks(20, 200):
    _output, _state = _net(_x, _state)
    _loss = mse_loss(_output, _y)
    _counts.append(_nodes(_loss))
    _loss.backward(retain_graph=True)
assert len({b - a for a, b in pairwise(_counts)}) == 1
assert _counts[-1] > 2 * _counts[0] and _counts == sorted(set(_counts))
# sphinx_gallery_end_ignore

# %%
# **Only one tensor of the tuple is detached.** The other still leads into the chunk before:

# sphinx_gallery_start_ignore
_raised = []
try:
    # sphinx_gallery_end_ignore
    train(20, carry=lambda state: (state[0].detach(), state[1]))
# sphinx_gallery_start_ignore
except RuntimeError as error:
    _raised.append(str(error))
    print("RuntimeError:", str(error).partition("(")[0] + "...")
assert _raised == [_SECOND_TIME]
for _carry in (lambda s: (s[0].detach(), s[1]), lambda s: (s[0], s[1].detach())):
    assert _loop("LSTM", _carry) == _SECOND_TIME
_told = []
for _call in (
    lambda: train(20, carry=lambda state: state.detach()),
    lambda: nn.GRU(1, 16, batch_first=True)(inputs[:, :20], (torch.zeros(1, 16),)),
):
    try:
        _call()
    except AttributeError as error:
        _told.append(str(error))
assert len(_told) == 2 and _told[0] == "'tuple' object has no attribute 'detach'"
assert "'tuple' object" in _told[1]
assert isinstance(nn.LSTMCell(1, 4)(torch.ones(2, 1)), tuple)
for _kind in (nn.GRUCell, nn.RNNCell):
    assert isinstance(_kind(1, 4)(torch.ones(2, 1)), torch.Tensor)
# sphinx_gallery_end_ignore

# %%
# ``state.detach()`` raises *'tuple' object has no attribute 'detach'*, because it is for an RNN or a GRU, whose state is one
# tensor.
#
# **The state of another sequence.** If you carry the state, row 3 of a batch must go on where row 3 of the batch before ended.
# Below, the ``trained`` model gets 1,200 steps of each row, in three orders. The last two are what a ``DataLoader`` gives if
# its items are windows of 20 steps:

pairs = torch.cat([inputs, targets], -1)[:, :1200]
windows = pairs.reshape(-1, 20, 2)  # all of row 0, then all of row 1, ...
orders = {
    "split along time": pairs.split(20, dim=1),
    "windows, shuffle=False": windows.split(16),
    "windows, shuffle=True": windows[torch.randperm(len(windows))].split(16),
}


@torch.no_grad()
def evaluate(batches, carry):
    state, losses = None, []
    for x, y in (batch.split(1, dim=-1) for batch in batches):
        output, state = trained(x, state if carry else None)
        losses.append(mse_loss(output, y))
    return sum(losses).item() / len(losses)


table = pd.DataFrame(
    {
        "carry": [evaluate(order, True) for order in orders.values()],
        "no state": [evaluate(order, False) for order in orders.values()],
    },
    index=list(orders),
)

# sphinx_gallery_start_ignore
# isort: split
from torch.utils.data import DataLoader

_loaded = DataLoader(windows, 16)
for _mine, _batch in zip(orders["windows, shuffle=False"], _loaded, strict=True):
    assert torch.equal(_mine, _batch)
_seen = [sorted(map(bytes, torch.cat(list(o)).numpy())) for o in orders.values()]
assert _seen[0] == _seen[1] == _seen[2] and len(_seen[0]) == 960
assert table["carry"].iloc[0] < 0.05 and table["carry"].iloc[1:].min() > 0.4
assert table["no state"].max() - table["no state"].min() < 1e-4
assert 0.3 < table["no state"].iloc[0] < table["carry"].iloc[1:].min()
_, _state = model(inputs[:, :20])
_raised = []
try:
    model(inputs[:8, :20], _state)
except RuntimeError as error:
    _raised.append(str(error))
assert _raised == ["Expected hidden[0] size (1, 8, 16), got [1, 16, 16]"]


class _Keeps(Memory):
    hidden = None

    def forward(self, x):
        output, state = super().forward(x, self.hidden)
        self.hidden = detach(state)
        return output


_keeps = _Keeps()
_keeps(inputs[:, :20]).sum().backward()
_keeps.eval()
assert (_keeps(inputs[:, :20]) - Memory.forward(_keeps, inputs[:, :20])[0]).any()
_zeros = (torch.zeros(1, 16, 16), torch.zeros(1, 16, 16))
assert torch.equal(model(inputs[:, :20])[0], model(inputs[:, :20], _zeros)[0])
# sphinx_gallery_end_ignore
table.round(2)

# %%
# Nothing raises. Only the first order may carry the state. For independent items, call the model without a state: the LSTM
# then starts from zeros. A model that keeps its state in ``self.hidden`` carries it silently, into the validation too. A
# smaller last batch raises *Expected hidden[0] size (1, 8, 16), got [1, 16, 16]*.

# %%
# Exercise
# --------
# This loop should also learn the state at the start, ``first``. But ``first.grad`` stays ``None``. Why, and what do you change?
#
# .. code-block:: python
#
#    first = nn.Parameter(torch.zeros(2, 1, 1, 16))  # h and c
#    state = first.repeat(1, 1, 16, 1)  # for 16 rows
#    for x, y in chunks(20):
#        state = detach(state)
#        output, state = model(x, state)
#        mse_loss(output, y).backward()
#
# .. solution::
#
# ``detach`` at the start of the loop cuts off ``first`` too, before the first chunk. Detach after ``backward()`` instead. Then
# the first chunk gives ``first`` a gradient, and the later chunks do not.

first = nn.Parameter(torch.zeros(2, 1, 1, 16))
state = tuple(first.repeat(1, 1, 16, 1))
arrived = []
for x, y in chunks(20, 60):
    first.grad = None
    output, state = model(x, state)
    mse_loss(output, y).backward()
    state = detach(state)
    arrived.append(first.grad is not None)

print("first.grad after each chunk:", arrived)
assert arrived == [True, False, False]

# sphinx_gallery_start_ignore
assert first.grad is None
_state = first.repeat(1, 1, 16, 1)
for _x in inputs[:, :60].split(20, 1):
    _state = detach(_state)
    _output, _state = model(_x, _state)
    _output.sum().backward()
    assert first.grad is None
# sphinx_gallery_end_ignore

# %%
# Chunks that overlap
# -------------------
# In a chunk of 20 steps, the gradients of the early losses reach back only a few steps. Instead, let the chunks overlap. The
# loss is that of :math:`k_1 = 5` new steps, and its backward goes through the last :math:`k_2 = 20`:


def overlapping(x, k1=5, k2=20):
    state, outputs = None, []
    for start in range(0, x.shape[1] - k2 + 1, k1):
        window = x[:, start : start + k2]
        first, middle = model(window[:, :k1], state)
        last, _ = model(window[:, k1:], middle)
        output = last[:, -k1:]  # train: the loss of this, backward, step
        outputs.append(output if start else torch.cat([first, last], 1))
        state = detach(middle)
    return torch.cat(outputs, 1)


overlap = by_lag(overlapping)
for name, lags in {"chunks": reach[20], "overlapping": overlap}.items():
    part = lags[6] / reach[4800][6]
    print(f"{name:<12} gradient at lag 6: {part:.0%} of one chunk for all")

# sphinx_gallery_start_ignore
_lengths = []
with model.lstm.register_forward_pre_hook(
    lambda _, inputs: _lengths.append(inputs[0].shape[1])
):
    overlapping(inputs[:, :90])
assert _lengths == 15 * [5, 15] and len(range(20, 91, 5)) == 15
assert torch.allclose(lags[:16], reach[4800][:16], rtol=1e-3, atol=1e-5)
assert not lags[20:].any() and (lags[16:20] > 0).all()
assert (lags[16:20] < 0.99 * reach[4800][16:20]).all()
with torch.no_grad():
    assert torch.allclose(overlapping(inputs[:, :90]), _whole, atol=1e-5)
torch.manual_seed(0)
_net, _state, _updates = Memory(), None, 0
_optimizer = torch.optim.Adam(_net.parameters(), lr=0.03)
for _start in range(0, 101, 5):  # the training that the comment names
    _first, _middle = _net(inputs[:, _start : _start + 5], _state)
    _output, _ = _net(inputs[:, _start + 5 : _start + 20], _middle)
    _loss = mse_loss(_output[:, -5:], targets[:, _start + 15 : _start + 20])
    _optimizer.zero_grad()
    _loss.backward()
    _optimizer.step()
    _state, _updates = detach(_middle), _updates + 1
assert _updates == 21  # no error
# sphinx_gallery_end_ignore

# %%
# Now the gradient of each loss reaches back at least 15 steps, so lag 6 is inside for all of them. The price: the LSTM
# computes 20 steps for every 5 steps of data.

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_errors_backward_twice.py` and :ref:`sphx_glr_gallery_errors_modified_in_place.py`: the two messages.
# - :ref:`sphx_glr_gallery_graphs_graph_lifetime.py`: what else makes memory grow in a loop.
# - :ref:`sphx_glr_gallery_training_gradient_clipping.py`: gradients that explode over many steps.
# - In PyTorch's reference: `torch.nn.LSTM <https://docs.pytorch.org/docs/stable/generated/torch.nn.LSTM.html>`__ and
#   `torch.Tensor.detach <https://docs.pytorch.org/docs/stable/generated/torch.Tensor.detach.html>`__.
