"""One style sheet for all pages: those of the theme, the extensions and ``conf/static``, without rules that no page can use.

A browser shows nothing until it has all style sheets of a page. There were fourteen, and half of their bytes are for parts of
extensions that this site does not have: tabs, buttons, the colors of a terminal. The sheets are joined in the order in which
Sphinx links them. A sheet in ``ALONE`` stays a file of its own, for the pages that need it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import tinycss2
from furo import get_pygments_stylesheet
from sphinx.application import Sphinx
from tinycss2.ast import AtRule, Node, ParseError, QualifiedRule

from atlas.toolbox import Refusal, write_whole

FILE = "_static/site.css"
#: Each with what is in the text of a page that needs it.
ALONE = {"_static/math.css": "<math"}
#: The colors of code. What is there before the end of a build is Sphinx's own, without those of the dark theme.
_CODE = "_static/pygments.css"

#: Classes of elements that no page has. tests/site/test_one_style_sheet.py names a page that comes to have one.
UNUSED = re.compile(
    r"-Color-?.*"  # MyST-NB: output in the colors of a terminal
    r"|(tag|config)_.*scroll.*"
    r"|sd-(accordion|align|animate|aside|avatar|badge|bg|border|btn|cards|fade|fs|gx|gy|material|outline|rounded|steps?|tab|text)(-.*)?"
    r"|sd-(col|container|d|h|row-cols-xl|g-xl|row-cols)-(?!(1|2|fluid|flex-row|(xs|sm)-[12]|md-3|lg-[34])$).*"
    r"|sd-([mp][blrtxy]?)-(?!(3|4)$).*"
    r"|rst-.*"  # Read the Docs' menu of versions
    r"|sphx-glr-(thumb|tag).*"  # sphinx-gallery's own cards: atlas.cards has others
)
_CLASS = re.compile(r"\.(-?[A-Za-z_][\w-]*)")
_NOT = re.compile(r":not\([^()]*\)")
_RELATIVE = re.compile(r"""url\(\s*["']?+(?!data:|https?:|[/#])""")


def join(sheets: Mapping[str, str]) -> str:
    """One style sheet with the rules of all that an element of a page can match.

    :param sheets: the text of each by its path below the site's root, in their order.
    :raises Refusal: if a sheet of another folder names a file: its address would lead elsewhere.
    """
    for name, text in sheets.items():
        if Path(name).parent != Path(FILE).parent and _RELATIVE.search(text):
            raise Refusal(f"{name} names a file by a relative address, which is wrong in {FILE}: keep it in ALONE")
    rules = [
        rule for name, text in sheets.items() for rule in _written(tinycss2.parse_stylesheet(text, True, True), name)
    ]
    return "\n".join(rules) + "\n"


def _written(rules: list[Node], of: str) -> Iterator[str]:
    for rule in rules:
        if isinstance(rule, ParseError):
            raise Refusal(f"{of} cannot be read: {rule.message}, in line {rule.source_line}")
        if isinstance(rule, QualifiedRule):
            selectors = ",".join(one for one in _selectors(rule) if not _is_unused(one))
            if selectors:
                yield f"{selectors}{{{_content(rule)}}}"
        elif isinstance(rule, AtRule) and rule.lower_at_keyword in ("media", "supports"):
            inner = "".join(_written(tinycss2.parse_rule_list(rule.content, True, True), of))
            if inner:
                yield f"@{rule.at_keyword}{tinycss2.serialize(rule.prelude)}{{{inner}}}"
        else:
            yield rule.serialize()


def _selectors(rule: QualifiedRule) -> list[str]:
    found = [""]
    for token in rule.prelude:
        if token.type == "literal" and token.value == ",":
            found.append("")
        elif token.type != "comment":
            found[-1] += token.serialize()
    return [selector.strip() for selector in found]


def _is_unused(selector: str) -> bool:
    """Whether a selector asks for a class that no page has.

    >>> _is_unused(".sd-tab-set > label"), _is_unused(".sd-card:not(.sd-tab-set)")
    (True, False)
    """
    return any(UNUSED.fullmatch(name) for name in _CLASS.findall(_NOT.sub("", selector)))


def _content(rule: QualifiedRule) -> str:
    kept = [token for token in rule.content if token.type != "comment"]
    text = "".join(" " if token.type == "whitespace" else token.serialize() for token in kept)
    return " ".join(text.split("\n")).strip()


def link(app: Sphinx, name: str, template: str, context: dict[str, Any], doctree: object) -> None:
    """Link the one sheet, and those of ``ALONE`` that the page needs. Connected to ``html-page-context``, last.

    Here all sheets are in the output folder, and no page has been written: Sphinx puts a checksum of each into its address.
    """
    out, body = Path(app.outdir), context.get("body", "")
    of_all = {sheet.filename for sheet in app.builder._orig_css_files} - {FILE, *ALONE}
    sheets = sorted(context["css_files"], key=lambda sheet: sheet.priority)
    joined = [sheet for sheet in sheets if sheet.filename in of_all and (out / sheet.filename).is_file()]
    names = [sheet.filename for sheet in joined]
    if getattr(app, "_atlas_joined", None) != names:  # once in a build, whose sheets are the same for all its pages
        write(out, names)
        app._atlas_joined = names
    context["css_files"] = [
        sheet for sheet in sheets if sheet not in joined and ALONE.get(sheet.filename, "") in body
    ]


def write(out: Path, names: list[str]) -> None:
    """Write the joined sheet of a site, unless it is there and of the same sheets."""
    sheets = {name: (out / name).read_text(encoding="utf-8") for name in names}
    if _CODE in sheets:
        sheets[_CODE] = get_pygments_stylesheet()
    digest = hashlib.sha256(repr((sheets, Path(__file__).read_bytes())).encode()).hexdigest()[:16]
    head = f"/* of {digest} */\n"
    path = out / FILE
    if not path.is_file() or not path.read_text(encoding="utf-8").startswith(head):
        write_whole(path, head + join(sheets))


def setup(app: Sphinx) -> None:
    for file in (FILE, *ALONE):
        app.add_css_file(Path(file).name)
    app.connect("html-page-context", link, priority=900)
