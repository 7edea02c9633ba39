"""Print how many doctests ``nox -s doctest`` ran, from the report that Sphinx's doctest builder writes.

A run without a single test is a failure: then something keeps the examples from being found.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path


def count(report: str) -> tuple[int, int]:
    """The numbers of examples run and failed, from the summary at the end of the report.

    :raises ValueError: if the report has no summary.
    """
    found = re.search(r"^Doctest summary\n=+\n\s*(\d+) tests?\n\s*(\d+) failures? in tests", report, re.MULTILINE)
    if not found:
        raise ValueError("no summary of Sphinx's doctest builder in this report")
    return int(found[1]), int(found[2])


def main(path: str) -> int:
    ran, failed = count(Path(path).read_text(encoding="utf-8"))
    print(f"docs/: {ran - failed} passed, {failed} failed")
    return 1 if failed or not ran else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
