"""Digits of one place stand below each other, words stay at the left, and a Chinese term says so."""

from __future__ import annotations

import pandas as pd
import pytest
from bs4 import BeautifulSoup

from atlas.head import find_number_columns, mark_number_columns


def make_table(**values: list) -> str:
    return pd.DataFrame(values).to_html(notebook=True)


NUMBERS = ([1, 20], [0.5, float("nan")], ["1,048,576", "-3.5e-08"], ["12%", "3.5 MiB"], [".5", "-"], ["None", "2"])
WORDS = (["None", "-"], ["1", "one"], ["(1, 2)", "[3]"], ["2.13.0", "1"], ["1 of 3", "2 of 3"], [True, False])


@pytest.mark.parametrize(("values", "found"), [*((v, [3]) for v in NUMBERS), *((v, []) for v in WORDS)])
def test_which_columns_hold_numbers(values: list, found: list[int]) -> None:
    assert find_number_columns(make_table(words=["a", "b"], values=values)) == found


def test_the_table_gets_a_class_for_each() -> None:
    html = mark_number_columns(f"<div>{make_table(words=['a', 'b'], values=[1, 2])}</div>")
    assert '<table border="1" class="dataframe right-3">' in html
    assert mark_number_columns(html) == html  # once is enough


def test_a_chinese_term_names_its_language(hosted_page) -> None:
    page: BeautifulSoup = hosted_page("words")
    assert [term.get_text() for term in page.select("article [lang=zh]")] == ["叶子"]
    assert not page.select("article em:not([lang])")
