r"""
Cannot re-initialize CUDA in forked subprocess
==============================================

.. index::
   ! single: To use CUDA with multiprocessing, you must use the 'spawn' start method
   ! single: a dataset or collate_fn that moves tensors to the GPU fails with num_workers
   ! single: DataLoader with num_workers=0 works, with more workers CUDA fails

.. in-short::

   A worker process that was forked from your program wants to use the GPU, which your program uses already. Let workers return
   tensors on the CPU, and move each batch in the training loop.

   .. code-block:: diff

            def __getitem__(self, i):
      -         return self.images[i].to("cuda")
      +         return self.images[i]

        for batch in DataLoader(Images(), num_workers=2):
      +     batch = batch.to(device)

   **Not this:** ``num_workers=0``. It ends the message, and the GPU waits while one process loads the data.
"""

# %%
# The code that raises it
# -----------------------

# This needs a GPU.
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

# sphinx_gallery_start_ignore
# isort: split
import multiprocessing
import os
import warnings
from unittest import mock

warnings.filterwarnings("ignore", "This process .* is multi-threaded")
_method = multiprocessing.get_start_method()
multiprocessing.set_start_method("fork", force=True)
_program = os.getpid()
_after_cuda = mock.patch("torch.cuda._is_in_bad_fork", lambda: os.getpid() != _program)
_after_cuda.start()  # as if the program had used the GPU before it forked
_before = torch.cuda._is_in_bad_fork()
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
assert not _before  # the program itself may use CUDA
assert first == "Caught RuntimeError in DataLoader worker process 0."
assert last == (
    "RuntimeError: Cannot re-initialize CUDA in forked subprocess. To use CUDA with "
    "multiprocessing, you must use the 'spawn' start method"
)


def _last_line(dataset, **options):
    try:
        for _ in DataLoader(dataset, **options):
            pass
    except (RuntimeError, AssertionError) as error:
        error.with_traceback(None)
        return str(error).strip().splitlines()[-1]
    return ""


assert (
    _last_line(
        torch.ones(8, 3),
        num_workers=1,
        collate_fn=lambda samples: torch.stack(samples).cuda(),
    )
    == last
)
assert _last_line(torch.ones(8, 3), num_workers=1) == ""


# sphinx_gallery_end_ignore

# %%
# This site is built without a GPU. A hidden part makes PyTorch believe that the program used CUDA before it forked its workers,
# as ``model.to("cuda")`` does. The message is PyTorch's own.
#
# In the traceback, the lines above ``_lazy_init`` show which of your lines asked for the GPU. It may be in a ``collate_fn``, in
# a transform, or in a model that prepares the samples. *RuntimeError: CUDA error: initialization error* is the same problem.
# The tensors of the dataset may be on the GPU (`pytorch#4377 <https://github.com/pytorch/pytorch/issues/4377>`__).
#
# A program that cannot use the GPU at all gets :ref:`another message, which tells what is missing
# <sphx_glr_gallery_errors_not_compiled_with_cuda.py>`: the build for CUDA, or the driver.
#
# Why
# ---
# ``fork`` copies the memory of your program into the worker. CUDA's state is copied, too, and is not valid in another process.
# ``spawn`` starts a new Python, where nothing of CUDA is in use.
#
# .. how-measured:: This code draws the two ways to start a worker.

import matplotlib.pyplot as plt


def plot_fork_and_spawn():
    _, ax = plt.subplots(figsize=(7, 1.9), layout="constrained")
    boxes = [
        (1.5, 1, "your program\nCUDA in use", "#2563eb"),
        (7.5, 1.75, "worker: a copy of CUDA's state, not valid", "#c2410c"),
        (7.5, 0.25, "worker: a new Python, CUDA not in use", "#047857"),
    ]
    for x, y, text, color in boxes:
        look = {"boxstyle": "round,pad=0.5", "fc": "none", "ec": color}
        ax.text(x, y, text, ha="center", va="center", bbox=look)
    for y, text in ((1.75, "fork"), (0.25, "spawn")):
        arrow = {"arrowstyle": "->", "color": "#64748b"}
        ax.annotate("", (4.8, y), (2.7, 1), arrowprops=arrow)
        ax.text(3.5, (y + 1) / 2 + (0.1 if y > 1 else -0.35), text)
    ax.set(xlim=(0, 10.6), ylim=(-0.2, 2.2), title="Two ways to start a worker")
    ax.axis("off")


# %%
# The start method of this page:

import multiprocessing

print("workers start by:", multiprocessing.get_start_method())

# figure: A program that uses CUDA, with two arrows. By fork it gets a worker with a copy of CUDA's state, which cannot be used.
#   By spawn it gets a worker without CUDA's state, which may begin with CUDA.
plot_fork_and_spawn()

# sphinx_gallery_start_ignore
assert multiprocessing.get_start_method() == "fork"
# sphinx_gallery_end_ignore

# %%
# On Linux, ``fork`` is the default up to Python 3.13. On Windows and macOS it is ``spawn``, so the same program may run there.
#
# Even ``torch.cuda.is_available()`` before the fork can be enough (`vllm#15681
# <https://github.com/vllm-project/vllm/issues/15681>`__).
#
# The fix
# -------
# Return tensors on the CPU, and move whole batches in the program: one copy for a batch instead of one for each sample.


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
multiprocessing.set_start_method(_method, force=True)
# sphinx_gallery_end_ignore

# %%
# With a GPU, ``pin_memory=True`` in the loader makes that copy faster, says `PyTorch's documentation
# <https://docs.pytorch.org/docs/stable/data.html#memory-pinning>`__.
#
# **If your own processes need the GPU**, start them with ``spawn``. Define the function at the top level of a file, and start
# the processes under ``if __name__ == "__main__":``

import subprocess
import sys
import tempfile
from pathlib import Path

program = """
import torch
import torch.multiprocessing as mp

def work(rank):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    print("worker", rank, torch.ones(2, device=device).sum().item())

if __name__ == "__main__":
    mp.spawn(work, nprocs=1)
"""

with tempfile.TemporaryDirectory() as folder:
    file = Path(folder, "train.py")
    file.write_text(program)
    print(subprocess.check_output([sys.executable, file], text=True))

# sphinx_gallery_start_ignore
raised = []
try:
    multiprocessing.set_start_method("spawn")
except RuntimeError as error:
    raised.append(str(error))
assert raised == ["context has already been set"]
# sphinx_gallery_end_ignore

# %%
# Some libraries start the processes for you and have a setting: for vLLM it is ``VLLM_WORKER_MULTIPROC_METHOD=spawn``
# (`FastChat#3507 <https://github.com/lm-sys/FastChat/issues/3507>`__).
#
# What not to do
# --------------
# **Do not use spawn to keep .to("cuda") in a dataset.** The message is gone, but each worker opens CUDA for itself, and takes
# memory on the GPU. Samples still go there one by one.
#
# **Do not call set_start_method twice.** If another import has chosen a method already, the second call raises ``context has
# already been set``, unless it has ``force=True``. Use ``mp.get_context("spawn")``, or the argument
# ``multiprocessing_context`` of ``DataLoader``. Both need the line with ``__main__``, too.
#
# See also
# --------
# - :ref:`sphx_glr_gallery_training_data_loading.py`: workers, what they copy, and how they start.
# - :ref:`sphx_glr_gallery_errors_not_compiled_with_cuda.py`: when no process can use CUDA.
# - In PyTorch's notes: `CUDA in multiprocessing
#   <https://docs.pytorch.org/docs/stable/notes/multiprocessing.html#cuda-in-multiprocessing>`__.
