"""A build that is refused says why and nothing else: no traceback, no list of versions, no plea to report a bug to Sphinx."""

from __future__ import annotations

from pathlib import Path

from gallery.faulty import HALVES, HEALTHY
from tiny.tiny_site import build, written

FILES = {"examples/cuda/needs_a_gpu.py": HALVES, "docs/one.md": "# One\n\nText.\n"}


def test_a_release_without_its_recordings(tmp_path: Path) -> None:
    refused = build(written(tmp_path, FILES), options=["-D", "atlas_release=1"])
    message = "a release needs every recording; run 'nox -s record' on a machine with a GPU:\n"
    message += "  cuda/needs_a_gpu: it has not been recorded yet\n"
    assert refused.is_refused_with(message), refused.output


def test_a_script_that_no_page_can_be_made_of(tmp_path: Path) -> None:
    refused = build(written(tmp_path, FILES | {"examples/lost.py": HEALTHY.replace("A page", "L page")}))
    assert refused.is_refused_with("examples/lost.py: the script is in no chapter"), refused.output
