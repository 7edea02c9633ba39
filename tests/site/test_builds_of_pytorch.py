"""A page holds on the build of PyTorch for the CPU and on the build for CUDA, in each version, with a GPU and without one.

The build of the site refuses an assert that never ran. So none may stand under a condition on the build of PyTorch, its version
or the machine: such a condition picks what is expected, and the assert itself runs everywhere.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import warm_python
from atlas.gallery.scripts import read_script, split_at_mark
from sources import ROOT, sources_of_examples

#: What differs from one build, version or machine to the next.
OF_THE_BUILD = re.compile(
    r"torch\.(__version__|version\b)|is_available\(|device_count\(|is_built\(|torch\._C\b|hasattr\(torch\b"
)
#: Code that asks PyTorch for CUDA, or has it look for CUDA's compiler.
ASKS_FOR_CUDA = re.compile(r"torch\.(cuda|version|utils\.benchmark)\b|device='cuda'|GradScaler\(\)")


def before_gpu(script: str) -> str:
    """The code of an example that runs in every build."""
    return split_at_mark(read_script(ROOT / "examples" / script))[0]


def guarded_asserts(code: str) -> list[int]:
    """The lines of the asserts under an ``if`` on the build, the version or the GPU, or under its ``else``."""
    nodes = list(ast.walk(ast.parse(code)))
    named = {
        target.id
        for node in nodes
        if isinstance(node, ast.Assign) and OF_THE_BUILD.search(ast.unparse(node.value))
        for target in node.targets
        if isinstance(target, ast.Name)
    }

    def decides(test: ast.expr) -> bool:
        names = {node.id for node in ast.walk(test) if isinstance(node, ast.Name)}
        return bool(names & named) or OF_THE_BUILD.search(ast.unparse(test)) is not None

    guards = [node for node in nodes if isinstance(node, ast.If) and decides(node.test)]
    return sorted({node.lineno for guard in guards for node in ast.walk(guard) if isinstance(node, ast.Assert)})


def asks_for_cuda(script: str) -> bool:
    """Whether the code of an example does so, not its text."""
    code = ast.parse(before_gpu(script))
    del code.body[0]  # the docstring
    return ASKS_FOR_CUDA.search(ast.unparse(code)) is not None


def fault_on_cuda(script: Path, folder: Path) -> str | None:
    """Run an example with a PyTorch that seems to be built for CUDA. Say what went wrong, if anything did."""
    arguments = ["-P", str(ROOT / "tests" / "built_for_cuda.py"), str(script)]
    done = warm_python.run_python(arguments, cwd=folder, env={"PATH": "/usr/bin:/bin", "MPLBACKEND": "agg"}, wall=600)
    if done.code:
        return done.output
    return "shows a path of this machine" if "/usr/local" in done.output else None


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("if torch.version.cuda is None:\n    assert torch", "this assert never ran"),
        ("from torch.utils.benchmark import Timer", "shows a path of this machine"),
    ],
)
def test_a_page_that_does_not_hold_is_found(tmp_path: Path, code: str, said: str) -> None:
    (tmp_path / "script.py").write_text(f'"""\nTitle\n=====\n"""\nimport torch\n{code}\n')
    assert said in (fault_on_cuda(tmp_path / "script.py", tmp_path) or "")


def test_no_assert_is_guarded(script: str) -> None:
    found = guarded_asserts(before_gpu(script))
    assert not found, f"examples/{script}:{found[0]}: another build of PyTorch never runs this assert"


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("if torch.version.cuda is None:\n    assert x", [2]),
        ("if torch.__version__.startswith('2.13'):\n    assert x\nelse:\n    assert y", [2, 4]),
        ("TORCH = torch.__version__\nif TORCH >= (2, 14):\n    for x in y:\n        assert x", [4]),
        ("count = torch._C.__dict__.get('f')\nif count is None:\n    assert x", [3]),
        ("if not torch.xpu.is_available():\n    assert x", [2]),
        ("assert x if torch.cuda.is_available() else y", []),
        ("if x:\n    assert x", []),
    ],
)
def test_a_guarded_assert_is_found(code: str, found: list[int]) -> None:
    assert guarded_asserts(code) == found


@pytest.mark.parametrize("asking", [*filter(asks_for_cuda, sources_of_examples())])
def test_the_page_holds_on_the_build_for_cuda(asking: str, tmp_path: Path) -> None:
    assert fault_on_cuda(ROOT / "examples" / asking, tmp_path) is None
