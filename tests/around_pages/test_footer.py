"""The foot of a page: which lines it has, in which order, and where its links lead with sources and without."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import version
from urllib.parse import parse_qs, urlsplit

import pytest
from bs4 import BeautifulSoup

from atlas import footer

Page = Callable[[str], BeautifulSoup]
SOURCES = "https://github.com/someone/atlas"
TORCH = version("torch").partition("+")[0]


def test_an_example_offers_colab_downloads_and_what_to_install(hosted_page: Page, unhosted_page: Page) -> None:
    boxes = hosted_page("gallery/basics/two").select(".sphx-glr-footer > div")
    assert [box.get_text().split()[0] for box in boxes] == ["Open", "Notebook", "Script", "Zip", "To"]
    assert boxes[0].a["href"] == (
        "https://colab.research.google.com/github/someone/atlas/blob/notebooks/basics/two.ipynb"
    )
    (line,) = boxes[-1].select("div.highlight > pre")  # ``copybutton_selector`` of conf.py finds it
    assert line.get_text().strip() == f"pip install torch=={TORCH}"
    assert not unhosted_page("gallery/basics/two").select('a[href*="colab"]')
    for name in ("gallery/index", "gallery/basics/index", "guide/which", "index"):
        assert not hosted_page(name).select('a[href*="colab"], .install-line')


def test_names_on_pypi_stand_in_it_and_no_build_of_ones_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("atlas.build_facts.version", lambda package: "2.13.0+cpu")
    code = "import math\nimport torch\nimport pandas as pd\nfrom sklearn import datasets\n"
    assert footer.make_install_command(code) == "pip install torch==2.13.0 pandas scikit-learn"


def test_colab_opens_what_is_on_github_alone() -> None:
    for address in ("https://github.com.example/a/b", "https://gitlab.com/a/b", ""):
        assert footer.find_colab_address(address, "gallery/cuda/devices") is None


@pytest.mark.parametrize(
    ("page", "source"),
    [
        ("gallery/basics/two", "examples/basics/two.py"),
        ("gallery/basics/index", "examples/basics/GALLERY_HEADER.rst"),
        ("gallery/index", "examples/GALLERY_HEADER.rst"),
        ("guide/which", "docs/guide/which.md"),
    ],
)
def test_edit_this_page_leads_to_the_source(hosted_page: Page, unhosted_page: Page, page: str, source: str) -> None:
    found = [link["href"] for link in hosted_page(page).select(".edit-this-page a, .view-this-page a")]
    assert f"{SOURCES}/edit/main/{source}" in found
    assert {link.partition("/main/")[2].partition("?")[0] for link in found} == {source}
    (box,) = hosted_page(page).select(".content-icon-container")
    assert (box["role"], box["aria-label"]) == ("region", "About this page")
    assert not unhosted_page(page).select(".edit-this-page a, .view-this-page a")


@pytest.mark.parametrize("name", ["gallery/basics/two", "guide/which", "index"])
def test_a_report_names_the_page_and_what_it_was_built_from(
    hosted_page: Page, unhosted_page: Page, name: str
) -> None:
    page = hosted_page(name)
    (link,) = page.select(".report a")
    parts = urlsplit(link["href"])
    said = parse_qs(parts.query)
    where = page.select_one("link[rel=canonical]")["href"]
    assert parts._replace(query="").geturl() == f"{SOURCES}/issues/new"
    assert said["title"] == ["".join(page.h1.find_all(string=True)).removesuffix("¶")]
    commit = "0123456789abcdef0123456789abcdef01234567"
    assert said["body"] == [f"Page: {where}\nPyTorch: {TORCH}\nCommit: {commit}\n\nWhat is wrong:\n\n"]
    assert link.get_text() == "Report a mistake on this page"
    assert not unhosted_page(name).select(".report")


def test_pages_that_teach_say_what_their_sentences_are_about(hosted_page: Page) -> None:
    (line,) = hosted_page("guide/which").select(".scope")
    assert line.a["href"] == "../about/how-this-site-stays-true.html#what-a-sentence-is-about"
    for name in ("gallery/basics/index", "text", "index"):
        assert not hosted_page(name).select(".scope")


@pytest.mark.parametrize(("name", "ran"), [("index", ""), ("graphs/one", "One assert"), ("basics/two", "2 asserts")])
def test_a_page_says_what_it_was_built_from(hosted_page: Page, unhosted_page: Page, name: str, ran: str) -> None:
    name, up = (f"gallery/{name}", "../../") if ran else (name, "")
    ran = ran and f"{ran} ran on this page. "
    (said,) = hosted_page(name).select(".built:not(.scope)")
    built = f"Built with PyTorch {TORCH} from commit 0123456 of 2026-09-21."
    assert said.get_text() == f"{built} {ran}3 ran on the whole site."
    commit = "0123456789abcdef0123456789abcdef01234567"
    assert [link["href"] for link in said.select("a")] == [f"{SOURCES}/commit/{commit}", f"{up}build.json"]
    (said,) = unhosted_page(name).select(".built:not(.scope)")
    assert said.get_text() == f"Built with PyTorch {TORCH}. {ran}".strip()


def test_a_page_without_a_source_has_no_foot_of_ours(hosted_page: Page) -> None:
    assert not [found for name in ("404", "genindex") for found in hosted_page(name).select(".report, .built")]
