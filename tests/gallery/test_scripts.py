"""A script below the examples that would become no page is named, with the way out."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from atlas.gallery.process import Limits
from atlas.gallery.run import make_job
from atlas.gallery.scripts import Page, ScriptError, check_scripts
from gallery.faulty import HALVES, HEALTHY
from tiny.tiny_site import written


def write_script(folder: Path, script: str) -> Path:
    written(folder, {"examples/basics/one.py": HEALTHY})
    path = folder / "examples" / script
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(HEALTHY, encoding="utf-8")
    return folder / "examples"


@pytest.mark.parametrize(
    ("script", "way_out"),
    [
        ("x.py", "move it into the folder of one"),
        ("lost/page.py", "move it into the folder of one, which has a GALLERY_HEADER.rst"),
        ("basics/deep/x.py", "move it into the folder of one"),
        ("basics/two words.py", "use letters from a to z, digits and underscores"),
        ("basics/2nd.py", "begin with a letter"),
        ("basics/größe.py", "use letters from a to z"),
    ],
)
def test_a_script_that_would_become_no_page(tmp_path: Path, script: str, way_out: str) -> None:
    if not script.isascii() and sys.getfilesystemencoding() == "ascii":
        pytest.skip("no such file can be made here")
    with pytest.raises(ScriptError) as error:
        check_scripts(write_script(tmp_path, script))
    assert str(error.value).startswith(f"examples/{script}: ") and way_out in str(error.value)


def test_the_head_of_a_chapter_in_another_encoding(tmp_path: Path) -> None:
    written(tmp_path, {"examples/basics/one.py": HEALTHY, "examples/basics/GALLERY_HEADER.rst": "Gr\udcf6\n---\n"})
    with pytest.raises(ScriptError, match=r"/examples/basics/GALLERY_HEADER.rst:1: .* save it as UTF-8$"):
        check_scripts(tmp_path / "examples")


def test_a_script_with_two_second_halves(tmp_path: Path) -> None:
    written(tmp_path, {"examples/cuda/page.py": HALVES})
    check_scripts(tmp_path / "examples")
    written(tmp_path, {"examples/cuda/page.py": f"{HALVES}\n# %%\n# .. needs-a-gpu::\n\nprint(y)\n"})
    with pytest.raises(ScriptError, match=r"cuda/page.py: the script has several lines '# .. needs-a-gpu::'"):
        check_scripts(tmp_path / "examples")


@pytest.mark.parametrize(("asked", "seconds"), [("120", 120), ("90.5", 90.5), ("7", 60), ("abc", 60), ("-5", 60)])
def test_a_script_gets_the_time_that_it_asks_for_if_that_is_more(tmp_path: Path, asked: str, seconds: float) -> None:
    script = tmp_path / "page.py"
    script.write_text(f"{HEALTHY}# sphinx_gallery_time_limit = {asked}\n", encoding="utf-8")
    job = make_job(Page(script, tmp_path), tmp_path, Limits(output=3))
    assert job.limits == Limits(seconds=seconds, output=3)
