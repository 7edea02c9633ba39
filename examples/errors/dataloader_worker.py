r"""
DataLoader worker (pid(s) 1234) exited unexpectedly
===================================================

.. index::
   ! single: DataLoader worker is killed by signal: Killed
   ! single: DataLoader worker is killed by signal: Bus error, out of shared memory in Docker
   ! single: Caught KeyError in DataLoader worker process 0
   ! single: An attempt has been made to start a new process, freeze_support
   ! single: Can't pickle local object, in a DataLoader with num_workers on Windows
   ! single: EOFError: Ran out of input
   ! single: Cannot re-initialize CUDA in forked subprocess
   ! single: To use CUDA with multiprocessing, you must use the 'spawn' start method
   ! single: a dataset or collate_fn that moves tensors to the GPU fails with num_workers
   ! single: Too many open files. Communication with the workers is no longer possible
   ! single: The paging file is too small for this operation to complete, with num_workers
   ! single: resource_tracker: There appear to be leaked semaphore objects to clean up at shutdown

.. in-short::

   A worker process ended. The lines above this message may say why. Under Windows and macOS the script often lacks
   ``if __name__ == "__main__":``. If those lines say *Killed*, memory probably ran out.

   .. code-block:: diff

      - for batch in loader:
      -     print(batch)
      + if __name__ == "__main__":
      +     for batch in loader:
      +         print(batch)

   **Not this:** ``num_workers=0`` for good. It shows the error of your dataset, but then the model waits for each batch.
"""

# %%
# The code that raises it
# -----------------------
# A script, ``train.py``. ``"spawn"`` is the default of Windows and macOS.

# sphinx_gallery_start_ignore
import gc
import multiprocessing
import os
import re
import runpy
import signal
import tempfile
import textwrap
import time
import traceback
import warnings
from unittest import mock

from torch.utils.data import DataLoader, Dataset

warnings.filterwarnings("ignore", "This process .* is multi-threaded")
multiprocessing.set_start_method("fork", force=True)  # for the cells below
folder = tempfile.TemporaryDirectory()


def _run(script):
    """Run a script as its own program, with what its workers say in ``said.txt``."""
    path = os.path.join(folder.name, "train.py")
    with open(path, "w") as file:
        file.write(textwrap.dedent(script))
    saved = os.dup(2)
    with open(f"{folder.name}/said.txt", "w") as said:
        os.dup2(said.fileno(), 2)
    try:
        runpy.run_path(path, run_name="__main__")
    finally:
        os.dup2(saved, 2)
        os.close(saved)


def _said_by_workers():
    with open(f"{folder.name}/said.txt") as file:
        return file.read()


def _numbered(error):
    return re.sub(r"(pid(?:\(s\))?) \d+", r"\1 1234", str(error)).strip()


try:
    script = """
    # sphinx_gallery_end_ignore
    from torch.utils.data import DataLoader, Dataset


    class Numbers(Dataset):
        def __len__(self):
            return 4

        def __getitem__(self, index):
            return index


    loader = DataLoader(Numbers(), num_workers=1, multiprocessing_context="spawn")
    for batch in loader:
        print(batch)
    # sphinx_gallery_start_ignore
    """
    _run(script)
except RuntimeError as error:
    message, _cause = _numbered(error), str(error.__cause__)
    _last = textwrap.dedent(_said_by_workers().rpartition("RuntimeError: ")[2]).strip()
    print("RuntimeError:", _last, end="\n\n")
    print("RuntimeError:", message)
assert message == "DataLoader worker (pid(s) 1234) exited unexpectedly"
assert _last.startswith("An attempt has been made to start")
assert "exited unexpectedly with exit code 1. Details are lost" in _cause
_freed = gc.collect()  # the loader that failed, before a new worker gets a copy of it
# sphinx_gallery_end_ignore

# %%
# Look for what is printed *above* this message:
#
# .. list-table::
#    :header-rows: 1
#    :widths: 44 56
#
#    * - above it
#      - what to do
#    * - *An attempt has been made to start a new process*
#      - ``if __name__ == "__main__":``, as below
#    * - *Can't get attribute*, or a notebook under Windows or macOS
#      - Put your dataset class and your functions into a file, and import them.
#    * - *is killed by signal: Killed*
#      - Probably memory ran out, also that of a container or a SLURM job. Fewer workers (with DDP, each GPU has its own),
#        ``prefetch_factor=1``. Load images in ``__getitem__``. If memory grows while you train, make a long list of file names
#        a NumPy array of ``str``.
#    * - *The paging file is too small*
#      - Fewer workers. Each one imports PyTorch.
#    * - *Too many open files*, *0 items of ancdata*
#      - Often a list that keeps tensors of the workers. Keep ``batch.clone()``.
#    * - *is killed by signal: Bus error*
#      - Probably shared memory is full. Start a container with ``--shm-size=8g`` or ``--ipc=host``. Or fewer workers.
#    * - *Segmentation fault*, *Aborted*, or nothing
#      - Run with ``num_workers=0`` and ``python -X faulthandler train.py``. If it crashes there, you see the line. If not, take
#        fewer workers, open files of h5py or LMDB in the first ``__getitem__``, with no ``dataset[0]`` before the loop, and for
#        OpenCV call ``cv2.setNumThreads(0)``.
#
# Why
# ---
# A spawned worker imports your script to find your classes. So it comes to the loop over the loader and wants workers of its
# own, which Python refuses. An import does not run what is below ``if __name__ == "__main__":``. ``"forkserver"``, the default
# of Linux from Python 3.14 on, needs the same line.
#
# Each worker loads batches ahead, which takes memory:

import matplotlib.pyplot as plt

# figure: Four bars, the batches that are loaded ahead. 2 for one worker, 4 for two workers, 8 for two workers with
#   prefetch_factor 4, and 2 for two workers with prefetch_factor 1.
settings = {
    "1 worker": {"num_workers": 1},
    "2 workers": {"num_workers": 2},
    "2 workers, prefetch_factor=4": {"num_workers": 2, "prefetch_factor": 4},
    "2 workers, prefetch_factor=1": {"num_workers": 2, "prefetch_factor": 1},
}
ahead = [
    iter(DataLoader(range(99), **kwargs))._tasks_outstanding
    for kwargs in settings.values()
]
fig, ax = plt.subplots(figsize=(6.5, 1.8), layout="constrained")
ax.barh(list(settings), ahead, color=["#2563eb"] * 3 + ["#047857"])
ax.set(title="Batches loaded ahead")
ax.invert_yaxis()

# sphinx_gallery_start_ignore
assert ahead == [2, 4, 8, 2]
# sphinx_gallery_end_ignore

# %%
# The fix
# -------
# Put all that runs, such as ``trainer.fit(...)``, or ``model.train(...)`` of YOLO, below ``if __name__ == "__main__":``. Each
# spawned worker runs again what is above: leave only imports, classes and functions there. It does not see variables from
# below: pass them to your dataset.

# sphinx_gallery_start_ignore
script = """
# sphinx_gallery_end_ignore
from torch.utils.data import DataLoader

if __name__ == "__main__":
    loader = DataLoader(range(4), num_workers=1, multiprocessing_context="spawn")
    for batch in loader:
        print(batch)
# sphinx_gallery_start_ignore
"""
_run(script)
assert _said_by_workers() == ""
# what a spawned worker imports: the script under another name
_seen = runpy.run_path(folder.name + "/train.py", run_name="__mp_main__")
assert "DataLoader" in _seen and "loader" not in _seen
with open(folder.name + "/train.py", "w") as file:
    file.write('SIZE = 32\nif __name__ == "__main__":\n    SIZE = 64\n')
for _name, _size in (("__mp_main__", 32), ("__main__", 64)):
    assert runpy.run_path(folder.name + "/train.py", run_name=_name)["SIZE"] == _size


class _Ends(Dataset):
    def __init__(self, number):
        self.number = number

    def __len__(self):
        return 4

    def __getitem__(self, index):
        time.sleep(0.5)
        os.kill(os.getpid(), self.number)


_messages, _saved = [], os.dup(2)
os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # where the worker says so, too
for _number in (signal.SIGKILL, signal.SIGBUS):
    try:
        next(iter(DataLoader(_Ends(_number), num_workers=1)))
    except RuntimeError as error:
        _messages.append(_numbered(error.__cause__ or error))
os.dup2(_saved, 2)
assert _messages[0] == "DataLoader worker (pid 1234) is killed by signal: Killed."
assert "is killed by signal: Bus error. It is possible that" in _messages[1]
# sphinx_gallery_end_ignore

# %%
# Can't pickle local object, and EOFError: Ran out of input
# ---------------------------------------------------------
# A spawned worker is sent the dataset and the ``collate_fn`` as a pickle. A ``lambda``, and a function or class inside of
# another function, has no name that the worker could import:

from torch.utils.data import DataLoader

# sphinx_gallery_start_ignore
raised = []
warnings.filterwarnings("ignore", "Got pickle error")
try:
    # sphinx_gallery_end_ignore
    def make_loader(scale):
        def collate(samples):
            return [scale * sample for sample in samples]

        options = {"num_workers": 1, "multiprocessing_context": "spawn"}
        return DataLoader(range(4), batch_size=2, collate_fn=collate, **options)

    for batch in make_loader(10):
        print(batch)
# sphinx_gallery_start_ignore
except Exception as error:  # its class depends on the version of Python
    raised.append(str(error))
    traceback.clear_frames(error.__traceback__)
    print(f"{type(error).__name__}:", error)
assert "local object" in raised[0] and "make_loader.<locals>.collate" in raised[0]
# sphinx_gallery_end_ignore

# %%
# Under Windows, *EOFError: Ran out of input* follows from the worker, which got no pickle. Move the function to the top level
# of the file, and pass its data as arguments:

from functools import partial


def collate(scale, samples):
    return [scale * sample for sample in samples]


loader = DataLoader(range(4), batch_size=2, collate_fn=partial(collate, 10))
print(*loader)

# sphinx_gallery_start_ignore
import pickle

assert pickle.loads(pickle.dumps(partial(collate, 10)))([1]) == [10]
# sphinx_gallery_end_ignore

# %%
# For a transform with a ``lambda``, write a function in the same way.
#
# Caught KeyError in DataLoader worker process 0
# ----------------------------------------------
# Your ``__getitem__`` or ``collate_fn`` raised. The last line says what. Often it is a pandas table that was filtered or
# split, and kept its old row labels:

import pandas as pd
from torch.utils.data import DataLoader, Dataset

# sphinx_gallery_start_ignore
caught = []
try:
    # sphinx_gallery_end_ignore
    table = pd.DataFrame(
        {"x": [0.1, 0.2, 0.3, 0.4], "part": ["test"] * 2 + ["train"] * 2}
    )

    class Rows(Dataset):
        def __init__(self, table):
            self.x = table["x"]

        def __len__(self):
            return len(self.x)

        def __getitem__(self, index):
            return self.x[index]

    train = Rows(table[table["part"] == "train"])
    for x in DataLoader(train, num_workers=1):
        print(x)
# sphinx_gallery_start_ignore
except KeyError as error:
    caught = str(error.args[0]).strip().splitlines()
    # frees the loader, which ends its worker
    traceback.clear_frames(error.__traceback__)
    print(f"KeyError: {caught[0]}", caught[1], "...", caught[-1], sep="\n")
assert caught[0] == "Caught KeyError in DataLoader worker process 0."
assert caught[-1] == "KeyError: 0"
# sphinx_gallery_end_ignore

# %%
# No row is labeled 0 after the filter. ``iloc`` counts rows:


class Counted(Rows):
    def __getitem__(self, index):
        return self.x.iloc[index]


train = Counted(table[table["part"] == "train"])
values = [x.item() for x in DataLoader(train, num_workers=1)]
print(values)

# sphinx_gallery_start_ignore
assert values == [0.3, 0.4]


class _Numbers(Dataset):
    """The numbers of a file that the first __getitem__ opens, each at its place."""

    file = None

    def __len__(self):
        return 20

    def __getitem__(self, index):
        self.file = self.file or os.open(f"{folder.name}/numbers", os.O_RDONLY)
        os.lseek(self.file, index, os.SEEK_SET)
        time.sleep(0.005 + 0.01 * (index % 2))
        return os.read(self.file, 1)[0]


with open(f"{folder.name}/numbers", "wb") as file:
    file.write(bytes(range(20)))
for _first, _right in ((False, True), (True, False)):
    _numbers = _Numbers()
    _ = _numbers[0] if _first else None  # opens the file before the workers are forked
    _read = [x.item() for x in DataLoader(_numbers, num_workers=2)]
    assert (_read == [*range(20)]) == _right, _read
import pathlib

import numpy as np

assert np.array([pathlib.Path("a")]).dtype == object  # a list of objects again
assert np.array(["a", "b"]).dtype.kind == "U"
# sphinx_gallery_end_ignore

# %%
# Cannot re-initialize CUDA in forked subprocess
# ----------------------------------------------
# ``fork``, the default of Linux up to Python 3.13, copies your program into the worker. CUDA's state is not valid there:

# This needs a GPU.
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

# sphinx_gallery_start_ignore
_program = os.getpid()
_after_cuda = mock.patch("torch.cuda._is_in_bad_fork", lambda: os.getpid() != _program)
_after_cuda.start()  # as if the program had used the GPU before it forked
try:
    # sphinx_gallery_end_ignore
    class Images(Dataset):
        images = torch.ones(8, 3)

        def __len__(self):
            return len(self.images)

        def __getitem__(self, i):
            return self.images[i].to("cuda")

    device = "cuda"
    # sphinx_gallery_start_ignore
    device = "cpu"
    # sphinx_gallery_end_ignore
    model = nn.Linear(3, 1).to(device)
    for batch in DataLoader(Images(), num_workers=2):
        model(batch)
# sphinx_gallery_start_ignore
except RuntimeError as error:
    message = str(error)
    first, *_, last = message.strip().splitlines()
    print("RuntimeError:", first)
    print("  ...")
    print(last)
    error.with_traceback(None)  # it holds the loader, which else waits 5 s for a worker
assert "in _lazy_init" in message and "in __getitem__" in message
assert first == "Caught RuntimeError in DataLoader worker process 0."
assert last == (
    "RuntimeError: Cannot re-initialize CUDA in forked subprocess. To use CUDA with "
    "multiprocessing, you must use the 'spawn' start method"
)
# sphinx_gallery_end_ignore

# %%
# (Hidden code stands in for the GPU.) The lines above ``_lazy_init`` show which of your lines asked
# for the GPU. Keep the dataset's tensors on the CPU, and move whole batches in the training loop:


class Images(Dataset):
    images = torch.ones(8, 3)

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        return self.images[i]


device = "cuda" if torch.cuda.is_available() else "cpu"
for batch in DataLoader(Images(), num_workers=2):
    batch = batch.to(device)
print(batch.device)

# sphinx_gallery_start_ignore
_after_cuda.stop()
folder.cleanup()
# sphinx_gallery_end_ignore

# %%
# If your own processes need the GPU, start them with ``torch.multiprocessing.get_context("spawn").Process(...)``, below ``if
# __name__ == "__main__":``.
#
# There appear to be leaked semaphore objects to clean up at shutdown
# -------------------------------------------------------------------
# Python warns when a program was killed, for example. This one kills itself:

import re
import subprocess
import sys

program = """
import multiprocessing, os, signal
lock = multiprocessing.get_context("spawn").Lock()
os.kill(os.getpid(), signal.SIGKILL)
"""
ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
print(re.search("UserWarning: .* shutdown", ended.stderr)[0])
print("exit status", ended.returncode)

# sphinx_gallery_start_ignore
program = """
import multiprocessing, resource, torch
multiprocessing.set_start_method("fork")
resource.setrlimit(resource.RLIMIT_NOFILE, (80, 80))


def keep(copy):
    samples, kept = [torch.ones(2) * i for i in range(200)], []
    for batch in torch.utils.data.DataLoader(samples, num_workers=1):
        kept.append(batch.clone() if copy else batch)
    return torch.cat(kept).sum().item()


assert keep(True) == 2 * sum(range(200))
keep(False)
"""
_open = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
assert "RuntimeError: Too many open files" in _open.stderr, _open.stderr
assert "in keep" in _open.stderr and "AssertionError" not in _open.stderr
# a class of a notebook, as a worker gets it: the worker's __main__ has no such class
_load = "import pickle; pickle.loads(b'c__main__\\nRows\\n.')"
_worker = subprocess.run([sys.executable, "-c", _load], capture_output=True, text=True)
assert "Can't get attribute 'Rows' on <module '__main__' (built-in)>" in _worker.stderr
assert "There appear to be 1 leaked semaphore objects to clean up" in ended.stderr
assert ended.returncode == -9
# sphinx_gallery_end_ignore

# %%
# If your program failed, look above this line for the cause.
#
# See also
# --------
# - :ref:`sphx_glr_gallery_training_data_loading.py`: what a worker shares with your program.
# - :ref:`sphx_glr_gallery_errors_stack_unequal_sizes.py`: samples that do not make a batch.
# - :ref:`sphx_glr_gallery_errors_ddp_finished_reduction.py`: messages of ``torchrun`` and ``accelerate launch``.
# - In PyTorch's reference: `multi-process data loading
#   <https://docs.pytorch.org/docs/stable/data.html#multi-process-data-loading>`__.
