"""What a card says of a page of the gallery, kept in Sphinx's environment when the page is read."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

from atlas import plot_picture
from atlas.figures import parse_graph
from atlas.head import find_first_paragraph, make_plain_text
from atlas.toolbox import first_sentences

from .minutes import minutes

LONGEST = 150  # characters of the answer; a first sentence may be longer
SEE_ALSO = "See also"


@dataclass(frozen=True, slots=True)
class Facts:
    """
    :ivar answer: the first sentences, with code between backticks.
    :ivar minutes: to read it.
    :ivar named: what its *See also* names, in order: labels and pages, as ``reftype`` and ``reftarget``.
    :ivar picture: a small SVG of its first figure; empty without one.
    :ivar look: the class that colors the picture.
    :ivar varies: whether the figure is one of those that differ from build to build.
    """

    answer: str
    minutes: int
    named: tuple[tuple[str, str], ...]
    picture: str
    look: str
    varies: bool


def read(app: Sphinx, document: nodes.document) -> None:
    """Connected to ``doctree-read``, after what takes parts of the page away."""
    page = app.env.docname
    if is_of_gallery(page):
        picture, look = _picture(app.env, page)
        first = f'id="{_image(page)}_001"'
        boxes = [box for box in document.findall(nodes.container) if "varies" in box["classes"]]
        of(app.env)[page] = Facts(
            answer=_answer(document),
            minutes=minutes(document),
            named=tuple(_named(document)),
            picture=picture,
            look=look,
            varies=any(first in figure.astext() for box in boxes for figure in box.findall(nodes.raw)),
        )


def is_of_gallery(page: str) -> bool:
    """Whether a page is an example's, or the first of a chapter."""
    return page.startswith("gallery/") and page.count("/") == 2


def of(env: BuildEnvironment) -> dict[str, Facts]:
    """All facts by page. Sphinx keeps them from build to build."""
    if not hasattr(env, "atlas_cards"):
        env.atlas_cards = {}
    return env.atlas_cards


def _answer(document: nodes.document) -> str:
    paragraph = find_first_paragraph(document)
    if paragraph is None:
        return ""
    said = paragraph.deepcopy()
    for literal in list(said.findall(nodes.literal)):
        literal.replace_self(nodes.Text(f"`{literal.astext()}`"))
    found = first_sentences(make_plain_text(said), LONGEST)
    return f"{found[:-1]}." if found.endswith(":") else found  # what follows the colon is not on the card


def _named(document: nodes.document) -> list[tuple[str, str]]:
    """The first page that each item of the list names."""
    for section in document.findall(nodes.section):
        if section[0].astext() == SEE_ALSO:
            first = (
                next(iter(item.findall(addnodes.pending_xref)), None) for item in section.findall(nodes.list_item)
            )
            return [(link["reftype"], link["reftarget"]) for link in first if link is not None]
    return []


def _image(page: str) -> str:
    return f"sphx_glr_{page.rpartition('/')[2]}"


def _picture(env: BuildEnvironment, page: str) -> tuple[str, str]:
    """The picture of the page's first figure, and its look."""
    first = Path(env.srcdir, page).parent / "images" / f"{_image(page)}_001"
    graph, plot = first.with_suffix(".graph.json"), first.with_suffix(".svg")
    if graph.is_file():
        from graphs.picture import draw_picture

        read, _made_by, show_saved = parse_graph(graph.read_text(encoding="utf-8"))
        return draw_picture(read, show_saved=show_saved), "graph"
    return (plot_picture.draw_plot_picture(plot.read_text(encoding="utf-8")), "plot") if plot.is_file() else ("", "")


def forget(app: Sphinx, env: BuildEnvironment, page: str) -> None:
    """Connected to ``env-purge-doc``."""
    of(env).pop(page, None)


def merge(app: Sphinx, env: BuildEnvironment, names: Iterable[str], other: BuildEnvironment) -> None:
    """Take over what another process read. Connected to ``env-merge-info``."""
    of(env).update((name, of(other)[name]) for name in names if name in of(other))


def setup(app: Sphinx) -> None:
    app.connect("doctree-read", read)
    app.connect("env-purge-doc", forget)
    app.connect("env-merge-info", merge)
