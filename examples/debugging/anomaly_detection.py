r"""
Anomaly detection: find the forward line behind a backward error
================================================================

.. index::
   single: set_detect_anomaly
   single: No forward pass information available
   single: Previous calculation was induced by
   single: enable anomaly detection to find the operation that failed

.. in-short::

   Run forward *and* backward in ``with torch.autograd.set_detect_anomaly(True):``. If a step of backward fails or returns NaN,
   you get an error, and a warning with the forward line that it belongs to. Values of the forward pass, and sums of gradients
   at a leaf, are not tested. The mode is slow, so turn it off after the run that fails.
"""

# %%
# The problem: NaN gradients, and no line
# ---------------------------------------
# A loss needs two distances, and you have their squares, one of which is 0. The loss is finite, ``backward()`` raises nothing,
# and a gradient is NaN:

import warnings

import torch


def root(x):
    return torch.sqrt(x).masked_fill(x <= 0, 0)


far = torch.tensor(9.0, requires_grad=True)
near = torch.tensor(0.0, requires_grad=True)
loss = root(far) + root(near)
loss.backward()

# graph: loss -- Two nodes are called SqrtBackward0: the name does not say which line made the NaN

# sphinx_gallery_start_ignore
assert loss == 3 and abs(far.grad - 1 / 6) < 1e-6 and near.grad.isnan()
_nodes, _waiting = [], [loss.grad_fn]
while _waiting:
    _node = _waiting.pop()
    _nodes.append(_node.name())
    _waiting += [_next for _next, _ in _node.next_functions if _next]
assert _nodes.count("SqrtBackward0") == 2
_below = torch.tensor(-1.0, requires_grad=True)
assert root(_below) == 0
# sphinx_gallery_end_ignore
print(loss.item(), far.grad.item(), near.grad.item())

# %%
# The same step in anomaly mode
# -----------------------------
# Each operation in forward makes a *node*, which computes its gradient in backward. **In anomaly mode, forward stores its stack
# in each node, and backward shows it when the node fails.** So put both passes into the mode. On your screen you get a warning
# and then an error.
#
# .. how-measured:: This code prints warnings and the error as a terminal does, less the folders, the line numbers and the
#    frames above this page.

import contextlib
import re
import traceback
from pathlib import Path

FOLDERS = [Path(torch.__file__).parents[1], Path(root.__code__.co_filename).parent]


def as_on_screen(warning):
    above, file, below = str(warning.message).partition(root.__code__.co_filename)
    above = above.splitlines(keepends=True)
    if file:  # leave out the frames above this page
        start = next(i for i, line in enumerate(above) if line.startswith("  File "))
        above = [*above[:start], above[-1]]
    text = "".join(above) + file + below
    for folder in FOLDERS:
        text = text.replace(f"{folder}/", "")
    text = re.sub(r", line \d+, in ", ", in ", text)
    text = re.sub(r"at /\S+/torch/csrc", "at torch/csrc", text)
    return f"{warning.category.__name__}: {text.rstrip()}"


def whole_traceback(error):
    error = error.with_traceback(error.__traceback__.tb_next)  # without this with block
    lines = "".join(traceback.format_exception(error)).splitlines()
    text = "\n".join(line for line in lines if line.strip(" ^~"))
    for folder in FOLDERS:
        text = text.replace(f"{folder}/", "")
    return re.sub(r", line \d+, in ", ", in ", text)


@contextlib.contextmanager
def print_as_on_screen(whole=False):
    texts = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            yield texts
        except RuntimeError as error:
            last = whole_traceback(error) if whole else f"RuntimeError: {error}"
        else:
            last = "no error"
    texts += [*map(as_on_screen, caught), last]
    print(*texts, sep="\n")


# %%
# ``print_as_on_screen()`` catches and prints both. Copy the inner ``with``:

with print_as_on_screen() as shown:
    with torch.autograd.set_detect_anomaly(True):
        first = root(far)
        second = root(near)
        loss = first + second
        loss.backward()

# sphinx_gallery_start_ignore
assert len(shown) == 2
assert shown[0].startswith(
    "UserWarning: Error detected in SqrtBackward0. Traceback of forward call that caused"
)
_frames = re.findall(r'File "(.+)", in (\S+)\n +(.+)', shown[0])
assert [_frame[1:] for _frame in _frames] == [
    ("<module>", "second = root(near)"),
    ("root", "return torch.sqrt(x).masked_fill(x <= 0, 0)"),
]
assert shown[1] == (
    "RuntimeError: Function 'SqrtBackward0' returned nan values in its 0th output."
)
_a = torch.tensor(float("nan"), requires_grad=True)
_b = torch.tensor(1.0, requires_grad=True)
_raised = []
with warnings.catch_warnings(record=True):
    warnings.simplefilter("always")
    with torch.autograd.set_detect_anomaly(True):
        _product = _a * _b  # its gradients: 1 for _a, NaN for _b
        assert _product.grad_fn.next_functions[1][0].variable is _b
        try:
            _product.backward()
        except RuntimeError as error:
            _raised.append(
                "'MulBackward0' returned nan values in its 1th" in str(error)
            )
assert _raised == [True]
# sphinx_gallery_end_ignore

# %%
# Your last line made the node, in ``root``. The line above it is the caller: ``second = root(near)``. ``masked_fill`` sends the
# gradient 0 to the square root, whose derivative at 0 divides by 0, and ``0 / 0`` is NaN. *0th output* is the first gradient
# that the node returns.

# %%
# A Function that raises in backward
# ----------------------------------
# Two layers use your own ``backward``, which has a bug: it forgets to transpose.


class Dense(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x @ weight

    @staticmethod
    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        return grad_output @ weight, x.mT @ grad_output  # weight.mT is right


def model(x):
    hidden = Dense.apply(x, torch.ones(3, 3, requires_grad=True))
    return Dense.apply(hidden, torch.ones(3, 1, requires_grad=True))


with print_as_on_screen(whole=True) as shown:
    loss = model(torch.ones(2, 3, requires_grad=True)).sum()
    loss.backward()

# sphinx_gallery_start_ignore
assert len(shown) == 1 and "return grad_output @ weight, x.mT" in shown[0]
assert "Dense.apply" not in shown[0] and "cannot be multiplied" in shown[0]
_square = torch.eye(3).cumsum(0).requires_grad_()
Dense.apply(torch.ones(2, 3, requires_grad=True), _square).sum().backward()  # no error
# sphinx_gallery_end_ignore

# %%
# Which of the two layers called it? In the mode, a warning comes first, with the line of the forward pass:

with print_as_on_screen(whole=True) as shown:
    with torch.autograd.set_detect_anomaly(True):
        loss = model(torch.ones(2, 3, requires_grad=True)).sum()
        loss.backward()

# sphinx_gallery_start_ignore
assert len(shown) == 2 and "return grad_output @ weight, x.mT" in shown[1]
assert "Error detected in DenseBackward." in shown[0]
assert "return Dense.apply(hidden" in shown[0] and "hidden = Dense" not in shown[0]
# sphinx_gallery_end_ignore

# %%
# So it is the second layer, whose weight is 3 by 1. With the square weight of the first, the same bug raises nothing: test a
# Function with :ref:`gradcheck <sphx_glr_gallery_functions_gradcheck.py>`.

# %%
# What is tested for NaN
# ----------------------
# In the mode, backward tests what each node returns, but not what is added to the ``.grad`` of a leaf, such as a parameter. In
# each case below, a NaN or an infinity comes up:
#
# .. how-measured:: This code runs each case with forward and backward in the mode, and keeps the error or what came out.

import pandas as pd


def node_returns_nan(x):
    torch.where(x > 0, torch.sqrt(x), 0.0).backward()


def loss_is_nan(x):
    torch.log(x - 1).backward()


def gradient_is_inf(x):
    torch.sqrt(x).backward()


def added_at_the_leaf(x):
    (torch.sqrt(x) - torch.sqrt(x)).backward()


def hook_of_a_leaf(x):
    x.register_hook(lambda gradient: gradient * float("nan"))
    (x * 2).backward()


CASES = {
    "a node returns NaN": node_returns_nan,
    "NaN in forward: log(-1)": loss_is_nan,
    "a gradient is inf": gradient_is_inf,
    "inf and -inf meet at a leaf": added_at_the_leaf,
    "a hook of a leaf returns NaN": hook_of_a_leaf,
}


def outcome(case):
    x = torch.tensor(0.0, requires_grad=True)
    with warnings.catch_warnings(record=True):
        warnings.simplefilter("always")
        try:
            with torch.autograd.set_detect_anomaly(True):
                case(x)
        except RuntimeError:
            return {"anomaly mode": "raises", "derivative": "none"}
    return {"anomaly mode": "says nothing", "derivative": str(x.grad.item())}


tested = pd.DataFrame({name: outcome(case) for name, case in CASES.items()}).T

# %%
# ``x`` is a leaf with the value 0. Only the first case raises:

# sphinx_gallery_start_ignore
assert tested["anomaly mode"].tolist() == ["raises"] + ["says nothing"] * 4
_returned = []  # a node that returns sparse, complex, and expanded ones
for _make, _name in [
    (lambda: torch.nn.Embedding(3, 2, sparse=True)(torch.tensor([0])), "Embedding"),
    (lambda: (far * 1j).exp(), "Exp"),
    (lambda: far.double().expand(3).exp(), "Exp"),
]:
    with warnings.catch_warnings(record=True):
        warnings.simplefilter("always")
        try:
            with torch.autograd.set_detect_anomaly(True):
                _made = _make()
                _made.backward(torch.full_like(_made, float("nan")))
        except RuntimeError as error:
            _returned.append(f"'{_name}Backward0' returned nan" in str(error))
assert _returned == [True] * 3
assert tested["derivative"].tolist() == ["none", "-1.0", "inf", "nan", "nan"]
_x = torch.tensor(0.0, requires_grad=True)
for _input in (_x, _x * 1):  # a leaf, and a tensor in the middle of the graph
    with torch.autograd.set_detect_anomaly(True):
        _loss = torch.sqrt(_input) - torch.sqrt(_input)
        assert torch.autograd.grad(_loss, _input)[0].isnan()
with torch.autograd.set_detect_anomaly(True, check_nan=False):
    node_returns_nan(_x)
assert _x.grad.isnan()
torch._dynamo.reset()
_x = torch.tensor([0.0, 9.0], requires_grad=True)
_raised = []
with warnings.catch_warnings(record=True):
    warnings.simplefilter("always")
    with torch.autograd.set_detect_anomaly(True):
        try:
            torch.compile(root, backend="aot_eager")(_x).sum().backward()
        except RuntimeError as error:
            _raised.append("'CompiledFunctionBackward' returned nan" in str(error))
assert _raised == [True]
_raised = []
for _bad in (float("nan"), float("inf")):
    _x.grad = torch.tensor([1.0, _bad])
    try:
        torch.nn.utils.clip_grad_norm_([_x], float("inf"), error_if_nonfinite=True)
    except RuntimeError as error:
        _raised.append("is non-finite" in str(error))
assert _raised == [True, True]
for _kind in (torch.float32, torch.bfloat16, torch.float16):
    _w = torch.zeros(2, dtype=_kind, requires_grad=True)
    for _values in ([1e3, -2.0], [0.0, 0.0]):
        _w.grad = torch.tensor(_values, dtype=_kind)
        torch.nn.utils.clip_grad_norm_([_w], float("inf"), error_if_nonfinite=True)
        assert _w.grad.tolist() == _values
# sphinx_gallery_end_ignore
tested.rename_axis(columns="what happens")

# %%
# So test the loss with ``assert loss.isfinite()``. Before the step,
# ``nn.utils.clip_grad_norm_(model.parameters(), float("inf"), error_if_nonfinite=True)`` tests the gradients and clips nothing.
#
# ``torch.compile`` turns many operations into one node, ``CompiledFunctionBackward``. Run the step without it to get your line.
#
# **The test itself can fail.** It calls ``item()``, which fails for batched gradients:

x = torch.tensor([1.0, 2.0], requires_grad=True)
with warnings.catch_warnings(record=True) as innocent:
    warnings.simplefilter("always")
    try:
        with torch.autograd.set_detect_anomaly(True):
            torch.autograd.grad(x.sin(), x, torch.eye(2), is_grads_batched=True)
    except RuntimeError as error:
        message = str(error)
        print("RuntimeError:", message)

# sphinx_gallery_start_ignore
assert message.startswith("Batching rule not implemented for aten::item")
assert "Error detected in SinBackward0" in str(innocent[0].message)
_functional, _raised = torch.autograd.functional, []
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    with torch.autograd.set_detect_anomaly(True):
        for _call in (
            lambda: _functional.jacobian(torch.sin, x.detach(), vectorize=True),
            lambda: (
                torch.ones(2, requires_grad=True, device="meta").sin().sum().backward()
            ),
        ):
            try:
                _call()
            except RuntimeError as error:
                _raised.append("item" in str(error) and "nan" not in str(error))
assert _raised == [True, True]
with torch.autograd.set_detect_anomaly(True, check_nan=False):
    _rows = torch.autograd.grad(x.sin(), x, torch.eye(2), is_grads_batched=True)[0]
    assert torch.allclose(_rows, x.cos().diag())
    _jacobian = _functional.jacobian(torch.sin, x.detach(), vectorize=True)
assert torch.allclose(_jacobian, x.cos().diag())
# sphinx_gallery_end_ignore

# %%
# Then ``set_detect_anomaly(True, check_nan=False)`` keeps the stacks and leaves the test out.

# %%
# What people get wrong
# ---------------------
# **Turning the mode on for backward only.** The stack is stored when a node is made, so the forward pass needs the mode too:

loss = root(far) + root(near)
with print_as_on_screen() as shown:
    with torch.autograd.set_detect_anomaly(True):
        loss.backward()

# sphinx_gallery_start_ignore
assert "No forward pass information available. Enable detect anomaly" in shown[0]
assert len(shown) == 2 and "returned nan values" in shown[1]
with torch.autograd.set_detect_anomaly(True):
    _loss = root(near)
_loss.backward()  # stored, and not tested
# sphinx_gallery_end_ignore

# %%
# **Losing the warning.** The forward line is in the warning. A filter that ignores warnings drops it, and so does a log that
# keeps exceptions only.
#
# **Searching with float16 and a GradScaler.** The scale is high at first, so gradients can overflow, and the scaler skips these
# steps. The mode raises there. Search in bfloat16 or float32.
#
# **Always fixing the line that is named.** Below, the square is named. But the cause is the square root after it: it returned
# ``inf``, which passes the test, and the square multiplied ``inf`` by 0. So if the named line is fine, look at the operation
# that uses its result.

with print_as_on_screen() as shown:
    with torch.autograd.set_detect_anomaly(True):
        square = near**2
        torch.sqrt(square).backward()

# sphinx_gallery_start_ignore
assert "square = near**2" in shown[0] and "torch.sqrt(square)" not in shown[0]
assert "'PowBackward0' returned nan" in shown[1]


def _step_with_scaler(kind, mode):
    torch.manual_seed(0)
    net = torch.nn.Sequential(*[torch.nn.Linear(8, 8) for _ in range(2)])
    scaler = torch.amp.GradScaler("cpu", enabled=kind == torch.float16)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    before = net[0].weight.detach().clone()
    with torch.autograd.set_detect_anomaly(mode):
        with torch.autocast("cpu", dtype=kind, enabled=kind != torch.float32):
            loss = (net(torch.ones(32, 8)) - 100).square().mean()
        scaler.scale(loss).backward()
    scaler.step(optimizer)
    return torch.equal(net[0].weight, before)


_raised = []
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    assert _step_with_scaler(torch.float16, False)  # skipped
    assert not _step_with_scaler(torch.bfloat16, True)
    assert not _step_with_scaler(torch.float32, True)
    try:
        _step_with_scaler(torch.float16, True)
    except RuntimeError as error:
        _raised.append("returned nan values" in str(error))
assert _raised == [True]
with warnings.catch_warnings(record=True) as _caught:
    warnings.simplefilter("ignore")
    with contextlib.suppress(RuntimeError), torch.autograd.detect_anomaly():
        root(near).backward()
assert not _caught
# sphinx_gallery_end_ignore

# %%
# After an *in-place* error, the named line *saved* the tensor, and a later line overwrote it: see :ref:`that message
# <sphx_glr_gallery_errors_modified_in_place.py>`.
#
# **Confusing two functions.** A plain call of ``detect_anomaly()`` turns nothing on, and ``with detect_anomaly(False):`` turns
# the mode *on*. Use ``set_detect_anomaly(True)``, which works as a call and in a ``with`` block.

# sphinx_gallery_start_ignore
with warnings.catch_warnings(record=True) as _caught:
    warnings.simplefilter("always")
    # sphinx_gallery_end_ignore
    torch.autograd.detect_anomaly()
    print("after detect_anomaly():", torch.is_anomaly_enabled())
    with torch.autograd.detect_anomaly(False):
        print("with detect_anomaly(False):", torch.is_anomaly_enabled())
        # sphinx_gallery_start_ignore
        assert torch.is_anomaly_enabled() and not torch.is_anomaly_check_nan_enabled()
assert not torch.is_anomaly_enabled() and len(_caught) == 2
assert "Anomaly Detection has been enabled" in str(_caught[0].message)
_state = torch.is_anomaly_enabled
torch.autograd.set_detect_anomaly(True)
assert _state()
with torch.autograd.set_detect_anomaly(False):
    assert not _state()
assert _state()
torch.autograd.set_detect_anomaly(False)
assert not _state()
_layer, _raised = torch.nn.Sigmoid(), []
with warnings.catch_warnings(record=True) as _caught:
    warnings.simplefilter("always")
    with torch.autograd.set_detect_anomaly(True):
        _gate = _layer(far)
        _gate.mul_(2)
        try:
            _gate.backward()
        except RuntimeError as error:
            _raised.append("modified by an inplace operation" in str(error))
assert _raised == [True] and "_gate = _layer(far)" in str(_caught[0].message)
assert "_gate.mul_(2)" not in str(_caught[0].message)
# sphinx_gallery_end_ignore

# %%
# "Previous calculation was induced by"
# -------------------------------------
# A gradient penalty runs backward through a gradient. If a node fails that was made by the first backward, its warning leads to
# ``torch.autograd.grad``, and a second warning leads to the line of the forward pass:


def penalty(x):
    score = x**1.5
    (slope,) = torch.autograd.grad(score, x, create_graph=True)
    return slope**2


with print_as_on_screen() as shown:
    with torch.autograd.set_detect_anomaly(True):
        penalty(near).backward()

# sphinx_gallery_start_ignore
assert len(shown) == 3 and "Error detected in PowBackward0" in shown[0]
assert "(slope,) = torch.autograd.grad(score, x, create_graph=True)" in shown[0]
assert "Previous calculation was induced by PowBackward0. Traceback" in shown[1]
assert "score = x**1.5" in shown[1] and "score = " not in shown[0]
assert "torch.autograd.grad(" not in shown[1]
# sphinx_gallery_end_ignore

# %%
# The derivative of :math:`x^{1.5}` is 0 at 0. Its own derivative, :math:`0.75\,x^{-0.5}`, is infinite there, and ``inf * 0`` is
# NaN.

# %%
# What the mode costs, and where the stack is
# -------------------------------------------
# The stack is text in ``node.metadata["traceback_"]``. How often does backward call PyTorch's operators, for a chain of 50
# ``tanh`` and a sum?
#
# .. how-measured:: A TorchDispatchMode counts the operators that run in backward, with the mode off and on.

from collections import Counter

from torch.utils._python_dispatch import TorchDispatchMode


class CountOperators(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.calls = Counter()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.calls[function.overloadpacket._qualified_op_name] += 1
        return function(*args, **(kwargs or {}))


def operators_in_backward(*switch):
    with torch.autograd.set_detect_anomaly(*switch):
        y = torch.ones(1000, requires_grad=True)
        for _ in range(50):
            y = torch.tanh(y)
        loss = y.sum()
        with CountOperators() as counter:
            loss.backward()
    return counter.calls


off = operators_in_backward(False)
on = operators_in_backward(True)
unchecked = operators_in_backward(True, False)

# %%
# The mode adds three calls for each of the 51 gradients, to look for NaN:

print("off:", off.total(), "  on:", on.total(), "  check_nan=False:", unchecked.total())
print(on - off)

# sphinx_gallery_start_ignore
with torch.autograd.set_detect_anomaly(True):
    _node = root(near).grad_fn
assert list(_node.metadata) == ["traceback_"] and root(near).grad_fn.metadata == {}
assert any("torch.sqrt(x).masked_fill" in line for line in _node.metadata["traceback_"])
with CountOperators() as _counter:
    torch.ones(()).item()
assert "aten::_local_scalar_dense" in _counter.calls
assert set((on - off).values()) == {51} and len(on - off) == 3 and off == unchecked
assert {name.removeprefix("aten::") for name in on - off} == {
    "isnan",
    "_is_any_true",
    "_local_scalar_dense",
}
# sphinx_gallery_end_ignore

# %%
# The last of the three is what ``item()`` calls, so on a GPU :ref:`each waits for the device
# <sphx_glr_gallery_cuda_devices.py>`. :ref:`The cost of recording <sphx_glr_gallery_profiling_cost_of_recording.py>`
# has times.

# %%
# Exercise
# --------
# Fix ``root``: the gradient must be 0 where x is 0, and right elsewhere. Check it in anomaly mode.
#
# .. solution::
#
# Keep the 0 away from the square root: put a harmless number in its place, and fill in 0 afterwards. The derivative at 4 is
# :math:`1 / (2\sqrt{4}) = 0.25`.


def fixed_root(x):
    safe = x.masked_fill(x <= 0, 1)
    return torch.sqrt(safe).masked_fill(x <= 0, 0)


x = torch.tensor([0.0, 4.0], requires_grad=True)
with torch.autograd.set_detect_anomaly(True):
    fixed_root(x).sum().backward()

print(fixed_root(x).tolist(), x.grad.tolist())
assert x.grad.tolist() == [0.0, 0.25]

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_errors_nan_in_backward.py`, the message of the first example and its usual causes.
# - :ref:`sphx_glr_gallery_functions_exp_function.py`, how to write a Function with its own backward.
# - In PyTorch's reference: `Anomaly detection
#   <https://docs.pytorch.org/docs/stable/autograd.html#anomaly-detection>`__ and `Node.metadata
#   <https://docs.pytorch.org/docs/stable/generated/torch.autograd.graph.Node.metadata.html>`__.
