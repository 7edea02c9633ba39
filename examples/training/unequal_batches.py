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

   If your batches have different numbers of tokens, do not divide each mean loss by the number of batches. Sum the losses, and
   divide by the tokens of the whole step:

   .. code-block:: python

      tokens = sum((labels != -100).sum() for _, labels in batches)
      for words, labels in batches:
          loss = cross_entropy(model(words), labels, reduction="sum")
          (loss / tokens).backward()

   Then each token counts the same, as in one large batch. ``batches`` is a list: it is read twice. A loss with class weights
   needs another divisor: the sum of the labels' weights.
"""

# %%
# A token of a short batch counts too much
# ----------------------------------------
# You train a language model, and three batches make one step. Padding has the label -100, which ``cross_entropy`` ignores. So
# the three batches have 7, 120 and 31 tokens that count.
#
# .. how-measured:: The model and the batches; then the weight of one token of each batch. It is the gradient of the whole loss
#    with respect to the loss of this token.

import matplotlib.pyplot as plt
import torch
from torch import nn
from torch.nn.functional import cross_entropy

torch.manual_seed(0)
model = nn.Sequential(nn.Embedding(50, 16), nn.Tanh(), nn.Linear(16, 50)).double()


def batch(tokens):
    words, labels = torch.randint(50, (2, 128))
    labels[tokens:] = -100  # padding
    return words, labels


def weights(whole_loss):
    each = [cross_entropy(model(w), y, reduction="none") for w, y in batches]
    counted = [y != -100 for _, y in batches]
    whole = whole_loss([losses[c] for losses, c in zip(each, counted, strict=True)])
    found = torch.autograd.grad(whole, each)
    return [g[c].unique().item() for g, c in zip(found, counted, strict=True)]


def draw(found):
    _, ax = plt.subplots(figsize=(7, 2.4), layout="constrained")
    sizes = [(labels != -100).sum() for _, labels in batches]
    names = [f"{n} tokens: {w * 158:.2f}" for n, w in zip(sizes, found, strict=True)]
    ax.barh(names, [w * 158 for w in found], color="#2563eb", height=0.6)
    ax.axvline(1, color="#1e293b", lw=1, ls="--", label="in one large batch")
    ax.set(xlabel="weight of one token, relative to one large batch")
    ax.invert_yaxis()
    ax.set_title("With loss / 3, a token of the short batch counts 7.5 times")
    ax.legend(loc="lower right")


batches = [batch(7), batch(120), batch(31)]

# %%
# A usual loop divides each mean by 3:

for words, labels in batches:
    loss = cross_entropy(model(words), labels)  # the mean over this batch's tokens
    (loss / 3).backward()

divided_by_3 = weights(lambda losses: sum(one.mean() / 3 for one in losses))

# figure: Three bars: how much one token counts, relative to one large batch. In the batch of 7 tokens it counts 7.52 times, in
#   the batch of 120 tokens 0.44 times, in the batch of 31 tokens 1.70 times. A dashed line marks 1.
draw(divided_by_3)

# sphinx_gallery_start_ignore
_sizes = [int((labels != -100).sum()) for _, labels in batches]
assert _sizes == [7, 120, 31] and sum(_sizes) == 158
for _weight, _size in zip(divided_by_3, _sizes, strict=True):
    assert abs(_weight - 1 / (3 * _size)) < 1e-12
assert [round(w * 158, 2) for w in divided_by_3] == [7.52, 0.44, 1.7]
for _w in weights(lambda losses: torch.cat(losses).mean()):
    assert abs(_w - 1 / 158) < 1e-12
# sphinx_gallery_end_ignore

# %%
# In one large batch, each token has the weight :math:`\frac{1}{158}`. The mean of the means weighs by batch: with two batches,
# :math:`\frac{1}{2}\left(\frac{a}{n_1} + \frac{b}{n_2}\right)` is :math:`\frac{a + b}{n_1 + n_2}` for all :math:`a` and
# :math:`b` only if :math:`n_1 = n_2`. In 2024 this mistake was mended in `transformers
# <https://github.com/huggingface/transformers/pull/34191>`__ and in `torchtune
# <https://github.com/meta-pytorch/torchtune/pull/1875>`__.
#
# Two loops that are right
# ------------------------
# **Count first.** Take all batches of the step from the loader, count their tokens, then sum the losses. **Or count on the
# way**, and divide the gradients before you clip them and take the step. The second loop needs one batch at a time:


def gradient():
    return torch.cat([p.grad.flatten() for p in model.parameters()])


def count_first():
    model.zero_grad()
    tokens = sum((labels != -100).sum() for _, labels in batches)
    for words, labels in batches:
        loss = cross_entropy(model(words), labels, reduction="sum")
        (loss / tokens).backward()
    return gradient()


def count_on_the_way():
    model.zero_grad()
    tokens = 0
    for words, labels in batches:
        cross_entropy(model(words), labels, reduction="sum").backward()
        tokens += (labels != -100).sum()
    for p in model.parameters():
        p.grad /= tokens
    return gradient()


# %%
# Compared with one large batch of all three:


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


right = large_batch()
for loop in (count_first, count_on_the_way, means_divided_by_3):
    difference = (loop() - right).norm() / right.norm()
    print(f"{loop.__name__:<18} relative difference {difference:.0%}")

# sphinx_gallery_start_ignore
for _loop in (count_first, count_on_the_way):
    assert torch.allclose(_loop(), right, rtol=1e-9, atol=1e-12)
assert (means_divided_by_3() - right).norm() / right.norm() > 0.5
_same = [batch(40), batch(40), batch(40)]  # with equal sizes there is no difference
_kept, batches = batches, _same
assert torch.allclose(means_divided_by_3(), large_batch(), rtol=1e-9, atol=1e-12)
batches = _kept
# sphinx_gallery_end_ignore

# %%
# With batches of equal sizes, dividing by their number is right: see :ref:`sphx_glr_gallery_differentiation_accumulation.py`.
#
# In float16, a sum over many tokens may overflow where a mean does not, and so may its gradient. Count first there, and
# compute the loss in float32: ``model(words).float()``.

# sphinx_gallery_start_ignore
_h = torch.full((70_000,), 1.0, dtype=torch.float16)
_w = torch.ones((), dtype=torch.float16, requires_grad=True)
(_w * _h).sum().backward()
assert _w.grad.isinf()
assert (_w * _h).sum().isinf() and abs((_w * _h).mean() - 1) < 0.01
_w.grad = None
(_w * _h).mean().backward()
assert abs(_w.grad - 1) < 0.01
_w.grad = None
(_w * _h).float().sum().backward()
assert (_w * _h).float().sum() == 70_000 and _w.grad.isinf()  # then count first
_w.grad = None
((_w * _h).float().sum() / 70_000).backward()
assert abs(_w.grad - 1) < 0.01
# sphinx_gallery_end_ignore

# %%
# What people get wrong
# ---------------------
# **One backward at the end.** You can also add up the summed losses, divide once and call ``backward()`` once. The gradient is
# right, but all graphs are kept until then, and the memory that accumulation should save is gone (`torchtune#1917
# <https://github.com/meta-pytorch/torchtune/pull/1917>`__ took this back).
#
# .. how-measured:: A hook wraps each saved tensor, except parameters; weak references tell how many numbers are kept.

import weakref


class Box:
    def __init__(self, tensor):
        self.tensor = tensor


def most_kept(one_backward):
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


# %%
# The most numbers that the graphs keep at a time:

print("backward for each batch:", most_kept(one_backward=False))
print("one backward at the end:", most_kept(one_backward=True))

# sphinx_gallery_start_ignore
assert most_kept(one_backward=True) == 3 * most_kept(one_backward=False)
_by_one = []
for _one in (False, True):
    model.zero_grad()
    most_kept(_one)
    _by_one.append(gradient())
assert torch.allclose(*_by_one) and torch.allclose(_by_one[0], right)
# sphinx_gallery_end_ignore

# %%
# **A batch without a token.** If truncation leaves nothing but padding, the mean is 0 divided by 0. The loss is NaN, and so is
# every average that you log with it. The gradient is 0 here. The sum is 0 as well, and such a batch adds nothing:

words, labels = batch(0)
for reduction in ("mean", "sum"):
    model.zero_grad()
    loss = cross_entropy(model(words), labels, reduction=reduction)
    loss.backward()
    print(f"{reduction:<4} loss {loss.item()}   gradient {gradient().norm().item()}")

# sphinx_gallery_start_ignore
assert loss == 0 and not gradient().any()
model.zero_grad()
_nan = cross_entropy(model(words), labels)
_nan.backward()
assert _nan.isnan() and not gradient().any() and (_nan + 1).isnan()
# sphinx_gallery_end_ignore

# %%
# **The logged loss.** The mean of the three logged means is as wrong as the gradient. Log the sum of the losses, divided by the
# tokens.
#
# **The scheduler steps with each batch.** ``scheduler.step()`` belongs after ``optimizer.step()``, once for each step of the
# optimizer. In the inner loop, this learning rate falls three times as fast:


def learning_rate(after_each_batch):
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.1, total_iters=30)
    for _ in range(6):
        optimizer.zero_grad()
        for words, labels in batches:
            cross_entropy(model(words), labels, reduction="sum").backward()
            if after_each_batch:
                optimizer.step()
                scheduler.step()
        if not after_each_batch:
            optimizer.step()
            scheduler.step()
    return scheduler.get_last_lr()[0]


state = {name: value.clone() for name, value in model.state_dict().items()}
for after_each_batch in (False, True):
    model.load_state_dict(state)
    print(f"{after_each_batch!s:<5} {learning_rate(after_each_batch):.2f}")
model.load_state_dict(state)

# sphinx_gallery_start_ignore
_rates = []
for _wrong in (False, True):
    _rates.append(learning_rate(_wrong))
    model.load_state_dict(state)
assert (
    abs((1 - _rates[1]) - 3 * (1 - _rates[0])) < 1e-9 and abs(_rates[0] - 0.82) < 1e-9
)
# sphinx_gallery_end_ignore

# %%
# Several processes, class weights, batch normalization
# -----------------------------------------------------
# ``DistributedDataParallel`` takes the mean of the gradients over the processes. So count the tokens of all processes with
# ``all_reduce``, divide by them, and multiply by the number of processes: :ref:`sphx_glr_gallery_scale_ddp_and_autograd.py`
# runs it.
#
# With ``weight=`` and class indices, the mean of ``cross_entropy`` divides by the sum of the labels' weights. Divide by that
# sum as well:

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
# sphinx_gallery_end_ignore

# %%
# No divisor helps a layer that looks at the whole batch. ``BatchNorm1d`` normalizes with the statistics of each batch, and its
# running mean moves three times in a step instead of once:

data = torch.randn(158, 4, generator=torch.Generator().manual_seed(1)) + 1
for pieces in ([158], [7, 120, 31]):
    norm = nn.BatchNorm1d(4)
    for piece in data.split(pieces):
        norm(piece)
    print(f"{pieces!s:<12} running mean {norm.running_mean.numpy().round(2)}")

# sphinx_gallery_start_ignore
_once, _thrice = nn.BatchNorm1d(4), nn.BatchNorm1d(4)
_once(data)
for _piece in data.split([7, 120, 31]):
    _thrice(_piece)
assert torch.allclose(_once.running_mean, 0.1 * data.mean(0), atol=1e-6)
assert (_thrice.running_mean > 1.8 * _once.running_mean).all()
assert _thrice.num_batches_tracked == 3
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

batches = [batch(100), batch(10)]
long, short = weights(lambda losses: sum(one.mean() / 2 for one in losses))
print(f"long {long:.4f}   short {short:.4f}   ratio {short / long:.1f}")

# predict: short / long -- How many times as much does a token of the short batch count?

# sphinx_gallery_start_ignore
assert abs(short / long - 10) < 1e-9
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - Before: :ref:`sphx_glr_gallery_training_gradient_clipping.py`, which comes after the division.
# - Next: :ref:`sphx_glr_gallery_training_learning_rate_schedules.py`, one step of the scheduler for each step of the optimizer.
# - :ref:`sphx_glr_gallery_differentiation_accumulation.py`, with batches of equal sizes, and where the memory is won.
# - :ref:`sphx_glr_gallery_training_custom_losses.py`, ``mean``, ``sum`` and ``none``.
# - In PyTorch's reference: `torch.nn.functional.cross_entropy
#   <https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.cross_entropy.html>`__, whose ``reduction`` says by what
#   the mean divides.
