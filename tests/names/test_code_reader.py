"""Which names of PyTorch a piece of code uses, and to whom a method belongs."""

from __future__ import annotations

import pytest

from atlas.code_reader import TorchNames, find_uses

TORCH = TorchNames()

CASES = {
    "a module is no name": ("import torch.autograd\ntorch.autograd", set()),
    "what PyTorch does not have": ("torch.gradient_of(1)", set()),
    "what a string has too": ("x.split(' ')", set()),
    "what a string has too, of a tensor": ("x = torch.ones(4)\nx.split(2)", {"torch.ones", "torch.Tensor.split"}),
    "of another library": ("import pandas as pd\ntable = pd.DataFrame()\ntable.T.mean()", set()),
    "in a loop over another library's": ("import numpy as np\nfor row in np.eye(2):\n    row.sum()", set()),
    "of a model of one's own": (
        "from torch import nn\nclass Net(nn.Module): ...\nNet().zero_grad()",
        {"torch.nn.Module", "torch.nn.Module.zero_grad"},
    ),
    "of a context": (
        "def forward(ctx, x): ctx.save_for_backward(x)",
        {"torch.autograd.function.FunctionCtx.save_for_backward"},
    ),
    "of a node, not of a tensor": ("y.grad_fn.name()", {"torch.Tensor.grad_fn", "torch.autograd.graph.Node.name"}),
    "an argument hides a variable": (
        "import numpy as np\nx = np.ones(2)\ndef f(x): x.backward()\nx.sum()",
        {"torch.Tensor.backward"},
    ),
    "a comprehension hides a variable": (
        "import numpy as np\nx = np.ones(2)\n[x.backward() for x in losses]\nx.sum()",
        {"torch.Tensor.backward"},
    ),
    "a string on its own": ("'torch.exp'", set()),
    "no Python": ("$ pip install torch", set()),
}


#: What the functions return is no tensor, so whose these methods are is a guess.
GUESSED = {
    "a compiled module": "net = torch.compile(m)\nnet.to('cpu')",
    "a dtype": "torch.get_default_dtype().is_complex",
    "a pair": "torch.ones(2, 2).max(0)\nx.to('cpu')",
}


def names(pieces: list[str]) -> set[str]:
    return {use.name for found in find_uses(pieces, TORCH) for use in found}


@pytest.mark.parametrize("case", CASES)
def test_names(case: str) -> None:
    code, expected = CASES[case]
    assert names([code]) == expected


def test_later_pieces_know_what_earlier_ones_import() -> None:
    assert names(["from torch import nn", "this is no Python", "nn.Linear"]) == {"torch.nn.Linear"}


@pytest.mark.parametrize("case", GUESSED)
def test_not_all_functions_return_a_tensor(case: str) -> None:
    [found] = find_uses([GUESSED[case]], TORCH)
    methods = {use.name.split(".")[-1] for use in found if use.sure}
    assert not methods & {"to", "half", "is_complex", "device"}


def test_a_tensor_of_a_function_is_known() -> None:
    [found] = find_uses(["torch.from_numpy(array).to('cpu')\ntorch.stack(x).to('cpu')"], TORCH)
    assert [use.sure for use in found if use.name == "torch.Tensor.to"] == [True, True]
