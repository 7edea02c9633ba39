"""Remove from the built site what earlier builds made and this one no longer makes.

Sphinx writes pages and never removes one, so a renamed example would stay on the site under its old name for as long as
the output folder lives. The folder may hold files that no build of ours made: those of ``html_extra_path``, a CNAME, another
site in a subfolder. So each build keeps a list of what it makes of the sources, and only what is on the list of an earlier
build is ever removed. Without a list nothing is.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util import logging

from atlas.toolbox import write_whole

from .markdown.markdown_copies import twin_of
from .moved_pages import moves

logger = logging.getLogger(__name__)

#: The list, beside the doctrees: it is no part of the site.
_LIST = "made.json"


def note(app: Sphinx, env: BuildEnvironment) -> None:
    """Add what this build is going to make to the list: it may be killed. Connected to ``env-updated``."""
    if app.builder.name == "html":
        _keep(app, _listed(app) | _made(app))


def remove(app: Sphinx, exception: Exception | None) -> None:
    """Remove what is on the list and no longer made. Connected to ``build-finished``."""
    if exception is not None or app.builder.name != "html":
        return
    made = _made(app)
    for name in sorted(_listed(app) - made - set(_extra(app))):
        _remove(Path(app.outdir), name)
    _keep(app, made)


def _made(app: Sphinx) -> set[str]:
    """What is made of the sources: pages, their Markdown, images, downloads, what leads on; as paths in the output folder."""
    out, env = Path(app.outdir), app.env
    pages = [Path(app.builder.get_outfilename(name)) for name in env.found_docs]
    paths = [path.relative_to(out).as_posix() for page in pages for path in (page, twin_of(page))]
    images = [f"{app.builder.imagedir}/{name}" for _pages, name in env.images.values()]
    downloads = [f"_downloads/{Path(name).as_posix()}" for _pages, name in env.dlfiles.values()]
    leading_on = [move.old for move in moves(Path(app.srcdir))]
    return {*paths, *images, *downloads, *leading_on}


def _extra(app: Sphinx) -> Iterator[str]:
    """What ``html_extra_path`` brings: a file of it may have taken the place of a page."""
    for entry in app.config.html_extra_path:
        path = Path(app.confdir, entry)
        yield path.name
        yield from (file.relative_to(path).as_posix() for file in path.rglob("*"))


def _listed(app: Sphinx) -> set[str]:
    return set(_lists(app).get(_folder(app), []))


def _keep(app: Sphinx, names: set[str]) -> None:
    lists = _lists(app) | {_folder(app): sorted(names)}
    write_whole(Path(app.doctreedir, _LIST), json.dumps(lists, indent=0))


def _lists(app: Sphinx) -> dict[str, list[str]]:
    """A list for each output folder that this checkout was built to."""
    try:
        return json.loads(Path(app.doctreedir, _LIST).read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return {}


def _folder(app: Sphinx) -> str:
    """The output folder as seen from the list, so that a checkout can be moved."""
    return Path(os.path.relpath(app.outdir, app.doctreedir)).as_posix()


def _remove(out: Path, name: str) -> None:
    """Remove a file, if it is there, and the folders that held nothing else."""
    path = out / name
    if not path.is_file():
        return
    logger.info("removed %s: its source is gone", name)
    path.unlink()
    for folder in path.parents:
        if folder == out or any(folder.iterdir()):
            return
        folder.rmdir()


def setup(app: Sphinx) -> None:
    app.connect("env-updated", note)
    app.connect("build-finished", remove)
