"""What another version does is said with both values; a sentence that no measurement bears out fails the build."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from bs4 import BeautifulSoup

from atlas.versions.changes import DATA
from tiny.tiny_site import Build, build, written

KINK = "kinks: x.abs() at x = [0]"
GOOD = f"""\
# Changed

```{{torch-changed}} 2.14
:probe: {KINK}

What you do about it.
```
"""
BAD = f"""\
# Bad

```{{torch-changed}} 2.14
Without a probe.
```

```{{torch-changed}} 2.14
:probe: kinks: x.no() at x = [0]

An unknown probe.
```

```{{torch-changed}} 2.15
:probe: {KINK}

Nothing changed there.
```
"""
MEASURED = json.dumps(
    {
        "versions": {"2.13.0": {}, "2.14.1": {}, "2.15.0": {}},
        "kinks": {"x.abs() at x = [0]": {"2.13.0": "[0]", "2.14.1": "[1]"}},
        "messages": {"errors/first: RuntimeError: now": {"2.13.0": "RuntimeError: now"}},
    }
)


def site(root: Path, page: str, data: str = MEASURED) -> Path:
    """A tiny site with a page, and data of three versions."""
    return written(root, {"docs/changed.md": page, f"docs/{DATA}": data})


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Build:
    built = build(site(tmp_path_factory.mktemp("good"), GOOD))
    assert built.code == 0, built.output
    return built


def words(node: object) -> str:
    return " ".join(node.get_text().split())


def test_both_values_are_shown(good: Build) -> None:
    page = BeautifulSoup((good.out / "changed.html").read_text(encoding="utf-8"), "html.parser")
    (box,) = page.select(".torch-changed")
    assert words(box) == (
        "Changed in PyTorch 2.14. x.abs() at x = [0]: [0] on 2.13.0, [1] on 2.14.1. What you do about it."
    )
    assert [code.get_text() for code in box.select("code")] == ["x.abs() at x = [0]", "[0]", "[1]"]


def test_the_markdown_has_the_text(good: Build) -> None:
    twin = (good.out / "changed.html.md").read_text(encoding="utf-8")
    assert "**Changed in PyTorch 2.14.** `x.abs() at x = [0]`: `[0]` on 2.13.0, `[1]` on 2.14.1." in twin
    assert "What you do about it." in twin and "<div" not in twin


def test_what_was_not_measured_is_refused(tmp_path: Path) -> None:
    built = build(site(tmp_path, BAD))
    said = dict(re.findall(r"changed\.md:(\d+): \w+: (.*)", built.output))
    assert built.code != 0 and sorted(map(int, said)) == [3, 7, 13], built.output
    assert "name what was measured: ':probe: kinks:" in said["3"]
    assert "no probe 'kinks: x.no() at x = [0]'" in said["7"]
    measured = "'[0]' on 2.13.0, '[1]' on 2.14.1, '[1]' on 2.15.0"
    assert f"'{KINK}' was not measured to change in 2.15: {measured}" in said["13"]


def test_broken_data_are_named(tmp_path: Path) -> None:
    built = build(site(tmp_path, GOOD, data="{"))
    assert built.code != 0 and "changed.md:3: ERROR: " in built.output
    assert "reference/versions.json cannot be used: JSONDecodeError" in built.output
