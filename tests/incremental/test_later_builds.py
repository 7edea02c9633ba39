"""After pages have gone and others have changed, what is left is what a first build would make of it."""

from __future__ import annotations

import re

import pytest

from sources import GENERATED
from tiny.tiny_site import Build, build, written


@pytest.fixture(scope="module")
def later(tmp_path_factory: pytest.TempPathFactory) -> Build:
    """Of four pages two have gone, one of them at the top, and one of the others has changed."""
    files = {f"docs/{name}.md": f"# Page {name}\n\nText.\n" for name in ("one", "two", "gone", "guide/gone")}
    site = written(tmp_path_factory.mktemp("site"), files)
    first = build(site)
    assert first.code == 0, first.output
    for name in ("gone", "guide/gone"):
        assert (first.out / f"{name}.html").exists()
        (site / "docs" / f"{name}.md").unlink()
    index = site / "docs" / "index.md"
    index.write_text(
        re.sub(r"^.*gone\n", "", index.read_text(encoding="utf-8"), flags=re.MULTILINE), encoding="utf-8"
    )
    assert build(site).code == 0
    (site / "docs" / "one.md").write_text("# Page one\n\nAnother text.\n", encoding="utf-8")
    again = build(site)
    assert again.code == 0, again.output
    return again


def test_the_pages_that_have_no_source_stay(later: Build) -> None:
    found = {path.name for path in later.out.glob("*.html")} - {"gone.html"}  # until the folder is removed
    assert found == {"index.html", "one.html", "two.html", *GENERATED}


def test_the_sitemap_names_the_pages_that_were_not_written_too(later: Build) -> None:
    named = re.findall(r"<loc>[^<]*//[^/]*/([^<]*)</loc>", (later.out / "sitemap.xml").read_text(encoding="utf-8"))
    assert named == ["gallery/index.html", "index.html", "one.html", "two.html"]
