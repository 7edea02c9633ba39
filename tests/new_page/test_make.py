"""``nox -s new`` writes a script, its place and the links to it; of a page that cannot be, it says why and writes nothing."""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from atlas.new_page import places, to_write
from atlas.new_page.make import ORDER, TAGS, PageError, Wish, make
from atlas.related import tags
from sources import ROOT
from tiny.small_repository import written


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return written(tmp_path)


def files(root: Path) -> dict[str, str]:
    return {
        path.relative_to(root).as_posix(): path.read_text()
        for path in root.rglob("*.*")
        if path.suffix in (".py", ".toml")
    }


def changed(root: Path, wish: Wish) -> dict[str, str]:
    """The files that a wish changes, with what is in them then."""
    before = files(root)
    made = [path.relative_to(root).as_posix() for path in make(root, wish)]
    after = {name: text for name, text in files(root).items() if before.get(name) != text}
    assert set(made) == set(after)
    return after


@pytest.mark.parametrize(
    ("wish", "around"),
    [
        (Wish("graphs/mine", "Mine"), ("graphs/second", "modes/third")),
        (Wish("graphs/mine", "Mine", after="first"), ("graphs/first", "graphs/second")),
        (Wish("modes/mine", "Mine"), ("modes/fourth", "cuda/fifth")),
        (Wish("modes/mine", "Mine", after="third"), ("modes/third", "modes/fourth")),
        (Wish("examples/cuda/mine.py", "Mine"), ("cuda/fifth", "")),
    ],
    ids=lambda part: part.where + (part.after or "") if isinstance(part, Wish) else "",
)
def test_a_page_stands_in_its_chapter_and_its_neighbors_link_to_it(
    root: Path, wish: Wish, around: tuple[str, str]
) -> None:
    made = changed(root, wish)
    (mine,) = (name for name in made if name.endswith("/mine.py"))
    order = runpy.run_path(str(root / ORDER))["CHAPTERS"]
    page = mine.removeprefix("examples/").removesuffix(".py")
    assert places.neighbors(order, *page.split("/")) == around
    assert set(made) == {mine, ORDER, TAGS} | {f"examples/{name}.py" for name in around if name}
    for word, back, other in zip(("Before", "Next"), ("Next", "Before"), around, strict=True):
        assert (places.item(word, other) in made[mine]) == bool(other)
        if other:
            neighbor = made[f"examples/{other}.py"]
            assert neighbor.count(f"# - {back}: ") == 1 and places.item(back, page) in neighbor
            assert neighbor.endswith("# - Something else, which\n#   goes on.\n")
            assert neighbor.count("#   why.") <= 1  # what was said of another page is gone


def test_a_page_about_an_error_stands_in_its_group(root: Path) -> None:
    made = changed(root, Wish("errors/mine", "it's *wrong*", group="shapes"))
    assert set(made) == {"examples/errors/mine.py", ORDER, TAGS}
    order = runpy.run_path(str(root / ORDER))
    assert order["ERRORS"]["Shapes do not fit"] == ["misfit", "mine"]
    assert order["CHAPTERS"]["errors"] == ["broken", "misfit", "mine"]


def test_it_has_the_tag_that_is_usual_in_its_chapter(root: Path) -> None:
    for wish, words in ((Wish("graphs/mine", "M"), ["one"]), (Wish("errors/other", "M", group="Back"), ["error"])):
        made = changed(root, wish)
        assert tags.read(made[TAGS]).of[wish.where] == words
        pages = [
            path.removesuffix(".py").removeprefix("examples/") for path in files(root) if path.startswith("examples/")
        ]
        pages = [page for page in pages if page.count("/") == 1]
        assert not list(tags.faults(root / TAGS, pages))


def test_the_order_of_the_site_keeps_its_format(tmp_path: Path) -> None:
    path = tmp_path / "reading_order.py"
    source = (ROOT / ORDER).read_text()
    for number in range(6):  # the list of one line gets too long
        source = places.named(source, "CHAPTERS", "modes", f"a_page_with_a_long_name_{number}", "freezing")
        source = places.named(source, "ERRORS", "Several processes", f"one_more_page_{number}", None)
    path.write_text(source)
    ruff = [
        Path(sys.executable).with_name("ruff"),
        "format",
        "--no-cache",
        "--check",
        "--config",
        ROOT / "pyproject.toml",
    ]
    done = subprocess.run([*ruff, path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("wish", "said"),
    [
        (Wish("", ""), "name the page, and what people search for"),
        (Wish("mine", "Mine"), "write it as chapter/page, as in graphs/my_page"),
        (Wish("graph/mine", "Mine"), "the chapters are graphs, errors, modes, cuda"),
        (Wish("../mine", "Mine"), "there is no chapter '..'"),
        (Wish("graphs/", "Mine"), "'' is no name for a script"),
        (Wish("graphs/my-page", "Mine"), "a-z, digits and underscores"),
        (Wish("graphs/a/b", "Mine"), "a-z, digits and underscores"),
        (Wish(f"graphs/{'x' * 51}", "Mine"), "use at most 50"),
        (Wish("graphs/class", "Mine"), "'class' is no name for a script"),
        (Wish("graphs/first", "Mine"), "there is examples/graphs/first.py already"),
        (Wish("graphs/third", "Mine"), "there is examples/modes/third.py already"),
        (Wish("graphs/mine", " "), "a page needs a title"),
        (Wish("graphs/mine", "two\nlines"), "one line of at most 118 characters"),
        (Wish("graphs/mine", "x" * 117), "one line of at most 118 characters"),
        (Wish("graphs/mine", 'a """ b'), "one line of at most 118 characters"),
        (Wish("graphs/mine", "Mine", after="third"), "names no page of the chapter's order: first, second"),
        (Wish("graphs/mine", "Mine", group="Backward"), "--group is for pages about errors"),
        (Wish("errors/mine", "Mine"), "--group 'Shapes do not fit'"),
        (Wish("errors/mine", "Mine", group="Nothing"), "say in which group"),
        (Wish("errors/mine", "Mine", after="broken"), "pages about errors have groups"),
    ],
)
def test_a_page_that_cannot_be_changes_nothing(root: Path, wish: Wish, said: str) -> None:
    before = files(root)
    with pytest.raises(PageError) as refused:
        make(root, wish)
    assert said in str(refused.value)
    assert files(root) == before


def command(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """What the session runs: a Python that has no package of the site."""
    program = [sys.executable, "-I", ROOT / "conf/new_page.py", "--root", root]
    return subprocess.run([*program, *arguments], capture_output=True, text=True, check=False)


def test_the_command_says_what_it_did_and_what_is_next(root: Path) -> None:
    done = command(root, "graphs/mine", "Mine")
    assert done.returncode == 0 and "new: examples/graphs/mine.py runs as it is" in done.stdout
    again = command(root, "graphs/mine", "Mine")
    assert again.returncode == 2 and again.stderr.startswith("new: there is examples/graphs/mine.py already")


def test_what_is_still_to_be_written_has_file_and_line(root: Path) -> None:
    assert command(root, "--check").returncode == 0
    make(root, Wish("graphs/mine", "Mine"))
    done = command(root, "--check")
    script = (root / "examples/graphs/mine.py").read_text().splitlines()
    found = [line for line in done.stdout.splitlines() if line.startswith("examples/graphs/mine.py:")]
    lines = [int(line.split(":")[1]) for line in found]
    assert len(done.stdout.splitlines()) == len(found) + 1 and "examples/tags.toml:6: mine = " in done.stdout
    assert done.returncode == 1
    assert lines == [number for number, line in enumerate(script, 1) if "to write:" in line.lower()]


@pytest.mark.parametrize("wish", [Wish("cuda/mine", "Mine"), Wish("errors/mine", "Mine", group="Back")])
def test_a_sentence_is_the_templates_without_its_mark_too(root: Path, wish: Wish) -> None:
    """And the second line of it without the first; what is left when all is replaced, finished pages have too."""
    script = make(root, wish)[0].read_text()
    sentences = len(list(to_write.left(script)))
    unmarked = to_write.MARK.sub("", script)
    assert sentences >= 8 and len(list(to_write.left(unmarked))) >= sentences / 2
    kept = [line for line in script.splitlines() if "to write:" not in line.lower()]
    assert list(to_write.left("\n".join(kept)))


def test_no_finished_page_has_a_line_of_a_template() -> None:
    finished = [path for path in (ROOT / "examples").glob("*/*.py") if "to write:" not in path.read_text().lower()]
    assert len(finished) > 100
    assert not [found for path in finished for found in to_write.left(path.read_text())]
