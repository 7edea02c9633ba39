"""TeX becomes MathML, which a converter smaller than pandoc gets wrong; PyTorch's own formulas are those that it runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from bs4 import BeautifulSoup

from atlas import formulas
from atlas.formulas import DATA, MathError, convert_formulas, load_formulas, make_formula_table, name_operator

# -- MathML ---------------------------------------------------------------------------------------


def convert_one(tex: str, *, display: bool = True) -> BeautifulSoup:
    (made,) = convert_formulas([(tex, display)])
    return BeautifulSoup(made, "html.parser").math


def test_many_at_once_keep_their_order_their_kind_and_their_source() -> None:
    given = [(f"x_{{{n}}} < b", n % 2 == 0) for n in range(20)]
    made = [BeautifulSoup(one, "html.parser").math for one in convert_formulas(given)]
    assert [math.annotation.get_text() for math in made] == [tex for tex, _ in given]
    assert [math["display"] for math in made] == ["block" if display else "inline" for _, display in given]
    assert {math["xmlns"] for math in made} == {"http://www.w3.org/1998/Math/MathML"}


def test_a_brace_below_a_term_is_a_line() -> None:
    """A brace is cut off at its end by Chromium, and does not stretch in a font without its parts."""
    math = convert_one(r"\underbrace{y \cdot \frac{1}{a}}_{\text{by } a} + \underbrace{s}_{\text{one}}")
    assert [term.get_text() for term in math.select("munder > mrow.braced")] == ["y⋅1a", "s"]
    assert "\u23df" not in math.get_text() and math.annotation.get_text().count("underbrace") == 2


def test_a_function_stands_off_its_argument() -> None:
    assert [gap["width"] for gap in convert_one(r"\cos x_2").select("mspace")] == ["0.167em"]
    assert not convert_one(r"\log(x) + \sin(x)").select("mspace")


@pytest.mark.parametrize("tex", [r"\frac{1", r"\begin{nothing} x", r"\undefinedmacro x", "{"])
def test_what_cannot_be_converted_is_an_error(tex: str) -> None:
    """A formula is never shown as its source, or left out, without a word."""
    with pytest.raises(MathError, match="Could not convert"):
        convert_formulas([("x", False), (tex, True)])


def test_a_pandoc_that_says_nothing_is_an_error_with_its_exit_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mute = tmp_path / "pandoc"
    mute.write_text("#!/bin/sh\nexit 3\n")
    mute.chmod(0o755)
    monkeypatch.setattr(formulas.pypandoc, "get_pandoc_path", lambda: str(mute))
    with pytest.raises(MathError, match="pandoc ended with exit code 3"):
        convert_formulas([("x", False)])


# -- Formulas of backward nodes -------------------------------------------------------------------

Nodes = dict[str, dict[str, Any]]
NODE = {
    **{"schema": "div.Tensor(Tensor self, Tensor other) -> Tensor", "key": "", "forward": [], "saves": ["other"]},
    "backward": [[["self"], "grad / other"], [["other"], "a < b ? x : y"]],
}


@pytest.fixture(scope="module")
def derivatives() -> Nodes:
    return formulas.read_derivatives()


def test_a_formula_is_what_backward_computes(derivatives: Nodes) -> None:
    x = torch.tensor([0.5, 2.0], dtype=torch.float64, requires_grad=True)
    y = x.tan()
    grad = torch.tensor([3.0, 5.0], dtype=torch.float64)
    [[arguments, formula]] = derivatives[y.grad_fn.name()]["backward"]
    assert arguments == ["self"]
    found = eval(formula, {"grad": grad, "self": x.detach(), "result": y.detach()})
    assert torch.equal(found, torch.autograd.grad(y, x, grad)[0])


def test_what_a_node_needs_are_tensors(derivatives: Nodes) -> None:
    """The shapes of tensors are none, nor are dtype and device."""
    saves = {"Mul": ["other", "self"], "Exp": ["result"], "MaxPool2DWithIndices": ["result1", "self"]}
    saves |= {"Add": [], "Cat": [], "ToCopy": []}
    assert {name: derivatives[f"{name}Backward0"]["saves"] for name in saves} == saves
    assert len(derivatives) > 500
    assert not [name for name in derivatives if "Test" in name or name.endswith("_copy")]


def test_what_a_node_of_a_graph_saves_has_the_names_of_its_formulas(derivatives: Nodes) -> None:
    a, b = (torch.ones(2, 2, requires_grad=True) for _ in range(2))
    for result in (a * b, a @ b, a.exp(), a.softmax(0), torch.addmm(a, a, b)):
        node = result.grad_fn
        saved = {name.removeprefix("_saved_") for name in dir(node) if name.startswith("_saved_")}
        tensors = {name for name in saved if isinstance(getattr(node, f"_saved_{name}"), torch.Tensor)}
        assert tensors == set(derivatives[node.name()]["saves"]), node.name()


def test_what_is_kept_is_of_one_pytorch(tmp_path: Path) -> None:
    assert load_formulas(tmp_path) is None
    file = tmp_path / DATA
    file.parent.mkdir(parents=True)
    formulas.save_json(file, {"torch": formulas.get_torch_version()}, nodes={"A": NODE})
    assert load_formulas(tmp_path) == {"A": NODE}
    kept = json.loads(file.read_text())
    for text in (json.dumps({**kept, "of": {"torch": "1.0.0"}}), "{"):
        file.write_text(text)
        assert load_formulas(tmp_path) is None


def make_row(**changed: Any) -> BeautifulSoup:
    page = BeautifulSoup(make_formula_table({"DivBackward0": {**NODE, **changed}}).astext(), "html.parser")
    return page.select_one("tr#node-DivBackward0")


def test_a_row_has_a_formula_for_each_argument() -> None:
    row = make_row()
    assert row.th.get_text(" ").split() == ["Div", "Backward0", "div.", "Tensor(", "self,", "other)"]
    assert row.td.get_text("|") == "self:| |grad / other|other:| |a < b ? x : y"
    assert row.select("td")[-1].get_text() == "other"
    assert make_row(saves=[]).select("td")[-1].get_text() == "nothing"
    assert "(AutogradCUDA)" in make_row(key="AutogradCUDA").th.get_text()


def test_defaults_are_no_arguments() -> None:
    schema = "pool(Tensor self, int[2] kernel=[1, 2], *, ScalarType? dtype=None, bool ceil=False) -> (Tensor, Tensor)"
    assert name_operator(schema) == "pool(self, kernel, dtype, ceil)"
