"""What ``nox -s new`` makes is a page: with nothing replaced, it builds and keeps what this suite asks of every page.

And no build that is published has it, before all that is to be written is written.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import test_alternative_text
import test_code_of_examples
import test_error_pages
import test_example_pages
import test_neighbours
import test_notebooks
import test_scripts_run_alone
import test_shape_of_lessons
import test_two_halves
from bs4 import BeautifulSoup

import error_pages
from atlas.new_page.make import Wish, make
from markup import code_cells, read
from sources import ROOT
from tiny import small_repository
from tiny.tiny_site import Build, build, copy_of, written

#: Titles with what reStructuredText and Python would take for their own.
MADE = [
    Wish("graphs/a_lesson", "Why x_ is `None` * 2, and \\n is not"),
    Wish("graphs/another_lesson", "Another", after="first"),
    Wish("cuda/a_measurement", "How fast {this} is"),
    Wish("errors/an_error", "it's a \"string\", not a_ *number* of `x`: {'key': [1]}", group="Backward"),
]
SCRIPTS = [f"{wish.where}.py" for wish in MADE]


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = small_repository.written(tmp_path_factory.mktemp("repository"))
    for wish in MADE:
        make(root, wish)
    for page in ("broken", "misfit"):  # they stand for pages about errors, and are none
        (root / f"examples/errors/{page}.py").unlink()
    pages = {path.relative_to(root).as_posix(): path.read_text() for path in root.glob("examples/*/*.py")}
    return written(root, pages)


@pytest.fixture(scope="module")
def built(repository: Path) -> Build:
    done = build(repository)
    assert done.code == 0, done.output
    return done


@pytest.fixture(params=SCRIPTS)
def new(request: pytest.FixtureRequest) -> str:
    return request.param


def page_of(built: Build, script: str) -> BeautifulSoup:
    return read(built.out / "gallery" / Path(script).with_suffix(".html"))


def test_it_has_its_title_word_for_word(built: Build) -> None:
    for wish, script in zip(MADE, SCRIPTS, strict=True):
        heading = page_of(built, script).select_one("article h1")
        assert heading.get_text().removesuffix("¶") == wish.title


def test_it_is_complete(built: Build, repository: Path, new: str) -> None:
    page = page_of(built, new)
    assert not test_example_pages.missing_parts(page, test_example_pages.sections_of(new))
    assert test_example_pages.stated_checks(page) == test_example_pages.asserts(repository / "examples" / new, page)
    assert not test_alternative_text.faults(page)


def test_its_code_fits(built: Build, repository: Path, new: str) -> None:
    page = page_of(built, new)
    assert code_cells(page) and not test_code_of_examples.too_long(page)
    assert not test_code_of_examples.long_cells(page) and not test_code_of_examples.holes(page)
    assert not test_code_of_examples.prompts(repository / "examples" / new)


def test_it_runs_alone(repository: Path, new: str, tmp_path: Path) -> None:
    assert test_scripts_run_alone.fault(repository / "examples" / new, tmp_path, real=False) is None


def test_its_notebook_has_no_directives(built: Build, new: str) -> None:
    test_notebooks.test_the_text_has_no_directives(built.out, new)


def test_a_lesson_has_the_shape_of_one(built: Build) -> None:
    for script in SCRIPTS[:3]:
        test_shape_of_lessons.test_the_answer_is_below_the_title(built.out, script)
        test_shape_of_lessons.test_mistakes_stand_before_the_middle_and_the_page_is_short(built.out, script)


def test_see_also_names_the_neighbors(repository: Path) -> None:
    order = [
        "graphs_first",
        "graphs_another_lesson",
        "graphs_second",
        "graphs_a_lesson",
        "modes_third",
        "modes_fourth",
    ]
    order += ["cuda_fifth", "cuda_a_measurement"]
    for place, name in enumerate(order):
        expected = {"Before": order[place - 1] if place else "", "Next": (*order, "")[place + 1]}
        chapter, _, page = name.partition("_")
        source = (repository / "examples" / chapter / f"{page}.py").read_text()
        assert test_neighbours.named(source) == {word: other for word, other in expected.items() if other}


def test_a_page_about_an_error_raises_its_title(built: Build, repository: Path) -> None:
    found = error_pages.read(repository / "examples/errors/an_error.py")
    assert found.title == MADE[3].title
    assert error_pages.message(found.title, page_of(built, SCRIPTS[3]))
    assert not test_error_pages.faults([found])


def test_a_page_that_needs_a_gpu_has_two_halves(built: Build, repository: Path) -> None:
    assert not test_two_halves.faults_of_script((repository / "examples" / SCRIPTS[2]).read_text())
    page = page_of(built, SCRIPTS[2])
    assert test_two_halves.on_paper(page, test_example_pages.FIGURES)
    assert len(test_two_halves.on_paper(page, test_example_pages.OUTPUTS)) >= test_two_halves.OUTPUTS_ON_PAPER


def test_its_style_is_right(repository: Path, tmp_path: Path) -> None:
    copy_of(repository / "examples", tmp_path / "examples")
    shutil.copy(ROOT / "examples/ruff.toml", tmp_path / "examples")
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    ruff = Path(sys.executable).with_name("ruff")
    for check in (["check"], ["format", "--check"]):
        scripts = [f"examples/{script}" for script in SCRIPTS]
        done = subprocess.run([ruff, *check, "--no-cache", *scripts], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("setting", ["atlas_release=1", "atlas_commit=0123abc"])
def test_no_build_that_is_published_has_it(built: Build, repository: Path, setting: str) -> None:
    done = build(repository, options=["-D", setting])
    assert done.is_refused_with("a page is published when nothing in it is the template's")
    for script in SCRIPTS:
        lines = (repository / "examples" / script).read_text().splitlines()
        marked = [number for number, line in enumerate(lines, 1) if "to write:" in line.lower()]
        assert all(f"examples/{script}:{number}: " in done.output for number in marked)


def test_any_other_build_names_it(built: Build) -> None:
    assert "still the template's: examples/graphs/a_lesson.py:7: " in built.output
