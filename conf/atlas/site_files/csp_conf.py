"""``content-security-policy.conf``: what the pages may load and run, as a header that ``conf/nginx.conf`` includes.

A page may run the scripts of its own site, and of those within pages only the ones that this build wrote, known by their
hashes. Handlers in attributes and ``javascript:`` addresses have no place in that list, so the build refuses them.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.util import logging

from atlas.checks.inline_handlers import faults

logger = logging.getLogger(__name__)

FILE = "content-security-policy.conf"

_POLICY = {
    "default-src": "'none'",
    "script-src": "'self'",
    # Matplotlib colours its drawings in style attributes, and furo writes its colours into each page.
    "style-src": "'self' 'unsafe-inline'",
    # furo's icons, and the pixels within a plot that shows an image
    "img-src": "'self' data:",
    "font-src": "'self'",
    # The search fetches the pages that it found, to quote them.
    "connect-src": "'self'",
    "base-uri": "'none'",
    "form-action": "'self'",
    "frame-ancestors": "'none'",
}

_SCRIPT = re.compile(r"<script\b([^>]*)>(.*?)</script", re.DOTALL | re.IGNORECASE)
_SOURCE = re.compile(r"\ssrc\s*=", re.IGNORECASE)
_TYPE = re.compile(r"""\stype\s*=\s*["']?([^"'\s>]*)""", re.IGNORECASE)
#: Types of scripts that run; any other is data, which no policy asks about.
_RUNS = {"", "module", "importmap", "text/javascript", "application/javascript"}


def inline_scripts(page: str) -> Iterator[str]:
    """The scripts that stand in a page and run, data and scripts of their own files aside.

    >>> list(inline_scripts('<script src="a.js"></script><script type="application/json">1</script><script>run()</script>'))
    ['run()']
    """
    for attributes, script in _SCRIPT.findall(page):
        kind = _TYPE.search(attributes)
        if not _SOURCE.search(attributes) and (kind[1].lower() if kind else "") in _RUNS:
            yield script


def hash_of(script: str) -> str:
    """A script as a policy names it.

    >>> hash_of("alert('Hello, world.');")
    'sha256-qznLcsROx4GACP2dm0UCKCzCG+HiZ1guq6ZZDob/Tng='
    """
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def policy(scripts: Iterable[str]) -> str:
    """The policy that allows these scripts, whatever their order and number."""
    hashes = "".join(f" '{name}'" for name in sorted({hash_of(script) for script in scripts}))
    allowed = _POLICY | {"script-src": _POLICY["script-src"] + hashes}
    return "; ".join(f"{what} {sources}" for what, sources in allowed.items())


def write(app: Sphinx, exception: Exception | None) -> None:
    """List the scripts of all pages, those too that an earlier build wrote. Connected to ``build-finished``.

    If a page has code in an attribute, the build fails, and no policy is written.
    """
    if exception is not None or app.builder.name != "html":
        return
    out = Path(app.outdir)
    scripts: set[str] = set()
    found: list[str] = []
    for path in sorted(out.rglob("*.html")):
        page = path.read_text(encoding="utf-8")
        scripts.update(inline_scripts(page))
        found += [f"{path.relative_to(out).as_posix()}: {fault}" for fault in faults(page)]
    if found:
        logger.error(
            "%s\ncode in an attribute is blocked by the site's Content-Security-Policy, and nothing happens on the page: "
            "put it into a script of conf/static, with addEventListener",
            "\n".join(found),
            type="atlas",
            subtype="policy",
        )
        app.statuscode = 1
        return
    (out / FILE).write_text(f'add_header Content-Security-Policy "{policy(scripts)}" always;\n', encoding="utf-8")


def setup(app: Sphinx) -> None:
    app.connect("build-finished", write)
