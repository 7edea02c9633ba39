"""Two archives to take along: the site as a folder that needs no server, and all scripts and notebooks.

Only a published build makes them: who builds has both as folders already, and an edit shows a second sooner. Files stand in
them in the order of their names and without a time, so two builds make the same bytes. The comment of an archive is a hash of
what is in it: a build that finds the same there leaves it alone.

sphinx-gallery's ``download_all_examples`` was tried. Its archives hold the times of their files, so no two builds are the same.
"""

from __future__ import annotations

import hashlib
import os
import re
import zipfile
from collections.abc import Mapping
from pathlib import Path

from sphinx.application import Sphinx

from atlas.directives.site_file import ARCHIVES, EXAMPLES, SITE, without_links_to
from atlas.notebooks.offer import folder, made_of

from . import csp_conf, sitemap

FOLDER = "autograd-atlas"  # into which an archive unpacks
_FIRST_DAY = (1980, 1, 1, 0, 0, 0)  # that a zip file can name
#: What a server or a search engine reads, and what Sphinx keeps for its next build. Links of 404.html begin at a server's root.
_FOR_A_SERVER = {csp_conf.FILE, sitemap.FILE, "404.html", ".buildinfo", ".buildinfo.bak"}
_PRELOAD = re.compile(rb'<link rel="preload"[^>]*>\n?')


def write(app: Sphinx, exception: Exception | None) -> None:
    """Connected to ``build-finished``, after all other files are written but the sizes."""
    if exception is not None or app.builder.name != "html":
        return
    out = Path(app.outdir)
    if app.config.atlas_commit:
        pack(out / SITE, site(out))
        pack(out / EXAMPLES, examples(app))
    else:
        for name in ARCHIVES:
            (out / name).unlink(missing_ok=True)


def site(out: Path) -> dict[str, Path]:
    """The files of the built site that are of use without a server, by their paths below its root."""
    files = {path.relative_to(out).as_posix(): path for path in out.rglob("*") if path.is_file()}
    return {name: path for name, path in files.items() if name not in _FOR_A_SERVER.union(ARCHIVES)}


def examples(app: Sphinx) -> dict[str, Path]:
    """All scripts and notebooks, by the addresses of their pages, and the license, which must go with them."""
    source = Path(app.srcdir)
    paths = [source / f"{page}{kind}" for page in sorted(app.env.found_docs) for kind in (".py", ".ipynb")]
    files = {path.relative_to(source / "gallery").as_posix(): path for path in paths if path.is_file()}
    of_pages = [path for page in sorted(app.env.found_docs) for path in made_of(app, page) if path.is_file()]
    files |= {path.relative_to(folder(app)).as_posix(): path for path in of_pages}
    license_ = Path(app.confdir).parent / "LICENSE"
    return files | ({license_.name: license_} if license_.is_file() else {})


def pack(archive: Path, files: Mapping[str, Path]) -> None:
    """Write an archive of these files, unless it holds them already."""
    comment = _hash(files).encode()
    if _comment(archive) == comment:
        return
    part = archive.with_name(f"{archive.name}.part")
    with zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED) as made:
        for name in sorted(files):
            entry = zipfile.ZipInfo(f"{FOLDER}/{name}", _FIRST_DAY)
            # as made on Unix; without it nobody could read the files there
            entry.create_system, entry.external_attr = 3, 0o100644 << 16
            made.writestr(entry, _content(files[name]), zipfile.ZIP_DEFLATED)
        made.comment = comment
    os.replace(part, archive)


def _hash(files: Mapping[str, Path]) -> str:
    found = hashlib.sha256(Path(__file__).read_bytes())
    for name in sorted(files):
        content = _content(files[name])
        found.update(f"\0{name}\0{len(content)}\0".encode() + content)
    return found.hexdigest()


def _content(path: Path) -> bytes:
    """A file as it is in an archive: a page does not lead to the archives, names no size, and asks early for nothing.

    A browser refuses that in a folder, and says so.
    """
    content = path.read_bytes()
    if path.suffix == ".html":
        content = _PRELOAD.sub(b"", content)
    if path.suffix == ".html" and b'class="site-file"' in content:
        return without_links_to(content.decode("utf-8"), ARCHIVES).encode()
    return content


def _comment(archive: Path) -> bytes | None:
    """The comment of an archive; None if it is not there or damaged."""
    try:
        with zipfile.ZipFile(archive) as found:
            return found.comment
    except (OSError, zipfile.BadZipFile):
        return None


def setup(app: Sphinx) -> None:
    app.connect("build-finished", write)
