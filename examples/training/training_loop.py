r"""
The PyTorch training loop, and what each line does to the graph
===============================================================

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

   The forward pass builds the graph. ``zero_grad()`` removes the gradients of the step before, ``backward()`` computes new
   ones, and ``step()`` changes the weights. For an evaluation, call ``model.eval()`` and compute under
   ``torch.inference_mode()``.
"""

# %%
# The data
# --------
# 1797 handwritten digits of 8 by 8 pixels, which come with scikit-learn. A *dataset* answers ``len()`` and ``[i]``.
# The part that is held out is never used to compute a gradient.

from itertools import islice
from weakref import WeakSet

import matplotlib.pyplot as plt
import pandas as pd
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.autograd.graph import saved_tensors_hooks
from torch.utils.data import DataLoader, TensorDataset, random_split

# sphinx_gallery_start_ignore
torch.set_num_threads(
    1
)  # the tensors are small: on a busy machine two threads wait for each other
# sphinx_gallery_end_ignore
digits = load_digits()
images = torch.tensor(digits.data, dtype=torch.float32) / 16
labels = torch.tensor(digits.target)

torch.manual_seed(0)
train_set, held_out = random_split(TensorDataset(images, labels), [1437, 360])
image, label = train_set[0]

print(f"{len(train_set)} images to train on, {len(held_out)} held out")
print("one of them:", tuple(image.shape), image.dtype, "and", label.dtype)

# sphinx_gallery_start_ignore
assert len(images) == 1797 and image.shape == (64,) and label.dtype == torch.int64
assert images.min() == 0 and images.max() == 1
assert not set(train_set.indices) & set(held_out.indices)
# sphinx_gallery_end_ignore

# %%
# A *loader* makes batches of it, here in a new order in each epoch.

loader = DataLoader(train_set, batch_size=64, shuffle=True)
batches = [x for x, target in loader]

print(len(batches), "batches, the last with", len(batches[-1]), "images")
print("requires_grad:", batches[0].requires_grad)

# sphinx_gallery_start_ignore
assert len(batches) == len(loader) == 23 and batches[-1].shape == (29, 64)
assert not batches[0].requires_grad
assert not torch.equal(batches[0], next(iter(loader))[0])
# sphinx_gallery_end_ignore

# %%
# Images and labels require no gradient: the loss is differentiated with respect to the weights only.

# %%
# What one step records
# ---------------------
# A device, a model, a loss function, and an optimizer that knows the model's parameters. ``device`` is the GPU or other
# accelerator if there is one, and otherwise the CPU. Move the model there once, and each batch in the loop.
# ``model.to(device)`` changes the model itself. ``x.to(device)`` returns a tensor on the device and leaves ``x`` as it is (if
# ``x`` is there already, it returns ``x``). The two
# lines of the forward pass build the graph.

device = torch.accelerator.current_accelerator(check_available=True)
device = device or torch.device("cpu")


def make_model():
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Linear(64, 32), nn.ReLU(), nn.Dropout(0.2), nn.Linear(32, 10)
    )


model = make_model().to(device)
loss_function = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

x, target = next(iter(loader))
x, target = x.to(device), target.to(device)
output = model(x)
loss = loss_function(output, target)

# graph: loss -- After the forward pass: four leaves, and the tensors that were saved on the way

print(f"loss = {loss.item():.3f}")

# sphinx_gallery_start_ignore
assert torch.accelerator.is_available() or device == torch.device("cpu")
_net = nn.Linear(2, 2)
assert _net.to("meta") is _net and _net.weight.is_meta
_tensor = torch.ones(2)
assert not _tensor.is_meta and _tensor.to("meta").is_meta
assert _tensor.to("cpu") is _tensor
assert len(list(model.parameters())) == 4 and abs(loss - 2.30) < 0.1
assert all(p.is_leaf and p.requires_grad for p in model.parameters())
assert [*map(id, optimizer.param_groups[0]["params"])] == [*map(id, model.parameters())]
_second = output.grad_fn
_first = next(node for node, _ in _second.next_functions[1][0].next_functions if node)
_first = _first.next_functions[0][0]
assert _first.name() == _second.name() == "AddmmBackward0"
assert _first._saved_mat2 is None and torch.equal(_first._saved_mat1, x)
assert _second._saved_mat2.data_ptr() == model[3].weight.data_ptr()
del _first, _second
# sphinx_gallery_end_ignore

# %%
# The leaves are the weights and biases of the two linear layers. The optimizer holds the same four tensors. It
# does not use the graph: ``backward`` writes to their ``.grad``, and ``step`` reads it there. Nothing else connects the two.
#
# Each linear layer saves its input, for the gradient of its weight. The second also saves its weight, ``mat2``, for
# the gradient that goes on to the first layer. The first does not: before it there are only images.
#
# Two steps, looked at after each line. Five things are counted:
#
# - the nodes within reach of ``output`` or ``loss``,
# - the tensors that nodes keep for backward, with the :ref:`meter of another page
#   <sphx_glr_gallery_graphs_graph_lifetime.py>`,
# - the parameters that have a gradient,
# - the writes to the first weight since the start, from its version counter,
# - the parameters for which the optimizer keeps a momentum.
#
# .. how-measured:: A hook counts the saved tensors, a walk counts the nodes, and look makes a row of the table.

alive = WeakSet()


class Saved:
    def __init__(self, tensor):
        self.tensor = tensor.detach()
        alive.add(self)


def metered():
    return saved_tensors_hooks(Saved, lambda saved: saved.tensor)


def walk(root):
    found = [root]
    for node in found:  # the list grows while it is read
        for edge, _ in node.next_functions:
            if edge is not None and edge not in found:
                found.append(edge)
    return found


rows, written = {}, model[0].weight._version


def look(line, tensor):
    rows[f"{len(rows) // 5 + 1}. {line}"] = {
        "nodes": len(walk(tensor.grad_fn)),
        "saved": len(alive),
        ".grad": sum(p.grad is not None for p in model.parameters()),
        "writes": model[0].weight._version - written,
        "momenta": len(optimizer.state),
    }


# %%
# The lines of the step are those of any training loop. ``look`` stands between them.

for x, target in islice(loader, 2):
    x, target = x.to(device), target.to(device)
    with metered():
        output = model(x)
        look("output = model(x)", output)
        loss = loss_function(output, target)
        look("loss = loss_function(output, target)", loss)
    optimizer.zero_grad()
    look("optimizer.zero_grad()", loss)
    loss.backward()
    look("loss.backward()", loss)
    optimizer.step()
    look("optimizer.step()", loss)

table = pd.DataFrame(rows).T

# sphinx_gallery_start_ignore
assert len(rows) == 10 and len(alive) == 0
assert table["nodes"].tolist() == [10, 12, 12, 12, 12] * 2
assert table["saved"].tolist() == [5, 9, 9, 0, 0] * 2
assert table[".grad"].tolist() == [0, 0, 0, 4, 4, 4, 4, 0, 4, 4]
assert table["writes"].tolist() == [0] * 4 + [1] * 5 + [2]
assert table["momenta"].tolist() == [0] * 4 + [4] * 6

_loss = loss_function(model(x), target)
_loss.backward(retain_graph=True)
optimizer.step()
_message = ""
try:
    _loss.backward()
except RuntimeError as error:
    _message = str(error)
assert "modified by an inplace operation" in _message and "[32, 10]" in _message
# sphinx_gallery_end_ignore
table.rename_axis(index=None, columns="step and line")

# %%
# Read what changes from line to line:
#
# - The forward pass adds nodes and saved tensors, and touches nothing else.
# - ``zero_grad()`` removes the gradients of the step *before*. The graph does not notice.
# - ``backward()`` fills ``.grad`` and frees the saved tensors. The nodes stay until the name ``loss`` gets the next
#   loss.
# - ``step()`` writes to the weights, in place and unrecorded, as in the :ref:`fit by hand
#   <sphx_glr_gallery_training_fit_by_hand.py>`. The first one also makes a momentum for each parameter. From then
#   on, the graph and the gradients belong to the old values of the weights. A second ``backward`` through this graph would be
#   :ref:`refused <sphx_glr_gallery_errors_modified_in_place.py>`, even with ``retain_graph=True``: the saved weight
#   has been written to.

# %%
# The whole loop
# --------------
# An epoch is one pass over the training data. ``train()`` switches dropout on, and ``evaluate`` switches it off. The
# evaluation needs no graph, so it runs in ``inference_mode``.


def train(model, optimizer, clear=True):
    model.train()
    total = 0.0
    for x, target in loader:
        x, target = x.to(device), target.to(device)
        output = model(x)
        loss = loss_function(output, target)
        if clear:
            optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(x)
    return total / len(train_set)


@torch.inference_mode()
def evaluate(model, dataset, training=False):
    model.train(training)  # train(False) is eval()
    total = correct = 0
    for x, target in DataLoader(dataset, batch_size=256):
        x, target = x.to(device), target.to(device)
        output = model(x)
        total += loss_function(output, target).item() * len(x)
        correct += (output.argmax(dim=1) == target).sum().item()
    return total / len(dataset), correct / len(dataset)


# %%
# ``loss_function`` returns the mean over a batch, and the last batch is smaller than the others. Therefore each mean is
# multiplied by the size of its batch, and the sum is divided once, at the end. Two more lines are common in ``train``:
# :ref:`clipping <sphx_glr_gallery_training_gradient_clipping.py>` between ``backward()`` and ``step()``, and the step of a
# :ref:`learning rate schedule <sphx_glr_gallery_training_learning_rate_schedules.py>` after ``optimizer.step()``.

model = make_model().to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
rows = []

for _ in range(12):
    running = train(model, optimizer)
    on_train, on_held = (evaluate(model, data) for data in (train_set, held_out))
    rows.append((running, on_train[0], on_held[0], on_train[1], on_held[1]))

names = ["in training", "loss, trained on", "loss, held out"]
names += ["correct, trained on", "correct, held out"]
history = pd.DataFrame(rows, columns=names, index=range(1, 13))

# sphinx_gallery_start_ignore
assert history.iloc[-1, 4] > 0.93 and history.iloc[-1, 3] > 0.98
assert (history.iloc[:, 0] > history.iloc[:, 1]).all()
assert (history.iloc[:, 0] > history.iloc[:, 2]).all()
assert history.iloc[-1, 2] > history.iloc[-1, 1] + 0.02
assert abs(history.iloc[1, 2] - history.iloc[1, 1]) < 0.03
# sphinx_gallery_end_ignore
shown = history.loc[[1, 2, 4, 8, 12]].rename_axis(index=None, columns="epoch")
shown.map("{:.2f}".format)

# %%
# The column *in training* is the mean of the losses that the loop computed on its way. The other columns come from
# ``evaluate``, after the epoch.

# figure: Two panels over 12 epochs. On the left, three losses on a logarithmic axis: the loss in training lies
#   highest, that of the training images in evaluation lowest, and that of the held-out images between them. On the
#   right, the share of correct answers rises from 0.7 to 0.99 on the training images and to about 0.96 on held-out
#   ones.
fig, axes = plt.subplots(1, 2, figsize=(7, 3.2), layout="constrained")
for name, ax, label, style, color in zip(
    names,
    axes[[0, 0, 0, 1, 1]],
    ["in training", "trained on", "held out", "trained on", "held out"],
    [":", "--", "-", "--", "-"],
    ["#64748b", "#2563eb", "#c2410c", "#2563eb", "#c2410c"],
    strict=True,
):
    ax.plot(history.index, history[name], style, color=color, label=label)
    ax.legend()
axes[0].set(xlabel="epoch", xticks=range(2, 13, 2), yscale="log")
axes[0].set_title("Loss")
axes[1].set(xlabel="epoch", xticks=range(2, 13, 2), ylim=(0.65, 1.01))
axes[1].set_title("Share of correct answers")

# sphinx_gallery_start_ignore
assert len(history) == 12 and history.iloc[:, 3:].min().min() > 0.65
_near = 0.03 if device.type == "cpu" else 0.1  # other devices draw other dropout
assert abs(history.iloc[0, 3] - 0.7) < _near and abs(history.iloc[-1, 4] - 0.96) < 0.02
# sphinx_gallery_end_ignore

# %%
# The loss in training is the highest of the three, on data that the model has seen. It is measured with dropout on,
# and while the weights are still on their way. To see whether the model does worse on new data, compare the other
# two: there the gap grows.

# %%
# What people get wrong
# ---------------------
# **Forgetting** ``zero_grad``, and **softmax before** ``CrossEntropyLoss``. No error in either case. Six epochs of
# each, beside the right loop:

# varies: Without zero_grad the weights swing out of control, and the last bits of the arithmetic decide how far.


def result(model, clear=True):
    model.to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for _ in range(6):
        train(model, optimizer, clear)
    return [f"{number:.2f}" for number in evaluate(model, held_out)]


results = {
    "as above": result(make_model()),
    "no zero_grad": result(make_model(), clear=False),
    "softmax first": result(nn.Sequential(*make_model(), nn.Softmax(dim=1))),
}
mistakes = pd.DataFrame(results, index=["loss, held out", "correct, held out"]).T

# sphinx_gallery_start_ignore
_right, _uncleared, _softmax = (tuple(map(float, r)) for r in results.values())
assert _right[0] < 0.25 and _right[1] > 0.92
assert _uncleared[0] > 10 and _uncleared[1] < 0.3
assert 1.4612 < _softmax[0] < 2.2 and _softmax[1] < _right[1] - 0.1
# sphinx_gallery_end_ignore
mistakes.rename_axis(index=None, columns="loop")

# %%
# Without ``zero_grad`` each step follows the sum of all gradients so far, and the answers are as good as a guess.
#
# With softmax the network learns, slowly. ``CrossEntropyLoss`` expects scores of any size and applies the logarithm
# of softmax itself. From numbers between 0 and 1 it takes a softmax a second time: an answer that is right and
# certain still has a loss of 1.46, and an undecided model gets a tenth of the gradient.

classes = torch.arange(10)
certain = nn.functional.one_hot(classes).float()
print(f"right and certain: loss {loss_function(certain, classes):.4f}")

undecided = torch.zeros(10, 10, requires_grad=True)
for name, given in {"scores": undecided, "softmax": undecided.softmax(dim=1)}.items():
    (gradient,) = torch.autograd.grad(loss_function(given, classes), undecided)
    print(f"undecided, {name:<8} norm of the gradient {gradient.norm():.4f}")

# sphinx_gallery_start_ignore
import math

assert abs(loss_function(certain, classes) - (math.log(math.e + 9) - 1)) < 1e-6
(_straight,) = torch.autograd.grad(loss_function(undecided, classes), undecided)
torch.testing.assert_close(gradient, _straight / 10)
# sphinx_gallery_end_ignore

# %%
# **The wrong dtype.** The labels are class numbers, of type ``int64``, which the messages call Long (``uint8``, Byte, works,
# too). What comes from
# NumPy or from a table is often ``float64`` (Double), as these images are.

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
_scores = torch.randn(64, 10)
_byte = loss_function(_scores, labels[:64].to(torch.uint8))
assert torch.equal(_byte, loss_function(_scores, labels[:64]))
assert "Long" in messages[0] and messages[0].endswith("Float")
assert "Long" in messages[1] and messages[1].endswith("Int")
assert "must have the same dtype" in messages[2] and "Double and Float" in messages[2]
# sphinx_gallery_end_ignore

# %%
# Convert once, where the dataset is made: ``images.float()``, ``labels.long()``.
#
# **Evaluating in training mode.** Dropout goes on dropping, and each evaluation gives another answer:

for training in (True, True, True, False):
    mean, correct = evaluate(model, held_out, training)
    print(f"model.training {training!s:<5}  loss {mean:.3f}  correct {correct:.3f}")

# sphinx_gallery_start_ignore
_noisy = {evaluate(model, held_out, True)[0] for _ in range(3)}
assert len(_noisy) == 3 and min(_noisy) > mean + 0.02
assert len({evaluate(model, held_out) for _ in range(3)}) == 1
# sphinx_gallery_end_ignore

# %%
# What else differs is on the page on :ref:`train() and eval() <sphx_glr_gallery_modes_train_and_eval.py>`.
#
# **Adding up losses as tensors.** ``total += loss`` is a recorded addition, and ``total`` then holds the graphs of the whole
# epoch. In training ``backward`` has freed what they saved. In an evaluation without ``no_grad`` or ``inference_mode``,
# nothing has.


def epoch_sum(training):
    model, total = make_model().to(device), 0.0
    for x, target in loader:
        x, target = x.to(device), target.to(device)
        with metered():
            loss = loss_function(model(x), target)
        if training:
            loss.backward()
        total += loss
    return len(walk(total.grad_fn)), len(alive)


for name, training in {"training": True, "evaluation": False}.items():
    nodes, saved = epoch_sum(training)
    print(f"{name:<10}  held by total: {nodes} nodes, {saved} saved tensors")

# sphinx_gallery_start_ignore
assert (nodes, saved) == (211, 207) and epoch_sum(True) == (211, 0)
assert 207 == 23 * 9 and 211 == 23 * (12 - 4 + 1) + 4
with metered(), torch.inference_mode():
    _out = model(images.to(device))
assert _out.grad_fn is None and len(alive) == 0
# sphinx_gallery_end_ignore

# %%
# Write ``total += loss.item()``, as above: a Python number keeps no graph alive.

# %%
# Exercise
# --------
# ``zero_grad()`` can stand first in the step, before ``backward``, before ``step``, or last. Which of these train the
# same model? Decide with the columns of the first table.
#
# .. solution::
#
# All but one. Only ``backward`` adds to ``.grad``, and only ``step`` reads it, so the clearing may stand anywhere
# *after* a ``step`` and *before* the next ``backward``. Between ``backward`` and ``step`` it removes the gradients
# unread. The first and the last place have one advantage: the old gradients are gone while the forward pass fills the
# memory.


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
    print(f"{place:<16} same weights as first: {torch.equal(trained(place), first)}")

# sphinx_gallery_start_ignore
_start = make_model().to(device).parameters()
_start = nn.utils.parameters_to_vector(_start).detach()
assert torch.equal(trained("before step"), _start) and not torch.equal(first, _start)
for _place in ("before backward", "last"):
    assert torch.equal(trained(_place), first)
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - Before: :ref:`sphx_glr_gallery_training_fit_by_hand.py`, the same without an optimizer.
# - Next: :ref:`sphx_glr_gallery_training_custom_losses.py`, what keeps the graph of a loss.
# - :ref:`sphx_glr_gallery_training_data_loading.py` and :ref:`sphx_glr_gallery_training_optimizers.py`, the two ends
#   of the loop.
# - :ref:`sphx_glr_gallery_errors_two_devices.py`, if a tensor stayed behind.
# - :ref:`sphx_glr_gallery_differentiation_accumulation.py`, one step for several batches.
# - In PyTorch's reference: `CrossEntropyLoss
#   <https://docs.pytorch.org/docs/stable/generated/torch.nn.CrossEntropyLoss.html>`__ and `torch.optim
#   <https://docs.pytorch.org/docs/stable/optim.html>`__.
