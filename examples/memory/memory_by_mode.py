r"""
Which mode saves memory, eval or no_grad?
=========================================

.. index::
   single: out of memory in validation, although eval() was called
   single: does detach() free memory
   single: FakeTensorMode

.. in-short::

   Write ``with torch.no_grad():`` around validation, so that nothing is kept for backward. ``model.eval()`` alone still records
   the graph. ``detach()`` on the result comes too late for the peak. Freezing the last layers keeps most of the graph, so
   freeze from the input on.
"""

# %%
# What the graph keeps in eight modes
# -----------------------------------
# Training fits into memory, but validation with ``eval()`` runs out of it. So add up what the graph keeps for backward, beyond
# weights, buffers and batch:

import pandas as pd
import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.autograd.graph import saved_tensors_hooks


def build(images=32):
    torch.manual_seed(0)
    net = nn.Sequential(
        *(nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU()),
        *(nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU()),
        *(nn.MaxPool2d(2), nn.Flatten(), nn.Dropout(), nn.Linear(32 * 16 * 16, 10)),
    )
    return net, torch.randn(images, 3, 32, 32)


def measure_kept_mb(net, batch):
    sizes = {}

    def pack(tensor):
        storage = tensor.untyped_storage()
        sizes[storage.data_ptr()] = storage.nbytes()
        return tensor.detach()

    with saved_tensors_hooks(pack, lambda kept: kept):
        net(batch)
    for tensor in (batch, *net.parameters(), *net.buffers()):
        sizes.pop(tensor.untyped_storage().data_ptr(), None)
    return sum(sizes.values()) / 1e6


net, batch = build()
print(f"train():           {measure_kept_mb(net, batch):4.1f} MB")
net.eval()
print(f"eval():            {measure_kept_mb(net, batch):4.1f} MB")
with torch.no_grad():
    print(f"eval(), no_grad(): {measure_kept_mb(net, batch):4.1f} MB")

# sphinx_gallery_start_ignore
assert (
    measure_kept_mb(*build()) == 16.7776 and 15.7 < measure_kept_mb(net, batch) < 15.8
)
# sphinx_gallery_end_ignore

# %%
# .. how-measured:: A meter with hooks counts what nodes save, and notes when they free it; weights and the batch are left out.

from weakref import WeakSet

import matplotlib.pyplot as plt


def storage_of(tensor):
    return tensor.untyped_storage()._cdata  # private: a fake storage has no address


class Kept:
    """What a node keeps in place of a tensor: it lives as long as the node keeps it."""

    def __init__(self, tensor):
        self.tensor = tensor.detach()


class SavedBytesMeter(saved_tensors_hooks):
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


def measure_mode(mode, images=32):
    net, batch = build(images)
    meter = SavedBytesMeter(net, batch)
    with meter:
        result = mode(net, batch)
    held = meter.held()
    del result
    return {"most held": meter.peak, "held after": held}


def plot_kept(table):
    _, ax = plt.subplots(figsize=(7, 2.5), layout="constrained")
    bars = ax.barh(table.index, table["most held"] / 1e6, label="most during the call")
    ax.bar_label(bars, fmt="%.1f", padding=6)
    style = {"color": "#c2410c", "markersize": 5, "clip_on": False, "zorder": 3}
    ax.plot(table["held after"] / 1e6, table.index, "D", label="left after it", **style)
    ax.set(xlabel="MB kept for backward", xlim=(0, 20))
    ax.set_title("eval() keeps nearly all, no_grad() nothing")
    ax.legend(loc="center", bbox_to_anchor=(0.6, 0.6))
    ax.invert_yaxis()


# %%
# More ways to call this network. Each gets a new network in training mode and a batch of 32 images:


def body_frozen(net, batch):
    net[:9].requires_grad_(False)
    return net(batch)


def rest_frozen(net, batch):
    net[1:].requires_grad_(False)
    return net(batch)


modes = {
    "net(batch)": lambda net, batch: net(batch),
    "net.eval()(batch)": lambda net, batch: net.eval()(batch),
    "under no_grad()": torch.no_grad()(lambda net, batch: net(batch)),
    "under inference_mode()": torch.inference_mode()(lambda net, batch: net(batch)),
    "net(batch).detach()": lambda net, batch: net(batch).detach(),
    "all layers frozen": lambda net, batch: net.requires_grad_(False)(batch),
    "only the last learns": body_frozen,
    "only the first learns": rest_frozen,
}

kept = pd.DataFrame({name: measure_mode(mode) for name, mode in modes.items()}).T
plot_kept(kept)

# figure: Megabytes kept by the graph in eight modes. A bar shows the most during the call, a diamond what is left after it.
#   A call in training mode keeps 16.8, one in eval mode and training the first layer alone 15.7. With detach the bar is 16.8
#   and the diamond is at 0. Training the last layer alone keeps 1.0. no_grad, inference_mode and all layers frozen keep 0.

# sphinx_gallery_start_ignore
_most, _after = kept["most held"], kept["held after"]
_all = 16_777_600
assert _most["net(batch)"] == _all
assert 0.06 < 1 - _most["net.eval()(batch)"] / _all < 0.065
_none = ["under no_grad()", "under inference_mode()", "all layers frozen"]
assert not kept.loc[_none].to_numpy().any()
assert kept.loc["net(batch).detach()"].tolist() == [_all, 0]
assert (_most == _after).sum() == 7
assert _most["only the last learns"] == 2**20
assert _most["only the first learns"] == _all - 2**20
assert not any(modes[_name](*build()).requires_grad for _name in _none)
assert modes["net.eval()(batch)"](*build()).requires_grad
# sphinx_gallery_end_ignore

# %%
# - ``net.eval()`` records a graph as before. It saves 6 percent, because the mask of dropout and the statistics of the batch
#   fall away.
# - Under ``no_grad()`` and ``inference_mode()`` nothing is recorded. You still need ``eval()`` for right results: :doc:`which
#   switch do I want? </guide/which-switch>`
# - ``detach()`` is called when the forward pass has saved everything. Then the graph is freed, because nothing refers to the
#   result any more.
# - With all layers frozen, and a batch of data, nothing is recorded. If only the last layer learns, recording begins there.
# - If only the first layer learns, nearly everything is kept, because its gradient comes back through the other layers.

# %%
# Where the bytes are
# -------------------
# Called layer by layer, the network shows which layer keeps how much. A tensor counts for the layer that saves it first.
#
# .. how-measured:: This code reads the meter before and after each layer.


def measure_by_layer(training):
    net, h = build()
    net.train(training)
    meter, bytes_of = SavedBytesMeter(net, h), {}
    with meter:
        for number, layer in enumerate(net):
            before = meter.held()
            h = layer(h)
            bytes_of[f"{number} {type(layer).__name__}"] = meter.held() - before
    return bytes_of


# %%
# Bytes that each layer adds:

layers = pd.DataFrame(
    {"train()": measure_by_layer(True), "eval()": measure_by_layer(False)}
)

# sphinx_gallery_start_ignore
_train, _eval = layers["train()"], layers["eval()"]
_map = 32 * 16 * 32 * 32 * 4  # the result of the first convolution, in bytes
_expected = [0, _map, _map, 0, 2 * _map, 2 * _map, _map, 0, 0, _map // 2]
assert list(_eval) == _expected
assert list(_train - _eval) == [0, 128, 0, 0, 256, 0, 0, 0, _map // 2, 0]
assert _train.sum() == _most["net(batch)"] and _eval.sum() == _most["net.eval()(batch)"]
assert _map == 2**21
_pooled = nn.MaxPool2d(2)(torch.ones(1, 1, 2, 2, requires_grad=True)).grad_fn
assert _pooled._saved_result1.dtype == torch.int64
# sphinx_gallery_end_ignore
layers.map("{:,}".format).rename_axis(columns="bytes")

# %%
# Each ReLU keeps its result. The first convolution needs the batch, and the second one what ReLU keeps already. Batch
# normalization keeps its input, and in training a mean and an inverse standard deviation for each channel, so 128 bytes for 16
# channels. The pool keeps the positions of the largest values, as ``int64``. Dropout keeps its mask in training. The linear
# layer keeps its input.
#
# The numbers are those of the graph, on the CPU. Weights, gradients, the optimizer's state and results that live for a moment
# come on top: :ref:`a forecast of the whole step <sphx_glr_gallery_memory_forecast_a_training_step.py>`.

# %%
# Predict it without the memory
# -----------------------------
# How much would a batch keep that is too large for your machine? Under ``FakeTensorMode`` the weights and the batch have only a
# shape, a type and strides. Operations compute these, and autograd records as before:

for images in (32, 1024, 32768):
    with FakeTensorMode():
        predicted = measure_mode(modes["net(batch)"], images)["most held"]
    print(f"{images:>6} images: {predicted / 1e9:>7.3f} GB")

# sphinx_gallery_start_ignore
assert predicted == 1024 * (16_777_600 - 384) + 384
for _name, _mode in modes.items():
    with FakeTensorMode():
        assert measure_mode(_mode) == kept.loc[_name].to_dict()
# sphinx_gallery_end_ignore

# %%
# For each of the eight modes, the prediction for 32 images is the measured number to the byte. Expect two errors, because a
# weight made outside the mode is real, and because there are no values to read:

real_net, _ = build()
with FakeTensorMode():
    try:
        real_net(torch.randn(32, 3, 32, 32))
    except AssertionError as error:
        print("AssertionError:", str(error).partition(" Found in")[0])
    try:
        torch.randn(3).sum().item()
    except RuntimeError as error:
        print(f"{type(error).__name__}: {error}")

# sphinx_gallery_start_ignore
_messages = []
with FakeTensorMode():
    for _call in (
        lambda: real_net(torch.randn(32, 3, 32, 32)),
        lambda: torch.randn(3).sum().item(),
        lambda: bool(torch.randn(3).sum() > 0),
    ):
        try:
            _call()
        except (AssertionError, RuntimeError) as error:
            _messages.append(str(error))
assert len(_messages) == 3
assert "Please convert all Tensors to FakeTensors first" in _messages[0]
assert "_local_scalar_dense" in _messages[1] and "_local_scalar_dense" in _messages[2]
# sphinx_gallery_end_ignore

# %%
# ``_local_scalar_dense`` is the operator behind ``item()``. An ``if`` on such a value raises the same. ``torch._subclasses``
# begins with an underscore, so it may change.

# %%
# What people get wrong
# ---------------------
# **detach() to free memory.** A detached tensor shares memory with the original, so ``detach()`` frees nothing as long as a
# variable names the original:

net, batch = build()
meter = SavedBytesMeter(net, batch)
with meter:
    output = net(batch)
detached = output.detach()

print("same memory: ", detached.data_ptr() == output.data_ptr())
print("with both:   ", meter.held(), "bytes held")
del output
print("detached only:", meter.held(), "bytes held")

# sphinx_gallery_start_ignore
assert meter.held() == 0
with meter:
    output = net(batch)
detached = output.detach()
assert meter.held() == 16_777_600 and detached.data_ptr() == output.data_ptr()
# sphinx_gallery_end_ignore

# %%
# **Freezing the wrong end.** Recording begins at the first layer that learns, because all that follows must pass the gradient
# back. So freeze from the input on. The layers of this network have the numbers 0 to 9:


def frozen_before(number):
    def mode(net, batch):
        net[:number].requires_grad_(False)
        return net(batch)

    return mode


saved = {}
for number in (0, 1, 3, 4, 9):
    saved[number] = measure_mode(frozen_before(number))["most held"]
    print(f"layers before {number} frozen: {saved[number]:>10,} bytes")

# sphinx_gallery_start_ignore
assert list(saved.values()) == sorted(saved.values(), reverse=True)
assert saved[0] == saved[1] == 16_777_600 and saved[9] == 2**20
assert saved[4] < saved[3] < 0.9 * saved[0]
assert _most["only the first learns"] > saved[3]


def _frozen_from(number):
    def mode(net, batch):
        net[number:].requires_grad_(False)
        return net(batch)

    return mode


for _number in range(1, 10):  # the last layers, as many as you like
    assert measure_mode(_frozen_from(_number))["most held"] == _all - 2**20
# sphinx_gallery_end_ignore

# %%
# Freezing layer 0 alone saves nothing, because its input is the batch, which exists anyway. Training layer 0 alone keeps more
# than training everything from layer 3 on. A frozen layer in the middle often keeps its input: :ref:`which layers do
# <sphx_glr_gallery_modes_freezing.py>`.

# %%
# Exercise
# --------
# You optimize an image and leave the network as it is: all weights are frozen, and the batch requires grad. How much does the
# graph keep: nothing, as in the row "all layers frozen", or nearly everything? Predict it before you measure.
#
# .. solution::
#
# Nearly everything, because the gradient passes through all layers. The convolutions and the batch normalizations keep their
# input although they are frozen. Only the linear layer drops its input.


def optimize_the_image(net, batch):
    net.requires_grad_(False)
    return net(batch.requires_grad_())


most = measure_mode(optimize_the_image)["most held"]
print(f"{most:,} of {kept['most held']['net(batch)']:,} bytes")
assert most == kept["most held"]["net(batch)"] - layers["train()"]["9 Linear"]

# sphinx_gallery_start_ignore
with FakeTensorMode():
    assert measure_mode(optimize_the_image)["most held"] == most
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_modes_train_and_eval.py` and :ref:`sphx_glr_gallery_modes_freezing.py`, what these switches
#   do beside memory.
# - :doc:`Which switch do I want? </guide/which-switch>`
# - In PyTorch's reference: `Locally disabling gradient computation
#   <https://docs.pytorch.org/docs/stable/notes/autograd.html#locally-disabling-gradient-computation>`__ and `Fake
#   tensor <https://docs.pytorch.org/docs/stable/user_guide/torch_compiler/torch.compiler_fake_tensor.html>`__.
