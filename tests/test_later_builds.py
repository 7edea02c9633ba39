"""What a second build does: the same bytes from scratch, nothing where nothing has changed, all pages where they must be."""

from __future__ import annotations

import re
from importlib.metadata import version
from pathlib import Path

import pytest

import atlas
from sources import ROOT
from tiny.fixtures import GOOD
from tiny.tiny_site import Build, build, copy_of, written


def read_files(out: Path) -> dict[str, bytes]:
    return {str(path.relative_to(out)): path.read_bytes() for path in out.rglob("*") if path.is_file()}


def test_two_builds_from_scratch_are_the_same(good: Build, tmp_path: Path) -> None:
    """An address, a time, or the order of a set would differ.

    The second is built in a new process, which has another hash seed, where nothing is imported before its time, and several
    processes read and write it.
    """
    again = build(copy_of(GOOD, tmp_path / "a-longer-name"), options=["--jobs=3"], real=True)
    first, second = (read_files(done.out) for done in (good, again))
    assert first.keys() == second.keys() and not [name for name in first if first[name] != second[name]]


def test_neither_doctests_nor_a_third_build_run_an_example_again(good: Build) -> None:
    before = good.times()
    doctest, again = build(good.site, "doctest"), build(good.site)
    assert (doctest.code, again.code) == (0, 0), doctest.output + again.output
    assert "2 tests\n" in doctest.output and "0 failures in tests" in doctest.output  # one of them is inside a note
    assert len((good.site / "runs.txt").read_text(encoding="utf-8").splitlines()) == 1
    assert before == good.times()


def test_one_example_is_run_alone(tmp_path: Path) -> None:
    example = '"""\nTitle {0}\n=======\n\nText.\n"""\n\nprint("the output", "of {0}")\n'
    site = written(tmp_path, {f"examples/basics/{name}.py": example.format(name) for name in ("a", "b")})
    for options, shown in ((["-D", "atlas_only=basics/b"], "b"), ([], "ab")):
        done = build(site, options=options)
        assert done.code == 0, done.output
        pages = {name: (done.out / f"gallery/basics/{name}.html").read_text(encoding="utf-8") for name in "ab"}
        assert "".join(name for name, page in pages.items() if f"the output of {name}" in page) == shown
    assert build(site, options=["-D", "atlas_only=basics/c"]).is_refused_with("there is no examples/basics/c.py")


def test_a_changed_asset_has_another_checksum_on_each_page(tmp_path: Path) -> None:
    """A browser keeps what has a checksum in its address for a year, as conf/nginx.conf tells it to."""
    conf, pages = copy_of(ROOT / "conf", tmp_path / "conf"), []
    copy_of(ROOT / "docs/_static", tmp_path / "docs/_static")  # a folder of it is among the static ones
    site = written(tmp_path, {"docs/other.md": "# Other\n\nText.\n", "examples/pages.toml": ""})
    for _ in range(2):
        done = build(site, conf=conf)
        assert done.code == 0, done.output
        pages.append((done.out / "other.html").read_text(encoding="utf-8"))
        for name in ("atlas.css", "scrollable.js"):
            with (conf / "static" / name).open("a", encoding="utf-8") as file:
                file.write("\n/**/ .changed { color: red }\n" if name.endswith("css") else "\nvar changed\n")
    for linked in ("site.css", "scrollable.js"):
        assert len({re.search(rf"_static/{linked}\?v=\w+", page)[0] for page in pages}) == 2


@pytest.mark.parametrize("package", ["pandas", "docutils", "torch", "pypandoc-binary"])
def test_another_version_of_what_shapes_a_page_has_all_read_again(
    package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = atlas.code_version()
    monkeypatch.setattr(atlas, "version", lambda name: "0.0.1" if name == package else version(name))
    assert atlas.code_version() != before
