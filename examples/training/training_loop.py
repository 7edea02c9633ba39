r"""
PyTorch training loop: what zero_grad, backward and step do
===========================================================

.. index::
   ! single: training loop on GPU or CPU
   ! single: the loss does not go down

.. in-short::

   .. code-block:: python

      model.train()
      for x, target in loader:
          x, target = x.to(device), target.to(device)
          loss = loss_function(model(x), target)
          optimizer.zero_grad()
          loss.backward()
          optimizer.step()

   The forward pass builds the graph. ``zero_grad()`` removes the gradients of the previous step, ``backward()`` computes new
   ones, and ``step()`` changes the weights. To evaluate, call ``model.eval()`` and compute under ``torch.no_grad()``. Gradient
   accumulation, a ``GradScaler`` and LBFGS need a different loop.
"""

# %%
# A whole program
# ---------------
# A training loop repeats one step: it measures the loss, asks autograd in which direction each weight should move, and moves
# it. The data are 1,797 handwritten digits of 8 by 8 pixels. 360 of them are held out, to test the model. The ``DataLoader``
# makes batches, with ``shuffle=True`` in a new order in each epoch:

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

# sphinx_gallery_start_ignore
_threads = torch.get_num_threads()
torch.set_num_threads(1)  # on a busy machine, two threads would wait for each other
# sphinx_gallery_end_ignore
digits = load_digits()
images = torch.tensor(digits.data, dtype=torch.float32) / 16
labels = torch.tensor(digits.target)

torch.manual_seed(0)
train_set, held_out = random_split(TensorDataset(images, labels), [1437, 360])
loader = DataLoader(train_set, batch_size=64, shuffle=True)
device = torch.accelerator.current_accelerator(check_available=True)
device = device or torch.device("cpu")

# sphinx_gallery_start_ignore
assert len(images) == 1797 and images.shape == (1797, 64)
assert images.dtype == torch.float32 and labels.dtype == torch.int64
assert images.min() == 0 and images.max() == 1
assert not set(train_set.indices) & set(held_out.indices)
_batches = [x for x, _ in loader]
assert len(_batches) == len(loader) == 23 and _batches[-1].shape == (29, 64)
assert not torch.equal(_batches[0], next(iter(loader))[0])
assert torch.accelerator.is_available() or device == torch.device("cpu")
_net, _tensor = nn.Linear(2, 2), torch.ones(2)
assert _net.to("meta") is _net and _net.weight.is_meta
assert _tensor.to("meta").is_meta and not _tensor.is_meta
# sphinx_gallery_end_ignore

# %%
# ``device`` is the GPU if there is one, or else the CPU. ``model.to(device)`` moves the model itself. ``x.to(device)`` returns
# a tensor: assign the result.


def make_model():
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Linear(64, 32), nn.ReLU(), nn.Dropout(0.2), nn.Linear(32, 10)
    )


loss_function = nn.CrossEntropyLoss()


def train(model, optimizer):
    total = count = 0
    for x, target in loader:
        x, target = x.to(device), target.to(device)
        loss = loss_function(model(x), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(x)
        count += len(x)
    return total / count


@torch.no_grad()
def evaluate(model, dataset):
    total = correct = 0
    for x, target in DataLoader(dataset, batch_size=256):
        x, target = x.to(device), target.to(device)
        output = model(x)
        total += loss_function(output, target).item() * len(x)
        correct += (output.argmax(dim=1) == target).sum().item()
    return total / len(dataset), correct / len(dataset)


# %%
# This loss is the mean over a batch, and the last batch is smaller. So each mean is multiplied by ``len(x)``, and the sum is
# divided once. (With ignored labels of -100, count only the other labels. Class weights change the mean, too.) An evaluation
# needs no graph and no dropout:

model = make_model().to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
history = []
for _ in range(12):
    model.train()
    running = train(model, optimizer)
    model.eval()
    seen, new = evaluate(model, train_set), evaluate(model, held_out)
    history.append((running, *seen, *new))

print(f"held out: loss {new[0]:.2f}, correct {new[1]:.2f}")

# sphinx_gallery_start_ignore
_all = [torch.stack(column) for column in zip(*held_out, strict=True)]
with torch.no_grad():
    _mean = loss_function(model(_all[0].to(device)), _all[1].to(device)).item()
assert abs(_mean - history[-1][3]) < 1e-5
_parts = torch.tensor([0.5, 0.7]), torch.tensor([64, 29])  # two unequal batches
assert abs(_parts[0].mean() - (_parts[0] * _parts[1]).sum() / 93) > 0.03
assert history[-1][4] > 0.93 and history[-1][2] > 0.98
# sphinx_gallery_end_ignore

# %%
# Two more lines are common: :ref:`clipping <sphx_glr_gallery_training_gradient_clipping.py>` between ``backward()`` and
# ``step()``, and a :ref:`learning rate schedule <sphx_glr_gallery_training_learning_rate_schedules.py>` after
# ``optimizer.step()``.

# %%
# What each line does
# -------------------
# The forward pass of a new model builds this graph:

net = make_model().to(device)
x, target = next(iter(loader))
x, target = x.to(device), target.to(device)
loss = loss_function(net(x), target)

# graph: loss -- After the forward pass: four leaves, the weights and biases, and the tensors that were saved on the way

# sphinx_gallery_start_ignore
assert all(p.is_leaf and p.requires_grad for p in net.parameters())
assert len(list(net.parameters())) == 4 and not x.requires_grad
# sphinx_gallery_end_ignore

# %%
# **backward() adds to .grad, step() reads .grad, zero_grad() empties it. They know each other by .grad alone.** Watch one bias
# in two steps:

bias = net[3].bias
optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)


def show(line):
    grad = None if bias.grad is None else f"{bias.grad[0]:.4f}"
    print(f"{line:<15} bias {bias[0]:.4f}   .grad {grad}")


for _ in range(2):
    loss = loss_function(net(x), target)
    show("loss_function()")
    optimizer.zero_grad()
    show("zero_grad()")
    loss.backward()
    show("backward()")
    optimizer.step()
    show("step()")

# sphinx_gallery_start_ignore
for _kind in (torch.optim.SGD, torch.optim.Adam, torch.optim.Adagrad):
    _net = nn.Linear(2, 2)
    _optimizer = _kind(_net.parameters(), lr=0.1)
    for _round in (1, 2):
        _before = [p.detach().clone() for p in _net.parameters()]
        _loss = _net(torch.ones(3, 2)).square().sum()
        _optimizer.zero_grad()
        assert all(p.grad is None for p in _net.parameters())
        _loss.backward()
        _kept = [p.grad.clone() for p in _net.parameters()]
        assert all(map(torch.equal, _before, _net.parameters()))
        del _loss  # step() needs no graph
        _optimizer.step()
        assert not any(map(torch.equal, _before, _net.parameters()))
        assert all(map(torch.equal, _kept, (p.grad for p in _net.parameters())))
    _net(torch.ones(3, 2)).square().sum().backward()  # not cleared: it adds
    _now = [p.detach().requires_grad_() for p in _net.parameters()]
    _alone = nn.functional.linear(torch.ones(3, 2), *_now).square().sum()
    for _p, _g, _k in zip(
        _net.parameters(), torch.autograd.grad(_alone, _now), _kept, strict=True
    ):
        torch.testing.assert_close(_p.grad, _g + _k)
_raised = []
try:
    loss.backward()
except RuntimeError as _error:
    _raised.append("a second time" in str(_error))
assert _raised == [True]
try:
    torch.optim.LBFGS(nn.Linear(2, 2).parameters()).step()
except TypeError as _error:
    _raised.append("closure" in str(_error))
assert _raised == [True, True]
# sphinx_gallery_end_ignore

# %%
# - The forward pass, ``net(x)`` and the loss, builds the graph. In the second step, the old gradient is still there.
# - ``zero_grad()`` sets ``.grad`` of the optimizer's parameters to ``None``.
# - ``backward()`` adds the new gradients to ``.grad``, and frees what the graph had saved. It adds because :ref:`you may want
#   the sum over several batches <sphx_glr_gallery_differentiation_accumulation.py>`.
# - ``step()`` changes the weights in place, and leaves the gradients as they are.

# %%
# Why is the training loss higher than the validation loss?
# ---------------------------------------------------------
# These are the 12 epochs of the program above.
#
# .. how-measured:: The plot of the losses in history.

import matplotlib.pyplot as plt


def draw_losses_of_each_epoch():
    _, axes = plt.subplots(1, 2, figsize=(7, 3.2), layout="constrained")
    running, loss_seen, correct_seen, loss_new, correct_new = zip(*history, strict=True)
    epochs = range(1, 13)
    axes[0].plot(epochs, running, ":", color="#64748b", label="in training")
    for ax, seen, new in zip(
        axes, (loss_seen, correct_seen), (loss_new, correct_new), strict=True
    ):
        ax.plot(epochs, seen, "--", color="#2563eb", label="trained on")
        ax.plot(epochs, new, "-", color="#c2410c", label="held out")
        ax.set(xlabel="epoch", xticks=range(2, 13, 2))
        ax.legend()
    axes[0].set(yscale="log", title="Loss")
    axes[1].set(ylim=(0.65, 1.01), title="Share of correct answers")


# %%
# *In training* is what ``train()`` returned. The other curves are from ``evaluate()``, after each epoch:

# figure: Two panels over 12 epochs. On the left, three losses on a logarithmic axis: the loss in training lies
#   highest, that of the training images in evaluation lowest at the end, and that of the held-out images between them. On
#   the right, the share of correct answers rises from 0.7 to 0.99 on the training images and to about 0.96 on
#   held-out ones.
draw_losses_of_each_epoch()

# sphinx_gallery_start_ignore
_running, _seen, _right_seen, _new, _right_new = map(
    torch.tensor, zip(*history, strict=True)
)
assert len(history) == 12 and (_running > _seen).all() and (_running > _new).all()
assert _new[-1] > _seen[-1] + 0.02 and abs(_new[1] - _seen[1]) < 0.03
assert _new[-1] - _seen[-1] > (_new - _seen)[:3].max() + 0.02  # the gap grows
assert min(_right_seen.min(), _right_new.min()) > 0.65
_near = 0.03 if device.type == "cpu" else 0.1  # other devices draw other dropout
assert abs(_right_seen[0] - 0.7) < _near and abs(_right_new[-1] - 0.96) < 0.02
assert _right_seen[-1] > 0.98
_net = nn.Sequential(*(m for m in make_model() if not isinstance(m, nn.Dropout)))
_optimizer = torch.optim.SGD(_net.to(device).parameters(), lr=0.1, momentum=0.9)
for _ in range(4):  # without dropout: the weights improve in the epoch
    assert train(_net, _optimizer) > evaluate(_net, train_set)[0]
# sphinx_gallery_end_ignore

# %%
# The loss in training is the highest, on images that the model has seen. It is measured with dropout on, and while the
# weights of the epoch still improve. To see overfitting, compare the other two: their gap grows.

# %%
# What people get wrong
# ---------------------
# **A line is missing, or softmax comes before CrossEntropyLoss.** These loops raise no error. A line is left out by a method
# that does nothing:


def train_six_epochs(model, leave_out=None):
    model.to(device).train()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    if leave_out:
        setattr(optimizer, leave_out, lambda: None)
    for _ in range(6):
        train(model, optimizer)
    return evaluate(model.eval(), held_out)


with_softmax = nn.Sequential(*make_model(), nn.Softmax(dim=1))
results = {
    "the loop above": train_six_epochs(make_model()),
    "no zero_grad()": train_six_epochs(make_model(), "zero_grad"),
    "no step()": train_six_epochs(make_model(), "step"),
    "softmax first": train_six_epochs(with_softmax),
}
for name, (mean, correct) in results.items():
    print(f"{name:<16} held out: loss {mean:<6.2f}  correct {correct:.2f}")

# varies: Without zero_grad the weights grow out of control, and the last bits of the arithmetic decide how far.
# sphinx_gallery_start_ignore
_right, _uncleared, _still, _softmax = results.values()
assert _right[0] < 0.25 and _right[1] > 0.92
assert _uncleared[0] > 10 and _uncleared[1] < 0.2
assert 2.2 < _still[0] < 2.4 and _still[1] < 0.2
assert 1.4612 < _softmax[0] < 2.2 and 0.3 < _softmax[1] < _right[1] - 0.1
_net = make_model().to(device)
_optimizer = torch.optim.SGD(_net.parameters(), lr=0.01)
_optimizer.zero_grad = lambda: None
for _ in range(6):
    train(_net, _optimizer)
assert 0.85 < evaluate(_net.eval(), held_out)[1] < 0.95
# sphinx_gallery_end_ignore

# %%
# Without ``zero_grad()``, each step uses the sum of all gradients so far, so this model is about as good as a guess. With a
# small learning rate you may miss it. Without ``step()``, the weights stay as they are.
#
# With softmax, the model learns slowly. ``CrossEntropyLoss`` expects logits, numbers of any size, and applies log-softmax
# itself. If the model returns probabilities, softmax is applied twice:

classes = torch.arange(10)
certain = nn.functional.one_hot(classes).float()
print(f"right and certain: loss {loss_function(certain, classes):.4f}")

undecided = torch.zeros(10, 10, requires_grad=True)
inputs = {"logits": undecided, "softmax": undecided.softmax(dim=1)}
for name, given in inputs.items():
    (gradient,) = torch.autograd.grad(loss_function(given, classes), undecided)
    print(f"undecided, {name:<8} norm of the gradient {gradient.norm():.4f}")

# sphinx_gallery_start_ignore
import math

assert abs(loss_function(certain, classes) - (math.log(math.e + 9) - 1)) < 1e-6
assert round(math.log(math.e + 9) - 1, 2) == 1.46
_scaled = (torch.randn(1000, 10) * 50).softmax(dim=1)
_best = nn.functional.cross_entropy(_scaled, _scaled.argmax(1), reduction="none")
assert (_best >= math.log(math.e + 9) - 1 - 1e-6).all()
(_straight,) = torch.autograd.grad(loss_function(undecided, classes), undecided)
torch.testing.assert_close(gradient, _straight / 10)
# sphinx_gallery_end_ignore

# %%
# After softmax over ten classes, this loss cannot go below 1.46, and an undecided model gets a tenth of the gradient.
#
# **The optimizer lacks the layer.** If you replace a layer after you made the optimizer, the new layer is not trained:

tuned = make_model().to(device)
optimizer = torch.optim.SGD(tuned.parameters(), lr=0.1)
tuned[3] = nn.Linear(32, 10, device=device)  # a new head

known = {id(p) for group in optimizer.param_groups for p in group["params"]}
print([name for name, p in tuned.named_parameters() if id(p) not in known])

# sphinx_gallery_start_ignore
_start = [p.detach().clone() for p in tuned.parameters()]
train(tuned, optimizer)
_same = [*map(torch.equal, _start, tuned.parameters())]
assert _same == [False, False, True, True]
assert [name for name, p in tuned.named_parameters() if id(p) not in known] == [
    "3.weight",
    "3.bias",
]
optimizer.zero_grad()
assert tuned[0].weight.grad is None and tuned[3].weight.grad is not None
_start = [p.detach().clone() for p in tuned.parameters()]
optimizer.add_param_group({"params": tuned[3].parameters()})
train(tuned, optimizer)
assert not any(map(torch.equal, _start, tuned.parameters()))
# sphinx_gallery_end_ignore

# %%
# Make the optimizer after the last change to the model, or call ``optimizer.add_param_group()``.
#
# **The wrong dtype.** Class numbers must be ``int64`` (*Long* in the messages) or ``uint8`` (*Byte*). NumPy arrays are often
# ``float64`` (*Double*), as are the pixels of this data set:

messages = []

for given, expected in [
    (images[:64], labels[:64].float()),
    (images[:64], labels[:64].int()),
    (torch.tensor(digits.data[:64]), labels[:64]),
]:
    try:
        loss_function(make_model()(given), expected)
    except RuntimeError as error:
        messages.append(str(error))
        print(f"images {given.dtype}, labels {expected.dtype}")
        print(f"  RuntimeError: {error}")

# sphinx_gallery_start_ignore
assert len(messages) == 3 and digits.data.dtype == "float64"
_scores, _refused = torch.randn(64, 10), []
for _dtype in (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64):
    try:
        _loss = loss_function(_scores, labels[:64].to(_dtype))
    except RuntimeError:
        _refused.append(_dtype)
    else:
        assert torch.equal(_loss, loss_function(_scores, labels[:64]))
assert _refused == [torch.int8, torch.int16, torch.int32]
assert messages[0] == "expected target dtype to be Long or Byte, but got Float"
assert "Long" in messages[1] and messages[1].endswith("Int")
assert "must have the same dtype" in messages[2] and "Double and Float" in messages[2]
assert torch.tensor(digits.data).float().dtype == torch.float32
assert labels.int().long().dtype == torch.int64
# sphinx_gallery_end_ignore

# %%
# Convert once, where you make the dataset: ``images.float()``, ``labels.long()``.
#
# **No model.eval() before the evaluation.** Dropout stays on, so each evaluation gives a different loss:

for training in (True, True, True, False):
    model.train(training)  # train(False) is eval()
    mean, correct = evaluate(model, held_out)
    print(f"training {training!s:<5}  loss {mean:.3f}  correct {correct:.3f}")

# sphinx_gallery_start_ignore
model.train()
_noisy = {evaluate(model, held_out)[0] for _ in range(3)}
assert len(_noisy) == 3 and min(_noisy) > mean + 0.02
model.eval()
assert len({evaluate(model, held_out) for _ in range(3)}) == 1


class _Cached(nn.Linear):  # caches a table in its first forward
    table = None

    def forward(self, x):
        if self.table is None:
            self.table = torch.ones(10, device=x.device)
        return super().forward(x) * self.table


_labels = torch.tensor([1, 2, -100, -100, -100, 3])
_outputs, _sum = torch.randn(6, 10), 0.0
for _part in (slice(0, 4), slice(4, 6)):
    _mean = loss_function(_outputs[_part], _labels[_part])
    _sum += _mean * (_labels[_part] != -100).sum()
assert torch.allclose(_sum / 3, loss_function(_outputs, _labels))
_net = _Cached(64, 10).to(device)
evaluate(_net.eval(), held_out)
_net.train()(images[:64].to(device)).sum().backward()  # so it still trains
_net = nn.Sequential(nn.Linear(2, 2), nn.Dropout(), nn.BatchNorm1d(2))
assert _net.train(False) is _net and not any(m.training for m in _net.modules())
# sphinx_gallery_end_ignore

# %%
# ``no_grad()`` alone leaves dropout on (:ref:`what eval() changes <sphx_glr_gallery_modes_train_and_eval.py>`). Call
# ``model.train()`` again before the next epoch.
#
# **A memory leak: total += loss.** Autograd records this addition, so ``total`` keeps the graphs of all 23 batches:

total = 0.0
for x, target in loader:
    total += loss_function(model(x.to(device)), target.to(device))
print(total)

# sphinx_gallery_start_ignore
_nodes = [total.grad_fn]
for _node in _nodes:
    _nodes += [n for n, _ in _node.next_functions if n is not None and n not in _nodes]
assert sum(_node.name() == "NllLossBackward0" for _node in _nodes) == len(loader) == 23
_total = 0.0
for _x, _target in loader:
    _total += loss_function(model(_x.to(device)), _target.to(device)).item()
assert isinstance(_total, float)
with torch.no_grad():
    assert model(images.to(device)).grad_fn is None
# sphinx_gallery_end_ignore

# %%
# Write ``total += loss.item()``, because a Python number keeps no graph. In an evaluation nothing calls ``backward()``, so
# what the graphs have saved stays as well: evaluate under ``no_grad``.

# %%
# Exercise
# --------
# You can call ``zero_grad()`` first in a step, before ``backward()``, before ``step()``, or last. Which of these train the
# same model? Decide with the lines that ``show`` printed.
#
# .. solution::
#
# All but one. Only ``backward()`` adds to ``.grad``, and only ``step()`` reads it. So you can clear the gradients after a
# ``step()`` and before the next ``backward()``. Between ``backward()`` and ``step()``, you remove the gradients before they are
# used.


def trained(place):
    model = make_model().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for x, target in loader:
        x, target = x.to(device), target.to(device)
        if place == "first":
            optimizer.zero_grad()
        loss = loss_function(model(x), target)
        if place == "before backward":
            optimizer.zero_grad()
        loss.backward()
        if place == "before step":
            optimizer.zero_grad()
        optimizer.step()
        if place == "last":
            optimizer.zero_grad()
    return nn.utils.parameters_to_vector(model.parameters()).detach()


# %%
# The weights after one epoch, compared bit by bit:

first = trained("first")
for place in ("before backward", "before step", "last"):
    same = torch.equal(trained(place), first)
    print(f"{place:<16} same weights as first: {same}")

# sphinx_gallery_start_ignore
_start = make_model().to(device).parameters()
_start = nn.utils.parameters_to_vector(_start).detach()
assert torch.equal(trained("before step"), _start) and not torch.equal(first, _start)
for _place in ("before backward", "last"):
    assert torch.equal(trained(_place), first)
torch.set_num_threads(_threads)
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_training_data_loading.py` and :ref:`sphx_glr_gallery_training_optimizers.py`, the two ends
#   of the loop.
# - :ref:`sphx_glr_gallery_training_who_calls_backward.py`: this loop in Trainer, Accelerate and Lightning.
# - :ref:`sphx_glr_gallery_errors_two_devices.py`, if a tensor is still on the CPU.
# - :ref:`sphx_glr_gallery_differentiation_accumulation.py`, one step for several batches.
# - In PyTorch's reference: `CrossEntropyLoss
#   <https://docs.pytorch.org/docs/stable/generated/torch.nn.CrossEntropyLoss.html>`__ and `torch.optim
#   <https://docs.pytorch.org/docs/stable/optim.html>`__.
