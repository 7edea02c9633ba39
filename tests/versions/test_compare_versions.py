"""``nox -s versions``: what it measures, what it keeps, and how it ends where it cannot."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

import compare_versions
from atlas.operators import report
from atlas.versions import measured
from atlas.versions.measuring import environment, examples, then_and_now
from atlas.versions.probes import all as probes
from atlas.versions.probes.ask import Probe
from versions.some_data import EXAMPLE, OWN, sources

OTHER = "99.1.0"


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, dict[str, Any]]]:
    """What was measured: the version, and what was asked of it. The other version fails in the example."""
    seen: list[tuple[str, dict[str, Any]]] = []
    root = sources(tmp_path)
    monkeypatch.setattr(compare_versions, "ROOT", root)

    def python(home: Path, version: str, requirements: Path) -> Path:
        if version == "0.0.1":
            raise environment.InstallError("pip finds no torch 0.0.1")
        return Path(sys.executable) if version == OWN else Path(version)

    def measure(python: Path, plan: dict[str, Any]) -> dict[str, Any]:
        torch = OWN if python == Path(sys.executable) else str(python)
        seen.append((torch, plan))
        faults = [{"cell": 1, "code": "assert 1", "said": "AssertionError"}] if torch != OWN else []
        outputs = [{"cell": 0, "text": f"torch {torch}", "varies": False}]
        codes = {row.title: row.code for row in then_and_now.rows(root / then_and_now.PAGE)}
        asked_of_all = {
            "probes": {"kinks": {"x.abs() at x = [0]": "[0]"}},
            "signatures": {"torch.f": f"(x={torch!r})"},
        }
        scripts = examples.scripts(root / "examples")
        return {
            **{"torch": torch, "python": "3.11.7"},
            "examples": {
                name: {"code": examples.code_hash(scripts[name]), "faults": faults, "outputs": outputs}
                for name in plan["examples"]
            },
            "rows": {title: {"code": codes[title], "failed": []} for title in plan["rows"]},
            **({"operators": {"rows": [], "not_probed": {}, **report.identity()}} if plan["operators"] else {}),
            **(asked_of_all if plan["probes"] else {}),
        }

    monkeypatch.setattr(probes, "probes", lambda: [Probe("kinks", "x.abs()", ((0.0,),))])
    monkeypatch.setattr(environment, "python", python)
    monkeypatch.setattr(
        compare_versions, "_version", lambda python: OWN if python == Path(sys.executable) else str(python)
    )
    monkeypatch.setattr(compare_versions, "_measure", measure)
    return seen


def kept(root: Path, torch: str = OTHER) -> measured.Measured:
    return measured.read(root / measured.FOLDER / f"{torch}.json")


def test_what_differs_is_kept_and_told(asked: list, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert compare_versions.main([OTHER, "--report", str(tmp_path / "report.md")]) == 0
    assert [torch for torch, _plan in asked] == [OWN, OTHER]
    found = kept(tmp_path)
    assert found.examples["errors/first"]["differ"] == [{"cell": 0, "was": f"torch {OWN}", "is": f"torch {OTHER}"}]
    assert found.signatures["differ"] == {"torch.f": [f"(x={OWN!r})", f"(x={OTHER!r})"]}
    assert not measured.stale(tmp_path, found, OWN)
    told = (tmp_path / "report.md").read_text()
    assert "0 of 1 examples hold, 2 of 2 rows" in told and "**errors/first**, cell 1: `assert 1`" in told
    assert told.strip() in capsys.readouterr().out


def test_the_own_version_is_measured_once_for_all(asked: list) -> None:
    assert compare_versions.main([OTHER, "99.2.0"]) == 0
    assert [torch for torch, _plan in asked] == [OWN, OTHER, OWN, "99.2.0"]
    assert asked[2][1] == {"examples": [], "rows": [], "operators": False, "probes": False}


def test_only_what_changed_is_measured_again(asked: list, tmp_path: Path) -> None:
    compare_versions.main([OTHER])
    (tmp_path / "examples/errors/second.py").write_text(EXAMPLE.replace("First", "Second"))
    (tmp_path / "examples/errors/first.py").rename(tmp_path / "examples/errors/third.py")
    (tmp_path / "examples/errors/second.py").rename(tmp_path / "examples/errors/first.py")
    asked.clear()
    compare_versions.main([OTHER])
    assert [plan["examples"] for _torch, plan in asked] == [["errors/third"]] * 2
    assert [plan["rows"] for _torch, plan in asked] == [[]] * 2
    assert not any(plan["operators"] or plan["probes"] for _torch, plan in asked)
    assert kept(tmp_path).signatures["differ"] and kept(tmp_path).probes
    assert set(kept(tmp_path).examples) == {"errors/first", "errors/third"}
    asked.clear()
    compare_versions.main([OTHER, "--all"])
    assert [plan["examples"] for _torch, plan in asked] == [["errors/first", "errors/third"]] * 2


@pytest.mark.parametrize("what", ["operators", "probes", "the way they are asked"])
def test_what_is_probed_in_another_way_is_measured_again(
    asked: list, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    compare_versions.main([OTHER])
    if what == "operators":
        monkeypatch.setattr(report, "identity", lambda: {"torch": OWN, "code": "new"})
    elif what == "probes":
        monkeypatch.setattr(probes, "probes", lambda: [Probe("kinks", "x.sign()", ((0.0,),))])
    else:
        monkeypatch.setattr(probes, "identity", lambda: {"asked_by": "new"})
    asked.clear()
    compare_versions.main([OTHER])
    assert asked[-1][1] == {
        "examples": [],
        "rows": [],
        "operators": what == "operators",
        "probes": what != "operators",
    }


def test_an_example_that_is_gone_is_forgotten(asked: list, tmp_path: Path) -> None:
    compare_versions.main([OTHER])
    (tmp_path / "examples/errors/first.py").unlink()
    compare_versions.main([OTHER])
    assert not kept(tmp_path).examples


def test_elsewhere_if_asked(asked: list, tmp_path: Path) -> None:
    assert compare_versions.main([OTHER, "--out", str(tmp_path / "out")]) == 0
    assert (tmp_path / "out" / f"{OTHER}.json").exists() and not (tmp_path / measured.FOLDER).exists()


def test_the_own_version_is_nothing_to_compare(asked: list, capsys: pytest.CaptureFixture[str]) -> None:
    assert compare_versions.main([OWN]) == 0
    assert not asked and "there is nothing to compare" in capsys.readouterr().out


def test_a_fault_under_the_own_version_comes_first(
    asked: list, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    measure = compare_versions._measure
    faulty = {"code": "c", "outputs": [], "faults": [{"cell": 0, "code": "", "said": "no"}]}
    monkeypatch.setattr(
        compare_versions, "_measure", lambda *of: {**measure(*of), "examples": {"errors/first": faulty}}
    )
    assert compare_versions.main([OTHER]) == 2
    assert f"under the site's own torch {OWN} these fail: errors/first" in capsys.readouterr().err
    assert not (tmp_path / measured.FOLDER).exists()


@pytest.mark.parametrize(
    ("version", "said"), [("0.0.1", "pip finds no torch 0.0.1"), (OTHER, "cannot be read as measurements")]
)
def test_what_cannot_be_measured_is_said(
    asked: list, capsys: pytest.CaptureFixture[str], tmp_path: Path, version: str, said: str
) -> None:
    (tmp_path / measured.FOLDER).mkdir(parents=True)
    (tmp_path / measured.FOLDER / f"{OTHER}.json").write_text(json.dumps({}))
    assert compare_versions.main([version]) == 2
    assert said in capsys.readouterr().err
    assert (tmp_path / measured.FOLDER / f"{OTHER}.json").read_text() == "{}"
