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
# You call ``net.eval()`` for validation, and it needs nearly as much memory as training. With a larger batch, it runs out of
# memory. To see why, add up what the graph keeps for backward, beyond weights, buffers and batch:

import matplotlib.pyplot as plt
import pandas as pd
import torch
from torch import nn
from torch.autograd.graph import saved_tensors_hooks


def build(images=32):
    torch.manual_seed(0)
    net = nn.Sequential(
        *(nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU()),
        *(nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU()),
        *(nn.MaxPool2d(2), nn.Flatten(), nn.Dropout(), nn.Linear(32 * 16 * 16, 10)),
    )
    return net, torch.randn(images, 3, 32, 32)


def measure_kept(call, images=32):
    net, batch = build(images)
    sizes = {}

    def pack(tensor):  # runs for each tensor that is saved for backward
        storage = tensor.untyped_storage()
        sizes[storage._cdata] = storage.nbytes()  # _cdata tells storages apart
        return tensor.detach()

    with saved_tensors_hooks(pack, lambda kept: kept):
        call(net, batch)
    for tensor in (batch, *net.parameters(), *net.buffers()):
        sizes.pop(tensor.untyped_storage()._cdata, None)
    return sum(sizes.values())


# %%
# Eight ways to call this network. Each gets a new network in training mode and a batch of 32 images:


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
kept = pd.Series({name: measure_kept(mode) for name, mode in modes.items()})

_, ax = plt.subplots(figsize=(7, 2.5), layout="constrained")
ax.bar_label(ax.barh(kept.index, kept / 1e6), fmt="%.1f", padding=4)
ax.set(xlabel="MB kept for backward", xlim=(0, 19))
ax.set_title("eval() keeps nearly all, no_grad() nothing")
ax.invert_yaxis()

# figure: Megabytes kept by the graph in eight modes. A call in training mode keeps 16.8, and so does one with detach.
#   A call in eval mode and training the first layer alone keep 15.7. Training the last layer alone keeps 1.0. no_grad,
#   inference_mode and all layers frozen keep 0.

# sphinx_gallery_start_ignore
_all = 16_777_600
assert kept["net(batch)"] == kept["net(batch).detach()"] == _all
assert 0.06 < 1 - kept["net.eval()(batch)"] / _all < 0.065
_none = ["under no_grad()", "under inference_mode()", "all layers frozen"]
assert not kept.loc[_none].to_numpy().any()
assert kept["only the last learns"] == 2**20
assert kept["only the first learns"] == _all - 2**20
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
# - With all layers frozen, nothing is recorded, because no weight requires grad, and neither does the batch.
# - If only the last layer learns, recording begins there. If only the first layer learns, nearly everything is kept, because
#   its gradient comes back through the other layers.

# %%
# Where the bytes are
# -------------------
# Measure the first layer alone, then the first two, and so on. The differences are what each layer adds:


def measure_by_layer(training):
    def kept_by_first(count):
        return measure_kept(lambda net, batch: net.train(training)[:count](batch))

    return {
        f"{number} {type(layer).__name__}": kept_by_first(number + 1)
        - kept_by_first(number)
        for number, layer in enumerate(build()[0])
    }


layers = pd.DataFrame(
    {"train()": measure_by_layer(True), "eval()": measure_by_layer(False)}
)

# sphinx_gallery_start_ignore
_train, _eval = layers["train()"], layers["eval()"]
_map = 32 * 16 * 32 * 32 * 4  # the result of the first convolution, in bytes
_expected = [0, _map, _map, 0, 2 * _map, 2 * _map, _map, 0, 0, _map // 2]
assert list(_eval) == _expected
assert list(_train - _eval) == [0, 128, 0, 0, 256, 0, 0, 0, _map // 2, 0]
assert _train.sum() == kept["net(batch)"] and _eval.sum() == kept["net.eval()(batch)"]
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
# Weights, gradients, the optimizer's state and results that live for a moment come on top: :ref:`a forecast of the whole step
# <sphx_glr_gallery_memory_forecast_a_training_step.py>`.

# %%
# What people get wrong
# ---------------------
# **detach() to free memory.** A detached tensor shares memory with the original. As long as a variable names the original,
# ``detach()`` frees neither that memory nor the graph:

from weakref import WeakSet

in_graph = WeakSet()  # forgets a tensor as soon as the graph frees it


def watch(tensor):
    saved = tensor.detach()
    in_graph.add(saved)
    return saved


net, batch = build()
with saved_tensors_hooks(watch, lambda saved: saved):
    output = net(batch)
detached = output.detach()

print("same memory:  ", detached.data_ptr() == output.data_ptr())
print("with both:    ", len(in_graph), "tensors kept by the graph")
del output
print("detached only:", len(in_graph), "tensors kept by the graph")

# sphinx_gallery_start_ignore
assert len(in_graph) == 0
with saved_tensors_hooks(watch, lambda saved: saved):
    output = net(batch)
detached = output.detach()
assert len(in_graph) > 10 and detached.data_ptr() == output.data_ptr()
_alive = {_t.untyped_storage()._cdata: _t.untyped_storage().nbytes() for _t in in_graph}
for _t in (batch, *net.parameters(), *net.buffers()):
    _alive.pop(_t.untyped_storage()._cdata, None)
assert sum(_alive.values()) == _all
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
    saved[number] = measure_kept(frozen_before(number))
    print(f"layers before {number} frozen: {saved[number]:>10,} bytes")

# sphinx_gallery_start_ignore
assert list(saved.values()) == sorted(saved.values(), reverse=True)
assert saved[0] == saved[1] == 16_777_600 and saved[9] == 2**20
assert saved[4] < saved[3] < 0.9 * saved[0]
assert kept["only the first learns"] > saved[3]


def _frozen_from(number):
    def mode(net, batch):
        net[number:].requires_grad_(False)
        return net(batch)

    return mode


for _number in range(1, 10):  # the last layers, as many as you like
    assert measure_kept(_frozen_from(_number)) == _all - 2**20
# sphinx_gallery_end_ignore

# %%
# Freezing layer 0 alone saves nothing, because its input is the batch, which exists anyway. A frozen layer in the middle often
# keeps its input: :ref:`which layers do <sphx_glr_gallery_modes_freezing.py>`.

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


most = measure_kept(optimize_the_image)
print(f"{most:,} of {kept['net(batch)']:,} bytes")
assert most == kept["net(batch)"] - layers["train()"]["9 Linear"]

# %%
# Predict it without the memory: FakeTensorMode
# ---------------------------------------------
# How much would a batch keep that is too large for your machine? Under ``FakeTensorMode``, tensors have a shape, a type and
# strides, but no values. Autograd records as before, so the same function works:

from torch._subclasses.fake_tensor import FakeTensorMode

for images in (32, 1024, 32768):
    with FakeTensorMode():
        predicted = measure_kept(modes["net(batch)"], images)
    print(f"{images:>6} images: {predicted / 1e9:>7.3f} GB")

# sphinx_gallery_start_ignore
assert predicted == 1024 * (16_777_600 - 384) + 384
for _name, _mode in modes.items():
    with FakeTensorMode():
        assert measure_kept(_mode) == kept[_name]
with FakeTensorMode():
    assert measure_kept(optimize_the_image) == most
_messages = []
real_net, _ = build()
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


def _run_lstm(*_):
    return nn.LSTM(16, 32)(torch.randn(4, 10, 16))


_real = measure_kept(_run_lstm)
with FakeTensorMode():
    assert measure_kept(_run_lstm) < _real / 3
assert "Please convert all Tensors to FakeTensors first" in _messages[0]
assert "_local_scalar_dense" in _messages[1] and "_local_scalar_dense" in _messages[2]
# sphinx_gallery_end_ignore

# %%
# For 32 images, this is the number that was measured. Build the network inside the block too. If you do not, PyTorch says
# *Please convert all Tensors to FakeTensors first*. ``item()`` and an ``if`` on a value raise an error with
# ``_local_scalar_dense``, because there are no values. The workspace of an ``nn.LSTM`` is missing, so predict no LSTM this way.

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_modes_train_and_eval.py` and :ref:`sphx_glr_gallery_modes_freezing.py`, what these switches
#   do beside memory.
# - :doc:`Which switch do I want? </guide/which-switch>`
# - In PyTorch's reference: `Locally disabling gradient computation
#   <https://docs.pytorch.org/docs/stable/notes/autograd.html#locally-disabling-gradient-computation>`__ and `Fake
#   tensor <https://docs.pytorch.org/docs/stable/user_guide/torch_compiler/torch.compiler_fake_tensor.html>`__.
