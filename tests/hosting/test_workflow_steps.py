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

    def told(self, file: str) -> list[str]:
        """What steps said to those after them, in the file that a variable names."""
        path = Path(self.environment[file])
        return path.read_text().splitlines() if path.exists() else []

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
        "TIP": "",
        "GITHUB_OUTPUT": str(tmp_path / "output"),
        "GITHUB_ENV": str(tmp_path / "variables"),
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


# -- weekly ----------------------------------------------------------------------------------------

VERSIONS = script("weekly", "versions", "Open, update or close the issue")
DIFFERENCES = "## torch 99.1.0\n\n- kinks: `x.abs() at x = [0]`: `[0]` on 2.15.0, `[1]` on 99.1.0\n"


@pytest.mark.parametrize(("issue", "call"), [("", "issue create --title What newer versions"), ("7", "issue edit 7")])
def test_what_newer_versions_do_otherwise_is_in_one_issue(runner: Runner, issue: str, call: str) -> None:
    write(runner.checkout, "differences.md", DIFFERENCES)
    assert runner.run(VERSIONS, RUN="https://run.example", ISSUE=issue).returncode == 0
    asked = runner.asked()
    assert call in asked and "https://run.example" in asked and "- kinks: `x.abs() at x = [0]`" in asked
    assert asked.count("--body-file body.md") == 1


def test_where_nothing_differs_it_is_closed(runner: Runner) -> None:
    assert runner.run(VERSIONS, RUN="https://run.example", ISSUE="7").returncode == 0
    assert "issue close 7 --comment They answer as the versions on the site: https://run.example" in runner.asked()


def test_where_nothing_differed_before_nothing_is_done(runner: Runner) -> None:
    assert runner.run(VERSIONS, RUN="https://run.example").returncode == 0
    assert all(call.startswith("issue list") for call in runner.asked().splitlines())


def test_more_differences_than_an_issue_holds(runner: Runner) -> None:
    write(runner.checkout, "differences.md", DIFFERENCES * 2000 + "- " + "x" * 100_000)
    assert runner.run(VERSIONS, RUN="https://run.example").returncode == 0
    assert 5_000 < len((runner.checkout / "body.md").read_text()) < 65_536


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


# -- ci --------------------------------------------------------------------------------------------

FOR_READERS = script("ci", "check", "On main, build what publish will deploy")


@pytest.mark.parametrize("address", ["https://owner.example/atlas", "https://owner.example/atlas/"])
def test_what_ci_builds_on_main_is_for_readers(runner: Runner, address: str) -> None:
    """GitHub's answer has no slash at its end; ATLAS_SITE has one."""
    said = {"ADDRESS": address, "REPOSITORY": "https://github.com/someone/atlas", "COMMIT": "0123abc"}
    assert runner.run(FOR_READERS, **said).returncode == 0
    assert runner.told("GITHUB_ENV") == [
        "ATLAS_SITE=https://owner.example/atlas/",
        "ATLAS_REPOSITORY=https://github.com/someone/atlas",
        "ATLAS_COMMIT=0123abc",
    ]


def test_a_fork_without_an_address_is_checked_all_the_same(runner: Runner) -> None:
    assert runner.run(FOR_READERS, ADDRESS="", COMMIT="0123abc").returncode == 0
    assert runner.told("GITHUB_ENV") == []


PREVIEW = script("ci", "preview", "Say where the preview is, and which pages it is about")
COMMIT = "git add . && git -c user.name=a -c user.email=a@b.example commit --quiet --message change"


def test_the_preview_of_a_proposal_is_linked_with_its_pages(runner: Runner, tmp_path: Path) -> None:
    write(runner.checkout, "examples/graphs/gone.py", "")
    write(runner.checkout, "docs/guide/a.md", "")
    assert runner.run(FIRST).returncode == 0
    (runner.checkout / "examples/graphs/gone.py").unlink()
    write(runner.checkout, "examples/graphs/my_page.py", "new")
    write(runner.checkout, "docs/guide/a.md", "changed")
    write(runner.checkout, "conf/conf.py", "changed")
    assert runner.run(COMMIT).returncode == 0
    summary = tmp_path / "summary"
    done = runner.run(PREVIEW, ADDRESS="https://artifact.example", GITHUB_STEP_SUMMARY=str(summary))
    assert done.returncode == 0, done.stderr
    told = summary.read_text()
    assert "](https://artifact.example)" in told
    assert [line for line in told.splitlines() if line.startswith("- ")] == [
        "- guide/a.html",
        "- gallery/graphs/my_page.html",
    ]


def test_the_preview_of_a_proposal_without_a_page_is_linked_too(runner: Runner, tmp_path: Path) -> None:
    write(runner.checkout, "conf/conf.py", "")
    assert runner.run(FIRST).returncode == 0
    write(runner.checkout, "conf/conf.py", "changed")
    assert runner.run(COMMIT).returncode == 0
    summary = tmp_path / "summary"
    done = runner.run(PREVIEW, ADDRESS="https://artifact.example", GITHUB_STEP_SUMMARY=str(summary))
    assert done.returncode == 0 and "none; what they share may be" in summary.read_text()


# -- publish ---------------------------------------------------------------------------------------

TIP = script("publish", "fetch", "Leave it to the next run if main has moved on")
REFUSE = script("publish", "fetch", "Refuse a site that is not made for readers, or has gaps")
ADDRESSES = script("publish", "addresses", "Propose the list of published addresses, if it has grown")
NOTEBOOKS = script("publish", "notebooks", "Make the branch anew, with these notebooks and no history")


def test_the_tip_of_main_is_published(runner: Runner) -> None:
    assert runner.run(TIP, COMMIT="0123abc", TIP="0123abc").returncode == 0
    assert runner.told("GITHUB_OUTPUT") == ["newest=true"]


def test_an_older_commit_is_not(runner: Runner) -> None:
    """As when somebody runs an old run of ci again: nothing failed, and nothing is published."""
    done = runner.run(TIP, COMMIT="0123abc", TIP="4567def")
    assert done.returncode == 0 and "main is at 4567def" in done.stdout
    assert runner.told("GITHUB_OUTPUT") == []


def test_where_github_does_not_answer_nothing_is_published(runner: Runner) -> None:
    assert runner.run(f"gh() {{ return 1; }}; {TIP}", COMMIT="0123abc").returncode != 0
    assert runner.told("GITHUB_OUTPUT") == []


def test_a_whole_site_of_that_commit_is_published(runner: Runner) -> None:
    write(runner.checkout, "site/build.json", '{"commit": "0123abc", "not_recorded": []}')
    done = runner.run(REFUSE, COMMIT="0123abc")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("built", "says"),
    [
        ('{"commit": null, "not_recorded": []}', "Set the variable ATLAS_SITE"),
        ('{"commit": "4567def", "not_recorded": []}', "Set the variable ATLAS_SITE"),
        ('{"commit": "0123abc", "not_recorded": ["gallery/cuda/devices"]}', "nox -s record"),
        ('{"commit": "0123abc"}', ""),
        ("{", ""),
    ],
)
def test_any_other_is_refused(runner: Runner, built: str, says: str) -> None:
    write(runner.checkout, "site/build.json", built)
    done = runner.run(REFUSE, COMMIT="0123abc")
    assert done.returncode != 0 and says in done.stdout
    assert ("gallery/cuda/devices" in done.stdout) == ("devices" in built)


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


def test_colab_opens_a_notebook_where_it_was_put(runner: Runner) -> None:
    """Of ``docs/gallery/graphs/first_graph.ipynb`` the artifact keeps what is below ``docs/gallery``."""
    write(runner.checkout, "graphs/first_graph.ipynb", "{}")
    assert runner.run(NOTEBOOKS, SOURCE="0123abc").returncode == 0
    address = find_colab_address(f"https://github.com/{REPOSITORY}", "gallery/graphs/first_graph")
    branch, _, path = address.partition(f"/{REPOSITORY}/blob/")[2].partition("/")
    assert runner.git("show", f"{branch}:{path}") == "{}"


LIST = "docs/published-pages.txt"


def test_new_addresses_are_proposed(runner: Runner) -> None:
    write(runner.checkout, LIST, "a.html\n")
    assert runner.run(FIRST).returncode == 0
    write(runner.checkout, LIST, "a.html\nb.html\n")
    done = runner.run(ADDRESSES)
    assert done.returncode == 0, done.stderr
    assert runner.git("show", f"addresses:{LIST}") == "a.html\nb.html"
    assert f"pr create --repo {REPOSITORY} --head addresses" in runner.asked()


def test_a_proposal_of_addresses_that_is_open_is_renewed(runner: Runner) -> None:
    write(runner.checkout, LIST, "a.html\n")
    assert runner.run(FIRST).returncode == 0
    write(runner.checkout, LIST, "a.html\nb.html\n")
    done = runner.run(ADDRESSES, PROPOSAL="7")
    assert done.returncode == 0, done.stderr
    assert "pr create" not in runner.asked()


def test_without_a_new_address_nothing_is_proposed(runner: Runner) -> None:
    write(runner.checkout, LIST, "a.html\n")
    assert runner.run(FIRST).returncode == 0
    done = runner.run(ADDRESSES)
    assert done.returncode == 0 and "No address is new" in done.stdout
    assert runner.asked() == "" and not runner.git("branch", "--list", "addresses")
