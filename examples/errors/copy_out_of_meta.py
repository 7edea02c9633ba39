r"""
Cannot copy out of meta tensor; no data!
========================================

.. index::
   ! single: Please use torch.nn.Module.to_empty() instead of torch.nn.Module.to()
   ! single: copying from a non-meta parameter in the checkpoint to a meta parameter, which is a no-op
   ! single: Tensor.item() cannot be called on meta tensors
   ! single: model.to(device) fails after from_pretrained with device_map or low_cpu_mem_usage

.. in-short::

   A weight or a buffer of the model is still on the device ``meta``, where tensors have a shape and no numbers. Often it was
   loaded without ``assign=True``. Load it, then move the model.

   .. code-block:: diff

      - model.load_state_dict(saved)
      + model.load_state_dict(saved, assign=True)
        model.to(device)

   **Not this:** ``to_empty()`` alone, which the message names. The weights then hold whatever was in that memory.
"""

# %%
# The code that raises it
# -----------------------

import torch
from torch import nn

# sphinx_gallery_start_ignore
# isort: split
import io
import warnings

_caught = warnings.catch_warnings(record=True)
_warned = _caught.__enter__()
warnings.simplefilter("always")
try:
    # sphinx_gallery_end_ignore
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Linear(4, 8)
            self.head = nn.Linear(8, 2)

    saved = Net().state_dict()  # stands for torch.load("model.pt")
    with torch.device("meta"):
        model = Net()

    device = "cpu"  # or "cuda"
    model.load_state_dict(saved)
    model.to(device)
# sphinx_gallery_start_ignore
except NotImplementedError as error:
    message = str(error)
    print("UserWarning:", _warned[0].message)
    print("NotImplementedError:", message)
_caught.__exit__(None, None, None)
assert len(_warned) == 4 and "which is a no-op" in str(_warned[0].message)
assert message == (
    "Cannot copy out of meta tensor; no data! Please use torch.nn.Module.to_empty() "
    "instead of torch.nn.Module.to() when moving module from meta to a different device."
)


def _says(call):
    try:
        call()
    except (NotImplementedError, RuntimeError) as error:
        return str(error)
    return ""


_short = "Cannot copy out of meta tensor; no data!"
_meta = torch.ones(2, device="meta")
for _call in (
    model.cpu,
    _meta.cpu,
    _meta.tolist,
    lambda: _meta.to("cpu"),
    lambda: torch.zeros(2).copy_(_meta),
):
    assert _says(_call) == _short
# sphinx_gallery_end_ignore

# %%
# Why
# ---
# Libraries build large models on ``meta``, without memory, and put the weights in afterwards. What is still there?


def on_meta(model):
    tensors = [*model.named_parameters(), *model.named_buffers()]
    return [name for name, tensor in tensors if tensor.is_meta]


print(on_meta(model))

# sphinx_gallery_start_ignore
assert on_meta(model) == ["body.weight", "body.bias", "head.weight", "head.bias"]
# sphinx_gallery_end_ignore

# %%
# Print it before your line in the traceback. *Weights*: nothing was loaded, the file lacks them, or ``device_map`` keeps them
# elsewhere. *Buffers*: see below. *None*: a plain attribute, such as ``self.freqs``, is computed on ``meta``: compute it again
# after loading. Or ``saved`` itself has no numbers: load it with ``map_location="cpu"``, or save it again, from a whole model.
#
# .. list-table::
#    :header-rows: 1
#    :widths: 40 60
#
#    * - your line
#      - cause and fix
#    * - ``model.to(device)`` after your ``load_state_dict``
#      - ``assign=True`` is missing. Or the file has other names, and ``strict=False`` lets that pass.
#    * - ``.to(device)``, a trainer or a merge after ``from_pretrained(..., device_map="auto")``
#      - Some layers did not fit and are kept elsewhere. Do not move the model. To train it, leave ``device_map`` out, or name
#        the GPU of the process, as in ``{"": 0}``. To merge or save it, write ``"cpu"``.
#    * - ``images.to(self.device)`` of the model, in ``generate()`` or ``chat()``
#      - The same: load the whole model on one GPU, with ``{"": 0}``, if need be in 4 bits.
#    * - ``enable_sequential_cpu_offload()`` of diffusers
#      - Leave out ``.to("cuda")``. Update diffusers, or use ``enable_model_cpu_offload()``.
#    * - ``tolist()``, ``item()`` or ``.to()`` in ``__init__``
#      - ``from_pretrained`` builds on ``meta``. Write ``torch.linspace(0, 1, 12, device="cpu")``. Move it later.
#    * - ``from_pretrained`` or ``SentenceTransformer(...)``
#      - In threads, load under a lock. If not, update the library.
#    * - ``FSDP(model)``, and only rank 0 has weights
#      - ``sync_module_states=True``, ``device_id=``, ``param_init_fn=lambda m: m.to_empty(device="cuda", recurse=False)``,
#        if no two layers share a weight
#
# The fix
# -------
# Load with ``assign=True``. The tensors in ``saved`` then *are* the weights, with their dtype, and training changes them: for
# a second load, make ``{k: v.clone() for k, v in saved.items()}`` before the first one. Make the optimizer after each load.
# Without a file, build the model outside of ``torch.device("meta")``.

with torch.device("meta"):
    model = Net()

model.load_state_dict(saved, assign=True)
model.to(device)
print(on_meta(model))

# sphinx_gallery_start_ignore
assert on_meta(model) == [] and torch.equal(model.head.bias, saved["head.bias"])
assert all(weight.requires_grad for weight in model.parameters())
assert model.head.bias.data_ptr() == saved["head.bias"].data_ptr()
with torch.device("meta"):
    _late = Net()
_first, _copy = list(_late.parameters()), {k: v.clone() for k, v in saved.items()}
_late.load_state_dict(saved, assign=True)
assert not any(one is two for one, two in zip(_first, _late.parameters(), strict=True))
_first = list(
    _late.parameters()
)  # a copy for the second load keeps the optimizer's parameters
_late.load_state_dict(_copy)
assert all(one is two for one, two in zip(_first, _late.parameters(), strict=True))
with torch.device("meta"):
    _part = Net()
_names = {name: t for name, t in saved.items() if name.startswith("body")}
_part.load_state_dict(_names, strict=False, assign=True)
assert on_meta(_part) == ["head.weight", "head.bias"]
assert _says(lambda: _part.to(device)) == message
with torch.device("meta"):
    _part = Net()
_part.load_state_dict({name: t.half() for name, t in saved.items()}, assign=True)
assert _part.head.bias.dtype == torch.float16


# what __init__ computes while a library builds the model on meta
_net = Net()
with torch.device("meta"):
    _file = Net().state_dict()
_stream = io.BytesIO()
torch.save(_file, _stream)
_stream.seek(0)
assert torch.load(_stream, map_location="cpu")["head.bias"].is_meta
assert "Cannot copy out of meta tensor" in _says(lambda: _net.load_state_dict(_file))
assert on_meta(_net) == []
for _device, _reads in (({}, False), ({"device": "cpu"}, True)):
    with torch.device("meta"):
        _rates = torch.linspace(0, 1, 12, **_device)
    assert (_says(_rates.tolist) == "") == _reads


class _Plain(Net):
    def __init__(self):
        super().__init__()
        self.freqs = 1 / 10 ** torch.arange(4)


with torch.device("meta"):
    _plain = _Plain()
_plain.load_state_dict(saved, assign=True)
_plain.to(device)
assert on_meta(_plain) == [] and _says(lambda: _plain.freqs.to(device)) == _short


class _Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(5, 4)
        self.out = nn.Linear(4, 5, bias=False)
        self.out.weight = self.words.weight


with torch.device("meta"):
    _tied = _Tied()
assert _tied.out.weight is _tied.words.weight
_tied.load_state_dict(_Tied().state_dict(), assign=True)
assert len(list(_tied.parameters())) == 2  # and no message
_tied.out.weight = _tied.words.weight
assert len(list(_tied.parameters())) == 1
# sphinx_gallery_end_ignore

# %%
# ``assign=True`` replaces the parameters. If two layers share a weight, share it again, as in
# ``model.out.weight = model.words.weight``. Then make the optimizer.
#
# **A buffer with persistent=False** is not in the file, so it stays on ``meta``:


# sphinx_gallery_start_ignore
raised = []
try:
    # sphinx_gallery_end_ignore
    class Rotary(Net):
        def __init__(self):
            super().__init__()
            frequencies = 1 / 10 ** torch.arange(4)
            self.register_buffer("frequencies", frequencies, persistent=False)

    with torch.device("meta"):
        model = Rotary()

    print(model.load_state_dict(saved, assign=True))
    model.to(device)
# sphinx_gallery_start_ignore
except NotImplementedError as error:
    raised.append(str(error))
    print("NotImplementedError:", error)
assert raised == [message] and on_meta(model) == ["frequencies"]
# sphinx_gallery_end_ignore

# %%
# Compute it again before you move the model:

model.frequencies = 1 / 10 ** torch.arange(4)
model.to(device)

import matplotlib.pyplot as plt

# figure: Which tensors have numbers. After load_state_dict none of the five, after assign=True the four weights, after the
#   buffer is computed all five.
with torch.device("meta"):
    plain, loaded = Rotary(), Rotary()
loaded.load_state_dict(saved, assign=True)
states = {"load_state_dict": plain, "assign=True": loaded, "and the buffer": model}
names = [*saved, "frequencies"]
fig, ax = plt.subplots(figsize=(7, 1.8), layout="constrained")
for row, one in enumerate(states.values()):
    for column, name in enumerate(names):
        color = "#c2410c" if name in on_meta(one) else "#047857"
        word = "meta" if name in on_meta(one) else "numbers"
        ax.text(column, row, word, color=color, ha="center", va="center")
ax.set(xlim=(-0.6, 4.6), ylim=(2.6, -0.6), title="After each step, what has numbers?")
ax.set_yticks(range(3), states)
ax.set_xticks(range(5), names)

# sphinx_gallery_start_ignore
assert [len(on_meta(one)) for one in states.values()] == [5, 1, 0]
# sphinx_gallery_end_ignore

# %%
# What not to do
# --------------
# **Do not stop after to_empty().** It writes nothing into its memory. Deterministic algorithms fill it with NaN:

torch.use_deterministic_algorithms(True)
with torch.device("meta"):
    model = Net()
model.to_empty(device=device)
print(model.head.bias.detach())
torch.use_deterministic_algorithms(False)

# sphinx_gallery_start_ignore
assert all(weight.isnan().all() for weight in model.parameters())
model.load_state_dict(saved)
assert torch.equal(model.head.bias, saved["head.bias"])
with torch.device("meta"):
    _rotary, _tied = Rotary(), _Tied()
torch.use_deterministic_algorithms(True)
_rotary.to_empty(device=device)
torch.use_deterministic_algorithms(False)
_rotary.load_state_dict(saved)  # all keys match
_rotary.to(device)
assert _rotary.frequencies.isnan().all()  # and no message
assert len(list(_tied.to_empty(device=device).parameters())) == 2
# sphinx_gallery_end_ignore

# %%
# After it, load the weights, compute the buffers that the file lacks, and share weights again. A forgotten buffer raises
# nothing.
#
# **Do not move the input to meta instead.** The result has only a shape:

# sphinx_gallery_start_ignore
raised = []
try:
    # sphinx_gallery_end_ignore
    layer = nn.Linear(4, 1, device="meta")
    loss = layer(torch.ones(8, 4, device="meta")).mean()
    print(loss.item())
# sphinx_gallery_start_ignore
except RuntimeError as error:
    raised.append(str(error))
    print("RuntimeError:", error)
assert raised == ["Tensor.item() cannot be called on meta tensors"]
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_errors_two_devices.py`: one tensor on ``meta``, and another one not.
# - :ref:`sphx_glr_gallery_errors_state_dict_keys.py`: names that do not fit.
# - In PyTorch's documentation: `the meta device <https://docs.pytorch.org/docs/stable/meta.html>`__.
