r"""
Gradients of the input: saliency maps, integrated gradients, Grad-CAM, FGSM
===========================================================================

.. index::
   single: saliency map
   single: which pixels or which words decided
   single: gradient with respect to the image
   single: integrated gradients
   single: Grad-CAM
   single: FGSM, PGD, adversarial examples
   single: x.grad is None in an attack
   single: gradient with respect to token ids or an embedding
   single: guidance, a gradient in a sampling loop under no_grad

.. in-short::

   Let the input (of floating point) require grad, and ask for this one gradient:

   .. code-block:: python

      model.eval()
      x = image.detach().clone().requires_grad_()
      score = model(x)[0, label]
      (gradient,) = torch.autograd.grad(score, x)

   It tells how fast the score changes at this image. To learn how much each pixel contributed, average the gradient on
   the way from a baseline (integrated gradients). Under ``no_grad`` there is no gradient. Token ids have none either:
   take the output of the embedding.
"""

# %%
# Which pixels made the score?
# ----------------------------
# A small network tells horizontal bars from vertical ones. Each image also has a square and noise, which say nothing about the
# class. Does the network look at the bar?

import torch
from torch import nn

# %%
# .. how-measured:: This code makes the images and trains the network, in double precision.

torch.set_num_threads(1)  # small tensors: more threads do not help
torch.set_default_dtype(torch.float64)
torch.manual_seed(6)
cross_entropy = nn.functional.cross_entropy
GRAY = 0.15  # the mean of the noise


def make_images(count):
    images = 0.3 * torch.rand(count, 1, 16, 16)
    bars = torch.zeros_like(images, dtype=torch.bool)
    labels = torch.arange(count) % 2  # 0: horizontal, 1: vertical
    for image, bar, vertical in zip(images, bars, labels, strict=True):
        a, b, c, d = torch.randint(9, (4,)).tolist()
        image[0, c : c + 4, d : d + 4] += 0.6
        bar[0, a : a + 2, b : b + 8] = True
        if vertical:
            bar.copy_(bar.mT.clone())
    images[bars] = 1.0
    return images, labels, bars


def trained_network():
    model = nn.Sequential(
        *(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.AvgPool2d(2)),
        *(nn.Conv2d(8, 16, 3, padding=1), nn.ReLU()),
        *(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 2)),
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    images, labels, _ = make_images(800)
    for _ in range(150):
        batch = torch.randint(800, (64,))
        loss = cross_entropy(model(images[batch]), labels[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model


# %%
# ``image`` is a test image with a vertical bar. The gradient of its score takes four lines:

model = trained_network()
images, labels, bars = make_images(200)  # not seen in training
image, label = images[7:8], 1

model.eval()
x = image.detach().clone().requires_grad_()
score = model(x)[0, label]
(gradient,) = torch.autograd.grad(score, x)

# %%
# .. how-measured:: This code measures occlusion and draws.

import matplotlib.pyplot as plt


def occlusion(image, label):
    """How far the score falls if a gray square of 3 x 3 pixels covers each pixel."""
    centers = torch.eye(256).reshape(256, 1, 16, 16)
    covered = nn.functional.max_pool2d(centers, 3, stride=1, padding=1).bool()
    with torch.no_grad():
        left = model(torch.where(covered, GRAY, image))[:, label]
        return (model(image)[0, label] - left).reshape(1, 1, 16, 16)


def draw_pictures(maps, title):
    fig, axes = plt.subplots(1, len(maps), figsize=(5.6, 2.4), layout="constrained")
    for ax, (name, values) in zip(axes, maps.items(), strict=True):
        values = values.detach()[0, 0].numpy()
        top, colors = (
            abs(values).max(),
            "gray" if name.startswith("image") else "RdBu_r",
        )
        ax.imshow(
            values,
            colors,
            interpolation="none",
            vmin=0 if colors == "gray" else -top,
            vmax=top,
        )
        ax.set_title(name, fontsize=10)
        ax.set(xticks=[], yticks=[])
    fig.suptitle(title)


# %%
# The map on the right is a measurement: how far does the score fall if you cover a pixel and its neighbors with gray?

# figure: Three pictures. The image has a white vertical bar, a gray square and noise. In the map of the gradient's absolute
#   value, large values are scattered over the whole image. In the map of occlusion, the bar stands out.
draw_pictures(
    {"image": image, "|gradient|": gradient.abs(), "occlusion": occlusion(x, label)},
    "The gradient is large away from the bar, too",
)


# sphinx_gallery_start_ignore
def _batch_gradient(of=lambda out, y: out.gather(1, y[:, None]).sum()):
    leaf = images.clone().requires_grad_()
    return torch.autograd.grad(of(model(leaf), labels), leaf)[0]


def _share(maps):
    share = (maps.abs() * bars[: len(maps)]).sum((1, 2, 3)) / maps.abs().sum((1, 2, 3))
    return share.median()


_all = _batch_gradient()
assert torch.allclose(_all[7:8], gradient) and labels[7] == label
assert x.grad is None
for _row, _column in ((8, 1), (2, 5), (14, 12)):  # what the derivative says
    _nudge = torch.zeros_like(image)
    _nudge[0, 0, _row, _column] = 1e-6
    with torch.no_grad():
        _faster = (model(image + _nudge) - model(image))[0, label] / 1e-6
    assert abs(_faster - gradient[0, 0, _row, _column]) < 1e-4
_places = occlusion(image, label).flatten().topk(12).indices
assert bars[7:8].flatten()[_places].all()
assert bars[7:8].flatten()[gradient.abs().flatten().topk(16).indices].sum() < 6
_near = nn.functional.max_pool2d(bars[7:8] * 1.0, 5, 1, 2).bool()
_place = (
    gradient.abs().masked_fill(_near, 0).argmax()
)  # two pixels or more from the bar
assert gradient.abs().flatten()[_place] == gradient.abs().max()
assert (
    image.flatten()[bars[7:8].flatten()].min() == 1 and image[~bars[7:8]].max() < 0.95
)
assert not bars[7:8].flatten()[_place] and image.flatten()[_place] < 0.3
_gray = image.clone()
_gray.view(-1)[_place] = GRAY
assert abs((model(_gray) - model(image))[0, label]) < 0.15 < gradient.abs().max() / 4
assert abs(_share(_all) - 0.09) < 0.02 and abs(bars.double().mean() - 0.06) < 0.01
# sphinx_gallery_end_ignore

# %%
# Occlusion finds the bar: red pixels hold the score up, and blue ones hold it down. The gradient does not: in the test images,
# the bar has 6 % of the pixels, and 9 % of the gradient's absolute value (median). **The gradient tells how fast the score
# changes if you change a pixel a little, and not what the pixel contributes.** In this image it is largest at a dark pixel
# away from the bar. Cover that pixel alone with gray, and the score hardly changes.

# %%
# FGSM: one step along the sign
# -----------------------------
# The *fast gradient sign method* moves each pixel by the same small amount, in the direction in which the loss grows. ``clamp``
# keeps the range of these images, 0 to 1:


def fgsm(images, labels, size):
    x = images.detach().clone().requires_grad_()
    loss = cross_entropy(model(x), labels)
    (gradient,) = torch.autograd.grad(loss, x)
    return (images + size * gradient.sign()).clamp(0, 1)


def accuracy(images):
    with torch.no_grad():
        return (model(images).argmax(1) == labels).double().mean()


signs = torch.randn_like(images).sign()
at_random = (images + 0.15 * signs).clamp(0, 1)
print(f"test images:       {accuracy(images):.1%} right")
print(f"random signs:      {accuracy(at_random):.1%} right")
print(f"gradient's signs:  {accuracy(fgsm(images, labels, 0.15)):.1%} right")

# sphinx_gallery_start_ignore
assert accuracy(images) > 0.97 and accuracy(at_random) > 0.95
assert accuracy(fgsm(images, labels, 0.15)) < 0.35
_alone = [fgsm(images[i : i + 1], labels[i : i + 1], 0.15) for i in range(5)]
_same = fgsm(images[:5], labels[:5], 0.15) == torch.cat(_alone)
assert _same.double().mean() > 0.99  # a batch leaves each image its own gradient
assert all(p.grad is not None for p in model.parameters())  # of the training
assert images.min() >= 0 and images.max() <= 1 and _all.all()  # no sign is 0
_moved = fgsm(images, labels, 0.15) - images
_free = (images > 0.15) & (images < 0.85)
assert torch.allclose(_moved.abs()[_free], torch.tensor(0.15)) and _free.any()
_zeros = []
for _dtype in (torch.float32, torch.float16):
    torch.manual_seed(0)
    _layers = nn.Linear(256, 64), nn.ReLU(), nn.Linear(64, 2)
    _sure = nn.Sequential(nn.Flatten(), *_layers)
    _logits = _sure.float()(images.float())
    _sure[3].weight.data *= 15 / _logits.diff(dim=1).abs().median()
    _classes = _sure(images.float()).argmax(1)
    _leaf = images.to(_dtype).requires_grad_()
    _loss = cross_entropy(_sure.to(_dtype)(_leaf), _classes)
    _zeros.append((torch.autograd.grad(_loss, _leaf)[0] == 0).double().mean())
assert _zeros[0] < 0.01 and _zeros[1] > 0.5, _zeros
# sphinx_gallery_end_ignore

# %%
# Normalized images have a different range. Attack in float32: in float16, most of the gradient of a confident prediction is
# rounded to 0, and there the step is 0. In a training loop, call ``model.train()`` after the attack.
#
# The step for the image above:

attacked = fgsm(image, labels[7:8], 0.15)

# figure: Three pictures. The image with the vertical bar, the step with two colors scattered over the whole image, and their
#   sum, where the vertical bar is still easy to see.
draw_pictures(
    {"image": image, "step": attacked - image, "image + step": attacked},
    "The network calls the last picture horizontal",
)

# sphinx_gallery_start_ignore
assert model(attacked).argmax() == 0 and model(image).argmax() == 1
# sphinx_gallery_end_ignore

# %%
# Integrated gradients: what each pixel contributed
# -------------------------------------------------
# Choose a baseline, for example a gray image. Go from it to the image in small steps, average the gradient on the way, and
# multiply by the difference. All steps fit in one batch:


def integrated_gradients(image, label, baseline, steps):
    share = (torch.arange(steps) + 0.5) / steps
    path = baseline + share[:, None, None, None] * (image - baseline)
    path.requires_grad_()
    (gradients,) = torch.autograd.grad(model(path)[:, label].sum(), path)
    return (image - baseline) * gradients.mean(dim=0, keepdim=True)


baseline = torch.full_like(image, GRAY)
attribution = integrated_gradients(image, label, baseline, steps=256)

with torch.no_grad():
    rise = (model(image) - model(baseline))[0, label]
at_image = gradient * (image - baseline)
print(f"score of image - score of baseline:   {rise:.2f}")
print(f"sum of integrated gradients:          {attribution.sum():.2f}")
print(f"sum of gradient * (image - baseline): {at_image.sum():.2f}")

# sphinx_gallery_start_ignore
assert abs(attribution.sum() - rise) < 5e-3 and rise > 1
assert abs(at_image.sum() - rise) > 0.2
_gaps = []
for _steps in (4, 32, 256):
    _sums = [
        integrated_gradients(images[i : i + 1], labels[i], baseline, _steps).sum()
        - (model(images[i : i + 1]) - model(baseline))[0, labels[i]].detach()
        for i in range(20)
    ]
    _gaps.append(torch.stack(_sums).abs().max())
assert _gaps[0] > 2 * _gaps[1] > 4 * _gaps[2] and _gaps[2] < 0.02
_identical = integrated_gradients(image, label, image, 8)
assert not _identical.any()
_of_white = integrated_gradients(image, label, torch.ones_like(image), 256)
assert not _of_white[bars[7:8]].any() and (_of_white - attribution).abs().max() > 0.1
# sphinx_gallery_end_ignore

# %%
# With enough steps, the attributions add up to the whole rise of the score. If yours do not, look for a mistake. The result
# depends on the baseline: a pixel that equals its baseline gets 0.

# %%
# Grad-CAM: one forward hook, one ``autograd.grad``
# -------------------------------------------------
# Grad-CAM takes the gradient at a layer's output, averages it per channel, adds up the channels with these weights, and keeps
# what is positive:

features = []
with model[4].register_forward_hook(lambda _, args, out: features.append(out)):
    score = model(image.clone().requires_grad_())[0, label]

(at_layer,) = torch.autograd.grad(score, features[0])
weights = at_layer.mean(dim=(2, 3), keepdim=True)
cam = (weights * features[0]).sum(dim=1, keepdim=True).relu()
cam = nn.functional.interpolate(cam, size=(16, 16), mode="bilinear")

# figure: Two pictures. In the map of integrated gradients, the pixels of the bar stand out one by one. In the map of Grad-CAM,
#   a broad spot lies around the bar.
draw_pictures(
    {"image": image, "integrated gradients": attribution, "Grad-CAM": cam},
    "Both find the bar",
)

# sphinx_gallery_start_ignore
assert torch.allclose(weights[0, :, 0, 0], model[7].weight[label] / 64)
_frozen = []
model.requires_grad_(False)
for _head in (False, True):
    model[7].requires_grad_(_head)
    for _input in (image, image.clone().requires_grad_()):
        features.clear()
        _handle = model[4].register_forward_hook(
            lambda module, args, output: features.append(output)
        )
        _score = model(_input)[0, label]
        _handle.remove()
        _frozen.append((_score.requires_grad, features[0].requires_grad))
    assert torch.equal(torch.autograd.grad(_score, features[0])[0], at_layer)
assert _frozen == [(False, False), (True, True), (True, False), (True, True)]
_around = nn.functional.max_pool2d(bars[7:8] * 1.0, 5, 1, 2).bool().flatten()
assert _around[cam.flatten().topk(10).indices].all() and features[0].shape[-1] == 8
assert bars[7:8].flatten()[attribution.flatten().topk(8).indices].all()
_ = model.requires_grad_(True)
# sphinx_gallery_end_ignore

# %%
# At the end of ``with`` the hook is removed. The image requires grad, so that this works with frozen layers, too (asked in
# `MONAI#3035 <https://github.com/Project-MONAI/MONAI/issues/3035>`__). Take the model as it was before ``torch.compile``.

# %%
# Checked against occlusion
# -------------------------
# .. how-measured:: For 40 test images: the share of each map that lies on the bar, and its correlation with occlusion, for
#    which pixel maps are summed over 3 x 3 pixels.

import pandas as pd


def correlation(one, other):
    pairs = zip(one.flatten(1), other.flatten(1), strict=True)
    return torch.stack([torch.corrcoef(torch.stack(pair))[0, 1] for pair in pairs])


def grad_cam(x, labels):
    hidden = model[:5](x)
    scores = model[5:](hidden).gather(1, labels[:, None])
    (gradient,) = torch.autograd.grad(scores.sum(), hidden)
    cam = (gradient.mean((2, 3), keepdim=True) * hidden).sum(1, keepdim=True).relu()
    return nn.functional.interpolate(cam.detach(), size=(16, 16), mode="bilinear")


some = range(40)
few, truth = images[:40].clone().requires_grad_(), labels[:40]
(plain,) = torch.autograd.grad(model(few).gather(1, truth[:, None]).sum(), few)
paths = [
    integrated_gradients(few[i : i + 1].detach(), truth[i], baseline, 64) for i in some
]
occluded = torch.cat([occlusion(images[i : i + 1], labels[i]) for i in some])
rows = {}
for name, maps in {
    "|gradient|": plain.abs(),
    "image - baseline": few.detach() - GRAY,
    "product": plain * (few.detach() - GRAY),
    "integrated": torch.cat(paths),
    "Grad-CAM": grad_cam(few, truth),
}.items():
    if name != "Grad-CAM":
        summed = 9 * nn.functional.avg_pool2d(maps, 3, stride=1, padding=1)
    else:
        summed = maps
    on_bar = (maps.abs() * bars[:40]).sum((1, 2, 3)) / maps.abs().sum((1, 2, 3))
    rows[name] = {
        "on the bar": f"{on_bar.median():.0%}",
        "correlation": f"{correlation(summed, occluded).median():.1f}",
    }


def tabulate_maps():
    return pd.DataFrame(rows).T


# %%
# How much of each map is on the bar, and how well it agrees with occlusion (medians; *product* is the gradient times ``image -
# baseline``):

# sphinx_gallery_start_ignore
_table = tabulate_maps()
_row = _table["correlation"].astype(float)
assert _row["|gradient|"] < 0.45 and _row["product"] > 0.8 < _row["integrated"]
assert (
    _row["|gradient|"] < _row["Grad-CAM"] < _row["image - baseline"] < _row["product"]
)
_signed = 9 * nn.functional.avg_pool2d(plain, 3, stride=1, padding=1)
assert correlation(_signed, occluded).median() < _row["Grad-CAM"] - 0.1
_bars = _table["on the bar"].str.rstrip("%").astype(float)
assert _bars["|gradient|"] < 13 and _bars[["product", "integrated"]].min() > 38
assert abs(few.detach() - GRAY)[few < 0.3].max() < 0.16 < 0.8 < 1 - GRAY
_sums = [each.sum() for each in paths]
_rises = (model(few) - model(baseline)).gather(1, truth[:, None])[:, 0]
assert (torch.stack(_sums) - _rises).abs().max() < 0.1
assert ((plain * (few - GRAY)).sum((1, 2, 3)) - _rises).abs().median() > 0.3
assert len(model[7].weight[0]) == 16 and grad_cam(few, truth).shape[-1] == 16
assert torch.allclose(grad_cam(image.clone().requires_grad_(), labels[7:8]), cam)
# sphinx_gallery_end_ignore
tabulate_maps()

# %%
# The absolute gradient agrees least. But ``image - baseline`` agrees well without any gradient, because the bar is bright: a
# map that looks right proves little.

# %%
# Words: the gradient at the embedding's output
# ---------------------------------------------
# Token ids are integers, and ``ids.requires_grad_()`` raises *only Tensors of floating point dtype can require gradients*
# (:ref:`about this error <sphx_glr_gallery_errors_integer_leaf.py>`). Ask at the output of the embedding instead, with the
# hook of Grad-CAM.
#
# .. how-measured:: A classifier learns which of two kinds of words is more frequent in random sentences.

WORDS = ["the", "film", "was", "plot", "but", "great", "funny", "dull", "slow"]


class Review(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.score = nn.Embedding(len(WORDS), 4), nn.Linear(4, 1)

    def forward(self, ids):
        return self.score(self.embedding(ids).mean(dim=1).tanh())[:, 0]


review = Review()
optimizer = torch.optim.Adam(review.parameters(), lr=0.05)
for _ in range(200):
    ids = torch.randint(len(WORDS), (64, 6))
    good = ((ids == 5) | (ids == 6)).sum(1) > ((ids == 7) | (ids == 8)).sum(1)
    loss = nn.functional.binary_cross_entropy_with_logits(review(ids), good.double())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

# %%
# The gradient has a number for each component of each word's embedding. Multiply by the embedding and sum: one number a word.

sentence = "the plot was great but the film was slow"
words = sentence.split()
ids = torch.tensor([[WORDS.index(word) for word in words]])

outputs = []
embedding = review.embedding
with embedding.register_forward_hook(lambda _, args, out: outputs.append(out)):
    score = review(ids)[0]

(at_words,) = torch.autograd.grad(score, outputs[0])
by_word = (at_words * outputs[0]).sum(dim=-1)[0]
for word, value in zip(words, by_word.tolist(), strict=True):
    print(f"{word:<6} {value:+.1f}")

# sphinx_gallery_start_ignore
_by_word = dict(zip(words, by_word.tolist(), strict=True))
assert _by_word.pop("great") > 3 and _by_word.pop("slow") < -3
assert len(_by_word) == 5 and max(map(abs, _by_word.values())) < 1.5


def _score_with(embedded):
    with review.embedding.register_forward_hook(lambda *_: embedded):
        return review(ids)


_embedded = outputs[0].detach()
for _word in ("great", "slow"):  # checked by leaving the word out
    _without = _embedded.clone()
    _without[0, words.index(_word)] = 0
    _fall = (_score_with(_embedded) - _score_with(_without)).item()
    assert abs(_fall) > 2 and (_fall > 0) == (_word == "great")
_ways = (torch.arange(100) + 0.5)[:, None, None] / 100
_path = (_ways * _embedded).requires_grad_()
(_along,) = torch.autograd.grad(_score_with(_path).sum(), _path)
_sum = (_along.mean(0) * _embedded[0]).sum()
_rise = (_score_with(_embedded) - _score_with(0 * _embedded)).item()
assert abs(_sum - _rise) < 1e-3 * abs(_rise) + 1e-3
_raised = []
for _wrong in (
    ids.requires_grad_,
    lambda: torch.autograd.grad(review((f := ids.double().requires_grad_()).long()), f),
):
    try:
        _wrong()
    except RuntimeError as error:
        _raised.append(str(error))
assert _raised[0] == "only Tensors of floating point dtype can require gradients"
assert "appears to not have been used in the graph" in _raised[1]
review.embedding.weight.requires_grad_(False)
outputs.clear()
with review.embedding.register_forward_hook(
    lambda module, args, output: outputs.append(output)
):
    review(ids)
assert not outputs[0].requires_grad
outputs.clear()


def _give_leaf(module, args, output):
    outputs.append(output.detach().requires_grad_())
    return outputs[0]


with review.embedding.register_forward_hook(_give_leaf):
    _score = review(ids)[0]
assert torch.allclose(torch.autograd.grad(_score, outputs[0])[0], at_words)
_ = review.embedding.weight.requires_grad_(True)
# sphinx_gallery_end_ignore

# %%
# If the embedding is frozen, its output does not require grad. Then let the hook append ``out.detach().requires_grad_()``
# and return it: what a forward hook returns replaces the layer's output. (Many models of Hugging Face take
# ``inputs_embeds=`` instead.)

# %%
# Guidance: a gradient inside a sampling loop
# -------------------------------------------
# Diffusion models turn noise into an image in many denoising steps, under ``no_grad``. Guidance moves the image along the
# gradient of a score after each step. Switch recording on for that, and begin with a new leaf:


@torch.no_grad()
def sample(guidance, label=1):
    x = torch.full((1, 1, 16, 16), GRAY)
    for _ in range(10):
        x = nn.functional.avg_pool2d(x, 3, 1, padding=1)  # the denoiser
        with torch.enable_grad():
            leaf = x.detach().requires_grad_()
            score = model(leaf)[:, label].sum()
            (gradient,) = torch.autograd.grad(score, leaf)
        x = x + guidance * gradient
    return model(x).softmax(dim=1)[0, label].item()


print(f"probability of the label: {sample(0.0):.2f}, guided {sample(0.5):.2f}")

# sphinx_gallery_start_ignore
for _label in (0, 1):
    assert sample(0.0, _label) < 0.8 and sample(0.5, _label) > 0.9


class _Pipe:
    @torch.no_grad()
    def decode(self, x):
        return model(x)


_pipe, _leaf = _Pipe(), image.clone().requires_grad_()
with torch.no_grad(), torch.enable_grad():
    assert not _pipe.decode(_leaf).requires_grad
    assert _pipe.decode.__wrapped__(_pipe, _leaf).requires_grad
_denoiser = nn.AvgPool2d(3, 1, padding=1)
_raised = []
with torch.no_grad():
    _clean = _denoiser(_leaf)
    with torch.enable_grad():
        try:
            torch.autograd.grad(model(_clean)[0, label], _leaf)
        except RuntimeError as error:
            _raised.append("appears to not have been used" in str(error))
        _score = model(_denoiser(_leaf))[0, label]
        assert torch.autograd.grad(_score, _leaf)[0].any()
assert _raised == [True]


@torch.inference_mode()
def _sample(x):
    x = x * 1
    with torch.inference_mode(False):
        leaf = x.clone().requires_grad_()
        return torch.autograd.grad(model(leaf)[0, label], leaf)[0]


assert torch.equal(_sample(image), gradient)
# sphinx_gallery_end_ignore

# %%
# If you score the denoised image, call the denoiser on ``leaf``, too. A method decorated with ``no_grad`` cuts the graph: call
# ``pipe.decode.__wrapped__(pipe, x)`` (asked in `diffusers#2990
# <https://github.com/huggingface/diffusers/issues/2990>`__).

# %%
# What people get wrong
# ---------------------
# **no_grad around it.** Evaluation code often runs under ``no_grad()``, from a decorator or a framework. Then the model's
# operations are not recorded, and ``requires_grad_()`` does not change that:

# sphinx_gallery_start_ignore
_messages = []
try:
    # sphinx_gallery_end_ignore
    with torch.no_grad():
        x = image.clone().requires_grad_()
        score = model(x)[0, label]
        torch.autograd.grad(score, x)
# sphinx_gallery_start_ignore
except RuntimeError as error:
    _messages.append(str(error))
    print("RuntimeError:", error)
(_message,) = _messages
assert _message.startswith("element 0 of tensors does not require grad and does not")


def _map_under(*contexts, prepare=torch.clone):
    """The gradient in these contexts, each entered within the one before, or a message."""
    import contextlib

    with contextlib.ExitStack() as stack:
        stack.enter_context(contexts[0])
        given = image * 1
        for context in contexts[1:]:
            stack.enter_context(context)
        try:
            x = prepare(given).requires_grad_()
            return torch.autograd.grad(model(x)[0, label], x)[0]
        except RuntimeError as error:
            return str(error)


assert torch.equal(_map_under(torch.no_grad(), torch.enable_grad()), gradient)
assert _map_under(torch.inference_mode()) == _message
assert _map_under(torch.inference_mode(), torch.enable_grad()) == _message
_out = torch.inference_mode(False)
assert torch.equal(_map_under(torch.inference_mode(), _out), gradient)
assert "inference tensor" in _map_under(
    torch.inference_mode(), torch.inference_mode(False), prepare=torch.detach
)
_raised = []
for _ready in (torch.clone, torch.detach):  # labels are saved for backward
    with torch.inference_mode():
        _given, _labels = image * 1, labels[7:8] * 1
        with torch.inference_mode(False):
            try:
                _x = _given.clone().requires_grad_()
                _loss = cross_entropy(model(_x), _ready(_labels))
                _raised.append(torch.autograd.grad(_loss, _x)[0].any().item())
            except RuntimeError as error:
                _raised.append(str(error))
assert _raised[0] is True and "Inference tensors cannot be saved" in _raised[1]
# sphinx_gallery_end_ignore

# %%
# (Asked in `advertorch#79 <https://github.com/BorealisAI/advertorch/issues/79>`__.) Put these lines under
# ``with torch.enable_grad():``. Within ``inference_mode``, that records nothing: write ``with torch.inference_mode(False):``,
# and ``clone()`` the image and the labels inside, because tensors of that mode cannot be saved for backward (see
# `lightning#14497 <https://github.com/Lightning-AI/pytorch-lightning/issues/14497>`__).
#
# **The second step of an attack.** After the first step, ``x`` is a result, so ``backward()`` leaves its ``.grad`` empty, and
# PyTorch warns:

# sphinx_gallery_start_ignore
import warnings

_messages, _seen = [], warnings.catch_warnings(record=True)
_caught = _seen.__enter__()
warnings.simplefilter("always")
try:
    # sphinx_gallery_end_ignore
    x = image.clone().requires_grad_()
    for _ in range(2):
        loss = cross_entropy(model(x), labels[7:8])
        loss.backward()
        x = x + 0.05 * x.grad.sign()
# sphinx_gallery_start_ignore
except AttributeError as error:
    _messages.append(str(error))
    print("AttributeError:", error)
_seen.__exit__(None, None, None)
assert _messages == ["'NoneType' object has no attribute 'sign'"]
assert ["not a leaf Tensor" in str(w.message) for w in _caught] == [True]
# sphinx_gallery_end_ignore

# %%
# (As in `advertorch#49 <https://github.com/BorealisAI/advertorch/issues/49>`__.) Give each step a new leaf: ``x = (x + 0.05 *
# x.grad.sign()).detach().requires_grad_()``.
#
# **backward() fills the parameters' .grad, too.** Then the next training step adds its own. ``torch.autograd.grad(score, x)``
# leaves ``.grad`` alone.
#
# **The probability instead of the score.** Where the network is confident, ``softmax`` is flat. This code makes the last two
# mistakes:

model.zero_grad()
x = image.clone().requires_grad_()
model(x).softmax(dim=1)[0, label].backward()

weights = [p.grad is not None for p in model.parameters()]
print(f"gradient of the probability: at most {x.grad.abs().max():.4f}")
print(f"gradient of the score:       at most {gradient.abs().max():.4f}")
print(f"parameters with a .grad:     {sum(weights)} of {len(weights)}")

# sphinx_gallery_start_ignore
assert x.grad.abs().max() < 0.01 * gradient.abs().max() and all(weights)
assert model(image).softmax(dim=1)[0, label] > 0.99 and len(weights) == 6
_before = [p.grad.clone() for p in model.parameters()]
model(x)[0, label].backward()
_added = torch.autograd.grad(model(x)[0, label], list(model.parameters()))
for _p, _old, _new in zip(model.parameters(), _before, _added, strict=True):
    assert torch.allclose(_p.grad, _old + _new) and _new.any()
model.zero_grad()
torch.autograd.grad(model(x)[0, label], x)
assert not any(p.grad is not None for p in model.parameters())
_sure = torch.tensor([0.0, 40.0], dtype=torch.float32, requires_grad=True)
assert not torch.autograd.grad(_sure.softmax(0)[1], _sure)[0].abs().max() > 1e-15
_x = image.clone().requires_grad_()  # an in-place step adds up
for _ in range(2):
    model(_x)[0, label].backward()
assert torch.allclose(_x.grad, 2 * gradient)
model.zero_grad()
for _step in range(3):  # the cure of the attack
    _x = _x.detach().requires_grad_()
    cross_entropy(model(_x), labels[7:8]).backward()
    _x = (_x + 0.05 * _x.grad.sign()).detach().requires_grad_()
assert _x.is_leaf and model(_x)[0, label] < model(image)[0, label] - 1
model.zero_grad()
# sphinx_gallery_end_ignore

# %%
# Exercise
# --------
# One ``torch.autograd.grad`` of the summed scores gives the maps of a whole batch. Put a ``BatchNorm2d`` behind the first
# layer. Is each map still the map of its image alone? Compare ``eval()`` and ``train()``.
#
# .. solution::
#
# In ``eval()`` it is, because each score depends on its own image alone. In ``train()`` the layer normalizes with the
# statistics of the batch, so each image changes the scores of the others.

normed = nn.Sequential(model[0], nn.BatchNorm2d(8), *model[1:])


def saliency(images, labels):
    x = images.detach().clone().requires_grad_()
    scores = normed(x).gather(1, labels[:, None])
    return torch.autograd.grad(scores.sum(), x)[0]


for training in (False, True):
    normed.train(training)
    together, alone = saliency(images[:8], labels[:8]), saliency(images[:1], labels[:1])
    difference = (together[0] - alone[0]).norm() / alone[0].norm()
    print(f"training={training!s:<5}  relative difference {difference:.1f}")
    assert difference > 0.3 if training else difference < 1e-9

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_differentiation_gradients_of_intermediates.py`, three ways to a gradient inside a model.
# - :ref:`sphx_glr_gallery_differentiation_hooks_on_modules.py`, for layers that return a tuple or a dict.
# - :ref:`sphx_glr_gallery_modes_grad_modes.py`, what ``no_grad`` and ``inference_mode`` do.
# - :ref:`sphx_glr_gallery_errors_no_grad_fn.py`, the message of the first mistake, and its other causes.
# - In PyTorch's reference: `torch.autograd.grad
#   <https://docs.pytorch.org/docs/stable/generated/torch.autograd.grad.html>`__ and `the tutorial on FGSM
#   <https://docs.pytorch.org/tutorials/beginner/fgsm_tutorial.html>`__. `Captum <https://captum.ai>`__ is a
#   library of such maps.
