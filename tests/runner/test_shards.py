"""Several machines, each with a share of the examples: what they make together is what one would have made, or is refused."""

from __future__ import annotations

import json
import runpy
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from compare_builds import differences
from runner.faulty import HALVES, HEALTHY
from sources import ROOT
from tiny.tiny_site import build, written

PROGRAM = ROOT / "conf" / "shards.py"
SHARDS = 3
FIGURE = "\n# %%\n# A graph.\n\ny = x * x\n# graph: y -- One node, and both of its edges lead to x\n"
FILES = {f"examples/basics/page_{n}.py": HEALTHY.replace("A page", f"Page {n}") + FIGURE for n in range(4)} | {
    "examples/cuda/needs_a_gpu.py": HALVES,
    "docs/other.md": "# Another page\n\nText.\n",
}


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the shards made, each on a machine of its own."""
    folder = tmp_path_factory.mktemp("parts")
    for number in range(1, SHARDS + 1):
        site = written(tmp_path_factory.mktemp(f"machine-{number}"), FILES)
        command = [PROGRAM, "--shard", f"{number}/{SHARDS}", "--site", site, "--out", folder]
        subprocess.run([sys.executable, *command], check=True)
    return folder


@pytest.fixture
def copied(parts: Path, tmp_path: Path) -> Path:
    """The parts, to be spoiled."""
    return Path(shutil.copytree(parts, tmp_path / "parts"))


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """The machine on which the parts are put together."""
    return written(tmp_path / "site", FILES)


@pytest.fixture
def merge(site: Path, capsys: pytest.CaptureFixture[str]) -> Callable[[Path], str]:
    """Put parts together; return what it says where it refuses to, and see that it then has written nothing."""
    main = runpy.run_path(str(PROGRAM))["main"]

    def refusal(folder: Path) -> str:
        code = main(["--merge", str(folder), "--site", str(site)])
        said = capsys.readouterr().err
        assert (code == 0) == (said == "")
        if code:
            assert not list(site.rglob("*.receipt.json")), "refused, and published something all the same"
            assert code == 2 and said.startswith("shards: ")
        return said

    return refusal


def edit(path: Path, change: Callable[[dict[str, Any]], object], add: dict[str, str] | None = None) -> None:
    """Write a part anew with another ``part.json``, and with other files."""
    with zipfile.ZipFile(path) as archive:
        contents = {name: archive.read(name) for name in archive.namelist()}
    about = json.loads(contents["part.json"])
    change(about)
    contents |= {"part.json": json.dumps(about).encode()} | {
        name: text.encode() for name, text in (add or {}).items()
    }
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in contents.items():
            archive.writestr(name, content)


def test_together_they_equal_one_build(merge: Callable[[Path], str], parts: Path, site: Path, tmp_path: Path) -> None:
    assert merge(parts) == ""
    merged = build(site)
    assert merged.code == 0, merged.output
    assert "examples: 0 run, 5 current, 0 failed" in merged.output
    alone = build(written(tmp_path / "alone", FILES))
    assert "examples: 5 run" in alone.output
    assert differences(merged.out, alone.out) == []


def test_every_page_is_in_one_part(parts: Path) -> None:
    made = [
        name for path in parts.glob("*.zip") for name in json.loads(zipfile.ZipFile(path).read("part.json"))["made"]
    ]
    assert sorted(made) == ["basics/page_0", "basics/page_1", "basics/page_2", "basics/page_3", "cuda/needs_a_gpu"]


def test_a_part_is_missing(merge: Callable[[Path], str], copied: Path) -> None:
    (copied / "part-2-of-3.zip").unlink()
    assert "missing: part-2-of-3.zip" in merge(copied)


def test_no_part_at_all(merge: Callable[[Path], str], tmp_path: Path) -> None:
    assert "no part is here; a part is called part-1-of-4.zip" in merge(tmp_path)


def test_parts_of_another_number(merge: Callable[[Path], str], copied: Path) -> None:
    (copied / "part-3-of-3.zip").rename(copied / "part-3-of-4.zip")
    assert "part-3-of-4.zip and part-1-of-3.zip are not of the same number of parts" in merge(copied)


def test_a_part_with_another_name(merge: Callable[[Path], str], copied: Path) -> None:
    (copied / "part-3-of-3.zip").rename(copied / "part-three.zip")
    assert "part-three.zip: is no name of a part" in merge(copied)


@pytest.mark.parametrize(
    "spoil", [lambda whole: whole[: len(whole) // 2], lambda whole: b"", lambda whole: b"PK" + whole]
)
def test_a_part_that_did_not_arrive_whole(
    spoil: Callable[[bytes], bytes], merge: Callable[[Path], str], copied: Path
) -> None:
    path = copied / "part-2-of-3.zip"
    path.write_bytes(spoil(path.read_bytes())[:-3])
    assert "part-2-of-3.zip: is damaged: " in merge(copied)


@pytest.mark.parametrize("member", ["part.json", "rst"])
@pytest.mark.parametrize(
    ("place", "flipped"),
    [("local header", 0xFF), ("method", 0xFF), ("flags", 0x01), ("content", 0xFF)],
    ids=["header", "method", "encrypted", "content"],
)
def test_a_part_with_another_byte(
    member: str, place: str, flipped: int, merge: Callable[[Path], str], copied: Path
) -> None:
    """Each place makes zipfile raise something else."""
    path = copied / "part-2-of-3.zip"
    whole = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as archive:
        entry = next(info for info in archive.infolist() if info.filename.endswith(member))
    listed = whole.rindex(entry.filename.encode()) - 46  # in the list at the end, the name follows 46 bytes
    at = {"local header": entry.header_offset, "method": listed + 10, "flags": listed + 8}
    content = entry.header_offset + 30 + len(entry.filename)
    whole[at.get(place, content)] ^= flipped
    path.write_bytes(whole)
    assert "part-2-of-3.zip: is damaged: " in merge(copied)


def test_a_changed_output(merge: Callable[[Path], str], copied: Path) -> None:
    with zipfile.ZipFile(copied / "part-2-of-3.zip") as archive:
        name = next(name for name in archive.namelist() if name.endswith(".rst"))
    edit(copied / "part-2-of-3.zip", lambda about: None, {name: "another page"})
    assert f"part-2-of-3.zip: is damaged: {name} is not what was packed" in merge(copied)


def test_a_file_that_is_not_listed(merge: Callable[[Path], str], copied: Path) -> None:
    edit(copied / "part-1-of-3.zip", lambda about: None, {"basics/page_0/more.rst": "more"})
    assert "part-1-of-3.zip: is damaged: basics/page_0/more.rst is not listed" in merge(copied)


@pytest.mark.parametrize("name", ["../../escaped", "basics/page_9/x.rst", "x", "basics/page_0/../../x"])
def test_a_file_that_belongs_to_no_page(name: str, merge: Callable[[Path], str], copied: Path) -> None:
    edit(copied / "part-1-of-3.zip", lambda about: about["files"].update({name: "0"}), {name: "x"})
    assert f"part-1-of-3.zip: is damaged: {name} belongs to no page" in merge(copied)


@pytest.mark.parametrize("fact", ["commit", "versions", "made", "files", "shared_out"])
def test_a_part_that_does_not_say_what_it_is(fact: str, merge: Callable[[Path], str], copied: Path) -> None:
    edit(copied / "part-3-of-3.zip", lambda about: about.pop(fact))
    assert f"part-3-of-3.zip: is damaged: '{fact}'" in merge(copied)


def test_a_part_of_another_commit(merge: Callable[[Path], str], copied: Path) -> None:
    edit(copied / "part-2-of-3.zip", lambda about: about.update(commit="0123abc"))
    assert "part-2-of-3.zip: is of commit 0123abc" in merge(copied)


def test_a_part_of_another_torch(merge: Callable[[Path], str], copied: Path) -> None:
    edit(copied / "part-2-of-3.zip", lambda about: about["versions"].update(torch="1.0.0"))
    assert "part-2-of-3.zip: was made with other versions than are here: torch 1.0.0 -> " in merge(copied)


def test_machines_that_did_not_start_from_the_same(merge: Callable[[Path], str], copied: Path) -> None:
    edit(copied / "part-2-of-3.zip", lambda about: about["shared_out"].pop())
    assert "part-2-of-3.zip and part-1-of-3.zip shared out different examples" in merge(copied)


def test_a_script_that_was_edited_since(merge: Callable[[Path], str], parts: Path, site: Path) -> None:
    (site / "examples/basics/page_1.py").write_text(HEALTHY)
    assert "its basics/page_1 is not of the script that is here" in merge(parts)


def test_a_script_that_was_added_since(merge: Callable[[Path], str], parts: Path, site: Path) -> None:
    (site / "examples/basics/new.py").write_text(HEALTHY)
    assert "basics/new is out of date here and in no part" in merge(parts)


def test_a_failing_example_leaves_no_part(tmp_path: Path) -> None:
    site = written(tmp_path / "site", FILES | {"examples/basics/page_2.py": HEALTHY + "assert x == 3\n"})
    out = tmp_path / "parts"
    out.mkdir()
    (out / "part-1-of-1.zip").write_bytes(b"of an earlier run")
    command = [sys.executable, PROGRAM, "--shard", "1/1", "--site", site, "--out", out]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "page_2.py:23: cell 2: AssertionError" in done.stderr and "so there is no part" in done.stderr
    assert not list(out.iterdir())


def test_without_git_the_commit_is_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert runpy.run_path(str(PROGRAM))["commit"](tmp_path) == "unknown"


def test_a_script_in_no_chapter(site: Path, parts: Path, merge: Callable[[Path], str]) -> None:
    (site / "examples/lost.py").write_text(HEALTHY)
    assert "examples/lost.py: the script is in no chapter" in merge(parts)


@pytest.mark.parametrize("shard", ["0/4", "5/4", "4", "a/b", "1/0"])
def test_an_impossible_shard(shard: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert runpy.run_path(str(PROGRAM))["main"](["--shard", shard]) == 2
    assert f"no such shard: {shard!r}; write which of how many, such as 2/4" in capsys.readouterr().err
