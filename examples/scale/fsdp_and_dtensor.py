r"""
Gradients with FSDP2 (fully_shard) and DTensor
==============================================

.. index::
   single: FSDP2 gradient accumulation, clip_grad_norm_ with FSDP2
   single: to_local, full_tensor and grad_placements
   single: Replicate, Shard, Partial
   single: has no attribute 'no_sync'
   single: optimizer created before fully_shard
   single: replicated weights or gradients differ between ranks

.. in-short::

   ``fully_shard`` cuts each weight into parts, one for each process. ``backward()`` puts the *mean* gradient of all processes
   into ``.grad``, cut in the same way. Accumulating and clipping need no new code:

   .. code-block:: python

      loss.backward()
      norm = torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
      optimizer.step()  # an optimizer made after fully_shard

   If your loss uses ``weight.full_tensor()``, pass ``grad_placements``. Without it, the gradient can be wrong, and you get no
   error.
"""

# %%
# A model in two parts
# --------------------
# A model that is too large for one GPU is trained in parts. Its weights are of the type ``DTensor``, and look whole until your
# own code reads their numbers. To look inside, this page starts two processes.
#
# .. how-measured:: This code forks two processes (not on Windows), and calls a function in both.

import tempfile
import time
import warnings
from datetime import timedelta

import matplotlib.pyplot as plt
import pandas as pd
import torch
import torch._dynamo  # imported once, before there are two processes
import torch.distributed as dist
import torch.distributed.fsdp
from torch.multiprocessing import start_processes

warnings.filterwarnings("ignore", "This process .* is multi-threaded")


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


def tabulate_parts(first, second):
    rows = {
        name: {
            "whole": tuple(whole.shape),
            "rank 0": tuple(part.shape),
            "rank 1": tuple(second[name][0].shape),
        }
        for name, (part, whole) in first.items()
    }
    return pd.DataFrame(rows).T.rename_axis(columns="gradient")


def plot_weights(first, second):
    _, ax = plt.subplots(figsize=(7, 2.7), layout="constrained")
    for rank, color in enumerate(("#c2410c", "#7c3aed")):
        label = f"process {rank}, no grad_placements"
        ax.plot((first, second)[rank][0][2], color=color, label=label)
    label = "both, with Partial('avg')"
    ax.plot(first[1][2], color="#2563eb", label=label)
    ax.set(xlabel="step", ylabel="weight 0", xticks=range(0, 20, 5))
    ax.set_title("Without grad_placements, two copies of one weight drift apart")
    ax.legend(fontsize=8)


# %%
# ``run_in_two_processes`` calls a function in both, with the number of the process: its *rank*. Call ``fully_shard`` for each
# layer, then for the whole model. (A *mesh* is the group of processes that share the parts.)

import torch
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn.functional import mse_loss

torch.manual_seed(0)
x, y = torch.randn(2, 8, 4), 3 * torch.randn(2, 8, 1)  # 8 samples for each process


def make_net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 1))


def shard(net):
    mesh = init_device_mesh("cpu", (2,))  # on GPUs: "cuda"
    for layer in (net[0], net[2]):
        fully_shard(layer, mesh=mesh)
    return fully_shard(net, mesh=mesh)


def gradients(rank):
    net = shard(make_net())
    mse_loss(net(x[rank]), y[rank]).backward()
    return {
        name: (p.grad.to_local(), p.grad.full_tensor())
        for name, p in net.named_parameters()
    }


parts = run_in_two_processes(gradients)

# sphinx_gallery_start_ignore
import gc

from torch.distributed.device_mesh import DeviceMesh


def _all_samples(rank):
    """In a process, too: a backward before a fork breaks those after it if there is a GPU."""
    net = make_net()
    mse_loss(net(x.flatten(0, 1)), y.flatten(0, 1)).backward()
    return {name: p.grad for name, p in net.named_parameters()}


_right = run_in_two_processes(_all_samples)[0]
for _rank, _found in enumerate(parts):
    for _name, (_part, _whole) in _found.items():
        assert torch.allclose(_whole, _right[_name], atol=1e-6)
        _pieces = _right[_name].chunk(2)
        _mine = _pieces[_rank] if _rank < len(_pieces) else _pieces[0][:0]
        assert torch.allclose(_part, _mine, atol=1e-6)
_shapes = [tuple(part.shape) for part, _ in parts[1].values()]
assert _shapes == [(3, 4), (3,), (0, 6), (0,)]


def _alone(rank):
    """full_tensor() in process 0 alone waits, and with a limit of one second, raises."""
    group, said = dist.new_group(), ""
    net = fully_shard(make_net(), mesh=DeviceMesh.from_group(group, "cpu"))
    set_timeout = getattr(dist, "set_timeout", None)  # since 2.15
    (set_timeout or dist.distributed_c10d._set_pg_timeout)(timedelta(seconds=1), group)
    if rank == 0:
        try:
            net[0].weight.full_tensor()
        except RuntimeError as error:
            said = str(error)
    dist.barrier()
    return said


assert "imed out" in run_in_two_processes(_alone)[0]
# sphinx_gallery_end_ignore
tabulate_parts(*parts)

# %%
# Each process holds some of the rows, or none. Put together by ``full_tensor()``, they are the gradient that one process gets
# from all 16 samples, because both processes have 8. Call ``full_tensor()`` in all processes, not only where ``rank == 0``: it
# waits for the others.

# %%
# The rule: placements say what the local numbers are
# ---------------------------------------------------
# A ``DTensor`` is a local tensor in each process, with *placements*:
#
# - ``Shard(0)``: each process has some of the rows.
# - ``Replicate()``: all have the same whole tensor.
# - ``Partial()``: the whole tensor is the sum of the local ones. With ``Partial("avg")`` it is their mean.
#
# ``to_local()`` and ``full_tensor()`` return plain tensors, so after them, each process computes a gradient of its own loss.
# **Backward believes what** ``grad_placements`` **says of this gradient.** By default, it believes that the gradient of a whole
# tensor is the same in all processes. In this example, that is false, because each process has its own samples:

from torch.distributed.tensor import Partial, Replicate, distribute_tensor


def train(rank, grad_placements):
    mesh = init_device_mesh("cpu", (2,))
    weight = nn.Parameter(distribute_tensor(torch.ones(4), mesh, [Replicate()]))
    optimizer = torch.optim.SGD([weight], lr=0.1)
    grads, weights = [], []
    for _ in range(20):
        scaled = x[rank] * weight.to_local(grad_placements=grad_placements)
        loss = mse_loss(scaled.sum(1, keepdim=True), y[rank])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        grads.append(weight.grad.to_local()[0].item())
        weights.append(weight.to_local()[0].item())
    return str(weight.grad.placements), grads, weights


def train_twice(rank):
    return train(rank, None), train(rank, [Partial("avg")])


runs = run_in_two_processes(train_twice)
for rank, (without, _) in enumerate(runs):
    placements, grads, _ = without
    print(f"process {rank}: {placements}, first gradient {grads[0]:.2f}")

# figure: Weight 0 over 20 steps. Without grad_placements, the copies in process 0 and process 1 go to different values. With
#   Partial("avg"), both copies are one curve, which ends between the two.
plot_weights(*runs)

# sphinx_gallery_start_ignore


def _one_process(rank):
    weights, weight = [], torch.ones(4, requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=0.1)
    for _ in range(20):
        optimizer.zero_grad()
        scaled = (x.flatten(0, 1) * weight).sum(1, keepdim=True)
        mse_loss(scaled, y.flatten(0, 1)).backward()
        optimizer.step()
        weights.append(weight[0].item())
    return weights


_wanted = run_in_two_processes(_one_process)[0]
for _, (_, _, _weights) in runs:
    assert torch.allclose(torch.tensor(_weights), torch.tensor(_wanted), atol=1e-5)
(_first, _), (_second, _) = runs
assert _first[0] == _second[0] and "Replicate" in _first[0]
assert abs(_first[1][0] - _second[1][0]) > 0.2
_ends = sorted((_first[2][-1], _second[2][-1]))
assert _ends[0] + 0.2 < _wanted[-1] < _ends[1] - 0.2


def _claims(rank):
    """Of a loss that the processes compute together, or both alone: which gradients are right?"""
    mesh, right = init_device_mesh("cpu", (2,)), []
    samples, targets = x.flatten(0, 1), y.flatten(0, 1)
    for placement in (Replicate(), Shard(0)):
        for way in ("mean", "summand", "same"):
            for claim in (None, [Replicate()], [Partial()], [Partial("avg")]):
                weight = nn.Parameter(
                    distribute_tensor(torch.ones(4), mesh, [placement])
                )
                plain = torch.ones(4, requires_grad=True)
                whole = weight.full_tensor(grad_placements=claim)
                mine = slice(None) if way == "same" else slice(8 * rank, 8 * rank + 8)
                loss = (samples[mine] @ whole - targets[mine, 0]).square()
                loss = loss.mean() if way == "mean" else loss.sum()
                loss.backward()
                loss = (samples @ plain - targets[:, 0]).square()
                (loss.mean() if way == "mean" else loss.sum()).backward()
                grad = weight.grad.full_tensor()
                right.append(torch.allclose(grad, plain.grad, rtol=1e-4))
    # of a part, the default is right, and grad_placements make a false gradient
    right = torch.tensor(right).reshape(2, 3, 4).tolist()
    parts = []
    for claim in (None, [Partial("avg")], [Replicate()]):
        weight = shard(make_net())[0].weight
        weight.to_local(grad_placements=claim).square().sum().backward()
        parts.append(weight.grad.placements == weight.placements)
    weight = shard(make_net())[0].weight
    weight.to_local().square().sum().backward()
    wanted = 2 * weight.detach().full_tensor()
    parts.append(torch.equal(weight.grad.full_tensor(), wanted))
    for claim in (None, [Partial()]):  # a summand: its gradient is 3
        summand = torch.full((2,), 1.0 + rank, requires_grad=True)
        tensor = DTensor.from_local(summand, mesh, [Partial()])
        (3 * tensor.to_local(grad_placements=claim)).sum().backward()
        parts.append(summand.grad.tolist() == [3.0, 3.0])
        parts.append(summand.grad.tolist() == [6.0, 6.0])
    return right, _two_dimensions(rank), parts


def _two_dimensions(rank):
    mesh, grads = init_device_mesh("cpu", (1, 2)), []
    for claim in ([Replicate(), Partial("avg")], [Partial("avg")]):
        weight = distribute_tensor(torch.ones(2), mesh, [Replicate()] * 2)
        weight = nn.Parameter(weight)
        (weight.to_local(grad_placements=claim) * (rank + 1)).sum().backward()
        grads.append(weight.grad.full_tensor()[0].item())
    return grads


from torch.distributed.tensor import DTensor, Shard

for _rank, (_found, _grads, _parts) in enumerate(run_in_two_processes(_claims)):
    assert _grads == [1.5, _rank + 1] and _parts[:4] == [True, False, False, True]
    assert _parts[4:] == [True, False, False, True]
    for _of_placement in _found:
        assert _of_placement == [
            [False, False, False, True],
            [False, False, True, False],
            [True, True, False, True],
        ]
# sphinx_gallery_end_ignore

# %%
# Without ``grad_placements``, both gradients say ``Replicate``, and differ. (torchtitan had this fault: `torchtitan#2388
# <https://github.com/pytorch/torchtitan/pull/2388>`__, `torchtitan#2532 <https://github.com/pytorch/torchtitan/pull/2532>`__.)
# What to pass for a whole weight:
#
# - ``[Partial("avg")]`` if each process computes the loss of its own samples, and you want the mean.
# - ``[Partial()]`` if each process computes a summand of one loss.
# - ``[Replicate()]`` if all processes compute the same loss from the same numbers.
#
# Leave it out for ``to_local()`` of a part (``Shard``) or of a ``Partial`` tensor. A mesh with two dimensions needs two
# placements in the list. With only one, you get no error either.

# %%
# Accumulate and clip
# -------------------
# Write the loop that you would write for one process. DDP's ``no_sync()`` raises *'FSDPSequential' object has no attribute
# 'no_sync'*. In its place, ``set_requires_gradient_sync(False)`` saves exchanges, but each process then keeps whole gradients.

from torch.nn.utils import clip_grad_norm_


def accumulate(net, rank, save_exchanges=True):
    pieces = zip(x[rank].chunk(4), y[rank].chunk(4), strict=True)
    for i, (xs, ys) in enumerate(pieces):
        if save_exchanges:
            net.set_requires_gradient_sync(i == 3)
        loss = mse_loss(net(xs), ys) / 4
        loss.backward()


def clipped_norm(rank):
    net = shard(make_net())
    accumulate(net, rank)
    norm = clip_grad_norm_(net.parameters(), max_norm=1.0)
    return norm.full_tensor().item()  # a DTensor, too


norms = run_in_two_processes(clipped_norm)
print("norm before clipping:", [round(norm, 3) for norm in norms])

# sphinx_gallery_start_ignore
_norm = torch.nn.utils.get_total_norm(list(_right.values())).item()
assert all(abs(norm - _norm) < 1e-5 for norm in norms) and _norm > 1


def _accumulated(rank):
    """Exchanges and gradients: each time, only at the end, decided before backward, clipped."""
    results, real = [], dist.reduce_scatter_single
    for way in ("each", "last", "late", "clipped"):
        net, sent = shard(make_net()), []
        dist.reduce_scatter_single = lambda *a, sent=sent, **o: (
            sent.append(1),
            real(*a, **o),
        )[1]
        if way == "late":
            pieces = zip(x[rank].chunk(4), y[rank].chunk(4), strict=True)
            for i, (xs, ys) in enumerate(pieces):
                loss = mse_loss(net(xs), ys) / 4
                net.set_requires_gradient_sync(i == 3)
                loss.backward()
        else:
            accumulate(net, rank, way != "each")
        if way == "clipped":
            clip_grad_norm_(net.parameters(), max_norm=1.0)
        results.append((len(sent), [p.grad.full_tensor() for p in net.parameters()]))
    dist.reduce_scatter_single = real
    try:
        net.no_sync()
    except AttributeError as error:
        results.append(str(error))
    return results


def _exchange_off(rank):
    net = shard(make_net())
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    before = net[0].weight.full_tensor()
    net.set_requires_gradient_sync(False)
    mse_loss(net(x[rank]), y[rank]).backward()
    kept = 0
    for thing in gc.get_objects():
        if type(thing) in (torch.Tensor, nn.Parameter) and thing.is_leaf:
            kept += thing.grad is not None and thing.grad.shape == (6, 4)
    none = all(p.grad is None for p in net.parameters())
    norm = clip_grad_norm_(net.parameters(), max_norm=1.0)
    optimizer.step()
    same = torch.equal(net[0].weight.full_tensor(), before)
    optimizer.zero_grad()  # does not delete what is kept
    net.set_requires_gradient_sync(True)
    mse_loss(net(x[rank]), y[rank]).backward()
    double = torch.allclose(
        net[0].weight.grad.full_tensor(), 2 * _right["0.weight"], atol=1e-5
    )
    return kept > 0, none, norm.item(), same, double


def _one_unit(rank):
    """Whether the weight moves: optimizer made before and after a first forward."""
    results = []
    for first in (False, True):
        net = fully_shard(make_net(), mesh=init_device_mesh("cpu", (2,)))
        before = net[0].weight.full_tensor()
        if first:
            net(x[rank])
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        mse_loss(net(x[rank]), y[rank]).backward()
        optimizer.step()
        after = net.state_dict()["0.weight"].full_tensor()
        results.append(not torch.equal(after, before))
    return results


def _hidden(rank):
    return _accumulated(rank), _exchange_off(rank), _one_unit(rank)


for _found, _off, _moves in run_in_two_processes(_hidden):
    assert _found.pop() == "'FSDPSequential' object has no attribute 'no_sync'"
    assert [sent for sent, _ in _found] == [8, 2, 2, 2]
    for _i, (_, _grads) in enumerate(_found):
        for _grad, _wanted in zip(_grads, _right.values(), strict=True):
            _wanted = _wanted / _norm if _i == 3 else _wanted
            assert torch.allclose(_grad, _wanted, atol=1e-5)
    assert _off == (True, True, 0.0, True, True) and _moves == [True, False]
# sphinx_gallery_end_ignore

# %%
# What people get wrong
# ---------------------
# **An optimizer made too early.** ``fully_shard`` replaces the parameters, so an optimizer from before it moves no weight. If
# the whole model is one unit, neither does one that is made after a first forward (`pytorch#149205
# <https://github.com/pytorch/pytorch/issues/149205>`__).


def moved(rank, early):
    net = make_net()
    if early:
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    shard(net)
    if not early:
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    before = net[0].weight.full_tensor()
    mse_loss(net(x[rank]), y[rank]).backward()
    optimizer.step()
    return (net[0].weight.full_tensor() - before).abs().max().item()


both = run_in_two_processes(lambda rank: (moved(rank, True), moved(rank, False)))
print("made before fully_shard: moved by {:.3f}, after: {:.3f}".format(*both[0]))

# sphinx_gallery_start_ignore
for _before, _after in both:
    assert _before == 0 and _after > 0.01
# sphinx_gallery_end_ignore

# %%
# **An epoch that ends while the exchange is off.** Then ``.grad`` is None, and ``optimizer.step()`` changes nothing. The next
# exchange adds what was kept, even after ``zero_grad()``. Call ``set_requires_gradient_sync(True)`` before the last piece.
#
# **A gradient penalty.** ``torch.autograd.grad(..., create_graph=True)`` through the model frees the whole weights. The
# ``backward()`` after it raises *setStorage: sizes ... are out of bounds for storage of size 0*. If the model fits, use DDP.
#
# **A norm from item().** It is the norm of one part, and to clip with it scales each process by a different factor.


def two_norms(rank):
    net = shard(make_net())
    mse_loss(net(x[rank]), y[rank]).backward()
    norm = net[0].weight.grad.norm()
    return round(norm.item(), 3), round(norm.full_tensor().item(), 3)


norms = run_in_two_processes(two_norms)
print("item(), full_tensor():", *norms)

# sphinx_gallery_start_ignore


def _penalty(rank):
    net, inputs = shard(make_net()), x[rank].clone().requires_grad_()
    (slope,) = torch.autograd.grad(net(inputs).sum(), inputs, create_graph=True)
    try:
        (slope.norm(dim=1) - 1).square().mean().backward()
    except RuntimeError as error:
        return str(error)
    return ""


def _as_in_one_process(rank):
    """Three steps of AdamW, accumulated and clipped, with a frozen bias and an evaluation."""
    nets, norms = (shard(make_net()), make_net()), []
    for net in nets:
        net[0].bias.requires_grad_(False)
        optimizer = torch.optim.AdamW(net.parameters(), lr=0.1, weight_decay=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            if net is nets[0]:
                accumulate(net, rank)
            else:
                mse_loss(net(x.flatten(0, 1)), y.flatten(0, 1)).backward()
            norms.append(clip_grad_norm_(net.parameters(), max_norm=0.5))
            optimizer.step()
            with torch.no_grad():
                net.eval()(x[rank])
            net.train()
    pairs = zip(*(net.parameters() for net in nets), strict=True)
    return [torch.allclose(a.full_tensor(), b, atol=1e-4) for a, b in pairs]


for _said in run_in_two_processes(_penalty):
    assert not torch.__version__.startswith("2.13") or (
        _said.startswith("setStorage: sizes") and _said.endswith("storage of size 0")
    )
assert run_in_two_processes(_as_in_one_process) == [[True] * 4] * 2
(_one, _whole), (_other, _same) = norms
assert _whole == _same == round(_right["0.weight"].norm().item(), 3)
assert abs(_one - _whole) > 0.1 and abs(_other - _whole) > 0.1 and _one != _other
# sphinx_gallery_end_ignore

# %%
# Exercise
# --------
# Under ``fully_shard``, a loss also multiplies its samples by ``weight.full_tensor()``. Another loss adds the penalty
# ``weight.full_tensor().square().sum()``. Which ``grad_placements`` give the gradient of one process that has all samples?
#
# .. solution::
#
# ``[Partial("avg")]`` is right for both. The penalty is the same in each process, so the default is right, too, and a sum is
# twice as large.


def extra_term(net, samples, targets, weight, penalty):
    used = weight if penalty else samples @ weight.T
    return mse_loss(net(samples), targets) + used.square().sum(1).mean()


def with_claims(rank):
    results = []
    for penalty in (False, True):
        net = make_net()
        weight = net[0].weight
        extra_term(net, x.flatten(0, 1), y.flatten(0, 1), weight, penalty).backward()
        right = weight.grad  # of one process that has all samples
        for claim in (None, [Partial()], [Partial("avg")]):
            net = shard(make_net())
            weight = net[0].weight.full_tensor(grad_placements=claim)
            extra_term(net, x[rank], y[rank], weight, penalty).backward()
            grad = net[0].weight.grad.full_tensor()
            results.append(torch.allclose(grad, right, atol=1e-5))
    return results


results = run_in_two_processes(with_claims)[0]
for i, right in enumerate(results):
    name = ("default", "Partial()", "Partial('avg')")[i % 3]
    term = "samples" if i < 3 else "penalty"
    print(f"{term}, {name:<14}  {'right' if right else 'wrong'}")

# sphinx_gallery_start_ignore
assert results == [False, False, True, True, False, True]
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_scale_ddp_and_autograd.py`: for a model that fits into one GPU, and batches of unequal size.
# - :ref:`sphx_glr_gallery_scale_gradients_through_collectives.py`: when the loss compares samples of several processes.
# - :ref:`sphx_glr_gallery_errors_ddp_finished_reduction.py`: *got mixed torch.Tensor and DTensor*.
# - :ref:`sphx_glr_gallery_training_gradient_clipping.py`.
# - In PyTorch's tutorials: `Getting started with FSDP2
#   <https://docs.pytorch.org/tutorials/intermediate/FSDP_tutorial.html>`__.
