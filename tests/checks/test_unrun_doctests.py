"""``untested_doctests.untested`` over the many shapes of Markdown's fences. A plain fence with prompts is never run."""

from __future__ import annotations

import pytest

from atlas.checks.unrun_doctests import untested

RUN = {
    "backticks": "```{doctest}\n>>> 1\n1\n```\n",
    "tildes": "~~~{doctest}\n>>> 1\n1\n~~~\n",
    "colons": ":::{doctest}\n>>> 1\n1\n:::\n",
    "a space before the name": "``` {doctest}\n>>> 1\n1\n```\n",
    "a group's name and options": "```{doctest} group\n:options: +ELLIPSIS\n\n>>> 1\n1\n```\n",
    "longer fence": "`````{doctest}\n>>> 1\n1\n`````\n",
    "closed by a longer fence": "```{doctest}\n>>> 1\n1\n`````\n",
    "never closed": "```{doctest}\n>>> 1\n1\n",
    "in a note": "````{note}\n```{doctest}\n>>> 1\n1\n```\n````\n",
    "colons in colons": "::::{note}\n:::{doctest}\n>>> 1\n1\n:::\n::::\n",
    "backticks in colons": ":::{note}\n```{doctest}\n>>> 1\n1\n```\n:::\n",
    "three deep": ":::::{grid}\n::::{card}\n:::{doctest}\n>>> 1\n1\n:::\n::::\n:::::\n",
    "indented, in a list": "- item\n\n  ```{doctest}\n  >>> 1\n  1\n  ```\n",
    "beside a list's mark": "- ```{doctest}\n  >>> 1\n  1\n  ```\n",
    "quoted": "> ```{doctest}\n> >>> 1\n> 1\n> ```\n",
    "after a plain fence": "```\ntext\n```\n\n```{doctest}\n>>> 1\n1\n```\n",
    "after a plain fence in a note": "````{note}\n```\ntext\n```\n\n```{doctest}\n>>> 1\n1\n```\n````\n",
    "after code between fences' marks": "```x``` is code\n\n```{doctest}\n>>> 1\n1\n```\n",
    "no prompt at all": "# Title\n\n```python\nprint(1)\n```\n\n> quoted\n>> twice\n",
    "prompts inside a line": "Type `>>> 1` after the prompt >>> and see.\n",
}

NOT_RUN = {
    "plain": ("```\n>>> 1\n```\n", [2]),
    "python": ("text\n\n```python\n>>> 1\n1\n```\n", [4]),
    "pycon": ("```pycon\n>>> 1\n```\n", [2]),
    "tildes": ("~~~python\n>>> 1\n~~~\n", [2]),
    "another directive": ("```{code-block} python\n>>> 1\n```\n", [2]),
    "directive of colons": (":::{note}\n>>> 1\n:::\n", [2]),
    "bare paragraph": ("Text.\n\n>>> 1\n1\n", [3]),
    "nothing after the prompt": (">>>\n", [1]),
    "two paragraphs": (">>> 1\n1\n\n>>> 2\n2\n", [1, 4]),
    "once for a fence": ("```python\n>>> 1\n1\n\n>>> 2\n2\n```\n", [2]),
    "once for each fence": ("```\n>>> 1\n```\n```\n>>> 2\n```\n", [2, 5]),
    "indented, in a list": ("- item\n\n  ```python\n  >>> 1\n  ```\n", [4]),
    "beside a list's mark": ("1. ```python\n   >>> 1\n   ```\n", [2]),
    "indented code": ("Text.\n\n    >>> 1\n    1\n", [3]),
    "quoted": ("> ```python\n> >>> 1\n> ```\n", [2]),
    "in a note": ("````{note}\n```python\n>>> 1\n```\n````\n", [3]),
    "plain, in a note": (":::{note}\n```\n>>> 1\n```\n:::\n", [3]),
    "shown in a longer fence": ("````md\n```{doctest}\n>>> 1\n```\n````\n", [3]),
    "after a doctest": ("```{doctest}\n>>> 1\n1\n```\n\n>>> 2\n2\n", [6]),
    "after a doctest in a note": ("````{note}\n```{doctest}\n>>> 1\n1\n```\n>>> 2\n````\n", [6]),
    "the other mark does not close": ("~~~python\n```\n>>> 1\n~~~\n", [3]),
    "a shorter mark does not close": ("````python\n```\n>>> 1\n````\n", [3]),
}


@pytest.mark.parametrize("name", RUN)
def test_what_is_run_is_left_alone(name: str) -> None:
    assert list(untested(RUN[name])) == []


@pytest.mark.parametrize("name", NOT_RUN)
def test_what_is_not_run_is_named_by_its_line(name: str) -> None:
    markdown, lines = NOT_RUN[name]
    assert list(untested(markdown)) == lines


@pytest.mark.parametrize("name", NOT_RUN)
def test_a_fence_that_is_closed_does_not_change_what_follows(name: str) -> None:
    markdown, lines = NOT_RUN[name]
    assert list(untested(f"{markdown}\n{RUN['backticks']}\n{RUN['colons']}")) == lines
