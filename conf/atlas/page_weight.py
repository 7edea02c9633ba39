"""What keeps a page light: one style sheet, the scripts that it uses, and a sidebar of the pages of its own chapter.

``link_one_sheet``       A browser shows nothing until it has all style sheets of a page. There were sixteen, and half of their
                         bytes are for parts of extensions that this site does not have.
``keep_needed_scripts``  Sphinx and its extensions put every script on every page. Which text of a page needs which script is
                         said beside the scripts, in ``conf.py``; a script without a word there stays on all pages.
``shrink_scripts``       The site's own scripts go out without comments and indentation, a quarter of what they weigh. They keep
                         their names and places, and so whatever loads them. Those beside a page stay as they are: a library
                         has its license in a comment, and rjsmin takes the spaces out of a template within a template.
``collapse_sidebar``     furo asks Sphinx for a tree of all pages, so that each page, and the time to write it, would grow with
                         the site.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import lightningcss
import myst_nb.sphinx_ext
import rjsmin
from docutils import nodes
from furo import get_pygments_stylesheet
from sphinx.application import Sphinx

from atlas.page_store import connect_for_pages
from atlas.pages import ERRORS, find_group
from atlas.toolbox import Refusal, write_if_changed

# -- The style sheet ------------------------------------------------------------------------------

SHEET = "_static/site.css"
#: Sheets that stay files of their own, each with what is in the text of a page that needs it.
ALONE = {"_static/math.css": "<math", "_static/page.css": '<form class="typed'}
#: The colors of code. What is there before the end of a build is Sphinx's own, without those of the dark theme.
_CODE = "_static/pygments.css"
#: Classes of elements that no page has. tests/site/test_parts_of_pages.py names a page that comes to have one.
UNUSED = re.compile(
    r"-Color-?.*"  # MyST-NB: output in the colors of a terminal
    r"|sd-(?!(?:card|col|container|d|dropdown|font|g|hide|m[bt]|octicon|row|shadow|sphinx|stretched|summary|w)(?:-|$)).+"
    r"|sd-row-cols-(?!(?:\w\w-)?[13]$).+"  # a browser asks each element of a page about each of them
    r"|sphx-glr-(thumb|tag).*"  # sphinx-gallery's own cards: atlas.cards has others
    r"|no-dl"
)
#: Rules of furo that hang on whether an element has a class, or on its role. When one changes, a browser styles all that is in
#: the element anew: the whole page, as furo's script changes a class of ``<html>``. What a list needs, ``atlas.css`` says.
COSTLY = {"dl[class]": "dl.no-dl", "dl:not([class])": "dl.no-dl", "article[role=main] *": "article *"}
_CLASS = re.compile(r"\.(-?[A-Za-z_][\w-]*)")
#: The entry of a page about an error in the sidebar of another one.
_ENTRY = re.compile(r'<li class="toctree-l2"><a class="reference internal" href="(\w+)\.html">.*?</li>\n?', re.DOTALL)
FEW_HEADINGS = 3  # in the contents of a page, its title among them


def link_one_sheet(
    app: Sphinx, page: str, template: str, context: dict[str, Any], document: nodes.document | None
) -> None:
    """Link the one sheet, and those of ``ALONE`` that the page needs. Connected to ``html-page-context``, last.

    Here all sheets are in the output folder, and no page has been written: Sphinx puts a checksum of each into its address.
    """
    out, body = Path(app.outdir), context.get("body", "")
    of_all = {sheet.filename for sheet in app.builder._orig_css_files} - {SHEET, *ALONE}
    sheets = sorted(context["css_files"], key=lambda sheet: sheet.priority)
    joined = [sheet for sheet in sheets if sheet.filename in of_all and (out / sheet.filename).is_file()]
    names = [sheet.filename for sheet in joined]
    if getattr(app, "atlas_joined", None) != names:  # once in a build, whose sheets are the same for all its pages
        write_if_changed(out / SHEET, join_sheets({name: (out / name).read_text(encoding="utf-8") for name in names}))
        app.atlas_joined = names
    context["css_files"] = [
        sheet for sheet in sheets if sheet not in joined and ALONE.get(sheet.filename, "") in body
    ]


def join_sheets(sheets: dict[str, str]) -> str:
    """One style sheet with the rules of all that an element of a page can match, in their order.

    :param sheets: the text of each by its path below the site's root.
    :raises Refusal: if one cannot be read.
    """
    small = []
    for name, text in sheets.items():
        css = get_pygments_stylesheet() if name == _CODE else text
        for costly, plain in COSTLY.items():
            css = css.replace(costly, plain)
        unused = {found for found in _CLASS.findall(css) if UNUSED.fullmatch(found)}
        try:
            small.append(lightningcss.process_stylesheet(css, filename=name, unused_symbols=unused))
        except ValueError as error:
            raise Refusal(str(error)) from None
    return "\n".join(small) + "\n"


# -- Scripts --------------------------------------------------------------------------------------


def keep_needed_scripts(
    app: Sphinx, page: str, template: str, context: dict[str, Any], document: nodes.document | None
) -> None:
    """Take the others out. Connected to ``html-page-context``, after what adds scripts to a page."""
    body, needed = context.get("body", ""), app.config.atlas_scripts
    context["script_files"] = [
        script
        for script in context["script_files"]
        if re.search(needed.get(Path(script.filename or "").name, ""), body)
    ]


def shrink_scripts(sources: Path, out: Path) -> None:
    """Write each script of ``sources`` small over its copy in ``out``, unless that is there already.

    Of a template the copy is what Sphinx has made of it.
    """
    scripts = {out / source.name: source for source in sources.glob("*.js")}
    scripts |= {copy: copy for source in sources.glob("*.js.jinja") if (copy := out / source.stem).is_file()}
    for copy, source in sorted(scripts.items()):
        write_if_changed(copy, rjsmin.jsmin(source.read_text(encoding="utf-8")) + "\n")


def shrink_before_pages(app: Sphinx, *_page: object) -> None:
    """Connected to ``html-page-context``: Sphinx has copied the scripts, and puts a checksum of each into its address."""
    if not getattr(app, "atlas_scripts_are_small", False):  # once in each process that writes pages
        shrink_at_end(app, None)
        app.atlas_scripts_are_small = True


def shrink_at_end(app: Sphinx, exception: Exception | None) -> None:
    """Connected to ``build-finished``: a build that writes no page has copied them, too."""
    if exception is None and app.builder.format == "html":
        for folder in (folder for folder in app.config.html_static_path if not folder.startswith("..")):
            shrink_scripts(Path(app.confdir) / folder, Path(app.outdir) / "_static")


# -- The sidebar and the contents ---------------------------------------------------------------------


def collapse_sidebar(
    app: Sphinx, page: str, template: str, context: dict[str, Any], document: nodes.document | None
) -> None:
    """Give furo the collapsed tree, whatever it asks for: the branches above the page are open, and no others are walked.

    Of the pages about errors, of which there are many, only those of the page's own group are in it.

    Connected to ``html-page-context``: after sphinx-notfound-page (400), which makes a tree of its own for the page 404, and
    before furo (500).
    """
    if toctree := context.get("toctree"):

        def make_tree(**options: Any) -> str:
            tree = toctree(**options | {"collapse": True})
            if not page.startswith(ERRORS):
                return tree
            in_sight = ("", find_group(page))
            return _ENTRY.sub(lambda entry: entry[0] if find_group(f"{ERRORS}{entry[1]}") in in_sight else "", tree)

        context["toctree"] = make_tree


def hide_short_contents(app: Sphinx, page: str, template: str, context: dict[str, Any], document: Any) -> None:
    """A list of one or two headings helps nobody. Connected to ``html-page-context``, after furo."""
    context["furo_hide_toc"] = context.get("toc", "").count("<a ") <= FEW_HEADINGS


def copy_myst_nb_css(app: Sphinx) -> None:
    """Copy MyST-NB's style sheet before pages are written, by its own function. MyST-NB copies it at the end of the build.

    Sphinx adds a checksum to the address of a style sheet if the file is there when a page is written. So the first build
    writes pages without the checksum of this file, and a second build writes them with it. No issue was found that reports it.
    Delete this function when MyST-NB copies earlier than at ``build-finished`` (``setup`` in ``myst_nb/sphinx_ext.py``).
    """
    if app.builder.format != "html":
        return
    (Path(app.outdir) / "_static").mkdir(parents=True, exist_ok=True)
    myst_nb.sphinx_ext.add_global_html_resources(app, None)


def setup(app: Sphinx) -> None:
    for file in (SHEET, *ALONE):
        app.add_css_file(Path(file).name)
    app.add_config_value("atlas_scripts", {}, "html", [dict])
    connect_for_pages(app, "html-page-context", collapse_sidebar, 450)
    connect_for_pages(app, "html-page-context", hide_short_contents, 600)
    connect_for_pages(app, "html-page-context", link_one_sheet, 900)
    connect_for_pages(app, "html-page-context", keep_needed_scripts, 900)
    connect_for_pages(app, "html-page-context", shrink_before_pages, 900)
    app.connect("build-finished", shrink_at_end)
    app.connect("builder-inited", copy_myst_nb_css)
