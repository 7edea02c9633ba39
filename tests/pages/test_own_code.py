"""A change in the site's own code changes what Sphinx compares, so that every page is read again."""

from __future__ import annotations

from pathlib import Path

import pytest

from atlas.pages.own_code import digest


@pytest.fixture
def code(tmp_path: Path) -> Path:
    (tmp_path / "pages").mkdir()
    (tmp_path / "pages" / "one.py").write_text("x = 1\n")
    (tmp_path / "notes.txt").write_text("no code\n")
    return tmp_path


def test_a_changed_byte_a_new_name_and_a_new_file_are_noticed(code: Path) -> None:
    seen = {digest(code)}
    (code / "pages" / "one.py").write_text("x = 2\n")
    seen.add(digest(code))
    (code / "pages" / "one.py").rename(code / "pages" / "two.py")
    seen.add(digest(code))
    (code / "three.py").write_text("")
    seen.add(digest(code))
    assert len(seen) == 4


def test_what_is_no_code_is_not(code: Path) -> None:
    before = digest(code)
    (code / "notes.txt").write_text("other\n")
    assert digest(code) == before
