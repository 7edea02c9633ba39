r"""
The expanded size of the tensor (4) must match the existing size (3)
====================================================================

.. index::
   ! single: expand does not repeat a dimension that is larger than 1
   ! single: a sequence is longer than the 512 positions of the model
   ! single: assigning a row of another length into a tensor

.. in-short::

   A tensor is to be stretched to another shape, by an assignment or by ``expand``. One of its sizes is neither 1 nor the size
   that is wanted. For rows of different lengths, pad them.

   .. code-block:: diff

      - batch = torch.zeros(2, 4)
      - batch[0] = rows[0]
      + batch = pad_sequence(rows, batch_first=True)

   **Not this:** a mean over the padded batch, which counts the zeros. Use the lengths.
"""

# %%
# The code that raises it
# -----------------------

import torch

# sphinx_gallery_start_ignore
raised = []
try:
    # sphinx_gallery_end_ignore
    rows = [torch.tensor([2.0, 4.0, 6.0]), torch.tensor([1.0, 2.0, 3.0, 6.0])]
    batch = torch.zeros(2, 4)
    batch[0] = rows[0]
# sphinx_gallery_start_ignore
except RuntimeError as error:
    message = str(error)
    print("RuntimeError:", message)
assert message == (
    "The expanded size of the tensor (4) must match the existing size (3) at non-singleton dimension 0.  "
    "Target sizes: [4].  Tensor sizes: [3]"
)


def _said(operation):
    try:
        operation()
    except RuntimeError as error:
        return str(error)
    return None


_words = "The expanded size of the tensor (4) must match the existing size (3) at non-singleton dimension 1."
assert _said(lambda: torch.ones(2, 3).expand(2, 4)).startswith(_words)
assert _said(lambda: torch.ones(3).expand(2, 4)).startswith(_words)
# sphinx_gallery_end_ignore

# %%
# - ``(4)`` is the size you want, and ``(3)`` the size of your tensor. Change the one that is wrong.
# - ``non-singleton dimension 0``: where they meet, counted in ``Target sizes``.
#
# Why
# ---
# The two shapes are aligned at their last dimension. Then each size must be the one that is wanted, or 1, or missing.
#
# .. how-measured:: This code expands a tensor, and draws both shapes.

import matplotlib.pyplot as plt


def plot_expand(ax, shape, target):
    try:
        torch.ones(shape).expand(target)
        verdict, color = "fits", "#047857"
    except RuntimeError:
        verdict, color = "does not fit", "#c2410c"
    for y, (name, sizes) in enumerate({"tensor": shape, "target": target}.items()):
        for place, size in enumerate(reversed(sizes)):
            box = ax.text(-place, y, size, ha="center", backgroundcolor="#e2e8f0")
            box.set_fontsize(12)
        ax.text(-2.4, y, name, ha="left", fontsize=9, color="#64748b")
    ax.set_title(verdict, color=color)
    ax.set(xlim=(-2.5, 0.5), ylim=(-0.4, 1.5))
    ax.axis("off")
    return verdict


# %%
# The lower row is your tensor:

import matplotlib.pyplot as plt

# figure: Four panels, each with the sizes of a tensor below the sizes of a target, aligned on the right. 2, 3 does
#   not fit 2, 4. 2, 1 fits 2, 4. A single 2 does not fit 2, 4, because it stands below the 4. A single 4 fits 2, 4.
fig, axes = plt.subplots(1, 4, figsize=(7, 1.5))
shapes = [(2, 3), (2, 1), (2,), (4,)]
fits = [plot_expand(ax, shape, (2, 4)) for ax, shape in zip(axes, shapes, strict=True)]

# sphinx_gallery_start_ignore
assert fits == ["does not fit", "fits", "does not fit", "fits"]
for _shape, _target, _fits in (
    ((3,), (0,), False),
    ((1,), (0,), True),
    ((), (2, 3), True),
    ((0,), (2, 0), True),
):
    assert (_said(lambda: torch.ones(_shape).expand(_target)) is None) == _fits  # noqa: B023
# sphinx_gallery_end_ignore

# %%
# The fix
# -------
# **Rows of different lengths:** pad them, and keep the lengths. Pad labels with ``padding_value=-100``, which ``cross_entropy``
# skips.

from torch.nn.utils.rnn import pad_sequence

rows = [torch.tensor([2.0, 4.0, 6.0]), torch.tensor([1.0, 2.0, 3.0, 6.0])]
lengths = torch.tensor([len(row) for row in rows])
batch = pad_sequence(rows, batch_first=True)
mask = torch.arange(batch.shape[1]) < lengths.unsqueeze(1)
print(batch)
print("mean with the zeros:", batch.mean(1))
print("mean of each row:   ", (batch * mask).sum(1) / lengths)

# sphinx_gallery_start_ignore
assert batch.tolist() == [[2, 4, 6, 0], [1, 2, 3, 6]]
assert ((batch * mask).sum(1) / lengths).tolist() == [4, 3]
assert batch.mean(1).tolist() == [3, 3]
_logits = torch.randn(2, 4, 3)
_labels = [torch.tensor([2, 1, 2]), torch.tensor([1, 2, 1, 0])]
_loss = torch.nn.functional.cross_entropy
_of_rows = _loss(torch.cat([_logits[0, :3], _logits[1]]), torch.cat(_labels))
for _value, _same in ((-100, True), (0, False)):
    _padded = pad_sequence(_labels, batch_first=True, padding_value=_value)
    _of_batch = _loss(_logits.flatten(0, 1), _padded.flatten())
    assert torch.allclose(_of_batch, _of_rows) == _same
_bits = torch.nn.functional.binary_cross_entropy_with_logits
assert _bits(torch.ones(1), torch.tensor([-100.0])) > 100  # this one does not skip it
_by_beam = torch.arange(6).view(2, 3).repeat_interleave(2, dim=0)
assert _by_beam.tolist() == [[0, 1, 2]] * 2 + [[3, 4, 5]] * 2
# sphinx_gallery_end_ignore

# %%
# **The target was made for another size:**
#
# - The last batch is smaller: write ``buffer[: len(batch)] = batch``, and use only these rows.
# - The last window of a series is short: loop over ``range(len(series) - width + 1)``. Without overlap, pad it instead.
# - A queue as in MoCo ends inside of the batch: ``queue[:, (ptr + torch.arange(B)) % K] = keys.detach().T``.
# - Pretrained vectors have 100 numbers: make ``nn.Embedding(n, 100)``. A head for other classes: do not copy it.
# - An image is ``[H, W, 3]``, the target ``[3, H, W]``: ``permute(2, 0, 1)``. Of another height: resize it, or pad it to a
#   multiple of the stride.
# - Darknet's weights are flat: ``weight.data.copy_(numbers.view_as(weight))``.
# - A bias needs one number for each output, an attention mask the length of the keys.
# - A sequence is longer than a table of 512 positions (RoBERTa: 514): in the tokenizer, ``truncation=True, max_length=512``.
#   A sound or a KV cache: cut it, or make the buffer longer.
#
# **One number for each row**, such as a norm, needs a last dimension of size 1: ``keepdim=True`` or ``unsqueeze(-1)``. For
# images: ``alpha.view(-1, 1, 1, 1)``. A mask ``(batch, length)`` for attention with heads needs two in the middle:
# ``mask[:, None, None, :]``, and ``(batch, queries, keys)`` one: ``mask[:, None]``.

table = torch.arange(1.0, 9.0).reshape(2, 4)
norm = table.norm(dim=1, keepdim=True)
scaled = table / norm.expand_as(table)
print("norms afterwards:", scaled.norm(dim=1))

# sphinx_gallery_start_ignore
assert torch.allclose(scaled.norm(dim=1), torch.ones(2))
assert "(4) must match the existing size (2)" in _said(
    lambda: norm.squeeze(1).expand_as(table)
)
_alpha, _real, _fake = torch.rand(4, 1), torch.rand(4, 3, 8, 8), torch.rand(4, 3, 8, 8)
assert "(8) must match the existing size (4)" in _said(
    lambda: _alpha.expand(_real.shape)
)
_mixed = torch.lerp(_fake, _real, _alpha.view(-1, 1, 1, 1).expand(_real.shape))
for _one in range(4):
    _alone = torch.lerp(_fake[_one], _real[_one], _alpha[_one].item())
    assert torch.allclose(_mixed[_one], _alone)
_tall = _alpha.expand(4, 3, 4, 8)  # as many lines as images: no message, and wrong
assert not torch.equal(_tall, _alpha.view(-1, 1, 1, 1).expand(4, 3, 4, 8))
# the targets of another size
for _call in (
    lambda: torch.nn.functional.linear(
        torch.ones(2, 3), torch.ones(4, 3), torch.ones(3)
    ),
    lambda: torch.addmm(torch.ones(3), torch.ones(2, 3), torch.ones(3, 4)),
    lambda: torch.zeros(5, 4)[0].__setitem__(slice(None), torch.ones(3)),
    lambda: torch.zeros(4).__setitem__(slice(None), torch.arange(7)[4:8]),
    lambda: torch.zeros(3, 4, 4).__setitem__(slice(None), torch.ones(4, 4, 3)),
):
    assert "(4) must match the existing size (3)" in _said(_call)
_series, _width = torch.arange(7.0), 4
_windows = [_series[i : i + _width] for i in range(len(_series) - _width + 1)]
assert torch.equal(torch.stack(_windows), _series.unfold(0, _width, 1))
_parts = [_series[i : i + _width] for i in range(0, len(_series), _width)]
assert "(4) must match the existing size (3)" in _said(
    lambda: torch.zeros(4).__setitem__(slice(None), _parts[1])
)
_last = torch.nn.functional.pad(_parts[1], (0, _width - len(_parts[1])))
assert torch.equal(torch.cat([_parts[0], _last])[:7], _series)
# the range of sliding windows, with the step of these, loses the last
assert [*range(0, len(_series) - _width + 1, _width)] == [0]
_queue, _keys, _ptr, _size = torch.full((2, 5), -1.0), torch.rand(4, 2), 3, 4
assert "(2) must match the existing size (4)" in _said(
    lambda: _queue[:, _ptr : _ptr + _size].__setitem__(..., _keys.T)
)
_keys.requires_grad_()
_queue[:, (_ptr + torch.arange(_size)) % 5] = _keys.detach().T
assert not _queue.requires_grad
assert torch.equal(_queue[:, [3, 4, 0, 1]].T, _keys) and (_queue[:, 2] == -1).all()
_sound, _buffer = torch.ones(9), torch.zeros(2, 8)
assert "(8) must match the existing size (9)" in _said(
    lambda: _buffer[0].__setitem__(slice(len(_sound)), _sound)
)
_buffer[0] = _sound[:8]
assert torch.ones(5, 6, 3).permute(2, 0, 1).shape == (3, 5, 6)
_weight, _numbers = torch.zeros(4, 3, 3, 3), torch.rand(4 * 27)
_says_so = "(3) must match the existing size (108)"
assert _says_so in _said(lambda: _weight.__setitem__(..., _numbers))
_weight = torch.nn.Parameter(_weight)
assert "leaf Variable" in _said(lambda: _weight.copy_(_numbers.view_as(_weight)))
_weight.data.copy_(_numbers.view_as(_weight))
assert torch.equal(_weight.flatten(), _numbers) and _weight.is_leaf


def _doubled(image):  # half of the size, written to each second place
    whole = torch.zeros(image.shape)
    whole[:, ::2, ::2] = torch.nn.functional.avg_pool2d(image, 2)
    return whole


_image = torch.rand(3, 13, 17)
assert "must match the existing size" in _said(lambda: _doubled(_image))
_image = torch.nn.functional.pad(_image, (0, -17 % 2, 0, -13 % 2))
assert _doubled(_image).shape == (3, 14, 18)
_scores, _keep = torch.randn(2, 4, 4, 4), mask  # batch, heads, queries, keys
assert "(4) must match the existing size (2)" in _said(lambda: _keep.expand_as(_scores))
_weights = _scores.masked_fill(~_keep[:, None, None, :], float("-inf")).softmax(-1)
assert not _weights[0, :, :, 3].any() and _weights[0, :, :, :3].all()
_pairs = _keep[:, None, :] & torch.ones(4, 4).tril().bool()  # batch, queries, keys
_scores = torch.randn(2, 3, 4, 4)
assert "(3) must match the existing size (2)" in _said(
    lambda: _pairs.expand_as(_scores)
)
_weights = _scores.masked_fill(~_pairs[:, None], float("-inf")).softmax(-1)
for _sample in range(2):
    _alone = _scores[_sample].masked_fill(~_pairs[_sample], float("-inf")).softmax(-1)
    assert torch.equal(_weights[_sample], _alone)
# sphinx_gallery_end_ignore

# %%
# **The elements several times**: choose the order. Keys that heads share, and samples with several beams (``dim=0``), need
# ``repeat_interleave``.

print(torch.tensor([[1, 2, 3]]).repeat(1, 2))
print(torch.tensor([[1, 2, 3]]).repeat_interleave(2, dim=1))

# sphinx_gallery_start_ignore
assert torch.tensor([[1, 2, 3]]).repeat(1, 2).tolist() == [[1, 2, 3, 1, 2, 3]]
_row = torch.tensor([[1, 2, 3]])
assert _row.repeat_interleave(2, dim=1).tolist() == [[1, 1, 2, 2, 3, 3]]
assert "(6) must match the existing size (3)" in _said(lambda: _row.expand(1, 6))
_query, _key = torch.randn(1, 6, 5, 8), torch.randn(1, 3, 5, 8)
_shared = torch.nn.functional.scaled_dot_product_attention(
    _query, _key, _key, enable_gqa=True
)
for _copy, _right in (
    (_key.repeat(1, 2, 1, 1), False),
    (_key.repeat_interleave(2, dim=1), True),
):
    _out = torch.nn.functional.scaled_dot_product_attention(_query, _copy, _copy)
    assert torch.allclose(_out, _shared, atol=1e-5) == _right
# sphinx_gallery_end_ignore

# %%
# The same in other words
# -----------------------
# ``+=`` cannot make its tensor larger:

# sphinx_gallery_start_ignore
try:
    # sphinx_gallery_end_ignore
    total = torch.zeros(3)
    total += torch.ones(2, 3)
# sphinx_gallery_start_ignore
except RuntimeError as error:
    raised.append(str(error))
    print("RuntimeError:", error)
assert raised == ["output with shape [3] doesn't match the broadcast shape [2, 3]"]
assert (torch.zeros(3) + torch.ones(2, 3)).shape == (2, 3)
_gray, _mean = torch.rand(1, 28, 28), torch.full((3, 1, 1), 0.5)
assert _said(lambda: _gray.clone().sub_(_mean)) == (
    "output with shape [1, 28, 28] doesn't match the broadcast shape [3, 28, 28]"
)
assert (_gray.clone().sub_(_mean[:1]).div_(_mean[:1])).shape == (1, 28, 28)
assert _said(lambda: _gray.repeat(3, 1, 1).sub_(_mean)) is None
_token_types = torch.zeros(1, 512)  # a buffer of a model
assert "(514) must match the existing size (512)" in _said(
    lambda: _token_types[:, :514].expand(1, 514)
)
# sphinx_gallery_end_ignore

# %%
# If the larger shape is right, write ``total = total + x``. If not, ``x`` lacks a sum. A gray image in
# ``Normalize`` with three means: ``Normalize((0.5,), (0.5,))``, or ``convert("RGB")`` for a pretrained model.
#
# See also
# --------
# - :ref:`sphx_glr_gallery_errors_shared_memory_location.py`: why not to write into the result of ``expand``.
# - :ref:`sphx_glr_gallery_errors_sizes_do_not_match.py`: the same rule, for two tensors that meet.
