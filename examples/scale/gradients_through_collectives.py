r"""
Gradients through all_gather: a contrastive loss over several GPUs
==================================================================

.. index::
   single: all_gather with gradient, all_reduce inside the loss
   single: why multiply the loss by the world size
   single: InfoNCE, SimCLR or CLIP loss with DDP, negatives of other GPUs
   single: torch.distributed.nn.functional.all_gather is deprecated, use all_gather_single
   single: an autograd kernel was not registered to the Autograd key(s)
   single: GatherLayer

.. in-short::

   ``torch.distributed.all_gather`` has no derivative: what it returns is a constant. In PyTorch 2.13, gather with
   ``all_gather_single``:

   .. code-block:: python

      from torch.distributed._functional_collectives import all_gather_single
      keys = all_gather_single(keys, 0, dist.group.WORLD)

   Backward through it adds up the gradients from all processes, and DDP divides by the number of processes (the *world
   size*). So you train on the *mean* of the losses that the processes compute, and no factor is needed. The factor of the
   world size belongs to an older way, in which each process gets a gradient for its own samples only.
"""

# %%
# The loss is right, the gradient is not
# --------------------------------------
# A contrastive loss compares each query with many keys, so you gather the keys of all GPUs. If the graph is cut there, training
# runs, with a plausible loss. This page starts two processes, and compares DDP's gradient with that of one process that has all
# samples. A right one has the same length (1.00) and direction (0°).
#
# .. how-measured:: This code forks two processes (not on Windows), and compares.

import tempfile
import time
import warnings
from datetime import timedelta
from math import cos, radians, sin

import matplotlib.pyplot as plt
import pandas as pd
import torch
import torch._dynamo  # DDP imports it: do it once, before there are two processes
import torch.distributed as dist
from torch import nn
from torch.multiprocessing import start_processes
from torch.nn.functional import normalize
from torch.nn.parallel import DistributedDataParallel

warnings.filterwarnings("ignore", "This process .* is multi-threaded")
warnings.filterwarnings("ignore", "c10d::.* an autograd kernel was not registered")


def process(rank, function, folder):
    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo",
        init_method=f"file://{folder}/store",
        rank=rank,
        world_size=2,
        timeout=timedelta(seconds=100),
    )
    torch.save(function(rank), f"{folder}/{rank}")
    dist.barrier()  # the other process may still be connecting: do not leave it
    dist.destroy_process_group()


def run_in_two_processes(function):
    with tempfile.TemporaryDirectory() as folder:
        arguments = (function, folder)
        both = start_processes(process, arguments, 2, join=False, start_method="fork")
        end = time.monotonic() + 200
        try:
            while not both.join(timeout=1):
                assert time.monotonic() < end, "the two processes did not end"
        finally:
            for one in both.processes:
                one.kill()  # none is left, whatever happened
        return [torch.load(f"{folder}/{rank}") for rank in range(2)]


def make_net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3))


def measure_pattern(pattern, rank):
    net = make_net()
    model = DistributedDataParallel(net)
    queries, keys = normalize(model(pairs[rank]), dim=-1)
    loss = pattern(queries, keys, rank)
    loss.backward()
    return loss.item(), torch.cat([p.grad.flatten() for p in net.parameters()])


def use_all_samples():
    net = make_net()
    queries, keys = normalize(net(pairs.transpose(0, 1).flatten(1, 2)), dim=-1)
    contrastive(queries, keys).backward()
    return torch.cat([p.grad.flatten() for p in net.parameters()])


def compare(*patterns):
    (first, right), (second, _) = run_in_two_processes(
        lambda rank: ([measure_pattern(p, rank) for p in patterns], use_all_samples())
    )
    rows = {}
    for pattern, (loss, grad), (other, _) in zip(patterns, first, second, strict=True):
        cosine = torch.cosine_similarity(grad, right, dim=0).clamp(-1, 1)
        rows[pattern.__name__.replace("_", " ")] = {
            "mean loss": f"{(loss + other) / 2:.2f}",
            "length": f"{grad.norm() / right.norm():.2f}",
            "angle": f"{cosine.arccos().rad2deg():.0f}°",
        }
    return pd.DataFrame(rows).T.rename_axis(columns="pattern")


def plot_arrows(table):
    _, ax = plt.subplots(figsize=(7, 2.2), layout="constrained")
    for (name, row), color in zip(
        table.iterrows(), ("#c2410c", "#7c3aed", "#2563eb"), strict=True
    ):
        angle, length = radians(float(row["angle"][:-1])), float(row["length"])
        tip = (length * cos(angle), length * sin(angle))
        arrow = {"arrowstyle": "->", "color": color, "linewidth": 2}
        ax.annotate("", tip, (0, 0), arrowprops=arrow)
        label = f"{name}\n{row['length']} times as long, {row['angle']}"
        ax.text(tip[0] + 0.03, tip[1], label, color=color, va="center", fontsize=9)
    ax.set(xlim=(-0.05, 2.05), ylim=(-0.08, 0.45), aspect="equal")
    ax.set_axis_off()
    ax.set_title("Only the gradient shows what is missing")


# %%
# Each process has 4 samples in two *views*, such as two crops of an image. A query belongs to the key of the same sample, among
# the 8 keys of both processes. Three ways to gather the keys:

import torch
import torch.distributed as dist
from torch.distributed._functional_collectives import all_gather_single
from torch.nn.functional import cross_entropy

torch.manual_seed(0)
pairs = torch.randn(2, 2, 4, 6)  # 2 processes, 2 views, 4 samples, 6 numbers


def contrastive(queries, keys, first=0):
    labels = torch.arange(len(queries)) + first  # where the own keys begin
    return cross_entropy(5 * queries @ keys.T, labels)


def gather_constants(tensor):
    parts = [torch.empty_like(tensor) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, tensor)
    return parts


def all_gather_alone(queries, keys, rank):
    all_keys = torch.cat(gather_constants(keys))
    return contrastive(queries, all_keys, first=rank * len(keys))


def own_keys_put_back(queries, keys, rank):
    parts = gather_constants(keys)
    parts[rank] = keys
    return contrastive(queries, torch.cat(parts), first=rank * len(keys))


def with_gradient(queries, keys, rank):
    all_keys = all_gather_single(keys, 0, dist.group.WORLD)
    return contrastive(queries, all_keys, first=rank * len(keys))


table = compare(all_gather_alone, own_keys_put_back, with_gradient)

# figure: Three arrows from one point. The gradient of "with gradient" points to the right, with length 1. That of "all gather
#   alone" is half as long and turned by 41 degrees. With the own keys put back, it is turned by 14 degrees.
plot_arrows(table)

# sphinx_gallery_start_ignore
_rows = table.to_numpy().tolist()
assert [row[0] for row in _rows] == ["2.26"] * 3 and _rows[2][1:] == ["1.00", "0°"]
assert 5 < float(_rows[1][2][:-1]) < 20 and 30 < float(_rows[0][2][:-1]) < 50
_net = make_net()
_queries, _keys = normalize(_net(pairs.transpose(0, 1).flatten(1, 2)), dim=-1)
assert f"{contrastive(_queries, _keys):.2f}" == "2.26"
# sphinx_gallery_end_ignore
table

# %%
# All three have the loss of one process with all samples. But ``all_gather`` alone gives the keys no gradient. With the own
# keys put back, they still get none from the queries of other processes.

# %%
# The rule: backward sums over the processes, DDP divides
# -------------------------------------------------------
# Each process sends its keys to all losses, so backward returns a gradient from all losses, and adds them up:


def one_weight(rank):
    weight = torch.ones(1, requires_grad=True)
    total = all_gather_single(weight, 0, dist.group.WORLD).sum()
    total.backward()
    return total.item(), weight.grad.item()


print(run_in_two_processes(one_weight))

# sphinx_gallery_start_ignore
import torch.distributed.nn.functional as _older
from torch.distributed._functional_collectives import reduce_scatter_single
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard


def _hostile(rank):
    """Gradients of each process's loss (rank + 1) * sum(gathered * numbers), several inputs."""
    found = []
    for make in (
        lambda: torch.ones(2, 3, dtype=torch.float64),
        lambda: torch.ones(2, 3, dtype=torch.bfloat16),
        lambda: torch.ones(3, 2).T,
        lambda: torch.ones(1, 3).expand(2, 3),
        lambda: torch.ones(1, 3),
    ):
        leaf = make().clone(memory_format=torch.preserve_format).requires_grad_()
        both = all_gather_single(leaf * 1, 0, dist.group.WORLD)
        numbers = torch.arange(both.numel()).reshape(both.shape)
        ((rank + 1) * (both * numbers).sum()).backward()
        wanted = 3 * numbers.chunk(2)[rank]  # of the losses 1 and 2 together
        found.append(torch.equal(leaf.grad, wanted.to(leaf.dtype)))
    leaf = torch.ones(4, requires_grad=True)
    part = reduce_scatter_single(leaf * (rank + 1), "sum", 0, dist.group.WORLD)
    ((rank + 1) * part.sum()).backward()
    found.append(leaf.grad.tolist() == [rank + 1.0] * 2 + [2.0 * (rank + 1)] * 2)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        leaf = torch.ones(1, requires_grad=True)
        torch.cat(_older.all_gather(leaf)).sum().backward()
    found.append(leaf.grad.item() == 2)
    return found, [str(one.message) for one in caught]


assert run_in_two_processes(one_weight) == [(2, 2), (2, 2)]
for _found, _said in run_in_two_processes(_hostile):
    assert all(_found), _found
    assert len(_said) == 1 and "all_gather is deprecated, use" in _said[0]
    assert _said[0].endswith("_functional_collectives.all_gather_single instead.")
# sphinx_gallery_end_ignore

# %%
# One total has slope 1. The gradient is 2, the slope of the *sum* of both totals. DDP (and :ref:`FSDP2
# <sphx_glr_gallery_scale_fsdp_and_dtensor.py>`) then takes the mean over the processes. Together: **you train on the mean of
# the losses that the processes compute.**

# %%
# Where the factor of the world size comes from
# ---------------------------------------------
# An older way needs no derivative of ``all_gather``: each process puts back its own queries *and* keys, and computes the loss
# of *all* queries. The table has both ways, without and with the factor:


def whole_loss_of_constants(queries, keys, rank):
    all_queries, all_keys = gather_constants(queries), gather_constants(keys)
    all_queries[rank], all_keys[rank] = queries, keys
    return contrastive(torch.cat(all_queries), torch.cat(all_keys))


def the_same_times_world_size(queries, keys, rank):
    loss = whole_loss_of_constants(queries, keys, rank)
    return loss * dist.get_world_size()


def whole_loss_with_gradient(queries, keys, rank):
    queries = all_gather_single(queries, 0, dist.group.WORLD)
    keys = all_gather_single(keys, 0, dist.group.WORLD)
    return contrastive(queries, keys)


def with_gradient_times_world_size(queries, keys, rank):
    return with_gradient(queries, keys, rank) * dist.get_world_size()


table = compare(
    whole_loss_of_constants,
    the_same_times_world_size,
    whole_loss_with_gradient,
    with_gradient_times_world_size,
)

# sphinx_gallery_start_ignore
assert table["length"].tolist() == ["0.50", "1.00", "1.00", "2.00"]
assert table["angle"].tolist() == ["0°"] * 4


class _WithTemperature(nn.Module):
    def __init__(self):
        super().__init__()
        self.net, self.temperature = make_net(), nn.Parameter(torch.tensor(0.5))

    def forward(self, samples):
        return normalize(self.net(samples), dim=-1), self.temperature.exp()


def _scaled(way, queries, keys, scale, rank):
    """The three ways, with a temperature that comes after the gathering."""
    if way == "with gradient":
        keys = all_gather_single(keys, 0, dist.group.WORLD)
        return contrastive(queries * scale, keys, first=4 * rank)
    all_queries, all_keys = gather_constants(queries), gather_constants(keys)
    all_queries[rank], all_keys[rank] = queries, keys
    loss = contrastive(torch.cat(all_queries) * scale, torch.cat(all_keys))
    return loss * (2 if way == "twice" else 1)


def _temperature(rank):
    """Gradients of a weight and of the temperature, in three ways; of one weight with FSDP2."""
    found = []
    for way in ("constants", "twice", "with gradient"):
        model = _WithTemperature()
        wrapped = DistributedDataParallel(model)
        (queries, keys), scale = wrapped(pairs[rank])
        _scaled(way, queries, keys, scale, rank).backward()
        found.append((model.net[0].weight.grad, model.temperature.grad))
    with warnings.catch_warnings(action="ignore"):  # the output is a view
        net = fully_shard(make_net(), mesh=init_device_mesh("cpu", (2,)))
        with_gradient(*normalize(net(pairs[rank]), dim=-1), rank).backward()
    sharded = net[0].weight.grad.full_tensor().flatten()
    model = _WithTemperature()  # one process, all samples
    (queries, keys), scale = model(pairs.transpose(0, 1).flatten(1, 2))
    contrastive(queries * scale, keys).backward()
    rights = model.net[0].weight.grad, model.temperature.grad
    return found, rights, torch.dist(sharded, use_all_samples()[:48]).item(), _moved()


def _moved():
    """How much longer a first step gets by a factor of two, with Adam and with SGD."""
    ratios = []
    for kind in (torch.optim.Adam, torch.optim.SGD):
        moved = []
        for factor in (1, 2):
            net = make_net()
            before = net[0].weight.detach().clone()
            optimizer = kind(net.parameters(), lr=0.01)
            queries, keys = normalize(net(pairs[0]), dim=-1)
            (factor * contrastive(queries, keys)).backward()
            optimizer.step()
            moved.append((net[0].weight - before).norm().item())
        ratios.append(moved[1] / moved[0])
    return ratios


for _found, _rights, _off, _ratios in run_in_two_processes(_temperature):
    assert _off < 1e-5
    assert abs(_ratios[0] - 1) < 1e-2 and abs(_ratios[1] - 2) < 1e-2
    for (_weight, _other), *_factors in zip(
        _found, (0.5, 1, 1), (1, 2, 1), strict=True
    ):
        for _got, _factor, _right in zip(
            (_weight, _other), _factors, _rights, strict=True
        ):
            assert torch.allclose(_got, _factor * _right, rtol=1e-3, atol=1e-6)
# sphinx_gallery_end_ignore
table

# %%
# With constants, a process gets the gradient for its own samples only. The sum over the processes would be right, but DDP takes
# the mean, so multiply (asked in `OpenGait#36 <https://github.com/ShiqiYu/OpenGait/issues/36>`__). The gradient of a learned
# temperature then gets too large, because it comes after the gathering. With ``all_gather_single``, the factor is wrong for
# every weight. (Adam hides it.)

# %%
# What people get wrong
# ---------------------
# **Labels that begin at 0 in each process**, **all_reduce inside the loss** (`lightly#1977
# <https://github.com/lightly-ai/lightly/issues/1977>`__). Both mistakes, and ``all_reduce`` with a gradient:

from torch.distributed._functional_collectives import all_reduce


def labels_from_0(queries, keys, rank):
    keys = all_gather_single(keys, 0, dist.group.WORLD)
    return contrastive(queries, keys)


def all_reduce_in_place(queries, keys, rank):
    loss = with_gradient(queries, keys, rank) / dist.get_world_size()
    dist.all_reduce(loss)
    return loss


def all_reduce_with_gradient(queries, keys, rank):
    loss = with_gradient(queries, keys, rank) / dist.get_world_size()
    return all_reduce(loss, "sum", dist.group.WORLD)


table = compare(labels_from_0, all_reduce_in_place, all_reduce_with_gradient)

# sphinx_gallery_start_ignore
assert table["length"].tolist()[1:] == ["0.50", "1.00"]
assert (
    table["angle"].tolist()[1:] == ["0°", "0°"]
    and float(table["angle"].iloc[0][:-1]) > 45
)


def _block(keys):
    return torch.cat([keys, keys.roll(1, 1)])  # 4 positives, 4 negatives


def _all_at_once(queries, keys, rank):
    """The loss of all queries, without a first: what the others should give."""
    queries, keys = (
        all_gather_single(tensor, 0, dist.group.WORLD) for tensor in (queries, keys)
    )
    return contrastive(queries, _block(keys))


def _together(queries, keys, rank):
    keys = _block(keys)
    first = rank * len(keys)
    keys = all_gather_single(keys, 0, dist.group.WORLD)
    return contrastive(queries, keys, first)


def _apart(queries, keys, rank):
    parts = _block(keys).chunk(2)
    parts = [all_gather_single(part, 0, dist.group.WORLD) for part in parts]
    return contrastive(queries, torch.cat(parts), first=4 * rank)


def _counted_in_queries(queries, keys, rank):
    keys = all_gather_single(_block(keys), 0, dist.group.WORLD)
    return contrastive(queries, keys, first=4 * rank)


def _with_negatives(rank):
    ways = _all_at_once, _together, _apart, _counted_in_queries
    return [measure_pattern(way, rank) for way in ways]


_both = run_in_two_processes(_with_negatives)
_mean, *_means = [(_one[0] + _two[0]) / 2 for _one, _two in zip(*_both, strict=True)]
assert [abs(_loss - _mean) < 1e-5 for _loss in _means] == [True, True, False]
for (_, _wanted), *_ways in _both:
    _same = [torch.allclose(_grad, _wanted, atol=1e-5) for _, _grad in _ways]
    assert _same == [True, True, False]


def _messages(rank):
    alone, found = [dist.new_group([one]) for one in range(2)][rank], set()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        weight = torch.ones(1, requires_grad=True)
        result = weight * (rank + 1)
        dist.all_reduce(result)
        result.backward()
        for _ in range(20):  # in a group of one, since the error comes by chance
            keys, output = torch.ones(4, 3, requires_grad=True), torch.empty(4, 3)
            try:
                dist.all_gather_single(output, keys * 2, group=alone)
                output.sum().backward()
            except RuntimeError as error:
                found.add(str(error)[:34])
            found.add(str(keys.grad))
    return [str(one.message) for one in caught], weight.grad.item(), sorted(found)


for _rank, (_said, _grad, _outcomes) in enumerate(run_in_two_processes(_messages)):
    assert "c10d::allreduce_: an autograd kernel was not registered" in _said[0]
    assert _grad == _rank + 1  # as if all_reduce were not there
    assert {*_outcomes} <= {"None", "A view was created in no_grad mode"}


def _one_does_not_call(rank):
    """Only process 0 has the keys in its loss, and backward has a limit of one second."""
    group = dist.new_group()
    keys, said = torch.ones(2, requires_grad=True), ""
    both = all_gather_single(keys, 0, group)
    set_timeout = getattr(dist, "set_timeout", None)  # since 2.15
    (set_timeout or dist.distributed_c10d._set_pg_timeout)(timedelta(seconds=1), group)
    try:
        (both.sum() if rank == 0 else keys.sum()).backward()
    except RuntimeError as error:
        said = str(error)
    dist.barrier()
    return said


_said = run_in_two_processes(_one_does_not_call)
assert "imed out" in _said[0] and _said[1] == ""
# sphinx_gallery_end_ignore
table

# %%
# With wrong labels, the queries of the second process look for keys of the first. If ``keys`` also holds negatives, count in
# keys, as ``rank * len(keys)`` does, and not in queries (`sentence-transformers#3442
# <https://github.com/huggingface/sentence-transformers/pull/3442>`__).
#
# Backward passes ``dist.all_reduce`` as if it were not there, with a warning that *an autograd kernel was not registered*. So
# you divide by the world size, and DDP does it again.
#
# **all_gather_single of the wrong module.** The older ``torch.distributed.nn.functional.all_gather`` has a derivative, and
# since 2.13 warns that you should use the one of ``_functional_collectives``. ``dist.all_gather_single(output, tensor)`` has no
# derivative: ``.grad`` stays None, or Gloo raises *A view was created in no_grad mode*.
#
# **A process that leaves the collective out.** If the loss of one process does not use the gathered keys, the backward of the
# others waits for it until the time limit. And all processes must send the same number of rows.

# %%
# Exercise
# --------
# ``_functional_collectives`` is private, so its names may change. Write an ``autograd.Function`` that gathers. A proposal in
# `lightly#1528 <https://github.com/lightly-ai/lightly/issues/1528>`__ cut the own part out of the gradient, then called
# ``all_reduce`` on it. What is wrong?
#
# .. solution::
#
# Each process cuts out different samples, so the sum mixes them. First sum, then cut:


class Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx, tensor):
        return torch.cat(gather_constants(tensor.contiguous()))

    @staticmethod
    def backward(ctx, grad):
        grad = grad.clone(memory_format=torch.contiguous_format)
        dist.all_reduce(grad)
        return grad.chunk(dist.get_world_size())[dist.get_rank()]


class OwnPartFirst(Gather):
    @staticmethod
    def backward(ctx, grad):
        grad = grad.chunk(dist.get_world_size())[dist.get_rank()].clone()
        dist.all_reduce(grad)
        return grad


def sum_first(queries, keys, rank):
    return contrastive(queries, Gather.apply(keys), first=rank * len(keys))


def own_part_first(queries, keys, rank):
    all_keys = OwnPartFirst.apply(keys)
    return contrastive(queries, all_keys, first=rank * len(keys))


table = compare(sum_first, own_part_first)

# sphinx_gallery_start_ignore
assert table.to_numpy().tolist()[0] == ["2.26", "1.00", "0°"]
assert float(table["angle"].iloc[1][:-1]) > 5
# sphinx_gallery_end_ignore
table

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_scale_ddp_and_autograd.py`: which gradients DDP averages.
# - :ref:`sphx_glr_gallery_scale_fsdp_and_dtensor.py`: DTensor, which does this bookkeeping for you.
# - :ref:`sphx_glr_gallery_functions_exp_function.py`: how to write a ``Function``.
