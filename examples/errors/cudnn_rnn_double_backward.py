r"""
the derivative for '_cudnn_rnn_backward' is not implemented
===========================================================

.. index::
   ! single: cudnn RNN backward can only be called in training mode
   ! single: Double backwards is not supported for CuDNN RNNs due to limitations in the CuDNN API
   ! single: gradient penalty or second derivative of an LSTM or GRU on a GPU
   ! single: saliency map or Grad-CAM of an LSTM in eval mode

.. in-short::

   You differentiate a gradient of an LSTM, GRU or RNN on a GPU, and cuDNN computes no second derivative. Compute the *forward*
   pass of this layer without cuDNN. The same change ends *cudnn RNN backward can only be called in training mode*.

   .. code-block:: diff

      - output, _ = lstm(x)
      + with torch.backends.cudnn.flags(enabled=False):
      +     output, _ = lstm(x)

   **Not this:** the same ``with`` around ``backward()`` or ``torch.autograd.grad``. The choice was made in forward.
"""

# %%
# The code that raises it
# -----------------------
# A gradient penalty. On a CUDA device it raises the error; on the CPU it runs.

# sphinx_gallery_start_ignore
import textwrap
from unittest import mock

import torch

_plain = torch._VF.lstm  # what nn.LSTM calls
_library = torch.library.Library("aten", "IMPL")
_backward = "aten::_cudnn_rnn_backward"


def _cudnn_backward_on_meta(x, weights, stride, buffer, h, c, *rest):
    new = torch.empty_like
    other = new(c) if c is not None else new(h)
    return new(x), new(h), other, [new(weight) for weight in weights]


if not torch._C._dispatch_has_kernel_for_dispatch_key(_backward, "Meta"):
    _library.impl("_cudnn_rnn_backward", _cudnn_backward_on_meta, "Meta")


def _cudnn(x, weights, h, c, mode, training=True):
    buffer = torch.empty(1, device="meta")
    sizes = (h.shape[-1], 0, 1, False, 0.0)
    return torch._cudnn_rnn(
        x, weights, len(weights), buffer, h, c, mode, *sizes, training, False, [], None
    )[:3]


def _lstm_of_a_gpu(x, state, weights, bias, layers, dropout, training, *rest):
    if not torch.backends.cudnn.enabled:
        return _plain(x, state, weights, bias, layers, dropout, training, *rest)
    return _cudnn(x, weights, *state, 2, training)


_gpu = mock.patch.object(torch._VF, "lstm", _lstm_of_a_gpu)
_gpu.start()
raised = []
try:
    # sphinx_gallery_end_ignore
    # This needs a GPU.
    import torch
    from torch import nn

    device = "cuda"
    # sphinx_gallery_start_ignore
    torch.manual_seed(0)
    device = "meta"
    # sphinx_gallery_end_ignore
    lstm = nn.LSTM(4, 8).to(device)
    x = torch.randn(5, 2, 4, device=device, requires_grad=True)

    output, _ = lstm(x)
    (slope,) = torch.autograd.grad(output.sum(), x, create_graph=True)
    penalty = slope.square().mean()
    penalty.backward()
# sphinx_gallery_start_ignore
except NotImplementedError as error:
    raised.append(str(error))
    for line in f"NotImplementedError: {error}".splitlines():
        print(textwrap.fill(line, 88))
assert len(raised) == 1
assert raised[0].startswith(
    "the derivative for '_cudnn_rnn_backward' is not implemented. Double backwards is not "
    "supported for CuDNN RNNs due to limitations in the CuDNN API."
)
assert "with torch.backends.cudnn.flags(enabled=False)" in raised[0]
for _kind, _mode in (("LSTM", 2), ("GRU", 3), ("RNN", 1)):
    _layer = getattr(nn, _kind)(4, 8, device="meta")
    _h = torch.zeros(1, 2, 8, device="meta")
    _c = _h if _kind == "LSTM" else None
    _y = _cudnn(x, list(_layer.parameters()), _h, _c, _mode)[0]
    assert _y.grad_fn.name() == "CudnnRnnBackward0"
    (_slope,) = torch.autograd.grad(_y.sum(), x, create_graph=True)
    try:
        _slope.square().mean().backward()
    except NotImplementedError as error:
        raised.append(str(error))
assert len(raised) == 4 and len(set(raised)) == 1
_on_cpu = nn.LSTM(4, 8)
_x = torch.randn(5, 2, 4, requires_grad=True)
with mock.patch.object(torch._VF, "lstm", _plain):
    _y = _on_cpu(_x)[0]
(_slope,) = torch.autograd.grad(_y.sum(), _x, create_graph=True)
_slope.square().mean().backward()
assert _on_cpu.weight_ih_l0.grad.norm() > 0
# sphinx_gallery_end_ignore

# %%
# (On this site hidden code calls cuDNN's operation on the device ``meta``.) If your message names
# ``_thnn_fused_lstm_cell_backward``, update PyTorch.
#
# The last frame of the traceback that is not PyTorch's tells which forward pass to change:
#
# .. list-table::
#    :header-rows: 1
#    :widths: 52 48
#
#    * - the frame
#      - put the ``with`` around
#    * - ``penalty.backward()``, ``loss_d.backward()`` of a GAN or a physical loss
#      - the forward pass whose slope is in the loss
#    * - ``torch.autograd.grad`` of a product with a vector (TRPO, a Hessian, influence)
#      - the forward pass of the loss or the policy, or ``hessian()`` and ``hvp()``, which run it
#    * - the outer ``backward()`` of meta-learning
#      - the whole inner loop (`higher#4 <https://github.com/facebookresearch/higher/issues/4>`__)
#
# Why
# ---
# cuDNN computes the whole layer, with all its time steps, in one operation. Its backward is one operation too, and PyTorch has
# no derivative for it. Without cuDNN, PyTorch computes each time step with operations that it can differentiate twice.
#
# .. how-measured:: This code counts the nodes in the graph of one LSTM, for sequences of four lengths, and draws them.

import matplotlib.pyplot as plt

LENGTHS = (5, 10, 20, 40)


def count_nodes(result):
    seen, waiting = set(), [result.grad_fn]
    while waiting:
        node = waiting.pop()
        if node and node not in seen and "AccumulateGrad" not in node.name():
            seen.add(node)
            waiting += [following for following, _ in node.next_functions]
    return len(seen)


def nodes(cudnn):
    counts = []
    for length in LENGTHS:
        sequence = torch.empty(length, 2, 4, device=device, requires_grad=True)
        with torch.backends.cudnn.flags(enabled=cudnn):
            counts.append(count_nodes(lstm(sequence)[0]))
    return counts


def draw(lines):
    _, ax = plt.subplots(figsize=(7, 2.2), layout="constrained")
    colors = ("#2563eb", "#c2410c")
    for (name, counts), color in zip(lines.items(), colors, strict=True):
        ax.plot(LENGTHS, counts, "o-", color=color)
        ax.text(LENGTHS[-1] + 1, counts[-1], name, color=color, va="center")
    ax.set(xlabel="length of the sequence", ylabel="nodes", xlim=(0, 52))
    ax.set_title("Nodes in the graph of one LSTM")


# %%
# The number of nodes, by the length of the sequence:

# This needs a GPU.
# sphinx_gallery_start_ignore
_with, _without = nodes(True), nodes(False)
assert len(set(_with)) == 1 and _with[0] == 1
assert _without == sorted(_without) and _without[-1] > 5 * 40
# sphinx_gallery_end_ignore
# figure: Two lines over the length of the sequence. With cuDNN there is one node for each length. Without it the number of
#   nodes grows with the length.
draw({"with cuDNN": nodes(True), "without cuDNN": nodes(False)})

# %%
# The fix
# -------
# Put only this layer into the ``with``:

# This needs a GPU.
with torch.backends.cudnn.flags(enabled=False):
    output, _ = lstm(x)
(slope,) = torch.autograd.grad(output.sum(), x, create_graph=True)
penalty = slope.square().mean()
penalty.backward()
print("weights with a gradient:", sum(w.grad is not None for w in lstm.parameters()))

# sphinx_gallery_start_ignore
assert all(w.grad is not None for w in lstm.parameters())
assert torch.backends.cudnn.enabled
_late = lstm(x)[0]
raised.clear()
with torch.backends.cudnn.flags(enabled=False):
    (_slope,) = torch.autograd.grad(_late.sum(), x, create_graph=True)
    try:
        _slope.square().mean().backward()
    except NotImplementedError as error:
        raised.append(str(error))
_gpu.stop()
assert len(raised) == 1  # around backward it does not help
# sphinx_gallery_end_ignore

# %%
# If your program sets ``fp32_precision``, the ``with`` can itself raise, with a message on TF32. Then set
# ``torch.backends.cudnn.enabled = False`` before this forward pass, and ``True`` after it.
#
# The price is time: :ref:`below <measured-cudnn-rnn>`, an LSTM takes about twice as long without cuDNN for 10 time steps, and
# about six times as long for 100.
#
# cudnn RNN backward can only be called in training mode
# ------------------------------------------------------
# .. quoted-message:: https://github.com/pytorch/pytorch/issues/15788
#
#    RuntimeError: cudnn RNN backward can only be called in training mode
#
# You call ``backward()`` after a forward pass in ``eval()``, where cuDNN does not keep what its backward needs. ``train()``
# right before ``backward()`` is too late.
#
# .. list-table::
#    :header-rows: 1
#    :widths: 50 50
#
#    * - the frame
#      - what to do
#    * - a training step, after an evaluation or a function that generates text
#      - That called ``eval()``. Call ``model.train()`` after it, before the forward pass.
#    * - a saliency map, ``captum``, an attack, influence, dynamic evaluation
#      - Forward without cuDNN, as above, or the whole ``attribute()``, which runs it. The model stays in ``eval()``.
#    * - a training step for layers before an LSTM in ``eval()``, such as a reward model
#      - The same, or ``train()`` for the LSTM alone, below.
#    * - a training step only for layers after the LSTM
#      - ``no_grad()`` for the LSTM, below
#
# **train() for this layer alone**: ``model.lstm.train()``. In an LSTM with ``dropout=0``, or with one layer, ``train()`` does
# not change the result, up to rounding:

lstm = nn.LSTM(4, 8)
x = torch.randn(5, 2, 4)
same = torch.equal(lstm.train()(x)[0], lstm.eval()(x)[0])
print("train() and eval() give the same:", same)

# sphinx_gallery_start_ignore
assert torch.allclose(lstm.train()(x)[0], lstm.eval()(x)[0]) and same
_two = nn.LSTM(4, 8, num_layers=2, dropout=0.5)
assert not torch.allclose(_two.train()(x)[0], _two.eval()(x)[0])
_two = nn.LSTM(4, 8, num_layers=2)
assert torch.allclose(_two.train()(x)[0], _two.eval()(x)[0])
# sphinx_gallery_end_ignore

# %%
# **no_grad()**, if you need no gradient of the LSTM or of anything before it:

head = nn.Linear(8, 1)
lstm.eval()
with torch.no_grad():
    features, _ = lstm(x)
head(features).mean().backward()
print("head:", head.weight.grad is not None, "  lstm:", lstm.weight_ih_l0.grad)

# sphinx_gallery_start_ignore
assert head.weight.grad.norm() > 0 and lstm.weight_ih_l0.grad is None
# sphinx_gallery_end_ignore

# %%
# What not to do
# --------------
# **Do not call train() on the whole model** for a saliency map: dropout is then random, and batch norm changes its running
# statistics.
#
# .. _measured-cudnn-rnn:
#
# Measured on a GPU
# -----------------
# .. needs-a-gpu::

import sys

if not torch.cuda.is_available():
    print("What follows is measured, and needs a CUDA device.")
    sys.exit()


def penalty_of(layer, x):
    output, _ = layer(x)
    (slope,) = torch.autograd.grad(output.sum(), x, create_graph=True)
    return slope.square().mean()


def says(call):
    try:
        call()
    except RuntimeError as error:  # NotImplementedError is one
        return f"{type(error).__name__}: {str(error).split('. ')[0]}"
    return "runs"


x = torch.randn(5, 2, 4, device="cuda", requires_grad=True)
for kind in (nn.LSTM, nn.GRU, nn.RNN):
    layer = kind(4, 8).cuda()
    print(f"{kind.__name__:<5}{layer(x)[0].grad_fn.name()}")
    message = says(lambda layer=layer: penalty_of(layer, x).backward())
    print("    ", message)
    assert message.endswith("derivative for '_cudnn_rnn_backward' is not implemented")

# %%
# Without cuDNN, the gradients of the penalty equal those that the CPU computes in float64, up to rounding:

lstm = nn.LSTM(4, 8).cuda()
with torch.backends.cudnn.flags(enabled=False):
    penalty = penalty_of(lstm, x)
penalty.backward()

exact = nn.LSTM(4, 8).double()
exact.load_state_dict(lstm.state_dict())
penalty_of(exact, x.detach().cpu().double().requires_grad_()).backward()
for (name, weight), other in zip(
    lstm.named_parameters(), exact.parameters(), strict=True
):
    close = torch.allclose(weight.grad.cpu().double(), other.grad, rtol=1e-3, atol=1e-4)
    print(f"{name:<14} norm {weight.grad.norm().item():.3f}   as on the CPU: {close}")
    assert close and weight.grad.norm() > 0

# %%
# After ``eval()``:


def attempt(layer, before_backward=lambda: None, **flags):
    with torch.backends.cudnn.flags(**flags):
        output, _ = layer(x)
    before_backward()
    return says(lambda: output.sum().backward())


lstm.eval()
outcomes = {
    "eval()": attempt(lstm, enabled=True),
    "eval(), train() before backward": attempt(lstm, lstm.train, enabled=True),
    "eval(), forward without cuDNN": attempt(lstm.eval(), enabled=False),
    "train() for this layer": attempt(lstm.train(), enabled=True),
}
for name, outcome in outcomes.items():
    print(f"{name:<34}{outcome}")
_training = "RuntimeError: cudnn RNN backward can only be called in training mode"
assert list(outcomes.values()) == [_training, _training, "runs", "runs"]

# %%
# The price: forward and backward of an LSTM with 256 features for 32 sequences, in milliseconds.

# varies: Times depend on the GPU and its libraries.

lstm = nn.LSTM(256, 256).cuda()


def milliseconds(length, cudnn, times=5):
    sequence = torch.randn(length, 32, 256, device="cuda")
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    for number in range(times + 2):
        if number == 2:  # the first two load and allocate
            begin.record()
        with torch.backends.cudnn.flags(enabled=cudnn):
            output, _ = lstm(sequence)
        output.sum().backward()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) / times


for length in (10, 100):
    fast, plain = milliseconds(length, True), milliseconds(length, False)
    print(f"{length:>4} time steps: with cuDNN {fast:5.1f} ms, without {plain:5.1f} ms")
assert plain > 1.5 * fast

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_errors_derivative_not_implemented.py`: the same for attention and other operations.
# - :ref:`sphx_glr_gallery_differentiation_higher_order.py`.
# - :ref:`sphx_glr_gallery_modes_train_and_eval.py`: what ``eval()`` switches.
# - In PyTorch's issues: `second derivatives of cuDNN's layers <https://github.com/pytorch/pytorch/issues/5261>`__.
