r"""
Threads and processes: thread-safe backward and Hogwild
=======================================================

.. index::
   single: is backward() thread-safe, several threads add into one .grad
   single: no_grad in a ThreadPoolExecutor, memory grows in a thread or a web server
   single: share_memory(), shared parameters in torch.multiprocessing
   single: Hogwild, asynchronous training without a lock, A3C
   single: Cowardly refusing to serialize non-leaf tensor which requires_grad
   single: queue.get() hangs after queue.put() of a tensor
   single: forked processes draw the same random numbers
   single: forked process hangs in forward or backward
   single: Unable to handle autograd's threading in combination with fork-based multiprocessing
   single: set_default_device in a new thread

.. in-short::

   Threads share the parameters and their ``.grad``: on a CPU, ``backward()`` in several threads adds up all gradients. But
   ``zero_grad()`` and ``step()`` do not wait for the other threads, and ``no_grad()`` works only in its own thread. A forked
   process works on a copy of the model, unless you say before it starts:

   .. code-block:: python

      model.share_memory()

   Then the processes share the parameters, without a lock (Hogwild). The optimizer's state is not shared. A ``.grad`` is
   shared only if it existed before this call.
"""

# %%
# Two workers, one model
# ----------------------
# You want several workers, threads or processes, to train one model. Does your program see the step that one takes?

import contextlib
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Lock, Thread

import pandas as pd
import torch
from torch import nn
from torch.nn.functional import mse_loss

# sphinx_gallery_start_ignore
# isort: split
import os

_threads = torch.get_num_threads()
os.environ["CUDA_VISIBLE_DEVICES"] = ""  # this page forks after backward, see below
torch.set_num_threads(1)  # the tensors are small, and forked processes follow
# sphinx_gallery_end_ignore
warnings.filterwarnings("ignore", "This process .* is multi-threaded")
Process = torch.multiprocessing.get_context("fork").Process  # not on Windows


def train(net, optimizer):
    torch.set_num_threads(1)  # or a forked process can hang, see below
    net(torch.ones(1, 2)).sum().backward()
    optimizer.step()


for name, kind in {"thread": Thread, "process": Process}.items():
    net = nn.Linear(2, 1)
    before = net.weight.detach().clone()
    worker = kind(target=train, args=(net, torch.optim.Adam(net.parameters())))
    worker.start()
    worker.join()
    print(f"{name:<8} new weight:", not torch.equal(net.weight, before))

# sphinx_gallery_start_ignore
assert torch.equal(net.weight, before)
# sphinx_gallery_end_ignore

# %%
# .. how-measured:: This starts workers and waits for them.

import multiprocessing

import matplotlib.pyplot as plt


def run(*workers):
    for worker in workers:
        worker.daemon = True  # it ends with the program
        worker.start()
    for worker in workers:
        worker.join(60)
    assert not any(worker.is_alive() for worker in workers)
    assert not any(getattr(worker, "exitcode", 0) for worker in workers)


def after_one_step(kind, prepare):
    net = nn.Linear(2, 1)
    optimizer = torch.optim.Adam(net.parameters())
    prepare(net)
    before, grad = net.weight.detach().clone(), net.weight.grad
    old_grad = grad.clone() if grad is not None else torch.zeros(1, 2)
    run(kind(target=train, args=(net, optimizer)))
    grad = net.weight.grad
    return {
        "new weight": not torch.equal(net.weight, before),
        "new .grad": grad is not None and not torch.equal(grad, old_grad),
        "optimizer's state": len(optimizer.state) > 0,
    }


def plot_what_is_seen(rows):
    _, ax = plt.subplots(figsize=(7, 2.5), layout="constrained")
    for y, row in enumerate(rows.values()):
        for x, seen in enumerate(row.values()):
            color = "#2563eb" if seen else "#64748b"
            ax.add_patch(plt.Rectangle((x - 0.46, y - 0.4), 0.92, 0.8, color=color))
            look = {"ha": "center", "va": "center", "color": "white"}
            ax.text(x, y, "seen" if seen else "not seen", **look)
    ax.set(xlim=(-0.5, 2.5), ylim=(len(rows) - 0.5, -0.5))
    ax.set_xticks(range(3), list(row))
    ax.set_yticks(range(len(rows)), list(rows))
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    ax.set_title("What your program sees after a worker's step")


# %%
# One step, in four cases:


def share_with_grad(net):
    net(torch.ones(1, 2)).sum().backward()
    net.share_memory()


WORKERS = {
    "a thread": (Thread, lambda net: None),
    "a process": (Process, lambda net: None),
    "share_memory(), then a process": (Process, nn.Module.share_memory),
    "backward(), and then the same": (Process, share_with_grad),
}
rows = {name: after_one_step(*worker) for name, worker in WORKERS.items()}
# figure: Four rows, for what the program sees after a step of a worker. A thread: the new weight, the new gradient and the
#   optimizer's state. A process: none. A process after share_memory: the weight. After backward and share_memory: the
#   weight and the gradient.
plot_what_is_seen(rows)

# sphinx_gallery_start_ignore
import sys
import tempfile
import types
from importlib import import_module
from pathlib import Path
from unittest import mock

_folder = tempfile.TemporaryDirectory()
Path(_folder.name, "atlas_spawned.py").write_text("""
import torch

def work(net, seen):
    seen[0] = torch.is_grad_enabled()
    seen[1] = torch.get_default_dtype() == torch.float32
    seen[2] = net.weight.grad is None
    seen[3] = torch.initial_seed() != 5
    seen[4] = not torch.is_anomaly_enabled()
    seen[5] = torch.are_deterministic_algorithms_enabled()
    net.weight.data.fill_(9)
""")
_script = Path(_folder.name, "atlas_script.py")
_script.write_text("import torch\n\ntorch.use_deterministic_algorithms(True)")
_net, _seen = nn.Linear(2, 1), torch.zeros(6)
_net(torch.ones(1, 2)).sum().backward()
sys.path.insert(0, _folder.name)
_spawned = torch.multiprocessing.get_context("spawn").Process(
    target=import_module("atlas_spawned").work, args=(_net, _seen), daemon=True
)
torch.manual_seed(5)
torch.set_default_dtype(torch.float64)
torch.autograd.set_detect_anomaly(True)
_main = types.ModuleType("__main__")  # or the new process would run this page
_main.__file__ = str(_script)
with torch.no_grad(), mock.patch.dict(sys.modules, __main__=_main):
    _spawned.start()  # its result is asked for below
torch.autograd.set_detect_anomaly(False)
torch.set_default_dtype(torch.float32)
sys.path.remove(_folder.name)
_spawned_net = _net
assert [list(_row.values()) for _row in rows.values()] == [
    [True, True, True],
    [False, False, False],
    [True, False, False],
    [True, True, False],
]
for _layer in (
    nn.BatchNorm1d(2),
    nn.Embedding(3, 2),
    nn.Linear(2, 1).half(),
):
    _layer.share_memory()
    _all = [*_layer.parameters(), *_layer.buffers()]
    assert _all and all(_t.is_shared() for _t in _all)
_net = nn.Linear(2, 1)
share_with_grad(_net)
assert _net.weight.grad.is_shared() and _net.bias.grad.is_shared()
_net, _refused = nn.Embedding(3, 2, sparse=True), []
_net(torch.tensor([0])).sum().backward()
try:
    _net.share_memory()
except NotImplementedError as error:
    _refused.append(str(error))
assert len(_refused) == 1 and "storage of SparseTensorImpl" in _refused[0]
# sphinx_gallery_end_ignore

# %%
# **A thread works on the tensors of your program. A forked process works on a copy, except for what you shared before.**
# ``share_memory()`` moves parameters and buffers to memory that all later forks have in common, and gradients too, if there are
# any (a sparse gradient raises).
#
# Threads add into one .grad
# --------------------------
# Eight threads call ``backward()`` on a CPU, 100 times each. Each call adds 1 to each element:

w = torch.zeros(10_000, requires_grad=True)


def add_gradients(_):
    for _ in range(100):
        w.sum().backward()


with ThreadPoolExecutor(8) as pool:
    list(pool.map(add_gradients, range(8)))
print("the gradients add up to:", w.grad.unique())

# sphinx_gallery_start_ignore
assert w.grad.eq(800).all()


def _sum_in_threads(w, rounds=20, threads=8, **arguments):
    def add(_):
        for _ in range(rounds):
            (w * 1.0).sum().backward(**arguments)

    w.grad = None
    with warnings.catch_warnings(), ThreadPoolExecutor(threads) as pool:
        warnings.simplefilter("ignore")
        list(pool.map(add, range(threads)))
    return w.grad.detach()


for _size in ((), (0,), (1,), (3,), (50_000,)):
    for _dtype in (torch.float32, torch.float64, torch.float16):
        _w = torch.zeros(_size, dtype=_dtype, requires_grad=True)
        assert _sum_in_threads(_w).eq(160).all()
_w = torch.zeros(3, requires_grad=True)
assert _sum_in_threads(_w, create_graph=True).eq(160).all()
_emb = nn.Embedding(3, 2, sparse=True)


def _look_up(_):
    for _ in range(20):
        _emb(torch.tensor([0, 0, 2])).sum().backward()


with ThreadPoolExecutor(4) as pool:
    list(pool.map(_look_up, range(4)))
assert _emb.weight.grad.to_dense()[:, 0].tolist() == [160, 0, 80]
# sphinx_gallery_end_ignore

# %%
# No addition was lost, because for each parameter the node ``AccumulateGrad`` adds under a lock. (A `note of PyTorch
# <https://docs.pytorch.org/docs/stable/notes/autograd.html#multithreaded-autograd>`__ still calls this unsafe.) The order is
# left to chance, so rounding can differ between runs. To have each worker's gradient, and a fixed order, use
# ``torch.autograd.grad``:

x = torch.randn(4, 10_000)


def gradient(i):
    return torch.autograd.grad((w * x[i]).sum(), w)[0]


with ThreadPoolExecutor(4) as pool:
    w.grad = sum(pool.map(gradient, range(4)))
print("in the order of the data:", torch.equal(w.grad, x[0] + x[1] + x[2] + x[3]))

# sphinx_gallery_start_ignore
assert torch.equal(w.grad, sum(gradient(i) for i in range(4)))
assert torch.equal(w.grad, ((x[0] + x[1]) + x[2]) + x[3])
assert not torch.equal(x[0] + x[1] + x[2], x[1] + x[2] + x[0])
assert torch.equal(x[0] + x[1], x[1] + x[0])
# sphinx_gallery_end_ignore

# %%
# On a CPU, ``backward()`` runs in the thread that calls it. So do your hooks, without a lock:

ran_in = set()
w.register_hook(lambda grad: ran_in.add(threading.current_thread().name))
run(*[Thread(target=add_gradients, args=(0,), name=name) for name in ("one", "two")])
print("the hook ran in:", sorted(ran_in))

# sphinx_gallery_start_ignore
assert ran_in == {"one", "two"}


class _Where(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, g):
        _places.append(threading.get_ident())
        return g


_places, _callers = [], []


def _note():
    _leaf = torch.ones(2, requires_grad=True)
    _leaf.register_hook(lambda g: _places.append(threading.get_ident()))
    _leaf.register_post_accumulate_grad_hook(
        lambda p: _places.append(threading.get_ident())
    )
    for _mode in (True, False):
        with torch.autograd.set_multithreading_enabled(_mode):
            _Where.apply(_leaf).sum().backward()
    _callers.append(threading.get_ident())


for _ in range(2):
    run(Thread(target=_note))
    assert set(_places) == set(_callers) and len(_places) == 6
    _places.clear(), _callers.clear()

# hooks are not under the lock: another thread adds while a hook waits
for _register in ("register_hook", "register_post_accumulate_grad_hook"):
    _w = torch.zeros(3, requires_grad=True)
    _waits, _done, _log = threading.Event(), threading.Event(), []

    def _hook(_, waits=_waits, done=_done, log=_log):
        if threading.current_thread().name == "first":
            waits.set()
            log.append(done.wait(60))

    def _second(w=_w, waits=_waits, done=_done):
        waits.wait(60)
        (w * 2).sum().backward()
        done.set()

    getattr(_w, _register)(_hook)
    run(
        Thread(target=lambda w=_w: w.sum().backward(), name="first"),
        Thread(target=_second, name="second"),
    )
    assert _log == [True] and _w.grad.eq(3).all()
# sphinx_gallery_end_ignore

# %%
# On a GPU, another thread runs the nodes, unless you switch that off with :ref:`set_multithreading_enabled
# <sphx_glr_gallery_differentiation_rarely_used_functions.py>`.
#
# Hogwild: processes step without a lock
# --------------------------------------
# Two processes train one shared model, each with an optimizer and half of the data:

torch.manual_seed(0)
inputs = torch.randn(2, 64, 4)
targets = inputs @ torch.randn(4, 1)
net = nn.Linear(4, 1).share_memory()


def train_alone(rank):
    torch.set_num_threads(1)  # or it can hang
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
    for _ in range(300):
        optimizer.zero_grad()
        mse_loss(net(inputs[rank]), targets[rank]).backward()
        optimizer.step()


# sphinx_gallery_start_ignore
_start = mse_loss(net(inputs), targets).item()
# sphinx_gallery_end_ignore
print(f"before: {mse_loss(net(inputs), targets):.3f}")
run(*[Process(target=train_alone, args=(rank,)) for rank in range(2)])
print(f"after:  {mse_loss(net(inputs), targets):.3f}")
print("my .grad:", net.weight.grad)

# sphinx_gallery_start_ignore
assert _start > 0.5 and mse_loss(net(inputs), targets) < 1e-4
assert net.weight.grad is None and net.bias.grad is None
for _kind in (torch.optim.SGD, torch.optim.Adam):
    for _options in ({}, {"foreach": True}, {"fused": True}):
        _net = nn.Linear(2, 1).share_memory()
        _net.weight.grad = torch.ones(1, 2)
        _before = _net.weight.detach().clone()
        run(Process(target=_kind(_net.parameters(), lr=0.1, **_options).step))
        assert not torch.equal(_net.weight, _before), (_kind, _options)

# an update gets lost, if another worker writes between a read and a write
_w, _both = (
    torch.zeros(3).share_memory_(),
    multiprocessing.get_context("fork").Barrier(2),
)


def _read_then_write():
    new = _w + 1
    _both.wait(60)
    _w.copy_(new)


run(*[Process(target=_read_then_write) for _ in range(2)])
assert _w.eq(1).all()
# sphinx_gallery_end_ignore

# %%
# If two processes write to one number at the same moment, one of the updates can get lost.
#
# Why: copies, and modes that belong to a thread
# ----------------------------------------------
# Each mode or setting in this table belongs to a thread, or to the whole process. ``fork`` copies both kinds.
#
# .. how-measured:: Each entry is a with block and a question whose answer is yes inside the block.


@contextlib.contextmanager
def set_for_a_while(setter, value, old):
    setter(value)
    try:
        yield
    finally:
        setter(old)


def calls_pack():
    packed.clear()
    torch.ones(1, requires_grad=True).exp()
    return len(packed) == 1


packed = []
graph = torch.autograd.graph
MODES = {
    "no_grad": (torch.no_grad(), lambda: not torch.is_grad_enabled()),
    "inference_mode": (torch.inference_mode(), torch.is_inference_mode_enabled),
    "autocast": (torch.autocast("cpu"), lambda: torch.is_autocast_enabled("cpu")),
    "saved_tensors_hooks": (
        graph.saved_tensors_hooks(lambda t: packed.append(t) or t, lambda t: t),
        calls_pack,
    ),
    "set_default_device": (
        set_for_a_while(torch.set_default_device, "meta", None),
        lambda: torch.empty(1).device.type == "meta",
    ),
    "set_detect_anomaly": (
        set_for_a_while(torch.autograd.set_detect_anomaly, True, False),
        torch.is_anomaly_enabled,
    ),
    "set_default_dtype": (
        set_for_a_while(torch.set_default_dtype, torch.float64, torch.float32),
        lambda: torch.ones(1).dtype == torch.float64,
    ),
    "manual_seed": (
        set_for_a_while(torch.manual_seed, 123, 0),
        lambda: torch.initial_seed() == 123,
    ),
}


def in_a_thread(question):
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(question).result()


def in_a_process(question):
    answer = torch.zeros(1, device="cpu").share_memory_()
    run(Process(target=lambda: answer.fill_(question())))
    return bool(answer.item())


# %%
# Set in your program, which ones are on in a new thread, and in a forked process?

table = {}
for name, (mode, question) in MODES.items():
    with mode:
        places = {"here": question(), "new thread": in_a_thread(question)}
        table[name] = places | {"forked process": in_a_process(question)}
table = pd.DataFrame(table).T

# sphinx_gallery_start_ignore
assert table["here"].all() and table["forked process"].all()
assert table["new thread"].tolist() == [False] * 5 + [True] * 3
assert not any(_question() for _mode, _question in MODES.values())
assert torch.get_default_dtype() == torch.float32 and not torch.is_anomaly_enabled()
with torch.autograd.set_multithreading_enabled(False):
    assert not torch._C._is_multithreading_enabled()
    assert in_a_thread(torch._C._is_multithreading_enabled)


def _set_three():
    torch.set_num_threads(3)
    return torch.get_num_threads()


_seen_threads = []
with ThreadPoolExecutor(1) as _pool:
    _seen_threads.append(_pool.submit(torch.get_num_threads).result())
    torch.set_num_threads(2)
    _seen_threads.append(_pool.submit(torch.get_num_threads).result())
_seen_threads += [in_a_thread(_set_three), torch.get_num_threads()]
_seen_threads += [in_a_thread(torch.get_num_threads)]
torch.set_num_threads(1)
assert _seen_threads == [1, 1, 3, 2, 3]

_spawned.join(300)
_folder.cleanup()
assert _spawned.exitcode == 0 and _seen.eq(1).all(), _seen
assert _spawned_net.weight.eq(9).all() and _spawned_net.weight.is_shared()
assert _spawned_net.weight.grad.eq(1).all()
_queue = torch.multiprocessing.get_context("fork").SimpleQueue()
_p = nn.Parameter(torch.ones(3))
_p.grad = torch.ones(3)
_queue.put(_p)
assert _queue._reader.poll(60)
_got = _queue.get()
assert _got.grad is None and _got.requires_grad and _p.is_shared()
assert _got.data_ptr() != 0 and _got.is_shared()
_got.data.fill_(7)
assert _p.eq(7).all()
# sphinx_gallery_end_ignore
table.replace({True: "yes", False: "no"})

# %%
# A process that is started with ``spawn`` or ``forkserver`` begins with the defaults, and then runs the top level of your
# script. PyTorch moves the parameters among its arguments to shared memory, and leaves ``.grad`` out, although `its notes say
# otherwise <https://docs.pytorch.org/docs/stable/notes/multiprocessing.html>`__.

# %%
# What people get wrong
# ---------------------
# **no_grad around a pool.** The block works in your thread. The workers record, and results keep their graphs (`pytorch#20528
# <https://github.com/pytorch/pytorch/issues/20528>`__), also in a web server (`pytorch#82145
# <https://github.com/pytorch/pytorch/issues/82145>`__). Put it on the function:

with torch.no_grad(), ThreadPoolExecutor() as pool:
    outside = pool.submit(net, inputs[0]).result()
    inside = pool.submit(torch.no_grad()(net), inputs[0]).result()
print("recorded:", outside.requires_grad, inside.requires_grad)

# sphinx_gallery_start_ignore
assert outside.requires_grad and not inside.requires_grad
torch.set_grad_enabled(False)  # not a block, and still of one thread
_recorded = in_a_thread(lambda: net(inputs[0]).requires_grad)
torch.set_grad_enabled(True)
assert _recorded
# sphinx_gallery_end_ignore

# %%
# **A lock around step() alone.** Each of two threads should subtract 0.1 times its gradient of 1. But ``.grad`` is the sum of
# both, and each thread subtracts 0.1 times the sum. In ``own_grad``, a gradient stays in its thread until its step:

w = torch.zeros(1, requires_grad=True)
optimizer = torch.optim.SGD([w], lr=0.1)
lock, both_have_added = Lock(), Barrier(2, timeout=60)


def shared_grad():
    w.sum().backward()
    both_have_added.wait()
    with lock:
        optimizer.step()


def own_grad():
    (grad,) = torch.autograd.grad(w.sum(), w)
    with lock:
        w.grad = grad
        optimizer.step()


for work in (shared_grad, own_grad):
    with torch.no_grad():
        w.zero_()
    w.grad = None
    run(Thread(target=work), Thread(target=work))
    print(f"{work.__name__:<12} {w.item():.1f}")
    # sphinx_gallery_start_ignore
    assert abs(w.item() + (0.4 if work is shared_grad else 0.2)) < 1e-6
    # sphinx_gallery_end_ignore

# sphinx_gallery_start_ignore
for _none in (True, False):
    _net = nn.Linear(2, 1)
    share_with_grad(_net)

    def _again(_net=_net, _none=_none):
        _net.zero_grad(set_to_none=_none)
        (2 * _net(torch.ones(1, 2))).sum().backward()

    run(Process(target=_again))
    assert _net.weight.grad.eq(1 if _none else 2).all()
# sphinx_gallery_end_ignore

# %%
# **A gradient before share_memory().** Then the workers add into one ``.grad``, as in the last row of the figure, and across
# processes no lock protects it. Call ``share_memory()`` first, or ``zero_grad()`` in each worker, which ends the sharing.

# %%
# **A step between another worker's forward and backward.** The graph saved ``w``. If a thread changes ``w``, autograd
# notices. If a process does, autograd misses it, because each process has its own :ref:`version counter
# <sphx_glr_gallery_differentiation_inplace_and_versions.py>`:


def change(w):
    with torch.no_grad():
        w *= 10


for kind in (Thread, Process):
    w = torch.ones(1).share_memory_().requires_grad_()
    loss = (w * w).sum()
    run(kind(target=change, args=(w,)))
    try:
        loss.backward()
        print("process: no error, gradient", w.grad.item())
    except RuntimeError as error:
        print("thread:", str(error).partition(":")[0])
    # sphinx_gallery_start_ignore
    assert w._version == (1 if kind is Thread else 0)
    assert w.eq(10).all() and (w.grad is None) == (kind is Thread)
    if kind is Process:
        assert w.grad.item() == 20
    # sphinx_gallery_end_ignore

# %%
# The right gradient is 2. With two layers, the threads of ``own_grad`` can meet the error, too. So give each thread
# its own copy of the model, and let one thread step.

# sphinx_gallery_start_ignore
import copy

_net = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1))
_copies = [copy.deepcopy(_net) for _ in range(2)]
_start = copy.deepcopy(_net)
_sgd = torch.optim.SGD(_net.parameters(), lr=0.1)
_errors = []


def _grads(net, steps_before_backward=lambda: None):
    loss = net(torch.ones(1, 2)).sum()
    steps_before_backward()
    try:
        return torch.autograd.grad(loss, list(net.parameters()))
    except RuntimeError as error:
        _errors.append(str(error))


def _step(grads):
    for p, g in zip(_net.parameters(), grads, strict=True):
        p.grad = g
    _sgd.step()


def _other_steps():
    run(Thread(target=lambda: _step(_grads(_net))))


run(Thread(target=_grads, args=(_net, _other_steps)))
assert len(_errors) == 1 and "modified by an inplace operation" in _errors[0]
for _ in range(2):  # a copy for each thread, and one thread steps
    for _c in _copies:
        _c.load_state_dict(_net.state_dict())
    with ThreadPoolExecutor(2) as pool:
        _both = list(pool.map(_grads, _copies, [_other_steps, lambda: None]))
    _step([a + b for a, b in zip(*_both, strict=True)])
assert len(_errors) == 1
# sphinx_gallery_end_ignore

# %%
# **A forward that several threads share.** The first ``backward()`` frees the saved tensors of the shared part. A second
# one can fail:

h = torch.ones(2, requires_grad=True).exp()
messages = []


def backward():
    try:
        h.sum().backward()
    except RuntimeError as error:
        messages.append(str(error).partition(" (")[0])


run(Thread(target=backward))
run(Thread(target=backward))
print(messages)

# sphinx_gallery_start_ignore
assert messages == ["Trying to backward through the graph a second time"]
# sphinx_gallery_end_ignore

# %%
# **Sending a result with its graph.** A graph cannot be sent to another process:

loss = net(inputs[0]).sum()
queue = torch.multiprocessing.get_context("fork").SimpleQueue()
try:
    queue.put(loss)
except RuntimeError as error:
    print(str(error).partition(",")[0])
queue.put(loss.detach())
# sphinx_gallery_start_ignore
assert queue._reader.poll(60)
# sphinx_gallery_end_ignore
print("received:", queue.get().shape)

# sphinx_gallery_start_ignore
import io

_raised = []
try:
    queue.put(loss)
except RuntimeError as error:
    _raised.append(str(error))
assert len(_raised) == 1 and "Cowardly refusing to serialize non-leaf" in _raised[0]
_errors = io.StringIO()
_other = torch.multiprocessing.get_context("fork").Queue()
with contextlib.redirect_stderr(_errors):
    _other.put(loss)  # does not raise
    _nothing_came = not _other._reader.poll(0.1)
    _other.close()
    _other.join_thread()
assert "Cowardly refusing" in _errors.getvalue() and _nothing_came
# sphinx_gallery_end_ignore

# %%
# With ``Queue`` instead of ``SimpleQueue``, ``put()`` does not raise: a background thread prints the message, and ``get()``
# waits for a tensor that does not come.
#
# **One seed for all.** Forked workers start with a copy of your program's random generator, so both are in the same state:

numbers = torch.zeros(2, 3).share_memory_()
run(*[Process(target=lambda rank=rank: numbers[rank].normal_()) for rank in (0, 1)])
print("same numbers:", torch.equal(numbers[0], numbers[1]))

# sphinx_gallery_start_ignore
assert torch.equal(numbers[0], numbers[1]) and numbers.any()


def _seeded(rank):
    torch.manual_seed(7 + rank)
    numbers[rank].normal_()


import numpy as np


def _seeded_and_numpy(rank):
    torch.manual_seed(7 + rank)
    numbers[rank] = torch.from_numpy(np.random.rand(3))


run(*[Process(target=_seeded, args=(rank,)) for rank in (0, 1)])
assert not torch.equal(numbers[0], numbers[1])
run(*[Process(target=_seeded_and_numpy, args=(rank,)) for rank in (0, 1)])
assert torch.equal(numbers[0], numbers[1]) and numbers.any()
for _rank in (0, 1):
    run(Process(target=lambda rank=_rank: numbers[rank].normal_()))
    torch.rand(1)  # moves the generator on between the forks
assert not torch.equal(numbers[0], numbers[1])
# sphinx_gallery_end_ignore

# %%
# Call ``torch.manual_seed(seed + rank)`` in each worker. The global generator of NumPy is copied, too, so give it its own
# seed.
#
# **A fork after computing.** If your program has used several CPU threads, a forked worker can wait for them forever, because
# ``fork`` does not copy them (`pytorch#17199 <https://github.com/pytorch/pytorch/issues/17199>`__). Creating ``nn.Linear(784,
# 256)`` can be enough. Call ``torch.set_num_threads(1)`` first in each worker. On a machine with a GPU, ``backward()`` in the
# worker may raise *Unable to handle autograd's threading in combination with fork-based multiprocessing* (`pytorch#69839
# <https://github.com/pytorch/pytorch/issues/69839>`__) if your program has called it. ``spawn`` avoids both. (To run this page
# with a GPU, set ``CUDA_VISIBLE_DEVICES=""``.)

# sphinx_gallery_start_ignore
# fork after the program has computed with two threads
torch.set_num_threads(2)
_net, _some = nn.Linear(784, 256), torch.randn(64, 784)
_net(_some).sum().backward()
_net.zero_grad()
_net.share_memory()
_sgd, _before = torch.optim.SGD(_net.parameters(), lr=0.1), _net.weight.detach().clone()


def _after_setting(threads):
    torch.set_num_threads(threads)
    _net(_some).sum().backward()
    _sgd.step()


_stuck = Process(target=_after_setting, args=(2,), daemon=True)
_stuck.start()
_stuck.join(2)
assert _stuck.is_alive() or sys.platform != "linux"
_stuck.kill()
_stuck.join(60)
assert torch.equal(_net.weight, _before) or sys.platform != "linux"
run(Process(target=_after_setting, args=(1,)))
assert not torch.equal(_net.weight, _before)
torch.set_num_threads(1)
# sphinx_gallery_end_ignore

# %%
# Exercise
# --------
# In a shared model, a worker steps with ``p.data = p.data - 0.1 * p.grad``. Why do the other processes see nothing of it?
#
# .. solution::
#
# The assignment gives ``p`` new memory, and that is not shared. Write into the old memory. What makes new parameters leaves the
# shared memory, too: ``net.double()``, ``load_state_dict(..., assign=True)``, or ``weight_norm``.


def assigned(p):
    p.data = p.data - 0.1 * torch.ones(1)


def in_place(p):
    p.data -= 0.1 * torch.ones(1)


for work in (assigned, in_place):
    p = nn.Parameter(torch.ones(1).share_memory_())
    run(Process(target=work, args=(p,)))
    print(f"{work.__name__:<9} {p.item():.1f}")
    # sphinx_gallery_start_ignore
    assert p.item() == 1 if work is assigned else abs(p.item() - 0.9) < 1e-6
    # sphinx_gallery_end_ignore

# sphinx_gallery_start_ignore
_net = nn.Linear(2, 1).share_memory()
_state = nn.Linear(2, 1).state_dict()
_net.load_state_dict(_state)
assert _net.weight.is_shared() and torch.equal(_net.weight, _state["weight"])
_net.load_state_dict(_state, assign=True)
assert not _net.weight.is_shared()
_net = nn.Linear(2, 1).share_memory().double()
assert not _net.weight.is_shared()
assert _net.share_memory().double().weight.is_shared()  # it was double already
_net = nn.utils.parametrizations.weight_norm(nn.Linear(2, 1).share_memory())
assert not all(_p.is_shared() for _p in _net.parameters())
torch.set_num_threads(_threads)
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_modes_grad_modes.py`: what ``no_grad`` and ``inference_mode`` switch off.
# - :ref:`sphx_glr_gallery_training_data_loading.py`: workers that load data.
# - :ref:`sphx_glr_gallery_training_reproducibility.py`: seeds, and the order of additions.
# - :ref:`sphx_glr_gallery_errors_dataloader_worker.py`: when a worker process ends, or a forked one uses the GPU.
# - In PyTorch's notes: `multithreaded autograd
#   <https://docs.pytorch.org/docs/stable/notes/autograd.html#multithreaded-autograd>`__ and `multiprocessing best practices
#   <https://docs.pytorch.org/docs/stable/notes/multiprocessing.html>`__.
