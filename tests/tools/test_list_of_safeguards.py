"""The list that ``nox -s safeguards`` works through is complete, and fits the code."""

from __future__ import annotations

import pytest

from gallery.faulty import FAULTY
from take_out_safeguards import NOT_OURS, ROOT, SAFEGUARDS, Safeguard


@pytest.mark.parametrize("safeguard", SAFEGUARDS, ids=lambda one: one.name)
def test_its_code_is_found(safeguard: Safeguard) -> None:
    assert (ROOT / safeguard.file).read_text(encoding="utf-8").count(safeguard.code) == 1


def test_every_fault_has_a_safeguard() -> None:
    noticed = {fault for safeguard in SAFEGUARDS for fault in safeguard.noticed_by}
    assert noticed | NOT_OURS == {fault.name for fault in FAULTY}
