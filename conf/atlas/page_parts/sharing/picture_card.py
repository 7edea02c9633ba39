"""Draw the picture that a shared link shows: a page's title above its first figure, as a small PNG.

resvg rasterizes the figure's SVG; its wheel needs nothing else. Fonts are those that matplotlib brings, so that every machine
draws the same bytes. The cards of sphinxext-opengraph hold a page's words and no figure, and cairosvg needs a library of the
system.
"""

from __future__ import annotations

import hashlib
import io
import re
from functools import cache
from html import escape
from importlib.metadata import version
from pathlib import Path

import resvg_py
from matplotlib import get_data_path
from PIL import Image, ImageFont
from PIL.PngImagePlugin import PngInfo

#: The look of graphs. To import its name from  would import Graphviz too.
_STYLE = Path(__file__).parents[3] / "graphs" / "graph.css"
WIDTH, HEIGHT = 1200, 630  # what the networks ask for
_MARGIN = 64
_TITLE = 46  # size of its letters
_TOP, _BOTTOM = 72, 112  # room of the lines above and below title and figure
_LARGEST = 2.4  # times its size in the page: beyond, a graph of two nodes would shout
_ALONE = 8  # times its size: the mark, where there is no figure
_COLORS = 96
_SOURCE = "card"  # the name of the text in a PNG with the checksum of what it was drawn from
_VARIABLE = re.compile(r"(--[\w-]+): ([^;]+);")
_VAR = re.compile(r"var\((--[\w-]+)(?:, *([^()]+))?\)")
_OPEN = re.compile(r'<svg\s(?:[^">]|"[^"]*")*>')


def card(title: str, figure: str, name: str, mark: str) -> str:
    """The picture as SVG.

    :param figure: an SVG as it stands in a page; empty for a page without one.
    :param name: of the site.
    :param mark: the site's mark, an SVG.
    """
    lines = _wrapped(title)
    top = _TOP + len(lines) * _TITLE * 1.25 + 28
    texts = "".join(
        f'<text x="{_MARGIN}" y="{_TOP + (number + 0.8) * _TITLE * 1.25:.0f}" font-size="{_TITLE}" font-weight="700">'
        f"{escape(line)}</text>"
        for number, line in enumerate(lines)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" width="{WIDTH}" height="{HEIGHT}" '
        f'font-family="DejaVu Sans" fill="#1e293b"><style>{_graph_style()}</style>'
        f'<rect width="100%" height="100%" fill="#ffffff"/><rect width="14" height="100%" fill="#1d4ed8"/>{texts}'
        f"{_placed(figure or mark, top, HEIGHT - _BOTTOM - top, _LARGEST if figure else _ALONE)}"
        f"{_placed(mark, HEIGHT - 84, 44, _ALONE)}"
        f'<text x="{_MARGIN + 60}" y="{HEIGHT - 52}" font-size="28" fill="#526075">{escape(name)}</text></svg>'
    )


def png(card: str) -> bytes:
    """The picture as a PNG with few colors, as a drawing needs no more, that says what it was drawn from."""
    fonts = [str(_fonts() / f"DejaVu{font}.ttf") for font in ("Sans", "Sans-Bold", "SansMono", "SansMono-Bold")]
    drawn = resvg_py.svg_to_bytes(
        svg_string=card, skip_system_fonts=True, font_files=fonts, font_family="DejaVu Sans"
    )
    image = Image.open(io.BytesIO(drawn)).convert("RGB")
    said = PngInfo()
    said.add_text(_SOURCE, _checksum(card))
    out = io.BytesIO()
    image.quantize(_COLORS, method=Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE).save(out, "PNG", pnginfo=said)
    return out.getvalue()


def is_of(path: Path, card: str) -> bool:
    """Whether a file was drawn from this card: to draw it takes a fifth of a second, to ask a thousandth."""
    try:
        with Image.open(path) as image:
            return image.info.get(_SOURCE) == _checksum(card)
    except (OSError, SyntaxError):  # Pillow raises the latter for a broken PNG
        return False


def _checksum(card: str) -> str:
    return hashlib.sha256(
        f"{version('resvg-py')} {version('pillow')} {version('matplotlib')}\0{card}".encode()
    ).hexdigest()


def _placed(svg: str, y: float, height: float, largest: float) -> str:
    """The SVG in the middle of a band of the card, as large as fits; in colors where a page would follow its theme."""
    head = _OPEN.search(svg)[0]
    box = re.search(r'viewBox="([^"]+)"', head)[1]
    _, _, wide, high = map(float, box.split())
    scale = min((WIDTH - 2 * _MARGIN) / wide, height / high, largest)
    kind = re.search(r'class="([^"]*)"', head)
    opened = (
        f'<svg x="{_MARGIN}" y="{y + (height - high * scale) / 2:.0f}" width="{wide * scale:.1f}" height="{high * scale:.1f}" '
        f'viewBox="{box}" class="{kind[1] if kind else ""}">'
    )
    return opened + _VAR.sub(lambda found: found[2] or "none", svg[svg.index(head) + len(head) :])


def _wrapped(title: str) -> list[str]:
    """The title in at most two lines; what does not fit is cut off."""
    font = ImageFont.truetype(_fonts() / "DejaVuSans-Bold.ttf", _TITLE)
    lines = [""]
    for word in title.split():
        longer = f"{lines[-1]} {word}".strip()
        if font.getlength(longer) <= WIDTH - 2 * _MARGIN:
            lines[-1] = longer
        elif len(lines) == 2:
            return [lines[0], f"{lines[1]} …"]
        else:
            lines.append(word)
    return [line for line in lines if line]


@cache
def _graph_style() -> str:
    """The light rules of ``graph.css``, with colors in place of variables."""
    style = re.sub(r"/\*.*?\*/", "", _STYLE.read_text(encoding="utf-8"), flags=re.DOTALL)
    colors = dict(_VARIABLE.findall(style[: style.index("}")]))
    rules = [line for line in style.splitlines() if line.startswith(".graph ") and line.endswith("}")]
    return '.graph text { font-family: "DejaVu Sans Mono"; } ' + _VAR.sub(
        lambda found: colors[found[1]], " ".join(rules)
    )


def _fonts() -> Path:
    return Path(get_data_path(), "fonts", "ttf")
