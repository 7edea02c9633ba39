"""A page is visited again when anything changes that its visit saw, and as long as something is found on it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import receipts as receipts_module
from axe import Looks
from looking import Finding, Inspection, inspect
from playwright.sync_api import Browser
from receipts import Receipts, checks
from serving import Server

FILES = {
    "page.html": """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>A page</title>
<link rel="icon" href="data:,"><link rel="stylesheet" href="style.css?v=1"><script src="script.js" defer></script></head>
<body><main><h1>A page</h1><p>Text</p><img src="picture.svg" alt="A picture"></main></body></html>""",
    "style.css": '@import "more.css"; h1 { color: #111; }',
    "more.css": "main { background: #fff; color: #000; }",
    "script.js": "document.title = 'A page with a script';",
    "picture.svg": '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>',
    "other.css": "",
}
PAGE = "page.html"


@pytest.fixture(scope="module")
def loaded(browser: Browser, server: Server, tmp_path_factory: pytest.TempPathFactory) -> Inspection:
    """What a real visit says that it loaded."""
    site = written(tmp_path_factory.mktemp("site"))
    with server(site) as origin, browser.new_context() as context:
        return inspect(context, origin, PAGE, Looks())


def written(site: Path) -> Path:
    for name, text in FILES.items():
        (site / name).parent.mkdir(parents=True, exist_ok=True)
        (site / name).write_text(text, encoding="utf-8")
    return site


@pytest.fixture
def site(tmp_path: Path) -> Path:
    return written(tmp_path / "site")


class Visits:
    """Visits that find what they are told, and are counted."""

    def __init__(self, folder: Path, site: Path, loaded: Inspection) -> None:
        self.folder, self.site, self.loaded, self.count = folder, site, loaded, 0

    def visit(self, findings: tuple[Finding, ...] = (), checks: str = "these", trusted: bool = True) -> bool:
        """Whether the page was looked at."""
        before = self.count

        def look() -> Inspection:
            self.count += 1
            return Inspection(list(findings), self.loaded.files)

        found = Receipts(self.folder, self.site, checks, trusted=trusted).visit(PAGE, look)
        assert found == (list(findings) if self.count > before else None)
        return self.count > before


@pytest.fixture
def visits(tmp_path: Path, site: Path, loaded: Inspection) -> Iterator[Visits]:
    assert not loaded.findings, [str(one) for one in loaded.findings]
    made = Visits(tmp_path / "visits", site, loaded)
    assert made.visit()
    return made


def test_a_page_that_is_as_it_was_is_not_visited_again(visits: Visits) -> None:
    assert not visits.visit()


@pytest.mark.parametrize("name", [name for name in FILES if name != "other.css"])
def test_a_page_is_visited_again_when_what_it_loads_changes(visits: Visits, name: str) -> None:
    path = visits.site / name
    path.write_text(path.read_text(encoding="utf-8") + " ", encoding="utf-8")
    assert visits.visit()
    assert not visits.visit()


def test_the_commit_below_a_page_is_of_no_importance(visits: Visits) -> None:
    path = visits.site / PAGE
    for commit in ("1111111", "2222222"):
        path.write_text(FILES[PAGE].replace("</main>", f'</main><p class="built">of <code>{commit}</code></p>'))
        assert not visits.visit()


def test_a_page_is_visited_again_when_what_it_loads_is_gone(visits: Visits) -> None:
    (visits.site / "more.css").unlink()
    assert visits.visit()


def test_what_it_does_not_load_does_not_matter(visits: Visits) -> None:
    (visits.site / "other.css").write_text("h1 { color: red; }", encoding="utf-8")
    assert not visits.visit()


def test_a_page_with_a_finding_is_visited_until_there_is_none(visits: Visits) -> None:
    wrong = (Finding(PAGE, "dark", 390, "small-text", "9px: Text"),)
    assert visits.visit(wrong, trusted=False), "it had a receipt"
    assert visits.visit(wrong)
    assert visits.visit()
    assert not visits.visit()


def test_a_visit_that_ends_in_an_error_leaves_no_receipt(visits: Visits, site: Path) -> None:
    def breaks() -> Inspection:
        raise TimeoutError

    with pytest.raises(TimeoutError):
        Receipts(visits.folder, site, "these", trusted=False).visit(PAGE, breaks)
    assert visits.visit()


def test_other_checks_visit_again(visits: Visits) -> None:
    assert visits.visit(checks="others")


def test_all_visits_can_be_asked_for(visits: Visits) -> None:
    assert visits.visit(trusted=False)


def test_a_torn_receipt_does_not_count(visits: Visits) -> None:
    for path in visits.folder.rglob("*.json"):
        path.write_text(path.read_text(encoding="utf-8")[:20], encoding="utf-8")
    assert visits.visit()


def test_another_chromium_or_axe_makes_other_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    now = checks("156")
    assert checks("157") != now == checks("156")
    monkeypatch.setattr(receipts_module, "AXE_SCRIPT", "another")
    assert checks("156") != now


def test_all_that_checks_a_page_is_part_of_the_checks() -> None:
    """A module that is new here either checks pages, and is then named, or only other tests use it."""
    here = {
        path.name for path in Path(__file__).parent.iterdir() if path.is_file() and not path.stem.startswith("test_")
    }
    assert here - set(receipts_module.CODE) == {"conftest.py"}
