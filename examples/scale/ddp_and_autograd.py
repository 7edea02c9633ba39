r"""
DistributedDataParallel and autograd
====================================

.. index::
   single: DDP gradient synchronization
   single: what does no_sync do
   single: DDP with torch.autograd.grad, gradient penalty
   single: processes of DDP have different weights
   single: communication hook, bucket_cap_mb, all-reduce

.. in-short::

   During ``backward()``, DDP puts the *mean* of the gradients of all processes into ``.grad``. So the same optimizer takes the
   same step in each process.

   .. code-block:: python

      model = DistributedDataParallel(net)
      loss = loss_function(model(x), y)  # not net(x)
      loss.backward()  # once for each forward

   Three kinds of gradients stay local, often without an error: those of ``torch.autograd.grad``, of a second
   ``backward()`` after the same forward, and of a forward inside ``no_sync()``.
"""

# %%
# Two processes, one model
# ------------------------
# Each of two processes has its own samples. Their gradients differ, so without DDP, two optimizers would turn one model into
# two. Copy this into ``train.py``, and start it with ``torchrun --nproc-per-node 2 train.py``:
#
# .. code-block:: python
#
#    import torch
#    import torch.distributed as dist
#    from torch import nn
#    from torch.nn.parallel import DistributedDataParallel
#    from torch.utils.data import DataLoader, DistributedSampler, TensorDataset
#
#    dist.init_process_group("gloo")
#    torch.manual_seed(0)
#    data = TensorDataset(torch.randn(64, 4), torch.randn(64, 1))
#    sampler = DistributedSampler(data)  # each process gets its own half
#    model = DistributedDataParallel(nn.Linear(4, 1))
#    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
#    for epoch in range(3):
#        sampler.set_epoch(epoch)
#        for x, y in DataLoader(data, batch_size=8, sampler=sampler):
#            optimizer.zero_grad()
#            nn.functional.mse_loss(model(x), y).backward()
#            optimizer.step()
#    print(dist.get_rank(), model.module.weight)
#    dist.destroy_process_group()
#
# Both processes print the same weight. On GPUs, write ``"nccl"``, and move the model (before you wrap it) and the batches to
# the device ``int(os.environ["LOCAL_RANK"])``. To look inside, this page starts two processes itself:
#
# .. how-measured:: This code forks two processes (not on Windows), and calls a function in both.

import contextlib
import io
import os
import tempfile
import time
import warnings
from copy import deepcopy
from datetime import timedelta

import matplotlib.pyplot as plt
import pandas as pd
import torch
import torch._dynamo  # DDP imports it: do it once, before there are two processes
import torch.distributed as dist
from torch.multiprocessing import start_processes

warnings.filterwarnings("ignore", "This process .* is multi-threaded")
warnings.filterwarnings("ignore", "Grad strides do not match bucket view strides")
PALETTE = {"#c2410c": "process 0 alone", "#7c3aed": "process 1 alone"}


def process(rank, function, folder):
    torch.set_num_threads(1)
    torch.manual_seed(0)
    dist.init_process_group(
        "gloo",
        init_method=f"file://{folder}/store",
        rank=rank,
        world_size=2,
        timeout=timedelta(seconds=30),
    )
    torch.save(function(rank), f"{folder}/{rank}")
    dist.barrier()  # the other process may still be connecting: do not leave it
    dist.destroy_process_group()


def start_two(target, arguments):
    both = start_processes(target, arguments, 2, join=False, start_method="fork")
    end = time.monotonic() + 60
    try:
        while not both.join(timeout=1):
            assert time.monotonic() < end, "the two processes did not end"
    finally:
        for one in both.processes:
            one.kill()  # none is left, whatever happened


def run_in_two_processes(function):
    with tempfile.TemporaryDirectory() as folder:
        start_two(process, (function, folder))
        return [torch.load(f"{folder}/{rank}") for rank in range(2)]


def plot_gradients(alone, averaged):
    _, ax = plt.subplots(figsize=(7, 2.7), layout="constrained")
    place = torch.arange(4)
    for shift, color, grad in zip((-0.27, 0), PALETTE, alone, strict=True):
        ax.bar(place + shift, grad[0], 0.25, color=color, label=PALETTE[color])
    ax.bar(place + 0.27, averaged[0][0], 0.25, color="#2563eb", label="both, with DDP")
    ax.axhline(0, color="#64748b", linewidth=0.8)
    ax.set_xticks(place, [f"weight {number}" for number in range(4)])
    ax.set_title("With DDP, both processes get the mean of their gradients")
    ax.set_ylabel("gradient")
    ax.legend(fontsize=8)


# %%
# ``run_in_two_processes`` calls a function in both, with the number of the process: its *rank*.

from contextlib import nullcontext

import torch
import torch._dynamo
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.nn.functional import l1_loss, mse_loss
from torch.nn.parallel import DistributedDataParallel

torch.manual_seed(0)
x, y = torch.randn(2, 8, 4), torch.randn(2, 8, 1)  # 8 samples for each process


def alone(rank):
    net = nn.Linear(4, 1)
    mse_loss(net(x[rank]), y[rank]).backward()
    return net.weight.grad


def with_ddp(rank):
    net = nn.Linear(4, 1)
    model = DistributedDataParallel(net)
    mse_loss(model(x[rank]), y[rank]).backward()
    return net.weight.grad


# figure: Bars for the gradients of four weights. Process 0 and process 1 alone have different ones. With DDP both have one and
#   the same, half-way between.
plot_gradients(run_in_two_processes(alone), run_in_two_processes(with_ddp))

# sphinx_gallery_start_ignore
import re
import socket
from pathlib import Path

_source = Path(process.__code__.co_filename).read_text("utf-8")
_lines = re.findall(r"^#    ?(.*)$", _source, re.MULTILINE)
_begin, _end = (
    _lines.index("import torch"),
    _lines.index("dist.destroy_process_group()"),
)
_script = "\n".join(_lines[_begin : _end + 1])


def _as_torchrun_does(rank, folder, port):
    os.environ |= {"RANK": str(rank), "WORLD_SIZE": "2", "GLOO_SOCKET_IFNAME": "lo"}
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    torch.set_num_threads(1)
    with contextlib.redirect_stdout(io.StringIO()) as said:
        exec(_script, {})
    torch.save(said.getvalue(), f"{folder}/{rank}")


def _run_as_torchrun():
    with tempfile.TemporaryDirectory() as folder:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            where = folder, free.getsockname()[1]
        start_two(_as_torchrun_does, where)
        return [torch.load(f"{folder}/{rank}") for rank in range(2)]


try:
    _first, _second = _run_as_torchrun()
except AssertionError:  # another program has taken the port, and both waited for it
    _first, _second = _run_as_torchrun()
assert _first[0] == "0" and _second[0] == "1" and _first[1:] == _second[1:]
_alone, _ddp = run_in_two_processes(alone), run_in_two_processes(with_ddp)
assert torch.equal(*_ddp) and torch.allclose(sum(_alone) / 2, _ddp[0])
assert ((_alone[0] - _alone[1]).abs() > 0.05).all()


def _other_seeds(rank):
    torch.manual_seed(rank)
    net = nn.Linear(4, 1)
    before = net.weight.detach().clone()
    DistributedDataParallel(net)
    return before, net.weight.detach()


(_before_0, _after_0), (_before_1, _after_1) = run_in_two_processes(_other_seeds)
assert not torch.equal(_before_0, _before_1)
assert torch.equal(_before_0, _after_0) and torch.equal(_before_0, _after_1)


def _all_samples(rank, *first):
    """The largest difference between DDP's gradient and that of all samples."""
    torch.manual_seed(0)
    net = nn.Sequential(*(layer(4) for layer in first), nn.Linear(4, 1))
    copy = deepcopy(net)
    model = DistributedDataParallel(net)
    mse_loss(model(x[rank]), y[rank]).backward()
    mse_loss(copy(x.flatten(0, 1)), y.flatten(0, 1)).backward()
    return (net[-1].weight.grad - copy[-1].weight.grad).abs().max()


for _plain, _norm in run_in_two_processes(
    lambda rank: [_all_samples(rank), _all_samples(rank, nn.BatchNorm1d)]
):
    assert _plain < 1e-5 and _norm > 0.1


def _steps(rank):
    """The weights after two steps: with several optimizers, with the state of one that
    only process 0 has, and with a weight that only process 1 changed."""
    optimizers, results = (torch.optim.SGD, torch.optim.Adam, torch.optim.LBFGS), []
    for kind, odd in [*((kind, "") for kind in optimizers), (optimizers[1], "state")]:
        net = nn.Linear(4, 1)
        model = DistributedDataParallel(net)
        optimizer = kind(net.parameters(), lr=0.1)
        if odd and rank == 0:
            net.weight.grad = torch.ones(1, 4)
            optimizer.step()
            with torch.no_grad():
                net.weight += 0.1
            optimizer.zero_grad()

        def closure(optimizer=optimizer, model=model):
            optimizer.zero_grad()
            loss = mse_loss(model(x[rank]), y[rank])
            loss.backward()
            return loss

        for _ in range(2):
            optimizer.step(closure)
        results.append(net.weight.detach())
    net = nn.Linear(4, 1)
    model = DistributedDataParallel(net)
    with torch.no_grad():
        net.weight += rank
    mse_loss(model(x[rank]), y[rank]).backward()
    return [*results, net.weight.detach()]


_same = [
    torch.allclose(*pair, atol=1e-3)
    for pair in zip(*run_in_two_processes(_steps), strict=True)
]
assert _same == [True, True, True, False, False]
# sphinx_gallery_end_ignore

# %%
# When you wrap a model, DDP copies the weights of process 0 to all others. Equal weights, gradients and optimizers give equal
# weights after the step. A later change of a weight stays in its process, so load a checkpoint before you wrap, and the
# optimizer's state in each process.
#
# Because both processes have 8 samples, the mean is the gradient of all 16. With a ``BatchNorm1d`` layer it differs, because
# each process normalizes its own samples.

# %%
# How DDP averages: hooks and buckets
# -----------------------------------
# DDP puts a hook on each parameter that requires a gradient, and groups the gradients into *buckets*. When a bucket is
# complete, DDP sends it: an *all-reduce* computes the mean over the processes, while backward computes the next gradients. The
# code prints each gradient as it comes, and each bucket (``->``) as it is sent:


def order(rank):
    net = nn.Sequential(*[nn.Linear(256, 256, bias=False) for layer in range(3)])
    model = DistributedDataParallel(net, bucket_cap_mb=0.25)  # the default is 25
    log = []

    def note_and_send(log, bucket):
        log.append(f"-> bucket {bucket.index()}\n")
        return default_hooks.allreduce_hook(None, bucket)

    model.register_comm_hook(log, note_and_send)
    for name, p in net.named_parameters():
        p.register_post_accumulate_grad_hook(
            lambda p, name=name: log.append(f"{name} ")
        )
    for step in (1, 2):
        log.append(f"step {step}:\n")
        model(torch.ones(2, 256)).sum().backward()
    return log


print(*run_in_two_processes(order)[0], sep="", end="")

# sphinx_gallery_start_ignore
_orders = run_in_two_processes(order)
assert _orders[0] == _orders[1]
assert "".join(_orders[0]).split("\n")[:-1] == [
    "step 1:",
    "2.weight 1.weight 0.weight -> bucket 0",
    "step 2:",
    *(f"{i}.weight -> bucket {2 - i}" for i in (2, 1, 0)),
]


def _sizes(rank, **options):
    net, sizes = nn.Sequential(*[nn.Linear(512, 512) for layer in range(4)]), []

    def note(state, bucket):
        sizes.append(round(bucket.buffer().numel() / 2**18, 1))
        return default_hooks.allreduce_hook(state, bucket)

    model = DistributedDataParallel(net, **options)
    model.register_comm_hook(None, note)
    for _ in range(2):
        model(torch.ones(2, 512)).sum().backward()
    return sizes


def _sizes_of_two(rank):
    return _sizes(rank, bucket_cap_mb=2)


assert run_in_two_processes(_sizes_of_two) == [[4.0, 2.0, 2.0]] * 2


def _frozen(rank):
    net = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 1))
    net[0].requires_grad_(False)
    model, shapes = DistributedDataParallel(net), []

    def note(state, bucket):
        shapes.extend(p.shape for p in bucket.parameters())
        return default_hooks.allreduce_hook(state, bucket)

    model.register_comm_hook(None, note)
    mse_loss(model(x[rank]), y[rank]).backward()
    return [tuple(shape) for shape in shapes], net[0].weight.grad


assert run_in_two_processes(_frozen) == [([(1, 4), (1,)], None)] * 2


# sphinx_gallery_end_ignore

# %%
# Backward begins with the last layer, so its bucket leaves first. The first step has one bucket for all. Then DDP knows the
# order, and fills buckets up to about ``bucket_cap_mb``. A frozen parameter is in no bucket: :ref:`freeze it before you wrap
# <sphx_glr_gallery_modes_freezing.py>`.

# %%
# Which backward exchanges gradients
# ----------------------------------
# **DDP exchanges gradients in the first** ``backward()`` **after a forward of the wrapper.** In the patterns below, every other
# gradient stays local, and you get no error:
#
# .. how-measured:: For each pattern, this wraps a new model, counts the buckets sent, and compares the gradients.


def compare_processes(*patterns):
    first, second = run_in_two_processes(
        lambda rank: [measure_pattern(pattern, rank) for pattern in patterns]
    )
    rows = {}
    for pattern, (sent, grads), (_, others) in zip(
        patterns, first, second, strict=True
    ):
        same = all(torch.allclose(*pair) for pair in zip(grads, others, strict=True))
        name = pattern.__name__.replace("_", " ")
        rows[name] = {"exchanges": sent, "same .grad": "yes" if same else "no"}
    return pd.DataFrame(rows).T


def measure_pattern(pattern, rank):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1))
    model, sent = DistributedDataParallel(net), []

    def send(state, bucket):
        sent.append(bucket.index())
        return default_hooks.allreduce_hook(state, bucket)

    model.register_comm_hook(None, send)
    pattern(model, rank)
    return len(sent), [p.grad for p in net.parameters()]


# %%
# Two losses of one output:


def one_backward(model, rank):
    output = model(x[rank])
    (mse_loss(output, y[rank]) + l1_loss(output, y[rank])).backward()


def two_backwards(model, rank):
    output = model(x[rank])
    mse_loss(output, y[rank]).backward(retain_graph=True)
    l1_loss(output, y[rank]).backward()


# %%
# Two forwards before the first backward, a forward that goes around the wrapper, and ``torch.autograd.grad``:


def two_forwards_first(model, rank):
    first = mse_loss(model(x[rank]), y[rank])
    second = l1_loss(model(x[rank]), y[rank])
    first.backward()
    second.backward()


def around_the_wrapper(model, rank):
    mse_loss(model.module(x[rank]), y[rank]).backward()


def autograd_grad(model, rank):
    loss = mse_loss(model(x[rank]), y[rank])
    grads = torch.autograd.grad(loss, list(model.parameters()))
    for p, grad in zip(model.parameters(), grads, strict=True):
        p.grad = grad


# %%
# How many buckets DDP sent, and whether both processes have the same gradients afterwards:

losses = one_backward, two_backwards, two_forwards_first
table = compare_processes(*losses, around_the_wrapper, autograd_grad)

# sphinx_gallery_start_ignore
assert table["exchanges"].tolist() == [1, 1, 1, 0, 0]
assert table["same .grad"].tolist() == ["yes", "no", "no", "no", "no"]


def _whole(*losses):
    """The gradients of one process that has all data."""
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1))
    output = net(x.flatten(0, 1))
    sum(loss(output, y.flatten(0, 1)) for loss in losses).backward()
    return [p.grad for p in net.parameters()]


def _right(*cases):
    """For each pattern: the exchanges, and whether both processes have the gradients of all data."""

    def worker(rank):
        return [
            (*measure_pattern(pattern, rank), _whole(*losses))
            for pattern, *losses in cases
        ]

    first, second = run_in_two_processes(worker)
    return [
        (one[0], _close(one[1], one[2]) and _close(other[1], one[2]))
        for one, other in zip(first, second, strict=True)
    ]


def _close(grads, others):
    pairs = zip(grads, others, strict=True)
    return all(torch.allclose(*pair, rtol=1e-4, atol=1e-6) for pair in pairs)


def _one_after_the_other(model, rank):
    mse_loss(model(x[rank]), y[rank]).backward()
    l1_loss(model(x[rank]), y[rank]).backward()


def _averaged_by_hand(model, rank):
    autograd_grad(model, rank)
    for p in model.parameters():
        p.grad = p.grad.contiguous()
        dist.all_reduce(p.grad)
        p.grad /= dist.get_world_size()


def _first_only(model, rank):
    output = model(x[rank])
    mse_loss(output, y[rank]).backward(retain_graph=True)
    kept = [p.grad.clone() for p in model.parameters()]
    l1_loss(output, y[rank]).backward()
    for p, grad in zip(model.parameters(), kept, strict=True):
        p.grad = grad


_cases = (
    (one_backward, mse_loss, l1_loss),
    (_one_after_the_other, mse_loss, l1_loss),
    (_averaged_by_hand, mse_loss),
    (_first_only, mse_loss),
)
assert _right(*_cases) == [(1, True), (2, True), (0, True), (1, True)]


TORCH = tuple(int(part) for part in torch.__version__.split(".")[:2])


def _by_hand(rank):
    weight = torch.ones(3, 4, requires_grad=True)
    (grad,) = torch.autograd.grad(weight.sum() * (rank + 1), weight)  # expanded
    strided = (torch.ones(3, 8) * (rank + 1))[:, ::2]
    results = [grad.is_contiguous(), strided.is_contiguous()]
    as_it_is = [strided] if TORCH == (2, 13) else []  # another version may refuse it
    for tensor in (grad.contiguous(), strided.contiguous(), *as_it_is):
        dist.all_reduce(tensor)
        results.append(bool((tensor == 3).all()))
    return results


for _found in run_in_two_processes(_by_hand):
    assert _found[:4] == [False, False, True, True] and not any(_found[4:])


class _Heads(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk, self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 1), nn.Linear(4, 1)

    def forward(self, inputs):
        hidden = self.trunk(inputs)
        return self.a(hidden), self.b(hidden)


def _raises(function, *arguments):
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # DDP writes to the terminal
    try:
        function(*arguments)
    except RuntimeError as error:
        return str(error)
    return ""


def _two_heads(rank):
    model = DistributedDataParallel(_Heads())
    a, b = model(x[rank])
    a.sum().backward(retain_graph=True)
    b.sum().backward()


def _twice(rank, head):
    """Two steps in which only one of the heads gets a gradient, or, for None, no parameter."""
    net = _Heads()
    model = DistributedDataParallel(net)
    for _ in range(2):
        loss = model(x[rank])[0].sum()
        if head:
            loss.backward()
        else:
            torch.autograd.grad(loss, net.trunk.weight)


def _deleted(rank):
    torch.manual_seed(0)
    net = nn.Linear(4, 1)
    mse_loss(DistributedDataParallel(net)(x[rank]), y[rank]).backward()
    return net.weight.grad


for _grad, _local in zip(run_in_two_processes(_deleted), _alone, strict=True):
    assert torch.allclose(_grad, _local, atol=1e-6)


def _errors(rank):
    return [
        _raises(_two_heads, rank),
        _raises(_twice, rank, True),
        _raises(_twice, rank, False),
    ]


for _heads, _some, _none in run_in_two_processes(_errors):
    assert "marked as ready twice" in _heads and _none == ""
    assert _some.startswith("Expected to have finished reduction")


def _logged(rank):
    """The gradients of exp(loss): all-reduced in place, through detach, and by a clone."""
    torch.manual_seed(0)
    net, results = nn.Linear(4, 1), []
    for log in (None, lambda t: t, torch.detach, lambda t: t.detach().clone()):
        net.zero_grad()
        loss = (mse_loss(net(x[rank]), y[rank]) / 10).exp()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if log:
                dist.all_reduce(log(loss))
            loss.backward()
        results.append(net.weight.grad.clone())
    return [torch.allclose(results[0], other, rtol=0.01) for other in results[1:]]


assert run_in_two_processes(_logged) == [[False, False, True]] * 2


def _hooks(rank):
    found = []
    for view in (False, True):
        torch.manual_seed(0)
        net = nn.Linear(4, 1)
        model = DistributedDataParallel(net, gradient_as_bucket_view=view)
        net.weight.register_hook(lambda grad: found.append(grad.clone()))
        net.weight.register_post_accumulate_grad_hook(
            lambda weight: found.append(weight.grad.clone())
        )
        for _ in range(2):
            model.zero_grad()
            mse_loss(model(x[rank]), y[rank]).backward()
            found.append(net.weight.grad.clone())
    return found


for _rank, _found in enumerate(run_in_two_processes(_hooks)):
    for _i, _grad in enumerate(_found):
        assert torch.allclose(_grad, (_alone if _i % 3 < 2 else _ddp)[_rank], atol=1e-6)
assert len(_found) == 12


def _step_in_hook(rank):
    net = nn.Linear(4, 1)
    model = DistributedDataParallel(net)
    optimizer = torch.optim.SGD([net.weight], lr=0.1)
    net.weight.register_post_accumulate_grad_hook(lambda p: optimizer.step())
    mse_loss(model(x[rank]), y[rank]).backward()
    return net.weight.detach()


assert not torch.allclose(*run_in_two_processes(_step_in_hook))


def _collectives(rank):
    leaf, found = torch.ones(2, requires_grad=True), []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        total = leaf * (rank + 1)
        dist.all_reduce(total)
        total.sum().backward()
    found.append([str(w.message) for w in caught])
    parts = [torch.zeros(2), torch.zeros(2)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dist.all_gather(parts, leaf * (rank + 1))
    return [*found, any(part.requires_grad for part in parts)]


for _warned, _recorded in run_in_two_processes(_collectives):
    assert not _recorded
    assert len(_warned) == 1 and "an autograd kernel was not registered" in _warned[0]


def _statistics(rank):
    """The running mean after a step in training, and after the next forward."""
    net = DistributedDataParallel(nn.BatchNorm1d(1))
    net(torch.full((4, 1), 10.0 * rank))
    after = net.module.running_mean.item()
    net.eval()(torch.zeros(4, 1))
    return [after, net.module.running_mean.item()]


assert run_in_two_processes(_statistics) == [[0.0, 0.0], [1.0, 0.0]]
_sampler = torch.utils.data.DistributedSampler(range(8), num_replicas=2, rank=0)
_order = list(_sampler)
assert list(_sampler) == _order
_sampler.set_epoch(1)
assert list(_sampler) != _order
# sphinx_gallery_end_ignore
table.rename_axis(columns="pattern")

# %%
# - **One backward for each forward.** Add the losses up, or call forward, backward, forward, backward (asked in `pytorch#47260
#   <https://github.com/pytorch/pytorch/issues/47260>`__).
# - **Call the wrapper, and keep it.** ``model.module`` is your own module, and DDP misses that it runs. If the wrapper is
#   deleted before ``backward()``, nothing is averaged.
# - **Average the result of** ``torch.autograd.grad`` **yourself.** It leaves ``.grad`` alone, so DDP's hooks do not run. Write
#   ``grad = grad.contiguous()``, then ``dist.all_reduce(grad)`` for the sum, and ``grad /= dist.get_world_size()``. Without
#   ``contiguous()``, Gloo can return a wrong sum (`pytorch#192920 <https://github.com/pytorch/pytorch/issues/192920>`__).

# %%
# Gradient accumulation: ``no_sync`` must cover the forward
# ---------------------------------------------------------
# To accumulate four pieces, one exchange after the last is enough:


def pieces(rank):
    return enumerate(zip(x[rank].chunk(4), y[rank].chunk(4), strict=True))


def no_sync_around_both(model, rank):
    for i, (xs, ys) in pieces(rank):
        with model.no_sync() if i < 3 else nullcontext():
            loss = mse_loss(model(xs), ys) / 4
            loss.backward()


# %%
# Forward looks at the flag that ``no_sync`` sets, and backward does what the last forward has prepared. These two patterns set
# it too late:


def no_sync_around_backward(model, rank):
    for i, (xs, ys) in pieces(rank):
        loss = mse_loss(model(xs), ys) / 4
        with model.no_sync() if i < 3 else nullcontext():
            loss.backward()


def flag_after_forward(model, rank):
    for i, (xs, ys) in pieces(rank):
        loss = mse_loss(model(xs), ys) / 4
        model.require_backward_grad_sync = i == 3
        loss.backward()


table = compare_processes(
    no_sync_around_both, no_sync_around_backward, flag_after_forward
)

# sphinx_gallery_start_ignore
assert len(table) == 3


def _without(model, rank):
    for _, (xs, ys) in pieces(rank):
        loss = mse_loss(model(xs), ys) / 4
        loss.backward()


assert table.to_numpy().tolist() == [[1, "yes"], [4, "yes"], [1, "no"]]


def _around_forward(model, rank):
    for i, (xs, ys) in pieces(rank):
        with model.no_sync() if i < 3 else nullcontext():
            loss = mse_loss(model(xs), ys) / 4
        loss.backward()


def _twice_in_a_row(model, rank):
    flag_after_forward(model, rank)
    model.zero_grad()
    flag_after_forward(model, rank)


_cases = (
    _without,
    no_sync_around_both,
    no_sync_around_backward,
    _around_forward,
    _twice_in_a_row,
)
assert _right(*((case, mse_loss) for case in _cases)) == [
    *[(4, True), (1, True), (4, True), (1, True), (2, False)]
]


def _epoch_ends(model, rank):
    with model.no_sync():
        mse_loss(model(x[rank]), y[rank]).backward()


assert compare_processes(_epoch_ends).to_numpy().tolist() == [[0, "no"]]


def _last_forward(model, rank):
    with model.no_sync():
        loss = mse_loss(model(x[rank]), y[rank])
    model(x[rank])
    loss.backward()


assert compare_processes(_last_forward).to_numpy().tolist() == [[1, "yes"]]


def _piece_that_is_sent(rank):
    results = measure_pattern(flag_after_forward, rank)[1]
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1))
    for other in range(2):
        (mse_loss(net(x[other][:2]), y[other][:2]) / 8).backward()
    for i, (xs, ys) in pieces(rank):
        if i:
            (mse_loss(net(xs), ys) / 4).backward()
    return results, [p.grad for p in net.parameters()]


assert all(_close(*pair) for pair in run_in_two_processes(_piece_that_is_sent))
# sphinx_gallery_end_ignore
table.rename_axis(columns="pattern")

# %%
# Around backward alone, ``no_sync`` saves nothing. In the last row, only the first of the four pieces is exchanged, so the
# weights of the processes drift apart. A well-known training script had this order of lines, and its loss was higher
# (`build-nanogpt#30 <https://github.com/karpathy/build-nanogpt/pull/30>`__).
#
# If an epoch ends within ``no_sync``, the next ``optimizer.step()`` uses local gradients. So exchange with the last batch, too.

# %%
# Gradient penalties
# ------------------
# The penalty of WGAN-GP takes the gradient with respect to the *input*, and then calls ``backward()``. Together with another
# loss, that backward is averaged. Alone, it stays local:


def penalty(output, inputs):
    (slope,) = torch.autograd.grad(output.sum(), inputs, create_graph=True)
    return (slope.norm(dim=1) - 1).square().mean()


def with_a_loss(model, rank):
    inputs = x[rank].clone().requires_grad_()
    output = model(inputs)
    (mse_loss(output, y[rank]) + penalty(output, inputs)).backward()


def penalty_alone(model, rank):
    inputs = x[rank].clone().requires_grad_()
    penalty(model(inputs), inputs).backward()


def with_zero_times_output(model, rank):
    inputs = x[rank].clone().requires_grad_()
    output = model(inputs)
    (penalty(output, inputs) + 0 * output.sum()).backward()


table = compare_processes(with_a_loss, penalty_alone, with_zero_times_output)

# sphinx_gallery_start_ignore
assert table.to_numpy().tolist() == [[1, "yes"], [0, "no"], [1, "yes"]]


def _penalties(rank):
    results = []
    for pattern, weight in ((with_a_loss, 1), (with_zero_times_output, 0)):
        torch.manual_seed(0)
        net = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1))
        inputs = x.flatten(0, 1).requires_grad_()
        output = net(inputs)
        loss = weight * mse_loss(output, y.flatten(0, 1))
        (loss + penalty(output, inputs)).backward()
        grads = [torch.zeros(1) if p.grad is None else p.grad for p in net.parameters()]
        results.append((measure_pattern(pattern, rank)[1], grads))
    return results


assert all(
    _close(*pair) for pairs in run_in_two_processes(_penalties) for pair in pairs
)


def _again(rank):
    net = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1))
    model = DistributedDataParallel(net)
    for _ in range(2):
        model.zero_grad()
        penalty_alone(model, rank)


for _said in run_in_two_processes(lambda rank: _raises(_again, rank)):
    assert _said.startswith("Expected to have finished reduction")


def _unused_flag(rank):
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # DDP warns on the terminal
    net = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1))
    penalty_alone(DistributedDataParallel(net, find_unused_parameters=True), rank)
    return net[0].weight.grad, net[2].bias.grad is None


(_grad_0, _none), (_grad_1, _) = run_in_two_processes(_unused_flag)
assert _none and not torch.allclose(_grad_0, _grad_1)


def _create_graph(rank):
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    warnings.simplefilter("ignore")
    model = DistributedDataParallel(nn.Linear(4, 1))
    try:
        mse_loss(model(x[rank]), y[rank]).backward(create_graph=True)
    except RuntimeError as error:
        return str(error)
    return ""


_said = "a leaf Variable that requires grad is being used in an in-place operation"
assert all(said.startswith(_said) for said in run_in_two_processes(_create_graph))
# sphinx_gallery_end_ignore
table.rename_axis(columns="pattern")

# %%
# The penalty alone gives the bias of the last layer no gradient. So its bucket is never complete (asked in `pytorch#47562
# <https://github.com/pytorch/pytorch/issues/47562>`__), and the next forward raises the error that some parameters got no
# gradient. ``find_unused_parameters=True`` is no help, because the output does use the bias. Zero times the output gives it a
# gradient of zero.

# %%
# Communication hooks
# -------------------
# ``register_comm_hook`` replaces the mean by your function. ``fp16_compress_hook`` sends half precision numbers, where a
# gradient above about 65,500 overflows. If your own hook forgets the division, the gradients are sums. The ratio to DDP's:


def sum_only(state, bucket):
    work = dist.all_reduce(bucket.buffer(), async_op=True)
    return work.get_future().then(lambda future: future.value()[0])


def with_hook(rank, hook):
    net = nn.Linear(4, 1)
    model = DistributedDataParallel(net)
    model.register_comm_hook(None, hook)
    mse_loss(model(x[rank]), y[rank]).backward()
    return net.weight.grad


mean = run_in_two_processes(with_ddp)[0]
for hook in (default_hooks.fp16_compress_hook, sum_only):
    ratio = (
        run_in_two_processes(lambda rank, hook=hook: with_hook(rank, hook))[0] / mean
    )
    print(f"{hook.__name__:<20}", [round(value, 2) for value in ratio[0].tolist()])

    # sphinx_gallery_start_ignore
    assert torch.allclose(
        ratio, torch.full((1, 4), 2.0 if hook is sum_only else 1.0), atol=5e-3
    )
    # sphinx_gallery_end_ignore


# sphinx_gallery_start_ignore
def _refused(rank):
    said, sent, plain = [], [], dist.all_reduce
    model = DistributedDataParallel(nn.Linear(4, 1))
    with contextlib.redirect_stderr(io.StringIO()):
        for hook in (
            lambda state, other: None,
            *[default_hooks.fp16_compress_hook] * 2,
        ):
            try:
                model.register_comm_hook(None, hook)
            except (KeyError, RuntimeError) as error:
                said.append(str(error))
    dist.all_reduce = lambda t, **options: (
        sent.append(str(t.dtype)),
        plain(t, **options),
    )[1]
    mse_loss(model(x[rank]), y[rank]).backward()
    return said, sent


def _overflows(rank):
    net = nn.Linear(4, 1)
    model = DistributedDataParallel(net)
    model.register_comm_hook(None, default_hooks.fp16_compress_hook)
    found = []
    for scale in (60_000, 70_000):
        net.weight.grad = None
        (model(torch.ones(1, 4)).sum() * scale).backward()
        found.append(bool(net.weight.grad.isfinite().all()))
    return found


assert run_in_two_processes(_overflows) == [[True, False]] * 2

for _said, _sent in run_in_two_processes(_refused):
    assert (
        len(_said) == 2 and "bucket" in _said[0] and "only be called once" in _said[1]
    )
    assert _sent == ["torch.float16"]
# sphinx_gallery_end_ignore

# %%
# What people get wrong
# ---------------------
# **Reading gradients in a hook.** Your own hook sees the gradient of its process, with ``register_hook`` and with
# ``register_post_accumulate_grad_hook``. So an optimizer step in such a hook makes the weights differ. :ref:`Clip
# <sphx_glr_gallery_training_gradient_clipping.py>` after ``backward()``.
#
# **Leaving set_epoch out.** Without ``sampler.set_epoch(epoch)``, ``DistributedSampler`` gives each epoch the same order.
#
# **Taking BatchNorm for shared.** Its running statistics differ between the processes, until the next forward copies those of
# process 0.
#
# **Calling dist.all_reduce or dist.all_gather inside the loss.** They have no derivative: :ref:`use functions that have one
# <sphx_glr_gallery_scale_gradients_through_collectives.py>`. For a log, reduce ``loss.detach().clone()`` (the sum; divide it
# for the mean).
#
# By default, the next forward raises an error if only some of the parameters got a gradient: see :ref:`the page on this message
# <sphx_glr_gallery_errors_ddp_finished_reduction.py>`, also for *marked as ready twice*.

# %%
# Exercise
# --------
# Process 0 has 12 samples, process 1 has 4, and each calls ``mse_loss``. Is the mean of the two gradients the gradient of all
# 16 samples? If not, on what should each process call ``backward()``?
#
# .. solution::
#
# It differs. A sample of process 1 counts three times as much. Divide the *sum* of the losses by the number of all samples: of
# all labels, if some are ignored, and of all pieces, if you accumulate. DDP divides by the number of processes, so multiply.

samples, targets = x.flatten(0, 1).split([12, 4]), y.flatten(0, 1).split([12, 4])


def mean_of_means(model, rank):
    mse_loss(model(samples[rank]), targets[rank]).backward()


def by_number(model, rank):
    number = torch.tensor(len(samples[rank]))
    dist.all_reduce(number)  # now it is 16 in both processes
    loss = mse_loss(model(samples[rank]), targets[rank], reduction="sum")
    (loss * dist.get_world_size() / number).backward()


for pattern in (mean_of_means, by_number):
    (_, grads), _ = run_in_two_processes(
        lambda rank, pattern=pattern: measure_pattern(pattern, rank)
    )
    print(f"{pattern.__name__:<14} bias of the last layer: {grads[-1].item():.3f}")

# sphinx_gallery_start_ignore


def _by_number_in_pieces(model, rank):
    number = torch.tensor(len(samples[rank]))
    dist.all_reduce(number)
    for i in range(2):
        xs, ys = samples[rank].chunk(2)[i], targets[rank].chunk(2)[i]
        with model.no_sync() if i == 0 else nullcontext():
            loss = mse_loss(model(xs), ys, reduction="sum") / number
            (loss * dist.get_world_size()).backward()


def _ignored_labels(rank):
    """Process 1 has only ignored labels: the gradient is that of the labels of process 0."""
    grads = []
    for ddp in (True, False):
        torch.manual_seed(0)
        net = nn.Linear(4, 3)
        inputs, labels = x.flatten(0, 1), torch.arange(16) % 3
        labels[8:] = -100
        number = (labels != -100).sum()
        if ddp:
            inputs, labels = x[rank], labels.chunk(2)[rank]
            number = (labels != -100).sum()
            dist.all_reduce(number)
        model = DistributedDataParallel(net) if ddp else net  # keep the wrapper
        loss = nn.functional.cross_entropy(model(inputs), labels, reduction="sum")
        loss = loss / number
        (loss * (2 if ddp else 1)).backward()
        grads.append(net.weight.grad)
    return torch.allclose(*grads, atol=1e-6)


assert run_in_two_processes(_ignored_labels) == [True, True]


_cases = (
    (mean_of_means, mse_loss),
    (by_number, mse_loss),
    (_by_number_in_pieces, mse_loss),
)
assert _right(*_cases) == [(1, False), (1, True), (1, True)]
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_scale_fsdp_and_dtensor.py`: a model that is too large for one GPU.
# - :ref:`sphx_glr_gallery_differentiation_accumulation.py`: accumulation in one process.
# - :ref:`sphx_glr_gallery_differentiation_higher_order.py`: ``create_graph``, for penalties.
# - In PyTorch's reference: `DistributedDataParallel
#   <https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html>`__, `how DDP works
#   <https://docs.pytorch.org/docs/stable/notes/ddp.html>`__ and `communication hooks
#   <https://docs.pytorch.org/docs/stable/ddp_comm_hooks.html>`__.
