"""The internals of sphinx-gallery that our code calls, in one place.

If a new sphinx-gallery moves one of them, this module breaks, and ``tests/runner/test_sphinx_gallery_api.py`` says where. What
sphinx-gallery writes, its file names and the marks in its pages, is known to ``outputs`` and to ``atlas.directives`` as well;
their tests read real pages of sphinx-gallery.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import shutil
import textwrap
import tokenize
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import sphinx_gallery.notebook
from sphinx_gallery import gen_rst, glr_path_static, py_source_parser, scrapers
from sphinx_gallery.gen_gallery import DEFAULT_GALLERY_CONF, _fill_gallery_conf_defaults
from sphinx_gallery.gen_rst import extract_intro_and_title, generate_file_rst
from sphinx_gallery.py_source_parser import (
    INFILE_CONFIG_PATTERN,
    remove_config_comments,
    remove_ignore_blocks,
    split_code_and_text_blocks,
)
from sphinx_gallery.utils import get_md5sum

from . import notebook

Block = tuple[str, str, int]

_NOT_OF_A_PAGE = {
    "subsection_order",
    "within_subsection_order",
    "minigallery_sort_order",
    # what a build sets or notes there
    "abort_on_example_error",
    "failing_examples",
    "first_notebook_cell",
    "ignore_pattern",
    "parallel",
    "passing_examples",
    "plot_gallery",
    "run_stale_examples",
    "stale_examples",
}
"""The settings that shape no page: the order of chapters and pages, and what differs from build to build."""


def run(script: Path, target: Path, docs: Path, settings: Mapping[str, Any], *, end: int | None = None) -> None:
    """Run ``script`` and write its page, images, notebook and archive to ``target``.

    :param docs: the source folder that the page's paths are relative to; ``target`` lies in it.
    :param end: the line from which on code is not run: the page shows it without outputs.
    :raises Exception: what the script raised, with its traceback.
    """
    running = cells(script, end)

    def stop_after_last(block: Any, block_vars: dict[str, Any], gallery_conf: Mapping[str, Any]) -> str:
        """A scraper, called after each cell."""
        if end is not None and block.lineno == running[-1]:
            block_vars["execute_script"] = False
        return ""

    settings = {
        **settings,
        "image_scrapers": (*settings["image_scrapers"], stop_after_last),
        "src_dir": str(docs),
        "abort_on_example_error": True,
        "plot_gallery": bool(running),
        "run_stale_examples": False,
        "first_notebook_cell": notebook.first_cell(script),
    }
    target.mkdir(parents=True, exist_ok=True)
    with _notebooks_without_directives(), _errors_without_harness(), _graphs_among_images():
        generate_file_rst(script.name, target, script.parent, settings)
    # sphinx-gallery makes links in code of this file. It would make a node of each word of the code, which doubles the time to
    # write a page, and there is nothing to link to: no build asks another site for its inventory.
    (target / f"{script.stem}.codeobj.json").unlink(missing_ok=True)


@contextlib.contextmanager
def _notebooks_without_directives() -> Iterator[None]:
    """Convert the text of notebooks to Markdown further than sphinx-gallery does."""
    convert = sphinx_gallery.notebook.rst2md
    with _replaced(
        sphinx_gallery.notebook, rst2md=lambda *arguments: notebook.without_directives(convert(*arguments))
    ):
        yield


@contextlib.contextmanager
def _errors_without_harness() -> Iterator[None]:
    """Show code that raises as somebody would write it, where the script hides the ``try`` around it.

    What is left of such a cell is indented, and sphinx-gallery keeps that. In the notebook the cell raises, and its tag has
    Jupyter run the cells after it all the same.
    """
    clean, save = gen_rst._clean_script_blocks, gen_rst.save_notebook
    raising: set[str] = set()

    def clean_and_dedent(*arguments: Any) -> Any:
        blocks, outputs = clean(*arguments)
        for place, block in enumerate(blocks):
            code = textwrap.dedent(block.content)
            if block.type == "code" and code.lstrip("\n") != block.content.lstrip("\n"):
                raising.add(code.strip())
                blocks[place] = block._replace(content=code)
        return blocks, outputs

    def save_with_tags(notebook: dict[str, Any], path: Any) -> None:
        for cell in notebook["cells"]:
            if "".join(cell["source"]) in raising:
                cell["metadata"]["tags"] = ["raises-exception"]
        save(notebook, path)

    with _replaced(gen_rst, _clean_script_blocks=clean_and_dedent, save_notebook=save_with_tags):
        yield


@contextlib.contextmanager
def _graphs_among_images() -> Iterator[None]:
    """Let a scraper write the data of a graph where sphinx-gallery expects an image; a thumbnail is made of none."""
    find_image = scrapers._find_image_ext

    def find_image_or_graph(path: Any) -> tuple[str, str]:
        graph = Path(path).with_suffix(".graph.json")
        return (str(graph), "graph.json") if graph.is_file() else find_image(path)

    with _replaced(scrapers, _find_image_ext=find_image_or_graph):
        yield


@contextlib.contextmanager
def _replaced(module: ModuleType, **functions: Callable[..., Any]) -> Iterator[None]:
    """Have a module call other functions, and put its own back."""
    own = {name: getattr(module, name) for name in functions}
    module.__dict__.update(functions)
    try:
        yield
    finally:
        module.__dict__.update(own)


def count_output(count: Callable[[int], None]) -> None:
    """Call ``count`` with a number of characters before the script prints them, and when the value of a cell is shown.

    This holds for all that this process runs from here on. What ``count`` raises is raised inside the script.
    """
    shown = gen_rst._get_last_repr

    class Counted(gen_rst._LoggingTee):
        def write(self, data: str) -> None:
            count(len(data))
            super().write(data)

    def counted(*arguments: Any) -> tuple[str | None, str | None]:
        text, method = shown(*arguments)
        count(len(text) if text and method else 0)
        return text, method

    gen_rst._LoggingTee, gen_rst._get_last_repr = Counted, counted


def settings(own: Mapping[str, Any], docs: Path) -> dict[str, Any]:
    """sphinx-gallery's settings filled in as a build does, from ``sphinx_gallery_conf`` of conf.py, without a build."""
    filled = _fill_gallery_conf_defaults(dict(own))
    return {**filled, "src_dir": str(docs), "builder_name": "html", "titles": {}}


def shaping(settings: Mapping[str, Any]) -> str:
    """The part of ``settings``, filled in, that shapes pages, as a text that is the same in every build."""
    of_pages = {name: settings[name] for name in DEFAULT_GALLERY_CONF if name not in _NOT_OF_A_PAGE}
    return json.dumps(of_pages, default=lambda value: sorted(value) if isinstance(value, set) else repr(value))


def blocks(script: Path) -> list[Block]:
    """The text and code blocks of a script: kind, content, first line."""
    return [tuple(block) for block in split_code_and_text_blocks(str(script))[1]]


def cells(script: Path, end: int | None = None) -> list[int]:
    """The first lines of a script's code cells, of those before the line ``end`` if there is one."""
    return [line for kind, _, line in blocks(script) if kind == "code" and (end is None or line < end)]


def code_cells(script: Path) -> dict[int, str]:
    """The code of a script's cells by the number of their first line; :func:`shown` leaves what a page has of it."""
    return {line: code for kind, code, line in blocks(script) if kind == "code"}


def shown(code: str) -> str:
    """A cell without its hidden lines and without comments for sphinx-gallery."""
    return remove_config_comments(remove_ignore_blocks(code))


def title(script: Path) -> str:
    """The title of a script's page.

    :raises Exception: if the script cannot be read, or has none; sphinx-gallery could not list it either.
    """
    return extract_intro_and_title(str(script), blocks(script)[0][1])[1]


def parse_docstrings_only() -> None:
    """Have sphinx-gallery parse no more than the docstring of a script, from here on in this process.

    It parses each script twice, as if it were to run it, and needs the rest of the syntax tree only if it does.
    """
    whole = py_source_parser.parse_source_file

    def docstring_only(filename: Any) -> tuple[ast.Module | None, str]:
        content = Path(filename).read_text(encoding="utf-8")
        try:
            return ast.parse(_to_first_string(content)), content
        except (SyntaxError, tokenize.TokenError):
            return whole(filename)

    py_source_parser.parse_source_file = docstring_only


def _to_first_string(code: str) -> str:
    r"""The lines of ``code`` to the end of the first string in it; all if there is none.

    :raises tokenize.TokenError, SyntaxError: depending on the Python, if no line ends the string.

    >>> _to_first_string("# by us\n'One\\\ntwo'\nthree = 3")
    "# by us\n'One\\\ntwo'"
    """
    for token in tokenize.generate_tokens(io.StringIO(code).readline):
        if token.type == tokenize.STRING:
            return "\n".join(code.split("\n")[: token.end[0]])
    return code


def option(script: Path, name: str) -> tuple[int, Any] | None:
    """The line and the value of a comment ``# sphinx_gallery_<name> = VALUE`` in the script, the last one, if there is any.

    A value that is no literal of Python is returned as text.
    """
    text = script.read_text(encoding="utf-8", errors="replace")
    found = [one for one in INFILE_CONFIG_PATTERN.finditer(text) if one[1] == name and one[3] is not None]
    if not found:
        return None
    value = found[-1][3].strip()
    try:
        value = ast.literal_eval(value)
    except (SyntaxError, ValueError):
        pass
    return text.count("\n", 0, found[-1].start(1)) + 1, value


def broken_thumbnail(images: Path, stem: str) -> None:
    """Put sphinx-gallery's own picture of a broken example on the card of the page ``stem``."""
    picture = Path(glr_path_static()) / "broken_example.png"
    thumbnail = images / "thumb" / f"sphx_glr_{stem}_thumb{picture.suffix}"
    thumbnail.parent.mkdir(parents=True, exist_ok=True)
    for former in (".png", ".svg"):  # sphinx-gallery takes what it finds first
        thumbnail.with_suffix(former).unlink(missing_ok=True)
    shutil.copyfile(picture, thumbnail)


def mark_current(copied_script: Path) -> None:
    """Make sphinx-gallery take the outputs beside ``copied_script`` for those of the script, so that it runs nothing."""
    copied_script.with_name(copied_script.name + ".md5").write_text(get_md5sum(copied_script, mode="t"))
