"""The site's own code stays small, and its parts import each other one way: shared limits, not taste."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from sources import ROOT

CONF = ROOT / "conf"
OWN = [*sorted(CONF.rglob("*.py")), ROOT / "noxfile.py"]
TESTS = sorted((ROOT / "tests").rglob("*.py"))
LOOKS = sorted(path for path in CONF.rglob("*") if path.name.endswith((".js", ".css", ".js.jinja")))
#: What is no code: on a line of its own it is not counted.
_NO_CODE = {
    getattr(tokenize, name) for name in ("COMMENT", "NL", "NEWLINE", "INDENT", "DEDENT", "ENCODING", "ENDMARKER")
}
_DEFINITIONS = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
#: Names that Sphinx, docutils and Python give.
_GIVEN = re.compile(r"__\w+__|setup|main|run|(visit|depart)_\w+")


@cache
def parse(path: Path) -> ast.Module:
    try:
        return ast.parse(path.read_text(encoding="utf-8"))
    except SyntaxError:  # an example of a test that is broken on purpose
        return ast.Module([], [])


def count_code(path: Path) -> int:
    """The lines of code: no blank lines, comments and docstrings."""
    if not (tree := parse(path)).body:
        return 0
    tokens = tokenize.generate_tokens(io.StringIO(path.read_text(encoding="utf-8")).readline)
    lines = {line for one in tokens if one.type not in _NO_CODE for line in range(one.start[0], one.end[0] + 1)}
    for node in ast.walk(tree):
        if isinstance(node, _DEFINITIONS) and ast.get_docstring(node, clean=False) is not None:
            lines -= set(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    return len(lines)


def name_part(words: list[str]) -> str:
    """The part of ``conf`` that a dotted name is in: of the extension a module or a package, or what stands beside it."""
    return words[1] if words[0] == "atlas" and len(words) > 1 else words[0]


def find_imports(path: Path) -> Iterator[list[str]]:
    """The dotted names that a module of ``conf`` imports."""
    package = path.relative_to(CONF).parts[:-1]
    for node in ast.walk(parse(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = [*package[: len(package) - node.level + 1]] if node.level else []
            name = base + (node.module.split(".") if node.module else [])
            yield from ([*name, alias.name] for alias in node.names)


@cache
def draw_arrows() -> dict[str, set[str]]:
    """What each part imports: other parts, and the first words of all else. ``atlas/__init__`` imports every feature."""
    arrows: dict[str, set[str]] = {}
    for path in CONF.rglob("*.py"):
        part = name_part([*path.relative_to(CONF).with_suffix("").parts])
        arrows.setdefault(part, set()).update({name_part(name) for name in find_imports(path)} - {part})
    del arrows["__init__"]
    return arrows


def follow(part: str) -> set[str]:
    """All parts to which arrows lead from one."""
    seen, waiting = set(), [part]
    while waiting:
        fresh = draw_arrows().get(waiting.pop(), set()) - seen
        seen |= fresh
        waiting += fresh
    return seen


@pytest.mark.parametrize(("paths", "most"), [(OWN, 7_500), (TESTS, 10_500)], ids=["own", "tests"])
def test_the_code_can_be_read_in_an_afternoon(paths: list[Path], most: int) -> None:
    assert sum(map(count_code, paths)) <= most, "take out what is no longer needed"


def test_there_are_few_modules_and_little_javascript() -> None:
    assert len(OWN) <= 55
    assert sum(len(path.read_text(encoding="utf-8").splitlines()) for path in LOOKS) <= 2_100


def test_functions_are_named_by_a_verb_and_a_thing() -> None:
    nodes = [node for path in OWN for node in ast.walk(parse(path)) if isinstance(node, _DEFINITIONS[2:])]
    names = [node.name for node in nodes if not _GIVEN.fullmatch(node.name)]
    assert sum("_" not in name.strip("_") for name in names) <= 0.3 * len(names)


def test_imports_make_no_circle() -> None:
    assert not [part for part in draw_arrows() if part in follow(part)]


def test_imports_run_one_way() -> None:
    arrows = draw_arrows()
    own = arrows.keys() - {"conf"}
    assert not arrows["drawgrad"] & {"sphinx", "docutils", "sphinx_gallery", *own}
    assert arrows["gallery"] & own <= {"drawgrad", "toolbox", "page_store", "pages"}
    last = {"footer", "search", "site_files"}
    assert not {part: found & last for part, found in arrows.items() if found & last}


def test_no_handler_of_pages_can_end_a_build_with_a_traceback() -> None:
    """``connect_for_pages`` makes an error of an exception, with the page and the line."""
    events, found = ("doctree-read", "doctree-resolved", "html-page-context"), []
    for path in (path for path in CONF.rglob("*.py") if path.name != "page_store.py"):
        calls = [node for node in ast.walk(parse(path)) if isinstance(node, ast.Call) and node.args]
        handled = [node for node in calls if getattr(node.args[0], "value", None) in events]
        lines = [node.lineno for node in handled if getattr(node.func, "attr", "") == "connect"]
        found += [f"{path.relative_to(ROOT)}:{line}" for line in lines]
    assert not found, "connect these with atlas.page_store.connect_for_pages"
