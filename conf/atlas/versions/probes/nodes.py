"""What ``grad_fn`` is called: the names that stand in tracebacks, and in code that looks for them."""

from __future__ import annotations

from .ask import Probe

#: What stands before a probe.
_X = "x = torch.eye(2, requires_grad=True)\n"
_IMAGE = "x = torch.arange(16.0).view(1, 1, 4, 4).requires_grad_()\n"
_SERIES = "x = torch.arange(8.0).view(1, 2, 4).requires_grad_()\n"

_MODULES = (
    "nn.Linear(2, 2)(torch.ones(1, 2))",
    "nn.Linear(2, 2)(torch.ones(2))",
    "nn.Linear(2, 2)(torch.ones(1, 3, 2))",
    "nn.Linear(2, 2, bias=False)(torch.ones(1, 2))",
    "nn.Conv2d(1, 1, 1)(torch.ones(1, 1, 2, 2))",
    "nn.ConvTranspose2d(1, 1, 1)(torch.ones(1, 1, 2, 2))",
    "nn.Embedding(2, 2)(torch.tensor([0]))",
    "nn.EmbeddingBag(2, 2)(torch.tensor([[0, 1]]))",
    "nn.BatchNorm1d(2)(torch.ones(2, 2))",
    "nn.GroupNorm(1, 2)(torch.ones(1, 2))",
    "nn.LayerNorm(2)(torch.ones(1, 2))",
    "nn.RMSNorm(2)(torch.ones(1, 2))",
    "nn.RNN(2, 2)(torch.ones(1, 1, 2))[0]",
    "nn.LSTM(2, 2)(torch.ones(1, 1, 2))[0]",
    "nn.GRU(2, 2)(torch.ones(1, 1, 2))[0]",
    "nn.LSTMCell(2, 2)(torch.ones(1, 2))[0]",
    "nn.MultiheadAttention(2, 1)(*[torch.ones(1, 1, 2)] * 3)[0]",
    "nn.MultiheadAttention(2, 1)(*[torch.ones(1, 1, 2)] * 3)[1]",
    "nn.TransformerEncoderLayer(2, 1, 2)(torch.ones(1, 1, 2))",
    "nn.Sequential(nn.Linear(1, 1), nn.Dropout())(torch.ones(1, 1))",
    "nn.utils.weight_norm(nn.Linear(1, 1)).weight",
    "nn.utils.parametrizations.weight_norm(nn.Linear(1, 1)).weight",
)

_ARITHMETIC = (
    "x + 1",
    "1 - x",
    "x * x",
    "1 / x",
    "x / 2",
    "x**2",
    "2**x",
    "-x",
    "x @ x",
    "torch.einsum('ij,jk->ik', x, x)",
    "torch.tensordot(x, x, 1)",
    "x.square()",
    "x.sqrt()",
    "x.clamp(0, 1)",
    "x.abs()",
    "x.ldexp(torch.tensor(1))",
    "torch.maximum(x, x)",
    "torch.max(x, x)",
    "torch.cdist(x, x)",
    "torch.fft.rfft(x)",
    "torch._foreach_add([x], 1)[0]",
    "torch._foreach_mul([x], [x])[0]",
    "torch._foreach_norm([x])[0]",
    "torch.utils.checkpoint.checkpoint(torch.sin, x, use_reentrant=True)",
    "torch.utils.checkpoint.checkpoint(torch.sin, x, use_reentrant=False)",
)

_SHAPES = (
    "x[0]",
    "x[:1]",
    "x[:]",
    "x[None]",
    "x[[0]]",
    "x[x > 1]",
    "x.T",
    "x.mT",
    "x.permute(1, 0)",
    "x.view(4)",
    "x.reshape(4)",
    "x.reshape(2, 2)",
    "x.t().reshape(4)",
    "x.flatten()",
    "x.ravel()",
    "x.squeeze()",
    "x.squeeze((0, 1))",
    "x.unsqueeze(0)",
    "x.expand(2, 2, 2)",
    "x.repeat(2, 1)",
    "x.repeat_interleave(2)",
    "x.flip(0)",
    "x.unbind()[0]",
    "x.split(1)[0]",
    "x.chunk(2)[0]",
    "x.diagonal()",
    "x.diag()",
    "x[0].diag()",
    "x.tril()",
    "x.select(0, 0)",
    "x.index_select(0, torch.tensor([0]))",
    "x.gather(0, torch.tensor([[0, 0]]))",
    "x.masked_fill(x > 1, 0)",
    "x.where(x > 1, 0.0)",
    "x.clone()",
    "x.contiguous()",
    "x.double()",
    "x.to(torch.float32)",
    "x.detach()",
    "x.to_sparse()",
    "torch.cat([x, x])",
    "torch.stack([x, x])",
)

_REDUCTIONS = (
    "x.sum()",
    "x.sum(0)",
    "x.mean()",
    "x.prod()",
    "x.var()",
    "x.std()",
    "x.max()",
    "x.max(0).values",
    "x.amax()",
    "x.aminmax().max",
    "x.median()",
    "x.sort().values",
    "x.topk(1).values",
    "x.cumsum(0)",
    "x.logsumexp(0)",
    "x.softmax(0)",
    "x.log_softmax(0)",
    "x.norm()",
    "x.norm(1)",
    "x.norm(dim=0)",
    "torch.linalg.vector_norm(x)",
    "torch.linalg.det(x)",
    "torch.linalg.inv(x)",
    "torch.linalg.solve(x, x)",
    "torch.linalg.lstsq(x.t()[:, :1], x).residuals",
    "torch.linalg.cholesky(x)",
    "torch.cholesky(x)",
    "torch.linalg.svd(x).U",
    "torch.linalg.eigh(x).eigenvalues",
    "torch.linalg.matrix_exp(x)",
    "x.argmax()",
)

_FUNCTIONS = (
    "F.relu(x)",
    "F.gelu(x)",
    "F.silu(x)",
    "F.prelu(x, torch.tensor(0.25))",
    "F.normalize(x)",
    "F.cosine_similarity(x, x)",
    "F.pairwise_distance(x, x)",
    "F.dropout(x)",
    "F.layer_norm(x, (2,))",
    "F.mse_loss(x, torch.zeros(2, 2))",
    "F.mse_loss(x, torch.zeros(2, 2), weight=torch.ones(2, 2))",
    "F.l1_loss(x, torch.zeros(2, 2))",
    "F.smooth_l1_loss(x, torch.zeros(2, 2))",
    "F.huber_loss(x, torch.zeros(2, 2))",
    "F.binary_cross_entropy(x.sigmoid(), torch.zeros(2, 2))",
    "F.binary_cross_entropy_with_logits(x, torch.zeros(2, 2))",
    "F.cross_entropy(x, torch.tensor([0, 1]))",
    "F.nll_loss(x, torch.tensor([0, 1]))",
    "F.kl_div(x, torch.zeros(2, 2), reduction='batchmean')",
    "F.ctc_loss(x.log_softmax(1)[:, None], torch.tensor([[1]]), torch.tensor([2]), torch.tensor([1]))",
    "F.scaled_dot_product_attention(x[None], x[None], x[None])",
    "F.scaled_dot_product_attention(x[None, None], x[None, None], x[None, None])",
    "F.scaled_dot_product_attention(x[None, None], x[None, None], x[None, None], attn_mask=torch.zeros(2, 2))",
    "F.scaled_dot_product_attention(x[None, None], x[None, None], x[None, None], dropout_p=0.5)",
    "F.linear(x, x, x[0])",
)

_IMAGES = (
    "F.max_pool2d(x, 2)",
    "F.avg_pool2d(x, 2)",
    "F.adaptive_avg_pool2d(x, 1)",
    "F.interpolate(x, scale_factor=2)",
    "F.interpolate(x, scale_factor=2, mode='bilinear')",
    "F.interpolate(x, scale_factor=2, mode='bicubic', antialias=True)",
    "F.unfold(x, 2)",
    "F.pixel_shuffle(x.view(1, 4, 2, 2), 2)",
    "F.channel_shuffle(x.view(1, 4, 2, 2), 2)",
    "F.grid_sample(x, torch.zeros(1, 1, 1, 2), align_corners=False)",
    "F.batch_norm(x, torch.zeros(1), torch.ones(1))",
    "F.group_norm(x, 1)",
)

_ROWS = (
    "F.max_pool1d(x, 2)",
    "F.adaptive_avg_pool1d(x, 1)",
    "F.interpolate(x, scale_factor=2)",
    "F.interpolate(x, scale_factor=2, mode='linear')",
)

_IN_PLACE = (
    "y = x.clone()\ny += 1\ny",
    "y = x.clone()\ny[0] = 0\ny",
    "y = x.clone()\ny[:] = 0\ny",
    "y = x.clone()\ny[[0]] = 0\ny",
    "y = x.clone()\ny[y > 1] = 0\ny",
    "y = x.clone()\ny[0].add_(1)\ny",
    "y = x.clone()\ny.relu_()",
    "y = torch.zeros(2, 2)\ny.copy_(x)",
    "y = torch.zeros(2, 2)\ny[0] = x[0]\ny",
    "y = torch.zeros(2, 2)\ntorch._foreach_add_([y], [x])\ny",
    "class Twice(torch.autograd.Function):\n"
    "    forward = staticmethod(lambda ctx, x: x * 2)\n"
    "    backward = staticmethod(lambda ctx, gradient: gradient * 2)\n"
    "Twice.apply(x)",
    "with torch.autocast('cpu', dtype=torch.bfloat16):\n    y = F.linear(x, x)\ny",
    "with torch.no_grad():\n    y = x * 2\ny",
    "x",
)

_ON_PAGES = (
    "nn.Linear(2, 2)(torch.ones(1, 1, 2))",
    "F.scaled_dot_product_attention(*[torch.ones(1, 4, 8, requires_grad=True)] * 3)",
)
"""Those that pages name, as they write them."""

PROBES = [
    Probe("nodes", before + code)
    for before, codes in (
        ("", _ON_PAGES + _MODULES),
        (_X, _ARITHMETIC + _SHAPES + _REDUCTIONS + _FUNCTIONS + _IN_PLACE),
        (_IMAGE, _IMAGES),
        (_SERIES, _ROWS),
    )
    for code in codes
]
