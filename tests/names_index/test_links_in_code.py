"""Names in code are links to PyTorch's reference: the first use of each on a page, around the right words."""

from __future__ import annotations

import pytest
from bs4 import BeautifulSoup, Tag
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

from atlas.names_index import inventory
from atlas.names_index.code_reader import uses
from atlas.names_index.links import with_links
from atlas.names_index.torch_api import TorchNames
from tiny.tiny_site import Build, build, written

TORCH = TorchNames()

CASES = {
    "a function": ("y = torch.exp(x)", {"torch.exp": "torch.exp"}),
    "under another name": ("import torch.nn.functional as F\nF.relu(x)", {"F.relu": "torch.nn.functional.relu"}),
    "imported alone": ("from torch.autograd import grad\ngrad(y, x)", {"grad": "torch.autograd.grad"}),
    "a method, without its variable": ("loss.backward()", {"backward": "torch.Tensor.backward"}),
    "each of a chain": ("x.exp().sum()", {"exp": "torch.Tensor.exp", "sum": "torch.Tensor.sum"}),
    "a decorator, without its sign": ("@torch.no_grad()\ndef f(): ...", {"torch.no_grad": "torch.no_grad"}),
    "after what is not ASCII": ("π = '<é>'; x.exp()", {"exp": "torch.Tensor.exp"}),
    "over two lines": ("y = (torch\n    .exp(x))", {"exp": "torch.exp"}),
    "below empty lines": ("\n\nx.exp()", {"exp": "torch.Tensor.exp"}),
    "a model's or a tensor's": ("thing.to('cpu')", {}),
    "a tensor's, which is known": ("torch.ones(1).to('cpu')", {"torch.ones": "torch.ones", "to": "torch.Tensor.to"}),
    "what the reference has not": ("x.data", {}),
    "an assignment of an attribute": ("x.grad = None", {"grad": "torch.Tensor.grad"}),
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
# Some text.

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


def linked(code: str) -> BeautifulSoup:
    """The code as Pygments shows it, with a link at each use that is sure."""
    [found] = uses([code], TORCH)
    known = [use for use in found if use.sure and use.name in inventory.load().places]
    shown = highlight(code, PythonLexer(), HtmlFormatter())
    block = with_links(shown, code, [(use.line, use.start, use.end, use.name) for use in known])
    assert BeautifulSoup(block, "html.parser").get_text() == BeautifulSoup(shown, "html.parser").get_text()
    return BeautifulSoup(block, "html.parser")


def said(link: Tag) -> str:
    """The full name: what hovering tells, or what is to be read anyway."""
    return link.get("title", link.get_text())


@pytest.mark.parametrize("case", CASES)
def test_words_that_are_links(case: str) -> None:
    code, expected = CASES[case]
    links = linked(code).select("pre a")
    assert {link.get_text(): said(link) for link in links} == expected
    assert all(link["href"] == inventory.load().address(said(link)) for link in links)


def test_a_line_that_is_marked_stays_whole() -> None:
    code = "x = torch.exp(y)\nx.sum()"
    shown = highlight(code, PythonLexer(), HtmlFormatter(hl_lines=[1, 2]))
    [found] = uses([code], TORCH)
    block = with_links(shown, code, [(use.line, use.start, use.end, use.name) for use in found])
    assert [a.get_text() for a in BeautifulSoup(block, "html.parser").select(".hll a")] == ["torch.exp", "sum"]


def test_a_line_that_is_written_otherwise_has_no_link() -> None:
    shown = "<pre>something else</pre>"
    assert with_links(shown, "x = torch.exp(y)", [(0, 4, 13, "torch.exp")]) == shown


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Build:
    files = {
        "docs/reference/names.md": "# Names\n\nAll of them.\n\n```{names-used}\n```\n",
        "docs/page.md": page("y = torch.exp(x)\nz = torch.exp(torch.sin(y))") + "\n```diff\n-torch.cos(x)\n```\n",
        "docs/session.md": f"# Session\n\nText.\n\n```{{doctest}}\n{SESSION}\n```\n",
        "docs/about/page.md": page("torch.exp(x)"),
        "examples/one/example.py": EXAMPLE,
    }
    done = build(written(tmp_path_factory.mktemp("links"), files))
    assert done.code == 0, done.output
    return done


def links_of(built: Build, name: str) -> list[str]:
    text = BeautifulSoup((built.out / name).read_text(encoding="utf-8"), "html.parser")
    return [said(link) for link in text.select(".highlight pre a")]


def test_the_first_use_on_a_page(built: Build) -> None:
    assert links_of(built, "page.html") == ["torch.exp", "torch.sin"]


def test_a_session_with_prompts(built: Build) -> None:
    assert links_of(built, "session.html") == ["torch.ones", "torch.Tensor.exp", "torch.Tensor.numel"]


def test_an_example(built: Build) -> None:
    grad = ["torch.ones", "torch.Tensor.sum", "torch.Tensor.backward", "torch.Tensor.grad"]
    assert links_of(built, "gallery/one/example.html") == [*grad, "torch.autograd.graph.Node.name"]


def test_a_page_about_the_site_has_none(built: Build) -> None:
    assert links_of(built, "about/page.html") == []


def test_the_index_leads_to_the_reference(built: Build) -> None:
    text = BeautifulSoup((built.out / "reference/names.html").read_text(encoding="utf-8"), "html.parser")
    terms = {term["id"].removeprefix("name-"): term.select("a.external") for term in text.select("dt")}
    assert [said(link) for links in terms.values() for link in links] == [name for name in terms if terms[name]]
    assert terms["torch.exp"][0]["href"] == inventory.load().address("torch.exp")
    assert not terms["torch.Tensor.grad_fn"]


def test_markdown_notebooks_and_the_search_have_the_code_alone(built: Build) -> None:
    markdown = (built.out / "page.html.md").read_text(encoding="utf-8")
    assert "z = torch.exp(torch.sin(y))" in markdown
    others = [path for ending in ("md", "ipynb", "py", "json", "js") for path in built.out.rglob(f"*.{ending}")]
    with_addresses = [path.name for path in others if "docs.pytorch.org" in path.read_text(encoding="utf-8")]
    assert len(others) > 5 and with_addresses == ["names.html.md"], "of these the list of names alone"
