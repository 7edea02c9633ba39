"""What stands in a drawing, and where, read back from its SVG."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from xml.etree import ElementTree

SVG = "{http://www.w3.org/2000/svg}"
ADVANCE = 0.602
"""The width of a character of a monospaced font, in ems."""
MARGIN = 4
"""How near to its card's border a text may come, in pixels."""


@dataclass(frozen=True)
class Area:
    left: float
    top: float
    right: float
    bottom: float

    def grown(self, by: float) -> Area:
        return Area(self.left - by, self.top - by, self.right + by, self.bottom + by)

    def holds(self, other: Area) -> bool:
        return (
            self.left <= other.left
            and other.right <= self.right
            and self.top <= other.top
            and other.bottom <= self.bottom
        )

    def overlaps(self, other: Area) -> bool:
        return (
            self.left < other.right
            and other.left < self.right
            and self.top < other.bottom
            and other.top < self.bottom
        )


#: Which attribute says where an element stands, as conf/static/upright.js knows it.
PLACES = {"svg": "viewBox", "g": "transform", "path": "d", "polygon": "points"}


def turned_upright(svg: str) -> str:
    """A drawing as a phone shows it, as conf/static/upright.js makes it; what a group is moved by is written into its parts."""
    root = ElementTree.fromstring(svg)
    for element in [root, *root.iter()]:
        place = element.attrib.pop("data-upright", None)
        if place is None:
            continue
        if element.tag == f"{SVG}text":
            x, y = place.split()
            element.attrib |= {"x": x, "y": y}
        elif element.tag == f"{SVG}g":
            dx, dy = map(float, place.removeprefix("translate(").removesuffix(")").split())
            for part in element:
                part.attrib |= {"x": f"{float(part.get('x')) + dx}", "y": f"{float(part.get('y')) + dy}"}
        else:
            element.set(PLACES[element.tag.removeprefix(SVG)], place)
    return ElementTree.tostring(root, encoding="unicode")


class Drawing:
    """The elements of an SVG document; one that is not well-formed XML is an error."""

    def __init__(self, svg: str) -> None:
        self.root = ElementTree.fromstring(svg)
        self.style = self.root.findtext(f"{SVG}style")
        groups = self.root.findall(f"{SVG}g")
        self.cards = {int(group.get("data-card")): group for group in groups if group.get("data-card")}
        self.edges = [group for group in groups if group.get("data-from")]

    @property
    def area(self) -> Area:
        left, top, width, height = map(float, self.root.get("viewBox").split())
        return Area(left, top, left + width, top + height)

    def classes(self, key: int) -> set[str]:
        return set(self.cards[key].get("class").split())

    def texts(self, key: int) -> list[tuple[str, str]]:
        """What a card says, line by line, as (class, text)."""
        return [(text.get("class"), text.text) for text in self.cards[key].findall(f"{SVG}text")]

    def boxes(self) -> dict[int, Area]:
        return {key: _rectangle(card.find(f"{SVG}rect")) for key, card in self.cards.items()}

    def labels(self) -> list[tuple[tuple[int, int], str]]:
        """What stands at the edges, as ((from, to), text)."""
        ends = [(int(edge.get("data-from")), int(edge.get("data-to"))) for edge in self.edges]
        return [
            (end, text.text)
            for end, edge in zip(ends, self.edges, strict=True)
            for text in edge.findall(f"{SVG}text")
        ]

    def written(self) -> Iterator[tuple[int | None, str, Area]]:
        """Every text with its area, and the card it belongs to, if any."""
        for element in self.root.findall(f"{SVG}text"):
            yield None, element.text, _extent(element)
        for edge in self.edges:
            for element in edge.findall(f"{SVG}text"):
                yield None, element.text, _extent(element)
        for key, card in self.cards.items():
            for element in card.findall(f"{SVG}text"):
                yield key, element.text, _extent(element)

    def faults(self) -> list[str]:
        """Texts out of their card, things that lie over one another, things out of the picture."""
        boxes = self.boxes()
        texts = list(self.written())
        found = [
            f"{text!r} runs out of its card"
            for key, text, area in texts
            if key in boxes and not boxes[key].holds(area.grown(MARGIN))
        ]
        found += [f"{text!r} is cut off" for _key, text, area in texts if not self.area.holds(area)]
        found += [f"card {key} is cut off" for key, box in boxes.items() if not self.area.holds(box)]
        for (one, first), (other, second) in combinations(boxes.items(), 2):
            if first.overlaps(second):
                found.append(f"cards {one} and {other} overlap")
        for (_one, first, a), (_other, second, b) in combinations(texts, 2):
            if a.overlaps(b):
                found.append(f"{first!r} and {second!r} overlap")
        for key, text, area in texts:
            if key is None and any(area.overlaps(box) for box in boxes.values()):
                found.append(f"{text!r} lies on a card")
        return found


def _rectangle(element: ElementTree.Element) -> Area:
    x, y, width, height = (float(element.get(name)) for name in ("x", "y", "width", "height"))
    return Area(x, y, x + width, y + height)


def _extent(element: ElementTree.Element) -> Area:
    x, y, size = (float(element.get(name)) for name in ("x", "y", "font-size"))
    width = len(element.text) * size * ADVANCE
    left = x - width / 2 if element.get("text-anchor") == "middle" else x
    return Area(left, y - 0.8 * size, left + width, y + 0.25 * size)
