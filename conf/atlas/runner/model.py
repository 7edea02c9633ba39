"""The site, and one page of its gallery, as the runner sees them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

HEADER = "GALLERY_HEADER.rst"
"""The file that makes a folder of examples a chapter."""


@dataclass(frozen=True, slots=True)
class Page:
    """One example: where its script is, and where its outputs go."""

    script: Path
    cache: Path
    """The chapter's folder in sphinx-gallery's cache."""

    @property
    def name(self) -> str:
        """
        >>> Page(Path("examples/graphs/first_graph.py"), Path("docs/gallery/graphs")).name
        'graphs/first_graph'
        """
        return f"{self.script.parent.name}/{self.script.stem}"

    @property
    def receipt(self) -> Path:
        return self.cache / f"{self.script.stem}.receipt.json"


@dataclass(frozen=True, slots=True)
class Site:
    """Where the examples are, where their outputs go, and how they are run."""

    docs: Path
    """The source folder of Sphinx."""
    work: Path
    """A folder for what is running."""
    settings: dict[str, Any]
    """sphinx-gallery's, filled in."""

    @property
    def examples(self) -> Path:
        return (self.docs / self.settings["examples_dirs"]).resolve()

    @property
    def cache(self) -> Path:
        return self.docs / self.settings["gallery_dirs"]

    def pages(self) -> list[Page]:
        """The examples of all chapters. As for sphinx-gallery, a chapter is a folder with a header."""
        chapters = sorted(header.parent for header in self.examples.glob(f"*/{HEADER}"))
        return [
            Page(script, self.cache / folder.name) for folder in chapters for script in sorted(folder.glob("*.py"))
        ]
