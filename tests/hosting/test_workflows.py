"""The workflows may do what they must and no more."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from atlas.gallery.recordings import needs_gpu
from sources import ROOT

FOLDER = ROOT / ".github" / "workflows"


def read_workflow(name: str) -> dict[str, Any]:
    return yaml.safe_load((FOLDER / f"{name}.yml").read_text(encoding="utf-8"))


def find_faults(workflow: dict[str, Any]) -> Iterator[str]:
    """What jactionlint, which ``nox -s lint`` calls, knows nothing of."""
    if workflow.get("permissions") != {"contents": "read"}:
        yield "permissions: more than reading, for every job"
    if workflow.get("defaults") != {"run": {"shell": "bash"}}:
        yield "defaults: the shell goes on after a pipe whose first command failed"
    for step in (step for job in workflow["jobs"].values() for step in job["steps"]):
        uses = step.get("uses", "actions/")
        if not uses.startswith("actions/"):
            yield f"{uses}: not an action of GitHub's own"
        if uses.startswith("actions/cache") and "outputs.python-version }}" not in step["with"]["key"]:
            yield "a cache that a new patch release of Python would find, and never use nor save again"


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.yml")), ids=lambda path: path.stem)
def test_a_workflow_keeps_the_rules(path: Path) -> None:
    assert not list(find_faults(read_workflow(path.stem)))


def test_the_oldest_python_that_is_promised_runs_the_tests() -> None:
    promised = re.findall(r"Python (3\.\d+) or later", (ROOT / "README.md").read_text(encoding="utf-8"))
    versions = read_workflow("ci")["jobs"]["versions"]
    assert promised == versions["strategy"]["matrix"]["python"][:1]
    assert "python -m nox -s tests" in [step.get("run") for step in versions["steps"]]


def test_an_edit_of_each_page_that_needs_a_gpu_starts_a_recording() -> None:
    pushed = read_workflow("cuda")[True]["push"]["paths"]
    need_gpu = [script.relative_to(ROOT) for script in ROOT.glob("examples/*/*.py") if needs_gpu(script)]
    assert need_gpu and not [script for script in need_gpu if not any(script.match(path) for path in pushed)]
