r"""
Forecast the GPU memory of a training step
==========================================

.. index::
   ! single: CUDA out of memory in training
   ! single: CUDA out of memory in the second step
   single: AdamW; GPU memory
   single: how much GPU memory does training need

.. in-short::

   Training in float32 with AdamW takes 16 bytes a parameter: 4 for the weight, 4 for its gradient, 8 for the optimizer's state.
   That is ``16 * sum(p.numel() for p in net.parameters())``; a frozen parameter takes only 4. Add the activations, which grow
   with the batch: for the model below, 325 MiB for each sequence of 512 tokens. For a tiny batch add 4 more bytes a parameter,
   because ``AdamW.step()`` needs temporary memory on a GPU. For a large batch the sum is a little too high.
"""

# %%
# The problem: will it fit?
# -------------------------
# You want to know before you rent a card, or you got *CUDA out of memory* and ask what to change. For a GPT of any size,
# :ref:`a calculator <sphx_glr_gallery_memory_how_much_memory.py>` has the answer. This page forecasts a model of your own, and
# shows which change helps at which moment, without a GPU. A transformer of 6 layers:

import contextlib
import gc
import sys
from functools import partial

import pandas as pd
import torch
import torch.nn.functional as F
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode

LAYERS, WIDTH, HEADS, VOCABULARY, LENGTH = 6, 768, 12, 30_522, 512
MIB = 2**20


class Transformer(nn.Module):
    def __init__(self, layers=LAYERS, width=WIDTH, heads=HEADS, vocabulary=VOCABULARY):
        super().__init__()
        look = {"activation": "gelu", "batch_first": True, "norm_first": True}
        look |= {"dropout": 0.0, "bias": False}
        self.embed = nn.Embedding(vocabulary, width)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(width, heads, 4 * width, **look)
            for _ in range(layers)
        )
        self.head = nn.Linear(width, vocabulary, bias=False)

    def forward(self, words, call=lambda layer, x: layer(x)):
        x = self.embed(words)
        for layer in self.layers:
            x = call(layer, x)
        return self.head(x)


# %%
# .. how-measured:: A log of each storage that appears and is freed. The parts, the table and the plot are made from it.

import weakref

import matplotlib.pyplot as plt
import numpy as np
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.checkpoint import checkpoint


class StorageLog(TorchDispatchMode):
    """Notes when a storage appears, when it is freed, and to which part it belongs."""

    def __init__(self):
        super().__init__()
        self.changes, self.number, self.part, self.lines = [], {}, {}, []
        self.since = 0

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        if operation is torch.ops.prim.device.default:  # most calls only ask for it
            return args[0].fake_device
        result = operation(*args, **(kwargs or {}))
        for tensor in tree_leaves(result):
            if isinstance(tensor, torch.Tensor):
                self.appears(tensor.untyped_storage())
        return result

    def appears(self, storage):
        key = storage._cdata
        if key not in self.number:
            self.number[key] = len(self.changes)
            self.changes.append((len(self.changes), storage.nbytes()))
            weakref.finalize(storage, self.disappears, key)

    def disappears(self, key):
        number = self.number.pop(key)
        self.changes.append((number, -self.changes[number][1]))

    def watch(self, net, optimizer):
        self.net, self.optimizer = net, optimizer

    def mark(self, line):
        weights = list(self.net.parameters())
        state = [t for kept in self.optimizer.state.values() for t in kept.values()]
        grads = [weight.grad for weight in weights if weight.grad is not None]
        parts = {"weights": weights, "state": state, "gradients": grads}
        for part, tensors in parts.items():
            for tensor in tensors:
                self.part[self.number[tensor.untyped_storage()._cdata]] = part
        self.lines.append((line, len(self.changes)))

    def held(self):
        """Bytes in use after each change, by part."""
        of = np.array(
            [self.part.get(number, "activations") for number, _ in self.changes]
        )
        sizes = np.array([size for _, size in self.changes])
        return pd.DataFrame({part: np.cumsum(sizes * (of == part)) for part in PARTS})

    def begin(self):
        self.since = len(self.changes)

    def peak(self):
        """The most bytes in use at once, since the log began or since begin()."""
        return int(np.cumsum([size for _, size in self.changes])[self.since :].max())

    def by_line(self):
        held, rows, start = self.held(), [], self.lines[0][1]
        total = held.sum(axis=1)
        for line, end in self.lines[1:]:
            most = total[max(start - 1, 0) : end].max()
            rows.append({"line": line, **held.iloc[end - 1], "peak": most})
            start = end
        return pd.DataFrame(rows).set_index("line").rename_axis(None)


PARTS = {
    "weights": "#64748b",
    "state": "#7c3aed",
    "gradients": "#047857",
    "activations": "#c2410c",
}


def draw(log):
    held = log.held()[log.lines[0][1] :] / MIB
    total = held.sum(axis=1)
    # of each few changes, the one where most is in use
    bins = np.array_split(np.arange(len(held)), 220)
    held = held.iloc[[places[total.iloc[places].argmax()] for places in bins]]
    ax = plt.figure(figsize=(7, 2.9), layout="constrained").subplots()
    ax.stackplot(held.index, held.T, labels=held.columns, colors=PARTS.values())
    for (_, start), (line, end) in zip(log.lines, log.lines[1:], strict=False):
        name = line.split(", ")[1]
        if name in ("forward", "backward", "step"):
            ax.text((start + end) / 2, -90, name, ha="center", va="top", fontsize=9)
        if name in ("loss", "backward", "zero_grad"):
            ax.axvline(end, ymax=0.6, color="#94a3b8", lw=0.8, ls="--")
    middle = log.lines[5][1]
    for place in (total[:middle].idxmax(), total[middle:].idxmax()):
        text = f"{total[place]:,.0f}"
        ax.text(place, total[place] + 60, text, ha="center", fontsize=9)
    ax.set(xticks=[], ylabel="MiB in use", xlim=held.index[[0, -1]], ylim=(0, 4200))
    ax.set_title("First and second training step, 8 sequences")
    ax.legend(*(side[::-1] for side in ax.get_legend_handles_labels()), fontsize=8)


# %%
# The training loop. ``mark`` notes in the log which line has run:


def train(net, optimizer, words, mark):
    """Two steps; mark(line) is called after each line that matters."""
    mark("start")
    for step in ("first", "second"):
        logits = net(words)
        mark(f"{step}, forward")
        loss = F.cross_entropy(logits.flatten(0, 1), words.flatten())
        del logits
        mark(f"{step}, loss")
        loss.backward()
        mark(f"{step}, backward")
        optimizer.step()
        mark(f"{step}, step")
        optimizer.zero_grad()
        mark(f"{step}, zero_grad")


# %%
# Two training steps with 8 sequences of 512 tokens, on *fake tensors*, which have a shape and no data:

with FakeTensorMode(), StorageLog() as log:
    net = Transformer()
    optimizer = torch.optim.AdamW(net.parameters(), foreach=True)
    words = torch.zeros(8, LENGTH, dtype=torch.long)
    log.watch(net, optimizer)
    train(net, optimizer, words, log.mark)
# figure: Memory in use over two training steps, stacked. Weights are a flat band of 341 MiB. Activations rise in forward to
#   a spike at the loss and fall in backward, while gradients grow. The first optimizer step adds the state, so that the spike
#   of the second step reaches 3,619 MiB, after 2,937 MiB in the first.
draw(log)

# %%
# ``foreach=True`` is what AdamW usually chooses by itself on a GPU. *Activations* are all other memory: mostly what the graph
# keeps for backward, and also the logits and temporary results. In MiB, after each line of the loop:

table = log.by_line() / MIB
# sphinx_gallery_start_ignore
_count = sum(weight.numel() for weight in net.parameters())
_tensors = len(list(net.parameters()))
_bytes = log.by_line()
assert 89.3e6 < _count < 89.5e6
for _part, _size in {
    "weights": 4 * _count,
    "gradients": 4 * _count,
    "state": 8 * _count + 4 * _tensors,
}.items():
    assert _bytes[_part].max() == _size
# sphinx_gallery_end_ignore
table.round(0).astype(int).rename_axis(columns="step, line")

# %%
# *Peak* is the most that is in use while the line runs. Forward adds what backward will need. Backward frees it, and leaves a
# gradient for each weight. The first ``step()`` allocates the state, which stays.
#
# Where the peak is
# -----------------
# A model of 341 MiB needs far more to train:

peak = table["peak"]
weights, first, second = table["weights"].max(), peak[:5].max(), peak[5:].max()
print(f"peak {second:,.0f} MiB, {second / weights:.1f} times the weights")

# %%
# AdamW makes its state in its first ``step()``, so from the second step on, the state is there while the activations are:

state = table["state"].max()
print(f"first {first:,.0f} MiB + state {state:,.0f} MiB = second {second:,.0f} MiB")

# sphinx_gallery_start_ignore
assert abs(first + state - second) < 1e-6
assert (
    peak[:5].idxmax() == "first, backward" and peak[5:].idxmax() == "second, backward"
)
assert round(weights) == 341 and round(first) == 2937 and round(second) == 3619
# sphinx_gallery_end_ignore

# %%
# The peak comes when backward begins, because the loss kept one tensor of the logits' size, and its backward makes two more.
# But with one sequence the peak is in ``optimizer.step()``, where ``foreach`` makes a temporary tensor for each weight, all at
# the same time.
#
# .. how-measured:: One training step of a model whose optimizer has its state. The arguments are the changes tried below.


def adamw(weights):
    return torch.optim.AdamW(weights, foreach=True)


def checkpointed(layer, x):
    return checkpoint(layer, x, use_reentrant=False, preserve_rng_state=False)


autocast = partial(torch.autocast, "cpu", torch.bfloat16)


class Offload(torch.autograd.graph.saved_tensors_hooks):
    """As save_on_cpu: a saved tensor leaves, and backward allocates it again."""

    host = peak = 0

    def __init__(self):
        super().__init__(self.leave, self.come_back)

    def leave(self, tensor):
        Offload.host += tensor.nbytes
        Offload.peak = max(Offload.peak, Offload.host)
        return tensor.shape, tensor.dtype

    def come_back(self, packed):
        tensor = torch.empty(packed[0], dtype=packed[1])
        Offload.host -= tensor.nbytes
        return tensor


class Ready:
    """A model whose optimizer has its state already, as from the second step on."""

    device, tools = "cpu", (FakeTensorMode, StorageLog)

    def __init__(self, optimizer=adamw, at_once=True, dtype=torch.float32):
        self.at_once, (self.mode, self.log) = at_once, (make() for make in self.tools)
        with self.mode, self.log:
            torch.set_default_dtype(dtype)
            with torch.device(self.device):
                self.net = Transformer()
            torch.set_default_dtype(torch.float32)
            self.weights, self.hooks = list(self.net.parameters()), []
            # one optimizer, or one for each weight, which is called in backward
            groups = (
                [self.weights] if at_once else [[weight] for weight in self.weights]
            )
            self.optimizers = [optimizer(group) for group in groups]
            self.fill_gradients()
            for one in self.optimizers:
                self.update(one)
            if not at_once:
                for weight, one in zip(self.weights, self.optimizers, strict=True):
                    hook = partial(self.drop, one)
                    self.hooks.append(weight.register_post_accumulate_grad_hook(hook))

    def fill_gradients(self):
        for weight in self.weights:
            weight.grad = torch.zeros_like(weight)

    def update(self, optimizer, set_to_none=True):
        optimizer.step()
        optimizer.zero_grad(set_to_none)

    def drop(self, optimizer, weight):
        self.update(optimizer)

    def peak(
        self,
        batch,
        parts=1,
        call=lambda layer, x: layer(x),
        around=contextlib.nullcontext,
        set_to_none=True,
    ):
        """The most that one step has in use, in MiB."""
        with self.mode, self.log:
            if not set_to_none:
                self.fill_gradients()
            words = torch.zeros(batch, LENGTH, dtype=torch.long, device=self.device)
            self.log.begin()
            for some in words.chunk(parts):
                with around():
                    logits = self.net(some, call)
                    loss = F.cross_entropy(logits.flatten(0, 1), some.flatten()) / parts
                    del logits
                loss.backward()
            if self.at_once:
                self.update(self.optimizers[0], set_to_none)
        self.net.zero_grad()
        return self.log.peak() / MIB


def peaks(levers, batch, kind=Ready):
    return {
        lever: kind(**model).peak(batch, **step)
        for lever, (model, step, price) in levers.items()
    }


def as_table(levers, batch):
    prices = {lever: price for lever, (_, _, price) in levers.items()}
    columns = {"peak, MiB": peaks(levers, batch), "price": prices}
    return pd.DataFrame(columns).rename_axis(columns="lever")


# %%
# For a batch of 1 and of 8:

parameters = sum(weight.numel() for weight in net.parameters())
ready = Ready()
plain = {1: ready.peak(1), 8: second}
for batch, most in plain.items():
    each = most * MIB / parameters
    print(f"batch {batch}: {most:,.0f} MiB, {each:.1f} bytes a parameter")

# sphinx_gallery_start_ignore
# the rule of 16 bytes is too low for one sequence, and not for eight; foreach takes 4 more
_rule = {batch: 16 * parameters / MIB + batch * 324.5 for batch in plain}
assert _rule[1] < plain[1] and _rule[8] > plain[8]
assert abs(plain[1] * MIB / parameters - 20) < 0.01
assert 1363 < 16 * parameters / MIB < 1365
# sphinx_gallery_end_ignore

# %%
# Where the numbers come from
# ---------------------------
# Weights, gradients and state follow from the number of parameters. For activations, count what the nodes of one layer keep for
# each token: 16 vectors of the model's width, and a few single numbers. Add the input of the head, which is one more vector.
# Then add 3 tensors of the logits' size, for the moment when backward begins.

tokens = 8 * LENGTH
layers = LAYERS * (16 * WIDTH + HEADS + 4)  # 4: two norms keep a mean and a deviation
head = WIDTH + 3 * VOCABULARY
activations = 4 * tokens * (layers + head)
formula = (12 * parameters + activations) / MIB
print(f"by formula {formula:,.1f} MiB, by the log {second:,.1f} MiB")
print(f"one sequence: {activations / 8 / MIB:.1f} MiB")
print(f"of this, 3 times the logits: {3 * VOCABULARY * 4 * LENGTH / MIB:.1f} MiB")

# sphinx_gallery_start_ignore
assert abs(formula - second) < 0.05
assert round(activations / 8 / MIB) == 325
for _batch, _found in plain.items():
    _moments = 12 * parameters + activations / 8 * _batch, 20 * parameters
    assert abs(_found - max(_moments) / MIB) < 0.05
# sphinx_gallery_end_ignore

# %%
# The formula has 12 bytes a parameter instead of 16, because ``zero_grad()`` removed the gradients. So the peak is the larger
# of two moments:
#
# - when backward begins: 12 bytes a parameter and all activations;
# - in ``optimizer.step()``: 20 bytes a parameter, without activations.
#
# Which lever moves the peak
# --------------------------
# A lever is a change that may lower the peak. It helps only if less memory is in use at that moment. With 8 sequences, the peak
# is when backward begins:

levers = {
    # the model's change, the step's change, the price
    "as above": ({}, {}, ""),
    "zero_grad(set_to_none=False)": ({}, {"set_to_none": False}, "the gradients stay"),
    "autocast, bfloat16": ({}, {"around": autocast}, "fewer digits"),
    "half the batch, twice": ({}, {"parts": 2}, "two smaller passes"),
    "checkpoint each layer": ({}, {"call": checkpointed}, "a second forward"),
    "save_on_cpu": ({}, {"around": Offload}, "host memory, copies"),
    "weights in bfloat16": ({"dtype": torch.bfloat16}, {}, "small updates are lost"),
}

large = as_table(levers, 8)
# sphinx_gallery_start_ignore
_peak = large["peak, MiB"]
assert abs(_peak["zero_grad(set_to_none=False)"] - second - 4 * parameters / MIB) < 1e-3
assert abs(_peak["weights in bfloat16"] / second - 0.5) < 0.001
assert 0.85 < _peak["autocast, bfloat16"] / second < 0.95
_half = 16 * parameters + activations / 2
assert abs(_peak["half the batch, twice"] - _half / MIB) < 0.1
# half the activations, and no gradients: still not half the peak
assert 12 * parameters / MIB + activations / 2 / MIB > 1.25 * second / 2
assert (_peak.iloc[2:] < second).all()
# one sequence has its peak in step(), also with a checkpoint
_kept = 4 * LENGTH * (LAYERS * WIDTH + head)
_moment = 12 * parameters + 8 * _kept
assert abs(_peak["checkpoint each layer"] - _moment / MIB) < 1
assert 12 * parameters + _kept < 0.95 * plain[1] * MIB
assert 2.35 < Offload.peak / 2**30 < 2.45 and Offload.host == 0
assert 12 * tokens * VOCABULARY > 0.9 * (
    _peak["checkpoint each layer"] * MIB - 12 * parameters
)
# sphinx_gallery_end_ignore
large.round().astype({"peak, MiB": int})

# %%
# Half the batch leaves more than half of the peak, because the weights and the state stay as they are, and the gradients of the
# first half are there during the second. After checkpointing, most of the activations are the 3 tensors of the logits' size.
# ``save_on_cpu`` is imitated, and would need 2.4 GiB of host memory.
#
# With 1 sequence, the peak is in ``optimizer.step()``. So checkpointing changes nothing there, but these do:

AdamW, SGD = torch.optim.AdamW, partial(torch.optim.SGD, foreach=True)
others = {
    "as above": ({}, {}, ""),
    "AdamW(foreach=False)": (
        {"optimizer": partial(AdamW, foreach=False)},
        {},
        "slower",
    ),
    "AdamW(fused=True)": (
        {"optimizer": partial(AdamW, fused=True)},
        {},
        "not everywhere",
    ),
    "step in backward": ({"at_once": False}, {}, "no clipping by the norm"),
    "SGD, no momentum": ({"optimizer": SGD}, {}, "another optimizer"),
}
small = as_table(others, 1)
# sphinx_gallery_start_ignore
_peak = small["peak, MiB"]
assert (_peak.iloc[1:] < plain[1]).all()
assert _peak["AdamW(fused=True)"] < 16 * parameters / MIB + 2
assert _peak["step in backward"] < 16 * parameters / MIB
assert abs(_peak["SGD, no momentum"] - 8 * parameters / MIB) < 2
# sphinx_gallery_end_ignore
small.round().astype({"peak, MiB": int})

# %%
# A step in backward updates each weight as soon as its gradient is there, and drops the gradient. ``fused=True`` needs no
# temporary tensors, but some types and devices lack it.
#
# How sure is the forecast?
# -------------------------
# A smaller model is trained twice: on fake tensors, and on real ones under PyTorch's profiler, which notes what is allocated on
# the CPU.
#
# .. how-measured:: The trace of the profiler is read here, and saved tensor hooks count what the graph keeps.

import json
import pathlib
import tempfile

from torch.autograd.graph import saved_tensors_hooks
from torch.distributed._tools.mem_tracker import MemTracker
from torch.profiler import profile, record_function


def objects():
    net = Transformer(layers=2, width=64, heads=4, vocabulary=1000)
    optimizer = torch.optim.AdamW(net.parameters(), foreach=True)
    return net, optimizer, torch.zeros(4, 32, dtype=torch.long)


def profiled(net, optimizer, words):
    """Bytes in use on the CPU: after each line, and at the peak."""

    def mark(line):
        with record_function(line):
            pass

    before = sum(weight.nbytes for weight in net.parameters()) + words.nbytes
    with profile(profile_memory=True) as profiler:
        train(net, optimizer, words, mark)
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "trace.json")
        profiler.export_chrome_trace(str(path))
        events = json.loads(path.read_text())["traceEvents"]
    ends = {e["name"]: e["ts"] for e in events if e.get("cat") == "user_annotation"}
    changes = sorted(
        (e["ts"], e["args"]["Bytes"]) for e in events if e.get("name") == "[memory]"
    )
    times = np.array([time for time, _ in changes])
    held = before + np.cumsum([0, *(size for _, size in changes)])
    after = {line: held[np.searchsorted(times, end)] for line, end in ends.items()}
    return after, held.max()


def saved(net, words):
    """Bytes that the graph saves beyond the weights, and the loss."""
    sizes = {}

    def note(tensor):
        sizes[tensor.untyped_storage()._cdata] = tensor.untyped_storage().nbytes()
        return tensor

    with saved_tensors_hooks(note, lambda tensor: tensor):
        loss = F.cross_entropy(net(words).flatten(0, 1), words.flatten())
    for weight in net.parameters():
        sizes.pop(weight.untyped_storage()._cdata, None)
    return sum(sizes.values()) + loss.nbytes


# %%
# The forecast, the profiler and the hooks agree to the byte:

# sphinx_gallery_start_ignore
import warnings

# It comes once in a process, and torch 2.11 gives it even where there is one cycle only.
warnings.filterwarnings("ignore", message="Warning: Profiler clears events")
# sphinx_gallery_end_ignore
with FakeTensorMode(), StorageLog() as small_log:
    fake = objects()
    small_log.watch(*fake[:2])
    train(*fake, small_log.mark)

forecast = small_log.by_line()
held = forecast.drop(columns="peak").sum(axis=1)
real, real_peak = profiled(*objects())
print("held after each line:", all(real[line] == held[line] for line in held.index))
print(f"peak: forecast {small_log.peak():,}, profiler {real_peak:,}")
kept, (net, _, words) = forecast["activations"]["first, loss"], objects()
print(f"kept by the graph: log {kept:,}, hooks {saved(net, words):,}")

# sphinx_gallery_start_ignore
assert small_log.peak() == real_peak
assert len(held) == 10 and all(real[line] == held[line] for line in held.index)
assert kept == saved(net, words)
with FakeTensorMode(), MemTracker() as _tracker:
    _net, _optimizer, _words = objects()
    _tracker.track_external(_net, _optimizer)
    _loss = F.cross_entropy(_net(_words).flatten(0, 1), _words.flatten())
    _loss.backward()
    _optimizer.step()
    (_found,) = _tracker.get_tracker_snapshot("peak").values()
assert (
    _found["Total"]
    == forecast["peak"].iloc[:5].max()
    == forecast["peak"]["first, step"]
)
# a frozen parameter: no gradient, no state
_net, _optimizer, _words = objects()
_frozen = list(_net.layers[0].parameters())
for _weight in _frozen:
    _weight.requires_grad_(False)
F.cross_entropy(_net(_words).flatten(0, 1), _words.flatten()).backward()
_optimizer.step()
assert all(_weight.grad is None for _weight in _frozen)
assert not any(_weight in _optimizer.state for _weight in _frozen)
assert len(_optimizer.state) == len(list(_net.parameters())) - len(_frozen)
_layer = {}
for _dropout, _others in ((0.0, 0.0), (0.1, 0.0), (0.1, 0.1)):
    with FakeTensorMode(), StorageLog() as _log:
        _look = {"activation": "gelu", "batch_first": True, "norm_first": True}
        _net = nn.TransformerEncoderLayer(768, 12, 3072, _others, bias=False, **_look)
        _net.self_attn.dropout = _dropout
        _words = torch.zeros(8, LENGTH, WIDTH)
        _before = sum(_size for _, _size in _log.changes)
        _result = _net(_words)
        _now = sum(_size for _, _size in _log.changes)
        _layer[_dropout, _others] = (_now - _before) / MIB
assert [round(_size) for _size in _layer.values()] == [192, 504, 576]
_q = torch.empty(8, HEADS, LENGTH, WIDTH // HEADS, device="meta")
_efficient = torch.ops.aten._scaled_dot_product_efficient_attention
_found = _efficient(_q, _q, _q, None, True, dropout_p=0.1)
assert sum(_result.nbytes for _result in _found) < 1.1 * _q.nbytes
_raised = []
_reads = [torch.Tensor.item, lambda x: 1 if x > 0 else 0, lambda x: x[x > 0]]
with FakeTensorMode():
    for _read in _reads:
        try:
            _read(nn.Linear(2, 1)(torch.zeros(1, 2)).detach())
        except RuntimeError as _error:
            _raised.append(_error)
    assert torch.tensor(3.0).item() == 3  # not everything raises: a constant is known
assert len(_raised) == len(_reads)
# sphinx_gallery_end_ignore

# %%
# To forecast your own model, build it where ``Transformer()`` is built, inside the ``with``. Three things to know:
#
# - ``forward`` has no values of activations. So for an activation ``x``, ``x.item()``, ``if x > 0`` and ``x[x > 0]`` raise.
# - Set dropout to 0, because with dropout, attention on the CPU keeps whole matrices, unlike the memory-efficient attention of
#   a GPU.
# - With ``nn.LSTM`` the forecast is far too low: its workspace is missing.
#
# What people get wrong
# ---------------------
# **Trusting the first step.** Memory can run out in the second step, when the state of AdamW is there too. A run that resumes
# from a checkpoint loads the state, and meets the higher peak at once: `a real case
# <https://github.com/NVIDIA/Megatron-LM/pull/4638>`__.
#
# **Comparing with nvidia-smi.** It also counts CUDA's context and memory that PyTorch keeps for later. Compare the peak with
# ``torch.cuda.max_memory_allocated()``: see :ref:`the page on the allocator <sphx_glr_gallery_cuda_memory_snapshot.py>`.
#
# Exercise
# --------
# How many sequences fit on a card of 24 GiB by the formula, with and without a checkpoint for each layer? Leave 0.5 GiB to the
# context and 64 MiB to cuBLAS.
#
# .. solution::
#
# The peak is when backward begins: 12 bytes a parameter, and the activations. With a checkpoint, a layer keeps its input only,
# one vector of the model's width for each token. For 8 sequences, the log gives the same peaks.

free = 24 * 1024 - 512 - 64 - 12 * parameters / MIB
per_token = {"plain": layers, "checkpoint": LAYERS * WIDTH}
for name, kept in per_token.items():
    sequence = 4 * LENGTH * (kept + head) / MIB
    most = int(free / sequence)
    peak = 12 * parameters / MIB + most * sequence
    print(f"{name:<10} {most:>4} sequences, peak by formula {peak:,.0f} MiB")
# sphinx_gallery_start_ignore
assert peak < 24_000 < peak + sequence and (name, most) == ("checkpoint", 121)
assert 0.94 <= 3 * VOCABULARY * 4 * LENGTH / MIB / sequence < 0.95
# sphinx_gallery_end_ignore

# %%
# Checkpointing less than doubles the batch. Of what a sequence takes then, 94 % are the 3 tensors of the logits' size, so the
# next lever is to compute the loss in pieces.
#
# Measured on a GPU
# -----------------
# The same levers, with real tensors. *Log* is the log used above. *Allocator* is ``torch.cuda.max_memory_allocated()``; it also
# counts memory that is in no shape.
#
# .. needs-a-gpu::

if not torch.cuda.is_available():
    print("What follows is measured, and needs a CUDA device.")
    sys.exit()


class OnGPU(StorageLog):
    def appears(self, storage):
        if storage.device.type == "cuda":  # what save_on_cpu keeps is elsewhere
            super().appears(storage)


class Allocator(contextlib.nullcontext):
    """In place of the log: what the allocator counts."""

    def begin(self):
        torch.cuda.reset_peak_memory_stats()

    def peak(self):
        return torch.cuda.max_memory_allocated()


# %%
# The second step of each counts:


class Logged(Ready):
    """The same model on a GPU."""

    device, tools = "cuda", (contextlib.nullcontext, OnGPU)
    real = {
        autocast: partial(torch.autocast, "cuda", torch.bfloat16),
        Offload: torch.autograd.graph.save_on_cpu,
    }

    def __init__(self, **model):
        gc.collect()  # what the lever before this one has left
        super().__init__(**model)

    def peak(self, batch, around=contextlib.nullcontext, **step):
        around = self.real.get(around, around)
        super().peak(batch, around=around, **step)
        most = super().peak(batch, around=around, **step)
        for hook in self.hooks:
            hook.remove()  # it would keep the model
        return most


class Measured(Logged):
    tools = contextlib.nullcontext, Allocator


# varies: The GPU and its libraries decide which kernels run, and what these take.

tables = []
for batch, chosen, on_paper in ((8, levers, large), (1, others, small)):
    columns = {"forecast": on_paper["peak, MiB"]}
    columns["log"] = peaks(chosen, batch, Logged)
    columns["allocator"] = peaks(chosen, batch, Measured)
    tables.append(pd.DataFrame(columns).rename({"as above": f"batch of {batch}"}))
compared = pd.concat(tables)
# sphinx_gallery_start_ignore
assert (compared["log"] / compared["forecast"] - 1).abs().max() < 0.12
assert (compared["allocator"] - compared["log"]).between(0, 200).all()
_apart = (compared["log"] - compared["forecast"]).abs() > 1
assert _apart.to_list() == [True] * 4 + [False] * 8
assert compared["allocator"].idxmax() == "zero_grad(set_to_none=False)"
# sphinx_gallery_end_ignore
compared.round().astype(int).rename_axis(columns="peak, MiB")

# %%
# Eight of the twelve forecasts are what the log says. In float32, attention's result has another layout on the GPU, so the
# layer copies it, and keeps both: one more vector for each token and layer, 72 MiB for 8 sequences. With autocast this copy
# falls away, but ``log_softmax`` stays in bfloat16.
#
# What the allocator counts beyond the log is nearly the same in each row: the workspaces of cuBLAS, and sizes that are rounded
# up.
#
# See also
# --------
# - :ref:`sphx_glr_gallery_memory_checkpointing.py` and :ref:`sphx_glr_gallery_memory_saved_tensor_hooks.py`, two of the levers.
# - :ref:`sphx_glr_gallery_cuda_no_grad_memory.py`, the same question for validation.
# - In PyTorch's tutorials: `the optimizer step in backward
#   <https://docs.pytorch.org/tutorials/intermediate/optimizer_step_in_backward_tutorial.html>`__.
