"""Digits of one place stand below each other, words stay at the left, and a Chinese term says so."""

from __future__ import annotations

import pandas as pd
import pytest
from bs4 import BeautifulSoup

from atlas.head import find_number_columns, mark_number_columns


def make_table(**values: list) -> str:
    return pd.DataFrame(values).to_html(notebook=True)


@pytest.mark.parametrize(
    ("values", "is_number"),
    [
        ([1, 20], True),
        ([0.5, float("nan")], True),
        (["1,048,576", "-3.5e-08"], True),
        (["12%", "3.5 MiB"], True),
        ([".5", "-"], True),
        (["None", "2"], True),
        (["None", "-"], False),
        (["1", "one"], False),
        (["(1, 2)", "[3]"], False),
        (["2.13.0", "1"], False),
        (["1 of 3", "2 of 3"], False),
        ([True, False], False),
    ],
)
def test_which_columns_hold_numbers(values: list, is_number: bool) -> None:
    assert find_number_columns(make_table(words=["a", "b"], values=values)) == ([3] if is_number else [])


def test_the_table_gets_a_class_for_each() -> None:
    html = mark_number_columns(f"<div>{make_table(words=['a', 'b'], values=[1, 2])}</div>")
    assert '<table border="1" class="dataframe right-3">' in html
    assert mark_number_columns(html) == html  # once is enough


def test_cells_that_span_others_are_left_alone() -> None:
    index = pd.MultiIndex.from_tuples([("a", "x"), ("a", "y")])
    text = pd.DataFrame({"n": [1, 2]}, index=index).to_html(notebook=True)
    assert "rowspan" in text and mark_number_columns(text) == text


def test_a_chinese_term_names_its_language(hosted_page) -> None:
    page: BeautifulSoup = hosted_page("words")
    assert [term.get_text() for term in page.select("article [lang=zh]")] == ["叶子"]
    assert not page.select("article em:not([lang])")
