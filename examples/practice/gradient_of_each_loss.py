r"""
The gradient of each loss: multi-task learning and PCGrad
=========================================================

.. index::
   single: norm of the gradient of each loss
   single: per-task gradients
   single: multi-task learning: conflicting gradients
   single: cosine similarity of two gradients
   single: PCGrad, gradient surgery
   single: GradNorm: balance two losses
   single: weights of the losses in a total loss
   single: set .grad by hand
   single: separate the gradients of two losses

.. in-short::

   Ask for each gradient before they are added: one ``torch.autograd.grad`` for each loss.

   .. code-block:: python

      grad_a = torch.autograd.grad(loss_a, shared, retain_graph=True)
      grad_b = torch.autograd.grad(loss_b, shared)

   ``shared`` is the list of the parameters that both losses use. After ``(loss_a + loss_b).backward()``, ``.grad``
   holds the sum. A parameter that one loss does not use, or that is frozen, raises an error: leave it out of the list.
"""

# %%
# Two losses pull on one trunk
# ----------------------------
# In multi-task learning, several small networks (*heads*) share the layers below them, the *trunk*. Each head has a loss. How
# large is the gradient of each loss, and do they agree? Make one call for each loss:

import torch
from torch import nn
from torch.nn.functional import cosine_similarity, mse_loss

torch.manual_seed(75)
trunk = nn.Sequential(nn.Linear(4, 6), nn.Tanh())
head_a, head_b = nn.Linear(6, 1), nn.Linear(6, 1)
x = torch.randn(64, 4)
target_a, target_b = x[:, :1], 3 * (x[:, 1:2] - x[:, :1])


def two_losses():
    h = trunk(x)
    return mse_loss(head_a(h), target_a), mse_loss(head_b(h), target_b)


def flat(gradients):
    return torch.cat([gradient.flatten() for gradient in gradients])


loss_a, loss_b = two_losses()
shared = list(trunk.parameters())
grad_a = flat(torch.autograd.grad(loss_a, shared, retain_graph=True))
grad_b = flat(torch.autograd.grad(loss_b, shared))

# %%
# .. how-measured:: This code draws gradients in their plane, with true lengths and angles.

import matplotlib.pyplot as plt


def plot_two_gradients(grad_a, grad_b):
    total = grad_a + grad_b
    along = grad_b / grad_b.norm()
    rest = grad_a - (grad_a @ along) * along
    plane = torch.stack([along, rest / rest.norm()])
    _, ax = plt.subplots(figsize=(7, 1.75), layout="constrained")
    for vector, color, name, place in (
        (grad_a, "#2563eb", "loss a", (0, 6)),
        (grad_b, "#c2410c", "loss b", (26, -4)),
        (total, "#1e293b", "the sum", (0, 6)),
    ):
        tip = (plane @ vector).tolist()
        arrow = {"arrowstyle": "-|>", "color": color, "lw": 2}
        ax.annotate("", tip, (0, 0), arrowprops={**arrow, "shrinkA": 0, "shrinkB": 0})
        ax.annotate(
            name, tip, place, textcoords="offset points", color=color, ha="center"
        )
        ax.plot(*tip, alpha=0)
    ax.set(aspect="equal", xlim=(-0.8, 2.8), ylim=(-0.1, 0.7))
    ax.axis("off")
    ax.set_title("The sum points away from the gradient of loss a")


# %%
# The two gradients and their sum, which lie in one plane:

# figure: Three arrows from one point. The gradient of loss b is long and points to the right. The gradient of loss a is
#   short and points to the upper left. The sum points to the right, more than 90 degrees away from the gradient of loss a.
plot_two_gradients(grad_a, grad_b)

# %%
# The first call keeps the graph for the second. ``flat`` joins the gradients of all parameters into one vector of 30 numbers.

total = grad_a + grad_b
print(f"norms: {grad_a.norm():.2f} and {grad_b.norm():.2f}")
print(f"cosine of the two: {cosine_similarity(grad_a, grad_b, dim=0):.2f}")
print(f"cosine of grad_a and the sum: {cosine_similarity(grad_a, total, dim=0):.2f}")

# sphinx_gallery_start_ignore
assert cosine_similarity(grad_a, grad_b, dim=0) < -0.5
assert 0.1 < grad_a.norm() / grad_b.norm() < 0.5
assert grad_a @ total < 0 < grad_b @ total and grad_a @ grad_b < 0
assert len(total) == 30 == sum(p.numel() for p in shared)
assert all(p.grad is None for p in shared)
_raised = []


def _message(call):
    try:
        call()
    except RuntimeError as error:
        return str(error)
    return ""


_pair = two_losses()
torch.autograd.grad(_pair[0], shared)
_raised.append(_message(lambda: torch.autograd.grad(_pair[1], shared)))
assert "second time" in _raised[0]
_a, _b = two_losses()
assert "Set allow_unused" in _message(
    lambda: torch.autograd.grad(_a, list(head_b.parameters()))
)


def _after_a_step(against, moved):  # of plain SGD
    trunk_alone = [p.detach().clone() for p in shared]
    every = [*shared, *head_a.parameters(), *head_b.parameters()]
    kept = [p.detach().clone() for p in every]
    losses = two_losses()
    gradients = torch.autograd.grad(against(*losses), every[:moved])
    with torch.no_grad():
        for p, gradient in zip(every, gradients, strict=False):
            p -= 0.001 * gradient
        moves = [new - old for new, old in zip(two_losses(), losses, strict=True)]
        for p, old in zip(every, kept, strict=True):
            p.copy_(old)
    assert all(map(torch.equal, shared, trunk_alone))
    return moves


def _the_sum(a, b):
    return a + b


_a_up, _b_down = _after_a_step(_the_sum, 2)
assert _a_up > 1e-5 and _a_up + _b_down < 0  # the trunk alone
assert all(move < -1e-5 for move in _after_a_step(_the_sum, 6))  # with the heads
assert _after_a_step(lambda a, b: b, 2)[0] > 1e-5
assert _after_a_step(lambda a, b: a, 2)[1] > 1e-5
# sphinx_gallery_end_ignore

# %%
# **Separate the gradients before you add the losses: afterwards there is only their sum.** A negative cosine is a *conflict*: a
# small enough step of the shared parameters against one gradient raises the other loss. The sum conflicts with ``grad_a``, so
# a small step of the trunk against it lowers the total and raises loss a.

# %%
# Two calls, or one batched call
# ------------------------------
# The second way stacks the losses into a vector. Each row of the unit matrix picks one loss, and ``is_grads_batched=True``
# sends all rows through the graph in one pass, with ``torch.vmap``:

losses = torch.stack(two_losses())
unit = torch.eye(len(losses)).to(losses)
batched = torch.autograd.grad(losses, shared, unit, is_grads_batched=True)
print([tuple(gradient.shape) for gradient in batched])

rows = torch.cat([gradient.flatten(1) for gradient in batched], dim=1)
print("equal:", torch.allclose(rows, torch.stack([grad_a, grad_b])))

# sphinx_gallery_start_ignore
assert torch.allclose(rows, torch.stack([grad_a, grad_b]), atol=1e-6)
assert [g.shape[0] for g in batched] == [2, 2]
_meta = nn.Linear(4, 2, device="meta")
_sums = _meta(torch.empty(3, 4, device="meta")).sum(0)
assert "device" in _message(
    lambda: torch.autograd.grad(
        _sums, _meta.weight, torch.eye(2), is_grads_batched=True
    )
)
_eye = torch.eye(2).to(_sums)
(_far,) = torch.autograd.grad(_sums, _meta.weight, _eye, is_grads_batched=True)
assert _far.shape == (2, 2, 4) and _far.device.type == "meta"


def _check_family(layer, data, dtype=torch.float32):
    layer = layer.to(dtype)
    out = layer(data)
    out = out[0] if isinstance(out, tuple) else out
    many = torch.stack([out.square().mean(), out.sin().sum(), out.flatten()[0]])
    named = list(layer.parameters())
    eye = torch.eye(3, dtype=dtype)
    whole = torch.autograd.grad(
        many, named, eye, is_grads_batched=True, retain_graph=True
    )
    for i in range(3):
        one = torch.autograd.grad(many[i], named, retain_graph=True)
        for a, b in zip(whole, one, strict=True):
            assert torch.allclose(a[i], b, rtol=1e-3, atol=1e-4), layer


_check_family(nn.Linear(4, 3), torch.randn(5, 4))
_check_family(nn.Linear(4, 3), torch.randn(5, 4).double(), torch.float64)
_check_family(nn.Conv2d(2, 3, 3), torch.randn(2, 2, 5, 5))
_check_family(nn.BatchNorm1d(4), torch.randn(5, 4))
_check_family(nn.LayerNorm(4), torch.randn(5, 4))
_check_family(nn.LSTM(4, 3, batch_first=True), torch.randn(2, 6, 4))
_check_family(nn.Embedding(4, 3), torch.arange(4))
_check_family(nn.TransformerEncoderLayer(4, 2, 8, 0.0), torch.randn(6, 2, 4))
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode


class Operators(TorchDispatchMode):
    count = largest = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.count += 1
        result = func(*args, **(kwargs or {}))
        if isinstance(result, torch.Tensor):
            self.largest = max(self.largest, result.numel())
        return result


def cost(way, layers, meter):
    deep = nn.Sequential(*(nn.Linear(4, 4) for _ in range(layers)))
    weights, h, passes = list(deep.parameters()), deep(x), []
    h.grad_fn.register_hook(lambda *_: passes.append(1))
    losses = [mse_loss(nn.Linear(4, 1)(h), target_a) for _ in range(8)]
    total, stacked, unit = sum(losses), torch.stack(losses), torch.eye(8)
    with meter:
        if way == "one backward of the sum":
            total.backward(inputs=weights)
        elif way == "one call for each loss":
            for loss in losses:
                torch.autograd.grad(loss, weights, retain_graph=True)
        else:
            torch.autograd.grad(stacked, weights, unit, is_grads_batched=True)
    return len(passes)


_ways = ["one backward of the sum", "one call for each loss", "one batched call"]
_passes, _small, _large = [], [], []
for _way in _ways:
    _two, _twenty = Operators(), Operators()
    _passes.append((cost(_way, 2, _two), cost(_way, 20, _twenty))[0])
    _small.append(_two.count)
    _large.append(_twenty.count)
assert _passes == [1, 8, 1]
assert _small[2] > _small[1] > _small[0]
assert _large[1] > _large[2] > _large[0] and _large[2] < 0.8 * _large[1]
_meters = [Operators() for _ in _ways]
for _way, _meter in zip(_ways, _meters, strict=True):
    cost(_way, 2, _meter)
assert _meters[0].largest == _meters[1].largest == 64 * 4  # a gradient of h
assert _meters[2].largest == 8 * 64 * 4
_flops = {}
for _way in _ways:
    for _layers in (2, 20):
        _meter = FlopCounterMode(display=False)
        cost(_way, _layers, _meter)
        _flops[_way, _layers] = _meter.get_total_flops()
_extra = {n: _flops[_ways[2], n] - _flops[_ways[1], n] for n in (2, 20)}
_head = 64 * 4 * 2  # the gradient of a head's input, for one row
assert _extra[2] == _extra[20] == (8 * 8 - 8) * _head
_outs = [nn.Linear(4, 1)(torch.ones(3, 4)) for _ in range(8)]
_many = torch.stack([out.sum() for out in _outs])
_at_heads = torch.autograd.grad(_many, _outs, torch.eye(8), is_grads_batched=True)
for _i, _rows in enumerate(_at_heads):
    assert len(_rows) == 8 and _rows.flatten(1).any(1).nonzero().tolist() == [[_i]]
_trunk = [_flops[way, 20] - _flops[way, 2] for way in _ways]
assert _trunk[1] == _trunk[2] == 8 * _trunk[0] > 0
# sphinx_gallery_end_ignore

# %%
# For eight losses, the batched call does as much arithmetic in the trunk as eight calls, with fewer operators if the trunk is
# deep. But its gradients on the way are eight times as large. Both ways return a gradient of the size of ``shared`` for each
# loss.

# %%
# PCGrad in ten lines
# -------------------
# PCGrad removes from each gradient the part that points against another one, and then adds them:


def pcgrad(rows):
    result = rows.clone()
    for i in range(len(rows)):
        for j in torch.randperm(len(rows)).tolist():
            dot = result[i] @ rows[j]
            if i != j and dot < 0:
                square = rows[j].square().sum().clamp(min=1e-30)
                result[i] -= dot / square * rows[j]
    return result.sum(0)


def set_grad(parameters, vector):
    pieces = vector.split([p.numel() for p in parameters])
    for p, piece in zip(parameters, pieces, strict=True):
        p.grad = piece.view_as(p)


# sphinx_gallery_start_ignore
for _seed in range(50):
    torch.manual_seed(_seed)
    _rows = torch.randn(2, 5, dtype=torch.float64)
    _down = pcgrad(_rows)
    assert (_rows @ _down > -1e-12).all()
    if _rows[0] @ _rows[1] >= 0:
        assert torch.equal(_down, _rows.sum(0))
_g = torch.randn(5)
for _rows in ([_g, -_g], [_g, 0 * _g], [_g * 1e-14, -_g], [_g, _g * -1e-14]):
    _rows = torch.stack(_rows)
    _down = pcgrad(_rows)
    assert (_rows @ _down >= -1e-5 * _rows.norm(dim=1) * _rows.norm()).all()
assert pcgrad(torch.stack([_g, _g * -1e-23])).isfinite().all()
_worst = 0.0
for _seed in range(200):  # three losses: a conflict can remain
    torch.manual_seed(_seed)
    _rows = torch.randn(3, 3, dtype=torch.float64)
    _worst = min(_worst, (_rows @ pcgrad(_rows)).min().item())
assert _worst < -0.01
_half = torch.stack([torch.full((5,), 1e-4), torch.full((5,), -2e-4)]).half()
assert not pcgrad(_half).isfinite().all() and pcgrad(_half.float()).isfinite().all()
# sphinx_gallery_end_ignore

# %%
# Balancing by norm is another way: scale each gradient to the same norm. To compare, take one step against each direction,
# with the same ``lr``. The optimizer needs only ``.grad``:

start = {name: value.clone() for name, value in trunk.state_dict().items()}
directions = {
    "sum": rows.sum(0),
    "PCGrad": pcgrad(rows),
    "balanced": (rows.norm(dim=1).mean() / rows.norm(dim=1)) @ rows,
}
print("before  ", [round(loss.item(), 3) for loss in two_losses()])
after = {}
for name, direction in directions.items():
    optimizer = torch.optim.SGD(shared, lr=0.02)
    set_grad(shared, direction)
    optimizer.step()
    after[name] = [round(loss.item(), 3) for loss in two_losses()]
    print(f"{name:<8}", after[name])
    trunk.load_state_dict(start)

# sphinx_gallery_start_ignore
_before = [loss.item() for loss in two_losses()]
assert sum(after["sum"]) < sum(_before) - 0.01
assert after["sum"][0] > _before[0] + 0.002 and after["sum"][1] < _before[1] - 0.01
for _name in ("PCGrad", "balanced"):
    assert all(
        new < old - 0.002 for new, old in zip(after[_name], _before, strict=True)
    )
assert after["sum"][1] < min(after["PCGrad"][1], after["balanced"][1])
# sphinx_gallery_end_ignore

# %%
# The sum raises loss a, and the other two lower both losses. Without a conflict, PCGrad is the sum. With three losses, a
# conflict can remain (asked in `PCGrad#9 <https://github.com/tianheyu927/PCGrad/issues/9>`__). In float16 the squares in
# ``pcgrad`` underflow: pass ``rows.float()``. In a training loop, the heads get their gradients from ``backward``:

every = [*shared, *head_a.parameters(), *head_b.parameters()]
optimizer = torch.optim.Adam(every, lr=0.01)
heads = every[2:]
for _ in range(50):
    losses = torch.stack(two_losses())
    optimizer.zero_grad()
    losses.sum().backward(inputs=heads, retain_graph=True)
    batched = torch.autograd.grad(losses, shared, unit, is_grads_batched=True)
    rows = torch.cat([gradient.flatten(1) for gradient in batched], dim=1)
    set_grad(shared, pcgrad(rows))
    optimizer.step()
print("after 50 steps:", [round(loss.item(), 3) for loss in two_losses()])

# sphinx_gallery_start_ignore
assert all(new.item() < old for new, old in zip(two_losses(), _before, strict=True))
_path = two_losses()
_left = torch.autograd.grad(_path[0] + _path[1], every)
assert all(p.grad is not None for p in every) and len(heads) == 4 and len(_left) == 6
# sphinx_gallery_end_ignore

# %%
# The gradient of the shared feature
# ----------------------------------
# Two gradients of the weights cost two passes through the trunk. It is cheaper to look at one tensor: the trunk's output ``h``.
# The call of ``grad`` below does not enter the trunk:

h = trunk(x)
loss_a, loss_b = mse_loss(head_a(h), target_a), mse_loss(head_b(h), target_b)
losses = torch.stack([loss_a, loss_b])
options = {"is_grads_batched": True, "retain_graph": True}
(at_h,) = torch.autograd.grad(losses, h, unit, **options)
norms = at_h.flatten(1).norm(dim=1)

optimizer.zero_grad()
losses.sum().backward(inputs=heads)
h.backward(torch.tensordot(norms.mean() / norms.clamp(min=1e-8), at_h, dims=1))

# sphinx_gallery_start_ignore
_balanced = (norms.mean() / norms)[:, None, None] * at_h
assert torch.allclose(_balanced.flatten(1).norm(dim=1), norms.mean(), rtol=1e-4)
assert not norms.requires_grad and all(p.grad is not None for p in every)
_h = trunk(x)
_want = torch.autograd.grad(_h, shared, _balanced.sum(0))
assert all(torch.allclose(p.grad, g) for p, g in zip(shared, _want, strict=True))
_own = torch.autograd.grad(sum(two_losses()), heads)
assert all(torch.allclose(p.grad, g) for p, g in zip(heads, _own, strict=True))
_h, _visits = trunk(x), []
_h.grad_fn.register_hook(lambda *_: _visits.append(1))
_both = torch.stack([head_a(_h).sum(), head_b(_h).square().sum()])
(_rows,) = torch.autograd.grad(_both, _h, unit, **options)
_both.sum().backward(inputs=heads)
assert not _visits
_h.backward(_rows.sum(0))
assert len(_visits) == 1


def _zero_head(least):
    _trunk, _a, _b = nn.Linear(4, 6), nn.Linear(6, 1), nn.Linear(6, 1)
    nn.init.zeros_(_a.weight)
    _mine = [*_a.parameters(), *_b.parameters()]
    _h = _trunk(x)
    _both = torch.stack([mse_loss(_a(_h), target_a), mse_loss(_b(_h), target_b)])
    (_rows,) = torch.autograd.grad(_both, _h, unit, **options)
    _norms = _rows.flatten(1).norm(dim=1)
    assert _norms[0] == 0 and _norms[1] > 0
    _scale = _norms.mean() / _norms.clamp(min=least)
    _both.sum().backward(inputs=_mine)
    _h.backward(torch.tensordot(_scale, _rows, dims=1))
    return _trunk.weight.grad, _a.weight.grad


assert _zero_head(0.0)[0].isnan().any()  # without the clamp
assert all(g.isfinite().all() and g.norm() < 100 for g in _zero_head(1e-8))
optimizer.zero_grad()
# sphinx_gallery_end_ignore

# %%
# The heads get their own gradients. The last line sends one gradient through the trunk, in which both losses have the same norm
# at ``h``. A norm can be 0, as with a head whose weight starts at zero: without the ``clamp``, the gradients become NaN.
# (GradNorm learns weights of the losses during the training.)
#
# Do ``h`` and the weights agree?

batched = torch.autograd.grad(torch.stack(two_losses()), shared, unit, **options)
at_weights = torch.cat([gradient.flatten(1) for gradient in batched], dim=1)
for name, pair in {"feature": at_h.flatten(1), "weights": at_weights}.items():
    ratio = (pair[1].norm() / pair[0].norm()).item()
    print(f"{name}: cosine {cosine_similarity(*pair, dim=0):.2f}, ratio {ratio:.1f}")

# sphinx_gallery_start_ignore
_ratios = [(p[1].norm() / p[0].norm()).item() for p in (at_h, at_weights)]
assert abs(_ratios[0] / _ratios[1] - 1) < 0.1
_cosines = [cosine_similarity(*p, dim=0) for p in (at_h.flatten(1), at_weights)]
assert _cosines[0] - _cosines[1] > 0.4
_opposite = 0
for _seed in range(60):
    torch.manual_seed(_seed)
    _net, _out_a, _out_b = nn.Linear(4, 6), nn.Linear(6, 1), nn.Linear(6, 1)
    _h = _net(x).tanh()
    _pair = mse_loss(_out_a(_h), target_a), mse_loss(_out_b(_h), target_b)
    _signs = []
    for _inputs in ([_h], list(_net.parameters())):
        _rows = [
            flat(torch.autograd.grad(v, _inputs, retain_graph=True)) for v in _pair
        ]
        _signs.append(cosine_similarity(*_rows, dim=0).item())
    _opposite += _signs[0] * _signs[1] < 0
assert _opposite > 0
# sphinx_gallery_end_ignore

# %%
# The ratio of the norms is close, but the cosines differ, and can even differ in sign.

# %%
# Weights: the ratio counts
# -------------------------
# Adam divides an average of the gradient by its typical size. If you multiply the *total* loss by 10, the factor cancels. If
# you multiply one of the losses, it does not. The same training, with other weights of the two losses:


def train(make, weight_a, weight_b):
    torch.manual_seed(1)
    net = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 2))
    start = flat(p.detach().clone() for p in net.parameters())
    optimizer = make(net.parameters())
    for _ in range(20):
        a, b = net(x).split(1, dim=1)
        loss = weight_a * mse_loss(a, target_a) + weight_b * mse_loss(b, target_b)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return flat(p.detach() for p in net.parameters()) - start


def shift(make, weight_a, weight_b):
    plain = train(make, 1, 1)
    return ((train(make, weight_a, weight_b) - plain).norm() / plain.norm()).item()


print("distance to the end of the training with weights (1, 1)")
for name, make in {
    "Adam": lambda p: torch.optim.Adam(p, lr=0.01),
    "SGD": lambda p: torch.optim.SGD(p, lr=0.001),
}.items():
    for pair in ((10, 10), (10, 1), (1, 10)):
        print(f"{name:<5} weights {pair!s:<9} {shift(make, *pair):8.1%}")

# sphinx_gallery_start_ignore
_adam, _sgd = (lambda p: torch.optim.Adam(p, lr=0.01), make)
assert shift(_adam, 10, 10) < 1e-4 and shift(_adam, 0.1, 0.1) < 1e-4
assert shift(_adam, 10, 1) > 0.2 and shift(_adam, 1, 10) > 0.2
assert shift(_adam, 10, 1) != shift(_adam, 1, 10)
assert shift(_adam, 1e-8, 1e-8) > 0.3  # eps
assert shift(lambda p: torch.optim.Adam(p, lr=0.01, weight_decay=0.1), 10, 10) > 0.05
assert shift(lambda p: torch.optim.AdamW(p, lr=0.01, weight_decay=0.1), 10, 10) < 1e-4


class _Clipped(torch.optim.Adam):
    def step(self):
        nn.utils.clip_grad_norm_(self.param_groups[0]["params"], 8.0)
        super().step()


assert shift(lambda p: _Clipped(p, lr=0.01), 10, 10) > 0.005
_ten = train(lambda p: torch.optim.SGD(p, lr=0.01), 1, 1)
assert torch.allclose(_ten, train(_sgd, 10, 10), atol=1e-4)


def _head_alone(weight):  # no trunk: the head's own path under Adam
    torch.manual_seed(1)
    head = nn.Linear(4, 1)
    optimizer = torch.optim.Adam(head.parameters(), lr=0.01)
    for _ in range(20):
        optimizer.zero_grad()
        (weight * mse_loss(head(x), target_a)).backward()
        optimizer.step()
    return flat(p.detach() for p in head.parameters())


assert torch.allclose(_head_alone(1), _head_alone(10), atol=1e-5)
assert torch.allclose(_head_alone(1), _head_alone(0.1), atol=1e-5)
# sphinx_gallery_end_ignore

# %%
# With Adam, 10 and 10 are like 1 and 1. With plain SGD, a factor of the total loss is a factor of ``lr``. It matters in Adam,
# too, if you clip the gradients, or with ``weight_decay`` (not of ``AdamW``).

# %%
# What people get wrong
# ---------------------
# **DistributedDataParallel does not see these gradients.** It averages over the processes in ``backward()``, while
# ``torch.autograd.grad`` returns what this process has. So the copies of the model drift apart without an error, or the next
# step raises *Expected to have finished reduction*. Run forward and both calls under ``ddp.no_sync()``, then average ``rows``
# and the ``.grad`` of the heads with ``torch.distributed.all_reduce`` (asked in `Pytorch-PCGrad#5
# <https://github.com/WeiChengTseng/Pytorch-PCGrad/issues/5>`__).
#
# **set_grad in a loop that accumulates.** It replaces ``.grad``, while ``backward`` adds to it. So add up the ``rows`` of all
# batches, and call ``set_grad`` once.

# sphinx_gallery_start_ignore
import torch.distributed as dist

dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
_ddp, _averaged = nn.parallel.DistributedDataParallel(nn.Linear(4, 1)), []


def _count(state, bucket):
    _averaged.append(1)
    future = torch.futures.Future()
    future.set_result(bucket.buffer())
    return future


_ddp.register_comm_hook(None, _count)
torch.autograd.grad(_ddp(x).sum(), list(_ddp.parameters()))
assert not _averaged
_ddp(x).sum().backward()
assert len(_averaged) == 1
with _ddp.no_sync():
    _ddp(x).sum().backward()
assert len(_averaged) == 1
dist.destroy_process_group()
# sphinx_gallery_end_ignore

# %%
# **The gradients are separated after backward.** The list of all ``.grad`` has one entry for each *parameter*, and each entry
# is the sum over the losses. So PCGrad on this list compares the weight with the bias instead of loss a with loss b
# (`Truxify#11390 <https://github.com/KanishJebaMathewM/Truxify/issues/11390>`__):

for p in shared:
    p.grad = None
loss_a, loss_b = two_losses()
grad_a = flat(torch.autograd.grad(loss_a, shared, retain_graph=True))
grad_b = flat(torch.autograd.grad(loss_b, shared, retain_graph=True))
(loss_a + loss_b).backward()
print([tuple(p.grad.shape) for p in shared])
print("the sum:", torch.allclose(flat(p.grad for p in shared), grad_a + grad_b))

# sphinx_gallery_start_ignore
assert torch.allclose(flat(p.grad for p in shared), grad_a + grad_b, atol=1e-5)
assert len([p.grad for p in shared]) == 2 == len(shared)
# sphinx_gallery_end_ignore

# %%
# **The parameters of the heads are in the list.** Loss a does not use head b:

every = [*shared, *head_a.parameters(), *head_b.parameters()]
loss_a, loss_b = two_losses()
try:
    torch.autograd.grad(loss_a, every, retain_graph=True)
except RuntimeError as error:
    message = str(error)
    print("RuntimeError:", message)

# sphinx_gallery_start_ignore
assert "allow_unused=True" in message
message = ""
# sphinx_gallery_end_ignore

# %%
# With ``materialize_grads=True``, the gradients of head b are zeros. Now the vectors have equal lengths, but each norm contains
# a head:

options = {"retain_graph": True, "materialize_grads": True}
long_a = flat(torch.autograd.grad(loss_a, every, **options))
long_b = flat(torch.autograd.grad(loss_b, every, **options))
print(f"cosine with the heads: {cosine_similarity(long_a, long_b, dim=0):.2f}")
print(f"cosine of the trunk:   {cosine_similarity(grad_a, grad_b, dim=0):.2f}")

# sphinx_gallery_start_ignore
assert all(
    long.norm() > 1.1 * g.norm() for long, g in ((long_a, grad_a), (long_b, grad_b))
)
_frozen = nn.Sequential(nn.Linear(4, 3), nn.Linear(3, 1))
_frozen[0].requires_grad_(False)
_alone = _frozen(x).mean()
for _option in ("allow_unused", "materialize_grads"):
    assert "does not require grad" in _message(
        lambda: torch.autograd.grad(
            _alone,
            list(_frozen.parameters()),
            retain_graph=True,
            **{_option: True},  # noqa: B023
        )
    )
_kept = [p for p in _frozen.parameters() if p.requires_grad]
assert len(torch.autograd.grad(_alone, _kept)) == 2
_unused = torch.autograd.grad(loss_a, every, retain_graph=True, allow_unused=True)
assert [g is None for g in _unused] == [False] * 4 + [True] * 2
assert long_a.shape == long_b.shape and not long_a[-7:].any()
assert torch.allclose(long_a @ long_b, grad_a @ grad_b, rtol=1e-4)
assert abs(cosine_similarity(long_a, long_b, dim=0)) < 0.3
_both = torch.autograd.grad(
    torch.stack(two_losses()), every, unit, is_grads_batched=True
)
assert not _both[2][1].any() and not _both[4][0].any() and _both[2][0].any()
# sphinx_gallery_end_ignore

# %%
# The dot product is the same. The norms are larger, so the conflict looks weaker. Compare the shared parameters alone. A
# frozen parameter raises an error even then: keep only those with ``requires_grad``.

# %%
# **The heads are not trained.** ``torch.autograd.grad`` fills no ``.grad``, and ``SGD`` or ``Adam`` skips a parameter whose
# ``.grad`` is ``None``. Fill the heads with ``backward(inputs=...)``, as in the loop of PCGrad.
#
# **The first call has no** ``retain_graph=True``. Then the second one raises an error:
# :ref:`sphx_glr_gallery_errors_backward_twice.py`.
#
# **A hook branches on a value.** The batched call refuses an ``if`` on a tensor:

h = trunk(x)
h.register_hook(lambda g: g / g.norm() if g.norm() > 1 else g)
losses = torch.stack([head_a(h).mean(), head_b(h).mean()])
try:
    torch.autograd.grad(losses, shared, unit, is_grads_batched=True)
except RuntimeError as error:
    message = str(error)
    print("RuntimeError:", message)

# sphinx_gallery_start_ignore
assert "is_nonzero" in message
message = ""


def _refused(hook):
    h = trunk(x)
    h.register_hook(hook)
    both = torch.stack([head_a(h).mean(), head_b(h).mean()])
    for loss in both:
        torch.autograd.grad(loss, shared, retain_graph=True)
    try:
        torch.autograd.grad(both, shared, unit, is_grads_batched=True)
    except RuntimeError as error:
        return str(error)
    return ""


for _make in (
    lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, weight_decay=0.1),
    lambda p: torch.optim.Adam(p, 0.1, weight_decay=0.1),
    lambda p: torch.optim.AdamW(p, 0.1),
    lambda p: torch.optim.RMSprop(p, 0.1),
    lambda p: torch.optim.Adagrad(p, 0.1),
    lambda p: torch.optim.NAdam(p, 0.1),
    lambda p: torch.optim.Adadelta(p, 0.1),
):
    _p, _q = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    _optimizer = _make([_p, _q])
    torch.autograd.grad(_p.sum(), _p)
    _q.grad = torch.ones(2)
    _optimizer.step()
    assert _p.grad is None and torch.equal(_p, torch.ones(2))
    assert not torch.equal(_q, torch.ones(2))
assert "aten::item" in _refused(lambda g: g * g.norm().item())
assert "random" in _refused(lambda g: g + torch.randn_like(g))
assert _refused(lambda g: torch.from_numpy(g.numpy()))
assert not _refused(lambda g: g / g.norm().clamp(min=1))
_table = nn.Embedding(4, 3, sparse=True)
_out = _table(torch.arange(3))
_sparse = torch.stack([_out.sum(), _out.square().sum()])
torch.autograd.grad(_sparse[0], _table.weight, retain_graph=True)
_sparse_refused = []
try:
    torch.autograd.grad(_sparse, _table.weight, unit, is_grads_batched=True)
except (NotImplementedError, RuntimeError) as _error:
    _sparse_refused.append(str(_error))
assert len(_sparse_refused) == 1
# sphinx_gallery_end_ignore

# %%
# ``g / g.norm().clamp(min=1)`` does the same without an ``if``, and works. The batched call also refuses ``.item()`` in this
# hook, and ``nn.Embedding(sparse=True)``. One call for each loss accepts both. After ``torch.compile`` with its default
# backend, the batched call fails (`pytorch#138422 <https://github.com/pytorch/pytorch/issues/138422>`__).

# %%
# Exercise
# --------
# Loss a uses the first 32 samples, loss b the other 32. What is the cosine of the two gradients with respect
# to ``h``?
#
# .. solution::
#
# It is 0: each row of ``h`` has a gradient from one loss alone. The gradients of the weights can still conflict.

h = trunk(x)
loss_a = mse_loss(head_a(h[:32]), target_a[:32])
loss_b = mse_loss(head_b(h[32:]), target_b[32:])
for name, inputs in {"feature": [h], "weights": shared}.items():
    a = flat(torch.autograd.grad(loss_a, inputs, retain_graph=True))
    b = flat(torch.autograd.grad(loss_b, inputs, retain_graph=True))
    cosine = cosine_similarity(a, b, dim=0) + 0.0
    print(f"{name}: cosine {cosine:.2f}")
    # sphinx_gallery_start_ignore
    assert cosine == 0 if name == "feature" else cosine < -0.3
    # sphinx_gallery_end_ignore

# %%
# See also
# --------
# - :ref:`sphx_glr_gallery_differentiation_accumulation.py`, why ``backward`` adds.
# - :ref:`sphx_glr_gallery_differentiation_vector_jacobian_products.py`, rows of a Jacobian, and ``inputs=``.
# - :ref:`sphx_glr_gallery_training_gradient_clipping.py`, the norm of the whole gradient.
# - In PyTorch's reference: `torch.autograd.grad
#   <https://docs.pytorch.org/docs/stable/generated/torch.autograd.grad.html>`__.
