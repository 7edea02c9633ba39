"""``sitemap.xml``: the address of every page, for search engines. The form is that of https://www.sitemaps.org/protocol.html"""

from __future__ import annotations

from pathlib import Path
from xml.sax.saxutils import escape

from sphinx.application import Sphinx

FILE = "sitemap.xml"


def write(app: Sphinx, exception: Exception | None) -> None:
    """Connected to ``build-finished``."""
    if exception is not None or app.builder.name != "html":
        return
    addresses = (app.config.html_baseurl + app.builder.get_target_uri(page) for page in sorted(app.env.found_docs))
    urls = "".join(f"<url><loc>{escape(address)}</loc></url>\n" for address in addresses)
    (Path(app.outdir) / FILE).write_text(
        '<?xml version="1.0" encoding="utf-8"?>\n'
        f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n{urls}</urlset>\n',
        encoding="utf-8",
    )


def setup(app: Sphinx) -> None:
    app.connect("build-finished", write)
