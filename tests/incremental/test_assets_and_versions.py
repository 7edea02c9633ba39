"""A style sheet, a template or a package that changed reaches the pages that show it, though no source changed."""

from __future__ import annotations

import re
from importlib.metadata import version
from pathlib import Path

import pytest

from tiny.tiny_site import ROOT, Build, Snapshot, build, copy_of, written

CELL = "# Cell\n\n```{code-cell}\nfrom importlib.metadata import version\nprint('pandas', version('pandas'))\n```\n"
NOTEBOOK = f"---\nfile_format: mystnb\nkernelspec:\n  name: python3\n---\n\n{CELL}"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Build, Snapshot]:
    """A site, with a copy of the settings and the code beside it."""
    folder = tmp_path_factory.mktemp("site") / "folder"
    copy_of(ROOT / "conf", folder / "conf")
    site = written(folder, {"docs/cell.md": NOTEBOOK, "docs/other.md": "# Other\n\nText.\n"})
    done = build(site, conf=site / "conf")
    assert done.code == 0, done.output
    return done, Snapshot.of(folder)


@pytest.fixture
def site(built: tuple[Build, Snapshot]) -> Path:
    """The site as it was built first."""
    built[1].restore()
    return built[0].site


def again(site: Path, page: str = "other") -> str:
    """A page, after one more build."""
    done = build(site, conf=site / "conf")
    assert done.code == 0, done.output
    return (done.out / f"{page}.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "linked", "added"),
    [
        ("static/atlas.css", "site.css", ".changed { color: red; }"),
        ("static/scrollable.js", "scrollable.js", "var changed;"),
    ],
)
def test_a_changed_asset_has_another_checksum_on_each_page(site: Path, name: str, linked: str, added: str) -> None:
    """A browser keeps what has a checksum in its address for a year, as conf/nginx.conf tells it to."""
    address = re.compile(rf"_static/{re.escape(linked)}\?v=\w+")
    before = address.search((site / "html/other.html").read_text(encoding="utf-8"))[0]
    with (site / "conf" / name).open("a", encoding="utf-8") as file:
        file.write(f"\n{added}\n")
    assert address.search(again(site))[0] != before


def test_a_changed_template_is_on_each_page(site: Path) -> None:
    with (site / "conf/templates/page.html").open("a", encoding="utf-8") as file:
        file.write("{% block scripts %}{{ super() }}<!-- changed -->{% endblock %}\n")
    assert "<!-- changed -->" in again(site)


def test_another_version_of_pandas_has_code_cells_run_again(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert f"pandas {version('pandas')}" in (site / "html/cell.html").read_text(encoding="utf-8")
    about = site / "packages/pandas-99.9.9.dist-info/METADATA"
    about.parent.mkdir(parents=True)
    about.write_text("Metadata-Version: 2.1\nName: pandas\nVersion: 99.9.9\n")
    monkeypatch.setenv("PYTHONPATH", str(about.parents[1]))
    assert "pandas 99.9.9" in again(site, "cell")
