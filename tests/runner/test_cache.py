"""Outputs are published whole or not at all, and trusted only with a receipt that fits."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from atlas.runner.model import Page
from atlas.runner.outputs import cache
from atlas.runner.processes.faults import Fault

NOW = {"the script": "1", "torch": "2.13.0"}


@pytest.fixture
def page(tmp_path: Path) -> Page:
    script = tmp_path / "examples" / "graphs" / "first.py"
    script.parent.mkdir(parents=True)
    script.write_text('"""\nTitle\n=====\n"""\n')
    return Page(script, tmp_path / "docs" / "gallery" / "graphs")


def made(tmp_path: Path, **files: str) -> Path:
    folder = tmp_path / "made"
    for name, text in files.items():
        path = folder / name.replace("__", "/").replace("_dot_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def test_without_outputs_a_page_is_stale(page: Page) -> None:
    assert cache.stale(page, NOW) == ["it has no outputs yet"]


def test_published_outputs_are_current(page: Page, tmp_path: Path) -> None:
    cache.publish(page, made(tmp_path, first_dot_rst="a", images__one_dot_svg="b"), NOW, seconds=1.5)
    assert cache.stale(page, NOW) == []
    assert (page.cache / "images" / "one.svg").read_text() == "b"
    assert cache.read_receipt(page)["seconds"] == 1.5


@pytest.mark.parametrize(
    ("now", "reason"),
    [
        ({**NOW, "the script": "2"}, "the script 1 -> 2"),
        ({**NOW, "torch": "2.14.0"}, "torch 2.13.0 -> 2.14.0"),
        ({**NOW, "the GPU's driver": "x"}, "the GPU's driver none -> x"),
    ],
)
def test_what_changed_is_said(page: Page, tmp_path: Path, now: dict[str, str], reason: str) -> None:
    cache.publish(page, made(tmp_path, first_dot_rst="a"), NOW)
    assert cache.stale(page, now) == [reason]


@pytest.mark.parametrize("harm", ["edit", "remove"])
def test_a_damaged_output_makes_the_page_stale(page: Page, tmp_path: Path, harm: str) -> None:
    cache.publish(page, made(tmp_path, first_dot_rst="a"), NOW)
    output = page.cache / "first.rst"
    output.write_text("b") if harm == "edit" else output.unlink()
    assert cache.stale(page, NOW) == ["its output first.rst is missing or damaged"]


def test_a_receipt_that_is_not_json_makes_the_page_stale(page: Page, tmp_path: Path) -> None:
    cache.publish(page, made(tmp_path, first_dot_rst="a"), NOW)
    page.receipt.write_text("{")
    assert cache.stale(page, NOW)


def test_an_output_that_is_the_same_keeps_its_time(page: Page, tmp_path: Path) -> None:
    cache.publish(page, made(tmp_path, first_dot_rst="a", first_dot_py="x"), NOW)
    os.utime(page.cache / "first.rst", (1, 1))
    cache.publish(page, made(tmp_path, first_dot_rst="a", first_dot_py="y"), NOW)
    assert (page.cache / "first.rst").stat().st_mtime == 1
    assert (page.cache / "first.py").read_text() == "y"


def test_an_output_that_is_no_longer_made_is_removed(page: Page, tmp_path: Path) -> None:
    cache.publish(page, made(tmp_path, first_dot_rst="a", images__one_dot_svg="b"), NOW)
    (tmp_path / "made" / "images" / "one.svg").unlink(missing_ok=True)
    cache.publish(page, made(tmp_path, first_dot_rst="a"), NOW)
    assert not (page.cache / "images" / "one.svg").exists()


def test_a_page_killed_while_it_is_published_is_stale(
    page: Page, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever file is the last to be moved before the end."""
    files = {"first_dot_rst": "new", "first_dot_py": "new", "images__one_dot_svg": "new"}
    for killed_at in range(1, len(files) + 2):
        monkeypatch.undo()
        cache.publish(page, made(tmp_path, **dict.fromkeys(files, "old")), NOW)
        real, moves = os.replace, []

        def replace(source: Path, target: Path, real=real, moves=moves, killed_at=killed_at) -> None:
            moves.append(target)
            if len(moves) == killed_at:
                raise KeyboardInterrupt
            real(source, target)

        monkeypatch.setattr(os, "replace", replace)
        with pytest.raises(KeyboardInterrupt):
            cache.publish(page, made(tmp_path, **files), NOW)
        assert cache.stale(page, NOW), f"killed at move {killed_at}"


def test_what_gone_scripts_left_is_removed_and_nothing_else(page: Page, tmp_path: Path) -> None:
    cache.publish(
        page, made(tmp_path, first_dot_rst="a", first_dot_py="x", images__sphx_glr_first_001_dot_png="i"), NOW
    )
    for name in ("first_more.py", "first_more.rst", "images/sphx_glr_first_more_001.png", "index.rst"):
        (page.cache / name).write_text("x")
    other = page.cache.parent / "gone_chapter"
    other.mkdir()
    (other / "old.py").write_text("x")
    gone = cache.remove_all_but(page.cache.parent, [page])
    left = sorted(path.relative_to(page.cache).as_posix() for path in page.cache.rglob("*") if path.is_file())
    assert gone == ["gone_chapter/old", "graphs/first_more"]
    assert left == ["first.py", "first.receipt.json", "first.rst", "images/sphx_glr_first_001.png", "index.rst"]
    assert not other.exists()


LAST = ["old.rst", "old.receipt.json", "old.py.md5", "old.ipynb", "old.rst.part"]
LAST += ["images/sphx_glr_old_001.svg", "images/thumb/sphx_glr_old_thumb.png"]


@pytest.mark.parametrize("last", LAST)
def test_a_removal_that_was_interrupted_is_finished_by_the_next_build(page: Page, tmp_path: Path, last: str) -> None:
    """Whatever file of a gone page is the last that is left."""
    cache.publish(page, made(tmp_path, first_dot_rst="a", first_dot_py="x"), NOW)
    (page.cache / "index.rst").write_text("x")
    (page.cache / last).parent.mkdir(parents=True, exist_ok=True)
    (page.cache / last).write_text("x")
    assert cache.remove_all_but(page.cache.parent, [page]) == ["graphs/old"]
    left = sorted(path.name for path in page.cache.rglob("*") if path.is_file())
    assert left == ["first.py", "first.receipt.json", "first.rst", "index.rst"]


def test_a_page_that_failed_once_keeps_nothing_of_that(page: Page, tmp_path: Path) -> None:
    """Its card had the picture of a broken page, which would stand beside the new one, or in its place."""
    cache.publish_failure(page, Fault(str(page.script), 1, "ValueError: no"))
    assert (page.cache / "images/thumb/sphx_glr_first_thumb.png").exists()
    cache.publish(page, made(tmp_path, first_dot_rst="a", images__thumb__sphx_glr_first_thumb_dot_svg="b"), NOW)
    left = sorted(path.relative_to(page.cache).as_posix() for path in page.cache.rglob("*") if path.is_file())
    assert left == ["first.receipt.json", "first.rst", "images/thumb/sphx_glr_first_thumb.svg"]


def test_a_page_leaves_the_images_of_another_whose_name_is_like_its_image(page: Page) -> None:
    """``sphx_glr_first_001_001.svg`` is of the page ``first_001``."""
    own = ["sphx_glr_first_001.svg", "sphx_glr_first_1000.png", "sphx_glr_first_002.svg.part"]
    other = ["sphx_glr_first_001_001.svg", "sphx_glr_first_001_thumb.svg", "sphx_glr_first_more_001.svg"]
    images = page.cache / "images"
    images.mkdir(parents=True)
    for name in own + other:
        (images / name).write_text("x")
    cache.remove(page)
    assert sorted(path.name for path in images.iterdir()) == other
