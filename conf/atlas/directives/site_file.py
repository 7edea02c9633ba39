"""The role ``{site-file}`` leads to a file that the build makes for the whole site, and says how large it is.

The size is not known before all pages are written, and an archive of the site holds this page too. So the page is written with
an empty place, and ``site_files.file_sizes`` puts the size in, last of all. No copy of the page has it.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.util.docutils import SphinxRole
from sphinx.util.osutil import relative_uri

#: What only a published build makes: who builds the site has what is in them.
ARCHIVES = (SITE, EXAMPLES) = ("autograd-atlas-site.zip", "autograd-atlas-examples.zip")
_KEY = "atlas-site-files"
_LINK = re.compile(r'<a class="site-file"[^>]*>(.*?)</a>(<span class="file-size" data-file="([^"]+)">)([^<]*)</span>')


class site_file(nodes.literal):
    """A link to the file that is the node's text. Other builders than HTML write the name."""


class SiteFile(SphinxRole):
    """``{site-file}`NAME```, with the file's path below the site's root."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        node = site_file(self.rawtext, self.text)
        self.set_source_info(node)
        return [node], []


def note(app: Sphinx, document: nodes.document) -> None:
    """Keep with the page which files it leads to, and where. Connected to ``doctree-read``."""
    found = [(node.astext(), node.source, node.line) for node in document.findall(site_file)]
    if found:
        app.env.metadata[app.env.docname][_KEY] = found


def named_on(app: Sphinx, page: str) -> list[tuple[str, str, int]]:
    """The files that a page leads to: name, and source and line where it does."""
    return app.env.metadata[page].get(_KEY, [])


def is_made(config: Config, name: str) -> bool:
    """Whether this build is one that makes the file."""
    return name not in ARCHIVES or bool(config.atlas_commit)


def with_sizes(page: str, size: Callable[[str], str]) -> str:
    """The HTML of a page with what ``size`` says of each file, given its name.

    >>> link = '<a class="site-file" href="a.zip">a.zip</a><span class="file-size" data-file="a.zip">{}</span>'
    >>> with_sizes(link.format(""), lambda name: " (1 MB)") == link.format(" (1 MB)")
    True
    """
    return _LINK.sub(
        lambda link: link[0].removesuffix(f"{link[4]}</span>") + html.escape(size(link[3])) + "</span>", page
    )


def without_links_to(page: str, names: tuple[str, ...]) -> str:
    """The HTML of a page with the names of these files in place of links, and without any size."""
    return _LINK.sub(
        lambda link: (
            f"<code>{link[1]}</code>" if link[3] in names else link[0].replace(f"{link[4]}</span>", "</span>")
        ),
        page,
    )


def _visit(self: Any, node: site_file) -> None:
    name = node.astext()
    shown = html.escape(name)
    if is_made(self.config, name):
        address = html.escape(relative_uri(self.builder.get_target_uri(self.builder.current_docname), name))
        link = f'<a class="site-file" href="{address}">{shown}</a><span class="file-size" data-file="{shown}"></span>'
    else:
        link = f"<code>{shown}</code> ({html.escape('made when the site is published')})"
    self.body.append(link)
    raise nodes.SkipNode


def setup(app: Sphinx) -> None:
    app.add_node(site_file, html=(_visit, None))
    app.add_role("site-file", SiteFile())
    app.connect("doctree-read", note)
