"""Links to pages that the small site lacks: words alone, if the real site has the page. Any other is a warning as ever."""

from __future__ import annotations

from pathlib import Path

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util import docname_join

from atlas.page_parts.foot.edit_link import source_of
from atlas.runner.sphinx_gallery_api import title

_LABEL = "sphx_glr_gallery_"


def leave(
    app: Sphinx, env: BuildEnvironment, node: addnodes.pending_xref, words: nodes.TextElement
) -> nodes.Node | None:
    """The words of a link to another page. Connected to ``missing-reference``, where one page is built alone.

    The terms are in the glossary, which is a page.
    """
    root, target = Path(app.confdir).parent, node["reftarget"]
    if node["reftype"] == "term":
        return words
    if node["reftype"] == "doc":
        page = docname_join(node["refdoc"], target)
        source = source_of(page)
        there = (root / source).is_file() if source else (root / f"docs/{page}.md").is_file()
        return words if there else None
    if node["reftype"] == "ref" and target.startswith(_LABEL):
        script = _script(root, target.removeprefix(_LABEL))
        if script is not None and not node.get("refexplicit"):
            return nodes.inline("", title(script) if script.suffix == ".py" else script.parent.name)
        return script and words
    return None


def _script(root: Path, label: str) -> Path | None:
    """The script, or the header of a chapter, that a label of sphinx-gallery's means.

    Both its chapter and its name may have underscores.
    """
    sources = [*root.glob("examples/*/*.py"), *root.glob("examples/*/GALLERY_HEADER.rst")]
    labels = {f"{path.parent.name}_{path.name}".removesuffix("_GALLERY_HEADER.rst").lower(): path for path in sources}
    return labels.get(label)


def connect(app: Sphinx) -> None:
    """Connected to ``builder-inited``, when the setting is known."""
    if app.config.atlas_page_alone:
        app.connect("missing-reference", leave)


def setup(app: Sphinx) -> None:
    app.add_config_value("atlas_page_alone", False, "env", [bool, str])
    app.connect("builder-inited", connect)
