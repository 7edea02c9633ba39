"""A script below the examples that would become no page is named, with the way out."""

from __future__ import annotations

from pathlib import Path

import pytest

from atlas.runner import scripts
from atlas.runner.model import Site
from atlas.runner.scripts import ScriptError
from runner.faulty import HALVES, HEALTHY
from tiny.tiny_site import build, written

SETTINGS = {"examples_dirs": "../examples", "gallery_dirs": "gallery"}


def site(folder: Path, script: str) -> Site:
    written(folder, {"examples/basics/one.py": HEALTHY})
    path = folder / "examples" / script
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(HEALTHY)
    return Site(folder / "docs", folder / "running", SETTINGS)


@pytest.mark.parametrize(
    ("script", "way_out"),
    [
        ("x.py", "move it into the folder of one"),
        ("lost/page.py", "add a GALLERY_HEADER.rst there, or move it into a chapter"),
        ("basics/deep/x.py", "move it into the chapter itself"),
        ("basics/two words.py", "use letters, digits and underscores"),
        ("basics/2nd.py", "begin with a letter"),
    ],
)
def test_a_script_that_would_become_no_page(tmp_path: Path, script: str, way_out: str) -> None:
    with pytest.raises(ScriptError) as error:
        scripts.check(site(tmp_path, script))
    (said,) = str(error.value).splitlines()
    assert said.startswith(f"examples/{script}: ") and way_out in said


def test_a_script_with_two_second_halves(tmp_path: Path) -> None:
    parted = site(tmp_path, "cuda/page.py")
    script = tmp_path / "examples" / "cuda" / "page.py"
    written(tmp_path, {"examples/cuda/page.py": HALVES})
    scripts.check(parted)
    script.write_text(HALVES + "\n# %%\n# .. needs-a-gpu::\n\nprint(y)\n")
    with pytest.raises(
        ScriptError, match=r"examples/cuda/page.py: the script has several lines '# .. needs-a-gpu::'"
    ):
        scripts.check(parted)


@pytest.mark.parametrize("script", ["basics/two.py", "basics/.ipynb_checkpoints/one-checkpoint.py"])
def test_others_are_let_be(tmp_path: Path, script: str) -> None:
    scripts.check(site(tmp_path, script))


def test_a_build_names_them_all_and_goes_on_when_they_are_moved(tmp_path: Path) -> None:
    """In a folder with a space, which sphinx-gallery would warn of."""
    folder = written(tmp_path / "My Documents", {"examples/basics/one.py": HEALTHY})
    first = build(folder)
    assert first.code == 0, first.output
    page = HEALTHY.replace("A page", "B page")
    for name in ("examples/two.py", "examples/lost/page.py"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(page)
    refused = build(folder)
    assert refused.code != 0
    assert "examples/two.py: the script is in no chapter" in refused.output
    assert "examples/lost/page.py: the script is in a folder that is no chapter" in refused.output
    (folder / "examples/two.py").rename(folder / "examples/basics/two.py")
    (folder / "examples/lost/page.py").unlink()
    mended = build(folder)
    assert mended.code == 0, mended.output
    assert "starting from the sources" not in mended.output
    assert (mended.out / "gallery/basics/two.html").exists()
