"""A row of the formulas' table: which node, of which operator, and a formula for each of its arguments."""

from __future__ import annotations

from bs4 import BeautifulSoup

from atlas.formulas.table_directive import signature, table

NODE = {
    **{"schema": "div.Tensor(Tensor self, Tensor other) -> Tensor", "key": "", "forward": [], "saves": ["other"]},
    "backward": [[["self"], "grad / other"], [["other"], "a < b ? x : y"]],
}


def test_a_row_has_a_formula_for_each_argument() -> None:
    page = BeautifulSoup(table({"DivBackward0": NODE}), "html.parser")
    row = page.select_one("tr#node-DivBackward0")
    assert row.th.get_text(" ").split() == ["Div", "Backward0", "div.", "Tensor(", "self,", "other)"]
    assert row.td.get_text("|") == "self:| |grad / other|other:| |a < b ? x : y"
    assert row.select("td")[-1].get_text() == "other"


def test_a_node_that_needs_no_tensor_says_so() -> None:
    page = BeautifulSoup(table({"SumBackward0": {**NODE, "saves": []}}), "html.parser")
    assert page.select("td")[-1].get_text() == "nothing"


def test_a_formula_for_one_dispatch_key_names_it() -> None:
    page = BeautifulSoup(table({"SumBackward0": {**NODE, "key": "AutogradCUDA"}}), "html.parser")
    assert "(AutogradCUDA)" in page.select_one("tbody th").get_text()


def test_defaults_are_no_arguments() -> None:
    schema = "pool(Tensor self, int[2] kernel=[1, 2], *, ScalarType? dtype=None, bool ceil=False) -> (Tensor, Tensor)"
    assert signature(schema) == "pool(self, kernel, dtype, ceil)"
