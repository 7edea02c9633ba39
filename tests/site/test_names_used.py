"""The names that a page is said to use: the page has them."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from urllib.parse import urldefrag, urljoin

import pytest
from sphinx.util.inventory import InventoryFile

from markup import read
from sources import ROOT

INDEX = "reference/names.html"


@cache
def entries(site: Path) -> dict[str, set[str]]:
    """The addresses of the pages that the index has for each name, by the fragment of the name."""
    found = {}
    for term in read(site / INDEX).select("dl.names-used > dt"):
        links = term.find_next_sibling("dd").select("a")
        found[term["id"]] = {urljoin(INDEX, link["href"]) for link in links}
        assert len(found[term["id"]]) == len(links), f"{term['id']} names a page twice"
    return found


def test_the_code_of_each_page_has_the_name(site: Path) -> None:
    index = entries(site)
    code = {
        page: " ".join(block.get_text() for block in read(site / page).select("pre"))
        for page in set().union(*index.values())
    }
    wrong = [
        (name, page) for name, pages in index.items() for page in pages if name.rpartition(".")[2] not in code[page]
    ]
    assert not wrong


#: A name, and a page on which it has to be found.
TAUGHT = [
    ("name-torch.Tensor.retain_grad", "gallery/differentiation/gradients_of_intermediates.html"),
    ("name-torch.autograd.function.FunctionCtx.save_for_backward", "gallery/functions/context_methods.html"),
    ("name-torch.no_grad", "guide/which-switch.html"),
]


@pytest.mark.parametrize(("name", "taught_on"), TAUGHT)
def test_what_a_page_teaches_is_found(site: Path, name: str, taught_on: str) -> None:
    assert taught_on in entries(site)[name]


def test_the_first_use_of_a_name_leads_to_the_reference(site: Path, page: str) -> None:
    addresses = [link["href"] for link in read(site / page).select(".highlight pre a")]
    assert places_of_the_reference().issuperset(addresses)
    shared = [address for address in set(addresses) if addresses.count(address) > 1]
    ends = ("#torch.dtype", "#torch.layout", "#torch.memory_format", "amp.html#torch.autocast")
    assert all(address.endswith(ends) for address in shared)


@cache
def places_of_the_reference() -> set[str]:
    """All places of the inventory, and the pages that they are on."""
    content = (ROOT / "conf/atlas/objects.inv").read_bytes()
    listed = InventoryFile.loads(content, uri="https://docs.pytorch.org/docs/2.13/").data.values()
    places = {item.uri for named in listed for item in named.values()}
    return places | {urldefrag(place).url for place in places}


def test_no_link_leads_to_the_reference_of_another_release(site: Path, page: str) -> None:
    addresses = [link["href"] for link in read(site / page).select("article a[href*='pytorch.org/docs/']")]
    assert not [address for address in addresses if not address.startswith("https://docs.pytorch.org/docs/2.13/")]


def test_nearly_all_examples_have_links_in_code(site: Path, all_scripts: list[str]) -> None:
    pages = [read(site / "gallery" / Path(script).with_suffix(".html")) for script in all_scripts]
    without = [page.title.get_text() for page in pages if len(page.select(".highlight pre a")) < 3]
    assert len(without) < len(pages) / 20, without
