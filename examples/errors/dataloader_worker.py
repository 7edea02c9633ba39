r"""
DataLoader worker (pid(s) 1234) exited unexpectedly
===================================================

.. index::
   ! single: DataLoader worker is killed by signal: Killed
   ! single: DataLoader worker is killed by signal: Bus error, out of shared memory in Docker
   ! single: Caught KeyError in DataLoader worker process 0
   ! single: An attempt has been made to start a new process, freeze_support

.. in-short::

   A worker process ended. The lines above this message may say why. Under Windows and macOS the script often lacks
   ``if __name__ == "__main__":``. If those lines say *Killed*, memory ran out.

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
# A script, ``train.py``. With ``"spawn"`` it fails here as it does under Windows and macOS, where ``"spawn"`` is the default.

# sphinx_gallery_start_ignore
import gc
import multiprocessing
import os
import re
import runpy
import tempfile
import textwrap
import traceback

from torch.utils.data import DataLoader, Dataset

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
# The first message is the worker's, the second is your program's. The number of the process, here 1234, differs in each run.
#
# Why
# ---
# A spawned worker does not begin as a copy of your program. It imports your script to find your classes, and so it comes to the
# loop over the loader and wants workers of its own. Python refuses this. What is below ``if __name__ == "__main__":`` is not
# run by an import. ``"forkserver"``, the default of Linux from Python 3.14 on, needs the same line.
#
# A worker can also be ended from outside. Linux sends the signal *Killed* to a process when memory runs out, and *Bus error*
# when the shared memory is full, in which batches travel. Here the worker sends each of the two to itself:

import os
import signal
import time


class Ends(Dataset):
    def __init__(self, number):
        self.number = number

    def __len__(self):
        return 4

    def __getitem__(self, index):
        time.sleep(0.5)
        os.kill(os.getpid(), self.number)


# varies: Each process has its own number.
messages = []
for number in (signal.SIGKILL, signal.SIGBUS):
    try:
        next(iter(DataLoader(Ends(number), num_workers=1)))
    except RuntimeError as error:
        messages.append(str(error.__cause__ or error))
        print(messages[-1])

# sphinx_gallery_start_ignore
assert (
    _numbered(messages[0])
    == "DataLoader worker (pid 1234) is killed by signal: Killed."
)
assert "is killed by signal: Bus error. It is possible that dataloader's" in messages[1]
# sphinx_gallery_end_ignore

# %%
# Memory grows with the number of workers, since each one loads batches ahead, 2 by default:

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
# Put the loop, and what else should run once, below ``if __name__ == "__main__":``. Leave classes and functions above it: a
# spawned worker looks for them.

# sphinx_gallery_start_ignore
script = """
# sphinx_gallery_end_ignore
from torch.utils.data import DataLoader

loader = DataLoader(range(4), num_workers=1, multiprocessing_context="spawn")
if __name__ == "__main__":
    for batch in loader:
        print(batch)
# sphinx_gallery_start_ignore
"""
_run(script)
assert _said_by_workers() == ""
# what a spawned worker imports: the script under another name
_seen = runpy.run_path(folder.name + "/train.py", run_name="__mp_main__")
assert "loader" in _seen and "batch" not in _seen
# sphinx_gallery_end_ignore

# %%
# - **Killed**: fewer workers, a smaller batch, ``prefetch_factor=1``. Do not keep all decoded images in the dataset.
# - **Bus error**: a container often has little shared memory. Start it with ``--shm-size=8g`` or ``--ipc=host``
#   (`detectron2#384 <https://github.com/facebookresearch/detectron2/issues/384>`__), or use fewer workers.
# - **Segmentation fault**, or no reason at all: run with ``num_workers=0`` and ``python -X faulthandler train.py``. If your
#   dataset crashes, your own process now does, and Python prints the line.
# - **A notebook** under Windows or macOS: a spawned worker does not find a class that only the notebook has. Put your dataset
#   class into a file, and import it.
#
# **Caught KeyError in DataLoader worker process 0** is another case: the worker lives, and your ``__getitem__`` or
# ``collate_fn`` raised. The last line says what. Often it is a filtered pandas table, which keeps the old row labels:

import pandas as pd

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
    traceback.clear_frames(
        error.__traceback__
    )  # frees the loader, which ends its worker
    print(f"KeyError: {caught[0]}", caught[1], "...", caught[-1], sep="\n")
assert caught[0] == "Caught KeyError in DataLoader worker process 0."
assert caught[-1] == "KeyError: 0"
try:  # without workers it is the plain message
    next(iter(DataLoader(train)))
except KeyError as error:
    caught.append(str(error))
assert caught[-1] == "0"
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


_again = Rows(table[table["part"] == "train"].reset_index(drop=True))
assert [x.item() for x in DataLoader(_again)] == [0.3, 0.4]
folder.cleanup()
# sphinx_gallery_end_ignore

# %%
# What not to do
# --------------
# **Do not stay at num_workers=0.** Run one epoch with it to see the real error. Fix that, and set the workers again.
#
# See also
# --------
# - :ref:`sphx_glr_gallery_training_data_loading.py`: what a worker shares with your program.
# - :ref:`sphx_glr_gallery_errors_stack_unequal_sizes.py`, which arrives as *Caught RuntimeError*.
# - In PyTorch's reference: `multi-process data loading
#   <https://docs.pytorch.org/docs/stable/data.html#multi-process-data-loading>`__.
