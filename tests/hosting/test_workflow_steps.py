"""The scripts in the workflows do what they say, run here with a GitHub that is a folder and a ``gh`` that takes notes."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from sources import ROOT

REPOSITORY = "someone/atlas"
#: Answers with the number in ISSUE when asked for an issue of the workflows' own, with that in PROPOSAL when asked for a
#: proposal of the branch, and notes every call.
GH = """#!/bin/sh
echo "$@" >> "$CALLS"
for word in "$@"; do [ "$word" = body.md ] && cat body.md >> "$CALLS"; done
case "$*" in
  "issue list "*"--app github-actions "*) echo "$ISSUE" ;;
  "pr list "*"--head recordings "*) echo "$PROPOSAL" ;;
esac
"""


def script(workflow: str, job: str, name: str) -> str:
    """The script of a step, by its name."""
    steps = yaml.safe_load((ROOT / ".github/workflows" / f"{workflow}.yml").read_text())["jobs"][job]["steps"]
    (found,) = (step["run"] for step in steps if step.get("name") == name)
    return found


@dataclass(frozen=True, slots=True)
class Runner:
    """A machine with a checkout, on which steps run."""

    checkout: Path
    remote: Path
    calls: Path
    environment: dict[str, str]

    def run(self, step: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run a step as GitHub does where ``shell: bash`` is set: it stops at the first command that fails."""
        command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step]
        environment = self.environment | {"GH_TOKEN": "secret", "REPOSITORY": REPOSITORY} | variables
        return subprocess.run(
            command, cwd=self.checkout, env=environment, capture_output=True, text=True, check=False
        )

    def git(self, *command: str) -> str:
        """What git says of the repository on GitHub."""
        done = subprocess.run(["git", *command], cwd=self.remote, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    def asked(self) -> str:
        """How gh was called."""
        return self.calls.read_text() if self.calls.exists() else ""


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    programs, checkout, remote = (tmp_path / name for name in ("bin", "checkout", "remote"))
    for folder in (programs, checkout, remote):
        folder.mkdir()
    (programs / "gh").write_text(GH)
    (programs / "gh").chmod(0o755)
    address = f"https://x-access-token:secret@github.com/{REPOSITORY}.git"
    (tmp_path / "gitconfig").write_text(
        f'[url "{remote}"]\n\tinsteadOf = {address}\n[init]\n\tdefaultBranch = main\n'
    )
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    environment = kept | {
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "CALLS": str(tmp_path / "calls"),
        "ISSUE": "",
        "PROPOSAL": "",
        "GIT_CONFIG_GLOBAL": str(tmp_path / "gitconfig"),
        "GIT_CONFIG_NOSYSTEM": "1",
    }
    subprocess.run(["git", "init", "--quiet", "--bare", remote], env=environment, check=True)
    return Runner(checkout, remote, tmp_path / "calls", environment)


def write(folder: Path, name: str, text: str) -> None:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)


# -- links -----------------------------------------------------------------------------------------

LINKS = script("links", "ask", "Open, update or close the issue")
OUTPUT = "build/linkcheck/output.txt"
FOUND = "index.md:3: [broken] https://a.example/: 404\nindex.md:4: [redirected] https://b.example/ to https://c.example/\n"


def test_links_that_are_broken_open_an_issue(runner: Runner) -> None:
    write(runner.checkout, OUTPUT, FOUND)
    assert runner.run(LINKS, OUTCOME="failure", RUN="https://run.example").returncode == 0
    asked = runner.asked()
    assert "issue create --title Links that lead nowhere --body-file body.md" in asked
    assert "[broken] https://a.example/: 404" in asked and "redirected" not in asked


def test_links_that_are_still_broken_change_the_issue(runner: Runner) -> None:
    write(runner.checkout, OUTPUT, FOUND)
    assert runner.run(LINKS, OUTCOME="failure", RUN="https://run.example", ISSUE="7").returncode == 0
    assert "issue edit 7 --body-file body.md" in runner.asked() and "issue create" not in runner.asked()


def test_links_that_are_mended_close_it(runner: Runner) -> None:
    assert runner.run(LINKS, OUTCOME="success", RUN="https://run.example", ISSUE="7").returncode == 0
    assert "issue close 7 --comment All links lead somewhere again: https://run.example" in runner.asked()


def test_links_that_were_never_broken_do_nothing(runner: Runner) -> None:
    assert runner.run(LINKS, OUTCOME="success", RUN="https://run.example").returncode == 0
    assert all(call.startswith("issue list") for call in runner.asked().splitlines())


def test_a_check_of_links_that_crashed_is_no_success(runner: Runner) -> None:
    done = runner.run(LINKS, OUTCOME="failure", RUN="https://run.example")
    assert done.returncode == 1 and "without a list of broken links" in done.stdout
    assert "issue create" not in runner.asked()


def test_nor_is_one_that_failed_and_found_nothing_broken(runner: Runner) -> None:
    write(runner.checkout, OUTPUT, FOUND.splitlines()[1])
    done = runner.run(LINKS, OUTCOME="failure", RUN="https://run.example")
    assert done.returncode == 1 and "without a list of broken links" in done.stdout
    assert "issue create" not in runner.asked()


def test_more_broken_links_than_an_issue_holds(runner: Runner) -> None:
    write(runner.checkout, OUTPUT, "".join(f"index.md:{n}: [broken] https://a.example/{n}\n" for n in range(1, 9999)))
    done = runner.run(LINKS, OUTCOME="failure", RUN="https://run.example")
    assert done.returncode == 0, done.stderr
    assert runner.asked().count("[broken]") == 200


# -- cuda ------------------------------------------------------------------------------------------

PROPOSE = script("cuda", "record", "Propose the recordings, if they differ")
RECORDING = "examples/cuda/recordings/devices/manifest.json"
FIRST = (
    'git init --quiet && git add . && git -c user.name=a -c user.email=a@b.example commit --quiet --message "first"'
)


def test_new_recordings_are_proposed(runner: Runner) -> None:
    write(runner.checkout, RECORDING, "old")
    assert runner.run(FIRST).returncode == 0
    write(runner.checkout, RECORDING, "new")
    write(runner.checkout, "build.log", "something else")
    done = runner.run(PROPOSE)
    assert done.returncode == 0, done.stderr
    assert runner.git("show", f"recordings:{RECORDING}") == "new"
    assert "build.log" not in runner.git("ls-tree", "-r", "--name-only", "recordings")
    assert f"pr create --repo {REPOSITORY} --head recordings" in runner.asked()


def test_newer_ones_take_their_place_in_the_same_proposal(runner: Runner) -> None:
    write(runner.checkout, RECORDING, "old")
    assert runner.run(FIRST).returncode == 0
    write(runner.checkout, RECORDING, "new")
    assert runner.run(PROPOSE).returncode == 0
    assert runner.run("git reset --quiet --hard HEAD~1").returncode == 0
    write(runner.checkout, RECORDING, "newer")
    done = runner.run(PROPOSE, PROPOSAL="7")
    assert done.returncode == 0, done.stderr
    assert runner.git("branch", "--format=%(refname:short)") == "recordings"
    assert runner.git("show", f"recordings:{RECORDING}") == "newer"
    assert runner.git("log", "--format=%s", "recordings").splitlines()[1:] == ["first"]
    assert runner.asked().count("pr create") == 1


def test_a_proposal_from_a_fork_is_not_taken_for_it() -> None:
    assert ".isCrossRepository | not" in PROPOSE


def test_the_same_recordings_are_not(runner: Runner) -> None:
    write(runner.checkout, RECORDING, "old")
    assert runner.run(FIRST).returncode == 0
    done = runner.run(PROPOSE)
    assert done.returncode == 0 and "as they were" in done.stdout
    assert runner.git("branch") == "" and runner.asked() == ""


# -- publish ---------------------------------------------------------------------------------------

NOTEBOOKS = script("publish", "notebooks", "Make the branch anew, with these notebooks and no history")


def test_notebooks_are_put_on_their_branch(runner: Runner, tmp_path: Path) -> None:
    write(runner.checkout, "graphs/first_graph.ipynb", "{}")
    done = runner.run(NOTEBOOKS, SOURCE="0123abc")
    assert done.returncode == 0, done.stderr
    again = tmp_path / "again"
    write(again, "graphs/renamed.ipynb", "{}")
    next_time = Runner(again, runner.remote, runner.calls, runner.environment)
    assert next_time.run(NOTEBOOKS, SOURCE="4567def").returncode == 0
    assert runner.git("ls-tree", "-r", "--name-only", "notebooks") == "graphs/renamed.ipynb"
    assert runner.git("log", "--format=%s", "notebooks") == "The notebooks of the site, built from 4567def"
