"""Outputs are published whole or not at all, and trusted only with a receipt of all that they depend on."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from atlas.gallery import cache
from atlas.gallery.scripts import Fault, Page
from sources import ROOT

NOW = {"of": "now"}


@pytest.fixture
def page(tmp_path: Path) -> Page:
    script = tmp_path / "examples" / "graphs" / "first.py"
    script.parent.mkdir(parents=True)
    script.write_text('"""\nTitle\n=====\n"""\n', encoding="utf-8")
    return Page(script, tmp_path / "docs" / "gallery" / "graphs")


def made(tmp_path: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = tmp_path / "made" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return tmp_path / "made"


def list_files(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def test_published_outputs_are_current_for_what_they_depend_on(page: Page, tmp_path: Path) -> None:
    assert not cache.is_current(page, NOW)
    cache.publish_page(page, made(tmp_path, {"first.rst": "a", "images/one.svg": "b"}), NOW)
    assert cache.is_current(page, NOW)
    assert not cache.is_current(page, {"of": "other"})
    assert (page.cache / "images" / "one.svg").read_text(encoding="utf-8") == "b"
    (page.cache / "first.rst").unlink()
    assert not cache.is_current(page, NOW)


def test_the_same_output_keeps_its_time_and_one_no_longer_made_is_removed(page: Page, tmp_path: Path) -> None:
    cache.publish_page(page, made(tmp_path, {"first.rst": "a", "images/sphx_glr_first_001.svg": "b"}), NOW)
    os.utime(page.cache / "first.rst", (1, 1))
    cache.publish_page(page, made(tmp_path, {"first.rst": "a", "first.py": "y"}), NOW)
    assert (page.cache / "first.rst").stat().st_mtime == 1
    assert list_files(page.cache) == ["first.py", "first.receipt.json", "first.rst"]


def test_a_page_half_published_is_stale(page: Page, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk was full, or the build was killed: whatever file is the last to be moved before that."""
    files = {"first.rst": "new", "first.py": "new", "images/one.svg": "new"}
    for killed_at in range(1, len(files) + 2):
        monkeypatch.undo()
        cache.publish_page(page, made(tmp_path, dict.fromkeys(files, "old")), NOW)
        real, moves = os.replace, []

        def replace(source: Path, target: Path, real=real, moves=moves, killed_at=killed_at) -> None:
            moves.append(target)
            if len(moves) == killed_at:
                raise OSError("No space left on device")
            real(source, target)

        monkeypatch.setattr(os, "replace", replace)
        with pytest.raises(OSError, match="No space"):
            cache.publish_page(page, made(tmp_path, files), NOW)
        assert not cache.is_current(page, NOW), f"killed at move {killed_at}"


def test_what_gone_scripts_left_is_removed_and_nothing_else(page: Page, tmp_path: Path) -> None:
    own = {"first.rst": "a", "first.py": "x", "images/sphx_glr_first_001.png": "i"}
    cache.publish_page(page, made(tmp_path, own), NOW)
    gone = ["first_more.py", "first_more.rst", "images/sphx_glr_first_more_001.png", "../gone_chapter/old.py"]
    (page.cache.parent / "gone_chapter").mkdir()
    for name in (*gone, "index.rst"):
        (page.cache / name).write_text("x", encoding="utf-8")
    assert cache.remove_gone_pages(page.cache.parent, [page]) == ["gone_chapter/old", "graphs/first_more"]
    assert list_files(page.cache) == sorted(["first.receipt.json", "index.rst", *own])
    assert not (page.cache.parent / "gone_chapter").exists()


def test_a_page_that_failed_once_keeps_nothing_of_that(page: Page, tmp_path: Path) -> None:
    """Its card had the picture of a broken page, which would stand beside the new one, or in its place."""
    cache.publish_failure(page, Fault(str(page.script), 1, "ValueError: no"))
    assert (page.cache / "images/thumb/sphx_glr_first_thumb.png").exists()
    cache.publish_page(page, made(tmp_path, {"first.rst": "a", "images/thumb/sphx_glr_first_thumb.svg": "b"}), NOW)
    assert list_files(page.cache) == ["first.receipt.json", "first.rst", "images/thumb/sphx_glr_first_thumb.svg"]


def test_a_page_leaves_the_images_of_another_whose_name_is_like_its_image(page: Page) -> None:
    """``sphx_glr_first_001_001.svg`` is of the page ``first_001``."""
    own = ["sphx_glr_first_001.svg", "sphx_glr_first_1000.png", "sphx_glr_first_002.svg.part"]
    other = ["sphx_glr_first_001_001.svg", "sphx_glr_first_001_thumb.svg", "sphx_glr_first_more_001.svg"]
    images = page.cache / "images"
    images.mkdir(parents=True)
    for name in own + other:
        (images / name).write_text("x", encoding="utf-8")
    cache.remove_page(page)
    assert sorted(path.name for path in images.iterdir()) == other


# -- What outputs depend on ---------------------------------------------------------------------------


def test_an_edit_of_that_code_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any]
) -> None:
    conf = Path(shutil.copytree(ROOT / "conf", tmp_path / "conf"))
    monkeypatch.setattr(cache, "CONF", conf)
    before = cache.compute_fingerprint(settings)
    edited = {"drawgrad/drawing.py": False, "atlas/gallery/run.py": False, "atlas/gallery/notebooks.py": True}
    for name, counts in edited.items():
        (conf / name).write_text((conf / name).read_text(encoding="utf-8") + "\n# edited\n", encoding="utf-8")
        assert (cache.compute_fingerprint(settings) != before) is counts, name


def test_versions_settings_and_the_gpu_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any]
) -> None:
    assert cache.compute_fingerprint(settings | {"stale_examples": ["x"]}) == cache.compute_fingerprint(settings)
    found = [cache.compute_fingerprint(settings), cache.compute_fingerprint(settings | {"show_signature": True})]
    (tmp_path / "version").write_text("NVRM version: 570", encoding="ascii")
    monkeypatch.setattr(cache, "_DRIVER", tmp_path / "version")
    found.append(cache.compute_fingerprint(settings))
    monkeypatch.setattr(cache, "version", lambda package: "9.9" if package == "torch" else "1")
    found.append(cache.compute_fingerprint(settings))
    assert len(set(found)) == 4
