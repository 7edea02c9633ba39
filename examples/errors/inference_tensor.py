r"""
Inference tensors cannot be saved for backward
==============================================

.. index::
   ! single: training fails after a validation pass under inference_mode
   ! single: a tensor made under inference_mode raises during training

A tensor made under ``torch.inference_mode()`` takes part in a computation that is recorded, and a node wants to keep
it for its backward. Usual sources are features or targets computed beforehand, a cache that a validation pass has
filled, and a model that was built or moved in that mode.
"""

# %%
# The shortest code that raises it
# --------------------------------

import torch
from torch import nn

w = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
with torch.inference_mode():
    features = torch.tensor([4.0, 5.0, 6.0])
try:
    w * features
except RuntimeError as error:
    message = str(error)
    print("RuntimeError:", message)
    assert message.startswith("Inference tensors cannot be saved for backward.")

# %%
# Earlier versions went on with *To work around you can make a clone to get a normal tensor and use it in autograd*,
# and did not speak of ``no_grad``.

# %%
# Why
# ---
# Backward checks whether a saved tensor was written to in the meantime, by
# :ref:`its version counter <sphx_glr_gallery_differentiation_inplace_and_versions.py>`. Inference tensors have none,
# which is a part of what makes the mode cheap. So they may enter a node that saves nothing, and no other.

try:
    features._version
except RuntimeError as error:
    print("RuntimeError:", error)
    assert "do not track version counter" in str(error)

added = w + features
multiplied = w * features.clone()

# graph: added, multiplied -- The sum saves nothing, the product saves its other factor

# sphinx_gallery_start_ignore
assert not hasattr(added.grad_fn, "_saved_other")
assert torch.equal(multiplied.grad_fn._saved_other, features)
# sphinx_gallery_end_ignore

# %%
# The fix
# -------
# **Use** ``no_grad`` **where the result is needed in training later.** It records nothing either, and its tensors are
# ordinary ones.

with torch.no_grad():
    features = torch.tensor([4.0, 5.0, 6.0])
(w * features).sum().backward()
print("w.grad:", w.grad.tolist())
assert w.grad.tolist() == [4, 5, 6]

# %%
# **If the mode is not yours to change, clone**, and do it outside of the mode. The other ways in this list return an
# inference tensor again.

with torch.inference_mode():
    given = torch.tensor([4.0, 5.0, 6.0])
    inside = given.clone()

attempts = {
    "clone() outside": given.clone(),
    "clone() inside": inside,
    "detach()": given.detach(),
    "float()": given.float(),
    "view(3)": given.view(3),
}
for name, tensor in attempts.items():
    print(f"{name:<16} inference tensor: {tensor.is_inference()}")
assert [t.is_inference() for t in attempts.values()] == [False, True, True, True, True]

# %%
# **If it is a cache**, fill it when the model is built, as a buffer. Filled late, as this model can do too, it is
# made in whatever mode the first call has.


class Waves(nn.Module):
    def __init__(self, early):
        super().__init__()
        self.layer = nn.Linear(3, 3)
        self.register_buffer("table", self.compute() if early else None)

    def compute(self):
        return torch.cos(torch.arange(3.0))

    def forward(self, x):
        if self.table is None:
            self.table = self.compute()
        return self.layer(x) * self.table


# %%
# Both models see a validation pass first, and a training step next.

x = torch.ones(1, 3)
for early in (False, True):
    model = Waves(early)
    with torch.inference_mode():
        model(x)
    try:
        model(x).sum().backward()
        print("table made early:", model.layer.bias.grad.numpy().round(4))
    except RuntimeError as error:
        print(f"table made late: {str(error)[:46]} ...")
        assert str(error) == message and not early

# sphinx_gallery_start_ignore
assert torch.allclose(model.layer.bias.grad, torch.cos(torch.arange(3.0)))
# sphinx_gallery_end_ignore

# %%
# **If it is a model**, build, load and move it outside of the mode. This finds what was not:

model = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))
with torch.inference_mode():
    model.double()

state = model.state_dict(keep_vars=True)
found = [name for name, tensor in state.items() if tensor.is_inference()]
print(found)
assert "0.weight" in found and "1.running_mean" in found

# %%
# What not to do
# --------------
# **Clone a tensor whose gradient you need.** The clone is an ordinary constant: nothing was recorded in the mode, and
# no clone brings it back. Here the body of a network is meant to be trained.

torch.manual_seed(0)
body, head = nn.Linear(3, 4), nn.Linear(4, 1)
x = torch.randn(8, 3)
network = nn.Sequential(body, nn.Tanh(), head)


def trained_parts():
    with_gradient = [n for n, p in network.named_parameters() if p.grad is not None]
    network.zero_grad()
    return with_gradient


with torch.inference_mode():
    hidden = torch.tanh(body(x))
head(hidden.clone()).square().mean().backward()
silenced = trained_parts()
network(x).square().mean().backward()
print("inference mode and clone:", silenced)
print("recorded:                ", trained_parts())
assert silenced == ["2.weight", "2.bias"]

# sphinx_gallery_start_ignore
network(x).square().mean().backward()
assert len(trained_parts()) == 4
_optimizer = torch.optim.SGD(head.parameters(), lr=0.1)
_losses = []
for _ in range(20):
    _loss = head(hidden.clone()).square().mean()
    _optimizer.zero_grad()
    _loss.backward()
    _optimizer.step()
    _losses.append(_loss.item())
assert _losses[-1] < _losses[0]
# sphinx_gallery_end_ignore

# %%
# The loss goes down all the same, because the head learns. Where a gradient is to flow, the computation must be
# outside of both modes.

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_differentiation_inplace_and_versions.py`: what the version counter is for
# - :ref:`sphx_glr_gallery_graphs_grad_fn_names.py`: which nodes there are, by operation
# - `Inference mode <https://docs.pytorch.org/docs/stable/notes/autograd.html#inference-mode>`__ in PyTorch's
#   reference
