"""Prompts in the many shapes of Markdown's fences: those that no doctest runs are named by file and line."""

from __future__ import annotations

import re

import pytest

from tiny.tiny_site import build, written

RUN = {
    "backticks": "```{doctest}\n>>> 1\n1\n```\n",
    "quoted": "> ```{doctest}\n> >>> 1\n> 1\n> ```\n",
    "after a plain fence": "```\ntext\n```\n\n```{doctest}\n>>> 1\n1\n```\n",
    "no prompt at all": "# Title\n\n```python\nprint(1)\n```\n\n> quoted\n>> twice\n",
    "a test of code and its output": "```{testcode}\nprint('>>> 1')\n```\n\n```{testoutput}\n>>> 1\n```\n",
    "prompts inside a line": "Type `>>> 1` after the prompt >>> and see.\n",
}

#: The line that is named is that of the fence, or of the bare prompt.
NOT_RUN = {
    "plain": ("```\n>>> 1\n```\n", [1]),
    "directive of colons": (":::{note}\n>>> 1\n:::\n", [2]),
    "bare paragraph": ("Text.\n\n>>> 1\n1\n", [3]),
    "in reStructuredText": ("```{eval-rst}\n>>> 1\n1\n```\n", [2]),
    "indented code": ("Text.\n\n    >>> 1\n    1\n", [3]),
    "quoted": ("> ```python\n> >>> 1\n> ```\n", [1]),
    "shown in a longer fence": ("````md\n```{doctest}\n>>> 1\n```\n````\n", [1]),
}


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[int]]:
    """The lines that are named, by the text of the page: one site has a page for each text."""
    texts = [*RUN.values(), *(text for text, _ in NOT_RUN.values())]
    pages = {f"docs/case-{number}.md": text for number, text in enumerate(texts)}
    done = build(written(tmp_path_factory.mktemp("site"), pages), "dummy")
    named: dict[str, list[int]] = {text: [] for text in texts}
    for number, line in re.findall(r"case-(\d+)\.md:(\d+): ERROR: this example is never run", done.output):
        named[texts[int(number)]].append(int(line))
    return {text: sorted(lines) for text, lines in named.items()}


@pytest.mark.parametrize("name", RUN)
def test_what_is_run_is_left_alone(said: dict[str, list[int]], name: str) -> None:
    assert said[RUN[name]] == []


@pytest.mark.parametrize("name", NOT_RUN)
def test_what_is_not_run_is_named_by_its_line(said: dict[str, list[int]], name: str) -> None:
    text, lines = NOT_RUN[name]
    assert said[text] == lines
