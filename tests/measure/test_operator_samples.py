"""Samples are the same ones each time, and some are not in PyTorch's database: rows whose answer is seen only on those."""

from __future__ import annotations

import inspect
import random
from functools import cache

import numpy as np
import pytest
import torch
from torch.testing._internal.common_methods_invocations import op_db

import operator_samples
from operators import Row, name_operator, probe_operator

OPERATORS = {name_operator(operator): operator for operator in op_db}


@cache
def row(name: str) -> Row:
    found = probe_operator(OPERATORS[name])
    assert found is not None
    return found


def test_a_factor_is_kept_only_for_the_gradient_of_the_other() -> None:
    for name, one, other in (("mul", "input", "other"), ("mm", "input", "mat2"), ("addcmul", "tensor1", "tensor2")):
        assert row(name).notes[f"keeps {one}"] == f"if `{other}` requires a gradient"
        assert row(name).notes[f"keeps {other}"] == f"if `{one}` requires a gradient"
    assert row("nn.functional.linear").notes["keeps weight"] == "if `input` requires a gradient"
    assert "keeps input" in row("nn.functional.linear").notes


#: Nodes of calls with numbers and other shapes.
NODES = {
    "pow": "PowBackward0 PowBackward1 PowBackward2",
    "clamp": "ClampBackward0 ClampBackward1",
    "__getitem__": "SelectBackward0 SliceBackward0 UnsqueezeBackward0 IndexBackward0",
    "matmul": "DotBackward0 MmBackward0 MvBackward0 SqueezeBackward4 UnsafeViewBackward0",
}


@pytest.mark.parametrize("name", NODES)
def test_nodes_of_calls_with_numbers_and_other_shapes(name: str) -> None:
    assert set(NODES[name].split()) <= set(row(name).nodes)


def test_a_power_keeps_its_result_for_the_exponent() -> None:
    x = torch.rand(3, requires_grad=True)
    assert (x**2).grad_fn.name() == "PowBackward0"
    assert row("pow").notes["keeps output"] == row("pow").notes["output_changed"] == "if `exponent` is a tensor"


@pytest.mark.parametrize(
    ("name", "dtype"),
    [("half", torch.float16), ("cdouble", torch.complex128)],
)
def test_a_conversion_to_the_type_that_a_tensor_has_shares(name: str, dtype: torch.dtype) -> None:
    x = torch.ones(2, dtype=dtype)
    assert getattr(x, name)() is x
    assert row(name).shares == "sometimes"
    assert row(name).notes["shares"].endswith(f"if the type is {str(dtype).removeprefix('torch.')}")


def test_attention_is_fused_for_heads_that_were_transposed_too() -> None:
    notes = row("nn.functional.scaled_dot_product_attention").notes
    where = "it has 4 dimensions" if torch.__version__ < "2.14" else "`dropout_p` is 0.0"
    assert notes["keeps key"] == notes["output_changed"] == notes["second"] == f"only if {where}"


def test_a_norm_with_a_bias_and_no_weight_has_no_second_derivative() -> None:
    for name in ("layer_norm", "batch_norm", "instance_norm"):
        norm = row(f"nn.functional.{name}")
        assert (norm.second, norm.notes["second"]) == ("no", "if `bias` is a tensor and `weight` is None")


def test_arguments_have_names() -> None:
    """Not ``argument 12``, and of tensors in any number not the name of an option."""
    assert "in_proj_weight" in row("nn.functional.multi_head_attention_forward").inputs
    assert "return_indices" in row("nn.functional.adaptive_max_pool2d").notes["keeps output"]
    assert not any("indexing` requires" in note for note in row("meshgrid (variadic_tensors)").notes.values())


@pytest.mark.parametrize("name", ["cholesky_inverse", "cholesky_solve", "nn.functional.embedding"])
def test_forward_mode_that_disagrees_with_backward(name: str) -> None:
    assert row(name).forward == "wrong"


def test_the_gradient_of_the_determinant_of_a_singular_matrix() -> None:
    matrix = torch.tensor([[1.0, 2.0], [2.0, 4.0]], requires_grad=True)
    torch.linalg.det(matrix).backward()
    assert not matrix.grad.count_nonzero()  # [[4, -2], [-2, 1]] is right
    assert row("linalg.det").error > 1e-4


def test_the_gradient_of_as_strided_scatter_lies_where_the_input_was_overwritten() -> None:
    x = torch.zeros(4, requires_grad=True)
    torch.as_strided_scatter(x, torch.ones(2), (2,), (1,)).sum().backward()
    assert x.grad.tolist() == [1, 1, 0, 0]
    assert row("as_strided_scatter").error > 1e-4 and row("slice_scatter").error < 1e-6


#: The first draws from PyTorch's generator alone; others also the triangle that is read, the margin, delta.
DRAWING = ("mul", "linalg.eigvalsh", "nn.functional.hinge_embedding_loss", "nn.functional.huber_loss")


@pytest.mark.parametrize("name", DRAWING)
def test_samples_are_the_same_each_time(name: str) -> None:
    drawn = []
    for seed in (1, 2, 3):
        for start in (torch.manual_seed, np.random.seed, random.seed):
            start(seed)
        calls = operator_samples.make_calls(OPERATORS[name], torch.float64)
        drawn.append([repr(call.leaves) + repr(call.tree) for call in calls])
    assert drawn[0] and drawn[0] == drawn[1] == drawn[2]


def test_no_sample_costs_a_walk_through_the_stack(monkeypatch: pytest.MonkeyPatch) -> None:
    """PyTorch walks by this name; where a new version has it elsewhere, the probes are right, and slow."""
    walks: list[int] = []
    monkeypatch.setattr(inspect, "stack", lambda *context: walks.append(1) or [])
    assert list(OPERATORS["mul"].sample_inputs("cpu", torch.float64)) and walks
    walks.clear()
    assert list(operator_samples.make_calls(OPERATORS["mul"], torch.float64)) and not walks
