"""The workflows may do what they must and no more, and do nothing that a person could not run by hand."""

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
#: How a step begins that calls a session of nox, or that talks to GitHub: test_workflow_steps.py runs the latter.
PROGRAMS = (
    "python -m pip install nox",
    "python -m nox -s ",
    ".ci/run",
    "git ",
    "title=",
    "pages=",
    "tip=",
    "built=",
    "if [",
)
BAD = """
jobs:
  one:
    steps:
      - run: echo
      - uses: someone/cache@v4
      - {uses: actions/cache@v4, with: {key: "environment-3.12"}}
"""


def read_workflow(name: str) -> dict[str, Any]:
    return yaml.safe_load((FOLDER / f"{name}.yml").read_text(encoding="utf-8"))


def find_faults(workflow: dict[str, Any]) -> Iterator[str]:
    """What jactionlint, which ``nox -s lint`` calls, knows nothing of."""
    if workflow.get("permissions") != {"contents": "read"}:
        yield "permissions: more than reading, for every job"
    if workflow.get("defaults") != {"run": {"shell": "bash"}}:
        yield "defaults: the shell goes on after a pipe whose first command failed"
    for step in (step for job in workflow["jobs"].values() for step in job["steps"]):
        run, uses = step.get("run", "").strip(), step.get("uses", "actions/")
        if run and not run.startswith(PROGRAMS):
            yield f"a step that does more than call a session: {run[:60]}"
        if not uses.startswith("actions/"):
            yield f"{uses}: not an action of GitHub's own"
        if (
            uses.startswith("actions/cache")
            and "${{ steps.python.outputs.python-version }}" not in step["with"]["key"]
        ):
            yield "a cache that a new patch release of Python would find, and never use nor save again"


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.yml")), ids=lambda path: path.stem)
def test_a_workflow_keeps_the_rules(path: Path) -> None:
    assert not list(find_faults(read_workflow(path.stem)))


def test_each_fault_is_found() -> None:
    found = "\n".join(find_faults(yaml.safe_load(BAD)))
    for part in (
        "permissions",
        "the shell goes on",
        "more than call",
        "GitHub's own",
        "a new patch release of Python",
    ):
        assert part in found


def test_the_oldest_python_that_is_promised_runs_the_tests() -> None:
    promised = re.findall(r"Python (3\.\d+) or later", (ROOT / "README.md").read_text(encoding="utf-8"))
    versions = read_workflow("ci")["jobs"]["versions"]
    assert promised == versions["strategy"]["matrix"]["python"][:1]
    assert "python -m nox -s tests" in [step.get("run") for step in versions["steps"]]


def test_one_job_builds_as_the_readme_says() -> None:
    """With what pip brings: the others install the small PyTorch, for the CPU."""
    weekly = read_workflow("weekly")
    plain, job = "python3 -m pip install nox && python3 -m nox -s docs", weekly["jobs"]["readme"]
    small = f"PIP_EXTRA_INDEX_URL={weekly['env']['PIP_EXTRA_INDEX_URL']} python3 -m nox -s docs"
    assert {plain, small} <= set((ROOT / "README.md").read_text(encoding="utf-8").splitlines())
    assert job["env"] == {"PIP_EXTRA_INDEX_URL": ""}
    assert " && ".join(step["run"] for step in job["steps"] if "run" in step) == plain.replace("python3", "python")


def test_the_preview_of_a_proposal_needs_no_right_and_no_secret() -> None:
    """GitHub gives a fork's proposal neither."""
    preview = read_workflow("ci")["jobs"]["preview"]
    assert preview["if"] == "github.event_name == 'pull_request'" and "needs" not in preview
    assert "permissions" not in preview and "secrets" not in str(preview) and "vars" not in str(preview)
    assert "python -m nox -s docs" in [step.get("run") for step in preview["steps"]]
    (upload,) = (step for step in preview["steps"] if step.get("id") == "upload")
    assert upload["with"]["path"] == "build/html"


def test_an_edit_of_each_page_that_needs_a_gpu_starts_a_recording() -> None:
    pushed = read_workflow("cuda")[True]["push"]["paths"]
    need_gpu = [script.relative_to(ROOT) for script in ROOT.glob("examples/*/*.py") if needs_gpu(script)]
    assert need_gpu and not [script for script in need_gpu if not any(script.match(path) for path in pushed)]
