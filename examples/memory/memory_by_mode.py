r"""
Which mode saves memory: eval, no_grad, detach, frozen layers
=============================================================

The tensors that a graph saves for backward are the part of the memory that grows with the batch. This page runs one
small convolutional network in eight ways and measures what its graph keeps. Beside each measurement stands a
prediction that was made without computing anything: ``FakeTensorMode`` runs the same code on tensors that have a
shape and no data.
"""

# %%
# A network and a meter
# ---------------------
# ``saved_tensors_hooks`` calls the meter for each tensor that a node saves. What the meter returns lives as long as
# the node keeps it, so a ``WeakSet`` knows at any time what is held. Weights, buffers and the batch exist anyway
# and are left out.

import textwrap
from contextlib import nullcontext
from weakref import WeakSet

import matplotlib.pyplot as plt
import pandas as pd
import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.autograd.graph import saved_tensors_hooks


def storage_of(tensor):
    return tensor.untyped_storage()._cdata  # private: a fake storage has no address


class Kept:
    def __init__(self, tensor):
        self.tensor = tensor.detach()


class Meter(saved_tensors_hooks):
    def __init__(self, net, batch):
        exists = [*net.parameters(), *net.buffers(), batch]
        self.exists = {storage_of(tensor) for tensor in exists}
        self.alive, self.peak = WeakSet(), 0
        super().__init__(self.pack, lambda kept: kept.tensor)

    def pack(self, tensor):
        kept = Kept(tensor)
        self.alive.add(kept)
        self.peak = max(self.peak, self.held())
        return kept

    def held(self):
        tensors = [kept.tensor for kept in self.alive]
        sizes = {storage_of(t): t.untyped_storage().nbytes() for t in tensors}
        return sum(size for key, size in sizes.items() if key not in self.exists)


# %%
# The network has a body of two convolutions and a head. Called layer by layer in training mode, it shows where the
# bytes are. A storage counts for the layer that saves it first.


def build(images=32):
    torch.manual_seed(0)
    net = nn.Sequential(
        *(nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU()),
        *(nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU()),
        *(nn.MaxPool2d(2), nn.Flatten(), nn.Dropout(), nn.Linear(32 * 16 * 16, 10)),
    )
    return net, torch.randn(images, 3, 32, 32)


def by_layer(mode):
    net, h = build()
    net.train(mode)
    meter, bytes_of = Meter(net, h), {}
    with meter:
        for number, layer in enumerate(net):
            before = meter.held()
            h = layer(h)
            bytes_of[f"{number} {type(layer).__name__}"] = meter.held() - before
    return bytes_of


layers = pd.DataFrame({"train()": by_layer(True), "eval()": by_layer(False)})
# sphinx_gallery_start_ignore
_train, _eval = layers["train()"], layers["eval()"]
_map = 32 * 16 * 32 * 32 * 4  # the result of the first convolution, in bytes
_expected = [0, _map, _map, 0, 2 * _map, 2 * _map, _map, 0, 0, _map // 2]
assert list(_eval) == _expected
assert list(_train - _eval) == [0, 128, 0, 0, 256, 0, 0, 0, _map // 2, 0]
# sphinx_gallery_end_ignore

layers.map("{:,}".format).rename_axis(columns="bytes saved by")

# %%
# Each ReLU keeps its result. The first convolution needs only the batch, which exists; the second one needs what ReLU
# keeps already. A batch norm keeps its input, and in training the mean and the spread of each channel on top: 128
# bytes for 16 channels. The pool keeps the positions of the largest values, as int64. Dropout keeps its mask in
# training, and nothing in evaluation.

# %%
# Eight ways to run it
# --------------------
# Each way gets a fresh network in training mode, and returns what the caller would hold on to.


@torch.no_grad()
def no_grad(net, batch):
    return net(batch)


@torch.inference_mode()
def inference_mode(net, batch):
    return net(batch)


def frozen_before(number):
    def mode(net, batch):
        net[:number].requires_grad_(False)
        return net(batch)

    return mode


def first_layer_only(net, batch):
    net[1:].requires_grad_(False)
    return net(batch)


modes = {
    "train()": lambda net, batch: net.train()(batch),
    "eval()": lambda net, batch: net.eval()(batch),
    "no_grad()": no_grad,
    "inference_mode()": inference_mode,
    "net(batch).detach()": lambda net, batch: net(batch).detach(),
    "all frozen": lambda net, batch: net.requires_grad_(False)(batch),
    "only the head trains": frozen_before(9),
    "only layer 0 trains": first_layer_only,
}

# %%
# ``measure`` takes two readings: the most that was held at any moment, and what is held after the call, with the
# result still there. With ``fake=True`` the same lines run under ``FakeTensorMode``. Every tensor made there has a
# shape, a type and strides, and no memory; operations compute those three and nothing else. Autograd records as ever.


def measure(mode, images=32, fake=False):
    with FakeTensorMode() if fake else nullcontext():
        net, batch = build(images)
        meter = Meter(net, batch)
        with meter:
            result = mode(net, batch)
        held = meter.held()
        del result
        return meter.peak, held


rows = {name: measure(mode) + measure(mode, fake=True) for name, mode in modes.items()}
columns = ["most held", "held after", "most held, predicted", "held after, predicted"]
table = pd.DataFrame(rows, index=columns).T
assert table["most held"].equals(table["most held, predicted"])
assert table["held after"].equals(table["held after, predicted"])
table.map("{:,}".format).rename_axis(columns="bytes")

# %%
# The predictions are right to the byte. So you can learn what a batch would keep that is too large for your memory.

for images in (32, 1024, 32768):
    most, _ = measure(modes["train()"], images, fake=True)
    print(f"{images:>6} images: {most / 1e9:>8.3f} GB predicted")

# sphinx_gallery_start_ignore
assert table["most held"]["train()"] == _train.sum() == 16_777_600
assert most == 1024 * (16_777_600 - 384) + 384
assert table["most held"]["eval()"] == _eval.sum()
assert 0.06 < 1 - _eval.sum() / _train.sum() < 0.065
assert table["most held"]["only layer 0 trains"] > 0.9 * _train.sum()
for _mode in ("no_grad()", "inference_mode()", "all frozen"):
    assert (table.loc[_mode] == 0).all()
assert table.loc["net(batch).detach()"].tolist() == [16_777_600, 0] * 2
assert (table["most held"] == table["held after"]).sum() == 7
# sphinx_gallery_end_ignore

# %%
# What the table says
# -------------------

# figure: Megabytes kept by the graph in eight modes, two bars for each: the most at any moment, and after the call.
#   train, eval and training layer 0 alone keep about 16 in both. With detach the most is 17 and nothing is left.
#   Training the head alone keeps 1. no_grad, inference_mode and all frozen keep 0. Diamonds mark the predictions, all
#   of them at the end of their bar.
megabytes = table / 1e6
_, ax = plt.subplots(figsize=(7, 4.2), layout="constrained")
place = range(len(table))
shift = 0.2
for column, side, colour, hatch in (
    ("most held", -shift, "#2563eb", ""),
    ("held after", shift, "#c2410c", "///"),
):
    ys = [y + side for y in place]
    style = {"color": colour, "hatch": hatch, "edgecolor": "white", "label": column}
    ax.barh(ys, megabytes[column], 2 * shift, **style)
    predicted = megabytes[column + ", predicted"]
    ax.plot(predicted, ys, "D", color="#1e293b", markersize=4, clip_on=False)
ax.set(xlabel="MB")
ax.set_yticks(place, table.index)
ax.set_title("What the graph keeps: measured (bars), predicted (diamonds)")
ax.legend(loc="center right", bbox_to_anchor=(1, 0.66))
ax.invert_yaxis()

# %%
# - **eval()** records as before. It does without Dropout's mask and the statistics of the batch norms: 6 percent
#   less.
# - **no_grad** and **inference_mode** record nothing. They are what saves memory in validation.
# - **detach** comes too late: when it is called, the forward pass has saved everything. Afterwards the graph goes,
#   because nobody holds it any more.
# - **Frozen** weights make a difference where no gradient has to pass. With all of them frozen nothing is recorded.
#   If only the head trains, recording starts there, and the head keeps its input.
# - **Training layer 0 alone** keeps nearly everything: its gradient comes back through all the layers after it.
#
# The numbers are those of the graph. Gradients, the states of an optimizer and results that live for a moment come on
# top.

# %%
# What people get wrong
# ---------------------
# **detach() to cut memory.** A detached tensor shares the memory of the original and frees nothing while anyone holds
# the original: the original has the graph.

net, batch = build()
meter = Meter(net, batch)
with meter:
    output = net(batch)
detached = output.detach()

print("same memory:       ", detached.data_ptr() == output.data_ptr())
print(f"both there:         {meter.held():,} bytes held")
del output
print(f"only the detached:  {meter.held():,} bytes held")

# sphinx_gallery_start_ignore
with meter:
    output = net(batch)
detached = output.detach()
assert meter.held() == 16_777_600 and detached.data_ptr() == output.data_ptr()
del output
assert meter.held() == 0
# sphinx_gallery_end_ignore

# %%
# **Freezing the wrong end.** To save memory, freeze from the input on. The first layer that trains decides where
# recording starts. What comes after it has to pass the gradient back, frozen or not.

saved = {}
for number in (0, 1, 3, 4, 9):
    saved[number], _ = measure(frozen_before(number))
    print(f"layers before {number} frozen: {saved[number]:>10,} bytes")

# sphinx_gallery_start_ignore
assert (
    sorted(saved.values(), reverse=True) == list(saved.values()) and saved[9] == 2**20
)
assert saved[0] == saved[1] == 16_777_600 and saved[3] < 0.9 * saved[0]
# sphinx_gallery_end_ignore

# %%
# Compare with the last row of the table: training layer 0 alone keeps more than training everything from layer 4 on.

# %%
# **Real tensors under FakeTensorMode, and fake values.** Weights made before the mode began are real and do not
# mix. And no value may be asked for, since there is none.

real_net, _ = build()
with FakeTensorMode():
    try:
        real_net(torch.randn(32, 3, 32, 32))
    except AssertionError as error:
        message = str(error).partition(" Found in")[0]
        print("AssertionError:", textwrap.fill(message, 70))
        assert "Please convert all Tensors to FakeTensors first" in message
    try:
        torch.randn(3).sum().item()
    except RuntimeError as error:
        print(f"{type(error).__name__}: {error}")
        assert "_local_scalar_dense" in str(error)

# %%
# ``_local_scalar_dense`` is the operator behind ``item()``. Code whose branches depend on values cannot be predicted
# this way. Note the underscore in ``torch._subclasses``: the module is not a public interface, and may change.

# %%
# Exercise
# --------
# An image is optimised, the network stays as it is: all weights are frozen, and the batch requires a gradient. How
# much does the graph keep: nothing, as in the row "all frozen", or nearly everything? Predict it before you
# measure.
#
# .. solution::
#
# Nearly everything. The gradient has to pass through all the layers, and only what served the weights' gradients is
# left out: here that is the input of the linear layer.


def optimise_the_image(net, batch):
    net.requires_grad_(False)
    return net(batch.requires_grad_())


most, _ = measure(optimise_the_image)
predicted, _ = measure(optimise_the_image, fake=True)
print(f"{most:,} bytes, predicted {predicted:,}")
assert most == predicted

# sphinx_gallery_start_ignore
assert most == table["most held"]["train()"] - _train["9 Linear"]
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - Before: :ref:`sphx_glr_gallery_memory_what_is_saved.py`, operation by operation.
# - Next: :ref:`sphx_glr_gallery_memory_checkpointing.py`, less memory in training itself.
# - :ref:`sphx_glr_gallery_modes_train_and_eval.py` and :ref:`sphx_glr_gallery_modes_freezing.py`, what these switches
#   do beside memory.
# - :doc:`Which switch do I want? </guide/which-switch>`
# - In PyTorch's reference: `Locally disabling gradient computation
#   <https://docs.pytorch.org/docs/stable/notes/autograd.html#locally-disabling-gradient-computation>`__ and `Fake
#   tensor <https://docs.pytorch.org/docs/stable/user_guide/torch_compiler/torch.compiler_fake_tensor.html>`__.
