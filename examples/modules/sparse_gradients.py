r"""
Sparse gradients: nn.Embedding(sparse=True) and SparseAdam
==========================================================

.. index::
   single: Adam does not support sparse gradients, please consider SparseAdam instead
   single: SparseAdam does not support dense gradients
   single: add(sparse, dense) is not supported
   single: weight_decay option is not compatible with sparse gradients
   single: Could not run aten::linalg_vector_norm with arguments from the SparseCPU backend
   single: Cannot get indices on an uncoalesced tensor
   single: the embedding changes although its gradient is zero
   single: gradient of a large embedding table
   single: torch.sparse.mm backward

.. in-short::

   With ``sparse=True``, the ``.grad`` of an ``nn.Embedding`` holds only the rows of the tokens in the batch. Give the layer a
   separate optimizer:

   .. code-block:: python

      optimizer = torch.optim.SparseAdam(embedding.parameters(), lr=0.001)

   ``SGD`` without ``momentum`` and ``Adagrad`` accept this gradient too, both without ``weight_decay``. ``Adam`` and
   ``AdamW`` raise an error. ``SparseAdam`` is a different algorithm: it moves only the rows that the batch uses. Its state
   is as large as ``Adam``'s. If the loss also uses ``embedding.weight`` itself, as with tied weights, the
   gradient is dense.
"""

# %%
# A million words, and a batch of 4,096
# -------------------------------------
# ``nn.Embedding`` takes rows out of its weight, so the gradient of a row that the batch leaves out is zero. By default
# ``.grad`` stores these zeros, and is as large as the weight. With ``sparse=True`` it stores one entry for each token:

import pandas as pd
import torch
from torch import nn

embedding = nn.Embedding(6, 2, sparse=True)
tokens = torch.tensor([1, 4, 1])
embedding(tokens).sum().backward()
grad = embedding.weight.grad

print(grad)
print(grad.coalesce())

# sphinx_gallery_start_ignore
_raised = []
try:
    grad.indices()
except RuntimeError as _error:
    _raised.append(str(_error))
assert len(_raised) == 1
assert "Cannot get indices on an uncoalesced tensor" in _raised[0]
assert not grad.is_coalesced() and grad._nnz() == 3
assert grad._indices().tolist() == [[1, 4, 1]]
_once = grad.coalesce()
assert _once.indices().tolist() == [[1, 4]]
assert _once.values().tolist() == [[2.0, 2.0], [1.0, 1.0]]
_same = nn.Embedding(6, 2)
_same(tokens).sum().backward()
assert torch.equal(_same.weight.grad, grad.to_dense())
assert not _same.weight.grad[[0, 2, 3, 5]].any()
assert embedding.weight.layout is torch.strided  # the weight stays dense
# sphinx_gallery_end_ignore

# %%
# Word 1 has two entries, since it occurs twice. PyTorch calls this gradient *uncoalesced*: entries can repeat.
# ``grad.indices()`` then raises *Cannot get indices on an uncoalesced tensor*. ``coalesce()`` adds the entries of a word.
# ``grad.to_dense()`` is the gradient of ``sparse=False``, and the weight itself is dense both ways. **sparse=True changes only
# how** ``.grad`` **is stored, and few optimizers accept that.**
#
# .. how-measured:: This code makes the gradient of 4,096 tokens, counts its bytes, and draws them.

import matplotlib.pyplot as plt


def gradient(words, sparse):
    embedding = nn.Embedding(words, 16, sparse=sparse)
    tokens = torch.randint(0, words, (4096,))
    embedding(tokens).sum().backward()
    return embedding.weight.grad


def count_bytes(grad):
    parts = [grad._values(), grad._indices()] if grad.is_sparse else [grad]
    return sum(part.nbytes for part in parts)


def draw_gradient_bytes(sizes):
    _, ax = plt.subplots(figsize=(7, 2.8), layout="constrained")
    for sparse, color in ((False, "#c2410c"), (True, "#2563eb")):
        counted = [count_bytes(gradient(words, sparse)) for words in sizes]
        ax.loglog(sizes, counted, "o-", color=color, label=f"sparse={sparse}")
    ax.set(xlabel="rows of the embedding (words)", ylabel="bytes of .grad")
    ax.set_yticks([1e5, 1e6, 1e7, 1e8], ["100 kB", "1 MB", "10 MB", "100 MB"])
    ax.set_xticks(sizes, [f"{words:,}" for words in sizes])
    ax.minorticks_off()
    ax.set_title("The sparse gradient has the size of the batch")
    ax.legend(loc="upper left")


# %%
# For a batch of 4,096 tokens, the bytes of both gradients in embeddings of 1,000 to 1,000,000 words:

# figure: Bytes of the gradient for 1,000 to 1,000,000 words, both axes logarithmic. With sparse=False they grow with the number
#   of words, from 64 kB to 64 MB. With sparse=True they stay at 0.29 MB. For 1,000 words this is more than the dense gradient.
draw_gradient_bytes([1_000, 10_000, 100_000, 1_000_000])

# sphinx_gallery_start_ignore
_drawn = [line.get_ydata().tolist() for line in plt.gca().get_lines()]
_dense, _sparse = _drawn
assert _dense == [1000 * 10**k * 16 * 4 for k in range(4)]
assert _sparse == [4096 * (16 * 4 + 8)] * 4
assert _dense[-1] == 64_000_000 and round(_sparse[-1], -4) == 290_000
assert _sparse[0] > _dense[0] and _sparse[1] < _dense[1]
# sphinx_gallery_end_ignore

# %%
# For a million words, that is 0.29 MB instead of 64 MB. For 1,000 words the sparse gradient is the larger one: a word that
# occurs several times has several entries, and each entry has an index.

# %%
# Two optimizers, one loop
# ------------------------
# The embedding gets ``SparseAdam``, and the rest of the model ``AdamW``:

torch.manual_seed(0)
texts = torch.randint(0, 100_000, (64, 5))
labels = torch.randint(0, 2, (64,))
words, head = nn.Embedding(100_000, 16, sparse=True), nn.Linear(16, 2)
optimizers = [
    torch.optim.SparseAdam(words.parameters(), lr=0.05),
    torch.optim.AdamW(head.parameters(), lr=0.05),
]
for step in range(10):
    for optimizer in optimizers:
        optimizer.zero_grad()
    loss = nn.functional.cross_entropy(head(words(texts).mean(dim=1)), labels)
    loss.backward()
    for optimizer in optimizers:
        optimizer.step()
    if step in (0, 9):
        print(f"step {step}: loss {loss.item():.2f}")

# sphinx_gallery_start_ignore
assert loss.item() < 0.35
_adam = torch.optim.Adam(words.parameters(), lr=0.0)
_grad, words.weight.grad = words.weight.grad, torch.zeros_like(words.weight)
_adam.step()
words.weight.grad = _grad
for _optimizer in (optimizers[0], _adam):
    _state = _optimizer.state[words.weight].values()
    _tables = [v for v in _state if isinstance(v, torch.Tensor) and v.dim() == 2]
    assert [v.shape for v in _tables] == [words.weight.shape] * 2
    assert all(v.layout is torch.strided for v in _tables)
assert count_bytes(words.weight.grad) == 64 * 5 * (16 * 4 + 8)
# sphinx_gallery_end_ignore

# %%
# SparseAdam is not Adam
# ----------------------
# ``SparseAdam`` needs as much memory for its state as :ref:`Adam <sphx_glr_gallery_training_optimizers.py>`: two running means
# of the shape of the weight. And it is a different algorithm. In this test one word occurs once, at step 200, and the other
# word at each step:


def train_two_words(optimizer_class, sparse):
    embedding = nn.Embedding(2, 1, sparse=sparse)
    nn.init.zeros_(embedding.weight)
    optimizer = optimizer_class(embedding.parameters(), lr=0.01)
    weights = []
    for step in range(300):
        optimizer.zero_grad()
        tokens = torch.tensor([0, 1] if step == 200 else [1])
        embedding(tokens).sum().backward()
        optimizer.step()
        weights.append(embedding.weight.detach().flatten().tolist())
    return torch.tensor(weights)


adam = train_two_words(torch.optim.Adam, sparse=False)
sparse_adam = train_two_words(torch.optim.SparseAdam, sparse=True)

# %%
# .. how-measured:: This code draws the weights of the rare word.


def draw_weight_paths(paths):
    _, ax = plt.subplots(figsize=(7, 2.8), layout="constrained")
    for (name, path), color in zip(paths.items(), ("#c2410c", "#2563eb"), strict=True):
        ax.plot(range(190, 260), path[190:260, 0], color=color, label=name)
    ax.axvline(200, color="#64748b", lw=1, ls=":")
    ax.set(xlabel="step", ylabel="weight of the rare word")
    ax.set_title("The word occurs at step 200, and Adam goes on moving its row")
    ax.legend(loc="center right")


# %%
# The rare word:

# figure: The weight of the rare word from step 190 to 260. Both optimizers leave it at 0 until step 200, and then move it to
#   -0.0135. SparseAdam leaves it there. Adam moves it on, quickly at first and then more slowly, to about -0.138.
draw_weight_paths({"Adam": adam, "SparseAdam": sparse_adam})

# sphinx_gallery_start_ignore
import warnings

_moved = [w[200, 0].item() for w in (adam, sparse_adam)]
assert adam[199, 0] == sparse_adam[199, 0] == 0  # never used so far
assert abs(_moved[0] - _moved[1]) < 1e-6 and abs(_moved[0] + 0.0135) < 0.0001
assert (sparse_adam[200:, 0] == sparse_adam[200, 0]).all()
assert 10 < adam[-1, 0] / sparse_adam[-1, 0] < 10.5
assert (adam[201:251, 0] < adam[200:250, 0]).all()
assert adam[205, 0] - adam[200, 0] < 5 * (adam[255, 0] - adam[250, 0]) < 0  # slower
assert abs(adam[259, 0] + 0.138) < 0.001
assert torch.allclose(adam[:, 1], sparse_adam[:, 1], atol=1e-5)  # used at each step
_decay = nn.Embedding(3, 2)
_before = _decay.weight.detach().clone()
_optimizer = torch.optim.AdamW(_decay.parameters(), lr=0.01)
_decay(torch.tensor([0])).sum().backward()
_optimizer.step()
assert (_decay.weight != _before).all()  # rows 1 and 2 were never used
TORCH = tuple(int(part) for part in torch.__version__.split(".")[:2])
_table = nn.Embedding(3, 2, sparse=True)
_table(torch.tensor([1])).sum().backward()
with warnings.catch_warnings(record=True) as _caught:
    warnings.simplefilter("always")
    torch.optim.Adagrad(_table.parameters()).step()
_said = "".join(str(w.message) for w in _caught)
assert "Sparse invariant checks are implicitly disabled" in _said
# sphinx_gallery_end_ignore

# %%
# At step 200 both make the same step. Then the gradient is 0, but the running mean of ``Adam`` fades slowly, so ``Adam``
# moves the row on, to ten times the distance (asked in `pytorch#18404 <https://github.com/pytorch/pytorch/issues/18404>`__).
# ``SparseAdam`` leaves a row alone until the word occurs again. (``AdamW`` moves each row in each step, by its weight decay.)

# %%
# padding_idx, scale_grad_by_freq, EmbeddingBag
# ---------------------------------------------
# ``nn.EmbeddingBag`` adds or averages the rows of a text. The number of entries for the tokens 1, 4, 1, or the message:


def describe_outcome(function, *arguments):
    try:
        return function(*arguments)
    except (RuntimeError, TypeError, ValueError) as error:
        message = str(error).split(" This could be")[0]
        return f"{type(error).__name__}: {message}"


def count_entries(layer_class, options):
    layer = layer_class(6, 2, sparse=True, **options)
    layer(tokens[None]).sum().backward()
    return layer.weight.grad._nnz()


layers = [
    (nn.Embedding, {"padding_idx": 4}),
    (nn.Embedding, {"scale_grad_by_freq": True}),
    (nn.EmbeddingBag, {"mode": "sum"}),
    (nn.EmbeddingBag, {"mode": "mean"}),
    (nn.EmbeddingBag, {"mode": "max"}),
]
for layer_class, options in layers:
    print(
        layer_class.__name__,
        options,
        "->",
        describe_outcome(count_entries, layer_class, options),
    )

# sphinx_gallery_start_ignore
_said = [describe_outcome(count_entries, *layer) for layer in layers]
assert _said[0] == 2 and _said[2:4] == [3, 3]
assert "scale_grad_by_freq not supported with sparse gradients" in _said[1]
assert "max mode does not support sparse weights" in _said[4]
_pad = nn.Embedding(6, 2, sparse=True, padding_idx=4)
_pad(tokens).sum().backward()
assert 4 not in _pad.weight.grad._indices()
_batch = torch.tensor([5, 1, 4, 1, 5, 5])
_scaled = nn.Embedding(6, 2, scale_grad_by_freq=True)
_by_hand = nn.Embedding(6, 2, sparse=True)
for _layer in (_scaled, _by_hand):
    (_layer(_batch) * torch.arange(6.0)[:, None]).sum().backward()
_rows = _by_hand.weight.grad.coalesce()
assert _rows is not _by_hand.weight.grad  # a new tensor, so it has to be put back
_by_hand.weight.grad = _rows
_kinds, _counts = _batch.unique(return_counts=True)
assert torch.equal(_rows.indices()[0], _kinds)
_rows.values().div_(_counts[:, None])
assert torch.allclose(_by_hand.weight.grad.to_dense(), _scaled.weight.grad)
# sphinx_gallery_end_ignore

# %%
# The padding token has no entry. To scale by frequency yourself, put ``grad = embedding.weight.grad.coalesce()`` back as
# ``embedding.weight.grad``, and divide ``grad.values()`` in place by ``counts[:, None]`` from
# ``tokens.unique(return_counts=True)``, without padding tokens.

# %%
# What people get wrong
# ---------------------
# **One optimizer for the whole model.** ``SparseAdam`` raises for the other layers: *SparseAdam does not support dense
# gradients, please consider Adam instead*. Which optimizers accept a sparse gradient? Each class of ``torch.optim`` makes two
# steps. Row 0 is only in the first batch. Does the second step move it?
#
# .. how-measured:: This code makes the two steps, and collects the optimizers that say the same.

torch.sparse.check_sparse_tensor_invariants.disable()  # Adagrad may warn otherwise


def two_steps(optimizer_class, options, sparse=True):
    embedding = nn.Embedding(3, 2, sparse=sparse)
    optimizer = optimizer_class(embedding.parameters(), lr=0.1, **options)
    for batch in (torch.tensor([0, 1]), torch.tensor([1])):
        before = embedding.weight[0].tolist()

        def closure(tokens=batch):
            optimizer.zero_grad()
            loss = embedding(tokens).square().sum()
            loss.backward()
            return loss

        optimizer.step(closure)
    stays = embedding.weight[0].tolist() == before
    return "works, row 0 stays" if stays else "works, row 0 moves"


def collect_answers():
    classes = {k: v for k, v in vars(torch.optim).items() if isinstance(v, type)}
    classes.pop("Optimizer")
    trials = [(name, {}) for name in classes] + [("SGD", {"momentum": 0.9})]
    trials += [(n, {"weight_decay": 0.1}) for n in ("SGD", "Adagrad", "SparseAdam")]
    answers = {}
    for name, options in trials:
        said = describe_outcome(two_steps, classes[name], options)
        if said.endswith(f"{name} does not support sparse gradients"):
            said = said.replace(name, "(its name)")
        label = "".join(f"({k}={v})" for k, v in options.items())
        answers.setdefault(said, []).append(name + label)
    return dict(sorted(answers.items(), key=lambda item: "works" not in item[0]))


# %%
# The answers, each with its optimizers:

answers = collect_answers()
for said, names in answers.items():
    print(said, ", ".join(names), sep="\n    ")

# sphinx_gallery_start_ignore
_table = {name: said for said, names in answers.items() for name in names}
_works = {name: said for name, said in _table.items() if said.startswith("works")}
assert _works == {
    "Adagrad": "works, row 0 stays",
    "SGD": "works, row 0 stays",
    "SparseAdam": "works, row 0 stays",
    "LBFGS": "works, row 0 moves",
    "SGD(momentum=0.9)": "works, row 0 moves",
}
_adam = "Adam does not support sparse gradients, please consider SparseAdam instead"
assert _table["Adam"] == _table["AdamW"] == f"RuntimeError: {_adam}"
assert "add(sparse, dense) is not supported" in _table["SGD(weight_decay=0.1)"]
_said = "RuntimeError: weight_decay option is not compatible with sparse gradients"
assert _table["Adagrad(weight_decay=0.1)"] == _said
_said = _table["SparseAdam(weight_decay=0.1)"]
assert _said.startswith("TypeError") and "argument 'weight_decay'" in _said
for _name in ("Adamax", "NAdam", "RAdam", "RMSprop", "Adadelta", "ASGD", "Rprop"):
    assert _table[_name].endswith("(its name) does not support sparse gradients")
_said = describe_outcome(two_steps, torch.optim.SparseAdam, {}, False)
assert "SparseAdam does not support dense gradients, please consider Adam" in _said
torch.set_warn_always(True)
with warnings.catch_warnings(record=True) as _caught:
    warnings.simplefilter("always")
    two_steps(torch.optim.Adagrad, {})
torch.set_warn_always(False)
assert not _caught
_said = describe_outcome(two_steps, torch.optim.SGD, {"fused": True})
assert _said.startswith("RuntimeError") and "support sparse gradients" in _said
for _momentum in (0, 0.9):  # the running mean of SGD, 100 steps
    torch.manual_seed(0)
    _table = nn.Embedding(50, 2, sparse=True)
    _optimizer = torch.optim.SGD(_table.parameters(), lr=0.01, momentum=_momentum)
    for _ in range(100):
        _optimizer.zero_grad()
        _table(torch.randint(0, 50, (6,))).sum().backward()
        _optimizer.step()
    _buffer = _optimizer.state[_table.weight].get("momentum_buffer")
    if _momentum:
        assert not _buffer.is_coalesced()
        assert _buffer._nnz() > 300 and _buffer.coalesce()._nnz() == 50
    assert bool(_momentum) == (_buffer is not None)
# sphinx_gallery_end_ignore

# %%
# ``SGD`` with ``momentum`` keeps an uncoalesced sparse buffer, and the buffer grows: for 50 words and 6 random tokens a step,
# to more than 300 entries after 100 steps. ``Adagrad`` can warn *Sparse invariant checks are implicitly disabled*.
# ``torch.sparse.check_sparse_tensor_invariants.disable()`` silences it.

# %%
# **Clipping.** For the model above, PyTorch up to 2.13 cannot compute the norm:

parameters = [*words.parameters(), *head.parameters()]
print(describe_outcome(nn.utils.clip_grad_norm_, parameters, 0.1))


def clip_by_hand(parameters, max_norm):
    grads = []
    for p in (p for p in parameters if p.grad is not None):
        if p.grad.is_sparse:
            p.grad = p.grad.coalesce()
        grads.append(p.grad.values() if p.grad.is_sparse else p.grad)
    norm = nn.utils.get_total_norm(grads)
    for grad in grads:
        grad.mul_((max_norm / (norm + 1e-6)).clamp(max=1))
    return norm


clip_by_hand(parameters, max_norm=0.01)
print(f"norm after clipping: {clip_by_hand(parameters, max_norm=0.01).item():.4f}")

# sphinx_gallery_start_ignore
_said = "Could not run 'aten::linalg_vector_norm' with arguments from the 'SparseCPU'"
_clip = describe_outcome(nn.utils.clip_grad_norm_, parameters, 0.1)
assert _said in str(_clip) or TORCH >= (2, 14)
_clip = describe_outcome(nn.utils.clip_grad_value_, parameters, 0.1)
assert "with arguments from the 'SparseCPU' backend" in _clip
assert abs(clip_by_hand(parameters, 1.0) - 0.01) < 1e-4  # small: left alone
_norms = []
for _is_sparse in (False, True):
    torch.manual_seed(0)
    _table, _head = nn.Embedding(9, 2, sparse=_is_sparse), nn.Linear(2, 1)
    _both = [_table.weight, *_head.parameters()]
    _head(_table(torch.tensor([1, 4, 1]))).square().sum().backward()
    _clipper = clip_by_hand if _is_sparse else nn.utils.clip_grad_norm_
    _norms.append([_clipper(_both, 0.1), *(p.grad.to_dense() for p in _both)])
for _one, _two in zip(*_norms, strict=True):
    assert torch.allclose(_one, _two)
_head.bias.grad = None  # a frozen parameter
assert clip_by_hand(_both, 1.0) > 0
_wrong, _right = grad._values().norm().item(), grad.coalesce().values().norm().item()
assert (round(_wrong, 1), round(_right, 1)) == (2.4, 3.2)
assert abs(_right - _same.weight.grad.norm()) < 1e-5
# sphinx_gallery_end_ignore

# %%
# ``coalesce()`` matters, because the norm of the three entries in the small gradient above is 2.4, and the norm of the
# gradient is 3.2. See :ref:`sphx_glr_gallery_training_gradient_clipping.py`.
#
# .. torch-changed:: 2.14
#    :probe: refuses: torch.linalg.vector_norm(torch.eye(2).to_sparse())
#
#    ``clip_grad_norm_`` accepts a sparse gradient. ``clip_grad_value_`` still raises an error.

# %%
# **A loss that uses the weight itself.** Then ``backward`` makes a dense gradient, without a warning, even if the loss uses
# only some rows, as in ``weight[tokens]``:


def layout_of_grad(loss_of):
    embedding = nn.Embedding(6, 2, sparse=True)
    rows = embedding(tokens)
    loss_of(embedding, rows).backward()
    return "sparse" if embedding.weight.grad.is_sparse else "dense"


losses = {
    "rows": lambda e, rows: rows.sum(),
    "rows, used twice": lambda e, rows: rows.sum() + e(tokens).square().sum(),
    "penalty on the rows": lambda e, rows: rows.sum() + e(tokens.unique()).norm(),
    "weight[tokens]": lambda e, rows: e.weight[tokens].sum(),
    "penalty on the weight": lambda e, rows: rows.sum() + e.weight.norm(),
    "tied output layer": lambda e, rows: (rows @ e.weight.T).sum(),
}
layouts = pd.Series({name: layout_of_grad(f) for name, f in losses.items()})

# sphinx_gallery_start_ignore
assert layouts.tolist() == ["sparse"] * 3 + ["dense"] * 3
_out = nn.Linear(2, 6, bias=False)
_tied = nn.Embedding(6, 2, sparse=True)
_out.weight = _tied.weight  # as a module does it
_out(_tied(tokens)).sum().backward()
assert not _tied.weight.grad.is_sparse
_said = describe_outcome(torch.optim.SparseAdam(_tied.parameters()).step)
assert "SparseAdam does not support dense gradients" in _said
# sphinx_gallery_end_ignore
layouts.rename(".grad").to_frame()

# %%
# With :ref:`tied weights <sphx_glr_gallery_modules_tied_weights_and_lora.py>` the output uses each row, so leave out
# ``sparse=True`` there.

# %%
# The gradient of a sparse matrix: torch.sparse.mm
# ------------------------------------------------
# Sparse matrices have gradients as well (`asked in the forum
# <https://discuss.pytorch.org/t/does-pytorch-support-autograd-on-sparse-matrix/6156>`__). ``A`` has the 6,000 edges of a
# graph of 2,000 nodes, and ``X`` has their features. Both require a gradient:

nodes = 2000
flat = torch.randperm(nodes * nodes)[:6000]
edges = torch.stack([flat // nodes, flat % nodes])
A = torch.sparse_coo_tensor(edges, torch.rand(6000), (nodes, nodes)).coalesce()
X = torch.randn(nodes, 8, requires_grad=True)
A.requires_grad_()

rows = {}
for name, multiply in {
    "torch.sparse.mm(A, X)": torch.sparse.mm,
    "A @ X": torch.mm,
}.items():
    of_A, of_X = torch.autograd.grad(multiply(A, X).square().sum(), (A, X))
    rows[name] = {
        "gradient of A": "sparse" if of_A.is_sparse else "dense",
        "bytes": f"{count_bytes(of_A):,}",
        "gradient of X": "sparse" if of_X.is_sparse else "dense",
    }

# sphinx_gallery_start_ignore
assert [list(row.values()) for row in rows.values()] == [
    ["sparse", "120,000", "dense"],
    ["dense", "16,000,000", "dense"],
]
assert nodes * nodes * 4 == 16_000_000 and 6000 * (2 * 8 + 4) == 120_000
_few, _ = torch.autograd.grad(torch.sparse.mm(A, X).square().sum(), (A, X))
_all, _ = torch.autograd.grad((A @ X).square().sum(), (A, X))
_few = _few.coalesce()
_at = _all[tuple(_few.indices())]
assert torch.allclose(_few.values(), _at, rtol=1e-4, atol=1e-3)
assert torch.equal(_few.indices(), A.detach().indices())
assert _all.count_nonzero() > 100 * 6000  # more than the entries of A
_fixed = A.detach()
assert (
    torch.autograd.grad(torch.sparse.mm(_fixed, X).sum(), X)[0].layout is torch.strided
)
assert torch.autograd.grad((_fixed @ X).sum(), X)[0].layout is torch.strided
_said = describe_outcome(torch.optim.SparseAdam, [A])
assert "SparseAdam requires dense parameter tensors" in _said
_weights = torch.rand(6000, requires_grad=True)
_A = torch.sparse_coo_tensor(edges, _weights, (nodes, nodes))
torch.sparse.mm(_A, X).square().sum().backward()
assert _weights.grad.layout is torch.strided and _weights.grad.shape == (6000,)
_dense = torch.zeros(nodes, nodes).index_put((edges[0], edges[1]), _weights)
(_expected,) = torch.autograd.grad((_dense @ X).square().sum(), _weights)
assert torch.allclose(_weights.grad, _expected, rtol=1e-4, atol=1e-3)
torch.optim.Adam([_weights], lr=0.01).step()
# sphinx_gallery_end_ignore
pd.DataFrame(rows).T

# %%
# ``torch.sparse.mm`` computes the gradient of ``A`` at the entries of ``A``, and ``A @ X`` for each pair of nodes. At the
# entries of ``A`` both agree. The gradient of ``X`` is dense in both, also if ``A`` needs no gradient.
#
# To learn the edges, make their values the parameter, and build ``A = torch.sparse_coo_tensor(edges, values, size)`` anew in
# each step. ``values.grad`` is an ordinary dense vector, and ``Adam`` accepts it.

# %%
# Exercise
# --------
# A model scores three words against the whole embedding, ``rows @ embedding.weight.T``, and ``SparseAdam`` raises. The loss
# needs the scores of four candidates. The words are 3, 7 and 9, and the candidates 7, 20, 500 and 999. Keep the gradient
# sparse. How many entries does it have after ``coalesce()``?
#
# .. solution::
#
# Look up the candidates in the embedding, too. That makes 3 + 4 lookups, but 6 entries, because word 7 is looked up twice.

embedding = nn.Embedding(1000, 8, sparse=True)
rows = embedding(torch.tensor([3, 7, 9]))
candidates = embedding(torch.tensor([7, 20, 500, 999]))
scores = rows @ candidates.T
nn.functional.cross_entropy(scores, torch.tensor([0, 3, 1])).backward()
torch.optim.SparseAdam(embedding.parameters()).step()

coalesced = embedding.weight.grad.coalesce()
print("entries:", coalesced.indices().tolist()[0])
assert coalesced._nnz() == 6

# predict: coalesced._nnz() -- How many entries does the gradient have after
#   coalesce()?

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_training_optimizer_variants.py`: ``foreach`` and ``fused``; ``SGD(..., fused=True)`` refuses a sparse
#   gradient.
# - :ref:`sphx_glr_gallery_differentiation_gradient_layouts.py`: the strides of a ``.grad`` that is dense.
# - :ref:`sphx_glr_gallery_practice_gather_and_distances.py`: rows and entries picked by index.
# - In PyTorch's reference: `nn.Embedding <https://docs.pytorch.org/docs/stable/generated/torch.nn.Embedding.html>`__,
#   `SparseAdam <https://docs.pytorch.org/docs/stable/generated/torch.optim.SparseAdam.html>`__ and `torch.sparse.mm
#   <https://docs.pytorch.org/docs/stable/generated/torch.sparse.mm.html>`__.
