"""The comparison of two builds finds what differs, and nothing in a box that says that it varies."""

from __future__ import annotations

from pathlib import Path

import pytest

from compare_builds import differences, main

VARIES = '<div class="varies no-search"><p>{seconds} s</p><svg class="plot">{seconds}</svg></div>'
CHAPTER = (
    '<div class="picture plot varies"><svg>{seconds}</svg></div><p>Card</p>\n'
    '<div class="picture plot"><svg>{still}</svg></div>'
)
PAGE = "<h1>Title</h1>\n<pre>{output}</pre>\n{box}"
STEADY = '<h1>Steady</h1><svg class="graph"></svg>'
WHOLE = """# Site

---

Source: https://site.example/page.html

# Title

{seconds} s

---

A line of hyphens begins no page by itself.

---

Source: https://site.example/steady.html

# {steady}
"""


def site(
    folder: Path,
    output: str = "6.0",
    seconds: str = "1",
    style: str = "p {}",
    steady: str = "Steady",
    still: str = "1",
) -> Path:
    folder.mkdir()
    (folder / "page.html").write_text(PAGE.format(output=output, box=VARIES.format(seconds=seconds)))
    (folder / "chapter.html").write_text(CHAPTER.format(seconds=seconds, still=still))
    (folder / "chapter.html.md").write_text(f"# {steady}\n")
    (folder / "page.html.md").write_text(f"# Title\n\n{output}\n\n{seconds} s\n")
    (folder / "steady.html").write_text(STEADY)
    (folder / "steady.html.md").write_text(f"# {steady}\n")
    (folder / "llms-full.txt").write_text(WHOLE.format(seconds=seconds, steady=steady))
    (folder / "style.css").write_text(style)
    return folder


def test_two_equal_builds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(str(site(tmp_path / "a")), str(site(tmp_path / "b"))) == 0
    assert "the same" in capsys.readouterr().out


def test_what_varies_is_left_out(tmp_path: Path) -> None:
    assert not differences(site(tmp_path / "a"), site(tmp_path / "b", seconds="2"))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"output": "7.0"}, "<pre>7.0</pre>"),
        ({"style": "p { }"}, "style.css: 4 and 5 bytes"),
        ({"steady": "Unsteady"}, "steady.html.md: 9 and 11 bytes"),
        ({"steady": "Unsteady"}, "chapter.html.md: 9 and 11 bytes"),
        ({"steady": "Unsteady"}, "llms-full.txt:\n    @@ -5 +5 @@\n    -# Steady\n    +# Unsteady"),
        ({"still": "2"}, '<div class="picture plot"><svg>2</svg></div>'),
    ],
    ids=[
        "an output",
        "another file",
        "the Markdown of a page in which nothing varies",
        "the Markdown of a page with a picture that varies",
        "that Markdown, in the file of all pages",
        "a picture that does not vary",
    ],
)
def test_any_other_difference_is_found(
    tmp_path: Path, change: dict[str, str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(str(site(tmp_path / "a")), str(site(tmp_path / "b", **change))) == 1
    assert said.replace("<pre>", "").replace("</pre>", "") in capsys.readouterr().out


def test_a_file_of_one_build_alone_is_found(tmp_path: Path) -> None:
    first, second = site(tmp_path / "a"), site(tmp_path / "b")
    (first / "left.html").write_text("")
    assert differences(first, second) == ["only in a: left.html"]
