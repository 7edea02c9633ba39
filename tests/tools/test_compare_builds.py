"""The comparison of two builds finds what differs, and nothing in a box that says that it varies."""

from __future__ import annotations

from pathlib import Path

import pytest

from compare_builds import differences, main

VARIES = '<div class="varies no-search"><p>{seconds} s</p><svg id="sphx_glr_page_001">{seconds}</svg></div>'
PAGE = "<h1>Title</h1>\n<pre>{output}</pre>\n{box}"


def site(
    folder: Path,
    output: str = "6.0",
    seconds: str = "1",
    image: bytes = b"1",
    style: str = "p {}",
    steady: str = "Steady",
) -> Path:
    (folder / "_images").mkdir(parents=True)
    (folder / "page.html").write_text(PAGE.format(output=output, box=VARIES.format(seconds=seconds)))
    (folder / "_images/sphx_glr_page_thumb.svg").write_bytes(image)
    (folder / "_images/sphx_glr_other_thumb.svg").write_bytes(b"still")
    (folder / "page.html.md").write_text(f"# Title\n\n{output}\n\n{seconds} s\n")
    (folder / "steady.html").write_text("<h1>Steady</h1>")
    (folder / "steady.html.md").write_text(f"# {steady}\n")
    (folder / "style.css").write_text(style)
    return folder


def test_two_equal_builds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(str(site(tmp_path / "a")), str(site(tmp_path / "b"))) == 0
    assert "the same" in capsys.readouterr().out


def test_what_varies_is_left_out(tmp_path: Path) -> None:
    assert not differences(site(tmp_path / "a"), site(tmp_path / "b", seconds="2", image=b"2"))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"output": "7.0"}, "<pre>7.0</pre>"),
        ({"style": "p { }"}, "style.css: 4 and 5 bytes"),
        ({"steady": "Unsteady"}, "steady.html.md: 9 and 11 bytes"),
    ],
    ids=["an output", "another file", "the Markdown of a page in which nothing varies"],
)
def test_any_other_difference_is_found(
    tmp_path: Path, change: dict[str, str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(str(site(tmp_path / "a")), str(site(tmp_path / "b", **change))) == 1
    assert said.replace("<pre>", "").replace("</pre>", "") in capsys.readouterr().out


def test_another_thumbnail_is_compared(tmp_path: Path) -> None:
    first, second = site(tmp_path / "a"), site(tmp_path / "b")
    (second / "_images/sphx_glr_other_thumb.svg").write_bytes(b"moved")
    assert differences(first, second) == ["_images/sphx_glr_other_thumb.svg: 5 and 5 bytes"]


def test_a_file_of_one_build_alone_is_found(tmp_path: Path) -> None:
    first, second = site(tmp_path / "a"), site(tmp_path / "b")
    (first / "left.html").write_text("")
    assert differences(first, second) == ["only in a: left.html"]
