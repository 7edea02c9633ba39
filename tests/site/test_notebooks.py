"""Each example's notebook can be run where nothing is installed: its first cell installs all that the script imports."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

from markup import read_notebook

#: Modules that are called otherwise than their package on PyPI.
PACKAGES = {"PIL": "pillow", "sklearn": "scikit-learn"}
#: Modules that come with torch.
WITH_TORCH = {"functorch", "torchgen"}
#: What Sphinx understands and a notebook does not: directives, roles, links.
DIRECTIVE = r"^\s*\.\. |:\w+:`|\]\([^)]*\)_"


def third_party(code: str) -> set[str]:
    imports = [node for node in ast.walk(ast.parse(code)) if isinstance(node, (ast.Import, ast.ImportFrom))]
    names = {alias.name for node in imports if isinstance(node, ast.Import) for alias in node.names}
    names |= {str(node.module) for node in imports if isinstance(node, ast.ImportFrom)}
    return {name.partition(".")[0] for name in names} - sys.stdlib_module_names - WITH_TORCH


def test_the_first_cell_installs_what_the_script_imports(site: Path, root: Path, script: str) -> None:
    first = read_notebook(site, script)[0]
    assert first["cell_type"] == "code"
    *_, install = "".join(first["source"]).splitlines()
    assert install.startswith('%pip install --quiet "torch>=')
    installed = {word.strip('"').partition(">=")[0] for word in install.split()[3:]}
    modules = third_party((root / "examples" / script).read_text(encoding="utf-8"))
    assert installed == {PACKAGES.get(module, module) for module in modules} | {"torch"}


def test_the_text_has_no_directives(site: Path, script: str) -> None:
    texts = ["".join(cell["source"]) for cell in read_notebook(site, script) if cell["cell_type"] == "markdown"]
    assert texts and not [line for text in texts for line in text.splitlines() if re.search(DIRECTIVE, line)]
