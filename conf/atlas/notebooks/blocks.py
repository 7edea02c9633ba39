"""Text and code of a Markdown page, in their order. What is in a box or folded away stands in the open."""

from __future__ import annotations

import dataclasses
import doctest
import re
from collections.abc import Iterator
from dataclasses import dataclass

from docutils.parsers.rst import Directive
from markdown_it.renderer import RendererHTML
from myst_parser.config.main import MdParserConfig
from myst_parser.parsers.directives import parse_directive_text
from myst_parser.parsers.mdit import create_md_parser

from .plain_markdown import plain, quote

_FENCE = re.compile(r"\{(?P<name>[\w:-]+)\}[ \t]*(?P<argument>.*)")
_UNFOLDED = ("dropdown", "container", "solution")
_ADMONITIONS = ("note", "tip", "hint", "important", "attention", "warning", "caution", "danger", "admonition")
_OF_THE_PAGE = ("index", "toctree", "testsetup", "testcleanup", "testoutput")
_NO_TEXT = ("front_matter", "myst_target", "myst_line_comment", "myst_block_break")
_COMMENT_OF_DOCTEST = re.compile(r"[ \t]*#[ \t]*doctest:.*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Text:
    markdown: str


@dataclass(frozen=True, slots=True)
class Code:
    source: str
    shown: bool = True
    """Whether it stands on the page; else it checks what the page says."""
    raises: bool = False
    """Whether it ends with an error, which the page shows."""


class _AnyDirective(Directive):
    """For the parser of MyST: options and content, whatever they are."""

    option_spec = {"any": str}  # noqa: RUF012 - docutils has it so; MyST looks for options if there is one
    optional_arguments = 1
    final_argument_whitespace = True
    has_content = True


def blocks(source: str, config: MdParserConfig) -> list[Text | Code]:
    """The blocks of a page; text that stands together is one.

    :param source: the text of the file, or of a directive in it.

    >>> config = MdParserConfig(enable_extensions={"colon_fence"})
    >>> blocks("# Title\\n\\n```{doctest}\\n>>> 1 + 1\\n2\\n```\\n", config)
    [Text(markdown='# Title'), Code(source='1 + 1', shown=True, raises=False)]
    """
    outer = dataclasses.replace(config, disable_syntax=[*config.disable_syntax, "inline"])
    lines, depth, text = source.splitlines(), 0, []
    found: list[Text | Code] = []
    for token in create_md_parser(outer, RendererHTML).parse(source + "\n"):
        top, depth = depth == 0 and token.nesting >= 0, depth + token.nesting
        if not top or token.map is None or token.type in _NO_TEXT:
            continue
        fence = _FENCE.match(token.info) if token.type in ("fence", "colon_fence") else None
        if fence:
            found += [*_text(text), *_of_directive(fence["name"], fence["argument"], token.content, config)]
            text = []
        else:
            text.append("\n".join(lines[slice(*token.map)]).rstrip())
    return _joined([*found, *_text(text)])


def _joined(parts: list[Text | Code]) -> list[Text | Code]:
    found: list[Text | Code] = []
    for part in parts:
        if isinstance(part, Text) and found and isinstance(found[-1], Text):
            found[-1] = Text(f"{found[-1].markdown}\n\n{part.markdown}")
        else:
            found.append(part)
    return found


def _text(parts: list[str]) -> list[Text]:
    return [Text(plain("\n\n".join(parts)))] if parts else []


def _of_directive(name: str, argument: str, content: str, config: MdParserConfig) -> Iterator[Text | Code]:
    parsed = parse_directive_text(_AnyDirective, argument, content, validate_options=False)
    body, options = "\n".join(parsed.body), parsed.options
    hidden = "hide" in options or "remove-cell" in str(options.get("tags", ""))
    if name in ("code-cell", "testcode"):
        yield Code(body, shown=not hidden)
    elif name == "doctest":
        yield from _of_doctest(body, shown=not hidden)
    elif name in ("code-block", "sourcecode"):
        yield Text(f"```{argument}\n{body}\n```")
    elif name == "table":
        yield from blocks(body, config)
    elif name == "in-short":
        yield from _quoted("In short", body, config)
    elif name in _ADMONITIONS:
        yield from _quoted(plain(argument) or name.capitalize(), body, config)
    elif name in _UNFOLDED:
        heading = argument if name != "solution" else "Solution"
        yield from [Text(f"**{plain(heading)}**")] if heading and name != "container" else []
        yield from blocks(body, config)
    elif name not in _OF_THE_PAGE:
        title = options.get("title")
        yield Text(f"*{'A figure of the page:'} {title}*" if title else f"*{'The page of the site has more here.'}*")


def _quoted(title: str, body: str, config: MdParserConfig) -> Iterator[Text | Code]:
    inner = blocks(body, config)
    text = "\n\n".join(block.markdown for block in inner if isinstance(block, Text))
    yield Text(quote(f"**{title}**\n\n{text}"))
    yield from (block for block in inner if isinstance(block, Code))


def _of_doctest(body: str, *, shown: bool) -> Iterator[Code]:
    """The code without its prompts. A cell ends where the page shows a value or an error, so that the notebook shows it too."""
    cell: list[str] = []
    for example in doctest.DocTestParser().get_examples(body):
        code = _COMMENT_OF_DOCTEST.sub("", example.source).rstrip()
        raises = example.exc_msg is not None
        if raises and cell:
            yield Code("\n".join(cell), shown)
            cell = []
        cell.append(code)
        if raises or (example.want and not code.startswith("print(")):
            yield Code("\n".join(cell), shown, raises)
            cell = []
    if cell:
        yield Code("\n".join(cell), shown)
