"""sphinx-gallery's internals are where the site expects them, and do what it expects."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from atlas.gallery import sphinx_gallery_patches
from atlas.gallery.process import Outcome
from gallery.faulty import HEALTHY

Run = Callable[..., dict[str, Outcome]]
LATER = HEALTHY + "\n# %%\n# Later.\n\nprint(x * 2)\n"


@pytest.mark.parametrize(("end", "printed"), [("# %%", []), ("# Later.", ["2."]), ("", ["2.", "4."])])
def test_code_from_a_line_on_is_shown_and_not_run(run: Run, end: str, printed: list[str]) -> None:
    made = run({"page": LATER}, end=LATER.splitlines().index(end) + 1 if end else None)["page"].job.made
    text = (made / "page.rst").read_text(encoding="utf-8")
    assert re.findall(r"(?<!torch\.)tensor\((\d\.)", text) == printed
    assert "    print(x * 2)" in text and (made / "page.py.md5").exists() == (not end)


def test_a_cell_has_hidden_lines() -> None:
    hidden = "# sphinx_gallery_start_ignore\nassert x\n# sphinx_gallery_end_ignore\nx = 1\n"
    assert sphinx_gallery_patches.without_hidden(hidden).strip() == "x = 1"
