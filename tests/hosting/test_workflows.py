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

from atlas.pages import colab

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PINNED = re.compile(r"^actions/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$")
PROGRAMS = ("python -m pip install nox", "python -m nox -s ", ".ci/run", "git ", "gh ", "title=", "issue=", "shards=")


def faults(text: str) -> Iterator[str]:
    workflow: dict[str, Any] = yaml.safe_load(text)
    if workflow.get("permissions") != {"contents": "read"}:
        yield "permissions: more than reading, for every job"
    if "concurrency" not in workflow:
        yield "concurrency: two runs may meet"
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


def test_machines_share_the_examples_where_there_are_many() -> None:
    ci = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text())["jobs"]
    assert ci["shard"]["strategy"]["matrix"]["shard"] == "${{ fromJSON(needs.plan.outputs.shards) }}"
    steps = [step.get("run", "") for step in ci["check"]["steps"]]
    merge = next(number for number, step in enumerate(steps) if "--merge parts" in step)
    assert merge < steps.index(".ci/run"), "the build and its tests come after the parts"


def test_there_are_the_four_of_them() -> None:
    assert [path.stem for path in WORKFLOWS] == ["ci", "cuda", "links", "publish"]


def test_sessions_that_are_called_exist() -> None:
    sessions = set(re.findall(r"@nox\.session.*\ndef (\w+)", (ROOT / "noxfile.py").read_text()))
    for path in WORKFLOWS:
        called = re.findall(r"nox -s (\w+)", path.read_text(encoding="utf-8"))
        assert set(called) <= sessions, path.name


def test_only_a_whole_release_is_published() -> None:
    publish = yaml.safe_load((ROOT / ".github/workflows/publish.yml").read_text())
    build = [step.get("run", "") for step in publish["jobs"]["build"]["steps"]]
    assert "python -m nox -s docs -- --release" in build
    assert publish["jobs"]["deploy"]["needs"] == "build"


def test_only_the_notebooks_are_pushed_by_publish() -> None:
    jobs = yaml.safe_load((ROOT / ".github/workflows/publish.yml").read_text())["jobs"]
    assert [name for name, job in jobs.items() if "write" in job.get("permissions", {}).get("contents", "")] == [
        "notebooks"
    ]
    assert jobs["notebooks"]["permissions"] == {"contents": "write"}
    assert jobs["notebooks"]["needs"] == "build"
    scripts = "\n".join(step.get("run", "") for job in jobs.values() for step in job["steps"])
    pushes = [line.split()[-1] for line in scripts.splitlines() if "git push" in line]
    assert pushes == [colab.BRANCH]


def test_colab_finds_a_notebook_where_publish_puts_it() -> None:
    """The artifact's root is the folder above its wildcard; the branch has the same paths as its root."""
    jobs = yaml.safe_load((ROOT / ".github/workflows/publish.yml").read_text())["jobs"]
    (kept,) = [
        step["with"] for step in jobs["build"]["steps"] if step.get("uses", "").startswith("actions/upload-artifact")
    ]
    (fetched,) = [step["with"] for step in jobs["notebooks"]["steps"] if "download-artifact" in step.get("uses", "")]
    assert kept["name"] == fetched["name"] and "path" not in fetched
    root, _, pattern = kept["path"].partition("/**/")
    assert (root, pattern) == ("docs/gallery", "*.ipynb")
    opened = colab.address("https://github.com/o/r", "gallery/graphs/first_graph")
    assert opened and opened.endswith("/o/r/blob/notebooks/graphs/first_graph.ipynb")


BAD = """
on: push
jobs:
  one:
    steps:
      - uses: actions/checkout@v4
      - run: echo ${{ github.event.issue.title }}
"""


def test_each_fault_is_found() -> None:
    found = "\n".join(faults(BAD))
    for part in (
        "permissions",
        "concurrency",
        "no timeout",
        "pinned",
        "within a script",
        "more than call",
        "credentials",
    ):
        assert part in found
