"""What another version does is said with both values; a sentence that no measurement bears out fails the build."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from bs4 import BeautifulSoup

from atlas.versions import measured
from atlas.versions.measuring import then_and_now
from tiny.tiny_site import Build, build, written
from versions.some_data import OWN, ROWS, data, keep

KINK = "kinks: x.abs() at x = [0]"
GOOD = f"""\
# Changed

```{{torch-changed}} 99.1
:probe: {KINK}

What you do about it.
```
"""
BAD = f"""\
# Bad

```{{torch-changed}} 99.1
Without a probe.
```

```{{torch-changed}} 99.1
:probe: kinks: x.no() at x = [0]

An unknown probe.
```

```{{torch-changed}} 99.2
:probe: {KINK}

Nothing changed there.
```
"""
MESSAGE = "this is how it is said now"
ERROR = f'''"""
{MESSAGE}
{"=" * len(MESSAGE)}

.. in-short::

   The cause.

   .. code-block:: diff

      - raise RuntimeError("{MESSAGE}")
      + calm = 1

   **Not this:** nothing.
"""

try:
    raise RuntimeError("{MESSAGE}")
except RuntimeError as error:
    print("RuntimeError:", error)

# %%
# The fix
# -------
# Text.

calm = 1
assert calm == 1
'''
#: An example of a chapter that is not about errors.
LESSON = '"""\nLesson\n======\n\nText.\n"""\n\nassert 1 + 1 == 2\n'


def site(root: Path, page: str) -> Path:
    """A tiny site with a page, and data of two versions: a kink changed in the first, and a message in both."""
    written(
        root,
        {
            "docs/changed.md": page,
            "docs/reference/versions.md": "# Versions\n",
            str(then_and_now.PAGE): ROWS.replace("now\n", "now\n\n## Part\n", 1),
            "examples/errors/first.py": ERROR,
            "examples/lessons/lesson.py": LESSON,
        },
    )
    of_both = []
    for version in ("99.1.0", "99.2.0"):
        one = data(root, version, probes={"kinks": {"x.abs() at x = [0]": "[1]"}})
        was = f"RuntimeError: {MESSAGE}\n"
        one["examples"]["errors/first"]["differ"] = [{"cell": 1, "was": was, "is": was.replace("now", "then")}]
        of_both.append(one)
    of_both[1]["examples"]["lessons/lesson"]["faults"] = [{"cell": 0, "code": "assert", "said": "AssertionError"}]
    keep(root, *of_both)
    return root


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Build:
    built = build(site(tmp_path_factory.mktemp("good"), GOOD))
    assert built.code == 0, built.output
    return built


def page(built: Build, name: str) -> BeautifulSoup:
    return BeautifulSoup((built.out / f"{name}.html").read_text(encoding="utf-8"), "html.parser")


def words(node: object) -> str:
    return " ".join(node.get_text().split())


def test_both_values_are_shown(good: Build) -> None:
    (box,) = page(good, "changed").select(".torch-changed")
    assert words(box) == (
        f"Changed in PyTorch 99.1. x.abs() at x = [0]: [0] on {OWN}, [1] on 99.1.0. What you do about it."
    )
    assert [code.get_text() for code in box.select("code")] == ["x.abs() at x = [0]", "[0]", "[1]"]


def test_the_markdown_has_the_text(good: Build) -> None:
    twin = (good.out / "changed.html.md").read_text(encoding="utf-8")
    assert f"**Changed in PyTorch 99.1.** `x.abs() at x = [0]`: `[0]` on {OWN}, `[1]` on 99.1.0." in twin
    assert "What you do about it." in twin and "<div" not in twin


def test_a_page_says_on_which_versions_it_holds(good: Build) -> None:
    (lesson,) = page(good, "gallery/lessons/lesson").select(".claims")
    assert words(lesson).endswith("They hold on PyTorch 99.1.0 too.")  # one of its asserts failed on 99.2.0
    assert lesson.a["href"] == "../../reference/versions.html"
    (first,) = page(good, "gallery/errors/first").select(".claims")
    assert words(first).endswith("They hold on PyTorch 99.1.0 and 99.2.0 too.")


def test_an_error_page_has_the_other_wording(good: Build) -> None:
    (fold,) = page(good, "gallery/errors/first").select("details.wordings")
    assert words(fold.summary) == "In other versions of PyTorch"
    assert "On PyTorch 99.1.0 and 99.2.0:" in words(fold)
    assert words(fold.pre) == "RuntimeError: this is how it is said then"
    assert not page(good, "gallery/lessons/lesson").select("details.wordings")


def test_what_was_not_measured_is_refused(tmp_path: Path) -> None:
    built = build(site(tmp_path, BAD))
    said = dict(re.findall(r"changed\.md:(\d+): \w+: (.*)", built.output))
    assert built.code != 0 and sorted(map(int, said)) == [3, 7, 13], built.output
    assert "name what was measured: ':probe: kinks:" in said["3"]
    assert "no probe 'kinks: x.no() at x = [0]'" in said["7"]
    assert f"'{KINK}' was not measured to change in 99.2: '[0]' on {OWN}, '[1]' on 99.1.0" in said["13"]


def test_broken_data_are_named(tmp_path: Path) -> None:
    root = site(tmp_path, GOOD)
    broken = root / measured.FOLDER / "99.1.0.json"
    broken.write_text("{")
    built = build(root)
    assert built.is_refused_with(f"{broken}: cannot be read as measurements: ")
    assert "nox -s versions -- 99.1.0" in built.output and "reading sources" not in built.output
