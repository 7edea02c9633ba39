r"""
torch._dynamo hit config.recompile_limit (8)
============================================

.. index::
   ! single: torch.compile compiles again at each step, slow after torch.compile
   ! single: FailOnRecompileLimitHit, Hard failure due to fullgraph=True
   ! single: integer attributes of the nn.Module are static, allow_unspec_int_on_nn_module
   ! single: cache_size_limit of torch._dynamo

.. in-short::

   ``torch.compile`` compiles a function for the Python values that it finds. One of them changes in each call, often a counter
   in the model, so the function is compiled again and again. Make that value a tensor.

   .. code-block:: diff

      - self.calls = 0
      + self.register_buffer("calls", torch.tensor(0))

      - self.calls += 1
      + self.calls = self.calls + 1

      - return self.layer(x) * min(1, self.calls / 10)
      + return self.layer(x) * torch.clamp(self.calls / 10, max=1)

   **Not this:** a larger ``recompile_limit`` for a counter. Each version is used once. It helps if few values come again and
   again, such as the ``layer_idx`` of twelve layers.
"""

# %%
# The code that raises it
# -----------------------
# It is a warning. The model of this page makes its output small in the first nine steps:

# sphinx_gallery_start_ignore
import logging
import re

warned = []
_handler = logging.Handler()
_handler.emit = lambda record: warned.append(record.getMessage())
_logger = logging.getLogger("torch._dynamo.convert_frame")
_logger.addHandler(_handler)
_logger.propagate = False  # nothing is written to the terminal
# sphinx_gallery_end_ignore
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        return self.layer(x) * min(1, self.calls / 10)


net = torch.compile(Net(), backend="eager")
for _ in range(10):
    net(torch.ones(2, 4))
# sphinx_gallery_start_ignore
# it empties the processor's caches to time each version's guards, a third of this page's time
torch._dynamo.guards.profile_guard_manager = lambda *_: 0.0
for _n in (11, 12):  # after the limit, as plain Python
    _x = torch.full((2, 4), _n / 4)
    assert torch.allclose(net(_x), net.layer(_x)) and net.calls == _n
assert len(warned) == 1
_first, _function, _reason = warned[0].splitlines()[:3]
_reason, _, _hint = _reason.partition("(HINT: ")
print(_first)
print(re.sub(r" \(/.*", "", _function))
print(re.sub(r"\s+# .*", "", _reason))
print("   (HINT:", _hint.removesuffix(")").replace(". ", ".\n    ") + ")")
assert _first == "torch._dynamo hit config.recompile_limit (8)"
assert "function: 'forward'" in _function and "0/7: self.calls == 7 " in _reason
assert 'use TORCH_LOGS="recompiles"' in warned[0]
# sphinx_gallery_end_ignore

# %%
# - ``function``: what was compiled again and again.
# - ``last reason``: the condition that failed. It names the value that changes.
# - ``0/7``: the first function that was compiled, in its version 7. Both count from 0.
#
# To see each reason, set ``TORCH_LOGS=recompiles`` before you start the program. This page uses
# ``backend="eager"``, which needs no compiler.
#
# Why
# ---
# ``torch.compile`` records the operations together with *guards*: conditions under which the record is right. The counter is a
# constant in the record, so there is a guard such as ``self.calls == 7``. In the next call the guard fails, and the function is
# compiled again. After 8 versions a call that fits none of them runs as plain Python.
#
# The fix
# -------
# Make the value that changes a tensor. As a buffer it also goes with the model to the GPU and into the checkpoint.


class NetWithBuffer(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.register_buffer("calls", torch.tensor(0))

    def forward(self, x):
        self.calls = self.calls + 1
        return self.layer(x) * torch.clamp(self.calls / 10, max=1)


torch._dynamo.reset()
net = torch.compile(NetWithBuffer(), backend="eager")
with torch._dynamo.config.patch(error_on_recompile=True):
    for _ in range(10):
        net(torch.ones(2, 4))

# sphinx_gallery_start_ignore
x = torch.ones(2, 4)
assert net.calls == 10 and "_orig_mod.calls" in net.state_dict()
_plain = NetWithBuffer()
for _n in range(1, 11):
    assert torch.allclose(_plain(x), _plain.layer(x) * min(1, _n / 10))
torch._dynamo.reset()


class _InPlace(NetWithBuffer):
    def forward(self, x):
        self.calls += 1
        return self.layer(x) * torch.clamp(self.calls / 10, max=1)


for _model, _ahead in ((NetWithBuffer(), 0), (_InPlace(), 1)):
    _trained = torch.compile(_model, backend="aot_eager")
    for _n in range(1, 12):
        _trained.zero_grad()
        _trained(x).sum().backward()
        _factor = min(1, (_n + _ahead) / 10)
        assert torch.allclose(_model.layer.bias.grad, torch.full((4,), 2.0 * _factor))
# sphinx_gallery_end_ignore

# %%
# ``error_on_recompile`` raises if something is compiled again. Do not write ``self.calls += 1``: the compiled backward can then
# read a number that was already changed, and its gradient is wrong.
#
# Other values that change
# ------------------------
# If an integer is an *argument* of the function, PyTorch tries to make the second version for all integers. This fails if
# Python needs the number itself, as in ``range(n)``. Here the value changes in each of 10 calls:
#
# .. how-measured:: A backend that keeps each graph counts the versions of a function.


def versions(function, calls, **options):
    graphs = []

    def keep(module, inputs):
        graphs.append(module)
        return module

    torch._dynamo.reset()
    compiled = torch.compile(function, backend=keep, **options)
    for arguments in calls:
        compiled(*arguments)
    return len(graphs)


def double(x):
    return x * 2


x = torch.ones(2, 4)
integers = [(x, n) for n in range(10)]
growing = [(torch.ones(n + 2, 4),) for n in range(10)]
count = {
    "integer in the module": versions(Net(), [(x,)] * 10),
    "list that grows": versions(sum, [([x] * (n + 1),) for n in range(10)]),
    "shape, dynamic=False": versions(double, growing, dynamic=False),
    "integer as argument": versions(lambda x, n: x * (n / 10), integers),
    "shape": versions(double, growing),
    "tensor in the module": versions(NetWithBuffer(), [(x,)] * 10),
}

# %%
# At 8 versions PyTorch gives up:

import matplotlib.pyplot as plt

# figure: Six bars. Integer in the module, list that grows, dynamic=False: 8. Integer as argument, shape: 2. Tensor: 1.
fig, ax = plt.subplots(figsize=(7, 2.3), layout="constrained")
colors = ["#c2410c" if number == 8 else "#047857" for number in count.values()]
ax.bar_label(ax.barh(list(count), count.values(), color=colors), padding=4)
ax.invert_yaxis()
ax.set(xlim=(0, 8.8), xlabel="versions compiled in 10 calls")
ax.set_title("At 8 versions, PyTorch gives up")

# sphinx_gallery_start_ignore
import torch._dynamo.testing

assert list(count.values()) == [8, 8, 8, 2, 2, 1]
assert versions(lambda x, n: sum(x * i for i in range(n)), integers[1:]) == 8
assert versions(lambda x, n: x * 0.5**n, integers[1:]) == 2


# a larger limit, and twelve values that come again
class _Layer(nn.Module):
    def __init__(self, number):
        super().__init__()
        self.layer_idx = number

    def forward(self, x):
        return x * self.layer_idx


torch._dynamo.reset()
_counter = torch._dynamo.testing.CompileCounter()
with torch._dynamo.config.patch(recompile_limit=16):
    for _n in [*range(12)] * 2:
        assert torch.equal(torch.compile(_Layer(_n), backend=_counter)(x), x * _n)
assert _counter.frame_count == 12
_images = [(torch.ones(2, 3, 16 + 2 * n, 20 + 4 * n),) for n in range(12)]
assert versions(nn.Conv2d(3, 4, 3), _images) == 2
with torch._dynamo.config.patch(allow_unspec_int_on_nn_module=True):
    assert versions(Net(), [(x,)] * 10) == 2


class _Threshold(nn.Module):  # an integer that an if needs
    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        return x * 2 if self.calls % 4 == 0 else x * 3


_threshold = torch.compile(_Threshold(), backend="eager")
for _allowed in (False, True):
    with torch._dynamo.config.patch(allow_unspec_int_on_nn_module=_allowed):
        assert (versions(_Threshold(), [(x,)] * 10) < 4) == _allowed
        for _n in range(1, 10):
            _threshold._orig_mod.calls = _n - 1
            assert torch.equal(_threshold(x), x * (3 if _n % 4 else 2))


class _Cache(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("k", torch.zeros(2, 16, 3))

    def forward(self, pos, x):
        self.k[:, pos] = x
        return self.k.sum()


_constant = 8 if torch.__version__ < "2.15" else 1
for _shape, _value, _expected in (((), (2, 3), _constant), ((1,), (2, 1, 3), 1)):
    _kept = _Cache()
    _calls = [(torch.full(_shape, n), torch.full(_value, n + 1.0)) for n in range(10)]
    assert versions(_kept, _calls) == _expected
    assert _kept.k[1, :, 2].tolist() == [*range(1, 11)] + [0] * 6
_weights = [nn.Parameter(torch.ones(n + 2, n + 3)) for n in range(10)]


def _update(p):
    p.sub_(p / p.norm())


with torch.no_grad():
    assert versions(_update, [(p,) for p in _weights], dynamic=True) == 8
assert versions(_update, [(p.detach(),) for p in _weights]) == 2
assert not any(p.eq(1).any() for p in _weights)


def _shared(self, x):
    return self.layer(x)


for _reset in (False, True):  # twelve classes with one forward
    torch._dynamo.reset()
    _stopped = 0
    for _ in range(12):
        _class = type("_Class", (nn.Module,), {"forward": _shared})()
        _class.layer = nn.Linear(4, 4)
        if _reset:
            torch._dynamo.reset()
        _one = torch.compile(_class, backend="eager", fullgraph=True)
        try:
            assert torch.equal(_one(x), _class.layer(x))
        except torch._dynamo.exc.FailOnRecompileLimitHit:
            _stopped += 1
    assert _stopped == (0 if _reset else 4)
_cache, _caches = torch.ones(1, 4), []
for _ in range(10):
    _caches.append((_cache, torch.ones(1, 4)))
    _cache = torch.cat(_caches[-1])
assert versions(lambda old, new: torch.cat([old, new]), _caches) == 2
# sphinx_gallery_end_ignore

# %%
# - **A shape**, such as the image size. Leave out ``dynamic=False``. For parameters of many shapes, as in Muon, also pass
#   ``p.detach()`` in place of ``p``.
# - **An index**, as in ``self.k[:, pos] = x``. Pass ``pos`` as a tensor of shape ``(1,)``, and write ``x[:, None]``. In PyTorch
#   2.13, one without a dimension becomes a constant.
# - **An integer that must stay one,** as in an ``if``. ``torch._dynamo.config.allow_unspec_int_on_nn_module = True`` treats it
#   as an argument.
# - **A list that grows**, such as a cache of keys. Put its tensors together with ``torch.cat``: then only a shape changes.
# - **A function or an object**, as in ``___check_obj_id``, for example a new mask function. Use the same one in each call. If
#   there are few, write ``torch._dynamo.config.recompile_limit = 64``.
# - **Models in a loop**, as in ``___check_type_id(self, …)``. Call ``torch._dynamo.reset()`` before each.
#
# With fullgraph=True it is an error
# ----------------------------------
# After the warning, the call that would be plain Python raises:

# sphinx_gallery_start_ignore
raised = []
warned.clear()
torch._dynamo.reset()
try:
    # sphinx_gallery_end_ignore
    @torch.compile(fullgraph=True, dynamic=False, backend="eager")
    def mean(x):
        return x.mean()

    for rows in range(1, 11):
        mean(torch.ones(rows))
# sphinx_gallery_start_ignore
except torch._dynamo.exc.FailOnRecompileLimitHit as error:
    raised.append(str(error))
    _cause = str(error.__cause__).partition("\n")[0]
    print(f"torch._dynamo.exc.Unsupported: {_cause}")
    print(f"torch._dynamo.exc.FailOnRecompileLimitHit: {error}")
    assert rows == 9 and _cause == "Dynamo recompile limit exceeded"
assert raised == ["Hard failure due to fullgraph=True"]
assert "size mismatch at index 0. expected 8, actual 9" in warned[0]
# sphinx_gallery_end_ignore

# %%
# The fix is the same: in this code, leave out ``dynamic=False``.
#
# See also
# --------
# - :ref:`sphx_glr_gallery_errors_data_dependent_branching.py`: what cannot be compiled at all.
# - :ref:`sphx_glr_gallery_graphs_static_and_dynamic.py`.
# - In PyTorch's reference: `recompilation
#   <https://docs.pytorch.org/docs/stable/user_guide/torch_compiler/compile/programming_model.recompilation.html>`__.
