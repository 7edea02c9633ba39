r"""
Forces from an energy: -dE/dx, and training on forces
=====================================================

.. index::
   single: force = -dE/dx with torch.autograd.grad
   single: train a neural network potential on energies and forces
   single: the force loss does not train, create_graph or retain_graph
   single: memory grows in a molecular dynamics loop
   single: forces in validation, inference_mode, no_grad

.. in-short::

   The force is the negative gradient of the energy: call ``torch.autograd.grad`` on the sum of the energies.

   .. code-block:: python

      x = x.detach().requires_grad_()  # (structures, atoms, 3)
      energy = model(x)  # (structures,)
      (slope,) = torch.autograd.grad(energy.sum(), x, create_graph=model.training)
      forces = -slope

   A loss on forces trains the model only with ``create_graph=True``. To predict, leave it out, and keep ``energy.detach()``.
   Do not call this under ``no_grad`` or ``inference_mode``.
"""

# %%
# Energies, and forces from them
# ------------------------------
# A neural network potential computes the energy of a structure, which is a molecule or a piece of a crystal. The force on each
# atom is the negative gradient of the energy. Simulations need forces, so you also train on them. This network adds up a term
# for each pair of atoms:

import torch
from torch import nn
from torch.nn.functional import mse_loss


class Potential(nn.Module):
    def __init__(self, activation):
        super().__init__()
        torch.manual_seed(0)
        first, second, last = nn.Linear(1, 32), nn.Linear(32, 32), nn.Linear(32, 1)
        self.pair = nn.Sequential(first, activation, second, activation, last)

    def forward(self, x):  # (structures, atoms, 3)
        i, j = torch.triu_indices(x.shape[1], x.shape[1], offset=1)
        distance = (x[:, i] - x[:, j]).norm(dim=2, keepdim=True)
        return self.pair(distance).sum(dim=(1, 2))


def energy_and_forces(model, x, **options):
    x = x.detach().requires_grad_()
    energy = model(x)
    (slope,) = torch.autograd.grad(energy.sum(), x, **options)
    return energy, -slope


x = torch.randn(16, 4, 3)
energy, forces = energy_and_forces(Potential(nn.SiLU()), x)
print("energy", tuple(energy.shape), "  forces", tuple(forces.shape))
total = forces.sum(dim=1)  # over the atoms
print(f"sum of the forces in a structure: at most {total.abs().max():.5f}")

# sphinx_gallery_start_ignore
torch.set_num_threads(1)  # small matrices: more threads do not help


def _by_differences(model, x, step=1e-5):
    model, x = model.double(), x.double()
    result = torch.zeros_like(x)
    for place in range(x[0].numel()):
        shift = torch.zeros(x[0].numel(), dtype=x.dtype)
        shift[place] = step
        shift = shift.view_as(x[0])
        with torch.no_grad():
            change = model(x + shift) - model(x - shift)
        result.flatten(1)[:, place] = -change / (2 * step)
    return result


assert torch.allclose(
    forces.double(), _by_differences(Potential(nn.SiLU()), x), atol=1e-4
)
assert forces.shape == x.shape and total.shape == (16, 3) and total.abs().max() < 1e-5
for _activation in (nn.SiLU(), nn.Tanh(), nn.GELU(), nn.Softplus(), nn.ReLU()):
    for _n, _atoms, _dtype in ((1, 2, torch.float32), (3, 5, torch.float64)):
        _model = Potential(_activation).to(_dtype)
        _x = torch.randn(_n, _atoms, 3, dtype=_dtype)
        _energy, _all = energy_and_forces(_model, _x)
        _each = torch.cat([energy_and_forces(_model, one[None])[1] for one in _x])
        assert torch.allclose(_all, _each, atol=1e-5) and _all.dtype == _dtype
        assert torch.equal(_energy, _model(_x)) and not _all.requires_grad
# sphinx_gallery_end_ignore

# %%
# The forces in a structure add up to 0, because the energy does not change if all atoms move together.
#
# **The sum** over the structures gives all forces with one call, because the energy of a structure depends only on its own
# positions. (A BatchNorm in training mode :ref:`mixes the structures
# <sphx_glr_gallery_practice_derivatives_of_a_network.py>`.)

# %%
# Train on energies and forces
# ----------------------------
# The true energy is a Morse potential: atoms attract each other, and repel each other when they are near. There are 24
# structures of four atoms to learn from:


def morse(x):
    i, j = torch.triu_indices(x.shape[1], x.shape[1], offset=1)
    distance = (x[:, i] - x[:, j]).norm(dim=2)
    return (1 - torch.exp(-1.5 * (distance - 1.2))).square().sum(dim=1)


def make_structures(count):
    corners = [[1.0, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]]
    x = 0.45 * torch.tensor(corners) + 0.3 * torch.randn(count, 4, 3)
    energy, forces = energy_and_forces(morse, x)
    return x, energy.detach(), forces


torch.manual_seed(0)
x, energies, true_forces = make_structures(24)
held_out, _, wanted = make_structures(100)


def train(activation=None, force_weight=1.0, **options):
    model, errors = Potential(activation or nn.SiLU()), []
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    for step in range(150):
        energy, forces = energy_and_forces(model, x, **options)
        loss = mse_loss(energy, energies)
        loss = loss + force_weight * mse_loss(forces, true_forces)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 10 == 9:
            _, forces = energy_and_forces(model, held_out)
            errors.append(mse_loss(forces, wanted).sqrt().item())
    return model, errors


# %%
# .. how-measured:: The two plots: the error of the forces while the networks train, and the force between two atoms.

import matplotlib.pyplot as plt


def force_between_two_atoms(model, distance):
    x = torch.zeros(len(distance), 2, 3)
    x[:, 1, 0] = distance
    return energy_and_forces(model, x)[1][:, 1, 0]


def plot_errors_and_force(runs):
    _, (left, right) = plt.subplots(1, 2, figsize=(7, 3.3), layout="constrained")
    styles = {
        "create_graph=True": {"color": "#2563eb"},
        "energies only": {"color": "#94a3b8", "linewidth": 5},
        "retain_graph=True": {"color": "#c2410c", "linestyle": "--"},
    }
    for name, style in styles.items():
        left.plot(range(10, 160, 10), runs[name][1], label=name, **style)
    left.set(xlabel="step", ylabel="error of the forces", yscale="log")
    left.set_title("Only create_graph trains on forces")
    left.legend(fontsize=8)
    distance = torch.linspace(0.8, 2.2, 500)
    curves = {
        "true": (morse, {"color": "#94a3b8", "linewidth": 5}),
        "SiLU": (runs["create_graph=True"][0], {"color": "#2563eb"}),
        "ReLU": (runs["ReLU"][0], {"color": "#047857"}),
    }
    for name, (model, style) in curves.items():
        right.plot(
            distance, force_between_two_atoms(model, distance), label=name, **style
        )
    right.set(xlabel="distance of two atoms", ylabel="force")
    right.set_title("With ReLU, the force has steps")
    right.legend(fontsize=8)


# %%
# Four networks: three with SiLU, and one with ReLU.

runs = {
    "create_graph=True": train(create_graph=True),
    "retain_graph=True": train(retain_graph=True),
    "energies only": train(force_weight=0.0, retain_graph=True),
    "ReLU": train(nn.ReLU(), create_graph=True),
}
# figure: Two plots. On the left, the error of the forces on held-out structures over 150 steps, on a logarithmic axis. With
#   create_graph it falls to less than a tenth. With retain_graph it lies exactly on the curve of the network that is trained
#   on energies only, several times higher. On the right, the force between two atoms over their distance. The network with
#   SiLU follows the true curve. The one with ReLU is a staircase around it.
plot_errors_and_force(runs)
for name, (_, errors) in runs.items():
    print(f"{name:<18} error of the forces {errors[-1]:.2f}")

# sphinx_gallery_start_ignore
_last = {_name: _errors[-1] for _name, (_, _errors) in runs.items()}
assert runs["retain_graph=True"][1] == runs["energies only"][1]
assert _last["create_graph=True"] < 0.1 < 0.25 < _last["energies only"]
assert _last["create_graph=True"] < 0.1 * runs["create_graph=True"][1][0]
assert _last["ReLU"] > 3 * _last["create_graph=True"]
_distance = torch.linspace(0.8, 2.2, 500)
_true = force_between_two_atoms(morse, _distance)
_steps = force_between_two_atoms(runs["ReLU"][0], _distance)
_smooth = force_between_two_atoms(runs["create_graph=True"][0], _distance)
assert (_smooth - _true).abs().max() < 0.5
assert 3 < len(_steps.unique()) < 65 < len(_smooth.unique())  # at most a kink a unit
_raised = []
try:
    train()
except RuntimeError as error:
    _raised.append(str(error))
assert len(_raised) == 1 and "backward through the graph a second time" in _raised[0]
for _kind in (nn.ReLU(), nn.SiLU()):  # what the biases learn from the forces
    _model = Potential(_kind)
    _, _forces = energy_and_forces(_model, x, create_graph=True)
    mse_loss(_forces, true_forces).backward()
    _biases = [
        p.grad is not None and bool(p.grad.any())
        for name, p in _model.named_parameters()
        if "bias" in name
    ]
    _on = isinstance(_kind, nn.SiLU)
    assert _biases == [_on, _on, False] and _model.pair[0].weight.grad.any()
# sphinx_gallery_end_ignore

# %%
# **A loss on forces needs** ``create_graph=True``, which records how the forces were computed. Without an option,
# ``backward()`` of this loss raises *Trying to backward through the graph a second time*. With ``retain_graph=True`` the error
# is gone, but the forces are constants for the loss: the weights come out exactly as without a force loss. ``assert
# forces.requires_grad`` catches it.
#
# **The activation.** The derivative of ReLU is constant between its kinks, so forces jump, and the force loss gives these
# hidden biases no gradient. Take SiLU, Tanh, GELU or Softplus.

# %%
# What people get wrong
# ---------------------
# **A part that is computed without a graph.** If the model gets distances from the data loader, or computes angles under
# ``no_grad``, the energy is right, and the forces lack this part without an error (reported in `matgl#834
# <https://github.com/materialyzeai/matgl/issues/834>`__). Move the atoms a little, and compare:


class Cut(nn.Module):
    def forward(self, x):
        with torch.no_grad():
            a, b = x[:, 1] - x[:, 0], x[:, 2] - x[:, 0]
            angle = 10 * torch.cosine_similarity(a, b)
        return morse(x) + angle


for model in (morse, Cut()):
    _, forces = energy_and_forces(model, x[:1])
    step = 1e-3 * forces
    with torch.no_grad():
        change = model(x[:1] + step) - model(x[:1] - step)
    said = -2 * (forces * step).sum()
    print(f"energy changes by {change.item():.4f}, forces say {said:.4f}")

# sphinx_gallery_start_ignore
assert abs(change - said) > 0.05 * abs(said)
_, _forces = energy_and_forces(morse, x[:1])
_change = morse(x[:1] + 1e-3 * _forces) - morse(x[:1] - 1e-3 * _forces)
assert abs(_change + 2e-3 * _forces.square().sum()) < 0.01 * abs(_change)
assert torch.equal(forces, _forces)  # nothing of the angle
assert torch.autograd.grad(
    torch.cosine_similarity(
        x[:, 1] - (_o := x[:, 0].clone().requires_grad_()), x[:, 2] - _o
    ).sum(),
    _o,
)[0].any()
# sphinx_gallery_end_ignore

# %%
# **The mean in place of the sum.** With ``energy.mean()``, the forces are divided by the number of structures, so they depend
# on the batch size:

leaf = x.clone().requires_grad_()
(of_sum,) = torch.autograd.grad(morse(leaf).sum(), leaf)
(of_mean,) = torch.autograd.grad(morse(leaf).mean(), leaf)
print(f"sum / mean: {(of_sum / of_mean).mean():.1f}, structures: {len(x)}")

# sphinx_gallery_start_ignore
assert torch.allclose(of_sum, 24 * of_mean, rtol=1e-4, atol=1e-4)
# sphinx_gallery_end_ignore

# %%
# **Forces under no_grad or inference_mode.** ``model.eval()`` is harmless, but without recording there is no gradient.
# ``torch.enable_grad()`` helps under ``no_grad``, but not under ``inference_mode``, which ``validate()`` and ``test()`` of
# Lightning use (asked in `lightning#17653 <https://github.com/Lightning-AI/pytorch-lightning/issues/17653>`__):

model = runs["create_graph=True"][0].eval()


def with_grad(x):
    with torch.enable_grad():
        return energy_and_forces(model, x)


def out_of_inference(x):
    with torch.inference_mode(False):
        return energy_and_forces(model, x.clone())


raised = []
for mode in (torch.no_grad, torch.inference_mode):
    for function in (with_grad, out_of_inference):
        with mode():
            positions = x + 0.0  # made in this mode, as a batch is
            try:
                function(positions)
                result = "works"
            except RuntimeError as error:
                raised.append(str(error))
                result = raised[-1]
        print(f"{mode.__name__}, {function.__name__}: {result}")

# sphinx_gallery_start_ignore
assert len(raised) == 1 and "element 0 of tensors does not require grad" in raised[0]
for _mode in (torch.no_grad, torch.inference_mode):
    with _mode():
        _forces = out_of_inference(x + 0.0)[1]
        try:
            energy_and_forces(model, x)
        except RuntimeError as error:
            raised.append(str(error))
    assert torch.equal(_forces, energy_and_forces(model, x)[1])
assert len(raised) == 3 and raised[0] == raised[1] == raised[2]

from functools import partial


class _WithSpecies(nn.Module):
    def __init__(self):
        super().__init__()
        self.charge = nn.Embedding(5, 1)

    def forward(self, x, species):
        return model(x) + (self.charge(species) * x.square()).sum(dim=(1, 2))


_model = _WithSpecies()
with torch.inference_mode():
    _batch = x + 0.0, torch.ones(24, 4, dtype=torch.long)
    with torch.inference_mode(False):
        for _species in (_batch[1], _batch[1].clone()):  # the positions alone do not do
            try:
                energy_and_forces(partial(_model, species=_species), _batch[0].clone())
            except RuntimeError as error:
                raised.append(str(error))
assert len(raised) == 4 and "Inference tensors cannot be saved" in raised[3]
# sphinx_gallery_end_ignore

# %%
# Leave inference mode and clone each tensor of the batch, or pass ``Trainer(inference_mode=False)`` and use ``enable_grad``.
#
# **Memory that grows in a simulation.** New positions are computed from forces. If these have a graph, or if you keep energies,
# each step keeps what the steps before it recorded.
#
# .. how-measured:: A relaxation of 50 steps. This code counts the graph nodes that the positions and the list of energies refer
#    to, and the bytes that autograd has saved, without the weights.

from weakref import WeakSet

import pandas as pd

alive = WeakSet()


class Saved:
    def __init__(self, tensor):
        self.tensor = tensor.detach()
        alive.add(self)


def count_nodes(tensors):
    found = list({tensor.grad_fn for tensor in tensors} - {None})
    seen = set(found)
    for node in found:  # the list grows while it is read
        new = {edge for edge, _ in node.next_functions} - seen - {None}
        seen |= new
        found += new
    return len(found)


def count_bytes():
    own = {p.untyped_storage().data_ptr() for p in model.parameters()}
    storages = [saved.tensor.untyped_storage() for saved in alive]
    sizes = {storage.data_ptr(): storage.nbytes() for storage in storages}
    return sum(size for place, size in sizes.items() if place not in own)


def relax(detach_x, detach_energy, create_graph):
    alive.clear()
    x, kept, counts = held_out[:1], [], {}
    saved_by_autograd = torch.autograd.graph.saved_tensors_hooks
    with saved_by_autograd(Saved, lambda saved: saved.tensor):
        for step in range(1, 51):
            x = x.detach() if detach_x else x
            x.requires_grad_()
            energy = model(x)
            (slope,) = torch.autograd.grad(energy.sum(), x, create_graph=create_graph)
            x = x - 0.01 * slope
            kept.append(energy.detach() if detach_energy else energy)
            if step in (1, 50):
                counts[f"nodes, step {step}"] = count_nodes([x, *kept])
                counts[f"KiB, step {step}"] = round(count_bytes() / 1024)
    return counts


def tabulate_relaxations():
    rows = {
        "all detached": relax(True, True, False),
        "keeps energy": relax(True, False, False),
        "create_graph=True": relax(True, True, True),
        "... and keeps energy": relax(True, False, True),
        "... and x is not detached": relax(False, True, True),
    }
    return pd.DataFrame(rows).T


# %%
# What is kept after the first and the last step:

table = tabulate_relaxations()

# sphinx_gallery_start_ignore
_nodes = list(zip(table["nodes, step 1"], table["nodes, step 50"], strict=True))
_kib = list(zip(table["KiB, step 1"], table["KiB, step 50"], strict=True))
assert _nodes[0][0] == _nodes[0][1] and _nodes[2][0] == _nodes[2][1]
assert all(_nodes[i][1] > 8 * _nodes[i][0] for i in (1, 3, 4))
assert _kib[0] == _kib[1] == (0, 0) and _kib[2][0] == _kib[2][1] > 5
assert _kib[3][1] > 8 * _kib[3][0] and _kib[4][1] > 40 * _kib[4][0]


class _WithAttribute(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.own = x + 1
        alive.add(ctx.own)
        return x.exp()

    @staticmethod
    def backward(ctx, gradient):
        return gradient * (ctx.own - 1).exp()


alive.clear()
_leaf = torch.ones(2, requires_grad=True)
_energy = _WithAttribute.apply(_leaf).sum()
torch.autograd.grad(_energy, _leaf)
assert len(alive) == 1  # for as long as the energy is kept with its graph
_energy = _energy.detach()
assert len(alive) == 0
# sphinx_gallery_end_ignore
table

# %%
# - Without ``create_graph``, ``autograd.grad`` frees what the model saved. A kept energy still refers to its nodes, and to the
#   attributes of a custom Function (`fairchem#2072 <https://github.com/facebookresearch/fairchem/issues/2072>`__). Keep
#   ``energy.detach()``.
# - Without ``x.detach()`` in each step, ``x`` chains all steps.
#
# If one step needs too much memory, freeze the weights, or run each block of layers through
# ``torch.utils.checkpoint.checkpoint(block, h, use_reentrant=False)``.
#
# **A path that is counted twice.** If the backward of a custom Function calls ``torch.autograd.grad``, forces can be wrong with
# ``create_graph=True`` alone (`aimnetcentral#106 <https://github.com/isayevlab/aimnetcentral/issues/106>`__): :ref:`take a view
# of each input <sphx_glr_gallery_functions_double_backward.py>`.

# sphinx_gallery_start_ignore
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.checkpoint import checkpoint


class _Peak(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.held, self.peak = {}, 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        for tensor in tree_leaves(result):
            if isinstance(tensor, torch.Tensor):
                storage = tensor.untyped_storage()
                self.held[storage._cdata] = (StorageWeakRef(storage), storage.nbytes())
        self.held = {k: v for k, v in self.held.items() if not v[0].expired()}
        self.peak = max(self.peak, sum(size for _, size in self.held.values()))
        return result


class _Deep(Potential):
    def __init__(self, kept):
        super().__init__(nn.SiLU())
        self.kept, width = kept, 32
        blocks = [nn.Sequential(nn.Linear(width, width), nn.SiLU()) for _ in range(8)]
        self.first, self.last = nn.Linear(1, width), nn.Linear(width, 1)
        self.blocks = nn.ModuleList(blocks)

    def network(self, h):
        h = self.first(h)
        for block in self.blocks:
            if self.kept == "each block":
                h = checkpoint(block, h, use_reentrant=False)
            else:
                h = block(h)
        return self.last(h)

    def pair(self, distance):
        if self.kept == "whole":
            return checkpoint(self.network, distance, use_reentrant=False)
        return self.network(distance)


_places, _peaks, _all_forces = torch.randn(2, 20, 3), {}, []
for _kept in ("no", "each block", "whole"):
    for _freeze in (False, True):
        _model = _Deep(_kept).requires_grad_(not _freeze)
        with _Peak() as _memory:
            _all_forces.append(energy_and_forces(_model, _places)[1])
        _peaks[_kept, _freeze] = _memory.peak
assert all(torch.allclose(_each, _all_forces[0]) for _each in _all_forces)
_plain = _peaks["no", False]
assert max(_peaks["no", True], _peaks["each block", False]) < 0.7 * _plain
assert abs(_peaks["whole", False] / _plain - 1) < 0.03
# sphinx_gallery_end_ignore

# %%
# Exercise
# --------
# Train on forces alone, without energies. Which parameter gets no gradient, and what can the network not learn?
#
# .. solution::
#
# The last bias adds a constant to the energy, and forces do not depend on it. So energies are known only up to a constant. With
# ``DistributedDataParallel``, this parameter raises :ref:`Expected to have finished reduction
# <sphx_glr_gallery_errors_ddp_finished_reduction.py>`.

model = Potential(nn.SiLU())
_, forces = energy_and_forces(model, x, create_graph=True)
mse_loss(forces, true_forces).backward()
print([name for name, p in model.named_parameters() if p.grad is None])

# sphinx_gallery_start_ignore
assert [name for name, p in model.named_parameters() if p.grad is None] == [
    "pair.4.bias"
]
_before = energy_and_forces(model, x)
with torch.no_grad():
    model.pair[4].bias += 1
_after = energy_and_forces(model, x)
assert torch.allclose(_after[0], _before[0] + 6, atol=1e-4)  # six pairs
assert torch.equal(_after[1], _before[1])
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_practice_derivatives_of_a_network.py`: second derivatives.
# - :ref:`sphx_glr_gallery_differentiation_higher_order.py`: what ``create_graph`` costs.
# - :ref:`sphx_glr_gallery_errors_derivative_not_implemented.py`: ``cdist`` and attention in a force loss.
# - :ref:`sphx_glr_gallery_practice_gather_and_distances.py`: NaN at distance 0.
# - In PyTorch's reference: `torch.autograd.grad <https://docs.pytorch.org/docs/stable/generated/torch.autograd.grad.html>`__.
