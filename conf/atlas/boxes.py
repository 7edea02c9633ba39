"""Boxes and notes on a page: answers in short, quoted messages, what varies, what was recorded, what was counted.

``.. in-short::``
    answers a page's question below its title, in two to four lines. A reader who stops there must have been helped. Search
    engines, shared links and ``llms.txt`` say the same words.
``.. quoted-message::``
    is the message of an error that this build cannot raise, as somebody published it.
``.. memory-cells::``
    is a tensor beside the memory that it reads, for a reader to transpose, slice, expand and view.
``.. calculator::``
    is a form for a function of the page's script.
``.. proof::``
    says in numbers what the site rests on. All are counted by the build.

The others are not written by authors, but by the code that runs the examples:

``.. varies::``
    stands above an output that differs from build to build, and says why.
``.. needs-a-gpu::``
    parts the halves of a page, and says where the outputs below come from. Where the whole script has run on a GPU, the mark
    says so itself. A build without a GPU runs what is above it, and ``gallery.recordings`` puts another note in its place.
``.. claims::``
    says how many asserts of the page ran.
"""

from __future__ import annotations

import ast
from contextlib import suppress
from html import escape
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import urlsplit

from docutils import nodes
from docutils.parsers.rst import Directive
from pygments.lexer import RegexLexer, bygroups
from pygments.token import Generic, Text
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.transforms import SphinxTransform
from sphinx.util.docutils import SphinxDirective

from drawgrad.player import json_for_script

from .build_facts import count_checks, get_torch_version
from .operators import read_operators
from .page_store import ListingPages, add_place, connect_for_pages, enable_stores
from .pages import ERRORS
from .toolbox import link_to

#: The classes by which the style sheet and other features know a box.
IN_SHORT, QUOTED = "in-short", "quoted-message"


class InShort(SphinxDirective):
    """``.. in-short::`` with paragraphs, and perhaps one piece of code, as its content."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        self.assert_has_content()
        box = nodes.admonition("", nodes.title("", "In short"), classes=[IN_SHORT])
        self.set_source_info(box)
        box += self.parse_content_to_nodes()
        return [box]


class QuotedMessage(SphinxDirective):
    """``.. quoted-message:: ADDRESS`` with the message, its class first, as its content.

    A page about an error shows the message that its code raised. Without a GPU some cannot be raised, and they are among those
    that people look for most. The search finds a quoted one like any other.
    """

    required_arguments = 1
    final_argument_whitespace = True
    has_content = True

    def run(self) -> list[nodes.Node]:
        self.assert_has_content()
        source = self.arguments[0]
        if urlsplit(source).scheme != "https":
            raise self.error(f"say where the message was seen: '{source}' is not the https address of a page")
        message = " ".join(line.strip() for line in self.content)
        block = nodes.literal_block(message, message, language="none", classes=[QUOTED, "wrap"])
        link = nodes.reference("", source.removeprefix("https://"), refuri=source)
        seen = "This build cannot raise the message. It was seen here: "
        return [block, nodes.paragraph("", seen, link, classes=[f"{QUOTED}-source"])]


class NewCodeLexer(RegexLexer):
    """A diff whose marks and old lines are of the kinds that the copy button leaves out: what is left is the new code."""

    name = "diff"
    tokens: ClassVar = {
        "root": [
            (r"-.*\n", Generic.Deleted),
            (r"(\+ ?)(.*\n)", bygroups(Generic.Prompt, Generic.Inserted)),
            (r"(  )(.*\n)", bygroups(Generic.Prompt, Text)),
            (r".*\n", Text),
        ]
    }


# -- An output that varies ------------------------------------------------------------------------


class Varies(SphinxDirective):
    """``.. varies::`` with a sentence as its content; ``GatherVarying`` puts what varies into the same box."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        self.assert_has_content()
        said = nodes.paragraph("", "", nodes.strong("", "This output varies."))
        return [nodes.container("", said, *self.parse_content_to_nodes(), classes=["varies-note"])]


class GatherVarying(SphinxTransform):
    """Put the note, and the figures and outputs of its cell around it, into one box.

    Whoever compares two builds leaves these boxes out, and the search index does not hold them.
    """

    default_priority = 393

    def apply(self, **kwargs: Any) -> None:
        for note in [node for node in self.document.findall(nodes.container) if "varies-note" in node["classes"]]:
            parent, at = note.parent, note.parent.index(note)
            first, last = at, at + 1
            while first > 0 and _is_figure(parent[first - 1]):
                first -= 1
            while last < len(parent) and _is_output(parent[last]):
                last += 1
            around = parent.children[first:at] + parent.children[at + 1 : last]
            box = nodes.container("", note, *around, classes=["varies", "no-search"])
            parent.children[first:last] = [box]
            parent.setup_child(box)


def _is_figure(node: nodes.Node) -> bool:
    is_plot = isinstance(node, nodes.raw) and "plot-figure" in node["classes"]
    return is_plot or isinstance(node, nodes.figure) or type(node).__name__ == "imgsgnode" or _is_between(node)


def _is_output(node: nodes.Node) -> bool:
    is_text = isinstance(node, nodes.literal_block) and "sphx-glr-script-out" in node["classes"]
    is_table = isinstance(node, nodes.raw) and "output_html" in node.astext()
    return is_text or is_table or _is_between(node)


def _is_between(node: nodes.Node) -> bool:
    """What sphinx-gallery puts between outputs: an empty line, a comment with line numbers."""
    return isinstance(node, (nodes.comment, nodes.line_block)) or (
        isinstance(node, nodes.raw) and not node.astext().replace("<br />", "").strip()
    )


# -- A page of two halves -------------------------------------------------------------------------


class NeedsGpu(Directive):
    """``.. needs-a-gpu::`` takes nothing and holds nothing."""

    def run(self) -> list[nodes.Node]:
        said = "From here on, the outputs were measured on the GPU of the machine that built this page."
        return [nodes.container("", nodes.paragraph("", said), classes=["provenance", "here"])]


# -- What was counted -----------------------------------------------------------------------------


class claims(nodes.paragraph):
    """The sentence about a page's asserts. Attribute ``count``: how many ran in this build."""


class Claims(Directive):
    """``.. claims:: ASSERTS ABOUT_ERRORS FAILED BUILT``: how many asserts ran.

    The second number is of those about errors that the page raises on purpose. The third is of those that failed and were
    caught: the page shows a mistake with them. The fourth is there if the end of the page was recorded: so many of them ran in
    this build.
    """

    required_arguments = 1
    optional_arguments = 3

    def run(self) -> list[nodes.Node]:
        numbers = [int(number) for number in self.arguments]
        count, about_errors, failed = (*numbers, 0, 0)[:3]
        built = numbers[3] if len(numbers) > 3 else count
        ran = f"{count} asserts ran on this page when it was "
        if failed:
            sentence = f"{ran}built. {failed} failed on purpose, and the others passed."
        elif built < count:
            sentence = f"{ran}recorded, {built} of them again when it was built, and all passed."
        elif count == 1:
            sentence = "One assert ran on this page when it was built, and it passed."
        else:
            sentence = f"{ran}built, and all passed."
        if about_errors:
            them = (
                "One of them is about an error" if about_errors == 1 else f"{about_errors} of them are about errors"
            )
            sentence += f" {them} that the page raises on purpose."
        return [claims("", sentence, classes=["claims"], count=built)]


class MoveClaims(SphinxTransform):
    """The count is written after the last code cell. It leaves the text; `footer` puts it among the lines at the foot."""

    #: before solutions are folded, and before a varying output is gathered: the count may stand between
    default_priority = 392

    def apply(self, **kwargs: Any) -> None:
        for node in list(self.document.findall(claims)):
            node.parent.remove(node)
            self.document.append(node)


class proof(nodes.General, nodes.Element):
    """The place of the numbers."""


class ProofPages(ListingPages):
    """The pages with the numbers: each a link to what was counted."""

    name, place = "proof", proof

    def gather(self, app: Sphinx, env: BuildEnvironment) -> list[tuple[int, str, str]]:
        """Each number, what was counted, and the page that it leads to; of what this site has."""
        release = ".".join(get_torch_version().split(".")[:2])
        pages = [page for page in env.found_docs if page.startswith("gallery/") and not page.endswith("/index")]
        errors = [page for page in pages if page.startswith(ERRORS)]
        asserts = sum(count_checks(env, page) for page in env.found_docs)
        rows = (read_operators(Path(env.srcdir)) or {"rows": []})["rows"]
        counted = [
            (asserts, f"asserts check the text with PyTorch {release}", "about/how-this-site-stays-true"),
            (len(pages), "pages, each a script that you can run", "gallery/index"),
            (len(errors), "errors, each with cause and fix", f"{ERRORS}index"),
            (len(rows), "operators, and what each keeps for backward", "reference/operators"),
        ]
        return [(number, said, page) for number, said, page in counted if number and page in env.found_docs]


def fill_proof(app: Sphinx, document: nodes.document, page: str) -> None:
    """Put the numbers in. Connected to ``doctree-resolved``."""
    for place in list(document.findall(proof)):
        items = []
        for number, said, target in ProofPages.gathered(app.env):
            words = nodes.inline("", "", nodes.strong("", f"{number:,}"), nodes.Text(f" {said}"))
            items.append(nodes.list_item("", nodes.paragraph("", "", link_to(app, page, target, words))))
        place.replace_self(nodes.bullet_list("", *items, classes=["proof"]))


class MemoryCells(SphinxDirective):
    """``.. memory-cells::`` takes nothing and holds nothing.

    Without JavaScript it is a picture of the first tensor. ``conf/static/memory_cells.js`` adds the calls, and computes what
    they do; a browser test compares that with PyTorch.
    """

    def run(self) -> list[nodes.Node]:
        lines = Path(__file__).with_name("memory_cells.html").read_text(encoding="utf-8").splitlines()
        return [nodes.raw("", "".join(map(str.strip, lines)), format="html")]


# -- A function as a form -------------------------------------------------------------------------

_SIGNS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}


class Calculator(SphinxDirective):
    """``.. calculator:: FUNCTION``: a form for a function of the page's script, which returns a dict of bytes.

    Each parameter has a default. Each line is ``name = expression``, with names, numbers, ``+ - * /``, ``max()`` and what is
    looked up in constant tables. The last value of the dict is shown in bold. The build computes the first result.
    """

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        script = f"{self.env.docname}.py"
        self.env.note_dependency(script)
        try:
            form = make_calculator(Path(self.env.srcdir, script).read_text(encoding="utf-8"), self.arguments[0])
        except SyntaxError as error:
            raise self.error(f"line {error.lineno}: {error.msg}") from None
        except (ArithmeticError, LookupError, NameError) as error:
            raise self.error(f"{self.arguments[0]}() raises {error!r}") from None
        return [nodes.raw("", form, format="html")]


def make_calculator(script: str, name: str) -> str:
    """The form as HTML, with the lines of the function as data for ``conf/static/calculator.js``.

    :raises SyntaxError: with the line, if the browser cannot compute it.
    """
    tree = ast.parse(script)
    function = next((node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == name), None)
    if not function or len(function.args.args) != len(function.args.defaults):
        raise SyntaxError(f"there must be a function {name} with a default for each parameter", (None, 1, None, None))
    words = {node.id for node in ast.walk(function) if isinstance(node, ast.Name)}
    above = tree.body[: tree.body.index(function)]
    tables = [node for node in above if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) in words]
    lines = [*tables, *function.body[ast.get_docstring(function) is not None :]]
    data = json_for_script({"lines": [_read_line(line) for line in lines]})
    names: dict[str, Any] = {}
    exec(compile(ast.Module([*tables, function], []), name, "exec"), names)
    choices = {ast.unparse(node.slice): node.value for node in ast.walk(function) if isinstance(node, ast.Subscript)}
    fields = ""
    for key, usual in zip((one.arg for one in function.args.args), names[name].__defaults__, strict=True):
        field = f'<input type="number" name="{key}" value="{usual}" min="1" required>'
        if key in choices:
            known = eval(ast.unparse(choices[key]), names)
            options = "".join(f"<option{' selected' * (one == usual)}>{escape(one)}</option>" for one in known)
            field = f'<select name="{key}">{options}</select>'
        fields += f"<label>{key} {field}</label>"
    *parts, (last, most) = ((escape(part), f"{found / 2**30:.2f}") for part, found in names[name]().items())
    rows = "".join(f'<tr><th scope="row">{part}</th><td>{found}</td></tr>' for part, found in parts)
    return (
        f'<form class="calculator no-search"><fieldset disabled>{fields}</fieldset><p><strong>{last}: '
        f'<output aria-live="polite">{most}</output> GiB</strong></p><table class="docutils">'
        f"<colgroup><col><col></colgroup><tbody>{rows}</tbody></table>{data}</form>"
    )


def _read_line(line: ast.stmt) -> tuple[str, Any]:
    match line:
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            return name, _read_expression(value)
        case ast.Return(value=ast.Dict(values=values)):
            return "return", ["list", *map(_read_expression, values)]
    return "", _read_expression(line)  # which refuses it


def _read_expression(node: ast.AST) -> Any:
    """A name, ``{"is": CONSTANT}``, or a list of a sign and what it joins.

    >>> _read_expression(ast.parse("2 * {'a': 1}[b]", mode="eval").body)
    ['*', {'is': 2}, ['at', {'is': {'a': 1}}, 'b']]
    """
    match node:
        case ast.Name():
            return node.id
        case ast.BinOp() if type(node.op) in _SIGNS:
            return [_SIGNS[type(node.op)], _read_expression(node.left), _read_expression(node.right)]
        case ast.Subscript():
            return ["at", _read_expression(node.value), _read_expression(node.slice)]
        case ast.Call(func=ast.Name(id="max"), keywords=[]):
            return ["max", *map(_read_expression, node.args)]
    with suppress(ValueError):
        return {"is": ast.literal_eval(node)}
    raise SyntaxError(f"the browser cannot compute: {ast.unparse(node)}", (None, node.lineno, None, None))


def setup(app: Sphinx) -> None:
    app.add_directive("calculator", Calculator)
    app.add_directive("memory-cells", MemoryCells)
    app.add_lexer("diff", NewCodeLexer)
    app.add_directive("in-short", InShort)
    app.add_directive("quoted-message", QuotedMessage)
    app.add_directive("varies", Varies)
    app.add_transform(GatherVarying)
    app.add_directive("needs-a-gpu", NeedsGpu)
    app.add_directive("claims", Claims)
    app.add_transform(MoveClaims)
    add_place(app, "proof", proof)
    enable_stores(app, ProofPages)
    connect_for_pages(app, "doctree-resolved", fill_proof)
