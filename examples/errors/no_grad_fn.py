r"""
element 0 of tensors does not require grad and does not have a grad_fn
======================================================================

.. index::
   ! single: loss does not go down
   ! single: element 0 of variables does not require grad
   ! single: loss.grad_fn is None

The loss has no graph, so there is nothing to go back through. Either no parameter requires a gradient, or recording
was off during the forward pass, or a step between the parameters and the loss has cut the graph.
"""

# %%
# The shortest code that raises it
# --------------------------------

import torch

x = torch.tensor(2.0)
y = x**2
try:
    y.backward()
except RuntimeError as error:
    message = str(error)
    print("RuntimeError:", message)
    assert message.startswith("element 0 of tensors does not require grad")

# sphinx_gallery_start_ignore
_leaf = torch.tensor(1.0, requires_grad=True)
try:
    torch.autograd.backward([_leaf * 2, y])
except RuntimeError as error:
    message = str(error)
assert message.startswith("element 1 of tensors does not require grad")
# sphinx_gallery_end_ignore

# %%
# With several losses in one call, *element 1* is the second of them. Very early versions said *element 0 of
# variables*.

# %%
# Why
# ---
# An operation is recorded if one of its inputs requires a gradient, if recording is on, and if its result can have a
# derivative. If one of these fails, everything after it has no history either. To find the place, print
# ``requires_grad`` along the way from the parameters to the loss. The first ``False`` is where the graph ends.

w = torch.tensor([0.1, 0.9, 0.4], requires_grad=True)
scores = w * 2
choice = scores.argmax()
loss = (choice - 2.0) ** 2

for name, tensor in {"w": w, "scores": scores, "choice": choice, "loss": loss}.items():
    print(f"{name:<6} requires_grad {tensor.requires_grad}")
assert scores.requires_grad and not choice.requires_grad

# graph: scores -- The graph of w ends at scores: choice and loss are not in it

# %%
# The fix
# -------
# First the parameters and the switch: print these two lines where the forward pass runs. A model that is frozen as a
# whole has no ``True`` in the first. Under ``no_grad``, ``inference_mode`` or after ``set_grad_enabled(False)`` the
# second says ``False``.

from torch import nn

torch.manual_seed(0)
model = nn.Linear(2, 3)
inputs, labels = torch.randn(4, 2), torch.tensor([0, 1, 2, 1])
loss_function = nn.CrossEntropyLoss()

print([p.requires_grad for p in model.parameters()])
print(torch.is_grad_enabled())

loss = loss_function(model(inputs), labels)
(right,) = torch.autograd.grad(loss, model.weight)


# sphinx_gallery_start_ignore
def _raises(function):
    try:
        function().backward()
    except RuntimeError as error:
        return str(error).startswith("element 0 of tensors")


def _loss():
    return loss_function(model(inputs), labels)


assert _raises(torch.no_grad()(_loss)) and _raises(torch.inference_mode()(_loss))
with torch.inference_mode():
    assert not torch.is_grad_enabled()
model.requires_grad_(False)
assert _raises(_loss)
model.requires_grad_(True)
assert torch.is_grad_enabled() and all(p.requires_grad for p in model.parameters())
# sphinx_gallery_end_ignore

# %%
# **A number in between.** ``item()``, ``tolist()``, ``numpy()``, ``detach()`` and ``torch.tensor(...)`` leave the
# history behind. Put losses together with ``torch.stack`` or a sum.

halves = [(inputs[:2], labels[:2]), (inputs[2:], labels[2:])]
losses = [loss_function(model(a), b) for a, b in halves]

numbers = torch.tensor([loss.item() for loss in losses]).mean()
tensors = torch.stack(losses).mean()
print("requires_grad:", numbers.requires_grad, tensors.requires_grad)

(gradient,) = torch.autograd.grad(tensors, model.weight)
assert torch.allclose(gradient, right) and not numbers.requires_grad

# sphinx_gallery_start_ignore
assert abs(numbers - tensors) < 1e-6
# sphinx_gallery_end_ignore

# %%
# **A choice in between.** ``argmax``, ``>``, ``==`` and ``long()`` have no derivative: their results jump. Compute
# the loss from the scores. The accuracy is for the log.

output = model(inputs)
accuracy = (output.argmax(dim=1) == labels).float().mean()
loss = loss_function(output, labels)
print("requires_grad:", accuracy.requires_grad, loss.requires_grad)
assert loss.requires_grad and not accuracy.requires_grad

# sphinx_gallery_start_ignore
assert not (output > 0).requires_grad and not output.long().requires_grad
# sphinx_gallery_end_ignore

# %%
# **A checkpoint after a frozen part.** Fine-tuning freezes the first layers, and the reentrant form of checkpointing
# records nothing if its input requires no gradient, even if its parameters do (`transformers#23170
# <https://github.com/huggingface/transformers/issues/23170>`__). ``use_reentrant=False`` does not have that limit.

import warnings

from torch.utils.checkpoint import checkpoint

for reentrant in (True, False):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the reentrant form warns
        output = checkpoint(model, inputs, use_reentrant=reentrant)
    print(f"use_reentrant={reentrant}: requires_grad {output.requires_grad}")
    assert output.requires_grad is not reentrant

# sphinx_gallery_start_ignore
(gradient,) = torch.autograd.grad(loss_function(output, labels), model.weight)
assert torch.allclose(gradient, right)
# sphinx_gallery_end_ignore

# %%
# What not to do
# --------------
# ``loss.requires_grad_(True)`` **before backward.** Many threads give this advice, and the message is gone. But the
# loss becomes a leaf of its own, with nothing behind it. No gradient reaches the model, and nothing is learned.

optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
history = []
for _ in range(4):
    optimizer.zero_grad()
    loss = loss_function(model(inputs).detach(), labels)
    loss.requires_grad_(True)
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss:", *(f"{value:.4f}" for value in history))
print("gradient of the weight:", model.weight.grad)
assert len(set(history)) == 1 and model.weight.grad is None

# graph: loss -- The whole graph after requires_grad_(True): the loss is leaf and root at once

# %%
# The same loop without the cut:

history = []
for _ in range(4):
    optimizer.zero_grad()
    loss = loss_function(model(inputs), labels)
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss:", *(f"{value:.4f}" for value in history))
assert history == sorted(history, reverse=True) and history[-1] < history[0]

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_graphs_leaves_and_roots.py`: how ``requires_grad`` spreads from inputs to results
# - :ref:`sphx_glr_gallery_graphs_graph_lifetime.py`: what ``detach()`` and ``item()`` drop
# - `Tensor.requires_grad_ <https://docs.pytorch.org/docs/stable/generated/torch.Tensor.requires_grad_.html>`__ in
#   PyTorch's reference
