r"""
Function 'SqrtBackward0' returned nan values in its 0th output.
===============================================================

.. index::
   ! single: loss is fine and the weights become NaN
   ! single: gradient is NaN after the first backward
   ! single: Function 'PowBackward0' returned nan values in its 0th output

Anomaly mode says this when a node turns a gradient into NaN. Usually a factor without a limit, from ``sqrt``, a
division or a norm at zero, meets a gradient of zero.
"""

# %%
# The shortest code that raises it
# --------------------------------
# Anomaly mode also prints a warning with the line of the forward pass. It is caught here, and that line shown.

import warnings

import torch

x = torch.tensor(0.0, requires_grad=True)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    try:
        with torch.autograd.detect_anomaly():
            y = torch.sqrt(x) * 0
            y.backward()
    except RuntimeError as error:
        print("RuntimeError:", error)
        assert str(error).startswith("Function 'SqrtBackward0' returned nan values")

forward = [str(w.message) for w in caught if "Traceback of forward" in str(w.message)]
line = next(line.strip() for line in forward[0].splitlines() if "sqrt" in line)
print("from the warning:", line)

# sphinx_gallery_start_ignore
assert len(forward) == 1 and line == "y = torch.sqrt(x) * 0"
x.grad = None
(torch.sqrt(x) * 0).backward()
assert x.grad.isnan()
# sphinx_gallery_end_ignore

# %%
# Without anomaly mode there is no message at all. Backward ends well, and the NaN is in ``x.grad``.

# %%
# Why
# ---
# The value is fine: the root of 0 is 0. Its derivative :math:`\frac{1}{2 \sqrt{x}}` is infinite there. The gradient
# that arrives is 0, because of the factor, and 0 times infinity is NaN.

x.grad = None
root = torch.sqrt(x)
root.retain_grad()
y = root * 0
y.backward()

# graph: y -- The values are fine; between root and x, a gradient of 0 meets a derivative without a limit

print("root.grad =", root.grad.item(), "  x.grad =", x.grad.item())
assert root.grad == 0 and x.grad.isnan()

# %%
# One NaN is enough. The optimizer writes it into the weight, the next forward pass brings it into all that follows,
# and the loss shows it one step too late. So look where it is born.

w = torch.tensor([0.0, 3.0], requires_grad=True)
length = (w**2).sum(dim=0).sqrt()
distance = (w - w.detach()).square().sum().sqrt()
(length + distance).backward()
print("w.grad =", w.grad.tolist(), "from a distance of", distance.item())
assert w.grad.isnan().all() and distance == 0

# %%
# The fix
# -------
# Keep the argument away from the point without a derivative. For a distance, add a small number *under* the root: the
# gradient at zero is then zero.


def safe_distance(a, b):
    return ((a - b).square().sum() + 1e-12).sqrt()


w.grad = None
safe_distance(w, w.detach()).backward()
print("at distance zero:", w.grad.tolist())

w.grad = None
safe_distance(w, torch.tensor([3.0, 3.0])).backward()
print("elsewhere:       ", w.grad.tolist())
assert w.grad.tolist() == [-1, 0]

# %%
# ``torch.linalg.vector_norm`` has a gradient of zero at zero built in. A quotient needs the same care: mend the
# *denominator* before the division.

w.grad = None
torch.linalg.vector_norm(w - w.detach()).backward()
print("vector_norm:     ", w.grad.tolist())
assert w.grad.tolist() == [0, 0]

# %%
# What not to do
# --------------
# **Mend the result.** ``nan_to_num`` and ``torch.where`` on the *value* come too late: the value was never the
# problem. In backward the gradient of the discarded branch is zero, and it meets the same infinite factor.

x.grad = None
torch.where(x > 0, torch.sqrt(x), 0.0).backward()
print("where:     x.grad =", x.grad.item())
assert x.grad.isnan()

x.grad = None
torch.nan_to_num(torch.sqrt(x) * 0).backward()
print("nan_to_num: x.grad =", x.grad.item())
assert x.grad.isnan()

# %%
# **Replace the NaN in the gradient by zero.** The message is gone, and training goes on. But every other path to the
# tensor has been lost with it: the sum was NaN, so the part that was right is thrown away too.

w.grad = None
bad = (w - w.detach()).square().sum().sqrt()
good = (2 * w).sum()
(bad + good).backward()
print("mended:", w.grad.nan_to_num().tolist(), "  without the distance: [2.0, 2.0]")
assert w.grad.nan_to_num().tolist() == [0, 0]

# sphinx_gallery_start_ignore
w.grad = None
(2 * w).sum().backward()
assert w.grad.tolist() == [2, 2]
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_debugging_anomaly_detection.py`: how to read the two tracebacks
# - :ref:`sphx_glr_gallery_debugging_finding_nans.py`: a NaN in the forward pass, which anomaly mode does not report
# - :ref:`sphx_glr_gallery_differentiation_points_without_a_derivative.py`: which gradient PyTorch returns where there
#   is none
# - `Anomaly detection <https://docs.pytorch.org/docs/stable/autograd.html#anomaly-detection>`__ in PyTorch's reference
