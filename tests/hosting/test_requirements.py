"""What is imported is required: by requirements.txt, or, for the examples that need a GPU, by a file beside them."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

import pytest

from atlas.gallery import notebooks
from sources import ROOT


def required(*files: str) -> set[str]:
    """The distributions that these files name, in lower case."""
    text = "\n".join((ROOT / file).read_text(encoding="utf-8") for file in files)
    return {name.lower() for name in re.findall(r"^([\w.-]+)==", text, re.MULTILINE)}


def imported(script: Path) -> set[str]:
    """The top-level modules that a script imports, those of Python itself aside."""
    nodes = list(ast.walk(ast.parse(script.read_text(encoding="utf-8"))))
    names = [name.name for node in nodes if isinstance(node, ast.Import) for name in node.names]
    names += [node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module and not node.level]
    return {name.partition(".")[0] for name in names} - sys.stdlib_module_names


def missing(script: Path, distributions: set[str]) -> set[str]:
    """The imports of a script that none of the distributions brings."""
    brought_by = notebooks.find_distributions()
    return {
        name
        for name in imported(script)
        if not distributions & {distribution.lower() for distribution in brought_by.get(name, [name])}
    }


@pytest.mark.parametrize("chapter", sorted(path.parent.name for path in ROOT.glob("examples/*/GALLERY_HEADER.rst")))
def test_what_an_example_imports_is_required(chapter: str) -> None:
    for script in sorted((ROOT / "examples" / chapter).glob("*.py")):
        assert not missing(script, required("requirements.txt")), script


def test_a_missing_requirement_is_found(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("import sys\nimport torch\nfrom torchvision import models\n")
    assert missing(script, required("requirements.txt")) == {"torchvision"}
