r"""
Torch not compiled with CUDA enabled
====================================

.. index::
   ! single: Attempting to deserialize object on a CUDA device
   ! single: torch.cuda.is_available() is False although there is a GPU
   ! single: module 'torch._C' has no attribute '_cuda_setDevice'
   ! single: pickle.load or joblib.load of tensors of a GPU
   ! single: Found no NVIDIA driver on your system
   ! single: map_location for a model that was saved on a GPU
   ! single: with CUDA capability sm_120 is not compatible with the current PyTorch installation
   ! single: no kernel image is available for execution on the device
   ! single: CUBLAS_STATUS_ALLOC_FAILED when calling cublasCreate(handle)
   ! single: cuDNN error: CUDNN_STATUS_NOT_INITIALIZED
   ! single: Unable to find a valid cuDNN algorithm to run convolution
   ! single: AttributeError: module 'torch' has no attribute, in an older or newer version

.. in-short::

   Your PyTorch has no CUDA. Usually it is a build for the CPU. Without an NVIDIA GPU, choose the device as below. With one,
   uninstall PyTorch and install the build for CUDA that `pytorch.org <https://pytorch.org/get-started/locally/>`__ names.

   .. code-block:: diff

      - device = "cuda"
      + device = "cuda" if torch.cuda.is_available() else "cpu"
        model = nn.Linear(3, 2).to(device)

   **Not this:** ``pip install torch`` once more. The build for the CPU is there already, so ``pip`` keeps it.
"""

# %%
# The code that raises it
# -----------------------

from torch import nn

# sphinx_gallery_start_ignore
# isort: split
import contextlib
import types
import warnings
from unittest import mock

import torch

_no_cuda = contextlib.ExitStack()
_no_cuda.enter_context(mock.patch.object(torch.version, "cuda", None))
_no_cuda.enter_context(mock.patch("torch.cuda._initialized", False))
_no_cuda.enter_context(mock.patch("torch.cuda.is_available", lambda: False))
_no_cuda.enter_context(mock.patch("torch.cuda.device_count", lambda: 0))
_count = torch._C.__dict__.get("_cuda_getDeviceCount")
if _count is not None:  # by its absence PyTorch knows a build for the CPU
    del torch._C._cuda_getDeviceCount
    _no_cuda.callback(setattr, torch._C, "_cuda_getDeviceCount", _count)
try:
    # sphinx_gallery_end_ignore
    device = "cuda"
    model = nn.Linear(3, 2).to(device)
# sphinx_gallery_start_ignore
except AssertionError as error:
    message = str(error)
    print("AssertionError:", message)
assert message == "Torch not compiled with CUDA enabled"


def _message_of(call, *args, **kwargs):
    try:
        call(*args, **kwargs)
    except (AssertionError, AttributeError, RuntimeError) as error:
        return str(error)
    return ""


assert _message_of(torch.ones, 2, device="cuda") == message
assert _message_of(torch.ones(2).cuda) == message
assert _message_of(torch.cuda.current_device) == message
assert _message_of(torch.cuda.synchronize) == message
assert _message_of(torch.cuda.get_device_name) == message
with contextlib.ExitStack() as _stack:  # set_device() looks up a function of CUDA
    _set = torch._C.__dict__.get("_cuda_setDevice")
    if _set is not None:
        del torch._C._cuda_setDevice
        _stack.callback(setattr, torch._C, "_cuda_setDevice", _set)
    assert _message_of(torch.cuda.set_device, 0) == (
        "module 'torch._C' has no attribute '_cuda_setDevice'"
    )
# sphinx_gallery_end_ignore

# %%
# The message tells which build you have:
#
# .. list-table::
#    :header-rows: 1
#    :widths: 40 22 38
#
#    * - the message
#      - your build
#      - what to do
#    * - ``Torch not compiled with CUDA enabled``, ``module 'torch._C' has no attribute '_cuda_setDevice'``
#      - without CUDA
#      - Install the build for CUDA, or choose the device as below.
#    * - ``Found no NVIDIA driver on your system``
#      - for CUDA
#      - Install the driver, start the container with ``--gpus all``, or choose a GPU runtime in Colab.
#    * - ``No CUDA GPUs are available``
#      - for CUDA
#      - Look at ``CUDA_VISIBLE_DEVICES``, which may hide the GPU.
#
# Why
# ---
# An NVIDIA GPU needs its driver *and* a build of PyTorch for CUDA.
#
# .. how-measured:: The function draw_questions() draws the two questions and their answers.

import matplotlib.pyplot as plt
import torch


def draw_questions():
    _, ax = plt.subplots(figsize=(7, 2), layout="constrained")
    for text, x, y, color in (
        ("torch.version.cuda", 1.6, 2, "#64748b"),
        ("torch.cuda.is_available()", 6, 2, "#64748b"),
        ("install the build for CUDA", 1.6, 0, "#c2410c"),
        ("check the driver", 6, 0, "#c2410c"),
        ("use the GPU", 9.8, 2, "#047857"),
    ):
        box = {"boxstyle": "round,pad=0.4", "fc": "none", "ec": color}
        ax.text(x, y, text, ha="center", va="center", bbox=box)
    for answer, start, end, place in (
        ("13.0", (3.2, 2), (4.1, 2), (3.65, 2.15)),
        ("True", (7.9, 2), (8.8, 2), (8.35, 2.15)),
        ("  None", (1.6, 1.6), (1.6, 0.4), (2, 1)),
        ("  False", (6, 1.6), (6, 0.4), (6.4, 1)),
    ):
        ax.annotate("", end, start, arrowprops={"arrowstyle": "->", "color": "#64748b"})
        ax.text(*place, answer, ha="center")
    ax.set(xlim=(-0.3, 11), ylim=(-0.5, 2.6), title="Two questions, three answers")
    ax.axis("off")


# %%
# Ask for both in the program that fails:

print("built for CUDA:", torch.version.cuda)
print("GPU to be used:", torch.cuda.is_available())
draw_questions()

# figure: A tree with two questions. If torch.version.cuda is None, it is a build for the CPU: install another. If it is a
#   number and is_available() is False, look at the driver. If it is True, use the GPU.

# sphinx_gallery_start_ignore
assert torch.version.cuda is None and not torch.cuda.is_available()
# sphinx_gallery_end_ignore

# %%
# ``nvidia-smi`` asks the driver, not PyTorch. On a Mac with an Apple chip, the device is ``"mps"`` if
# ``torch.backends.mps.is_available()``; if not, update macOS, or use a Python for *arm64*. For an AMD GPU, install the build
# for ROCm; its device is ``"cuda"``.
#
# The fix
# -------
# Choose the device once. Replace ``.cuda()`` by ``.to(device)``. ``torch.cuda.FloatTensor`` of sizes, ``(2, 3)``, is
# ``torch.empty(2, 3, device=device)``, and of data ``torch.tensor(data, dtype=torch.float32, device=device)``.
# Call ``set_device``, ``synchronize`` and ``get_device_name`` only if ``torch.cuda.is_available()``. A library often has an
# option such as ``--device cpu``. If not, the last line of the traceback that is not in PyTorch uses the device to replace.

device = "cuda" if torch.cuda.is_available() else "cpu"
model = nn.Linear(3, 2).to(device)
print(model(torch.ones(1, 3, device=device)).device)

# sphinx_gallery_start_ignore
assert torch.FloatTensor(2, 3).shape == torch.empty(2, 3, device=device).shape == (2, 3)
_data = [[1.0, 2.0], [3.0, 4.0]]
_made = torch.tensor(_data, dtype=torch.float32, device=device)
assert torch.equal(torch.FloatTensor(_data), _made) and _made.dtype == torch.float32
# of one size, torch.tensor would be a number
assert torch.FloatTensor(2).shape == (2,) and torch.tensor(2, device=device).shape == ()
# sphinx_gallery_end_ignore

# %%
# **If you have the GPU**, remove the build for the CPU: ``python -m pip uninstall torch torchvision torchaudio xformers``. Then
# run the command of `pytorch.org <https://pytorch.org/get-started/locally/>`__. Take the ``python`` that ``sys.executable``
# names in the program that fails. Where conda installed PyTorch, make a new environment instead.
#
# **If it worked before**, a package that you installed since replaced PyTorch. If it is ``xformers``, append that to the
# command.
#
# Attempting to deserialize object on a CUDA device
# -------------------------------------------------
# A file from a GPU notes that its tensors were on ``cuda:0``. This code writes that note without a GPU:

import io
from unittest import mock

import torch
from torch import nn

file = io.BytesIO()
with mock.patch("torch.serialization.location_tag", lambda storage: "cuda:0"):
    torch.save(nn.Linear(3, 2).state_dict(), file)

# sphinx_gallery_start_ignore
raised = []
try:
    # sphinx_gallery_end_ignore
    file.seek(0)
    weights = torch.load(file)
# sphinx_gallery_start_ignore
except RuntimeError as error:
    raised.append(str(error))
    print("RuntimeError:", error)
assert len(raised) == 1 and raised[0].startswith(
    "Attempting to deserialize object on a CUDA device but torch.cuda.is_available() "
    "is False. If you are running on a CPU-only machine, please use torch.load with "
    "map_location=torch.device('cpu')"
)
# sphinx_gallery_end_ignore

# %%
# Load it onto the device that you have:

file.seek(0)
model.load_state_dict(torch.load(file, map_location=device))
print(model.weight.device)

# %%
# ``load_from_checkpoint`` of Lightning takes ``map_location`` too. For ``pickle`` and ``joblib``, replace what they call:

import pickle


def load_on_cpu(data):
    return torch.load(io.BytesIO(data), map_location="cpu", weights_only=False)


pickled = pickle.dumps(model)
with mock.patch("torch.storage._load_from_bytes", load_on_cpu):
    print(pickle.loads(pickled))

# sphinx_gallery_start_ignore
assert model.weight.device.type == device == "cpu"
with mock.patch("torch.serialization.location_tag", lambda storage: "cuda:0"):
    pickled = pickle.dumps(model)
assert _message_of(pickle.loads, pickled) == raised[0]
with mock.patch("torch.storage._load_from_bytes", load_on_cpu):
    assert torch.equal(pickle.loads(pickled).weight, model.weight)
_second = io.BytesIO()
with mock.patch("torch.serialization.location_tag", lambda storage: "cuda:1"):
    torch.save(torch.ones(2), _second)
with (
    mock.patch("torch.cuda.is_available", lambda: True),
    mock.patch("torch.cuda.device_count", lambda: 1),
):
    _second.seek(0)
    assert _message_of(torch.load, _second).startswith(
        "Attempting to deserialize object on CUDA device 1 but torch.cuda.device_count() is 1"
    )
_second.seek(0)
assert torch.load(_second, map_location=device).is_cpu
_no_cuda.close()
_own = _message_of(torch.ones, 2, device="cuda")  # the message of the build that runs
_of_cuda = (
    "Found no NVIDIA driver on your system",
    "No CUDA GPUs are available",
    "The NVIDIA driver on your system is too old",
    "CUDA driver initialization failed",
    "CUDA unknown error",
)
assert (_own == "") == torch.cuda.is_available()
assert not _own or (_own.startswith(_of_cuda) if _count else _own == message)
# sphinx_gallery_end_ignore

# %%
# The fix is the same for *on CUDA device 1 but torch.cuda.device_count() is 1*. If other programs see the GPU, print
# ``os.environ.get("CUDA_VISIBLE_DEVICES")``.
#
# no kernel image is available for execution on the device
# --------------------------------------------------------
# Your PyTorch has no machine code (*kernels*) for your GPU. First it warns:

# This needs a GPU.
import torch

# sphinx_gallery_start_ignore
_card = types.SimpleNamespace(name="NVIDIA GeForce RTX 5090", major=12, minor=0)
_built_for = [f"sm_{number}" for number in (50, 60, 70, 75, 80, 86, 90)]
_checks = [(torch.cuda._check_capability, []), (torch.cuda._check_cubins, [])]
_imitated = {
    "torch.version.cuda": "12.6",
    "torch.__version__": torch.__version__.split("+")[0] + "+cu126",
    "torch._C._cuda_getDeviceCount": lambda: 1,
    "torch._C._cuda_init": lambda: None,
    "torch.cuda._cudart": object(),
    "torch.cuda._initialized": False,
    "torch.cuda._queued_calls": _checks,
    "torch.cuda._lazy_seed_tracker": mock.Mock(get_calls=list),
    "torch.cuda._get_device_properties": lambda index: _card,
    "torch.cuda.current_device": lambda: 0,
    "torch.cuda.device_count": lambda: 1,
    "torch.cuda.get_arch_list": lambda: _built_for,
}
_gpu = contextlib.ExitStack()
for _name, _value in _imitated.items():
    _gpu.enter_context(mock.patch(_name, _value, create=True))
with warnings.catch_warnings(record=True) as _warned:
    warnings.simplefilter("always")
    # sphinx_gallery_end_ignore
    print(torch.cuda.get_device_name())
# sphinx_gallery_start_ignore
_said = [str(one.message).strip() for one in _warned]
print()
for message in reversed(_said):
    print("UserWarning:", message)
    print()
assert any(
    one.startswith(
        "NVIDIA GeForce RTX 5090 with CUDA capability sm_120 is not compatible with the "
        "current PyTorch installation.\nThe current PyTorch install supports CUDA "
        "capabilities sm_50 sm_60 sm_70 sm_75 sm_80 sm_86 sm_90."
    )
    for one in _said
)
# sphinx_gallery_end_ignore

# %%
# Hidden code imitates an RTX 5090 and a build for CUDA 12.6. There, the next line that computes raises:
#
# .. quoted-message:: https://github.com/pytorch/pytorch/issues/167244
#
#    RuntimeError: CUDA error: no kernel image is available for execution on the device
#
# Print both sides, and install a build that has code for your GPU: a newer PyTorch for a later CUDA if the GPU is new, the
# build for CUDA 12.6 for ``sm_50`` to ``sm_70``. ``(8, 9)`` also runs ``sm_80`` and ``sm_86``. If yours has code
# for it already, an extension such as flash-attn was compiled for other GPUs: compile it on your computer.

# This needs a GPU.
print("the GPU:  ", torch.cuda.get_device_capability())
print("the build:", torch.cuda.get_arch_list())

# sphinx_gallery_start_ignore
_gpu.close()
_runs = torch.cuda._code_compatible_with_device
_builds = {
    cuda: built if isinstance(built, set) else built["x86_64"]
    for cuda, built in torch.cuda.PYTORCH_RELEASES_CODE_CC.items()
}
_old = _builds.pop("12.6")
for _number in (50, 52, 60, 61, 70):  # Maxwell to Volta
    assert any(_runs(_number, code) for code in _old)
    assert not any(_runs(_number, code) for built in _builds.values() for code in built)
assert not any(_runs(120, code) or _runs(37, code) for code in _old)
assert _runs(89, 80) and _runs(89, 86) and not _runs(89, 90) and not _runs(80, 86)
assert _builds and all(
    any(_runs(120, code) for code in built) for built in _builds.values()
)
# sphinx_gallery_end_ignore

# %%
# **Errors of cuBLAS and cuDNN**: ``CUBLAS_STATUS_ALLOC_FAILED``, ``CUDNN_STATUS_NOT_INITIALIZED`` or ``Unable to find a valid
# cuDNN algorithm to run convolution``. Run the program on the CPU once: :ref:`an index that is too large for an embedding
# <sphx_glr_gallery_errors_index_out_of_range.py>` raises at its line there. If the CPU finds nothing, :ref:`use a smaller batch
# <sphx_glr_gallery_errors_out_of_memory.py>`.
#
# module 'torch' has no attribute
# -------------------------------
# The code is often for a different version. This name was taken away in 2.0:

import torch

# sphinx_gallery_start_ignore
try:
    # sphinx_gallery_end_ignore
    print(torch._six.string_classes)
# sphinx_gallery_start_ignore
except AttributeError as error:
    raised.append(str(error))
    print("AttributeError:", error)
assert raised[1:] == ["module 'torch' has no attribute '_six'"]
assert hasattr(torch, "compile")
# sphinx_gallery_end_ignore

# %%
# Print your version:

# varies: The version is that of the build, with a word on its CUDA.
print(torch.__version__)

# %%
# - **It is older than the code**, as for ``compile`` before 2.0: install a newer one, or an older version of the library.
# - **It is newer**, as for ``_six``: update the library that the traceback names. In your own code, ``string_classes`` is
#   ``(str, bytes)``.
# - **There is no version**: print ``torch.__file__``. If it is your own ``torch.py``, rename it. If it is
#   ``None``, install PyTorch again.
#
# See also
# --------
# - :ref:`sphx_glr_gallery_errors_two_devices.py`
# - :ref:`sphx_glr_gallery_errors_state_dict_keys.py`
