"""The workflows may do what they must and no more, and do nothing that a person could not run by hand."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from atlas.gallery.recordings import needs_gpu
from sources import ROOT

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PINNED = re.compile(r"^actions/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$")
#: How a step begins that calls a session of nox, or that talks to GitHub: test_workflow_steps.py runs the latter.
PROGRAMS = (
    "python -m pip install nox",
    "python -m nox -s ",
    ".ci/run",
    "git ",
    "title=",
    "shards=",
    "pages=",
    "tip=",
    "built=",
    "if [",
)
EXACT_PYTHON = "${{ steps.python.outputs.python-version }}"


def faults(text: str) -> Iterator[str]:
    workflow: dict[str, Any] = yaml.safe_load(text)
    if workflow.get("permissions") != {"contents": "read"}:
        yield "permissions: more than reading, for every job"
    if "concurrency" not in workflow:
        yield "concurrency: two runs may meet"
    if workflow.get("defaults") != {"run": {"shell": "bash"}}:
        yield "defaults: the shell goes on after a pipe whose first command failed"
    for name, job in workflow["jobs"].items():
        if "timeout-minutes" not in job:
            yield f"{name}: no timeout"
        for step in job["steps"]:
            yield from (f"{name}: {fault}" for fault in faults_of_step(step))
    for used in re.findall(r"uses: (.+)", text):
        if not PINNED.match(used):
            yield f"{used}: not an action of GitHub's own, pinned to a commit with its version behind it"


def faults_of_step(step: dict[str, Any]) -> Iterator[str]:
    script = step.get("run", "")
    if "${{" in script:
        yield f"an expression within a script, where its value is run as code: {script.strip()[:60]}"
    if script and not script.lstrip().startswith(PROGRAMS):
        yield f"a step that does more than call a session: {script.strip()[:60]}"
    if (
        step.get("uses", "").startswith("actions/checkout")
        and step.get("with", {}).get("persist-credentials") is not False
    ):
        yield "a checkout that leaves its credentials behind"
    if step.get("uses", "").startswith("actions/cache") and EXACT_PYTHON not in step["with"]["key"]:
        yield "a cache that a new patch release of Python would find, and never use nor save again"


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_keeps_the_rules(path: Path) -> None:
    assert not list(faults(path.read_text(encoding="utf-8")))


def test_the_linter_of_workflows_bites(tmp_path: Path) -> None:
    """``nox -s lint`` runs it on the real ones."""
    linter = Path(sys.executable).with_name("jactionlint")
    path = tmp_path / "bad.yml"
    path.write_text(BAD)
    done = subprocess.run([linter, path], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "runs-on" in done.stdout and "injection" in done.stdout


def test_the_oldest_python_that_is_promised_runs_the_tests() -> None:
    promised = re.findall(r"Python (3\.\d+) or later", (ROOT / "README.md").read_text(encoding="utf-8"))
    versions = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text())["jobs"]["versions"]
    assert promised == versions["strategy"]["matrix"]["python"][:1]
    assert "python -m nox -s tests" in [step.get("run") for step in versions["steps"]]


def test_the_preview_of_a_proposal_needs_no_right_and_no_secret() -> None:
    """GitHub gives a fork's proposal neither."""
    preview = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text())["jobs"]["preview"]
    assert preview["if"] == "github.event_name == 'pull_request'" and "needs" not in preview
    assert "permissions" not in preview and "secrets" not in str(preview) and "vars" not in str(preview)
    assert "python -m nox -s docs" in [step.get("run") for step in preview["steps"]]
    (upload,) = (step for step in preview["steps"] if step.get("id") == "upload")
    assert upload["with"]["path"] == "build/html"


def test_an_edit_of_each_page_that_needs_a_gpu_starts_a_recording() -> None:
    pushed = yaml.safe_load((ROOT / ".github/workflows/cuda.yml").read_text())[True]["push"]["paths"]
    need_gpu = [script.relative_to(ROOT) for script in ROOT.glob("examples/*/*.py") if needs_gpu(script)]
    assert need_gpu
    assert not [script for script in need_gpu if not any(script.match(path) for path in pushed)]


def test_the_page_on_hosting_names_each() -> None:
    assert [path.stem for path in WORKFLOWS] == ["ci", "cuda", "links", "publish", "weekly"]
    page = (ROOT / "docs" / "about" / "hosting.md").read_text(encoding="utf-8")
    _, _, table = page.partition("| workflow |")
    assert sorted(re.findall(r"^\| `(\w+)` \|", table, flags=re.MULTILINE)) == [path.stem for path in WORKFLOWS]


BAD = """
on: push
jobs:
  one:
    steps:
      - uses: actions/checkout@v4
      - run: echo ${{ github.event.issue.title }}
      - uses: actions/cache@v4
        with: {path: .nox, key: "environment-3.12"}
"""


def test_each_fault_is_found() -> None:
    found = "\n".join(faults(BAD))
    for part in (
        "permissions",
        "concurrency",
        "the shell goes on",
        "no timeout",
        "pinned",
        "within a script",
        "more than call",
        "credentials",
        "a new patch release of Python",
    ):
        assert part in found
