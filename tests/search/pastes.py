"""Messages as readers paste them: worded as a page's, with names, shapes, numbers, types and devices of their own."""

from __future__ import annotations

import random
import re

_NODES = ("MulBackward0", "AsStridedBackward0", "NativeLayerNormBackward0", "ConvolutionBackward0", "ReluBackward0")
_NAMES = ("encoder", "hidden_state", "ResidualBlock", "batch_targets", "DecoderLayer", "my_variable")
_TENSORS = ("torch.cuda.FloatTensor", "torch.HalfTensor", "torch.cuda.HalfTensor", "torch.DoubleTensor")
_DTYPES = ("torch.float16", "torch.bfloat16", "torch.int64", "torch.float64")
_SCALARS = ("Half", "BFloat16", "Long", "Int")
_DEVICES = ("cuda:0", "cuda:3", "mps:0", "cpu")
_LINES = (
    ("train.py", 212, "<module>", "main(parse_arguments())"),
    ("train.py", 148, "main", "trainer.fit(model, loaders)"),
    ("/home/ana/project/engine/trainer.py", 87, "fit", "self.run_epoch(epoch)"),
    ("/home/ana/project/engine/trainer.py", 120, "run_epoch", "self.scaler.scale(loss).backward()"),
    ("/opt/venv/lib/python3.12/site-packages/torch/_tensor.py", 626, "backward", "torch.autograd.backward("),
    ("/opt/venv/lib/python3.12/site-packages/torch/autograd/__init__.py", 347, "backward", "_engine_run_backward("),
    ("/opt/venv/lib/python3.12/site-packages/torch/autograd/graph.py", 823, "_engine_run_backward", "return engine("),
)

#: What is a reader's own in a message, and what another reader has in its place.
_OWN = (
    (r"\b\w+Backward\d*\b", lambda chance: chance.choice(_NODES)),
    (r"(?<!attribute )'[A-Za-z_]\w*'(?! object)", lambda chance: f"'{chance.choice(_NAMES)}'"),
    (r"\btorch\.(?:cuda\.)?\w+Tensor\b", lambda chance: chance.choice(_TENSORS)),
    (r"\btorch\.(?:float|bfloat|int)\d+\b", lambda chance: chance.choice(_DTYPES)),
    (r"\b(?:Float|Double|Half|Long)\b", lambda chance: chance.choice(_SCALARS)),
    (r"\b(?:cuda|mps|meta)(?::\d)?(?=[, ])|\bcpu\b", lambda chance: chance.choice(_DEVICES)),
    (r"\b\d+\b", lambda chance: str(chance.randint(2, 4096))),
)


def reworded(message: str, chance: random.Random) -> str:
    """The message of another reader.

    >>> reworded("size of tensor a (7) must match the size of tensor b (8)", random.Random(1))
    'size of tensor a (1102) must match the size of tensor b (2333)'
    """
    # what was put in must not be found again: it is kept aside until the end
    kept: list[str] = []

    def put(new: str) -> str:
        kept.append(new)
        return f"\0{chr(0xE000 + len(kept) - 1)}\0"

    for pattern, choose in _OWN:
        message = re.sub(pattern, lambda _match, choose=choose: put(choose(chance)), message)
    return re.sub("\0(.)\0", lambda match: kept[ord(match[1]) - 0xE000], message)


def traceback(error: str, message: str, chance: random.Random) -> str:
    """A traceback of some fifteen lines, from a project of the reader's own."""
    lines = ["Traceback (most recent call last):"]
    for file, line, function, code in _LINES:
        lines += [f'  File "{file}", line {line + chance.randint(0, 40)}, in {function}', f"    {code}"]
    return "\n".join([*lines, f"{error}: {message}"])
