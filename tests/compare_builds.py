"""Compare two builds of the site, byte by byte, outputs declared as varying aside.

``python tests/compare_builds.py FIRST SECOND`` prints every difference and ends with 1 if there is one. What a page declares
as varying stands in a box of class ``varies``; what the box holds is left out, and so is the page's Markdown, which says the
same without a box, in a file of its own and in ``llms-full.txt``. The picture of a varying plot on a card is such a box too,
and no Markdown has it. A shared link shows the first figure of a page: that picture varies where the figure does.
"""

from __future__ import annotations

import difflib
import re
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

#: Where a page begins in ``llms-full.txt``.
_PAGE_BEGINS = re.compile(r"^---\n\nSource: (?=\S+$)", re.MULTILINE)
_VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}


class _Page(HTMLParser):
    """A page's text and tags, its ``varies`` boxes empty; how many boxes there are, pictures of cards aside; and whether the
    first graph or plot, those pictures included, is in a box.

    >>> page = _Page('<p>a</p><div class="varies"><p>1 s</p></div><div class="picture plot varies"><svg></svg></div>b')
    >>> page.stable, page.boxes
    ('<p>a</p><div class="varies"></div><div class="picture plot varies"></div>b', 1)
    """

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=False)
        self.kept: list[str] = []
        self.boxes = self.depth = 0
        self.feed(html)
        self.close()

    @property
    def stable(self) -> str:
        return "".join(self.kept)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        classes = (dict(attributes).get("class") or "").split()
        if self.depth:
            self.depth += tag not in _VOID
            return
        self.kept.append(self.get_starttag_text() or "")
        if "varies" in classes:
            self.depth = 1
            self.boxes += "picture" not in classes

    def handle_endtag(self, tag: str) -> None:
        if self.depth:
            self.depth -= tag not in _VOID
        if not self.depth:
            self.kept.append(f"</{tag}>")

    def handle_data(self, data: str) -> None:
        if not self.depth:
            self.kept.append(data)

    def handle_entityref(self, name: str) -> None:
        self.handle_data(f"&{name};")

    def handle_charref(self, name: str) -> None:
        self.handle_data(f"&#{name};")


def _varying(site: Path) -> Iterator[str]:
    """The files that vary with a page: its Markdown."""
    for path in site.rglob("*.html"):
        page, name = _Page(path.read_text(encoding="utf-8")), path.relative_to(site).as_posix()
        if page.boxes:
            yield f"{name}.md"


def _stable(name: str, content: bytes, varying: set[str]) -> str:
    """What of a page, or of the file of all pages, does not vary; nothing of another file."""
    if name.endswith(".html"):
        return _Page(content.decode()).stable
    if name == "llms-full.txt":
        pages = tuple(f"/{twin.removesuffix('.md')}" for twin in varying if twin.endswith(".md"))
        parts = _PAGE_BEGINS.split(content.decode())
        return "".join(part for part in parts if not part.partition("\n")[0].endswith(pages))
    return ""


def differences(first: Path, second: Path) -> list[str]:
    """Every file that differs between two built sites, with the first lines that do."""
    names = [
        {path.relative_to(site).as_posix() for path in site.rglob("*") if path.is_file()} for site in (first, second)
    ]
    found = [f"only in {first.name}: {name}" for name in sorted(names[0] - names[1])]
    found += [f"only in {second.name}: {name}" for name in sorted(names[1] - names[0])]
    varying = {*_varying(first), *_varying(second)}
    for name in sorted(names[0] & names[1]):
        contents = [(site / name).read_bytes() for site in (first, second)]
        if contents[0] == contents[1] or name in varying:
            continue
        texts = [_stable(name, content, varying) for content in contents]
        if not all(texts):
            found.append(f"{name}: {len(contents[0])} and {len(contents[1])} bytes")
        elif texts[0] != texts[1]:
            lines = difflib.unified_diff(*(text.splitlines() for text in texts), lineterm="", n=0)
            found.append(f"{name}:\n" + "\n".join(f"    {line[:160]}" for line in list(lines)[2:12]))
    return found


def main(first: str, second: str) -> int:
    found = differences(Path(first), Path(second))
    print("\n".join(found) or "the two builds are the same, outputs declared as varying aside")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
