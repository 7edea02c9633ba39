r"""
Gradient accumulation with batches of different sizes
=====================================================

.. index::
   single: mean of means is not the mean
   single: gradient accumulation gives another loss than a large batch
   single: num_items_in_batch
   single: padding, ignore_index=-100 and gradient accumulation
   single: the number of tokens differs from batch to batch
   single: scheduler.step with gradient accumulation
   single: cross_entropy is nan if all labels are -100

.. in-short::

   If your batches have different numbers of tokens, a mean loss divided by the number of batches weighs them wrongly.
   Instead, sum the losses, and divide by the tokens of the whole step. ``batches`` is a list of the batches of one
   step:

   .. code-block:: python

      tokens = sum((labels != -100).sum() for _, labels in batches)
      for words, labels in batches:
          loss = cross_entropy(model(words), labels, reduction="sum")
          (loss / tokens).backward()

   Then each token counts the same, as in one large batch. With class weights, divide by the sum of the labels' weights
   instead.
"""

# %%
# A token of a short batch counts too much
# ----------------------------------------
# You train a language model, and three batches make one step. Padding has the label -100, which ``cross_entropy`` ignores. So
# the three batches have 7, 120 and 31 tokens that count. A usual loop divides each mean by 3:

import torch
from torch import nn
from torch.nn.functional import cross_entropy

torch.manual_seed(0)
model = nn.Sequential(nn.Embedding(50, 16), nn.Tanh(), nn.Linear(16, 50))
model.double()  # so that rounding does not blur the comparison


def make_batch(tokens):
    words, labels = torch.randint(50, (2, 128))
    labels[tokens:] = -100  # padding
    return words, labels


batches = [make_batch(7), make_batch(120), make_batch(31)]
for words, labels in batches:
    loss = cross_entropy(model(words), labels)  # the mean over its tokens
    (loss / 3).backward()

# %%
# Then each token of a batch with :math:`n` tokens enters the loss with the factor :math:`\frac{1}{3n}`. In one large batch, the
# factor is :math:`\frac{1}{158}`.
#
# .. how-measured:: The weight of one token of each batch: the gradient of the whole loss with respect to the loss of this
#    token.

import matplotlib.pyplot as plt


def weigh_one_token(whole_loss):
    each = [cross_entropy(model(w), y, reduction="none") for w, y in batches]
    counted = [y != -100 for _, y in batches]
    whole = whole_loss([losses[c] for losses, c in zip(each, counted, strict=True)])
    found = torch.autograd.grad(whole, each)
    return [g[c].unique().item() for g, c in zip(found, counted, strict=True)]


def plot_weight_of_one_token(found):
    _, ax = plt.subplots(figsize=(7, 2.4), layout="constrained")
    sizes = [(labels != -100).sum() for _, labels in batches]
    names = [f"{n} tokens: {w * 158:.2f}" for n, w in zip(sizes, found, strict=True)]
    ax.barh(names, [w * 158 for w in found], color="#2563eb", height=0.6)
    ax.axvline(1, color="#1e293b", lw=1, ls="--", label="in one large batch")
    ax.set(xlabel="weight of one token, relative to one large batch")
    ax.invert_yaxis()
    ax.set_title("With loss / 3, a token of the short batch counts 7.5 times as much")
    ax.legend(loc="lower right")


# %%
# How much does one token count in this loop?


def mean_of_means(losses):
    return sum(one.mean() for one in losses) / len(losses)


divided_by_3 = weigh_one_token(mean_of_means)

# figure: Three bars: how much one token counts, relative to one large batch. In the batch of 7 tokens it counts 7.52 times, in
#   the batch of 120 tokens 0.44 times, in the batch of 31 tokens 1.70 times. A dashed line marks 1.
plot_weight_of_one_token(divided_by_3)

# sphinx_gallery_start_ignore
_sizes = [int((labels != -100).sum()) for _, labels in batches]
assert _sizes == [7, 120, 31] and sum(_sizes) == 158
for _weight, _size in zip(divided_by_3, _sizes, strict=True):
    assert abs(_weight - 1 / (3 * _size)) < 1e-12
assert [round(w * 158, 2) for w in divided_by_3] == [7.52, 0.44, 1.7]
for _w in weigh_one_token(lambda losses: torch.cat(losses).mean()):
    assert abs(_w - 1 / 158) < 1e-12
# sphinx_gallery_end_ignore

# %%
# **Sum the losses, and divide by the tokens of the whole step. Then the sizes of the batches do not matter.**

# %%
# Two loops that are right
# ------------------------
# **Count first.** Take the batches of one step from the loader, count their tokens, then sum the losses. This is a whole epoch:

from itertools import islice

loader = [make_batch(n) for n in (7, 120, 31, 64, 5)]  # or a DataLoader
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)

stream = iter(loader)
while group := list(islice(stream, 3)):  # at the end of the epoch, maybe fewer
    tokens = sum((labels != -100).sum() for _, labels in group)
    if tokens == 0:  # all labels of this step are -100
        continue
    optimizer.zero_grad()
    logged = 0.0
    for words, labels in group:
        loss = cross_entropy(model(words), labels, reduction="sum") / tokens
        loss.backward()
        logged += loss.item()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    scheduler.step()  # once in each step, not in each batch
    print(f"{len(group)} batches, {tokens:>3} tokens: loss {logged:.3f}")

# sphinx_gallery_start_ignore
assert len(group) == 0 and scheduler.last_epoch == 2
with torch.no_grad():
    _sums = [cross_entropy(model(w), y, reduction="sum") for w, y in loader[3:]]
    _together = [torch.cat(both) for both in zip(*loader[3:], strict=True)]
    _large = cross_entropy(model(_together[0]), _together[1])
assert torch.allclose(sum(_sums) / 69, _large, rtol=1e-9)
# sphinx_gallery_end_ignore

# %%
# Keep the ``list``: a generator would be empty after the count, and the inner loop would silently do nothing.
#
# **Or count on the way**, and divide the gradients before you clip them and take the step. This keeps one batch in memory at a
# time:


def count_on_the_way():
    model.zero_grad()
    tokens = 0
    for words, labels in batches:
        cross_entropy(model(words), labels, reduction="sum").backward()
        tokens += (labels != -100).sum()
    for p in model.parameters():
        if p.grad is not None:  # a frozen parameter has no gradient
            p.grad /= tokens
    return gradient()


# %%
# .. how-measured:: One function for each other loop. The function gradient returns all gradients as one vector.


def gradient():
    grads = [p.grad for p in model.parameters() if p.grad is not None]
    return torch.cat([grad.flatten() for grad in grads])


def count_first():
    model.zero_grad()
    tokens = sum((labels != -100).sum() for _, labels in batches)
    for words, labels in batches:
        loss = cross_entropy(model(words), labels, reduction="sum")
        (loss / tokens).backward()
    return gradient()


def large_batch():
    model.zero_grad()
    words = torch.cat([words for words, _ in batches])
    labels = torch.cat([labels for _, labels in batches])
    cross_entropy(model(words), labels).backward()
    return gradient()


def means_divided_by_3():
    model.zero_grad()
    for words, labels in batches:
        (cross_entropy(model(words), labels) / 3).backward()
    return gradient()


# %%
# How far is the gradient of each loop from that of one large batch with all 158 tokens?

right = large_batch()
for loop in (count_first, count_on_the_way, means_divided_by_3):
    difference = (loop() - right).norm() / right.norm()
    print(f"{loop.__name__:<18} relative difference {difference:.0%}")

# sphinx_gallery_start_ignore
for _loop in (count_first, count_on_the_way):
    assert torch.allclose(_loop(), right, rtol=1e-9, atol=1e-12)
assert (means_divided_by_3() - right).norm() / right.norm() > 0.5
_same = [
    make_batch(40),
    make_batch(40),
    make_batch(40),
]  # with equal sizes there is no difference
_kept, batches = batches, _same
assert torch.allclose(means_divided_by_3(), large_batch(), rtol=1e-9, atol=1e-12)


def _weighted_means(weight):
    model.zero_grad()
    for words, labels in _same:
        (cross_entropy(model(words), labels, weight=weight) / 3).backward()
    found = gradient()
    model.zero_grad()
    words, labels = (torch.cat(both) for both in zip(*_same, strict=True))
    cross_entropy(model(words), labels, weight=weight).backward()
    return torch.allclose(found, gradient(), rtol=1e-3, atol=1e-6)


assert _weighted_means(None)
assert not _weighted_means(torch.linspace(0.5, 2, 50, dtype=torch.float64))
batches = (_one for _one in _kept)  # a generator: nothing is left for the second loop
assert sum((_y != -100).sum() for _, _y in batches) == 158
assert next(batches, None) is None
_stream = iter(torch.utils.data.DataLoader(_kept, batch_size=None))
batches = [next(_stream) for _ in range(3)]
assert torch.allclose(count_first(), right, rtol=1e-9, atol=1e-12)
assert torch.allclose(count_on_the_way(), right, rtol=1e-9, atol=1e-12)
assert list(_stream) == []
batches = _kept
model[0].weight.requires_grad_(False)  # frozen
_frozen = large_batch()
assert model[0].weight.grad is None and _frozen.numel() == right.numel() - 50 * 16
for _loop in (count_first, count_on_the_way):
    assert torch.allclose(_loop(), _frozen, rtol=1e-9, atol=1e-12)
model[0].weight.requires_grad_(True)
_bound = right.norm().item() / 2  # clipping before the division: 158 times too small
model.zero_grad()
for _w, _y in batches:
    cross_entropy(model(_w), _y, reduction="sum").backward()
nn.utils.clip_grad_norm_(model.parameters(), _bound)
for _p in model.parameters():
    _p.grad /= 158
assert abs(gradient().norm() / _bound - 1 / 158) < 1e-5
_ = count_on_the_way()
nn.utils.clip_grad_norm_(model.parameters(), _bound)
assert abs(gradient().norm() / _bound - 1) < 1e-3
_x, _y = torch.full((20_000, 4), 10.0).half(), torch.zeros(20_000, dtype=torch.long)
_half = {}
for _divide, _how in ((False, "sum"), (True, "sum"), (False, "mean")):
    torch.manual_seed(0)
    _head = nn.Linear(4, 4).half()
    _loss = cross_entropy(_head(_x).float(), _y, reduction=_how)
    (_loss / 20_000 if _divide else _loss).backward()
    assert _loss.isfinite()
    _half[_divide, _how] = _head.weight.grad
assert not _half[False, "sum"].isfinite().all()
assert _half[True, "sum"].isfinite().all() and _half[True, "sum"].any()
assert torch.allclose(_half[True, "sum"], _half[False, "mean"], rtol=0.02, atol=0.01)
_zeros = torch.zeros(60_000, 4, dtype=torch.float16)
_y = torch.zeros(60_000, dtype=torch.long)
assert cross_entropy(_zeros, _y, reduction="sum").isinf()
assert abs(cross_entropy(_zeros.float(), _y, reduction="sum") - 83_178) < 10
# sphinx_gallery_end_ignore

# %%
# With equal numbers of tokens and no class weights, :ref:`dividing by the number of batches
# <sphx_glr_gallery_differentiation_accumulation.py>` is right.
#
# In 2024, `torchtune <https://github.com/meta-pytorch/torchtune/pull/1875>`__ and `transformers
# <https://github.com/huggingface/transformers/pull/34191>`__ changed their loops for this reason. The Trainer of transformers
# passes the count to the model as ``num_items_in_batch``. A model that does not use it can still divide by the tokens of each
# batch, without a warning (`transformers#37766 <https://github.com/huggingface/transformers/issues/37766>`__).
#
# In float16, a sum and its gradient may overflow where a mean is finite. So count first, and compute the loss in float32:
# ``cross_entropy(logits.float(), …)``.

# %%
# Several processes, other losses, batch normalization
# ----------------------------------------------------
# ``DistributedDataParallel`` takes the mean of the gradients over the processes. So count the tokens of all processes with
# ``all_reduce``, divide by them, and multiply by the number of processes: :ref:`sphx_glr_gallery_scale_ddp_and_autograd.py`
# does this with samples.
#
# With ``weight=`` and class indices, the mean of ``cross_entropy`` divides by the sum of the weights of the labels instead of
# their number. Divide by the same sum:

classes = torch.linspace(0.5, 2, 50, dtype=torch.float64)
total = sum(classes[labels[labels != -100]].sum() for _, labels in batches)

model.zero_grad()
for words, labels in batches:
    loss = cross_entropy(model(words), labels, weight=classes, reduction="sum")
    (loss / total).backward()

# sphinx_gallery_start_ignore
_found = gradient()
model.zero_grad()
_words = torch.cat([words for words, _ in batches])
_labels = torch.cat([labels for _, labels in batches])
cross_entropy(model(_words), _labels, weight=classes).backward()
assert torch.allclose(_found, gradient(), rtol=1e-9, atol=1e-12)
model.zero_grad()
for _w, _y in batches:
    (cross_entropy(model(_w), _y, weight=classes, reduction="sum") / 158).backward()
assert not torch.allclose(_found, gradient(), rtol=1e-2)


def _penalty():
    return 0.01 * sum(p.square().sum() for p in model.parameters())


model.zero_grad()
(cross_entropy(model(_words), _labels) + _penalty()).backward()
_with_penalty = gradient()
for _loop in (count_first, count_on_the_way):
    _ = _loop()
    _penalty().backward()
    assert torch.allclose(gradient(), _with_penalty, rtol=1e-9, atol=1e-12)
model.zero_grad()
for _w, _y in batches:
    _loss = cross_entropy(model(_w), _y, reduction="sum") + _penalty()
    (_loss / 158).backward()
assert not torch.allclose(gradient(), _with_penalty, rtol=1e-2)
# sphinx_gallery_end_ignore

# %%
# A penalty on the weights does not grow with the tokens. So call ``backward()`` on it alone, once in each step, after the
# division.
#
# With batch normalization in training, the gradient differs from that of one large batch whatever you divide by, because each
# batch is normalized with its own statistics.

# sphinx_gallery_start_ignore
data = torch.randn(158, 4, generator=torch.Generator().manual_seed(1)) + 1


def _direction(pieces, training=True):
    torch.manual_seed(0)
    net = nn.Sequential(nn.BatchNorm1d(4), nn.Tanh(), nn.Linear(4, 1)).train(training)
    for piece in data.split(pieces):
        (net(piece) - piece[:, :1]).pow(2).sum().div(158).backward()
    grad = torch.cat([p.grad.flatten() for p in net.parameters()])
    return grad / grad.norm()


# A divisor scales the gradient; here its direction differs.
assert (_direction([158]) - _direction([7, 120, 31])).norm() > 1e-3
_evaluated = _direction([158], False) - _direction([7, 120, 31], False)
assert _evaluated.norm() < 1e-5
# sphinx_gallery_end_ignore

# %%
# What people get wrong
# ---------------------
# **The count and the loss use different labels.** Many language models shift the labels: they leave out the first label of each
# row. Then count ``labels[:, 1:]``. If you pass ``ignore_index``, compare with that number instead of -100. If the logits have
# the shape (rows, tokens, classes), pass ``logits.flatten(0, 1)`` and ``labels.flatten()``.
#
# **One backward at the end.** You can also add up the summed losses, divide once and call ``backward()`` once. The gradient is
# right, but all graphs are kept until then, so accumulation saves no memory (fixed in `torchtune#1917
# <https://github.com/meta-pytorch/torchtune/pull/1917>`__).

# sphinx_gallery_start_ignore
_rows = torch.randint(50, (4, 10), generator=torch.Generator().manual_seed(2))
_logits = torch.randn(4, 10, 50, generator=torch.Generator().manual_seed(3))
for _ignored in (-100, 7):
    _rows[:, 7:] = _ignored
    _shifted = _logits[:, :-1].flatten(0, 1), _rows[:, 1:].flatten()
    _sum = cross_entropy(*_shifted, ignore_index=_ignored, reduction="sum")
    _mean = cross_entropy(*_shifted, ignore_index=_ignored)
    assert torch.allclose(_sum / (_rows[:, 1:] != _ignored).sum(), _mean)
    assert not torch.allclose(_sum / (_rows != _ignored).sum(), _mean, rtol=0.05)
try:
    _refused = cross_entropy(_logits, _rows)  # the classes must be the second dimension
except RuntimeError as error:
    _refused = str(error)
assert "Expected target size" in _refused
import weakref


class Box:
    def __init__(self, tensor):
        self.tensor = tensor


def count_numbers_kept(one_backward):
    own = {p.data_ptr() for p in model.parameters()}
    alive, most, total = weakref.WeakSet(), 0, 0

    def pack(tensor):
        box = Box(tensor.detach())
        if tensor.data_ptr() not in own:
            alive.add(box)
        return box

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda box: box.tensor):
        for words, labels in batches:
            loss = cross_entropy(model(words), labels, reduction="sum") / 158
            kept = {box.tensor.data_ptr(): box.tensor.numel() for box in alive}
            most = max(most, sum(kept.values()))
            total = total + loss if one_backward else loss.backward()
        if one_backward:
            total.backward()
    return most


assert count_numbers_kept(one_backward=True) == 3 * count_numbers_kept(
    one_backward=False
)
_by_one = []
for _one in (False, True):
    model.zero_grad()
    count_numbers_kept(_one)
    _by_one.append(gradient())
assert torch.allclose(*_by_one) and torch.allclose(_by_one[0], right)
# sphinx_gallery_end_ignore

# %%
# **A batch without a token.** If all labels of a batch are -100, for example because truncation removed the answer, the mean is
# 0 divided by 0. The loss is NaN, and so is the average that you log. With ``reduction="sum"``, the loss is 0:

words, labels = make_batch(0)
for reduction in ("mean", "sum"):
    model.zero_grad()
    loss = cross_entropy(model(words), labels, reduction=reduction)
    loss.backward()
    print(f"{reduction:<4} loss {loss:.1f}   gradient {gradient().norm():.1f}")

# sphinx_gallery_start_ignore
assert loss == 0 and not gradient().any()
model.zero_grad()
_nan = cross_entropy(model(words), labels)
_nan.backward()
assert _nan.isnan() and not gradient().any() and (_nan + 1).isnan()
_kept, batches = batches, [*batches, make_batch(0)]
for _loop in (count_first, count_on_the_way):
    assert torch.allclose(_loop(), right, rtol=1e-9, atol=1e-12)
batches = [make_batch(0), make_batch(0)]
assert not count_first().any() and count_on_the_way().isnan().all()
assert (cross_entropy(model(words), labels, reduction="sum") / 0).isnan()
batches = _kept
# sphinx_gallery_end_ignore

# %%
# If all batches of the step are like this, skip the step, as the first loop does. Otherwise the logged loss is NaN, and with
# ``count_on_the_way`` all gradients are NaN, too.
#
# **The mean of the mean losses in the log.** Log the sum of the losses, divided by the tokens.
#
# **The scheduler steps with each batch.** Then the learning rate falls three times as fast. Call ``scheduler.step()`` after
# ``optimizer.step()``, outside the inner loop.

# sphinx_gallery_start_ignore
import warnings


def learning_rate(after_each_batch):
    optimizer = torch.optim.SGD(nn.Linear(4, 4).parameters(), lr=1.0)
    scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.1, total_iters=30)
    for _ in range(6):
        for _ in batches:
            # forward and backward
            if after_each_batch:
                scheduler.step()
        optimizer.step()
        if not after_each_batch:
            scheduler.step()
    return scheduler.get_last_lr()[0]


with warnings.catch_warnings(record=True) as _none:
    warnings.simplefilter("always")
    _right = learning_rate(after_each_batch=False)
with warnings.catch_warnings(record=True) as _one:
    warnings.simplefilter("always")
    _wrong = learning_rate(after_each_batch=True)
assert abs((1 - _wrong) - 3 * (1 - _right)) < 1e-9 and abs(_right - 0.82) < 1e-9
assert len(_none) == 0 and len(_one) == 1
with torch.no_grad():
    _losses = [cross_entropy(model(w), y, reduction="sum") for w, y in batches]
    _means = [cross_entropy(model(w), y) for w, y in batches]
    _words, _labels = (torch.cat(_both) for _both in zip(*batches, strict=True))
    _large = cross_entropy(model(_words), _labels)
assert torch.allclose(sum(_losses) / 158, _large, rtol=1e-9)
assert not torch.allclose(sum(_means) / 3, _large, rtol=1e-3)
# sphinx_gallery_end_ignore

# %%
# Exercise
# --------
# Two batches make a step: one with 100 tokens, one with 10. You divide each mean loss by 2. How many times as much does a token
# of the short batch count as a token of the long one?
#
# .. solution::
#
# A token of the long batch has the weight :math:`\frac{1}{2 \cdot 100}`, a token of the short one :math:`\frac{1}{2 \cdot 10}`:

batches = [make_batch(100), make_batch(10)]
long, short = weigh_one_token(mean_of_means)
print(f"long {long:.4f}   short {short:.4f}   ratio {short / long:.1f}")

# predict: short / long -- How many times as much does a token of the short batch count?

# sphinx_gallery_start_ignore
assert abs(short / long - 10) < 1e-9
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_differentiation_accumulation.py`, with batches of equal sizes, and how it saves memory.
# - :ref:`sphx_glr_gallery_practice_language_model_losses.py`, shift and mask, and the mean over tokens or rows.
# - :ref:`sphx_glr_gallery_training_custom_losses.py`, ``mean``, ``sum`` and ``none``.
# - In PyTorch's reference: `torch.nn.functional.cross_entropy
#   <https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.cross_entropy.html>`__, whose ``reduction`` says by what
#   the mean divides.
