r"""
loaded state dict contains a parameter group that doesn't match the size of optimizer's group
=============================================================================================

.. index::
   ! single: loaded state dict has a different number of parameter groups
   ! single: optimizer.load_state_dict fails when training is resumed
   ! single: resume training after unfreezing layers
   ! single: KeyError 'betas' after loading an optimizer

.. in-short::

   A group of your optimizer has another number of parameters than the same group in the file, often because layers were
   frozen then. Make the optimizer as it was, load, and add the new parameters afterwards.

   .. code-block:: diff

      - optimizer = torch.optim.Adam(net.parameters())
      + optimizer = torch.optim.Adam(net[2].parameters())
        optimizer.load_state_dict(saved)
      + optimizer.add_param_group({"params": net[0].parameters()})

   **Not this:** changing the numbers in ``saved["param_groups"]`` until the sizes agree. Weights then get the state of others.
"""

# %%
# The code that raises it
# -----------------------
# First the head alone is trained. Then training goes on with all layers:

import torch
from torch import nn

# sphinx_gallery_start_ignore
# isort: split
import copy

import matplotlib.pyplot as plt

torch.manual_seed(0)
try:
    # sphinx_gallery_end_ignore
    net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    optimizer = torch.optim.Adam(net[2].parameters())
    net(torch.ones(3, 4)).sum().backward()
    optimizer.step()
    saved = optimizer.state_dict()

    optimizer = torch.optim.Adam(net.parameters())
    optimizer.load_state_dict(saved)
# sphinx_gallery_start_ignore
except ValueError as error:
    message = str(error)
    print("ValueError:", message)
assert (
    message
    == "loaded state dict contains a parameter group that doesn't match the size of optimizer's group"
)
# sphinx_gallery_end_ignore

# %%
# Why
# ---
# The optimizer's state dict has no names. Parameters are numbered in the order in which the optimizer got them, and the state
# goes back by number. So the numbers must mean the same parameters as before. PyTorch compares the number in each group:

print("file:     ", [group["params"] for group in saved["param_groups"]])
print("optimizer:", [len(group["params"]) for group in optimizer.param_groups])

# figure: Two rows of tiles. The file has the slots 0 and 1, which hold the state of 2.weight and 2.bias. The new optimizer
#   has the slots 0 to 3, and there the slots 0 and 1 are 0.weight and 0.bias.

# sphinx_gallery_start_ignore
names = [name for name, _ in net.named_parameters()]
rows = {"file": names[2:], "optimizer": names}
colors = dict(zip(names, ["#64748b", "#64748b", "#2563eb", "#2563eb"], strict=True))
fig, ax = plt.subplots(figsize=(6, 1.7), layout="constrained")
for row, tiles in enumerate(rows.values()):
    for slot, name in enumerate(tiles):
        ax.barh(row, 0.9, left=slot, height=0.7, color=colors[name])
        ax.text(slot + 0.45, row, name, color="white", ha="center", va="center")
ax.set(xticks=[slot + 0.45 for slot in range(4)], xticklabels=range(4))
ax.set(yticks=[0, 1], yticklabels=list(rows), title="Which parameter has which number")
ax.invert_yaxis()
assert saved["param_groups"][0]["params"] == [0, 1] and len(saved["param_groups"]) == 1
assert saved["state"][0]["exp_avg"].shape == net[2].weight.shape
assert len(optimizer.param_groups[0]["params"]) == 4
_all = list(net.parameters())  # 2 + 2 and 1 + 3 parameters are not the same groups
_file = torch.optim.Adam([{"params": _all[:2]}, {"params": _all[2:]}]).state_dict()
_other = torch.optim.Adam([{"params": _all[:1]}, {"params": _all[1:]}])
_differ = []
try:
    _other.load_state_dict(_file)
except ValueError as error:
    _differ.append(str(error) == message)
assert _differ == [True]
# sphinx_gallery_end_ignore

# %%
# The fix
# -------
# Build the optimizer of the file, load its state, then add what is new as a group of its own.

optimizer = torch.optim.Adam(net[2].parameters())
optimizer.load_state_dict(saved)
optimizer.add_param_group({"params": net[0].parameters()})
print([len(group["params"]) for group in optimizer.param_groups])

# sphinx_gallery_start_ignore
assert [len(group["params"]) for group in optimizer.param_groups] == [2, 2]
assert torch.equal(
    optimizer.state[net[2].weight]["exp_avg"], saved["state"][0]["exp_avg"]
)
assert net[0].weight not in optimizer.state
_rates = torch.optim.Adam(net[2].parameters(), lr=0.5)
_rates.load_state_dict(saved)
_rates.add_param_group({"params": net[0].parameters()})
assert [group["lr"] for group in _rates.param_groups] == [0.001, 0.5]
# frozen, but in the optimizer: nothing to add later
_whole = copy.deepcopy(net)
_whole.zero_grad()
_whole[0].requires_grad_(False)
_before = _whole[0].weight.clone()
_resumed = torch.optim.AdamW(_whole.parameters())
_whole(torch.ones(3, 4)).sum().backward()
_resumed.step()
assert torch.equal(_whole[0].weight, _before)
_file = _resumed.state_dict()
for _class in (torch.optim.SGD, torch.optim.Adam, torch.optim.RMSprop):
    _class(_whole.parameters(), weight_decay=0.1).step()
    assert torch.equal(_whole[0].weight, _before)
_whole[0].requires_grad_(True)
_resumed = torch.optim.AdamW(_whole.parameters())
_resumed.load_state_dict(_file)
_whole(torch.ones(3, 4)).sum().backward()
_resumed.step()
assert not torch.equal(_whole[0].weight, _before)
# sphinx_gallery_end_ignore

# %%
# ``load_state_dict`` also takes the learning rate of the file. For another rate, change ``optimizer.param_groups`` afterwards.
#
# **Before the first run** there is a simpler way: give the optimizer all parameters, the frozen ones too. A parameter whose
# ``grad`` is ``None`` is skipped, and you can unfreeze it later without a new group.
#
# From now on the file of this page has two groups. An optimizer with one group cannot load it, and the message is:

# sphinx_gallery_start_ignore
raised = []
try:
    # sphinx_gallery_end_ignore
    saved = optimizer.state_dict()

    optimizer = torch.optim.Adam(net.parameters())
    optimizer.load_state_dict(saved)
# sphinx_gallery_start_ignore
except ValueError as error:
    raised.append(str(error))
    print("ValueError:", error)
assert raised == ["loaded state dict has a different number of parameter groups"]
# sphinx_gallery_end_ignore

# %%
# Build both groups before you load, in the same order:

groups = [{"params": net[2].parameters()}, {"params": net[0].parameters()}]
optimizer = torch.optim.Adam(groups)
optimizer.load_state_dict(saved)

# sphinx_gallery_start_ignore
assert torch.equal(
    optimizer.state[net[2].weight]["exp_avg"], saved["state"][0]["exp_avg"]
)
# sphinx_gallery_end_ignore

# %%
# Other causes:
#
# - **Weight decay for some parameters only** makes two groups. Build the same groups when you resume.
# - **The model has changed**, or you fine-tune it on another task. Load the model's weights, and begin with a new optimizer.
# - **Two optimizers**, as of a GAN: you load the file of the other one.
# - **The file of another class of optimizer** loads without this error, and ``step()`` can fail, as *KeyError: 'betas'* below.

# sphinx_gallery_start_ignore
try:
    # sphinx_gallery_end_ignore
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    adam = torch.optim.Adam(net.parameters())
    adam.load_state_dict(sgd.state_dict())
    adam.step()
# sphinx_gallery_start_ignore
except KeyError as error:
    raised.append(str(error))
    print("KeyError:", error)
assert raised[1:] == ["'betas'"]
# sphinx_gallery_end_ignore

# %%
# What not to do
# --------------
# **Do not trust that it loads.** The numbers are compared, not the parameters. Here two layers of one shape have changed
# places. Nothing is raised, and each weight goes on with the other's momentum:

first, second = nn.Linear(2, 2, bias=False), nn.Linear(2, 2, bias=False)
optimizer = torch.optim.SGD([first.weight, second.weight], lr=0.1, momentum=0.9)
first.weight.grad = torch.full((2, 2), 1.0)
second.weight.grad = torch.full((2, 2), 2.0)
optimizer.step()

resumed = torch.optim.SGD([second.weight, first.weight], lr=0.1, momentum=0.9)
resumed.load_state_dict(optimizer.state_dict())
for name, weight in {"first": first.weight, "second": second.weight}.items():
    before = optimizer.state[weight]["momentum_buffer"][0, 0].item()
    after = resumed.state[weight]["momentum_buffer"][0, 0].item()
    print(f"{name:<7} saved {before}, resumed {after}")

# sphinx_gallery_start_ignore
assert resumed.state[first.weight]["momentum_buffer"].eq(2).all()
assert resumed.state[second.weight]["momentum_buffer"].eq(1).all()
# names are saved, and do not change where the state goes
_one = torch.optim.SGD([("a", first.weight), ("b", second.weight)], 0.1, momentum=0.9)
_one.step()
assert _one.state_dict()["param_groups"][0]["param_names"] == ["a", "b"]
_two = torch.optim.SGD([("b", second.weight), ("a", first.weight)], 0.1, momentum=0.9)
_two.load_state_dict(_one.state_dict())
assert _two.state[second.weight]["momentum_buffer"].eq(1).all()
assert _two.param_groups[0]["param_names"] == ["a", "b"]  # the file's, not its own
_mixed = []
try:
    _two.add_param_group({"params": [nn.Parameter(torch.ones(1))]})
except ValueError as error:
    _mixed.append("with/without names" in str(error))
assert _mixed == [True]
# the sizes made to agree by hand: loads, and step raises for another shape
_file = copy.deepcopy(saved)
_file["param_groups"] = [{**_file["param_groups"][0], "params": [0, 1, 2, 3]}]
_three = torch.optim.Adam(net.parameters())
_three.load_state_dict(_file)
assert _three.state[net[0].weight]["exp_avg"].shape == net[2].weight.shape
net(torch.ones(3, 4)).sum().backward()
try:
    _three.step()
except RuntimeError as error:
    raised.append(str(error))
assert len(raised) == 3 and "must match" in raised[2]
# sphinx_gallery_end_ignore

# %%
# If you make the optimizer with ``net.named_parameters()``, the file also has the names, in ``param_names`` of each group.
# Loading does not compare them. Compare them yourself, and before you load: loading replaces the optimizer's names by the
# file's. A group that you add later needs names too.
#
# See also
# --------
# - :ref:`sphx_glr_gallery_errors_state_dict_keys.py`, the same for the model.
# - :ref:`sphx_glr_gallery_modes_freezing.py`: what a frozen layer means for the optimizer.
# - In PyTorch's reference: `Optimizer.load_state_dict
#   <https://docs.pytorch.org/docs/stable/generated/torch.optim.Optimizer.load_state_dict.html>`__.
