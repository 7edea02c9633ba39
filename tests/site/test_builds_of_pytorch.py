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
from atlas.gallery.visible_code import NEEDS_GPU, show_code
from sources import PINNED, ROOT, sources_of_examples

#: What differs from one build, version or machine to the next.
OF_THE_BUILD = re.compile(
    r"torch\.(__version__|version\b)|is_available\(|device_count\(|is_built\(|torch\._C\b|hasattr\(torch\b"
)
#: A function of PyTorch that answers whether there is a GPU.
ASKS_FOR_GPU = re.compile(r"\b(?:is_available|device_count|current_device|get_device_\w+)$")
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


def gpu_questions(code: str) -> list[int]:
    """The lines in sight that ask whether there is a GPU, but for the choice of a device that readers copy.

    Hidden code may ask: its asserts run either way. A page that imitates a GPU, or a machine without one, has its own answer.
    """
    if re.search(r'"torch\.cuda\.(is_available|device_count)"', code):  # it puts an answer of its own there
        return []
    nodes = list(ast.walk(ast.parse("\n".join(line or "" for line in show_code(code).lines))))
    choices = {part for node in nodes if isinstance(node, ast.IfExp) for part in ast.walk(node.test)}
    calls = (node for node in nodes if isinstance(node, ast.Call) and node not in choices)
    return sorted(call.lineno for call in calls if ASKS_FOR_GPU.search(ast.unparse(call.func)))


def asks_for_cuda(script: str) -> bool:
    """Whether the code of an example does so, not its text."""
    code = ast.parse(before_gpu(script))
    del code.body[0]  # the docstring
    return ASKS_FOR_CUDA.search(ast.unparse(code)) is not None


def fault_on_cuda(script: Path, folder: Path, imitated: str = "build") -> str | None:
    """Run an example where PyTorch seems to be built for CUDA, or to have a ``gpu``. Say what went wrong, if anything did."""
    arguments = ["-P", str(ROOT / "tests" / "built_for_cuda.py"), imitated, str(script)]
    done = warm_python.run_python(arguments, cwd=folder, env={"PATH": "/usr/bin:/bin", "MPLBACKEND": "agg"}, wall=600)
    if done.code:
        return done.output
    return "shows a path of this machine" if "/usr/local" in done.output else None


@pytest.mark.parametrize(
    ("imitated", "code", "said"),
    [
        ("build", "if torch.version.cuda is None:\n    assert torch", "this assert never ran"),
        ("build", "from torch.utils.benchmark import Timer", "shows a path of this machine"),
        ("gpu", "x = torch.ones(2, device='cuda')\ntorch.equal(x.mul(2), torch.ones(2))", "cuda:0 and cpu"),
    ],
)
def test_a_page_that_does_not_hold_is_found(tmp_path: Path, imitated: str, code: str, said: str) -> None:
    (tmp_path / "script.py").write_text(f'"""\nTitle\n=====\n"""\nimport torch\n{code}\n')
    assert said in (fault_on_cuda(tmp_path / "script.py", tmp_path, imitated) or "")


def test_no_code_is_for_a_pytorch_before_the_pin(script: str) -> None:
    pin = int(PINNED.split(".")[1])
    code, measured = split_at_mark(read_script(ROOT / "examples" / script))
    asked = [] if measured else re.findall(r"TORCH (?:>=|<) \(2, (\d+)\)", code)  # a recording may be of an older one
    assert all(int(minor) > pin for minor in asked), f"examples/{script}: a branch for PyTorch 2.{pin} or older"


def test_no_assert_is_guarded(script: str) -> None:
    found = guarded_asserts(before_gpu(script))
    assert not found, f"examples/{script}:{found[0]}: another build of PyTorch never runs this assert"


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("if torch.version.cuda is None:\n    assert x", [2]),
        ("TORCH = torch.__version__\nif TORCH >= (2, 14):\n    for x in y:\n        assert x", [4]),
        ("assert x if torch.cuda.is_available() else y", []),
        ("if x:\n    assert x", []),
    ],
)
def test_a_guarded_assert_is_found(code: str, found: list[int]) -> None:
    assert guarded_asserts(code) == found


def test_what_a_reader_sees_asks_for_no_gpu_before_the_half_that_needs_one(script: str) -> None:
    found = gpu_questions(before_gpu(script))
    assert not found, (
        f"examples/{script}:{found[0]}: this asks for a GPU; put it below '# .. needs-a-gpu::', or hide it"
    )


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("if torch.cuda.is_available():\n    x", [1]),
        ("device = 'cuda' if torch.cuda.is_available() else 'cpu'", []),
        ("# sphinx_gallery_start_ignore\ntorch.cuda.is_available()\n# sphinx_gallery_end_ignore", []),
        ('patch("torch.cuda.is_available", f)\ntorch.cuda.is_available()', []),
    ],
)
def test_a_question_for_a_gpu_is_found(code: str, found: list[int]) -> None:
    assert gpu_questions(code) == found


@pytest.mark.parametrize("asking", [*filter(asks_for_cuda, sources_of_examples())])
def test_the_page_holds_on_the_build_for_cuda(asking: str, tmp_path: Path) -> None:
    assert fault_on_cuda(ROOT / "examples" / asking, tmp_path) is None


def may_have_gpu(script: str) -> bool:
    """Whether the first half of an example, of no page about CUDA itself, asks for a GPU, or PyTorch takes one unasked."""
    code = before_gpu(script)
    is_about_cuda = script.startswith("cuda/") or re.search(
        rf'torch\.cuda\._|"torch\.cuda|activities|{NEEDS_GPU}', code
    )
    asks = any(map(ASKS_FOR_GPU.search, re.findall(r"torch\.cuda\.\w+(?=\()", code)))
    return not is_about_cuda and (asks or "nn.DataParallel(" in code)


@pytest.mark.parametrize("asking", [*filter(may_have_gpu, sources_of_examples())])
def test_the_page_holds_where_there_is_a_gpu(asking: str, tmp_path: Path) -> None:
    assert fault_on_cuda(ROOT / "examples" / asking, tmp_path, "gpu") is None
