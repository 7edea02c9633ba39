r"""
expected dtype float for \`end\` but got dtype double
=====================================================

.. index::
   ! single: optimizer.step() fails after model.double(), model.half() or model.bfloat16()
   ! single: expected dtype float for end but got dtype c10::BFloat16
   ! single: lerp of an EMA in float32 and a model in bfloat16

.. in-short::

   Adam keeps a running mean of each gradient. You converted the model after a step or after loading the optimizer's state, and
   the means kept their type. Convert the model before that, or convert the means too.

   .. code-block:: diff

        model.double()
      + optimizer.load_state_dict(optimizer.state_dict())

   **Not this:** another optimizer because it does not raise. SGD with momentum keeps its state in the old type, in silence.
"""

# %%
# The code that raises it
# -----------------------

import torch
from torch import nn
from torch.nn import functional

# sphinx_gallery_start_ignore
# isort: split
from functools import partial

try:
    # sphinx_gallery_end_ignore
    x, y = torch.rand(8, 3), torch.rand(8, 1)
    model = nn.Linear(3, 1)
    optimizer = torch.optim.Adam(model.parameters())

    def train(x, y):
        loss = functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    train(x, y)
    model.double()
    train(x.double(), y.double())
# sphinx_gallery_start_ignore
except RuntimeError as error:
    message = str(error)
    print("RuntimeError:", message)
assert message == "expected dtype float for `end` but got dtype double"
# sphinx_gallery_end_ignore

# %%
# - ``float``: the type of the running mean. ``double``: the type of the gradient. ``c10::Half`` is ``float16``, and
#   ``c10::BFloat16`` is ``bfloat16``.
# - ``end``: the name of an argument of ``torch.lerp``. Adam computes ``exp_avg.lerp_(grad, 1 - beta1)``.
#
# Why
# ---
# ``model.double()`` converts the weights, and new gradients follow them. It knows nothing about the optimizer. There the means
# ``exp_avg`` and ``exp_avg_sq`` of each weight keep the type of the first step:

import matplotlib.pyplot as plt

state = optimizer.state[model.weight]
numbers = {
    "weight": model.weight,
    "gradient": model.weight.grad,
    "exp_avg": state["exp_avg"],
    "exp_avg_sq": state["exp_avg_sq"],
}
for name, number in numbers.items():
    print(f"{name:<11}", number.dtype)

# figure: Bytes of each number after model.double(). Weight and gradient have 8, the two means of Adam still have 4.
size = [number.element_size() for number in numbers.values()]
fig, ax = plt.subplots(figsize=(7, 1.7), layout="constrained")
ax.barh(list(numbers), size, color=["#047857"] * 2 + ["#c2410c"] * 2)
ax.set(xlabel="bytes of a number", xlim=(0, 8.5))
ax.set_title("model.double() does not reach the optimizer")
ax.invert_yaxis()

# sphinx_gallery_start_ignore
assert size == [8, 8, 4, 4]


def after(convert, make, reload=False):
    """What the second step says if the model is converted in between, or the types of the state."""
    model = nn.Linear(3, 1)
    optimizer = make(model.parameters())
    for convert_to in (torch.float32, convert):
        model.to(convert_to)
        if reload:
            optimizer.load_state_dict(optimizer.state_dict())
        optimizer.zero_grad()
        model(x.to(convert_to)).sum().backward()
        try:
            optimizer.step()
        except RuntimeError as error:
            return str(error)
    state = optimizer.state[model.weight]
    return {number.dtype for name, number in state.items() if name != "step"}


_types = {
    torch.float64: "double",
    torch.float16: "c10::Half",
    torch.bfloat16: "c10::BFloat16",
}
for _type, _name in _types.items():
    for _raises in ("Adam", "AdamW", "NAdam", "RAdam", "Adamax"):
        _make = getattr(torch.optim, _raises)
        _said = f"expected dtype float for `end` but got dtype {_name}"
        assert after(_type, _make) == _said
        assert after(_type, _make, reload=True) == {_type}
# sphinx_gallery_end_ignore

# %%
# The fix
# -------
# **In the middle of training**: load the optimizer's state into the same optimizer. ``load_state_dict`` converts the means to
# the type of the weights. In ``float64`` they keep their values. ``float16`` turns a small ``exp_avg_sq`` into 0.

model = nn.Linear(3, 1)
optimizer = torch.optim.Adam(model.parameters())
train(x, y)
model.double()
optimizer.load_state_dict(optimizer.state_dict())
train(x.double(), y.double())
print(optimizer.state[model.weight]["exp_avg"].dtype)

# sphinx_gallery_start_ignore
assert optimizer.state[model.weight]["exp_avg"].dtype == torch.float64
assert optimizer.state[model.weight]["step"] == 2
for _type in _types:
    _model = nn.Linear(3, 1)
    _adam = torch.optim.Adam(_model.parameters())
    (0.001 * _model(torch.ones(1, 3))).sum().backward()
    _adam.step()
    _kept = {name: n.clone() for name, n in _adam.state[_model.weight].items()}
    _model.to(_type)
    _adam.load_state_dict(_adam.state_dict())
    for _name, _number in _adam.state[_model.weight].items():
        assert _number.dtype == (torch.float32 if _name == "step" else _type)
        if _type == torch.float64:
            assert torch.equal(_number, _kept[_name].to(_number.dtype))
    _zero = (_adam.state[_model.weight]["exp_avg_sq"] == 0).all()
    assert _zero == (_type == torch.float16)
# sphinx_gallery_end_ignore

# %%
# **At the start, or from a checkpoint**: first the type, then the optimizer, then its state.

model = nn.Linear(3, 1).double()
restored = torch.optim.Adam(model.parameters())
restored.load_state_dict(optimizer.state_dict())

# sphinx_gallery_start_ignore
_float = nn.Linear(3, 1)
_optimizer = torch.optim.Adam(_float.parameters())
_float(x).sum().backward()
_optimizer.step()
restored = torch.optim.Adam(model.parameters())
restored.load_state_dict(_optimizer.state_dict())
assert restored.state[model.weight]["exp_avg"].dtype == torch.float64
optimizer = restored
train(x.double(), y.double())
# the wrong order: the state first, then the type
_float = nn.Linear(3, 1)
_late = torch.optim.Adam(_float.parameters())
_late.load_state_dict(_optimizer.state_dict())
_float.double()(x.double()).sum().backward()
_said = []
try:
    _late.step()
except RuntimeError as error:
    _said.append(str(error))
assert _said == [message]
# sphinx_gallery_end_ignore

# %%
# **To compute in half precision**: do not convert the model. Use :ref:`autocast <sphx_glr_gallery_memory_precision.py>`, or
# convert a copy for the evaluation: ``copy.deepcopy(model).half()``.
#
# The same message without Adam
# -----------------------------
# ``lerp`` needs both tensors in one type, and many averages of weights (EMA) use it. Here the model is in ``bfloat16`` and its
# average in ``float32``:

# sphinx_gallery_start_ignore
raised = []
try:
    # sphinx_gallery_end_ignore
    average = torch.zeros(3)
    weight = torch.ones(3, dtype=torch.bfloat16)
    average.lerp_(weight, 0.01)
# sphinx_gallery_start_ignore
except RuntimeError as error:
    raised.append(str(error))
    print("RuntimeError:", error)
assert raised == ["expected dtype float for `end` but got dtype c10::BFloat16"]
# sphinx_gallery_end_ignore

# %%
# Convert the weight, and keep the average in ``float32``:

average.lerp_(weight.to(average.dtype), 0.01)
print(average)

# sphinx_gallery_start_ignore
assert torch.allclose(average, torch.full((3,), 0.01))
_fused = partial(torch.optim.Adam, fused=True)
assert after(torch.float64, _fused) == "expected scalar type Double but found Float"
assert after(torch.float64, _fused, reload=True) == {torch.float64}
_model = nn.Linear(2, 2)
_average = torch.optim.swa_utils.AveragedModel(
    _model, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.99)
)
_model.bfloat16()
try:
    for _ in range(2):
        _average.update_parameters(_model)
except RuntimeError as error:
    raised.append(str(error))
assert raised == ["expected dtype float for `end` but got dtype c10::BFloat16"] * 2
_average = torch.optim.swa_utils.AveragedModel(
    nn.Linear(2, 2), avg_fn=lambda a, w, number: a.lerp(w.to(a.dtype), 0.01)
)
for _ in range(2):
    _average.update_parameters(_model)
assert _average.module.weight.dtype == torch.float32
# sphinx_gallery_end_ignore

# %%
# With PyTorch's ``AveragedModel``, pass this line as ``avg_fn=lambda a, w, number: a.lerp(w.to(a.dtype), 0.01)``.
#
# After ``model.double()``, Adam with ``fused=True`` raises ``expected scalar type Double but found Float`` instead. The fix is
# the same.
#
# What not to do
# --------------
# **Change the optimizer until it is silent.** SGD with momentum raises nothing. But its state is still ``float32``, and rounds
# each gradient of your ``float64`` weights:

model = nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
train(x, y)
model.double()
train(x.double(), y.double())
print(model.weight.dtype, optimizer.state[model.weight]["momentum_buffer"].dtype)

# sphinx_gallery_start_ignore
_before = model.weight.detach().clone()
train(x.double(), y.double())
_buffer = optimizer.state[model.weight]["momentum_buffer"]
assert torch.allclose(_before - model.weight, 0.1 * _buffer.double(), rtol=1e-12)
assert optimizer.state[model.weight]["momentum_buffer"].dtype == torch.float32
for _silent in (torch.optim.RMSprop, torch.optim.Adagrad, torch.optim.Adadelta):
    assert after(torch.float64, _silent) == {torch.float32}
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_training_optimizers.py`: what an optimizer keeps for each weight.
# - :ref:`sphx_glr_gallery_errors_different_dtypes.py`: types that differ in the forward pass.
# - In PyTorch's reference: `torch.lerp <https://docs.pytorch.org/docs/stable/generated/torch.lerp.html>`__.
