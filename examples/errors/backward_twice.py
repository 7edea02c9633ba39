r"""
Trying to backward through the graph a second time
==================================================

.. index::
   ! single: loss.backward() works once and fails in the second iteration
   ! single: backward fails only from the second step on

Backward needs what the forward pass saved, and frees it on its way. A second backward through the same nodes finds
nothing. Usually something from an earlier step is still in the graph; sometimes two losses share a part of it.
"""

# %%
# The shortest code that raises it
# --------------------------------

import torch

x = torch.tensor(2.0, requires_grad=True)
y = torch.exp(x)
y.backward()
try:
    y.backward()
except RuntimeError as error:
    message = str(error)
    print("RuntimeError:", message)
    assert message.startswith("Trying to backward through the graph a second time")

# %%
# Earlier versions went on with *but the buffers have already been freed* or *but the saved intermediate results have
# already been freed*. It is the same error.

# %%
# Why
# ---
# In training it is seldom the same loss twice. Here a state is carried from step to step, as in a recurrent network.
# The second loss then contains the first step, and its backward walks into nodes that the first backward has emptied.

w = torch.tensor(0.5, requires_grad=True)
state = torch.tensor(1.0)

state1 = torch.tanh(w * state)
loss1 = state1**2
loss1.backward()

state2 = torch.tanh(w * state1)
loss2 = state2**2
try:
    loss2.backward()
except RuntimeError as error:
    print(f"RuntimeError: {str(error)[:50]} ...")
    assert str(error) == message

# graph: loss2 -- The graph of the second loss reaches back through state1 into the first step

# sphinx_gallery_start_ignore
seen, waiting = set(), [loss2.grad_fn]
while waiting:
    node = waiting.pop()
    seen.add(node)
    waiting += [following for following, _ in node.next_functions if following]
assert state1.grad_fn in seen
# sphinx_gallery_end_ignore

# %%
# The fix
# -------
# Cut the graph where the earlier step ends. ``detach()`` keeps the value and drops the history, so each backward
# walks through one step.

w.grad = None
state = torch.tensor(1.0)
for step in range(1, 4):
    state = torch.tanh(w * state.detach())
    loss = state**2
    loss.backward()
    print(f"step {step}: loss {loss.item():.4f}, w.grad {w.grad.item():.4f}")

# sphinx_gallery_start_ignore
expected, h = 0.0, 1.0
for _ in range(3):
    after = torch.tanh(torch.tensor(0.5 * h)).item()
    expected += 2 * after * (1 - after**2) * h
    h = after
assert abs(w.grad.item() - expected) < 1e-5
# sphinx_gallery_end_ignore

# %%
# Two losses that share a part of the graph need no cut: add them, and one backward serves both.

x = torch.tensor(2.0, requires_grad=True)
shared = torch.exp(x)
(shared.sin() + shared.cos()).backward()
print(f"x.grad = {x.grad.item():.4f}")

# sphinx_gallery_start_ignore
with torch.no_grad():
    assert torch.allclose(x.grad, shared * (shared.cos() - shared.sin()))
# sphinx_gallery_end_ignore

# %%
# What not to do
# --------------
# ``retain_graph=True`` silences the message in the loop above, and keeps the whole past. Every backward then walks
# through all steps so far: the work grows from step to step, the memory too. The gradient is different too: it is the
# one through time, of all steps, which is worth its price only to someone who wants it.


def visits(loss):
    seen, waiting = set(), [loss.grad_fn]
    while waiting:
        node = waiting.pop()
        if node not in seen:
            seen.add(node)
            waiting += [following for following, _ in node.next_functions if following]
    return len(seen)


w.grad = None
state, nodes = torch.tensor(1.0), []
for _ in range(3):
    state = torch.tanh(w * state)
    loss = state**2
    loss.backward(retain_graph=True)
    nodes.append(visits(loss))
print("nodes in the graph of each loss:", nodes)
print(f"w.grad = {w.grad.item():.4f}")
assert nodes == [4, 6, 8]

# sphinx_gallery_start_ignore
assert abs(w.grad.item() - expected) > 0.01
# sphinx_gallery_end_ignore

# %%
# ``retain_graph=True`` is a cure in one case: you do want two backwards through one graph, and each must run by
# itself, for example to look at the two gradients before they are added. The last backward goes without it, and frees
# the graph.

x.grad = None
shared = torch.exp(x)
first, second = shared.sin(), shared.cos()
(of_first,) = torch.autograd.grad(first, x, retain_graph=True)
(of_second,) = torch.autograd.grad(second, x)
print(f"{of_first.item():.4f} {of_second.item():+.4f}")

# sphinx_gallery_start_ignore
assert torch.allclose(of_first, (shared * shared.cos()).detach())
assert torch.allclose(of_second, (-shared * shared.sin()).detach())
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_graphs_graph_lifetime.py`: what is freed, and when
# - `Tensor.backward <https://docs.pytorch.org/docs/stable/generated/torch.Tensor.backward.html>`__ in PyTorch's reference
