r"""
GAN: two optimizers, and where to detach
========================================

.. index::
   single: why fake.detach() in a GAN
   single: the generator does not learn
   single: torch.no_grad in the generator's step
   single: freeze the discriminator while the generator learns
   single: discriminator loss 1.39, generator loss 0.69
   single: zero_grad with two optimizers
   single: WGAN-GP gradient penalty, create_graph
   single: several forward passes, one backward

.. in-short::

   Detach the fake samples in the discriminator's step, but keep their graph in the generator's step. Begin each of the
   two steps with its optimizer's ``zero_grad()``, and compute ``g_loss`` after ``opt_d.step()``:

   .. code-block:: python

      d_loss = bce(D(real), ones) + bce(D(fake.detach()), zeros)
      g_loss = bce(D(fake), ones)

   ``g_loss.backward()`` fills the ``.grad`` of D, too. If G runs under ``torch.no_grad()`` in the generator's step, G does not
   learn. For a gradient penalty, ``torch.autograd.grad`` needs ``create_graph=True``.
"""

# %%
# One step of D, one step of G
# ----------------------------
# A GAN trains two networks with two optimizers. If a ``detach()`` or a ``zero_grad()`` is in a wrong place, often no error is
# raised, but the training is wrong. Below is a loop that works. The generator ``G`` makes samples from noise. The discriminator
# ``D`` returns a logit for each sample: above 0 means "real". The samples are numbers, and the real ones have the mean 3 and
# the standard deviation 0.5. ``G`` is one linear layer, so its bias is the mean of its numbers, and the absolute value of its
# weight is their standard deviation.

import torch
from torch import nn

bce = nn.functional.binary_cross_entropy_with_logits
ones, zeros = torch.ones(64, 1), torch.zeros(64, 1)


def networks():
    torch.manual_seed(0)
    G = nn.Linear(1, 1)
    D = nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 1))
    opt_g = torch.optim.Adam(G.parameters(), lr=0.02, betas=(0.0, 0.9))
    opt_d = torch.optim.Adam(D.parameters(), lr=0.02, betas=(0.0, 0.9))
    return G, D, opt_g, opt_d


# sphinx_gallery_start_ignore
torch.set_num_threads(1)  # small tensors: more threads do not help
# sphinx_gallery_end_ignore
G, D, opt_g, opt_d = networks()
for _ in range(400):
    real = 3 + 0.5 * torch.randn(64, 1)
    fake = G(torch.randn(64, 1))

    d_loss = bce(D(real), ones) + bce(D(fake.detach()), zeros)
    opt_d.zero_grad()
    d_loss.backward()
    opt_d.step()

    g_loss = bce(D(fake), ones)
    opt_g.zero_grad()
    g_loss.backward()
    opt_g.step()

# graph: g_loss -- Backward passes through the discriminator to reach G, and fills the .grad of both

print(f"mean of G: {G.bias.item():.2f}")
print(f"standard deviation of G: {G.weight.abs().item():.2f}")

# sphinx_gallery_start_ignore
assert abs(G.bias.item() - 3) < 0.2 and abs(G.weight.abs().item() - 0.5) < 0.2
assert abs(d_loss.item() - 1.386) < 0.1 and abs(g_loss.item() - 0.693) < 0.1
_many = G(torch.randn(100_000, 1)).detach()
assert abs(_many.mean() - G.bias.item()) < 0.01
assert abs(_many.std() - G.weight.abs().item()) < 0.01
assert all(p.grad is not None for p in [*G.parameters(), *D.parameters()])
assert round(bce(zeros, ones).item() + bce(zeros, zeros).item(), 2) == 1.39
assert round(bce(zeros, ones).item(), 2) == 0.69  # a logit of 0 is the probability 0.5
# sphinx_gallery_end_ignore

# %%
# Which .grad does each backward fill?
# ------------------------------------
# Each row is one backward, with all ``.grad`` empty before it:

import pandas as pd

noise = torch.randn(64, 1)


def d_backward(seen):
    (bce(D(real), ones) + bce(D(seen), zeros)).backward()


def g_backward(seen, inputs=None):
    bce(D(seen), ones).backward(inputs=inputs)


def g_backward_with_frozen_d():
    D.requires_grad_(False)
    g_backward(G(noise))
    D.requires_grad_(True)


def g_backward_without_graph_of_g():
    with torch.no_grad():
        fake = G(noise)
    g_backward(fake)


rows = {}
for name, backward in {
    "d_loss: D(fake)": lambda: d_backward(G(noise)),
    "d_loss: D(fake.detach())": lambda: d_backward(G(noise).detach()),
    "g_loss: D(fake)": lambda: g_backward(G(noise)),
    "g_loss: D frozen": g_backward_with_frozen_d,
    "g_loss: inputs=G.parameters()": lambda: g_backward(G(noise), list(G.parameters())),
    "g_loss: D(fake.detach())": lambda: g_backward(G(noise).detach()),
    "g_loss: G under no_grad": g_backward_without_graph_of_g,
}.items():
    G.zero_grad()
    D.zero_grad()
    backward()
    rows[name] = {
        "G.grad": "" if G.weight.grad is None else "yes",
        "D.grad": "" if D[0].weight.grad is None else "yes",
    }

# sphinx_gallery_start_ignore
_found = [(bool(row["G.grad"]), bool(row["D.grad"])) for row in rows.values()]
assert _found == [
    *((True, True), (False, True), (True, True), (True, False), (True, False)),
    *((False, True), (False, True)),
]


def filled(network):
    return any(p.grad is not None for p in network.parameters())


def detached(G, noise):
    return G(noise).detach()


def without_graph(G, noise):
    with torch.no_grad():
        return G(noise)


for _early in (True, False):  # frozen before the forward pass, or after it
    _G, _D = nn.Linear(1, 1), nn.Linear(1, 1)
    _D.requires_grad_(not _early)
    _loss = bce(_D(_G(real)), ones)
    _D.requires_grad_(False)
    _loss.backward()
    assert all(p.grad is not None for p in _G.parameters())
    assert all(p.grad is None for p in _D.parameters())
for _p in (*G.parameters(), *D.parameters()):
    assert _p.requires_grad
# sphinx_gallery_end_ignore
pd.DataFrame(rows).T

# %%
# **Backward fills the** ``.grad`` **of every parameter that its graph reaches. It does not know which optimizer owns it.** So
# cut the graph of ``d_loss`` with ``detach()``, in front of ``G``. ``g_loss`` must go through ``D`` to reach ``G``, and on its
# way it fills the ``.grad`` of ``D``. Clear that before the next ``d_loss.backward()``, or avoid it as in rows 4 and 5. The
# last two rows leave ``G`` untrained.

# %%
# Several forward passes, one backward
# ------------------------------------
# ``D`` runs twice before ``d_loss.backward()``. Each forward pass adds its own part to the graph. The gradient of the sum is
# the sum of two gradients (asked in `the PyTorch forum
# <https://discuss.pytorch.org/t/multiple-model-forward-followed-by-one-loss-backward/20868>`__):

G, D, opt_g, opt_d = networks()
fake = G(torch.randn(64, 1))

(bce(D(real), ones) + bce(D(fake.detach()), zeros)).backward()
of_sum = D[0].weight.grad.clone()

D.zero_grad()
bce(D(real), ones).backward()
bce(D(fake.detach()), zeros).backward()
print("equal:", torch.allclose(of_sum, D[0].weight.grad, atol=1e-6))


# sphinx_gallery_start_ignore
assert torch.allclose(of_sum, D[0].weight.grad, atol=1e-6) and of_sum.any()
_loss = bce(D(fake.detach()), zeros)
(_of_fake,) = torch.autograd.grad(_loss, D[0].weight)
D.zero_grad()
bce(D(real), ones).backward()
D.zero_grad()
bce(D(fake.detach()), zeros).backward()
assert torch.equal(D[0].weight.grad, _of_fake)
assert not torch.allclose(_of_fake, of_sum, atol=1e-3)
from weakref import WeakSet

from torch.autograd.graph import saved_tensors_hooks

_alive = WeakSet()


class _Saved:
    def __init__(self, tensor):
        self.tensor = tensor.detach()
        _alive.add(self)


def _bytes_alive():
    storages = [saved.tensor.untyped_storage() for saved in _alive]
    sizes = {storage.data_ptr(): storage.nbytes() for storage in storages}
    known = {p.untyped_storage().data_ptr() for p in D.parameters()}
    return sum(size for place, size in sizes.items() if place not in known)


with saved_tensors_hooks(_Saved, lambda saved: saved.tensor):
    _both = bce(D(real), ones) + bce(D(fake.detach()), zeros)
    _at_once = _bytes_alive()
    _both.backward()
    _kept = []
    for _given, _labels in ((real, ones), (fake.detach(), zeros)):
        _loss = bce(D(_given), _labels)
        _kept.append(_bytes_alive())
        _loss.backward()
assert max(_kept) < 0.6 * _at_once
# sphinx_gallery_end_ignore

# %%
# Two backwards need less memory, if the first one comes before the second forward pass. Leave out ``zero_grad()`` between them,
# because it clears the gradient of the real numbers.

# %%
# Gradient penalty
# ----------------
# WGAN-GP adds a penalty to the loss of ``D``, which it calls the critic. At samples between real and fake, the gradient of
# ``D`` with respect to its input should have the norm 1. The weights learn from this gradient:


def penalty(D, real, fake, create_graph=True):
    shape = len(real), *[1] * (real.ndim - 1)
    t = torch.rand(shape, device=real.device)  # one for each sample
    between = (t * real + (1 - t) * fake.detach()).requires_grad_()
    score = D(between).sum()
    (grads,) = torch.autograd.grad(score, between, create_graph=create_graph)
    return (grads.flatten(1).norm(dim=1) - 1).square().mean()


for create_graph in (True, False):
    torch.manual_seed(0)
    D.zero_grad()
    loss = (D(fake.detach()) - D(real)).mean()
    loss = loss + 10 * penalty(D, real, fake, create_graph)
    loss.backward()
    norm = D[0].weight.grad.norm().item()
    print(f"{create_graph!s:<6} loss {loss.item():.2f}, gradient {norm:.2f}")

# sphinx_gallery_start_ignore
_wasserstein = (D(fake.detach()) - D(real)).mean()
_alone = torch.autograd.grad(_wasserstein, D[0].weight)[0].norm().item()
assert abs(norm - _alone) < 1e-5
_values = []
for _create in (True, False):
    torch.manual_seed(0)
    _values.append(penalty(D, real, fake, _create).item())
assert _values[0] == _values[1] > 0
assert not penalty(D, real, fake, create_graph=False).requires_grad
D.zero_grad()
(_wasserstein.detach() + 10 * penalty(D, real, fake)).backward()
assert D[0].weight.grad.norm() > 2 * norm
_images = torch.randn(5, 3, 4, 4)
assert _images.norm(dim=1).shape == (5, 4, 4) and _images.flatten(1).norm(
    dim=1
).shape == (5,)
_pixels = nn.Sequential(nn.Flatten(), nn.Linear(48, 1))  # linear: one slope for all
torch.manual_seed(0)
_slope = _pixels[1].weight.norm()
assert torch.allclose(penalty(_pixels, _images, _images * 2), (_slope - 1) ** 2)
_mixed = []
penalty(
    lambda between: _mixed.append(between) or _pixels(between),
    torch.zeros(5, 3, 4, 4),
    torch.ones(5, 3, 4, 4),
)
assert (_mixed[0].flatten(1).std(1) == 0).all() and _mixed[0].std() > 0.1
_raised = []
try:
    penalty(torch.compile(D, backend="aot_eager"), real, fake).backward()
except RuntimeError as error:
    _raised.append("does not currently support double backward" in str(error))
assert _raised == [True]
_normed = nn.Sequential(nn.Linear(1, 16), nn.BatchNorm1d(16), nn.Linear(16, 1))
for _critic, _mixes in ((D, False), (_normed, True)):
    _matrix = torch.autograd.functional.jacobian(_critic, real[:4]).reshape(4, 4)
    assert (_matrix - _matrix.diag().diag()).any() == _mixes
# sphinx_gallery_end_ignore

# %%
# Without ``create_graph=True``, the loss has the same value, and :ref:`the penalty is a constant
# <sphx_glr_gallery_differentiation_higher_order.py>`. Without ``flatten(1)``, ``norm(dim=1)`` of images returns a norm for each
# pixel (`pytorch-wgan#40 <https://github.com/Zeleni9/pytorch-wgan/issues/40>`__). BatchNorm in ``D`` mixes the samples, so it
# does not fit (`CycleGAN#513 <https://github.com/junyanz/pytorch-CycleGAN-and-pix2pix/pull/513>`__). A compiled ``D`` raises:
# ``torch.compile`` has no double backward.

# %%
# What people get wrong
# ---------------------
# **zero_grad right after step.** With one network, you can call ``zero_grad()`` before ``backward()`` or after ``step()``. In
# a GAN, ``g_loss.backward()`` comes after it, and leaves a gradient in ``D``. The next ``d_loss.backward()`` adds to that.
#
# .. how-measured:: This code trains with variants of the loop, and averages over the last 200 of 400 steps. For the generator's
#    step, it computes the fake samples again, so that a missing detach raises no error.


def train(zero_grad="before backward", detach=True, graph=True, steps=400):
    G, D, opt_g, opt_d = networks()
    rows = []

    def update(optimizer, loss):
        if zero_grad == "before backward":
            optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if zero_grad == "after step":
            optimizer.zero_grad()

    for _ in range(steps):
        real, noise = 3 + 0.5 * torch.randn(64, 1), torch.randn(64, 1)
        if zero_grad == "at the top":
            opt_d.zero_grad()
            opt_g.zero_grad()
        fake = G(noise)
        seen = fake.detach() if detach else fake
        d_loss = bce(D(real), ones) + bce(D(seen), zeros)
        update(opt_d, d_loss)
        with torch.set_grad_enabled(graph):
            fake = G(noise)
        g_loss = bce(D(fake), ones)
        update(opt_g, g_loss)
        values = {
            "mean": G.bias,
            "std": G.weight.abs(),
            "d_loss": d_loss,
            "g_loss": g_loss,
        }
        rows.append({name: value.item() for name, value in values.items()})
    return pd.DataFrame(rows[-200:]).mean()


runs = pd.DataFrame(
    {
        "the loop above": train(),
        "zero_grad after step": train("after step"),
        "zero_grad after step, no detach": train("after step", detach=False),
        "G under no_grad in its step": train(graph=False),
    }
).T

# %%
# None of these loops raises an error:

# sphinx_gallery_start_ignore
from math import log

_right, _after, _both, _cut = runs.to_dict("records")
assert abs(_right["mean"] - 3) < 0.1 and abs(_right["std"] - 0.5) < 0.2
assert train(detach=False).to_dict() == _right
_short = train(steps=30).to_dict()
assert train("at the top", steps=30).to_dict() == _short
assert train("at the top", detach=False, steps=30).to_dict() != _short
assert abs(_right["d_loss"] - 2 * log(2)) < 0.03 > abs(_right["g_loss"] - log(2))
assert round(log(1.5) + log(3), 2) == 1.5 and round(log(1.5), 2) == 0.41
assert abs(_after["d_loss"] - (log(1.5) + log(3))) < 0.03
assert abs(_after["g_loss"] - log(1.5)) < 0.03 and abs(_after["mean"] - 3) < 0.1
assert abs(_after["std"] - 0.5) < 0.2
assert abs(_both["mean"]) < 1 and _both["std"] < 0.05
assert abs(_both["d_loss"] - log(2)) < 0.03 > abs(_both["g_loss"] - log(2))
assert abs(_cut["mean"] - networks()[0].bias.item()) < 1e-6
assert abs(_cut["std"] - networks()[0].weight.abs().item()) < 1e-6
assert _cut["g_loss"] > 5 and _cut["d_loss"] < 0.1
_G, _D, _, _opt_d = networks()
_real, _fake = 3 + 0.5 * torch.randn(64, 1), _G(torch.randn(64, 1))
bce(_D(_fake), ones).backward()
(bce(_D(_real), ones) + bce(_D(_fake.detach()), zeros)).backward()
_wrong = [p.grad.clone() for p in _D.parameters()]
_three = bce(_D(_real), ones) + bce(_D(_fake), zeros) + bce(_D(_fake), ones)
for _g, _expected in zip(
    _wrong, torch.autograd.grad(_three, [*_D.parameters()]), strict=True
):
    assert torch.allclose(_g, _expected, atol=1e-6)
_logit = torch.zeros(64, 1, requires_grad=True)
(bce(_logit, zeros) + bce(_logit, ones)).backward()
assert _logit.grad.abs().max() < 1e-6
_weights = []
for _before in (True, False):  # one network: before backward or after step
    torch.manual_seed(0)
    _line = nn.Linear(1, 1)
    _optimizer = torch.optim.Adam(_line.parameters())
    for _ in range(5):
        if _before:
            _optimizer.zero_grad()
        _line(real).square().mean().backward()
        _optimizer.step()
        if not _before:
            _optimizer.zero_grad()
    _weights.append(_line.weight.detach())
assert torch.equal(*_weights)
_p = torch.linspace(0.01, 0.99, 9801)
assert abs(_p[(-2 * _p.log() - (1 - _p).log()).argmin()] - 2 / 3) < 1e-3
# sphinx_gallery_end_ignore
runs.map("{:.2f}".format)

# %%
# - In a balance, ``D`` gives each number the probability 0.5. Then ``d_loss`` is :math:`2 \ln 2 = 1.39`, and ``g_loss`` is
#   :math:`\ln 2 = 0.69`.
# - With ``zero_grad()`` after ``step()``, ``D`` trains on ``d_loss`` plus the last ``g_loss``, so fakes get the labels 0 and 1.
#   If fake and real numbers are alike, its best answer is 2/3. That gives losses of 1.50 and 0.41.
# - Without ``detach()`` too, ``G`` also gets both gradients. They cancel where ``D`` says 0.5, so ``G`` does not get to 3.
#   The two equal losses look like a balance.
# - The last row is the next mistake.
#
# Both ``zero_grad()`` calls at the top of the iteration also work, if you detach. If ``D`` takes several steps in one
# iteration, clear its gradients before each (forgotten in `BigGAN#25 <https://github.com/ajbrock/BigGAN-PyTorch/issues/25>`__).

# %%
# **no_grad in the generator's step** (tried in `pytorch-lightning#591
# <https://github.com/Lightning-AI/pytorch-lightning/issues/591>`__), or a ``detach()`` there (in `image2reverb#37
# <https://github.com/nikhilsinghmus/image2reverb/issues/37>`__). ``G`` gets no gradient. Backward still finds the weights of
# ``D``, so nothing is raised.
#
# **D stays frozen.** A frozen ``D`` is still part of the graph, and ``G`` gets the same gradient (asked in `DMD2#75
# <https://github.com/tianweiy/DMD2/issues/75>`__). If you forget ``requires_grad_(True)`` after the step, the next
# ``d_loss.backward()`` raises ``element 0 of tensors does not require grad``. Without ``detach()``, it raises nothing, and
# ``D`` stops learning. ``D.requires_grad_(True)`` also unfreezes layers of ``D`` that you froze on purpose.

# sphinx_gallery_start_ignore
_G, _D, _, _ = networks()
_noise, _raised = torch.randn(64, 1), []
_D.requires_grad_(False)
for _seen in (_G(_noise).detach(), _G(_noise)):  # D is still frozen in its own step
    _loss = bce(_D(real), ones) + bce(_D(_seen), zeros)
    try:
        _loss.backward()
    except RuntimeError as error:
        _raised.append(str(error))
assert filled(_G) and not filled(_D)
_D.requires_grad_(True)
with torch.no_grad():
    _logits = _D(_G(_noise))
try:
    bce(_logits, ones).backward()
except RuntimeError as error:
    _raised.append(str(error))
assert len(_raised) == 2 and all("0 of tensors does not require" in m for m in _raised)
_gradients = []
for _frozen in (False, True):
    _G.zero_grad()
    _D.requires_grad_(not _frozen)
    bce(_D(_G(_noise)), ones).backward()
    _gradients.append(_G.weight.grad.clone())
assert torch.allclose(*_gradients, rtol=1e-5)
_D.requires_grad_(False)
_raised = []
for _make_fake in (detached, without_graph):  # with a frozen D
    try:
        bce(_D(_make_fake(_G, _noise)), ones).backward()
    except RuntimeError as error:
        _raised.append(str(error))
assert len(_raised) == 2 and all("0 of tensors does not require" in m for m in _raised)
_D[0].requires_grad_(False)
assert all(p.requires_grad for p in _D.requires_grad_(True).parameters())
_D.zero_grad()
_G.bias.requires_grad_(False)
_raised = []
try:
    bce(_D(_G(_noise)), ones).backward(inputs=list(_G.parameters()))
except RuntimeError as error:
    _raised.append(str(error))
assert len(_raised) == 1 and not filled(_D)
_G.zero_grad()
bce(_D(_G(_noise)), ones).backward(
    inputs=[p for p in _G.parameters() if p.requires_grad]
)
assert filled(_G) and not filled(_D)
# sphinx_gallery_end_ignore

# %%
# **g_loss before the step of D.** The optimizer of ``D`` writes to weights that the graph of ``g_loss`` has saved:

G, D, opt_g, opt_d = networks()
fake = G(torch.randn(64, 1))
d_loss = bce(D(real), ones) + bce(D(fake.detach()), zeros)
g_loss = bce(D(fake), ones)  # too early

d_loss.backward()
opt_d.step()
raised = []
try:
    g_loss.backward()
except RuntimeError as error:
    raised.append(str(error))
    print("RuntimeError:", raised[0].partition(" Hint")[0])

# sphinx_gallery_start_ignore
assert len(raised) == 1 and "modified by an inplace operation" in raised[0]
assert "[torch.FloatTensor [16, 1]]" in raised[0]
assert "is at version 2; expected version 1" in raised[0]
assert D[2].weight.shape == (1, 16)
_raised = []
_G, _D, _, _ = networks()
_fake = _G(torch.randn(64, 1))
(bce(_D(real), ones) + bce(_D(_fake), zeros)).backward()
try:
    bce(_D(_fake), ones).backward()
except RuntimeError as error:
    _raised.append(str(error))
_G, _D, _opt_g, _opt_d = networks()
_noise = torch.randn(64, 1)
_fake = _G(_noise)
(bce(_D(real), ones) + bce(_D(_fake), zeros)).backward(retain_graph=True)
_opt_d.step()
_both = bce(_D(_fake), ones)
_opt_g.zero_grad()
_both.backward()
_wanted = torch.autograd.grad(bce(_D(_G(_noise)), ones), _G.weight)[0]
assert torch.allclose(_G.weight.grad, _wanted)
_deep = nn.Sequential(nn.Linear(1, 8), nn.Tanh(), nn.Linear(8, 1))
_optimizer = torch.optim.Adam(_deep.parameters())
for _retain in (False, True):
    _fake = _deep(_noise)
    bce(_D(_fake), ones).backward(retain_graph=_retain)
    _optimizer.step()
    try:
        bce(_D(_fake), ones).backward()
    except RuntimeError as error:
        _raised.append(str(error))
assert ["second time" in m for m in _raised] == [True, True, False]
assert "modified by an inplace operation" in _raised[2]
_G, _D, _, _ = networks()
_fused = torch.optim.Adam(_D.parameters(), lr=0.1, fused=True)
_g_loss = bce(_D(_G(_noise)), ones)
(_before,) = torch.autograd.grad(_g_loss, _G.weight, retain_graph=True)
bce(_D(real), ones).backward()
_fused.step()
_g_loss.backward()  # no error
(_wanted,) = torch.autograd.grad(bce(_D(_G(_noise)), ones), _G.weight)
assert not torch.allclose(_G.weight.grad, _before, rtol=1e-2)
assert not torch.allclose(_G.weight.grad, _wanted, rtol=1e-2)
# sphinx_gallery_end_ignore

# %%
# ``[16, 1]`` is the transposed weight of the last layer of ``D``. :ref:`The error's own page
# <sphx_glr_gallery_errors_modified_in_place.py>` explains the numbers. Compute ``g_loss`` after the step. You can keep
# ``fake``. An optimizer with ``fused=True`` on a CPU :ref:`gives no error
# <sphx_glr_gallery_differentiation_inplace_and_versions.py>`, but a wrong gradient.
#
# **One fake for two backwards.** Without ``detach()``, ``d_loss.backward()`` frees what the graph of ``G`` has saved. Then
# ``g_loss.backward()`` raises :ref:`Trying to backward through the graph a second time
# <sphx_glr_gallery_errors_backward_twice.py>`. Call ``detach()``: you do not need ``retain_graph=True``. For a second step of
# ``G``, compute a new ``fake`` (`SinGAN#148 <https://github.com/tamarott/SinGAN/issues/148>`__).

# %%
# Exercise
# --------
# Both networks should step from the same weights. So you compute both losses, call both ``backward()``, then both ``step()``.
# No error is raised. Why not, what is wrong, and which argument repairs it?
#
# .. solution::
#
# Nothing writes to a weight between forward and backward. But ``D`` gets the gradient of ``d_loss + g_loss``. With ``inputs=``,
# the second backward fills the ``.grad`` of ``G`` alone:

G, D, opt_g, opt_d = networks()
fake = G(torch.randn(64, 1))
d_loss = bce(D(real), ones) + bce(D(fake.detach()), zeros)
g_loss = bce(D(fake), ones)
(wanted,) = torch.autograd.grad(d_loss, D[2].bias, retain_graph=True)

for inputs in (None, list(G.parameters())):
    D.zero_grad()
    d_loss.backward(retain_graph=True)
    g_loss.backward(inputs=inputs, retain_graph=True)
    print(f"D gets {D[2].bias.grad.item():.2f}, wanted {wanted.item():.2f}")
assert torch.equal(D[2].bias.grad, wanted)

# sphinx_gallery_start_ignore
D.zero_grad()
d_loss.backward()
g_loss.backward()
assert (D[2].bias.grad - wanted).abs() > 0.1
opt_d.step()
opt_g.step()
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_tensors_detach_clone_data.py`.
# - :ref:`sphx_glr_gallery_modes_freezing.py`.
# - :ref:`sphx_glr_gallery_modules_ema_and_stop_gradient.py`: the average of a generator.
# - :ref:`sphx_glr_gallery_differentiation_accumulation.py`.
# - In PyTorch's reference: `torch.Tensor.backward
#   <https://docs.pytorch.org/docs/stable/generated/torch.Tensor.backward.html>`__ with ``inputs``, and `the tutorial on DCGAN
#   <https://docs.pytorch.org/tutorials/beginner/dcgan_faces_tutorial.html>`__.
