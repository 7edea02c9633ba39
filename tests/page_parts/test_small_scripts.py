"""The site's scripts go out without their comments, and do the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from atlas.page_parts.assets import small_scripts
from sources import ROOT
from tiny.tiny_site import Build

SCRIPT = """\
// A comment
const words = `two  spaces // here\\n`;   /* another */
if (words.match(/a  \\/\\/ b/)) {
  alert("c  // d");
}
"""


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """A folder with a script, and its copy in another."""
    for folder in ("static", "out"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.js").write_text(SCRIPT)
    return tmp_path


def test_text_and_expressions_stay_as_they_are(copied: Path) -> None:
    small_scripts.write(copied / "static", copied / "out")
    small = (copied / "out" / "a.js").read_text()
    assert small == 'const words=`two  spaces // here\\n`;if(words.match(/a  \\/\\/ b/)){alert("c  // d");}\n'
    assert (copied / "static" / "a.js").read_text() == SCRIPT


def test_one_that_is_small_already_keeps_its_date(copied: Path) -> None:
    small_scripts.write(copied / "static", copied / "out")
    first = (copied / "out" / "a.js").stat().st_mtime_ns
    small_scripts.write(copied / "static", copied / "out")
    assert (copied / "out" / "a.js").stat().st_mtime_ns == first


def test_all_scripts_of_a_site_are_small(good: Build) -> None:
    static = ROOT / "conf" / "static"
    names = [path.name for path in static.glob("*.js")]
    assert len(names) > 10
    made = [good.out / "_static" / path.stem for path in static.glob("*.js.jinja")]
    assert made and all("\n  //" not in path.read_text() for path in made)
    for name in names:
        small, whole = (folder / name for folder in (good.out / "_static", ROOT / "conf" / "static"))
        assert small.stat().st_size < 0.9 * whole.stat().st_size and "\n  //" not in small.read_text(), name
