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

from atlas.page_parts import colab_link
from sources import ROOT

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PINNED = re.compile(r"^actions/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$")
PROGRAMS = ("python -m pip install nox", "python -m nox -s ", ".ci/run", "git ", "gh ", "title=", "issue=", "shards=")


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


def test_the_oldest_python_that_is_promised_runs_the_tests() -> None:
    promised = re.findall(r"Python (3\.\d+) or later", (ROOT / "README.md").read_text(encoding="utf-8"))
    versions = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text())["jobs"]["versions"]
    assert promised == versions["strategy"]["matrix"]["python"][:1]
    assert "python -m nox -s tests" in [step.get("run") for step in versions["steps"]]


def test_the_page_on_hosting_names_each() -> None:
    assert [path.stem for path in WORKFLOWS] == ["ci", "cuda", "links", "publish", "weekly"]
    page = (ROOT / "docs" / "about" / "hosting.md").read_text(encoding="utf-8")
    _, _, table = page.partition("| workflow |")
    assert sorted(re.findall(r"^\| `(\w+)` \|", table, flags=re.MULTILINE)) == [path.stem for path in WORKFLOWS]


def test_the_gpu_sees_only_main_and_is_waited_for_only_if_there_is_one() -> None:
    (job,) = yaml.safe_load((ROOT / ".github/workflows/cuda.yml").read_text())["jobs"].values()
    assert job["if"] == "vars.ATLAS_GPU == 'true' && github.ref == 'refs/heads/main'"


# -- publish ---------------------------------------------------------------------------------------

PUBLISH = yaml.safe_load((ROOT / ".github/workflows/publish.yml").read_text())
JOBS = PUBLISH["jobs"]
ON = True  # which is how YAML reads the key "on"


def test_only_what_passed_on_main_is_published() -> None:
    assert PUBLISH[ON] == {"workflow_run": {"workflows": ["ci"], "types": ["completed"], "branches": ["main"]}}
    assert JOBS["build"]["if"].split(" && ") == [
        "github.event.workflow_run.conclusion == 'success'",
        "github.event.workflow_run.head_repository.full_name == github.repository",
    ]
    others = [job for name, job in JOBS.items() if name != "build"]
    assert all(job["needs"] == "build" and "if" not in job for job in others)


def test_it_is_the_commit_that_passed() -> None:
    passed = "${{ github.event.workflow_run.head_sha }}"
    steps = [step for job in JOBS.values() for step in job["steps"]]
    assert [step["with"]["ref"] for step in steps if "actions/checkout" in step.get("uses", "")] == [passed]
    said = [
        value for step in steps for name, value in step.get("env", {}).items() if name in ("ATLAS_COMMIT", "SOURCE")
    ]
    assert said == [passed, passed]
    assert "github.sha" not in (ROOT / ".github/workflows/publish.yml").read_text()


def test_a_run_without_anything_to_publish_takes_nobodys_place() -> None:
    group = PUBLISH["concurrency"]["group"]
    assert all(part in group for part in ("workflow_run.conclusion", "workflow_run.head_repository.full_name"))


def test_github_is_asked_for_the_address() -> None:
    """Its answer has no slash at the end; ATLAS_SITE has one."""
    steps = JOBS["build"]["steps"]
    (asked,) = [number for number, step in enumerate(steps) if "actions/configure-pages" in step.get("uses", "")]
    (told,) = [number for number, step in enumerate(steps) if "ATLAS_SITE" in step.get("env", {})]
    assert asked < told
    address = f"format('{{0}}/', steps.{steps[asked]['id']}.outputs.base_url)"
    assert steps[told]["env"]["ATLAS_SITE"] == f"${{{{ vars.ATLAS_SITE || {address} }}}}"
    assert JOBS["build"]["permissions"] == {"contents": "read", "pages": "read"}


def test_only_a_whole_release_is_published() -> None:
    assert "python -m nox -s docs -- --release" in [step.get("run", "") for step in JOBS["build"]["steps"]]


def test_only_the_notebooks_are_pushed_by_publish() -> None:
    assert [name for name, job in JOBS.items() if "write" in job.get("permissions", {}).get("contents", "")] == [
        "notebooks"
    ]
    assert JOBS["notebooks"]["permissions"] == {"contents": "write"}
    scripts = "\n".join(step.get("run", "") for job in JOBS.values() for step in job["steps"])
    pushes = [line.split()[-1] for line in scripts.splitlines() if "git push" in line]
    assert pushes == [colab_link.BRANCH]


def test_colab_finds_a_notebook_where_publish_puts_it() -> None:
    """The artifact's root is the folder above its wildcard; the branch has the same paths as its root."""
    (kept,) = [
        step["with"] for step in JOBS["build"]["steps"] if step.get("uses", "").startswith("actions/upload-artifact")
    ]
    (fetched,) = [step["with"] for step in JOBS["notebooks"]["steps"] if "download-artifact" in step.get("uses", "")]
    assert kept["name"] == fetched["name"] and "path" not in fetched
    root, _, pattern = kept["path"].partition("/**/")
    assert (root, pattern) == ("docs/gallery", "*.ipynb")
    opened = colab_link.address("https://github.com/o/r", "gallery/graphs/first_graph")
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
        "the shell goes on",
        "no timeout",
        "pinned",
        "within a script",
        "more than call",
        "credentials",
    ):
        assert part in found
