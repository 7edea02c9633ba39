r"""
Legacy autograd function with non-static forward method is deprecated
=====================================================================

.. index::
   ! single: custom Function from an old repository no longer runs
   ! single: calling an instance of torch.autograd.Function
   ! single: Function should not be instantiated

.. in-short::

   An object of a custom ``Function`` is made and called: ``Reverse()(x)``. That is the form of early PyTorch. Make the methods
   static, and call ``apply`` on the class.

   .. code-block:: diff

      - y = Reverse()(x)
      + y = Reverse.apply(x)

   **Not this:** ``Reverse().forward(x)``. The message is gone, and your ``backward`` never runs.
"""

# %%
# The code that raises it
# -----------------------

import torch
from torch.autograd import Function

# sphinx_gallery_start_ignore
# isort: split
import warnings

raised = []
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    try:
        # sphinx_gallery_end_ignore
        class Reverse(Function):
            def forward(self, x):
                return x.clone()

            def backward(self, gradient):
                return -gradient

        x = torch.tensor(3.0, requires_grad=True)
        y = Reverse()(x)
    # sphinx_gallery_start_ignore
    except RuntimeError as error:
        message = str(error)
        raised.append(message)
        print("RuntimeError:", message)
assert len(raised) == 1 and message.startswith("Legacy autograd function with non-stat")
(_warning,) = caught
assert _warning.category is DeprecationWarning
assert "should not be instantiated" in str(_warning.message)
assert "invoke them on the class itself" in str(_warning.message)
# sphinx_gallery_end_ignore

# %%
# The call of the object raises. The first pair of parentheses, which makes the object, gives the warning
# *should not be instantiated*.
#
# Why
# ---
# In the old form, an object keeps on ``self`` what ``backward`` needs. Today the class only holds the formulas. Each recorded
# call of ``apply`` has its node in the graph. This node is the ``ctx`` of your methods, and it keeps what ``backward`` needs.
#
# The fix
# -------
# Make ``forward`` and ``backward`` static, call their first argument ``ctx`` in place of ``self``, and call ``apply`` on the
# class. What ``forward`` stored on ``self``, it stores on ``ctx``; inputs and outputs go into ``ctx.save_for_backward(x)``, but
# a memory bank that ``backward`` writes to stays on ``ctx``. ``saved_variables`` is now ``saved_tensors``. Other methods
# become functions outside of the class.
#
# For second derivatives, as in a gradient penalty, ``backward`` must compute what depends on the input again, from
# ``ctx.saved_tensors``. What is kept on ``ctx`` counts as a constant, without a message.


class Reverse(Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        return -gradient


y = Reverse.apply(x)
y.backward()
print("x.grad:", x.grad)

# sphinx_gallery_start_ignore
assert x.grad == -1 and y == 3 and y.grad_fn.name() == "ReverseBackward"
# sphinx_gallery_end_ignore

# %%
# **Arguments of the constructor** become arguments of ``apply``, as ``strength`` here. ``backward`` then returns one more value
# for each of them, ``None``.


class ReverseBy(Function):
    @staticmethod
    def forward(ctx, x, strength):
        ctx.strength = strength
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        return -ctx.strength * gradient, None


y = ReverseBy.apply(x, 1.0)
z = ReverseBy.apply(y, 0.5)
print(y.grad_fn.strength, z.grad_fn.strength)

# graph: z -- Two calls of apply made two nodes, each with its own strength

# sphinx_gallery_start_ignore
assert z.grad_fn.strength == 0.5 and y.grad_fn.strength == 1.0
assert z.grad_fn is not y.grad_fn and z.grad_fn.next_functions[0][0] is y.grad_fn
assert torch.autograd.grad(z, x)[0] == 0.5


class _Softplus(Function):
    @staticmethod
    def forward(ctx, x, again):
        ctx.again, ctx.power = again, x.exp()
        ctx.save_for_backward(x)
        return (1 + ctx.power).log()

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        power = x.exp() if ctx.again else ctx.power
        return gradient * power / (1 + power), None


def _penalty(function):
    x = torch.linspace(0, 1, 3, dtype=torch.double, requires_grad=True)
    (slope,) = torch.autograd.grad(function(x).square().sum(), x, create_graph=True)
    return torch.cat([slope, torch.autograd.grad(slope.square().sum(), x)[0]])


_true = _penalty(lambda x: (1 + x.exp()).log())
assert torch.allclose(_penalty(lambda x: _Softplus.apply(x, True)), _true)
_constant = _penalty(lambda x: _Softplus.apply(x, False))
assert torch.allclose(_constant[:3], _true[:3])
assert not torch.isclose(_constant[3:], _true[3:]).any()


class _Maximum(Function):  # inputs, outputs and something in between
    @staticmethod
    def forward(ctx, x):
        values, ctx.indices = x.max(1)
        ctx.save_for_backward(x, values)
        return values

    @staticmethod
    def backward(ctx, gradient):
        x, values = ctx.saved_tensors
        assert torch.equal(values, x.amax(1))
        return torch.zeros_like(x).scatter(1, ctx.indices[:, None], gradient[:, None])


for _size in (1, 4, 0):
    _rows = torch.rand(_size, 3, dtype=torch.double, requires_grad=True)
    assert _size == 0 or torch.autograd.gradcheck(_Maximum.apply, _rows)
    _Maximum.apply(_rows).sum().backward()
    assert _rows.grad.sum() == _size
# sphinx_gallery_end_ignore

# %%
# **A module that kept the object** keeps its settings and counters instead:

from torch import nn


class ReverseLayer(nn.Module):
    def __init__(self, strength):
        super().__init__()
        self.strength = strength

    def forward(self, x):
        return ReverseBy.apply(x, self.strength)


x.grad = None
ReverseLayer(0.5)(x).backward()
print("x.grad:", x.grad)

# sphinx_gallery_start_ignore
assert x.grad == -0.5
raised = []
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    for _call in (
        lambda: ReverseBy()(x, 0.5),
        lambda: Reverse()(x),
    ):
        try:
            _call()
        except RuntimeError as error:
            raised.append(str(error))
assert raised == [message] * 2


class _Rising(nn.Module):  # a schedule of the reversal
    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        return ReverseBy.apply(x, 0.1 * self.calls)


class _Counting(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.calls = getattr(ctx, "calls", 0) + 1
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        return -0.1 * ctx.calls * gradient


_rising, _found = _Rising(), {}
for _name, _call in (("module", _rising), ("ctx", _Counting.apply)):
    _found[_name] = [
        round(torch.autograd.grad(_call(x), x)[0].item(), 6) for _ in range(3)
    ]
assert _found == {"module": [-0.1, -0.2, -0.3], "ctx": [-0.1] * 3}


class _Memory(Function):  # backward writes to the memory bank
    @staticmethod
    def forward(ctx, rows, bank, saves):
        ctx.saves = saves
        ctx.save_for_backward(*(rows, bank) if saves else (rows,))
        ctx.bank = None if saves else bank
        return rows.mm(bank.t())

    @staticmethod
    def backward(ctx, gradient):
        rows, bank = ctx.saved_tensors if ctx.saves else (*ctx.saved_tensors, ctx.bank)
        result = gradient.mm(bank)
        bank[: len(rows)] = rows
        return result, None, None


def _remembers(saves):
    rows, bank = torch.rand(2, 3, requires_grad=True), torch.rand(4, 3)
    total = sum(_Memory.apply(rows, bank, saves).sum() for _ in range(2))
    try:
        total.backward()
    except RuntimeError as error:
        return "modified by an inplace operation" not in str(error)
    return torch.equal(bank[:2], rows)


assert _remembers(False) and not _remembers(True)


class _OldDetect(Function):
    def __init__(self, number):
        self.number = number

    def forward(self, x):
        return x.topk(self.number).values


class _Detect(nn.Module):
    def __init__(self, number):
        super().__init__()
        self.number = number

    forward = _OldDetect.forward


_scores = torch.tensor([1.0, 3.0, 2.0])
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    try:
        _OldDetect(2)(_scores)
    except RuntimeError as error:
        raised.append(str(error))
assert raised == [message] * 3 and _Detect(2)(_scores).tolist() == [3, 2]
assert not _Detect(2).state_dict()


class _Selecting(nn.Module):  # as nms of SSD does
    def forward(self, boxes, kept):
        return torch.index_select(boxes, 0, kept, out=boxes.new())


_boxes = torch.rand(3, 4, requires_grad=True) * 2
for _recorded in (True, False):
    _module = _Selecting()
    if not _recorded:
        _module.forward = torch.no_grad()(_module.forward)
    try:
        _chosen = _module(_boxes, torch.tensor([0, 2]))
    except RuntimeError as error:
        assert _recorded and "don't support automatic differentiation" in str(error)
    else:
        assert not _recorded and torch.equal(_chosen, _boxes[::2])
# sphinx_gallery_end_ignore

# %%
# **A Function without backward**, such as ``Detect`` in SSD, becomes an ``nn.Module``: change the base class, call
# ``super().__init__()`` first, and put ``@torch.no_grad()`` on ``forward``, where calls with ``out=`` raise otherwise.
#
# What not to do
# --------------
# **Only add** ``@staticmethod``. Calling an object still raises the same message: ``ReverseBy()(x, 0.5)``.
#
# **Only replace the call**, and keep the object: ``OldReverse(0.5).apply(x)``. ``apply`` makes a new node, so ``backward`` does
# not see what the constructor stored.

# sphinx_gallery_start_ignore
raised = []
try:
    # sphinx_gallery_end_ignore
    class OldReverse(Function):
        def __init__(self, strength):
            self.strength = strength

        def forward(self, x):
            return x.clone()

        def backward(self, gradient):
            return -self.strength * gradient

    y = OldReverse(0.5).apply(x)
    y.backward()
# sphinx_gallery_start_ignore
except AttributeError as error:
    raised.append(str(error))
    print("AttributeError:", error)
assert raised == ["'OldReverseBackward' object has no attribute 'strength'"]
# sphinx_gallery_end_ignore

# %%
# **Call** ``forward`` **yourself.** Autograd records the operations inside ``forward``, and your ``backward`` does not run: the
# gradient is not reversed.

x.grad = None
y = OldReverse(0.5).forward(x)
y.backward()
print(y.grad_fn.name(), "  x.grad:", x.grad)

# sphinx_gallery_start_ignore
assert y.grad_fn.name() == "CloneBackward0" and x.grad == 1
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_functions_exp_function.py`.
# - :ref:`sphx_glr_gallery_functions_change_the_gradient.py`.
# - In PyTorch's reference: `Extending torch.autograd
#   <https://docs.pytorch.org/docs/stable/notes/extending.html#extending-torch-autograd>`__.
