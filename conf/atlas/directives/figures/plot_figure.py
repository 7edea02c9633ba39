"""``.. plot-figure::`` puts a matplotlib drawing into the page as SVG, in the colours of the theme.

matplotlib writes each colour as a number. Here ``#2563eb`` becomes ``var(--plot-2563eb, #2563eb)``: ``plot.css`` says what
stands for it on a dark page, and a colour that it does not name stays as drawn. A drawing with a bitmap in it (a heat map)
keeps its light paper, since no style can reach the bitmap's colours.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from .svg_source import drawing_of

_SVG = "{http://www.w3.org/2000/svg}"
_HREF = "{http://www.w3.org/1999/xlink}href"
_COLOUR = re.compile(r"#([0-9a-f]{6})\b", re.IGNORECASE)
_REFERENCE = re.compile(r"url\(#([^)]+)\)")
#: Where things stand, and a number there with more digits than can be seen: a hundredth of a point is the last that counts.
_PLACES = ("d", "points", "x", "y")
_FINE = re.compile(r"-?\d+\.\d{3,}")
_PIXELS_PER_POINT = 1.45  # a figure 7 inches wide fills the text column


class Plot(SphinxDirective):
    """A directive that shows a drawing of matplotlib's, with ``:alt:``, which says what to see."""

    option_spec: ClassVar[dict[str, Any]] = {"alt": directives.unchanged_required}

    def shown(self, name: str, drawing: str) -> list[nodes.Node]:
        """The drawing in the page; ``name`` and ``drawing`` as ``inline`` takes them."""
        alt = self.options.get("alt")
        if not alt:
            raise self.error("a plot needs an :alt: that says what to see in it")
        svg = inline(drawing, name, nodes.unescape(alt))
        return [nodes.raw("", f'<div class="plot-scroll">{svg}</div>', format="html", classes=["plot-figure"])]


class PlotFigure(Plot):
    """``.. plot-figure:: /path/from/the/source/folder.svg`` with ``:alt:``."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        return self.shown(*drawing_of(self, "plot"))


def inline(drawing: str, name: str, alt: str) -> str:
    """A drawing of matplotlib's as a part of a page: themed, one named image to a screen reader, no id of another's.

    :param drawing: an SVG document.
    :param name: the drawing's name in the page; it becomes its id.
    :raises xml.etree.ElementTree.ParseError: if ``drawing`` is no XML.
    """
    root = ElementTree.fromstring(drawing)
    panels = sum(element.get("id", "").startswith("axes_") for element in root.iter())
    _keep_only_what_is_drawn(root)
    _rename(root, name)
    for element in root.iter():
        for key in element.attrib.keys() & {"style", "fill", "stroke"}:
            element.set(key, _COLOUR.sub(lambda m: f"var(--plot-{m[1].lower()}, {m[0]})", element.attrib[key]))
        for key in element.attrib.keys() & {*_PLACES}:
            element.set(key, _FINE.sub(lambda m: f"{float(m[0]):.2f}", element.attrib[key]))
    width = float(root.attrib.pop("width").removesuffix("pt")) * _PIXELS_PER_POINT
    del root.attrib["height"]
    has_bitmap = root.find(f".//{_SVG}image") is not None
    root.attrib |= {
        "id": name,
        "class": " ".join(["plot", *["plot-on-paper"] * has_bitmap, *["plot-panels"] * (panels > 1)]),
        "role": "img",
        "aria-label": alt,
        "style": f"width: {width:.0f}px",
    }
    ElementTree.register_namespace("", _SVG[1:-1])
    return ElementTree.tostring(root, encoding="unicode")


def _keep_only_what_is_drawn(root: ElementTree.Element) -> None:
    """Without metadata, and without the style sheet, which in a page would be the whole page's."""
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag in (f"{_SVG}metadata", f"{_SVG}style"):
                parent.remove(child)
        if not (parent.text or "").strip():
            parent.text = None
        for child in parent:
            child.tail = "\n"


def _rename(root: ElementTree.Element, prefix: str) -> None:
    """Two drawings of a page may not share an id: keep those that are referred to, under the drawing's name."""
    used = set()
    for element in root.iter():
        if _HREF in element.attrib:
            target = element.attrib.pop(_HREF)
            if target.startswith("#"):
                used.add(target[1:])
                target = f"#{prefix}-{target[1:]}"
            element.set("href", target)
        for key, value in element.attrib.items():
            used.update(_REFERENCE.findall(value))
            element.set(key, _REFERENCE.sub(rf"url(#{prefix}-\1)", value))
    for element in root.iter():
        identity = element.attrib.pop("id", None)
        if identity in used:
            element.set("id", f"{prefix}-{identity}")


def setup(app: Sphinx) -> None:
    app.add_directive("plot-figure", PlotFigure)
