r"""
Error(s) in loading state_dict for Net:
=======================================

.. index::
   ! single: Missing key(s) in state_dict, Unexpected key(s) in state_dict
   ! single: module. before every key of a checkpoint
   ! single: size mismatch for weight: copying a param with shape from checkpoint
   ! single: a checkpoint of Lightning does not fit the model

.. in-short::

   Most often the names or shapes in the file are not those of the model. Compare the two lists. If the names in the file have
   one more word in front, such as ``module.`` of ``DataParallel``, take it off.

   .. code-block:: diff

      + saved = {name.removeprefix("module."): t for name, t in saved.items()}
        net.load_state_dict(saved)

   **Not this:** ``strict=False``. It loads what fits, here nothing, and the model keeps its random weights.
"""

# %%
# The code that raises it
# -----------------------

from torch import nn

# sphinx_gallery_start_ignore
try:
    # sphinx_gallery_end_ignore
    class Net(nn.Module):
        def __init__(self, classes=2):
            super().__init__()
            self.body = nn.Linear(3, 4)
            self.head = nn.Linear(4, classes)

    trained = nn.DataParallel(Net())
    saved = trained.state_dict()

    net = Net()
    net.load_state_dict(saved)
# sphinx_gallery_start_ignore
except RuntimeError as error:
    message = str(error)
    print("RuntimeError:", message.replace("\t", "    "))
assert message.startswith("Error(s) in loading state_dict for Net:")
assert 'Missing key(s) in state_dict: "body.weight"' in message
assert 'Unexpected key(s) in state_dict: "module.body.weight"' in message
# sphinx_gallery_end_ignore

# %%
# *Missing* keys are only in the model, *unexpected* keys only in the file. *size mismatch*: the shapes differ, as below.
#
# Why
# ---
# A state dict names a tensor by the attributes that lead to it: ``body.weight`` is ``net.body.weight``. A wrapper keeps the
# model in an attribute, so the name of each weight gets one more word:

import torch

wrappers = {"itself": Net(), "DataParallel": nn.DataParallel(Net())}
wrappers["compiled"] = torch.compile(Net(), backend="eager")
for name, model in wrappers.items():
    keys = list(model.state_dict())
    print(f"{name:<13}", keys)

# sphinx_gallery_start_ignore
assert "module.body.weight" in wrappers["DataParallel"].state_dict()
assert "_orig_mod.body.weight" in wrappers["compiled"].state_dict()
Net().load_state_dict(wrappers["compiled"]._orig_mod.state_dict())
assert (
    "module._orig_mod.body.weight" in nn.DataParallel(wrappers["compiled"]).state_dict()
)
# sphinx_gallery_end_ignore

# %%
# How many names fit:

import matplotlib.pyplot as plt

# figure: Two bars. As saved, 0 of 4 names fit the model. Without the first word, all 4 fit.
fits = {"as saved": saved, "without module.": trained.module.state_dict()}
number = [len(names.keys() & net.state_dict().keys()) for names in fits.values()]
fig, ax = plt.subplots(figsize=(7, 1.5), layout="constrained")
ax.barh(list(fits), number, color=["#c2410c", "#047857"])
ax.set(xlabel="names", xlim=(0, 4.2), title="Names that fit the model, of 4")
ax.invert_yaxis()

# sphinx_gallery_start_ignore
assert number == [0, 4]
# sphinx_gallery_end_ignore

# %%
# The fix
# -------
# **A wrapper's word**: take it off when you load. Better, save without it: ``torch.save(trained.module.state_dict(), path)``.
# For a model from ``torch.compile`` it is ``model._orig_mod.state_dict()``. If only the names of the model have the word, load
# into ``model.module`` or ``model._orig_mod``.

saved = {name.removeprefix("module."): t for name, t in saved.items()}
net.load_state_dict(saved)

# sphinx_gallery_start_ignore
nn.DataParallel(Net()).module.load_state_dict(saved)
assert torch.equal(net.body.weight, trained.module.body.weight.cpu())
_file = {f"model.{n}": t for n, t in saved.items()} | {
    "loss.weight": saved["head.bias"]
}
_kept = {
    n.removeprefix("model."): t for n, t in _file.items() if n.startswith("model.")
}
Net().load_state_dict(_kept)
_part = Net()
_part.body = torch.compile(_part.body, backend="eager")
assert "body._orig_mod.weight" in _part.state_dict()
Net().load_state_dict(
    {n.replace("_orig_mod.", ""): t for n, t in _part.state_dict().items()}
)
wrappers["compiled"]._orig_mod.load_state_dict(saved)
from torch.nn.utils import prune

_mean = torch.optim.swa_utils.AveragedModel(net).state_dict()
assert _mean.pop("n_averaged") == 0
Net().load_state_dict({n.removeprefix("module."): t for n, t in _mean.items()})


class _Constant(nn.Module):
    def __init__(self, persistent):
        super().__init__()
        self.layer = nn.Linear(3, 4)
        self.register_buffer("position_ids", torch.arange(3), persistent=persistent)


_older = _Constant(True).state_dict()
_message = ""
try:
    _Constant(False).load_state_dict(_older)
except RuntimeError as error:
    _message = str(error)
assert 'Unexpected key(s) in state_dict: "position_ids"' in _message
del _older["position_ids"]
_Constant(False).load_state_dict(_older)


class _Creates(nn.Module):
    def __init__(self, early):
        super().__init__()
        if early:
            self.head = nn.Linear(3, 2)

    def forward(self, x):
        if not hasattr(self, "head"):
            self.head = nn.Linear(3, 2)
        return self.head(x)


class _Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.lm_head = nn.Embedding(5, 3), nn.Linear(3, 5, bias=False)
        self.lm_head.weight = self.embed.weight


_tied, _file = _Tied(), _Tied().state_dict()
del _file["lm_head.weight"]  # as in a file of safetensors
_message = ""
try:
    _tied.load_state_dict(_file)
except RuntimeError as error:
    _message = str(error)
assert 'Missing key(s) in state_dict: "lm_head.weight".' in _message
_file["lm_head.weight"] = _file["embed.weight"]
_tied.load_state_dict(_file)
assert _tied.lm_head.weight is _tied.embed.weight
assert torch.equal(_tied.lm_head.weight, _file["embed.weight"])
# strict=False would let the name of another layer pass
del _file["lm_head.weight"]
_file["embedding.weight"] = _file.pop("embed.weight")
_result = _Tied().load_state_dict(_file, strict=False)
assert _result.missing_keys == ["embed.weight", "lm_head.weight"]
# an optimizer that was made before trains the old weight
_layer = nn.Linear(3, 4)
_early = torch.optim.SGD(_layer.parameters(), lr=0.1)
nn.utils.parametrizations.weight_norm(_layer)
_late = torch.optim.SGD(_layer.parameters(), lr=0.1)
_layer(torch.ones(2, 3)).square().sum().backward()
_before = _layer.weight.detach().clone()
_early.step()
assert torch.equal(_layer.weight, _before)
_late.step()
assert not torch.equal(_layer.weight, _before)


class _Lora(nn.Module):
    def __init__(self, rank, alpha):
        super().__init__()
        self.lora_A, self.lora_B = nn.Linear(3, rank), nn.Linear(rank, 3)
        self.scale = alpha / rank

    def forward(self, x):
        return x + self.scale * self.lora_B(self.lora_A(x))


_one, _two = _Lora(4, 8), _Lora(4, 16)
_two.load_state_dict(_one.state_dict())  # the file says nothing about alpha
assert not torch.allclose(_one(torch.ones(3)), _two(torch.ones(3)))
_profiled = nn.Sequential(nn.Linear(3, 4))
for _module in _profiled.modules():
    for _name in ("total_ops", "total_params"):
        _module.register_buffer(_name, torch.zeros(1))
_file = _profiled.state_dict()
assert len(_file) == 6
for _name in [n for n in _file if n.rpartition(".")[2].startswith("total_")]:
    del _file[_name]
nn.Sequential(nn.Linear(3, 4)).load_state_dict(_file)
_file = {n.replace("head.", "fc."): t for n, t in Net().state_dict().items()}
_message, _renamed = "", Net()
try:
    _renamed.load_state_dict(_file)
except RuntimeError as error:
    _message = str(error)
assert '"fc.weight", "fc.bias"' in _message
_renamed.load_state_dict({n.replace("fc.", "head."): t for n, t in _file.items()})
assert torch.equal(_renamed.head.weight, _file["fc.weight"])
_created = _Creates(False)
_created(torch.ones(1, 3))
_message = ""
try:
    _Creates(False).load_state_dict(_created.state_dict())
except RuntimeError as error:
    _message = str(error)
assert 'Unexpected key(s) in state_dict: "head.weight"' in _message
_Creates(True).load_state_dict(_created.state_dict())
_changed = []
for _change in (
    lambda layer: prune.l1_unstructured(layer, "weight", 0.5),
    nn.utils.spectral_norm,
    nn.utils.parametrizations.spectral_norm,
    nn.utils.parametrizations.weight_norm,
):
    _old, _new = Net(), Net()
    _change(_old.body)
    _change(_new.body)
    try:
        Net().load_state_dict(_old.state_dict())
    except RuntimeError as error:
        _changed.append(str(error))
    _new.load_state_dict(_old.state_dict())
    _x = torch.rand(2, 3)
    assert torch.allclose(_new.body.eval()(_x), _old.body.eval()(_x))
    _plain, _early, _late = Net(), Net(), Net()
    _change(_early.body)
    _message = ""
    try:
        _early.load_state_dict(_plain.state_dict())
    except RuntimeError as error:
        _message = str(error)
    assert "Missing key(s)" in _message and "body." in _message
    _late.load_state_dict(_plain.state_dict())
    for _both in (_late, _plain):
        torch.manual_seed(0)
        _change(_both.body)
    assert torch.allclose(_late.body.eval()(_x), _plain.body.eval()(_x))
assert len(_changed) == 4 and all("Unexpected key(s)" in said for said in _changed)
# sphinx_gallery_end_ignore

# %%
# - **Whole layers on one side only**: the model was made with different settings, or by a different version of its code. Make
#   it as it was made for training.
# - **A word inside of the names**, if only a part was wrapped: ``name.replace("_orig_mod.", "")``.
# - **n_averaged**: an ``AveragedModel``. Call ``saved.pop("n_averaged")``, too.
# - **epoch, optimizer, state_dict**: the file holds more than the weights. Load ``saved["state_dict"]``. In a file of
#   Lightning, keep the names that begin with the attribute that holds the model, such as ``model.``, and take that off.
# - **weight_orig, weight_mask, parametrizations**: call the same function, such as ``spectral_norm``, on the new model before
#   you load. If they are missing in the file, load first, then call it, then make the optimizer.
# - **lm_head.weight** is missing in a file of safetensors, of a model that ties it:
#   ``saved["lm_head.weight"] = saved["embed.weight"]``.
# - **A layer that forward creates**: create it in ``__init__``, under the same name.
# - **position_ids**: older versions of Transformers saved this constant. Delete it from ``saved``, and each ``total_ops`` and
#   ``total_params``, of a profiler, too.
# - **A renamed layer**: ``saved = {name.replace("fc.", "head."): t for name, t in saved.items()}``.
#
# **A size mismatch** shows what differs: in the last layer often the number of classes, in an embedding the vocabulary, in
# ``pos_embed`` the size of the image, in ``lora_A`` the rank. Make the model with the numbers of the file, for LoRA
# with ``r`` and ``lora_alpha`` of ``adapter_config.json``. The shape ``[0]`` is of DeepSpeed ZeRO-3: its script
# ``zero_to_fp32.py`` puts the weights together. Here the file has 2 classes, the model 10:

# sphinx_gallery_start_ignore
raised = []
try:
    # sphinx_gallery_end_ignore
    net = Net(classes=10)
    net.load_state_dict(saved)
# sphinx_gallery_start_ignore
except RuntimeError as error:
    raised.append(str(error))
    print("RuntimeError:", str(error).replace("\t", "    "))
assert (
    len(raised) == 1
    and "size mismatch for head.weight: copying a param with shape" in raised[0]
)
try:
    net.load_state_dict(saved, strict=False)
except RuntimeError as error:
    raised.append(str(error))
assert raised[0] == raised[1]
assert torch.equal(  # what fits was loaded before it raised
    net.body.weight, trained.module.body.weight.cpu()
)
# sphinx_gallery_end_ignore

# %%
# ``strict=False`` raises the same error. Leave out the last layer, which you train
# again, and assert which names are missing:

body = {name: t for name, t in saved.items() if not name.startswith("head.")}
result = net.load_state_dict(body, strict=False)
print(result)
assert result.missing_keys == ["head.weight", "head.bias"]
assert not result.unexpected_keys

# %%
# What not to do
# --------------
# **Do not load with strict=False and go on.** Only the value that ``load_state_dict`` returns shows that nothing was
# loaded:

net = Net()
before = net.body.weight.clone()
result = net.load_state_dict(trained.state_dict(), strict=False)
print("changed:", not torch.equal(before, net.body.weight))
print("missing:", result.missing_keys)

# sphinx_gallery_start_ignore
assert torch.equal(before, net.body.weight) and len(result.missing_keys) == 4
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_training_reproducibility.py`: what a checkpoint must hold besides the weights.
# - In PyTorch's tutorials: `saving and loading models
#   <https://docs.pytorch.org/tutorials/beginner/saving_loading_models.html>`__.
