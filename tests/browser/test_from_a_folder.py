"""The archive of the site, unpacked and opened without a server: pages load whole, and what answers a reader answers there."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Page
from visiting import Visit, new_tab, watch

from atlas.site_files import FOLDER, SITE, list_site, pack_archive


@pytest.fixture(scope="module")
def folder(site: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The archive of this site, which only a published build makes by itself."""
    place = tmp_path_factory.mktemp("taken")
    pack_archive(place / SITE, list_site(site))
    with zipfile.ZipFile(place / SITE) as archive:
        archive.extractall(place)
    return place / FOLDER


@pytest.fixture
def tab(fresh: BrowserContext, folder: Path, visit: Visit) -> Page:
    tab = new_tab(fresh)
    watch(tab, folder.as_uri(), lambda: visit)
    return tab


def test_what_answers_a_reader_answers_there(tab: Page, folder: Path, visit: Visit) -> None:
    tab.goto(f"{folder.as_uri()}/index.html")
    tab.keyboard.press("Control+k")
    tab.get_by_role("combobox").fill("retain_grad")
    tab.get_by_role("option").first.click()
    tab.wait_for_url("**/gallery/**.html**")
    tab.goto(f"{folder.as_uri()}/reference/operators.html")
    tab.locator(".filter [type=search]").fill("matmul")
    tab.wait_for_url("**/operators.html?name=matmul")
    assert not visit.errors + visit.other_sites
