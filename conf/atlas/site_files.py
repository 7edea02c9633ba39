"""Files of the whole site, written once, after all pages; and the role ``{site-file}``, which leads to them.

``build.json``           what the site was built from, for programs
``sitemap.xml``          the address of every page, for search engines
old addresses            a small page leads on from where a page once was, and every address that was published answers
two archives             the site as a folder that needs no server, and all scripts and notebooks; of a published build
"""

from __future__ import annotations

import html
import json
import re
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from string import Template
from typing import Any
from xml.sax.saxutils import escape

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.docutils import SphinxRole
from sphinx.util.osutil import relative_uri

from atlas.toolbox import write_if_changed, write_whole

logger = logging.getLogger(__name__)


def write_site_files(app: Sphinx, exception: Exception | None) -> None:
    """Connected to ``build-finished``, after the pages' Markdown is written: the archive of the site holds all other files."""
    if exception is not None or app.builder.name != "html":
        return
    write_whole(Path(app.outdir, "build.json"), json.dumps(app.atlas_facts, indent=1) + "\n")
    write_sitemap(app)
    write_moved_pages(app)
    write_archives(app)


# -- For search engines ---------------------------------------------------------------------------


def write_sitemap(app: Sphinx) -> None:
    """Write the site map, by https://www.sitemaps.org/protocol.html.

    sphinx-sitemap 2.9.0 lists only the pages that this build has written, in an order that differs from build to build.
    """
    addresses = (app.config.html_baseurl + app.builder.get_target_uri(page) for page in sorted(app.env.found_docs))
    urls = "".join(f"<url><loc>{escape(address)}</loc></url>\n" for address in addresses)
    head = '<?xml version="1.0" encoding="utf-8"?>\n<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n'
    write_whole(Path(app.outdir, "sitemap.xml"), f"{head}{urls}</urlset>\n")


# -- Old addresses --------------------------------------------------------------------------------

#: In ``docs/``: a line for each move, the old address and the new one, and a line for each address that was ever published.
MOVED = "moved-pages.txt"
PUBLISHED = "published-pages.txt"


def write_moved_pages(app: Sphinx) -> None:
    """Put a page at each old address that leads on; if one leads nowhere, or a published address is gone, the build fails.

    sphinxext-rediraffe 0.3.0 refuses a new address with an anchor. sphinx-reredirects 1.1.0 writes such a page and checks
    nothing, so that it would take the place of two lines here.

    The site's own ``published-pages.txt`` is that list with the pages of today; the workflow ``publish`` proposes it as next.
    """
    docs, out = Path(app.srcdir), Path(app.outdir)
    pages = {app.builder.get_target_uri(name) for name in app.env.found_docs}
    faults = list(find_lost_addresses(docs, out, pages))
    if faults:
        logger.error("%s", "\n".join(faults), type="atlas", subtype="moved")
        app.statuscode = 1
        return
    leading_on = Template(Path(app.confdir, "templates", "moved_page.html").read_text(encoding="utf-8"))
    for _number, (old, new) in _read_words(docs / MOVED):
        write_if_changed(out / old, leading_on.substitute(to_uri=html.escape("../" * old.count("/") + new)))
    published = {address for _number, (address, *_rest) in _read_words(docs / PUBLISHED)}
    write_whole(out / PUBLISHED, "".join(f"{address}\n" for address in sorted(pages | published)))


def find_lost_addresses(docs: Path, out: Path, pages: set[str]) -> Iterator[str]:
    """What is wrong with the two lists, each with file and line and the way out.

    :param pages: the addresses of the pages that the site has now.
    """
    seen: dict[str, int] = {}
    for number, words in _read_words(docs / MOVED):
        at = f"docs/{MOVED}:{number}"
        if len(words) != 2 or not words[0].endswith(".html"):
            yield f"{at}: write the old address, a space, and the new one, as: graphs/old.html graphs/new.html"
            continue
        old, (page, _, anchor) = words[0], words[1].partition("#")
        if old in seen:
            yield f"{at}: {old} stands in line {seen[old]} too; an address leads to one place, so remove a line"
        if old in pages:
            yield f"{at}: {old} is a page of this site; give that page another name, or remove the line"
        if page not in pages:
            yield f"{at}: it leads to {page}, which is no page of this site; lead to where its content is now"
        elif anchor and f'id="{anchor}"' not in (out / page).read_text(encoding="utf-8"):
            yield f"{at}: {page} has no anchor #{anchor}; correct it, or leave the anchor out"
        seen.setdefault(old, number)
    for number, (address, *_rest) in _read_words(docs / PUBLISHED):
        if address not in pages and address not in seen:
            yield (
                f"docs/{PUBLISHED}:{number}: {address} was published, and there is no such page now; add a line "
                f"'{address} NEW-ADDRESS' to docs/{MOVED}, or remove this line if the page was never published"
            )


def _read_words(path: Path) -> Iterator[tuple[int, list[str]]]:
    """The words of each line of a list, with its number. A line that begins with ``#`` is a comment; no file, no lines."""
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() and not line.startswith("#"):
            yield number, line.split()


# -- To take along --------------------------------------------------------------------------------

#: What only a published build makes: who builds the site has what is in them.
ARCHIVES = (SITE, EXAMPLES) = ("autograd-atlas-site.zip", "autograd-atlas-examples.zip")
FOLDER = "autograd-atlas"  # into which an archive unpacks
#: What a server or a search engine reads, and what Sphinx keeps for its next build. Links of 404.html begin at a server's root.
_FOR_A_SERVER = {"sitemap.xml", "404.html", ".buildinfo", ".buildinfo.bak", *ARCHIVES}
_PRELOAD = re.compile(rb'<link rel="preload"[^>]*>\n?')


def write_archives(app: Sphinx) -> None:
    """Pack what a published build makes to take along.

    ``shutil.make_archive`` and sphinx-gallery's ``download_all_examples`` write the times of files: no two would be the same.
    """
    out = Path(app.outdir)
    if app.config.atlas_commit:
        pack_archive(out / EXAMPLES, list_examples(app))
        pack_archive(out / SITE, list_site(out))


def list_site(out: Path) -> dict[str, Path]:
    """The files of the built site that are of use without a server, by their paths below its root."""
    files = (path for path in out.rglob("*") if path.is_file() and path.name not in _FOR_A_SERVER)
    return {path.relative_to(out).as_posix(): path for path in files}


def list_examples(app: Sphinx) -> dict[str, Path]:
    """All scripts and notebooks, by the addresses of their pages, and the license, which must go with them."""
    source, license_ = Path(app.srcdir), Path(app.confdir).parent / "LICENSE"
    paths = [source / f"{page}{kind}" for page in sorted(app.env.found_docs) for kind in (".py", ".ipynb")]
    files = {path.relative_to(source / "gallery").as_posix(): path for path in paths if path.is_file()}
    return files | {license_.name: license_}


def pack_archive(archive: Path, files: Mapping[str, Path]) -> None:
    """Write an archive of these files, in the order of their names and without a time: two builds make the same bytes.

    A page in it asks early for nothing: a browser refuses that in a folder, and says so.
    """
    with zipfile.ZipFile(archive, "w") as made:
        for name in sorted(files):
            entry = zipfile.ZipInfo(f"{FOLDER}/{name}")  # of the first day that a zip file can name
            entry.create_system, entry.external_attr = 3, 0o100644 << 16  # as made on Unix, where all may read it
            content = files[name].read_bytes()
            content = _PRELOAD.sub(b"", content) if name.endswith(".html") else content
            made.writestr(entry, content, zipfile.ZIP_DEFLATED)


class site_file(nodes.literal):
    """A link to the file that is the node's text. Other builders than HTML write the name."""


class SiteFile(SphinxRole):
    """``{site-file}`NAME```, with the file's path below the site's root."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        return [site_file(self.rawtext, self.text)], []


def visit_site_file(self: Any, node: site_file) -> None:
    """Lead to the file; to an archive by its whole address, as the archive of the site does not hold itself."""
    name, config = node.astext(), self.config
    address = relative_uri(self.builder.get_target_uri(self.builder.current_docname), name)
    if name in ARCHIVES:
        address = f"{config.html_baseurl}{name}" if config.atlas_commit else ""
    link = f'<a class="site-file" href="{html.escape(address)}">{html.escape(name)}</a>'
    self.body.append(link if address else f"<code>{html.escape(name)}</code> (made when the site is published)")
    raise nodes.SkipNode


def setup(app: Sphinx) -> None:
    app.add_node(site_file, html=(visit_site_file, None))
    app.add_role("site-file", SiteFile())
    app.connect("build-finished", write_site_files)
