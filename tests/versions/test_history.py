"""What changed, and between which of the versions that were measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from atlas.versions import changed_directive, history
from atlas.versions.history import Change, History
from versions.some_data import OWN, data, keep, sources

KINK = "x.abs() at x = [0]"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return sources(tmp_path)


def of(root: Path, **values: str) -> History:
    """The history where a probe has these values, by version: ``v2_14_1="[1]"``."""
    all_data = (
        data(root, name[1:].replace("_", "."), probes={"kinks": {KINK: value}}) for name, value in values.items()
    )
    keep(root, *all_data)
    return history.load(root / "docs")


def test_a_planted_change_is_shown(root: Path) -> None:
    assert not list(of(root, v99_1_0="[0]").changes())
    assert list(of(root, v99_1_0="[1]").changes()) == [Change("kinks", KINK, OWN, "99.1.0", "[0]", "[1]")]


def test_a_change_stands_between_the_versions_beside_it(root: Path) -> None:
    found = of(root, v1_13_1="[2]", v2_4_1="[2]", v99_1_0="[0]", v99_14_0="[3]")
    assert found.order() == ["1.13.1", "2.4.1", OWN, "99.1.0", "99.14.0"]
    assert [(change.before, change.since) for change in found.changes()] == [("2.4.1", OWN), ("99.1.0", "99.14.0")]


def test_a_probe_that_was_not_asked_there_has_no_value(root: Path) -> None:
    found = of(root, v99_1_0="[0]")
    assert found.values["kinks", "x.sign() at x = [0]"] == {OWN: "[0]"}
    assert found.values["kinks", KINK] == {OWN: "[0]", "99.1.0": "[0]"}


def test_what_does_not_differ_has_the_own_value(root: Path) -> None:
    """Data hold differences only: the version in between is as the build's own."""
    signature = {"count": 1, "missing": [], "gone": [], "differ": {"torch.f": ["(x, dim=0)", "(x)"]}}
    row = data(root, "1.13.1")["rows"]
    row["`one`"] = {**row["`one`"], "failed": [{"code": "1 + 1", "want": "2", "got": "3"}]}
    keep(root, data(root, "1.13.1", signatures=signature, rows=row), data(root, "2.4.1"))
    found = history.load(root / "docs")
    assert [(change.kind, change.before, change.since, change.was, change.now) for change in found.changes()] == [
        ("signatures", "1.13.1", "2.4.1", "(x)", "(x, dim=0)"),
        ("rows", "1.13.1", "2.4.1", "1 + 1\n3", "holds"),
    ]


def test_a_message_that_is_worded_otherwise(root: Path) -> None:
    ours, theirs = "RuntimeError: this is how it is said now", "RuntimeError: this is how it was said"
    one = data(root, "2.4.1")
    one["examples"]["errors/first"]["differ"] = [{"cell": 1, "was": f"{ours}\n", "is": f"{theirs}\n"}]
    keep(root, one)
    found = history.load(root / "docs")
    assert found.wordings("errors/first") == {"2.4.1": [(ours, theirs)]}
    assert [(change.kind, change.was, change.now) for change in found.changes()] == [("messages", theirs, ours)]


def test_pages_hold_where_nothing_failed(root: Path) -> None:
    fails = data(root, "2.4.1")
    fails["examples"]["errors/first"]["faults"] = [{"cell": 1, "code": "assert 1 + 1 == 2", "said": "AssertionError"}]
    keep(root, fails, data(root, "99.1.0"))
    assert history.load(root / "docs").holds_on("errors/first") == (["99.1.0"], ["2.4.1"])


@pytest.mark.parametrize(
    ("release", "said"),
    [
        ("99.1", None),
        ("99.0", None),
        ("99.2", "was not measured to change in 99.2: '[0]' on"),
        (".".join(OWN.split(".")[:2]), "was not measured to change in"),
    ],
)
def test_a_page_may_name_only_a_change_that_was_measured(root: Path, release: str, said: str | None) -> None:
    found = of(root, v99_1_0="[1]", v99_2_0="[1]")
    if said is None:
        assert changed_directive.find(found, f"kinks: {KINK}", release).now == "[1]"
    else:
        with pytest.raises(LookupError, match=said.replace("[", r"\[")):
            changed_directive.find(found, f"kinks: {KINK}", release)


def test_a_probe_that_there_is_not(root: Path) -> None:
    with pytest.raises(LookupError, match="no probe 'kinks: no'"):
        changed_directive.find(of(root, v99_1_0="[1]"), "kinks: no", "99.1")
