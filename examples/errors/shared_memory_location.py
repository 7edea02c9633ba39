r"""
more than one element of the written-to tensor refers to a single memory location
=================================================================================

.. index::
   ! single: in-place write into an expanded tensor
   ! single: optimizer.step() fails for a parameter made with expand or einops.repeat
   ! single: Use of masked_fill_ on expanded tensors is deprecated

.. in-short::

   ``expand`` makes a tensor larger without more memory: many elements share one place. You write in place into such a tensor.
   Make a copy first, with ``repeat`` or ``clone()``.

   .. code-block:: diff

      - state = start.expand(3, 4)
      + state = start.repeat(3, 1)
        state += torch.rand(3, 4)

   **Not this:** a write to one row at a time. Nothing is raised, and it changes all rows.
"""

# %%
# The code that raises it
# -----------------------

import torch

# sphinx_gallery_start_ignore
# isort: split
import warnings

from torch import distributed as dist
from torch import nn

raised = []
try:
    # sphinx_gallery_end_ignore
    start = torch.zeros(1, 4)
    state = start.expand(3, 4)  # for three samples
    state += torch.rand(3, 4)
# sphinx_gallery_start_ignore
except RuntimeError as error:
    message = str(error)
    print("RuntimeError:", message)
assert message == (
    "unsupported operation: more than one element of the written-to tensor refers to a single memory location. "
    "Please clone() the tensor before performing the operation."
)
assert not state.any()


def _says(call, *inputs):
    try:
        call(*inputs)
    except RuntimeError as error:
        return str(error)
    return ""


assert _says(torch.zeros(1, 4).expand(3, 4).clamp_, 0) == message
# sphinx_gallery_end_ignore

# %%
# The last frame of the traceback that is not PyTorch's tells what is expanded:
#
# .. list-table::
#    :header-rows: 1
#    :widths: 50 50
#
#    * - the frame
#      - cause and fix
#    * - your line with ``x += ...``, ``x[...] = ...``, ``x.clamp_()`` or a layer with ``inplace=True``
#      - ``x``: copy it where it is expanded, as below. A copy made only for the write leaves a stored state
#        unchanged.
#    * - a hook, your own ``backward`` or a line after ``torch.autograd.grad``, as with ``gradient *= 2``
#      - the gradient: ``gradient = gradient * 2``. A hook must ``return`` it.
#    * - ``clip_grad_norm_``, after ``p.grad = gradient``
#      - ``p.grad = gradient.clone()``
#    * - ``load_state_dict``, ``DistributedDataParallel``
#      - a buffer or a parameter: see below.
#    * - ``optimizer.step()``, ``nn.init``
#      - a parameter: see below.
#    * - ``loss.backward()``
#      - a write by a mask in the forward pass, which warned: copy before it.
#    * - ``b[1:] += b[:-1]``, ``b[b] = c``: *some elements of the input tensor and the written-to tensor*
#      - One tensor is read and written: read a copy, as below, or ``b[b.clone()] = c``.
#
# Why
# ---
# The stride along the expanded dimension is 0. ``state`` has 12 elements and 4 places in memory, so three values would go into
# each place. ``broadcast_to`` and ``meshgrid`` give such tensors as well.

import matplotlib.pyplot as plt

# figure: Above, the twelve elements of state, in groups of three. Below, four places in memory. From each element a
#   line leads to a place: the three elements of a column all end in the same one.
print("shape", tuple(state.shape), "strides", state.stride())

fig, ax = plt.subplots(figsize=(7, 2.4))
for column in range(4):
    middle = 3 * column + 1
    ax.text(middle, 0, f"place {column}", backgroundcolor="#e2e8f0", ha="center")
    for row in range(3):
        x = 3 * column + row
        ax.plot([x, middle], [0.9, 0.15], color="#64748b", linewidth=1)
        ax.text(x, 1, f"[{row}, {column}]", color="#2563eb", ha="center", fontsize=9)
ax.set(xlim=(-0.6, 11.6), ylim=(-0.2, 1.2))
ax.set_title("state has twelve elements and four places in memory")
ax.axis("off")

# sphinx_gallery_start_ignore
assert state.stride() == (0, 1) and state.numel() == 12
assert state.untyped_storage().nbytes() == 4 * state.element_size()
# sphinx_gallery_end_ignore

# %%
# ``state += 1`` is refused, too. ``fill_`` with a number and ``zero_`` pass. A write by a mask, such as ``state[mask] = 1``,
# passes with a warning, and changes other rows too.
#
# .. torch-changed:: 2.15
#    :probe: refuses: torch.ones(1).expand(2).__setitem__(..., 9.0)
#
#    A number written by ``state[:] = 9`` passes, as with ``fill_`` (`pytorch#189303
#    <https://github.com/pytorch/pytorch/pull/189303>`__).
#
# **The similar message** *some elements of the input tensor and the written-to tensor refer to a single memory location*:

# sphinx_gallery_start_ignore
_ones = torch.ones(3, 4)
_writes = {
    "+= 1": lambda t: t.add_(1),
    "copy_": lambda t: t.copy_(_ones),
    "[:] =": lambda t: t.__setitem__(slice(None), 1.0),
    "fill_": lambda t: t.fill_(2),
    "zero_": lambda t: t.zero_(),
    "masked_fill_": lambda t: t.masked_fill_(_ones.bool(), 0),
    "[mask] =": lambda t: t.__setitem__(torch.eye(3, 4).bool(), 1.0),
}
_outcomes = []
for _write in _writes.values():
    with warnings.catch_warnings(record=True) as _caught:
        warnings.simplefilter("always")
        try:
            _write(torch.ones(1, 4).expand(3, 4))
        except RuntimeError as error:
            assert str(error) == message
            _outcomes.append("raises")
        else:
            _outcomes.append("warns" if _caught else "passes")
TORCH = tuple(int(part) for part in torch.__version__.split(".")[:2])
_slice = "passes" if TORCH >= (2, 15) else "raises"
assert _outcomes == ["raises"] * 2 + [_slice] + ["passes"] * 2 + ["warns"] * 2, (
    _outcomes
)
_rows = torch.zeros(1, 4).expand(3, 4)
with warnings.catch_warnings(action="ignore"):
    _rows[torch.eye(3, 4).bool()] = 1.0
assert _rows[2, 1] == 1
for _copies in (False, True):
    _leaf = torch.tensor([0.1, 0.5], requires_grad=True)
    _rows = (_leaf * 1).expand(3, 2)
    _rows = _rows.clone() if _copies else _rows
    with warnings.catch_warnings(record=True) as _caught:
        warnings.simplefilter("always")
        _rows[_rows < 0.3] = 0.3
    _said = [str(one.message)[:47] for one in _caught]
    assert _copies or "Use of masked_fill_ on expanded tensors is depr" in _said
    assert _says(_rows.sum().backward) == ("" if _copies else message)
assert not _said and _leaf.grad.tolist() == [0, 3]
for _shared in (
    torch.broadcast_to(torch.zeros(4), (3, 4)),
    *torch.meshgrid(torch.arange(3), torch.arange(4), indexing="ij"),
):
    assert _says(_shared.add_, 1) == message
try:
    # sphinx_gallery_end_ignore
    b = torch.arange(5.0)
    b[1:] += b[:-1]
# sphinx_gallery_start_ignore
except RuntimeError as error:
    raised.append(str(error))
    print("RuntimeError:", error)
assert (
    len(raised) == 1
    and "some elements of the input tensor and the written-to tensor refer to a single"
    in raised[0]
)
# sphinx_gallery_end_ignore

# %%
# The fix
# -------
# **A tensor to write to**: copy it first. ``expand(3, 4).clone()`` does the same as ``repeat(3, 1)``. ``state = state + x``
# makes a new tensor as well.

torch.manual_seed(0)
start = torch.zeros(1, 4)
state = start.repeat(3, 1)
state += torch.rand(3, 4)
print("strides", state.stride(), state[:, 0])


# sphinx_gallery_start_ignore
def _hooked(hook):
    leaf = torch.ones(3, requires_grad=True)
    result = leaf * 2
    result.register_hook(hook)
    result.sum().backward()
    return leaf.grad.tolist()


assert _says(_hooked, lambda gradient: gradient.mul_(2)) == message
assert _hooked(lambda gradient: gradient * 2) == [4, 4, 4]


def _forgets(gradient):
    gradient = gradient * 2  # and returns nothing


assert _hooked(_forgets) == [2, 2, 2]
# a running mean: copied where it is expanded it is kept, copied before each write it is not
_kept, _lost = torch.zeros(1, 4).expand(3, 4).clone(), torch.zeros(1, 4).expand(3, 4)
for _batch in (torch.rand(3, 4), torch.rand(3, 4)):
    assert _says(_lost.mul_, 0.9) == message
    _kept.mul_(0.9).add_(_batch, alpha=0.1)
    _copy = _lost.clone()
    _copy.mul_(0.9).add_(_batch, alpha=0.1)
assert _kept.any() and not _lost.any() and torch.allclose(_copy, 0.1 * _batch)
_p = nn.Parameter(torch.ones(3))
_p.grad = torch.autograd.grad(_p.sum(), _p)[0]
assert _says(_p.grad.mul_, 2) == message
assert _says(nn.utils.clip_grad_norm_, [_p], 1.0) == message
_p.grad = torch.autograd.grad(_p.sum(), _p)[0].clone()
nn.utils.clip_grad_norm_([_p], 1.0)
assert torch.allclose(_p.grad, torch.full((3,), 3**-0.5))


class _Doubled(torch.autograd.Function):
    in_place = True

    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        if _Doubled.in_place:
            gradient *= 2
        return gradient * 2


_leaf = torch.ones(3, requires_grad=True)
assert _says(lambda: _Doubled.apply(_leaf).sum().backward()) == message
_Doubled.in_place = False
_Doubled.apply(_leaf).sum().backward()
assert _leaf.grad.tolist() == [2, 2, 2]
assert _says(nn.ReLU(inplace=True), torch.ones(1, 4).expand(3, 4)) == message
assert _says(nn.init.normal_, nn.Parameter(torch.ones(4).expand(3, 4))) == message
assert state.stride() == (4, 1) and len(set(state[:, 0].tolist())) == 3
_row = torch.arange(4.0)[None]
assert torch.equal(_row.repeat(3, 1), _row.expand(3, 4).clone())
assert (_row.expand(3, 4) + torch.ones(3, 4)).stride() == (4, 1)
# sphinx_gallery_end_ignore

# %%
# **The similar message**: copy what is read:

b[1:] += b[:-1].clone()
print(b)

# sphinx_gallery_start_ignore
assert b.tolist() == [0, 1, 3, 5, 7]
_live, _still = torch.tensor([True, False, True]), torch.tensor([True, False])
_said = _says(_live.__setitem__, _live, _still)
assert "some elements of the input tensor and the written-to tensor" in _said
_live[_live.clone()] = _still
assert _live.tolist() == [True, False, False]
# sphinx_gallery_end_ignore

# %%
# **In a model**, print the names of the expanded tensors:
#
# .. code-block:: python
#
#    tensors = [*model.named_parameters(), *model.named_buffers()]
#    print([name for name, tensor in tensors if 0 in tensor.stride()])
#
# **A buffer**: register ``table.expand(2, 4).clone()``. Does ``DistributedDataParallel`` raise, and no name is printed? A
# positional encoding that ends in ``transpose(0, 1)`` raises there: use ``pe.unsqueeze(1)``.
#
# **A parameter** from ``expand`` or ``einops.repeat``: if each row should learn its own values, as attention heads do,
# write ``nn.Parameter(w.expand(3, 4).clone())``. If all rows share it, keep one row, and expand that where it is used:

from torch import nn

data = torch.randn(3, 4)
shared = nn.Parameter(torch.ones(4))
optimizer = torch.optim.SGD([shared], lr=0.1)
(shared.expand(3, 4) * data).sum().backward()
optimizer.step()
print("gradient:", shared.grad)

# sphinx_gallery_start_ignore
assert torch.allclose(shared.grad, data.sum(0))
_buffers = nn.Module()
_buffers.register_buffer("table", torch.arange(4.0).expand(2, 4))
try:
    _buffers.load_state_dict({"table": torch.ones(2, 4)})
except RuntimeError as error:
    raised.append(str(error))
assert len(raised) == 2 and "more than one element of the written-to" in raised[1]
_buffers.table = _buffers.table.clone()
_buffers.load_state_dict({"table": torch.ones(2, 4)})
try:
    _tied = nn.Parameter(torch.ones(4).expand(3, 4))
    (_tied * data).sum().backward()
    torch.optim.SGD([_tied], lr=0.1).step()
except RuntimeError as error:
    raised.append(str(error))
assert len(raised) == 3 and raised[2] == message
_holder = nn.Module()
_holder.weight = nn.Parameter(torch.ones(4).expand(3, 4))
assert message in _says(_holder.load_state_dict, {"weight": torch.ones(3, 4)})
_holder.register_buffer("table", torch.eye(4).expand(2, 4, 4))
_holder.layer = nn.Linear(1, 1)
_holder.register_buffer("grid", torch.eye(4).expand(2, 4, 4), persistent=False)
_named = [*_holder.named_parameters(), *_holder.named_buffers()]
_named = [name for name, tensor in _named if 0 in tensor.stride()]
assert _named == ["weight", "table", "grid"]


class _Positions(nn.Module):
    def __init__(self, make):
        super().__init__()
        self.register_buffer("pe", make(torch.zeros(50, 8)))
        self.layer = nn.Linear(8, 2)

    def forward(self, x):
        return self.layer(x + self.pe[: len(x)])


_x, _said = torch.ones(5, 1, 8), []
dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
for _make in (
    lambda pe: pe.unsqueeze(0).transpose(0, 1),
    lambda pe: pe.unsqueeze(0).transpose(0, 1).clone(),
    lambda pe: pe.unsqueeze(1),
):
    _said.append(_says(nn.parallel.DistributedDataParallel(_Positions(_make)), _x))
dist.destroy_process_group()
assert ["single memory location" in text for text in _said] == [True, True, False]
# sphinx_gallery_end_ignore

# %%
# What not to do
# --------------
# **Clone a parameter that all rows share,** because the message says so. The rows differ after the first step:

cloned = nn.Parameter(torch.ones(4).expand(3, 4).clone())
(cloned * data).sum().backward()
torch.optim.SGD([cloned], lr=0.1).step()
print(cloned.data)

# sphinx_gallery_start_ignore
assert not torch.allclose(cloned[0], cloned[1])
assert torch.allclose(cloned, 1 - 0.1 * data)
# sphinx_gallery_end_ignore

# %%
# **Write row by row, or element by element.** Windows of ``unfold`` share elements, too. Each of
# these writes changes all rows:

start = torch.zeros(1, 4)
state = start.expand(3, 4)
for row in range(3):
    state[row] += 1
print("1 was added to each row:", state[:, 0])

state[0, 0] = 50
print("one element was set:    ", state[:, 0])

# sphinx_gallery_start_ignore
assert state[:, 0].tolist() == [50] * 3 and state[:, 1:].eq(3).all()
_windows = torch.zeros(5).unfold(0, 3, 1)
_windows += 1  # each window of its own would hold ones
assert (_windows != 1).any()
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :doc:`Shape operations </reference/shapes>`: which operations share memory, and the strides of each.
# - :ref:`sphx_glr_gallery_debugging_silent_mistakes.py`: aliasing that no check finds.
# - In PyTorch's reference: `Tensor.expand <https://docs.pytorch.org/docs/stable/generated/torch.Tensor.expand.html>`__.
