"""What stands in a drawing, and where, read back from its SVG."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from operator import ge, le, lt
from typing import NamedTuple
from xml.etree import ElementTree

SVG = "{http://www.w3.org/2000/svg}"
ADVANCE = 0.602
"""The width of a character of a monospaced font, in ems."""
MARGIN = 4
"""How near to its card's border a text may come, in pixels."""


class Area(NamedTuple):
    left: float
    top: float
    right: float
    bottom: float

    def grown(self, by: float) -> Area:
        return Area(self.left - by, self.top - by, self.right + by, self.bottom + by)

    def holds(self, other: Area) -> bool:
        return all(map(ge, other[:2], self[:2])) and all(map(le, other[2:], self[2:]))

    def overlaps(self, other: Area) -> bool:
        return all(map(lt, self[:2], other[2:])) and all(map(lt, other[:2], self[2:]))


#: Which attribute says where an element stands, as conf/drawgrad/web/upright.js knows it.
PLACES = {"svg": "viewBox", "g": "transform", "path": "d", "polygon": "points"}


def turned_upright(svg: str) -> str:
    """A drawing as a phone shows it, as web/upright.js makes it; what a group is moved by is written into its parts."""
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
        return [
            ((int(edge.get("data-from")), int(edge.get("data-to"))), text.text)
            for edge in self.edges
            for text in edge.findall(f"{SVG}text")
        ]

    def written(self) -> Iterator[tuple[int | None, str, Area]]:
        """Every text with its area, and the card it belongs to, if any."""
        for parent in (self.root, *self.edges):
            yield from ((None, one.text, _extent(one)) for one in parent.findall(f"{SVG}text"))
        for key, card in self.cards.items():
            yield from ((key, one.text, _extent(one)) for one in card.findall(f"{SVG}text"))

    def faults(self) -> list[str]:
        """Texts out of their card, things that lie over one another, things out of the picture."""
        boxes, texts = self.boxes(), list(self.written())
        placed = [(text, area) for _key, text, area in texts] + [(f"card {key}", box) for key, box in boxes.items()]
        inside = [(text, area, boxes[key]) for key, text, area in texts if key in boxes]
        found = [f"{text!r} runs out of its card" for text, area, box in inside if not box.holds(area.grown(MARGIN))]
        found += [f"{what!r} is cut off" for what, area in placed if not self.area.holds(area)]
        for things in (boxes.items(), [(text, area) for _key, text, area in texts]):
            pairs = combinations(things, 2)
            found += [f"{one!r} and {other!r} overlap" for (one, a), (other, b) in pairs if a.overlaps(b)]
        free = [(text, area) for key, text, area in texts if key is None]
        return found + [f"{text!r} lies on a card" for text, area in free if any(map(area.overlaps, boxes.values()))]


def _rectangle(element: ElementTree.Element) -> Area:
    x, y, width, height = (float(element.get(name)) for name in ("x", "y", "width", "height"))
    return Area(x, y, x + width, y + height)


def _extent(element: ElementTree.Element) -> Area:
    x, y, size = (float(element.get(name)) for name in ("x", "y", "font-size"))
    width = len(element.text) * size * ADVANCE
    left = x - width / 2 if element.get("text-anchor") == "middle" else x
    return Area(left, y - 0.8 * size, left + width, y + 0.25 * size)
