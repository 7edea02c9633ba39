"""The scripts in the workflows do what they say, run here with a GitHub that is a folder and a ``gh`` that takes notes."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from atlas.footer import find_colab_address
from sources import ROOT

REPOSITORY = "someone/atlas"
RUN = "https://run.example"
#: Answers with the number in ISSUE when asked for an issue of the workflows' own, with that in PROPOSAL when asked for a
#: proposal of the branch, with TIP when asked where main is, and notes every call.
GH = """#!/bin/sh
echo "$@" >> "$CALLS"
for word in "$@"; do [ "$word" = body.md ] && cat body.md >> "$CALLS"; done
case "$*" in
  "issue list "*"--app github-actions "*) echo "$ISSUE" ;;
  "pr list "*"--head recordings "* | "pr list "*"--head addresses "*) echo "$PROPOSAL" ;;
  "api repos/someone/atlas/commits/main --jq .sha") echo "$TIP" ;;
esac
"""
COMMIT = (
    "git init --quiet && git add . && git -c user.name=a -c user.email=a@b.example commit --quiet --message first"
)


def read_step(workflow: str, job: str, name: str) -> str:
    """The script of a step, by its name."""
    steps = yaml.safe_load((ROOT / ".github/workflows" / f"{workflow}.yml").read_text())["jobs"][job]["steps"]
    (found,) = (step["run"] for step in steps if step.get("name") == name)
    return found


LINKS = read_step("links", "ask", "Open, update or close the issue")
RECORDINGS = read_step("cuda", "record", "Propose the recordings, if they differ")
FOR_READERS = read_step("ci", "check", "On main, build what publish will deploy")
TIP = read_step("publish", "fetch", "Leave it to the next run if main has moved on")
REFUSE = read_step("publish", "fetch", "Refuse a site that is not made for readers, or has gaps")
ADDRESSES = read_step("publish", "addresses", "Propose the list of published addresses, if it has grown")
NOTEBOOKS = read_step("publish", "notebooks", "Make the branch anew, with these notebooks and no history")


@dataclass(frozen=True, slots=True)
class Runner:
    """A machine with a checkout, on which steps run."""

    checkout: Path
    remote: Path
    environment: dict[str, str]

    def run(self, step: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run a step as GitHub does where ``shell: bash`` is set: it stops at the first command that fails."""
        command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step]
        environment = self.environment | {"GH_TOKEN": "secret", "REPOSITORY": REPOSITORY, "RUN": RUN} | variables
        return subprocess.run(
            command, cwd=self.checkout, env=environment, capture_output=True, text=True, check=False
        )

    def git(self, *command: str) -> str:
        """What git says of the repository on GitHub."""
        done = subprocess.run(["git", *command], cwd=self.remote, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    def read(self, file: str) -> str:
        """What steps said to those after them, or asked of gh: the file that a variable names."""
        path = Path(self.environment[file])
        return path.read_text() if path.exists() else ""

    def read_changes(self) -> list[str]:
        """The calls of gh that only ask are left out."""
        return [line for line in self.read("CALLS").splitlines() if not line.startswith(("issue list", "pr list"))]

    def write(self, files: dict[str, str]) -> None:
        for name, text in files.items():
            (self.checkout / name).parent.mkdir(parents=True, exist_ok=True)
            (self.checkout / name).write_text(text)


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    programs, checkout, remote = (tmp_path / name for name in ("bin", "checkout", "remote"))
    for folder in (programs, checkout, remote):
        folder.mkdir()
    (programs / "gh").write_text(GH)
    (programs / "gh").chmod(0o755)
    address = f"https://x-access-token:secret@github.com/{REPOSITORY}.git"
    config = f'[url "{remote}"]\n\tinsteadOf = {address}\n[init]\n\tdefaultBranch = main\n'
    (tmp_path / "gitconfig").write_text(config)
    kept = {name: os.environ[name] for name in ("HOME", "LANG") if name in os.environ}
    files = ("CALLS", "GITHUB_OUTPUT", "GITHUB_ENV")
    environment = {
        **kept,
        **{name: str(tmp_path / name) for name in files},
        **dict.fromkeys(("ISSUE", "PROPOSAL", "TIP"), ""),
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "GIT_CONFIG_GLOBAL": str(tmp_path / "gitconfig"),
        "GIT_CONFIG_NOSYSTEM": "1",
    }
    subprocess.run(["git", "init", "--quiet", "--bare", remote], env=environment, check=True)
    return Runner(checkout, remote, environment)


# -- Issues ----------------------------------------------------------------------------------------

BROKEN = "index.md:3: [broken] https://a.example/: 404\n"


@pytest.mark.parametrize(
    ("found", "outcome", "issue", "status", "change"),
    [
        (BROKEN, "failure", "", 0, "issue create --title Links that lead nowhere --body-file body.md"),
        (BROKEN * 9999, "failure", "7", 0, "issue edit 7 --body-file body.md"),
        ("", "success", "7", 0, f"issue close 7 --comment All links lead somewhere again: {RUN}"),
        ("", "failure", "", 1, ""),  # the check of links crashed
    ],
)
def test_one_issue_says_which_links_are_broken(
    runner: Runner, found: str, outcome: str, issue: str, status: int, change: str
) -> None:
    runner.write({"build/linkcheck/output.txt": found} if found else {})
    assert runner.run(LINKS, OUTCOME=outcome, ISSUE=issue).returncode == status
    assert runner.read_changes()[:1] == [change][: len(change)]
    assert runner.read("CALLS").count(BROKEN) == min(found.count(BROKEN), 200)


# -- Proposals -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("step", "branch", "file", "as_before"),
    [
        (RECORDINGS, "recordings", "examples/cuda/recordings/devices/manifest.json", "as they were"),
        (ADDRESSES, "addresses", "docs/published-pages.txt", "No address is new"),
    ],
)
def test_what_a_workflow_made_is_one_proposal(
    runner: Runner, step: str, branch: str, file: str, as_before: str
) -> None:
    assert ".isCrossRepository | not" in step  # one from a fork is not taken for it
    runner.write({file: "old"})
    assert runner.run(COMMIT).returncode == 0
    done = runner.run(step)
    assert done.returncode == 0 and as_before in done.stdout
    assert runner.read("CALLS") == ""
    for text, proposal in (("new", ""), ("newer", "7")):
        runner.write({file: text, "build.log": "something else"})
        done = runner.run(step, PROPOSAL=proposal)
        assert done.returncode == 0, done.stderr
        assert runner.git("show", f"{branch}:{file}") == text
        assert runner.run("git reset --quiet --hard HEAD~1").returncode == 0
    assert runner.git("branch", "--format=%(refname:short)") == branch
    assert runner.git("log", "--format=%s", branch).splitlines()[1:] == ["first"]
    assert runner.git("ls-tree", "-r", "--name-only", branch) == file
    (created,) = runner.read_changes()
    assert created.startswith(f"pr create --repo {REPOSITORY} --head {branch}")


# -- ci --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("address", ["https://owner.example/atlas", ""])
def test_what_ci_builds_on_main_is_for_readers(runner: Runner, address: str) -> None:
    """GitHub's answer has no slash at its end; ATLAS_SITE has one. A fork without an address is checked all the same."""
    assert runner.run(FOR_READERS, ADDRESS=address, REPOSITORY="https://a.example", COMMIT="0123abc").returncode == 0
    settings = "ATLAS_SITE=https://owner.example/atlas/ ATLAS_REPOSITORY=https://a.example ATLAS_COMMIT=0123abc"
    assert runner.read("GITHUB_ENV").split() == (settings.split() if address else [])


# -- publish ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("step", "tip", "status", "output"),
    [
        (TIP, "0123abc", 0, "newest=true\n"),
        (TIP, "4567def", 0, ""),  # somebody runs an old run of ci again: nothing failed, and nothing is published
        (f"gh() {{ return 1; }}; {TIP}", "", 1, ""),  # GitHub does not answer
    ],
)
def test_the_tip_of_main_is_published(runner: Runner, step: str, tip: str, status: int, output: str) -> None:
    done = runner.run(step, COMMIT="0123abc", TIP=tip)
    assert (done.returncode, runner.read("GITHUB_OUTPUT")) == (status, output)
    assert ("main is at 4567def" in done.stdout) == (tip == "4567def")


@pytest.mark.parametrize(
    ("built", "says"),
    [
        ('{"commit": "0123abc", "not_recorded": []}', None),
        ('{"commit": null, "not_recorded": []}', "Set the variable ATLAS_SITE"),
        ('{"commit": "0123abc", "not_recorded": ["gallery/cuda/devices"]}', "nox -s record"),
        ('{"commit": "0123abc"}', ""),
        ("{", ""),
    ],
)
def test_only_a_whole_site_of_that_commit_is_published(runner: Runner, built: str, says: str | None) -> None:
    runner.write({"site/build.json": built})
    done = runner.run(REFUSE, COMMIT="0123abc")
    assert (done.returncode == 0) == (says is None) and (says or "") in done.stdout
    assert ("gallery/cuda/devices" in done.stdout) == ("devices" in built)


def test_notebooks_are_put_where_colab_opens_them(runner: Runner, tmp_path: Path) -> None:
    """Of ``docs/gallery/graphs/first_graph.ipynb`` the artifact keeps what is below ``docs/gallery``."""
    runner.write({"graphs/gone.ipynb": "{}"})
    assert runner.run(NOTEBOOKS, SOURCE="0123abc").returncode == 0
    next_time = Runner(tmp_path / "again", runner.remote, runner.environment)
    next_time.write({"graphs/first_graph.ipynb": "{}"})
    assert next_time.run(NOTEBOOKS, SOURCE="4567def").returncode == 0
    address = find_colab_address(f"https://github.com/{REPOSITORY}", "gallery/graphs/first_graph")
    branch, _, path = address.partition(f"/{REPOSITORY}/blob/")[2].partition("/")
    assert runner.git("ls-tree", "-r", "--name-only", branch) == path == "graphs/first_graph.ipynb"
    assert runner.git("log", "--format=%s", branch) == "The notebooks of the site, built from 4567def"
