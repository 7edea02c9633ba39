"""The page of what changed between versions: it shows what was measured, of as many versions, and nothing of a machine."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from bs4 import BeautifulSoup

from atlas.versions import history, measured
from atlas.versions.explained import explanations
from atlas.versions.history import History
from atlas.versions.measuring.environment import parts
from markup import read, text_of
from sources import ROOT

MEASURED = measured.load(ROOT)


@pytest.fixture(scope="module")
def known(site: Path) -> History:
    """What is known after the build: it has asked its own PyTorch."""
    return history.load(ROOT / "docs")


@pytest.fixture(scope="module")
def versions_page(site: Path) -> BeautifulSoup:
    return read(site / "reference" / "versions.html")


def test_at_least_three_other_versions_were_measured() -> None:
    assert len(MEASURED) >= 3


@pytest.mark.parametrize("version", MEASURED, ids=lambda version: version.torch)
def test_data_hold_nothing_of_a_machine(version: measured.Measured) -> None:
    text = version.file.read_text(encoding="utf-8")
    assert not re.findall(r"/(?:root|home|tmp|work|usr)/\S*|0x[0-9a-f]{8,}", text)


def test_each_change_has_its_row(versions_page: BeautifulSoup, known: History) -> None:
    rows = versions_page.select(".long-table.versions tbody tr")
    changes = list(known.changes())
    assert len(rows) == len(changes) > 100
    between = {text_of(row.select("td")[0]) for row in rows}
    assert between == {f"{change.before} → {change.since}" for change in changes}


def test_each_version_is_named_with_what_holds(versions_page: BeautifulSoup) -> None:
    said = text_of(versions_page.select_one("#which-pages-hold ul"))
    for version in MEASURED:
        assert re.search(rf"PyTorch {re.escape(version.torch)}: \d+ of \d+ examples hold", said)


def test_every_example_holds_on_newer_versions(known: History) -> None:
    """Or has no data of its code as it is now."""
    newer = [version for version in known.versions if parts(version.torch) > parts(known.own)]
    broken = {
        version.torch: [name for name, found in known.current[version.torch]["examples"].items() if found["faults"]]
        for version in newer
    }
    assert newer and not any(broken.values()), broken


def test_what_is_explained_has_changed(known: History) -> None:
    changed = {(change.kind, change.what) for change in known.changes()}
    assert not [key for key in explanations() if key not in changed]


def test_links_lead_to_pytorch() -> None:
    links = [explanation.link for explanation in explanations().values() if explanation.link]
    assert links and all(
        link.startswith(("https://github.com/pytorch/", "https://docs.pytorch.org/")) for link in links
    )


def test_examples_say_where_they_hold(site: Path, known: History) -> None:
    holds, _fails = known.holds_on("graphs/first_graph")
    said = text_of(read(site / "gallery/graphs/first_graph.html").select_one(".claims"))
    assert holds and f"They hold on PyTorch {', '.join(holds[:-1])}" in said


def test_the_clamp_at_its_bound_is_told_with_both_values(site: Path) -> None:
    page = read(site / "gallery/differentiation/points_without_a_derivative.html")
    told = [text_of(box) for box in page.select(".torch-changed")]
    (clamp,) = (text for text in told if "x.clamp(0, 1)" in text)
    assert "[1, 1]" in clamp and "[0, 0]" in clamp
