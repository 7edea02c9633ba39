r"""
mat1 and mat2 must have the same dtype, but got Double and Float
================================================================

.. index::
   ! single: expected scalar type Float but found Double
   ! single: Input type (double) and bias type (float) should be the same
   ! single: RNN input dtype (torch.float64) does not match weight dtype (torch.float32)
   ! single: mixed dtype (CPU): all inputs must share same datatype
   ! single: data from NumPy or pandas is float64
   ! single: expected dtype float for `end` but got dtype double
   ! single: optimizer.step() fails after model.double(), model.half() or model.bfloat16()
   ! single: expected dtype float for end but got dtype c10::BFloat16
   ! single: Half and Float in one model, with LoRA or in a pipeline of diffusers

.. in-short::

   The data and the weights have different types. NumPy makes ``float64`` (*Double*), PyTorch makes weights of ``float32``
   (*Float*). Convert the data once, where it becomes a tensor.

   .. code-block:: diff

      - x = torch.from_numpy(data)
      + x = torch.from_numpy(data).float()

   **Not this:** ``model.double()``. Every weight, gradient and activation then takes twice the memory.
"""

# %%
# The code that raises it
# -----------------------

import numpy as np
import torch
from torch import nn

torch.manual_seed(0)

# sphinx_gallery_start_ignore
try:
    # sphinx_gallery_end_ignore
    data = np.random.default_rng(0).random((8, 3))
    x = torch.from_numpy(data)
    model = nn.Linear(3, 1)
    model(x)
# sphinx_gallery_start_ignore
except RuntimeError as error:
    message = str(error)
    print("RuntimeError:", message)
assert message == "mat1 and mat2 must have the same dtype, but got Double and Float"
# sphinx_gallery_end_ignore

# %%
# Here *mat1* is what you passed, and *mat2* is the weight. Look for the last frame of the traceback that is not PyTorch's:
#
# .. list-table::
#    :header-rows: 1
#    :widths: 42 58
#
#    * - the frame
#      - what to fix
#    * - ``forward``, and *Double and Float*
#      - The data, or a NumPy array in the model: ``.float()``, as below. In Gym, give the spaces ``dtype=np.float32``.
#    * - a loss, or ``loss.backward()``
#      - The class weights, or :ref:`the targets <sphx_glr_gallery_errors_wrong_target_dtype.py>`.
#    * - ``forward``, and *Half* or *BFloat16* beside *Float*
#      - ``print({p.dtype for p in model.parameters()}, x.dtype)``. Two types in ``{}``: a part of the model differs. One: the
#        input, or a tensor made in ``forward``.
#    * - ``generate`` or an evaluation, after a training that ran
#      - Usually the training ran under ``autocast``. Use it there, too.
#    * - a block with ``autocast(enabled=False)``
#      - Begin it with ``x = x.float()``.
#    * - ``backward`` of your own Function, under ``autocast``
#      - Decorate ``forward(ctx, ...)`` with ``torch.amp.custom_fwd(device_type="cuda")``, ``backward`` with
#        ``custom_bwd(device_type="cuda")``.
#    * - ``x[index] = y``: *Index put requires*
#      - ``y.to(x.dtype)``. If ``x`` has integers, that cuts off decimals.
#    * - *ComplexFloat and Float*
#      - ``torch.view_as_real`` or ``abs()``. ``float()`` drops the imaginary part.
#    * - *Char*, *Byte* or *Float8* as *mat2*
#      - A quantized weight, which only its library can convert.
#    * - ``optimizer.step()``
#      - *expected dtype float for end*, see below.
#
# *Half* is ``torch.float16``, *BFloat16* ``torch.bfloat16``, *Long* ``torch.int64``, *Byte* or *unsigned char* ``torch.uint8``.
#
# Other operations say it differently:

double = torch.ones(2, 3, 3, dtype=torch.float64)
single = torch.ones(2, 3, 3)
calls = {
    "conv": lambda: nn.Conv1d(3, 4, 1)(double),
    "bytes": lambda: nn.Conv1d(3, 4, 1)(double.byte()),
    "bmm": lambda: double @ single,
    "@": lambda: double[0] @ single[0],
    "linear": lambda: nn.Linear(3, 1)(double.long()),
    "lstm": lambda: nn.LSTM(3, 1)(double),
    "norm": lambda: nn.LayerNorm(3)(double),
}
said = []
for name, call in calls.items():
    try:
        call()
    except (RuntimeError, ValueError) as error:
        said.append(str(error))
        print(f"{name:<7}", str(error)[:75])

# sphinx_gallery_start_ignore
assert said == [
    "Input type (double) and bias type (float) should be the same",
    "Input type (unsigned char) and bias type (float) should be the same",
    "expected scalar type Double but found Float",
    "expected m1 and m2 to have the same dtype, but got: double != float",
    "mat1 and mat2 must have the same dtype, but got Long and Float",
    "RNN input dtype (torch.float64) does not match weight dtype (torch.float32). "
    "Convert input: input.to(torch.float32), or convert model: model.to(torch.float64)",
    "mixed dtype (CPU): all inputs must share same datatype.",
]
_raised = []
for _dtype, _name in {torch.float16: "Half", torch.bfloat16: "BFloat16"}.items():
    for _layer, _words in (
        (nn.Linear(3, 1), f"but got {_name} and Float"),
        (nn.Conv1d(3, 4, 1), f"(c10::{_name})"),
    ):
        try:
            _layer(double.to(_dtype))
        except RuntimeError as error:
            _raised.append(_words in str(error))
try:
    nn.Conv1d(3, 4, 1)(double.long())
except RuntimeError as error:
    _raised.append("Input type (long int)" in str(error))
assert _raised == [True] * 5
# sphinx_gallery_end_ignore

# %%
# Why
# ---
# A sum or a product element by element converts its operands to a common type. A product of matrices and a convolution do not.
# ``torch.from_numpy`` keeps the type of an array.

print("from NumPy:", torch.tensor(data).dtype)
print("from Python:", torch.tensor(data.tolist()).dtype)
print("element by element:", (torch.ones(3) + torch.from_numpy(data[0])).dtype)

# sphinx_gallery_start_ignore
assert torch.tensor(data).dtype == torch.as_tensor(data).dtype == torch.float64
assert torch.tensor(data.tolist()).dtype == torch.float32
assert (torch.ones(3) + torch.from_numpy(data[0])).dtype == torch.float64
assert torch.tensor([1, 2]).dtype == torch.int64  # not every Python number is a float
# sphinx_gallery_end_ignore

# %%
# The fix
# -------
# Convert in ``__getitem__`` of the dataset:

x = torch.from_numpy(data).float()
loss = model(x).square().mean()
print(loss.dtype)

# graph: loss -- mat1 is the data, mat2 the transposed weight: AddmmBackward0 is the product of both

# sphinx_gallery_start_ignore
assert model(x).dtype == torch.float32
try:
    model(x + torch.from_numpy(np.ones(3)))  # as a constant in forward
except RuntimeError as error:
    _raised.append(str(error) == message)
assert _raised == [True] * 6
_half = nn.Sequential(nn.Linear(3, 3).half(), nn.Linear(3, 1))
assert len({p.dtype for p in _half.parameters()}) == 2
assert _half.half()(x.half()).dtype == torch.float16
# sphinx_gallery_end_ignore

# %%
# - **Half precision, to run a model**: convert all of it, ``model.half()``, and its floating point input, ``x.half()``. Noise
#   that ``forward`` makes follows with ``noise.to(x.dtype)``. Leave masks of bools as they are.
# - **Half precision, to train it**: keep what learns in ``float32``, an adapter or a new head, and compute under
#   :ref:`autocast <sphx_glr_gallery_memory_precision.py>` in ``bfloat16``, in a ``Trainer`` with ``bf16=True``.
# - **No half precision**, but ``from_pretrained`` loaded it: ``model.float()``.
# - **Integers**: ``x.float()``, for images of bytes ``x.float() / 255``, for ids of words ``nn.Embedding``.
#
# expected dtype float for \`end\` but got dtype double
# -----------------------------------------------------
# Adam keeps a running mean of each gradient, and the model was converted after a step:

import torch
from torch import nn

# sphinx_gallery_start_ignore
try:
    # sphinx_gallery_end_ignore
    model = nn.Linear(3, 1)
    optimizer = torch.optim.Adam(model.parameters())
    for dtype in (torch.float32, torch.float64):
        model.to(dtype)
        optimizer.zero_grad()
        model(torch.rand(8, 3, dtype=dtype)).square().mean().backward()
        optimizer.step()
# sphinx_gallery_start_ignore
except RuntimeError as error:
    said.append(str(error))
    print("RuntimeError:", error)
assert said[-1] == "expected dtype float for `end` but got dtype double"


def _after(convert, make, reload=False):
    """What the second step says if the model is converted in between, or the types of the state."""
    net = nn.Linear(3, 1)
    steps = make(net.parameters())
    for convert_to in (torch.float32, convert):
        net.to(convert_to)
        if reload:
            steps.load_state_dict(steps.state_dict())
        steps.zero_grad()
        net(torch.ones(8, 3, dtype=convert_to)).sum().backward()
        try:
            steps.step()
        except RuntimeError as error:
            return str(error)
    state = steps.state[net.weight]
    return {number.dtype for name, number in state.items() if name != "step"}


for _type, _name in (
    (torch.float64, "double"),
    (torch.float16, "c10::Half"),
    (torch.bfloat16, "c10::BFloat16"),
):
    for _make in (torch.optim.Adam, torch.optim.AdamW, torch.optim.NAdam):
        _said = f"expected dtype float for `end` but got dtype {_name}"
        assert _after(_type, _make) == _said
        assert _after(_type, _make, reload=True) == {_type}
assert _after(torch.float64, lambda p: torch.optim.Adam(p, fused=True)) == (
    "expected scalar type Double but found Float"
)
# sphinx_gallery_end_ignore

# %%
# To train in half precision, do not convert the model: use ``autocast``. For ``float64``, the order is: first the type, then
# the optimizer, then its state from a file. In the middle of a training, load the state into the same optimizer, which
# converts it to the type of the weights:

model = nn.Linear(3, 1)
optimizer = torch.optim.Adam(model.parameters())
for dtype in (torch.float32, torch.float64):
    model.to(dtype)
    optimizer.load_state_dict(optimizer.state_dict())
    optimizer.zero_grad()
    model(torch.rand(8, 3, dtype=dtype)).square().mean().backward()
    optimizer.step()
print(optimizer.state[model.weight]["exp_avg"].dtype)

# sphinx_gallery_start_ignore
assert optimizer.state[model.weight]["exp_avg"].dtype == torch.float64
assert optimizer.state[model.weight]["step"] == 2
# sphinx_gallery_end_ignore

# %%
# **An average** in ``float32``, of weights (EMA) or in your own optimizer, of a model in ``bfloat16``, says the same. Convert
# the weight, not the average:

average, weight = torch.zeros(3), nn.Parameter(torch.ones(3, dtype=torch.bfloat16))
with torch.no_grad():
    average.lerp_(weight.to(average.dtype), 0.01)
print(average)

# sphinx_gallery_start_ignore
assert not average.requires_grad
assert average.clone().lerp_(weight.float(), 0.01).requires_grad  # without no_grad
try:
    average.lerp_(weight, 0.01)
except RuntimeError as error:
    said.append(str(error))
assert said[-1] == "expected dtype float for `end` but got dtype c10::BFloat16"
assert torch.allclose(average, torch.full((3,), 0.01))
# a part in float16 and a part that learns in float32, under autocast
_base, _adapter = nn.Linear(3, 3).half().requires_grad_(False), nn.Linear(3, 3)
_x = torch.rand(2, 3)
with torch.autocast("cpu", dtype=torch.bfloat16):
    (_base(_x) + _adapter(_x)).float().square().sum().backward()
assert _adapter.weight.grad.dtype == torch.float32
for _dtype, _kept in ((torch.float16, False), (torch.bfloat16, True)):
    _layer = nn.Linear(3, 3)
    with torch.autocast("cpu", dtype=_dtype):  # without a scaler
        _loss = (_layer(torch.ones(2, 3)).float() * 1e-9).sum()
    _loss.backward()
    assert _layer.weight.grad.all() == _kept
# a mask of bools means another thing as numbers
_q, _mask = torch.rand(1, 3, 4), torch.ones(3, 3, dtype=torch.bool).tril()
_attend = nn.functional.scaled_dot_product_attention
assert torch.allclose(_attend(_q, _q, _q, attn_mask=_mask)[0, 0], _q[0, 0])
assert not torch.allclose(_attend(_q, _q, _q, attn_mask=_mask.float())[0, 0], _q[0, 0])


class _Scaled(nn.Module):
    def __init__(self, scale):
        super().__init__()
        self.scale, self.layer = nn.Parameter(scale), nn.Linear(3, 1)

    def forward(self, x):
        return self.layer(x * self.scale)


try:
    _Scaled(torch.from_numpy(np.ones(3)))(_x)
except RuntimeError as error:
    said.append(str(error))
assert said[-1] == message
assert _Scaled(torch.from_numpy(np.ones(3)).float())(_x).dtype == torch.float32
# your own Function


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x @ weight

    @staticmethod
    def backward(ctx, gradient):
        x, weight = ctx.saved_tensors
        return gradient @ weight.T, x.T @ gradient


class _Cast(torch.autograd.Function):
    forward = staticmethod(torch.amp.custom_fwd(_Product.forward, device_type="cpu"))
    backward = staticmethod(torch.amp.custom_bwd(_Product.backward, device_type="cpu"))


_weight = torch.rand(3, 2, requires_grad=True)
(_x @ _weight).square().sum().backward()
_right, _weight.grad = _weight.grad, None
for _function in (_Product, _Cast):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        _loss = _function.apply(_x, _weight).float().square().sum()
    try:
        _loss.backward()
    except RuntimeError as error:
        said.append(str(error))
assert said[-1].endswith("to have the same dtype, but got: c10::BFloat16 != float")
assert torch.allclose(_weight.grad, _right, rtol=0.05)
with torch.autocast("cpu", dtype=torch.bfloat16):
    _z = _adapter(_x)
    with torch.autocast("cpu", enabled=False):
        try:
            _adapter(_z)
        except RuntimeError as error:
            said.append(str(error))
        assert _adapter(_z.float()).dtype == torch.float32
assert said[-1].endswith("got BFloat16 and Float")
for _loss, _says in (
    (nn.CrossEntropyLoss(double[0, 0]), "expected scalar type Float but found Double"),
    (nn.CrossEntropyLoss(double[0, 0].float()), None),
):
    try:
        _loss(_adapter(_x), torch.tensor([0, 2]))
    except RuntimeError as error:
        _says = str(error) == _says
    assert _says in (True, None)
_scores = _adapter(_x)
try:
    nn.functional.binary_cross_entropy(
        _scores.sigmoid(), torch.ones_like(_scores).double()
    )
except RuntimeError as error:
    said.append(str(error))
assert said[-1] == "Found dtype Double but expected Float"
nn.functional.binary_cross_entropy(
    _scores.sigmoid(), torch.ones_like(_scores)
).backward()
_counts = torch.zeros(1, dtype=torch.int64)
_counts[torch.tensor([0])] = torch.tensor([1.7]).to(_counts.dtype)
assert _counts.item() == 1
for _write in (
    lambda: torch.zeros(3).__setitem__(torch.tensor([0]), torch.ones(1).half()),
    lambda: nn.Linear(3, 1)(torch.fft.fft(_x)),
    lambda: nn.functional.linear(_x, torch.ones(1, 3, dtype=torch.int8)),
):
    try:
        _write()
    except RuntimeError as error:
        said.append(str(error))
assert said[-3].startswith("Index put requires the source and destination dtypes match")
assert said[-2].endswith("but got ComplexFloat and Float")
assert "signed char" in said[-1] or "Char" in said[-1]
_before = []
try:
    _adapter(_base(_x.half()))
except RuntimeError as error:
    _before.append(str(error))
assert _before == ["mat1 and mat2 must have the same dtype, but got Half and Float"]
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_errors_wrong_target_dtype.py`, types of the targets of a loss.
