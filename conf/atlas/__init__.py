"""What Autograd Atlas adds to Sphinx: one extension, one module for each feature.

=================== =====================================================================================
``gallery``         runs each example that is out of date in a process of its own, and keeps what it made
``folds``           parts that are folded away: solutions, how something was measured, questions to predict
``boxes``           boxes and notes: the answer in short, quoted messages, what varies, what was recorded
``tables``          long tables that can be filtered
``formulas``        formulas as MathML, and those of PyTorch's backward nodes
``operators``       what PyTorch's operators do, as ``conf/measure`` found
``versions``        what changed between versions of PyTorch, as ``conf/measure`` found
``figures``         graphs and plots
``names``           the names of PyTorch that a page uses, linked to its reference, and their index
``cards``           cards that lead to pages, chapters and learning paths
``tags``            the tags of a page, and the list of all pages with theirs
``search``          what the search finds of each page, and the list of errors by what people say
``checks``          what fails a page, with file and line
``head``            what is said of a page elsewhere: its description; marks in its text for the style sheet
``footer``          all lines at the foot of a page
``page_weight``     what keeps a page light: the style sheet, scripts, the sidebar
``build_facts``     what a build was made from
``markdown_copies`` the pages as Markdown
``site_files``      files of the whole site, written after all pages
=================== =====================================================================================

``toolbox``, ``page_store`` and ``pages`` serve the others: small helpers, what pages tell, and ``examples/pages.toml``.

``setup`` sets them up in this order. Sphinx calls the handlers of an event in the order in which they were connected; where a
handler must come before or after one of another extension, its ``connect`` gives a priority (those of others have 500). What
pages tell the site is kept in stores, and ``page_store`` says how these are ordered.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.config import Config

HERE = Path(__file__).parent
FEATURES = (
    *("gallery.run", "folds", "boxes", "tables", "formulas", "operators", "versions", "figures"),
    *("build_facts", "head", "footer", "page_weight", "checks", "names", "cards"),
    *("tags", "search", "markdown_copies", "site_files"),
)
#: Packages that shape what stands on a page: Sphinx and its extensions, and what the code cells of Markdown pages import.
_SHAPING = (
    *("docutils", "furo", "matplotlib", "myst-nb", "myst-parser", "numpy", "pandas", "pypandoc-binary", "rjsmin"),
    *("sphinx", "sphinx-copybutton", "sphinx-design", "sphinx-gallery", "sphinx-notfound-page"),
    *("sphinxext-opengraph", "torch"),
)


def code_version(folders: Iterable[Path] = (HERE, HERE.parent / "drawgrad")) -> str:
    """One checksum for all that shapes a page besides its source: the site's own code, and the versions of packages.

    >>> code_version() == code_version()
    True
    """
    versions = repr([(package, version(package)) for package in _SHAPING])
    return hashlib.sha256("".join([versions, *map(_hash_files, folders)]).encode()).hexdigest()


def note_code_and_assets(app: Sphinx, config: Config) -> None:
    """Have every page written again when the code, a style sheet or a script has changed. Connected to ``config-inited``.

    Sphinx compares this setting with that of the last build. It puts a checksum into the address of each asset, and a browser
    keeps a file with a checksum in its address for a year. Sphinx looks after the templates itself.
    """
    assets = [_hash_files(Path(app.confdir, entry)) for entry in config.html_static_path]
    config.atlas_shape = "".join([code_version(), *assets])


def _hash_files(place: Path) -> str:
    found = hashlib.sha256()
    for path in sorted(place.rglob("*")):
        if path.is_file() and path.suffix != ".pyc":
            found.update(f"\0{path.relative_to(place).as_posix()}\0".encode() + path.read_bytes())
    return found.hexdigest()


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_config_value("atlas_shape", "", "html", [str])
    app.connect("config-inited", note_code_and_assets)
    # imported here: noxfile.py and conf.py use parts of this package where Sphinx is not installed, or not yet needed
    for feature in FEATURES:
        import_module(f"atlas.{feature}").setup(app)
    # Sphinx reads all pages again when this number changes
    return {"env_version": int(code_version()[:15], 16), "parallel_read_safe": True, "parallel_write_safe": True}
