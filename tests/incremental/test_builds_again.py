"""What a second build does: the same bytes from scratch, and nothing at all where nothing has changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tiny.tiny_site import Build, build


def _files(out: Path) -> dict[str, bytes]:
    found = {str(path.relative_to(out)): path for path in sorted(out.rglob("*")) if path.is_file()}
    return {name: path.read_bytes() for name, path in found.items()}


def _runs(site: Path) -> int:
    """How often graph_of_a_product.py has run: it adds a line to a file."""
    return len((site / "runs.txt").read_text(encoding="utf-8").splitlines())


@pytest.fixture(scope="module")
def doctest(good: Build) -> Build:
    """The doctest builder, with what the HTML builder has left."""
    assert _runs(good.site) == 1
    return build(good.site, "doctest")


def test_two_builds_from_scratch_are_the_same(twice: list[Build]) -> None:
    """An address, a time, or the order of a set would differ."""
    first, second = (_files(done.out) for done in twice)
    assert first.keys() == second.keys()
    assert not [name for name in first if first[name] != second[name]]


def test_doctests_run_no_example_again(doctest: Build) -> None:
    """Every builder would run the gallery again, did it not find what another has left."""
    assert doctest.code == 0, doctest.output
    assert _runs(doctest.site) == 1


def test_doctests_are_run(doctest: Build) -> None:
    """Both doctests of the guide are run, the one inside a note too."""
    assert "2 tests\n" in doctest.output and "0 failures in tests" in doctest.output, doctest.output


def test_a_third_build_runs_and_writes_nothing(good: Build, doctest: Build) -> None:
    before = good.times()
    again = build(good.site)
    assert again.code == 0, again.output
    assert _runs(good.site) == 1
    assert before == good.times()
