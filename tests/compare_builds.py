"""Compare two builds of the site, byte by byte, outputs declared as varying aside.

``python tests/compare_builds.py FIRST SECOND`` prints every difference and ends with 1 if there is one. What a page declares
as varying stands in a box of class ``varies``; what the box holds is left out, and so is the page's Markdown, which says the
same without a box. The picture of a varying plot on a card is such a box too, and no Markdown has it.
"""

from __future__ import annotations

import difflib
import sys
from pathlib import Path

from bs4 import BeautifulSoup


def _empty_boxes(html: str) -> tuple[str, bool]:
    """A page with its boxes empty, and whether it has one that its Markdown shows.

    >>> _empty_boxes('<p>a</p><div class="varies"><p>1 s</p></div><div class="picture varies"><svg></svg></div>')
    ('<p>a</p><div class="varies"></div><div class="picture varies"></div>', True)
    """
    if "varies" not in html:
        return html, False
    page = BeautifulSoup(html, "html.parser")
    boxes = page.select(".varies")
    for box in boxes:
        box.clear()
    return str(page), any("picture" not in box["class"] for box in boxes)


def find_differences(first: Path, second: Path) -> list[str]:
    """Every file that differs between two built sites, with the first lines that do."""
    files = [
        {path.relative_to(site).as_posix(): path for path in site.rglob("*") if path.is_file()}
        for site in (first, second)
    ]
    found = [f"only in {first.name}: {name}" for name in sorted(files[0].keys() - files[1].keys())]
    found += [f"only in {second.name}: {name}" for name in sorted(files[1].keys() - files[0].keys())]
    pages = [(name, path) for own in files for name, path in own.items() if name.endswith(".html")]
    varying = {f"{name}.md" for name, path in pages if _empty_boxes(path.read_text(encoding="utf-8"))[1]}
    for name in sorted(files[0].keys() & files[1].keys()):
        contents = [own[name].read_bytes() for own in files]
        if contents[0] == contents[1] or name in varying:
            continue
        texts = [_empty_boxes(content.decode())[0] if name.endswith(".html") else "" for content in contents]
        if not all(texts):
            found.append(f"{name}: {len(contents[0])} and {len(contents[1])} bytes")
        elif texts[0] != texts[1]:
            lines = difflib.unified_diff(*(text.splitlines() for text in texts), lineterm="", n=0)
            found.append(f"{name}:\n" + "\n".join(f"    {line[:160]}" for line in list(lines)[2:12]))
    return found


def main(first: str, second: str) -> int:
    found = find_differences(Path(first), Path(second))
    print("\n".join(found) or "the two builds are the same, outputs declared as varying aside")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
