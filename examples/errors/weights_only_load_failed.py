r"""
Weights only load failed. This file can still be loaded, to do so you have two options
======================================================================================

.. index::
   ! single: torch.load fails since PyTorch 2.6, weights_only changed to True
   ! single: Unsupported global: GLOBAL numpy.core.multiarray.scalar was not an allowed global by default
   ! single: Unsupported global: GLOBAL numpy._core.multiarray._reconstruct was not an allowed global by default
   ! single: WeightsUnpickler error: Unsupported operand 60
   ! single: WeightsUnpickler error: Unsupported operand 149
   ! single: loading a model that was saved whole with torch.save(model) fails

.. in-short::

   The file holds more than tensors, numbers, strings, lists and dictionaries. Since version 2.6 ``torch.load`` refuses that. If
   your own program wrote it, call ``torch.load(path, weights_only=False)``. If you trust it, allow its types by name.

   .. code-block:: diff

      - checkpoint = torch.load(path)
      + with safe_globals([scalar, np.dtype, np.dtypes.Float64DType]):
      +     checkpoint = torch.load(path)

   **Not this:** ``weights_only=False`` for a file from a stranger. Loading that file can run any program.
"""

# %%
# The code that raises it
# -----------------------

import tempfile

import numpy as np
import torch
from torch import nn

# sphinx_gallery_start_ignore
# isort: split
import pickle
import sys
import warnings


def _plain(error):
    """The message without the codes that make some words bold, and without tabs."""
    text = str(error).replace("\x1b[1m", "").replace("\x1b[0m", "")
    return text.replace("\t", "    ").replace(" \n", "\n")


try:
    # sphinx_gallery_end_ignore
    path = tempfile.mkdtemp() + "/checkpoint.pt"
    net = nn.Linear(3, 2)
    losses = [0.5, 0.25]
    checkpoint = {"model": net.state_dict(), "loss": np.mean(losses)}
    torch.save(checkpoint, path)

    checkpoint = torch.load(path)
# sphinx_gallery_start_ignore
except pickle.UnpicklingError as error:
    message = _plain(error)
    print("UnpicklingError:", message)
assert message.startswith("Weights only load failed. This file can still be loaded")
assert "Unsupported global: GLOBAL numpy._core.multiarray.scalar was not" in message
# sphinx_gallery_end_ignore

# %%
# The name after ``GLOBAL`` tells what is in the file:
#
# .. list-table::
#    :header-rows: 1
#    :widths: 56 44
#
#    * - the name
#      - what it is
#    * - ``numpy._core.multiarray.scalar``, ``numpy.core.multiarray.scalar``
#      - a NumPy number, such as a metric of ``np.mean``
#    * - ``numpy._core.multiarray._reconstruct``
#      - a NumPy array, or its random state, as in the ``rng_state`` files of trainers
#    * - ``argparse.Namespace``, ``utils.HParams``, ``omegaconf.listconfig.ListConfig``
#      - the settings of the training
#    * - ``__main__.Net``, ``ultralytics.nn.tasks.DetectionModel``
#      - a whole model
#    * - ``torch.storage._load_from_bytes``
#      - a file of ``pickle.dump``: see below
#    * - no ``GLOBAL``, but *Unsupported operand*
#      - often no checkpoint: see below
#    * - *Can only SETITEM*, *Can only append*
#      - a subclass of ``dict`` or ``list``, such as ``defaultdict``: ``weights_only=False``, if you trust it
#
# **A library loads the file:** upgrade the library. A new Lightning takes ``weights_only=False``. If you trust all files that
# the program loads, set the environment variable ``TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD=1``. It works unless the library passes
# ``weights_only`` itself. Or call ``add_safe_globals``, as below, before it loads.
#
# Why
# ---
# ``torch.save`` writes a *pickle*, and a pickle may name any function, to be called while it is loaded. With
# ``weights_only=True``, a name that is not on a list is not called.
#
# .. how-measured:: This code saves fourteen values, and tries to load each.

import argparse
import collections
import datetime
import io
import pathlib
import pickle
import random

values = {
    "net.state_dict()": net.state_dict(),
    "optimizer.state_dict()": torch.optim.Adam(net.parameters()).state_dict(),
    "torch.ones(2)": torch.ones(2),
    '1, 0.5, True, None, "cat"': (1, 0.5, True, None, "cat"),
    "[...], {...}, set": [[1], {"a": 2}, {3}],
    "torch.float32, torch.device": (torch.float32, torch.device("cpu")),
    "random.getstate()": random.getstate(),
    "np.float64(0.5)": np.float64(0.5),
    "np.ones(2)": np.ones(2),
    "net, the model itself": net,
    "argparse.Namespace": argparse.Namespace(lr=0.1),
    "pathlib.Path": pathlib.Path("data"),
    "collections.defaultdict": collections.defaultdict(list),
    "datetime.datetime": datetime.datetime(2026, 1, 1),
}


def loads(value):
    file = io.BytesIO()
    torch.save(value, file)
    try:
        torch.load(io.BytesIO(file.getvalue()))
    except pickle.UnpicklingError:
        return False
    return True


# %%
# What loads, and what is refused:

import matplotlib.pyplot as plt

# figure: Two lists. These load: a state_dict, the optimizer's state_dict, tensors, numbers and strings, lists and
#   dictionaries, sets, dtype and device, the state of random. These are refused: a NumPy number, a NumPy array, a whole
#   model, argparse.Namespace, pathlib.Path, defaultdict, datetime.
fig, ax = plt.subplots(figsize=(6, 2), layout="constrained")
rows = {True: 0, False: 0}
for name, value in values.items():
    good = loads(value)
    color = "#047857" if good else "#c2410c"
    ax.text(0 if good else 0.55, rows[good], name, color=color)
    rows[good] += 1
ax.set(xlim=(0, 1), ylim=(6.6, -0.8), title="Loads (left), is refused (right)")
ax.axis("off")

# sphinx_gallery_start_ignore
assert [loads(value) for value in values.values()] == [True] * 7 + [False] * 7
# sphinx_gallery_end_ignore

# %%
# The fix
# -------
# **You trust the file**: list what it names, and allow these types. A file of before PyTorch 1.6 cannot be listed: allow the
# name in the message, then the next one.

from numpy._core.multiarray import scalar
from torch.serialization import get_unsafe_globals_in_checkpoint, safe_globals

print(sorted(get_unsafe_globals_in_checkpoint(path)))
with safe_globals([scalar, np.dtype, np.dtypes.Float64DType]):
    checkpoint = torch.load(path)
print(checkpoint["loss"])

# sphinx_gallery_start_ignore
assert checkpoint["loss"] == 0.375
# a file that NumPy 1 wrote has the old name, and needs a pair
import zipfile

_bytes = io.BytesIO()
with zipfile.ZipFile(path) as _new, zipfile.ZipFile(_bytes, "w") as _old:
    for _part in _new.namelist():
        _old.writestr(_part, _new.read(_part).replace(b"numpy._core", b"numpy.core"))
_refused = []
for _name in (scalar, (scalar, "numpy.core.multiarray.scalar")):
    try:
        with safe_globals([_name, np.dtype, np.dtypes.Float64DType]):
            assert torch.load(io.BytesIO(_bytes.getvalue()))["loss"] == 0.375
    except pickle.UnpicklingError as error:
        _refused.append("GLOBAL numpy.core.multiarray.scalar was not" in str(error))
assert _refused == [True]
# sphinx_gallery_end_ignore

# %%
# ``torch.serialization.add_safe_globals([...])`` does the same for the rest of the program. Two traps:
#
# - The list does not show the class of a dtype. The message below names it. NumPy's random state needs
#   ``UInt32DType``.

# sphinx_gallery_start_ignore
raised = []
try:
    # sphinx_gallery_end_ignore
    with safe_globals([scalar, np.dtype]):
        torch.load(path)
# sphinx_gallery_start_ignore
except pickle.UnpicklingError as error:
    raised.append(_plain(error))
    print(
        "UnpicklingError: ..."
        + raised[0].partition("use case: ")[2].split("\n\nCheck")[0]
    )
assert (
    len(raised) == 1 and "Can only build Tensor, Parameter, OrderedDict or" in raised[0]
)
assert "but got <class 'numpy.dtypes.Float64DType'>" in raised[0]
with safe_globals([scalar, np.dtype, np.dtypes.Float32DType]):
    assert loads(np.float32(0.5)) and not loads(np.float64(0.5))
from unittest import mock

_forced = {"TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD": "1"}
_refused = []
with warnings.catch_warnings(action="ignore"), mock.patch.dict("os.environ", _forced):
    assert torch.load(path)["loss"] == 0.375
    try:
        torch.load(path, weights_only=True)
    except pickle.UnpicklingError as error:
        _refused.append("GLOBAL numpy._core.multiarray.scalar was not" in str(error))
assert _refused == [True]
# sphinx_gallery_end_ignore

# %%
# - The file can have an old name, of NumPy 1 or of a class that has moved. Allow a pair:
#   ``(scalar, "numpy.core.multiarray.scalar")``, ``(Net, "__main__.Net")``.
#
# **You write the file?** Save plain values, and of a model its ``state_dict()``:

checkpoint = {"model": net.state_dict(), "loss": float(np.mean(losses))}
torch.save(checkpoint, path)
checkpoint = torch.load(path)
net.load_state_dict(checkpoint["model"])

# sphinx_gallery_start_ignore
assert checkpoint["loss"] == 0.375
# the replacements that the page names
for _value in (vars(argparse.Namespace(lr=0.1)), str(pathlib.Path("data"))):
    assert loads(_value)
assert loads(torch.from_numpy(np.ones(2)))
# sphinx_gallery_end_ignore

# %%
# For an array of numbers it is ``torch.from_numpy(array)``, for a path ``str(path)``, and for an ``argparse.Namespace`` of
# plain values ``vars(args)``.
#
# **The file is a whole model,** as ``torch.save(net, path)`` writes it. Allow each name in its list, classes and functions:

torch.save(nn.Sequential(net, nn.ReLU()), path)
print(sorted(get_unsafe_globals_in_checkpoint(path)))
with safe_globals([nn.Sequential, nn.Linear, nn.ReLU]):
    model = torch.load(path)

# sphinx_gallery_start_ignore
assert torch.equal(model[0].weight, net.weight)
# sphinx_gallery_end_ignore

# %%
# If you wrote the file yourself, load it once with ``weights_only=False``, and save its ``state_dict()``.
#
# **"Unsupported operand 60"**: often the file is not a checkpoint. Print ``open(path, "rb").read(60)``:
#
# - ``<html`` or ``<!DOCTYPE``: a web page. Download the file by its direct link.
# - ``version https://git-lfs``: ``git lfs pull``.
# - ``{"`` after 8 bytes: ``safetensors.torch.load_file(path)``.
# - ``PK`` (saved with ``pickle_protocol=4``), and you trust it: ``weights_only=False``.
# - ``\x80`` (``pickle.dump``), and you trust it: ``pickle.load(open(path, "rb"))``.

# sphinx_gallery_start_ignore
try:
    # sphinx_gallery_end_ignore
    with open(path, "w") as file:
        file.write("<!DOCTYPE html><title>Sign in</title>")
    torch.load(path)
# sphinx_gallery_start_ignore
except pickle.UnpicklingError as error:
    raised.append(_plain(error))
    print(
        "UnpicklingError: ..."
        + raised[1].partition("use case: ")[2].split("\n\nCheck")[0]
    )
assert len(raised) == 2 and "Unsupported operand 60" in raised[1]
try:
    torch.load(io.BytesIO(b"version https://git-lfs.github.com/spec/v1\n"))
except pickle.UnpicklingError as error:
    raised.append(_plain(error))
assert len(raised) == 3 and "Unsupported operand 118" in raised[2]
_array, _said = np.ones(2), []
with safe_globals(
    [
        np._core.multiarray._reconstruct,
        np.ndarray,
        np.dtype,
        np.dtypes.Float64DType,
    ]
):
    assert loads(_array)


def _says(content, **options):
    with warnings.catch_warnings(action="ignore"):
        try:
            torch.load(io.BytesIO(content), **options)
        except pickle.UnpicklingError as error:
            return _plain(error)
    return ""


def _bytes_of(value, **options):
    file = io.BytesIO()
    torch.save(value, file, **options)
    return file.getvalue()


_dumped = pickle.dumps({"loss": 0.5}, protocol=4)
assert "Unsupported operand 149" in _says(_dumped) and _dumped[:1] == b"\x80"
_dumped = pickle.dumps({"net": torch.ones(2)}, protocol=2)
assert "GLOBAL torch.storage._load_from_bytes" in _says(_dumped)
assert pickle.loads(_dumped)["net"].tolist() == [1, 1] and _dumped[:1] == b"\x80"
_saved = _bytes_of(torch.ones(2), pickle_protocol=4)
assert "Unsupported operand 149" in _says(_saved) and _saved[:2] == b"PK"
assert _says(_saved, weights_only=False) == ""
_file = (3072).to_bytes(8, "little") + b'{"weight":{"dtype":"F32"' + 3048 * b" "
assert "Unsupported operand" in _says(_file)
# values in these are refused, allowed or not
_Settings, _Rows = type("_Settings", (dict,), {}), type("_Rows", (list,), {})
for _class in (_Settings, _Rows):
    vars(sys.modules[__name__])[_class.__name__] = _class
    _class.__module__ = __name__
with safe_globals([_Settings, _Rows]):
    assert "Can only SETITEM" in _says(_bytes_of(_Settings(lr=0.1)))
    assert "Can only append" in _says(_bytes_of(_Rows([1])))
for _number in (np.int64(3), np.float32(0.5), np.bool_(True)):
    assert "GLOBAL numpy._core.multiarray.scalar" in _says(_bytes_of(_number))
with safe_globals([collections.defaultdict, collections.deque, list]):
    assert loads(collections.defaultdict(list)) and loads(collections.deque())
    for _kind, _word in (
        (collections.defaultdict(list, {"a": [1]}), "Can only SETITEM"),
        (collections.deque([1]), "Can only append"),
    ):
        assert (_word in _says(_bytes_of(_kind))) == (not loads(_kind))
_random = np.random.get_state()
_names = [np._core.multiarray._reconstruct, np.ndarray, np.dtype]
for _more, _good in (([], False), ([np.dtypes.UInt32DType], True)):
    with safe_globals(_names + _more):
        assert loads(_random) == _good
# a class that was in __main__ and is now in another module
Net = type("Net", (nn.Linear,), {"__module__": "__main__"})
vars(sys.modules["__main__"])["Net"] = Net
_saved = _bytes_of(Net(1, 1))
_moved = type("Net", (nn.Linear,), {"__module__": "models"})
for _name, _good in ((_moved, False), ((_moved, "__main__.Net"), True)):
    with safe_globals([_name]):
        assert (_says(_saved) == "") == _good
# the format of before 1.6
_saved = _bytes_of(argparse.Namespace(lr=0.1), _use_new_zipfile_serialization=False)
assert "GLOBAL argparse.Namespace" in _says(_saved)
with safe_globals([argparse.Namespace]):
    assert _says(_saved) == ""
try:
    get_unsafe_globals_in_checkpoint(io.BytesIO(_saved))
except ValueError as error:
    _said.append(str(error))
assert len(_said) == 1 and "Expected input to be a checkpoint" in _said[0]
# sphinx_gallery_end_ignore

# %%
# What not to do
# --------------
# **Do not load a stranger's file with weights_only=False.** Here the file calls ``print``. It could delete your files:


class Gift:
    def __reduce__(self):
        return print, ("this line comes from the file",)


torch.save({"model": net.state_dict(), "epoch": Gift()}, path)
checkpoint = torch.load(path, weights_only=False)

# sphinx_gallery_start_ignore
assert checkpoint["epoch"] is None and "this line comes" not in message
try:
    torch.load(path)
except pickle.UnpicklingError as error:
    raised.append("GLOBAL print was not an allowed global" in str(error))
assert raised[3:] == [True]
import contextlib
import os
import shutil

with contextlib.redirect_stdout(
    io.StringIO()
) as _said:  # listing does not run the file
    assert get_unsafe_globals_in_checkpoint(path) == ["builtins.print"]
assert _said.getvalue() == ""

shutil.rmtree(os.path.dirname(path))
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_errors_state_dict_keys.py`, when the file loads and its names do not fit.
# - In PyTorch's reference: `torch.load with weights_only=True
#   <https://docs.pytorch.org/docs/stable/notes/serialization.html#torch-load-with-weights-only-true>`__.
