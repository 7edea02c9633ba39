"""Data of other sources are named, and not shown; a file that cannot be read is refused with the way out."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from atlas.versions import history, measured
from atlas.versions import sources as versions_sources
from atlas.versions.measuring import then_and_now
from versions.some_data import EXAMPLE, OWN, data, keep, sources

CELL = {"name": "a", "column": "second", "was": "1", "is": "2"}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return sources(tmp_path)


def test_what_is_written_is_read(root: Path) -> None:
    file = keep(root, data(root, "2.14.1")) / "2.14.1.json"
    one = measured.read(file)
    assert measured.read(measured.write(root / "other", one)) == measured.Measured(
        **{
            **{name: getattr(one, name) for name in measured.Measured.__slots__},
            "file": root / "other" / "2.14.1.json",
        }
    )
    assert not measured.stale(root, one, OWN)


def test_an_example_that_changed_is_stale_and_named(root: Path) -> None:
    keep(root, data(root, "2.14.1"))
    (root / "examples/errors/first.py").write_text(EXAMPLE.replace("1 + 1 == 2", "2 + 2 == 4"))
    found = history.load(root / "docs")
    assert found.stale == {"2.14.1": ["errors/first: its code has changed"]}
    assert found.holds_on("errors/first") == ([], [])


def test_a_row_that_changed_is_stale_and_named(root: Path) -> None:
    fails = data(root, "2.14.1")
    fails["rows"]["`one`"]["failed"] = [{"code": "1 + 1", "want": "2", "got": "3"}]
    keep(root, fails)
    assert [change.what for change in history.load(root / "docs").changes()] == ["`one`"]
    page = root / "docs/then-and-now.md"
    page.write_text(page.read_text().replace("1 + 1", "1 + 1 + 0"))
    found = history.load(root / "docs")
    assert found.stale == {"2.14.1": ["then and now, `one`: its check has changed"]}


def test_data_against_another_version_are_stale_as_a_whole(root: Path) -> None:
    old = data(root, "2.14.1")
    old["of"]["against"] = "2.0.0"
    keep(root, old)
    found = history.load(root / "docs")
    assert found.stale == {"2.14.1": [f"all: compared with torch 2.0.0, and this build has {OWN}"]}
    assert not found.versions and not list(found.changes())


def test_a_build_names_what_it_leaves_out(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keep(root, data(root, "2.14.1"), data(root, "2.4.1"))
    (root / "examples/errors/first.py").write_text(EXAMPLE.replace("1 + 1 == 2", "2 + 2 == 4"))
    said: list[str] = []
    monkeypatch.setattr(versions_sources.logger, "info", lambda text, *of: said.append(text % of))
    versions_sources._tell(SimpleNamespace(srcdir=str(root / "docs")))
    file = measured.FOLDER / "2.4.1.json"
    assert len(said) == 2 and said[0] == (
        f"versions: {file}: not shown, until `nox -s versions -- 2.4.1` measures again: errors/first: its code has changed"
    )


def test_what_is_shown_changes_with_what_is_current_and_with_nothing_else(root: Path) -> None:
    keep(root, data(root, "2.14.1"), data(root, "2.4.1"))
    example, page = root / "examples/errors/first.py", root / then_and_now.PAGE
    shown: list[str] = []

    def build() -> None:
        versions_sources._tell(SimpleNamespace(srcdir=str(root / "docs")))
        shown.append((root / "docs" / versions_sources.SHOWN).read_text())

    build()
    for number in (3, 4):  # the second edit changes nothing: the example is no longer current anyway
        example.write_text(EXAMPLE.replace("1 + 1", f"{number} - {number - 2}"))
        build()
    example.unlink()
    build()
    page.write_text(page.read_text().replace("1 + 1", "1 + 1 + 0"))
    build()
    assert shown[1] == shown[2] and len(set(shown)) == 4
    assert all(len(said.splitlines()) == 2 for said in shown)


def test_a_build_refuses_a_file_that_it_cannot_read(root: Path) -> None:
    (keep(root) / "2.4.1.json").write_text("{")
    with pytest.raises(SystemExit, match=r"2\.4\.1\.json: cannot be read"):
        versions_sources._tell(SimpleNamespace(srcdir=str(root / "docs")))


@pytest.mark.parametrize(
    ("kind", "changed"),
    [
        ("probes", {"asked_by": "old", "probes": {"kinks": {"x.abs() at x = [0]": "[1]"}}}),
        ("operators", {"operators": {"code": "old", "count": 1, "missing": [], "differ": [CELL]}}),
        (
            "signatures",
            {"signatures": {"count": 1, "missing": [], "gone": [], "differ": {"torch.f": ["(other)", "(y)"]}}},
        ),
    ],
)
def test_what_was_asked_in_another_way_is_stale(root: Path, kind: str, changed: dict) -> None:
    keep(root, data(root, "2.14.1", **changed))
    found = history.load(root / "docs")
    assert [why.split(":")[0] for why in found.stale["2.14.1"]] == [f"all {kind}"]
    assert not list(found.changes())


@pytest.mark.parametrize("broken", ["", "[]", "{}", '{"of": {"torch": "2.14.1"}}'])
def test_a_broken_file_is_named_with_the_way_out(root: Path, broken: str) -> None:
    file = keep(root) / "2.14.1.json"
    file.write_text(broken)
    with pytest.raises(measured.DataError, match=r"2\.14\.1\.json: cannot be read.* nox -s versions -- 2\.14\.1"):
        measured.load(root)


@pytest.mark.parametrize("of", [{"format": 0}, {"torch": "2.14.0"}])
def test_a_file_of_another_format_or_version_is_refused(root: Path, of: dict) -> None:
    one = data(root, "2.14.1")
    file = keep(root) / "2.14.1.json"
    file.write_text(json.dumps({**one, "of": {**one["of"], **of}}))
    with pytest.raises(measured.DataError, match=r"of another format, or not of torch 2\.14\.1"):
        measured.load(root)
