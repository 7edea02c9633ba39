"""The number of doctests is that of the builder's report, and a run without one is a failure."""

from __future__ import annotations

from pathlib import Path

import pytest

from count_doctests import count, main
from tiny.tiny_site import build, written

REPORT = """Results of doctest builder run
==============================

Document: guide
---------------
1 item passed all tests:
   {ran} tests in default
{ran} tests in 1 item.

Doctest summary
===============
    {ran} test{plural}
    {failed} failure{many} in tests
    0 failures in setup code
    0 failures in cleanup code
"""


def report(folder: Path, ran: int, failed: int = 0) -> Path:
    path = folder / "output.txt"
    plural, many = ("" if number == 1 else "s" for number in (ran, failed))
    path.write_text(REPORT.format(ran=ran, failed=failed, plural=plural, many=many), encoding="utf-8")
    return path


@pytest.mark.parametrize(("ran", "failed", "status"), [(1, 0, 0), (12, 0, 0), (12, 1, 1), (12, 2, 1), (0, 0, 1)])
def test_the_numbers_and_the_status(
    tmp_path: Path, ran: int, failed: int, status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(str(report(tmp_path, ran, failed))) == status
    assert capsys.readouterr().out == f"docs/: {ran - failed} passed, {failed} failed\n"


def test_a_report_without_a_summary_is_an_error() -> None:
    with pytest.raises(ValueError, match="no summary"):
        count("Results of doctest builder run\n")


def test_the_report_that_the_builder_writes(tmp_path: Path) -> None:
    """Its form is Sphinx's, and may change with it."""
    session = "```{doctest}\n>>> 1 + 1\n2\n>>> 2 + 2\n5\n```\n"
    done = build(written(tmp_path, {"docs/guide.md": f"# Guide\n\n{session}"}), "doctest")
    assert count((done.out / "output.txt").read_text(encoding="utf-8")) == (2, 1)
