"""A Markdown page is parted into text that Jupyter can show and code that runs, whatever of MyST is on it."""

from __future__ import annotations

import pytest
from myst_parser.config.main import MdParserConfig

from atlas.notebooks.blocks import Code, Text, blocks
from atlas.notebooks.plain_markdown import plain

CONFIG = MdParserConfig(enable_extensions={"colon_fence", "deflist", "dollarmath", "attrs_inline"})


def of(source: str) -> list[Text | Code]:
    return blocks(source, CONFIG)


def test_code_of_each_kind_stands_between_its_text() -> None:
    page = (
        "---\nfile_format: mystnb\n---\n\n(here)=\n# Title\n\nOne.\n\n```{code-cell}\n:tags: [hide-input]\n\nx = 1\nx\n```\n\n"
        "Two.\n\n```{testcode} group\ny = 2\n```\n\n```{doctest} group\n>>> x + y\n3\n```\n"
    )
    assert of(page) == [Text("# Title\n\nOne."), Code("x = 1\nx"), Text("Two."), Code("y = 2"), Code("x + y")]


@pytest.mark.parametrize(
    "hidden", ["```{code-cell}\n:tags: [remove-cell]\n\nassert x\n```", "```{doctest}\n:hide:\n\n>>> assert x\n```"]
)
def test_what_the_page_does_not_show_is_known(hidden: str) -> None:
    assert of(hidden) == [Code("assert x", shown=False)]


def test_a_doctest_ends_a_cell_where_the_page_shows_a_value_or_an_error() -> None:
    page = (
        "```{doctest}\n>>> x = 1\n>>> for y in range(2):\n...     print(y)\n0\n1\n"
        ">>> print(x)\n1\n>>> x  # doctest: +ELLIPSIS\n1\n"
        ">>> y = 2\n>>> x.real = 2\nTraceback (most recent call last):\nAttributeError: no\n>>> y\n2\n```\n"
    )
    assert of(page) == [
        Code("x = 1\nfor y in range(2):\n    print(y)"),
        Code("print(x)\nx"),
        Code("y = 2"),
        Code("x.real = 2", raises=True),
        Code("y"),
    ]


@pytest.mark.parametrize(
    ("directive", "markdown"),
    [
        ("```{in-short}\nCall `f`.\n\nOr {doc}`it </x>`.\n```", "> **In short**\n>\n> Call `f`.\n>\n> Or *it*."),
        ("```{note}\nText.\n```", "> **Note**\n>\n> Text."),
        ("```{table}\n:widths: 4 6\n\n| a |\n| --- |\n| b |\n```", "| a |\n| --- |\n| b |"),
        ("```{code-block} cpp\nint x;\n```", "```cpp\nint x;\n```"),
        ("```python\nx = 1\n```", "```python\nx = 1\n```"),
        (":::{dropdown} More of {doc}`it </x>`\nText.\n:::", "**More of *it***\n\nText."),
        ("```{graph-figure} /a.svg\n:title: Two leaves\n```", "*A figure of the page: Two leaves*"),
        ("```{anything-new}\ntext\n```", "*The page of the site has more here.*"),
    ],
)
def test_a_directive_becomes_markdown(directive: str, markdown: str) -> None:
    assert of(directive) == [Text(markdown)]


@pytest.mark.parametrize("nothing", ["```{index} single: a\n```", "```{testsetup}\nx = 1\n```", "% a comment"])
def test_what_is_for_sphinx_leaves_nothing(nothing: str) -> None:
    assert of(nothing) == []


def test_code_within_a_fold_stays_in_its_place() -> None:
    assert of("One.\n\n:::{dropdown} Fold\n```{testcode}\nx = 1\n```\n:::\n\nTwo.") == [
        Text("One.\n\n**Fold**"),
        Code("x = 1"),
        Text("Two."),
    ]


@pytest.mark.parametrize(
    ("myst", "markdown"),
    [
        ("{term}`leaf`, {term}`leaves <leaf>`, {kbd}`K`", "*leaf*, *leaves*, `K`"),
        ("`f[0](x)` and ``{doc}`a` ``", "`f[0](x)` and ``{doc}`a` ``"),
        ("[`f()`](#f), [there](https://a.example/b)", "`f()`, [there](https://a.example/b)"),
        ("$a[1](b)$ stays", "$a[1](b)$ stays"),
    ],
)
def test_words_of_the_text(myst: str, markdown: str) -> None:
    assert plain(myst) == markdown
