r"""
with CUDA capability sm_120 is not compatible with the current PyTorch installation
===================================================================================

.. index::
   ! single: no kernel image is available for execution on the device
   ! single: CUBLAS_STATUS_ALLOC_FAILED when calling cublasCreate(handle)
   ! single: cuDNN error: CUDNN_STATUS_NOT_INITIALIZED
   ! single: Unable to find a valid cuDNN algorithm to run convolution

.. in-short::

   Your GPU is newer or older than those for which your PyTorch was built. Install a build of PyTorch that has code for it.
   Until then, use the CPU. Errors of cuBLAS and cuDNN often have other causes: see below.

   .. code-block:: diff

      - device = torch.device("cuda")
      + device = torch.device("cuda" if has_kernels() else "cpu")

   **Not this:** to install a CUDA toolkit, such as the version that ``nvidia-smi`` shows. PyTorch's builds `bring their own
   CUDA <https://github.com/pytorch/pytorch/issues/96595>`__.
"""

# %%
# The code that raises it
# -----------------------

# This needs a GPU.
import torch

# sphinx_gallery_start_ignore
# isort: split
import contextlib
import types
import warnings
from unittest import mock

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
    device = torch.device("cuda")
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
# This site is built without a GPU: hidden code answers as an RTX 5090 and a build for CUDA 12.6 would. The warnings are
# PyTorch's own. On that machine, the next line that computes on the GPU raises:
#
# .. quoted-message:: https://github.com/pytorch/pytorch/issues/167244
#
#    RuntimeError: CUDA error: no kernel image is available for execution on the device
#
# Why
# ---
# PyTorch contains machine code for some generations of GPUs, its *kernels*. The number after ``sm_`` is the generation. Code
# for 8.0 runs on 8.6, but not on 9.0 or 7.5. Print both sides:

# This needs a GPU.
print("the GPU:  ", torch.cuda.get_device_capability())
print("the build:", torch.cuda.get_arch_list())

# %%
# .. how-measured:: The function draw_builds() asks the installed PyTorch which build has code for which GPU.

import matplotlib.pyplot as plt


def draw_builds(cards):
    builds, runs = {}, torch.cuda._code_compatible_with_device
    for cuda, built in torch.cuda.PYTORCH_RELEASES_CODE_CC.items():
        builds[cuda] = built if isinstance(built, set) else built["x86_64"]
    _, ax = plt.subplots(figsize=(7, 2), layout="constrained")
    for row, codes in enumerate(builds.values()):
        for column, card in enumerate(cards.values()):
            has_code = any(runs(card, code) for code in codes)
            color, text = ("#047857", "yes") if has_code else ("#c2410c", "no")
            ax.text(column, row, text, color=color, ha="center", va="center")
    ax.set(xlim=(-0.6, len(cards) - 0.4), ylim=(len(builds) - 0.4, -0.6))
    ax.set_xticks(range(len(cards)), cards)
    ax.set_yticks(range(len(builds)), [f"CUDA {cuda}" for cuda in builds])
    version = torch.__version__.split("+")[0]
    ax.set_title(f"PyTorch {version}: has the build code for the GPU?")
    return builds


# %%
# Which build for x86-64 has code for which GPU:

cards = {"GTX 10": 61, "V100": 70, "RTX 20": 75, "A100": 80, "RTX 30": 86}
cards |= {"RTX 40": 89, "H100": 90, "B200": 100, "RTX 50": 120}
builds = draw_builds(cards)

# figure: A table with a row for each CUDA version and a column for each GPU. The build for CUDA 12.6 has code from GTX 10 to
#   H100, the later ones from RTX 20 to RTX 50.

# sphinx_gallery_start_ignore
_runs = torch.cuda._code_compatible_with_device
_table = {
    cuda: [name for name, n in cards.items() if any(_runs(n, c) for c in built)]
    for cuda, built in builds.items()
}
_names = list(cards)
assert _table.pop("12.6") == _names[: _names.index("H100") + 1]
assert _table and all("RTX 50" in has for has in _table.values())
TORCH = tuple(int(part) for part in torch.__version__.split(".")[:2])
_seen = TORCH in {(2, 13), (2, 14)}  # other releases have builds for other cards
_new = _names[_names.index("RTX 20") :]
assert list(_table.values()) == [_new] * 3 or not _seen
assert "cu130" in _said[0] and "does not include kernels for" in _said[0]
assert _runs(86, 80) and not _runs(90, 80) and not _runs(75, 80)
# sphinx_gallery_end_ignore

# %%
# The fix
# -------
# Uninstall PyTorch, and install the build that has code for your GPU: a later CUDA for a new GPU, CUDA 12.6 for an old one. The
# warning of this version contains the command, with ``--index-url``. Extensions such as *flash-attn* have their own kernels,
# and need to be built for your GPU as well. A later CUDA may also need a newer driver: ``The NVIDIA driver on your system is
# too old`` (as in `pytorch#162531 <https://github.com/pytorch/pytorch/pull/162531>`__).
#
# For several machines, ask first:


def has_kernels():
    if not torch.cuda.is_available():
        return False
    if torch.version.hip:  # a build for AMD has no sm_ numbers
        return True
    major, minor = torch.cuda.get_device_capability()
    names = [name for name in torch.cuda.get_arch_list() if name.startswith("sm_")]
    codes = [name[3:].rstrip("af") for name in names]
    return any(int(c[:-1]) == major and int(c[-1]) <= minor for c in codes)


device = torch.device("cuda" if has_kernels() else "cpu")
print(device)

# sphinx_gallery_start_ignore
assert device.type == "cpu" and torch.cuda.get_device_capability() == (12, 0)
for _device in (50, 52, 60, 61, 70, 75, 80, 86, 89, 90, 100, 103, 120, 121):
    for _codes in builds.values():
        _ask = {
            "get_device_capability": lambda d=_device: divmod(d, 10),
            "get_arch_list": lambda codes=_codes: [
                *[f"sm_{c}a" if c == 90 else f"sm_{c}" for c in codes],
                "compute_120",  # not code, but something to be compiled
            ],
        }
        with mock.patch.multiple("torch.cuda", **_ask):
            assert has_kernels() == any(_runs(_device, code) for code in _codes)
with mock.patch("torch.version.hip", "7.0"):
    assert has_kernels()
with mock.patch("torch.cuda.get_arch_list", lambda: ["sm_90", "compute_120"]):
    assert not has_kernels()  # it counts machine code only
_gpu.close()
assert torch.cuda.is_available() or not has_kernels()
# sphinx_gallery_end_ignore

# %%
# Errors of cuBLAS and cuDNN
# --------------------------
# These two compute matrix products and convolutions. They often report an error that has a different cause:
#
# - ``CUBLAS_STATUS_ALLOC_FAILED when calling cublasCreate(handle)``: often an index that is too large for an embedding
#   (`transformers#12935 <https://github.com/huggingface/transformers/issues/12935>`__), or there is no memory left.
# - ``CUDNN_STATUS_NOT_INITIALIZED``, ``CUDNN_STATUS_ALLOC_FAILED``, ``Unable to find a valid cuDNN algorithm to run
#   convolution``: often memory (`LLaVA#392 <https://github.com/haotian-liu/LLaVA/issues/392>`__). :ref:`Use a smaller batch
#   <sphx_glr_gallery_errors_out_of_memory.py>`.
#
# To find out, start the program again, and run the same batch on the CPU. It raises at the right line:

from torch import nn

# sphinx_gallery_start_ignore
raised = []
try:
    # sphinx_gallery_end_ignore
    model = nn.Sequential(nn.Embedding(10, 4), nn.Linear(4, 2))
    words = torch.tensor([[1, 4, 10]])
    model.cpu()(words.cpu())
# sphinx_gallery_start_ignore
except IndexError as error:
    raised.append(str(error))
    print("IndexError:", error)
assert raised == ["index out of range in self"]
# sphinx_gallery_end_ignore

# %%
# If the CPU finds nothing, halve the batch. If the error stays, try ``torch.backends.cudnn.enabled = False``. If the error is
# gone then, the problem is probably cuDNN: for example, a different version of it is loaded.
#
# What not to do
# --------------
# **Do not catch the error and go on.** After a CUDA error, other calls may fail. Start the program again.
#
# **Do not leave cuDNN switched off.** It is a test, and convolutions may become slower.
#
# See also
# --------
# - :ref:`sphx_glr_gallery_errors_index_out_of_range.py`: the usual fault behind ``device-side assert triggered``.
# - :ref:`sphx_glr_gallery_errors_not_compiled_with_cuda.py`: a build that has no code for a GPU at all.
# - :ref:`sphx_glr_gallery_errors_out_of_memory.py`: what to try when memory is full.
# - In PyTorch's documentation: `all builds <https://pytorch.org/get-started/locally/>`__.
