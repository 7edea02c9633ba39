"""What Autograd Atlas adds to Sphinx: one extension, in rooms. Where does a line of code belong?

================== ======================================================================================
``rooms``          how a room is set up: its modules one after the other
``gallery``        it decides which scripts run, starts them, and keeps what they made
``figures``        graphs and plots, drawn when a page is read
``player``         what a figure of a graph says when it is stepped through
``plot_picture``   a small picture of a plot, for a card
``memory_cells``   a tensor beside the memory that it reads
``folds``          an author writes it on a page: what is folded away
``boxes``          boxes and notes
``tables``         long tables, and filters
``formulas``       formulas as MathML, and those of PyTorch's backward nodes
``operators``      what PyTorch's operators do, measured
``versions``       what other versions of PyTorch do, measured
``names``          the names of PyTorch that a page uses; ``code_reader`` finds them in code
``cards``          it leads to pages with a card for each
``related``        it leads from a page to others: pages like it, tags
``search``         what of each page the search finds, and what a page needs to search
``search_index``   the file that the search reads, as data
``search_words``   text as words, and words that mean the same
``messages``       the messages of errors on pages
``symptoms``       the list of pages about errors
``checks``         it fails a page, with file and line, and places faults in scripts
``text_marks``     marks in a page's text for the style sheet and for screen readers
``head``           what is said of a page elsewhere: its description
``footer``         all lines at the foot of a page
``page_weight``    what keeps a page light: scripts, the sidebar; ``style_sheet``: one sheet
``build_facts``    what a build was made from
``markdown_copies`` the pages as Markdown
``site_files``     it is written once, after all pages
``incremental``    it decides which unchanged pages are written again
``upstream``       it works around a bug of somebody else's
================== ======================================================================================

``setup`` calls the rooms in this order, and Sphinx calls what is connected to an event in the order in which it was connected.
A number is a priority, and stands where something must come before or after another extension's handler (those have 500).

====================== ===================================================================================
``config-inited``      gallery.build_guard (1: before anything is read); build_facts checks the settings;
                       incremental.assets_changed
``builder-inited``     gallery.run runs the examples (499: before sphinx-gallery); operators are
                       probed, formulas read; search; upstream
``doctree-read``       gallery.requests, head; checks; figures (600: after gallery.requests); then all stores of ``page_store``
                       (700); build_facts counts asserts, site_files reads the days of release notes
``env-updated``        boxes, checks, incremental, all stores of ``page_store``: pages that must be written again;
                       build_facts collects the facts of the build
``doctree-resolved``   boxes; names; cards; related; search, symptoms; footer (600)
``html-page-context``  head (400: before sphinxext-opengraph), page_weight (450: before furo);
                       footer; related; search (after sphinx-notfound-page);
                       markdown_copies, site_files; style_sheet and page_weight (900)
``build-finished``     page_weight; search; markdown_copies, then site_files; gallery.run reports
                       failures (900); gallery.build_guard takes its mark away (999)
====================== ===================================================================================
"""

from __future__ import annotations

import hashlib
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sphinx.application import Sphinx

HERE = Path(__file__).parent
#: Packages that shape what stands on a page: Sphinx and its extensions, and what the code cells of Markdown pages import.
_SHAPING = (
    *(
        "docutils",
        "furo",
        "matplotlib",
        "myst-nb",
        "myst-parser",
        "numpy",
        "pandas",
        "pypandoc-binary",
        "rjsmin",
        "sphinx",
    ),
    *("sphinx-copybutton", "sphinx-design", "sphinx-gallery", "sphinx-notfound-page", "sphinxext-opengraph", "torch"),
)


def code_version(*folders: Path) -> int:
    """One number for all that shapes a page besides its source: the files of ``folders``, and the versions of packages.

    :param folders: by default those of the site's own code that a page is made with.

    >>> code_version() == code_version()
    True
    """
    found = hashlib.sha256(repr([(package, version(package)) for package in _SHAPING]).encode())
    for folder in folders or (HERE, HERE.parent / "graphs"):
        for path in sorted(path for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc"):
            found.update(f"\0{path.relative_to(folder).as_posix()}\0".encode() + path.read_bytes())
    return int(found.hexdigest()[:15], 16)


def setup(app: Sphinx) -> dict[str, Any]:
    # imported here: noxfile.py and conf.py use parts of this package where Sphinx is not installed, or not yet needed
    from . import (
        boxes,
        build_facts,
        cards,
        checks,
        figures,
        folds,
        footer,
        formulas,
        head,
        incremental,
        markdown_copies,
        memory_cells,
        names,
        operators,
        page_weight,
        player,
        related,
        search,
        site_files,
        style_sheet,
        symptoms,
        tables,
        text_marks,
        upstream,
        versions,
    )
    from .gallery import run as gallery

    for room in (
        gallery,
        folds,
        boxes,
        tables,
        formulas,
        operators,
        versions,
        figures,
        player,
        memory_cells,
        build_facts,
        text_marks,
        head,
        footer,
        style_sheet,
        page_weight,
        checks,
        names,
        cards,
        related,
        search,
        symptoms,
        markdown_copies,
        site_files,
        incremental,
        upstream,
    ):
        room.setup(app)
    # Sphinx reads all pages again when this number changes
    return {"env_version": code_version(), "parallel_read_safe": True, "parallel_write_safe": True}
