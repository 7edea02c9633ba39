"""Each page of this site has a fault, and the build must fail and name it by file and line."""

from __future__ import annotations

import pytest

from tiny.broken import Fault
from tiny.broken_docs import DOCS, PLOT
from tiny.broken_examples import EXAMPLES
from tiny.tiny_site import Build, build, written

FAULTS = [*EXAMPLES, *DOCS]


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Build:
    return build(
        written(
            tmp_path_factory.mktemp("broken"), {"docs/plot.svg": PLOT, **{fault.file: fault.text for fault in FAULTS}}
        )
    )


def test_the_build_fails(broken: Build) -> None:
    assert broken.code != 0


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.file)
def test_the_fault_is_named(broken: Build, fault: Fault) -> None:
    assert fault.is_reported(broken.output), broken.about(fault.file)
