"""Digits of one place stand below each other, and words stay at the left."""

from __future__ import annotations

import pandas as pd
import pytest

from atlas.page_parts.number_columns import columns, marked


def _table(**values: list) -> str:
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
    assert columns(_table(words=["a", "b"], values=values)) == ([3] if is_number else [])


def test_the_table_gets_a_class_for_each() -> None:
    html = marked(f"<div>{_table(words=['a', 'b'], values=[1, 2])}</div>")
    assert '<table border="1" class="dataframe right-3">' in html
    assert marked(html) == html  # once is enough


def test_cells_that_span_others_are_left_alone() -> None:
    index = pd.MultiIndex.from_tuples([("a", "x"), ("a", "y")])
    text = pd.DataFrame({"n": [1, 2]}, index=index).to_html(notebook=True)
    assert "rowspan" in text and marked(text) == text
