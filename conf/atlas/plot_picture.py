"""The small picture of a plot: its lines, bars and areas in the colors of the theme, without a word, a number or a legend.

Shown small, the text of a plot has three pixels, and is two thirds of the file: matplotlib draws each letter.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from xml.sax.saxutils import quoteattr

_SVG = "{http://www.w3.org/2000/svg}"
_HREF = "{http://www.w3.org/1999/xlink}href"
#: What matplotlib names so is read, and not looked at.
_LEFT_OUT = re.compile(r"legend_|matplotlib\.axis_")
_NUMBER = re.compile(r"-?\d+\.?\d*(?:e-?\d+)?")
_COLOR = re.compile(r"#([0-9a-f]{6})\b", re.IGNORECASE)
_KEPT = ("fill", "stroke", "stroke-width", "stroke-dasharray", "opacity", "fill-opacity", "stroke-opacity")
_PAPER = "#ffffff"
_MARK = 5  # size of a mark


def draw_plot_picture(drawing: str) -> str:
    """The picture of a drawing of matplotlib's, for an element of class ``plot``.

    :raises xml.etree.ElementTree.ParseError: if ``drawing`` is no XML.
    """
    root = ElementTree.fromstring(drawing)
    shapes = "".join(_draw_shapes(root, _find_marks(root)))
    return f'<svg viewBox="{_find_box(root)}" aria-hidden="true">{shapes}</svg>'


def _find_box(root: ElementTree.Element) -> str:
    """The axes, as what is drawn in them is clipped to; the whole drawing where nothing is."""
    axes = [
        [float(rect.get(side, "0")) for side in ("x", "y", "width", "height")]
        for rect in root.iterfind(f".//{_SVG}clipPath/{_SVG}rect")
    ]
    if not axes:
        return " ".join(f"{float(number):.0f}" for number in root.get("viewBox", "0 0 1 1").split())
    left, top = min(x for x, _, _, _ in axes) - 3, min(y for _, y, _, _ in axes) - 3
    right, bottom = max(x + wide for x, _, wide, _ in axes) + 3, max(y + high for _, y, _, high in axes) + 3
    return f"{left:.0f} {top:.0f} {right - left:.0f} {bottom - top:.0f}"


def _find_marks(root: ElementTree.Element) -> dict[str, dict[str, str]]:
    """The style of each shape that is defined once and used at many points, by its id."""
    return {path.get("id", ""): _read_style(path) for path in root.iterfind(f".//{_SVG}defs/{_SVG}path")}


def _draw_shapes(
    parent: ElementTree.Element, marks: dict[str, dict[str, str]], within_words: bool = False
) -> Iterator[str]:
    points: dict[str, list[str]] = {}
    for child in parent:
        if child.tag == f"{_SVG}use" and not within_words:
            style = marks.get(child.get(_HREF, "")[1:], {}) | _read_style(child)
            color = style.get("fill", "none")
            color = style.get("stroke", "none") if color == "none" else color
            points.setdefault(color, []).append(
                f"M{_round_number(child.get('x', '0'))} {_round_number(child.get('y', '0'))}h0"
            )
        elif child.tag == f"{_SVG}image":
            yield _draw_bitmap(child)
        elif child.tag == f"{_SVG}path":
            style = _read_style(child)
            if style.get("fill") != _PAPER or style.get("stroke", "none") != "none":
                yield f'<path d="{_round_outline(child.get("d", ""))}"{_write_style(style)}/>'
        elif child.tag == f"{_SVG}g" and not _is_left_out(child, within_words):
            yield from _draw_shapes(child, marks, child.get("id", "").startswith("text_"))
    for color, at in points.items():
        look = {"stroke": color, "stroke-width": str(_MARK), "stroke-linecap": "round"}
        yield f'<path d="{"".join(dict.fromkeys(at))}"{_write_style(look)}/>'


def _is_left_out(group: ElementTree.Element, within_words: bool) -> bool:
    """Of words the box stays in which they stand, if they have one."""
    name = group.get("id", "")
    return bool(_LEFT_OUT.match(name)) or (within_words and not name.startswith("patch_"))


def _draw_bitmap(image: ElementTree.Element) -> str:
    said = {"href": "".join(image.get(_HREF, "").split()), "style": "image-rendering:pixelated"}
    said |= {name: image.get(name, "") for name in ("x", "y", "width", "height", "transform") if image.get(name)}
    return f"<image{''.join(f' {name}={quoteattr(value)}' for name, value in said.items())}/>"


def _read_style(element: ElementTree.Element) -> dict[str, str]:
    said = dict(pair.split(":", 1) for pair in element.get("style", "").split(";") if ":" in pair)
    return {name.strip(): value.strip() for name, value in said.items() if name.strip() in _KEPT}


def _write_style(style: dict[str, str]) -> str:
    """As ``style``, in which alone a color may be a variable of the theme."""
    themed = ";".join(
        f"{name}:{_COLOR.sub(lambda m: f'var(--plot-{m[1].lower()},{m[0]})', value)}" for name, value in style.items()
    )
    return f' style="{themed}"' if themed else ""


def _round_outline(d: str) -> str:
    """The outline on whole points: the picture is half as large as the plot, so that is half a pixel.

    >>> _round_outline("M 1.234 5.678 \\nL 1.31 5.7 \\nL 20.9 -0.2 \\nz\\n")
    'M1 6L21 0z'
    """
    found, last = [], ""
    for command, numbers in re.findall(r"([MLHVCQzZ])([^MLHVCQzZ]*)", d):
        at = " ".join(_round_number(number) for number in _NUMBER.findall(numbers))
        if command != "L" or at != last:
            found.append(command + at)
        last = at
    return "".join(found)


def _round_number(number: str) -> str:
    return f"{float(number) + 0.0:.0f}".replace("-0", "0") if abs(float(number)) < 0.5 else f"{float(number):.0f}"
