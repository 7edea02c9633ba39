r"""
DistributedDataParallel (DDP): when gradients are averaged
==========================================================

.. index::
   single: DDP gradient synchronization
   single: what does no_sync do
   single: DDP with torch.autograd.grad, gradient penalty
   single: processes of DDP have different weights
   single: communication hook, bucket_cap_mb, all-reduce

.. in-short::

   Each process computes the gradients of its own data. During ``backward()``, DDP puts the *mean* over all processes into
   ``.grad``. So every optimizer takes the same step.

   .. code-block:: python

      model = DistributedDataParallel(net)
      loss = loss_function(model(x), y)  # call the wrapper, not net
      loss.backward()                    # one backward for one forward

   Not averaged, without an error: ``torch.autograd.grad``, a second ``backward()`` after the same forward, and a forward inside
   ``no_sync()``.
"""

# %%
# Two processes, one model
# ------------------------
# Each of two processes has 8 samples of its own. Their gradients differ, so two optimizers would make two different models out
# of one. DDP has to prevent that.
#
# .. how-measured:: This code starts two processes by a fork, calls a function in both, and returns what each returned.

import contextlib
import io
import os
import tempfile
import time
import warnings
from contextlib import nullcontext
from datetime import timedelta

import matplotlib.pyplot as plt
import pandas as pd
import torch
import torch._dynamo  # DDP imports it: do it once, before there are two processes
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.multiprocessing import start_processes
from torch.nn.functional import l1_loss, mse_loss
from torch.nn.parallel import DistributedDataParallel

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
    dist.destroy_process_group()


def run(function):
    with tempfile.TemporaryDirectory() as folder:
        arguments = (function, folder)
        both = start_processes(process, arguments, 2, join=False, start_method="fork")
        end = time.monotonic() + 60
        while not both.join(timeout=1):
            if time.monotonic() > end:
                for one in both.processes:
                    one.kill()
        return [torch.load(f"{folder}/{rank}") for rank in range(2)]


def draw(alone, averaged):
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
# ``run`` calls a function in two processes, with the number of the process: its *rank*. In a script, you start them by
# ``torchrun --nproc-per-node 2 train.py``, call ``dist.init_process_group()`` first, and get ``rank`` from ``dist.get_rank()``.

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
draw(run(alone), run(with_ddp))

# sphinx_gallery_start_ignore
_alone, _ddp = run(alone), run(with_ddp)
assert torch.equal(*_ddp) and torch.allclose(sum(_alone) / 2, _ddp[0])
assert ((_alone[0] - _alone[1]).abs() > 0.05).all()


def _other_seeds(rank):
    torch.manual_seed(rank)
    net = nn.Linear(4, 1)
    before = net.weight.detach().clone()
    DistributedDataParallel(net)
    return before, net.weight.detach()


(_before_0, _after_0), (_before_1, _after_1) = run(_other_seeds)
assert not torch.equal(_before_0, _before_1)
assert torch.equal(_before_0, _after_0) and torch.equal(_before_0, _after_1)
# sphinx_gallery_end_ignore

# %%
# The weights were equal before the step: when you wrap a model, DDP copies the weights of process 0 to all others. Equal
# weights and equal gradients give equal weights after the step.

# %%
# How: a hook on each parameter, and buckets
# ------------------------------------------
# DDP puts a hook on the ``AccumulateGrad`` node of each parameter that requires a gradient. When all gradients of a *bucket*
# are there, their mean over the processes is computed (an *all-reduce*), while backward computes the next ones. The list below
# notes when each gradient is there, and when each bucket is sent.


def order(rank):
    net = nn.Sequential(*[nn.Linear(256, 256) for layer in range(3)])
    model = DistributedDataParallel(net, bucket_cap_mb=0.25)  # the default is 25
    log = []

    def note_and_send(log, bucket):
        log.append(f"[bucket {bucket.index()}]")
        return default_hooks.allreduce_hook(None, bucket)

    model.register_comm_hook(log, note_and_send)
    for name, p in net.named_parameters():
        p.register_post_accumulate_grad_hook(lambda p, name=name: log.append(name))
    for step in (1, 2):
        log.append(f"\nstep {step}:")
        model(torch.ones(2, 256)).sum().backward()
    return log


print(*run(order)[0])

# sphinx_gallery_start_ignore
_orders = run(order)
assert _orders[0] == _orders[1]
_first, _second = (text.split() for text in " ".join(_orders[0]).split("\nstep ")[1:])
assert _first[-2:] == ["[bucket", "0]"] and _first.count("[bucket") == 1
_layers = [word.split(".")[0] for word in _second[1:]]
assert " ".join(_layers) == "2 2 [bucket 0] 1 1 [bucket 1] 0 0 [bucket 2]"


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


assert run(_frozen) == [([(1, 4), (1,)], None)] * 2


def _keeps_nodes(rank):
    """Whether the AccumulateGrad node outlives the graph, since DDP holds it."""
    found = []
    for wrap in (lambda net: net, DistributedDataParallel):
        net = nn.Linear(4, 1)
        model = wrap(net)
        for _ in range(2):
            ((node, _),) = net.weight.view_as(net.weight).grad_fn.next_functions
            found.append((node.name().rpartition("::")[2], len(node.metadata)))
            node.metadata["seen"] = True
            del node
        del model
    return found


assert run(_keeps_nodes) == [[("AccumulateGrad", seen) for seen in (0, 0, 0, 1)]] * 2
# sphinx_gallery_end_ignore

# %%
# Backward begins with the last layer, so its bucket leaves first. Here the first step has one bucket for all; then DDP knows
# the order, and makes buckets of about ``bucket_cap_mb``. A frozen parameter is in no bucket: :ref:`freeze it before you wrap
# <sphx_glr_gallery_modes_freezing.py>`.

# %%
# What people get wrong
# ---------------------
# DDP exchanges gradients in the first ``backward()`` after a forward *of the wrapper*. In the patterns below, all else stays
# local, without an error.
#
# .. how-measured:: For each pattern, this code wraps a new model, counts the buckets sent, and compares the gradients.


def compare(*patterns):
    first, second = run(lambda rank: [measured(pattern, rank) for pattern in patterns])
    rows = {}
    for pattern, (sent, grads), (_, others) in zip(
        patterns, first, second, strict=True
    ):
        same = all(torch.allclose(*pair) for pair in zip(grads, others, strict=True))
        name = pattern.__name__.replace("_", " ")
        rows[name] = {"exchanges": sent, "same .grad": "yes" if same else "no"}
    return pd.DataFrame(rows).T


def measured(pattern, rank):
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
table = compare(*losses, around_the_wrapper, autograd_grad)

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
            (*measured(pattern, rank), _whole(*losses)) for pattern, *losses in cases
        ]

    first, second = run(worker)
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


for _rank, _found in enumerate(run(_hooks)):
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


assert not torch.allclose(*run(_step_in_hook))


def _collectives(rank):
    leaf, found = torch.ones(2, requires_grad=True), []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        total = leaf * (rank + 1)
        dist.all_reduce(total)
        total.sum().backward()
    found.append([str(w.message) for w in caught])
    gathered = [torch.empty(2), torch.empty(2)]
    dist.all_gather(gathered, leaf * (rank + 1))
    found.append([part.requires_grad for part in gathered])
    with warnings.catch_warnings(record=True) as deprecated:
        warnings.simplefilter("always")
        recorded = torch.distributed.nn.functional.all_reduce(leaf * (rank + 1))
        parts = torch.distributed.nn.functional.all_gather(leaf * (rank + 1))
    found.append(["Reduce" in recorded.grad_fn.name(), parts[0].requires_grad])
    return [*found, ["deprecated, use" in str(w.message) for w in deprecated]]


TORCH = tuple(int(part) for part in torch.__version__.split(".")[:2])
for _warned, _gathered, _recorded, _deprecated in run(_collectives):
    assert len(_warned) == 1 and "an autograd kernel was not registered" in _warned[0]
    assert _gathered == [False, False] and _recorded == [True, True]
    assert _deprecated == [True, True] or TORCH < (2, 13)
# sphinx_gallery_end_ignore
table

# %%
# - **One backward for each forward.** Add the losses up, or call forward, backward, forward, backward. After two backwards,
#   only the gradients of the first are averaged here (asked in `pytorch#47260
#   <https://github.com/pytorch/pytorch/issues/47260>`__).
# - **Call the wrapper.** ``model.module`` is your own module, and DDP does not notice that it runs.
# - ``torch.autograd.grad`` puts nothing into ``.grad``, so the hooks do not run. Average its result yourself:
#   ``dist.all_reduce(grad)`` makes it the sum over the processes, then ``grad /= dist.get_world_size()``.
# - **A hook of yours sees the gradient of its own process**, with ``register_hook`` and with
#   ``register_post_accumulate_grad_hook``. An optimizer step in such a hook makes the weights differ. :ref:`Clip
#   <sphx_glr_gallery_training_gradient_clipping.py>` after ``backward()``.
# - ``dist.all_reduce`` **inside the loss** is not differentiated: PyTorch warns that *an autograd kernel was not registered*.
#   The results of ``dist.all_gather`` do not require a gradient. ``torch.distributed.nn.functional`` has versions that autograd
#   records. They are deprecated in PyTorch 2.13, and the warning names their successors.
#
# By default, a parameter that got no gradient raises an error in the next forward: see :ref:`the page on this message
# <sphx_glr_gallery_errors_ddp_finished_reduction.py>`, also for *marked as ready twice*.

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
# Forward looks at the flag that ``no_sync`` sets, and backward does what forward has prepared. These two set it too late:


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


table = compare(no_sync_around_both, no_sync_around_backward, flag_after_forward)

# sphinx_gallery_start_ignore


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


assert compare(_epoch_ends).to_numpy().tolist() == [[0, "no"]]


def _piece_that_is_sent(rank):
    results = measured(flag_after_forward, rank)[1]
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1))
    for other in range(2):
        (mse_loss(net(x[other][:2]), y[other][:2]) / 8).backward()
    for i, (xs, ys) in pieces(rank):
        if i:
            (mse_loss(net(xs), ys) / 4).backward()
    return results, [p.grad for p in net.parameters()]


assert all(_close(*pair) for pair in run(_piece_that_is_sent))
# sphinx_gallery_end_ignore
table

# %%
# Around backward alone, ``no_sync`` saves nothing here: without it there are four exchanges, too. In the last row, only the
# first of the four pieces is exchanged, and the weights of the processes drift apart. A well-known training script had this
# order of lines, and its loss was higher (`build-nanogpt#30 <https://github.com/karpathy/build-nanogpt/pull/30>`__).
#
# Count the pieces to the end: if an epoch ends within ``no_sync``, the next ``optimizer.step()`` uses local gradients.

# %%
# Gradient penalties
# ------------------
# The penalty of WGAN-GP takes the gradient with respect to the *input* by ``torch.autograd.grad``, and then calls
# ``backward()``. Together with another loss, that backward is averaged. Alone, it is not:


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


table = compare(with_a_loss, penalty_alone, with_zero_times_output)

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
        results.append((measured(pattern, rank)[1], grads))
    return results


assert all(_close(*pair) for pairs in run(_penalties) for pair in pairs)


def _unused_flag(rank):
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # DDP warns on the terminal
    net = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1))
    penalty_alone(DistributedDataParallel(net, find_unused_parameters=True), rank)
    return net[0].weight.grad, net[2].bias.grad is None


(_grad_0, _none), (_grad_1, _) = run(_unused_flag)
assert _none and not torch.allclose(_grad_0, _grad_1)


def _on_weights(model, rank):
    loss = mse_loss(model(x[rank]), y[rank])
    grads = torch.autograd.grad(loss, list(model.parameters()), create_graph=True)
    (loss + sum(grad.square().sum() for grad in grads)).backward()


def _on_weights_alone(rank):
    net = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1))
    _on_weights(net, rank)
    return *measured(_on_weights, rank), [p.grad for p in net.parameters()]


(_sent, _got, _one), (_, _same, _other) = run(_on_weights_alone)
_mean = [(a + b) / 2 for a, b in zip(_one, _other, strict=True)]
assert _sent == 1 and _close(_got, _mean) and _close(_got, _same)


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
assert all(said.startswith(_said) for said in run(_create_graph))
# sphinx_gallery_end_ignore
table

# %%
# The bias of the last layer does not change the slope, so the penalty alone gives it no gradient. Its bucket is never complete
# (asked in `pytorch#47562 <https://github.com/pytorch/pytorch/issues/47562>`__). ``find_unused_parameters=True`` does not help
# here, since the output does use the bias. Zero times the output gives it a gradient of zero.
#
# A penalty on the gradients of the *weights* is averaged too, but each process computes it from its own gradients.
# ``loss.backward(create_graph=True)`` raised ``a leaf Variable that requires grad is being used in an in-place operation`` here
# (asked in `pytorch#63812 <https://github.com/pytorch/pytorch/issues/63812>`__).

# %%
# Communication hooks
# -------------------
# ``register_comm_hook`` replaces the mean by a function of yours. It gets each bucket, and returns a ``Future`` of the new
# gradients. ``fp16_compress_hook`` sends half precision numbers. In a hook of your own, forget the division and the gradients
# are sums:


def sum_only(state, bucket):
    work = dist.all_reduce(bucket.buffer(), async_op=True)
    return work.get_future().then(lambda future: future.value()[0])


def with_hook(rank, hook):
    net = nn.Linear(4, 1)
    model = DistributedDataParallel(net)
    model.register_comm_hook(None, hook)
    mse_loss(model(x[rank]), y[rank]).backward()
    return net.weight.grad


mean = run(with_ddp)[0]
for hook in (default_hooks.fp16_compress_hook, sum_only):
    ratio = run(lambda rank, hook=hook: with_hook(rank, hook))[0] / mean
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


for _said, _sent in run(_refused):
    assert (
        len(_said) == 2 and "bucket" in _said[0] and "only be called once" in _said[1]
    )
    assert _sent == ["torch.float16"]
# sphinx_gallery_end_ignore

# %%
# The second parameter of the hook must be called ``bucket``, and a model takes one such hook.

# %%
# Exercise
# --------
# Process 0 has 12 samples, process 1 has 4, and each calls ``mse_loss``. Is the mean of the two gradients the gradient of all
# 16 samples? If not, on what should each process call ``backward()``?
#
# .. solution::
#
# It is not. DDP gives each process the same weight, so a sample of process 1 counts three times as much. Divide the *sum* of
# the losses by the number of all samples. DDP will divide by the number of processes: multiply by it.

samples, targets = x.flatten(0, 1).split([12, 4]), y.flatten(0, 1).split([12, 4])


def mean_of_means(model, rank):
    mse_loss(model(samples[rank]), targets[rank]).backward()


def by_number(model, rank):
    number = torch.tensor(len(samples[rank]))
    dist.all_reduce(number)  # now it is 16 in both processes
    loss = mse_loss(model(samples[rank]), targets[rank], reduction="sum")
    (loss * dist.get_world_size() / number).backward()


for pattern in (mean_of_means, by_number):
    (_, grads), _ = run(lambda rank, pattern=pattern: measured(pattern, rank))
    print(f"{pattern.__name__:<14} bias of the last layer: {grads[-1].item():.3f}")

# sphinx_gallery_start_ignore
_cases = (mean_of_means, mse_loss), (by_number, mse_loss)
assert _right(*_cases) == [(1, False), (1, True)]
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - Before: :ref:`sphx_glr_gallery_scale_compile_and_autograd.py`, what a compiler does to the graph.
# - Next: :ref:`sphx_glr_gallery_cuda_devices.py`, where a tensor is, and how it gets elsewhere.
# - :ref:`sphx_glr_gallery_differentiation_hooks.py`: when a hook on a tensor runs.
# - :ref:`sphx_glr_gallery_differentiation_accumulation.py`: accumulation in one process.
# - :ref:`sphx_glr_gallery_differentiation_higher_order.py`: ``create_graph``, for penalties.
# - In PyTorch's reference: `DistributedDataParallel
#   <https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html>`__, `how DDP works
#   <https://docs.pytorch.org/docs/stable/notes/ddp.html>`__ and `communication hooks
#   <https://docs.pytorch.org/docs/stable/ddp_comm_hooks.html>`__.
