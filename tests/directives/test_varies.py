"""What a box holds may vary from build to build; the box itself may not come and go, nor take in what stands beside it."""

from __future__ import annotations

from pathlib import Path

import pytest

from compare_builds import differences

BOX = '<div class="varies"><p>{}<br>s</p></div>'


def built(folder: Path, body: str) -> Path:
    folder.mkdir()
    (folder / "page.html").write_text(f"<h1>Title</h1>\n{body}\n<p>Text</p>")
    return folder


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        (BOX.format(1), BOX.format(2), True),
        (BOX.format(1), "", False),
        (BOX.format(1), BOX.format(1) + BOX.format(2), False),
        (f"<p>a</p>{BOX.format(1)}", f"{BOX.format(1)}<p>a</p>", False),
        (BOX.format(1), BOX.format("<b>1</b>") + "<b>2</b>", False),
    ],
    ids=["another content", "no box", "a second box", "another place", "something after it"],
)
def test_a_box(tmp_path: Path, first: str, second: str, same: bool) -> None:
    assert (not differences(built(tmp_path / "first", first), built(tmp_path / "second", second))) is same
