"""``content-security-policy.conf``: what the pages may load and run, as a header that ``conf/nginx.conf`` includes.

A page may run the script files of its own site. Of scripts within pages it may run those that this build wrote: the policy
lists their hashes. It cannot list handlers in attributes and ``javascript:`` addresses, so the build refuses them.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable, Iterator
from html.parser import HTMLParser
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.util import logging

from atlas.site_files.inline_handlers import faults

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
    # No page asks for anything. Lighthouse asks for robots.txt as a page would, and counts a refusal as a fault.
    "connect-src": "'self'",
    "base-uri": "'none'",
    "form-action": "'self'",
    "frame-ancestors": "'none'",
}

#: The tag, in which a ">" may stand between quotes, and the script.
_SCRIPT = re.compile(r"""(<script(?=[\s/>])(?:[^"'>]|"[^"]*"|'[^']*')*>)(.*?)</script""", re.DOTALL | re.IGNORECASE)
#: Types of scripts that run; any other is data, which no policy asks about.
_RUNS = {"", "module", "importmap", "text/javascript", "application/javascript"}


def inline_scripts(page: str) -> Iterator[str]:
    """The scripts within a page that run: neither data nor script files.

    >>> list(inline_scripts('<script src="a.js"></script><script type="application/json">1</script><script>run()</script>'))
    ['run()']
    """
    for tag, script in _SCRIPT.findall(page):
        attributes = _Attributes.of(tag)
        if "src" not in attributes and (attributes.get("type") or "").strip().lower() in _RUNS:
            yield script


class _Attributes(HTMLParser):
    """The attributes of one tag."""

    found: dict[str, str | None]

    @classmethod
    def of(cls, tag: str) -> dict[str, str | None]:
        reader = cls()
        reader.found = {}
        reader.feed(tag)
        return reader.found

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.found = dict(attributes)


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

    If a page has code in an attribute, the build fails, and no policy is written. So a page that is older than the policy has
    none, and is not searched again.
    """
    if exception is not None or app.builder.name != "html":
        return
    out = Path(app.outdir)
    searched = (out / FILE).stat().st_ctime_ns if (out / FILE).exists() else 0
    scripts: set[str] = set()
    found: list[str] = []
    for path in sorted(out.rglob("*.html")):
        page = _text(path)
        scripts.update(inline_scripts(page))
        if path.stat().st_ctime_ns >= searched:  # a file may be copied with an old date, but not with an old ctime
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


def _text(path: Path) -> str:
    """A page as a browser reads it. Ours are in UTF-8; ``html_extra_path`` may bring an older one that is not."""
    content = path.read_bytes()
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        return content.decode("cp1252", errors="replace")


def setup(app: Sphinx) -> None:
    app.connect("build-finished", write)
