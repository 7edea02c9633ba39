"""Write the notebook and the script of a page, and put links to them below it, where an example has its own.

A page whose code needs this site's sources says so in the same place, and has neither.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.transforms import SphinxTransform

from atlas.page_parts.foot import install_line
from atlas.toolbox import write_if_changed

from . import files
from .blocks import Code, Text, blocks
from .own_needs import own_needs

FOLDER = "notebooks"
SUFFIXES = (".ipynb", ".py")
_GALLERY = "gallery/"


def folder(app: Sphinx) -> Path:
    """Where a build keeps the notebooks and scripts of its Markdown pages, by the names of the pages."""
    return Path(app.doctreedir).parent / FOLDER


def made_of(app: Sphinx, page: str) -> list[Path]:
    """The notebook and the script of a page, which has them or has not."""
    return [folder(app) / f"{page}{suffix}" for suffix in SUFFIXES]


class Offer(SphinxTransform):
    """Put the box, or the sentence, below a page that shows code."""

    default_priority = 700

    def apply(self, **kwargs: Any) -> None:
        path = Path(self.env.doc2path(self.env.docname))
        if path.suffix != ".md":
            return
        parts = _parts(path.read_text(encoding="utf-8"), self.env.app)
        if not parts:
            return
        try:
            needs = own_needs(_code(parts), path.parent)
        except SyntaxError:  # the build runs the code, and says where it is wrong
            return
        place = next(reversed(list(self.document.findall(nodes.section))), self.document)
        place += _why_not(needs) if needs else self._box(parts)

    def _box(self, parts: list[Text | Code]) -> nodes.container:
        """Write the files, and return the links to them."""
        box = nodes.container(classes=["sphx-glr-footer"])
        words = ("Download Jupyter notebook: {name}", "Download Python source code: {name}")
        texts = (files.notebook(parts), files.script(parts))
        for path, said, text in zip(made_of(self.env.app, self.env.docname), words, texts, strict=True):
            write_if_changed(path, text)
            # Sphinx takes a file from where it is, seen from the page
            target = os.path.relpath(path, Path(self.env.doc2path(self.env.docname)).parent)
            label = nodes.literal("", said.format(name=path.name), classes=["xref", "download"])
            link = addnodes.download_reference("", "", label, reftarget=target, refdoc=self.env.docname)
            box += nodes.container("", nodes.paragraph("", "", link), classes=["sphx-glr-download"])
        box += install_line.line(files.imported_by(parts))
        return box


def _parts(source: str, app: Sphinx) -> list[Text | Code]:
    """The blocks of a page, with what all its doctests begin with; none for a page that shows no code."""
    parts = blocks(source, app.env.myst_config)
    if not any(isinstance(part, Code) and part.shown for part in parts):
        return []
    first = next(place for place, part in enumerate(parts) if isinstance(part, Code))
    if "{doctest}" in source and app.config.doctest_global_setup:
        parts.insert(first, Code(app.config.doctest_global_setup))
    return parts


def _code(parts: list[Text | Code]) -> str:
    return "\n".join(part.source for part in parts if isinstance(part, Code))


def _why_not(needs: list[str]) -> nodes.paragraph:
    sentence = "The code of this page needs {names} of this site's build. It runs where the site is built, and has no notebook."
    before, _brace, after = sentence.partition("{names}")
    said = nodes.paragraph("", before, classes=["runs-only-here"])
    for place, name in enumerate(needs):
        said += [nodes.Text(", ")] if place else []
        said += nodes.literal("", name)
    said += nodes.Text(after)
    return said


def forget(app: Sphinx, env: BuildEnvironment, page: str) -> None:
    """Remove what a page had; where it still has it, it is written again. Connected to ``env-purge-doc``."""
    if not page.startswith(_GALLERY):
        for path in made_of(app, page):
            path.unlink(missing_ok=True)


def setup(app: Sphinx) -> None:
    app.add_transform(Offer)
    app.connect("env-purge-doc", forget)
