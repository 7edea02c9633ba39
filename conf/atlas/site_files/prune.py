"""Remove from the built site what the sources no longer make.

Sphinx writes pages and never removes one, so a renamed example would stay on the site under its old name for as long as
the output folder lives.
"""

from __future__ import annotations

from pathlib import Path

from sphinx.application import Sphinx
from sphinx.util import logging

logger = logging.getLogger(__name__)

#: What Sphinx adds without a source.
_GENERATED = {"404.html", "genindex.html", "search.html"}


def remove(app: Sphinx, exception: Exception | None) -> None:
    """Remove pages, gallery images and downloads without a source. Connected to ``build-finished``."""
    if exception is not None or app.builder.name != "html":
        return
    out = Path(app.outdir)
    found = app.env.found_docs
    own = {Path(app.builder.get_outfilename(name)) for name in found} | {out / name for name in _GENERATED}
    for page in out.rglob("*.html"):
        in_sources = page.relative_to(out).parts[0] not in {"_static", "_modules"}
        if in_sources and page not in own:
            _remove(page, out)
    images = {Path(image).name for image in Path(app.srcdir).glob("gallery/*/images/**/*") if image.is_file()}
    for image in out.glob("_images/sphx_glr_*"):
        if image.name not in images:
            _remove(image, out)
    downloads = {Path(target).as_posix() for _, target in app.env.dlfiles.values()}
    for download in out.glob("_downloads/*/*"):
        if download.relative_to(out / "_downloads").as_posix() not in downloads:
            _remove(download, out)


def _remove(path: Path, out: Path) -> None:
    logger.info("removed %s: its source is gone", path.relative_to(out))
    path.unlink()
    if not any(path.parent.iterdir()):
        path.parent.rmdir()


def setup(app: Sphinx) -> None:
    app.connect("build-finished", remove)
