r"""
Hooks on optimizers, on all modules, and on state_dict
======================================================

.. index::
   single: register_step_pre_hook, register_step_post_hook
   single: register_optimizer_step_post_hook, register_optimizer_step_pre_hook
   single: register_module_forward_hook, register_module_parameter_registration_hook
   single: register_load_state_dict_pre_hook
   single: register_state_dict_post_hook, save only the trained parameters
   single: always_call, prepend, with_kwargs
   single: run code before each optimizer.step

.. in-short::

   ``optimizer.register_step_pre_hook(f)`` calls ``f(optimizer, args, kwargs)`` before each ``step()``, for example to log
   gradients in a training loop that you cannot edit. If the loop calls ``step(closure)``, the gradients are not there yet.
   ``torch.nn.modules.module.register_module_forward_hook(f)`` runs after each call of *any* module. A module's
   ``register_load_state_dict_pre_hook(f)`` can rename the keys of an old checkpoint. All return a handle:
   ``handle.remove()`` ends the hook.
"""

# %%
# Log in a loop that you cannot edit
# ----------------------------------
# A trainer runs the loop, and you want to see the norm of the gradient before each step:

import torch
from torch import nn

torch.manual_seed(0)
x, target = torch.randn(8, 3), torch.randn(8, 1)
model = nn.Linear(3, 1)
optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
norms = []


def log_norm(optimizer, args, kwargs):
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    grads = [p.grad for p in parameters if p.grad is not None]
    norms.append(nn.utils.get_total_norm(grads).item())


handle = optimizer.register_step_pre_hook(log_norm)

for _ in range(20):  # somebody else's loop
    loss = nn.functional.mse_loss(model(x), target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

# sphinx_gallery_start_ignore
assert (
    len(norms) == 20
    and norms[0] > 3 * norms[-1]
    and abs(norms[-1] - model.weight.grad.norm()) < norms[-1]
)
handle.remove()
optimizer.step()
assert len(norms) == 20
_again = nn.utils.get_total_norm([p.grad for p in model.parameters()]).item()
assert _again == norms[-1]


class _Own(torch.optim.Optimizer):
    def __init__(self, parameters):
        super().__init__(parameters, {})

    def step(self, closure=None):
        pass


for _class in (_Own, torch.optim.SGD, torch.optim.Adam, torch.optim.Muon):
    _w, _ran = nn.Linear(2, 2, bias=False), []
    _optimizer = _class(_w.parameters())
    torch.optim.lr_scheduler.StepLR(_optimizer, 1) if _class is not _Own else None
    _optimizer.register_step_pre_hook(lambda *_, ran=_ran: ran.append(1))
    _optimizer.step()
    assert _ran == [1]
# sphinx_gallery_end_ignore

# %%
# Each step:

import matplotlib.pyplot as plt

# figure: A curve of 20 steps: the norm of the gradient falls to less than a third of its first value, and goes up and down
#   there.
_, ax = plt.subplots(figsize=(7, 2.2), layout="constrained")
ax.plot(range(1, 21), norms, marker="o", color="#2563eb")
ax.set(title="What the hook logged", xlabel="step", ylabel="norm", ylim=(0, None))
_ = ax.set_xticks(range(2, 21, 2))

# %%
# .. how-measured:: This code registers each hook, calls what it waits for, and notes what the hook gets. It tests whether a
#    value that the hook returns changes the result, or raises an error.

import pandas as pd
from torch.nn.modules import module as of_modules
from torch.optim import optimizer as of_optimizers


def forward(layer, optimizer, x):
    return str(layer(x))


def backward(layer, optimizer, x):
    layer(x).sum().backward()
    return str(x.grad)


def step(layer, optimizer, x):
    layer(x).sum().backward()
    optimizer.step()
    return str(layer.weight)


def save(layer, optimizer, x):
    return str(layer.state_dict()) + str(optimizer.state_dict())


def load(layer, optimizer, x):
    layer.load_state_dict(layer.state_dict())
    optimizer.load_state_dict(optimizer.state_dict())
    return save(layer, optimizer, x)


def make(layer, optimizer, x):
    return str(nn.Sequential(nn.BatchNorm1d(2)).state_dict())


def zero(*given):
    return torch.zeros(1, 2)


def zeros(*given):
    return (torch.zeros(1, 2),)


def parameter(*given):
    return nn.Parameter(torch.zeros(2, dtype=torch.float64))


def submodule(*given):
    return nn.Linear(2, 2)


def set_to_zero(optimizer, args, kwargs):
    return (optimizer, optimizer.param_groups[0]["params"][0].data.zero_), {}


def higher_rate(optimizer, saved):
    return saved | {"param_groups": [saved["param_groups"][0] | {"lr": 7.0}]}


def other(*given):
    return {"other": 1}


MODULES = {
    "module_forward_pre_hook": ("module, args", forward, zero),
    "module_forward_hook": ("module, args, output", forward, zero),
    "module_full_backward_pre_hook": ("module, grad_output", backward, zeros),
    "module_full_backward_hook": ("module, grad_input, grad_output", backward, zeros),
    "module_parameter_registration_hook": ("module, name, param", make, parameter),
    "module_buffer_registration_hook": ("module, name, buffer", make, zero),
    "module_module_registration_hook": ("module, name, submodule", make, submodule),
}
OPTIMIZERS = {
    "optimizer_step_pre_hook": ("optimizer, args, kwargs", step, set_to_zero),
    "optimizer_step_post_hook": ("optimizer, args, kwargs", step, set_to_zero),
}
ONE_OPTIMIZER = {
    "step_pre_hook": ("optimizer, args, kwargs", step, set_to_zero),
    "step_post_hook": ("optimizer, args, kwargs", step, set_to_zero),
    "state_dict_pre_hook": ("optimizer", save, other),
    "state_dict_post_hook": ("optimizer, state_dict", save, other),
    "load_state_dict_pre_hook": ("optimizer, state_dict", load, higher_rate),
    "load_state_dict_post_hook": ("optimizer", load, other),
}
ONE_MODULE = {
    "state_dict_pre_hook": ("module, prefix, keep_vars", save, other),
    "state_dict_post_hook": ("module, state_dict, prefix, metadata", save, other),
    "load_state_dict_pre_hook": ("module, state_dict, prefix, ...", load, other),
    "load_state_dict_post_hook": ("module, incompatible_keys", load, other),
}


def result(owner, name, call, returned=lambda *given: None):
    torch.manual_seed(0)
    layer, x = nn.Linear(2, 2), torch.ones(1, 2, requires_grad=True)
    optimizer = torch.optim.Adam(layer.parameters())
    owner = {"module": layer, "optimizer": optimizer}.get(owner, owner)
    calls = []

    def hook(*given):
        calls.append(given)
        return returned(*given)

    with getattr(owner, f"register_{name}")(hook):  # removed at the end
        try:
            return calls, call(layer, optimizer, x)
        except (RuntimeError, AssertionError):
            return calls, "error"


def tabulate(*groups):
    rows = {}
    for owner, hooks in groups:
        for name, (gets, call, returned) in hooks.items():
            _, without = result(owner, name, call)
            _, with_value = result(owner, name, call, returned)
            effect = "used" if with_value != without else "ignored"
            effect = "an error" if with_value == "error" else effect
            prefix = f"{owner}." if isinstance(owner, str) else ""
            rows[f"{prefix}register_{name}"] = [gets, effect]
    return pd.DataFrame(rows, index=["gets", "returned value"]).T


def tabulate_hooks_on_one():
    return tabulate(("optimizer", ONE_OPTIMIZER), ("module", ONE_MODULE))


def tabulate_hooks_on_all():
    return tabulate((of_modules, MODULES), (of_optimizers, OPTIMIZERS))


# %%
# What a hook on one optimizer or one module gets, and whether a value that it returns is used:

# sphinx_gallery_start_ignore
_effects = tabulate_hooks_on_one()["returned value"].tolist()
assert _effects[:6] == ["used", "ignored", "ignored", "used", "used", "ignored"]
assert _effects[6:] == ["ignored", "an error", "ignored", "an error"]
assert tabulate_hooks_on_all()["returned value"].tolist() == ["used"] * 8 + ["ignored"]
for _owner, _hooks in (
    ("optimizer", ONE_OPTIMIZER),
    ("module", ONE_MODULE),
    (of_modules, MODULES),
    (of_optimizers, OPTIMIZERS),
):
    for _name, (_gets, _call, _) in _hooks.items():
        (_given, *_more), _ = result(_owner, _name, _call)
        assert len(_more) == {"parameter": 1, "buffer": 2}.get(_name.split("_")[1], 0)
        assert len(_given) == (8 if "..." in _gets else _gets.count(",") + 1)
        _what = nn.Module if _gets.startswith("module") else torch.optim.Optimizer
        assert isinstance(_given[0], _what)
        for _word, _type in (
            ("args", tuple),
            ("kwargs", dict),
            ("output", torch.Tensor),
            ("grad_output", tuple),
            ("state_dict", dict),
            ("prefix", str),
        ):
            if _word in _gets.split(", "):
                assert isinstance(_given[_gets.split(", ").index(_word)], _type)
_returned = []


def _return_sevens(module, name, parameter):
    _returned.append(nn.Parameter(torch.full_like(parameter, 7), requires_grad=False))
    return _returned[-1]


with of_modules.register_module_parameter_registration_hook(_return_sevens):
    _layer = nn.Linear(2, 2)
assert _layer.weight is _returned[0] and not _layer.weight.requires_grad
assert not (_layer.weight == 7).any()  # reset_parameters comes later
_opt, _seen = torch.optim.SGD(model.parameters(), lr=0.1), []
_opt.register_step_pre_hook(lambda o, args, kwargs: _seen.append((args, kwargs)))
_opt.step()
assert _seen == [((_opt,), {})]
# sphinx_gallery_end_ignore
tabulate_hooks_on_one()

# %%
# The name says when a hook runs: *pre* before the call, *post* after it. The step pre-hook may return ``(args, kwargs)`` for
# ``step``, where ``args[0]`` is the optimizer. A module's hooks change the state_dict in place.

# %%
# Hooks on all modules and all optimizers
# ---------------------------------------
# The next hooks belong to the process. They are in ``torch.nn.modules.module`` and ``torch.optim.optimizer``:

tabulate_hooks_on_all()

# %%
# The three *registration* hooks run when a module gets a parameter, a buffer or a submodule. They may return a replacement,
# which ``nn.Linear`` then fills with its own random numbers. At ``out.weight = emb.weight``, it unties the weights.
#
# Forward hooks also run for containers and loss functions. Register them before you call a compiled model. ``with`` removes
# such a hook at the end:

from torch.nn.modules.module import register_module_forward_hook

names = []


def note(module, args, output):
    names.append(type(module).__name__)


with register_module_forward_hook(note):
    nn.MSELoss()(nn.Sequential(nn.Linear(3, 1), nn.Tanh())(x), target)
print(names)

# sphinx_gallery_start_ignore
import warnings

assert names == ["Linear", "Tanh", "Sequential", "MSELoss"]
nn.Linear(3, 1)(x)
assert len(names) == 4
_raised = []
with of_modules.register_module_full_backward_hook(lambda *_: None):
    try:
        nn.Sequential(nn.Linear(3, 1), nn.ReLU(inplace=True))(x)
    except RuntimeError as error:
        _raised.append("is a view and is being modified" in str(error))
assert _raised == [True]
_tied = nn.ModuleList([nn.Embedding(5, 3), nn.Linear(3, 5, bias=False)])
_attention, _in = nn.MultiheadAttention(4, 1), torch.ones(2, 1, 4)
for _replaces in (False, True):
    with of_modules.register_module_parameter_registration_hook(
        lambda module, name, p, yes=_replaces: nn.Parameter(p * 1) if yes else None
    ):
        _tied[1].weight = _tied[0].weight
    assert (_tied[1].weight is _tied[0].weight) != _replaces
for _early in (False, True):
    torch.compiler.reset()
    _net, _ran = nn.Sequential(nn.Linear(3, 1)), []
    _compiled = torch.compile(_net, backend="eager")
    _early or _compiled(x)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the hook runs for the wrapper, too
        with register_module_forward_hook(lambda m, *_, ran=_ran: ran.append(m)):
            _compiled(x)
            _attention(_in, _in, _in)
    assert (_net[0] in _ran) == _early
    assert _attention in _ran and _attention.out_proj not in _ran  # it is not called
_layer = nn.Linear(3, 1)
try:
    _layer(torch.ones(2, 4))
except RuntimeError as error:
    message = str(error)
assert "mat1 and mat2 shapes cannot be multiplied (2x4 and 3x1)" in message
_calls, _layer = [], nn.Linear(3, 1)
_layer.register_forward_hook(lambda *given: _calls.append(("last", given)))
_options = {"prepend": True, "with_kwargs": True, "always_call": True}
_layer.register_forward_hook(lambda *given: _calls.append(("first", given)), **_options)
_layer(input=x)
assert [name for name, _ in _calls] == ["first", "last"]
assert [len(given) for _, given in _calls] == [4, 3]
assert _calls[0][1][1] == () and list(_calls[0][1][2]) == ["input"]
_calls.clear()
try:
    _layer(torch.ones(2, 4))
except RuntimeError:
    assert [name for name, _ in _calls] == ["first"] and _calls[0][1][-1] is None
_layer.register_forward_hook(lambda *_: {}["key"], always_call=True)
with warnings.catch_warnings(record=True) as _caught:
    warnings.simplefilter("always")
    try:
        _layer(torch.ones(2, 4))
    except RuntimeError as error:  # and not KeyError
        assert str(error) == message
assert "raised an exception that was silenced" in str(_caught[0].message)
# sphinx_gallery_end_ignore

# %%
# A full backward hook on all modules fails with ``nn.ReLU(inplace=True)``: see :ref:`the page on module hooks
# <sphx_glr_gallery_differentiation_hooks_on_modules.py>`.
#
# ``layer.register_forward_hook`` has three options: with ``with_kwargs=True`` the hook also gets the keyword arguments, with
# ``prepend=True`` it runs before the other hooks, and with ``always_call=True`` it runs even if ``forward`` raises, with
# ``None`` as the output.

# %%
# Rename the keys of an old checkpoint
# ------------------------------------
# ``load_state_dict`` calls each submodule with its prefix, such as ``"0."``. So the hook works wherever the module is used:


class Scale(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3))  # was called "gain"
        self.register_load_state_dict_pre_hook(rename)


def rename(module, state_dict, prefix, *rest):
    if prefix + "gain" in state_dict:
        state_dict[prefix + "weight"] = state_dict.pop(prefix + "gain")


net = nn.Sequential(Scale(), nn.Linear(3, 1, bias=False))
old = {"0.gain": torch.full((3,), 5.0), "1.weight": torch.ones(1, 3)}
print(net.load_state_dict(old), net[0].weight.data)

# sphinx_gallery_start_ignore
assert (net[0].weight == 5).all() and list(old) == ["0.gain", "1.weight"]
assert str(net.load_state_dict(net.state_dict())) == "<All keys matched successfully>"
_deep = nn.Sequential(nn.Sequential(Scale()), nn.ReLU())
_deep.load_state_dict({"0.0.gain": torch.full((3,), 4.0)})
assert (_deep[0][0].weight == 4).all()
_alone = Scale()
_alone.load_state_dict({"gain": torch.full((3,), 4.0)})
assert (_alone.weight == 4).all()
# sphinx_gallery_end_ignore

# %%
# Save only what is trained
# -------------------------
# A trainer calls ``state_dict()``, and its files should not contain the frozen, pretrained body. A post-hook leaves it out.
# ``load_state_dict`` would miss it, so a pre-hook adds what the module has now. Load the body first. What it learned before you
# froze it is lost without a message, and so is a frozen EMA copy:


def drop_frozen(module, state_dict, prefix, metadata):
    for name, parameter in module.named_parameters(remove_duplicate=False):
        if not parameter.requires_grad:
            state_dict.pop(prefix + name, None)


def add_frozen(module, state_dict, prefix, *rest):
    for name, parameter in module.named_parameters(remove_duplicate=False):
        if not parameter.requires_grad:
            state_dict.setdefault(prefix + name, parameter.detach())


adapted = nn.Sequential(nn.Linear(64, 64).requires_grad_(False), nn.Linear(64, 2))
adapted.register_state_dict_post_hook(drop_frozen)
adapted.register_load_state_dict_pre_hook(add_frozen)
saved = adapted.state_dict()
print(list(saved), adapted.load_state_dict(saved))

# sphinx_gallery_start_ignore
assert list(saved) == ["1.weight", "1.bias"]


def _misses(module, names):
    try:
        module.load_state_dict(names)
    except RuntimeError as error:
        return str(error)


def _hook(module):
    module.register_state_dict_post_hook(drop_frozen)
    module.register_load_state_dict_pre_hook(add_frozen)
    return module


_plain = nn.Sequential(nn.Linear(64, 64), nn.Linear(64, 2))
assert '"0.weight", "0.bias"' in _misses(_plain, saved)
_outer = nn.ModuleDict({"net": adapted, "head": nn.Linear(2, 2)})
_names = ["net.1.weight", "net.1.bias", "head.weight", "head.bias"]
for _ in range(2):  # then with hooks on both
    assert list(_outer.state_dict()) == _names
    assert _misses(_outer, _outer.state_dict()) is None
    _hook(_outer)
_part = {name: t for name, t in _outer.state_dict().items() if name != "net.1.weight"}
_missed = _misses(_outer, _part)
assert '"net.1.weight"' in _missed and "net.0" not in _missed
_whole = _plain.state_dict()
assert _misses(adapted, _whole) is None
assert torch.equal(adapted[0].weight, _whole["0.weight"])
_fresh = nn.Sequential(nn.Linear(64, 64).requires_grad_(False), nn.Linear(64, 2))
assert _misses(_hook(_fresh), saved) is None
assert not torch.equal(_fresh[0].weight, adapted[0].weight)  # and no message
assert list(torch.compile(_fresh, backend="eager").state_dict()) == [
    f"_orig_mod.{name}" for name in saved
]
_tied = nn.ModuleDict({"emb": nn.Embedding(5, 3), "out": nn.Linear(3, 5, bias=False)})
_tied["out"].weight = _tied.requires_grad_(False)["emb"].weight
_tied["head"] = nn.Linear(3, 1)
assert list(_hook(_tied).state_dict()) == ["head.weight", "head.bias"]
assert _misses(_tied, _tied.state_dict()) is None
# sphinx_gallery_end_ignore

# %%
# In your own loop, filter the dict, and load it with ``strict=False``.

# %%
# What people get wrong
# ---------------------
# **A step pre-hook with a closure.** ``step(closure)`` calls the hook first, and the closure computes the gradients later. So
# clipping in the hook has no effect, and the log misses the gradients:

optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
optimizer.register_step_pre_hook(log_norm)
norms.clear()


def closure():
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), target)
    loss.backward()
    return loss


optimizer.zero_grad()
optimizer.step(closure)
print("norms:", norms)

# sphinx_gallery_start_ignore
assert norms == [0.0] and model.weight.grad.any()
_ran, _calls = [], []
_lbfgs = torch.optim.LBFGS(model.parameters())
_lbfgs.register_step_pre_hook(lambda *_: _ran.append(1))


def _closure():
    _calls.append(1)
    _lbfgs.zero_grad()
    _loss = nn.functional.mse_loss(model(x), target)
    _loss.backward()
    return _loss


_lbfgs.step(_closure)
assert len(_ran) == 1 < len(_calls)
# sphinx_gallery_end_ignore

# %%
# Clip inside the closure. (As in `lightning#10167 <https://github.com/Lightning-AI/pytorch-lightning/pull/10167>`__.)
#
# **Expecting a checkpoint or a copy to keep hooks.** A ``state_dict`` has no hooks. ``copy.deepcopy`` keeps those of a module,
# and drops those of an optimizer:

import copy

model.register_forward_hook(note)
names.clear()
norms.clear()
copy.deepcopy(model)(x)
copy.deepcopy(optimizer).step()
print("hooks that ran:", len(names), "of the module,", len(norms), "of the optimizer")

# sphinx_gallery_start_ignore
assert (len(names), len(norms)) == (1, 0)
optimizer.step()
assert len(norms) == 1
optimizer.load_state_dict(optimizer.state_dict())
optimizer.step()
assert len(norms) == 2  # loading leaves the hooks of this optimizer alone
# sphinx_gallery_end_ignore

# %%
# **A hook on a wrapper**, such as the optimizer of Accelerate: *object has no attribute '_optimizer_step_pre_hooks'*. Register
# it on ``wrapper.optimizer``.
#
# **A fused optimizer with GradScaler** unscales inside ``step()``. So a pre-hook sees gradients times the scale, 65536 at
# first: do not clip there.

# sphinx_gallery_start_ignore
for _fused in (False, True):
    _w = torch.ones(4, requires_grad=True)
    _optimizer = torch.optim.AdamW([_w], fused=_fused)
    _optimizer.register_step_pre_hook(log_norm)
    norms.clear()
    _scaler = torch.amp.GradScaler("cpu")
    _scaler.scale(_w.sum()).backward()
    _scaler.step(_optimizer)
    assert norms == [2.0 * 65536 if _fused else 2.0]


class _Wrapper(torch.optim.Optimizer):  # as in Accelerate
    def __init__(self, optimizer):
        self.optimizer = optimizer

    def step(self, closure=None):
        self.optimizer.step(closure)


_wrapper, _ran = _Wrapper(_optimizer), []
try:
    _wrapper.register_step_pre_hook(log_norm)
except AttributeError as error:
    _ran.append("has no attribute '_optimizer_step_pre_hooks'" in str(error))
_wrapper.optimizer.register_step_pre_hook(lambda *_: _ran.append(True))
_wrapper.step()
assert _ran == [True, True]
# sphinx_gallery_end_ignore

# %%
# Exercise
# --------
# ``GradScaler`` skips a step if a gradient is infinite. Can a step post-hook tell you whether it did (asked in `pytorch#152279
# <https://github.com/pytorch/pytorch/issues/152279>`__)? Try Adam with and without ``fused=True``.
#
# .. solution::
#
# Without ``fused``, the scaler does not call ``step()``, so the hook does not run. A fused optimizer skips inside ``step()``:
# then the hook runs, although the weight does not move. For both, compare ``scaler.get_scale()`` before and after
# ``update()``: it falls after a skipped step.

for fused in (False, True):
    w = torch.ones(3, requires_grad=True)
    optimizer = torch.optim.Adam([w], lr=0.1, fused=fused)
    ran = []
    optimizer.register_step_post_hook(lambda *given, ran=ran: ran.append(1))
    scaler = torch.amp.GradScaler("cpu")
    scaler.scale((w * float("inf")).sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    print(f"fused={fused!s:<5}  hook ran: {bool(ran)}, w moved: {bool((w != 1).any())}")
    assert bool(ran) == fused and (w == 1).all()

# sphinx_gallery_start_ignore
for _fused in (False, True):
    for _factor in (1.0, float("inf")):
        _w = torch.ones(3, requires_grad=True)
        _optimizer = torch.optim.Adam([_w], lr=0.1, fused=_fused)
        _scaler = torch.amp.GradScaler("cpu")
        _scaler.scale((_w * _factor).sum()).backward()
        _scaler.step(_optimizer)
        _before = _scaler.get_scale()
        _scaler.update()
        assert (_scaler.get_scale() < _before) == (_w == 1).all() == (_factor != 1)
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_differentiation_hooks.py`: hooks on tensors, and an optimizer step within backward.
# - :ref:`sphx_glr_gallery_errors_state_dict_keys.py`: keys that do not match.
# - In PyTorch's reference: `torch.optim <https://docs.pytorch.org/docs/stable/optim.html>`__ and `global hooks of modules
#   <https://docs.pytorch.org/docs/stable/nn.html#global-hooks-for-module>`__.
