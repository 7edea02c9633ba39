"""``mathml.convert``: TeX to MathML. A converter smaller than pandoc gets matrices and ``aligned`` wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
from bs4 import BeautifulSoup

from atlas.directives import mathml
from atlas.directives.mathml import MathError, convert


def _math(tex: str, *, display: bool = True) -> BeautifulSoup:
    (made,) = convert([(tex, display)])
    return BeautifulSoup(made, "html.parser").math


def _cells(table: BeautifulSoup) -> list[list[str]]:
    return [[cell.get_text() for cell in row.find_all("mtd")] for row in table.find_all("mtr")]


def test_inline_and_displayed() -> None:
    for display, kind in ((False, "inline"), (True, "block")):
        math = _math("x", display=display)
        assert math["display"] == kind
        assert math["xmlns"] == "http://www.w3.org/1998/Math/MathML"


def test_the_source_is_kept_for_those_who_copy() -> None:
    assert _math(r"a < b").annotation.get_text() == "a < b"


def test_matrix() -> None:
    math = _math(r"\begin{pmatrix} a & b \\ c & d \end{pmatrix}")
    assert _cells(math.mtable) == [["a", "b"], ["c", "d"]]
    assert [fence.get_text() for fence in math.find_all("mo")] == ["(", ")"]


def test_matrix_in_a_product() -> None:
    """The Jacobian of the site: brackets of square form, fractions in the cells, a vector beside it."""
    math = _math(
        r"v^T \begin{bmatrix} \frac{\partial y_1}{\partial x_1} & 0 \\ 0 & \frac{\partial y_2}{\partial x_2} \end{bmatrix}"
    )
    assert [len(row) for row in _cells(math.mtable)] == [2, 2]
    assert len(math.mtable.find_all("mfrac")) == 2
    assert not math.msup.find("mtable")


def test_aligned() -> None:
    math = _math(r"\begin{aligned} y &= x^2 \\ &= x \cdot x \end{aligned}")
    rows = _cells(math.mtable)
    assert [row[0] for row in rows] == ["y", ""]
    assert rows[0][1].startswith("=") and "⋅" in rows[1][1]
    assert "right" in math.mtd["columnalign"]


def test_cases() -> None:
    math = _math(r"f(x) = \begin{cases} x & \text{if } x > 0 \\ 0 & \text{otherwise} \end{cases}")
    assert [row[0] for row in _cells(math.mtable)] == ["x", "0"]
    assert "otherwise" in math.mtable.get_text()
    assert "{" in [fence.get_text() for fence in math.find_all("mo")]


def test_a_brace_below_a_term_is_a_line() -> None:
    """A brace is cut off at its end by Chromium, and does not stretch in a font without its parts."""
    math = _math(r"\underbrace{y \cdot \frac{1}{a}}_{\text{by } a} + \underbrace{s}_{\text{one}}")
    assert [term.get_text() for term in math.select("munder > mrow.braced")] == ["y⋅1a", "s"]
    assert "\u23df" not in math.get_text() and math.annotation.get_text().count("underbrace") == 2


def test_a_function_stands_off_its_argument() -> None:
    def gaps(tex: str) -> list[str]:
        return [gap["width"] for gap in _math(tex).select("mspace")]

    assert gaps(r"\cos x_2") == ["0.167em"]
    assert gaps(r"\log(x) + \sin(x)") == []


@pytest.mark.parametrize(
    "tex",
    [
        r"\frac{\partial z}{\partial x} = \sum_i \frac{\partial z}{\partial y_i}\frac{\partial y_i}{\partial x}",
        r"\mathbb{R}^{n \times m} \to \mathbb{R}, \quad \lVert x \rVert_2, \quad \nabla_\theta L",
        r"\underbrace{a + b}_{\text{leaf}}, \quad \hat{y}, \quad \bar{x}, \quad \operatorname{vec}(W)",
        r"\left( \frac{a}{b} \right)^2, \quad \sqrt[3]{x}, \quad \mathbf{J}^\top \boldsymbol{v}",
    ],
)
def test_what_the_pages_are_likely_to_use(tex: str) -> None:
    assert not _math(tex).find("merror")


def test_many_at_once_keep_their_order() -> None:
    formulas = [(f"x_{{{n}}}", n % 2 == 0) for n in range(20)]
    made = [BeautifulSoup(one, "html.parser").math for one in convert(formulas)]
    assert [math.annotation.get_text() for math in made] == [tex for tex, _ in formulas]
    assert [math["display"] == "block" for math in made] == [display for _, display in formulas]


@pytest.mark.parametrize("tex", [r"\frac{1", r"\begin{nothing} x", r"\undefinedmacro x", "{"])
def test_what_cannot_be_converted_is_an_error(tex: str) -> None:
    """A formula is never shown as its source, or left out, without a word."""
    with pytest.raises(MathError, match="Could not convert"):
        convert([("x", False), (tex, True)])


def test_a_pandoc_that_says_nothing_is_an_error_with_its_exit_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    convert([("x", False)])  # the version of its format is known then, and not asked of the one below
    mute = tmp_path / "pandoc"
    mute.write_text("#!/bin/sh\nexit 3\n")
    mute.chmod(0o755)
    monkeypatch.setattr(mathml.pypandoc, "get_pandoc_path", lambda: str(mute))
    with pytest.raises(MathError, match="pandoc ended with exit code 3"):
        convert([("x", False)])
