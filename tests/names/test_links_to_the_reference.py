"""Names in code are links to PyTorch's reference: the first use of each on a page, around the right words, of one release."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from bs4 import BeautifulSoup, Tag
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer
from sphinx.util.inventory import InventoryFile

from atlas.code_reader import find_uses, get_kind
from atlas.names import UsedNames, find_address, get_torch_names, insert_links
from sources import PINNED, ROOT
from tiny.tiny_site import Build, build, written

RELEASE = "https://docs.pytorch.org/docs/2.13/"
LISTED = InventoryFile.loads((ROOT / "conf/atlas/objects.inv").read_bytes(), uri=RELEASE)
ENV = SimpleNamespace(intersphinx_cache={}, intersphinx_inventory=LISTED.data)

CASES = {
    "a function": ("y = torch.exp(x)", {"torch.exp": "torch.exp"}),
    "imported alone": ("from torch.autograd import grad\ngrad(y, x)", {"grad": "torch.autograd.grad"}),
    "a method, without its variable": ("loss.backward()", {"backward": "torch.Tensor.backward"}),
    "each of a chain": ("x.exp().sum()", {"exp": "torch.Tensor.exp", "sum": "torch.Tensor.sum"}),
    "a decorator, without its sign": ("@torch.no_grad()\ndef f(): ...", {"torch.no_grad": "torch.no_grad"}),
    "after what is not ASCII": ("π = '<é>'; x.exp()", {"exp": "torch.Tensor.exp"}),
    "over two lines": ("y = (torch\n    .exp(x))", {"exp": "torch.exp"}),
    "a tensor's, which is known": ("torch.ones(1).to('cpu')", {"torch.ones": "torch.ones", "to": "torch.Tensor.to"}),
    "what the reference has not": ("x.data", {}),
    "an assignment of an attribute": ("x.grad = None", {"grad": "torch.Tensor.grad"}),
}
PLACES = {
    "torch.exp": "generated/torch.exp.html",  # a page of its own begins with the name
    "torch.Size": "size.html#torch.Size",
    "torch.float32": "tensor_attributes.html#torch.dtype",  # it has the class alone
    "torch.GradScaler.step": "amp.html#torch.amp.GradScaler.step",  # it has another path to the class
    "torch.autograd.gradcheck": "generated/torch.autograd.gradcheck.gradcheck.html#torch.autograd.gradcheck.gradcheck",
}
SESSION = """\
>>> x = torch.ones(2)
>>> (x
...     .exp()).numel()
2"""
EXAMPLE = '''"""
Example
=======

Text.
"""

# %%
# `Its page <https://docs.pytorch.org/docs/stable/generated/torch.exp.html>`__.

import torch

x = torch.ones(2, requires_grad=True)
x.sum().backward()
print(x.grad)
assert x.grad.sum() == 2

# %%
# More text.

y = torch.ones(2) * x
print(y.grad_fn.name())
'''


def page(code: str) -> str:
    return f"# Page\n\nText.\n\n```python\n{code}\n```\n"


def linked(shown: str, code: str) -> BeautifulSoup:
    """The code as Pygments shows it, with a link at each use that is sure."""
    [found] = find_uses([code], get_torch_names(ENV))
    links = [(use.line, use.start, use.end, use.name, find_address(ENV, use.name)) for use in found if use.sure]
    block = BeautifulSoup(insert_links(shown, code, [link for link in links if link[-1]]), "html.parser")
    assert block.get_text() == BeautifulSoup(shown, "html.parser").get_text()
    return block


def said(link: Tag) -> str:
    """The full name: what hovering tells, or what is to be read anyway."""
    return link.get("title", link.get_text())


def test_the_inventory_is_of_the_pytorch_that_is_pinned() -> None:
    release = ".".join(PINNED.split(".")[:2])
    assert {item.project_version for named in LISTED.data.values() for item in named.values()} == {release}
    assert f'"torch": ("https://docs.pytorch.org/docs/{release}/"' in (ROOT / "conf/conf.py").read_text()


@pytest.mark.parametrize("name", PLACES)
def test_where_the_reference_has_a_name(name: str) -> None:
    assert find_address(ENV, name) == RELEASE + PLACES[name]


@pytest.mark.parametrize("case", CASES)
def test_words_that_are_links(case: str) -> None:
    code, expected = CASES[case]
    links = linked(highlight(code, PythonLexer(), HtmlFormatter()), code).select("pre a")
    assert {link.get_text(): said(link) for link in links} == expected
    assert all(link["href"] == find_address(ENV, said(link)) for link in links)


def test_a_line_that_is_marked_stays_whole() -> None:
    code = "x = torch.exp(y)\nx.sum()"
    block = linked(highlight(code, PythonLexer(), HtmlFormatter(hl_lines=[1, 2])), code)
    assert [a.get_text() for a in block.select(".hll a")] == ["torch.exp", "sum"]


def test_a_line_that_is_written_otherwise_has_no_link() -> None:
    shown = "<pre>something else</pre>"
    assert str(linked(shown, "x = torch.exp(y)")) == shown


def test_what_another_process_asked_of_torch_is_kept() -> None:
    env, other = SimpleNamespace(), SimpleNamespace()
    assert get_torch_names(other).ask(get_kind, "torch.exp") == "object"
    UsedNames().merge_other(None, env, set(), other)
    assert get_torch_names(env) == {("get_kind", "torch.exp"): "object"}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Build:
    files = {
        "docs/reference/names.md": "# Names\n\nAll of them.\n\n```{names-used}\n```\n",
        "docs/page.md": page("y = torch.exp(x)\nz = torch.exp(torch.sin(y))\nz._version")
        + "\n```diff\n-torch.cos(x)\n```\n",
        "docs/session.md": f"# Session\n\nText.\n\n```{{doctest}}\n{SESSION}\n```\n",
        "docs/about/page.md": "# About\n\nText.\n\n```python\ntorch.exp(x)\n```\n",
        "examples/one/example.py": EXAMPLE,
    }
    done = build(written(tmp_path_factory.mktemp("links"), files))
    assert done.code == 0, done.output
    return done


def soup(built: Build, name: str) -> BeautifulSoup:
    return BeautifulSoup((built.out / name).read_text(encoding="utf-8"), "html.parser")


def links_of(built: Build, name: str) -> list[str]:
    return [said(link) for link in soup(built, name).select(".highlight pre a")]


def test_the_first_use_on_a_page_in_all_kinds_of_code_but_on_pages_about_the_site(built: Build) -> None:
    assert links_of(built, "page.html") == ["torch.exp", "torch.sin"]
    assert links_of(built, "session.html") == ["torch.ones", "torch.Tensor.exp", "torch.Tensor.numel"]
    grad = ["torch.ones", "torch.Tensor.sum", "torch.Tensor.backward", "torch.Tensor.grad"]
    assert (built.site / "docs/gallery/one/example.codeobj.json").is_file(), "what sphinx-gallery would make links of"
    assert links_of(built, "gallery/one/example.html") == [*grad, "torch.autograd.graph.Node.name"]
    assert links_of(built, "about/page.html") == []


def test_the_index_leads_to_the_reference(built: Build) -> None:
    terms = {
        term["id"].removeprefix("name-"): term.select("a.external")
        for term in soup(built, "reference/names.html").select("dt")
    }
    assert [said(link) for links in terms.values() for link in links] == [name for name in terms if terms[name]]
    assert terms["torch.exp"][0]["href"] == RELEASE + PLACES["torch.exp"]
    assert not terms["torch.Tensor.grad_fn"]
    assert list(terms)[-1] == "torch.Tensor._version"  # what begins with an underscore comes last


def test_an_address_that_is_written_by_hand_leads_to_the_same_release(built: Build) -> None:
    links = soup(built, "gallery/one/example.html").select("article p a.external")
    assert [link["href"] for link in links if "pytorch.org" in link["href"]] == [RELEASE + PLACES["torch.exp"]]


def test_markdown_notebooks_and_the_search_have_the_code_alone(built: Build) -> None:
    assert "x.sum().backward()" in (built.out / "gallery/one/example.html.md").read_text(encoding="utf-8")
    others = [path for ending in ("md", "ipynb", "py", "json", "js") for path in built.out.rglob(f"*.{ending}")]
    with_links = {path.name for path in others if RELEASE in path.read_text(encoding="utf-8")}
    # the list of names, and the address that is written by hand
    assert len(others) > 5 and with_links == {"names.html.md", "example.html.md"}


@pytest.mark.parametrize("address", ["generated/torch.gone.html", "size.html#torch.gone"])
def test_an_address_that_the_reference_has_not_fails_the_build(built: Build, address: str) -> None:
    wrong = f"# Page\n\nText.\n\n[Gone](https://docs.pytorch.org/docs/stable/{address}).\n"
    (built.site / "docs/page.md").write_text(wrong)
    again = build(built.site)
    assert again.code != 0 and f"page.md:5: WARNING: PyTorch's reference has no {RELEASE}{address}" in again.output
