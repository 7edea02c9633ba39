"""Compare two builds of the site, byte by byte, outputs declared as varying aside.

``python tests/compare_builds.py FIRST SECOND`` prints every difference and ends with 1 if there is one. What a page declares
as varying stands in a box of class ``varies``; the box is left out, and so is the thumbnail of a plot in it.
"""

from __future__ import annotations

import difflib
import sys
from html.parser import HTMLParser
from pathlib import Path

_VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}


class _WithoutVarying(HTMLParser):
    """Collects a page's text and tags outside of ``varies`` boxes, and the names of the drawings inside of them."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=False)
        self.kept: list[str] = []
        self.drawings: set[str] = set()
        self.depth = 0

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = dict(attributes)
        if self.depth:
            self.depth += tag not in _VOID
            if tag == "svg" and given.get("id"):
                self.drawings.add(f"{given['id']}.svg")
        elif "varies" in (given.get("class") or "").split():
            self.depth = 1
        else:
            self.kept.append(self.get_starttag_text() or "")

    def handle_endtag(self, tag: str) -> None:
        if self.depth:
            self.depth -= tag not in _VOID
        else:
            self.kept.append(f"</{tag}>")

    def handle_data(self, data: str) -> None:
        if not self.depth:
            self.kept.append(data)

    def handle_entityref(self, name: str) -> None:
        self.handle_data(f"&{name};")

    def handle_charref(self, name: str) -> None:
        self.handle_data(f"&#{name};")


def stable(html: str) -> tuple[str, set[str]]:
    """A page without what it declares as varying, and the names of the drawings in there.

    >>> stable('<p>a</p><div class="varies"><p>1 s</p><svg id="y_001"></svg></div>b')
    ('<p>a</p>b', {'y_001.svg'})
    """
    parser = _WithoutVarying()
    parser.feed(html)
    parser.close()
    return "".join(parser.kept), parser.drawings


def _thumbnails(drawings: set[str]) -> set[str]:
    """A card's thumbnail is the page's first drawing."""
    return {name.replace("_001.", "_thumb.") for name in drawings if "_001." in name}


def differences(first: Path, second: Path) -> list[str]:
    """Every file that differs between two built sites, with the first lines that do."""
    names = [
        {path.relative_to(site).as_posix() for path in site.rglob("*") if path.is_file()} for site in (first, second)
    ]
    found = [f"only in {first.name}: {name}" for name in sorted(names[0] - names[1])]
    found += [f"only in {second.name}: {name}" for name in sorted(names[1] - names[0])]
    varying: set[str] = set()
    for site in (first, second):
        for page in site.rglob("*.html"):
            varying |= _thumbnails(stable(page.read_text(encoding="utf-8"))[1])
    for name in sorted(names[0] & names[1]):
        contents = [(site / name).read_bytes() for site in (first, second)]
        if contents[0] == contents[1] or Path(name).name in varying:
            continue
        if name.endswith(".html"):
            texts = [stable(content.decode())[0] for content in contents]
            if texts[0] == texts[1]:
                continue
            lines = difflib.unified_diff(*(text.splitlines() for text in texts), lineterm="", n=0)
            found.append(f"{name}:\n" + "\n".join(f"    {line[:160]}" for line in list(lines)[2:12]))
        else:
            found.append(f"{name}: {len(contents[0])} and {len(contents[1])} bytes")
    return found


def main(first: str, second: str) -> int:
    found = differences(Path(first), Path(second))
    print("\n".join(found) or "the two builds are the same, outputs declared as varying aside")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
