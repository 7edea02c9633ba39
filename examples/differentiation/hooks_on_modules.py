r"""
Hooks on modules: full_backward_hook
====================================

.. in-short::

   ``layer.register_full_backward_hook(f)``: backward calls ``f(layer, grad_input, grad_output)``, and what ``f`` returns, if
   not ``None``, replaces ``grad_input``. But ``nn.ReLU(inplace=True)`` or ``out += x`` on the output then raises an error, and
   if the layer returns a list or a dict, ``f`` is not called. So hook a clone of the output instead, in a function for
   ``layer.register_forward_hook``:

   .. code-block:: python

      def forward_hook(layer, args, output):
          output = output.clone()
          if output.requires_grad:  # not under no_grad
              output.register_hook(f)  # f(gradient)
          return output  # to what comes next
"""

# %%
# See the gradient at one layer
# -----------------------------
# You want the gradient at one layer of a model, for example because the loss does not fall. A *full backward hook* is a
# function that gets two tuples: the gradients with respect to the layer's inputs, and those with respect to its outputs.

import contextlib
import warnings

import torch
from torch import nn


def report(module, grad_input, grad_output):
    print("grad_input: ", [g if g is None else tuple(g.shape) for g in grad_input])
    print("grad_output:", [g if g is None else tuple(g.shape) for g in grad_output])


torch.manual_seed(0)
layer = nn.Linear(4, 3)
layer.register_full_backward_hook(report)

x = torch.ones(8, 4, requires_grad=True)
y = layer(x)
y.sum().backward()

# graph: y -- The hook puts one node before the layer and one behind it

# sphinx_gallery_start_ignore
_found = []
_layer = nn.Linear(4, 3)
_layer.register_full_backward_hook(lambda *given: _found.append(given[1:]))
_layer(torch.ones(8, 4, requires_grad=True)).sum().backward()
((_inputs, _outputs),) = _found
assert _outputs[0].shape == (8, 3) and torch.equal(_outputs[0], torch.ones(8, 3))
assert torch.allclose(_inputs[0], torch.ones(8, 3) @ _layer.weight)
assert y.grad_fn.name() == "BackwardHookFunctionBackward"
assert y.grad_fn.next_functions[0][0].name() == "AddmmBackward0"
assert y.grad_fn.next_functions[0][0].next_functions[1][0].name() == y.grad_fn.name()
_handle = _layer.register_full_backward_hook(lambda module, gi, go: (2 * gi[0],))
_doubled = torch.ones(8, 4, requires_grad=True)
_layer(_doubled).sum().backward()
_handle.remove()
assert torch.allclose(_doubled.grad, 2 * _inputs[0])
_plain = _layer(torch.ones(8, 4))  # an input that does not require grad
_behind = _plain.grad_fn
assert _behind.name() == y.grad_fn.name()
assert _behind.next_functions[0][0].next_functions[1][0] is None
import io

_first, _attends = nn.Linear(4, 3), nn.MultiheadAttention(4, 1)
_first.register_full_backward_hook(report)
_attends.register_full_backward_hook(report)
_data, _queries = torch.ones(8, 4), torch.ones(8, 4, requires_grad=True)
with contextlib.redirect_stdout(io.StringIO()) as _printed, warnings.catch_warnings():
    warnings.simplefilter("ignore")
    _first(_data).sum().backward()
    _attends(_queries, _queries, _queries)[0].sum().backward()
_lines = _printed.getvalue().splitlines()
assert _lines[:2] == ["grad_input:  [None]", "grad_output: [(8, 3)]"]
assert _lines[3] == "grad_output: [(8, 4), None]"  # the loss uses no weights
# sphinx_gallery_end_ignore

# %%
# An entry can be ``None``, for example at a first layer, for the data.
#
# PyTorch passed the input and the output of this layer through two extra nodes, ``BackwardHookFunctionBackward``. Backward
# comes through the one behind the layer first: that is ``grad_output``. When it leaves the one before the layer, ``grad_input``
# is complete, and your function is called.

# %%
# A hook without the two nodes
# ----------------------------
# Many vision models use ``nn.ReLU(inplace=True)``. With a full backward hook on the layer before it, this *forward* pass fails:

torch.manual_seed(0)
model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(inplace=True), nn.Conv2d(4, 1, 3))
images = torch.randn(2, 1, 8, 8, requires_grad=True)
handle = model[0].register_full_backward_hook(lambda *_: None)

# sphinx_gallery_start_ignore
raised = []
try:
    # sphinx_gallery_end_ignore
    model(images)
# sphinx_gallery_start_ignore
except RuntimeError as error:
    raised.append(str(error))
    print(f"RuntimeError: {error}")
assert (
    len(raised) == 1
    and "Output 0 of BackwardHookFunction" in raised[0]
    and "is a view and is being modified" in raised[0]
)
handle.remove()
model(images).sum().backward()
for _number, _fails in enumerate(
    (True, True, False)
):  # on the ReLU itself it fails too, behind it it does not
    _handle = model[_number].register_full_backward_hook(lambda *_: None)
    try:
        model(images).sum().backward()
        _failed = False
    except RuntimeError:
        _failed = True
    _handle.remove()
    assert _failed == _fails


class _Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm2d(1)

    def forward(self, x):
        out = self.norm(x)
        out += x
        return out


_block = _Residual()
with _block.norm.register_full_backward_hook(lambda *_: None):
    try:
        _block(images)
    except RuntimeError as error:
        raised.append("BackwardHookFunction" in str(error))
assert raised[1:] == [True]
for _module in model.modules():
    if hasattr(_module, "inplace"):
        _module.inplace = False
_ran = []
_handle = model[0].register_full_backward_hook(lambda *_: _ran.append(1))
model(images).sum().backward()
assert _ran == [1]
_handle.remove()
model[1].inplace = True
# sphinx_gallery_end_ignore

# %%
# The extra node returns its tensor as a view, and PyTorch forbids in-place changes of such a view (`pytorch#61519
# <https://github.com/pytorch/pytorch/issues/61519>`__). The residual sum ``out += x`` raises the same. So write ``out = out +
# x`` and set ``module.inplace = False``. Or leave the model as it is, and let a forward hook put a clone in place of the
# output, with a tensor hook on it. ``key`` names the tensor in a dict or a list:


def watch(module, use, key=None):
    def forward_hook(module, args, output):
        tensor = (output if key is None else output[key]).clone()
        if tensor.requires_grad:  # not under no_grad
            tensor.register_hook(use)
        if key is None:
            return tensor
        output[key] = tensor

    return module.register_forward_hook(forward_hook)


class ReturnsDict(nn.Linear):
    def forward(self, x):
        return {"y": super().forward(x)}


handle.remove()  # the full backward hook
gradients = []
watch(model[0], gradients.append)  # the model with the in-place ReLU
model(images).sum().backward()

packed = ReturnsDict(4, 3)
watch(packed, gradients.append, key="y")
packed(x)["y"].sum().backward()

print([tuple(gradient.shape) for gradient in gradients])

# sphinx_gallery_start_ignore
assert [tuple(gradient.shape) for gradient in gradients] == [(2, 4, 6, 6), (8, 3)]
model[1].inplace = False
_seen = []
_handle = model[0].register_full_backward_hook(
    lambda module, gi, go: _seen.append(go[0])
)
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    model(images).sum().backward()
_handle.remove()
assert torch.equal(
    _seen[0], gradients[0]
)  # the same gradient as without the in-place layer
with torch.no_grad():
    packed(x)


class _OwnLoss(nn.Linear):
    def forward(self, x):
        y = super().forward(x)
        return {"y": y, "loss": y.square().mean()}


for _pick, _runs in (
    (lambda output: output["loss"], 0),
    (lambda output: output["y"].square().mean(), 1),
):
    _own, _got = _OwnLoss(4, 3), []
    watch(_own, _got.append, key="y")
    _pick(_own(x)).backward()
    assert len(_got) == _runs
_used_twice = 2 * x
_third, _cloned = nn.Linear(4, 3), []


def _hook_a_clone(module, args):
    given = args[0].clone()
    given.register_hook(_cloned.append)
    return (given,)


_third.register_forward_pre_hook(_hook_a_clone)
(_third(_used_twice.detach().requires_grad_()).sum() + 5).backward()
_skipped = _used_twice.detach().requires_grad_()
(_third(_skipped).sum() + 5 * _skipped.sum()).backward()
assert torch.allclose(_cloned[1], torch.ones(8, 3) @ _third.weight)
_calls = []
watch(_block.norm, _calls.append)
_block(images).sum().backward()
assert len(_calls) == 1
# sphinx_gallery_end_ignore

# %%
# This is the gradient that a full backward hook gets as ``grad_output`` if the ReLU is not in place. ``watch`` returns a handle
# for the forward hook: call its ``remove()`` when you are done. A loss that the module computes itself, as Hugging Face's
# models do with ``labels``, does not use the clone, and ``use`` is not called. For the input, hook a clone in a forward
# *pre*-hook.
#
# To wait for the gradients of several tensors, use ``torch.autograd.graph.register_multi_grad_hook``. The ``backward()`` below
# calls your function once, with all gradients. With ``mode="any"``, it is called once with the first gradient that arrives:

hidden = model[0](images)
output = model[2](torch.relu(hidden))


def compare(gradients):
    print("norms:", [f"{gradient.norm():.1f}" for gradient in gradients])


torch.autograd.graph.register_multi_grad_hook((hidden, output), compare)
output.sum().backward()

hidden = model[0](images)
output = model[2](torch.relu(hidden))
first = []
torch.autograd.graph.register_multi_grad_hook(
    (hidden, output), first.append, mode="any"
)
output.sum().backward()
print("mode='any':", len(first), "call, shape", tuple(first[0].shape))

# sphinx_gallery_start_ignore
_one, _two, _calls = (
    torch.ones(2, requires_grad=True),
    torch.ones(2, requires_grad=True),
    [],
)
torch.autograd.graph.register_multi_grad_hook((_one, _two), _calls.append)
(_one + 2 * _two).sum().backward()
(3 * _one).sum().backward()
assert len(_calls) == 2 and all(gradient is not None for gradient in _calls[0])
assert _calls[1][0] is not None and _calls[1][1] is None
(4 * torch.ones(2, requires_grad=True)).sum().backward()
assert len(_calls) == 2  # this backward reaches neither of the two
assert len(first) == 1 and first[0].shape == output.shape != hidden.shape
from functools import partial

for _module in (nn.Identity(), nn.Dropout().eval(), nn.ReLU()):
    _seen = []
    _use = partial(lambda seen, *given: seen.append(given[-1]), _seen)
    for _register in (watch, nn.Module.register_full_backward_hook):
        _handle = _register(_module, _use)
        _t = 2 * torch.ones(3, requires_grad=True)
        (_module(_t) + 5 * _t).sum().backward()
        _handle.remove()
    _by_tensor, (_by_module,) = _seen
    assert torch.equal(_by_module, torch.ones(3)) and torch.equal(
        _by_tensor, _by_module
    )
# sphinx_gallery_end_ignore

# %%
# Which hooks run under ``torch.autograd.grad``?
# ----------------------------------------------
# ``torch.autograd.grad`` walks only to the tensors that you name, so it skips hooks that lie elsewhere. And because it leaves
# ``.grad`` alone, it skips hooks that wait for accumulation:
#
# .. how-measured:: One Linear layer with four hooks; each call below notes which of them ran.

import pandas as pd

HOOKS = ["full_backward_pre", "full_backward", "weight", "weight, accumulated"]


def hooks_that_run(call):
    layer, ran = nn.Linear(4, 3), set()
    layer.register_full_backward_pre_hook(lambda *_: ran.add(HOOKS[0]))
    layer.register_full_backward_hook(lambda *_: ran.add(HOOKS[1]))
    layer.weight.register_hook(lambda gradient: ran.add(HOOKS[2]))
    layer.weight.register_post_accumulate_grad_hook(lambda leaf: ran.add(HOOKS[3]))
    call(layer, layer(x).sum())
    return {hook: "runs" if hook in ran else "" for hook in HOOKS}


CALLS = {
    "loss.backward()": lambda layer, loss: loss.backward(),
    "grad(loss, x)": lambda layer, loss: torch.autograd.grad(loss, x),
    "grad(loss, weight)": lambda layer, loss: torch.autograd.grad(loss, layer.weight),
    "grad(loss, bias)": lambda layer, loss: torch.autograd.grad(loss, layer.bias),
}


def tabulate_hooks_that_run():
    rows = {name: hooks_that_run(call) for name, call in CALLS.items()}
    return pd.DataFrame(rows).T.rename_axis(columns="hook on")


# %%
# Which of four hooks run:

# sphinx_gallery_start_ignore
assert (tabulate_hooks_that_run() == "runs").to_numpy().tolist() == [
    [True, True, True, True],
    [True, True, False, False],
    [True, False, True, False],
    [True, False, False, False],
]
_inputs = hooks_that_run(lambda layer, loss: loss.backward(inputs=[layer.bias]))
assert [_inputs[hook] for hook in HOOKS] == ["runs", "", "", ""]
# sphinx_gallery_end_ignore
tabulate_hooks_that_run()

# %%
# The full backward hook waits for the gradient of ``x``, which is not computed if you ask for the weight alone.

# %%
# What people get wrong
# ---------------------
# **A list or a dict as output, and keyword arguments.** PyTorch looks for tensors only in the positional arguments, and in an
# output that is a tensor or a tuple.
#
# .. how-measured:: A Linear layer packs its result into seven kinds of output; calls of its hook and warnings are counted.

import collections
import dataclasses

import pandas as pd


@dataclasses.dataclass
class Output:
    y: torch.Tensor


Named = collections.namedtuple("Named", "y")


class Packed(nn.Linear):
    def __init__(self, pack):
        super().__init__(4, 3)
        self.pack = pack

    def forward(self, input):
        return self.pack(super().forward(input))


def outcome(pack, unpack, call=lambda module: module(x)):
    module, inputs = Packed(pack), []
    module.register_full_backward_hook(lambda module, gi, go: inputs.append(gi))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        unpack(call(module)).sum().backward()
    kinds = [tuple(g if g is None else "tensor" for g in given) for given in inputs]
    shown = str(kinds[0]).replace("'", "") if kinds else "-"
    return {"calls": len(inputs), "grad_input": shown, "warnings": len(caught)}


def same(y):
    return y


ROWS = {
    "returns a tensor": (same, same),
    "returns a tuple": (lambda y: (y,), lambda output: output[0]),
    "returns a namedtuple": (Named, lambda output: output.y),
    "returns a list": (lambda y: [y], lambda output: output[0]),
    "returns a dict": (lambda y: {"y": y}, lambda output: output["y"]),
    "returns a dataclass": (Output, lambda output: output.y),
    "returns a tuple in a tuple": (lambda y: ((y,),), lambda output: output[0][0]),
    "layer(input=x)": (same, same, lambda module: module(input=x)),
    "x does not require grad": (same, same, lambda module: module(x.detach())),
}


def tabulate_calls_of_the_hook():
    table = pd.DataFrame({name: outcome(*row) for name, row in ROWS.items()}).T
    return table.rename_axis(columns="the layer")


# %%
# How often the hook was called, what it got, and how many warnings came:

# sphinx_gallery_start_ignore
table = tabulate_calls_of_the_hook()
assert table.calls.tolist() == [1, 1, 1, 0, 0, 0, 0, 1, 1]
assert table.warnings.tolist() == [0, 0, 0, 1, 1, 1, 0, 1, 1]
assert table.grad_input.tolist() == ["(tensor,)"] * 3 + ["-"] * 4 + ["()", "(None,)"]
_texts = []
for _pack, _given in ((lambda y: [y], x), (same, x.detach())):
    _module = Packed(_pack)
    _module.register_full_backward_hook(lambda *_: None)
    with warnings.catch_warnings(record=True) as _caught:
        warnings.simplefilter("always")
        _module(_given)[0].sum().backward()
    _texts.append(str(_caught[0].message))
assert "module output should be a Tensor or a tuple of Tensors" in _texts[0]
assert "no inputs require gradients" in _texts[1]


class _Detaching(nn.Linear):
    def forward(self, x):
        return super().forward(x.detach())


_detaching, _calls = _Detaching(4, 3), []
_detaching.register_full_backward_hook(lambda *_: _calls.append(1))
_detaching.register_forward_hook(
    lambda module, args, output: output.register_hook(_calls.append) and None
)
with warnings.catch_warnings():
    warnings.simplefilter("error")
    _detaching(x).sum().backward()
assert [type(call) for call in _calls] == [torch.Tensor]  # only the hook on the output
_lstm, _calls = nn.LSTM(4, 3), []
_lstm.register_full_backward_hook(lambda *_: _calls.append(1))
_y, (_h, _c) = _lstm(x)
_h.sum().backward(retain_graph=True)
assert not _calls
_y.sum().backward()
assert _calls == [1]
for _name, _key in (("tensor", None), ("list", 0), ("dict", "y")):
    (_pack, _pick), _calls = ROWS[f"returns a {_name}"], []
    _module = Packed(_pack)
    watch(_module, _calls.append, _key)
    _pick(_module(input=x)).mul_(2).sum().backward()
    assert len(_calls) == 1
_attention, _calls = nn.MultiheadAttention(4, 1), []
_attention.out_proj.register_full_backward_hook(lambda *_: _calls.append(1))
_attention(x, x, x)[0].sum().backward()
_forward = nn.Linear(4, 3)
_forward.register_full_backward_hook(lambda *_: _calls.append(1))
_forward.forward(x).sum().backward()
assert not _calls
# sphinx_gallery_end_ignore
tabulate_calls_of_the_hook()

# %%
# With a list, a dict or a dataclass, the hook is skipped (`pytorch#87540 <https://github.com/pytorch/pytorch/issues/87540>`__).
# The warning says *module output should be a Tensor or a tuple of Tensors*, for example with Hugging Face's models
# (`transformers#36508 <https://github.com/huggingface/transformers/issues/36508>`__). For the tuple in a tuple, you get no
# warning: ``nn.LSTM`` returns ``(y, (h, c))``, so a hook on it misses a loss that uses ``h`` alone. The last two rows warn that
# *no inputs require gradients*: the hook does not wait for the gradient of an input. ``layer.forward(x)`` also skips the hook,
# and ``nn.MultiheadAttention`` skips a hook on its ``out_proj``.

# %%
# **Hooking the output without a clone.** Below, ``nn.Flatten`` returns a view, and the in-place ReLU gives that view a new
# ``grad_fn``. So backward bypasses a tensor hook on it, without an error:

block = nn.Sequential(nn.Conv2d(1, 1, 3), nn.Flatten(), nn.ReLU(inplace=True))
pixels, by_output, by_clone = torch.ones(2, 1, 8, 8), [], []


def hook_the_output(module, args, output):
    output.register_hook(by_output.append)


with block[1].register_forward_hook(hook_the_output):
    block(pixels).sum().backward()
watch(block[1], by_clone.append)
block(pixels).sum().backward()

print("calls of the hook:", len(by_output), "and on a clone:", len(by_clone))

# sphinx_gallery_start_ignore
assert (len(by_output), len(by_clone)) == (0, 1)
_wanted, _layer = [], nn.Flatten()
watch(_layer, _wanted.append)
_layer(block[0](pixels)).relu().sum().backward()  # not in place
assert torch.equal(_wanted[0], by_clone[0])
tokens = torch.ones(2, 3, 4)
for _layer, _input in (  # many of these outputs are views
    (nn.Flatten(), torch.ones(2, 3, 4, 4, requires_grad=True)),
    (nn.Flatten(), torch.ones(2, 4, 3).mT.requires_grad_()),
    (nn.Identity(), torch.ones(2, 3, requires_grad=True)),
    (nn.Linear(4, 4), torch.ones(2, 4)),
    (nn.Linear(4, 4), tokens),
    (nn.Linear(4, 4, bias=False), tokens),
    (nn.Conv1d(3, 3, 1), tokens[0]),
    (nn.LayerNorm(4), tokens[:0]),
    (nn.Linear(4, 4, dtype=torch.complex64), tokens + 0j),
):
    for _change in (
        lambda output: output.mul_(2),
        lambda output: output[:1].mul_(2) * 0 + output.sum(),
        lambda output: output.unsqueeze(0).add_(1),
    ):
        _calls = []
        with watch(_layer, _calls.append):
            _change(_layer(2 * _input)).sum().abs().backward()
        assert len(_calls) == 1
    with torch.no_grad(), watch(_layer, _calls.append):
        _layer(_input)
_layer, _base, _calls = nn.Flatten(), 2 * torch.ones(2, 3, 4, requires_grad=True), []
watch(_layer, _calls.append)
_output, _ = _layer(_base), _base.mul_(2)  # the base is changed
_output.sum().backward()
assert len(_calls) == 1
# sphinx_gallery_end_ignore

# %%
# **Hooks that stay.** Each call of ``register_...`` adds one more, and ``copy.deepcopy(module)`` copies them. An ``ExitStack``
# removes all at the end of the block:

order, layer = [], nn.Linear(4, 3)
with contextlib.ExitStack() as stack:
    for name in ("one", "two"):

        def note(module, args, output, name=name):
            order.append(name)

        stack.enter_context(layer.register_forward_hook(note))
    layer(x)
layer(x)
print("called:", order)

# sphinx_gallery_start_ignore
import copy

assert order == ["one", "two"] and not layer._forward_hooks
_handle = layer.register_forward_hook(lambda *call: order.append("copied"))
copy.deepcopy(layer)(x)
assert order[-1] == "copied"
_handle.remove()
# sphinx_gallery_end_ignore

# %%
# **Hooks that come too late.** A model that ``torch.compile`` has compiled silently skips a hook that you register after its
# first call: see :ref:`sphx_glr_gallery_scale_compile_and_autograd.py`.
#
# **The old** ``register_backward_hook`` is deprecated. For the module below, its ``grad_input`` belongs to the last operation,
# the sigmoid, instead of the module:


class Block(nn.Linear):
    def forward(self, x):
        return torch.sigmoid(super().forward(x))


old, new = Block(4, 3), Block(4, 3)
old.register_backward_hook(lambda module, gi, go: print("old:", gi[0].shape))
new.register_full_backward_hook(lambda module, gi, go: print("new:", gi[0].shape))

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    old(x).sum().backward()
    new(x).sum().backward()
print(f"{caught[0].category.__name__}: {caught[0].message}")

# sphinx_gallery_start_ignore
assert len(caught) == 1 and "non-full backward hook" in str(caught[0].message)
_shapes = []
_old, _new = Block(4, 3), Block(4, 3)
_old.register_backward_hook(lambda module, gi, go: _shapes.append(gi[0].shape))
_new.register_full_backward_hook(lambda module, gi, go: _shapes.append(gi[0].shape))
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    _old(x).sum().backward()
_new(x).sum().backward()
assert _shapes == [(8, 3), (8, 4)]  # x has the shape (8, 4)
# sphinx_gallery_end_ignore

# %%
# Exercise
# --------
# A model uses one layer twice: ``layer(layer(x))``. How often does a full backward hook on ``layer`` run in one backward?
# How often does a hook on ``layer.weight`` run?
#
# .. solution::
#
# Twice and once. Each call of the layer gets its own extra nodes. The weight is one tensor: its hook gets the sum.

layer, runs = nn.Linear(4, 4), []
layer.register_full_backward_hook(lambda *_: runs.append("module"))
layer.weight.register_hook(lambda gradient: runs.append("weight"))
layer(layer(x)).sum().backward()

print(runs)
assert runs.count("module") == 2 and runs.count("weight") == 1

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_differentiation_hooks_of_optimizers.py`, hooks on all modules and on ``state_dict``.
# - :ref:`sphx_glr_gallery_differentiation_build_the_engine.py`, the walk by hand, without hooks.
# - In PyTorch's reference: `register_full_backward_hook
#   <https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.register_full_backward_hook>`__ and
#   `register_multi_grad_hook
#   <https://docs.pytorch.org/docs/stable/autograd.html#torch.autograd.graph.register_multi_grad_hook>`__.
