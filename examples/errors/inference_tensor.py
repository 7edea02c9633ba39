r"""
Inference tensors cannot be saved for backward
==============================================

.. index::
   ! single: training fails after a validation pass under inference_mode
   ! single: Inplace update to inference tensor outside InferenceMode is not allowed
   ! single: Inference tensors do not track version counter, with torch.compile or after val() of YOLO
   ! single: Setting requires_grad=True on inference tensor outside InferenceMode

.. in-short::

   A tensor that was made under ``torch.inference_mode()`` is used in training, and backward would need it. Make it under
   ``torch.no_grad()`` instead. If you cannot change that, use ``features.clone()`` after the ``with`` block.

   .. code-block:: diff

      - with torch.inference_mode():
      + with torch.no_grad():
            features = backbone(images)
        loss = head(features).mean()

   **Not this:** a clone, or ``no_grad``, where ``backbone`` is meant to be trained too: it would get no gradient. Take the mode
   away there, also as a decorator.
"""

# %%
# The code that raises it
# -----------------------

import torch
from torch import nn

torch.manual_seed(0)

# sphinx_gallery_start_ignore
try:
    # sphinx_gallery_end_ignore
    backbone, head = nn.Linear(5, 3), nn.Linear(3, 1)
    images = torch.randn(4, 5)

    with torch.inference_mode():
        features = backbone(images)
    loss = head(features).mean()
# sphinx_gallery_start_ignore
except RuntimeError as error:
    message = str(error)
    print("RuntimeError:", message)
assert message.startswith("Inference tensors cannot be saved for backward.")
# sphinx_gallery_end_ignore

# %%
# The traceback ends at the operation that would save the tensor, here ``head``. Fix the line where the tensor was made. Usual
# sources are features or labels made beforehand, a cache that validation or ``generate`` has filled, and a model that was built
# in that mode.
#
# Why
# ---
# Backward checks whether a saved tensor was written to in the meantime. It reads :ref:`the tensor's version counter
# <sphx_glr_gallery_differentiation_inplace_and_versions.py>`. An inference tensor has none, so it cannot be saved. A sum saves
# nothing and takes it. A product needs a clone:

w = torch.ones(3, requires_grad=True)
added = w + features[0]
multiplied = w * features[0].clone()

# graph: added, multiplied -- The sum saves nothing, the product saves its other factor

# sphinx_gallery_start_ignore
assert not hasattr(added.grad_fn, "_saved_other")
assert torch.equal(multiplied.grad_fn._saved_other, features[0])
raised = []
for _call in (lambda: features._version, lambda: w * features[0]):
    try:
        _call()
    except RuntimeError as error:
        raised.append(str(error))
assert raised == ["Inference tensors do not track version counter.", message]
# sphinx_gallery_end_ignore

# %%
# The fix
# -------
# **Use** ``no_grad`` **for what training needs later.**

with torch.no_grad():
    features = backbone(images)
loss = head(features).mean()
loss.backward()
print("head.weight.grad:", head.weight.grad)

# sphinx_gallery_start_ignore
assert torch.allclose(head.weight.grad, features.mean(0, keepdim=True))
head.zero_grad()
# sphinx_gallery_end_ignore

# %%
# **If you cannot change the mode, clone** outside of it. A view is still an inference tensor, and so is the result of
# ``float()`` if there was nothing to convert.

with torch.inference_mode():
    given = torch.tensor([4.0, 5.0, 6.0])
    inside = given.clone()

attempts = {
    "clone() outside": given.clone(),
    "double()": given.double(),
    "clone() inside": inside,
    "detach()": given.detach(),
    "float()": given.float(),
    "view(3)": given.view(3),
}
for name, tensor in attempts.items():
    print(f"{name:<16} inference tensor: {tensor.is_inference()}")

# sphinx_gallery_start_ignore
assert [t.is_inference() for t in attempts.values()] == [False, False] + [True] * 4
with torch.inference_mode():
    _inside = backbone(images).clone()
    _outside = backbone(images)
head(_outside.clone()).mean().backward()
head.zero_grad()
raised = []
try:
    head(_inside)
except RuntimeError as error:
    raised.append(str(error))
assert raised == [message]
_same = [
    given.reshape(3, 1),
    given[0],
    given.t(),
    given.to("cpu"),
    given.to(given.dtype),
]
assert all(t.is_inference() for t in _same)
# sphinx_gallery_end_ignore

# %%
# **If it is a table of constants that the first call fills,** such as positions, switch the mode off where it is filled.


class Waves(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 3)
        self.table = None

    def forward(self, x):
        if self.table is None:
            with torch.inference_mode(False):
                self.table = torch.cos(torch.arange(3.0, device=x.device))
        return self.layer(x) * self.table


model = Waves()
with torch.inference_mode():
    model(torch.ones(1, 3))  # validation first, and training next
model(torch.ones(1, 3)).sum().backward()
print("layer.bias.grad:", model.layer.bias.grad)


# sphinx_gallery_start_ignore
class _Late(Waves):
    def forward(self, x):
        if self.table is None:
            self.table = torch.cos(torch.arange(3.0))
        return super().forward(x)


assert torch.allclose(model.layer.bias.grad, torch.cos(torch.arange(3.0)))
_late = _Late()
with torch.inference_mode():
    _late(torch.ones(1, 3))
    _built = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 1))
_converted = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 1)).double()
with torch.inference_mode():
    _converted.float()
raised = []
for _model in (_late, _built, _converted):
    try:
        _model(torch.ones(1, 3))
    except RuntimeError as error:
        raised.append(str(error))
assert raised == [message] * 3
import copy

for _model in (_late, _built, _converted):
    _copied = copy.deepcopy(_model)
    _output = _copied(torch.ones(1, 3))
    _output.square().sum().backward()
    assert all(p.grad is not None for p in _copied.parameters())
    with torch.no_grad():
        assert torch.equal(_output, _model(torch.ones(1, 3)))
_model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 1))  # a node of ComfyUI
with torch.inference_mode():
    _model.double()
    _given = torch.rand(4, 3, dtype=torch.float64)
    with torch.inference_mode(False):
        raised = []
        try:
            _model(_given.clone())
        except RuntimeError as error:
            raised.append(str(error))
        assert raised == [message]
        _copied = copy.deepcopy(_model)
        _copied(_given.clone()).square().sum().backward()
        _slope = _copied[0].weight.grad
_double = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 1)).double()
_double.load_state_dict(_model.state_dict())
_double(_given.clone()).square().sum().backward()
assert torch.allclose(_slope, _double[0].weight.grad)
with torch.inference_mode():
    _model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 1))
_model.double()  # outside: each parameter gets new data
assert not any(p.is_inference() for p in _model.parameters())
raised = []
try:
    _model(_given.clone())
except RuntimeError as error:
    raised.append(str(error))
assert raised == ["Inference tensors do not track version counter."]
_copied = copy.deepcopy(_model)
_copied(_given.clone()).square().sum().backward()
_double.load_state_dict(_model.state_dict())  # as a model that is loaded again
_double.zero_grad()
_double(_given.clone()).square().sum().backward()
assert torch.allclose(_copied[0].weight.grad, _double[0].weight.grad)
_late.table = _late.table.clone()
_late(torch.ones(1, 3)).sum().backward()
assert torch.allclose(_late.layer.bias.grad, _late.table)


class _Decorated(nn.Linear):
    forward = torch.inference_mode()(nn.Linear.forward)


with torch.inference_mode():
    _labels = torch.tensor([0, 1, 2, 0])
raised = []
for _call in (
    lambda: head(_Decorated(5, 3)(images)),
    lambda: nn.functional.cross_entropy(nn.Linear(5, 3)(images), _labels),
):
    try:
        _call()
    except RuntimeError as error:
        raised.append(str(error))
assert raised == [message] * 2
# sphinx_gallery_end_ignore

# %%
# **If it is a model,** build it and convert it outside of the mode. If a library did it inside, train ``copy.deepcopy(model)``,
# made outside, and create the optimizer after that.
#
# **If a program around yours opened the mode:** Lightning has ``Trainer(inference_mode=False)``. In a node of ComfyUI, clone
# the tensors and ``deepcopy`` the model below ``with torch.inference_mode(False):``, and train there.
#
# How to find the tensor
# ----------------------
# This lists the parameters, buffers and attributes of a model that are inference tensors, but not those in a list or dict, such
# as a cache. A table of a library gets a clone of itself: ``model[0].table = model[0].table.clone()``.


def inference_tensors(model):
    for name, module in model.named_modules():
        values = {**vars(module), **module._parameters, **module._buffers}
        for attribute, value in values.items():
            if isinstance(value, torch.Tensor) and value.is_inference():
                yield f"{name}.{attribute}".lstrip(".")


model = nn.Sequential(Waves(), nn.BatchNorm1d(3))
with torch.inference_mode():
    model[0].table = torch.ones(3)
    model[1].double()
print(list(inference_tensors(model)))

# sphinx_gallery_start_ignore
assert {"0.table", "1.weight", "1.bias", "1.running_mean"} <= set(
    inference_tensors(model)
)
assert not list(inference_tensors(nn.Sequential(Waves(), nn.BatchNorm1d(3))))
with torch.inference_mode():
    model.seen = torch.ones(3)
    model.cache = {"keys": torch.ones(3)}
assert set(inference_tensors(model)) >= {"seen"}
assert not any("cache" in name for name in inference_tensors(model))
with torch.inference_mode():  # all that training needs is copied
    _built = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 3))
_built[0].bias.requires_grad = False
for _copied in (copy.deepcopy(_built), copy.deepcopy(_built.double())):
    assert not list(inference_tensors(_copied)) and not _copied[0].bias.requires_grad
    _sgd = torch.optim.SGD(_copied.parameters(), lr=0.1, momentum=0.9)
    for _ in range(2):
        _sgd.zero_grad()
        _copied(torch.rand(5, 3, dtype=_copied[0].weight.dtype)).sum().backward()
        _sgd.step()
    assert _copied[1].num_batches_tracked == 2
# sphinx_gallery_end_ignore

# %%
# Messages that are close to this one
# -----------------------------------
# **A write.** Outside of the mode, ``/=`` on an inference tensor raises, under ``no_grad`` too. So do ``load_state_dict()`` and
# ``optimizer.step()`` of a model that was built in the mode: train its ``deepcopy``.

# sphinx_gallery_start_ignore
raised = []
try:
    # sphinx_gallery_end_ignore
    with torch.inference_mode():
        test_loss = head(features).square().sum()
    test_loss /= len(features)
# sphinx_gallery_start_ignore
except RuntimeError as error:
    raised.append(str(error))
    print("RuntimeError:", error)

with torch.inference_mode():
    _layer = nn.Linear(3, 1)
    test_loss /= 2
_state = nn.Linear(3, 1).state_dict()
try:
    _layer.load_state_dict(_state)
except RuntimeError as error:
    raised.append(str(error))
with torch.no_grad():
    try:
        test_loss /= 2
    except RuntimeError as error:
        raised.append(str(error))
with torch.inference_mode():
    _layer = nn.Linear(3, 1)
_layer(torch.ones(2, 3)).sum().backward()  # nothing is saved that the mode has made
try:
    torch.optim.SGD(_layer.parameters(), lr=0.1).step()
except RuntimeError as error:
    raised.append(str(error))
_layer = copy.deepcopy(_layer)
_layer(torch.ones(2, 3)).sum().backward()
torch.optim.SGD(_layer.parameters(), lr=0.1).step()
assert _layer.bias.grad == 2
assert len(raised) == 4
_words = "Inplace update to inference tensor outside InferenceMode is not allowed."
assert all(_words in text for text in raised)
# sphinx_gallery_end_ignore

# %%
# Make a new tensor: ``test_loss = test_loss / len(features)``.
#
# **The flag.** Outside of the mode, an inference tensor cannot become a parameter that requires grad:

# sphinx_gallery_start_ignore
raised = []
try:
    # sphinx_gallery_end_ignore
    with torch.inference_mode():
        prompt = torch.zeros(3)
    prompt = nn.Parameter(prompt)
# sphinx_gallery_start_ignore
except RuntimeError as error:
    raised.append(str(error))
    print("RuntimeError:", error)
try:
    prompt.requires_grad_()
except RuntimeError as error:
    raised.append(str(error))
_words = "Setting requires_grad=True on inference tensor outside InferenceMode is not allowed."
assert raised == [_words] * 2
assert nn.Parameter(prompt.clone()).requires_grad
assert not (test_loss / len(features)).is_inference()
# sphinx_gallery_end_ignore

# %%
# Here too: ``nn.Parameter(prompt.clone())``.
#
# **Inference tensors do not track version counter.** The model was built in the mode and then moved or converted outside, as by
# ``val()`` of YOLO. ``is_inference()`` does not see that. Load the model again, or use ``copy.deepcopy(model)``. If
# ``torch.compile`` says it, use ``no_grad``.
#
# What not to do
# --------------
# **Clone a tensor whose gradient you need.** Nothing was recorded in the mode, and a clone does not bring it back:

network = nn.Sequential(backbone, head)


def trained():
    names = [name for name, p in network.named_parameters() if p.grad is not None]
    network.zero_grad()
    return names


with torch.inference_mode():
    features = backbone(images)
head(features.clone()).square().mean().backward()
print("mode and clone:", trained())

network(images).square().mean().backward()
print("recorded:      ", trained())

# sphinx_gallery_start_ignore
head(features.clone()).square().mean().backward()
assert trained() == ["1.weight", "1.bias"]
with torch.no_grad():
    _features = backbone(images)
head(_features).square().mean().backward()
assert trained() == ["1.weight", "1.bias"]
network(images).square().mean().backward()
assert len(trained()) == 4
_optimizer = torch.optim.SGD(head.parameters(), lr=0.1)
_losses = []
for _ in range(20):
    _loss = head(features.clone()).square().mean()
    _optimizer.zero_grad()
    _loss.backward()
    _optimizer.step()
    _losses.append(_loss.item())
assert _losses[-1] < _losses[0]
# sphinx_gallery_end_ignore

# %%
# The loss goes down anyway, because ``head`` learns.
#
# See also
# --------
# - :ref:`sphx_glr_gallery_differentiation_inplace_and_versions.py`: what the version counter is for.
# - :ref:`sphx_glr_gallery_modes_grad_modes.py`: ``no_grad``, ``inference_mode`` and the others side by side.
