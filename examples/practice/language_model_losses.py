r"""
Cross entropy for language models: shift, -100, mean
====================================================

.. index::
   single: labels shifted twice
   single: shift_logits, shift_labels
   single: train on the answer only, -100
   single: the fine-tuned model does not stop
   single: pad_token = eos_token
   single: mean over tokens or over sequences

.. in-short::

   The logits at a position predict the *next* token. So leave out the last logits and the first label:

   .. code-block:: python

      given, wanted = logits[:, :-1], labels[:, 1:]
      loss = cross_entropy(given.flatten(0, 1), wanted.flatten())

   ``labels`` are the tokens, with -100 where nothing should be learned: the prompt and the padding. The loss is the mean over
   all other tokens of the batch. Shift only once: a causal model of ``transformers`` that gets ``labels`` shifts them itself.
"""

# %%
# Which logits learn what?
# ------------------------
# You fine-tune a language model on questions and answers. If the shift or the mask is wrong, there is no error. The loss
# falls, and then the model repeats itself, skips words or does not stop. Two rows, with answers of two and of five tokens:

import torch
from torch import nn
from torch.nn.functional import cross_entropy
from torch.nn.utils.rnn import pad_sequence

texts = (
    ["Capital", "of", "Peru", "?", "Lima", "<end>"],
    ["Capital", "of", "Mali", "?", "It", "is", "Bamako", ".", "<end>"],
)
vocabulary = ["<pad>", *sorted({word for text in texts for word in text})]
rows = [torch.tensor([vocabulary.index(w) for w in text]) for text in texts]
tokens = pad_sequence(rows, batch_first=True)  # <pad> is 0

position = torch.arange(tokens.shape[1])
length = torch.tensor([[len(row)] for row in rows])
is_answer = (position >= 4) & (position < length)  # a question has four tokens
labels = tokens.masked_fill(~is_answer, -100)

logits = torch.zeros(*tokens.shape, len(vocabulary), requires_grad=True)
given, wanted = logits[:, :-1], labels[:, 1:]
loss = cross_entropy(given.flatten(0, 1), wanted.flatten())
loss.backward()

# %%
# .. how-measured:: This code draws the gradient of the logits at each position.

import matplotlib.pyplot as plt


def plot_gradients(grad):
    _, axes = plt.subplots(2, figsize=(7, 3.2), sharey=True, layout="constrained")
    for ax, row, words in zip(axes, grad, tokens.tolist(), strict=True):
        ax.bar(range(len(row)), row.norm(dim=1).tolist(), color="#2563eb")
        for place, one in enumerate(row):
            if one.any():
                word = vocabulary[one.argmin()]
                ax.text(place, 0.165, word, ha="center", color="#c2410c")
        ax.set_xticks(range(len(words)), [vocabulary[word] for word in words])
        ax.set(ylim=(0, 0.2), yticks=[0, 0.1])
        ax.set_ylabel("gradient norm")
    axes[0].set_title("The logits at “?” learn the first word of the answer")


# %%
# The gradient at each token, and above it the word that the logits there learn to predict:

# figure: Two rows of nine tokens, with a bar where the logits have a gradient. In the first row the bars are at the question
#   mark, which learns Lima, and at Lima, which learns end. In the second row they are at the question mark, It, is, Bamako
#   and the full stop, which learn It, is, Bamako, full stop and end. All bars are equally high. The prompt before the
#   question mark, the end and the padding have none.
plot_gradients(logits.grad)

# sphinx_gallery_start_ignore
torch.set_num_threads(1)  # small tensors: more threads do not help
_learned = [
    [vocabulary[one.argmin()] if one.any() else "" for one in row]
    for row in logits.grad
]
assert _learned[0] == ["", "", "", "Lima", "<end>", "", "", "", ""]
assert _learned[1] == ["", "", "", "It", "is", "Bamako", ".", "<end>", ""]
_norms = logits.grad.norm(dim=2)
assert torch.allclose(_norms[_norms > 0], _norms.max()) and (_norms > 0).sum() == 7
assert (labels != -100).sum() == 7 and len(vocabulary) == 12
# sphinx_gallery_end_ignore

# %%
# **The logits at a position come from the tokens up to that position, so compare them with the next label.** The question mark
# has the label -100, and its logits learn. ``<end>`` has a label, and its logits learn nothing: -100 removes a token from what
# is *predicted*. The model still reads it.
#
# If the rows are cut into inputs and labels before the model, ``tokens[:, :-1]`` and ``tokens[:, 1:]``, the shift is done, and
# the loss must not shift again.

# %%
# Mean over tokens or over rows
# -----------------------------
# ``cross_entropy`` takes the mean over all tokens that count. So the row with five of them weighs more than the row with two.
# ``reduction="none"`` gives you the loss of each token, with 0 at -100. The classes must be its second dimension: ``.mT`` moves
# them there. How much do a token and a whole row weigh, in the short answer and in the long one?

losses = cross_entropy(given.mT, wanted, reduction="none")
counts = (wanted != -100).sum(1)  # 2 and 5

row_means = losses.sum(1) / counts.clamp(min=1)  # not 0 / 0

for name, loss in {
    "mean over all tokens": losses.sum() / counts.sum(),
    "mean over rows": row_means.mean(),
    "sum / 100": losses.sum() / 100,
}.items():
    (weight,) = torch.autograd.grad(loss, losses, retain_graph=True)
    token = weight[:, 3]  # the weight of the first word of each answer
    short, long = token.tolist()
    print(f"{name:<21} a token {short:.2f} {long:.2f}", end="")
    short, long = (token * counts).tolist()
    print(f"   a row {short:.2f} {long:.2f}")

# sphinx_gallery_start_ignore
assert counts.tolist() == [2, 5] and losses.shape == (2, 8)
assert not losses[labels[:, 1:] == -100].any()
_labels = labels[:, 1:].clone()
_labels[0] = -100  # a row without an answer
_losses = cross_entropy(logits[:, :-1].mT, _labels, reduction="none")
_found = (_labels != -100).sum(1)
assert (_losses.sum(1) / _found).mean().isnan()
assert (_losses.sum(1) / _found.clamp(min=1)).mean() > 0
assert torch.allclose(  # and the mean over all tokens is not changed by the clamp
    _losses.sum() / _found.sum(), cross_entropy(given.mT, _labels)
)
assert torch.allclose(
    losses.sum() / 7,
    cross_entropy(given.flatten(0, 1), wanted.flatten()),
)
for _loss, _tokens in (
    (losses.sum() / 7, (1 / 7, 1 / 7)),
    ((losses.sum(1) / counts).mean(), (1 / 4, 1 / 10)),
    (losses.sum() / 100, (0.01, 0.01)),
):
    (_weight,) = torch.autograd.grad(_loss, losses, retain_graph=True)
    assert torch.allclose(_weight[:, 3], torch.tensor(_tokens))
for _dtype in (torch.float32, torch.float64, torch.bfloat16):  # .mT and flatten agree
    _logits = torch.randn(2, 9, 12, dtype=_dtype)
    _mean = cross_entropy(_logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten())
    assert torch.allclose(
        cross_entropy(_logits[:, :-1].mT, labels[:, 1:]), _mean, rtol=0.02
    )
# sphinx_gallery_end_ignore

# %%
# In a mean over rows, each token of a long answer counts less. In reinforcement learning, this is the length bias of GRPO.
# Trainers differ (`verl#593 <https://github.com/verl-project/verl/issues/593>`__, `trl#2995
# <https://github.com/huggingface/trl/issues/2995>`__), and some divide by a constant. If several batches make one step, divide
# by the tokens of all:
# :ref:`sphx_glr_gallery_training_unequal_batches.py`.

# %%
# What people get wrong
# ---------------------
# **Shifted twice, or not at all.** This data counts upwards, from 9 on to 0. So after 3 comes 4. One model is trained with each
# shift, and then continues after a 3:

data = (torch.arange(10)[:, None] + torch.arange(8)) % 10


def train_and_continue(shift):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Embedding(10, 16), nn.Linear(16, 10))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    for _ in range(60):
        logits = model(data)[:, : 8 - shift]
        loss = cross_entropy(logits.flatten(0, 1), data[:, shift:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    said = [torch.tensor(3)]
    for _ in range(4):
        said.append(model(said[-1]).argmax())
    return loss.item(), torch.stack(said).tolist()


for shift in (1, 0, 2):
    loss, said = train_and_continue(shift)
    print(f"shift {shift}: loss {loss:.3f}, continues {said}")
    # sphinx_gallery_start_ignore
    _wanted = {1: [3, 4, 5, 6, 7], 0: [3] * 5, 2: [3, 5, 7, 9, 1]}[shift]
    assert loss < 0.01 and said == _wanted
    # sphinx_gallery_end_ignore

# %%
# The losses do not show it. Without a shift, the model repeats the token that it has just read. With two, it predicts the token
# after the next. This happens to people who shift labels for a model that does it too (`transformers#32944
# <https://github.com/huggingface/transformers/issues/32944>`__, `amber-train#6
# <https://github.com/LLM360/amber-train/issues/6>`__).
#
# **The padding token is the end token.** Then ``tokens == pad`` is also true for the real end, and the model never learns to
# stop (`llm-course#33 <https://github.com/mlabonne/llm-course/issues/33>`__). Mask where the attention mask is 0, which is
# ``position >= length`` in this batch:

end = vocabulary.index("<end>")
padded_with_end = pad_sequence(rows, batch_first=True, padding_value=end)

for name, masked in {
    "tokens == pad": padded_with_end == end,
    "position >= length": position >= length,
}.items():
    left = (padded_with_end.masked_fill(masked, -100) == end).sum()
    print(f"{name:<18} labels that say <end>: {left}")

# sphinx_gallery_start_ignore
assert (padded_with_end == end).sum() == 5
assert (padded_with_end.masked_fill(position >= length, -100) == end).sum() == 2
assert not (padded_with_end.masked_fill(padded_with_end == end, -100) == end).any()
# sphinx_gallery_end_ignore

# %%
# **The mask is not shifted.** If you multiply the losses with a mask instead of using -100, the mask belongs to the labels:

losses = cross_entropy(given.mT, tokens[:, 1:], reduction="none")
for name, mask in {
    "is_answer[:, 1:]": is_answer[:, 1:],
    "is_answer[:, :-1]": is_answer[:, :-1],
}.items():
    predicted = tokens[0, 1:][mask[0]].tolist()
    loss = (losses * mask).sum() / mask.sum()
    print(f"{name:<18} row 0 learns {[vocabulary[w] for w in predicted]}")

# sphinx_gallery_start_ignore
assert [vocabulary[w] for w in tokens[0, 1:][is_answer[0, 1:]]] == ["Lima", "<end>"]
assert [vocabulary[w] for w in tokens[0, 1:][is_answer[0, :-1]]] == ["<end>", "<pad>"]
_right = (losses * is_answer[:, 1:]).sum() / is_answer[:, 1:].sum()
assert torch.allclose(_right, cross_entropy(logits[:, :-1].mT, labels[:, 1:]))
_wrong = (losses * is_answer[:, :-1]).sum() / is_answer[:, :-1].sum()
_grad = torch.autograd.grad(_wrong, logits)[0]
assert not _grad[:, 3].any() and _grad[0, 5].any()
# sphinx_gallery_end_ignore

# %%
# The unshifted mask leaves out the first word of the answer, the most important one, and adds a ``<pad>``.

# %%
# Exercise
# --------
# You want the mean over rows, and write ``losses.mean(1).mean()``, where ``losses`` is 0 at -100. What changes if the rows get
# more padding?
#
# .. solution::
#
# ``mean(1)`` divides by the padded length instead of the tokens that count. So with more padding, all gradients become
# smaller (a DPO loss had this: `minimind#298 <https://github.com/jingyaogong/minimind/issues/298>`__). Divide by the counts:

for padding in (0, 8):
    padded = nn.functional.pad(labels, (0, padding), value=-100)
    logits = torch.zeros(*padded.shape, len(vocabulary), requires_grad=True)
    losses = cross_entropy(logits[:, :-1].mT, padded[:, 1:], reduction="none")
    wrong, right = losses.mean(1).mean(), (losses.sum(1) / counts).mean()
    (by_length,) = torch.autograd.grad(wrong, losses, retain_graph=True)
    (by_count,) = torch.autograd.grad(right, losses)
    weights = f"{by_length[0, 3]:.3f}, with counts {by_count[0, 3]:.3f}"
    print(f"{padding} more: a token of row 0 weighs {weights}")

# sphinx_gallery_start_ignore
assert abs(by_length[0, 3] - 1 / 32) < 1e-6 and abs(by_count[0, 3] - 1 / 4) < 1e-6
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_practice_preference_and_policy_losses.py`, the losses after fine-tuning.
# - :ref:`sphx_glr_gallery_training_unequal_batches.py`, the mean over several batches, and a batch without a token.
# - :ref:`sphx_glr_gallery_training_custom_losses.py`, ``mean``, ``sum`` and ``none``.
# - In PyTorch's reference: `torch.nn.functional.cross_entropy
#   <https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.cross_entropy.html>`__, with ``ignore_index``.
